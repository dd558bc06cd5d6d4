/* "height=56 kernel=3x1 padding=1": words of NAME=VALUE, read by the rows of the argument table.
 *
 * First every word is given to its argument, then the arguments get their numbers in the row's order:
 * given, by default, or copied from the argument that the default names.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/lexer.h"
#include "base/nearest.h"
#include "base/number.h"
#include "operator/operator.h"

/* A value in the text. */
struct given {
  const char *text; /* NULL: not given */
  int length;
};

struct reader {
  canvas_context *ctx;
  const struct operator_row *row;
  struct given given[OPERATOR_ARGUMENTS_COUNT];
};

enum { SHOWN = 40 };
static int shown(int length) {
  return length < SHOWN ? length : SHOWN;
}

/* -- the row's own text -- */

static int find_argument(const char *name, int length) {
  for (int i = 0; i < OPERATOR_ARGUMENTS_COUNT; i++)
    if ((int)strlen(argument_rows[i].name) == length &&
        !memcmp(argument_rows[i].name, name, length))
      return i;
  return -1;
}

bool operator_argument_at(const struct operator_row *row, int i, struct row_argument *out) {
  const char *p = row->arguments;
  for (; i > 0 && *p; i--) {
    p += strcspn(p, " ");
    p += *p == ' ';
  }
  if (!*p) return false;
  int name = (int)strcspn(p, "= "), all = (int)strcspn(p, " ");
  out->argument = (enum operator_argument)find_argument(p, name);
  out->otherwise = name < all ? p + name + 1 : NULL;
  out->length = name < all ? all - name - 1 : 0;
  return true;
}

static bool takes(const struct operator_row *row, int argument) {
  struct row_argument a;
  for (int i = 0; operator_argument_at(row, i, &a); i++)
    if ((int)a.argument == argument) return true;
  return false;
}

/* -- words -- */

static canvas_status reject_name(const struct reader *r, const char *name, int length) {
  const char *names[OPERATOR_ARGUMENTS_COUNT];
  struct row_argument a;
  int count = 0;
  while (operator_argument_at(r->row, count, &a)) names[count++] = argument_rows[a.argument].name;
  const char *near = word_nearest(name, length, names, count);
  if (near)
    return fail(r->ctx, CANVAS_BAD_INPUT, "%s has no argument '%.*s', did you mean '%s'?",
                r->row->name, shown(length), name, near);
  return fail(r->ctx, CANVAS_BAD_INPUT,
              "%s has no argument '%.*s', 'canvas operator %s' lists what it takes", r->row->name,
              shown(length), name, r->row->name);
}

static canvas_status read_word(struct reader *r, const char *word, int length) {
  for (int i = 0; i < length; i++)
    if (word[i] <= ' ' || word[i] >= 0x7f)
      return fail(r->ctx, CANVAS_BAD_INPUT, "%s: byte %d of an argument is no printable character",
                  r->row->name, i + 1);
  const char *equals = memchr(word, '=', (size_t)length);
  int name = equals ? (int)(equals - word) : length;
  if (!equals || !name)
    return fail(r->ctx, CANVAS_BAD_INPUT, "%s: '%.*s' is no argument, write NAME=VALUE",
                r->row->name, shown(length), word);
  int argument = find_argument(word, name);
  if (argument < 0 || !takes(r->row, argument)) return reject_name(r, word, name);
  if (r->given[argument].text)
    return fail(r->ctx, CANVAS_BAD_INPUT, "%s: %s is given twice", r->row->name,
                argument_rows[argument].name);
  r->given[argument] = (struct given){equals + 1, length - name - 1};
  return CANVAS_OK;
}

static canvas_status read_words(struct reader *r, const char *text, size_t length) {
  struct lexer lx;
  TRY(lexer_open(&lx, r->ctx, text, length));
  for (lexer_skip_newlines(&lx); lx.token.kind != TOKEN_END; lexer_skip_newlines(&lx)) {
    lexer_word(&lx);
    TRY(read_word(r, lx.token.start, lx.token.length));
    lexer_next(&lx);
  }
  return CANVAS_OK;
}

