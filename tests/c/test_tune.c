// Search methods on a small program: the budget is kept, nothing is measured twice, the same seed draws the
// same, a search that was ended goes on, and whatever a compiler does is somebody's verdict.
#include "run/cache.h"
#include "run/child.h"
#include "tune/finals.h"
#include "tune/method.h"
#include "tune/search_open.h"
#include "tune/journal.h"
#include "tune/mlp.h"
#include "tune/task_gradient.h"
#include "tune/tune_many.h"

#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "machines.h"

enum { TRIALS = 4 };

static canvas_context ctx;
static char folder[4096];

static const char gemm[] =
    "canvas 1\n"
    "program gemm\n"
    "in A f32 [m:24, k:20]\n"
    "in B f32 [k:20, n:64]\n"
    "C[m:24, n:64] = A[m, k] * B[k, n] // sum k:20\n"
    "out C\n";

static struct program *program_from(const char *text) {
  struct program *p;
  CHECK_INT(program_parse(&ctx, text, strlen(text), &p), CANVAS_OK, text);
  return p;
}

static const char *path_of(const char *name) {
  static char path[2][4200];
  static int turn;
  turn = !turn;
  snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
  return path[turn];
}

static struct tuned tuned_by(const char *method, const struct program *p, int trials, uint64_t seed,
                             const char *log) {
  const struct machine machine = machine_here();
  const struct tune_options options = {
      .method = method_find(method), .seed = seed, .trials = trials, .log = log};
  struct tuned t;
  CHECK_INT(tune(&ctx, p, &machine, &options, &t), CANVAS_OK, ctx.message);
  return t;
}

static struct records read_log(const char *path) {
  struct records r = {0};
  CHECK_INT(log_read(&ctx, path, &r), CANVAS_OK, ctx.message);
  CHECK_INT(r.damaged, 0, path);
  return r;
}

// ---- every method ----

static void every_method(void **state) {
  struct program *p = program_from(gemm);
  for (int i = 0; i < method_count; i++) {
    const char *name = methods[i].name;
    char log[64];
    snprintf(log, sizeof log, "%s.jsonl", name);
    struct tuned t = tuned_by(name, p, TRIALS, 1, path_of(log));
    CHECK(t.tree && t.program && t.sketches > 1 && t.size > t.sketches && t.predicted > 0, name);
    if (!strcmp(name, "oneshot")) {
      CHECK_INT(t.trials, 0, name);
      CHECK_INT(t.verdict.repeats, 0, name);
    } else {
      struct records r = read_log(path_of(log));
      CHECK_INT(t.trials, TRIALS, name);
      CHECK_INT(t.verdict.failure, FAILED_NOT, t.verdict.message);
      CHECK(t.verdict.median > 0 && t.itself > 0 && t.beside > 0, name);
      CHECK_INT(r.count, TRIALS + 1, name);  // the winner, too
      for (int a = 0; a < TRIALS; a++) {
        CHECK(r.data[a].screened && r.data[a].trial == a && r.data[a].seed == 1, name);
        for (int b = 0; b < a; b++)
          CHECK(strcmp(r.data[a].schedule, r.data[b].schedule) != 0 ||
                    strcmp(r.data[a].edits, r.data[b].edits) != 0,
                name);
      }
      CHECK(!r.data[TRIALS].screened && r.data[TRIALS].failure == FAILED_NOT, name);
      records_free(&r);
    }
    tuned_free(&t);
  }
  program_free(p);
}

// ---- seeds, and searches that are ended ----

static bool same_order(const struct records *a, const struct records *b, int count) {
  for (int i = 0; i < count; i++)
    if (strcmp(a->data[i].schedule, b->data[i].schedule) != 0) return false;
  return true;
}

static void seeds(void **state) {
  struct program *p = program_from(gemm);
  static const char *const logs[] = {"a.jsonl", "b.jsonl", "c.jsonl"};
  struct records r[3];
  for (int i = 0; i < 3; i++) {
    struct tuned t = tuned_by("random", p, 8, i == 2 ? 9 : 3, path_of(logs[i]));
    tuned_free(&t);
    r[i] = read_log(path_of(logs[i]));
  }
  CHECK(same_order(&r[0], &r[1], 8), "the same seed");
  CHECK(!same_order(&r[0], &r[2], 8), "another seed");
  for (int i = 0; i < 3; i++) records_free(&r[i]);
  program_free(p);
}

// The first lines of a log, as a killed search leaves them: with half of the next one.
static void cut_log(const char *from, const char *to, int lines) {
  FILE *in = fopen(from, "r"), *out = fopen(to, "w");
  CHECK(in && out, from);
  int c, half = 100;
  while (lines && (c = fgetc(in)) != EOF) {
    fputc(c, out);
    lines -= c == '\n';
  }
  while (half-- && (c = fgetc(in)) != EOF) fputc(c, out);
  fclose(in);
  fclose(out);
}

