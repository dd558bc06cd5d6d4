/* Schedules that follow an edit of their program. See schedule_follow.h.
 *
 * Some edits are tried twice: first with vector loops, tiles at their consumer and the loops of the
 * inlined stage; if that does not bind, without. */
#include "edit/schedule_follow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "edit/schedule_change.h"
#include "edit/compute_root.h"
#include "program/program_facts.h"
#include "rewrite/program_edit.h"
#include "rewrite/program_rebuild.h"

struct follower {
  const struct loop_tree *tree; /* of the program before the edit */
  struct change change;
  const struct program *edited;
  struct schedule *s; /* the copy that is changed */
  bool first_try;     /* try vector lanes (rfactor), tiles at their consumer (overlap), the loops of
                         the inlined stage (inline); the second try does without */
};

static struct schedule_node *node_at(const struct follower *f, int node) {
  return &f->s->nodes.data[node];
}

static const struct program_tensor *old_tensor(const struct follower *f) {
  return &f->change.from->tensors.data[f->change.tensor];
}

static const char *keep(struct follower *f, const char *name) {
  return arena_strndup(&f->s->arena, name, strlen(name));
}

/* ---- names ---------------------------------------------------------------------------------- */

/* Adds a level with a free name: AXIS, or STAGE_AXIS with as many `_` appended as it takes. */
static int fresh_level(struct follower *f, const char *stage, const char *axis) {
  char name[2 * SCHEDULE_NAME + 2];
  int length = snprintf(name, sizeof name, "%s", axis);
  if (schedule_find_level(f->s, name) >= 0)
    length = snprintf(name, sizeof name, "%s_%s", stage, axis);
  while (schedule_find_level(f->s, name) >= 0 && length < (int)sizeof name - 1) {
    name[length++] = '_';
    name[length] = '\0';
  }
  return schedule_level(f->s, name);
}

static void cover(struct follower *f, int leaf, const char *axis, int level) {
  bool plain = strcmp(f->s->levels.data[level].name, axis) == 0;
  struct schedule_axis *a = schedule_add_axis(f->s, leaf, plain ? NULL : axis);
  a->level[a->count++] = level;
}

/* ---- new stages
 * ------------------------------------------------------------------------------- */

static int root_of(const struct follower *f, int node) {
  while (node_at(f, node)->parent > 0) node = node_at(f, node)->parent;
  return node;
}

/* Adds the tensor in own loops at the root, before node `before`. */
static void add_plain(struct follower *f, int tensor, int before) {
  const struct program_tensor *t = &f->edited->tensors.data[tensor];
  int level[PROGRAM_AXES], node = 0, top = -1, axes = t->rank + t->reductions;
  for (int i = 0; i < axes; i++) {
    level[i] = fresh_level(f, t->name, t->axes[i].name);
    node = schedule_add_loop(f->s, node, level[i], 0);
    if (top < 0) top = node;
  }
  int leaf = schedule_add_leaf(f->s, node, t->name);
  for (int i = 0; i < axes; i++) cover(f, leaf, t->axes[i].name, level[i]);
  node_at(f, leaf)->leaf.reductions = t->reductions;
  if (top < 0) top = leaf;
  change_detach(f->s, top);
  change_attach(f->s, top, 0, before);
}

/* The first child of the root that contains a consumer of a tensor of the edited program. */
static int first_consumer(const struct follower *f, int tensor) {
  for (int child = node_at(f, 0)->first; child >= 0; child = node_at(f, child)->next)
    for (int i = 0; i < f->tree->count; i++) {
      const struct bound_stage *stage = &f->tree->stages[i];
      const char *name = node_at(f, stage->node)->leaf.stage;
      int consumer = program_find(f->edited, name);
      bool reads = consumer >= 0 && stage_loads(f->edited, consumer, tensor);
      if (reads && root_of(f, stage->node) == child) return child;
    }
  return -1;
}

/* ---- a stage that takes the place of another one
 * ------------------------------------------------ */

static int leaf_of(const struct follower *f) {
  return f->tree->stages[loop_tree_stage(f->tree, f->change.tensor)].node;
}

