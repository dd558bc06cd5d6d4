/* See json_cost.h. */
#include "api/json_cost.h"

void json_cost(struct buf *out, const canvas_cost *c) {
  buf_printf(out, "\"macs\": %lld, \"flops\": %lld, \"params\": %lld, \"activations\": %lld, ",
             (long long)c->macs, 2 * (long long)c->macs, (long long)c->params,
             (long long)c->activations);
  buf_printf(out, "\"elementwise\": %lld, \"bytes\": %lld", (long long)c->elementwise,
             (long long)c->bytes);
}
