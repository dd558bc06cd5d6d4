/* Functions that build programs: tensors, and nodes with their sorts. See program.h. simplify.c
 * builds on this file.
 *
 * A call checks only what keeps the arrays sound and the sorts right. program_verify checks the
 * rest, so each rule and its error message exist once.
 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

#include "program/program.h"

struct program *program_new(const char *name) {
  struct program *p = mem_alloc(sizeof *p);
  p->name = arena_strndup(&p->arena, name, strlen(name));
  return p;
}

void program_free(struct program *p) {
  if (!p) return;
  mem_free(p->tensors.data);
  mem_free(p->inputs.data);
  mem_free(p->outputs.data);
  mem_free(p->nodes.data);
  mem_free(p->indices.data);
  arena_free(&p->arena);
  mem_free(p);
}

int program_poison(struct program *p, const char *format, ...) {
  if (p->failed) return -1;
  va_list args;
  va_start(args, format);
  text_vformat(p->error, sizeof p->error, format, args);
  va_end(args);
  p->failed = true;
  return -1;
}

/* Tensors */

static bool known_tensor(struct program *p, int tensor) {
  if (p->failed) return false;
  if (tensor >= 0 && tensor < p->tensors.count) return true;
  program_poison(p, "tensor %d does not exist", tensor);
  return false;
}

static bool known_stage(struct program *p, int stage) {
  if (!known_tensor(p, stage)) return false;
  if (!p->tensors.data[stage].is_input) return true;
  program_poison(p, "'%.40s' is an input, not a stage", p->tensors.data[stage].name);
  return false;
}

static const char *copy_name(struct program *p, const char *name) {
  return arena_strndup(&p->arena, name, strlen(name));
}

static struct program_axis plain_axis(struct program *p, const char *name, int64_t size) {
  return (struct program_axis){.name = copy_name(p, name), .size = size, .low = -1, .high = -1};
}

static int add_tensor(struct program *p, bool is_input, const char *name, enum program_dtype dtype,
                      int rank, const char *const *axes, const int64_t *sizes) {
  if (p->failed) return -1;
  if (p->tensors.count >= PROGRAM_STAGES)
    return program_poison(p, "the program has more than %d inputs and stages", PROGRAM_STAGES);
  if (rank < 0 || rank > PROGRAM_AXES)
    return program_poison(p, "'%.40s' has %d axes, the most is %d", name, rank, PROGRAM_AXES);
  struct program_tensor t = {
      .name = copy_name(p, name), .is_input = is_input, .dtype = dtype, .rank = rank, .body = -1};
  if (dtype == PROGRAM_I32) t.most = INT32_MAX;
  for (int i = 0; i < rank; i++) t.axes[i] = plain_axis(p, axes[i], sizes[i]);
  VEC_PUSH(&p->tensors, t);
  return p->tensors.count - 1;
}

int program_input(struct program *p, const char *name, enum program_dtype dtype, int rank,
                  const char *const *axes, const int64_t *sizes) {
  int t = add_tensor(p, true, name, dtype, rank, axes, sizes);
  if (t >= 0) VEC_PUSH(&p->inputs, t);
  return t;
}

void program_input_range(struct program *p, int input, int64_t least, int64_t most, bool rising) {
  if (!known_tensor(p, input)) return;
  struct program_tensor *t = &p->tensors.data[input];
  if (!t->is_input || t->dtype != PROGRAM_I32) {
    program_poison(p, "'%.40s' is no input of i32, only these have a range", t->name);
    return;
  }
  t->least = least;
  t->most = most;
  t->rising = rising;
}

void program_input_constant(struct program *p, int input) {
  if (known_tensor(p, input)) p->tensors.data[input].constant = true;
}

int program_stage(struct program *p, const char *name, enum program_dtype dtype, int rank,
                  const char *const *axes, const int64_t *sizes) {
  return add_tensor(p, false, name, dtype, rank, axes, sizes);
}

int program_axis(struct program *p, int stage, int position) {
  if (!known_stage(p, stage)) return -1;
  const struct program_tensor *t = &p->tensors.data[stage];
  if (position < 0 || position >= t->rank + t->reductions)
    return program_poison(p, "'%.40s' has no axis %d", t->name, position);
  return px_raw_leaf(
      p, (struct px_node){.op = PX_AXIS, .sort = PX_INDEX, .tensor = stage, .integer = position});
}

static int add_reduction(struct program *p, int stage, enum program_reducer reducer,
                         struct program_axis axis) {
  struct program_tensor *t = &p->tensors.data[stage];
  if (t->rank + t->reductions >= PROGRAM_AXES)
    return program_poison(p, "'%.40s' has more than %d axes, reduction axes included", t->name,
                          PROGRAM_AXES);
  if (reducer == REDUCE_NONE || (t->reductions && t->reducer != reducer))
    return program_poison(p, "stage '%.40s' needs one reducer for all its reduction axes", t->name);
  t->reducer = reducer;
  t->axes[t->rank + t->reductions++] = axis;
  return program_axis(p, stage, t->rank + t->reductions - 1);
}

