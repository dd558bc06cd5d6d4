/* Edits of a schedule: each is one step of a search.
 *
 * An edit copies a bound schedule, makes one change, drops loops and levels that have become
 * useless, and binds the copy for the same program and machine, which checks it. Free *out with
 * loop_tree_free. On failure the context has the reason why the change is not legal.
 *
 * Arguments name loops by node and splits by level of the given tree; *out numbers both anew. An
 * edited schedule has no lines and columns.
 *
 *     i, j, k =>                 i, i_i:4, j, k =>
 *         @P = i, j // k             @P = {i, i_i}/i, j // k
 *     i, j =>                    i, i_i, j =>
 *         @Y = i, j                  @Y = {i, i_i}/i, j
 *                 `split i 4` ->
 */
#ifndef CANVAS_EDIT_SCHEDULE_EDIT_H
#define CANVAS_EDIT_SCHEDULE_EDIT_H

#include "bind/loop_tree.h"

/* Splits a loop: y  ->  y, y_i:inner  in all loops, axes and layouts; `inner` divides the extent.
 * `para` and the tail stay with the outer loop, `vec` goes to the inner one, `unroll` to both. */
canvas_status edit_split(canvas_context *ctx, const struct loop_tree *tree, int level,
                         int64_t inner, struct loop_tree **out);

/* Fuses two loops: yo, yi  ->  yo, with the product of the extents. They have to be adjacent
 * wherever one of them occurs. */
canvas_status edit_merge(canvas_context *ctx, const struct loop_tree *tree, int outer, int inner,
                         struct loop_tree **out);

/* Interchanges two loops: x, y => ...  ->  y, x => ...  `node` is loop x, and y is its only
 * child. */
canvas_status edit_reorder(canvas_context *ctx, const struct loop_tree *tree, int node,
                           struct loop_tree **out);

/* Moves stage tree->stages[stage] into loop (or root) `parent`, before its child `before` (-1: at
 * the end): compute_at. The stage keeps those of its own loops that are not around `parent`, in
 * their order, and gets copies of the loops that it shared with other stages. */
canvas_status edit_move(canvas_context *ctx, const struct loop_tree *tree, int stage, int parent,
                        int before, struct loop_tree **out);

/* Groups two loops: x, y  ->  {x, y} with these marks. `node` is x, and y is its only child; either
 * may be a group. edit_ungroup: {x, y}  ->  x, y without marks. */
canvas_status edit_group(canvas_context *ctx, const struct loop_tree *tree, int node,
                         unsigned marks, struct loop_tree **out);
canvas_status edit_ungroup(canvas_context *ctx, const struct loop_tree *tree, int node,
                           struct loop_tree **out);

/* Sets the marks (enum loop_mark) and the prefetch distance, in iterations, of one loop. */
canvas_status edit_mark(canvas_context *ctx, const struct loop_tree *tree, int node, unsigned marks,
                        int prefetch, struct loop_tree **out);

/* Sets how the remainder of an axis is computed, of all axes that the level is a part of. */
canvas_status edit_tail(canvas_context *ctx, const struct loop_tree *tree, int level,
                        enum level_tail tail, struct loop_tree **out);

/* Sets the extent of a level: EXTENT_INT with `extent`; EXTENT_OPEN or EXTENT_HOLE without. */
canvas_status edit_extent(canvas_context *ctx, const struct loop_tree *tree, int level,
                          enum level_extent kind, int64_t extent, struct loop_tree **out);

/* Sets the layout of a stage's buffer (axes or levels by name, slowest first) and its scope. */
canvas_status edit_buffer(canvas_context *ctx, const struct loop_tree *tree, int stage, int count,
                          const char *const *layout, enum buffer_scope scope,
                          struct loop_tree **out);

#endif
