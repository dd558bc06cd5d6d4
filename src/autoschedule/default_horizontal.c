/* A sum whose lanes go along it: of rows that no whole vectors divide, such as 49 or 196 pixels, vectors are summed up
 * at once, several of them in one step, and what is left is a vector in which some lanes count. See default.h.
 *
 *     n, c, p_o, p_v:128:peel:vec =>
 *         @mean = n, c // {p_o, p_v}/p
 *
 * Partial sums of such a row (default_program.c) would have a part under a condition, and to be added up across the
 * lanes.
 */
#include "autoschedule/default_chooser.h"

enum {
  WHOLE = 8,       /* vectors of a step */
  FUNCTIONS = 4,   /* ... where each computes a function */
  NARROW = 32,     /* bytes of vectors of which a row has to be ... */
  LONG_ENOUGH = 4, /* ... so many, as other loops gather few lanes there */
  LANES = 12,      /* cycles until the lanes are summed up */
  SUMS = 4         /* the fewest partial sums */
};

int default_horizontal_axis(const struct default_facts *f, const struct machine *machine) {
  const struct program_tensor *t = f->t;
  if (t->dtype != PROGRAM_F32 && t->dtype != PROGRAM_F64) return -1;
  int64_t lanes = default_lanes(f->t, machine);
  int64_t least = machine->vector_bytes <= NARROW ? LONG_ENOUGH * lanes : lanes;
  if (f->guarded || f->non_monotone || f->bounds_reduction || default_rows_share(f)) return -1;
  for (int i = 0; i < t->rank + t->reductions; i++)
    if (t->axes[i].low >= 0) return -1;
  for (int i = t->rank; i < t->rank + t->reductions; i++) {
    int64_t size = t->axes[i].size;
    /* the lanes are summed up seldom, or no partial sums divide it */
    bool pays = f->reduction == size || size >= WHOLE * lanes || size % SUMS;
    if (size % lanes && size >= least && pays && default_is_unit_stride(f, i) &&
        !default_has_other_vector_axis(f, i))
      return i;
  }
  return -1;
}

int64_t default_horizontal_steps(const struct default_facts *f, const struct machine *machine) {
  return default_lanes(f->t, machine) * (f->operations >= DEFAULT_CALLS ? FUNCTIONS : WHOLE);
}

double default_horizontal_cycles(const struct default_facts *f, const struct machine *machine,
                                 int axis) {
  int64_t size = f->t->axes[axis].size, steps = default_horizontal_steps(f, machine);
  double work = f->loads > f->operations ? f->loads : f->operations;
  double row =
      (double)up(size, default_lanes(f->t, machine)) * work / 2 + LANES * (double)up(size, steps);
  return (double)f->points * (double)f->reduction / (double)size * row;
}
