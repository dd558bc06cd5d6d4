/* Widens a program to fp64. See widened.h. */
#include "run/widened.h"

#include <stdlib.h>
#include <string.h>

#include "base/saturating.h"
#include "program/affine.h"

enum { VECTORS = 2, ROWS = 8 /* a tile's shape limits the accumulators of a reduction */ };

struct widener {
  const struct program *from;
  struct widened *out;
  bool *needed; /* by tensor: an output depends on it */
  int *lane;    /* by tensor: its vector axis, moved last; -1: not chosen yet */
  int lanes;    /* fp64 elements per vector */
};

/* ---- choosing vector axes -------------------------------------------------------------------- */

static void need(struct widener *w, int expr) {
  if (expr < 0) return;
  const struct px_node *n = &w->from->nodes.data[expr];
  int rank = n->op == PX_LOAD ? w->from->tensors.data[n->tensor].rank : 0;
  if (n->op == PX_LOAD) w->needed[n->tensor] = true;
  for (int i = 0; i < rank; i++) need(w, w->from->indices.data[n->first + i]);
  for (int i = 0; i < 3; i++) need(w, n->arg[i]);
}

static void find_needed(struct widener *w) {
  for (int i = 0; i < w->from->outputs.count; i++) w->needed[w->from->outputs.data[i]] = true;
  for (int i = w->from->tensors.count - 1; i >= 0; i--) {
    const struct program_tensor *t = &w->from->tensors.data[i];
    if (!w->needed[i] || t->is_input) continue;
    need(w, t->body);
    for (int k = t->rank; k < t->rank + t->reductions; k++) {
      need(w, t->axes[k].low);
      need(w, t->axes[k].high);
    }
  }
}

/* Length of a vector loop along an axis of this size; 0: none. */
static int64_t steps_of(const struct widener *w, int64_t size) {
  for (int64_t steps = VECTORS * w->lanes; steps > 1; steps /= 2)
    if (size % steps == 0) return steps;
  return 0;
}

static bool bounds_reduction(const struct program *p, const struct program_tensor *t, int axis) {
  for (int i = t->rank; i < t->rank + t->reductions; i++)
    if (px_mentions(p, t->axes[i].low, axis) || px_mentions(p, t->axes[i].high, axis)) return true;
  return false;
}

/* The index of the load with stride 1 along the axis; -1: the load is invariant; -2: otherwise. */
static int moving_index(const struct program *p, const struct px_node *load, int axis) {
  int found = -1;
  for (int i = 0; i < p->tensors.data[load->tensor].rank; i++) {
    int index = p->indices.data[load->first + i];
    struct affine a = {.count = 0};
    int64_t stride;
    if (!px_mentions(p, index, axis)) continue;
    if (found >= 0 || !affine_of(p, index, &a) || !affine_stride(p, &a, axis, &stride)) return -2;
    if (stride != 1) return -2;
    found = i;
  }
  return found;
}

/* Whether the axis is contiguous, or invariant, in everything that the expression loads, given
 * earlier choices. A condition on the axis would need separate lanes. `choose`: records the
 * choice. */
static bool side_by_side(struct widener *w, int expr, int axis, bool choose) {
  if (expr < 0) return true;
  const struct px_node *n = &w->from->nodes.data[expr];
  if (n->op == PX_SELECT && px_mentions(w->from, n->arg[0], axis)) return false;
  for (int i = 0; i < 3; i++)
    if (!side_by_side(w, n->arg[i], axis, choose)) return false;
  if (n->op != PX_LOAD) return true;
  int moves = moving_index(w->from, n, axis);
  if (moves == -1) return true;
  if (moves < 0 || (w->lane[n->tensor] >= 0 && w->lane[n->tensor] != moves)) return false;
  if (choose) w->lane[n->tensor] = moves;
  return true;
}

/* Chooses the own axis with the longest vectors, the last of equal ones. */
static void choose_lane(struct widener *w, int stage) {
  const struct program_tensor *t = &w->from->tensors.data[stage];
  int best = -1;
  for (int i = t->rank - 1; i >= 0; i--) {
    if (w->lane[stage] >= 0 && w->lane[stage] != i) continue;
    if (!steps_of(w, t->axes[i].size) || bounds_reduction(w->from, t, i)) continue;
    if (!side_by_side(w, t->body, i, false)) continue;
    if (best < 0 || steps_of(w, t->axes[i].size) > steps_of(w, t->axes[best].size)) best = i;
  }
  if (best < 0) return;
  w->lane[stage] = best;
  side_by_side(w, t->body, best, true);
}

