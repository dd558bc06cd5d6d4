/* Computes what a window reads for a band of rows only, just before, so that it stays in L1 or L2.
 * Rows that two bands read are computed twice.
 *
 *     pad[h:30, w:30, c] = ...                     pad_o[h_o:7, h_i:6, w:30, c] = ...
 *     Y[h:28, w:28, o] = pad[h+kh, w+kw, c] * ..   Y[h:28, ..] = pad_o[h/4, h%4+kh, w+kw, c] * ..
 *
 *     h, w, c => @pad                              h_oo =>
 *     h_oo, o_o, h_b:4, w_o, kh, kw, c, ... => @Y      pad_o_h_i, pad_o_w, pad_o_c => @pad_o
 *                                                      o_o, h_b:4, w_o, kh, kw, c, ... => @Y
 *
 * The program is edited (`overlap`), and the schedule follows the edit (edit/schedule_follow.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "edit/schedule_follow.h"
#include "program/affine.h"
#include "rewrite/program_edit.h"
#include "tune/sketch.h"

/* The first own axis longer than 1 that occurs with a reduction in an index of the tensor; -1. */
static int window_axis(const struct program *p, int stage, int expr, int tensor) {
  const struct px_node *n = &p->nodes.data[expr];
  const struct program_tensor *t = &p->tensors.data[stage];
  for (int i = 0; i < 3; i++) {
    int found = n->arg[i] >= 0 ? window_axis(p, stage, n->arg[i], tensor) : -1;
    if (found >= 0) return found;
  }
  if (n->op != PX_LOAD || n->tensor != tensor) return -1;
  for (int i = 0; i < p->tensors.data[tensor].rank; i++) {
    int index = p->indices.data[n->first + i], own = -1, summed = -1;
    for (int axis = 0; axis < t->rank + t->reductions; axis++)
      if (px_mentions(p, index, axis)) *(axis < t->rank ? &own : &summed) = axis;
    if (own >= 0 && summed >= 0 && t->axes[own].size > 1) return own;
  }
  return -1;
}

int64_t sketch_window(const struct program *p, int stage) {
  for (int i = stage + 1; i < p->tensors.count; i++) {
    const struct program_tensor *t = &p->tensors.data[i];
    int axis = t->is_input || !t->reductions ? -1 : window_axis(p, i, t->body, stage);
    if (axis >= 0) return t->axes[axis].size;
  }
  return 0;
}

/* Sets the rows of a band; false: the schedule has no bands along that axis. */
static bool set_band(struct default_made *made, int axis, int64_t rows) {
  const struct program_tensor *t = &made->program->tensors.data[made->stage];
  struct schedule *s = made->schedule;
  if (made->tile.block_axis != axis || made->tile.rows[axis] > 1 || t->axes[axis].size % rows)
    return false;
  for (int i = 0; i < s->nodes.count; i++) {
    const struct schedule_node *n = &s->nodes.data[i];
    if (n->kind != NODE_LEAF || strcmp(n->leaf.stage, t->name) != 0) continue;
    struct level *level = &s->levels.data[n->leaf.axes.data[axis].level[1]];
    if (n->leaf.axes.data[axis].count < 2 || level->kind != EXTENT_INT) return false;
    level->extent = rows;
    made->tile.block_axis = -1; /* the number is fixed from now on */
    return true;
  }
  return false;
}

static bool overlap(struct default_made *made, const char *edit, const struct machine *machine) {
  canvas_context ctx;
  struct loop_tree *tree = NULL;
  struct program *p = NULL;
  struct schedule *s = NULL;
  canvas_status status = loop_tree_bind(&ctx, made->program, made->schedule, machine, &tree);
  if (status == CANVAS_OK) status = program_edit(&ctx, made->program, edit, strlen(edit), &p);
  if (status == CANVAS_OK) status = schedule_follow(&ctx, tree, edit, strlen(edit), &s);
  loop_tree_free(tree);
  if (status != CANVAS_OK) {
    program_free(p);
    return false;
  }
  const char *name = made->program->tensors.data[made->stage].name;
  made->stage = program_find(p, name);
  program_free(made->program);
  schedule_free(made->schedule);
  made->program = p;
  made->schedule = s;
  return true;
}

bool sketch_overlap(struct default_made *made, const char *stage, int64_t rows,
                    const struct machine *machine) {
  const struct program *p = made->program;
  const struct program_tensor *t = &p->tensors.data[made->stage];
  int tensor = program_find(p, stage);
  char edit[3 * PROGRAM_NAME + 64];
  if (tensor < 0 || p->tensors.data[tensor].is_input) return false;
  int axis = window_axis(p, made->stage, t->body, tensor);
  for (int i = 0; i < axis; i++) /* a band must not span several images */
    if (t->axes[i].size > 1 && i != made->tile.vector_axis) return false;
  if (axis < 0 || rows >= t->axes[axis].size || !set_band(made, axis, rows)) return false;
  snprintf(edit, sizeof edit, "overlap %s in %s %s %lld as %s_o", stage, t->name,
           t->axes[axis].name, (long long)rows, stage);
  return overlap(made, edit, machine);
}
