/* Default schedules: the schedule of a program that nobody tuned. A formula chooses it, mostly in less than a
 * millisecond; nothing is compiled or timed. Numbers that decide stand in cost/policy.h with unit and reason.
 *
 * 1. Edits (default_program.c). The program is edited where that pays inside the timed region, too: cheap
 *    element-wise stages are inlined, index conditions normalised, divisions by a row's value become products,
 *    operands that are read with an offset or a condition are copied to a padded buffer, reductions along
 *    the vector axis get partial sums, operands that are not contiguous are packed into panels. Before all of
 *    these, axes that lie beside each other everywhere are merged, if that is predicted to be faster. An edit that
 *    fails leaves the program as it was.
 *
 * 2. Plan (default_plan.c). Stage by stage, in the order of the program:
 *
 *      no reduction, contiguous       one flat vector loop                       DEFAULT_FLAT
 *      a reduction over odd rows      vectors along the reduction                DEFAULT_HORIZONTAL
 *      anything else                  a register tile                            DEFAULT_TILED
 *      its only element-wise consumer is computed in the tile, from registers,   DEFAULT_FUSED_CONSUMER
 *      also if it reads digits of its axes, as a matrix reads an image
 *
 *    Then stages that share rows, as in softmax, get a common loop (default_rows.c), and a producer may be
 *    computed before each tile of its consumer, for those rows only (default_buffers.c).
 *
 * 3. Tile (default_tile.c). Enumerated are: the vector axis; 1 to 8 vectors along it, or a part of one; rows along
 *    one other axis, or along two where the first is whole, as many as registers hold; and, for each
 *    short window, whether rows share what they load. For each candidate the formula (default_cycles.c)
 *    estimates the cycles of one step of the reduction,
 *
 *      max(arithmetic, load ports, latency of additions, bytes from L2)  +  a part of the bytes  +  gathers
 *
 *    and of the stage, tiles * (steps * step + stores) + packing + waiting for panels that exceed L2. A few
 *    likely tiles give a bound first; a candidate whose arithmetic alone exceeds it is skipped. The cheapest
 *    candidate wins. Tiles of stages with equal facts are remembered (default_tile_cache.c).
 *
 * 4. Loop order (default_order.c). Reductions: the largest stride outermost, but short windows outside
 *    long axes. Around the tile: cache blocks, that is panels of weights that stay in L2 for all rows, or the
 *    reverse. A long reduction is K-blocked where tiles share what a block reads (default_k_blocks.c).
 *
 * 5. Layouts. Intermediates may have the vector axis innermost, or the layout of the program. Where that
 *    makes a difference, edits and plan are made for both, and the cheaper one wins.
 *
 * 6. Loops (default_nest.c) are written from the plan, with prefetches of image rows that miss L2
 *    (default_prefetch.c), and bound. If binding rejects the schedule, it is made again without shared rows,
 *    then as a plain one, which every program has (schedule_default.c). If
 *    the edited program cannot be bound at all, the given one is scheduled (default_bind.c).
 *
 * Two families are tried before all of this and have loops of their own: Winograd's convolution, which gets no
 * edits (default_winograd.c), and programs whose rows no whole vectors divide (default_odd.c).
 *
 *     default_program.c      edits, in order; uses default_editor.c, default_reciprocals.c, default_materialize.c,
 *                            default_straight.c, default_borders.c, default_panels.c
 *     default_plan.c         the kind, tile, layout and consumer of each stage
 *     default_digits.c       consumers that read digits of their axes
 *     default_facts.c        strides of loads, guarded axes; default_phases.c: periodic conditions;
 *                            default_inside.c: the share of a reduction that is inside a padding boundary
 *     default_tile.c         candidates; default_constraint.c: those that a sketch of the tuner allows
 *     default_loads.c        footprints of loads, the same for all candidates
 *     default_cycles.c       the formula; default_windows.c: overlapping windows of images
 *     default_tile_cache.c   tiles chosen before
 *     default_k_blocks.c     K-blocking
 *     default_order.c        the order of the loops of a tile
 *     default_rows.c         loops over rows that stages share
 *     default_buffers.c      producers computed per tile of rows
 *     default_horizontal.c   vectors along the reduction
 *     default_nest.c         loops from a plan; default_prefetch.c: prefetches
 *     default_odd.c          programs of odd rows
 *     default_winograd.c     Winograd's convolution
 *     schedule_default.c     all stages together; the plain and the naive schedule
 *     default_bind.c         edits, schedule and tree in one call
 */
