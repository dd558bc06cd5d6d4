/* Places and indices: the program's axes as sums of the loops' digits. See emit_base.h.
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

/* ---- the scratch program ---- */

/* The program's tensors, flat, and one stage whose axes will be the loops. */
void emit_open_scratch(struct emitter *e) {
  const struct program *p = e->program;
  e->px = program_new("loops");
  for (int i = 0; i < p->tensors.count; i++) {
    struct program_tensor t = p->tensors.data[i];
    t.rank = 1;
    t.reductions = 0;
    VEC_PUSH(&e->px->tensors, t);
  }
  struct program_tensor loops = {.name = "loops", .rank = PROGRAM_AXES, .body = -1};
  VEC_PUSH(&e->px->tensors, loops);
  e->loops = p->tensors.count;
}

/* One more axis: a loop over [first, first + size) of this name. */
int emit_open_axis(struct emitter *e, const char *name, int64_t first, int64_t size) {
  int position = e->open++;
  struct program_axis *axis = &e->px->tensors.data[e->loops].axes[position];
  *axis = (struct program_axis){.name = name, .size = size, .first = first, .low = -1, .high = -1};
  e->axis_name[position] = name;
  return px_raw_leaf(
      e->px,
      (struct px_node){.op = PX_AXIS, .sort = PX_INDEX, .tensor = e->loops, .integer = position});
}

/* ---- axes and places ---- */

/* The value of an axis of a stage, as far as its loops stand open; -1: none of them does. */
int emit_axis(struct emitter *e, const struct bound_stage *b, int axis) {
  int sum = -1;
  for (int i = 0; i < b->steps; i++) {
    const struct step *s = &b->path[i];
    if (s->axis != axis || e->digit[s->level] < 0) continue;
    int part = px_mul(e->px, e->digit[s->level], px_int(e->px, s->weight));
    sum = sum < 0 ? part : px_add(e->px, sum, part);
  }
  return sum;
}

/* The row-major position in the buffer of a stage, or in the tensor of an input. */
static int place(struct emitter *e, int tensor, const int *indices) {
  const struct program_tensor *t = &e->program->tensors.data[tensor];
  int stage = e->stage_of[tensor], flat = px_int(e->px, 0);
  if (stage < 0) {
    for (int i = 0; i < t->rank; i++)
      flat = px_add(e->px, px_mul(e->px, flat, px_int(e->px, t->axes[i].size)), indices[i]);
    return flat;
  }
  const struct bound_stage *b = &e->tree->stages[stage];
  for (int i = 0; i < b->dims; i++) {
    const struct buffer_axis *d = &b->layout[i];
    int at = indices[d->axis];
    if (d->weight > 1) at = px_div(e->px, at, px_int(e->px, d->weight));
    if (d->weight * d->extent < t->axes[d->axis].size) /* more digits of the axis stand outside */
      at = px_mod(e->px, at, px_int(e->px, d->extent));
    flat = px_add(e->px, px_mul(e->px, flat, px_int(e->px, d->extent)), at);
  }
  return flat;
}

static int load(struct program *to, int tensor, int rank, const int *indices, void *data) {
  struct emitter *e = data;
  for (int i = 0; i < rank; i++)
    if (indices[i] < 0) return -1;
  int flat = place(e, tensor, indices);
  return px_load(to, tensor, 1, &flat);
}

static void axes_of(struct emitter *e, const struct bound_stage *b, int axes[PROGRAM_AXES]) {
  const struct program_tensor *t = &e->program->tensors.data[b->tensor];
  int zero = px_int(e->px, 0);
  for (int i = 0; i < t->rank + t->reductions; i++) {
    axes[i] = emit_axis(e, b, i);
    if (axes[i] < 0) axes[i] = zero;
  }
}

/* An expression of the program, of this stage, here. */
int emit_copy(struct emitter *e, const struct bound_stage *b, int expr) {
  int axes[PROGRAM_AXES];
  axes_of(e, b, axes);
  struct px_map map = {.axis = axes, .load = load, .data = e, .guarded = e->tree->guarded};
  return px_copy(e->px, e->program, expr, &map);
}

/* Where the stage's element stands in its buffer, here. */
int emit_place(struct emitter *e, const struct bound_stage *b) {
  int axes[PROGRAM_AXES];
  axes_of(e, b, axes);
  return place(e, b->tensor, axes);
}

/* Where its accumulator stands: the digits of its loops within `start` that do not reduce, lanes
 * last. */
