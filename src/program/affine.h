/* Index expressions as sums: coefficients times expressions, and a constant.
 *
 *     h*58 + (w + kh*58) - 59   ->   58*h + 1*w + 58*kh, constant -59
 *
 * What is no sum (quotients, remainders, loads of indices) is a term of its own. Terms stand in the
 * order of the text, equal expressions are one term, and no coefficient is 0. A product or a sum
 * of constants that does not fit into 64 bits stays a term, so that no form is ever wrong.
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
  bool merged; /* adding made one term of two, or one constant: nothing here clears it */
};

/* The form of an expression; a += times * expr. False if there are too many terms: then `a` is of
 * no use. */
bool affine_of(const struct program *p, int expr, struct affine *a);
bool affine_add(const struct program *p, struct affine *a, int expr, int64_t times);
void affine_drop(struct affine *a, int term);

/* simplify.c: the expression again, no sign in front of it if that can be, the constant at its end. */
int affine_expr(struct program *p, const struct affine *a);

/* All values while the axes in `still` do not move: terms of those axes alone count as 0, and with
 * any axis still so do terms of no axis. Of `low`, `high` and `overflow` only. */
struct px_range affine_range(const struct program *p, const struct affine *a, uint32_t fixed);

/* How far one step of the axis moves the value; false if not always as far. */
bool affine_stride(const struct program *p, const struct affine *a, int axis, int64_t *stride);

/* px_same.c: the axis, by its position, occurs in an expression. Of -1 nothing does. */
bool px_mentions(const struct program *p, int expr, int axis);

/* px_same.c: an index, or a condition of indices alone. */
bool is_index_condition(const struct program *p, int expr);

#endif
