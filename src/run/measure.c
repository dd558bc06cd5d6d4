/* Checks and times candidates in a child process. See measure.h. */
#include "run/measure.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "base/memory.h"
#include "base/saturating.h"
#include "run/block.h"
#include "run/cache.h"
#include "run/child.h"
#include "run/cold.h"
#include "run/compiler.h"
#include "run/sealed.h"

enum { SECONDS = 10, TIMING = 1, REPEATS = 30, REPEATS_LEAST = 5, REPEATS_MOST = 1000 };
/* Times over the best: above SLOW five samples are enough, above HOPELESS one. */
static const double SLOW = 1.25, HOPELESS = 2;
static const double LONG = 20e-3; /* seconds of a run from which no warm-up is needed */
enum { CALLS_MOST = 1 << 20 };
enum { OPENMP_FILE = 4096 };   /* bytes that libomp may write while being loaded */
enum { BEHIND_PACKED = 1536 }; /* bytes to the end of the page of timed packed weights */
#define MEMORY        ((int64_t)1 << 30)
#define THREAD_MEMORY ((int64_t)256 << 20) /* bytes of addresses for a thread's stack and heap */
#define SAMPLE        20e-6                /* seconds of a sample; shorter ones measure the clock */
#define ROUND         1e-3 /* seconds of one timing round, after as many to refill the caches */

enum stage { STAGE_LOAD, STAGE_FIRST, STAGE_SECOND, STAGE_TIMED, STAGES };

/* A child's result for a candidate, in shared memory; valid if `seal` matches. */
struct result {
  uint64_t token; /* chosen by the parent for this child */
  int stage;      /* stage reached */
  struct verdict verdict;
  uint64_t seal;
};

struct results {
  volatile int at;      /* current candidate; `count`: interleaved rounds */
  volatile int running; /* candidate of the current round; -1: none */
  struct result of[];
};

/* A candidate kept in the child for interleaved rounds. */
struct waiting {
  int (*call)(void *const *pointers);
  void **pointers;
  double seconds; /* seconds of a run */
};

/* All candidates and, in the child, the current one. */
struct trial {
  const struct expected *e;
  const struct measure_item *items;
  int count, from; /* the child judges [from, count) */
  struct measure_limits limits;
  struct results *results;
  uint64_t token;

  int *file;                /* by item: checked descriptor of its object; -1: missing or damaged */
  struct held_file *held;   /* the same descriptors, each once */
  struct child_files files; /* all descriptors */

  const struct measure_item *item;
  double used; /* processor seconds of the process before this item */
  struct result *result;
  struct block packed, packed_timed; /* its packed weights; a copy for timing */
  void *object;                      /* loaded object */
  int (*call)(void *const *pointers);
  void (*free_workspace)(void); /* NULL: no memory is kept between calls */
  void (*set_threads)(int);     /* omp_set_num_threads; NULL: no parallel loop */
  void **pointers;              /* arguments: inputs, then outputs */
  const struct block **blocks;  /* blocks of the arguments */
  unsigned char **first;        /* outputs of the first run */
  struct waiting *waiting;      /* by item: kept candidate, `call` NULL if it failed; NULL: no
                                   rounds */
  double *times;                /* seconds of rounds, as limits.times, in shared memory */
};

static uint64_t seal_of(const struct result *a, uint64_t token) {
  const unsigned char *bytes = (const unsigned char *)&a->verdict;
  uint64_t h = token ^ UINT64_C(0xCBF29CE484222325);
  for (size_t i = 0; i < sizeof a->verdict; i++) h = (h ^ bytes[i]) * UINT64_C(0x100000001B3);
  return h;
}

void measure_best(struct measure_limits *limits, const struct verdict *verdict) {
  bool first = !(limits->best > 0);
  if (!verdict->failure && (first || verdict->median < limits->best))
    limits->best = verdict->median;
}

/* ---- in the child ---------------------------------------------------------------------------- */

/* Fills the stack below and, until the next call, all memory from malloc with `byte`, a huge number
 * in every type: uninitialised memory must not look like zeros. 0: off. Not inlined, since it must
 * not touch its caller's frame. */
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

/* A candidate may write a small file while being loaded, none afterwards. */
static void limit_files(int64_t bytes) {
  const struct rlimit both = {(rlim_t)bytes, OPENMP_FILE};
  setrlimit(RLIMIT_FSIZE, &both);
}

