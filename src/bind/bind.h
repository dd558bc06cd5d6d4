/* What the files that bind a schedule share: the tree in the making, and the way to reject.
 *
 * bind_schedule.c is the table of contents; each function below requires what those before it made,
 * and stands under the name of its file.
 */
#ifndef CANVAS_BIND_BIND_H
#define CANVAS_BIND_BIND_H

#include "bind/loop_space.h"
#include "bind/loop_tree.h"

/* An axis of a stage, and the levels that it is made of: `{yt, yo, yi}/y` of a leaf. */
struct axis_split {
  int stage; /* of tree->stages */
  int axis;  /* of the tensor */
  int64_t size;
  const struct schedule_axis *text;
};

/* A load of one stage's value by another; both of tree->stages. */
struct read {
  int consumer, producer;
  int load; /* the node of the program */
};

struct binder {
  canvas_context *ctx;
  const struct program *p;
  const struct schedule *s;
  struct loop_tree *tree;
  int *stage_of;    /* by tensor: its place in tree->stages, -1 */
  int *depth;       /* by node: the root has 0 */
  bool *looped;     /* by level: some loop carries it */
  int *first_split; /* by stage, and one more: its splits are [first_split[i], first_split[i+1]) */
  struct {
    VEC(struct axis_split);
  } splits;
  struct {
    VEC(struct read);
  } reads;
  struct loop_space space; /* where every number is known */
};

/* Where an error message points; line 0: the thing was built by hand, the error message points nowhere. */
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
const char *loop_name(const struct binder *b, int node); /* of its first level */
int common_node(const struct binder *b, int x, int y);   /* the deepest that is around both */

/* bind_names.c: the leaves in order, their tensors and axes; what each stage reads. */
canvas_status bind_names(struct binder *b);

/* bind_paths.c: the loops around each stage and the axis that each is a part of. */
canvas_status bind_paths(struct binder *b);

/* bind_extents.c: a number for every level, the weights of the digits, tails. */
canvas_status bind_extents(struct binder *b);

/* check_dyn.c: loops over data stand for the axes over data, and nothing else does. */
canvas_status check_dyn(const struct binder *b);

/* bind_compute_at.c: order, compute-at scope and start of each stage. */
canvas_status bind_compute_at(struct binder *b);

/* bind_buffers.c: the layout of what is kept. */
canvas_status bind_buffers(struct binder *b);

/* check_marks.c: vec, para, unroll and groups. */
canvas_status check_marks(const struct binder *b);

/* check_loads.c: what is loaded lies in its tensor, or is marked to be guarded. */
canvas_status check_loads(const struct binder *b);

/* The rest needs every number.
 * check_regions.c: what is read was computed. check_limits.c: registers and buffers. */
canvas_status check_regions(struct binder *b);
canvas_status check_limits(const struct binder *b);
int64_t stage_registers(const struct loop_tree *tree, const struct bound_stage *stage);
int lanes_of(const struct machine *machine, enum program_dtype dtype);

/* bind_lanes.c: the vec loop around each stage, what it is computed in, the lanes of vectors. */
void bind_lanes(struct binder *b);
bool within_vec(const struct bound_stage *stage, int node, bool itself);

/* bind_unroll.c: what is unrolled, peeled and parallel, and how long the code is: what is marked
 * `unroll` is unrolled, or rejected. */
canvas_status bind_unroll(struct binder *b);
int64_t stage_copies(const struct loop_tree *tree, const struct bound_stage *stage);

/* named_places.c: whether all places of a stage's buffer are constants, once what is unrolled is. */
struct named_places {
  int lanes; /* of each variable */
  int64_t lane_stride;
  const struct bound_stage
      *at;  /* false: where a place is none, the stage or one that reads it ... */
  int loop; /* ... and the loop that it depends on; -1: for another reason */
};
bool find_named_places(struct binder *b, const struct bound_stage *stage,
                       struct named_places *places);

/* bind_storage.c: where values and accumulators live, and which are dead; what is told to live in
 * registers does, or is rejected. */
canvas_status bind_storage(struct binder *b);

#endif
