/* Draws a kernel and prints it. The names of its helpers are names inside Canvas, too. */
#include <canvas.h>
#include <stdio.h>
#include <string.h>

int fail(const char *what);
int arena_alloc(void);
int calls = 0;

int fail(const char *what) {
  calls++;
  fprintf(stderr, "draw: %s\n", what);
  return 1;
}

int arena_alloc(void) {
  return ++calls;
}

int main(void) {
  static const char layers[] = "64,56,56";
  canvas_context *ctx = canvas_context_new();
  canvas_targets *targets = NULL;
  canvas_sampler *sampler = NULL;
  canvas_kernel *kernel = NULL;
  int64_t groups;
  if (canvas_targets_parse(ctx, layers, strlen(layers), &targets) ||
      canvas_sampler_new(ctx, targets, "", 0, 1, &sampler) ||
      canvas_sampler_draw(ctx, sampler, 0, &kernel, &groups))
    return fail(canvas_context_message(ctx));
  char *text = canvas_kernel_print(kernel);
  fputs(text, stdout);
  canvas_string_free(text);
  canvas_kernel_free(kernel);
  canvas_sampler_free(sampler);
  canvas_targets_free(targets);
  canvas_context_free(ctx);
  return calls; /* Canvas has called none of ours */
}
