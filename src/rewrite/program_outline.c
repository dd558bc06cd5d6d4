/* A part of a stage's expression as a stage of its own: the opposite of inlining. See program_edit.h.
 *
 *     Y[h:56] = (if 1 <= h+kh && h+kh < 57 then X[h+kh-1] else 0) * W[kh] // sum kh:3
 *
 *     X_m[h:58] = if 1 <= h && h < 57 then X[h-1] else 0
 *     Y[h:56] = X_m[h+kh] * W[kh] // sum kh:3
 *
 * h and kh become one axis because every sum that has one of them is a multiple of h+kh, and a constant, as
 * that of a remainder, (h+kh)%56, is, too; and so do c and k of c/16*16+k, where k has 16 steps.
 */
#include "program/affine.h"
#include "rewrite/program_edit.h"
#include "rewrite/program_rebuild.h"

/* ---- which axes go together ------------------------------------------------------------------ */

struct pair {
  int axis, with;
  int64_t step, with_step; /* of all sums; 0: none was seen */
  int64_t block;           /* the axis occurs as axis/block alone; 0: not */
  bool conflict;           /* they occur in another way, too */
};

static bool proportional(struct pair *pair, int64_t step, int64_t with_step) {
  if (!pair->step) {
    pair->step = step;
    pair->with_step = with_step;
  }
  return step * pair->with_step == with_step * pair->step;
}

/* block*(axis/block) + with: how far each block moves the sum. */
static bool block_stride(const struct program *p, const struct affine *sum, struct pair *pair,
                         int64_t *step) {
  *step = 0;
  for (int i = 0; i < sum->count; i++) {
    const struct px_node *n = &p->nodes.data[sum->term[i].expr];
    if (!px_mentions(p, sum->term[i].expr, pair->axis)) continue;
    if (n->op != PX_DIV || p->nodes.data[n->arg[0]].op != PX_AXIS || *step) return false;
    if (p->nodes.data[n->arg[1]].op != PX_INT) return false;
    int64_t block = p->nodes.data[n->arg[1]].integer;
    if (pair->block && pair->block != block) return false;
    if (sum->term[i].coef % block) return false;
    pair->block = block;
    *step = sum->term[i].coef / block;
  }
  return true;
}

static void see_sum(const struct program *p, int expr, struct pair *pair);

/* (axis+with)%56 is what axis+with makes it, as a quotient is: what is left of the sum. */
static void see_remainders(const struct program *p, struct affine *sum, struct pair *pair) {
  for (int i = sum->count - 1; i >= 0; i--) {
    const struct px_node *n = &p->nodes.data[sum->term[i].expr];
    if ((n->op != PX_DIV && n->op != PX_MOD) || p->nodes.data[n->arg[1]].op != PX_INT) continue;
    if (!px_mentions(p, n->arg[0], pair->axis) || !px_mentions(p, n->arg[0], pair->with)) continue;
    see_sum(p, n->arg[0], pair);
    affine_drop(sum, i);
  }
}

static void see_sum(const struct program *p, int expr, struct pair *pair) {
  struct affine sum;
  int64_t step, with_step;
  bool known = affine_of(p, expr, &sum);
  if (known) see_remainders(p, &sum, pair);
  known = known && affine_stride(p, &sum, pair->with, &with_step);
  if (known && (pair->block || !affine_stride(p, &sum, pair->axis, &step)))
    known = (pair->block || !pair->step) && block_stride(p, &sum, pair, &step);
  if (known && !step && !with_step) return;
  if (!known || step <= 0 || with_step <= 0 || step > PROGRAM_ELEMENTS ||
      with_step > PROGRAM_ELEMENTS || !proportional(pair, step, with_step))
    pair->conflict = true;
}

static void see(const struct program *p, int expr, struct pair *pair) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->sort == PX_INDEX) {
    see_sum(p, expr, pair);
    return;
  }
  for (int i = 0; i < 3; i++)
    if (n->arg[i] >= 0) see(p, n->arg[i], pair);
  for (int i = 0; n->op == PX_LOAD && i < p->tensors.data[n->tensor].rank; i++)
    see(p, p->indices.data[n->first + i], pair);
}

