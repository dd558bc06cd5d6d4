/* Index expressions as affine forms. See affine.h. */
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

/* Adds the terms of times * expr. */
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

struct px_range affine_range(const struct program *p, const struct affine *a, uint32_t fixed) {
  struct px_range sum = {.low = a->constant, .high = a->constant};
  for (int i = 0; i < a->count && !sum.overflow; i++) {
    struct px_range r = px_range(p, a->term[i].expr);
    int64_t coef = a->term[i].coef, low, high;
    if (!r.overflow && fixed && !(r.axes & ~fixed)) continue;
    sum.overflow = r.overflow || __builtin_mul_overflow(coef < 0 ? r.high : r.low, coef, &low) ||
                   __builtin_mul_overflow(coef < 0 ? r.low : r.high, coef, &high) ||
                   __builtin_add_overflow(sum.low, low, &sum.low) ||
                   __builtin_add_overflow(sum.high, high, &sum.high);
  }
  return sum;
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
