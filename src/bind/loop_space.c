/* Indices as sums over the loops around a stage: see loop_space.h. */
#include "bind/loop_space.h"

/* Loads of index tensors keep their numbers: the tensors of the program come first. */
void loop_space_open(struct loop_space *space, const struct loop_tree *tree) {
  const struct program *from = tree->program;
  space->tree = tree;
  space->p = program_new("loops");
  for (int i = 0; i < from->tensors.count; i++) VEC_PUSH(&space->p->tensors, from->tensors.data[i]);
  space->loops = from->tensors.count;
  VEC_PUSH(&space->p->tensors, ((struct program_tensor){.name = "loops", .body = -1}));
}

void loop_space_close(struct loop_space *space) {
  program_free(space->p);
}

/* A dyn loop counts from where its axis does. */
static struct program_axis loop_axis(const struct loop_space *space,
                                     const struct bound_stage *stage, const struct step *step) {
  const struct program_tensor *t = &space->tree->program->tensors.data[stage->tensor];
  const char *name = space->tree->schedule->levels.data[step->level].name;
  int64_t first = step->dyn && step->axis >= 0 ? t->axes[step->axis].first : 0;
  return (struct program_axis){
      .name = name, .size = step->extent, .first = first, .low = -1, .high = -1};
}

void loop_space_enter(struct loop_space *space, const struct bound_stage *stage) {
  struct program *p = space->p;
  struct program_tensor *loops = &p->tensors.data[space->loops];
  p->nodes.count = p->indices.count = 0;
  p->failed = false;
  loops->rank = stage->steps;
  for (int i = 0; i < stage->steps; i++) loops->axes[i] = loop_axis(space, stage, &stage->path[i]);
  for (int i = 0; i < PROGRAM_AXES; i++) space->axes[i] = px_int(p, 0);
  for (int i = 0; i < stage->steps; i++) {
    const struct step *step = &stage->path[i];
    if (step->axis < 0) continue;
    int digit = px_mul(p, program_axis(p, space->loops, i), px_int(p, step->weight));
    space->axes[step->axis] = px_add(p, space->axes[step->axis], digit);
  }
}

bool loop_space_index(struct loop_space *space, int index, struct affine *sum) {
  struct px_map map = {.axis = space->axes};
  int expr = px_copy(space->p, space->tree->program, index, &map);
  return !space->p->failed && affine_of(space->p, expr, sum);
}