static void goes_on(void **state) {
  struct program *p = program_from(gemm);
  static const char *const names[] = {"random", "quick", "ga", "q"};
  for (int i = 0; i < (getenv("CANVAS_TEST_ALL") ? 4 : 2); i++) {
    char whole[64], cut[64];
    snprintf(whole, sizeof whole, "%s-whole.jsonl", names[i]);
    snprintf(cut, sizeof cut, "%s-cut.jsonl", names[i]);
    struct tuned t = tuned_by(names[i], p, 7, 5, path_of(whole));
    tuned_free(&t);
    cut_log(path_of(whole), path_of(cut), 7);
    t = tuned_by(names[i], p, 7, 5, path_of(cut));
    CHECK_INT(t.trials, 7, names[i]);
    tuned_free(&t);
    struct records a = read_log(path_of(whole)), b = read_log(path_of(cut));
    CHECK_INT(b.count, 8, names[i]);  // no trial again, and the winner
    CHECK(same_order(&a, &b, 7), names[i]);
    records_free(&a);
    records_free(&b);
    cut_log(path_of(whole), path_of(cut), 3);
    t = tuned_by(names[i], p, 7, 5, path_of(cut));
    tuned_free(&t);
    b = read_log(path_of(cut));
    CHECK_INT(b.count, 8, names[i]);
    for (int j = 0; j < 7; j++) CHECK_INT(b.data[j].trial, j, names[i]);
    records_free(&b);
  }
  program_free(p);
}

static void keep_rule(void *data, const char *rule, const char *schedule) {
  snprintf(data, 256, "%s", rule);
  CHECK(*schedule, rule);
}

// What was found for one shape is where another begins.
static void hints(void **state) {
  struct program *p = program_from(gemm), *q;
  char text[sizeof gemm];
  strcpy(text, gemm);
  for (char *at = text; (at = strstr(at, "m:24"));) memcpy(at, "m:36", 4);
  q = program_from(text);
  struct tuned t = tuned_by("quick", p, 12, 1, path_of("hints.jsonl"));
  struct records r = read_log(path_of("hints.jsonl"));
  struct buf machine = {0};
  const struct machine here = machine_here();
  machine_print(&here, &machine);
  const struct journal_run run = {
      .program = text, .machine = machine.text, .method = "quick", .seed = 1, .threads = 1};
  struct journal *j;
  CHECK_INT(journal_open(&ctx, path_of("hints.jsonl"), &run, &j), CANVAS_OK, ctx.message);
  char found[256] = "";
  journal_similar(j, keep_rule, found);
  CHECK_TEXT(found, t.rule, text);
  journal_close(j);
  buf_free(&machine);
  records_free(&r);
  tuned_free(&t);
  program_free(p);
  program_free(q);
}

static bool stop_at_once(const struct search *s, void *data) {
  return s->trials.count == 0 || data;
}

static void is_stopped(void **state) {
  struct program *p = program_from(gemm);
  const struct machine machine = machine_here();
  const struct tune_options options = {
      .method = method_find("random"), .trials = 100, .progress = stop_at_once};
  struct tuned t;
  CHECK_INT(tune(&ctx, p, &machine, &options, &t), CANVAS_NONE, "");
  CHECK_TEXT(ctx.message, "the search was stopped", "");
  CHECK(t.trials <= 20 && !t.tree && !t.program, "nothing is left to free");
  program_free(p);
}

// ---- what runs is stopped ----

static bool remember(const struct search *s, void *data) {
  *(int *)data = s->trials.count;
  return true;
}

static bool has_trials(void *data) {
  return *(const int *)data > 0;
}

// The best trial of the first batch wins, without finals; what the second was at is no trial and not logged.
static void is_cut(void **state) {
  struct program *p = program_from(gemm);
  const struct machine machine = machine_here();
  int count = 0;
  const struct tune_options options = {.method = method_find("random"),
                                       .trials = 1000,
                                       .log = path_of("cut.jsonl"),
                                       .progress = remember,
                                       .data = &count};
  struct tuned t;
  child_stop_when(has_trials, &count);
  CHECK_INT(tune(&ctx, p, &machine, &options, &t), CANVAS_OK, ctx.message);
  child_stop_when(NULL, NULL);
  CHECK(!child_stopped(), "it was taken back");
  CHECK(t.tree && t.program && t.trials == count && t.trials < 1000, t.rule);
  CHECK(t.verdict.failure == FAILED_NOT && t.verdict.median > 0 && t.itself == 0, t.rule);
  CHECK_INT(t.failures[FAILED_TIMEOUT], 0, "cut");
  struct records r = read_log(path_of("cut.jsonl"));
  CHECK_INT(r.count, t.trials, "records");
  for (int i = 0; i < r.count; i++) CHECK(r.data[i].screened, r.data[i].rule);
  records_free(&r);
  tuned_free(&t);
  program_free(p);
}

