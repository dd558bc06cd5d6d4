/* Functions of fp32 vectors that the text of C defines for itself: exp, log, tanh, ... */
#ifndef CANVAS_EMIT_VECTOR_MATH_H
#define CANVAS_EMIT_VECTOR_MATH_H

#include <stdbool.h>

#include "base/buf.h"
#include "program/program.h"

/* The macros that EXP_V16(x) needs, itself included: a set of bits; 0 where the operation has none.
 */
unsigned vector_math_of(enum px_op op);

/* The macros of such a set for vectors of so many lanes; what is defined once in a file. */
void vector_math_print(unsigned used, int lanes, struct buf *out);
void vector_math_print_once(unsigned used, struct buf *out);

/* GREATER_V16(x, y), LESSER_V16(x, y), which the set above has of fp32; wide: GREATER_D8(x, y).
 * They name x and y twice. */
void vector_math_print_extremum(bool greater, bool wide, int lanes, struct buf *out);

#endif
