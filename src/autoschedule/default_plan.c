/* The plan of each stage: a flat vector loop, vectors along a reduction, a register tile, or a place in the
 * tile of its producer. Stages are planned in the order of the program, as the layout of a stage decides what its
 * consumers load.
 */
#include <stdlib.h>
#include <string.h>

#include "autoschedule/default.h"
#include "autoschedule/default_chooser.h"
#include "cost/policy.h"
#include "program/program_cost.h"
#include "program/program_facts.h"

/* ---- live stages ---- */

static void mark_loads(const struct program *p, int expr, bool *needed) {
  const struct px_node *n = &p->nodes.data[expr];
  for (int i = 0; i < PX_ARGS; i++)
    if (n->arg[i] >= 0) mark_loads(p, n->arg[i], needed);
  if (n->op != PX_LOAD) return;
  needed[n->tensor] = true;
  for (int i = 0; i < p->tensors.data[n->tensor].rank; i++)
    mark_loads(p, p->indices.data[n->first + i], needed);
}

static void find_needed(const struct program *p, bool *needed) {
  for (int i = 0; i < p->outputs.count; i++) needed[p->outputs.data[i]] = true;
  for (int i = p->tensors.count - 1; i >= 0; i--) {
    const struct program_tensor *t = &p->tensors.data[i];
    if (!needed[i] || t->is_input) continue;
    mark_loads(p, t->body, needed);
    for (int j = t->rank; j < t->rank + t->reductions; j++) {
      if (t->axes[j].low >= 0) mark_loads(p, t->axes[j].low, needed);
      if (t->axes[j].high >= 0) mark_loads(p, t->axes[j].high, needed);
    }
  }
}

/* ---- consumers ---- */

