/* Computes what a tile of rows reads for these rows only, just before, so that it stays in L1 or
 * L2: image columns (im2col), or another producer of a contraction.
 *
 *     y, k =>                                    y_oo =>
 *         @im2col = y, k                           k, y_b:1, y_i:16 =>
 *     y_oo, xr, y_b:1, k, y_i:16:unroll,             @im2col[k][y_b][y_i] = {y_oo, y_b, y_i}/y, k
 *     xi:vec =>                                    xr, y_b, k, y_i:unroll, xi:vec =>
 *         @P = {y_oo, y_b, y_i}/y, xr, xi // k       @P = {y_oo, y_b, y_i}/y, xr, xi // k
 *     x, y =>                                      y_b, y_i, x =>
 *         @Y = y, x                                  @Y = {y_oo, y_b, y_i}/y, x
 *
 * An element-wise consumer follows into the same loop. The buffer has either the rows innermost, or
 * the stage's own last axis, in vectors; both are sketches.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/affine.h"
#include "program/program_facts.h"
#include "tune/sketch.h"

enum { MOST_MOVED = 8 /* limit of stages moved together */ };

struct nest {
  const struct default_made *made;
  struct schedule *s;
  const struct machine *machine;
  const struct program_tensor *sum;
  int leaf;  /* leaf of the contraction */
  int place; /* loop over blocks of rows, in which stages are computed per block */
};

/* ---- nodes ----------------------------------------------------------------------------------- */

static int leaf_of(const struct schedule *s, const char *stage) {
  for (int i = 0; i < s->nodes.count; i++)
    if (s->nodes.data[i].kind == NODE_LEAF && s->nodes.data[i].parent >= 0 &&
        !strcmp(s->nodes.data[i].leaf.stage, stage))
      return i;
  return -1;
}

static bool stands_alone(const struct schedule *s, int leaf) {
  for (int i = leaf; s->nodes.data[i].parent >= 0; i = s->nodes.data[i].parent) {
    const struct schedule_node *above = &s->nodes.data[s->nodes.data[i].parent];
    if (s->nodes.data[i].parent > 0 && above->first != above->last) return false;
  }
  return true;
}

/* The nest at the root that contains the node. */
static int nest_of(const struct schedule *s, int node) {
  while (s->nodes.data[node].parent > 0) node = s->nodes.data[node].parent;
  return node;
}

static void detach(struct schedule *s, int node) {
  struct schedule_node *above = &s->nodes.data[s->nodes.data[node].parent];
  int before = -1;
  for (int i = above->first; i != node; i = s->nodes.data[i].next) before = i;
  if (before >= 0)
    s->nodes.data[before].next = s->nodes.data[node].next;
  else
    above->first = s->nodes.data[node].next;
  if (above->last == node) above->last = before;
}

static void forget(struct schedule *s, int node) {
  for (int i = s->nodes.data[node].first; i >= 0;) {
    int next = s->nodes.data[i].next;
    forget(s, i);
    i = next;
  }
  struct schedule_node *n = &s->nodes.data[node];
  n->parent = n->first = n->last = n->next = -1;
}

/* Removes a nest with everything in it. */
static void drop(struct schedule *s, int nest) {
  detach(s, nest);
  forget(s, nest);
}

/* Appends a node to the children of `parent`. */
static void attach(struct schedule *s, int parent, int node) {
  struct schedule_node *above = &s->nodes.data[parent];
  s->nodes.data[node].next = -1;
  if (above->last >= 0)
    s->nodes.data[above->last].next = node;
  else
    above->first = node;
  above->last = node;
}

/* ---- stages and axes shared with the contraction --------------------------------------------- */

/* The only load of `tensor` in the expression; -1: none; -2: several. */
static int only_load(const struct program *p, int expr, int tensor) {
  const struct px_node *n = &p->nodes.data[expr];
  int found = n->op == PX_LOAD && n->tensor == tensor ? expr : -1;
  for (int i = 0; i < 3; i++) {
    int below = n->arg[i] >= 0 ? only_load(p, n->arg[i], tensor) : -1;
    if (below == -1) continue;
    found = found == -1 ? below : -2;
  }
  return found;
}

