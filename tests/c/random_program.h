// Random small programs, for properties of schedules: several stages, windows, strides, shifts
// under a select, flattened and split axes, reductions of every kind, bf16, sparse rows.
//
// Sizes are small and values stay small, so that a program costs some thousands of operations and
// sums come out the same in any order. A program is a function of its seed.
#ifndef CANVAS_TESTS_RANDOM_PROGRAM_H
#define CANVAS_TESTS_RANDOM_PROGRAM_H

#include "base/random.h"
#include "program/program.h"

#include <math.h>
#include <stdio.h>

struct random_program {
  struct random r;
  struct program *p;
  enum random_loose { LOOSE_NEVER, LOOSE, LOOSE_MEANT } loose;
};

// A stage in the making: axes and indices grow together.
struct random_stage {
  int rank, reductions;
  int64_t size[8];  // own axes, then those of the reduction
  bool reduction[8];
  int axis[8];  // expressions
  int guard;    // a condition, -1
};

static int random_choice(struct random_program *g, int count) {
  return (int)random_below(&g->r, (uint32_t)count);
}

// How one axis of an operand is read.
enum random_pattern {
  PATTERN_OWN,
  PATTERN_REDUCED,
  PATTERN_WINDOW,
  PATTERN_STRIDE,
  PATTERN_SHIFT,
  PATTERN_REVERSED,
  PATTERN_SPLIT,
  PATTERNS
};

static int random_new_axis(struct random_stage *s, int64_t size, bool reduction) {
  int at = s->rank + s->reductions;
  s->size[at] = size;
  s->reduction[at] = reduction;
  if (reduction)
    s->reductions++;
  else
    s->rank++;
  return at;
}

// The axes that reading an axis of this size asks for.
static enum random_pattern random_plan(struct random_program *g, struct random_stage *s,
                                       int64_t size, int room, int *first, int *second) {
  enum random_pattern pattern = (enum random_pattern)random_choice(g, PATTERNS);
  if (random_choice(g, 3) == 0) pattern = PATTERN_OWN;
  if (room < 2 || size < 3) pattern = random_choice(g, 3) ? PATTERN_OWN : PATTERN_REDUCED;
  if (pattern == PATTERN_STRIDE && size % 2) pattern = PATTERN_SHIFT;
  if (pattern == PATTERN_SPLIT && size % 2) pattern = PATTERN_REVERSED;
  *second = -1;
  switch (pattern) {
    case PATTERN_REDUCED: *first = random_new_axis(s, size, true); break;
    case PATTERN_WINDOW:
      *first = random_new_axis(s, size - 1 - (size > 3), false);
      *second = random_new_axis(s, 2 + (size > 3), true);
      break;
    case PATTERN_STRIDE: *first = random_new_axis(s, size / 2, false); break;
    case PATTERN_SPLIT:
      *first = random_new_axis(s, size / 2, false);
      *second = random_new_axis(s, 2, random_choice(g, 2));
      break;
    default: *first = random_new_axis(s, size, false); break;
  }
  return pattern;
}

static int random_index(struct random_program *g, struct random_stage *s,
                        enum random_pattern pattern, int64_t size, int first, int second) {
  struct program *p = g->p;
  int x = s->axis[first], y = second >= 0 ? s->axis[second] : -1;
  switch (pattern) {
    case PATTERN_WINDOW: return px_add(p, x, y);
    case PATTERN_STRIDE:
      return px_add(p, px_mul(p, x, px_int(p, 2)), px_int(p, random_choice(g, 2)));
    case PATTERN_SPLIT: return px_add(p, px_mul(p, x, px_int(p, 2)), y);
    case PATTERN_REVERSED: return px_sub(p, px_int(p, size - 1), x);
    case PATTERN_SHIFT: {
      int shifted = px_add(p, x, px_int(p, random_choice(g, 2) ? 1 : -1));
      int inside = px_inside(p, shifted, 0, size);
      s->guard = s->guard < 0 ? inside : px_and(p, s->guard, inside);
      return shifted;
    }
    default: return x;
  }
}

// An index below `size` out of what axes there are.
static int random_other_index(struct random_program *g, const struct random_stage *s,
                              int64_t size) {
  struct program *p = g->p;
  int count = s->rank + s->reductions;
  if (!count || size == 1) return px_int(p, random_choice(g, (int)size));
  int start = random_choice(g, count);
  for (int i = 0; i < count; i++)  // an axis that fits, if there is one
    if (s->size[(start + i) % count] == size) return s->axis[(start + i) % count];
  if (s->size[start] < size) return s->axis[start];
  int x = s->axis[start];
  if (random_choice(g, 2)) return px_mod(p, x, px_int(p, size));
  return px_div(p, x, px_int(p, (s->size[start] - 1) / size + 1));
}

