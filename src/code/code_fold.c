/* Replaces parts of expressions and folds constants. See code.h. */
#include "code/code.h"

static const struct code_expr *expr_at(const struct code *c, int expr) {
  return &c->exprs.data[expr];
}

static bool is_int(const struct code *c, int expr) {
  return expr >= 0 && expr_at(c, expr)->op == PX_INT;
}

int code_truth(struct code *c, bool value) {
  int expr = code_operation(c, PX_BOOL, code_type(CODE_TRUTH, 1), -1, -1, -1);
  c->exprs.data[expr].integer = value;
  return expr;
}

/* Terms that became constants are added to the constant; those that would overflow stay. */
static int fold_sum(struct code *c, const struct code_expr *e, const int *terms) {
  struct affine_term kept[AFFINE_TERMS];
  int64_t constant = e->integer, product;
  int count = 0;
  for (int i = 0; i < e->count; i++) {
    struct affine_term t = {terms[i], c->terms.data[e->first + i].coef};
    if (!is_int(c, t.expr) ||
        __builtin_mul_overflow(expr_at(c, t.expr)->integer, t.coef, &product) ||
        __builtin_add_overflow(constant, product, &constant))
      kept[count++] = t;
  }
  return code_sum(c, kept, count, constant);
}

static bool compare(int op, int64_t x, int64_t y) {
  switch (op) {
    case PX_LT: return x < y;
    case PX_LE: return x <= y;
    case PX_GT: return x > y;
    case PX_GE: return x >= y;
    case PX_EQ: return x == y;
    default: return x != y;
  }
}

static int64_t floor_div(int64_t x, int64_t y) {
  return x / y - (x % y < 0);
}

/* An operation on two constant indices; -1: none that folds. */
static int fold_ints(struct code *c, int op, int64_t x, int64_t y) {
  switch (op) {
    case PX_DIV:
    case CODE_FLOOR_DIV: return y > 0 ? code_int(c, floor_div(x, y)) : -1;
    case PX_MOD:
    case CODE_FLOOR_MOD: return y > 0 ? code_int(c, x - floor_div(x, y) * y) : -1;
    case PX_MIN: return code_int(c, x < y ? x : y);
    case PX_MAX: return code_int(c, x > y ? x : y);
    case PX_LT:
    case PX_LE:
    case PX_GT:
    case PX_GE:
    case PX_EQ:
    case PX_NE: return code_truth(c, compare(op, x, y));
    default: return -1;
  }
}

/* a && b, a || b, where one of them is known */
static int fold_logic(struct code *c, int op, const int *arg) {
  for (int i = 0; i < 2; i++) {
    const struct code_expr *e = expr_at(c, arg[i]);
    if (e->op != PX_BOOL) continue;
    bool decides = e->integer == (op == PX_OR);
    return decides ? arg[i] : arg[1 - i];
  }
  return -1;
}

static int fold(struct code *c, const struct code_expr *e, const int *arg) {
  if (is_int(c, arg[0]) && is_int(c, arg[1])) {
    int folded = fold_ints(c, e->op, expr_at(c, arg[0])->integer, expr_at(c, arg[1])->integer);
    if (folded >= 0) return folded;
  }
  if (e->op == PX_AND || e->op == PX_OR) {
    int folded = fold_logic(c, e->op, arg);
    if (folded >= 0) return folded;
  }
  bool known = arg[0] >= 0 && expr_at(c, arg[0])->op == PX_BOOL;
  if (known && e->op == PX_NOT) return code_truth(c, !expr_at(c, arg[0])->integer);
  if (known && e->op == PX_SELECT) return arg[expr_at(c, arg[0])->integer ? 1 : 2];
  VEC_PUSH(&c->exprs, *e);
  for (int i = 0; i < 3; i++) c->exprs.data[c->exprs.count - 1].arg[i] = arg[i];
  return c->exprs.count - 1;
}

int code_map(struct code *c, int expr, code_mapped *mapped, void *data) {
  if (expr < 0) return -1;
  int other = mapped(c, expr, data);
  if (other != expr) return other;
  struct code_expr e = *expr_at(c, expr); /* a copy: the array may move */
  bool changed = false;
  if (e.op == CODE_SUM) {
    int terms[AFFINE_TERMS];
    for (int i = 0; i < e.count; i++) {
      int term = c->terms.data[e.first + i].expr;
      terms[i] = code_map(c, term, mapped, data);
      changed |= terms[i] != term;
    }
    return changed ? fold_sum(c, &e, terms) : expr;
  }
  int arg[3];
  for (int i = 0; i < 3; i++) {
    arg[i] = code_map(c, e.arg[i], mapped, data);
    changed |= arg[i] != e.arg[i];
  }
  return changed ? fold(c, &e, arg) : expr;
}

struct substitution {
  int counter;
  int64_t value;
};

static int substituted(struct code *c, int expr, void *data) {
  const struct substitution *s = data;
  const struct code_expr *e = expr_at(c, expr);
  return e->op == CODE_VARIABLE && e->variable == s->counter ? code_int(c, s->value) : expr;
}

int code_substitute(struct code *c, int expr, int counter, int64_t value) {
  return code_map(c, expr, substituted, &(struct substitution){counter, value});
}
