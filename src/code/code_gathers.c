/* Two passes over gathers, vectors that are loaded lane by lane. See code.h.
 *
 * A vector that several statements gather is gathered once, since each gather costs a load per
 * lane:
 *
 *     block                                        let W_lanes f32x16
 *       let lanes0 f32x16                          for lane in 0..16
 *       for lane in 0..16                   ->       W_lanes[lane] = W[lane*64 + k]
 *         lanes0[lane] = W[lane*64 + k]            acc_0 += X[k] * W_lanes
 *       acc_0 += X[k] * lanes0                     acc_1 += X[k + 64] * W_lanes
 *     block
 *       (the same gather)
 *       acc_1 += X[k + 64] * lanes0
 *
 * A gather that code_permute.c can express as vector loads is replaced by these and a permutation.
 *
 * Keeps: such blocks have the same parent, so if one runs, all do. Arrays that are written there
 * are not shared. Results are the same without these passes.
 */
#include <stdio.h>

#include "code/code.h"

struct gathers {
  struct code *c;
  int first;  /* first variable made by this pass */
  int around; /* number of names in enclosing blocks */
  bool changed;
};

/* A gather: a declaration followed by a loop over lanes. */
struct gather {
  int before; /* the statement before them; -1: none */
  int declaration, loop;
};

static struct code_statement *statement(const struct gathers *g, int at) {
  return &g->c->statements.data[at];
}

static const struct code_expr *expr_at(const struct gathers *g, int expr) {
  return &g->c->exprs.data[expr];
}

/* ---- recognising gathers --------------------------------------------------------------------- */

static bool is_gather(const struct gathers *g, int at) {
  const struct code_statement *s = statement(g, at);
  if (s->kind != CODE_DECLARE || !g->c->variables.data[s->variable].reserved || s->next < 0)
    return false;
  const struct code_statement *loop = statement(g, s->next);
  if (loop->kind != CODE_FOR || !g->c->variables.data[loop->variable].reserved || loop->first < 0 ||
      loop->first != loop->last)
    return false;
  const struct code_statement *set = statement(g, loop->first);
  if (set->kind != CODE_ASSIGN || set->how != CODE_SET) return false;
  const struct code_expr *to = expr_at(g, set->to);
  return to->op == CODE_LANE && expr_at(g, to->arg[0])->variable == s->variable;
}

/* The first gather of a block after `before` (-1: from its beginning). */
static bool next_gather(const struct gathers *g, int block, int before, struct gather *out) {
  int at = before < 0 ? statement(g, block)->first : statement(g, before)->next;
  for (; at >= 0 && !is_gather(g, at); at = statement(g, at)->next) before = at;
  if (at >= 0) *out = (struct gather){before, at, statement(g, at)->next};
  return at >= 0;
}

static int value_of(const struct gathers *g, const struct gather *x) {
  return statement(g, statement(g, x->loop)->first)->value;
}

static bool same_gather(const struct gathers *g, const struct gather *x, const struct gather *y) {
  const struct code_statement *a = statement(g, x->declaration), *b = statement(g, y->declaration);
  const struct code_statement *l = statement(g, x->loop), *m = statement(g, y->loop);
  return code_same_type(g->c->variables.data[a->variable].type,
                        g->c->variables.data[b->variable].type) &&
         code_same(g->c, a->value, b->value) && code_same(g->c, l->low, m->low) &&
         code_same(g->c, l->high, m->high) && code_same(g->c, value_of(g, x), value_of(g, y));
}

