/* Targets: the layers to replace and what they cost. */
#include <stdlib.h>

#include "api/api_call.h"
#include "api/handle.h"
#include "api/json_cost.h"
#include "base/json.h"

API_STATUS(canvas_targets_parse,
           (canvas_context * ctx, const char *text, size_t length, canvas_targets **out),
           (ctx, text, length, out)) {
  NEED(out);
  canvas_targets *t = mem_alloc(sizeof *t);
  canvas_status status = targets_parse(ctx, text, length, &t->list);
  if (status != CANVAS_OK) {
    mem_free(t);
    return status;
  }
  *out = t;
  return CANVAS_OK;
}

void canvas_targets_free(canvas_targets *t) {
  if (!t) return;
  targets_free(&t->list);
  mem_free(t);
}

API_VALUE(char *, canvas_targets_print, (const canvas_targets *targets), (targets), NULL) {
  if (!targets) return NULL;
  struct buf out = {0};
  targets_print(&targets->list, &out);
  return buf_take(&out);
}

int canvas_targets_count(const canvas_targets *targets) {
  if (!targets) return 0;
  return targets->list.count;
}

const char *canvas_targets_name(const canvas_targets *targets, int target) {
  if (!targets) return NULL;
  return is_index(target, targets->list.count) ? targets->list.data[target].name : NULL;
}

API_STATUS(canvas_targets_cost,
           (canvas_context * ctx, const canvas_targets *targets, int target, canvas_cost *out),
           (ctx, targets, target, out)) {
  NEED(targets);
  NEED(out);
  struct cost sum = {0};
  if (target != -1) TRY(need_target(ctx, target, targets->list.count));
  for (int i = 0; i < targets->list.count; i++) {
    if (target >= 0 && i != target) continue;
    struct cost c = target_cost(&targets->list.data[i]);
    if (!cost_add(&sum, &c, 1) || sum.macs > INT64_MAX / 2)
      return fail(ctx, CANVAS_BAD_INPUT, "the cost of the targets passes 2^62, give fewer layers");
  }
  *out = cost_out(&sum);
  return CANVAS_OK;
}

API_STATUS(canvas_targets_cost_json,
           (canvas_context * ctx, const canvas_targets *targets, char **out), (ctx, targets, out)) {
  NEED(targets);
  NEED(out);
  canvas_cost cost;
  struct buf b = {0};
  TRY(canvas_targets_cost(ctx, targets, -1, &cost));
  buf_puts(&b, "{");
  json_cost(&b, &cost);
  buf_puts(&b, ", \"targets\": [");
  for (int i = 0; i < targets->list.count; i++) {
    struct cost c = target_cost(&targets->list.data[i]);
    cost = cost_out(&c);
    buf_puts(&b, i ? ", {\"name\": " : "{\"name\": ");
    json_string(&b, targets->list.data[i].name);
    buf_puts(&b, ", ");
    json_cost(&b, &cost);
    buf_puts(&b, "}");
  }
  buf_puts(&b, "]}");
  *out = buf_take(&b);
  return CANVAS_OK;
}
