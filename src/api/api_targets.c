/* Targets: the layers to replace and what they cost. */
#include <assert.h>
#include <stdlib.h>

#include "api/handle.h"
#include "api/json_cost.h"
#include "base/json.h"

canvas_status canvas_targets_parse(canvas_context *ctx, const char *text, size_t length,
                                   canvas_targets **out) {
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

char *canvas_targets_print(const canvas_targets *t) {
  struct buf out = {0};
  targets_print(&t->list, &out);
  return buf_take(&out);
}

int canvas_targets_count(const canvas_targets *t) {
  return t->list.count;
}

const char *canvas_targets_name(const canvas_targets *t, int target) {
  assert(target >= 0 && target < t->list.count);
  return t->list.data[target].name;
}

canvas_status canvas_targets_cost(canvas_context *ctx, const canvas_targets *t, int target,
                                  canvas_cost *out) {
  struct cost sum = {0};
  assert(target >= -1 && target < t->list.count);
  for (int i = 0; i < t->list.count; i++) {
    if (target >= 0 && i != target) continue;
    struct cost c = target_cost(&t->list.data[i]);
    if (!cost_add(&sum, &c, 1) || sum.macs > INT64_MAX / 2)
      return fail(ctx, CANVAS_BAD_INPUT, "the cost of the targets passes 2^62, give fewer layers");
  }
  *out = cost_out(&sum);
  return CANVAS_OK;
}

canvas_status canvas_targets_cost_json(canvas_context *ctx, const canvas_targets *t, char **out) {
  canvas_cost cost;
  struct buf b = {0};
  TRY(canvas_targets_cost(ctx, t, -1, &cost));
  buf_puts(&b, "{");
  json_cost(&b, &cost);
  buf_puts(&b, ", \"targets\": [");
  for (int i = 0; i < t->list.count; i++) {
    struct cost c = target_cost(&t->list.data[i]);
    cost = cost_out(&c);
    buf_puts(&b, i ? ", {\"name\": " : "{\"name\": ");
    json_string(&b, t->list.data[i].name);
    buf_puts(&b, ", ");
    json_cost(&b, &cost);
    buf_puts(&b, "}");
  }
  buf_puts(&b, "]}");
  *out = buf_take(&b);
  return CANVAS_OK;
}
