/* A loop over the lanes of a vector becomes one vector statement. See code.h.
 *
 *     for lane in 0..16       ->  lanes0 = X[w + kw - 1, 16 lanes]
 *       lanes0[lane] = X[w + kw + lane - 1]
 *
 *     for lane in 0..9        ->  Y[w, first 9 of 16 lanes] = X[w + kw, first 9 of 16 lanes]
 *       Y[w + lane] = X[w + kw + lane]
 *
 *     for lane in 0..16       ->  lanes0 = X[w + kw, 16 lanes, from lane max(1 - kw, 0) on]
 *       lanes0[lane] = (1 <= lane + kw ? X[w + kw + lane - 1] : 0)
 *
 * Loop partitioning calls it: lanes that were gathered because some might lie outside are
 * contiguous in the interior. A vector that was gathered into a variable of the tree's own replaces
 * each use of that variable.
 */
#include <math.h>

#include "code/code_facts.h"

enum { SHORTEST = 4 }; /* lanes that are worth a vector where not all of it are */

struct lanes {
  struct code *c;
  int counter, count;
  int64_t low, end; /* the first of them, and the one behind the last */
  int part;         /* so many of a vector; -1: all */
};

static const struct code_expr *expr_at(const struct lanes *l, int expr) {
  return &l->c->exprs.data[expr];
}

/* Itself, or what is left of it where as many are divided off as there are. */
static bool is_lane(const struct lanes *l, int expr) {
  const struct code_expr *e = expr_at(l, expr);
  if (e->op == CODE_CONVERT) e = expr_at(l, e->arg[0]);
  if (e->op == PX_MOD && expr_at(l, e->arg[1])->op == PX_INT &&
      expr_at(l, e->arg[1])->integer >= l->end)
    return is_lane(l, e->arg[0]);
  return e->op == CODE_VARIABLE && e->variable == l->counter;
}

/* One lane further is one place further. */
static bool is_contiguous(const struct lanes *l, int index) {
  const struct code_expr *e = expr_at(l, index);
  bool once = false;
  if (e->op != CODE_SUM) return is_lane(l, index);
  for (int i = 0; i < e->count; i++) {
    const struct affine_term *t = &l->c->terms.data[e->first + i];
    if (is_lane(l, t->expr) && t->coef == 1 && !once)
      once = true;
    else if (code_mentions(l->c, t->expr, l->counter))
      return false;
  }
  return once;
}

bool code_side_by_side(struct code *c, int index, int counter, int64_t end) {
  struct lanes l = {.c = c, .counter = counter, .end = end};
  return is_contiguous(&l, index);
}

static int vector_of(struct lanes *l, int expr);

/* The vector variable of a lane of it; -1: another lane, or another width. */
static int whole(const struct lanes *l, const struct code_expr *e) {
  if (l->part >= 0) return -1;
  return is_lane(l, e->arg[1]) && expr_at(l, e->arg[0])->type.lanes == l->count ? e->arg[0] : -1;
}

/* In memory from the first lane on, so many of them; -1: all. */
static int contiguous_until(struct lanes *l, int expr, int end) {
  const struct code_expr e = *expr_at(l, expr); /* a copy: the array may move */
  if (!code_is_value(e.type) || !is_contiguous(l, e.arg[0])) return -1;
  int first = code_substitute(l->c, e.arg[0], l->counter, l->low);
  return code_first_lanes(l->c, code_element(l->c, e.variable, first), l->count, end);
}

/* ---- lanes inside a padding boundary ---- */

/* Lanes first .. end-1; -1: from 0 on, up to the last. */
struct interval {
  int first, end;
};

static int either(struct code *c, int op, int a, int b) {
  const struct code_expr *x = &c->exprs.data[a], *y = &c->exprs.data[b];
  if (x->op == PX_INT && y->op == PX_INT)
    return (x->integer < y->integer) == (op == PX_MIN) ? a : b;
  return code_operation(c, op, code_type(CODE_INDEX, 1), a, b, -1);
}

