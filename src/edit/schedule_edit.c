/* Edits of schedules: copy, change, tidy, check. See schedule_edit.h. */
#include "edit/schedule_edit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "edit/schedule_change.h"

static struct schedule_node *node_at(struct schedule *s, int node) {
  return &s->nodes.data[node];
}

static bool is_loop(const struct schedule *s, int node) {
  return node >= 0 && s->nodes.data[node].kind == NODE_LOOP;
}

static const char *level_name(const struct loop_tree *tree, int level) {
  return tree->schedule->levels.data[level].name;
}

/* ---- tidying ------------------------------------------------------------------------------- */

/* Whether a stage inside the node is indexed by the level. */
bool change_names(const struct schedule *s, int node, int level) {
  const struct schedule_node *n = &s->nodes.data[node];
  for (int i = 0; n->kind == NODE_LEAF && i < n->leaf.axes.count; i++)
    for (int j = 0; j < n->leaf.axes.data[i].count; j++)
      if (n->leaf.axes.data[i].level[j] == level) return true;
  for (int child = n->first; child >= 0; child = s->nodes.data[child].next)
    if (change_names(s, child, level)) return true;
  return false;
}

/* The level of `to` with the name of a level of `from`; added if it is new. */
static int copy_level(struct schedule *to, const struct schedule *from, int level) {
  const struct level *old = &from->levels.data[level];
  int at = schedule_find_level(to, old->name);
  if (at >= 0) return at;
  at = schedule_level(to, old->name);
  struct level *l = &to->levels.data[at];
  l->kind = old->kind;
  l->extent = old->extent;
  l->tail = old->tail;
  if (old->dyn) l->dyn = arena_strndup(&to->arena, old->dyn, strlen(old->dyn));
  for (int i = 0; i < old->choices.count; i++) VEC_PUSH(&l->choices, old->choices.data[i]);
  return at;
}

static void copy_axis(struct schedule *to, const struct schedule *from, int leaf,
                      const struct schedule_axis *old) {
  const char *name = old->axis ? old->axis : from->levels.data[old->level[0]].name;
  bool plain = old->count == 1 && strcmp(from->levels.data[old->level[0]].name, name) == 0;
  struct schedule_axis *axis = schedule_add_axis(to, leaf, plain ? NULL : name);
  for (int i = 0; i < old->count; i++)
    axis->level[axis->count++] = copy_level(to, from, old->level[i]);
}

static void copy_leaf(struct schedule *to, const struct schedule *from, int node, int parent) {
  const struct schedule_leaf *old = &from->nodes.data[node].leaf;
  int leaf = schedule_add_leaf(to, parent, old->stage);
  for (int i = 0; i < old->axes.count; i++) copy_axis(to, from, leaf, &old->axes.data[i]);
  struct schedule_leaf *l = &node_at(to, leaf)->leaf;
  l->reductions = old->reductions;
  l->scope = old->scope;
  for (int i = 0; i < old->layout.count; i++)
    VEC_PUSH(&l->layout, (const char *)arena_strndup(&to->arena, old->layout.data[i],
                                                     strlen(old->layout.data[i])));
}

/* Copies the members of a loop that index a stage inside. Returns the node to put the children
 * under. */
static int copy_loop(struct schedule *to, const struct schedule *from, int node, int parent) {
  const struct schedule_loop *old = &from->nodes.data[node].loop;
  struct schedule_loop loop = {.marks = old->marks, .prefetch = old->prefetch};
  for (int i = 0; i < old->count; i++)
    if (change_names(from, node, old->level[i]))
      loop.level[loop.count++] = copy_level(to, from, old->level[i]);
  if (!loop.count) return parent;
  if (loop.count == 1) loop.marks &= ~(unsigned)LOOP_FOLD;
  int at = schedule_add_loop(to, parent, loop.level[0], loop.marks);
  node_at(to, at)->loop = loop;
  return at;
}