static int random_value(struct random_program *g, struct random_stage *s, int a) {
  struct program *p = g->p;
  int tensor = random_choice(g, p->tensors.count - 1), index[8];
  const struct program_tensor *t = &p->tensors.data[tensor];
  if (t->dtype == PROGRAM_I32) return px_mul(p, a, px_number(p, 0.5));
  for (int i = 0; i < t->rank; i++) index[i] = random_other_index(g, s, t->axes[i].size);
  int b = px_load(p, tensor, t->rank, index);
  int count = s->rank + s->reductions;
  int x = count ? px_real(p, s->axis[random_choice(g, count)]) : px_number(p, 3);
  switch (random_choice(g, 6)) {
    case 0: return px_mul(p, a, b);
    case 1: return px_sub(p, a, b);
    case 2: return px_max(p, a, b);
    case 3: return px_add(p, a, px_mul(p, b, px_number(p, 0.25)));
    case 4:
      return count ? px_select(p,
                               px_compare(p, PX_LT, s->axis[random_choice(g, count)], px_int(p, 2)),
                               a, b)
                   : a;
    default: return px_add(p, a, x);
  }
}

static int random_tensor(struct random_program *g) {
  int tensor;
  if (random_choice(g, 4)) return g->p->tensors.count - 1;  // the last one, so that stages chain
  do tensor = random_choice(g, g->p->tensors.count);
  while (g->p->tensors.data[tensor].dtype == PROGRAM_I32);
  return tensor;
}

// Own axes x0, x1, ..., reductions r0, r1, ...: stages share names where they share sizes.
static int random_open_stage(struct random_program *g, struct random_stage *s, const char *name) {
  static const char *const own[] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"};
  static const char *const summed[] = {"r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7"};
  static const enum program_reducer reducers[] = {REDUCE_SUM,  REDUCE_SUM, REDUCE_SUM,
                                                  REDUCE_MEAN, REDUCE_MAX, REDUCE_MIN};
  int64_t sizes[8];
  int rank = 0, reductions = 0;
  for (int i = 0; i < s->rank + s->reductions; i++)
    if (!s->reduction[i]) sizes[rank++] = s->size[i];
  enum program_dtype dtype = random_choice(g, 6) ? PROGRAM_F32 : PROGRAM_F64;
  if (random_choice(g, 12) == 0) dtype = PROGRAM_BF16;
  int stage = program_stage(g->p, name, dtype, rank, own, sizes);
  enum program_reducer reducer = reducers[random_choice(g, 6)];
  rank = 0;
  for (int i = 0; i < s->rank + s->reductions; i++)
    s->axis[i] = s->reduction[i]
                     ? program_reduce(g->p, stage, reducer, summed[reductions++], s->size[i])
                     : program_axis(g->p, stage, rank++);
  return stage;
}

static int random_stage(struct random_program *g, int number) {
  struct random_stage s = {.guard = -1};
  enum random_pattern pattern[8];
  int first[8], second[8], index[8], from = random_tensor(g);
  char name[16];
  const struct program_tensor t = g->p->tensors.data[from];  // the array moves
  for (int i = 0; i < t.rank; i++) {
    int room = 5 - s.rank - s.reductions - (t.rank - 1 - i);
    pattern[i] = random_plan(g, &s, t.axes[i].size, room, &first[i], &second[i]);
  }
  static const char *const taken[] = {"X0_part", "X0_lanes",
                                      "X0_at"};  // names that code gives, too
  if (number < 3)
    snprintf(name, sizeof name, "%s", taken[number]);
  else
    snprintf(name, sizeof name, "S%d", number);
  int stage = random_open_stage(g, &s, name);
  for (int i = 0; i < t.rank; i++)
    index[i] = random_index(g, &s, pattern[i], t.axes[i].size, first[i], second[i]);
  int value = px_load(g->p, from, t.rank, index);
  if (s.guard >= 0) value = px_select(g->p, s.guard, value, px_number(g->p, 0));
  program_define(g->p, stage, random_value(g, &s, value));
  return stage;
}

