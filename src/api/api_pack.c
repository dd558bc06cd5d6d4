/* Packs: text, cost, and what they become (PyTorch, programs). Parsing is in reader.c. */
#include "api/api_call.h"
#include "api/handle.h"
#include "api/json_cost.h"
#include "base/json.h"
#include "lower/gain.h"
#include "lower/idle_weights.h"
#include "lower/lower.h"
#include "spell/spell.h"

void canvas_pack_free(canvas_pack *pack) {
  if (pack) pack_free((struct pack *)pack);
}

API_VALUE(char *, canvas_pack_print, (const canvas_pack *pack), (pack), NULL) {
  if (!pack) return NULL;
  struct buf out = {0};
  pack_print(pack_of(pack), &out);
  return buf_take(&out);
}

const canvas_kernel *canvas_pack_kernel(const canvas_pack *pack) {
  if (!pack) return NULL;
  return (const canvas_kernel *)pack_of(pack)->kernel;
}

int canvas_pack_kernels(const canvas_pack *pack) {
  return pack_kernels(pack_of(pack));
}

API_VALUE(canvas_pack *, canvas_pack_part, (const canvas_pack *pack, int kernel), (pack, kernel),
          NULL) {
  if (!is_index(kernel, canvas_pack_kernels(pack))) return NULL;
  return (canvas_pack *)pack_part(pack_of(pack), kernel);
}

API_VALUE(canvas_hash, canvas_pack_hash, (const canvas_pack *pack), (pack), (canvas_hash){0}) {
  if (!pack) return (canvas_hash){0};
  bool decided;
  struct hash hash = pack_hash(pack_of(pack), &decided);
  return hash_out(hash, decided);
}

API_STATUS(canvas_pack_compare,
           (canvas_context * ctx, const canvas_pack *a, const canvas_pack *b, char **out),
           (ctx, a, b, out)) {
  NEED(a);
  NEED(b);
  NEED(out);
  struct buf difference = {0};
  TRY(pack_compare(ctx, pack_of(a), pack_of(b), 0, &difference));
  *out = buf_take(&difference);
  return CANVAS_OK;
}

API_VALUE(char *, canvas_pack_formula, (const canvas_pack *pack, bool latex), (pack, latex), NULL) {
  if (!pack) return NULL;
  struct buf out = {0};
  spell_formula(pack_of(pack), latex, &out);
  return buf_take(&out);
}

API_VALUE(char *, canvas_pack_svg, (const canvas_pack *pack), (pack), NULL) {
  if (!pack) return NULL;
  struct buf out = {0};
  spell_pack_svg(pack_of(pack), &out);
  return buf_take(&out);
}

int canvas_pack_count(const canvas_pack *pack) {
  return pack_bindings(pack_of(pack));
}

const char *canvas_pack_target(const canvas_pack *pack, int target) {
  if (!is_index(target, canvas_pack_count(pack))) return NULL;
  const struct pack *p = pack_of_binding(pack_of(pack), &target);
  return p->data[target].target.name;
}

const canvas_kernel *canvas_pack_kernel_of(const canvas_pack *pack, int target) {
  if (!is_index(target, canvas_pack_count(pack))) return NULL;
  return (const canvas_kernel *)pack_of_binding(pack_of(pack), &target)->kernel;
}

int canvas_pack_kept(const canvas_pack *pack) {
  return pack ? pack_of(pack)->kept.count : 0;
}

const char *canvas_pack_kept_target(const canvas_pack *pack, int target) {
  return is_index(target, canvas_pack_kept(pack)) ? pack_of(pack)->kept.data[target].name : NULL;
}

canvas_cost canvas_pack_kept_cost(const canvas_pack *pack, int target) {
  if (!is_index(target, canvas_pack_kept(pack))) return (canvas_cost){0};
  struct cost cost = target_cost(&pack_of(pack)->kept.data[target]);
  return cost_out(&cost);
}

static const char *reach_of(const struct pack *p) {
  struct neighbours images = {0, 0};
  if (!p->count) return kernel_reach(p->kernel);
  for (int i = 0; i < p->count; i++) neighbours_add(&images, &p->data[i].sizes);
  return kernel_reach_on(p->kernel, images);
}

API_VALUE(const char *, canvas_pack_reach, (const canvas_pack *pack), (pack), NULL) {
  for (const struct pack *p = pack_of(pack); p; p = p->next)
    if (reach_of(p)) return reach_of(p);
  return NULL;
}

API_STATUS(canvas_pack_idle_weights, (canvas_context * ctx, const canvas_pack *pack, char **out),
           (ctx, pack, out)) {
  NEED(pack);
  NEED(out);
  struct buf lines = {0};
  for (const struct pack *p = pack_of(pack); p; p = p->next)
    for (int i = 0; i < p->count; i++)
      if (binding_check_idle(ctx, p->kernel, &p->data[i]) != CANVAS_OK)
        buf_printf(&lines, "%s\n", ctx->message);
  *out = buf_take(&lines);
  return CANVAS_OK;
}

static canvas_status want_bindings(canvas_context *ctx, const struct pack *p) {
  if (p->count) return CANVAS_OK;
  return fail(ctx, CANVAS_BAD_INPUT,
              "kernel '%s' has no sizes, give them in bind lines or as C=64,H=56,W=56",
              p->kernel->name);
}

