/* See code_facts.h. */
#include "code/code_facts.h"

#include <stdlib.h>

#include "base/saturating.h"

static const struct code_expr *expr_at(const struct facts *f, int expr) {
  return &f->c->exprs.data[expr];
}

void facts_open(struct facts *f, const struct code *c) {
  *f = (struct facts){.c = c};
  for (int i = 0; i < c->variables.count; i++) VEC_PUSH(&f->counters, ((struct fact_counter){0}));
}

void facts_close(struct facts *f) {
  mem_free(f->counters.data);
  mem_free(f->sums.data);
}

/* ---- ranges ---- */

/* An index that is read where the code runs. */
static bool is_load(const struct facts *f, const struct code_expr *e) {
  return e->op == CODE_ELEMENT && e->type.element == PROGRAM_I32 &&
         f->c->variables.data[e->variable].storage == CODE_INPUT;
}

struct fact_range fact_range_add(struct fact_range sum, struct fact_range term, int64_t coef) {
  int64_t low, high;
  if (!sum.known || !term.known || __builtin_mul_overflow(term.low, coef, &low) ||
      __builtin_mul_overflow(term.high, coef, &high) ||
      __builtin_add_overflow(sum.low, int_min(low, high), &sum.low) ||
      __builtin_add_overflow(sum.high, int_max(low, high), &sum.high))
    return (struct fact_range){0};
  sum.known = sum.low > -SATURATED && sum.high < SATURATED;
  return sum;
}

static int64_t floor_div(int64_t x, int64_t y) {
  return x / y - (x % y < 0);
}

static struct fact_range range_of_quotient(struct fact_range x, int64_t by, bool remainder) {
  int64_t low = floor_div(x.low, by), high = floor_div(x.high, by);
  if (!remainder) return (struct fact_range){true, low, high};
  if (low == high) return (struct fact_range){true, x.low - low * by, x.high - low * by};
  return (struct fact_range){true, 0, by - 1};
}

static struct fact_range range_of_operation(const struct facts *f, const struct code_expr *e) {
  struct fact_range x = facts_range(f, e->arg[0]), y = facts_range(f, e->arg[1]);
  if (!x.known || !y.known) return (struct fact_range){0};
  switch (e->op) {
    case PX_MIN: return (struct fact_range){true, int_min(x.low, y.low), int_min(x.high, y.high)};
    case PX_MAX: return (struct fact_range){true, int_max(x.low, y.low), int_max(x.high, y.high)};
    default: return range_of_quotient(x, y.low, e->op == PX_MOD || e->op == CODE_FLOOR_MOD);
  }
}

struct fact_range facts_range(const struct facts *f, int expr) {
  const struct code_expr *e = expr_at(f, expr = code_bare(f->c, expr));
  if (e->op == PX_INT) return (struct fact_range){true, e->integer, e->integer};
  if (e->op == CODE_VARIABLE) return f->counters.data[e->variable].range;
  if (e->op == CODE_SUM) {
    struct fact_range sum = {true, e->integer, e->integer};
    for (int i = 0; i < e->count; i++) {
      const struct affine_term *t = &f->c->terms.data[e->first + i];
      sum = fact_range_add(sum, facts_range(f, t->expr), t->coef);
    }
    return sum;
  }
  if (is_load(f, e)) return (struct fact_range){true, INT32_MIN, INT32_MAX};
  return code_is_index_operation(f->c, expr) ? range_of_operation(f, e) : (struct fact_range){0};
}

struct fact_range facts_range_of_sum(const struct facts *f, const struct fact_sum *sum) {
  struct fact_range range = {true, sum->constant, sum->constant};
  for (int i = 0; i < sum->count; i++)
    range = fact_range_add(range, facts_range(f, sum->term[i].expr), sum->term[i].coef);
  return range;
}

/* ---- sums ---- */

/* sum += coef*expr, for one that is no sum */
static bool add_term(const struct facts *f, struct fact_sum *sum, int expr, int64_t coef) {
  for (int i = 0; i < sum->count; i++) {
    struct affine_term *t = &sum->term[i];
    if (!code_same(f->c, t->expr, expr)) continue;
    if (__builtin_add_overflow(t->coef, coef, &t->coef)) return false;
    if (!t->coef) *t = sum->term[--sum->count];
    return true;
  }
  if (sum->count == FACT_TERMS) return false;
  sum->term[sum->count++] = (struct affine_term){expr, coef};
  return true;
}

