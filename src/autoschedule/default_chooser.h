/* The tile that is being chosen, shared by the files that choose it: default_tile.c (every
 * candidate), default_loads.c (what a load is to all of them), default_cycles.c (what one of them
 * takes), default_k_blocks.c (long sums in parts), default_order.c (the order of its loops),
 * default_constraint.c (what a sketch wants). */
#ifndef CANVAS_AUTOSCHEDULE_DEFAULT_CHOOSER_H
#define CANVAS_AUTOSCHEDULE_DEFAULT_CHOOSER_H

#include "autoschedule/default.h"

enum {
  DEFAULT_CALLS = 8,        /* operations of a point from which on its tile is small */
  DEFAULT_STATEMENTS = 128, /* of a tile whose sum is unrolled */
  DEFAULT_FEW = 64,         /* steps of a reduction that loads bind, and not operations */
  CHOOSER_LINE = 64         /* bytes of a line of L1 */
};

/* Of a bound, so that no rounding makes it too high. */
static const double CHOOSER_ROUNDED = 1 - 1e-9;

/* What a load is to all tiles of a stage: found once, asked for by each of them. */
struct chooser_load {
  int bytes;             /* of an element */
  double all;            /* bytes of its tensor */
  double panel;          /* bytes that one lane loads for all of the reduction, each once */
  double line_footprint; /* in which steps of reductions are a line or more apart ... */
  int64_t span;          /* ... and bytes from the first to the last of the others */
  bool crosses_pages;    /* the reduction goes from page to page */
  bool repeats;          /* of tiles in a row the first cache may keep what they load */
  bool beyond_l3;        /* it is in memory */
  bool alone;            /* the reduction finds each of its lines apart from the others */
  uint32_t strided;      /* own axes of which each step is a line or more further */
  uint32_t invariant;    /* own axes of several steps along which it is the same */
  int64_t byte_step[PROGRAM_AXES]; /* bytes of a step of each axis, forward or back */
  /* Of windows along an own axis that overlap: the reduction that is the window, -1: there is none, and steps of it
   * for one of the axis. */
  int window[PROGRAM_AXES];
  int64_t window_step[PROGRAM_AXES];
};

/* How elements that go with the lanes of a vector lie. */
enum chooser_access { ACCESS_BROADCAST, ACCESS_CONTIGUOUS, ACCESS_PERMUTED, ACCESS_GATHER };

/* What a load is to tiles of the same lanes. */
struct chooser_lane {
  enum chooser_access access;
  enum chooser_access unrolled; /* ... where all of a short sum is unrolled */
  bool packable;
  bool late;       /* lines of pages come late, if it is not packed */
  bool non_affine; /* along other axes than that of the lanes */
  double boundary; /* cycles of vectors that lie on both sides of a border, for each of its rows */
  double ports;    /* what a row has of the load ports at least ... */
  double gather;   /* ... and cycles of what is gathered, of one that is not permuted */
};

/* Of an axis whose rows come in blocks. */
struct chooser_blocks {
  double whole; /* 0: not known yet */
  double left;  /* what is left over takes so much of one */
};
enum { CHOOSER_ROWS = 32 }; /* for which they are kept */

struct chooser {
  const struct default_facts *f;
  const struct machine *machine;
  struct default_options options;
  int lanes;      /* of a whole vector */
  double share;   /* of what is packed: one part of a sum has one part of it */
  bool unbounded; /* phases may be unrolled into any number of statements */
  const struct chooser_load *load;
  struct chooser_blocks (*blocks)[CHOOSER_ROWS + 1]; /* by own axis and rows */
  double terms;                                      /* of a sum, on average */
  double least_terms;  /* terms of all sums, those beyond borders left out; 0: not known */
  double cache_cycles; /* cycles of what goes through the caches, whatever is computed */
  bool read_once;      /* windows beside each other, if lanes follow each other */
  bool windows;        /* some overlap, along some axis */
  uint32_t slides;     /* reductions that may be unrolled where rows share what they load */
  bool guessing;       /* few tiles are tried, for ... */
  double bound;        /* ... cycles that the best one does not take */
  struct default_tile now, best;
  /* of `now` with any rows, by chooser_see_lanes: */
  struct chooser_lane lane[DEFAULT_LOADS];
  bool permutes;  /* which vectors are permuted depends on whether the sum is unrolled */
  double latency; /* cycles from one term of a sum to the next at least */
  double masked;  /* what lanes cost that are not all there, a factor */
  double single;  /* tiles of one row */
  /* of `now`, by chooser_count: */
  int64_t rows, vectors;
  uint32_t rowed; /* own axes of more than one row, without that of the lanes */
};

