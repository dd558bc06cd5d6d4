/* The storage of the values and accumulators of each stage. See storage.h.
 *
 * Guarantees: dead stages have no storage, others have some; all arrays on the stack together take
 * at most STACK_BYTES.
 */
#include <stdlib.h>

#include "bind/bind.h"
#include "program/program_cost.h"

int64_t storage_variables(const struct storage *s) {
  return s->per_lane ? s->elements : s->elements / s->lanes;
}

int64_t storage_bytes(const struct storage *s) {
  return s->elements * program_dtype_bytes(s->dtype) * (s->per_lane ? s->lanes : 1);
}

/* ---- dead code ---- */

static void mark_read(struct binder *b, int consumer, bool *alive) {
  for (int i = 0; i < b->reads.count; i++)
    if (b->reads.data[i].consumer == consumer) alive[b->reads.data[i].producer] = true;
}

/* A stage is dead if no output depends on it. Consumers come after producers, so one backward pass
 * is enough. */
static void find_dead(struct binder *b) {
  bool *alive = mem_alloc((size_t)b->tree->count + 1);
  for (int i = b->tree->count - 1; i >= 0; i--) {
    struct bound_stage *stage = &b->tree->stages[i];
    stage->dead = !stage->is_output && !alive[i];
    if (!stage->dead) mark_read(b, i, alive);
  }
  mem_free(alive);
}

/* ---- values ---- */

/* Says why a buffer with the scope `reg` cannot be variables. */
static canvas_status reject_reg(const struct binder *b, const struct bound_stage *stage,
                                const struct named_places *places) {
  const struct bound_stage *at = places->at ? places->at : stage;
  const char *name = stage_name(b, stage), *where = stage_name(b, at);
  if (places->loop < 0)
    return reject(
        b, stage_place(b, stage),
        "':reg' buffer '%s' cannot be in registers: its index in '%s' is not constant, or "
        "not of the same lanes everywhere",
        name, where);
  return reject(
      b, stage_place(b, stage),
      "':reg' buffer '%s' cannot be in registers: its index in '%s' depends on loop '%s', "
      "%s",
      name, where, loop_name(b, places->loop),
      b->tree->loops[places->loop].unrolled ? "which is not a whole number of vectors"
                                            : "which is not unrolled");
}

static canvas_status check_reg(const struct binder *b, const struct bound_stage *stage,
                               const struct named_places *places) {
  const struct storage *s = &stage->value;
  if (!places->lanes) return reject_reg(b, stage, places);
  int64_t variables = stage->elements / places->lanes;
  if (s->kind != STORAGE_NAMED)
    return reject(b, stage_place(b, stage),
                  "':reg' buffer '%s' cannot be in registers: it needs %lld variables, at most %d",
                  stage_name(b, stage), (long long)variables, NAMED_VARIABLES);
  if (storage_variables(s) > b->tree->machine.registers)
    warn(b, stage_place(b, stage), "':reg' buffer '%s' fills %lld registers, the machine has %d",
         stage_name(b, stage), (long long)storage_variables(s), b->tree->machine.registers);
  return CANVAS_OK;
}

/* Variables if possible, else an array; choose_memory decides between stack and heap. */
static canvas_status store_values(struct binder *b, struct bound_stage *stage) {
  struct storage *s = &stage->value;
  struct named_places places = {0};
  *s = (struct storage){.kind = STORAGE_OUTPUT,
                        .dtype = stage_tensor(b, stage)->dtype,
                        .elements = stage->elements,
                        .lanes = 1,
                        .lane_stride = 1};
  if (stage->is_output) return CANVAS_OK;
  if (!find_named_places(b, stage, &places)) places.lanes = 0;
  bool named = places.lanes && stage->elements / places.lanes <= NAMED_VARIABLES;
  s->kind = named ? STORAGE_NAMED : STORAGE_STACK;
  s->per_lane = within_vec(stage, stage->compute_at, true);
  if (s->per_lane) {
    s->lanes = b->tree->loops[stage->vec].lanes;
  } else if (named) {
    s->lanes = places.lanes;
    s->lane_stride = places.lane_stride;
  }
  if (named || s->per_lane) s->dtype = stage->compute_dtype;
  return stage->scope == SCOPE_REG ? check_reg(b, stage, &places) : CANVAS_OK;
}

/* ---- accumulators ---- */

/* Whether accumulators along the step can be variables: it is unrolled, and not a vector group. */
static bool names_step(const struct binder *b, const struct bound_stage *stage,
                       const struct step *step) {
  bool group = b->s->nodes.data[step->node].loop.count > 1;
  return b->tree->loops[step->node].unrolled && !(group && step->node == stage->vec);
}

/* Storage for accumulators of their own: their shape is that of the spatial loops inside
 * `start`. */