/* Counters alone: nothing that is loaded, or chosen. */
static bool is_pure(const struct facts *f, int expr) {
  const struct code_expr *e = expr_at(f, expr = code_bare(f->c, expr));
  if (e->op == PX_INT) return true;
  if (e->op == CODE_VARIABLE) return f->c->variables.data[e->variable].storage == CODE_COUNTER;
  for (int i = 0; i < e->count; i++)
    if (!is_pure(f, f->c->terms.data[e->first + i].expr)) return false;
  if (e->op == CODE_SUM) return true;
  return code_is_index_operation(f->c, expr) && is_pure(f, e->arg[0]) && is_pure(f, e->arg[1]);
}

/* sum += times*expr */
static bool add_expr(const struct facts *f, struct fact_sum *sum, int expr, int64_t times) {
  const struct code_expr *e = expr_at(f, expr = code_bare(f->c, expr));
  int64_t constant = 0;
  if (e->op == PX_INT || e->op == CODE_SUM)
    if (__builtin_mul_overflow(e->integer, times, &constant) ||
        __builtin_add_overflow(sum->constant, constant, &sum->constant))
      return false;
  if (e->op == PX_INT) return true;
  if (e->op != CODE_SUM) return is_pure(f, expr) && add_term(f, sum, expr, times);
  for (int i = 0; i < e->count; i++) {
    const struct affine_term *t = &f->c->terms.data[e->first + i];
    int64_t coef;
    if (__builtin_mul_overflow(t->coef, times, &coef) || !add_expr(f, sum, t->expr, coef))
      return false;
  }
  return true;
}

static bool is_small(int64_t n) {
  return n > -SATURATED && n < SATURATED;
}

/* b - a + constant, whose numbers can be negated and added to those of another. */
static bool difference(const struct facts *f, int a, int b, int64_t constant,
                       struct fact_sum *sum) {
  sum->count = 0;
  sum->constant = constant;
  if (!add_expr(f, sum, b, 1) || !add_expr(f, sum, a, -1) || !is_small(sum->constant)) return false;
  for (int i = 0; i < sum->count; i++)
    if (!is_small(sum->term[i].coef)) return false;
  return true;
}

bool facts_compare(const struct facts *f, int expr, struct fact_comparison *out) {
  const struct code_expr *e = expr_at(f, expr);
  bool comparison = e->op >= PX_LT && e->op <= PX_NE;
  if (!comparison || e->type.lanes > 1 || !code_is_index(expr_at(f, e->arg[0])->type)) return false;
  int a = e->arg[0], b = e->arg[1];
  out->count = 1;
  out->negated = e->op == PX_NE;
  switch (e->op) {
    case PX_LT: return difference(f, a, b, -1, &out->sum[0]);
    case PX_LE: return difference(f, a, b, 0, &out->sum[0]);
    case PX_GT: return difference(f, b, a, -1, &out->sum[0]);
    case PX_GE: return difference(f, b, a, 0, &out->sum[0]);
    default:
      out->count = 2;
      return difference(f, a, b, 0, &out->sum[0]) && difference(f, b, a, 0, &out->sum[1]);
  }
}

/* ---- what is decided ---- */

/* The range of sum - times*other. */
static struct fact_range range_beside(const struct facts *f, const struct fact_sum *sum,
                                      const struct fact_sum *other, int64_t times) {
  struct fact_sum d = *sum;
  d.constant -= times * other->constant;
  for (int i = 0; i < other->count; i++)
    if (!add_term(f, &d, other->term[i].expr, -times * other->term[i].coef))
      return (struct fact_range){0};
  return facts_range_of_sum(f, &d);
}

/* By its range, or by a fact g >= 0 that it is never less than, or that their sum leaves no room
 * for. */
