/* canvas eval: evaluate a kernel or a program with the interpreter on seeded inputs and weights.
 *
 * A small output is evaluated whole; of a large one SAMPLES elements at equal distances, the first and
 * the last among them.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "command.h"

enum { WHOLE_LIMIT = 1 << 16, SAMPLES = 4096, SHOWN = 4 };
enum { INPUT_LIMIT = 1 << 27 }; /* elements of one input: 1 GiB */

/* What is evaluated: an output of a kernel at a target, or of a program. */
struct subject {
  const canvas_kernel *kernel; /* NULL: a program */
  const char *file, *name;     /* of the program; of the target, or the output */
  int output;
};

struct evaluation {
  int inputs;
  double **input; /* one array per input of the program */
  canvas_tensor output;
  int64_t count;     /* evaluated elements */
  int64_t *elements; /* their flat indices */
  double *value;
};

static void evaluation_free(struct evaluation *e) {
  for (int i = 0; e->input && i < e->inputs; i++) free(e->input[i]);
  free(e->input);
  free(e->elements);
  free(e->value);
}

static bool fill_inputs(const canvas_program *program, uint64_t seed, struct evaluation *e) {
  e->inputs = canvas_program_inputs(program);
  e->input = calloc((size_t)e->inputs + 1, sizeof *e->input);
  for (int i = 0; e->input && i < e->inputs; i++) {
    int64_t elements = canvas_program_input(program, i).elements;
    if (elements <= INPUT_LIMIT) e->input[i] = calloc((size_t)elements, sizeof **e->input);
    if (!e->input[i]) return false;
    canvas_program_fill(program, i, seed, e->input[i]);
  }
  return e->input != NULL;
}

static bool choose_elements(const canvas_program *program, int output, struct evaluation *e) {
  e->output = canvas_program_output(program, output);
  int64_t all = e->output.elements;
  e->count = all <= WHOLE_LIMIT ? all : SAMPLES;
  e->elements = calloc((size_t)e->count, sizeof *e->elements);
  e->value = calloc((size_t)e->count, sizeof *e->value);
  if (!e->elements || !e->value) return false;
  for (int64_t i = 0; i < e->count; i++) /* all <= 2^40: the product fits */
    e->elements[i] = e->count == all ? i : i * (all - 1) / (SAMPLES - 1);
  return true;
}

static void print_text(const char *name, const struct evaluation *e) {
  double sum = 0, size = 0;
  printf("%s: [", name);
  for (int i = 0; i < e->output.rank; i++) printf("%s%" PRId64, i ? ", " : "", e->output.sizes[i]);
  printf("], %" PRId64 " of %" PRId64 " elements\n", e->count, e->output.elements);
  for (int64_t i = 0; i < e->count; i++) {
    sum += e->value[i];
    size += fabs(e->value[i]);
    if (i < SHOWN || i >= e->count - SHOWN)
      printf("  [%" PRId64 "] %.10g\n", e->elements[i], e->value[i]);
  }
  printf("  sum %.10g\n  sum of magnitudes %.10g\n", sum, size);
}

/* JSON has no inf and no nan. */
static void print_number(const char *before, double x) {
  if (isfinite(x))
    printf("%s%.17g", before, x);
  else
    printf("%snull", before);
}

static void print_json(const struct subject *of, const struct evaluation *e) {
  double sum = 0, size = 0;
  if (of->kernel) {
    printf("{\"kernel\": ");
    put_json_string(canvas_kernel_name(of->kernel));
    printf(", \"target\": ");
  } else {
    printf("{\"output\": ");
  }
  put_json_string(of->name);
  printf(", \"shape\": [");
  for (int i = 0; i < e->output.rank; i++) printf("%s%" PRId64, i ? ", " : "", e->output.sizes[i]);
  printf("], \"evaluated\": %" PRId64 ", \"elements\": [", e->count);
  for (int64_t i = 0; i < e->count; i++) {
    sum += e->value[i];
    size += fabs(e->value[i]);
    if (i >= SHOWN && i < e->count - SHOWN) continue;
    printf("%s{\"index\": %" PRId64 ", ", i ? ", " : "", e->elements[i]);
    print_number("\"value\": ", e->value[i]);
    putchar('}');
  }
  print_number("], \"sum\": ", sum);
  print_number(", \"sum_of_magnitudes\": ", size);
  printf("}\n");
}

