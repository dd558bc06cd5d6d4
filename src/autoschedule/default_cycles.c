/* The formula: predicted cycles of a stage with a given tile. Candidates that cannot win are given
 * up early.
 *
 * One step of the reduction takes
 *
 *     max(arithmetic, load ports, latency, bytes from L2)  +  a part of partial lines  +  gathers
 *
 * and the stage takes tiles * (steps * step + stores) + packing + waits for panels that exceed L2.
 * Each load of a step is a broadcast, contiguous, permuted or gathered (chooser_access). Its
 * numbers are in cost/policy.h, "the formula (default_cycles.c)".
 */
#include "autoschedule/default_chooser.h"
#include "program/program_cost.h"

double chooser_packing(const struct chooser *c, const struct default_load *l, double each) {
  bool constant = c->f->p->tensors.data[l->tensor].constant;
  return constant ? 0 : each * c->k_block_share * (double)program_elements(c->f->p, l->tensor);
}

/* Whole tiles along an axis, and the cost of the remainder tile as a share of a whole one. */
static struct chooser_row_tiles row_tiles_of(const struct chooser *c, int axis) {
  int64_t size = c->f->t->axes[axis].size, rows = c->now.rows[axis];
  struct chooser_row_tiles many = {0}, *out = &many;
  if (rows <= DEFAULT_ROWS_REMEMBERED) out = &c->row_tiles[axis][rows];
  if (out->full > 0) return *out;
  int64_t left = size % rows, whole = size / rows;
  out->full = (double)whole;
  out->remainder =
      left ? DEFAULT_REMAINDER + (1 - DEFAULT_REMAINDER) * (double)left / (double)rows : 0;
  return *out;
}

/* A remainder tile has fewer accumulators: in a long reduction it takes at least its latency. */
static double remainder_cost(const struct chooser *c, double share) {
  double work = (double)(chooser_rows(c) * chooser_vectors(c) * c->f->operations) / DEFAULT_PORTS;
  if (c->f->reduction <= DEFAULT_SHORT_REDUCTION || work >= 2 * DEFAULT_ADD_LATENCY)
    return share; /* at least half */
  double least = work > DEFAULT_ADD_LATENCY ? DEFAULT_ADD_LATENCY / work : 1;
  return share > least ? share : least;
}

static double tile_count(const struct chooser *c) {
  double tiles = c->one_row_tiles;
  for (uint32_t axes = c->row_axes; axes;) {
    int i = chooser_pop_axis(&axes);
    struct chooser_row_tiles along = row_tiles_of(c, i);
    double rest = along.remainder > 0 ? remainder_cost(c, along.remainder) : 0;
    double count = along.full + rest;
    tiles = tiles / (double)c->f->t->axes[i].size * count;
  }
  return tiles;
}

/* Rows of the tile that need different elements of the load. */
static double distinct_rows(const struct chooser *c, const struct default_load *l) {
  double rows = 1;
  for (uint32_t left = c->row_axes & l->depends_on; left;) {
    int i = chooser_pop_axis(&left);
    bool same = l->block[i] && !l->stride[i] && l->block[i] % c->now.rows[i] == 0;
    if (!same) rows *= (double)c->now.rows[i];
  }
  return rows;
}

static bool fits_block(const struct chooser *c, const struct default_load *l, int axis) {
  return !l->block[axis] || l->block[axis] % c->now.steps == 0;
}

/* Share of a tile's loads that the row before has not loaded, where the window along now.sliding is
 * unrolled. */
static double new_load_share(const struct chooser *c, const struct default_load *l) {
  if (c->now.sliding < 0 || !l->stride[c->now.sliding]) return 1;
  for (uint32_t left = c->row_axes; left;) {
    int i = chooser_pop_axis(&left);
    int64_t step = l->stride[i] / l->stride[c->now.sliding];
    if (step < 1) continue;
    if (l->stride[i] % l->stride[c->now.sliding]) continue;
    double window = (double)c->f->t->axes[c->now.sliding].size, rows = (double)c->now.rows[i];
    double once = ((rows - 1) * (double)step + window) / window;
    return once < rows ? once / rows : 1;
  }
  return 1;
}

/* Addresses of rows that are on the stack and loaded again: rows that may cross a block of the load
 * have an address each. */
static double spilled_addresses(const struct chooser *c, const struct default_load *l,
                                double rows) {
  bool crosses = false;
  if (rows <= DEFAULT_ADDRESS_REGISTERS) return 0;
  for (uint32_t left = c->row_axes; left;) {
    int i = chooser_pop_axis(&left);
    crosses = crosses || (l->block[i] && l->stride[i] && l->block[i] % c->now.rows[i]);
  }
  return crosses ? rows - DEFAULT_ADDRESS_REGISTERS : 0;
}

/* Steps of a reduction of which only the last one is guarded along the vector axis, as in partial
 * sums whose number does not divide the reduction; 0: another guard. */
static int64_t guarded_end_steps(const struct chooser *c, const struct default_load *l) {
  int v = c->now.vector_axis;
  const struct program_axis *axes = c->f->t->axes;
  if (v < 0 || c->f->non_monotone >> v & 1 || l->stride[v] != 1) return 0;
  for (int r = c->f->t->rank; r < c->f->t->rank + c->f->t->reductions; r++)
    if (l->guarded == (1u << v | 1u << r) && l->stride[r] == axes[v].size) return axes[r].size;
  return 0;
}

