/* Files of programs, their objects, and the shared object of them all. See network_compile.h. */
#include "net/network_compile.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "run/cache.h"

enum {
  WORKERS_MOST = 8,
  LITTLE = 4 << 10, /* bytes of a text that takes less to compile than a compiler takes to begin */
  LOT = 16 << 10,   /* ... of a file that has several of them, or little more */
};

/* ---- files --------------------------------------------------------------------------------------- */

struct file {
  int unit, units; /* the first of its functions, how many it has */
  bool parallel;
  struct buf text;
};

struct files {
  VEC(struct file);
};

static bool is_parallel(const struct network_code *code, int unit) {
  return code->forms.data[code->units.data[unit].form].parallel;
}

static struct file *add_file(struct files *files, int unit, bool parallel) {
  VEC_PUSH(files, ((struct file){.unit = unit, .parallel = parallel}));
  return &files->data[files->count - 1];
}

/* A function is a file of its own; those of little text, as what normalisations make of their weights, stand
 * together. */
static struct files collect_files(const struct network_code *code) {
  struct files files = {0};
  int together = -1;
  for (int i = 0; i < code->units.count; i++) {
    const char *text = code->units.data[i].text;
    bool parallel = is_parallel(code, i), little = !parallel && strlen(text) < LITTLE;
    struct file *f =
        little && together >= 0 ? &files.data[together] : add_file(&files, i, parallel);
    f->units++;
    buf_puts(&f->text, text);
    if (little) together = f->text.length < LOT ? (int)(f - files.data) : -1;
  }
  return files;
}

static void files_free(struct files *files) {
  for (int i = 0; i < files->count; i++) buf_free(&files->data[i].text);
  mem_free(files->data);
}

/* ---- several at once ------------------------------------------------------------------------------ */

/* Shared by the processes that compile: which of the order is the next. */
struct turns {
  int next;
};

struct worker {
  const struct compiler *compiler;
  const struct file *const *order;
  int count;
  struct turns *turns;
};

static int by_size(const void *a, const void *b) {
  const struct file *x = *(const struct file *const *)a, *y = *(const struct file *const *)b;
  if (x->text.length != y->text.length) return x->text.length > y->text.length ? -1 : 1;
  return x->unit - y->unit;
}

/* The longest text first: none is left for one process at the end. */
static const struct file **order_files(const struct files *files) {
  const struct file **order = mem_alloc(((size_t)files->count + 1) * sizeof *order);
  for (int i = 0; i < files->count; i++) order[i] = &files->data[i];
  qsort((void *)order, (size_t)files->count, sizeof *order, by_size);
  return order;
}

static canvas_status compile_file(canvas_context *ctx, const struct compiler *compiler,
                                  const struct file *file, struct object *out) {
  return compiler_object(ctx, compiler, file->text.text, file->parallel, out);
}

/* Whatever fails is tried again, and told, by the process that began this. */
static void work(void *data) {
  const struct worker *w = data;
  canvas_context ctx = {.message = ""};
  for (;;) {
    int next = __atomic_fetch_add(&w->turns->next, 1, __ATOMIC_RELAXED);
    struct object object = {0};
    if (next >= w->count) return;
    canvas_status status = compile_file(&ctx, w->compiler, w->order[next], &object);
    mem_free(object.path);
    if (status != CANVAS_OK || !object.path) return;
  }
}

/* Into the cache. */
static void compile_beside(const struct files *files, const struct compiler *compiler,
                           int missing) {
  int processes[WORKERS_MOST], count = 0;
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  if (missing < 2) return;
  const struct file **order = order_files(files);
  struct turns *turns = memory_shared(sizeof *turns);
  struct worker w = {compiler, order, files->count, turns};
  while (turns && count < WORKERS_MOST && count < processors && count < missing)
    processes[count++] = child_beside(work, &w);
  for (int i = 0; i < count; i++) child_join(processes[i]);
  mem_free((void *)order);
  memory_unshare(turns, sizeof *turns);
}

/* ---- one after the other, from the cache ------------------------------------------------------------ */

static int count_missing(const struct files *files, const struct compiler *compiler, int *units) {
  int missing = *units = 0;
  for (int i = 0; i < files->count; i++) {
    const struct file *f = &files->data[i];
    if (compiler_has_object(compiler, f->text.text, f->parallel)) continue;
    missing++;
    *units += f->units;
  }
  return missing;
}

static canvas_status collect(canvas_context *ctx, const struct network_code *code,
                             const struct files *files, const struct compiler *compiler,
                             char **paths) {
  for (int i = 0; i < files->count; i++) {
    struct object object;
    TRY(compile_file(ctx, compiler, &files->data[i], &object));
    paths[i] = object.path;
    if (object.path) continue;
    const struct net_form *form = &code->forms.data[code->units.data[files->data[i].unit].form];
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
                          const struct files *files, const struct compiler *compiler,
                          struct linked *what, char **paths, struct network_object *out) {
  canvas_status status = CANVAS_OK;
  for (int again = 0; again < 2; again++) {
    int missing = count_missing(files, compiler, &out->made);
    out->found = code->units.count - out->made;
    compile_beside(files, compiler, missing);
    TRY(collect(ctx, code, files, compiler, paths));
    status = link_all(ctx, compiler, what, out);
    if (status == CANVAS_OK || missing == files->count) break;
    for (int i = 0; i < files->count; i++) {
      cache_drop(paths[i]);
      mem_free(paths[i]);
      paths[i] = NULL;
    }
  }
  return status;
}

canvas_status network_compile(canvas_context *ctx, const struct network_code *code,
                              const struct compiler *compiler, struct network_object *out) {
  struct buf text = {0};
  struct files files = collect_files(code);
  size_t count = (size_t)files.count + 1;
  const char **texts = mem_alloc(count * sizeof *texts);
  char **paths = mem_alloc(count * sizeof *paths);
  bool threads = false;
  memset(out, 0, sizeof *out);
  network_text(code, NETWORK_LINKED, &text);
  for (int i = 0; i < files.count; i++) {
    texts[i] = files.data[i].text.text;
    threads = threads || files.data[i].parallel;
  }
  struct linked what = {.text = text.text,
                        .count = files.count,
                        .texts = texts,
                        .objects = (const char *const *)paths,
                        .threads = threads};
  out->path = compiler_find_linked(compiler, &what);
  out->cached = out->path != NULL;
  out->found = code->units.count;
  canvas_status status =
      out->path ? CANVAS_OK : make(ctx, code, &files, compiler, &what, paths, out);
  for (int i = 0; i < files.count; i++) mem_free(paths[i]);
  files_free(&files);
  mem_free(paths);
  mem_free(texts);
  buf_free(&text);
  return status;
}
