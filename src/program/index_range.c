/* Interval analysis of index expressions.
 *
 * An interval is exact if both ends are attained. The ends of f(x) + g(y) are attained if those of
 * f and g are, and f and g share no axis, so that they can be attained together. Intervals of i32
 * elements and of axes with data-dependent bounds are never exact.
 */
#include "base/saturating.h"
#include "program/program.h"

static int64_t floor_div(int64_t a, int64_t b) {
  return a / b - (a % b < 0);
}

static struct px_range interval(struct px_range a, struct px_range b, int64_t low, int64_t high) {
  struct px_range r = {.low = low, .high = high, .axes = a.axes | b.axes, .data = a.data || b.data};
  r.exact = a.exact && b.exact && !(a.axes & b.axes);
  r.overflow = a.overflow || b.overflow || low < -SATURATED || high > SATURATED;
  return r;
}

static struct px_range overflowed(struct px_range a, struct px_range b) {
  return (struct px_range){.overflow = true, .axes = a.axes | b.axes, .data = a.data || b.data};
}

static struct px_range product(struct px_range a, struct px_range b) {
  int64_t ends[4];
  if (__builtin_mul_overflow(a.low, b.low, &ends[0]) ||
      __builtin_mul_overflow(a.low, b.high, &ends[1]) ||
      __builtin_mul_overflow(a.high, b.low, &ends[2]) ||
      __builtin_mul_overflow(a.high, b.high, &ends[3]))
    return overflowed(a, b);
  int64_t low = ends[0], high = ends[0];
  for (int i = 1; i < 4; i++) {
    if (ends[i] < low) low = ends[i];
    if (ends[i] > high) high = ends[i];
  }
  return interval(a, b, low, high);
}

static struct px_range quotient(struct px_range a, struct px_range b) {
  if (b.low <= 0 || b.low != b.high) return overflowed(a, b);
  return interval(a, b, floor_div(a.low, b.low), floor_div(a.high, b.low));
}

static struct px_range remainder_of(struct px_range a, struct px_range b, bool contiguous) {
  int64_t m = b.low;
  if (m <= 0 || m != b.high) return overflowed(a, b);
  int64_t q = floor_div(a.low, m);
  if (q == floor_div(a.high, m)) return interval(a, b, a.low - q * m, a.high - q * m);
  struct px_range r = interval(a, b, 0, m - 1);
  r.exact = contiguous && a.exact;
  return r;
}

static struct px_range axis_range(const struct program_axis *axis, int64_t position) {
  int64_t size = axis->size;
  struct px_range r = {.low = axis->first, .axes = 1u << position, .data = axis->low >= 0};
  r.high = r.low + size - (size > 0);
  r.exact = !r.data;
  r.overflow = size < 1 || size > PROGRAM_ELEMENTS; /* not verified yet */
  return r;
}

uint32_t px_axes(const struct program *p, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  uint32_t axes = 0;
  if (n->op == PX_AXIS) return 1u << n->integer;
  if (n->op == PX_LOAD)
    for (int i = 0; i < p->tensors.data[n->tensor].rank; i++)
      axes |= px_axes(p, p->indices.data[n->first + i]);
  for (int i = n->op == PX_SELECT; i < 3; i++) /* the range is that of both branches */
    if (n->arg[i] >= 0) axes |= px_axes(p, n->arg[i]);
  return axes;
}

static struct px_range load_range(const struct program *p, const struct px_node *n) {
  const struct program_tensor *t = &p->tensors.data[n->tensor];
  struct px_range r = {.low = t->least, .high = t->most, .data = true};
  r.axes = px_axes(p, (int)(n - p->nodes.data));
  return r;
}

static struct px_range binary_range(const struct program *p, const struct px_node *n) {
  struct px_range a = px_range(p, n->arg[0]), b = px_range(p, n->arg[1]);
  if (a.overflow || b.overflow) return overflowed(a, b);
  switch (n->op) { /* within 2^62 each, so that sums fit */
    case PX_ADD: return interval(a, b, a.low + b.low, a.high + b.high);
    case PX_SUB: return interval(a, b, a.low - b.high, a.high - b.low);
    case PX_MUL: return product(a, b);
    case PX_DIV: return quotient(a, b);
    case PX_MOD: return remainder_of(a, b, p->nodes.data[n->arg[0]].op == PX_AXIS);
    case PX_MIN: return interval(a, b, int_min(a.low, b.low), int_min(a.high, b.high));
    case PX_MAX: return interval(a, b, int_max(a.low, b.low), int_max(a.high, b.high));
    default: return overflowed(a, b);
  }
}

struct px_range px_range(const struct program *p, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  struct px_range none = {.exact = true}, a, b;
  switch (n->op) {
    case PX_INT: return interval(none, none, n->integer, n->integer);
    case PX_AXIS: return axis_range(&p->tensors.data[n->tensor].axes[n->integer], n->integer);
    case PX_LOAD: return load_range(p, n);
    case PX_NEG:
      a = px_range(p, n->arg[0]);
      return a.overflow ? a : interval(a, none, -a.high, -a.low);
    case PX_SELECT:
      a = px_range(p, n->arg[1]);
      b = px_range(p, n->arg[2]);
      if (a.overflow || b.overflow) return overflowed(a, b);
      a = interval(a, b, int_min(a.low, b.low), int_max(a.high, b.high));
      a.exact = false;
      return a;
    default: return binary_range(p, n);
  }
}

void px_bounds(const struct program *p, struct program_axis *axis) {
  struct px_range low = px_range(p, axis->low), high = px_range(p, axis->high);
  bool known = !low.overflow && !high.overflow;
  axis->first = known ? low.low : 0;
  axis->size = known && high.high > low.low ? high.high - low.low : 0;
}
