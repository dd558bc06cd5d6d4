/* canvas network: a network's text checked and printed, made faster, evaluated, or its memory planned. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

enum { ELEMENTS_MAX = 1 << 27, SHOWN = 4 };

struct tensors {
  int count;
  double **data;
};

static void tensors_free(struct tensors *t) {
  for (int i = 0; t->data && i < t->count; i++) free(t->data[i]);
  free(t->data);
}

static bool tensors_new(const canvas_network *n, canvas_role role, struct tensors *out) {
  out->count = canvas_network_count(n, role);
  out->data = calloc((size_t)out->count + 1, sizeof *out->data);
  for (int i = 0; out->data && i < out->count; i++) {
    int64_t elements = canvas_network_tensor(n, role, i).elements;
    if (elements <= ELEMENTS_MAX) out->data[i] = calloc((size_t)elements, sizeof(double));
    if (!out->data[i]) return false;
  }
  return out->data != NULL;
}

static void fill(const canvas_network *n, canvas_role role, uint64_t seed, struct tensors *t) {
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
  struct tensors inputs = {0}, weights = {0}, outputs = {0};
  canvas_status status = CANVAS_IO;
  if (!tensors_new(n, CANVAS_INPUT, &inputs) || !tensors_new(n, CANVAS_WEIGHT, &weights) ||
      !tensors_new(n, CANVAS_OUTPUT, &outputs)) {
    report_error("%s: its tensors need too much memory, give smaller sizes",
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
  tensors_free(&inputs);
  tensors_free(&weights);
  tensors_free(&outputs);
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
static bool optimize(struct arguments *a, canvas_network *n) {
  const char *passes = option_text(a, "--pass", NULL);
  if (!passes && !option_given(a, "--optimize")) return true;
  canvas_status status = canvas_network_optimize(a->ctx, n, passes);
  if (status != CANVAS_OK && passes)
    report_flag(a, "--pass", status);
  else if (status != CANVAS_OK)
    report_status(a, text_name(a->operand[0]), status);
  return status == CANVAS_OK;
}

static int run(struct arguments *a) {
  int64_t seed;
  bool planned = option_given(a, "--plan"), evaluated = option_given(a, "--eval");
  if (planned && evaluated) return report_error("--plan and --eval exclude each other, give one");
  if (option_given(a, "--optimize") && option_given(a, "--pass"))
    return report_error("--optimize and --pass exclude each other, give one");
  if (option_given(a, "--json") && !planned) return report_error("--json needs --plan");
  if (option_given(a, "--seed") && !evaluated) return report_error("--seed needs --eval");
  if (!option_whole(a, "--seed", 1, 0, INT64_MAX, &seed)) return EXIT_BAD;
  canvas_network *n = network_read(a);
  if (!n) return EXIT_BAD;
  canvas_status status = optimize(a, n) ? CANVAS_OK : CANVAS_BAD_INPUT;
  if (status != CANVAS_OK)
    ; /* the message is out */
  else if (evaluated)
    status = evaluate(a, n, (uint64_t)seed);
  else if (!planned)
    put_text(canvas_network_print(n));
  else if (option_given(a, "--json"))
    put_text(canvas_network_plan_json(n)), putchar('\n');
  else
    put_text(canvas_network_plan(n));
  canvas_network_free(n);
  return status == CANVAS_OK ? EXIT_OK : EXIT_BAD;
}

const struct command command_network = {
    .subcommand = "network",
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "check, optimize, evaluate or plan a network: calls of tensor programs",
    .details =
        "Prints the network as it was read. --eval computes it on seeded inputs and weights by\n"
        "the interpreter; --plan shows where its values lie in memory. --optimize makes it faster\n"
        "before, by passes: constants, duplicates, batchnorm, dead; --pass runs those that are "
        "named only.\n",
    .example =
        "printf '%s\\n' 'network n' 'program relu' 'in X f32 [n:4]' 'Y[n:4] = max(X[n], 0)' \\\n"
        "  'out Y' 'end' 'in x f32 [4]' 'y f32 [4] = relu(x)' 'z f32 [4] = relu(y)' \\\n"
        "  'out z' | canvas network - --plan",
    .options = {{"--optimize", NULL, "run every pass over it before"},
                {"--pass", "NAMES", "run these passes over it before, commas between"},
                {"--plan", NULL, "the memory of its values: offsets, bytes and lives"},
                {"--json", NULL, "with --plan: one JSON object"},
                {"--eval", NULL, "what it computes"},
                {"--seed", "N", "with --eval: of inputs and weights (1)"}},
    .run = run,
};
