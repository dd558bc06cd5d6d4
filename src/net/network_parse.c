/* Parses the text of networks. See network.h.
 *
 *     network = [ "canvas 1" ] "network" NAME { program "end" | given | call | output }
 *     given   = ( "in" | "weight" ) value [ range ] [ "from" WORD ]
 *     value   = NAME dtype "[" [ SIZE { "," SIZE } ] "]"
 *     range   = ["-"] NUMBER ".." ["-"] NUMBER [ "rising" ]                  for i32
 *     call    = value { "," value } "=" NAME "(" [ NAME { "," NAME } ] ")"
 *     output  = "out" NAME { "," NAME }
 */
#include <string.h>

#include "base/lexer.h"
#include "net/network.h"

struct parser {
  struct lexer lx;
  struct network *n;
};

static int shown(const struct token *t) {
  return t->length < 40 ? t->length : 40;
}

/* ---- values ---------------------------------------------------------------------------------- */

static canvas_status parse_dtype(struct parser *ps, enum program_dtype *dtype) {
  for (int i = 0; i < PROGRAM_DTYPES; i++)
    if (lexer_accept(&ps->lx, program_dtype_name(i))) {
      *dtype = i;
      return CANVAS_OK;
    }
  return lexer_unexpected(&ps->lx, "a data type (f32, f64, bf16 or i32)");
}

static canvas_status parse_sizes(struct parser *ps, int *rank, int64_t *sizes) {
  struct lexer *lx = &ps->lx;
  *rank = 0;
  TRY(lexer_expect(lx, "[", "and the sizes"));
  if (lexer_accept(lx, "]")) return CANVAS_OK;
  do {
    if (*rank == PROGRAM_AXES)
      return lexer_fail(lx, &lx->token, "more than %d sizes", PROGRAM_AXES);
    if (lx->token.kind != TOKEN_INTEGER) return lexer_unexpected(lx, "a size");
    sizes[(*rank)++] = lx->token.integer;
    lexer_next(lx);
  } while (lexer_accept(lx, ","));
  return lexer_expect(lx, "]", "after the sizes");
}

static canvas_status parse_value(struct parser *ps, enum net_kind kind, int *out) {
  struct lexer *lx = &ps->lx;
  struct token name = lx->token;
  enum program_dtype dtype = PROGRAM_F32;
  char text[PROGRAM_NAME + 1];
  int64_t sizes[PROGRAM_AXES];
  int rank;
  if (name.kind != TOKEN_NAME) return lexer_unexpected(lx, "the name of a tensor");
  if (name.length > PROGRAM_NAME)
    return lexer_fail(lx, &name, "name of more than %d bytes", PROGRAM_NAME);
  int first = name_table_find(&ps->n->tensor_names.used, name.start, (size_t)name.length);
  if (first >= 0)
    return lexer_fail(lx, &name, "'%.*s' is defined twice, first on line %d", shown(&name),
                      name.start, ps->n->tensors.data[first].line);
  if (ps->n->tensors.count == NETWORK_TENSORS)
    return lexer_fail(lx, &name, "more than %d tensors", NETWORK_TENSORS);
  lexer_next(lx);
  TRY(parse_dtype(ps, &dtype));
  TRY(parse_sizes(ps, &rank, sizes));
  memcpy(text, name.start, (size_t)name.length);
  text[name.length] = '\0';
  *out = network_tensor(ps->n, kind, text, dtype, rank, sizes);
  struct net_tensor *t = &ps->n->tensors.data[*out];
  t->line = name.line;
  t->column = name.column;
  return CANVAS_OK;
}

/* ---- inputs and weights ---------------------------------------------------------------------- */

static canvas_status parse_bound(struct lexer *lx, int64_t *bound) {
  int64_t sign = lexer_accept(lx, "-") ? -1 : 1;
  if (lx->token.kind != TOKEN_INTEGER)
    return lexer_unexpected(lx, "the range of a tensor of i32, 'LOW..HIGH'");
  *bound = sign * lx->token.integer;
  lexer_next(lx);
  return CANVAS_OK;
}

static canvas_status parse_range(struct lexer *lx, struct net_tensor *t) {
  struct token at = lx->token;
  TRY(parse_bound(lx, &t->least));
  TRY(lexer_expect(lx, "..", "and the end of the range"));
  TRY(parse_bound(lx, &t->most));
  if (t->least < INT32_MIN || t->most > (int64_t)INT32_MAX + 1 || t->least >= t->most)
    return lexer_fail(lx, &at, "the range of '%.40s' is empty or leaves i32", t->name);
  t->most--;
  t->rising = lexer_accept(lx, "rising");
  return CANVAS_OK;
}

static canvas_status parse_source(struct parser *ps, struct net_tensor *t) {
  struct lexer *lx = &ps->lx;
  if (!lexer_is(lx, "from")) return CANVAS_OK;
  if (t->kind != NET_WEIGHT)
    return lexer_fail(lx, &lx->token, "'%.40s' is an input, only a weight comes from a name",
                      t->name);
  lexer_next(lx);
  lexer_word(lx);
  if (lx->token.kind != TOKEN_NAME) return lexer_unexpected(lx, "where the weight comes from");
  t->source = arena_strndup(&ps->n->arena, lx->token.start, (size_t)lx->token.length);
  lexer_next(lx);
  return CANVAS_OK;
}

