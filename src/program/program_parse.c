/* The text of programs: a recursive-descent parser over the builder. See docs/program.md.
 *
 *     program = [ "canvas 1" ] "program" WORD [ "winograd" INTEGER ] { input | stage | output }
 *     input   = "in" NAME dtype "[" axes "]" [ ["-"] NUMBER ".." ["-"] NUMBER [ "rising" ] ]
 *     stage   = NAME [ dtype ] "[" axes "]" "=" expr [ "//" reducer over { "," over } ]
 *     over    = NAME ":" ( NUMBER | expr ".." expr )
 *     output  = "out" NAME { "," NAME }
 *     expr    = "if" or "then" expr "else" expr | or
 *     or      = and { "||" and }            and  = not { "&&" not }       not = "!" not | compare
 *     compare = sum [ ("<" | "<=" | ">" | ">=" | "==" | "!=") sum ]
 *     sum     = product { ("+" | "-") product }
 *     product = sign { ("*" | "/" | "%") sign }                           sign = "-" sign | leaf
 *     leaf    = NUMBER | "inf" | "true" | "false" | NAME | NAME "[" exprs "]" | NAME "(" exprs ")"
 *             | "(" expr ")"
 *
 * The context decides the sort of a number: an index within [ ], a value in a stage's expression;
 * in a condition the sort of the other side.
 */
#include <math.h>
#include <string.h>

#include "base/lexer.h"
#include "base/name_table.h"
#include "program/program.h"
#include "program/program_facts.h"

enum place { IN_VALUE, IN_INDEX, IN_CONDITION };

/* An `if` in parentheses counts twice here and once in the tree. */
enum { NESTING = 2 * PROGRAM_DEPTH + 8 };

struct parser {
  struct lexer lx;
  struct program *p;
  int stage; /* whose expression is read */
  int depth;
  bool inner; /* it stands in another text, and `end` behind it */
  struct name_table tensors;
};

/* Reports the builder's error at the position of the expression. */
static canvas_status built(struct parser *ps, const struct token *at, int result) {
  return result < 0 ? lexer_fail(&ps->lx, at, "%s", ps->p->error) : CANVAS_OK;
}

static canvas_status enter(struct parser *ps) {
  if (++ps->depth <= NESTING) return CANVAS_OK;
  return lexer_fail(&ps->lx, &ps->lx.token,
                    "expression nests deeper than %d levels, give a part of it a stage of its own",
                    PROGRAM_DEPTH);
}

static canvas_status parse_expr(struct parser *ps, enum place place, int *out);

static canvas_status binary(struct parser *ps, enum px_op op, const struct token *at, int *left,
                            int right) {
  *left = px_raw(ps->p, op, *left, right, -1, at->line, at->column);
  return built(ps, at, *left);
}

static canvas_status parse_number(struct parser *ps, enum place place, int sign, int *out) {
  struct token t = ps->lx.token;
  struct px_node leaf = {.line = t.line, .column = t.column};
  bool infinite = lexer_is(&ps->lx, "inf");
  if (t.kind == TOKEN_INTEGER && place != IN_VALUE) {
    leaf.op = PX_INT;
    leaf.sort = PX_INDEX;
    leaf.integer = sign * t.integer;
  } else if (place == IN_INDEX) {
    return lexer_fail(&ps->lx, &t, "an index takes whole numbers, found '%.*s'",
                      t.length < 40 ? t.length : 40, t.start);
  } else {
    leaf.op = PX_NUMBER;
    leaf.sort = PX_VALUE;
    leaf.number = sign * (infinite ? HUGE_VAL : t.real);
  }
  lexer_next(&ps->lx);
  return built(ps, &t, *out = px_raw_leaf(ps->p, leaf));
}

