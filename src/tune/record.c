/* Prints, parses and compares records. See record.h. */
#include "tune/record.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/number.h"
#include "run/processor.h"

/* ---- members --------------------------------------------------------------------------------- */

enum member_kind { TEXT, REAL, COUNT, SEED, TIME, FLAG, KIND };

static const struct member {
  const char *key;
  enum member_kind kind;
  size_t offset;
  int least;     /* minimum of a count */
  bool optional; /* missing in records of older versions */
} members[] = {
#define AT(field) offsetof(struct record, field)
    {"version", TEXT, AT(version), 0, false},   {"program", TEXT, AT(program), 0, false},
    {"edits", TEXT, AT(edits), 0, true},        {"schedule", TEXT, AT(schedule), 0, false},
    {"rule", TEXT, AT(rule), 0, false},         {"method", TEXT, AT(method), 0, false},
    {"seed", SEED, AT(seed), 0, false},         {"trial", COUNT, AT(trial), 0, false},
    {"failure", KIND, AT(failure), 0, false},   {"message", TEXT, AT(message), 0, false},
    {"median", REAL, AT(median), 0, false},     {"lower", REAL, AT(lower), 0, false},
    {"upper", REAL, AT(upper), 0, false},       {"cold", REAL, AT(cold), 0, true},
    {"network", REAL, AT(network), 0, true},    {"repeats", COUNT, AT(repeats), 0, false},
    {"threads", COUNT, AT(threads), 1, false},  {"screened", FLAG, AT(screened), 0, false},
    {"machine", TEXT, AT(machine), 0, false},   {"processor", TEXT, AT(processor), 0, false},
    {"compiler", TEXT, AT(compiler), 0, false}, {"time", TIME, AT(time), 0, false},
#undef AT
};
/* Three members that are no fields: format, task, and edited program of format 1. */
enum { MEMBERS = sizeof members / sizeof *members, FORMAT = MEMBERS, TASK, EDITED, ALL_MEMBERS };

#define COMPARED(x, y) (((x) > (y)) - ((x) < (y)))

static void *field(const struct record *r, const struct member *m) {
  return (char *)(uintptr_t)r + m->offset;
}

void record_free(struct record *r) {
  for (int i = 0; i < MEMBERS; i++)
    if (members[i].kind == TEXT) mem_free(*(char **)field(r, &members[i]));
  *r = (struct record){0};
}

void record_stamp(struct record *r) {
  mem_free(r->processor);
  mem_free(r->version);
  r->processor = processor_name();
  r->version = mem_strdup(CANVAS_VERSION);
  r->time = (int64_t)time(NULL);
}

static int compare_member(const struct member *m, const struct record *a, const struct record *b) {
  const void *x = field(a, m), *y = field(b, m);
  switch (m->kind) {
    case TEXT: return *(char **)x == *(char **)y ? 0 : strcmp(*(char **)x, *(char **)y);
    case SEED: return COMPARED(*(const uint64_t *)x, *(const uint64_t *)y);
    case TIME: return COMPARED(*(const int64_t *)x, *(const int64_t *)y);
    case REAL: return COMPARED(*(const double *)x, *(const double *)y);
    case FLAG: return COMPARED(*(const bool *)x, *(const bool *)y);
    case COUNT: return COMPARED(*(const int *)x, *(const int *)y);
    case KIND: return COMPARED(*(const enum failure *)x, *(const enum failure *)y);
  }
  return 0;
}

int record_compare(const struct record *a, const struct record *b) {
  static const char *const first[] = {"program", "time", "method", "seed", "trial"};
  int order = 0;
  for (size_t i = 0; !order && i < sizeof first / sizeof *first; i++)
    for (int k = 0; !order && k < MEMBERS; k++)
      if (!strcmp(members[k].key, first[i])) order = compare_member(&members[k], a, b);
  for (int k = 0; !order && k < MEMBERS; k++) order = compare_member(&members[k], a, b);
  return order;
}

/* ---- tasks ----------------------------------------------------------------------------------- */

void task_of(const char *program, char out[TASK_NAME]) {
  uint64_t h = UINT64_C(0xCBF29CE484222325);
  for (const char *p = program; *p; p++) {
    h = (h ^ (unsigned char)*p) * UINT64_C(0x100000001B3);
    h ^= h >> 29; /* spreads early characters to the low bits */
  }
  text_format(out, TASK_NAME, "%016llx", (unsigned long long)h);
}

int record_winograd(const struct record *r) {
  static const char word[] = "winograd ";
  int most = 0;
  for (const char *line = r->edits ? r->edits : ""; *line;) {
    size_t length = strcspn(line, "\n"), last = length;
    while (last > 0 && line[last - 1] != ' ') last--;
    int tile = strncmp(line, word, sizeof word - 1) ? 0 : (int)strtol(line + last, NULL, 10);
    if (tile > most) most = tile;
    line += length + (line[length] == '\n');
  }
  return most;
}

