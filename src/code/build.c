/* Builds the tree of a bound schedule: the plan, then the walk. See build.h. */
#include "code/build.h"

#include <stdlib.h>

#include "code/build_parts.h"

static void *table(struct builder *b, int count, size_t size) {
  return arena_alloc(&b->arena, (size_t)count * size + 1);
}

static void open_builder(struct builder *b) {
  const struct program *p = b->program;
  const struct schedule *s = b->schedule;
  b->stages = table(b, b->tree->count, sizeof *b->stages);
  b->nodes = table(b, s->nodes.count, sizeof *b->nodes);
  b->tensor_variable = table(b, p->tensors.count, sizeof *b->tensor_variable);
  b->counter = table(b, s->levels.count, sizeof *b->counter);
  b->guarded = table(b, b->tree->count, sizeof *b->guarded);
  loop_space_open(&b->space, b->tree);
  b->px = b->space.p;
}

static void close_builder(struct builder *b) {
  loop_space_close(&b->space);
  arena_free(&b->arena);
  mem_free(b->known.data);
  mem_free(b->own.data);
}

/* ---- the plan: facts about stages and nodes, before any statement ---- */

static void find_stages_below(struct builder *b) {
  for (int i = 0; i < b->schedule->nodes.count; i++) b->nodes[i].stage = -2;
  for (int i = 0; i < b->tree->count; i++)
    for (int at = b->tree->stages[i].node; at >= 0; at = build_node(b, at)->parent)
      b->nodes[at].stage = b->nodes[at].stage == -2 ? i : -1;
}

static void find_declarations(struct builder *b) {
  for (int i = 0; i < b->tree->count; i++) {
    const struct bound_stage *bound = &b->tree->stages[i];
    if (bound->dead) continue;
    if (bound->value.kind == STORAGE_NAMED || bound->value.kind == STORAGE_STACK)
      b->nodes[bound->compute_at].declares = true;
    if (bound->start >= 0 && (!bound->accumulates_in_value || bound->declares_init) &&
        bound->sum.kind != STORAGE_HEAP)
      b->nodes[build_node(b, bound->start)->parent].declares = true;
  }
}

static void plan(struct builder *b) {
  for (int i = 0; i < b->tree->count; i++) {
    const struct bound_stage *bound = &b->tree->stages[i];
    b->stages[i] = (struct stage_plan){.value.at = bound->value, .sum.at = bound->sum};
  }
  find_stages_below(b);
  find_declarations(b);
}

/* ---- */

static canvas_status check(const struct builder *b) {
  if (b->px->failed)
    return fail(b->ctx, CANVAS_BAD_INPUT,
                "an expression is too long once loops stand in it: %.200s", b->px->error);
  if (b->code->exprs.count > CODE_EXPRS)
    return fail(b->ctx, CANVAS_BAD_INPUT, "the code has more than %d expressions, unroll less",
                CODE_EXPRS);
  return CANVAS_OK;
}

canvas_status code_build(canvas_context *ctx, const struct loop_tree *tree, struct code **out) {
  if (tree->open_holes)
    return fail(ctx, CANVAS_BAD_INPUT,
                "the schedule has %d holes without a number, give them with --set",
                tree->open_holes);
  struct builder b = {.ctx = ctx,
                      .tree = tree,
                      .program = tree->program,
                      .schedule = tree->schedule,
                      .code = code_new(tree->program->name),
                      .lane = -1,
                      .lanes = 1,
                      .lane_steps = 1,
                      .active_lanes = -1};
  open_builder(&b);
  plan(&b);
  build_variables(&b);
  build_walk(&b);
  canvas_status status = check(&b);
  if (status == CANVAS_OK)
    *out = b.code;
  else
    code_free(b.code);
  close_builder(&b);
  return status;
}
