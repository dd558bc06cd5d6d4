/* The loops of one stage, from its plan: loops over tiles, then the reduction, then the rows and
 * the vector axis of the tile. A fused consumer follows in the loops over tiles. See default.h.
 *
 *     n, co, h:para, w_o =>
 *         kh, kw, ci, w_i:14:unroll, co_v:32:vec =>
 *             @conv = n, {co, co_v}/co, h, {w_o, w_i}/w // ci, kh, kw
 *         w_i:unroll, co_v:vec =>
 *             @Y = n, {co, co_v}/co, h, {w_o, w_i}/w
 *
 * An axis whose conditions are periodic has phases. Without rows in the tile it is split by its
 * period, and an unrolled loop over the phases encloses the tile. Its reduction is split as well,
 * with the phases unrolled in the tile.
 *
 * A reduction with vectors along it, and a stage without reductions, are further down.
 */
#include <stdio.h>
#include <string.h>

#include "autoschedule/default.h"
#include "cost/policy.h"
#include "program/program_cost.h"

enum {
  NAME_BYTES = 4 * PROGRAM_NAME, /* of a level that is named by stage and axis */
  ENDING_BYTES = 8               /* of "_oo" and the like */
};

/* ---- levels, named AXIS, or STAGE_AXIS, or that with as many _ as make it unique ---- */

static bool is_same_meaning(struct default_meaning a, struct default_meaning b) {
  if (a.stage == b.stage && a.axis != b.axis) return false;
  if (a.size != b.size || a.tail != b.tail || a.open != b.open || !a.dyn != !b.dyn) return false;
  if (a.shared != b.shared) return false;
  return !a.dyn || strcmp(a.dyn, b.dyn) == 0;
}

/* The level of that name; -1: it has another meaning. */
static int level_with_meaning(struct default_maker *m, const char *name,
                              struct default_meaning meaning) {
  int level = schedule_find_level(m->s, name);
  if (level < 0) {
    level = schedule_level(m->s, name);
    VEC_PUSH(&m->meanings, meaning);
  } else if (!is_same_meaning(m->meanings.data[level], meaning)) {
    return -1;
  }
  m->meanings.data[level] = meaning;
  return level;
}

int default_level(struct default_maker *m, const char *stage, const char *name,
                  struct default_meaning meaning) {
  char longer[NAME_BYTES];
  int level = level_with_meaning(m, name, meaning);
  int length = snprintf(longer, sizeof longer, "%s_%s", stage, name);
  while (level < 0) {
    level = level_with_meaning(m, longer, meaning);
    longer[length++] = '_';
    longer[length] = '\0';
  }
  return level;
}

/* The first axis that the bounds of a reduction depend on; NULL: its size bounds it. */
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
  int stage = (int)(t - m->p->tensors.data);
  int level = default_level(
      m, t->name, a->name,
      (struct default_meaning){.stage = 1 + stage, .axis = axis, .size = a->size, .dyn = dyn});
  if (!dyn) return level;
  m->s->levels.data[level].kind = EXTENT_DYN;
  m->s->levels.data[level].dyn = arena_strndup(&m->s->arena, dyn, strlen(dyn));
  return level;
}

/* ---- the levels of an axis ---- */

/* The levels that an axis is split into; -1: none. */
struct parts {
  int outermost; /* outside a cache block, a K-block or phases */
  int outer;     /* outside the tile */
  int inner;     /* in the tile */
};

/* The level of the loop over the own axis that stages share; -1: none. */
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

/* The loops of a stage while they are written. */
struct nest {
  struct default_maker *m;
  const struct default_facts *f;
  const struct default_tile *tile;
  const struct default_plan *plan;
  int transposed;     /* the axis whose rows are the consumer's vector axis; -1: none */
  bool k_blocks_open; /* the loop over K-blocks is written */
  int panel_loop;     /* node of the loop over the vector axis outside the tile; 0: none */
  int64_t panel_uses; /* iterations of the loops between it and the tile */
  struct parts parts[PROGRAM_AXES];
};

/* The own axis has phases, unrolled outside the tile. */
static bool has_phases(const struct nest *n, int axis) {
  if (!n->tile->phases || !n->f->period[axis]) return false;
  return axis != n->tile->vector_axis && n->tile->rows[axis] == 1;
}

