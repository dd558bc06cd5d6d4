// A bound schedule, carried out literally in double precision: the proof that binding is right.
//
// Loops run as they stand. A buffer is fresh at each iteration of its compute-at loop, accumulators begin at
// start, conditions hold back what overshoots. Each place of a buffer remembers which element it
// holds, so that reading what was never computed, or another element that took its place, is found
// even where the numbers agree by chance. Nothing here asks the checks whether it is legal.
#ifndef CANVAS_TESTS_WALK_TREE_H
#define CANVAS_TESTS_WALK_TREE_H

#include "base/random.h"
#include "program/interpret.h"
#include "bind/loop_tree.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WALK_ELEMENTS = 1 << 20, WALK_POINTS = 1 << 24 };

struct walk_kept {
  double *values;  // of the buffer
  int64_t *tags;   // the element that the place holds, -1: none
  double *sums;    // accumulators
  int64_t *points;
  int64_t count;  // of them
};

struct walk {
  const struct loop_tree *t;
  const struct program *p;
  const double *const *inputs;   // in the order of p->inputs
  struct walk_kept *kept;        // by stage
  int64_t (*value)[GROUP_MOST];  // by node, by member
  int64_t work;                  // leaves computed
  char error[300];
};

static void walk_fail(struct walk *w, const char *format, ...) PRINTF_LIKE(2, 3);
static void walk_fail(struct walk *w, const char *format, ...) {
  va_list args;
  if (w->error[0]) return;
  va_start(args, format);
  vsnprintf(w->error, sizeof w->error, format, args);
  va_end(args);
}

static const struct program_tensor *walk_tensor(const struct walk *w, int stage) {
  return &w->p->tensors.data[w->t->stages[stage].tensor];
}

// ---- expressions --------------------------------------------------------------------------------

static double walk_value(struct walk *w, int expr, const int64_t *at);
static bool walk_condition(struct walk *w, int expr, const int64_t *at);
static double walk_load(struct walk *w, const struct px_node *n, const int64_t *at);

static int64_t walk_floor(int64_t a, int64_t b) {
  return a / b - (a % b < 0);
}

static int64_t walk_index(struct walk *w, int expr, const int64_t *at) {
  const struct px_node *n = &w->p->nodes.data[expr];
  if (n->op == PX_INT) return n->integer;
  if (n->op == PX_AXIS) return at[n->integer];
  if (n->op == PX_LOAD) return (int64_t)walk_load(w, n, at);
  if (n->op == PX_SELECT)
    return walk_index(w, n->arg[walk_condition(w, n->arg[0], at) ? 1 : 2], at);
  int64_t a = walk_index(w, n->arg[0], at);
  int64_t b = n->arg[1] >= 0 ? walk_index(w, n->arg[1], at) : 0;
  switch (n->op) {
    case PX_ADD: return a + b;
    case PX_SUB: return a - b;
    case PX_MUL: return a * b;
    case PX_DIV: return walk_floor(a, b);
    case PX_MOD: return a - walk_floor(a, b) * b;
    case PX_MIN: return a < b ? a : b;
    case PX_MAX: return a > b ? a : b;
    default: return -a;
  }
}

static bool walk_compare(enum px_op op, double a, double b) {
  switch (op) {
    case PX_LT: return a < b;
    case PX_LE: return a <= b;
    case PX_GT: return a > b;
    case PX_GE: return a >= b;
    case PX_EQ: return a == b;
    default: return a != b;
  }
}

static bool walk_condition(struct walk *w, int expr, const int64_t *at) {
  const struct px_node *n = &w->p->nodes.data[expr];
  switch (n->op) {
    case PX_BOOL: return n->integer;
    case PX_AND: return walk_condition(w, n->arg[0], at) && walk_condition(w, n->arg[1], at);
    case PX_OR: return walk_condition(w, n->arg[0], at) || walk_condition(w, n->arg[1], at);
    case PX_NOT: return !walk_condition(w, n->arg[0], at);
    case PX_SELECT: return walk_condition(w, n->arg[walk_condition(w, n->arg[0], at) ? 1 : 2], at);
    default: break;
  }
  if (w->p->nodes.data[n->arg[0]].sort == PX_INDEX)
    return walk_compare(n->op, (double)walk_index(w, n->arg[0], at),
                        (double)walk_index(w, n->arg[1], at));
  return walk_compare(n->op, walk_value(w, n->arg[0], at), walk_value(w, n->arg[1], at));
}

