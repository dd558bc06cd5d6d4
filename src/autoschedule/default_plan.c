/* What becomes of each stage: a long vector, a tile, or a place in the tile of what it reads. See
 * default.h.
 */
#include <stdlib.h>
#include <string.h>

#include "autoschedule/default.h"
#include "autoschedule/default_chooser.h"
#include "program/program_facts.h"

/* Cycles of an operation of a function that is called for each element, and of a lane that lies apart in memory. */
static const double CALLED = 2, GATHERED = 0.7;

/* ---- what outputs need ---- */

static void need(const struct program *p, int expr, bool *needed) {
  const struct px_node *n = &p->nodes.data[expr];
  for (int i = 0; i < 3; i++)
    if (n->arg[i] >= 0) need(p, n->arg[i], needed);
  if (n->op != PX_LOAD) return;
  needed[n->tensor] = true;
  for (int i = 0; i < p->tensors.data[n->tensor].rank; i++)
    need(p, p->indices.data[n->first + i], needed);
}

static void find_needed(const struct program *p, bool *needed) {
  for (int i = 0; i < p->outputs.count; i++) needed[p->outputs.data[i]] = true;
  for (int i = p->tensors.count - 1; i >= 0; i--) {
    const struct program_tensor *t = &p->tensors.data[i];
    if (!needed[i] || t->is_input) continue;
    need(p, t->body, needed);
    for (int j = t->rank; j < t->rank + t->reductions; j++) {
      if (t->axes[j].low >= 0) need(p, t->axes[j].low, needed);
      if (t->axes[j].high >= 0) need(p, t->axes[j].high, needed);
    }
  }
}

/* ---- readers ---- */

int default_loads_as_is(const struct program *p, int expr, int tensor, int *axis) {
  const struct px_node *n = &p->nodes.data[expr];
  int count = 0;
  for (int i = 0; i < 3; i++) {
    int below = n->arg[i] >= 0 ? default_loads_as_is(p, n->arg[i], tensor, axis) : 0;
    if (below < 0) return -1;
    count += below;
  }
  if (n->op != PX_LOAD || n->tensor != tensor) return count;
  for (int i = 0; i < p->tensors.data[tensor].rank; i++) {
    const struct px_node *at = &p->nodes.data[p->indices.data[n->first + i]];
    if (at->op != PX_AXIS) return -1;
    if (axis[at->integer] >= 0 && axis[at->integer] != i) return -1;
    axis[at->integer] = i;
  }
  return count + 1;
}

static bool loads(const struct program *p, int expr, int tensor) {
  const struct px_node *n = &p->nodes.data[expr];
  for (int i = 0; i < 3; i++)
    if (n->arg[i] >= 0 && loads(p, n->arg[i], tensor)) return true;
  return n->op == PX_LOAD && n->tensor == tensor;
}

int default_only_consumer(const struct default_plans *all, int stage) {
  const struct program *p = all->p;
  int reader = -1;
  for (int i = stage + 1; i < p->tensors.count; i++) {
    if (all->plan[i].kind == DEFAULT_UNUSED || !loads(p, p->tensors.data[i].body, stage)) continue;
    if (reader >= 0) return -1;
    reader = i;
  }
  return reader;
}

/* They share the same loops, or none: axis as in plan. */
static bool share_alike(const struct default_plans *all, int stage, int reader, const int *axis) {
  const struct default_shared *s = &all->shared[stage], *r = &all->shared[reader];
  if (s->group != r->group) return false;
  for (int i = 0; i < s->count; i++)
    if (axis[r->axis[i]] != s->axis[i]) return false;
  return true;
}

