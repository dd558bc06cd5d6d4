/* Extents: those given in the text, those inferred from the size of an axis, and whether the levels
 * of each axis multiply to its size.
 *
 * An extent that is 0 afterwards is a hole, or follows from holes.
 */
#include <stdlib.h>

#include "base/saturating.h"
#include "bind/bind.h"

static const struct level *level_of(const struct binder *b, const struct axis_split *c, int part) {
  return &b->s->levels.data[c->text->level[part]];
}

static int64_t *extent_of(const struct binder *b, const struct axis_split *c, int part) {
  return &b->tree->extents[c->text->level[part]];
}

static const char *axis_name(const struct binder *b, const struct axis_split *c) {
  return stage_tensor(b, &b->tree->stages[c->stage])->axes[c->axis].name;
}

static const char *split_stage(const struct binder *b, const struct axis_split *c) {
  return stage_name(b, &b->tree->stages[c->stage]);
}

/* The product of the extents of all levels but one (-1: of all); 0 if one of them is not known
 * yet. */
static int64_t product(const struct binder *b, const struct axis_split *c, int except) {
  int64_t all = 1;
  for (int i = 0; i < c->text->count; i++)
    if (i != except) all = saturating_mul(all, *extent_of(b, c, i));
  return all;
}

static canvas_status find_tail(const struct binder *b, const struct axis_split *c,
                               enum level_tail *how) {
  *how = TAIL_NONE;
  for (int i = 0; i < c->text->count; i++) {
    enum level_tail tail = level_of(b, c, i)->tail;
    if (tail != TAIL_NONE && *how != TAIL_NONE && tail != *how)
      return reject(b, split_place(b, c), "axis '%s' of '%s' has both a mask and a peel",
                    axis_name(b, c), split_stage(b, c));
    if (tail != TAIL_NONE) *how = tail;
  }
  return CANVAS_OK;
}

/* Extents that the text gives. */

static void given_extents(struct binder *b) {
  for (int i = 0; i < b->s->levels.count; i++) {
    const struct level *l = &b->s->levels.data[i];
    if (l->kind == EXTENT_INT && b->looped[i]) b->tree->extents[i] = l->extent;
  }
  for (int i = 0; i < b->splits.count; i++) {
    const struct axis_split *c = &b->splits.data[i];
    if (level_of(b, c, 0)->kind == EXTENT_DYN) *extent_of(b, c, 0) = c->size;
  }
}

/* Inferred extents. */

static int only_unknown(const struct binder *b, const struct axis_split *c) {
  int unknown = -1;
  for (int i = 0; i < c->text->count; i++) {
    if (*extent_of(b, c, i)) continue;
    if (unknown >= 0) return -1;
    unknown = i;
  }
  return unknown;
}

static canvas_status infer(struct binder *b, const struct axis_split *c, bool *changed) {
  int part = only_unknown(b, c);
  if (part < 0 || level_of(b, c, part)->kind != EXTENT_OPEN) return CANVAS_OK;
  int64_t rest = product(b, c, part);
  enum level_tail how;
  TRY(find_tail(b, c, &how));
  if (how == TAIL_NONE && c->size % rest)
    return reject(b, split_place(b, c),
                  "axis '%s' of '%s' has %lld, which %lld does not divide: loop '%s' has no extent "
                  "(':mask' and ':peel' allow a remainder)",
                  axis_name(b, c), split_stage(b, c), (long long)c->size, (long long)rest,
                  level_of(b, c, part)->name);
  *extent_of(b, c, part) = (c->size - 1) / rest + 1;
  *changed = true;
  return CANVAS_OK;
}

static canvas_status inferred_extents(struct binder *b) {
  for (bool changed = true; changed;) {
    changed = false;
    for (int i = 0; i < b->splits.count; i++) TRY(infer(b, &b->splits.data[i], &changed));
  }
  return CANVAS_OK;
}

/* Checks of the extents. */

/* Whether a loop over the level is a vector loop whose last lanes may be masked. */
static bool has_masked_lanes(const struct binder *b, int level) {
  if (b->s->levels.data[level].tail != TAIL_MASK) return false;
  for (int i = 1; i < b->s->nodes.count; i++) {
    const struct schedule_node *n = &b->s->nodes.data[i];
    for (int j = 0; n->parent >= 0 && n->kind == NODE_LOOP && j < n->loop.count; j++)
      if (n->loop.level[j] == level && n->loop.marks & LOOP_VEC) return true;
  }
  return false;
}

/* Rejects an open level whose extent another axis has determined differently. */
static canvas_status check_two_extents(const struct binder *b, const struct axis_split *c) {
  for (int i = 0; i < c->text->count; i++) {
    int64_t rest = product(b, c, i);
    if (level_of(b, c, i)->kind != EXTENT_OPEN || c->size % rest) continue;
    return reject(b, split_place(b, c),
                  "loop '%s' has two extents: %lld by axis '%s' of '%s', %lld elsewhere",
                  level_of(b, c, i)->name, (long long)(c->size / rest), axis_name(b, c),
                  split_stage(b, c), (long long)*extent_of(b, c, i));
  }
  return CANVAS_OK;
}

/* A hint on how levels may overshoot their axis; a single loop may be longer than it only for
 * lanes. */
static const char *remainder_hint(const struct axis_split *c, int64_t all) {
  if (all < c->size) return "";
  return c->text->count > 1 ? " (':mask' and ':peel' allow a remainder)"
                            : " (a vec loop with ':mask' may be longer than its axis)";
}

