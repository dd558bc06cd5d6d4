/* A candidate in a child of its own. See measure.h. */
#include "run/measure.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "base/memory.h"
#include "run/block.h"
#include "run/child.h"
#include "run/compiler.h"

enum { SECONDS = 10, TIMING = 1, REPEATS = 30, REPEATS_LEAST = 5, REPEATS_MOST = 1000 };
enum { CALLS_MOST = 1 << 20 };
enum { OPENMP_FILE = 4096 }; /* bytes that libomp may write while it is loaded */
#define MEMORY ((int64_t)1 << 30)
#define THREAD_MEMORY \
  ((int64_t)256 << 20) /* addresses for a thread's stack and its part of the heap */
#define SAMPLE 20e-6   /* seconds: below that the clock itself is seen */

enum stage { STAGE_LOAD, STAGE_FIRST, STAGE_SECOND, STAGE_TIMED, STAGES };

/* What the child answers in shared memory. It is believed if `seal` fits the rest. */
struct answer {
  uint64_t token; /* the parent's, of this child alone */
  int stage;      /* how far it came */
  struct verdict verdict;
  uint64_t seal;
};

struct trial {
  const struct expected *e;
  const char *path, *function;
  const struct measure_prepare *prepare; /* NULL: nothing */
  struct block packed;                   /* in the child: what it makes */
  void *object;                          /* ... and what was loaded */
  struct measure_limits limits;
  struct answer *answer;
  uint64_t token;
  int (*call)(void *const *pointers);
  void (*set_threads)(int); /* of OpenMP; NULL: the code has no parallel loop */
  void **pointers;          /* inputs, then outputs */
  unsigned char **first;    /* what the first run made of each output */
};

static uint64_t seal_of(const struct answer *a, uint64_t token) {
  const unsigned char *bytes = (const unsigned char *)&a->verdict;
  uint64_t h = token ^ UINT64_C(0xCBF29CE484222325);
  for (size_t i = 0; i < sizeof a->verdict; i++) h = (h ^ bytes[i]) * UINT64_C(0x100000001B3);
  return h;
}

/* ---- in the child ---------------------------------------------------------------------------- */

/* What is not written first holds zeros by luck only: until the next call, `byte` stands in all that
 * malloc gives, and now in the stack below; as a number of any type it is huge. 0: as it comes.
 * Inlined, it would spoil its caller's frame only. */
#if defined(__GNUC__)
__attribute__((noinline, no_sanitize_address))
#endif
static void spoil_memory(int byte) {
  volatile unsigned char below[1 << 18];
  for (size_t i = 0; byte && i < sizeof below; i++) below[i] = (unsigned char)byte;
#ifdef __GLIBC__
  mallopt(M_PERTURB, byte ? byte ^ 0xFF : 0);
#endif
}

/* Afterwards no file is written any more. */
static void end_loading(void) {
  const struct rlimit nothing = {0, 0};
  setrlimit(RLIMIT_FSIZE, &nothing);
}

static bool load(struct trial *t, struct verdict *v) {
  char name[256];
  setenv("OMP_NUM_THREADS", "1", 1);
  void *object = dlopen(t->path, RTLD_NOW | RTLD_LOCAL);
  if (!object) {
    verdict_fail(v, FAILED_LOAD, "%.900s", dlerror());
    return false;
  }
  snprintf(name, sizeof name, "%s%s", COMPILER_CALL, t->function);
  t->object = object;
  *(void **)&t->call = dlsym(object, name);
  if (!t->call) verdict_fail(v, FAILED_LOAD, "it has no function '%.200s'", t->function);
  *(void **)&t->set_threads = dlsym(object, "omp_set_num_threads");
  if (t->set_threads) t->set_threads(1); /* where a runtime was there before us */
  end_loading();
  return t->call != NULL;
}

/* Of NAME: inputs, what was prepared, outputs. */
static void set_pointers(struct trial *t) {
  int at = 0;
  for (int i = 0; i < t->e->inputs; i++)
    if (!t->prepare || t->prepare->rest[i]) t->pointers[at++] = t->e->input[i].data;
  if (t->prepare) t->pointers[at++] = t->packed.data;
  for (int i = 0; i < t->e->outputs; i++) t->pointers[at++] = t->e->output[i].memory.data;
}

