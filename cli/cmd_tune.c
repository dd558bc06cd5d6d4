/* canvas tune: search for the fastest schedule of a kernel, program, operator or network. */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"

struct tune {
  canvas_machine *machine;
  canvas_tune_options options;
  struct text sketch;
  int64_t points;
  bool line;          /* progress stands on a line without its end */
  bool told;          /* damaged lines of the log were reported */
  char *const *names; /* of programs that share a budget; or NULL */
};

/* ---- Ctrl-C ---------------------------------------------------------------------------------- */

static volatile sig_atomic_t interrupted;

/* The next one ends the process. */
static void interrupt(int signal) {
  (void)signal;
  interrupted = 1;
}

static const int signals[] = {SIGINT, SIGTERM};
enum { SIGNALS = sizeof signals / sizeof signals[0] };

/* Not where they are ignored, as of a job in the background. `before`: what they did. */
static void heed_signals(struct sigaction before[SIGNALS]) {
  struct sigaction heed = {.sa_handler = interrupt, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
  sigemptyset(&heed.sa_mask);
  interrupted = 0;
  for (int i = 0; i < SIGNALS; i++)
    if (!sigaction(signals[i], &heed, &before[i]) && before[i].sa_handler == SIG_IGN)
      sigaction(signals[i], &before[i], NULL);
}

static void leave_signals(const struct sigaction before[SIGNALS]) {
  for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], &before[i], NULL);
}

static bool was_interrupted(void) {
  return interrupted;
}

static bool is_interrupted(void *data) {
  (void)data;
  return interrupted;
}

/* ---- the budget ------------------------------------------------------------------------------ */

static const struct unit {
  const char *name;
  double seconds;
} units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"min", 60}, {"m", 60}, {"h", 3600}};

/* "10s", "500ms", "2min", "90". */
static bool read_time(struct arguments *a, double *out) {
  const char *text = option_text(a, "--time", NULL);
  char *end;
  *out = 0;
  if (!text) return true;
  double number = strtod(text, &end);
  for (size_t i = 0; end > text && i < sizeof units / sizeof units[0]; i++)
    if (!strcmp(end, units[i].name)) *out = number * units[i].seconds;
  if (isfinite(*out) && *out > 0 && *out <= 1e7) return true;
  report_error("--time takes a time above 0 such as 10s, 500ms or 2min, not '%.60s'", text);
  return false;
}

/* ---- progress -------------------------------------------------------------------------------- */

static void print_seconds(double seconds, FILE *to) {
  const struct time_unit *unit = time_unit_of(seconds);
  fprintf(to, "%.4g %s", seconds / unit->seconds, unit->name);
}

static void print_failures(const int *failures, FILE *to) {
  for (int i = 1; i < CANVAS_FAILURES; i++)
    if (failures[i]) fprintf(to, ", %d %s", failures[i], canvas_failure_name((canvas_failure)i));
}

/* On a terminal one line that changes, else a line for each batch. */
static bool show_progress(const canvas_tune_progress *p, void *data) {
  struct tune *t = data;
  bool terminal = isatty(STDERR_FILENO);
  if (terminal) fputs("\r\033[K", stderr);
  if (t->names) fprintf(stderr, "%.100s: ", t->names[p->program]);
  fprintf(stderr, "%d of %d schedules, %.1f s", p->trials, p->budget, p->seconds);
  if (p->best > 0) {
    fputs(", best ", stderr);
    print_seconds(p->best, stderr);
  }
  print_failures(p->failures, stderr);
  if (!terminal) fputc('\n', stderr);
  fflush(stderr);
  t->line = terminal;
  return true;
}

static void end_progress(struct tune *t) {
  if (t->line) fputs("\r\033[K", stderr);
  t->line = false;
}

/* ---- what it came to ------------------------------------------------------------------------- */

struct outcome {
  const char *name;
  const canvas_tuned *tuned;
  const canvas_bound *bound;
  int64_t flops;
};

static void print_time(const struct outcome *o) {
  const canvas_verdict *v = &o->tuned->verdict;
  printf("%s: ", o->name);
  if (!v->repeats && !(o->tuned->predicted > 0)) {
    printf("not timed");
    return;
  }
  print_seconds(v->repeats ? v->median : o->tuned->predicted, stdout);
  if (!v->repeats) {
    printf(" predicted");
    return;
  }
  if (o->flops) printf(", %.4g GFLOP/s", 1e-9 * (double)o->flops / v->median);
  if (v->cold > 0) {
    printf(", ");
    print_seconds(v->cold, stdout);
    printf(" with cold caches");
  }
  bool all = o->tuned->tried == o->tuned->images || o->tuned->whole;
  if (o->tuned->before > 0)
    printf(", %s%.2f times as fast as the default schedule", all ? "" : "an estimated ",
           o->tuned->before / o->tuned->after);
}

