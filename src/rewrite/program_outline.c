/* The edits `outline` and `columns`: a value of a stage's expression becomes a stage, the opposite
 * of `inline`.
 *
 *     Y[k:32, h:56] = (if 1 <= h+kh && h+kh < 57 then X[c, h+kh-1] else 0) * W[k, c, kh]
 *                     // sum c:64, kh:3         (one line in a file)
 * `outline Y if 1 <= h+kh && h+kh < 57 then X[c, h+kh-1] else 0 as E` -> a padded image
 *     E[c:64, h:58] = if 1 <= h && h < 57 then X[c, h-1] else 0
 *     Y[k:32, h:56] = E[c, h+kh] * W[k, c, kh] // sum c:64, kh:3
 * `columns Y ... as E` -> the columns of the image (im2col)
 *     E[c:64, h:56, kh:3] = if 1 <= h+kh && h+kh < 57 then X[c, h+kh-1] else 0
 *     Y[k:32, h:56] = E[c, h, kh] * W[k, c, kh] // sum c:64, kh:3
 *
 * `outline` combines an own axis with a reduction, h and kh, if the value depends on them only
 * through multiples of one sum h+kh plus a constant. The operand of a remainder or quotient by a
 * constant, (h+kh)%56, counts as such a sum. It also combines c and k in c/16*16+k, where k has 16
 * steps.
 */
#include "program/affine.h"
#include "rewrite/program_edit.h"
#include "rewrite/program_rebuild.h"

/* ---- which axes are combined ----------------------------------------------------------------- */

/* An own axis and a reduction that may be combined, and how the value depends on them. */
struct pair {
  int axis, with;
  int64_t step, with_step; /* coefficients in the sums seen so far, up to a factor; 0: none seen */
  int64_t block;           /* the axis occurs only as axis/block; 0: as itself */
  bool conflict;           /* the axes occur in sums that are not proportional */
};

static bool proportional(struct pair *pair, int64_t step, int64_t with_step) {
  if (!pair->step) {
    pair->step = step;
    pair->with_step = with_step;
  }
  return step * pair->with_step == with_step * pair->step;
}

/* For a sum that depends on the axis as step*block*(axis/block): finds `block` and `step`; false if
 * the sum has another form. */
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

/* Removes remainders and quotients by constants, such as (axis+with)%56, from the sum, and examines
 * their operands as sums of their own. */
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

/* Whether the value depends on the two axes only through one sum. One of the two coefficients is 1
 * then, so that the combined axis counts its values. */
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

/* The reduction that is combined with this axis; -1. */
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

/* Adds the axes in the order in which the loads of the value use them, so that the stage has the
 * layout of the tensor it loads. */
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
