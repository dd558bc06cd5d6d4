/* canvas log: show, query, merge and replay the records of tuning logs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command.h"

/* ---- numbers for people ---------------------------------------------------------------------- */

enum { CELL = 200 };

static void put_seconds(char cell[CELL], double seconds) {
  const struct time_unit *unit = time_unit_of(seconds);
  snprintf(cell, CELL, "%s %s", short_number(seconds / unit->seconds).text, unit->name);
}

/* "2026-11-22 16:30", in UTC, so that it is the same everywhere. */
static void put_time(char cell[CELL], int64_t seconds) {
  time_t when = (time_t)seconds;
  struct tm parts;
  if (!gmtime_r(&when, &parts) || !strftime(cell, CELL, "%Y-%m-%d %H:%M", &parts))
    snprintf(cell, CELL, "%" PRId64, seconds);
}

/* "3 compile, 1 wrong", "-" without any. */
static void put_failures(char cell[CELL], const canvas_log_task *t) {
  size_t used = 0;
  snprintf(cell, CELL, "-");
  for (int i = CANVAS_FAILED_NOT + 1; i <= CANVAS_FAILED_RUN; i++)
    if (t->failed[i] && used < CELL)
      used += (size_t)snprintf(cell + used, CELL - used, "%s%d %s", used ? ", " : "", t->failed[i],
                               canvas_failure_name((canvas_failure)i));
}

/* The name that stands in a machine's text. */
static void put_machine(char cell[CELL], const char *machine) {
  static const char word[] = "\nmachine ";
  const char *line = strstr(machine, word);
  const char *name = line ? line + sizeof word - 1 : "";
  snprintf(cell, CELL, "%.*s", (int)strcspn(name, "\n"), name);
}

/* Text of a file must not reach a terminal unescaped. */
static void clean(char *text) {
  for (char *p = text; *p; p++) {
    unsigned char c = (unsigned char)*p;
    if (c < 0x20 || c == 0x7f) *p = '?';
  }
}

/* ---- show ------------------------------------------------------------------------------------ */

enum { TASK, NAME, THREADS, TRIALS, FAILED, BEST, BY, WHEN, WHERE, COLUMNS };
typedef char row[COLUMNS][CELL];

static void fill_best(row out, const canvas_record *r) {
  char machine[CELL], version[40] = "";
  put_machine(machine, r->machine);
  if (strcmp(r->version, canvas_version()))
    snprintf(version, sizeof version, ", canvas %.20s", r->version);
  put_seconds(out[BEST], r->median);
  snprintf(out[BY], CELL, "%.40s", r->method);
  put_time(out[WHEN], r->time);
  snprintf(out[WHERE], CELL, "%.40s, %.40s, %.70s%s", machine, r->processor, r->compiler, version);
}

static void fill_row(row out, const canvas_log *log, const canvas_log_task *t) {
  snprintf(out[TASK], CELL, "%s", t->task);
  snprintf(out[NAME], CELL, "%s", t->name);
  snprintf(out[THREADS], CELL, "%d", t->threads);
  snprintf(out[TRIALS], CELL, "%d", t->trials);
  put_failures(out[FAILED], t);
  for (int i = BEST; i < COLUMNS; i++) snprintf(out[i], CELL, "-");
  put_time(out[WHEN], t->last);
  if (t->best >= 0) {
    const canvas_record r = canvas_log_record(log, t->best);
    fill_best(out, &r);
  }
  for (int i = 0; i < COLUMNS; i++) clean(out[i]);
}

static void put_rows(row *rows, int count) {
  int width[COLUMNS] = {0};
  for (int i = 0; i < count; i++)
    for (int k = 0; k < COLUMNS; k++) {
      int length = (int)strlen(rows[i][k]);
      if (length > width[k]) width[k] = length;
    }
  for (int i = 0; i < count; i++) {
    for (int k = 0; k < WHERE; k++) {
      bool right = k == THREADS || k == TRIALS || k == BEST;
      printf("%*s  ", right ? width[k] : -width[k], rows[i][k]);
    }
    printf("%s\n", rows[i][WHERE]);
  }
}

static int show_rows(const canvas_log *log, const canvas_log_task *tasks, int count) {
  static const char *const heads[COLUMNS] = {"task", "program", "threads", "trials", "failed",
                                             "best", "by",      "when",    "where"};
  row *rows = malloc(((size_t)count + 1) * sizeof *rows);
  if (!rows) return report_error("out of memory for %d rows", count);
  for (int k = 0; k < COLUMNS; k++) snprintf(rows[0][k], CELL, "%s", heads[k]);
  for (int i = 0; i < count; i++) fill_row(rows[i + 1], log, &tasks[i]);
  put_rows(rows, count + 1);
  free(rows);
  return EXIT_OK;
}

