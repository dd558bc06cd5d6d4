/* What holds for every object that was parsed: see fuzz.h. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "program/interpret.h"

enum {
  SECONDS = 10, /* of the processor for one input: with sanitizers ten times the promised one */
  LONGEST_MESSAGE = 1000,  /* bytes: what is quoted is shortened, so that the end is never cut */
  TARGETS_LOWERED = 3,     /* of one pack */
  INPUT_ELEMENTS = 1 << 14 /* of a program that is evaluated */
};
static const struct interpreter_limits small = {.bytes = 1 << 22, .steps = 1 << 16};

void must(bool holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "fuzz: broken promise: %s\n", what);
  abort();
}

bool fine(const canvas_context *ctx, canvas_status status) {
  if (status == CANVAS_OK) return true;
  const char *message = canvas_context_message(ctx);
  must(*message, "a failure has an error message");
  must(strlen(message) <= LONGEST_MESSAGE, "an error message is not cut off");
  for (const char *p = message; *p; p++)
    must(*p >= ' ' && *p < 0x7f, "an error message is printable");
  return false;
}

canvas_machine *fuzz_machine(canvas_context *ctx) {
  static const char text[] =
      "canvas 1\nmachine fuzz\nvector_bytes 64\nvector_registers 32\nl1 48 KiB\nl2 2 MiB\n"
      "memory 4 GiB\n";
  canvas_machine *machine = NULL;
  must(fine(ctx, canvas_machine_parse(ctx, text, strlen(text), &machine)), "a machine parses");
  return machine;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  canvas_context *ctx = canvas_context_new();
  clock_t start = clock();
  fuzz(ctx, (const char *)data, size);
  must(clock() - start < (clock_t)SECONDS * CLOCKS_PER_SEC, "an input is done within its time");
  canvas_context_free(ctx);
  return 0;
}

/* Takes both. */
static void must_equal(char *a, char *b, const char *what) {
  if (strcmp(a, b) != 0) fprintf(stderr, "---- first\n%s---- then\n%s", a, b);
  must(strcmp(a, b) == 0, what);
  canvas_string_free(a);
  canvas_string_free(b);
}

/* A text that the core wrote: not empty, plain ASCII. Takes it. */
static void check_text(char *text, const char *what) {
  must(text && *text, what);
  for (const char *p = text; *p; p++) must((*p >= ' ' && *p < 0x7f) || *p == '\n', what);
  canvas_string_free(text);
}

/* -- kernels -- */

/* Layers so small that any kernel can be evaluated: plain, with copies and a stride, averaged. */
static canvas_targets *small_layers(canvas_context *ctx) {
  static const char layers[] = "a 8 8 6 6 3 1 1\nb 8 16 7 6 3 2 1\nc 16 8 4 4 3x1 1 1\n";
  canvas_targets *targets = NULL;
  must(fine(ctx, canvas_targets_parse(ctx, layers, strlen(layers), &targets)), "layers");
  return targets;
}

static canvas_pack *small_pack(canvas_context *ctx, const canvas_kernel *kernel) {
  static const char unbounded[] = "macs=none,params=none";
  canvas_targets *targets = small_layers(ctx);
  canvas_budget *budget = NULL;
  canvas_pack *pack = NULL;
  canvas_solve_options options = {.groups = 4, .exempt = true};
  if (canvas_kernel_hash(kernel).hex[31] & 1) options.norm = CANVAS_NORM_BATCH;
  must(fine(ctx, canvas_budget_parse(ctx, unbounded, strlen(unbounded), &budget)), "budget");
  fine(ctx, canvas_kernel_solve(ctx, kernel, targets, budget, &options, &pack));
  canvas_targets_free(targets);
  canvas_budget_free(budget);
  return pack;
}

/* What the core made of a kernel: a text that parses back to the same kernel. */
static void check_made(canvas_context *ctx, const canvas_kernel *made, const char *what) {
  canvas_kernel *again = NULL;
  char *text = canvas_kernel_print(made);
  must(fine(ctx, canvas_kernel_parse(ctx, text, strlen(text), &again)), what);
  canvas_hash hash = canvas_kernel_hash(made), same = canvas_kernel_hash(again);
  must(strcmp(hash.hex, same.hex) == 0, what);
  canvas_string_free(text);
  canvas_kernel_free(again);
}

