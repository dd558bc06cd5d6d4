/* Checks the rules of programs. See program.h.
 *
 * Requires: arrays and sorts of nodes are as the builder made them. Numbers and names are
 * untrusted: they may come from hostile text, or from code that edited fields. Guarantees: sizes
 * and products are bounded, a stage loads earlier tensors only, no index exceeds 2^62, divisors are
 * positive constants. A load that is evaluated for every element is not certain to leave its tensor
 * for any of them, and cannot leave it for any values of i32 elements.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/saturating.h"
#include "base/number.h"
#include "program/program.h"

struct verifier {
  canvas_context *ctx;
  const struct program *p;
  int tensor;
};

/* Fails with the message, after "line L, column C: " if there is a text. */
static canvas_status reject(const struct verifier *v, int line, int column, const char *format, ...)
    PRINTF_LIKE(4, 5);
static canvas_status reject(const struct verifier *v, int line, int column, const char *format,
                            ...) {
  char message[MESSAGE_SIZE];
  va_list args;
  va_start(args, format);
  text_vformat(message, sizeof message, format, args);
  va_end(args);
  if (!line) return fail(v->ctx, CANVAS_BAD_INPUT, "%s", message);
  return fail(v->ctx, CANVAS_BAD_INPUT, "line %d, column %d: %s", line, column, message);
}

/* Names and sizes */

bool program_is_word(const char *name) {
  static const char *const words[] = {"canvas", "program", "in",  "out",  "if",
                                      "then",   "else",    "inf", "true", "false"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (same_name(name, words[i])) return true;
  return false;
}

static canvas_status check_name(const struct verifier *v, const struct program_tensor *t,
                                const char *name) {
  size_t length = strlen(name);
  bool plain = length && !(name[0] >= '0' && name[0] <= '9');
  for (size_t i = 0; plain && i < length; i++)
    plain = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= 'A' && name[i] <= 'Z') ||
            (name[i] >= '0' && name[i] <= '9') || name[i] == '_';
  if (!plain)
    return reject(v, t->line, t->column,
                  "'%.40s' is no name, a name is letters, digits and _, not a digit first", name);
  if (length > PROGRAM_NAME)
    return reject(v, t->line, t->column, "name '%.40s...' is longer than %d bytes", name,
                  PROGRAM_NAME);
  if (program_is_word(name))
    return reject(v, t->line, t->column, "'%s' is a word of the language, choose another name",
                  name);
  return CANVAS_OK;
}

static canvas_status check_input_range(const struct verifier *v, const struct program_tensor *t) {
  if (t->dtype != PROGRAM_I32) return CANVAS_OK;
  if (!t->is_input)
    return reject(v, t->line, t->column, "stage '%.40s' is of i32, only an input may be", t->name);
  if (t->least < INT32_MIN || t->most > INT32_MAX)
    return reject(v, t->line, t->column, "the range of '%.40s' passes 32 bits", t->name);
  if (t->least > t->most)
    return reject(v, t->line, t->column, "the range of '%.40s' is empty", t->name);
  if (!t->rising || (t->rank && (t->axes[t->rank - 1].size > 1 || t->least == t->most)))
    return CANVAS_OK;
  return reject(v, t->line, t->column,
                "'%.40s' cannot rise from %lld to %lld, its last axis needs more elements", t->name,
                (long long)t->least, (long long)t->most);
}

static canvas_status check_expr(const struct verifier *v, int expr, bool always);
static canvas_status check_index(const struct verifier *v, int expr);

/* Checks the bounds of axis i: indices of the axes before it. */
static canvas_status check_bounds(const struct verifier *v, const struct program_tensor *t, int i) {
  const struct program_axis *a = &t->axes[i];
  struct program_axis again = *a;
  const int bounds[] = {a->low, a->high};
  uint32_t axes = 0;
  for (int b = 0; b < 2; b++) {
    TRY(check_expr(v, bounds[b], true));
    TRY(check_index(v, bounds[b]));
    axes |= px_axes(v->p, bounds[b]);
  }
  if (!axes || axes >= (uint32_t)1 << i)
    return reject(v, t->line, t->column,
                  "bounds of axis '%.40s' of '%.40s' are no function of the axes before it",
                  a->name, t->name);
  px_bounds(v->p, &again);
  if (again.size == a->size && again.first == a->first && a->size > 0) return CANVAS_OK;
  return reject(v, t->line, t->column, "axis '%.40s' of '%.40s' is always empty", a->name, t->name);
}

