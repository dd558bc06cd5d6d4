/* Trees of code by hand: variables, expressions, statements. See code.h. */
#include "code/code.h"

#include <stdlib.h>
#include <string.h>

struct code *code_new(const char *function) {
  struct code *c = mem_alloc(sizeof *c);
  c->name = arena_strndup(&c->arena, function, strlen(function));
  VEC_PUSH(
      &c->statements,
      ((struct code_statement){
          .kind = CODE_FUNCTION, .first = -1, .last = -1, .next = -1, .other = -1, .parent = -1}));
  return c;
}

void code_free(struct code *c) {
  if (!c) return;
  mem_free(c->variables.data);
  mem_free(c->exprs.data);
  mem_free(c->terms.data);
  mem_free(c->statements.data);
  mem_free(c->lists.data);
  arena_free(&c->arena);
  mem_free(c);
}

int code_variable(struct code *c, const char *name, enum code_storage storage,
                  struct code_type type, int64_t count) {
  VEC_PUSH(&c->variables,
           ((struct code_variable){.name = arena_strndup(&c->arena, name, strlen(name)),
                                   .storage = storage,
                                   .type = type,
                                   .count = count,
                                   .written = count}));
  return c->variables.count - 1;
}

int code_local(struct code *c, int first, const char *name, struct code_type type) {
  for (int i = first; i < c->variables.count; i++) {
    const struct code_variable *v = &c->variables.data[i];
    if (!strcmp(v->name, name) && code_same_type(v->type, type)) return i;
  }
  return code_variable(c, name, CODE_LOCAL, type, 1);
}

/* ---- types ---- */

struct code_type code_type(int element, int lanes) {
  return (struct code_type){(uint8_t)element, (uint8_t)lanes};
}

bool code_mentions(const struct code *c, int expr, int variable) {
  if (expr < 0) return false;
  const struct code_expr *e = &c->exprs.data[expr];
  if (e->variable == variable) return true;
  for (int i = 0; i < e->count; i++)
    if (code_mentions(c, c->terms.data[e->first + i].expr, variable)) return true;
  for (int i = 0; i < 3; i++)
    if (code_mentions(c, e->arg[i], variable)) return true;
  return false;
}

bool code_same_type(struct code_type a, struct code_type b) {
  return a.element == b.element && a.lanes == b.lanes;
}

bool code_is_index(struct code_type type) {
  return type.element == PROGRAM_I32 || type.element == CODE_INDEX;
}

bool code_is_value(struct code_type type) {
  return type.element < PROGRAM_I32;
}

bool code_is_index_operation(const struct code *c, int expr) {
  const struct code_expr *e = &c->exprs.data[expr];
  if (!code_is_index(e->type)) return false;
  if (e->op == PX_MIN || e->op == PX_MAX) return true;
  bool divides =
      e->op == PX_DIV || e->op == PX_MOD || e->op == CODE_FLOOR_DIV || e->op == CODE_FLOOR_MOD;
  if (!divides) return false;
  const struct code_expr *by = &c->exprs.data[e->arg[1]];
  return by->op == PX_INT && by->integer > 0;
}

/* ---- equality ---- */

int code_bare(const struct code *c, int expr) {
  const struct code_expr *e = &c->exprs.data[expr];
  return e->op == CODE_CONVERT && e->type.element == CODE_INDEX ? e->arg[0] : expr;
}

static bool same_number(const struct code_expr *x, const struct code_expr *y) {
  bool number = x->op == PX_INT || x->op == PX_BOOL || x->op == PX_NUMBER ||
                x->op == CODE_VARIABLE || x->op == CODE_SUM;
  return !number || x->integer == y->integer; /* of PX_NUMBER the bits */
}

static bool same_terms(const struct code *c, const struct code_expr *x, const struct code_expr *y) {
  for (int i = 0; i < x->count; i++) {
    const struct affine_term *s = &c->terms.data[x->first + i];
    const struct affine_term *t = &c->terms.data[y->first + i];
    if (s->coef != t->coef || !code_same(c, s->expr, t->expr)) return false;
  }
  return true;
}

static bool same_lanes(const struct code *c, const struct code_expr *x, const struct code_expr *y) {
  for (int i = 0; x->op == CODE_PERMUTE && i < x->type.lanes; i++)
    if (c->lists.data[x->first + i] != c->lists.data[y->first + i]) return false;
  return true;
}