static void check_child(canvas_context *ctx, const canvas_kernel *const *parents, int count,
                        const char *options) {
  canvas_targets *targets = small_layers(ctx);
  canvas_sampler *sampler = NULL;
  canvas_kernel *child;
  int64_t groups[] = {4, 2}, g;
  must(fine(ctx, canvas_sampler_new(ctx, targets, options, strlen(options), 1, &sampler)),
       "a sampler");
  if (fine(ctx, canvas_sampler_mutate(ctx, sampler, 0, parents, groups, count, &child, &g))) {
    check_made(ctx, child, "a child is a kernel");
    must(g >= 1, "a child has groups");
    canvas_kernel_free(child);
  }
  canvas_sampler_free(sampler);
  canvas_targets_free(targets);
}

static void check_children(canvas_context *ctx, const canvas_kernel *kernel) {
  canvas_kernel *simple = canvas_kernel_simplify(kernel), *again = canvas_kernel_simplify(simple);
  const canvas_kernel *parents[] = {simple, kernel};
  check_made(ctx, simple, "a simplified kernel is a kernel");
  must_equal(canvas_kernel_print(simple), canvas_kernel_print(again), "simplified once is enough");
  check_child(ctx, parents, 1, "");
  check_child(ctx, parents, 2, "primitives=1..62 require=none");
  canvas_kernel_free(simple);
  canvas_kernel_free(again);
}

static void check_strides(canvas_context *ctx, const canvas_kernel *kernel) {
  static const char *const modes[] = {"pool", "window", "output"};
  for (int i = 0; i < 3; i++) {
    canvas_kernel *made = NULL;
    if (!fine(ctx, canvas_kernel_stride(ctx, kernel, modes[i], &made))) continue;
    check_made(ctx, made, "a kernel that takes the stride is a kernel");
    canvas_kernel *simple = canvas_kernel_simplify(made);
    check_made(ctx, simple, "simplified, it is a kernel");
    canvas_kernel_free(simple);
    canvas_kernel_free(made);
  }
}

void check_kernel(canvas_context *ctx, const canvas_kernel *kernel) {
  canvas_kernel *again = NULL;
  char *text = canvas_kernel_print(kernel);
  must(fine(ctx, canvas_kernel_parse(ctx, text, strlen(text), &again)), "a printed kernel parses");
  canvas_hash hash = canvas_kernel_hash(kernel), same = canvas_kernel_hash(again);
  must(strcmp(hash.hex, same.hex) == 0, "the hash survives printing");
  must_equal(text, canvas_kernel_print(again), "a kernel's text is stable");
  must(canvas_kernel_describe(kernel).primitives >= 0, "a kernel has facts");
  const char *reach = canvas_kernel_reach(kernel);
  must(!reach || *reach, "a kernel reaches, or an error message says why not");
  check_text(canvas_kernel_dot(kernel), "a picture");
  canvas_kernel_free(again);
  check_children(ctx, kernel);
  check_strides(ctx, kernel);
  canvas_pack *pack = small_pack(ctx, kernel);
  if (pack) check_pack(ctx, pack), check_module(ctx, pack);
  canvas_pack_free(pack);
}

/* -- packs -- */

static void check_cost(canvas_context *ctx, const canvas_pack *pack) {
  canvas_cost all, one, sum = {0};
  char *json = NULL;
  if (!fine(ctx, canvas_pack_cost(ctx, pack, -1, &all))) return;
  for (int i = 0; i < canvas_pack_count(pack); i++) {
    must(fine(ctx, canvas_pack_cost(ctx, pack, i, &one)), "a part of a cost has a cost");
    sum.macs += one.macs, sum.params += one.params, sum.activations += one.activations;
    sum.elementwise += one.elementwise, sum.bytes += one.bytes;
  }
  must(memcmp(&all, &sum, sizeof sum) == 0, "the cost of a pack is the sum over its targets");
  must(fine(ctx, canvas_pack_cost_json(ctx, pack, &json)), "a cost as JSON");
  check_text(json, "a cost as JSON");
}