void task_title(const char *program, char *out, size_t size) {
  static const char word[] = "program ";
  const char *line = program;
  while (line && strncmp(line, word, sizeof word - 1) != 0) {
    const char *end = strchr(line, '\n');
    line = end ? end + 1 : NULL;
  }
  const char *name = line ? line + sizeof word - 1 : "";
  text_format(out, size, "%.*s", (int)strcspn(name, " \t\r\n"), name);
}

/* ---- printing -------------------------------------------------------------------------------- */

static void print_text(const struct record *r, const struct member *m, struct buf *out) {
  const char *text = *(char **)field(r, m);
  bool edits = m->offset == offsetof(struct record, edits);
  if (edits && (!text || !*text))
    buf_puts(out, "null");
  else
    json_string(out, text ? text : "");
}

/* Prints a time, or null if it failed or an optional time was not measured. */
static void print_real(const struct record *r, const struct member *m, double value,
                       struct buf *out) {
  bool none = r->failure || (m->optional && !(value > 0));
  json_number(out, none ? NAN : value);
}

static void print_value(const struct record *r, const struct member *m, struct buf *out) {
  const void *at = field(r, m);
  switch (m->kind) {
    case TEXT: print_text(r, m, out); break;
    case REAL: print_real(r, m, *(const double *)at, out); break;
    case COUNT: buf_printf(out, "%d", *(const int *)at); break;
    case SEED: buf_printf(out, "%llu", (unsigned long long)*(const uint64_t *)at); break;
    case TIME: buf_printf(out, "%lld", (long long)*(const int64_t *)at); break;
    case FLAG: buf_puts(out, *(const bool *)at ? "true" : "false"); break;
    case KIND: json_string(out, failure_name(*(const enum failure *)at)); break;
  }
}

void record_print(const struct record *r, struct buf *out) {
  char task[TASK_NAME];
  task_of(r->program ? r->program : "", task);
  buf_printf(out, RECORD_BEGIN "%d, \"task\": \"%s\"", RECORD_FORMAT, task);
  for (int i = 0; i < MEMBERS; i++) {
    buf_printf(out, ", \"%s\": ", members[i].key);
    print_value(r, &members[i], out);
  }
  buf_puts(out, "}\n");
}

/* ---- parsing --------------------------------------------------------------------------------- */

static canvas_status reject(const struct json_reader *in, const char *wanted) {
  return fail(in->ctx, CANVAS_BAD_INPUT, "'%.40s' takes %s", in->key.text, wanted);
}

/* Reads a whole number in [least, most]. */
static bool read_whole(const struct json_reader *in, uint64_t least, uint64_t most, uint64_t *out) {
  const char *text = in->text.text;
  if (in->kind != JSON_NUMBER || !*text || text[strspn(text, "0123456789")]) return false;
  errno = 0;
  *out = strtoull(text, NULL, 10);
  return !errno && *out >= least && *out <= most;
}

static canvas_status read_text(const struct json_reader *in, const struct member *m,
                               struct record *r) {
  bool none = in->kind == JSON_NULL && m->offset == offsetof(struct record, edits);
  if (none) return CANVAS_OK;
  if (in->kind != JSON_STRING) return reject(in, "a string");
  *(char **)field(r, m) = mem_strdup(in->text.text);
  return CANVAS_OK;
}

static canvas_status read_real(const struct json_reader *in, double *out) {
  if (in->kind == JSON_NULL) return CANVAS_OK;
  *out = in->kind == JSON_NUMBER ? number_parse(in->text.text) : -1;
  return *out >= 0 && isfinite(*out) ? CANVAS_OK : reject(in, "seconds, or null");
}

static canvas_status read_count(const struct json_reader *in, const struct member *m, int *out) {
  uint64_t value;
  if (!read_whole(in, (uint64_t)m->least, INT_MAX, &value))
    return reject(in, m->least ? "a whole number from 1 on" : "a whole number");
  *out = (int)value;
  return CANVAS_OK;
}

static canvas_status read_kind(const struct json_reader *in, enum failure *out) {
  for (int i = 0; in->kind == JSON_STRING && i < FAILURES; i++)
    if (!strcmp(in->text.text, failure_name((enum failure)i))) {
      *out = (enum failure)i;
      return CANVAS_OK;
    }
  return reject(in, "ok or a kind of failure");
}

static canvas_status read_value(const struct json_reader *in, const struct member *m,
                                struct record *r) {
  void *at = field(r, m);
  uint64_t value;
  switch (m->kind) {
    case TEXT: return read_text(in, m, r);
    case REAL: return read_real(in, at);
    case COUNT: return read_count(in, m, at);
    case KIND: return read_kind(in, at);
    case SEED: return read_whole(in, 0, UINT64_MAX, at) ? CANVAS_OK : reject(in, "a whole number");
    case TIME:
      if (!read_whole(in, 0, INT64_MAX, &value)) return reject(in, "seconds since 1970");
      *(int64_t *)at = (int64_t)value;
      return CANVAS_OK;
    case FLAG: break;
  }
  if (in->kind != JSON_TRUE && in->kind != JSON_FALSE) return reject(in, "true or false");
  *(bool *)at = in->kind == JSON_TRUE;
  return CANVAS_OK;
}

