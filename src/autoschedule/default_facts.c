/* Analysis of a stage for the chooser: the stride of each load along each axis, and the axes that its index
 * conditions depend on. See struct default_facts.
 *
 *     pad[n, oc/16*16+ic, h+kh, w+kw]   stride along oc: 0 within blocks of 16; along w: 1; along kh: a row
 */
#include <stddef.h>
#include <string.h>

#include "autoschedule/default.h"
#include "cost/policy.h"
#include "program/affine.h"
#include "program/program_cost.h"

void default_row_major(const struct program_tensor *t, struct default_layout *out) {
  for (int i = 0; i < t->rank; i++) {
    out->order[i] = i;
    out->extent[i] = t->axes[i].size;
  }
}

void default_strides(const struct program_tensor *t, const struct default_layout *layout,
                     int64_t *stride) {
  int64_t all = 1;
  for (int i = t->rank - 1; i >= 0; i--) {
    stride[layout->order[i]] = all;
    all *= layout->extent[layout->order[i]];
  }
}

/* ---- one index ---- */

static void add_block(struct default_load *l, int axis, int64_t size) {
  if (!l->block[axis] || size < l->block[axis]) l->block[axis] = size;
}

/* An index that is one axis, or one digit of it: axis/16, axis%16. */
struct digit {
  int axis;
  int64_t stride, block; /* as in struct default_load */
};

/* axis/16 has stride 0 in blocks of 16, axis%16 has stride 1 within them. */
static bool digit_of(const struct program *p, int expr, struct digit *d) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op == PX_AXIS) {
    *d = (struct digit){(int)n->integer, 1, 0};
    return true;
  }
  if ((n->op != PX_DIV && n->op != PX_MOD) || p->nodes.data[n->arg[1]].op != PX_INT) return false;
  int64_t size = p->nodes.data[n->arg[1]].integer;
  if (!digit_of(p, n->arg[0], d)) return false;
  if (d->stride && d->block % size) return false;
  if (d->stride) d->block = size;
  if (n->op == PX_DIV) d->stride = 0;
  return true;
}

static void add_term(const struct default_facts *f, const struct affine_term *term, int64_t stride,
                     struct default_load *l) {
  const struct program *p = f->p;
  struct digit d;
  if (default_phase_index(f, term->expr, term->coef * stride, l)) return;
  if (!digit_of(p, term->expr, &d)) {
    l->non_affine |= px_axes(p, term->expr);
    return;
  }
  bool alone = !l->block[d.axis] && !l->stride[d.axis];
  l->jump[d.axis] = alone && d.block && !d.stride ? term->coef * stride : 0;
  if (d.block) add_block(l, d.axis, d.block);
  l->stride[d.axis] += term->coef * stride * d.stride;
}

static bool is_whole_axis(const struct program *p, int expr, struct digit *d) {
  return digit_of(p, expr, d) && d->stride == 1 && !d->block;
}

/* The index joins two axes, o*16 + i, where axis i has size 16: a blocked channel. */
static bool joins_two_axes(const struct default_facts *f, const struct affine *sum,
                           struct digit *inner, struct digit *outer) {
  if (sum->count != 2 || sum->constant) return false;
  int one = sum->term[0].coef == 1 ? 0 : 1;
  return sum->term[one].coef == 1 && is_whole_axis(f->p, sum->term[one].expr, inner) &&
         is_whole_axis(f->p, sum->term[1 - one].expr, outer) &&
         sum->term[1 - one].coef == f->t->axes[inner->axis].size;
}

/* Whether index `at` of the load allows packing: it is one axis, a digit, or, for constant tensors, two joined
 * axes. `before` are the axes of the indices before it. */
