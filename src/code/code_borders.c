/* Loop partitioning: loops are split where a condition of indices changes its value. See code.h.
 *
 *     for kh in 0..3                          for kh in max(1 - h, 0)..min(15 - h, 3)
 *       acc += (1 <= h + kh && h + kh < 15      acc += X[h + kh - 1]*W[kh]
 *               ? X[h + kh - 1]*W[kh] : 0) ->
 *
 * The interior of an image then has no conditions, and the padding boundary computes no more than
 * it needs.
 *
 * A condition in a value is a sum of counters, >= 0. The pass decides it in the loop of its
 * innermost counter. There it changes at one place, which may depend on the outer loops. The loop
 * becomes two, [low, place) and [place, high), each with a copy of the body. A term that is 0 is
 * left out of its sum, and a loop without any other term is dropped. A copy of one trip has a
 * constant in the place of its counter.
 *
 * Order: the condition that holds for the smallest part of the loop comes first, and the part where
 * it holds is split first. If the copies become too many, conditions remain at the boundary and not
 * in the interior.
 *
 * Size: the copies of a nest have at most MOST_TIMES its statements, those of all nests
 * MOST_COPIED. Nests that evaluate conditions most often come first.
 *
 * Vectors: a condition holds for all lanes, for none, or (at the boundary) for some.
 *
 * Limits: a parallel loop is not split. A condition that is not monotone in its counter (h % 2 ==
 * 0) has no such place; it becomes an `if` around the loops below, if there are any. Guards of
 * tails (statements under an `if`) stay, as mask and peel of the schedule decide whether they are
 * copied.
 *
 * Keeps: each iteration runs once, in its order. Results are the same without this pass.
 */
#include <math.h>
#include <stdlib.h>

#include "base/saturating.h"
#include "code/code_facts.h"

/* Limits of copied statements: per nest as a multiple of its own, and of all nests. */
enum { MOST_TIMES = 10, MOST_COPIED = 1500 };

/* Conditions of the same terms that are few: each gets a part of the loop. */
enum { FEW_SUMS = 4 };

/* A boundary: a sum that is >= 0 in a part of the loop's iterations. */
struct border {
  struct fact_sum sum;
  bool found;
  bool moves; /* the sum is monotone in the loop's counter: the loop can be split */
};

struct splitter {
  struct code *c;
  struct facts facts;
  int depth;  /* number of enclosing loops, lanes aside */
  int first;  /* depth of the outermost loop that is collapsed with the current one */
  int group;  /* number of the next loops that are collapsed with it */
  int copied; /* statements copied in this nest */
  int room;   /* most statements that may be copied in this nest */
  int inner;  /* loops between `loop` and the position of the search */
  int loop;   /* the loop that may be split */
  struct border border;
  const struct fact_sum *like; /* only sums of these terms are looked for, or NULL */
  const struct fact_sum *kept; /* conditions of these terms are not partitioned, or NULL */
  int others;                  /* sums like `like` of other constants */
  struct border next;          /* where the loop that is settled next is split, if found */
  bool decided;                /* a condition of the current statement was decided */
};

static struct code_statement *statement(const struct splitter *s, int at) {
  return &s->c->statements.data[at];
}

static const struct code_expr *expr_at(const struct splitter *s, int expr) {
  return &s->c->exprs.data[expr];
}

/* The depth of the loop that may be split. */
static int level(const struct splitter *s) {
  return s->depth - s->inner;
}

static bool is_lanes(const struct splitter *s, const struct code_statement *t) {
  return s->c->variables.data[t->variable].reserved;
}

/* ---- enclosing loops ---- */

static void enter(struct splitter *s, int at) {
  const struct code_statement *t = statement(s, at);
  struct fact_range low = facts_range(&s->facts, t->low), high = facts_range(&s->facts, t->high);
  struct fact_counter *counter = &s->facts.counters.data[t->variable];
  *counter = (struct fact_counter){.range = {low.known && high.known, low.low, high.high - 1}};
  if (low.low == low.high && counter->range.known && high.high > low.low)
    counter->range.high = low.low + (high.high - 1 - low.low) / t->step * t->step;
  if (!is_lanes(s, t)) counter->depth = ++s->depth;
}

