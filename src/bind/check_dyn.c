/* Loops with data-dependent bounds: `ko:dyn(xr)` is a whole axis over ptr[xr]..ptr[xr+1], and is
 * inside all loops of xr. Every such axis has such a loop.
 */
#include <stdlib.h>
#include <string.h>

#include "bind/bind.h"

static bool runs_over_data(const struct program_axis *axis) {
  return axis->low >= 0;
}

static const char *part_name(const struct binder *b, const struct axis_split *c, int part) {
  return level_name(b, c->text->level[part]);
}

/* The axes of the stage that the bounds of this axis depend on, as bits. */
static uint32_t bounds_of(const struct binder *b, const struct program_axis *axis) {
  return px_axes(b->p, axis->low) | px_axes(b->p, axis->high);
}

static canvas_status check_name(const struct binder *b, const struct axis_split *c, uint32_t axes) {
  const struct bound_stage *stage = &b->tree->stages[c->stage];
  const struct program_tensor *t = stage_tensor(b, stage);
  const char *of = b->s->levels.data[c->text->level[0]].dyn;
  for (int i = 0; i < c->axis; i++)
    if ((axes >> i & 1) && strcmp(t->axes[i].name, of) == 0) return CANVAS_OK;
  return reject(b, split_place(b, c),
                "loop '%s' is dyn(%.64s), axis '%s' of '%s' is no function of it",
                part_name(b, c, 0), of, t->axes[c->axis].name, t->name);
}

/* Checks that the loops of axes that the bounds depend on are outside the dyn loop. */
static canvas_status check_outside(const struct binder *b, const struct axis_split *c,
                                   uint32_t axes) {
  const struct bound_stage *stage = &b->tree->stages[c->stage];
  bool passed = false;
  for (int i = 0; i < stage->steps; i++) {
    const struct step *step = &stage->path[i];
    if (step->axis == c->axis) passed = true;
    if (!passed || step->axis < 0 || !(axes >> step->axis & 1)) continue;
    return reject(b, node_place(b, step->node),
                  "loop '%s' stands inside dyn loop '%s', whose bounds depend on axis '%s'",
                  level_name(b, step->level), part_name(b, c, 0),
                  stage_tensor(b, stage)->axes[step->axis].name);
  }
  return CANVAS_OK;
}

static canvas_status check_split(const struct binder *b, const struct axis_split *c) {
  const struct bound_stage *stage = &b->tree->stages[c->stage];
  const struct program_axis *axis = &stage_tensor(b, stage)->axes[c->axis];
  bool dyn = b->s->levels.data[c->text->level[0]].kind == EXTENT_DYN;
  if (dyn && !runs_over_data(axis))
    return reject(b, split_place(b, c),
                  "loop '%s' is dyn, axis '%s' of '%s' does not run over data", part_name(b, c, 0),
                  axis->name, stage_name(b, stage));
  if (!runs_over_data(axis)) return CANVAS_OK;
  if (c->text->count > 1)
    return reject(b, split_place(b, c), "axis '%s' of '%s' runs over data and cannot be split",
                  axis->name, stage_name(b, stage));
  if (!dyn)
    return reject(b, split_place(b, c), "axis '%s' of '%s' runs over data, loop '%s' has to be dyn",
                  axis->name, stage_name(b, stage), part_name(b, c, 0));
  uint32_t axes = bounds_of(b, axis);
  TRY(check_name(b, c, axes));
  return check_outside(b, c, axes);
}

/* Checks that each dyn loop belongs to one stage only, since its bounds do. */
static canvas_status check_alone(const struct binder *b, int *owner, int index) {
  const struct bound_stage *stage = &b->tree->stages[index];
  for (int i = 0; i < stage->steps; i++) {
    const struct step *step = &stage->path[i];
    if (step->axis < 0 || b->s->levels.data[step->level].kind != EXTENT_DYN) continue;
    if (owner[step->node] >= 0)
      return reject(b, stage_place(b, stage),
                    "dyn loop '%s' is an axis of '%s' and of '%s', each needs a loop of its own",
                    level_name(b, step->level), stage_name(b, &b->tree->stages[owner[step->node]]),
                    stage_name(b, stage));
    owner[step->node] = index;
  }
  return CANVAS_OK;
}

canvas_status check_dyn(const struct binder *b) {
  canvas_status status = CANVAS_OK;
  int *owner = mem_alloc((size_t)b->s->nodes.count * sizeof *owner); /* by node: a stage; -1 */
  for (int i = 0; i < b->s->nodes.count; i++) owner[i] = -1;
  for (int i = 0; status == CANVAS_OK && i < b->splits.count; i++)
    status = check_split(b, &b->splits.data[i]);
  for (int i = 0; status == CANVAS_OK && i < b->tree->count; i++) status = check_alone(b, owner, i);
  mem_free(owner);
  return status;
}
