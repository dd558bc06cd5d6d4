/* Attributes of nodes: their text and equality. primitive.h has their table. */
#ifndef CANVAS_KERNEL_ATTRIBUTES_H
#define CANVAS_KERNEL_ATTRIBUTES_H

#include "base/lexer.h"
#include "kernel/primitive.h"

/* Kinds of values after a key, and the field of struct attrs that holds them. */
enum value_kind {
  VALUE_DIM,     /* in `dim`: a dimension */
  VALUE_AXES,    /* in `over`: axes, separated by commas */
  VALUE_AXES2,   /* the same in `with` */
  VALUE_AXES3,   /* the same in `each` */
  VALUE_WINDOW,  /* in `amount`: K or a number >= 1 */
  VALUE_PIXELS,  /* in `amount`: a number of either sign */
  VALUE_INDEX,   /* in `amount`: a number >= 0 */
  VALUE_ZERO,    /* in `zero_fill`: the word zero */
  VALUE_DISTANCE /* in `dilation`: a number >= 1 */
};

struct attribute_row {
  const char *key, *form;
  enum value_kind kind;
  bool optional;
};
extern const struct attribute_row attributes[ATTRIBUTE_COUNT];

/* Parses the value after `key=`. */
canvas_status attribute_parse(struct lexer *lx, enum attribute attribute, struct attrs *a);
/* Prints the attributes of the mask `which`, e.g. " over=KH,KW k=3", without optional ones that
 * have their default. */
void attributes_print(unsigned which, const struct attrs *a, struct buf *out);

/* All fields except dim as numbers, for comparing and hashing. */
enum { ATTRS_NUMBERS = 2 };
void attrs_numbers(const struct attrs *a, uint64_t out[ATTRS_NUMBERS]);
bool attrs_equal(const struct attrs *a, const struct attrs *b);

#endif
