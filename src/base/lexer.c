/* See lexer.h. */
#include "base/lexer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static char peek(const struct lexer *lx, int ahead) {
  return lx->end - lx->p > ahead ? lx->p[ahead] : '\0';
}

/* A number is digits, then perhaps `.digits`, then perhaps an exponent; `1..2` is 1 then `..`. */
static void read_number(struct lexer *lx, struct token *t) {
  const char *s = lx->p;
  bool real = false;
  while (is_digit(peek(lx, 0))) lx->p++;
  if (peek(lx, 0) == '.' && is_digit(peek(lx, 1))) {
    real = true;
    lx->p++;
    while (is_digit(peek(lx, 0))) lx->p++;
  }
  if (peek(lx, 0) == 'e' || peek(lx, 0) == 'E') {
    int sign = peek(lx, 1) == '-' || peek(lx, 1) == '+';
    if (is_digit(peek(lx, 1 + sign))) {
      real = true;
      lx->p += 1 + sign;
      while (is_digit(peek(lx, 0))) lx->p++;
    }
  }
  char digits[64];
  size_t length = (size_t)(lx->p - s);
  t->kind = TOKEN_BAD;
  if (length >= sizeof digits) return;
  memcpy(digits, s, length);
  digits[length] = '\0';
  errno = 0;
  t->real = number_parse(digits);
  if (real) {
    t->kind = errno == ERANGE && t->real > 1 ? TOKEN_BAD : TOKEN_REAL;
    return;
  }
  errno = 0;
  t->integer = strtoll(digits, NULL, 10);
  t->kind = errno ? TOKEN_BAD : TOKEN_INTEGER;
}

static int mark_length(const struct lexer *lx) {
  static const char *const pairs[] = {"==", "!=", "<=", ">=", "&&", "||", "..", "//", "=>", ":="};
  char a = peek(lx, 0), b = peek(lx, 1);
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
    if (pairs[i][0] == a && pairs[i][1] == b) return 2;
  return 1;
}

static void skip_blanks(struct lexer *lx) {
  while (peek(lx, 0) == ' ' || peek(lx, 0) == '\t' || peek(lx, 0) == '\r') lx->p++;
  if (peek(lx, 0) == '#')
    while (lx->p < lx->end && *lx->p != '\n') lx->p++;
}

void lexer_next(struct lexer *lx) {
  struct token *t = &lx->token;
  if (t->kind == TOKEN_NEWLINE) {
    lx->line++;
    lx->line_start = lx->p;
  }
  skip_blanks(lx);
  *t = (struct token){.start = lx->p, .line = lx->line};
  t->column = (int)(lx->p - lx->line_start) + 1;
  char c = peek(lx, 0);
  if (lx->p == lx->end) {
    t->kind = TOKEN_END;
  } else if (c == '\n') {
    t->kind = TOKEN_NEWLINE;
    lx->p++;
  } else if (is_letter(c)) {
    t->kind = TOKEN_NAME;
    while (is_letter(peek(lx, 0)) || is_digit(peek(lx, 0))) lx->p++;
  } else if (is_digit(c)) {
    read_number(lx, t);
  } else if (c > ' ' && c < 0x7f) {
    t->kind = TOKEN_MARK;
    lx->p += mark_length(lx);
  } else {
    t->kind = TOKEN_BAD;
    lx->p++;
  }
  t->length = (int)(lx->p - t->start);
}

canvas_status lexer_open(struct lexer *lx, canvas_context *ctx, const char *text, size_t length) {
  if (!length) text = "";
  *lx = (struct lexer){.ctx = ctx, .p = text, .line_start = text, .line = 1};
  if (length > TEXT_LIMIT)
    return fail(ctx, CANVAS_BAD_INPUT, "text of %zu bytes is over the limit of %d MiB", length,
                TEXT_LIMIT >> 20);
  if (!text) return fail(ctx, CANVAS_BAD_INPUT, "the text is NULL, give one");
  lx->end = text + length;
  const char *nul = memchr(text, '\0', length);
  if (nul) {
    int line = 1;
    for (const char *p = text; p < nul; p++) line += *p == '\n';
    return fail(ctx, CANVAS_BAD_INPUT, "line %d: the text holds a NUL byte, give plain text", line);
  }
  lexer_next(lx);
  return CANVAS_OK;
}