static bool always(void *data) {
  (*(int *)data)++;
  return true;
}

// Nothing is tried, whoever searches, in this thread or in one of several.
static void is_cut_at_once(void **state) {
  const struct machine machine = machine_here();
  for (int i = 0; i < method_count; i++) {
    struct tune_task tasks[2] = {{.program = program_from(gemm), .weight = 1},
                                 {.program = program_from(gemm), .weight = 1}};
    const struct tune_options options = {.method = &methods[i], .log = path_of("never.jsonl")};
    struct tuned t;
    int asked = 0;
    child_stop_when(always, &asked);
    CHECK_INT(tune(&ctx, tasks[0].program, &machine, &options, &t), CANVAS_NONE, methods[i].name);
    CHECK_TEXT(ctx.message, "the search was stopped", methods[i].name);
    CHECK_INT(tune_many(&ctx, tasks, 2, &machine, &options), CANVAS_OK, ctx.message);
    child_stop_when(NULL, NULL);
    CHECK(asked > 0, methods[i].name);
    for (int k = 0; k < 2; k++) {
      CHECK_INT(tasks[k].status, CANVAS_NONE, methods[i].name);
      CHECK_TEXT(tasks[k].message, "the search was stopped", methods[i].name);
      program_free((struct program *)(uintptr_t)tasks[k].program);
    }
  }
  struct records r = {0};
  CHECK(log_read(&ctx, path_of("never.jsonl"), &r) != CANVAS_OK || !r.count, "no trial");
  records_free(&r);
}

// Trials are of one image.
static const char images[] =
    "canvas 1\nprogram p\nin X f32 [n:4, h:1024, k:256]\n"
    "in W f32 [k:256, c:1024] const\n"
    "Y[n:4, h:1024, c:1024] = X[n, h, k] * W[k, c] // sum k:256\nout Y\n";

// From the end of the trials on, the question after so many more is answered with stop.
struct countdown {
  int trials, of, questions;
  bool stopped;
};

static bool count_trials(const struct search *s, void *data) {
  struct countdown *c = data;
  c->trials = s->trials.count;
  return true;
}

static bool is_zero(void *data) {
  struct countdown *c = data;
  if (c->trials >= c->of) c->stopped = c->questions-- <= 0;
  return c->stopped;
}

// Every figure was measured, or there is none. Only the end of the finals takes a time with cold caches.
static void has_true_figures(const struct tuned *t, int n) {
  char where[64];
  const struct verdict *v = &t->verdict;
  snprintf(where, sizeof where, "stopped at question %d", n);
  CHECK(isfinite(t->predicted) && t->predicted > 0, where);
  CHECK(v->failure == FAILED_NOT && isfinite(v->median), where);
  CHECK(t->tried < t->images || v->cold > 0 || (v->repeats && v->median > 0), where);
  if (v->cold > 0)
    CHECK(isfinite(t->beside) && isfinite(t->itself) && t->beside > 0 && t->itself > 0, where);
  else
    CHECK(t->beside == 0 && t->itself == 0 && t->first == 0 && !t->whole, where);
  CHECK(v->cold > 0 || t->tried == t->images || !v->repeats, where);
}

// A default that failed after its rounds has no time, and no finalist a ratio to it.
static void final_times(void **state) {
  static const struct {
    const char *what;
    int first, second; /* rounds */
    double beside, itself;
  } rows[] = {
      {"both", 2, 2, 2, 1},
      {"another number of rounds", 2, 1, 2, 1},
      {"the default failed", -1, 2, 0, 1},
      {"the default never ran", 0, 2, 0, 1},
  };
  CHECK_ROWS (rows, row) {
    struct finals f = {.count = 2};
    f.of[0] = (struct finalist){.times = {2, 2}, .rounds = row->first, .scale = 1};
    f.of[1] = (struct finalist){.times = {1, 1}, .rounds = row->second, .scale = 1};
    double beside, itself;
    finals_times(&f, 1, &beside, &itself);
    CHECK(beside == row->beside && itself == row->itself, row->what);
  }
}

