/* Prefetches: a loop marked pf(n) prefetches the data that it reads n iterations later. See
 * build_parts.h.
 *
 * The loops inside it read a contiguous range, such as a row of a tile. A short range is prefetched
 * whole, a cache line per prefetch. A longer one, such as a weight panel, is prefetched in pieces
 * by the iterations of the innermost loop, so that it is loaded while the current panel is used:
 *
 *     ob:pf(1) => h => k => ..          prefetch &WP[(ob + 1)*panel + (h*K + k)*piece]
 *
 * Data in several ranges, such as a row of an image whose channels are blocked, is prefetched in
 * the iterations that read each range:
 *
 *     h:pf(1) => w => co => ci => ..    prefetch &X[co*image + (h + 1)*row + (w*C + ci)*piece]
 */
#include <stdlib.h>

#include "code/build_parts.h"
#include "program/program_cost.h"

enum { LINES = 16 }; /* most cache lines of one range that is prefetched whole */

/* A contiguous range of elements of a tensor, from an index on. */
struct data_range {
  int tensor, place;
  int64_t length;
  uint32_t range_axes; /* inner axes whose iterations read other ranges */
  bool several;        /* there were such axes, all of them loops in the code */
};

/* The loops inside the prefetching one, as axes. */
struct inner {
  int first, end;         /* the axes */
  int step[PROGRAM_AXES]; /* of the stage's path, by axis */
  const int *digits;      /* by step: the current digits; NULL: the walk is outside these loops */
};

struct seen {
  VEC(struct data_range);
};

static bool is_seen(const struct builder *b, const struct seen *seen, int tensor, int place) {
  for (int i = 0; i < seen->count; i++)
    if (seen->data[i].tensor == tensor && px_same(b->px, seen->data[i].place, place)) return true;
  return false;
}

