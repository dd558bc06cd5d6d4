/* Prints programs in canonical form. See program.h.
 *
 * Parentheses are printed only if the text without them would parse to another tree: (a*b)*c has
 * none, a*(b*c) keeps them, since the order of floating point operations is part of a program.
 * Index arithmetic is printed without blanks, value operators with blanks.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

#include "program/program.h"

const char *program_dtype_name(enum program_dtype dtype) {
  static const char *const names[] = {"f32", "f64", "bf16", "i32"};
  return names[dtype];
}

const char *program_reducer_name(enum program_reducer reducer) {
  static const char *const names[] = {"none", "sum", "max", "mean", "min", "prod"};
  return names[reducer];
}

struct printer {
  const struct program *p;
  struct buf *buf;
  bool point; /* whole numbers get a decimal point, since the context does not make them values */
};

/* Prints the fewest digits that parse back to the same number. */
void px_number_text(double value, char text[32]) {
  if (isinf(value)) {
    strcpy(text, value < 0 ? "-inf" : "inf");
  } else if (value == 0) {
    strcpy(text, signbit(value) ? "-0.0" : "0");
  } else if (value == floor(value) && fabs(value) < 1e15) {
    text_format(text, 32, "%.0f", value);
  } else {
    for (int digits = 1; digits <= 17; digits++) {
      text_format(text, 32, "%.*g", digits, value);
      if (number_parse(text) == value) return;
    }
  }
}

static bool reads_as_real(const char *text) {
  return strpbrk(text, ".en") != NULL;
}

static void print_number(struct printer *w, double value) {
  char text[32];
  px_number_text(value, text);
  buf_puts(w->buf, text);
  if (w->point && !reads_as_real(text)) buf_puts(w->buf, ".0");
}

static void print_at(struct printer *w, int expr, enum px_binding least);

static void print_list(struct printer *w, const int *exprs, int count) {
  for (int i = 0; i < count; i++) {
    if (i) buf_puts(w->buf, ", ");
    print_at(w, exprs[i], BIND_SELECT);
  }
}

static void print_load(struct printer *w, const struct px_node *n) {
  const struct program_tensor *t = &w->p->tensors.data[n->tensor];
  buf_printf(w->buf, "%s[", t->name);
  if (t->rank) print_list(w, w->p->indices.data + n->first, t->rank);
  buf_puts(w->buf, "]");
}

/* Whether the text of an operand of a comparison shows that it is a value. */
static bool shows_value(const struct program *p, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  char text[32];
  if (n->op == PX_NUMBER) {
    px_number_text(n->number, text);
    return reads_as_real(text);
  }
  switch (scalar_ops[n->op].sorts) {
    case SORTS_NUMBERS:
      return shows_value(p, n->arg[0]) || (n->arg[1] >= 0 && shows_value(p, n->arg[1]));
    case SORTS_CHOICE: return shows_value(p, n->arg[1]) || shows_value(p, n->arg[2]);
    default: return true;
  }
}

static void print_binary(struct printer *w, const struct px_node *n, enum px_binding binding) {
  enum px_sort sort = w->p->nodes.data[n->arg[0]].sort;
  bool compares = binding == BIND_COMPARE, point = w->point;
  bool tight = sort == PX_INDEX && !compares;
  if (compares)
    w->point = sort == PX_VALUE && !shows_value(w->p, n->arg[0]) && !shows_value(w->p, n->arg[1]);
  print_at(w, n->arg[0], compares ? BIND_ADD : binding);
  buf_printf(w->buf, tight ? "%s" : " %s ", px_op_text(n->op));
  print_at(w, n->arg[1], binding + 1);
  w->point = point;
}

static void print_select(struct printer *w, const struct px_node *n) {
  buf_puts(w->buf, "if ");
  print_at(w, n->arg[0], BIND_OR);
  buf_puts(w->buf, " then ");
  print_at(w, n->arg[1], BIND_SELECT);
  buf_puts(w->buf, " else ");
  print_at(w, n->arg[2], BIND_SELECT);
}

