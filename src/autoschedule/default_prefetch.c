/* Prefetches the next image row from memory, where too few products use an element to hide its
 * latency. Measured: docs/reports/defaults.md, "Images from memory". */
#include "autoschedule/default.h"
#include "cost/policy.h"
#include "program/program_cost.h"

static double tensor_bytes(const struct default_facts *f, int tensor) {
  return (double)program_elements(f->p, tensor) *
         program_dtype_bytes(f->p->tensors.data[tensor].dtype);
}

/* A broadcast image in memory that is no smaller than the output, and whose elements are in few
 * products. */
static bool misses_caches(const struct default_facts *f, const struct machine *m,
                          const struct default_tile *tile, const struct default_load *l) {
  double bytes = tensor_bytes(f, l->tensor), products = (double)f->points * (double)f->reduction;
  bool broadcast = !(l->depends_on >> tile->vector_axis & 1) ||
                   (l->block[tile->vector_axis] && !l->stride[tile->vector_axis]);
  if (!broadcast || l->non_affine || l->cold) return false;
  return default_is_beyond_l3(m, bytes) && bytes >= tensor_bytes(f, f->stage) &&
         products <= DEFAULT_FEW_PRODUCTS * (double)program_elements(f->p, l->tensor);
}

/* Bytes from one iteration of the axis's loop to the next. */
static int64_t bytes_per_step(const struct default_facts *f, const struct default_tile *tile,
                              const struct default_load *l, int axis) {
  int64_t rows = tile->rows[axis] > 1 ? tile->rows[axis] : 1;
  return l->stride[axis] * rows * program_dtype_bytes(f->p->tensors.data[l->tensor].dtype);
}

struct default_prefetch default_prefetch_rows(const struct default_facts *f,
                                              const struct machine *m,
                                              const struct default_tile *tile) {
  struct default_prefetch ahead = {.axis = -1};
  bool plain_loops = tile->block_axis < 0 && !tile->streams && !tile->k_block && !tile->symbolic;
  if (!m || !plain_loops || tile->vector_axis < 0 || f->reduction == 1) return ahead;
  int64_t distance = machine_prefetch_distance(m);
  for (int i = 0; i < f->loads; i++) {
    const struct default_load *l = &f->load[i];
    if (!misses_caches(f, m, tile, l)) continue;
    for (int j = f->t->rank - 1; j >= 0; j--) {
      int axis = tile->order[j];
      int64_t step = bytes_per_step(f, tile, l, axis);
      if (axis == tile->vector_axis || step <= 0 || step > DEFAULT_MOST_PREFETCHED) continue;
      if (f->t->axes[axis].size <= tile->rows[axis]) continue;
      ahead.axis = axis;
      ahead.steps = step < distance ? (int)(distance / step) : 1;
      if (step >= distance) return ahead;
    }
  }
  return ahead;
}
