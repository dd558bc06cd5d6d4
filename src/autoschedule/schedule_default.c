/* The schedule of a program that nobody tuned, from the plans of its stages. See default.h.
 *
 *     heuristic   the planned tiles; if binding rejects it, the same without loops that stages share
 *     plain       vectors along the last axis, where it is contiguous; for what `heuristic` cannot do
 *     naive       each live stage at the root, own axes outside reductions, without marks and numbers
 *
 * A plain schedule:
 *
 *     n, co, h:para, w_o, ci, kh, kw, w_v:16:vec =>
 *         @Y = n, co, h, {w_o, w_v}/w // ci, kh, kw
 */
#include <stdlib.h>

#include "autoschedule/default.h"
#include "autoschedule/winograd_nest.h"
#include "cost/policy.h"

/* Own axes and reductions in the order of the program. */
static struct default_tile untiled(const struct program_tensor *t) {
  struct default_tile tile = {
      .vector_axis = -1, .steps = 1, .cache_block = 1, .block_axis = -1, .sliding = -1};
  for (int i = 0; i < t->rank + t->reductions; i++) tile.order[i] = i;
  for (int i = 0; i < t->rank; i++) tile.rows[i] = 1;
  return tile;
}

/* Vectors along the last own axis, if every load is contiguous or invariant along it. */
static void add_vectors(const struct default_facts *f, const struct machine *machine,
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
  for (int64_t steps = lanes; steps >= DEFAULT_SHORT_VECTOR && tile->vector_axis < 0; steps /= 2)
    if (size % steps == 0) {
      tile->vector_axis = last;
      tile->steps = steps;
    }
}

/* Adds the loops of a stage to a plain or naive schedule. */
static void add_plain(struct default_maker *m, int stage) {
  struct default_facts f;
  default_facts(m->p, stage, m->layout, &f);
  struct default_plan plan = {.tile = untiled(f.t), .consumer = -1};
  plan.tile.cycles = m->machine ? (double)f.points * (double)f.reduction : 0;
  if (m->machine) add_vectors(&f, m->machine, &plan.tile);
  default_tiled_nest(m, &f, &plan);
}

/* Adds the loops of a stage, with its fused consumer; none if another stage's loops have it. */
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

/* Adds the stages of a group inside their common loops. Stages between them in the program read none of them, and
 * are added before. */
static void add_group(struct default_maker *m, const struct default_plans *all, int first,
                      bool *done) {
  int count = all->p->tensors.count, last = first;
  for (int i = first; i < count; i++)
    if (all->shared[i].group == all->shared[first].group) last = i;
  for (int inside = 0; inside < 2; inside++) {
    if (inside) default_open_rows(m, first);
    for (int i = first; i <= last; i++) {
      bool member = all->shared[i].group == all->shared[first].group;
      if (done[i] || member != inside) continue;
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
  struct machine any = {.vector_bytes = DEFAULT_PLAIN_VECTOR_BYTES,
                        .registers = DEFAULT_PLAIN_REGISTERS,
                        .line = DEFAULT_PLAIN_LINE,
                        .l2 = DEFAULT_PLAIN_L2};
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

/* The plan in one mode; with `rows`, loops that stages share and buffers are added where they pay. */
static void plan_mode(struct default_plans *out, const struct program *p,
                      const struct machine *machine, struct default_mode mode, bool rows) {
  default_plan_all(out, p, machine, mode);
  if (rows) default_share_rows(out);
  if (rows && !mode.constraint) default_buffer_stages(out);
}

/* The plan for the layout that the program was edited for, or the cheaper one of both. */
static void plan_best(struct default_plans *out, const struct program *p,
                      const struct machine *machine, struct default_mode mode,
                      enum default_layout_mode layout, bool rows) {
  bool matters = false;
  struct default_plans other;
  mode.program_layout = layout == LAYOUT_OF_PROGRAM;
  mode.layout_matters = layout == LAYOUT_EITHER ? &matters : NULL;
  plan_mode(out, p, machine, mode, rows);
  out->mode.layout_matters = mode.layout_matters = NULL;
  if (!matters) return;
  mode.program_layout = true;
  plan_mode(&other, p, machine, mode, rows);
  if (default_plan_cycles(&other) < default_plan_cycles(out)) {
    struct default_plans worse = *out;
    *out = other;
    other = worse;
  }
  default_plan_free(&other);
}

double default_cycles(const struct program *p, const struct machine *machine,
                      enum default_layout_mode layout) {
  struct default_plans all;
  plan_best(&all, p, machine, (struct default_mode){0}, layout, true);
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

/* The bound schedule; NULL if it is illegal. */
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

/* The planned schedule if it meets the constraint and is legal; else NULL. */
static struct schedule *constrained(const struct program *p, const struct machine *machine,
                                    const struct default_constraint *constraint, bool rows,
                                    struct default_made *out) {
  struct default_plans all;
  struct default_facts f;
  struct schedule *s = NULL;
  plan_best(&all, p, machine, (struct default_mode){.constraint = constraint}, LAYOUT_EITHER, rows);
  out->stage = all.constrained;
  if (all.constrained >= 0) {
    out->tile = all.plan[all.constrained].tile;
    default_facts(p, all.constrained, all.layout, &f);
    if (default_meets_constraint(&f, &out->tile, constraint)) s = tiled(&all);
  }
  default_plan_free(&all);
  if (!s || is_legal(p, s, machine)) return s;
  schedule_free(s);
  return NULL;
}

struct schedule *schedule_constrained(const struct program *p, const struct machine *machine,
                                      const struct default_constraint *constraint,
                                      struct default_made *out) {
  struct schedule *s = constrained(p, machine, constraint, true, out);
  return s ? s : constrained(p, machine, constraint, false, out);
}

/* The default schedule of an edited program. Sets `tree` if it was bound on the way, else NULL. */
static struct schedule *heuristic_of(const struct program *p, const struct machine *machine,
                                     enum default_layout_mode layout, struct loop_tree **tree) {
  struct default_plans all;
  struct schedule *family = default_winograd(p, machine);
  if (!family) family = default_odd_rows(p, machine);
  *tree = NULL;
  if (family) return family;
  for (int rows = 1; rows >= 0; rows--) {
    plan_best(&all, p, machine, (struct default_mode){.no_digits = !rows}, layout, rows);
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
                                  const struct machine *machine, enum default_layout_mode layout,
                                  struct schedule **schedule, struct loop_tree **tree) {
  *schedule = heuristic_of(p, machine, layout, tree);
  if (*tree) return CANVAS_OK;
  canvas_status status = loop_tree_bind(ctx, p, *schedule, machine, tree);
  if (status == CANVAS_OK) return status;
  schedule_free(*schedule);
  *schedule = NULL;
  return status;
}
