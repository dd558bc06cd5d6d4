/* Symbolic indices: where an element stands along an axis, in the sizes of a kernel.
 *
 * An index is a sum of terms: a dim times a variable, a number, half a dim rounded down, or the
 * quotient or the remainder of another index. Variables count from 0 and know their range. Sums,
 * quotients and remainders are simplified as they are made, by what holds for all legal sizes.
 */
#ifndef CANVAS_PRIMITIVE_INDEX_H
#define CANVAS_PRIMITIVE_INDEX_H

#include "base/memory.h"
#include "dim/dim.h"

enum index_kind { INDEX_VARIABLE, INDEX_NUMBER, INDEX_HALF, INDEX_QUOTIENT, INDEX_REMAINDER };

struct term {
  int sign; /* 1 or -1 */
  struct dim times;
  enum index_kind kind;
  struct dim range; /* the term without `times` is below it and not negative; poisoned: unknown */
  const char *name; /* VARIABLE */
  int64_t value;    /* NUMBER: at least 1 */
  struct dim by;    /* HALF: the dim; QUOTIENT, REMAINDER: the divisor */
  const struct index *of; /* QUOTIENT, REMAINDER */
};
struct index {
  int count;
  struct term term[]; /* none: 0 */
};

const struct index *index_zero(struct arena *a);
const struct index *index_variable(struct arena *a, const char *name, const struct dim *range);
/* number * times, number < range. */
const struct index *index_number(struct arena *a, int64_t number, const struct dim *times,
                                 const struct dim *range);
const struct index *index_half(struct arena *a, const struct dim *d);
const struct index *index_add(struct arena *a, const struct index *l, const struct index *r);
const struct index *index_sub(struct arena *a, const struct index *l, const struct index *r);
const struct index *index_mul(struct arena *a, const struct index *l, const struct dim *by);
const struct index *index_div(struct arena *a, const struct index *l, const struct dim *by);
const struct index *index_mod(struct arena *a, const struct index *l, const struct dim *by);
/* How many terms it has, those of quotients and remainders included. */
int index_weight(const struct index *l);

/* "g·C/G + c", "(h - 1) mod H", "⌊c/G⌋"; dims with · for *. */
void index_print(const struct index *l, struct buf *out);
void index_print_dim(const struct dim *d, struct buf *out);
/* The same in parentheses unless it is one word. */
void index_print_divisor(const struct dim *d, struct buf *out);

#endif
