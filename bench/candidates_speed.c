// What a candidate costs from schedule to verdict, for bench_compiler.py: one line of JSON.
//
//     candidates_speed COUNT CACHE [screen]
//
// Candidates are drawn with a fixed seed from a family of schedules of a matrix product of about a
// millisecond. Wall time per candidate: bind it and write C; compile it, 20 to a file; load, check
// and time it; and all of that by batch_run, which compiles while it measures. `screen` is the same
// with the fastest compiler and the samples of a search: at most twenty, five of slow candidates.
// The word `screen` runs that alone and adds its processor time, compilers included. CACHE is an
// empty folder.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "../tests/c/emit_tree.h"
#include "../tests/c/random_edit.h"
#include "base/buf.h"
#include "run/batch.h"
#include "run/cache.h"

enum { TOGETHER = 20 };

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

static canvas_context ctx;

static void must(bool good, const char *what) {
  if (good) return;
  fprintf(stderr, "candidates_speed: %s: %s\n", what, ctx.message);
  exit(2);
}

// ---- the family ---------------------------------------------------------------------------------

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

// ---- the phases ---------------------------------------------------------------------------------

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

static struct compiler *open_compiler(const char *cache, bool quick) {
  const struct compiler_options options = {.cache = cache, .quick = quick};
  struct compiler *compiler;
  must(compiler_open(&ctx, &options, &compiler) == CANVAS_OK, "compiler");
  return compiler;
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

static int ascending(const void *a, const void *b) {
  const double x = ((const struct verdict *)a)->median, y = ((const struct verdict *)b)->median;
  return (x > y) - (x < y);
}

// Wall time and results of batch_run, as members of the JSON object.
static void print_run(struct candidates *c, const char *name, bool early) {
  double start = clock_wall();
  run_all(c, early);
  double taken = 1e3 * (clock_wall() - start) / c->count;
  qsort(c->verdicts, (size_t)c->count, sizeof *c->verdicts, ascending);
  printf(
      ", \"%s\": {\"ms\": %.2f, \"fastest_ms\": %.3f, \"median_ms\": %.3f, \"compiler\": \"%s\"}",
      name, taken, 1e3 * c->verdicts[0].median, 1e3 * c->verdicts[c->count / 2].median,
      compiler_text(c->compiler));
}

static double seconds_of(struct timeval t) {
  return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

// Processor seconds of this process and of children that it has waited for.
static double processor_seconds(void) {
  static const int whose[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
  double sum = 0;
  for (int i = 0; i < 2; i++) {
    struct rusage u;
    if (!getrusage(whose[i], &u)) sum += seconds_of(u.ru_utime) + seconds_of(u.ru_stime);
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

int main(int count, char **words) {
  struct candidates c = {0};
  int candidates = count > 2 ? atoi(words[1]) : 0;
  if (candidates < 1) {
    fprintf(stderr, "candidates_speed COUNT CACHE\n");
    return 2;
  }
  open_candidates(&c, candidates, words[2]);
  if (count > 3) return screen_alone(&c, words[2]), 0;
  double start = clock_wall(), ms = 1e3 / candidates;
  write_all(&c, 0);
  double written = clock_wall();
  compile_all(&c);
  double compiled = clock_wall();
  printf("{\"candidates\": %d, \"write_ms\": %.2f, \"compile_ms\": %.2f", candidates,
         ms * (written - start), ms * (compiled - written));
  print_run(&c, "measure", false);
  write_all(&c, candidates);  // new names, which the cache does not hold
  print_run(&c, "all", false);
  compiler_close(c.compiler);
  c.compiler = open_compiler(words[2], true);
  write_all(&c, 2 * candidates);
  print_run(&c, "screen", true);
  printf("}\n");
  compiler_close(c.compiler);
  return 0;
}
