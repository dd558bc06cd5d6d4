/* Bounds the distance of code from the interpreter that rounding explains, per element.
 *
 * The bound of a program is itself a program (running error analysis, Wilkinson 1960s). Next to
 * each stage S, which is evaluated in double precision, a stage bounds the distance of the code's
 * value of the same element. With u = 2^-24 (2 * 2^-53 for stages computed in fp64), |a| for
 * magnitudes and e(a) for the error bound of an operand:
 *
 *     e(a + b)      = e(a) + e(b) + u |a + b|
 *     e(a * b)      = |a| e(b) + |b| e(a) + e(a) e(b) + u |a b|       (fused or not)
 *     e(sum of K)   = sum of e(t) + (K + 1) u |t|      for any order of the sum
 *     e(if c ...)   = that of the branch taken; of either branch if c compares values that are
 *                     closer than their errors
 *     e(f(a))       = the effect of e(a) on f, plus 8 u for the rounding of f
 *
 * For a convolution this is (K + 2) u times the sum of |input * weight|, to first order. Data
 * movement is exact: a stage of loads and constants has no bound. An element of bf16 may also be
 * off by one place. Infinity adds nothing to a bound, and code must give the same one. If there is
 * no bound (a divisor that may be zero), the bound is infinite.
 */
#ifndef CANVAS_RUN_ROUNDING_H
#define CANVAS_RUN_ROUNDING_H

#include "program/program.h"

/* Distance that every bound allows, even 0: fp32 resolves nothing smaller. */
#define ROUNDING_LEAST 0x1p-120

struct rounding {
  struct program *program; /* stages and their bounds; unchanged inputs */
  int *value, *error;      /* by output: tensors of `program`; error is -1 if exact */
};

/* CANVAS_BAD_INPUT: the bound exceeds a limit of programs. */
canvas_status rounding_new(canvas_context *ctx, const struct program *p, struct rounding *out);
void rounding_free(struct rounding *r);

#endif
