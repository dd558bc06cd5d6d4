/* Folds a normalisation with constant statistics, Y[.., c, ..] = X[.., c, ..] * a[c] + b[c] in any
 * form, into the weights of the call that computes X.
 *
 *     x = conv(image, w)                        scaled = scale(w, var, gamma)
 *     y = norm(x, mean, var, gamma, beta)  ->   offset = offset(mean, var, gamma, beta)
 *                                               x = conv(image, scaled)
 *                                               y = add_offset(x, offset)
 *
 * Conditions: conv is linear in a constant w, one axis of w is the channel c of x, and only the
 * normalisation reads x. If conv adds a bias, the bias becomes a * bias + b, and the addition
 * disappears. Otherwise a and b are computed when the network is loaded; one product and one sum
 * remain.
 *
 * Rounding. Weights are rounded once more. Each result changes by at most
 * 3 eps * (sum of |x*w| * |a| + |b|), which exceeds the usual relative error if terms cancel.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/call_maker.h"
#include "net/passes.h"
#include "program/affine.h"
#include "program/program_facts.h"
#include "rewrite/program_rebuild.h"

/* ---- recognising a normalisation ------------------------------------------------------------- */

static bool reads(const struct program *p, int expr, int tensor) {
  if (expr < 0) return false;
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op == PX_LOAD && n->tensor == tensor) return true;
  for (int i = 0; i < 3; i++)
    if (reads(p, n->arg[i], tensor)) return true;
  return false;
}

/* Whether the indices are the stage's own axes in order. */
static bool is_own_element(const struct program *p, const struct px_node *load, int rank) {
  if (p->tensors.data[load->tensor].rank != rank) return false;
  for (int i = 0; i < rank; i++) {
    const struct px_node *at = &p->nodes.data[p->indices.data[load->first + i]];
    if (at->op != PX_AXIS || at->integer != i) return false;
  }
  return true;
}

struct norm {
  const struct program *p;
  int stage, x;  /* the output; the input that varies (X) */
  int argument;  /* position of X among the call's arguments */
  uint32_t axes; /* mask of output axes in constant expressions */
  int sums;      /* additions of constants */
  int products;  /* products with constants */
  bool factors;  /* only a is needed: terms of b are omitted */
  bool computed; /* a constant expression is neither a load nor a number */
};

static void find_axes(struct norm *m, int expr) {
  const struct px_node *n = &m->p->nodes.data[expr];
  m->computed |= n->op != PX_LOAD && n->op != PX_NUMBER;
  for (int i = 0; i < m->p->tensors.data[m->stage].rank; i++)
    if (px_mentions(m->p, expr, i)) m->axes |= 1u << i;
}

/* Whether expr = x * a + b with a and b constant. */
static bool is_affine(struct norm *m, int expr) {
  const struct px_node *n = &m->p->nodes.data[expr];
  if (!reads(m->p, expr, m->x)) {
    find_axes(m, expr);
    return true;
  }
  bool left = n->arg[0] >= 0 && reads(m->p, n->arg[0], m->x);
  bool right = n->arg[1] >= 0 && reads(m->p, n->arg[1], m->x);
  switch (n->op) {
    case PX_LOAD: return is_own_element(m->p, n, m->p->tensors.data[m->stage].rank);
    case PX_NEG: return is_affine(m, n->arg[0]);
    case PX_ADD:
    case PX_SUB:
      m->sums += !left || !right;
      return is_affine(m, n->arg[0]) && is_affine(m, n->arg[1]);
    case PX_DIV:
      if (right) return false; /* fall through */
    case PX_MUL:
      m->products++;
      return left != right && is_affine(m, n->arg[0]) && is_affine(m, n->arg[1]);
    default: return false;
  }
}

/* Position of the only argument that varies; -1: none or several. */
static int varying_argument(const struct network *n, const struct net_call *c) {
  int found = -1;
  for (int i = 0; i < c->arguments.count; i++) {
    if (network_constant(n, c->arguments.data[i])) continue;
    if (found >= 0) return -1;
    found = i;
  }
  return found;
}

static bool is_float(const struct program_tensor *t) {
  return t->dtype == PROGRAM_F32 || t->dtype == PROGRAM_F64;
}

/* The channel axis c if the program is x * a[c] + b[c] and only the output reads x; -1
 * otherwise. */
