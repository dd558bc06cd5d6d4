/* Dead code elimination: assignments to variables that nobody reads, and the declarations of these.
 * See code.h.
 *
 *     let acc f32[2] = 0          let acc f32[2] = 0, no acc_1
 *     acc_0 += X[0]               acc_0 += X[0]
 *     acc_1 += X[1]          ->
 *     Y[0] = acc_0                Y[0] = acc_0
 *
 * Tiles are computed whole at the end of an axis, and copies of a loop use some variables only.
 * Each declaration is checked alone, as each copy of a loop declares its own variables.
 *
 * Keeps: all values that are read, and allocated buffers: whether these are needed is known before
 * there is code. Values have no side effects, so results are the same without this pass.
 */
#include "code/code.h"

#include <stdlib.h>

struct dead {
  struct code *c;
  uint64_t *reads; /* by variable: of its numbers, bit i for i, 64 + i, ... */
  bool *here;      /* by variable: the scope that is looked at declares it */
  bool dropped;
};

static struct code_statement *statement(struct dead *d, int at) {
  return &d->c->statements.data[at];
}

static uint64_t bit_of(const struct code_expr *e) {
  return UINT64_C(1) << (e->op == CODE_VARIABLE ? e->integer % 64 : 0);
}

/* ---- what is read ---- */

static void read_expr(struct dead *d, int expr) {
  if (expr < 0) return;
  const struct code_expr *e = &d->c->exprs.data[expr];
  if (e->variable >= 0) d->reads[e->variable] |= bit_of(e);
  for (int i = 0; i < e->count; i++) read_expr(d, d->c->terms.data[e->first + i].expr);
  for (int i = 0; i < 3; i++) read_expr(d, e->arg[i]);
}

/* The variable that an assignment writes. */
static const struct code_expr *written(struct dead *d, int to) {
  const struct code_expr *e = &d->c->exprs.data[to];
  return e->op == CODE_LANE || e->op == CODE_VECTOR ? &d->c->exprs.data[e->arg[0]] : e;
}

/* Of what is written the place is read, and the lane or how many lanes. */
static void read_target(struct dead *d, int to) {
  const struct code_expr *e = &d->c->exprs.data[to];
  if (e->op == CODE_LANE || e->op == CODE_VECTOR) read_expr(d, e->arg[1]);
  if (written(d, to)->op == CODE_ELEMENT) read_expr(d, written(d, to)->arg[0]);
}

static void read_statement(struct dead *d, int at) {
  const struct code_statement *t = statement(d, at);
  switch (t->kind) {
    case CODE_FOR:
      read_expr(d, t->low);
      read_expr(d, t->high);
      break;
    case CODE_IF: read_expr(d, t->condition); break;
    case CODE_DECLARE: read_expr(d, t->value); break;
    case CODE_PREFETCH: read_expr(d, t->to); break;
    case CODE_ASSIGN:
      read_target(d, t->to);
      read_expr(d, t->value);
      break;
    default: break;
  }
  for (int i = t->first; i >= 0; i = statement(d, i)->next) read_statement(d, i);
  if (t->other >= 0) read_statement(d, t->other);
}

/* ---- what is dropped ---- */

static uint64_t numbers_of(struct dead *d, int variable) {
  const struct code_variable *v = &d->c->variables.data[variable];
  int64_t count = v->storage == CODE_LOCAL ? v->count : 1;
  return count < 64 ? (UINT64_C(1) << count) - 1 : UINT64_MAX;
}

/* An assignment to a variable of this scope that is not read; its declaration. */
static bool is_dead(struct dead *d, int at) {
  struct code_statement *t = statement(d, at);
  if (t->kind == CODE_DECLARE)
    return d->here[t->variable] && !(d->reads[t->variable] & numbers_of(d, t->variable));
  if (t->kind != CODE_ASSIGN) return false;
  const struct code_expr *e = written(d, t->to);
  return d->here[e->variable] && !(d->reads[e->variable] & bit_of(e));
}

static void drop(struct dead *d, int parent) {
  int before = -1;
  for (int at = statement(d, parent)->first; at >= 0; at = statement(d, at)->next) {
    drop(d, at);
    if (statement(d, at)->other >= 0) drop(d, statement(d, at)->other);
    if (!is_dead(d, at)) {
      before = at;
      continue;
    }
    int next = statement(d, at)->next;
    if (before < 0)
      statement(d, parent)->first = next;
    else
      statement(d, before)->next = next;
    if (next < 0) statement(d, parent)->last = before;
    d->dropped = true;
  }
}

/* ---- scopes ---- */

/* Marks what the scope declares; whether it declares anything. */
static bool mark(struct dead *d, int parent, bool here) {
  bool any = false;
  for (int i = statement(d, parent)->first; i >= 0; i = statement(d, i)->next) {
    if (statement(d, i)->kind != CODE_DECLARE) continue;
    int variable = statement(d, i)->variable;
    d->here[variable] = here;
    d->reads[variable] = 0;
    any = true;
  }
  return any;
}

static void find_unread(struct dead *d, int parent) {
  if (mark(d, parent, true)) {
    for (int i = statement(d, parent)->first; i >= 0; i = statement(d, i)->next)
      read_statement(d, i);
    for (int i = statement(d, parent)->first; i >= 0; i = statement(d, i)->next)
      if (statement(d, i)->kind == CODE_DECLARE)
        statement(d, i)->unread =
            numbers_of(d, statement(d, i)->variable) & ~d->reads[statement(d, i)->variable];
    drop(d, parent);
    mark(d, parent, false);
  }
  for (int i = statement(d, parent)->first; i >= 0; i = statement(d, i)->next) {
    find_unread(d, i);
    if (statement(d, i)->other >= 0) find_unread(d, statement(d, i)->other);
  }
}

bool code_drop_dead_code(struct code *c) {
  struct dead d = {.c = c,
                   .reads = mem_alloc((size_t)c->variables.count * sizeof(uint64_t) + 1),
                   .here = mem_alloc((size_t)c->variables.count * sizeof(bool) + 1)};
  bool any = false;
  do {
    d.dropped = false;
    find_unread(&d, 0);
    any |= d.dropped;
  } while (d.dropped);
  mem_free(d.reads);
  mem_free(d.here);
  return any;
}
