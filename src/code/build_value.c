/* Expressions: indices, values (scalars or vectors), and conditions. See build_parts.h.
 *
 * An index becomes a sum of terms with constants folded: c*3136 + h*56 + kh*56 + w + kw - 57.
 * Quotients, remainders and loads of indices are terms of their own. Loops count in 64 bits.
 * Elements of i32 and lane numbers have 32: arithmetic on these alone is converted to 64 bits,
 * unless ranges prove that each step fits in 32.
 *
 * In a vec loop an expression is uniform (a scalar, which vector operations accept), a vector, or a
 * gather: a loop fills a vector lane by lane before the statement.
 */
#include "code/build_parts.h"

static const struct px_node *node_of(const struct builder *b, int expr) {
  return &b->px->nodes.data[expr];
}

static struct code_type type_of(const struct builder *b, int code) {
  return b->code->exprs.data[code].type;
}

/* ---- indices ---- */

static bool is_narrow(const struct builder *b, int code) {
  return b->code->exprs.data[code].type.element == PROGRAM_I32;
}

static int widened(struct builder *b, int code) {
  return code_convert(b->code, code, CODE_INDEX);
}

/* The largest |coef * expr|; INT64_MAX where it is not known. */
static int64_t magnitude(const struct builder *b, int expr, int64_t coef) {
  struct px_range r = px_range(b->px, expr);
  int64_t low, high;
  if (r.overflow || __builtin_mul_overflow(r.low, coef, &low) ||
      __builtin_mul_overflow(r.high, coef, &high) || low == INT64_MIN || high == INT64_MIN)
    return INT64_MAX;
  low = low < 0 ? -low : low;
  high = high < 0 ? -high : high;
  return low > high ? low : high;
}

/* Every partial sum of what is narrow fits in 32 bits. */
static bool narrow_sum_fits(const struct builder *b, const struct affine *t, const int *code) {
  int64_t sum = t->constant < 0 ? -t->constant : t->constant;
  for (int i = 0; i < t->count; i++) {
    if (!is_narrow(b, code[i])) continue;
    int64_t most = magnitude(b, t->term[i].expr, t->term[i].coef);
    if (__builtin_add_overflow(sum, most, &sum)) return false;
  }
  return sum <= INT32_MAX;
}

static bool never_negative(const struct builder *b, int expr) {
  struct px_range r = px_range(b->px, expr);
  return !r.overflow && r.low >= 0;
}

/* An operation on two indices; of two narrow ones it is narrow where the result fits. */
static int binary_op(struct builder *b, int op, int expr, const struct px_node *n) {
  int x = build_index(b, n->arg[0]), y = n->arg[1] < 0 ? -1 : build_index(b, n->arg[1]);
  bool narrow = is_narrow(b, x) && (y < 0 || is_narrow(b, y));
  if (narrow && magnitude(b, expr, 1) > INT32_MAX) {
    x = widened(b, x);
    narrow = false;
  }
  return code_operation(b->code, op, code_type(narrow ? PROGRAM_I32 : CODE_INDEX, 1), x, y, -1);
}

/* In 64 bits: the helpers of printers are. */
static int least_or_most(struct builder *b, const struct px_node *n) {
  int x = build_index(b, n->arg[0]), y = build_index(b, n->arg[1]);
  return code_operation(b->code, n->op, code_type(CODE_INDEX, 1), x, y, -1);
}

static int choose_index(struct builder *b, const struct px_node *n) {
  int condition = build_condition(b, n->arg[0]);
  int x = build_index(b, n->arg[1]), y = build_index(b, n->arg[2]);
  bool narrow = is_narrow(b, x) && is_narrow(b, y);
  return code_operation(b->code, PX_SELECT, code_type(narrow ? PROGRAM_I32 : CODE_INDEX, 1),
                        condition, x, y);
}

/* A term of a sum. */
static int build_term(struct builder *b, int expr) {
  struct px_node n = *node_of(b, expr); /* a copy: the scratch program may grow */
  bool floors = (n.op == PX_DIV || n.op == PX_MOD) && !never_negative(b, n.arg[0]);
  switch (n.op) {
    case PX_AXIS: return code_variable_at(b->code, b->axis_variable[n.integer], 0);
    case PX_DIV: return binary_op(b, floors ? CODE_FLOOR_DIV : PX_DIV, expr, &n);
    case PX_MOD: return binary_op(b, floors ? CODE_FLOOR_MOD : PX_MOD, expr, &n);
    case PX_MIN:
    case PX_MAX: return least_or_most(b, &n);
    case PX_MUL: return binary_op(b, PX_MUL, expr, &n);
    case PX_LOAD: {
      int place = build_index(b, b->px->indices.data[n.first]);
      return code_element(b->code, b->tensor_variable[n.tensor], place);
    }
    default: return choose_index(b, &n); /* PX_SELECT */
  }
}

