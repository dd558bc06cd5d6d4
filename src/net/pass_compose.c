/* Merges two contractions with constant weights if only the second reads the first, e.g. a grouped
 * pointwise convolution and a dense one after it:
 *
 *     kernel(x, w, b, v):
 *       S[p, t] = X[p, t/12*8+k] * W[t, k] // sum k:8
 *       T[p, t] = S[p, t] + B[t]
 *       Y[p, o] = T[p, t] * V[o, t] // sum t:48
 * ->
 *     weight = kernel_weight(w, v)
 *       V[o, t, k] = W[t*12+u, k] * V[o, t*12+u] // sum u:12
 *     bias = kernel_bias(b, v)
 *       B[o] = B[t] * V[o, t] // sum t:48
 *     kernel(x, weight, bias):
 *       S[p, o] = X[p, t*8+k] * V[o, t, k] // sum t:4, k:8
 *       Y[p, o] = S[p, o] + B[o]
 *
 * This is done if it takes fewer products and no more weights. Weight and bias are computed when
 * the network is loaded.
 *
 * Rounding. The new weights are themselves rounded sums. With at most n terms per sum a result
 * changes by about 2 n eps * (sum of |x*w*v|), which exceeds the usual relative error if terms
 * cancel.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/call_maker.h"
#include "net/merge_calls.h"
#include "net/passes.h"
#include "program/affine.h"
#include "program/program_facts.h"

/* Two contractions of one call that can be merged. */
struct composition {
  struct network *n;
  int call;
  const struct program *p;
  int inner, outer; /* stages of the two contractions */
  int middle;       /* stage that the outer one loads: the inner one, or inner plus bias */
  int load;         /* node of that load */
  int data, first;  /* factors of the inner contraction; `first` is its weight */
  int second;       /* weight of the outer contraction */
  int bias;         /* expression of the bias; -1: none */
  /* By reduction of the outer contraction: the data depend on axis / block only. */
  int64_t block[PROGRAM_AXES];
};

/* ---- recognising two contractions ------------------------------------------------------------ */

/* Whether every load is of a constant; *any: there is a load. */
static bool loads_constants(const struct program *p, int expr, const bool *constant, bool *any) {
  if (expr < 0) return true;
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op == PX_LOAD) {
    *any = true;
    if (!constant[n->tensor]) return false;
    for (int i = 0; i < p->tensors.data[n->tensor].rank; i++)
      if (!loads_constants(p, p->indices.data[n->first + i], constant, any)) return false;
  }
  for (int i = 0; i < 3; i++)
    if (!loads_constants(p, n->arg[i], constant, any)) return false;
  return true;
}

static bool is_constant(const struct program *p, int expr, const bool *constant) {
  bool any = false;
  return loads_constants(p, expr, constant, &any) && any;
}

/* Whether the expression only moves data, so that recomputing it costs only its loads. */
static bool is_moved(const struct program *p, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op == PX_LOAD || n->op == PX_NUMBER) return true;
  return n->op == PX_SELECT && is_index_condition(p, n->arg[0]) && is_moved(p, n->arg[1]) &&
         is_moved(p, n->arg[2]);
}

static bool is_float(const struct program_tensor *t) {
  return !t->is_input && (t->dtype == PROGRAM_F32 || t->dtype == PROGRAM_F64);
}

/* Whether the stage sums *varying * *weight. */
static bool is_sum(const struct program *p, int stage, const bool *constant, int *varying,
                   int *weight) {
  const struct program_tensor *t = &p->tensors.data[stage];
  if (!is_float(t) || t->reducer != REDUCE_SUM) return false;
  for (int i = t->rank; i < t->rank + t->reductions; i++)
    if (t->axes[i].low >= 0) return false;
  const struct px_node *n = &p->nodes.data[t->body];
  if (n->op != PX_MUL) return false;
  for (int i = 0; i < 2; i++) {
    *varying = n->arg[i];
    *weight = n->arg[1 - i];
    if (is_constant(p, *weight, constant) && is_moved(p, *varying)) return true;
  }
  return false;
}

/* The contraction to which the middle stage adds a constant bias, element by element; -1: none. */
static int below_bias(struct composition *c, const bool *constant) {
  const struct program_tensor *t = &c->p->tensors.data[c->middle];
  if (!is_float(t) || t->reductions) return -1;
  const struct px_node *n = &c->p->nodes.data[t->body];
  for (int i = 0; i < 2 && n->op == PX_ADD; i++) {
    const struct px_node *load = &c->p->nodes.data[n->arg[i]];
    if (load->op != PX_LOAD || !is_constant(c->p, n->arg[1 - i], constant)) continue;
    if (!stage_is_elementwise(c->p, c->middle, load->tensor)) continue;
    c->bias = n->arg[1 - i];
    return is_only_consumer(c->p, load->tensor, c->middle) ? load->tensor : -1;
  }
  return -1;
}

