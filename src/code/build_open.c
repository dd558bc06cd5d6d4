/* Opens and closes statements with children, loops, and the digits of a group. See build_parts.h.
 */
#include "code/build_parts.h"

/* A statement whose children come next. */
struct block build_opened(struct builder *b, int statement) {
  return (struct block){.statement = statement, .copied = b->copied};
}

void build_close(struct builder *b, struct block block) {
  b->copied = block.copied;
  code_close(b->code, block.statement);
}

/* A loop, parallel if the builder is about to open a parallel loop. */
struct block build_open_for(struct builder *b, int counter, int low, int high, int64_t step) {
  struct block block =
      build_opened(b, code_open_for(b->code, counter, low, high, step, b->parallel));
  b->parallel = 0;
  b->copied = false;
  return block;
}

struct block build_open_range(struct builder *b, int counter, int64_t from, int64_t to,
                              int64_t step) {
  return build_open_for(b, counter, code_int(b->code, from), code_int(b->code, to), step);
}

/* Over a reduction axis whose bounds are data. */
struct block build_open_data_for(struct builder *b, const struct bound_stage *bound,
                                 const struct program_axis *axis, int counter) {
  int low = build_index(b, space_expr(&b->space, bound, axis->low));
  int high = build_index(b, space_expr(&b->space, bound, axis->high));
  return build_open_for(b, counter, low, high, 1);
}

void build_group(struct builder *b, const struct schedule_loop *loop, int at) {
  int64_t inner = 1;
  for (int i = loop->count - 1; i >= 0; i--) {
    int64_t extent = b->tree->extents[loop->level[i]];
    int digit = px_div(b->px, at, px_int(b->px, inner));
    if (i > 0) digit = px_mod(b->px, digit, px_int(b->px, extent));
    b->space.digit[loop->level[i]] = digit;
    inner *= extent;
  }
}

void build_clear_group(struct builder *b, const struct schedule_loop *loop) {
  for (int i = 0; i < loop->count; i++) b->space.digit[loop->level[i]] = -1;
}

/* ---- lanes ---- */

void build_open_lanes(struct builder *b, int node, int base, int64_t steps) {
  int at = base;
  b->lanes = b->tree->loops[node].lanes;
  b->lane_steps = steps < b->lanes ? (int)steps : b->lanes;
  if (b->lanes > 1) {
    int lane = build_open_axis(b, b->lane_variable, 0, b->lanes);
    b->lane = b->space.open - 1;
    at = px_add(b->px, base, lane);
  }
  build_group(b, &build_node(b, node)->loop, at);
}

void build_close_lanes(struct builder *b, int node) {
  build_clear_group(b, &build_node(b, node)->loop);
  b->lane = -1;
  b->lanes = b->lane_steps = 1;
}
