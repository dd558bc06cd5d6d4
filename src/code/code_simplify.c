/* Statements without effect are dropped, and constants are folded. See code.h.
 *
 *     if true: A else B       ->  A
 *     for i in 3..4: A[i]     ->  A[3]
 *     for i in 3..3: A        ->
 *     for i in 0..8: if i < 6: A  ->  for i in 0..6: A
 *     for, if, ... of nothing that is seen outside  ->
 *     let x, never mentioned  ->
 *     block: A, no variables  ->  A
 *     acc += lanes_sum(x); acc += lanes_sum(y)  ->  acc += lanes_sum(x + y)
 *
 * One walk from the leaves up: a statement that becomes empty is dropped before its parent is
 * checked. Other passes call this one after they changed something.
 *
 * Keeps: the same effects in the same order; sums across lanes may add in another order.
 */
#include "code/code.h"

#include <stdlib.h>

struct simplifier {
  struct code *c;
  int *mentions; /* by variable */
};

static struct code_statement *statement(struct simplifier *s, int at) {
  return &s->c->statements.data[at];
}

/* ---- the lists of children ---- */

/* The children of `from` stand where `at`, after `before` (-1: first), stood in `parent`. */
static void replace(struct simplifier *s, int parent, int before, int at, int from) {
  int first = from >= 0 ? statement(s, from)->first : -1, next = statement(s, at)->next;
  int last = from >= 0 ? statement(s, from)->last : -1;
  for (int i = first; i >= 0; i = statement(s, i)->next) statement(s, i)->parent = parent;
  if (first < 0) {
    first = next;
    last = before;
  } else {
    statement(s, last)->next = next;
  }
  if (before < 0)
    statement(s, parent)->first = first;
  else
    statement(s, before)->next = first;
  if (next < 0) statement(s, parent)->last = last;
}

/* ---- what is mentioned ---- */

static void count_expr(struct simplifier *s, int expr) {
  if (expr < 0) return;
  const struct code_expr *e = &s->c->exprs.data[expr];
  if (e->variable >= 0) s->mentions[e->variable]++;
  for (int i = 0; i < e->count; i++) count_expr(s, s->c->terms.data[e->first + i].expr);
  for (int i = 0; i < 3; i++) count_expr(s, e->arg[i]);
}

static void count_statement(struct simplifier *s, int at) {
  const struct code_statement *t = statement(s, at);
  switch (t->kind) {
    case CODE_FOR:
      count_expr(s, t->low);
      count_expr(s, t->high);
      break;
    case CODE_IF: count_expr(s, t->condition); break;
    case CODE_DECLARE: count_expr(s, t->value); break;
    case CODE_ASSIGN:
    case CODE_PREFETCH:
      count_expr(s, t->to);
      if (t->kind == CODE_ASSIGN) count_expr(s, t->value);
      break;
    default: break;
  }
  for (int i = t->first; i >= 0; i = statement(s, i)->next) count_statement(s, i);
  if (t->other >= 0) count_statement(s, t->other);
}

/* ---- one trip ---- */

static void substitute(struct simplifier *s, int at, int counter, int64_t value) {
  struct code_statement t = *statement(s, at);
  switch (t.kind) {
    case CODE_FOR:
      t.low = code_substitute(s->c, t.low, counter, value);
      t.high = code_substitute(s->c, t.high, counter, value);
      break;
    case CODE_IF: t.condition = code_substitute(s->c, t.condition, counter, value); break;
    case CODE_DECLARE: t.value = code_substitute(s->c, t.value, counter, value); break;
    case CODE_ASSIGN: t.value = code_substitute(s->c, t.value, counter, value); /* fall through */
    case CODE_PREFETCH: t.to = code_substitute(s->c, t.to, counter, value); break;
    default: break;
  }
  *statement(s, at) = t;
  for (int i = t.first; i >= 0; i = statement(s, i)->next) substitute(s, i, counter, value);
  if (t.other >= 0) substitute(s, t.other, counter, value);
}

