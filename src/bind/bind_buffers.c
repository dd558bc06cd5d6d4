/* Buffers: the dimensions of what a stage stores during one iteration of its compute-at loop,
 * slowest first. An output has the layout of the program. Other buffers have the layout of the
 * schedule, or by default the order of the leaf's axes.
 *
 * Guarantees: every own digit of every own axis is in exactly one dimension.
 */
#include <string.h>

#include "base/saturating.h"
#include "program/program_cost.h"
#include "bind/bind.h"

enum { STACK = 256 << 10 }; /* bytes of all buffers that get the scope L1 by default */

static void add_dimension(struct bound_stage *stage, int axis, int64_t weight, int64_t extent) {
  stage->layout[stage->dims++] = (struct buffer_axis){axis, weight, extent, extent};
}

/* Marks the own digits of an axis as laid out; returns their number and their product. */
static int take_axis(struct bound_stage *stage, int axis, bool *taken, int64_t *extent) {
  int parts = 0;
  *extent = 1;
  for (int i = 0; i < stage->steps; i++) {
    if (!stage->path[i].own || stage->path[i].axis != axis) continue;
    if (taken[i]) return -1;
    taken[i] = true;
    *extent *= stage->path[i].extent;
    parts++;
  }
  return parts;
}

static void output_layout(const struct binder *b, struct bound_stage *stage) {
  const struct program_tensor *t = stage_tensor(b, stage);
  for (int i = 0; i < t->rank; i++) add_dimension(stage, i, 1, t->axes[i].size);
}

static void plain_layout(const struct binder *b, int index) {
  struct bound_stage *stage = &b->tree->stages[index];
  int rank = stage_tensor(b, stage)->rank;
  bool taken[SCHEDULE_DEPTH] = {false};
  for (int i = b->first_split[index]; i < b->first_split[index + 1]; i++) {
    int64_t extent;
    int axis = b->splits.data[i].axis;
    if (axis < rank && take_axis(stage, axis, taken, &extent) > 0)
      add_dimension(stage, axis, 1, extent);
  }
}

/* The step of the path over the level with this name; -1. */
static int named_step(const struct binder *b, const struct bound_stage *stage, const char *name) {
  for (int i = 0; i < stage->steps; i++)
    if (strcmp(level_name(b, stage->path[i].level), name) == 0) return i;
  return -1;
}

static int named_axis(const struct program_tensor *t, const char *name) {
  int i = 0;
  while (strcmp(t->axes[i].name, name) != 0) i++;
  return i;
}

static canvas_status twice(const struct binder *b, const struct bound_stage *stage,
                           const char *name) {
  return reject(b, stage_place(b, stage), "the layout of '%s' has '%.64s' twice",
                stage_name(b, stage), name);
}

static canvas_status add_level(const struct binder *b, struct bound_stage *stage, int at,
                               bool *taken) {
  const struct step *step = &stage->path[at];
  const char *name = level_name(b, step->level);
  if (!step->own)
    return reject(b, stage_place(b, stage),
                  "the layout of '%s' has loop '%s', which is around the buffer",
                  stage_name(b, stage), name);
  if (taken[at]) return twice(b, stage, name);
  taken[at] = true;
  add_dimension(stage, step->axis, step->weight, step->extent);
  return CANVAS_OK;
}

static canvas_status add_axis(const struct binder *b, struct bound_stage *stage, const char *name,
                              bool *taken) {
  int axis = named_axis(stage_tensor(b, stage), name);
  int64_t extent;
  int parts = take_axis(stage, axis, taken, &extent);
  if (parts < 0) return twice(b, stage, name);
  if (parts == 0)
    return reject(b, stage_place(b, stage),
                  "the layout of '%s' has axis '%s', whose loops are all around the buffer",
                  stage_name(b, stage), name);
  add_dimension(stage, axis, 1, extent);
  return CANVAS_OK;
}

static canvas_status told_layout(const struct binder *b, struct bound_stage *stage,
                                 const struct schedule_leaf *leaf) {
  int rank = stage_tensor(b, stage)->rank;
  bool taken[SCHEDULE_DEPTH] = {false};
  for (int i = 0; i < leaf->layout.count; i++) {
    const char *name = leaf->layout.data[i];
    int at = named_step(b, stage, name);
    TRY(at >= 0 ? add_level(b, stage, at, taken) : add_axis(b, stage, name, taken));
  }
  for (int i = 0; i < stage->steps; i++)
    if (stage->path[i].own && stage->path[i].axis < rank && !taken[i])
      return reject(b, stage_place(b, stage), "the layout of '%s' lacks loop '%s'",
                    stage_name(b, stage), level_name(b, stage->path[i].level));
  return CANVAS_OK;
}