// Y[r, n] = X[ind[e], n] ... // sum e:ptr[r]..ptr[r+1]
static void random_sparse(struct random_program *g) {
  static const char *const axes[] = {"x0", "x1"};
  struct program *p = g->p;
  int64_t rows = 2 + random_choice(g, 5), nonzeros = 3 + random_choice(g, 9);
  int64_t columns = 2 + random_choice(g, 5), width = 1 + random_choice(g, 8);
  int ptr = program_input(p, "ptr", PROGRAM_I32, 1, axes, (int64_t[]){rows + 1});
  int ind = program_input(p, "ind", PROGRAM_I32, 1, axes, (int64_t[]){nonzeros});
  int val = program_input(p, "val", PROGRAM_F32, 1, axes, (int64_t[]){nonzeros});
  int dense = program_input(p, "dense", PROGRAM_F32, 2, axes, (int64_t[]){columns, width});
  program_input_range(p, ptr, 0, nonzeros, true);
  program_input_range(p, ind, 0, columns - 1, false);
  int y = program_stage(p, "sparse", PROGRAM_F32, 2, axes, (int64_t[]){rows, width});
  int r = program_axis(p, y, 0), n = program_axis(p, y, 1), next = px_add(p, r, px_int(p, 1));
  int e = program_reduce_range(p, y, random_choice(g, 2) ? REDUCE_SUM : REDUCE_MAX, "e",
                               px_load(p, ptr, 1, &r), px_load(p, ptr, 1, &next));
  int column = px_load(p, ind, 1, &e);
  program_define(p, y, px_mul(p, px_load(p, val, 1, &e), px_load(p, dense, 2, (int[]){column, n})));
}

// Sums as far as an axis says, one of the other: their reductions share a name and differ in length,
// in the axis that bounds them, or not at all.
static void random_dependent(struct random_program *g) {
  static const char *const own[][2] = {{"x0", "x1"}, {"x1", "x0"}, {"d0", "x1"}};
  struct program *p = g->p;
  int64_t rows = 5 + random_choice(g, 6), width = 1 + random_choice(g, 8);
  int from = program_input(p, "U", PROGRAM_F32, 2, own[0], (int64_t[]){rows + 1, width});
  for (int i = 0, stages = 2 + random_choice(g, 2); i < stages; i++) {
    char name[16];
    snprintf(name, sizeof name, "dep%d", i);
    int64_t size = rows - random_choice(g, 2);
    int y =
        program_stage(p, name, PROGRAM_F32, 2, own[random_choice(g, 3)], (int64_t[]){size, width});
    int low = px_int(p, 0), high = px_add(p, program_axis(p, y, 0), px_int(p, 1));
    int e =
        program_reduce_range(p, y, random_choice(g, 3) ? REDUCE_SUM : REDUCE_MAX, "e", low, high);
    int at[] = {e, program_axis(p, y, 1)};
    program_define(p, y, px_load(p, from, 2, at));
    rows = size;
    from = y;
  }
}

// A place along one axis of an image, and whether it lies within: windows with strides, dilation and
// as much padding before as after, or not; images that are spread out, as transposed ones are.
static int random_border_place(struct random_program *g, int x, int window, int64_t size,
                               int64_t *inside, int64_t pad, int64_t stride, int64_t dilation) {
  struct program *p = g->p;
  int at = px_add(p, px_mul(p, x, px_int(p, stride)), px_mul(p, window, px_int(p, dilation)));
  int place = px_sub(p, at, px_int(p, pad)), condition;
  if (random_choice(g, 6) == 0) place = px_sub(p, px_int(p, size - 1), place);
  switch (random_choice(g, 6)) {
    case 0: {  // every second place
      int two = px_int(p, 2);
      condition = px_and(p, px_inside(p, place, 0, 2 * size - 1),
                         px_compare(p, PX_EQ, px_mod(p, place, two), px_int(p, 0)));
      place = px_div(p, place, two);
      break;
    }
    case 1:
      condition = px_not(p, px_or(p, px_compare(p, PX_GT, px_int(p, 0), place),
                                  px_compare(p, PX_GE, place, px_int(p, size))));
      break;
    case 2:
      condition =
          px_and(p, px_inside(p, place, 0, size), px_compare(p, PX_NE, place, px_int(p, size / 2)));
      break;
    default: condition = px_inside(p, place, 0, size);
  }
  *inside = condition;
  return place;
}

