/* canvas network --run, --time and --emit: run a network as machine code, or write it as C. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "command.h"
#include "network_tensors.h"

enum { SAMPLES = 30 };

#define SAMPLE    20e-6 /* seconds that a sample takes at least */
#define ALL       1.0   /* share of all comparisons, approximately */
#define TOLERANCE 1e-4  /* of the largest element of an output */

struct job {
  struct arguments *a;
  const canvas_network *network;
  const canvas_machine *machine;
  struct tuned tuned;
  int64_t threads, seed;
  canvas_network_code *code;
  canvas_network_facts facts;
  double compiling; /* seconds */
  struct tensors inputs, weights, outputs;
};

/* ---- compared ------------------------------------------------------------------------------------- */

struct difference {
  double worst; /* of the largest element */
  int output;   /* that it is of */
  int64_t at;
  double got, wanted;
};

/* Where they differ most; not a number where one of them is none. */
static void compare(const struct tensors *t, int output, struct difference *worst) {
  double largest = 0;
  for (int64_t i = 0; i < t->as[output].elements; i++)
    if (isfinite(t->number[output][i])) largest = fmax(largest, fabs(t->number[output][i]));
  for (int64_t i = 0; i < t->as[output].elements; i++) {
    double wanted = t->number[output][i],
           got = tensor_element(&t->as[output], t->memory[output], i);
    bool same = got == wanted || (isnan(got) && isnan(wanted));
    double off = same ? 0 : fabs(got - wanted) / (largest > 0 ? largest : 1);
    if (t->as[output].dtype == CANVAS_BF16) off /= 256;
    if (off <= worst->worst) continue;
    *worst = (struct difference){isnan(off) ? INFINITY : off, output, i, got, wanted};
    if (isnan(off)) return;
  }
}

static canvas_status check(struct job *j, struct difference *worst) {
  canvas_status status =
      canvas_network_reference(j->a->ctx, j->network, (const double *const *)j->inputs.number,
                               (const double *const *)j->weights.number, j->outputs.number);
  for (int i = 0; status == CANVAS_OK && i < j->outputs.count; i++) compare(&j->outputs, i, worst);
  return status;
}

/* ---- timed ---------------------------------------------------------------------------------------- */

/* A run, or one call of it. */
static canvas_status once(struct job *j, int call) {
  const void *const *inputs = (const void *const *)j->inputs.memory;
  if (call < 0) return canvas_network_code_run(j->a->ctx, j->code, inputs, j->outputs.memory);
  return canvas_network_code_step(j->a->ctx, j->code, call, inputs, j->outputs.memory);
}

struct timing {
  double median, lower, upper;
  int repeats;
};

static double sample(struct job *j, int call, int calls) {
  double start = clock_of_calls(j->threads);
  for (int i = 0; i < calls; i++) once(j, call);
  return (clock_of_calls(j->threads) - start) / calls;
}

/* `seconds`: for all samples, about. */
static struct timing time_of(struct job *j, int call, double seconds) {
  double samples[SAMPLES];
  once(j, call);
  double first = fmax(sample(j, call, 1), 1e-8);
  int calls = (int)fmax(1, ceil(SAMPLE / first)), count = (int)fmax(5, seconds / (first * calls));
  if (count > SAMPLES) count = SAMPLES;
  for (int i = 0; i < count; i++) samples[i] = sample(j, call, calls);
  sort_numbers(samples, count);
  return (struct timing){samples[count / 2], samples[count / 4], samples[count - 1 - count / 4],
                         count};
}

/* ---- reports ---- */

static int64_t flops_of(const struct job *j) {
  int64_t flops = 0;
  for (int i = 0; i < j->facts.calls; i++) flops += canvas_network_code_call(j->code, i).flops;
  return flops;
}

static int64_t elements_of(const struct tensors *t) {
  int64_t elements = 0;
  for (int i = 0; i < t->count; i++) elements += t->as[i].elements;
  return elements;
}

static void print_run(const struct job *j, const struct difference *d, const struct timing *t) {
  const struct time_unit *unit = time_unit_of(t->median);
  printf("%s: correct (%" PRId64 " elements, worst difference %.2g of the largest), %s %s, ",
         j->facts.function, elements_of(&j->outputs), d->worst,
         short_number(t->median / unit->seconds).text, unit->name);
  if (j->threads > 1) printf("wall-clock of %" PRId64 " threads, ", j->threads);
  printf("%s GFLOP/s, median of %d, quartiles %s and %s %s\n",
         short_number(1e-9 * (double)flops_of(j) / t->median).text, t->repeats,
         short_number(t->lower / unit->seconds).text, short_number(t->upper / unit->seconds).text,
         unit->name);
  printf("%d calls, %d programs compiled and %d found in the cache in %.2g s, packed %" PRId64
         " bytes, arena %" PRId64 " bytes\n",
         j->facts.calls, j->facts.made, j->facts.found, j->compiling, j->facts.packed_bytes,
         j->facts.arena_bytes);
}

