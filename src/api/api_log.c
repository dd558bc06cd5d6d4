/* Tuning logs: read, searched for the best schedule, bound again. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_call.h"
#include "api/handle.h"
#include "base/number.h"
#include "program/program_facts.h"
#include "rewrite/program_edit.h"
#include "run/processor.h"
#include "tune/log.h"

_Static_assert(sizeof((canvas_record *)0)->task == TASK_NAME, "canvas.h has room for a task");
_Static_assert(sizeof((canvas_log_task *)0)->name == PROGRAM_NAME, "... and for a program's name");
_Static_assert(sizeof((canvas_log_task *)0)->why == sizeof((struct log_task *)0)->why,
               "... a reason");
_Static_assert((int)CANVAS_FAILED_RUN + 1 == (int)FAILURES, "... and for all failures");

struct canvas_log {
  struct records records;
};

const struct records *log_records(const canvas_log *log) {
  return &log->records;
}

API_STATUS(canvas_log_read, (canvas_context * ctx, const char *path, canvas_log **out),
           (ctx, path, out)) {
  NEED(path);
  NEED(out);
  struct canvas_log *log = mem_alloc(sizeof *log);
  canvas_status status = log_read(ctx, path, &log->records);
  if (status == CANVAS_OK)
    *out = log;
  else
    canvas_log_free(log);
  return status;
}

API_VALUE(canvas_log *, canvas_log_merge, (const canvas_log *const *logs, int count), (logs, count),
          NULL) {
  if (count < 0 || (count && !logs)) return NULL;
  for (int i = 0; i < count; i++)
    if (!logs[i]) return NULL;
  struct canvas_log *all = mem_alloc(sizeof *all);
  for (int i = 0; i < count; i++)
    for (int k = 0; k < logs[i]->records.count; k++)
      records_add(&all->records, &logs[i]->records.data[k]);
  records_merge(&all->records);
  return all;
}

void canvas_log_free(canvas_log *log) {
  if (!log) return;
  records_free(&log->records);
  mem_free(log);
}

int canvas_log_count(const canvas_log *log) {
  if (!log) return 0;
  return log->records.count;
}

int64_t canvas_log_damaged(const canvas_log *log, int64_t *line, const char **why) {
  if (!log) return 0;
  if (line) *line = log->records.line;
  if (why) *why = log->records.why;
  return log->records.damaged;
}

int64_t canvas_log_outdated(const canvas_log *log, int64_t *line) {
  if (!log) return 0;
  if (line) *line = log->records.outdated_line;
  return log->records.outdated;
}

/* NULL: there is no such record. */
static const struct record *record_at(const canvas_log *log, int record) {
  return is_index(record, log->records.count) ? &log->records.data[record] : NULL;
}

API_VALUE(canvas_record, canvas_log_record, (const canvas_log *log, int record), (log, record),
          (canvas_record){0}) {
  if (!log) return (canvas_record){0};
  const struct record *r = record_at(log, record);
  if (!r) return (canvas_record){0};
  canvas_record out = {.program = r->program,
                       .edits = r->edits,
                       .schedule = r->schedule,
                       .rule = r->rule,
                       .method = r->method,
                       .seed = r->seed,
                       .trial = r->trial,
                       .failure = (canvas_failure)r->failure,
                       .message = r->message,
                       .median = r->median,
                       .lower = r->lower,
                       .upper = r->upper,
                       .cold = r->cold,
                       .network = r->network,
                       .repeats = r->repeats,
                       .threads = r->threads,
                       .screened = r->screened,
                       .machine = r->machine,
                       .processor = r->processor,
                       .compiler = r->compiler,
                       .version = r->version,
                       .time = r->time};
  task_of(r->program, out.task);
  return out;
}

API_VALUE(char *, canvas_log_line, (const canvas_log *log, int record), (log, record), NULL) {
  if (!log) return NULL;
  struct buf out = {0};
  const struct record *r = record_at(log, record);
  if (!r) return NULL;
  record_print(r, &out);
  return buf_take(&out);
}

/* ---- the best -------------------------------------------------------------------------------- */

