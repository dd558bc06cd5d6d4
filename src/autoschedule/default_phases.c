/* Periodic reductions: a remainder of own axis and reduction selects the terms, as in a transposed
 * convolution.
 *
 *     Y[h:56] = if (h+kh)%2 == 0 then X[(h+kh)/2] * W[3-kh] else 0 // sum kh:4
 *
 * h and kh have the period 2. Loops over both are split by it, and the inner loops unrolled: each
 * copy of the statement has a constant condition, and copies whose condition is false are removed.
 */
#include "autoschedule/default.h"
#include "bind/storage.h"
#include "cost/policy.h"
#include "program/affine.h"

/* Unrolled steps of a reduction: its period, or all steps if the period does not divide them. */
int64_t default_phase_steps(const struct default_facts *f, int axis) {
  int64_t size = f->t->axes[axis].size, period = f->period[axis];
  return period && size % period ? size : period;
}

/* The expression is own + d*reduction + constant; sets both axes. */
static bool two_axes(const struct default_facts *f, int expr, int *own, int *reduction) {
  struct affine sum;
  if (!affine_of(f->p, expr, &sum) || sum.count != 2) return false;
  *own = *reduction = -1;
  for (int i = 0; i < 2; i++) {
    const struct px_node *n = &f->p->nodes.data[sum.term[i].expr];
    if (n->op != PX_AXIS) return false;
    if (n->integer >= f->t->rank)
      *reduction = (int)n->integer;
    else if (sum.term[i].coef == 1)
      *own = (int)n->integer;
  }
  return *own >= 0 && *reduction >= 0;
}

/* The period of a condition (own + d*reduction + constant) % period == number; 0 if it is another
 * one. */
static int64_t period_of(const struct default_facts *f, int condition, int *own, int *reduction) {
  const struct px_node *n = &f->p->nodes.data[condition];
  if (n->op != PX_EQ || f->p->nodes.data[n->arg[1]].op != PX_INT) return 0;
  const struct px_node *left = &f->p->nodes.data[n->arg[0]];
  if (left->op != PX_MOD || f->p->nodes.data[left->arg[1]].op != PX_INT) return 0;
  if (!two_axes(f, left->arg[0], own, reduction)) return 0;
  return f->p->nodes.data[left->arg[1]].integer;
}

bool default_is_phase(const struct default_facts *f, int condition) {
  int own, reduction;
  int64_t period = period_of(f, condition, &own, &reduction);
  return period && f->period[own] == period && f->period[reduction] == period;
}

/* Unrolled copies of a row's statements exceed the limit of binding, or that of three periods. */
static bool has_too_many_copies(const struct default_facts *f) {
  int64_t copies = 1, periods = 0;
  for (int i = f->t->rank; i < f->t->rank + f->t->reductions; i++)
    if (f->period[i]) {
      copies *= f->period[i] * default_phase_steps(f, i);
      periods++;
    }
  return copies > UNROLLED_STATEMENTS / 2 || (periods > 2 && copies > DEFAULT_PERIODIC_COPIES);
}

/* The last one of several conditions first: it is about the innermost axis. */
static void find_periods(struct default_facts *f, int condition) {
  const struct px_node *n = &f->p->nodes.data[condition];
  int own, reduction;
  if (n->op == PX_AND) {
    find_periods(f, n->arg[1]);
    find_periods(f, n->arg[0]);
    return;
  }
  int64_t period = period_of(f, condition, &own, &reduction);
  if (period < 2 || f->period[own] || f->period[reduction]) return;
  if (f->t->axes[own].size < period || f->t->axes[reduction].low >= 0) return;
  f->period[own] = f->period[reduction] = period;
  bool few = period <= DEFAULT_LONGEST_PERIOD &&
             default_phase_steps(f, reduction) <= DEFAULT_PERIODIC_STEPS;
  if (few && !has_too_many_copies(f)) {
    f->periodic = true;
    return;
  }
  f->period[own] = f->period[reduction] = 0;
}

void default_find_phases(struct default_facts *f) {
  const struct px_node *n = &f->p->nodes.data[f->t->body];
  if (f->t->reducer != REDUCE_SUM || n->op != PX_SELECT) return;
  const struct px_node *other = &f->p->nodes.data[n->arg[2]];
  if (other->op == PX_NUMBER && other->number == 0) find_periods(f, n->arg[0]);
}

/* (own + d*reduction + constant)/period moves by one element from one selected term to the next. */
bool default_phase_index(const struct default_facts *f, int expr, int64_t stride,
                         struct default_load *l) {
  const struct px_node *n = &f->p->nodes.data[expr];
  int own, reduction;
  if (n->op != PX_DIV || f->p->nodes.data[n->arg[1]].op != PX_INT) return false;
  if (!two_axes(f, n->arg[0], &own, &reduction)) return false;
  int64_t period = f->p->nodes.data[n->arg[1]].integer;
  if (f->period[own] != period || f->period[reduction] != period) return false;
  l->stride[own] += stride;
  l->stride[reduction] += stride;
  return true;
}
