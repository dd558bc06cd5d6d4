/* Scalar promotion of sums: places in memory that a loop adds to, and that are the same in each
 * iteration, are summed in variables. These are added to memory after the loop. See code.h.
 *
 *                                              let Y_sum f32x8[2] = 0
 *     for k in 0..512                          for k in 0..512
 *       Y[at, 8 lanes] += A[k] * B[k]            Y_sum_0 += A[k] * B[k]
 *       Y[at + 8, 8 lanes] += A[k] * C[k]  ->    Y_sum_1 += A[k] * C[k]
 *                                              Y[at, 8 lanes] += Y_sum_0
 *                                              Y[at + 8, 8 lanes] += Y_sum_1
 *
 * This occurs where a part of a reduction is outside the loops over its result. Compilers promote,
 * too, but not partial vectors, and fewer places than this pass.
 *
 * Keeps: the same terms in each sum, in another grouping. The loop does nothing with the array but
 * add to it; other places of it may be added to in memory meanwhile.
 */
#include <stdio.h>
#include <stdlib.h>

#include "code/code.h"

enum { PLACES = 64 }; /* of one array in one loop */

struct promotion {
  struct code *c;
  int loop, array;
  struct code_type type; /* of these places */
  int place[PLACES];     /* expressions: elements, or vectors of them */
  int count, variable;
};

static struct code_statement *statement(const struct promotion *p, int at) {
  return &p->c->statements.data[at];
}

static const struct code_expr *expr_at(const struct promotion *p, int expr) {
  return &p->c->exprs.data[expr];
}

/* ---- which places ---- */

/* The array of what is written; -1: it is no element of one, nor elements. */
static int array_of(const struct promotion *p, int to) {
  const struct code_expr *e = expr_at(p, to);
  if (e->op == CODE_VECTOR) e = expr_at(p, e->arg[0]);
  return e->op == CODE_ELEMENT ? e->variable : -1;
}

static bool adds_to(const struct promotion *p, const struct code_statement *s) {
  return s->kind == CODE_ASSIGN && s->how == CODE_ADD && array_of(p, s->to) == p->array;
}

/* Where something is written the array is mentioned once. */
static bool place_mentions(const struct promotion *p, int to) {
  const struct code_expr *e = expr_at(p, to);
  if (e->op == CODE_VECTOR) {
    if (code_mentions(p->c, e->arg[1], p->array) || code_mentions(p->c, e->arg[2], p->array))
      return true;
    e = expr_at(p, e->arg[0]);
  }
  return code_mentions(p->c, e->arg[0], p->array);
}

/* The statement, or one below it, does something else with the array than adding to it. */
static bool uses(const struct promotion *p, int at) {
  const struct code_statement *s = statement(p, at);
  bool adds = adds_to(p, s);
  int more[] = {s->kind == CODE_FOR ? s->low : -1, s->kind == CODE_FOR ? s->high : -1,
                s->kind == CODE_IF ? s->condition : -1,
                s->kind == CODE_ASSIGN || s->kind == CODE_DECLARE ? s->value : -1,
                !adds && (s->kind == CODE_ASSIGN || s->kind == CODE_PREFETCH) ? s->to : -1};
  for (int i = 0; i < (int)(sizeof more / sizeof *more); i++)
    if (code_mentions(p->c, more[i], p->array)) return true;
  if (adds && place_mentions(p, s->to)) return true;
  for (int i = s->first; i >= 0; i = statement(p, i)->next)
    if (uses(p, i)) return true;
  return s->other >= 0 && uses(p, s->other);
}

/* The expression mentions what the statement, or one below it, counts, declares or allocates. */
static bool moves(const struct promotion *p, int at, int expr) {
  const struct code_statement *s = statement(p, at);
  if ((s->kind == CODE_FOR || s->kind == CODE_DECLARE) && code_mentions(p->c, expr, s->variable))
    return true;
  for (int i = 0; i < s->count && s->kind == CODE_ALLOCATE; i++)
    if (code_mentions(p->c, expr, p->c->lists.data[s->first_list + i])) return true;
  for (int i = s->first; i >= 0; i = statement(p, i)->next)
    if (moves(p, i, expr)) return true;
  return s->other >= 0 && moves(p, s->other, expr);
}

/* It reads memory, or a variable that may change. */
static bool reads(const struct promotion *p, int expr) {
  if (expr < 0) return false;
  const struct code_expr *e = expr_at(p, expr);
  if (e->op == CODE_ELEMENT) return true;
  if (e->op == CODE_VARIABLE) {
    enum code_storage storage = p->c->variables.data[e->variable].storage;
    if (storage != CODE_COUNTER && storage != CODE_NAME) return true;
  }
  for (int i = 0; i < e->count && e->op == CODE_SUM; i++)
    if (reads(p, p->c->terms.data[e->first + i].expr)) return true;
  return reads(p, e->arg[0]) || reads(p, e->arg[1]) || reads(p, e->arg[2]);
}

