/* A program widened: the same values in fp64, for a reference that is compiled.
 *
 * Every stage and every input but those of i32 becomes fp64, and of each tensor one axis goes last: the
 * lane axis, along which a stage's vectors run. It is one of the stage's own axes, never a reduction's,
 * so that each element is a plain sum in the interpreter's order:
 *
 *     Y[n, co, h, w] = X[n, ci, h+kh, w+kw] * W[co, ci, kh, kw]      lanes along co, rows of w:
 *     Y[n, h, w, co] = X[n, ci, h+kh, w+kw] * W[ci, kh, kw, co]
 *
 *     n, h, w, co_o, ci, kh, kw, co_v:16:vec =>
 *         @Y = n, h, w, {co_o, co_v}/co // ci, kh, kw
 *
 * Stages stand at the root in the program's order, without tiles, tails, threads or unrolled loops: what a
 * schedule under test makes use of, the reference does not.
 */
#ifndef CANVAS_RUN_WIDENED_H
#define CANVAS_RUN_WIDENED_H

#include "bind/machine.h"
#include "schedule/schedule.h"

struct widened {
  struct program *program;
  struct schedule *schedule;
  int (*order)[PROGRAM_AXES]; /* by tensor: place i is that of the old axis order[i] */
  int64_t bytes;              /* of all tensors that outputs need */
};

/* The tensors have the numbers that they have in `p`. CANVAS_BAD_INPUT: it cannot be widened, as a
 * stage of bf16, which rounds where it is stored. */
canvas_status widened_new(canvas_context *ctx, const struct program *p,
                          const struct machine *machine, struct widened *out);
void widened_free(struct widened *w);

/* A whole tensor of `p` with its axes in the new order, and back. */
void widened_put(const struct widened *w, const struct program *p, int tensor, const double *old,
                 double *permuted);
void widened_get(const struct widened *w, const struct program *p, int tensor,
                 const double *permuted, double *old);

#endif