/* A part of a long sum: the stage as if this were all of it. */
struct chooser_k_block {
  struct program_tensor t;
  struct default_facts f;
  int64_t steps; /* of its reduction */
  double count;  /* of parts */
};

/* default_loads.c: what stands in front of `now`, from facts and options; `load` has room for all loads. */
void chooser_find_loads(struct chooser *c, struct chooser_load *load);
/* Lines that are so far from each other fall into as many sets of the first cache. */
int64_t chooser_sets_of(const struct machine *machine, int64_t pitch);

/* default_tile.c: the cheapest tile; default_choose_tile remembers it. */
void chooser_tile(const struct default_facts *f, const struct machine *machine,
                  struct default_options options, struct default_tile *out);

/* default_k_blocks.c: whether c->best is better computed in parts. */
bool chooser_find_k_block(const struct chooser *c, struct chooser_k_block *out);

/* default_cycles.c */
/* What stands behind `now`, of its lanes. */
void chooser_analyze_lanes(struct chooser *c);
/* Cycles of packing what is loaded, `each` for an element; of constant inputs it is done beforehand. */
double chooser_packing(const struct chooser *c, const struct default_load *l, double each);
/* The sum of the tile `now` is so short that all of it can be unrolled. */
bool chooser_unrolls_all(const struct chooser *c);
bool chooser_permutes(const struct chooser *c); /* vectors that are loaded */
bool chooser_fits_registers(const struct chooser *c);
/* All vectors that other rows share have registers, or need fewer than what these share with them. */
bool chooser_reuses_vectors(const struct chooser *c);
/* Its sums of products alone take so many cycles, or more. */
bool chooser_takes_at_least(const struct chooser *c, double cycles);
bool chooser_row_takes_at_least(const struct chooser *c,
                                double cycles); /* ... however many rows it has */
/* Sets now.packed, too; `limit` where it takes so many or more. */
double chooser_cycles(struct chooser *c, double limit);
/* Bytes of the lines that a tile loads from; tiles one after the other that find them in the first cache. */
double chooser_lines(const struct chooser *c, const struct default_load *l);
double chooser_uses_in_row(const struct chooser *c, const struct default_load *l);
/* default_windows.c */
/* How tiles go through the windows of an image that is not in memory, so that the first cache keeps what the next ones
 * load again: where it keeps whole lines, in rows; else in strips as wide as a tile; or in rows, with one block of lanes
 * after the other. */
enum chooser_windows { WINDOWS_IN_ROWS, WINDOWS_IN_STRIPS, WINDOWS_IN_BLOCKS };
enum chooser_windows chooser_windows(const struct chooser *c);
/* No window moves along the axis, as along that of images. */
bool chooser_counts_images(const struct chooser *c, int axis);
/* Cycles of a tile until windows of a short sum have come from beyond the first cache. */
double chooser_window_fetch(const struct chooser *c);

/* default_order.c: along this reduction next rows use what these load, and it can be unrolled. */
bool chooser_slides(const struct chooser *c, int reduction);

/* default_constraint.c: the tile `now` is of the kind that is wished for; the best of each kind is told. */
bool chooser_meets_constraint(const struct chooser *c);
void chooser_keep_candidate(struct chooser *c);

/* default_order.c: in c->best */
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
  return chooser_load_of(c, l)->bytes; /* of an element */
}

/* Of the tile `now`. */
static inline int64_t chooser_vectors(const struct chooser *c) {
  return c->vectors;
}

static inline int64_t chooser_rows(const struct chooser *c) {
  return c->rows;
}

/* Of a vector of the tile. */
static inline int64_t chooser_lanes(const struct chooser *c) {
  return c->now.steps < c->lanes ? c->now.steps : c->lanes;
}

/* Takes the first axis out of a set. */
static inline int chooser_pop_axis(uint32_t *axes) {
  int axis = __builtin_ctz(*axes);
  *axes &= *axes - 1;
  return axis;
}

static inline void chooser_count(struct chooser *c) {
  c->vectors = c->now.vector_axis < 0 ? 1 : up(c->now.steps, c->lanes);
  c->rows = 1;
  c->rowed = 0;
  for (int i = 0; i < c->f->t->rank; i++) {
    if (c->now.rows[i] == 1) continue;
    c->rows *= c->now.rows[i];
    if (i != c->now.vector_axis) c->rowed |= 1u << i;
  }
}

/* The best tile as the one that is looked at. */
static inline struct chooser chooser_of_best(const struct chooser *c) {
  struct chooser best = *c;
  best.now = c->best;
  chooser_count(&best);
  return best;
}

#endif
