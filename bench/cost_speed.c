// Predicted and measured time of schedules, for bench_cost.py: a line of JSON each.
//
//     cost_speed default|points|predict|measure FOLDER MOST
//
// FOLDER holds `program`, which defines inputs and outputs, and 0.schedule, 1.schedule, ...;
// N.program is the edited program of N.schedule, if it has one. At most MOST legal schedules are
// used. `measure` compiles, checks and times each twice, as screening does and with all samples.
// `default` writes default.schedule and default.program; `points` writes MOST random points of the
// program's sketches, with a fixed seed.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/handle.h"
#include "base/buf.h"
#include "base/random.h"
#include "cost/schedule_cost.h"
#include "run/cache.h"
#include "run/child.h"
#include "tune/rates_here.h"
#include "tune/sketch.h"
#include "tune/space.h"

enum { MOST = 4096, CALLS = 20 };

struct entry {
  canvas_program *program;
  canvas_schedule *schedule;
  canvas_bound *bound;
  struct cost_parts cost;
  double taken;  // seconds of a prediction
  canvas_verdict screened, timed;
};

static canvas_context *ctx;

static void must(bool good, const char *what) {
  if (good) return;
  fprintf(stderr, "cost_speed: %s: %s\n", what, canvas_context_message(ctx));
  exit(2);
}

static bool text_of(const char *folder, const char *name, struct buf *out) {
  char *path = path_join(folder, name);
  bool good = file_read(path, 1 << 24, out);
  free(path);
  return good;
}

static canvas_program *program_at(const char *folder, const char *name) {
  struct buf text = {0};
  canvas_program *program = NULL;
  if (text_of(folder, name, &text))
    must(canvas_program_parse(ctx, text.text, text.length, &program) == CANVAS_OK, name);
  buf_free(&text);
  return program;
}

// False if there is no such schedule; bound NULL if it is illegal.
static bool entry_read(const char *folder, int at, const canvas_program *whole,
                       const canvas_machine *machine, struct entry *c) {
  struct buf text = {0};
  char name[32];
  *c = (struct entry){0};
  snprintf(name, sizeof name, "%d.program", at);
  c->program = program_at(folder, name);
  snprintf(name, sizeof name, "%d.schedule", at);
  if (!text_of(folder, name, &text)) return false;
  bool good = canvas_schedule_parse(ctx, text.text, text.length, &c->schedule) == CANVAS_OK &&
              canvas_bound_new(ctx, c->program ? c->program : whole, c->schedule, machine,
                               &c->bound) == CANVAS_OK;
  if (!good) c->bound = NULL;
  if (good && canvas_bound_describe(c->bound).holes) {
    canvas_bound_free(c->bound);
    c->bound = NULL;
  }
  buf_free(&text);
  return true;
}

static void predict(struct entry *c, const struct rates *rates) {
  canvas_context own;
  struct schedule_cost cost;
  double start = clock_wall();
  for (int i = 0; i < CALLS; i++)
    must(cost_of(&own, c->bound->tree, rates, &cost) == CANVAS_OK, "cost");
  c->taken = (clock_wall() - start) / CALLS;
  c->cost = cost.all;
}

static void measure_all(const canvas_program *program, struct entry *all, int count, bool screen) {
  const canvas_bound **bounds = malloc((size_t)count * sizeof *bounds);
  canvas_verdict *verdicts = calloc((size_t)count, sizeof *verdicts);
  const canvas_run_options options = {.seed = 1, .screen = screen};
  canvas_measurer *measurer;
  int legal = 0;
  for (int i = 0; i < count; i++)
    if (all[i].bound) bounds[legal++] = all[i].bound;
  must(canvas_measurer_new(ctx, program, &options, &measurer) == CANVAS_OK, "measurer");
  must(canvas_measurer_run(ctx, measurer, bounds, legal, verdicts) == CANVAS_OK, "measure");
  legal = 0;
  for (int i = 0; i < count; i++)
    if (all[i].bound) *(screen ? &all[i].screened : &all[i].timed) = verdicts[legal++];
  canvas_measurer_free(measurer);
  free(verdicts);
  free(bounds);
}

