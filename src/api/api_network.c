/* Networks: text, their tensors, the interpreter, and the plan of their memory. */
#include <stdlib.h>

#include "api/api_call.h"
#include "api/handle.h"
#include "base/json.h"
#include "net/network_interpret.h"
#include "net/network_reference.h"
#include "net/passes.h"

static const struct network *network_of(const canvas_network *network) {
  return (const struct network *)network;
}

API_STATUS(canvas_network_parse,
           (canvas_context * ctx, const char *text, size_t length, canvas_network **out),
           (ctx, text, length, out)) {
  NEED(out);
  struct network *n;
  TRY(network_parse(ctx, text, length, &n));
  *out = (canvas_network *)n;
  return CANVAS_OK;
}

void canvas_network_free(canvas_network *network) {
  network_free((struct network *)network);
}

API_VALUE(char *, canvas_network_print, (const canvas_network *network), (network), NULL) {
  if (!network) return NULL;
  struct buf out = {0};
  network_print(network_of(network), &out);
  return buf_take(&out);
}

/* ---- tensors --------------------------------------------------------------------------------- */

static const enum net_kind kinds[] = {NET_INPUT, NET_WEIGHT};

int canvas_network_count(const canvas_network *network, canvas_role role) {
  if (!network) return 0;
  const struct network *n = network_of(network);
  int count = 0;
  if (!is_index((int)role, CANVAS_OUTPUT + 1)) return 0;
  if (role == CANVAS_OUTPUT) return n->outputs.count;
  for (int i = 0; i < n->tensors.count; i++) count += n->tensors.data[i].kind == kinds[role];
  return count;
}

/* The tensor's number, or -1. */
static int find_tensor(const struct network *n, canvas_role role, int index) {
  if (index < 0 || !is_index((int)role, CANVAS_OUTPUT + 1)) return -1;
  if (role == CANVAS_OUTPUT) return index < n->outputs.count ? n->outputs.data[index] : -1;
  for (int i = 0; i < n->tensors.count; i++)
    if (n->tensors.data[i].kind == kinds[role] && !index--) return i;
  return -1;
}

canvas_tensor canvas_network_tensor(const canvas_network *network, canvas_role role, int index) {
  if (!network) return (canvas_tensor){0};
  const struct network *n = network_of(network);
  int number = find_tensor(n, role, index);
  if (number < 0) return (canvas_tensor){0};
  const struct net_tensor *t = &n->tensors.data[number];
  canvas_tensor out = {.name = t->name,
                       .dtype = (canvas_dtype)t->dtype,
                       .rank = t->rank,
                       .elements = network_elements(t),
                       .least = t->least,
                       .most = t->most,
                       .rising = t->rising,
                       .constant = t->kind == NET_WEIGHT};
  for (int i = 0; i < t->rank; i++) out.sizes[i] = t->sizes[i];
  return out;
}

const char *canvas_network_source(const canvas_network *network, int weight) {
  if (!network) return NULL;
  int number = find_tensor(network_of(network), CANVAS_WEIGHT, weight);
  return number < 0 ? NULL : network_of(network)->tensors.data[number].source;
}

void canvas_network_fill(const canvas_network *network, canvas_role role, int index, uint64_t seed,
                         double *out) {
  if (!network || !out) return;
  int number = find_tensor(network_of(network), role, index);
  if (role != CANVAS_OUTPUT && number >= 0) network_fill(network_of(network), number, seed, out);
}

/* ---- programs -------------------------------------------------------------------------------- */

int canvas_network_programs(const canvas_network *network) {
  if (!network) return 0;
  return network_of(network)->programs.count;
}

API_VALUE(canvas_program *, canvas_network_program,
          (const canvas_network *network, int index, int *calls), (network, index, calls), NULL) {
  if (!network) return NULL;
  const struct network *n = network_of(network);
  int count = 0;
  if (calls) *calls = 0;
  if (!is_index(index, n->programs.count)) return NULL;
  for (int i = 0; i < n->calls.count; i++) {
    const struct net_call *c = &n->calls.data[i];
    count += c->program == index && !network_constant(n, c->results.data[0]);
  }
  if (calls) *calls = count;
  return (canvas_program *)program_copy(n->programs.data[index]);
}

/* ---- meaning --------------------------------------------------------------------------------- */

/* By the interpreter, or by the compiler's references. */
static canvas_status evaluate(canvas_context *ctx, const canvas_network *network,
                              const double *const *inputs, const double *const *weights,
                              const struct compiler *compiler, double *const *outputs) {
  const struct network *n = network_of(network);
  TRY(need_each(ctx, "inputs", inputs, canvas_network_count(network, CANVAS_INPUT)));
  TRY(need_each(ctx, "weights", weights, canvas_network_count(network, CANVAS_WEIGHT)));
  TRY(need_each(ctx, "outputs", outputs, n->outputs.count));
  const double **given = mem_alloc((size_t)(n->tensors.count + 1) * sizeof *given);
  for (int i = 0; i < n->tensors.count; i++) {
    if (n->tensors.data[i].kind == NET_INPUT) given[i] = *inputs++;
    if (n->tensors.data[i].kind == NET_WEIGHT) given[i] = *weights++;
  }
  canvas_status status = compiler ? network_reference(ctx, n, given, compiler, outputs)
                                  : network_interpret(ctx, n, given, NULL, outputs);
  mem_free(given);
  return status;
}

