/* Counts of a bound schedule: operations, memory and traffic, for explain and cost models.
 *
 * The decisions are in the tree itself (loop_tree.h): lanes, unrolling, peeling, parallelism and
 * statements of each loop, and the storage of each stage.
 */
#ifndef CANVAS_BIND_FEATURES_H
#define CANVAS_BIND_FEATURES_H

#include "bind/loop_tree.h"

struct loop_features {
  int64_t iterations; /* in all */
  int64_t bytes;      /* touched by one iteration; of the root: by everything */
};

struct stage_features {
  int64_t flops;       /* in all, with recomputation */
  int64_t point_flops; /* of one point of its loops */
  int64_t registers;   /* of its tile: accumulators, a row of operands, one more; 0: no reduction */
  int64_t variables;   /* named, of values and accumulators */
  int64_t stack, heap; /* bytes */
  int64_t copies;      /* of its statement in the code */
  int64_t into_l1, into_l2; /* traffic: bytes loaded into these caches */
};

struct features {
  struct loop_features *loops;   /* by node */
  struct stage_features *stages; /* as in the tree */
  struct stage_features all;     /* sums over the stages; registers: the maximum */
};

/* Every extent has to be known. Fails if a number of the program exceeds 2^62. */
canvas_status features_of(canvas_context *ctx, const struct loop_tree *tree, struct features *out);
void features_free(struct features *f); /* call it even after a failure */

#endif