// As a program alone, or as one of several; how many questions there were, -1: it was stopped.
static int tune_stopped_at(const struct program *p, int n, bool together) {
  const struct machine machine = machine_here();
  struct countdown count = {.of = 4, .questions = n};
  const struct tune_options options = {.method = method_find("random"),
                                       .trials = 4,
                                       .log = path_of("stopped.jsonl"),
                                       .progress = count_trials,
                                       .data = &count};
  struct tune_task task = {.program = p, .weight = 1};
  child_stop_when(is_zero, &count);
  if (together)
    CHECK_INT(tune_many(&ctx, &task, 1, &machine, &options), CANVAS_OK, ctx.message);
  else
    task.status = tune(&ctx, p, &machine, &options, &task.tuned);
  child_stop_when(NULL, NULL);
  CHECK_INT(task.status, CANVAS_OK, together ? task.message : ctx.message);
  has_true_figures(&task.tuned, n);
  tuned_free(&task.tuned);
  return count.stopped ? -1 : n - count.questions;
}

// Stopped at any question of the finals; trials may be of few images.
static void stopped_finals(void **state) {
  struct program *p = program_from(gemm), *many = program_from(images);
  tune_stopped_at(p, 1000000, false); /* compiles the finalists */
  int all = tune_stopped_at(p, 1000000, true);
  bool every = getenv("CANVAS_TEST_ALL") != NULL;
  int step = all / 16 + 1, n = all;
  while (tune_stopped_at(p, n, false) >= 0) n -= step; /* while the winner is timed, at last */
  for (; n > 0; n -= every ? 1 : 8 * step) tune_stopped_at(p, n, n % 2);
  tune_stopped_at(p, 0, true);
  if (every) tune_stopped_at(many, 0, false);
  program_free(p);
  program_free(many);
}

// ---- many images ----

static void few_images(void **state) {
  struct program *p = program_from(
      "canvas 1\nprogram p\nin X f32 [n:40, h:64, k:256]\n"
      "in W f32 [k:256, c:64] const\n"
      "Y[n:40, h:64, c:64] = X[n, h, k] * W[k, c] // sum k:256\nout Y\n");
  struct tuned t = tuned_by("random", p, 2, 1, NULL);
  CHECK_INT(t.images, 40, "n");
  CHECK_INT(t.tried, 40, "an image is of less than 0.05 GFLOPs");
  tuned_free(&t);
  program_free(p);
}

// ---- several programs ----

#define TASK(often, tried, time, ...) \
  {.weight = often, .flops = 1e6, .trials = tried, .best = time, __VA_ARGS__}
static const struct {
  const char *what;
  struct task_state tasks[2];
  int next;
} turns[] = {
    {"what was never tried", {TASK(1, 9, 1e-3), TASK(1, 0, INFINITY)}, 1},
    {"... and of two of these what is expected to take longer, ...",
     {TASK(1, 0, INFINITY, .expected = 1e-3), TASK(1, 0, INFINITY, .expected = 2e-3)},
     1},
    {"... as often as it runs",
     {TASK(5, 0, INFINITY, .expected = 1e-3), TASK(1, 0, INFINITY, .expected = 2e-3)},
     0},
    {"what takes longer", {TASK(1, 20, 1e-3), TASK(1, 20, 2e-3)}, 1},
    {"what runs more often", {TASK(5, 20, 1e-3), TASK(1, 20, 2e-3)}, 0},
    {"what had fewer trials", {TASK(1, 20, 1e-3), TASK(1, 80, 2e-3)}, 0},
    {"what just fell",
     {TASK(1, 20, 1e-3, .before = {3e-3}, .trials_before = {10}),
      TASK(1, 20, 1e-3, .before = {1e-3}, .trials_before = {10})},
     0},
    {"what is slower than what is similar", {TASK(1, 400, 1e-3), TASK(1, 400, 9e-3)}, 1},
    {"all but what has ended", {TASK(1, 20, 1e-3), TASK(9, 20, 9e-3, .ended = true)}, 0},
    {"what was never correct comes last", {TASK(1, 20, INFINITY), TASK(1, 20, 1e-3)}, 1},
    {"nothing", {TASK(1, 20, 1e-3, .ended = true), TASK(1, 20, 1e-3, .ended = true)}, -1},
};

static void gradient(void **state) {
  CHECK_ROWS (turns, row) {
    CHECK_INT(task_next(row->tasks, 2), row->next, row->what);
  }
  struct task_state alone[] = {TASK(1, 400, 9e-3), TASK(1, 400, 1e-3, .similar = 1)};
  double without = task_gradient(alone, 2, 0);
  alone[1].similar = 0;
  CHECK(task_gradient(alone, 2, 0) < without, "a similar program that is faster");
}

