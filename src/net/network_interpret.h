/* What a network means: its calls in order, each by the interpreter of programs (interpret.h).
 *
 * Values are rounded as their type stores them, between calls as within a program.
 */
#ifndef CANVAS_NET_NETWORK_INTERPRET_H
#define CANVAS_NET_NETWORK_INTERPRET_H

#include "net/memory_plan.h"

/* given[tensor] is the whole tensor, row-major, of each input and weight (NULL for values); out[i] has
 * room for the output n->outputs[i]. With a plan, values share memory as it says; without, each has its
 * own. The inputs are checked first. */
canvas_status network_interpret(canvas_context *ctx, const struct network *n,
                                const double *const *given, const struct memory_plan *plan,
                                double *const *out);

/* The same, where calls may be evaluated in another way: `call` has all outputs of the program, as many
 * numbers as it has elements each. */
struct network_evaluator {
  canvas_status (*call)(canvas_context *ctx, void *data, const struct program *p,
                        const double *const *inputs, double *const *outputs);
  void *data;
};
canvas_status network_evaluate(canvas_context *ctx, const struct network *n,
                               const double *const *given, const struct memory_plan *plan,
                               const struct network_evaluator *evaluator, double *const *out);
/* By the interpreter: what `call` is otherwise. */
canvas_status network_interpret_call(canvas_context *ctx, void *data, const struct program *p,
                                     const double *const *inputs, double *const *outputs);

/* Values for an input or a weight, as program_fill has them: normal numbers, of a weight divided by the
 * root of its fan-in; a pure function of (seed, tensor). */
void network_fill(const struct network *n, int tensor, uint64_t seed, double *values);

#endif
