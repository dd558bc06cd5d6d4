/* What a stage is, as far as its loops are concerned: how each load moves along each axis. See
 * default.h.
 *
 *     pad[n, oc/16*16+ic, h+kh, w+kw]   along oc: 0, in blocks of 16; along w: 1; along kh: a row
 */
#include <stddef.h>
#include <string.h>

#include "autoschedule/default.h"
#include "program/affine.h"

enum { CALL = 16 }; /* operations of a function */

static const double MOSTLY = 0.75; /* of the places of a map: loads of the others are rare */

void default_keep_plain(const struct program_tensor *t, struct default_kept *out) {
  for (int i = 0; i < t->rank; i++) {
    out->order[i] = i;
    out->extent[i] = t->axes[i].size;
  }
}

void default_strides(const struct program_tensor *t, const struct default_kept *kept,
                     int64_t *stride) {
  int64_t all = 1;
  for (int i = t->rank - 1; i >= 0; i--) {
    stride[kept->order[i]] = all;
    all *= kept->extent[kept->order[i]];
  }
}

/* ---- one index ---- */

static void add_block(struct default_load *l, int axis, int64_t size) {
  if (!l->block[axis] || size < l->block[axis]) l->block[axis] = size;
}

/* How an index moves that is an axis, or a digit of one. */
struct digit {
  int axis;
  int64_t stride, block; /* as in a load */
};

/* axis/16 stands still for 16 steps, axis%16 moves by one within them. */
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
    l->twisted |= px_axes(p, term->expr);
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

/* The index is two axes, o*16+i, of which the inner one has 16 steps, as where channels come in blocks. */
static bool is_of_two(const struct default_facts *f, const struct affine *sum, struct digit *inner,
                      struct digit *outer) {
  if (sum->count != 2 || sum->constant) return false;
  int one = sum->term[0].coef == 1 ? 0 : 1;
  return sum->term[one].coef == 1 && is_whole_axis(f->p, sum->term[one].expr, inner) &&
         is_whole_axis(f->p, sum->term[1 - one].expr, outer) &&
         sum->term[1 - one].coef == f->t->axes[inner->axis].size;
}

/* Index `at` of the load, as far as packing is concerned: of weights it may be of two axes. */
static bool is_plain(const struct default_facts *f, const struct affine *sum, uint32_t moves,
                     int at, struct default_load *l) {
  struct digit d = {-1, 0, 0}, outer;
  if (sum->count == 1) {
    int64_t coef = sum->term[0].coef;
    if (!digit_of(f->p, sum->term[0].expr, &d)) return false;
    if (coef != 1 && (coef != -1 || d.block)) return false;
    if (d.block ? sum->constant != 0 : moves >> d.axis & 1) return false;
  } else if (sum->count > 1) {
    if (!f->p->tensors.data[l->tensor].constant || !is_of_two(f, sum, &d, &outer)) return false;
    if ((moves >> d.axis | moves >> outer.axis) & 1) return false;
    l->inner |= 1u << d.axis;
    l->outer |= 1u << outer.axis;
  }
  l->of[at] = d.axis;
  l->moved[at] = d.stride != 0;
  for (int i = 0; i < at && d.stride; i++)
    if (l->of[i] == d.axis && l->moved[i]) return false;
  return true;
}

static void add_index(const struct default_facts *f, int index, int at, int64_t stride,
                      struct default_load *l) {
  const struct program *p = f->p;
  struct affine sum;
  uint32_t axes = px_axes(p, index), moves = l->moves;
  l->moves |= axes;
  if (!affine_of(p, index, &sum)) {
    l->twisted |= axes;
    l->plain = false;
    return;
  }
  l->plain = l->plain && is_plain(f, &sum, moves, at, l);
  for (int i = 0; i < sum.count; i++) add_term(f, &sum.term[i], stride, l);
}

/* ---- the expression ---- */

struct walk {
  struct default_facts *f;
  const struct default_kept *kept;
  uint32_t asked;
  int beyond; /* an expression that is rarely evaluated; -1 */
  bool rare;
};

/* There is room for many axes, and few are there. */
static void open_load(const struct default_facts *f, struct default_load *l) {
  for (int i = 0; i < f->t->rank + f->t->reductions; i++)
    l->stride[i] = l->block[i] = l->jump[i] = 0;
  l->twisted = l->moves = l->inner = l->outer = 0;
}