/* The axis that is index `at` of a load; -1: another expression. */
static int index_axis(const struct program *p, int load, int at) {
  const struct px_node *n = &p->nodes.data[p->indices.data[p->nodes.data[load].first + at]];
  return n->op == PX_AXIS ? (int)n->integer : -1;
}

/* The only consumer of the stage, and its load; -1: none or several. */
static int only_consumer(const struct program *p, int stage, int *load) {
  int consumer = -1;
  for (int i = stage + 1; i < p->tensors.count; i++) {
    int found = p->tensors.data[i].is_input ? -1 : only_load(p, p->tensors.data[i].body, stage);
    if (found == -1) continue;
    if (found == -2 || consumer >= 0) return -1;
    consumer = i;
    *load = found;
  }
  return consumer;
}

/* The levels of the contraction's axis, if its outer loop encloses the place; NULL otherwise. */
static const struct schedule_axis *shared_levels(const struct nest *n, int axis) {
  const struct schedule_axis *a = &n->s->nodes.data[n->leaf].leaf.axes.data[axis];
  for (int i = n->place; i > 0; i = n->s->nodes.data[i].parent)
    if (n->s->nodes.data[i].loop.level[0] == a->level[0]) return a;
  return NULL;
}

/* ---- the nest of a moved stage --------------------------------------------------------------- */

static int fresh_level(struct nest *n, const char *stage, const char *axis, const char *ending) {
  char name[SCHEDULE_NAME];
  snprintf(name, sizeof name, "%.100s_%.100s%s", stage, axis, ending);
  while (schedule_find_level(n->s, name) >= 0 && strlen(name) + 1 < sizeof name) strcat(name, "_");
  return schedule_level(n->s, name);
}

struct covering {
  struct schedule_axis levels[PROGRAM_AXES]; /* by axis of the stage */
  bool shared[PROGRAM_AXES];
};

/* Covers an axis by a loop of its own, or by vectors, with the last one masked. */
static void cover(struct nest *n, const struct program_tensor *t, int axis, bool vectors,
                  struct schedule_axis *out) {
  int64_t size = t->axes[axis].size;
  int lanes = n->machine->vector_bytes / (t->dtype == PROGRAM_F64 ? 8 : 4);
  *out = (struct schedule_axis){.count = 1};
  if (!vectors || size < lanes) {
    out->level[0] = fresh_level(n, t->name, t->axes[axis].name, "");
    return;
  }
  out->level[0] = fresh_level(n, t->name, t->axes[axis].name, "_o");
  out->level[1] = fresh_level(n, t->name, t->axes[axis].name, "_v");
  out->count = 2;
  struct level *inner = &n->s->levels.data[out->level[1]];
  inner->kind = EXTENT_INT;
  inner->extent = lanes;
  inner->tail = size % lanes ? TAIL_MASK : TAIL_NONE;
}

static bool is_outside(const struct nest *n, int level) {
  for (int i = n->place; i > 0; i = n->s->nodes.data[i].parent)
    if (n->s->nodes.data[i].loop.level[0] == level) return true;
  return false;
}

/* Adds the loops of an axis inside the place, except vectors. */
static int add_inner(struct nest *n, int node, const struct covering *c, int axis) {
  const struct schedule_axis *a = &c->levels[axis];
  for (int i = 0; i < a->count; i++)
    if (c->shared[axis] ? !is_outside(n, a->level[i]) : i == 0)
      node = schedule_add_loop(n->s, node, a->level[i], 0);
  return node;
}

static int add_vectors(struct nest *n, int node, const struct covering *c, int axes) {
  for (int i = 0; i < axes; i++)
    if (!c->shared[i] && c->levels[i].count == 2)
      node = schedule_add_loop(n->s, node, c->levels[i].level[1], LOOP_VEC);
  return node;
}

static void put_layout(struct nest *n, int leaf, const struct covering *c, int rank, bool shared) {
  struct schedule_leaf *l = &n->s->nodes.data[leaf].leaf;
  for (int i = 0; i < rank; i++) {
    if (c->shared[i] != shared) continue;
    for (int j = 0; j < c->levels[i].count; j++)
      if (!is_outside(n, c->levels[i].level[j]))
        VEC_PUSH(&l->layout, n->s->levels.data[c->levels[i].level[j]].name);
  }
}

