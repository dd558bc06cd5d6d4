/* Many candidates of one program. See batch.h. */
#include "run/batch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "run/cache.h"
#include "run/child.h"

enum { TOGETHER = 10, PREPARE_NAME = 128 };

struct batch {
  canvas_context *ctx;
  const struct compiler *c;
  const struct expected *e;
  struct batch_options options;
  double until; /* 0: no limit */
};

static struct source source_of(const struct batch *b, const struct batch_candidate *candidate,
                               char *prepare) {
  const struct measure_prepare *p = candidate->prepare;
  struct source s = {candidate->text, candidate->function, b->e->inputs + b->e->outputs, NULL, 0};
  if (!p) return s;
  snprintf(prepare, PREPARE_NAME, "%s_prepare", candidate->function);
  s.prepare = prepare;
  s.pointers = b->e->outputs + 1;
  s.prepare_pointers = 1;
  for (int i = 0; i < b->e->inputs; i++) {
    s.pointers += p->rest[i];
    s.prepare_pointers += p->prepare[i];
  }
  return s;
}

/* The verdict on what was compiled, or on that it could not be. */
static canvas_status judge(const struct batch *b, const struct batch_candidate *candidate,
                           const struct object *object, struct verdict *v) {
  struct measure_limits limits = b->options.limits;
  if (!object->path) {
    verdict_fail(v, FAILED_COMPILE, "%s", object->message);
    return CANVAS_OK;
  }
  double left = b->until ? b->until - clock_wall() : HUGE_VAL;
  if (left <= 0) {
    verdict_fail(v, FAILED_TIMEOUT, "there was no time left to run it");
    return CANVAS_OK;
  }
  if (b->until && (!(limits.seconds > 0) || left < limits.seconds)) limits.seconds = fmin(left, 10);
  return measure(b->ctx, b->e, object->path, candidate->function, candidate->prepare, &limits, v);
}

/* In an object of its own, made anew. */
static canvas_status judge_alone(const struct batch *b, const struct batch_candidate *candidate,
                                 struct verdict *v) {
  char name[PREPARE_NAME];
  struct source source = source_of(b, candidate, name);
  struct object object;
  TRY(compiler_build(b->ctx, b->c, &source, 1, 1, b->until, &object));
  *v = (struct verdict){.failure = FAILED_NOT};
  canvas_status status = judge(b, candidate, &object, v);
  objects_free(&object, 1);
  return status;
}

/* Where the object of several does not load, one of them is to blame, or it was damaged in the cache:
 * all of them that share it get objects of their own. */
static canvas_status judge_all(const struct batch *b, const struct batch_candidate *candidates,
                               int count, const struct object *objects, struct verdict **verdicts) {
  const char *bad = "";
  for (int i = 0; i < count; i++) {
    const char *path = objects[i].path ? objects[i].path : "";
    *verdicts[i] = (struct verdict){.failure = FAILED_NOT};
    if (!*path || strcmp(path, bad) != 0) TRY(judge(b, &candidates[i], &objects[i], verdicts[i]));
    if (verdicts[i]->failure == FAILED_LOAD && (count > 1 || objects[i].cached)) {
      bad = path;
      if (objects[i].cached) cache_drop(path);
    }
    if (*path && !strcmp(path, bad)) TRY(judge_alone(b, &candidates[i], verdicts[i]));
  }
  return CANVAS_OK;
}

static canvas_status run_group(const struct batch *b, const struct batch_candidate *candidates,
                               int count, struct verdict **verdicts) {
  struct source *sources = mem_alloc((size_t)count * sizeof *sources);
  struct object *objects = mem_alloc((size_t)count * sizeof *objects);
  char (*names)[PREPARE_NAME] = mem_alloc((size_t)count * sizeof *names);
  for (int i = 0; i < count; i++) sources[i] = source_of(b, &candidates[i], names[i]);
  canvas_status status =
      compiler_build(b->ctx, b->c, sources, count, b->options.together, b->until, objects);
  if (status == CANVAS_OK) status = judge_all(b, candidates, count, objects, verdicts);
  objects_free(objects, count);
  free(names);
  free(objects);
  free(sources);
  return status;
}

canvas_status batch_run(canvas_context *ctx, const struct compiler *c, const struct expected *e,
                        const struct batch_candidate *candidates, int count,
                        const struct batch_options *options, struct verdict *verdicts) {
  struct batch b = {.ctx = ctx, .c = c, .e = e};
  if (options) b.options = *options;
  if (b.options.together <= 0) b.options.together = TOGETHER;
  if (b.options.seconds > 0) b.until = clock_wall() + b.options.seconds;
  struct batch_candidate *group = mem_alloc((size_t)b.options.together * sizeof *group);
  struct verdict **into = mem_alloc((size_t)b.options.together * sizeof *into);
  canvas_status status = CANVAS_OK;
  for (int i = 0; status == CANVAS_OK && i < count;) {
    int n = 0;
    for (; i < count && n < b.options.together; i++) {
      if (!candidates[i].text) continue;
      group[n] = candidates[i];
      into[n++] = &verdicts[i];
    }
    if (n) status = run_group(&b, group, n, into);
  }
  free(group);
  free(into);
  return status;
}
