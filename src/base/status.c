/* The context's error message: control characters of quoted input never reach a terminal. */
#include "base/status.h"

#include <stdarg.h>

#include "base/number.h"

canvas_status fail(canvas_context *ctx, canvas_status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  text_vformat(ctx->message, sizeof ctx->message, format, args);
  va_end(args);
  for (char *p = ctx->message; *p; p++) {
    unsigned char c = (unsigned char)*p;
    if (c < 0x20 || c == 0x7f) *p = '?';
  }
  return status;
}