/* Copies the loops of the stage from step `start` on that do not reduce; returns the innermost. The
 * level `lanes` (-1: none) gets a loop just outside the vector loop, or innermost. */
static int open_own(struct follower *f, const struct bound_stage *stage, int start, int lanes,
                    int *top) {
  int node = -1;
  *top = -1;
  for (int i = start; i <= stage->steps; i++) {
    struct schedule_loop loop = {.count = 0};
    if (i < stage->steps && stage->path[i].axis >= 0 && stage_spatial(f->tree, stage, i)) {
      const struct schedule_loop *old =
          &f->tree->schedule->nodes.data[stage->path[i].node].loop; /* before the edit */
      loop.level[loop.count++] = stage->path[i].level;
      if (old->count == 1) loop.marks = old->marks & (LOOP_VEC | LOOP_UNROLL);
    }
    bool inner = i == stage->steps || loop.marks & LOOP_VEC;
    if (inner && lanes >= 0) {
      struct schedule_loop own = {.level = {lanes}, .count = 1};
      if (i == stage->steps && f->first_try) own.marks = LOOP_VEC;
      node = change_open_again(f->s, &own, node);
      if (*top < 0) *top = node;
      lanes = -1;
    }
    if (!loop.count) continue;
    node = change_open_again(f->s, &loop, node);
    if (*top < 0) *top = node;
  }
  return node;
}

/* Adds a leaf for the changed stage behind the new stage, which takes its old place. */
static void add_after(struct follower *f, int lanes) {
  const struct bound_stage *stage = &f->tree->stages[loop_tree_stage(f->tree, f->change.tensor)];
  const struct program_tensor *t = old_tensor(f);
  int first = stage->start >= 0 ? stage_step(stage, stage->start) : stage->steps, top;
  int after = stage->start >= 0 ? stage->start : stage->node;
  int parent = node_at(f, after)->parent, before = node_at(f, after)->next;
  int node = open_own(f, stage, first, lanes, &top);
  int leaf = schedule_add_leaf(f->s, 0, t->name);
  change_detach(f->s, leaf);
  if (node >= 0) change_attach(f->s, leaf, node, -1);
  change_attach(f->s, top >= 0 ? top : leaf, parent, before);
  for (int i = 0; i < t->rank; i++) {
    struct schedule_axis axis = node_at(f, stage->node)->leaf.axes.data[i];
    VEC_PUSH(&node_at(f, leaf)->leaf.axes, axis);
  }
  struct schedule_leaf *new = &node_at(f, leaf)->leaf, *old = &node_at(f, stage->node)->leaf;
  new->scope = old->scope;
  new->layout.count = 0;
  for (int i = 0; i < old->layout.count; i++) VEC_PUSH(&new->layout, old->layout.data[i]);
  old->scope = SCOPE_AUTO;
  old->layout.count = 0;
  old->stage = keep(f, f->change.name);
  if (lanes < 0) return;
  cover(f, leaf, f->edited->tensors.data[program_find(f->edited, t->name)].axes[t->rank].name,
        lanes);
  node_at(f, leaf)->leaf.reductions = 1;
}

static bool has_level(const struct schedule_loop *loop, int level, int *at) {
  for (*at = 0; *at < loop->count; ++*at)
    if (loop->level[*at] == level) return true;
  return false;
}

/* ---- rfactor: partial reductions ------------------------------------------------------------- */

/* Whether the innermost level of the split axis already has as many iterations as there are
 * lanes. */
static bool splits_already(const struct follower *f, const struct schedule_axis *axis) {
  return axis->count > 1 && f->tree->extents[axis->level[axis->count - 1]] == f->change.lanes;
}

/* Whether another stage inside the node is indexed by the level. */
static bool others_name(const struct follower *f, int node, int level) {
  for (int i = 0; i < f->tree->count; i++) {
    int leaf = f->tree->stages[i].node, at = leaf;
    while (at >= 0 && at != node) at = node_at(f, at)->parent;
    bool other = f->tree->stages[i].tensor != f->change.tensor;
    if (other && at == node && change_names(f->s, leaf, level)) return true;
  }
  return false;
}

