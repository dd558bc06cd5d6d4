/* Moves a stage out of the loops of its consumers into own loops at the root, as Halide's
 * compute_root, and so the stages that it loads. A copy of the whole stage can then stand in
 * between.
 *
 *     i, k =>            i, k =>
 *         @E = i, k  ->      @E = i, k
 *         @S = i // k    i, k =>
 *                            @S = i // k
 */
#ifndef CANVAS_EDIT_COMPUTE_ROOT_H
#define CANVAS_EDIT_COMPUTE_ROOT_H

#include "bind/loop_tree.h"

/* *out is bound for the same program and machine, and owned by the caller. */
canvas_status schedule_compute_root(canvas_context *ctx, const struct loop_tree *tree, int tensor,
                                    struct loop_tree **out);

#endif