/* Whether the indices of the load contain no loads. */
static bool is_fixed(const struct program *p, const struct px_node *load, const bool *constant) {
  bool any = false;
  for (int i = 0; i < p->tensors.data[load->tensor].rank; i++)
    if (!loads_constants(p, p->indices.data[load->first + i], constant, &any)) return false;
  return !any;
}

static int count_axes(const struct program_tensor *t) {
  return t->rank + t->reductions;
}

static bool find_pair(struct composition *c, const bool *constant) {
  const struct program *p = c->p;
  int loaded;
  if (constant[c->outer] || !is_sum(p, c->outer, constant, &loaded, &c->second)) return false;
  const struct px_node *load = &p->nodes.data[loaded];
  if (load->op != PX_LOAD || !is_fixed(p, load, constant)) return false;
  c->load = loaded;
  c->middle = load->tensor;
  c->bias = -1;
  if (!is_only_consumer(p, c->middle, c->outer) || p->tensors.data[c->middle].is_input)
    return false;
  c->inner = p->tensors.data[c->middle].reductions ? c->middle : below_bias(c, constant);
  if (c->inner < 0 || !is_sum(p, c->inner, constant, &c->data, &c->first)) return false;
  const struct program_tensor *s = &p->tensors.data[c->inner], *y = &p->tensors.data[c->outer];
  return s->dtype == y->dtype && p->tensors.data[c->middle].dtype == y->dtype &&
         count_axes(y) + y->reductions + s->reductions <= PROGRAM_AXES;
}

/* ---- expressions of both in one stage -------------------------------------------------------- */

/* Expressions that replace axes. A reduction of the outer contraction becomes block*group +
 * rest. */
struct places {
  int own[PROGRAM_AXES], group[PROGRAM_AXES], rest[PROGRAM_AXES], inner[PROGRAM_AXES];
};

static int copy_outer(const struct composition *c, struct graft *g, const struct places *at,
                      int expr) {
  const struct program_tensor *y = &c->p->tensors.data[c->outer];
  struct program *to = g->to->program;
  int axis[PROGRAM_AXES];
  struct px_map map = {.axis = axis, .load = graft_load, .data = g};
  for (int i = 0; i < y->rank; i++) axis[i] = at->own[i];
  for (int i = 0; i < y->reductions; i++) {
    int group = px_mul(to, at->group[i], px_int(to, c->block[i]));
    axis[y->rank + i] = px_add(to, group, at->rest[i]);
  }
  return px_copy(to, c->p, expr, &map);
}

/* Copies an expression of the inner contraction or of the bias, with axes as the outer one reads
 * it. */
static int copy_inner(const struct composition *c, struct graft *g, const struct places *at,
                      int expr) {
  const struct program_tensor *s = &c->p->tensors.data[c->inner];
  int axis[PROGRAM_AXES], first = c->p->nodes.data[c->load].first;
  struct px_map map = {.axis = axis, .load = graft_load, .data = g};
  for (int i = 0; i < s->rank; i++) axis[i] = copy_outer(c, g, at, c->p->indices.data[first + i]);
  for (int i = 0; i < s->reductions; i++) axis[s->rank + i] = at->inner[i];
  return px_copy(g->to->program, c->p, expr, &map);
}

/* ---- axes of a new stage --------------------------------------------------------------------- */

struct axis_list {
  char text[PROGRAM_AXES][PROGRAM_NAME + 1];
  const char *names[PROGRAM_AXES];
  int64_t sizes[PROGRAM_AXES];
  int *place[PROGRAM_AXES]; /* the field of `places` that receives the axis */
  int count;
};

static bool has_axis(const struct axis_list *l, const char *name) {
  for (int i = 0; i < l->count; i++)
    if (!strcmp(l->names[i], name)) return true;
  return false;
}

/* Adds an axis under its name, with a number appended if that is taken. */
static void add_axis(struct axis_list *l, const char *name, int64_t size, int *place) {
  char *text = l->text[l->count];
  snprintf(text, PROGRAM_NAME + 1, "%s", name);
  for (int i = 2; has_axis(l, text); i++)
    snprintf(text, PROGRAM_NAME + 1, "%.*s_%d", PROGRAM_NAME - 12, name, i);
  l->names[l->count] = text;
  l->sizes[l->count] = size;
  l->place[l->count++] = place;
}

