/* Parses names in the text of an edit: of an existing tensor, and of a new stage. */
#include "rewrite/program_rebuild.h"

canvas_status read_tensor(struct lexer *lx, const struct program *p, const char *wanted,
                          int *tensor) {
  struct token t = lx->token;
  if (t.kind != TOKEN_NAME) return lexer_unexpected(lx, wanted);
  char *name = mem_strndup(t.start, (size_t)t.length);
  *tensor = program_find(p, name);
  mem_free(name);
  if (*tensor < 0)
    return lexer_fail(lx, &t, "the program has no tensor '%.*s'", t.length < 40 ? t.length : 40,
                      t.start);
  lexer_next(lx);
  return CANVAS_OK;
}

/* Parses `as NAME`. */
canvas_status read_new_name(struct lexer *lx, struct change *c) {
  TRY(lexer_expect(lx, "as", "and the name of the new stage"));
  struct token t = lx->token;
  if (t.kind != TOKEN_NAME) return lexer_unexpected(lx, "the name of the new stage");
  char *name = arena_strndup(&c->to->arena, t.start, (size_t)t.length);
  if (program_find(c->from, name) >= 0)
    return lexer_fail(lx, &t, "there is a '%.40s' already, choose another name", name);
  c->name = name;
  lexer_next(lx);
  return CANVAS_OK;
}
