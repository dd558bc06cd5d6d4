/* Parses edits of a bound schedule; one row per edit. See schedule_edit_text.h. */
#include "edit/schedule_edit_text.h"

#include <string.h>

#include "base/lexer.h"

struct editor {
  struct lexer lx;
  canvas_context *ctx;
  const struct loop_tree *tree;
  struct loop_tree **out;
};

static int shown(const struct token *t) {
  return t->length < 40 ? t->length : 40;
}

static const struct schedule_node *node_at(const struct editor *e, int node) {
  return &e->tree->schedule->nodes.data[node];
}

static bool is_above(const struct editor *e, int node, int below) {
  while (below >= 0 && below != node) below = node_at(e, below)->parent;
  return below == node;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Parses the name of a loop; returns its level. */
static canvas_status read_level(struct editor *e, int *level) {
  const struct schedule *s = e->tree->schedule;
  const struct token t = e->lx.token;
  if (t.kind != TOKEN_NAME) return lexer_unexpected(&e->lx, "the name of a loop");
  for (*level = 0; *level < s->levels.count; ++*level)
    if (lexer_is(&e->lx, s->levels.data[*level].name)) {
      lexer_next(&e->lx);
      return CANVAS_OK;
    }
  return lexer_fail(&e->lx, &t, "the schedule has no loop '%.*s'", shown(&t), t.start);
}

static canvas_status read_stage(struct editor *e, int *stage) {
  const struct token t = e->lx.token;
  if (t.kind != TOKEN_NAME) return lexer_unexpected(&e->lx, "the name of a stage");
  for (*stage = 0; *stage < e->tree->count; ++*stage)
    if (lexer_is(&e->lx, node_at(e, e->tree->stages[*stage].node)->leaf.stage)) {
      lexer_next(&e->lx);
      return CANVAS_OK;
    }
  return lexer_fail(&e->lx, &t, "the schedule has no stage '%.*s'", shown(&t), t.start);
}

static bool has_level(const struct schedule_node *n, int level) {
  for (int i = 0; n->kind == NODE_LOOP && i < n->loop.count; i++)
    if (n->loop.level[i] == level) return true;
  return false;
}

/* Parses `LOOP` or `LOOP of STAGE`: the only loop of that name (around that stage). */
static canvas_status read_loop(struct editor *e, int *node) {
  const struct token t = e->lx.token;
  int level, stage = -1, found = 0;
  TRY(read_level(e, &level));
  if (lexer_accept(&e->lx, "of")) TRY(read_stage(e, &stage));
  for (int i = 0; i < e->tree->schedule->nodes.count; i++) {
    if (!has_level(node_at(e, i), level)) continue;
    if (stage >= 0 && !is_above(e, i, e->tree->stages[stage].node)) continue;
    *node = i;
    found++;
  }
  if (found == 1) return CANVAS_OK;
  return lexer_fail(&e->lx, &t,
                    found ? "loop '%.*s' stands %d times, say 'of STAGE' after it"
                          : "loop '%.*s' does not stand around that stage",
                    shown(&t), t.start, found);
}

static canvas_status read_number(struct editor *e, int64_t *number) {
  if (e->lx.token.kind != TOKEN_INTEGER) return lexer_unexpected(&e->lx, "a whole number");
  *number = e->lx.token.integer;
  lexer_next(&e->lx);
  return CANVAS_OK;
}

static unsigned read_marks(struct editor *e) {
  unsigned marks = 0;
  for (int i = 0; i < MARKS; i++)
    if (lexer_accept(&e->lx, loop_mark_names[i])) {
      marks |= 1u << i;
      i = -1;
    }
  return marks;
}

/* ---- edits ----------------------------------------------------------------------------------- */

static canvas_status end(struct editor *e) {
  lexer_skip_newlines(&e->lx);
  if (e->lx.token.kind == TOKEN_END) return CANVAS_OK;
  return lexer_unexpected(&e->lx, "the end of the edit");
}

static canvas_status split(struct editor *e) {
  int64_t inner = 0;
  int level;
  TRY(read_level(e, &level));
  TRY(read_number(e, &inner));
  TRY(end(e));
  return edit_split(e->ctx, e->tree, level, inner, e->out);
}

static canvas_status merge(struct editor *e) {
  int outer, inner;
  TRY(read_level(e, &outer));
  TRY(read_level(e, &inner));
  TRY(end(e));
  return edit_merge(e->ctx, e->tree, outer, inner, e->out);
}

static canvas_status reorder(struct editor *e) {
  int node;
  TRY(read_loop(e, &node));
  TRY(end(e));
  return edit_reorder(e->ctx, e->tree, node, e->out);
}

static canvas_status group(struct editor *e) {
  int node;
  TRY(read_loop(e, &node));
  unsigned marks = read_marks(e);
  TRY(end(e));
  return edit_group(e->ctx, e->tree, node, marks, e->out);
}

static canvas_status ungroup(struct editor *e) {
  int node;
  TRY(read_loop(e, &node));
  TRY(end(e));
  return edit_ungroup(e->ctx, e->tree, node, e->out);
}

static canvas_status mark(struct editor *e) {
  int64_t ahead = 0;
  int node;
  TRY(read_loop(e, &node));
  unsigned marks = read_marks(e);
  const struct token t = e->lx.token;
  if (lexer_accept(&e->lx, "pf")) TRY(read_number(e, &ahead));
  if (ahead > 1 << 20) return lexer_fail(&e->lx, &t, "a prefetch is at most %d ahead", 1 << 20);
  TRY(end(e));
  return edit_mark(e->ctx, e->tree, node, marks, (int)ahead, e->out);
}

static canvas_status tail(struct editor *e) {
  int level, how = TAIL_NONE;
  TRY(read_level(e, &level));
  if (!lexer_accept(&e->lx, "none"))
    for (how = TAIL_MASK; !lexer_accept(&e->lx, level_tail_name((enum level_tail)how)); how++)
      if (how == TAIL_PEEL) return lexer_unexpected(&e->lx, "mask, peel or none");
  TRY(end(e));
  return edit_tail(e->ctx, e->tree, level, (enum level_tail)how, e->out);
}

static canvas_status extent(struct editor *e) {
  enum level_extent kind = EXTENT_INT;
  int64_t number = 0;
  int level;
  TRY(read_level(e, &level));
  if (lexer_accept(&e->lx, "open"))
    kind = EXTENT_OPEN;
  else if (lexer_accept(&e->lx, "?"))
    kind = EXTENT_HOLE;
  else
    TRY(read_number(e, &number));
  TRY(end(e));
  return edit_extent(e->ctx, e->tree, level, kind, number, e->out);
}

/* Parses the name of a stage; returns the child of `parent` that contains it. */
static canvas_status read_before(struct editor *e, int parent, int *before) {
  const struct token t = e->lx.token;
  int stage;
  TRY(read_stage(e, &stage));
  *before = e->tree->stages[stage].node;
  while (*before > 0 && node_at(e, *before)->parent != parent)
    *before = node_at(e, *before)->parent;
  if (*before > 0) return CANVAS_OK;
  return lexer_fail(&e->lx, &t, "stage '%.*s' does not stand in that loop", shown(&t), t.start);
}

static canvas_status move(struct editor *e) {
  int stage, parent = 0, before = -1;
  TRY(read_stage(e, &stage));
  TRY(lexer_expect(&e->lx, "to", "and a loop, or root"));
  if (!lexer_accept(&e->lx, "root")) TRY(read_loop(e, &parent));
  if (lexer_accept(&e->lx, "before")) TRY(read_before(e, parent, &before));
  TRY(end(e));
  return edit_move(e->ctx, e->tree, stage, parent, before, e->out);
}

/* Parses the name of an axis of the stage, or of a loop. */
static canvas_status read_axis(struct editor *e, int stage, const char **name) {
  const struct program_tensor *t = &e->tree->program->tensors.data[e->tree->stages[stage].tensor];
  int level;
  for (int i = 0; i < t->rank; i++)
    if (lexer_accept(&e->lx, t->axes[i].name)) {
      *name = t->axes[i].name;
      return CANVAS_OK;
    }
  TRY(read_level(e, &level));
  *name = e->tree->schedule->levels.data[level].name;
  return CANVAS_OK;
}

static canvas_status keep(struct editor *e) {
  const char *layout[SCHEDULE_DEPTH];
  int stage, count = 0, scope = SCOPE_REG;
  TRY(read_stage(e, &stage));
  do {
    if (count == SCHEDULE_DEPTH) return lexer_unexpected(&e->lx, "fewer axes");
    TRY(read_axis(e, stage, &layout[count++]));
  } while (lexer_accept(&e->lx, ","));
  while (scope <= SCOPE_HEAP && !lexer_accept(&e->lx, buffer_scope_name((enum buffer_scope)scope)))
    scope++;
  if (scope > SCOPE_HEAP) scope = SCOPE_AUTO;
  TRY(end(e));
  return edit_buffer(e->ctx, e->tree, stage, count, layout, (enum buffer_scope)scope, e->out);
}

static canvas_status stream(struct editor *e) {
  int stage;
  TRY(read_stage(e, &stage));
  TRY(end(e));
  return edit_buffer(e->ctx, e->tree, stage, 0, NULL, SCOPE_STREAM, e->out);
}

static const struct row {
  const char *word;
  canvas_status (*run)(struct editor *e);
} rows[] = {{"split", split}, {"merge", merge},     {"reorder", reorder}, {"group", group},
            {"mark", mark},   {"ungroup", ungroup}, {"tail", tail},       {"extent", extent},
            {"move", move},   {"keep", keep},       {"stream", stream}};
enum { ROWS = sizeof rows / sizeof *rows };

canvas_status schedule_edit_text(canvas_context *ctx, const struct loop_tree *tree,
                                 const char *text, size_t length, struct loop_tree **out) {
  struct editor e = {.ctx = ctx, .tree = tree, .out = out};
  TRY(lexer_open(&e.lx, ctx, text, length));
  lexer_skip_newlines(&e.lx);
  for (int i = 0; i < ROWS; i++)
    if (lexer_accept(&e.lx, rows[i].word)) return rows[i].run(&e);
  return lexer_unexpected(&e.lx,
                          "an edit (split, merge, reorder, group, ungroup, mark, tail, "
                          "extent, move, keep or stream)");
}
