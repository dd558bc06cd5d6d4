/* Interprets calls in order, on whole tensors. See network_interpret.h. */
#include "net/network_interpret.h"

#include <math.h>
#include <stdlib.h>

#include "program/interpret.h"

/* Smallest bytes per element: bytes / SMALLEST doubles are enough for an arena. */
enum { SMALLEST = 2 };

void network_fill(const struct network *n, int tensor, uint64_t seed, double *values) {
  const struct net_tensor *t = &n->tensors.data[tensor];
  struct program_tensor as = {
      .dtype = t->dtype, .rank = t->rank, .least = t->least, .most = t->most, .rising = t->rising};
  for (int i = 0; i < t->rank; i++) as.axes[i].size = t->sizes[i];
  tensor_fill(&as, t->kind == NET_WEIGHT ? tensor + 1 : 0, seed + (uint64_t)tensor, values);
}

struct run {
  canvas_context *ctx;
  const struct network *n;
  const double *const *given;
  double **value;                 /* by tensor: elements of a value */
  double *arena;                  /* memory of the plan; NULL: each value has its own */
  const struct memory_plan *plan; /* layout of the arena; NULL: none */
  int *last;                      /* by tensor: the last call that reads it */
  const struct network_evaluator *evaluator;
};

static const double *tensor_of(const struct run *r, int tensor) {
  return r->n->tensors.data[tensor].kind == NET_VALUE ? r->value[tensor] : r->given[tensor];
}

static canvas_status no_room(canvas_context *ctx, const struct network *n) {
  return fail(ctx, CANVAS_IO, "network '%.40s' needs more memory than there is", n->name);
}

static bool in_arena(const struct run *r, int tensor) {
  return r->arena && r->plan->values[tensor].offset >= 0;
}

/* Start of a value. Elements of all types take one double here, so that a part starts later by its
 * number of elements. */
static double *arena_place(const struct run *r, int tensor) {
  const struct planned_value *v = &r->plan->values[tensor];
  if (v->part_of < 0) return r->arena + v->offset / SMALLEST;
  const struct net_tensor *t = &r->n->tensors.data[tensor];
  int64_t size = network_bytes(t) / network_elements(t);
  return arena_place(r, v->part_of) + v->within / size;
}

static canvas_status make_room(struct run *r, const struct net_call *c) {
  for (int i = 0; i < c->results.count; i++) {
    int t = c->results.data[i];
    if (r->value[t]) continue; /* an output: memory of the caller */
    if (in_arena(r, t))
      r->value[t] = arena_place(r, t);
    else
      r->value[t] = mem_try((size_t)network_elements(&r->n->tensors.data[t]), sizeof(double));
    if (!r->value[t]) return no_room(r->ctx, r->n);
  }
  return CANVAS_OK;
}

canvas_status network_interpret_call(canvas_context *ctx, void *data, const struct program *p,
                                     const double *const *inputs, double *const *outputs) {
  struct interpreter *in = NULL;
  (void)data;
  canvas_status status = interpreter_new(ctx, p, inputs, NULL, &in);
  for (int i = 0; i < p->outputs.count && status == CANVAS_OK; i++) {
    int output = p->outputs.data[i];
    status = interpreter_elements(in, output, program_elements(p, output), NULL, outputs[i]);
  }
  interpreter_free(in);
  return status;
}

static canvas_status evaluate(struct run *r, const struct net_call *c) {
  const struct program *p = r->n->programs.data[c->program];
  const double **inputs = mem_alloc((size_t)(p->inputs.count + 1) * sizeof *inputs);
  double **outputs = mem_alloc((size_t)(p->outputs.count + 1) * sizeof *outputs);
  for (int i = 0; i < p->inputs.count; i++) inputs[i] = tensor_of(r, c->arguments.data[i]);
  for (int i = 0; i < p->outputs.count; i++) outputs[i] = r->value[c->results.data[i]];
  canvas_status status = r->evaluator->call(r->ctx, r->evaluator->data, p, inputs, outputs);
  mem_free(outputs);
  mem_free(inputs);
  return status;
}

static void drop_read(struct run *r, const struct net_call *c, int call) {
  for (int i = 0; i < c->arguments.count; i++) {
    int t = c->arguments.data[i];
    if (r->n->tensors.data[t].kind != NET_VALUE || r->last[t] != call || in_arena(r, t)) continue;
    if (network_is_output(r->n, t)) continue;
    mem_free(r->value[t]);
    r->value[t] = NULL;
  }
}

static void find_last(const struct run *r) {
  for (int c = 0; c < r->n->calls.count; c++)
    for (int i = 0; i < r->n->calls.data[c].arguments.count; i++)
      r->last[r->n->calls.data[c].arguments.data[i]] = c;
}

static canvas_status run_calls(struct run *r) {
  for (int c = 0; c < r->n->calls.count; c++) {
    TRY(make_room(r, &r->n->calls.data[c]));
    if (!r->plan || !r->plan->skipped[c]) TRY(evaluate(r, &r->n->calls.data[c]));
    drop_read(r, &r->n->calls.data[c], c);
  }
  return CANVAS_OK;
}

static void run_close(struct run *r) {
  for (int i = 0; i < r->n->tensors.count; i++)
    if (!in_arena(r, i) && !network_is_output(r->n, i)) mem_free(r->value[i]);
  mem_free(r->arena);
  mem_free(r->value);
  mem_free(r->last);
}

canvas_status network_interpret(canvas_context *ctx, const struct network *n,
                                const double *const *given, const struct memory_plan *plan,
                                double *const *out) {
  static const struct network_evaluator interpreter = {network_interpret_call, NULL};
  return network_evaluate(ctx, n, given, plan, &interpreter, out);
}

canvas_status network_evaluate(canvas_context *ctx, const struct network *n,
                               const double *const *given, const struct memory_plan *plan,
                               const struct network_evaluator *evaluator, double *const *out) {
  size_t tensors = (size_t)n->tensors.count + 1;
  struct run r = {.ctx = ctx, .n = n, .given = given, .plan = plan, .evaluator = evaluator};
  if (plan) r.arena = mem_try((size_t)plan->bytes / SMALLEST + 1, sizeof(double));
  if (plan && !r.arena) return no_room(ctx, n);
  r.value = mem_alloc(tensors * sizeof *r.value);
  r.last = mem_alloc(tensors * sizeof *r.last);
  for (int i = 0; i < n->outputs.count; i++) r.value[n->outputs.data[i]] = out[i];
  find_last(&r);
  canvas_status status = run_calls(&r);
  run_close(&r);
  return status;
}
