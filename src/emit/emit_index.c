/* Indices of the loops that stand open. See emit_base.h.
 *
 * An index is printed as a sum of terms, constants folded: c*3136 + h*56 + kh*56 + w + kw - 57.
 * What is no sum (quotients, remainders, loads of indices) is a term of its own.
 *
 * Loops count in 64 bits. An element of i32 and the number of a lane are ints of 32: arithmetic on
 * nothing else is cast to 64 bits, unless the ranges prove that each step of it fits in 32.
 */
#include <inttypes.h>
#include <string.h>

#include "emit/emit_base.h"

static const struct px_node *node_of(const struct emitter *e, int expr) {
  return &e->px->nodes.data[expr];
}

/* How far one step of the axis moves the index; false if not always as far. */
bool emit_stride(const struct emitter *e, int index, int axis, int64_t *stride) {
  struct affine a;
  *stride = 0;
  if (axis < 0) return true;
  if (!affine_of(e->px, index, &a)) return !px_mentions(e->px, index, axis);
  return affine_stride(e->px, &a, axis, stride);
}

/* The index where the axis is 0, of one with a stride. */
int emit_at_zero(struct emitter *e, int index, int axis) {
  struct affine a;
  if (!affine_of(e->px, index, &a)) return index;
  for (int i = a.count - 1; i >= 0; i--) {
    const struct px_node *n = node_of(e, a.term[i].expr);
    if (n->op == PX_AXIS && n->integer == axis) affine_drop(&a, i);
  }
  return affine_expr(e->px, &a);
}

/* ---- text ---- */

enum { TIGHT = 3, PRODUCT = 2, SUM = 1 }; /* how firmly an operand is bound */

static void print_index(struct emitter *e, int expr, int bound, struct buf *out);

static int64_t magnitude(const struct emitter *e, int expr, int64_t coef);

/* It is printed as an int of 32 bits: of i32 elements, the number of a lane and constants alone. */
static bool narrow(const struct emitter *e, int expr) {
  const struct px_node *n = node_of(e, expr);
  switch (n->op) {
    case PX_INT: return true;
    case PX_AXIS: return n->integer == e->lane;
    case PX_LOAD: return true;
    case PX_MIN:
    case PX_MAX: return false; /* by helpers in 64 bits */
    case PX_SELECT: return narrow(e, n->arg[1]) && narrow(e, n->arg[2]);
    case PX_MUL:
      return narrow(e, n->arg[0]) && narrow(e, n->arg[1]) && magnitude(e, expr, 1) <= INT32_MAX;
    default: return narrow(e, n->arg[0]) && (n->arg[1] < 0 || narrow(e, n->arg[1]));
  }
}

/* The largest |coef * expr|; INT64_MAX where it is not known. */
static int64_t magnitude(const struct emitter *e, int expr, int64_t coef) {
  struct px_range r = px_range(e->px, expr);
  int64_t low, high;
  if (r.overflow || __builtin_mul_overflow(r.low, coef, &low) ||
      __builtin_mul_overflow(r.high, coef, &high) || low == INT64_MIN || high == INT64_MIN)
    return INT64_MAX;
  low = low < 0 ? -low : low;
  high = high < 0 ? -high : high;
  return low > high ? low : high;
}

/* Every partial sum of what is narrow fits in 32 bits. */
static bool narrow_sum_fits(const struct emitter *e, const struct affine *t) {
  int64_t sum = t->constant < 0 ? -t->constant : t->constant;
  for (int i = 0; i < t->count; i++) {
    if (!narrow(e, t->term[i].expr)) continue;
    int64_t most = magnitude(e, t->term[i].expr, t->term[i].coef);
    if (__builtin_add_overflow(sum, most, &sum)) return false;
  }
  return sum <= INT32_MAX;
}

/* An operation on two ints of 32 bits whose result may need more. */
static bool needs_cast(const struct emitter *e, const struct px_node *n, int expr) {
  return narrow(e, n->arg[0]) && (n->arg[1] < 0 || narrow(e, n->arg[1])) &&
         magnitude(e, expr, 1) > INT32_MAX;
}

static void print_cast(const struct emitter *e, struct buf *out) {
  buf_printf(out, "(%s)", e->words->index);
}

static void print_pair(struct emitter *e, const char *function, const struct px_node *n,
                       struct buf *out) {
  buf_printf(out, "%s(", function);
  print_index(e, n->arg[0], 0, out);
  buf_puts(out, ", ");
  print_index(e, n->arg[1], 0, out);
  buf_puts(out, ")");
}

static bool never_negative(const struct emitter *e, int expr) {
  struct px_range r = px_range(e->px, expr);
  return !r.overflow && r.low >= 0;
}

