/* Bounds how far code may be from the interpreter. See rounding.h. */
#include "run/rounding.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An expression and its error bound in the new program; -1: none. The error of a condition is a
 * condition under which it may be decided the other way. */
struct both {
  int value, error;
};

struct writer {
  const struct program *from;
  struct program *to;
  int *value, *error;     /* by tensor of `from`: its stage in `to`; the stage of its bound, -1:
                             exact */
  int axis[PROGRAM_AXES]; /* axes of the current stage */
  double unit;            /* rounding unit of its arithmetic */
  bool wide;              /* the arithmetic is fp64 */
  bool infinite;          /* finite inputs may produce infinity */
};

/* ---- errors as expressions ------------------------------------------------------------------- */

static int times(struct writer *w, double factor, int expr) {
  return px_mul(w->to, px_number(w->to, factor), expr);
}

static int size_of(struct writer *w, int expr) {
  return px_call(w->to, PX_ABS, expr);
}

static int when(struct writer *w, int condition, int then, int other) {
  return px_select(w->to, condition, then, other);
}

static int exceeds(struct writer *w, int a, int b) {
  return px_compare(w->to, PX_GT, a, b);
}

/* Magnitude that a relative error refers to; 0 for infinity, which has no last place.
 * value| * error; nothing where there is no error. => |value| * error; -1 without an error. */
static int measure_of(struct writer *w, int expr) {
  int size = size_of(w, expr);
  if (!w->infinite) return size;
  return when(w, exceeds(w, px_number(w->to, HUGE_VAL), size), size, px_number(w->to, 0));
}

static int plus(struct writer *w, int a, int b) {
  return a < 0 ? b : b < 0 ? a : px_add(w->to, a, b);
}

static int larger(struct writer *w, int a, int b) {
  return a < 0 ? b : b < 0 ? a : px_max(w->to, a, b);
}

/* |value| * error; nothing where there is no error. */
static int scaled(struct writer *w, int value, int error) {
  return error < 0 ? -1 : px_mul(w->to, measure_of(w, value), error);
}

static int or_zero(struct writer *w, int error) {
  return error < 0 ? px_number(w->to, 0) : error;
}

/* The value with its error plus `units` of rounding of its own. */
static struct both rounded(struct writer *w, int value, int error, double units) {
  int own = times(w, units * w->unit, measure_of(w, value));
  return (struct both){value, plus(w, error, own)};
}

/* ---- expressions ----------------------------------------------------------------------------- */

static struct both walk(struct writer *w, int expr);

static int map_load(struct program *to, int tensor, int rank, const int *indices, void *data) {
  const struct writer *w = data;
  return px_load(to, w->value[tensor], rank, indices);
}

static int copy_index(struct writer *w, int expr) {
  const struct px_map map = {.axis = w->axis, .load = map_load, .data = w};
  return px_copy(w->to, w->from, expr, &map);
}

static struct both walk_load(struct writer *w, const struct px_node *n) {
  const struct program_tensor *t = &w->from->tensors.data[n->tensor];
  int indices[PROGRAM_AXES];
  for (int i = 0; i < t->rank; i++) indices[i] = copy_index(w, w->from->indices.data[n->first + i]);
  struct both load = {px_load(w->to, w->value[n->tensor], t->rank, indices), -1};
  if (w->error[n->tensor] >= 0) load.error = px_load(w->to, w->error[n->tensor], t->rank, indices);
  return t->dtype == PROGRAM_F64 && !w->wide ? rounded(w, load.value, load.error, 1) : load;
}

static struct both walk_number(struct writer *w, double x) {
  int value = px_number(w->to, x);
  bool exact = w->wide || (double)(float)x == x;
  return exact ? (struct both){value, -1} : rounded(w, value, -1, 1);
}

