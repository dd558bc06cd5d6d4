/* The predicted time of a bound schedule: see schedule_cost.h. */
#include "cost/schedule_cost.h"

#include <math.h>
#include <stdlib.h>

#include "cost/cost_parts.h"
#include "cost/policy.h"
#include "program/program_cost.h"

/* ---- constant-folded nests ---------------------------------------------------------------- */

static int root_of(const struct loop_tree *tree, int stage) {
  const struct schedule_node *nodes = tree->schedule->nodes.data;
  int node = tree->stages[stage].node;
  while (nodes[node].parent > 0) node = nodes[node].parent;
  return node;
}

/* Root nests that depend on constant inputs only are packed at load time: prepare.h. */
static void find_prepared(struct cost_walk *w) {
  const struct loop_tree *tree = w->tree;
  bool *constant = program_constants(tree->program);
  bool *needed = mem_alloc((size_t)tree->schedule->nodes.count); /* by child of the root */
  for (int i = 0; i < tree->count; i++) {
    const struct bound_stage *s = &tree->stages[i];
    if (!constant[s->tensor] || s->is_output) needed[root_of(tree, i)] = true;
  }
  for (int i = 0; i < tree->count; i++) w->nests[i].prepared = !needed[root_of(tree, i)];
  mem_free(needed);
  mem_free(constant);
}

/* ---- the walk ------------------------------------------------------------------------------- */

static void walk_open(struct cost_walk *w, const struct loop_tree *tree,
                      const struct rates *rates) {
  size_t nodes = (size_t)tree->schedule->nodes.count;
  size_t tensors = (size_t)tree->program->tensors.count;
  *w = (struct cost_walk){.tree = tree,
                          .rates = rates,
                          .nests = mem_alloc((size_t)(tree->count + 1) * sizeof *w->nests),
                          .footprint = {mem_alloc(nodes * sizeof **w->footprint),
                                        mem_alloc(nodes * sizeof **w->footprint)},
                          .scratch = mem_alloc(tensors * sizeof *w->scratch),
                          .counted = mem_alloc(nodes * sizeof *w->counted)};
  find_prepared(w);
  for (int i = 0; i < tree->count; i++) nest_open(w, i);
  footprints_fill(w);
}

static void walk_close(struct cost_walk *w) {
  mem_free(w->nests);
  mem_free(w->accesses.data);
  for (int by = 0; by < FETCHED; by++) mem_free(w->footprint[by]);
  mem_free(w->scratch);
  mem_free(w->counted);
}

/* ---- time ------------------------------------------------------------------------------------ */

/* Seconds of the transfers into L1, by source. */
static double fetch(struct cost_walk *w, int stage, struct cost_parts *out) {
  const struct machine *m = &w->tree->machine;
  const struct rates *r = w->rates;
  double into_l1 = nest_traffic(w, stage, (double)m->l1, LINE);
  double into_l2 = nest_traffic(w, stage, (double)m->l2, PAIR);
  double into_l3 = into_l2;
  if (m->l3) into_l3 = fmin(into_l2, nest_traffic(w, stage, COST_L3_SHARE * (double)m->l3, PAIR));
  out->l2 = (fmax(0, into_l1 - into_l2) + nest_conflict_misses(w, stage)) / r->l2 / r->hertz;
  out->l3 = (into_l2 - into_l3) / r->l3 / r->hertz;
  out->memory = into_l3 / r->memory / r->hertz;
  return out->l2 + out->l3 + out->memory;
}

static struct cost_parts stage_cost(struct cost_walk *w, int stage) {
  struct cost_parts out = {0};
  struct cycles c = nest_cycles(w, stage);
  double fetched = fetch(w, stage, &out), computed = c.all / w->rates->hertz;
  out.compute = c.compute / w->rates->hertz;
  out.loads = c.loads / w->rates->hertz;
  out.waits = c.waits / w->rates->hertz;
  out.seconds = fmax(fetched, computed) + COST_NOT_OVERLAPPED * fmin(fetched, computed);
  return out;
}

static void add_parts(struct cost_parts *all, const struct cost_parts *p) {
  all->seconds += p->seconds;
  all->compute += p->compute;
  all->loads += p->loads;
  all->waits += p->waits;
  all->l2 += p->l2;
  all->l3 += p->l3;
  all->memory += p->memory;
}

/* Fails for a program with a count above 2^62, so that every predicted time is finite. */
static canvas_status check_sizes(canvas_context *ctx, const struct loop_tree *tree) {
  struct program_cost cost;
  for (int i = 0; i < tree->count; i++)
    TRY(program_cost(ctx, tree->program, tree->stages[i].tensor, &cost));
  return CANVAS_OK;
}

static canvas_status cost_all(canvas_context *ctx, const struct loop_tree *tree,
                              const struct rates *rates, struct schedule_cost *out) {
  struct cost_walk w;
  if (tree->open_holes)
    return fail(ctx, CANVAS_BAD_INPUT, "the schedule has holes, give them numbers");
  TRY(check_sizes(ctx, tree));
  walk_open(&w, tree, rates);
  for (int i = 0; i < tree->count; i++) {
    struct cost_parts parts = stage_cost(&w, i);
    add_parts(&out->all, &parts);
    if (out->stages) out->stages[i] = parts;
  }
  walk_close(&w);
  out->seconds = out->all.seconds = fmax(out->all.seconds, 1 / rates->hertz);
  return CANVAS_OK;
}

canvas_status cost_of(canvas_context *ctx, const struct loop_tree *tree, const struct rates *rates,
                      struct schedule_cost *out) {
  *out = (struct schedule_cost){0};
  return cost_all(ctx, tree, rates, out);
}

canvas_status cost_of_stages(canvas_context *ctx, const struct loop_tree *tree,
                             const struct rates *rates, struct schedule_cost *out) {
  *out =
      (struct schedule_cost){.stages = mem_alloc((size_t)(tree->count + 1) * sizeof *out->stages)};
  canvas_status status = cost_all(ctx, tree, rates, out);
  if (status != CANVAS_OK) cost_free(out);
  return status;
}

void cost_free(struct schedule_cost *cost) {
  mem_free(cost->stages);
  cost->stages = NULL;
}