static void leave(struct splitter *s, int at) {
  const struct code_statement *t = statement(s, at);
  if (!is_lanes(s, t)) s->depth--;
  s->facts.counters.data[t->variable] = (struct fact_counter){0};
}

/* ---- the search for a boundary ---- */

/* The coefficient of the loop's counter in the sum; 0: the counter is not one term alone. */
static int64_t slope(const struct splitter *s, const struct fact_sum *sum) {
  int64_t coef = 0;
  for (int i = 0; i < sum->count; i++) {
    const struct code_expr *e = expr_at(s, sum->term[i].expr);
    if (facts_depth(&s->facts, sum->term[i].expr) < level(s)) continue;
    if (e->op != CODE_VARIABLE) return 0;
    coef = sum->term[i].coef;
  }
  return coef;
}

/* The loop can be split at a constant, or by single steps. */
static bool can_move(const struct splitter *s, const struct fact_sum *sum) {
  const struct code_statement *t = statement(s, s->loop);
  bool constant = expr_at(s, t->low)->op == PX_INT && sum->count == 1;
  return !t->parallel && s->first == level(s) && slope(s, sum) && (t->step == 1 || constant) &&
         facts_range(&s->facts, t->low).known && facts_range(&s->facts, t->high).known;
}

static bool has_term(const struct splitter *s, const struct fact_sum *sum, struct affine_term t) {
  for (int i = 0; i < sum->count; i++)
    if (sum->term[i].coef == t.coef && code_same(s->c, sum->term[i].expr, t.expr)) return true;
  return false;
}

static bool same_terms(const struct splitter *s, const struct fact_sum *a,
                       const struct fact_sum *b) {
  for (int i = 0; i < a->count; i++)
    if (!has_term(s, b, a->term[i])) return false;
  return a->count == b->count;
}

static void consider(struct splitter *s, const struct fact_sum *sum) {
  struct border b = {.sum = *sum, .found = true, .moves = can_move(s, sum)};
  bool alone = s->first < level(s) || statement(s, s->loop)->parallel;
  if (!b.moves && !s->inner && !alone) return;
  if (s->kept && same_terms(s, s->kept, sum)) return;
  if (s->like) {
    if (!b.moves || !same_terms(s, s->like, sum)) return;
    s->others += sum->constant != s->like->constant;
    if (sum->constant > s->border.sum.constant) s->border = b;
    return;
  }
  if (s->border.found && s->border.moves >= b.moves) {
    bool tighter = s->border.moves == b.moves && same_terms(s, &s->border.sum, sum) &&
                   sum->constant < s->border.sum.constant;
    if (!tighter) return;
  }
  s->border = b;
}

/* The sum at the lane that minimises or maximises it. */
static struct fact_sum without_lanes(const struct splitter *s, const struct fact_sum *sum,
                                     bool most) {
  struct fact_sum rest = {.constant = sum->constant};
  for (int i = 0; i < sum->count; i++) {
    const struct code_expr *e = expr_at(s, sum->term[i].expr);
    bool lanes = e->op == CODE_VARIABLE && s->c->variables.data[e->variable].reserved;
    if (!lanes) {
      rest.term[rest.count++] = sum->term[i];
      continue;
    }
    struct fact_range r = facts_range(&s->facts, sum->term[i].expr);
    int64_t coef = sum->term[i].coef;
    rest.constant += coef * ((coef < 0) == most ? r.low : r.high);
  }
  return rest;
}

static bool counts_lanes(const struct splitter *s, int expr) {
  const struct code_expr *e = expr_at(s, expr);
  if (e->op == CODE_VARIABLE) return s->c->variables.data[e->variable].reserved;
  for (int i = 0; i < e->count; i++)
    if (counts_lanes(s, s->c->terms.data[e->first + i].expr)) return true;
  return (e->arg[0] >= 0 && counts_lanes(s, e->arg[0])) ||
         (e->arg[1] >= 0 && counts_lanes(s, e->arg[1]));
}

