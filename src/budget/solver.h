/* The steps of the solver by constraints: base values and doublings (paper 6.3), then single steps that
 * fill the rest, and an exchange of sizes where a least is not reached.
 *
 * x_ij, variable j at target i, lives in bindings[i].sizes. All comparisons are of whole numbers,
 * so that a budget of exactly the cost is met on every machine.
 */
#ifndef CANVAS_BUDGET_SOLVER_H
#define CANVAS_BUDGET_SOLVER_H

#include "budget/budget.h"

/* Macs and params of one binding, copies included. */
struct spending {
  int64_t of[BUDGET_KINDS];
};

struct problem {
  const struct kernel *kernel;
  unsigned variables;       /* a bit per x of the kernel */
  int count;                /* targets */
  struct binding *bindings; /* one per target */
  struct sizes *unit;       /* of each target: the least value of each x; its multiples are whole */
  bool separate;            /* no other values are: no dim with a denominator joins two variables */
  int64_t elements_limit;
  int64_t least[BUDGET_KINDS], most[BUDGET_KINDS]; /* 0, INT64_MAX: none */
  /* What the sizes in `bindings` spend, since problem_measure: */
  struct node_use *uses; /* of each target, its nodes */
  struct spending *now;  /* of each target */
  struct spending total;
};

/* -- spending.c -- */
/* The first target before target i that has the same layer and sizes; i if there is none. */
int problem_like(const struct problem *p, int i);
/* Fills uses, now and total; false as problem_total. */
bool problem_measure(struct problem *p);
/* Of one node; false past 2^62, where a dim is not whole, or where it is over a limit. */
bool problem_use(const struct problem *p, const struct binding *b, int node, struct node_use *out);
bool spending_add(struct spending *sum, const struct node_use *use);
/* False past 2^62, where a dim is not whole, or where a size or tensor is over its limit. */
bool problem_spending(const struct problem *p, const struct binding *b, struct spending *out);
bool problem_total(const struct problem *p, struct spending *out);

/* -- base_sizes.c -- */
/* Sets every x_ij to its unit, the smallest value that makes every dim and condition whole.
 * CANVAS_NONE where no value can. */
canvas_status problem_units(canvas_context *ctx, struct problem *p);
/* Scales the units so that x_ij / x_1j is about C_i / C_1, target 1 the one with the fewest channels:
 * the base values of the paper. CANVAS_NONE where one is too large. */
canvas_status problem_scale(canvas_context *ctx, struct problem *p);
void problem_unscale(struct problem *p); /* back to the units */

/* -- growth.c -- */
/* Doubles the x_ij while the budgets and limits allow it. The sizes so far must fit, and be measured
 * (problem_measure), as they are afterwards. */
void problem_grow(struct problem *p, struct solve_trace *trace);
/* Adds units to the x_ij until no single one fits any more. */
void problem_fill(struct problem *p, struct solve_trace *trace);

/* -- exchange.c -- */
/* Looks for sizes that reach every least, beginning with those that are near. The units must fit. If
 * there are none, the sizes stay. GIVEN_UP: not all were tried. */
enum exchange { EXCHANGE_FOUND, EXCHANGE_NONE, EXCHANGE_GIVEN_UP };
enum exchange problem_exchange(struct problem *p);

#endif