static int find_norm(const struct network *n, int call, struct norm *m) {
  const struct net_call *c = &n->calls.data[call];
  *m = (struct norm){.p = n->programs.data[c->program], .argument = varying_argument(n, c)};
  if (m->argument < 0 || m->p->outputs.count != 1) return -1;
  m->x = m->p->inputs.data[m->argument];
  m->stage = m->p->outputs.data[0];
  const struct program_tensor *t = &m->p->tensors.data[m->stage];
  if (t->reductions || !is_float(t) || t->dtype != m->p->tensors.data[m->x].dtype) return -1;
  for (int i = 0; i < m->stage; i++)
    if (stage_loads(m->p, i, m->x)) return -1;
  if (!reads(m->p, t->body, m->x) || !is_affine(m, t->body) || !m->sums) return -1;
  if (!m->axes || (m->axes & (m->axes - 1))) return -1;
  for (int i = 0; i < t->rank; i++)
    if (m->axes >> i & 1) return i;
  return -1;
}

/* ---- a and b, as expressions ----------------------------------------------------------------- */

/* Expressions of x * a + b in a new program; -1: a is 1, b is 0. Without x, a is unused. */
struct pair {
  int a, b;
};

static int factor(struct program *to, struct pair x) {
  return x.a < 0 ? px_number(to, 1) : x.a;
}

static int negative(struct program *to, int expr) {
  return expr < 0 ? -1 : px_neg(to, expr);
}

static struct pair split(const struct norm *m, struct program *to, int expr,
                         const struct px_map *map);

/* (x * a + b) * e or (x * a + b) / e, where e does not read x. */
static struct pair split_product(struct program *to, enum px_op op, struct pair x, int e) {
  struct pair out = {x.a, x.b};
  if (op == PX_DIV) out.a = px_div(to, factor(to, x), e);
  if (op == PX_MUL) out.a = x.a < 0 ? e : px_mul(to, x.a, e);
  if (x.b >= 0) out.b = op == PX_DIV ? px_div(to, x.b, e) : px_mul(to, x.b, e);
  return out;
}

static int sum_of(struct program *to, int a, int b) {
  return a < 0 ? b : b < 0 ? a : px_add(to, a, b);
}

static struct pair split_sum(const struct norm *m, struct program *to, int expr,
                             const struct px_map *map) {
  struct px_node n = m->p->nodes.data[expr];
  struct pair l = split(m, to, n.arg[0], map), r = split(m, to, n.arg[1], map), out;
  bool left = reads(m->p, n.arg[0], m->x), right = reads(m->p, n.arg[1], m->x);
  if (n.op == PX_SUB) {
    r.a = right ? negative(to, factor(to, r)) : -1;
    r.b = negative(to, r.b);
  }
  out.a = left && right ? px_add(to, factor(to, l), factor(to, r)) : left ? l.a : r.a;
  out.b = sum_of(to, l.b, r.b);
  return out;
}

static struct pair split(const struct norm *m, struct program *to, int expr,
                         const struct px_map *map) {
  struct px_node n = m->p->nodes.data[expr];
  if (!reads(m->p, expr, m->x))
    return (struct pair){-1, m->factors ? -1 : px_copy(to, m->p, expr, map)};
  if (n.op == PX_LOAD) return (struct pair){-1, -1};
  if (n.op == PX_ADD || n.op == PX_SUB) return split_sum(m, to, expr, map);
  if (n.op == PX_NEG) {
    struct pair x = split(m, to, n.arg[0], map);
    return (struct pair){negative(to, factor(to, x)), negative(to, x.b)};
  }
  bool left = reads(m->p, n.arg[0], m->x);
  struct pair x = split(m, to, n.arg[left ? 0 : 1], map);
  return split_product(to, n.op, x, px_copy(to, m->p, n.arg[left ? 1 : 0], map));
}

/* Copies what a and b read, or a alone. */
static void graft_constants(const struct norm *m, struct graft *g, int expr) {
  struct px_node n = m->p->nodes.data[expr];
  if (n.op == PX_LOAD) return;
  for (int i = 0; i < 2 && n.arg[i] >= 0; i++)
    if (reads(m->p, n.arg[i], m->x))
      graft_constants(m, g, n.arg[i]);
    else if (!m->factors || n.op == PX_MUL || n.op == PX_DIV)
      graft_loads(g, n.arg[i]);
}

/* ---- recognising a linear call --------------------------------------------------------------- */

struct linear {
  const struct program *p;
  int call, stage;         /* call of the network; contraction stage of its program */
  int channel;             /* channel axis of the stage */
  int weight, weight_axis; /* an input; its channel axis */
  int bias;                /* an input; -1: none */
};

static bool is_zero(const struct program *p, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  return n->op == PX_NUMBER && n->number == 0;
}

