/* Enumerates the candidate tiles of a stage and takes the cheapest by the formula
 * (default_cycles.c). Candidates are: no vector axis, or each own axis; one to DEFAULT_MOST_VECTORS
 * vectors along it, or a part of one; rows along one other axis, or along two where the first is
 * whole, as many as registers hold; each short window unrolled, or none.
 *
 * A few likely candidates give an upper bound first. A candidate whose arithmetic alone exceeds it
 * is skipped.
 */
#include <math.h>
#include <string.h>

#include "autoschedule/default_chooser.h"
#include "bind/storage.h"
#include "program/program_cost.h"

/* The constraint collects every kind of tile, so that no candidate is skipped. */
static bool collects_candidates(const struct chooser *c) {
  return c->options.constraint && c->options.constraint->candidates;
}

/* A candidate with almost equal cycles does not replace the best one. */
static double cycle_limit(const struct chooser *c) {
  double limit = c->best.cycles < 0 ? INFINITY : DEFAULT_CYCLES_LESS * c->best.cycles;
  return limit < c->upper_bound ? limit : c->upper_bound;
}

static void take_cheaper(struct chooser *c) {
  bool collects = collects_candidates(c);
  double limit = cycle_limit(c);
  c->now.cycles = chooser_cycles(c, collects ? INFINITY : limit);
  if (collects) chooser_keep_candidate(c);
  if (c->now.cycles < limit) c->best = c->now;
}

/* Periods are unrolled around the tile and inside of it, with remainders: the statements stay
 * within what bind accepts. */
static bool unrolls_within_limit(const struct chooser *c) {
  const struct default_facts *f = c->f;
  if (!f->periodic || c->unlimited_statements) return true;
  int64_t tile = chooser_rows(c) * chooser_vectors(c), copies = 1, terms = 0;
  for (int i = f->t->rank; i < f->t->rank + f->t->reductions; i++)
    if (f->period[i]) terms = (terms ? terms : 1) * default_phase_steps(f, i);
  if (!terms) return true;
  for (int i = 0; i < f->t->rank; i++) {
    int64_t steps = c->now.rows[i] == 1 && f->period[i] ? f->period[i] : c->now.rows[i];
    if (c->now.rows[i] == 1) tile *= steps;
    if (i != c->now.vector_axis && f->t->axes[i].size % steps) copies *= 2;
  }
  tile *= terms + DEFAULT_POINT_STATEMENTS;
  return tile <= UNROLLED_STATEMENTS && copies * tile <= MOST_STATEMENTS - DEFAULT_OTHER_STATEMENTS;
}

/* Estimates `now`, and also with each short reduction unrolled along which rows share loads. */
static void try_candidate(struct chooser *c) {
  if (!collects_candidates(c) && chooser_exceeds(c, cycle_limit(c))) return;
  if (!chooser_fits_registers(c) || !unrolls_within_limit(c) || !chooser_meets_constraint(c))
    return;
  c->now.sliding = -1;
  take_cheaper(c);
  for (uint32_t left = c->sliding_reductions; left;) {
    int axis = chooser_pop_axis(&left);
    if (!chooser_slides(c, axis)) continue;
    c->now.sliding = axis;
    take_cheaper(c);
  }
}

static bool may_have_rows(const struct chooser *c, int axis) {
  uint32_t never = c->f->bounds_reduction | c->f->non_monotone | c->options.outside;
  return axis != c->now.vector_axis && !(never >> axis & 1) && c->f->t->axes[axis].size > 1;
}

static int64_t most_rows(const struct chooser *c) {
  return c->machine->registers / chooser_vectors(c);
}

/* All periods have equally many rows, and all tiles where these divide the axis. */
static bool has_whole_tiles(const struct chooser *c, int axis) {
  if (c->options.whole && c->f->t->axes[axis].size % c->now.rows[axis]) return false;
  return !c->f->period[axis] || c->now.rows[axis] % c->f->period[axis] == 0;
}

/* Of axes with equal cycles the first one wins. With overlapping windows these are the outer axes,
 * otherwise the inner ones, whose rows load adjacent elements. */
static int axis_in_order(const struct chooser *c, int i) {
  return c->overlapping_windows ? i : c->f->t->rank - 1 - i;
}