/* Parses expressions up to `close`, at most `most` of them. */
static canvas_status parse_list(struct parser *ps, enum place place, const char *close, int most,
                                int *exprs, int *count) {
  *count = 0;
  if (lexer_accept(&ps->lx, close)) return CANVAS_OK;
  do {
    struct token at = ps->lx.token;
    if (*count == most) return lexer_fail(&ps->lx, &at, "expected '%s' after %d", close, most);
    TRY(parse_expr(ps, place, &exprs[(*count)++]));
  } while (lexer_accept(&ps->lx, ","));
  return lexer_expect(&ps->lx, close, "or ',' after an expression");
}

static bool token_is_name(const struct token *t, const char *name) {
  return strlen(name) == (size_t)t->length && memcmp(name, t->start, (size_t)t->length) == 0;
}

static int find_tensor(struct parser *ps, const struct token *name) {
  return name_table_find(&ps->tensors, name->start, (size_t)name->length);
}

/* Records the position of a new tensor; rejects a name that is taken. */
static canvas_status place_tensor(struct parser *ps, const struct token *name, int tensor) {
  TRY(built(ps, name, tensor));
  struct program_tensor *t = &ps->p->tensors.data[tensor];
  t->line = name->line;
  t->column = name->column;
  int first = find_tensor(ps, name);
  if (first >= 0)
    return lexer_fail(&ps->lx, name, "'%.40s' is defined twice, first on line %d", t->name,
                      ps->p->tensors.data[first].line);
  name_table_add(&ps->tensors, t->name, tensor);
  return CANVAS_OK;
}

static canvas_status parse_load(struct parser *ps, const struct token *name, enum place place,
                                int *out) {
  int indices[PROGRAM_AXES], rank, tensor = find_tensor(ps, name);
  int shown = name->length < 40 ? name->length : 40;
  if (tensor == ps->stage)
    return lexer_fail(&ps->lx, name, "stage '%.*s' loads itself", shown, name->start);
  if (tensor < 0)
    return lexer_fail(&ps->lx, name, "unknown tensor '%.*s', define it on an earlier line", shown,
                      name->start);
  if (place == IN_INDEX && ps->p->tensors.data[tensor].dtype != PROGRAM_I32)
    return lexer_fail(
        &ps->lx, name,
        "'%.*s[...]' is a value, an index is made of axes, integers and tensors of i32", shown,
        name->start);
  lexer_next(&ps->lx);
  TRY(parse_list(ps, IN_INDEX, "]", PROGRAM_AXES, indices, &rank));
  *out = px_raw_load(ps->p, tensor, rank, indices, name->line, name->column);
  return built(ps, name, *out);
}

/* The function with this name; PX_OPS if there is none. */
static enum px_op find_function(const struct token *name) {
  for (int op = 0; op < PX_OPS; op++)
    if (scalar_ops[op].binding == BIND_CALL && token_is_name(name, scalar_ops[op].text))
      return (enum px_op)op;
  return PX_OPS;
}

static canvas_status unknown_function(struct parser *ps, const struct token *name) {
  struct buf known = {0};
  for (int op = 0; op < PX_OPS; op++)
    if (scalar_ops[op].binding == BIND_CALL)
      buf_printf(&known, "%s%s", known.length ? ", " : "", scalar_ops[op].text);
  canvas_status status = lexer_fail(&ps->lx, name, "unknown function '%.*s', there are %s",
                                    name->length < 40 ? name->length : 40, name->start, known.text);
  buf_free(&known);
  return status;
}

static canvas_status parse_call(struct parser *ps, const struct token *name, enum place place,
                                int *out) {
  int arg[2] = {-1, -1}, count;
  enum px_op op = find_function(name);
  if (op == PX_OPS) return unknown_function(ps, name);
  const struct scalar_op *row = &scalar_ops[op];
  bool either = row->sorts == SORTS_NUMBERS;
  if (place == IN_INDEX && !either)
    return lexer_fail(&ps->lx, name,
                      "'%s' gives a value, an index is made of axes, integers and tensors of i32",
                      row->text);
  if (!either) place = row->sorts == SORTS_REAL ? IN_INDEX : IN_VALUE;
  lexer_next(&ps->lx);
  TRY(parse_list(ps, place, ")", 2, arg, &count));
  if (count != row->arity)
    return lexer_fail(&ps->lx, name, "'%s' takes %d argument%s, found %d", row->text, row->arity,
                      row->arity > 1 ? "s" : "", count);
  *out = px_raw(ps->p, op, arg[0], arg[1], -1, name->line, name->column);
  return built(ps, name, *out);
}