static double walk_least(double a, double b) {
  return b < a || b != b ? b : a;
}

static double walk_most(double a, double b) {
  return b > a || b != b ? b : a;
}

static double walk_value(struct walk *w, int expr, const int64_t *at) {
  const struct px_node *n = &w->p->nodes.data[expr];
  switch (n->op) {
    case PX_NUMBER: return n->number;
    case PX_LOAD: return walk_load(w, n, at);
    case PX_REAL: return (double)walk_index(w, n->arg[0], at);
    case PX_SELECT: return walk_value(w, n->arg[walk_condition(w, n->arg[0], at) ? 1 : 2], at);
    default: break;
  }
  double a = walk_value(w, n->arg[0], at);
  double b = n->arg[1] >= 0 ? walk_value(w, n->arg[1], at) : 0;
  switch (n->op) {
    case PX_ADD: return a + b;
    case PX_SUB: return a - b;
    case PX_MUL: return a * b;
    case PX_DIV: return a / b;
    case PX_MIN: return walk_least(a, b);
    case PX_MAX: return walk_most(a, b);
    case PX_NEG: return -a;
    case PX_EXP: return exp(a);
    case PX_LOG: return log(a);
    case PX_EXPM1: return expm1(a);
    case PX_LOG1P: return log1p(a);
    case PX_SIN: return sin(a);
    case PX_COS: return cos(a);
    case PX_TANH: return tanh(a);
    case PX_SQRT: return sqrt(a);
    case PX_ERF: return erf(a);
    case PX_ABS: return fabs(a);
    case PX_FLOOR: return floor(a);
    default: return pow(a, b);
  }
}

// ---- buffers ------------------------------------------------------------------------------------

static int64_t walk_flat(const struct program_tensor *t, const int64_t *at) {
  int64_t flat = 0;
  for (int i = 0; i < t->rank; i++) flat = flat * t->axes[i].size + at[i];
  return flat;
}

static int64_t walk_place(const struct bound_stage *s, const int64_t *at) {
  int64_t place = 0;
  for (int i = 0; i < s->dims; i++) {
    const struct buffer_axis *d = &s->layout[i];
    place = place * d->extent + at[d->axis] / d->weight % d->extent;
  }
  return place;
}

static double walk_load(struct walk *w, const struct px_node *n, const int64_t *at) {
  const struct program_tensor *t = &w->p->tensors.data[n->tensor];
  int64_t index[PROGRAM_AXES];
  for (int i = 0; i < t->rank; i++) {
    index[i] = walk_index(w, w->p->indices.data[n->first + i], at);
    if (index[i] >= 0 && index[i] < t->axes[i].size) continue;
    walk_fail(w, "'%s' is read out of range at %lld of '%s'", t->name, (long long)index[i],
              t->axes[i].name);
    return NAN;
  }
  for (int i = 0; t->is_input && i < w->p->inputs.count; i++)
    if (w->p->inputs.data[i] == n->tensor)
      return program_stored(t->dtype, w->inputs[i][walk_flat(t, index)]);
  int stage = loop_tree_stage(w->t, n->tensor);
  int64_t place = walk_place(&w->t->stages[stage], index), flat = walk_flat(t, index);
  if (w->kept[stage].tags[place] != flat)
    walk_fail(w, "element %lld of '%s' is read, and %lld is there", (long long)flat, t->name,
              (long long)w->kept[stage].tags[place]);
  return w->kept[stage].values[place];
}

