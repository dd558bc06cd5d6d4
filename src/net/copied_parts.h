/* Programs that copy contiguous parts: concatenations, slices, splits and reshapes, by what their indices say. */
#ifndef CANVAS_NET_COPIED_PARTS_H
#define CANVAS_NET_COPIED_PARTS_H

#include "program/program.h"

/* Elements [to, to + count) of an output, row-major, are elements [from, from + count) of an input. */
struct copied_part {
  int input; /* a tensor of the program */
  int64_t from, to, count;
};

enum { COPIED_PARTS = 64 };

/* The parts in order, which are all of the output, and how many they are; 0: it is not made of such, or of more
 * than COPIED_PARTS. */
int copied_parts(const struct program *p, int output, struct copied_part *out);

/* All outputs are made of such: they may lie where the inputs do, and nothing is done for them. */
bool only_copies(const struct program *p);

#endif
