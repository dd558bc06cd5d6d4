/* All elements of a program's outputs and their bounds, from compiled code.
 *
 * The program of values and bounds (rounding.h), widened to fp64 (widened.h), goes through the emitter and
 * the compiler that candidates go through, and runs once, in a child with limits. So it is not believed
 * by itself: expected.c compares it with the interpreter at places, and does without it where they
 * differ. What the two have in common then are program and bound, which define what is right, and no
 * code.
 */
#ifndef CANVAS_RUN_REFERENCE_H
#define CANVAS_RUN_REFERENCE_H

#include "run/block.h"
#include "run/compiler.h"
#include "run/rounding.h"

struct reference_limits {
  double seconds;
  int64_t memory; /* bytes of all tensors, widened */
};

/* Into known[i], zeroed memory that children share, go the values of output i, then as many bounds (0
 * stays where it is exact), row-major, as `inputs` are. Fails with the reason why there is no reference. */
canvas_status reference_new(canvas_context *ctx, const struct compiler *c,
                            const struct rounding *rounding, const double *const *inputs,
                            const struct reference_limits *limits, const struct block *known);

#endif
