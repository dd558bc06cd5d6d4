// What the compiler's own steps and candidates cost, for bench_compiler.py: one line of JSON.
//
//     compiler_speed steps CACHE PROGRAM SCHEDULE|default [VALUES]
//     compiler_speed candidates|screen CACHE COUNT
//
// CACHE is an empty folder. Of `steps` each is repeated for a fixed processor time, five times; a rate is the median of the five,
// in calls per second. An edit is one split, mark or reorder and the check of the whole schedule;
// rejected edits count, too. `compile` is the wall time of an installed compiler per candidate:
// variants of the schedule (random legal edits with a fixed seed), ten to a file, none cached.
//
// `candidates`: what a candidate costs from schedule to verdict. They are drawn with a fixed seed
// from a family of schedules of a matrix product of about a millisecond. Wall time per candidate:
// bind it and write C; compile it, 20 to a file; load, check and time it; all of that by batch_run,
// which compiles while it measures; and the same with the fastest compiler and the samples of a
// search: at most twenty, five of slow candidates. `screen` runs the last alone and adds its
// processor time, compilers included.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "../tests/c/emit_tree.h"
#include "../tests/c/random_edit.h"
#include "base/buf.h"
#include "explain/explain.h"
#include "run/batch.h"
#include "run/cache.h"
#include "run/compiler.h"

enum { ROUNDS = 5, VARIANTS = 20, VARIANTS_TOGETHER = 10, TOGETHER = 20 };
static const double round_seconds = 0.1;

struct subject {
  struct program *program;
  struct schedule *schedule;
  struct loop_tree *tree;
  struct machine machine;
  struct random random;
};

static canvas_context ctx;

static void must(bool good, const char *what) {
  if (good) return;
  fprintf(stderr, "compiler_speed: %s: %s\n", what, ctx.message);
  exit(2);
}

static struct compiler *open_compiler(const char *cache, bool quick) {
  const struct compiler_options options = {.cache = cache, .quick = quick};
  struct compiler *compiler;
  must(compiler_open(&ctx, &options, &compiler) == CANVAS_OK, "compiler");
  return compiler;
}

// ---- the steps ----------------------------------------------------------------------------------

static void bind_once(struct subject *s) {
  struct loop_tree *tree;
  must(loop_tree_bind(&ctx, s->program, s->schedule, &s->machine, &tree) == CANVAS_OK, "bind");
  loop_tree_free(tree);
}

static void edit_once(struct subject *s) {
  struct loop_tree *next;
  if (random_step(&ctx, &s->random, s->tree, &next) == CANVAS_OK) loop_tree_free(next);
}

static void emit_once(struct subject *s) {
  struct buf text = {0};
  must(emit_tree(&ctx, s->tree, NULL, &text) == CANVAS_OK, "emit");
  buf_free(&text);
}

static void explain_once(struct subject *s) {
  struct buf text = {0};
  const struct rates rates = rates_likely(&s->machine);
  must(schedule_explain(&ctx, s->tree, &rates, &text) == CANVAS_OK, "explain");
  buf_free(&text);
}

// ---- time ---------------------------------------------------------------------------------------

