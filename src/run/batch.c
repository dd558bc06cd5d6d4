/* Compiles, checks and times candidates of one program. See batch.h. */
#include "run/batch.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "run/cache.h"
#include "run/child.h"

enum { TOGETHER = 20, NAME_SIZE = 128, PATH_SIZE = 4096 };
enum { AGAIN = 3 }; /* attempts to compile objects that others remove before they are open */

struct batch {
  canvas_context *ctx;
  const struct compiler *c;
  const struct expected *e;
  int together;
  bool separate;
  struct measure_limits limits;
};

/* A candidate that has a text. */
struct member {
  const struct batch_candidate *candidate;
  struct verdict *verdict;
  double *times; /* seconds of its rounds; NULL: none are timed */
  char prepare[NAME_SIZE];
};

/* Candidates that share a file. */
struct group {
  int count;
  struct member *members;
  struct source *sources;
  struct object *objects;
};

/* ---- sources --------------------------------------------------------------------------------- */

static struct source source_of(const struct batch *b, struct member *m) {
  const struct batch_candidate *c = m->candidate;
  const struct measure_prepare *p = c->prepare;
  struct source s = {c->text, c->function, b->e->inputs + b->e->outputs, NULL, 0};
  if (!p) return s;
  snprintf(m->prepare, sizeof m->prepare, "%s_prepare", c->function);
  s.prepare = m->prepare;
  s.pointers = b->e->outputs + 1;
  s.prepare_pointers = 1;
  for (int i = 0; i < b->e->inputs; i++) {
    s.pointers += p->rest[i];
    s.prepare_pointers += p->prepare[i];
  }
  return s;
}

/* ---- compiling ------------------------------------------------------------------------------- */

/* A group that another process compiles; the results are in shared memory. */
struct background {
  const struct batch *b;
  const struct group *group;
  size_t size;
  int process;
  struct mem_deferred drop;
  bool done; /* the results are complete */
  struct made {
    struct object object;
    char path[PATH_SIZE]; /* path of the object; "": none */
  } made[];
};

static canvas_status build(canvas_context *ctx, const struct batch *b, const struct group *g) {
  int together = b->separate ? 1 : g->count;
  return compiler_build(ctx, b->c, g->sources, g->count, together, b->limits.until, g->objects);
}

static void build_background(void *data) {
  struct background *a = data;
  canvas_context ctx = {.message = ""};
  if (build(&ctx, a->b, a->group) != CANVAS_OK) return; /* the parent retries and reports it */
  for (int i = 0; i < a->group->count; i++) {
    const char *path = a->group->objects[i].path;
    if (path && strlen(path) >= PATH_SIZE) return;
    a->made[i].object = a->group->objects[i];
    if (path) strcpy(a->made[i].path, path);
  }
  a->done = true;
}

static void drop_background(void *data) {
  struct background *a = data;
  if (a->process > 0) kill(a->process, SIGKILL);
  child_join(a->process);
  memory_unshare(a, a->size);
}

/* Starts to compile the group while another is measured. NULL: it is compiled later. */
static struct background *start_background(const struct batch *b, const struct group *g) {
  size_t size = sizeof(struct background) + (size_t)g->count * sizeof(struct made);
  struct background *a = memory_shared(size);
  if (!a) return NULL;
  a->b = b;
  a->group = g;
  a->size = size;
  a->process = child_beside(build_background, a);
  mem_defer(&a->drop, drop_background, a);
  return a;
}

