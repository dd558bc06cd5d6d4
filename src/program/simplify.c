/* Simplification of index arithmetic in the builder. See program.h.
 *
 * The rules are identities of integers with floor division, applied only where the sizes of the
 * axes prove them (index_range.c). Sums are split into terms (affine.h), where equal expressions
 * merge: terms cancel, and quotient and remainder combine. A sum in which nothing merges stays as
 * it was written. Values are not simplified, except for factors of one.
 */
#include <assert.h>
#include <stdlib.h>

#include "program/affine.h"

static int raw(struct program *p, enum px_op op, int a, int b) {
  return px_raw(p, op, a, b, -1, 0, 0);
}

static bool usable(const struct program *p, int a) {
  return !p->failed && a >= 0 && a < p->nodes.count;
}

static bool both_index(const struct program *p, int a, int b) {
  return usable(p, a) && usable(p, b) && p->nodes.data[a].sort == PX_INDEX &&
         p->nodes.data[b].sort == PX_INDEX;
}

static bool constant(const struct program *p, int a, int64_t *value) {
  if (p->nodes.data[a].op != PX_INT) return false;
  *value = p->nodes.data[a].integer;
  return true;
}

/* Whether `a` is `x op constant`. */
static bool with_constant(const struct program *p, int a, enum px_op op, int *x, int64_t *value) {
  const struct px_node *n = &p->nodes.data[a];
  if (n->op != op || !constant(p, n->arg[1], value)) return false;
  *x = n->arg[0];
  return true;
}

static bool is_one(const struct program *p, int a) {
  const struct px_node *n = &p->nodes.data[a];
  return (n->op == PX_NUMBER && n->number == 1) || (n->op == PX_INT && n->integer == 1);
}

static int add_constant(struct program *p, int a, int64_t c) {
  int x;
  int64_t k, sum;
  if (c == 0) return a;
  if (constant(p, a, &k) && !__builtin_add_overflow(k, c, &sum)) return px_int(p, sum);
  if (with_constant(p, a, PX_ADD, &x, &k) && !__builtin_add_overflow(k, c, &sum))
    return add_constant(p, x, sum);
  if (with_constant(p, a, PX_SUB, &x, &k) && !__builtin_sub_overflow(c, k, &sum))
    return add_constant(p, x, sum);
  if (c < 0 && c != INT64_MIN) return raw(p, PX_SUB, a, px_int(p, -c));
  return raw(p, PX_ADD, a, px_int(p, c));
}

static int mul_constant(struct program *p, int a, int64_t c) {
  int x;
  int64_t k, product;
  if (c == 0) return px_int(p, 0);
  if (c == 1) return a;
  if (constant(p, a, &k) && !__builtin_mul_overflow(k, c, &product)) return px_int(p, product);
  if (with_constant(p, a, PX_MUL, &x, &k) && !__builtin_mul_overflow(k, c, &product))
    return mul_constant(p, x, product);
  return raw(p, PX_MUL, a, px_int(p, c));
}

/* Whether `q` is x/m as px_div builds it. */
static bool is_quotient(const struct program *p, int q, int x, int64_t m) {
  int y, z;
  int64_t k, n, product;
  if (q < 0 || !with_constant(p, q, PX_DIV, &y, &n)) return false;
  if (n == m && px_same(p, y, x)) return true;
  return with_constant(p, x, PX_DIV, &z, &k) && !__builtin_mul_overflow(k, m, &product) &&
         n == product && px_same(p, y, z);
}

/* The term that the sum starts with, positive if possible; -1: the constant. */
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

/* Combines two terms, high and low, into one. With q = x/m,
 *
 *     q*m + x%m = x        q%n*m + x%m = x%(n*m)        x - q*m = x%m
 */
static bool join_pair(struct program *p, struct affine_term high, struct affine_term low,
                      struct affine_term *joint) {
  int x, q;
  int64_t m, n, product;
  *joint = low;
  if (high.coef == INT64_MIN || high.coef % low.coef) return false;
  int64_t times = high.coef / low.coef;
  if (times < 0 && is_quotient(p, high.expr, low.expr, -times)) {
    joint->expr = raw(p, PX_MOD, low.expr, px_int(p, -times));
    return joint->expr >= 0;
  }
  if (!with_constant(p, low.expr, PX_MOD, &x, &m) || m != times) return false;
  joint->expr = x;
  if (is_quotient(p, high.expr, x, m)) return true;
  if (!with_constant(p, high.expr, PX_MOD, &q, &n) || __builtin_mul_overflow(m, n, &product) ||
      !is_quotient(p, q, x, m))
    return false;
  joint->expr = raw(p, PX_MOD, x, px_int(p, product));
  return joint->expr >= 0;
}