static canvas_status parse_axis(struct parser *ps, const struct token *name, enum place place,
                                int *out) {
  const struct program_tensor *t = &ps->p->tensors.data[ps->stage];
  int i = 0, shown = name->length < 40 ? name->length : 40;
  while (i < t->rank + t->reductions && !token_is_name(name, t->axes[i].name)) i++;
  if (i == t->rank + t->reductions)
    return lexer_fail(&ps->lx, name, "unknown axis '%.*s' of stage '%.40s'", shown, name->start,
                      t->name);
  if (place == IN_VALUE)
    return lexer_fail(&ps->lx, name, "axis '%.*s' is an index, write real(%.*s) for its value",
                      shown, name->start, shown, name->start);
  struct px_node leaf = {.op = PX_AXIS,
                         .sort = PX_INDEX,
                         .tensor = ps->stage,
                         .integer = i,
                         .line = name->line,
                         .column = name->column};
  return built(ps, name, *out = px_raw_leaf(ps->p, leaf));
}

static canvas_status parse_name(struct parser *ps, enum place place, int *out) {
  struct token name = ps->lx.token;
  if (lexer_is(&ps->lx, "inf")) return parse_number(ps, place, 1, out);
  bool yes = lexer_is(&ps->lx, "true");
  lexer_next(&ps->lx);
  if (yes || token_is_name(&name, "false")) {
    struct px_node leaf = {.op = PX_BOOL,
                           .sort = PX_CONDITION,
                           .integer = yes,
                           .line = name.line,
                           .column = name.column};
    return built(ps, &name, *out = px_raw_leaf(ps->p, leaf));
  }
  if (lexer_is(&ps->lx, "(")) return parse_call(ps, &name, place, out);
  if (!lexer_is(&ps->lx, "[")) return parse_axis(ps, &name, place, out);
  return parse_load(ps, &name, place, out);
}

static canvas_status parse_leaf(struct parser *ps, enum place place, int *out) {
  enum token_kind kind = ps->lx.token.kind;
  TRY(enter(ps));
  if (lexer_is(&ps->lx, "if"))
    return lexer_fail(&ps->lx, &ps->lx.token, "an 'if' that is part of more stands in parentheses");
  if (kind == TOKEN_INTEGER || kind == TOKEN_REAL) {
    TRY(parse_number(ps, place, 1, out));
  } else if (kind == TOKEN_NAME && !lexer_is(&ps->lx, "then") && !lexer_is(&ps->lx, "else")) {
    TRY(parse_name(ps, place, out));
  } else if (lexer_accept(&ps->lx, "(")) {
    TRY(parse_expr(ps, place, out));
    TRY(lexer_expect(&ps->lx, ")", "to close the parenthesis"));
  } else {
    return lexer_unexpected(&ps->lx, "an expression");
  }
  ps->depth--;
  return CANVAS_OK;
}

static canvas_status parse_sign(struct parser *ps, enum place place, int *out) {
  struct token at = ps->lx.token;
  if (!lexer_accept(&ps->lx, "-")) return parse_leaf(ps, place, out);
  enum token_kind kind = ps->lx.token.kind;
  if (kind == TOKEN_INTEGER || kind == TOKEN_REAL || lexer_is(&ps->lx, "inf"))
    return parse_number(ps, place, -1, out);
  TRY(enter(ps));
  TRY(parse_sign(ps, place, out));
  ps->depth--;
  return binary(ps, PX_NEG, &at, out, -1);
}

/* Consumes an operator of this precedence; false if there is none. */
static bool accept_operator(struct parser *ps, enum px_binding binding, enum px_op *op) {
  for (int i = 0; i < PX_OPS; i++)
    if (scalar_ops[i].binding == binding && lexer_accept(&ps->lx, scalar_ops[i].text)) {
      *op = (enum px_op)i;
      return true;
    }
  return false;
}