/* The innermost loop that the sum depends on is `loop`, or is collapsed with it. */
static bool belongs_here(const struct splitter *s, const struct fact_sum *sum) {
  int depth = 0;
  for (int i = 0; i < sum->count; i++) {
    int of = facts_depth(&s->facts, sum->term[i].expr);
    if (of > depth) depth = of;
    if (counts_lanes(s, sum->term[i].expr)) return false; /* a quotient of lanes */
  }
  return depth >= s->first && depth <= level(s);
}

static void look_at_sum(struct splitter *s, const struct fact_sum *sum) {
  if (facts_decide_sum(&s->facts, sum) != FACT_UNKNOWN) return;
  struct fact_sum least = without_lanes(s, sum, false), most = without_lanes(s, sum, true);
  if (!belongs_here(s, &least)) return;
  if (facts_decide_sum(&s->facts, &least) == FACT_UNKNOWN)
    consider(s, &least);
  else if (facts_decide_sum(&s->facts, &most) == FACT_UNKNOWN)
    consider(s, &most);
}

static void look_at_condition(struct splitter *s, int expr) {
  const struct code_expr *e = expr_at(s, expr);
  struct fact_comparison c;
  if (e->op == PX_BOOL || facts_decide(&s->facts, expr) != FACT_UNKNOWN) return;
  if (e->op == PX_NOT || e->op == PX_AND || e->op == PX_OR) {
    look_at_condition(s, e->arg[0]);
    if (e->arg[1] >= 0) look_at_condition(s, e->arg[1]);
  } else if (facts_compare(&s->facts, expr, &c)) {
    for (int i = 0; i < c.count; i++) look_at_sum(s, &c.sum[i]);
  }
}

static void look_at_expr(struct splitter *s, int expr) {
  if (expr < 0) return;
  const struct code_expr *e = expr_at(s, expr);
  enum fact_truth truth = FACT_UNKNOWN;
  if (e->op == PX_SELECT) {
    truth = facts_decide(&s->facts, e->arg[0]);
    look_at_condition(s, e->arg[0]);
  }
  for (int i = 0; i < e->count; i++) look_at_expr(s, s->c->terms.data[e->first + i].expr);
  for (int i = 0; i < 3; i++) {
    bool taken = !i || truth == FACT_UNKNOWN || (truth == FACT_TRUE) == (i == 1);
    if (taken) look_at_expr(s, e->arg[i]);
  }
}

static void look_at_children(struct splitter *s, int parent);

static void look_at(struct splitter *s, int at) {
  const struct code_statement *t = statement(s, at);
  if (t->kind == CODE_ASSIGN) look_at_expr(s, t->to);
  if (t->kind == CODE_ASSIGN || t->kind == CODE_DECLARE) look_at_expr(s, t->value);
  if (t->kind == CODE_FOR) {
    int inner = is_lanes(s, t) ? 0 : 1;
    enter(s, at);
    s->inner += inner;
    look_at_children(s, at);
    s->inner -= inner;
    leave(s, at);
    return;
  }
  int mark = facts_mark(&s->facts);
  if (t->kind == CODE_IF) facts_assume_condition(&s->facts, t->condition, true);
  look_at_children(s, at);
  facts_forget(&s->facts, mark);
  if (t->other < 0) return;
  facts_assume_condition(&s->facts, t->condition, false);
  look_at_children(s, t->other);
  facts_forget(&s->facts, mark);
}

static void look_at_children(struct splitter *s, int parent) {
  for (int i = statement(s, parent)->first; i >= 0; i = statement(s, i)->next) look_at(s, i);
}

/* ---- copies ---- */

static int count(const struct splitter *s, int parent) {
  int sum = 1;
  for (int i = statement(s, parent)->first; i >= 0; i = statement(s, i)->next) sum += count(s, i);
  return sum + (statement(s, parent)->other >= 0 ? count(s, statement(s, parent)->other) : 0);
}

static void append(struct splitter *s, int parent, int child) {
  struct code_statement *p = statement(s, parent);
  if (p->last >= 0)
    statement(s, p->last)->next = child;
  else
    p->first = child;
  p->last = child;
  statement(s, child)->parent = parent;
}