/* The stage that makes something of each element of this one, and nothing else does; -1. */
static int mapping_reader(const struct default_plans *all, int stage, int *axis) {
  const struct program *p = all->p;
  const struct program_tensor *t = &p->tensors.data[stage];
  int reader = is_output(p, stage) ? -1 : default_only_consumer(all, stage);
  if (reader < 0) return -1;
  const struct program_tensor *r = &p->tensors.data[reader];
  if (r->rank + r->reductions != t->rank || r->reductions > 1) return -1;
  if (all->plan[reader].kind == DEFAULT_FUSED_CONSUMER) return -1;
  if (r->reductions && p->nodes.data[r->body].op != PX_LOAD)
    return -1; /* it adds up partial sums */
  if ((r->dtype == PROGRAM_F64) != (t->dtype == PROGRAM_F64)) return -1;
  memset(axis, -1, PROGRAM_AXES * sizeof *axis);
  if (default_loads_as_is(p, r->body, stage, axis) < 1) return -1;
  for (int i = 0; i < t->rank; i++)
    if (axis[i] < 0 || r->axes[i].size != t->axes[axis[i]].size || r->axes[i].low >= 0) return -1;
  return share_alike(all, stage, reader, axis) ? reader : -1;
}

/* ---- how it is kept ---- */

/* The lanes last. */
static void keep_lanes_last(struct default_layout *kept, int rank, int lanes) {
  int count = 0;
  for (int i = 0; i < rank; i++)
    if (i != lanes) kept->order[count++] = i;
  if (lanes >= 0) kept->order[count] = lanes;
}

/* How a stage is kept is of no account where it is prepared and few terms of sums read it, as what borders are made of. */
static bool is_of_account(const struct default_plans *all, int stage) {
  if (!all->constant[stage]) return true;
  for (int i = stage + 1; i < all->p->tensors.count; i++) {
    struct default_facts f;
    if (!stage_loads(all->p, i, stage)) continue;
    default_facts(all->p, i, all->layout, &f);
    for (int j = 0; j < f.loads; j++)
      if (f.load[j].tensor == stage && !f.load[j].cold) return true;
    if (f.truncated) return true;
  }
  return false;
}

/* Asked only where it makes a difference. */
static bool is_told(const struct default_plans *all, int stage) {
  bool *matters = all->mode.layout_matters;
  if (matters && !*matters) *matters = is_of_account(all, stage);
  return all->mode.program_layout;
}

/* Of each axis what its tiles cover. */
static void keep_tiles(struct default_plans *all, const struct default_tile *tile, int tensor,
                       const int *axis) {
  const struct program_tensor *t = &all->p->tensors.data[tensor];
  struct default_layout *kept = &all->layout[tensor];
  int lanes = -1;
  if (is_output(all->p, tensor)) return;
  for (int i = 0; i < t->rank; i++) {
    int of = axis ? axis[i] : i;
    int64_t steps = of == tile->vector_axis ? tile->steps : tile->rows[of];
    kept->extent[i] = (t->axes[i].size + steps - 1) / steps * steps;
    if (of == tile->vector_axis) lanes = i;
  }
  struct default_layout last = *kept;
  keep_lanes_last(&last, t->rank, lanes);
  bool same = !memcmp(last.order, kept->order, (size_t)t->rank * sizeof *last.order);
  if ((t->reductions || axis) && !same && !is_told(all, tensor)) *kept = last;
}

/* Without a reduction it is kept as the first stage that it reads in its own shape. */
static void keep_as_read(struct default_plans *all, int stage) {
  const struct program *p = all->p;
  const struct program_tensor *t = &p->tensors.data[stage];
  int axis[PROGRAM_AXES];
  for (int i = 0; i < stage && !is_output(p, stage); i++) {
    const struct program_tensor *from = &p->tensors.data[i];
    if (from->is_input || from->rank != t->rank || !loads(p, t->body, i)) continue;
    memset(axis, -1, sizeof axis);
    if (default_loads_as_is(p, t->body, i, axis) < 1) continue;
    for (int j = 0; j < t->rank; j++)
      for (int k = 0; k < t->rank; k++)
        if (axis[k] == all->layout[i].order[j]) all->layout[stage].order[j] = k;
    return;
  }
}

/* ---- one stage ---- */