/* NAME_prepare fills its memory, once; from then on that can only be read. */
static bool prepare(struct trial *t, struct verdict *v) {
  char name[256];
  int (*call)(void *const *pointers), at = 0;
  if (!t->prepare) return true;
  snprintf(name, sizeof name, "%s%s_prepare", COMPILER_CALL, t->function);
  *(void **)&call = dlsym(t->object, name);
  if (!call) verdict_fail(v, FAILED_LOAD, "it has no function '%.200s'", name);
  if (call && !block_new(&t->packed, (size_t)t->prepare->bytes, true))
    verdict_fail(v, FAILED_MEMORY, "there is no memory for what it prepares");
  if (v->failure) return false;
  block_poison(&t->packed, PROGRAM_F32, 0);
  for (int i = 0; i < t->e->inputs; i++)
    if (t->prepare->prepare[i]) t->pointers[at++] = t->e->input[i].data;
  t->pointers[at] = t->packed.data;
  int status = call(t->pointers);
  if (status)
    verdict_fail(v, FAILED_RUN, "it answers %d where it prepares", status);
  else if (block_harm(&t->packed))
    verdict_fail(v, FAILED_WRONG, "it writes outside of what it prepares");
  block_seal(&t->packed);
  set_pointers(t);
  return !v->failure;
}

/* One run over a pattern of poison; false if the function says it failed. */
static bool run_once(struct trial *t, int pattern, struct verdict *v) {
  expected_poison(t->e, pattern);
  errno = 0;
  int status = t->call(t->pointers);
  if (status == 1)
    verdict_fail(v, FAILED_MEMORY, "it says that there is no memory for its buffers");
  else if (status)
    verdict_fail(v, FAILED_RUN, "it answers %d", status);
  return !status;
}