static canvas_status parse_product(struct parser *ps, enum place place, int *out) {
  enum px_op op;
  TRY(parse_sign(ps, place, out));
  for (struct token at = ps->lx.token; accept_operator(ps, BIND_MUL, &op); at = ps->lx.token) {
    int right;
    TRY(parse_sign(ps, place, &right));
    TRY(binary(ps, op, &at, out, right));
  }
  return CANVAS_OK;
}

static canvas_status parse_sum(struct parser *ps, enum place place, int *out) {
  enum px_op op;
  TRY(parse_product(ps, place, out));
  for (struct token at = ps->lx.token; accept_operator(ps, BIND_ADD, &op); at = ps->lx.token) {
    int right;
    TRY(parse_product(ps, place, &right));
    TRY(binary(ps, op, &at, out, right));
  }
  return CANVAS_OK;
}

static canvas_status parse_compare(struct parser *ps, enum place place, int *out) {
  enum px_op op;
  TRY(parse_sum(ps, place, out));
  struct token at = ps->lx.token;
  if (place != IN_CONDITION || !accept_operator(ps, BIND_COMPARE, &op)) return CANVAS_OK;
  int right;
  TRY(parse_sum(ps, place, &right));
  TRY(binary(ps, op, &at, out, right));
  at = ps->lx.token;
  if (accept_operator(ps, BIND_COMPARE, &op))
    return lexer_fail(&ps->lx, &at, "comparisons do not chain, write 'a < b && b < c'");
  return CANVAS_OK;
}

static canvas_status parse_not(struct parser *ps, enum place place, int *out) {
  struct token at = ps->lx.token;
  if (place != IN_CONDITION || !lexer_accept(&ps->lx, "!")) return parse_compare(ps, place, out);
  TRY(enter(ps));
  TRY(parse_not(ps, place, out));
  ps->depth--;
  return binary(ps, PX_NOT, &at, out, -1);
}

static canvas_status parse_and(struct parser *ps, enum place place, int *out) {
  TRY(parse_not(ps, place, out));
  while (place == IN_CONDITION && lexer_is(&ps->lx, "&&")) {
    struct token at = ps->lx.token;
    int right;
    lexer_next(&ps->lx);
    TRY(parse_not(ps, place, &right));
    TRY(binary(ps, PX_AND, &at, out, right));
  }
  return CANVAS_OK;
}

static canvas_status parse_or(struct parser *ps, enum place place, int *out) {
  TRY(parse_and(ps, place, out));
  while (place == IN_CONDITION && lexer_is(&ps->lx, "||")) {
    struct token at = ps->lx.token;
    int right;
    lexer_next(&ps->lx);
    TRY(parse_and(ps, place, &right));
    TRY(binary(ps, PX_OR, &at, out, right));
  }
  return CANVAS_OK;
}

static canvas_status parse_expr(struct parser *ps, enum place place, int *out) {
  struct token at = ps->lx.token;
  int condition, then, other;
  if (!lexer_accept(&ps->lx, "if")) return parse_or(ps, place, out);
  TRY(enter(ps));
  TRY(parse_or(ps, IN_CONDITION, &condition));
  TRY(lexer_expect(&ps->lx, "then", "after the condition"));
  TRY(parse_expr(ps, place, &then));
  TRY(lexer_expect(&ps->lx, "else", "after the value of 'then'"));
  TRY(parse_expr(ps, place, &other));
  ps->depth--;
  *out = px_raw(ps->p, PX_SELECT, condition, then, other, at.line, at.column);
  return built(ps, &at, *out);
}

/* Lines */

struct axes {
  const char *names[PROGRAM_AXES];
  int64_t sizes[PROGRAM_AXES];
  int count;
};

static canvas_status parse_axis_name(struct parser *ps, const char **name) {
  struct lexer *lx = &ps->lx;
  struct token t = lx->token;
  if (t.kind != TOKEN_NAME) return lexer_unexpected(lx, "the name of an axis");
  lexer_next(lx);
  *name = arena_strndup(&ps->p->arena, t.start, (size_t)t.length);
  return lexer_expect(lx, ":", "and the size after the name of an axis");
}