static int64_t work_of(const struct program *p, int stage) {
  const struct program_tensor *t = &p->tensors.data[stage];
  int64_t work = 1;
  for (int i = 0; i < t->rank + t->reductions; i++) work = saturating_mul(work, t->axes[i].size);
  return work;
}

/* Chooses vector axes; stages with the most work come first. */
static void choose_lanes(struct widener *w) {
  const struct program *p = w->from;
  bool *done = mem_alloc((size_t)p->tensors.count + 1);
  for (;;) {
    int most = -1;
    for (int i = 0; i < p->tensors.count; i++)
      if (w->needed[i] && !done[i] && !p->tensors.data[i].is_input &&
          (most < 0 || work_of(p, i) > work_of(p, most)))
        most = i;
    if (most < 0) break;
    done[most] = true;
    choose_lane(w, most);
  }
  mem_free(done);
}

static void set_order(struct widener *w, int tensor) {
  const struct program_tensor *t = &w->from->tensors.data[tensor];
  int *order = w->out->order[tensor], count = 0, last = w->lane[tensor];
  for (int i = 0; i < t->rank; i++)
    if (i != last) order[count++] = i;
  if (last >= 0) order[count] = last;
}

/* ---- the program ----------------------------------------------------------------------------- */

static int permuted_load(struct program *to, int tensor, int rank, const int *indices, void *data) {
  const struct widener *w = data;
  int permuted[PROGRAM_AXES];
  for (int i = 0; i < rank; i++) permuted[i] = indices[w->out->order[tensor][i]];
  return px_load(to, tensor, rank, permuted);
}

static void permuted_axes(const struct widener *w, int tensor, const char **names, int64_t *sizes) {
  const struct program_tensor *t = &w->from->tensors.data[tensor];
  for (int i = 0; i < t->rank; i++) {
    names[i] = t->axes[w->out->order[tensor][i]].name;
    sizes[i] = t->axes[w->out->order[tensor][i]].size;
  }
}

static void copy_input(struct widener *w, int tensor) {
  const struct program_tensor *t = &w->from->tensors.data[tensor];
  struct program *to = w->out->program;
  const char *names[PROGRAM_AXES];
  int64_t sizes[PROGRAM_AXES];
  bool index = t->dtype == PROGRAM_I32;
  permuted_axes(w, tensor, names, sizes);
  int input = program_input(to, t->name, index ? PROGRAM_I32 : PROGRAM_F64, t->rank, names, sizes);
  if (index) program_input_range(to, input, t->least, t->most, t->rising);
}

static void copy_stage(struct widener *w, int tensor) {
  const struct program_tensor *t = &w->from->tensors.data[tensor];
  struct program *to = w->out->program;
  const char *names[PROGRAM_AXES];
  int64_t sizes[PROGRAM_AXES];
  int axis[PROGRAM_AXES];
  const struct px_map map = {.axis = axis, .load = permuted_load, .data = w};
  permuted_axes(w, tensor, names, sizes);
  int stage = program_stage(to, t->name, PROGRAM_F64, t->rank, names, sizes);
  for (int i = 0; i < t->rank; i++) axis[w->out->order[tensor][i]] = program_axis(to, stage, i);
  for (int i = t->rank; i < t->rank + t->reductions; i++) {
    const struct program_axis *a = &t->axes[i];
    axis[i] = a->low < 0 ? program_reduce(to, stage, t->reducer, a->name, a->size)
                         : program_reduce_range(to, stage, t->reducer, a->name,
                                                px_copy(to, w->from, a->low, &map),
                                                px_copy(to, w->from, a->high, &map));
  }
  program_define(to, stage, px_copy(to, w->from, t->body, &map));
}