static bool stays(const struct promotion *p, int to) {
  const struct code_expr *e = expr_at(p, to);
  if (moves(p, p->loop, to)) return false;
  if (e->op == CODE_VECTOR) {
    if (reads(p, e->arg[1]) || reads(p, e->arg[2])) return false;
    e = expr_at(p, e->arg[0]);
  }
  return !reads(p, e->arg[0]);
}

static int number_of(const struct promotion *p, int to) {
  int i = 0;
  while (i < p->count && !code_same(p->c, p->place[i], to)) i++;
  return i;
}

/* It runs at least once, whatever the loops around stand at: behind it nothing is touched that it
 * does not touch. By one thread: others would add to the same variable. */
static bool runs(const struct promotion *p, const struct code_statement *s) {
  if (s->kind == CODE_IF) return false;
  if (s->parallel) return false;
  if (s->kind != CODE_FOR) return true;
  const struct code_expr *low = expr_at(p, code_bare(p->c, s->low)),
                         *high = expr_at(p, code_bare(p->c, s->high));
  return low->op == PX_INT && high->op == PX_INT && low->integer < high->integer;
}

/* The places that the statement, or one below it that runs in each step, adds to. */
static void find(struct promotion *p, int at) {
  const struct code_statement *s = statement(p, at);
  if (adds_to(p, s)) {
    struct code_type type = expr_at(p, s->to)->type;
    bool first = p->count == 0 && (type.element == PROGRAM_F32 || type.element == PROGRAM_F64);
    if ((first || (p->count && code_same_type(type, p->type))) && stays(p, s->to)) {
      int number = number_of(p, s->to);
      p->type = type;
      if (number == p->count && number < PLACES) p->place[p->count++] = s->to;
    }
  }
  if (!runs(p, s)) return;
  for (int i = s->first; i >= 0; i = statement(p, i)->next) find(p, i);
}

/* ---- variables ---- */

static void replace(struct promotion *p, int at) {
  struct code_statement *s = statement(p, at);
  if (adds_to(p, s) && code_same_type(expr_at(p, s->to)->type, p->type)) {
    int number = number_of(p, s->to);
    if (number < p->count) {
      int to = code_variable_at(p->c, p->variable, number);
      statement(p, at)->to = to;
    }
  }
  if (!runs(p, statement(p, at))) return;
  for (int i = statement(p, at)->first; i >= 0; i = statement(p, i)->next) replace(p, i);
}

static void promote(struct promotion *p, int parent, int before) {
  char name[PROGRAM_NAME + 8];
  snprintf(name, sizeof name, "%s_sum", p->c->variables.data[p->array].name);
  p->variable = code_variable(p->c, name, CODE_LOCAL, p->type, p->count);
  replace(p, p->loop);
  int zero = code_broadcast(p->c, code_number(p->c, p->type.element, 0), p->type.lanes);
  code_insert(
      p->c, parent, before,
      (struct code_statement){.kind = CODE_DECLARE, .variable = p->variable, .value = zero});
  for (int i = 0, after = p->loop; i < p->count; i++)
    after = code_insert(p->c, parent, after,
                        (struct code_statement){.kind = CODE_ASSIGN,
                                                .to = p->place[i],
                                                .how = CODE_ADD,
                                                .value = code_variable_at(p->c, p->variable, i)});
}

/* ---- loops ---- */

/* An array that something below the statement adds to, of which nothing was tried yet; -1. */
static int next_array(const struct promotion *p, int at, const bool *tried) {
  const struct code_statement *s = statement(p, at);
  int array = s->kind == CODE_ASSIGN && s->how == CODE_ADD ? array_of(p, s->to) : -1;
  if (array >= 0 && !tried[array]) return array;
  for (int i = s->first; i >= 0; i = statement(p, i)->next) {
    int found = next_array(p, i, tried);
    if (found >= 0) return found;
  }
  return -1;
}

static void promote_of_loop(struct code *c, int parent, int before, int loop) {
  struct promotion p = {.c = c, .loop = loop};
  bool *tried = mem_alloc((size_t)c->variables.count);
  while ((p.array = next_array(&p, loop, tried)) >= 0) {
    tried[p.array] = true;
    p.count = 0;
    if (uses(&p, loop)) continue;
    find(&p, loop);
    if (p.count) promote(&p, parent, before);
  }
  mem_free(tried);
}

static void promote_in(struct code *c, int parent) {
  for (int at = c->statements.data[parent].first, before = -1; at >= 0;
       at = c->statements.data[at].next) {
    if (c->statements.data[at].kind == CODE_FOR && !c->statements.data[at].parallel)
      promote_of_loop(c, parent, before, at);
    promote_in(c, at);
    if (c->statements.data[at].other >= 0) promote_in(c, c->statements.data[at].other);
    before = at;
  }
}

void code_promote_sums(struct code *c) {
  promote_in(c, 0);
}
