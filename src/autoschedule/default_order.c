/* The order of a tile's loops, and what else follows once the tile is chosen: panels, windows that are
 * unrolled, copies across the lanes. See default.h.
 */
#include <stdlib.h>
#include <string.h>

#include "autoschedule/default_chooser.h"
#include "program/program_cost.h"

enum {
  SHORT = 9, /* steps of a reduction axis that may be unrolled ... */
  FEW =
      64, /* ... of all of them, of a sum that loads of its own rows bind, and not those of others */
  MOST_UNROLLED = 9, /* ... of all of them together, into DEFAULT_STATEMENTS at most */
  LINE = 16,         /* elements of a line */
  COPIED = 4,        /* cycles of an element that is packed, in the first place ... */
  SMALL = 4096,      /* elements that are not worth packing */
  MANY_LINES = 32,   /* that vectors write by turns */
  NEAR = 256,        /* bytes of what is fetched ahead of what lies before it */
  ACROSS = 8,        /* cycles of a line of a page of its own */
  WORTH = 8,         /* vectors of a tile that a loop of few steps may be around */
  AT_ONCE = 2,       /* panels that are read from memory at once */
  OFTEN = 3          /* times that rows of a copy repeat, where they leave a rest */
};

static double bytes_of_load(const struct chooser *c, const struct default_load *l) {
  double bytes = chooser_bytes(c, l);
  for (int i = 0; i < c->f->t->rank + c->f->t->reductions; i++)
    if (l->depends_on >> i & 1) bytes *= (double)c->f->t->axes[i].size;
  double all = chooser_load_of(c, l)->all;
  return bytes < all ? bytes : all;
}

/* By the steps of an axis along which it stands still. */
static bool is_used_again(const struct chooser *c, const struct default_load *l) {
  for (int i = 0; i < c->f->t->rank; i++)
    if (i != c->best.vector_axis && !(l->depends_on >> i & 1) && c->f->t->axes[i].size > 1)
      return true;
  return false;
}

/* Steps of own axes along which a panel is another one and rows are the same, as lines of an image in `[c, h, w]` are:
 * one panel is used while these stand still. */
static double panels_apart(const struct chooser *c, const struct default_load *panel) {
  double steps = 1;
  for (int i = 0; i < c->f->t->rank && chooser_has_few_registers(c); i++) {
    bool same = panel->depends_on >> i & 1 && i != c->best.vector_axis && c->best.rows[i] == 1;
    for (int j = 0; j < c->f->loads && same; j++)
      same = c->f->load[j].depends_on >> c->best.vector_axis & 1 ||
             !(c->f->load[j].depends_on >> i & 1);
    if (same) steps *= (double)c->f->t->axes[i].size;
  }
  return steps;
}

/* Bytes of what moves with the lanes (the panels) and of the rest (the rows). */
static void weigh(const struct chooser *c, double *panels, double *rows) {
  int v = c->best.vector_axis;
  *panels = *rows = 0;
  for (int i = 0; i < c->f->loads; i++) {
    const struct default_load *l = &c->f->load[i];
    bool still = v < 0 || !(l->depends_on >> v & 1) || (l->block[v] && !l->stride[v]);
    if (still)
      *rows += bytes_of_load(c, l);
    else if (is_used_again(c, l))
      *panels += bytes_of_load(c, l) / panels_apart(c, l);
  }
}

static enum chooser_windows windows_of(const struct chooser *c) {
  struct chooser best = chooser_of_best(c);
  return c->options.constraint ? WINDOWS_IN_ROWS : chooser_windows(&best);
}

/* Where the loop over blocks of lanes stands: outside the rows' loops, in them, or in two parts. All
 * panels fit into half of L2: in them. The rows fit: outside, and each panel comes once. Neither does: as
 * many panels as fit stay for all rows. */