/* The sum in the order of its text: positive terms first. */
static int build_sum(struct builder *b, const struct affine *t) {
  struct affine_term term[AFFINE_TERMS];
  int code[AFFINE_TERMS], count = 0;
  for (int i = 0; i < t->count; i++) code[i] = build_term(b, t->term[i].expr);
  bool fits = narrow_sum_fits(b, t, code);
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < t->count; i++) {
      int64_t coef = t->term[i].coef;
      if ((coef < 0) != pass) continue;
      bool load = node_of(b, t->term[i].expr)->op == PX_LOAD;
      if ((load && coef != 1) || !fits) code[i] = widened(b, code[i]);
      term[count++] = (struct affine_term){code[i], coef};
    }
  return code_sum(b->code, term, count, t->constant);
}

int build_index(struct builder *b, int expr) {
  struct affine t;
  if (b->px->failed) return code_int(b->code, 0); /* reported at the end */
  struct px_node n = *node_of(b, expr);
  if (!affine_of(b->px, expr, &t)) return binary_op(b, n.op, expr, &n); /* a very long sum */
  if (t.count == 1 && !t.constant && t.term[0].coef == 1) return build_term(b, t.term[0].expr);
  return build_sum(b, &t);
}

/* ---- stored values ---- */

/* The number of the variable, whose index is a constant (its lane aside). */
static int64_t number_of(struct builder *b, const struct stored *h, int place) {
  struct affine t;
  if (h->at.elements <= (h->at.per_lane ? 1 : h->at.lanes)) return 0;
  affine_of(b->px, place, &t);
  int64_t vector = (h->at.per_lane ? 1 : h->at.lanes) * h->at.lane_stride;
  return t.constant / vector * h->at.lane_stride + t.constant % h->at.lane_stride;
}

/* The variable or element at the index. */
static int storage_of(struct builder *b, const struct stored *h, int place) {
  if (h->at.kind == STORAGE_NAMED)
    return code_variable_at(b->code, h->variable, number_of(b, h, place));
  return code_element(b->code, h->variable, build_index(b, place));
}

/* The current lane of a variable that is a vector. */
static int lane_of(struct builder *b, const struct stored *h, int place, int vector) {
  struct affine t;
  if (type_of(b, vector).lanes == 1 || (h->at.per_lane && !b->one_by_one)) return vector;
  affine_of(b->px, place, &t);
  int lane = h->at.per_lane || t.count
                 ? code_variable_at(b->code, b->lane_variable, 0)
                 : code_int(b->code, t.constant / h->at.lane_stride % h->at.lanes);
  return code_lane(b->code, vector, lane);
}

/* The stored value, in its own element type. */
int build_stored(struct builder *b, const struct stored *h, int place) {
  if (build_storage_form(b, h, place) != FORM_VECTOR)
    return lane_of(b, h, place, storage_of(b, h, place));
  if (h->at.kind == STORAGE_NAMED || h->at.per_lane) return storage_of(b, h, place);
  bool part = b->active_lanes >= 0 && !build_place_inside(b, h, place);
  int element = storage_of(b, h, build_at_zero(b, place, b->lane));
  return code_first_lanes(b->code, element, b->lanes, part ? build_index(b, b->active_lanes) : -1);
}

static int load(struct builder *b, const struct px_node *n) {
  struct stored input;
  const struct stored *h = build_stored_of(b, n->tensor, &input);
  int place = b->px->indices.data[n->first];
  return code_convert(b->code, build_stored(b, h, place), b->computed);
}

/* ---- values ---- */

int build_lane_loop(struct builder *b) {
  int most = px_int(b->px, b->lane_steps);
  int lanes = build_index(
      b, b->active_lanes < 0 ? most : px_min(b->px, b->active_lanes, px_int(b->px, b->lanes)));
  return code_open_for(b->code, b->lane_variable, code_int(b->code, 0), lanes, 1, 0);
}

