/* canvas network: check, print, optimize, evaluate, compile or plan the memory of a network. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

enum { ELEMENTS_MAX = 1 << 27, SHOWN = 4 };

/* Of the tensors of one role, as the interpreter takes them. */
struct numbers {
  int count;
  double **data;
};

static void numbers_free(struct numbers *t) {
  for (int i = 0; t->data && i < t->count; i++) free(t->data[i]);
  free(t->data);
}

static bool numbers_new(const canvas_network *n, canvas_role role, struct numbers *out) {
  out->count = canvas_network_count(n, role);
  out->data = calloc((size_t)out->count + 1, sizeof *out->data);
  for (int i = 0; out->data && i < out->count; i++) {
    int64_t elements = canvas_network_tensor(n, role, i).elements;
    if (elements <= ELEMENTS_MAX) out->data[i] = calloc((size_t)elements, sizeof(double));
    if (!out->data[i]) return false;
  }
  return out->data != NULL;
}

static void fill(const canvas_network *n, canvas_role role, uint64_t seed, struct numbers *t) {
  for (int i = 0; i < t->count; i++) canvas_network_fill(n, role, i, seed, t->data[i]);
}

static void print_output(const canvas_tensor *t, const double *value) {
  double sum = 0, size = 0;
  printf("%s: [", t->name);
  for (int i = 0; i < t->rank; i++) printf("%s%" PRId64, i ? ", " : "", t->sizes[i]);
  printf("], %" PRId64 " elements\n", t->elements);
  for (int64_t i = 0; i < t->elements; i++) {
    sum += value[i];
    size += fabs(value[i]);
    if (i < SHOWN || i >= t->elements - SHOWN) printf("  [%" PRId64 "] %.10g\n", i, value[i]);
  }
  printf("  sum %.10g\n  sum of magnitudes %.10g\n", sum, size);
}

static canvas_status evaluate(struct arguments *a, const canvas_network *n, uint64_t seed) {
  struct numbers inputs = {0}, weights = {0}, outputs = {0};
  canvas_status status = CANVAS_IO;
  if (!numbers_new(n, CANVAS_INPUT, &inputs) || !numbers_new(n, CANVAS_WEIGHT, &weights) ||
      !numbers_new(n, CANVAS_OUTPUT, &outputs)) {
    report_error("%s: its tensors need too much memory, use smaller sizes",
                 text_name(a->operand[0]));
  } else {
    fill(n, CANVAS_INPUT, seed, &inputs);
    fill(n, CANVAS_WEIGHT, seed, &weights);
    status = canvas_network_evaluate(a->ctx, n, (const double *const *)inputs.data,
                                     (const double *const *)weights.data, outputs.data);
    if (status != CANVAS_OK) report_status(a, a->operand[0], status);
    for (int i = 0; status == CANVAS_OK && i < outputs.count; i++) {
      canvas_tensor t = canvas_network_tensor(n, CANVAS_OUTPUT, i);
      print_output(&t, outputs.data[i]);
    }
  }
  numbers_free(&inputs);
  numbers_free(&weights);
  numbers_free(&outputs);
  return status;
}

static canvas_network *network_read(struct arguments *a) {
  struct text text;
  canvas_network *n = NULL;
  if (!text_read(a->operand[0], &text)) return NULL;
  canvas_status status = canvas_network_parse(a->ctx, text.bytes, text.length, &n);
  if (status != CANVAS_OK) report_status(a, text.name, status);
  text_free(&text);
  return status == CANVAS_OK ? n : NULL;
}

/* False after an error message. */
static bool optimize(struct arguments *a, canvas_network *n, const canvas_machine *machine) {
  const char *passes = option_text(a, "--pass", NULL);
  if (!passes && !option_given(a, "--optimize")) return true;
  canvas_status status = canvas_network_optimize(a->ctx, n, passes, machine);
  if (status != CANVAS_OK && passes)
    report_flag(a, "--pass", status);
  else if (status != CANVAS_OK)
    report_status(a, text_name(a->operand[0]), status);
  return status == CANVAS_OK;
}

