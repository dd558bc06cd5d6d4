/* A kernel that takes the stride of its target itself, from one whose input is pooled by it. */
#ifndef CANVAS_KERNEL_KERNEL_STRIDE_H
#define CANVAS_KERNEL_KERNEL_STRIDE_H

#include "kernel/kernel.h"

/* Where the stride is taken. */
enum stride_mode {
  STRIDE_POOL,   /* average pooling before the kernel: the kernel as it is */
  STRIDE_WINDOW, /* the first unfold along each axis, on each path from the input */
  STRIDE_OUTPUT  /* the kernel at full size, then each S-th pixel of its result */
};

/* `pool`, `window` or `output`. */
canvas_status stride_mode_parse(canvas_context *ctx, const char *word, enum stride_mode *out);

/* Where a path without a window meets one with, in a broadcast or the output, `window` subsamples the
 * former, as early as kernel_subsample_early can. The axis of a scale= follows. CANVAS_BAD_INPUT for a
 * kernel that uses S, one whose sizes hold H or W (`window`), or one of too many nodes. */
canvas_status kernel_with_stride(canvas_context *ctx, const struct kernel *k, enum stride_mode mode,
                                 struct kernel **out);

/* A kernel of the same values where no node computes a pixel that nobody reads: a subsample stands
 * before all nodes whose results it alone keeps, up to the last that sees more than one pixel or the
 * input. A copy if the kernel would have too many nodes. */
struct kernel *kernel_subsample_early(const struct kernel *k);

#endif
