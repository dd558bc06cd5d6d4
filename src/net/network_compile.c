/* Objects of programs, and the shared object of them all. See network_compile.h. */
#include "net/network_compile.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "run/cache.h"

enum { WORKERS_MOST = 8 };

/* ---- several at once ------------------------------------------------------------------------------ */

/* Shared by the processes that compile: which of the order is the next. */
struct turns {
  int next;
};

struct unit_size {
  int unit;
  size_t size; /* of its text */
};

struct worker {
  const struct network_code *code;
  const struct compiler *compiler;
  const struct unit_size *order;
  struct turns *turns;
};

static int by_size(const void *a, const void *b) {
  const struct unit_size *x = a, *y = b;
  if (x->size != y->size) return x->size > y->size ? -1 : 1;
  return x->unit - y->unit;
}

/* The longest text first: none is left for one process at the end. */
static struct unit_size *order_units(const struct network_code *code) {
  size_t count = (size_t)code->units.count;
  struct unit_size *order = mem_alloc((count + 1) * sizeof *order);
  for (int i = 0; i < code->units.count; i++)
    order[i] = (struct unit_size){i, strlen(code->units.data[i].text)};
  qsort(order, count, sizeof *order, by_size);
  return order;
}

static bool is_parallel(const struct network_code *code, int unit) {
  return code->forms.data[code->units.data[unit].form].parallel;
}

static canvas_status compile_unit(canvas_context *ctx, const struct network_code *code,
                                  const struct compiler *compiler, int unit, struct object *out) {
  return compiler_object(ctx, compiler, code->units.data[unit].text, is_parallel(code, unit), out);
}

/* Whatever fails is tried again, and told, by the process that began this. */
static void work(void *data) {
  const struct worker *w = data;
  canvas_context ctx = {.message = ""};
  for (;;) {
    int next = __atomic_fetch_add(&w->turns->next, 1, __ATOMIC_RELAXED);
    struct object object = {0};
    if (next >= w->code->units.count) return;
    canvas_status status = compile_unit(&ctx, w->code, w->compiler, w->order[next].unit, &object);
    free(object.path);
    if (status != CANVAS_OK || !object.path) return;
  }
}

/* Into the cache. */
static void compile_beside(const struct network_code *code, const struct compiler *compiler,
                           int missing) {
  int processes[WORKERS_MOST], count = 0;
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  struct turns *turns = missing > 1 ? memory_shared(sizeof *turns) : NULL;
  if (!turns) return;
  struct unit_size *order = order_units(code);
  struct worker w = {code, compiler, order, turns};
  while (count < WORKERS_MOST && count < processors && count < missing)
    processes[count++] = child_beside(work, &w);
  for (int i = 0; i < count; i++) child_join(processes[i]);
  free(order);
  memory_unshare(turns, sizeof *turns);
}

/* ---- one after the other, from the cache ------------------------------------------------------------ */

static int count_missing(const struct network_code *code, const struct compiler *compiler) {
  int missing = 0;
  for (int i = 0; i < code->units.count; i++)
    missing += !compiler_has_object(compiler, code->units.data[i].text, is_parallel(code, i));
  return missing;
}

static canvas_status collect(canvas_context *ctx, const struct network_code *code,
                             const struct compiler *compiler, char **paths) {
  for (int i = 0; i < code->units.count; i++) {
    struct object object;
    TRY(compile_unit(ctx, code, compiler, i, &object));
    paths[i] = object.path;
    if (object.path) continue;
    const struct net_form *form = &code->forms.data[code->units.data[i].form];
    return fail(ctx, CANVAS_IO, "program '%.40s' of the network does not compile: %.800s",
                code->network->programs.data[form->program]->name, object.message);
  }
  return CANVAS_OK;
}

static canvas_status link_all(canvas_context *ctx, const struct compiler *compiler,
                              const struct linked *what, struct network_object *out) {
  struct object object;
  TRY(compiler_link(ctx, compiler, what, &object));
  out->path = object.path;
  out->cached = object.cached;
  if (object.path) return CANVAS_OK;
  return fail(ctx, CANVAS_IO, "the network does not compile: %.900s", object.message);
}

/* Where objects of the cache do not link, they may be damaged: they are made anew, once. */
static canvas_status make(canvas_context *ctx, const struct network_code *code,
                          const struct compiler *compiler, struct linked *what, char **paths,
                          struct network_object *out) {
  canvas_status status = CANVAS_OK;
  for (int again = 0; again < 2; again++) {
    int missing = count_missing(code, compiler);
    out->made = missing;
    out->found = code->units.count - missing;
    compile_beside(code, compiler, missing);
    TRY(collect(ctx, code, compiler, paths));
    status = link_all(ctx, compiler, what, out);
    if (status == CANVAS_OK || missing == code->units.count) break;
    for (int i = 0; i < code->units.count; i++) {
      cache_drop(paths[i]);
      free(paths[i]);
      paths[i] = NULL;
    }
  }
  return status;
}

static bool any_parallel(const struct network_code *code) {
  for (int i = 0; i < code->units.count; i++)
    if (is_parallel(code, i)) return true;
  return false;
}

canvas_status network_compile(canvas_context *ctx, const struct network_code *code,
                              const struct compiler *compiler, struct network_object *out) {
  struct buf text = {0};
  size_t count = (size_t)code->units.count + 1;
  const char **texts = mem_alloc(count * sizeof *texts);
  char **paths = mem_alloc(count * sizeof *paths);
  memset(out, 0, sizeof *out);
  network_text(code, NETWORK_LINKED, &text);
  for (int i = 0; i < code->units.count; i++) texts[i] = code->units.data[i].text;
  struct linked what = {.text = text.text,
                        .count = code->units.count,
                        .texts = texts,
                        .objects = (const char *const *)paths,
                        .threads = any_parallel(code)};
  out->path = compiler_find_linked(compiler, &what);
  out->cached = out->path != NULL;
  out->found = code->units.count;
  canvas_status status = out->path ? CANVAS_OK : make(ctx, code, compiler, &what, paths, out);
  for (int i = 0; i < code->units.count; i++) free(paths[i]);
  free(paths);
  free(texts);
  buf_free(&text);
  return status;
}
