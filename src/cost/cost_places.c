/* Addresses of the loads and stores of a stage: see cost_parts.h.
 *
 * Each index is evaluated at the first iteration of all loops, then with one loop a step further,
 * and at the last step of that loop. The differences are the stride and the reach of the loop,
 * whatever the index is. If they disagree, the step is non-affine; if data decides, the access is
 * a gather.
 */
#include <math.h>

#include "cost/cost_parts.h"
#include "cost/policy.h"
#include "program/affine.h"
#include "program/program_cost.h"

/* ---- values of indices ----------------------------------------------------------------------- */

static double index_at(const struct program *p, int expr, const double *axis);

static double index_pair(const struct program *p, const struct px_node *n, const double *axis) {
  double a = index_at(p, n->arg[0], axis), b = index_at(p, n->arg[1], axis);
  switch (n->op) {
    case PX_ADD: return a + b;
    case PX_SUB: return a - b;
    case PX_MUL: return a * b;
    case PX_DIV: return b > 0 ? floor(a / b) : 0;
    case PX_MOD: return b > 0 ? a - b * floor(a / b) : 0;
    case PX_MIN: return a < b ? a : b;
    case PX_MAX: return a > b ? a : b;
    default: return 0;
  }
}

/* The value of an index. Data counts as 0, and a condition as true. */
static double index_at(const struct program *p, int expr, const double *axis) {
  const struct px_node *n = &p->nodes.data[expr];
  switch (n->op) {
    case PX_INT: return (double)n->integer;
    case PX_AXIS: return axis[n->integer];
    case PX_NEG: return -index_at(p, n->arg[0], axis);
    case PX_SELECT: return index_at(p, n->arg[1], axis);
    default: return scalar_ops[n->op].arity == 2 ? index_pair(p, n, axis) : 0;
  }
}

static uint32_t axes_in(const struct program *p, int expr, bool data);

static bool holds_at(const struct program *p, int expr, const double *axis) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op == PX_BOOL) return n->integer;
  if (n->op == PX_AND) return holds_at(p, n->arg[0], axis) && holds_at(p, n->arg[1], axis);
  if (n->op == PX_OR) return holds_at(p, n->arg[0], axis) || holds_at(p, n->arg[1], axis);
  if (n->op == PX_NOT) return !holds_at(p, n->arg[0], axis);
  double a = index_at(p, n->arg[0], axis), b = index_at(p, n->arg[1], axis);
  switch (n->op) {
    case PX_LT: return a < b;
    case PX_LE: return a <= b;
    case PX_GT: return a > b;
    case PX_GE: return a >= b;
    case PX_EQ: return a == b;
    default: return a != b;
  }
}

/* The share of points at which an index condition holds, by evenly spread samples. */
static double part_that_holds(const struct program *p, const struct program_tensor *t, int expr) {
  double axis[PROGRAM_AXES], step[PROGRAM_AXES], at[PROGRAM_AXES], ratio = 1;
  int axes = t->rank + t->reductions, good = 0;
  uint32_t in = axes_in(p, expr, false);
  for (int i = 0; i < axes; i++) {
    axis[i] = 0;
    at[i] = 1.0 / 2;
    if (in >> i & 1) ratio *= COST_POINT_STEP; /* powers of it, so that axes differ */
    step[i] = ratio;
  }
  for (int point = 0; point < COST_POINTS; point++) {
    for (int i = 0; i < axes; i++) {
      if (!(in >> i & 1)) continue;
      at[i] += step[i] - floor(at[i] + step[i]);
      axis[i] = floor(at[i] * (double)t->axes[i].size);
    }
    good += holds_at(p, expr, axis);
  }
  return (2 * good + 1) / (2.0 * COST_POINTS + 1);
}

/* The share of terms that a reduction computes. Loops are partitioned at the padding boundary, and
 * padding adds nothing but the terms that keep NaN and infinite values. */
static double computed_share(const struct program *p, const struct program_tensor *t, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op == PX_NUMBER && n->number == 0) return 0;
  if (n->op != PX_SELECT || !is_index_condition(p, n->arg[0]) || axes_in(p, n->arg[0], true))
    return 1;
  double part = part_that_holds(p, t, n->arg[0]);
  return part * computed_share(p, t, n->arg[1]) + (1 - part) * computed_share(p, t, n->arg[2]);
}