static canvas_status check_product(const struct binder *b, const struct axis_split *c) {
  int64_t all = product(b, c, -1);
  enum level_tail how;
  TRY(find_tail(b, c, &how));
  if (!all || all == c->size) return CANVAS_OK;
  if (how == TAIL_NONE) TRY(check_two_extents(b, c));
  if (all < c->size || how == TAIL_NONE)
    return reject(b, split_place(b, c),
                  "the parts of axis '%s' of '%s' multiply up to %lld, not %lld%s", axis_name(b, c),
                  split_stage(b, c), (long long)all, (long long)c->size, remainder_hint(c, all));
  int64_t rest = product(b, c, 0), enough = (c->size - 1) / rest + 1;
  if (*extent_of(b, c, 0) > enough && !has_masked_lanes(b, c->text->level[0]))
    return reject(
        b, split_place(b, c), "%lld steps of loop '%s' cover axis '%s' of '%s', not %lld%s",
        (long long)enough, level_of(b, c, 0)->name, axis_name(b, c), split_stage(b, c),
        (long long)*extent_of(b, c, 0), c->text->count == 1 ? remainder_hint(c, c->size) : "");
  return CANVAS_OK;
}

/* Results in the tree. */

static void set_tail(struct binder *b, const struct axis_split *c) {
  struct bound_stage *stage = &b->tree->stages[c->stage];
  stage->tail[c->axis] = product(b, c, -1) > c->size;
  for (int i = 0; i < c->text->count; i++)
    if (level_of(b, c, i)->tail != TAIL_NONE) stage->tail_kind[c->axis] = level_of(b, c, i)->tail;
}

static void set_steps(struct binder *b, struct bound_stage *stage) {
  for (int i = 0; i < stage->steps; i++) {
    struct step *step = &stage->path[i];
    step->extent = b->tree->extents[step->level];
    step->dyn = b->s->levels.data[step->level].kind == EXTENT_DYN;
  }
}

static void set_weights(struct binder *b, const struct axis_split *c) {
  struct bound_stage *stage = &b->tree->stages[c->stage];
  int64_t weight = 1;
  for (int i = c->text->count - 1; i >= 0; i--) {
    for (int j = 0; j < stage->steps; j++)
      if (stage->path[j].level == c->text->level[i]) stage->path[j].weight = weight;
    weight *= *extent_of(b, c, i);
  }
}

static void set_loops(struct binder *b) {
  for (int i = 0; i < b->s->nodes.count; i++) {
    const struct schedule_node *n = &b->s->nodes.data[i];
    struct bound_loop *loop = &b->tree->loops[i];
    if (n->kind != NODE_LOOP || n->parent < 0) continue;
    loop->extent = 1;
    for (int j = 0; j < n->loop.count; j++) {
      loop->extent = saturating_mul(loop->extent, b->tree->extents[n->loop.level[j]]);
      loop->dyn = loop->dyn || b->s->levels.data[n->loop.level[j]].kind == EXTENT_DYN;
    }
  }
}

/* Holes: levels that need a number from outside. A level that follows from the others, once they
 * have numbers, is not a hole. */

static int first_unknown(const struct axis_split *c, const bool *known, int *count) {
  int first = -1;
  *count = 0;
  for (int i = c->text->count - 1; i >= 0; i--)
    if (!known[c->text->level[i]]) {
      first = i;
      ++*count;
    }
  return first;
}

/* Marks one more level as known: one that follows from its axis, or else as a new hole. False if
 * all are known. */
static bool learn_one(struct binder *b, bool *known) {
  int last = -1, unknown;
  for (int i = 0; i < b->splits.count; i++) {
    const struct axis_split *c = &b->splits.data[i];
    int first = first_unknown(c, known, &unknown);
    if (unknown == 1) return known[c->text->level[first]] = true;
    if (unknown > 1 && last < 0) last = i;
  }
  if (last < 0) return false;
  const struct schedule_axis *text = b->splits.data[last].text;
  for (int i = text->count - 1; i >= 0; i--)
    if (!known[text->level[i]]) {
      b->tree->holes[text->level[i]] = true;
      return known[text->level[i]] = true;
    }
  return false;
}

static int find_holes(struct binder *b) {
  int count = 0;
  bool *known = mem_alloc((size_t)b->s->levels.count + 1);
  for (int i = 0; i < b->s->levels.count; i++) {
    const struct level *l = &b->s->levels.data[i];
    b->tree->holes[i] = b->looped[i] && (l->kind == EXTENT_HOLE || l->kind == EXTENT_CHOICE);
    known[i] = b->tree->holes[i] || !b->looped[i] || b->tree->extents[i];
  }
  while (learn_one(b, known)) {
  }
  mem_free(known);
  for (int i = 0; i < b->s->levels.count; i++) count += b->tree->holes[i];
  return count;
}

canvas_status bind_extents(struct binder *b) {
  given_extents(b);
  TRY(inferred_extents(b));
  for (int i = 0; i < b->splits.count; i++) TRY(check_product(b, &b->splits.data[i]));
  for (int i = 0; i < b->tree->count; i++) set_steps(b, &b->tree->stages[i]);
  for (int i = 0; i < b->splits.count; i++) {
    set_weights(b, &b->splits.data[i]);
    set_tail(b, &b->splits.data[i]);
  }
  set_loops(b);
  b->tree->open_holes = find_holes(b);
  return CANVAS_OK;
}
