/* A vector that is set piece by piece, each piece 0 or contiguous in memory, is loaded at once. See
 * code.h.
 *
 *     let lanes0 f32x16 = 0              let lanes0 f32x16 = X[w, 16 lanes, from lane 1 to lane 14]
 *     lanes0[0] = 0                 ->
 *     for lane in 1..14
 *       lanes0[lane] = X[w + lane - 1]
 *
 *     let lanes0 f32x4                   let lanes0 f32x4 = permute(X[w + 27, 1 of 4 lanes],
 *     lanes0[0] = X[w + 27]         ->       X[w, 4 lanes, from lane 1 on]: 0 5 6 7)
 *     for lane in 1..4
 *       lanes0[lane] = X[w + lane - 1]
 *
 * Keeps: each lane gets the same value, and only the elements of the pieces are read. Results are
 * the same without this pass.
 */
#include <math.h>

#include "code/code.h"

enum { LOADS = 2 };

struct piece {
  int64_t first, end; /* lanes */
  int element;        /* of the first; -1: they are 0 */
};

struct pieces {
  struct code *c;
  int vector, lanes; /* the variable that is set */
  struct piece load[LOADS];
  int loads, set; /* lanes that are set */
};

static struct code_statement *statement(const struct code *c, int at) {
  return &c->statements.data[at];
}

static const struct code_expr *expr_at(const struct code *c, int expr) {
  return &c->exprs.data[expr];
}

static bool is_constant(const struct code *c, int expr, int64_t *value) {
  if (expr_at(c, expr)->op != PX_INT) return false;
  *value = expr_at(c, expr)->integer;
  return true;
}

/* `counter` is the lane that is set; -1: `p` has it. */
static bool sets_lane(const struct pieces *x, const struct code_statement *s, int counter,
                      struct piece *p) {
  if (s->kind != CODE_ASSIGN || s->how != CODE_SET) return false;
  const struct code_expr *to = expr_at(x->c, s->to);
  if (to->op != CODE_LANE) return false;
  const struct code_expr *vector = expr_at(x->c, to->arg[0]);
  if (vector->op != CODE_VARIABLE || vector->variable != x->vector) return false;
  int lane = code_bare(x->c, to->arg[1]);
  if (counter >= 0) return expr_at(x->c, lane)->variable == counter;
  if (!is_constant(x->c, lane, &p->first)) return false;
  p->end = p->first + 1;
  return true;
}

/* What the lanes are set to: 0, or elements side by side. */
static bool set_value(const struct pieces *x, int value, int counter, struct piece *p) {
  const struct code_expr e = *expr_at(x->c, value); /* a copy: the array may move */
  p->element = -1;
  if (e.op == PX_NUMBER) return e.number == 0 && !signbit(e.number);
  if (e.op != CODE_ELEMENT || (counter >= 0 && !code_side_by_side(x->c, e.arg[0], counter, p->end)))
    return false;
  int index = counter < 0 ? e.arg[0] : code_substitute(x->c, e.arg[0], counter, p->first);
  p->element = code_element(x->c, e.variable, index);
  return true;
}

/* The piece that a statement sets; false: it is another one. */
static bool piece_of(const struct pieces *x, int at, struct piece *p) {
  const struct code_statement s = *statement(x->c, at);
  if (s.kind != CODE_FOR) return sets_lane(x, &s, -1, p) && set_value(x, s.value, -1, p);
  if (!x->c->variables.data[s.variable].reserved || s.first < 0 || s.first != s.last) return false;
  const struct code_statement body = *statement(x->c, s.first);
  return is_constant(x->c, s.low, &p->first) && is_constant(x->c, s.high, &p->end) &&
         sets_lane(x, &body, s.variable, p) && set_value(x, body.value, s.variable, p);
}

static bool add_piece(struct pieces *x, const struct piece *p) {
  if (p->first < x->set || p->end > x->lanes) return false; /* in order, none twice */
  if (p->element >= 0 && x->loads == LOADS) return false;
  if (p->element >= 0) x->load[x->loads++] = *p;
  x->set = (int)p->end;
  return true;
}

static int loaded(const struct pieces *x, const struct piece *p) {
  int first = code_int(x->c, p->first), end = code_int(x->c, p->end);
  if (p->first > 0) return code_some_lanes(x->c, p->element, x->lanes, first, end);
  return code_first_lanes(x->c, p->element, x->lanes, p->end < x->lanes ? end : -1);
}

static int joined(const struct pieces *x) {
  int lanes[CODE_LANES];
  if (x->loads == 0) return code_broadcast(x->c, code_number(x->c, PROGRAM_F32, 0), x->lanes);
  int one = loaded(x, &x->load[0]);
  if (x->loads == 1) return one;
  for (int i = 0; i < x->lanes; i++)
    lanes[i] = i >= x->load[1].first && i < x->load[1].end ? x->lanes + i : i;
  return code_permute(x->c, one, loaded(x, &x->load[1]), lanes);
}

/* A declaration and the statements behind it that set all there is. */
static bool join_at(struct code *c, int parent, int at) {
  const struct code_statement *declared = statement(c, at);
  const struct code_variable *v = &c->variables.data[declared->variable];
  if (declared->kind != CODE_DECLARE || !v->reserved || v->storage != CODE_LOCAL) return false;
  if (v->type.lanes == 1 || v->type.element != PROGRAM_F32 || v->count != 1) return false;
  struct pieces x = {.c = c, .vector = declared->variable, .lanes = v->type.lanes};
  struct piece p;
  int next = declared->next, start = declared->value;
  for (; next >= 0 && piece_of(&x, next, &p); next = statement(c, next)->next)
    if (!add_piece(&x, &p)) return false;
  if (next == statement(c, at)->next) return false;
  /* lanes that no piece sets are those of the declaration: 0, or whatever */
  if (start >= 0 && expr_at(c, start)->op == CODE_BROADCAST) start = expr_at(c, start)->arg[0];
  if (start >= 0 && (expr_at(c, start)->op != PX_NUMBER || expr_at(c, start)->number != 0))
    return false;
  int value = joined(&x);
  statement(c, at)->value = value;
  statement(c, at)->next = next;
  if (next < 0) statement(c, parent)->last = at;
  return true;
}

static bool join_in(struct code *c, int parent) {
  bool any = false;
  for (int i = statement(c, parent)->first; i >= 0; i = statement(c, i)->next)
    any |= join_at(c, parent, i) || join_in(c, i);
  int other = statement(c, parent)->other;
  return any | (other >= 0 && join_in(c, other));
}

bool code_join_pieces(struct code *c) {
  return join_in(c, 0);
}
