/* Budgets and the solver by constraints over all targets of a network (paper 6.3). */
#ifndef CANVAS_BUDGET_BUDGET_H
#define CANVAS_BUDGET_BUDGET_H

#include "kernel/pack.h"

enum budget_kind { BUDGET_MACS, BUDGET_PARAMS, BUDGET_KINDS };

/* One end of a budget: nothing, a number, or a multiple of the layers replaced. */
struct bound {
  bool given, relative;
  double value;
};
struct budget {
  struct bound least[BUDGET_KINDS], most[BUDGET_KINDS];
};

/* "macs=0.5x,params=0.5x", "macs=900M" (k, M, G), "macs=0.2x..0.5x", "params=none", "flops=1.8G"
 * (= 2*macs). What is not named keeps 1.0x of MACs and of params. */
canvas_status budget_parse(canvas_context *ctx, const char *text, size_t length,
                           struct budget *out);

struct solve_options {
  int64_t g;              /* G of every binding; 0: 1 unless the kernel uses G, then an error */
  bool exempt;            /* copies without weights are allowed (the identity control) */
  int64_t elements_limit; /* of one tensor, per sample; 0 = 2^25 */
};

/* A binding of k for every target that fills the budget. CANVAS_NONE: no solution, the context names
 * the constraint that failed and by how much. */
canvas_status budget_solve(canvas_context *ctx, const struct kernel *k,
                           const struct targets *targets, const struct budget *budget,
                           const struct solve_options *options, struct pack **out);

#endif