static void walk_store(struct walk *w, int stage, const int64_t *at, double value) {
  const struct bound_stage *s = &w->t->stages[stage];
  int64_t place = walk_place(s, at);
  w->kept[stage].values[place] = program_stored(walk_tensor(w, stage)->dtype, value);
  w->kept[stage].tags[place] = walk_flat(walk_tensor(w, stage), at);
}

static void walk_poison(struct walk *w, int compute_at) {
  for (int i = 0; i < w->t->count; i++) {
    if (w->t->stages[i].compute_at != compute_at) continue;
    for (int64_t j = 0; j < w->t->stages[i].elements; j++) {
      w->kept[i].values[j] = NAN;
      w->kept[i].tags[j] = -1;
    }
  }
}

// ---- accumulators -------------------------------------------------------------------------------

// A step that the accumulators of a stage have a dimension for.
static bool walk_is_shape(const struct walk *w, int stage, int step) {
  const struct bound_stage *s = &w->t->stages[stage];
  int start = 0;
  while (s->path[start].node != s->start) start++;
  return step >= start && s->path[step].axis < walk_tensor(w, stage)->rank;
}

static int64_t *walk_loop(struct walk *w, const struct step *step) {
  return &w->value[step->node][step->member];
}

static int64_t walk_accumulator(struct walk *w, int stage) {
  const struct bound_stage *s = &w->t->stages[stage];
  int64_t place = 0;
  for (int i = 0; i < s->steps; i++)
    if (walk_is_shape(w, stage, i)) place = place * s->path[i].extent + *walk_loop(w, &s->path[i]);
  return place;
}

static double walk_identity(enum program_reducer reducer) {
  switch (reducer) {
    case REDUCE_MAX: return -HUGE_VAL;
    case REDUCE_MIN: return HUGE_VAL;
    case REDUCE_PROD: return 1;
    default: return 0;
  }
}

static double walk_reduce(enum program_reducer reducer, double a, double b) {
  switch (reducer) {
    case REDUCE_MAX: return walk_most(a, b);
    case REDUCE_MIN: return walk_least(a, b);
    case REDUCE_PROD: return a * b;
    default: return a + b;
  }
}

static void walk_begin(struct walk *w, int stage) {
  const struct bound_stage *s = &w->t->stages[stage];
  struct walk_kept *k = &w->kept[stage];
  k->count = 1;
  for (int i = 0; i < s->steps; i++)
    if (walk_is_shape(w, stage, i)) k->count *= s->path[i].extent;
  k->sums = realloc(k->sums, (size_t)k->count * sizeof *k->sums);
  k->points = realloc(k->points, (size_t)k->count * sizeof *k->points);
  for (int64_t i = 0; i < k->count; i++) {
    k->sums[i] = walk_identity(walk_tensor(w, stage)->reducer);
    k->points[i] = 0;
  }
}

// The values of the axes as the loops stand; false where a tail overshoots.
static bool walk_axes(struct walk *w, int stage, int count, int64_t *at) {
  const struct bound_stage *s = &w->t->stages[stage];
  const struct program_tensor *t = walk_tensor(w, stage);
  for (int i = 0; i < PROGRAM_AXES; i++) at[i] = 0;
  for (int i = 0; i < s->steps; i++)
    if (s->path[i].axis >= 0) at[s->path[i].axis] += *walk_loop(w, &s->path[i]) * s->path[i].weight;
  for (int i = 0; i < count; i++) {
    if (t->axes[i].low >= 0 || at[i] < t->axes[i].size) continue;
    if (!s->tail[i]) walk_fail(w, "axis '%s' of '%s' overshoots", t->axes[i].name, t->name);
    return false;
  }
  return true;
}

