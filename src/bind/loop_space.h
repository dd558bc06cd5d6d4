/* Indices over the loops around a stage.
 *
 * A program is made in which the loops are the axes of one more tensor, and every tensor is flat. A
 * stage's own axes are expressions over the loops that stand open, constants where a loop stands at
 * a number, so that the simplifier, px_range and affine.h know what the loops make of an index.
 *
 *     loop_space_enter(&space, stage);              // all loops of a stage open: axis i is step i
 *     loop_space_index(&space, index, &sum);        // an index of its expression
 *
 * or loop by loop, as a walk over the tree opens them:
 *
 *     space.digit[level] = loop_space_axis(&space, "h", 0, 14);
 *     at = space_place(&space, stage);              // of its element, in its buffer
 */
#ifndef CANVAS_BIND_LOOP_SPACE_H
#define CANVAS_BIND_LOOP_SPACE_H

#include "bind/loop_tree.h"
#include "program/affine.h"

struct loop_space {
  const struct loop_tree *tree;
  struct program *p;
  int loops;                      /* the tensor whose axes are the loops */
  int open;                       /* axes in use */
  const char *name[PROGRAM_AXES]; /* of the axes */
  int *digit;                     /* by level: its value; -1: not open */
  int *stage_of;                  /* by tensor: of tree->stages; -1: an input */
  const struct bound_stage *entered;
};

/* Every extent is known. Closing frees what opening made. */
void loop_space_open(struct loop_space *space, const struct loop_tree *tree);
void loop_space_close(struct loop_space *space);

/* One more axis: a loop over [first, first + size); `name` is kept as it is. */
int loop_space_axis(struct loop_space *space, const char *name, int64_t first, int64_t size);

/* What was made since the checkpoint is forgotten: axes, and expressions but for the digits. */
struct space_checkpoint {
  int nodes, indices, open;
};
struct space_checkpoint loop_space_checkpoint(const struct loop_space *space);
void loop_space_rollback(struct loop_space *space, struct space_checkpoint to);

/* Forgets everything and opens all loops of the stage: step i is axis i, or 0 if it has one
 * iteration. */
void loop_space_enter(struct loop_space *space, const struct bound_stage *stage);

/* An index expression of the program, read by the stage that was entered, as a sum over its steps.
 * False where it has too many terms. */
bool loop_space_index(struct loop_space *space, int index, struct affine *sum);

/* Of a stage, as far as its loops stand open (others count as 0): the value of an axis, -1 if none of
 * its loops does; an expression of the program, loads flat; the place of its element in its buffer,
 * or in the tensor of an output; the place of its accumulator, lanes last. */
int space_axis(const struct loop_space *space, const struct bound_stage *stage, int axis);
int space_expr(struct loop_space *space, const struct bound_stage *stage, int expr);
int space_expr_within(struct loop_space *space, const struct bound_stage *stage, int expr,
                      uint64_t within); /* these axes are no larger than their last element's */
int space_place(struct loop_space *space, const struct bound_stage *stage);
int space_sum_place(struct loop_space *space, const struct bound_stage *stage);

#endif
