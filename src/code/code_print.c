/* The text of a tree, for people and tests. See code.h. It cannot be compiled: names may collide,
 * and every operation with operands of its own is in brackets.
 */
#include <inttypes.h>

#include "code/code.h"

/* ---- names ---- */

const char *code_element_name(int element) {
  if (element < PROGRAM_DTYPES) return program_dtype_name((enum program_dtype)element);
  return element == CODE_INDEX ? "index" : "truth";
}

static void put_type(struct code_type type, struct buf *out) {
  buf_puts(out, code_element_name(type.element));
  if (type.lanes > 1) buf_printf(out, "x%d", type.lanes);
}

/* X, or acc_2 of several */
static void put_variable(const struct code *c, int variable, int64_t number, struct buf *out) {
  const struct code_variable *v = &c->variables.data[variable];
  buf_puts(out, v->name);
  if (v->storage == CODE_LOCAL && v->count > 1) buf_printf(out, "_%" PRId64, number);
}

/* ---- expressions ---- */

static void put_call(const struct code *c, const char *name, const struct code_expr *e,
                     struct buf *out) {
  buf_printf(out, "%s(", name);
  for (int i = 0; i < 3 && e->arg[i] >= 0; i++) {
    if (i) buf_puts(out, ", ");
    code_print_expr(c, e->arg[i], out);
  }
  buf_puts(out, ")");
}

static void put_sum(const struct code *c, const struct code_expr *e, struct buf *out) {
  bool leads = c->terms.data[e->first].coef < 0 && e->integer > 0;
  if (leads) buf_printf(out, "%" PRId64, e->integer);
  for (int i = 0; i < e->count; i++) {
    const struct affine_term *t = &c->terms.data[e->first + i];
    if (i || t->coef < 0) buf_puts(out, !i && !leads ? "-" : t->coef < 0 ? " - " : " + ");
    code_print_expr(c, t->expr, out);
    if (t->coef != 1 && t->coef != -1)
      buf_printf(out, "*%" PRId64, t->coef < 0 ? -t->coef : t->coef);
  }
  if (e->integer && !leads)
    buf_printf(out, " %c %" PRId64, e->integer < 0 ? '-' : '+',
               e->integer < 0 ? -e->integer : e->integer);
}

/* Operators in brackets, functions as calls. */
static void put_operation(const struct code *c, const struct code_expr *e, struct buf *out) {
  const char *text = px_op_text((enum px_op)e->op);
  bool function = !text[0] || (text[0] >= 'a' && text[0] <= 'z') || e->arg[1] < 0;
  if (function) {
    put_call(c, text, e, out);
    return;
  }
  buf_puts(out, "(");
  code_print_expr(c, e->arg[0], out);
  buf_printf(out, " %s ", text);
  code_print_expr(c, e->arg[1], out);
  buf_puts(out, ")");
}

/* permute(x, y: 0 0 4 4) */
static void put_permute(const struct code *c, const struct code_expr *e, struct buf *out) {
  buf_puts(out, "permute(");
  code_print_expr(c, e->arg[0], out);
  if (e->arg[1] >= 0) {
    buf_puts(out, ", ");
    code_print_expr(c, e->arg[1], out);
  }
  buf_puts(out, ":");
  for (int i = 0; i < e->type.lanes; i++) buf_printf(out, " %d", c->lists.data[e->first + i]);
  buf_puts(out, ")");
}

void code_print_expr(const struct code *c, int expr, struct buf *out) {
  const struct code_expr *e = &c->exprs.data[expr];
  switch (e->op) {
    case PX_INT: buf_printf(out, "%" PRId64, e->integer); return;
    case PX_NUMBER: buf_printf(out, "%.9g", e->number); return;
    case PX_BOOL: buf_puts(out, e->integer ? "true" : "false"); return;
    case CODE_VARIABLE: put_variable(c, e->variable, e->integer, out); return;
    case CODE_ELEMENT:
      buf_printf(out, "%s[", c->variables.data[e->variable].name);
      code_print_expr(c, e->arg[0], out);
      buf_puts(out, "]");
      return;
    case CODE_LANE:
      code_print_expr(c, e->arg[0], out);
      buf_puts(out, "<");
      code_print_expr(c, e->arg[1], out);
      buf_puts(out, ">");
      return;
    case CODE_SUM: put_sum(c, e, out); return;
    case CODE_VECTOR:
    case CODE_BROADCAST:
    case CODE_CONVERT:
      put_type(e->type, out);
      put_call(c, e->op == CODE_BROADCAST ? ".all" : "", e, out);
      return;
    case CODE_PERMUTE: put_permute(c, e, out); return;
    case CODE_FLOOR_DIV: put_call(c, "floor_div", e, out); return;
    case CODE_FLOOR_MOD: put_call(c, "floor_mod", e, out); return;
    case CODE_ROUND: put_call(c, "bf16_round", e, out); return;
    case CODE_LANES_ADD: put_call(c, "lanes_sum", e, out); return;
    case CODE_LANES_MUL: put_call(c, "lanes_product", e, out); return;
    case CODE_LANES_MAX: put_call(c, "lanes_max", e, out); return;
    case CODE_LANES_MIN: put_call(c, "lanes_min", e, out); return;
    case PX_SELECT: put_call(c, "select", e, out); return;
    default: put_operation(c, e, out);
  }
}