static canvas_status check_axis(const struct verifier *v, const struct program_tensor *t, int i) {
  const struct program_axis *a = &t->axes[i];
  TRY(check_name(v, t, a->name));
  for (int j = 0; j < i; j++)
    if (same_name(t->axes[j].name, a->name)) {
      if (i >= t->rank && j < t->rank)
        return reject(v, t->line, t->column,
                      "reduction axis '%.40s' of '%.40s' has the name of one of its own axes",
                      a->name, t->name);
      return reject(v, t->line, t->column, "axis '%.40s' of '%.40s' is named twice", a->name,
                    t->name);
    }
  if (a->low >= 0) return check_bounds(v, t, i);
  if (a->size >= 1) return CANVAS_OK;
  return reject(v, t->line, t->column, "axis '%.40s' of '%.40s' has size %lld, the least is 1",
                a->name, t->name, (long long)a->size);
}

/* Checks that the product of the sizes is at most PROGRAM_ELEMENTS. */
static bool product_fits(const struct program_axis *axes, int count) {
  int64_t product = 1;
  for (int i = 0; i < count; i++) product = saturating_mul(product, axes[i].size);
  return product <= PROGRAM_ELEMENTS;
}

static canvas_status check_declaration(const struct verifier *v, const struct program_tensor *t) {
  TRY(check_name(v, t, t->name));
  int first = program_find(v->p, t->name);
  for (int i = 0; first == v->tensor && i < v->tensor; i++)
    if (same_name(v->p->tensors.data[i].name, t->name)) first = i;
  if (first != v->tensor) return reject(v, t->line, t->column, "'%s' is defined twice", t->name);
  TRY(check_input_range(v, t));
  for (int i = 0; i < t->rank + t->reductions; i++) TRY(check_axis(v, t, i));
  if (!product_fits(t->axes, t->rank))
    return reject(v, t->line, t->column, "'%.40s' has more than 2^40 elements", t->name);
  if (!product_fits(t->axes + t->rank, t->reductions))
    return reject(v, t->line, t->column, "the reduction of '%.40s' runs over more than 2^40 points",
                  t->name);
  return CANVAS_OK;
}

/* Checks of expressions. `always`: the expression is evaluated for every element of the stage. */

/* Checks an index expression: operands first, so px_range sees only checked nodes. */
static canvas_status check_index(const struct verifier *v, int expr) {
  const struct px_node *n = &v->p->nodes.data[expr];
  struct buf text = {0};
  if (!px_range(v->p, expr).overflow) return CANVAS_OK;
  program_print_expr(v->p, expr, &text);
  canvas_status status = reject(v, n->line, n->column, "index '%.200s' may pass 2^62", text.text);
  buf_free(&text);
  return status;
}

static canvas_status check_divisor(const struct verifier *v, const struct px_node *n) {
  const struct px_node *d = &v->p->nodes.data[n->arg[1]];
  if (n->sort != PX_INDEX || (d->op == PX_INT && d->integer >= 1)) return CANVAS_OK;
  return reject(v, n->line, n->column, "'%s' of an index needs a positive whole number after it",
                px_op_text(n->op));
}

static canvas_status out_of_range(const struct verifier *v, const struct px_node *n, int i,
                                  struct px_range r) {
  const struct program_tensor *to = &v->p->tensors.data[n->tensor];
  struct buf text = {0};
  program_print_expr(v->p, v->p->indices.data[n->first + i], &text);
  canvas_status status = reject(
      v, n->line, n->column,
      "stage '%.40s' loads '%.40s' out of range: index '%.200s' runs from %lld to %lld, axis "
      "'%.40s' has size %lld",
      v->p->tensors.data[v->tensor].name, to->name, text.text, (long long)r.low, (long long)r.high,
      to->axes[i].name, (long long)to->axes[i].size);
  buf_free(&text);
  return status;
}