/* Pairs that exclude each other. */
static bool exclude(struct arguments *a) {
  static const char *const pairs[][2] = {
      {"--plan", "--eval"}, {"--optimize", "--pass"}, {"--run", "--plan"},  {"--run", "--eval"},
      {"--time", "--plan"}, {"--time", "--eval"},     {"--emit", "--plan"}, {"--emit", "--eval"},
      {"--run", "--time"},  {"--emit", "--run"},      {"--emit", "--time"}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
    if (option_given(a, pairs[i][0]) && option_given(a, pairs[i][1]))
      return report_error("%s and %s exclude each other, give only one", pairs[i][0], pairs[i][1]),
             false;
  return true;
}

/* What makes no sense without others. */
static bool need(struct arguments *a) {
  static const struct {
    const char *flag, *others[6]; /* ends with NULL */
  } rows[] = {{"--seed", {"--eval", "--run", "--time"}},
              {"--json", {"--plan", "--run", "--time"}},
              {"--threads", {"--run", "--time", "--emit"}},
              {"--log", {"--run", "--time", "--emit"}},
              {"--force", {"--emit"}},
              {"--machine", {"--optimize", "--pass", "--run", "--time", "--emit"}}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    bool good = !option_given(a, rows[i].flag);
    for (int k = 0; rows[i].others[k]; k++) good |= option_given(a, rows[i].others[k]);
    if (good) continue;
    char listed[80] = "";
    for (const char *const *o = rows[i].others; *o; o++) {
      strcat(listed, o == rows[i].others ? "" : o[1] ? ", " : " or ");
      strcat(listed, *o);
    }
    report_error("%s needs %s", rows[i].flag, listed);
    return false;
  }
  return true;
}

static int run(struct arguments *a) {
  int64_t seed;
  bool planned = option_given(a, "--plan"), evaluated = option_given(a, "--eval");
  bool ran = option_given(a, "--run") || option_given(a, "--time");
  if (!exclude(a) || !need(a)) return EXIT_BAD;
  if (!option_whole(a, "--seed", 1, 0, INT64_MAX, &seed)) return EXIT_BAD;
  canvas_network *n = network_read(a);
  if (!n) return EXIT_BAD;
  int answer = EXIT_OK;
  canvas_machine *machine = machine_chosen(a); /* once: it may be standard input */
  canvas_status status = machine && optimize(a, n, machine) ? CANVAS_OK : CANVAS_BAD_INPUT;
  if (status != CANVAS_OK)
    ; /* the message is out */
  else if (evaluated)
    status = evaluate(a, n, (uint64_t)seed);
  else if (ran)
    answer = compiled_network_run(a, n, machine);
  else if (option_given(a, "--emit"))
    answer = compiled_network_emit(a, n, machine);
  else if (!planned)
    put_text(canvas_network_print(n));
  else if (option_given(a, "--json"))
    put_text(canvas_network_plan_json(n)), putchar('\n');
  else
    put_text(canvas_network_plan(n));
  canvas_machine_free(machine);
  canvas_network_free(n);
  return status == CANVAS_OK ? answer : EXIT_BAD;
}

const struct command command_network = {
    .subcommand = "network",
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "check, optimize, evaluate or plan a network of tensor programs",
    .details =
        "Without flags, prints the network in canonical form. --eval evaluates it with the\n"
        "interpreter on seeded inputs and weights; --plan prints the offsets of its values in\n"
        "memory. --optimize first runs the passes: constants, duplicates, dead, windows, concat,\n"
        "dead, compose, batchnorm, fuse, layout, fuse, split, duplicates, dead. --pass runs only\n"
        "the named passes; winograd and winograd4 run only if named. See docs/networks.md.\n",
    .example =
        "printf '%s\\n' 'network n' 'program relu' 'in X f32 [n:4]' 'Y[n:4] = max(X[n], 0)' \\\n"
        "  'out Y' 'end' 'in x f32 [4]' 'y f32 [4] = relu(x)' 'z f32 [4] = relu(y)' \\\n"
        "  'out z' | canvas network - --plan",
    .options = {{"--optimize", NULL, "first run every pass except winograd and winograd4"},
                {"--pass", "NAMES", "first run these passes, names separated by commas"},
                {"--plan", NULL, "print offsets, bytes and live ranges of its values in memory"},
                {"--json", NULL, "with --plan, --run and --time: one JSON object"},
                {"--eval", NULL, "evaluate it with the interpreter"},
                {"--run", NULL,
                 "compile it, compare its outputs with the interpreter's, and time it"},
                {"--time", NULL, "compile it, and time each call"},
                {"--emit", "DIR", "write it as C without dependencies: NAME.c, NAME.h, main.c"},
                {"--force", NULL, "with --emit: overwrite existing files"},
                {"--threads", "T",
                 "threads of parallel loops; with several, times are wall-clock (default 1)"},
                {"--log", "FILE",
                 "use the best schedules that this tuning log has for its programs"},
                {"--machine", "FILE", "machine that passes and schedules are for (default: here)"},
                {"--seed", "N", "seed of inputs and weights (default 1)"}},
    .run = run,
};