/* Rows along a second axis, where those along the first one are the whole axis. */
static void try_second_rows(struct chooser *c, int first) {
  int64_t most = most_rows(c) / c->now.rows[first];
  for (int j = 0; j < c->f->t->rank && most > 1; j++) {
    int i = axis_in_order(c, j);
    if (i == first || !may_have_rows(c, i)) continue;
    int64_t size = c->f->t->axes[i].size;
    c->row_axes = 1u << first | 1u << i;
    for (int64_t rows = 2; rows <= most && rows <= size; rows++) {
      c->now.rows[i] = rows;
      c->rows = c->now.rows[first] * rows;
      if (has_whole_tiles(c, i)) try_candidate(c);
    }
    c->now.rows[i] = 1;
  }
}

/* The most rows that divide the axis and leave the registers of two rows free. */
static void try_dividing_rows(struct chooser *c, int axis) {
  int64_t size = c->f->t->axes[axis].size, rows = most_rows(c) - 2;
  if (!may_have_rows(c, axis)) return;
  while (rows > 1 && (rows > size || size % rows)) rows--;
  if (rows < 2) return;
  c->now.rows[axis] = c->rows = rows;
  c->row_axes = 1u << axis;
  if (has_whole_tiles(c, axis)) try_candidate(c);
  c->now.rows[axis] = 1;
}

static void try_rows_along(struct chooser *c, int axis) {
  int64_t size = c->f->t->axes[axis].size, most = most_rows(c);
  if (!may_have_rows(c, axis)) return;
  for (int64_t rows = 2; rows <= most && rows <= size; rows++) {
    c->now.rows[axis] = c->rows = rows;
    c->row_axes = 1u << axis;
    if (has_whole_tiles(c, axis)) try_candidate(c);
    if (rows == size) try_second_rows(c, axis);
  }
  c->now.rows[axis] = 1;
}

static void try_rows(struct chooser *c) {
  chooser_count_rows(c);
  if (!collects_candidates(c) && chooser_exceeds_for_any_rows(c, cycle_limit(c))) return;
  try_candidate(c);
  if (c->f->reduction == 1) return;
  for (int i = 0; i < c->f->t->rank; i++)
    if (c->bounding)
      try_dividing_rows(c, axis_in_order(c, i));
    else
      try_rows_along(c, axis_in_order(c, i));
}

/* Element-wise stages get a remainder loop, as guarded and permuted loads need whole vectors. */
static bool may_peel(const struct chooser *c) {
  int64_t size = c->f->t->axes[c->now.vector_axis].size;
  return !c->f->t->reductions && !c->options.constraint && size > c->now.steps;
}

static void try_steps(struct chooser *c, int64_t steps) {
  bool overshoot = c->f->t->axes[c->now.vector_axis].size % steps != 0;
  if (overshoot && c->options.whole) return;
  c->now.steps = steps;
  c->now.peeled = overshoot && may_peel(c);
  c->now.masked = overshoot && !c->now.peeled;
  chooser_analyze_lanes(c);
  try_rows(c);
}

/* A load has blocks of `steps` along the axis, or of an odd multiple of it. */
static bool has_blocks(const struct chooser *c, int axis, int64_t steps) {
  for (int i = 0; i < c->f->loads; i++) {
    int64_t block = c->f->load[i].block[axis];
    if (block && block % steps == 0 && block % (2 * steps)) return true;
  }
  return false;
}

/* Whole vectors, or one partial vector that is more than half full. */
static void try_lanes(struct chooser *c, int axis) {
  int64_t size = c->f->t->axes[axis].size, lanes = c->lanes;
  c->now.vector_axis = axis;
  if (c->options.lanes == axis) {
    try_steps(c, size);
    return;
  }
  while (lanes / 2 >= size) lanes /= 2;
  if (lanes < 2) return;
  for (int vectors = 1; vectors <= DEFAULT_MOST_VECTORS; vectors++) {
    if (vectors > 1 && (lanes < c->lanes || (vectors - 1) * lanes >= size)) break;
    if (vectors > 2 && (c->f->reduction == 1 || c->bounding)) break;
    try_steps(c, vectors * lanes);
  }
  /* shorter vectors that divide the axis, or within which a load is invariant */
  for (lanes /= 2; lanes >= DEFAULT_LEAST_LANES; lanes /= 2)
    if (size % lanes == 0 && (size % (2 * lanes) || has_blocks(c, axis, lanes)))
      try_steps(c, lanes);
}

