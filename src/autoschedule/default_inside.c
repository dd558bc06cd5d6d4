/* Computes which share of a stage's iterations is inside of a padding boundary, from its index
 * conditions. */
#include "autoschedule/default_chooser.h"
#include "program/affine.h"

static int64_t clamped(int64_t x, int64_t most) {
  return x < 0 ? 0 : x < most ? x : most;
}

static int64_t quotient(int64_t a, int64_t b) { /* rounded down; b > 0 */
  return a / b - (a % b < 0);
}

/* Counts x in 0 .. size-1 with rest + step * x >= 0. */
static int64_t count_nonnegative(int64_t rest, int64_t step, int64_t size) {
  if (step == 0) return rest >= 0 ? size : 0;
  if (step < 0) return clamped(quotient(rest, -step) + 1, size);
  return size - clamped(-quotient(rest, step), size);
}

/* The share of index values, of at most two axes, for which left <= right, or left < right, holds;
 * -1 if that is not known. */
static double share_that_holds(const struct default_facts *f, const struct px_node *compare) {
  struct affine sum = {.constant = compare->op == PX_LT ? -1 : 0};
  int64_t step[2] = {0, 0}, size[2] = {1, 1};
  if (!affine_add(f->p, &sum, compare->arg[1], 1) || !affine_add(f->p, &sum, compare->arg[0], -1))
    return -1;
  if (sum.count > 2) return -1;
  for (int i = 0; i < sum.count; i++) {
    const struct px_node *n = &f->p->nodes.data[sum.term[i].expr];
    if (n->op != PX_AXIS || f->t->axes[n->integer].low >= 0) return -1;
    step[i] = sum.term[i].coef;
    size[i] = f->t->axes[n->integer].size;
    if (step[i] > DEFAULT_LARGE_STEP || step[i] < -DEFAULT_LARGE_STEP) return -1;
  }
  if (sum.constant > (int64_t)DEFAULT_LARGE_STEP * DEFAULT_LARGE_STEP ||
      sum.constant < -(int64_t)DEFAULT_LARGE_STEP * DEFAULT_LARGE_STEP)
    return -1;
  int few = size[1] <= size[0];
  int64_t count = 0;
  if (size[few] > DEFAULT_COUNTED_STEPS) return -1;
  for (int64_t x = 0; x < size[few]; x++)
    count += count_nonnegative(sum.constant + step[few] * x, step[!few], size[!few]);
  return (double)count / ((double)size[0] * (double)size[1]);
}

/* Subtracts from inside_share what each condition excludes along its own axis: the two ends of an
 * image have different conditions. */
static void add_shares(struct default_facts *f, int condition) {
  const struct px_node *n = &f->p->nodes.data[condition];
  if (n->op == PX_AND) {
    add_shares(f, n->arg[0]);
    add_shares(f, n->arg[1]);
  }
  double share = n->op == PX_LT || n->op == PX_LE ? share_that_holds(f, n) : -1;
  if (share < 0) return;
  for (int i = 0; i < f->t->rank; i++)
    if (px_mentions(f->p, condition, i)) {
      f->inside_share[i] -= 1 - share;
      return;
    }
}

double default_share(const struct default_facts *f, int condition) {
  const struct px_node *n = &f->p->nodes.data[condition];
  if (n->op == PX_AND) return default_share(f, n->arg[0]) + default_share(f, n->arg[1]) - 1;
  double share = n->op == PX_LT || n->op == PX_LE ? share_that_holds(f, n) : 0;
  return share > 0 ? share : 0;
}

/* The expression beyond the boundary is 0, but for a term in the first step of a long reduction. */
static bool is_cold(const struct default_facts *f, int expr) {
  const struct px_node *n = &f->p->nodes.data[expr];
  if (n->op == PX_NUMBER) return n->number == 0;
  if (n->op != PX_SELECT || !is_index_condition(f->p, n->arg[0]) || !is_cold(f, n->arg[2]))
    return false;
  for (int i = f->t->rank; i < f->t->rank + f->t->reductions; i++)
    if (px_mentions(f->p, n->arg[0], i) && f->t->axes[i].size >= DEFAULT_LONG_AXIS) return true;
  return false;
}

double default_terms(const struct program_tensor *t) {
  double terms = 1;
  for (int i = t->rank; i < t->rank + t->reductions; i++) terms *= (double)t->axes[i].size;
  return terms;
}

/* More than a window of each channel is reduced: other reductions, or several outputs read the same
 * pixels, along axes that only the other factor depends on. */
static bool mixes_channels(const struct default_facts *f, int condition, int expr) {
  const struct program *p = f->p;
  const struct px_node *n = &p->nodes.data[expr];
  uint32_t guarded = 0, left = 0, right = 0, axes = 0;
  if (default_terms(f->t) > DEFAULT_SHORT_REDUCTION) return true;
  for (int i = 0; i < f->t->rank + f->t->reductions; i++) {
    if (f->t->axes[i].size == 1) continue;
    axes |= 1u << i;
    if (px_mentions(p, condition, i)) guarded |= 1u << i;
    if (n->op != PX_MUL || px_mentions(p, n->arg[0], i)) left |= 1u << i;
    if (n->op != PX_MUL || px_mentions(p, n->arg[1], i)) right |= 1u << i;
  }
  uint32_t own = (1u << f->t->rank) - 1, image = left & guarded & own ? left : right;
  return axes & ~own & ~guarded || axes & own & ~image;
}

int default_find_inside_share(struct default_facts *f) {
  const struct px_node *n = &f->p->nodes.data[f->t->body];
  for (int i = 0; i < f->t->rank; i++) f->inside_share[i] = 1;
  if (f->t->reducer != REDUCE_SUM || n->op != PX_SELECT) return -1;
  if (!mixes_channels(f, n->arg[0], n->arg[1])) return -1;
  if (!is_index_condition(f->p, n->arg[0]) || !is_cold(f, n->arg[2])) return -1;
  add_shares(f, n->arg[0]);
  for (int i = 0; i < f->t->rank; i++) {
    if (f->inside_share[i] <= 0) f->inside_share[i] = 1;
    f->has_boundary = f->has_boundary || f->inside_share[i] < 1;
  }
  return n->arg[2];
}