static bool load(struct trial *t, struct verdict *v) {
  char name[256];
  setenv("OMP_NUM_THREADS", "1", 1);
  limit_files(OPENMP_FILE);
  canvas_context ctx = {.message = "it is not in the cache any more, or was damaged"};
  int file = t->file[t->item - t->items];
  void *object = file < 0 ? NULL : sealed_load(&ctx, file, t->item->path);
  if (!object) {
    verdict_fail(v, FAILED_LOAD, "%.900s", ctx.message);
    return false;
  }
  snprintf(name, sizeof name, "%s%s", COMPILER_CALL, t->item->function);
  t->object = object;
  *(void **)&t->call = dlsym(object, name);
  if (!t->call) verdict_fail(v, FAILED_LOAD, "it has no function '%.200s'", t->item->function);
  snprintf(name, sizeof name, "%s_free_workspace", t->item->function);
  *(void **)&t->free_workspace = dlsym(object, name);
  *(void **)&t->set_threads = dlsym(object, "omp_set_num_threads");
  if (t->set_threads) t->set_threads(1); /* if the runtime was already loaded */
  limit_files(0);
  return t->call != NULL;
}

/* Arguments of NAME: inputs, packed weights, outputs. */
static int blocks_of(const struct trial *t, bool timed, const struct block **out) {
  const struct measure_prepare *p = t->item->prepare;
  const struct block *inputs = timed ? t->e->timed : t->e->input;
  int at = 0;
  for (int i = 0; i < t->e->inputs; i++)
    if (!p || p->rest[i]) out[at++] = &inputs[i];
  if (p) out[at++] = timed ? &t->packed_timed : &t->packed;
  for (int i = 0; i < t->e->outputs; i++)
    out[at++] = timed ? &t->e->output[i].timed : &t->e->output[i].memory;
  return at;
}

static void set_pointers(struct trial *t, bool timed) {
  int count = blocks_of(t, timed, t->blocks);
  for (int i = 0; i < count; i++) t->pointers[i] = t->blocks[i]->data;
}

/* Runs NAME_prepare once; its result is then read-only. */
static bool prepare(struct trial *t, struct verdict *v) {
  const struct measure_prepare *p = t->item->prepare;
  char name[256];
  int (*call)(void *const *pointers), at = 0;
  if (!p) return true;
  snprintf(name, sizeof name, "%s%s_prepare", COMPILER_CALL, t->item->function);
  *(void **)&call = dlsym(t->object, name);
  if (!call) verdict_fail(v, FAILED_LOAD, "it has no function '%.200s'", name);
  if (call && !block_new(&t->packed, (size_t)p->bytes, true))
    verdict_fail(v, FAILED_MEMORY, "there is no memory for what it prepares");
  if (v->failure) return false;
  block_poison(&t->packed, PROGRAM_F32, 0);
  for (int i = 0; i < t->e->inputs; i++)
    if (p->prepare[i]) t->pointers[at++] = t->e->input[i].data;
  t->pointers[at] = t->packed.data;
  int status = call(t->pointers);
  if (status)
    verdict_fail(v, FAILED_RUN, "it answers %d where it prepares", status);
  else if (block_harm(&t->packed))
    verdict_fail(v, FAILED_WRONG, "it writes outside of what it prepares");
  else if (!block_new_timed(&t->packed, BEHIND_PACKED, &t->packed_timed))
    verdict_fail(v, FAILED_MEMORY, "there is no memory for what it prepares");
  if (v->failure) return false;
  block_seal(&t->packed);
  block_seal(&t->packed_timed);
  set_pointers(t, false);
  return true;
}

