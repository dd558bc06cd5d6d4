/* Expressions in C. See print_c.h. Precedence is that of C; brackets are printed where needed, and
 * around conditions of vectors, whose operators have another precedence than those of scalars.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "emit/print_c.h"
#include "emit/vector_math.h"

const char *const lanes_words[4] = {"SUM", "PRODUCT", "MAX", "MIN"};

static const struct code_expr *expr_at(const struct printer *p, int expr) {
  return &p->code->exprs.data[expr];
}

static bool is_wide(struct code_type type) {
  return type.element == PROGRAM_F64;
}

static char vector_letter(struct code_type type) {
  return is_wide(type) ? 'D' : 'V';
}

/* ---- types ---- */

void print_used_vector(struct printer *p, int helper, struct code_type type) {
  uint64_t lanes = UINT64_C(1) << (type.lanes - 1);
  p->used_vectors[helper][is_wide(type)] |= lanes;
  p->used_vectors[VECTOR_TYPE][is_wide(type)] |= lanes;
}

/* v16 of fp32, d8 of fp64; of one lane the scalar's type */
const char *print_type(struct printer *p, struct code_type type, char name[16]) {
  if (type.element == CODE_INDEX) return p->words->index;
  if (type.lanes == 1) return p->words->type[type.element];
  print_used_vector(p, VECTOR_TYPE, type);
  snprintf(name, 16, "%c%d", is_wide(type) ? 'd' : 'v', type.lanes);
  return name;
}

/* ---- numbers ---- */

/* The shortest decimal that reads back as the same number. */
static void print_number(struct printer *p, double number, bool wide, struct buf *out) {
  char text[40];
  double want = wide ? number : (double)(float)number;
  if (isnan(want)) { /* next to a guarded load */
    p->used |= HELP_MATH;
    buf_puts(out, p->words->nan);
    return;
  }
  if (isinf(want)) {
    p->used |= HELP_MATH;
    buf_printf(out, "%s%s", want < 0 ? "-" : "", p->words->infinity);
    return;
  }
  for (int digits = 1; digits <= 17; digits++) {
    text_format(text, sizeof text, "%.*g", digits, want);
    double read = number_parse(text);
    if (wide ? read == want : (float)read == (float)want) break;
  }
  buf_printf(out, "%s%s%s", text, strpbrk(text, ".e") ? "" : ".0", wide ? "" : "f");
}

/* ---- variables, elements, lanes ---- */

static void print_variable(struct printer *p, const struct code_expr *e, struct buf *out) {
  buf_puts(out, p->name[e->variable]);
  if (p->code->variables.data[e->variable].count > 1) buf_printf(out, "_%" PRId64, e->integer);
}

static void print_element(struct printer *p, const struct code_expr *e, struct buf *out) {
  buf_printf(out, "%s[", p->name[e->variable]);
  print_expr(p, e->arg[0], BOUND_NONE, out);
  buf_puts(out, "]");
}

void print_part(struct printer *p, const struct code_expr *vector, struct buf *out) {
  print_target(p, vector->arg[0], out);
  if (vector->arg[1] < 0) return;
  for (int i = 2; i > 0; i--) {
    if (vector->arg[i] < 0) continue;
    buf_puts(out, ", ");
    print_expr(p, vector->arg[i], BOUND_NONE, out);
  }
}

/* V16(X[i]): 16 elements from there on; LOAD_V16(X[i], n): the first n of them; SOME_V16(X[i], k,
 * n): the lanes from k up to n */
static void print_vector(struct printer *p, const struct code_expr *e, struct buf *out) {
  bool part = e->arg[1] >= 0;
  bool some = e->arg[2] >= 0;
  print_used_vector(p, some ? VECTOR_SOME : part ? VECTOR_LOAD : VECTOR_TYPE, e->type);
  buf_printf(out, "%s%c%d(",
             some   ? "SOME_"
             : part ? "LOAD_"
                    : "",
             vector_letter(e->type), e->type.lanes);
  print_part(p, e, out);
  buf_puts(out, ")");
}

