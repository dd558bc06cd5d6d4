// The same in C++.
#include <canvas.h>

#include <cstdio>
#include <memory>
#include <string>

template <auto release>
struct with {
  template <class T>
  void operator()(T *object) const {
    release(object);
  }
};

int main() {
  const std::string layers = "64,56,56";
  std::unique_ptr<canvas_context, with<canvas_context_free>> ctx(canvas_context_new());
  canvas_targets *targets = nullptr;
  canvas_sampler *sampler = nullptr;
  canvas_kernel *kernel = nullptr;
  int64_t groups = 0;
  if (canvas_targets_parse(ctx.get(), layers.data(), layers.size(), &targets) != CANVAS_OK)
    return 1;
  std::unique_ptr<canvas_targets, with<canvas_targets_free>> owned_targets(targets);
  if (canvas_sampler_new(ctx.get(), targets, "", 0, 1, &sampler) != CANVAS_OK) return 1;
  std::unique_ptr<canvas_sampler, with<canvas_sampler_free>> owned_sampler(sampler);
  if (canvas_sampler_draw(ctx.get(), sampler, 0, &kernel, &groups) != CANVAS_OK) return 1;
  std::unique_ptr<canvas_kernel, with<canvas_kernel_free>> owned_kernel(kernel);
  std::unique_ptr<char, with<canvas_string_free>> text(canvas_kernel_print(kernel));
  std::fputs(text.get(), stdout);
  return 0;
}
