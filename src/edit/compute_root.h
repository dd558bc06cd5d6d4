/* A stage that is computed within the loops of its consumers is computed before them, in loops of its own at
 * the root, and so is what it reads: a copy of all of it can stand between.
 *
 *     i, k =>            i, k =>
 *         @E = i, k  ->      @E = i, k
 *         @S = i // k    i, k =>
 *                            @S = i // k
 */
#ifndef CANVAS_EDIT_COMPUTE_ROOT_H
#define CANVAS_EDIT_COMPUTE_ROOT_H

#include "bind/loop_tree.h"

/* *out is bound for the same program and machine, and yours. */
canvas_status schedule_compute_root(canvas_context *ctx, const struct loop_tree *tree, int tensor,
                                    struct loop_tree **out);

#endif