static canvas_status parse_axes(struct parser *ps, struct axes *axes) {
  struct lexer *lx = &ps->lx;
  axes->count = 0;
  if (lexer_accept(lx, "]")) return CANVAS_OK;
  do {
    if (axes->count == PROGRAM_AXES)
      return lexer_fail(lx, &lx->token, "more than %d axes", PROGRAM_AXES);
    TRY(parse_axis_name(ps, &axes->names[axes->count]));
    if (lx->token.kind != TOKEN_INTEGER) return lexer_unexpected(lx, "the size of an axis");
    axes->sizes[axes->count++] = lx->token.integer;
    lexer_next(lx);
  } while (lexer_accept(lx, ","));
  return lexer_expect(lx, "]", "after the axes");
}

static canvas_status parse_dtype(struct parser *ps, enum program_dtype *dtype) {
  struct lexer *lx = &ps->lx;
  for (int i = 0; i < PROGRAM_DTYPES; i++)
    if (lexer_accept(lx, program_dtype_name(i))) {
      *dtype = i;
      return CANVAS_OK;
    }
  return lexer_unexpected(lx, "a data type (f32, f64, bf16 or i32)");
}

static canvas_status parse_bound(struct parser *ps, int64_t *bound) {
  struct lexer *lx = &ps->lx;
  int64_t sign = lexer_accept(lx, "-") ? -1 : 1;
  if (lx->token.kind != TOKEN_INTEGER)
    return lexer_unexpected(lx, "the range of an input of i32, 'LOW..HIGH'");
  *bound = sign * lx->token.integer;
  lexer_next(lx);
  return CANVAS_OK;
}

/* Parses the range of an i32 input: `0..41 rising`. */
static canvas_status parse_range(struct parser *ps, int input) {
  struct lexer *lx = &ps->lx;
  int64_t low = 0, high = 0;
  TRY(parse_bound(ps, &low));
  TRY(lexer_expect(lx, "..", "and the end of the range"));
  TRY(parse_bound(ps, &high));
  program_input_range(ps->p, input, low, high - 1, lexer_accept(lx, "rising"));
  return CANVAS_OK;
}

static canvas_status parse_input(struct parser *ps) {
  struct lexer *lx = &ps->lx;
  struct token name = lx->token;
  enum program_dtype dtype = PROGRAM_F32;
  struct axes axes;
  if (name.kind != TOKEN_NAME) return lexer_unexpected(lx, "the name of an input");
  lexer_next(lx);
  TRY(parse_dtype(ps, &dtype));
  TRY(lexer_expect(lx, "[", "and the axes"));
  TRY(parse_axes(ps, &axes));
  char *text = arena_strndup(&ps->p->arena, name.start, (size_t)name.length);
  int t = program_input(ps->p, text, dtype, axes.count, axes.names, axes.sizes);
  TRY(place_tensor(ps, &name, t));
  if (dtype == PROGRAM_I32) TRY(parse_range(ps, t));
  if (lexer_accept(lx, "const")) program_input_constant(ps->p, t);
  TRY(lexer_end_line(lx, dtype == PROGRAM_I32 ? "after the range" : "after the axes"));
  return program_verify_tensor(lx->ctx, ps->p, t);
}

/* Parses `k:9` or `k:ptr[r]..ptr[r+1]`. */
static canvas_status parse_over(struct parser *ps, enum program_reducer reducer) {
  struct lexer *lx = &ps->lx;
  const char *name;
  struct token at = lx->token, size;
  int low, high;
  TRY(parse_axis_name(ps, &name));
  size = lx->token;
  TRY(parse_expr(ps, IN_INDEX, &low));
  if (lexer_accept(lx, "..")) {
    TRY(parse_expr(ps, IN_INDEX, &high));
    return built(ps, &at, program_reduce_range(ps->p, ps->stage, reducer, name, low, high));
  }
  const struct px_node *n = &ps->p->nodes.data[low];
  if (n->op != PX_INT)
    return lexer_fail(lx, &size, "axis '%.40s' needs a size, or a range 'LOW..HIGH'", name);
  return built(ps, &at, program_reduce(ps->p, ps->stage, reducer, name, n->integer));
}

