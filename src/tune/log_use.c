/* Chooses the best usable record; an unusable one does not hide usable ones. See log.h. */
#include <limits.h>
#include <string.h>

#include "base/number.h"
#include "tune/log.h"

enum { ONE_BY_ONE = 16 /* refused records after which all of the program are tried */ };

struct using {
  const struct records *records;
  struct record_filter filter; /* filter of records; `refused` is set to */
  bool *refused, *good;        /* by record: tried and unusable; tried and usable */
  int count;                   /* number of refused records */
  canvas_context why;          /* reason of the first refusal */
};

static void using_open(struct using *u, const struct records *r,
                       const struct record_filter *filter) {
  *u = (struct using){.records = r, .filter = *filter};
  u->refused = mem_alloc((size_t)r->count + 1);
  u->good = mem_alloc((size_t)r->count + 1);
  u->filter.first = r->data;
  u->filter.refused = u->refused;
}

static void using_close(struct using *u) {
  mem_free(u->refused);
  mem_free(u->good);
}

/* Binds a record; false: unusable, and refused from now on. */
static bool try_record(struct using *u, const struct record *r, const struct record_use *use,
                       struct recorded *out) {
  canvas_context aside;
  bool good = record_bind(u->count ? &aside : &u->why, r, use, out) == CANVAS_OK;
  (good ? u->good : u->refused)[r - u->records->data] = true;
  u->count += !good;
  return good;
}

/* Tries all records of the program in one pass, since a file may have many unusable ones. */
static void try_all(struct using *u, const char *program, const struct record_use *use) {
  struct recorded bound;
  if (u->count != ONE_BY_ONE) return;
  for (int i = 0; i < u->records->count; i++) {
    const struct record *r = &u->records->data[i];
    bool tried = u->refused[i] || u->good[i] || r->failure;
    if (tried || !record_passes(r, &u->filter) || !record_is_of(r, program, &u->filter)) continue;
    if (try_record(u, r, use, &bound)) recorded_free(&bound);
  }
}

/* ---- one program ----------------------------------------------------------------------------- */

static canvas_status none_usable(canvas_context *ctx, const struct using *u, const char *title) {
  return fail(ctx, CANVAS_NONE, "%d record%s of '%.100s' cannot be used: %.800s", u->count,
              u->count > 1 ? "s" : "", title, u->why.message);
}

canvas_status records_use(canvas_context *ctx, const struct records *r,
                          const struct record_filter *filter, const struct record_use *use,
                          const struct record **which, struct recorded *out,
                          struct records_passed *passed) {
  struct using u;
  struct buf text = {0};
  canvas_status status;
  using_open(&u, r, filter);
  program_print(use->given, &text);
  do status = records_choose(ctx, r, text.text, &u.filter, which);
  while (status == CANVAS_OK && !try_record(&u, *which, use, out) &&
         (try_all(&u, text.text, use), true));
  if (status == CANVAS_NONE && u.count) status = none_usable(ctx, &u, use->given->name);
  if (passed) passed->count = u.count;
  if (passed) memcpy(passed->why, u.why.message, sizeof passed->why);
  buf_free(&text);
  using_close(&u);
  return status;
}

/* ---- all programs ---------------------------------------------------------------------------- */

/* Use of a record on the machine, with the filter's limit of Winograd tiles. */
static struct record_use use_of(const struct using *u, const struct machine *machine) {
  return (struct record_use){NULL, machine, u->filter.exact ? u->filter.winograd : INT_MAX};
}

static void try_best(struct using *u, const struct record *r, const struct machine *machine) {
  canvas_context aside;
  struct program *given = NULL;
  struct recorded bound;
  struct record_use use = use_of(u, machine);
  if (u->good[r - u->records->data]) return;
  if (program_parse(&aside, r->program, strlen(r->program), &given) == CANVAS_OK) use.given = given;
  if (try_record(u, r, &use, &bound))
    recorded_free(&bound);
  else if (use.given)
    try_all(u, r->program, &use);
  program_free(given);
}

static void count_refused(const struct using *u, const struct machine *machine,
                          struct log_tasks *tasks) {
  const struct record_use use = use_of(u, machine);
  for (int i = 0; i < u->records->count; i++)
    for (int k = 0; u->refused[i] && k < tasks->count; k++) {
      struct log_task *t = &tasks->data[k];
      const struct record *r = &u->records->data[i];
      canvas_context why = {.message = ""};
      struct recorded bound;
      if (t->program != r->program || t->threads != r->threads || t->refused++) continue;
      if (record_bind(&why, r, &use, &bound) == CANVAS_OK) recorded_free(&bound);
      text_format(t->why, sizeof t->why, "%s", why.message);
    }
}

void records_usable_tasks(const struct records *r, const struct record_filter *filter,
                          const struct machine *machine, struct log_tasks *out) {
  struct using u;
  using_open(&u, r, filter);
  for (int before = -1; before < u.count;) {
    before = u.count;
    mem_free(out->data);
    *out = (struct log_tasks){0};
    records_tasks(r, &u.filter, out);
    for (int i = 0; i < out->count; i++)
      if (out->data[i].best >= 0) try_best(&u, &r->data[out->data[i].best], machine);
  }
  count_refused(&u, machine, out);
  using_close(&u);
}