/* The cost that was computed, if it `fits`. */
static canvas_status cost_within(canvas_context *ctx, const struct pack *p, bool fits,
                                 const struct cost *cost, canvas_cost *out) {
  if (!fits || cost->macs > INT64_MAX / 2)
    return fail(ctx, CANVAS_BAD_INPUT, "the cost of kernel '%s' passes 2^62, give smaller sizes",
                p->kernel->name);
  *out = cost_out(cost);
  return CANVAS_OK;
}

static canvas_status binding_cost_out(canvas_context *ctx, const struct pack *p, int index,
                                      canvas_cost *out) {
  struct cost cost;
  bool fits = binding_cost(p->kernel, &p->data[index], &cost);
  return cost_within(ctx, p, fits, &cost, out);
}

API_STATUS(canvas_pack_cost,
           (canvas_context * ctx, const canvas_pack *pack, int target, canvas_cost *out),
           (ctx, pack, target, out)) {
  NEED(pack);
  NEED(out);
  const struct pack *p = pack_of(pack);
  struct cost cost;
  TRY(want_bindings(ctx, p));
  if (target == -1) {
    bool fits = pack_cost(p, &cost);
    return cost_within(ctx, p, fits, &cost, out);
  }
  TRY(need_target(ctx, target, pack_bindings(p)));
  p = pack_of_binding(p, &target);
  return binding_cost_out(ctx, p, target, out);
}

/* `{"name": NAME, "kernel": NAME or null, "macs": .., ..}` of one target. */
static void print_target_cost(const char *name, const char *kernel, const canvas_cost *cost,
                              struct buf *out) {
  buf_puts(out, "{\"name\": ");
  json_string(out, name);
  buf_puts(out, ", \"kernel\": ");
  if (kernel)
    json_string(out, kernel);
  else
    buf_puts(out, "null");
  buf_puts(out, ", ");
  json_cost(out, cost);
  buf_puts(out, "}");
}

static canvas_status print_cost(canvas_context *ctx, const canvas_pack *pack, struct buf *out) {
  const struct pack *p = pack_of(pack);
  canvas_cost cost;
  TRY(canvas_pack_cost(ctx, pack, -1, &cost));
  buf_puts(out, "{\"kernel\": ");
  json_string(out, p->kernel->name);
  buf_printf(out, ", \"hash\": \"%s\", ", canvas_pack_hash(pack).hex);
  json_cost(out, &cost);
  buf_puts(out, ", \"targets\": [");
  const char *comma = "";
  for (const struct pack *at = p; at; at = at->next)
    for (int i = 0; i < at->count; i++, comma = ", ") {
      TRY(binding_cost_out(ctx, at, i, &cost));
      buf_puts(out, comma);
      print_target_cost(at->data[i].target.name, at->kernel->name, &cost, out);
    }
  buf_puts(out, "], \"kept\": [");
  for (int i = 0; i < p->kept.count; i++) {
    cost = canvas_pack_kept_cost(pack, i);
    if (i) buf_puts(out, ", ");
    print_target_cost(p->kept.data[i].name, NULL, &cost, out);
  }
  buf_puts(out, "]}");
  return CANVAS_OK;
}

API_STATUS(canvas_pack_cost_json, (canvas_context * ctx, const canvas_pack *pack, char **out),
           (ctx, pack, out)) {
  NEED(pack);
  NEED(out);
  struct buf b = {0};
  canvas_status status = print_cost(ctx, pack, &b);
  if (status == CANVAS_OK) *out = buf_take(&b);
  buf_free(&b);
  return status;
}

API_STATUS(canvas_pack_torch,
           (canvas_context * ctx, const canvas_pack *pack, bool patterns, char **out),
           (ctx, pack, patterns, out)) {
  NEED(pack);
  NEED(out);
  const struct pack *p = pack_of(pack);
  struct buf b = {0};
  TRY(want_bindings(ctx, p));
  struct gains *gains = mem_alloc((size_t)pack_kernels(p) * sizeof *gains), *of = gains;
  canvas_status status = CANVAS_OK;
  for (const struct pack *at = p; at && status == CANVAS_OK; at = at->next)
    status = gain_estimate(ctx, at->kernel, at, (of++)->of);
  if (status == CANVAS_OK) status = spell_torch(ctx, p, gains, patterns, &b);
  if (status == CANVAS_OK) *out = buf_take(&b);
  buf_free(&b);
  mem_free(gains);
  return status;
}

API_STATUS(canvas_pack_lower,
           (canvas_context * ctx, const canvas_pack *pack, int target, int64_t batch,
            canvas_program **out),
           (ctx, pack, target, batch, out)) {
  NEED(pack);
  NEED(out);
  const struct pack *p = pack_of(pack);
  struct program *program;
  TRY(want_bindings(ctx, p));
  if (!is_index(target, pack_bindings(p)))
    return fail(ctx, CANVAS_BAD_INPUT, "pack of '%s' has targets 0 to %d, not %d", p->kernel->name,
                pack_bindings(p) - 1, target);
  p = pack_of_binding(p, &target);
  if (batch < 1 || batch > SIZE_LIMIT)
    return fail(ctx, CANVAS_BAD_INPUT, "a batch has 1 to %lld samples, not %lld",
                (long long)SIZE_LIMIT, (long long)batch);
  TRY(lower_binding(ctx, p->kernel, &p->data[target], batch, &program));
  *out = (canvas_program *)program;
  return CANVAS_OK;
}