static bool finds_channel(struct linear *l, const struct px_node *load) {
  const struct program_tensor *w = &l->p->tensors.data[l->weight];
  for (int i = 0; i < w->rank; i++) {
    const struct px_node *at = &l->p->nodes.data[l->p->indices.data[load->first + i]];
    if (at->op != PX_AXIS || at->integer != l->channel) continue;
    if (l->weight_axis >= 0 && l->weight_axis != i) continue;
    if (w->axes[i].size != l->p->tensors.data[l->stage].axes[l->channel].size) continue;
    l->weight_axis = i;
    return true;
  }
  return false;
}

static bool is_linear(struct linear *l, int expr) {
  const struct px_node *n = &l->p->nodes.data[expr];
  if (!reads(l->p, expr, l->weight)) return false;
  if (n->op == PX_LOAD) return finds_channel(l, n);
  bool left = reads(l->p, n->arg[0], l->weight);
  bool right = n->arg[1] >= 0 && reads(l->p, n->arg[1], l->weight);
  switch (n->op) {
    case PX_NEG: return is_linear(l, n->arg[0]);
    case PX_ADD:
    case PX_SUB: return is_linear(l, n->arg[0]) && is_linear(l, n->arg[1]);
    case PX_MUL: return left != right && is_linear(l, n->arg[left ? 0 : 1]);
    case PX_DIV: return !right && is_linear(l, n->arg[0]);
    case PX_SELECT:
      return !left && (is_zero(l->p, n->arg[1]) || is_linear(l, n->arg[1])) &&
             (is_zero(l->p, n->arg[2]) || is_linear(l, n->arg[2]));
    default: return false;
  }
}

/* Whether the argument of the input is constant, and no other stage reads the input. */
static bool is_own_constant(const struct network *n, const struct linear *l, int input, int stage) {
  const struct net_call *c = &n->calls.data[l->call];
  for (int i = stage + 1; i < l->p->tensors.count; i++)
    if (stage_loads(l->p, i, input)) return false;
  for (int i = 0; i < stage; i++)
    if (stage_loads(l->p, i, input)) return false;
  for (int i = 0; i < l->p->inputs.count; i++)
    if (l->p->inputs.data[i] == input) return network_constant(n, c->arguments.data[i]);
  return false;
}

/* The stage that `stage` copies element by element, apart from a bias, which sets l->bias; -1:
 * none. */
static int below(const struct network *n, struct linear *l, int stage) {
  const struct program_tensor *t = &l->p->tensors.data[stage];
  const struct px_node *body = &l->p->nodes.data[t->body], *load = body;
  if (t->reductions) return -1;
  for (int i = 0; i < 2 && body->op == PX_ADD; i++) {
    const struct px_node *b = &l->p->nodes.data[body->arg[i]];
    load = &l->p->nodes.data[body->arg[1 - i]];
    if (b->op != PX_LOAD || load->op != PX_LOAD) continue;
    const struct program_tensor *bias = &l->p->tensors.data[b->tensor];
    if (!bias->is_input || bias->rank != 1 || !is_float(bias) || l->bias >= 0) continue;
    const struct px_node *at = &l->p->nodes.data[l->p->indices.data[b->first]];
    if (at->op != PX_AXIS || at->integer != l->channel) continue;
    if (bias->axes[0].size != t->axes[l->channel].size) continue;
    if (!is_own_constant(n, l, b->tensor, stage)) continue;
    l->bias = b->tensor;
    break;
  }
  if (body->op == PX_ADD && l->bias < 0) return -1;
  if (load->op != PX_LOAD || !is_own_element(l->p, load, t->rank)) return -1;
  return is_only_consumer(l->p, load->tensor, stage) ? load->tensor : -1;
}

static bool find_linear(const struct network *n, int value, int channel, struct linear *l) {
  const struct net_call *c = &n->calls.data[n->tensors.data[value].call];
  *l = (struct linear){.p = n->programs.data[c->program],
                       .call = n->tensors.data[value].call,
                       .channel = channel,
                       .bias = -1};
  for (int i = 0; i < c->results.count; i++)
    if (c->results.data[i] == value) l->stage = l->p->outputs.data[i];
  for (int i = l->stage + 1; i < l->p->tensors.count; i++)
    if (stage_loads(l->p, i, l->stage)) return false;
  for (int next; (next = below(n, l, l->stage)) >= 0;) l->stage = next;
  const struct program_tensor *t = &l->p->tensors.data[l->stage];
  if (!is_float(t) || t->reducer > REDUCE_MEAN || t->reducer == REDUCE_MAX) return false;
  for (int i = 0; i < l->p->inputs.count; i++) {
    l->weight = l->p->inputs.data[i];
    l->weight_axis = -1;
    if (!is_float(&l->p->tensors.data[l->weight])) continue;
    if (is_own_constant(n, l, l->weight, l->stage) && is_linear(l, t->body)) return true;
  }
  return false;
}