/* One of the two has the step 1 then: it counts what both make. */
static bool is_one_axis(const struct program *p, const struct program_tensor *t, int node,
                        struct pair *pair) {
  const struct program_axis *with = &t->axes[pair->with], *axis = &t->axes[pair->axis];
  see(p, node, pair);
  if (pair->conflict || !pair->step) return false;
  if (pair->block)
    return pair->step == pair->with_step && pair->block == with->size &&
           axis->size % pair->block == 0;
  int64_t least = pair->step < pair->with_step ? pair->step : pair->with_step;
  if (pair->step % least || pair->with_step % least) return false;
  pair->step /= least;
  pair->with_step /= least;
  return true;
}

static bool occurs(const struct program *p, int node, int axis) {
  return px_mentions(p, node, axis);
}

/* The reduction axis that goes with this one; -1. */
static int find_with(struct change *c, int axis, const bool *taken, struct pair *found) {
  const struct program_tensor *t = &c->from->tensors.data[c->consumer];
  for (int i = t->rank; i < t->rank + t->reductions; i++) {
    if (taken[i] || t->axes[i].low >= 0 || !occurs(c->from, c->node, i)) continue;
    *found = (struct pair){.axis = axis, .with = i};
    if (is_one_axis(c->from, t, c->node, found)) return i;
  }
  return -1;
}

static void add_axis(struct change *c, int axis, bool *taken) {
  const struct program_tensor *t = &c->from->tensors.data[c->consumer];
  struct pair pair;
  int with = axis < t->rank && !c->columns ? find_with(c, axis, taken, &pair) : -1;
  struct outlined_axis *a = &c->axes[c->axis_count++];
  *a = (struct outlined_axis){axis, with, 1, 0, t->axes[axis].size, 0};
  taken[axis] = true;
  if (with < 0) return;
  taken[with] = true;
  a->block = pair.block;
  if (a->block) return;
  a->step = pair.step;
  a->with_step = pair.with_step;
  a->size = (t->axes[axis].size - 1) * pair.step + (t->axes[with].size - 1) * pair.with_step + 1;
}

/* The axes of the indices of the first load below, in its order: so the stage lies as what it loads. */
static void add_loaded(struct change *c, int expr, bool *taken) {
  const struct px_node *n = &c->from->nodes.data[expr];
  const struct program_tensor *t = &c->from->tensors.data[c->consumer];
  for (int i = 0; i < 3; i++)
    if (n->arg[i] >= 0) add_loaded(c, n->arg[i], taken);
  for (int i = 0; n->op == PX_LOAD && i < c->from->tensors.data[n->tensor].rank; i++)
    for (int j = 0; j < t->rank + t->reductions; j++)
      if (!taken[j] && occurs(c->from, c->from->indices.data[n->first + i], j))
        add_axis(c, j, taken);
}

void outline_axes(struct change *c) {
  const struct program_tensor *t = &c->from->tensors.data[c->consumer];
  bool taken[PROGRAM_AXES] = {false};
  add_loaded(c, c->node, taken);
  for (int i = 0; i < t->rank + t->reductions; i++)
    if (!taken[i] && occurs(c->from, c->node, i)) add_axis(c, i, taken);
}

static canvas_status outline(canvas_context *ctx, const struct program *p, int stage, int node,
                             const char *name, enum change_kind kind, bool columns,
                             struct program **out) {
  struct change c = change_open(kind, p);
  c.tensor = -1;
  c.consumer = stage;
  c.node = node;
  c.name = name;
  c.columns = columns;
  outline_axes(&c);
  return change_finish(ctx, &c, out);
}

canvas_status program_outline(canvas_context *ctx, const struct program *p, int stage, int node,
                              const char *name, struct program **out) {
  return outline(ctx, p, stage, node, name, CHANGE_OUTLINE, false, out);
}

canvas_status program_columns(canvas_context *ctx, const struct program *p, int stage, int node,
                              const char *name, struct program **out) {
  return outline(ctx, p, stage, node, name, CHANGE_OUTLINE, true, out);
}

canvas_status program_reciprocal(canvas_context *ctx, const struct program *p, int stage, int node,
                                 const char *name, struct program **out) {
  return outline(ctx, p, stage, node, name, CHANGE_RECIPROCAL, false, out);
}
