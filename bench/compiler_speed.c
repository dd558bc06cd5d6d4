// What the compiler's own steps cost, for bench_compiler.py: one line of JSON for a bound schedule.
//
//     compiler_speed PROGRAM SCHEDULE|default CACHE [VALUES]
//
// Each step is repeated for a fixed processor time, five times; a rate is the median of the five,
// in calls per second. An edit is one split, mark or reorder and the check of the whole schedule;
// rejected edits count, too. `compile` is the wall time of an installed compiler per candidate:
// variants of the schedule (random legal edits with a fixed seed), ten to a file, none cached.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../tests/c/emit_tree.h"
#include "../tests/c/random_edit.h"
#include "base/buf.h"
#include "explain/explain.h"
#include "run/cache.h"
#include "run/compiler.h"

enum { ROUNDS = 5, CANDIDATES = 20, TOGETHER = 10 };
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
  struct compiler_options options = {.cache = cache};
  struct compiler *compiler;
  struct source sources[CANDIDATES];
  struct object objects[CANDIDATES];
  struct buf texts[CANDIDATES] = {0};
  char names[CANDIDATES][32];
  must(compiler_open(&ctx, &options, &compiler) == CANVAS_OK, "compiler");
  int pointers = s->program->inputs.count + s->program->outputs.count;
  for (int i = 0; i < CANDIDATES; i++) {
    struct loop_tree *tree = variant(s);
    snprintf(names[i], sizeof names[i], "candidate_%d", i);
    struct emit_options emit = {.function = names[i]};
    must(emit_tree(&ctx, tree, &emit, &texts[i]) == CANVAS_OK, "emit");
    sources[i] = (struct source){texts[i].text, names[i], pointers, NULL, 0};
    loop_tree_free(tree);
  }
  double start = seconds_of(CLOCK_MONOTONIC);
  must(compiler_build(&ctx, compiler, sources, CANDIDATES, TOGETHER, 0, objects) == CANVAS_OK,
       "compile");
  double taken = (seconds_of(CLOCK_MONOTONIC) - start) / CANDIDATES;
  for (int i = 0; i < CANDIDATES; i++) {
    if (!objects[i].path) snprintf(ctx.message, sizeof ctx.message, "%s", objects[i].message);
    must(objects[i].path, "compile");
    buf_free(&texts[i]);
  }
  objects_free(objects, CANDIDATES);
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

int main(int count, char **words) {
  if (count < 4) {
    fprintf(stderr, "compiler_speed PROGRAM SCHEDULE|default CACHE [VALUES]\n");
    return 2;
  }
  struct subject s = {0};
  open_subject(&s, words[1], words[2], count > 4 ? words[4] : NULL);
  printf("{\"bind\": %.0f, ", rate_of(bind_once, &s));
  printf("\"edit\": %.0f, ", rate_of(edit_once, &s));
  printf("\"emit\": %.0f, ", rate_of(emit_once, &s));
  printf("\"explain\": %.0f, ", rate_of(explain_once, &s));
  printf("\"compile_ms\": %.1f}\n", 1e3 * compile_seconds(&s, words[3]));
  loop_tree_free(s.tree);
  schedule_free(s.schedule);
  program_free(s.program);
  return 0;
}