static struct both walk_real(struct writer *w, int index) {
  struct px_range range = px_range(w->from, index);
  int value = px_real(w->to, copy_index(w, index));
  bool exact = !range.overflow && range.low > -(1 << 24) && range.high < 1 << 24;
  return exact ? (struct both){value, -1} : rounded(w, value, -1, 1);
}

/* a / b is off by at most (e(a) + |a/b| e(b)) / (|b| - e(b)). a|^b moves by a factor exp(d) where
 * its => |a|^b changes by a factor of exp(d) if its logarithm changes by d. */
static int quotient_error(struct writer *w, struct both a, struct both b, int value) {
  int size = size_of(w, b.value);
  int error = plus(w, a.error, scaled(w, value, b.error));
  if (error >= 0 && b.error < 0) return px_div(w->to, error, size);
  if (b.error < 0) return error;
  return when(w, exceeds(w, size, b.error), px_div(w->to, error, px_sub(w->to, size, b.error)),
              px_number(w->to, HUGE_VAL));
}

static int product_error(struct writer *w, struct both a, struct both b) {
  int error = plus(w, scaled(w, a.value, b.error), scaled(w, b.value, a.error));
  if (a.error < 0 || b.error < 0) return error;
  return plus(w, error, px_mul(w->to, a.error, b.error));
}

/* |a|^b moves by a factor exp(d) where its logarithm moves by d. */
static int power_error(struct writer *w, struct both a, struct both b, int value) {
  struct program *to = w->to;
  int size = size_of(w, a.value), shift = -1;
  if (a.error >= 0) {
    int by = px_div(to, px_mul(to, size_of(w, b.value), a.error), px_sub(to, size, a.error));
    shift = when(w, exceeds(w, size, a.error), by, px_number(to, HUGE_VAL));
  }
  if (b.error >= 0) shift = plus(w, shift, scaled(w, px_call(to, PX_LOG, size), b.error));
  if (shift < 0) return -1;
  return scaled(w, value, px_sub(to, px_call(to, PX_EXP, shift), px_number(to, 1)));
}

/* Error of exp(a) and of expm1(a): exp(a) * expm1(e), which is accurate for small e. */
static int exp_error(struct writer *w, enum px_op op, struct both a, int value) {
  int raised = op == PX_EXP ? value : px_call(w->to, PX_EXP, a.value);
  return scaled(w, raised, px_call(w->to, PX_EXPM1, a.error));
}

static int log_error(struct writer *w, enum px_op op, struct both a) {
  struct program *to = w->to;
  int of = op == PX_LOG ? a.value : px_add(to, px_number(to, 1), a.value);
  return when(w, exceeds(w, of, a.error), px_div(to, a.error, px_sub(to, of, a.error)),
              px_number(to, HUGE_VAL));
}

/* Error of an operation due to its operands' errors; `value` is its result, b the second operand if
 * any. */
static int operand_error(struct writer *w, enum px_op op, struct both a, struct both b, int value) {
  struct program *to = w->to;
  int e = a.error;
  switch (scalar_ops[op].error) {
    case ERROR_SUM: return plus(w, e, b.error);
    case ERROR_PRODUCT: return product_error(w, a, b);
    case ERROR_QUOTIENT: return quotient_error(w, a, b, value);
    case ERROR_POWER: return power_error(w, a, b, value);
    case ERROR_LARGER: return larger(w, e, b.error);
    default: break;
  }
  if (e < 0) return -1;
  switch (scalar_ops[op].error) {
    case ERROR_RISING:
      return px_sub(to, px_call(to, op, px_add(to, a.value, e)),
                    px_call(to, op, px_sub(to, a.value, e)));
    case ERROR_EXP: return exp_error(w, op, a, value);
    case ERROR_LOG: return log_error(w, op, a);
    case ERROR_SQRT:
      return when(w, exceeds(w, a.value, e), px_div(to, e, value),
                  px_call(to, PX_SQRT, times(w, 2, e)));
    default: return times(w, scalar_ops[op].slope, e);
  }
}

