/* The tile of a stage: every lane axis, number of vectors and rows that the registers allow is put into
 * the formula of default.h.
 */
#include "transform/default_chooser.h"

enum { MOST_VECTORS = 8 }; /* of a tile: more are no names */

static void take_cheaper(struct chooser *c) {
  c->now.cycles = chooser_cycles(c);
  if (c->options.wish && c->options.wish->seen) chooser_note(c);
  if (c->best.cycles < 0 || c->now.cycles < 0.9995 * c->best.cycles) c->best = c->now;
}

/* A short reduction may be unrolled, so that next rows use what these load. */
static void consider(struct chooser *c) {
  if (!chooser_fits_registers(c) || !chooser_wants(c)) return;
  c->now.slide = -1;
  take_cheaper(c);
  for (int i = c->f->t->rank; i < c->f->t->rank + c->f->t->reductions; i++)
    if (chooser_slides(c, i)) {
      c->now.slide = i;
      take_cheaper(c);
    }
}

static bool may_tile(const struct chooser *c, int axis) {
  uint32_t never = c->f->bounds | c->f->rough | c->options.outside;
  return axis != c->now.vec && !(never >> axis & 1) && c->f->t->axes[axis].size > 1;
}

static int64_t most_rows(const struct chooser *c) {
  return c->machine->registers / chooser_vectors(c);
}

/* All phases have as many rows. */
static bool is_whole(const struct chooser *c, int axis) {
  return !c->f->period[axis] || c->now.rows[axis] % c->f->period[axis] == 0;
}

/* Rows along a second axis, around a first one that is whole. */
static void try_second(struct chooser *c, int first) {
  int64_t most = most_rows(c) / c->now.rows[first];
  for (int i = 0; i < c->f->t->rank && most > 1; i++) {
    if (i == first || !may_tile(c, i)) continue;
    int64_t size = c->f->t->axes[i].size;
    for (int64_t rows = 2; rows <= most && rows <= size; rows++) {
      c->now.rows[i] = rows;
      if (is_whole(c, i)) consider(c);
    }
    c->now.rows[i] = 1;
  }
}

static void try_rows(struct chooser *c) {
  consider(c);
  if (c->f->reduction == 1) return;
  for (int i = 0; i < c->f->t->rank; i++) {
    int64_t size = c->f->t->axes[i].size, most = most_rows(c);
    if (!may_tile(c, i)) continue;
    for (int64_t rows = 2; rows <= most && rows <= size; rows++) {
      c->now.rows[i] = rows;
      if (is_whole(c, i)) consider(c);
      if (rows == size) try_second(c, i);
    }
    c->now.rows[i] = 1;
  }
}

static void try_steps(struct chooser *c, int64_t steps) {
  int64_t size = c->f->t->axes[c->now.vec].size;
  c->now.steps = steps;
  c->now.masked = size % steps != 0;
  try_rows(c);
}

/* Whole vectors, or one that is less than a whole one, and more than half full. */
static void try_lanes(struct chooser *c, int axis) {
  int64_t size = c->f->t->axes[axis].size, lanes = c->lanes;
  c->now.vec = axis;
  if (c->options.lanes == axis) {
    try_steps(c, size);
    return;
  }
  while (lanes / 2 >= size) lanes /= 2;
  if (lanes < 2) return;
  for (int vectors = 1; vectors <= MOST_VECTORS; vectors++) {
    if (vectors > 1 && (lanes < c->lanes || (vectors - 1) * lanes >= size)) break;
    if (vectors > 2 && c->f->reduction == 1) break;
    try_steps(c, vectors * lanes);
  }
  for (lanes /= 2; lanes >= 4; lanes /= 2) /* shorter vectors that divide it */
    if (size % lanes == 0 && size % (2 * lanes)) try_steps(c, lanes);
}

static void try_all(struct chooser *c) {
  const struct default_facts *f = c->f;
  uint32_t never = f->bounds | c->options.outside;
  int lanes = c->options.lanes;
  if (lanes < 0) try_rows(c);
  for (int i = 0; i < f->t->rank; i++)
    if (lanes >= 0 ? i == lanes : !(never >> i & 1) && !f->period[i] && f->t->axes[i].size > 1)
      try_lanes(c, i);
}

void default_tile(const struct default_facts *f, const struct machine *machine,
                  struct default_options options, struct default_tile *out) {
  struct chooser c = {.f = f, .machine = machine, .options = options};
  c.lanes = machine->vector_bytes / (f->t->dtype == PROGRAM_F64 ? 8 : 4);
  c.best.cycles = -1;
  c.now = (struct default_tile){.vec = -1, .steps = 1, .phases = true, .blocked = -1};
  for (int i = 0; i < f->t->rank; i++) c.now.rows[i] = 1;
  try_all(&c);
  if (c.best.cycles < 0) { /* the wish cannot be */
    c.options.wish = NULL;
    try_all(&c);
  }
  chooser_order(&c);
  *out = c.best;
}
