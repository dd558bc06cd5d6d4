/* What a tile takes, by the formula of default.h. */
#include "program/program_cost.h"
#include "transform/default_chooser.h"

enum {
  PORTS = 2,   /* multiply-adds, and loads, of a cycle */
  LATENCY = 4, /* cycles until a sum may be added to again */
  SET = 4096,  /* bytes from one line to the next of a set of L1 ... */
  WAYS = 8     /* ... which holds so many */
};

static const double MASKED = 1.1; /* what lanes cost that are not all there */

int chooser_bytes(const struct chooser *c, int tensor) {
  return program_dtype_bytes(c->f->p->tensors.data[tensor].dtype);
}

static double tiles_of(const struct chooser *c) {
  double tiles = 1;
  for (int i = 0; i < c->f->t->rank; i++) {
    int64_t steps = i == c->now.vec ? c->now.steps : c->now.rows[i];
    tiles *= (double)up(c->f->t->axes[i].size, steps);
  }
  return tiles;
}

int64_t chooser_vectors(const struct chooser *c) {
  return c->now.vec < 0 ? 1 : up(c->now.steps, c->lanes);
}

int64_t chooser_rows(const struct chooser *c) {
  int64_t rows = 1;
  for (int i = 0; i < c->f->t->rank; i++) rows *= c->now.rows[i];
  return rows;
}

static int64_t lanes_of_vec(const struct chooser *c) {
  return c->now.steps < c->lanes ? c->now.steps : c->lanes;
}

/* Rows of the tile for which the load is another one. */
static double rows_moved(const struct chooser *c, const struct default_load *l) {
  double rows = 1;
  for (int i = 0; i < c->f->t->rank; i++)
    if (i != c->now.vec && (l->moves | l->asked) >> i & 1 &&
        !(l->block[i] && !l->stride[i] && l->block[i] % c->now.rows[i] == 0))
      rows *= (double)c->now.rows[i];
  return rows;
}

static bool fits_block(const struct chooser *c, const struct default_load *l, int axis) {
  return !l->block[axis] || l->block[axis] % c->now.steps == 0;
}

enum along { STILL, CONTIGUOUS, APART };

static enum along lanes_along(const struct chooser *c, const struct default_load *l) {
  int v = c->now.vec;
  if (v < 0 || !((l->moves | l->asked) >> v & 1)) return STILL;
  if (l->twisted >> v & 1 || l->asked >> v & 1 || !fits_block(c, l, v)) return APART;
  return l->stride[v] == 0 ? STILL : l->stride[v] == 1 ? CONTIGUOUS : APART;
}

/* Rows that lie in lines of their own cost more, and most where they lie in one set of L1. */
static double spread(const struct chooser *c, const struct default_load *l) {
  double cost = 1;
  for (int i = 0; i < c->f->t->rank; i++) {
    int64_t bytes = l->stride[i] * chooser_bytes(c, l->tensor);
    if (i == c->now.vec || c->now.rows[i] == 1 || bytes < c->machine->line) continue;
    bool one_set = bytes % SET == 0 && c->now.rows[i] > WAYS;
    cost = one_set ? 3 : cost > 1.1 ? cost : 1.1;
  }
  return cost;
}

/* Cycles of a step for one load: what goes through the load ports, and what is gathered beside. */
static void add_access(struct chooser *c, int load, double *ports, double *gathered) {
  const struct default_load *l = &c->f->load[load];
  double rows = rows_moved(c, l);
  bool packable = c->options.pack && l->plain && !l->asked && c->f->reduction > 1;
  switch (lanes_along(c, l)) {
    case STILL: *ports += rows * spread(c, l); break;
    case CONTIGUOUS: *ports += 1.3 * rows * (double)chooser_vectors(c); break;
    case APART:
      if (packable) {
        c->now.packed |= 1u << load;
        *ports += 1.3 * rows * (double)chooser_vectors(c);
      } else {
        *gathered += rows * (double)(chooser_vectors(c) * lanes_of_vec(c)) * (l->asked ? 2.5 : 0.8);
      }
  }
  bool twisted = (l->twisted | l->asked) & ~(c->now.vec >= 0 ? 1u << c->now.vec : 0);
  if (twisted) *gathered += rows;
}

/* Packing gathers each element once. */
static double packing(const struct chooser *c) {
  double cycles = 0;
  for (int i = 0; i < c->f->loads; i++)
    if (c->now.packed >> i & 1)
      cycles += 0.9 * (double)program_elements(c->f->p, c->f->load[i].tensor);
  return cycles;
}

static double stores(const struct chooser *c) {
  double points = (double)(chooser_rows(c) * chooser_vectors(c));
  if (c->now.vec < 0) return c->f->reduction > 1 ? (double)chooser_rows(c) : 0;
  if (c->options.inner || c->f->out[c->now.vec] == 1) return points;
  return points * (double)lanes_of_vec(c) * 0.8;
}

/* Cycles of one point of a stage without a reduction and without lanes: compilers find some. */
static double scalar_point(const struct chooser *c) {
  double twisted = 0;
  for (int i = 0; i < c->f->loads; i++)
    twisted += (c->f->load[i].twisted || c->f->load[i].asked) ? 0.5 : 0.1;
  return (c->f->operations >= DEFAULT_CALLS ? 4.0 : 0.5) * c->f->operations + twisted;
}

static double step_of(struct chooser *c) {
  double ports = 0, gathered = 0, points = (double)(chooser_rows(c) * chooser_vectors(c));
  double work = points * c->f->operations / PORTS;
  c->now.packed = 0;
  for (int i = 0; i < c->f->loads; i++) add_access(c, i, &ports, &gathered);
  double step = ports / 2 > work ? ports / 2 + work / 32 : work + ports / 64;
  if (c->f->reduction > 1 && step < LATENCY) step = LATENCY;
  return step + gathered + 1;
}

bool chooser_fits_registers(const struct chooser *c) {
  int64_t vectors = chooser_vectors(c), rows = chooser_rows(c);
  return vectors * rows + (vectors < rows ? vectors : rows) + 1 <= c->machine->registers;
}

double chooser_cycles(struct chooser *c) {
  double steps = c->f->reduction > 1 ? (double)c->f->reduction : 1;
  double step = step_of(c);
  if (c->f->reduction == 1 && c->now.vec < 0) step = scalar_point(c);
  if (c->now.masked) step *= MASKED;
  return tiles_of(c) * (steps * step + stores(c) + (steps > 1 ? 8 : 0)) + packing(c);
}