/* The vector loop of an element-wise stage is partitioned where the guard along the vector axis
 * changes. */
static bool is_split(const struct chooser *c, const struct default_load *l) {
  int v = c->now.vector_axis;
  return c->options.split && l->guarded >> v & 1 && c->f->reduction == 1 &&
         !(c->f->non_monotone >> v & 1);
}

/* Elements of vectors that straddle a partition, per vector of the axis; a loop has two such
 * places. */
static double straddling_elements(const struct chooser *c, const struct default_load *l) {
  if (c->now.vector_axis < 0 || !is_split(c, l)) return 0;
  int64_t vectors = up(c->f->t->axes[c->now.vector_axis].size, c->now.steps);
  return (double)c->now.steps * (vectors > 2 ? 2 / (double)vectors : 1);
}

bool chooser_unrolls_all(const struct chooser *c) {
  for (int i = c->f->t->rank; i < c->f->t->rank + c->f->t->reductions; i++)
    if (c->f->t->axes[i].low >= 0 || c->f->period[i]) return false;
  return !c->f->guarded &&
         c->f->reduction * chooser_rows(c) * chooser_vectors(c) <= DEFAULT_UNROLLED_STATEMENTS;
}

/* The lanes load few different blocks of equal elements, or elements close to each other: the
 * vector is permuted from loaded ones (code_permute.c). */
static bool is_permuted(const struct chooser *c, const struct default_load *l, bool unrolled) {
  int v = c->now.vector_axis;
  int64_t lanes = chooser_lanes(c), block = l->block[v] ? l->block[v] : 1;
  int64_t jump = l->block[v] ? l->jump[v] : l->stride[v];
  if (jump < 0) jump = -jump;
  bool whole = c->now.steps % block == 0 || c->now.steps >= c->f->t->axes[v].size;
  if (!jump || !whole || c->now.masked || (l->non_affine | l->guarded) >> v & 1 ||
      lanes & (lanes - 1))
    return false;
  int64_t blocks = up(lanes, block) + (lanes % block != 0), span = (blocks - 1) * jump;
  if (blocks <= 2 || (span >= lanes - 1 && span < 2 * lanes)) return true;
  return unrolled && (blocks <= DEFAULT_PERMUTED_BLOCKS || span < 2 * lanes);
}

static enum chooser_access access_of(const struct chooser *c, const struct default_load *l,
                                     bool unrolled) {
  int v = c->now.vector_axis;
  if (v < 0 || !((l->depends_on | l->guarded) >> v & 1)) return ACCESS_BROADCAST;
  bool same = !l->stride[v] && fits_block(c, l, v); /* all lanes are in one block */
  if (l->stride[v] != 1 && !same && is_permuted(c, l, unrolled)) return ACCESS_PERMUTED;
  if (l->non_affine >> v & 1 || !fits_block(c, l, v)) return ACCESS_GATHER;
  if (l->guarded >> v & 1 && !guarded_end_steps(c, l) && !is_split(c, l)) return ACCESS_GATHER;
  return l->stride[v] == 0   ? ACCESS_BROADCAST
         : l->stride[v] == 1 ? ACCESS_CONTIGUOUS
                             : ACCESS_GATHER;
}

/* How the tile loads one operand; several terms of the formula need it. */
struct access {
  enum chooser_access kind;
  double rows; /* rows of the tile that need different elements */
};

static void find_accesses(const struct chooser *c, struct access *at) {
  bool unrolled = c->unrolling_permutes && chooser_unrolls_all(c);
  for (int i = 0; i < c->f->loads; i++) {
    const struct chooser_lane *lane = &c->lane[i];
    at[i].kind = unrolled ? lane->access_unrolled : lane->access;
    at[i].rows = distinct_rows(c, &c->f->load[i]);
  }
}

bool chooser_permutes(const struct chooser *c) {
  bool unrolled = chooser_unrolls_all(c);
  for (int i = 0; i < c->f->loads && c->now.vector_axis >= 0; i++)
    if (access_of(c, &c->f->load[i], unrolled) == ACCESS_PERMUTED) return true;
  return false;
}

/* The rows of a tile need more lines of one L1 set at once than it has ways, with the lines of an
 * unrolled window. An unrolled window leaves one way to other loads. */
static bool exceeds_ways(const struct chooser *c, const struct default_load *l) {
  int64_t lines = 1;
  bool unrolled = false;
  const struct chooser_load *load = chooser_load_of(c, l);
  for (uint32_t left = c->row_axes; left;) {
    int i = chooser_pop_axis(&left), window = load->window[i];
    int64_t rows = c->now.rows[i];
    if (l->stride[i] <= 0) continue;
    bool window_unrolled = c->now.sliding >= 0 && window >= 0;
    if (window_unrolled) rows += (c->f->t->axes[window].size - 1) / load->window_step[i];
    if (load->byte_step[i] % machine_l1_way(c->machine) == 0) lines *= rows;
    unrolled = unrolled || window_unrolled;
  }
  int64_t ways = machine_l1_ways(c->machine);
  return unrolled ? lines >= ways : lines > ways;
}