static void copy_children(struct schedule *to, const struct schedule *from, int node, int parent) {
  for (int child = from->nodes.data[node].first; child >= 0; child = from->nodes.data[child].next)
    if (from->nodes.data[child].kind == NODE_LEAF)
      copy_leaf(to, from, child, parent);
    else
      copy_children(to, from, child, copy_loop(to, from, child, parent));
}

/* Returns the copy without loops that hold no stage and levels that have no loop; frees
 * `changed`. */
struct schedule *change_tidy(struct schedule *changed) {
  struct schedule *s = schedule_new(changed->name);
  copy_children(s, changed, 0, 0);
  schedule_free(changed);
  return s;
}

static canvas_status finish(canvas_context *ctx, const struct loop_tree *tree,
                            struct schedule *changed, struct loop_tree **out) {
  struct schedule *s = change_tidy(changed);
  struct loop_tree *bound;
  canvas_status status = loop_tree_bind(ctx, tree->program, s, &tree->machine, &bound);
  if (status != CANVAS_OK) {
    schedule_free(s);
    return status;
  }
  bound->made = s;
  *out = bound;
  return CANVAS_OK;
}

/* Frees the copy and passes the failure on. */
static canvas_status abandon(struct schedule *s, canvas_status status) {
  schedule_free(s);
  return status;
}

/* ---- split --------------------------------------------------------------------------------- */

/* Adds a level NAME_i, NAME_ii, ... with a name that is free; -1 if the name gets too long. */
static int inner_level(struct schedule *s, int level) {
  char name[SCHEDULE_NAME + 1];
  int length = snprintf(name, sizeof name, "%s_i", s->levels.data[level].name);
  while (length < SCHEDULE_NAME && schedule_find_level(s, name) >= 0) {
    name[length++] = 'i';
    name[length] = '\0';
  }
  return length > SCHEDULE_NAME || schedule_find_level(s, name) >= 0 ? -1 : schedule_level(s, name);
}

/* Inserts `inner` after `level`; false if the list is full. */
static bool insert_after(int *levels, int *count, int most, int level, int inner) {
  for (int i = 0; i < *count; i++) {
    if (levels[i] != level) continue;
    if (*count == most) return false;
    memmove(&levels[i + 2], &levels[i + 1], (size_t)(*count - i - 1) * sizeof *levels);
    levels[i + 1] = inner;
    ++*count;
    return true;
  }
  return true;
}

/* Splits the level in the axes of a leaf. An axis without a name keeps the name of its first
 * level. */
static bool split_axes(struct schedule *s, struct schedule_leaf *leaf, int level, int inner) {
  for (int i = 0; i < leaf->axes.count; i++) {
    struct schedule_axis *axis = &leaf->axes.data[i];
    if (!axis->axis) axis->axis = s->levels.data[axis->level[0]].name;
    if (!insert_after(axis->level, &axis->count, SCHEDULE_DEPTH, level, inner)) return false;
  }
  return true;
}

/* [y]  ->  [y][y_i], where y is the level and not the axis. */
static void split_layout(struct schedule *s, struct schedule_leaf *leaf, int level, int inner) {
  const char *name = s->levels.data[level].name;
  for (int i = 0; i < leaf->layout.count; i++) {
    if (strcmp(leaf->layout.data[i], name) != 0) continue;
    VEC_PUSH(&leaf->layout, NULL);
    memmove(&leaf->layout.data[i + 2], &leaf->layout.data[i + 1],
            (size_t)(leaf->layout.count - i - 2) * sizeof *leaf->layout.data);
    leaf->layout.data[i + 1] = s->levels.data[inner].name;
    return;
  }
}

static bool holds(const struct schedule_loop *loop, int level) {
  for (int i = 0; i < loop->count; i++)
    if (loop->level[i] == level) return true;
  return false;
}

/* Inserts a loop between a node and its children. */
static void insert_below(struct schedule *s, int node, int level, unsigned marks) {
  int at = schedule_add_loop(s, node, level, marks);
  struct schedule_node *outer = node_at(s, node), *inner = node_at(s, at);
  if (outer->first == at) return;
  inner->first = outer->first;
  for (int child = inner->first; child != at; child = node_at(s, child)->next) {
    node_at(s, child)->parent = at;
    inner->last = child;
  }
  node_at(s, inner->last)->next = -1;
  outer->first = outer->last = at;
}

