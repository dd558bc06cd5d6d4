/* Shared by the files that bind a schedule: error messages with positions, and names. See
 * bind.h. */
#include "bind/bind.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/number.h"

canvas_status reject(const struct binder *b, struct place at, const char *format, ...) {
  char message[MESSAGE_SIZE];
  va_list args;
  va_start(args, format);
  text_vformat(message, sizeof message, format, args);
  va_end(args);
  if (!at.line) return fail(b->ctx, CANVAS_BAD_INPUT, "%s", message);
  return fail(b->ctx, CANVAS_BAD_INPUT, "line %d, column %d: %s", at.line, at.column, message);
}

void warn(const struct binder *b, struct place at, const char *format, ...) {
  char message[MESSAGE_SIZE];
  struct buf text = {0};
  va_list args;
  va_start(args, format);
  text_vformat(message, sizeof message, format, args);
  va_end(args);
  buf_puts(&text, message);
  struct bind_warning warning = {at.line, at.column, buf_take(&text)};
  VEC_PUSH(&b->tree->warnings, warning);
}

struct place node_place(const struct binder *b, int node) {
  const struct schedule_node *n = &b->s->nodes.data[node];
  return (struct place){n->line, n->column};
}

struct place stage_place(const struct binder *b, const struct bound_stage *stage) {
  return node_place(b, stage->node);
}

struct place level_place(const struct binder *b, int level) {
  const struct level *l = &b->s->levels.data[level];
  return (struct place){l->line, l->column};
}

struct place split_place(const struct binder *b, const struct axis_split *c) {
  if (!c->text->line) return stage_place(b, &b->tree->stages[c->stage]);
  return (struct place){c->text->line, c->text->column};
}

const char *level_name(const struct binder *b, int level) {
  return b->s->levels.data[level].name;
}

const char *stage_name(const struct binder *b, const struct bound_stage *stage) {
  return stage_tensor(b, stage)->name;
}

const struct program_tensor *stage_tensor(const struct binder *b, const struct bound_stage *stage) {
  return &b->p->tensors.data[stage->tensor];
}

const char *loop_name(const struct binder *b, int node) {
  return level_name(b, b->s->nodes.data[node].loop.level[0]);
}

int common_node(const struct binder *b, int x, int y) {
  while (x != y) {
    if (b->depth[x] < b->depth[y])
      y = b->s->nodes.data[y].parent;
    else
      x = b->s->nodes.data[x].parent;
  }
  return x;
}