static int push(struct splitter *s, struct code_statement t) {
  t.first = t.last = t.next = t.other = -1;
  VEC_PUSH(&s->c->statements, t);
  return s->c->statements.count - 1;
}

static int copy_of(struct splitter *s, int at) {
  int copy = push(s, *statement(s, at)), other = statement(s, at)->other;
  statement(s, copy)->parent = statement(s, at)->parent;
  for (int i = statement(s, at)->first; i >= 0; i = statement(s, i)->next)
    append(s, copy, copy_of(s, i));
  if (other >= 0) {
    int block = copy_of(s, other);
    statement(s, copy)->other = block;
  }
  return copy;
}

/* Inserts a copy of a statement after it. */
static int insert_copy(struct splitter *s, int at) {
  int after = copy_of(s, at), parent = statement(s, at)->parent;
  statement(s, after)->next = statement(s, at)->next;
  statement(s, at)->next = after;
  if (statement(s, parent)->last == at) statement(s, parent)->last = after;
  return after;
}

/* ---- one loop becomes two ---- */

/* The sum without the term of the loop's counter, times `times`. */
static int rest_of(struct splitter *s, const struct fact_sum *sum, int64_t times,
                   int64_t constant) {
  struct affine_term term[FACT_TERMS];
  int count = 0;
  for (int i = 0; i < sum->count; i++)
    if (facts_depth(&s->facts, sum->term[i].expr) < level(s))
      term[count++] = (struct affine_term){sum->term[i].expr, times * sum->term[i].coef};
  return code_sum(s->c, term, count, times * sum->constant + constant);
}

static int floor_div(struct splitter *s, int expr, int64_t by) {
  if (by == 1) return expr;
  const struct code_expr *e = expr_at(s, expr);
  if (e->op == PX_INT) {
    int64_t x = e->integer;
    return code_int(s->c, x / by - (x % by < 0));
  }
  int n = code_int(s->c, by);
  return code_operation(s->c, CODE_FLOOR_DIV, code_type(CODE_INDEX, 1), expr, n, -1);
}

/* Where the counter is when the sum a*counter + rest >= 0 changes:
 * at ceil(-rest / a) it begins to hold, after floor(rest / -a) it does no more. */
static int place_of(struct splitter *s, const struct fact_sum *sum) {
  int64_t a = slope(s, sum);
  if (a > 0) return floor_div(s, rest_of(s, sum, -1, a - 1), a);
  return floor_div(s, rest_of(s, sum, 1, -a), -a);
}

static int extremum(struct splitter *s, int op, int a, int b) {
  struct fact_range x = facts_range(&s->facts, a), y = facts_range(&s->facts, b);
  bool known = x.known && y.known;
  if (known && (op == PX_MIN ? x.high <= y.low : x.low >= y.high)) return a;
  if (known && (op == PX_MIN ? y.high <= x.low : y.low >= x.high)) return b;
  return code_operation(s->c, op, code_type(CODE_INDEX, 1), a, b, -1);
}

/* The place within low and high, and at a step. */
static int within(struct splitter *s, int place, const struct code_statement *t) {
  const struct code_expr *e = expr_at(s, place);
  if (t->step > 1) {
    int64_t low = expr_at(s, t->low)->integer, steps = (e->integer - low + t->step - 1) / t->step;
    place = code_int(s->c, low + steps * t->step);
  }
  return extremum(s, PX_MIN, extremum(s, PX_MAX, place, t->low), t->high);
}

static void settle_loop(struct splitter *s, int at);

/* The part of a loop where the condition holds, or where it does not. */
static void settle_part(struct splitter *s, int at, const struct fact_sum *sum, bool holds) {
  int mark = facts_mark(&s->facts);
  facts_assume(&s->facts, sum, holds);
  settle_loop(s, at);
  facts_forget(&s->facts, mark);
}

/* Rows of a tile have conditions of the same terms that change within two steps of the loop, as a causal mask. A part
 * for each would be run once at most: the loop becomes three, where all, some and none of them hold. Finds the last
 * one to change; `found` is false where the conditions are few or far apart. */