/* The rows of an indirect load need more lines at once than their sets of L1 have ways: each step reads another
 * element, so that none is read again soon. */
static bool indirect_exceeds_sets(const struct chooser *c, const struct default_load *l) {
  int64_t lines = 1, sets = 1;
  for (uint32_t left = c->row_axes & chooser_load_of(c, l)->strided; left;) {
    int i = chooser_pop_axis(&left);
    int64_t along = chooser_sets_of(c->machine, chooser_load_of(c, l)->byte_step[i]);
    lines *= c->now.rows[i];
    if (along > sets) sets = along;
  }
  return l->indirect && lines > sets * machine_l1_ways(c->machine);
}

/* Cost factor of rows in cache lines of their own; highest where these lines share one set of
 * L1. */
static double line_factor(const struct chooser *c, const struct default_load *l) {
  double factor = 1;
  int64_t way = machine_l1_way(c->machine);
  const struct chooser_load *load = chooser_load_of(c, l);
  for (uint32_t left = c->row_axes & load->strided; left;) {
    int64_t bytes = load->byte_step[chooser_pop_axis(&left)];
    bool one_set = (bytes % way == 0 && exceeds_ways(c, l)) || indirect_exceeds_sets(c, l);
    double more = one_set        ? DEFAULT_ROWS_IN_ONE_SET
                  : bytes >= way ? DEFAULT_ROWS_WAYS_APART
                                 : DEFAULT_ROWS_LINES_APART;
    factor = factor > more ? factor : more;
  }
  return factor;
}

/* Cycles per step for lines of a reduction that strides by pages, whether they are packed or
 * not. */
static double page_cycles(const struct chooser *c, const struct default_load *l) {
  double lines = 1;
  const struct chooser_load *load = chooser_load_of(c, l);
  if (!load->crosses_pages) return 0;
  for (uint32_t left = c->row_axes & load->strided; left;)
    lines *= (double)c->now.rows[chooser_pop_axis(&left)];
  return DEFAULT_PAGE_LINE * lines;
}

double chooser_line_bytes(const struct chooser *c, const struct default_load *l) {
  const struct chooser_load *load = chooser_load_of(c, l);
  double lines = load->line_runs;
  int64_t span = load->span;
  uint32_t vector = c->now.vector_axis < 0 ? 0 : 1u << c->now.vector_axis;
  for (uint32_t left = c->row_axes | vector; left;) {
    int i = chooser_pop_axis(&left);
    int64_t steps = i == c->now.vector_axis ? c->now.steps : c->now.rows[i],
            step = load->byte_step[i];
    if (step >= c->machine->line)
      lines *= (double)steps;
    else if (step)
      span += (steps - 1) * step;
  }
  int64_t run = span / c->machine->line + 1;
  return lines * (double)(run * c->machine->line);
}

/* Measured with few registers only, for loads that stay_in_l1; see chooser_load. */
double chooser_l1_reuse(const struct chooser *c, const struct default_load *l) {
  const struct chooser_load *load = chooser_load_of(c, l);
  double uses = 1;
  if (!load->stays_in_l1 || chooser_line_bytes(c, l) > (double)c->machine->l1 / 2) return 1;
  for (uint32_t left = load->invariant; left;) {
    int i = chooser_pop_axis(&left);
    uses *=
        (double)up(c->f->t->axes[i].size, i == c->now.vector_axis ? c->now.steps : c->now.rows[i]);
  }
  return uses;
}

/* Periods of rows: each period loads other elements of what is invariant along the axis. */
static double periods_of(const struct chooser *c, const struct default_load *l) {
  double phases = 1;
  if (!c->f->periodic) return 1;
  for (int i = 0; i < c->f->t->rank; i++)
    if (c->f->period[i] && c->now.rows[i] > 1 && !(l->depends_on >> i & 1))
      phases *= (double)c->f->period[i];
  return phases;
}

/* By an index condition on the vector axis. */
static bool is_guarded(const struct chooser *c, const struct default_load *l) {
  return c->now.vector_axis >= 0 ? l->guarded >> c->now.vector_axis & 1 : l->guarded != 0;
}

/* Cycles that a step waits for page-crossing lines. Of tiles that share them in L1, only the first
 * one waits; but with a window each one does, as measured (3x3 64->32 at 56x56). */
static double page_wait(const struct chooser *c, const struct default_load *l) {
  double wait = page_cycles(c, l);
  return wait > 0 && c->f->t->reductions == 1 ? wait / chooser_l1_reuse(c, l) : wait;
}

/* Addresses that a step computes for a non-affine load: one per row. Rows of an indirect load whose addresses differ by
 * a constant share one, as pixels of `X[h, w+ind[k], c]` do. */
static double address_count(const struct chooser *c, const struct default_load *l, double rows) {
  if (!l->indirect || l->guarded & c->f->non_monotone) return rows;
  double count = periods_of(c, l);
  for (uint32_t left = c->row_axes & l->non_affine; left;)
    count *= (double)c->now.rows[chooser_pop_axis(&left)];
  return count;
}

