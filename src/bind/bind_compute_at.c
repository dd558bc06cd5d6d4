/* The compute-at loop and the start of each stage, and whether stages are complete before they are
 * read.
 *
 * Guarantees: a stage is before its consumers, and none of its reduction loops is around a
 * consumer; the loops inside compute_at are inner digits of the stage's axes and nothing else.
 */
#include "base/saturating.h"
#include "bind/bind.h"

static bool is_read_before(const struct read *r) {
  return r->consumer < r->producer;
}

static void set_start(struct binder *b, struct bound_stage *stage) {
  int rank = stage_tensor(b, stage)->rank;
  for (int i = 0; i < stage->steps && stage->start < 0; i++)
    if (stage->path[i].axis >= rank) stage->start = stage->path[i].node;
}

static canvas_status check_read(const struct binder *b, const struct read *r) {
  const struct bound_stage *consumer = &b->tree->stages[r->consumer];
  const struct bound_stage *producer = &b->tree->stages[r->producer];
  if (is_read_before(r))
    return reject(b, stage_place(b, consumer), "stage '%s' reads '%s', which is computed after it",
                  stage_name(b, consumer), stage_name(b, producer));
  int shared = common_node(b, consumer->node, producer->node);
  if (producer->start < 0 || b->depth[shared] < b->depth[producer->start]) return CANVAS_OK;
  return reject(b, stage_place(b, consumer),
                "stage '%s' stands inside loop '%s' and reads '%s', which is complete after it",
                stage_name(b, consumer), loop_name(b, producer->start), stage_name(b, producer));
}

static void set_compute_at(struct binder *b) {
  for (int i = 0; i < b->tree->count; i++) b->tree->stages[i].compute_at = -1;
  for (int i = 0; i < b->reads.count; i++) {
    struct bound_stage *producer = &b->tree->stages[b->reads.data[i].producer];
    int from = producer->compute_at < 0 ? producer->node : producer->compute_at;
    producer->compute_at = common_node(b, from, b->tree->stages[b->reads.data[i].consumer].node);
  }
  for (int i = 0; i < b->tree->count; i++) {
    struct bound_stage *stage = &b->tree->stages[i];
    if (stage->is_output || stage->compute_at < 0) stage->compute_at = 0;
  }
}

static canvas_status set_own(const struct binder *b, struct bound_stage *stage) {
  for (int i = 0; i < stage->steps; i++) {
    struct step *step = &stage->path[i];
    step->own = b->depth[step->node] > b->depth[stage->compute_at];
    if (step->own && step->axis < 0)
      return reject(b, node_place(b, step->node),
                    "loop '%s' is around '%s' and in none of its axes, and what is computed has to "
                    "outlive it",
                    level_name(b, step->level), stage_name(b, stage));
    if (!step->own && step->axis < 0 && step->extent)
      stage->recomputed = saturating_mul(stage->recomputed, step->extent);
  }
  return CANVAS_OK;
}

static const struct step *step_of(const struct bound_stage *stage, int level) {
  const struct step *step = stage->path;
  while (step->level != level) step++;
  return step;
}

/* Checks the digits of an axis from the innermost outwards: own ones first, then those outside
 * compute_at. */
static canvas_status check_inner(const struct binder *b, const struct axis_split *c) {
  const struct bound_stage *stage = &b->tree->stages[c->stage];
  for (int i = c->text->count - 1; i > 0; i--) {
    const struct step *inner = step_of(stage, c->text->level[i]);
    const struct step *outer = step_of(stage, c->text->level[i - 1]);
    if (outer->own && !inner->own)
      return reject(b, split_place(b, c),
                    "'%s' stores all steps of loop '%s' and one step of '%s', which is a "
                    "smaller part of axis '%s' (the outer loop comes first in {})",
                    stage_name(b, stage), level_name(b, outer->level), level_name(b, inner->level),
                    stage_tensor(b, stage)->axes[c->axis].name);
  }
  return CANVAS_OK;
}

canvas_status bind_compute_at(struct binder *b) {
  for (int i = 0; i < b->tree->count; i++) set_start(b, &b->tree->stages[i]);
  for (int i = 0; i < b->reads.count; i++) TRY(check_read(b, &b->reads.data[i]));
  set_compute_at(b);
  for (int i = 0; i < b->tree->count; i++) TRY(set_own(b, &b->tree->stages[i]));
  for (int i = 0; i < b->splits.count; i++) TRY(check_inner(b, &b->splits.data[i]));
  return CANVAS_OK;
}
