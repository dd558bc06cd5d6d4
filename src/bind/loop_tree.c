/* Functions of bound schedules beside binding. See loop_tree.h. */
#include "bind/loop_tree.h"

#include <stdlib.h>

void loop_tree_free(struct loop_tree *tree) {
  if (!tree) return;
  for (int i = 0; i < tree->warnings.count; i++) mem_free(tree->warnings.data[i].text);
  mem_free(tree->warnings.data);
  mem_free(tree->extents);
  mem_free(tree->holes);
  mem_free(tree->guarded);
  mem_free(tree->loops);
  mem_free(tree->stages);
  if (tree->made) schedule_free(tree->made);
  mem_free(tree);
}

struct schedule *loop_tree_take(struct loop_tree *tree) {
  struct schedule *s = tree->made;
  tree->made = NULL;
  loop_tree_free(tree);
  return s;
}

int loop_tree_stage(const struct loop_tree *tree, int tensor) {
  for (int i = 0; i < tree->count; i++)
    if (tree->stages[i].tensor == tensor) return i;
  return -1;
}

unsigned loop_marks(const struct loop_tree *tree, int node) {
  const struct schedule_node *n = &tree->schedule->nodes.data[node];
  return n->kind == NODE_LOOP ? n->loop.marks : 0;
}

int stage_step(const struct bound_stage *stage, int node) {
  int i = 0;
  while (i < stage->steps && stage->path[i].node != node) i++;
  return i;
}

int64_t step_padded_extent(const struct loop_tree *tree, const struct step *step) {
  const struct bound_loop *loop = &tree->loops[step->node];
  bool alone = tree->schedule->nodes.data[step->node].loop.count == 1;
  if (!(loop_marks(tree, step->node) & LOOP_VEC) || !alone) return step->extent;
  return (step->extent + loop->lanes - 1) / loop->lanes * loop->lanes;
}

bool stage_spatial(const struct loop_tree *tree, const struct bound_stage *stage, int step) {
  int axis = stage->path[step].axis;
  return axis >= 0 && axis < tree->program->tensors.data[stage->tensor].rank;
}

void loop_tree_print_warnings(const struct loop_tree *tree, struct buf *out) {
  for (int i = 0; i < tree->warnings.count; i++) {
    const struct bind_warning *w = &tree->warnings.data[i];
    buf_puts(out, "warning: ");
    if (w->line) buf_printf(out, "line %d, column %d: ", w->line, w->column);
    buf_printf(out, "%s\n", w->text);
  }
}
