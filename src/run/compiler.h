/* An installed C compiler, called by its words and never through a shell.
 *
 * $CANVAS_CC (a program, and words that come before ours) or the first that works of cc, gcc and
 * clang. What it can do is found out once, by trying: a row of flags is used if a small file compiles
 * with it; the answer lies in the cache. It runs as a child with limits: a compiler that dies, hangs,
 * prints noise or writes nothing costs the sources it was given, and the end of what it said is told.
 */
#ifndef CANVAS_RUN_COMPILER_H
#define CANVAS_RUN_COMPILER_H

#include "base/status.h"
#include "run/child.h"

/* NULL or 0: as the environment says. */
struct compiler_options {
  const char *command; /* "gcc-12 -m64" */
  const char *cache;   /* folder */
  const char *target;  /* for -march; a word; "native" */
  double
      seconds; /* of processor time, with all that the compiler starts, for one file of one source,
                     and a tenth more for each further one: 60 */
  double wall; /* by the clock: CHILD_WALL times `seconds` */
  bool tried;  /* a child loads each shared object before it is kept, as this process will */
  bool quick;  /* clang -O1 where there is one: half of gcc's time, for code about as fast */
};

struct compiler; /* several threads may use one */

/* CANVAS_IO: none works; the error message says which were tried and why the last one did not do. */
canvas_status compiler_open(canvas_context *ctx, const struct compiler_options *options,
                            struct compiler **out);
void compiler_close(struct compiler *c);             /* NULL is fine */
const char *compiler_text(const struct compiler *c); /* "gcc -O2 ... (gcc 12.2.0)" */

/* A C file and a function in it that takes `pointers` pointers and answers an int. It is called
 * through a function beside it, which takes them as an array: COMPILER_CALL and its name. */
struct source {
  const char *text;
  const char *function; /* a C name */
  int pointers;
  const char *prepare; /* another function in it, called in the same way; NULL: none */
  int prepare_pointers;
};
#define COMPILER_CALL "canvas_call_"

/* Where a source's code is, or why there is none. */
struct object {
  char *path;  /* of the shared object, which several sources may share; or NULL */
  bool cached; /* it was found in the cache */
  bool hung;   /* the compiler took longer than its seconds, of processor time or by the clock */
  bool late;   /* `until` was over before it was compiled */
  char message[MESSAGE_SIZE];
  char said[CHILD_SAID]; /* the end of what the compiler printed where it failed */
};

/* Up to `together` sources per file. Where a file does not compile, its sources are compiled one by
 * one, so that only the bad ones fail; where it hung, it gets less time with each that hangs again.
 * `until`: a time of clock_wall, 0 for none; what has not been compiled by then fails. A status other than CANVAS_OK: the cache or the system fails. */
canvas_status compiler_build(canvas_context *ctx, const struct compiler *c,
                             const struct source *sources, int count, int together, double until,
                             struct object *objects);
void objects_free(struct object *objects, int count);

/* One text as an object for the linker, whose functions are seen by what it is linked with alone. A compiler
 * that fails leaves its reasons in `out`. With `threads` loops run in parallel. After others that `hung` it
 * gets less time. */
canvas_status compiler_object(canvas_context *ctx, const struct compiler *c, const char *text,
                              bool threads, int hung, struct object *out);
bool compiler_has_object(const struct compiler *c, const char *text, bool threads);

void compiler_forget_object(const struct compiler *c, const char *text, bool threads);

/* A new folder for copies of objects, ended by cache_work_end. */
canvas_status compiler_work(canvas_context *ctx, const struct compiler *c, char **out);

/* A text and such objects, linked to a shared object. */
struct linked {
  const char *text;
  int count;
  const char *const *texts;   /* of the objects */
  const char *const *objects; /* paths of copies that nobody else changes */
  bool threads;
};
canvas_status compiler_link(canvas_context *ctx, const struct compiler *c,
                            const struct linked *what, struct object *out);
char *compiler_find_linked(const struct compiler *c, const struct linked *what); /* or NULL */

#endif