/* Whether some loop over the level is a vector loop. */
static bool has_lanes(const struct binder *b, int level) {
  for (int i = 1; i < b->s->nodes.count; i++) {
    const struct schedule_node *n = &b->s->nodes.data[i];
    for (int j = 0; n->parent >= 0 && n->kind == NODE_LOOP && j < n->loop.count; j++)
      if (n->loop.level[j] == level && n->loop.marks & LOOP_VEC) return true;
  }
  return false;
}

/* Pads the rows of a tile to whole vectors if a stage has its lanes along them, mostly a consumer,
 * and the last vector is more than half full. Then all lanes can be loaded, and stored if the rows
 * were transposed. */
static void give_room(const struct binder *b, struct bound_stage *stage) {
  enum program_dtype dtype = stage_tensor(b, stage)->dtype;
  int64_t lanes = lanes_of(&b->tree->machine, dtype);
  if (stage->is_output || !stage->compute_at || stage->dims < 2 || dtype != PROGRAM_F32) return;
  struct buffer_axis *last = &stage->layout[stage->dims - 1];
  for (int i = 0; i < stage->steps; i++) {
    const struct step *step = &stage->path[i];
    bool is_row = step->own && step->axis == last->axis && step->weight == 1 &&
                  step->extent == last->extent && last->weight == 1;
    if (!is_row || loop_marks(b->tree, step->node) & LOOP_VEC || !has_lanes(b, step->level))
      continue;
    if (2 * (last->extent % lanes) > lanes)
      last->padded_extent = (last->extent + lanes - 1) / lanes * lanes;
  }
}

/* Rejects `:stream` on a stage that is loaded again: it should stay in a cache. */
static canvas_status check_streamed(const struct binder *b, int index) {
  const struct bound_stage *stage = &b->tree->stages[index];
  if (!stage->is_output)
    return reject(b, stage_place(b, stage), "':stream' is for outputs, '%s' is not an output",
                  stage_name(b, stage));
  for (int i = 0; i < b->reads.count; i++)
    if (b->reads.data[i].producer == index)
      return reject(b, stage_place(b, stage), "':stream' output '%s' is read by '%s'",
                    stage_name(b, stage),
                    stage_name(b, &b->tree->stages[b->reads.data[i].consumer]));
  return CANVAS_OK;
}

static canvas_status bind_layout(const struct binder *b, int index) {
  struct bound_stage *stage = &b->tree->stages[index];
  const struct schedule_leaf *leaf = &b->s->nodes.data[stage->node].leaf;
  bool streamed = leaf->scope == SCOPE_STREAM;
  bool told = leaf->layout.count || (leaf->scope != SCOPE_AUTO && !streamed);
  if (stage->is_output && told)
    return reject(b, stage_place(b, stage),
                  "'%s' is an output, the program says how it is laid out", stage_name(b, stage));
  if (streamed) TRY(check_streamed(b, index));
  if (stage->is_output)
    output_layout(b, stage);
  else if (leaf->layout.count)
    TRY(told_layout(b, stage, leaf));
  else
    plain_layout(b, index);
  give_room(b, stage);
  stage->scope = streamed ? SCOPE_AUTO : leaf->scope;
  stage->streamed = streamed;
  return CANVAS_OK;
}

/* Sets the size of the buffer, at most 2^62; 0 with open holes. */
static void set_elements(struct bound_stage *stage) {
  stage->elements = 1;
  for (int i = 0; i < stage->dims; i++)
    stage->elements = saturating_mul(stage->elements, stage->layout[i].padded_extent);
}

/* The default scope: L1 for small buffers, the heap for others. */
static void set_scope(const struct binder *b, struct bound_stage *stage, int64_t *stack) {
  int64_t bytes = program_dtype_bytes(stage_tensor(b, stage)->dtype);
  if (stage->scope != SCOPE_AUTO) return;
  stage->scope = SCOPE_HEAP;
  if (stage->is_output || stage->elements > b->tree->machine.l1 / 2 / bytes) return;
  if (stage->elements * bytes > *stack) return;
  *stack -= stage->elements * bytes;
  stage->scope = SCOPE_L1;
}

canvas_status bind_buffers(struct binder *b) {
  int64_t stack = STACK;
  for (int i = 0; i < b->tree->count; i++) {
    TRY(bind_layout(b, i));
    set_elements(&b->tree->stages[i]);
    set_scope(b, &b->tree->stages[i], &stack);
  }
  return CANVAS_OK;
}