/* How often a loop runs: 0, 1, or 2 for more and for what is not known. */
static int trips(struct simplifier *s, const struct code_statement *t) {
  const struct code_expr *low = &s->c->exprs.data[t->low], *high = &s->c->exprs.data[t->high];
  if (low->op != PX_INT || high->op != PX_INT) return 2;
  if (low->integer >= high->integer) return 0;
  return high->integer - low->integer <= t->step ? 1 : 2;
}

/* Loops that run as one in parallel are those around it. */
static void leave_group(struct simplifier *s, int at) {
  int around = 1;
  for (int i = statement(s, at)->parent; i >= 0 && statement(s, i)->kind == CODE_FOR; around++) {
    struct code_statement *t = statement(s, i);
    if (t->parallel > around) t->parallel = around;
    i = t->parent;
  }
}

/* A loop of one trip becomes a block, one of none is empty. */
static void unroll(struct simplifier *s, int at) {
  struct code_statement *t = statement(s, at);
  if (t->kind != CODE_FOR || t->parallel) return;
  int count = trips(s, t);
  if (count == 0) t->first = t->last = -1;
  if (count != 1) return;
  int64_t value = s->c->exprs.data[t->low].integer;
  for (int i = t->first; i >= 0; i = statement(s, i)->next) substitute(s, i, t->variable, value);
  leave_group(s, at);
  statement(s, at)->kind = CODE_BLOCK;
}

/* ---- a tail that ends its loop ---- */

/* The counter from which on `condition`, counter + number < number, does not hold; INT64_MAX: it is
 * another one. */
static int64_t end_of(struct simplifier *s, int condition, int counter) {
  const struct code_expr *e = &s->c->exprs.data[condition];
  if (e->op != PX_LT || s->c->exprs.data[e->arg[1]].op != PX_INT) return INT64_MAX;
  const struct code_expr *x = &s->c->exprs.data[e->arg[0]];
  int64_t end = s->c->exprs.data[e->arg[1]].integer;
  if (x->op == CODE_SUM && x->count == 1 && s->c->terms.data[x->first].coef == 1) {
    end -= x->integer;
    x = &s->c->exprs.data[s->c->terms.data[x->first].expr];
  }
  return x->op == CODE_VARIABLE && x->variable == counter ? end : INT64_MAX;
}

/* A loop of nothing but what stands under such a condition ends there. It is faster, and gcc 12
 * makes of a load under a condition with constant bounds one that reads beyond them. */
static void shorten(struct simplifier *s, int at) {
  struct code_statement *t = statement(s, at);
  if (t->kind != CODE_FOR || t->parallel || t->first < 0 || t->first != t->last) return;
  if (s->c->variables.data[t->variable].reserved) return; /* lanes */
  struct code_statement *child = statement(s, t->first);
  const struct code_expr *low = &s->c->exprs.data[t->low], *high = &s->c->exprs.data[t->high];
  if (child->kind != CODE_IF || child->other >= 0) return;
  if (low->op != PX_INT || high->op != PX_INT) return;
  int64_t first = low->integer, end = end_of(s, child->condition, t->variable);
  if (end >= high->integer) return;
  child->kind = CODE_BLOCK;
  t->high = code_int(s->c, end > first ? end : first);
}

/* ---- one statement ---- */

static bool declares(struct simplifier *s, int at) {
  for (int i = statement(s, at)->first; i >= 0; i = statement(s, i)->next)
    if (statement(s, i)->kind == CODE_DECLARE) return true;
  return false;
}

static bool has_effect(struct simplifier *s, int at) {
  for (int i = statement(s, at)->first; i >= 0; i = statement(s, i)->next)
    if (statement(s, i)->kind != CODE_DECLARE) return true;
  return false;
}

/* A condition that is known leaves a block of what it decides for. */
static void decide(struct simplifier *s, int at) {
  struct code_statement *t = statement(s, at);
  if (t->kind != CODE_IF) return;
  if (t->other >= 0 && !has_effect(s, t->other)) t->other = -1;
  const struct code_expr *condition = &s->c->exprs.data[t->condition];
  if (condition->op != PX_BOOL) return;
  if (!condition->integer) {
    t->first = t->other >= 0 ? statement(s, t->other)->first : -1;
    t->last = t->other >= 0 ? statement(s, t->other)->last : -1;
    for (int i = t->first; i >= 0; i = statement(s, i)->next) statement(s, i)->parent = at;
  }
  t->kind = CODE_BLOCK;
  t->other = -1;
}