#ifndef CANVAS_AUTOSCHEDULE_DEFAULT_H
#define CANVAS_AUTOSCHEDULE_DEFAULT_H

#include "bind/loop_tree.h"
#include "cost/policy.h"
#include "program/program_uses.h"

enum { DEFAULT_LOADS = 12 };

/* Strides of one load node of a stage's expression, by axis of the stage: own axes, then reductions. */
struct default_load {
  int node, tensor;
  int64_t stride[PROGRAM_AXES]; /* elements per step of the axis, within a block */
  int64_t block[PROGRAM_AXES];  /* steps for which the stride holds; 0: all */
  int64_t jump[PROGRAM_AXES];   /* elements to the next block where the stride is 0; 0: not known */
  uint32_t non_affine;          /* axes with a non-affine index */
  uint32_t depends_on;          /* axes that the load depends on */
  uint32_t guarded;             /* axes in the index conditions around the load */
  bool indirect;                /* an index depends on data */
  bool packable;                /* an input whose indices are axes or digits of axes */
  int axis_of[PROGRAM_AXES]; /* packable: the axis of each index, the inner one of two; -1: none */
  bool steps_each[PROGRAM_AXES]; /* packable: each step of the axis moves the index */
  uint32_t inner, outer;         /* packable: inner and outer axes of indices that join two */
  bool cold;                     /* executed in few iterations: ignored by the formula */
};

/* What the chooser knows of a stage. */
struct default_facts {
  const struct program *p;
  int stage;
  const struct program_tensor *t; /* the stage */
  const int *order;               /* its axes in the order of its layout, slowest first */
  int loads;
  bool truncated;        /* more than DEFAULT_LOADS loads; the rest are not analysed */
  uint32_t guarded;      /* axes in index conditions */
  uint32_t non_monotone; /* axes of conditions that change more than once: no loop partitioning */
  uint32_t bounds_reduction;    /* own axes that bound a reduction */
  double bounded_share;         /* terms of the reduction within these bounds, on average */
  int operations;               /* per point; a multiply-add is one */
  int64_t period[PROGRAM_AXES]; /* axes whose remainder selects the terms of a reduction; 0: not */
  int64_t points, reduction;    /* products of the sizes of own axes, and of reductions */
  bool periodic;                /* some axis has a period */
  double inside_share
      [PROGRAM_AXES]; /* by own axis: terms of a long reduction inside a padding boundary */
  bool has_boundary;  /* some of these shares is below 1 */
  int64_t out_stride[PROGRAM_AXES]; /* strides of the store */
  struct default_load load[DEFAULT_LOADS];
};

/* Layout of a stage's tensor: its axes, slowest first, and the stored size of each, tiles rounded up. */
struct default_layout {
  int order[PROGRAM_AXES];
  int64_t extent[PROGRAM_AXES]; /* by axis */
};

/* `layout` is an array by tensor. */
void default_facts(const struct program *p, int stage, const struct default_layout *layout,
                   struct default_facts *out);
void default_row_major(const struct program_tensor *t, struct default_layout *out);
/* Elements of one vector of the stage's type. */
int default_lanes(const struct program_tensor *t, const struct machine *machine);
/* Every load has stride 0 or 1 along the axis, at least one has stride 1, and no condition depends on it. */
bool default_is_unit_stride(const struct default_facts *f, int axis);
/* A load that depends on the axis is contiguous along an own axis, too, as in a window of an image row. */
bool default_has_other_vector_axis(const struct default_facts *f, int axis);
/* Some load is invariant along an own axis, so that rows can share it, as in a matrix product. */
bool default_rows_share(const struct default_facts *f);
/* Every load depends on the own axis, as on the batch axis of a batched product. */
bool default_all_depend_on(const struct default_facts *f, int axis);
void default_strides(const struct program_tensor *t, const struct default_layout *layout,
                     int64_t *stride);