static void print_run_json(const struct job *j, const struct difference *d,
                           const struct timing *t) {
  printf("{\"name\": ");
  put_json_string(j->facts.function);
  printf(", \"elements\": %" PRId64
         ", \"worst\": %.6g, \"median\": %.6g, \"lower\": %.6g, "
         "\"upper\": %.6g, \"repeats\": %d, \"threads\": %" PRId64 ", \"flops\": %" PRId64
         ", \"calls\": %d, \"made\": %d, \"found\": %d, \"compiling\": %.6g, \"packed\": %" PRId64
         ", \"arena\": %" PRId64 "}\n",
         elements_of(&j->outputs), d->worst, t->median, t->lower, t->upper, t->repeats, j->threads,
         flops_of(j), j->facts.calls, j->facts.made, j->facts.found, j->compiling,
         j->facts.packed_bytes, j->facts.arena_bytes);
}

/* Of one call: what it is, what it takes, and what part of all calls that is. */
static void print_call(const struct job *j, int call, const struct timing *t, double all) {
  canvas_network_call c = canvas_network_code_call(j->code, call);
  printf("%-24.24s %10.2f %6.1f%% %9.2f %12" PRId64 "%s%s  %s\n", *c.program ? c.program : "(copy)",
         1e6 * t->median, 100 * t->median / all, 1e-9 * (double)c.flops / t->median, c.bytes,
         c.tuned ? "  tuned" : "", c.parallel ? "  para" : "", c.results);
}

static void print_call_json(const struct job *j, int call, const struct timing *t, double all) {
  canvas_network_call c = canvas_network_code_call(j->code, call);
  printf("%s{\"program\": ", call ? ", " : "");
  put_json_string(c.program);
  printf(", \"results\": ");
  put_json_string(c.results);
  printf(", \"seconds\": %.6g, \"share\": %.4g, \"flops\": %" PRId64 ", \"bytes\": %" PRId64
         ", \"tuned\": %s, \"parallel\": %s}",
         t->median, t->median / all, c.flops, c.bytes, c.tuned ? "true" : "false",
         c.parallel ? "true" : "false");
}

/* ---- run ------------------------------------------------------------------------------------------ */

static int run_and_check(struct job *j) {
  struct difference d = {0};
  canvas_status status = once(j, -1);
  if (status == CANVAS_OK) status = check(j, &d);
  if (status != CANVAS_OK) return report_status(j->a, j->facts.function, status);
  if (d.worst > TOLERANCE) {
    printf("%s: wrong: element %" PRId64 " of '%s' is %.9g, it has to be %.9g\n", j->facts.function,
           d.at, j->outputs.as[d.output].name, d.got, d.wanted);
    return EXIT_NONE;
  }
  struct timing t = time_of(j, -1, ALL);
  if (option_given(j->a, "--json"))
    print_run_json(j, &d, &t);
  else
    print_run(j, &d, &t);
  return EXIT_OK;
}

static int time_calls(struct job *j) {
  int count = j->facts.calls;
  bool json = option_given(j->a, "--json");
  canvas_status status = once(j, -1);
  if (status != CANVAS_OK) return report_status(j->a, j->facts.function, status);
  struct timing *t = calloc((size_t)count + 1, sizeof *t), whole = time_of(j, -1, ALL);
  double all = 0;
  if (!t) return report_error("out of memory for the times of %d calls", count);
  for (int i = 0; i < count; i++) all += (t[i] = time_of(j, i, ALL / count)).median;
  if (json)
    printf("{\"seconds\": %.6g, \"calls\": [", whole.median);
  else
    printf("%-24s %10s %7s %9s %12s  %s\n", "program", "us", "share", "GFLOP/s", "bytes",
           "results");
  for (int i = 0; i < count; i++)
    if (json)
      print_call_json(j, i, &t[i], all);
    else
      print_call(j, i, &t[i], all);
  if (json)
    printf("]}\n");
  else
    printf("a run takes %.2f us, its calls one by one %.2f us\n", 1e6 * whole.median, 1e6 * all);
  free(t);
  return EXIT_OK;
}

static bool job_numbers(struct job *j) {
  if (!tensors_new(j->network, CANVAS_INPUT, true, &j->inputs) ||
      !tensors_new(j->network, CANVAS_WEIGHT, true, &j->weights) ||
      !tensors_new(j->network, CANVAS_OUTPUT, true, &j->outputs) ||
      !tensors_fill(j->network, CANVAS_INPUT, (uint64_t)j->seed, &j->inputs) ||
      !tensors_fill(j->network, CANVAS_WEIGHT, (uint64_t)j->seed, &j->weights))
    return report_error("%s: its tensors need too much memory, use smaller sizes",
                        text_name(j->a->operand[0])),
           false;
  return true;
}

