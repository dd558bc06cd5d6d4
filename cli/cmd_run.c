/* canvas run: compile a kernel or program, compare it with the interpreter, and time it. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "command.h"

struct run {
  int64_t seed, repeats, seconds, threads, winograd;
  char *compiler;
  canvas_machine *machine;
  struct tuned tuned;
};

/* What one program came to. */
struct outcome {
  const char *name;
  canvas_verdict verdict;
  int64_t elements; /* of all outputs */
  int64_t threads;
  int64_t flops;
  double reference; /* seconds of wall-clock that it took to find out what outputs have to be */
};

/* ---- for people ------------------------------------------------------------------------------ */

/* 200704 as "200,704". */
static const char *grouped(int64_t number, char text[32]) {
  char digits[32];
  int length = snprintf(digits, sizeof digits, "%" PRId64, number), used = 0;
  for (int i = 0; i < length; i++) {
    if (i && (length - i) % 3 == 0) text[used++] = ',';
    text[used++] = digits[i];
  }
  text[used] = '\0';
  return text;
}

static void print_correct(const struct outcome *o) {
  const canvas_verdict *v = &o->verdict;
  const struct time_unit *unit = time_unit_of(v->median);
  char compared[32], all[32];
  printf("%s: correct (%s", o->name, grouped(v->compared, compared));
  if (v->compared < o->elements) printf(" of %s", grouped(o->elements, all));
  printf(" elements, worst error %.2g of the bound), %s %s, ", v->worst,
         short_number(v->median / unit->seconds).text, unit->name);
  if (o->threads > 1) printf("wall-clock of %" PRId64 " threads, ", o->threads);
  if (o->flops) printf("%s GFLOP/s, ", short_number(1e-9 * (double)o->flops / v->median).text);
  printf("median of %d, quartiles %s and %s %s", v->repeats,
         short_number(v->lower / unit->seconds).text, short_number(v->upper / unit->seconds).text,
         unit->name);
  if (v->cold > 0) {
    unit = time_unit_of(v->cold);
    printf("; with cold caches %s %s", short_number(v->cold / unit->seconds).text, unit->name);
  }
  printf("\n");
}

static void print_text(const struct outcome *o) {
  if (o->verdict.failure)
    printf("%s: %s: %s\n", o->name, canvas_failure_name(o->verdict.failure), o->verdict.message);
  else
    print_correct(o);
}

/* ---- for programs ---------------------------------------------------------------------------- */

static void print_json(const struct outcome *o, const char *compiler) {
  const canvas_verdict *v = &o->verdict;
  printf("{\"name\": ");
  put_json_string(o->name);
  printf(", \"verdict\": \"%s\", \"message\": ", canvas_failure_name(v->failure));
  put_json_string(v->message);
  printf(", \"elements\": %" PRId64 ", \"compared\": %" PRId64, o->elements, v->compared);
  if (isfinite(v->worst))
    printf(", \"worst\": %.6g", v->worst);
  else
    printf(", \"worst\": null");
  printf(", \"flops\": %" PRId64 ", \"threads\": %" PRId64 ", \"repeats\": %d", o->flops,
         o->threads, v->repeats);
  if (!v->failure)
    printf(", \"median\": %.6g, \"lower\": %.6g, \"upper\": %.6g", v->median, v->lower, v->upper);
  if (v->cold > 0) printf(", \"cold\": %.6g", v->cold);
  printf(", \"reference\": %.3g, \"compiler\": ", o->reference);
  put_json_string(compiler);
  printf("}\n");
}

/* ---- the subcommand -------------------------------------------------------------------------------- */

static canvas_status measure(struct arguments *a, const canvas_program *program,
                             const canvas_bound *bound, const struct run *r, struct outcome *out) {
  const canvas_run_options options = {.seed = (uint64_t)r->seed,
                                      .repeats = (int)r->repeats,
                                      .seconds = (double)r->seconds,
                                      .threads = (int)r->threads,
                                      .winograd = (int)r->winograd,
                                      .cold = option_given(a, "--cold")};
  canvas_count count = {0};
  canvas_measurer *measurer = NULL;
  double start = wall_clock();
  canvas_status status = canvas_measurer_new(a->ctx, program, &options, &measurer);
  out->reference = wall_clock() - start;
  if (status == CANVAS_OK) status = canvas_measurer_run(a->ctx, measurer, &bound, 1, &out->verdict);
  if (status == CANVAS_OK && *canvas_measurer_no_reference(measurer))
    report_note("%.100s: compared with the interpreter alone: %s", out->name,
                canvas_measurer_no_reference(measurer));
  canvas_measurer_free(measurer);
  if (status != CANVAS_OK) return status;
  for (int i = 0; i < canvas_program_outputs(program); i++)
    out->elements += canvas_program_output(program, i).elements;
  if (canvas_program_count(a->ctx, program, -1, &count) == CANVAS_OK) out->flops = count.flops;
  return CANVAS_OK;
}

