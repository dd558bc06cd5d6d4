/* What is unrolled, peeled and parallel, and how many statements that makes.
 *
 * What is marked is unrolled wherever that makes no more than `most` statements, the largest power
 * of two for which the whole is short enough.
 */
#include "base/saturating.h"
#include "bind/bind.h"

static bool first_digit(const struct bound_stage *stage, int step) {
  for (int i = 0; i < step; i++)
    if (stage->path[i].axis == stage->path[step].axis) return false;
  return true;
}

/* Whether the loop is the outermost of an axis whose full tiles are apart from the rest: inside, the
 * tiles are full, or the rest is one of few. */
static bool is_peeled(const struct binder *b, int node) {
  for (int i = 0; i < b->tree->count; i++) {
    const struct bound_stage *s = &b->tree->stages[i];
    for (int j = 0; j < s->steps; j++) {
      int axis = s->path[j].node == node ? s->path[j].axis : -1;
      if (axis >= 0 && s->tail[axis] && s->how[axis] == TAIL_PEEL && first_digit(s, j)) return true;
    }
  }
  return false;
}

/* How often the statements of a loop stand in the code. */
static int64_t copies(const struct binder *b, int node, int64_t statements, int64_t most) {
  struct bound_loop *loop = &b->tree->loops[node];
  unsigned marks = loop_marks(b->tree, node);
  int64_t times = 1;
  if (marks & LOOP_VEC) {
    int64_t vectors = (loop->extent + loop->lanes - 1) / loop->lanes;
    loop->unrolled = vectors <= UNROLLED_VECTORS && saturating_mul(statements, vectors) <= most;
    times = (loop->unrolled ? vectors : 1) + (loop->extent % loop->lanes ? 4 : 0);
  } else if ((marks & LOOP_PARA) && loop->extent > 1 && !loop->dyn) {
    loop->parallel = true;
  } else if (marks & LOOP_UNROLL) {
    loop->unrolled = saturating_mul(statements, loop->extent) <= most;
    times = loop->unrolled ? loop->extent : 1;
  }
  loop->peels = is_peeled(b, node) && loop->peels_below < PEELED_LOOPS;
  return loop->peels ? 2 * times : times;
}

static void count_statements(struct binder *b, int node, int64_t most) {
  const struct schedule_node *n = &b->s->nodes.data[node];
  struct bound_loop *loop = &b->tree->loops[node];
  loop->statements = n->kind == NODE_LEAF;
  loop->peels_below = 0;
  for (int child = n->first; child >= 0; child = b->s->nodes.data[child].next) {
    count_statements(b, child, most);
    const struct bound_loop *inner = &b->tree->loops[child];
    int peels = inner->peels_below + inner->peels;
    loop->statements = saturating_add(loop->statements, inner->statements);
    if (peels > loop->peels_below) loop->peels_below = peels;
  }
  if (n->kind == NODE_LOOP)
    loop->statements = saturating_mul(loop->statements, copies(b, node, loop->statements, most));
}

void bind_unroll(struct binder *b) {
  for (int64_t most = MOST_STATEMENTS / 4; most >= 1; most /= 2) {
    count_statements(b, 0, most);
    if (b->tree->loops[0].statements <= MOST_STATEMENTS) return;
  }
}
