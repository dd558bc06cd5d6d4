/* Attributes of nodes: text, and whether two are the same. The table stands in primitive.h. */
#ifndef CANVAS_KERNEL_ATTRIBUTES_H
#define CANVAS_KERNEL_ATTRIBUTES_H

#include "base/lexer.h"
#include "kernel/primitive.h"

/* What stands after the key, and the field of struct attrs that holds it. */
enum value_kind {
  VALUE_DIM,     /* dim: a dimension */
  VALUE_AXES,    /* over: axes with commas between */
  VALUE_WINDOW,  /* amount: K or a number >= 1 */
  VALUE_PIXELS,  /* amount: a number of either sign */
  VALUE_ZERO,    /* zero_fill: the word zero */
  VALUE_DISTANCE /* dilation: a number >= 1 */
};

struct attribute_row {
  const char *key, *form;
  enum value_kind kind;
  bool optional;
};
extern const struct attribute_row attributes[ATTRIBUTE_COUNT];

/* The value after `key=`. */
canvas_status attribute_parse(struct lexer *lx, enum attribute attribute, struct attrs *a);
/* " over=KH,KW k=3": those of the bits in `which`; the optional ones where they say something. */
void attributes_print(unsigned which, const struct attrs *a, struct buf *out);

/* All fields but dim as numbers: what tells two nodes apart, and what their hash is made of. */
enum { ATTRS_NUMBERS = 2 };
void attrs_numbers(const struct attrs *a, uint64_t out[ATTRS_NUMBERS]);
bool attrs_equal(const struct attrs *a, const struct attrs *b);

#endif
