/* What a loop will read some iterations later: the addresses that move with it. See build.h.
 *
 * The loops inside it read a stretch from there on, a row of a tile: every cache line of it is asked for, where they
 * are few. A longer one, a panel of weights, is asked for piece by piece in the steps of the innermost loop, so that it
 * comes from memory while this one is computed:
 *
 *     ob:pf(1) => h => k => ..          prefetch &WP[(ob + 1)*panel + (h*K + k)*piece]
 */
#include <stdlib.h>

#include "code/build.h"
#include "program/program_cost.h"

enum { LINES = 16 }; /* of one stretch, at most */

/* Elements in a row of a tensor, from an index on. */
struct stretch {
  int tensor, place;
  int64_t length;
};

struct seen {
  VEC(struct stretch);
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
static int64_t stretch_length(struct builder *b, int place, int first) {
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

/* ---- pieces of a stretch ------------------------------------------------------------------------- */

/* Where pieces are asked for: the innermost loop of the stage within the node that is one in the code; -1: none. */
static int innermost_loop(const struct builder *b, const struct bound_stage *bound, int node) {
  int found = -1;
  for (int i = stage_step(bound, node); i < bound->steps; i++) {
    int inner = bound->path[i].node;
    const struct schedule_loop *loop = &build_node(b, inner)->loop;
    if (inner == node || bound->path[i].extent == 1) continue;
    if (bound->path[i].dyn || loop->count > 1) return -1;
    if (!b->tree->loops[inner].unrolled && !(loop->marks & LOOP_VEC)) found = inner;
  }
  return found;
}

static bool is_long(const struct builder *b, int tensor, int64_t length) {
  int64_t bytes = program_dtype_bytes(b->program->tensors.data[tensor].dtype);
  return length * bytes > LINES * b->tree->machine.line;
}

/* Steps of the stage from the node to where the walk stands: how many there are, which one this is (an expression). Their
 * digits are put aside. */
static int64_t put_aside(struct builder *b, const struct bound_stage *bound, int node, int *digits,
                         int *now) {
  int64_t count = 1;
  *now = px_int(b->px, 0);
  for (int i = stage_step(bound, node); i < bound->steps; i++) {
    const struct step *s = &bound->path[i];
    digits[i] = b->space.digit[s->level];
    if (s->node == node || digits[i] < 0) continue;
    *now = px_add(b->px, px_mul(b->px, *now, px_int(b->px, s->extent)), digits[i]);
    count *= s->extent;
    b->space.digit[s->level] = -1;
  }
  return count;
}

static void put_back(struct builder *b, const struct bound_stage *bound, int node,
                     const int *digits) {
  for (int i = stage_step(bound, node); i < bound->steps; i++)
    if (bound->path[i].node != node) b->space.digit[bound->path[i].level] = digits[i];
}

/* What this step of `count` asks for. */
static void prefetch_piece(struct builder *b, const struct stretch *s, int64_t count, int now) {
  int64_t piece = s->length / count, several = count / s->length;
  if (several > 1) now = px_div(b->px, now, px_int(b->px, several));
  if (piece * count < s->length) piece++;
  prefetch_lines(b, s->tensor, px_add(b->px, s->place, px_mul(b->px, now, px_int(b->px, piece))),
                 piece);
}

/* ---- loads -------------------------------------------------------------------------------------- */

/* What is read below an expression and moves with `axes`, of arrays that are not on the stack; of
 * the lanes of a vector from the first on. Axes from `inner` on are of the loops inside. */
static void find_stretches(struct builder *b, int expr, int node, uint32_t axes, int inner,
                           struct seen *seen) {
  if (expr < 0) return;
  struct px_node n = b->px->nodes.data[expr];
  if (n.op != PX_LOAD) {
    for (int i = 0; i < 3; i++) find_stretches(b, n.arg[i], node, axes, inner, seen);
    return;
  }
  int place = b->px->indices.data[n.first], stage = b->space.stage_of[n.tensor];
  bool far = stage < 0 || b->tree->stages[stage].value.kind == STORAGE_HEAP ||
             b->tree->stages[stage].is_output;
  if (!far || (stage >= 0 && lives_inside(b, stage, node)) || px_range(b->px, place).data ||
      !(px_axes(b->px, place) & axes))
    return;
  if (b->lane >= 0) place = build_at_zero(b, place, b->lane);
  if (px_mentions(b->px, place, b->lane)) return;
  int64_t length = stretch_length(b, place, inner);
  place = first_place(b, place, inner);
  if (!is_seen(b, seen, n.tensor, place))
    VEC_PUSH(seen, ((struct stretch){n.tensor, place, length}));
}

/* How many iterations of the loop, a group as one, came before; `axes`: those that count them. */
static int iteration(struct builder *b, const struct schedule_loop *loop, uint32_t *axes) {
  int at = px_int(b->px, 0);
  *axes = 0;
  for (int i = 0; i < loop->count; i++) {
    int digit = b->space.digit[loop->level[i]];
    at = px_add(b->px, px_mul(b->px, at, px_int(b->px, b->tree->extents[loop->level[i]])), digit);
    *axes |= px_axes(b->px, digit);
  }
  return at;
}

/* The walk stands as many iterations on as the loop asks ahead; answers the axes that count them. */
static uint32_t step_ahead(struct builder *b, const struct schedule_loop *loop, int *digits) {
  uint32_t axes;
  for (int i = 0; i < loop->count; i++) digits[i] = b->space.digit[loop->level[i]];
  int at = iteration(b, loop, &axes);
  build_group(b, loop, px_add(b->px, at, px_int(b->px, loop->prefetch)));
  return axes;
}

static void step_back(struct builder *b, const struct schedule_loop *loop, const int *digits) {
  for (int i = 0; i < loop->count; i++) b->space.digit[loop->level[i]] = digits[i];
}

/* What the stage reads where the walk stands, and the loops in the node go on. Answers how many were seen before. */
static int stage_stretches(struct builder *b, const struct bound_stage *bound, int node,
                           uint32_t axes, struct seen *seen) {
  int before = seen->count, inner = open_inner(b, bound, node);
  int expr = space_expr(&b->space, bound, b->program->tensors.data[bound->tensor].body);
  find_stretches(b, expr, node, axes, inner, seen);
  close_inner(b, bound, node, inner);
  b->space.open = inner;
  return before;
}

/* In the innermost loop of a stage: pieces of what a loop around it will load. */
static void prefetch_pieces(struct builder *b, int node, int outer) {
  const struct schedule_loop *loop = &build_node(b, outer)->loop;
  int digits[GROUP_MOST], aside[SCHEDULE_DEPTH], now;
  struct space_checkpoint m = loop_space_checkpoint(&b->space);
  struct seen seen = {0};
  uint32_t axes = step_ahead(b, loop, digits);
  for (int i = 0; i < b->tree->count && axes; i++) {
    const struct bound_stage *bound = &b->tree->stages[i];
    if (bound->dead || innermost_loop(b, bound, outer) != node) continue;
    int64_t count = put_aside(b, bound, outer, aside, &now);
    int at = stage_stretches(b, bound, outer, axes, &seen);
    put_back(b, bound, outer, aside);
    for (; at < seen.count; at++)
      if (is_long(b, seen.data[at].tensor, seen.data[at].length))
        prefetch_piece(b, &seen.data[at], count, now);
  }
  step_back(b, loop, digits);
  loop_space_rollback(&b->space, m);
  free(seen.data);
}

/* What the loop will load some iterations later; what is long only where no loop inside asks for its pieces. */
static void prefetch_rows(struct builder *b, int node) {
  const struct schedule_loop *loop = &build_node(b, node)->loop;
  int digits[GROUP_MOST];
  struct space_checkpoint m = loop_space_checkpoint(&b->space);
  struct seen seen = {0};
  uint32_t axes = step_ahead(b, loop, digits);
  for (int i = 0; i < b->tree->count && axes; i++) {
    const struct bound_stage *bound = &b->tree->stages[i];
    if (stage_step(bound, node) == bound->steps || bound->dead) continue;
    int at = stage_stretches(b, bound, node, axes, &seen);
    bool in_pieces = innermost_loop(b, bound, node) >= 0;
    for (; at < seen.count; at++) {
      const struct stretch *s = &seen.data[at];
      if (!in_pieces || !is_long(b, s->tensor, s->length))
        prefetch_lines(b, s->tensor, s->place, s->length);
    }
  }
  step_back(b, loop, digits);
  loop_space_rollback(&b->space, m);
  free(seen.data);
}

void build_prefetch(struct builder *b, int node) {
  for (int outer = build_node(b, node)->parent; outer > 0; outer = build_node(b, outer)->parent)
    if (build_node(b, outer)->loop.prefetch) prefetch_pieces(b, node, outer);
  if (build_node(b, node)->loop.prefetch) prefetch_rows(b, node);
}
