/* Computes a stage whole, at the root of the schedule. See compute_root.h. */
#include "edit/compute_root.h"

#include "edit/schedule_edit.h"
#include "program/program_facts.h"

static int leaf_in(const struct loop_tree *tree, int tensor) {
  int stage = loop_tree_stage(tree, tensor);
  return stage < 0 ? -1 : tree->stages[stage].node;
}

static int root_in(const struct loop_tree *tree, int node) {
  while (tree->schedule->nodes.data[node].parent > 0)
    node = tree->schedule->nodes.data[node].parent;
  return node;
}

/* The child of the root that contains both stages; -1. */
static int shared_root(const struct loop_tree *tree, int tensor, int other) {
  int a = leaf_in(tree, tensor), b = leaf_in(tree, other);
  return a >= 0 && b >= 0 && root_in(tree, a) == root_in(tree, b) ? root_in(tree, a) : -1;
}

/* Moves the stage, and first the stages that it loads, out of the loops that it shares with the
 * consumer. */
static canvas_status move_out(canvas_context *ctx, struct loop_tree **tree, int tensor,
                              int consumer) {
  const struct program *p = (*tree)->program;
  for (int i = 0; i < tensor; i++)
    if (stage_loads(p, tensor, i)) TRY(move_out(ctx, tree, i, consumer));
  int before = shared_root(*tree, tensor, consumer);
  if (before < 0) return CANVAS_OK;
  struct loop_tree *moved;
  int stage = loop_tree_stage(*tree, tensor);
  canvas_status status = edit_move(ctx, *tree, stage, 0, before, &moved);
  if (status !=
      CANVAS_OK) { /* the buffer's layout or scope may only fit the old place: drop them */
    TRY(edit_buffer(ctx, *tree, stage, 0, NULL, SCOPE_AUTO, &moved));
    loop_tree_free(*tree);
    *tree = moved;
    before = shared_root(*tree, tensor, consumer);
    TRY(edit_move(ctx, *tree, loop_tree_stage(*tree, tensor), 0, before, &moved));
  }
  loop_tree_free(*tree);
  *tree = moved;
  return CANVAS_OK;
}

canvas_status schedule_compute_root(canvas_context *ctx, const struct loop_tree *tree, int tensor,
                                    struct loop_tree **out) {
  struct schedule *s = schedule_copy(tree->schedule);
  canvas_status status = loop_tree_bind(ctx, tree->program, s, &tree->machine, out);
  if (status != CANVAS_OK) {
    schedule_free(s);
    return status;
  }
  (*out)->made = s;
  const struct program *p = tree->program;
  for (int i = 0; status == CANVAS_OK && i < p->tensors.count; i++)
    if (stage_loads(p, i, tensor)) status = move_out(ctx, out, tensor, i);
  if (status != CANVAS_OK) loop_tree_free(*out);
  return status;
}
