/* Expressions of values, in scalars or in vectors. See emit_base.h.
 *
 * Within a vec loop an expression is the same in all lanes (a scalar, which the operators of
 * vectors accept), a vector, or scattered: then a loop over the lanes gathers it into a vector
 * before the statement. What stands in a branch is evaluated only where the branch is taken, so a
 * select with something scattered inside is gathered as a whole.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

#include "emit/emit_base.h"

static const struct px_node *node_of(const struct emitter *e, int expr) {
  return &e->px->nodes.data[expr];
}

static bool in_vectors(const struct emitter *e) {
  return e->lane >= 0 && !e->one_by_one;
}

static int index_of(const struct emitter *e, const struct px_node *load) {
  return e->px->indices.data[load->first];
}

/* ---- types ---- */

void emit_use_vector(struct emitter *e, int helper, bool wide, int lanes) {
  e->used_vectors[helper][wide] |= (uint64_t)1 << (lanes - 1);
  e->used_vectors[VECTOR_TYPE][wide] |= (uint64_t)1 << (lanes - 1);
}

/* v16 of fp32, d8 of fp64; of one lane the scalar's type */
const char *emit_vector_type(struct emitter *e, bool wide, int lanes, char name[16]) {
  if (lanes == 1) return e->words->type[wide ? PROGRAM_F64 : PROGRAM_F32];
  emit_use_vector(e, VECTOR_TYPE, wide, lanes);
  snprintf(name, 16, "%c%d", wide ? 'd' : 'v', lanes);
  return name;
}

/* ---- what is held somewhere ---- */

static const struct held *held_of(struct emitter *e, int tensor, struct held *input) {
  int stage = e->space.stage_of[tensor];
  if (stage >= 0) return &e->stages[stage].value;
  *input = (struct held){
      e->tensor_name[tensor],
      {.dtype = e->program->tensors.data[tensor].dtype, .lanes = 1, .lane_stride = 1}};
  return input;
}

enum spread emit_held_spread(struct emitter *e, const struct held *h, int place) {
  int64_t stride;
  enum program_dtype want = e->wide ? PROGRAM_F64 : PROGRAM_F32;
  bool vector = h->at.dtype == want || (h->at.dtype == PROGRAM_BF16 && want == PROGRAM_F32);
  if (!in_vectors(e)) return SPREAD_SAME;
  if (h->at.per_lane) return vector ? SPREAD_LANES : SPREAD_SCATTERED;
  if (!emit_stride(e, place, e->lane, &stride)) return SPREAD_SCATTERED;
  if (stride == 0) return SPREAD_SAME;
  if (stride != h->at.lane_stride || !vector) return SPREAD_SCATTERED;
  return h->at.kind == STORAGE_NAMED && h->at.lanes != e->lanes ? SPREAD_SCATTERED : SPREAD_LANES;
}

/* Which variable: its place is a constant, and the lane across. */
int64_t emit_variable(struct emitter *e, const struct held *h, int place) {
  struct affine t;
  affine_of(e->px, place, &t);
  int64_t vector = (h->at.per_lane ? 1 : h->at.lanes) * h->at.lane_stride;
  return t.constant / vector * h->at.lane_stride + t.constant % h->at.lane_stride;
}

static void named(struct emitter *e, const struct held *h, int place, struct buf *out) {
  buf_puts(out, h->name);
  if (h->at.elements > (h->at.per_lane ? 1 : h->at.lanes))
    buf_printf(out, "_%" PRId64, emit_variable(e, h, place));
}

/* The element of a vector that the lane being written is. */
static void lane_of(struct emitter *e, const struct held *h, int place, struct buf *out) {
  struct affine t;
  affine_of(e->px, place, &t);
  if (h->at.per_lane ? e->one_by_one : h->at.kind == STORAGE_NAMED && h->at.lanes > 1 && t.count)
    buf_puts(out, "[lane]");
  else if (!h->at.per_lane && h->at.kind == STORAGE_NAMED && h->at.lanes > 1)
    buf_printf(out, "[%" PRId64 "]", t.constant / h->at.lane_stride % h->at.lanes);
}