/* Adds the groups of outer reductions, except those of size 1. */
static void add_groups(const struct composition *c, struct axis_list *l, struct places *at) {
  const struct program_tensor *y = &c->p->tensors.data[c->outer];
  for (int i = 0; i < y->reductions; i++) {
    const struct program_axis *a = &y->axes[y->rank + i];
    if (a->size > c->block[i]) add_axis(l, a->name, a->size / c->block[i], &at->group[i]);
  }
}

static void add_rests(const struct composition *c, struct axis_list *l, struct places *at) {
  const struct program_tensor *y = &c->p->tensors.data[c->outer];
  for (int i = 0; i < y->reductions; i++)
    if (c->block[i] > 1) add_axis(l, y->axes[y->rank + i].name, c->block[i], &at->rest[i]);
}

/* Adds inner reductions; `only`: those on which the first weight depends. */
static void add_inner(const struct composition *c, struct axis_list *l, struct places *at,
                      bool only) {
  const struct program_tensor *s = &c->p->tensors.data[c->inner];
  for (int i = 0; i < s->reductions; i++) {
    const struct program_axis *a = &s->axes[s->rank + i];
    if (a->size > 1 && (!only || px_mentions(c->p, c->first, s->rank + i)))
      add_axis(l, a->name, a->size, &at->inner[i]);
  }
}

/* Whether an outer expression, or an inner one as the outer contraction reads it, depends on the
 * outer axis. */
static bool depends(const struct composition *c, int expr, int inner, int axis) {
  const struct program_tensor *s = &c->p->tensors.data[c->inner];
  const struct px_node *load = &c->p->nodes.data[c->load];
  if (expr >= 0 && px_mentions(c->p, expr, axis)) return true;
  for (int i = 0; i < s->rank; i++)
    if (inner >= 0 && px_mentions(c->p, inner, i) &&
        px_mentions(c->p, c->p->indices.data[load->first + i], axis))
      return true;
  return false;
}

static void add_own(const struct composition *c, struct axis_list *l, struct places *at,
                    int inner) {
  const struct program_tensor *y = &c->p->tensors.data[c->outer];
  for (int i = 0; i < y->rank; i++)
    if (depends(c, c->second, inner, i)) add_axis(l, y->axes[i].name, y->axes[i].size, &at->own[i]);
}

static void clear_places(struct program *to, struct places *at) {
  for (int i = 0; i < PROGRAM_AXES; i++)
    at->own[i] = at->group[i] = at->rest[i] = at->inner[i] = px_int(to, 0);
}

/* Makes a stage with the first `rank` axes; the others are summed. */
static int make_stage(const struct composition *c, struct program *to, const char *name,
                      const struct axis_list *l, int rank) {
  char text[PROGRAM_NAME + 1];
  free_stage_name(to, name, text);
  int made = program_stage(to, text, c->p->tensors.data[c->outer].dtype, rank, l->names, l->sizes);
  for (int i = 0; i < rank; i++) *l->place[i] = program_axis(to, made, i);
  for (int i = rank; i < l->count; i++)
    *l->place[i] = program_reduce(to, made, REDUCE_SUM, l->names[i], l->sizes[i]);
  return made;
}

static void put_own(const struct composition *c, struct axis_list *l, struct places *at) {
  const struct program_tensor *y = &c->p->tensors.data[c->outer];
  for (int i = 0; i < y->rank; i++) add_axis(l, y->axes[i].name, y->axes[i].size, &at->own[i]);
}

/* ---- remaining reductions -------------------------------------------------------------------- */

static int64_t common_divisor(int64_t a, int64_t b) {
  return b ? common_divisor(b, a % b) : a;
}

/* The largest divisor d of `block` such that the expression depends on axis / d only. */
static int64_t block_of(const struct program *p, int expr, int axis, int64_t block) {
  if (expr < 0) return block;
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op == PX_AXIS) return n->integer == axis ? 1 : block;
  if (n->op == PX_DIV) {
    const struct px_node *by = &p->nodes.data[n->arg[1]], *of = &p->nodes.data[n->arg[0]];
    if (of->op == PX_AXIS && of->integer == axis && by->op == PX_INT)
      return common_divisor(block, by->integer);
  }
  for (int i = 0; n->op == PX_LOAD && i < p->tensors.data[n->tensor].rank; i++)
    block = block_of(p, p->indices.data[n->first + i], axis, block);
  for (int i = 0; i < 3; i++) block = block_of(p, n->arg[i], axis, block);
  return block;
}

