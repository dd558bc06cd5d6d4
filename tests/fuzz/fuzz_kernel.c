/* Kernel texts. */
#include "fuzz.h"

void fuzz(canvas_context *ctx, const char *text, size_t size) {
  canvas_kernel *kernel = NULL;
  if (fine(ctx, canvas_kernel_parse(ctx, text, size, &kernel))) check_kernel(ctx, kernel);
  canvas_kernel_free(kernel);
}