static struct both walk_operation(struct writer *w, enum px_op op, struct both a, struct both b) {
  const struct scalar_op *row = &scalar_ops[op];
  int value = px_apply(w->to, op, (int[]){a.value, b.value});
  struct both out = {value, operand_error(w, op, a, b, value)};
  if (row->units != UNITS_EXACT) out = rounded(w, value, out.error, row->units);
  if (row->error == ERROR_WAVE)
    out.error = plus(w, out.error, px_number(w->to, row->units * w->unit));
  return out;
}

static struct both walk_select(struct writer *w, const struct px_node *n) {
  struct both c = walk(w, n->arg[0]), a = walk(w, n->arg[1]), b = walk(w, n->arg[2]);
  struct both out = {when(w, c.value, a.value, b.value), -1};
  if (a.error >= 0 || b.error >= 0)
    out.error = when(w, c.value, or_zero(w, a.error), or_zero(w, b.error));
  if (c.error < 0) return out;
  int apart = size_of(w, px_sub(w->to, a.value, b.value));
  int either = plus(w, larger(w, a.error, b.error), apart);
  out.error = when(w, c.error, either, or_zero(w, out.error));
  return out;
}

/* Comparison of values: undecided if they are closer than their errors. */
static struct both walk_comparison(struct writer *w, const struct px_node *n) {
  struct both a = walk(w, n->arg[0]), b = walk(w, n->arg[1]);
  struct both out = {px_compare(w->to, n->op, a.value, b.value), -1};
  int error = plus(w, a.error, b.error);
  if (error >= 0)
    out.error = px_compare(w->to, PX_LE, size_of(w, px_sub(w->to, a.value, b.value)), error);
  return out;
}

/* The right side matters only if the left does not decide. */
static struct both walk_logic(struct writer *w, const struct px_node *n) {
  struct program *to = w->to;
  struct both a = walk(w, n->arg[0]);
  if (n->op == PX_NOT) return (struct both){px_not(to, a.value), a.error};
  struct both b = walk(w, n->arg[1]);
  bool both = n->op == PX_AND;
  struct both out = {both ? px_and(to, a.value, b.value) : px_or(to, a.value, b.value), a.error};
  if (b.error < 0) return out;
  int right = px_and(to, both ? a.value : px_not(to, a.value), b.error);
  out.error = a.error < 0 ? right : px_or(to, a.error, right);
  return out;
}

static struct both walk(struct writer *w, int expr) {
  struct px_node n = w->from->nodes.data[expr];
  if (n.sort == PX_INDEX) return (struct both){copy_index(w, expr), -1};
  switch (n.op) {
    case PX_BOOL: return (struct both){px_bool(w->to, n.integer), -1};
    case PX_NUMBER: return walk_number(w, n.number);
    case PX_REAL: return walk_real(w, n.arg[0]);
    case PX_LOAD: return walk_load(w, &n);
    case PX_SELECT: return walk_select(w, &n);
    default: break;
  }
  if (scalar_ops[n.op].sorts == SORTS_TEST) return walk_comparison(w, &n);
  if (scalar_ops[n.op].sorts == SORTS_LOGIC) return walk_logic(w, &n);
  struct both a = walk(w, n.arg[0]), none = {-1, -1};
  return walk_operation(w, n.op, a, n.arg[1] < 0 ? none : walk(w, n.arg[1]));
}

/* ---- stages ---------------------------------------------------------------------------------- */

