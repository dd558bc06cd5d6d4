/* Counts of a bound schedule. See features.h. */
#include "bind/features.h"

#include <stdlib.h>

#include "base/saturating.h"
#include "bind/bind.h"
#include "bind/footprint.h"
#include "program/program_cost.h"

static void add_storage(struct stage_features *f, const struct storage *s) {
  if (s->kind == STORAGE_NAMED) f->variables += storage_variables(s);
  if (s->kind == STORAGE_STACK) f->stack += storage_bytes(s);
  if (s->kind == STORAGE_HEAP) f->heap = saturating_add(f->heap, storage_bytes(s));
}

static int64_t points_of(const struct program_tensor *t) {
  int64_t points = 1;
  for (int i = 0; i < t->rank + t->reductions; i++)
    points = saturating_mul(points, t->axes[i].size);
  return points;
}

static canvas_status stage_features(canvas_context *ctx, const struct loop_tree *tree,
                                    struct footprints *prints, int stage,
                                    struct stage_features *f) {
  const struct bound_stage *s = &tree->stages[stage];
  struct program_cost cost;
  TRY(program_cost(ctx, tree->program, s->tensor, &cost));
  *f = (struct stage_features){.registers = stage_registers(tree, s),
                               .copies = s->dead ? 0 : stage_copies(tree, s)};
  if (s->dead) return CANVAS_OK;
  f->flops = saturating_mul(cost.flops, s->recomputed);
  f->point_flops = cost.flops / points_of(&tree->program->tensors.data[s->tensor]);
  f->into_l1 = stage_traffic(prints, stage, tree->machine.l1);
  f->into_l2 = stage_traffic(prints, stage, tree->machine.l2);
  add_storage(f, &s->value);
  add_storage(f, &s->sum);
  return CANVAS_OK;
}

static void add_stage(struct stage_features *all, const struct stage_features *f) {
  all->flops = saturating_add(all->flops, f->flops);
  all->registers = int_max(all->registers, f->registers);
  all->variables += f->variables;
  all->stack += f->stack;
  all->heap = saturating_add(all->heap, f->heap);
  all->copies = saturating_add(all->copies, f->copies);
  all->into_l1 = saturating_add(all->into_l1, f->into_l1);
  all->into_l2 = saturating_add(all->into_l2, f->into_l2);
}

canvas_status features_of(canvas_context *ctx, const struct loop_tree *tree, struct features *out) {
  struct footprints prints;
  canvas_status status = CANVAS_OK;
  int nodes = tree->schedule->nodes.count;
  *out = (struct features){.loops = mem_alloc(((size_t)nodes + 1) * sizeof *out->loops),
                           .stages = mem_alloc(((size_t)tree->count + 1) * sizeof *out->stages)};
  footprints_open(tree, &prints);
  for (int i = 0; i < nodes; i++)
    out->loops[i] = (struct loop_features){prints.iterations[i], prints.body[i]};
  for (int i = 0; i < tree->count && status == CANVAS_OK; i++) {
    status = stage_features(ctx, tree, &prints, i, &out->stages[i]);
    add_stage(&out->all, &out->stages[i]);
  }
  footprints_close(&prints);
  return status;
}

void features_free(struct features *f) {
  mem_free(f->loops);
  mem_free(f->stages);
}
