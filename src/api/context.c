/* Contexts, strings and the version. */
#include <stdlib.h>

#include "api/api_call.h"
#include "base/status.h"

const char *canvas_version(void) {
  return CANVAS_VERSION;
}

API_VALUE(canvas_context *, canvas_context_new, (void), (), NULL) {
  return mem_alloc(sizeof(canvas_context));
}

void canvas_context_free(canvas_context *ctx) {
  mem_free(ctx);
}

const char *canvas_context_message(const canvas_context *ctx) {
  if (!ctx) return "";
  return ctx->message;
}

void canvas_string_free(char *text) {
  mem_free(text);
}