/* default_inside.c */
/* Terms that a reduction of the stage adds up, all axes together. */
double default_terms(const struct program_tensor *t);
/* A lower bound of the share of iterations for which an index condition holds. */
double default_share(const struct default_facts *f, int condition);
/* Sets `inside_share`. Returns the expression beyond the padding boundary; -1 if there is none. */
int default_find_inside_share(struct default_facts *f);
/* default_phases.c */
/* Sets `period`. */
void default_find_phases(struct default_facts *f);
/* The condition only selects a remainder of a periodic axis. */
bool default_is_phase(const struct default_facts *f, int condition);
/* Adds the index, a quotient by a period, to the load. False if it is none. */
bool default_phase_index(const struct default_facts *f, int expr, int64_t stride,
                         struct default_load *l);
/* Unrolled steps of a periodic reduction. */
int64_t default_phase_steps(const struct default_facts *f, int axis);

/* The axes of the stage from order[first] on can be one flat vector loop: the store is contiguous along them,
 * and each load is so, too, or invariant. */
bool default_flat_axis(const struct default_facts *f, int first);

/* Which operand stays in L2 while the other is streamed. */
enum default_blocks {
  BLOCKS_FORMULA, /* the formula decides */
  BLOCKS_LANES,   /* some panels of the vector axis, while all rows run */
  BLOCKS_ROWS,    /* some tiles of rows, while all panels run */
  BLOCKS_BANDS    /* some image rows with all their columns, while all panels run */
};

/* A constraint of a tuner's sketch on the stage with the largest reduction. Axes are named, because edits
 * renumber them. Infeasible constraints are ignored; the caller checks the result. */
struct default_constraint {
  bool tile;                  /* lanes, steps and rows are given */
  char lanes[PROGRAM_NAME];   /* the vector axis; "": none */
  int64_t steps;              /* steps of its inner loop */
  char rows[2][PROGRAM_NAME]; /* own axes with more than one row; "": none */
  enum default_blocks blocks;
  bool keeps_guards;         /* index conditions stay: no padded copies */
  char buffer[PROGRAM_NAME]; /* a producer that is computed per block of rows; "": none */
  int64_t partial_sums;      /* 0: the formula decides, -1: none */
  struct default_candidates *candidates; /* the best tile of each kind is added here; or NULL */
};
struct default_candidate {
  struct default_constraint constraint;
  double cycles; /* of the stage */
};
struct default_candidates {
  VEC(struct default_candidate);
};

/* A register tile and the order of the loops around it. */
struct default_tile {
  int vector_axis; /* own axis; -1: none */
  int64_t steps;   /* of its inner loop: elements of all vectors, or of a part of one */
  int64_t
      cache_block; /* tiles along block_axis that stay in L2 while other loops run; 1: no block */
  int block_axis;  /* -1: cache_block is 1 */
  bool bands;      /* the block is outside the vector axis, its tiles inside of it */
  bool streams;    /* the panels of a block are read at once: it is unrolled in the reduction */
  bool symbolic;   /* numbers are holes: axes are split even where one step remains outside */
  bool masked;     /* the last vectors overshoot the axis, under a mask */
  bool peeled;     /* the last vectors are a remainder loop */
  int64_t rows[PROGRAM_AXES]; /* unrolled steps of each own axis; 1 */
  int order[PROGRAM_AXES];    /* own axes, outermost loop first; then reductions */
  uint32_t packed;            /* loads to pack */
  uint32_t rolled;            /* own axes whose rows are a loop, not unrolled */
  uint32_t unrolled;          /* unrolled reductions */
  bool
      reuses_vectors; /* rows with vectors of their own are innermost: each vector is loaded once */
  bool phases;        /* loops are split by the periods */
  int sliding;        /* the unrolled reduction along which adjacent rows share loads; -1 */
  int64_t k_block;    /* steps of a K-block, outside all tiles; 0: none */
  double cycles;      /* predicted by the formula */
};

