/* The share of a stage's places that lie inside of a border, from its conditions. See default.h. */
#include "autoschedule/default_chooser.h"
#include "program/affine.h"

enum {
  LONG = 8,     /* steps that are left of a sum, once its window is split */
  MOST = 4096,  /* steps that are counted one by one */
  FAR = 1 << 20 /* a step that no image has: products with it are not asked for */
};

static int64_t clamped(int64_t x, int64_t most) {
  return x < 0 ? 0 : x < most ? x : most;
}

static int64_t quotient(int64_t a, int64_t b) { /* rounded down; b > 0 */
  return a / b - (a % b < 0);
}

/* So many x in 0 .. size-1 have rest + step * x >= 0. */
static int64_t at_least(int64_t rest, int64_t step, int64_t size) {
  if (step == 0) return rest >= 0 ? size : 0;
  if (step < 0) return clamped(quotient(rest, -step) + 1, size);
  return size - clamped(-quotient(rest, step), size);
}

/* The share of the places of two axes at most for which left <= right, or left < right, holds; -1 where
 * that is not known. */
static double holds_for(const struct default_facts *f, const struct px_node *compare) {
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
    if (step[i] > FAR || step[i] < -FAR) return -1;
  }
  if (sum.constant > (int64_t)FAR * FAR || sum.constant < -(int64_t)FAR * FAR) return -1;
  int few = size[1] <= size[0];
  int64_t count = 0;
  if (size[few] > MOST) return -1;
  for (int64_t x = 0; x < size[few]; x++)
    count += at_least(sum.constant + step[few] * x, step[!few], size[!few]);
  return (double)count / ((double)size[0] * (double)size[1]);
}

/* Of all conditions of one own axis: on both sides of an image others fail. */
static void add_shares(struct default_facts *f, int condition) {
  const struct px_node *n = &f->p->nodes.data[condition];
  if (n->op == PX_AND) {
    add_shares(f, n->arg[0]);
    add_shares(f, n->arg[1]);
  }
  double share = n->op == PX_LT || n->op == PX_LE ? holds_for(f, n) : -1;
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
  double share = n->op == PX_LT || n->op == PX_LE ? holds_for(f, n) : 0;
  return share > 0 ? share : 0;
}

/* What is added only in the first step of a long axis. */
static bool is_rare(const struct default_facts *f, int expr) {
  const struct px_node *n = &f->p->nodes.data[expr];
  if (n->op == PX_NUMBER) return n->number == 0;
  if (n->op != PX_SELECT || !is_index_condition(f->p, n->arg[0]) || !is_rare(f, n->arg[2]))
    return false;
  for (int i = f->t->rank; i < f->t->rank + f->t->reductions; i++)
    if (px_mentions(f->p, n->arg[0], i) && f->t->axes[i].size >= LONG) return true;
  return false;
}

double default_terms(const struct program_tensor *t) {
  double terms = 1;
  for (int i = t->rank; i < t->rank + t->reductions; i++) terms *= (double)t->axes[i].size;
  return terms;
}

/* Whether more is summed up than a window of each channel by itself: other reductions, or for outputs that read the
 * same of the image, along axes that its factor alone does not mention. */
static bool is_of_channels(const struct default_facts *f, int condition, int expr) {
  const struct program *p = f->p;
  const struct px_node *n = &p->nodes.data[expr];
  uint32_t asked = 0, left = 0, right = 0, some = 0;
  if (default_terms(f->t) > DEFAULT_FEW) return true;
  for (int i = 0; i < f->t->rank + f->t->reductions; i++) {
    if (f->t->axes[i].size == 1) continue;
    some |= 1u << i;
    if (px_mentions(p, condition, i)) asked |= 1u << i;
    if (n->op != PX_MUL || px_mentions(p, n->arg[0], i)) left |= 1u << i;
    if (n->op != PX_MUL || px_mentions(p, n->arg[1], i)) right |= 1u << i;
  }
  uint32_t own = (1u << f->t->rank) - 1, image = left & asked & own ? left : right;
  return some & ~own & ~asked || some & own & ~image;
}

int default_find_inside_share(struct default_facts *f) {
  const struct px_node *n = &f->p->nodes.data[f->t->body];
  for (int i = 0; i < f->t->rank; i++) f->inside_share[i] = 1;
  if (f->t->reducer != REDUCE_SUM || n->op != PX_SELECT) return -1;
  if (!is_of_channels(f, n->arg[0], n->arg[1])) return -1;
  if (!is_index_condition(f->p, n->arg[0]) || !is_rare(f, n->arg[2])) return -1;
  add_shares(f, n->arg[0]);
  for (int i = 0; i < f->t->rank; i++) {
    if (f->inside_share[i] <= 0) f->inside_share[i] = 1;
    f->has_boundary = f->has_boundary || f->inside_share[i] < 1;
  }
  return n->arg[2];
}