// A window over an image with a border: conditions on two axes, one in the other or joined, and what
// stands beyond them is 0, another number, the reducer's own or another load.
static void random_border(struct random_program *g) {
  static const char *const axes[] = {"x0", "x1", "x2"};
  static const char *const windows[] = {"r0", "r1"};
  struct program *p = g->p;
  int64_t size[3], out[3], window[2], inside[2];
  int index[3], own[3], reduced[2], tap[3];
  bool channels = random_choice(g, 2), maximum = random_choice(g, 4) == 0;
  bool chain = random_choice(g, 2);
  for (int i = 0; i < 2; i++) {
    size[i] = 2 + random_choice(g, i ? 18 : 6);
    window[i] = 1 + random_choice(g, 4);
    out[i] = 1 + random_choice(g, i ? 24 : 8);
  }
  size[2] = out[2] = random_choice(g, 2) ? 8 : 1 + random_choice(g, 5);
  int rank = 2 + channels;
  int image = program_input(p, "image", PROGRAM_F32, rank, axes, size);
  int64_t taps[] = {window[0], window[1], size[2]};
  int weight = program_input(p, "weight", PROGRAM_F32, rank, axes, taps);
  int y = program_stage(p, "border", PROGRAM_F32, rank, axes, out);
  for (int i = 0; i < rank; i++) index[i] = own[i] = tap[i] = program_axis(p, y, i);
  for (int i = 0; i < 2; i++) {
    reduced[i] = tap[i] =
        program_reduce(p, y, maximum ? REDUCE_MAX : REDUCE_SUM, windows[i], window[i]);
    index[i] = random_border_place(g, own[i], reduced[i], size[i], &inside[i],
                                   random_choice(g, (int)window[i] + 1), 1 + random_choice(g, 2),
                                   1 + random_choice(g, 2));
  }
  int value = px_load(p, image, rank, index), w = px_load(p, weight, rank, tap);
  int beyond = px_number(p, maximum && random_choice(g, 2) ? -HUGE_VAL : random_choice(g, 3) / 2);
  bool product = random_choice(g, 2);
  if (product) value = px_mul(p, value, w);
  if (random_choice(g, 6) == 0) beyond = w;
  if (chain)
    value = px_select(p, (int)inside[0], px_select(p, (int)inside[1], value, beyond), beyond);
  else
    value = px_select(p, px_and(p, (int)inside[0], (int)inside[1]), value, beyond);
  if (!product && !maximum) value = px_mul(p, value, w);
  program_define(p, y, value);
}

static inline struct program *random_border_program(uint64_t seed) {
  struct random_program g = {.p = program_new("random_border")};
  random_open(&g.r, seed, RANDOM_TEST, 8);
  random_border(&g);
  if (random_choice(&g, 3) == 0) random_stage(&g, 0);
  program_output(g.p, g.p->tensors.count - 1);
  return g.p;
}

struct random_wild {
  int row, column;          // axes
  int large, near, floats;  // inputs: i32 of all that is positive, i32 around 0, f32
  int64_t rows, columns, length;
};

static int random_load(struct random_program *g, int tensor, int index) {
  return px_load(g->p, tensor, 1, &index);
}

// An index that may be anywhere: products and squares of axes, i32 elements beyond 32 bits.
static int random_wild_index(struct random_program *g, const struct random_wild *w) {
  struct program *p = g->p;
  int a = random_load(g, w->large, w->row), b = random_load(g, w->near, w->column);
  switch (random_choice(g, 8)) {
    case 0: return px_mul(p, w->row, w->column);
    case 1: return px_sub(p, px_mul(p, w->row, w->row), w->column);
    case 2: return px_mul(p, a, b);
    case 3: return px_add(p, px_add(p, a, a), px_add(p, b, px_int(p, 2000000000)));
    case 4: return px_add(p, px_mul(p, w->column, px_int(p, 700000000)), b);
    case 5: return px_sub(p, b, px_mul(p, w->row, px_int(p, 3)));
    case 6: return px_sub(p, px_neg(p, a), px_div(p, b, px_int(p, 3)));
    default: return px_sub(p, px_mul(p, w->column, px_int(p, 3)), w->row);
  }
}