static struct storage sums_of(const struct binder *b, const struct bound_stage *stage) {
  struct storage s = {
      .dtype = stage->accumulator_dtype, .elements = 1, .lanes = 1, .lane_stride = 1};
  bool named = true;
  for (int i = stage_step(stage, stage->start); i < stage->steps; i++) {
    const struct step *step = &stage->path[i];
    if (!stage_spatial(b->tree, stage, i) || step->extent == 1) continue;
    s.elements *= step_padded_extent(b->tree, step);
    named = named && names_step(b, stage, step);
    if (step->node == stage->vec) s.lanes = b->tree->loops[step->node].lanes;
  }
  named = named && s.elements / s.lanes <= NAMED_VARIABLES;
  s.kind = named ? STORAGE_NAMED : STORAGE_STACK;
  s.per_lane = within_vec(stage, stage->start, false);
  if (s.per_lane)
    s.lanes = b->tree->loops[stage->vec].lanes;
  else if (!named)
    s.lanes = 1;
  return s;
}

/* Whether only loops of one iteration are between the reduction and the compute-at loop. */
static bool begins_where_it_lives(const struct binder *b, const struct bound_stage *stage) {
  int around = b->s->nodes.data[stage->start].parent;
  while (around != stage->compute_at && b->tree->loops[around].extent == 1)
    around = b->s->nodes.data[around].parent;
  return around == stage->compute_at;
}

/* Whether the reduction is inside the tail condition of an axis, all of whose loops are around the
 * reduction. Variables declared inside would not be visible after it. */
static bool begins_under_a_condition(const struct bound_stage *stage) {
  for (int axis = 0; axis < PROGRAM_AXES; axis++) {
    bool around = stage->tail[axis];
    for (int i = stage_step(stage, stage->start); i < stage->steps; i++)
      around = around && stage->path[i].axis != axis;
    if (around) return true;
  }
  return false;
}

/* Chooses between accumulating in the value and in accumulators of their own. The latter pay only
 * in registers, and are needed for bf16, which would round every partial sum. */
static void store_sums(struct binder *b, struct bound_stage *stage) {
  if (stage->start < 0) return;
  struct storage sum = sums_of(b, stage);
  bool rounds = stage_tensor(b, stage)->dtype == PROGRAM_BF16;
  bool value_named = stage->value.kind == STORAGE_NAMED, sum_named = sum.kind == STORAGE_NAMED;
  stage->accumulates_in_value = !rounds && (value_named || !sum_named);
  stage->declares_init = stage->accumulates_in_value && value_named &&
                         begins_where_it_lives(b, stage) && !begins_under_a_condition(stage);
  if (!stage->accumulates_in_value) stage->sum = sum;
}

/* Non-temporal stores write whole vectors, each of them once. */
static canvas_status check_streamed(const struct binder *b, const struct bound_stage *stage) {
  enum program_dtype dtype = stage_tensor(b, stage)->dtype;
  if (!stage->streamed) return CANVAS_OK;
  if (dtype != PROGRAM_F32 && dtype != PROGRAM_F64)
    return reject(b, stage_place(b, stage), "':stream' output '%s' is neither f32 nor f64",
                  stage_name(b, stage));
  if (stage->vec < 0)
    return reject(b, stage_place(b, stage), "':stream' output '%s' is in no vec loop",
                  stage_name(b, stage));
  if (stage->start >= 0 && stage->accumulates_in_value)
    return reject(
        b, stage_place(b, stage),
        "':stream' output '%s' accumulates in memory: its accumulators are not in registers",
        stage_name(b, stage));
  return CANVAS_OK;
}

/* ---- memory ---- */

/* The loop whose body allocates storage that lives for one iteration of `node`: the parallel loop
 * around it, since each thread needs its own, or else the function (0). */
static int region_of(const struct binder *b, int node) {
  for (; node > 0; node = b->s->nodes.data[node].parent)
    if (b->tree->loops[node].parallel) return node;
  return 0;
}

static void choose_memory(const struct binder *b, struct storage *s, int around, bool heap,
                          int64_t *left) {
  if (s->kind != STORAGE_STACK) return;
  int64_t bytes = storage_bytes(s);
  s->region = region_of(b, around);
  if (heap || bytes > STACK_BUFFER || bytes > *left)
    s->kind = STORAGE_HEAP;
  else
    *left -= bytes;
}

/* A parallel loop whose threads allocate buffers cannot be peeled: it must be one loop. */
static canvas_status check_region(const struct binder *b, const struct storage *s) {
  if (s->kind != STORAGE_HEAP || !b->tree->loops[s->region].peels) return CANVAS_OK;
  return reject(
      b, node_place(b, s->region),
      "parallel loop '%s' cannot be peeled, its threads have buffers of their own; mask it",
      loop_name(b, s->region));
}

canvas_status bind_storage(struct binder *b) {
  int64_t left = STACK_BYTES;
  find_dead(b);
  for (int i = 0; i < b->tree->count; i++) {
    struct bound_stage *stage = &b->tree->stages[i];
    if (stage->dead) continue;
    TRY(store_values(b, stage));
    store_sums(b, stage);
    TRY(check_streamed(b, stage));
    choose_memory(b, &stage->value, stage->compute_at, stage->scope == SCOPE_HEAP, &left);
    if (stage->start >= 0)
      choose_memory(b, &stage->sum, b->s->nodes.data[stage->start].parent, false, &left);
    TRY(check_region(b, &stage->value));
    TRY(check_region(b, &stage->sum));
  }
  return CANVAS_OK;
}
