/* Budgets and the solver by constraints over all targets of a network (paper 6.3). */
#ifndef CANVAS_BUDGET_BUDGET_H
#define CANVAS_BUDGET_BUDGET_H

#include "kernel/pack.h"

enum budget_kind { BUDGET_MACS, BUDGET_PARAMS, BUDGET_KINDS };

/* One end of a budget: nothing, a number, or a multiple of the layers replaced. The value is
 * exactly num/den as it was written; den is a power of ten. */
struct bound {
  bool given, relative;
  bool usual; /* the default: nothing names it */
  int64_t num, den;
};
struct budget {
  struct bound least[BUDGET_KINDS], most[BUDGET_KINDS];
};

/* -- text (budget_text.c) -- */
struct budget budget_default(void); /* 1.0x of MACs and of params, no least */
/* "macs=0.5x,params=0.5x", "macs=900M" (k, M, G), "macs=0.2x..0.5x", "params=none", "flops=1.8G"
 * (= 2*macs). What is not named keeps its default; the empty text is rejected. */
canvas_status budget_parse(canvas_context *ctx, const char *text, size_t length,
                           struct budget *out);
void budget_print(const struct budget *b, struct buf *out); /* parses back to the same budget */
void bound_print(const struct bound *b, struct buf *out);   /* "0.5x", "900000000", "none" */
const char *budget_kind_name(enum budget_kind kind);        /* "macs", "params" */

/* -- the solver (solve.c) -- */
/* What the solver did, for tests and reports. */
struct solve_trace {
  int rounds;    /* iterations of growth in which something was doubled */
  int doublings; /* of one variable at one target */
  int steps;     /* afterwards, of a power of two of units */
  int free;      /* pairs of a target and a variable */
  int64_t baseline[BUDGET_KINDS], base[BUDGET_KINDS], used[BUDGET_KINDS];
  int64_t most[BUDGET_KINDS]; /* INT64_MAX: no budget */
};

struct solve_options {
  int64_t g;                 /* G of every binding; 0: 1 unless the kernel uses G, then an error */
  bool exempt;               /* copies without weights (the identity control), and weights that
                                cannot matter on a small image, are allowed */
  enum norm norm;            /* of every binding */
  int64_t elements_limit;    /* of one tensor, per sample; 0 = 2^25 */
  bool paper;                /* base values and doublings alone, as published */
  struct solve_trace *trace; /* NULL, or filled in as far as the solver came */
};

/* A binding of k for every target that fills the budget. CANVAS_NONE: no solution exists, the context
 * names the constraint that failed and by how much; or, where its message begins with "not found",
 * the solver did not find one. */
canvas_status budget_solve(canvas_context *ctx, const struct kernel *k,
                           const struct targets *targets, const struct budget *budget,
                           const struct solve_options *options, struct pack **out);

#endif