// The load of one of three inputs, where it is in range: by a remainder, a clamp, a condition that
// proves it, or one that does not though it is the same.
static int random_wild_load(struct random_program *g, const struct random_wild *w, int index) {
  struct program *p = g->p;
  int real = random_choice(g, 4) == 0;
  int tensor = real ? w->near : w->floats, zero = px_number(p, 0);
  int64_t size = real ? w->columns : w->length;
  int inside = px_inside(p, index, 0, size), value;
  int wrap = random_choice(g, 6);
  bool loose = g->loose && wrap >= 2 && random_choice(g, 2);
  if (wrap == 0) index = px_mod(p, index, px_int(p, size));
  if (wrap == 1) index = px_max(p, px_min(p, index, px_int(p, size - 1)), px_int(p, 0));
  value = random_load(g, tensor, index);
  if (real) value = px_mul(p, px_real(p, value), px_number(p, 0.001));
  if (loose && g->loose == LOOSE_MEANT) {
    int infinite = px_number(p, HUGE_VAL);
    value = px_select(p, inside, value, real ? zero : px_sub(p, infinite, infinite));
  }
  if (loose) {
    int at = px_mod(p, wrap % 2 ? w->row : w->column, px_int(p, w->length));
    return px_select(p, px_compare(p, PX_LT, random_load(g, w->floats, at), px_number(p, 0.25)),
                     value, zero);
  }
  if (wrap == 2) return px_select(p, inside, value, zero);
  if (wrap < 2) return value;
  int hidden = px_compare(p, PX_EQ, px_select(p, inside, px_int(p, 1), px_int(p, 0)), px_int(p, 1));
  value = px_select(p, hidden, value, zero);
  if (wrap == 3) return value;
  int at = px_mod(p, random_choice(g, 2) ? w->row : w->column, px_int(p, w->length));
  int test = px_compare(p, PX_LT, random_load(g, w->floats, at), px_number(p, 0.25));
  return wrap == 4 ? px_select(p, test, value, zero)
                   : px_select(p, px_and(p, test, hidden), value, px_number(p, 1));
}

// Loads wherever data and products of axes point, in some stages that follow one another.
static void random_wild(struct random_program *g) {
  static const char *const axes[] = {"x0", "x1"};
  struct program *p = g->p;
  struct random_wild w = {.rows = 2 + random_choice(g, 20),
                          .columns = 1 + random_choice(g, 2) * 15 + random_choice(g, 20),
                          .length = 3 + random_choice(g, 30)};
  w.large = program_input(p, "large", PROGRAM_I32, 1, axes, &w.rows);
  w.near = program_input(p, "near", PROGRAM_I32, 1, axes, &w.columns);
  w.floats = program_input(p, "wild_x", PROGRAM_F32, 1, axes, &w.length);
  program_input_range(p, w.large, 0, INT32_MAX, false);
  program_input_range(p, w.near, random_choice(g, 2) ? -1000000 : -9, 40, false);
  int stage = program_stage(p, "wild", PROGRAM_F32, 2, axes, (int64_t[]){w.rows, w.columns});
  w.row = program_axis(p, stage, 0);
  w.column = program_axis(p, stage, 1);
  int value = px_number(p, 0.5);
  for (int i = 0, loads = 1 + random_choice(g, 3); i < loads; i++)
    value = px_add(p, value, random_wild_load(g, &w, random_wild_index(g, &w)));
  if (random_choice(g, 3) == 0)
    value =
        px_add(p, value, px_mul(p, px_real(p, random_wild_index(g, &w)), px_number(p, 0x1p-30)));
  program_define(p, stage, value);
}

// LOOSE: some loads of every sixth program are out of range at run time; LOOSE_MEANT is the same
// program, which says that such a load is nan, or 0 of i32.
static struct program *random_program_with(uint64_t seed, enum random_loose loose) {
  static const char *const axes[] = {"x0", "x1", "x2"};
  static const int64_t some[] = {1, 2, 3, 4, 4, 5, 6, 8, 8, 12, 16};
  struct random_program g = {.p = program_new("random"), .loose = loose};
  random_open(&g.r, seed, RANDOM_TEST, 7);
  int64_t sizes[3];
  int inputs = 1 + random_choice(&g, 2), stages = 1 + random_choice(&g, 4);
  for (int i = 0; i < inputs; i++) {
    char name[16];
    int rank = 1 + random_choice(&g, 3);
    for (int j = 0; j < rank; j++) sizes[j] = some[random_choice(&g, rank > 2 ? 7 : 11)];
    snprintf(name, sizeof name, "X%d", i);
    program_input(g.p, name, random_choice(&g, 8) ? PROGRAM_F32 : PROGRAM_BF16, rank, axes, sizes);
  }
  if (random_choice(&g, 8) == 0) random_sparse(&g);
  if (seed % 6 == 5) random_dependent(&g);
  if (seed % 6 == 3) random_wild(&g);
  int stage = -1;
  for (int i = 0; i < stages; i++) {
    int made = random_stage(&g, i);
    if (stage >= 0 && random_choice(&g, 5) == 0) program_output(g.p, stage);
    stage = made;
  }
  program_output(g.p, stage);
  return g.p;
}

static inline struct program *random_program(uint64_t seed) {
  return random_program_with(seed, LOOSE_NEVER);
}

#endif