static void put_member(const char *key, const char *text) {
  printf(", \"%s\": ", key);
  put_json_string(text);
}

static void show_json(const canvas_log *log, const canvas_log_task *t) {
  printf("{\"task\": \"%s\"", t->task);
  put_member("program", t->name);
  printf(", \"threads\": %d, \"trials\": %d, \"failed\": {", t->threads, t->trials);
  const char *between = "";
  for (int i = CANVAS_FAILED_NOT + 1; i <= CANVAS_FAILED_RUN; i++)
    if (t->failed[i]) {
      printf("%s\"%s\": %d", between, canvas_failure_name((canvas_failure)i), t->failed[i]);
      between = ", ";
    }
  printf("}, \"screened\": %d, \"refused\": %d, \"first\": %" PRId64 ", \"last\": %" PRId64
         ", \"best\": ",
         t->screened, t->refused, t->first, t->last);
  if (t->best < 0) {
    printf("null}\n");
    return;
  }
  const canvas_record r = canvas_log_record(log, t->best);
  printf("%.6g, \"time\": %" PRId64, r.median, r.time);
  put_member("rule", r.rule);
  put_member("method", r.method);
  put_member("processor", r.processor);
  put_member("compiler", r.compiler);
  put_member("version", r.version);
  printf("}\n");
}

static int show(struct arguments *a, const canvas_log *log) {
  static const canvas_log_place anywhere = {.anywhere = true, .winograd = 4};
  int count, answer = EXIT_OK;
  canvas_log_task *tasks = canvas_log_tasks(log, &anywhere, &count);
  note_refused(a->operand[1], tasks, count);
  if (option_given(a, "--json"))
    for (int i = 0; i < count; i++) show_json(log, &tasks[i]);
  else if (count)
    answer = show_rows(log, tasks, count);
  canvas_log_tasks_free(tasks);
  if (count) return answer;
  report_error("%.500s: the log has no records", a->operand[1]);
  return EXIT_NONE;
}

/* ---- where records have to be from ------------------------------------------------------------ */

struct place {
  canvas_log_place where;
  canvas_machine *machine;
  char *compiler;
};

static bool place_open(struct arguments *a, struct place *out) {
  int64_t threads;
  *out = (struct place){0};
  if (!option_whole(a, "--threads", 0, 1, 1024, &threads)) return false;
  out->where = (canvas_log_place){
      .anywhere = option_given(a, "--any"), .threads = (int)threads, .winograd = 4};
  if (out->where.anywhere && option_given(a, "--machine"))
    return report_error("--any and --machine cannot both be given"), false;
  if (out->where.anywhere) return true;
  out->machine = machine_chosen(a);
  if (!out->machine) return false;
  out->compiler = canvas_compiler_name(a->ctx);
  if (!out->compiler) return report_error("%s", canvas_context_message(a->ctx)), false;
  out->where.machine = out->machine;
  out->where.compiler = out->compiler;
  return true;
}

static void place_close(struct place *p) {
  canvas_machine_free(p->machine);
  canvas_string_free(p->compiler);
}

/* ---- best ------------------------------------------------------------------------------------ */

static void put_best(struct arguments *a, const canvas_log *log, const canvas_log_task *t) {
  const canvas_record r = canvas_log_record(log, t->best);
  const struct time_unit *unit = time_unit_of(r.median);
  char by[CELL], cold[CELL];
  if (option_given(a, "--json")) {
    put_text(canvas_log_line(log, t->best));
    return;
  }
  snprintf(by, sizeof by, "'%.80s' by %.40s", r.rule, r.method);
  clean(by);
  printf("%s %s: %s %s, ", t->task, t->name, short_number(r.median / unit->seconds).text,
         unit->name);
  if (r.threads > 1) printf("wall-clock of %d threads, ", r.threads);
  printf("median of %d, quartiles %s and %s %s", r.repeats,
         short_number(r.lower / unit->seconds).text, short_number(r.upper / unit->seconds).text,
         unit->name);
  if (r.cold > 0) {
    put_seconds(cold, r.cold);
    printf(", with cold caches %s", cold);
  }
  if (r.network > 0) {
    printf(", as a call of a network; %s\n", by);
    return;
  }
  printf("; %s, seed %" PRIu64 ", trial %d%s\n", by, r.seed, r.trial,
         r.screened ? ", of a search that ended before its finals" : "");
}

/* Of the program of a file, or of all where there is none. */
static int best_of_program(struct arguments *a, const canvas_log *log, const struct place *p) {
  canvas_program *program = program_read(a, a->operand[2]);
  if (!program) return EXIT_BAD;
  int best, count;
  canvas_status status = canvas_log_best(a->ctx, log, program, &p->where, &best);
  canvas_program_free(program);
  if (status != CANVAS_OK) return report_status(a, a->operand[1], status);
  canvas_log_task *tasks = canvas_log_tasks(log, &p->where, &count);
  for (int i = 0; i < count; i++)
    if (tasks[i].best == best) put_best(a, log, &tasks[i]);
  canvas_log_tasks_free(tasks);
  return EXIT_OK;
}