bool lexer_is(const struct lexer *lx, const char *text) {
  const struct token *t = &lx->token;
  return t->kind != TOKEN_END && t->kind != TOKEN_NEWLINE && strlen(text) == (size_t)t->length &&
         memcmp(t->start, text, (size_t)t->length) == 0;
}

bool lexer_accept(struct lexer *lx, const char *text) {
  if (!lexer_is(lx, text)) return false;
  lexer_next(lx);
  return true;
}

canvas_status lexer_expect(struct lexer *lx, const char *text, const char *where) {
  if (lexer_accept(lx, text)) return CANVAS_OK;
  char wanted[128];
  snprintf(wanted, sizeof wanted, "'%s' %s", text, where);
  return lexer_unexpected(lx, wanted);
}

canvas_status lexer_end_line(struct lexer *lx, const char *where) {
  if (lx->token.kind == TOKEN_END) return CANVAS_OK;
  if (lx->token.kind == TOKEN_NEWLINE) {
    lexer_next(lx);
    return CANVAS_OK;
  }
  char wanted[128];
  snprintf(wanted, sizeof wanted, "the end of the line %s", where);
  return lexer_unexpected(lx, wanted);
}

void lexer_skip_newlines(struct lexer *lx) {
  while (lx->token.kind == TOKEN_NEWLINE) lexer_next(lx);
}

canvas_status lexer_version(struct lexer *lx) {
  const struct token *t = &lx->token;
  if (t->kind != TOKEN_INTEGER) return lexer_unexpected(lx, "the version, 'canvas 1'");
  if (t->integer != 1)
    return lexer_fail(lx, t, "unknown version '%.*s', this is version 1", t->length, t->start);
  lexer_next(lx);
  TRY(lexer_end_line(lx, "after the version"));
  lexer_skip_newlines(lx);
  return CANVAS_OK;
}

void lexer_skip_line(struct lexer *lx) {
  while (lx->token.kind != TOKEN_NEWLINE && lx->token.kind != TOKEN_END) lexer_next(lx);
  lexer_skip_newlines(lx);
}

void lexer_word(struct lexer *lx) {
  struct token *t = &lx->token;
  if (t->kind == TOKEN_END || t->kind == TOKEN_NEWLINE) return;
  lx->p = t->start;
  while (lx->p < lx->end && *lx->p > ' ' && *lx->p < 0x7f && *lx->p != '#') lx->p++;
  t->length = (int)(lx->p - t->start);
  t->kind = t->length ? TOKEN_NAME : TOKEN_BAD;
  if (!t->length) t->length = 1, lx->p++;
}

canvas_status lexer_fail(struct lexer *lx, const struct token *at, const char *format, ...) {
  char message[MESSAGE_SIZE];
  va_list args;
  va_start(args, format);
  text_vformat(message, sizeof message, format, args);
  va_end(args);
  return fail(lx->ctx, CANVAS_BAD_INPUT, "line %d, column %d: %s", at->line, at->column, message);
}

canvas_status lexer_unexpected(struct lexer *lx, const char *wanted) {
  const struct token *t = &lx->token;
  int shown = t->length < 40 ? t->length : 40;
  switch (t->kind) {
    case TOKEN_END: return lexer_fail(lx, t, "expected %s, found the end of the text", wanted);
    case TOKEN_NEWLINE: return lexer_fail(lx, t, "expected %s, found the end of the line", wanted);
    case TOKEN_BAD:
      if (*t->start >= '0' && *t->start <= '9')
        return lexer_fail(lx, t, "number '%.*s' is too large", shown, t->start);
      return lexer_fail(lx, t, "unexpected byte 0x%02x, expected %s", (unsigned char)*t->start,
                        wanted);
    default: return lexer_fail(lx, t, "expected %s, found '%.*s'", wanted, shown, t->start);
  }
}
