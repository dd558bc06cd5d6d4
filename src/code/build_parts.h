/* The code of a bound schedule: the walk over its loops that makes the tree of code.h.
 *
 * Loops are opened in a loop space (bind/loop_space.h), one by one: a digit of an axis is a constant
 * where its loop is unrolled, and the simplifier and px_range decide what the loops decide.
 *
 *     build.c            from the plan to the tree
 *     build_loops.c      the walk: loops, guards, parallel regions
 *     build_open.c       what it opens: statements with children, the digits of a group
 *     build_buffers.c    variables and buffers: their declarations and allocations
 *     build_reduction.c  where accumulators begin and end
 *     build_prefetch.c   what a loop will read some iterations later
 *     build_beyond.c     what lies beyond the axes: conditions, lanes, what is computed all the same
 *     build_stage.c      one point of a stage: its statement, in lanes where it stands in a vec loop
 *     build_value.c      expressions: indices, values, the conditions among them
 *     build_form.c     which of them are uniform, vectors, or to be gathered
 *     build_index.c      axes that stand open, and how an index moves along one
 */
#ifndef CANVAS_CODE_BUILD_PARTS_H
#define CANVAS_CODE_BUILD_PARTS_H

#include "bind/loop_space.h"
#include "bind/loop_tree.h"
#include "code/code.h"

#define CODE_EXPRS (4 << 20) /* most expressions of a function */

/* Where values live, and their variable: those of a stage, or its accumulators. */
struct stored {
  int variable;
  struct storage at;
};

struct stage_plan {
  struct stored value; /* its values */
  struct stored sum;   /* its accumulators, unless they are its values: direct */
};

struct node_plan {
  int counter;   /* the variable, where several levels are one loop */
  int stage;     /* the only stage below; -1: there are several */
  bool declares; /* its body begins with variables */
};

/* A variable of the tree's own: lanes that are gathered. */
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

  /* where the walk stands */
  bool copied;  /* the block holds several copies of what is built now */
  int parallel; /* so many loops to come run as one, in parallel */
  bool region;  /* ... by the threads of a region around */
  struct loop_space space;
  struct program *px;              /* the program of `space` */
  int axis_variable[PROGRAM_AXES]; /* by axis of it: the counter */
  uint64_t *guarded;               /* by stage: axes whose condition stands around already */
  int lanes;                       /* of its vectors here; 1: scalars */
  int kept;                        /* so many of them are steps of their loop */
  int lane;                        /* the axis that counts the lanes; -1: none */
  bool one_by_one;                 /* lanes are computed one by one, `lane` is a loop */
  int first; /* of the statement: an index, how many lanes it is of; -1: all */
  int gathered;
  int lane_variable, points_variable;
  struct {
    VEC(struct own_variable);
  } own;
  enum program_dtype computed; /* in which the statement is */
  struct {
    VEC(uint8_t);
  } known; /* of its expressions, by node: build_form.c */
};

static inline const struct schedule_node *build_node(const struct builder *b, int node) {
  return &b->schedule->nodes.data[node];
}

/* build_open.c */
struct block {
  int statement;
  bool copied;
};
struct block build_opened(struct builder *b, int statement); /* its children come next */
struct block build_open_for(struct builder *b, int counter, int low, int high, int64_t step);
struct block build_open_range(struct builder *b, int counter, int64_t from, int64_t to,
                              int64_t step);
struct block build_open_data_for(struct builder *b, const struct bound_stage *bound,
                                 const struct program_axis *axis, int counter);
void build_close(struct builder *b, struct block block);
void build_group(struct builder *b, const struct schedule_loop *loop, int at);
void build_clear_group(struct builder *b, const struct schedule_loop *loop);
/* A vector of steps of a vec loop from `base` on; so many steps are left there. */
void build_open_lanes(struct builder *b, int node, int base, int64_t steps);
void build_close_lanes(struct builder *b, int node);

/* build_loops.c */
void build_walk(struct builder *b); /* the function's body */

/* build_buffers.c */
void build_variables(struct builder *b);
void build_declare(struct builder *b, const struct stored *h, int start);
void build_declare_at(struct builder *b, int compute_at);
int build_heaps(const struct builder *b, int region); /* how many buffers it allocates */
int build_allocate(struct builder *b, int region);    /* opens a CODE_ALLOCATE */
int build_lanes_variable(struct builder *b, int number, struct code_type type);

/* build_reduction.c */
void build_begin_sums(struct builder *b, int stage);
void build_end_sums(struct builder *b, int stage);

/* build_prefetch.c */
void build_prefetch(struct builder *b, int node);

/* build_beyond.c */
struct beyond {
  int always; /* the condition of the reduction axes */
  int rows;   /* ... of the others, of what is the same in all lanes */
  int each;   /* ... of each lane, where `first` cannot say it; -1 */
  int first; /* an index: so many lanes lie within; it may be negative, or more than there are; -1: all */
  uint64_t axes, lanes; /* the axes of `rows`, of lanes */
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
  FORM_UNIFORM, /* all lanes have the same value: it is a scalar */
  FORM_VECTOR,
  FORM_GATHER /* lanes that only a loop can gather */
};
bool build_in_vectors(const struct builder *b);
enum form build_form(struct builder *b, int expr);
enum form build_storage_form(struct builder *b, const struct stored *h, int place);
bool build_decided(const struct builder *b, int condition, bool value); /* it is that constant */
const struct stored *build_stored_of(struct builder *b, int tensor, struct stored *input);

/* build_value.c */
int build_index(struct builder *b, int expr);
int build_value(struct builder *b, int expr);
int build_vector(struct builder *b, int expr); /* of all lanes, also if they are the same */
int build_condition(struct builder *b, int expr);
int build_stored(struct builder *b, const struct stored *h, int place);
int build_lane_loop(struct builder *b); /* opens a loop over the lanes of the statement */

/* build_index.c */
int build_open_axis(struct builder *b, int counter, int64_t first, int64_t size);
bool build_stride(const struct builder *b, int index, int axis, int64_t *stride);
int build_at_zero(struct builder *b, int index, int axis);

#endif
