/* What depends on constant inputs only (`in W f32 [..] const`), apart: two programs of one.
 *
 *     WP[..] = W[..]                           prepare: in W, out WP
 *     Y[..] = X[..] * WP[..] // sum ..    ->   rest:    in X, in WP, out Y
 *
 * Apart are the nests at the schedule's root in which every stage depends on constant inputs only and is
 * no output. What the others read of them lies in one piece of memory, each tensor whole, row-major, or as its
 * schedule lays it out (prepare_layout.h).
 */
#ifndef CANVAS_PREPARE_PREPARE_H
#define CANVAS_PREPARE_PREPARE_H

#include "bind/loop_tree.h"

enum { PREPARE_ALIGNMENT = 64 }; /* of the memory, and of each tensor in it */

struct prepared_part {
  struct program *program;
  struct loop_tree *tree; /* bound for the same machine; it owns its schedule */
  bool *uses_input;       /* by input of the whole: the part reads it */
};

struct prepared {
  struct prepared_part prepare, rest; /* the outputs of one are the last inputs of the other */
  int count;                          /* so many */
  int64_t *offset;                    /* of each, in bytes */
  int64_t bytes;                      /* of all */
};

/* *out is NULL where there is nothing to prepare. Every number of the tree is known. */
canvas_status prepare_split(canvas_context *ctx, const struct loop_tree *tree,
                            struct prepared **out);
void prepare_free(struct prepared *prepared); /* NULL is fine */

#endif
