/* See json.h. */
#include "api/json.h"

void json_string(struct buf *out, const char *text) {
  buf_puts(out, "\"");
  for (const char *p = text; *p; p++) {
    unsigned char c = (unsigned char)*p;
    if (c == '"' || c == '\\')
      buf_printf(out, "\\%c", c);
    else if (c < 0x20)
      buf_printf(out, "\\u%04x", c);
    else
      buf_bytes(out, p, 1);
  }
  buf_puts(out, "\"");
}

void json_cost(struct buf *out, const canvas_cost *c) {
  buf_printf(out, "\"macs\": %lld, \"flops\": %lld, \"params\": %lld, \"activations\": %lld, ",
             (long long)c->macs, 2 * (long long)c->macs, (long long)c->params,
             (long long)c->activations);
  buf_printf(out, "\"elementwise\": %lld, \"bytes\": %lld", (long long)c->elementwise,
             (long long)c->bytes);
}
