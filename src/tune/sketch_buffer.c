/* What a tile of rows reads is computed for these rows only, just before, so that it stays in the first caches:
 * a matrix of image columns, or what is made of an image before a product.
 *
 *     y, k =>                                        y_oo =>
 *         @im2col = y, k                                 k, y_b:1, y_i:16 =>
 *     y_oo, xr, y_b:1, k, y_i:16:unroll, xi:vec =>           @im2col[k][y_b][y_i] = {y_oo, y_b, y_i}/y, k
 *         @P = {y_oo, y_b, y_i}/y, xr, xi // k           xr, y_b, k, y_i:unroll, xi:vec =>
 *     x, y =>                                                @P = {y_oo, y_b, y_i}/y, xr, xi // k
 *         @Y = y, x                                      y_b, y_i, x =>
 *                                                            @Y = {y_oo, y_b, y_i}/y, x
 *
 * A stage that only makes something of the sums follows into the same loop. Rows are the innermost axis of what is
 * kept, or the stage's own last axis is, in vectors: both are sketches.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tune/sketch.h"

struct nest {
  const struct default_made *made;
  struct schedule *s;
  const struct machine *machine;
  const struct program_tensor *sum;
  int leaf;  /* of the sum */
  int place; /* the loop over blocks of rows: what stands in it is computed for one of them */
};

/* ---- nodes ---- */

static int leaf_of(const struct schedule *s, const char *stage) {
  for (int i = 0; i < s->nodes.count; i++)
    if (s->nodes.data[i].kind == NODE_LEAF && s->nodes.data[i].parent >= 0 &&
        !strcmp(s->nodes.data[i].leaf.stage, stage))
      return i;
  return -1;
}