static bool lanes_outside(struct chooser *c) {
  double panels, rows, half = (double)c->machine->l2 / 2;
  if (c->best.vector_axis < 0 || c->f->reduction == 1) return false;
  int64_t count = up(c->f->t->axes[c->best.vector_axis].size, c->best.steps);
  if (windows_of(c) == WINDOWS_IN_BLOCKS) return true;
  weigh(c, &panels, &rows);
  if (panels <= half || count < 2) return false;
  if (rows <= half) return true;
  int64_t fit = (int64_t)(half / (panels / (double)count));
  while (fit > 1 && count % fit) fit--;
  if (fit > 1 && fit < count) {
    c->best.cache_block = fit;
    c->best.block_axis = c->best.vector_axis;
  }
  return true;
}

/* The own axes that are indices of the load. */
static uint32_t axes_of_load(const struct default_facts *f, const struct default_load *l) {
  uint32_t axes = 0;
  for (int i = 0; i < f->p->tensors.data[l->tensor].rank; i++) {
    const struct px_node *load = &f->p->nodes.data[l->node];
    const struct px_node *at = &f->p->nodes.data[f->p->indices.data[load->first + i]];
    if (at->op == PX_AXIS && at->integer < f->t->rank) axes |= 1u << at->integer;
  }
  return axes;
}

/* The axes that a stage has in common which is computed for a block of rows. */
static uint32_t buffered_axes(const struct chooser *c) {
  const struct default_constraint *wish = c->options.constraint;
  for (int i = 0; wish && wish->buffer[0] && i < c->f->loads; i++)
    if (!strcmp(c->f->p->tensors.data[c->f->load[i].tensor].name, wish->buffer))
      return axes_of_load(c->f, &c->f->load[i]);
  return 0;
}

static bool has_tiles(const struct chooser *c, int axis) {
  return axis != c->best.vector_axis && c->f->t->axes[axis].size > c->best.rows[axis];
}

/* Bands: the last axis of tiles that has tiles of another one inside, one row each; -1. */
static int band_axis(struct chooser *c) {
  int inner = c->f->t->rank - 1;
  while (inner >= 0 && !has_tiles(c, inner)) inner--;
  int axis = inner - 1;
  while (axis >= 0 && !has_tiles(c, axis)) axis--;
  if (axis < 0 || c->best.rows[axis] > 1 || c->best.vector_axis < 0) return -1;
  if (c->f->t->axes[c->best.vector_axis].size <= c->best.steps) return -1;
  c->best.bands = true;
  return axis;
}

/* The axis whose tiles come in blocks, outside all others: what a wish says, or what is best; -1. */
static int outside(struct chooser *c) {
  const struct default_constraint *wish = c->options.constraint;
  enum default_blocks blocks = wish ? wish->blocks : BLOCKS_FORMULA;
  uint32_t with = buffered_axes(c);
  if (blocks == BLOCKS_FORMULA) return lanes_outside(c) ? c->best.vector_axis : -1;
  if (c->best.vector_axis >= 0 && c->f->t->axes[c->best.vector_axis].size > c->best.steps)
    c->best.block_axis = c->best.vector_axis;
  if (blocks == BLOCKS_ROWS) c->best.block_axis = -1;
  if (blocks == BLOCKS_BANDS) c->best.block_axis = band_axis(c);
  for (int i = 0; i < c->f->t->rank && blocks == BLOCKS_ROWS; i++) {
    int at = c->best.block_axis;
    if (has_tiles(c, i) && (with ? with >> i & 1 && (at < 0 || c->best.rows[at] == 1) : at < 0))
      c->best.block_axis = i;
  }
  return c->best.block_axis;
}

/* What is not contiguous along axis v, nor stands still, is so along this one; -1. */
static int read_along(const struct chooser *c, int v) {
  for (int i = 0; i < c->f->loads; i++) {
    const int64_t *stride = c->f->load[i].stride;
    if (stride[v] == 0 || stride[v] == 1) continue;
    for (int j = 0; j < c->f->t->rank; j++)
      if (stride[j] == 1 && c->f->t->axes[j].size > 1) return j;
  }
  return -1;
}

/* Of a stage without a reduction, what it gathers is contiguous along this axis: the lines that one
 * vector touches are used by the next ones; -1. */
static int gathered_along(const struct chooser *c) {
  if (c->f->reduction > 1 || c->f->t->rank == 0) return -1;
  return read_along(c,
                    c->best.vector_axis < 0 ? c->f->order[c->f->t->rank - 1] : c->best.vector_axis);
}