/* Adds one load's port slots and gather cycles of a step. */
static void add_access(struct chooser *c, const struct access *at, int load, double *ports,
                       double *gathered) {
  const struct default_load *l = &c->f->load[load];
  const struct chooser_lane *lane = &c->lane[load];
  if (l->cold) return;
  double rows = at[load].rows * periods_of(c, l);
  bool waits = lane->waits_for_pages;
  *gathered += rows * lane->split_cycles;
  enum chooser_access kind = at[load].kind;
  switch (kind == ACCESS_PERMUTED && lane->packable ? ACCESS_GATHER : kind) {
    case ACCESS_BROADCAST:
      *ports += rows * line_factor(c, l) * new_load_share(c, l) + spilled_addresses(c, l, rows);
      break;
    case ACCESS_CONTIGUOUS:
      *ports += DEFAULT_VECTOR_LOAD * rows * line_factor(c, l) * new_load_share(c, l) *
                (double)chooser_vectors(c);
      break;
    case ACCESS_PERMUTED: {
      double vectors = rows * new_load_share(c, l) * (double)chooser_vectors(c);
      *ports += 2 * vectors;
      *gathered += DEFAULT_PERMUTE * vectors;
      break;
    }
    case ACCESS_GATHER:
      if (lane->packable) {
        c->now.packed |= 1u << load;
        waits = false;
        *ports += DEFAULT_VECTOR_LOAD * rows * (double)chooser_vectors(c);
      } else {
        *gathered += rows * lane->gather_cycles;
      }
  }
  if (lane->non_affine) *gathered += address_count(c, l, rows);
  if (waits) *gathered += page_wait(c, l);
}

/* Packing gathers each element once. */
static double packing_cycles(const struct chooser *c) {
  double cycles = 0;
  for (int i = 0; i < c->f->loads; i++)
    if (c->now.packed >> i & 1)
      cycles += chooser_packing(c, &c->f->load[i], DEFAULT_GATHER_PACKING);
  return cycles;
}

/* The axis of the tile's rows that is contiguous in the output; -1: none. */
static int contiguous_row_axis(const struct chooser *c) {
  int axis = c->f->t->rank - 1;
  while (axis >= 0 &&
         (axis == c->now.vector_axis || c->now.rows[axis] == 1 || c->f->out_stride[axis] != 1))
    axis--;
  return axis;
}

/* Cycles to store one element whose lanes are not contiguous in the output. Enough rows are
 * transposed in registers, unless the fused consumer has non-affine loads along them. Without
 * masks, a part of a vector is stored by halves (emit_c.c). */
static double scatter_cycles(const struct chooser *c) {
  int axis = contiguous_row_axis(c);
  if (axis < 0) return 2;
  int64_t rows = c->now.rows[axis], part = rows % c->lanes;
  bool wide = c->lanes >= DEFAULT_TRANSPOSED_LANES && c->f->t->dtype == PROGRAM_F32;
  bool transposed =
      wide && default_may_transpose(rows, c->lanes) && !(c->options.non_affine >> axis & 1);
  if (!transposed) return DEFAULT_SCATTER;
  bool halves = part && chooser_has_few_registers(c);
  double cycles = DEFAULT_TRANSPOSE +
                  (halves ? DEFAULT_HALF_STORE * (__builtin_popcountll((uint64_t)part) - 1) : 0);
  return DEFAULT_TRANSPOSED_LANE + cycles / (double)rows;
}

static double store_cycles(const struct chooser *c) {
  double points = (double)(chooser_rows(c) * chooser_vectors(c));
  if (c->now.vector_axis < 0) return c->f->reduction > 1 ? (double)chooser_rows(c) : 0;
  if (c->options.free_layout || c->f->out_stride[c->now.vector_axis] == 1) return points;
  return points * (double)chooser_lanes(c) * scatter_cycles(c);
}

/* Cycles of one point of a stage without a reduction and a vector axis. Compilers vectorize some of
 * it, and other stages in a shared loop hide some. */
static double scalar_point_cycles(const struct chooser *c) {
  double loads = 0, call = c->options.outside ? 1 : DEFAULT_SCALAR_CALL;
  for (int i = 0; i < c->f->loads; i++)
    loads += c->options.split && c->f->load[i].guarded           ? 1
             : c->f->load[i].guarded || c->f->load[i].non_affine ? DEFAULT_SCALAR_NON_AFFINE
                                                                 : DEFAULT_SCALAR_LOAD;
  double each = c->f->operations >= DEFAULT_HEAVY_OPERATIONS ? call : DEFAULT_SCALAR_OPERATION;
  return each * c->f->operations + loads;
}

/* Bytes of a panel: what one tile loads along the vector axis over the whole reduction. */
static double panel_bytes(const struct chooser *c, const struct default_load *l) {
  const struct chooser_load *load = chooser_load_of(c, l);
  return (double)(chooser_vectors(c) * chooser_lanes(c)) * load->bytes * load->reduction_elements;
}

