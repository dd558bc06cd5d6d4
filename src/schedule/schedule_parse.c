/* Parses schedules: the head, the blocks of lines, and the tree form.
 *
 *     schedule = [ "canvas 1" ] [ "schedule" WORD ] { line }       by indentation, as in Python
 *     line     = loops "=>" [ line ]                               its body: the deeper lines below
 *              | "@" head [ "=" [ axes ] [ "//" axes ] ]
 *     axes     = axis { "," axis }
 *     axis     = NAME [ "/" NAME ] | "{" NAME { "," NAME } "}" "/" NAME    outer to inner
 *
 * schedule_loops.c parses loops and heads, schedule_selector.c the selector form;
 * schedule_rules.c checks the rules beside syntax.
 */
#include <string.h>

#include "schedule/schedule_text.h"

/* ---- the tree form ------------------------------------------------------------------------- */

/* Parses the axis after the '/'. */
static canvas_status read_covered(struct reader *r, struct schedule_axis *axis) {
  struct lexer *lx = &r->lx;
  if (lx->token.kind != TOKEN_NAME) return lexer_unexpected(lx, "the name of an axis");
  axis->axis = arena_strndup(&r->s->arena, lx->token.start, (size_t)lx->token.length);
  if (axis->count == 1 && !strcmp(axis->axis, r->s->levels.data[axis->level[0]].name))
    axis->axis = NULL;
  lexer_next(lx);
  return CANVAS_OK;
}

static canvas_status read_axis(struct reader *r, int leaf) {
  struct lexer *lx = &r->lx;
  struct schedule_axis *axis = schedule_add_axis(r->s, leaf, NULL);
  axis->line = lx->token.line;
  axis->column = lx->token.column;
  if (!lexer_accept(lx, "{")) {
    TRY(schedule_read_digit(r, axis));
    return lexer_accept(lx, "/") ? read_covered(r, axis) : CANVAS_OK;
  }
  do {
    TRY(schedule_read_digit(r, axis));
  } while (lexer_accept(lx, ","));
  TRY(lexer_expect(lx, "}", "after the loops of an axis"));
  if (!lexer_accept(lx, "/"))
    return lexer_fail(lx, &lx->token, "missing '/' and the axis that the loops in {} cover");
  return read_covered(r, axis);
}

static canvas_status read_axes(struct reader *r, int leaf) {
  int count = 0;
  do {
    if (count++ == PROGRAM_AXES)
      return lexer_fail(&r->lx, &r->lx.token, "more than %d axes", PROGRAM_AXES);
    TRY(read_axis(r, leaf));
  } while (lexer_accept(&r->lx, ","));
  return CANVAS_OK;
}

/* Parses a leaf after the `@`. */
static canvas_status read_leaf(struct reader *r, const struct token *at, int parent) {
  struct lexer *lx = &r->lx;
  int leaf;
  TRY(schedule_open_leaf(r, at, parent, &leaf));
  TRY(schedule_read_head(r, &r->s->nodes.data[leaf].leaf));
  if (at_line_end(lx)) return CANVAS_OK;
  TRY(lexer_expect(lx, "=", "and the axes of the stage"));
  if (!lexer_is(lx, "//")) TRY(read_axes(r, leaf));
  struct schedule_leaf *l = &r->s->nodes.data[leaf].leaf;
  int spatial = l->axes.count;
  if (lexer_accept(lx, "//")) TRY(read_axes(r, leaf));
  l->reductions = l->axes.count - spatial;
  return CANVAS_OK;
}

static canvas_status check_body(struct reader *r) {
  if (!r->opens) return CANVAS_OK;
  const struct schedule_node *n = &r->s->nodes.data[r->below.node];
  const struct token at = {.line = n->line, .column = n->column};
  return lexer_fail(&r->lx, &at,
                    "nothing stands in loop '%.40s', a nest ends with a stage '@NAME = ...'",
                    r->s->levels.data[n->loop.level[0]].name);
}

