/* The text of a machine: one row per key. See machine.h. */
#include <stddef.h>
#include <string.h>

#include "base/lexer.h"
#include "base/nearest.h"
#include "bind/machine.h"

enum kind {
  NUMBER,
  POWER, /* bytes, a power of two */
  BYTES, /* a number with KiB, MiB, GiB or nothing */
  WORDS, /* `none`, or words with commas: a bit each */
  SWITCH,
  CHOICE, /* MACHINE_NO, MACHINE_YES */
  NAME
};
enum { WORDS_MOST = 4, SHOWN = 40 };

/* clang-format off */
#define FIELD(name) offsetof(struct machine, name), sizeof((struct machine *)0)->name
static const struct row {
  const char *key;
  enum kind kind;
  size_t offset, size;
  int64_t least, most, otherwise;            /* otherwise -1: the key has to be there */
  int64_t (*usual)(const struct machine *m); /* default of a fact, not printed; else NULL */
  const char *words[WORDS_MOST];             /* of bits 1, 2, 4 */
} rows[] = {
    /* key              kind    where              least, most, without it */
    {"vector_bytes",     POWER,  FIELD(vector_bytes), 16, 64,         -1, NULL, {0}},
    {"vector_registers", NUMBER, FIELD(registers),     2, 256,        -1, NULL, {0}},
    {"fma",              SWITCH, FIELD(fma),           0, 1,           0, NULL, {0}},
    {"bf16",             WORDS,  FIELD(bf16),          0, 3,           0, NULL, {"convert", "dot"}},
    {"tiles",            WORDS,  FIELD(tiles),         0, 7,           0, NULL, {"int8", "bf16", "fp16"}},
    {"line",             POWER,  FIELD(line),         16, 1024,       64, NULL, {0}},
    {"l1",               BYTES,  FIELD(l1),            1, BYTES_MOST, -1, NULL, {0}},
    {"l2",               BYTES,  FIELD(l2),            1, BYTES_MOST, -1, NULL, {0}},
    {"l3",               BYTES,  FIELD(l3),            0, BYTES_MOST,  0, NULL, {0}},
    {"cores",            NUMBER, FIELD(cores),         1, 1 << 20,     1, NULL, {0}},
    {"memory",           BYTES,  FIELD(memory),        1, BYTES_MOST, -1, NULL, {0}},
    {"target",           NAME,   FIELD(target),        0, 0,           0, NULL, {0}},
#define X(fact, kind, otherwise, least, most, ...) \
    {#fact, kind, FIELD(fact), least, most, 0, machine_usual_##fact, {0}},
    MACHINE_FACTS(X)
#undef X
};
/* clang-format on */
enum { ROWS = sizeof rows / sizeof *rows };

static const struct unit {
  const char *name;
  int shift;
} units[] = {{"GiB", 30}, {"MiB", 20}, {"KiB", 10}};
enum { UNITS = sizeof units / sizeof *units };

/* Reads a field, which is an int or an int64_t. */
static int64_t number_of(const struct row *row, const struct machine *m) {
  const char *at = (const char *)m + row->offset;
  int64_t large;
  int small;
  if (row->size == sizeof large) return memcpy(&large, at, sizeof large), large;
  return memcpy(&small, at, sizeof small), small;
}

static void set_number(const struct row *row, struct machine *m, int64_t value) {
  char *at = (char *)m + row->offset;
  int small = (int)value;
  if (row->size == sizeof value)
    memcpy(at, &value, sizeof value);
  else
    memcpy(at, &small, sizeof small);
}

/* Whether a fact is not stated, or is stated with its default value. */
static bool has_default(const struct row *row, const struct machine *m) {
  if (!row->usual) return false;
  int64_t value = number_of(row, m);
  return value == 0 || value == row->usual(m);
}

/* ---- printing -------------------------------------------------------------------------------- */

static void print_bytes(int64_t bytes, struct buf *out) {
  for (int i = 0; bytes && i < UNITS; i++)
    if (bytes % (INT64_C(1) << units[i].shift) == 0) {
      buf_printf(out, "%lld %s", (long long)(bytes >> units[i].shift), units[i].name);
      return;
    }
  buf_printf(out, "%lld", (long long)bytes);
}

static void print_words(const struct row *row, int64_t bits, struct buf *out) {
  const char *between = "";
  for (int i = 0; row->words[i]; i++)
    if (bits >> i & 1) {
      buf_printf(out, "%s%s", between, row->words[i]);
      between = ",";
    }
  if (!bits) buf_puts(out, "none");
}

static void print_value(const struct row *row, int64_t value, struct buf *out) {
  switch (row->kind) {
    case BYTES: print_bytes(value, out); break;
    case WORDS: print_words(row, value, out); break;
    case SWITCH: buf_puts(out, value ? "yes" : "no"); break;
    case CHOICE: buf_puts(out, value == MACHINE_YES ? "yes" : "no"); break;
    default: buf_printf(out, "%lld", (long long)value);
  }
}

void machine_print(const struct machine *machine, struct buf *out) {
  buf_printf(out, "canvas 1\nmachine %s\n", machine->name);
  for (int i = 0; i < ROWS; i++) {
    if (has_default(&rows[i], machine)) continue;
    buf_printf(out, "%s ", rows[i].key);
    if (rows[i].kind == NAME)
      buf_puts(out, machine->target);
    else
      print_value(&rows[i], number_of(&rows[i], machine), out);
    buf_puts(out, "\n");
  }
}

/* ---- parsing --------------------------------------------------------------------------------- */

static int shown(const struct token *t) {
  return t->length < SHOWN ? t->length : SHOWN;
}

static bool is_name(const struct token *t) {
  if (t->length >= MACHINE_NAME || *t->start == '-') return false;
  for (int i = 0; i < t->length; i++) {
    char c = t->start[i];
    if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
        !strchr("._+-", c))
      return false;
  }
  return t->length > 0;
}