int emit_sum_place(struct emitter *e, const struct bound_stage *b) {
  int flat = px_int(e->px, 0);
  for (int vec = 0; vec < 2; vec++)
    for (int i = emit_step_of(b, b->start); i < b->steps; i++) {
      const struct step *s = &b->path[i];
      bool lanes = e->schedule->nodes.data[s->node].loop.marks & LOOP_VEC;
      if (lanes != vec || !emit_spatial(e, b, i)) continue;
      int digit = e->digit[s->level] < 0 ? px_int(e->px, 0) : e->digit[s->level];
      flat = px_add(e->px, px_mul(e->px, flat, px_int(e->px, s->extent)), digit);
    }
  return flat;
}

/* ---- sums of terms ---- */

static void add_term(const struct emitter *e, struct terms *t, int expr, int64_t coef) {
  for (int i = 0; i < t->count; i++)
    if (px_same(e->px, t->term[i].expr, expr)) {
      t->term[i].coef += coef;
      return;
    }
  if (t->count < EMIT_TERMS)
    t->term[t->count++] = (struct term){expr, coef};
  else
    t->full = true;
}

static void take_apart(const struct emitter *e, int expr, int64_t times, struct terms *t) {
  const struct px_node *n = node_of(e, expr);
  switch (n->op) {
    case PX_INT: t->constant += times * n->integer; return;
    case PX_NEG: take_apart(e, n->arg[0], -times, t); return;
    case PX_ADD:
    case PX_SUB:
      take_apart(e, n->arg[0], times, t);
      take_apart(e, n->arg[1], n->op == PX_ADD ? times : -times, t);
      return;
    case PX_MUL:
      for (int i = 0; i < 2; i++) {
        const struct px_node *factor = node_of(e, n->arg[i]);
        if (factor->op != PX_INT) continue;
        take_apart(e, n->arg[1 - i], times * factor->integer, t);
        return;
      }
      break;
    default: break;
  }
  add_term(e, t, expr, times);
}

/* Terms in the order of the text; those that cancel are gone. */
void emit_terms(const struct emitter *e, int index, struct terms *t) {
  t->count = 0;
  t->constant = 0;
  t->full = false;
  take_apart(e, index, 1, t);
  int kept = 0;
  for (int i = 0; i < t->count; i++)
    if (t->term[i].coef) t->term[kept++] = t->term[i];
  t->count = kept;
}

/* The axis occurs in an index. */
bool emit_mentions(const struct emitter *e, int expr, int axis) {
  if (expr < 0 || axis < 0) return false;
  const struct px_node *n = node_of(e, expr);
  if (n->op == PX_AXIS) return n->integer == axis;
  if (n->op == PX_LOAD) return emit_mentions(e, e->px->indices.data[n->first], axis);
  return emit_mentions(e, n->arg[0], axis) || emit_mentions(e, n->arg[1], axis) ||
         emit_mentions(e, n->arg[2], axis);
}

/* How far one step of the axis moves the index; false if not always as far. */
bool emit_stride(const struct emitter *e, int index, int axis, int64_t *stride) {
  struct terms t;
  *stride = 0;
  if (axis < 0) return true;
  emit_terms(e, index, &t);
  if (t.full) return !emit_mentions(e, index, axis);
  for (int i = 0; i < t.count; i++) {
    const struct px_node *n = node_of(e, t.term[i].expr);
    if (n->op == PX_AXIS && n->integer == axis)
      *stride = t.term[i].coef;
    else if (emit_mentions(e, t.term[i].expr, axis))
      return false;
  }
  return true;
}

/* The index where the axis is 0, of one with a stride. */
int emit_at_zero(struct emitter *e, int index, int axis) {
  struct terms t;
  emit_terms(e, index, &t);
  int sum = px_int(e->px, t.constant);
  for (int i = 0; i < t.count; i++) {
    const struct px_node *n = node_of(e, t.term[i].expr);
    if (n->op == PX_AXIS && n->integer == axis) continue;
    sum = px_add(e->px, sum, px_mul(e->px, t.term[i].expr, px_int(e->px, t.term[i].coef)));
  }
  return sum;
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
static bool narrow_sum_fits(const struct emitter *e, const struct terms *t) {
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
    case PX_AXIS: buf_puts(out, e->axis_name[n->integer]); return;
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

static void print_terms(struct emitter *e, const struct terms *t, struct buf *out) {
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
  struct terms t;
  emit_terms(e, expr, &t);
  if (t.full) { /* a sum of very many terms: as it stands */
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
