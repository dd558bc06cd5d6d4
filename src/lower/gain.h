/* Gains: how far fan-in scaling must be corrected so that a kernel's numbers stay near 1. */
#ifndef CANVAS_LOWER_GAIN_H
#define CANVAS_LOWER_GAIN_H

#include "kernel/pack.h"

/* One gain per weight of k in node order (gains[0] for w0, ...): weights drawn with a standard
 * deviation of gain/sqrt(fan_in) give every fully connected primitive an output of unit size on
 * unit noise. 1 where fan-in scaling alone is within a factor of 2. Deterministic: the kernel is
 * interpreted at a small binding like the pack's first, on seeded noise. */
canvas_status gain_estimate(canvas_context *ctx, const struct kernel *k, const struct pack *p,
                            double gains[KERNEL_NODES_MAX]);

/* A small binding of k: G = 4 or less, the least legal C >= 16 and x, H = W = 6, KH and KW as in
 * `like`; false if none of the tried is legal. */
bool gain_small_binding(canvas_context *ctx, const struct kernel *k, const struct sizes *like,
                        struct binding *out);

#endif
