/* Weights that cannot matter: on an image of one pixel, or of few, a shift may bring nothing but zeros
 * and a softmax may be a constant. Whatever is trained before them gets no gradient.
 */
#ifndef CANVAS_LOWER_IDLE_WEIGHTS_H
#define CANVAS_LOWER_IDLE_WEIGHTS_H

#include "kernel/pack.h"

/* Weights are tested where the image has at most FEW_PIXELS along an axis, or the kernel looks past it:
 * some node reads pixels as far apart as an axis is long. Nowhere else is a weight idle for the size
 * of the image. */
enum { FEW_PIXELS = 3 };
bool idle_tested(const struct kernel *k, const struct sizes *at);

/* The first weight of k (0: w0) of which not every number can matter at these sizes, or -1. A number
 * matters where it multiplies what depends on the image and the output depends on the product. A
 * weight is idle, too, where none of its numbers matters for a third of all random weights.
 * -1 where it is not tested.
 *
 * The test is numeric: gradients of the kernel's program on random images, with few channels. Its
 * arithmetic is that of IEEE 754 without any library: the result is the same on every machine. */
int idle_weight(const struct kernel *k, const struct sizes *at);

/* CANVAS_NONE with a message that names the target and the weight, where one is idle. */
canvas_status binding_check_idle(canvas_context *ctx, const struct kernel *k,
                                 const struct binding *b);

#endif
