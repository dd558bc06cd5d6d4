/* The loops of a tile: outside it those over tiles, then the reduction, then rows and lanes. See
 * default.h.
 *
 *     n, co, h:para, w_o =>
 *         kh, kw, ci, w_i:14:unroll, co_v:32:vec =>
 *             @conv = n, {co, co_v}/co, h, {w_o, w_i}/w // ci, kh, kw
 *         w_i:unroll, co_v:vec =>
 *             @Y = n, {co, co_v}/co, h, {w_o, w_i}/w
 *
 * An axis with phases that has no rows in the tile is split by them, the phases unrolled around the tile;
 * its reduction is, too, the phases unrolled inside.
 */
#include <stdio.h>
#include <string.h>

#include "autoschedule/default.h"
#include "program/program_cost.h"

enum {
  PARALLEL = 1 << 15, /* cycles of a stage, some ten microseconds, that are worth threads */
  LINE = 64,          /* bytes */
  FEW_USES = 16,      /* tiles that use a panel, up to which it is prefetched */
  LONGEST = 4 * PROGRAM_NAME
};

/* ---- levels: the name of the axis, of the stage and the axis, or of these and as many _ as it takes -- */

static bool same_meaning(struct default_meaning a, struct default_meaning b) {
  if (a.size != b.size || a.tail != b.tail || a.open != b.open || !a.dyn != !b.dyn) return false;
  if (a.shared != b.shared) return false;
  return !a.dyn || strcmp(a.dyn, b.dyn) == 0;
}

static int level_that_means(struct default_maker *m, const char *name,
                            struct default_meaning meaning) {
  int level = schedule_find_level(m->s, name);
  if (level >= 0) return same_meaning(m->meanings.data[level], meaning) ? level : -1;
  level = schedule_level(m->s, name);
  VEC_PUSH(&m->meanings, meaning);
  return level;
}