static void print_text(const struct outcome *o) {
  const canvas_tuned *t = o->tuned;
  if (t->verdict.failure) {
    printf("%s: %s: %s\n", o->name, canvas_failure_name(t->verdict.failure), t->verdict.message);
    return;
  }
  print_time(o);
  printf(" (%s; %d of %" PRId64 " schedules measured in %.1f s", t->rule, t->trials, t->points,
         t->seconds);
  print_failures(t->failures, stdout);
  if (t->tried < t->images) {
    printf("; for %" PRId64 " of %" PRId64 " images", t->tried, t->images);
    if (t->whole) printf(", the best %d for all", t->whole);
  }
  if (interrupted && t->before <= 0) printf("; not compared with the default");
  printf(")\n");
}

static void print_failures_json(const int *failures) {
  printf("{");
  for (int i = 0; i < CANVAS_FAILURES; i++)
    printf("%s\"%s\": %d", i ? ", " : "", canvas_failure_name((canvas_failure)i), failures[i]);
  printf("}");
}

static void print_json(const struct outcome *o) {
  const canvas_tuned *t = o->tuned;
  const canvas_verdict *v = &t->verdict;
  char *schedule = o->bound ? canvas_schedule_print(canvas_bound_schedule(o->bound)) : NULL;
  char *program = o->bound ? canvas_bound_program_print(o->bound) : NULL;
  printf("{\"name\": ");
  put_json_string(o->name);
  printf(", \"verdict\": \"%s\", \"message\": ", canvas_failure_name(v->failure));
  put_json_string(v->message);
  printf(", \"rule\": ");
  put_json_string(t->rule);
  if (t->predicted > 0) printf(", \"predicted\": %.6g", t->predicted);
  if (v->repeats)
    printf(", \"median\": %.6g, \"lower\": %.6g, \"upper\": %.6g, \"cold\": %.6g", v->median,
           v->lower, v->upper, v->cold);
  if (t->before > 0) printf(", \"before\": %.6g, \"after\": %.6g", t->before, t->after);
  printf(", \"flops\": %" PRId64 ", \"sketches\": %d, \"points\": %" PRId64 ", \"images\": %" PRId64
         ", \"tried\": %" PRId64 ", \"whole\": %d, \"trials\": %d, \"failures\": ",
         o->flops, t->sketches, t->points, t->images, t->tried, t->whole, t->trials);
  print_failures_json(t->failures);
  printf(", \"seconds\": %.3f, \"program\": ", t->seconds);
  put_json_string(program ? program : "");
  printf(", \"schedule\": ");
  put_json_string(schedule ? schedule : "");
  printf("}\n");
  canvas_string_free(program);
  canvas_string_free(schedule);
}

/* Damaged lines of the log are reported once. */
static void tell_damaged(struct tune *t, const canvas_tuned *tuned) {
  if (tuned->damaged && !t->told)
    report_note("%.500s: %" PRId64 " damaged %s left out, 'canvas log show' prints the reasons",
                t->options.log, tuned->damaged, tuned->damaged == 1 ? "line is" : "lines are");
  t->told |= tuned->damaged > 0;
}

/* It would seem to have been searched for. */
static bool is_untried(const struct tune *t, const canvas_tuned *tuned) {
  const char *method = t->options.method;
  if (tuned->trials || interrupted || (method && !strcmp(method, "oneshot"))) return false;
  return !tuned->verdict.failure;
}

static void tell_untried(const struct tune *t, const struct outcome *o) {
  if (is_untried(t, o->tuned))
    report_note("%.100s: no trial finished in time, the default schedule is used", o->name);
}

static void tell_all_untried(const struct tune *t, const canvas_tuned *tuned, int count) {
  int untried = 0;
  for (int i = 0; i < count; i++) untried += is_untried(t, &tuned[i]);
  if (untried)
    report_note("%d of %d programs had no trials within the budget and use their default schedules",
                untried, count);
}

static int print_outcome(struct arguments *a, const struct outcome *o) {
  if (option_given(a, "--json"))
    print_json(o);
  else
    print_text(o);
  fflush(stdout);
  if (interrupted) return EXIT_INTERRUPTED;
  return o->tuned->verdict.failure ? EXIT_NONE : EXIT_OK;
}

/* ---- the subcommand -------------------------------------------------------------------------- */

static int print_space(struct arguments *a, const struct program_item *item, struct tune *t) {
  char *text;
  canvas_status status =
      canvas_tune_space(a->ctx, item->program, t->machine, &t->options, (int)t->points, &text);
  if (status != CANVAS_OK) return report_status(a, item->name, status), EXIT_BAD;
  put_text(text);
  return EXIT_OK;
}

