/* Recalls and adds records of one search. See journal.h. */
#include "tune/journal.h"

#include <stdlib.h>
#include <string.h>

#include "run/processor.h"
#include "tune/same_but_sizes.h"

struct known {
  uint64_t hash; /* journal_hash */
  const struct record *record;
};

struct journal {
  struct log *log;
  struct records records; /* records of the log when it was opened */
  struct journal_run run;
  char *program, *machine, *method, *processor;
  struct record_filter filter;
  int next; /* number of the next trial */
  struct {
    VEC(struct known);
  } known;
};

static uint64_t hash_text(uint64_t hash, const char *text) {
  for (; *text; text++) hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
  return hash;
}

uint64_t journal_hash(const char *edits, const char *schedule) {
  return hash_text(hash_text(UINT64_C(14695981039346656037), edits), schedule);
}

static bool is_of_run(const struct journal *j, const struct record *r) {
  return r->seed == j->run.seed && strcmp(r->method, j->method) == 0 &&
         strcmp(r->program, j->program) == 0 && record_passes(r, &j->filter);
}

static void find_known(struct journal *j) {
  for (int i = 0; i < j->records.count; i++) {
    const struct record *r = &j->records.data[i];
    if (!is_of_run(j, r)) continue;
    VEC_PUSH(&j->known, ((struct known){journal_hash(r->edits, r->schedule), r}));
    if (r->trial >= j->next) j->next = r->trial + 1;
  }
}

canvas_status journal_open(canvas_context *ctx, const char *path, const struct journal_run *run,
                           struct journal **out) {
  struct journal *j = mem_alloc(sizeof *j);
  j->run = *run;
  j->program = mem_strdup(run->program);
  j->machine = mem_strdup(run->machine);
  j->method = mem_strdup(run->method);
  j->processor = processor_name();
  j->filter = (struct record_filter){.machine = j->machine,
                                     .processor = j->processor,
                                     .version = CANVAS_VERSION,
                                     .threads = run->threads};
  canvas_status status = log_open(ctx, path, &j->log);
  if (status == CANVAS_OK) status = log_read(ctx, path, &j->records);
  if (status == CANVAS_OK) {
    find_known(j);
    *out = j;
  } else {
    journal_close(j);
  }
  return status;
}

void journal_close(struct journal *j) {
  if (!j) return;
  log_close(j->log);
  records_free(&j->records);
  mem_free(j->known.data);
  mem_free(j->program);
  mem_free(j->machine);
  mem_free(j->method);
  mem_free(j->processor);
  mem_free(j);
}

int64_t journal_damaged(const struct journal *j) {
  return j->records.damaged;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

static bool is_entry(const struct record *r, const struct journal_entry *e) {
  return r->screened == e->screened && strcmp(r->compiler, e->compiler) == 0 &&
         strcmp(r->edits, e->edits) == 0 && strcmp(r->schedule, e->schedule) == 0;
}

bool journal_recall(const struct journal *j, const struct journal_entry *e, struct verdict *out) {
  uint64_t hash = journal_hash(e->edits, e->schedule);
  for (int i = 0; i < j->known.count; i++) {
    const struct record *r = j->known.data[i].record;
    if (j->known.data[i].hash != hash || !is_entry(r, e)) continue;
    *out = (struct verdict){.failure = r->failure,
                            .repeats = r->repeats,
                            .median = r->median,
                            .lower = r->lower,
                            .upper = r->upper,
                            .cold = r->cold};
    strncpy(out->message, r->message, sizeof out->message - 1);
    return true;
  }
  return false;
}

canvas_status journal_add(canvas_context *ctx, struct journal *j, const struct journal_entry *e,
                          const struct verdict *verdict) {
  bool ok = verdict->failure == FAILED_NOT;
  struct record r = {.program = j->program,
                     .edits = (char *)(uintptr_t)e->edits,
                     .schedule = (char *)(uintptr_t)e->schedule,
                     .rule = (char *)(uintptr_t)e->rule,
                     .method = j->method,
                     .seed = j->run.seed,
                     .trial = j->next++,
                     .failure = verdict->failure,
                     .message = (char *)(uintptr_t)verdict->message,
                     .median = ok ? verdict->median : 0,
                     .lower = ok ? verdict->lower : 0,
                     .upper = ok ? verdict->upper : 0,
                     .cold = ok ? verdict->cold : 0,
                     .repeats = verdict->repeats,
                     .threads = j->run.threads,
                     .screened = e->screened,
                     .machine = j->machine,
                     .compiler = (char *)(uintptr_t)e->compiler};
  record_stamp(&r);
  canvas_status status = log_append(ctx, j->log, &r);
  mem_free(r.processor);
  mem_free(r.version);
  return status;
}

/* ---- similar programs ------------------------------------------------------------------------ */

void journal_similar(const struct journal *j,
                     void (*visit)(void *data, const char *rule, const char *schedule),
                     void *data) {
  struct log_tasks tasks = {0};
  records_tasks(&j->records, &j->filter, &tasks);
  for (int i = 0; i < tasks.count; i++) {
    const struct record *r = tasks.data[i].best >= 0 ? &j->records.data[tasks.data[i].best] : NULL;
    if (r && same_but_sizes(r->program, j->program)) visit(data, r->rule, r->schedule);
  }
  mem_free(tasks.data);
}
