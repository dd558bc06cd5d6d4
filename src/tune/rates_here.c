/* Finds the rates of this machine: from the cache, or measured and cached. See rates_here.h.
 *
 * Probes run in a child, one after another in several rounds, so that temporary load spoils no
 * probe's best time. Processor time of the thread is measured.
 */
#include "tune/rates_here.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "run/cache.h"
#include "run/child.h"
#include "run/sealed.h"
#include "tune/rates_probes.h"

enum { ROUNDS = 7, TOGETHER = 16, TEXT_MOST = 1 << 14, ALIGNMENT = 4096 };
static const double SAMPLE = 150e-6; /* seconds of one probe in a round */

/* ---- in the child ---------------------------------------------------------------------------- */

struct run {
  const struct probes *probes;
  const struct object *objects;
  int file[PROBES_MOST]; /* descriptor of each object */
  double *best;          /* seconds of a call by probe, in shared memory; 0: none yet */
  int (*call[PROBES_MOST])(void *const *pointers);
  float *x, *y, *stream;
};

static double thread_time(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool load(struct run *r, int i) {
  canvas_context ctx;
  char name[64];
  void *object = sealed_load(&ctx, r->file[i], r->objects[i].path);
  snprintf(name, sizeof name, "%s%s", COMPILER_CALL, r->probes->list[i].name);
  if (object) *(void **)&r->call[i] = dlsym(object, name);
  return r->call[i] != NULL;
}

/* Numbers between 0.25 and 0.75, which are no special case of any function. */
static float *filled(size_t floats) {
  void *memory = NULL;
  if (posix_memalign(&memory, ALIGNMENT, floats * sizeof(float)) != 0) return NULL;
  float *x = memory;
  for (size_t i = 0; x && i < floats; i++) x[i] = 0.25f + (float)(i * 37 % 101) / 202;
  return x;
}

static bool get_memory(struct run *r) {
  int64_t bytes = 0;
  for (int i = 0; i < r->probes->count; i++)
    if (r->probes->list[i].bytes > bytes) bytes = r->probes->list[i].bytes;
  r->x = filled(PROBE_FLOATS);
  r->y = filled(PROBE_FLOATS);
  r->stream = filled((size_t)bytes / sizeof(float));
  return r->x && r->y && r->stream;
}

static void sample(struct run *r, int i) {
  const struct probe *p = &r->probes->list[i];
  void *pointers[2] = {p->bytes ? r->stream : r->x, r->y};
  int calls = r->best[i] > 0 ? (int)ceil(SAMPLE / r->best[i]) : 1;
  r->call[i](pointers); /* warms the caches */
  double start = thread_time();
  for (int call = 0; call < calls; call++) r->call[i](pointers);
  double each = (thread_time() - start) / calls;
  if (each > 0 && (r->best[i] <= 0 || each < r->best[i])) r->best[i] = each;
}

static int work(void *data) {
  struct run *r = data;
  for (int i = 0; i < r->probes->count; i++)
    if (!load(r, i)) return 1;
  if (!get_memory(r)) return 1;
  for (int round = 0; round < ROUNDS; round++)
    for (int i = 0; i < r->probes->count; i++) sample(r, i);
  return 0; /* memory is freed with the process */
}

/* ---- in the parent --------------------------------------------------------------------------- */

static bool run_opened(canvas_context *ctx, struct run *r, double *best) {
  struct child_files files = {0};
  struct child_end end = {.how = CHILD_CRASHED};
  for (int i = 0; i < r->probes->count; i++) child_keep(&files, r->file[i]);
  const struct child_limits limits = {.seconds = 20, .files = &files};
  size_t size = PROBES_MOST * sizeof *best;
  r->best = memory_shared(size);
  if (r->best && child_call(ctx, work, r, &limits, &end) == CANVAS_OK) memcpy(best, r->best, size);
  memory_unshare(r->best, size);
  mem_free(files.data);
  return end.how == CHILD_EXITED && !end.code && best[0] > 0;
}

/* Runs the probes. Objects that fail are removed, so that the next process compiles them again. */
static bool run_probes(canvas_context *ctx, const struct probes *probes,
                       const struct object *objects, double *best) {
  struct run r = {.probes = probes, .objects = objects};
  struct held_file held[PROBES_MOST];
  bool good = true;
  best[0] = 0;
  for (int i = 0; i < probes->count; i++) {
    r.file[i] = cache_open_object(objects[i].path);
    file_hold(&held[i], r.file[i]);
    good = good && r.file[i] >= 0;
  }
  good = good && run_opened(ctx, &r, best);
  for (int i = 0; i < probes->count; i++) {
    file_release(&held[i]);
    if (!good) cache_drop(objects[i].path);
  }
  return good;
}

static bool compile_probes(canvas_context *ctx, const struct compiler *compiler,
                           const struct probes *probes, struct object *objects) {
  struct source sources[PROBES_MOST];
  int good = 0;
  for (int i = 0; i < probes->count; i++)
    sources[i] = (struct source){probes->list[i].text, probes->list[i].name, 2, NULL, 0};
  if (compiler_build(ctx, compiler, sources, probes->count, TOGETHER, 0, objects) != CANVAS_OK)
    return false;
  while (good < probes->count && objects[good].path) good++;
  return good == probes->count;
}

/* Sets measured rates; implausible ones keep their likely values. */
static void set_rates(const struct probes *probes, const double *best, struct rates *r) {
  double hertz = probes->list[0].units / best[0];
  if (hertz > 1e8 && hertz < 1e11) r->hertz = hertz;
  for (int i = 1; i < probes->count; i++) {
    const struct probe *p = &probes->list[i];
    double cycles = best[i] * r->hertz / p->units, found = p->cycles ? cycles : 1 / cycles;
    if (best[i] > 0 && found > 0.05 && found < 1000) *p->rate = found;
  }
}

static bool measure_rates(canvas_context *ctx, const struct compiler *compiler,
                          const struct probes *probes, struct rates *r) {
  struct object objects[PROBES_MOST] = {{0}};
  double best[PROBES_MOST];
  r->measured =
      compile_probes(ctx, compiler, probes, objects) && run_probes(ctx, probes, objects, best);
  if (r->measured) set_rates(probes, best, r);
  for (int i = 0; i < probes->count; i++) mem_free(objects[i].path);
  return r->measured;
}

/* ---- cached rates ---------------------------------------------------------------------------- */

/* Writes everything that the rates depend on. */
static void print_key(const struct machine *machine, const struct compiler *compiler,
                      const struct probes *probes, struct buf *out) {
  buf_printf(out, "rates of canvas %s, %s\n", CANVAS_VERSION, compiler_text(compiler));
  machine_print(machine, out);
  for (int i = 0; i < probes->count; i++) buf_puts(out, probes->list[i].text);
}

/* Finds cached rates; removes a damaged file. */
static bool find_kept(const char *cache, const struct buf *key, struct rates *out) {
  struct buf text = {0};
  char *path = cache_find(cache, key->text, key->length);
  int file = path ? cache_open_object(path) : -1;
  struct held_file held;
  file_hold(&held, file);
  bool good = file >= 0 && sealed_read(file, TEXT_MOST, &text) && text.text &&
              rates_parse(text.text, text.length, out);
  file_release(&held);
  if (path && !good) cache_drop(path);
  buf_free(&text);
  mem_free(path);
  return good;
}

static void keep(canvas_context *ctx, const char *cache, const struct buf *key,
                 const struct rates *r) {
  struct buf text = {0};
  struct mem_deferred dropping;
  char *work_folder = NULL, *file = NULL, *path = NULL;
  rates_print(r, &text);
  canvas_status status = cache_work(ctx, cache, &work_folder);
  if (work_folder) mem_defer(&dropping, cache_work_drop, work_folder);
  if (status == CANVAS_OK) {
    file = path_join(work_folder, "rates");
    status = file_write(ctx, file, text.text, text.length);
  }
  if (status == CANVAS_OK)
    cache_keep(ctx, cache, key->text, key->length, work_folder, "rates", &path);
  if (work_folder) mem_undefer(&dropping);
  cache_work_end(work_folder);
  mem_free(file);
  mem_free(path);
  buf_free(&text);
}

static void find_rates(canvas_context *ctx, const char *cache, const struct compiler *compiler,
                       const struct machine *machine, struct rates *out) {
  struct buf key = {0};
  struct probes probes;
  if (probes_open(ctx, machine, out, &probes) == CANVAS_OK) {
    print_key(machine, compiler, &probes, &key);
    if (!find_kept(cache, &key, out) && measure_rates(ctx, compiler, &probes, out))
      keep(ctx, cache, &key, out);
  }
  probes_close(&probes);
  buf_free(&key);
}

canvas_status rates_here(canvas_context *ctx, const struct machine *machine, struct rates *out) {
  canvas_context own;
  struct compiler *compiler = NULL;
  char *cache = NULL;
  (void)ctx; /* on any failure the likely rates remain */
  *out = rates_likely(machine);
  if (cache_open(&own, NULL, &cache) == CANVAS_OK &&
      compiler_open(&own, NULL, &compiler) == CANVAS_OK)
    find_rates(&own, cache, compiler, machine, out);
  compiler_close(compiler);
  mem_free(cache);
  return CANVAS_OK;
}

static bool is_here(const struct machine *machine) {
  const struct machine here = machine_here();
  struct buf a = {0}, b = {0};
  machine_print(machine, &a);
  machine_print(&here, &b);
  bool same = !strcmp(a.text, b.text);
  buf_free(&a);
  buf_free(&b);
  return same;
}

canvas_status rates_of(canvas_context *ctx, const struct machine *machine, struct rates *out) {
  if (is_here(machine)) return rates_here(ctx, machine, out);
  *out = rates_likely(machine);
  return CANVAS_OK;
}
