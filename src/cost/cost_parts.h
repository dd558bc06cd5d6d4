/* Shared by the files of the cost model: the loops of each stage, and the addresses it accesses. */
#ifndef CANVAS_COST_COST_PARTS_H
#define CANVAS_COST_COST_PARTS_H

#include "bind/loop_tree.h"
#include "cost/schedule_cost.h"

/* The unit of a transfer: a line into L1; two adjacent lines into L2, even if only one is read. */
enum fetched { LINE, PAIR, FETCHED };

/* A load of the stage's expression, or its store, if it goes to memory. Bits of step sets are steps
 * of the stage's path. */
struct access {
  int tensor;
  int node;                      /* the load in the program; -1: the store */
  int bytes;                     /* bytes of an element */
  double stride[SCHEDULE_DEPTH]; /* elements per step */
  uint32_t depends_on;           /* steps that the address depends on */
  uint32_t nonaffine;            /* steps with a varying stride */
  uint32_t gathered;             /* steps whose address depends on data, or has no stride */
  double touched[FETCHED][SCHEDULE_DEPTH + 1]; /* bytes, by number of fixed outer steps */
  bool permuted;    /* lanes come from one or two vectors, or from a few numbers */
  bool accumulates; /* an accumulator in memory: stored and loaded in each step */
};

/* A stage and its loops, innermost last. */
struct nest {
  const struct bound_stage *stage;
  const struct program_tensor *tensor;
  int first, count;              /* range of its accesses */
  double extent[SCHEDULE_DEPTH]; /* iterations, on average for loops over data */
  double trips[SCHEDULE_DEPTH];  /* iterations in the code; 1 if unrolled */
  double copies[SCHEDULE_DEPTH]; /* copies of the body by unrolling; vectors on the vector axis */
  double begun[SCHEDULE_DEPTH + 1]; /* product of the trips of outer steps */
  uint32_t axis_steps[PROGRAM_AXES];
  uint32_t loops; /* steps that are loops in the code */
  uint32_t sums;  /* steps of reductions */
  int lanes;      /* elements of a vector; 1: no vector axis */
  int lane;       /* step of the vector axis; -1: none */
  bool prepared;  /* packed at load time: no part of a call */
  double part;    /* share of the iterations that exist: last tiles may be smaller */
};

struct cost_walk {
  const struct loop_tree *tree;
  const struct rates *rates;
  struct nest *nests; /* by stage */
  struct {
    VEC(struct access);
  } accesses;
  double *footprint[FETCHED]; /* bytes that one iteration touches, by node */
  double *scratch;            /* by tensor; zeros between uses */
  bool *counted;              /* by node: another stage counts the loop */
};

/* cost_places.c */
void nest_open(struct cost_walk *w, int stage);
/* Steps that an expression of the stage depends on. */
uint32_t nest_depends_on(const struct cost_walk *w, const struct nest *n, int expr);

/* cost_compute.c: number of addresses of the unrolled steps from `from` on. */
double nest_addresses(const struct nest *n, const struct access *a, int from);

/* cost_caches.c: footprints of all loops; bytes that a stage brings into a cache. */
void footprints_fill(struct cost_walk *w);
double nest_traffic(struct cost_walk *w, int stage, double cache, enum fetched by);
/* Bytes that conflict misses bring into L1 in addition. */
double nest_conflict_misses(const struct cost_walk *w, int stage);

/* cost_compute.c: cycles of arithmetic, of loads and stores, of waits, and of all together. */
struct cycles {
  double compute, loads, waits, all;
};
struct cycles nest_cycles(struct cost_walk *w, int stage);

#endif
