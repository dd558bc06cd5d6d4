/* The schedule of a program that nobody tuned. See loop_tree.h.
 *
 * Each stage that an output needs stands at the root, whole, in the order of the program:
 *
 *     n, co, h:para, w_o, ci, kh, kw, w_v:16:vec =>
 *         @Y = n, co, h, {w_o, w_v}/w // ci, kh, kw
 *
 * That is the heuristic schedule. The naive one has the stage's own axes and then its reductions,
 * without marks and numbers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bind/bind.h"

enum {
  VECTORS = 4,        /* the most in one vec loop: each is an accumulator */
  SHORTEST = 4,       /* lanes that are worth a vector */
  PARALLEL = 1 << 14, /* points of a stage that are worth a thread */
  LONGEST = 4 * PROGRAM_NAME
};

/* What a level stands for: stages share one where it means the same to both. */
struct meaning {
  int64_t size;
  const char *dyn; /* the axis that says how far it runs; NULL: a number does */
};

struct maker {
  const struct program *p;
  struct schedule *s;
  const struct machine *machine; /* NULL: naive */
  bool *needed;                  /* by tensor */
  struct {
    VEC(struct meaning);
  } meanings; /* by level */
};

/* What outputs need. */

static void need(struct maker *m, int expr) {
  const struct px_node *n = &m->p->nodes.data[expr];
  for (int i = 0; i < 3; i++)
    if (n->arg[i] >= 0) need(m, n->arg[i]);
  if (n->op == PX_LOAD) m->needed[n->tensor] = true;
}

static void find_needed(struct maker *m) {
  for (int i = 0; i < m->p->outputs.count; i++) m->needed[m->p->outputs.data[i]] = true;
  for (int i = m->p->tensors.count - 1; i >= 0; i--)
    if (m->needed[i] && !m->p->tensors.data[i].is_input) need(m, m->p->tensors.data[i].body);
}

/* Levels: the name of the axis, of the stage and the axis, or of these and as many _ as it takes. */

static bool same_meaning(struct meaning a, struct meaning b) {
  if (!a.dyn || !b.dyn) return a.dyn == b.dyn && a.size == b.size;
  return a.size == b.size && strcmp(a.dyn, b.dyn) == 0;
}

static int level_that_means(struct maker *m, const char *name, struct meaning meaning) {
  int level = schedule_find_level(m->s, name);
  if (level >= 0) return same_meaning(m->meanings.data[level], meaning) ? level : -1;
  level = schedule_level(m->s, name);
  VEC_PUSH(&m->meanings, meaning);
  return level;
}

static int make_level(struct maker *m, const char *stage, const char *name,
                      struct meaning meaning) {
  char longer[LONGEST];
  int level = level_that_means(m, name, meaning);
  int length = snprintf(longer, sizeof longer, "%s_%s", stage, name);
  while (level < 0) {
    level = level_that_means(m, longer, meaning);
    longer[length++] = '_';
    longer[length] = '\0';
  }
  return level;
}

/* The axis that says how far this one runs; NULL if its size does. */
static const char *bounding_axis(const struct maker *m, const struct program_tensor *t, int axis) {
  const struct program_axis *a = &t->axes[axis];
  if (a->low < 0) return NULL;
  uint32_t of = px_range(m->p, a->low).axes | px_range(m->p, a->high).axes;
  int first = 0;
  while (first < axis && !(of >> first & 1)) first++;
  return t->axes[first].name;
}

static int axis_level(struct maker *m, const struct program_tensor *t, int axis) {
  const struct program_axis *a = &t->axes[axis];
  const char *dyn = bounding_axis(m, t, axis);
  int level = make_level(m, t->name, a->name, (struct meaning){a->size, dyn});
  if (!dyn) return level;
  m->s->levels.data[level].kind = EXTENT_DYN;
  m->s->levels.data[level].dyn = arena_strndup(&m->s->arena, dyn, strlen(dyn));
  return level;
}

/* Whether the lanes of a vector along the axis stand side by side in all that is read: the last
 * index alone depends on it, or none does. */
static bool is_contiguous(const struct program *p, int expr, int axis) {
  const struct px_node *n = &p->nodes.data[expr];
  int rank = n->op == PX_LOAD ? p->tensors.data[n->tensor].rank : 0;
  for (int i = 0; i < 3; i++)
    if (n->arg[i] >= 0 && !is_contiguous(p, n->arg[i], axis)) return false;
  for (int i = 0; i + 1 < rank; i++)
    if (px_range(p, p->indices.data[n->first + i]).axes >> axis & 1) return false;
  return true;
}

/* Whether a reduction axis begins or ends where `axis` says. */
static bool bounds_reduction(const struct program *p, const struct program_tensor *t, int axis) {
  for (int i = t->rank; i < t->rank + t->reductions; i++) {
    const struct program_axis *a = &t->axes[i];
    if (a->low < 0) continue;
    if ((px_range(p, a->low).axes | px_range(p, a->high).axes) >> axis & 1) return true;
  }
  return false;
}