bool code_same(const struct code *c, int a, int b) {
  if (a < 0 || b < 0) return a == b;
  const struct code_expr *x = &c->exprs.data[code_bare(c, a)];
  const struct code_expr *y = &c->exprs.data[code_bare(c, b)];
  bool types = code_same_type(x->type, y->type) ||
               (code_is_index(x->type) && code_is_index(y->type) && x->type.lanes == y->type.lanes);
  if (x == y) return true;
  if (!types || x->op != y->op || x->variable != y->variable || x->count != y->count) return false;
  if (!same_number(x, y) || !same_terms(c, x, y) || !same_lanes(c, x, y)) return false;
  for (int i = 0; i < 3; i++)
    if (!code_same(c, x->arg[i], y->arg[i])) return false;
  return true;
}

/* ---- expressions ---- */

static struct code_type type_of(const struct code *c, int expr) {
  return c->exprs.data[expr].type;
}

static int add_expr(struct code *c, struct code_expr expr) {
  VEC_PUSH(&c->exprs, expr);
  return c->exprs.count - 1;
}

int code_operation(struct code *c, int op, struct code_type type, int a, int b, int third) {
  return add_expr(
      c, (struct code_expr){.op = (uint8_t)op, .type = type, .arg = {a, b, third}, .variable = -1});
}

static int leaf(struct code *c, int op, struct code_type type) {
  return code_operation(c, op, type, -1, -1, -1);
}

int code_int(struct code *c, int64_t integer) {
  bool fits = integer >= INT32_MIN && integer <= INT32_MAX;
  int expr = leaf(c, PX_INT, code_type(fits ? PROGRAM_I32 : CODE_INDEX, 1));
  c->exprs.data[expr].integer = integer;
  return expr;
}

int code_number(struct code *c, int element, double number) {
  int expr = leaf(c, PX_NUMBER, code_type(element, 1));
  c->exprs.data[expr].number = number;
  return expr;
}

int code_variable_at(struct code *c, int variable, int64_t number) {
  int expr = leaf(c, CODE_VARIABLE, c->variables.data[variable].type);
  c->exprs.data[expr].variable = variable;
  c->exprs.data[expr].integer = number;
  return expr;
}

int code_element(struct code *c, int variable, int index) {
  int expr = code_operation(c, CODE_ELEMENT, c->variables.data[variable].type, index, -1, -1);
  c->exprs.data[expr].variable = variable;
  return expr;
}

int code_lane(struct code *c, int vector, int lane) {
  return code_operation(c, CODE_LANE, code_type(type_of(c, vector).element, 1), vector, lane, -1);
}

int code_vector(struct code *c, int element, int lanes) {
  return code_first_lanes(c, element, lanes, -1);
}

int code_first_lanes(struct code *c, int element, int lanes, int count) {
  struct code_type type = code_type(type_of(c, element).element, lanes);
  return code_operation(c, CODE_VECTOR, type, element, count, -1);
}

int code_some_lanes(struct code *c, int element, int lanes, int first, int end) {
  struct code_type type = code_type(type_of(c, element).element, lanes);
  return code_operation(c, CODE_VECTOR, type, element, end, first);
}

int code_broadcast(struct code *c, int scalar, int lanes) {
  if (lanes == 1) return scalar;
  const struct code_expr *e = &c->exprs.data[scalar];
  if (e->type.element == PROGRAM_BF16 && (e->op == CODE_CONVERT || e->op == PX_NUMBER)) {
    /* bf16 is in memory only */
    int wide = e->op == PX_NUMBER ? code_number(c, PROGRAM_F32, e->number) : e->arg[0];
    return code_convert(c, code_broadcast(c, wide, lanes), PROGRAM_BF16);
  }
  struct code_type type = code_type(e->type.element, lanes);
  return code_operation(c, CODE_BROADCAST, type, scalar, -1, -1);
}

int code_permute(struct code *c, int x, int y, const int *lanes) {
  struct code_type type = type_of(c, x);
  int expr = code_operation(c, CODE_PERMUTE, type, x, y, -1);
  c->exprs.data[expr].first = c->lists.count;
  for (int i = 0; i < type.lanes; i++) VEC_PUSH(&c->lists, lanes[i]);
  return expr;
}

int code_zip_lane(enum code_zip how, int lanes, int lane) {
  int four = lane / 4 * 4, in = lane % 4, part = how < CODE_ZIP_PAIRS_LOW ? 1 : 2, last = how % 2;
  if (how >= CODE_QUARTERS_EVEN) return 2 * four + 4 * last + in; /* y begins behind x */
  return in / part % 2 * lanes + four + 2 * last + in / (2 * part) * part + in % part;
}

