/* The builder's expressions: index arithmetic that simplifies itself. See program.h.
 *
 * The rules are identities of integers with floor division, used only where the sizes of the axes
 * prove them (index_range.c). Values are left as they are, except for factors of one.
 */
#include <assert.h>
#include <string.h>

#include "program/program.h"

/* A sum taken apart: coef * expr, or a constant where expr is -1. */
enum { TERMS = 32 };
struct term {
  int expr;
  int64_t coef;
};
struct sum {
  struct term term[TERMS];
  int count;
};

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

/* `a` is `x op constant`. */
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

static bool same(const struct program *p, int a, int b) {
  if (a == b) return true;
  if (a < 0 || b < 0) return false;
  const struct px_node *x = &p->nodes.data[a], *y = &p->nodes.data[b];
  if (x->op != y->op || x->size != y->size || x->sort != PX_INDEX) return false;
  if (x->op == PX_INT) return x->integer == y->integer;
  if (x->op == PX_AXIS) return x->integer == y->integer && x->tensor == y->tensor;
  if (x->op == PX_SELECT || x->op == PX_LOAD) return false;
  return same(p, x->arg[0], y->arg[0]) && same(p, x->arg[1], y->arg[1]);
}

/* x/m*m + x%m = x; `a` may hold x/m in a simplified form. */
static int rejoin(struct program *p, int a, int b) {
  int x, z;
  int64_t m, k;
  if (!with_constant(p, b, PX_MOD, &x, &m) || !with_constant(p, a, PX_MUL, &z, &k) || k != m)
    return -1;
  int nodes = p->nodes.count;
  bool whole = same(p, z, px_div(p, x, px_int(p, m)));
  if (!p->failed) p->nodes.count = nodes; /* the trial's nodes are used by nothing */
  return whole ? x : -1;
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

int px_add(struct program *p, int a, int b) {
  int64_t c;
  if (!both_index(p, a, b)) return raw(p, PX_ADD, a, b);
  if (constant(p, b, &c)) return add_constant(p, a, c);
  if (constant(p, a, &c)) return add_constant(p, b, c);
  int whole = rejoin(p, a, b);
  return whole >= 0 ? whole : raw(p, PX_ADD, a, b);
}

int px_sub(struct program *p, int a, int b) {
  int64_t c;
  if (!both_index(p, a, b)) return raw(p, PX_SUB, a, b);
  if (constant(p, b, &c) && c != INT64_MIN) return add_constant(p, a, -c);
  if (constant(p, a, &c) && c == 0) return px_neg(p, b);
  if (same(p, a, b)) return px_int(p, 0);
  return raw(p, PX_SUB, a, b);
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

/* Adds times * expr to the sum; false if it has too many terms. */
static bool take_apart(const struct program *p, int expr, int64_t times, struct sum *s) {
  const struct px_node *n = &p->nodes.data[expr];
  struct term t = {expr, times};
  int64_t k, product;
  if (n->op == PX_ADD)
    return take_apart(p, n->arg[0], times, s) && take_apart(p, n->arg[1], times, s);
  if (n->op == PX_SUB && times != INT64_MIN)
    return take_apart(p, n->arg[0], times, s) && take_apart(p, n->arg[1], -times, s);
  if (n->op == PX_MUL && constant(p, n->arg[1], &k) && !__builtin_mul_overflow(k, times, &product))
    return take_apart(p, n->arg[0], product, s);
  if (n->op == PX_INT && !__builtin_mul_overflow(n->integer, times, &product))
    t = (struct term){-1, product};
  if (s->count == TERMS) return false;
  s->term[s->count++] = t;
  return true;
}

static int put_together(struct program *p, const struct sum *s) {
  int expr = px_int(p, 0);
  for (int i = 0; i < s->count; i++) {
    struct term t = s->term[i];
    if (t.expr < 0)
      expr = px_add(p, expr, px_int(p, t.coef));
    else if (t.coef == -1)
      expr = px_sub(p, expr, t.expr);
    else
      expr = px_add(p, expr, mul_constant(p, t.expr, t.coef));
  }
  return expr;
}

/* s = k*multiple + rest */
static void divide_terms(const struct sum *s, int64_t k, struct sum *multiple, struct sum *rest) {
  multiple->count = rest->count = 0;
  for (int i = 0; i < s->count; i++) {
    struct term t = s->term[i];
    if (t.coef % k)
      rest->term[rest->count++] = t;
    else
      multiple->term[multiple->count++] = (struct term){t.expr, t.coef / k};
  }
}

/* The expression lies in [0, k). */
static bool below(const struct program *p, int expr, int64_t k) {
  if (p->failed) return false;
  struct px_range r = px_range(p, expr);
  return !r.overflow && r.low >= 0 && r.high < k;
}

/* Finds k | m with s = k*u + v and 0 <= v < k, the largest; false if there is none. */
static bool split_at(struct program *p, const struct sum *s, int64_t m, int64_t *k, int *u,
                     int *v) {
  *k = 1;
  for (int i = 0; i < s->count; i++) {
    int64_t c = s->term[i].coef < 0 ? -s->term[i].coef : s->term[i].coef;
    struct sum multiple, rest;
    if (s->term[i].expr < 0 || c <= *k || m % c) continue;
    divide_terms(s, c, &multiple, &rest);
    int low = put_together(p, &rest);
    if (!below(p, low, c)) continue;
    *k = c;
    *u = put_together(p, &multiple);
    *v = low;
  }
  return *k > 1 && !p->failed;
}

/* All values of the expression have the same quotient by m. */
static bool one_quotient(const struct program *p, int expr, int64_t m, int64_t *quotient) {
  if (p->failed) return false;
  struct px_range r = px_range(p, expr);
  *quotient = r.low / m - (r.low % m < 0);
  return !r.overflow && *quotient == r.high / m - (r.high % m < 0);
}

static int div_constant(struct program *p, int a, int64_t m) {
  struct sum s = {.count = 0}, multiple, rest;
  int x, u, v;
  int64_t k, q, product;
  if (m == 1) return a;
  if (one_quotient(p, a, m, &q)) return px_int(p, q);
  if (with_constant(p, a, PX_DIV, &x, &k) && k > 0 && !__builtin_mul_overflow(k, m, &product))
    return div_constant(p, x, product);
  if (!take_apart(p, a, 1, &s)) return raw(p, PX_DIV, a, px_int(p, m));
  divide_terms(&s, m, &multiple, &rest);
  if (multiple.count) {
    int whole = put_together(p, &multiple), part = put_together(p, &rest);
    return p->failed ? -1 : px_add(p, whole, div_constant(p, part, m));
  }
  if (split_at(p, &s, m, &k, &u, &v)) return div_constant(p, u, m / k);
  return p->failed ? -1 : raw(p, PX_DIV, a, px_int(p, m));
}

static int mod_constant(struct program *p, int a, int64_t m) {
  struct sum s = {.count = 0}, multiple, rest;
  int x, u, v;
  int64_t k, q;
  if (m == 1) return px_int(p, 0);
  if (one_quotient(p, a, m, &q)) return px_sub(p, a, px_int(p, q * m));
  if (with_constant(p, a, PX_MOD, &x, &k) && k > 0 && k % m == 0) return mod_constant(p, x, m);
  if (!take_apart(p, a, 1, &s)) return raw(p, PX_MOD, a, px_int(p, m));
  divide_terms(&s, m, &multiple, &rest);
  if (multiple.count) {
    int part = put_together(p, &rest);
    return p->failed ? -1 : mod_constant(p, part, m);
  }
  if (split_at(p, &s, m, &k, &u, &v)) {
    int high = mod_constant(p, u, m / k);
    if (!p->failed && p->nodes.data[high].op != PX_MOD)
      return px_add(p, mul_constant(p, high, k), v);
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

/* -1, 0, 1: a is never more than b, undecided, never less. */
static int order(const struct program *p, int a, int b) {
  struct px_range x = px_range(p, a), y = px_range(p, b);
  if (x.overflow || y.overflow) return 0;
  return x.high <= y.low ? -1 : x.low >= y.high ? 1 : 0;
}

int px_min(struct program *p, int a, int b) {
  int o = both_index(p, a, b) ? order(p, a, b) : 0;
  return o < 0 ? a : o > 0 ? b : raw(p, PX_MIN, a, b);
}

int px_max(struct program *p, int a, int b) {
  int o = both_index(p, a, b) ? order(p, a, b) : 0;
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
  assert(function >= PX_EXP && function <= PX_FLOOR);
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

/* What the ranges say of `a op b`: 1 always, 0 never, -1 it depends. */
static int always(enum px_op op, struct px_range a, struct px_range b) {
  bool less = a.high < b.low, no_more = a.high <= b.low;
  bool more = a.low > b.high, no_less = a.low >= b.high;
  bool equal = a.low == a.high && b.low == b.high && a.low == b.low;
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
  assert(op >= PX_LT && op <= PX_NE);
  if (both_index(p, a, b)) {
    struct px_range x = px_range(p, a), y = px_range(p, b);
    int known = x.overflow || y.overflow ? -1 : always(op, x, y);
    if (known >= 0) return px_bool(p, known);
  }
  return raw(p, op, a, b);
}

int px_and(struct program *p, int a, int b) {
  bool value;
  if (decided(p, a, &value)) return value ? b : a;
  if (decided(p, b, &value)) return value ? a : b;
  return raw(p, PX_AND, a, b);
}

int px_or(struct program *p, int a, int b) {
  bool value;
  if (decided(p, a, &value)) return value ? a : b;
  if (decided(p, b, &value)) return value ? b : a;
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