/* A copy goes through what it reads in the order in which it lies there. */
static void order_copy(struct chooser *c) {
  const struct default_load *l = &c->f->load[0];
  int *order = c->best.order;
  if (c->f->t->reductions || c->f->loads != 1 || c->f->guarded || l->non_affine) return;
  if (c->f->p->nodes.data[c->f->t->body].op != PX_LOAD || c->best.vector_axis >= 0) return;
  for (int i = 1; i < c->f->t->rank; i++)
    for (int j = i; j > 0 && l->stride[order[j]] > l->stride[order[j - 1]]; j--) {
      int other = order[j];
      order[j] = order[j - 1];
      order[j - 1] = other;
    }
}

/* Blocks of lanes come again for each step of the first axis, as for each image of many, where that is less than all
 * rows again for each of the blocks. */
static bool is_around_blocks(struct chooser *c, int axis, int first) {
  int v = c->best.vector_axis;
  if (first != v || v < 0 || axis == v || c->options.constraint || c->best.bands) return false;
  for (int i = 0; i < axis; i++)
    if (i != v && c->f->t->axes[i].size > 1) return false;
  int64_t steps = c->f->t->axes[axis].size;
  if (steps == 1 || c->best.rows[axis] > 1) return false;
  double panels, rows;
  weigh(c, &panels, &rows);
  double blocks = (double)up(c->f->t->axes[v].size, c->best.steps) / (double)c->best.cache_block;
  return rows > (double)c->machine->l2 && rows + (double)steps * panels < blocks * rows;
}

/* Windows go through images one after the other ... */
static bool is_around_windows(const struct chooser *c, int axis, enum chooser_windows windows) {
  if (windows == WINDOWS_IN_ROWS) return false;
  struct chooser best = chooser_of_best(c);
  return chooser_counts_images(&best, axis);
}

/* ... and through each of them in strips as wide as a tile. */
static bool is_strip(const struct chooser *c, int axis, enum chooser_windows windows) {
  return windows == WINDOWS_IN_STRIPS && axis != c->best.vector_axis && c->best.rows[axis] > 1;
}

/* Elements from one step of the axis to the next one, on the whole. */
static int64_t step_along(const struct default_load *l, int axis) {
  return l->block[axis] ? l->jump[axis] / l->block[axis] : l->stride[axis];
}

/* Rows of the products along the axis are parts of few lines that follow each other, as groups of channels in `[h, w,
 * g, c]` are: those of one product alone are not fetched ahead. */
static bool is_in_rows(const struct chooser *c, int axis) {
  for (int i = 0; i < c->f->loads; i++) {
    const struct default_load *l = &c->f->load[i];
    int64_t bytes = chooser_bytes(c, l), step = step_along(l, axis) * bytes;
    bool around = false;
    if (l->depends_on >> c->best.vector_axis & 1 || step <= 0 || step > NEAR) continue;
    for (int j = 0; j < c->f->t->rank; j++)
      around = around || (c->f->t->axes[j].size > 1 && l->stride[j] * bytes > step);
    if (around && bytes_of_load(c, l) > (double)c->machine->l1) return true;
  }
  return false;
}

/* The axis of many products, which have nothing in common. */
static bool counts_products(const struct chooser *c, int axis) {
  double panels, rows;
  if (axis == c->best.vector_axis || c->f->reduction == 1 || !default_all_depend_on(c->f, axis) ||
      c->best.rows[axis] > 1)
    return false;
  if (c->best.vector_axis < 0 || !is_in_rows(c, axis)) return true;
  weigh(c, &panels, &rows);
  return panels > (double)c->machine->l2 / 2;
}

/* Own axes: those that say how far a reduction runs, then those that all operands have, then rows
 * and lanes; of bands the lanes stand between what is outside and what is in a band. */
