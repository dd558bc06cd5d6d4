/* Layouts of stored tensors. See prepare_layout.h. A name in a layout is a loop, or an axis that
 * stands for all loops over it (bind_buffers.c). */
#include "prepare/prepare_layout.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

char *prepare_layout_text(const struct loop_tree *tree, int stage) {
  const struct bound_stage *b = &tree->stages[stage];
  const struct program_tensor *t = &tree->program->tensors.data[b->tensor];
  if (!tree->schedule->nodes.data[b->node].leaf.layout.count || t->reductions) return NULL;
  struct buf text = {0};
  for (int i = 0; i < b->dims; i++) {
    const struct buffer_axis *d = &b->layout[i];
    buf_printf(&text, "%s%s", i ? ", " : "[", t->axes[d->axis].name);
    if (d->weight > 1) buf_printf(&text, "/%" PRId64, d->weight);
    if (d->weight * d->extent < t->axes[d->axis].size) buf_printf(&text, "%%%" PRId64, d->extent);
  }
  buf_puts(&text, "]");
  return buf_take(&text);
}

/* The levels that a name in the layout stands for: one loop, or all loops of an axis. */
static struct schedule_axis named_split(const struct schedule *s, const struct schedule_leaf *leaf,
                                        const char *name) {
  int level = schedule_find_level(s, name);
  for (int i = 0; i < leaf->axes.count; i++)
    for (int j = 0; j < leaf->axes.data[i].count; j++)
      if (leaf->axes.data[i].level[j] == level)
        return (struct schedule_axis){.level = {level}, .count = 1};
  for (int i = 0; i < leaf->axes.count; i++)
    if (leaf->axes.data[i].axis && strcmp(leaf->axes.data[i].axis, name) == 0)
      return leaf->axes.data[i];
  return (struct schedule_axis){0};
}

void prepare_layout_leaf(struct schedule *s, int node, const struct program_tensor *made) {
  struct schedule_leaf old = s->nodes.data[node].leaf, *leaf = &s->nodes.data[node].leaf;
  memset(&leaf->axes, 0, sizeof leaf->axes);
  memset(&leaf->layout, 0, sizeof leaf->layout);
  for (int i = 0; i < old.layout.count; i++) {
    struct schedule_axis split = named_split(s, &old, old.layout.data[i]);
    struct schedule_axis *added = schedule_add_axis(s, node, made->axes[i].name);
    memcpy(added->level, split.level, sizeof added->level);
    added->count = split.count;
  }
  mem_free(old.axes.data);
  mem_free(old.layout.data);
}
