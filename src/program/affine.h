/* Index expressions as affine forms: coefficients times expressions, plus a constant.
 *
 *     h*58 + (w + kh*58) - 59   ->   58*h + 1*w + 58*kh, constant -59
 *
 * A quotient, a remainder or a load of an index is a term of its own. Terms are in the order of
 * the text; equal expressions are one term, and no coefficient is 0. A product or sum of constants
 * that overflows 64 bits stays a term, so every form is exact.
 */
#ifndef CANVAS_PROGRAM_AFFINE_H
#define CANVAS_PROGRAM_AFFINE_H

#include "program/program.h"

enum { AFFINE_TERMS = 64 };

struct affine_term {
  int expr;
  int64_t coef;
};

struct affine {
  struct affine_term term[AFFINE_TERMS];
  int count;
  int64_t constant;
  bool merged; /* adding has merged two terms or two constants; never reset by affine_add */
};

/* affine_of sets `a` to the form of the expression; affine_add adds times * expr. False if there
 * are too many terms: `a` is invalid then. */
bool affine_of(const struct program *p, int expr, struct affine *a);
bool affine_add(const struct program *p, struct affine *a, int expr, int64_t times);
void affine_drop(struct affine *a, int term);

/* simplify.c: builds the expression of a form, without a leading sign if possible, the constant
 * last. */
int affine_expr(struct program *p, const struct affine *a);

/* The range of the form relative to its value at fixed axes: terms that depend on the axes in
 * `fixed` only count as 0. If `fixed` is not empty, terms that depend on no axis count as 0, too.
 * Sets only `low`, `high` and `overflow`. */
struct px_range affine_range(const struct program *p, const struct affine *a, uint32_t fixed);

/* The stride of the axis; false if the form is not affine in it. */
bool affine_stride(const struct program *p, const struct affine *a, int axis, int64_t *stride);

/* px_same.c: whether the expression depends on the axis with this position. False for -1. */
bool px_mentions(const struct program *p, int expr, int axis);

/* px_same.c: whether the expression is a condition on indices only, or an index. */
bool is_index_condition(const struct program *p, int expr);

#endif
