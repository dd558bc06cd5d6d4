/* The edit `reciprocal`: multiplies by a reciprocal that is computed once instead of dividing in
 * every element.
 *
 *     Y[n:8, c:64] = X[n, c] / sqrt(V[n] + 1e-05)
 * `reciprocal Y sqrt(V[n] + 1e-05) as D` ->
 *     D[n:8] = 1 / sqrt(V[n] + 1e-05)
 *     Y[n:8, c:64] = X[n, c] * D[n]
 *
 * This file proves that a divisor is within [SMALLEST, LARGEST], so that its reciprocal is a normal
 * number. An infinite or nan divisor gives the same result as before. Besides constants, only a
 * square root gives a value an upper bound here, and the rounding bound of a root has room for one
 * more product.
 */
#include <math.h>

#include "rewrite/program_rebuild.h"

enum { VISITED = 200 /* nodes visited for a proof of a range */ };

static const double SMALLEST = 1e-30,
                    LARGEST = 1e30; /* of a divisor: its reciprocal is normal in f32 */
static const double MOST = 3.5e38;  /* above every finite f32 number */

/* An interval that contains every finite value of an expression. */
struct values {
  double low, high;
};

struct look {
  const struct program *p;
  int left; /* nodes that may still be visited */
};

static const struct values anything = {-HUGE_VAL, HUGE_VAL};

static struct values values_of(struct look *l, int expr);

static struct values stage_values(struct look *l, int stage) {
  const struct program_tensor *t = &l->p->tensors.data[stage];
  if (t->is_input || t->dtype == PROGRAM_I32) return anything;
  struct values v = values_of(l, t->body);
  if (t->reducer == REDUCE_NONE || t->reducer == REDUCE_MAX) return v;
  if (t->reducer == REDUCE_MIN || t->reducer == REDUCE_MEAN) return v;
  return t->reducer == REDUCE_SUM && v.low >= 0 ? (struct values){0, HUGE_VAL} : anything;
}

static struct values product(struct look *l, const struct px_node *n) {
  struct values a = values_of(l, n->arg[0]);
  if (px_same(l->p, n->arg[0], n->arg[1])) return (struct values){0, HUGE_VAL};
  struct values b = values_of(l, n->arg[1]);
  if (a.low < 0 || b.low < 0) return anything;
  return (struct values){a.low * b.low, HUGE_VAL};
}

static struct values quotient(struct look *l, const struct px_node *n) {
  struct values a = values_of(l, n->arg[0]), b = values_of(l, n->arg[1]);
  return a.low >= 0 && b.low > 0 ? (struct values){0, HUGE_VAL} : anything;
}

static struct values root(struct values v) {
  double most = v.high < MOST ? v.high : MOST;
  return v.low >= 0 ? (struct values){sqrt(v.low), sqrt(most)} : anything;
}

static struct values values_of(struct look *l, int expr) {
  const struct px_node *n = &l->p->nodes.data[expr];
  struct values a, b;
  if (--l->left < 0 || n->sort != PX_VALUE) return anything;
  switch (n->op) {
    case PX_NUMBER: return (struct values){n->number, n->number};
    case PX_LOAD: return stage_values(l, n->tensor);
    case PX_MUL: return product(l, n);
    case PX_DIV: return quotient(l, n);
    case PX_EXP:
    case PX_ABS: return (struct values){0, HUGE_VAL};
    case PX_SQRT: return root(values_of(l, n->arg[0]));
    case PX_ADD:
      a = values_of(l, n->arg[0]);
      b = values_of(l, n->arg[1]);
      return (struct values){a.low + b.low, a.high + b.high};
    case PX_MAX:
      a = values_of(l, n->arg[0]);
      b = values_of(l, n->arg[1]);
      return (struct values){fmax(a.low, b.low), fmax(a.high, b.high)};
    default: return anything;
  }
}

bool has_reciprocal(const struct program *p, int expr) {
  struct look l = {p, VISITED};
  struct values v = values_of(&l, expr);
  return v.low >= SMALLEST && v.high <= LARGEST && l.left >= 0;
}
