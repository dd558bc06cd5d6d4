/* The order of a tile's loops, and what else follows once the tile is chosen: panels, windows that are
 * unrolled, copies across the lanes. See default.h.
 */
#include "program/program_cost.h"
#include "transform/default_chooser.h"

enum {
  SHORT = 9,       /* steps of a reduction that may be unrolled ... */
  STATEMENTS = 128 /* ... into so many */
};

static double bytes_of_load(const struct chooser *c, const struct default_load *l) {
  double bytes = chooser_bytes(c, l->tensor);
  for (int i = 0; i < c->f->t->rank + c->f->t->reductions; i++)
    if (l->moves >> i & 1) bytes *= (double)c->f->t->axes[i].size;
  double all = (double)program_elements(c->f->p, l->tensor) * chooser_bytes(c, l->tensor);
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
  if (c->f->reduction < 2 || c->f->reduction > SHORT || c->f->operations >= DEFAULT_CALLS ||
      c->f->asked || !slides(c))
    return false;
  for (int i = c->f->t->rank; i < c->f->t->rank + c->f->t->reductions; i++)
    if (bounded(c, i)) return false;
  return c->f->reduction * chooser_rows(&best) * chooser_vectors(&best) <= STATEMENTS;
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

void chooser_order(struct chooser *c) {
  c->best.together = 1;
  unroll_copy(c);
  pack_panels(c);
  order_own(c);
  order_reductions(c);
  c->best.window = unrolls_window(c);
}