static bool split_loop(struct schedule *s, int node, int level, int inner) {
  struct schedule_loop *loop = &node_at(s, node)->loop;
  if (!holds(loop, level)) return true;
  if (loop->count > 1) return insert_after(loop->level, &loop->count, GROUP_MOST, level, inner);
  unsigned marks = loop->marks & (LOOP_VEC | LOOP_UNROLL);
  loop->marks &= ~(unsigned)LOOP_VEC;
  insert_below(s, node, inner, marks);
  return true;
}

bool change_split(struct schedule *s, int level, int inner) {
  for (int i = 0, count = s->nodes.count; i < count; i++) {
    if (node_at(s, i)->kind == NODE_LOOP && !split_loop(s, i, level, inner)) return false;
    if (node_at(s, i)->kind != NODE_LEAF) continue;
    if (change_names(s, i, level)) split_layout(s, &node_at(s, i)->leaf, level, inner);
    if (!split_axes(s, &node_at(s, i)->leaf, level, inner)) return false;
  }
  return true;
}

canvas_status edit_split(canvas_context *ctx, const struct loop_tree *tree, int level,
                         int64_t inner, struct loop_tree **out) {
  int64_t extent = tree->extents[level];
  const char *name = level_name(tree, level);
  bool dyn = tree->schedule->levels.data[level].kind == EXTENT_DYN;
  if (dyn || inner < 2 || inner >= extent || extent % inner)
    return fail(ctx, CANVAS_BAD_INPUT, "loop '%s' has %lld steps and cannot be split by %lld", name,
                (long long)extent, (long long)inner);
  struct schedule *s = schedule_copy(tree->schedule);
  int added = inner_level(s, level);
  struct level *l = &s->levels.data[level];
  if (l->kind != EXTENT_OPEN) l->kind = EXTENT_INT;
  l->extent = extent / inner;
  if (added >= 0) {
    s->levels.data[added].kind = EXTENT_INT;
    s->levels.data[added].extent = inner;
  }
  if (added < 0 || !change_split(s, level, added))
    return abandon(s, fail(ctx, CANVAS_BAD_INPUT, "loop '%s' has no room for one more part", name));
  return finish(ctx, tree, s, out);
}

/* ---- merge --------------------------------------------------------------------------------- */

/* Removes `inner` from a list in which it follows `outer`; false if only one is there, or not
 * adjacent. */
static bool join(int *levels, int *count, int outer, int inner) {
  int at = -1, before = -1;
  for (int i = 0; i < *count; i++) {
    if (levels[i] == inner) at = i;
    if (levels[i] == outer) before = i;
  }
  if (at < 0 && before < 0) return true;
  if (at < 1 || before != at - 1) return false;
  memmove(&levels[at], &levels[at + 1], (size_t)(*count - at - 1) * sizeof *levels);
  --*count;
  return true;
}

static bool merge_leaf(struct schedule *s, struct schedule_leaf *leaf, int outer, int inner) {
  for (int i = 0; i < leaf->axes.count; i++) {
    struct schedule_axis *axis = &leaf->axes.data[i];
    if (!axis->axis) axis->axis = s->levels.data[axis->level[0]].name;
    if (!join(axis->level, &axis->count, outer, inner)) return false;
  }
  for (int i = 0; i < leaf->layout.count; i++) {
    if (strcmp(leaf->layout.data[i], s->levels.data[inner].name) != 0) continue;
    if (i == 0 || strcmp(leaf->layout.data[i - 1], s->levels.data[outer].name) != 0) return false;
    memmove(&leaf->layout.data[i], &leaf->layout.data[i + 1],
            (size_t)(--leaf->layout.count - i) * sizeof *leaf->layout.data);
  }
  return true;
}

