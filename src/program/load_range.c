/* Finds loads that are not proved to stay in their tensors, from the ranges of indices and the
 * conditions around the load.
 *
 * A condition that holds at a load bounds an affine form: `1 <= h + kh` gives the fact 1 <= h + kh
 * <= no bound. An index is an affine form, too. Its range is the sum of the ranges of its terms,
 * narrowed by each fact about some of these terms. && and || are split if both sides are known;
 * bounds of x/m, min and max become bounds of their operands.
 */
#include <stdlib.h>

#include "program/affine.h"

struct span {
  int64_t low, high; /* INT64_MIN, INT64_MAX: unbounded */
};
static const struct span unbounded = {INT64_MIN, INT64_MAX};

struct fact {
  struct affine form; /* its constant is 0 */
  struct span span;
};

struct walker {
  const struct program *p;
  bool *guarded;
  bool zeros; /* an i32 load of the stage is guarded, and reads 0 out of range */
  bool strict;
  struct {
    VEC(struct fact);
  } facts;
  struct unsafe_load first;
};

static const struct px_node *node_of(const struct walker *w, int expr) {
  return &w->p->nodes.data[expr];
}

/* ---- spans ---- */

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static struct span common(struct span a, struct span b) {
  return (struct span){most(a.low, b.low), least(a.high, b.high)};
}

static bool bounded(struct span s) {
  return s.low != INT64_MIN && s.high != INT64_MAX;
}

static struct span plus(struct span a, struct span b) {
  struct span r;
  if (a.low == INT64_MIN || b.low == INT64_MIN || __builtin_add_overflow(a.low, b.low, &r.low))
    r.low = INT64_MIN;
  if (a.high == INT64_MAX || b.high == INT64_MAX || __builtin_add_overflow(a.high, b.high, &r.high))
    r.high = INT64_MAX;
  return r;
}

static struct span scaled(struct span s, int64_t by) {
  struct span r = unbounded;
  int64_t a = 0, z = 0;
  bool low = s.low != INT64_MIN && !__builtin_mul_overflow(s.low, by, &a);
  bool high = s.high != INT64_MAX && !__builtin_mul_overflow(s.high, by, &z);
  if (!by) return (struct span){0, 0};
  if (low) *(by > 0 ? &r.low : &r.high) = a;
  if (high) *(by > 0 ? &r.high : &r.low) = z;
  return r;
}

static int64_t floor_div(int64_t a, int64_t b) {
  return a / b - (a % b < 0);
}

/* The range of the integers x with low <= by * x <= high. */
static struct span divided(struct span s, int64_t by) {
  if (by == INT64_MIN) return unbounded;
  if (by < 0) {
    s = scaled(s, -1);
    by = -by;
  }
  if (s.low != INT64_MIN) s.low = -floor_div(-s.low, by);
  if (s.high != INT64_MAX) s.high = floor_div(s.high, by);
  return s;
}

static struct span product(struct span a, struct span b) {
  struct span r = {INT64_MAX, INT64_MIN};
  if (!bounded(a) || !bounded(b)) return unbounded;
  const int64_t left[] = {a.low, a.high}, right[] = {b.low, b.high};
  for (int i = 0; i < 4; i++) {
    int64_t end;
    if (__builtin_mul_overflow(left[i / 2], right[i % 2], &end)) return unbounded;
    r = (struct span){least(r.low, end), most(r.high, end)};
  }
  return r;
}

/* ---- facts ---- */

static void assume_expr(struct walker *w, int expr, struct span span);

/* Derives facts about the operands of a quotient, minimum or maximum from its bounds. */
static void assume_inside(struct walker *w, int term, struct span span) {
  const struct px_node *n = node_of(w, term);
  if (n->op == PX_DIV) {
    int64_t m = node_of(w, n->arg[1])->integer;
    struct span inside = scaled(span, m);
    if (inside.high != INT64_MAX) inside = plus(inside, (struct span){0, m - 1});
    assume_expr(w, n->arg[0], inside);
  } else if (n->op == PX_MIN || n->op == PX_MAX) {
    if (n->op == PX_MIN)
      span.high = INT64_MAX;
    else
      span.low = INT64_MIN;
    for (int i = 0; i < 2; i++) assume_expr(w, n->arg[i], span);
  }
}

/* Adds the fact low <= form <= high. */
static void assume_form(struct walker *w, struct affine *f, struct span span) {
  if (f->constant == INT64_MIN) return;
  span = plus(span, (struct span){-f->constant, -f->constant});
  f->constant = 0;
  if (!f->count || (span.low == INT64_MIN && span.high == INT64_MAX)) return;
  VEC_PUSH(&w->facts, ((struct fact){*f, span}));
  if (f->count == 1) assume_inside(w, f->term[0].expr, divided(span, f->term[0].coef));
}

static void assume_expr(struct walker *w, int expr, struct span span) {
  struct affine f;
  if (affine_of(w->p, expr, &f)) assume_form(w, &f, span);
}

