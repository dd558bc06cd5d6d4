/* An installed C compiler, called directly, never through a shell.
 *
 * It is $CANVAS_CC (a program and leading words), or the first that works of cc, gcc and clang. A
 * row of flags is used if a small file compiles with it; the result is cached. The compiler runs as
 * a child with limits: if it crashes, hangs, prints noise or writes nothing, only its own sources
 * fail, with the end of its output as a message.
 */
#ifndef CANVAS_RUN_COMPILER_H
#define CANVAS_RUN_COMPILER_H

#include "base/status.h"
#include "run/child.h"

/* NULL or 0: the default given in the comment or by the environment. */
struct compiler_options {
  const char *command; /* "gcc-12 -m64" */
  const char *cache;   /* folder of the cache */
  const char *target;  /* value of -march; default "native" */
  double seconds;      /* processor seconds per file, 10 % more for each further source: 60 */
  double wall;         /* wall-clock seconds; default CHILD_WALL times `seconds` */
  bool tried;          /* a child loads each shared object before it is cached */
  bool quick;          /* prefers clang -O1: half of gcc's time for about equal code */
};

struct compiler; /* thread-safe */

/* CANVAS_IO: no compiler works; the message lists those tried and why the last one failed. */
canvas_status compiler_open(canvas_context *ctx, const struct compiler_options *options,
                            struct compiler **out);
void compiler_close(struct compiler *c);             /* NULL is fine */
const char *compiler_text(const struct compiler *c); /* "gcc -O2 ... (gcc 12.2.0)" */

/* A C file and a function in it that takes `pointers` pointers and returns int. It is called
 * through a wrapper that takes an array, COMPILER_CALL and its name. */
struct source {
  const char *text;
  const char *function; /* a C name */
  int pointers;
  const char *prepare; /* a second function, called in the same way; NULL: none */
  int prepare_pointers;
};
#define COMPILER_CALL "canvas_call_"

/* The code of a source, or the reason why there is none. */
struct object {
  char *path;  /* path of the shared object, which sources may share; NULL: failed */
  bool cached; /* found in the cache */
  bool hung;   /* the compiler exceeded its processor or wall-clock seconds */
  bool late;   /* `until` had passed before it was compiled */
  char message[MESSAGE_SIZE];
  char output[CHILD_OUTPUT]; /* end of the compiler's output on failure */
};

/* Compiles up to `together` sources per file. If a file does not compile, its sources are compiled
 * one by one, so that only bad ones fail; after each one that hangs the time limit is halved.
 * `until`: clock_wall time after which the rest fails; 0: none. Another status than CANVAS_OK: the
 * cache or the system fails. */
canvas_status compiler_build(canvas_context *ctx, const struct compiler *c,
                             const struct source *sources, int count, int together, double until,
                             struct object *objects);
void objects_free(struct object *objects, int count);

/* Compiles one text to an object whose functions are visible only to what it is linked with. On
 * failure `out` has the reason. `threads`: loops run in parallel. `hung`: number of earlier files
 * that hung, which shortens the limit. */
canvas_status compiler_object(canvas_context *ctx, const struct compiler *c, const char *text,
                              bool threads, int hung, struct object *out);
bool compiler_has_object(const struct compiler *c, const char *text, bool threads);

void compiler_forget_object(const struct compiler *c, const char *text, bool threads);

/* Creates a folder for copies of objects; cache_work_end removes it. */
canvas_status compiler_work(canvas_context *ctx, const struct compiler *c, char **out);

/* A text and objects to link to a shared object. */
struct linked {
  const char *text;
  int count;
  const char *const *texts;   /* text of each object */
  const char *const *objects; /* paths of private copies of the objects */
  bool threads;
};
canvas_status compiler_link(canvas_context *ctx, const struct compiler *c,
                            const struct linked *what, struct object *out);
char *compiler_find_linked(const struct compiler *c,
                           const struct linked *what); /* NULL: not cached */

#endif