int program_reduce(struct program *p, int stage, enum program_reducer reducer, const char *axis,
                   int64_t size) {
  if (!known_stage(p, stage)) return -1;
  return add_reduction(p, stage, reducer, plain_axis(p, axis, size));
}

void program_output(struct program *p, int stage) {
  if (known_tensor(p, stage)) VEC_PUSH(&p->outputs, stage);
}

int program_find(const struct program *p, const char *name) {
  for (int i = p->tensors.count - 1; i >= 0; i--)
    if (same_name(p->tensors.data[i].name, name)) return i;
  return -1;
}

int64_t program_elements(const struct program *p, int tensor) {
  const struct program_tensor *t = &p->tensors.data[tensor];
  int64_t n = 1;
  for (int i = 0; i < t->rank; i++) n *= t->axes[i].size;
  return n;
}

/* Nodes */

static int add_node(struct program *p, struct px_node node) {
  if (p->failed) return -1;
  if (p->nodes.count >= PROGRAM_NODES || node.size > PROGRAM_NODES)
    return program_poison(p, "expressions have more than %d operations", PROGRAM_NODES);
  if (node.depth > PROGRAM_DEPTH)
    return program_poison(
        p, "expression nests deeper than %d levels, give a part of it a stage of its own",
        PROGRAM_DEPTH);
  VEC_PUSH(&p->nodes, node);
  return p->nodes.count - 1;
}

/* Adds the depth and size of `child` to `node`; false if there is no such child. */
static bool adopt(struct program *p, struct px_node *node, int child) {
  if (p->failed) return false;
  if (child < 0 || child >= p->nodes.count) {
    program_poison(p, "an expression that does not exist is used");
    return false;
  }
  const struct px_node *c = &p->nodes.data[child];
  if (c->depth >= node->depth) node->depth = c->depth + 1;
  node->size += c->size;
  if (node->size > PROGRAM_NODES) node->size = PROGRAM_NODES + 1;
  return true;
}

int px_raw_leaf(struct program *p, struct px_node leaf) {
  leaf.depth = leaf.size = 1;
  leaf.literal = leaf.op == PX_INT;
  for (int i = 0; i < 3; i++) leaf.arg[i] = -1;
  return add_node(p, leaf);
}

/* The value of a literal: 1/2 beside a value is 0.5. */
static int settle(struct program *p, int expr) {
  struct px_node node = p->nodes.data[expr];
  if (!node.literal) return expr;
  if (node.op == PX_INT) {
    node.number = (double)node.integer;
    node.op = PX_NUMBER;
    node.sort = PX_VALUE;
    return px_raw_leaf(p, node);
  }
  if (node.op == PX_MOD)
    return program_poison(p, "'%%' takes indices on both sides, here it is part of a value");
  int arg[3] = {-1, -1, -1};
  for (int i = 0; i < 3; i++)
    if (node.arg[i] >= 0) arg[i] = settle(p, node.arg[i]);
  return px_raw(p, node.op, arg[0], arg[1], arg[2], node.line, node.column);
}

/* Both operands get the same sort, index or value; a literal takes the sort of the other one. */
static int agree(struct program *p, int *a, int *b, enum px_sort *sort) {
  struct px_node *nodes = p->nodes.data;
  enum px_sort x = nodes[*a].sort, y = nodes[*b].sort;
  if (x == PX_CONDITION || y == PX_CONDITION)
    return program_poison(p, "a condition stands where a number is wanted");
  *sort = x == PX_VALUE || y == PX_VALUE ? PX_VALUE : PX_INDEX;
  if (x == y) return 0;
  int *index = x == PX_INDEX ? a : b;
  if (!nodes[*index].literal) {
    struct buf text = {0};
    program_print_expr(p, *index, &text);
    program_poison(p, "index '%.40s' stands beside a value, write real(%.40s)", text.text,
                   text.text);
    buf_free(&text);
    return -1;
  }
  return *index = settle(p, *index);
}

static int want_condition(struct program *p, int expr) {
  if (p->nodes.data[expr].sort == PX_CONDITION) return 0;
  return program_poison(p, "a number stands where a condition is wanted, compare it");
}

static int want_value(struct program *p, int *expr) {
  const struct px_node *n = &p->nodes.data[*expr];
  if (n->sort == PX_VALUE) return 0;
  if (n->literal) return *expr = settle(p, *expr);
  if (n->sort == PX_CONDITION)
    return program_poison(p, "a condition stands where a number is wanted");
  return program_poison(p, "an index stands where a value is wanted, write real(...)");
}

static int want_index(struct program *p, int expr) {
  if (p->nodes.data[expr].sort == PX_INDEX) return 0;
  return program_poison(p, "an index is made of axes and integers, here it is something else");
}