static void print(const struct entry *c, int at, bool measured) {
  printf("{\"at\": %d, \"seconds\": %.6g, \"compute\": %.6g, \"loads\": %.6g, \"waits\": %.6g, ",
         at, c->cost.seconds, c->cost.compute, c->cost.loads, c->cost.waits);
  printf("\"l2\": %.6g, \"l3\": %.6g, \"memory\": %.6g, \"us\": %.2f", c->cost.l2, c->cost.l3,
         c->cost.memory, 1e6 * c->taken);
  if (measured && !c->screened.failure) printf(", \"screened\": %.6g", c->screened.median);
  if (measured && !c->timed.failure)
    printf(", \"measured\": %.6g, \"spread\": %.3g", c->timed.median,
           (c->timed.upper - c->timed.lower) / c->timed.median);
  printf("}\n");
}

static void write_text(const char *folder, const char *name, char *text) {
  char *path = path_join(folder, name);
  must(file_write(ctx, path, text, strlen(text)) == CANVAS_OK, path);
  free(path);
  free(text);
}

static int write_default(const char *folder, const canvas_program *program,
                         const canvas_machine *machine) {
  struct buf text = {0};
  canvas_bound *bound;
  must(canvas_bound_new(ctx, program, NULL, machine, &bound) == CANVAS_OK, "default");
  program_print(bound->tree->program, &text);
  write_text(folder, "default.program", buf_take(&text));
  schedule_print(bound->tree->schedule, &text);
  write_text(folder, "default.schedule", buf_take(&text));
  return 0;
}

// One point of each sketch in turn; 0 is the default schedule.
static int write_points(const char *folder, const canvas_program *program,
                        const canvas_machine *machine, int most) {
  const struct sketch_options options = {0};
  struct sketches sketches;
  struct random random;
  int written = 0;
  must(sketches_of(ctx, program_of(program), machine_of(machine), &options, &sketches) == CANVAS_OK,
       "sketches");
  random_open(&random, 1, RANDOM_TEST, 0);
  for (int tries = 0; written < most && tries < 50 * most; tries++) {
    const struct sketch *sketch = &sketches.data[tries % sketches.count];
    struct space *space;
    must(space_new(ctx, sketch->program, sketch->schedule, machine_of(machine), NUMBERS_AUTO,
                   &space) == CANVAS_OK,
         "space");
    int64_t point = tries ? (int64_t)(random_u64(&random) >> 2) % space->size : 0;
    struct loop_tree *tree = space_legal(space, point);
    if (tree) {
      struct buf text = {0};
      char name[32];
      snprintf(name, sizeof name, "%d.program", written);
      program_print(tree->program, &text);
      write_text(folder, name, buf_take(&text));
      snprintf(name, sizeof name, "%d.schedule", written++);
      buf_printf(&text, "# %s\n", sketch->rule);
      schedule_print(tree->schedule, &text);
      write_text(folder, name, buf_take(&text));
      loop_tree_free(tree);
    }
    space_free(space);
  }
  sketches_free(&sketches);
  return 0;
}

int main(int count, char **words) {
  struct rates rates;
  int entries = 0, legal = 0, most = count == 4 ? atoi(words[3]) : 0;
  bool measured = count == 4 && !strcmp(words[1], "measure");
  if (count != 4) {
    fprintf(stderr, "cost_speed default|points|predict|measure FOLDER MOST\n");
    return 2;
  }
  ctx = canvas_context_new();
  struct entry *all = calloc(MOST, sizeof *all);
  canvas_program *program = program_at(words[2], "program");
  canvas_machine *machine = canvas_machine_here();
  must(program != NULL, "program");
  if (!strcmp(words[1], "default")) return write_default(words[2], program, machine);
  if (!strcmp(words[1], "points")) return write_points(words[2], program, machine, most);
  must(rates_here(ctx, machine_of(machine), &rates) == CANVAS_OK, "rates");
  while (entries < MOST && legal < most &&
         entry_read(words[2], entries, program, machine, &all[entries]))
    legal += all[entries++].bound != NULL;
  for (int i = 0; i < entries; i++)
    if (all[i].bound) predict(&all[i], &rates);
  if (measured) measure_all(program, all, entries, true);
  if (measured) measure_all(program, all, entries, false);
  for (int i = 0; i < entries; i++)
    if (all[i].bound) print(&all[i], i, measured);
  return 0;
}