static canvas_status check_load(const struct verifier *v, const struct px_node *n, bool always) {
  const struct program_tensor *from = &v->p->tensors.data[v->tensor];
  if (n->tensor >= v->tensor)
    return reject(v, n->line, n->column, "stage '%.40s' loads '%.40s', which is not before it",
                  from->name, v->p->tensors.data[n->tensor].name);
  const struct program_tensor *to = &v->p->tensors.data[n->tensor];
  for (int i = 0; i < to->rank; i++) {
    int index = v->p->indices.data[n->first + i];
    TRY(check_expr(v, index, always));
    TRY(check_index(v, index));
    struct px_range r = px_range(v->p, index);
    int64_t size = to->axes[i].size;
    bool known = r.exact || r.data; /* data-dependent indices have to be proved or guarded */
    bool leaves = known ? r.low < 0 || r.high >= size : r.high < 0 || r.low >= size;
    if (always && leaves) return out_of_range(v, n, i, r);
  }
  return CANVAS_OK;
}

static canvas_status check_children(const struct verifier *v, const struct px_node *n,
                                    bool always) {
  enum px_sorts sorts = scalar_ops[n->op].sorts;
  bool chooses = sorts == SORTS_CHOICE || sorts == SORTS_LOGIC;
  for (int i = 0; i < 3 && n->arg[i] >= 0; i++)
    TRY(check_expr(v, n->arg[i], always && !(chooses && i > 0)));
  return CANVAS_OK;
}

static canvas_status check_expr(const struct verifier *v, int expr, bool always) {
  const struct px_node *n = &v->p->nodes.data[expr];
  switch (n->op) {
    case PX_NUMBER:
      if (!isnan(n->number)) return CANVAS_OK;
      return reject(v, n->line, n->column, "a number of stage '%.40s' is nan",
                    v->p->tensors.data[v->tensor].name);
    case PX_AXIS:
      if (n->tensor == v->tensor) return CANVAS_OK;
      return reject(v, n->line, n->column, "stage '%.40s' uses an axis of '%.40s'",
                    v->p->tensors.data[v->tensor].name, v->p->tensors.data[n->tensor].name);
    case PX_LOAD: return check_load(v, n, always);
    case PX_DIV:
    case PX_MOD: TRY(check_divisor(v, n)); break;
    default: break;
  }
  TRY(check_children(v, n, always));
  bool compares = scalar_ops[n->op].sorts == SORTS_TEST;
  if (n->op == PX_REAL || (compares && v->p->nodes.data[n->arg[0]].sort == PX_INDEX)) {
    TRY(check_index(v, n->arg[0]));
    if (compares) TRY(check_index(v, n->arg[1]));
  }
  return CANVAS_OK;
}

canvas_status program_verify_tensor(canvas_context *ctx, const struct program *p, int tensor) {
  struct verifier v = {ctx, p, tensor};
  const struct program_tensor *t = &p->tensors.data[tensor];
  TRY(check_declaration(&v, t));
  if (t->is_input) return CANVAS_OK;
  if (t->body < 0) return reject(&v, t->line, t->column, "stage '%s' has no expression", t->name);
  return check_expr(&v, t->body, true);
}

static canvas_status check_outputs(const struct verifier *v) {
  const struct program *p = v->p;
  if (!p->outputs.count) return reject(v, 0, 0, "program '%.40s' has no output", p->name);
  for (int i = 0; i < p->outputs.count; i++) {
    const struct program_tensor *t = &p->tensors.data[p->outputs.data[i]];
    if (t->is_input) return reject(v, 0, 0, "'%s' is an input, an output is a stage", t->name);
    for (int j = 0; j < i; j++)
      if (p->outputs.data[j] == p->outputs.data[i])
        return reject(v, 0, 0, "'%s' is an output twice", t->name);
  }
  return CANVAS_OK;
}

static canvas_status check_program_name(const struct verifier *v) {
  const char *name = v->p->name;
  bool plain = name[0] != '\0';
  for (const char *c = name; *c; c++) plain = plain && *c > ' ' && *c < 0x7f && *c != '#';
  if (plain && strlen(name) <= PROGRAM_NAME) return CANVAS_OK;
  return reject(v, 0, 0, "the name of a program is 1 to %d printable characters, no blank, no #",
                PROGRAM_NAME);
}

canvas_status program_verify(canvas_context *ctx, const struct program *p) {
  struct verifier v = {ctx, p, -1};
  if (p->failed) return fail(ctx, CANVAS_BAD_INPUT, "%s", p->error);
  TRY(check_program_name(&v));
  for (int i = 0; i < p->tensors.count; i++) TRY(program_verify_tensor(ctx, p, i));
  return check_outputs(&v);
}