static bool join_terms(struct program *p, struct affine *s) {
  struct affine_term joint;
  for (int i = 0; i < s->count; i++)
    for (int j = 0; j < s->count; j++)
      if (i != j && join_pair(p, s->term[i], s->term[j], &joint)) {
        s->term[i] = joint;
        affine_drop(s, j);
        return true;
      }
  return false;
}

/* a + times*b if terms merge in it; -1 otherwise. */
static int meet(struct program *p, int a, int b, int64_t times) {
  struct affine s;
  if (!affine_of(p, a, &s)) return -1;
  s.merged = false;
  if (!affine_add(p, &s, b, times)) return -1;
  bool changed = s.merged;
  while (join_terms(p, &s)) changed = true;
  return changed ? affine_expr(p, &s) : -1;
}

/* Removes the constant at the end of `a` and adds it to *c; false if that overflows 64 bits. */
static bool strip_constant(const struct program *p, int *a, int64_t sign, int64_t *c) {
  int x;
  int64_t k;
  if (with_constant(p, *a, PX_SUB, &x, &k))
    sign = -sign;
  else if (!with_constant(p, *a, PX_ADD, &x, &k))
    return true;
  *a = x;
  return !__builtin_mul_overflow(k, sign, &k) && !__builtin_add_overflow(*c, k, c);
}

/* Moves constants to the end: h + (kh-1) becomes h+kh-1. */
static int join_raw(struct program *p, enum px_op op, int a, int b) {
  int x = a, y = b;
  int64_t c = 0;
  if (!strip_constant(p, &x, 1, &c) || !strip_constant(p, &y, op == PX_SUB ? -1 : 1, &c))
    return raw(p, op, a, b);
  if (x == a && y == b) return raw(p, op, a, b);
  int sum = op == PX_SUB ? px_sub(p, x, y) : px_add(p, x, y);
  return p->failed ? -1 : add_constant(p, sum, c);
}

int px_add(struct program *p, int a, int b) {
  int64_t c;
  if (!both_index(p, a, b)) return raw(p, PX_ADD, a, b);
  if (constant(p, b, &c)) return add_constant(p, a, c);
  if (constant(p, a, &c)) return add_constant(p, b, c);
  int met = meet(p, a, b, 1);
  return met >= 0 ? met : join_raw(p, PX_ADD, a, b);
}

int px_sub(struct program *p, int a, int b) {
  int64_t c;
  if (!both_index(p, a, b)) return raw(p, PX_SUB, a, b);
  if (constant(p, b, &c) && c != INT64_MIN) return add_constant(p, a, -c);
  if (constant(p, a, &c) && c == 0) return px_neg(p, b);
  int met = meet(p, a, b, -1);
  return met >= 0 ? met : join_raw(p, PX_SUB, a, b);
}

int px_mul(struct program *p, int a, int b) {
  int64_t c;
  if (both_index(p, a, b)) {
    if (constant(p, b, &c)) return mul_constant(p, a, c);
    if (constant(p, a, &c)) return mul_constant(p, b, c);
  } else if (usable(p, a) && usable(p, b)) {
    if (is_one(p, b) && p->nodes.data[a].sort == PX_VALUE) return a;
    if (is_one(p, a) && p->nodes.data[b].sort == PX_VALUE) return b;
  }
  return raw(p, PX_MUL, a, b);
}

/* Splits s = k*multiple + rest; false if no term is a multiple of k. */
static bool divide_terms(const struct affine *s, int64_t k, struct affine *multiple,
                         struct affine *rest) {
  bool divides = s->constant % k == 0;
  *multiple = (struct affine){.constant = divides ? s->constant / k : 0};
  *rest = (struct affine){.constant = divides ? 0 : s->constant};
  for (int i = 0; i < s->count; i++) {
    struct affine_term t = s->term[i];
    if (t.coef % k)
      rest->term[rest->count++] = t;
    else
      multiple->term[multiple->count++] = (struct affine_term){t.expr, t.coef / k};
  }
  return multiple->count || multiple->constant;
}

/* Whether the expression is within [0, k). */
static bool below(const struct program *p, int expr, int64_t k) {
  if (p->failed) return false;
  struct px_range r = px_range(p, expr);
  return !r.overflow && r.low >= 0 && r.high < k;
}

