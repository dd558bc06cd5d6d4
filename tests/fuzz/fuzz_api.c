/* Numbers that callers give: indices, counts, enums, sizes and options of canvas.h. A line of the input is a
 * function's name without `canvas_` and its numbers, say `pack_cost 99`. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NUMBERS = 4, LINES = 200, POINTS = 50, ELEMENTS = 64 };

static const char kernel_text[] =
    "canvas 1\nkernel k\na = input\nb = unfold a over=H,W k=K\nc = fc b to=x0\nd = fc c to=C\nout "
    "d\n";
static const char program_text[] =
    "canvas 1\nprogram p\nin X f32 [n:4, k:3]\nin W f32 [k:3, m:2] const\nP[n:4, k:3] = X[n, k] * "
    "2\n"
    "Y[n:4, m:2] = P[n, k] * W[k, m] // sum k:3\nout Y\n";
static const char network_text[] =
    "network small\nprogram product\nin X f32 [n:4, k:3]\nin W f32 [k:3, m:2] const\n"
    "Y[n:4, m:2] = X[n, k] * W[k, m] // sum k:3\nout Y\nend\n"
    "in x f32 [4, 3]\nweight w f32 [3, 2]\ny f32 [4, 2] = product(x, w)\nout y\n";

static struct {
  canvas_targets *targets;
  canvas_kernel *kernel;
  canvas_pack *pack;
  canvas_budget *budget;
  canvas_sampler *sampler;
  canvas_program *program;
  canvas_network *network;
  canvas_machine *machine;
  canvas_bound *bound;
  canvas_log *log;
} o;

/* One record, whose file is gone again. */
static void make_log(canvas_context *ctx) {
  const canvas_log_place place = {.machine = o.machine, .compiler = "cc"};
  const canvas_verdict time = {.median = 1, .lower = 1, .upper = 1, .repeats = 3};
  const char *folder = getenv("TMPDIR");
  char path[4096];
  snprintf(path, sizeof path, "%s/canvas-fuzz-%d.log", folder ? folder : "/tmp", (int)getpid());
  must(fine(ctx, canvas_log_add_network(ctx, path, o.bound, &place, &time)), "a log is written");
  must(fine(ctx, canvas_log_read(ctx, path, &o.log)), "a log is read");
  unlink(path);
}

/* Once; they stay until the process ends. */
static void make_objects(canvas_context *ctx) {
  static const char layers[] = "8,6,6;16,4,4", sizes[] = "C=4,H=5,W=3,x0=2", twice[] = "macs=2x";
  if (o.log) return;
  must(fine(ctx, canvas_targets_parse(ctx, layers, strlen(layers), &o.targets)), "targets");
  must(fine(ctx, canvas_kernel_parse(ctx, kernel_text, strlen(kernel_text), &o.kernel)), "kernel");
  must(fine(ctx, canvas_kernel_bind(ctx, o.kernel, sizes, strlen(sizes), &o.pack)), "pack");
  must(fine(ctx, canvas_budget_parse(ctx, twice, strlen(twice), &o.budget)), "budget");
  must(fine(ctx, canvas_sampler_new(ctx, o.targets, "", 0, 1, &o.sampler)), "sampler");
  must(fine(ctx, canvas_program_parse(ctx, program_text, strlen(program_text), &o.program)), "p");
  must(fine(ctx, canvas_network_parse(ctx, network_text, strlen(network_text), &o.network)), "n");
  o.machine = fuzz_machine(ctx);
  must(fine(ctx, canvas_bound_new(ctx, o.program, NULL, o.machine, &o.bound)), "bound");
  make_log(ctx);
}

/* ---- a call of each function that takes a number --------------------------------------------------- */

struct line {
  int64_t n[NUMBERS];
  double real[NUMBERS];
};

static void free_text(char *text) {
  must(!text || *text, "a text holds something");
  canvas_string_free(text);
}

