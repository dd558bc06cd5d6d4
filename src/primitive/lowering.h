/* What a family's `lower` hook works with: the program under construction.
 *
 * Every node becomes at least one stage whose axes are [r: copies, if more than one][n: batch] and
 * then the axes of the node's shape. A `place` names one element of a node: an index expression per
 * axis, the copy and batch axes first.
 */
#ifndef CANVAS_PRIMITIVE_LOWERING_H
#define CANVAS_PRIMITIVE_LOWERING_H

#include "kernel/kernel.h"
#include "program/program.h"

struct lowering {
  const struct kernel *k;
  const struct sizes *sizes;
  int64_t copies, batch;
  bool normed; /* inner weights have a bias: their norm, folded */
  struct program *p;
  int tensor[KERNEL_NODES_MAX]; /* the stage that holds each node's result */
  int weights;                  /* how many were declared so far: w0, w1, ... */
};

struct place {
  int lead[2], leads; /* copy (if any) and batch */
  int axis[AXES_MAX]; /* as the node's shape */
};

/* The whole value of a dim; checked by binding_check before lowering starts. */
int64_t lowering_size(const struct lowering *l, const struct dim *d);
/* The index times a stride; unchanged where that is 1. */
int lowering_strided(struct lowering *l, int index, const struct dim *stride);
/* A stage named after the node (plus `suffix`) with the axes of `shape`; *at = its own element. */
int lowering_stage(struct lowering *l, int node, const char *suffix, const struct shape *shape,
                   struct place *at);
/* Element `at` of a node's result, of any stage with the leading axes. */
int lowering_load(struct lowering *l, int tensor, const struct place *at, int rank);
/* The next weight, that of `node`: [copies,] then its outputs and the axes of its other roles. */
int lowering_weight(struct lowering *l, int node);
/* Whether the node has a bias: then the stage of lowering_weighted is named `node`_sum, and
 * lowering_biased appends the stage with the name of the node, that sum plus an input b0, b1, ...
 * numbered like the weight. Without a bias it is the stage itself. */
int lowering_weighted(struct lowering *l, int node, struct place *at);
int lowering_biased(struct lowering *l, int node, int sum);
/* Row-major: the flat index of axes [first, first+count) of a shape at `at`, and its inverse. */
int lowering_flatten(struct lowering *l, const struct shape *s, const struct place *at, int first,
                     int count);
void lowering_unflatten(struct lowering *l, const struct shape *s, int flat, int first, int count,
                        struct place *at);
const char *role_axis(enum role role); /* "g", "c", "kc", "kh", "kw", "h", "w", "g_2", ... */

#endif
