/* Buffered producers: a stage is computed before each tile of its consumer, for the rows of that
 * tile only, so that the rows stay in L1. See default.h.
 *
 *     n, h:para, w_o =>
 *         w_i:14, c:vec =>
 *             @T = n, h, {w_o, w_i}/w, c
 *         o, c, w_i:unroll, v:vec =>
 *             @Y = n, h, {w_o, w_i}/w, o, v // c
 *
 * The producer is element-wise. Its only consumer is a reduction that reads it with plain axes as
 * indices. The consumer's loops over tiles that the producer depends on are outermost. The producer
 * follows, then the other loops. Such a loop is that over panels of weights, which each tile of
 * rows reloads anyway.
 */
#include <stdlib.h>
#include <string.h>

#include "autoschedule/default.h"
#include "cost/policy.h"
#include "program/program_cost.h"
#include "program/program_facts.h"

static int64_t tensor_bytes(const struct program *p, int tensor) {
  return program_elements(p, tensor) * program_dtype_bytes(p->tensors.data[tensor].dtype);
}

/* Axes of the consumer that the producer depends on. */
static uint32_t consumer_axes(const struct default_plan *plan) {
  uint32_t axes = 0;
  for (int i = 0; i < PROGRAM_AXES; i++)
    if (plan->axis[i] >= 0) axes |= 1u << i;
  return axes;
}

int default_consumer_axis(const struct default_plan *plan, int i) {
  for (int j = 0; j < PROGRAM_AXES; j++)
    if (plan->axis[j] == i) return j;
  return -1;
}

/* The only consumer of the stage, if it is a reduction that loads it with plain axes as indices;
 * -1. Sets `plan->axis`. */
static int reducing_consumer(const struct default_plans *all, int stage,
                             struct default_plan *plan) {
  const struct program *p = all->p;
  const struct program_tensor *t = &p->tensors.data[stage];
  int consumer = is_output(p, stage) ? -1 : default_only_consumer(all, stage);
  if (consumer < 0 || all->shared[stage].group || all->shared[consumer].group) return -1;
  const struct program_tensor *r = &p->tensors.data[consumer];
  memset(plan->axis, -1, sizeof plan->axis);
  if (r->reductions == 0 || default_loads_as_is(p, r->body, stage, plan->axis) < 1) return -1;
  for (int i = 0; i < t->rank; i++) {
    int axis = default_consumer_axis(plan, i);
    if (axis < 0 || r->axes[axis].size != t->axes[i].size || r->axes[axis].low >= 0) return -1;
    if (all->layout[stage].order[i] != i) return -1;
  }
  return consumer;
}

/* The consumer's loops over `axes` may become outermost: there are no cache blocks or phases, the
 * vector axis is not outermost yet, and the producer does not depend on it. */
static bool may_reorder(const struct default_plans *all, int consumer, uint32_t axes) {
  const struct default_tile *tile = &all->plan[consumer].tile;
  struct default_facts f;
  if (all->plan[consumer].kind != DEFAULT_TILED &&
      all->plan[consumer].kind != DEFAULT_FUSED_PRODUCER)
    return false;
  if (tile->block_axis >= 0 || tile->bands || tile->symbolic) return false;
  default_facts(all->p, consumer, all->layout, &f);
  for (int i = 0; i < f.t->rank + f.t->reductions; i++)
    if (f.period[i]) return false;
  return tile->vector_axis >= 0 && tile->order[0] != tile->vector_axis &&
         !(axes >> tile->vector_axis & 1);
}

/* The consumer reduces the stage's last axis, whose size is a multiple of a vector. */
static bool has_whole_vectors(const struct default_plans *all, int stage, int consumer,
                              const struct default_plan *plan) {
  const struct program_tensor *t = &all->p->tensors.data[stage];
  int lanes = default_lanes(t, all->machine), last = t->rank - 1;
  if (t->axes[last].size % lanes) return false;
  return default_consumer_axis(plan, last) >= all->p->tensors.data[consumer].rank;
}

/* Elements of the stage that one tile of the consumer reads. */
static int64_t elements_per_tile(const struct default_plans *all, const struct default_tile *tile,
                                 const struct default_plan *plan, int consumer) {
  const struct program_tensor *r = &all->p->tensors.data[consumer];
  int64_t block = 1;
  for (int i = 0; i < r->rank + r->reductions; i++)
    if (plan->axis[i] >= 0) block *= i < r->rank ? tile->rows[i] : r->axes[i].size;
  return block;
}

/* Own loops over `axes` become outermost. */
static void reorder_loops(struct default_tile *tile, int rank, uint32_t axes) {
  int order[PROGRAM_AXES], count = 0;
  for (int outer = 1; outer >= 0; outer--)
    for (int i = 0; i < rank; i++)
      if ((axes >> tile->order[i] & 1) == (uint32_t)outer) order[count++] = tile->order[i];
  memcpy(tile->order, order, (size_t)rank * sizeof *order);
}

/* ---- the axis of the rows, by the loads of the stage ---- */

/* The two loads differ only in indices that depend on `axes`. */
static bool is_same_elsewhere(const struct program *p, const struct default_load *a,
                              const struct default_load *b, uint32_t axes) {
  const struct px_node *x = &p->nodes.data[a->node], *y = &p->nodes.data[b->node];
  if (a->tensor != b->tensor) return false;
  for (int i = 0; i < p->tensors.data[a->tensor].rank; i++) {
    int at = p->indices.data[x->first + i], other = p->indices.data[y->first + i];
    bool along = px_axes(p, at) & px_axes(p, other) & axes;
    if (!along && !px_same(p, at, other)) return false;
  }
  return true;
}