/* Opens a stage with the axes of `t`, with reductions only if `reducer` is one; sets w->axis. */
static int open_stage(struct writer *w, const struct program_tensor *t, const char *name,
                      enum program_dtype dtype, enum program_reducer reducer) {
  const char *axes[PROGRAM_AXES];
  int64_t sizes[PROGRAM_AXES];
  for (int i = 0; i < t->rank; i++) {
    axes[i] = t->axes[i].name;
    sizes[i] = t->axes[i].size;
  }
  int stage = program_stage(w->to, name, dtype, t->rank, axes, sizes);
  for (int i = 0; i < t->rank; i++) w->axis[i] = program_axis(w->to, stage, i);
  if (reducer == REDUCE_NONE) return stage;
  for (int i = t->rank; i < t->rank + t->reductions; i++) {
    const struct program_axis *a = &t->axes[i];
    w->axis[i] = a->low < 0 ? program_reduce(w->to, stage, reducer, a->name, a->size)
                            : program_reduce_range(w->to, stage, reducer, a->name,
                                                   copy_index(w, a->low), copy_index(w, a->high));
  }
  return stage;
}

/* A name unused in both programs. */
static const char *free_name(const struct writer *w, char name[PROGRAM_NAME]) {
  int number = w->to->tensors.count;
  do snprintf(name, PROGRAM_NAME, "error_%d", number++);
  while (program_find(w->from, name) >= 0 || program_find(w->to, name) >= 0);
  return name;
}

static int open_error(struct writer *w, const struct program_tensor *t,
                      enum program_reducer reducer) {
  char name[PROGRAM_NAME];
  return open_stage(w, t, free_name(w, name), PROGRAM_F64, reducer);
}

static int at_axes(struct writer *w, int tensor, const struct program_tensor *t) {
  return px_load(w->to, tensor, t->rank, w->axis);
}

/* The error over an empty range is 0, not the empty maximum. */
static int at_least_zero(struct writer *w, const struct program_tensor *t, int stage) {
  bool data = false;
  for (int i = t->rank; i < t->rank + t->reductions; i++) data = data || t->axes[i].low >= 0;
  if (!data) return stage;
  int above = open_error(w, t, REDUCE_NONE);
  program_define(w->to, above, px_max(w->to, at_axes(w, stage, t), px_number(w->to, 0)));
  return above;
}

/* The stage that bounds a reduction; -1: exact. */
static int bound_reduction(struct writer *w, const struct program_tensor *t, int value) {
  double points = 1;
  for (int i = t->rank; i < t->rank + t->reductions; i++) points *= (double)t->axes[i].size;
  bool sum = t->reducer == REDUCE_SUM || t->reducer == REDUCE_MEAN;
  int stage = open_error(w, t, t->reducer);
  struct both b = walk(w, t->body);
  if (sum) { /* K + 1 additions, and for a mean the division and the rounding of 1/K */
    program_define(w->to, stage, rounded(w, b.value, b.error, points + 3).error);
    return stage;
  }
  if (t->reducer != REDUCE_PROD) { /* the largest error of any element, since each may be the
                                      extreme */
    program_define(w->to, stage, or_zero(w, b.error));
    w->to->tensors.data[stage].reducer = REDUCE_MAX;
    return b.error < 0 ? -1 : at_least_zero(w, t, stage);
  }
  int most = plus(w, size_of(w, b.value), b.error);
  program_define(w->to, stage, times(w, 1 + w->unit, most));
  int above = open_error(w, t, REDUCE_NONE);
  int size = size_of(w, at_axes(w, value, t));
  program_define(w->to, above, px_sub(w->to, at_axes(w, stage, t), size));
  return above;
}

static int bound_element(struct writer *w, const struct program_tensor *t) {
  int stage = open_error(w, t, REDUCE_NONE);
  struct both b = walk(w, t->body);
  program_define(w->to, stage, or_zero(w, b.error));
  return b.error < 0 ? -1 : stage;
}

/* Storing to bf16: values that were close are at most one place apart afterwards. */
static int bound_storing(struct writer *w, const struct program_tensor *t, int value, int error) {
  int stage = open_error(w, t, REDUCE_NONE);
  int place = times(w, 0x1p-7, measure_of(w, at_axes(w, value, t)));
  program_define(w->to, stage, plus(w, place, times(w, 1 + 0x1p-7, at_axes(w, error, t))));
  return stage;
}

