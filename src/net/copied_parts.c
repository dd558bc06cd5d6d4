/* Finds the contiguous parts that a program copies. See copied_parts.h.
 *
 * The output is a box: [low, high) of each axis. An index condition is constant in the box or
 * splits it in two along an axis. Where only a load is left, its row-major offset in the input is
 * an affine function of the axes. It is a contiguous copy if each coefficient is the output's
 * stride.
 *
 *     if c < 16 then A[n, c, h] else B[n, c-16, h]      c < 16: A from 0;  16 <= c: B from 0
 */
#include "net/copied_parts.h"

#include "program/affine.h"

struct box {
  int64_t low[PROGRAM_AXES], high[PROGRAM_AXES];
};

struct copy {
  const struct program *p;
  int stage;
  struct copied_part *out;
  int count;
};

static const struct program_tensor *stage_of(const struct copy *c) {
  return &c->p->tensors.data[c->stage];
}

static int64_t extent(const struct box *b, int axis) {
  return b->high[axis] - b->low[axis];
}

/* ---- expressions within a box ---------------------------------------------------------------- */

/* A program whose only stage has the box as its axes, for expressions of the analysed stage. */
struct within {
  struct program *p;
  int axis[PROGRAM_AXES];
};

static struct within open_within(const struct copy *c, const struct box *b) {
  struct within w = {.p = program_new("box")};
  const struct program_tensor *t = stage_of(c);
  const char *names[PROGRAM_AXES];
  int64_t sizes[PROGRAM_AXES];
  for (int i = 0; i < t->rank; i++) {
    names[i] = t->axes[i].name;
    sizes[i] = extent(b, i);
  }
  int stage = program_stage(w.p, "box", PROGRAM_F32, t->rank, names, sizes);
  for (int i = 0; i < t->rank; i++) {
    w.axis[i] = sizes[i] == 1 ? px_int(w.p, 0) : program_axis(w.p, stage, i);
    w.axis[i] = px_add(w.p, w.axis[i], px_int(w.p, b->low[i]));
  }
  return w;
}

static int copy_within(const struct copy *c, struct within *w, int expr) {
  return px_copy(w->p, c->p, expr, &(struct px_map){.axis = w->axis});
}

/* Whether the expression has no loads, so that it can be evaluated over a box. */
static bool of_axes_alone(const struct program *p, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op == PX_LOAD) return false;
  for (int i = 0; i < 3; i++)
    if (n->arg[i] >= 0 && !of_axes_alone(p, n->arg[i])) return false;
  return true;
}

/* ---- conditions ------------------------------------------------------------------------------ */

