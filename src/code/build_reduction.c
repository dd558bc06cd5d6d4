/* Initialises and finalises accumulators: a statement of that phase in the stage's loops that do
 * not reduce. See build_parts.h. */
#include "code/build_parts.h"

/* A statement of the phase in the stage's loops, from `step` on, that do not reduce. */
static void nest(struct builder *b, int stage, int step, enum phase phase);

static void nest_level(struct builder *b, int stage, int step, enum phase phase, int64_t from,
                       int64_t to) {
  const struct bound_stage *bound = &b->tree->stages[stage];
  const struct step *s = &bound->path[step];
  struct space_checkpoint m = loop_space_checkpoint(&b->space);
  if (to - from == 1) {
    b->space.digit[s->level] = px_int(b->px, from);
    nest(b, stage, step + 1, phase);
    b->space.digit[s->level] = -1;
    loop_space_rollback(&b->space, m);
    return;
  }
  struct block block =
      build_open_for(b, b->counter[s->level], code_int(b->code, from), code_int(b->code, to), 1);
  b->space.digit[s->level] = build_open_axis(b, b->counter[s->level], from, to - from);
  nest(b, stage, step + 1, phase);
  b->space.digit[s->level] = -1;
  loop_space_rollback(&b->space, m);
  build_close(b, block);
}

static void nest_piece(struct builder *b, int stage, int step, enum phase phase, int base,
                       int64_t steps) {
  const struct bound_stage *bound = &b->tree->stages[stage];
  int node = bound->path[step].node, next = step;
  while (next < bound->steps && bound->path[next].node == node) next++;
  struct space_checkpoint m = loop_space_checkpoint(&b->space);
  build_open_lanes(b, node, base, steps);
  nest(b, stage, next, phase);
  build_close_lanes(b, node);
  loop_space_rollback(&b->space, m);
}

static void nest_vec(struct builder *b, int stage, int step, enum phase phase) {
  int node = b->tree->stages[stage].path[step].node, counter = b->nodes[node].counter;
  const struct bound_loop *loop = &b->tree->loops[node];
  int64_t extent = loop->extent, whole = extent / loop->lanes * loop->lanes, at = 0;
  struct space_checkpoint m = loop_space_checkpoint(&b->space);
  if (!loop->unrolled && whole > loop->lanes) {
    struct block block = build_open_range(b, counter, 0, whole, loop->lanes);
    nest_piece(b, stage, step, phase, build_open_axis(b, counter, 0, whole - loop->lanes + 1),
               loop->lanes);
    loop_space_rollback(&b->space, m);
    build_close(b, block);
    at = whole;
  }
  for (; at < extent; at += loop->lanes)
    nest_piece(b, stage, step, phase, px_int(b->px, at), extent - at);
  loop_space_rollback(&b->space, m);
}

static void nest(struct builder *b, int stage, int step, enum phase phase) {
  const struct bound_stage *bound = &b->tree->stages[stage];
  while (step < bound->steps && !stage_spatial(b->tree, bound, step)) step++;
  if (step == bound->steps) {
    build_statement(b, stage, phase);
    return;
  }
  const struct step *s = &bound->path[step];
  if (build_node(b, s->node)->loop.marks & LOOP_VEC) {
    nest_vec(b, stage, step, phase);
  } else if (b->tree->loops[s->node].unrolled) {
    for (int64_t i = 0; i < s->extent; i++) nest_level(b, stage, step, phase, i, i + 1);
  } else {
    nest_level(b, stage, step, phase, 0, s->extent);
  }
}

/* Variables are declared with their initial value; arrays are filled with it. */
void build_begin_sums(struct builder *b, int stage) {
  const struct bound_stage *bound = &b->tree->stages[stage];
  const struct stage_plan *plan = &b->stages[stage];
  const struct stored *h = bound->accumulates_in_value ? &plan->value : &plan->sum;
  enum program_reducer reducer = b->program->tensors.data[bound->tensor].reducer;
  if (bound->accumulates_in_value ? bound->declares_init : h->at.kind == STORAGE_NAMED) {
    int lanes = h->at.per_lane ? b->lanes : h->at.lanes;
    build_declare(b, h, build_start_value(b, reducer, h->at.dtype, lanes));
    return;
  }
  if (!bound->accumulates_in_value) build_declare(b, h, -1);
  nest(b, stage, stage_step(bound, bound->start), PHASE_INIT);
}

void build_end_sums(struct builder *b, int stage) {
  const struct bound_stage *bound = &b->tree->stages[stage];
  bool mean = b->program->tensors.data[bound->tensor].reducer == REDUCE_MEAN;
  if (mean || !bound->accumulates_in_value)
    nest(b, stage, stage_step(bound, bound->start), PHASE_FINALIZE);
}