/* Something that it reads is kept in parts of axes, of which a long vector follows one only. */
static bool reads_parts(const struct default_plans *all, const struct default_facts *f) {
  for (int i = 0; i < f->loads; i++) {
    const struct program_tensor *t = &all->p->tensors.data[f->load[i].tensor];
    for (int j = 0; j < t->rank; j++)
      if (all->layout[f->load[i].tensor].order[j] != j) return true;
  }
  return false;
}

static uint32_t shared_axes(const struct default_plans *all, int stage) {
  uint32_t axes = 0;
  for (int i = 0; i < all->shared[stage].count; i++) axes |= 1u << all->shared[stage].axis[i];
  return axes;
}

/* From which of its axes, as they are kept, a stage is one vector; -1. */
static int first_of_long(const struct default_plans *all, const struct default_facts *f) {
  const struct program_tensor *t = f->t;
  int lanes = default_lanes(t, all->machine), first = -1, members = 0;
  int64_t size = 1;
  if (t->reductions || t->rank == 0) return -1;
  int most = reads_parts(all, f) ? 1 : GROUP_MOST;
  for (int i = t->rank - 1; i >= 0 && members < most; i--) {
    if (!default_flat_axis(f, i) || shared_axes(all, f->stage) >> f->order[i] & 1) break;
    int64_t steps = t->axes[f->order[i]].size;
    members += steps > 1;
    size *= steps;
    if (steps > 1 && (size % lanes == 0 || (size >= 4 && size < lanes && !(size & (size - 1)))))
      first = i;
  }
  return first;
}

static bool too_deep(const struct program_tensor *t) {
  return t->rank + t->reductions + 4 > SCHEDULE_DEPTH;
}

/* The strides of what is written in the end, if that is an output. */
static bool set_written(struct default_plans *all, struct default_facts *f,
                        const struct default_plan *plan) {
  int to = plan->consumer >= 0 ? plan->consumer : f->stage;
  int64_t stride[PROGRAM_AXES] = {0};
  if (!f->t->reductions) return false;
  if (!is_output(all->p, to) && !is_told(all, to)) return true;
  if (plan->consumer < 0) return false;
  default_strides(&all->p->tensors.data[to], &all->layout[to], stride);
  for (int i = 0; i < f->t->rank; i++) f->out_stride[plan->axis[i]] = stride[i];
  return false;
}

/* What reads the sums is an output that has the lanes elsewhere: element by element, from a tile that is
 * kept. */
static bool is_apart(const struct default_facts *f, const struct default_plan *plan, bool inner) {
  int v = plan->tile.vector_axis;
  return plan->consumer >= 0 && !inner && v >= 0 && f->out_stride[v] != 1;
}

/* All of the axis as lanes of vectors, which are half of the registers at most. */
static bool fit_registers(const struct default_plans *all, const struct default_facts *f,
                          int axis) {
  int64_t size = f->t->axes[axis].size;
  int lanes = default_lanes(f->t, all->machine);
  if (size % lanes) return size >= 4 && size < lanes && !(size & (size - 1));
  return size / lanes <= all->machine->registers / 2 && size / lanes <= 8;
}

/* Of the tile's axes those along which its reader loads other tensors in a twisted way. */
static uint32_t turned_axes(const struct default_plans *all, const struct default_plan *plan) {
  struct default_facts f;
  uint32_t axes = 0;
  if (plan->consumer < 0) return 0;
  default_facts(all->p, plan->consumer, all->layout, &f);
  for (int i = 0; i < f.loads; i++)
    for (int j = 0; j < f.t->rank; j++)
      if (f.load[i].non_affine >> j & 1) axes |= 1u << plan->axis[j];
  return axes;
}

/* What reads it has vectors along these rows of the tile, which follow each other there: where they are enough, and
 * every tile has them all; -1. `turned` as turned_axes has it. */
static int across(const struct default_plans *all, const struct default_facts *f,
                  const struct default_plan *plan, uint32_t turned) {
  int lanes = default_lanes(f->t, all->machine);
  if (lanes < DEFAULT_TRANSPOSED_LANES) return -1;
  for (int i = 0; i < f->t->rank; i++) {
    int64_t rows = plan->tile.rows[i];
    if (i == plan->tile.vector_axis || f->out_stride[i] != 1) continue;
    if (turned >> i & 1) continue;
    if (default_may_transpose(rows, lanes) && plan->tile.steps % lanes == 0) return i;
  }
  return -1;
}

