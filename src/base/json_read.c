/* JSON that is read: one flat object. See json.h. */
#include <string.h>

#include "base/json.h"

void json_open(struct json_reader *r, canvas_context *ctx, const char *text, size_t length) {
  *r = (struct json_reader){.ctx = ctx, .start = text, .p = text, .end = text + length};
}

void json_close(struct json_reader *r) {
  buf_free(&r->key);
  buf_free(&r->text);
}

static canvas_status bad(struct json_reader *r, const char *what) {
  return fail(r->ctx, CANVAS_BAD_INPUT, "column %lld: %s", (long long)(r->p - r->start) + 1, what);
}

static void skip_blanks(struct json_reader *r) {
  while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\r' || *r->p == '\n')) r->p++;
}

/* Moves past the character if it stands next. */
static bool accept(struct json_reader *r, char c) {
  if (r->p == r->end || *r->p != c) return false;
  r->p++;
  return true;
}

/* ---- strings --------------------------------------------------------------------------------- */

static bool four_digits(struct json_reader *r, unsigned *out) {
  static const char hex[] = "0123456789abcdefABCDEF";
  *out = 0;
  for (int i = 0; i < 4; i++) {
    const char *digit = r->p < r->end && *r->p ? strchr(hex, *r->p) : NULL;
    if (!digit) return false;
    unsigned value = (unsigned)(digit - hex);
    *out = *out << 4 | (value > 15 ? value - 6 : value);
    r->p++;
  }
  return true;
}

/* U+0800 is three bytes: 1110 0000, 10 100000, 10 000000. */
static void put_character(struct buf *out, unsigned c) {
  char bytes[4];
  size_t length = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  static const unsigned char heads[] = {0, 0, 0xc0, 0xe0, 0xf0};
  for (size_t i = length; i-- > 1; c >>= 6) bytes[i] = (char)(0x80 | (c & 0x3f));
  bytes[0] = (char)(heads[length] | c);
  buf_bytes(out, bytes, length);
}

/* What stands after \u; of a pair both halves. */
static canvas_status read_code(struct json_reader *r, struct buf *out) {
  unsigned c, low;
  if (!four_digits(r, &c)) return bad(r, "expected four hexadecimal digits after '\\u'");
  if (!c) return bad(r, "a string may not hold the character 0");
  if (c >= 0xdc00 && c < 0xe000) return bad(r, "the second half of a pair without its first");
  if (c >= 0xd800 && c < 0xdc00) {
    bool pair = accept(r, '\\') && accept(r, 'u') && four_digits(r, &low);
    if (!pair || low < 0xdc00 || low >= 0xe000)
      return bad(r, "the first half of a pair without its second");
    c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
  }
  put_character(out, c);
  return CANVAS_OK;
}

static canvas_status read_escape(struct json_reader *r, struct buf *out) {
  static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
  if (accept(r, 'u')) return read_code(r, out);
  const char *letter = r->p < r->end && *r->p ? strchr(letters, *r->p) : NULL;
  if (!letter) return bad(r, "no such escape");
  buf_bytes(out, &meant[letter - letters], 1);
  r->p++;
  return CANVAS_OK;
}

/* From behind its first quote on. */
static canvas_status read_string(struct json_reader *r, struct buf *out) {
  out->length = 0;
  buf_puts(out, "");
  for (;;) {
    const char *from = r->p;
    while (r->p < r->end && *r->p != '"' && *r->p != '\\' && (unsigned char)*r->p >= 0x20) r->p++;
    buf_bytes(out, from, (size_t)(r->p - from));
    if (accept(r, '"')) return CANVAS_OK;
    if (r->p == r->end) return bad(r, "the string does not end");
    if (!accept(r, '\\')) return bad(r, "a control character in a string");
    TRY(read_escape(r, out));
  }
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool digits(struct json_reader *r) {
  const char *from = r->p;
  while (r->p < r->end && *r->p >= '0' && *r->p <= '9') r->p++;
  return r->p > from;
}

static canvas_status read_number(struct json_reader *r) {
  const char *from = r->p;
  accept(r, '-');
  bool good = accept(r, '0') || digits(r);
  if (good && accept(r, '.')) good = digits(r);
  if (good && (accept(r, 'e') || accept(r, 'E'))) {
    if (!accept(r, '+')) accept(r, '-');
    good = digits(r);
  }
  if (!good) return bad(r, "expected a digit");
  r->text.length = 0;
  buf_bytes(&r->text, from, (size_t)(r->p - from));
  r->kind = JSON_NUMBER;
  return CANVAS_OK;
}

static canvas_status read_value(struct json_reader *r) {
  static const struct {
    const char *word;
    enum json_kind kind;
  } words[] = {{"null", JSON_NULL}, {"false", JSON_FALSE}, {"true", JSON_TRUE}};
  if (accept(r, '"')) {
    r->kind = JSON_STRING;
    return read_string(r, &r->text);
  }
  if (r->p < r->end && (*r->p == '-' || (*r->p >= '0' && *r->p <= '9'))) return read_number(r);
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    size_t length = strlen(words[i].word);
    if ((size_t)(r->end - r->p) < length || memcmp(r->p, words[i].word, length) != 0) continue;
    r->p += length;
    r->kind = words[i].kind;
    return CANVAS_OK;
  }
  return bad(r, "expected a string, a number, true, false or null");
}

static canvas_status read_end(struct json_reader *r) {
  skip_blanks(r);
  return r->p == r->end ? CANVAS_OK : bad(r, "expected the end after '}'");
}

static canvas_status read_member(struct json_reader *r) {
  skip_blanks(r);
  if (!accept(r, '"')) return bad(r, "expected a key in quotes");
  TRY(read_string(r, &r->key));
  skip_blanks(r);
  if (!accept(r, ':')) return bad(r, "expected ':'");
  skip_blanks(r);
  return read_value(r);
}

canvas_status json_next(struct json_reader *r, bool *found) {
  bool first = !r->begun;
  skip_blanks(r);
  if (first && !accept(r, '{')) return bad(r, "expected '{'");
  r->begun = true;
  if (first) skip_blanks(r);
  *found = !accept(r, '}');
  if (!*found) return read_end(r);
  if (!first && !accept(r, ',')) return bad(r, "expected ',' or '}'");
  return read_member(r);
}
