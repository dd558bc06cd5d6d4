/* Consumers that read a reduction at digits of their own axes, as the matrix Y reads an image:
 *
 *     P[h:56, w:64, r:4, c:16] = ...
 *     Y[y:3584, x:64] = P[y/64, y%64, x/16, x%16]
 *
 * Such a consumer is computed in the tile of P: each of its axes has the loops of all its digits,
 * `{h, w_o, w_i}/y`. Tiles divide these axes, as `y/64` of an incomplete tile would be another line.
 */
#include <string.h>

#include "autoschedule/default.h"

/* An index: the digit of `size` steps, of which one is `step` steps of the axis. */
struct digit {
  int axis; /* -1: the index is no digit */
  int64_t step;
};

/* The digit of a stage's axis with `size` steps in `axis`, `axis/step` or `axis/step%size`. */
static struct digit digit_of(const struct program *p, const struct program_tensor *consumer,
                             int index, int64_t size) {
  const struct digit none = {-1, 0};
  const struct px_node *n = &p->nodes.data[index];
  struct digit digit = {-1, 1};
  bool wraps = n->op == PX_MOD;
  if (size == 1 && n->op == PX_INT) return (struct digit){0, consumer->axes[0].size};
  if (wraps) {
    const struct px_node *steps = &p->nodes.data[n->arg[1]];
    if (steps->op != PX_INT || steps->integer != size) return none;
    n = &p->nodes.data[n->arg[0]];
  }
  if (n->op == PX_DIV) {
    const struct px_node *step = &p->nodes.data[n->arg[1]];
    if (step->op != PX_INT) return none;
    digit.step = step->integer;
    n = &p->nodes.data[n->arg[0]];
  }
  if (n->op != PX_AXIS) return none;
  digit.axis = (int)n->integer;
  return wraps || consumer->axes[digit.axis].size == digit.step * size ? digit : none;
}

/* Adds the digits in each load of the stage. False: an index is none, or loads differ. */
static bool add_digits(const struct program *p, int expr, const struct program_tensor *consumer,
                       int stage, struct default_plan *plan) {
  const struct px_node *n = &p->nodes.data[expr];
  const struct program_tensor *t = &p->tensors.data[stage];
  for (int i = 0; i < PX_ARGS; i++)
    if (n->arg[i] >= 0 && !add_digits(p, n->arg[i], consumer, stage, plan)) return false;
  if (n->op != PX_LOAD || n->tensor != stage) return true;
  for (int i = 0; i < t->rank; i++) {
    struct digit d = digit_of(p, consumer, p->indices.data[n->first + i], t->axes[i].size);
    if (d.axis < 0) return false;
    if (plan->digit_of[i] >= 0 && (plan->digit_of[i] != d.axis || plan->digit_step[i] != d.step))
      return false;
    plan->digit_of[i] = d.axis;
    plan->digit_step[i] = d.step;
  }
  return true;
}

int default_digits(const struct default_plan *plan, int rank, int axis, int *digits) {
  int count = 0;
  for (int i = 0; i < rank; i++) {
    if (plan->digit_of[i] != axis) continue;
    int at = count++;
    for (; at > 0 && plan->digit_step[digits[at - 1]] < plan->digit_step[i]; at--)
      digits[at] = digits[at - 1];
    digits[at] = i;
  }
  return count;
}

/* The digits of the consumer's axis cover it, each step once. */
static bool cover(const struct program_tensor *t, const struct default_plan *plan, int axis,
                  int64_t size) {
  int digits[PROGRAM_AXES], count = default_digits(plan, t->rank, axis, digits);
  int64_t steps = 1;
  for (int i = count - 1; i >= 0; i--) {
    if (plan->digit_step[digits[i]] != steps) return false;
    steps *= t->axes[digits[i]].size;
  }
  return count && steps == size;
}

bool default_reads_digits(const struct program *p, int consumer, int stage,
                          struct default_plan *plan) {
  const struct program_tensor *t = &p->tensors.data[stage], *r = &p->tensors.data[consumer];
  memset(plan->digit_of, -1, sizeof plan->digit_of);
  if (!r->rank || !add_digits(p, r->body, r, stage, plan) || plan->digit_of[0] < 0) return false;
  for (int i = 0; i < r->rank + r->reductions; i++) {
    if (r->axes[i].low >= 0 || (i >= r->rank && r->axes[i].size > 1)) return false;
    if (!cover(t, plan, i, r->axes[i].size)) return false;
  }
  return true;
}

void default_set_digits(struct default_plan *plan, int count) {
  memset(plan->digit_of, -1, sizeof plan->digit_of);
  for (int i = 0; i < count; i++) {
    plan->digit_of[plan->axis[i]] = i;
    plan->digit_step[plan->axis[i]] = 1;
  }
}