static void held_in_vectors(struct emitter *e, const struct held *h, int place, struct buf *out) {
  if (h->at.kind == STORAGE_NAMED) {
    named(e, h, place, out);
    return;
  }
  if (h->at.per_lane) {
    buf_printf(out, "%s[", h->name);
    emit_index(e, place, 0, out);
    buf_puts(out, "]");
    return;
  }
  int helper = h->at.dtype == PROGRAM_BF16 ? VECTOR_BF16_READ : VECTOR_TYPE;
  emit_use_vector(e, helper, e->wide, e->lanes);
  buf_printf(out, "%s%d(%s[", helper == VECTOR_TYPE ? e->wide ? "D" : "V" : "BF16_READ", e->lanes,
             h->name);
  emit_index(e, emit_at_zero(e, place, e->lane), 0, out);
  buf_puts(out, "])");
}

/* The variable, element or vector; of bf16 in memory what it is stored as, unless a vector. */
void emit_held(struct emitter *e, const struct held *h, int place, struct buf *out) {
  if (emit_held_spread(e, h, place) == SPREAD_LANES) {
    held_in_vectors(e, h, place, out);
    return;
  }
  if (h->at.kind == STORAGE_NAMED) {
    named(e, h, place, out);
  } else {
    buf_printf(out, "%s[", h->name);
    emit_index(e, place, 0, out);
    buf_puts(out, "]");
  }
  lane_of(e, h, place, out);
}

static void load(struct emitter *e, const struct px_node *n, struct buf *out) {
  struct held input;
  const struct held *h = held_of(e, n->tensor, &input);
  int place = index_of(e, n);
  e->loaded[n->tensor] = true;
  if (h->at.kind == STORAGE_NAMED)
    e->stages[e->space.stage_of[n->tensor]].read |= UINT64_C(1) << emit_variable(e, h, place);
  bool vector = emit_held_spread(e, h, place) == SPREAD_LANES;
  if (!vector && h->at.dtype == PROGRAM_BF16) {
    e->used |= HELP_BF16_READ;
    buf_puts(out, "BF16_READ(");
    emit_held(e, h, place, out);
    buf_puts(out, ")");
    return;
  }
  if (!vector && (h->at.dtype == PROGRAM_F64) != e->wide)
    buf_printf(out, "(%s)", e->words->type[e->wide ? PROGRAM_F64 : PROGRAM_F32]);
  emit_held(e, h, place, out);
}

/* ---- spread ---- */

/* What is known of a node in this statement: two bits each, 0 is not known yet. */
enum { KNOWN_SPREAD = 0, KNOWN_SCATTERED = 2, KNOWN_HARMLESS = 4 };

static int recall(const struct emitter *e, int expr, int what) {
  return expr < e->known.count ? (e->known.data[expr] >> what & 3) - 1 : -1;
}

static int remember(struct emitter *e, int expr, int what, int value) {
  while (e->known.count <= expr) VEC_PUSH(&e->known, 0);
  e->known.data[expr] |= (uint8_t)((value + 1) << what);
  return value;
}

static enum spread most(enum spread a, enum spread b) {
  return a > b ? a : b;
}

/* Something below must be gathered. */
static bool scattered(struct emitter *e, int expr) {
  if (expr < 0) return false;
  int known = recall(e, expr, KNOWN_SCATTERED);
  if (known >= 0) return known;
  struct px_node n = *node_of(e, expr);
  bool is = emit_spread(e, expr) == SPREAD_SCATTERED;
  if (!is && n.sort != PX_INDEX && n.op != PX_LOAD && n.op != PX_REAL)
    is = scattered(e, n.arg[0]) || scattered(e, n.arg[1]) || scattered(e, n.arg[2]);
  return remember(e, expr, KNOWN_SCATTERED, is);
}

static bool harmless(struct emitter *e, int expr);

static bool look_for_harm(struct emitter *e, const struct px_node *n) {
  if (n->sort == PX_INDEX) return true;
  if (n->op == PX_LOAD) {
    struct px_range r = px_range(e->px, index_of(e, n));
    struct held input = {.at = {.elements = 0}};
    const struct held *h = held_of(e, n->tensor, &input);
    int64_t elements = h == &input ? program_elements(e->program, n->tensor) : h->at.elements;
    return !r.data && !r.overflow && r.low >= 0 && r.high < elements;
  }
  return harmless(e, n->arg[0]) && harmless(e, n->arg[1]) && harmless(e, n->arg[2]);
}