static void together(void **state) {
  char text[sizeof gemm];
  strcpy(text, gemm);
  for (char *at = text; (at = strstr(at, "m:24"));) memcpy(at, "m:96", 4);
  struct tune_task tasks[2] = {{.program = program_from(gemm), .weight = 1e6},
                               {.program = program_from(text), .weight = 1}};
  const struct machine machine = machine_here();
  const struct tune_options options = {
      .method = method_find("random"), .seed = 1, .trials = 60, .log = path_of("many.jsonl")};
  CHECK_INT(tune_many(&ctx, tasks, 2, &machine, &options), CANVAS_OK, ctx.message);
  for (int i = 0; i < 2; i++) {
    CHECK_INT(tasks[i].status, CANVAS_OK, tasks[i].message);
    CHECK_INT(tasks[i].tuned.verdict.failure, FAILED_NOT, tasks[i].tuned.verdict.message);
  }
  CHECK_INT(tasks[0].tuned.trials + tasks[1].tuned.trials, 60, "the budget is shared");
  CHECK(tasks[1].tuned.trials <= 20, "a batch each, then what runs a million times");
  struct records r = read_log(path_of("many.jsonl"));
  CHECK_INT(r.count, 62, "trials and winners");
  records_free(&r);
  for (int i = 0; i < 2; i++) {
    tuned_free(&tasks[i].tuned);
    program_free((struct program *)(uintptr_t)tasks[i].program);
  }
}

// ---- compilers that misbehave ----

static void write_file(const char *name, const char *text) {
  FILE *f = fopen(path_of(name), "w");
  fputs(text, f);
  fclose(f);
  chmod(path_of(name), 0700);
}

static void set_compiler(const char *name, const char *text) {
  write_file(name, text);
  setenv("CANVAS_CC", path_of(name), 1);
}

// The default, which comes first in the finals, is slow for one image, and everything else is for all.
static const char fickle[] =
    "#!/bin/sh\n"
    "[ \"$1\" = --version ] && exec gcc --version\n"
    "slow=0; grep -q 'X f32 \\[n:4' unit.c && slow='[1-9]'\n"
    "grep -q candidate unit.c && sed -i \"s/^int candidate_$slow(.*{\\$/&\\n"
    "for (volatile long z = 0; z < 100000000; z++);/\" unit.c\n"
    "exec gcc \"$@\"\n";

// What is fast for few images may not be for all: only finals for all of them know.
static void whole_finals(void **state) {
  struct program *p = program_from(images);
  set_compiler("fickle", fickle);
  struct tuned t = tuned_by("random", p, 2, 1, NULL);
  unsetenv("CANVAS_CC");
  CHECK_INT(t.images, 4, "n");
  CHECK_INT(t.tried, 1, "0.4 GFLOPs are less than one image");
  CHECK_TEXT(t.rule, "default", "");
  CHECK_INT(t.verdict.failure, FAILED_NOT, t.verdict.message);
  CHECK(t.whole >= 2 && t.itself > t.verdict.median / 2, "both were timed for all");
  CHECK(t.first > 1.5 * t.itself, "what seemed best was slower");
  tuned_free(&t);
  program_free(p);
}

// Weights of a convolution of fewer products are transformed to four times as many: several images share them, which no
// trial of one image shows. What the model likes best comes to the finals of all; by rates that this machine does not
// change.
static void favourite_of_all(void **state) {
  struct program *p = program_from(
      "canvas 1\nprogram p\nin X f32 [n:4, h:16, w:16, c:256]\n"
      "in W f32 [kh:3, kw:3, c:256, o:256] const\n"
      "Y[n:4, h:14, w:14, o:256] = X[n, h+kh, w+kw, c] * W[kh, kw, c, o] // sum kh:3, kw:3, c:256\n"
      "out Y\n");
  const struct tune_options options = {
      .method = method_find("quick"), .seed = 1, .threads = 1, .winograd = true};
  struct search s;
  struct ranking list = {0};
  CHECK_INT(search_open(&ctx, p, &machine_avx2, &options, &s), CANVAS_OK, ctx.message);
  CHECK_INT(s.tried, 1, "an image is of 0.2 GFLOPs");
  s.rates = rates_likely(&machine_avx2);
  method_shortlist(&s, &list);
  CHECK(s.for_all, "it is for several images");
  for (int i = 0; i < list.count; i++)
    CHECK(search_predict(&s, s.favourite) <= list.data[i].predicted, "nothing is liked better");
  struct loop_tree *tree = search_bind(&s, s.favourite);
  CHECK(tree, "it is legal for all images");
  CHECK(!search_for_few(&s, s.favourite.sketch, tree), "and not for one");
  free(list.data);
  search_close(&s);
  program_free(p);
}

// Every third file ends it, every fifth is compiled to code that crashes, every seventh to wrong code.
static const char faulty[] =
    "#!/bin/sh\n"
    "[ \"$1\" = --version ] && exec gcc --version\n"
    "grep -q candidate unit.c || exec gcc \"$@\"\n"
    "n=$(cat \"$FAULTS\" 2>/dev/null || echo 0); n=$((n + 1)); echo $n >\"$FAULTS\"\n"
    "[ $((n % 3)) = 0 ] && kill -9 $$\n"
    "[ $((n % 5)) = 0 ] && sed -i 's/^int \\(candidate_[0-9]*\\)(.*{$/&\\n  __builtin_trap();/' "
    "unit.c\n"
    "[ $((n % 7)) = 0 ] && sed -i 's/ = 0\\.0*f\\?;/ = 1.0f;/; s/ + / - /' unit.c\n"
    "exec gcc \"$@\"\n";