/* `code` is compiled and compared with the program of the item. */
static int run_code(struct arguments *a, const struct program_item *item,
                    const canvas_program *code, const struct run *r) {
  struct outcome out = {.name = item->name, .threads = r->threads};
  struct bound_item chosen;
  if (!bound_chosen(a, item->program, code, r->machine, &r->tuned, &chosen)) return EXIT_BAD;
  canvas_status status = measure(a, item->program, chosen.bound, r, &out);
  bound_drop(&chosen);
  if (status != CANVAS_OK) {
    report_status(a, item->name, status);
    return EXIT_BAD;
  }
  if (option_given(a, "--json"))
    print_json(&out, r->compiler);
  else
    print_text(&out);
  fflush(stdout);
  return out.verdict.failure ? EXIT_NONE : EXIT_OK;
}

static int run_program(struct arguments *a, const struct program_item *item, void *data) {
  const struct run *r = data;
  canvas_program *edited;
  if (!r->winograd) return run_code(a, item, item->program, r);
  canvas_status status = canvas_program_winograd(a->ctx, item->program, (int)r->winograd, &edited);
  if (status != CANVAS_OK) {
    report_status(a, item->name, status);
    return EXIT_BAD;
  }
  int answer = run_code(a, item, edited, r);
  canvas_program_free(edited);
  return answer;
}

static int run(struct arguments *a) {
  struct run r = {0};
  if (!option_whole(a, "--seed", 1, 0, INT64_MAX, &r.seed) ||
      !option_whole(a, "--repeats", 30, 1, 1000, &r.repeats) ||
      !option_whole(a, "--seconds", 10, 1, 3600, &r.seconds) ||
      !option_whole(a, "--threads", 1, 1, 1024, &r.threads) || !option_winograd(a, &r.winograd))
    return EXIT_BAD;
  r.machine = machine_chosen(a);
  if (!r.machine) return EXIT_BAD;
  r.compiler = canvas_compiler_name(a->ctx);
  int answer = EXIT_BAD;
  if (!r.compiler)
    report_error("%s", canvas_context_message(a->ctx));
  else if (tuned_open(a, r.machine, r.threads, r.winograd, &r.tuned))
    answer = programs_each(a, a->operand[0], run_program, &r);
  tuned_close(&r.tuned);
  canvas_string_free(r.compiler);
  canvas_machine_free(r.machine);
  return answer;
}

const struct command command_run = {
    .subcommand = "run",
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "compile a kernel or program, verify it, time it",
    .details =
        "FILE is a kernel, a pack, a program or a network, whose programs are run one by one\n"
        "(canvas network --run runs it as a whole). Outputs on random inputs are compared with\n"
        "the interpreter's before the code is timed. Times are processor time of one thread, or\n"
        "wall-clock time of several. Exit status 1 if the code is wrong or fails. See\n"
        "docs/native.md.\n",
    .example =
        "canvas operator gemm m=64 n=64 k=64 >gemm.program\n"
        "canvas run gemm.program",
    .options = {{"--at", "SIZES",
                 "sizes of a kernel without bind lines, such as C=64,H=56,W=56,G=4,x0=64"},
                {"--target", "NAME", "only this target of a pack"},
                {"-N", "BATCH", "batch size (default 1)"},
                {"--schedule", "FILE",
                 "schedule file, or the word default (default: the default schedule, after "
                 "program edits that make it faster)"},
                {"--set", "NUMBERS",
                 "loop extents that replace holes of the schedule, such as iw=14,yo=4"},
                {"--log", "FILE", "use the best schedule that this tuning log has for the program"},
                {"--machine", "FILE", "machine that the schedule is for (default: here)"},
                {"--seed", "S", "seed of inputs and weights (default 1)"},
                {"--repeats", "COUNT", "timed samples (default 30; fewer for slow code)"},
                {"--seconds", "S", "limit of processor time for all runs together (default 10)"},
                {"--threads", "T",
                 "threads of parallel loops; with several, times are wall-clock (default 1)"},
                {"--winograd", "TILE",
                 "compute 3x3 convolutions by Winograd in tiles of 2 or 4, which rounds more"},
                {"--cold", NULL, "also time it with cold caches, as inside a network"},
                {"--json", NULL, "one JSON object per line"}},
    .run = run,
};
