/* What a family's `formula` and `reads` hooks work with: the lines of a formula under construction.
 *
 * A node that computes has a line `name[indices] = ...`, and one that only moves data has none: it is part
 * of the indices of what reads it. It has a line of its own after all where that is not possible, since
 * zeros outside of it are not zeros outside of its input, or where the indices would get long.
 */
#ifndef CANVAS_PRIMITIVE_FORMULA_H
#define CANVAS_PRIMITIVE_FORMULA_H

#include "kernel/kernel.h"
#include "primitive/index.h"

enum { FORMULA_VARIABLES = 3 * AXES_MAX };

struct formula {
  const struct kernel *k;
  struct arena arena; /* strings and indices below and those that the functions return */
  struct buf lines;
  const char *name[KERNEL_NODES_MAX]; /* of each tensor: x, y, or the node's name */
  int weight[KERNEL_NODES_MAX];       /* i of Wi; -1 where a node has none */
  bool own[KERNEL_NODES_MAX];         /* has a line of its own */
  bool outside[KERNEL_NODES_MAX];     /* some line reads it where an index is outside: 0 */
  int last;                           /* the node whose line is that of y */
  unsigned usual;                     /* roles whose variables have their usual range somewhere */
  /* of the current line */
  const char *variable[FORMULA_VARIABLES];
  int variables;
  const char *unusual; /* ", c < x0": ranges of its element that are not the usual ones */
};

/* One element of a node. */
struct spot {
  const struct index *axis[AXES_MAX]; /* as the node's shape */
  unsigned outside;                   /* bit per axis: the index may be outside, where all is 0 */
};

void formula_open(struct formula *f, const struct kernel *k);
void formula_close(struct formula *f);

/* A name for another tensor that no node has. */
const char *formula_name(struct formula *f, const char *name);
/* A string that lives as long as the formula. */
const char *formula_text(struct formula *f, const char *format, ...) PRINTF_LIKE(2, 3);
/* "G·KH·KW"; with `divisor` in parentheses unless it is one word. */
const char *formula_dim(struct formula *f, const struct dim *d, bool divisor);
/* "H·W", how many elements the axes with these roles have; with `divisor` as formula_dim. */
const char *formula_elements(struct formula *f, const struct shape *s, unsigned roles,
                             bool divisor);

/* Starts a line: a variable for each axis of the shape, 0 for those of size 1. */
void formula_element(struct formula *f, const struct shape *s, struct spot *at);
/* A variable that a sum binds, named after a role; appends its range, "k < C", to *ranges. */
const struct index *formula_bound(struct formula *f, enum role role, const struct dim *range,
                                  const char **ranges);
/* The same for all axes with these roles; the others stay as in `at`. */
void formula_bound_axes(struct formula *f, const struct shape *s, unsigned roles,
                        const struct spot *at, struct spot *to, const char **ranges);
/* "Σ(k < C) "; "" for no ranges */
const char *formula_over(struct formula *f, const char *sign, const char *ranges);
/* "1/C·Σ(k < C) ", a mean along the axes with these roles; "" for no ranges */
const char *formula_mean(struct formula *f, const struct shape *s, unsigned roles,
                         const char *ranges);
/* "b[c, h, w]", of a node or of any tensor with this name. */
const char *formula_read(struct formula *f, int node, const struct spot *at);
const char *formula_place(struct formula *f, const char *name, const struct spot *at, int rank);
/* "W0[c, k]" */
const char *formula_weight(struct formula *f, int node, const struct spot *at, int rank);
/* Writes the line of a node, or of another tensor. */
void formula_line(struct formula *f, int node, const struct spot *at, const char *value);
void formula_line_of(struct formula *f, const char *place, const char *value);

/* Row-major: the flat index of axes [first, first + count) of a shape, and its inverse. */
const struct index *formula_flatten(struct formula *f, const struct shape *s, const struct spot *at,
                                    int first, int count);
void formula_unflatten(struct formula *f, const struct shape *s, const struct index *flat,
                       int first, int count, struct spot *at);

/* All lines, of all nodes. */
void formula_lines(struct formula *f);

#endif