/* Finds k | m with s = k*u + v and 0 <= v < k, the largest; false if there is none. */
static bool split_at(struct program *p, const struct affine *s, int64_t m, int64_t *k, int *u,
                     int *v) {
  *k = 1;
  for (int i = 0; i < s->count; i++) {
    int64_t c = s->term[i].coef < -INT64_MAX ? 0 : llabs(s->term[i].coef);
    struct affine multiple, rest;
    if (c <= *k || m % c) continue;
    divide_terms(s, c, &multiple, &rest);
    int low = affine_expr(p, &rest);
    if (!below(p, low, c)) continue;
    *k = c;
    *u = affine_expr(p, &multiple);
    *v = low;
  }
  return *k > 1 && !p->failed;
}

/* Whether all values of the expression have the same quotient by m. */
static bool one_quotient(const struct program *p, int expr, int64_t m, int64_t *quotient) {
  if (p->failed) return false;
  struct px_range r = px_range(p, expr);
  *quotient = r.low / m - (r.low % m < 0);
  return !r.overflow && *quotient == r.high / m - (r.high % m < 0);
}

static int div_constant(struct program *p, int a, int64_t m) {
  struct affine s, multiple, rest;
  int x, u, v;
  int64_t k, q, product;
  if (m == 1) return a;
  if (one_quotient(p, a, m, &q)) return px_int(p, q);
  if (with_constant(p, a, PX_DIV, &x, &k) && k > 0 && !__builtin_mul_overflow(k, m, &product))
    return div_constant(p, x, product);
  if (!affine_of(p, a, &s)) return raw(p, PX_DIV, a, px_int(p, m));
  if (divide_terms(&s, m, &multiple, &rest)) {
    int whole = affine_expr(p, &multiple), part = affine_expr(p, &rest);
    return p->failed ? -1 : px_add(p, whole, div_constant(p, part, m));
  }
  if (split_at(p, &s, m, &k, &u, &v)) return div_constant(p, u, m / k);
  return p->failed ? -1 : raw(p, PX_DIV, a, px_int(p, m));
}

static int mod_constant(struct program *p, int a, int64_t m) {
  struct affine s, multiple, rest;
  int x, u, v;
  int64_t k, q;
  if (m == 1) return px_int(p, 0);
  if (one_quotient(p, a, m, &q)) return px_sub(p, a, px_int(p, q * m));
  if (with_constant(p, a, PX_MOD, &x, &k) && k > 0 && k % m == 0) return mod_constant(p, x, m);
  if (!affine_of(p, a, &s)) return raw(p, PX_MOD, a, px_int(p, m));
  if (divide_terms(&s, m, &multiple, &rest)) {
    int part = affine_expr(p, &rest);
    return p->failed ? -1 : mod_constant(p, part, m);
  }
  if (split_at(p, &s, m, &k, &u, &v)) {
    int high = mod_constant(p, u, m / k);
    return p->failed ? -1 : px_add(p, mul_constant(p, high, k), v);
  }
  return p->failed ? -1 : raw(p, PX_MOD, a, px_int(p, m));
}

int px_div(struct program *p, int a, int b) {
  int64_t m;
  if (both_index(p, a, b) && constant(p, b, &m) && m > 0) return div_constant(p, a, m);
  if (usable(p, a) && usable(p, b) && is_one(p, b) && p->nodes.data[a].sort == PX_VALUE) return a;
  return raw(p, PX_DIV, a, b);
}

int px_mod(struct program *p, int a, int b) {
  int64_t m;
  if (both_index(p, a, b) && constant(p, b, &m) && m > 0) return mod_constant(p, a, m);
  return raw(p, PX_MOD, a, b);
}

/* The range of a - b, which is narrower than the difference of the ranges if they share terms. */
static struct px_range difference(struct program *p, int a, int b) {
  struct px_range unknown = {.overflow = true};
  if (px_range(p, a).overflow || px_range(p, b).overflow) return unknown;
  int nodes = p->nodes.count, d = px_sub(p, a, b);
  if (d < 0) return unknown;
  struct px_range r = px_range(p, d);
  p->nodes.count = nodes; /* drops temporary nodes */
  return r;
}

/* -1: a <= b always; 1: a >= b always; 0: unknown. */
static int order(struct program *p, int a, int b) {
  if (!both_index(p, a, b)) return 0;
  struct px_range d = difference(p, a, b);
  return d.overflow ? 0 : d.high <= 0 ? -1 : d.low >= 0 ? 1 : 0;
}

int px_min(struct program *p, int a, int b) {
  int o = order(p, a, b);
  return o < 0 ? a : o > 0 ? b : raw(p, PX_MIN, a, b);
}

