/* Prints schedules in canonical form: one line per run of perfectly nested loops, annotations of a
 * level at its first occurrence, marks in a fixed order. See schedule.h. */
#include <stdlib.h>
#include <string.h>

#include "schedule/schedule.h"

enum { INDENT = 4 };

const char *const loop_mark_names[MARKS] = {
#define X(id, text, ...) text,
    LOOP_MARKS(X)
#undef X
};

void schedule_print_marks(const struct schedule_loop *loop, struct buf *buf) {
  for (int i = 0; i < MARKS; i++)
    if (loop->marks >> i & 1) buf_printf(buf, ":%s", loop_mark_names[i]);
  if (loop->prefetch) buf_printf(buf, ":pf(%d)", loop->prefetch);
}

const char *level_tail_name(enum level_tail tail) {
  static const char *const names[] = {"", "mask", "peel"};
  return names[tail];
}

const char *buffer_scope_name(enum buffer_scope scope) {
  static const char *const names[] = {"", "reg", "l1", "heap", "stream"};
  return names[scope];
}

void schedule_print_extent(const struct level *level, struct buf *buf) {
  switch (level->kind) {
    case EXTENT_OPEN: break;
    case EXTENT_INT: buf_printf(buf, "%lld", (long long)level->extent); break;
    case EXTENT_HOLE: buf_puts(buf, "?"); break;
    case EXTENT_DYN: buf_printf(buf, "dyn(%s)", level->dyn); break;
    case EXTENT_CHOICE:
      for (int i = 0; i < level->choices.count; i++)
        buf_printf(buf, "%s%lld", i ? "," : "{", (long long)level->choices.data[i]);
      buf_puts(buf, "}");
      break;
  }
}

struct printer {
  const struct schedule *s;
  struct buf *buf;
  bool *mentioned; /* by level */
};

static void print_level(struct printer *w, int at) {
  const struct level *level = &w->s->levels.data[at];
  buf_puts(w->buf, level->name);
  if (w->mentioned[at]) return;
  w->mentioned[at] = true;
  if (level->kind != EXTENT_OPEN) buf_puts(w->buf, ":");
  schedule_print_extent(level, w->buf);
  if (level->tail) buf_printf(w->buf, ":%s", level_tail_name(level->tail));
}

static void print_loop(struct printer *w, const struct schedule_loop *loop) {
  if (loop->count > 1) buf_puts(w->buf, "{");
  for (int i = 0; i < loop->count; i++) {
    if (i) buf_puts(w->buf, ", ");
    print_level(w, loop->level[i]);
  }
  if (loop->count > 1) buf_puts(w->buf, "}");
  schedule_print_marks(loop, w->buf);
}

static void print_axis(struct printer *w, const struct schedule_axis *axis) {
  const struct level *levels = w->s->levels.data;
  const char *first = levels[axis->level[0]].name;
  if (axis->count == 1 && (!axis->axis || !strcmp(axis->axis, first))) {
    buf_puts(w->buf, first);
    return;
  }
  for (int i = 0; i < axis->count; i++)
    buf_printf(w->buf, "%s%s", i ? ", " : "{", levels[axis->level[i]].name);
  buf_printf(w->buf, "}/%s", axis->axis);
}

static void print_leaf(struct printer *w, const struct schedule_leaf *leaf) {
  int spatial = leaf->axes.count - leaf->reductions;
  buf_printf(w->buf, "@%s", leaf->stage);
  for (int i = 0; i < leaf->layout.count; i++) buf_printf(w->buf, "[%s]", leaf->layout.data[i]);
  if (leaf->scope) buf_printf(w->buf, ":%s", buffer_scope_name(leaf->scope));
  if (leaf->axes.count) buf_puts(w->buf, " =");
  for (int i = 0; i < leaf->axes.count; i++) {
    buf_puts(w->buf, i == spatial ? " // " : i ? ", " : " ");
    print_axis(w, &leaf->axes.data[i]);
  }
  buf_puts(w->buf, "\n");
}

/* The only child if it is a loop; -1 otherwise. */
static int only_loop(const struct schedule_node *nodes, int node) {
  int child = nodes[node].first;
  bool only = child >= 0 && child == nodes[node].last;
  return only && nodes[child].kind == NODE_LOOP ? child : -1;
}

static void print_children(struct printer *w, int node, size_t depth);

/* Prints a run of loops on one line, and its children below. */
static void print_run(struct printer *w, int node, size_t depth) {
  const struct schedule_node *nodes = w->s->nodes.data;
  print_loop(w, &nodes[node].loop);
  for (int only; (only = only_loop(nodes, node)) >= 0; node = only) {
    buf_puts(w->buf, ", ");
    print_loop(w, &nodes[only].loop);
  }
  buf_puts(w->buf, " =>\n");
  print_children(w, node, depth + 1);
}

static void print_children(struct printer *w, int node, size_t depth) {
  const struct schedule_node *nodes = w->s->nodes.data;
  for (int child = nodes[node].first; child >= 0; child = nodes[child].next) {
    buf_pad(w->buf, w->buf->length, depth * INDENT);
    if (nodes[child].kind == NODE_LEAF)
      print_leaf(w, &nodes[child].leaf);
    else
      print_run(w, child, depth);
  }
}

void schedule_print(const struct schedule *s, struct buf *buf) {
  struct printer w = {s, buf, mem_alloc((size_t)s->levels.count + 1)};
  buf_puts(buf, "canvas 1\n");
  if (*s->name) buf_printf(buf, "schedule %s\n", s->name);
  print_children(&w, 0, 0);
  mem_free(w.mentioned);
}