/* Steps of the own axis in one tile, or its period. */
static int64_t inner_steps(const struct nest *n, int axis) {
  if (axis == n->tile->vector_axis) return n->tile->steps;
  return has_phases(n, axis) ? n->f->period[axis] : n->tile->rows[axis];
}

static int64_t outer_steps(const struct nest *n, int axis) {
  int64_t size = n->f->t->axes[axis].size, steps = inner_steps(n, axis);
  return (size + steps - 1) / steps;
}

/* A level of a split axis, AXIS_ENDING. The schedule states the size of inner levels; it infers
 * that of outer ones. */
static int part_level(struct nest *n, int axis, const char *ending, int64_t size,
                      enum level_tail tail, bool stated) {
  char name[PROGRAM_NAME + ENDING_BYTES];
  snprintf(name, sizeof name, "%s%s", n->f->t->axes[axis].name, ending);
  int open = n->tile->symbolic ? 1 + n->f->stage : 0;
  int level = default_level(
      n->m, n->f->t->name, name,
      (struct default_meaning){
          .stage = 1 + n->f->stage, .axis = axis, .size = size, .tail = tail, .open = open});
  if (!stated) return level;
  n->m->s->levels.data[level].kind = EXTENT_INT;
  n->m->s->levels.data[level].extent = size;
  n->m->s->levels.data[level].tail = tail;
  return level;
}

/* The axis in tiles of `steps`. A level whose size the tuner will change exists even where it has
 * one step. */
