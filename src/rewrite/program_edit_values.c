/* Parses the edits that name a value of a stage by its text, such as `outline Y exp(X[c]) as E`,
 * and `turn`. See program_edit.h. */
#include <string.h>

#include "program/affine.h"
#include "rewrite/program_edit.h"
#include "rewrite/program_rebuild.h"

enum { LOOKED = 1 << 12 /* nodes: larger expressions are not compared by their text */ };

/* ---- the value
 * --------------------------------------------------------------------------------- */

/* The first value in the expression for which `same` returns true, in the order of the text; -1. */
static int find_value(const struct program *p, int expr, bool (*same)(void *data, int node),
                      void *data) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->sort == PX_VALUE && same(data, expr)) return expr;
  for (int i = 0; i < 3; i++) {
    int found = n->arg[i] >= 0 && n->op != PX_LOAD ? find_value(p, n->arg[i], same, data) : -1;
    if (found >= 0) return found;
  }
  return -1;
}

struct wanted {
  const struct program *p;
  int value; /* the parsed one */
  struct buf text;
};

static bool is_same(void *data, int node) {
  const struct wanted *w = data;
  return px_same(w->p, w->value, node);
}

/* Compares texts: an expression made by the builder may be another tree with the same text. */
static bool reads_the_same(void *data, int node) {
  const struct wanted *w = data;
  struct buf text = {0};
  program_print_expr(w->p, node, &text);
  bool same = !strcmp(text.text, w->text.text);
  buf_free(&text);
  return same;
}

/* The node of the stage's expression that equals `value`; -1. `copy` is the program with the parsed
 * value appended, so nodes have the same index in both. */
static int find_node(const struct program *copy, int stage, int value) {
  int body = copy->tensors.data[stage].body;
  struct wanted w = {.p = copy, .value = value};
  int node = find_value(copy, body, is_same, &w);
  if (node >= 0 || copy->nodes.data[body].size > LOOKED) return node;
  program_print_expr(copy, value, &w.text);
  node = find_value(copy, body, reads_the_same, &w);
  buf_free(&w.text);
  return node;
}

/* Parses `Y EXPRESSION` and finds the value in Y. */
static canvas_status read_value(struct lexer *lx, struct change *c) {
  struct token at = lx->token;
  int value;
  c->tensor = -1;
  TRY(read_tensor(lx, c->from, "the stage whose expression has the value", &c->consumer));
  const struct program_tensor *t = &c->from->tensors.data[c->consumer];
  if (t->is_input) return lexer_fail(lx, &at, "'%.40s' is an input, it has no expression", t->name);
  at = lx->token;
  struct program *copy = program_copy(c->from);
  canvas_status status = program_parse_value(lx, copy, c->consumer, &value);
  c->node = status == CANVAS_OK ? find_node(copy, c->consumer, value) : -1;
  program_free(copy);
  if (status != CANVAS_OK) return status;
  if (c->node >= 0) return CANVAS_OK;
  return lexer_fail(lx, &at, "the expression of '%.40s' has no such value", t->name);
}

/* ---- outline, columns, reciprocal
 * -------------------------------------------------------------- */

/* Rejects values that depend on a reduction with data-dependent bounds: its places are no axis of a
 * tensor. */
static canvas_status check_bounds(struct lexer *lx, const struct token *at,
                                  const struct change *c) {
  const struct program_tensor *t = &c->from->tensors.data[c->consumer];
  for (int i = t->rank; i < t->rank + t->reductions; i++)
    if (t->axes[i].low >= 0 && px_mentions(c->from, c->node, i))
      return lexer_fail(lx, at, "the value depends on '%.40s', whose bounds depend on data",
                        t->axes[i].name);
  return CANVAS_OK;
}

static bool is_divisor(const struct program *p, int expr, int value) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->sort != PX_VALUE || n->op == PX_LOAD) return false;
  if (n->op == PX_DIV && px_same(p, n->arg[1], value)) return true;
  for (int i = 0; i < 3; i++)
    if (n->arg[i] >= 0 && is_divisor(p, n->arg[i], value)) return true;
  return false;
}

static canvas_status check_divisor(struct lexer *lx, const struct token *at,
                                   const struct change *c) {
  const struct program_tensor *t = &c->from->tensors.data[c->consumer];
  if (t->dtype != PROGRAM_F32)
    return lexer_fail(lx, at, "'%.40s' is not of f32, so its divisions stay", t->name);
  if (!is_divisor(c->from, t->body, c->node))
    return lexer_fail(lx, at, "'%.40s' does not divide by that", t->name);
  if (!has_reciprocal(c->from, c->node))
    return lexer_fail(lx, at,
                      "the divisor may be 0, or so small or large that it has no reciprocal");
  return CANVAS_OK;
}

canvas_status read_outline(struct lexer *lx, struct change *c, enum change_kind kind,
                           bool columns) {
  const struct token at = lx->token;
  c->kind = kind;
  c->columns = columns;
  TRY(read_value(lx, c));
  TRY(check_bounds(lx, &at, c));
  if (kind == CHANGE_RECIPROCAL) TRY(check_divisor(lx, &at, c));
  TRY(read_new_name(lx, c));
  outline_axes(c);
  return CANVAS_OK;
}

/* ---- straight, turn
 * ---------------------------------------------------------------------------- */

/* Parses the name of an own axis of the tensor. */
static canvas_status read_axis(struct lexer *lx, const struct program_tensor *t, int *axis) {
  struct token at = lx->token;
  if (at.kind != TOKEN_NAME) return lexer_unexpected(lx, "an axis of the stage");
  for (*axis = t->rank - 1; *axis >= 0 && !lexer_is(lx, t->axes[*axis].name);) --*axis;
  if (*axis < 0)
    return lexer_fail(lx, &at, "'%.40s' has no axis '%.*s'", t->name,
                      at.length < 40 ? at.length : 40, at.start);
  lexer_next(lx);
  return CANVAS_OK;
}

canvas_status read_straight(struct lexer *lx, struct change *c) {
  const struct token at = lx->token;
  int axis;
  c->kind = CHANGE_STRAIGHT;
  TRY(read_value(lx, c));
  if (c->from->nodes.data[c->node].op != PX_LOAD)
    return lexer_fail(lx, &at, "the value is not a load of a tensor");
  TRY(read_axis(lx, &c->from->tensors.data[c->consumer], &axis));
  if (find_load_pieces(c, axis)) return CANVAS_OK;
  return lexer_fail(lx, &at,
                    "no index of the load depends on that axis alone in a few long affine pieces");
}

canvas_status read_transpose(struct lexer *lx, struct change *c) {
  const struct token at = lx->token;
  c->kind = CHANGE_TRANSPOSE;
  TRY(read_tensor(lx, c->from, "the stage to transpose", &c->tensor));
  const struct program_tensor *t = &c->from->tensors.data[c->tensor];
  const char *why =
      t->reductions ? "reduces, so its axes keep their order" : not_inlined(c->from, c->tensor);
  if (why) return lexer_fail(lx, &at, "'%.40s' %s", t->name, why);
  TRY(read_axis(lx, t, &c->axis));
  return read_new_name(lx, c);
}
