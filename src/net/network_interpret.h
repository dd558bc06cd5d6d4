/* The meaning of a network: its calls in order, each run by the interpreter of programs
 * (interpret.h).
 *
 * Values are rounded to their data type between calls as within a program.
 */
#ifndef CANVAS_NET_NETWORK_INTERPRET_H
#define CANVAS_NET_NETWORK_INTERPRET_H

#include "net/memory_plan.h"

/* given[tensor]: elements, row-major, of each input and weight (NULL for values). out[i] receives
 * the output n->outputs[i]. With a plan, values share memory as planned; without, each has its own.
 * The inputs are checked first. */
canvas_status network_interpret(canvas_context *ctx, const struct network *n,
                                const double *const *given, const struct memory_plan *plan,
                                double *const *out);

/* As network_interpret, with an evaluator of calls: `call` fills all outputs of the program, each
 * with room for all of its elements. */
struct network_evaluator {
  canvas_status (*call)(canvas_context *ctx, void *data, const struct program *p,
                        const double *const *inputs, double *const *outputs);
  void *data;
};
canvas_status network_evaluate(canvas_context *ctx, const struct network *n,
                               const double *const *given, const struct memory_plan *plan,
                               const struct network_evaluator *evaluator, double *const *out);
/* The evaluator of network_interpret. */
canvas_status network_interpret_call(canvas_context *ctx, void *data, const struct program *p,
                                     const double *const *inputs, double *const *outputs);

/* Values for an input or a weight, as program_fill makes them: normally distributed, for weights
 * divided by the root of the fan-in; a pure function of (seed, tensor). */
void network_fill(const struct network *n, int tensor, uint64_t seed, double *values);

#endif