static void walk_complete(struct walk *w, int stage) {
  const struct bound_stage *s = &w->t->stages[stage];
  const struct program_tensor *t = walk_tensor(w, stage);
  struct walk_kept *k = &w->kept[stage];
  int64_t at[PROGRAM_AXES];
  for (int64_t i = 0; i < k->count; i++) {
    int64_t rest = i;
    for (int j = s->steps - 1; j >= 0; j--) {
      if (!walk_is_shape(w, stage, j)) continue;
      *walk_loop(w, &s->path[j]) = rest % s->path[j].extent;
      rest /= s->path[j].extent;
    }
    if (!walk_axes(w, stage, t->rank, at)) continue;
    double mean = t->reducer == REDUCE_MEAN ? (double)k->points[i] : 1;
    walk_store(w, stage, at, k->sums[i] / mean);
  }
  for (int i = 0; i < s->steps; i++)
    if (walk_is_shape(w, stage, i)) *walk_loop(w, &s->path[i]) = 0;
}

// ---- loops --------------------------------------------------------------------------------------

static void walk_leaf(struct walk *w, int stage) {
  const struct program_tensor *t = walk_tensor(w, stage);
  int64_t at[PROGRAM_AXES];
  if (w->work++ > WALK_POINTS) walk_fail(w, "too much work");
  if (w->error[0] || !walk_axes(w, stage, t->rank + t->reductions, at)) return;
  double value = walk_value(w, t->body, at);
  if (t->reducer == REDUCE_NONE) {
    walk_store(w, stage, at, value);
    return;
  }
  int64_t place = walk_accumulator(w, stage);
  w->kept[stage].sums[place] = walk_reduce(t->reducer, w->kept[stage].sums[place], value);
  w->kept[stage].points[place]++;
}

static void walk_children(struct walk *w, int node);

static void walk_iteration(struct walk *w, int node) {
  if (w->error[0]) return;
  walk_poison(w, node);
  walk_children(w, node);
}

// The stage whose axis a dyn loop is.
static int walk_owner(const struct walk *w, int node, int *axis) {
  for (int i = 0; i < w->t->count; i++)
    for (int j = 0; j < w->t->stages[i].steps; j++) {
      const struct step *step = &w->t->stages[i].path[j];
      *axis = step->axis;
      if (step->node == node && step->axis >= 0) return i;
    }
  return -1;
}

static void walk_dyn(struct walk *w, int node) {
  int axis = 0, stage = walk_owner(w, node, &axis);
  int64_t at[PROGRAM_AXES];
  if (!walk_axes(w, stage, walk_tensor(w, stage)->rank, at)) return;
  const struct program_axis *a = &walk_tensor(w, stage)->axes[axis];
  int64_t low = walk_index(w, a->low, at), high = walk_index(w, a->high, at);
  for (w->value[node][0] = low; w->value[node][0] < high; w->value[node][0]++)
    walk_iteration(w, node);
  w->value[node][0] = 0;
}

static void walk_for(struct walk *w, int node) {
  const struct schedule_loop *loop = &w->t->schedule->nodes.data[node].loop;
  for (int64_t i = 0; i < w->t->loops[node].extent; i++) {
    int64_t rest = i;
    for (int j = loop->count - 1; j >= 0; j--) {
      w->value[node][j] = rest % w->t->extents[loop->level[j]];
      rest /= w->t->extents[loop->level[j]];
    }
    walk_iteration(w, node);
  }
  memset(w->value[node], 0, sizeof w->value[node]);
}

static void walk_node(struct walk *w, int node) {
  if (w->t->schedule->nodes.data[node].kind == NODE_LEAF) {
    for (int i = 0; i < w->t->count; i++)
      if (w->t->stages[i].node == node) walk_leaf(w, i);
    return;
  }
  for (int i = 0; i < w->t->count; i++)
    if (w->t->stages[i].start == node) walk_begin(w, i);
  if (w->t->loops[node].dyn)
    walk_dyn(w, node);
  else
    walk_for(w, node);
  for (int i = 0; i < w->t->count; i++)
    if (w->t->stages[i].start == node) walk_complete(w, i);
}

static void walk_children(struct walk *w, int node) {
  const struct schedule_node *nodes = w->t->schedule->nodes.data;
  for (int child = nodes[node].first; child >= 0; child = nodes[child].next) walk_node(w, child);
}

// ---- against the interpreter --------------------------------------------------------------------