/* Those of which the sum is >= 0; false: that is no interval. */
static bool narrow(struct lanes *l, const struct fact_sum *sum, struct interval *i) {
  struct affine_term term[FACT_TERMS];
  int64_t coef = 0;
  int count = 0;
  for (int k = 0; k < sum->count; k++)
    if (is_lane(l, sum->term[k].expr))
      coef = sum->term[k].coef;
    else if (code_mentions(l->c, sum->term[k].expr, l->counter))
      return false;
    else
      term[count++] = sum->term[k];
  if (coef > 1 || coef < -1) return false;
  int64_t times = coef > 0 ? -1 : coef < 0 ? 1 : l->count; /* none or all: (sum + 1) * lanes */
  for (int k = 0; k < count; k++) term[k].coef *= times;
  int64_t constant = coef > 0 ? -sum->constant : (sum->constant + 1) * times;
  int place = code_sum(l->c, term, count, constant);
  if (coef > 0)
    i->first = either(l->c, PX_MAX, place, i->first < 0 ? code_int(l->c, 0) : i->first);
  else
    i->end = either(l->c, PX_MIN, place, i->end < 0 ? code_int(l->c, l->count) : i->end);
  return true;
}

static bool holds_in(struct lanes *l, struct facts *f, int condition, struct interval *i) {
  const struct code_expr e = *expr_at(l, condition);
  struct fact_comparison c;
  if (e.op == PX_AND) return holds_in(l, f, e.arg[0], i) && holds_in(l, f, e.arg[1], i);
  if (!facts_compare(f, condition, &c) || c.negated) return false;
  for (int k = 0; k < c.count; k++)
    if (!narrow(l, &c.sum[k], i)) return false;
  return true;
}

static bool is_at(const struct lanes *l, int expr, int64_t integer) {
  return expr < 0 || (expr_at(l, expr)->op == PX_INT && expr_at(l, expr)->integer == integer);
}

static int at_first(struct code *c, int expr, void *data) {
  const int *by = data; /* a counter, and what stands for it */
  const struct code_expr *e = &c->exprs.data[expr];
  return e->op == CODE_VARIABLE && e->variable == by[0] ? by[1] : expr;
}

/* The lanes inside a padding boundary, and 0 in the others. */
static int bordered(struct lanes *l, const struct code_expr *e) {
  const struct code_expr load = *expr_at(l, e->arg[1]), *zero = expr_at(l, e->arg[2]);
  struct interval i = {-1, l->part};
  struct facts f;
  if (l->low || load.op != CODE_ELEMENT || load.type.element != PROGRAM_F32 ||
      zero->op != PX_NUMBER || zero->number != 0 || signbit(zero->number) ||
      !is_contiguous(l, load.arg[0]))
    return -1;
  facts_open(&f, l->c);
  bool known = holds_in(l, &f, e->arg[0], &i);
  facts_close(&f);
  if (!known) return -1;
  if (is_at(l, i.first, 0)) i.first = -1;
  if (i.first < 0 && is_at(l, i.end, l->count)) i.end = -1;
  if (i.first < 0) return contiguous_until(l, e->arg[1], i.end);
  if (i.end < 0) i.end = code_int(l->c, l->count);
  int by[2] = {l->counter, i.first}, place = code_map(l->c, load.arg[0], at_first, by);
  int element = code_element(l->c, load.variable, place);
  return code_some_lanes(l->c, element, l->count, i.first, i.end);
}

static int exactly(struct lanes *l, int expr) {
  return expr < 0 || expr_at(l, expr)->type.lanes > 1 ? expr : code_broadcast(l->c, expr, l->count);
}

/* bf16 in memory as f32: no other vector is converted. */
static int converted(struct lanes *l, const struct code_expr *e) {
  int x = vector_of(l, e->arg[0]);
  if (x < 0 || l->part >= 0 || expr_at(l, x)->op != CODE_VECTOR) return -1;
  bool reads = expr_at(l, x)->type.element == PROGRAM_BF16 && e->type.element == PROGRAM_F32;
  return reads ? code_convert(l->c, x, PROGRAM_F32) : -1;
}

static int operation(struct lanes *l, const struct code_expr *e, bool of_vectors) {
  int arg[3] = {-1, -1, -1};
  for (int i = 0; i < 3 && e->arg[i] >= 0; i++) {
    arg[i] = vector_of(l, e->arg[i]);
    if (arg[i] < 0) return -1;
    if (of_vectors) arg[i] = exactly(l, arg[i]);
  }
  struct code_type type = code_type(e->type.element, l->count);
  return code_operation(l->c, e->op, type, arg[0], arg[1], arg[2]);
}

/* In memory side by side, or permuted. */
static int loaded(struct lanes *l, int expr) {
  int vector = contiguous_until(l, expr, l->part);
  if (vector >= 0 || l->part >= 0 || l->low) return vector;
  return code_permuted(l->c, expr, l->counter, l->count);
}

