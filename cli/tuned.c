/* Tuning logs on the command line: read them, and find the best schedule of a program. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "command.h"

canvas_log *log_of_file(struct arguments *a, const char *file) {
  canvas_log *log;
  const char *why;
  int64_t line;
  if (canvas_log_read(a->ctx, file, &log) != CANVAS_OK) {
    report_error("%s", canvas_context_message(a->ctx));
    return NULL;
  }
  int64_t damaged = canvas_log_damaged(log, &line, &why);
  if (damaged)
    report_note("%.500s: %" PRId64 " damaged %s left out, the first is line %" PRId64 ": %s", file,
                damaged, damaged == 1 ? "line is" : "lines are", line, why);
  int64_t outdated = canvas_log_outdated(log, &line);
  if (outdated)
    report_note("%.500s: %" PRId64 " record%s of format 1 left out, from line %" PRId64
                " on: such records hold edited programs without the edits; tune again",
                file, outdated, outdated == 1 ? "" : "s", line);
  return log;
}

void note_refused(const char *file, const canvas_log_task *tasks, int count) {
  for (int i = 0; i < count; i++)
    if (tasks[i].refused)
      report_note("%.500s: %d record%s of '%.100s' would be the fastest but cannot be used: %s",
                  file, tasks[i].refused, tasks[i].refused > 1 ? "s" : "", tasks[i].name,
                  tasks[i].why);
}

void tuned_note_refused(const struct tuned *t) {
  int count;
  if (!t->log) return;
  canvas_log_task *tasks = canvas_log_tasks(t->log, &t->place, &count);
  note_refused(t->file, tasks, count);
  canvas_log_tasks_free(tasks);
}

bool option_winograd(const struct arguments *a, int64_t *tile) {
  const char *text = option_text(a, "--winograd", "0");
  bool known = text[0] && strchr("024", text[0]) && !text[1];
  *tile = known ? text[0] - '0' : 0;
  if (!known) report_error("--winograd takes tiles of 2 or 4, not '%.60s'", text);
  return known;
}

bool tuned_open(struct arguments *a, const canvas_machine *machine, int64_t threads,
                int64_t winograd, struct tuned *out) {
  static const char *const others[] = {"--schedule", "--set"};
  *out = (struct tuned){.file = option_text(a, "--log", NULL)};
  if (!out->file) return true;
  for (int i = 0; i < 2; i++)
    if (option_given(a, others[i]))
      return report_error("--log and %s cannot both be given", others[i]), false;
  out->compiler = canvas_compiler_name(a->ctx);
  if (!out->compiler) return report_error("%s", canvas_context_message(a->ctx)), false;
  out->place = (canvas_log_place){.machine = machine,
                                  .compiler = out->compiler,
                                  .threads = (int)threads,
                                  .winograd = (int)winograd};
  out->log = log_of_file(a, out->file);
  return out->log != NULL;
}

void tuned_close(struct tuned *t) {
  canvas_log_free(t->log);
  canvas_string_free(t->compiler);
  *t = (struct tuned){0};
}

canvas_bound *tuned_best(struct arguments *a, const struct tuned *t,
                         const canvas_program *program) {
  canvas_bound *bound = NULL;
  canvas_log_taken taken;
  if (!t->log) return NULL;
  canvas_status status = canvas_log_take(a->ctx, t->log, program, &t->place, &bound, &taken);
  if (status == CANVAS_OK && taken.refused)
    report_note("%.500s: %d faster record%s cannot be used: %.400s", t->file, taken.refused,
                taken.refused > 1 ? "s" : "", taken.why);
  if (status == CANVAS_OK && canvas_log_record(t->log, taken.record).screened)
    report_note("%.500s: the search ended before its finals; its best trial is used", t->file);
  if (status == CANVAS_OK) return bound;
  report_note("%.500s: %s; the default schedule is used", t->file, canvas_context_message(a->ctx));
  return NULL;
}