int default_level(struct default_maker *m, const char *stage, const char *name,
                  struct default_meaning meaning) {
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
static const char *bounding_axis(const struct default_maker *m, const struct program_tensor *t,
                                 int axis) {
  const struct program_axis *a = &t->axes[axis];
  if (a->low < 0) return NULL;
  uint32_t of = px_axes(m->p, a->low) | px_axes(m->p, a->high);
  int first = 0;
  while (first < axis && !(of >> first & 1)) first++;
  return t->axes[first].name;
}

int default_axis_level(struct default_maker *m, const struct program_tensor *t, int axis) {
  const struct program_axis *a = &t->axes[axis];
  const char *dyn = bounding_axis(m, t, axis);
  int level = default_level(m, t->name, a->name,
                            (struct default_meaning){a->size, dyn, TAIL_NONE, 0, false});
  if (!dyn) return level;
  m->s->levels.data[level].kind = EXTENT_DYN;
  m->s->levels.data[level].dyn = arena_strndup(&m->s->arena, dyn, strlen(dyn));
  return level;
}

/* ---- the parts of an axis -------------------------------------------------------------------- */

struct parts {
  int outermost, outer, inner; /* levels; -1: there is none */
};

/* The level that the stage shares for the axis; -1. */
static int shared_level(const struct default_maker *m, int stage, int axis) {
  for (int i = 0; m->enclosing && i < m->shared[stage].count; i++)
    if (m->shared[stage].axis[i] == axis) return m->rows[i];
  return -1;
}

void default_open_rows(struct default_maker *m, int stage) {
  const struct default_shared *s = &m->shared[stage];
  const struct program_tensor *t = &m->p->tensors.data[stage];
  int node = 0;
  for (int i = 0; i < s->count; i++) {
    const struct program_axis *a = &t->axes[s->axis[i]];
    m->rows[i] = default_level(m, t->name, a->name,
                               (struct default_meaning){.size = a->size, .shared = true});
    node = schedule_add_loop(m->s, node, m->rows[i], i == 0 ? LOOP_PARA : 0);
  }
  m->enclosing = node;
}

struct nest {
  struct default_maker *m;
  const struct default_facts *f;
  const struct default_tile *tile;
  int across;      /* rows that are lanes of what reads the tile; -1 */
  bool parts_open; /* the loop over parts of the sum is there */
  int panels;      /* node: the loop over the tile's blocks of lanes; 0 */
  int64_t passes;  /* steps of the loops between it and the tile */
  struct parts parts[PROGRAM_AXES];
};

/* An own axis whose phases stand around the tile, one after the other. */
static bool has_phases(const struct nest *n, int axis) {
  if (!n->tile->phases || !n->f->period[axis]) return false;
  return axis != n->tile->vector_axis && n->tile->rows[axis] == 1;
}

static int64_t inner_steps(const struct nest *n, int axis) {
  if (axis == n->tile->vector_axis) return n->tile->steps;
  return has_phases(n, axis) ? n->f->period[axis] : n->tile->rows[axis];
}

static int64_t outer_steps(const struct nest *n, int axis) {
  int64_t size = n->f->t->axes[axis].size, steps = inner_steps(n, axis);
  return (size + steps - 1) / steps;
}

static int part_level(struct nest *n, int axis, const char *ending, int64_t size,
                      enum level_tail tail, bool told) {
  char name[PROGRAM_NAME + 8];
  snprintf(name, sizeof name, "%s%s", n->f->t->axes[axis].name, ending);
  int open = n->tile->symbolic ? 1 + n->f->stage : 0;
  int level = default_level(n->m, n->f->t->name, name,
                            (struct default_meaning){.size = size, .tail = tail, .open = open});
  if (!told) return level;
  n->m->s->levels.data[level].kind = EXTENT_INT;
  n->m->s->levels.data[level].extent = size;
  n->m->s->levels.data[level].tail = tail;
  return level;
}

static struct parts split(struct nest *n, int axis, int64_t steps, enum level_tail tail,
                          const char *ending) {
  int64_t size = n->f->t->axes[axis].size;
  struct parts p = {-1, -1, -1};
  if (n->tile->symbolic && steps > 1 && steps == size && axis != n->tile->vector_axis) {
    p.inner = part_level(n, axis, ending, steps, TAIL_NONE, true);
    p.outer = part_level(n, axis, "_o", 1, TAIL_NONE, false);
    return p;
  }
  if (size % steps == 0 && axis != n->across) tail = TAIL_NONE;
  if (steps > 1 && (steps < size || tail != TAIL_NONE))
    p.inner = part_level(n, axis, ending, steps, tail, true);
  else if (steps > 1)
    p.inner = default_axis_level(n->m, n->f->t, axis);
  if (steps == 1)
    p.outer = default_axis_level(n->m, n->f->t, axis);
  else if (steps < size)
    p.outer = part_level(n, axis, "_o", (size + steps - 1) / steps, TAIL_NONE, false);
  return p;
}

/* Rows that are lanes elsewhere are no whole vectors. */
static enum level_tail tail_of_rows(const struct nest *n, int axis) {
  int64_t rows = n->tile->rows[axis];
  if (axis != n->across || n->f->t->axes[axis].size % rows) return TAIL_PEEL;
  return rows & (rows - 1) ? TAIL_MASK : TAIL_NONE;
}

static enum level_tail tail_of_lanes(const struct nest *n) {
  return n->tile->peeled ? TAIL_PEEL : TAIL_MASK;
}

static void split_axes(struct nest *n) {
  for (int i = 0; i < n->f->t->rank; i++) {
    int shared = shared_level(n->m, n->f->stage, i);
    if (shared >= 0) {
      n->parts[i] = (struct parts){-1, shared, -1};
      continue;
    }
    n->parts[i] = i == n->tile->vector_axis
                      ? split(n, i, n->tile->steps, tail_of_lanes(n), "_v")
                      : split(n, i, inner_steps(n, i), tail_of_rows(n, i), "_i");
    if (has_phases(n, i)) n->parts[i] = (struct parts){n->parts[i].outer, n->parts[i].inner, -1};
  }
  for (int i = n->f->t->rank; i < n->f->t->rank + n->f->t->reductions; i++)
    n->parts[i] = n->tile->phases && n->f->period[i]
                      ? split(n, i, default_phase_steps(n->f, i), TAIL_NONE, "_i")
                      : (struct parts){-1, default_axis_level(n->m, n->f->t, i), -1};
}

static enum level_tail tail_of_part(const struct nest *n, int axis) {
  return n->f->t->axes[axis].size % n->tile->k_block ? TAIL_PEEL : TAIL_NONE;
}

/* A sum in parts: the loop over them stands outside the tiles. */
static void split_sum(struct nest *n) {
  for (int i = n->f->t->rank; i < n->f->t->rank + n->f->t->reductions; i++) {
    if (n->f->t->axes[i].size == 1) continue;
    struct parts p = split(n, i, n->tile->k_block, tail_of_part(n, i), "_i");
    n->parts[i] = (struct parts){p.outer, p.inner, -1};
  }
}

/* Blocks of tiles that stay together while the others run. */
static void split_together(struct nest *n) {
  int axis = n->tile->block_axis;
  int64_t count = outer_steps(n, axis);
  n->parts[axis].outermost =
      part_level(n, axis, "_oo", count / n->tile->cache_block, TAIL_NONE, false);
  n->parts[axis].outer = part_level(n, axis, "_b", n->tile->cache_block, TAIL_NONE, true);
}

/* ---- loops ----------------------------------------------------------------------------------- */

/* -1: the axis has no loop outside the tile, but for one of phases. */
static int outer_level(const struct nest *n, int axis) {
  const struct parts *p = &n->parts[axis];
  return p->outermost >= 0 || has_phases(n, axis) ? p->outermost : p->outer;
}

/* What a sketch computes in the loop later may be a buffer of each thread, which no peeled loop has. */
static bool may_have_buffers(const struct nest *n, int axis) {
  bool peeled = axis != n->tile->vector_axis && n->f->t->axes[axis].size % inner_steps(n, axis);
  return n->tile->symbolic && peeled;
}

/* The own loop that runs in parallel; -1. */
static int parallel_axis(const struct nest *n) {
  if (n->tile->cycles < PARALLEL || n->m->enclosing) return -1;
  for (int i = 0; i < n->f->t->rank; i++) {
    int axis = n->tile->order[i];
    if (outer_level(n, axis) >= 0 && outer_steps(n, axis) > 1)
      return may_have_buffers(n, axis) ? -1 : axis;
  }
  return -1;
}

static void add_axis(struct default_maker *m, int leaf, const char *name, struct parts p) {
  int only = p.outer < 0 ? p.inner : p.outer;
  bool plain = (p.outer < 0 || p.inner < 0) && !strcmp(m->s->levels.data[only].name, name);
  struct schedule_axis *a = schedule_add_axis(m->s, leaf, plain ? NULL : name);
  if (p.outermost >= 0) a->level[a->count++] = p.outermost;
  if (p.outer >= 0) a->level[a->count++] = p.outer;
  if (p.inner >= 0) a->level[a->count++] = p.inner;
}

/* The stage that is computed before each tile of this one; -1. */
static int buffered_stage(const struct nest *n) {
  for (int i = 0; n->m->plan && i < n->f->stage; i++)
    if (n->m->plan[i].kind == DEFAULT_BUFFERED && n->m->plan[i].consumer == n->f->stage) return i;
  return -1;
}

static void add_buffered(struct nest *n, int stage, int node) {
  const struct program_tensor *t = &n->m->p->tensors.data[stage];
  struct parts parts[PROGRAM_AXES];
  for (int i = 0; i < t->rank; i++) {
    int axis = default_consumer_axis(&n->m->plan[stage], i);
    bool own = axis < n->f->t->rank;
    parts[i] = own ? n->parts[axis] : (struct parts){-1, default_axis_level(n->m, t, i), -1};
    int level = own ? parts[i].inner : parts[i].outer;
    if (level < 0) continue;
    node = schedule_add_loop(n->m->s, node, level, i == t->rank - 1 ? LOOP_VEC : 0);
  }
  int leaf = schedule_add_leaf(n->m->s, node, t->name);
  for (int i = 0; i < t->rank; i++) add_axis(n->m, leaf, t->axes[i].name, parts[i]);
}

/* The loop over parts of the sum, once loops over matrices of their own are open. */
static int add_parts(struct nest *n, int node, int axis) {
  for (int i = n->f->t->rank; i < n->f->t->rank + n->f->t->reductions; i++)
    if (n->parts[i].outermost >= 0 && !n->parts_open && !default_all_depend_on(n->f, axis)) {
      node = schedule_add_loop(n->m->s, node, n->parts[i].outermost, 0);
      n->parts_open = true;
    }
  return node;
}

static int add_outer(struct nest *n) {
  int node = n->m->enclosing, parallel = parallel_axis(n), buffered = buffered_stage(n);
  struct default_prefetch ahead = default_prefetch_rows(n->f, n->m->machine, n->tile);
  for (int i = 0; i < n->f->t->rank; i++) {
    int axis = n->tile->order[i];
    int level = outer_level(n, axis);
    if (buffered >= 0 && n->m->plan[buffered].axis[axis] < 0) {
      add_buffered(n, buffered, node);
      buffered = -1;
    }
    if (level < 0 || shared_level(n->m, n->f->stage, axis) >= 0) continue;
    node = add_parts(n, node, axis);
    node = schedule_add_loop(n->m->s, node, level, axis == parallel ? LOOP_PARA : 0);
    if (axis == ahead.axis) n->m->s->nodes.data[node].loop.prefetch = ahead.steps;
    n->passes *= outer_steps(n, axis);
    if (axis == n->tile->vector_axis) {
      n->panels = node;
      n->passes = 1;
    }
    if (n->tile->bands && axis == n->tile->vector_axis)
      node = schedule_add_loop(n->m->s, node, n->parts[n->tile->block_axis].outer, 0);
  }
  if (buffered >= 0) add_buffered(n, buffered, node);
  if (n->tile->block_axis >= 0 && !n->tile->bands && !n->tile->streams)
    node = schedule_add_loop(n->m->s, node, n->parts[n->tile->block_axis].outer, 0);
  for (int i = 0; i < n->f->t->rank; i++)
    if (has_phases(n, i)) node = schedule_add_loop(n->m->s, node, n->parts[i].outer, LOOP_UNROLL);
  return node;
}

/* Own axes that say where a reduction begins and ends: each of their steps has a panel of its own. */
static uint32_t bounding_axes(const struct nest *n) {
  uint32_t axes = 0;
  for (int i = n->f->t->rank; i < n->f->t->rank + n->f->t->reductions; i++) {
    const struct program_axis *a = &n->f->t->axes[i];
    if (a->low >= 0) axes |= px_axes(n->m->p, a->low) | px_axes(n->m->p, a->high);
  }
  return axes;
}

/* How often the tile's panel is run through: for every tile of rows. */
static double uses_of_panel(const struct nest *n) {
  double uses = 1;
  uint32_t bounding = bounding_axes(n);
  for (int i = 0; i < n->f->t->rank; i++)
    if (i != n->tile->vector_axis && !(bounding >> i & 1)) uses *= (double)outer_steps(n, i);
  return uses;
}

/* Iterations of the innermost reduction after which its panels are wanted: of more than fits into the second
 * cache, used by few tiles, most is in memory when it is read first. 0: they are not asked for, as two short ones at
 * once, which are fetched ahead without it (AVX2, a Zen 3). */
static int steps_ahead(const struct nest *n, int reduction) {
  double bytes = 0;
  int64_t of_step = 0;
  for (int i = 0; i < n->f->loads && n->tile->vector_axis >= 0; i++) {
    const struct default_load *l = &n->f->load[i];
    int64_t size = program_dtype_bytes(n->f->p->tensors.data[l->tensor].dtype);
    if (l->stride[n->tile->vector_axis] != 1 || l->non_affine || l->stride[reduction] * size < LINE)
      continue;
    bytes += (double)(program_elements(n->f->p, l->tensor) * size);
    of_step += n->tile->steps * size;
  }
  if (!n->m->machine || n->tile->k_block || bytes <= (double)n->m->machine->l2 ||
      uses_of_panel(n) > FEW_USES)
    return 0;
  if (n->tile->streams && machine_has_few_registers(n->m->machine)) return 0;
  if (n->tile->streams) of_step *= n->tile->cache_block;
  int64_t ahead = machine_prefetch_distance(n->m->machine);
  return of_step < ahead ? (int)(ahead / of_step) : 1;
}

/* Bytes of what lies as the tile reads it: a block of lanes, then the reductions. */
static double packed_bytes(const struct nest *n) {
  double bytes = 0;
  for (int i = 0; i < n->f->loads && n->tile->vector_axis >= 0; i++) {
    const struct default_load *l = &n->f->load[i];
    int64_t least = INT64_MAX;
    for (int j = n->f->t->rank; j < n->f->t->rank + n->f->t->reductions; j++)
      if (l->stride[j] > 0 && l->stride[j] < least) least = l->stride[j];
    if (l->stride[n->tile->vector_axis] != 1 || l->non_affine || least != n->tile->steps) continue;
    const struct program_tensor *t = &n->f->p->tensors.data[l->tensor];
    bytes += (double)(program_elements(n->f->p, l->tensor) * program_dtype_bytes(t->dtype));
  }
  return bytes;
}

/* Panels from memory that the tiles of a block of lanes run through several times: the next one comes while this one is
 * used. Asked for by steps of the reduction it would come in the first run alone, which waits for it. Measured with
 * AVX2. */
static bool comes_whole(const struct nest *n) {
  bool alone = n->tile->block_axis < 0 && !n->tile->streams && !n->tile->k_block;
  if (!n->m->machine || !alone || n->panels <= 0 || n->passes <= 1) return false;
  return machine_has_few_registers(n->m->machine) && uses_of_panel(n) <= FEW_USES &&
         packed_bytes(n) > (double)n->m->machine->l2;
}

static int add_reductions(struct nest *n, int node) {
  const int *order = n->tile->order + n->f->t->rank;
  bool whole = comes_whole(n);
  if (whole) n->m->s->nodes.data[n->panels].loop.prefetch = 1;
  for (int i = 0; i < n->f->t->reductions; i++) {
    bool unrolled = n->tile->unrolled >> order[i] & 1 && n->f->t->axes[order[i]].size > 1;
    if (n->parts[order[i]].outer < 0) continue;
    node = schedule_add_loop(n->m->s, node, n->parts[order[i]].outer, unrolled ? LOOP_UNROLL : 0);
    bool innermost = i == n->f->t->reductions - 1 && n->parts[order[i]].inner < 0;
    if (innermost && !unrolled && !whole)
      n->m->s->nodes.data[node].loop.prefetch = steps_ahead(n, order[i]);
  }
  for (int i = 0; i < n->f->t->reductions; i++)
    if (n->parts[order[i]].inner >= 0)
      node = schedule_add_loop(n->m->s, node, n->parts[order[i]].inner, LOOP_UNROLL);
  return node;
}

/* Rows along the axis load other vectors. */
static bool moves_vectors(const struct nest *n, int axis) {
  for (int i = 0; i < n->f->loads && n->tile->vector_axis >= 0; i++) {
    const struct default_load *l = &n->f->load[i];
    if (l->depends_on >> n->tile->vector_axis & l->depends_on >> axis & 1) return true;
  }
  return false;
}

/* Rows that leave a rest take less where they are unrolled. */
static bool is_rolled(const struct nest *n, int axis) {
  return n->tile->rolled >> axis & 1 && n->f->t->axes[axis].size % n->tile->rows[axis] == 0;
}

/* Those with other vectors are innermost where there is room to keep these: what is loaded for all lanes of one is
 * there for the next. Else they are outermost, each vector is there for its own rows. */
static int add_rows(struct nest *n, int node) {
  for (int turn = 0; turn < 2; turn++)
    for (int i = 0; i < n->f->t->rank; i++)
      if (i != n->tile->vector_axis && n->parts[i].inner >= 0 &&
          moves_vectors(n, i) == (turn == n->tile->reuses_vectors))
        node =
            schedule_add_loop(n->m->s, node, n->parts[i].inner, is_rolled(n, i) ? 0 : LOOP_UNROLL);
  return node;
}

static int add_inner(struct nest *n, int node) {
  node = add_rows(n, node);
  if (n->tile->streams)
    node = schedule_add_loop(n->m->s, node, n->parts[n->tile->block_axis].outer, LOOP_UNROLL);
  if (n->tile->vector_axis >= 0)
    node = schedule_add_loop(n->m->s, node, n->parts[n->tile->vector_axis].inner, LOOP_VEC);
  return node;
}

/* ---- leaves ---------------------------------------------------------------------------------- */

static void add_layout(struct default_maker *m, int leaf, int tensor, const struct parts *parts) {
  const struct program_tensor *t = &m->p->tensors.data[tensor];
  struct schedule_leaf *l = &m->s->nodes.data[leaf].leaf;
  const int *order = m->layout[tensor].order;
  bool as_told = true, inside = m->enclosing && !m->shared[tensor].seen;
  for (int i = 0; i < t->rank; i++) as_told = as_told && order[i] == i;
  if (as_told) return;
  for (int i = 0; i < t->rank; i++) {
    const struct parts *p = &parts[order[i]];
    if (inside && shared_level(m, tensor, order[i]) >= 0) continue;
    if (p->outermost >= 0) VEC_PUSH(&l->layout, m->s->levels.data[p->outermost].name);
    if (p->outer >= 0) VEC_PUSH(&l->layout, m->s->levels.data[p->outer].name);
    if (p->inner >= 0) VEC_PUSH(&l->layout, m->s->levels.data[p->inner].name);
  }
}

/* Of a tile that is read with other lanes: its rows, the lanes last, but for the rows that are lanes there. */
static void add_tile_layout(struct nest *n, int leaf) {
  struct schedule_leaf *l = &n->m->s->nodes.data[leaf].leaf;
  for (int turn = 0; turn < 3; turn++)
    for (int i = 0; i < n->f->t->rank; i++)
      if (n->parts[i].inner >= 0 && turn == (i == n->tile->vector_axis ? 1
                                             : i == n->across          ? 2
                                                                       : 0))
        VEC_PUSH(&l->layout, n->m->s->levels.data[n->parts[i].inner].name);
}

/* The loops of what reads it: those of the tile, or its lanes one by one around its rows. */
static int add_reading(struct nest *n, int node, bool apart) {
  if (!apart) return add_inner(n, node);
  node = schedule_add_loop(n->m->s, node, n->parts[n->tile->vector_axis].inner, 0);
  if (n->across < 0) return add_rows(n, node);
  for (int i = 0; i < n->f->t->rank; i++)
    if (i != n->tile->vector_axis && i != n->across && n->parts[i].inner >= 0)
      node = schedule_add_loop(n->m->s, node, n->parts[i].inner, LOOP_UNROLL);
  return schedule_add_loop(n->m->s, node, n->parts[n->across].inner, LOOP_VEC);
}

static void add_reader(struct nest *n, int node, const struct default_plan *plan) {
  const struct program_tensor *t = &n->m->p->tensors.data[plan->consumer];
  struct parts parts[PROGRAM_AXES];
  int leaf = schedule_add_leaf(n->m->s, add_reading(n, node, plan->gathered), t->name);
  for (int i = 0; i < t->rank + t->reductions; i++) {
    parts[i] = n->parts[plan->axis[i]];
    add_axis(n->m, leaf, t->axes[i].name, parts[i]);
  }
  n->m->s->nodes.data[leaf].leaf.reductions = t->reductions;
  add_layout(n->m, leaf, plan->consumer, parts);
}

void default_tiled_nest(struct default_maker *m, const struct default_facts *f,
                        const struct default_plan *plan) {
  const struct default_tile *tile = &plan->tile;
  struct nest n = {.m = m, .f = f, .tile = tile, .across = plan->gathered ? plan->transposed : -1};
  const struct program_tensor *t = f->t;
  split_axes(&n);
  if (tile->k_block) split_sum(&n);
  if (tile->block_axis >= 0) split_together(&n);
  int around = add_outer(&n);
  int leaf = schedule_add_leaf(m->s, add_inner(&n, add_reductions(&n, around)), t->name);
  for (int i = 0; i < t->rank + t->reductions; i++) add_axis(m, leaf, t->axes[i].name, n.parts[i]);
  m->s->nodes.data[leaf].leaf.reductions = t->reductions;
  if (plan->gathered) add_tile_layout(&n, leaf);
  if (plan->consumer >= 0)
    add_reader(&n, around, plan);
  else
    add_layout(m, leaf, f->stage, n.parts);
}

/* ---- lanes along a reduction ------------------------------------------------------------------ */

/* Its steps in vectors that are summed up at once, and what is left of it in code of its own. */
static struct parts split_along(struct nest *n, int axis) {
  int64_t size = n->f->t->axes[axis].size, steps = default_horizontal_steps(n->f, n->m->machine);
  if (size > steps) return split(n, axis, steps, TAIL_PEEL, "_v");
  return (struct parts){-1, -1, part_level(n, axis, "_v", size, TAIL_MASK, true)};
}

void default_horizontal_nest(struct default_maker *m, const struct default_facts *f,
                             const struct default_plan *plan) {
  const struct program_tensor *t = f->t;
  struct nest n = {.m = m, .f = f, .tile = &plan->tile, .across = -1};
  bool parallel = plan->tile.cycles >= PARALLEL && !m->enclosing;
  int node = m->enclosing;
  for (int i = 0; i < t->rank + t->reductions; i++) {
    int shared = i < t->rank ? shared_level(m, f->stage, i) : -1;
    n.parts[i] = (struct parts){-1, shared, -1};
    if (i == plan->first) n.parts[i] = split_along(&n, i);
    if (shared >= 0 || i == plan->first) continue;
    bool para = parallel && i < t->rank && t->axes[i].size > 1;
    n.parts[i].outer = default_axis_level(m, t, i);
    node = schedule_add_loop(m->s, node, n.parts[i].outer, para ? LOOP_PARA : 0);
    parallel = parallel && !para;
  }
  const struct parts *along = &n.parts[plan->first];
  if (along->outer >= 0) node = schedule_add_loop(m->s, node, along->outer, 0);
  int leaf =
      schedule_add_leaf(m->s, schedule_add_loop(m->s, node, along->inner, LOOP_VEC), t->name);
  for (int i = 0; i < t->rank + t->reductions; i++) add_axis(m, leaf, t->axes[i].name, n.parts[i]);
  m->s->nodes.data[leaf].leaf.reductions = t->reductions;
}

/* ---- long vectors ---------------------------------------------------------------------------- */

void default_flat_nest(struct default_maker *m, const struct default_facts *f,
                       const struct default_plan *plan) {
  const struct program_tensor *t = f->t;
  struct parts parts[PROGRAM_AXES];
  struct schedule_loop group = {.marks = LOOP_VEC};
  int node = m->enclosing;
  bool parallel = plan->tile.cycles >= PARALLEL && !m->enclosing;
  const int *order = m->layout[f->stage].order;
  for (int i = 0; i < t->rank; i++) {
    int shared = shared_level(m, f->stage, i);
    parts[i] = (struct parts){-1, shared >= 0 ? shared : default_axis_level(m, t, i), -1};
  }
  for (int i = 0; i < t->rank; i++) {
    int axis = order[i];
    if (shared_level(m, f->stage, axis) >= 0) continue;
    if (i >= plan->first && t->axes[axis].size > 1) {
      group.level[group.count++] = parts[axis].outer;
      continue;
    }
    bool para = parallel && t->axes[axis].size > 1;
    node = schedule_add_loop(m->s, node, parts[axis].outer, para ? LOOP_PARA : 0);
    parallel = parallel && !para;
  }
  if (group.count > 1) group.marks |= LOOP_FOLD;
  node = schedule_add_loop(m->s, node, group.level[0], group.marks);
  m->s->nodes.data[node].loop = group;
  int leaf = schedule_add_leaf(m->s, node, t->name);
  for (int i = 0; i < t->rank; i++) add_axis(m, leaf, t->axes[i].name, parts[i]);
  add_layout(m, leaf, f->stage, parts);
}
