// Two programs give the same, whatever edits one of them has seen.
#ifndef TEST_SAME_VALUES_H
#define TEST_SAME_VALUES_H

#include "check.h"
#include "program/interpret.h"
#include "program/program_cost.h"

// Of every `step`-th element of the first output; of input `infinite` element 7 is that, the last one nan; -1: of none.
static void same_values(canvas_context *ctx, const struct program *p, const struct program *q,
                        const char *label, int64_t step, int infinite) {
  struct interpreter *a, *b;
  double *inputs[64], x, y;
  for (int i = 0; i < p->inputs.count; i++) {
    int64_t count = program_elements(p, p->inputs.data[i]);
    inputs[i] = mem_alloc((size_t)count * sizeof(double));
    program_fill(p, i, 1, inputs[i]);
    if (i != infinite) continue;
    inputs[i][7] = INFINITY;
    inputs[i][count - 1] = NAN;
  }
  CHECK_INT(interpreter_new(ctx, p, (const double *const *)inputs, NULL, &a), CANVAS_OK, label);
  CHECK_INT(interpreter_new(ctx, q, (const double *const *)inputs, NULL, &b), CANVAS_OK, label);
  for (int64_t i = 0; i < program_elements(p, p->outputs.data[0]); i += step) {
    CHECK_INT(interpreter_elements(a, p->outputs.data[0], 1, &i, &x), CANVAS_OK, label);
    CHECK_INT(interpreter_elements(b, q->outputs.data[0], 1, &i, &y), CANVAS_OK, label);
    if (x != y && !(fabs(x - y) <= 1e-9 * (1 + fabs(x))) && !(isnan(x) && isnan(y)))
      fail_msg("%s: element %lld is %g, not %g", label, (long long)i, y, x);
  }
  interpreter_free(a);
  interpreter_free(b);
  for (int i = 0; i < p->inputs.count; i++) free(inputs[i]);
}

#endif