int px_max(struct program *p, int a, int b) {
  int o = order(p, a, b);
  return o < 0 ? b : o > 0 ? a : raw(p, PX_MAX, a, b);
}

int px_neg(struct program *p, int a) {
  if (usable(p, a)) {
    struct px_node n = p->nodes.data[a];
    if (n.op == PX_NEG) return n.arg[0];
    if (n.op == PX_NUMBER) return px_number(p, -n.number);
    if (n.op == PX_INT && n.integer != INT64_MIN) return px_int(p, -n.integer);
  }
  return raw(p, PX_NEG, a, -1);
}

int px_real(struct program *p, int index) {
  if (usable(p, index) && p->nodes.data[index].op == PX_INT)
    return px_number(p, (double)p->nodes.data[index].integer);
  return raw(p, PX_REAL, index, -1);
}

int px_load(struct program *p, int tensor, int rank, const int *indices) {
  return px_raw_load(p, tensor, rank, indices, 0, 0);
}

int px_call(struct program *p, enum px_op function, int a) {
  assert(scalar_ops[function].sorts == SORTS_VALUES && scalar_ops[function].arity == 1);
  return raw(p, function, a, -1);
}

int px_pow(struct program *p, int a, int b) {
  return raw(p, PX_POW, a, b);
}

static bool decided(const struct program *p, int a, bool *value) {
  if (!usable(p, a) || p->nodes.data[a].op != PX_BOOL) return false;
  *value = p->nodes.data[a].integer;
  return true;
}

int px_select(struct program *p, int condition, int then, int other) {
  bool value;
  if (decided(p, condition, &value)) return value ? then : other;
  return px_raw(p, PX_SELECT, condition, then, other, 0, 0);
}

/* Decides `a op b` by the range of a - b: 1 always, 0 never, -1 unknown. */
static int always(enum px_op op, struct px_range d) {
  bool less = d.high < 0, no_more = d.high <= 0, more = d.low > 0, no_less = d.low >= 0;
  bool equal = no_more && no_less;
  switch (op) {
    case PX_LT: return less ? 1 : no_less ? 0 : -1;
    case PX_LE: return no_more ? 1 : more ? 0 : -1;
    case PX_GT: return more ? 1 : no_more ? 0 : -1;
    case PX_GE: return no_less ? 1 : less ? 0 : -1;
    case PX_EQ: return equal ? 1 : less || more ? 0 : -1;
    default: return equal ? 0 : less || more ? 1 : -1;
  }
}

int px_compare(struct program *p, enum px_op op, int a, int b) {
  assert(scalar_ops[op].sorts == SORTS_TEST);
  if (both_index(p, a, b)) {
    struct px_range d = difference(p, a, b);
    int known = d.overflow ? -1 : always(op, d);
    if (known >= 0) return px_bool(p, known);
  }
  return raw(p, op, a, b);
}

int px_and(struct program *p, int a, int b) {
  bool value;
  if (decided(p, a, &value)) return value ? b : a;
  if (decided(p, b, &value)) return value ? a : b;
  if (!usable(p, a) || !usable(p, b)) return raw(p, PX_AND, a, b);
  struct px_node right = p->nodes.data[b];
  if (px_same(p, a, b)) return a;
  if (right.op == PX_AND) return px_and(p, px_and(p, a, right.arg[0]), right.arg[1]);
  return raw(p, PX_AND, a, b);
}

int px_or(struct program *p, int a, int b) {
  bool value;
  if (decided(p, a, &value)) return value ? a : b;
  if (decided(p, b, &value)) return value ? b : a;
  if (usable(p, a) && usable(p, b) && px_same(p, a, b)) return a;
  return raw(p, PX_OR, a, b);
}

int px_not(struct program *p, int a) {
  bool value;
  if (decided(p, a, &value)) return px_bool(p, !value);
  if (usable(p, a) && p->nodes.data[a].op == PX_NOT) return p->nodes.data[a].arg[0];
  return raw(p, PX_NOT, a, -1);
}

int px_inside(struct program *p, int a, int64_t low, int64_t high) {
  int x;
  int64_t k;
  if (usable(p, a) && with_constant(p, a, PX_ADD, &x, &k))
    return px_inside(p, x, low - k, high - k);
  if (usable(p, a) && with_constant(p, a, PX_SUB, &x, &k))
    return px_inside(p, x, low + k, high + k);
  return px_and(p, px_compare(p, PX_LE, px_int(p, low), a),
                px_compare(p, PX_LT, a, px_int(p, high)));
}
