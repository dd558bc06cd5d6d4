/* A schedule bound to its program and machine: names resolved, extents known, every rule checked.
 *
 * The nodes have the same numbers as in the schedule. Binding derives once what the text implies,
 * for code, explain, cost and edits:
 *
 * - extents: of each level; an open level is the whole axis, or what the other levels leave of it;
 * - path: the loops around each stage, and the digit of an axis that each is. An axis split into
 *   {a, b, c} has the value (a*B + b)*C + c, where A, B, C are the extents;
 * - compute_at: the deepest loop that a stage shares with all its consumers (the root for outputs).
 *   The stage's buffer lives for one iteration of compute_at. It stores the digits whose loops are
 *   inside compute_at, the stage's *own* loops; digits outside are fixed during that iteration and
 *   add no dimension. With A outside and B, C own, the place along the axis is b*C + c;
 * - start: the outermost reduction loop of the stage. The accumulators are initialised before it
 *   and complete after it; their shape is given by the spatial loops inside it.
 *
 * Rules, beside names and extents:
 * - a stage is complete before its consumers;
 * - a consumer reads only elements computed since the last iteration of the shared loops began
 *   (checked by intervals, after subtracting the shared digits);
 * - own loops are the inner digits of their axis;
 * - a loop around a stage that is no digit of the stage's axes is outside compute_at; it recomputes
 *   the stage (`recomputed` counts how often);
 * - a vec loop runs along a spatial axis and contains only unrolled loops and loops with an
 *   explicit number. Its extent is a multiple of the lanes, or a power of two below them, or it is
 *   masked or peeled and may then be longer than its axis. A folded group of such axes may be a vec
 *   loop, too;
 * - a dyn loop is not vec, unroll or para, and is inside all digits of the axis it is a function
 *   of;
 * - a para loop is not a reduction and has no para loop around it.
 */
#ifndef CANVAS_BIND_LOOP_TREE_H
#define CANVAS_BIND_LOOP_TREE_H

#include "program/program.h"
#include "bind/machine.h"
#include "bind/storage.h"
#include "schedule/schedule.h"

/* One level on the path to a stage: a loop, or a member of a group. */
struct step {
  int node;   /* of the schedule and of the tree */
  int level;  /* of the schedule */
  int member; /* position in the node's group; 0 without a group */
  int axis;   /* of the stage (reductions after own axes); -1: the loop is no digit of the stage */
  int64_t extent; /* of a dyn loop: its maximum */
  int64_t weight; /* stride of this level along the axis */
  bool dyn;       /* a loop with data-dependent bounds */
  bool own;       /* inside compute_at */
};

/* One dimension of a buffer: index = value of the axis / weight % extent. */
struct buffer_axis {
  int axis;
  int64_t weight; /* 1 for the innermost digits */
  int64_t extent;
  int64_t padded_extent; /* extent, or rounded up to whole vectors */
};

struct bound_stage {
  int node;                         /* the leaf */
  int tensor;                       /* of the program */
  struct step path[SCHEDULE_DEPTH]; /* the levels around the stage, outermost first */
  int steps;                        /* of the path */
  int compute_at;                   /* node: loop or root */
  int start;                        /* node of the outermost reduction loop; -1: no reduction */
  bool tail[PROGRAM_AXES];          /* by axis: the digits overshoot its size */
  enum level_tail tail_kind[PROGRAM_AXES]; /* by axis: mask or peel, where they do */
  bool is_output;
  struct buffer_axis
      layout[SCHEDULE_DEPTH]; /* of the buffer, slowest first; of an output its axes */
  int dims;                   /* of the layout */
  int64_t elements;           /* of the buffer */
  int64_t recomputed;         /* how often each element is computed; 1: once */
  enum buffer_scope scope;
  bool streamed; /* an output whose whole vectors are written by non-temporal stores */

  /* valid once every extent is known: */
  int vec;                              /* node of the vec loop around the stage; -1: none */
  enum program_dtype compute_dtype;     /* of the expression: f32 or f64 */
  enum program_dtype accumulator_dtype; /* of the accumulators: f32 or f64 */
  bool dead;                            /* dead code: no output depends on it */
  struct storage value;                 /* of its elements */
  struct storage sum;                   /* of its accumulators, if not in `value` */
  bool accumulates_in_value;            /* it reduces, and accumulates in `value` */
  bool declares_init; /* the accumulators are variables initialised where declared */
};

struct bound_loop {
  int64_t extent; /* product over the members; of a dyn loop its maximum; 0: a leaf or the root */
  bool dyn;

  /* valid once every extent is known: */
  int lanes;          /* of a vec loop: elements per vector */
  bool unrolled;      /* its iterations (of a vec loop, its vectors) are unrolled */
  bool peels;         /* a remainder loop of its own follows the full tiles */
  int peels_below;    /* maximum nesting of peeled loops inside */
  bool parallel;      /* its iterations run in parallel */
  int64_t copies;     /* copies of its body in the code */
  int64_t statements; /* of the loop in the code; 1 for a leaf, all for the root */
};

/* A warning: legal, but probably not intended. Line 0: the schedule was built by functions. */
struct bind_warning {
  int line, column;
  char *text;
};

struct loop_tree {
  const struct program *program;   /* borrowed */
  const struct schedule *schedule; /* borrowed, or `made` */
  struct schedule *made; /* the schedule, if the tree owns it (an edit made it); else NULL */
  struct machine machine;
  int64_t *extents;           /* by level; 0: an open hole */
  struct bound_loop *loops;   /* by node */
  struct bound_stage *stages; /* in the order of the text */
  int count;                  /* of stages */
  bool *guarded;              /* by node of the program: loads that code must guard (px_copy) */
  bool *holes;                /* by level: it needs a number from outside */
  int open_holes;             /* holes without a number; if not 0, only the structure was checked */
  struct {
    VEC(struct bind_warning);
  } warnings; /* in the order of the stages */
};

/* bind_schedule.c (with bind_*.c, check_*.c): binds and checks. Borrows program and schedule, which
 * must not change. Error messages have line and column of the schedule's text. */
canvas_status loop_tree_bind(canvas_context *ctx, const struct program *program,
                             const struct schedule *schedule, const struct machine *machine,
                             struct loop_tree **out);
void loop_tree_free(struct loop_tree *tree);             /* NULL is fine */
struct schedule *loop_tree_take(struct loop_tree *tree); /* returns `made` and frees the tree */
/* Prints a line for each warning: "warning: line 2, column 5: ..." */
void loop_tree_print_warnings(const struct loop_tree *tree, struct buf *out);
int loop_tree_stage(const struct loop_tree *tree,
                    int tensor);                             /* index into stages; -1: not there */
unsigned loop_marks(const struct loop_tree *tree, int node); /* 0 for leaves and the root */
int stage_step(const struct bound_stage *stage,
               int node); /* first step of the node; `steps`: none */
/* The extent of a step; of a vec loop, rounded up to whole vectors. */
int64_t step_padded_extent(const struct loop_tree *tree, const struct step *step);
/* Whether the step is a digit of an own axis of the stage, not of a reduction. */
bool stage_spatial(const struct loop_tree *tree, const struct bound_stage *stage, int step);

/* schedule_default.c: a schedule that is correct for every program, without a search. The naive one
 * computes each stage at the root in program order, with its reductions innermost. The heuristic
 * one uses the tiles of src/autoschedule/default.h. A level is named STAGE_AXIS if two stages
 * disagree about AXIS. */
struct schedule *schedule_default(const struct program *program, bool heuristic,
                                  const struct machine *machine);

#endif
