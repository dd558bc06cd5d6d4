/* The tile of a stage, by the formula of default.h: every lane axis, number of vectors and rows that
 * the registers allow is put into it.
 */
#include <string.h>

#include "program/program_cost.h"
#include "transform/default.h"

enum {
  MOST_VECTORS = 8, /* of a tile: more are no names */
  PORTS = 2,        /* multiply-adds, and loads, of a cycle */
  LATENCY = 4,      /* cycles until a sum may be added to again */
  SHORT = 9,        /* steps of a reduction that may be unrolled ... */
  STATEMENTS = 128, /* ... into so many */
  CALLS = 8,        /* operations of a point from which on its tile is small */
  SET = 4096,       /* bytes from one line to the next of a set of L1 ... */
  WAYS = 8          /* ... which holds so many */
};

static const double MASKED = 1.1; /* what lanes cost that are not all there */

struct chooser {
  const struct default_facts *f;
  const struct machine *machine;
  struct default_options options;
  int lanes; /* of a whole vector */
  struct default_tile now, best;
};

static int bytes_of(const struct chooser *c, int tensor) {
  return program_dtype_bytes(c->f->p->tensors.data[tensor].dtype);
}

/* ---- one candidate --------------------------------------------------------------------------- */

static int64_t up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

static double tiles_of(const struct chooser *c) {
  double tiles = 1;
  for (int i = 0; i < c->f->t->rank; i++) {
    int64_t steps = i == c->now.vec ? c->now.steps : c->now.rows[i];
    tiles *= (double)up(c->f->t->axes[i].size, steps);
  }
  return tiles;
}

static int64_t vectors_of(const struct chooser *c) {
  return c->now.vec < 0 ? 1 : up(c->now.steps, c->lanes);
}