/* The level of the split axis if no other stage uses it. Otherwise a new level takes its place in
 * this stage's loop, unless a stage inside that loop uses the old one. */
static int own_level(struct follower *f, int leaf) {
  const struct program_axis *k = &old_tensor(f)->axes[f->change.axis];
  int level = node_at(f, leaf)->leaf.axes.data[f->change.axis].level[0], node = leaf, at = 0;
  if (!others_name(f, 0, level)) return level;
  while (node_at(f, node)->kind != NODE_LOOP || !has_level(&node_at(f, node)->loop, level, &at))
    node = node_at(f, node)->parent;
  if (others_name(f, node, level)) return level;
  int own = fresh_level(f, f->change.name, k->name);
  const struct level *old = &f->s->levels.data[level];
  f->s->levels.data[own].kind = old->kind;
  f->s->levels.data[own].extent = old->extent;
  f->s->levels.data[own].tail = old->tail;
  node_at(f, node)->loop.level[at] = own;
  node_at(f, leaf)->leaf.axes.data[f->change.axis].level[0] = own;
  return own;
}

/* Splits level k into k, k_i:16 wherever it occurs. If 16 does not divide the extent, other axes
 * with that level get a mask. */
static int split_level(struct follower *f, int level, int64_t extent) {
  int64_t lanes = f->change.lanes;
  const char *name = f->edited->tensors.data[program_find(f->edited, f->change.name)]
                         .axes[old_tensor(f)->rank]
                         .name;
  int inner = fresh_level(f, f->change.name, name);
  struct level *outer = &f->s->levels.data[level], *l = &f->s->levels.data[inner];
  if (outer->kind != EXTENT_OPEN) outer->kind = EXTENT_INT;
  outer->extent = (extent - 1) / lanes + 1;
  l->kind = EXTENT_INT;
  l->extent = lanes;
  if (extent % lanes && outer->tail == TAIL_NONE && others_name(f, 0, level)) l->tail = TAIL_MASK;
  return change_split(f->s, level, inner) ? inner : -1;
}

/* Interchanges the lane loop inwards through perfectly nested loops, up to a vector loop. */
static void sink(struct follower *f, int leaf, int level) {
  int node = node_at(f, leaf)->parent;
  while (node > 0 &&
         !(node_at(f, node)->loop.count == 1 && node_at(f, node)->loop.level[0] == level))
    node = node_at(f, node)->parent;
  for (; node > 0; node = node_at(f, node)->first) {
    int child = node_at(f, node)->first;
    bool chain = child == node_at(f, node)->last && node_at(f, child)->kind == NODE_LOOP;
    bool vector = chain && node_at(f, child)->loop.marks & LOOP_VEC;
    if (!chain || vector) break;
    struct schedule_loop old = node_at(f, node)->loop;
    node_at(f, node)->loop = node_at(f, child)->loop;
    node_at(f, child)->loop = old;
  }
  if (node > 0) node_at(f, node)->loop.marks = f->first_try ? LOOP_VEC : 0;
}

/* Gives the stage the axis of lanes as its last own axis, and takes the lanes from the
 * reduction. */
static void change_axes(struct follower *f, int leaf, int lanes) {
  const struct program_tensor *t =
      &f->edited->tensors.data[program_find(f->edited, f->change.name)];
  struct schedule_leaf *l = &node_at(f, leaf)->leaf;
  struct schedule_axis *split = &l->axes.data[f->change.axis], own = {.count = 1};
  own.axis = keep(f, t->axes[t->rank - 1].name);
  own.level[0] = lanes;
  split->count--;
  split->axis = keep(f, t->axes[f->change.axis + 1].name);
  VEC_PUSH(&l->axes, own);
  for (int i = l->axes.count - 1; i >= t->rank; i--) l->axes.data[i] = l->axes.data[i - 1];
  l->axes.data[t->rank - 1] = own;
}