int default_loads_as_is(const struct program *p, int expr, int tensor, int *axis) {
  const struct px_node *n = &p->nodes.data[expr];
  int count = 0;
  for (int i = 0; i < PX_ARGS; i++) {
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

int default_only_consumer(const struct default_plans *all, int stage) {
  const struct program_use_list *consumers = &all->uses.consumers;
  int consumer = -1;
  for (int i = consumers->first[stage]; i < consumers->first[stage + 1]; i++) {
    if (all->plan[consumers->use[i].tensor].kind == DEFAULT_UNUSED) continue;
    if (consumer >= 0) return -1;
    consumer = consumers->use[i].tensor;
  }
  return consumer;
}

/* Producer and consumer share the same loops, or none; `axis` as in struct default_plan. */
static bool share_same_loops(const struct default_plans *all, int stage, int consumer,
                             const int *axis) {
  const struct default_shared *s = &all->shared[stage], *r = &all->shared[consumer];
  if (s->group != r->group) return false;
  for (int i = 0; i < s->count; i++)
    if (axis[r->axis[i]] != s->axis[i]) return false;
  return true;
}

/* The consumer reads whole axes of the stage: sets plan->axis. */
static bool reads_axes(const struct default_plans *all, int stage, int consumer,
                       struct default_plan *plan) {
  const struct program *p = all->p;
  const struct program_tensor *t = &p->tensors.data[stage], *r = &p->tensors.data[consumer];
  if (r->rank + r->reductions != t->rank) return false;
  memset(plan->axis, -1, sizeof plan->axis);
  if (default_loads_as_is(p, r->body, stage, plan->axis) < 1) return false;
  for (int i = 0; i < t->rank; i++) {
    int axis = plan->axis[i];
    if (axis < 0 || r->axes[i].size != t->axes[axis].size || r->axes[i].low >= 0) return false;
  }
  default_set_digits(plan, t->rank);
  return true;
}

/* The only consumer, if it is element-wise (or only adds up partial sums) and can be fused; -1 otherwise. Sets axes
 * and digits of the plan. */
static int fusible_consumer(const struct default_plans *all, int stage, struct default_plan *plan) {
  const struct program *p = all->p;
  const struct program_tensor *t = &p->tensors.data[stage];
  int consumer = is_output(p, stage) ? -1 : default_only_consumer(all, stage);
  if (consumer < 0) return -1;
  const struct program_tensor *r = &p->tensors.data[consumer];
  if (r->reductions > 1) return -1;
  if (all->plan[consumer].kind == DEFAULT_FUSED_CONSUMER) return -1;
  if (r->reductions && p->nodes.data[r->body].op != PX_LOAD)
    return -1; /* it may reduce only to add up partial sums */
  if ((r->dtype == PROGRAM_F64) != (t->dtype == PROGRAM_F64)) return -1;
  plan->digits = false;
  if (reads_axes(all, stage, consumer, plan))
    return share_same_loops(all, stage, consumer, plan->axis) ? consumer : -1;
  if (all->mode.no_digits || all->mode.constraint || all->shared[stage].group ||
      all->shared[consumer].group)
    return -1;
  plan->digits = default_reads_digits(p, consumer, stage, plan);
  return plan->digits ? consumer : -1;
}

/* ---- layouts ---- */

/* Moves the vector axis to the end; the other axes in the order of the program. */
static void make_innermost(struct default_layout *layout, int rank, int vector_axis) {
  int count = 0;
  for (int i = 0; i < rank; i++)
    if (i != vector_axis) layout->order[count++] = i;
  if (vector_axis >= 0) layout->order[count] = vector_axis;
}

/* Whether the layout of the stage makes a difference: not if it is constant-folded and only cold loads read it. */
static bool layout_matters(const struct default_plans *all, int stage) {
  if (!all->constant[stage]) return true;
  const struct program_use_list *consumers = &all->uses.consumers;
  for (int i = consumers->first[stage]; i < consumers->first[stage + 1]; i++) {
    struct default_facts f;
    default_facts(all->p, consumers->use[i].tensor, all->layout, &f);
    for (int j = 0; j < f.loads; j++)
      if (f.load[j].tensor == stage && !f.load[j].cold) return true;
    if (f.truncated) return true;
  }
  return false;
}

/* Whether the stage keeps the layout of the program. Call it only where that makes a difference. */
static bool keeps_program_layout(const struct default_plans *all, int stage) {
  bool *matters = all->mode.layout_matters;
  if (matters && !*matters) *matters = layout_matters(all, stage);
  return all->mode.program_layout;
}

/* Sets the layout of a tiled stage: sizes are rounded up to whole tiles, and the vector axis is innermost, unless the
 * program's layout is kept. `axis`: the stage's axis for each axis of `tensor`; NULL: `tensor` is the stage. */
static void set_layout(struct default_plans *all, const struct default_tile *tile, int tensor,
                       const int *axis) {
  const struct program_tensor *t = &all->p->tensors.data[tensor];
  struct default_layout *layout = &all->layout[tensor];
  int vector_axis = -1;
  if (is_output(all->p, tensor)) return;
  for (int i = 0; i < t->rank; i++) {
    int of = axis ? axis[i] : i;
    int64_t steps = of == tile->vector_axis ? tile->steps : tile->rows[of];
    layout->extent[i] = (t->axes[i].size + steps - 1) / steps * steps;
    if (of == tile->vector_axis) vector_axis = i;
  }
  struct default_layout last = *layout;
  make_innermost(&last, t->rank, vector_axis);
  bool same = !memcmp(last.order, layout->order, (size_t)t->rank * sizeof *last.order);
  if ((t->reductions || axis) && !same && !keeps_program_layout(all, tensor)) *layout = last;
}

/* An element-wise stage takes the layout of the first stage of the same shape that it reads. */
static void take_layout(struct default_plans *all, int stage) {
  const struct program *p = all->p;
  const struct program_tensor *t = &p->tensors.data[stage];
  int axis[PROGRAM_AXES];
  const struct program_use_list *operands = &all->uses.operands;
  if (is_output(p, stage)) return;
  for (int o = operands->first[stage]; o < operands->first[stage + 1]; o++) {
    int i = operands->use[o].tensor;
    const struct program_tensor *from = &p->tensors.data[i];
    if (from->is_input || from->rank != t->rank) continue;
    memset(axis, -1, sizeof axis);
    if (default_loads_as_is(p, t->body, i, axis) < 1) continue;
    for (int j = 0; j < t->rank; j++)
      for (int k = 0; k < t->rank; k++)
        if (axis[k] == all->layout[i].order[j]) all->layout[stage].order[j] = k;
    return;
  }
}

/* ---- one stage ---- */

/* The stage reads a tensor with another axis order, along which a flat vector loop can follow one axis only. */
static bool reads_other_layout(const struct default_plans *all, const struct default_facts *f) {
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

/* A power of two that is worth a short vector. */
static bool is_part_of_vector(int64_t size, int lanes) {
  return size >= DEFAULT_SHORT_VECTOR && size < lanes && !(size & (size - 1));
}

/* The position in the layout from which on the stage is one flat vector loop; -1. */
static int first_of_flat(const struct default_plans *all, const struct default_facts *f) {
  const struct program_tensor *t = f->t;
  int lanes = default_lanes(t, all->machine), first = -1, members = 0;
  int64_t size = 1;
  if (t->reductions || t->rank == 0) return -1;
  int most = reads_other_layout(all, f) ? 1 : GROUP_MOST;
  for (int i = t->rank - 1; i >= 0 && members < most; i--) {
    if (!default_flat_axis(f, i) || shared_axes(all, f->stage) >> f->order[i] & 1) break;
    int64_t steps = t->axes[f->order[i]].size;
    members += steps > 1;
    size *= steps;
    if (steps > 1 && (size % lanes == 0 || is_part_of_vector(size, lanes))) first = i;
  }
  return first;
}

/* A tile could need more loops than a schedule has. */
static bool too_deep(const struct program_tensor *t) {
  return t->rank + t->reductions + DEFAULT_TILE_LOOPS > SCHEDULE_DEPTH;
}

/* Sets the strides of the tile's store. Returns whether its layout is free: no output, and not that of the program. */
static bool set_out_strides(struct default_plans *all, struct default_facts *f,
                            const struct default_plan *plan) {
  int to = plan->consumer >= 0 ? plan->consumer : f->stage;
  int64_t stride[PROGRAM_AXES] = {0};
  if (!f->t->reductions) return false;
  if (!is_output(all->p, to) && !keeps_program_layout(all, to)) return true;
  if (plan->consumer < 0) return false;
  default_strides(&all->p->tensors.data[to], &all->layout[to], stride);
  for (int i = 0; i < f->t->rank; i++)
    f->out_stride[i] = stride[plan->digit_of[i]] * plan->digit_step[i];
  return false;
}

/* The fused consumer is an output with another innermost axis: it is computed element by element from the tile. */
static bool is_gathered(const struct default_facts *f, const struct default_plan *plan,
                        bool free_layout) {
  int v = plan->tile.vector_axis;
  return plan->consumer >= 0 && !free_layout && v >= 0 && f->out_stride[v] != 1;
}

/* The whole axis fits into vectors that take at most half of the registers. */
static bool fit_registers(const struct default_plans *all, const struct default_facts *f,
                          int axis) {
  int64_t size = f->t->axes[axis].size;
  int lanes = default_lanes(f->t, all->machine);
  if (size % lanes) return is_part_of_vector(size, lanes);
  return size / lanes <= all->machine->registers / 2 && size / lanes <= DEFAULT_TILE_VECTORS;
}

/* Axes of the tile along which its consumer has non-affine loads. */
static uint32_t non_affine_axes(const struct default_plans *all, int stage) {
  const struct default_plan *plan = &all->plan[stage];
  struct default_facts f;
  uint32_t axes = 0;
  if (plan->consumer < 0) return 0;
  default_facts(all->p, plan->consumer, all->layout, &f);
  int rank = all->p->tensors.data[stage].rank;
  for (int i = 0; i < f.loads; i++)
    for (int j = 0; j < rank && f.load[i].tensor != stage; j++)
      if (f.load[i].non_affine >> plan->digit_of[j] & 1) axes |= 1u << j;
  return axes;
}

/* The axis of the tile along which the consumer's vectors run once the tile is transposed: its rows are contiguous in
 * the output, and enough of them; -1 if there is none. */
static int transposed_axis(const struct default_plans *all, const struct default_facts *f,
                           const struct default_plan *plan, uint32_t non_affine) {
  int lanes = default_lanes(f->t, all->machine);
  if (lanes < DEFAULT_TRANSPOSED_LANES) return -1;
  for (int i = 0; i < f->t->rank; i++) {
    int64_t rows = plan->tile.rows[i];
    if (i == plan->tile.vector_axis || f->out_stride[i] != 1) continue;
    if (non_affine >> i & 1) continue;
    if (default_may_transpose(rows, lanes) && plan->tile.steps % lanes == 0) return i;
  }
  return -1;
}

/* What a tile may do. */
struct tile_choice {
  bool alone;   /* no consumer is fused */
  bool k_block; /* its reduction may be K-blocked */
};

static void choose_tile(struct default_plans *all, struct default_facts *f,
                        struct tile_choice choice) {
  int stage = f->stage;
  struct default_plan *plan = &all->plan[stage];
  default_strides(f->t, &all->layout[stage],
                  f->out_stride); /* a choice before this one may have set others */
  bool fuses = f->t->reductions && !choice.alone;
  plan->consumer = fuses ? fusible_consumer(all, stage, plan) : -1;
  bool free_layout = set_out_strides(all, f, plan), adds_up = false;
  if (plan->consumer >= 0 && !plan->digits)
    adds_up = all->p->tensors.data[plan->consumer].reductions > 0;
  int vector_axis = adds_up ? plan->axis[f->t->rank - 1] : -1;
  if (adds_up && !fit_registers(all, f, vector_axis)) {
    plan->consumer = vector_axis = -1;
    adds_up = false;
  }
  const struct default_constraint *constraint =
      stage == all->constrained ? all->mode.constraint : NULL;
  uint32_t outside = shared_axes(all, stage);
  bool k_blocking =
      choice.k_block && !adds_up && !all->mode.constraint && !outside && default_may_k_block(f);
  uint32_t non_affine = non_affine_axes(all, stage);
  struct default_options options = {
      .pack = all->mode.pack,
      .free_layout = free_layout,
      .lanes = vector_axis,
      .constraint = constraint,
      .non_affine = non_affine,
      .outside = outside,
      .whole = plan->consumer >= 0 && plan->digits,
      .k_blocking = k_blocking,
      .stored = k_blocking && plan->consumer >= 0 && !keeps_program_layout(all, stage),
      .split = !all->mode.constraint};
  default_choose_tile(f, all->machine, options, &plan->tile);
  plan->gathered = !adds_up && is_gathered(f, plan, free_layout);
  plan->transposed = plan->gathered && !constraint ? transposed_axis(all, f, plan, non_affine) : -1;
}

/* The fused consumer would be computed element by element, and has non-affine loads. As a stage of its own it may load
 * contiguous pieces (default_straight.c). */
static bool is_better_alone(const struct default_plans *all, int stage) {
  const struct default_plan *plan = &all->plan[stage];
  return plan->consumer >= 0 && plan->gathered && plan->transposed < 0 &&
         non_affine_axes(all, stage);
}

/* Cycles to store a stage and to load it again in the consumer's own loops. */
static double memory_cycles(const struct default_plans *all, int stage) {
  const struct program_tensor *t = &all->p->tensors.data[stage];
  double bytes = (double)program_elements(all->p, stage) * program_dtype_bytes(t->dtype);
  struct default_facts f;
  default_facts(all->p, all->plan[stage].consumer, all->layout, &f);
  double cycles = default_flat_cycles(&f);
  if (bytes <= (double)all->machine->l2) return cycles;
  bool beyond = default_is_beyond_l3(all->machine, bytes);
  return cycles + 2 * bytes / (beyond ? DEFAULT_MEMORY_RATE : DEFAULT_L3_RATE);
}

/* Chooses again without the consumer that reads digits, if it has another vector axis, index conditions or other
 * non-affine loads, or if a tile that need not divide the axes saves more than the consumer's own loops cost. */
static void compare_alone(struct default_plans *all, struct default_facts *f) {
  struct default_plan *plan = &all->plan[f->stage], fused = *plan;
  struct default_facts consumer;
  default_facts(all->p, fused.consumer, all->layout, &consumer);
  uint32_t non_affine = non_affine_axes(all, f->stage);
  double stored = memory_cycles(all, f->stage);
  choose_tile(all, f, (struct tile_choice){.alone = true, .k_block = true});
  bool simple = !fused.gathered && !consumer.guarded && !non_affine;
  if (simple && fused.tile.cycles <= plan->tile.cycles + stored) *plan = fused;
}

/* A K-blocked reduction is complete after its last block, so that its consumer cannot be fused. */
static void plan_tile(struct default_plans *all, struct default_facts *f) {
  int stage = f->stage;
  struct default_plan *plan = &all->plan[stage];
  choose_tile(all, f, (struct tile_choice){.k_block = true});
  if (is_better_alone(all, stage))
    choose_tile(all, f, (struct tile_choice){.alone = true, .k_block = true});
  if (plan->tile.k_block && plan->consumer >= 0) {
    choose_tile(all, f, (struct tile_choice){.alone = true, .k_block = true});
    if (!plan->tile.k_block) choose_tile(all, f, (struct tile_choice){.k_block = false});
  }
  if (plan->consumer >= 0 && plan->digits) compare_alone(all, f);
  plan->kind = DEFAULT_TILED;
  if (plan->consumer >= 0) {
    plan->kind = DEFAULT_FUSED_PRODUCER;
    all->plan[plan->consumer].kind = DEFAULT_FUSED_CONSUMER;
    if (!plan->digits) set_layout(all, &plan->tile, plan->consumer, plan->axis);
  } else {
    set_layout(all, &plan->tile, stage, NULL);
  }
}

static void plan_stage(struct default_plans *all, int stage) {
  const struct program_tensor *t = &all->p->tensors.data[stage];
  struct default_plan *plan = &all->plan[stage];
  struct default_facts f;
  if (!t->reductions) take_layout(all, stage);
  default_facts(all->p, stage, all->layout, &f);
  bool may_be_flat = !too_deep(t) && stage != all->constrained;
  plan->first = may_be_flat ? first_of_flat(all, &f) : -1;
  int horizontal = may_be_flat ? default_horizontal_axis(&f, all->machine) : -1;
  if (plan->first >= 0) {
    plan->kind = DEFAULT_FLAT;
    plan->tile.cycles = default_flat_cycles(&f);
  } else if (horizontal >= 0) {
    plan->kind = DEFAULT_HORIZONTAL;
    plan->first = horizontal;
    plan->tile.cycles = default_horizontal_cycles(&f, all->machine, horizontal);
  } else {
    plan_tile(all, &f);
  }
}

/* Cycles of an element that is computed as a scalar: function calls. */
static double scalar_calls(const struct default_facts *f) {
  return f->operations < DEFAULT_HEAVY_OPERATIONS ? 0 : DEFAULT_FUSED_CALL * f->operations;
}

/* Cycles of a fused consumer beside its tile: gathered elements, or scalar function calls. */
static double consumer_cycles(const struct default_plans *all, int stage) {
  struct default_facts f;
  int of = 0, lane = -1, gathered = 0;
  while (all->plan[of].consumer != stage) of++;
  const struct default_plan *plan = &all->plan[of];
  int vector_axis = plan->gathered ? plan->transposed : plan->tile.vector_axis;
  default_facts(all->p, stage, all->layout, &f);
  if (plan->gathered && vector_axis < 0) return scalar_calls(&f) * (double)f.points;
  if (vector_axis >= 0 && plan->digit_of[vector_axis] < f.t->rank)
    lane = plan->digit_of[vector_axis];
  if (lane < 0) return 0;
  for (int i = 0; i < f.loads; i++)
    gathered += f.load[i].tensor != of && f.load[i].stride[lane] > 1;
  return DEFAULT_GATHERED_ELEMENT * gathered * (double)f.points;
}

double default_plan_cycles(const struct default_plans *all) {
  double cycles = -all->saved;
  for (int i = 0; i < all->p->tensors.count; i++) {
    if (all->plan[i].kind == DEFAULT_FUSED_CONSUMER) cycles += consumer_cycles(all, i);
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
  *all = (struct default_plans){
      .p = p, .machine = machine, .mode = mode, .uses = program_find_uses(p)};
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
  program_free_uses(&plans->uses);
  mem_free(plans->layout);
  mem_free(plans->plan);
  mem_free(plans->shared);
  mem_free(plans->constant);
}