static int tune_program(struct arguments *a, const struct program_item *item, void *data) {
  struct tune *t = data;
  canvas_tuned tuned;
  canvas_bound *bound;
  canvas_count count = {0};
  if (option_given(a, "--space")) return print_space(a, item, t);
  canvas_status status =
      canvas_tune(a->ctx, item->program, t->machine, &t->options, &bound, &tuned);
  end_progress(t);
  if (status != CANVAS_OK) {
    report_status(a, item->name, status);
    if (interrupted) return EXIT_INTERRUPTED;
    return status == CANVAS_NONE ? EXIT_NONE : EXIT_BAD;
  }
  if (canvas_program_count(a->ctx, item->program, -1, &count) != CANVAS_OK) count.flops = 0;
  tell_damaged(t, &tuned);
  const struct outcome out = {item->name, &tuned, bound, count.flops};
  tell_untried(t, &out);
  int answer = print_outcome(a, &out);
  canvas_bound_free(bound);
  return answer;
}

/* ---- several under one budget ---------------------------------------------------------------- */

enum { TOGETHER = 1024 };

/* Programs that differ, each with its first name and how often it came. */
struct together {
  canvas_program *program[TOGETHER];
  char *text[TOGETHER], *name[TOGETHER];
  double weight[TOGETHER];
  canvas_bound *bound[TOGETHER];
  canvas_tuned tuned[TOGETHER];
  int count;
};

static int keep_program(struct arguments *a, const struct program_item *item, void *data) {
  struct together *t = data;
  char *text = canvas_program_print(item->program);
  int i = 0;
  while (i < t->count && strcmp(t->text[i], text)) i++;
  if (i < t->count || t->count == TOGETHER) {
    canvas_string_free(text);
    if (i == TOGETHER) return report_error("--together takes at most %d programs", TOGETHER);
    t->weight[i] += item->calls;
    return EXIT_OK;
  }
  canvas_status status = canvas_program_parse(a->ctx, text, strlen(text), &t->program[i]);
  t->text[i] = text;
  t->name[i] = strdup(item->name);
  t->weight[i] = item->calls;
  t->count++;
  if (status != CANVAS_OK) report_status(a, item->name, status);
  return status == CANVAS_OK ? EXIT_OK : EXIT_BAD;
}

static int tune_kept(struct arguments *a, struct tune *t, struct together *all) {
  int answer = EXIT_OK;
  t->names = all->name;
  canvas_status status =
      canvas_tune_many(a->ctx, (const canvas_program *const *)all->program, all->weight, all->count,
                       t->machine, &t->options, all->bound, all->tuned);
  end_progress(t);
  if (status != CANVAS_OK) return report_error("%s", canvas_context_message(a->ctx));
  for (int i = 0; i < all->count; i++) {
    canvas_count count = {0};
    if (canvas_program_count(a->ctx, all->program[i], -1, &count) != CANVAS_OK) count.flops = 0;
    const struct outcome out = {all->name[i], &all->tuned[i], all->bound[i], count.flops};
    int one = print_outcome(a, &out);
    if (one != EXIT_OK) answer = one;
    tell_damaged(t, &all->tuned[i]);
  }
  tell_all_untried(t, all->tuned, all->count);
  return answer;
}

static int tune_together(struct arguments *a, struct tune *t) {
  struct together *all = calloc(1, sizeof *all);
  if (!all) return report_error("out of memory for the programs");
  int answer = programs_each(a, a->operand[0], keep_program, all);
  if (answer == EXIT_OK) answer = tune_kept(a, t, all);
  for (int i = 0; i < all->count; i++) {
    canvas_program_free(all->program[i]);
    canvas_bound_free(all->bound[i]);
    canvas_string_free(all->text[i]);
    free(all->name[i]);
  }
  free(all);
  return answer;
}

/* The operands as an operator and its arguments, where they are no file. */
static int tune_operator(struct arguments *a, struct tune *t) {
  struct program_item item = {.name = a->operand[0]};
  char *text = operands_join(a, 1);
  if (!text) return report_error("out of memory for the arguments");
  canvas_status status =
      canvas_operator_program(a->ctx, a->operand[0], text, strlen(text), &item.program);
  free(text);
  if (status != CANVAS_OK) return report_error("%s", canvas_context_message(a->ctx));
  int answer = tune_program(a, &item, t);
  canvas_program_free(item.program);
  return answer;
}

/* An operator whose arguments were forgotten: no file has its name. */
static bool is_operator(struct arguments *a) {
  char *text;
  if (access(a->operand[0], F_OK) == 0) return false;
  if (canvas_operator_describe(a->ctx, a->operand[0], &text) != CANVAS_OK) return false;
  canvas_string_free(text);
  return true;
}

