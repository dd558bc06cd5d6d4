/* The two steps of the solver by constraints (paper 6.3): base values, then growth.
 *
 * x_ij, variable j at target i, lives in bindings[i].sizes. All comparisons are of whole numbers,
 * so that a budget of exactly the cost is met on every machine.
 */
#ifndef CANVAS_BUDGET_SOLVER_H
#define CANVAS_BUDGET_SOLVER_H

#include "budget/budget.h"

struct problem {
  const struct kernel *kernel;
  unsigned variables;       /* a bit per x of the kernel */
  int count;                /* targets */
  struct binding *bindings; /* one per target */
  int64_t elements_limit;
  int64_t least[BUDGET_KINDS], most[BUDGET_KINDS]; /* 0, INT64_MAX: none */
};

/* Macs and params of one binding, copies included. */
struct spending {
  int64_t of[BUDGET_KINDS];
};
/* False past 2^62, where a dim is not whole, or where a size or tensor is over its limit. */
bool problem_spending(const struct problem *p, const struct binding *b, struct spending *out);
bool problem_total(const struct problem *p, struct spending *out);

/* Sets every x_ij to its base value (base_sizes.c): the smallest values that make every dim and
 * condition whole, then scaled so that x_ij / x_1j is about C_i / C_1, target 1 the one with the
 * fewest channels. CANVAS_NONE where no value can. */
canvas_status problem_base(canvas_context *ctx, struct problem *p);

/* Doubles the x_ij while the budgets and limits allow it (doubling.c). The base must fit. */
void problem_grow(struct problem *p, struct solve_trace *trace);

#endif
