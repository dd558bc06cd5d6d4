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

/* sum += times * [low, high]; false where numbers become too large. */
static bool add_range(struct loop_sum *sum, int64_t low, int64_t high, int64_t times) {
  int64_t a, z;
  if (__builtin_mul_overflow(low, times, &a) || __builtin_mul_overflow(high, times, &z))
    return false;
  return !__builtin_add_overflow(sum->low, a < z ? a : z, &sum->low) &&
         !__builtin_add_overflow(sum->high, a < z ? z : a, &sum->high);
}

static bool add_other(const struct loop_space *space, int expr, int64_t times,
                      struct loop_sum *sum) {
  struct px_range r = px_range(space->p, expr);
  if (!r.overflow && (r.axes & ~sum->still) == 0 && sum->still) return true;
  return !r.overflow && add_range(sum, r.low, r.high, times);
}

/* sum += times * expr */
static bool add_terms(const struct loop_space *space, int expr, int64_t times,
                      struct loop_sum *sum) {
  const struct px_node *n = &space->p->nodes.data[expr];
  const struct px_node *factor = n->op == PX_MUL ? &space->p->nodes.data[n->arg[1]] : NULL;
  int64_t product;
  switch (n->op) {
    case PX_INT: return add_range(sum, n->integer, n->integer, times);
    case PX_AXIS:
      return !__builtin_add_overflow(sum->coef[n->integer], times, &sum->coef[n->integer]);
    case PX_ADD:
      return add_terms(space, n->arg[0], times, sum) && add_terms(space, n->arg[1], times, sum);
    case PX_SUB:
      return times != INT64_MIN && add_terms(space, n->arg[0], times, sum) &&
             add_terms(space, n->arg[1], -times, sum);
    case PX_MUL:
      if (factor->op != PX_INT || __builtin_mul_overflow(times, factor->integer, &product))
        return add_other(space, expr, times, sum);
      return add_terms(space, n->arg[0], product, sum);
    default: return add_other(space, expr, times, sum);
  }
}

bool loop_space_add(struct loop_space *space, int index, struct loop_sum *sum) {
  struct px_map map = {.axis = space->axes};
  int expr = px_copy(space->p, space->tree->program, index, &map);
  return !space->p->failed && add_terms(space, expr, 1, sum);
}

bool loop_space_run(const struct loop_space *space, struct loop_sum *sum) {
  const struct program_tensor *loops = &space->p->tensors.data[space->loops];
  for (int i = 0; i < loops->rank; i++) {
    int64_t first = loops->axes[i].first;
    if (sum->still >> i & 1) continue;
    if (!add_range(sum, first, first + loops->axes[i].size - 1, sum->coef[i])) return false;
  }
  return true;
}
