/* Checks every rule of a tree of code, so that a message names the pass that broke it. See code.h.
 *
 * - A variable that is mentioned is declared in an enclosing scope, and not twice; a counter only
 * by its loop.
 * - Types: operands have the element and the lanes that their operation takes; an index is no
 * value; only memory holds bf16.
 * - Inputs and names are not written. An index that no condition guards lies in its array, as far
 * as it consists of loops over constants.
 * - Allocated buffers have heap storage, declared ones do not. Regions are not nested, and no
 * parallel loop is inside another.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "code/code.h"

struct interval {
  bool known;
  int64_t low, high; /* both included */
};

struct verifier {
  canvas_context *ctx;
  const struct code *c;
  const char *pass;
  struct counted {
    bool declared;
    struct interval all;  /* of a counter or a name: all of these values occur */
    struct interval most; /* contains all values; some of it may not occur */
    uint64_t unread;      /* numbers that are not declared */
  } *variables;
  bool guarded; /* inside a condition or a loop that may be empty */
  bool region;
  int parallel; /* loops around, of those that run in parallel */
};

static canvas_status reject(const struct verifier *v, const char *what, int expr) {
  struct buf text = {0};
  if (expr >= 0) code_print_expr(v->c, expr, &text);
  canvas_status status =
      fail(v->ctx, CANVAS_BAD_INPUT, "code of '%s' after %s: %s%s%.200s%s", v->c->name, v->pass,
           what, expr >= 0 ? " in \"" : "", text.text ? text.text : "", expr >= 0 ? "\"" : "");
  buf_free(&text);
  return status;
}

static canvas_status reject_variable(const struct verifier *v, const char *what, int variable) {
  return fail(v->ctx, CANVAS_BAD_INPUT, "code of '%s' after %s: '%s' %s", v->c->name, v->pass,
              v->c->variables.data[variable].name, what);
}

static const struct code_expr *expr_at(const struct verifier *v, int expr) {
  return &v->c->exprs.data[expr];
}

static struct code_type type_of(const struct verifier *v, int expr) {
  return expr_at(v, expr)->type;
}

/* ---- places ---- */

static struct interval exactly(int64_t value) {
  return (struct interval){true, value, value};
}

static struct interval add_scaled(struct interval sum, struct interval r, int64_t coef) {
  int64_t low, high;
  r.known &=
      !__builtin_mul_overflow(r.low, coef, &low) && !__builtin_mul_overflow(r.high, coef, &high);
  if (!r.known || !sum.known) return (struct interval){0};
  sum.known = !__builtin_add_overflow(sum.low, low < high ? low : high, &sum.low) &&
              !__builtin_add_overflow(sum.high, low < high ? high : low, &sum.high);
  return sum;
}

/* Of constants, counters and their sums; all values occur where each counter is there once. */
static struct interval interval(const struct verifier *v, int expr) {
  const struct code_expr *e = expr_at(v, expr);
  if (e->op == PX_INT) return exactly(e->integer);
  if (e->op == CODE_VARIABLE) return v->variables[e->variable].all;
  if (e->op != CODE_SUM) return (struct interval){0};
  struct interval sum = exactly(e->integer);
  for (int i = 0; i < e->count; i++) {
    const struct affine_term *t = &v->c->terms.data[e->first + i];
    sum = add_scaled(sum, interval(v, t->expr), t->coef);
  }
  return sum;
}

