/* The search for the tile of one stage: the state shared by the files that enumerate, estimate and
 * order.
 *
 *     default_tile.c         enumerates candidates
 *     default_loads.c        analyses each load once, for all candidates
 *     default_cycles.c       estimates the cycles of a candidate
 *     default_windows.c      what overlapping windows add to them
 *     default_k_blocks.c     splits long reductions
 *     default_order.c        orders the loops of the best tile
 *     default_constraint.c   keeps to the constraint of a sketch
 */
#ifndef CANVAS_AUTOSCHEDULE_DEFAULT_CHOOSER_H
#define CANVAS_AUTOSCHEDULE_DEFAULT_CHOOSER_H

#include "autoschedule/default.h"
#include "cost/policy.h"

/* A load, as all candidates of the stage see it. Found once by chooser_find_loads. */
struct chooser_load {
  int bytes;                 /* of one element */
  double tensor_bytes;       /* bytes of the whole tensor */
  double reduction_elements; /* elements that one lane loads over the whole reduction, each once */
  double line_runs;          /* runs of cache lines that the reduction reads for one element */
  int64_t span;              /* bytes from the first to the last element of one run */
  bool crosses_pages;        /* every long reduction strides by prefetch_stride or more */
  bool stays_in_l1; /* adjacent tiles may find in L1 what they share; false with many registers */
  bool beyond_l3;   /* the tensor fits into no cache */
  bool isolated_lines; /* the lines of the reduction are far apart: no hardware prefetch */
  uint32_t strided;    /* own axes whose step is a cache line or more */
  uint32_t invariant;  /* own axes of more than one step on which the load does not depend */
  int64_t byte_step[PROGRAM_AXES]; /* bytes of one step of each axis, absolute */
  /* Overlapping windows, by own axis: the reduction that is the window (-1: none), and the steps of
   * it for one step of the own axis. */
  int window[PROGRAM_AXES];
  int64_t window_step[PROGRAM_AXES];
};

/* The elements that the lanes of one vector load. */
enum chooser_access { ACCESS_BROADCAST, ACCESS_CONTIGUOUS, ACCESS_PERMUTED, ACCESS_GATHER };

/* A load, as all candidates with the same vector axis and steps see it. */
struct chooser_lane {
  enum chooser_access access;
  enum chooser_access access_unrolled; /* `access` if the whole reduction is unrolled */
  bool packable;
  bool waits_for_pages; /* its lines come late where it crosses pages, unless it is packed */
  bool non_affine;      /* along axes other than the vector axis */
  double split_cycles;  /* cycles per row for vectors on both sides of a partition of the loop */
  double least_ports;   /* lower bound of load-port slots per row */
  double gather_cycles; /* cycles per row if it is gathered without packing */
};

/* Tiles along one own axis, for a number of rows. */
struct chooser_row_tiles {
  double full;      /* whole tiles; 0: not computed yet */
  double remainder; /* cost of the remainder tile, as a share of a whole one */
};

struct chooser {
  const struct default_facts *f;
  const struct machine *machine;
  struct default_options options;
  int lanes;                 /* of a whole vector */
  double k_block_share;      /* share of the packing cost that a K-block pays; 1: no K-blocking */
  bool unlimited_statements; /* periods may be unrolled into any number of statements */
  const struct chooser_load *load;
  struct chooser_row_tiles (*row_tiles)[DEFAULT_ROWS_REMEMBERED + 1]; /* by own axis and rows */
  double average_terms; /* terms per element; periods skip some */
  double least_terms;  /* lower bound of the terms of all elements, without padding; 0: not known */
  double cache_cycles; /* cycles to move the data of an element-wise stage */
  bool disjoint_windows;       /* windows do not overlap, as in most poolings */
  bool overlapping_windows;    /* some load has overlapping windows */
  uint32_t sliding_reductions; /* reductions along which rows may share loads */
  bool bounding;               /* only a few candidates are tried, to find upper_bound */
  double upper_bound;          /* cycles from which on a candidate is rejected */
  struct default_tile now, best;
  /* Of `now` with any number of rows, set by chooser_analyze_lanes. */
  struct chooser_lane lane[DEFAULT_LOADS];
  bool unrolling_permutes; /* some access changes if the reduction is unrolled */
  double latency;          /* least cycles between two additions to the same accumulator */
  double mask_factor;      /* cost factor of masked vectors */
  double one_row_tiles;    /* tiles of the stage if each has one row */
  /* Of `now`, set by chooser_count_rows. */
  int64_t rows, vectors;
  uint32_t row_axes; /* own axes with more than one row, without the vector axis */
};

/* The stage reduced over one K-block only. */
struct chooser_k_block {
  struct program_tensor t;
  struct default_facts f;
  int64_t steps; /* of the reduction in one block */
  double count;  /* blocks */
};

/* default_loads.c: fills c and `load`, which has room for DEFAULT_LOADS loads, from facts and
 * options. */
