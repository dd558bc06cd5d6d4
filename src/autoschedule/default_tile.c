/* The tile of a stage: every lane axis, number of vectors and rows that the registers allow is put into
 * the formula of default.h.
 */
#include <math.h>
#include <string.h>

#include "autoschedule/default_chooser.h"
#include "bind/storage.h"
#include "program/program_cost.h"

enum {
  MOST_VECTORS = 8, /* of a tile: more are no names */
  BESIDE = 2,       /* statements of a point beside its terms: it begins, and is written */
  ELSEWHERE = 256   /* ... of other stages that are unrolled, too */
};

static const double CARRIED = 0.25; /* cycles of a byte of sums that go to memory and come back */

/* Of a guess: one that takes as much leaves less than what counts as a difference (limit_of), time after time. */
static const double GUESSED = 1.003;

static bool is_noting(const struct chooser *c) {
  return c->options.constraint && c->options.constraint->candidates;
}

/* What takes as many cycles leaves the best as it is. */
static double limit_of(const struct chooser *c) {
  double limit = c->best.cycles < 0 ? INFINITY : 0.9995 * c->best.cycles;
  return limit < c->bound ? limit : c->bound;
}

static void take_cheaper(struct chooser *c) {
  bool noted = is_noting(c);
  double limit = limit_of(c);
  c->now.cycles = chooser_cycles(c, noted ? INFINITY : limit);
  if (noted) chooser_keep_candidate(c);
  if (c->now.cycles < limit) c->best = c->now;
}

/* Phases are unrolled, around the tile and inside: loops hold no more statements, with what they leave over. */
static bool unrolls_few(const struct chooser *c) {
  const struct default_facts *f = c->f;
  if (!f->periodic || c->unbounded) return true;
  int64_t tile = chooser_rows(c) * chooser_vectors(c), copies = 1, terms = 0;
  for (int i = f->t->rank; i < f->t->rank + f->t->reductions; i++)
    if (f->period[i]) terms = (terms ? terms : 1) * default_phase_steps(f, i);
  if (!terms) return true;
  for (int i = 0; i < f->t->rank; i++) {
    int64_t steps = c->now.rows[i] == 1 && f->period[i] ? f->period[i] : c->now.rows[i];
    if (c->now.rows[i] == 1) tile *= steps;
    if (i != c->now.vector_axis && f->t->axes[i].size % steps) copies *= 2;
  }
  tile *= terms + BESIDE;
  return tile <= UNROLLED_STATEMENTS && copies * tile <= MOST_STATEMENTS - ELSEWHERE;
}

/* A short reduction may be unrolled, so that next rows use what these load. */
static void consider(struct chooser *c) {
  if (!is_noting(c) && chooser_takes_at_least(c, limit_of(c))) return;
  if (!chooser_fits_registers(c) || !unrolls_few(c) || !chooser_meets_constraint(c)) return;
  c->now.sliding = -1;
  take_cheaper(c);
  for (uint32_t left = c->slides; left;) {
    int axis = chooser_pop_axis(&left);
    if (!chooser_slides(c, axis)) continue;
    c->now.sliding = axis;
    take_cheaper(c);
  }
}

static bool may_tile(const struct chooser *c, int axis) {
  uint32_t never = c->f->bounds_reduction | c->f->non_monotone | c->options.outside;
  return axis != c->now.vector_axis && !(never >> axis & 1) && c->f->t->axes[axis].size > 1;
}

static int64_t most_rows(const struct chooser *c) {
  return c->machine->registers / chooser_vectors(c);
}

/* All phases have as many rows. */
static bool is_whole(const struct chooser *c, int axis) {
  return !c->f->period[axis] || c->now.rows[axis] % c->f->period[axis] == 0;
}

/* Of axes that take as long the first stays: what rows along an inner one load is nearer to each other. */
static int nearest(const struct chooser *c, int i) {
  return c->windows ? i : c->f->t->rank - 1 - i;
}