static struct border loosest_of(struct splitter *s, int at, const struct border *tightest) {
  struct border saved = s->border, loosest;
  s->border = *tightest;
  s->like = &tightest->sum;
  s->others = 0;
  look_at_children(s, at);
  loosest = s->border;
  loosest.found = s->others >= FEW_SUMS &&
                  loosest.sum.constant - tightest->sum.constant < 2 * llabs(slope(s, &loosest.sum));
  s->like = NULL;
  s->border = saved;
  return loosest;
}

/* The part where the condition holds may copy statements first. The loop is open. `last`: where the condition holds,
 * some of its like do, which stay conditions. */
static void split(struct splitter *s, int at, const struct border *b, bool last) {
  int place = within(s, place_of(s, &b->sum), statement(s, at));
  bool holds = slope(s, &b->sum) < 0; /* before the place */
  const struct fact_sum *kept = s->kept;
  struct border loosest = last ? (struct border){.found = false} : loosest_of(s, at, b);
  leave(s, at);
  int after = insert_copy(s, at);
  statement(s, at)->high = place;
  statement(s, after)->low = place;
  if (last) s->kept = &b->sum;
  settle_part(s, holds ? at : after, &b->sum, true);
  s->kept = kept;
  s->next = loosest;
  settle_part(s, holds ? after : at, &b->sum, false);
}

/* ---- the inside of a loop under a condition ---- */

static int negative_part(struct splitter *s, const struct fact_sum *sum, int64_t sign) {
  struct affine_term term[FACT_TERMS];
  int count = 0;
  for (int i = 0; i < sum->count; i++)
    if ((sum->term[i].coef < 0) == (sign < 0))
      term[count++] = (struct affine_term){sum->term[i].expr, sign * sum->term[i].coef};
  bool constant = sum->constant && (sum->constant < 0) == (sign < 0);
  return code_sum(s->c, term, count, constant ? sign * sum->constant : 0);
}

/* sum >= 0, printed as negative terms <= positive terms */
static int condition_of(struct splitter *s, const struct fact_sum *sum) {
  int x = negative_part(s, sum, -1), y = negative_part(s, sum, 1);
  return code_operation(s->c, PX_LE, code_type(CODE_TRUTH, 1), x, y, -1);
}

static bool settle(struct splitter *s, int parent);

static void settle_branch(struct splitter *s, int at, const struct fact_sum *sum, bool holds) {
  int mark = facts_mark(&s->facts);
  facts_assume(&s->facts, sum, holds);
  settle(s, at);
  facts_forget(&s->facts, mark);
}

static void branch(struct splitter *s, int parent, const struct border *b) {
  int condition = condition_of(s, &b->sum), first = statement(s, parent)->first;
  int yes = push(s, (struct code_statement){.kind = CODE_IF, .condition = condition});
  int no = push(s, (struct code_statement){.kind = CODE_BLOCK});
  statement(s, no)->parent = parent;
  statement(s, parent)->first = statement(s, parent)->last = -1;
  for (int i = first, next; i >= 0; i = next) {
    next = statement(s, i)->next;
    append(s, no, copy_of(s, i));
    statement(s, i)->next = -1;
    append(s, yes, i);
  }
  append(s, parent, yes);
  statement(s, yes)->other = no;
  settle_branch(s, yes, &b->sum, true);
  settle_branch(s, no, &b->sum, false);
}

static void settle_children(struct splitter *s, int parent);

/* ---- a statement whose conditions are decided ---- */

static int decided(struct code *c, int expr, void *data) {
  struct splitter *s = data;
  const struct code_expr *e = expr_at(s, expr);
  if (e->type.element != CODE_TRUTH || e->type.lanes > 1 || e->op == PX_BOOL) return expr;
  enum fact_truth truth = facts_decide(&s->facts, expr);
  if (truth == FACT_UNKNOWN) return expr;
  s->decided = true;
  return code_truth(c, truth == FACT_TRUE);
}

static int decide(struct splitter *s, int expr) {
  return code_map(s->c, expr, decided, s);
}