static canvas_status check_place(canvas_context *ctx, const canvas_log_place *place) {
  const struct option_number threads = {"threads", place->threads, THREADS_MOST};
  TRY(check_numbers(ctx, &threads, 1));
  return place->winograd ? winograd_check_tile(ctx, place->winograd) : CANVAS_OK;
}

/* A filter, and the texts that it borrows. */
struct place {
  struct record_filter filter;
  struct buf machine;
  char *processor;
};

static struct place place_open(const canvas_log_place *place) {
  struct place p = {.filter = {.threads = place->threads,
                               .exact = true,
                               .winograd = place->winograd,
                               .nameless = place->nameless}};
  if (place->anywhere) return p;
  if (place->machine) machine_print(machine_of(place->machine), &p.machine);
  p.processor = processor_name();
  p.filter.machine = p.machine.text;
  p.filter.processor = p.processor;
  p.filter.compiler = place->compiler;
  p.filter.version = CANVAS_VERSION;
  return p;
}

static void place_close(struct place *p) {
  buf_free(&p->machine);
  mem_free(p->processor);
}

/* Where the place has a machine, a record is bound for that: it is the same but for its name, cores and memory. */
static struct record_use use_of(const canvas_log_place *place, const struct program *given) {
  if (!place) return (struct record_use){.given = given};
  bool here = place->machine && !place->anywhere;
  return (struct record_use){given, here ? machine_of(place->machine) : NULL, place->winograd};
}

static canvas_bound *bound_of(struct recorded *r) {
  struct canvas_bound *b = mem_alloc(sizeof *b);
  *b = (struct canvas_bound){r->tree, r->schedule, mem_alloc(sizeof *b->edited), r->given};
  *b->edited = (struct shared_program){r->program, r->given, 1};
  return b;
}

API_STATUS(canvas_log_take,
           (canvas_context * ctx, const canvas_log *log, const canvas_program *program,
            const canvas_log_place *place, canvas_bound **out, canvas_log_taken *taken),
           (ctx, log, program, place, out, taken)) {
  NEED(log);
  NEED(program);
  NEED(place);
  NEED(out);
  NEED(taken);
  TRY(check_place(ctx, place));
  struct place p = place_open(place);
  const struct record_use use = use_of(place, program_of(program));
  const struct record *best;
  struct recorded r;
  struct records_passed passed;
  canvas_status status = records_use(ctx, &log->records, &p.filter, &use, &best, &r, &passed);
  place_close(&p);
  *taken = (canvas_log_taken){.record = -1, .refused = passed.count};
  text_format(taken->why, sizeof taken->why, "%s", passed.why);
  if (status != CANVAS_OK) return status;
  taken->record = (int)(best - log->records.data);
  *out = bound_of(&r);
  return CANVAS_OK;
}

API_STATUS(canvas_log_best,
           (canvas_context * ctx, const canvas_log *log, const canvas_program *program,
            const canvas_log_place *place, int *record),
           (ctx, log, program, place, record)) {
  NEED(record);
  canvas_bound *bound;
  canvas_log_taken taken;
  TRY(canvas_log_take(ctx, log, program, place, &bound, &taken));
  canvas_bound_free(bound);
  *record = taken.record;
  return CANVAS_OK;
}

API_STATUS(canvas_log_bind,
           (canvas_context * ctx, const canvas_log *log, int record, const canvas_log_place *place,
            canvas_bound **out),
           (ctx, log, record, place, out)) {
  NEED(log);
  NEED(out);
  if (place) TRY(check_place(ctx, place));
  const struct record_use use = use_of(place, NULL);
  struct recorded r;
  if (!is_index(record, log->records.count))
    return fail(ctx, CANVAS_BAD_INPUT, "record %d does not exist, the log has %d", record,
                log->records.count);
  TRY(record_bind(ctx, record_at(log, record), &use, &r));
  *out = bound_of(&r);
  return CANVAS_OK;
}

/* ---- of networks ------------------------------------------------------------------------------ */