static void faults(void **state) {
  struct program *p = program_from(gemm);
  setenv("FAULTS", path_of("count"), 1);
  set_compiler("faulty", faulty);
  struct tuned t;
  const struct machine machine = machine_here();
  const struct tune_options options = {
      .method = method_find("random"), .seed = 2, .trials = 40, .log = path_of("faults.jsonl")};
  canvas_status status = tune(&ctx, p, &machine, &options, &t);
  unsetenv("CANVAS_CC");
  unsetenv("FAULTS");
  struct records r = read_log(path_of("faults.jsonl"));
  int ok = 0, failed = 0;
  for (int i = 0; i < r.count; i++) {
    if (!r.data[i].screened) continue;
    ok += r.data[i].failure == FAILED_NOT;
    failed += r.data[i].failure != FAILED_NOT;
  }
  CHECK_INT(ok + failed, 40, "none is lost");
  CHECK(ok > 0 && failed > 0, "some of each");
  CHECK(status == CANVAS_OK ? t.verdict.failure == FAILED_NOT || t.verdict.message[0]
                            : ctx.message[0],
        "a wrong one never wins");
  if (status == CANVAS_OK) tuned_free(&t);
  records_free(&r);
  program_free(p);
}

// A thousand candidates, each with a deed of its own by its text: every fifth is right, the others crash, hang,
// store too little, or are not compiled. The compiler dies or hangs on some files, and is not to be believed.
static const char misdeeds[] =
    "import re, sys, zlib\n"
    "deeds = ['__builtin_trap();', 'for (;;) __asm__ volatile(\"\");', 'return 0;', '#error no']\n"
    "text = open('unit.c').read()\n"
    "def worse(m):\n"
    "    body = text[m.end():text.find('\\n}\\n', m.end())]\n"
    "    kind = zlib.crc32(body.encode()) % 50\n"
    "    deed = 'T' if kind == 1 else 'LXE'[kind % 3] if kind >= 12 else ''\n"
    "    names = {'T': deeds[1], 'L': deeds[0], 'X': deeds[2], 'E': deeds[3], '': ''}\n"
    "    return m[0] + '\\n' + names[deed] + '\\n'\n"
    "out = re.sub(r'^int candidate_\\d+\\([^\\n]*\\{$', worse, text, flags=re.M)\n"
    "open('unit.c', 'w').write(out)\n"
    "sys.exit(7 if zlib.crc32(text.encode()) % 11 == 0 else 0)\n";
static const char misled[] =
    "#!/bin/sh\n"
    "[ \"$1\" = --version ] && exec gcc --version\n"
    "grep -q '^int candidate_' unit.c || exec gcc \"$@\"\n"
    "python3 \"$FAULTS\" || kill -9 $$\n"
    "exec gcc \"$@\"\n";

// 1536 of them.
static const char any_tile[] =
    "mo, no, k, mi:?:peel, ni:?:peel => @C = {mo, mi}/m, {no, ni}/n // k\n";

static void a_thousand(void **state) {
  enum { ALL = 1000 };
  if (!getenv("CANVAS_TEST_ALL")) skip();
  char log[4200];
  snprintf(log, sizeof log, "%s", path_of("all.jsonl"));
  struct program *p = program_from(gemm);
  const struct machine machine = machine_here();
  const struct tune_options options = {
      .method = method_find("random"), .seed = 1, .trials = ALL, .sketch = any_tile, .log = log};
  write_file("misdeeds.py", misdeeds);
  write_file("misled", misled);
  setenv("FAULTS", path_of("misdeeds.py"), 1);
  setenv("CANVAS_CC", path_of("misled"), 1);
  double start = clock_wall();
  struct tuned t;
  canvas_status status = tune(&ctx, p, &machine, &options, &t);
  double seconds = clock_wall() - start;
  unsetenv("CANVAS_CC");
  unsetenv("FAULTS");
  CHECK_INT(status, CANVAS_OK, ctx.message);
  struct records r = read_log(log);
  int of[FAILURES] = {0}, screened = 0;
  for (int i = 0; i < r.count; i++) {
    screened += r.data[i].screened;
    if (r.data[i].screened) of[r.data[i].failure]++;
  }
  print_message("%.0f s:", seconds);
  for (int i = 0; i < FAILURES; i++) print_message(" %d %s", of[i], failure_name(i));
  print_message("\n");
  CHECK_INT(screened, ALL, "none is lost");
  CHECK(of[FAILED_NOT] && of[FAILED_COMPILE] && of[FAILED_CRASH] && of[FAILED_TIMEOUT] &&
            of[FAILED_WRONG],
        "some of each");
  CHECK_INT(t.verdict.failure, FAILED_NOT, t.verdict.message);
  CHECK(seconds < 1800, "it ends in time");
  tuned_free(&t);
  records_free(&r);
  program_free(p);
}