static double seconds_of(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int ascending(const void *a, const void *b) {
  const double *x = a, *y = b;
  return (*x > *y) - (*x < *y);
}

static double rate_of(void (*step)(struct subject *), struct subject *s) {
  double rates[ROUNDS];
  for (int i = 0; i < ROUNDS; i++) {
    double start = seconds_of(CLOCK_PROCESS_CPUTIME_ID), taken = 0;
    int64_t calls = 0;
    for (; taken < round_seconds; calls++) {
      step(s);
      taken = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - start;
    }
    rates[i] = (double)calls / taken;
  }
  qsort(rates, ROUNDS, sizeof *rates, ascending);
  return rates[ROUNDS / 2];
}

// The schedule after some legal edits; the schedule itself if none is legal.
static struct loop_tree *variant(struct subject *s) {
  struct loop_tree *tree;
  for (int tries = 0; tries < 40; tries++) {
    if (random_step(&ctx, &s->random, s->tree, &tree) != CANVAS_OK) continue;
    if (!tree->open_holes) return tree;
    loop_tree_free(tree);
  }
  must(loop_tree_bind(&ctx, s->program, s->schedule, &s->machine, &tree) == CANVAS_OK, "bind");
  return tree;
}

// Seconds of wall time per candidate; 0 without a compiler.
static double compile_seconds(struct subject *s, const char *cache) {
  struct compiler *compiler = open_compiler(cache, false);
  struct source sources[VARIANTS];
  struct object objects[VARIANTS];
  struct buf texts[VARIANTS] = {0};
  char names[VARIANTS][32];
  int pointers = s->program->inputs.count + s->program->outputs.count;
  for (int i = 0; i < VARIANTS; i++) {
    struct loop_tree *tree = variant(s);
    snprintf(names[i], sizeof names[i], "candidate_%d", i);
    struct emit_options emit = {.function = names[i]};
    must(emit_tree(&ctx, tree, &emit, &texts[i]) == CANVAS_OK, "emit");
    sources[i] = (struct source){texts[i].text, names[i], pointers, NULL, 0};
    loop_tree_free(tree);
  }
  double start = seconds_of(CLOCK_MONOTONIC);
  must(
      compiler_build(&ctx, compiler, sources, VARIANTS, VARIANTS_TOGETHER, 0, objects) == CANVAS_OK,
      "compile");
  double taken = (seconds_of(CLOCK_MONOTONIC) - start) / VARIANTS;
  for (int i = 0; i < VARIANTS; i++) {
    if (!objects[i].path) snprintf(ctx.message, sizeof ctx.message, "%s", objects[i].message);
    must(objects[i].path, "compile");
    buf_free(&texts[i]);
  }
  objects_free(objects, VARIANTS);
  compiler_close(compiler);
  return taken;
}

// ---- what is measured ---------------------------------------------------------------------------

static void open_subject(struct subject *s, const char *program, const char *schedule,
                         const char *values) {
  struct buf text = {0};
  s->machine = machine_avx512;
  random_open(&s->random, 1, RANDOM_TEST, 0);
  must(file_read(program, 1 << 24, &text), program);
  must(program_parse(&ctx, text.text, text.length, &s->program) == CANVAS_OK, program);
  text.length = 0;
  if (!strcmp(schedule, "default")) {
    s->schedule = schedule_default(s->program, true, &s->machine);
  } else {
    must(file_read(schedule, 1 << 24, &text), schedule);
    must(schedule_parse(&ctx, text.text, text.length, &s->schedule) == CANVAS_OK, schedule);
  }
  if (values) must(schedule_set(&ctx, s->schedule, values) == CANVAS_OK, values);
  must(loop_tree_bind(&ctx, s->program, s->schedule, &s->machine, &s->tree) == CANVAS_OK, schedule);
  buf_free(&text);
}

static void measure_steps(const char *cache, const char *program, const char *schedule,
                          const char *values) {
  struct subject s = {0};
  open_subject(&s, program, schedule, values);
  printf("{\"bind\": %.0f, ", rate_of(bind_once, &s));
  printf("\"edit\": %.0f, ", rate_of(edit_once, &s));
  printf("\"emit\": %.0f, ", rate_of(emit_once, &s));
  printf("\"explain\": %.0f, ", rate_of(explain_once, &s));
  printf("\"compile_ms\": %.1f}\n", 1e3 * compile_seconds(&s, cache));
  loop_tree_free(s.tree);
  schedule_free(s.schedule);
  program_free(s.program);
}

// ---- a family of candidates ---------------------------------------------------------------------

static const char program_text[] =
    "canvas 1\nprogram product\nin A f32 [m:320, k:320]\nin B f32 [k:320, n:320]\n"
    "Y[m:320, n:320] = A[m, k] * B[k, n] // sum k:320\nout Y\n";
static const char family_text[] =
    "ia, ja, ka, ib:?, jb:?, kb:?, ii:?:unroll:peel, ji:?:vec =>\n"
    "    @Y = {ia, ib, ii}/m, {ja, jb, ji}/n // {ka, kb}/k\n";
static const struct {
  const char *level;
  int values[8];  // 0 after the last
} holes[] = {{"ib", {1, 2, 4, 8}},
             {"jb", {1, 2, 5, 10}},
             {"kb", {16, 32, 64, 80, 160, 320}},
             {"ii", {2, 4, 6, 7, 8, 10, 12, 14}},
             {"ji", {16, 32, 64}}};

struct candidates {
  struct program *program;
  struct compiler *compiler;
  struct expected *expected;
  struct buf *texts;
  char (*names)[32];
  struct batch_candidate *list;
  struct verdict *verdicts;
  int count;
};

static int pick(struct random *r, const int *values) {
  int count = 0;
  while (count < 8 && values[count]) count++;
  return values[edit_below(r, count)];
}

// A legal member: draws until one is legal.
static struct loop_tree *draw(struct candidates *c, struct random *r, struct schedule *family) {
  struct loop_tree *tree;
  for (;;) {
    struct buf numbers = {0};
    for (size_t i = 0; i < sizeof holes / sizeof *holes; i++)
      buf_printf(&numbers, "%s%s=%d", i ? "," : "", holes[i].level, pick(r, holes[i].values));
    must(schedule_set(&ctx, family, numbers.text) == CANVAS_OK, numbers.text);
    buf_free(&numbers);
    if (loop_tree_bind(&ctx, c->program, family, &machine_avx512, &tree) == CANVAS_OK) return tree;
  }
}

static void write_all(struct candidates *c, int first) {
  struct schedule *family;
  struct random random;
  must(schedule_parse(&ctx, family_text, strlen(family_text), &family) == CANVAS_OK, "family");
  random_open(&random, 1, RANDOM_TEST, 0);
  for (int i = 0; i < c->count; i++) {
    struct loop_tree *tree = draw(c, &random, family);
    snprintf(c->names[i], sizeof c->names[i], "candidate_%d", first + i);
    const struct emit_options emit = {.function = c->names[i]};
    c->texts[i].length = 0;
    must(emit_tree(&ctx, tree, &emit, &c->texts[i]) == CANVAS_OK, "emit");
    c->list[i] = (struct batch_candidate){c->texts[i].text, c->names[i], NULL, false};
    loop_tree_free(tree);
  }
  schedule_free(family);
}

// ---- phases of a candidate -----------------------------------------------------------------------

static void compile_all(struct candidates *c) {
  struct source *sources = mem_alloc((size_t)c->count * sizeof *sources);
  struct object *objects = mem_alloc((size_t)c->count * sizeof *objects);
  for (int i = 0; i < c->count; i++)
    sources[i] = (struct source){c->texts[i].text, c->names[i], 3, NULL, 0};
  must(compiler_build(&ctx, c->compiler, sources, c->count, TOGETHER, 0, objects) == CANVAS_OK,
       "compile");
  objects_free(objects, c->count);
  free(objects);
  free(sources);
}

static void run_all(struct candidates *c, bool early) {
  struct batch_options options = {.together = TOGETHER};
  if (early) options.limits = (struct measure_limits){.repeats = 20, .timing = 0.1, .early = true};
  must(batch_run(&ctx, c->compiler, c->expected, c->list, c->count, &options, c->verdicts) ==
           CANVAS_OK,
       "run");
  for (int i = 0; i < c->count; i++) {
    if (!c->verdicts[i].failure) continue;
    snprintf(ctx.message, sizeof ctx.message, "%s", c->verdicts[i].message);
    must(false, c->names[i]);
  }
}

static void open_candidates(struct candidates *c, int count, const char *cache) {
  c->count = count;
  must(program_parse(&ctx, program_text, strlen(program_text), &c->program) == CANVAS_OK, "parse");
  c->compiler = open_compiler(cache, false);
  const struct expected_options inputs = {.seed = 1, .compiler = c->compiler};
  must(expected_new(&ctx, c->program, &inputs, &c->expected) == CANVAS_OK, "expected");
  c->texts = mem_alloc((size_t)count * sizeof *c->texts);
  c->names = mem_alloc((size_t)count * sizeof *c->names);
  c->list = mem_alloc((size_t)count * sizeof *c->list);
  c->verdicts = mem_alloc((size_t)count * sizeof *c->verdicts);
}

static int by_median(const void *a, const void *b) {
  const double x = ((const struct verdict *)a)->median, y = ((const struct verdict *)b)->median;
  return (x > y) - (x < y);
}

// Wall time and results of batch_run, as members of the JSON object.
static void print_run(struct candidates *c, const char *name, bool early) {
  double start = clock_wall();
  run_all(c, early);
  double taken = 1e3 * (clock_wall() - start) / c->count;
  qsort(c->verdicts, (size_t)c->count, sizeof *c->verdicts, by_median);
  printf(
      ", \"%s\": {\"ms\": %.2f, \"fastest_ms\": %.3f, \"median_ms\": %.3f, \"compiler\": \"%s\"}",
      name, taken, 1e3 * c->verdicts[0].median, 1e3 * c->verdicts[c->count / 2].median,
      compiler_text(c->compiler));
}

static double seconds_in(struct timeval t) {
  return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

// Processor seconds of this process and of children that it has waited for.
static double processor_seconds(void) {
  static const int whose[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
  double sum = 0;
  for (int i = 0; i < 2; i++) {
    struct rusage u;
    if (!getrusage(whose[i], &u)) sum += seconds_in(u.ru_utime) + seconds_in(u.ru_stime);
  }
  return sum;
}

static void screen_alone(struct candidates *c, const char *cache) {
  compiler_close(c->compiler);
  c->compiler = open_compiler(cache, true);
  double start = processor_seconds();
  write_all(c, 0);
  printf("{\"candidates\": %d", c->count);
  print_run(c, "screen", true);
  printf(", \"processor_s\": %.2f}\n", processor_seconds() - start);
  compiler_close(c->compiler);
}

static void measure_candidates(struct candidates *c, const char *cache) {
  double start = clock_wall(), ms = 1e3 / c->count;
  write_all(c, 0);
  double written = clock_wall();
  compile_all(c);
  double compiled = clock_wall();
  printf("{\"candidates\": %d, \"write_ms\": %.2f, \"compile_ms\": %.2f", c->count,
         ms * (written - start), ms * (compiled - written));
  print_run(c, "measure", false);
  write_all(c, c->count);  // new names, which the cache does not hold
  print_run(c, "all", false);
  compiler_close(c->compiler);
  c->compiler = open_compiler(cache, true);
  write_all(c, 2 * c->count);
  print_run(c, "screen", true);
  printf("}\n");
  compiler_close(c->compiler);
}

int main(int count, char **words) {
  struct candidates c = {0};
  if (count > 4 && !strcmp(words[1], "steps")) {
    measure_steps(words[2], words[3], words[4], count > 5 ? words[5] : NULL);
    return 0;
  }
  int candidates = count == 4 ? atoi(words[3]) : 0;
  if (candidates < 1) {
    fprintf(stderr,
            "compiler_speed steps CACHE PROGRAM SCHEDULE|default [VALUES]\n"
            "compiler_speed candidates|screen CACHE COUNT\n");
    return 2;
  }
  open_candidates(&c, candidates, words[2]);
  if (!strcmp(words[1], "screen"))
    screen_alone(&c, words[2]);
  else
    measure_candidates(&c, words[2]);
  return 0;
}
