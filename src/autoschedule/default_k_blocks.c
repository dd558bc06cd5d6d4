/* K-blocking: a long reduction is split into blocks, so that what one tile reads of a block stays
 * in L2 until the next tiles read it. The loop over blocks is outside of all tiles:
 *
 *     k_o, j_o, i_o, k_i:512, i_i:6:unroll, j_v:16:vec =>
 *         @Y = {i_o, i_i}/i, {j_o, j_v}/j // {k_o, k_i}/k
 *
 * Each block stores the accumulators and loads them again. A block has as many steps as half of L2
 * holds of all that the tiles read, up to DEFAULT_LONGEST_K_BLOCK, if these are at least
 * DEFAULT_SHORTEST_K_BLOCK; otherwise DEFAULT_K_BLOCK, if one tile reads more than half of L2 of
 * one shared tensor.
 */
#include "autoschedule/default_chooser.h"

/* Bytes of the load that all tiles of one product read per reduction step; 0 if an earlier load is
 * of the same tensor. */
static double step_bytes(const struct chooser *c, int load) {
  const struct default_load *l = &c->f->load[load];
  double bytes = chooser_bytes(c, l);
  for (int i = 0; i < load; i++)
    if (c->f->load[i].tensor == l->tensor) return 0;
  for (int i = 0; i < c->f->t->rank; i++)
    if (l->depends_on >> i & 1 && !default_all_depend_on(c->f, i))
      bytes *= (double)c->f->t->axes[i].size;
  return bytes;
}

/* Other tiles load the same elements. */
static bool is_shared(const struct chooser *c, const struct default_load *l) {
  for (int i = 0; i < c->f->t->rank; i++) {
    int64_t steps = i == c->now.vector_axis ? c->now.steps : c->now.rows[i];
    if (!(l->depends_on >> i & 1) && c->f->t->axes[i].size > steps) return true;
  }
  return false;
}

/* The load with most bytes per step is shared by several tiles. */
static bool is_mostly_shared(const struct chooser *c) {
  double most = 0;
  bool shared = false;
  for (int i = 0; i < c->f->loads; i++) {
    double bytes = step_bytes(c, i);
    if (bytes < most) continue;
    shared = is_shared(c, &c->f->load[i]) || (bytes == most && shared);
    most = bytes;
  }
  return shared;
}

/* A tile reads more than half of L2 from a load that other tiles read again. */
static bool exceeds_l2(const struct chooser *c) {
  for (int i = 0; i < c->f->loads; i++) {
    const struct default_load *l = &c->f->load[i];
    if (is_shared(c, l) && 2 * chooser_line_bytes(c, l) > (double)c->machine->l2) return true;
  }
  return false;
}

/* The only reduction of an unguarded product whose accumulators lose nothing when stored; -1. */
static int k_axis(const struct default_facts *f) {
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

/* Steps of a K-block: the largest divisor of the reduction above half of the limit, or else the
 * limit; 0: no blocks. */
static int64_t k_block_steps(const struct chooser *c, int axis) {
  int64_t size = c->f->t->axes[axis].size;
  double bytes = 0;
  for (int i = 0; i < c->f->loads; i++) bytes += step_bytes(c, i);
  double fit = (double)c->machine->l2 / 2 / bytes;
  bool stays = fit >= DEFAULT_SHORTEST_K_BLOCK && bytes * (double)size > (double)c->machine->l2;
  if (!is_mostly_shared(c) || (!stays && !exceeds_l2(c))) return 0;
  int64_t most = !stays                          ? DEFAULT_K_BLOCK
                 : fit < DEFAULT_LONGEST_K_BLOCK ? (int64_t)fit
                                                 : DEFAULT_LONGEST_K_BLOCK,
          steps = most;
  while (size % steps && steps > most / 2) steps--;
  return size % steps ? most : steps;
}

bool default_may_k_block(const struct default_facts *f) {
  int axis = k_axis(f);
  return axis >= 0 && f->t->axes[axis].size > DEFAULT_SHORTEST_K_BLOCK;
}

bool chooser_find_k_block(const struct chooser *c, struct chooser_k_block *out) {
  struct chooser best = chooser_of_best(c);
  int axis = k_axis(c->f);
  if (axis < 0 || !c->options.k_blocking || c->best.vector_axis < 0) return false;
  out->steps = k_block_steps(&best, axis);
  if (!out->steps) return false;
  out->count = (double)c->f->t->axes[axis].size / (double)out->steps;
  if (out->count < DEFAULT_FEWEST_K_BLOCKS) return false;
  out->t = *c->f->t;
  out->t.axes[axis].size = out->steps;
  out->f = *c->f;
  out->f.t = &out->t;
  out->f.reduction = out->steps;
  return true;
}
