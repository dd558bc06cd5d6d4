/* What a tile takes, by the formula of default.h; of one that takes too much it is left off early. */
#include "autoschedule/default_chooser.h"
#include "program/program_cost.h"

enum {
  PORTS = 2,             /* multiply-adds, and loads, of a cycle */
  LATENCY = 4,           /* cycles until a sum may be added to again ... */
  HIDDEN = 2,            /* ... of which other stages hide so many, where they share its loops */
  STREAM = 24,           /* bytes that come from the second cache in a cycle ... */
  LINES_STREAM = 48,     /* ... of lines of which elements are used */
  FEW_LINES_STREAM = 18, /* ... and registers are few */
  SHARED_STREAM = 8,     /* ... from the third one */
  FAR_STREAM = 6,        /* ... from memory */
  IN_ORDER = 2,          /* rows of windows beside each other */
  ADDRESSES = 8,         /* registers for them */
  LINES_OF_PAGE = 4,     /* ... lines of a page, or more, in each step; fewer come late */
  PLACES = 4             /* elements that a vector is put together of at little cost */
};

static const double ONE_LINE = 0.55,
                    TWO_LINES = 0.8; /* of these bytes, where fewer lines are read */
static const double TURNED = 3;      /* cycles of an element that is loaded in a twisted way */
static const double APIECE = 1.5;    /* ... that is stored as one of a vector's lanes */
static const double HALVES = 2.4;    /* ... of a transposed vector, each store more */
static const double TURNS = 1.5;     /* cycles of a vector that is permuted */
static const double MASKED = 1.1;    /* what lanes cost that are not all there */
static const double FILLED = 1.04;   /* ... for which panels are filled up */
static const double GUARDED = 1.4;   /* ... and what is beyond a border is not */
static const double BORDERED = 1.1;  /* ... conditions of borders, which are tiles of their own */
static const double BORDERS = 1.3;   /* ... which loops within a long sum are split at */
static const double INSIDE = 1.03;   /* ... and which leave out terms of it */
static const double PAGED = 2;       /* ... a line of a page of its own */
static const double ASKED = 2.5;     /* ... of which none is known when the code is written */
static const double SLID = 1.03;     /* ... code that is several times as long */
static const double SLID_FAR = 1.06; /* ... and of long sums that have few registers left */
static const double LOADED = 1.04;   /* what loads of a long sum take where registers are few */
static const double HINDERED = 0.06; /* what nothing hides of the time that parts of lines take */
/* Of a tile without lanes, what is hidden while its panel comes from memory: of equals one with lanes is taken. */
static const double MEANWHILE = 31 / 32.0;

double chooser_packing(const struct chooser *c, const struct default_load *l, double each) {
  bool constant = c->f->p->tensors.data[l->tensor].constant;
  return constant ? 0 : each * c->share * (double)program_elements(c->f->p, l->tensor);
}

/* Blocks of so many rows along an axis, and what is left over, which is a smaller tile. */
static struct chooser_blocks blocks_of(const struct chooser *c, int axis) {
  int64_t size = c->f->t->axes[axis].size, rows = c->now.rows[axis];
  struct chooser_blocks known = {0}, *memo = rows <= CHOOSER_ROWS ? &c->blocks[axis][rows] : &known;
  if (memo->whole > 0) return *memo;
  int64_t left = size % rows;
  memo->whole = (double)((size - left) / rows);
  memo->left = left ? 0.5 + 0.5 * (double)left / (double)rows : 0;
  return *memo;
}

/* The sums of rows that are left over are fewer: of long ones they take no less than they wait. */
static double left_over(const struct chooser *c, double left) {
  double work = (double)(chooser_rows(c) * chooser_vectors(c) * c->f->operations) / PORTS;
  if (c->f->reduction <= DEFAULT_FEW || work >= 2 * LATENCY) return left; /* half, or more */
  double least = work > LATENCY ? LATENCY / work : 1;
  return left > least ? left : least;
}

static double tiles_of(const struct chooser *c) {
  double tiles = c->single;
  for (uint32_t axes = c->rowed; axes;) {
    int i = chooser_pop_axis(&axes);
    struct chooser_blocks blocks = blocks_of(c, i);
    double count = blocks.whole + (blocks.left > 0 ? left_over(c, blocks.left) : 0);
    tiles = tiles / (double)c->f->t->axes[i].size * count;
  }
  return tiles;
}

/* Rows of the tile for which the load is another one. */
static double rows_moved(const struct chooser *c, const struct default_load *l) {
  double rows = 1;
  for (uint32_t left = c->rowed & l->depends_on; left;) {
    int i = chooser_pop_axis(&left);
    bool same = l->block[i] && !l->stride[i] && l->block[i] % c->now.rows[i] == 0;
    if (!same) rows *= (double)c->now.rows[i];
  }
  return rows;
}

