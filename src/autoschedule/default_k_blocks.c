/* A long sum in parts: what one tile reads of a part stays in the second cache until the next tiles have read it, too.
 * See default.h.
 *
 *     k_o, j_o, i_o, k_i:512, i_i:6:unroll, j_v:16:vec =>
 *         @Y = {i_o, i_i}/i, {j_o, j_v}/j // {k_o, k_i}/k
 *
 * The sums themselves go to memory and come back with each part.
 */
#include "autoschedule/default_chooser.h"

enum {
  PART = 512,     /* steps of a part ... */
  SHORTEST = 256, /* ... or fewer, of which all that the tiles read stays in the second cache ... */
  LONGEST = 1024, /* ... or more */
  PARTS = 2       /* the fewest parts that are worth it */
};

/* Bytes that all tiles of one product read of the load for one step; 0 where another load of the same tensor is
 * counted already. */
static double bytes_of_step(const struct chooser *c, int load) {
  const struct default_load *l = &c->f->load[load];
  double bytes = chooser_bytes(c, l);
  for (int i = 0; i < load; i++)
    if (c->f->load[i].tensor == l->tensor) return 0;
  for (int i = 0; i < c->f->t->rank; i++)
    if (l->depends_on >> i & 1 && !default_all_depend_on(c->f, i))
      bytes *= (double)c->f->t->axes[i].size;
  return bytes;
}

/* Other tiles load the same. */
static bool is_shared(const struct chooser *c, const struct default_load *l) {
  for (int i = 0; i < c->f->t->rank; i++) {
    int64_t steps = i == c->now.vector_axis ? c->now.steps : c->now.rows[i];
    if (!(l->depends_on >> i & 1) && c->f->t->axes[i].size > steps) return true;
  }
  return false;
}

/* Of what tiles read for one step most is read by several of them. */
static bool is_shared_most(const struct chooser *c) {
  double most = 0;
  bool shared = false;
  for (int i = 0; i < c->f->loads; i++) {
    double bytes = bytes_of_step(c, i);
    if (bytes < most) continue;
    shared = is_shared(c, &c->f->load[i]) || (bytes == most && shared);
    most = bytes;
  }
  return shared;
}

/* What the tile reads and others read again does not stay in half of the second cache. */
static bool is_lost(const struct chooser *c) {
  for (int i = 0; i < c->f->loads; i++) {
    const struct default_load *l = &c->f->load[i];
    if (is_shared(c, l) && 2 * chooser_lines(c, l) > (double)c->machine->l2) return true;
  }
  return false;
}

/* The only reduction, of products without conditions, whose sums memory does not round; -1. */
static int long_axis(const struct default_facts *f) {
  int axis = -1;
  if (f->t->dtype != PROGRAM_F32 && f->t->dtype != PROGRAM_F64) return -1;
  if (f->guarded || f->non_monotone || f->bounds_reduction || f->truncated || f->periodic ||
      f->loads < 2)
    return -1;
  if (f->t->reducer != REDUCE_SUM || f->operations > 1) return -1;
  for (int i = 0; i < f->loads; i++)
    if (f->load[i].non_affine || f->load[i].cold) return -1;
  for (int i = f->t->rank; i < f->t->rank + f->t->reductions; i++) {
    if (f->t->axes[i].size == 1) continue;
    if (axis >= 0 || f->t->axes[i].low >= 0) return -1;
    axis = i;
  }
  return axis;
}

/* Steps of a part: a number that divides the sum, if there is one that is not much smaller; 0: it stays whole. */
static int64_t steps_of_part(const struct chooser *c, int axis) {
  int64_t size = c->f->t->axes[axis].size;
  double bytes = 0;
  for (int i = 0; i < c->f->loads; i++) bytes += bytes_of_step(c, i);
  double fit = (double)c->machine->l2 / 2 / bytes;
  bool stays = fit >= SHORTEST && bytes * (double)size > (double)c->machine->l2;
  if (!is_shared_most(c) || (!stays && !is_lost(c))) return 0;
  int64_t most = !stays ? PART : fit < LONGEST ? (int64_t)fit : LONGEST, steps = most;
  while (size % steps && steps > most / 2) steps--;
  return size % steps ? most : steps;
}

bool default_may_k_block(const struct default_facts *f) {
  int axis = long_axis(f);
  return axis >= 0 && f->t->axes[axis].size > SHORTEST;
}

bool chooser_find_k_block(const struct chooser *c, struct chooser_k_block *out) {
  struct chooser best = chooser_of_best(c);
  int axis = long_axis(c->f);
  if (axis < 0 || !c->options.k_blocking || c->best.vector_axis < 0) return false;
  out->steps = steps_of_part(&best, axis);
  if (!out->steps) return false;
  out->count = (double)c->f->t->axes[axis].size / (double)out->steps;
  if (out->count < PARTS) return false;
  out->t = *c->f->t;
  out->t.axes[axis].size = out->steps;
  out->f = *c->f;
  out->f.t = &out->t;
  out->f.reduction = out->steps;
  return true;
}