static void print_call(struct printer *w, const struct px_node *n) {
  buf_printf(w->buf, "%s(", px_op_text(n->op));
  print_list(w, n->arg, n->arg[1] < 0 ? 1 : 2);
  buf_puts(w->buf, ")");
}

static void print_node(struct printer *w, const struct px_node *n, enum px_binding binding) {
  switch (n->op) {
    case PX_INT: buf_printf(w->buf, "%lld", (long long)n->integer); break;
    case PX_NUMBER: print_number(w, n->number); break;
    case PX_BOOL: buf_puts(w->buf, n->integer ? "true" : "false"); break;
    case PX_AXIS: buf_puts(w->buf, w->p->tensors.data[n->tensor].axes[n->integer].name); break;
    case PX_LOAD: print_load(w, n); break;
    case PX_SELECT: print_select(w, n); break;
    case PX_NEG:
      buf_puts(w->buf, "-");
      print_at(w, n->arg[0], BIND_SIGN);
      break;
    case PX_NOT:
      buf_puts(w->buf, "!");
      print_at(w, n->arg[0], BIND_LEAF);
      break;
    default:
      if (binding == BIND_CALL)
        print_call(w, n);
      else
        print_binary(w, n, binding);
  }
}

/* Prints an expression, in parentheses if it binds looser than `least`. */
static void print_at(struct printer *w, int expr, enum px_binding least) {
  const struct px_node *n = &w->p->nodes.data[expr];
  enum px_binding binding = scalar_ops[n->op].binding;
  if (binding < least) buf_puts(w->buf, "(");
  print_node(w, n, binding);
  if (binding < least) buf_puts(w->buf, ")");
}

void program_print_expr(const struct program *p, int expr, struct buf *buf) {
  print_at(&(struct printer){p, buf, false}, expr, BIND_SELECT);
}

static void print_axes(const struct program *p, const struct program_axis *axes, int count,
                       struct buf *buf) {
  for (int i = 0; i < count; i++) {
    buf_printf(buf, "%s%s:", i ? ", " : "", axes[i].name);
    if (axes[i].low < 0) {
      buf_printf(buf, "%lld", (long long)axes[i].size);
      continue;
    }
    program_print_expr(p, axes[i].low, buf);
    buf_puts(buf, "..");
    program_print_expr(p, axes[i].high, buf);
  }
}

static void print_range(const struct program_tensor *t, struct buf *buf) {
  buf_printf(buf, " %lld..%lld%s", (long long)t->least, (long long)t->most + 1,
             t->rising ? " rising" : "");
}

static void print_tensor(const struct program *p, const struct program_tensor *t, struct buf *buf) {
  if (t->is_input)
    buf_printf(buf, "in %s %s [", t->name, program_dtype_name(t->dtype));
  else if (t->dtype == PROGRAM_F32)
    buf_printf(buf, "%s[", t->name);
  else
    buf_printf(buf, "%s %s [", t->name, program_dtype_name(t->dtype));
  print_axes(p, t->axes, t->rank, buf);
  buf_puts(buf, "]");
  if (t->dtype == PROGRAM_I32) print_range(t, buf);
  if (t->constant) buf_puts(buf, " const");
  if (t->body >= 0) {
    buf_puts(buf, " = ");
    program_print_expr(p, t->body, buf);
  }
  if (t->reductions) {
    buf_printf(buf, " // %s ", program_reducer_name(t->reducer));
    print_axes(p, t->axes + t->rank, t->reductions, buf);
  }
  buf_puts(buf, "\n");
}

void program_print(const struct program *p, struct buf *buf) {
  buf_printf(buf, "canvas 1\nprogram %s", p->name);
  if (p->winograd) buf_printf(buf, " winograd %d", p->winograd);
  buf_puts(buf, "\n");
  for (int i = 0; i < p->tensors.count; i++) print_tensor(p, &p->tensors.data[i], buf);
  for (int i = 0; i < p->outputs.count; i++)
    buf_printf(buf, "out %s\n", p->tensors.data[p->outputs.data[i]].name);
}
