/* Constant folding at load time: splits a program into one that depends on constant inputs only
 * (`in W f32 [..] const`) and the rest. Packed weights are computed once instead of in every call.
 *
 *     in X f32 [n:8, k:64]
 *     in W f32 [o:32, k:64] const
 *     WP[o_o:2, k:64, o_i:16] = W[o_o*16+o_i, k]
 *     Y[n:8, o:32] = X[n, k] * WP[o/16, k, o%16] // sum k:64
 * -> prepare, called once:
 *     in W f32 [o:32, k:64]
 *     WP[o_o:2, k:64, o_i:16] = W[o_o*16+o_i, k]
 *     out WP
 * -> rest, called for each X:
 *     in X f32 [n:8, k:64]
 *     in WP f32 [o_o:2, k:64, o_i:16]
 *     Y[n:8, o:32] = X[n, k] * WP[o/16, k, o%16] // sum k:64
 *
 * A loop nest at the root of the schedule is prepared if all its stages depend on constant inputs
 * only and none is an output. The tensors that the rest loads are stored in one block of memory,
 * each whole: row-major, or in the layout of its schedule (prepare_layout.h).
 */
#ifndef CANVAS_PREPARE_PREPARE_H
#define CANVAS_PREPARE_PREPARE_H

#include "bind/loop_tree.h"

enum { PREPARE_ALIGNMENT = 64 }; /* bytes: of the block of memory, and of each tensor in it */

struct prepared_part {
  struct program *program;
  struct loop_tree *tree; /* bound for the same machine; it owns its schedule */
  bool *uses_input;       /* by input of the whole program: this part loads it */
};

struct prepared {
  struct prepared_part prepare, rest; /* the outputs of `prepare` are the last inputs of `rest` */
  int count;                          /* of the stored tensors: the outputs of `prepare` */
  int64_t *offset;                    /* of each stored tensor, in bytes */
  int64_t bytes;                      /* of the whole block of memory */
};

/* *out is NULL if there is nothing to prepare, or the parts are not legal. The tree has no open
 * holes. */
canvas_status prepare_split(canvas_context *ctx, const struct loop_tree *tree,
                            struct prepared **out);
void prepare_free(struct prepared *prepared); /* NULL is fine */

#endif