void check_module(canvas_context *ctx, const canvas_pack *pack) {
  for (int patterns = 0; patterns < 2; patterns++) {
    char *text = NULL;
    must(fine(ctx, canvas_pack_torch(ctx, pack, patterns, &text)), "a pack has a module");
    check_text(text, "a module");
  }
}

void check_pack(canvas_context *ctx, const canvas_pack *pack) {
  canvas_pack *again = NULL;
  char *text = canvas_pack_print(pack);
  must(fine(ctx, canvas_pack_parse(ctx, text, strlen(text), &again)), "a printed pack parses");
  must_equal(text, canvas_pack_print(again), "a pack's text is stable");
  canvas_pack_free(again);
  check_cost(ctx, pack);
  for (int i = 0; i < canvas_pack_count(pack) && i < TARGETS_LOWERED; i++) {
    canvas_program *program = NULL;
    if (fine(ctx, canvas_pack_lower(ctx, pack, i, 1 + i % 2, &program)))
      check_program(ctx, program, true);
    canvas_program_free(program);
  }
}

/* -- programs -- */

/* All inputs of the program, filled; NULL where they are large. Freed with free_inputs. */
static double **small_inputs(const canvas_program *program) {
  int count = canvas_program_inputs(program);
  int64_t all = 0;
  for (int i = 0; i < count && all <= INPUT_ELEMENTS; i++)
    all += canvas_program_input(program, i).elements;
  if (all > INPUT_ELEMENTS) return NULL;
  double **inputs = calloc((size_t)count + 1, sizeof *inputs);
  for (int i = 0; i < count; i++) {
    inputs[i] = calloc((size_t)canvas_program_input(program, i).elements, sizeof **inputs);
    canvas_program_fill(program, i, 1, inputs[i]);
  }
  return inputs;
}

static void free_inputs(const canvas_program *program, double **inputs) {
  for (int i = 0; i < canvas_program_inputs(program); i++) free(inputs[i]);
  free(inputs);
}

/* The first and the last element of an output. */
static void check_evaluation(canvas_context *ctx, const struct program *p, double **inputs,
                             bool whole) {
  struct interpreter *in = NULL;
  int output = p->outputs.data[0];
  const int64_t flat[] = {0, program_elements(p, output) - 1};
  double value[2];
  if (!fine(ctx, interpreter_new(ctx, p, (const double *const *)inputs, &small, &in))) return;
  canvas_status status = interpreter_elements(in, output, 2, flat, value);
  must(fine(ctx, status) || status == CANVAS_IO || !whole, "a kernel's program is evaluated");
  interpreter_free(in);
}

void check_program(canvas_context *ctx, const canvas_program *program, bool whole) {
  canvas_program *again = NULL;
  char *text = canvas_program_print(program);
  must(fine(ctx, canvas_program_parse(ctx, text, strlen(text), &again)),
       "a printed program parses");
  must_equal(text, canvas_program_print(again), "a program's text is stable");
  canvas_program_free(again);
  double **inputs = small_inputs(program);
  if (!inputs) return;
  if (canvas_program_outputs(program))
    check_evaluation(ctx, (const struct program *)program, inputs, whole);
  free_inputs(program, inputs);
}

/* -- networks -- */

void check_network(canvas_context *ctx, const canvas_network *network) {
  canvas_network *again = NULL;
  char *text = canvas_network_print(network);
  must(fine(ctx, canvas_network_parse(ctx, text, strlen(text), &again)),
       "a printed network parses");
  must_equal(text, canvas_network_print(again), "a network's text is stable");
  must_equal(canvas_network_plan(network), canvas_network_plan(again), "a plan is of the text");
  must(fine(ctx, canvas_network_optimize(ctx, again, NULL, NULL)), "a network can be optimized");
  canvas_network_free(again);
}
