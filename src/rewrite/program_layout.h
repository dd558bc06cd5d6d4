/* Layouts of tensors: each axis of a layout is an index of the axes of a tensor, and the other way
 * round. See program_edit.h for what is written. */
#ifndef CANVAS_REWRITE_PROGRAM_LAYOUT_H
#define CANVAS_REWRITE_PROGRAM_LAYOUT_H

#include "base/lexer.h"
#include "program/program.h"

/* A part of an axis: its value is axis / weight % extent, and it stands in axis `place` of the layout,
 * where one step of it is `step`. */
struct digit {
  int axis, place;
  int64_t weight, extent, step;
};

struct layout {
  struct program *scratch; /* one input: the tensor; the indices are its expressions */
  int rank;
  const char *names[PROGRAM_AXES]; /* of the layout's axes */
  int indices[PROGRAM_AXES];
  int64_t sizes[PROGRAM_AXES];
  struct digit digits[2 * PROGRAM_AXES];
  int count;
};

/* `[co/32, ci, co%32]`, of a tensor of `p`; the lexer stands at the `[`. To be freed in any case. */
canvas_status layout_parse(struct lexer *lx, const struct program *p, int tensor,
                           struct layout *out);
void layout_free(struct layout *layout);

/* In program `to`: the indices into the layout of an element of the tensor, */
void layout_place(const struct layout *layout, struct program *to, const int *tensor_indices,
                  int *layout_indices);
/* ... and the indices of the element at a place of the layout; answers the condition that there is
 * one. */
int layout_element(const struct layout *layout, struct program *to, const int *layout_indices,
                   int *tensor_indices);

#endif