static canvas_status follow_rfactor(canvas_context *ctx, struct follower *f) {
  int leaf = leaf_of(f);
  const struct schedule_axis *axis = &node_at(f, leaf)->leaf.axes.data[f->change.axis];
  int lanes = axis->level[axis->count - 1];
  if (!splits_already(f, axis)) {
    if (axis->count > 1)
      return fail(ctx, CANVAS_BAD_INPUT,
                  "%d loops cover axis '%s' of '%s' and the innermost is not of %lld steps: merge "
                  "them, or give it that many",
                  axis->count, old_tensor(f)->axes[f->change.axis].name, old_tensor(f)->name,
                  (long long)f->change.lanes);
    int64_t extent = f->tree->extents[axis->level[0]];
    lanes = split_level(f, own_level(f, leaf), extent);
    if (lanes < 0)
      return fail(ctx, CANVAS_BAD_INPUT, "there is no room for one more loop of '%s'",
                  old_tensor(f)->name);
  }
  sink(f, leaf, lanes);
  add_after(f, lanes);
  change_axes(f, leaf, lanes);
  return CANVAS_OK;
}

/* ---- overlap: tiles with a halo -------------------------------------------------------------- */

/* The number of outer levels of the consumer's axis whose inner levels make one tile. If the axis
 * has a single level, a level of one tile is split off. 0 if the levels do not fit. */
static int tile_levels(struct follower *f, int leaf, int own) {
  const struct schedule_axis *axis = &node_at(f, leaf)->leaf.axes.data[own];
  int64_t inner = 1, tile = f->change.window.tile, extent = f->tree->extents[axis->level[0]];
  int level = axis->level[0];
  for (int i = axis->count - 1; i > 0; i--)
    if ((inner *= f->tree->extents[axis->level[i]]) == tile) return i;
  if (axis->count > 1 || tile >= extent || tile < 2) return 0;
  char name[PROGRAM_NAME + 8];
  snprintf(name, sizeof name, "%s_i", f->s->levels.data[level].name);
  int added = fresh_level(f, node_at(f, leaf)->leaf.stage, name);
  struct level *outer = &f->s->levels.data[level], *l = &f->s->levels.data[added];
  if (outer->kind != EXTENT_OPEN) outer->kind = EXTENT_INT;
  outer->extent = (extent - 1) / tile + 1;
  l->kind = EXTENT_INT;
  l->extent = tile;
  if (extent % tile && outer->tail == TAIL_NONE) l->tail = TAIL_MASK;
  return change_split(f->s, level, added) ? 1 : 0;
}

/* The innermost loop around the leaf over one of the axis's first `levels` levels. */
static int loop_around(const struct follower *f, int leaf, int own, int levels) {
  const struct schedule_axis *axis = &node_at(f, leaf)->leaf.axes.data[own];
  int at;
  for (int node = node_at(f, leaf)->parent; node > 0; node = node_at(f, node)->parent)
    for (int i = 0; i < levels; i++)
      if (has_level(&node_at(f, node)->loop, axis->level[i], &at)) return node;
  return 0;
}

/* Interchanges the loop outwards through perfectly nested loops, so that other loops do not
 * recompute tiles. The outermost loop stays parallel. */
static int rise(struct follower *f, int node) {
  for (int above; (above = node_at(f, node)->parent) > 0; node = above) {
    struct schedule_loop *x = &node_at(f, above)->loop, *y = &node_at(f, node)->loop, old = *x;
    if (node_at(f, above)->first != node_at(f, above)->last || x->count > 1 || y->count > 1) break;
    *x = *y;
    *y = old;
    x->marks |= old.marks & LOOP_PARA;
    y->marks &= ~(unsigned)LOOP_PARA;
  }
  return node;
}

/* Whether one vector loop covered the whole last axis of the stage. */
static bool has_vector(const struct follower *f) {
  int at = loop_tree_stage(f->tree, f->change.tensor), last = old_tensor(f)->rank - 1;
  if (at < 0 || last < 0 || last == f->change.window.axis) return false;
  const struct bound_stage *stage = &f->tree->stages[at];
  const struct step *step = stage->vec >= 0 ? &stage->path[stage_step(stage, stage->vec)] : NULL;
  return step && step->axis == last && step->extent == old_tensor(f)->axes[last].size;
}

/* Adds the stage of tiles in own loops inside the consumer's loop over tiles; with `levels` 0 all
 * tiles at the root. */
