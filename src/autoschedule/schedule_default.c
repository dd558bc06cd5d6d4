/* The schedule of a program that nobody tuned. See loop_tree.h and default.h.
 *
 * The naive one has each stage that an output needs at the root, whole, in the order of the program,
 * its own axes outside its reductions, without marks and numbers. The default has the tiles of
 * default.h; where bind rejects one, the schedule is `plain` instead:
 *
 *     n, co, h:para, w_o, ci, kh, kw, w_v:16:vec =>
 *         @Y = n, co, h, {w_o, w_v}/w // ci, kh, kw
 */
#include <stdlib.h>

#include "autoschedule/default.h"
#include "autoschedule/winograd_nest.h"

enum { SHORTEST = 4 }; /* lanes that are worth a vector */

/* Own axes and reductions in the order of the program. */
static struct default_tile untiled(const struct program_tensor *t) {
  struct default_tile tile = {
      .vector_axis = -1, .steps = 1, .cache_block = 1, .block_axis = -1, .sliding = -1};
  for (int i = 0; i < t->rank + t->reductions; i++) tile.order[i] = i;
  for (int i = 0; i < t->rank; i++) tile.rows[i] = 1;
  return tile;
}

/* Lanes along the last own axis, where everything is contiguous along it. */
static void add_lanes(const struct default_facts *f, const struct machine *machine,
                      struct default_tile *tile) {
  int last = f->t->rank - 1;
  if (last < 0 || f->truncated || f->guarded >> last & 1 || f->bounds_reduction >> last & 1) return;
  if (f->t->rank + f->t->reductions == SCHEDULE_DEPTH) return;
  for (int i = 0; i < f->loads; i++) {
    const struct default_load *l = &f->load[i];
    if (l->non_affine >> last & 1 || l->stride[last] > 1 || l->stride[last] < 0) return;
  }
  int64_t size = f->t->axes[last].size;
  int lanes = default_lanes(f->t, machine);
  for (int64_t steps = lanes; steps >= SHORTEST && tile->vector_axis < 0; steps /= 2)
    if (size % steps == 0) {
      tile->vector_axis = last;
      tile->steps = steps;
    }
}

static void add_plain(struct default_maker *m, int stage) {
  struct default_facts f;
  default_facts(m->p, stage, m->layout, &f);
  struct default_plan plan = {.tile = untiled(f.t), .consumer = -1};
  plan.tile.cycles = m->machine ? (double)f.points * (double)f.reduction : 0;
  if (m->machine) add_lanes(&f, m->machine, &plan.tile);
  default_tiled_nest(m, &f, &plan);
}

static void add_planned(struct default_maker *m, const struct default_plans *all, int stage) {
  const struct default_plan *plan = &all->plan[stage];
  struct default_facts f;
  int tile = stage;
  if (plan->kind == DEFAULT_UNUSED || plan->kind == DEFAULT_FUSED_PRODUCER) return;
  if (plan->kind == DEFAULT_BUFFERED) return;
  if (plan->kind == DEFAULT_FUSED_CONSUMER)
    for (tile = 0; all->plan[tile].consumer != stage;) tile++;
  default_facts(m->p, tile, m->layout, &f);
  if (plan->kind == DEFAULT_FLAT)
    default_flat_nest(m, &f, plan);
  else if (plan->kind == DEFAULT_HORIZONTAL)
    default_horizontal_nest(m, &f, plan);
  else
    default_tiled_nest(m, &f, &all->plan[tile]);
}

/* What stands between the stages of a group reads none of them: it comes first. */
static void add_group(struct default_maker *m, const struct default_plans *all, int first,
                      bool *done) {
  int count = all->p->tensors.count, last = first;
  for (int i = first; i < count; i++)
    if (all->shared[i].group == all->shared[first].group) last = i;
  for (int turn = 0; turn < 2; turn++) {
    if (turn) default_open_rows(m, first);
    for (int i = first; i <= last; i++) {
      bool member = all->shared[i].group == all->shared[first].group;
      if (done[i] || member != turn) continue;
      add_planned(m, all, i);
      done[i] = true;
    }
  }
  m->enclosing = 0;
}

static void add_all(struct default_maker *m, const struct default_plans *all) {
  bool *done = mem_alloc((size_t)all->p->tensors.count + 1);
  for (int i = 0; i < all->p->tensors.count; i++) {
    if (done[i]) continue;
    if (all->shared[i].group)
      add_group(m, all, i, done);
    else
      add_planned(m, all, i);
  }
  mem_free(done);
}

_Static_assert((int)PROGRAM_STAGES *(SCHEDULE_DEPTH + 1) < (int)SCHEDULE_NODES,
               "every program has a default schedule");

static struct schedule *plain(const struct program *p, const char *name,
                              const struct machine *machine) {
  struct default_plans all;
  struct machine any = {.vector_bytes = 16, .registers = 16, .l2 = 1 << 20};
  default_plan_all(&all, p, &any, (struct default_mode){0});
  for (int i = 0; i < p->tensors.count; i++) default_row_major(&p->tensors.data[i], &all.layout[i]);
  struct default_maker m = {
      .p = p, .s = schedule_new(name), .machine = machine, .layout = all.layout};
  for (int i = 0; i < p->tensors.count; i++)
    if (all.plan[i].kind != DEFAULT_UNUSED) add_plain(&m, i);
  mem_free(m.meanings.data);
  default_plan_free(&all);
  return m.s;
}