/* Removes the only child of a node; the child's children move up. */
static void drop_child(struct schedule *s, int node) {
  int child = node_at(s, node)->first;
  node_at(s, node)->first = node_at(s, child)->first;
  node_at(s, node)->last = node_at(s, child)->last;
  for (int i = node_at(s, node)->first; i >= 0; i = node_at(s, i)->next)
    node_at(s, i)->parent = node;
  node_at(s, child)->parent = node_at(s, child)->first = -1;
  node_at(s, child)->loop.count = 0;
}

static bool merge_loop(struct schedule *s, int node, int outer, int inner) {
  struct schedule_node *n = node_at(s, node);
  if (!holds(&n->loop, outer)) return !holds(&n->loop, inner);
  if (holds(&n->loop, inner)) return join(n->loop.level, &n->loop.count, outer, inner);
  int child = n->first;
  if (n->loop.count > 1 || child != n->last || !is_loop(s, child)) return false;
  const struct schedule_loop *below = &node_at(s, child)->loop;
  if (below->count > 1 || below->level[0] != inner) return false;
  n->loop.marks |= below->marks;
  drop_child(s, node);
  return true;
}

/* Merges outer loops first. The walk follows the tree, since the array of nodes is in no fixed
 * order. */
static bool merge_nodes(struct schedule *s, int node, int outer, int inner) {
  if (is_loop(s, node) && !merge_loop(s, node, outer, inner)) return false;
  if (node_at(s, node)->kind == NODE_LEAF)
    return merge_leaf(s, &node_at(s, node)->leaf, outer, inner);
  for (int child = node_at(s, node)->first; child >= 0; child = node_at(s, child)->next)
    if (!merge_nodes(s, child, outer, inner)) return false;
  return true;
}

canvas_status edit_merge(canvas_context *ctx, const struct loop_tree *tree, int outer, int inner,
                         struct loop_tree **out) {
  int64_t extent = tree->extents[outer] * tree->extents[inner];
  struct schedule *s = schedule_copy(tree->schedule);
  struct level *l = &s->levels.data[outer], *other = &s->levels.data[inner];
  bool open = l->kind == EXTENT_OPEN || other->kind == EXTENT_OPEN;
  if (!extent || outer == inner || !merge_nodes(s, 0, outer, inner))
    return abandon(s, fail(ctx, CANVAS_BAD_INPUT, "loops '%s' and '%s' are not adjacent everywhere",
                           level_name(tree, outer), level_name(tree, inner)));
  l->kind = open ? EXTENT_OPEN : EXTENT_INT;
  l->extent = extent;
  if (l->tail == TAIL_NONE) l->tail = other->tail;
  return finish(ctx, tree, s, out);
}

/* ---- reorder ------------------------------------------------------------------------------- */

canvas_status edit_reorder(canvas_context *ctx, const struct loop_tree *tree, int node,
                           struct loop_tree **out) {
  const struct schedule_node *n = &tree->schedule->nodes.data[node];
  if (!is_loop(tree->schedule, node) || n->first != n->last || !is_loop(tree->schedule, n->first))
    return fail(ctx, CANVAS_BAD_INPUT, "reorder needs a loop whose only child is a loop");
  struct schedule *s = schedule_copy(tree->schedule);
  struct schedule_loop *x = &node_at(s, node)->loop, *y = &node_at(s, n->first)->loop, old = *x;
  *x = *y;
  *y = old;
  return finish(ctx, tree, s, out);
}

/* ---- groups -------------------------------------------------------------------------------- */

/* Appends the members of loop y to loop x; 0 if there are too many. */
static int join_members(struct schedule_loop *x, const struct schedule_loop *y) {
  if (x->count + y->count > GROUP_MOST) return 0;
  for (int i = 0; i < y->count; i++) x->level[x->count++] = y->level[i];
  return x->count;
}

canvas_status edit_group(canvas_context *ctx, const struct loop_tree *tree, int node,
                         unsigned marks, struct loop_tree **out) {
  const struct schedule_node *n = &tree->schedule->nodes.data[node];
  if (!is_loop(tree->schedule, node) || n->first != n->last || !is_loop(tree->schedule, n->first))
    return fail(ctx, CANVAS_BAD_INPUT, "group needs a loop whose only child is a loop");
  struct schedule *s = schedule_copy(tree->schedule);
  struct schedule_loop *loop = &node_at(s, node)->loop;
  if (!join_members(loop, &node_at(s, n->first)->loop))
    return abandon(s, fail(ctx, CANVAS_BAD_INPUT, "more than %d loops in a group", GROUP_MOST));
  loop->marks = marks;
  drop_child(s, node);
  return finish(ctx, tree, s, out);
}

