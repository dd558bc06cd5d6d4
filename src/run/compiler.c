/* Calls an installed C compiler. See compiler.h. */
#include "run/compiler.h"

#include <ctype.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "run/cache.h"

enum {
  WORDS = 64,              /* words of a compiler's command line */
  OBJECT_MOST = 256 << 20, /* maximum bytes of a file written by a compiler */
  MEMORY_MOST = 4,         /* GiB of memory for a compiler */
  FILE_SECONDS = 60,
  TRIAL_SECONDS = 10, /* processor seconds to load a shared object */
  TRIAL_FILE = 4096,  /* bytes that libomp may write meanwhile */
  FLAGS = 160,        /* bytes */
  NAME_MOST = 200     /* bytes of a function's name */
};

/* Rows of flags, best first; the first that works is used.
 *
 *  - gcc -O3 peels short loops of explicit vectors, which halves the speed of some kernels.
 *  - -fno-tree-bit-ccp: bit-wise constant propagation takes a quarter of the time and improves no
 *    instruction (emit_c.c writes what matters).
 *  - avoid-fma-max-bits=0: when tuned for AMD, gcc splits some fused multiply-adds, but others with
 *    OpenMP than without, so that results would depend on threads.
 *  - clang splits 64-byte vectors unless prefer-vector-width is set.
 */
static const char *const gcc_flags[] = {
    "-O2 -fno-tree-bit-ccp --param=avoid-fma-max-bits=0 -march=native -fopenmp",
    "-O2 -fno-tree-bit-ccp -march=native -fopenmp",
    "-O2 -fno-tree-bit-ccp -march=native",
    "-O2 -march=native",
    "-O2 -fopenmp",
    "-O2",
    NULL,
};
static const char *const clang_flags[] = {
    "-O2 -march=native -mprefer-vector-width=512 -fopenmp",
    "-O2 -march=native -mprefer-vector-width=512",
    "-O2 -march=native",
    "-O2",
    NULL,
};
static const char *const quick_clang_flags[] = {
    "-O1 -march=native -mprefer-vector-width=512 -fopenmp",
    "-O1 -march=native -mprefer-vector-width=512",
    "-O1 -march=native",
    "-O1",
    NULL,
};
static const char *const other_flags[] = {"-O2", "-O2 -march=native", NULL};

struct compiler {
  char *command;  /* command as given */
  size_t program; /* length of its first word, a path that may contain blanks */
  char *cache;
  double seconds, wall; /* limits per file: processor and wall-clock seconds */
  char version[256];    /* first line of --version */
  char flags[FLAGS];
  char *text;
  uint64_t machine; /* hash of what -march=native depends on */
  bool quick, tried;
};

/* ---- one call -------------------------------------------------------------------------------- */

static const char blanks[] = " \t\n";

/* Limits of one call: processor seconds; wall-clock seconds (0: CHILD_WALL times as many);
 * clock_wall time of the end. */
struct patience {
  double seconds, wall, until;
};

/* Runs the compiler with additional words. */
static canvas_status run_words(canvas_context *ctx, const struct compiler *c, const char *more,
                               const char *folder, const struct patience *patience,
                               struct child_end *end) {
  const struct child_limits limits = {.seconds = patience->seconds,
                                      .wall = patience->wall,
                                      .until = patience->until,
                                      .memory = (int64_t)MEMORY_MOST << 30,
                                      .file = OBJECT_MOST};
  struct buf line = {0};
  char *words[WORDS + 1], *rest;
  int count = 0;
  buf_printf(&line, "%s %s", c->command, more);
  words[count++] = line.text;
  line.text[c->program] = '\0';
  for (char *p = strtok_r(line.text + c->program + 1, blanks, &rest); p && count < WORDS;
       p = strtok_r(NULL, blanks, &rest))
    words[count++] = p;
  words[count] = NULL;
  canvas_status status = child_exec(ctx, words, folder, &limits, end);
  buf_free(&line);
  return status;
}