struct default_options {
  bool pack;        /* operands may be packed */
  bool free_layout; /* the vector axis may become contiguous in the output */
  int lanes;        /* this axis, whole, is the vector axis; -1: the best one */
  const struct default_constraint *constraint; /* or NULL */
  uint32_t non_affine; /* axes along which the fused consumer has non-affine loads */
  uint32_t outside;    /* axes of loops that stages share: neither vector axis nor rows */
  bool whole;          /* tiles divide every axis */
  bool k_blocking;     /* long reductions may be K-blocked */
  bool stored;         /* a K-blocked stage is stored with its vector axis innermost */
  bool split; /* element-wise stages may have a guarded vector axis; not under a constraint */
};

/* Cycles of a flat vector loop. */
double default_flat_cycles(const struct default_facts *f);
/* default_k_blocks.c: the stage has a long reduction that may be K-blocked. */
bool default_may_k_block(const struct default_facts *f);
/* default_tile_cache.c */
void default_choose_tile(const struct default_facts *f, const struct machine *machine,
                         struct default_options options, struct default_tile *out);
void default_clear_cache(void); /* for tests and timings */

/* ---- default_plan.c: the plan of each stage ---- */

/* Whether a tile with so many rows can be transposed in registers: they are a part of a vector, or whole vectors. */
static inline bool default_may_transpose(int64_t rows, int lanes) {
  return rows >= DEFAULT_TRANSPOSED_ROWS && (rows <= lanes || rows % lanes == 0);
}

enum default_kind {
  DEFAULT_UNUSED,         /* an input, or dead code */
  DEFAULT_FLAT,           /* no reduction; its axes from `first` on are one vector loop */
  DEFAULT_HORIZONTAL,     /* a reduction with vectors along its axis `first` */
  DEFAULT_TILED,          /* a register tile */
  DEFAULT_FUSED_CONSUMER, /* computed in the tile of its producer */
  DEFAULT_FUSED_PRODUCER, /* a reduction whose tile stands where its consumer does */
  DEFAULT_BUFFERED        /* computed before each tile of its consumer, for its rows only */
};
struct default_plan {
  enum default_kind kind;
  int first;
  struct default_tile tile;
  int consumer;   /* FUSED_PRODUCER: computed in its tile; BUFFERED: its consumer; -1 */
  bool gathered;  /* the consumer has another vector axis: it is computed element by element */
  int transposed; /* `gathered`, but in vectors along this axis of the transposed tile; -1 */
  int axis[PROGRAM_AXES]; /* the stage's axis for each axis of the consumer, reductions too; -1 */
  bool digits; /* the consumer reads the stage at digits of its axes, and `axis` is unset */
  int digit_of[PROGRAM_AXES];       /* by own axis: the fused consumer's axis */
  int64_t digit_step[PROGRAM_AXES]; /* by own axis: steps of the consumer's axis per step */
};

/* Search options. Both layouts are tried; the cheaper plan is used. */
struct default_mode {
  bool pack;           /* operands may be packed */
  bool program_layout; /* intermediates keep the layout of the program */
  bool no_digits;      /* consumers that read digits of their axes are not fused */
  const struct default_constraint *constraint; /* or NULL */
  bool *
      layout_matters; /* set where the layout makes a difference, so that both are tried; or NULL */
};

enum { DEFAULT_ROWS = 4 /* most loops that stages share */ };

/* The outermost loops that a stage shares with other stages, in order. */
struct default_shared {
  int group; /* 0: none */
  int count;
  int axis[DEFAULT_ROWS]; /* own axes */
  bool seen;              /* a stage outside of the group reads it, or it is an output */
};

/* default_horizontal.c */
/* The reduction along which vectors run, each added up at once, as its size is no multiple of a vector;
 * -1: there is none, or another plan is better. */