/* All lanes at once; itself where they are the same; -1 where that is not known. */
static int vector_of(struct lanes *l, int expr) {
  const struct code_expr e = *expr_at(l, expr);
  if (!code_mentions(l->c, expr, l->counter)) return expr;
  if (e.op == CODE_LANE) return whole(l, &e);
  if (e.op == CODE_ELEMENT) return loaded(l, expr);
  if (e.op == CODE_CONVERT) return converted(l, &e);
  if (!code_is_value(e.type) || e.type.lanes > 1) return -1;
  switch (e.op) {
    case PX_ADD:
    case PX_SUB:
    case PX_MUL:
    case PX_DIV: return operation(l, &e, false);
    case PX_NEG:
    case PX_MIN:
    case PX_MAX: return operation(l, &e, true);
    case PX_SELECT: return bordered(l, &e);
    default: return -1;
  }
}

/* ---- the statement ---- */

/* All lanes at once, as they are stored. */
static int written(struct lanes *l, int expr) {
  int vector = vector_of(l, expr);
  return vector >= 0 && expr_at(l, vector)->op == CODE_PERMUTE ? -1 : vector;
}

struct replaced {
  int variable, value;
};

static int in_place(struct code *c, int expr, void *data) {
  const struct replaced *r = data;
  const struct code_expr *e = &c->exprs.data[expr];
  return e->op == CODE_VARIABLE && e->variable == r->variable ? r->value : expr;
}

/* What a variable of the tree's own was made for stands behind it, in its block. */
static void put_in_place(struct lanes *l, int loop, int to, int value) {
  struct replaced r = {expr_at(l, to)->variable, value};
  if (!l->c->variables.data[r.variable].reserved) return;
  for (int i = l->c->statements.data[loop].next; i >= 0; i = l->c->statements.data[i].next) {
    struct code_statement t = l->c->statements.data[i];
    if (t.kind != CODE_ASSIGN) continue;
    t.value = code_map(l->c, t.value, in_place, &r);
    l->c->statements.data[i] = t;
  }
}

/* Whether there are vectors of so many: the first three lanes of four are none. */
static bool is_width(int64_t lanes) {
  return lanes > 1 && lanes <= CODE_LANES && (lanes & (lanes - 1)) == 0;
}

/* The lanes that a loop counts; false: they are no vector, nor the first of one. */
static bool lanes_of(struct code *c, const struct code_statement *loop, struct lanes *l) {
  const struct code_expr *low = &c->exprs.data[loop->low], *high = &c->exprs.data[loop->high];
  if (low->op != PX_INT || high->op != PX_INT) return false;
  int64_t count = high->integer - low->integer, width = 1;
  while (width < count) width *= 2;
  *l = (struct lanes){c, loop->variable, (int)width, low->integer, high->integer, -1};
  if (low->integer || width != count) l->part = code_int(c, count);
  return is_width(width) && count >= SHORTEST;
}

/* Of the first lanes only elements of 4 and 8 bytes in memory are stored. */
static bool may_store(const struct lanes *l, const struct code_statement *t) {
  const struct code_expr *to = expr_at(l, t->to);
  return l->part < 0 || (t->how == CODE_SET && to->op == CODE_ELEMENT &&
                         (to->type.element == PROGRAM_F32 || to->type.element == PROGRAM_F64));
}

bool code_join_lanes(struct code *c, int loop) {
  const struct code_statement f = c->statements.data[loop];
  struct lanes l;
  if (f.first < 0 || f.first != f.last || c->statements.data[f.first].kind != CODE_ASSIGN ||
      !lanes_of(c, &f, &l))
    return false;
  struct code_statement t = c->statements.data[f.first];
  if (!may_store(&l, &t)) return false;
  t.to = code_mentions(l.c, t.to, l.counter) ? written(&l, t.to) : -1;
  t.value = t.to < 0 ? -1 : vector_of(&l, t.value);
  if (t.value < 0 ||
      (code_same_type(expr_at(&l, t.to)->type, expr_at(&l, t.value)->type) == false &&
       expr_at(&l, t.value)->type.lanes > 1))
    return false;
  if (t.how == CODE_SET) t.value = exactly(&l, t.value);
  c->statements.data[f.first] = t;
  c->statements.data[loop].kind = CODE_BLOCK;
  if (t.how == CODE_SET && expr_at(&l, t.to)->op == CODE_VARIABLE)
    put_in_place(&l, loop, t.to, t.value);
  return true;
}