/* Parses what follows `//`, from the reducer on. */
static canvas_status parse_reduction(struct parser *ps) {
  struct lexer *lx = &ps->lx;
  enum program_reducer reducer = REDUCE_SUM;
  while (reducer <= REDUCE_PROD && !lexer_accept(lx, program_reducer_name(reducer))) reducer++;
  if (reducer > REDUCE_PROD) return lexer_unexpected(lx, "a reducer (sum, max, mean, min or prod)");
  do TRY(parse_over(ps, reducer));
  while (lexer_accept(lx, ","));
  return CANVAS_OK;
}

/* Parses the reductions before the expression, which uses them but precedes them in the text. */
static canvas_status parse_body(struct parser *ps) {
  struct lexer *lx = &ps->lx;
  struct lexer start = *lx, end;
  while (lx->token.kind != TOKEN_NEWLINE && lx->token.kind != TOKEN_END && !lexer_is(lx, "//"))
    lexer_next(lx);
  bool reduces = lexer_accept(lx, "//");
  if (reduces) TRY(parse_reduction(ps));
  end = *lx;
  *lx = start;
  struct token at = lx->token;
  int body;
  TRY(parse_expr(ps, IN_VALUE, &body));
  if (reduces) {
    TRY(lexer_expect(lx, "//", "and the reduction after the expression"));
    *lx = end;
  }
  TRY(lexer_end_line(lx, reduces ? "after the reduction" : "after the expression"));
  program_define(ps->p, ps->stage, body);
  return built(ps, &at, ps->p->failed ? -1 : 0);
}

static canvas_status parse_stage(struct parser *ps) {
  struct lexer *lx = &ps->lx;
  struct token name = lx->token;
  enum program_dtype dtype = PROGRAM_F32;
  struct axes axes;
  lexer_next(lx);
  if (lx->token.kind == TOKEN_NAME) TRY(parse_dtype(ps, &dtype));
  TRY(lexer_expect(lx, "[", "and the axes of a stage, or a line that begins with 'in' or 'out'"));
  TRY(parse_axes(ps, &axes));
  TRY(lexer_expect(lx, "=", "and an expression after the axes"));
  char *text = arena_strndup(&ps->p->arena, name.start, (size_t)name.length);
  ps->stage = program_stage(ps->p, text, dtype, axes.count, axes.names, axes.sizes);
  TRY(place_tensor(ps, &name, ps->stage));
  TRY(parse_body(ps));
  return program_verify_tensor(lx->ctx, ps->p, ps->stage);
}

static canvas_status parse_outputs(struct parser *ps) {
  struct lexer *lx = &ps->lx;
  do {
    struct token name = lx->token;
    int shown = name.length < 40 ? name.length : 40;
    if (name.kind != TOKEN_NAME) return lexer_unexpected(lx, "the name of a stage");
    int t = find_tensor(ps, &name);
    if (t < 0) return lexer_fail(lx, &name, "unknown stage '%.*s'", shown, name.start);
    if (ps->p->tensors.data[t].is_input)
      return lexer_fail(lx, &name, "'%.*s' is an input, an output is a stage", shown, name.start);
    for (int i = 0; i < ps->p->outputs.count; i++)
      if (ps->p->outputs.data[i] == t)
        return lexer_fail(lx, &name, "'%.*s' is an output twice", shown, name.start);
    program_output(ps->p, t);
    lexer_next(lx);
  } while (lexer_accept(lx, ","));
  return lexer_end_line(lx, "after the outputs");
}