/* No load below leaves its tensor, whatever the conditions around it say. */
static bool harmless(struct emitter *e, int expr) {
  if (expr < 0) return true;
  int known = recall(e, expr, KNOWN_HARMLESS);
  if (known >= 0) return known;
  return remember(e, expr, KNOWN_HARMLESS, look_for_harm(e, node_of(e, expr)));
}

static enum spread select_spread(struct emitter *e, const struct px_node *n) {
  enum spread condition = emit_spread(e, n->arg[0]);
  if (condition == SPREAD_SCATTERED || scattered(e, n->arg[1]) || scattered(e, n->arg[2]))
    return SPREAD_SCATTERED;
  enum spread branches = most(emit_spread(e, n->arg[1]), emit_spread(e, n->arg[2]));
  if (condition == SPREAD_SAME) return branches;
  return harmless(e, n->arg[1]) && harmless(e, n->arg[2]) ? SPREAD_LANES : SPREAD_SCATTERED;
}

/* Of conditions the spread of their truth: a vector of masks has no && with a scalar. */
static enum spread condition_spread(struct emitter *e, const struct px_node *n) {
  if (n->op == PX_NOT) return emit_spread(e, n->arg[0]);
  enum spread a = emit_spread(e, n->arg[0]), b = emit_spread(e, n->arg[1]);
  if (n->op != PX_AND && n->op != PX_OR) {
    if (node_of(e, n->arg[0])->sort == PX_INDEX && most(a, b) != SPREAD_SAME)
      return SPREAD_SCATTERED;
    return scattered(e, n->arg[0]) || scattered(e, n->arg[1]) ? SPREAD_SCATTERED : most(a, b);
  }
  if (a == b && (a != SPREAD_LANES || harmless(e, n->arg[1]))) return a;
  return SPREAD_SCATTERED;
}

static enum spread find_spread(struct emitter *e, int expr) {
  const struct px_node node = *node_of(e, expr), *n = &node; /* the scratch program may grow */
  if (n->sort == PX_INDEX)
    return px_mentions(e->px, expr, e->lane) ? SPREAD_SCATTERED : SPREAD_SAME;
  switch (n->op) {
    case PX_NUMBER:
    case PX_BOOL: return SPREAD_SAME;
    case PX_REAL: return emit_spread(e, n->arg[0]);
    case PX_LOAD: {
      struct held input;
      return emit_held_spread(e, held_of(e, n->tensor, &input), index_of(e, n));
    }
    case PX_SELECT: return select_spread(e, n);
    default: break;
  }
  if (n->sort == PX_CONDITION) return condition_spread(e, n);
  enum spread s = SPREAD_SAME; /* operators: what is scattered below is gathered before */
  for (int i = 0; i < 3; i++)
    if (n->arg[i] >= 0 && emit_spread(e, n->arg[i]) != SPREAD_SAME) s = SPREAD_LANES;
  return s;
}

enum spread emit_spread(struct emitter *e, int expr) {
  if (!in_vectors(e)) return SPREAD_SAME;
  int known = recall(e, expr, KNOWN_SPREAD);
  if (known >= 0) return (enum spread)known;
  return (enum spread)remember(e, expr, KNOWN_SPREAD, (int)find_spread(e, expr));
}

/* ---- text ---- */

enum { SUM = 1, PRODUCT = 2, UNARY = 3 };

/* The shortest decimal that reads back as the same number. */
void emit_number(struct emitter *e, double number, struct buf *out) {
  char text[40];
  bool wide = e->wide;
  double want = wide ? number : (double)(float)number;
  if (isnan(want)) { /* beside a load that is guarded */
    e->used |= HELP_MATH;
    buf_puts(out, e->words->nan);
    return;
  }
  if (isinf(want)) {
    e->used |= HELP_MATH;
    buf_printf(out, "%s%s", want < 0 ? "-" : "", e->words->infinity);
    return;
  }
  for (int digits = 1; digits <= 17; digits++) {
    text_format(text, sizeof text, "%.*g", digits, want);
    double read = number_parse(text);
    if (wide ? read == want : (float)read == (float)want) break;
  }
  buf_printf(out, "%s%s%s", text, strpbrk(text, ".e") ? "" : ".0", wide ? "" : "f");
}