static void add_tile(struct follower *f, int consumer, int own, int levels) {
  int tensor = program_find(f->edited, f->change.name);
  const struct program_tensor *t = &f->edited->tensors.data[tensor];
  int parent = levels ? rise(f, loop_around(f, consumer, own, levels)) : 0, node = parent, top = -1;
  int level[PROGRAM_AXES], before = levels ? consumer : first_consumer(f, tensor);
  bool vector = levels && has_vector(f);
  while (levels && node_at(f, before)->parent != parent) before = node_at(f, before)->parent;
  for (int i = levels > 0; i < t->rank + t->reductions + vector; i++) {
    bool inner = i == t->rank + t->reductions; /* the vector loop, inside the reductions */
    int axis = inner ? t->rank - 1 : i;
    if (vector && i == t->rank - 1) continue;
    level[axis] = fresh_level(f, t->name, t->axes[axis].name);
    node = schedule_add_loop(f->s, node, level[axis], inner ? LOOP_VEC : 0);
    if (top < 0) top = node;
  }
  int leaf = schedule_add_leaf(f->s, node, t->name);
  if (top < 0) top = leaf;
  change_detach(f->s, top);
  change_attach(f->s, top, parent, before);
  for (int i = 0; i < t->rank + t->reductions; i++) {
    if (i || !levels) {
      cover(f, leaf, t->axes[i].name, level[i]);
      continue;
    }
    const struct schedule_axis outer = node_at(f, consumer)->leaf.axes.data[own];
    struct schedule_axis *axis = schedule_add_axis(f->s, leaf, t->axes[0].name);
    for (int j = 0; j < levels; j++) axis->level[axis->count++] = outer.level[j];
  }
  node_at(f, leaf)->leaf.reductions = t->reductions;
}

static canvas_status follow_overlap(canvas_context *ctx, struct follower *f) {
  int at = loop_tree_stage(f->tree, f->change.consumer), own = f->change.window.own;
  const struct program_tensor *t = old_tensor(f);
  for (int i = t->rank; i < t->rank + t->reductions; i++)
    if (t->axes[i].low >= 0)
      return fail(
          ctx, CANVAS_BAD_INPUT,
          "the reduction of '%s' has bounds that depend on data: place its tiles in the schedule",
          t->name);
  int consumer = f->tree->stages[at].node;
  int levels = f->first_try ? tile_levels(f, consumer, own) : 0;
  if (is_only_consumer(f->change.from, f->change.tensor, f->change.consumer))
    change_detach(f->s, leaf_of(f));
  add_tile(f, consumer, own, levels);
  return CANVAS_OK;
}

/* ---- inline: a copy that reduces in the place of the stage it copied
 * --------------------------- */

/* The only consumer of the tensor. */
static int only_consumer(const struct program *p, int tensor) {
  int consumer = tensor + 1;
  while (!stage_loads(p, consumer, tensor)) consumer++;
  return consumer;
}

/* The axis of the copied tensor that this axis of its copy indexes; -1. */
static int copied_axis(const struct program *p, int copy, int axis) {
  const struct px_node *load = &p->nodes.data[p->tensors.data[copy].body];
  for (int i = 0; i < p->tensors.data[load->tensor].rank; i++) {
    const struct px_node *index = &p->nodes.data[p->indices.data[load->first + i]];
    if (index->op == PX_AXIS && index->integer == axis) return i;
  }
  return -1;
}

/* Whether the axes of the copy and of the tensor correspond one to one (sizes may differ). */
static bool copies_axes(const struct program *p, int copy, int tensor) {
  int rank = p->tensors.data[copy].rank;
  for (int i = 0; i < rank; i++)
    if (copied_axis(p, copy, i) < 0) return false;
  return rank == p->tensors.data[tensor].rank;
}

static void name_axis(struct follower *f, struct schedule_axis *axis, const char *name) {
  bool plain = axis->count == 1 && !strcmp(f->s->levels.data[axis->level[0]].name, name);
  axis->axis = plain ? NULL : keep(f, name);
}

