/* Enumerates knobs and points and binds points. See space.h. */
#include "tune/space.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/saturating.h"

enum { SMALL = SPACE_NUMBERS / 2 };

/* ---- numbers of a knob ----------------------------------------------------------------------- */

/* Axes that contain a level: the smallest size, and whether all may have a remainder. */
struct covered {
  int64_t size;
  bool remainder;
};

static enum level_tail tail_of(const struct loop_tree *tree, const struct bound_stage *stage,
                               int axis) {
  const struct schedule_leaf *leaf = &tree->schedule->nodes.data[stage->node].leaf;
  const struct program_tensor *t = &tree->program->tensors.data[stage->tensor];
  for (int i = 0; i < leaf->axes.count; i++) {
    const struct schedule_axis *a = &leaf->axes.data[i];
    const char *name = a->axis ? a->axis : tree->schedule->levels.data[a->level[0]].name;
    if (strcmp(name, t->axes[axis].name) != 0) continue;
    for (int j = 0; j < a->count; j++) {
      enum level_tail tail = tree->schedule->levels.data[a->level[j]].tail;
      if (tail != TAIL_NONE) return tail;
    }
  }
  return TAIL_NONE;
}

static struct covered covered_by(const struct loop_tree *tree, int level) {
  struct covered c = {SATURATED, true};
  for (int i = 0; i < tree->count; i++) {
    const struct bound_stage *s = &tree->stages[i];
    for (int j = 0; j < s->steps; j++) {
      int axis = s->path[j].axis;
      if (s->path[j].level != level || axis < 0) continue;
      c.size = int_min(c.size, tree->program->tensors.data[s->tensor].axes[axis].size);
      c.remainder = c.remainder && tail_of(tree, s, axis) != TAIL_NONE;
    }
  }
  return c;
}

static bool is_wanted(int64_t n, struct covered c, enum space_numbers numbers) {
  bool divides = c.size % n == 0;
  if (!divides && (numbers == NUMBERS_DIVISORS || !c.remainder)) return false;
  return numbers != NUMBERS_POWERS || !(n & (n - 1));
}

static void add_value(struct knob *k, int64_t value) {
  if (k->count < SPACE_NUMBERS) k->values[k->count++] = value;
}

/* Adds all small numbers; of larger ones powers of two and divisors. */
static void add_listed(struct knob *k, struct covered c, enum space_numbers numbers) {
  for (int64_t n = 1; n <= int_min(c.size, SMALL); n++)
    if (is_wanted(n, c, numbers)) add_value(k, n);
  for (int64_t n = 1; n < c.size; n *= 2)
    if (n > SMALL && is_wanted(n, c, numbers)) add_value(k, n);
  for (int64_t n = 1; n * n <= c.size; n++)
    if (c.size % n == 0 && c.size / n > SMALL && is_wanted(c.size / n, c, numbers))
      add_value(k, c.size / n);
  for (int64_t n = SMALL + 1; n * n <= c.size; n++)
    if (c.size % n == 0 && is_wanted(n, c, numbers)) add_value(k, n);
}