/* Parses a word of letters, digits and ._+- : it becomes a part of the compiler's command line. */
static canvas_status parse_name(struct lexer *lx, const char *what, char out[MACHINE_NAME]) {
  if (lx->token.kind == TOKEN_END || lx->token.kind == TOKEN_NEWLINE)
    return lexer_unexpected(lx, what);
  lexer_word(lx);
  const struct token t = lx->token;
  if (t.kind == TOKEN_BAD) return lexer_unexpected(lx, what);
  if (!is_name(&t))
    return lexer_fail(lx, &t, "%s '%.*s' is not a word of at most %d letters, digits and . _ + -",
                      what, shown(&t), t.start, MACHINE_NAME - 1);
  memcpy(out, t.start, (size_t)t.length);
  out[t.length] = '\0';
  lexer_next(lx);
  return CANVAS_OK;
}

/* Parses KiB, MiB, GiB or nothing after a number. */
static canvas_status parse_unit(struct lexer *lx, int *shift) {
  const struct token t = lx->token;
  *shift = 0;
  if (t.kind == TOKEN_NEWLINE || t.kind == TOKEN_END) return CANVAS_OK;
  for (int i = 0; i < UNITS; i++)
    if (lexer_accept(lx, units[i].name)) {
      *shift = units[i].shift;
      return CANVAS_OK;
    }
  return lexer_unexpected(lx, "KiB, MiB, GiB or the end of the line");
}

static canvas_status parse_number(struct lexer *lx, const struct row *row, int64_t *out) {
  const struct token t = lx->token;
  int shift = 0;
  if (t.kind != TOKEN_INTEGER) return lexer_unexpected(lx, "a whole number");
  lexer_next(lx);
  if (row->kind == BYTES || row->kind == POWER) TRY(parse_unit(lx, &shift));
  bool fits = t.integer <= row->most >> shift && t.integer << shift >= row->least;
  if (!fits)
    return lexer_fail(lx, &t, "%s is out of its range, %lld to %lld", row->key,
                      (long long)row->least, (long long)row->most);
  if (row->kind == POWER && t.integer & (t.integer - 1))
    return lexer_fail(lx, &t, "%s %lld is not a power of two", row->key, (long long)t.integer);
  *out = t.integer << shift;
  return CANVAS_OK;
}

static canvas_status unknown_word(struct lexer *lx, const struct row *row, const char *one) {
  struct buf all = {0};
  buf_printf(&all, "%s of", one);
  for (int i = 0; row->words[i]; i++) buf_printf(&all, "%s %s", i ? "," : "", row->words[i]);
  canvas_status status = lexer_unexpected(lx, all.text);
  buf_free(&all);
  return status;
}

