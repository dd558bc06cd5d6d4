/* Checks of what callers give: pointers, counts, indices and numbers of options. */
#include "api/handle.h"

canvas_status need_count(canvas_context *ctx, const char *name, const void *array, int64_t count) {
  if (count < 0)
    return fail(ctx, CANVAS_BAD_INPUT, "the number of '%s' is %lld, give 0 or more", name,
                (long long)count);
  if (count && !array) return fail(ctx, CANVAS_BAD_INPUT, "'%s' is NULL, give one", name);
  return CANVAS_OK;
}

canvas_status need_each(canvas_context *ctx, const char *name, const void *array, int64_t count) {
  const void *const *all = array;
  TRY(need_count(ctx, name, array, count));
  for (int64_t i = 0; i < count; i++)
    if (!all[i])
      return fail(ctx, CANVAS_BAD_INPUT, "'%s' holds NULL as number %lld", name, (long long)i);
  return CANVAS_OK;
}

canvas_status need_target(canvas_context *ctx, int target, int count) {
  if (is_index(target, count)) return CANVAS_OK;
  return fail(ctx, CANVAS_BAD_INPUT, "target %d does not exist, give 0 to %d", target, count - 1);
}

canvas_status check_numbers(canvas_context *ctx, const struct option_number *numbers, int count) {
  for (int i = 0; i < count; i++) {
    const struct option_number *n = &numbers[i];
    if (!(n->value >= 0))
      return fail(ctx, CANVAS_BAD_INPUT, "the option '%s' is %g, give 0 or more", n->name,
                  n->value);
    if (n->value > n->most)
      return fail(ctx, CANVAS_BAD_INPUT, "the option '%s' is %g, give at most %g", n->name,
                  n->value, n->most);
  }
  return CANVAS_OK;
}
