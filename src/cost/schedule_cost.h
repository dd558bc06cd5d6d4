/* The predicted time of a bound schedule, in closed form: what ranks candidates before any is compiled.
 *
 *     cost_places.c   where each load and store goes: how far a step of each loop moves it, the bytes
 *                     that it touches while the loops outside stand still
 *     cost_caches.c   what that makes each cache bring in
 *     cost_compute.c  what a stage does in registers: operations, loads, stores, chains of sums, spills
 *     schedule_cost.c all of it, and the time it takes at the rates of a machine
 *
 * It works on any bound schedule, of one thread, hot: what fits into a cache is there from the call
 * before. The time of a stage is the longer of the time in registers and the time of what comes from
 * beyond the first cache, and a part of the other, which do not overlap entirely.
 */
#ifndef CANVAS_COST_SCHEDULE_COST_H
#define CANVAS_COST_SCHEDULE_COST_H

#include "bind/loop_tree.h"
#include "cost/rates.h"

/* Seconds, each as if there were nothing else. */
struct cost_parts {
  double seconds; /* predicted, in all */
  double compute; /* arithmetic, and functions */
  double loads;   /* loads and stores of the first cache, elements that are gathered */
  double waits;   /* for a sum to be added to again, loops that begin and end */
  double l2, l3;  /* lines from the second cache, from the third */
  double memory;  /* ... and from beyond */
};

struct schedule_cost {
  double seconds;
  struct cost_parts all;
  struct cost_parts *stages; /* as in the tree; NULL: not asked for */
};

/* Every number of the tree is known. CANVAS_BAD_INPUT where one of the program passes 2^62: then *out is
 * of no use. The answer is finite and above zero. */
canvas_status cost_of(canvas_context *ctx, const struct loop_tree *tree, const struct rates *rates,
                      struct schedule_cost *out);

/* The same, with a row for each stage, which cost_free frees. */
canvas_status cost_of_stages(canvas_context *ctx, const struct loop_tree *tree,
                             const struct rates *rates, struct schedule_cost *out);
void cost_free(struct schedule_cost *cost);

/* cost_print.c: a table of the stages, of a cost that has rows for them. */
void cost_print(const struct loop_tree *tree, const struct rates *rates,
                const struct schedule_cost *cost, struct buf *out);

#endif
