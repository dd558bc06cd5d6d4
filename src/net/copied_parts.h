/* Detects programs that copy contiguous parts (concatenations, slices, splits, reshapes) by
 * analysing their indices. */
#ifndef CANVAS_NET_COPIED_PARTS_H
#define CANVAS_NET_COPIED_PARTS_H

#include "program/program.h"

/* Elements [to, to + count) of an output, row-major, are elements [from, from + count) of an
 * input. */
struct copied_part {
  int input; /* a tensor of the program */
  int64_t from, to, count;
};

enum { COPIED_PARTS = 64 };

/* Fills the parts that make up the output, in order; returns their number. 0: the output is not
 * made of contiguous parts, or of more than COPIED_PARTS. */
int copied_parts(const struct program *p, int output, struct copied_part *out);

/* Whether all outputs consist of contiguous copies: they may share the inputs' memory, and the call
 * does nothing. */
bool only_copies(const struct program *p);

#endif
