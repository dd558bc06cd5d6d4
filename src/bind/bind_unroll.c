/* Which loops are unrolled, peeled and parallel, and how many statements that makes.
 *
 * A loop marked `unroll` is unrolled, or the schedule is rejected. The vectors of a vec loop are
 * unrolled if they are few and make at most `most` statements. `most` is the largest power of two
 * for which the whole code is short enough.
 */
#include "base/saturating.h"
#include "bind/bind.h"

static bool first_digit(const struct bound_stage *stage, int step) {
  for (int i = 0; i < step; i++)
    if (stage->path[i].axis == stage->path[step].axis) return false;
  return true;
}

/* Marks the outermost loops of peeled axes. Such a loop runs over full tiles; the remainder is a
 * second copy of its body. */
static void mark_peeled(struct binder *b) {
  for (int i = 0; i < b->tree->count; i++) {
    const struct bound_stage *s = &b->tree->stages[i];
    for (int j = 0; j < s->steps; j++) {
      int axis = s->path[j].axis;
      if (axis >= 0 && s->tail[axis] && s->tail_kind[axis] == TAIL_PEEL && first_digit(s, j))
        b->tree->loops[s->path[j].node].peels = true;
    }
  }
}

/* The number of copies of a loop's body in the code. */
static int64_t copies_of(const struct binder *b, int node, int64_t statements, int64_t most) {
  struct bound_loop *loop = &b->tree->loops[node];
  unsigned marks = loop_marks(b->tree, node);
  int64_t times = 1;
  if (marks & LOOP_VEC) {
    int64_t vectors = (loop->extent + loop->lanes - 1) / loop->lanes;
    loop->unrolled = vectors <= UNROLLED_VECTORS && saturating_mul(statements, vectors) <= most;
    times = loop->unrolled ? vectors : 1 + (loop->extent % loop->lanes > 0);
  } else if ((marks & LOOP_PARA) && loop->extent > 1 && !loop->dyn) {
    loop->parallel = true;
  } else if (marks & LOOP_UNROLL) {
    loop->unrolled = true;
    times = loop->extent;
  }
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
  loop->copies = n->kind == NODE_LOOP ? copies_of(b, node, loop->statements, most) : 1;
  loop->statements = saturating_mul(loop->statements, loop->copies);
}

/* ---- limits ---- */

/* Checks the limits for the outermost unrolled loops, each times the copies of the loops around
 * it. */
static canvas_status check_unrolled(const struct binder *b, int node, int64_t times, int64_t *all) {
  const struct bound_loop *loop = &b->tree->loops[node];
  if (!(loop_marks(b->tree, node) & LOOP_UNROLL) || !loop->unrolled) {
    times = saturating_mul(times, loop->copies);
    for (int i = b->s->nodes.data[node].first; i >= 0; i = b->s->nodes.data[i].next)
      TRY(check_unrolled(b, i, times, all));
    return CANVAS_OK;
  }
  if (loop->statements > UNROLLED_STATEMENTS)
    return reject(b, node_place(b, node),
                  "loop '%s' unrolls into %lld statements, at most %d; split it, or unroll less "
                  "inside it",
                  loop_name(b, node), (long long)loop->statements, UNROLLED_STATEMENTS);
  int64_t more = saturating_mul(times, loop->statements), before = *all;
  *all = saturating_add(*all, more);
  if (*all <= MOST_STATEMENTS) return CANVAS_OK;
  return reject(
      b, node_place(b, node),
      "loop '%s' unrolls into %lld statements, those before it into %lld, all together at "
      "most %d; unroll fewer loops",
      loop_name(b, node), (long long)more, (long long)before, MOST_STATEMENTS);
}

int64_t stage_copies(const struct loop_tree *tree, const struct bound_stage *stage) {
  int64_t copies = 1;
  for (int at = stage->node; at > 0; at = tree->schedule->nodes.data[at].parent)
    copies = saturating_mul(copies, tree->loops[at].copies);
  return copies;
}

/* Limits the nesting of peeled loops: each is in the code twice, for full tiles and for the
 * remainder. */
static canvas_status check_peeled(const struct binder *b) {
  for (int i = 1; i < b->s->nodes.count; i++) {
    const struct bound_loop *loop = &b->tree->loops[i];
    if (!loop->peels) continue;
    if (b->s->nodes.data[i].loop.count > 1)
      return reject(b, node_place(b, i),
                    "loop '%s' of a group cannot be peeled, mask it or take it out of the group",
                    loop_name(b, i));
    if (loop->peels_below >= PEELED_LOOPS)
      return reject(
          b, node_place(b, i),
          "loop '%s' is peeled around %d peeled loops in one another, at most %d together; "
          "mask one of them",
          loop_name(b, i), loop->peels_below, PEELED_LOOPS);
  }
  return CANVAS_OK;
}

/* Limits the copies of stages with large expressions. */
static canvas_status check_operations(const struct binder *b) {
  int64_t operations = 0;
  for (int i = 0; i < b->tree->count; i++) {
    const struct bound_stage *stage = &b->tree->stages[i];
    int64_t copies = stage_copies(b->tree, stage);
    int size = b->p->nodes.data[stage_tensor(b, stage)->body].size;
    operations = saturating_add(operations, saturating_mul(copies - 1, size));
    if (operations > MOST_OPERATIONS)
      return reject(
          b, stage_place(b, stage),
          "'%s' stands %lld times in the code, which is too long: its expression is large",
          stage_name(b, stage), (long long)copies);
  }
  return CANVAS_OK;
}

canvas_status bind_unroll(struct binder *b) {
  int64_t all = 0;
  mark_peeled(b);
  for (int64_t most = UNROLLED_STATEMENTS; most >= 1; most /= 2) {
    count_statements(b, 0, most);
    if (b->tree->loops[0].statements <= MOST_STATEMENTS) break;
  }
  TRY(check_peeled(b));
  TRY(check_unrolled(b, 0, 1, &all));
  return check_operations(b);
}