static void order_own(struct chooser *c) {
  int first = outside(c);
  enum chooser_windows windows = windows_of(c);
  uint32_t with = first >= 0 ? buffered_axes(c) : 0;
  int written = c->f->t->rank ? c->f->order[c->f->t->rank - 1] : -1;
  int last = c->best.rolled && !(c->best.rolled >> written & 1) ? written : gathered_along(c);
  int *order = c->best.order, count = 0, v = c->best.vector_axis;
  uint32_t done = 0;
  for (int turn = -2; turn < 9; turn++)
    for (int i = 0; i < c->f->t->rank; i++) {
      bool wanted = turn == -2   ? with >> i & 1 && i != v && i != first
                    : turn == -1 ? with && i == first
                    : turn == 0  ? c->f->bounds_reduction >> i & 1
                    : turn == 1  ? counts_products(c, i)
                    : turn == 2  ? is_around_blocks(c, i, first) || is_around_windows(c, i, windows)
                    : turn == 3  ? i == first || (c->best.bands && i != v && i < first)
                    : turn == 4  ? c->best.bands && i == v
                    : turn == 5  ? is_strip(c, i, windows)
                    : turn == 6  ? i != v && i != last
                    : turn == 7  ? i != last
                                 : true;
      if (!wanted || done >> i & 1) continue;
      done |= 1u << i;
      order[count++] = i;
    }
}

/* Cycles of reading the load as it is, more than as panels: a line in each step of the innermost
 * reduction, of another page each, for every tile of rows. */
static double across_pages(const struct chooser *c, const struct default_load *l) {
  int v = c->best.vector_axis, inner = -1;
  for (int i = c->f->t->rank; i < c->f->t->rank + c->f->t->reductions; i++)
    if (inner < 0 || (l->stride[i] && l->stride[i] < l->stride[inner])) inner = i;
  if (inner < 0 || l->stride[inner] * chooser_bytes(c, l) < machine_prefetch_stride(c->machine))
    return 0;
  struct chooser best = chooser_of_best(c);
  double tiles = 1 / chooser_uses_in_row(&best, l);
  double lines = (double)program_elements(c->f->p, l->tensor) / 16;
  for (int i = 0; i < c->f->t->rank; i++)
    if (i != v && !(l->depends_on >> i & 1))
      tiles *= (double)up(c->f->t->axes[i].size, c->best.rows[i]);
  return tiles * lines * ACROSS;
}

static void pack_panels(struct chooser *c) {
  int v = c->best.vector_axis;
  if (v < 0 || !c->options.pack || c->f->t->axes[v].size <= c->best.steps) return;
  for (int i = 0; i < c->f->loads; i++) {
    const struct default_load *l = &c->f->load[i];
    double elements = (double)program_elements(c->f->p, l->tensor);
    uint32_t asked = c->f->has_boundary ? l->guarded & 1u << v : l->guarded;
    if (!l->packable || asked || l->stride[v] != 1 || l->block[v] || elements <= SMALL) continue;
    double cost = chooser_packing(c, l, COPIED);
    if (16 * cost < c->best.cycles || cost < across_pages(c, l)) c->best.packed |= 1u << i;
  }
}

/* How far the operand that is not packed moves along a reduction axis: far moves outside. */
static int64_t reach(const struct chooser *c, int axis) {
  int64_t most = 0;
  for (int i = 0; i < c->f->loads; i++) {
    const struct default_load *l = &c->f->load[i];
    if (l->cold || c->best.packed >> i & 1 || (l->packable && c->options.pack)) continue;
    int64_t stride = l->stride[axis] < 0 ? -l->stride[axis] : l->stride[axis];
    if (stride > most) most = stride;
  }
  return most;
}

static bool bounded(const struct chooser *c, int axis) {
  return c->f->t->axes[axis].low >= 0;
}

/* One runs through what every load has between two steps of the other. */
static bool in_a_line(const struct chooser *c, int a, int b) {
  bool any = false;
  for (int i = 0; i < c->f->loads; i++) {
    const int64_t *stride = c->f->load[i].stride, x = stride[a], y = stride[b];
    if (!x && !y) continue;
    any = true;
    if (x != y * c->f->t->axes[b].size && y != x * c->f->t->axes[a].size) return false;
  }
  return any;
}

/* In each step of the longer loop something is found on another page, as channels of images are: it is not fetched
 * ahead. A short loop inside finds it beside the step before, and its own beginning costs little. */
