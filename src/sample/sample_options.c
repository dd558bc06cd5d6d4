/* The text of the sampler's options: "primitives=5..12 require=none groups=4". */
#include "sample/sampler.h"

static const struct sample_options defaults = {
    .least = 5, .most = 12, .require_reach = true, .elements_limit = ELEMENTS_LIMIT_DEFAULT};

enum { PRIMITIVES_MAX = KERNEL_NODES_MAX - 2 };

static canvas_status parse_number(struct lexer *lx, int64_t least, int64_t most, int64_t *out) {
  const struct token *t = &lx->token;
  if (t->kind != TOKEN_INTEGER) return lexer_unexpected(lx, "a whole number");
  if (t->integer < least || t->integer > most)
    return lexer_fail(lx, t, "number %lld is not in %lld..%lld", (long long)t->integer,
                      (long long)least, (long long)most);
  *out = t->integer;
  lexer_next(lx);
  return CANVAS_OK;
}

static canvas_status parse_primitives(struct lexer *lx, struct sample_options *o) {
  int64_t least = 0, most;
  const struct token at = lx->token;
  TRY(parse_number(lx, 1, PRIMITIVES_MAX, &least));
  most = least;
  if (lexer_accept(lx, "..")) TRY(parse_number(lx, 1, PRIMITIVES_MAX, &most));
  if (most < least)
    return lexer_fail(lx, &at, "primitives=%lld..%lld ends before it begins", (long long)least,
                      (long long)most);
  o->least = (int)least;
  o->most = (int)most;
  return CANVAS_OK;
}

static canvas_status parse_option(struct lexer *lx, struct sample_options *o) {
  const struct token key = lx->token;
  if (key.kind != TOKEN_NAME)
    return lexer_unexpected(lx, "an option (primitives=, require=, groups= or elements=)");
  bool primitives = lexer_is(lx, "primitives"), require = lexer_is(lx, "require");
  bool groups = lexer_is(lx, "groups"), elements = lexer_is(lx, "elements");
  if (!primitives && !require && !groups && !elements)
    return lexer_unexpected(lx, "an option (primitives=, require=, groups= or elements=)");
  lexer_next(lx);
  TRY(lexer_expect(lx, "=", "after the option's name"));
  if (primitives) return parse_primitives(lx, o);
  if (groups) return parse_number(lx, 1, SIZE_LIMIT, &o->groups);
  if (elements) return parse_number(lx, 1, INT64_C(1) << 40, &o->elements_limit);
  o->require_reach = lexer_is(lx, "reach");
  if (!lexer_accept(lx, "reach") && !lexer_accept(lx, "none"))
    return lexer_unexpected(lx, "'reach' or 'none'");
  return CANVAS_OK;
}

canvas_status sample_options_parse(canvas_context *ctx, const char *text, size_t length,
                                   struct sample_options *out) {
  struct lexer lx;
  *out = defaults;
  TRY(lexer_open(&lx, ctx, text, length));
  while (lx.token.kind != TOKEN_END) {
    TRY(parse_option(&lx, out));
    lexer_accept(&lx, ",");
    lexer_skip_newlines(&lx);
  }
  return CANVAS_OK;
}
