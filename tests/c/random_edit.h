// One random edit of a bound schedule, legal or rejected: steps through the space that a search walks.
#ifndef CANVAS_TESTS_RANDOM_EDIT_H
#define CANVAS_TESTS_RANDOM_EDIT_H

#include "base/random.h"
#include "edit/schedule_edit.h"
#include "machines.h"

static int edit_below(struct random *r, int count) {
  return (int)random_below(r, (uint32_t)count);
}

static int random_child(struct random *r, const struct schedule *s, int node) {
  int children = 0, child = s->nodes.data[node].first;
  for (int i = child; i >= 0; i = s->nodes.data[i].next) children++;
  for (int skip = edit_below(r, children + 1); skip > 0 && child >= 0; skip--)
    child = s->nodes.data[child].next;
  return child;
}

// What a stage keeps: its axes turned round, or its loops in any order; right or wrong.
static int random_layout(struct random *r, const struct loop_tree *tree,
                         const struct bound_stage *stage, const char **names) {
  const struct program_tensor *t = &tree->program->tensors.data[stage->tensor];
  int count = 0, turn = edit_below(r, t->rank + 1);
  if (edit_below(r, 2)) {
    for (int i = 0; i < t->rank; i++) names[count++] = t->axes[(i + turn) % t->rank].name;
    return count;
  }
  for (int i = 0; i < stage->steps; i++) {
    if (!stage->path[i].own || stage->path[i].axis >= t->rank) continue;
    int at = edit_below(r, ++count);
    names[count - 1] = names[at];
    names[at] = tree->schedule->levels.data[stage->path[i].level].name;
  }
  return count;
}

static canvas_status random_buffer(canvas_context *ctx, struct random *r,
                                   const struct loop_tree *tree, struct loop_tree **out) {
  static const enum buffer_scope scopes[] = {SCOPE_AUTO, SCOPE_REG, SCOPE_L1, SCOPE_HEAP};
  const char *names[SCHEDULE_DEPTH];
  int stage = edit_below(r, tree->count);
  int count = random_layout(r, tree, &tree->stages[stage], names);
  if (edit_below(r, 4) == 0) count = 0;
  return edit_buffer(ctx, tree, stage, count, names, scopes[edit_below(r, 4)], out);
}

static canvas_status random_step(canvas_context *ctx, struct random *r,
                                 const struct loop_tree *tree, struct loop_tree **out) {
  static const unsigned marks[] = {0, LOOP_PARA, LOOP_VEC, LOOP_UNROLL};
  static const unsigned fused[] = {LOOP_FOLD, LOOP_PARA, LOOP_FOLD | LOOP_PARA,
                                   LOOP_FOLD | LOOP_VEC, LOOP_FOLD | LOOP_UNROLL};
  static const enum level_tail tails[] = {TAIL_NONE, TAIL_MASK, TAIL_PEEL};
  const struct schedule *s = tree->schedule;
  int level = edit_below(r, s->levels.count), node = edit_below(r, s->nodes.count);
  int stage = edit_below(r, tree->count), number = edit_below(r, 9);
  switch (edit_below(r, 14)) {
    case 0:
    case 1: return edit_split(ctx, tree, level, 2 + edit_below(r, 7), out);
    case 2: return edit_merge(ctx, tree, level, edit_below(r, s->levels.count), out);
    case 3: return edit_reorder(ctx, tree, node, out);
    case 4:
    case 5:
      if (s->nodes.data[node].kind == NODE_LEAF) node = s->nodes.data[node].parent;
      return edit_move(ctx, tree, stage, node, random_child(r, s, node), out);
    case 6:
    case 7: {
      bool group = s->nodes.data[node].loop.count > 1;
      unsigned chosen = group ? fused[edit_below(r, 5)] : marks[edit_below(r, 4)];
      return edit_mark(ctx, tree, node, chosen, number < 4 ? number : 0, out);
    }
    case 8: return edit_tail(ctx, tree, level, tails[edit_below(r, 3)], out);
    case 9: return random_buffer(ctx, r, tree, out);
    case 10: return edit_group(ctx, tree, node, fused[edit_below(r, 5)], out);
    case 11:
      if (number > 2) return edit_group(ctx, tree, node, fused[edit_below(r, 5)], out);
      return edit_ungroup(ctx, tree, node, out);
    case 12:  // longer than its axis, where it is a vector and masked
      return edit_extent(ctx, tree, level, EXTENT_INT, 8 << edit_below(r, 3), out);
    default: break;
  }
  return edit_extent(ctx, tree, level, edit_below(r, 3) ? EXTENT_INT : EXTENT_OPEN, 1 + number,
                     out);
}

// A default schedule after so many legal edits, or fewer where few are.
static inline struct schedule *random_schedule(const struct program *p, struct random *r,
                                               int edits) {
  canvas_context ctx;
  const struct machine machine = machine_avx512;
  struct schedule *s = schedule_default(p, edit_below(r, 2), &machine);
  struct loop_tree *tree, *next;
  if (loop_tree_bind(&ctx, p, s, &machine, &tree) != CANVAS_OK) return s;
  tree->made = s;
  for (int tries = 12 * edits; tries > 0 && edits > 0; tries--) {
    if (random_step(&ctx, r, tree, &next) != CANVAS_OK) continue;
    bool whole = next->open_holes == 0;  // an edit may open a hole
    loop_tree_free(whole ? tree : next);
    if (whole) tree = next;
    edits -= whole;
  }
  return loop_tree_take(tree);
}

#endif