/* Axes that occur in the expression; with `data`, only those in indices of loads. */
static uint32_t axes_in(const struct program *p, int expr, bool data) {
  const struct px_node *n = &p->nodes.data[expr];
  uint32_t axes = 0;
  if (n->op == PX_AXIS) return data ? 0 : 1u << n->integer;
  for (int i = 0; i < PX_ARGS; i++)
    if (n->arg[i] >= 0) axes |= axes_in(p, n->arg[i], data);
  if (n->op != PX_LOAD) return axes;
  for (int i = 0; i < p->tensors.data[n->tensor].rank; i++)
    axes |= axes_in(p, p->indices.data[n->first + i], false);
  return axes;
}

static uint32_t steps_of(const struct nest *n, uint32_t axes) {
  uint32_t steps = 0;
  for (int i = 0; axes; i++, axes >>= 1)
    if (axes & 1) steps |= n->axis_steps[i];
  return steps;
}

uint32_t nest_depends_on(const struct cost_walk *w, const struct nest *n, int expr) {
  return steps_of(n, axes_in(w->tree->program, expr, false));
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Dimensions of the accessed tensor, or of the buffer that holds a stage. */
struct frame {
  int dims;
  struct buffer_axis dim[SCHEDULE_DEPTH];
  bool is_buffer;          /* positions wrap at the extents of a buffer */
  int index[PROGRAM_AXES]; /* index expression by axis of the tensor; -1: the axis itself */
};

static void frame_of(const struct cost_walk *w, int tensor, struct frame *f) {
  const struct program_tensor *t = &w->tree->program->tensors.data[tensor];
  int stage = t->is_input ? -1 : loop_tree_stage(w->tree, tensor);
  bool buffer = stage >= 0 && !w->tree->stages[stage].is_output;
  f->is_buffer = buffer;
  f->dims = buffer ? w->tree->stages[stage].dims : t->rank;
  for (int i = 0; i < f->dims; i++)
    f->dim[i] = buffer ? w->tree->stages[stage].layout[i]
                       : (struct buffer_axis){i, 1, t->axes[i].size, t->axes[i].size};
}

static void place_at(const struct cost_walk *w, const struct frame *f, const double *axis,
                     double *place) {
  for (int i = 0; i < f->dims; i++) {
    const struct buffer_axis *d = &f->dim[i];
    int index = f->index[d->axis];
    double value = index < 0 ? axis[d->axis] : index_at(w->tree->program, index, axis);
    if (d->weight > 1) value = floor(value / (double)d->weight);
    place[i] = value;
  }
}

/* Distance of two places in elements; loops outside a buffer do not move in it. */
static double flat(const struct frame *f, const double *from, const double *to, double *move) {
  double elements = 0;
  for (int i = 0; i < f->dims; i++) {
    double extent = (double)f->dim[i].extent;
    move[i] = to[i] - from[i];
    if (f->is_buffer && fabs(move[i]) >= extent) move[i] = fmod(move[i], extent);
    elements = elements * (double)f->dim[i].padded_extent + move[i];
  }
  return elements;
}

/* Bytes of a box in whole lines. By dimension, it spans `span` places, of which `count` are
 * accessed. */
static double box_bytes(const struct frame *f, const double *span, const double *count, int bytes,
                        double line) {
  double all = 1, run = bytes, whole = bytes;
  bool full = true;
  for (int i = f->dims - 1; i >= 0; i--) {
    double extent = (double)f->dim[i].extent, reach = fmin(span[i], extent);
    double places = fmin(reach, count[i]);
    whole *= extent;
    if (full) {
      run *= reach;
      double lines = ceil(run / line);
      full = reach >= extent && places >= extent;
      if (!full || i == 0)
        all = fmin(lines * line, fmax(line, places * line * (run / reach) / bytes));
    } else {
      all *= places;
    }
  }
  return fmin(all, whole);
}

static void fill_touched(const struct cost_walk *w, const struct nest *n, const struct frame *f,
                         double reach[][SCHEDULE_DEPTH], struct access *a) {
  double span[SCHEDULE_DEPTH], count[SCHEDULE_DEPTH], line = w->tree->machine.line;
  for (int i = 0; i < f->dims; i++) span[i] = count[i] = 1;
  for (int step = n->stage->steps; step >= 0; step--) {
    a->touched[LINE][step] = box_bytes(f, span, count, a->bytes, line);
    a->touched[PAIR][step] = box_bytes(f, span, count, a->bytes, 2 * line);
    if (!step) break;
    for (int i = 0; i < f->dims; i++) {
      if (reach[step - 1][i] == 0) continue;
      span[i] += fabs(reach[step - 1][i]);
      count[i] *= n->extent[step - 1];
    }
  }
}

/* Places of a dimension between the least and the largest value that data gives an index. */
static double reach_of_data(const struct program *p, int index, const struct buffer_axis *d) {
  struct affine sum;
  double reach = 0, extent = (double)d->extent;
  if (!affine_of(p, index, &sum)) return extent;
  for (int i = 0; i < sum.count; i++) {
    struct px_range r = px_range(p, sum.term[i].expr);
    if (r.overflow) return extent;
    if (r.data) reach += fabs((double)sum.term[i].coef) * ((double)r.high - (double)r.low);
  }
  return fmin(extent, ceil(reach / (double)d->weight));
}

/* Marks steps whose address depends on data: they may reach all that the range of the data allows. */
static void mark_gathers(const struct cost_walk *w, const struct nest *n, const struct frame *f,
                         double reach[][SCHEDULE_DEPTH], struct access *a) {
  for (int i = 0; i < f->dims; i++) {
    int index = f->index[f->dim[i].axis];
    uint32_t steps = index < 0 ? 0 : steps_of(n, axes_in(w->tree->program, index, true));
    a->gathered |= steps;
    if (n->lane >= 0 && steps >> n->lane & 1) a->permuted = false;
    for (int step = 0; step < n->stage->steps; step++)
      if (steps >> step & 1) reach[step][i] = reach_of_data(w->tree->program, index, &f->dim[i]);
  }
  a->depends_on |= a->gathered;
}

/* Other steps decide where a loop over data begins: its addresses depend on these steps, too. */
static void follow_bounds(const struct cost_walk *w, const struct nest *n, const struct frame *f,
                          double reach[][SCHEDULE_DEPTH], struct access *a) {
  for (int i = 0; i < n->stage->steps; i++) {
    const struct step *s = &n->stage->path[i];
    if (!s->dyn || s->axis < 0 || !(a->depends_on >> i & 1)) continue;
    uint32_t steps = steps_of(n, axes_in(w->tree->program, n->tensor->axes[s->axis].low, false));
    a->depends_on |= steps;
    for (int step = 0; step < n->stage->steps; step++)
      for (int d = 0; d < f->dims; d++)
        if (steps >> step & 1 && reach[i][d] != 0 && reach[step][d] == 0)
          reach[step][d] = (n->extent[step] - 1) * (fabs(reach[i][d]) + 1);
  }
}

/* ---- lanes that are permuted: code_permute.c ---- */

enum { PLACES = 4 }; /* different numbers that a vector may consist of */

/* Distance of a lane from lane 0, in the vector that begins at element `first`. */
static double lane_offset(const struct cost_walk *w, const struct nest *n, const struct frame *f,
                          int64_t first, int lane) {
  double axis[PROGRAM_AXES] = {0}, from[SCHEDULE_DEPTH], to[SCHEDULE_DEPTH], unused[SCHEDULE_DEPTH];
  const struct step *s = &n->stage->path[n->lane];
  axis[s->axis] = (double)(s->weight * first);
  place_at(w, f, axis, from);
  axis[s->axis] = (double)(s->weight * (first + lane));
  place_at(w, f, axis, to);
  return flat(f, from, to, unused);
}

static bool is_permuted(const struct cost_walk *w, const struct nest *n, const struct frame *f,
                        const struct access *a) {
  const struct step *s = &n->stage->path[n->lane];
  double place[PLACES], least = 0, most = 0;
  int count = 0;
  if (a->node < 0 || s->member || s->axis < 0 ||
      (a->bytes != (int)sizeof(float) && a->bytes != (int)sizeof(double)))
    return false;
  if (n->tensor->axes[s->axis].size < s->weight * n->lanes) return false;
  bool more = n->tensor->axes[s->axis].size >= 2 * s->weight * n->lanes &&
              s->extent * s->weight < n->tensor->axes[s->axis].size;
  for (int lane = 0; lane < n->lanes; lane++) {
    double at = lane_offset(w, n, f, 0, lane);
    int known = 0;
    if (more && lane_offset(w, n, f, n->lanes, lane) != at) return false;
    least = fmin(least, at);
    most = fmax(most, at);
    while (known < count && known < PLACES && place[known] != at) known++;
    if (known == count && known < PLACES) place[known] = at;
    if (known == count) count++;
  }
  return count <= PLACES || most - least < 2 * n->lanes;
}

static void fill_access(const struct cost_walk *w, const struct nest *n, const struct frame *f,
                        struct access *a) {
  double axis[PROGRAM_AXES] = {0}, base[SCHEDULE_DEPTH], place[SCHEDULE_DEPTH];
  double reach[SCHEDULE_DEPTH][SCHEDULE_DEPTH], unused[SCHEDULE_DEPTH];
  place_at(w, f, axis, base);
  for (int i = 0; i < n->stage->steps; i++) {
    const struct step *s = &n->stage->path[i];
    double last = (i == n->lane ? n->lanes : ceil(n->extent[i])) - 1;
    for (int d = 0; d < f->dims; d++) reach[i][d] = 0;
    if (s->axis < 0 || s->extent < 2) continue;
    double size = (double)n->tensor->axes[s->axis].size;
    axis[s->axis] = (double)s->weight;
    place_at(w, f, axis, place);
    a->stride[i] = flat(f, base, place, unused);
    last = fmin(last, floor((size - 1) / (double)s->weight));
    axis[s->axis] = (double)s->weight * last;
    place_at(w, f, axis, place);
    double far = flat(f, base, place, reach[i]);
    if (i == n->lane && far != a->stride[i] * last) a->gathered |= 1u << i;
    if (i == n->lane) {
      axis[s->axis] = fmin((double)(s->weight * (s->extent - 1)), size - 1);
      place_at(w, f, axis, place);
      far = flat(f, base, place, reach[i]);
    }
    if (i != n->lane && far != a->stride[i] * last) a->nonaffine |= 1u << i;
    if (a->stride[i] == 0 && far != 0) a->stride[i] = far / (double)(s->extent - 1);
    if (far != 0 || a->stride[i] != 0) a->depends_on |= 1u << i;
    axis[s->axis] = 0;
  }
  a->permuted = n->lane >= 0 && a->depends_on >> n->lane & 1 && is_permuted(w, n, f, a);
  mark_gathers(w, n, f, reach, a);
  follow_bounds(w, n, f, reach, a);
  fill_touched(w, n, f, reach, a);
}

/* Whether the tensor is stored in memory, not in registers. */
static bool in_memory(const struct cost_walk *w, int tensor) {
  int stage =
      w->tree->program->tensors.data[tensor].is_input ? -1 : loop_tree_stage(w->tree, tensor);
  if (stage < 0) return true;
  enum storage_kind kind = w->tree->stages[stage].value.kind;
  return kind != STORAGE_NAMED && kind != STORAGE_NONE;
}

static void add_access(struct cost_walk *w, struct nest *n, int tensor, int node) {
  const struct program *p = w->tree->program;
  struct access a = {
      .tensor = tensor, .node = node, .bytes = program_dtype_bytes(p->tensors.data[tensor].dtype)};
  struct frame f;
  if (n->count >= COST_ACCESSES || !in_memory(w, tensor)) return;
  frame_of(w, tensor, &f);
  for (int i = 0; i < p->tensors.data[tensor].rank; i++)
    f.index[i] = node < 0 ? -1 : p->indices.data[p->nodes.data[node].first + i];
  fill_access(w, n, &f, &a);
  a.accumulates = node < 0 && n->stage->start >= 0 && n->stage->accumulates_in_value;
  VEC_PUSH(&w->accesses, a);
  n->count++;
}

static bool seen(const struct cost_walk *w, const struct nest *n, int node) {
  for (int i = 0; i < n->count; i++)
    if (px_same(w->tree->program, w->accesses.data[n->first + i].node, node)) return true;
  return false;
}

static void add_loads(struct cost_walk *w, struct nest *n, int expr) {
  const struct program *p = w->tree->program;
  const struct px_node *node = &p->nodes.data[expr];
  for (int i = 0; i < PX_ARGS; i++)
    if (node->arg[i] >= 0) add_loads(w, n, node->arg[i]);
  if (node->op != PX_LOAD) return;
  for (int i = 0; i < p->tensors.data[node->tensor].rank; i++)
    add_loads(w, n, p->indices.data[node->first + i]);
  if (!seen(w, n, expr)) add_access(w, n, node->tensor, expr);
}

/* ---- loops ----------------------------------------------------------------------------------- */

/* Average steps of a reduction over data, ptr[r]..ptr[r+1] with a non-decreasing ptr. */
static double steps_over_data(const struct program *p, const struct program_axis *a) {
  const struct px_node *low = &p->nodes.data[a->low], *high = &p->nodes.data[a->high];
  const struct program_tensor *ptr = &p->tensors.data[low->op == PX_LOAD ? low->tensor : 0];
  double most = (double)a->size;
  if (low->op != PX_LOAD || high->op != PX_LOAD || low->tensor != high->tensor) return most / 2;
  if (!ptr->rising || ptr->rank < 1 || ptr->axes[ptr->rank - 1].size < 2) return most / 2;
  double each = (double)(ptr->most - ptr->least) / (double)(ptr->axes[ptr->rank - 1].size - 1);
  return fmin(most, fmax(each, COST_TRIPS_LEAST));
}

static void fill_step(const struct cost_walk *w, struct nest *n, int i) {
  const struct step *s = &n->stage->path[i];
  const struct bound_loop *loop = &w->tree->loops[s->node];
  bool vec = s->node == n->stage->vec;
  n->extent[i] = (double)s->extent;
  if (s->dyn && s->axis >= 0)
    n->extent[i] = steps_over_data(w->tree->program, &n->tensor->axes[s->axis]);
  n->trips[i] = n->copies[i] = 1;
  if (s->axis >= 0) n->axis_steps[s->axis] |= 1u << i;
  if (s->axis >= n->tensor->rank) n->sums |= 1u << i;
  double steps = n->extent[i];
  if (vec) {
    n->lanes = loop->lanes;
    n->lane = i; /* the last member of a group */
    steps = s->member ? 1 : ceil((double)loop->extent / loop->lanes);
  }
  *(loop->unrolled ? &n->copies[i] : &n->trips[i]) = steps;
}

static bool in_tile(const struct nest *n, int i) {
  return n->copies[i] > 1 || i == n->lane;
}

/* Size of the tile along an axis: product of unrolled steps and lanes. */
static double tile_of(const struct nest *n, int axis) {
  double tile = 1;
  for (int i = 0; i < n->stage->steps; i++)
    if (n->stage->path[i].axis == axis && in_tile(n, i)) tile *= n->extent[i];
  return tile;
}

/* Cuts a tile that is longer than its axis down to the remainder. */
static void cut_tile(struct nest *n, int axis, double size) {
  for (int i = 0; i < n->stage->steps; i++) {
    double tile = tile_of(n, axis);
    if (n->stage->path[i].axis != axis || i == n->lane || n->copies[i] <= 1 || tile <= size)
      continue;
    n->extent[i] = n->copies[i] = fmax(1, ceil(size * n->extent[i] / tile));
  }
}

/* The share of iterations that exist along an axis. A smaller last tile costs more than that. */
static double part_of(struct nest *n, int axis) {
  double size = (double)n->tensor->axes[axis].size, all = 1;
  bool peeled = n->stage->tail_kind[axis] == TAIL_PEEL;
  if (peeled) cut_tile(n, axis, size);
  double tile = tile_of(n, axis);
  for (int i = 0; i < n->stage->steps; i++)
    if (n->stage->path[i].axis == axis) all *= n->extent[i];
  double full = floor(size / tile), left = size - full * tile;
  if (left > 0) full += peeled ? (1 + left / tile) / 2 : 1;
  return fmin(1, full * tile / all);
}

/* Counts copies outside the innermost loop as iterations: their code runs in sequence. */
static void unrolled_as_loops(struct nest *n) {
  int innermost = n->stage->steps - 1;
  while (innermost >= 0 && n->trips[innermost] <= 1) innermost--;
  for (int i = 0; i < innermost; i++) {
    n->trips[i] *= n->copies[i];
    n->copies[i] = 1;
  }
}

static void fill_loops(const struct cost_walk *w, struct nest *n) {
  n->lanes = 1;
  n->lane = -1;
  n->part =
      n->tensor->reductions ? computed_share(w->tree->program, n->tensor, n->tensor->body) : 1;
  for (int i = 0; i < n->stage->steps; i++) fill_step(w, n, i);
  for (int i = 0; i < n->tensor->rank + n->tensor->reductions; i++)
    if (n->stage->tail[i]) n->part *= part_of(n, i);
  unrolled_as_loops(n);
  n->begun[0] = 1;
  for (int i = 0; i < n->stage->steps; i++) {
    n->begun[i + 1] = n->begun[i] * n->trips[i];
    if (n->trips[i] > 1) n->loops |= 1u << i;
  }
}

void nest_open(struct cost_walk *w, int stage) {
  struct nest *n = &w->nests[stage];
  n->stage = &w->tree->stages[stage];
  n->tensor = &w->tree->program->tensors.data[n->stage->tensor];
  n->first = w->accesses.count;
  if (n->stage->dead || n->prepared) return;
  fill_loops(w, n);
  add_loads(w, n, n->tensor->body);
  for (int i = n->tensor->rank; i < n->tensor->rank + n->tensor->reductions; i++) {
    if (n->tensor->axes[i].low < 0) continue;
    add_loads(w, n, n->tensor->axes[i].low);
    add_loads(w, n, n->tensor->axes[i].high);
  }
  add_access(w, n, n->stage->tensor, -1);
}