static bool is_packable_index(const struct default_facts *f, const struct affine *sum,
                              uint32_t before, int at, struct default_load *l) {
  struct digit d = {-1, 0, 0}, outer;
  if (sum->count == 1) {
    int64_t coef = sum->term[0].coef;
    if (!digit_of(f->p, sum->term[0].expr, &d)) return false;
    if (coef != 1 && (coef != -1 || d.block)) return false;
    if (d.block ? sum->constant != 0 : before >> d.axis & 1) return false;
  } else if (sum->count > 1) {
    if (!f->p->tensors.data[l->tensor].constant || !joins_two_axes(f, sum, &d, &outer))
      return false;
    if ((before >> d.axis | before >> outer.axis) & 1) return false;
    l->inner |= 1u << d.axis;
    l->outer |= 1u << outer.axis;
  }
  l->axis_of[at] = d.axis;
  l->steps_each[at] = d.stride != 0;
  for (int i = 0; i < at && d.stride; i++)
    if (l->axis_of[i] == d.axis && l->steps_each[i]) return false;
  return true;
}

/* The index depends on the value of a load. */
static bool is_indirect(const struct program *p, int index) {
  const struct px_node *n = &p->nodes.data[index];
  if (n->op == PX_LOAD) return true;
  for (int i = 0; i < PX_ARGS; i++)
    if (n->arg[i] >= 0 && is_indirect(p, n->arg[i])) return true;
  return false;
}

static void add_index(const struct default_facts *f, int index, int at, int64_t stride,
                      struct default_load *l) {
  const struct program *p = f->p;
  struct affine sum;
  uint32_t axes = px_axes(p, index), before = l->depends_on;
  l->depends_on |= axes;
  if (!affine_of(p, index, &sum)) {
    l->non_affine |= axes;
    l->packable = false;
    return;
  }
  l->packable = l->packable && is_packable_index(f, &sum, before, at, l);
  for (int i = 0; i < sum.count; i++) add_term(f, &sum.term[i], stride, l);
}

/* ---- the expression ---- */

struct walk {
  struct default_facts *f;
  const struct default_layout *layout;
  uint32_t guarded; /* axes in the index conditions around the current node */
  int beyond;       /* the expression beyond a padding boundary; -1 if there is none */
  bool cold;        /* the current node is rarely evaluated */
};

/* Clears the axes that the stage has; PROGRAM_AXES would take longer. */
static void open_load(const struct default_facts *f, struct default_load *l) {
  for (int i = 0; i < f->t->rank + f->t->reductions; i++)
    l->stride[i] = l->block[i] = l->jump[i] = 0;
  l->non_affine = l->depends_on = l->inner = l->outer = 0;
}

static void add_load(struct walk *w, int node) {
  const struct program *p = w->f->p;
  const struct px_node *n = &p->nodes.data[node];
  const struct program_tensor *t = &p->tensors.data[n->tensor];
  int64_t stride[PROGRAM_AXES];
  w->f->truncated = w->f->truncated || w->f->loads == DEFAULT_LOADS;
  if (w->f->truncated) return;
  struct default_load *l = &w->f->load[w->f->loads++];
  open_load(w->f, l);
  l->node = node;
  l->tensor = n->tensor;
  l->indirect = false;
  l->packable = t->is_input;
  l->guarded = w->guarded;
  l->cold = w->cold;
  default_strides(t, &w->layout[n->tensor], stride);
  for (int i = 0; i < t->rank; i++) {
    int index = p->indices.data[n->first + i];
    add_index(w->f, index, i, stride[i], l);
    l->indirect = l->indirect || (l->non_affine && is_indirect(p, index));
  }
}

/* Axes in the index expressions of a condition, also those by which an index tensor is loaded. */
static uint32_t axes_below(const struct program *p, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->sort == PX_INDEX) return px_axes(p, expr);
  uint32_t axes = 0;
  for (int i = 0; i < PX_ARGS; i++)
    if (n->arg[i] >= 0) axes |= axes_below(p, n->arg[i]);
  return axes;
}

/* Axes along which a condition may change more than once: those of ==, !=, remainders and loaded indices. */
static uint32_t non_monotone_below(const struct program *p, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  struct affine sum;
  uint32_t axes_found = 0;
  if (n->sort == PX_INDEX) {
    uint32_t axes = px_axes(p, expr);
    int64_t stride;
    if (!affine_of(p, expr, &sum)) return axes;
    for (int i = 0; i < PROGRAM_AXES; i++)
      if (axes >> i & 1 && !affine_stride(p, &sum, i, &stride)) axes_found |= 1u << i;
    return axes_found;
  }
  if (n->op == PX_EQ || n->op == PX_NE) return axes_below(p, expr);
  for (int i = 0; i < PX_ARGS; i++)
    if (n->arg[i] >= 0) axes_found |= non_monotone_below(p, n->arg[i]);
  return axes_found;
}