/* Whether the line only repeats that the linker failed, which explained itself one line before. */
static bool is_of_linker(const char *line) {
  return strstr(line, "ld returned") || strstr(line, "linker command failed");
}

/* The most informative line: the first with an error, else the last that is not blank; NULL:
 * none. */
static const char *error_line(char *output) {
  const char *last = NULL;
  char *rest;
  for (char *line = strtok_r(output, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
    if (strstr(line, "error")) return last && is_of_linker(line) ? last : line;
    if (line[strspn(line, " ")]) last = line;
  }
  return last;
}

static void explain_end(const char *command, const struct child_end *end, char *out, size_t size) {
  const struct child_limits limits = {.memory = (int64_t)MEMORY_MOST << 30};
  char how[256], output[CHILD_OUTPUT];
  child_describe(end, &limits, how, sizeof how);
  memcpy(output, end->output, sizeof output);
  const char *line = error_line(output);
  snprintf(out, size, "'%.200s' %s%s%.400s", command, how, line ? ": " : "", line ? line : "");
}

/* ---- one file -------------------------------------------------------------------------------- */

static bool is_name(const char *name) {
  if (!name || strlen(name) > NAME_MOST || isdigit((unsigned char)*name)) return false;
  for (const char *p = name; *p; p++)
    if (!isalnum((unsigned char)*p) && *p != '_') return false;
  return *name != '\0';
}

/* Writes int canvas_call_F(void *const *a) { return F(a[0], a[1]); }. */
static void write_one_call(const char *function, int pointers, struct buf *out) {
  buf_printf(out, "\nint %s%s(void *const *);\nint %s%s(void *const *a) {\n  return %s(",
             COMPILER_CALL, function, COMPILER_CALL, function, function);
  for (int i = 0; i < pointers; i++) buf_printf(out, "%sa[%d]", i ? ", " : "", i);
  buf_puts(out, ");\n}\n");
}

static void write_call(const struct source *s, struct buf *out) {
  if (s->prepare) write_one_call(s->prepare, s->prepare_pointers, out);
  write_one_call(s->function, s->pointers, out);
}

/* Whether a source has a parallel loop. Only then libomp is linked, which takes time to load. */
static bool has_threads(const struct source *sources, int count) {
  for (int i = 0; i < count; i++)
    if (strstr(sources[i].text, "PRAGMA(omp ") || strstr(sources[i].text, "#pragma omp "))
      return true;
  return false;
}

/* Length of the flags, without the last one, -fopenmp, if not threaded. */
static int flags_length(const struct compiler *c, bool threads) {
  const char *openmp = threads ? NULL : strstr(c->flags, " -fopenmp");
  return (int)(openmp ? openmp - c->flags : (long)strlen(c->flags));
}

/* The file to compile. It contains everything that the object depends on, so it is also the key. */
static char *write_file(const struct compiler *c, const struct source *sources, int count,
                        bool threads, size_t *length) {
  struct buf out = {0};
  buf_printf(&out, "/* %s, machine %016llx */\n", c->text, (unsigned long long)c->machine);
  if (!threads) buf_puts(&out, "/* without threads */\n");
  for (int i = 0; i < count; i++) {
    buf_printf(&out, "#line 1 \"%s.c\"\n%s", sources[i].function, sources[i].text);
    write_call(&sources[i], &out);
  }
  *length = out.length;
  return buf_take(&out);
}

/* Whether the compiler, which reported success, has written the file. */
static bool check_made(const struct compiler *c, const char *work, const char *file,
                       struct object *out) {
  char *path = path_join(work, file);
  struct stat s;
  bool there = !stat(path, &s) && S_ISREG(s.st_mode);
  mem_free(path);
  if (there && s.st_size) return true;
  snprintf(out->message, sizeof out->message, "'%.200s' ended well but wrote %s", c->command,
           there ? "an empty file" : "no file");
  return false;
}

/* A kind of output: the end of the command line, and the file that is written. */
struct making {
  const char *words, *file;
  bool shared;                 /* the file is loaded rather than linked */
  const struct linked *linked; /* objects whose paths are in the file `objects`; NULL: none */
};
static const struct making shared_object = {"-shared -fPIC -w -o unit.so unit.c -lm", "unit.so",
                                            true, NULL};
static const struct making linker_object = {"-c -fPIC -fvisibility=hidden -w -o unit.o unit.c",
                                            "unit.o", false, NULL};

/* Writes the paths quoted, since both compilers split them at blanks. */
static canvas_status write_objects(canvas_context *ctx, const struct linked *linked,
                                   const char *work) {
  struct buf text = {0};
  char *file = path_join(work, "objects");
  buf_puts(&text, "");
  for (int i = 0; i < linked->count; i++) {
    buf_puts(&text, "\"");
    for (const char *p = linked->objects[i]; *p; p++)
      buf_printf(&text, strchr("\"\\", *p) ? "\\%c" : "%c", *p);
    buf_puts(&text, "\"\n");
  }
  canvas_status status = file_write(ctx, file, text.text, text.length);
  buf_free(&text);
  mem_free(file);
  return status;
}

/* One call of the compiler. */
struct call {
  const struct making *making;
  const char *text;
  size_t length;
  bool threads;
  struct patience patience;
};

/* Compiles unit.c in the work folder. If the compiler fails, `out` has the reason. */
static canvas_status compile(canvas_context *ctx, const struct compiler *c, const struct call *call,
                             const char *work, bool *made, struct object *out) {
  struct child_end end;
  struct buf words = {0};
  buf_printf(&words, "%.*s %s", flags_length(c, call->threads), c->flags, call->making->words);
  canvas_status status = run_words(ctx, c, words.text, work, &call->patience, &end);
  buf_free(&words);
  if (status != CANVAS_OK) return status;
  memcpy(out->output, end.output, sizeof out->output);
  out->hung = end.how == CHILD_OUT_OF_TIME;
  if (end.how != CHILD_EXITED || end.code)
    explain_end(c->command, &end, out->message, sizeof out->message);
  else
    *made = check_made(c, work, call->making->file, out);
  return CANVAS_OK;
}

static int load_once(void *data) {
  return dlopen(data, RTLD_NOW | RTLD_LOCAL) ? 0 : 1;
}

/* Loads the new file in a child: a file that ends the process that loads it must not be cached. One
 * that is merely rejected may be for another machine. */
static canvas_status try_to_load(canvas_context *ctx, const struct call *call, const char *work,
                                 bool *made, struct object *out) {
  const struct child_limits limits = {.seconds = TRIAL_SECONDS, .file = TRIAL_FILE};
  struct child_end end;
  char how[256];
  char *path = path_join(work, call->making->file);
  canvas_status status = child_call(ctx, load_once, path, &limits, &end);
  mem_free(path);
  *made = status == CANVAS_OK && end.how == CHILD_EXITED;
  if (status != CANVAS_OK || *made) return status;
  child_describe(&end, &limits, how, sizeof how);
  snprintf(out->message, sizeof out->message, "what was compiled cannot be loaded: it %s", how);
  return CANVAS_OK;
}

static canvas_status compile_in(canvas_context *ctx, const struct compiler *c,
                                const struct call *call, const char *work, struct object *out) {
  bool made = false;
  char *file = path_join(work, "unit.c");
  canvas_status status = file_write(ctx, file, call->text, call->length);
  mem_free(file);
  if (status == CANVAS_OK && call->making->linked)
    status = write_objects(ctx, call->making->linked, work);
  if (status == CANVAS_OK) status = compile(ctx, c, call, work, &made, out);
  if (made && c->tried && call->making->shared) status = try_to_load(ctx, call, work, &made, out);
  if (made && status == CANVAS_OK)
    status =
        cache_keep(ctx, c->cache, call->text, call->length, work, call->making->file, &out->path);
  return status;
}

/* Compiles; retries once, outside of the cache, if the work folder was removed. */
static canvas_status compile_and_keep(canvas_context *ctx, const struct compiler *c,
                                      const struct call *call, struct object *out) {
  canvas_status status = CANVAS_OK;
  for (int outside = 0; outside < 2; outside++) {
    char *work;
    memset(out, 0, sizeof *out);
    struct mem_deferred dropping;
    TRY(outside ? cache_work_outside(ctx, &work) : cache_work(ctx, c->cache, &work));
    mem_defer(&dropping, cache_work_drop, work);
    status = compile_in(ctx, c, call, work, out);
    bool gone = !out->path && cache_work_gone(work);
    mem_undefer(&dropping);
    cache_work_end(work);
    if (!gone) break;
  }
  return status;
}

/* A share of the time limit of a file. */
static struct patience patience_of(const struct compiler *c, double part) {
  return (struct patience){part * c->seconds, part * c->wall, 0};
}

/* The time limit halved for each earlier file that hung, down to a twelfth. */
static struct patience patience_after(const struct compiler *c, int hung) {
  return patience_of(c, fmax(ldexp(1, -hung), 1. / 12));
}

/* Whether there is time left; sets patience->until. */
static bool has_time(double until, struct patience *patience) {
  patience->until = until;
  return !child_stopped() && (!until || clock_wall() < until);
}

static canvas_status build_file(canvas_context *ctx, const struct compiler *c,
                                const struct source *sources, int count, struct patience patience,
                                double until, struct object *out) {
  struct call call = {
      .making = &shared_object, .threads = has_threads(sources, count), .patience = patience};
  memset(out, 0, sizeof *out);
  char *text = write_file(c, sources, count, call.threads, &call.length);
  canvas_status status = CANVAS_OK;
  call.text = text;
  out->path = cache_find(c->cache, text, call.length);
  out->cached = out->path != NULL;
  if (!out->cached && !has_time(until, &call.patience))
    snprintf(out->message, sizeof out->message, "there was no time left to compile it");
  else if (!out->cached)
    status = compile_and_keep(ctx, c, &call, out);
  out->late = !out->path && !has_time(until, &call.patience);
  mem_free(text);
  return status;
}

/* ---- objects for the linker ------------------------------------------------------------------ */

/* The first line of a file, which makes compiler and kind part of the key. */
static void put_first_line(const struct compiler *c, const char *what, bool threads,
                           struct buf *out) {
  buf_printf(out, "/* %s, machine %016llx, %s */\n", c->text, (unsigned long long)c->machine, what);
  if (!threads) buf_puts(out, "/* without threads */\n");
}

static void put_object_key(const struct compiler *c, const char *text, bool threads,
                           struct buf *out) {
  put_first_line(c, "an object", threads, out);
  buf_puts(out, text);
}

static canvas_status make_object(canvas_context *ctx, const struct compiler *c,
                                 const struct making *making, const struct buf *key, bool threads,
                                 struct patience patience, struct object *out) {
  const struct call call = {making, key->text, key->length, threads, patience};
  memset(out, 0, sizeof *out);
  out->path = cache_find(c->cache, key->text, key->length);
  out->cached = out->path != NULL;
  return out->cached ? CANVAS_OK : compile_and_keep(ctx, c, &call, out);
}

canvas_status compiler_object(canvas_context *ctx, const struct compiler *c, const char *text,
                              bool threads, int hung, struct object *out) {
  struct buf key = {0};
  put_object_key(c, text, threads, &key);
  canvas_status status =
      make_object(ctx, c, &linker_object, &key, threads, patience_after(c, hung), out);
  buf_free(&key);
  return status;
}

bool compiler_has_object(const struct compiler *c, const char *text, bool threads) {
  struct buf key = {0};
  put_object_key(c, text, threads, &key);
  char *path = cache_find(c->cache, key.text, key.length);
  buf_free(&key);
  mem_free(path);
  return path != NULL;
}

void compiler_forget_object(const struct compiler *c, const char *text, bool threads) {
  struct buf key = {0};
  put_object_key(c, text, threads, &key);
  char *path = cache_find(c->cache, key.text, key.length);
  if (path) cache_drop(path);
  mem_free(path);
  buf_free(&key);
}

canvas_status compiler_work(canvas_context *ctx, const struct compiler *c, char **out) {
  return cache_work(ctx, c->cache, out);
}

/* The text to compile, followed by the texts of the objects, which the preprocessor skips. */
static void put_linked_key(const struct compiler *c, const struct linked *what, struct buf *out) {
  put_first_line(c, "a network", what->threads, out);
  buf_puts(out, what->text);
  buf_puts(out, "#if 0\n");
  for (int i = 0; i < what->count; i++) buf_puts(out, what->texts[i]);
  buf_puts(out, "#endif\n");
}

canvas_status compiler_link(canvas_context *ctx, const struct compiler *c,
                            const struct linked *what, struct object *out) {
  const struct making making = {"-shared -fPIC -w -o unit.so unit.c @objects -lm", "unit.so", true,
                                what};
  struct buf key = {0};
  put_linked_key(c, what, &key);
  canvas_status status = make_object(ctx, c, &making, &key, what->threads, patience_of(c, 1), out);
  buf_free(&key);
  return status;
}

char *compiler_find_linked(const struct compiler *c, const struct linked *what) {
  struct buf key = {0};
  put_linked_key(c, what, &key);
  char *path = cache_find(c->cache, key.text, key.length);
  buf_free(&key);
  return path;
}

/* ---- many sources ---------------------------------------------------------------------------- */

/* Number of leading sources that share a file: their names must differ. */
static int take_group(const struct source *sources, int count, int together) {
  int n = 1;
  for (; n < count && n < together; n++) {
    if (!is_name(sources[n].function)) return n;
    for (int i = 0; i < n; i++)
      if (!strcmp(sources[i].function, sources[n].function)) return n;
  }
  return n;
}

static canvas_status build_alone(canvas_context *ctx, const struct compiler *c,
                                 const struct source *sources, int count, double until,
                                 struct object *objects) {
  int hung = 0;
  for (int i = 0; i < count; i++) {
    TRY(build_file(ctx, c, &sources[i], 1, patience_after(c, hung), until, &objects[i]));
    hung += objects[i].hung;
  }
  return CANVAS_OK;
}

static canvas_status build_group(canvas_context *ctx, const struct compiler *c,
                                 const struct source *sources, int count, double until,
                                 struct object *objects) {
  struct object all;
  const struct patience patience = patience_of(c, 1 + 0.1 * (count - 1));
  TRY(build_file(ctx, c, sources, count, patience, until, &all));
  if (count > 1 && !all.path) return build_alone(ctx, c, sources, count, until, objects);
  for (int i = 0; i < count; i++) {
    objects[i] = all;
    if (all.path) objects[i].path = mem_strdup(all.path);
  }
  mem_free(all.path);
  return CANVAS_OK;
}

canvas_status compiler_build(canvas_context *ctx, const struct compiler *c,
                             const struct source *sources, int count, int together, double until,
                             struct object *objects) {
  memset(objects, 0, (size_t)count * sizeof *objects);
  for (int i = 0, n; i < count; i += n) {
    if (!is_name(sources[i].function)) {
      snprintf(objects[i].message, sizeof objects[i].message,
               "a function's name is a C name of at most %d characters", NAME_MOST);
      n = 1;
      continue;
    }
    n = take_group(sources + i, count - i, together);
    canvas_status status = build_group(ctx, c, sources + i, n, until, objects + i);
    if (status != CANVAS_OK) {
      objects_free(objects, count);
      return status;
    }
  }
  return CANVAS_OK;
}

void objects_free(struct object *objects, int count) {
  for (int i = 0; i < count; i++) {
    mem_free(objects[i].path);
    objects[i].path = NULL;
  }
}

/* ---- which compiler, and what it can do ------------------------------------------------------ */

/* Hash of the processor as -march=native sees it. */
static uint64_t hash_machine(void) {
  struct buf text = {0};
  uint64_t h = UINT64_C(0xCBF29CE484222325);
  if (file_read("/proc/cpuinfo", 1 << 20, &text) && text.text) {
    char *rest, *end = strstr(text.text, "\n\n"); /* keeps the first processor */
    if (end) *end = '\0';
    for (char *line = strtok_r(text.text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
      static const char *const kept[] = {"model name", "flags", "Features", "CPU part", NULL};
      for (int i = 0; kept[i]; i++)
        if (!strncmp(line, kept[i], strlen(kept[i])))
          for (char *p = line; *p; p++) h = (h ^ (unsigned char)*p) * UINT64_C(0x100000001B3);
    }
  }
  buf_free(&text);
  return h;
}

/* Keeps the first line of --version without characters that could end a C comment. */
static void keep_version(struct compiler *c, const char *output) {
  size_t length = strcspn(output, "\n");
  if (length >= sizeof c->version) length = sizeof c->version - 1;
  memcpy(c->version, output, length);
  c->version[length] = '\0';
  for (char *p = c->version; *p; p++)
    if (*p == '*' || *p == '\\' || *p == '?') *p = '_';
}

static const char *const *rows_of_flags(const char *output, bool quick) {
  if (strstr(output, "clang")) return quick ? quick_clang_flags : clang_flags;
  if (strstr(output, "Free Software Foundation")) return gcc_flags;
  return other_flags;
}

static void write_text(struct compiler *c) {
  struct buf text = {0};
  mem_free(c->text);
  buf_printf(&text, "%s %s (%s)", c->command, c->flags, c->version);
  c->text = buf_take(&text);
  for (char *p = c->text; *p; p++)
    if (*p == '*') *p = '_';
}

/* Sets a row of flags for the target; false: the row has no -march, but a target was named. */
static bool set_flags(struct compiler *c, const char *row, const char *target) {
  static const char native[] = "-march=native";
  const char *at = strstr(row, native);
  if (!at && strcmp(target, "native")) return false;
  int before = at ? (int)(at - row) : (int)strlen(row);
  snprintf(c->flags, sizeof c->flags, "%.*s%s%.60s%s", before, row, at ? "-march=" : "",
           at ? target : "", at ? at + strlen(native) : "");
  return true;
}

/* Sets the first row of flags with which a small file compiles. *works: there is one, else `why`.
 * Stops at the first hang. */
static canvas_status try_flags(canvas_context *ctx, struct compiler *c, const char *const *rows,
                               const char *target, bool *works, char *why, size_t size) {
  static const struct source trial = {
      "int canvas_trial(float *x);\nint canvas_trial(float *x) {\n#pragma omp parallel for\n"
      "  for (int i = 0; i < 64; i++) x[i] *= 2;\n  return 0;\n}\n",
      "canvas_trial", 1, NULL, 0};
  bool hangs = *works = false;
  for (; *rows && !*works && !hangs; rows++) {
    struct object object;
    if (!set_flags(c, *rows, target)) continue;
    write_text(c);
    TRY(build_file(ctx, c, &trial, 1, (struct patience){c->seconds, c->seconds, 0}, 0, &object));
    *works = object.path != NULL;
    hangs = object.hung;
    snprintf(why, size, "%.400s", object.message);
    mem_free(object.path);
  }
  return CANVAS_OK;
}

static bool is_file(const char *path, size_t length) {
  char *copy = mem_strdup(path);
  struct stat s;
  copy[length] = '\0';
  bool is = !stat(copy, &s) && S_ISREG(s.st_mode);
  mem_free(copy);
  return is;
}

/* Length of a command's first word: up to the first blank, or to a later one if that gives the path
 * of a file. */
static size_t program_length(const char *command) {
  size_t first = strcspn(command, blanks), length = first;
  while (!memchr(command, '/', length) || !is_file(command, length)) {
    if (!command[length]) return first;
    length += strspn(command + length, blanks);
    length += strcspn(command + length, blanks);
  }
  return length;
}

/* Finds version and flags of one command. */
static canvas_status try_command(canvas_context *ctx, struct compiler *c, const char *command,
                                 const char *target, bool *works, char *why, size_t size) {
  struct child_end end;
  mem_free(c->command);
  command += strspn(command, blanks);
  size_t length = program_length(command);
  /* a path, not a name to search for */
  bool path = memchr(command, '/', length) != NULL;
  c->command = path ? path_absolute(command) : mem_strdup(command);
  c->program = strlen(c->command) - strlen(command) + length;
  *works = false;
  const struct patience patience = {.seconds = c->seconds, .wall = c->seconds};
  TRY(run_words(ctx, c, "--version", "/", &patience, &end));
  if (end.how != CHILD_EXITED || end.code) {
    explain_end(c->command, &end, why, size);
    return CANVAS_OK;
  }
  keep_version(c, end.output);
  return try_flags(ctx, c, rows_of_flags(end.output, c->quick), target, works, why, size);
}

static canvas_status choose(canvas_context *ctx, struct compiler *c, const char *command,
                            const char *target) {
  static const char *const usual[] = {"cc", "gcc", "clang"}, *const quick[] = {"clang", "cc",
                                                                               "gcc"};
  const char *const *known = c->quick ? quick : usual;
  char why[MESSAGE_SIZE] = "";
  bool works = false;
  const char *advice = command ? "" : " (CANVAS_CC names it: set it to gcc or clang)";
  if (!command) command = getenv("CANVAS_CC");
  if (command && command[strspn(command, blanks)]) {
    TRY(try_command(ctx, c, command, target, &works, why, sizeof why));
    if (works) return CANVAS_OK;
    TRY(cache_has_room(ctx, c->cache));
    return fail(ctx, CANVAS_IO, "the C compiler does not work: %.600s%s", why, advice);
  }
  for (int i = 0; i < 3 && !works; i++)
    TRY(try_command(ctx, c, known[i], target, &works, why, sizeof why));
  if (works) return CANVAS_OK;
  TRY(cache_has_room(ctx, c->cache)); /* a full cache is not the compilers' fault */
  return fail(ctx, CANVAS_IO,
              "no C compiler works, of cc, gcc and clang: %.600s; install gcc or clang, or say in "
              "CANVAS_CC which to use",
              why);
}

canvas_status compiler_open(canvas_context *ctx, const struct compiler_options *options,
                            struct compiler **out) {
  struct compiler *c = mem_alloc(sizeof *c);
  const char *target = options && options->target ? options->target : "native";
  c->seconds = options && options->seconds > 0 ? options->seconds : FILE_SECONDS;
  c->wall = options && options->wall > 0 ? options->wall : CHILD_WALL * c->seconds;
  c->quick = options && options->quick;
  c->tried = options && options->tried;
  c->machine = hash_machine();
  canvas_status status = cache_open(ctx, options ? options->cache : NULL, &c->cache);
  if (status == CANVAS_OK) status = choose(ctx, c, options ? options->command : NULL, target);
  if (status == CANVAS_OK)
    *out = c;
  else
    compiler_close(c);
  return status;
}

void compiler_close(struct compiler *c) {
  if (!c) return;
  mem_free(c->command);
  mem_free(c->cache);
  mem_free(c->text);
  mem_free(c);
}

const char *compiler_text(const struct compiler *c) {
  return c->text;
}