enum fact_truth facts_decide_sum(const struct facts *f, const struct fact_sum *sum) {
  struct fact_range r = facts_range_of_sum(f, sum);
  if (r.known && r.low >= 0) return FACT_TRUE;
  if (r.known && r.high < 0) return FACT_FALSE;
  for (int i = f->sums.count - 1; i >= 0; i--) {
    const struct fact_sum *g = &f->sums.data[i];
    r = range_beside(f, sum, g, 1);
    if (r.known && r.low >= 0) return FACT_TRUE;
    r = range_beside(f, sum, g, -1);
    if (r.known && r.high < 0) return FACT_FALSE;
  }
  return FACT_UNKNOWN;
}

static enum fact_truth not(enum fact_truth truth) {
  return truth == FACT_UNKNOWN ? truth : truth == FACT_TRUE ? FACT_FALSE : FACT_TRUE;
}

static enum fact_truth both(enum fact_truth a, enum fact_truth b) {
  if (a == FACT_FALSE || b == FACT_FALSE) return FACT_FALSE;
  return a == FACT_TRUE && b == FACT_TRUE ? FACT_TRUE : FACT_UNKNOWN;
}

static enum fact_truth decide_comparison(const struct facts *f, int expr) {
  struct fact_comparison c;
  if (!facts_compare(f, expr, &c)) return FACT_UNKNOWN;
  enum fact_truth truth = FACT_TRUE;
  for (int i = 0; i < c.count; i++) truth = both(truth, facts_decide_sum(f, &c.sum[i]));
  return c.negated ? not(truth) : truth;
}

enum fact_truth facts_decide(const struct facts *f, int expr) {
  const struct code_expr *e = expr_at(f, expr);
  switch (e->op) {
    case PX_BOOL: return e->integer ? FACT_TRUE : FACT_FALSE;
    case PX_NOT: return not(facts_decide(f, e->arg[0]));
    case PX_AND: return both(facts_decide(f, e->arg[0]), facts_decide(f, e->arg[1]));
    case PX_OR: return not(both(not(facts_decide(f, e->arg[0])), not(facts_decide(f, e->arg[1]))));
    default: return decide_comparison(f, expr);
  }
}

/* ---- what is assumed ---- */

void facts_assume(struct facts *f, const struct fact_sum *sum, bool holds) {
  struct fact_sum s = *sum;
  if (!holds) {
    s.constant = -s.constant - 1;
    for (int i = 0; i < s.count; i++) s.term[i].coef = -s.term[i].coef;
  }
  VEC_PUSH(&f->sums, s);
}

/* Of a == b that does not hold there is something to say only if one side is known. */
static void assume_comparison(struct facts *f, const struct fact_comparison *c, bool holds) {
  if (holds != c->negated) {
    for (int i = 0; i < c->count; i++) facts_assume(f, &c->sum[i], true);
    return;
  }
  for (int i = 0; i < c->count; i++)
    if (c->count == 1 || facts_decide_sum(f, &c->sum[1 - i]) == FACT_TRUE)
      facts_assume(f, &c->sum[i], false);
}

void facts_assume_condition(struct facts *f, int expr, bool holds) {
  const struct code_expr *e = expr_at(f, expr);
  struct fact_comparison c;
  if (e->op == PX_NOT) {
    facts_assume_condition(f, e->arg[0], !holds);
  } else if (e->op == (holds ? PX_AND : PX_OR)) {
    facts_assume_condition(f, e->arg[0], holds);
    facts_assume_condition(f, e->arg[1], holds);
  } else if (facts_compare(f, expr, &c)) {
    assume_comparison(f, &c, holds);
  }
}

int facts_mark(const struct facts *f) {
  return f->sums.count;
}

void facts_forget(struct facts *f, int mark) {
  f->sums.count = mark;
}

int facts_depth(const struct facts *f, int expr) {
  const struct code_expr *e = expr_at(f, code_bare(f->c, expr));
  int depth = 0;
  if (e->op == CODE_VARIABLE) return f->counters.data[e->variable].depth;
  for (int i = 0; i < e->count; i++) {
    int term = facts_depth(f, f->c->terms.data[e->first + i].expr);
    if (term > depth) depth = term;
  }
  for (int i = 0; i < 2; i++) {
    int arg = e->arg[i] >= 0 ? facts_depth(f, e->arg[i]) : 0;
    if (arg > depth) depth = arg;
  }
  return depth;
}