static canvas_status parse_words(struct lexer *lx, const struct row *row, int64_t *out) {
  *out = 0;
  if (lexer_accept(lx, "none")) return CANVAS_OK;
  do {
    int i = 0;
    while (row->words[i] && !lexer_is(lx, row->words[i])) i++;
    if (!row->words[i]) return unknown_word(lx, row, *out ? "another" : "none, or some");
    *out |= INT64_C(1) << i;
    lexer_next(lx);
  } while (lexer_accept(lx, ","));
  return CANVAS_OK;
}

static canvas_status parse_switch(struct lexer *lx, int64_t *out) {
  *out = lexer_is(lx, "yes");
  if (lexer_accept(lx, "yes") || lexer_accept(lx, "no")) return CANVAS_OK;
  return lexer_unexpected(lx, "yes or no");
}

static canvas_status parse_value(struct lexer *lx, const struct row *row, struct machine *m) {
  int64_t value = 0;
  switch (row->kind) {
    case NAME: return parse_name(lx, row->key, m->target);
    case WORDS: TRY(parse_words(lx, row, &value)); break;
    case SWITCH: TRY(parse_switch(lx, &value)); break;
    case CHOICE:
      TRY(parse_switch(lx, &value));
      value = value ? MACHINE_YES : MACHINE_NO;
      break;
    default: TRY(parse_number(lx, row, &value));
  }
  set_number(row, m, value);
  return CANVAS_OK;
}

static canvas_status unknown_key(struct lexer *lx) {
  const struct token t = lx->token;
  const char *keys[ROWS];
  if (t.kind != TOKEN_NAME) return lexer_unexpected(lx, "a key such as vector_bytes");
  for (int i = 0; i < ROWS; i++) keys[i] = rows[i].key;
  const char *near = word_nearest(t.start, t.length, keys, ROWS);
  return lexer_fail(lx, &t, "a machine has no key '%.*s'%s%s%s", shown(&t), t.start,
                    near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static canvas_status parse_row(struct lexer *lx, bool seen[ROWS], struct machine *m) {
  const struct token t = lx->token;
  int i = 0;
  while (i < ROWS && !lexer_is(lx, rows[i].key)) i++;
  if (i == ROWS) return unknown_key(lx);
  if (seen[i]) return lexer_fail(lx, &t, "%s is given twice", rows[i].key);
  seen[i] = true;
  lexer_next(lx);
  TRY(parse_value(lx, &rows[i], m));
  return lexer_end_line(lx, "after a value");
}

static canvas_status parse_head(struct lexer *lx, struct machine *m) {
  lexer_skip_newlines(lx);
  TRY(lexer_expect(lx, "canvas", "and the version ('canvas 1') on the first line"));
  TRY(lexer_version(lx));
  TRY(lexer_expect(lx, "machine", "and a name"));
  TRY(parse_name(lx, "name", m->name));
  return lexer_end_line(lx, "after the name");
}

/* Sets the defaults of missing keys, or fails for a required one. */
static canvas_status complete(struct lexer *lx, const bool seen[ROWS], struct machine *m) {
  for (int i = 0; i < ROWS; i++) {
    if (seen[i] || rows[i].usual) continue;
    if (rows[i].otherwise < 0)
      return lexer_fail(lx, &lx->token, "machine '%s' has no %s", m->name, rows[i].key);
    if (rows[i].kind == NAME)
      strcpy(m->target, "native");
    else
      set_number(&rows[i], m, rows[i].otherwise);
  }
  return CANVAS_OK;
}

canvas_status machine_parse(canvas_context *ctx, const char *text, size_t length,
                            struct machine *out) {
  struct machine m = {.line = 0};
  bool seen[ROWS] = {false};
  struct lexer lx;
  TRY(lexer_open(&lx, ctx, text, length));
  TRY(parse_head(&lx, &m));
  for (lexer_skip_newlines(&lx); lx.token.kind != TOKEN_END; lexer_skip_newlines(&lx))
    TRY(parse_row(&lx, seen, &m));
  TRY(complete(&lx, seen, &m));
  *out = m;
  return CANVAS_OK;
}