/* -- values -- */

/* The longest list of numbers that the argument may have. */
static int most_numbers(const struct operator_row *row, enum argument_kind kind) {
  switch (kind) {
    case KIND_WINDOW: return row->spatial;
    case KIND_EDGES: return 2 * row->spatial;
    case KIND_SHAPE:
    case KIND_AXES: return OPERATOR_NUMBERS;
    default: return 1;
  }
}

const char *operator_value_form(const struct operator_row *row, enum operator_argument argument) {
  const struct argument_row *a = &argument_rows[argument];
  static const char *const windows[] = {"NUMBER", "NUMBER", "NUMBER or HEIGHTxWIDTH",
                                        "NUMBER or DEPTHxHEIGHTxWIDTH"};
  static const char *const edges[] = {
      "NUMBER", "NUMBER or LEFTxRIGHT", "NUMBER, HEIGHTxWIDTH or TOPxBOTTOMxLEFTxRIGHT",
      "NUMBER, DEPTHxHEIGHTxWIDTH or FRONTxBACKxTOPxBOTTOMxLEFTxRIGHT"};
  switch (a->kind) {
    case KIND_NUMBER: return "NUMBER";
    case KIND_REAL: return "NUMBER more than 0";
    case KIND_FLAG: return "0 or 1";
    case KIND_WINDOW: return windows[row->spatial];
    case KIND_EDGES: return edges[row->spatial];
    case KIND_SHAPE: return "SIZExSIZE...";
    case KIND_AXES: return "AXIS,AXIS...";
    default: return a->words;
  }
}

static canvas_status reject_value(const struct reader *r, enum operator_argument argument,
                                  struct given v) {
  const struct argument_row *a = &argument_rows[argument];
  const char *form = operator_value_form(r->row, argument);
  if (a->kind == KIND_WORD)
    return fail(r->ctx, CANVAS_BAD_INPUT, "%s: %s is one of %s, not '%.*s'", r->row->name, a->name,
                form, shown(v.length), v.text);
  if (a->kind == KIND_FLAG || a->kind == KIND_REAL)
    return fail(r->ctx, CANVAS_BAD_INPUT, "%s: %s is %s, not '%.*s'", r->row->name, a->name, form,
                shown(v.length), v.text);
  return fail(r->ctx, CANVAS_BAD_INPUT, "%s: %s is %s with numbers from %d to %d, not '%.*s'",
              r->row->name, a->name, form, a->kind == KIND_AXES ? -OPERATOR_NUMBERS : a->least,
              a->kind == KIND_AXES ? OPERATOR_NUMBERS - 1 : OPERATOR_SIZE_MAX, shown(v.length),
              v.text);
}

/* Moves *p past a whole number; false if there is none within +-OPERATOR_SIZE_MAX. */
static bool read_number(const char **p, const char *end, int64_t *out) {
  bool negative = *p < end && **p == '-';
  *p += negative;
  const char *first = *p;
  int64_t value = 0;
  for (; *p < end && **p >= '0' && **p <= '9'; ++*p) {
    value = value * 10 + (**p - '0');
    if (value > OPERATOR_SIZE_MAX) return false;
  }
  *out = negative ? -value : value;
  return *p > first;
}

/* Numbers joined by x or commas; false where they are none, too many, or out of their bounds. */
static bool read_numbers(const struct argument_row *a, int most, struct given v,
                         struct argument *out) {
  const char *p = v.text, *end = v.text + v.length;
  int64_t low = a->kind == KIND_AXES ? -OPERATOR_NUMBERS : a->least;
  int64_t high = a->kind == KIND_AXES   ? OPERATOR_NUMBERS - 1
                 : a->kind == KIND_FLAG ? 1
                                        : OPERATOR_SIZE_MAX;
  for (out->count = 0; out->count < most; p++) {
    int64_t *number = &out->number[out->count++];
    if (!read_number(&p, end, number) || *number < low || *number > high) return false;
    if (p == end) return true;
    if (*p != 'x' && *p != ',') return false;
  }
  return false;
}

