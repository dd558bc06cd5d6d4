/* Which stages load which tensors of a program, found once for all of them. */
#ifndef CANVAS_PROGRAM_PROGRAM_USES_H
#define CANVAS_PROGRAM_PROGRAM_USES_H

#include "program/program.h"

/* A stage that loads a tensor, or a tensor that a stage loads. */
struct program_use {
  int tensor; /* the consumer, or the operand */
  int loads;  /* stage_loads (program_facts.h), above 0 */
};

/* Uses in the order of the program. Those of tensor t are use[first[t]] to use[first[t + 1] - 1]. */
struct program_use_list {
  int *first;
  struct program_use *use;
};

struct program_uses {
  struct program_use_list consumers, operands;
};

/* The uses of `p`, valid until it changes; to be freed. */
struct program_uses program_find_uses(const struct program *p);
void program_free_uses(struct program_uses *uses);

#endif