// In the finals the default is slow. The others fail where their output is in a third place, after those where they
// are checked and timed, as when the winner runs with cold caches.
static const char unlucky[] =
    "#!/bin/sh\n"
    "[ \"$1\" = --version ] && exec gcc --version\n"
    "if [ \"$(grep -c '^int candidate_[0-9]*(' unit.c)\" = 1 ]; then\n"
    "  sed -i 's/^int candidate_0(.*{$/&\\nfor (volatile long z = 0; z < 1000000; z++);/' unit.c\n"
    "  sed -i 's/^int candidate_[1-9](.*C) {$/&\\nstatic const void *first, *timed; "
    "if (!first) first = C; if (first != C \\&\\& !timed) timed = C; "
    "if (first != C \\&\\& timed != C) return 3;/' unit.c\n"
    "fi\n"
    "exec gcc \"$@\"\n";

static void next_winner(void **state) {
  struct program *p = program_from(gemm);
  set_compiler("unlucky", unlucky);
  struct tuned t = tuned_by("random", p, 6, 1, path_of("unlucky.jsonl"));
  unsetenv("CANVAS_CC");
  struct records r = read_log(path_of("unlucky.jsonl"));
  CHECK(r.count >= 8, "six trials, winners that fail, the next one");
  for (int i = 6; i < r.count - 1; i++) {
    CHECK_INT(r.data[i].failure, FAILED_RUN, r.data[i].message);
    CHECK(strcmp(r.data[i].schedule, r.data[i + 1].schedule) != 0 ||
              strcmp(r.data[i].edits, r.data[i + 1].edits) != 0,
          "another schedule");
  }
  CHECK_INT(r.data[r.count - 1].failure, FAILED_NOT, r.data[r.count - 1].message);
  CHECK_TEXT(t.rule, "default", "the last one");
  CHECK_INT(t.verdict.failure, FAILED_NOT, t.verdict.message);
  records_free(&r);
  tuned_free(&t);
  program_free(p);
}

// A file of one candidate alone, as finals have them, is counted.
static const char counted[] =
    "#!/bin/sh\n"
    "[ \"$1\" = --version ] && exec gcc --version\n"
    "[ \"$(grep -c '^int candidate_[0-9]*(' unit.c)\" = 1 ] && echo >>\"$FAULTS\"\n"
    "[ -n \"$RUN\" ] && sed -i 's/^int candidate_[0-9]*(.*{$/#include <time.h>\\n&\\n"
    "for (clock_t z = clock(); clock() - z < '$RUN';) {}/' unit.c\n"
    "exec gcc \"$@\"\n";

static int count_files(void) {
  struct buf lines = {0};
  int count = file_read(path_of("files"), 1000, &lines) ? (int)lines.length : 0;
  buf_free(&lines);
  return count;
}

static double by_files(void *data) {
  return *(double *)data * count_files();
}

// Where compilers or runs take long there are fewer finalists, but for the default and the best one. The clock is one
// by which such a file takes so many seconds, and nothing else takes any. A run takes longer than the model says.
static void finals_in_time(void **state) {
  static struct row {
    double each, seconds;
    int files;
    const char *run; /* microseconds */
  } rows[] = {{0.1, 10, 6, ""}, {1, 8, 6, ""},   {1, 4, 3, ""},         {1, 3, 2, ""},
              {1, 0.5, 2, ""},  {100, 4, 2, ""}, {0.1, 2.3, 4, "30000"}};
  const struct machine machine = machine_here();
  setenv("FAULTS", path_of("files"), 1);
  setenv("CANVAS_CACHE", path_of("cache-of-finals"), 1);
  set_compiler("counted", counted);
  CHECK_ROWS (rows, row) {
    char what[64], text[256];
    struct tune_options options = {.method = method_find("random"), .seed = 1, .trials = 6};
    struct tuned t;
    options.seconds = row->seconds;
    options.clock = by_files;
    double each = row->each;
    options.data = &each;
    snprintf(what, sizeof what, "%g s of %g s", row->each, row->seconds);
    snprintf(text, sizeof text, "canvas 1\nprogram p%d%s", (int)(row - rows), strstr(gemm, "\nin"));
    struct program *p = program_from(text);  // by a name of its own nothing of it is in the cache
    setenv("RUN", row->run, 1);
    unlink(path_of("files"));
    CHECK_INT(tune(&ctx, p, &machine, &options, &t), CANVAS_OK, ctx.message);
    CHECK(t.trials >= 4, what);
    CHECK_INT(count_files(), row->files, what);
    CHECK(t.beside > 0, "the default ran beside it");
    tuned_free(&t);
    program_free(p);
  }
  unsetenv("CANVAS_CC");
  unsetenv("FAULTS");
  unsetenv("RUN");
  setenv("CANVAS_CACHE", path_of("cache"), 1);
}

