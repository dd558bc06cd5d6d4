/* Binding a schedule to its program: the table of contents. See loop_tree.h; bind.h is shared by
 * the files that do the work.
 */
#include "bind/loop_tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "bind/bind.h"

static canvas_status bind_all(struct binder *b) {
  TRY(schedule_verify(b->ctx, b->s));
  TRY(bind_names(b));
  TRY(bind_paths(b));
  TRY(check_dyn(b));
  TRY(bind_extents(b));
  TRY(bind_compute_at(b));
  TRY(bind_buffers(b));
  TRY(check_marks(b));
  if (b->tree->open) return CANVAS_OK;
  TRY(check_regions(b));
  return check_limits(b);
}

static struct loop_tree *new_tree(const struct program *program, const struct schedule *schedule,
                                  const struct machine *machine) {
  struct loop_tree *tree = mem_alloc(sizeof *tree);
  tree->program = program;
  tree->schedule = schedule;
  tree->machine = machine ? *machine : machine_model();
  tree->extents = mem_alloc(((size_t)schedule->levels.count + 1) * sizeof *tree->extents);
  tree->holes = mem_alloc((size_t)schedule->levels.count + 1);
  tree->loops = mem_alloc((size_t)schedule->nodes.count * sizeof *tree->loops);
  return tree;
}

static void close_binder(struct binder *b) {
  free(b->stage_of);
  free(b->depth);
  free(b->looped);
  free(b->first_split);
  free(b->splits.data);
  free(b->reads.data);
}

canvas_status loop_tree_bind(canvas_context *ctx, const struct program *program,
                             const struct schedule *schedule, const struct machine *machine,
                             struct loop_tree **out) {
  struct binder b = {
      .ctx = ctx, .p = program, .s = schedule, .tree = new_tree(program, schedule, machine)};
  canvas_status status = bind_all(&b);
  close_binder(&b);
  if (status == CANVAS_OK)
    *out = b.tree;
  else
    loop_tree_free(b.tree);
  return status;
}

void loop_tree_free(struct loop_tree *tree) {
  if (!tree) return;
  for (int i = 0; i < tree->warnings.count; i++) free(tree->warnings.data[i].text);
  free(tree->warnings.data);
  free(tree->extents);
  free(tree->holes);
  free(tree->loops);
  free(tree->stages);
  free(tree);
}

int loop_tree_stage(const struct loop_tree *tree, int tensor) {
  for (int i = 0; i < tree->count; i++)
    if (tree->stages[i].tensor == tensor) return i;
  return -1;
}

/* What sentences are made of. */

canvas_status reject(const struct binder *b, struct place at, const char *format, ...) {
  char message[MESSAGE_SIZE];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  if (!at.line) return fail(b->ctx, CANVAS_BAD_INPUT, "%s", message);
  return fail(b->ctx, CANVAS_BAD_INPUT, "line %d, column %d: %s", at.line, at.column, message);
}

void warn(const struct binder *b, struct place at, const char *format, ...) {
  char message[MESSAGE_SIZE];
  struct buf text = {0};
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  buf_puts(&text, message);
  struct bind_warning warning = {at.line, at.column, buf_take(&text)};
  VEC_PUSH(&b->tree->warnings, warning);
}

void loop_tree_print_warnings(const struct loop_tree *tree, struct buf *out) {
  for (int i = 0; i < tree->warnings.count; i++) {
    const struct bind_warning *w = &tree->warnings.data[i];
    buf_puts(out, "warning: ");
    if (w->line) buf_printf(out, "line %d, column %d: ", w->line, w->column);
    buf_printf(out, "%s\n", w->text);
  }
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
