/* What a loop will read some iterations later: the addresses that move with it. See build.h. */
#include <stdlib.h>

#include "code/build.h"

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

/* The addresses below an expression that move with `axes`, of arrays that are not on the stack; of
 * the lanes of a vector that of the first. */
static void prefetch_loads(struct builder *b, int expr, int node, uint32_t axes,
                           struct seen *seen) {
  if (expr < 0) return;
  struct px_node n = b->px->nodes.data[expr];
  if (n.op != PX_LOAD) {
    for (int i = 0; i < 3; i++) prefetch_loads(b, n.arg[i], node, axes, seen);
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
  if (is_seen(b, seen, n.tensor, place)) return;
  VEC_PUSH(seen, ((struct address){n.tensor, place}));
  code_prefetch(b->code,
                code_element(b->code, b->tensor_variable[n.tensor], build_index(b, place)));
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

/* What the loop will load some iterations later: the first element of each stretch. */
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
    if (stage_step(bound, node) < bound->steps && !bound->dead)
      prefetch_loads(b, space_expr(&b->space, bound, b->program->tensors.data[bound->tensor].body),
                     node, axes, &seen);
  }
  for (int i = 0; i < loop->count; i++) b->space.digit[loop->level[i]] = digits[i];
  loop_space_rollback(&b->space, m);
  free(seen.data);
}