/* Whether some record, wherever it is from, could be the best. */
static bool has_best(const canvas_log *log) {
  static const canvas_log_place anywhere = {.anywhere = true, .winograd = 4};
  int count;
  bool found = false;
  canvas_log_task *tasks = canvas_log_tasks(log, &anywhere, &count);
  for (int i = 0; i < count; i++) found |= tasks[i].best >= 0;
  canvas_log_tasks_free(tasks);
  return found;
}

/* Says of the first record that would be the best why it cannot be used; false: there is none. */
static bool report_refused(struct arguments *a, const canvas_log *log, const struct place *p) {
  int count, i = 0;
  canvas_log_task *tasks = canvas_log_tasks(log, &p->where, &count);
  while (i < count && !tasks[i].refused) i++;
  if (i < count)
    report_error("%.500s: a record of '%.100s' cannot be used: %s", a->operand[1], tasks[i].name,
                 tasks[i].why);
  bool found = i < count;
  canvas_log_tasks_free(tasks);
  return found;
}

static int report_none(struct arguments *a, const canvas_log *log, const struct place *p) {
  if (report_refused(a, log, p)) return EXIT_NONE;
  report_error(
      "%.500s: %s", a->operand[1],
      !canvas_log_count(log) ? "the log has no records"
      : p->where.anywhere || !has_best(log)
          ? "no record is of a correct candidate that was timed in full, as a search does at "
            "its end: run the same 'canvas tune' again"
          : "no record is of this machine, compiler and version, --any uses those of "
            "others");
  return EXIT_NONE;
}

static int best_of_all(struct arguments *a, const canvas_log *log, const struct place *p) {
  int count, found = 0;
  canvas_log_task *tasks = canvas_log_tasks(log, &p->where, &count);
  for (int i = 0; i < count; i++)
    if (tasks[i].best >= 0) {
      put_best(a, log, &tasks[i]);
      found++;
    }
  canvas_log_tasks_free(tasks);
  return found ? EXIT_OK : report_none(a, log, p);
}

static int best(struct arguments *a, const canvas_log *log) {
  struct place p;
  int answer = EXIT_BAD;
  if (place_open(a, &p))
    answer = a->operand[2] ? best_of_program(a, log, &p) : best_of_all(a, log, &p);
  place_close(&p);
  return answer;
}

/* ---- replay ---------------------------------------------------------------------------------- */

static int put_code(struct arguments *a, const canvas_log *log, const struct place *p, int record) {
  const canvas_emit_options options = {.prepare = true}; /* those of canvas compile */
  canvas_bound *bound;
  char *text;
  canvas_status status = canvas_log_bind(a->ctx, log, record, &p->where, &bound);
  if (status != CANVAS_OK) return report_status(a, a->operand[1], status);
  status = canvas_bound_emit(a->ctx, bound, &options, &text);
  canvas_bound_free(bound);
  if (status != CANVAS_OK) return report_status(a, a->operand[1], status);
  put_text(text);
  return EXIT_OK;
}

/* Leaves of `tasks` those that --task names by their first digits; false after an error message where they are of
 * several programs, or there are none. */
static bool keep_named(struct arguments *a, canvas_log_task *tasks, int *count) {
  const char *digits = option_text(a, "--task", "");
  int kept = 0;
  for (int i = 0; i < *count; i++)
    if (!strncmp(tasks[i].task, digits, strlen(digits))) tasks[kept++] = tasks[i];
  *count = kept;
  for (int i = 1; i < kept; i++)
    if (strcmp(tasks[i].task, tasks[0].task) != 0)
      return report_error("%.500s: there are several tasks, choose one with --task, as %s or %s",
                          a->operand[1], tasks[0].task, tasks[i].task),
             false;
  if (!kept && *digits)
    return report_error("%.500s: no task begins with '%.20s'", a->operand[1], digits), false;
  return true;
}

/* The fastest of all numbers of threads; -1: none. */
static int fastest(const canvas_log *log, const canvas_log_task *tasks, int count) {
  int best = -1;
  for (int i = 0; i < count; i++) {
    int one = tasks[i].best;
    bool better = best < 0 || (one >= 0 && canvas_log_record(log, one).median <
                                               canvas_log_record(log, best).median);
    if (better) best = one;
  }
  return best;
}

static int replay_from(struct arguments *a, const canvas_log *log, const struct place *p) {
  int count, answer = EXIT_BAD;
  canvas_log_task *tasks = canvas_log_tasks(log, &p->where, &count);
  if (keep_named(a, tasks, &count)) {
    int record = fastest(log, tasks, count);
    answer = record >= 0 ? put_code(a, log, p, record) : report_none(a, log, p);
  }
  canvas_log_tasks_free(tasks);
  return answer;
}

