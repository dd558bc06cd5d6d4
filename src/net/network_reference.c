/* Runs networks by compiled references. See network_reference.h. */
#include "net/network_reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "program/interpret.h"
#include "program/program_cost.h"
#include "run/reference.h"

enum { PLACES = 24 }; /* elements of each output compared with the interpreter */

#define SMALL 2e6 /* flops per call below which the interpreter takes less than a second */

struct referee {
  const struct compiler *compiler;
};

/* ---- compared with the interpreter ----------------------------------------------------------- */

/* Both compute in double precision; only the order of sums differs. */
static bool agrees(double got, double wanted) {
  if (isnan(got) || isnan(wanted)) return isnan(got) && isnan(wanted);
  return got == wanted || fabs(got - wanted) <= 1e-6 * (1 + fabs(wanted));
}

/* Compares elements spread over the output, including the last one. */
static bool agrees_at_places(struct interpreter *in, const struct program *p, int output,
                             const double *values) {
  int tensor = p->outputs.data[output];
  int64_t elements = program_elements(p, tensor), at[PLACES];
  int count = elements < PLACES ? (int)elements : PLACES;
  double wanted[PLACES];
  for (int i = 0; i < count; i++) at[i] = count > 1 ? i * ((elements - 1) / (count - 1)) : 0;
  at[count - 1] = elements - 1;
  if (interpreter_elements(in, tensor, count, at, wanted) != CANVAS_OK) return false;
  for (int i = 0; i < count; i++)
    if (!agrees(values[at[i]], wanted[i])) return false;
  return true;
}

static bool all_agree(const struct program *p, const double *const *inputs,
                      double *const *outputs) {
  canvas_context ctx;
  struct interpreter *in = NULL;
  bool agree = interpreter_new(&ctx, p, inputs, NULL, &in) == CANVAS_OK;
  for (int i = 0; i < p->outputs.count && agree; i++)
    agree = agrees_at_places(in, p, i, outputs[i]);
  interpreter_free(in);
  return agree;
}

/* ---- one call -------------------------------------------------------------------------------- */

/* Runs the reference into memory shared with its child process, then copies the outputs. */
static canvas_status refer(canvas_context *ctx, const struct compiler *compiler,
                           const struct program *p, const struct rounding *rounding,
                           const double *const *inputs, double *const *outputs) {
  static const struct reference_limits limits = {60, (int64_t)3 << 30};
  struct block *known = mem_alloc((size_t)p->outputs.count * sizeof *known);
  canvas_status status = CANVAS_OK;
  int count = 0;
  for (; count < p->outputs.count && status == CANVAS_OK; count++) {
    size_t bytes = (size_t)program_elements(p, p->outputs.data[count]) * 2 * sizeof(double);
    if (!block_new_shared(&known[count], bytes))
      status = fail(ctx, CANVAS_IO, "no memory for a reference");
  }
  if (status == CANVAS_OK) status = reference_new(ctx, compiler, rounding, inputs, &limits, known);
  for (int i = 0; i < count; i++) {
    if (status == CANVAS_OK) memcpy(outputs[i], known[i].data, known[i].size / 2);
    block_free(&known[i]);
  }
  mem_free(known);
  return status;
}

static canvas_status evaluate(canvas_context *ctx, void *data, const struct program *p,
                              const double *const *inputs, double *const *outputs) {
  const struct referee *r = data;
  struct rounding rounding;
  if (program_flops(p) < SMALL || rounding_new(ctx, p, &rounding) != CANVAS_OK)
    return network_interpret_call(ctx, NULL, p, inputs, outputs);
  canvas_status status = refer(ctx, r->compiler, p, &rounding, inputs, outputs);
  rounding_free(&rounding);
  if (status == CANVAS_OK && all_agree(p, inputs, outputs)) return CANVAS_OK;
  return network_interpret_call(ctx, NULL, p, inputs, outputs);
}

canvas_status network_reference(canvas_context *ctx, const struct network *n,
                                const double *const *given, const struct compiler *compiler,
                                double *const *out) {
  struct referee r = {compiler};
  const struct network_evaluator evaluator = {evaluate, &r};
  return network_evaluate(ctx, n, given, NULL, &evaluator, out);
}
