/* What a bound schedule does, in words and numbers, and as a picture. */
#ifndef CANVAS_EXPLAIN_EXPLAIN_H
#define CANVAS_EXPLAIN_EXPLAIN_H

#include "base/buf.h"
#include "bind/loop_tree.h"
#include "cost/rates.h"

/* explain.c: the loops with their steps, how often each runs, what an iteration touches and where
 * that fits; the stages with operations, recomputation, registers, buffers and traffic; their predicted time
 * at the rates of the machine that the tree is bound for. Fails where a number of the program passes
 * 2^62. A tree with open holes shows its loops only, and needs no rates. */
canvas_status schedule_explain(canvas_context *ctx, const struct loop_tree *tree,
                               const struct rates *rates, struct buf *out);

/* schedule_dot.c: Graphviz. Loops as a tree with the stages as its leaves, what flows between stages
 * and from inputs, and the splits of the axes. */
void schedule_dot(const struct loop_tree *tree, struct buf *out);

/* explain.c: "{n, h}:para", "yi:unroll". */
void schedule_loop_text(const struct schedule *s, const struct schedule_loop *loop,
                        struct buf *out);

#endif
