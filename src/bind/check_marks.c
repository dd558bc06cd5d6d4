/* Marks: which loops may be vectorised, run in parallel or be unrolled. */
#include "bind/bind.h"

/* The innermost loop around a node that has the mark; -1. */
static int marked_around(const struct binder *b, int node, unsigned mark) {
  for (node = b->s->nodes.data[node].parent; node > 0; node = b->s->nodes.data[node].parent)
    if (loop_marks(b->tree, node) & mark) return node;
  return -1;
}

/* Checks of a loop, alone and with the loops around it. */

/* Whether the loop is unrolled, or has extents given in the text. */
static bool is_unrolled(const struct binder *b, int node) {
  const struct schedule_loop *loop = &b->s->nodes.data[node].loop;
  if (loop->marks & (LOOP_VEC | LOOP_PARA)) return false;
  if (loop->marks & LOOP_UNROLL) return true;
  for (int i = 0; i < loop->count; i++)
    if (b->s->levels.data[loop->level[i]].kind != EXTENT_INT) return false;
  return true;
}

static canvas_status check_loop(const struct binder *b, int node) {
  const struct schedule_loop *loop = &b->s->nodes.data[node].loop;
  int vec = marked_around(b, node, LOOP_VEC);
  if (vec >= 0 && !is_unrolled(b, node))
    return reject(
        b, node_place(b, node),
        "loop '%s' stands inside vec loop '%s' and is neither unrolled nor of a given extent",
        loop_name(b, node), loop_name(b, vec));
  int para = marked_around(b, node, LOOP_PARA);
  if ((loop->marks & LOOP_PARA) && para >= 0)
    return reject(b, node_place(b, node), "parallel loop '%s' stands inside parallel loop '%s'",
                  loop_name(b, node), loop_name(b, para));
  return CANVAS_OK;
}

/* Checks of a loop with the stages inside it. */

/* Whether the last vector of the loop may be partial. */
static bool has_tail(const struct binder *b, int node) {
  const struct schedule_loop *loop = &b->s->nodes.data[node].loop;
  for (int i = 0; i < loop->count; i++)
    if (b->s->levels.data[loop->level[i]].tail != TAIL_NONE) return true;
  return false;
}

static canvas_status check_lanes(const struct binder *b, const struct bound_stage *stage,
                                 const struct step *step) {
  int lanes = lanes_of(&b->tree->machine, stage_tensor(b, stage)->dtype);
  int64_t extent = b->tree->loops[step->node].extent;
  bool power = (extent & (extent - 1)) == 0;
  if (!extent || extent % lanes == 0 || (power && extent < lanes) || has_tail(b, step->node))
    return CANVAS_OK;
  return reject(
      b, node_place(b, step->node),
      "vec loop '%s' has %lld steps: '%s' needs a multiple of its %d lanes, a power of two "
      "below, ':mask' or ':peel'",
      level_name(b, step->level), (long long)extent, stage_name(b, stage), lanes);
}

static canvas_status check_vec(const struct binder *b, const struct bound_stage *stage,
                               const struct step *step) {
  if (step->axis < 0)
    return reject(b, node_place(b, step->node), "vec loop '%s' is in no axis of '%s' inside it",
                  level_name(b, step->level), stage_name(b, stage));
  return check_lanes(b, stage, step);
}

static canvas_status check_step(const struct binder *b, const struct bound_stage *stage,
                                const struct step *step) {
  unsigned marks = loop_marks(b->tree, step->node);
  if (marks & LOOP_VEC) TRY(check_vec(b, stage, step));
  if ((marks & LOOP_PARA) && step->axis >= stage_tensor(b, stage)->rank)
    return reject(b, node_place(b, step->node), "parallel loop '%s' reduces '%s'",
                  level_name(b, step->level), stage_name(b, stage));
  return CANVAS_OK;
}

canvas_status check_marks(const struct binder *b) {
  for (int i = 1; i < b->s->nodes.count; i++)
    if (b->depth[i] && b->s->nodes.data[i].kind == NODE_LOOP) TRY(check_loop(b, i));
  for (int i = 0; i < b->tree->count; i++) {
    const struct bound_stage *stage = &b->tree->stages[i];
    for (int j = 0; j < stage->steps; j++) TRY(check_step(b, stage, &stage->path[j]));
  }
  return CANVAS_OK;
}
