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

#include "program/program_cost.h"
#include "program/program_rebuild.h"
#include "transform/default.h"

enum { CACHES = 2 }; /* as many first caches: less stays there anyway */

static const double STREAMED =
    0.03; /* cycles of a byte that goes beyond the first cache and comes back */

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

int default_reader_axis(const struct default_plan *plan, int i) {
  for (int j = 0; j < PROGRAM_AXES; j++)
    if (plan->axis[j] == i) return j;
  return -1;
}

/* The sum that reads the stage, alone and as it is; -1. Sets `axis`. */
static int summing_reader(const struct default_plans *all, int stage, struct default_plan *plan) {
  const struct program *p = all->p;
  const struct program_tensor *t = &p->tensors.data[stage];
  int reader = is_output(p, stage) ? -1 : default_only_reader(all, stage);
  if (reader < 0 || all->shared[stage].group || all->shared[reader].group) return -1;
  const struct program_tensor *r = &p->tensors.data[reader];
  memset(plan->axis, -1, sizeof plan->axis);
  if (r->reductions == 0 || default_loads_as_is(p, r->body, stage, plan->axis) < 1) return -1;
  for (int i = 0; i < t->rank; i++) {
    int axis = default_reader_axis(plan, i);
    if (axis < 0 || r->axes[axis].size != t->axes[i].size || r->axes[axis].low >= 0) return -1;
    if (all->kept[stage].order[i] != i) return -1;
  }
  return reader;
}

/* Loops over tiles that move it may come first: no other order keeps something together, no phases stand
 * between them. */
static bool is_free(const struct default_plans *all, int reader, uint32_t with) {
  const struct default_tile *tile = &all->plan[reader].tile;
  struct default_facts f;
  if (all->plan[reader].kind != DEFAULT_TILED && all->plan[reader].kind != DEFAULT_DEFERRED)
    return false;
  if (tile->blocked >= 0 || tile->bands || tile->open) return false;
  default_facts(all->p, reader, all->kept, &f);
  for (int i = 0; i < f.t->rank + f.t->reductions; i++)
    if (f.period[i]) return false;
  return tile->vec >= 0 && tile->order[0] != tile->vec && !(with >> tile->vec & 1);
}

/* Whole vectors along its last axis, which is summed over. */
static bool has_lanes(const struct default_plans *all, int stage, int reader,
                      const struct default_plan *plan) {
  const struct program_tensor *t = &all->p->tensors.data[stage];
  int lanes = all->machine->vector_bytes / (t->dtype == PROGRAM_F64 ? 8 : 4), last = t->rank - 1;
  if (t->axes[last].size % lanes) return false;
  return default_reader_axis(plan, last) >= all->p->tensors.data[reader].rank;
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

static bool buffer_one(struct default_plans *all, int stage) {
  struct default_plan plan = all->plan[stage];
  int64_t bytes = bytes_of(all->p, stage), l1 = all->machine->l1;
  int reader = bytes > CACHES * l1 ? summing_reader(all, stage, &plan) : -1;
  if (reader < 0 || !is_free(all, reader, axes_with(&plan))) return false;
  struct default_tile *tile = &all->plan[reader].tile;
  const struct program_tensor *t = &all->p->tensors.data[stage];
  int64_t block = block_of(all, tile, &plan, reader) * program_dtype_bytes(t->dtype);
  if (!has_lanes(all, stage, reader, &plan) || block > l1 / 2) return false;
  order_with(tile, all->p->tensors.data[reader].rank, axes_with(&plan));
  plan.kind = DEFAULT_BUFFERED;
  plan.reader = reader;
  plan.tile.cycles -= 2 * STREAMED * (double)bytes;
  if (plan.tile.cycles < 0) plan.tile.cycles = 0;
  all->plan[stage] = plan;
  return true;
}

/* One for each reader. */
void default_buffer_stages(struct default_plans *all) {
  bool *constant = program_constants(all->p), *done = mem_alloc((size_t)all->p->tensors.count);
  for (int i = 0; i < all->p->tensors.count; i++) {
    if (all->p->tensors.data[i].is_input || constant[i] || all->plan[i].kind != DEFAULT_LONG)
      continue;
    int reader = default_only_reader(all, i);
    if (reader < 0 || done[reader] || !buffer_one(all, i)) continue;
    done[reader] = true;
  }
  free(done);
  free(constant);
}
