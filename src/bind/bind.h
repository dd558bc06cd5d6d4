/* Shared by the files that bind a schedule: the tree under construction, and error messages.
 *
 * bind_schedule.c is the table of contents. Each function below requires the results of those
 * before it, and is listed under its file.
 */
#ifndef CANVAS_BIND_BIND_H
#define CANVAS_BIND_BIND_H

#include "bind/loop_space.h"
#include "bind/loop_tree.h"

/* An axis of a stage and the levels that it is split into: `{yt, yo, yi}/y` of a leaf. */
struct axis_split {
  int stage;                        /* index into tree->stages */
  int axis;                         /* of the tensor */
  int64_t size;                     /* of the axis */
  const struct schedule_axis *text; /* with the levels */
};

/* A load of one stage by another one. */
struct read {
  int consumer, producer; /* indices into tree->stages */
  int load;               /* node of the program */
};

struct binder {
  canvas_context *ctx;
  const struct program *p;
  const struct schedule *s;
  struct loop_tree *tree;
  int *stage_of;    /* by tensor: index into tree->stages; -1: not there */
  int *depth;       /* by node; 0 for the root */
  bool *looped;     /* by level: a loop runs over it */
  int *first_split; /* by stage, and one more: its splits are [first_split[i], first_split[i+1]) */
  struct {
    VEC(struct axis_split);
  } splits;
  struct {
    VEC(struct read);
  } reads;
  struct loop_space space; /* valid once every extent is known */
};

/* The position of an error message in the text; line 0: none, the schedule was built by
 * functions. */
struct place {
  int line, column;
};

/* bind.c */
canvas_status reject(const struct binder *b, struct place at, const char *format, ...)
    PRINTF_LIKE(3, 4);
void warn(const struct binder *b, struct place at, const char *format, ...) PRINTF_LIKE(3, 4);
struct place node_place(const struct binder *b, int node);
struct place stage_place(const struct binder *b, const struct bound_stage *stage);
struct place level_place(const struct binder *b, int level);
struct place split_place(const struct binder *b, const struct axis_split *c);
const char *level_name(const struct binder *b, int level);
const char *stage_name(const struct binder *b, const struct bound_stage *stage);
const struct program_tensor *stage_tensor(const struct binder *b, const struct bound_stage *stage);
const char *loop_name(const struct binder *b, int node); /* the name of its first level */
int common_node(const struct binder *b, int x, int y);   /* the deepest node around both */

/* bind_names.c: the leaves in order, their tensors and axes, and the loads between stages. */
canvas_status bind_names(struct binder *b);

/* bind_paths.c: the loops around each stage, and the axis that each loop is a digit of. */
canvas_status bind_paths(struct binder *b);

/* bind_extents.c: the extent of every level, the weights of the digits, tails. */
canvas_status bind_extents(struct binder *b);

/* check_dyn.c: axes with data-dependent bounds have dyn loops, other axes have none. */
canvas_status check_dyn(const struct binder *b);

/* bind_compute_at.c: order, compute-at scope and start of each stage. */
canvas_status bind_compute_at(struct binder *b);

/* bind_buffers.c: the layouts of the buffers. */
canvas_status bind_buffers(struct binder *b);

/* check_marks.c: vec, para, unroll and groups. */
canvas_status check_marks(const struct binder *b);

/* check_loads.c: every load stays in its tensor, or is marked as guarded. */
canvas_status check_loads(const struct binder *b);

/* The functions below need every extent. check_regions.c: elements are computed before they are
 * read. check_limits.c: registers and buffers. */
canvas_status check_regions(struct binder *b);
canvas_status check_limits(const struct binder *b);
int64_t stage_registers(const struct loop_tree *tree, const struct bound_stage *stage);
int lanes_of(const struct machine *machine, enum program_dtype dtype);

/* bind_lanes.c: the vec loop around each stage, its compute type, the lanes of vectors. */
void bind_lanes(struct binder *b);
bool within_vec(const struct bound_stage *stage, int node, bool itself);

/* bind_unroll.c: which loops are unrolled, peeled and parallel, and the length of the code. A loop
 * marked `unroll` is unrolled, or the schedule is rejected. */
canvas_status bind_unroll(struct binder *b);
int64_t stage_copies(const struct loop_tree *tree, const struct bound_stage *stage);

/* named_places.c: whether all indices of a stage's buffer are constants after unrolling. */
struct named_places {
  int lanes;                    /* of each variable */
  int64_t lane_stride;          /* elements from one lane to the next */
  const struct bound_stage *at; /* if not: the stage or consumer whose index is not constant */
  int loop;                     /* if not: the loop that the index depends on; -1: another reason */
};
bool find_named_places(struct binder *b, const struct bound_stage *stage,
                       struct named_places *places);

/* bind_storage.c: the storage of values and accumulators, and which stages are dead. A buffer with
 * the scope `reg` is in registers, or the schedule is rejected. */
canvas_status bind_storage(struct binder *b);

#endif
