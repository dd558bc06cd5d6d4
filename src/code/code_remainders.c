/* One division for a quotient and its remainder: x % n becomes x - x/n*n in a sum that has x/n. See
 * code.h.
 *
 *     X[(ind[k] / 192)*3712 + ind[k] % 192]    ->    X[ind[k] + (ind[k] / 192)*3520]
 *
 * Only for indices that are read from memory. Keeps: the value of each index.
 */
#include "code/code.h"

static const struct code_expr *expr_at(const struct code *c, int expr) {
  return &c->exprs.data[expr];
}

static bool reads(const struct code *c, int expr) {
  if (expr < 0) return false;
  const struct code_expr *e = expr_at(c, expr);
  if (e->op == CODE_ELEMENT) return true;
  for (int i = 0; i < e->count; i++)
    if (reads(c, c->terms.data[e->first + i].expr)) return true;
  return reads(c, e->arg[0]) || reads(c, e->arg[1]);
}

/* An operation, of which there is an index of 64 bits perhaps: x / n or x % n. */
static const struct code_expr *of(const struct code *c, int expr, int op) {
  const struct code_expr *e = expr_at(c, code_bare(c, expr));
  return e->op == op && expr_at(c, e->arg[1])->op == PX_INT ? e : NULL;
}

/* The terms coef*(x % n) and other*(x / n) of a sum. */
static bool join(struct code *c, struct affine_term *remainder, struct affine_term *quotient) {
  const struct code_expr *r = of(c, remainder->expr, PX_MOD), *q = of(c, quotient->expr, PX_DIV);
  int64_t product, rest;
  if (!r || !q || !code_same(c, r->arg[0], q->arg[0]) || !code_same(c, r->arg[1], q->arg[1]))
    return false;
  if (!reads(c, r->arg[0])) return false;
  int64_t by = expr_at(c, r->arg[1])->integer;
  if (__builtin_mul_overflow(remainder->coef, by, &product) ||
      __builtin_sub_overflow(quotient->coef, product, &rest) || rest == 0)
    return false;
  quotient->coef = rest;
  remainder->expr = code_convert(c, r->arg[0], CODE_INDEX);
  return true;
}

void code_share_divisions(struct code *c) {
  for (int i = 0; i < c->exprs.count; i++) {
    const struct code_expr e = c->exprs.data[i]; /* a copy: the array may move */
    if (e.op != CODE_SUM || e.type.element != CODE_INDEX) continue;
    for (int j = 0; j < e.count; j++)
      for (int k = 0; k < e.count; k++) {
        struct affine_term a = c->terms.data[e.first + j], b = c->terms.data[e.first + k];
        if (j == k || !join(c, &a, &b)) continue;
        c->terms.data[e.first + j] = a;
        c->terms.data[e.first + k] = b;
      }
  }
}