/* With the groups of stages and the buffers that pay, where `rows`. */
static void plan_mode(struct default_plans *out, const struct program *p,
                      const struct machine *machine, struct default_mode mode, bool rows) {
  default_plan_all(out, p, machine, mode);
  if (rows) default_share_rows(out);
  if (rows && !mode.constraint) default_buffer_stages(out);
}

/* In the mode that it is kept by, or that takes less. */
static void plan_best(struct default_plans *out, const struct program *p,
                      const struct machine *machine, struct default_mode mode,
                      enum default_layout_mode kept, bool rows) {
  bool matters = false;
  struct default_plans told;
  mode.program_layout = kept == LAYOUT_OF_PROGRAM;
  mode.layout_matters = kept == LAYOUT_EITHER ? &matters : NULL;
  plan_mode(out, p, machine, mode, rows);
  out->mode.layout_matters = mode.layout_matters = NULL;
  if (!matters) return;
  mode.program_layout = true;
  plan_mode(&told, p, machine, mode, rows);
  if (default_plan_cycles(&told) < default_plan_cycles(out)) {
    struct default_plans other = *out;
    *out = told;
    told = other;
  }
  default_plan_free(&told);
}

double default_cycles(const struct program *p, const struct machine *machine,
                      enum default_layout_mode kept) {
  struct default_plans all;
  plan_best(&all, p, machine, (struct default_mode){0}, kept, true);
  double cycles = default_plan_cycles(&all);
  default_plan_free(&all);
  return cycles;
}

static struct schedule *tiled(const struct default_plans *all) {
  struct default_maker m = {.p = all->p,
                            .s = schedule_new("heuristic"),
                            .machine = all->machine,
                            .layout = all->layout,
                            .shared = all->shared,
                            .plan = all->plan};
  add_all(&m, all);
  mem_free(m.meanings.data);
  return m.s;
}

/* Its tree; NULL: it is illegal. */
static struct loop_tree *tree_of(const struct program *p, const struct schedule *s,
                                 const struct machine *machine) {
  canvas_context ctx;
  struct loop_tree *tree;
  return loop_tree_bind(&ctx, p, s, machine, &tree) == CANVAS_OK ? tree : NULL;
}

static bool is_legal(const struct program *p, const struct schedule *s,
                     const struct machine *machine) {
  struct loop_tree *tree = tree_of(p, s, machine);
  loop_tree_free(tree);
  return tree != NULL;
}

static struct schedule *wished(const struct program *p, const struct machine *machine,
                               const struct default_constraint *wish, bool rows,
                               struct default_made *out) {
  struct default_plans all;
  struct default_facts f;
  struct schedule *s = NULL;
  plan_best(&all, p, machine, (struct default_mode){.constraint = wish}, LAYOUT_EITHER, rows);
  out->stage = all.constrained;
  if (all.constrained >= 0) {
    out->tile = all.plan[all.constrained].tile;
    default_facts(p, all.constrained, all.layout, &f);
    if (default_meets_constraint(&f, &out->tile, wish)) s = tiled(&all);
  }
  default_plan_free(&all);
  if (!s || is_legal(p, s, machine)) return s;
  schedule_free(s);
  return NULL;
}

struct schedule *schedule_constrained(const struct program *p, const struct machine *machine,
                                      const struct default_constraint *wish,
                                      struct default_made *out) {
  struct schedule *s = wished(p, machine, wish, true, out);
  return s ? s : wished(p, machine, wish, false, out);
}

/* Sets `tree` where the schedule was bound to choose it, NULL elsewhere. */
static struct schedule *heuristic_of(const struct program *p, const struct machine *machine,
                                     enum default_layout_mode kept, struct loop_tree **tree) {
  struct default_plans all;
  struct schedule *family = default_winograd(p, machine);
  if (!family) family = default_odd_rows(p, machine);
  *tree = NULL;
  if (family) return family;
  for (int rows = 1; rows >= 0; rows--) {
    plan_best(&all, p, machine, (struct default_mode){0}, kept, rows);
    struct schedule *s = tiled(&all);
    default_plan_free(&all);
    *tree = tree_of(p, s, machine);
    if (*tree) return s;
    schedule_free(s);
  }
  return plain(p, "plain", machine);
}

struct schedule *schedule_default(const struct program *p, bool heuristic,
                                  const struct machine *machine) {
  struct loop_tree *tree;
  if (!heuristic || !machine) return plain(p, heuristic ? "heuristic" : "naive", NULL);
  struct schedule *s = heuristic_of(p, machine, LAYOUT_EITHER, &tree);
  loop_tree_free(tree);
  return s;
}

canvas_status default_bind_layout(canvas_context *ctx, const struct program *p,
                                  const struct machine *machine, enum default_layout_mode kept,
                                  struct schedule **schedule, struct loop_tree **tree) {
  *schedule = heuristic_of(p, machine, kept, tree);
  if (*tree) return CANVAS_OK;
  canvas_status status = loop_tree_bind(ctx, p, *schedule, machine, tree);
  if (status == CANVAS_OK) return status;
  schedule_free(*schedule);
  *schedule = NULL;
  return status;
}
