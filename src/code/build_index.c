/* Indices of the loops that stand open. See build.h.
 *
 * An index becomes a sum of terms, constants folded: c*3136 + h*56 + kh*56 + w + kw - 57.
 * What is no sum (quotients, remainders, loads of indices) is a term of its own.
 *
 * Loops count in 64 bits. An element of i32 and the number of a lane are of 32: arithmetic on
 * nothing else is converted to 64 bits, unless the ranges prove that each step of it fits in 32.
 */
#include "code/build.h"

static const struct px_node *node_of(const struct builder *b, int expr) {
  return &b->px->nodes.data[expr];
}

/* One more axis: a loop over [first, first + size) with this counter. */
int build_open_axis(struct builder *b, int counter, int64_t first, int64_t size) {
  const char *name = b->code->variables.data[counter].name;
  b->axis_variable[b->space.open] = counter;
  return loop_space_axis(&b->space, name, first, size);
}

/* How far one step of the axis moves the index; false if not always as far. */
bool build_stride(const struct builder *b, int index, int axis, int64_t *stride) {
  struct affine a;
  *stride = 0;
  if (axis < 0) return true;
  if (!affine_of(b->px, index, &a)) return !px_mentions(b->px, index, axis);
  return affine_stride(b->px, &a, axis, stride);
}

/* The index where the axis is 0, of one with a stride. */
int build_at_zero(struct builder *b, int index, int axis) {
  struct affine a;
  if (!affine_of(b->px, index, &a)) return index;
  for (int i = a.count - 1; i >= 0; i--) {
    const struct px_node *n = node_of(b, a.term[i].expr);
    if (n->op == PX_AXIS && n->integer == axis) affine_drop(&a, i);
  }
  return affine_expr(b->px, &a);
}

/* ---- code ---- */

static bool is_narrow(const struct builder *b, int code) {
  return b->code->exprs.data[code].type.element == PROGRAM_I32;
}

static int widened(struct builder *b, int code) {
  return code_convert(b->code, code, CODE_INDEX);
}

/* The largest |coef * expr|; INT64_MAX where it is not known. */
static int64_t magnitude(const struct builder *b, int expr, int64_t coef) {
  struct px_range r = px_range(b->px, expr);
  int64_t low, high;
  if (r.overflow || __builtin_mul_overflow(r.low, coef, &low) ||
      __builtin_mul_overflow(r.high, coef, &high) || low == INT64_MIN || high == INT64_MIN)
    return INT64_MAX;
  low = low < 0 ? -low : low;
  high = high < 0 ? -high : high;
  return low > high ? low : high;
}

/* Every partial sum of what is narrow fits in 32 bits. */
static bool narrow_sum_fits(const struct builder *b, const struct affine *t, const int *code) {
  int64_t sum = t->constant < 0 ? -t->constant : t->constant;
  for (int i = 0; i < t->count; i++) {
    if (!is_narrow(b, code[i])) continue;
    int64_t most = magnitude(b, t->term[i].expr, t->term[i].coef);
    if (__builtin_add_overflow(sum, most, &sum)) return false;
  }
  return sum <= INT32_MAX;
}

static bool never_negative(const struct builder *b, int expr) {
  struct px_range r = px_range(b->px, expr);
  return !r.overflow && r.low >= 0;
}

/* An operation on two indices; of two narrow ones it is narrow where the result fits. */
static int binary_op(struct builder *b, int op, int expr, const struct px_node *n) {
  int x = build_index(b, n->arg[0]), y = n->arg[1] < 0 ? -1 : build_index(b, n->arg[1]);
  bool narrow = is_narrow(b, x) && (y < 0 || is_narrow(b, y));
  if (narrow && magnitude(b, expr, 1) > INT32_MAX) {
    x = widened(b, x);
    narrow = false;
  }
  return code_operation(b->code, op, code_type(narrow ? PROGRAM_I32 : CODE_INDEX, 1), x, y, -1);
}

/* In 64 bits: the helpers of printers are. */
static int least_or_most(struct builder *b, const struct px_node *n) {
  int x = build_index(b, n->arg[0]), y = build_index(b, n->arg[1]);
  return code_operation(b->code, n->op, code_type(CODE_INDEX, 1), x, y, -1);
}

static int choose(struct builder *b, const struct px_node *n) {
  int condition = build_condition(b, n->arg[0]);
  int x = build_index(b, n->arg[1]), y = build_index(b, n->arg[2]);
  bool narrow = is_narrow(b, x) && is_narrow(b, y);
  return code_operation(b->code, PX_SELECT, code_type(narrow ? PROGRAM_I32 : CODE_INDEX, 1),
                        condition, x, y);
}

/* What is no sum. */
static int build_term(struct builder *b, int expr) {
  struct px_node n = *node_of(b, expr); /* a copy: the scratch program may grow */
  bool floors = (n.op == PX_DIV || n.op == PX_MOD) && !never_negative(b, n.arg[0]);
  switch (n.op) {
    case PX_AXIS: return code_variable_at(b->code, b->axis_variable[n.integer], 0);
    case PX_DIV: return binary_op(b, floors ? CODE_FLOOR_DIV : PX_DIV, expr, &n);
    case PX_MOD: return binary_op(b, floors ? CODE_FLOOR_MOD : PX_MOD, expr, &n);
    case PX_MIN:
    case PX_MAX: return least_or_most(b, &n);
    case PX_MUL: return binary_op(b, PX_MUL, expr, &n);
    case PX_LOAD: {
      int place = build_index(b, b->px->indices.data[n.first]);
      return code_element(b->code, b->tensor_variable[n.tensor], place);
    }
    default: return choose(b, &n); /* PX_SELECT */
  }
}

/* The sum in the order of the text: what is added before what is taken away. */
static int build_sum(struct builder *b, const struct affine *t) {
  struct affine_term term[AFFINE_TERMS];
  int code[AFFINE_TERMS], count = 0;
  for (int i = 0; i < t->count; i++) code[i] = build_term(b, t->term[i].expr);
  bool fits = narrow_sum_fits(b, t, code);
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < t->count; i++) {
      int64_t coef = t->term[i].coef;
      if ((coef < 0) != pass) continue;
      bool load = node_of(b, t->term[i].expr)->op == PX_LOAD;
      if ((load && coef != 1) || !fits) code[i] = widened(b, code[i]);
      term[count++] = (struct affine_term){code[i], coef};
    }
  return code_sum(b->code, term, count, t->constant);
}

int build_index(struct builder *b, int expr) {
  struct affine t;
  struct px_node n = *node_of(b, expr);
  if (!affine_of(b->px, expr, &t)) return binary_op(b, n.op, expr, &n); /* a very long sum */
  if (t.count == 1 && !t.constant && t.term[0].coef == 1) return build_term(b, t.term[0].expr);
  return build_sum(b, &t);
}