/* The copy takes the place and the loops of the inlined stage. */
static void take_loops(struct follower *f, int copy, int to) {
  const struct program_tensor *y = &f->change.from->tensors.data[copy];
  struct schedule_leaf *leaf = &node_at(f, leaf_of(f))->leaf, *old = &node_at(f, to)->leaf;
  struct schedule_axis axes[PROGRAM_AXES];
  for (int i = 0; i < y->rank; i++) {
    axes[i] = leaf->axes.data[copied_axis(f->change.from, copy, i)];
    name_axis(f, &axes[i], y->axes[i].name);
  }
  if (y->rank) memcpy(leaf->axes.data, axes, (size_t)y->rank * sizeof *axes);
  leaf->stage = old->stage;
  leaf->scope = old->scope;
  leaf->layout.count = 0;
  for (int i = 0; i < old->layout.count; i++) VEC_PUSH(&leaf->layout, old->layout.data[i]);
  change_detach(f->s, to);
}

/* The copy keeps its loops, which are no vector loops any more, and the reduction loops of the
 * inlined stage go inside. */
static void take_sum(struct follower *f, int to) {
  const struct bound_stage *stage = &f->tree->stages[loop_tree_stage(f->tree, f->change.tensor)];
  int from = leaf_of(f), node = node_at(f, to)->parent;
  for (int i = node; i > 0; i = node_at(f, i)->parent)
    node_at(f, i)->loop.marks &= ~(unsigned)LOOP_VEC;
  change_detach(f->s, to);
  for (int i = 0; i < stage->steps; i++)
    if (stage->path[i].axis >= 0 && !stage_spatial(f->tree, stage, i))
      node = schedule_add_loop(f->s, node, stage->path[i].level, 0);
  change_attach(f->s, to, node, -1);
  for (int i = old_tensor(f)->rank; i < node_at(f, from)->leaf.axes.count; i++) {
    struct schedule_axis axis = node_at(f, from)->leaf.axes.data[i];
    VEC_PUSH(&node_at(f, to)->leaf.axes, axis);
    node_at(f, to)->leaf.reductions++;
  }
  change_detach(f->s, from);
}

/* A masked vector loop may be longer than its axis. Without the vector mark its level gets the
 * extent that the axis needs. */
static void open_vectors(struct follower *f) {
  const struct bound_stage *stage = &f->tree->stages[loop_tree_stage(f->tree, f->change.tensor)];
  for (int i = 0; i < stage->steps; i++) {
    const struct schedule_loop *loop = &f->tree->schedule->nodes.data[stage->path[i].node].loop;
    struct level *level = &f->s->levels.data[stage->path[i].level];
    bool masked = level->kind == EXTENT_INT && level->tail == TAIL_MASK;
    if (masked && loop->marks & LOOP_VEC) level->kind = EXTENT_OPEN;
  }
}

static void follow_inline(struct follower *f) {
  if (!f->first_try) open_vectors(f);
  int copy = old_tensor(f)->reductions ? only_consumer(f->change.from, f->change.tensor) : -1;
  int stage = copy < 0 ? -1 : loop_tree_stage(f->tree, copy);
  if (stage < 0)
    change_detach(f->s, leaf_of(f));
  else if (f->first_try && copies_axes(f->change.from, copy, f->change.tensor))
    take_loops(f, copy, f->tree->stages[stage].node);
  else
    take_sum(f, f->tree->stages[stage].node);
}

/* ---- all edits
 * --------------------------------------------------------------------------------- */

static canvas_status change_schedule(canvas_context *ctx, struct follower *f) {
  switch (f->change.kind) {
    case CHANGE_RFACTOR: return follow_rfactor(ctx, f);
    case CHANGE_OVERLAP: return follow_overlap(ctx, f);
    case CHANGE_CACHE_WRITE: add_after(f, -1); return CANVAS_OK;
    case CHANGE_INLINE: follow_inline(f); return CANVAS_OK;
    case CHANGE_BORDER:
      if (!f->change.name) return CANVAS_OK;
      /* fall through */
    case CHANGE_CACHE_READ:
    case CHANGE_PACK: {
      int tensor = program_find(f->edited, f->change.name);
      add_plain(f, tensor, first_consumer(f, tensor));
      return CANVAS_OK;
    }
    case CHANGE_WINOGRAD:
      return fail(ctx, CANVAS_BAD_INPUT,
                  "the schedule of a convolution does not fit its transforms: use the default "
                  "schedule of the edited program");
    default: return CANVAS_OK;
  }
}

