/* Edits of a schedule: one step of a search each.
 *
 * An edit is a function of a bound schedule: a copy, one change, and the check of the whole. *out is
 * the changed schedule, bound for the same program and machine and to be freed with loop_tree_free,
 * without what the change made useless; or the context says why not. Loops are named as nodes, splits as levels, of the tree that is given; in
 * *out both have numbers of their own. What is built has no lines and columns.
 */
#ifndef CANVAS_EDIT_SCHEDULE_EDIT_H
#define CANVAS_EDIT_SCHEDULE_EDIT_H

#include "bind/loop_tree.h"

/* y  ->  y, y_i:inner  in all loops, axes and layouts; `inner` divides the extent. Marks: `para` and
 * the tail stay with the outer loop, `vec` goes to the inner one, `unroll` to both. */
canvas_status edit_split(canvas_context *ctx, const struct loop_tree *tree, int level,
                         int64_t inner, struct loop_tree **out);

/* yo, yi  ->  yo, of both their extents; wherever one of them stands, they have to stand together. */
canvas_status edit_merge(canvas_context *ctx, const struct loop_tree *tree, int outer, int inner,
                         struct loop_tree **out);

/* x, y => ...  ->  y, x => ...  where `node` is loop x and y is all that stands in it. */
canvas_status edit_reorder(canvas_context *ctx, const struct loop_tree *tree, int node,
                           struct loop_tree **out);

/* Stage tree->stages[stage] leaves its place and is computed in loop (or root) `parent`, before its
 * child `before` (-1: at the end). It keeps those of its loops that `parent` does not give it, in their
 * order, and opens those anew that it shared before. */
canvas_status edit_move(canvas_context *ctx, const struct loop_tree *tree, int stage, int parent,
                        int before, struct loop_tree **out);

/* x, y  ->  {x, y} with these marks, where `node` is x and y all that stands in it; either may be a
 * group. And back: {x, y}  ->  x, y without marks. */
canvas_status edit_group(canvas_context *ctx, const struct loop_tree *tree, int node,
                         unsigned marks, struct loop_tree **out);
canvas_status edit_ungroup(canvas_context *ctx, const struct loop_tree *tree, int node,
                           struct loop_tree **out);

/* The marks (enum loop_mark) and the prefetch of one loop. */
canvas_status edit_mark(canvas_context *ctx, const struct loop_tree *tree, int node, unsigned marks,
                        int prefetch, struct loop_tree **out);

/* What happens to the remainder of the axes that the level is a part of. */
canvas_status edit_tail(canvas_context *ctx, const struct loop_tree *tree, int level,
                        enum level_tail tail, struct loop_tree **out);

/* The number of a level: EXTENT_INT with `extent`, EXTENT_OPEN or EXTENT_HOLE without. */
canvas_status edit_extent(canvas_context *ctx, const struct loop_tree *tree, int level,
                          enum level_extent kind, int64_t extent, struct loop_tree **out);

/* The layout of what a stage keeps: axes or levels by name, slowest first; and its scope. */
canvas_status edit_buffer(canvas_context *ctx, const struct loop_tree *tree, int stage, int count,
                          const char *const *layout, enum buffer_scope scope,
                          struct loop_tree **out);

#endif
