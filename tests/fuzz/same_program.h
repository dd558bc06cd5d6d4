/* Whether a program computes what another one does, as far as the interpreter can say in a moment. */
#ifndef CANVAS_TESTS_SAME_PROGRAM_H
#define CANVAS_TESTS_SAME_PROGRAM_H

#include <math.h>
#include <stdlib.h>

#include "fuzz.h"
#include "program/interpret.h"

enum { SAME_TENSORS = 16, SAME_ELEMENTS = 1 << 12 };

/* The first and the last element of each output, of inputs as `given` has them, whose axes may be merged in `p`; false
 * where they cannot be had. */
static bool evaluate(canvas_context *ctx, const struct program *given, const struct program *p,
                     double values[2 * SAME_TENSORS]) {
  static const struct interpreter_limits limits = {.bytes = 1 << 22, .steps = 1 << 16};
  struct interpreter *in = NULL;
  double *inputs[SAME_TENSORS] = {NULL};
  bool good = p->inputs.count <= SAME_TENSORS && p->outputs.count <= SAME_TENSORS;
  for (int i = 0; good && i < p->inputs.count; i++) {
    int64_t elements = program_elements(given, given->inputs.data[i]);
    good = elements <= SAME_ELEMENTS;
    if (good) program_fill(given, i, 1, inputs[i] = calloc((size_t)elements, sizeof **inputs));
  }
  good = good && fine(ctx, interpreter_new(ctx, p, (const double *const *)inputs, &limits, &in));
  for (int i = 0; good && i < p->outputs.count; i++) {
    const int64_t flat[] = {0, program_elements(p, p->outputs.data[i]) - 1};
    good = fine(ctx, interpreter_elements(in, p->outputs.data[i], 2, flat, values + 2 * i));
  }
  interpreter_free(in);
  for (int i = 0; i < SAME_TENSORS; i++) free(inputs[i]);
  return good;
}

/* `slack`: of a value, for sums in another order and one rounding more; 0: the same bits. */
static void must_compute(canvas_context *ctx, const struct program *p, const struct program *q,
                         double slack, const char *what) {
  double a[2 * SAME_TENSORS], b[2 * SAME_TENSORS];
  if (!evaluate(ctx, p, p, a) || !evaluate(ctx, p, q, b)) return;
  for (int i = 0; i < 2 * p->outputs.count; i++)
    must(a[i] == b[i] || (isnan(a[i]) && isnan(b[i])) ||
             fabs(a[i] - b[i]) <= slack * (1 + fabs(a[i])),
         what);
}

#endif