static void add_load(struct walk *w, int node) {
  const struct program *p = w->f->p;
  const struct px_node *n = &p->nodes.data[node];
  const struct program_tensor *t = &p->tensors.data[n->tensor];
  int64_t stride[PROGRAM_AXES];
  w->f->many = w->f->many || w->f->loads == DEFAULT_LOADS;
  if (w->f->many) return;
  struct default_load *l = &w->f->load[w->f->loads++];
  open_load(w->f, l);
  l->node = node;
  l->tensor = n->tensor;
  l->plain = t->is_input;
  l->asked = w->asked;
  l->rare = w->rare;
  default_strides(t, &w->kept[n->tensor], stride);
  for (int i = 0; i < t->rank; i++) add_index(w->f, p->indices.data[n->first + i], i, stride[i], l);
}

/* Axes in an index expression or a condition, of loads of indices too. */
static uint32_t axes_below(const struct program *p, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->sort == PX_INDEX) return px_axes(p, expr);
  uint32_t axes = 0;
  for (int i = 0; i < 3; i++)
    if (n->arg[i] >= 0) axes |= axes_below(p, n->arg[i]);
  return axes;
}

/* Those in conditions other than `sum < sum`: a remainder, a load. */
static uint32_t rough_below(const struct program *p, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  struct affine sum;
  uint32_t rough = 0;
  if (n->sort == PX_INDEX) {
    uint32_t axes = px_axes(p, expr);
    int64_t stride;
    if (!affine_of(p, expr, &sum)) return axes;
    for (int i = 0; i < PROGRAM_AXES; i++)
      if (axes >> i & 1 && !affine_stride(p, &sum, i, &stride)) rough |= 1u << i;
    return rough;
  }
  if (n->op == PX_EQ || n->op == PX_NE) return axes_below(p, expr);
  for (int i = 0; i < 3; i++)
    if (n->arg[i] >= 0) rough |= rough_below(p, n->arg[i]);
  return rough;
}

/* Those that a condition leaves open once loops are split by their periods. */
static uint32_t open_below(const struct default_facts *f, int expr,
                           uint32_t (*below)(const struct program *, int)) {
  const struct px_node *n = &f->p->nodes.data[expr];
  if (default_is_phase(f, expr)) return 0;
  if (n->op == PX_AND) return open_below(f, n->arg[0], below) | open_below(f, n->arg[1], below);
  return below(f->p, expr);
}

static int cost_of(const struct program *p, const struct px_node *n) {
  if (n->sort != PX_VALUE || n->op == PX_NUMBER || n->op == PX_LOAD) return 0;
  switch (n->op) {
    case PX_ADD:
    case PX_SUB:
    case PX_MUL:
    case PX_MIN:
    case PX_MAX:
    case PX_NEG: return 1;
    case PX_SELECT: return !is_index_condition(p, n->arg[0]); /* loops are split at borders */
    case PX_DIV: return 4;
    default: return CALL;
  }
}

/* Of a map the branch of a condition of indices that few places take; -1. */
static int rare_branch(const struct default_facts *f, const struct px_node *n) {
  if (n->op != PX_SELECT || f->t->reductions || !is_index_condition(f->p, n->arg[0])) return -1;
  if (default_share(f, n->arg[0]) >= MOSTLY) return n->arg[2];
  return -1;
}

static void walk(struct walk *w, int expr) {
  const struct program *p = w->f->p;
  const struct px_node *n = &p->nodes.data[expr];
  uint32_t around = w->asked;
  w->f->operations += cost_of(p, n);
  if (n->op == PX_LOAD) {
    if (n->sort == PX_VALUE) add_load(w, expr);
    return;
  }
  if (n->sort == PX_INDEX) return;
  if (n->op == PX_SELECT && n->sort == PX_VALUE) {
    w->asked |= open_below(w->f, n->arg[0], axes_below);
    w->f->asked |= open_below(w->f, n->arg[0], axes_below);
    w->f->rough |= open_below(w->f, n->arg[0], rough_below);
  }
  int seldom = rare_branch(w->f, n);
  for (int i = 0; i < 3; i++) {
    bool rare = w->rare;
    w->rare = rare || (n->arg[i] >= 0 && (n->arg[i] == w->beyond || n->arg[i] == seldom));
    if (n->arg[i] >= 0) walk(w, n->arg[i]);
    w->rare = rare;
  }
  if (n->op == PX_REAL) {
    w->f->asked |= axes_below(p, n->arg[0]);
    w->f->rough |= axes_below(p, n->arg[0]);
  }
  w->asked = around;
}

