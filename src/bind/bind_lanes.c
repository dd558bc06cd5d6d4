/* Lanes: the vec loop around each stage, its compute type, and the number of lanes of a loop's
 * vectors. */
#include "bind/bind.h"
#include "program/program_cost.h"

static enum program_dtype computed_in(enum program_dtype stored) {
  return stored == PROGRAM_F64 ? PROGRAM_F64 : PROGRAM_F32;
}

static void find_vec(struct binder *b, struct bound_stage *stage) {
  stage->vec = -1;
  stage->compute_dtype = computed_in(stage_tensor(b, stage)->dtype);
  stage->accumulator_dtype = stage->compute_dtype;
  for (int i = 0; i < stage->steps; i++)
    if (loop_marks(b->tree, stage->path[i].node) & LOOP_VEC) stage->vec = stage->path[i].node;
}

/* Whether `node`, the compute-at loop or the start of the stage, is inside its vec loop; with
 * `itself`, or is that loop. */
bool within_vec(const struct bound_stage *stage, int node, bool itself) {
  int at = stage_step(stage, node);
  return stage->vec >= 0 && at < stage->steps && stage_step(stage, stage->vec) + !itself <= at;
}

/* As many lanes as a register holds, but not more than the loop fills: a power of two. */
static int lanes_for(const struct binder *b, const struct bound_stage *stage) {
  int64_t extent = b->tree->loops[stage->vec].extent;
  int most = b->tree->machine.vector_bytes / program_dtype_bytes(stage->compute_dtype), lanes = 1;
  if (most > MOST_LANES) most = MOST_LANES;
  while (2 * lanes <= most && lanes < extent) lanes *= 2;
  return lanes;
}

/* The lanes of a loop are the minimum over its stages: the stage with the widest elements
 * decides. */
void bind_lanes(struct binder *b) {
  for (int i = 0; i < b->tree->count; i++) {
    struct bound_stage *stage = &b->tree->stages[i];
    find_vec(b, stage);
    if (stage->vec < 0) continue;
    struct bound_loop *loop = &b->tree->loops[stage->vec];
    int lanes = lanes_for(b, stage);
    if (!loop->lanes || lanes < loop->lanes) loop->lanes = lanes;
  }
}