/* One run over poisoned outputs; false: the function reports an error. */
static bool run_once(struct trial *t, int pattern, struct verdict *v) {
  expected_poison(t->e, pattern);
  if (t->free_workspace) t->free_workspace(); /* the next run allocates poisoned memory */
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

/* Seconds of one run, averaged over `calls`; with `cold`, each on other memory. */
static double sample(const struct trial *t, struct cold *cold, int calls) {
  double start = clock_of(t);
  for (int i = 0; i < calls; i++) {
    if (cold) cold_next(cold);
    if (t->call(cold ? cold->pointers : t->pointers)) return NAN;
  }
  return (clock_of(t) - start) / calls;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The quantile, interpolated between samples. */
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

/* Whether a candidate is clearly slower than the best after that many samples. */
static bool is_slow(const struct measure_limits *l, int samples, double fastest) {
  if (!l->early || !(l->best > 0)) return false;
  return fastest > (samples < REPEATS_LEAST ? HOPELESS : SLOW) * l->best;
}

static double processor_time(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Start of the samples. */
struct since {
  double clock, used; /* seconds of clock_wall and of processor_time */
};

/* Whether there is time for another sample, so that a slow candidate keeps its samples instead of
 * being killed. */
static bool has_time(const struct trial *t, struct since since, int samples) {
  double now = clock_wall(), used = processor_time();
  bool late = t->limits.until && now + 1.5 * (now - since.clock) / samples >= t->limits.until;
  return !late && used + 1.5 * (used - since.used) / samples <
                      t->used + t->limits.seconds * t->limits.threads;
}

/* Calls per sample, given the seconds of one. */
static int choose_calls(double one) {
  return one < SAMPLE ? (int)fmin(CALLS_MOST, ceil(SAMPLE / fmax(one, 1e-9))) : 1;
}

/* Seconds of a run and calls per sample. The first call touches new memory, and a sample of few
 * calls measures the clock, so both are repeated until a sample is long enough. */
static double choose_sample(const struct trial *t, struct cold *cold, double once, int *calls) {
  double one = once;
  bool again = true;
  *calls = 0;
  while (again) {
    int more = choose_calls(one);
    again = more > *calls && more > 1;
    *calls = more > *calls ? more : *calls;
    one = sample(t, cold, *calls);
    again = again && one * *calls < SAMPLE / 2;
  }
  return one;
}

/* Takes samples and sorts them; returns their number. */
static int take_samples(const struct trial *t, struct cold *cold, double *times,
                        struct verdict *v) {
  const struct since since = {clock_wall(), processor_time()};
  double once = sample(t, cold, 1); /* used only to choose the number of calls, */
  bool warm = !cold && once > LONG; /* unless the two checked runs were warm-up enough */
  int calls = 1;
  double fastest = warm ? once : choose_sample(t, cold, once, &calls);
  int most = choose_repeats(&t->limits, fastest * calls), count = 0;
  if (isnan(fastest)) verdict_fail(v, FAILED_RUN, "it answered with an error while it was timed");
  times[count++] = fastest;
  while (count < most && !is_slow(&t->limits, count, fastest)) {
    if (count && !has_time(t, since, warm ? count : count + 2)) break;
    double time = sample(t, cold, calls);
    if (isnan(time)) verdict_fail(v, FAILED_RUN, "it answered with an error while it was timed");
    fastest = fmin(fastest, time);
    times[count++] = time;
  }
  qsort(times, (size_t)count, sizeof *times, ascending);
  return count;
}

/* Times calls on cold memory; skipped if there is no memory for the copies. */
static void take_cold(struct trial *t, struct verdict *v) {
  double times[REPEATS_MOST];
  struct cold cold;
  if (!t->limits.cold || v->failure) return;
  if (!cold_open(&cold, t->blocks, blocks_of(t, true, t->blocks), t->limits.cold)) return;
  int count = take_samples(t, &cold, times, v);
  v->cold = quantile(times, count, 0.5);
  cold_close(&cold);
}

static void take_time(struct trial *t, struct verdict *v) {
  double times[REPEATS_MOST];
  v->repeats = take_samples(t, NULL, times, v);
  v->lower = quantile(times, v->repeats, 0.25);
  v->median = quantile(times, v->repeats, 0.5);
  v->upper = quantile(times, v->repeats, 0.75);
}

/* All steps for one candidate; each needs the one before. */
static void judge(struct trial *t, struct verdict *v) {
  set_pointers(t, false);
  if (!load(t, v)) return;
  t->result->stage = STAGE_FIRST;
  spoil_memory(0x7F);
  if (!prepare(t, v) || !run_once(t, 0, v)) return;
  expected_compare(t->e, 0, t->item->winograd, v);
  if (v->failure) return;
  keep_first(t);
  t->result->stage = STAGE_SECOND;
  if (t->set_threads) t->set_threads(t->limits.threads);
  spoil_memory(0xFE);
  if (!run_once(t, 1, v)) return;
  expected_repeat(t->e, t->first, v);
  if (v->failure) return;
  t->result->stage = STAGE_TIMED;
  spoil_memory(0);
  set_pointers(t, true);
  take_time(t, v);
  expected_take_timed(t->e);
  if (!v->failure) expected_repeat(t->e, t->first, v);
  take_cold(t, v);
}

/* ---- interleaved rounds ---------------------------------------------------------------------- */

/* Values in place of a time. */
static const double ROUND_FAILED = -1, ROUND_WRONG = -2;

/* Keeps what is needed to run the candidate again. */
static void keep_waiting(const struct trial *t, int i, const struct verdict *v) {
  size_t size = (size_t)(t->e->inputs + t->e->outputs + 2) * sizeof *t->pointers;
  t->waiting[i] = (struct waiting){v->failure ? NULL : t->call, mem_alloc(size), v->median};
  memcpy(t->waiting[i].pointers, t->pointers, size);
}

static double run_calls(const struct trial *t, const struct waiting *w, int calls) {
  double start = clock_of(t);
  for (int i = 0; i < calls; i++)
    if (w->call(w->pointers)) return NAN;
  return (clock_of(t) - start) / calls;
}

static void run_in_round(const struct trial *t, int i, int round, bool last) {
  const struct waiting *w = &t->waiting[i];
  int calls = w->seconds < ROUND ? (int)fmin(CALLS_MOST, ceil(ROUND / fmax(w->seconds, 1e-9))) : 1;
  if (!w->call) return;
  t->results->running = i;
  if (w->seconds < LONG) run_calls(t, w, calls);
  double time = run_calls(t, w, calls);
  t->times[i * t->limits.rounds + round] = isnan(time) ? ROUND_FAILED : time;
  if (!last) return;
  struct verdict v = {.failure = FAILED_NOT};
  expected_take_timed(t->e);
  expected_compare(t->e, 0, t->items[i].winograd, &v);
  if (v.failure) t->times[i * t->limits.rounds + round] = ROUND_WRONG;
}

/* Whether another round of `each` seconds fits into the time limit. */
static bool in_time(const struct trial *t, int rounds, double each) {
  double until = t->limits.rounds_until;
  return rounds <= t->limits.rounds_least || until <= 0 || clock_wall() + each <= until;
}

/* Runs all rounds. Every second round runs in reverse order. */
static void run_rounds(const struct trial *t) {
  double each = 0;
  bool more = t->limits.rounds > 0;
  t->results->at = t->count;
  for (int i = 0; i < t->count; i++)
    if (t->waiting[i].call) each += t->waiting[i].seconds * (t->waiting[i].seconds < LONG ? 2 : 1);
  more = more && in_time(t, 1, each);
  for (int round = 0; more; round++) {
    double began = clock_wall();
    more = round + 1 < t->limits.rounds && in_time(t, round + 2, 2 * each);
    for (int i = 0; i < t->count; i++)
      run_in_round(t, round % 2 ? t->count - 1 - i : i, round, !more);
    each = clock_wall() - began;
  }
  t->results->running = -1;
}

static bool serve(struct trial *t, int i) {
  struct verdict v = {.failure = FAILED_NOT};
  t->item = &t->items[i];
  t->used = processor_time();
  t->free_workspace = NULL;
  t->result = &t->results->of[i];
  t->results->at = i;
  judge(t, &v);
  if (t->waiting) {
    keep_waiting(t, i, &v);
    t->packed = t->packed_timed = (struct block){0};
  } else {
    if (t->free_workspace) t->free_workspace();
    block_free_timed(&t->packed, &t->packed_timed);
    block_free(&t->packed);
  }
  measure_best(&t->limits, &v);
  t->result->verdict = v;
  t->result->token = t->token;
  t->result->seal = seal_of(t->result, t->token);
  return !v.failure;
}

static int work(void *data) {
  struct trial *t = data;
  int i = t->from;
  expected_seal(t->e);
  if (t->limits.rounds && !t->from) t->waiting = mem_alloc((size_t)t->count * sizeof *t->waiting);
  while (i < t->count && serve(t, i)) i++;
  if (t->waiting && i == t->count) run_rounds(t);
  return 0;
}

/* ---- in the parent --------------------------------------------------------------------------- */

static const char *stage_words(int stage) {
  static const char *const words[STAGES] = {" while it was loaded", " in its first run",
                                            " in its second run", " while it was timed"};
  return stage >= 0 && stage < STAGES ? words[stage] : "";
}

/* By enum child_how. */
static const enum failure failures_of[] = {FAILED_CRASH, FAILED_CRASH, FAILED_TIMEOUT,
                                           FAILED_MEMORY};

static bool believable(const struct result *a, uint64_t token) {
  const struct verdict *v = &a->verdict;
  return a->token == token && a->seal == seal_of(a, token) && (int)v->failure >= 0 &&
         v->failure < FAILURES && memchr(v->message, '\0', sizeof v->message);
}

/* Whether the child has a valid result for a candidate that it finished. */
static bool has_verdict(const struct trial *t, const struct child_end *end, int i) {
  bool left = t->results->at > i || end->how == CHILD_EXITED;
  return left && believable(&t->results->of[i], t->token);
}

/* A verdict from the way in which the child ended. */
static void conclude(const struct trial *t, const struct child_limits *limits,
                     const struct child_end *end, struct verdict *out) {
  char how[256];
  int stage = t->results->of[t->from].stage;
  *out = (struct verdict){.failure = FAILED_NOT};
  child_describe(end, limits, how, sizeof how);
  verdict_fail(out, stage == STAGE_LOAD ? FAILED_LOAD : failures_of[end->how], "it %s%s", how,
               stage_words(stage));
}

static void fill_limits(struct measure_limits *l) {
  if (!(l->seconds > 0)) l->seconds = SECONDS;
  if (l->memory <= 0) l->memory = MEMORY;
  if (!(l->timing > 0)) l->timing = TIMING;
  if (l->repeats <= 0) l->repeats = REPEATS;
  if (l->repeats > REPEATS_MOST) l->repeats = REPEATS_MOST;
  if (l->threads <= 0) l->threads = 1;
}

/* Takes the child's results up to the first failure that is not its first candidate: that one is
 * judged again first in the next child. */
static void take_results(struct trial *t, const struct child_limits *limits,
                         const struct child_end *end, struct verdict *verdicts) {
  int first = t->from;
  for (; t->from < t->count && has_verdict(t, end, t->from); t->from++) {
    const struct verdict *v = &t->results->of[t->from].verdict;
    if (v->failure && t->from > first) return;
    verdicts[t->from] = *v;
    measure_best(&t->limits, v);
  }
  if (t->from > first) return;
  conclude(t, limits, end, &verdicts[first]);
  t->from++;
}

/* Fails further items of an object that does not load. */
static void skip_unloaded(struct trial *t, struct verdict *verdicts) {
  const struct verdict *v = &verdicts[t->from - 1];
  const char *path = t->items[t->from - 1].path;
  while (v->failure == FAILED_LOAD && t->from < t->count && !strcmp(t->items[t->from].path, path))
    verdicts[t->from++] = *v;
}

/* Bytes for cold copies: at least two sets of all tensors. */
static int64_t cold_memory(const struct trial *t) {
  int64_t prepared = 0;
  for (int i = t->from; i < t->count; i++)
    if (t->items[i].prepare) prepared = int_max(prepared, t->items[i].prepare->bytes);
  return t->limits.cold ? t->limits.cold + 3 * ((int64_t)t->e->bytes + prepared) : 0;
}

/* Fails the candidate that ended the child in its round; reaching `until` is nobody's fault. */
static void blame_running(const struct trial *t, const struct child_limits *limits,
                          const struct child_end *end, struct verdict *verdicts) {
  int i = t->results->running;
  char how[256];
  if (t->results->at != t->count || i < 0 || i >= t->count) return;
  if (end->how == CHILD_OUT_OF_TIME && limits->until && clock_wall() >= limits->until) return;
  child_describe(end, limits, how, sizeof how);
  verdict_fail(&verdicts[i], failures_of[end->how], "it %s%s", how, stage_words(STAGE_TIMED));
}

/* Takes the times of the rounds. */
static void keep_rounds(const struct trial *t, struct verdict *verdicts) {
  for (int i = 0; t->times && i < t->count * t->limits.rounds; i++) {
    struct verdict *v = &verdicts[i / t->limits.rounds];
    double time = t->times[i];
    if (v->failure) continue;
    if (time == ROUND_FAILED)
      verdict_fail(v, FAILED_RUN, "it answered with an error while it was timed");
    else if (time == ROUND_WRONG)
      verdict_fail(v, FAILED_WRONG, "its outputs are wrong after the last of its turns");
    else if (time > 0 && isfinite(time))
      t->limits.times[i] = time;
  }
}

static canvas_status run_child(canvas_context *ctx, struct trial *t, struct verdict *verdicts) {
  struct child_end end;
  int threads = t->limits.threads, count = t->count - t->from;
  double left = t->limits.until ? t->limits.until - clock_wall() : HUGE_VAL;
  if (left <= 0 || child_stopped()) {
    verdict_fail(&verdicts[t->from++], FAILED_TIMEOUT, "there was no time left to run it");
    return CANVAS_OK;
  }
  memset(t->results->of + t->from, 0, (size_t)count * sizeof *t->results->of);
  t->results->at = t->from;
  t->results->running = -1;
  const struct child_limits limits = {
      .seconds = t->limits.seconds,
      .wall = t->limits.wall,
      .threads = threads,
      .memory = t->limits.memory + (threads - 1) * THREAD_MEMORY + cold_memory(t),
      .file = OPENMP_FILE,
      .files = &t->files,
      .step = &t->results->at,
      .steps = t->limits.rounds ? count : count - 1,
      .until = t->limits.until};
  canvas_status status = child_call(ctx, work, t, &limits, &end);
  if (status != CANVAS_OK) return status;
  take_results(t, &limits, &end, verdicts);
  skip_unloaded(t, verdicts);
  blame_running(t, &limits, &end, verdicts);
  return CANVAS_OK;
}

static canvas_status no_memory(canvas_context *ctx) {
  return fail(ctx, CANVAS_IO, "there is no memory to run a candidate");
}

/* Opens each object once, so that removing it from the cache does no harm. */
static void open_files(struct trial *t) {
  t->file = mem_alloc(((size_t)t->count + 1) * sizeof *t->file);
  t->held = mem_alloc(((size_t)t->count + 1) * sizeof *t->held);
  for (int i = 0; i < t->count; i++) {
    bool same = i && !strcmp(t->items[i].path, t->items[i - 1].path);
    t->file[i] = same ? t->file[i - 1] : cache_open_object(t->items[i].path);
    file_hold(&t->held[i], same ? -1 : t->file[i]);
    if (t->file[i] >= 0) child_keep(&t->files, t->file[i]);
  }
}

static void close_files(struct trial *t) {
  for (int i = 0; i < t->count; i++) file_release(&t->held[i]);
  mem_free(t->files.data);
  mem_free(t->held);
  mem_free(t->file);
}

canvas_status measure(canvas_context *ctx, const struct expected *e,
                      const struct measure_item *items, int count,
                      const struct measure_limits *limits, struct verdict *verdicts) {
  static _Atomic uint64_t trials;
  struct trial t = {.e = e, .items = items, .count = count};
  size_t size = sizeof *t.results + (size_t)count * sizeof *t.results->of;
  canvas_status status = CANVAS_OK;
  if (limits) t.limits = *limits;
  fill_limits(&t.limits);
  open_files(&t);
  t.pointers = mem_alloc((size_t)(e->inputs + e->outputs + 2) * sizeof *t.pointers);
  t.blocks = mem_alloc((size_t)(e->inputs + e->outputs + 2) * sizeof *t.blocks);
  t.first = mem_alloc((size_t)(e->outputs + 1) * sizeof *t.first);
  for (int i = 0; i < e->outputs; i++) {
    t.first[i] = mem_try(e->output[i].memory.size, 1);
    if (!t.first[i]) status = no_memory(ctx);
  }
  t.results = memory_shared(size);
  if (!t.results) status = no_memory(ctx);
  if (!t.limits.times || t.limits.rounds < 0) t.limits.rounds = 0;
  size_t times = (size_t)count * (size_t)t.limits.rounds * sizeof *t.times;
  if (times && !(t.times = memory_shared(times))) status = no_memory(ctx);
  while (status == CANVAS_OK && t.from < count) {
    t.token = ++trials * 0x9E3779B97F4A7C15u;
    status = run_child(ctx, &t, verdicts);
  }
  if (status == CANVAS_OK) keep_rounds(&t, verdicts);
  close_files(&t);
  memory_unshare(t.times, times);
  memory_unshare(t.results, size);
  for (int i = 0; i < e->outputs; i++) mem_free(t.first[i]);
  mem_free(t.first);
  mem_free(t.blocks);
  mem_free(t.pointers);
  return status;
}