static void simplify_children(struct simplifier *s, int parent);

static bool is_empty(struct simplifier *s, int at) {
  const struct code_statement *t = statement(s, at);
  switch (t->kind) {
    case CODE_BLOCK:
    case CODE_FOR:
    case CODE_ALLOCATE:
    case CODE_REGION: return !has_effect(s, at);
    case CODE_IF: return !has_effect(s, at) && t->other < 0;
    case CODE_DECLARE: return !s->mentions[t->variable];
    default: return false;
  }
}

/* What an assignment adds of all lanes of a vector, or the extremum with them: CODE_LANES_ADD .. */
static const struct code_expr *lanes_of(const struct code *c, const struct code_statement *t) {
  if (t->kind != CODE_ASSIGN || c->exprs.data[t->to].op != CODE_VARIABLE) return NULL;
  const struct code_expr *value = &c->exprs.data[t->value];
  bool extremum = t->how == CODE_SET && (value->op == PX_MAX || value->op == PX_MIN);
  if (extremum && value->arg[0] == t->to) value = &c->exprs.data[value->arg[1]];
  bool is = value->op >= CODE_LANES_ADD && value->op <= CODE_LANES_MIN;
  return is && extremum == (value->op >= CODE_LANES_MAX) ? value : NULL;
}

/* Two such statements of one variable become one of the vectors' sum (product, extremum). */
static bool join_lanes(struct simplifier *s, int before, int at) {
  static const enum px_op ops[] = {PX_ADD, PX_MUL, PX_MAX, PX_MIN};
  if (before < 0) return false;
  struct code *c = s->c;
  const struct code_statement *x = statement(s, before), *y = statement(s, at);
  const struct code_expr *a = lanes_of(c, x), *b = lanes_of(c, y);
  if (!a || !b || a->op != b->op) return false;
  const struct code_expr *to = &c->exprs.data[x->to], *other = &c->exprs.data[y->to];
  struct code_type type = c->exprs.data[a->arg[0]].type;
  bool same = to->variable == other->variable && to->integer == other->integer &&
              code_same_type(type, c->exprs.data[b->arg[0]].type);
  if (!same) return false;
  int op = a->op, first = a->arg[0], second = b->arg[0];
  int value =
      code_across(c, op, code_operation(c, ops[op - CODE_LANES_ADD], type, first, second, -1));
  if (op >= CODE_LANES_MAX) {
    int whole = statement(s, before)->to;
    value =
        code_operation(c, ops[op - CODE_LANES_ADD], c->exprs.data[whole].type, whole, value, -1);
  }
  statement(s, before)->value = value;
  return true;
}

static void join_children(struct simplifier *s, int parent) {
  int before = -1;
  for (int at = statement(s, parent)->first, next; at >= 0; at = next) {
    next = statement(s, at)->next;
    if (join_lanes(s, before, at))
      replace(s, parent, before, at, -1);
    else
      before = at;
  }
}

static void simplify_children(struct simplifier *s, int parent) {
  int before = -1;
  for (int at = statement(s, parent)->first, next; at >= 0; at = next) {
    next = statement(s, at)->next;
    shorten(s, at);
    unroll(s, at);
    simplify_children(s, at);
    if (statement(s, at)->other >= 0) simplify_children(s, statement(s, at)->other);
    decide(s, at);
    bool dissolves = statement(s, at)->kind == CODE_BLOCK && !declares(s, at);
    if (is_empty(s, at)) {
      replace(s, parent, before, at, -1);
    } else if (dissolves) {
      int last = statement(s, at)->last;
      replace(s, parent, before, at, at);
      before = last;
    } else {
      before = at;
    }
  }
  join_children(s, parent);
}

void code_simplify(struct code *c) {
  struct simplifier s = {.c = c,
                         .mentions = mem_alloc((size_t)c->variables.count * sizeof(int) + 1)};
  count_statement(&s, 0);
  simplify_children(&s, 0);
  mem_free(s.mentions);
}