/* Finds c->block by writing the data with every outer reduction unsplit. */
static void find_blocks(struct composition *c) {
  const struct program_tensor *y = &c->p->tensors.data[c->outer];
  struct call_maker m = call_maker_open("data");
  struct graft g = graft_open(&m, c->n, c->call);
  struct axis_list l = {0};
  struct places at;
  clear_places(m.program, &at);
  for (int i = 0; i < y->reductions; i++) c->block[i] = 1;
  graft_loads(&g, c->data);
  put_own(c, &l, &at);
  add_groups(c, &l, &at);
  add_inner(c, &l, &at, false);
  make_stage(c, m.program, "Y", &l, y->rank);
  int data = copy_inner(c, &g, &at, c->data);
  for (int i = 0, axis = y->rank; i < y->reductions && data >= 0; i++) {
    int64_t size = y->axes[y->rank + i].size;
    if (size > 1) c->block[i] = block_of(m.program, data, axis++, size);
  }
  graft_close(&g);
  call_maker_drop(&m);
}

static double elements(const struct program_tensor *t) {
  double count = 1;
  for (int i = 0; i < count_axes(t); i++) count *= (double)t->axes[i].size;
  return count;
}

static double sizes_of(const struct axis_list *l) {
  double count = 1;
  for (int i = 0; i < l->count; i++) count *= (double)l->sizes[i];
  return count;
}

/* Number of distinct values of the expression: the product of the axes on which it depends. */
static double weights_of(const struct program *p, int stage, int expr) {
  const struct program_tensor *t = &p->tensors.data[stage];
  double count = 1;
  for (int i = 0; i < count_axes(t); i++)
    if (px_mentions(p, expr, i)) count *= (double)t->axes[i].size;
  return count;
}

static bool is_less(const struct composition *c) {
  struct places at;
  struct axis_list sum = {0}, weight = {0};
  put_own(c, &sum, &at);
  add_groups(c, &sum, &at);
  add_inner(c, &sum, &at, false);
  add_own(c, &weight, &at, c->first);
  add_groups(c, &weight, &at);
  add_inner(c, &weight, &at, true);
  double products =
      elements(&c->p->tensors.data[c->inner]) + elements(&c->p->tensors.data[c->outer]);
  double weights = weights_of(c->p, c->inner, c->first) + weights_of(c->p, c->outer, c->second);
  return sizes_of(&sum) < products && sizes_of(&weight) <= weights;
}

/* ---- the change ------------------------------------------------------------------------------ */

static canvas_status finish_value(const struct composition *c, canvas_context *ctx,
                                  struct call_maker *m, const char *ending, int *value) {
  const struct net_call *call = &c->n->calls.data[c->call];
  char name[PROGRAM_NAME];
  snprintf(name, sizeof name, "%.*s_%s", PROGRAM_NAME - 20,
           c->n->tensors.data[call->results.data[0]].name, ending);
  int made;
  TRY(call_maker_finish(ctx, m, c->n, &made));
  *value = add_result(c->n, made, name);
  return CANVAS_OK;
}

/* A constant value: the inner weight or bias, contracted with the second weight. */
static canvas_status make_constant(const struct composition *c, canvas_context *ctx, int inner,
                                   int *value) {
  bool bias = inner == c->bias;
  struct call_maker m = call_maker_open(bias ? "composed_bias" : "composed_weight");
  struct graft g = graft_open(&m, c->n, c->call);
  struct places at;
  struct axis_list l = {0};
  clear_places(m.program, &at);
  graft_loads(&g, inner);
  graft_loads(&g, c->second);
  add_own(c, &l, &at, inner);
  add_groups(c, &l, &at);
  if (!bias) add_inner(c, &l, &at, true);
  int rank = l.count;
  add_rests(c, &l, &at);
  int stage = make_stage(c, m.program, "Y", &l, rank);
  int left = copy_inner(c, &g, &at, inner), right = copy_outer(c, &g, &at, c->second);
  program_define(m.program, stage, px_mul(m.program, left, right));
  program_output(m.program, stage);
  graft_close(&g);
  return finish_value(c, ctx, &m, bias ? "bias" : "weight", value);
}

/* Adds a constant input for the value. */
static int constant_input(const struct composition *c, struct call_maker *m, const char *name,
                          const struct axis_list *l, int value) {
  char text[PROGRAM_NAME + 1];
  free_stage_name(m->program, name, text);
  int input = program_input(m->program, text, c->p->tensors.data[c->outer].dtype, l->count,
                            l->names, l->sizes);
  program_input_constant(m->program, input);
  VEC_PUSH(&m->arguments, value);
  return input;
}

