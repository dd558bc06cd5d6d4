/* Horizontal reductions: vectors run along the reduction of a row whose size is no multiple of a
 * vector, such as 49 or 196 pixels. Several vectors are added up in one step, which ends with
 * one horizontal addition; the remainder is a masked vector.
 *
 *     n, c, p_o, p_v:128:peel:vec =>
 *         @mean = n, c // {p_o, p_v}/p
 *
 * Partial sums of such a row (default_program.c) would be guarded, and need a horizontal addition,
 * too.
 */
#include "autoschedule/default_chooser.h"

int default_horizontal_axis(const struct default_facts *f, const struct machine *machine) {
  const struct program_tensor *t = f->t;
  if (t->dtype != PROGRAM_F32 && t->dtype != PROGRAM_F64) return -1;
  int64_t lanes = default_lanes(f->t, machine);
  int64_t least =
      machine->vector_bytes <= DEFAULT_NARROW_VECTOR ? DEFAULT_NARROW_ROW * lanes : lanes;
  if (f->guarded || f->non_monotone || f->bounds_reduction || default_rows_share(f)) return -1;
  for (int i = 0; i < t->rank + t->reductions; i++)
    if (t->axes[i].low >= 0) return -1;
  for (int i = t->rank; i < t->rank + t->reductions; i++) {
    int64_t size = t->axes[i].size;
    /* horizontal additions are rare, or no partial sums divide the reduction */
    bool pays = f->reduction == size || size >= DEFAULT_HORIZONTAL_VECTORS * lanes ||
                size % DEFAULT_PARTIAL_SUMS;
    if (size % lanes && size >= least && pays && default_is_unit_stride(f, i) &&
        !default_has_other_vector_axis(f, i))
      return i;
  }
  return -1;
}

int64_t default_horizontal_steps(const struct default_facts *f, const struct machine *machine) {
  return default_lanes(f->t, machine) * (f->operations >= DEFAULT_HEAVY_OPERATIONS
                                             ? DEFAULT_HORIZONTAL_CALLS
                                             : DEFAULT_HORIZONTAL_VECTORS);
}

double default_horizontal_cycles(const struct default_facts *f, const struct machine *machine,
                                 int axis) {
  int64_t size = f->t->axes[axis].size, steps = default_horizontal_steps(f, machine);
  double work = f->loads > f->operations ? f->loads : f->operations;
  double row = (double)up(size, default_lanes(f->t, machine)) * work / 2 +
               DEFAULT_HORIZONTAL_ADD * (double)up(size, steps);
  return (double)f->points * (double)f->reduction / (double)size * row;
}