static void write_stage(struct writer *w, int tensor) {
  const struct program_tensor *t = &w->from->tensors.data[tensor];
  w->wide = t->dtype == PROGRAM_F64;
  w->unit = w->wide ? 0x1p-52 : 0x1p-24;
  int value = w->value[tensor] = open_stage(w, t, t->name, t->dtype, t->reducer);
  program_define(w->to, value, copy_index(w, t->body));
  int error = t->reducer == REDUCE_NONE ? bound_element(w, t) : bound_reduction(w, t, value);
  if (error >= 0 && t->dtype == PROGRAM_BF16) error = bound_storing(w, t, value, error);
  w->error[tensor] = error;
}

static void write_input(struct writer *w, int tensor) {
  const struct program_tensor *t = &w->from->tensors.data[tensor];
  const char *axes[PROGRAM_AXES];
  int64_t sizes[PROGRAM_AXES];
  for (int i = 0; i < t->rank; i++) {
    axes[i] = t->axes[i].name;
    sizes[i] = t->axes[i].size;
  }
  int input = program_input(w->to, t->name, t->dtype, t->rank, axes, sizes);
  if (t->dtype == PROGRAM_I32) program_input_range(w->to, input, t->least, t->most, t->rising);
  w->value[tensor] = input;
  w->error[tensor] = -1;
}

static void write_program(struct writer *w, struct rounding *out) {
  for (int i = 0; i < w->from->tensors.count; i++)
    if (w->from->tensors.data[i].is_input)
      write_input(w, i);
    else
      write_stage(w, i);
  for (int i = 0; i < w->from->outputs.count; i++) {
    int tensor = w->from->outputs.data[i];
    out->value[i] = w->value[tensor];
    out->error[i] = w->error[tensor];
    program_output(w->to, out->value[i]);
  }
}

/* Whether the operation can produce infinity. Sums and products of inputs stay finite in fp64, and
 * so does a function that grows no faster than its operand. */
static bool makes_infinity(const struct px_node *n) {
  switch (scalar_ops[n->op].error) {
    case ERROR_QUOTIENT:
    case ERROR_POWER:
    case ERROR_EXP:
    case ERROR_LOG:
    case ERROR_RISING: return true;
    default: return n->op == PX_NUMBER && isinf(n->number);
  }
}

static bool has_infinity(const struct program *p) {
  for (int i = 0; i < p->nodes.count; i++)
    if (makes_infinity(&p->nodes.data[i])) return true;
  for (int i = 0; i < p->tensors.count; i++) {
    const struct program_tensor *t = &p->tensors.data[i];
    for (int k = t->rank; k < t->rank + t->reductions; k++)
      if (t->axes[k].low >= 0) return true; /* extreme of an empty range */
  }
  return false;
}

canvas_status rounding_new(canvas_context *ctx, const struct program *p, struct rounding *out) {
  struct writer w = {.from = p, .to = program_new(p->name), .infinite = has_infinity(p)};
  size_t tensors = (size_t)p->tensors.count, outputs = (size_t)p->outputs.count;
  w.value = mem_alloc(tensors * sizeof *w.value);
  w.error = mem_alloc(tensors * sizeof *w.error);
  *out = (struct rounding){w.to, mem_alloc(outputs * sizeof *out->value),
                           mem_alloc(outputs * sizeof *out->error)};
  write_program(&w, out);
  mem_free(w.value);
  mem_free(w.error);
  canvas_status status = program_verify(ctx, out->program);
  if (status == CANVAS_OK) return CANVAS_OK;
  char why[MESSAGE_SIZE];
  memcpy(why, ctx->message, sizeof why);
  rounding_free(out);
  return fail(
      ctx, CANVAS_BAD_INPUT,
      "program '%.40s' cannot be checked, as the bound of its rounding is a longer one: %.600s",
      p->name, why);
}

void rounding_free(struct rounding *r) {
  program_free(r->program);
  mem_free(r->value);
  mem_free(r->error);
  *r = (struct rounding){0};
}