static double clock_of(const struct trial *t) {
  struct timespec now;
  clock_gettime(t->limits.threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int keep_first(struct trial *t) {
  for (int i = 0; i < t->e->outputs; i++)
    memcpy(t->first[i], t->e->output[i].memory.data, t->e->output[i].memory.size);
  return 0;
}

/* Seconds of one run, from `calls` of them. */
static double sample(const struct trial *t, int calls) {
  double start = clock_of(t);
  for (int i = 0; i < calls; i++)
    if (t->call(t->pointers)) return NAN;
  return (clock_of(t) - start) / calls;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Between two samples where the place is between them. */
static double quantile(const double *sorted, int count, double part) {
  double at = part * (count - 1);
  int below = (int)at;
  int above = below + 1 < count ? below + 1 : below;
  return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

static int choose_repeats(const struct measure_limits *l, double one) {
  double most = l->timing / fmax(one, 1e-9);
  int least = l->repeats < REPEATS_LEAST ? l->repeats : REPEATS_LEAST;
  return most > l->repeats ? l->repeats : most < least ? least : (int)most;
}

static void take_time(const struct trial *t, struct verdict *v) {
  double times[REPEATS_MOST], once = sample(t, 1); /* thrown away but for the choice */
  int calls = once < SAMPLE ? (int)fmin(CALLS_MOST, ceil(SAMPLE / fmax(once, 1e-9))) : 1;
  double one = sample(t, calls);
  v->repeats = choose_repeats(&t->limits, one * calls);
  for (int i = 0; i < v->repeats; i++) {
    times[i] = sample(t, calls);
    if (isnan(times[i]))
      verdict_fail(v, FAILED_RUN, "it answered with an error while it was timed");
  }
  qsort(times, (size_t)v->repeats, sizeof *times, ascending);
  v->lower = quantile(times, v->repeats, 0.25);
  v->median = quantile(times, v->repeats, 0.5);
  v->upper = quantile(times, v->repeats, 0.75);
}

/* The pipeline; each step needs the one before. */
static void judge(struct trial *t, struct verdict *v) {
  if (!load(t, v)) return;
  t->answer->stage = STAGE_FIRST;
  spoil_memory(0x7F);
  if (!prepare(t, v) || !run_once(t, 0, v)) return;
  expected_compare(t->e, 0, v);
  if (v->failure) return;
  keep_first(t);
  t->answer->stage = STAGE_SECOND;
  if (t->set_threads) t->set_threads(t->limits.threads);
  spoil_memory(0xFE);
  if (!run_once(t, 1, v)) return;
  expected_repeat(t->e, t->first, v);
  if (v->failure) return;
  t->answer->stage = STAGE_TIMED;
  spoil_memory(0);
  take_time(t, v);
  if (!v->failure) expected_repeat(t->e, t->first, v);
}

static int work(void *data) {
  struct trial *t = data;
  struct verdict v = {.failure = FAILED_NOT};
  expected_seal(t->e);
  judge(t, &v);
  t->answer->verdict = v;
  t->answer->token = t->token;
  t->answer->seal = seal_of(t->answer, t->token);
  return 0;
}

/* ---- in the parent --------------------------------------------------------------------------- */

static const char *stage_words(int stage) {
  static const char *const words[STAGES] = {" while it was loaded", " in its first run",
                                            " in its second run", " while it was timed"};
  return stage >= 0 && stage < STAGES ? words[stage] : "";
}

static bool believable(const struct answer *a, uint64_t token) {
  const struct verdict *v = &a->verdict;
  return a->token == token && a->seal == seal_of(a, token) && (int)v->failure >= 0 &&
         v->failure < FAILURES && memchr(v->message, '\0', sizeof v->message);
}

/* How the child ended says what no answer can. */
static void conclude(const struct trial *t, const struct child_limits *limits,
                     const struct child_end *end, struct verdict *out) {
  static const enum failure failures[] = {FAILED_CRASH, FAILED_CRASH, FAILED_TIMEOUT,
                                          FAILED_MEMORY};
  char how[256];
  bool answered = end->how == CHILD_EXITED && believable(t->answer, t->token);
  *out = answered ? t->answer->verdict : (struct verdict){.failure = FAILED_NOT};
  if (answered) return;
  child_describe(end, limits, how, sizeof how);
  bool loading = t->answer->stage == STAGE_LOAD;
  verdict_fail(out, loading ? FAILED_LOAD : failures[end->how], "it %s%s", how,
               stage_words(t->answer->stage));
}

static void fill_limits(struct measure_limits *l) {
  if (!(l->seconds > 0)) l->seconds = SECONDS;
  if (l->memory <= 0) l->memory = MEMORY;
  if (!(l->timing > 0)) l->timing = TIMING;
  if (l->repeats <= 0) l->repeats = REPEATS;
  if (l->repeats > REPEATS_MOST) l->repeats = REPEATS_MOST;
  if (l->threads <= 0) l->threads = 1;
}

static canvas_status run_child(canvas_context *ctx, struct trial *t, struct verdict *out) {
  struct child_end end;
  int threads = t->limits.threads;
  const struct child_limits limits = {.seconds = t->limits.seconds,
                                      .threads = threads,
                                      .memory = t->limits.memory + (threads - 1) * THREAD_MEMORY,
                                      .file = OPENMP_FILE};
  canvas_status status = child_call(ctx, work, t, &limits, &end);
  if (status == CANVAS_OK) conclude(t, &limits, &end, out);
  return status;
}

static canvas_status no_memory(canvas_context *ctx) {
  return fail(ctx, CANVAS_IO, "there is no memory to run a candidate");
}

canvas_status measure(canvas_context *ctx, const struct expected *e, const char *path,
                      const char *function, const struct measure_prepare *prepare,
                      const struct measure_limits *limits, struct verdict *out) {
  static _Atomic uint64_t trials;
  struct trial t = {.e = e,
                    .path = path,
                    .function = function,
                    .prepare = prepare,
                    .token = ++trials * 0x9E3779B97F4A7C15u};
  canvas_status status = CANVAS_OK;
  if (limits) t.limits = *limits;
  fill_limits(&t.limits);
  t.pointers = mem_alloc((size_t)(e->inputs + e->outputs + 2) * sizeof *t.pointers);
  t.first = mem_alloc((size_t)(e->outputs + 1) * sizeof *t.first);
  for (int i = 0; i < e->outputs; i++) {
    t.first[i] = mem_try(e->output[i].memory.size, 1);
    if (!t.first[i]) status = no_memory(ctx);
  }
  set_pointers(&t);
  t.answer = memory_shared(sizeof *t.answer);
  if (!t.answer) status = no_memory(ctx);
  if (status == CANVAS_OK) status = run_child(ctx, &t, out);
  memory_unshare(t.answer, sizeof *t.answer);
  for (int i = 0; i < e->outputs; i++) free(t.first[i]);
  free(t.first);
  free(t.pointers);
  return status;
}
