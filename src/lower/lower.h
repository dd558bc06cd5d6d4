/* Kernel + binding -> program: what a kernel means at one target. */
#ifndef CANVAS_LOWER_LOWER_H
#define CANVAS_LOWER_LOWER_H

#include "kernel/pack.h"
#include "program/program.h"

/* The whole replaced layer: input X [n, Cin, H, W], the weight `projection` [Cout, Cin] where the
 * target is projected, weights w0, w1, ... (a leading axis of copies r
 * where there is more than one), behind each weight with a norm the bias that the norm is folded
 * into, b0 behind w0, output Y [n, Cout, ceil(H/stride), ceil(W/stride)]; pooling,
 * projection, copies and averaging included, the layer's bias not. Node results are stages named as in the kernel, but
 * what only moves data (group, unfold, shift) is no stage: it is indices in those that load it. */
canvas_status lower_binding(canvas_context *ctx, const struct kernel *k, const struct binding *b,
                            int64_t batch, struct program **out);

/* The same with a stage for every node: tensors[i] holds node i's result. */
canvas_status lower_nodes(canvas_context *ctx, const struct kernel *k, const struct binding *b,
                          int64_t batch, struct program **out, int tensors[KERNEL_NODES_MAX]);

#endif