static bool take_background(struct background *a, const struct group *g) {
  if (!a) return false;
  child_join(a->process);
  a->process = -1;
  bool done = a->done;
  for (int i = 0; done && i < g->count; i++) {
    g->objects[i] = a->made[i].object;
    g->objects[i].path = *a->made[i].path ? mem_strdup(a->made[i].path) : NULL;
  }
  mem_undefer(&a->drop);
  memory_unshare(a, a->size);
  return done;
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* Measures `count` members with their objects. */
static canvas_status judge(struct batch *b, const struct member *members, int count,
                           const struct object *objects) {
  struct measure_item *items = mem_alloc((size_t)count * sizeof *items);
  struct verdict *verdicts = mem_alloc((size_t)count * sizeof *verdicts);
  int *of = mem_alloc((size_t)count * sizeof *of), compiled = 0;
  struct measure_limits limits = b->limits;
  size_t rounds = limits.times ? (size_t)limits.rounds : 0;
  limits.times = rounds ? mem_alloc((size_t)count * rounds * sizeof *limits.times) : NULL;
  for (size_t i = 0; i < (size_t)count * rounds; i++) limits.times[i] = NAN;
  for (int i = 0; i < count; i++) {
    const struct batch_candidate *c = members[i].candidate;
    *members[i].verdict = (struct verdict){.failure = FAILED_NOT};
    items[compiled] = (struct measure_item){objects[i].path, c->function, c->prepare, c->winograd};
    enum failure failure = objects[i].late ? FAILED_TIMEOUT : FAILED_COMPILE;
    if (objects[i].path)
      of[compiled++] = i;
    else
      verdict_fail(members[i].verdict, failure, "%s", objects[i].message);
  }
  canvas_status status = measure(b->ctx, b->e, items, compiled, &limits, verdicts);
  for (int i = 0; status == CANVAS_OK && i < compiled; i++) {
    *members[of[i]].verdict = verdicts[i];
    measure_best(&b->limits, &verdicts[i]);
    if (rounds)
      memcpy(members[of[i]].times, limits.times + (size_t)i * rounds,
             rounds * sizeof *limits.times);
  }
  mem_free(limits.times);
  mem_free(of);
  mem_free(verdicts);
  mem_free(items);
  return status;
}

/* Compiles and measures a member alone, if the object of several does not load: another member or a
 * damaged cache may be the cause. */
static canvas_status judge_alone(struct batch *b, const struct group *g, int at) {
  struct object object;
  if (g->objects[at].cached) cache_drop(g->objects[at].path);
  TRY(compiler_build(b->ctx, b->c, &g->sources[at], 1, 1, b->limits.until, &object));
  canvas_status status = judge(b, &g->members[at], 1, &object);
  if (object.path && g->members[at].verdict->failure == FAILED_LOAD) cache_drop(object.path);
  objects_free(&object, 1);
  return status;
}

/* Whether all objects are still in the cache. */
static bool are_there(const struct group *g) {
  bool all = true;
  for (int i = 0; i < g->count && all; i++) {
    const char *path = g->objects[i].path;
    if (!path || (i && g->objects[i - 1].path && !strcmp(path, g->objects[i - 1].path))) continue;
    int file = cache_open_object(path);
    all = file >= 0;
    if (all) close(file);
  }
  return all;
}

/* Compiles again if the cache was removed meanwhile. */
static canvas_status build_missing(const struct batch *b, const struct group *g) {
  for (int again = 0; again < AGAIN && !are_there(g); again++) {
    objects_free(g->objects, g->count);
    TRY(build(b->ctx, b, g));
  }
  return CANVAS_OK;
}

/* Measures a group and removes objects that do not load from the cache. */
static canvas_status judge_group(struct batch *b, const struct group *g) {
  TRY(build_missing(b, g));
  TRY(judge(b, g->members, g->count, g->objects));
  for (int i = 0; i < g->count; i++) {
    bool shared = g->count > 1 || g->objects[i].cached;
    if (g->members[i].verdict->failure != FAILED_LOAD) continue;
    if (shared)
      TRY(judge_alone(b, g, i));
    else if (g->objects[i].path)
      cache_drop(g->objects[i].path);
  }
  return CANVAS_OK;
}

/* ---- groups ---------------------------------------------------------------------------------- */

static void group_open(struct group *g, int most) {
  g->members = mem_alloc((size_t)most * sizeof *g->members);
  g->sources = mem_alloc((size_t)most * sizeof *g->sources);
  g->objects = mem_alloc((size_t)most * sizeof *g->objects);
}

static void group_close(struct group *g) {
  mem_free(g->members);
  mem_free(g->sources);
  mem_free(g->objects);
}

/* Fills the group with candidates that have a text, from `at` on; returns the position after
 * them. */
static int group_fill(const struct batch *b, struct group *g,
                      const struct batch_candidate *candidates, int count, int at,
                      struct verdict *verdicts) {
  g->count = 0;
  for (; at < count && g->count < b->together; at++) {
    struct member *m = &g->members[g->count];
    if (!candidates[at].text) continue;
    m->candidate = &candidates[at];
    m->verdict = &verdicts[at];
    m->times = b->limits.times ? b->limits.times + (size_t)at * (size_t)b->limits.rounds : NULL;
    g->sources[g->count++] = source_of(b, m);
  }
  return at;
}

canvas_status batch_run(canvas_context *ctx, const struct compiler *c, const struct expected *e,
                        const struct batch_candidate *candidates, int count,
                        const struct batch_options *options, struct verdict *verdicts) {
  static const struct batch_options usual;
  const struct batch_options *o = options ? options : &usual;
  struct batch b = {ctx, c, e, o->together > 0 ? o->together : TOGETHER, o->separate, o->limits};
  struct group groups[2], *now = &groups[0], *next = &groups[1];
  struct background *background = NULL;
  canvas_status status = CANVAS_OK;
  if (o->seconds > 0) b.limits.until = clock_wall() + o->seconds;
  if (b.separate) b.together = count + 1;
  group_open(now, b.together);
  group_open(next, b.together);
  int at = group_fill(&b, now, candidates, count, 0, verdicts);
  while (status == CANVAS_OK && now->count) {
    struct group *other = now;
    at = group_fill(&b, next, candidates, count, at, verdicts);
    if (!take_background(background, now)) status = build(ctx, &b, now);
    background = status == CANVAS_OK && next->count ? start_background(&b, next) : NULL;
    if (status == CANVAS_OK) status = judge_group(&b, now);
    objects_free(now->objects, now->count);
    now = next;
    next = other;
  }
  if (take_background(background, now)) objects_free(now->objects, now->count);
  group_close(&groups[0]);
  group_close(&groups[1]);
  return status;
}

canvas_status batch_compile(canvas_context *ctx, const struct compiler *c, const struct expected *e,
                            const struct batch_candidate *candidate) {
  const struct batch b = {.ctx = ctx, .c = c, .e = e};
  struct member m = {.candidate = candidate};
  struct object object;
  if (!candidate->text) return CANVAS_OK;
  const struct source source = source_of(&b, &m);
  TRY(compiler_build(ctx, c, &source, 1, 1, 0, &object));
  objects_free(&object, 1);
  return CANVAS_OK;
}