static bool is_number(const struct splitter *s, int expr, double number) {
  const struct code_expr *e = expr_at(s, expr);
  while (e->op == CODE_BROADCAST || e->op == CODE_CONVERT) e = expr_at(s, e->arg[0]);
  return e->op == PX_NUMBER && e->number == number;
}

/* to += 0, to *= 1, to = max(to, -inf) */
static bool does_nothing(const struct splitter *s, const struct code_statement *t) {
  const struct code_expr *e = expr_at(s, t->value);
  switch (t->how) {
    case CODE_ADD: return is_number(s, t->value, 0);
    case CODE_MULTIPLY: return is_number(s, t->value, 1);
    default:
      return (e->op == PX_MAX || e->op == PX_MIN) && e->arg[0] == t->to &&
             is_number(s, e->arg[1], e->op == PX_MAX ? -HUGE_VAL : HUGE_VAL);
  }
}

/* to += 0 * x of a loaded x -> to += x - x, which is nan for the same x and keeps no register for
 * the 0: a tile that has one register less puts a sum on the stack. */
static int without_zero(struct splitter *s, const struct code_statement *t) {
  const struct code_expr *e = expr_at(s, t->value);
  if (t->how != CODE_ADD || e->op != PX_MUL) return t->value;
  for (int i = 0; i < 2; i++) {
    int x = e->arg[1 - i], op = expr_at(s, x)->op;
    bool same = code_same_type(expr_at(s, x)->type, e->type);
    if (same && is_number(s, e->arg[i], 0) && (op == CODE_ELEMENT || op == CODE_VECTOR))
      return code_operation(s->c, PX_SUB, e->type, x, x, -1);
  }
  return t->value;
}

static void settle_values(struct splitter *s, int at) {
  struct code_statement t = *statement(s, at);
  s->decided = false;
  if (t.kind == CODE_ASSIGN || t.kind == CODE_PREFETCH) t.to = decide(s, t.to);
  if (t.kind == CODE_ASSIGN || t.kind == CODE_DECLARE) t.value = decide(s, t.value);
  if (t.kind == CODE_IF) t.condition = decide(s, t.condition);
  if (t.kind == CODE_ASSIGN && s->decided && does_nothing(s, &t)) t.kind = CODE_BLOCK;
  if (t.kind == CODE_ASSIGN && s->decided) t.value = without_zero(s, &t);
  *statement(s, at) = t;
}

/* ---- the walk ---- */

static void settle_statement(struct splitter *s, int at) {
  if (statement(s, at)->kind == CODE_FOR) {
    settle_loop(s, at);
    return;
  }
  settle_values(s, at);
  const struct code_statement t = *statement(s, at);
  int mark = facts_mark(&s->facts);
  if (t.kind == CODE_IF) facts_assume_condition(&s->facts, t.condition, true);
  settle_children(s, at);
  facts_forget(&s->facts, mark);
  if (t.other < 0) return;
  facts_assume_condition(&s->facts, t.condition, false);
  settle_children(s, t.other);
  facts_forget(&s->facts, mark);
}

static void settle_children(struct splitter *s, int parent) {
  for (int i = statement(s, parent)->first, next; i >= 0; i = next) {
    next = statement(s, i)->next;
    settle_statement(s, i);
  }
}

/* The children of a loop, or of a branch inside it. Returns whether the open loop is still open. */
static bool settle(struct splitter *s, int parent) {
  s->border.found = false;
  bool last = s->next.found;
  if (last)
    s->border = s->next;
  else
    look_at_children(s, parent);
  s->next.found = false;
  const struct border b = s->border;
  int copies = b.found ? count(s, parent) : 0;
  if (!b.found || s->copied + copies > s->room) {
    settle_children(s, parent);
    return true;
  }
  bool splits = b.moves && parent == s->loop;
  s->copied += copies;
  if (splits)
    split(s, parent, &b, last);
  else
    branch(s, parent, &b);
  return !splits;
}

/* Decides the end of a lane loop, a minimum of two indices, if ranges allow it; returns whether
 * they did. */
