/* Paths: the loops around each stage, outermost first, and the axis that each loop is a digit of.
 *
 * Guarantees: reduction loops and other loops do not share a group.
 */
#include "bind/bind.h"

/* The step over a level, which is around the stage exactly once (schedule_verify). */
static struct step *find_step(struct bound_stage *stage, int level) {
  struct step *step = stage->path;
  while (step->level != level) step++;
  return step;
}

_Static_assert((int)SCHEDULE_DEPTH <= (int)PROGRAM_AXES, "the loops around a stage are axes");

static canvas_status add_steps(struct binder *b, struct bound_stage *stage, int node) {
  const struct schedule_loop *loop = &b->s->nodes.data[node].loop;
  for (int i = 0; i < loop->count; i++) {
    if (stage->steps == SCHEDULE_DEPTH)
      return reject(b, node_place(b, node), "stage '%s' stands inside more than %d loops",
                    stage_name(b, stage), stage->steps);
    stage->path[stage->steps++] =
        (struct step){.node = node, .level = loop->level[i], .member = i, .axis = -1, .weight = 1};
  }
  return CANVAS_OK;
}

/* Adds the steps of the loops around `node`, then those of `node`. */
static canvas_status walk_up(struct binder *b, struct bound_stage *stage, int node) {
  if (node == 0) return CANVAS_OK;
  TRY(walk_up(b, stage, b->s->nodes.data[node].parent));
  return add_steps(b, stage, node);
}

static void place_parts(struct binder *b, const struct axis_split *c) {
  for (int i = 0; i < c->text->count; i++)
    find_step(&b->tree->stages[c->stage], c->text->level[i])->axis = c->axis;
}

static canvas_status check_groups(const struct binder *b, const struct bound_stage *stage) {
  const struct program_tensor *t = stage_tensor(b, stage);
  for (int i = 1; i < stage->steps; i++) {
    const struct step *x = &stage->path[i - 1], *y = &stage->path[i];
    if (x->node == y->node && (x->axis >= t->rank) != (y->axis >= t->rank))
      return reject(b, node_place(b, x->node),
                    "loops '%s' and '%s' are one group, only one of them reduces '%s'",
                    level_name(b, x->level), level_name(b, y->level), t->name);
  }
  return CANVAS_OK;
}

canvas_status bind_paths(struct binder *b) {
  for (int i = 0; i < b->tree->count; i++) {
    struct bound_stage *stage = &b->tree->stages[i];
    TRY(walk_up(b, stage, b->s->nodes.data[stage->node].parent));
    for (int j = b->first_split[i]; j < b->first_split[i + 1]; j++)
      place_parts(b, &b->splits.data[j]);
    TRY(check_groups(b, stage));
  }
  return CANVAS_OK;
}
