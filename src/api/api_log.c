/* Tuning logs: read, asked for the best, bound again. */
#include <stdlib.h>

#include "api/api_call.h"
#include "api/handle.h"
#include "run/processor.h"
#include "tune/log.h"

_Static_assert(sizeof((canvas_record *)0)->task == TASK_NAME, "canvas.h has room for a task");
_Static_assert(sizeof((canvas_log_task *)0)->name == PROGRAM_NAME, "... and for a program's name");
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
                       .edited = r->edited,
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

API_STATUS(canvas_log_best,
           (canvas_context * ctx, const canvas_log *log, const canvas_program *program,
            const canvas_log_place *place, int *record),
           (ctx, log, program, place, record)) {
  NEED(log);
  NEED(program);
  NEED(place);
  NEED(record);
  TRY(check_place(ctx, place));
  struct place p = place_open(place);
  struct buf text = {0};
  const struct record *best;
  program_print(program_of(program), &text);
  canvas_status status = records_choose(ctx, &log->records, text.text, &p.filter, &best);
  if (status == CANVAS_OK) *record = (int)(best - log->records.data);
  buf_free(&text);
  place_close(&p);
  return status;
}

API_STATUS(canvas_log_bind,
           (canvas_context * ctx, const canvas_log *log, int record, canvas_bound **out),
           (ctx, log, record, out)) {
  NEED(log);
  NEED(out);
  struct recorded r;
  if (!is_index(record, log->records.count))
    return fail(ctx, CANVAS_BAD_INPUT, "record %d does not exist, the log has %d", record,
                log->records.count);
  TRY(record_bind(ctx, record_at(log, record), &r));
  struct canvas_bound *b = mem_alloc(sizeof *b);
  *b = (struct canvas_bound){r.tree, r.schedule, mem_alloc(sizeof *b->edited), r.given};
  *b->edited = (struct shared_program){r.program, r.given, 1};
  *out = b;
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
  struct buf given = {0}, edited = {0}, schedule = {0}, machine = {0};
  struct log *log = NULL;
  program_print(bound->given ? bound->given : bound->tree->program, &given);
  program_print(bound->tree->program, &edited);
  schedule_print(bound->tree->schedule, &schedule);
  machine_print(&bound->tree->machine, &machine);
  struct record r = {.program = given.text,
                     .edited = edited.text,
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
  buf_free(&given);
  buf_free(&edited);
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
                         .first = t->first,
                         .last = t->last};
  for (int i = 0; i < FAILURES; i++) out.failed[i] = t->failed[i];
  task_of(t->program, out.task);
  task_title(t->program, out.name, sizeof out.name);
  return out;
}

API_VALUE(canvas_log_task *, canvas_log_tasks,
          (const canvas_log *log, const canvas_log_place *place, int *count), (log, place, count),
          NULL) {
  if (!log || !place || !count) return NULL;
  struct place p = place_open(place);
  struct log_tasks tasks = {0};
  records_tasks(&log->records, &p.filter, &tasks);
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