static int report_subject(struct arguments *a, const struct subject *of, canvas_status status) {
  return of->kernel ? report_kernel(a, of->kernel, status) : report_status(a, of->file, status);
}

/* The exit status. */
static int eval_subject(struct arguments *a, const canvas_program *program,
                        const struct subject *of, int64_t seed) {
  struct evaluation e = {0};
  canvas_status status = CANVAS_IO;
  if (!fill_inputs(program, (uint64_t)seed, &e) || !choose_elements(program, of->output, &e)) {
    report_error("%s: its tensors need too much memory, use smaller sizes",
                 of->kernel ? canvas_kernel_name(of->kernel) : of->file);
  } else {
    status = canvas_program_evaluate(a->ctx, program, (const double *const *)e.input, of->output,
                                     e.count, e.elements, e.value);
    if (status != CANVAS_OK)
      report_subject(a, of, status);
    else if (option_given(a, "--json"))
      print_json(of, &e);
    else
      print_text(of->name, &e);
  }
  evaluation_free(&e);
  return status == CANVAS_OK ? EXIT_OK : EXIT_BAD;
}

static int eval_target(struct arguments *a, const canvas_pack *pack, int target, int64_t seed) {
  struct subject of = {.kernel = canvas_pack_kernel_of(pack, target),
                       .name = canvas_pack_target(pack, target)};
  canvas_program *program;
  canvas_status status = canvas_pack_lower(a->ctx, pack, target, 1, &program);
  if (status != CANVAS_OK) return report_kernel(a, of.kernel, status);
  int answer = eval_subject(a, program, &of, seed);
  canvas_program_free(program);
  return answer;
}

static int eval_program(struct arguments *a, const struct text *text, int64_t seed) {
  struct subject of = {.file = text->name};
  if (option_given(a, "--at") || option_given(a, "--target"))
    return report_error("%s is a program, its sizes are fixed: leave out --at and --target",
                        text->name);
  canvas_program *program = text_program(a, text);
  if (!program) return EXIT_BAD;
  int answer = EXIT_OK;
  for (; answer == EXIT_OK && of.output < canvas_program_outputs(program); of.output++) {
    of.name = canvas_program_output(program, of.output).name;
    answer = eval_subject(a, program, &of, seed);
  }
  canvas_program_free(program);
  return answer;
}

static int eval(struct arguments *a, canvas_pack *pack, void *data) {
  const int64_t *seed = data;
  canvas_pack *made;
  const canvas_pack *sized = pack_sized(a, pack, &made);
  int first, end, answer = EXIT_OK;
  if (!sized) return EXIT_BAD;
  if (!targets_chosen(a, sized, &first, &end)) answer = EXIT_BAD;
  for (; answer == EXIT_OK && first < end; first++) answer = eval_target(a, sized, first, *seed);
  canvas_pack_free(made);
  return answer;
}

static int run(struct arguments *a) {
  struct text text;
  int64_t seed;
  if (!option_whole(a, "--seed", 1, 0, INT64_MAX, &seed)) return EXIT_BAD;
  if (!text_read(a->operand[0], &text)) return EXIT_BAD;
  int answer =
      text_is_program(&text) ? eval_program(a, &text, seed) : text_each(a, &text, eval, &seed);
  text_free(&text);
  return answer;
}

const struct command command_eval = {
    .subcommand = "eval",
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "evaluate kernels or a program with the interpreter on seeded inputs",
    .details =
        "FILE holds kernels or packs, or one tensor program; every output is evaluated in double\n"
        "precision. Prints the shape, the first and last elements by flat index, and sums over\n"
        "the evaluated elements: all of up to 65536, otherwise 4096 at equal distances.\n",
    .example =
        "canvas sample --targets \"16,8,8\" --groups 4 |\n"
        "  canvas solve - --targets \"16,8,8\" --budget macs=0.5x --at G=4 |\n"
        "  canvas eval -",
    .options = {{"--at", "SIZES",
                 "sizes of a kernel without bind lines, such as C=64,H=56,W=56,G=4,x0=64"},
                {"--target", "NAME", "only this target of a pack"},
                {"--seed", "S", "seed of inputs and weights (default 1)"},
                {"--json", NULL, "one JSON object per line, for each target or output"}},
    .run = run,
};