static int replay(struct arguments *a, const canvas_log *log) {
  struct place p;
  int answer = place_open(a, &p) ? replay_from(a, log, &p) : EXIT_BAD;
  place_close(&p);
  return answer;
}

/* ---- merge ----------------------------------------------------------------------------------- */

static int put_merged(const canvas_log *const *logs, int count) {
  canvas_log *all = canvas_log_merge(logs, count);
  int records = canvas_log_count(all);
  for (int i = 0; i < records && !ferror(stdout); i++) put_text(canvas_log_line(all, i));
  canvas_log_free(all);
  if (records) return EXIT_OK;
  report_error("the logs have no records");
  return EXIT_NONE;
}

static int merge(struct arguments *a) {
  const canvas_log *logs[OPERANDS_MAX];
  canvas_log *read[OPERANDS_MAX];
  int count = 0, answer = EXIT_OK;
  for (int i = 1; answer == EXIT_OK && i < OPERANDS_MAX && a->operand[i]; i++) {
    logs[count] = read[count] = log_of_file(a, a->operand[i]);
    if (read[count])
      count++;
    else
      answer = EXIT_BAD;
  }
  if (answer == EXIT_OK) answer = put_merged(logs, count);
  while (count) canvas_log_free(read[--count]);
  return answer;
}

/* ---- the subcommand -------------------------------------------------------------------------- */

static const struct action {
  const char *name;
  int most; /* operands behind it; merge takes any number */
  int (*run)(struct arguments *a, const canvas_log *log);
  const char *flags[5];
} actions[] = {{"show", 1, show, {"--json"}},
               {"best", 2, best, {"--json", "--any", "--machine", "--threads"}},
               {"merge", OPERANDS_MAX, NULL, {0}},
               {"replay", 1, replay, {"--task", "--any", "--machine", "--threads"}}};
enum { ACTIONS = sizeof actions / sizeof *actions };

static const struct action *find_action(const char *name) {
  const char *names[ACTIONS];
  for (int i = 0; i < ACTIONS; i++) {
    if (!strcmp(actions[i].name, name)) return &actions[i];
    names[i] = actions[i].name;
  }
  const char *near = nearest(name, names, ACTIONS);
  if (near)
    report_error("'log' has no action '%.60s', did you mean '%s'?", name, near);
  else
    report_error("'log' has no action '%.60s', it has show, best, merge and replay", name);
  return NULL;
}

/* Every flag that is given is one of the action's. */
static bool check_flags(struct arguments *a, const struct action *action) {
  for (int i = 0; i < OPTIONS_MAX && a->command->options[i].flag; i++) {
    const char *flag = a->command->options[i].flag;
    bool known = !option_given(a, flag);
    for (int k = 0; action->flags[k]; k++) known |= !strcmp(action->flags[k], flag);
    if (!known) return report_error("'log %s' takes no %s", action->name, flag), false;
  }
  return true;
}

static int run(struct arguments *a) {
  const struct action *action = find_action(a->operand[0]);
  if (!action || !check_flags(a, action)) return EXIT_BAD;
  if (action->most + 1 < OPERANDS_MAX && a->operand[action->most + 1])
    return report_error("'log %s' takes no '%.200s' after its file", action->name,
                        a->operand[action->most + 1]);
  if (!action->run) return merge(a);
  canvas_log *log = log_of_file(a, a->operand[1]);
  if (!log) return EXIT_BAD;
  int answer = action->run(a, log);
  canvas_log_free(log);
  return answer;
}

const struct command command_log = {
    .subcommand = "log",
    .operands = "show|replay FILE | best FILE [PROGRAM] | merge FILE...",
    .least = 2,
    .most = OPERANDS_MAX,
    .summary = "show, merge and use tuning logs",
    .details =
        "FILE is a tuning log.\n"
        "    show     one line for each program and number of threads\n"
        "    best     the fastest record for this machine, of PROGRAM if it is given\n"
        "    merge    the records of all FILEs, each once\n"
        "    replay   the C of the fastest record\n"
        "Records of another machine, compiler or version are used with --any only. See\n"
        "docs/tune.md.\n",
    .example =
        "touch tuned.log\n"
        "canvas log show tuned.log 2>&1 || true",
    .options = {{"--any", NULL, "also use records of other machines, compilers and versions"},
                {"--machine", "FILE", "use records for this machine (default: here)"},
                {"--threads", "T", "use records measured with T threads (default: any)"},
                {"--task", "DIGITS", "replay: the task, by its first hex digits"},
                {"--json", NULL, "show: one JSON object per line; best: the records as JSON"}},
    .run = run,
};