static bool hops(const struct chooser *c, int longer, int shorter) {
  if (c->f->period[shorter]) return false; /* it is unrolled by its phases */
  int64_t bytes = program_dtype_bytes(c->f->t->dtype);
  int64_t points = c->best.steps / c->lanes, far = reach(c, longer) * bytes;
  for (int i = 0; i < c->f->t->rank; i++) points *= c->best.rows[i];
  return c->best.vector_axis >= 0 && points >= WORTH &&
         far >= machine_prefetch_stride(c->machine) && reach(c, shorter) * bytes < far;
}

/* What slides is innermost; a loop of few steps is not, where there is a longer one that does not hop. */
static bool is_further(const struct chooser *c, int a, int b) {
  if (a == c->best.sliding || b == c->best.sliding) return b == c->best.sliding;
  bool short_a = c->f->t->axes[a].size <= SHORT, short_b = c->f->t->axes[b].size <= SHORT;
  if (short_a != short_b && !in_a_line(c, a, b) && !hops(c, short_a ? b : a, short_a ? a : b))
    return short_a;
  return reach(c, a) > reach(c, b);
}

static void order_reductions(struct chooser *c) {
  int rank = c->f->t->rank, count = c->f->t->reductions, *order = c->best.order + rank;
  for (int i = 0; i < count; i++) order[i] = rank + i;
  for (int i = 1; i < count; i++)
    for (int j = i; j > 0 && !bounded(c, order[j - 1]) && !bounded(c, order[j]) &&
                    is_further(c, order[j], order[j - 1]);
         j--) {
      int other = order[j];
      order[j] = order[j - 1];
      order[j - 1] = other;
    }
}

/* Elements that rows of a tile use of a window along the reduction, by the load that moves by a multiple of its steps
 * along an own axis; 0: there is none. */
static int64_t window_of_rows(const struct chooser *c, int reduction) {
  int64_t most = 0;
  for (int i = 0; i < c->f->loads; i++)
    for (uint32_t left = c->f->load[i].stride[reduction] ? c->rowed : 0; left;) {
      int j = chooser_pop_axis(&left);
      int64_t step = c->f->load[i].stride[reduction], rows = c->now.rows[j];
      int64_t moved = c->f->load[i].stride[j] / step;
      if (!moved || c->f->load[i].stride[j] % step) continue;
      int64_t elements = (rows - 1) * llabs(moved) + c->f->t->axes[reduction].size;
      if (elements > most) most = elements;
    }
  return most;
}

/* The loads of rows bind a long sum of one vector, each of which is for one multiply-add: what they share stays in
 * registers, beside the sums. */
static bool shares_rows(const struct chooser *c, int64_t window) {
  return chooser_vectors(c) == 1 && chooser_rows(c) + window <= c->machine->registers;
}

bool chooser_slides(const struct chooser *c, int reduction) {
  int64_t size = c->f->t->axes[reduction].size, vectors = chooser_vectors(c);
  int64_t tile = chooser_rows(c) * vectors;
  if (size * tile > DEFAULT_STATEMENTS) return false;
  if (c->f->reduction > DEFAULT_FEW && vectors > 1) return false;
  /* one register more is needed where there are few, or rows share more loads than vectors do */
  int few = chooser_has_few_registers(c) || vectors < chooser_rows(c);
  if (2 * tile + few > c->machine->registers) return false;
  int64_t window = window_of_rows(c, reduction);
  return window && (c->f->reduction <= DEFAULT_FEW || shares_rows(c, window));
}

/* All reductions where that is not much, or the one along which rows slide. */
static uint32_t unrolled(const struct chooser *c) {
  struct chooser best = chooser_of_best(c);
  uint32_t all = 0;
  for (int i = c->f->t->rank; i < c->f->t->rank + c->f->t->reductions; i++) all |= 1u << i;
  if (chooser_permutes(&best) && chooser_unrolls_all(&best)) return all;
  if (c->best.sliding < 0) return 0;
  if (c->f->guarded) return 1u << c->best.sliding; /* each step would be many tiles */
  for (int i = c->f->t->rank; i < c->f->t->rank + c->f->t->reductions; i++)
    if (bounded(c, i)) return 1u << c->best.sliding;
  bool few = c->f->reduction * chooser_rows(&best) * chooser_vectors(&best) <= DEFAULT_STATEMENTS;
  return c->f->reduction <= MOST_UNROLLED && few ? all : 1u << c->best.sliding;
}

