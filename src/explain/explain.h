/* Explains a bound schedule: a table of numbers, and a picture. */
#ifndef CANVAS_EXPLAIN_EXPLAIN_H
#define CANVAS_EXPLAIN_EXPLAIN_H

#include "base/buf.h"
#include "bind/loop_tree.h"
#include "cost/rates.h"

/* explain.c: prints the loops with their extents, iterations, footprint and the cache it fits into;
 * the stages with operations, recomputation, registers, buffers and traffic; and the predicted time
 * at the rates of the tree's machine. Fails if a number of the program exceeds 2^62. A tree with
 * open holes shows its loops only, and needs no rates. */
canvas_status schedule_explain(canvas_context *ctx, const struct loop_tree *tree,
                               const struct rates *rates, struct buf *out);

/* schedule_dot.c: prints Graphviz. Loops are a tree with the stages as leaves; edges show the data
 * that flows from inputs and between stages; below are the splits of the axes. */
void schedule_dot(const struct loop_tree *tree, struct buf *out);

/* explain.c: prints a loop, as "{n, h}:para" or "yi:unroll". */
void schedule_loop_text(const struct schedule *s, const struct schedule_loop *loop,
                        struct buf *out);

#endif
