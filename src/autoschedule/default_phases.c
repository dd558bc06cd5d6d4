/* Sums whose terms come and go with a remainder, as those of a transposed convolution do: see default.h.
 *
 *     Y[h:56] = if (h+kh)%2 == 0 then X[(h+kh)/2] * W[3-kh] else 0 // sum kh:4
 *
 * h and kh have the period 2. Both are split by it, and the inner loops unrolled: then each copy of the
 * statement knows its condition, and those of which it is false are gone.
 */
#include "autoschedule/default.h"
#include "bind/storage.h"
#include "program/affine.h"

enum {
  LONGEST = 8, /* period ... */
  STEPS = 16,  /* ... and steps of a reduction that are unrolled, where it does not divide them */
  COPIES = 64  /* of a statement, by three periods: in a window of 3x3x3 the outermost is left */
};

/* So many steps of a reduction are unrolled: a period, or all where it does not divide them. */
int64_t default_phase_steps(const struct default_facts *f, int axis) {
  int64_t size = f->t->axes[axis].size, period = f->period[axis];
  return period && size % period ? size : period;
}

/* own + d*reduction + ..., nothing else; and which two. */
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

/* (own + d*reduction + ...) % period == number */
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

/* Copies of a row's statements: more than may be unrolled, or too many by three periods. */
static bool are_too_many(const struct default_facts *f) {
  int64_t copies = 1, periods = 0;
  for (int i = f->t->rank; i < f->t->rank + f->t->reductions; i++)
    if (f->period[i]) {
      copies *= f->period[i] * default_phase_steps(f, i);
      periods++;
    }
  return copies > UNROLLED_STATEMENTS / 2 || (periods > 2 && copies > COPIES);
}

/* The last of several conditions first: that of the innermost axis. */
static void find_all(struct default_facts *f, int condition) {
  const struct px_node *n = &f->p->nodes.data[condition];
  int own, reduction;
  if (n->op == PX_AND) {
    find_all(f, n->arg[1]);
    find_all(f, n->arg[0]);
    return;
  }
  int64_t period = period_of(f, condition, &own, &reduction);
  if (period < 2 || f->period[own] || f->period[reduction]) return;
  if (f->t->axes[own].size < period || f->t->axes[reduction].low >= 0) return;
  f->period[own] = f->period[reduction] = period;
  bool few = period <= LONGEST && default_phase_steps(f, reduction) <= STEPS;
  if (few && !are_too_many(f)) {
    f->periodic = true;
    return;
  }
  f->period[own] = f->period[reduction] = 0;
}

void default_find_phases(struct default_facts *f) {
  const struct px_node *n = &f->p->nodes.data[f->t->body];
  if (f->t->reducer != REDUCE_SUM || n->op != PX_SELECT) return;
  const struct px_node *other = &f->p->nodes.data[n->arg[2]];
  if (other->op == PX_NUMBER && other->number == 0) find_all(f, n->arg[0]);
}

/* (own + d*reduction + ...)/period moves by one from one term that there is to the next. */
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