/* Gathers the expression's lanes into a vector before the statement. */
static void gather(struct emitter *e, int expr, struct buf *out) {
  char type[16];
  struct buf line = {0};
  int number = e->gathered++;
  e->one_by_one = true;
  emit_value(e, expr, 0, &line);
  e->one_by_one = false;
  buf_printf(&e->before, "%s lanes%d;\n", emit_vector_type(e, e->wide, e->lanes, type), number);
  buf_printf(&e->before, "for (int lane = 0; lane < %d; lane++) lanes%d[lane] = %s;\n", e->lanes,
             number, line.text);
  buf_printf(out, "lanes%d", number);
  buf_free(&line);
}

void emit_vector(struct emitter *e, int expr, struct buf *out) {
  if (!in_vectors(e) || emit_spread(e, expr) != SPREAD_SAME) {
    emit_value(e, expr, 0, out);
    return;
  }
  emit_use_vector(e, VECTOR_ALL, e->wide, e->lanes);
  buf_printf(out, "ALL_%c%d(", e->wide ? 'D' : 'V', e->lanes);
  emit_value(e, expr, 0, out);
  buf_puts(out, ")");
}

static void infix(struct emitter *e, const struct px_node *n, int level, int bound,
                  struct buf *out) {
  if (bound > level) buf_puts(out, "(");
  emit_value(e, n->arg[0], level, out);
  buf_printf(out, " %s ", e->words->operation[n->op][e->wide]);
  emit_value(e, n->arg[1], level + 1, out);
  if (bound > level) buf_puts(out, ")");
}

/* exp(x) of scalars, EXP_V16(x) of vectors */
static void call(struct emitter *e, int expr, const struct px_node *n, struct buf *out) {
  bool vector = in_vectors(e) && emit_spread(e, expr) != SPREAD_SAME;
  if (vector) {
    emit_use_vector(e, VECTOR_BF16_WRITE + 1 + n->op, e->wide, e->lanes);
    buf_printf(out, "%s_%c%d(", scalar_ops[n->op].name, e->wide ? 'D' : 'V', e->lanes);
    emit_vector(e, n->arg[0], out);
  } else {
    buf_printf(out, "%s(", e->words->operation[n->op][e->wide]);
    emit_value(e, n->arg[0], 0, out);
    if (n->op == PX_MAX || n->op == PX_MIN)
      e->used |= (n->op == PX_MAX ? HELP_MAX_F32 : HELP_MIN_F32) << e->wide;
  }
  if (n->op != PX_MAX && n->op != PX_MIN) e->used |= HELP_MATH;
  if (n->arg[1] >= 0) {
    buf_puts(out, ", ");
    vector ? emit_vector(e, n->arg[1], out) : emit_value(e, n->arg[1], 0, out);
  }
  buf_puts(out, ")");
}

/* Both branches of ?: have one type: a vector in memory is of the type that may stand anywhere. */
static void branch(struct emitter *e, int expr, bool vector, struct buf *out) {
  char type[16];
  if (!vector) {
    emit_value(e, expr, SUM, out);
    return;
  }
  if (node_of(e, expr)->op == PX_LOAD && emit_spread(e, expr) == SPREAD_LANES)
    buf_printf(out, "(%s)", emit_vector_type(e, e->wide, e->lanes, type));
  emit_vector(e, expr, out);
}