static void print_division(struct emitter *e, const struct px_node *n, int bound, struct buf *out) {
  bool quotient = n->op == PX_DIV;
  if (!never_negative(e, n->arg[0])) {
    e->used |= quotient ? HELP_FLOOR_DIV : HELP_FLOOR_MOD;
    print_pair(e, quotient ? "FLOOR_DIV" : "FLOOR_MOD", n, out);
    return;
  }
  if (bound > SUM) buf_puts(out, "(");
  print_index(e, n->arg[0], PRODUCT, out);
  buf_puts(out, quotient ? " / " : " % ");
  print_index(e, n->arg[1], TIGHT, out);
  if (bound > SUM) buf_puts(out, ")");
}

/* What is no sum. */
static void print_term(struct emitter *e, int expr, int bound, struct buf *out) {
  const struct px_node *n = node_of(e, expr);
  bool cast;
  switch (n->op) {
    case PX_AXIS: buf_puts(out, e->space.name[n->integer]); return;
    case PX_DIV:
    case PX_MOD: print_division(e, n, bound, out); return;
    case PX_MIN:
      e->used |= HELP_LEAST_OF;
      print_pair(e, "LEAST_OF", n, out);
      return;
    case PX_MAX:
      e->used |= HELP_MOST_OF;
      print_pair(e, "MOST_OF", n, out);
      return;
    case PX_MUL:
      if (bound > PRODUCT) buf_puts(out, "(");
      cast = needs_cast(e, n, expr);
      if (cast) print_cast(e, out);
      print_index(e, n->arg[0], cast ? TIGHT : PRODUCT, out);
      buf_puts(out, "*");
      print_index(e, n->arg[1], TIGHT, out);
      if (bound > PRODUCT) buf_puts(out, ")");
      return;
    case PX_LOAD:
      e->loaded[n->tensor] = true;
      buf_printf(out, "%s[", e->tensor_name[n->tensor]);
      print_index(e, e->px->indices.data[n->first], 0, out);
      buf_puts(out, "]");
      return;
    default: /* PX_SELECT */
      buf_puts(out, "(");
      emit_condition(e, n->arg[0], out);
      buf_puts(out, " ? ");
      print_index(e, n->arg[1], SUM, out);
      buf_puts(out, " : ");
      print_index(e, n->arg[2], SUM, out);
      buf_puts(out, ")");
  }
}

static void print_terms(struct emitter *e, const struct affine *t, struct buf *out) {
  size_t start = out->length;
  bool fits = narrow_sum_fits(e, t);
  for (int pass = 0; pass < 2; pass++) /* what is added before what is taken away */
    for (int i = 0; i < t->count; i++) {
      int64_t coef = t->term[i].coef;
      if ((coef < 0) != pass) continue;
      if (out->length > start)
        buf_puts(out, coef < 0 ? " - " : " + ");
      else if (coef < 0)
        buf_puts(out, "-");
      bool load = node_of(e, t->term[i].expr)->op == PX_LOAD;
      bool cast = (load && coef != 1) || (!fits && narrow(e, t->term[i].expr));
      if (cast) print_cast(e, out);
      print_term(e, t->term[i].expr, coef == 1 && !cast ? SUM : TIGHT, out);
      if (coef != 1 && coef != -1) buf_printf(out, "*%" PRId64, coef < 0 ? -coef : coef);
    }
  if (out->length == start)
    buf_printf(out, "%" PRId64, t->constant);
  else if (t->constant)
    buf_printf(out, " %c %" PRId64, t->constant < 0 ? '-' : '+',
               t->constant < 0 ? -t->constant : t->constant);
}

static void print_index(struct emitter *e, int expr, int bound, struct buf *out) {
  struct affine t;
  if (!affine_of(e->px, expr, &t)) { /* a sum of very many terms: as it stands */
    const struct px_node *n = node_of(e, expr);
    buf_puts(out, n->op == PX_NEG ? "(-" : "(");
    bool cast = needs_cast(e, n, expr);
    if (cast) print_cast(e, out);
    print_index(e, n->arg[0], cast ? TIGHT : n->op == PX_ADD || n->op == PX_SUB ? SUM : TIGHT, out);
    buf_puts(out, n->op == PX_ADD ? " + " : n->op == PX_SUB ? " - " : n->op == PX_MUL ? "*" : "");
    if (n->arg[1] >= 0) print_index(e, n->arg[1], TIGHT, out);
    buf_puts(out, ")");
    return;
  }
  if (t.count == 1 && !t.constant && t.term[0].coef == 1) {
    print_term(e, t.term[0].expr, bound, out);
    return;
  }
  int parts = t.count + (t.constant != 0);
  bool brackets = parts > 1 ? bound > SUM
                            : (t.count ? bound > PRODUCT || t.term[0].coef < 0 : t.constant < 0) &&
                                  bound > SUM - 1;
  if (brackets) buf_puts(out, "(");
  print_terms(e, &t, out);
  if (brackets) buf_puts(out, ")");
}

/* 0: alone or in brackets, 1: operand of + and comparisons, 2: of *, 3: right of / and after a cast */
void emit_index(struct emitter *e, int expr, int bound, struct buf *out) {
  print_index(e, expr, bound, out);
}