static canvas_status read_tree_line(struct reader *r) {
  struct lexer *lx = &r->lx;
  struct loop_list loops;
  struct token at = lx->token;
  if (r->count && at.column <= r->blocks[r->count - 1].column) TRY(check_body(r));
  TRY(schedule_read_indent(r));
  struct place place = r->blocks[r->count - 1].place;
  r->opens = false;
  for (; !lexer_accept(lx, "@"); at = lx->token) {
    if (at.kind != TOKEN_NAME && !lexer_is(lx, "{"))
      return lexer_unexpected(lx, "loops, or '@' and a stage");
    TRY(schedule_read_loops(r, false, &loops));
    if (lexer_is(lx, "="))
      return lexer_unexpected(lx, "'=>' after the loops, or '@' before a stage");
    TRY(lexer_expect(lx, "=>", "after the loops"));
    for (int i = 0; i < loops.count; i++) TRY(schedule_open_loop(r, &loops.data[i], &place));
    if (!at_line_end(lx)) continue;
    r->opens = true;
    r->below = place;
    return lexer_end_line(lx, "");
  }
  TRY(read_leaf(r, &at, place.node));
  return lexer_end_line(lx, "after the stage");
}

static canvas_status read_tree(struct reader *r) {
  for (; r->lx.token.kind != TOKEN_END; lexer_skip_newlines(&r->lx)) TRY(read_tree_line(r));
  return check_body(r);
}

/* ---- the head and the whole ---------------------------------------------------------------- */

static canvas_status read_version(struct lexer *lx) {
  if (!lexer_is(lx, "canvas")) return CANVAS_OK;
  struct lexer ahead = *lx;
  lexer_next(&ahead);
  if (ahead.token.kind != TOKEN_INTEGER) return CANVAS_OK; /* a loop of that name */
  *lx = ahead;
  return lexer_version(lx);
}

/* Parses the line `schedule NAME`; loops and stages may have that name, too. */
static canvas_status read_title(struct reader *r) {
  struct lexer *lx = &r->lx;
  if (!lexer_is(lx, "schedule")) return CANVAS_OK;
  struct lexer ahead = *lx;
  lexer_next(&ahead);
  if (ahead.token.kind != TOKEN_NAME) return CANVAS_OK;
  *lx = ahead;
  lexer_word(lx);
  if (lx->token.length > PROGRAM_NAME)
    return lexer_fail(lx, &lx->token, "name of more than %d bytes", PROGRAM_NAME);
  r->s->name = arena_strndup(&r->s->arena, lx->token.start, (size_t)lx->token.length);
  lexer_next(lx);
  TRY(lexer_end_line(lx, "after the name of the schedule"));
  lexer_skip_newlines(lx);
  return CANVAS_OK;
}

/* The first line determines the form: `NAME :=` or `NAME> loops` for selectors, otherwise the
 * tree. */
static bool has_selectors(const struct lexer *lx) {
  struct lexer ahead = *lx;
  while (!at_line_end(&ahead) && !lexer_is(&ahead, ":=") && !lexer_is(&ahead, ">"))
    lexer_next(&ahead);
  return !at_line_end(&ahead);
}

static canvas_status read_schedule(struct reader *r) {
  lexer_skip_newlines(&r->lx);
  TRY(read_version(&r->lx));
  TRY(read_title(r));
  if (r->lx.token.kind == TOKEN_END) return lexer_unexpected(&r->lx, "loops, or '@' and a stage");
  if (has_selectors(&r->lx))
    TRY(schedule_read_selectors(r));
  else
    TRY(read_tree(r));
  return schedule_verify(r->lx.ctx, r->s);
}

canvas_status schedule_parse(canvas_context *ctx, const char *text, size_t length,
                             struct schedule **out) {
  struct reader r = {.s = schedule_new("")};
  *out = NULL;
  canvas_status status = lexer_open(&r.lx, ctx, text, length);
  if (status == CANVAS_OK) status = read_schedule(&r);
  if (status == CANVAS_OK)
    *out = r.s;
  else
    schedule_free(r.s);
  return status;
}