/* Axes of a condition, but for its periodic parts (default_phases.c), which loop splitting resolves. */
static uint32_t unresolved_below(const struct default_facts *f, int expr,
                                 uint32_t (*below)(const struct program *, int)) {
  const struct px_node *n = &f->p->nodes.data[expr];
  if (default_is_phase(f, expr)) return 0;
  if (n->op == PX_AND)
    return unresolved_below(f, n->arg[0], below) | unresolved_below(f, n->arg[1], below);
  return below(f->p, expr);
}

/* Operations of one node, where a multiply-add counts as one. */
static int operations_of(const struct program *p, const struct px_node *n) {
  if (n->sort != PX_VALUE || n->op == PX_NUMBER || n->op == PX_LOAD) return 0;
  switch (n->op) {
    case PX_ADD:
    case PX_SUB:
    case PX_MUL:
    case PX_MIN:
    case PX_MAX:
    case PX_NEG: return 1;
    case PX_SELECT: return !is_index_condition(p, n->arg[0]); /* loops are partitioned there */
    case PX_DIV: return DEFAULT_DIVISION_OPERATIONS;
    default: return DEFAULT_CALL_OPERATIONS;
  }
}

/* The branch of an index condition that few elements of an element-wise stage take; -1 if there is none. */
static int cold_branch(const struct default_facts *f, const struct px_node *n) {
  if (n->op != PX_SELECT || f->t->reductions || !is_index_condition(f->p, n->arg[0])) return -1;
  if (default_share(f, n->arg[0]) >= DEFAULT_COLD_BRANCH_SHARE) return n->arg[2];
  return -1;
}

static void walk(struct walk *w, int expr) {
  const struct program *p = w->f->p;
  const struct px_node *n = &p->nodes.data[expr];
  uint32_t outer = w->guarded;
  w->f->operations += operations_of(p, n);
  if (n->op == PX_LOAD) {
    if (n->sort == PX_VALUE) add_load(w, expr);
    return;
  }
  if (n->sort == PX_INDEX) return;
  if (n->op == PX_SELECT && n->sort == PX_VALUE) {
    w->guarded |= unresolved_below(w->f, n->arg[0], axes_below);
    w->f->guarded |= unresolved_below(w->f, n->arg[0], axes_below);
    w->f->non_monotone |= unresolved_below(w->f, n->arg[0], non_monotone_below);
  }
  int cold_arg = cold_branch(w->f, n);
  for (int i = 0; i < PX_ARGS; i++) {
    bool cold = w->cold;
    w->cold = cold || (n->arg[i] >= 0 && (n->arg[i] == w->beyond || n->arg[i] == cold_arg));
    if (n->arg[i] >= 0) walk(w, n->arg[i]);
    w->cold = cold;
  }
  if (n->op == PX_REAL) {
    w->f->guarded |= axes_below(p, n->arg[0]);
    w->f->non_monotone |= axes_below(p, n->arg[0]);
  }
  w->guarded = outer;
}

/* Axes that the bounds of a reduction depend on. */
static uint32_t bounds_of(const struct program *p, const struct program_tensor *t) {
  uint32_t axes = 0;
  for (int i = t->rank; i < t->rank + t->reductions; i++)
    if (t->axes[i].low >= 0) axes |= px_axes(p, t->axes[i].low) | px_axes(p, t->axes[i].high);
  return axes;
}

/* The expression is a product, perhaps under index conditions. */
static bool is_product(const struct program *p, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  while (n->op == PX_SELECT && n->sort == PX_VALUE && is_index_condition(p, n->arg[0]))
    n = &p->nodes.data[n->arg[1]];
  return n->op == PX_MUL;
}