canvas_status edit_ungroup(canvas_context *ctx, const struct loop_tree *tree, int node,
                           struct loop_tree **out) {
  if (!is_loop(tree->schedule, node) || tree->schedule->nodes.data[node].loop.count == 1)
    return fail(ctx, CANVAS_BAD_INPUT, "ungroup needs a group of loops");
  struct schedule *s = schedule_copy(tree->schedule);
  const struct schedule_loop group = node_at(s, node)->loop;
  node_at(s, node)->loop = (struct schedule_loop){.level = {group.level[0]}, .count = 1};
  for (int i = group.count - 1; i > 0; i--) insert_below(s, node, group.level[i], 0);
  return finish(ctx, tree, s, out);
}

/* ---- move ---------------------------------------------------------------------------------- */

static bool is_around(const struct schedule *s, int outer, int node) {
  while (node >= 0 && node != outer) node = s->nodes.data[node].parent;
  return node == outer;
}

/* The outermost loop that contains only this stage; the leaf itself if there is none. */
static int alone(const struct schedule *s, int node) {
  for (;;) {
    int parent = s->nodes.data[node].parent;
    if (parent <= 0 || s->nodes.data[parent].first != s->nodes.data[parent].last) return node;
    node = parent;
  }
}

void change_detach(struct schedule *s, int node) {
  struct schedule_node *n = node_at(s, node), *parent = node_at(s, n->parent);
  int before = -1;
  for (int i = parent->first; i != node; i = node_at(s, i)->next) before = i;
  if (before < 0)
    parent->first = n->next;
  else
    node_at(s, before)->next = n->next;
  if (parent->last == node) parent->last = before;
  n->parent = n->next = -1;
}

void change_attach(struct schedule *s, int node, int parent, int before) {
  struct schedule_node *n = node_at(s, node), *above = node_at(s, parent);
  int after = -1;
  for (int i = above->first; i >= 0 && i != before; i = node_at(s, i)->next) after = i;
  n->parent = parent;
  n->next = before;
  if (after < 0)
    above->first = node;
  else
    node_at(s, after)->next = node;
  if (before < 0) above->last = node;
}

static bool is_open(const struct schedule *s, int node, int level) {
  for (; node > 0; node = s->nodes.data[node].parent)
    if (holds(&s->nodes.data[node].loop, level)) return true;
  return false;
}

/* Adds a copy of the loop as the last child of `node`; with node -1, detached. */
int change_open_again(struct schedule *s, const struct schedule_loop *loop, int node) {
  int at = schedule_add_loop(s, 0, loop->level[0], loop->marks);
  node_at(s, at)->loop = *loop;
  change_detach(s, at);
  if (node >= 0) change_attach(s, at, node, -1);
  return at;
}

/* The new loops of a moved stage. */
struct nest {
  int top, node; /* the outermost and the innermost; -1: none yet */
};

/* Copies a loop of the stage's old path into its new nest: the members that index the stage and are
 * not around the new place. `keep`: with its marks. */
static void carry_loop(struct schedule *s, int leaf, int old, bool keep, int parent,
                       struct nest *nest) {
  const struct schedule_loop from = node_at(s, old)->loop;
  struct schedule_loop loop = {.marks = keep ? from.marks : 0,
                               .prefetch = keep ? from.prefetch : 0};
  for (int i = 0; i < from.count; i++) {
    if (is_open(s, parent, from.level[i]) || !change_names(s, leaf, from.level[i])) continue;
    loop.level[loop.count++] = from.level[i];
    if (keep) continue;
    nest->node = change_open_again(s, &loop, nest->node);
    if (nest->top < 0) nest->top = nest->node;
    loop.count = 0;
  }
  if (!loop.count) return;
  nest->node = change_open_again(s, &loop, nest->node);
  if (nest->top < 0) nest->top = nest->node;
}