void print_target(struct printer *p, int expr, struct buf *out) {
  const struct code_expr *e = expr_at(p, expr);
  switch (e->op) {
    case CODE_VARIABLE: print_variable(p, e, out); return;
    case CODE_ELEMENT: print_element(p, e, out); return;
    case CODE_VECTOR: print_vector(p, e, out); return;
    default: /* CODE_LANE */
      print_target(p, e->arg[0], out);
      buf_puts(out, "[");
      print_expr(p, e->arg[1], BOUND_NONE, out);
      buf_puts(out, "]");
  }
}

/* Marks the variable as read, of an expression that is printed as a target is. */
static void mark_read(struct printer *p, const struct code_expr *e) {
  if (e->op == CODE_LANE || e->op == CODE_VECTOR) e = expr_at(p, e->arg[0]);
  p->read[e->variable] = true;
}

/* ---- conversions ---- */

static void print_call(struct printer *p, const char *name, const struct code_expr *e,
                       struct buf *out) {
  buf_printf(out, "%s(", name);
  for (int i = 0; i < 3 && e->arg[i] >= 0; i++) {
    if (i) buf_puts(out, ", ");
    print_expr(p, e->arg[i], BOUND_NONE, out);
  }
  buf_puts(out, ")");
}

/* BF16_READ16(X[i]) of a vector in memory */
static void print_vector_from_bf16(struct printer *p, const struct code_expr *e, struct buf *out) {
  const struct code_expr *vector = expr_at(p, e->arg[0]);
  bool part = vector->arg[1] >= 0;
  mark_read(p, vector);
  print_used_vector(p, part ? VECTOR_BF16_LOAD : VECTOR_BF16_READ, e->type);
  buf_printf(out, "BF16_%s%d(", part ? "LOAD" : "READ", e->type.lanes);
  print_part(p, vector, out);
  buf_puts(out, ")");
}

static void print_conversion(struct printer *p, const struct code_expr *e, struct buf *out) {
  char name[16];
  if (e->type.element == PROGRAM_BF16) {
    p->used |= HELP_BF16_WRITE;
    print_call(p, "BF16_WRITE", e, out);
  } else if (expr_at(p, e->arg[0])->type.element != PROGRAM_BF16) {
    buf_printf(out, "(%s)", print_type(p, e->type, name));
    print_expr(p, e->arg[0], BOUND_TIGHT, out);
  } else if (e->type.lanes > 1) {
    print_vector_from_bf16(p, e, out);
  } else {
    p->used |= HELP_BF16_READ;
    print_call(p, "BF16_READ", e, out);
  }
}

/* ---- indices ---- */

/* 4*i + 1, and 1 - 4*i */
static void print_sum(struct printer *p, const struct code_expr *e, int bound, struct buf *out) {
  const struct affine_term *terms = &p->code->terms.data[e->first];
  bool one = e->count == 1 && !e->integer, leads = terms[0].coef < 0 && e->integer > 0;
  bool brackets = one ? bound > BOUND_PRODUCT || (terms[0].coef < 0 && bound) : bound > BOUND_SUM;
  if (brackets) buf_puts(out, "(");
  if (leads) buf_printf(out, "%" PRId64, e->integer);
  for (int i = 0; i < e->count; i++) {
    int64_t coef = terms[i].coef;
    if (i || coef < 0) buf_puts(out, !i && !leads ? "-" : coef < 0 ? " - " : " + ");
    print_expr(p, terms[i].expr, coef == 1 ? BOUND_SUM : BOUND_TIGHT, out);
    if (coef != 1 && coef != -1) buf_printf(out, "*%" PRId64, coef < 0 ? -coef : coef);
  }
  if (e->integer && !leads)
    buf_printf(out, " %c %" PRId64, e->integer < 0 ? '-' : '+',
               e->integer < 0 ? -e->integer : e->integer);
  if (brackets) buf_puts(out, ")");
}

/* Divides an index from memory, never negative, as unsigned: compilers then need no code for its
 * sign. */