static enum px_op opposite(enum px_op op) {
  switch (op) {
    case PX_LT: return PX_GE;
    case PX_LE: return PX_GT;
    case PX_GT: return PX_LE;
    case PX_GE: return PX_LT;
    case PX_EQ: return PX_NE;
    default: return PX_EQ;
  }
}

/* Adds the fact that a comparison gives about the difference of its two sides. */
static struct span span_of_comparison(enum px_op op) {
  switch (op) {
    case PX_LT: return (struct span){INT64_MIN, -1};
    case PX_LE: return (struct span){INT64_MIN, 0};
    case PX_GT: return (struct span){1, INT64_MAX};
    case PX_GE: return (struct span){0, INT64_MAX};
    case PX_EQ: return (struct span){0, 0};
    default: return unbounded;
  }
}

static void assume(struct walker *w, int condition, bool holds) {
  const struct px_node *n = node_of(w, condition);
  if (n->op == PX_NOT) {
    assume(w, n->arg[0], !holds);
  } else if (n->op == (holds ? PX_AND : PX_OR)) {
    assume(w, n->arg[0], holds);
    assume(w, n->arg[1], holds);
  } else if (n->op >= PX_LT && n->op <= PX_NE && node_of(w, n->arg[0])->sort == PX_INDEX) {
    struct affine f;
    enum px_op op = holds ? n->op : opposite(n->op);
    if (affine_of(w->p, n->arg[0], &f) && affine_add(w->p, &f, n->arg[1], -1))
      assume_form(w, &f, span_of_comparison(op));
  }
}

/* ---- ranges ---- */

static struct span range_of(struct walker *w, int expr);

static struct span range_of_select(struct walker *w, const struct px_node *n) {
  struct span branch[2];
  int facts = w->facts.count;
  for (int i = 0; i < 2; i++) {
    assume(w, n->arg[0], i == 0);
    branch[i] = range_of(w, n->arg[1 + i]);
    w->facts.count = facts;
  }
  return (struct span){least(branch[0].low, branch[1].low), most(branch[0].high, branch[1].high)};
}

static struct span range_of_division(struct walker *w, const struct px_node *n) {
  struct span a = range_of(w, n->arg[0]);
  int64_t m = node_of(w, n->arg[1])->integer;
  int64_t low = a.low == INT64_MIN ? a.low : floor_div(a.low, m);
  int64_t high = a.high == INT64_MAX ? a.high : floor_div(a.high, m);
  if (n->op == PX_DIV) return (struct span){low, high};
  if (bounded(a) && low == high) return (struct span){a.low - low * m, a.high - low * m};
  return (struct span){0, m - 1};
}

static struct span range_of_load(const struct walker *w, int expr, const struct px_node *n) {
  const struct program_tensor *t = &w->p->tensors.data[n->tensor];
  if (w->guarded[expr]) return (struct span){least(t->least, 0), most(t->most, 0)};
  return (struct span){t->least, t->most};
}

/* The range of a term, or of a sum with too many terms for an affine form. */
static struct span range_of_term(struct walker *w, int expr) {
  const struct px_node *n = node_of(w, expr);
  struct span a = unbounded, b = unbounded;
  switch (n->op) {
    case PX_INT: return (struct span){n->integer, n->integer};
    case PX_AXIS: {
      const struct program_axis *axis = &w->p->tensors.data[n->tensor].axes[n->integer];
      return (struct span){axis->first, axis->first + axis->size - 1};
    }
    case PX_LOAD: return range_of_load(w, expr, n);
    case PX_SELECT: return range_of_select(w, n);
    case PX_DIV:
    case PX_MOD: return range_of_division(w, n);
    default: break;
  }
  a = range_of(w, n->arg[0]);
  if (n->arg[1] >= 0) b = range_of(w, n->arg[1]);
  switch (n->op) {
    case PX_NEG: return scaled(a, -1);
    case PX_ADD: return plus(a, b);
    case PX_SUB: return plus(a, scaled(b, -1));
    case PX_MUL: return product(a, b);
    case PX_MIN: return (struct span){least(a.low, b.low), least(a.high, b.high)};
    case PX_MAX: return (struct span){most(a.low, b.low), most(a.high, b.high)};
    default: return unbounded;
  }
}

/* The range of a term, narrowed by the facts about this term alone. */
static struct span refined(const struct walker *w, int term, struct span span) {
  for (int i = 0; i < w->facts.count; i++) {
    const struct fact *f = &w->facts.data[i];
    if (f->form.count == 1 && px_same(w->p, f->form.term[0].expr, term))
      span = common(span, divided(f->span, f->form.term[0].coef));
  }
  return span;
}

static int place_of(const struct walker *w, const struct affine *f, int term) {
  int at = 0;
  while (at < f->count && !px_same(w->p, f->term[at].expr, term)) at++;
  return at;
}