/* The vec loop of a stage: so many steps of its last own axis; 0 = none. */
static int64_t vector_steps(const struct maker *m, const struct program_tensor *t) {
  if (!m->machine || t->rank == 0 || t->rank + t->reductions == SCHEDULE_DEPTH) return 0;
  if (!is_contiguous(m->p, t->body, t->rank - 1)) return 0;
  if (bounds_reduction(m->p, t, t->rank - 1)) return 0; /* it has to stand outside that loop */
  int64_t size = t->axes[t->rank - 1].size, lanes = lanes_of(m->machine, t->dtype);
  for (int64_t steps = VECTORS * lanes; steps >= SHORTEST; steps /= 2)
    if (size % steps == 0) return steps;
  return 0;
}

/* The own loop that runs in parallel; -1. */
static int parallel_axis(const struct maker *m, const struct program_tensor *t, int64_t steps) {
  int64_t points = 1;
  int chosen = -1;
  if (!m->machine) return -1;
  for (int i = t->rank + t->reductions - 1; i >= 0; i--) {
    int64_t size = t->axes[i].size;
    points = points > PARALLEL ? points : points * size;
    if (i == t->rank - 1 && steps) size /= steps;
    if (i < t->rank && size > 1) chosen = i;
  }
  return points >= PARALLEL ? chosen : -1;
}

/* One stage. */

struct nest {
  int node; /* the innermost loop so far */
  int level[PROGRAM_AXES];
  int inner; /* the level of the vec loop, if it is a part of an axis; -1 */
};

static void add_loop(struct maker *m, struct nest *nest, int level, unsigned marks) {
  nest->node = schedule_add_loop(m->s, nest->node, level, marks);
}

static void split_last(struct maker *m, const struct program_tensor *t, int64_t steps,
                       struct nest *nest) {
  char name[PROGRAM_NAME + 8];
  const struct program_axis *a = &t->axes[t->rank - 1];
  snprintf(name, sizeof name, "%s_o", a->name);
  nest->level[t->rank - 1] =
      make_level(m, t->name, name, (struct meaning){.size = a->size / steps});
  snprintf(name, sizeof name, "%s_v", a->name);
  nest->inner = make_level(m, t->name, name, (struct meaning){.size = steps});
  m->s->levels.data[nest->inner].kind = EXTENT_INT;
  m->s->levels.data[nest->inner].extent = steps;
}

static void add_loops(struct maker *m, const struct program_tensor *t, struct nest *nest) {
  int64_t steps = vector_steps(m, t);
  int parallel = parallel_axis(m, t, steps), last = t->rank - 1;
  bool split = steps && steps < t->axes[last].size;
  for (int i = 0; i < t->rank + t->reductions; i++)
    if (i != last || !split) nest->level[i] = axis_level(m, t, i);
  if (split) split_last(m, t, steps, nest);
  for (int i = 0; i < t->rank + t->reductions; i++)
    if (i != last || !steps || split)
      add_loop(m, nest, nest->level[i], i == parallel ? LOOP_PARA : 0);
  if (steps) add_loop(m, nest, split ? nest->inner : nest->level[last], LOOP_VEC);
}

static void add_axis(struct maker *m, const struct program_tensor *t, int leaf, int axis,
                     const struct nest *nest) {
  const char *name = t->axes[axis].name;
  bool split = axis == t->rank - 1 && nest->inner >= 0;
  bool plain = !split && strcmp(m->s->levels.data[nest->level[axis]].name, name) == 0;
  struct schedule_axis *a = schedule_add_axis(m->s, leaf, plain ? NULL : name);
  a->level[a->count++] = nest->level[axis];
  if (split) a->level[a->count++] = nest->inner;
}

static void add_stage(struct maker *m, const struct program_tensor *t) {
  struct nest nest = {.inner = -1};
  add_loops(m, t, &nest);
  int leaf = schedule_add_leaf(m->s, nest.node, t->name);
  for (int i = 0; i < t->rank + t->reductions; i++) add_axis(m, t, leaf, i, &nest);
  m->s->nodes.data[leaf].leaf.reductions = t->reductions;
}

_Static_assert((int)PROGRAM_STAGES *(SCHEDULE_DEPTH + 1) < (int)SCHEDULE_NODES,
               "every program has a default schedule");

struct schedule *schedule_default(const struct program *program, bool heuristic,
                                  const struct machine *machine) {
  struct maker m = {.p = program, .s = schedule_new(heuristic ? "heuristic" : "naive")};
  if (heuristic) m.machine = machine;
  m.needed = mem_alloc((size_t)program->tensors.count + 1);
  find_needed(&m);
  for (int i = 0; i < program->tensors.count; i++)
    if (m.needed[i] && !program->tensors.data[i].is_input) add_stage(&m, &program->tensors.data[i]);
  free(m.needed);
  free(m.meanings.data);
  return m.s;
}