/* Whether the schedule contains the edited stage. Stages that no output needs are left out; their
 * copies are left out, too. */
static bool concerns(const struct follower *f) {
  if (f->change.kind == CHANGE_TYPE) return false;
  if (f->change.kind == CHANGE_OVERLAP) return loop_tree_stage(f->tree, f->change.consumer) >= 0;
  return old_tensor(f)->is_input || loop_tree_stage(f->tree, f->change.tensor) >= 0;
}

static canvas_status follow(canvas_context *ctx, struct follower *f, struct schedule **out) {
  struct loop_tree *bound;
  f->s = schedule_copy(f->tree->schedule);
  canvas_status status = concerns(f) ? change_schedule(ctx, f) : CANVAS_OK;
  f->s = change_tidy(f->s);
  if (status == CANVAS_OK) status = loop_tree_bind(ctx, f->edited, f->s, &f->tree->machine, &bound);
  if (status != CANVAS_OK) {
    schedule_free(f->s);
    return status;
  }
  loop_tree_free(bound);
  *out = f->s;
  return CANVAS_OK;
}

/* Tries with first_try, if the edit has two ways, then without; the last try reports its
 * failure. */
static canvas_status try_all(canvas_context *ctx, struct follower *f, struct schedule **out) {
  enum change_kind kind = f->change.kind;
  bool twice = kind == CHANGE_RFACTOR || kind == CHANGE_OVERLAP || kind == CHANGE_INLINE;
  for (f->first_try = twice; follow(ctx, f, out) != CANVAS_OK; f->first_try = false)
    if (!f->first_try) return CANVAS_BAD_INPUT;
  return CANVAS_OK;
}

static canvas_status follow_edited(canvas_context *ctx, struct follower *f, struct schedule **out) {
  bool copies = f->change.kind == CHANGE_CACHE_READ || f->change.kind == CHANGE_PACK;
  if (!copies || old_tensor(f)->is_input) return try_all(ctx, f, out);
  struct loop_tree *whole;
  TRY(schedule_compute_root(ctx, f->tree, f->change.tensor, &whole));
  f->tree = whole;
  canvas_status status = try_all(ctx, f, out);
  loop_tree_free(whole);
  return status;
}

/* Only edits of one tensor have a schedule that follows: its loops determine those of the new
 * stage. */
static canvas_status can_follow(canvas_context *ctx, const struct change *c) {
  int inlined = 0;
  for (int i = 0; i < c->from->tensors.count; i++) inlined += c->inlined[i];
  bool one = (c->kind < CHANGE_OUTLINE && c->group < 0) || c->kind == CHANGE_WINOGRAD;
  if (one && (c->kind != CHANGE_INLINE || inlined == 1)) return CANVAS_OK;
  return fail(
      ctx, CANVAS_BAD_INPUT,
      "no schedule follows the edit '%.60s': use the default schedule of the edited program",
      c->text ? c->text : "of all axes or conditions");
}

canvas_status schedule_follow(canvas_context *ctx, const struct loop_tree *tree, const char *edit,
                              size_t length, struct schedule **out) {
  struct follower f = {.tree = tree};
  struct program *edited = NULL;
  if (tree->open_holes)
    return fail(ctx, CANVAS_BAD_INPUT,
                "the schedule has %d holes without a number, give them with --set",
                tree->open_holes);
  canvas_status status = change_read(ctx, tree->program, edit, length, &f.change);
  if (status == CANVAS_OK) status = can_follow(ctx, &f.change);
  if (status == CANVAS_OK) status = program_edit(ctx, tree->program, edit, length, &edited);
  f.edited = edited;
  if (status == CANVAS_OK) status = follow_edited(ctx, &f, out);
  program_free(edited);
  program_free(f.change.to);
  change_close(&f.change);
  return status;
}