/* Whether the expression reads only counters and arrays that nothing in `parent` writes. */
static bool is_invariant(const struct gathers *g, int parent, int expr) {
  if (expr < 0) return true;
  const struct code_expr *e = expr_at(g, expr);
  if (e->variable >= 0) {
    enum code_storage storage = g->c->variables.data[e->variable].storage;
    if (storage == CODE_LOCAL) return false;
    if (storage != CODE_COUNTER && code_writes(g->c, parent, e->variable)) return false;
  }
  for (int i = 0; i < e->count; i++)
    if (!is_invariant(g, parent, g->c->terms.data[e->first + i].expr)) return false;
  return is_invariant(g, parent, e->arg[0]) && is_invariant(g, parent, e->arg[1]) &&
         is_invariant(g, parent, e->arg[2]);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* The first array that an expression reads; -1: none. */
static int array_of(const struct gathers *g, int expr) {
  if (expr < 0) return -1;
  const struct code_expr *e = expr_at(g, expr);
  int array = e->op == CODE_ELEMENT ? e->variable : -1;
  for (int i = 0; i < 3 && array < 0; i++) array = array_of(g, e->arg[i]);
  return array;
}

static int variable_of(const struct gathers *g, const struct gather *x, int number) {
  char name[PROGRAM_NAME + 20];
  int array = array_of(g, value_of(g, x));
  struct code_type type = g->c->variables.data[statement(g, x->declaration)->variable].type;
  int length =
      snprintf(name, sizeof name, "%s_lanes", array < 0 ? "all" : g->c->variables.data[array].name);
  if (number) snprintf(name + length, sizeof name - (size_t)length, "%d", number + 1);
  return code_local(g->c, g->first, name, type);
}

struct renaming {
  int from, to; /* variable to replace; its replacement */
};

static int renamed(struct code *c, int expr, void *data) {
  const struct renaming *r = data;
  const struct code_expr *e = &c->exprs.data[expr];
  return e->op == CODE_VARIABLE && e->variable == r->from ? code_variable_at(c, r->to, 0) : expr;
}

static int rename_expr(struct gathers *g, int expr, struct renaming *r) {
  return expr < 0 ? expr : code_map(g->c, expr, renamed, r);
}

/* Renames in `at`, its following siblings and everything inside them. */
static void rename_from(struct gathers *g, int at, struct renaming *r) {
  for (; at >= 0; at = statement(g, at)->next) {
    struct code_statement s = *statement(g, at); /* a copy: nothing else has these fields */
    if (s.kind == CODE_ASSIGN) s.to = rename_expr(g, s.to, r);
    if (s.kind == CODE_ASSIGN || s.kind == CODE_DECLARE) s.value = rename_expr(g, s.value, r);
    if (s.kind == CODE_IF) s.condition = rename_expr(g, s.condition, r);
    *statement(g, at) = s;
    rename_from(g, s.first, r);
    if (s.other >= 0) rename_from(g, s.other, r);
  }
}

/* ---- sharing --------------------------------------------------------------------------------- */

/* Removes the gather from its block, which then reads `variable`. */
static void take_out(struct gathers *g, int block, const struct gather *x, int variable) {
  int next = statement(g, x->loop)->next;
  struct renaming r = {statement(g, x->declaration)->variable, variable};
  if (x->before < 0)
    statement(g, block)->first = next;
  else
    statement(g, x->before)->next = next;
  if (next < 0) statement(g, block)->last = x->before;
  rename_from(g, next, &r);
}

/* Moves the gather before `at`, which follows `before` (-1: none) in `parent`. */
static void put_before(struct gathers *g, int parent, int before, int at, const struct gather *x,
                       int variable) {
  int set = statement(g, x->loop)->first;
  struct renaming r = {statement(g, x->declaration)->variable, variable};
  statement(g, x->declaration)->variable = variable;
  int to = rename_expr(g, statement(g, set)->to, &r);
  statement(g, set)->to = to;
  statement(g, x->declaration)->parent = statement(g, x->loop)->parent = parent;
  statement(g, x->loop)->next = at;
  if (before < 0)
    statement(g, parent)->first = x->declaration;
  else
    statement(g, before)->next = x->declaration;
}

/* Finds equal gathers in the blocks after `at`. Without a variable: returns whether there are any;
 * with one: replaces them by it. */
static bool others(struct gathers *g, int at, const struct gather *x, int variable) {
  for (int i = statement(g, at)->next; i >= 0; i = statement(g, i)->next) {
    struct gather y;
    if (statement(g, i)->kind != CODE_BLOCK) continue;
    for (int before = -1; next_gather(g, i, before, &y); before = y.loop) {
      if (!same_gather(g, x, &y)) continue;
      if (variable < 0) return true;
      take_out(g, i, &y, variable);
      break;
    }
  }
  return false;
}

/* Finds a gather of block `at` that is repeated later and may be moved before the block. */
static bool find(struct gathers *g, int parent, int at, struct gather *out) {
  for (int before = -1; next_gather(g, at, before, out); before = out->loop)
    if (others(g, at, out, -1) && is_invariant(g, parent, value_of(g, out)) &&
        is_invariant(g, parent, statement(g, out->loop)->high))
      return true;
  return false;
}

static void gather_in(struct gathers *g, int parent) {
  int names = 0;
  for (int at = statement(g, parent)->first, before = -1; at >= 0; at = statement(g, at)->next) {
    struct gather x;
    while (statement(g, at)->kind == CODE_BLOCK && find(g, parent, at, &x)) {
      int variable = variable_of(g, &x, g->around + names++);
      others(g, at, &x, variable);
      take_out(g, at, &x, variable);
      put_before(g, parent, before, at, &x, variable);
      before = x.loop;
      g->changed = true;
    }
    before = at;
  }
  g->around += names;
  for (int i = statement(g, parent)->first; i >= 0; i = statement(g, i)->next) {
    gather_in(g, i);
    if (statement(g, i)->other >= 0) gather_in(g, statement(g, i)->other);
  }
  g->around -= names;
}

bool code_share_gathers(struct code *c) {
  struct gathers g = {.c = c, .first = c->variables.count};
  gather_in(&g, 0);
  return g.changed;
}

/* ---- permutations ---------------------------------------------------------------------------- */

/* Whether the loop sets the lanes of a vector or elements in memory. */
static bool sets_lanes(const struct code *c, const struct code_statement *s) {
  if (s->kind != CODE_FOR || !c->variables.data[s->variable].reserved || s->first < 0) return false;
  const struct code_statement *set = &c->statements.data[s->first];
  if (set->kind != CODE_ASSIGN) return false;
  int to = c->exprs.data[set->to].op;
  return to == CODE_LANE || to == CODE_ELEMENT;
}

static bool permute_in(struct code *c, int parent) {
  bool any = false;
  for (int i = c->statements.data[parent].first; i >= 0; i = c->statements.data[i].next)
    any |= sets_lanes(c, &c->statements.data[i]) ? code_join_lanes(c, i) : permute_in(c, i);
  int other = c->statements.data[parent].other;
  return any | (other >= 0 && permute_in(c, other));
}

bool code_permute_gathers(struct code *c) {
  return permute_in(c, 0);
}
