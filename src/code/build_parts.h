/* The builder: a walk over the loops of a bound schedule that makes the tree of code.h. These are
 * its state and its files; users include build.h.
 *
 * The walk opens loops in a loop space (loop_space.h), one by one. A digit of an axis is a constant
 * if its loop is unrolled. The simplifier and px_range decide conditions by the ranges of the open
 * loops.
 *
 *     build.c            the plan, then the walk
 *     build_loops.c      the walk: loops, guards, parallel regions
 *     build_open.c       opens and closes statements with children, groups of loops, vectors
 *     build_buffers.c    variables and buffers: declarations and allocations
 *     build_reduction.c  where accumulators begin and end
 *     build_prefetch.c   prefetches of data that a loop reads some iterations later
 *     build_beyond.c     the end of an axis that tiles do not divide: guards, partial vectors
 *     build_stage.c      the statement of a stage, scalar or in vectors
 *     build_value.c      expressions: indices, values, the conditions among them
 *     build_form.c       which expressions are uniform, vectors, or gathers
 *     build_index.c      open axes, and the stride of an index along one
 */
#ifndef CANVAS_CODE_BUILD_PARTS_H
#define CANVAS_CODE_BUILD_PARTS_H

#include "bind/loop_space.h"
#include "bind/loop_tree.h"
#include "code/code.h"

#define CODE_EXPRS (4 << 20) /* most expressions of a function */

/* Storage of a stage's values or of its accumulators, and the variable for it. */
struct stored {
  int variable;
  struct storage at;
};

struct stage_plan {
  struct stored value; /* its values */
  struct stored sum;   /* its accumulators, unless the stage accumulates in its values (direct) */
};

struct node_plan {
  int counter;   /* the counter of several levels that are one loop */
  int stage;     /* the only stage below; -1: several */
  bool declares; /* its body begins with declarations */
};

/* A variable of the tree's own: gathered lanes. */
struct own_variable {
  int number;
  struct code_type type;
  int variable;
};

struct builder {
  canvas_context *ctx;
  const struct loop_tree *tree;
  const struct program *program;
  const struct schedule *schedule;
  struct arena arena;
  struct code *code;

  /* plan */
  struct stage_plan *stages; /* by position in the tree */
  struct node_plan *nodes;   /* by node */
  int *tensor_variable;      /* by tensor */
  int *counter;              /* by level: its variable */

  /* state of the walk */
  bool copied;  /* the block gets several copies of the current body */
  int parallel; /* number of the next loops that are collapsed into one parallel loop */
  bool region;  /* the parallel loop belongs to an enclosing region */
  struct loop_space space;
  struct program *px;              /* the program of `space` */
  int axis_variable[PROGRAM_AXES]; /* by axis of `px`: its counter */
  uint64_t *guarded;               /* by stage: axes that an enclosing condition guards */
  int lanes;                       /* of the current vec loop; 1: scalars */
  int lane_steps;   /* lanes that are steps of the loop: fewer than `lanes` at its end */
  int lane;         /* the axis that counts the lanes; -1: none */
  bool one_by_one;  /* lanes are computed one by one in a loop over `lane` */
  int active_lanes; /* index expression: number of active lanes of the statement; -1: all */
  int gathered;
  int lane_variable, points_variable;
  struct {
    VEC(struct own_variable);
  } own;
  enum program_dtype computed; /* element type of the statement's arithmetic */
  struct {
    VEC(uint8_t);
  } known; /* facts about its expressions, by node: build_form.c */
};

static inline const struct schedule_node *build_node(const struct builder *b, int node) {
  return &b->schedule->nodes.data[node];
}

/* build_open.c */
struct block {
  int statement;
  bool copied;
};
struct block build_opened(struct builder *b,
                          int statement); /* the next statements are its children */
struct block build_open_for(struct builder *b, int counter, int low, int high, int64_t step);
struct block build_open_range(struct builder *b, int counter, int64_t from, int64_t to,
                              int64_t step);
struct block build_open_data_for(struct builder *b, const struct bound_stage *bound,
                                 const struct program_axis *axis, int counter);
void build_close(struct builder *b, struct block block);
void build_group(struct builder *b, const struct schedule_loop *loop, int at);
void build_clear_group(struct builder *b, const struct schedule_loop *loop);
/* Opens the vector of a vec loop that starts at `base`, with `steps` steps left. */
void build_open_lanes(struct builder *b, int node, int base, int64_t steps);
void build_close_lanes(struct builder *b, int node);

/* build_loops.c */
void build_walk(struct builder *b); /* the function's body */

/* build_buffers.c */
void build_variables(struct builder *b);
void build_declare(struct builder *b, const struct stored *h, int start);
void build_declare_at(struct builder *b, int compute_at);
int build_heaps(const struct builder *b, int region); /* number of buffers that it allocates */
int build_allocate(struct builder *b, int region);    /* opens a CODE_ALLOCATE */
int build_lanes_variable(struct builder *b, int number, struct code_type type);

/* build_reduction.c */
void build_begin_sums(struct builder *b, int stage);
void build_end_sums(struct builder *b, int stage);

/* build_prefetch.c */
void build_prefetch(struct builder *b, int node);

/* build_beyond.c */
struct beyond {
  int always;       /* guard of the reduction axes */
  int rows;         /* guard of the other axes that are the same in all lanes */
  int each;         /* guard of each lane, if `active_lanes` cannot express it; -1 */
  int active_lanes; /* index: number of lanes inside; may be negative or exceed the vector; -1: all
                     */
  uint64_t axes, lanes; /* axes guarded by `rows`, and axes of lanes */
};
struct beyond build_beyond(struct builder *b, int stage, bool reductions);
bool build_is_private(const struct stored *to);
bool build_computes_beyond(const struct builder *b, int stage, int node);
bool build_body_beyond(struct builder *b, int stage, const struct beyond *beyond, int *body);
bool build_loads_inside(struct builder *b, int expr, bool uniform);
bool build_place_inside(struct builder *b, const struct stored *h, int place);

/* build_stage.c */
enum phase { PHASE_INIT, PHASE_UPDATE, PHASE_FINALIZE }; /* of a reduction */
void build_statement(struct builder *b, int stage, enum phase phase);
int build_start_value(struct builder *b, enum program_reducer reducer, enum program_dtype element,
                      int lanes);

/* build_form.c */
enum form {
  FORM_UNIFORM, /* all lanes have the same value, a scalar */
  FORM_VECTOR,
  FORM_GATHER /* lanes that a loop must gather */
};
bool build_in_vectors(const struct builder *b);
enum form build_form(struct builder *b, int expr);
enum form build_storage_form(struct builder *b, const struct stored *h, int place);
bool build_decided(const struct builder *b, int condition,
                   bool value); /* whether it is that constant */
const struct stored *build_stored_of(struct builder *b, int tensor, struct stored *input);

/* build_value.c */
int build_index(struct builder *b, int expr);
int build_value(struct builder *b, int expr);
int build_vector(struct builder *b, int expr); /* a vector, also of a uniform value */
int build_condition(struct builder *b, int expr);
int build_stored(struct builder *b, const struct stored *h, int place);
int build_lane_loop(struct builder *b); /* opens a loop over the lanes of the statement */

/* build_index.c */
int build_open_axis(struct builder *b, int counter, int64_t first, int64_t size);
bool build_stride(const struct builder *b, int index, int axis, int64_t *stride);
int build_at_zero(struct builder *b, int index, int axis);

#endif