static int load_of(struct program *to, int input, const struct axis_list *l) {
  int indices[PROGRAM_AXES];
  for (int i = 0; i < l->count; i++) indices[i] = *l->place[i];
  return px_load(to, input, l->count, indices);
}

/* The stage that adds the bias to the contraction. */
static int add_bias(const struct composition *c, struct program *to, int sum, int bias,
                    struct axis_list *l, struct places *at) {
  const struct program_tensor *y = &c->p->tensors.data[c->outer];
  int stage = graft_stage(to, y, y->name, y->dtype);
  for (int i = 0; i < y->rank; i++) at->own[i] = program_axis(to, stage, i);
  int left = px_load(to, sum, y->rank, at->own);
  program_define(to, stage, px_add(to, left, load_of(to, bias, l)));
  return stage;
}

/* The merged contraction with its bias; `bias` is -1: none. */
static int make_sum(const struct composition *c, struct graft *g, int weight, int bias) {
  const struct program_tensor *y = &c->p->tensors.data[c->outer];
  struct program *to = g->to->program;
  struct places at;
  struct axis_list l = {0}, w = {0}, b = {0};
  char name[PROGRAM_NAME + 1];
  clear_places(to, &at);
  graft_loads(g, c->data);
  put_own(c, &l, &at);
  add_groups(c, &l, &at);
  add_inner(c, &l, &at, false);
  add_own(c, &w, &at, c->first);
  add_groups(c, &w, &at);
  add_inner(c, &w, &at, true);
  add_own(c, &b, &at, c->bias);
  weight = constant_input(c, g->to, "W", &w, weight);
  if (bias >= 0) bias = constant_input(c, g->to, "B", &b, bias);
  snprintf(name, sizeof name, bias < 0 ? "%.*s" : "%.*s_sum", PROGRAM_NAME - 20, y->name);
  int stage = make_stage(c, to, name, &l, y->rank);
  int data = copy_inner(c, g, &at, c->data);
  program_define(to, stage, px_mul(to, data, load_of(to, weight, &w)));
  return bias < 0 ? stage : add_bias(c, to, stage, bias, &b, &at);
}

static canvas_status compose(const struct composition *c, canvas_context *ctx) {
  int weight, bias = -1, made;
  TRY(make_constant(c, ctx, c->first, &weight));
  if (c->bias >= 0) {
    struct composition whole = *c; /* the bias depends on no reduction: all are summed here */
    const struct program_tensor *y = &c->p->tensors.data[c->outer];
    for (int i = 0; i < y->reductions; i++) whole.block[i] = y->axes[y->rank + i].size;
    TRY(make_constant(&whole, ctx, c->bias, &bias));
  }
  struct call_maker m = call_maker_open(c->p->name);
  struct graft g = graft_open(&m, c->n, c->call);
  g.number[c->outer] = make_sum(c, &g, weight, bias);
  for (int i = 0; i < c->p->outputs.count; i++)
    program_output(m.program, graft_tensor(&g, c->p->outputs.data[i]));
  graft_close(&g);
  TRY(call_maker_finish(ctx, &m, c->n, &made));
  network_replace_call(c->n, c->call);
  return CANVAS_OK;
}

static canvas_status compose_call(canvas_context *ctx, struct network *n, int call, bool *done) {
  struct composition c = {.n = n, .call = call};
  c.p = n->programs.data[n->calls.data[call].program];
  *done = false;
  if (n->calls.count + 3 > NETWORK_CALLS || n->programs.count + 3 > NETWORK_PROGRAMS ||
      n->tensors.count + 2 > NETWORK_TENSORS)
    return CANVAS_OK;
  bool *constant = program_constants(c.p), found = false;
  for (int i = 0; i < c.p->tensors.count && !found; i++) {
    c.outer = i;
    if (!find_pair(&c, constant)) continue;
    find_blocks(&c);
    found = is_less(&c);
  }
  mem_free(constant);
  *done = found;
  return found ? compose(&c, ctx) : CANVAS_OK;
}

canvas_status pass_compose(canvas_context *ctx, struct network *n) {
  int calls = n->calls.count;
  canvas_status status = CANVAS_OK;
  network_settle(n);
  for (int i = 0; i < calls && status == CANVAS_OK; i++)
    for (bool again = n->calls.data[i].varies; again && status == CANVAS_OK;)
      status = compose_call(ctx, n, i, &again);
  network_settle(n);
  network_constants_first(n);
  network_join_programs(n);
  return status;
}
