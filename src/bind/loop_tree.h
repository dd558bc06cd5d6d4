/* A schedule bound to its program: every name looked up, every extent a number, every rule checked.
 *
 * The nodes are those of the schedule, by the same numbers. What the text implies is worked out
 * here once, so that emit, explain and the edits need no second opinion:
 *
 * - extents: of each level; an open one is the whole axis, or what its siblings leave of it;
 * - path: the loops around each stage, and which digit of which axis each is: an axis that is
 *   covered by {a, b, c} has the value (a*B + b)*C + c, where A, B, C are extents;
 * - compute_at: the deepest loop that a stage shares with all the stages that read it (the root for
 *   outputs). Its buffer lives as long as one iteration of compute_at and holds the parts of the axes
 *   whose loops stand inside compute_at (its *own* loops); those outside have one value for the lifetime
 *   and take no room. With A outside and B, C own, the place along the axis is b*C + c;
 * - start: the outermost loop that reduces the stage; there its accumulators begin, and after it
 *   they are complete. What is inside start and not a reduction is their shape.
 *
 * Legality, beside names and extents: a stage stands before all that read it, and complete; what
 * is read lies within what was computed since the loops that both share last moved on (each read,
 * bounded by intervals, after taking away the shared digits); loops that are own are the inner
 * digits of their axis; a loop in scope that is no digit of the stage stands outside compute_at, and
 * then the stage is computed again and again (`recomputed` says how often).
 *
 * Within a vec loop only unrolled loops and loops of an explicit INT may stand; it is a spatial
 * axis; its extent is a multiple of the lanes, or a power of two below them, or masked or peeled, and then it
 * may be longer than its axis. A folded group of such axes is a vec loop, too. A dyn loop
 * is neither vec nor unroll nor para, and stands inside all the digits of the axis it is a function
 * of. A para loop reduces nothing and has no para loop above it.
 */
#ifndef CANVAS_BIND_LOOP_TREE_H
#define CANVAS_BIND_LOOP_TREE_H

#include "program/program.h"
#include "bind/machine.h"
#include "bind/storage.h"
#include "schedule/schedule.h"

/* One level on the path to a stage: a loop, or a member of a group. */
struct step {
  int node;       /* of the schedule, and of the tree */
  int level;      /* of the schedule */
  int member;     /* of the node's group; 0 */
  int axis;       /* of the program's stage (reduction axes after its own); -1: no digit of it */
  int64_t extent; /* dyn: the most */
  int64_t weight; /* one step of this level moves the axis by so much */
  bool dyn;
  bool own; /* inside compute_at */
};

/* One dimension of a buffer: the digits of `axis` from `weight` on, `extent` of them. */
struct buffer_axis {
  int axis;
  int64_t weight; /* place = value / weight % extent; 1 for the innermost digits */
  int64_t extent;
  int64_t padded_extent; /* elements that it takes of the buffer: extent, or whole vectors */
};

struct bound_stage {
  int node;                         /* the leaf */
  int tensor;                       /* of the program */
  struct step path[SCHEDULE_DEPTH]; /* outermost first */
  int steps;
  int compute_at;          /* node: loop or root */
  int start;               /* node of the outermost reduction loop; -1: no reduction */
  bool tail[PROGRAM_AXES]; /* the digits of this axis overshoot its size: a condition is needed */
  enum level_tail tail_kind[PROGRAM_AXES]; /* and how it is met */
  bool is_output;
  struct buffer_axis layout[SCHEDULE_DEPTH]; /* slowest first; of outputs the tensor's own axes */
  int dims;
  int64_t elements;   /* of the buffer */
  int64_t recomputed; /* times that each element is computed; 1 */
  enum buffer_scope scope;
  bool streamed; /* an output whose whole vectors are written around the caches */

  /* with every number known */
  int vec;                              /* node: the vec loop around it, -1 */
  enum program_dtype compute_dtype;     /* f32 or f64: its expression; stored is the tensor's */
  enum program_dtype accumulator_dtype; /* ... its sums */
  bool dead;            /* nothing that reaches an output reads it: it is not computed */
  struct storage value; /* of its elements */
  struct storage sum; /* of its accumulators; none: it does not reduce, or accumulates in `value` */
  bool accumulates_in_value; /* it reduces and accumulates in `value` */
  bool declares_init;        /* ... in variables that are declared with what sums begin from */
};

struct bound_loop {
  int64_t extent; /* product of the members'; dyn: the most; 0 for leaves and the root */
  bool dyn;

  /* with every number known */
  int lanes;          /* vec: of a vector */
  bool unrolled;      /* its iterations, of a vec loop its vectors, are code of their own */
  bool peels;         /* the rest of its tiles is code of its own */
  int peels_below;    /* such loops in one another */
  bool parallel;      /* its iterations run in parallel */
  int64_t copies;     /* so often its body stands in the code */
  int64_t statements; /* that it and what is in it make; of a leaf 1, of the root all */
};

/* What is legal and yet hardly meant; line 0: of what was built by hand. */
struct bind_warning {
  int line, column;
  char *text;
};

struct loop_tree {
  const struct program *program;   /* borrowed */
  const struct schedule *schedule; /* borrowed, or `made` */
  struct schedule *made;           /* of the tree itself, where an edit made it; or NULL */
  struct machine machine;
  int64_t *extents;           /* by level; 0: a hole that is still open */
  struct bound_loop *loops;   /* by node */
  struct bound_stage *stages; /* in the order of the text */
  int count;
  bool *guarded; /* by node of the program: loads that code must guard (px_copy) */
  bool *holes;   /* by level: it needs a number from outside */
  int open_holes; /* holes without a number: structure was checked, sizes were not. 0: all is checked */
  struct {
    VEC(struct bind_warning);
  } warnings; /* in the order of the stages */
};

/* bind_schedule.c (with bind_*.c, check_*.c): binds and checks. Both are borrowed and must stay as
 * they are. The error message of a failure has line and column of the schedule's text. */
canvas_status loop_tree_bind(canvas_context *ctx, const struct program *program,
                             const struct schedule *schedule, const struct machine *machine,
                             struct loop_tree **out);
void loop_tree_free(struct loop_tree *tree);             /* NULL is fine */
struct schedule *loop_tree_take(struct loop_tree *tree); /* what an edit made; frees the tree */
/* A line for each warning: "warning: line 2, column 5: ..." */
void loop_tree_print_warnings(const struct loop_tree *tree, struct buf *out);
int loop_tree_stage(const struct loop_tree *tree, int tensor); /* index into stages, -1: an input */
unsigned loop_marks(const struct loop_tree *tree, int node);   /* 0 for leaves and the root */
int stage_step(const struct bound_stage *stage, int node);     /* its first step; `steps`: none */
int64_t step_padded_extent(const struct loop_tree *tree,
                           const struct step *step); /* its extent; of lanes, in whole vectors */
bool stage_spatial(const struct loop_tree *tree, const struct bound_stage *stage,
                   int step); /* the step is a digit of an axis that does not reduce */

/* schedule_default.c: correct for every program, without search. The naive one: each stage at the root in
 * program order, its own loops outside its reductions. The heuristic one: the tiles of
 * autoschedule/default.h. Levels are named STAGE_AXIS where two stages would disagree about AXIS. */
struct schedule *schedule_default(const struct program *program, bool heuristic,
                                  const struct machine *machine);

#endif