int default_horizontal_axis(const struct default_facts *f, const struct machine *machine);
int64_t default_horizontal_steps(const struct default_facts *f, const struct machine *machine);
double default_horizontal_cycles(const struct default_facts *f, const struct machine *machine,
                                 int axis);

/* So many bytes fit into no cache. */
bool default_is_beyond_l3(const struct machine *machine, double bytes);

/* A prefetch: the loop over the own axis `axis` (-1: none) prefetches what it reads `steps` iterations later. */
struct default_prefetch {
  int axis, steps;
};

struct default_prefetch default_prefetch_rows(const struct default_facts *f,
                                              const struct machine *machine,
                                              const struct default_tile *tile);

/* The plan of a program: layout, plan and shared are arrays by tensor. */
struct default_plans {
  const struct program *p;
  int constrained; /* the stage that the constraint is about; -1 */
  const struct machine *machine;
  struct default_mode mode;
  struct program_uses uses; /* of `p` */
  struct default_layout *layout;
  struct default_plan *plan;
  struct default_shared *shared;
  bool *constant; /* by tensor: constant-folded at load time, so not timed */
  double saved;   /* cycles that shared loops save */
};
void default_plan_all(struct default_plans *plans, const struct program *p,
                      const struct machine *machine, struct default_mode mode);
/* Predicted cycles of all stages but the constant-folded ones. */
double default_plan_cycles(const struct default_plans *plans);
void default_plan_free(struct default_plans *plans);
/* The plan with other shared loops; its `saved` is 0. */
void default_plan_shared(struct default_plans *out, const struct default_plans *plans,
                         const struct default_shared *shared);
/* default_rows.c: adds the shared loops that pay. */
void default_share_rows(struct default_plans *plans);
/* default_buffers.c: moves producers before the tiles of their consumers where that pays. */
void default_buffer_stages(struct default_plans *plans);
/* The consumer's axis for axis i of the stage; -1. */
int default_consumer_axis(const struct default_plan *plan, int i);
/* Counts the loads of `tensor` in a consumer's expression, if each index of each is an axis. Sets axis[i], the tensor's
 * axis for axis i of the consumer. Returns -1 if a load is otherwise. */
int default_loads_as_is(const struct program *p, int expr, int tensor, int *axis);
/* default_digits.c: the consumer reads the stage at digits of its axes, each element once. Sets `digit_of` and
 * `digit_step`. */
bool default_reads_digits(const struct program *p, int consumer, int stage,
                          struct default_plan *plan);
/* Sets them for a consumer that reads whole axes: `axis` of its `count` axes is set. */
void default_set_digits(struct default_plan *plan, int count);
/* Own axes that are digits of the consumer's axis, slowest first. Returns how many. */
int default_digits(const struct default_plan *plan, int rank, int axis, int *digits);
/* The only stage that reads this one; -1 if there are none or several. */
int default_only_consumer(const struct default_plans *plans, int stage);

/* ---- default_nest.c: the loops of a stage, added to the end of a schedule ---- */

/* What a level of the schedule stands for. Stages share a level where it means the same to both. Two
 * axes of one stage never do, even where a part of one is named like the other. */
struct default_meaning {
  int stage, axis; /* 1 + the stage whose loops it is last used in, and which of their axes it is */
  int64_t size;
  const char *dyn;      /* the axis that bounds it; NULL: a number does */
  enum level_tail tail; /* of its axis */
  int open;    /* 1 + the stage that alone uses it, as the tuner will change its number; 0 */
  bool shared; /* a loop over rows that stages share */
};

struct default_maker {
  const struct program *p;
  struct schedule *s;
  const struct machine *machine;       /* NULL: the naive schedule */
  const struct default_layout *layout; /* by tensor */
  struct {
    VEC(struct default_meaning);
  } meanings;                          /* by level */
  const struct default_shared *shared; /* by tensor; NULL: no stage shares loops */
  const struct default_plan *plan;     /* by tensor; NULL: no stage is buffered */
  int enclosing;          /* the innermost loop that the current stages share; 0: none */
  int rows[DEFAULT_ROWS]; /* levels of these loops */
};