static void targets(canvas_context *ctx, const struct line *l) {
  canvas_cost cost;
  int i = (int)l->n[0];
  bool there = i >= 0 && i < canvas_targets_count(o.targets);
  must(!canvas_targets_name(o.targets, i) == !there, "a name of each target");
  must(fine(ctx, canvas_targets_cost(ctx, o.targets, i, &cost)) == (there || i == -1), "a cost");
}

static void pack(canvas_context *ctx, const struct line *l) {
  canvas_cost cost;
  canvas_program *program = NULL;
  int i = (int)l->n[0];
  must(!canvas_pack_target(o.pack, i) == (i != 0), "a name of each target");
  must(fine(ctx, canvas_pack_cost(ctx, o.pack, i, &cost)) == (i == 0 || i == -1), "a cost");
  if (fine(ctx, canvas_pack_lower(ctx, o.pack, i, l->n[1], &program))) must(i == 0, "lowered");
  canvas_program_free(program);
}

static void formats(canvas_context *ctx, const struct line *l) {
  (void)ctx;
  free_text(canvas_primitives_print((canvas_format)l->n[0]));
  free_text(canvas_operators_print((canvas_format)l->n[0]));
  const char *name = canvas_failure_name((canvas_failure)l->n[0]);
  must(!name || *name, "a failure has a name");
  must(!canvas_tune_method_at((int)l->n[0]).name || (int)l->n[0] >= 0, "methods from 0");
}

static void mutate(canvas_context *ctx, const struct line *l) {
  const canvas_kernel *parents[] = {o.kernel, o.kernel};
  const int64_t groups[] = {l->n[2], l->n[3]};
  canvas_kernel *child = NULL;
  int64_t g;
  canvas_status status = canvas_sampler_mutate(ctx, o.sampler, (uint64_t)l->n[0], parents, groups,
                                               (int)l->n[1], &child, &g);
  must(fine(ctx, status) == (child != NULL), "a child where the status says so");
  canvas_kernel_free(child);
}

static void solve(canvas_context *ctx, const struct line *l) {
  const canvas_solve_options options = {
      .groups = l->n[0], .exempt = l->n[1] & 1, .norm = (canvas_norm)l->n[2]};
  canvas_pack *solved = NULL;
  canvas_status status = canvas_kernel_solve(ctx, o.kernel, o.targets, o.budget, &options, &solved);
  if (fine(ctx, status)) check_pack(ctx, solved);
  canvas_pack_free(solved);
}

static void program(canvas_context *ctx, const struct line *l) {
  double in[12] = {0}, out[ELEMENTS];
  canvas_count count;
  canvas_program *other = NULL;
  int i = (int)l->n[0];
  must(!canvas_program_input(o.program, i).name == !(i == 0 || i == 1), "two inputs");
  must(!canvas_program_output(o.program, i).name == (i != 0), "one output");
  must(!canvas_program_stage(o.program, i) == !(i == 0 || i == 1), "two stages");
  canvas_program_fill(o.program, i, (uint64_t)l->n[1], in);
  fine(ctx, canvas_program_count(ctx, o.program, i, &count));
  fine(ctx, canvas_program_winograd(ctx, o.program, i, &other));
  canvas_program_free(other);
  const double *const inputs[] = {in, in};
  const int64_t elements[] = {l->n[2], l->n[3]};
  fine(ctx, canvas_program_evaluate(ctx, o.program, inputs, i, l->n[1], NULL, out));
  if (l->n[1] <= 2)
    fine(ctx, canvas_program_evaluate(ctx, o.program, inputs, i, l->n[1], elements, out));
}

static void network(canvas_context *ctx, const struct line *l) {
  canvas_role role = (canvas_role)l->n[0];
  int i = (int)l->n[1], calls;
  double values[12] = {0};
  const canvas_network_options options = {.threads = (int)l->n[2]};
  canvas_network_file *files = NULL;
  bool there = i >= 0 && i < canvas_network_count(o.network, role);
  must(!canvas_network_tensor(o.network, role, i).name == !there, "a name of each tensor");
  must(!canvas_network_source(o.network, i), "no sources");
  canvas_network_fill(o.network, role, i, 1, values);
  canvas_program_free(canvas_network_program(o.network, i, &calls));
  if (fine(ctx, canvas_network_files(ctx, o.network, &options, &files))) must(files, "files");
  canvas_network_files_free(files);
}