/* The range of f as `times` the form of the fact, plus the rest. */
static struct span by_fact(const struct walker *w, const struct fact *fact, const struct affine *f,
                           const struct span *terms, int64_t times) {
  struct affine rest = *f;
  struct span sum = {f->constant, f->constant};
  for (int i = 0; i < fact->form.count; i++) {
    int64_t part;
    int at = place_of(w, f, fact->form.term[i].expr);
    if (at == f->count || __builtin_mul_overflow(fact->form.term[i].coef, times, &part) ||
        __builtin_sub_overflow(rest.term[at].coef, part, &rest.term[at].coef))
      return unbounded;
  }
  for (int i = 0; i < f->count; i++) sum = plus(sum, scaled(terms[i], rest.term[i].coef));
  return plus(sum, scaled(fact->span, times));
}

/* The narrowest of these ranges, for each factor that cancels a term of f. */
static struct span by_fact_at_best(const struct walker *w, const struct fact *fact,
                                   const struct affine *f, const struct span *terms) {
  struct span best = unbounded;
  for (int i = 0; i < fact->form.count; i++) {
    int64_t own = fact->form.term[i].coef;
    int at = place_of(w, f, fact->form.term[i].expr);
    if (at == f->count || f->term[at].coef == INT64_MIN || f->term[at].coef % own) continue;
    best = common(best, by_fact(w, fact, f, terms, f->term[at].coef / own));
  }
  return best;
}

static struct span range_of(struct walker *w, int expr) {
  struct affine f;
  struct span terms[AFFINE_TERMS], sum;
  struct px_range plain = px_range(w->p, expr);
  if (!affine_of(w->p, expr, &f)) return range_of_term(w, expr);
  sum = (struct span){f.constant, f.constant};
  for (int i = 0; i < f.count; i++) {
    terms[i] = refined(w, f.term[i].expr, range_of_term(w, f.term[i].expr));
    sum = plus(sum, scaled(terms[i], f.term[i].coef));
  }
  for (int i = 0; i < w->facts.count; i++)
    sum = common(sum, by_fact_at_best(w, &w->facts.data[i], &f, terms));
  if (!w->zeros && !plain.overflow) sum = common(sum, (struct span){plain.low, plain.high});
  return sum;
}

/* ---- the walk ---- */

static void walk(struct walker *w, int expr, bool always);

static void check_index(struct walker *w, int load, int i, bool always) {
  const struct px_node *n = node_of(w, load);
  const struct program_tensor *t = &w->p->tensors.data[n->tensor];
  int index = w->p->indices.data[n->first + i];
  struct px_range r = px_range(w->p, index);
  if (!w->zeros && !r.overflow && r.low >= 0 && r.high < t->axes[i].size) return;
  struct span s = range_of(w, index);
  if (s.low >= 0 && s.high < t->axes[i].size) return;
  w->guarded[load] = true;
  if (t->dtype == PROGRAM_I32) w->zeros = true;
  if (always && w->first.load < 0) w->first = (struct unsafe_load){load, i, s.low, s.high};
}

static void walk_load(struct walker *w, int load, bool always) {
  const struct px_node *n = node_of(w, load);
  int rank = w->p->tensors.data[n->tensor].rank;
  for (int i = 0; i < rank; i++) walk(w, w->p->indices.data[n->first + i], always);
  for (int i = 0; i < rank; i++) check_index(w, load, i, always);
}

/* Walks an expression that is evaluated only if the condition holds (or does not hold). */
static void walk_under(struct walker *w, int condition, bool holds, int expr) {
  int facts = w->facts.count;
  assume(w, condition, holds);
  walk(w, expr, w->strict);
  w->facts.count = facts;
}

static void walk(struct walker *w, int expr, bool always) {
  const struct px_node *n = node_of(w, expr);
  if (n->op == PX_LOAD) {
    walk_load(w, expr, always);
    return;
  }
  if (n->arg[0] >= 0) walk(w, n->arg[0], always);
  bool chooses = n->op == PX_SELECT || n->op == PX_AND || n->op == PX_OR;
  if (chooses) {
    walk_under(w, n->arg[0], n->op != PX_OR, n->arg[1]);
    if (n->op == PX_SELECT) walk_under(w, n->arg[0], false, n->arg[2]);
    return;
  }
  for (int i = 1; i < 3; i++)
    if (n->arg[i] >= 0) walk(w, n->arg[i], always);
}

struct unsafe_load program_find_unsafe_load(const struct program *p, int tensor, bool *guarded) {
  const struct program_tensor *t = &p->tensors.data[tensor];
  struct walker w = {.p = p, .guarded = guarded, .strict = true, .first = {.load = -1}};
  for (int i = t->rank; i < t->rank + t->reductions; i++) {
    if (t->axes[i].low < 0) continue;
    walk(&w, t->axes[i].low, true);
    walk(&w, t->axes[i].high, true);
  }
  w.strict = false;
  if (t->body >= 0) walk(&w, t->body, true);
  mem_free(w.facts.data);
  return w.first;
}