/* A copy across the lanes: so many loads beside each other become one store. */
static void unroll_copy(struct chooser *c, int last) {
  const struct default_facts *f = c->f;
  if (c->best.vector_axis >= 0 || f->p->nodes.data[f->t->body].op != PX_LOAD ||
      f->load[0].non_affine)
    return;
  int64_t size = f->t->axes[last].size;
  if (c->options.outside >> last & 1) return;
  for (int64_t steps = 16; steps >= 4 && c->best.rows[last] == 1; steps /= 2)
    if (size % steps == 0 || size >= OFTEN * steps) c->best.rows[last] = steps;
}

/* A line, or what divides the axis and is more than half of one. */
static int64_t rows_of_line(int64_t size) {
  int64_t rows = size < LINE ? size : LINE;
  while (size % rows && rows > LINE / 2) rows--;
  return size % rows ? LINE : rows;
}

/* So many lines, so many elements apart (not 0) of so many bytes, are more than the sets that they fall into hold. */
static bool evicts(const struct machine *m, int64_t stride, int bytes, int64_t lines) {
  return lines > chooser_sets_of(m, stride * bytes) * machine_l1_ways(m);
}

/* Lines that are written element by element do not stay until they are complete. */
static bool writes_evict(const struct chooser *c, int axis, int64_t lines) {
  return evicts(c->machine, c->f->out_stride[axis], program_dtype_bytes(c->f->t->dtype), lines);
}

/* Lines that are read element by element do not. */
static bool reads_evict(const struct chooser *c, int from, int last) {
  int64_t lines = rows_of_line(c->f->t->axes[last].size);
  for (int i = 0; i < c->f->loads; i++) {
    const struct default_load *l = &c->f->load[i];
    if (l->stride[from] != 1 || !l->stride[last]) continue;
    if (evicts(c->machine, l->stride[last], chooser_bytes(c, l), lines)) return true;
  }
  return false;
}

/* The axis of which a line's elements are copied at once: `from`, along which lines are read, where the lines that they
 * are written to stay in the first cache, or those that are read would not either. `last`, along which lines are
 * written, elsewhere, unless it has less than half of a line. */
static int blocked_copy(const struct chooser *c, int from, int last) {
  if (rows_of_line(c->f->t->axes[last].size) < LINE / 2) return from;
  if (!writes_evict(c, from, rows_of_line(c->f->t->axes[from].size))) return from;
  return reads_evict(c, from, last) ? from : last;
}

/* The axis along which lines are read that are not those that are written, element by element or in vectors whose
 * lanes go to lines that do not stay, if they are many: conditions on values are no branches in vectors; -1. */
static int copied_from(const struct chooser *c, int last) {
  int v = c->best.vector_axis, from = gathered_along(c);
  if (from >= 0 || v < 0 || c->f->out_stride[v] == 1 || c->f->t->axes[v].size < MANY_LINES)
    return from;
  return writes_evict(c, v, rows_of_line(c->f->t->axes[v].size)) ? read_along(c, last) : -1;
}

/* What is contiguous along one axis where it is read and along another where it is written, element by
 * element: a line at once, so that few pages are read or written by turns. */
static void block_copy(struct chooser *c) {
  const struct default_facts *f = c->f;
  if (f->t->reductions || f->t->rank == 0 || f->truncated || f->operations >= DEFAULT_CALLS) return;
  int last = f->order[f->t->rank - 1], from = copied_from(c, last);
  bool copy = f->p->nodes.data[f->t->body].op == PX_LOAD && !f->load[0].non_affine;
  if (copy || from < 0 || from == last || f->out_stride[last] != 1 ||
      c->options.outside >> from & 1) {
    unroll_copy(c, last);
    return;
  }
  int block = blocked_copy(c, from, last);
  if (c->options.outside >> block & 1) block = from;
  c->best.vector_axis = -1;
  c->best.steps = 1;
  c->best.masked = c->best.peeled = false;
  for (int i = 0; i < f->t->rank; i++) c->best.rows[i] = 1;
  c->best.rows[block] = rows_of_line(f->t->axes[block].size);
  c->best.rolled = 1u << block;
}