static bool read_choice(const char *words, struct given v, struct argument *out) {
  out->count = 1;
  for (out->number[0] = 0; *words; out->number[0]++) {
    int length = (int)strcspn(words, " ");
    if (length == v.length && !memcmp(words, v.text, (size_t)length)) return true;
    words += length + (words[length] == ' ');
  }
  return false;
}

/* Digits, with a point and an exponent or without. */
static bool is_decimal(const char *p) {
  size_t before = strspn(p, "0123456789"), after = 0;
  p += before;
  if (*p == '.') p += 1 + (after = strspn(p + 1, "0123456789"));
  if (before + after == 0) return false;
  if (*p != 'e' && *p != 'E') return !*p;
  p += 1 + (p[1] == '-' || p[1] == '+');
  return *p && !p[strspn(p, "0123456789")];
}

static bool read_real(struct given v, struct argument *out) {
  char text[SHOWN + 1] = "";
  if (v.length > SHOWN) return false;
  memcpy(text, v.text, (size_t)v.length);
  if (!is_decimal(text)) return false;
  out->count = 1;
  out->real = number_parse(text);
  return out->real > 0 && isfinite(out->real);
}

/* A number for each axis, edges twice: 1 -> 1x1x1x1, 1x0 -> 1x1x0x0. False if that does not come out. */
static bool spread(enum argument_kind kind, int most, struct argument *v) {
  if (kind != KIND_WINDOW && kind != KIND_EDGES) return true;
  int given = v->count;
  bool each = kind == KIND_EDGES && 2 * given == most;
  if (given != 1 && given != most && !each) return false;
  for (int i = most - 1; i >= 0; i--) v->number[i] = v->number[i / (most / given)];
  v->count = most;
  return true;
}

static canvas_status read_value(const struct reader *r, enum operator_argument argument,
                                struct given v, struct argument *out) {
  const struct argument_row *a = &argument_rows[argument];
  int most = most_numbers(r->row, a->kind);
  bool good = a->kind == KIND_WORD   ? read_choice(a->words, v, out)
              : a->kind == KIND_REAL ? read_real(v, out)
                                     : read_numbers(a, most, v, out) && spread(a->kind, most, out);
  return good ? CANVAS_OK : reject_value(r, argument, v);
}

/* Names all that are missing. */
static canvas_status reject_missing(const struct reader *r) {
  struct buf missing = {0};
  struct row_argument a;
  for (int i = 0; operator_argument_at(r->row, i, &a); i++) {
    const struct argument_row *row = &argument_rows[a.argument];
    const char *form = operator_value_form(r->row, a.argument);
    if (r->given[a.argument].text || a.otherwise) continue;
    buf_printf(&missing, "%s %s=%s%s", missing.length ? "," : "", row->name,
               row->kind == KIND_WORD ? "WORD, one of " : "", form);
  }
  canvas_status status = fail(r->ctx, CANVAS_BAD_INPUT, "%s needs%s", r->row->name, missing.text);
  buf_free(&missing);
  return status;
}

canvas_status operator_read(canvas_context *ctx, const struct operator_row *row, const char *text,
                            size_t length, struct argument out[OPERATOR_ARGUMENTS_COUNT]) {
  struct reader r = {.ctx = ctx, .row = row};
  struct row_argument a;
  memset(out, 0, OPERATOR_ARGUMENTS_COUNT * sizeof *out);
  TRY(read_words(&r, text, length));
  for (int i = 0; operator_argument_at(row, i, &a); i++) {
    struct given v = r.given[a.argument];
    int copied = v.text ? -1 : find_argument(a.otherwise ? a.otherwise : "", a.length);
    if (copied >= 0) {
      out[a.argument] = out[copied];
    } else if (v.text || a.otherwise) {
      if (!v.text) v = (struct given){a.otherwise, a.length};
      TRY(read_value(&r, a.argument, v, &out[a.argument]));
    } else {
      return reject_missing(&r);
    }
  }
  return CANVAS_OK;
}