static canvas_network_options options_of(const struct job *j) {
  return (canvas_network_options){
      .machine = j->machine, .log = j->tuned.log, .threads = (int)j->threads};
}

static void note_simpler(const canvas_network_code *code, int calls) {
  for (int i = 0; i < calls; i++) {
    canvas_network_call c = canvas_network_code_call(code, i);
    if (c.simpler)
      report_note(
          "program '%.40s' uses a simpler schedule: the code of a better one does not compile",
          c.program);
  }
}

static canvas_status job_compile(struct job *j) {
  const canvas_network_options options = options_of(j);
  double start = wall_clock();
  canvas_status status = canvas_network_compile(j->a->ctx, j->network, &options, &j->code);
  if (status != CANVAS_OK) return status;
  j->compiling = wall_clock() - start;
  j->facts = canvas_network_code_describe(j->code);
  note_simpler(j->code, j->facts.calls);
  return canvas_network_code_load(j->a->ctx, j->code, (const void *const *)j->weights.memory);
}

static bool job_open(struct job *j) {
  if (!option_whole(j->a, "--threads", 1, 1, 1024, &j->threads) ||
      !option_whole(j->a, "--seed", 1, 0, INT64_MAX, &j->seed))
    return false;
  if (!tuned_open(j->a, j->machine, j->threads, 0, &j->tuned)) return false;
  tuned_note_refused(&j->tuned);
  return true;
}

static void job_close(struct job *j) {
  canvas_network_code_free(j->code);
  tensors_free(&j->inputs);
  tensors_free(&j->weights);
  tensors_free(&j->outputs);
  tuned_close(&j->tuned);
}

int compiled_network_run(struct arguments *a, const canvas_network *n,
                         const canvas_machine *machine) {
  struct job j = {.a = a, .network = n, .machine = machine};
  int answer = EXIT_BAD;
  if (job_open(&j) && job_numbers(&j)) {
    canvas_status status = job_compile(&j);
    if (status != CANVAS_OK)
      report_status(a, text_name(a->operand[0]), status);
    else
      answer = option_given(a, "--time") ? time_calls(&j) : run_and_check(&j);
  }
  job_close(&j);
  return answer;
}

/* ---- files ---------------------------------------------------------------------------------------- */

static char *joined(const char *folder, const char *name) {
  size_t size = strlen(folder) + strlen(name) + 2;
  char *path = malloc(size);
  if (path) snprintf(path, size, "%s/%s", folder, name);
  return path;
}

/* The file's path, to be freed; NULL after an error message. */
static char *path_for(const char *folder, const canvas_network_file *file, bool over) {
  char *path = joined(folder, file->name);
  struct stat s;
  if (!path) return report_error("out of memory for the name of a file"), NULL;
  if (over || stat(path, &s)) return path;
  report_error("'%.900s' exists, overwrite it with --force", path);
  free(path);
  return NULL;
}

/* All of them are looked for before the first is written. */
static int write_files(struct arguments *a, const char *folder, const canvas_network_file *files) {
  for (int written = 0; written < 2; written++)
    for (int i = 0; files[i].name; i++) {
      char *path = path_for(folder, &files[i], written || option_given(a, "--force"));
      if (!path) return EXIT_BAD;
      int answer =
          written ? write_whole(path, files[i].text, strlen(files[i].text), 0666) : EXIT_OK;
      if (written && answer == EXIT_OK) printf("%s\n", path);
      free(path);
      if (answer != EXIT_OK) return answer;
    }
  return EXIT_OK;
}

int compiled_network_emit(struct arguments *a, const canvas_network *n,
                          const canvas_machine *machine) {
  struct job j = {.a = a, .network = n, .machine = machine};
  const char *folder = option_text(a, "--emit", NULL);
  canvas_network_file *files = NULL;
  int answer = job_open(&j) ? EXIT_OK : EXIT_BAD;
  const canvas_network_options options = options_of(&j);
  if (answer == EXIT_OK && canvas_network_files(a->ctx, n, &options, &files) != CANVAS_OK)
    answer = report_status(a, text_name(a->operand[0]), CANVAS_BAD_INPUT);
  if (answer == EXIT_OK && mkdir(folder, 0777) && errno != EEXIST)
    answer = report_error("cannot make the folder '%.900s': %s", folder, strerror(errno));
  if (answer == EXIT_OK) answer = write_files(a, folder, files);
  canvas_network_files_free(files);
  job_close(&j);
  return answer;
}