/* Adds the stage to the place, with the rows' loops innermost (`across`) or outside its own. */
static void add_stage(struct nest *n, const struct program_tensor *t, const struct covering *c,
                      bool across) {
  int node = n->place;
  int axes = t->rank + t->reductions;
  for (int turn = 0; turn < 2; turn++)
    for (int i = 0; i < axes; i++)
      if (c->shared[i] == (turn == across)) node = add_inner(n, node, c, i);
  node = add_vectors(n, node, c, axes);
  int leaf = schedule_add_leaf(n->s, node, t->name);
  for (int i = 0; i < t->rank + t->reductions; i++) {
    struct schedule_axis *a = schedule_add_axis(n->s, leaf, t->axes[i].name);
    a->count = c->levels[i].count;
    memcpy(a->level, c->levels[i].level, sizeof a->level);
  }
  n->s->nodes.data[leaf].leaf.reductions = t->reductions;
  if (across) {
    put_layout(n, leaf, c, t->rank, false);
    put_layout(n, leaf, c, t->rank, true);
  }
}

/* ---- producers and consumer ------------------------------------------------------------------ */

/* Stages of the moved nest in order, and what covers their axes. */
struct moved {
  int count;
  struct {
    int stage;
    struct covering c;
  } of[MOST_MOVED];
};

static bool add_leaves(const struct nest *n, int node, struct moved *m) {
  const struct schedule_node *of = &n->s->nodes.data[node];
  if (of->kind == NODE_LEAF) {
    if (m->count == MOST_MOVED) return false;
    m->of[m->count++].stage = program_find(n->made->program, of->leaf.stage);
    return true;
  }
  for (int i = of->first; i >= 0; i = n->s->nodes.data[i].next)
    if (!add_leaves(n, i, m)) return false;
  return true;
}

/* Whether vectors along the stage's last axis need no gather. */
static bool has_lanes(const struct program *p, int stage) {
  struct default_facts f;
  int last = p->tensors.data[stage].rank - 1;
  struct default_layout *layouts = mem_alloc((size_t)p->tensors.count * sizeof *layouts);
  for (int i = 0; i < p->tensors.count; i++) default_row_major(&p->tensors.data[i], &layouts[i]);
  default_facts(p, stage, layouts, &f);
  bool whole = last >= 0 && !f.truncated;
  for (int i = 0; i < f.loads && whole; i++) {
    int64_t stride = f.load[i].stride[last];
    whole = !(f.load[i].non_affine >> last & 1) && (stride == 0 || stride == 1);
  }
  mem_free(layouts);
  return whole;
}

/* Covers the axes of a stage: by the consumer's loops where its index is a shared axis. False: a
 * place would need several elements, as in a window. */
static bool cover_read(struct nest *n, int stage, int load, const struct covering *consumer,
                       bool vectors, struct covering *c) {
  const struct program *p = n->made->program;
  const struct program_tensor *t = &p->tensors.data[stage];
  vectors = vectors && has_lanes(p, stage);
  for (int i = 0; i < t->rank + t->reductions; i++) {
    int axis = i < t->rank ? index_axis(p, load, i) : -1;
    int index = i < t->rank ? p->indices.data[p->nodes.data[load].first + i] : -1;
    c->shared[i] = axis >= 0 && consumer->shared[axis];
    if (c->shared[i])
      c->levels[i] = consumer->levels[axis];
    else
      cover(n, t, i, vectors && i == t->rank - 1, &c->levels[i]);
    for (int j = 0; j < PROGRAM_AXES && axis < 0 && index >= 0; j++)
      if (consumer->shared[j] && px_mentions(p, index, j)) return false;
  }
  return true;
}

/* The contraction: which of its axes have loops around the place. */
static struct covering around(const struct nest *n) {
  struct covering c = {0};
  for (int i = 0; i < n->sum->rank; i++) {
    const struct schedule_axis *a = shared_levels(n, i);
    c.shared[i] = a != NULL && n->sum->axes[i].size > 1;
    if (a) c.levels[i] = *a;
  }
  return c;
}

/* Covers all stages of the nest, the last first. Each is read by a later one, the last by the
 * contraction. */