/* Rows along a second axis, around a first one that is whole. */
static void try_second(struct chooser *c, int first) {
  int64_t most = most_rows(c) / c->now.rows[first];
  for (int j = 0; j < c->f->t->rank && most > 1; j++) {
    int i = nearest(c, j);
    if (i == first || !may_tile(c, i)) continue;
    int64_t size = c->f->t->axes[i].size;
    c->rowed = 1u << first | 1u << i;
    for (int64_t rows = 2; rows <= most && rows <= size; rows++) {
      c->now.rows[i] = rows;
      c->rows = c->now.rows[first] * rows;
      if (is_whole(c, i)) consider(c);
    }
    c->now.rows[i] = 1;
  }
}

/* The most rows that divide the axis, with room for two vectors more. */
static void guess_rows_along(struct chooser *c, int axis) {
  int64_t size = c->f->t->axes[axis].size, rows = most_rows(c) - 2;
  if (!may_tile(c, axis)) return;
  while (rows > 1 && (rows > size || size % rows)) rows--;
  if (rows < 2) return;
  c->now.rows[axis] = c->rows = rows;
  c->rowed = 1u << axis;
  if (is_whole(c, axis)) consider(c);
  c->now.rows[axis] = 1;
}

static void try_rows_along(struct chooser *c, int axis) {
  int64_t size = c->f->t->axes[axis].size, most = most_rows(c);
  if (!may_tile(c, axis)) return;
  for (int64_t rows = 2; rows <= most && rows <= size; rows++) {
    c->now.rows[axis] = c->rows = rows;
    c->rowed = 1u << axis;
    if (is_whole(c, axis)) consider(c);
    if (rows == size) try_second(c, axis);
  }
  c->now.rows[axis] = 1;
}

static void try_rows(struct chooser *c) {
  chooser_count(c);
  if (!is_noting(c) && chooser_row_takes_at_least(c, limit_of(c))) return;
  consider(c);
  if (c->f->reduction == 1) return;
  for (int i = 0; i < c->f->t->rank; i++)
    if (c->guessing)
      guess_rows_along(c, nearest(c, i));
    else
      try_rows_along(c, nearest(c, i));
}

/* What maps have left over is code of its own: conditions and permuted loads are vectors in whole ones only. */
static bool may_peel(const struct chooser *c) {
  int64_t size = c->f->t->axes[c->now.vector_axis].size;
  return !c->f->t->reductions && !c->options.constraint && size > c->now.steps;
}

static void try_steps(struct chooser *c, int64_t steps) {
  bool overshoot = c->f->t->axes[c->now.vector_axis].size % steps != 0;
  c->now.steps = steps;
  c->now.peeled = overshoot && may_peel(c);
  c->now.masked = overshoot && !c->now.peeled;
  chooser_analyze_lanes(c);
  try_rows(c);
}

/* Something moves along the axis in blocks of so many steps, or of some such. */
static bool has_blocks(const struct chooser *c, int axis, int64_t steps) {
  for (int i = 0; i < c->f->loads; i++) {
    int64_t block = c->f->load[i].block[axis];
    if (block && block % steps == 0 && block % (2 * steps)) return true;
  }
  return false;
}

/* Whole vectors, or one that is less than a whole one, and more than half full. */
static void try_lanes(struct chooser *c, int axis) {
  int64_t size = c->f->t->axes[axis].size, lanes = c->lanes;
  c->now.vector_axis = axis;
  if (c->options.lanes == axis) {
    try_steps(c, size);
    return;
  }
  while (lanes / 2 >= size) lanes /= 2;
  if (lanes < 2) return;
  for (int vectors = 1; vectors <= MOST_VECTORS; vectors++) {
    if (vectors > 1 && (lanes < c->lanes || (vectors - 1) * lanes >= size)) break;
    if (vectors > 2 && (c->f->reduction == 1 || c->guessing)) break;
    try_steps(c, vectors * lanes);
  }
  /* shorter vectors that divide it, or the steps for which loads stand still */
  for (lanes /= 2; lanes >= 4; lanes /= 2)
    if (size % lanes == 0 && (size % (2 * lanes) || has_blocks(c, axis, lanes)))
      try_steps(c, lanes);
}