static canvas_status copy_program(canvas_context *ctx, struct widener *w) {
  const struct program *p = w->from;
  w->out->program = program_new(p->name);
  for (int i = 0; i < p->tensors.count; i++) {
    const struct program_tensor *t = &p->tensors.data[i];
    if (!t->is_input && t->dtype == PROGRAM_BF16)
      return fail(ctx, CANVAS_BAD_INPUT, "stage '%.60s' is of bf16", t->name);
    if (t->is_input)
      copy_input(w, i);
    else
      copy_stage(w, i);
    if (w->needed[i])
      w->out->bytes = saturating_add(w->out->bytes, saturating_mul(8, program_elements(p, i)));
  }
  for (int i = 0; i < p->outputs.count; i++) program_output(w->out->program, p->outputs.data[i]);
  return program_verify(ctx, w->out->program);
}

/* ---- the schedule ---------------------------------------------------------------------------- */

/* The axis of the stage that bounds a reduction over data. */
static int bounding_axis(const struct program *p, const struct program_tensor *t, int axis) {
  const struct program_axis *a = &t->axes[axis];
  int first = 0;
  while (first < axis && !px_mentions(p, a->low, first) && !px_mentions(p, a->high, first)) first++;
  return first;
}

/* Splits of a stage's last two own axes: an axis and the length of its inner loop. */
struct split {
  int axis;
  int64_t inner, size; /* inner: length of the inner loop, 0 for none */
};
struct tile {
  struct split vec, rows;
};

/* The largest number of rows that divides the axis; 0: none. */
static int64_t rows_of(int64_t size) {
  int64_t rows = ROWS;
  while (size % rows) rows--;
  return rows > 1 ? rows : 0;
}

static struct tile tile_of(const struct widener *w, const struct program_tensor *t, bool vector) {
  struct tile out = {{-1, 0, 0}, {-1, 0, 0}};
  int last = t->rank - 1, before = t->rank - 2;
  if (!vector) return out;
  out.vec = (struct split){last, steps_of(w, t->axes[last].size), t->axes[last].size};
  if (!t->reductions || before < 0 || bounds_reduction(w->out->program, t, before)) return out;
  out.rows = (struct split){before, rows_of(t->axes[before].size), t->axes[before].size};
  return out;
}

static void write_loop(const struct program *p, int stage, int axis, struct buf *to) {
  const struct program_tensor *t = &p->tensors.data[stage];
  buf_printf(to, "L%d_%d", stage, axis);
  if (t->axes[axis].low >= 0) buf_printf(to, ":dyn(%s)", t->axes[bounding_axis(p, t, axis)].name);
  buf_puts(to, ", ");
}

static bool all_inside(const struct split *s, int axis) {
  return s->axis == axis && s->inner == s->size;
}

/* Writes loops named by numbers of stage and axis. In a reduction, blocks of the vector axis are
 * outermost, so that their part of the weights stays in the cache. */
static void write_loops(const struct program *p, int stage, const struct tile *tile,
                        struct buf *to) {
  const struct program_tensor *t = &p->tensors.data[stage];
  int first = t->reductions ? tile->vec.axis : -1;
  size_t before = to->length;
  if (first >= 0 && !all_inside(&tile->vec, first)) write_loop(p, stage, first, to);
  for (int i = 0; i < t->rank + t->reductions; i++)
    if (i != first && !all_inside(&tile->vec, i) && !all_inside(&tile->rows, i))
      write_loop(p, stage, i, to);
  if (tile->rows.inner) buf_printf(to, "L%d_r:%lld:unroll, ", stage, (long long)tile->rows.inner);
  if (tile->vec.inner) buf_printf(to, "L%d_v:%lld:vec, ", stage, (long long)tile->vec.inner);
  if (to->length == before) return;
  to->length -= 2; /* removes the last comma */
  buf_puts(to, " =>\n    ");
}

static void write_axis(int stage, int axis, const struct split *split, char inner, struct buf *to) {
  if (all_inside(split, axis))
    buf_printf(to, "L%d_%c", stage, inner);
  else if (split->axis == axis && split->inner)
    buf_printf(to, "{L%d_%d, L%d_%c}", stage, axis, stage, inner);
  else
    buf_printf(to, "L%d_%d", stage, axis);
}

