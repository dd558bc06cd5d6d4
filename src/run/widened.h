/* Widens a program to fp64, for a compiled reference.
 *
 * All stages and all inputs except i32 become fp64. One axis of each tensor is moved last: the
 * vector axis. It is an own axis of the stage, never a reduction, so that each element is summed in
 * the interpreter's order:
 *
 *     Y[n, co, h, w] = X[n, ci, h+kh, w+kw] * W[co, ci, kh, kw]      vectors along co, rows of w:
 *     Y[n, h, w, co] = X[n, ci, h+kh, w+kw] * W[ci, kh, kw, co]
 *
 *     n, h, w, co_o, ci, kh, kw, co_v:16:vec =>
 *         @Y = n, h, w, {co_o, co_v}/co // ci, kh, kw
 *
 * Stages are separate loop nests in program order, without fusion, remainder loops or threads, so
 * that the reference shares little with the schedules under test.
 */
#ifndef CANVAS_RUN_WIDENED_H
#define CANVAS_RUN_WIDENED_H

#include "bind/machine.h"
#include "schedule/schedule.h"

struct widened {
  struct program *program;
  struct schedule *schedule;
  int (*order)[PROGRAM_AXES]; /* by tensor: new axis i is the old axis order[i] */
  int64_t bytes;              /* bytes of all tensors on which outputs depend */
};

/* Tensors keep their numbers in `p`. CANVAS_BAD_INPUT: a stage of bf16, which rounds when stored,
 * cannot be widened. */
canvas_status widened_new(canvas_context *ctx, const struct program *p,
                          const struct machine *machine, struct widened *out);
void widened_free(struct widened *w);

/* Permutes a tensor of `p` to the new order of axes, and back. */
void widened_put(const struct widened *w, const struct program *p, int tensor, const double *old,
                 double *permuted);
void widened_get(const struct widened *w, const struct program *p, int tensor,
                 const double *permuted, double *old);

#endif