/* Accumulators of a K-block go to memory: the vector axis is contiguous there. */
static bool may_be_vector_axis(const struct chooser *c, int axis) {
  const struct default_facts *f = c->f;
  uint32_t never = f->bounds_reduction | c->options.outside;
  bool contiguous = c->options.free_layout || c->options.stored || f->out_stride[axis] == 1;
  if (c->k_block_share < 1 && !contiguous) return false;
  return !(never >> axis & 1) && !f->period[axis] && f->t->axes[axis].size > 1;
}

static void try_all(struct chooser *c) {
  int lanes = c->options.lanes;
  chooser_analyze_lanes(c);
  if (lanes < 0 && c->k_block_share == 1) try_rows(c);
  for (int i = 0; i < c->f->t->rank; i++)
    if (lanes >= 0 ? i == lanes : may_be_vector_axis(c, i)) try_lanes(c, i);
}

/* Sets upper_bound from a few candidates, so that the full search rejects others early. */
static void find_upper_bound(struct chooser *c) {
  c->upper_bound = INFINITY;
  if (c->options.constraint || c->f->reduction == 1) return;
  struct default_tile first = c->now;
  c->bounding = true;
  c->best.cycles = -1;
  try_all(c);
  c->bounding = false;
  c->now = first;
  if (c->best.cycles >= 0) c->upper_bound = DEFAULT_BOUND_SLACK * c->best.cycles;
}

static void choose_tile(struct chooser *c) {
  find_upper_bound(c);
  c->best.cycles = -1;
  try_all(c);
  if (c->best.cycles >= 0) return;
  c->options.constraint = NULL; /* neither the constraint can be met, nor the limit of statements */
  c->unlimited_statements = true;
  c->upper_bound = INFINITY;
  try_all(c);
}

/* Cycles to store and reload the accumulators of all K-blocks. */
static double k_block_traffic(const struct chooser *c, const struct chooser_k_block *block) {
  return DEFAULT_K_BLOCK_BYTE * block->count * (double)c->f->points *
         program_dtype_bytes(c->f->t->dtype);
}

/* Chooses the tile again for one K-block, if the reduction can be K-blocked. The loop order is that
 * of one block, too. */
static void choose_k_block(struct chooser *c, struct chooser_k_block *block,
                           struct chooser_load *load) {
  struct chooser unblocked = *c;
  if (!chooser_find_k_block(c, block)) return;
  c->f = &block->f;
  chooser_find_loads(c, load);
  c->k_block_share = 1 / block->count;
  c->upper_bound = INFINITY;
  c->best.cycles = -1;
  try_all(c);
  if (c->best.cycles < 0) {
    *c = unblocked;
    return;
  }
  c->k_block_share = 1;
  c->best.cycles = block->count * c->best.cycles + k_block_traffic(c, block);
  c->best.k_block = block->steps;
}

void chooser_tile(const struct default_facts *f, const struct machine *machine,
                  struct default_options options, struct default_tile *out) {
  struct chooser c = {.f = f, .machine = machine, .options = options, .k_block_share = 1};
  c.lanes = default_lanes(f->t, machine);
  c.now = (struct default_tile){.vector_axis = -1, .steps = 1, .phases = true, .block_axis = -1};
  for (int i = 0; i < f->t->rank; i++) c.now.rows[i] = 1;
  struct chooser_k_block block;
  struct chooser_load load[DEFAULT_LOADS], load_of_block[DEFAULT_LOADS];
  struct chooser_row_tiles row_tiles[PROGRAM_AXES][DEFAULT_ROWS_REMEMBERED + 1];
  memset(row_tiles, 0, (size_t)f->t->rank * sizeof *row_tiles);
  c.row_tiles = row_tiles;
  chooser_find_loads(&c, load);
  choose_tile(&c);
  choose_k_block(&c, &block, load_of_block);
  chooser_order(&c);
  *out = c.best;
}