/* Gathers the lanes of the expression into a vector before the statement. */
static int gather(struct builder *b, int expr) {
  int number = b->gathered++;
  b->one_by_one = true;
  int value = build_value(b, expr);
  b->one_by_one = false;
  int vector = build_lanes_variable(b, number, code_type(b->computed, b->lanes));
  int zero = code_broadcast(b->code, code_number(b->code, b->computed, 0), b->lanes);
  code_declare(b->code, vector, b->active_lanes < 0 ? -1 : zero);
  int loop = build_lane_loop(b);
  int lane = code_variable_at(b->code, b->lane_variable, 0);
  int to = code_lane(b->code, code_variable_at(b->code, vector, 0), lane);
  code_assign(b->code, to, CODE_SET, value);
  code_close(b->code, loop);
  return code_variable_at(b->code, vector, 0);
}

int build_vector(struct builder *b, int expr) {
  int value = build_value(b, expr);
  if (!build_in_vectors(b) || build_form(b, expr) != FORM_UNIFORM) return value;
  return code_broadcast(b->code, value, b->lanes);
}

static int lanes_of(struct builder *b, int expr) {
  return build_in_vectors(b) && build_form(b, expr) != FORM_UNIFORM ? b->lanes : 1;
}

/* + - * / and -x: a scalar may stand beside a vector */
static int arithmetic(struct builder *b, int expr, const struct px_node *n) {
  int x = build_value(b, n->arg[0]), y = n->arg[1] < 0 ? -1 : build_value(b, n->arg[1]);
  struct code_type type = code_type(b->computed, lanes_of(b, expr));
  return code_operation(b->code, n->op, type, x, y, -1);
}

/* Functions, of vectors if any argument is one. */
static int call(struct builder *b, int expr, const struct px_node *n) {
  int arg[2] = {-1, -1}, lanes = lanes_of(b, expr);
  for (int i = 0; i < 2; i++)
    if (n->arg[i] >= 0) arg[i] = lanes > 1 ? build_vector(b, n->arg[i]) : build_value(b, n->arg[i]);
  return code_operation(b->code, n->op, code_type(b->computed, lanes), arg[0], arg[1], -1);
}

static int choose(struct builder *b, int expr, const struct px_node *n) {
  int condition = build_condition(b, n->arg[0]), branch[2], lanes = lanes_of(b, expr);
  for (int i = 0; i < 2; i++)
    branch[i] = lanes > 1 ? build_vector(b, n->arg[1 + i]) : build_value(b, n->arg[1 + i]);
  return code_operation(b->code, PX_SELECT, code_type(b->computed, lanes), condition, branch[0],
                        branch[1]);
}

int build_value(struct builder *b, int expr) {
  const struct px_node node = *node_of(b, expr), *n = &node; /* the scratch program may grow */
  if (build_in_vectors(b) && build_form(b, expr) == FORM_GATHER) return gather(b, expr);
  switch (n->op) {
    case PX_NUMBER: return code_number(b->code, b->computed, n->number);
    case PX_LOAD: return load(b, n);
    case PX_ADD:
    case PX_SUB:
    case PX_MUL:
    case PX_DIV:
    case PX_NEG: return arithmetic(b, expr, n);
    case PX_SELECT: return choose(b, expr, n);
    case PX_REAL: return code_convert(b->code, build_index(b, n->arg[0]), b->computed);
    default: return call(b, expr, n);
  }
}

/* ---- conditions ---- */

static int truth(struct builder *b, int op, int x, int y) {
  return code_operation(b->code, op, code_type(CODE_TRUTH, type_of(b, x).lanes), x, y, -1);
}

static int compare(struct builder *b, const struct px_node *n, bool vector) {
  int arg[2];
  for (int i = 0; i < 2; i++) {
    if (node_of(b, n->arg[i])->sort == PX_INDEX)
      arg[i] = build_index(b, n->arg[i]);
    else
      arg[i] = vector ? build_vector(b, n->arg[i]) : build_value(b, n->arg[i]);
  }
  return truth(b, n->op, arg[0], arg[1]);
}

int build_condition(struct builder *b, int expr) {
  const struct px_node node = *node_of(b, expr), *n = &node; /* the scratch program may grow */
  bool vector = build_in_vectors(b) && build_form(b, expr) == FORM_VECTOR;
  switch (n->op) {
    case PX_BOOL: {
      int value = code_operation(b->code, PX_BOOL, code_type(CODE_TRUTH, 1), -1, -1, -1);
      b->code->exprs.data[value].integer = n->integer;
      return value;
    }
    case PX_NOT: return truth(b, PX_NOT, build_condition(b, n->arg[0]), -1);
    case PX_AND:
    case PX_OR: {
      int x = build_condition(b, n->arg[0]), y = build_condition(b, n->arg[1]);
      return truth(b, n->op, x, y);
    }
    default: return compare(b, n, vector);
  }
}