static double is_late(void *data) {
  return 1000;
}

// Whatever came before them, some trials are made.
static void some_trials(void **state) {
  struct program *p = program_from(gemm);
  const struct machine machine = machine_here();
  for (int i = 0; i < method_count; i++) {
    if (!methods[i].trials) continue;
    const struct tune_options options = {.method = &methods[i], .seconds = 1, .clock = is_late};
    struct tuned t;
    CHECK_INT(tune(&ctx, p, &machine, &options, &t), CANVAS_OK, ctx.message);
    CHECK_INT(t.trials, 4, methods[i].name);
    CHECK(t.beside > 0 && t.verdict.failure == FAILED_NOT, methods[i].name);
    tuned_free(&t);
  }
  program_free(p);
}

// ---- patience ----

/* What the trial at `i` of a log took; INFINITY: it failed. */
static double time_of_record(const struct records *r, int i) {
  return r->data[i].failure == FAILED_NOT ? r->data[i].median : INFINITY;
}

/* The last trials are none the better, and before them no run of trials was as long. */
static void patience(void **state) {
  enum { PATIENCE = 3 };
  struct program *p = program_from(gemm);
  const struct machine machine = machine_here();
  const struct tune_options options = {.method = method_find("random"),
                                       .seed = 1,
                                       .trials = 300,
                                       .patience = PATIENCE,
                                       .timeout = 5,
                                       .together = 2,
                                       .log = path_of("patience.jsonl")};
  struct tuned t;
  CHECK_INT(tune(&ctx, p, &machine, &options, &t), CANVAS_OK, ctx.message);
  struct records r = read_log(path_of("patience.jsonl"));
  int best = 0;
  for (int i = 1; i < t.trials; i++) {
    CHECK(i - best <= PATIENCE, "it ends in time");
    if (time_of_record(&r, i) < time_of_record(&r, best)) best = i;
  }
  CHECK_INT(t.trials - 1 - best, PATIENCE, "so many were not better");
  records_free(&r);
  tuned_free(&t);
  program_free(p);
}

// ---- the network of q ----

static void learns(void **state) {
  struct random r;
  random_open(&r, 1, RANDOM_TUNE, 0);
  struct mlp *m = mlp_new(2, 3, &r);
  float out[3];
  for (int i = 0; i < 4000; i++) {
    float in[2] = {(float)random_below(&r, 2), (float)random_below(&r, 2)};
    mlp_learn(m, in, 0, in[0] != in[1]);
    mlp_learn(m, in, 2, in[0] + 2 * in[1]);
  }
  for (int i = 0; i < 4; i++) {
    float in[2] = {(float)(i & 1), (float)(i >> 1)};
    mlp_run(m, in, out);
    CHECK_NEAR(out[0], in[0] != in[1], 0.2, "exclusive or");
    CHECK_NEAR(out[2], in[0] + 2 * in[1], 0.2, "a sum");
  }
  mlp_free(m);
}

static int set_up(void **state) {
  if (!temporary_folder(folder, sizeof folder)) return -1;
  return setenv("CANVAS_CACHE", path_of("cache"), 1);
}

static int tear_down(void **state) {
  char command[4300];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command);
}

int main(void) {
  if (getenv("CANVAS_TEST")) cmocka_set_test_filter(getenv("CANVAS_TEST"));
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_method),     cmocka_unit_test(seeds),
      cmocka_unit_test(goes_on),          cmocka_unit_test(hints),
      cmocka_unit_test(few_images),       cmocka_unit_test(whole_finals),
      cmocka_unit_test(favourite_of_all), cmocka_unit_test(faults),
      cmocka_unit_test(next_winner),      cmocka_unit_test(learns),
      cmocka_unit_test(is_stopped),       cmocka_unit_test(is_cut),
      cmocka_unit_test(stopped_finals),   cmocka_unit_test(final_times),
      cmocka_unit_test(is_cut_at_once),   cmocka_unit_test(gradient),
      cmocka_unit_test(together),         cmocka_unit_test(patience),
      cmocka_unit_test(a_thousand),       cmocka_unit_test(finals_in_time),
      cmocka_unit_test(some_trials)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
