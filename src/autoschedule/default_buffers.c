/* What a tile of rows reads is computed before it, for these rows only: it never leaves the first cache. See
 * default.h.
 *
 *     n, h:para, w_o =>
 *         w_i:14, c:vec =>
 *             @T = n, h, {w_o, w_i}/w, c
 *         o, c, w_i:unroll, v:vec =>
 *             @Y = n, h, {w_o, w_i}/w, o, v // c
 *
 * That is for a map, read by one sum alone and as it is, along all that the sum adds up. The loops of the reader
 * over tiles that move it come first, then it, then those over other lanes, whose panels come again for each
 * tile of rows anyway.
 */
#include <stdlib.h>
#include <string.h>

#include "autoschedule/default.h"
#include "program/program_cost.h"
#include "program/program_facts.h"

enum { CACHES = 2 }; /* as many first caches: less stays there anyway */

static const double STREAMED =
    0.03; /* cycles of a byte that goes beyond the first cache and comes back */
static const double TURNED = 0.75; /* of what is loaded: for less, rows lie along another axis */

static int64_t bytes_of(const struct program *p, int tensor) {
  return program_elements(p, tensor) * program_dtype_bytes(p->tensors.data[tensor].dtype);
}

/* Axes of the reader that move what it reads. */
static uint32_t axes_with(const struct default_plan *plan) {
  uint32_t with = 0;
  for (int i = 0; i < PROGRAM_AXES; i++)
    if (plan->axis[i] >= 0) with |= 1u << i;
  return with;
}

int default_consumer_axis(const struct default_plan *plan, int i) {
  for (int j = 0; j < PROGRAM_AXES; j++)
    if (plan->axis[j] == i) return j;
  return -1;
}

/* The sum that reads the stage, alone and as it is; -1. Sets `axis`. */
static int summing_reader(const struct default_plans *all, int stage, struct default_plan *plan) {
  const struct program *p = all->p;
  const struct program_tensor *t = &p->tensors.data[stage];
  int reader = is_output(p, stage) ? -1 : default_only_consumer(all, stage);
  if (reader < 0 || all->shared[stage].group || all->shared[reader].group) return -1;
  const struct program_tensor *r = &p->tensors.data[reader];
  memset(plan->axis, -1, sizeof plan->axis);
  if (r->reductions == 0 || default_loads_as_is(p, r->body, stage, plan->axis) < 1) return -1;
  for (int i = 0; i < t->rank; i++) {
    int axis = default_consumer_axis(plan, i);
    if (axis < 0 || r->axes[axis].size != t->axes[i].size || r->axes[axis].low >= 0) return -1;
    if (all->layout[stage].order[i] != i) return -1;
  }
  return reader;
}

/* Loops over tiles that move it may come first: no other order keeps something together, no phases stand
 * between them. */
static bool is_free(const struct default_plans *all, int reader, uint32_t with) {
  const struct default_tile *tile = &all->plan[reader].tile;
  struct default_facts f;
  if (all->plan[reader].kind != DEFAULT_TILED && all->plan[reader].kind != DEFAULT_FUSED_PRODUCER)
    return false;
  if (tile->block_axis >= 0 || tile->bands || tile->symbolic) return false;
  default_facts(all->p, reader, all->layout, &f);
  for (int i = 0; i < f.t->rank + f.t->reductions; i++)
    if (f.period[i]) return false;
  return tile->vector_axis >= 0 && tile->order[0] != tile->vector_axis &&
         !(with >> tile->vector_axis & 1);
}

/* Whole vectors along its last axis, which is summed over. */
static bool has_lanes(const struct default_plans *all, int stage, int reader,
                      const struct default_plan *plan) {
  const struct program_tensor *t = &all->p->tensors.data[stage];
  int lanes = all->machine->vector_bytes / (t->dtype == PROGRAM_F64 ? 8 : 4), last = t->rank - 1;
  if (t->axes[last].size % lanes) return false;
  return default_consumer_axis(plan, last) >= all->p->tensors.data[reader].rank;
}

/* Elements of the stage that a tile reads. */
static int64_t block_of(const struct default_plans *all, const struct default_tile *tile,
                        const struct default_plan *plan, int reader) {
  const struct program_tensor *r = &all->p->tensors.data[reader];
  int64_t block = 1;
  for (int i = 0; i < r->rank + r->reductions; i++)
    if (plan->axis[i] >= 0) block *= i < r->rank ? tile->rows[i] : r->axes[i].size;
  return block;
}

/* Of the own loops those that move it come first. */
static void order_with(struct default_tile *tile, int rank, uint32_t with) {
  int order[PROGRAM_AXES], count = 0;
  for (int turn = 1; turn >= 0; turn--)
    for (int i = 0; i < rank; i++)
      if ((with >> tile->order[i] & 1) == (uint32_t)turn) order[count++] = tile->order[i];
  memcpy(tile->order, order, (size_t)rank * sizeof *order);
}

/* ---- along which axis the rows lie, by what the stage loads for them ---- */

