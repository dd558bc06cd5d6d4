/* Layouts of tensors, as the edit `pack` has them: each axis of the layout is an index of the
 * tensor's axes, and each axis of the tensor is an index of the layout's. program_edit.h gives the
 * syntax.
 *
 *     W[k:32, c:64, kh:3] in the layout [k/16, c, kh, k%16]
 *
 *     WP[k_o:2, c:64, kh:3, k_i:16] = W[k_o*16+k_i, c, kh]        layout_element
 *     W[k, c, kh]                   = WP[k/16, c, kh, k%16]       layout_place
 */
#ifndef CANVAS_REWRITE_PROGRAM_LAYOUT_H
#define CANVAS_REWRITE_PROGRAM_LAYOUT_H

#include "base/lexer.h"
#include "program/program.h"

/* A part of a tensor axis: its value is axis / weight % extent. In axis `place` of the layout it
 * has the stride `step`. */
struct digit {
  int axis, place;
  int64_t weight, extent, step;
};

struct layout {
  struct program *scratch; /* holds the expressions; its only input is the tensor */
  int rank;
  const char *names[PROGRAM_AXES]; /* of the layout's axes */
  int indices[PROGRAM_AXES];       /* of the tensor's axes, by axis of the layout */
  int64_t sizes[PROGRAM_AXES];     /* by axis of the layout */
  struct digit digits[2 * PROGRAM_AXES];
  int count; /* of digits */
};

/* Parses `[co/32, ci, co%32]`, a layout of a tensor of `p`; the lexer is at the `[`. Free the
 * layout even on failure. */
canvas_status layout_parse(struct lexer *lx, const struct program *p, int tensor,
                           struct layout *out);
void layout_free(struct layout *layout);

/* Builds in `to` the layout indices of the tensor element with these indices. */
void layout_place(const struct layout *layout, struct program *to, const int *tensor_indices,
                  int *layout_indices);
/* Builds in `to` the tensor indices of the element at this place of the layout. Returns the
 * condition that there is an element: the place is not padding. */
int layout_element(const struct layout *layout, struct program *to, const int *layout_indices,
                   int *tensor_indices);

#endif
