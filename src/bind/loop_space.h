/* Index expressions over the loops around a stage.
 *
 * A scratch program holds them. In it the loops are the axes of an extra tensor, and every tensor
 * is flat. The axes of a stage are expressions over the open loops (constants for loops fixed at a
 * number). So the simplifier, px_range and affine.h apply to an index as a function of the loops.
 *
 *     loop_space_enter(&space, stage);        // opens all loops of a stage: axis i is step i
 *     loop_space_index(&space, index, &sum);  // an index of its expression
 *
 * or loop by loop, as a walk over the tree opens them:
 *
 *     space.digit[level] = loop_space_axis(&space, "h", 0, 14);
 *     at = space_place(&space, stage);        // place of its element in its buffer
 */
#ifndef CANVAS_BIND_LOOP_SPACE_H
#define CANVAS_BIND_LOOP_SPACE_H

#include "bind/loop_tree.h"
#include "program/affine.h"

struct loop_space {
  const struct loop_tree *tree;
  struct program *p;
  int loops;                         /* the tensor whose axes are the loops */
  int open;                          /* number of axes in use */
  const char *name[PROGRAM_AXES];    /* of the axes */
  int *digit;                        /* by level: the expression of its value; -1: not open */
  int *stage_of;                     /* by tensor: index into tree->stages; -1: an input */
  const struct bound_stage *entered; /* by loop_space_enter */
};

/* Every extent has to be known. */
void loop_space_open(struct loop_space *space, const struct loop_tree *tree);
void loop_space_close(struct loop_space *space);

/* Adds an axis: a loop over [first, first + size). Returns its expression. Borrows `name`. */
int loop_space_axis(struct loop_space *space, const char *name, int64_t first, int64_t size);

/* Rolling back drops the axes and expressions made since the checkpoint, but not the digits. */
struct space_checkpoint {
  int nodes, indices, open;
};
struct space_checkpoint loop_space_checkpoint(const struct loop_space *space);
void loop_space_rollback(struct loop_space *space, struct space_checkpoint to);

/* Drops everything and opens all loops of the stage: step i is axis i, or 0 if it has one
 * iteration. */
void loop_space_enter(struct loop_space *space, const struct bound_stage *stage);

/* Sets `sum` to an index expression of the entered stage, as an affine form over its steps. False
 * if it has too many terms. */
bool loop_space_index(struct loop_space *space, int index, struct affine *sum);

/* Expressions of a stage over its open loops; closed loops count as 0.
 * space_axis: the value of an axis; -1 if none of its loops is open.
 * space_expr: an expression of the program, with flat loads.
 * space_place: the place of its element in its buffer, or in the tensor of an output.
 * space_sum_place: the place of its accumulator, lanes last. */
int space_axis(const struct loop_space *space, const struct bound_stage *stage, int axis);
int space_expr(struct loop_space *space, const struct bound_stage *stage, int expr);
int space_expr_within(struct loop_space *space, const struct bound_stage *stage, int expr,
                      uint64_t within); /* bits of axes that are clamped to their last index */
int space_place(struct loop_space *space, const struct bound_stage *stage);
int space_sum_place(struct loop_space *space, const struct bound_stage *stage);

#endif