/* It is a panel of the lanes' axis, or becomes one. */
static bool is_panel(const struct chooser *c, int load) {
  const struct default_load *l = &c->f->load[load];
  int v = c->best.vector_axis;
  bool along = l->depends_on >> v & 1 && (l->stride[v] == 1 || c->best.packed >> load & 1);
  return along && !l->guarded && !l->non_affine;
}

/* Panels come from memory, and once. */
static bool is_read_from_memory(const struct chooser *c) {
  const struct default_tile *best = &c->best;
  double bytes = 0;
  if (best->vector_axis < 0 || best->symbolic || best->masked || c->f->reduction == 1) return false;
  for (int i = 0; i < c->f->t->rank; i++)
    if (i != best->vector_axis && c->f->t->axes[i].size > 1) return false;
  for (int i = 0; i < c->f->loads; i++)
    if (is_panel(c, i)) bytes += bytes_of_load(c, &c->f->load[i]);
  return default_is_beyond_l3(c->machine, bytes);
}

static bool have_registers(const struct chooser *c, int64_t vectors) {
  return vectors * AT_ONCE + vectors + 1 <= c->machine->registers;
}

/* Panels that can be read at once, each of so many vectors. */
static bool has_streams(const struct chooser *c, int64_t vectors) {
  int64_t tiles = c->f->t->axes[c->best.vector_axis].size / (vectors * c->lanes);
  return tiles % AT_ONCE == 0 && have_registers(c, vectors);
}

/* Weights that become panels of as many lanes as the tile has. */
static bool may_be_packed(const struct chooser *c, int load) {
  const struct default_load *l = &c->f->load[load];
  bool constant = c->f->p->tensors.data[l->tensor].constant;
  return c->best.packed >> load & 1 || (constant && c->options.pack && l->packable);
}

/* Two panels of half the lanes come faster than one, where registers do not suffice for two of all of them: so are they
 * packed ... */
static void halve_panels(struct chooser *c) {
  int64_t vectors = up(c->best.steps, c->lanes), half = vectors / 2;
  if (have_registers(c, vectors) || c->best.steps != 2 * half * c->lanes) return;
  for (int i = 0; i < c->f->loads; i++) {
    bool packed =
        is_panel(c, i) && may_be_packed(c, i) && !c->f->load[i].block[c->best.vector_axis];
    if (packed && has_streams(c, half)) c->best.steps = half * c->lanes;
  }
}

/* ... and read, all lanes of a panel together. */
static void take_panels(struct chooser *c) {
  for (int i = 0; i < c->f->loads; i++) {
    int64_t block = c->f->load[i].block[c->best.vector_axis], vectors = block / c->lanes;
    bool whole = is_panel(c, i) && vectors && block == vectors * c->lanes;
    if (whole && has_streams(c, vectors)) c->best.steps = block;
  }
}

static void short_panels(struct chooser *c) {
  if (!chooser_has_few_registers(c) || !is_read_from_memory(c)) return;
  halve_panels(c);
  take_panels(c);
}

static void read_in_streams(struct chooser *c) {
  if (!is_read_from_memory(c) || c->best.block_axis >= 0) return;
  if (!has_streams(c, up(c->best.steps, c->lanes))) return;
  c->best.cache_block = AT_ONCE;
  c->best.block_axis = c->best.vector_axis;
  c->best.streams = true;
}

static bool keeps_vectors(const struct chooser *c) {
  struct chooser best = chooser_of_best(c);
  return chooser_reuses_vectors(&best);
}

void chooser_order(struct chooser *c) {
  c->best.cache_block = 1;
  c->best.block_axis = -1;
  c->best.bands = c->best.streams = false;
  c->best.symbolic = c->options.constraint && c->options.constraint->tile;
  block_copy(c);
  short_panels(c);
  pack_panels(c);
  order_own(c);
  order_copy(c);
  order_reductions(c);
  read_in_streams(c);
  c->best.unrolled = unrolled(c);
  c->best.reuses_vectors = keeps_vectors(c);
}