static void walk_inputs(const struct program *p, uint64_t seed, double **inputs) {
  struct random r;
  random_open(&r, seed, RANDOM_TEST, 1);
  for (int i = 0; i < p->inputs.count; i++) {
    int64_t count = program_elements(p, p->inputs.data[i]);
    inputs[i] = calloc((size_t)count, sizeof **inputs);
    if (p->tensors.data[p->inputs.data[i]].dtype == PROGRAM_I32)
      program_fill(p, i, seed, inputs[i]);
    else  // small whole numbers: sums of them are the same in any order
      for (int64_t j = 0; j < count; j++) inputs[i][j] = (double)random_below(&r, 7) - 3;
  }
}

static void walk_check_output(struct walk *w, struct interpreter *in, canvas_context *ctx,
                              int output) {
  int tensor = w->p->outputs.data[output], stage = loop_tree_stage(w->t, tensor);
  int64_t count = program_elements(w->p, tensor);
  double *want = calloc((size_t)count, sizeof *want);
  double tolerance = 1e-9;
  for (int i = 0; i < w->p->tensors.count; i++)
    if (w->p->tensors.data[i].dtype == PROGRAM_BF16) tolerance = 0x1p-6;
  if (interpreter_elements(in, tensor, count, NULL, want) != CANVAS_OK)
    walk_fail(w, "the interpreter: %s", ctx->message);
  for (int64_t i = 0; i < count && !w->error[0]; i++) {
    double got = w->kept[stage].values[i];
    if (w->kept[stage].tags[i] != i)
      walk_fail(w, "element %lld of '%s' is not computed", (long long)i,
                walk_tensor(w, stage)->name);
    else if (got != want[i] && !(isnan(got) && isnan(want[i])) &&
             !(fabs(got - want[i]) <= tolerance * fmax(1, fabs(want[i]))))
      walk_fail(w, "element %lld of '%s' is %.17g, not %.17g", (long long)i,
                walk_tensor(w, stage)->name, got, want[i]);
  }
  free(want);
}

static void walk_allocate(struct walk *w) {
  w->kept = calloc((size_t)w->t->count + 1, sizeof *w->kept);
  w->value = calloc((size_t)w->t->schedule->nodes.count, sizeof *w->value);
  for (int i = 0; i < w->t->count; i++) {
    if (w->t->stages[i].elements > WALK_ELEMENTS) walk_fail(w, "too large");
    int64_t count = w->error[0] ? 1 : w->t->stages[i].elements;
    w->kept[i].values = calloc((size_t)count, sizeof(double));
    w->kept[i].tags = calloc((size_t)count, sizeof(int64_t));
  }
}

static void walk_release(struct walk *w, double **inputs) {
  for (int i = 0; i < w->p->inputs.count; i++) free(inputs[i]);
  for (int i = 0; i < w->t->count; i++) {
    free(w->kept[i].values);
    free(w->kept[i].tags);
    free(w->kept[i].sums);
    free(w->kept[i].points);
  }
  free(w->kept);
  free(w->value);
}

// Carries the tree out on small whole numbers. NULL if every output is the interpreter's, else what
// is wrong, until the next call.
static const char *walk_tree(const struct loop_tree *tree, uint64_t seed) {
  static char error[300];
  canvas_context ctx = {.message = ""};
  double *inputs[64];
  struct walk w = {.t = tree, .p = tree->program, .inputs = (const double *const *)inputs};
  struct interpreter *in;
  walk_inputs(w.p, seed, inputs);
  walk_allocate(&w);
  if (!w.error[0]) {
    walk_poison(&w, 0);
    walk_children(&w, 0);
  }
  if (interpreter_new(&ctx, w.p, w.inputs, NULL, &in) != CANVAS_OK) {
    walk_fail(&w, "the interpreter: %s", ctx.message);
  } else {
    for (int i = 0; i < w.p->outputs.count && !w.error[0]; i++) walk_check_output(&w, in, &ctx, i);
    interpreter_free(in);
  }
  memcpy(error, w.error, sizeof error);
  walk_release(&w, inputs);
  return error[0] ? error : NULL;
}

#endif
