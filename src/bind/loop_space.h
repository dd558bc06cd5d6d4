/* Indices as sums over the loops around a stage.
 *
 * A program is made in which the loops are the axes of one more tensor; a stage's own axes are
 * expressions over them, so that the simplifier and px_range know what the loops make of an index.
 */
#ifndef CANVAS_BIND_LOOP_SPACE_H
#define CANVAS_BIND_LOOP_SPACE_H

#include "bind/loop_tree.h"
#include "program/affine.h"

struct loop_space {
  const struct loop_tree *tree;
  struct program *p;
  int loops;              /* the tensor whose axes are the loops */
  int axes[PROGRAM_AXES]; /* of the stage that was entered, as expressions of p */
};

/* Every extent is known. Closing frees what opening made. */
void loop_space_open(struct loop_space *space, const struct loop_tree *tree);
void loop_space_close(struct loop_space *space);
void loop_space_enter(struct loop_space *space, const struct bound_stage *stage);

/* An index expression of the program, read by the stage that was entered, as a sum over its steps:
 * axis i of the form is step i. False where it has too many terms. */
bool loop_space_index(struct loop_space *space, int index, struct affine *sum);

#endif
