/* Functions that build schedules: levels, nodes, copies. See schedule.h.
 *
 * A hash table with open addressing finds levels by name; it is at most half full. */
#include "schedule/schedule.h"

#include <stdlib.h>
#include <string.h>

static const char *keep(struct schedule *s, const char *text) {
  return arena_strndup(&s->arena, text, strlen(text));
}

/* ---- levels -------------------------------------------------------------------------------- */

static uint32_t hash(const char *name) { /* FNV-1a */
  uint32_t h = 2166136261u;
  for (; *name; name++) h = (h ^ (unsigned char)*name) * 16777619u;
  return h;
}

/* The slot of the level with this name, or the free slot for it. */
static int *find_slot(const struct schedule *s, const char *name) {
  uint32_t mask = (uint32_t)s->slot_count - 1, at = hash(name) & mask;
  while (s->slots[at] && strcmp(s->levels.data[s->slots[at] - 1].name, name) != 0)
    at = (at + 1) & mask;
  return &s->slots[at];
}

static void grow_slots(struct schedule *s) {
  mem_free(s->slots);
  s->slot_count = s->slot_count ? 2 * s->slot_count : 32;
  s->slots = mem_alloc((size_t)s->slot_count * sizeof *s->slots);
  for (int i = 0; i < s->levels.count; i++) *find_slot(s, s->levels.data[i].name) = i + 1;
}

int schedule_find_level(const struct schedule *s, const char *name) {
  return s->slot_count ? *find_slot(s, name) - 1 : -1;
}

int schedule_level(struct schedule *s, const char *name) {
  if (2 * (s->levels.count + 1) > s->slot_count) grow_slots(s);
  int *slot = find_slot(s, name);
  if (!*slot) {
    struct level level = {.name = keep(s, name)};
    VEC_PUSH(&s->levels, level);
    *slot = s->levels.count;
  }
  return *slot - 1;
}

/* ---- nodes --------------------------------------------------------------------------------- */

static int add_node(struct schedule *s, int parent, enum node_kind kind) {
  struct schedule_node node = {.kind = kind, .parent = parent, .first = -1, .last = -1, .next = -1};
  int at = s->nodes.count;
  VEC_PUSH(&s->nodes, node);
  if (parent < 0) return at;
  struct schedule_node *above = &s->nodes.data[parent];
  if (above->last >= 0)
    s->nodes.data[above->last].next = at;
  else
    above->first = at;
  above->last = at;
  return at;
}

int schedule_add_loop(struct schedule *s, int parent, int level, unsigned marks) {
  int at = add_node(s, parent, NODE_LOOP);
  s->nodes.data[at].loop = (struct schedule_loop){.level = {level}, .count = 1, .marks = marks};
  return at;
}

int schedule_add_leaf(struct schedule *s, int parent, const char *stage) {
  int at = add_node(s, parent, NODE_LEAF);
  s->nodes.data[at].leaf.stage = keep(s, stage);
  return at;
}

struct schedule_axis *schedule_add_axis(struct schedule *s, int leaf, const char *axis) {
  struct schedule_leaf *l = &s->nodes.data[leaf].leaf;
  struct schedule_axis added = {.axis = axis ? keep(s, axis) : NULL};
  VEC_PUSH(&l->axes, added);
  return &l->axes.data[l->axes.count - 1];
}

/* ---- the whole ----------------------------------------------------------------------------- */

struct schedule *schedule_new(const char *name) {
  struct schedule *s = mem_alloc(sizeof *s);
  s->name = keep(s, name);
  add_node(s, -1, NODE_ROOT);
  return s;
}

void schedule_free(struct schedule *s) {
  if (!s) return;
  for (int i = 0; i < s->levels.count; i++) mem_free(s->levels.data[i].choices.data);
  for (int i = 0; i < s->nodes.count; i++) {
    mem_free(s->nodes.data[i].leaf.axes.data);
    mem_free(s->nodes.data[i].leaf.layout.data);
  }
  mem_free(s->levels.data);
  mem_free(s->nodes.data);
  mem_free(s->slots);
  arena_free(&s->arena);
  mem_free(s);
}

static void copy_level(struct schedule *to, const struct level *from) {
  int at = schedule_level(to, from->name);
  struct level *level = &to->levels.data[at];
  const char *name = level->name;
  *level = *from;
  level->name = name;
  level->dyn = from->dyn ? keep(to, from->dyn) : NULL;
  memset(&level->choices, 0, sizeof level->choices);
  for (int i = 0; i < from->choices.count; i++) VEC_PUSH(&level->choices, from->choices.data[i]);
}

static void copy_leaf(struct schedule *to, struct schedule_leaf *leaf) {
  const struct schedule_leaf from = *leaf;
  leaf->stage = keep(to, from.stage);
  memset(&leaf->axes, 0, sizeof leaf->axes);
  memset(&leaf->layout, 0, sizeof leaf->layout);
  for (int i = 0; i < from.axes.count; i++) {
    struct schedule_axis axis = from.axes.data[i];
    if (axis.axis) axis.axis = keep(to, axis.axis);
    VEC_PUSH(&leaf->axes, axis);
  }
  for (int i = 0; i < from.layout.count; i++)
    VEC_PUSH(&leaf->layout, keep(to, from.layout.data[i]));
}

struct schedule *schedule_copy(const struct schedule *s) {
  struct schedule *copy = schedule_new(s->name);
  for (int i = 0; i < s->levels.count; i++) copy_level(copy, &s->levels.data[i]);
  copy->nodes.count = 0;
  for (int i = 0; i < s->nodes.count; i++) {
    VEC_PUSH(&copy->nodes, s->nodes.data[i]);
    if (s->nodes.data[i].kind == NODE_LEAF) copy_leaf(copy, &copy->nodes.data[i].leaf);
  }
  return copy;
}
