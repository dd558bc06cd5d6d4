/* What the files of the cost share: each stage as the loops that run it and the places it reaches. */
#ifndef CANVAS_COST_COST_PARTS_H
#define CANVAS_COST_COST_PARTS_H

#include "bind/loop_tree.h"
#include "cost/schedule_cost.h"

/* What a cache takes at once: the first one a line; into the second one processors fetch lines two by
 * two, so that whoever reads every other one has both fetched. */
enum fetched { LINE, PAIR, FETCHED };

/* A load of the stage's expression, or its store: only what goes to memory. Steps are those of its path. */
struct access {
  int tensor;
  int node;                                    /* of the program; -1: the store */
  int bytes;                                   /* of an element */
  double stride[SCHEDULE_DEPTH];               /* elements that a step moves it by */
  uint32_t depends_on;                         /* steps that move it */
  uint32_t nonaffine;                          /* ... not always as far */
  uint32_t gathered;                           /* ... by what no stride tells */
  double touched[FETCHED][SCHEDULE_DEPTH + 1]; /* bytes while the first so many steps stand still */
  bool permuted;    /* a load: the lanes are those of one or two vectors, or of a few numbers */
  bool accumulates; /* a store that is read as well, in each step of a sum */
};

/* A stage: its loops, innermost last. */
struct nest {
  const struct bound_stage *stage;
  const struct program_tensor *tensor;
  int first, count;                 /* of the accesses */
  double extent[SCHEDULE_DEPTH];    /* over data: on average */
  double trips[SCHEDULE_DEPTH];     /* iterations of a loop of the code; 1 where it is none */
  double copies[SCHEDULE_DEPTH];    /* of the body in the code, of lanes their vectors; or 1 */
  double begun[SCHEDULE_DEPTH + 1]; /* iterations of all loops up to here */
  uint32_t axis_steps[PROGRAM_AXES];
  uint32_t loops; /* steps with trips */
  uint32_t sums;  /* steps that reduce */
  int lanes;      /* 1: none */
  int lane;       /* the step whose elements are the lanes; -1 */
  bool prepared;  /* before all calls: it costs nothing */
  double part;    /* of the executions there are, where the last tile is smaller */
};

struct cost_walk {
  const struct loop_tree *tree;
  const struct rates *rates;
  struct nest *nests; /* by stage */
  struct {
    VEC(struct access);
  } accesses;
  double *footprint[FETCHED]; /* by node: bytes that one iteration touches */
  double *scratch;            /* by tensor */
  bool *counted;              /* by node: its loop is paid for by another stage */
};

/* cost_places.c */
void nest_open(struct cost_walk *w, int stage);
/* The steps that an expression of the stage depends on. */
uint32_t nest_depends_on(const struct cost_walk *w, const struct nest *n, int expr);

/* cost_compute.c: addresses of the unrolled steps from `from` on. */
double nest_addresses(const struct nest *n, const struct access *a, int from);

/* cost_caches.c: the bytes touched by each loop; what a stage brings into a cache. */
void footprints_fill(struct cost_walk *w);
double nest_traffic(struct cost_walk *w, int stage, double cache, enum fetched by);
/* ... into the first one beside that, where too many lines are in too few sets. */
double nest_conflict_misses(const struct cost_walk *w, int stage);

/* cost_compute.c: compute, loads and waits, and their time together, in cycles. */
struct cycles {
  double compute, loads, waits, all;
};
struct cycles nest_cycles(struct cost_walk *w, int stage);

#endif