void chooser_find_loads(struct chooser *c, struct chooser_load *load);
/* Sets of L1 that lines `pitch` bytes apart fall into. */
int64_t chooser_sets_of(const struct machine *machine, int64_t pitch);

/* default_tile.c: the cheapest tile. default_choose_tile caches it. */
void chooser_tile(const struct default_facts *f, const struct machine *machine,
                  struct default_options options, struct default_tile *out);

/* default_k_blocks.c: whether c->best should be K-blocked, and how. */
bool chooser_find_k_block(const struct chooser *c, struct chooser_k_block *out);

/* default_cycles.c: what the vector axis and the steps of `now` decide, for any rows. */
void chooser_analyze_lanes(struct chooser *c);
/* Cycles to pack a load, `each` per element; 0 for constants, which are packed at load time. */
double chooser_packing(const struct chooser *c, const struct default_load *l, double each);
/* The whole reduction of `now` may be unrolled. */
bool chooser_unrolls_all(const struct chooser *c);
bool chooser_permutes(const struct chooser *c); /* some load of `now` is permuted */
bool chooser_fits_registers(const struct chooser *c);
/* Each vector is loaded once for all rows that share it: the vectors fit into registers beside the
 * accumulators, or need fewer than the operands of those rows would. */
bool chooser_reuses_vectors(const struct chooser *c);
/* The arithmetic of `now`, or its latency, alone takes `cycles` or more. */
bool chooser_exceeds(const struct chooser *c, double cycles);
/* The arithmetic of the stage with this vector axis alone takes `cycles` or more, for any rows. */
bool chooser_exceeds_for_any_rows(const struct chooser *c, double cycles);
/* The predicted cycles of the stage with the tile `now`; sets now.packed. Returns `limit` or more
 * if they reach it. */
double chooser_cycles(struct chooser *c, double limit);
/* Bytes of the cache lines that a tile reads over the whole reduction. */
double chooser_line_bytes(const struct chooser *c, const struct default_load *l);
/* Adjacent tiles that find the load in L1 after the first one has read it; 1: none. */
double chooser_l1_reuse(const struct chooser *c, const struct default_load *l);
/* default_windows.c: the order of tiles over overlapping windows, so that L1 keeps what the next
 * tiles read again: along image rows if L1 holds the lines of a window; else in strips as wide as a
 * tile; or along rows, one block of the vector axis after the other. */
enum chooser_windows { WINDOWS_IN_ROWS, WINDOWS_IN_STRIPS, WINDOWS_IN_BLOCKS };
enum chooser_windows chooser_windows(const struct chooser *c);
/* No window depends on the own axis, as on a batch axis. */
bool chooser_counts_images(const struct chooser *c, int axis);
/* Cycles that a tile of a short reduction waits for window elements from beyond L1. */
double chooser_window_fetch(const struct chooser *c);

/* default_order.c: `now` may unroll this reduction so that rows share loads. */
bool chooser_slides(const struct chooser *c, int reduction);

/* default_constraint.c: `now` is the kind of tile that the constraint names. */
bool chooser_meets_constraint(const struct chooser *c);
/* Adds `now` to the candidates, or updates the best cycles of its kind. */
void chooser_keep_candidate(struct chooser *c);

/* default_order.c: sets the loop order of c->best. */
void chooser_order(struct chooser *c);

static inline bool chooser_has_few_registers(const struct chooser *c) {
  return machine_has_few_registers(c->machine);
}

static inline int64_t up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

static inline const struct chooser_load *chooser_load_of(const struct chooser *c,
                                                         const struct default_load *l) {
  return &c->load[l - c->f->load];
}

static inline int chooser_bytes(const struct chooser *c, const struct default_load *l) {
  return chooser_load_of(c, l)->bytes;
}

static inline int64_t chooser_vectors(const struct chooser *c) {
  return c->vectors;
}

static inline int64_t chooser_rows(const struct chooser *c) {
  return c->rows;
}

/* Elements of one vector of `now`. */
static inline int64_t chooser_lanes(const struct chooser *c) {
  return c->now.steps < c->lanes ? c->now.steps : c->lanes;
}

/* Removes the first axis from a set and returns it. */
static inline int chooser_pop_axis(uint32_t *axes) {
  int axis = __builtin_ctz(*axes);
  *axes &= *axes - 1;
  return axis;
}

static inline void chooser_count_rows(struct chooser *c) {
  c->vectors = c->now.vector_axis < 0 ? 1 : up(c->now.steps, c->lanes);
  c->rows = 1;
  c->row_axes = 0;
  for (int i = 0; i < c->f->t->rank; i++) {
    if (c->now.rows[i] == 1) continue;
    c->rows *= c->now.rows[i];
    if (i != c->now.vector_axis) c->row_axes |= 1u << i;
  }
}

/* A copy whose `now` is the best tile. */
static inline struct chooser chooser_of_best(const struct chooser *c) {
  struct chooser best = *c;
  best.now = c->best;
  chooser_count_rows(&best);
  return best;
}

#endif
