/* Index expressions as sums: see affine.h. */
#include "program/affine.h"

#include <string.h>

void affine_drop(struct affine *a, int term) {
  a->count--;
  memmove(&a->term[term], &a->term[term + 1], (size_t)(a->count - term) * sizeof *a->term);
}

static bool add_term(const struct program *p, struct affine *a, int expr, int64_t coef) {
  int64_t sum;
  for (int i = 0; i < a->count; i++)
    if (px_same(p, a->term[i].expr, expr) && !__builtin_add_overflow(a->term[i].coef, coef, &sum)) {
      a->term[i].coef = sum;
      return a->merged = true;
    }
  if (a->count == AFFINE_TERMS) return false;
  a->term[a->count++] = (struct affine_term){expr, coef};
  return true;
}

static bool add_constant(const struct program *p, struct affine *a, int expr, int64_t times) {
  int64_t product, sum;
  if (__builtin_mul_overflow(p->nodes.data[expr].integer, times, &product) ||
      __builtin_add_overflow(a->constant, product, &sum))
    return add_term(p, a, expr, times);
  a->merged = a->merged || (a->constant && product);
  a->constant = sum;
  return true;
}

/* times * expr, where one side of the product is an integer */
static bool take_apart(const struct program *p, struct affine *a, int expr, int64_t times);

static bool take_product(const struct program *p, struct affine *a, int expr, int64_t times) {
  const struct px_node *n = &p->nodes.data[expr];
  int64_t product;
  for (int i = 1; i >= 0; i--) {
    const struct px_node *factor = &p->nodes.data[n->arg[i]];
    if (factor->op == PX_INT && !__builtin_mul_overflow(times, factor->integer, &product))
      return take_apart(p, a, n->arg[1 - i], product);
  }
  return add_term(p, a, expr, times);
}

static bool take_apart(const struct program *p, struct affine *a, int expr, int64_t times) {
  const struct px_node *n = &p->nodes.data[expr];
  bool negated = n->op == PX_SUB || n->op == PX_NEG;
  if (negated && times == INT64_MIN) return add_term(p, a, expr, times);
  switch (n->op) {
    case PX_INT: return add_constant(p, a, expr, times);
    case PX_NEG: return take_apart(p, a, n->arg[0], -times);
    case PX_ADD:
    case PX_SUB:
      return take_apart(p, a, n->arg[0], times) &&
             take_apart(p, a, n->arg[1], negated ? -times : times);
    case PX_MUL: return take_product(p, a, expr, times);
    default: return add_term(p, a, expr, times);
  }
}

bool affine_add(const struct program *p, struct affine *a, int expr, int64_t times) {
  if (!take_apart(p, a, expr, times)) return false;
  for (int i = a->count - 1; i >= 0; i--)
    if (!a->term[i].coef) affine_drop(a, i);
  return true;
}

bool affine_of(const struct program *p, int expr, struct affine *a) {
  a->count = 0;
  a->constant = 0;
  a->merged = false;
  return affine_add(p, a, expr, 1);
}

/* The term to begin with; -1: the constant. */
static int leading(const struct affine *a) {
  for (int i = 0; i < a->count; i++)
    if (a->term[i].coef > 0) return i;
  return a->constant || !a->count ? -1 : 0;
}

/* sum + term; -1 is the empty sum */
static int join(struct program *p, int sum, struct affine_term t) {
  if (p->failed) return -1;
  bool minus = t.coef < 0 && t.coef != INT64_MIN;
  int term = px_mul(p, t.expr, px_int(p, minus ? -t.coef : t.coef));
  if (sum < 0) return minus ? px_neg(p, term) : term;
  return px_raw(p, minus ? PX_SUB : PX_ADD, sum, term, -1, 0, 0);
}

int affine_expr(struct program *p, const struct affine *a) {
  int first = leading(a);
  int sum = first < 0 ? px_int(p, a->constant) : join(p, -1, a->term[first]);
  for (int i = 0; i < a->count; i++)
    if (i != first) sum = join(p, sum, a->term[i]);
  return first < 0 || !a->constant ? sum : px_add(p, sum, px_int(p, a->constant));
}

struct px_range affine_range(const struct program *p, const struct affine *a, uint32_t still) {
  struct px_range sum = {.low = a->constant, .high = a->constant};
  for (int i = 0; i < a->count && !sum.overflow; i++) {
    struct px_range r = px_range(p, a->term[i].expr);
    int64_t coef = a->term[i].coef, low, high;
    if (!r.overflow && still && !(r.axes & ~still)) continue;
    sum.overflow = r.overflow || __builtin_mul_overflow(coef < 0 ? r.high : r.low, coef, &low) ||
                   __builtin_mul_overflow(coef < 0 ? r.low : r.high, coef, &high) ||
                   __builtin_add_overflow(sum.low, low, &sum.low) ||
                   __builtin_add_overflow(sum.high, high, &sum.high);
  }
  return sum;
}

bool px_mentions(const struct program *p, int expr, int axis) {
  if (expr < 0 || axis < 0) return false;
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op == PX_AXIS) return n->integer == axis;
  if (n->op == PX_LOAD) {
    for (int i = 0; i < p->tensors.data[n->tensor].rank; i++)
      if (px_mentions(p, p->indices.data[n->first + i], axis)) return true;
    return false;
  }
  return px_mentions(p, n->arg[0], axis) || px_mentions(p, n->arg[1], axis) ||
         px_mentions(p, n->arg[2], axis);
}

bool affine_stride(const struct program *p, const struct affine *a, int axis, int64_t *stride) {
  *stride = 0;
  for (int i = 0; i < a->count; i++) {
    const struct px_node *n = &p->nodes.data[a->term[i].expr];
    if (n->op == PX_AXIS && n->integer == axis)
      *stride = a->term[i].coef;
    else if (px_mentions(p, a->term[i].expr, axis))
      return false;
  }
  return true;
}