/* ---- the change ------------------------------------------------------------------------------ */

struct change_of {
  canvas_context *ctx;
  struct network *n;
  int call; /* call of the normalisation */
  struct norm norm;
  int channel;
};

static const char *name_of(const struct change_of *c, const char *ending, char out[PROGRAM_NAME]) {
  const char *y = c->n->tensors.data[c->n->calls.data[c->call].results.data[0]].name;
  snprintf(out, PROGRAM_NAME, "%.*s_%s", PROGRAM_NAME - 20, y, ending);
  return out;
}

static canvas_status finish_value(const struct change_of *c, struct call_maker *m,
                                  const char *ending, int *value) {
  char name[PROGRAM_NAME];
  int call;
  TRY(call_maker_finish(c->ctx, m, c->n, &call));
  *value = add_result(c->n, call, name_of(c, ending, name));
  return CANVAS_OK;
}

/* A value with the weights, each multiplied by a of its channel. */
static canvas_status make_weight(const struct change_of *c, const struct linear *l, int weight,
                                 int *value) {
  struct call_maker m = call_maker_open("scale_weight");
  struct norm norm = c->norm;
  struct graft g = graft_open(&m, c->n, c->call);
  const struct program_tensor *w = &l->p->tensors.data[l->weight];
  int body = c->norm.p->tensors.data[c->norm.stage].body, axis[PROGRAM_AXES], own[PROGRAM_AXES];
  int input = call_maker_input(&m, weight, l->p, l->weight);
  norm.factors = true;
  graft_constants(&norm, &g, body);
  int stage = graft_stage(m.program, w, "Y", w->dtype);
  for (int i = 0; i < w->rank; i++) own[i] = program_axis(m.program, stage, i);
  for (int i = 0; i < PROGRAM_AXES; i++) axis[i] = own[l->weight_axis];
  struct px_map map = {.axis = axis, .load = graft_load, .data = &g};
  struct pair x = split(&norm, m.program, body, &map);
  program_define(m.program, stage,
                 px_mul(m.program, px_load(m.program, input, w->rank, own), factor(m.program, x)));
  program_output(m.program, stage);
  graft_close(&g);
  return finish_value(c, &m, "weight", value);
}

static int channel_stage(const struct change_of *c, struct program *p) {
  const struct program_tensor *t = &c->norm.p->tensors.data[c->norm.stage];
  const struct program_axis *a = &t->axes[c->channel];
  char name[PROGRAM_NAME + 1];
  free_stage_name(p, "Y", name);
  return program_stage(p, name, t->dtype, 1, &a->name, &a->size);
}

/* A value with a, or with b, or with a * bias + b. */
static canvas_status make_channel(const struct change_of *c, bool scale, const struct linear *l,
                                  int bias, int *value) {
  struct call_maker m = call_maker_open(scale ? "scale" : "offset");
  struct graft g = graft_open(&m, c->n, c->call);
  struct program *p = m.program;
  struct norm norm = c->norm;
  int body = c->norm.p->tensors.data[c->norm.stage].body, axis[PROGRAM_AXES], input = -1;
  norm.factors = scale;
  if (bias >= 0) input = call_maker_input(&m, bias, l->p, l->bias);
  graft_constants(&norm, &g, body);
  int stage = channel_stage(c, p);
  for (int i = 0; i < PROGRAM_AXES; i++) axis[i] = program_axis(p, stage, 0);
  struct px_map map = {.axis = axis, .load = graft_load, .data = &g};
  struct pair x = split(&norm, p, body, &map);
  int result = scale ? factor(p, x) : x.b;
  if (bias >= 0) result = sum_of(p, px_mul(p, px_load(p, input, 1, axis), factor(p, x)), result);
  program_define(p, stage, result);
  program_output(p, stage);
  graft_close(&g);
  return finish_value(c, &m, scale ? "scale" : "offset", value);
}

/* Replaces the normalisation by x + b, or by x * a + b; a and b are values, and a is -1 for x +
 * b. */