static int64_t floor_div(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* Where the truth of sum < 0 can change along the axis with the largest coefficient: a position
 * inside the box, counted from its low end; 0: nowhere. */
static int64_t cut_of_sum(const struct within *w, const struct box *b, struct affine *sum,
                          int *axis) {
  int most = -1;
  for (int i = 0; i < sum->count; i++) {
    if (w->p->nodes.data[sum->term[i].expr].op != PX_AXIS) return 0;
    int64_t coef = sum->term[i].coef, size = coef < 0 ? -coef : coef;
    int64_t best = most < 0 ? 0 : sum->term[most].coef;
    if (size > (best < 0 ? -best : best)) most = i;
  }
  if (most < 0) return 0;
  int64_t coef = sum->term[most].coef;
  *axis = (int)w->p->nodes.data[sum->term[most].expr].integer;
  affine_drop(sum, most);
  struct px_range rest = affine_range(w->p, sum, 0);
  if (rest.overflow) return 0;
  for (int side = 0; side < 2; side++) {
    int64_t r = side ? rest.low : rest.high; /* the sign of coef*x + r changes at the cut */
    int64_t cut = coef > 0 ? -floor_div(r, coef) : floor_div(r, -coef) + 1;
    if (cut > 0 && cut < extent(b, *axis)) return cut;
  }
  return 0;
}

/* The cut of the first comparison in the expression that splits the box; 0: none. */
static int64_t find_cut(const struct within *w, const struct box *b, int expr, int *axis) {
  const struct px_node *n = &w->p->nodes.data[expr];
  if (n->op == PX_AND || n->op == PX_OR || n->op == PX_NOT) {
    for (int i = 0; i < 2; i++) {
      int64_t cut = n->arg[i] < 0 ? 0 : find_cut(w, b, n->arg[i], axis);
      if (cut) return cut;
    }
    return 0;
  }
  bool swapped = n->op == PX_GT || n->op == PX_LE, with = n->op == PX_LE || n->op == PX_GE;
  if (n->op != PX_LT && n->op != PX_GT && !with) return 0;
  if (w->p->nodes.data[n->arg[0]].sort != PX_INDEX) return 0;
  struct affine sum = {
      0}; /* a < b: a-b < 0;  a >= b: not a-b < 0;  a > b: b-a < 0;  a <= b: not b-a < 0 */
  if (!affine_add(w->p, &sum, n->arg[0], swapped ? -1 : 1)) return 0;
  if (!affine_add(w->p, &sum, n->arg[1], swapped ? 1 : -1)) return 0;
  return cut_of_sum(w, b, &sum, axis);
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Row-major strides, in elements. */
static void strides_of(const struct program_tensor *t, int64_t *stride) {
  int64_t step = 1;
  for (int i = t->rank - 1; i >= 0; i--) {
    stride[i] = step;
    step *= t->axes[i].size;
  }
}

/* Whether the box is contiguous in the output. */
static bool is_contiguous(const struct program_tensor *t, const struct box *b) {
  int first = 0;
  while (first < t->rank && extent(b, first) == 1) first++;
  for (int i = first + 1; i < t->rank; i++)
    if (extent(b, i) != t->axes[i].size) return false;
  return true;
}

/* Whether the offset has the output's stride along each axis of the box. */
static bool counts_as(const struct within *w, const struct affine *place,
                      const struct program_tensor *t, const struct box *b, const int64_t *stride) {
  int moves = 0;
  for (int i = 0; i < t->rank; i++) moves += extent(b, i) > 1;
  for (int i = 0; i < place->count; i++) {
    const struct px_node *n = &w->p->nodes.data[place->term[i].expr];
    if (n->op != PX_AXIS || place->term[i].coef != stride[n->integer]) return false;
  }
  return place->count == moves;
}

static bool add_load(struct copy *c, const struct box *b, const struct px_node *load) {
  const struct program_tensor *t = stage_of(c), *from = &c->p->tensors.data[load->tensor];
  struct copied_part part = {.input = load->tensor, .count = 1};
  int64_t own[PROGRAM_AXES], step[PROGRAM_AXES];
  struct affine place = {0};
  if (!from->is_input || from->dtype != t->dtype) return false;
  struct within w = open_within(c, b);
  strides_of(t, own);
  strides_of(from, step);
  int sum = px_int(w.p, 0);
  bool fine = true;
  for (int i = 0; i < from->rank && fine; i++) {
    int index = c->p->indices.data[load->first + i];
    fine = of_axes_alone(c->p, index);
    if (fine) sum = px_add(w.p, sum, px_mul(w.p, copy_within(c, &w, index), px_int(w.p, step[i])));
  }
  fine = fine && !w.p->failed && affine_of(w.p, sum, &place) && counts_as(&w, &place, t, b, own);
  for (int i = 0; i < t->rank; i++) {
    part.to += b->low[i] * own[i];
    part.count *= extent(b, i);
  }
  part.from = place.constant;
  program_free(w.p);
  if (fine) c->out[c->count++] = part;
  return fine;
}

static bool add_parts(struct copy *c, const struct box *b, int expr);

/* Follows the branch that the condition selects in the box, or splits the box. */
static bool add_select(struct copy *c, const struct box *b, int expr) {
  const struct px_node *n = &c->p->nodes.data[expr];
  int axis = 0;
  if (!of_axes_alone(c->p, n->arg[0])) return false;
  struct within w = open_within(c, b);
  int condition = copy_within(c, &w, n->arg[0]);
  bool known = !w.p->failed && condition >= 0 && w.p->nodes.data[condition].op == PX_BOOL;
  bool holds = known && w.p->nodes.data[condition].integer;
  int64_t cut = known || w.p->failed ? 0 : find_cut(&w, b, condition, &axis);
  program_free(w.p);
  if (known) return add_parts(c, b, n->arg[holds ? 1 : 2]);
  if (!cut) return false;
  struct box below = *b, above = *b;
  below.high[axis] = above.low[axis] = b->low[axis] + cut;
  return add_parts(c, &below, expr) && add_parts(c, &above, expr);
}

static bool add_parts(struct copy *c, const struct box *b, int expr) {
  const struct px_node *n = &c->p->nodes.data[expr];
  if (c->count == COPIED_PARTS || !is_contiguous(stage_of(c), b)) return false;
  if (n->op == PX_LOAD) return add_load(c, b, n);
  return n->op == PX_SELECT && add_select(c, b, expr);
}

/* Merges parts that are adjacent in both input and output; returns how many are left. */
static int join_parts(struct copied_part *parts, int count) {
  int kept = 0;
  for (int i = 0; i < count; i++) {
    struct copied_part *last = kept ? &parts[kept - 1] : NULL;
    bool goes_on = last && last->input == parts[i].input && last->to + last->count == parts[i].to &&
                   last->from + last->count == parts[i].from;
    if (goes_on)
      last->count += parts[i].count;
    else
      parts[kept++] = parts[i];
  }
  return kept;
}

int copied_parts(const struct program *p, int output, struct copied_part *out) {
  struct copy c = {.p = p, .stage = output, .out = out};
  const struct program_tensor *t = &p->tensors.data[output];
  struct box all = {0};
  if (t->reductions) return 0;
  for (int i = 0; i < t->rank; i++) all.high[i] = t->axes[i].size;
  return add_parts(&c, &all, t->body) ? join_parts(out, c.count) : 0;
}

bool only_copies(const struct program *p) {
  struct copied_part parts[COPIED_PARTS];
  for (int i = 0; i < p->outputs.count; i++)
    if (!copied_parts(p, p->outputs.data[i], parts)) return false;
  return true;
}