static bool cover_all(struct nest *n, struct moved *m, bool across) {
  const struct program *p = n->made->program;
  struct covering sum = around(n);
  for (int i = m->count - 1; i >= 0; i--) {
    const struct covering *consumer = &sum;
    int load, stage = m->of[i].stage, by = only_consumer(p, stage, &load);
    if (is_output(p, stage)) return false;
    for (int j = i + 1; j < m->count; j++)
      if (m->of[j].stage == by) consumer = &m->of[j].c;
    if (consumer == &sum && (by != n->made->stage || i < m->count - 1)) return false;
    bool last = i == m->count - 1;
    if (!cover_read(n, stage, load, consumer, !last || !across, &m->of[i].c)) return false;
  }
  return m->count > 0;
}

/* The consumer of the contraction if it has a nest of its own and each axis around the place is one
 * of its own; -1. */
static int follower(const struct nest *n, int *load) {
  const struct program *p = n->made->program;
  int consumer = is_output(p, n->made->stage) ? -1 : only_consumer(p, n->made->stage, load);
  int leaf = consumer < 0 ? -1 : leaf_of(n->s, p->tensors.data[consumer].name);
  if (leaf < 0 || !stands_alone(n->s, leaf)) return -1;
  for (int i = 0; i < n->sum->rank; i++) {
    int axis = index_axis(p, *load, i);
    if (shared_levels(n, i) && (axis < 0 || axis >= p->tensors.data[consumer].rank)) return -1;
  }
  return consumer;
}

static void follow(struct nest *n) {
  const struct program *p = n->made->program;
  struct covering c = {0};
  int load, consumer = follower(n, &load);
  if (consumer < 0) return;
  const struct program_tensor *t = &p->tensors.data[consumer];
  for (int i = 0; i < n->sum->rank; i++) {
    const struct schedule_axis *a = shared_levels(n, i);
    if (!a) continue;
    c.levels[index_axis(p, load, i)] = *a;
    c.shared[index_axis(p, load, i)] = true;
  }
  for (int i = 0; i < t->rank + t->reductions; i++)
    if (!c.shared[i]) cover(n, t, i, i == t->rank - 1, &c.levels[i]);
  drop(n->s, nest_of(n->s, leaf_of(n->s, t->name)));
  n->s->nodes.data[n->leaf].leaf.layout.count = 0;
  add_stage(n, t, &c, false);
}

/* The outer loop of the blocked axis; -1. */
static int place_of(const struct schedule *s, int leaf, const struct default_tile *tile) {
  int level = s->nodes.data[leaf].leaf.axes.data[tile->block_axis].level[0];
  for (int i = leaf; i > 0; i = s->nodes.data[i].parent)
    if (s->nodes.data[i].kind == NODE_LOOP && s->nodes.data[i].loop.level[0] == level) return i;
  return -1;
}

static bool move(struct nest *n, int nest, bool across) {
  struct moved m = {0};
  if (!add_leaves(n, nest, &m) || !cover_all(n, &m, across)) return false;
  int first = n->s->nodes.data[n->place].first;
  if (first != n->s->nodes.data[n->place].last) return false;
  drop(n->s, nest);
  n->s->nodes.data[n->place].first = n->s->nodes.data[n->place].last = -1;
  for (int i = 0; i < m.count; i++)
    add_stage(n, &n->made->program->tensors.data[m.of[i].stage], &m.of[i].c,
              across && i == m.count - 1);
  attach(n->s, n->place, first);
  follow(n);
  return true;
}

bool sketch_buffer(struct default_made *made, const char *name, bool across,
                   const struct machine *machine) {
  struct nest n = {.made = made, .s = made->schedule, .machine = machine};
  n.sum = &made->program->tensors.data[made->stage];
  n.leaf = leaf_of(n.s, n.sum->name);
  int leaf = leaf_of(n.s, name);
  if (n.leaf < 0 || leaf < 0 || made->tile.block_axis < 0) return false;
  n.place = place_of(n.s, n.leaf, &made->tile);
  int nest = nest_of(n.s, leaf);
  if (n.place < 0 || nest == nest_of(n.s, n.place)) return false;
  if (across && made->tile.rows[made->tile.block_axis] == 1) return false;
  return move(&n, nest, across);
}