int default_level(struct default_maker *m, const char *stage, const char *name,
                  struct default_meaning meaning);
int default_axis_level(struct default_maker *m, const struct program_tensor *t, int axis);

/* Opens the loops that the stages of this one's group share. */
void default_open_rows(struct default_maker *m, int stage);

/* A tiled stage, with its fused consumer. */
void default_tiled_nest(struct default_maker *m, const struct default_facts *f,
                        const struct default_plan *plan);
/* A reduction with vectors along its axis plan->first. */
void default_horizontal_nest(struct default_maker *m, const struct default_facts *f,
                             const struct default_plan *plan);
/* A stage without reductions, as one vector loop along its axes from plan->first on. */
void default_flat_nest(struct default_maker *m, const struct default_facts *f,
                       const struct default_plan *plan);

/* default_odd.c: the schedule of a program of rows that no whole vectors divide; NULL if it is none. */
struct schedule *default_odd_rows(const struct program *p, const struct machine *machine);
/* Edits of its element-wise stages may make it such a program. */
bool default_may_have_odd_rows(const struct program *p, const struct machine *machine);

/* The layout that a program's edits were chosen for. */
enum default_layout_mode {
  LAYOUT_EITHER, /* the cheaper one */
  LAYOUT_FREE,   /* the vector axis innermost */
  LAYOUT_OF_PROGRAM
};
struct default_edited {
  struct program *program; /* NULL: there are no edits */
  enum default_layout_mode layout;
};

/* schedule_default.c: predicted cycles of an edited program. */
double default_cycles(const struct program *p, const struct machine *machine,
                      enum default_layout_mode layout);

/* default_program.c */
/* The program with merged axes (program_merged), if it is predicted to be faster; else NULL. */
struct program *default_merged(const struct program *p, const struct machine *machine);
/* All edits, merged axes among them; NULL if there are none. */
struct default_edited default_edit(const struct program *p, const struct machine *machine);
struct program *default_program(const struct program *p, const struct machine *machine);

/* schedule_default.c: schedule and tree of a program that was edited for a layout. */
canvas_status default_bind_layout(canvas_context *ctx, const struct program *p,
                                  const struct machine *machine, enum default_layout_mode layout,
                                  struct schedule **schedule, struct loop_tree **tree);

/* default_bind.c: edits, schedule and tree of a program. If the edited program cannot be bound, the given one is. */
struct default_bound {
  struct program *edited; /* NULL: the given program stays as it is */
  struct schedule *schedule;
  struct loop_tree *tree; /* of `edited`, or of the given program */
};
canvas_status default_bind(canvas_context *ctx, const struct program *p,
                           const struct machine *machine, struct default_bound *out);

/* ---- default_constraint.c ---- */

/* The stage that a constraint is about: the most operations in reductions, or in all if there are none. */
int default_constrained_stage(const struct program *p, const bool *needed);
bool default_meets_constraint(const struct default_facts *f, const struct default_tile *tile,
                              const struct default_constraint *constraint);

/* Every kind of tile of that stage, the best first. Edits up to panels are made under the constraint. */
void default_list_candidates(const struct program *p, const struct machine *machine,
                             const struct default_constraint *constraint,
                             struct default_candidates *out);

/* A program edited under a constraint, and its cheapest schedule. */
struct default_made {
  struct program *program;
  struct schedule *schedule;
  int stage;                /* of `program`: the stage that the constraint is about */
  struct default_tile tile; /* of that stage */
  double cycles;            /* of all stages */
};
/* False: the constraint cannot be met, or the schedule is illegal. */
bool default_make(const struct program *p, const struct machine *machine,
                  const struct default_constraint *constraint, struct default_made *out);
/* schedule_default.c: the schedule of an edited program under a constraint; sets stage and tile. NULL: as above. */
struct schedule *schedule_constrained(const struct program *p, const struct machine *machine,
                                      const struct default_constraint *constraint,
                                      struct default_made *out);

#endif