/* Each iteration of the loop has its own buffer, of which nothing can be prefetched. */
static bool lives_inside(const struct builder *b, int stage, int node) {
  int at = b->tree->stages[stage].compute_at;
  while (at > 0 && at != node) at = b->tree->schedule->nodes.data[at].parent;
  return at == node;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

/* The stage's loops inside the node become axes. */
static void open_inner(struct builder *b, const struct bound_stage *bound, int node,
                       struct inner *in) {
  in->first = b->space.open;
  for (int i = stage_step(bound, node); i < bound->steps; i++) {
    const struct step *s = &bound->path[i];
    bool inner = s->node != node && b->space.digit[s->level] < 0 && s->extent > 1 && !s->dyn;
    if (!inner || b->space.open >= PROGRAM_AXES) continue;
    in->step[b->space.open] = i;
    b->space.digit[s->level] = loop_space_axis(&b->space, "inner", 0, s->extent);
  }
}

static void close_inner(struct builder *b, const struct bound_stage *bound, int node, int first) {
  for (int i = stage_step(bound, node); i < bound->steps; i++) {
    int digit = b->space.digit[bound->path[i].level];
    const struct px_node *n = digit >= 0 ? &b->px->nodes.data[digit] : NULL;
    if (bound->path[i].node != node && n && n->op == PX_AXIS && n->integer >= first)
      b->space.digit[bound->path[i].level] = -1;
  }
}

/* The index with 0 for the inner axes and the current digits for `range_axes`. */
static int first_place(struct builder *b, int place, const struct inner *in, uint32_t range_axes) {
  int axis[PROGRAM_AXES];
  for (int i = 0; i < b->space.open; i++)
    axis[i] = i < in->first         ? program_axis(b->px, b->space.loops, i)
              : range_axes >> i & 1 ? in->digits[in->step[i]]
                                    : px_int(b->px, 0);
  return px_copy(b->px, b->px, place, &(struct px_map){.axis = axis});
}

static bool is_loop(const struct builder *b, int node) {
  return !b->tree->loops[node].unrolled && !(build_node(b, node)->loop.marks & LOOP_VEC);
}

static bool is_long(const struct builder *b, int tensor, int64_t length) {
  int64_t bytes = program_dtype_bytes(b->program->tensors.data[tensor].dtype);
  return length * bytes > LINES * b->tree->machine.line;
}

/* `range_axes` if all of them are loops in the code. None if one is not, as parts of a range would
 * not be prefetched, if a range is shorter than a cache line, or if all ranges together are few
 * lines. */
static uint32_t loops_of(const struct builder *b, const struct bound_stage *bound,
                         const struct data_range *s, const struct inner *in) {
  int64_t bytes = program_dtype_bytes(b->program->tensors.data[s->tensor].dtype);
  int64_t all = s->length;
  if (2 * bound->steps > PROGRAM_AXES) return 0; /* there may be too few axes for all of them */
  for (int i = in->first; i < b->space.open; i++) {
    if (!(s->range_axes >> i & 1)) continue;
    if (!is_loop(b, bound->path[in->step[i]].node)) return 0;
    all *= b->px->tensors.data[b->space.loops].axes[i].size;
  }
  bool few = s->length * bytes < b->tree->machine.line || !is_long(b, s->tensor, all);
  return few ? 0 : s->range_axes;
}

/* The range that the inner axes read, and the axes that move to another range. */
static struct data_range data_range_of(struct builder *b, const struct bound_stage *bound,
                                       int tensor, int place, const struct inner *in) {
  struct data_range s = {.tensor = tensor, .length = 1};
  int64_t step[PROGRAM_AXES];
  for (int i = in->first; i < b->space.open; i++)
    if (build_stride(b, place, i, &step[i]) && step[i] > 0) s.range_axes |= 1u << i;
  for (int i = in->first; i < b->space.open; i++) {
    if (!(s.range_axes >> i & 1) || step[i] > s.length) continue;
    s.length += step[i] * (b->px->tensors.data[b->space.loops].axes[i].size - 1);
    s.range_axes &= ~(1u << i);
    i = in->first - 1;
  }
  s.range_axes = loops_of(b, bound, &s, in);
  s.several = s.range_axes != 0;
  for (int i = in->first; i < b->space.open; i++)
    if (!in->digits || in->digits[in->step[i]] < 0) s.range_axes &= ~(1u << i);
  s.place = first_place(b, place, in, s.range_axes);
  return s;
}

/* Prefetches each cache line from the element on. */
static void prefetch_lines(struct builder *b, int tensor, int place, int64_t length) {
  int64_t bytes = program_dtype_bytes(b->program->tensors.data[tensor].dtype);
  int64_t each = b->tree->machine.line / bytes;
  for (int64_t i = 0; i < LINES && (i == 0 || i * each < length); i++) {
    int at = build_index(b, px_add(b->px, place, px_int(b->px, i * each)));
    code_prefetch(b->code, code_element(b->code, b->tensor_variable[tensor], at));
  }
}

/* ---- pieces of a range ----------------------------------------------------------------------- */

/* The loop that prefetches pieces: the stage's innermost loop inside the node that is one in the
 * code; -1: none. */
static int innermost_loop(const struct builder *b, const struct bound_stage *bound, int node) {
  int found = -1;
  for (int i = stage_step(bound, node); i < bound->steps; i++) {
    int inner = bound->path[i].node;
    if (inner == node || bound->path[i].extent == 1) continue;
    if (bound->path[i].dyn || build_node(b, inner)->loop.count > 1) return -1;
    if (is_loop(b, inner)) found = inner;
  }
  return found;
}

/* Saves the digits of the stage's steps from the node on. */
static void put_aside(struct builder *b, const struct bound_stage *bound, int node, int *digits) {
  for (int i = stage_step(bound, node); i < bound->steps; i++) {
    const struct step *s = &bound->path[i];
    digits[i] = b->space.digit[s->level];
    if (s->node != node) b->space.digit[s->level] = -1;
  }
}

static void put_back(struct builder *b, const struct bound_stage *bound, int node,
                     const int *digits) {
  for (int i = stage_step(bound, node); i < bound->steps; i++)
    if (bound->path[i].node != node) b->space.digit[bound->path[i].level] = digits[i];
}

static bool reads_another(const struct data_range *s, const struct inner *in, int step) {
  for (int i = in->first; i < in->end; i++)
    if (s->range_axes >> i & 1 && in->step[i] == step) return true;
  return false;
}

/* The number of iterations that read the range, and which one is the current (an expression). */
static int64_t steps_of(struct builder *b, const struct bound_stage *bound, int node,
                        const struct data_range *s, const struct inner *in, int *now) {
  int64_t count = 1;
  *now = px_int(b->px, 0);
  for (int i = stage_step(bound, node); i < bound->steps; i++) {
    const struct step *step = &bound->path[i];
    bool lanes = build_node(b, step->node)->loop.marks & LOOP_VEC; /* loops may be inside it */
    if (step->node == node || in->digits[i] < 0 || lanes || reads_another(s, in, i)) continue;
    *now = px_add(b->px, px_mul(b->px, *now, px_int(b->px, step->extent)), in->digits[i]);
    count *= step->extent;
  }
  return count;
}

/* Prefetches the piece of iteration `now` of `count`. */
static void prefetch_piece(struct builder *b, const struct data_range *s, int64_t count, int now) {
  int64_t piece = s->length / count, several = count / s->length;
  if (several > 1) now = px_div(b->px, now, px_int(b->px, several));
  if (piece * count < s->length) piece++;
  prefetch_lines(b, s->tensor, px_add(b->px, s->place, px_mul(b->px, now, px_int(b->px, piece))),
                 piece);
}

/* ---- loads ----------------------------------------------------------------------------------- */

/* Collects the ranges that an expression reads and that depend on `axes`, of arrays in memory (not
 * on the stack). A vector starts at its first lane. */
static void find_data_ranges(struct builder *b, const struct bound_stage *bound, int expr, int node,
                             uint32_t axes, const struct inner *in, struct seen *seen) {
  if (expr < 0) return;
  struct px_node n = b->px->nodes.data[expr];
  if (n.op != PX_LOAD) {
    for (int i = 0; i < 3; i++) find_data_ranges(b, bound, n.arg[i], node, axes, in, seen);
    return;
  }
  int place = b->px->indices.data[n.first], stage = b->space.stage_of[n.tensor];
  bool in_memory = stage < 0 || b->tree->stages[stage].value.kind == STORAGE_HEAP ||
                   b->tree->stages[stage].is_output;
  if (!in_memory || (stage >= 0 && lives_inside(b, stage, node)) || px_range(b->px, place).data ||
      !(px_axes(b->px, place) & axes))
    return;
  if (b->lane >= 0) place = build_at_zero(b, place, b->lane);
  if (px_mentions(b->px, place, b->lane)) return;
  struct data_range s = data_range_of(b, bound, n.tensor, place, in);
  if (!is_seen(b, seen, n.tensor, s.place)) VEC_PUSH(seen, s);
}

/* The current iteration of the loop, of a group as of one loop; `axes`: those that count it. */
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

/* Moves the walk by the loop's prefetch distance; returns the axes that count its iterations. */
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

/* Collects what the stage reads at the position of the walk. Returns the number of ranges collected
 * before. */
static int stage_data_ranges(struct builder *b, const struct bound_stage *bound, int node,
                             uint32_t axes, struct inner *in, struct seen *seen) {
  int before = seen->count;
  open_inner(b, bound, node, in);
  int expr = space_expr(&b->space, bound, b->program->tensors.data[bound->tensor].body);
  find_data_ranges(b, bound, expr, node, axes, in, seen);
  close_inner(b, bound, node, in->first);
  in->end = b->space.open;
  b->space.open = in->first;
  return before;
}

/* In the innermost loop of a stage: prefetches pieces for an outer loop. */
static void prefetch_pieces(struct builder *b, int node, int outer) {
  const struct schedule_loop *loop = &build_node(b, outer)->loop;
  int digits[GROUP_MOST], aside[SCHEDULE_DEPTH], now;
  struct space_checkpoint m = loop_space_checkpoint(&b->space);
  struct seen seen = {0};
  uint32_t axes = step_ahead(b, loop, digits);
  for (int i = 0; i < b->tree->count && axes; i++) {
    const struct bound_stage *bound = &b->tree->stages[i];
    if (bound->dead || innermost_loop(b, bound, outer) != node) continue;
    struct inner in = {.digits = aside};
    put_aside(b, bound, outer, aside);
    int at = stage_data_ranges(b, bound, outer, axes, &in, &seen);
    put_back(b, bound, outer, aside);
    for (; at < seen.count; at++) {
      const struct data_range *s = &seen.data[at];
      int64_t count = steps_of(b, bound, outer, s, &in, &now);
      if (s->range_axes || is_long(b, s->tensor, s->length)) prefetch_piece(b, s, count, now);
    }
  }
  step_back(b, loop, digits);
  loop_space_rollback(&b->space, m);
  mem_free(seen.data);
}

/* Prefetches what the loop loads some iterations later; long ranges only if no inner loop
 * prefetches pieces. */
static void prefetch_rows(struct builder *b, int node) {
  const struct schedule_loop *loop = &build_node(b, node)->loop;
  int digits[GROUP_MOST];
  struct space_checkpoint m = loop_space_checkpoint(&b->space);
  struct seen seen = {0};
  uint32_t axes = step_ahead(b, loop, digits);
  for (int i = 0; i < b->tree->count && axes; i++) {
    const struct bound_stage *bound = &b->tree->stages[i];
    if (stage_step(bound, node) == bound->steps || bound->dead) continue;
    struct inner in = {0};
    int at = stage_data_ranges(b, bound, node, axes, &in, &seen);
    bool in_pieces = innermost_loop(b, bound, node) >= 0;
    for (; at < seen.count; at++) {
      const struct data_range *s = &seen.data[at];
      if (!in_pieces || !(s->several || is_long(b, s->tensor, s->length)))
        prefetch_lines(b, s->tensor, s->place, s->length);
    }
  }
  step_back(b, loop, digits);
  loop_space_rollback(&b->space, m);
  mem_free(seen.data);
}

void build_prefetch(struct builder *b, int node) {
  for (int outer = build_node(b, node)->parent; outer > 0; outer = build_node(b, outer)->parent)
    if (build_node(b, outer)->loop.prefetch) prefetch_pieces(b, node, outer);
  if (build_node(b, node)->loop.prefetch) prefetch_rows(b, node);
}
