/* The order of the loops of a stage's best tile, and what follows from it: packed panels, unrolled
 * windows, copies by cache lines, panels that are streamed from memory.
 *
 * Own axes stand in this order, the outermost first: a buffered producer's axes, axes that bound a
 * reduction, batch axes, images around cache blocks, the cache block, strips, rows, the vector
 * axis. Of reductions the one with the largest stride is outermost, but windows stand outside of
 * long axes.
 */
#include <stdlib.h>
#include <string.h>

#include "autoschedule/default_chooser.h"
#include "program/program_cost.h"

/* Bytes of the load that the stage reads. */
static double load_bytes(const struct chooser *c, const struct default_load *l) {
  double bytes = chooser_bytes(c, l);
  for (int i = 0; i < c->f->t->rank + c->f->t->reductions; i++)
    if (l->depends_on >> i & 1) bytes *= (double)c->f->t->axes[i].size;
  double all = chooser_load_of(c, l)->tensor_bytes;
  return bytes < all ? bytes : all;
}

/* The load does not depend on some own axis other than the vector axis. */
static bool is_used_again(const struct chooser *c, const struct default_load *l) {
  for (int i = 0; i < c->f->t->rank; i++)
    if (i != c->best.vector_axis && !(l->depends_on >> i & 1) && c->f->t->axes[i].size > 1)
      return true;
  return false;
}

/* Steps of own axes that select another panel but not other rows, as image lines in `[c, h, w]`:
 * one panel is used between two steps of these axes. Few registers only. */