static int by_size(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static void sort_values(struct knob *k) {
  int kept = 0;
  if (k->count) qsort(k->values, (size_t)k->count, sizeof *k->values, by_size);
  for (int i = 0; i < k->count; i++)
    if (!kept || k->values[kept - 1] != k->values[i]) k->values[kept++] = k->values[i];
  k->count = kept;
}

static void find_values(const struct loop_tree *tree, struct knob *k, enum space_numbers numbers) {
  const struct level *level = &tree->schedule->levels.data[k->level];
  struct covered c = covered_by(tree, k->level);
  k->values = mem_alloc(SPACE_NUMBERS * sizeof *k->values);
  if (numbers == NUMBERS_AUTO) numbers = c.remainder ? NUMBERS_ANY : NUMBERS_DIVISORS;
  if (level->kind == EXTENT_CHOICE)
    for (int i = 0; i < level->choices.count; i++) add_value(k, level->choices.data[i]);
  else
    add_listed(k, c, numbers);
  if (!k->count) add_value(k, 1);
  sort_values(k);
}

/* ---- the space ------------------------------------------------------------------------------- */

static canvas_status find_knobs(canvas_context *ctx, const struct loop_tree *tree,
                                enum space_numbers numbers, struct space *s) {
  s->size = 1;
  for (int i = 0; tree->open_holes && i < s->schedule->levels.count; i++) {
    if (!tree->holes[i]) continue;
    if (s->count == SPACE_KNOBS)
      return fail(ctx, CANVAS_BAD_INPUT, "the schedule has more than %d loops that need a number",
                  SPACE_KNOBS);
    struct knob *k = &s->knobs[s->count++];
    k->level = i;
    k->name = s->schedule->levels.data[i].name;
    find_values(tree, k, numbers);
    s->size = saturating_mul(s->size, k->count);
  }
  if (s->size < SATURATED) return CANVAS_OK;
  return fail(ctx, CANVAS_BAD_INPUT,
              "the schedule has 2^62 points or more: give some of its loops numbers");
}

canvas_status space_new(canvas_context *ctx, const struct program *program,
                        const struct schedule *schedule, const struct machine *machine,
                        enum space_numbers numbers, struct space **out) {
  struct loop_tree *tree;
  TRY(loop_tree_bind(ctx, program, schedule, machine, &tree));
  struct space *s = mem_alloc(sizeof *s);
  s->program = program;
  s->schedule = schedule;
  s->machine = *machine;
  canvas_status status = find_knobs(ctx, tree, numbers, s);
  loop_tree_free(tree);
  if (status == CANVAS_OK)
    *out = s;
  else
    space_free(s);
  return status;
}

void space_free(struct space *space) {
  if (!space) return;
  for (int i = 0; i < space->count; i++) mem_free(space->knobs[i].values);
  mem_free(space);
}

/* ---- points ---------------------------------------------------------------------------------- */

void space_digits(const struct space *space, int64_t point, int digits[SPACE_KNOBS]) {
  for (int i = 0; i < space->count; i++) {
    digits[i] = (int)(point % space->knobs[i].count);
    point /= space->knobs[i].count;
  }
}

int64_t space_point(const struct space *space, const int digits[SPACE_KNOBS]) {
  int64_t point = 0;
  for (int i = space->count - 1; i >= 0; i--) point = point * space->knobs[i].count + digits[i];
  return point;
}

static int nearest_value(const struct knob *k, int64_t wanted) {
  int best = 0;
  for (int i = 1; i < k->count; i++)
    if (llabs(k->values[i] - wanted) < llabs(k->values[best] - wanted)) best = i;
  return best;
}

int64_t space_nearest(const struct space *space, const int64_t *extents) {
  int digits[SPACE_KNOBS] = {0};
  for (int i = 0; i < space->count; i++)
    if (extents[space->knobs[i].level])
      digits[i] = nearest_value(&space->knobs[i], extents[space->knobs[i].level]);
  return space_point(space, digits);
}

void space_print(const struct space *space, int64_t point, struct buf *out) {
  int digits[SPACE_KNOBS];
  space_digits(space, point, digits);
  buf_puts(out, "");
  for (int i = 0; i < space->count; i++)
    buf_printf(out, "%s%s=%lld", i ? "," : "", space->knobs[i].name,
               (long long)space->knobs[i].values[digits[i]]);
}

static struct schedule *schedule_at(const struct space *space, int64_t point) {
  struct schedule *s = schedule_copy(space->schedule);
  int digits[SPACE_KNOBS];
  space_digits(space, point, digits);
  for (int i = 0; i < space->count; i++) {
    struct level *level = &s->levels.data[space->knobs[i].level];
    level->kind = EXTENT_INT;
    level->extent = space->knobs[i].values[digits[i]];
    level->choices.count = 0;
  }
  return s;
}

canvas_status space_bind(canvas_context *ctx, const struct space *space, int64_t point,
                         struct loop_tree **out) {
  struct schedule *s = schedule_at(space, point);
  canvas_status status = loop_tree_bind(ctx, space->program, s, &space->machine, out);
  if (status == CANVAS_OK)
    (*out)->made = s;
  else
    schedule_free(s);
  return status;
}

struct loop_tree *space_legal(const struct space *space, int64_t point) {
  canvas_context ctx;
  struct loop_tree *tree;
  if (space_bind(&ctx, space, point, &tree) != CANVAS_OK) return NULL;
  if (!tree->open_holes && !tree->warnings.count) return tree;
  loop_tree_free(tree);
  return NULL;
}