static int64_t lesser(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static int64_t greater(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* No other values: of the lesser and the greater of two, too. */
static struct interval within(const struct verifier *v, int expr) {
  const struct code_expr *e = expr_at(v, expr);
  if (e->op == PX_INT) return exactly(e->integer);
  if (e->op == CODE_VARIABLE) return v->variables[e->variable].most;
  if (e->op == PX_MIN || e->op == PX_MAX) {
    struct interval a = within(v, e->arg[0]), b = within(v, e->arg[1]);
    if (!a.known || !b.known) return (struct interval){0};
    if (e->op == PX_MIN)
      return (struct interval){true, lesser(a.low, b.low), lesser(a.high, b.high)};
    return (struct interval){true, greater(a.low, b.low), greater(a.high, b.high)};
  }
  if (e->op != CODE_SUM) return (struct interval){0};
  struct interval sum = exactly(e->integer);
  for (int i = 0; i < e->count; i++) {
    const struct affine_term *t = &v->c->terms.data[e->first + i];
    sum = add_scaled(sum, within(v, t->expr), t->coef);
  }
  return sum;
}

static canvas_status check_place(const struct verifier *v, int element, int lanes) {
  const struct code_expr *e = expr_at(v, element);
  struct interval at = interval(v, e->arg[0]);
  if (v->guarded || !at.known) return CANVAS_OK;
  if (at.low < 0 || at.high + lanes > v->c->variables.data[e->variable].count)
    return reject(v, "a place outside of its array", element);
  return CANVAS_OK;
}

/* ---- expressions ---- */

static canvas_status check_expr(struct verifier *v, int expr);

static bool is_number(enum code_storage storage) {
  return storage == CODE_COUNTER || storage == CODE_NAME || storage == CODE_LOCAL;
}

static bool has_lanes(const struct verifier *v, int expr, int lanes) {
  int here = type_of(v, expr).lanes;
  return here == lanes || here == 1;
}

/* An operand of a calculation of that type: a scalar stands for all lanes. */
static bool is_operand(const struct verifier *v, int expr, struct code_type type) {
  if (expr < 0 || !has_lanes(v, expr, type.lanes)) return false;
  if (code_is_index(type)) return code_is_index(type_of(v, expr));
  return type_of(v, expr).element == type.element && type.element != PROGRAM_BF16;
}

static bool is_exactly(const struct verifier *v, int expr, struct code_type type) {
  return is_operand(v, expr, type) && type_of(v, expr).lanes == type.lanes;
}

static canvas_status check_sum(struct verifier *v, const struct code_expr *e, int expr) {
  for (int i = 0; i < e->count; i++) {
    const struct affine_term *t = &v->c->terms.data[e->first + i];
    TRY(check_expr(v, t->expr));
    if (!code_is_index(type_of(v, t->expr)) || !t->coef) return reject(v, "a wrong term", expr);
    if (e->type.element == PROGRAM_I32 && type_of(v, t->expr).element != PROGRAM_I32)
      return reject(v, "a sum that is too narrow", expr);
  }
  return CANVAS_OK;
}

static canvas_status check_leaf(struct verifier *v, const struct code_expr *e, int expr) {
  bool scalar = e->type.lanes == 1;
  switch (e->op) {
    case PX_INT:
      if (!code_is_index(e->type) || !scalar) return reject(v, "a number of no index", expr);
      return CANVAS_OK;
    case PX_NUMBER:
      if (!code_is_value(e->type) || !scalar) return reject(v, "a number of no value", expr);
      return CANVAS_OK;
    case PX_BOOL:
      if (e->type.element != CODE_TRUTH) return reject(v, "a truth of another type", expr);
      return CANVAS_OK;
    default: return CANVAS_OK;
  }
}

static canvas_status check_variable(struct verifier *v, const struct code_expr *e, int expr) {
  const struct code_variable *of = &v->c->variables.data[e->variable];
  bool number = is_number(of->storage);
  if (!v->variables[e->variable].declared)
    return reject_variable(v, "stands where it is not declared", e->variable);
  if (number != (e->op == CODE_VARIABLE))
    return reject(v, number ? "a place in what is no array" : "an array as a number", expr);
  if (!code_same_type(e->type, of->type)) return reject(v, "another type than declared", expr);
  if (number && (e->integer < 0 || e->integer >= of->count ||
                 v->variables[e->variable].unread >> e->integer & 1))
    return reject(v, "a variable that is not there", expr);
  if (!number && (!code_is_index(type_of(v, e->arg[0])) || type_of(v, e->arg[0]).lanes > 1))
    return reject(v, "a place that is no index", expr);
  return number ? CANVAS_OK : check_place(v, expr, 1);
}

static bool permute_is_well_formed(const struct verifier *v, const struct code_expr *e) {
  int lanes = e->arg[1] < 0 ? e->type.lanes : 2 * e->type.lanes;
  for (int i = 0; i < 2 && e->arg[i] >= 0; i++)
    if (!code_same_type(type_of(v, e->arg[i]), e->type)) return false;
  if (e->type.element != PROGRAM_F32 && e->type.element != PROGRAM_F64) return false;
  if (e->first < 0 || e->first + e->type.lanes > v->c->lists.count) return false;
  for (int i = 0; i < e->type.lanes; i++) {
    int lane = v->c->lists.data[e->first + i];
    if (lane < 0 || lane >= lanes) return false;
  }
  return e->type.lanes > 1;
}

static bool vector_is_well_formed(const struct verifier *v, const struct code_expr *e) {
  struct code_type from = type_of(v, e->arg[0]);
  switch (e->op) {
    case CODE_LANE:
      return from.lanes > 1 && e->type.lanes == 1 && from.element == e->type.element &&
             e->arg[1] >= 0 && code_is_index(type_of(v, e->arg[1]));
    case CODE_VECTOR:
      if (e->arg[1] < 0 && e->arg[2] >= 0) return false;
      for (int i = 1; i < 3 && e->arg[i] >= 0; i++)
        if (!code_is_index(type_of(v, e->arg[i])) || type_of(v, e->arg[i]).lanes > 1) return false;
      return expr_at(v, e->arg[0])->op == CODE_ELEMENT && from.lanes == 1 && e->type.lanes > 1 &&
             from.element == e->type.element;
    case CODE_PERMUTE: return permute_is_well_formed(v, e);
    case CODE_LANES_ADD:
    case CODE_LANES_MUL:
    case CODE_LANES_MAX:
    case CODE_LANES_MIN:
      return from.lanes > 1 && e->type.lanes == 1 && from.element == e->type.element &&
             (from.element == PROGRAM_F32 || from.element == PROGRAM_F64);
    default: /* CODE_BROADCAST */
      return from.lanes == 1 && e->type.lanes > 1 && from.element == e->type.element &&
             from.element != PROGRAM_BF16;
  }
}

static bool converts(struct code_type from, struct code_type to) {
  if (from.lanes != to.lanes || from.element == to.element) return false;
  if (to.element == PROGRAM_BF16) return from.element == PROGRAM_F32;
  if (code_is_index(to)) return code_is_index(from);
  return code_is_value(to) && (code_is_value(from) || code_is_index(from));
}

static bool comparison_is_well_formed(const struct verifier *v, const struct code_expr *e) {
  struct code_type x = type_of(v, e->arg[0]), y = type_of(v, e->arg[1]);
  bool sorts = code_is_index(x) ? code_is_index(y) : x.element == y.element;
  return sorts && x.lanes == y.lanes && x.lanes == e->type.lanes && x.element != CODE_TRUTH &&
         x.element != PROGRAM_BF16 && e->type.element == CODE_TRUTH;
}

static bool select_is_well_formed(const struct verifier *v, const struct code_expr *e) {
  struct code_type condition = type_of(v, e->arg[0]);
  return condition.element == CODE_TRUTH &&
         (condition.lanes == 1 || condition.lanes == e->type.lanes) &&
         is_exactly(v, e->arg[1], e->type) && is_exactly(v, e->arg[2], e->type);
}

static bool is_well_formed(const struct verifier *v, const struct code_expr *e) {
  switch (e->op) {
    case CODE_LANE:
    case CODE_VECTOR:
    case CODE_PERMUTE:
    case CODE_LANES_ADD:
    case CODE_LANES_MUL:
    case CODE_LANES_MAX:
    case CODE_LANES_MIN:
    case CODE_BROADCAST: return vector_is_well_formed(v, e);
    case CODE_CONVERT: return converts(type_of(v, e->arg[0]), e->type);
    case CODE_ROUND: return e->type.element == PROGRAM_F32 && is_exactly(v, e->arg[0], e->type);
    case CODE_FLOOR_DIV:
    case CODE_FLOOR_MOD:
    case PX_MOD:
      return code_is_index(e->type) && is_operand(v, e->arg[0], e->type) &&
             is_operand(v, e->arg[1], e->type);
    case PX_ADD:
    case PX_SUB:
    case PX_MUL:
    case PX_DIV: return is_operand(v, e->arg[0], e->type) && is_operand(v, e->arg[1], e->type);
    case PX_NEG: return is_exactly(v, e->arg[0], e->type);
    case PX_SELECT: return select_is_well_formed(v, e);
    case PX_LT:
    case PX_LE:
    case PX_GT:
    case PX_GE:
    case PX_EQ:
    case PX_NE: return comparison_is_well_formed(v, e);
    case PX_AND:
    case PX_OR:
    case PX_NOT:
      for (int i = 0; i < (e->op == PX_NOT ? 1 : 2); i++)
        if (!code_same_type(type_of(v, e->arg[i]), e->type)) return false;
      return e->type.element == CODE_TRUTH;
    default: /* functions, min and max */
      for (int i = 0; i < 3 && e->arg[i] >= 0; i++)
        if (!is_exactly(v, e->arg[i], e->type)) return false;
      return e->arg[0] >= 0;
  }
}

/* What a condition decides about is not read, or not written, where it does not hold. */
static bool guards(int op) {
  return op == PX_SELECT || op == PX_AND || op == PX_OR;
}

static canvas_status check_expr(struct verifier *v, int expr) {
  if (expr < 0 || expr >= v->c->exprs.count) return reject(v, "an expression is missing", -1);
  const struct code_expr *e = expr_at(v, expr);
  if (e->type.lanes < 1 || e->type.lanes > CODE_LANES) return reject(v, "a wrong type", expr);
  bool guarded = v->guarded, part = e->op == CODE_VECTOR && e->arg[1] >= 0;
  v->guarded |= part;
  for (int i = 0; i < 3 && e->arg[i] >= 0; i++) {
    v->guarded |= i > 0 && guards(e->op);
    TRY(check_expr(v, e->arg[i]));
  }
  v->guarded = guarded;
  if (e->op == CODE_SUM) return check_sum(v, e, expr);
  if (e->op == CODE_VARIABLE || e->op == CODE_ELEMENT) return check_variable(v, e, expr);
  if (e->op < PX_ADD) return check_leaf(v, e, expr);
  if (!is_well_formed(v, e)) return reject(v, "operands of wrong types", expr);
  return e->op == CODE_VECTOR && !part ? check_place(v, e->arg[0], e->type.lanes) : CANVAS_OK;
}

/* ---- statements ---- */

static canvas_status check_children(struct verifier *v, int parent);

static canvas_status declare(struct verifier *v, int variable) {
  if (v->variables[variable].declared) return reject_variable(v, "is declared twice", variable);
  v->variables[variable] = (struct counted){.declared = true};
  return CANVAS_OK;
}

/* What may stand on the left of an assignment. */
static bool can_be_written(const struct verifier *v, const struct code_expr *e) {
  if (e->op == CODE_LANE || e->op == CODE_VECTOR) e = expr_at(v, e->arg[0]);
  if (e->op != CODE_VARIABLE && e->op != CODE_ELEMENT) return false;
  enum code_storage storage = v->c->variables.data[e->variable].storage;
  return storage != CODE_INPUT && storage != CODE_COUNTER && storage != CODE_NAME;
}

static canvas_status check_assign(struct verifier *v, const struct code_statement *s) {
  TRY(check_expr(v, s->to));
  TRY(check_expr(v, s->value));
  struct code_type to = type_of(v, s->to), from = type_of(v, s->value);
  bool lanes = s->how == CODE_SET ? to.lanes == from.lanes : has_lanes(v, s->value, to.lanes);
  bool sorts = code_is_index(to) ? code_is_index(from) : to.element == from.element;
  bool some = expr_at(v, s->to)->op == CODE_VECTOR && expr_at(v, s->to)->arg[2] >= 0;
  if (some || !can_be_written(v, expr_at(v, s->to)))
    return reject(v, "what cannot be written", s->to);
  if (!lanes || !sorts) return reject(v, "a value of another type", s->value);
  return CANVAS_OK;
}

static void name_value(struct verifier *v, int variable, int value) {
  v->variables[variable].all = interval(v, value);
  v->variables[variable].most = within(v, value);
}

static canvas_status check_declare(struct verifier *v, const struct code_statement *s) {
  const struct code_variable *of = &v->c->variables.data[s->variable];
  if (of->storage != CODE_LOCAL && of->storage != CODE_ARRAY && of->storage != CODE_NAME)
    return reject_variable(v, "is not to be declared", s->variable);
  if (of->storage == CODE_NAME && (s->value < 0 || !code_is_index(of->type) || of->count != 1))
    return reject_variable(v, "is no name of an index", s->variable);
  if (s->value >= 0) {
    TRY(check_expr(v, s->value));
    bool fits = code_is_index(of->type) ? code_is_index(type_of(v, s->value))
                                        : code_same_type(type_of(v, s->value), of->type);
    if (of->storage == CODE_ARRAY || !fits)
      return reject_variable(v, "begins with a value of another type", s->variable);
  }
  TRY(declare(v, s->variable));
  v->variables[s->variable].unread = s->unread;
  if (of->storage == CODE_NAME) name_value(v, s->variable, s->value);
  return CANVAS_OK;
}

static canvas_status check_parallel(struct verifier *v, const struct code_statement *s) {
  const struct code_statement *at = s;
  if (v->parallel) return reject_variable(v, "is parallel within a parallel loop", s->variable);
  for (int i = 1; i < s->parallel; i++) {
    bool alone = at->first >= 0 && at->first == at->last &&
                 v->c->statements.data[at->first].kind == CODE_FOR;
    if (!alone) return reject_variable(v, "is parallel with loops that do not nest", s->variable);
    at = &v->c->statements.data[at->first];
  }
  return CANVAS_OK;
}

static canvas_status check_for(struct verifier *v, int at) {
  const struct code_statement *s = &v->c->statements.data[at];
  const struct code_variable *of = &v->c->variables.data[s->variable];
  TRY(check_expr(v, s->low));
  TRY(check_expr(v, s->high));
  if (of->storage != CODE_COUNTER || !code_is_index(of->type) || s->step < 1)
    return reject_variable(v, "cannot count a loop", s->variable);
  if (!code_is_index(type_of(v, s->low)) || !code_is_index(type_of(v, s->high)))
    return reject_variable(v, "runs over what is no index", s->variable);
  if (s->parallel) TRY(check_parallel(v, s));
  TRY(declare(v, s->variable));
  struct interval low = interval(v, s->low), high = interval(v, s->high);
  bool known = low.known && high.known && low.low == low.high && high.low == high.high;
  if (known && low.low < high.low)
    v->variables[s->variable].all =
        (struct interval){true, low.low, low.low + (high.low - 1 - low.low) / s->step * s->step};
  low = within(v, s->low);
  high = within(v, s->high);
  known = low.known && high.known;
  if (known && low.low < high.high)
    v->variables[s->variable].most = (struct interval){true, low.low, high.high - 1};
  bool guarded = v->guarded;
  v->guarded |= !known || low.high >= high.low; /* it may be empty at some steps of those around */
  v->parallel += s->parallel > 0;
  TRY(check_children(v, at));
  v->guarded = guarded;
  v->parallel -= s->parallel > 0;
  v->variables[s->variable].declared = false;
  return CANVAS_OK;
}

static canvas_status check_if(struct verifier *v, int at) {
  const struct code_statement *s = &v->c->statements.data[at];
  TRY(check_expr(v, s->condition));
  if (type_of(v, s->condition).element != CODE_TRUTH || type_of(v, s->condition).lanes != 1)
    return reject(v, "a condition that is none", s->condition);
  bool guarded = v->guarded;
  v->guarded = true;
  TRY(check_children(v, at));
  if (s->other >= 0) TRY(check_children(v, s->other));
  v->guarded = guarded;
  return CANVAS_OK;
}

static canvas_status check_allocate(struct verifier *v, int at) {
  const struct code_statement *s = &v->c->statements.data[at];
  for (int i = 0; i < s->count; i++) {
    int variable = v->c->lists.data[s->first_list + i];
    if (v->c->variables.data[variable].storage != CODE_HEAP)
      return reject_variable(v, "is not to be allocated", variable);
    TRY(declare(v, variable));
  }
  TRY(check_children(v, at));
  for (int i = 0; i < s->count; i++)
    v->variables[v->c->lists.data[s->first_list + i]].declared = false;
  return CANVAS_OK;
}

static canvas_status check_region(struct verifier *v, int at) {
  if (v->region || v->parallel) return reject(v, "a parallel region within another", -1);
  v->region = true;
  TRY(check_children(v, at));
  v->region = false;
  return CANVAS_OK;
}

static canvas_status check_statement(struct verifier *v, int at) {
  const struct code_statement *s = &v->c->statements.data[at];
  switch (s->kind) {
    case CODE_FUNCTION: return reject(v, "a function within a function", -1);
    case CODE_BLOCK: return check_children(v, at);
    case CODE_FOR: return check_for(v, at);
    case CODE_IF: return check_if(v, at);
    case CODE_DECLARE: return check_declare(v, s);
    case CODE_ASSIGN: return check_assign(v, s);
    case CODE_PREFETCH: {
      bool guarded = v->guarded;
      v->guarded = true; /* it may lie beyond the end */
      TRY(check_expr(v, s->to));
      v->guarded = guarded;
      return expr_at(v, s->to)->op == CODE_ELEMENT ? CANVAS_OK
                                                   : reject(v, "a prefetch of no element", s->to);
    }
    case CODE_ALLOCATE: return check_allocate(v, at);
    case CODE_REGION: return check_region(v, at);
  }
  return CANVAS_OK;
}

/* The variables that the children declare end with them. */
static canvas_status check_children(struct verifier *v, int parent) {
  int first = v->c->statements.data[parent].first;
  for (int i = first; i >= 0; i = v->c->statements.data[i].next) {
    if (v->c->statements.data[i].parent != parent) return reject(v, "a child of another", -1);
    TRY(check_statement(v, i));
  }
  for (int i = first; i >= 0; i = v->c->statements.data[i].next)
    if (v->c->statements.data[i].kind == CODE_DECLARE)
      v->variables[v->c->statements.data[i].variable].declared = false;
  return CANVAS_OK;
}

canvas_status code_verify(canvas_context *ctx, const struct code *c, const char *pass) {
  struct verifier v = {.ctx = ctx, .c = c, .pass = pass};
  v.variables = mem_alloc((size_t)c->variables.count * sizeof *v.variables + 1);
  for (int i = 0; i < c->variables.count; i++)
    v.variables[i].declared = c->variables.data[i].storage <= CODE_OUTPUT;
  canvas_status status = check_children(&v, 0);
  mem_free(v.variables);
  return status;
}