static uint32_t bounds_of(const struct program *p, const struct program_tensor *t) {
  uint32_t axes = 0;
  for (int i = t->rank; i < t->rank + t->reductions; i++)
    if (t->axes[i].low >= 0) axes |= px_axes(p, t->axes[i].low) | px_axes(p, t->axes[i].high);
  return axes;
}

/* Where there is one: of a border it is a product within. */
static bool is_product(const struct program *p, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  while (n->op == PX_SELECT && n->sort == PX_VALUE && is_index_condition(p, n->arg[0]))
    n = &p->nodes.data[n->arg[1]];
  return n->op == PX_MUL;
}

void default_facts(const struct program *p, int stage, const struct default_kept *kept,
                   struct default_facts *out) {
  const struct program_tensor *t = &p->tensors.data[stage];
  memset(out, 0, offsetof(struct default_facts, load)); /* loads are many, and few are there */
  out->p = p;
  out->stage = stage;
  out->t = t;
  out->order = kept[stage].order;
  out->points = out->reduction = 1;
  default_find_phases(out);
  struct walk w = {out, kept, 0, default_find_inside(out), false};
  walk(&w, t->body);
  if (t->reducer != REDUCE_NONE && !is_product(p, t->body)) out->operations++;
  if (out->operations < 1) out->operations = 1;
  out->bounds = bounds_of(p, t);
  for (int i = 0; i < t->rank; i++) out->points *= t->axes[i].size;
  for (int i = t->rank; i < t->rank + t->reductions; i++) out->reduction *= t->axes[i].size;
  default_strides(t, &kept[stage], out->out);
}

/* ---- long axes ---- */

static bool stands_still(const struct default_load *l, uint32_t axes) {
  return !(l->moves & axes);
}

/* Along the axes from `first` on, in the order in which the stage is kept, elements stand side by side. */
static bool follows(const struct default_facts *f, const int64_t *stride, int first) {
  int64_t next = 1;
  for (int i = f->t->rank - 1; i >= first; i--) {
    const struct program_axis *a = &f->t->axes[f->order[i]];
    if (a->size > 1 && stride[f->order[i]] != next) return false;
    next *= a->size;
  }
  return true;
}

static bool in_blocks(const struct default_facts *f, const struct default_load *l, int first) {
  for (int i = first; i < f->t->rank; i++)
    if (l->block[f->order[i]]) return true;
  return false;
}

bool default_long_axis(const struct default_facts *f, int first) {
  uint32_t axes = 0;
  for (int i = first; i < f->t->rank; i++) axes |= 1u << f->order[i];
  if (f->asked & axes || f->bounds & axes || f->many || !follows(f, f->out, first)) return false;
  for (int i = 0; i < f->loads; i++) {
    const struct default_load *l = &f->load[i];
    if (stands_still(l, axes)) continue;
    if (l->twisted & axes || in_blocks(f, l, first) || !follows(f, l->stride, first)) return false;
  }
  return true;
}

/* ---- lanes and rows ---- */

int default_lanes(const struct program_tensor *t, const struct machine *machine) {
  return machine->vector_bytes / (t->dtype == PROGRAM_F64 ? 8 : 4);
}

bool default_is_straight(const struct default_facts *f, int axis) {
  bool moves = false, straight = !f->many && !(f->asked >> axis & 1) && f->t->axes[axis].low < 0;
  for (int i = 0; i < f->loads; i++) {
    const struct default_load *l = &f->load[i];
    straight = straight && !(l->twisted >> axis & 1) && !l->block[axis] && l->stride[axis] >= 0 &&
               l->stride[axis] <= 1;
    moves = moves || l->stride[axis] == 1;
  }
  return straight && moves;
}

bool default_has_other_lanes(const struct default_facts *f, int axis) {
  for (int i = 0; i < f->loads; i++)
    for (int j = 0; j < f->t->rank && f->load[i].stride[axis]; j++)
      if (j != axis && f->load[i].stride[j] == 1 && f->t->axes[j].size > 1) return true;
  return false;
}

bool default_moves_all(const struct default_facts *f, int axis) {
  for (int i = 0; i < f->loads; i++)
    if (!(f->load[i].moves >> axis & 1)) return false;
  return f->loads > 0;
}

bool default_rows_share(const struct default_facts *f) {
  for (int i = 0; i < f->loads; i++)
    for (int j = 0; j < f->t->rank; j++)
      if (!(f->load[i].moves >> j & 1) && f->t->axes[j].size > 1) return true;
  return false;
}