/* Loads of the stage, those that differ only along `axes` counted once. */
static double distinct_loads(const struct default_facts *f, uint32_t axes) {
  int count = 0;
  for (int i = 0; i < f->loads; i++) {
    bool first = !f->load[i].cold;
    for (int j = 0; j < i && first; j++)
      first = f->load[j].cold || !is_same_elsewhere(f->p, &f->load[i], &f->load[j], axes);
    count += first;
  }
  return count;
}

/* New loads per tile of rows along `axis`, where the next tile is a step along `next`. Of loads
 * that differ only along `next` one is new; further rows share those that differ only along `axis`
 * as well. */
static double new_loads(const struct default_facts *f, int axis, int next, int64_t rows) {
  uint32_t side = 1u << next;
  if (axis == next) return distinct_loads(f, side) * (double)rows;
  return distinct_loads(f, side | 1u << axis) * (double)(rows - 1) + distinct_loads(f, side);
}

/* Bytes of an image row: of all elements along the stage's axis and the axes after it. */
static double line_bytes(const struct program_tensor *t, int axis) {
  double bytes = program_dtype_bytes(t->dtype);
  for (int i = axis; i < t->rank; i++) bytes *= (double)t->axes[i].size;
  return bytes;
}

/* The consumer's axis along which the tile has rows, of those that the stage depends on; -1: none,
 * or several. */
static int tile_row_axis(const struct default_tile *tile, const struct default_plan *plan,
                         int rank) {
  int found = -1;
  for (int i = 0; i < rank; i++) {
    if (i == tile->vector_axis || tile->rows[i] == 1 || plan->axis[i] < 0) continue;
    if (found >= 0) return -1;
    found = i;
  }
  return found;
}

/* Moves the tile's rows to an axis along which the stage's windows overlap, so that the rows share
 * loads. This pays if the image rows under a window exceed half of L1, as they are evicted before
 * the next row is computed. */
static void move_rows(struct default_plans *all, int stage, int consumer,
                      const struct default_plan *plan) {
  const struct program_tensor *t = &all->p->tensors.data[stage];
  const struct program_tensor *r = &all->p->tensors.data[consumer];
  struct default_tile *tile = &all->plan[consumer].tile;
  struct default_facts stage_facts, consumer_facts;
  int from = tile_row_axis(tile, plan, r->rank), to = -1;
  if (from < 0 || r->axes[from].size % tile->rows[from]) return;
  default_facts(all->p, stage, all->layout, &stage_facts);
  default_facts(all->p, consumer, all->layout, &consumer_facts);
  int next = plan->axis[from];
  int64_t rows = tile->rows[from];
  double least = DEFAULT_MOVED_ROWS * new_loads(&stage_facts, next, next, rows);
  double window = distinct_loads(&stage_facts, 1u << next) * line_bytes(t, next);
  if (2 * window <= (double)all->machine->l1) return;
  for (int i = 0; i < from; i++) {
    if (plan->axis[i] < 0 || i == tile->vector_axis || r->axes[i].size % rows) continue;
    if ((consumer_facts.non_monotone | consumer_facts.bounds_reduction) >> i & 1) continue;
    double loads = new_loads(&stage_facts, plan->axis[i], next, rows);
    if (loads > least) continue;
    least = loads;
    to = i;
  }
  if (to < 0) return;
  tile->rows[to] = rows;
  tile->rows[from] = 1;
}

/* Moves the stage before the tiles of its consumer, if that pays. */
static bool buffer_stage(struct default_plans *all, int stage) {
  struct default_plan plan = all->plan[stage];
  int64_t bytes = tensor_bytes(all->p, stage), l1 = all->machine->l1;
  int consumer = bytes > DEFAULT_BUFFERED_CACHES * l1 ? reducing_consumer(all, stage, &plan) : -1;
  if (consumer < 0 || !may_reorder(all, consumer, consumer_axes(&plan))) return false;
  struct default_tile *tile = &all->plan[consumer].tile;
  const struct program_tensor *t = &all->p->tensors.data[stage];
  int64_t block = elements_per_tile(all, tile, &plan, consumer) * program_dtype_bytes(t->dtype);
  if (!has_whole_vectors(all, stage, consumer, &plan) || block > l1 / 2) return false;
  move_rows(all, stage, consumer, &plan);
  reorder_loops(tile, all->p->tensors.data[consumer].rank, consumer_axes(&plan));
  plan.kind = DEFAULT_BUFFERED;
  plan.consumer = consumer;
  plan.tile.cycles -= 2 * DEFAULT_SAVED_BYTE * (double)bytes;
  if (plan.tile.cycles < 0) plan.tile.cycles = 0;
  all->plan[stage] = plan;
  return true;
}

/* At most one producer of each consumer. */
void default_buffer_stages(struct default_plans *all) {
  bool *done = mem_alloc((size_t)all->p->tensors.count);
  for (int i = 0; i < all->p->tensors.count; i++) {
    if (all->p->tensors.data[i].is_input || all->constant[i] || all->plan[i].kind != DEFAULT_FLAT)
      continue;
    int consumer = default_only_consumer(all, i);
    if (consumer < 0 || done[consumer] || !buffer_stage(all, i)) continue;
    done[consumer] = true;
  }
  mem_free(done);
}