static void logs(canvas_context *ctx, const struct line *l) {
  const canvas_log *all[] = {o.log, o.log};
  const canvas_log_place place = {
      .threads = (int)l->n[1], .winograd = (int)l->n[2], .anywhere = true};
  canvas_bound *bound = NULL;
  int i = (int)l->n[0], record, count = 0;
  must(!canvas_log_record(o.log, i).program == (i != 0), "one record");
  free_text(canvas_log_line(o.log, i));
  must(fine(ctx, canvas_log_bind(ctx, o.log, i, NULL, &bound)) == (i == 0), "one record is bound");
  canvas_bound_free(bound);
  if (i <= 2) canvas_log_free(canvas_log_merge(all, i));
  if (fine(ctx, canvas_log_best(ctx, o.log, o.program, &place, &record))) must(!record, "the best");
  canvas_log_tasks_free(canvas_log_tasks(o.log, &place, &count));
}

/* Only what is refused: what is not would write to a file, compile and measure. */
static void options(canvas_context *ctx, const struct line *l) {
  const canvas_log_place place = {.machine = o.machine, .threads = (int)l->n[0], .compiler = "cc"};
  const canvas_verdict time = {
      .median = l->real[1], .lower = l->real[2], .upper = l->real[3], .repeats = (int)l->n[0]};
  const canvas_tune_options tune = {.trials = (int)l->n[0],
                                    .seconds = l->real[1],
                                    .patience = (int)l->n[2],
                                    .timeout = l->real[3],
                                    .threads = (int)l->n[1]};
  const canvas_run_options run = {.seconds = l->real[0],
                                  .total_seconds = l->real[1],
                                  .repeats = (int)l->n[2],
                                  .threads = (int)l->n[3]};
  canvas_measurer *measurer = NULL;
  char *text = NULL;
  if (!(l->real[1] > 0 && l->real[2] >= 0 && l->real[3] >= 0))
    must(!fine(ctx, canvas_log_add_network(ctx, "/dev/null", o.bound, &place, &time)), "refused");
  if (!(l->real[0] >= 0 && l->real[1] >= 0))
    must(!fine(ctx, canvas_measurer_new(ctx, o.program, &run, &measurer)), "refused");
  if (l->n[0] <= POINTS)
    fine(ctx, canvas_tune_space(ctx, o.program, o.machine, &tune, (int)l->n[0], &text));
  free_text(text);
}

static const struct {
  const char *name;
  void (*call)(canvas_context *ctx, const struct line *l);
} calls[] = {{"targets", targets}, {"pack", pack},   {"formats", formats},
             {"mutate", mutate},   {"solve", solve}, {"program", program},
             {"network", network}, {"logs", logs},   {"options", options}};

static void run_line(canvas_context *ctx, char *line) {
  struct line l = {{0}, {0}};
  char *at = line + strcspn(line, " "), *end;
  bool named = *at;
  *at = '\0';
  for (int i = 0; named && i < NUMBERS; i++, at = end) {
    char *from = i ? at : at + 1;
    l.n[i] = strtoll(from, NULL, 10);
    l.real[i] = strtod(from, &end);
    if (end == from) break;
  }
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
    if (!strcmp(calls[i].name, line)) calls[i].call(ctx, &l);
}

void fuzz(canvas_context *ctx, const char *text, size_t size) {
  char *copy = malloc(size + 1), *rest = copy;
  must(copy, "memory");
  if (size) memcpy(copy, text, size);
  copy[size] = '\0';
  make_objects(ctx);
  for (int i = 0; i < LINES && *rest; i++) {
    char *line = rest;
    rest += strcspn(rest, "\n");
    if (*rest) *rest++ = '\0';
    run_line(ctx, line);
  }
  free(copy);
}