static int64_t rows_of(const struct chooser *c) {
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
    int64_t bytes = l->stride[i] * bytes_of(c, l->tensor);
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
    case CONTIGUOUS: *ports += 1.3 * rows * (double)vectors_of(c); break;
    case APART:
      if (packable) {
        c->now.packed |= 1u << load;
        *ports += 1.3 * rows * (double)vectors_of(c);
      } else {
        *gathered += rows * (double)(vectors_of(c) * lanes_of_vec(c)) * (l->asked ? 2.5 : 0.8);
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
  double points = (double)(rows_of(c) * vectors_of(c));
  if (c->now.vec < 0) return c->f->reduction > 1 ? (double)rows_of(c) : 0;
  if (c->options.inner || c->f->out[c->now.vec] == 1) return points;
  return points * (double)lanes_of_vec(c) * 0.8;
}

/* Cycles of one point of a stage without a reduction and without lanes: compilers find some. */
static double scalar_point(const struct chooser *c) {
  double twisted = 0;
  for (int i = 0; i < c->f->loads; i++)
    twisted += (c->f->load[i].twisted || c->f->load[i].asked) ? 0.5 : 0.1;
  return (c->f->operations >= CALLS ? 4.0 : 0.5) * c->f->operations + twisted;
}

static double step_of(struct chooser *c) {
  double ports = 0, gathered = 0, points = (double)(rows_of(c) * vectors_of(c));
  double work = points * c->f->operations / PORTS;
  c->now.packed = 0;
  for (int i = 0; i < c->f->loads; i++) add_access(c, i, &ports, &gathered);
  double step = ports / 2 > work ? ports / 2 + work / 32 : work + ports / 64;
  if (c->f->reduction > 1 && step < LATENCY) step = LATENCY;
  return step + gathered + 1;
}

static bool fits_registers(const struct chooser *c) {
  int64_t vectors = vectors_of(c), rows = rows_of(c);
  return vectors * rows + (vectors < rows ? vectors : rows) + 1 <= c->machine->registers;
}

static void consider(struct chooser *c) {
  if (!fits_registers(c)) return;
  double steps = c->f->reduction > 1 ? (double)c->f->reduction : 1;
  double step = step_of(c);
  if (c->f->reduction == 1 && c->now.vec < 0) step = scalar_point(c);
  if (c->now.masked) step *= MASKED;
  c->now.cycles = tiles_of(c) * (steps * step + stores(c) + (steps > 1 ? 8 : 0)) + packing(c);
  if (c->best.cycles < 0 || c->now.cycles < 0.9995 * c->best.cycles) c->best = c->now;
}

/* ---- all candidates -------------------------------------------------------------------------- */

static bool may_tile(const struct chooser *c, int axis) {
  return axis != c->now.vec && !((c->f->bounds | c->f->asked) >> axis & 1) &&
         c->f->t->axes[axis].size > 1;
}

static int64_t most_rows(const struct chooser *c) {
  return c->machine->registers / vectors_of(c);
}

/* Rows along a second axis, around a first one that is whole. */
static void try_second(struct chooser *c, int first) {
  int64_t most = most_rows(c) / c->now.rows[first];
  for (int i = 0; i < c->f->t->rank && most > 1; i++) {
    if (i == first || !may_tile(c, i)) continue;
    int64_t size = c->f->t->axes[i].size;
    for (int64_t rows = 2; rows <= most && rows <= size; rows++) {
      c->now.rows[i] = rows;
      consider(c);
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
      consider(c);
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

/* ---- order ----------------------------------------------------------------------------------- */

static double bytes_of_load(const struct chooser *c, const struct default_load *l) {
  double bytes = bytes_of(c, l->tensor);
  for (int i = 0; i < c->f->t->rank + c->f->t->reductions; i++)
    if (l->moves >> i & 1) bytes *= (double)c->f->t->axes[i].size;
  double all = (double)program_elements(c->f->p, l->tensor) * bytes_of(c, l->tensor);
  return bytes < all ? bytes : all;
}

/* By the steps of an axis along which it stands still. */
static bool is_used_again(const struct chooser *c, const struct default_load *l) {
  for (int i = 0; i < c->f->t->rank; i++)
    if (i != c->best.vec && !(l->moves >> i & 1) && c->f->t->axes[i].size > 1) return true;
  return false;
}

/* Bytes of what moves with the lanes (the panels) and of the rest (the rows). */
static void weigh(const struct chooser *c, double *panels, double *rows) {
  int v = c->best.vec;
  *panels = *rows = 0;
  for (int i = 0; i < c->f->loads; i++) {
    const struct default_load *l = &c->f->load[i];
    bool still = v < 0 || !(l->moves >> v & 1) || (l->block[v] && !l->stride[v]);
    if (still || is_used_again(c, l)) *(still ? rows : panels) += bytes_of_load(c, l);
  }
}

/* Where the loop over blocks of lanes stands: outside the rows' loops, in them, or in two parts. All
 * panels fit into half of L2: in them. The rows fit: outside, and each panel comes once. Neither does: as
 * many panels as fit stay for all rows. */
static bool lanes_outside(struct chooser *c) {
  double panels, rows, half = (double)c->machine->l2 / 2;
  if (c->best.vec < 0 || c->f->reduction == 1) return false;
  int64_t count = up(c->f->t->axes[c->best.vec].size, c->best.steps);
  weigh(c, &panels, &rows);
  if (panels <= half || count < 2) return false;
  if (rows <= half) return true;
  int64_t fit = (int64_t)(half / (panels / (double)count));
  while (fit > 1 && count % fit) fit--;
  if (fit > 1 && fit < count) c->best.together = fit;
  return true;
}

static bool shares_all(const struct chooser *c, int axis) {
  for (int i = 0; i < c->f->loads; i++)
    if (!(c->f->load[i].moves >> axis & 1)) return false;
  return c->f->loads > 0;
}

/* Of a stage without a reduction, what it gathers is contiguous along this axis: the lines that one
 * vector touches are used by the next ones; -1. */
static int gathered_along(const struct chooser *c) {
  if (c->f->reduction > 1 || c->f->t->rank == 0) return -1;
  int v = c->best.vec < 0 ? c->f->order[c->f->t->rank - 1] : c->best.vec;
  for (int i = 0; i < c->f->loads; i++) {
    const int64_t *stride = c->f->load[i].stride;
    if (v < 0 || stride[v] == 0 || stride[v] == 1) continue;
    for (int j = 0; j < c->f->t->rank; j++)
      if (stride[j] == 1 && c->f->t->axes[j].size > 1) return j;
  }
  return -1;
}

/* Own axes: those that say how far a reduction runs, then those that all operands have, then rows
 * and lanes. */
static void order_own(struct chooser *c) {
  bool outside = lanes_outside(c);
  int last = gathered_along(c);
  int *order = c->best.order, count = 0, v = c->best.vec;
  uint32_t done = 0;
  for (int turn = 0; turn < 6; turn++)
    for (int i = 0; i < c->f->t->rank; i++) {
      bool wanted = turn == 0 ? c->f->bounds >> i & 1
                    : turn == 1
                        ? i != v && c->f->reduction > 1 && shares_all(c, i) && c->best.rows[i] == 1
                    : turn == 2 ? outside && i == v
                    : turn == 3 ? i != v && i != last
                    : turn == 4 ? i != last
                                : true;
      if (!wanted || done >> i & 1) continue;
      done |= 1u << i;
      order[count++] = i;
    }
}

/* An operand that lies across many pages is read from panels, where that costs next to nothing. */
static void pack_panels(struct chooser *c) {
  int v = c->best.vec;
  if (v < 0 || !c->options.pack || c->f->t->axes[v].size <= c->best.steps) return;
  for (int i = 0; i < c->f->loads; i++) {
    const struct default_load *l = &c->f->load[i];
    double elements = (double)program_elements(c->f->p, l->tensor);
    if (l->plain && !l->asked && l->stride[v] == 1 && !l->block[v] &&
        elements * 16 < c->best.cycles && elements > 4096)
      c->best.packed |= 1u << i;
  }
}

/* How far the operand that is not packed moves along a reduction axis: far moves outside. */
static int64_t reach(const struct chooser *c, int axis) {
  int64_t most = 0;
  for (int i = 0; i < c->f->loads; i++) {
    const struct default_load *l = &c->f->load[i];
    if (c->best.packed >> i & 1 || (l->plain && c->options.pack)) continue;
    int64_t stride = l->stride[axis] < 0 ? -l->stride[axis] : l->stride[axis];
    if (stride > most) most = stride;
  }
  return most;
}

static bool bounded(const struct chooser *c, int axis) {
  return c->f->t->axes[axis].low >= 0;
}

static void order_reductions(struct chooser *c) {
  int rank = c->f->t->rank, count = c->f->t->reductions, *order = c->best.order + rank;
  for (int i = 0; i < count; i++) order[i] = rank + i;
  for (int i = 1; i < count; i++)
    for (int j = i; j > 0 && !bounded(c, order[j - 1]) && !bounded(c, order[j]) &&
                    reach(c, order[j]) > reach(c, order[j - 1]);
         j--) {
      int other = order[j];
      order[j] = order[j - 1];
      order[j - 1] = other;
    }
}

/* Some load moves by the same elements along an own axis and a reduction axis: next rows use them. */
static bool slides(const struct chooser *c) {
  int rank = c->f->t->rank;
  for (int i = 0; i < c->f->loads; i++)
    for (int j = 0; j < rank * c->f->t->reductions; j++) {
      int64_t step = c->f->load[i].stride[j % rank];
      if (step && step == c->f->load[i].stride[rank + j / rank]) return true;
    }
  return false;
}

static bool unrolls_window(const struct chooser *c) {
  struct chooser best = *c;
  best.now = c->best;
  if (c->f->reduction < 2 || c->f->reduction > SHORT || c->f->operations >= CALLS || c->f->asked ||
      !slides(c))
    return false;
  for (int i = c->f->t->rank; i < c->f->t->rank + c->f->t->reductions; i++)
    if (bounded(c, i)) return false;
  return c->f->reduction * rows_of(&best) * vectors_of(&best) <= STATEMENTS;
}

/* A copy across the lanes: so many loads beside each other become one store. */
static void unroll_copy(struct chooser *c) {
  const struct default_facts *f = c->f;
  if (f->t->reductions || f->t->rank == 0 || c->best.vec >= 0) return;
  if (f->p->nodes.data[f->t->body].op != PX_LOAD || f->loads != 1 || f->load[0].twisted) return;
  int last = f->order[f->t->rank - 1];
  for (int64_t steps = 16; steps >= 4; steps /= 2)
    if (f->t->axes[last].size % steps == 0) {
      c->best.rows[last] = steps;
      return;
    }
}

void default_tile(const struct default_facts *f, const struct machine *machine,
                  struct default_options options, struct default_tile *out) {
  struct chooser c = {.f = f, .machine = machine, .options = options};
  c.lanes = machine->vector_bytes / (f->t->dtype == PROGRAM_F64 ? 8 : 4);
  c.best.cycles = -1;
  c.now = (struct default_tile){.vec = -1, .steps = 1};
  for (int i = 0; i < f->t->rank; i++) c.now.rows[i] = 1;
  if (options.lanes < 0) try_rows(&c);
  for (int i = 0; i < f->t->rank; i++)
    if (options.lanes >= 0 ? i == options.lanes : !(f->bounds >> i & 1) && f->t->axes[i].size > 1)
      try_lanes(&c, i);
  c.best.together = 1;
  unroll_copy(&c);
  pack_panels(&c);
  order_own(&c);
  order_reductions(&c);
  c.best.window = unrolls_window(&c);
  *out = c.best;
}