/* Clocks differ, and are set: no record of the log is later. */
static canvas_status follow(canvas_context *ctx, const char *path, int64_t *time) {
  struct records all = {0};
  canvas_status status = log_read(ctx, path, &all);
  for (int i = 0; i < all.count; i++)
    if (all.data[i].time > *time) *time = all.data[i].time;
  records_free(&all);
  return status;
}

/* Numbers that a record can hold. */
static canvas_status check_times(canvas_context *ctx, const canvas_verdict *time) {
  const struct option_number numbers[] = {{"median", time->median, SECONDS_MOST},
                                          {"lower", time->lower, SECONDS_MOST},
                                          {"upper", time->upper, SECONDS_MOST},
                                          {"repeats", time->repeats, COUNT_MOST}};
  TRY(check_numbers(ctx, numbers, sizeof numbers / sizeof *numbers));
  if (time->median > 0) return CANVAS_OK;
  return fail(ctx, CANVAS_BAD_INPUT, "the median of the times is 0, give seconds");
}

API_STATUS(canvas_log_add_network,
           (canvas_context * ctx, const char *path, const canvas_bound *bound,
            const canvas_log_place *place, const canvas_verdict *time),
           (ctx, path, bound, place, time)) {
  NEED(path);
  NEED(bound);
  NEED(place);
  NEED(time);
  TRY(check_place(ctx, place));
  TRY(check_times(ctx, time));
  struct buf text = {0}, schedule = {0}, machine = {0};
  struct log *log = NULL;
  const struct program *given = bound->given ? bound->given : bound->tree->program;
  const char *edits = program_edits_since(bound->tree->program, given);
  assert(edits); /* what is bound is made of its program by edits */
  program_print(given, &text);
  schedule_print(bound->tree->schedule, &schedule);
  machine_print(&bound->tree->machine, &machine);
  struct record r = {.program = text.text,
                     .edits = (char *)(uintptr_t)edits,
                     .schedule = schedule.text,
                     .rule = "default",
                     .method = "network",
                     .message = "",
                     .median = time->median,
                     .lower = time->lower,
                     .upper = time->upper,
                     .network = time->median,
                     .repeats = time->repeats,
                     .threads = place->threads > 1 ? place->threads : 1,
                     .machine = machine.text,
                     .compiler = (char *)(uintptr_t)place->compiler};
  record_stamp(&r);
  canvas_status status = log_open(ctx, path, &log);
  if (status == CANVAS_OK) status = follow(ctx, path, &r.time);
  if (status == CANVAS_OK) status = log_append(ctx, log, &r);
  log_close(log);
  mem_free(r.processor);
  mem_free(r.version);
  buf_free(&text);
  buf_free(&schedule);
  buf_free(&machine);
  return status;
}

/* ---- by tasks -------------------------------------------------------------------------------- */

static canvas_log_task task_out(const struct log_task *t) {
  canvas_log_task out = {.threads = t->threads,
                         .trials = t->trials,
                         .screened = t->screened,
                         .best = t->best,
                         .refused = t->refused,
                         .first = t->first,
                         .last = t->last};
  for (int i = 0; i < FAILURES; i++) out.failed[i] = t->failed[i];
  task_of(t->program, out.task);
  task_title(t->program, out.name, sizeof out.name);
  memcpy(out.why, t->why, sizeof out.why);
  return out;
}

API_VALUE(canvas_log_task *, canvas_log_tasks,
          (const canvas_log *log, const canvas_log_place *place, int *count), (log, place, count),
          NULL) {
  if (!log || !place || !count) return NULL;
  struct place p = place_open(place);
  struct log_tasks tasks = {0};
  records_usable_tasks(&log->records, &p.filter, use_of(place, NULL).machine, &tasks);
  canvas_log_task *out = mem_alloc((size_t)tasks.count * sizeof *out + 1);
  for (int i = 0; i < tasks.count; i++) out[i] = task_out(&tasks.data[i]);
  *count = tasks.count;
  mem_free(tasks.data);
  place_close(&p);
  return out;
}

void canvas_log_tasks_free(canvas_log_task *tasks) {
  mem_free(tasks);
}
