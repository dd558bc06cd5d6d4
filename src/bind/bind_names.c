/* Names: the leaves in the order of the text, the stage that each computes, its axes, its loads.
 *
 * Guarantees: each axis of a stage has levels, own axes before the // and reductions after it;
 * every output is in the tree, and every stage that a stage in the tree loads.
 */
#include <string.h>

#include "bind/bind.h"

/* The nodes in the order of the text. */

static void note_levels(struct binder *b, const struct schedule_loop *loop) {
  for (int i = 0; i < loop->count; i++) b->looped[loop->level[i]] = true;
}

static canvas_status add_stage(struct binder *b, int node) {
  const char *name = b->s->nodes.data[node].leaf.stage;
  int tensor = program_find(b->p, name);
  struct place at = node_place(b, node);
  if (tensor < 0)
    return reject(b, at, "unknown stage '%.64s', the program has none of that name", name);
  if (b->p->tensors.data[tensor].is_input)
    return reject(b, at, "'%.64s' is an input, a schedule computes stages only", name);
  b->stage_of[tensor] = b->tree->count;
  b->tree->stages[b->tree->count++] =
      (struct bound_stage){.node = node, .tensor = tensor, .start = -1, .recomputed = 1};
  return CANVAS_OK;
}

/* The next node in pre-order; -1 at the end. */
static int next_node(const struct schedule *s, int node) {
  if (s->nodes.data[node].first >= 0) return s->nodes.data[node].first;
  while (node > 0 && s->nodes.data[node].next < 0) node = s->nodes.data[node].parent;
  return node > 0 ? s->nodes.data[node].next : -1;
}

static canvas_status walk_nodes(struct binder *b) {
  for (int node = next_node(b->s, 0); node >= 0; node = next_node(b->s, node)) {
    const struct schedule_node *n = &b->s->nodes.data[node];
    b->depth[node] = b->depth[n->parent] + 1;
    if (n->kind == NODE_LOOP)
      note_levels(b, &n->loop);
    else
      TRY(add_stage(b, node));
  }
  return CANVAS_OK;
}

/* The axes of a leaf. */

static int find_axis(const struct program_tensor *t, const char *name) {
  for (int i = 0; i < t->rank + t->reductions; i++)
    if (strcmp(t->axes[i].name, name) == 0) return i;
  return -1;
}

static canvas_status add_split(struct binder *b, int stage, int i) {
  const struct bound_stage *s = &b->tree->stages[stage];
  const struct schedule_leaf *leaf = &b->s->nodes.data[s->node].leaf;
  const struct program_tensor *t = stage_tensor(b, s);
  struct axis_split c = {.stage = stage, .text = &leaf->axes.data[i]};
  const char *name = c.text->axis ? c.text->axis : level_name(b, c.text->level[0]);
  c.axis = find_axis(t, name);
  struct place at = split_place(b, &c);
  if (c.axis < 0) return reject(b, at, "stage '%s' has no axis '%.64s'", t->name, name);
  bool reduces = i >= leaf->axes.count - leaf->reductions;
  if (reduces && c.axis < t->rank)
    return reject(b, at, "axis '%s' is no reduction of '%s', it stands before the //", name,
                  t->name);
  if (!reduces && c.axis >= t->rank)
    return reject(b, at, "axis '%s' is a reduction of '%s', it stands after the //", name, t->name);
  c.size = t->axes[c.axis].size;
  VEC_PUSH(&b->splits, c);
  return CANVAS_OK;
}

static canvas_status bind_axes(struct binder *b, int stage) {
  const struct bound_stage *s = &b->tree->stages[stage];
  const struct program_tensor *t = stage_tensor(b, s);
  bool covered[PROGRAM_AXES] = {false};
  b->first_split[stage] = b->splits.count;
  for (int i = 0; i < b->s->nodes.data[s->node].leaf.axes.count; i++) TRY(add_split(b, stage, i));
  for (int i = b->first_split[stage]; i < b->splits.count; i++)
    covered[b->splits.data[i].axis] = true;
  for (int i = 0; i < t->rank + t->reductions; i++)
    if (!covered[i])
      return reject(b, stage_place(b, s), "axis '%s' of '%s' is covered by no loop",
                    t->axes[i].name, t->name);
  return CANVAS_OK;
}

/* Loads. */

static canvas_status add_read(struct binder *b, int consumer, int load) {
  int tensor = b->p->nodes.data[load].tensor, producer = b->stage_of[tensor];
  const struct bound_stage *s = &b->tree->stages[consumer];
  if (b->p->tensors.data[tensor].is_input) return CANVAS_OK;
  if (producer < 0)
    return reject(b, stage_place(b, s),
                  "stage '%s' reads '%s', which the schedule does not compute", stage_name(b, s),
                  b->p->tensors.data[tensor].name);
  VEC_PUSH(&b->reads, ((struct read){consumer, producer, load}));
  return CANVAS_OK;
}

static canvas_status find_reads(struct binder *b, int consumer, int expr) {
  const struct px_node *n = &b->p->nodes.data[expr];
  for (int i = 0; i < 3; i++)
    if (n->arg[i] >= 0) TRY(find_reads(b, consumer, n->arg[i]));
  if (n->op != PX_LOAD) return CANVAS_OK;
  for (int i = 0; i < b->p->tensors.data[n->tensor].rank; i++)
    TRY(find_reads(b, consumer, b->p->indices.data[n->first + i]));
  return add_read(b, consumer, expr);
}

static canvas_status find_outputs(struct binder *b) {
  for (int i = 0; i < b->p->outputs.count; i++) {
    int tensor = b->p->outputs.data[i];
    if (b->stage_of[tensor] < 0)
      return fail(b->ctx, CANVAS_BAD_INPUT, "the schedule does not compute '%s', an output",
                  b->p->tensors.data[tensor].name);
    b->tree->stages[b->stage_of[tensor]].is_output = true;
  }
  return CANVAS_OK;
}

static void make_room(struct binder *b) {
  int leaves = 0;
  for (int i = 0; i < b->s->nodes.count; i++) leaves += b->s->nodes.data[i].kind == NODE_LEAF;
  b->tree->stages = mem_alloc(((size_t)leaves + 1) * sizeof *b->tree->stages);
  b->first_split = mem_alloc(((size_t)leaves + 1) * sizeof *b->first_split);
  b->depth = mem_alloc((size_t)b->s->nodes.count * sizeof *b->depth);
  b->looped = mem_alloc((size_t)b->s->levels.count + 1);
  b->stage_of = mem_alloc(((size_t)b->p->tensors.count + 1) * sizeof *b->stage_of);
  for (int i = 0; i < b->p->tensors.count; i++) b->stage_of[i] = -1;
}

canvas_status bind_names(struct binder *b) {
  make_room(b);
  TRY(walk_nodes(b));
  for (int i = 0; i < b->tree->count; i++) TRY(bind_axes(b, i));
  b->first_split[b->tree->count] = b->splits.count;
  for (int i = 0; i < b->tree->count; i++)
    TRY(find_reads(b, i, b->p->tensors.data[b->tree->stages[i].tensor].body));
  return find_outputs(b);
}
