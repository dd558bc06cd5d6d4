/* Rows of images that come from memory are asked for while the ones before them are read: where few products are made
 * of an element, nothing else hides how long it takes to come. Measured: docs/reports/defaults.md, "Images from
 * memory". See default.h.
 */
#include "autoschedule/default.h"
#include "program/program_cost.h"

enum {
  MOST_AHEAD = 128 << 10, /* bytes that stay in L2 between the prefetch and the read */
  FEW_PRODUCTS = 192      /* of an element */
};

static double bytes_of(const struct default_facts *f, int tensor) {
  return (double)program_elements(f->p, tensor) *
         program_dtype_bytes(f->p->tensors.data[tensor].dtype);
}

/* An image, of which a vector takes one element, and which is no less than what is written. */
static bool comes_late(const struct default_facts *f, const struct machine *m,
                       const struct default_tile *tile, const struct default_load *l) {
  double bytes = bytes_of(f, l->tensor), products = (double)f->points * (double)f->reduction;
  bool still = !(l->depends_on >> tile->vector_axis & 1) ||
               (l->block[tile->vector_axis] && !l->stride[tile->vector_axis]);
  if (!still || l->non_affine || l->cold) return false;
  return default_is_beyond_l3(m, bytes) && bytes >= bytes_of(f, f->stage) &&
         products <= FEW_PRODUCTS * (double)program_elements(f->p, l->tensor);
}

/* Bytes from one step of the axis's loop to the next. */
static int64_t step_of(const struct default_facts *f, const struct default_tile *tile,
                       const struct default_load *l, int axis) {
  int64_t rows = tile->rows[axis] > 1 ? tile->rows[axis] : 1;
  return l->stride[axis] * rows * program_dtype_bytes(f->p->tensors.data[l->tensor].dtype);
}

struct default_prefetch default_prefetch_rows(const struct default_facts *f,
                                              const struct machine *m,
                                              const struct default_tile *tile) {
  struct default_prefetch ahead = {.axis = -1};
  bool alone = tile->block_axis < 0 && !tile->streams && !tile->k_block && !tile->symbolic;
  if (!m || !alone || tile->vector_axis < 0 || f->reduction == 1) return ahead;
  int64_t distance = machine_prefetch_distance(m);
  for (int i = 0; i < f->loads; i++) {
    const struct default_load *l = &f->load[i];
    if (!comes_late(f, m, tile, l)) continue;
    for (int j = f->t->rank - 1; j >= 0; j--) {
      int axis = tile->order[j];
      int64_t step = step_of(f, tile, l, axis);
      if (axis == tile->vector_axis || step <= 0 || step > MOST_AHEAD) continue;
      if (f->t->axes[axis].size <= tile->rows[axis]) continue;
      ahead.axis = axis;
      ahead.steps = step < distance ? (int)(distance / step) : 1;
      if (step >= distance) return ahead;
    }
  }
  return ahead;
}