static int tune_file(struct arguments *a, struct tune *t) {
  const canvas_tune_options *o = &t->options;
  const struct tuning how = {t->machine, o->log, o->seconds, o->threads, was_interrupted};
  int answer = option_given(a, "--together") ? tune_together(a, t)
                                             : programs_each(a, a->operand[0], tune_program, t);
  if (answer == EXIT_BAD || !o->log || option_given(a, "--space")) return answer;
  /* After Ctrl-C it only reports that the network was not timed. */
  int network = network_finals(a, &how);
  return network == EXIT_OK ? answer : network;
}

static int tune_all(struct arguments *a, struct tune *t) {
  if (a->operand[1] || is_operator(a)) return tune_operator(a, t);
  return tune_file(a, t);
}

static bool read_options(struct arguments *a, struct tune *t) {
  int64_t seed, trials, threads;
  canvas_tune_options *o = &t->options;
  if (!option_whole(a, "--seed", 1, 0, INT64_MAX, &seed) ||
      !option_whole(a, "--trials", 0, 1, 10000000, &trials) ||
      !option_whole(a, "--threads", 1, 1, 1024, &threads) ||
      !option_whole(a, "--space", 0, 0, 1000000, &t->points) || !read_time(a, &o->seconds))
    return false;
  o->method = option_text(a, "--method", NULL);
  o->seed = (uint64_t)seed;
  o->trials = (int)trials;
  o->threads = (int)threads;
  o->winograd = option_given(a, "--winograd");
  o->log = option_text(a, "--log", NULL);
  o->progress = show_progress;
  o->data = t;
  const char *sketch = option_text(a, "--sketch", NULL);
  if (sketch && !text_read(sketch, &t->sketch)) return false;
  o->sketch = t->sketch.bytes;
  return true;
}

static int run(struct arguments *a) {
  struct tune t = {0};
  struct sigaction before[SIGNALS];
  int answer = EXIT_BAD;
  heed_signals(before);
  canvas_stop_when(is_interrupted, NULL);
  if (read_options(a, &t)) t.machine = machine_chosen(a);
  if (t.machine) answer = tune_all(a, &t);
  canvas_stop_when(NULL, NULL);
  leave_signals(before);
  canvas_machine_free(t.machine);
  text_free(&t.sketch);
  return answer;
}

const struct command command_tune = {
    .subcommand = "tune",
    .operands = "FILE | OPERATOR ARGUMENT=VALUE...",
    .least = 1,
    .most = OPERANDS_MAX,
    .summary = "search for the fastest schedule within a budget",
    .details =
        "FILE is a kernel, a pack, a program or a network, whose programs are tuned one by one.\n"
        "An operator and its arguments can be given instead, as to canvas operator. The search\n"
        "method proposes schedules, which are compiled, compared with the interpreter and timed\n"
        "on this machine. Trials are compiled by clang -O1 if it is installed; at the end the\n"
        "best ones are compiled as canvas run does and timed again beside the default schedule.\n"
        "With --log, all trials are stored: canvas run, compile and log use the best one, an\n"
        "interrupted search continues, and a search for another shape starts from the stored\n"
        "ones. Schedules of a network are also timed inside the network; where the default is\n"
        "faster, the log records it. See docs/tune.md for the methods.\n",
    .example = "canvas tune gemm m=64 n=64 k=64 --trials 8 --log tuned.jsonl 2>progress.txt",
    .options =
        {{"--at", "SIZES",
          "sizes of a kernel without bind lines, such as C=64,H=56,W=56,G=4,x0=64"},
         {"--target", "NAME", "only this target of a pack"},
         {"-N", "BATCH", "batch size (default 1)"},
         {"--method", "NAME",
          "quick, oneshot, random, exhaustive, ga, evolution, droplet, searching or q "
          "(default quick)"},
         {"--trials", "COUNT", "schedules to measure (default: that of the method; quick: 64)"},
         {"--time", "TIME",
          "limit for each program, such as 10s, 500ms or 2min, of wall-clock or "
          "processor time, whichever is longer (default: none)"},
         {"--together", NULL,
          "share trials and time among all programs of FILE, most predicted time first"},
         {"--seed", "S", "seed of the search (default 1)"},
         {"--log", "FILE", "store all trials in this file as JSON lines, and continue from it"},
         {"--threads", "T",
          "threads of parallel loops; with several, times are wall-clock (default 1)"},
         {"--machine", "FILE", "machine that schedules are for (default: here)"},
         {"--sketch", "FILE", "a schedule with holes to fill, instead of the tuner's own sketches"},
         {"--winograd", NULL, "allow Winograd convolutions, which round more"},
         {"--space", "POINTS", "print the sketches, and POINTS points of each"},
         {"--json", NULL, "one JSON object per program and line, and one for a network"}},
    .run = run,
};