static void print_unsigned(struct printer *p, const struct code_expr *e, struct buf *out) {
  buf_puts(out, "(int32_t)((uint32_t)");
  print_expr(p, e->arg[0], BOUND_TIGHT, out);
  buf_printf(out, e->op == PX_DIV ? " / %" PRId64 ")" : " %% %" PRId64 ")",
             expr_at(p, e->arg[1])->integer);
}

/* i / 4, in brackets beside anything else */
static void print_quotient(struct printer *p, const struct code_expr *e, int bound,
                           struct buf *out) {
  const struct code_expr *x = expr_at(p, e->arg[0]), *y = expr_at(p, e->arg[1]);
  if (x->op == CODE_ELEMENT && x->type.element == PROGRAM_I32 && y->op == PX_INT) {
    print_unsigned(p, e, out);
    return;
  }
  if (bound > BOUND_SUM) buf_puts(out, "(");
  print_expr(p, e->arg[0], BOUND_PRODUCT, out);
  buf_puts(out, e->op == PX_DIV ? " / " : " % ");
  print_expr(p, e->arg[1], BOUND_TIGHT, out);
  if (bound > BOUND_SUM) buf_puts(out, ")");
}

static void print_product(struct printer *p, const struct code_expr *e, int bound,
                          struct buf *out) {
  if (bound > BOUND_PRODUCT) buf_puts(out, "(");
  print_expr(p, e->arg[0], BOUND_PRODUCT, out);
  buf_puts(out, "*");
  print_expr(p, e->arg[1], BOUND_TIGHT, out);
  if (bound > BOUND_PRODUCT) buf_puts(out, ")");
}

/* Operations of two indices; a sum of very many terms stands as operations in brackets. */
static void print_index(struct printer *p, const struct code_expr *e, int bound, struct buf *out) {
  switch (e->op) {
    case PX_DIV:
    case PX_MOD: print_quotient(p, e, bound, out); return;
    case PX_MUL: print_product(p, e, bound, out); return;
    case CODE_FLOOR_DIV:
      p->used |= HELP_FLOOR_DIV;
      print_call(p, "FLOOR_DIV", e, out);
      return;
    case CODE_FLOOR_MOD:
      p->used |= HELP_FLOOR_MOD;
      print_call(p, "FLOOR_MOD", e, out);
      return;
    case PX_MIN:
    case PX_MAX:
      p->used |= e->op == PX_MIN ? HELP_LEAST_OF : HELP_MOST_OF;
      print_call(p, e->op == PX_MIN ? "LEAST_OF" : "MOST_OF", e, out);
      return;
    case PX_NEG:
      buf_puts(out, "(-");
      print_expr(p, e->arg[0], BOUND_TIGHT, out);
      buf_puts(out, ")");
      return;
    default: /* PX_ADD, PX_SUB */
      buf_puts(out, "(");
      print_expr(p, e->arg[0], BOUND_SUM, out);
      buf_puts(out, e->op == PX_ADD ? " + " : " - ");
      print_expr(p, e->arg[1], BOUND_TIGHT, out);
      buf_puts(out, ")");
  }
}

/* ---- values ---- */

static void print_infix(struct printer *p, const struct code_expr *e, int level, int bound,
                        struct buf *out) {
  if (bound > level) buf_puts(out, "(");
  print_expr(p, e->arg[0], level, out);
  buf_printf(out, " %s ", p->words->operation[e->op][0]);
  print_expr(p, e->arg[1], level + 1, out);
  if (bound > level) buf_puts(out, ")");
}

static void print_negated(struct printer *p, const struct code_expr *e, int bound,
                          struct buf *out) {
  if (bound > BOUND_SUM) buf_puts(out, "(");
  buf_puts(out, "-");
  print_expr(p, e->arg[0], BOUND_TIGHT, out);
  if (bound > BOUND_SUM) buf_puts(out, ")");
}

static const struct code_expr *constant_of(const struct printer *p, const struct code_expr *e) {
  const struct code_expr *c = expr_at(p, e->arg[1]);
  return c->op == PX_NUMBER && isfinite(c->number) ? c : NULL;
}