/* Tiles of other rows load the same elements. */
static bool is_used_again(const struct chooser *c, const struct default_load *l) {
  for (uint32_t left = chooser_load_of(c, l)->invariant; left;) {
    int i = chooser_pop_axis(&left);
    if (i != c->now.vector_axis && c->f->t->axes[i].size > c->now.rows[i]) return true;
  }
  return false;
}

/* Bytes per cycle of a load from beyond L2. */
static double rate_beyond_l2(const struct chooser *c, const struct default_load *l) {
  return chooser_load_of(c, l)->beyond_l3 ? DEFAULT_MEMORY_RATE : DEFAULT_L3_RATE;
}

/* Bytes of all panels of a tile. */
static double all_panel_bytes(const struct chooser *c, const struct access *at) {
  double bytes = 0;
  for (int i = 0; i < c->f->loads; i++)
    if (at[i].kind != ACCESS_BROADCAST) bytes += at[i].rows * panel_bytes(c, &c->f->load[i]);
  return bytes;
}

/* Bytes per step of partly used cache lines, where they and `beside` bytes exceed L1. */
static double partial_line_bytes(const struct chooser *c, const struct access *at, double beside) {
  double bytes = 0;
  for (int i = 0; i < c->f->loads; i++) {
    const struct default_load *l = &c->f->load[i];
    double lines = l->non_affine || at[i].kind != ACCESS_BROADCAST ? 0 : chooser_line_bytes(c, l);
    if (lines > 0 && lines + beside > (double)c->machine->l1) bytes += lines;
  }
  return bytes / c->average_terms;
}

/* Cycles per step to load panels from L2 or beyond: those that exceed L1 are loaded again for each
 * tile of rows. */
static double panel_stream_cycles(const struct chooser *c, const struct access *at) {
  double bytes = 0;
  for (int i = 0; i < c->f->loads; i++) {
    const struct default_load *l = &c->f->load[i];
    double rows = at[i].rows; /* blocks of the vector axis are rows of a panel */
    if (at[i].kind == ACCESS_BROADCAST || !is_used_again(c, l)) continue;
    double vectors = rows * (double)(chooser_vectors(c) * chooser_lanes(c));
    double step = vectors * chooser_bytes(c, l);
    double rate = DEFAULT_L2_RATE;
    if (rows * panel_bytes(c, l) > (double)c->machine->l2) rate = rate_beyond_l2(c, l);
    if (rows * panel_bytes(c, l) > (double)c->machine->l1) bytes += step * DEFAULT_L2_RATE / rate;
  }
  return bytes / DEFAULT_L2_RATE;
}

/* Cycles per step to load partial lines and panels. With few registers tiles are short, so that
 * panels evict the lines from L1. */
static double stream_cycles(const struct chooser *c, const struct access *at, double partial) {
  bool few = chooser_has_few_registers(c);
  double lines = few ? partial_line_bytes(c, at, all_panel_bytes(c, at)) : partial;
  return panel_stream_cycles(c, at) +
         lines / (few ? DEFAULT_L2_LINE_RATE_FEW : DEFAULT_L2_LINE_RATE);
}

/* Bytes per cycle of a panel from beyond L2; slower where each page holds only a few lines of
 * it. */
static double panel_rate(const struct chooser *c, int load) {
  const struct default_load *l = &c->f->load[load];
  double rate = rate_beyond_l2(c, l);
  int64_t beside = 1;
  if (c->now.packed >> load & 1 || page_cycles(c, l) == 0) return rate;
  for (int i = 0; i < c->f->t->rank; i++)
    if (l->stride[i] == 1) beside = i == c->now.vector_axis ? c->now.steps : c->now.rows[i];
  int64_t lines = beside * chooser_bytes(c, l) / c->machine->line;
  if (lines >= DEFAULT_PAGE_LINES) return rate;
  return lines < 2 ? rate * DEFAULT_ONE_PAGE_LINE : rate * DEFAULT_FEW_PAGE_LINES;
}

/* Tiles with a panel of their own: blocks of the vector axis, or of rows if there is none. */
static double panel_count(const struct chooser *c, const struct default_load *l) {
  double count = 1;
  if (c->now.vector_axis >= 0)
    return (double)up(c->f->t->axes[c->now.vector_axis].size, c->now.steps);
  for (int i = 0; i < c->f->t->rank; i++)
    if (l->depends_on >> i & 1) count *= (double)up(c->f->t->axes[i].size, c->now.rows[i]);
  return count;
}

/* Cycles that the first tile of each block waits for its panel, where all panels exceed L2. */
static double panel_wait(const struct chooser *c, const struct access *at, double tile) {
  double cycles = 0, hidden = c->now.vector_axis < 0 ? DEFAULT_PANEL_HIDDEN * tile : tile;
  if (c->f->reduction == 1) return 0;
  /* in strips or blocks every tile waits: chooser_window_fetch */
  bool in_rows = chooser_windows(c) == WINDOWS_IN_ROWS;
  for (int i = 0; i < c->f->loads; i++) {
    const struct default_load *l = &c->f->load[i];
    if (!in_rows || (c->now.vector_axis >= 0 && at[i].kind == ACCESS_BROADCAST)) continue;
    if (chooser_load_of(c, l)->tensor_bytes <= (double)c->machine->l2) continue;
    double bytes = at[i].rows * panel_bytes(c, l);
    if (bytes > (double)c->machine->l2) continue; /* every tile waits: panel_stream_cycles */
    double wait = bytes / panel_rate(c, i) - hidden;
    if (wait > 0) cycles += panel_count(c, l) * wait;
  }
  return cycles;
}

