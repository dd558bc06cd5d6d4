/* Compiles files of programs and links them to a shared object. See network_compile.h. */
#include "net/network_compile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "run/cache.h"

enum {
  WORKERS_MOST = 8,
  AGAIN = 3,        /* attempts to copy an object that others remove from the cache */
  LITTLE = 4 << 10, /* bytes of text that compile faster than a compiler starts */
  LOT = 16 << 10,   /* bytes of a shared file at which the next one begins */
};

/* ---- files ----------------------------------------------------------------------------------- */

struct file {
  int unit, units; /* its first function; number of functions */
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

/* One file for each function; small sequential functions (e.g. folded weights) share files. */
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

/* ---- in parallel ----------------------------------------------------------------------------- */

/* Result of a file that another process compiled. */
struct made {
  bool failed; /* the compiler failed; else the object is cached or left to the parent */
  char message[MESSAGE_SIZE];
};

/* Work queue shared by the processes that compile. */
struct queue {
  int next; /* position in the order of the next file */
  int hung; /* files with which the compiler took too long */
  struct made of[];
};

struct worker {
  const struct compiler *compiler;
  const struct files *files;
  const struct file *const *order;
  struct queue *queue;
};

static int by_size(const void *a, const void *b) {
  const struct file *x = *(const struct file *const *)a, *y = *(const struct file *const *)b;
  if (x->text.length != y->text.length) return x->text.length > y->text.length ? -1 : 1;
  return x->unit - y->unit;
}

/* Longest text first, so that no long file is left for the end. */
static const struct file **order_files(const struct files *files) {
  const struct file **order = mem_alloc(((size_t)files->count + 1) * sizeof *order);
  for (int i = 0; i < files->count; i++) order[i] = &files->data[i];
  qsort((void *)order, (size_t)files->count, sizeof *order, by_size);
  return order;
}

static canvas_status compile_file(canvas_context *ctx, const struct compiler *compiler,
                                  const struct file *file, int *hung, struct object *out) {
  int before = __atomic_load_n(hung, __ATOMIC_RELAXED);
  TRY(compiler_object(ctx, compiler, file->text.text, file->parallel, before, out));
  if (out->hung) __atomic_fetch_add(hung, 1, __ATOMIC_RELAXED);
  return CANVAS_OK;
}

/* Compiles files of the queue. Other failures end the process; the parent retries those files. */
static void work(void *data) {
  const struct worker *w = data;
  canvas_context ctx = {.message = ""};
  for (;;) {
    int next = __atomic_fetch_add(&w->queue->next, 1, __ATOMIC_RELAXED);
    struct object object = {0};
    if (next >= w->files->count) return;
    const struct file *file = w->order[next];
    canvas_status status = compile_file(&ctx, w->compiler, file, &w->queue->hung, &object);
    mem_free(object.path);
    if (status != CANVAS_OK) return;
    if (object.path) continue;
    struct made *made = &w->queue->of[file - w->files->data];
    memcpy(made->message, object.message, sizeof made->message);
    made->failed = true;
  }
}

static size_t queue_size(const struct files *files) {
  return sizeof(struct queue) + (size_t)files->count * sizeof(struct made);
}

/* Compiles missing files into the cache by several processes. NULL: not done. */
static struct queue *compile_parallel(const struct files *files, const struct compiler *compiler,
                                      int missing) {
  int processes[WORKERS_MOST], count = 0;
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  if (missing < 2) return NULL;
  const struct file **order = order_files(files);
  struct queue *queue = memory_shared(queue_size(files));
  struct worker w = {compiler, files, order, queue};
  while (queue && count < WORKERS_MOST && count < processors && count < missing)
    processes[count++] = child_beside(work, &w);
  for (int i = 0; i < count; i++) child_join(processes[i]);
  mem_free((void *)order);
  return queue;
}

/* ---- sequentially, from the cache ------------------------------------------------------------ */

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

/* State of one compilation of a network. */
struct making {
  const struct network_code *code;
  const struct compiler *compiler;
  struct files files;
  const char **texts; /* text of each file */
  char **copies;      /* path in `folder` of the copy of each file's object */
  char *folder;       /* private folder of this compilation */
  int hung;           /* files with which the compiler took too long */
};

static void note_failure(const struct making *m, const struct file *file, bool **failed) {
  const struct network_code *code = m->code;
  size_t programs = (size_t)code->network->programs.count;
  if (!*failed) *failed = mem_alloc((programs + 1) * sizeof **failed);
  for (int i = 0; i < file->units; i++)
    (*failed)[code->forms.data[code->units.data[file->unit + i].form].program] = true;
}

static canvas_status does_not_compile(canvas_context *ctx, const struct making *m,
                                      const struct file *file, const char *message) {
  const struct network_code *code = m->code;
  const struct net_form *form = &code->forms.data[code->units.data[file->unit].form];
  return fail(ctx, CANVAS_IO, "program '%.40s' of the network does not compile: %.800s",
              code->network->programs.data[form->program]->name, message);
}

/* Makes the object of a file and copies it at once, since others may remove it from the cache.
 * *found: there is an object. */
static canvas_status take_object(canvas_context *ctx, struct making *m, int i, char *message,
                                 bool *found) {
  struct object object;
  *found = false;
  for (int again = 0; again < AGAIN && !*found; again++) {
    TRY(compile_file(ctx, m->compiler, &m->files.data[i], &m->hung, &object));
    memcpy(message, object.message, MESSAGE_SIZE);
    if (!object.path) return CANVAS_OK;
    *found = cache_copy_object(object.path, m->copies[i]);
    mem_free(object.path);
    if (!*found) unlink(m->copies[i]);
  }
  return *found ? CANVAS_OK
                : fail(ctx, CANVAS_IO, "cannot write '%.500s': %s", m->copies[i], strerror(errno));
}

/* Collects all objects. Marks every failed program; the message is that of the first. */
static canvas_status collect(canvas_context *ctx, struct making *m, const struct queue *queue,
                             bool **failed) {
  canvas_status status = CANVAS_OK;
  for (int i = 0; i < m->files.count; i++) {
    char message[MESSAGE_SIZE];
    bool found = false;
    if (queue && queue->of[i].failed)
      memcpy(message, queue->of[i].message, sizeof message);
    else
      TRY(take_object(ctx, m, i, message, &found));
    if (found) continue;
    if (!*failed) status = does_not_compile(ctx, m, &m->files.data[i], message);
    note_failure(m, &m->files.data[i], failed);
  }
  return status;
}

static canvas_status link_all(canvas_context *ctx, const struct making *m,
                              const struct linked *what, struct network_object *out) {
  struct object object;
  TRY(compiler_link(ctx, m->compiler, what, &object));
  out->path = object.path;
  out->cached = object.cached;
  if (object.path) return CANVAS_OK;
  return fail(ctx, CANVAS_IO, "the network does not compile: %.900s", object.message);
}

static canvas_status make_in(canvas_context *ctx, struct making *m, const struct linked *what,
                             struct network_object *out) {
  int missing = count_missing(&m->files, m->compiler, &out->made);
  out->found = m->code->units.count - out->made;
  for (int i = 0; i < m->files.count; i++) {
    struct buf name = {0};
    buf_printf(&name, "%s/%d.o", m->folder, i);
    mem_free(m->copies[i]);
    m->copies[i] = buf_take(&name);
  }
  struct queue *queue = compile_parallel(&m->files, m->compiler, missing);
  if (queue) m->hung = queue->hung;
  canvas_status status = collect(ctx, m, queue, &out->failed);
  memory_unshare(queue, queue_size(&m->files));
  return status == CANVAS_OK ? link_all(ctx, m, what, out) : status;
}

/* Removes objects that do not link from the cache. */
static void forget_objects(const struct making *m) {
  for (int i = 0; i < m->files.count; i++)
    compiler_forget_object(m->compiler, m->files.data[i].text.text, m->files.data[i].parallel);
}

/* Retries once, in a folder outside of the cache, if the folder disappeared or if objects found in
 * the cache do not link. */
static canvas_status make(canvas_context *ctx, struct making *m, const struct linked *what,
                          struct network_object *out) {
  canvas_status status = CANVAS_OK;
  for (int outside = 0; outside < 2; outside++) {
    TRY(outside ? cache_work_outside(ctx, &m->folder)
                : compiler_work(ctx, m->compiler, &m->folder));
    status = make_in(ctx, m, what, out);
    bool linked = status == CANVAS_OK || out->failed, gone = cache_work_gone(m->folder);
    cache_work_end(m->folder);
    if (linked) break;
    if (!gone) forget_objects(m);
    if (!gone && !out->found) break;
  }
  return status;
}

canvas_status network_compile(canvas_context *ctx, const struct network_code *code,
                              const struct compiler *compiler, struct network_object *out) {
  struct buf text = {0};
  struct making m = {.code = code, .compiler = compiler, .files = collect_files(code)};
  size_t count = (size_t)m.files.count + 1;
  m.texts = mem_alloc(count * sizeof *m.texts);
  m.copies = mem_alloc(count * sizeof *m.copies);
  bool threads = false;
  memset(out, 0, sizeof *out);
  network_text(code, NETWORK_LINKED, &text);
  for (int i = 0; i < m.files.count; i++) {
    m.texts[i] = m.files.data[i].text.text;
    threads = threads || m.files.data[i].parallel;
  }
  struct linked what = {.text = text.text,
                        .count = m.files.count,
                        .texts = m.texts,
                        .objects = (const char *const *)m.copies,
                        .threads = threads};
  out->path = compiler_find_linked(compiler, &what);
  out->cached = out->path != NULL;
  out->found = code->units.count;
  canvas_status status = out->path ? CANVAS_OK : make(ctx, &m, &what, out);
  for (int i = 0; i < m.files.count; i++) mem_free(m.copies[i]);
  files_free(&m.files);
  mem_free(m.copies);
  mem_free((void *)m.texts);
  buf_free(&text);
  return status;
}