/* min(max(x, low), high) of fp32 scalars. For the nested calls gcc emits a branch, which is
 * mispredicted if x is now below low and now above it. */
static bool print_clamp(struct printer *p, const struct code_expr *e, struct buf *out) {
  if (e->op != PX_MIN || e->type.lanes > 1 || is_wide(e->type)) return false;
  const struct code_expr *most = expr_at(p, e->arg[0]);
  if (most->op != PX_MAX) return false;
  const struct code_expr *low = constant_of(p, most), *high = constant_of(p, e);
  if (!low || !high || low->number > high->number) return false;
  p->used |= HELP_CLAMP_F32;
  buf_puts(out, "CLAMP_F32(");
  print_expr(p, most->arg[0], BOUND_NONE, out);
  buf_puts(out, ", ");
  print_expr(p, most->arg[1], BOUND_NONE, out);
  buf_puts(out, ", ");
  print_expr(p, e->arg[1], BOUND_NONE, out);
  buf_puts(out, ")");
  return true;
}

/* expf(x) of scalars, EXP_V16(x) of vectors */
static void print_function(struct printer *p, const struct code_expr *e, struct buf *out) {
  bool wide = is_wide(e->type), extremum = e->op == PX_MAX || e->op == PX_MIN;
  char name[24];
  bool own = e->type.lanes > 1 && !wide && vector_math_of((enum px_op)e->op);
  if (!extremum && !own) p->used |= HELP_MATH;
  if (e->type.lanes > 1) {
    print_used_vector(p, VECTOR_BF16_WRITE + 1 + e->op, e->type);
    snprintf(name, sizeof name, "%s_%c%d", scalar_ops[e->op].name, vector_letter(e->type),
             e->type.lanes);
    print_call(p, name, e, out);
    return;
  }
  if (print_clamp(p, e, out)) return;
  if (extremum) p->used |= (unsigned)(e->op == PX_MAX ? HELP_MAX_F32 : HELP_MIN_F32) << wide;
  print_call(p, p->words->operation[e->op][wide], e, out);
}

/* ---- select ---- */

static bool is_arithmetic(const struct code_expr *e) {
  return e->op == PX_NEG || (e->op >= PX_ADD && e->op <= PX_DIV);
}

/* A vector that may have the unaligned type. */
static bool may_be_stored(const struct printer *p, int expr) {
  const struct code_expr *e = expr_at(p, expr);
  if (e->type.lanes > 1 && is_arithmetic(e))
    return may_be_stored(p, e->arg[0]) || (e->arg[1] >= 0 && may_be_stored(p, e->arg[1]));
  return e->type.lanes > 1 && (e->op == CODE_VARIABLE || e->op == CODE_ELEMENT ||
                               e->op == CODE_VECTOR || e->op == CODE_CONVERT);
}

/* Both branches of ?: have one type. */
static void print_branch(struct printer *p, int expr, struct buf *out) {
  const struct code_expr *e = expr_at(p, expr);
  bool stored = may_be_stored(p, expr);
  char name[16];
  if (stored) buf_printf(out, "(%s)", print_type(p, e->type, name));
  if (stored && is_arithmetic(e))
    print_expr(p, expr, BOUND_TIGHT, out);
  else
    print_expr(p, expr, e->type.lanes > 1 ? BOUND_NONE : BOUND_SUM, out);
}

static void print_select(struct printer *p, const struct code_expr *e, int bound, struct buf *out) {
  bool brackets = bound > BOUND_NONE || code_is_index(e->type);
  if (expr_at(p, e->arg[0])->type.lanes > 1) {
    char name[24];
    print_used_vector(p, VECTOR_PICK, e->type);
    snprintf(name, sizeof name, "PICK_%c%d", vector_letter(e->type), e->type.lanes);
    print_call(p, name, e, out);
    return;
  }
  if (brackets) buf_puts(out, "(");
  print_expr(p, e->arg[0], BOUND_NONE, out);
  buf_puts(out, " ? ");
  print_branch(p, e->arg[1], out);
  buf_puts(out, " : ");
  print_branch(p, e->arg[2], out);
  if (brackets) buf_puts(out, ")");
}