/* Windows that do not overlap, contiguous along the vector axis: each element is loaded once, best
 * in order of memory. */
static bool reads_in_order(const struct chooser *c) {
  return c->disjoint_windows && c->lane[0].access == ACCESS_CONTIGUOUS;
}

/* Cycles lost by a tile of more rows than memory order allows. */
static double disorder_cycles(const struct chooser *c) {
  double rows = (double)chooser_rows(c);
  if (!reads_in_order(c) || rows <= DEFAULT_ROWS_IN_ORDER) return 0;
  return (double)c->f->reduction * (double)chooser_vectors(c) * (rows - DEFAULT_ROWS_IN_ORDER);
}

/* Cycles of a step's arithmetic. */
static double arithmetic(const struct chooser *c) {
  return (double)(chooser_rows(c) * chooser_vectors(c)) * c->f->operations / DEFAULT_PORTS;
}

/* Cycles of a step, at least the latency of its accumulators. */
static double with_latency(const struct chooser *c, double step) {
  return step < c->latency ? c->latency : step;
}

/* Cycles of a step's arithmetic and load ports. */
static double with_ports(const struct chooser *c, double work, double ports) {
  bool few = c->f->reduction > DEFAULT_SHORT_REDUCTION && chooser_has_few_registers(c);
  double loading = few ? DEFAULT_FEW_REGISTERS_LOAD * ports / DEFAULT_PORTS : ports / DEFAULT_PORTS;
  return with_latency(c, loading > work ? loading + work * DEFAULT_WORK_BESIDE_LOADS
                                        : work + ports * DEFAULT_LOADS_BESIDE_WORK);
}

/* A lower bound of load_cycles with gathers, before lines and packing are analysed. */
static double least_step_cycles(const struct chooser *c, const struct access *at, double work) {
  double ports = 0, gathered = 0;
  for (int i = 0; i < c->f->loads; i++) {
    if (c->lane[i].access_unrolled == ACCESS_PERMUTED) continue;
    ports += at[i].rows * c->lane[i].least_ports * new_load_share(c, &c->f->load[i]);
    gathered += at[i].rows * c->lane[i].gather_cycles;
  }
  return with_ports(c, work, ports) + gathered;
}

/* Cycles of a step's arithmetic and loads from L1; adds gathers to `gathered`. */
static double load_cycles(struct chooser *c, const struct access *at, double work,
                          double *gathered) {
  double ports = 0;
  for (int i = 0; i < c->f->loads; i++) add_access(c, at, i, &ports, gathered);
  return with_ports(c, work, ports);
}

/* Cycles of a step with its data from L2 and beyond. */
static double with_streams(const struct chooser *c, const struct access *at, double step) {
  if (c->f->reduction <= 1) return step;
  double partial = partial_line_bytes(c, at, 0), stream = stream_cycles(c, at, partial);
  return (step < stream ? stream : step) +
         partial / DEFAULT_L2_LINE_RATE * DEFAULT_LINES_NOT_HIDDEN;
}

/* Most rows with vectors of their own that other rows share. */
static int64_t rows_with_own_vectors(const struct chooser *c) {
  int64_t most = 1, rows = chooser_rows(c);
  for (int i = 0; i < c->f->loads && c->now.vector_axis >= 0; i++) {
    const struct default_load *l = &c->f->load[i];
    int64_t distinct =
        l->depends_on >> c->now.vector_axis & 1 ? (int64_t)distinct_rows(c, l) : rows;
    if (distinct < rows && distinct > most) most = distinct;
  }
  return most;
}

/* Registers beside the accumulators, where so many rows have vectors of their own: their vectors
 * and one broadcast element. */
static int64_t registers_of_vectors(const struct chooser *c, int64_t own) {
  return chooser_vectors(c) * own + 1;
}

/* Registers beside the accumulators, if broadcast operands are kept instead: these and the vectors
 * of one block. */
static int64_t registers_of_rows(const struct chooser *c, int64_t own) {
  return chooser_rows(c) / own + chooser_vectors(c);
}

/* With many registers compilers find some that the formula does not count. */
bool chooser_fits_registers(const struct chooser *c) {
  int64_t vectors = chooser_vectors(c), rows = chooser_rows(c), more = vectors + 1;
  if (vectors * rows + (rows > 1 ? more : 1) > c->machine->registers) return false;
  if (rows == 1 || !chooser_has_few_registers(c)) return true;
  int64_t own = rows_with_own_vectors(c);
  if (own == 1) return true;
  more = registers_of_vectors(c, own);
  if (registers_of_rows(c, own) < more) more = registers_of_rows(c, own);
  return vectors * rows + more <= c->machine->registers;
}

bool chooser_reuses_vectors(const struct chooser *c) {
  int64_t own = rows_with_own_vectors(c), more = registers_of_vectors(c, own);
  int64_t sums = chooser_vectors(c) * chooser_rows(c);
  return sums + more <= c->machine->registers || more <= registers_of_rows(c, own);
}

