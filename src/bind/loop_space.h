/* Indices as sums over the loops around a stage.
 *
 * A program is made in which the loops are the axes of one more tensor; a stage's own axes are
 * expressions over them, so that the simplifier and px_range know what the loops make of an index.
 */
#ifndef CANVAS_BIND_LOOP_SPACE_H
#define CANVAS_BIND_LOOP_SPACE_H

#include "bind/loop_tree.h"

struct loop_space {
  const struct loop_tree *tree;
  struct program *p;
  int loops;              /* the tensor whose axes are the loops */
  int axes[PROGRAM_AXES]; /* of the stage that was entered, as expressions of p */
};

/* low .. high, and coef[i] times step i of the stage's path. Steps in `still` stand still: what is
 * made of them alone is taken for 0, and loop_space_run leaves them out. */
struct loop_sum {
  int64_t low, high, coef[SCHEDULE_DEPTH];
  uint32_t still;
};

/* Every extent is known. Closing frees what opening made. */
void loop_space_open(struct loop_space *space, const struct loop_tree *tree);
void loop_space_close(struct loop_space *space);
void loop_space_enter(struct loop_space *space, const struct bound_stage *stage);

/* sum += an index expression of the program, read by the stage; false where it cannot be bounded. */
bool loop_space_add(struct loop_space *space, int index, struct loop_sum *sum);
/* All steps that do not stand still run: their coefficients go into low .. high. */
bool loop_space_run(const struct loop_space *space, struct loop_sum *sum);

#endif
