/* Programs: operations and bytes of their stages. */
#include "api/api_call.h"
#include "api/handle.h"
#include "base/json.h"
#include "base/saturating.h"
#include "program/program_cost.h"

int canvas_program_stages(const canvas_program *program) {
  if (!program) return 0;
  const struct program *p = program_of(program);
  return p->tensors.count - p->inputs.count;
}

/* The tensor that is the program's `stage`-th one. */
static int stage_tensor(const struct program *p, int stage) {
  int tensor = 0;
  while (p->tensors.data[tensor].is_input || stage-- > 0) tensor++;
  return tensor;
}

const char *canvas_program_stage(const canvas_program *program, int stage) {
  if (!program) return NULL;
  const struct program *p = program_of(program);
  if (!is_index(stage, canvas_program_stages(program))) return NULL;
  return p->tensors.data[stage_tensor(p, stage)].name;
}

static canvas_status count_tensor(canvas_context *ctx, const struct program *p, int tensor,
                                  canvas_count *out) {
  struct program_cost c;
  TRY(program_cost(ctx, p, tensor, &c));
  *out = (canvas_count){c.points, c.reduction, c.flops, c.read, c.written};
  return CANVAS_OK;
}

static canvas_status count_all(canvas_context *ctx, const struct program *p, canvas_count *out) {
  canvas_count sum = {0}, c;
  for (int i = 0; i < p->tensors.count; i++) {
    if (p->tensors.data[i].is_input) continue;
    TRY(count_tensor(ctx, p, i, &c));
    if (!checked_add(&sum.points, c.points) || !checked_add(&sum.flops, c.flops) ||
        !checked_add(&sum.read, c.read) || !checked_add(&sum.written, c.written))
      return fail(ctx, CANVAS_BAD_INPUT, "the program takes more than 2^62 operations");
  }
  *out = sum;
  return CANVAS_OK;
}

API_STATUS(canvas_program_count,
           (canvas_context * ctx, const canvas_program *program, int stage, canvas_count *out),
           (ctx, program, stage, out)) {
  NEED(program);
  NEED(out);
  const struct program *p = program_of(program);
  const int stages = canvas_program_stages(program);
  if (stage < -1 || stage >= stages)
    return fail(ctx, CANVAS_BAD_INPUT, "stage %d does not exist, '%s' has %d", stage, p->name,
                stages);
  if (stage < 0) return count_all(ctx, p, out);
  return count_tensor(ctx, p, stage_tensor(p, stage), out);
}

static void print_count(struct buf *b, const canvas_count *c) {
  buf_printf(b, "\"points\": %lld, ", (long long)c->points);
  if (c->reduction) buf_printf(b, "\"reduction\": %lld, ", (long long)c->reduction);
  buf_printf(b, "\"flops\": %lld, \"read\": %lld, \"written\": %lld", (long long)c->flops,
             (long long)c->read, (long long)c->written);
}

API_STATUS(canvas_program_count_json,
           (canvas_context * ctx, const canvas_program *program, char **out), (ctx, program, out)) {
  NEED(program);
  NEED(out);
  const struct program *p = program_of(program);
  canvas_count c;
  TRY(count_all(ctx, p, &c));
  struct buf b = {0};
  buf_puts(&b, "{\"program\": ");
  json_string(&b, p->name);
  buf_puts(&b, ", ");
  print_count(&b, &c);
  const char *before = ", \"stages\": [";
  for (int i = 0; i < p->tensors.count; i++) {
    if (p->tensors.data[i].is_input || count_tensor(ctx, p, i, &c)) continue;
    buf_printf(&b, "%s{\"name\": ", before);
    json_string(&b, p->tensors.data[i].name);
    buf_puts(&b, ", ");
    print_count(&b, &c);
    buf_puts(&b, "}");
    before = ", ";
  }
  buf_puts(&b, "]}");
  *out = buf_take(&b);
  return CANVAS_OK;
}