/* ---- conditions ---- */

static void print_comparison(struct printer *p, const struct code_expr *e, struct buf *out) {
  bool vector = e->type.lanes > 1;
  if (vector) buf_puts(out, "(");
  print_expr(p, e->arg[0], BOUND_SUM, out);
  buf_printf(out, " %s ", p->words->operation[e->op][0]);
  print_expr(p, e->arg[1], BOUND_SUM, out);
  if (vector) buf_puts(out, ")");
}

/* An operand of && or ||: in brackets where it is the other of the two. */
static void print_operand(struct printer *p, int expr, int around, struct buf *out) {
  int op = expr_at(p, expr)->op;
  bool brackets = (op == PX_AND || op == PX_OR) && op != around;
  if (brackets) buf_puts(out, "(");
  print_expr(p, expr, BOUND_NONE, out);
  if (brackets) buf_puts(out, ")");
}

static void print_logic(struct printer *p, const struct code_expr *e, struct buf *out) {
  bool vector = e->type.lanes > 1;
  if (vector) buf_puts(out, "(");
  print_operand(p, e->arg[0], e->op, out);
  buf_printf(out, vector ? " %.1s " : " %s ", p->words->operation[e->op][0]);
  print_operand(p, e->arg[1], e->op, out);
  if (vector) buf_puts(out, ")");
}

static void print_condition(struct printer *p, const struct code_expr *e, struct buf *out) {
  switch (e->op) {
    case PX_BOOL: buf_printf(out, "%d", (int)e->integer); return;
    case PX_NOT: print_call(p, e->type.lanes > 1 ? "~" : "!", e, out); return;
    case PX_AND:
    case PX_OR: print_logic(p, e, out); return;
    case PX_SELECT: print_select(p, e, BOUND_SUM, out); return;
    default: print_comparison(p, e, out);
  }
}

/* ---- */

static void print_leaf(struct printer *p, const struct code_expr *e, int bound, struct buf *out) {
  bool integer = e->op == PX_INT;
  bool brackets = integer ? e->integer < 0 && bound : e->number < 0 && bound > BOUND_SUM;
  if (brackets) buf_puts(out, "(");
  if (integer)
    buf_printf(out, "%" PRId64, e->integer);
  else
    print_number(p, e->number, is_wide(e->type), out);
  if (brackets) buf_puts(out, ")");
}

/* SUM_OF_V16(x): horizontal reduction. Halves are combined, down to two lanes. */
static void print_across(struct printer *p, const struct code_expr *e, struct buf *out) {
  struct code_type type = expr_at(p, e->arg[0])->type;
  char name[24];
  snprintf(name, sizeof name, "%s_OF_%c%d", lanes_words[e->op - CODE_LANES_ADD],
           vector_letter(type), type.lanes);
  bool extremum = e->op == CODE_LANES_MAX || e->op == CODE_LANES_MIN, wide = is_wide(type);
  enum px_op op = e->op == CODE_LANES_MAX ? PX_MAX : PX_MIN;
  if (extremum) p->used |= (unsigned)(op == PX_MAX ? HELP_MAX_F32 : HELP_MIN_F32) << wide;
  for (struct code_type t = type; t.lanes > 1; t.lanes /= 2) {
    print_used_vector(p, VECTOR_LANES + e->op - CODE_LANES_ADD, t);
    if (extremum && t.lanes < type.lanes) print_used_vector(p, VECTOR_BF16_WRITE + 1 + op, t);
  }
  print_call(p, name, e, out);
}

static void print_broadcast(struct printer *p, const struct code_expr *e, struct buf *out) {
  char name[24];
  print_used_vector(p, VECTOR_ALL, e->type);
  snprintf(name, sizeof name, "ALL_%c%d", vector_letter(e->type), e->type.lanes);
  print_call(p, name, e, out);
}