/* Copies all loops of the old path, outer ones first. Inside `top` the stage was alone: those loops
 * keep their marks. */
static void carry_loops(struct schedule *s, int leaf, int old, int top, int parent,
                        struct nest *nest) {
  if (old <= 0) return;
  carry_loops(s, leaf, node_at(s, old)->parent, top, parent, nest);
  carry_loop(s, leaf, old, is_around(s, top, old), parent, nest);
}

canvas_status edit_move(canvas_context *ctx, const struct loop_tree *tree, int stage, int parent,
                        int before, struct loop_tree **out) {
  const struct schedule_node *nodes = tree->schedule->nodes.data;
  int leaf = tree->stages[stage].node, top = alone(tree->schedule, leaf);
  const char *name = nodes[leaf].leaf.stage;
  if (is_around(tree->schedule, top, parent) || before == top)
    return fail(ctx, CANVAS_BAD_INPUT, "stage '%s' cannot be moved to where it is", name);
  if (nodes[parent].kind == NODE_LEAF || (before >= 0 && nodes[before].parent != parent))
    return fail(ctx, CANVAS_BAD_INPUT, "there is no such place for stage '%s'", name);
  struct schedule *s = schedule_copy(tree->schedule);
  struct nest nest = {-1, -1};
  carry_loops(s, leaf, node_at(s, leaf)->parent, top, parent, &nest);
  change_detach(s, top);
  if (top != leaf) change_detach(s, leaf);
  if (nest.node >= 0) change_attach(s, leaf, nest.node, -1);
  change_attach(s, nest.top >= 0 ? nest.top : leaf, parent, before);
  return finish(ctx, tree, s, out);
}

/* ---- marks, tails, numbers, buffers -------------------------------------------------------- */

canvas_status edit_mark(canvas_context *ctx, const struct loop_tree *tree, int node, unsigned marks,
                        int prefetch, struct loop_tree **out) {
  if (!is_loop(tree->schedule, node)) return fail(ctx, CANVAS_BAD_INPUT, "only a loop has marks");
  struct schedule *s = schedule_copy(tree->schedule);
  node_at(s, node)->loop.marks = marks;
  node_at(s, node)->loop.prefetch = prefetch;
  return finish(ctx, tree, s, out);
}

canvas_status edit_tail(canvas_context *ctx, const struct loop_tree *tree, int level,
                        enum level_tail tail, struct loop_tree **out) {
  struct schedule *s = schedule_copy(tree->schedule);
  s->levels.data[level].tail = tail;
  return finish(ctx, tree, s, out);
}

canvas_status edit_extent(canvas_context *ctx, const struct loop_tree *tree, int level,
                          enum level_extent kind, int64_t extent, struct loop_tree **out) {
  const struct level *old = &tree->schedule->levels.data[level];
  if (old->kind == EXTENT_DYN || kind == EXTENT_DYN || kind == EXTENT_CHOICE ||
      (kind == EXTENT_INT && (extent < 1 || extent > PROGRAM_ELEMENTS)))
    return fail(ctx, CANVAS_BAD_INPUT, "loop '%s' cannot be given this extent", old->name);
  struct schedule *s = schedule_copy(tree->schedule);
  s->levels.data[level].kind = kind;
  s->levels.data[level].extent = extent;
  return finish(ctx, tree, s, out);
}

canvas_status edit_buffer(canvas_context *ctx, const struct loop_tree *tree, int stage, int count,
                          const char *const *layout, enum buffer_scope scope,
                          struct loop_tree **out) {
  struct schedule *s = schedule_copy(tree->schedule);
  struct schedule_leaf *leaf = &node_at(s, tree->stages[stage].node)->leaf;
  leaf->layout.count = 0;
  for (int i = 0; i < count; i++) VEC_PUSH(&leaf->layout, layout[i]);
  leaf->scope = scope;
  return finish(ctx, tree, s, out);
}