static struct parts split(struct nest *n, int axis, int64_t steps, enum level_tail tail,
                          const char *ending) {
  int64_t size = n->f->t->axes[axis].size;
  struct parts p = {-1, -1, -1};
  if (n->tile->symbolic && steps > 1 && steps == size && axis != n->tile->vector_axis) {
    p.inner = part_level(n, axis, ending, steps, TAIL_NONE, true);
    p.outer = part_level(n, axis, "_o", 1, TAIL_NONE, false);
    return p;
  }
  if (size % steps == 0 && axis != n->transposed) tail = TAIL_NONE;
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

/* Transposed rows are the consumer's vector axis: a number of them that is no power of two needs a
 * mask. */
static enum level_tail rows_tail(const struct nest *n, int axis) {
  int64_t rows = n->tile->rows[axis];
  if (axis != n->transposed || n->f->t->axes[axis].size % rows) return TAIL_PEEL;
  return rows & (rows - 1) ? TAIL_MASK : TAIL_NONE;
}

static enum level_tail vector_tail(const struct nest *n) {
  return n->tile->peeled ? TAIL_PEEL : TAIL_MASK;
}

/* The axis has one step, which the consumer adds up, inside of its own axes. */
static bool is_added_up(const struct nest *n, int axis) {
  const struct default_plan *plan = n->plan;
  if (!plan || plan->consumer < 0 || !plan->digits) return false;
  return plan->digit_of[axis] >= n->m->p->tensors.data[plan->consumer].rank;
}

/* Every axis, without cache blocks and K-blocks. */
static void split_axes(struct nest *n) {
  for (int i = 0; i < n->f->t->rank; i++) {
    int shared = shared_level(n->m, n->f->stage, i);
    if (shared >= 0) {
      n->parts[i] = (struct parts){-1, shared, -1};
      continue;
    }
    n->parts[i] = i == n->tile->vector_axis ? split(n, i, n->tile->steps, vector_tail(n), "_v")
                                            : split(n, i, inner_steps(n, i), rows_tail(n, i), "_i");
    if (has_phases(n, i)) n->parts[i] = (struct parts){n->parts[i].outer, n->parts[i].inner, -1};
    if (is_added_up(n, i))
      n->parts[i] = (struct parts){-1, -1, default_axis_level(n->m, n->f->t, i)};
  }
  for (int i = n->f->t->rank; i < n->f->t->rank + n->f->t->reductions; i++)
    n->parts[i] = n->tile->phases && n->f->period[i]
                      ? split(n, i, default_phase_steps(n->f, i), TAIL_NONE, "_i")
                      : (struct parts){-1, default_axis_level(n->m, n->f->t, i), -1};
}

static enum level_tail k_block_tail(const struct nest *n, int axis) {
  return n->f->t->axes[axis].size % n->tile->k_block ? TAIL_PEEL : TAIL_NONE;
}

/* A K-blocked reduction: the loop over K-blocks is outside the tiles. */
static void split_k_blocks(struct nest *n) {
  for (int i = n->f->t->rank; i < n->f->t->rank + n->f->t->reductions; i++) {
    if (n->f->t->axes[i].size == 1) continue;
    struct parts p = split(n, i, n->tile->k_block, k_block_tail(n, i), "_i");
    n->parts[i] = (struct parts){p.outer, p.inner, -1};
  }
}

/* Cache blocks: tiles along block_axis that stay in L2 while other loops run. */
static void split_cache_block(struct nest *n) {
  int axis = n->tile->block_axis;
  int64_t count = outer_steps(n, axis);
  n->parts[axis].outermost =
      part_level(n, axis, "_oo", count / n->tile->cache_block, TAIL_NONE, false);
  n->parts[axis].outer = part_level(n, axis, "_b", n->tile->cache_block, TAIL_NONE, true);
}

/* ---- loops ---- */

/* The axis's outermost level outside the tile, if it has one that is not over phases; -1. */
static int outer_level(const struct nest *n, int axis) {
  const struct parts *p = &n->parts[axis];
  return p->outermost >= 0 || has_phases(n, axis) ? p->outermost : p->outer;
}

/* The tuner may add a buffer to this loop of a sketch. In a parallel loop each thread would have
 * its own, which a loop with a remainder loop does not allow. */
static bool may_have_buffers(const struct nest *n, int axis) {
  bool peeled = axis != n->tile->vector_axis && n->f->t->axes[axis].size % inner_steps(n, axis);
  return n->tile->symbolic && peeled;
}

/* The own axis whose loop runs in parallel, the outermost with several iterations; -1: none. */
static int parallel_axis(const struct nest *n) {
  if (n->tile->cycles < DEFAULT_PARALLEL_CYCLES || n->m->enclosing) return -1;
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

static void add_buffered_stage(struct nest *n, int stage, int node) {
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

/* Opens the loop over K-blocks before that of the own axis, unless all loads depend on the axis:
 * loops over the batch axis stay outside. */
static int add_k_blocks(struct nest *n, int node, int axis) {
  for (int i = n->f->t->rank; i < n->f->t->rank + n->f->t->reductions; i++)
    if (n->parts[i].outermost >= 0 && !n->k_blocks_open && !default_all_depend_on(n->f, axis)) {
      node = schedule_add_loop(n->m->s, node, n->parts[i].outermost, 0);
      n->k_blocks_open = true;
    }
  return node;
}

/* The loops over tiles. A buffered producer is computed before the first loop that it does not
 * depend on. */
static int add_outer(struct nest *n) {
  int node = n->m->enclosing, parallel = parallel_axis(n), buffered = buffered_stage(n);
  struct default_prefetch prefetch = default_prefetch_rows(n->f, n->m->machine, n->tile);
  for (int i = 0; i < n->f->t->rank; i++) {
    int axis = n->tile->order[i];
    int level = outer_level(n, axis);
    if (buffered >= 0 && n->m->plan[buffered].axis[axis] < 0) {
      add_buffered_stage(n, buffered, node);
      buffered = -1;
    }
    if (level < 0 || shared_level(n->m, n->f->stage, axis) >= 0) continue;
    node = add_k_blocks(n, node, axis);
    node = schedule_add_loop(n->m->s, node, level, axis == parallel ? LOOP_PARA : 0);
    if (axis == prefetch.axis) n->m->s->nodes.data[node].loop.prefetch = prefetch.steps;
    n->panel_uses *= outer_steps(n, axis);
    if (axis == n->tile->vector_axis) {
      n->panel_loop = node;
      n->panel_uses = 1;
    }
    if (n->tile->bands && axis == n->tile->vector_axis)
      node = schedule_add_loop(n->m->s, node, n->parts[n->tile->block_axis].outer, 0);
  }
  if (buffered >= 0) add_buffered_stage(n, buffered, node);
  if (n->tile->block_axis >= 0 && !n->tile->bands && !n->tile->streams)
    node = schedule_add_loop(n->m->s, node, n->parts[n->tile->block_axis].outer, 0);
  for (int i = 0; i < n->f->t->rank; i++)
    if (has_phases(n, i)) node = schedule_add_loop(n->m->s, node, n->parts[i].outer, LOOP_UNROLL);
  return node;
}

/* Own axes that bound a reduction: each of their steps reads another panel. */
static uint32_t bounding_axes(const struct nest *n) {
  uint32_t axes = 0;
  for (int i = n->f->t->rank; i < n->f->t->rank + n->f->t->reductions; i++) {
    const struct program_axis *a = &n->f->t->axes[i];
    if (a->low >= 0) axes |= px_axes(n->m->p, a->low) | px_axes(n->m->p, a->high);
  }
  return axes;
}

/* Tiles of rows that read the same panel of weights. */
static double tiles_per_panel(const struct nest *n) {
  double uses = 1;
  uint32_t bounding = bounding_axes(n);
  for (int i = 0; i < n->f->t->rank; i++)
    if (i != n->tile->vector_axis && !(bounding >> i & 1)) uses *= (double)outer_steps(n, i);
  return uses;
}

/* How many iterations ahead the innermost reduction prefetches its panels; 0: not. Panels that
 * exceed L2 and serve few tiles are mostly in memory when they are read first. With few registers,
 * the processor itself prefetches the short panels of a block that are read at once (seen on a Zen
 * 3 with AVX2). */
static int prefetch_steps(const struct nest *n, int reduction) {
  const struct machine *machine = n->m->machine;
  double bytes = 0;
  int64_t step_bytes = 0;
  if (!machine || n->tile->k_block || tiles_per_panel(n) > DEFAULT_PANEL_TILES) return 0;
  for (int i = 0; i < n->f->loads && n->tile->vector_axis >= 0; i++) {
    const struct default_load *l = &n->f->load[i];
    int64_t size = program_dtype_bytes(n->f->p->tensors.data[l->tensor].dtype);
    if (l->stride[n->tile->vector_axis] != 1 || l->non_affine) continue;
    if (l->stride[reduction] * size < machine->line) continue;
    bytes += (double)(program_elements(n->f->p, l->tensor) * size);
    step_bytes += n->tile->steps * size;
  }
  if (bytes <= (double)machine->l2) return 0;
  if (n->tile->streams && machine_has_few_registers(machine)) return 0;
  if (n->tile->streams) step_bytes *= n->tile->cache_block;
  int64_t distance = machine_prefetch_distance(machine);
  return step_bytes < distance ? (int)(distance / step_bytes) : 1;
}

/* Bytes of operands in panels of the tile's width: the smallest stride along a reduction is the
 * vector loop. */
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

/* The loop over panels prefetches the whole next panel while several tiles use this one. For panels
 * that exceed L2: a prefetch in the reduction would serve only the first of these tiles, which
 * would wait for it. Measured with AVX2. */
static bool prefetches_whole_panel(const struct nest *n) {
  bool alone = n->tile->block_axis < 0 && !n->tile->streams && !n->tile->k_block;
  if (!n->m->machine || !alone || n->panel_loop <= 0 || n->panel_uses <= 1) return false;
  return machine_has_few_registers(n->m->machine) && tiles_per_panel(n) <= DEFAULT_PANEL_TILES &&
         packed_bytes(n) > (double)n->m->machine->l2;
}

/* The loops over reductions, those over their phases innermost. */
static int add_reductions(struct nest *n, int node) {
  const int *order = n->tile->order + n->f->t->rank;
  bool whole = prefetches_whole_panel(n);
  if (whole) n->m->s->nodes.data[n->panel_loop].loop.prefetch = 1;
  for (int i = 0; i < n->f->t->reductions; i++) {
    bool unrolled = n->tile->unrolled >> order[i] & 1 && n->f->t->axes[order[i]].size > 1;
    if (n->parts[order[i]].outer < 0) continue;
    node = schedule_add_loop(n->m->s, node, n->parts[order[i]].outer, unrolled ? LOOP_UNROLL : 0);
    bool innermost = i == n->f->t->reductions - 1 && n->parts[order[i]].inner < 0;
    if (innermost && !unrolled && !whole)
      n->m->s->nodes.data[node].loop.prefetch = prefetch_steps(n, order[i]);
  }
  for (int i = 0; i < n->f->t->reductions; i++)
    if (n->parts[order[i]].inner >= 0)
      node = schedule_add_loop(n->m->s, node, n->parts[order[i]].inner, LOOP_UNROLL);
  return node;
}

/* Each row along the axis loads vectors of its own. */
static bool has_own_vectors(const struct nest *n, int axis) {
  for (int i = 0; i < n->f->loads && n->tile->vector_axis >= 0; i++) {
    const struct default_load *l = &n->f->load[i];
    if (l->depends_on >> n->tile->vector_axis & l->depends_on >> axis & 1) return true;
  }
  return false;
}

/* The rows are a loop. Rows with a remainder are unrolled, which is faster. */
static bool is_rolled(const struct nest *n, int axis) {
  return n->tile->rolled >> axis & 1 && n->f->t->axes[axis].size % n->tile->rows[axis] == 0;
}

/* Rows with vectors of their own are innermost if registers hold these vectors: a broadcast serves
 * all of them. Else they are outermost, and a vector serves the rows inside. */
static int add_rows(struct nest *n, int node) {
  for (int inner = 0; inner < 2; inner++)
    for (int i = 0; i < n->f->t->rank; i++)
      if (i != n->tile->vector_axis && n->parts[i].inner >= 0 &&
          has_own_vectors(n, i) == (inner == n->tile->reuses_vectors))
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

/* ---- leaves ---- */

/* The layout of a stage, unless its axes are in the program's order. Axes of shared loops are left
 * out of a tensor that is read only in them. */
static void add_layout(struct default_maker *m, int leaf, int tensor, const struct parts *parts) {
  const struct program_tensor *t = &m->p->tensors.data[tensor];
  struct schedule_leaf *l = &m->s->nodes.data[leaf].leaf;
  const int *order = m->layout[tensor].order;
  bool in_program_order = true, private = m->enclosing && !m->shared[tensor].seen;
  for (int i = 0; i < t->rank; i++) in_program_order = in_program_order && order[i] == i;
  if (in_program_order) return;
  for (int i = 0; i < t->rank; i++) {
    const struct parts *p = &parts[order[i]];
    if (private && shared_level(m, tensor, order[i]) >= 0) continue;
    if (p->outermost >= 0) VEC_PUSH(&l->layout, m->s->levels.data[p->outermost].name);
    if (p->outer >= 0) VEC_PUSH(&l->layout, m->s->levels.data[p->outer].name);
    if (p->inner >= 0) VEC_PUSH(&l->layout, m->s->levels.data[p->inner].name);
  }
}

/* The layout of a tile whose consumer has another vector axis: rows, then the vector axis, then
 * transposed rows. */
static void add_tile_layout(struct nest *n, int leaf) {
  struct schedule_leaf *l = &n->m->s->nodes.data[leaf].leaf;
  enum { ROWS, VECTORS, TRANSPOSED, KINDS };
  for (int kind = 0; kind < KINDS; kind++)
    for (int i = 0; i < n->f->t->rank; i++) {
      int own = i == n->tile->vector_axis ? VECTORS : i == n->transposed ? TRANSPOSED : ROWS;
      if (n->parts[i].inner >= 0 && kind == own)
        VEC_PUSH(&l->layout, n->m->s->levels.data[n->parts[i].inner].name);
    }
}

/* The loops of a fused consumer: those of the tile. If it has another vector axis, a scalar loop
 * over the tile's vector axis encloses the rows, of which the transposed ones are a vector. */
static int add_consumer_loops(struct nest *n, int node, bool gathered) {
  if (!gathered) return add_inner(n, node);
  node = schedule_add_loop(n->m->s, node, n->parts[n->tile->vector_axis].inner, 0);
  if (n->transposed < 0) return add_rows(n, node);
  for (int i = 0; i < n->f->t->rank; i++)
    if (i != n->tile->vector_axis && i != n->transposed && n->parts[i].inner >= 0)
      node = schedule_add_loop(n->m->s, node, n->parts[i].inner, LOOP_UNROLL);
  return schedule_add_loop(n->m->s, node, n->parts[n->transposed].inner, LOOP_VEC);
}

/* A consumer's axis: the levels of each of its digits. */
static void add_digits(struct nest *n, int leaf, const char *name, const int *digits, int count) {
  struct schedule_axis *a = schedule_add_axis(n->m->s, leaf, name);
  for (int i = 0; i < count; i++) {
    const struct parts *p = &n->parts[digits[i]];
    if (p->outermost >= 0) a->level[a->count++] = p->outermost;
    if (p->outer >= 0) a->level[a->count++] = p->outer;
    if (p->inner >= 0) a->level[a->count++] = p->inner;
  }
}

static void add_consumer(struct nest *n, int node, const struct default_plan *plan) {
  const struct program_tensor *t = &n->m->p->tensors.data[plan->consumer];
  struct parts parts[PROGRAM_AXES];
  int leaf = schedule_add_leaf(n->m->s, add_consumer_loops(n, node, plan->gathered), t->name);
  for (int i = 0; i < t->rank + t->reductions; i++) {
    int digits[PROGRAM_AXES], count = default_digits(plan, n->f->t->rank, i, digits);
    parts[i] = n->parts[digits[0]];
    if (count == 1)
      add_axis(n->m, leaf, t->axes[i].name, parts[i]);
    else
      add_digits(n, leaf, t->axes[i].name, digits, count);
  }
  n->m->s->nodes.data[leaf].leaf.reductions = t->reductions;
  if (!plan->digits) add_layout(n->m, leaf, plan->consumer, parts);
}

void default_tiled_nest(struct default_maker *m, const struct default_facts *f,
                        const struct default_plan *plan) {
  const struct default_tile *tile = &plan->tile;
  struct nest n = {.m = m,
                   .f = f,
                   .tile = tile,
                   .plan = plan,
                   .transposed = plan->gathered ? plan->transposed : -1};
  const struct program_tensor *t = f->t;
  split_axes(&n);
  if (tile->k_block) split_k_blocks(&n);
  if (tile->block_axis >= 0) split_cache_block(&n);
  int outside = add_outer(&n);
  int leaf = schedule_add_leaf(m->s, add_inner(&n, add_reductions(&n, outside)), t->name);
  for (int i = 0; i < t->rank + t->reductions; i++) add_axis(m, leaf, t->axes[i].name, n.parts[i]);
  m->s->nodes.data[leaf].leaf.reductions = t->reductions;
  if (plan->gathered) add_tile_layout(&n, leaf);
  if (plan->consumer >= 0)
    add_consumer(&n, outside, plan);
  else
    add_layout(m, leaf, f->stage, n.parts);
}

/* ---- vectors along a reduction ---- */

/* Vectors, each added up at once, and a remainder loop; a short axis is one masked vector. */
static struct parts split_horizontal(struct nest *n, int axis) {
  int64_t size = n->f->t->axes[axis].size, steps = default_horizontal_steps(n->f, n->m->machine);
  if (size > steps) return split(n, axis, steps, TAIL_PEEL, "_v");
  return (struct parts){-1, -1, part_level(n, axis, "_v", size, TAIL_MASK, true)};
}

void default_horizontal_nest(struct default_maker *m, const struct default_facts *f,
                             const struct default_plan *plan) {
  const struct program_tensor *t = f->t;
  struct nest n = {.m = m, .f = f, .tile = &plan->tile, .transposed = -1};
  bool parallel = plan->tile.cycles >= DEFAULT_PARALLEL_CYCLES && !m->enclosing;
  int node = m->enclosing;
  for (int i = 0; i < t->rank + t->reductions; i++) {
    int shared = i < t->rank ? shared_level(m, f->stage, i) : -1;
    n.parts[i] = (struct parts){-1, shared, -1};
    if (i == plan->first) n.parts[i] = split_horizontal(&n, i);
    if (shared >= 0 || i == plan->first) continue;
    bool para = parallel && i < t->rank && t->axes[i].size > 1;
    n.parts[i].outer = default_axis_level(m, t, i);
    node = schedule_add_loop(m->s, node, n.parts[i].outer, para ? LOOP_PARA : 0);
    parallel = parallel && !para;
  }
  const struct parts *vectors = &n.parts[plan->first];
  if (vectors->outer >= 0) node = schedule_add_loop(m->s, node, vectors->outer, 0);
  int leaf =
      schedule_add_leaf(m->s, schedule_add_loop(m->s, node, vectors->inner, LOOP_VEC), t->name);
  for (int i = 0; i < t->rank + t->reductions; i++) add_axis(m, leaf, t->axes[i].name, n.parts[i]);
  m->s->nodes.data[leaf].leaf.reductions = t->reductions;
}

/* ---- one flat vector loop ---- */

void default_flat_nest(struct default_maker *m, const struct default_facts *f,
                       const struct default_plan *plan) {
  const struct program_tensor *t = f->t;
  struct parts parts[PROGRAM_AXES];
  struct schedule_loop group = {.marks = LOOP_VEC};
  int node = m->enclosing;
  bool parallel = plan->tile.cycles >= DEFAULT_PARALLEL_CYCLES && !m->enclosing;
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