API_STATUS(canvas_network_evaluate,
           (canvas_context * ctx, const canvas_network *network, const double *const *inputs,
            const double *const *weights, double *const *outputs),
           (ctx, network, inputs, weights, outputs)) {
  NEED(network);
  return evaluate(ctx, network, inputs, weights, NULL, outputs);
}

API_STATUS(canvas_network_reference,
           (canvas_context * ctx, const canvas_network *network, const double *const *inputs,
            const double *const *weights, double *const *outputs),
           (ctx, network, inputs, weights, outputs)) {
  NEED(network);
  struct compiler *compiler;
  TRY(compiler_open(ctx, NULL, &compiler));
  canvas_status status = evaluate(ctx, network, inputs, weights, compiler, outputs);
  compiler_close(compiler);
  return status;
}

/* ---- passes ---------------------------------------------------------------------------------- */

API_STATUS(canvas_network_optimize,
           (canvas_context * ctx, canvas_network *network, const char *passes,
            const canvas_machine *machine),
           (ctx, network, passes, machine)) {
  NEED(network);
  const struct machine here = machine ? *machine_of(machine) : machine_here();
  struct network *n = (struct network *)network, *copy = network_copy(n);
  canvas_status status = network_optimize(ctx, copy, passes, &here);
  if (status == CANVAS_OK) {
    struct network before = *n;
    *n = *copy;
    *copy = before;
    arena_join(&n->arena, &copy->arena); /* names that the caller has */
  }
  network_free(copy);
  return status;
}

/* ---- memory ---------------------------------------------------------------------------------- */

struct shown {
  const char *name, *in_place_of, *part_of; /* NULL: of nothing */
  bool skipped;                             /* nothing runs for it */
  const struct planned_value *plan;
};

/* False: it is not in the arena. */
static bool show_value(const struct network *n, const struct memory_plan *plan, int tensor,
                       struct shown *out) {
  const struct planned_value *v = &plan->values[tensor];
  const char *other = v->in_place_of < 0 ? NULL : n->tensors.data[v->in_place_of].name;
  const char *whole = v->part_of < 0 ? NULL : n->tensors.data[v->part_of].name;
  *out = (struct shown){n->tensors.data[tensor].name, other, whole,
                        v->offset >= 0 && plan->skipped[n->tensors.data[tensor].call], v};
  return v->offset >= 0;
}

API_VALUE(char *, canvas_network_plan, (const canvas_network *network), (network), NULL) {
  if (!network) return NULL;
  const struct network *n = network_of(network);
  struct memory_plan plan = memory_plan_of(n);
  struct buf out = {0};
  struct shown v;
  buf_printf(&out, "%-20s %6s %6s %14s %14s\n", "value", "first", "last", "offset", "bytes");
  for (int i = 0; i < n->tensors.count; i++) {
    if (!show_value(n, &plan, i, &v)) continue;
    buf_printf(&out, "%-20s %6d %6d %14lld %14lld", v.name, v.plan->first, v.plan->last,
               (long long)v.plan->offset, (long long)v.plan->bytes);
    if (v.in_place_of) buf_printf(&out, "  in place of %s", v.in_place_of);
    if (v.part_of) buf_printf(&out, "  part of %s", v.part_of);
    if (v.skipped) buf_puts(&out, "  not copied");
    buf_puts(&out, "\n");
  }
  buf_printf(&out, "arena %lld bytes, %lld are alive at once, apart they would be %lld\n",
             (long long)plan.bytes, (long long)plan.least, (long long)plan.unshared);
  memory_plan_free(&plan);
  return buf_take(&out);
}

static void put_value(const struct shown *v, struct buf *out) {
  buf_puts(out, "{\"name\": ");
  json_string(out, v->name);
  buf_printf(out, ", \"first\": %d, \"last\": %d, \"offset\": %lld, \"bytes\": %lld",
             v->plan->first, v->plan->last, (long long)v->plan->offset, (long long)v->plan->bytes);
  if (v->in_place_of) {
    buf_puts(out, ", \"in_place_of\": ");
    json_string(out, v->in_place_of);
  }
  if (v->part_of) {
    buf_puts(out, ", \"part_of\": ");
    json_string(out, v->part_of);
  }
  if (v->skipped) buf_puts(out, ", \"skipped\": true");
  buf_puts(out, "}");
}

API_VALUE(char *, canvas_network_plan_json, (const canvas_network *network), (network), NULL) {
  if (!network) return NULL;
  const struct network *n = network_of(network);
  struct memory_plan plan = memory_plan_of(n);
  struct buf out = {0};
  struct shown v;
  const char *before = "";
  buf_printf(&out, "{\"bytes\": %lld, \"least\": %lld, \"apart\": %lld, \"values\": [",
             (long long)plan.bytes, (long long)plan.least, (long long)plan.unshared);
  for (int i = 0; i < n->tensors.count; i++) {
    if (!show_value(n, &plan, i, &v)) continue;
    buf_puts(&out, before);
    put_value(&v, &out);
    before = ", ";
  }
  buf_puts(&out, "]}");
  memory_plan_free(&plan);
  return buf_take(&out);
}