struct reading {
  struct json_reader in;
  struct record *r;
  bool seen[ALL_MEMBERS];
  char task[TASK_NAME];
  int format;
  char *edited; /* edited program of format 1; NULL: unedited */
};

static int member_of(const char *key) {
  for (int i = 0; i < MEMBERS; i++)
    if (!strcmp(members[i].key, key)) return i;
  return !strcmp(key, "canvas_log") ? FORMAT
         : !strcmp(key, "task")     ? TASK
         : !strcmp(key, "edited")   ? EDITED
                                    : ALL_MEMBERS;
}

static canvas_status read_format(const struct json_reader *in, int *out) {
  uint64_t format;
  if (!read_whole(in, 1, INT_MAX, &format)) return reject(in, "a whole number from 1 on");
  *out = (int)format;
  if (format <= RECORD_FORMAT) return CANVAS_OK;
  return fail(in->ctx, CANVAS_BAD_INPUT,
              "a record of format %d, this version of canvas reads formats up to %d", (int)format,
              RECORD_FORMAT);
}

static canvas_status read_edited(const struct json_reader *in, char **out) {
  if (in->kind == JSON_NULL) return CANVAS_OK;
  if (in->kind != JSON_STRING) return reject(in, "a string");
  *out = mem_strdup(in->text.text);
  return CANVAS_OK;
}

static canvas_status read_member(struct reading *g) {
  int member = member_of(g->in.key.text);
  if (member == ALL_MEMBERS) return CANVAS_OK;
  if (g->seen[member])
    return fail(g->in.ctx, CANVAS_BAD_INPUT, "'%.40s' stands there twice", g->in.key.text);
  g->seen[member] = true;
  if (member == FORMAT) return read_format(&g->in, &g->format);
  if (member == EDITED) return read_edited(&g->in, &g->edited);
  if (member < MEMBERS) return read_value(&g->in, &members[member], g->r);
  if (g->in.kind != JSON_STRING) return reject(&g->in, "a string");
  text_format(g->task, sizeof g->task, "%s", g->in.text.text);
  return CANVAS_OK;
}

/* Whether the member may be missing: `edits` in format 1, `edited` in later ones, new members. */
static bool is_optional(const struct reading *g, int member) {
  if (member == EDITED) return g->format != 1;
  if (member >= MEMBERS) return false;
  if (members[member].offset == offsetof(struct record, edits)) return g->format == 1;
  return members[member].optional;
}

static canvas_status check_members(canvas_context *ctx, const struct reading *g) {
  static const char *const others[] = {"canvas_log", "task", "edited"};
  for (int i = MEMBERS; i < MEMBERS + ALL_MEMBERS; i++) { /* checks the format first */
    int member = i % ALL_MEMBERS;
    if (!g->seen[member] && !is_optional(g, member))
      return fail(ctx, CANVAS_BAD_INPUT, "'%s' is missing",
                  member < MEMBERS ? members[member].key : others[member - MEMBERS]);
  }
  return CANVAS_OK;
}

static canvas_status check_whole(canvas_context *ctx, const struct reading *g) {
  TRY(check_members(ctx, g));
  char task[TASK_NAME];
  task_of(g->r->program, task);
  if (strcmp(task, g->task) != 0)
    return fail(ctx, CANVAS_BAD_INPUT, "'task' is '%.20s', but the hash of the program is '%s'",
                g->task, task);
  if (!g->r->failure && !(g->r->median > 0))
    return fail(ctx, CANVAS_BAD_INPUT, "'median' takes seconds where nothing failed");
  return CANVAS_OK;
}

static canvas_status read_all(canvas_context *ctx, struct reading *g) {
  for (bool found;;) {
    TRY(json_next(&g->in, &found));
    if (!found) return check_whole(ctx, g);
    TRY(read_member(g));
  }
}

canvas_status record_parse(canvas_context *ctx, const char *line, size_t length,
                           struct record *out) {
  struct record r = {0};
  struct reading g = {.r = &r};
  json_open(&g.in, ctx, line, length);
  canvas_status status = read_all(ctx, &g);
  json_close(&g.in);
  if (g.format == 1 && r.edits) *r.edits = '\0'; /* format 1 has no such key */
  if (!r.edits) r.edits = mem_strdup("");
  r.outdated = status == CANVAS_OK && g.format == 1 && g.edited && strcmp(g.edited, r.program);
  mem_free(g.edited);
  if (status == CANVAS_OK)
    *out = r;
  else
    record_free(&r);
  return status;
}