static void write_leaf(const struct program *p, int stage, const struct tile *tile,
                       struct buf *to) {
  const struct program_tensor *t = &p->tensors.data[stage];
  buf_printf(to, "@%s = ", t->name);
  for (int i = 0; i < t->rank + t->reductions; i++) {
    bool vector = i == tile->vec.axis;
    buf_puts(to, i == t->rank ? " // " : i ? ", " : "");
    write_axis(stage, i, vector ? &tile->vec : &tile->rows, vector ? 'v' : 'r', to);
    buf_printf(to, "/%s", t->axes[i].name);
  }
  buf_puts(to, "\n");
}

static canvas_status make_schedule(canvas_context *ctx, struct widener *w) {
  const struct program *p = w->out->program;
  struct buf text = {0};
  for (int i = 0; i < p->tensors.count; i++) {
    const struct program_tensor *t = &p->tensors.data[i];
    if (!w->needed[i] || t->is_input) continue;
    struct tile tile = tile_of(w, t, w->lane[i] >= 0);
    write_loops(p, i, &tile, &text);
    write_leaf(p, i, &tile, &text);
  }
  canvas_status status = schedule_parse(ctx, text.text, text.length, &w->out->schedule);
  buf_free(&text);
  return status;
}

/* ---- the widened program --------------------------------------------------------------------- */

static canvas_status widen(canvas_context *ctx, struct widener *w) {
  find_needed(w);
  for (int i = 0; i < w->from->tensors.count; i++) {
    const struct program_tensor *t = &w->from->tensors.data[i];
    w->lane[i] = t->is_input && t->dtype == PROGRAM_I32 ? t->rank - 1 : -1;
  }
  choose_lanes(w);
  for (int i = 0; i < w->from->tensors.count; i++) set_order(w, i);
  TRY(copy_program(ctx, w));
  return make_schedule(ctx, w);
}

canvas_status widened_new(canvas_context *ctx, const struct program *p,
                          const struct machine *machine, struct widened *out) {
  struct widener w = {.from = p, .out = out, .lanes = machine->vector_bytes / 8};
  size_t tensors = (size_t)p->tensors.count + 1;
  *out = (struct widened){.order = mem_alloc(tensors * sizeof *out->order)};
  w.needed = mem_alloc(tensors);
  w.lane = mem_alloc(tensors * sizeof *w.lane);
  canvas_status status = widen(ctx, &w);
  mem_free(w.needed);
  mem_free(w.lane);
  if (status != CANVAS_OK) widened_free(out);
  return status;
}

void widened_free(struct widened *w) {
  program_free(w->program);
  schedule_free(w->schedule);
  mem_free(w->order);
  *w = (struct widened){0};
}

/* ---- tensors in the new order ---------------------------------------------------------------- */

struct walk {
  int rank;
  int64_t size[PROGRAM_AXES], stride[PROGRAM_AXES]; /* by new axis: size, stride in the old order */
};

static struct walk walk_of(const struct widened *w, const struct program *p, int tensor) {
  const struct program_tensor *t = &p->tensors.data[tensor];
  struct walk out = {.rank = t->rank};
  int64_t stride[PROGRAM_AXES], all = 1;
  for (int i = t->rank - 1; i >= 0; i--) {
    stride[i] = all;
    all *= t->axes[i].size;
  }
  for (int i = 0; i < t->rank; i++) {
    out.size[i] = t->axes[w->order[tensor][i]].size;
    out.stride[i] = stride[w->order[tensor][i]];
  }
  return out;
}

/* Advances at[] in the new order and *old to the old offset; false at the end. */
static bool next_place(const struct walk *k, int64_t *at, int64_t *old) {
  for (int i = k->rank - 1; i >= 0; i--) {
    *old += k->stride[i];
    if (++at[i] < k->size[i]) return true;
    *old -= at[i] * k->stride[i];
    at[i] = 0;
  }
  return false;
}

void widened_put(const struct widened *w, const struct program *p, int tensor, const double *old,
                 double *permuted) {
  struct walk k = walk_of(w, p, tensor);
  int64_t at[PROGRAM_AXES] = {0}, from = 0;
  do *permuted++ = old[from];
  while (next_place(&k, at, &from));
}

void widened_get(const struct widened *w, const struct program *p, int tensor,
                 const double *permuted, double *old) {
  struct walk k = walk_of(w, p, tensor);
  int64_t at[PROGRAM_AXES] = {0}, to = 0;
  do old[to] = *permuted++;
  while (next_place(&k, at, &to));
}