int code_across(struct code *c, int op, int vector) {
  return code_operation(c, op, code_type(type_of(c, vector).element, 1), vector, -1, -1);
}

int code_convert(struct code *c, int expr, int element) {
  struct code_type type = type_of(c, expr);
  if (type.element == element) return expr;
  type.element = (uint8_t)element;
  return code_operation(c, CODE_CONVERT, type, expr, -1, -1);
}

int code_sum(struct code *c, const struct affine_term *terms, int count, int64_t constant) {
  if (!count) return code_int(c, constant);
  if (count == 1 && !constant && terms[0].coef == 1) return terms[0].expr;
  int element = PROGRAM_I32;
  for (int i = 0; i < count; i++)
    if (type_of(c, terms[i].expr).element == CODE_INDEX) element = CODE_INDEX;
  int first = c->terms.count;
  for (int i = 0; i < count; i++) VEC_PUSH(&c->terms, terms[i]);
  int expr = leaf(c, CODE_SUM, code_type(element, 1));
  struct code_expr *e = &c->exprs.data[expr];
  e->first = first;
  e->count = count;
  e->integer = constant;
  return expr;
}

/* ---- statements ---- */

static int add_statement(struct code *c, struct code_statement statement) {
  int at = c->statements.count, parent = c->at;
  statement.parent = parent;
  statement.first = statement.last = statement.next = statement.other = -1;
  VEC_PUSH(&c->statements, statement);
  struct code_statement *p = &c->statements.data[parent];
  if (p->last >= 0)
    c->statements.data[p->last].next = at;
  else
    p->first = at;
  p->last = at;
  return at;
}

static int open_statement(struct code *c, struct code_statement statement) {
  return c->at = add_statement(c, statement);
}

void code_close(struct code *c, int statement) {
  c->at = c->statements.data[statement].parent;
}

int code_open_for(struct code *c, int variable, int low, int high, int64_t step, int parallel) {
  return open_statement(c, (struct code_statement){.kind = CODE_FOR,
                                                   .variable = variable,
                                                   .low = low,
                                                   .high = high,
                                                   .step = step,
                                                   .parallel = parallel});
}

int code_open_if(struct code *c, int condition) {
  return open_statement(c, (struct code_statement){.kind = CODE_IF, .condition = condition});
}

/* The block hangs on `other`, outside the list of children. */
int code_open_else(struct code *c, int statement) {
  int at = c->statements.count;
  VEC_PUSH(&c->statements, ((struct code_statement){.kind = CODE_BLOCK,
                                                    .parent = c->statements.data[statement].parent,
                                                    .first = -1,
                                                    .last = -1,
                                                    .next = -1,
                                                    .other = -1}));
  c->statements.data[statement].other = at;
  return c->at = at;
}

int code_open_block(struct code *c) {
  return open_statement(c, (struct code_statement){.kind = CODE_BLOCK});
}

int code_open_region(struct code *c) {
  return open_statement(c, (struct code_statement){.kind = CODE_REGION});
}

int code_open_allocate(struct code *c, const int *variables, int count) {
  int first = c->lists.count;
  for (int i = 0; i < count; i++) VEC_PUSH(&c->lists, variables[i]);
  return open_statement(
      c, (struct code_statement){.kind = CODE_ALLOCATE, .first_list = first, .count = count});
}

void code_declare(struct code *c, int variable, int value) {
  add_statement(
      c, (struct code_statement){.kind = CODE_DECLARE, .variable = variable, .value = value});
}

void code_assign(struct code *c, int to, enum code_how how, int value) {
  add_statement(c,
                (struct code_statement){.kind = CODE_ASSIGN, .to = to, .how = how, .value = value});
}

void code_prefetch(struct code *c, int element) {
  add_statement(c, (struct code_statement){.kind = CODE_PREFETCH, .to = element});
}

int code_insert(struct code *c, int parent, int before, struct code_statement s) {
  int at = c->statements.count;
  s.parent = parent;
  s.first = s.last = s.other = -1;
  s.next = c->statements.data[parent].first;
  if (before >= 0) s.next = c->statements.data[before].next;
  VEC_PUSH(&c->statements, s);
  if (before < 0)
    c->statements.data[parent].first = at;
  else
    c->statements.data[before].next = at;
  if (s.next < 0) c->statements.data[parent].last = at;
  return at;
}