/* Of a part of a sum, which goes to memory and comes back, lanes follow each other there. */
static bool may_have_lanes(const struct chooser *c, int axis) {
  const struct default_facts *f = c->f;
  uint32_t never = f->bounds_reduction | c->options.outside;
  bool follow = c->options.free_layout || c->options.stored || f->out_stride[axis] == 1;
  if (c->share < 1 && !follow) return false;
  return !(never >> axis & 1) && !f->period[axis] && f->t->axes[axis].size > 1;
}

static void try_all(struct chooser *c) {
  int lanes = c->options.lanes;
  chooser_analyze_lanes(c);
  if (lanes < 0 && c->share == 1) try_rows(c);
  for (int i = 0; i < c->f->t->rank; i++)
    if (lanes >= 0 ? i == lanes : may_have_lanes(c, i)) try_lanes(c, i);
}

/* A bound from few tiles, which the others are then compared with from the first one on. */
static void guess(struct chooser *c) {
  c->bound = INFINITY;
  if (c->options.constraint || c->f->reduction == 1) return;
  struct default_tile first = c->now;
  c->guessing = true;
  c->best.cycles = -1;
  try_all(c);
  c->guessing = false;
  c->now = first;
  if (c->best.cycles >= 0) c->bound = GUESSED * c->best.cycles;
}

static void choose(struct chooser *c) {
  guess(c);
  c->best.cycles = -1;
  try_all(c);
  if (c->best.cycles >= 0) return;
  c->options.constraint = NULL; /* the wish cannot be, nor few statements of all lanes */
  c->unbounded = true;
  c->bound = INFINITY;
  try_all(c);
}

/* Cycles in which sums of all parts come and go. */
static double carried(const struct chooser *c, const struct chooser_k_block *part) {
  return CARRIED * part->count * (double)c->f->points * program_dtype_bytes(c->f->t->dtype);
}

/* The sum in parts, if that can be: then the order of loops is that of one part, too. */
static void choose_part(struct chooser *c, struct chooser_k_block *part,
                        struct chooser_load *load) {
  struct chooser whole = *c;
  if (!chooser_find_k_block(c, part)) return;
  c->f = &part->f;
  chooser_find_loads(c, load);
  c->share = 1 / part->count;
  c->bound = INFINITY;
  c->best.cycles = -1;
  try_all(c);
  if (c->best.cycles < 0) {
    *c = whole;
    return;
  }
  c->share = 1;
  c->best.cycles = part->count * c->best.cycles + carried(c, part);
  c->best.k_block = part->steps;
}

void chooser_tile(const struct default_facts *f, const struct machine *machine,
                  struct default_options options, struct default_tile *out) {
  struct chooser c = {.f = f, .machine = machine, .options = options, .share = 1};
  c.lanes = machine->vector_bytes / (f->t->dtype == PROGRAM_F64 ? 8 : 4);
  c.now = (struct default_tile){.vector_axis = -1, .steps = 1, .phases = true, .block_axis = -1};
  for (int i = 0; i < f->t->rank; i++) c.now.rows[i] = 1;
  struct chooser_k_block part;
  struct chooser_load load[DEFAULT_LOADS], load_of_part[DEFAULT_LOADS];
  struct chooser_blocks blocks[PROGRAM_AXES][CHOOSER_ROWS + 1];
  memset(blocks, 0, (size_t)f->t->rank * sizeof *blocks);
  c.blocks = blocks;
  chooser_find_loads(&c, load);
  choose(&c);
  choose_part(&c, &part, load_of_part);
  chooser_order(&c);
  *out = c.best;
}
