/* Common partial loads get a name: loads of the first lanes of a vector, several times in one
 * block. See code.h.
 *
 *     acc_0 += X[k] * f32x8(W[k*19], n)              let W_part f32x8 = f32x8(W[k*19], n)
 *     acc_1 += X[k + 64] * f32x8(W[k*19], n)   ->    acc_0 += X[k] * W_part
 *                                                    acc_1 += X[k + 64] * W_part
 *
 * A partial load is a macro with a condition, and compilers do not find that two of them are equal.
 *
 * Keeps: arrays that the block writes are left alone, and so are branches, which may not run.
 * Results are the same without this pass.
 */
#include <stdio.h>

#include "code/code.h"

struct loads {
  struct code *c;
  int first;  /* the first variable that is made here */
  int around; /* names of the blocks around */
};

static struct code_statement *statement(const struct loads *l, int at) {
  return &l->c->statements.data[at];
}

static const struct code_expr *expr_at(const struct loads *l, int expr) {
  return &l->c->exprs.data[expr];
}

/* ---- what is written ---- */

bool code_writes(const struct code *c, int parent, int variable) {
  for (int i = c->statements.data[parent].first; i >= 0; i = c->statements.data[i].next) {
    const struct code_statement *s = &c->statements.data[i];
    if (s->kind == CODE_ASSIGN) {
      const struct code_expr *to = &c->exprs.data[s->to];
      if (to->op == CODE_VECTOR || to->op == CODE_LANE) to = &c->exprs.data[to->arg[0]];
      if (to->variable == variable) return true;
    }
    if (code_writes(c, i, variable) || (s->other >= 0 && code_writes(c, s->other, variable)))
      return true;
  }
  return false;
}

/* ---- a load that stands again ---- */

static bool is_first_lanes(const struct code_expr *e) {
  return e->op == CODE_VECTOR && e->arg[1] >= 0 && e->type.element != PROGRAM_BF16;
}

static bool branches(const struct code_expr *e) {
  return e->op == PX_SELECT || e->op == PX_AND || e->op == PX_OR;
}

static int uses_in(const struct loads *l, int expr, int load) {
  if (expr < 0 || branches(expr_at(l, expr))) return 0;
  if (code_same(l->c, expr, load)) return 1;
  int uses = 0;
  for (int i = 0; i < 3; i++) uses += uses_in(l, expr_at(l, expr)->arg[i], load);
  return uses;
}

/* In the assignments from `at` on. */
static int uses_from(const struct loads *l, int at, int load) {
  int uses = 0;
  for (; at >= 0; at = statement(l, at)->next)
    if (statement(l, at)->kind == CODE_ASSIGN) uses += uses_in(l, statement(l, at)->value, load);
  return uses;
}

/* The first load below the expression that stands again at `at` or behind it; -1. */
static int find(const struct loads *l, int parent, int at, int expr) {
  if (expr < 0 || branches(expr_at(l, expr))) return -1;
  const struct code_expr *e = expr_at(l, expr);
  if (is_first_lanes(e))
    return uses_from(l, at, expr) > 1 && !code_writes(l->c, parent, expr_at(l, e->arg[0])->variable)
               ? expr
               : -1;
  for (int i = 0; i < 3; i++) {
    int found = find(l, parent, at, e->arg[i]);
    if (found >= 0) return found;
  }
  return -1;
}

/* ---- the name ---- */

static int variable_of(const struct loads *l, int load, int number) {
  char name[PROGRAM_NAME + 16];
  const struct code_expr *e = expr_at(l, load);
  const char *array = l->c->variables.data[expr_at(l, e->arg[0])->variable].name;
  snprintf(name, sizeof name, number ? "%s_part%d" : "%s_part", array, number + 1);
  return code_local(l->c, l->first, name, e->type);
}

static int put_name(struct loads *l, int expr, int load, int variable) {
  if (expr < 0 || branches(expr_at(l, expr))) return expr;
  if (code_same(l->c, expr, load)) return code_variable_at(l->c, variable, 0);
  struct code_expr e = *expr_at(l, expr); /* a copy: the array may move */
  bool changed = false;
  for (int i = 0; i < 3; i++) {
    int arg = put_name(l, e.arg[i], load, variable);
    changed |= arg != e.arg[i];
    e.arg[i] = arg;
  }
  if (!changed) return expr;
  VEC_PUSH(&l->c->exprs, e);
  return l->c->exprs.count - 1;
}

/* Before `at`, which stands behind `before` (-1: nothing). */
static int declare(struct loads *l, int parent, int before, int at, int variable, int load) {
  int declared = l->c->statements.count;
  VEC_PUSH(&l->c->statements, ((struct code_statement){.kind = CODE_DECLARE,
                                                       .parent = parent,
                                                       .variable = variable,
                                                       .value = load,
                                                       .next = at,
                                                       .first = -1,
                                                       .last = -1,
                                                       .other = -1}));
  if (before < 0)
    statement(l, parent)->first = declared;
  else
    statement(l, before)->next = declared;
  return declared;
}

static void name_in(struct loads *l, int parent) {
  int names = 0;
  for (int at = statement(l, parent)->first, before = -1; at >= 0; at = statement(l, at)->next) {
    bool assigns = statement(l, at)->kind == CODE_ASSIGN;
    for (int load; assigns && (load = find(l, parent, at, statement(l, at)->value)) >= 0;) {
      int variable = variable_of(l, load, l->around + names++);
      for (int i = at; i >= 0; i = statement(l, i)->next) {
        if (statement(l, i)->kind != CODE_ASSIGN) continue;
        int value = put_name(l, statement(l, i)->value, load, variable);
        statement(l, i)->value = value;
      }
      before = declare(l, parent, before, at, variable, load);
    }
    before = at;
  }
  l->around += names;
  for (int i = statement(l, parent)->first; i >= 0; i = statement(l, i)->next) {
    name_in(l, i);
    if (statement(l, i)->other >= 0) name_in(l, statement(l, i)->other);
  }
  l->around -= names;
}

void code_share_loads(struct code *c) {
  name_in(&(struct loads){.c = c, .first = c->variables.count}, 0);
}
