/* Computes all output elements and their bounds by compiled code.
 *
 * The program of values and bounds (rounding.h), widened to fp64 (widened.h), is emitted, compiled
 * and run once in a child with limits. The same emitter and compiler produce the candidates, so
 * expected.c does not trust the result: it compares places with the interpreter and drops a
 * reference that differs. The two share the program and its bound, which define what is right, but
 * no code.
 */
#ifndef CANVAS_RUN_REFERENCE_H
#define CANVAS_RUN_REFERENCE_H

#include "run/block.h"
#include "run/compiler.h"
#include "run/rounding.h"

struct reference_limits {
  double seconds;
  int64_t memory; /* bytes of all tensors in fp64 */
};

/* Fills known[i], zeroed memory shared with children, with the values of output i and then as many
 * bounds (0 if exact), row-major like `inputs`. Fails with the reason why there is no reference. */
canvas_status reference_new(canvas_context *ctx, const struct compiler *c,
                            const struct rounding *rounding, const double *const *inputs,
                            const struct reference_limits *limits, const struct block *known);

#endif