void default_facts(const struct program *p, int stage, const struct default_layout *layout,
                   struct default_facts *out) {
  const struct program_tensor *t = &p->tensors.data[stage];
  memset(out, 0,
         offsetof(struct default_facts, load)); /* clearing all DEFAULT_LOADS takes longer */
  out->p = p;
  out->stage = stage;
  out->t = t;
  out->order = layout[stage].order;
  out->points = out->reduction = 1;
  default_find_phases(out);
  struct walk w = {out, layout, 0, default_find_inside_share(out), false};
  walk(&w, t->body);
  if (t->reducer != REDUCE_NONE && !is_product(p, t->body)) out->operations++;
  if (out->operations < 1) out->operations = 1;
  out->bounds_reduction = bounds_of(p, t);
  out->bounded_share = out->bounds_reduction ? program_bounded_share(p, stage) : 1;
  for (int i = 0; i < t->rank; i++) out->points *= t->axes[i].size;
  for (int i = t->rank; i < t->rank + t->reductions; i++) out->reduction *= t->axes[i].size;
  default_strides(t, &layout[stage], out->out_stride);
}

/* ---- contiguous axes ---- */

static bool is_invariant(const struct default_load *l, uint32_t axes) {
  return !(l->depends_on & axes);
}

/* Elements are contiguous along the axes from position `first` of the stage's layout on. */
static bool is_contiguous(const struct default_facts *f, const int64_t *stride, int first) {
  int64_t next = 1;
  for (int i = f->t->rank - 1; i >= first; i--) {
    const struct program_axis *a = &f->t->axes[f->order[i]];
    if (a->size > 1 && stride[f->order[i]] != next) return false;
    next *= a->size;
  }
  return true;
}

static bool is_blocked(const struct default_facts *f, const struct default_load *l, int first) {
  for (int i = first; i < f->t->rank; i++)
    if (l->block[f->order[i]]) return true;
  return false;
}

bool default_flat_axis(const struct default_facts *f, int first) {
  uint32_t axes = 0;
  for (int i = first; i < f->t->rank; i++) axes |= 1u << f->order[i];
  if (f->guarded & axes || f->bounds_reduction & axes || f->truncated ||
      !is_contiguous(f, f->out_stride, first))
    return false;
  for (int i = 0; i < f->loads; i++) {
    const struct default_load *l = &f->load[i];
    if (is_invariant(l, axes)) continue;
    if (l->non_affine & axes || is_blocked(f, l, first) || !is_contiguous(f, l->stride, first))
      return false;
  }
  return true;
}

/* ---- vector axis and rows ---- */

int default_lanes(const struct program_tensor *t, const struct machine *machine) {
  return machine->vector_bytes /
         program_dtype_bytes(t->dtype == PROGRAM_F64 ? PROGRAM_F64 : PROGRAM_F32);
}

bool default_is_unit_stride(const struct default_facts *f, int axis) {
  bool moves = false, unit = !f->truncated && !(f->guarded >> axis & 1) && f->t->axes[axis].low < 0;
  for (int i = 0; i < f->loads; i++) {
    const struct default_load *l = &f->load[i];
    unit = unit && !(l->non_affine >> axis & 1) && !l->block[axis] && l->stride[axis] >= 0 &&
           l->stride[axis] <= 1;
    moves = moves || l->stride[axis] == 1;
  }
  return unit && moves;
}

bool default_has_other_vector_axis(const struct default_facts *f, int axis) {
  for (int i = 0; i < f->loads; i++)
    for (int j = 0; j < f->t->rank && f->load[i].stride[axis]; j++)
      if (j != axis && f->load[i].stride[j] == 1 && f->t->axes[j].size > 1) return true;
  return false;
}

bool default_all_depend_on(const struct default_facts *f, int axis) {
  for (int i = 0; i < f->loads; i++)
    if (!(f->load[i].depends_on >> axis & 1)) return false;
  return f->loads > 0;
}

bool default_rows_share(const struct default_facts *f) {
  for (int i = 0; i < f->loads; i++)
    for (int j = 0; j < f->t->rank; j++)
      if (!(f->load[i].depends_on >> j & 1) && f->t->axes[j].size > 1) return true;
  return false;
}