/* Parses `winograd 4`, or nothing. */
static canvas_status parse_winograd(struct parser *ps) {
  struct lexer *lx = &ps->lx;
  if (!lexer_accept(lx, "winograd")) return CANVAS_OK;
  if (lx->token.kind != TOKEN_INTEGER || !winograd_has_tile(lx->token.integer))
    return lexer_unexpected(lx, "the tile of Winograd's convolution, 2 or 4");
  ps->p->winograd = (int)lx->token.integer;
  lexer_next(lx);
  return CANVAS_OK;
}

static canvas_status parse_header(struct parser *ps) {
  struct lexer *lx = &ps->lx;
  lexer_skip_newlines(lx);
  if (lexer_accept(lx, "canvas")) TRY(lexer_version(lx));
  TRY(lexer_expect(lx, "program", "and its name"));
  lexer_word(lx);
  if (lx->token.kind != TOKEN_NAME) return lexer_unexpected(lx, "the name of the program");
  if (lx->token.length > PROGRAM_NAME)
    return lexer_fail(lx, &lx->token, "name of more than %d bytes", PROGRAM_NAME);
  ps->p->name = arena_strndup(&ps->p->arena, lx->token.start, (size_t)lx->token.length);
  lexer_next(lx);
  TRY(parse_winograd(ps));
  return lexer_end_line(lx, "after the name of the program");
}

/* Parses a line `end`, which ends a program inside another text. */
static bool is_end(const struct lexer *lx) {
  struct lexer ahead = *lx;
  return lexer_accept(&ahead, "end") &&
         (ahead.token.kind == TOKEN_NEWLINE || ahead.token.kind == TOKEN_END);
}

static canvas_status parse_program(struct parser *ps) {
  struct lexer *lx = &ps->lx;
  TRY(parse_header(ps));
  for (lexer_skip_newlines(lx); lx->token.kind != TOKEN_END; lexer_skip_newlines(lx)) {
    if (ps->inner && is_end(lx)) break;
    if (lx->token.kind != TOKEN_NAME)
      return lexer_unexpected(lx, "'in', 'out' or the name of a stage");
    if (lexer_accept(lx, "in"))
      TRY(parse_input(ps));
    else if (lexer_accept(lx, "out"))
      TRY(parse_outputs(ps));
    else
      TRY(parse_stage(ps));
  }
  if (!ps->p->outputs.count) return lexer_unexpected(lx, "'out' and the name of a stage");
  return program_verify(lx->ctx, ps->p);
}

/* Takes the tables of `ps`. */
static canvas_status parse_close(struct parser *ps, canvas_status status, struct program **out) {
  name_table_free(&ps->tensors);
  if (status == CANVAS_OK)
    *out = ps->p;
  else
    program_free(ps->p);
  return status;
}

canvas_status program_parse(canvas_context *ctx, const char *text, size_t length,
                            struct program **out) {
  struct parser ps = {.p = program_new("")};
  *out = NULL;
  canvas_status status = lexer_open(&ps.lx, ctx, text, length);
  if (status == CANVAS_OK) status = parse_program(&ps);
  return parse_close(&ps, status, out);
}

canvas_status program_parse_inner(struct lexer *lx, struct program **out) {
  struct parser ps = {.lx = *lx, .p = program_new(""), .inner = true};
  *out = NULL;
  canvas_status status = parse_program(&ps);
  *lx = ps.lx;
  if (status == CANVAS_OK) status = lexer_expect(lx, "end", "after the program");
  return parse_close(&ps, status, out);
}

canvas_status program_parse_value(struct lexer *lx, struct program *p, int stage, int *out) {
  struct parser ps = {.lx = *lx, .p = p, .stage = stage};
  for (int i = 0; i <= stage; i++) name_table_add(&ps.tensors, p->tensors.data[i].name, i);
  canvas_status status = parse_expr(&ps, IN_VALUE, out);
  *lx = ps.lx;
  name_table_free(&ps.tensors);
  return status;
}

canvas_status program_parse_index(struct lexer *lx, struct program *p, int tensor, int *out) {
  struct parser ps = {.lx = *lx, .p = p, .stage = tensor};
  canvas_status status = parse_expr(&ps, IN_INDEX, out);
  *lx = ps.lx;
  return status;
}
