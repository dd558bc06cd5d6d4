/* The predicted time of a bound schedule, by a closed formula. It ranks candidates before any of
 * them is compiled.
 *
 *     cost_places.c   addresses of loads and stores: strides of loops, footprints of accesses
 *     cost_caches.c   footprints of loops, and the traffic into each cache
 *     cost_compute.c  cycles in registers: operations, loads, stores, dependent additions, spills
 *     schedule_cost.c time of all of it, at the rates of a machine
 *     policy.h        weights and limits
 *
 * It works on any bound schedule. It predicts one thread with warm caches: data that fits into a
 * cache is in it from the call before. The time of a stage is the longer of two times, in
 * registers and of transfers into L1, and a part of the shorter one, as the two overlap
 * incompletely.
 */
#ifndef CANVAS_COST_SCHEDULE_COST_H
#define CANVAS_COST_SCHEDULE_COST_H

#include "bind/loop_tree.h"
#include "cost/rates.h"

/* Seconds of each resource alone, as if the others took no time. */
struct cost_parts {
  double seconds; /* predicted time in total */
  double compute; /* arithmetic and functions */
  double loads;   /* loads and stores at L1, gathers */
  double waits;   /* latency of dependent additions, loops that begin and end */
  double l2, l3;  /* transfers from L2 and from L3 */
  double memory;  /* transfers from memory */
};

struct schedule_cost {
  double seconds;
  struct cost_parts all;
  struct cost_parts *stages; /* by stage of the tree; NULL after cost_of */
};

/* Needs a tree without holes. The predicted time is finite and above zero. CANVAS_BAD_INPUT for
 * holes, and for a program with a count above 2^62. */
canvas_status cost_of(canvas_context *ctx, const struct loop_tree *tree, const struct rates *rates,
                      struct schedule_cost *out);

/* Also fills a row per stage, which cost_free frees. */
canvas_status cost_of_stages(canvas_context *ctx, const struct loop_tree *tree,
                             const struct rates *rates, struct schedule_cost *out);
void cost_free(struct schedule_cost *cost);

/* cost_print.c: a table of the stages. Needs the rows of cost_of_stages. */
void cost_print(const struct loop_tree *tree, const struct rates *rates,
                const struct schedule_cost *cost, struct buf *out);

#endif