/* Masked lanes are loaded one by one, unless padded panels hold them: then only stores are
 * masked. */
static bool loads_past_end(const struct chooser *c) {
  int v = c->now.vector_axis;
  for (int i = 0; i < c->f->loads; i++) {
    const struct default_load *l = &c->f->load[i];
    if (!(l->depends_on >> v & 1) || l->cold) continue;
    bool constant = c->f->p->tensors.data[l->tensor].constant;
    bool filled = l->block[v] ? fits_block(c, l, v) : c->options.pack && l->packable && constant;
    if (is_guarded(c, l) || !filled) return true;
  }
  return false;
}

/* What the vector axis and steps of `now` decide about one load. */
static void analyze_lane(const struct chooser *c, const struct default_load *l,
                         struct chooser_lane *out) {
  int v = c->now.vector_axis;
  uint32_t lanes = v < 0 ? 0 : 1u << v;
  out->access = access_of(c, l, false);
  out->access_unrolled = access_of(c, l, true);
  out->packable = c->options.pack && l->packable && !is_guarded(c, l) && c->f->reduction > 1 &&
                  !(l->outer & lanes);
  out->waits_for_pages = !out->packable || l->stride[v < 0 ? 0 : v] != 1;
  out->non_affine = (l->non_affine | (l->guarded & c->f->non_monotone)) & ~lanes;
  out->split_cycles = DEFAULT_GATHER * straddling_elements(c, l);
  out->least_ports = out->gather_cycles = 0;
  if (l->cold) return;
  double vectors = (double)up(c->now.steps, c->lanes);
  bool gathered = out->access == ACCESS_GATHER;
  if (gathered && !out->packable)
    out->gather_cycles =
        vectors * (double)chooser_lanes(c) * (l->guarded ? DEFAULT_GUARDED_GATHER : DEFAULT_GATHER);
  else
    out->least_ports = out->access == ACCESS_BROADCAST ? 1 : DEFAULT_VECTOR_LOAD * vectors;
}

void chooser_analyze_lanes(struct chooser *c) {
  const struct default_facts *f = c->f;
  c->unrolling_permutes = false;
  for (int i = 0; i < f->loads; i++) {
    analyze_lane(c, &f->load[i], &c->lane[i]);
    c->unrolling_permutes =
        c->unrolling_permutes || c->lane[i].access != c->lane[i].access_unrolled;
  }
  c->latency = f->reduction == 1    ? 0
               : c->options.outside ? DEFAULT_ADD_LATENCY - DEFAULT_HIDDEN_LATENCY
                                    : DEFAULT_ADD_LATENCY;
  if (reads_in_order(c)) c->latency = 0; /* tiles are short, and the next one overlaps */
  c->mask_factor = 1;
  if (c->now.masked)
    c->mask_factor = f->has_boundary     ? DEFAULT_MASKED_BOUNDARY
                     : loads_past_end(c) ? DEFAULT_MASKED
                                         : DEFAULT_MASKED_STORE;
  c->one_row_tiles = 1;
  for (int i = 0; i < f->t->rank; i++) {
    int64_t size = f->t->axes[i].size;
    c->one_row_tiles *= (double)(i == c->now.vector_axis ? up(size, c->now.steps) : size);
  }
}

/* Rows whose cache lines are adjacent. */
static bool has_adjacent_rows(const struct chooser *c, const struct chooser_load *load) {
  for (uint32_t left = c->row_axes; left;) {
    int64_t step = load->byte_step[chooser_pop_axis(&left)];
    if (step && step < machine_prefetch_stride(c->machine)) return true;
  }
  return false;
}

/* Blocks of the vector axis that find a tile's lines in L1, one after the other, as all panels fit
 * into L2. */
static double blocks_sharing_l1(const struct chooser *c, const struct access *at, double lines) {
  double panels = 0;
  for (int i = 0; i < c->f->loads; i++)
    if (at[i].kind != ACCESS_BROADCAST) panels += c->load[i].tensor_bytes;
  if (2 * panels > (double)c->machine->l2 || 2 * lines > (double)c->machine->l1) return 1;
  return (double)up(c->f->t->axes[c->now.vector_axis].size, c->now.steps);
}

/* Cycles that a tile of a long reduction waits for isolated lines from beyond L2, which hardware
 * does not prefetch. */
static double isolated_line_cycles(const struct chooser *c, const struct access *at) {
  double cycles = 0;
  if (c->f->reduction <= DEFAULT_SHORT_REDUCTION || c->now.vector_axis < 0 ||
      !chooser_has_few_registers(c))
    return 0;
  for (int i = 0; i < c->f->loads; i++) {
    const struct default_load *l = &c->f->load[i];
    const struct chooser_load *load = &c->load[i];
    if (at[i].kind != ACCESS_BROADCAST || !load->isolated_lines || l->non_affine || l->cold)
      continue;
    if (load->tensor_bytes <= (double)c->machine->l2 || has_adjacent_rows(c, load)) continue;
    double lines = chooser_line_bytes(c, l);
    int64_t line = load->beyond_l3 ? machine_memory_line(c->machine) : machine_l3_line(c->machine);
    cycles += lines / c->machine->line * (double)line / blocks_sharing_l1(c, at, lines);
  }
  return cycles;
}