/* ---- statements ---- */

static void put_children(const struct code *c, int statement, int depth, struct buf *out);

static void put_declared(const struct code *c, int variable, struct buf *out) {
  const struct code_variable *v = &c->variables.data[variable];
  buf_printf(out, "%s ", v->name);
  put_type(v->type, out);
  bool number = v->storage == CODE_LOCAL || v->storage == CODE_NAME;
  if (!number || v->count > 1) buf_printf(out, "[%" PRId64 "]", v->count);
}

static void put_for(const struct code *c, const struct code_statement *s, struct buf *out) {
  buf_printf(out, "for %s in ", c->variables.data[s->variable].name);
  code_print_expr(c, s->low, out);
  buf_puts(out, "..");
  code_print_expr(c, s->high, out);
  if (s->step > 1) buf_printf(out, " step %" PRId64, s->step);
  if (s->parallel) buf_printf(out, " parallel %d", s->parallel);
}

static void put_allocate(const struct code *c, const struct code_statement *s, struct buf *out) {
  buf_puts(out, "allocate ");
  for (int i = 0; i < s->count; i++) {
    if (i) buf_puts(out, ", ");
    put_declared(c, c->lists.data[s->first_list + i], out);
  }
}

static void put_assign(const struct code *c, const struct code_statement *s, struct buf *out) {
  static const char *const how[] = {" = ", " += ", " *= "};
  code_print_expr(c, s->to, out);
  buf_puts(out, how[s->how]);
  code_print_expr(c, s->value, out);
}

static void put_declare(const struct code *c, const struct code_statement *s, struct buf *out) {
  buf_puts(out, "let ");
  put_declared(c, s->variable, out);
  if (s->value >= 0) {
    buf_puts(out, " = ");
    code_print_expr(c, s->value, out);
  }
  for (int i = 0; i < 64; i++)
    if (s->unread >> i & 1) buf_printf(out, ", no %s_%d", c->variables.data[s->variable].name, i);
}

static void put_line(const struct code *c, const struct code_statement *s, struct buf *out) {
  switch (s->kind) {
    case CODE_FUNCTION: break;
    case CODE_BLOCK: buf_puts(out, "block"); break;
    case CODE_FOR: put_for(c, s, out); break;
    case CODE_IF:
      buf_puts(out, "if ");
      code_print_expr(c, s->condition, out);
      break;
    case CODE_DECLARE: put_declare(c, s, out); break;
    case CODE_ASSIGN: put_assign(c, s, out); break;
    case CODE_PREFETCH:
      buf_puts(out, "prefetch ");
      code_print_expr(c, s->to, out);
      break;
    case CODE_ALLOCATE: put_allocate(c, s, out); break;
    case CODE_REGION: buf_puts(out, "in threads"); break;
  }
  buf_puts(out, "\n");
}

static void put_statement(const struct code *c, int statement, int depth, struct buf *out) {
  const struct code_statement *s = &c->statements.data[statement];
  buf_pad(out, out->length, 2 * (size_t)depth);
  put_line(c, s, out);
  put_children(c, statement, depth + 1, out);
  if (s->other < 0) return;
  buf_pad(out, out->length, 2 * (size_t)depth);
  buf_puts(out, "else\n");
  put_children(c, s->other, depth + 1, out);
}

static void put_children(const struct code *c, int statement, int depth, struct buf *out) {
  for (int i = c->statements.data[statement].first; i >= 0; i = c->statements.data[i].next)
    put_statement(c, i, depth, out);
}

void code_print(const struct code *c, struct buf *out) {
  buf_printf(out, "function %s(", c->name);
  for (int i = 0; i < c->variables.count && c->variables.data[i].storage <= CODE_OUTPUT; i++) {
    if (i) buf_puts(out, ", ");
    put_declared(c, i, out);
  }
  buf_puts(out, ")\n");
  put_children(c, 0, 1, out);
}