/* Settles operands that are both indices or both values: numbers and comparisons. */
static int give_common_sort(struct program *p, struct px_node *node) {
  const struct scalar_op *op = &scalar_ops[node->op];
  int *arg = node->arg;
  enum px_sort sort = p->nodes.data[arg[0]].sort;
  if (op->arity == 1 && sort == PX_CONDITION) return program_poison(p, "a condition has no sign");
  if (op->arity == 2 && agree(p, &arg[0], &arg[1], &sort) < 0) return -1;
  if (op->sorts == SORTS_INDICES && sort == PX_VALUE)
    return program_poison(p, "'%%' takes indices on both sides, here it is part of a value");
  node->sort = op->sorts == SORTS_TEST ? PX_CONDITION : sort;
  node->literal = op->sorts != SORTS_TEST && p->nodes.data[arg[0]].literal &&
                  (op->arity == 1 || p->nodes.data[arg[1]].literal);
  return 0;
}

/* Checks the sorts of node->arg, settles literals, and sets node->sort and node->literal. */
static int give_sort(struct program *p, struct px_node *node) {
  int *arg = node->arg;
  const struct scalar_op *op = &scalar_ops[node->op];
  enum px_sort sort = PX_VALUE;
  switch (op->sorts) {
    case SORTS_LOGIC:
      for (int i = 0; i < op->arity; i++)
        if (want_condition(p, arg[i]) < 0) return -1;
      break;
    case SORTS_CHOICE:
      if (want_condition(p, arg[0]) < 0 || agree(p, &arg[1], &arg[2], &sort) < 0) return -1;
      node->literal = p->nodes.data[arg[1]].literal && p->nodes.data[arg[2]].literal;
      break;
    case SORTS_REAL:
      if (want_index(p, arg[0]) < 0) return -1;
      break;
    case SORTS_VALUES:
      for (int i = 0; i < op->arity; i++)
        if (want_value(p, &arg[i]) < 0) return -1;
      break;
    default: return give_common_sort(p, node);
  }
  node->sort = op->sorts == SORTS_LOGIC ? PX_CONDITION : sort;
  return 0;
}

int px_raw(struct program *p, enum px_op op, int a, int b, int c, int line, int column) {
  assert(op > PX_LOAD && op < PX_OPS);
  if (p->failed) return -1;
  struct px_node node = {
      .op = (uint8_t)op, .depth = 1, .size = 1, .line = line, .column = column, .arg = {a, b, c}};
  int n = scalar_ops[op].arity;
  for (int i = 0; i < 3; i++) {
    if (i >= n)
      node.arg[i] = -1;
    else if (node.arg[i] < 0 || node.arg[i] >= p->nodes.count)
      return program_poison(p, "an expression that does not exist is used");
  }
  if (give_sort(p, &node) < 0) return -1;
  for (int i = 0; i < n; i++)
    if (!adopt(p, &node, node.arg[i])) return -1;
  return add_node(p, node);
}

int px_raw_load(struct program *p, int tensor, int rank, const int *indices, int line, int column) {
  if (!known_tensor(p, tensor)) return -1;
  const struct program_tensor *t = &p->tensors.data[tensor];
  if (rank != t->rank)
    return program_poison(p, "'%.40s' has %d axes, the load gives %d", t->name, t->rank, rank);
  struct px_node node = {.op = PX_LOAD,
                         .sort = t->dtype == PROGRAM_I32 ? PX_INDEX : PX_VALUE,
                         .depth = 1,
                         .size = 1,
                         .line = line,
                         .column = column,
                         .arg = {-1, -1, -1},
                         .tensor = tensor,
                         .first = p->indices.count};
  for (int i = 0; i < rank; i++)
    if (!adopt(p, &node, indices[i]) || want_index(p, indices[i]) < 0) return -1;
  for (int i = 0; i < rank; i++) VEC_PUSH(&p->indices, indices[i]);
  return add_node(p, node);
}

int program_reduce_range(struct program *p, int stage, enum program_reducer reducer,
                         const char *name, int low, int high) {
  if (!known_stage(p, stage)) return -1;
  struct px_node both = {.depth = 1, .size = 1};
  if (!adopt(p, &both, low) || !adopt(p, &both, high)) return -1;
  if (want_index(p, low) < 0 || want_index(p, high) < 0) return -1;
  struct program_axis axis = plain_axis(p, name, 0);
  axis.low = low;
  axis.high = high;
  px_bounds(p, &axis);
  return add_reduction(p, stage, reducer, axis);
}

void program_define(struct program *p, int stage, int expr) {
  if (!known_stage(p, stage)) return;
  if (expr < 0 || expr >= p->nodes.count) {
    program_poison(p, "an expression that does not exist defines '%.40s'",
                   p->tensors.data[stage].name);
    return;
  }
  if (want_value(p, &expr) >= 0) p->tensors.data[stage].body = expr;
}

int px_int(struct program *p, int64_t value) {
  return px_raw_leaf(p, (struct px_node){.op = PX_INT, .sort = PX_INDEX, .integer = value});
}

int px_number(struct program *p, double value) {
  return px_raw_leaf(p, (struct px_node){.op = PX_NUMBER, .sort = PX_VALUE, .number = value});
}

int px_bool(struct program *p, bool value) {
  return px_raw_leaf(p, (struct px_node){.op = PX_BOOL, .sort = PX_CONDITION, .integer = value});
}