/* How a tile may be chosen. */
struct tile_choice {
  bool alone; /* nothing is computed in it */
  bool parts; /* its sums may come in parts */
};

static void choose_tile(struct default_plans *all, struct default_facts *f,
                        struct tile_choice choice) {
  int stage = f->stage;
  struct default_plan *plan = &all->plan[stage];
  default_strides(f->t, &all->layout[stage], f->out_stride); /* not those of a choice before */
  bool reads = f->t->reductions && !choice.alone;
  plan->consumer = reads ? mapping_reader(all, stage, plan->axis) : -1;
  bool inner = set_written(all, f, plan), adds_up = false;
  if (plan->consumer >= 0) adds_up = all->p->tensors.data[plan->consumer].reductions > 0;
  int lanes = adds_up ? plan->axis[f->t->rank - 1] : -1;
  if (adds_up && !fit_registers(all, f, lanes)) {
    plan->consumer = lanes = -1;
    adds_up = false;
  }
  const struct default_constraint *wish = stage == all->constrained ? all->mode.constraint : NULL;
  uint32_t outside = shared_axes(all, stage);
  bool parts =
      choice.parts && !adds_up && !all->mode.constraint && !outside && default_may_k_block(f);
  uint32_t turned = turned_axes(all, plan);
  struct default_options options = {.pack = all->mode.pack,
                                    .free_layout = inner,
                                    .lanes = lanes,
                                    .constraint = wish,
                                    .non_affine = turned,
                                    .outside = outside,
                                    .k_blocking = parts,
                                    .stored = parts && plan->consumer >= 0 && !is_told(all, stage),
                                    .split = !all->mode.constraint};
  default_choose_tile(f, all->machine, options, &plan->tile);
  plan->gathered = !adds_up && is_apart(f, plan, inner);
  plan->transposed = plan->gathered && !wish ? across(all, f, plan, turned) : -1;
}

/* What reads the sums would be computed element by element, and loads something in a twisted way: as a stage of its own it
 * may come in straight pieces (default_straight.c). */
static bool is_better_behind(const struct default_plans *all, const struct default_plan *plan) {
  return plan->consumer >= 0 && plan->gathered && plan->transposed < 0 && turned_axes(all, plan);
}

/* A sum in parts is ready with the last one: what reads it stands behind. */
static void plan_tile(struct default_plans *all, struct default_facts *f) {
  int stage = f->stage;
  struct default_plan *plan = &all->plan[stage];
  choose_tile(all, f, (struct tile_choice){.parts = true});
  if (is_better_behind(all, plan))
    choose_tile(all, f, (struct tile_choice){.alone = true, .parts = true});
  if (plan->tile.k_block && plan->consumer >= 0) {
    choose_tile(all, f, (struct tile_choice){.alone = true, .parts = true});
    if (!plan->tile.k_block) choose_tile(all, f, (struct tile_choice){.parts = false});
  }
  plan->kind = DEFAULT_TILED;
  if (plan->consumer >= 0) {
    plan->kind = DEFAULT_FUSED_PRODUCER;
    all->plan[plan->consumer].kind = DEFAULT_FUSED_CONSUMER;
    keep_tiles(all, &plan->tile, plan->consumer, plan->axis);
  } else {
    keep_tiles(all, &plan->tile, stage, NULL);
  }
}