static bool fits_block(const struct chooser *c, const struct default_load *l, int axis) {
  return !l->block[axis] || l->block[axis] % c->now.steps == 0;
}

/* Of a window along axis and `slide`, unrolled: so many of the loads for the rows of a step are not
 * there yet. */
static double new_rows(const struct chooser *c, const struct default_load *l) {
  if (c->now.sliding < 0 || !l->stride[c->now.sliding]) return 1;
  for (uint32_t left = c->rowed; left;) {
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

/* Rows that may begin anywhere in blocks of the load have an address each: so many of these are on the stack, and
 * loaded, too. */
static double addresses(const struct chooser *c, const struct default_load *l, double rows) {
  bool crosses = false;
  if (rows <= ADDRESSES) return 0;
  for (uint32_t left = c->rowed; left;) {
    int i = chooser_pop_axis(&left);
    crosses = crosses || (l->block[i] && l->stride[i] && l->block[i] % c->now.rows[i]);
  }
  return crosses ? rows - ADDRESSES : 0;
}

/* The condition along the lanes is only about the last of the steps of a reduction, as of partial sums
 * whose number does not divide the sum: so many steps; 0: it is not. */
static int64_t ragged_steps(const struct chooser *c, const struct default_load *l) {
  int v = c->now.vector_axis;
  const struct program_axis *axes = c->f->t->axes;
  if (v < 0 || c->f->non_monotone >> v & 1 || l->stride[v] != 1) return 0;
  for (int r = c->f->t->rank; r < c->f->t->rank + c->f->t->reductions; r++)
    if (l->guarded == (1u << v | 1u << r) && l->stride[r] == axes[v].size) return axes[r].size;
  return 0;
}

/* The loop over vectors of a map is split where the condition along them changes. */
static bool is_split(const struct chooser *c, const struct default_load *l) {
  int v = c->now.vector_axis;
  return c->options.split && l->guarded >> v & 1 && c->f->reduction == 1 &&
         !(c->f->non_monotone >> v & 1);
}

/* Elements of a vector that lies on both sides of such a place, of which there are two, by vectors. */
static double split_lanes(const struct chooser *c, const struct default_load *l) {
  if (c->now.vector_axis < 0 || !is_split(c, l)) return 0;
  int64_t vectors = up(c->f->t->axes[c->now.vector_axis].size, c->now.steps);
  return (double)c->now.steps * (vectors > 2 ? 2 / (double)vectors : 1);
}

bool chooser_unrolls_all(const struct chooser *c) {
  for (int i = c->f->t->rank; i < c->f->t->rank + c->f->t->reductions; i++)
    if (c->f->t->axes[i].low >= 0 || c->f->period[i]) return false;
  return !c->f->guarded &&
         c->f->reduction * chooser_rows(c) * chooser_vectors(c) <= DEFAULT_STATEMENTS;
}

/* In blocks of the same element, of which a vector has a few, or which lie close to each other: vectors that are
 * permuted (code_permute.c). */
static bool is_permuted(const struct chooser *c, const struct default_load *l, bool unrolled) {
  int v = c->now.vector_axis;
  int64_t lanes = chooser_lanes(c), block = l->block[v] ? l->block[v] : 1;
  int64_t jump = l->block[v] ? l->jump[v] : l->stride[v];
  if (jump < 0) jump = -jump;
  bool known = c->now.steps % block == 0 || c->now.steps >= c->f->t->axes[v].size;
  if (!jump || !known || c->now.masked || (l->non_affine | l->guarded) >> v & 1 ||
      lanes & (lanes - 1))
    return false;
  int64_t places = up(lanes, block) + (lanes % block != 0), span = (places - 1) * jump;
  if (places <= 2 || (span >= lanes - 1 && span < 2 * lanes)) return true;
  return unrolled && (places <= PLACES || span < 2 * lanes);
}

static enum chooser_access lanes_along(const struct chooser *c, const struct default_load *l,
                                       bool unrolled) {
  int v = c->now.vector_axis;
  if (v < 0 || !((l->depends_on | l->guarded) >> v & 1)) return ACCESS_BROADCAST;
  bool same = !l->stride[v] && fits_block(c, l, v); /* all lanes are in one block */
  if (l->stride[v] != 1 && !same && is_permuted(c, l, unrolled)) return ACCESS_PERMUTED;
  if (l->non_affine >> v & 1 || !fits_block(c, l, v)) return ACCESS_GATHER;
  if (l->guarded >> v & 1 && !ragged_steps(c, l) && !is_split(c, l)) return ACCESS_GATHER;
  return l->stride[v] == 0   ? ACCESS_BROADCAST
         : l->stride[v] == 1 ? ACCESS_CONTIGUOUS
                             : ACCESS_GATHER;
}

/* How the tile loads one of its operands: several terms of the formula look at it. */
struct access {
  enum chooser_access along;
  double rows; /* of the tile, for which it is another one */
};

static void find_accesses(const struct chooser *c, struct access *at) {
  bool unrolled = c->permutes && chooser_unrolls_all(c);
  for (int i = 0; i < c->f->loads; i++) {
    const struct chooser_lane *lane = &c->lane[i];
    at[i].along = unrolled ? lane->unrolled : lane->access;
    at[i].rows = rows_moved(c, &c->f->load[i]);
  }
}

bool chooser_permutes(const struct chooser *c) {
  bool unrolled = chooser_unrolls_all(c);
  for (int i = 0; i < c->f->loads && c->now.vector_axis >= 0; i++)
    if (lanes_along(c, &c->f->load[i], unrolled) == ACCESS_PERMUTED) return true;
  return false;
}

/* Rows of a tile that want a line each of one set of L1 at once, with those of a window that is unrolled;
 * others want some there, too. */
static bool crowds(const struct chooser *c, const struct default_load *l) {
  int64_t lines = 1;
  bool slides = false;
  const struct chooser_load *known = chooser_load_of(c, l);
  for (uint32_t left = c->rowed; left;) {
    int i = chooser_pop_axis(&left), window = known->window[i];
    int64_t rows = c->now.rows[i];
    if (l->stride[i] <= 0) continue;
    bool slide = c->now.sliding >= 0 && window >= 0;
    if (slide) rows += (c->f->t->axes[window].size - 1) / known->window_step[i];
    if (known->byte_step[i] % machine_l1_way(c->machine) == 0) lines *= rows;
    slides = slides || slide;
  }
  int64_t ways = machine_l1_ways(c->machine);
  return slides ? lines >= ways : lines > ways;
}

/* Rows that lie in lines of their own cost more, and most where they lie in one set of L1. */
static double spread(const struct chooser *c, const struct default_load *l) {
  double cost = 1;
  int64_t way = machine_l1_way(c->machine);
  const struct chooser_load *known = chooser_load_of(c, l);
  for (uint32_t left = c->rowed & known->strided; left;) {
    int64_t bytes = known->byte_step[chooser_pop_axis(&left)];
    bool one_set = bytes % way == 0 && crowds(c, l);
    double more = one_set ? 3 : bytes >= way ? 1.3 : 1.1;
    cost = cost > more ? cost : more;
  }
  return cost;
}

/* A reduction that goes from page to page: its lines come late, whatever is done with them. */
static double paging(const struct chooser *c, const struct default_load *l) {
  double lines = 1;
  const struct chooser_load *known = chooser_load_of(c, l);
  if (!known->crosses_pages) return 0;
  for (uint32_t left = c->rowed & known->strided; left;)
    lines *= (double)c->now.rows[chooser_pop_axis(&left)];
  return PAGED * lines;
}

/* Bytes of the lines in which one tile finds what it loads, for all of its reduction. */
double chooser_lines(const struct chooser *c, const struct default_load *l) {
  const struct chooser_load *known = chooser_load_of(c, l);
  double lines = known->line_footprint;
  int64_t span = known->span;
  uint32_t lanes = c->now.vector_axis < 0 ? 0 : 1u << c->now.vector_axis;
  for (uint32_t left = c->rowed | lanes; left;) {
    int i = chooser_pop_axis(&left);
    int64_t steps = i == c->now.vector_axis ? c->now.steps : c->now.rows[i],
            step = known->byte_step[i];
    if (step >= CHOOSER_LINE)
      lines *= (double)steps;
    else if (step)
      span += (steps - 1) * step;
  }
  return lines * (double)(span / CHOOSER_LINE + 1) * CHOOSER_LINE;
}

/* Tiles in a row that load the same, one after the other: 1 where the first cache does not keep it so long, where
 * vectors lie in two lines, or where registers are many and tiles few, so that this was not measured. */
double chooser_uses_in_row(const struct chooser *c, const struct default_load *l) {
  const struct chooser_load *known = chooser_load_of(c, l);
  double uses = 1;
  if (!known->repeats || chooser_lines(c, l) > (double)c->machine->l1 / 2) return 1;
  for (uint32_t left = known->invariant; left;) {
    int i = chooser_pop_axis(&left);
    uses *=
        (double)up(c->f->t->axes[i].size, i == c->now.vector_axis ? c->now.steps : c->now.rows[i]);
  }
  return uses;
}

/* Rows of other phases use other elements of what stands still along them. */
static double phases_of(const struct chooser *c, const struct default_load *l) {
  double phases = 1;
  if (!c->f->periodic) return 1;
  for (int i = 0; i < c->f->t->rank; i++)
    if (c->f->period[i] && c->now.rows[i] > 1 && !(l->depends_on >> i & 1))
      phases *= (double)c->f->period[i];
  return phases;
}

/* By a condition along the lanes. */
static bool is_asked(const struct chooser *c, const struct default_load *l) {
  return c->now.vector_axis >= 0 ? l->guarded >> c->now.vector_axis & 1 : l->guarded != 0;
}

/* Cycles of a step that waits for a line of each page: the first tile in a row does, of windows each one, by what was
 * measured (3x3 64->32 at 56x56). */
static double late_lines(const struct chooser *c, const struct default_load *l) {
  double late = paging(c, l);
  return late > 0 && c->f->t->reductions == 1 ? late / chooser_uses_in_row(c, l) : late;
}

/* Cycles of a step for one load: what goes through the load ports, and what is gathered beside. */
static void add_access(struct chooser *c, const struct access *at, int load, double *ports,
                       double *gathered) {
  const struct default_load *l = &c->f->load[load];
  const struct chooser_lane *lane = &c->lane[load];
  if (l->cold) return;
  double rows = at[load].rows * phases_of(c, l);
  bool late = lane->late;
  *gathered += rows * lane->boundary;
  enum chooser_access along = at[load].along;
  switch (along == ACCESS_PERMUTED && lane->packable ? ACCESS_GATHER : along) {
    case ACCESS_BROADCAST:
      *ports += rows * spread(c, l) * new_rows(c, l) + addresses(c, l, rows);
      break;
    case ACCESS_CONTIGUOUS:
      *ports += 1.3 * rows * spread(c, l) * new_rows(c, l) * (double)chooser_vectors(c);
      break;
    case ACCESS_PERMUTED: {
      double vectors = rows * new_rows(c, l) * (double)chooser_vectors(c);
      *ports += 2 * vectors;
      *gathered += TURNS * vectors;
      break;
    }
    case ACCESS_GATHER:
      if (lane->packable) {
        c->now.packed |= 1u << load;
        late = false;
        *ports += 1.3 * rows * (double)chooser_vectors(c);
      } else {
        *gathered += rows * lane->gather;
      }
  }
  if (lane->non_affine) *gathered += rows;
  if (late) *gathered += late_lines(c, l);
}

/* Packing gathers each element once, of a constant input beforehand. */
static double packing(const struct chooser *c) {
  double cycles = 0;
  for (int i = 0; i < c->f->loads; i++)
    if (c->now.packed >> i & 1) cycles += chooser_packing(c, &c->f->load[i], 0.9);
  return cycles;
}

/* The rows of a tile that are side by side in what is written; -1: none are. */
static int axis_that_follows(const struct chooser *c) {
  int axis = c->f->t->rank - 1;
  while (axis >= 0 &&
         (axis == c->now.vector_axis || c->now.rows[axis] == 1 || c->f->out_stride[axis] != 1))
    axis--;
  return axis;
}

/* Cycles of a lane that goes where others have theirs: enough rows of vectors are transposed, unless what reads them
 * loads something else in a twisted way along the rows. Part of a vector is stored by halves where there are no masks
 * (emit_c.c). */
static double lane_across(const struct chooser *c) {
  int axis = axis_that_follows(c);
  if (axis < 0) return 2;
  int64_t rows = c->now.rows[axis], part = rows % c->lanes;
  bool wide = c->lanes >= DEFAULT_TRANSPOSED_LANES && c->f->t->dtype == PROGRAM_F32;
  bool transposed =
      wide && default_may_transpose(rows, c->lanes) && !(c->options.non_affine >> axis & 1);
  if (!transposed) return APIECE;
  bool halves = part && chooser_has_few_registers(c);
  double cycles = 2.6 + (halves ? HALVES * (__builtin_popcountll((uint64_t)part) - 1) : 0);
  return 0.3 + cycles / (double)rows;
}

static double stores(const struct chooser *c) {
  double points = (double)(chooser_rows(c) * chooser_vectors(c));
  if (c->now.vector_axis < 0) return c->f->reduction > 1 ? (double)chooser_rows(c) : 0;
  if (c->options.free_layout || c->f->out_stride[c->now.vector_axis] == 1) return points;
  return points * (double)chooser_lanes(c) * lane_across(c);
}

/* Cycles of one point of a stage without a reduction and without lanes: compilers find some, and other
 * stages in the same loop hide some. */
static double scalar_point(const struct chooser *c) {
  double twisted = 0, call = c->options.outside ? 1 : 4;
  for (int i = 0; i < c->f->loads; i++)
    twisted += c->options.split && c->f->load[i].guarded           ? 1
               : c->f->load[i].guarded || c->f->load[i].non_affine ? 0.5
                                                                   : 0.1;
  return (c->f->operations >= DEFAULT_CALLS ? call : 0.5) * c->f->operations + twisted;
}

/* Bytes that one tile loads of what goes with the lanes, for all of its reduction. */
static double panel(const struct chooser *c, const struct default_load *l) {
  const struct chooser_load *known = chooser_load_of(c, l);
  return (double)(chooser_vectors(c) * chooser_lanes(c)) * known->bytes * known->panel;
}

/* Tiles of other rows load the same. */
static bool is_used_again(const struct chooser *c, const struct default_load *l) {
  for (uint32_t left = chooser_load_of(c, l)->invariant; left;) {
    int i = chooser_pop_axis(&left);
    if (i != c->now.vector_axis && c->f->t->axes[i].size > c->now.rows[i]) return true;
  }
  return false;
}

/* Bytes of a load that come in a cycle from beyond the second cache. */
static double stream(const struct chooser *c, const struct default_load *l) {
  return chooser_load_of(c, l)->beyond_l3 ? FAR_STREAM : SHARED_STREAM;
}

/* Bytes of the vectors that all rows of a tile load for all of its reduction. */
static double panels_touched(const struct chooser *c, const struct access *at) {
  double bytes = 0;
  for (int i = 0; i < c->f->loads; i++)
    if (at[i].along != ACCESS_BROADCAST) bytes += at[i].rows * panel(c, &c->f->load[i]);
  return bytes;
}

/* Bytes of a step of lines of which a tile uses a part, where the first cache does not keep them, nor `beside` them
 * so many bytes. */
static double partial_lines(const struct chooser *c, const struct access *at, double beside) {
  double bytes = 0;
  for (int i = 0; i < c->f->loads; i++) {
    const struct default_load *l = &c->f->load[i];
    double lines = l->non_affine || at[i].along != ACCESS_BROADCAST ? 0 : chooser_lines(c, l);
    if (lines > 0 && lines + beside > (double)c->machine->l1) bytes += lines;
  }
  return bytes / c->terms;
}

/* Cycles of a step until panels have come, which for each tile of rows come again where they do not fit into the
 * first cache. */
static double streaming(const struct chooser *c, const struct access *at) {
  double bytes = 0;
  for (int i = 0; i < c->f->loads; i++) {
    const struct default_load *l = &c->f->load[i];
    double rows = at[i].rows; /* blocks of lanes are rows of what goes with the lanes */
    if (at[i].along == ACCESS_BROADCAST || !is_used_again(c, l)) continue;
    double vectors = rows * (double)(chooser_vectors(c) * chooser_lanes(c));
    double step = vectors * chooser_bytes(c, l);
    double rate = STREAM;
    if (rows * panel(c, l) > (double)c->machine->l2) rate = stream(c, l);
    if (rows * panel(c, l) > (double)c->machine->l1) bytes += step * STREAM / rate;
  }
  return bytes / STREAM;
}

/* Cycles of a step until lines and panels have come; tiles are short where registers are few: what comes beside the
 * lines takes them out of the first cache. */
static double arrived(const struct chooser *c, const struct access *at, double partial) {
  bool few = chooser_has_few_registers(c);
  double lines = few ? partial_lines(c, at, panels_touched(c, at)) : partial;
  return streaming(c, at) + lines / (few ? FEW_LINES_STREAM : LINES_STREAM);
}

/* Bytes of a panel that come in a cycle: of each page a few lines come late. */
static double arrival(const struct chooser *c, int load) {
  const struct default_load *l = &c->f->load[load];
  double rate = stream(c, l);
  int64_t beside = 1;
  if (c->now.packed >> load & 1 || paging(c, l) == 0) return rate;
  for (int i = 0; i < c->f->t->rank; i++)
    if (l->stride[i] == 1) beside = i == c->now.vector_axis ? c->now.steps : c->now.rows[i];
  int64_t lines = beside * chooser_bytes(c, l) / CHOOSER_LINE;
  if (lines >= LINES_OF_PAGE) return rate;
  return lines < 2 ? rate * ONE_LINE : rate * TWO_LINES;
}

/* Tiles that have a panel of their own: blocks of lanes, or of rows where there are no lanes. */
static double panels(const struct chooser *c, const struct default_load *l) {
  double count = 1;
  if (c->now.vector_axis >= 0)
    return (double)up(c->f->t->axes[c->now.vector_axis].size, c->now.steps);
  for (int i = 0; i < c->f->t->rank; i++)
    if (l->depends_on >> i & 1) count *= (double)up(c->f->t->axes[i].size, c->now.rows[i]);
  return count;
}

/* Cycles in which the first tile of a block of lanes waits for its panel, where all panels together are more
 * than the second cache. */
static double arriving(const struct chooser *c, const struct access *at, double tile) {
  double cycles = 0, hidden = c->now.vector_axis < 0 ? MEANWHILE * tile : tile;
  if (c->f->reduction == 1) return 0;
  bool rows = chooser_windows(c) == WINDOWS_IN_ROWS; /* else all tiles wait: chooser_fetching */
  for (int i = 0; i < c->f->loads; i++) {
    const struct default_load *l = &c->f->load[i];
    if (!rows || (c->now.vector_axis >= 0 && at[i].along == ACCESS_BROADCAST)) continue;
    if (chooser_load_of(c, l)->all <= (double)c->machine->l2) continue;
    double bytes = at[i].rows * panel(c, l);
    if (bytes > (double)c->machine->l2) continue; /* each tile waits: streaming() */
    double late = bytes / arrival(c, i) - hidden;
    if (late > 0) cycles += panels(c, l) * late;
  }
  return cycles;
}

/* Windows beside each other, with lanes that follow each other: each element is read once, best in the order in which
 * they lie there. */
static bool is_read_once(const struct chooser *c) {
  return c->read_once && c->lane[0].access == ACCESS_CONTIGUOUS;
}

/* Cycles of a tile that comes in another order than that: of more than two rows. */
static double disorder(const struct chooser *c) {
  double rows = (double)chooser_rows(c);
  if (!is_read_once(c) || rows <= IN_ORDER) return 0;
  return (double)c->f->reduction * (double)chooser_vectors(c) * (rows - IN_ORDER);
}

/* Cycles of a step until its multiply-adds are done ... */
static double work_of(const struct chooser *c) {
  return (double)(chooser_rows(c) * chooser_vectors(c)) * c->f->operations / PORTS;
}

/* ... until the next term may be added to a sum ... */
static double waited(const struct chooser *c, double step) {
  return step < c->latency ? c->latency : step;
}

/* ... with what goes through the load ports ... */
static double with_ports(const struct chooser *c, double work, double ports) {
  bool few = c->f->reduction > DEFAULT_FEW && chooser_has_few_registers(c);
  double loading = few ? LOADED * ports / 2 : ports / 2;
  return waited(c, loading > work ? loading + work / 32 : work + ports / 64);
}

/* ... at least, beside what is gathered ... */
static double loaded_least(const struct chooser *c, const struct access *at, double work) {
  double ports = 0, gathered = 0;
  for (int i = 0; i < c->f->loads; i++) {
    if (c->lane[i].unrolled == ACCESS_PERMUTED) continue;
    ports += at[i].rows * c->lane[i].ports * new_rows(c, &c->f->load[i]);
    gathered += at[i].rows * c->lane[i].gather;
  }
  return with_ports(c, work, ports) + gathered;
}

/* ... and all that is known of them ... */
static double loaded(struct chooser *c, const struct access *at, double work, double *gathered) {
  double ports = 0;
  for (int i = 0; i < c->f->loads; i++) add_access(c, at, i, &ports, gathered);
  return with_ports(c, work, ports);
}

/* ... and with those that come late. */
static double come_late(const struct chooser *c, const struct access *at, double step) {
  if (c->f->reduction <= 1) return step;
  double partial = partial_lines(c, at, 0), late = arrived(c, at, partial);
  return (step < late ? late : step) + partial / LINES_STREAM * HINDERED;
}

/* Rows along whose axes a vector is another one that others share. */
static int64_t rows_of_vectors(const struct chooser *c) {
  int64_t most = 1, rows = chooser_rows(c);
  for (int i = 0; i < c->f->loads && c->now.vector_axis >= 0; i++) {
    const struct default_load *l = &c->f->load[i];
    int64_t moved = l->depends_on >> c->now.vector_axis & 1 ? (int64_t)rows_moved(c, l) : rows;
    if (moved < rows && moved > most) most = moved;
  }
  return most;
}

/* Registers beside the sums, of a tile in which so many rows have vectors of their own: for the vectors that all rows
 * share and one element that is broadcast ... */
static int64_t registers_of_vectors(const struct chooser *c, int64_t of_vectors) {
  return chooser_vectors(c) * of_vectors + 1;
}

/* ... or for what is broadcast and the vectors of one block of lanes. */
static int64_t registers_of_rows(const struct chooser *c, int64_t of_vectors) {
  return chooser_rows(c) / of_vectors + chooser_vectors(c);
}

/* Of many registers the compiler finds some that are not counted. */
bool chooser_fits_registers(const struct chooser *c) {
  int64_t vectors = chooser_vectors(c), rows = chooser_rows(c), more = vectors + 1;
  if (vectors * rows + (rows > 1 ? more : 1) > c->machine->registers) return false; /* or more */
  if (rows == 1 || !chooser_has_few_registers(c)) return true;
  int64_t of = rows_of_vectors(c);
  if (of == 1) return true;
  more = registers_of_vectors(c, of);
  if (registers_of_rows(c, of) < more) more = registers_of_rows(c, of);
  return vectors * rows + more <= c->machine->registers;
}

bool chooser_reuses_vectors(const struct chooser *c) {
  int64_t of = rows_of_vectors(c), more = registers_of_vectors(c, of);
  int64_t sums = chooser_vectors(c) * chooser_rows(c);
  return sums + more <= c->machine->registers || more <= registers_of_rows(c, of);
}

/* Lanes that are not all there are loaded one by one, unless panels are filled up for them: then only what
 * is stored is less. */
static bool loads_masked(const struct chooser *c) {
  int v = c->now.vector_axis;
  for (int i = 0; i < c->f->loads; i++) {
    const struct default_load *l = &c->f->load[i];
    if (!(l->depends_on >> v & 1) || l->cold) continue;
    bool constant = c->f->p->tensors.data[l->tensor].constant;
    bool filled = l->block[v] ? fits_block(c, l, v) : c->options.pack && l->packable && constant;
    if (is_asked(c, l) || !filled) return true;
  }
  return false;
}

/* By `now`, what goes with the lanes of one load. */
static void see_lane(const struct chooser *c, const struct default_load *l,
                     struct chooser_lane *out) {
  int v = c->now.vector_axis;
  uint32_t lanes = v < 0 ? 0 : 1u << v;
  out->access = lanes_along(c, l, false);
  out->unrolled = lanes_along(c, l, true);
  out->packable = c->options.pack && l->packable && !is_asked(c, l) && c->f->reduction > 1 &&
                  !(l->outer & lanes);
  out->late = !out->packable || l->stride[v < 0 ? 0 : v] != 1;
  out->non_affine = (l->non_affine | (l->guarded & c->f->non_monotone)) & ~lanes;
  out->boundary = 0.8 * split_lanes(c, l);
  out->ports = out->gather = 0;
  if (l->cold) return;
  double vectors = (double)up(c->now.steps, c->lanes);
  bool apart = out->access == ACCESS_GATHER;
  if (apart && !out->packable)
    out->gather = vectors * (double)chooser_lanes(c) * (l->guarded ? 2.5 : 0.8);
  else
    out->ports = out->access == ACCESS_BROADCAST ? 1 : 1.3 * vectors;
}

void chooser_analyze_lanes(struct chooser *c) {
  const struct default_facts *f = c->f;
  c->permutes = false;
  for (int i = 0; i < f->loads; i++) {
    see_lane(c, &f->load[i], &c->lane[i]);
    c->permutes = c->permutes || c->lane[i].access != c->lane[i].unrolled;
  }
  c->latency = f->reduction == 1 ? 0 : c->options.outside ? LATENCY - HIDDEN : LATENCY;
  if (is_read_once(c)) c->latency = 0; /* tiles are short, and the next one begins meanwhile */
  c->masked = 1;
  if (c->now.masked) c->masked = f->has_boundary ? GUARDED : loads_masked(c) ? MASKED : FILLED;
  c->single = 1;
  for (int i = 0; i < f->t->rank; i++) {
    int64_t size = f->t->axes[i].size;
    c->single *= (double)(i == c->now.vector_axis ? up(size, c->now.steps) : size);
  }
}

/* Rows beside each other, whose lines follow each other. */
static bool has_near_rows(const struct chooser *c, const struct chooser_load *known) {
  for (uint32_t left = c->rowed; left;) {
    int64_t step = known->byte_step[chooser_pop_axis(&left)];
    if (step && step < machine_prefetch_stride(c->machine)) return true;
  }
  return false;
}

/* Blocks of lanes that find what a tile has loaded in the first cache, one after the other: their panels all stay in
 * the second one. */
static double blocks_in_row(const struct chooser *c, const struct access *at, double lines) {
  double panels = 0;
  for (int i = 0; i < c->f->loads; i++)
    if (at[i].along != ACCESS_BROADCAST) panels += c->load[i].all;
  if (2 * panels > (double)c->machine->l2 || 2 * lines > (double)c->machine->l1) return 1;
  return (double)up(c->f->t->axes[c->now.vector_axis].size, c->now.steps);
}

/* Cycles of a tile of a long sum until lines have come that nothing fetches ahead, each from a place of its own beyond
 * the second cache. */
static double scattered(const struct chooser *c, const struct access *at) {
  double cycles = 0;
  if (c->f->reduction <= DEFAULT_FEW || c->now.vector_axis < 0 || !chooser_has_few_registers(c))
    return 0;
  for (int i = 0; i < c->f->loads; i++) {
    const struct default_load *l = &c->f->load[i];
    const struct chooser_load *known = &c->load[i];
    if (at[i].along != ACCESS_BROADCAST || !known->alone || l->non_affine || l->cold) continue;
    if (known->all <= (double)c->machine->l2 || has_near_rows(c, known)) continue;
    double lines = chooser_lines(c, l);
    int64_t line = known->beyond_l3 ? machine_memory_line(c->machine) : machine_l3_line(c->machine);
    cycles += lines / CHOOSER_LINE * (double)line / blocks_in_row(c, at, lines);
  }
  return cycles;
}

/* A row of the tile less still hides how long a sum takes. */
static bool hides(const struct chooser *c, int axis, int64_t rows) {
  int64_t others = chooser_rows(c) / c->now.rows[axis] * chooser_vectors(c);
  return (rows - 1) * others * c->f->operations >= LATENCY * PORTS;
}

/* The share of cycles that are left: of rows that are unrolled, those on both ends are in a tile, and in
 * what is left over. */
static double inside(const struct chooser *c) {
  double share = INSIDE;
  for (int i = 0; i < c->f->t->rank; i++) {
    if (c->f->inside_share[i] == 1) continue;
    int64_t rows = c->now.rows[i], left = rows == 1 ? 0 : c->f->t->axes[i].size % rows;
    double end = (1 - c->f->inside_share[i]) / 2, less = 0;
    if (rows == 1 || hides(c, i, rows)) less += end;
    if (rows == 1 || hides(c, i, left ? left : rows)) less += end;
    share *= 1 - less;
  }
  return share;
}

static double border(const struct chooser *c) {
  if (c->f->has_boundary) return inside(c);
  if (c->f->reduction > DEFAULT_FEW) return BORDERS;
  return c->now.sliding < 0 ? ASKED : BORDERED;
}

/* Cycles of a tile for what its reader loads lane by lane: where a vector is all of the axis, it is known
 * which elements follow each other. */
static double turning(const struct chooser *c) {
  int v = c->now.vector_axis;
  if (v < 0 || !(c->options.non_affine >> v & 1) || c->now.steps >= c->f->t->axes[v].size) return 0;
  return TURNED * (double)(chooser_rows(c) * c->now.steps);
}

/* What the cycles of steps become cycles of all tiles by. */
struct counted {
  double steps, tiles, moving;
  double masked, border, slid; /* factors */
};

static struct counted counted(const struct chooser *c) {
  struct counted k = {c->terms, tiles_of(c), c->cache_cycles, c->masked, 1, 1};
  if (c->f->guarded) k.border = border(c);
  if (c->now.sliding >= 0) k.slid = c->f->reduction > DEFAULT_FEW ? SLID_FAR : SLID;
  return k;
}

/* Cycles of a tile for its steps. */
static double in_tile(const struct counted *k, double step) {
  return k->steps * (step * k->masked * k->border * k->slid);
}

/* Whether it takes so many cycles, or more, where a step does not take less. */
static bool takes(const struct counted *k, double step, double cycles) {
  return k->tiles * in_tile(k, step) + k->moving >= cycles;
}

bool chooser_takes_at_least(const struct chooser *c, double cycles) {
  return c->least_terms * waited(c, work_of(c)) >=
         cycles * (double)(chooser_rows(c) * c->now.steps);
}

bool chooser_row_takes_at_least(const struct chooser *c, double cycles) {
  double work = (double)chooser_vectors(c) * c->f->operations / PORTS;
  return c->least_terms * work >= cycles * (double)c->now.steps;
}

double chooser_cycles(struct chooser *c, double limit) {
  const struct counted k = counted(c);
  struct access at[DEFAULT_LOADS];
  double step, gathered = 0, work = work_of(c);
  double around = c->now.sliding < 0 ? 1 : 1 / (double)c->f->t->axes[c->now.sliding].size;
  c->now.packed = 0;
  if (c->f->reduction == 1 && c->now.vector_axis < 0) {
    step = scalar_point(c);
  } else {
    if (takes(&k, waited(c, work) + around, limit)) return limit;
    find_accesses(c, at);
    if (takes(&k, CHOOSER_ROUNDED * loaded_least(c, at, work) + around, limit)) return limit;
    step = loaded(c, at, work, &gathered);
    if (takes(&k, step + gathered + around, limit)) return limit;
    step = come_late(c, at, step) + gathered + around;
  }
  if (takes(&k, step, limit)) return limit;
  double tile = in_tile(&k, step) + chooser_window_fetch(c) + disorder(c) + stores(c) + turning(c);
  tile += scattered(c, at);
  if (k.steps > 1) tile += 8;
  return k.tiles * tile + arriving(c, at, tile) + packing(c) + k.moving;
}
