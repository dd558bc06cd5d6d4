/* What a bound schedule costs, in numbers: one struct for explain and for cost models.
 *
 * Beside them stand the decisions, in the tree itself: loop_tree.h says of each loop its lanes,
 * whether it is unrolled, peeled or parallel and its statements, of each stage its storage.
 */
#ifndef CANVAS_BIND_FEATURES_H
#define CANVAS_BIND_FEATURES_H

#include "bind/loop_tree.h"

struct loop_features {
  int64_t iterations; /* its iterations in all */
  int64_t bytes;      /* that one iteration touches; of the root: all */
};

struct stage_features {
  int64_t flops;       /* in all, what is computed again included */
  int64_t point_flops; /* of one point of its loops */
  int64_t registers;   /* of its tile: accumulators, a row of operands and one more; 0: no sums */
  int64_t variables;   /* named, of values and of accumulators */
  int64_t stack, heap; /* bytes */
  int64_t copies;      /* so often its statement stands in the code */
  int64_t into_l1, into_l2; /* bytes that it brings into these caches */
};

struct features {
  struct loop_features *loops;   /* by node */
  struct stage_features *stages; /* as in the tree */
  struct stage_features all;     /* sums; registers: the most */
};

/* Every extent is known. Fails where a number of the program passes 2^62. */
canvas_status features_of(canvas_context *ctx, const struct loop_tree *tree, struct features *out);
void features_free(struct features *f); /* also after a failure */

#endif
