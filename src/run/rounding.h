/* How far code may be from the interpreter by rounding alone: a bound per element, no guess.
 *
 * The bound of a program is itself a program (running error analysis, Wilkinson 1960s): beside each
 * stage S, which is evaluated in double precision, stands a stage that bounds how far the code's value
 * of the same element may be away. With u = 2^-24 (2^-53 twice where a stage is computed in fp64), |a|
 * for magnitudes and e(a) for what is known about the error of an operand,
 *
 *     e(a + b)      = e(a) + e(b) + u |a + b|
 *     e(a * b)      = |a| e(b) + |b| e(a) + e(a) e(b) + u |a b|       (fused or not)
 *     e(sum of K)   = sum of e(t) + (K + 1) u |t|      whatever the order, tree or lanes of the sum
 *     e(if c ...)   = that of the branch taken; where c compares values that are nearer than
 *                     their errors, both branches must do
 *     e(f(a))       = what f makes of e(a), and 8 u for its own last bits
 *
 * so that for a convolution it is (K + 2) u times the sum of |input * weight|, to first order. Moving data
 * costs nothing: a stage of loads and constants has no bound and must be met exactly. An element of bf16
 * may in addition be off by one place. An infinity has no last place: it adds nothing to a bound, and code
 * has to give the same one. Where nothing can be said (a divisor that may be zero) the bound is infinite.
 */
#ifndef CANVAS_RUN_ROUNDING_H
#define CANVAS_RUN_ROUNDING_H

#include "program/program.h"

/* What a bound of 0 still allows, and any other: fp32 has nothing smaller to say. */
#define ROUNDING_LEAST 0x1p-120

struct rounding {
  struct program *program; /* the stages and their bounds, inputs as they were */
  int *value, *error;      /* by output: tensors of `program`; error -1: exact */
};

/* Fails with CANVAS_BAD_INPUT where an expression is too deep to be bounded. */
canvas_status rounding_new(canvas_context *ctx, const struct program *p, struct rounding *out);
void rounding_free(struct rounding *r);

#endif