static void plan_stage(struct default_plans *all, int stage) {
  const struct program_tensor *t = &all->p->tensors.data[stage];
  struct default_plan *plan = &all->plan[stage];
  struct default_facts f;
  if (!t->reductions) keep_as_read(all, stage);
  default_facts(all->p, stage, all->layout, &f);
  bool open = !too_deep(t) && stage != all->constrained;
  plan->first = open ? first_of_long(all, &f) : -1;
  int along = open ? default_horizontal_axis(&f, all->machine) : -1;
  if (plan->first >= 0) {
    plan->kind = DEFAULT_FLAT;
    plan->tile.cycles = default_flat_cycles(&f);
  } else if (along >= 0) {
    plan->kind = DEFAULT_HORIZONTAL;
    plan->first = along;
    plan->tile.cycles = default_horizontal_cycles(&f, all->machine, along);
  } else {
    plan_tile(all, &f);
  }
}

/* Cycles of an element that is computed by itself. */
static double calls_apart(const struct default_facts *f) {
  return f->operations < DEFAULT_CALLS ? 0 : CALLED * f->operations;
}

/* What a stage that is computed in the tile of another takes beside it: lanes that are gathered, or functions element
 * by element. */
static double beside_tile(const struct default_plans *all, int stage) {
  struct default_facts f;
  int of = 0, lane = -1, gathered = 0;
  while (all->plan[of].consumer != stage) of++;
  const struct default_plan *plan = &all->plan[of];
  int along = plan->gathered ? plan->transposed : plan->tile.vector_axis;
  default_facts(all->p, stage, all->layout, &f);
  if (plan->gathered && along < 0) return calls_apart(&f) * (double)f.points;
  for (int i = 0; i < f.t->rank; i++)
    if (plan->axis[i] == along) lane = i;
  if (lane < 0) return 0;
  for (int i = 0; i < f.loads; i++)
    gathered += f.load[i].tensor != of && f.load[i].stride[lane] > 1;
  return GATHERED * gathered * (double)f.points;
}

double default_plan_cycles(const struct default_plans *all) {
  double cycles = -all->saved;
  for (int i = 0; i < all->p->tensors.count; i++) {
    if (all->plan[i].kind == DEFAULT_FUSED_CONSUMER) cycles += beside_tile(all, i);
    if (all->plan[i].kind != DEFAULT_UNUSED && (!all->constant[i] || is_output(all->p, i)))
      cycles += all->plan[i].tile.cycles;
  }
  return cycles;
}

static void plan_stages(struct default_plans *all) {
  int count = all->p->tensors.count;
  bool *needed = mem_alloc((size_t)count + 1);
  find_needed(all->p, needed);
  all->constrained = all->mode.constraint ? default_constrained_stage(all->p, needed) : -1;
  for (int i = 0; i < count; i++) {
    const struct program_tensor *t = &all->p->tensors.data[i];
    default_row_major(t, &all->layout[i]);
    all->plan[i].consumer = -1;
    all->plan[i].kind = needed[i] && !t->is_input ? DEFAULT_TILED : DEFAULT_UNUSED;
  }
  mem_free(needed);
  for (int i = 0; i < count; i++)
    if (all->plan[i].kind == DEFAULT_TILED) plan_stage(all, i);
}

static void open_plans(struct default_plans *all, const struct program *p,
                       const struct machine *machine, struct default_mode mode) {
  size_t count = (size_t)p->tensors.count + 1;
  *all = (struct default_plans){.p = p, .machine = machine, .mode = mode};
  all->layout = mem_alloc(count * sizeof *all->layout);
  all->plan = mem_alloc(count * sizeof *all->plan);
  all->shared = mem_alloc(count * sizeof *all->shared);
  all->constant = program_constants(p);
}

void default_plan_all(struct default_plans *all, const struct program *p,
                      const struct machine *machine, struct default_mode mode) {
  open_plans(all, p, machine, mode);
  plan_stages(all);
}

void default_plan_shared(struct default_plans *out, const struct default_plans *plans,
                         const struct default_shared *shared) {
  open_plans(out, plans->p, plans->machine, plans->mode);
  memcpy(out->shared, shared, (size_t)plans->p->tensors.count * sizeof *shared);
  plan_stages(out);
}

void default_plan_free(struct default_plans *plans) {
  mem_free(plans->layout);
  mem_free(plans->plan);
  mem_free(plans->shared);
  mem_free(plans->constant);
}