static canvas_status parse_given(struct parser *ps, enum net_kind kind) {
  int tensor;
  TRY(parse_value(ps, kind, &tensor));
  struct net_tensor *t = &ps->n->tensors.data[tensor];
  if (t->dtype == PROGRAM_I32) TRY(parse_range(&ps->lx, t));
  TRY(parse_source(ps, t));
  return lexer_end_line(&ps->lx, "after the tensor");
}

/* ---- programs, calls, outputs ---------------------------------------------------------------- */

static canvas_status parse_program(struct parser *ps) {
  struct lexer *lx = &ps->lx;
  struct token at = lx->token;
  struct program *p;
  if (ps->n->programs.count == NETWORK_PROGRAMS)
    return lexer_fail(lx, &at, "more than %d programs", NETWORK_PROGRAMS);
  TRY(program_parse_inner(lx, &p));
  bool again = network_find_program(ps->n, p->name) >= 0;
  network_program(ps->n, p);
  if (again) return lexer_fail(lx, &at, "two programs have the name '%.40s', rename one", p->name);
  return CANVAS_OK;
}

static canvas_status parse_tensor(struct parser *ps, int *out) {
  struct lexer *lx = &ps->lx;
  struct token name = lx->token;
  if (name.kind != TOKEN_NAME) return lexer_unexpected(lx, "the name of a tensor");
  *out = name_table_find(&ps->n->tensor_names.used, name.start, (size_t)name.length);
  if (*out < 0) return lexer_fail(lx, &name, "unknown tensor '%.*s'", shown(&name), name.start);
  lexer_next(lx);
  return CANVAS_OK;
}

static canvas_status parse_arguments(struct parser *ps, int call) {
  struct lexer *lx = &ps->lx;
  int tensor;
  TRY(lexer_expect(lx, "(", "and the arguments"));
  if (lexer_accept(lx, ")")) return CANVAS_OK;
  do {
    TRY(parse_tensor(ps, &tensor));
    network_argument(ps->n, call, tensor);
  } while (lexer_accept(lx, ","));
  return lexer_expect(lx, ")", "after the arguments");
}

static canvas_status parse_call(struct parser *ps) {
  struct lexer *lx = &ps->lx;
  struct token at = lx->token;
  int call = network_call(ps->n, -1), value;
  do {
    TRY(parse_value(ps, NET_VALUE, &value));
    network_result(ps->n, call, value);
  } while (lexer_accept(lx, ","));
  TRY(lexer_expect(lx, "=", "and the program that computes it"));
  struct token name = lx->token;
  if (name.kind != TOKEN_NAME) return lexer_unexpected(lx, "the name of a program");
  int program = name_table_find(&ps->n->program_names.used, name.start, (size_t)name.length);
  if (program < 0) return lexer_fail(lx, &name, "unknown program '%.*s'", shown(&name), name.start);
  if (call == NETWORK_CALLS) return lexer_fail(lx, &at, "more than %d calls", NETWORK_CALLS);
  struct net_call *c = &ps->n->calls.data[call];
  c->program = program;
  c->line = at.line;
  c->column = at.column;
  lexer_next(lx);
  TRY(parse_arguments(ps, call));
  TRY(lexer_end_line(lx, "after the call"));
  canvas_context ctx;
  if (network_verify_call(&ctx, ps->n, call) != CANVAS_OK)
    return lexer_fail(lx, &at, "%s", ctx.message);
  return CANVAS_OK;
}

static canvas_status parse_outputs(struct parser *ps) {
  int value;
  do {
    TRY(parse_tensor(ps, &value));
    network_output(ps->n, value);
  } while (lexer_accept(&ps->lx, ","));
  return lexer_end_line(&ps->lx, "after the outputs");
}

/* ---- networks -------------------------------------------------------------------------------- */

static canvas_status parse_header(struct parser *ps) {
  struct lexer *lx = &ps->lx;
  lexer_skip_newlines(lx);
  if (lexer_accept(lx, "canvas")) TRY(lexer_version(lx));
  TRY(lexer_expect(lx, "network", "and its name"));
  struct token name = lx->token;
  if (name.kind != TOKEN_NAME) return lexer_unexpected(lx, "the name of the network");
  ps->n->name = arena_strndup(&ps->n->arena, name.start, (size_t)name.length);
  lexer_next(lx);
  return lexer_end_line(lx, "after the name of the network");
}

static canvas_status parse_line(struct parser *ps) {
  struct lexer *lx = &ps->lx;
  if (lx->token.kind != TOKEN_NAME)
    return lexer_unexpected(lx, "'program', 'in', 'weight', 'out' or the name of a value");
  if (lexer_is(lx, "program")) return parse_program(ps);
  if (lexer_accept(lx, "in")) return parse_given(ps, NET_INPUT);
  if (lexer_accept(lx, "weight")) return parse_given(ps, NET_WEIGHT);
  if (lexer_accept(lx, "out")) return parse_outputs(ps);
  return parse_call(ps);
}

static canvas_status parse_network(struct parser *ps) {
  struct lexer *lx = &ps->lx;
  TRY(parse_header(ps));
  for (lexer_skip_newlines(lx); lx->token.kind != TOKEN_END; lexer_skip_newlines(lx))
    TRY(parse_line(ps));
  return network_verify(lx->ctx, ps->n);
}

canvas_status network_parse(canvas_context *ctx, const char *text, size_t length,
                            struct network **out) {
  struct parser ps = {.n = network_new("")};
  *out = NULL;
  canvas_status status = lexer_open(&ps.lx, ctx, text, length);
  if (status == CANVAS_OK) status = parse_network(&ps);
  if (status == CANVAS_OK)
    *out = ps.n;
  else
    network_free(ps.n);
  return status;
}