static void choose(struct emitter *e, int expr, const struct px_node *n, int bound,
                   struct buf *out) {
  bool vector = in_vectors(e) && emit_spread(e, expr) == SPREAD_LANES;
  if (vector && emit_spread(e, n->arg[0]) == SPREAD_LANES) {
    emit_use_vector(e, VECTOR_PICK, e->wide, e->lanes);
    buf_printf(out, "PICK_%c%d(", e->wide ? 'D' : 'V', e->lanes);
    emit_condition(e, n->arg[0], out);
    buf_puts(out, ", ");
    emit_vector(e, n->arg[1], out);
    buf_puts(out, ", ");
    emit_vector(e, n->arg[2], out);
    buf_puts(out, ")");
    return;
  }
  if (bound > 0) buf_puts(out, "(");
  emit_condition(e, n->arg[0], out);
  buf_puts(out, " ? ");
  branch(e, n->arg[1], vector, out);
  buf_puts(out, " : ");
  branch(e, n->arg[2], vector, out);
  if (bound > 0) buf_puts(out, ")");
}

/* 0: alone or in brackets, 1: operand of +, 2: of * or right of -, 3: right of / */
void emit_value(struct emitter *e, int expr, int bound, struct buf *out) {
  const struct px_node node = *node_of(e, expr), *n = &node; /* the scratch program may grow */
  if (in_vectors(e) && emit_spread(e, expr) == SPREAD_SCATTERED) {
    gather(e, expr, out);
    return;
  }
  switch (n->op) {
    case PX_NUMBER: {
      bool brackets = n->number < 0 && bound > SUM;
      if (brackets) buf_puts(out, "(");
      emit_number(e, n->number, out);
      if (brackets) buf_puts(out, ")");
      return;
    }
    case PX_LOAD: load(e, n, out); return;
    case PX_ADD:
    case PX_SUB: infix(e, n, SUM, bound, out); return;
    case PX_MUL:
    case PX_DIV: infix(e, n, PRODUCT, bound, out); return;
    case PX_NEG:
      if (bound > SUM) buf_puts(out, "(");
      buf_puts(out, "-");
      emit_value(e, n->arg[0], UNARY, out);
      if (bound > SUM) buf_puts(out, ")");
      return;
    case PX_SELECT: choose(e, expr, n, bound, out); return;
    case PX_REAL:
      buf_printf(out, "(%s)", e->words->type[e->wide ? PROGRAM_F64 : PROGRAM_F32]);
      emit_index(e, n->arg[0], UNARY, out);
      return;
    default: call(e, expr, n, out);
  }
}

static void compare(struct emitter *e, int expr, const struct px_node *n, struct buf *out) {
  bool index = node_of(e, n->arg[0])->sort == PX_INDEX;
  bool vector = in_vectors(e) && emit_spread(e, expr) == SPREAD_LANES;
  if (vector) buf_puts(out, "(");
  for (int i = 0; i < 2; i++) {
    if (i) buf_printf(out, " %s ", e->words->operation[n->op][e->wide]);
    if (index)
      emit_index(e, n->arg[i], SUM, out);
    else if (vector)
      emit_vector(e, n->arg[i], out);
    else
      emit_value(e, n->arg[i], SUM, out);
  }
  if (vector) buf_puts(out, ")");
}

/* An operand of && or ||: in brackets where it is the other of the two. */
static void operand(struct emitter *e, int expr, enum px_op around, struct buf *out) {
  enum px_op op = node_of(e, expr)->op;
  bool brackets = (op == PX_AND || op == PX_OR) && op != around;
  if (brackets) buf_puts(out, "(");
  emit_condition(e, expr, out);
  if (brackets) buf_puts(out, ")");
}

void emit_condition(struct emitter *e, int expr, struct buf *out) {
  const struct px_node node = *node_of(e, expr), *n = &node; /* the scratch program may grow */
  bool vector = in_vectors(e) && emit_spread(e, expr) == SPREAD_LANES;
  switch (n->op) {
    case PX_BOOL: buf_printf(out, "%d", (int)n->integer); return;
    case PX_NOT:
      buf_puts(out, vector ? "~(" : "!(");
      emit_condition(e, n->arg[0], out);
      buf_puts(out, ")");
      return;
    case PX_AND:
    case PX_OR:
      if (vector) buf_puts(out, "(");
      operand(e, n->arg[0], n->op, out);
      buf_printf(out, vector ? " %.1s " : " %s ", e->words->operation[n->op][e->wide]);
      operand(e, n->arg[1], n->op, out);
      if (vector) buf_puts(out, ")");
      return;
    default: compare(e, expr, n, out);
  }
}