/* The step of a transposition that the permutation is; CODE_ZIPS: none. */
static int zip_of(const struct printer *p, const struct code_expr *e) {
  int zip = 0, lanes = e->type.lanes;
  for (; zip < CODE_ZIPS && e->arg[1] >= 0; zip++) {
    int same = 0;
    while (same < lanes &&
           p->code->lists.data[e->first + same] == code_zip_lane((enum code_zip)zip, lanes, same))
      same++;
    if (same == lanes) return zip;
  }
  return CODE_ZIPS;
}

/* Names of the macros, the steps of a transposition. */
const char *const print_zips[CODE_ZIPS] = {
    [CODE_ZIP_LOW] = "ZIP_LOW",
    [CODE_ZIP_HIGH] = "ZIP_HIGH",
    [CODE_ZIP_PAIRS_LOW] = "ZIP_PAIRS_LOW",
    [CODE_ZIP_PAIRS_HIGH] = "ZIP_PAIRS_HIGH",
    [CODE_QUARTERS_EVEN] = "QUARTERS_EVEN",
    [CODE_QUARTERS_ODD] = "QUARTERS_ODD",
};

/* ZIP_LOW_V4(x, y); PERMUTE_V4(x, 0, 0, 2, 2); of the lanes of two vectors PERMUTE_TWO_V4(x, y, 0,
 * 0, 4, 4) */
static void print_permute(struct printer *p, const struct code_expr *e, struct buf *out) {
  bool two = e->arg[1] >= 0;
  int zip = e->type.lanes % 4 ? CODE_ZIPS : zip_of(p, e);
  print_used_vector(p, two ? VECTOR_PERMUTE_TWO : VECTOR_PERMUTE, e->type);
  if (zip < CODE_ZIPS) {
    print_used_vector(p, VECTOR_ZIP + zip, e->type);
    buf_puts(out, print_zips[zip]);
  } else {
    buf_puts(out, two ? "PERMUTE_TWO" : "PERMUTE");
  }
  buf_printf(out, "_%c%d(", vector_letter(e->type), e->type.lanes);
  for (int i = 0; i < 2 && e->arg[i] >= 0; i++) {
    if (i) buf_puts(out, ", ");
    print_expr(p, e->arg[i], BOUND_NONE, out);
  }
  for (int i = 0; i < e->type.lanes && zip == CODE_ZIPS; i++)
    buf_printf(out, ", %d", p->code->lists.data[e->first + i]);
  buf_puts(out, ")");
}

static void print_calculation(struct printer *p, const struct code_expr *e, int bound,
                              struct buf *out) {
  switch (e->op) {
    case PX_ADD:
    case PX_SUB: print_infix(p, e, BOUND_SUM, bound, out); return;
    case PX_MUL:
    case PX_DIV: print_infix(p, e, BOUND_PRODUCT, bound, out); return;
    case PX_NEG: print_negated(p, e, bound, out); return;
    default: print_function(p, e, out);
  }
}

void print_expr(struct printer *p, int expr, int bound, struct buf *out) {
  const struct code_expr *e = expr_at(p, expr);
  switch (e->op) {
    case PX_INT:
    case PX_NUMBER: print_leaf(p, e, bound, out); return;
    case CODE_VARIABLE:
    case CODE_ELEMENT:
    case CODE_LANE:
    case CODE_VECTOR:
      mark_read(p, e);
      print_target(p, expr, out);
      return;
    case CODE_BROADCAST: print_broadcast(p, e, out); return;
    case CODE_PERMUTE: print_permute(p, e, out); return;
    case CODE_LANES_ADD:
    case CODE_LANES_MUL:
    case CODE_LANES_MAX:
    case CODE_LANES_MIN: print_across(p, e, out); return;
    case CODE_SUM: print_sum(p, e, bound, out); return;
    case CODE_CONVERT: print_conversion(p, e, out); return;
    case CODE_ROUND:
      p->used |= HELP_BF16_ROUND;
      print_call(p, "BF16_ROUND", e, out);
      return;
    case PX_SELECT: print_select(p, e, bound, out); return;
    default: break;
  }
  if (e->type.element == CODE_TRUTH)
    print_condition(p, e, out);
  else if (code_is_index(e->type))
    print_index(p, e, bound, out);
  else
    print_calculation(p, e, bound, out);
}