static double panel_only_steps(const struct chooser *c, const struct default_load *panel) {
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

/* Bytes of the loads along the vector axis (panels), and of the other ones (rows). */
static void operand_bytes(const struct chooser *c, double *panels, double *rows) {
  int v = c->best.vector_axis;
  *panels = *rows = 0;
  for (int i = 0; i < c->f->loads; i++) {
    const struct default_load *l = &c->f->load[i];
    bool row = v < 0 || !(l->depends_on >> v & 1) || (l->block[v] && !l->stride[v]);
    if (row)
      *rows += load_bytes(c, l);
    else if (is_used_again(c, l))
      *panels += load_bytes(c, l) / panel_only_steps(c, l);
  }
}

static enum chooser_windows windows_of(const struct chooser *c) {
  struct chooser best = chooser_of_best(c);
  return c->options.constraint ? WINDOWS_IN_ROWS : chooser_windows(&best);
}

/* Whether blocks of the vector axis are outside of the rows' loops. If all panels fit into half of
 * L2, they are inside. If the rows fit, they are outside, and each panel is loaded once. If neither
 * fits, as many panels as fit stay in L2 for all rows: a cache block. */
static bool is_vector_axis_outside(struct chooser *c) {
  double panels, rows, half = (double)c->machine->l2 / 2;
  if (c->best.vector_axis < 0 || c->f->reduction == 1) return false;
  int64_t count = up(c->f->t->axes[c->best.vector_axis].size, c->best.steps);
  if (windows_of(c) == WINDOWS_IN_BLOCKS) return true;
  operand_bytes(c, &panels, &rows);
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

/* The axes that the stage shares with a producer that the constraint buffers per block of rows. */
static uint32_t buffered_axes(const struct chooser *c) {
  const struct default_constraint *constraint = c->options.constraint;
  for (int i = 0; constraint && constraint->buffer[0] && i < c->f->loads; i++)
    if (!strcmp(c->f->p->tensors.data[c->f->load[i].tensor].name, constraint->buffer))
      return axes_of_load(c->f, &c->f->load[i]);
  return 0;
}

static bool has_tiles(const struct chooser *c, int axis) {
  return axis != c->best.vector_axis && c->f->t->axes[axis].size > c->best.rows[axis];
}

/* The axis of bands: the last one with tiles that has tiles of another axis inside, one row each;
 * -1. */
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

/* The axis whose cache block is outermost: of the constraint, or the best one; -1. */
static int outermost_block_axis(struct chooser *c) {
  const struct default_constraint *constraint = c->options.constraint;
  enum default_blocks blocks = constraint ? constraint->blocks : BLOCKS_FORMULA;
  uint32_t buffered = buffered_axes(c);
  if (blocks == BLOCKS_FORMULA) return is_vector_axis_outside(c) ? c->best.vector_axis : -1;
  if (c->best.vector_axis >= 0 && c->f->t->axes[c->best.vector_axis].size > c->best.steps)
    c->best.block_axis = c->best.vector_axis;
  if (blocks == BLOCKS_ROWS) c->best.block_axis = -1;
  if (blocks == BLOCKS_BANDS) c->best.block_axis = band_axis(c);
  for (int i = 0; i < c->f->t->rank && blocks == BLOCKS_ROWS; i++) {
    int at = c->best.block_axis;
    bool replaces = buffered ? buffered >> i & 1 && (at < 0 || c->best.rows[at] == 1) : at < 0;
    if (has_tiles(c, i) && replaces) c->best.block_axis = i;
  }
  return c->best.block_axis;
}

/* The axis along which a load that is neither contiguous nor invariant along v is contiguous;
 * -1. */
static int contiguous_read_axis(const struct chooser *c, int v) {
  for (int i = 0; i < c->f->loads; i++) {
    const int64_t *stride = c->f->load[i].stride;
    if (stride[v] == 0 || stride[v] == 1) continue;
    for (int j = 0; j < c->f->t->rank; j++)
      if (stride[j] == 1 && c->f->t->axes[j].size > 1) return j;
  }
  return -1;
}

/* Element-wise stages: the axis along which their gathered load is contiguous, so that the next
 * vectors use its cache lines; -1. */
static int gather_axis(const struct chooser *c) {
  if (c->f->reduction > 1 || c->f->t->rank == 0) return -1;
  return contiguous_read_axis(
      c, c->best.vector_axis < 0 ? c->f->order[c->f->t->rank - 1] : c->best.vector_axis);
}

/* A copy reads its input in the order of memory. */
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

/* The first axis, as a batch axis, stands around blocks of the vector axis: its steps reload all
 * panels, which is less than to reload all rows for each block. */
static bool is_around_blocks(struct chooser *c, int axis, int first) {
  int v = c->best.vector_axis;
  if (first != v || v < 0 || axis == v || c->options.constraint || c->best.bands) return false;
  for (int i = 0; i < axis; i++)
    if (i != v && c->f->t->axes[i].size > 1) return false;
  int64_t steps = c->f->t->axes[axis].size;
  if (steps == 1 || c->best.rows[axis] > 1) return false;
  double panels, rows;
  operand_bytes(c, &panels, &rows);
  double blocks = (double)up(c->f->t->axes[v].size, c->best.steps) / (double)c->best.cache_block;
  return rows > (double)c->machine->l2 && rows + (double)steps * panels < blocks * rows;
}

/* Windows that leave the order of rows take one image after the other. */
static bool is_around_windows(const struct chooser *c, int axis, enum chooser_windows windows) {
  if (windows == WINDOWS_IN_ROWS) return false;
  struct chooser best = chooser_of_best(c);
  return chooser_counts_images(&best, axis);
}

/* The axis across strips of windows. */
static bool is_strip(const struct chooser *c, int axis, enum chooser_windows windows) {
  return windows == WINDOWS_IN_STRIPS && axis != c->best.vector_axis && c->best.rows[axis] > 1;
}

/* Average elements from one step of the axis to the next one. */
static int64_t step_along(const struct default_load *l, int axis) {
  return l->block[axis] ? l->jump[axis] / l->block[axis] : l->stride[axis];
}

/* Rows of products along the axis are adjacent parts of cache lines, as groups of channels in `[h,
 * w, g, c]`: hardware does not prefetch those of one product alone. */
static bool shares_lines(const struct chooser *c, int axis) {
  for (int i = 0; i < c->f->loads; i++) {
    const struct default_load *l = &c->f->load[i];
    int64_t bytes = chooser_bytes(c, l), step = step_along(l, axis) * bytes;
    bool other = false;
    if (l->depends_on >> c->best.vector_axis & 1 || step <= 0 || step > DEFAULT_ADJACENT_BYTES)
      continue;
    for (int j = 0; j < c->f->t->rank; j++)
      other = other || (c->f->t->axes[j].size > 1 && l->stride[j] * bytes > step);
    if (other && load_bytes(c, l) > (double)c->machine->l1) return true;
  }
  return false;
}

/* A batch axis: every load depends on it. Not outermost if its steps share cache lines and panels
 * fit into half of L2. */
static bool is_batch_axis(const struct chooser *c, int axis) {
  double panels, rows;
  if (axis == c->best.vector_axis || c->f->reduction == 1 || !default_all_depend_on(c->f, axis) ||
      c->best.rows[axis] > 1)
    return false;
  if (c->best.vector_axis < 0 || !shares_lines(c, axis)) return true;
  operand_bytes(c, &panels, &rows);
  return panels > (double)c->machine->l2 / 2;
}

/* What decides the order of own axes. */
struct own_axes {
  int block;          /* the axis of the outermost cache block; -1 */
  int last;           /* the axis that stays innermost; -1 */
  uint32_t buffered;  /* axes shared with a buffered producer */
  uint32_t bounds;    /* axes that bound a reduction */
  bool bounds_inside; /* their loops are inside of those over rows */
  enum chooser_windows windows;
};

/* Rounds in which own axes take their places, the outermost first. */
enum round {
  ROUND_BUFFERED,
  ROUND_BUFFERED_BLOCK,
  ROUND_BOUNDS,
  ROUND_BATCH,
  ROUND_AROUND_BLOCKS,
  ROUND_BLOCK,
  ROUND_BANDS,
  ROUND_STRIPS,
  ROUND_ROWS,
  ROUND_VECTORS,
  ROUND_LAST,
  ROUNDS
};

static bool is_in_round(struct chooser *c, const struct own_axes *own, int axis, enum round round) {
  int v = c->best.vector_axis;
  switch (round) {
    case ROUND_BUFFERED: return own->buffered >> axis & 1 && axis != v && axis != own->block;
    case ROUND_BUFFERED_BLOCK: return own->buffered && axis == own->block;
    case ROUND_BOUNDS: return own->bounds >> axis & 1 && !own->bounds_inside;
    case ROUND_BATCH: return is_batch_axis(c, axis);
    case ROUND_AROUND_BLOCKS:
      return is_around_blocks(c, axis, own->block) || is_around_windows(c, axis, own->windows);
    case ROUND_BLOCK:
      return axis == own->block || (c->best.bands && axis != v && axis < own->block);
    case ROUND_BANDS: return c->best.bands && axis == v;
    case ROUND_STRIPS: return is_strip(c, axis, own->windows);
    case ROUND_ROWS: return axis != v && axis != own->last && !(own->bounds >> axis & 1);
    case ROUND_VECTORS: return axis != own->last;
    default: return true;
  }
}

/* Each step of an axis that bounds a reduction has a panel of its own, as rows of blocks. Outermost, each panel is
 * loaded once, and all rows for each of them; inside of the rows, all panels are loaded for each tile of rows, which
 * pays if L2 holds them, but not the rows. */
static bool are_bounds_inside(const struct chooser *c) {
  double panels, rows, half = (double)c->machine->l2 / 2;
  if (c->best.vector_axis < 0 || c->options.constraint) return false;
  operand_bytes(c, &panels, &rows);
  return panels <= half && rows > half;
}

/* Each own axis takes its place in the first round that wants it. */
static void order_own(struct chooser *c) {
  struct own_axes own = {.block = outermost_block_axis(c)};
  own.windows = windows_of(c);
  own.bounds = c->f->bounds_reduction;
  own.bounds_inside = own.bounds && are_bounds_inside(c);
  own.buffered = own.block >= 0 ? buffered_axes(c) : 0;
  int written = c->f->t->rank ? c->f->order[c->f->t->rank - 1] : -1;
  own.last = c->best.rolled && !(c->best.rolled >> written & 1) ? written : gather_axis(c);
  int *order = c->best.order, count = 0;
  uint32_t done = 0;
  for (int round = 0; round < ROUNDS; round++)
    for (int i = 0; i < c->f->t->rank; i++) {
      if (done >> i & 1 || !is_in_round(c, &own, i, (enum round)round)) continue;
      done |= 1u << i;
      order[count++] = i;
    }
}

/* Elements of a cache line that a copy reads or writes at once: counted as f32 in all types. */
static int64_t line_elements(const struct chooser *c) {
  return c->machine->line / program_dtype_bytes(PROGRAM_F32);
}

/* Cycles that are lost by reading the load as it is, and not from panels: each step of the
 * innermost reduction finds a line on another page, for every tile of rows. */
static double page_crossing_cycles(const struct chooser *c, const struct default_load *l) {
  int v = c->best.vector_axis, inner = -1;
  for (int i = c->f->t->rank; i < c->f->t->rank + c->f->t->reductions; i++)
    if (inner < 0 || (l->stride[i] && l->stride[i] < l->stride[inner])) inner = i;
  if (inner < 0 || l->stride[inner] * chooser_bytes(c, l) < machine_prefetch_stride(c->machine))
    return 0;
  struct chooser best = chooser_of_best(c);
  double tiles = 1 / chooser_l1_reuse(&best, l);
  double lines = (double)program_elements(c->f->p, l->tensor) / (double)line_elements(c);
  for (int i = 0; i < c->f->t->rank; i++)
    if (i != v && !(l->depends_on >> i & 1))
      tiles *= (double)up(c->f->t->axes[i].size, c->best.rows[i]);
  return tiles * lines * DEFAULT_PAGE_CROSSING;
}

static void pack_panels(struct chooser *c) {
  int v = c->best.vector_axis;
  if (v < 0 || !c->options.pack || c->f->t->axes[v].size <= c->best.steps) return;
  for (int i = 0; i < c->f->loads; i++) {
    const struct default_load *l = &c->f->load[i];
    double elements = (double)program_elements(c->f->p, l->tensor);
    uint32_t guarded = c->f->has_boundary ? l->guarded & 1u << v : l->guarded;
    if (!l->packable || guarded || l->stride[v] != 1 || l->block[v] ||
        elements <= DEFAULT_SMALL_TENSOR)
      continue;
    double cost = chooser_packing(c, l, DEFAULT_PACKING);
    if (DEFAULT_PACKING_SHARE * cost < c->best.cycles || cost < page_crossing_cycles(c, l))
      c->best.packed |= 1u << i;
  }
}

/* The largest stride along a reduction of loads that are not packed: large ones move outside. */
static int64_t largest_stride(const struct chooser *c, int axis) {
  int64_t most = 0;
  for (int i = 0; i < c->f->loads; i++) {
    const struct default_load *l = &c->f->load[i];
    if (l->cold || c->best.packed >> i & 1 || (l->packable && c->options.pack)) continue;
    int64_t stride = l->stride[axis] < 0 ? -l->stride[axis] : l->stride[axis];
    if (stride > most) most = stride;
  }
  return most;
}

static bool is_bounded(const struct chooser *c, int axis) {
  return c->f->t->axes[axis].low >= 0;
}

/* In every load, one axis runs through exactly one step of the other: they are contiguous. */
static bool are_contiguous(const struct chooser *c, int a, int b) {
  bool any = false;
  for (int i = 0; i < c->f->loads; i++) {
    const int64_t *stride = c->f->load[i].stride, x = stride[a], y = stride[b];
    if (!x && !y) continue;
    any = true;
    if (x != y * c->f->t->axes[b].size && y != x * c->f->t->axes[a].size) return false;
  }
  return any;
}

/* The longer reduction finds each step on another page, as channels of images do, which hardware
 * does not prefetch. A window inside of it finds its elements beside those of the step before, and
 * costs little to start. */
static bool crosses_pages(const struct chooser *c, int longer, int shorter) {
  if (c->f->period[shorter]) return false; /* its periods are unrolled */
  int64_t bytes = program_dtype_bytes(c->f->t->dtype);
  int64_t points = c->best.steps / c->lanes, jump = largest_stride(c, longer) * bytes;
  for (int i = 0; i < c->f->t->rank; i++) points *= c->best.rows[i];
  return c->best.vector_axis >= 0 && points >= DEFAULT_WINDOW_TILE &&
         jump >= machine_prefetch_stride(c->machine) && largest_stride(c, shorter) * bytes < jump;
}

/* Reduction a stands outside of b. The sliding one is innermost; a window is outside of a long axis
 * that does not cross pages. */
static bool is_outer_reduction(const struct chooser *c, int a, int b) {
  if (a == c->best.sliding || b == c->best.sliding) return b == c->best.sliding;
  bool short_a = c->f->t->axes[a].size <= DEFAULT_WINDOW_STEPS,
       short_b = c->f->t->axes[b].size <= DEFAULT_WINDOW_STEPS;
  if (short_a != short_b && !are_contiguous(c, a, b) &&
      !crosses_pages(c, short_a ? b : a, short_a ? a : b))
    return short_a;
  return largest_stride(c, a) > largest_stride(c, b);
}

static void order_reductions(struct chooser *c) {
  int rank = c->f->t->rank, count = c->f->t->reductions, *order = c->best.order + rank;
  for (int i = 0; i < count; i++) order[i] = rank + i;
  for (int i = 1; i < count; i++)
    for (int j = i; j > 0 && !is_bounded(c, order[j - 1]) && !is_bounded(c, order[j]) &&
                    is_outer_reduction(c, order[j], order[j - 1]);
         j--) {
      int other = order[j];
      order[j] = order[j - 1];
      order[j - 1] = other;
    }
}

/* Elements of a window along the reduction that the rows of a tile use, by the loads whose stride
 * along an own axis is a multiple of the reduction's; 0: no window. */
static int64_t window_elements(const struct chooser *c, int reduction) {
  int64_t most = 0;
  for (int i = 0; i < c->f->loads; i++)
    for (uint32_t left = c->f->load[i].stride[reduction] ? c->row_axes : 0; left;) {
      int j = chooser_pop_axis(&left);
      int64_t step = c->f->load[i].stride[reduction], rows = c->now.rows[j];
      int64_t shift = c->f->load[i].stride[j] / step;
      if (!shift || c->f->load[i].stride[j] % step) continue;
      int64_t elements = (rows - 1) * llabs(shift) + c->f->t->axes[reduction].size;
      if (elements > most) most = elements;
    }
  return most;
}

/* A long reduction of one vector, where each load serves one multiply-add: the window's elements
 * fit into registers beside the accumulators. */
static bool holds_window(const struct chooser *c, int64_t window) {
  return chooser_vectors(c) == 1 && chooser_rows(c) + window <= c->machine->registers;
}

bool chooser_slides(const struct chooser *c, int reduction) {
  int64_t size = c->f->t->axes[reduction].size, vectors = chooser_vectors(c);
  int64_t tile = chooser_rows(c) * vectors;
  if (size * tile > DEFAULT_UNROLLED_STATEMENTS) return false;
  if (c->f->reduction > DEFAULT_SHORT_REDUCTION && vectors > 1) return false;
  /* one register more where there are few, or if rows share more loads than vectors do */
  int more = chooser_has_few_registers(c) || vectors < chooser_rows(c);
  if (2 * tile + more > c->machine->registers) return false;
  int64_t window = window_elements(c, reduction);
  return window && (c->f->reduction <= DEFAULT_SHORT_REDUCTION || holds_window(c, window));
}

/* Unrolled reductions: all if the body stays small, or the sliding one. */
static uint32_t unrolled_reductions(const struct chooser *c) {
  struct chooser best = chooser_of_best(c);
  uint32_t all = 0;
  for (int i = c->f->t->rank; i < c->f->t->rank + c->f->t->reductions; i++) all |= 1u << i;
  if (chooser_permutes(&best) && chooser_unrolls_all(&best)) return all;
  if (c->best.sliding < 0) return 0;
  if (c->f->guarded) return 1u << c->best.sliding; /* each step would partition its loops */
  for (int i = c->f->t->rank; i < c->f->t->rank + c->f->t->reductions; i++)
    if (is_bounded(c, i)) return 1u << c->best.sliding;
  bool few =
      c->f->reduction * chooser_rows(&best) * chooser_vectors(&best) <= DEFAULT_UNROLLED_STATEMENTS;
  return c->f->reduction <= DEFAULT_UNROLLED_TERMS && few ? all : 1u << c->best.sliding;
}

/* A copy whose output is contiguous along another axis: some adjacent loads become one store. */
static void unroll_copy(struct chooser *c, int last) {
  const struct default_facts *f = c->f;
  if (c->best.vector_axis >= 0 || f->p->nodes.data[f->t->body].op != PX_LOAD ||
      f->load[0].non_affine)
    return;
  int64_t size = f->t->axes[last].size;
  if (c->options.outside >> last & 1) return;
  for (int64_t steps = DEFAULT_COPY_LOADS;
       steps >= DEFAULT_LEAST_COPY_LOADS && c->best.rows[last] == 1; steps /= 2)
    if (size % steps == 0 || size >= DEFAULT_COPY_REPEATS * steps) c->best.rows[last] = steps;
}

/* Elements of a cache line, or the largest divisor of the axis above half of one. */
static int64_t line_rows(const struct chooser *c, int64_t size) {
  int64_t line = line_elements(c), rows = size < line ? size : line;
  while (size % rows && rows > line / 2) rows--;
  return size % rows ? line : rows;
}

/* So many lines, `stride` elements apart (not 0), are more than the ways of their L1 sets. */
static bool evicts(const struct machine *m, int64_t stride, int bytes, int64_t lines) {
  return lines > chooser_sets_of(m, stride * bytes) * machine_l1_ways(m);
}

/* Output lines that are written element by element are evicted before they are complete. */
static bool writes_evict(const struct chooser *c, int axis, int64_t lines) {
  return evicts(c->machine, c->f->out_stride[axis], program_dtype_bytes(c->f->t->dtype), lines);
}

/* Input lines that are read element by element are evicted before they are complete. */
static bool reads_evict(const struct chooser *c, int from, int last) {
  int64_t lines = line_rows(c, c->f->t->axes[last].size);
  for (int i = 0; i < c->f->loads; i++) {
    const struct default_load *l = &c->f->load[i];
    if (l->stride[from] != 1 || !l->stride[last]) continue;
    if (evicts(c->machine, l->stride[last], chooser_bytes(c, l), lines)) return true;
  }
  return false;
}

/* The axis along which a copy is blocked by cache lines: `from`, along which it reads, if the
 * output lines stay in L1, or input lines would not either. Otherwise `last`, along which it
 * writes, unless that has less than half of a line. */
static int copy_block_axis(const struct chooser *c, int from, int last) {
  if (line_rows(c, c->f->t->axes[last].size) < line_elements(c) / 2) return from;
  if (!writes_evict(c, from, line_rows(c, c->f->t->axes[from].size))) return from;
  return reads_evict(c, from, last) ? from : last;
}

/* The axis along which a stage reads lines, if it is another one than it writes along: element by
 * element, or in vectors of many lanes whose lines are evicted. Other vectors stay: conditions
 * on values are no branches in them. -1: none. */
static int copy_read_axis(const struct chooser *c, int last) {
  int v = c->best.vector_axis, from = gather_axis(c);
  if (from >= 0 || v < 0 || c->f->out_stride[v] == 1 || c->f->t->axes[v].size < DEFAULT_COPY_LANES)
    return from;
  return writes_evict(c, v, line_rows(c, c->f->t->axes[v].size)) ? contiguous_read_axis(c, last)
                                                                 : -1;
}

/* An element-wise stage that reads along one axis and writes along another, element by element: a
 * cache line at once, so that few pages are in use. */
static void block_copy(struct chooser *c) {
  const struct default_facts *f = c->f;
  if (f->t->reductions || f->t->rank == 0 || f->truncated ||
      f->operations >= DEFAULT_HEAVY_OPERATIONS)
    return;
  int last = f->order[f->t->rank - 1], from = copy_read_axis(c, last);
  bool copy = f->p->nodes.data[f->t->body].op == PX_LOAD && !f->load[0].non_affine;
  if (copy || from < 0 || from == last || f->out_stride[last] != 1 ||
      c->options.outside >> from & 1) {
    unroll_copy(c, last);
    return;
  }
  int block = copy_block_axis(c, from, last);
  if (c->options.outside >> block & 1) block = from;
  c->best.vector_axis = -1;
  c->best.steps = 1;
  c->best.masked = c->best.peeled = false;
  for (int i = 0; i < f->t->rank; i++) c->best.rows[i] = 1;
  c->best.rows[block] = line_rows(c, f->t->axes[block].size);
  c->best.rolled = 1u << block;
}

/* It is a panel of the vector axis, or is packed into one. */
static bool is_panel(const struct chooser *c, int load) {
  const struct default_load *l = &c->f->load[load];
  int v = c->best.vector_axis;
  bool along = l->depends_on >> v & 1 && (l->stride[v] == 1 || c->best.packed >> load & 1);
  return along && !l->guarded && !l->non_affine;
}

/* Panels are in memory, and each is read once. */
static bool is_read_from_memory(const struct chooser *c) {
  const struct default_tile *best = &c->best;
  double bytes = 0;
  if (best->vector_axis < 0 || best->symbolic || best->masked || c->f->reduction == 1) return false;
  for (int i = 0; i < c->f->t->rank; i++)
    if (i != best->vector_axis && c->f->t->axes[i].size > 1) return false;
  for (int i = 0; i < c->f->loads; i++)
    if (is_panel(c, i)) bytes += load_bytes(c, &c->f->load[i]);
  return default_is_beyond_l3(c->machine, bytes);
}

static bool has_registers(const struct chooser *c, int64_t vectors) {
  return vectors * DEFAULT_STREAMED_PANELS + vectors + 1 <= c->machine->registers;
}

/* Panels of so many vectors can be streamed side by side. An axis shorter than a vector is one
 * panel. */
static bool can_stream(const struct chooser *c, int64_t vectors) {
  int64_t tiles = c->f->t->axes[c->best.vector_axis].size / (vectors * c->lanes);
  return tiles > 0 && tiles % DEFAULT_STREAMED_PANELS == 0 && has_registers(c, vectors);
}

/* Weights that can become panels of as many lanes as the tile has. */
static bool is_packed_weight(const struct chooser *c, int load) {
  const struct default_load *l = &c->f->load[load];
  bool constant = c->f->p->tensors.data[l->tensor].constant;
  return c->best.packed >> load & 1 || (constant && c->options.pack && l->packable);
}

/* Where registers do not suffice for two panels side by side, weights are packed into panels of
 * half the lanes: two of these load faster than one. */
static void halve_panels(struct chooser *c) {
  int64_t vectors = up(c->best.steps, c->lanes), half = vectors / 2;
  if (has_registers(c, vectors) || c->best.steps != 2 * half * c->lanes) return;
  for (int i = 0; i < c->f->loads; i++) {
    bool packed =
        is_panel(c, i) && is_packed_weight(c, i) && !c->f->load[i].block[c->best.vector_axis];
    if (packed && can_stream(c, half)) c->best.steps = half * c->lanes;
  }
}

/* Panels that are packed already are read with all their lanes. */
static void use_whole_panels(struct chooser *c) {
  for (int i = 0; i < c->f->loads; i++) {
    int64_t block = c->f->load[i].block[c->best.vector_axis], vectors = block / c->lanes;
    bool whole = is_panel(c, i) && vectors && block == vectors * c->lanes;
    if (whole && can_stream(c, vectors)) c->best.steps = block;
  }
}

static void fit_panels(struct chooser *c) {
  if (!chooser_has_few_registers(c) || !is_read_from_memory(c)) return;
  halve_panels(c);
  use_whole_panels(c);
}

static void stream_panels(struct chooser *c) {
  if (!is_read_from_memory(c) || c->best.block_axis >= 0) return;
  if (!can_stream(c, up(c->best.steps, c->lanes))) return;
  c->best.cache_block = DEFAULT_STREAMED_PANELS;
  c->best.block_axis = c->best.vector_axis;
  c->best.streams = true;
}

static bool reuses_vectors(const struct chooser *c) {
  struct chooser best = chooser_of_best(c);
  return chooser_reuses_vectors(&best);
}

void chooser_order(struct chooser *c) {
  c->best.cache_block = 1;
  c->best.block_axis = -1;
  c->best.bands = c->best.streams = false;
  c->best.symbolic = c->options.constraint && c->options.constraint->tile;
  block_copy(c);
  fit_panels(c);
  pack_panels(c);
  order_own(c);
  order_copy(c);
  order_reductions(c);
  stream_panels(c);
  c->best.unrolled = unrolled_reductions(c);
  c->best.reuses_vectors = reuses_vectors(c);
}
