/* The one lexer of every text form: kernels, packs, targets, budgets, programs.
 *
 * Line-oriented: a line break is a token, `#` starts a comment that ends with its line. `next`
 * always moves on or stays at the end, so a parser that stops at TOKEN_END cannot hang. Characters
 * outside printable ASCII are TOKEN_BAD: parsers name them by line and column.
 */
#ifndef CANVAS_BASE_LEXER_H
#define CANVAS_BASE_LEXER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum { TEXT_LIMIT = 16 << 20 }; /* bytes of any text that is parsed */

enum token_kind {
  TOKEN_END,
  TOKEN_NEWLINE,
  TOKEN_NAME,    /* letter or _, then letters, digits, _ */
  TOKEN_INTEGER, /* decimal digits that fit int64; `integer` holds it */
  TOKEN_REAL,    /* digits with a point or an exponent; `real` holds it */
  TOKEN_MARK,    /* one of == != <= >= && || .. // => := or a single punctuation character */
  TOKEN_BAD      /* anything else, or a number that does not fit */
};

struct token {
  enum token_kind kind;
  const char *start;
  int length;
  int line, column; /* from 1 */
  int64_t integer;
  double real; /* valid for TOKEN_REAL and TOKEN_INTEGER */
};

struct lexer {
  canvas_context *ctx;
  const char *p, *end, *line_start;
  int line;
  struct token token; /* the current one */
};

/* Starts at the first token. Rejects NUL bytes and texts over TEXT_LIMIT. */
canvas_status lexer_open(struct lexer *lx, canvas_context *ctx, const char *text, size_t length);
void lexer_next(struct lexer *lx);
bool lexer_is(const struct lexer *lx, const char *text); /* the current token's spelling */
bool lexer_accept(struct lexer *lx, const char *text);   /* the same, and skips it */
canvas_status lexer_expect(struct lexer *lx, const char *text, const char *where);
canvas_status lexer_end_line(struct lexer *lx, const char *where); /* a line break or the end */
void lexer_skip_newlines(struct lexer *lx);
canvas_status lexer_version(
    struct lexer *lx); /* behind `canvas`: 1, and to the next line that is not blank */
void lexer_skip_line(struct lexer *lx); /* to the token after the next line break */

/* Replaces the current token by the longest run of non-blank characters from its start (no `#`):
 * names of layers hold dots and digits. */
void lexer_word(struct lexer *lx);

/* "line L, column C: <message>"; lexer_unexpected names the token found instead of `wanted`. */
canvas_status lexer_fail(struct lexer *lx, const struct token *at, const char *format, ...)
    PRINTF_LIKE(3, 4);
canvas_status lexer_unexpected(struct lexer *lx, const char *wanted);

#endif