static bool settle_end(struct splitter *s, int at) {
  const struct code_expr *e = expr_at(s, statement(s, at)->high);
  if (e->op != PX_MIN) return false;
  struct fact_range x = facts_range(&s->facts, e->arg[0]), y = facts_range(&s->facts, e->arg[1]);
  if (!x.known || !y.known || (x.low < y.high && y.low < x.high)) return false;
  int end = x.low >= y.high ? e->arg[1] : e->arg[0];
  statement(s, at)->high = end;
  return true;
}

/* A vector that is gathered, or computed, lane by lane. */
static void settle_lanes(struct splitter *s, int at) {
  bool whole = settle_end(s, at);
  enter(s, at);
  s->decided = false;
  settle_children(s, at);
  leave(s, at);
  if (s->decided || whole) code_join_lanes(s->c, at);
}

/* No statement is between collapsed loops: all their counters are known in the last of them. */
static void settle_loop(struct splitter *s, int at) {
  int loop = s->loop, first = s->first;
  const struct code_statement *t = statement(s, at);
  if (is_lanes(s, t)) {
    settle_lanes(s, at);
    return;
  }
  enter(s, at);
  if (!s->group) s->first = s->depth;
  if (t->parallel) s->group = t->parallel;
  if (s->group) s->group--;
  s->loop = at;
  bool open = true;
  if (s->group)
    settle_children(s, at);
  else
    open = settle(s, at);
  if (open) leave(s, at);
  s->loop = loop;
  s->first = first;
}

/* ---- lanes one by one ---- */

static bool loads(const struct splitter *s, int expr) {
  if (expr < 0) return false;
  const struct code_expr *e = expr_at(s, expr);
  return e->op == CODE_ELEMENT || loads(s, e->arg[0]) || loads(s, e->arg[1]) || loads(s, e->arg[2]);
}

/* The lane at which a condition of the lane alone changes; 0: none. */
static int64_t changes_at(struct splitter *s, int condition) {
  const struct code_expr *e = expr_at(s, condition);
  struct fact_comparison c;
  if (e->op == PX_NOT || e->op == PX_AND || e->op == PX_OR) {
    int64_t first = changes_at(s, e->arg[0]);
    return first || e->arg[1] < 0 ? first : changes_at(s, e->arg[1]);
  }
  if (!facts_compare(&s->facts, condition, &c)) return 0;
  for (int i = 0; i < c.count; i++) {
    const struct fact_sum *sum = &c.sum[i];
    if (sum->count != 1 || expr_at(s, sum->term[0].expr)->op != CODE_VARIABLE ||
        !counts_lanes(s, sum->term[0].expr) || facts_decide_sum(&s->facts, sum) != FACT_UNKNOWN)
      continue;
    int64_t a = sum->term[0].coef, x = sum->constant; /* a*lane + x >= 0 */
    return a > 0 ? (a - 1 - x) / a : x / -a + 1;      /* within the loop, so positive */
  }
  return 0;
}

/* The first such place of a load's condition. */
static int64_t load_changes_at(struct splitter *s, int expr) {
  if (expr < 0) return 0;
  const struct code_expr *e = expr_at(s, expr);
  if (e->op == PX_SELECT && e->type.lanes == 1 && (loads(s, e->arg[1]) || loads(s, e->arg[2]))) {
    int64_t place = changes_at(s, e->arg[0]);
    if (place) return place;
  }
  for (int i = 0; i < 3; i++) {
    int64_t place = load_changes_at(s, e->arg[i]);
    if (place) return place;
  }
  return 0;
}

/* Loops over lanes become two where the lane alone decides whether there is a load: of a masked
 * load whose mask is known gcc 12 makes one of the whole vector (`vblendps $7, (%rdi), ..`), which
 * reads foreign memory. */
static void part_lanes(struct splitter *s, int at) {
  const struct code_statement *t = statement(s, at), *child = statement(s, t->first);
  bool known = expr_at(s, t->low)->op == PX_INT && expr_at(s, t->high)->op == PX_INT;
  if (!known || t->first != t->last || child->kind != CODE_ASSIGN) return;
  if (code_join_lanes(s->c, at)) return;
  enter(s, at);
  settle_children(s, at);
  int64_t place = load_changes_at(s, statement(s, statement(s, at)->first)->value);
  leave(s, at);
  if (!place) return;
  int after = insert_copy(s, at);
  statement(s, at)->high = statement(s, after)->low = code_int(s->c, place);
  part_lanes(s, at);
  part_lanes(s, after);
}