/* In what does not depend on these axes of theirs. */
static bool same_but_along(const struct program *p, const struct default_load *a,
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

static double loads_but_along(const struct default_facts *f, uint32_t axes) {
  int count = 0;
  for (int i = 0; i < f->loads; i++) {
    bool first = !f->load[i].cold;
    for (int j = 0; j < i && first; j++)
      first = f->load[j].cold || !same_but_along(f->p, &f->load[i], &f->load[j], axes);
    count += first;
  }
  return count;
}

/* What a tile of rows along an axis loads that the one before it, a step along `next`, did not: of a window along
 * the rows that is one for each of them and what it has more, of others each anew. */
static double loaded_anew(const struct default_facts *f, int along, int next, int64_t rows) {
  uint32_t side = 1u << next;
  if (along == next) return loads_but_along(f, side) * (double)rows;
  return loads_but_along(f, side | 1u << along) * (double)(rows - 1) + loads_but_along(f, side);
}

/* Bytes of all places along an axis of the stage, and those after it: of a line. */
static double line_bytes(const struct program_tensor *t, int axis) {
  double bytes = program_dtype_bytes(t->dtype);
  for (int i = axis; i < t->rank; i++) bytes *= (double)t->axes[i].size;
  return bytes;
}

/* The axis of the reader along which the tile has its rows, the only one of that stage; -1. */
static int axis_of_rows(const struct default_tile *tile, const struct default_plan *plan,
                        int rank) {
  int found = -1;
  for (int i = 0; i < rank; i++) {
    if (i == tile->vector_axis || tile->rows[i] == 1 || plan->axis[i] < 0) continue;
    if (found >= 0) return -1;
    found = i;
  }
  return found;
}

/* Rows along a window share what the stage loads for them. Where the lines under it are more than half of the first
 * cache, which has them no more when the next line is computed, the tile's rows lie along it. */
static void turn_rows(struct default_plans *all, int stage, int reader,
                      const struct default_plan *plan) {
  const struct program_tensor *t = &all->p->tensors.data[stage];
  const struct program_tensor *r = &all->p->tensors.data[reader];
  struct default_tile *tile = &all->plan[reader].tile;
  struct default_facts of_stage, of_reader;
  int from = axis_of_rows(tile, plan, r->rank), to = -1;
  if (from < 0 || r->axes[from].size % tile->rows[from]) return;
  default_facts(all->p, stage, all->layout, &of_stage);
  default_facts(all->p, reader, all->layout, &of_reader);
  int next = plan->axis[from];
  int64_t rows = tile->rows[from];
  double least = TURNED * loaded_anew(&of_stage, next, next, rows);
  double window = loads_but_along(&of_stage, 1u << next) * line_bytes(t, next);
  if (2 * window <= (double)all->machine->l1) return;
  for (int i = 0; i < from; i++) {
    if (plan->axis[i] < 0 || i == tile->vector_axis || r->axes[i].size % rows) continue;
    if ((of_reader.non_monotone | of_reader.bounds_reduction) >> i & 1) continue;
    double anew = loaded_anew(&of_stage, plan->axis[i], next, rows);
    if (anew > least) continue;
    least = anew;
    to = i;
  }
  if (to < 0) return;
  tile->rows[to] = rows;
  tile->rows[from] = 1;
}

static bool buffer_one(struct default_plans *all, int stage) {
  struct default_plan plan = all->plan[stage];
  int64_t bytes = bytes_of(all->p, stage), l1 = all->machine->l1;
  int reader = bytes > CACHES * l1 ? summing_reader(all, stage, &plan) : -1;
  if (reader < 0 || !is_free(all, reader, axes_with(&plan))) return false;
  struct default_tile *tile = &all->plan[reader].tile;
  const struct program_tensor *t = &all->p->tensors.data[stage];
  int64_t block = block_of(all, tile, &plan, reader) * program_dtype_bytes(t->dtype);
  if (!has_lanes(all, stage, reader, &plan) || block > l1 / 2) return false;
  turn_rows(all, stage, reader, &plan);
  order_with(tile, all->p->tensors.data[reader].rank, axes_with(&plan));
  plan.kind = DEFAULT_BUFFERED;
  plan.consumer = reader;
  plan.tile.cycles -= 2 * STREAMED * (double)bytes;
  if (plan.tile.cycles < 0) plan.tile.cycles = 0;
  all->plan[stage] = plan;
  return true;
}

/* One for each reader. */
void default_buffer_stages(struct default_plans *all) {
  bool *done = mem_alloc((size_t)all->p->tensors.count);
  for (int i = 0; i < all->p->tensors.count; i++) {
    if (all->p->tensors.data[i].is_input || all->constant[i] || all->plan[i].kind != DEFAULT_FLAT)
      continue;
    int reader = default_only_consumer(all, i);
    if (reader < 0 || done[reader] || !buffer_one(all, i)) continue;
    done[reader] = true;
  }
  mem_free(done);
}