/* A tile with one row less still hides the latency of the accumulators. */
static bool hides_latency(const struct chooser *c, int axis, int64_t rows) {
  int64_t others = chooser_rows(c) / c->now.rows[axis] * chooser_vectors(c);
  return (rows - 1) * others * c->f->operations >= DEFAULT_ADD_LATENCY * DEFAULT_PORTS;
}

/* Share of cycles that is left, as terms beyond the padding boundary are skipped. Tiles of several
 * rows at an end of the axis save cycles only if their other rows still hide the latency. */
static double inside_factor(const struct chooser *c) {
  double share = DEFAULT_INSIDE;
  for (int i = 0; i < c->f->t->rank; i++) {
    if (c->f->inside_share[i] == 1) continue;
    int64_t rows = c->now.rows[i], left = rows == 1 ? 0 : c->f->t->axes[i].size % rows;
    double end = (1 - c->f->inside_share[i]) / 2, less = 0;
    if (rows == 1 || hides_latency(c, i, rows)) less += end;
    if (rows == 1 || hides_latency(c, i, left ? left : rows)) less += end;
    share *= 1 - less;
  }
  return share;
}

static double boundary_factor(const struct chooser *c) {
  if (c->f->has_boundary) return inside_factor(c);
  if (c->f->reduction > DEFAULT_SHORT_REDUCTION) return DEFAULT_LONG_BOUNDARY;
  return c->now.sliding < 0 ? DEFAULT_GUARD : DEFAULT_SLIDING_BOUNDARY;
}

/* Cycles per tile for the fused consumer's non-affine loads, element by element. If a vector is the
 * whole axis, their order is known when code is generated. */
static double consumer_gather_cycles(const struct chooser *c) {
  int v = c->now.vector_axis;
  if (v < 0 || !(c->options.non_affine >> v & 1) || c->now.steps >= c->f->t->axes[v].size) return 0;
  return DEFAULT_CONSUMER_GATHER * (double)(chooser_rows(c) * c->now.steps);
}

/* Factors between the cycles of a step and of the stage. */
struct stage_factors {
  double steps;               /* of the reduction */
  double tiles, cache_cycles; /* of the stage */
  double mask, boundary, sliding;
};

static struct stage_factors stage_factors_of(const struct chooser *c) {
  struct stage_factors k = {c->average_terms, tile_count(c), c->cache_cycles, c->mask_factor, 1, 1};
  if (c->f->guarded) k.boundary = boundary_factor(c);
  if (c->now.sliding >= 0)
    k.sliding = c->f->reduction > DEFAULT_SHORT_REDUCTION ? DEFAULT_SLIDING_LONG : DEFAULT_SLIDING;
  return k;
}

/* Cycles of a tile's reduction. */
static double reduction_cycles(const struct stage_factors *k, double step) {
  return k->steps * (step * k->mask * k->boundary * k->sliding);
}

/* The stage takes `cycles` or more if a step takes at least `step`. */
static bool stage_takes(const struct stage_factors *k, double step, double cycles) {
  return k->tiles * reduction_cycles(k, step) + k->cache_cycles >= cycles;
}

bool chooser_exceeds(const struct chooser *c, double cycles) {
  return c->least_terms * with_latency(c, arithmetic(c)) >=
         cycles * (double)(chooser_rows(c) * c->now.steps);
}

bool chooser_exceeds_for_any_rows(const struct chooser *c, double cycles) {
  double work = (double)chooser_vectors(c) * c->f->operations / DEFAULT_PORTS;
  return c->least_terms * work >= cycles * (double)c->now.steps;
}

double chooser_cycles(struct chooser *c, double limit) {
  const struct stage_factors k = stage_factors_of(c);
  struct access at[DEFAULT_LOADS];
  double step, gathered = 0, work = arithmetic(c);
  double loop = c->now.sliding < 0 ? 1 : 1 / (double)c->f->t->axes[c->now.sliding].size;
  c->now.packed = 0;
  if (c->f->reduction == 1 && c->now.vector_axis < 0) {
    step = scalar_point_cycles(c);
  } else {
    if (stage_takes(&k, with_latency(c, work) + loop, limit)) return limit;
    find_accesses(c, at);
    if (stage_takes(&k, DEFAULT_ROUNDING * least_step_cycles(c, at, work) + loop, limit))
      return limit;
    step = load_cycles(c, at, work, &gathered);
    if (stage_takes(&k, step + gathered + loop, limit)) return limit;
    step = with_streams(c, at, step) + gathered + loop;
  }
  if (stage_takes(&k, step, limit)) return limit;
  double tile = reduction_cycles(&k, step) + chooser_window_fetch(c) + disorder_cycles(c) +
                store_cycles(c) + consumer_gather_cycles(c);
  tile += isolated_line_cycles(c, at);
  if (k.steps > 1) tile += DEFAULT_TILE_START;
  return k.tiles * tile + panel_wait(c, at, tile) + packing_cycles(c) + k.cache_cycles;
}
