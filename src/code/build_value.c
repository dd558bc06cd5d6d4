/* Expressions of values, in scalars or in vectors, and the conditions among them. See build.h.
 *
 * Within a vec loop an expression is uniform (a scalar, which the operations on vectors accept), a
 * vector, or made of lanes that a loop must gather into a vector before the statement.
 */
#include "code/build.h"

static const struct px_node *node_of(const struct builder *b, int expr) {
  return &b->px->nodes.data[expr];
}

static struct code_type type_of(const struct builder *b, int code) {
  return b->code->exprs.data[code].type;
}

/* ---- what is held somewhere ---- */

/* Which variable: its place is a constant, and the lane across. */
static int64_t number_of(struct builder *b, const struct held *h, int place) {
  struct affine t;
  if (h->at.elements <= (h->at.per_lane ? 1 : h->at.lanes)) return 0;
  affine_of(b->px, place, &t);
  int64_t vector = (h->at.per_lane ? 1 : h->at.lanes) * h->at.lane_stride;
  return t.constant / vector * h->at.lane_stride + t.constant % h->at.lane_stride;
}

/* The variable or element of that place. */
static int storage_of(struct builder *b, const struct held *h, int place) {
  if (h->at.kind == STORAGE_NAMED)
    return code_variable_at(b->code, h->variable, number_of(b, h, place));
  return code_element(b->code, h->variable, build_index(b, place));
}

/* Of a variable that is a vector the lane that is computed now. */
static int lane_of(struct builder *b, const struct held *h, int place, int vector) {
  struct affine t;
  if (type_of(b, vector).lanes == 1 || (h->at.per_lane && !b->one_by_one)) return vector;
  affine_of(b->px, place, &t);
  int lane = h->at.per_lane || t.count
                 ? code_variable_at(b->code, b->lane_variable, 0)
                 : code_int(b->code, t.constant / h->at.lane_stride % h->at.lanes);
  return code_lane(b->code, vector, lane);
}

/* What is stored there, of its own element type. */
int build_held(struct builder *b, const struct held *h, int place) {
  if (build_held_spread(b, h, place) != SPREAD_VECTOR)
    return lane_of(b, h, place, storage_of(b, h, place));
  if (h->at.kind == STORAGE_NAMED || h->at.per_lane) return storage_of(b, h, place);
  return code_vector(b->code, storage_of(b, h, build_at_zero(b, place, b->lane)), b->lanes);
}

static int load(struct builder *b, const struct px_node *n) {
  struct held input;
  const struct held *h = build_held_of(b, n->tensor, &input);
  int place = b->px->indices.data[n->first];
  return code_convert(b->code, build_held(b, h, place), b->computed);
}

/* ---- values ---- */

/* Gathers the expression's lanes into a vector before the statement. */
static int gather(struct builder *b, int expr) {
  int number = b->gathered++;
  b->one_by_one = true;
  int value = build_value(b, expr);
  b->one_by_one = false;
  int vector = build_lanes_variable(b, number, code_type(b->computed, b->lanes));
  int lanes = code_int(b->code, b->lanes), first = code_int(b->code, 0);
  code_declare(b->code, vector, -1);
  int loop = code_open_for(b->code, b->lane_variable, first, lanes, 1, 0);
  int lane = code_variable_at(b->code, b->lane_variable, 0);
  int to = code_lane(b->code, code_variable_at(b->code, vector, 0), lane);
  code_assign(b->code, to, CODE_SET, value);
  code_close(b->code, loop);
  return code_variable_at(b->code, vector, 0);
}

int build_vector(struct builder *b, int expr) {
  int value = build_value(b, expr);
  if (!build_in_vectors(b) || build_spread(b, expr) != SPREAD_UNIFORM) return value;
  return code_broadcast(b->code, value, b->lanes);
}

static int lanes_of(struct builder *b, int expr) {
  return build_in_vectors(b) && build_spread(b, expr) != SPREAD_UNIFORM ? b->lanes : 1;
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
  if (build_in_vectors(b) && build_spread(b, expr) == SPREAD_GATHER) return gather(b, expr);
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
  bool vector = build_in_vectors(b) && build_spread(b, expr) == SPREAD_VECTOR;
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