/* The nest at the root that holds nothing but this leaf; -1. */
static int nest_of(const struct schedule *s, int leaf) {
  int node = leaf;
  while (s->nodes.data[node].parent > 0) {
    node = s->nodes.data[node].parent;
    if (s->nodes.data[node].first != s->nodes.data[node].last) return -1;
  }
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

/* A nest is taken away, with its nodes. */
static void drop(struct schedule *s, int nest) {
  detach(s, nest);
  for (int i = nest; i >= 0;) {
    int below = s->nodes.data[i].first;
    s->nodes.data[i].parent = s->nodes.data[i].first = s->nodes.data[i].last = -1;
    s->nodes.data[i].next = -1;
    i = below;
  }
}

/* A node comes last among those of `parent` again. */
static void attach(struct schedule *s, int parent, int node) {
  struct schedule_node *above = &s->nodes.data[parent];
  s->nodes.data[node].next = -1;
  if (above->last >= 0)
    s->nodes.data[above->last].next = node;
  else
    above->first = node;
  above->last = node;
}

/* ---- which stages, and which axes they share with the sum ---- */

/* The only load of `tensor` below; -1 there is none, -2 there are several. */
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

/* The axis that index `at` of a load is; -1: it is something else. */
static int plain_axis(const struct program *p, int load, int at) {
  const struct px_node *n = &p->nodes.data[p->indices.data[p->nodes.data[load].first + at]];
  return n->op == PX_AXIS ? (int)n->integer : -1;
}

/* The only stage that reads this one, and its load; -1. */
static int only_reader(const struct program *p, int stage, int *load) {
  int reader = -1;
  for (int i = stage + 1; i < p->tensors.count; i++) {
    int found = p->tensors.data[i].is_input ? -1 : only_load(p, p->tensors.data[i].body, stage);
    if (found == -1) continue;
    if (found == -2 || reader >= 0) return -1;
    reader = i;
    *load = found;
  }
  return reader;
}

static bool is_output(const struct program *p, int stage) {
  for (int i = 0; i < p->outputs.count; i++)
    if (p->outputs.data[i] == stage) return true;
  return false;
}

/* The levels of the sum's axis that stand around what it reads: its loops are outside the blocks, or
 * it is the axis of the blocks. */
static const struct schedule_axis *shared_levels(const struct nest *n, int axis) {
  const struct schedule_axis *a = &n->s->nodes.data[n->leaf].leaf.axes.data[axis];
  for (int i = n->place; i > 0; i = n->s->nodes.data[i].parent)
    if (n->s->nodes.data[i].loop.level[0] == a->level[0]) return a;
  return NULL;
}

/* ---- the nest of one of them ---- */

static int fresh_level(struct nest *n, const char *stage, const char *axis, const char *ending) {
  char name[SCHEDULE_NAME];
  snprintf(name, sizeof name, "%.100s_%.100s%s", stage, axis, ending);
  while (schedule_find_level(n->s, name) >= 0 && strlen(name) + 1 < sizeof name) strcat(name, "_");
  return schedule_level(n->s, name);
}

struct covering {
  struct schedule_axis levels[PROGRAM_AXES]; /* by axis */
  bool shared[PROGRAM_AXES];
};

/* An axis of its own: a loop, or the last one in vectors. */
static void cover(struct nest *n, const struct program_tensor *t, int axis, bool vectors,
                  struct schedule_axis *out) {
  int64_t size = t->axes[axis].size;
  int lanes = n->machine->vector_bytes / (t->dtype == PROGRAM_F64 ? 8 : 4);
  *out = (struct schedule_axis){.count = 1};
  if (!vectors || size % lanes) {
    out->level[0] = fresh_level(n, t->name, t->axes[axis].name, "");
    return;
  }
  out->level[0] = fresh_level(n, t->name, t->axes[axis].name, "_o");
  out->level[1] = fresh_level(n, t->name, t->axes[axis].name, "_v");
  out->count = 2;
  n->s->levels.data[out->level[1]].kind = EXTENT_INT;
  n->s->levels.data[out->level[1]].extent = lanes;
}

static bool is_outside(const struct nest *n, int level) {
  for (int i = n->place; i > 0; i = n->s->nodes.data[i].parent)
    if (n->s->nodes.data[i].loop.level[0] == level) return true;
  return false;
}

/* Loops for the parts of an axis that stand inside the place; of one with vectors all but those. */
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

/* The stage in the place, the rows' loops innermost (`across`), or outside its own. */
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

/* ---- what is read, and what follows ---- */

static bool cover_read(struct nest *n, int stage, bool across, struct covering *c) {
  const struct program *p = n->made->program;
  const struct program_tensor *t = &p->tensors.data[stage];
  int load, shared = 0;
  if (t->is_input || t->reductions || is_output(p, stage)) return false;
  if (only_reader(p, stage, &load) != n->made->stage) return false;
  for (int i = 0; i < t->rank; i++) {
    int axis = plain_axis(p, load, i);
    const struct schedule_axis *a =
        axis >= 0 && axis < n->sum->rank ? shared_levels(n, axis) : NULL;
    c->shared[i] = a != NULL;
    shared += c->shared[i];
    if (a)
      c->levels[i] = *a;
    else
      cover(n, t, i, !across && i == t->rank - 1, &c->levels[i]);
  }
  return shared > 0;
}

/* The stage that reads the sums, if it stands alone and each axis around the place is one of its own. */
static int follower(const struct nest *n, int *load) {
  const struct program *p = n->made->program;
  int reader = is_output(p, n->made->stage) ? -1 : only_reader(p, n->made->stage, load);
  int leaf = reader < 0 ? -1 : leaf_of(n->s, p->tensors.data[reader].name);
  if (leaf < 0 || nest_of(n->s, leaf) < 0) return -1;
  for (int i = 0; i < n->sum->rank; i++) {
    int axis = plain_axis(p, *load, i);
    if (shared_levels(n, i) && (axis < 0 || axis >= p->tensors.data[reader].rank)) return -1;
  }
  return reader;
}

static void follow(struct nest *n) {
  const struct program *p = n->made->program;
  struct covering c = {0};
  int load, reader = follower(n, &load);
  if (reader < 0) return;
  const struct program_tensor *t = &p->tensors.data[reader];
  for (int i = 0; i < n->sum->rank; i++) {
    const struct schedule_axis *a = shared_levels(n, i);
    if (!a) continue;
    c.levels[plain_axis(p, load, i)] = *a;
    c.shared[plain_axis(p, load, i)] = true;
  }
  for (int i = 0; i < t->rank + t->reductions; i++)
    if (!c.shared[i]) cover(n, t, i, i == t->rank - 1, &c.levels[i]);
  drop(n->s, nest_of(n->s, leaf_of(n->s, t->name)));
  n->s->nodes.data[n->leaf].leaf.layout.count = 0;
  add_stage(n, t, &c, false);
}

/* The loop of the first level of the blocked axis. */
static int place_of(const struct schedule *s, int leaf, const struct default_tile *tile) {
  int level = s->nodes.data[leaf].leaf.axes.data[tile->blocked].level[0];
  for (int i = leaf; i > 0; i = s->nodes.data[i].parent)
    if (s->nodes.data[i].kind == NODE_LOOP && s->nodes.data[i].loop.level[0] == level) return i;
  return -1;
}

bool sketch_buffer(struct default_made *made, const char *name, bool across,
                   const struct machine *machine) {
  struct nest n = {.made = made, .s = made->schedule, .machine = machine};
  struct covering c = {0};
  int stage = program_find(made->program, name);
  n.sum = &made->program->tensors.data[made->stage];
  n.leaf = leaf_of(n.s, n.sum->name);
  if (n.leaf < 0 || made->tile.blocked < 0 || stage < 0) return false;
  n.place = place_of(n.s, n.leaf, &made->tile);
  int leaf = leaf_of(n.s, name), nest = leaf < 0 ? -1 : nest_of(n.s, leaf);
  if (n.place < 0 || nest < 0 || !cover_read(&n, stage, across, &c)) return false;
  int first = n.s->nodes.data[n.place].first;
  if (first != n.s->nodes.data[n.place].last) return false;
  drop(n.s, nest);
  n.s->nodes.data[n.place].first = n.s->nodes.data[n.place].last = -1;
  add_stage(&n, &made->program->tensors.data[stage], &c, across);
  attach(n.s, n.place, first);
  follow(&n);
  return true;
}
