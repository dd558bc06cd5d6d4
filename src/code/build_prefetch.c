/* What a loop will read some iterations later: the addresses that move with it. See build.h.
 *
 * The loops inside it read a stretch from there on, a row of a tile: every cache line of it is asked
 * for, as far as they are few. */
#include <stdlib.h>

#include "code/build.h"
#include "program/program_cost.h"

enum { LINES = 16 }; /* of one stretch, at most */

struct address {
  int tensor, place;
};

struct seen {
  VEC(struct address);
};

static bool is_seen(const struct builder *b, const struct seen *seen, int tensor, int place) {
  for (int i = 0; i < seen->count; i++)
    if (seen->data[i].tensor == tensor && px_same(b->px, seen->data[i].place, place)) return true;
  return false;
}

/* A buffer that is another one in each iteration of the loop: nothing of it can be ahead. */
static bool lives_inside(const struct builder *b, int stage, int node) {
  int at = b->tree->stages[stage].compute_at;
  while (at > 0 && at != node) at = b->tree->schedule->nodes.data[at].parent;
  return at == node;
}

/* ---- stretches ---------------------------------------------------------------------------------- */

/* The loops around the stage within the node become axes, from which the answer on. */
static int open_inner(struct builder *b, const struct bound_stage *bound, int node) {
  int first = b->space.open;
  for (int i = stage_step(bound, node); i < bound->steps; i++) {
    const struct step *s = &bound->path[i];
    bool inner = s->node != node && b->space.digit[s->level] < 0 && s->extent > 1 && !s->dyn;
    if (inner && b->space.open < PROGRAM_AXES)
      b->space.digit[s->level] = loop_space_axis(&b->space, "inner", 0, s->extent);
  }
  return first;
}

static void close_inner(struct builder *b, const struct bound_stage *bound, int node, int first) {
  for (int i = stage_step(bound, node); i < bound->steps; i++) {
    int digit = b->space.digit[bound->path[i].level];
    const struct px_node *n = digit >= 0 ? &b->px->nodes.data[digit] : NULL;
    if (bound->path[i].node != node && n && n->op == PX_AXIS && n->integer >= first)
      b->space.digit[bound->path[i].level] = -1;
  }
}

/* The place where all inner axes are 0. */
static int first_place(struct builder *b, int place, int first) {
  int axis[PROGRAM_AXES];
  for (int i = 0; i < b->space.open; i++)
    axis[i] = i < first ? program_axis(b->px, b->space.loops, i) : px_int(b->px, 0);
  return px_copy(b->px, b->px, place, &(struct px_map){.axis = axis});
}

/* How many elements in a row the inner axes read. */
static int64_t stretch(struct builder *b, int place, int first) {
  int64_t length = 1, step[PROGRAM_AXES], extent[PROGRAM_AXES];
  int count = 0;
  for (int axis = first; axis < b->space.open; axis++) {
    if (!build_stride(b, place, axis, &step[count])) continue;
    extent[count] = b->px->tensors.data[b->space.loops].axes[axis].size;
    count += step[count] > 0;
  }
  for (int i = 0; i < count; i++) {
    if (step[i] > length) continue;
    length += step[i] * (extent[i] - 1);
    step[i] = INT64_MAX; /* taken */
    i = -1;
  }
  return length;
}

/* Asks for each line from the element on. */
static void prefetch_lines(struct builder *b, int tensor, int place, int64_t length) {
  int64_t bytes = program_dtype_bytes(b->program->tensors.data[tensor].dtype);
  int64_t each = b->tree->machine.line / bytes;
  for (int64_t i = 0; i < LINES && (i == 0 || i * each < length); i++) {
    int at = build_index(b, px_add(b->px, place, px_int(b->px, i * each)));
    code_prefetch(b->code, code_element(b->code, b->tensor_variable[tensor], at));
  }
}

/* ---- loads -------------------------------------------------------------------------------------- */

/* The addresses below an expression that move with `axes`, of arrays that are not on the stack; of
 * the lanes of a vector that of the first. Axes from `inner` on are of the loops inside. */
static void prefetch_loads(struct builder *b, int expr, int node, uint32_t axes, int inner,
                           struct seen *seen) {
  if (expr < 0) return;
  struct px_node n = b->px->nodes.data[expr];
  if (n.op != PX_LOAD) {
    for (int i = 0; i < 3; i++) prefetch_loads(b, n.arg[i], node, axes, inner, seen);
    return;
  }
  int place = b->px->indices.data[n.first], stage = b->space.stage_of[n.tensor];
  bool far = stage < 0 || b->tree->stages[stage].value.kind == STORAGE_HEAP ||
             b->tree->stages[stage].is_output;
  if (!far || (stage >= 0 && lives_inside(b, stage, node)) || px_range(b->px, place).data ||
      !(px_range(b->px, place).axes & axes))
    return;
  if (b->lane >= 0) place = build_at_zero(b, place, b->lane);
  if (px_mentions(b->px, place, b->lane)) return;
  int64_t length = stretch(b, place, inner);
  place = first_place(b, place, inner);
  if (is_seen(b, seen, n.tensor, place)) return;
  VEC_PUSH(seen, ((struct address){n.tensor, place}));
  prefetch_lines(b, n.tensor, place, length);
}

/* How many iterations of the loop, a group as one, came before; `axes`: those that count them. */
static int iteration(struct builder *b, const struct schedule_loop *loop, uint32_t *axes) {
  int at = px_int(b->px, 0);
  *axes = 0;
  for (int i = 0; i < loop->count; i++) {
    int digit = b->space.digit[loop->level[i]];
    at = px_add(b->px, px_mul(b->px, at, px_int(b->px, b->tree->extents[loop->level[i]])), digit);
    *axes |= px_range(b->px, digit).axes;
  }
  return at;
}

/* What the loop will load some iterations later. */
void build_prefetch(struct builder *b, int node) {
  const struct schedule_loop *loop = &build_node(b, node)->loop;
  int digits[GROUP_MOST];
  uint32_t axes;
  if (!loop->prefetch) return;
  struct space_checkpoint m = loop_space_checkpoint(&b->space);
  struct seen seen = {0};
  for (int i = 0; i < loop->count; i++) digits[i] = b->space.digit[loop->level[i]];
  int at = iteration(b, loop, &axes);
  build_group(b, loop, px_add(b->px, at, px_int(b->px, loop->prefetch)));
  for (int i = 0; i < b->tree->count && axes; i++) {
    const struct bound_stage *bound = &b->tree->stages[i];
    if (stage_step(bound, node) == bound->steps || bound->dead) continue;
    int inner = open_inner(b, bound, node);
    prefetch_loads(b, space_expr(&b->space, bound, b->program->tensors.data[bound->tensor].body),
                   node, axes, inner, &seen);
    close_inner(b, bound, node, inner);
    b->space.open = inner;
  }
  for (int i = 0; i < loop->count; i++) b->space.digit[loop->level[i]] = digits[i];
  loop_space_rollback(&b->space, m);
  free(seen.data);
}