static void part_all(struct splitter *s, int parent) {
  for (int i = statement(s, parent)->first, next; i >= 0; i = next) {
    next = statement(s, i)->next;
    if (statement(s, i)->kind == CODE_FOR && is_lanes(s, statement(s, i)))
      part_lanes(s, i);
    else
      part_all(s, i);
  }
  if (statement(s, parent)->other >= 0) part_all(s, statement(s, parent)->other);
}

/* ---- all nests ---- */

static bool is_choice(const struct code *c, const struct code_expr *e) {
  return e->op == PX_SELECT && c->exprs.data[e->arg[0]].type.lanes == 1;
}

static bool has_choices(const struct code *c) {
  for (int i = 0; i < c->exprs.count; i++)
    if (is_choice(c, &c->exprs.data[i])) return true;
  return false;
}

static bool chooses(const struct splitter *s, int expr) {
  if (expr < 0) return false;
  const struct code_expr *e = expr_at(s, expr);
  return is_choice(s->c, e) || chooses(s, e->arg[0]) || chooses(s, e->arg[1]) ||
         chooses(s, e->arg[2]);
}

static double evaluations_below(struct splitter *s, int parent);

/* How often conditions of values are evaluated; a loop with an unknown trip count runs once. */
static double evaluations_of(struct splitter *s, int at) {
  const struct code_statement t = *statement(s, at);
  double often = t.kind == CODE_ASSIGN && chooses(s, t.value);
  if (t.kind == CODE_DECLARE) often = chooses(s, t.value);
  if (t.other >= 0) often += evaluations_below(s, t.other);
  if (t.kind != CODE_FOR) return often + evaluations_below(s, at);
  enter(s, at);
  struct fact_range r = s->facts.counters.data[t.variable].range;
  int64_t steps = r.known ? (r.high - r.low) / t.step + 1 : 1;
  often = steps > 0 ? (double)steps * evaluations_below(s, at) : 0;
  leave(s, at);
  return often;
}

static double evaluations_below(struct splitter *s, int parent) {
  double sum = 0;
  for (int i = statement(s, parent)->first; i >= 0; i = statement(s, i)->next)
    sum += evaluations_of(s, i);
  return sum;
}

/* An outermost statement, before any is changed. */
struct nest {
  int at, size;
  double evaluations;
};

static int more_often(const void *a, const void *b) {
  const struct nest *x = a, *y = b;
  return x->evaluations != y->evaluations
             ? (x->evaluations < y->evaluations) - (x->evaluations > y->evaluations)
             : x->at - y->at;
}

static void settle_nests(struct splitter *s) {
  struct {
    VEC(struct nest);
  } nests = {0};
  int left = MOST_COPIED;
  for (int i = statement(s, 0)->first; i >= 0; i = statement(s, i)->next) {
    struct nest nest = {i, count(s, i), evaluations_of(s, i)};
    VEC_PUSH(&nests, nest);
  }
  if (nests.count) qsort(nests.data, (size_t)nests.count, sizeof *nests.data, more_often);
  for (int i = 0; i < nests.count; i++) {
    s->copied = 0;
    s->room = (int)int_min(left, MOST_TIMES * (int64_t)nests.data[i].size);
    settle_statement(s, nests.data[i].at);
    left -= s->copied;
  }
  mem_free(nests.data);
}

void code_partition_loops(struct code *c) {
  struct splitter s = {.c = c};
  if (!has_choices(c)) return;
  facts_open(&s.facts, c);
  settle_nests(&s);
  facts_close(&s.facts);
  code_simplify(c);
}

void code_split_lanes(struct code *c) {
  struct splitter s = {.c = c};
  if (!has_choices(c)) return;
  facts_open(&s.facts, c);
  part_all(&s, 0);
  facts_close(&s.facts);
  code_simplify(c);
}