static canvas_status replace_norm(const struct change_of *c, int a, int b) {
  struct call_maker m = call_maker_open(a < 0 ? "add_offset" : "scale_offset");
  struct net_call *call = &c->n->calls.data[c->call];
  const struct program_tensor *t = &c->norm.p->tensors.data[c->norm.stage];
  int own[PROGRAM_AXES], made;
  char name[PROGRAM_NAME + 1];
  struct program *p = m.program;
  int x = call_maker_input(&m, call->arguments.data[c->norm.argument], c->norm.p, c->norm.x);
  const struct program_axis *channel = &t->axes[c->channel];
  int inputs[2] = {-1, -1}, values[2] = {a, b};
  for (int i = a < 0; i < 2; i++) {
    free_stage_name(p, i ? "B" : "A", name);
    inputs[i] = program_input(p, name, t->dtype, 1, &channel->name, &channel->size);
    program_input_constant(p, inputs[i]);
    VEC_PUSH(&m.arguments, values[i]);
  }
  int stage = graft_stage(p, t, "Y", t->dtype);
  for (int i = 0; i < t->rank; i++) own[i] = program_axis(p, stage, i);
  int result = px_load(p, x, t->rank, own);
  if (a >= 0) result = px_mul(p, result, px_load(p, inputs[0], 1, &own[c->channel]));
  program_define(p, stage, px_add(p, result, px_load(p, inputs[1], 1, &own[c->channel])));
  program_output(p, stage);
  TRY(call_maker_finish(c->ctx, &m, c->n, &made));
  network_replace_call(c->n, c->call);
  return CANVAS_OK;
}

static int *argument_for(struct network *n, const struct linear *l, int input) {
  int i = 0;
  while (l->p->inputs.data[i] != input) i++;
  return &n->calls.data[l->call].arguments.data[i];
}

static canvas_status into_weights(const struct change_of *c, const struct linear *l) {
  int weight, offset, bias = l->bias < 0 ? -1 : *argument_for(c->n, l, l->bias);
  TRY(make_weight(c, l, *argument_for(c->n, l, l->weight), &weight));
  TRY(make_channel(c, false, l, bias, &offset));
  *argument_for(c->n, l, l->weight) = weight;
  if (bias < 0) return replace_norm(c, -1, offset);
  *argument_for(c->n, l, l->bias) = offset;
  return CANVAS_OK;
}

static canvas_status into_two(const struct change_of *c) {
  int a, b;
  TRY(make_channel(c, true, NULL, -1, &a));
  TRY(make_channel(c, false, NULL, -1, &b));
  return replace_norm(c, a, b);
}

static int uses_of(const struct network *n, int value) {
  int count = network_is_output(n, value);
  for (int i = 0; i < n->calls.count; i++)
    for (int k = 0; k < n->calls.data[i].arguments.count; k++)
      count += n->calls.data[i].arguments.data[k] == value;
  return count;
}

/* Removes the normalisation: the call that computed x computes y. */
static void take_result(struct network *n, int call, int x, bool *dropped) {
  struct net_call *from = &n->calls.data[n->tensors.data[x].call];
  for (int i = 0; i < from->results.count; i++)
    if (from->results.data[i] == x) from->results.data[i] = n->calls.data[call].results.data[0];
  n->tensors.data[n->calls.data[call].results.data[0]].call = n->tensors.data[x].call;
  n->tensors.data[x].call = call;
  n->calls.data[call].results.data[0] = x;
  dropped[call] = true;
}

static canvas_status change_call(canvas_context *ctx, struct network *n, int call, bool *dropped) {
  struct change_of c = {.ctx = ctx, .n = n, .call = call};
  struct linear l;
  c.channel = find_norm(n, call, &c.norm);
  if (c.channel < 0 || !c.norm.products) return CANVAS_OK;
  int x = n->calls.data[call].arguments.data[c.norm.argument];
  bool value = n->tensors.data[x].kind == NET_VALUE && uses_of(n, x) == 1;
  if (!value || !find_linear(n, x, c.channel, &l))
    return c.norm.computed || c.norm.sums + c.norm.products > 2 ? into_two(&c) : CANVAS_OK;
  TRY(into_weights(&c, &l));
  if (l.bias >= 0) take_result(n, call, x, dropped);
  return CANVAS_OK;
}

canvas_status pass_batchnorm(canvas_context *ctx, struct network *n) {
  int calls = n->calls.count;
  bool *dropped = mem_alloc((size_t)(4 * calls) + 1); /* each change adds at most three calls */
  canvas_status status = CANVAS_OK;
  network_settle(n);
  for (int i = 0; i < calls && status == CANVAS_OK; i++) status = change_call(ctx, n, i, dropped);
  network_drop_calls(n, dropped);
  mem_free(dropped);
  network_constants_first(n);
  network_join_programs(n);
  return status;
}
