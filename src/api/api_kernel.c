/* Kernels: text, identity, facts, picture, and sizes given by hand. */
#include "api/api_call.h"
#include "api/handle.h"
#include "kernel/kernel_simplify.h"
#include "kernel/kernel_stride.h"
#include "lower/kernel_value.h"
#include "spell/spell.h"

void canvas_kernel_free(canvas_kernel *kernel) {
  kernel_free((struct kernel *)kernel);
}

API_VALUE(char *, canvas_kernel_print, (const canvas_kernel *kernel), (kernel), NULL) {
  if (!kernel) return NULL;
  struct buf out = {0};
  kernel_print(kernel_of(kernel), &out);
  return buf_take(&out);
}

const char *canvas_kernel_name(const canvas_kernel *kernel) {
  if (!kernel) return NULL;
  return kernel_of(kernel)->name;
}

canvas_hash hash_out(struct hash hash, bool decided) {
  canvas_hash out = {"", decided};
  uint64_t half[2] = {hash.high, hash.low};
  for (int i = 0; i < 32; i++)
    out.hex[i] = "0123456789abcdef"[half[i / 16] >> (60 - i % 16 * 4) & 15];
  return out;
}

API_VALUE(canvas_hash, canvas_kernel_hash, (const canvas_kernel *kernel), (kernel),
          (canvas_hash){0}) {
  if (!kernel) return (canvas_hash){0};
  bool decided;
  struct hash hash = kernel_hash(kernel_of(kernel), &decided);
  return hash_out(hash, decided);
}

API_VALUE(canvas_hash, canvas_kernel_value, (const canvas_kernel *kernel), (kernel),
          (canvas_hash){0}) {
  if (!kernel) return (canvas_hash){0};
  struct hash value;
  bool known = kernel_value(kernel_of(kernel), &value);
  return hash_out(known ? value : kernel_hash(kernel_of(kernel), NULL), known);
}

API_VALUE(canvas_kernel *, canvas_kernel_simplify, (const canvas_kernel *kernel), (kernel), NULL) {
  if (!kernel) return NULL;
  return (canvas_kernel *)kernel_simplify(kernel_of(kernel));
}

API_STATUS(canvas_kernel_stride,
           (canvas_context * ctx, const canvas_kernel *kernel, const char *mode,
            canvas_kernel **out),
           (ctx, kernel, mode, out)) {
  NEED(kernel);
  NEED(mode);
  NEED(out);
  enum stride_mode stride;
  struct kernel *made;
  TRY(stride_mode_parse(ctx, mode, &stride));
  TRY(kernel_with_stride(ctx, kernel_of(kernel), stride, &made));
  *out = (canvas_kernel *)made;
  return CANVAS_OK;
}

API_VALUE(const char *, canvas_kernel_reach, (const canvas_kernel *kernel), (kernel), NULL) {
  if (!kernel) return NULL;
  return kernel_reach(kernel_of(kernel));
}

API_VALUE(canvas_kernel_facts, canvas_kernel_describe, (const canvas_kernel *kernel), (kernel),
          (canvas_kernel_facts){0}) {
  if (!kernel) return (canvas_kernel_facts){0};
  const struct kernel *k = kernel_of(kernel);
  canvas_kernel_facts facts = {
      .primitives = kernel_primitives(k),
      .has_weights = kernel_has_weights(k),
      .uses_groups = kernel_uses(k, SIZE_G),
      .uses_stride = kernel_uses(k, SIZE_S),
      .needs_fixed_hw = kernel_needs_fixed_hw(k),
  };
  for (unsigned x = kernel_variables(k); x; x >>= 1) facts.variables += x & 1;
  return facts;
}

API_VALUE(char *, canvas_kernel_dot, (const canvas_kernel *kernel), (kernel), NULL) {
  if (!kernel) return NULL;
  struct buf out = {0};
  spell_dot(kernel_of(kernel), &out);
  return buf_take(&out);
}

API_VALUE(char *, canvas_kernel_svg, (const canvas_kernel *kernel), (kernel), NULL) {
  if (!kernel) return NULL;
  struct buf out = {0};
  spell_svg(kernel_of(kernel), &out);
  return buf_take(&out);
}

API_STATUS(canvas_kernel_bind,
           (canvas_context * ctx, const canvas_kernel *kernel, const char *at, size_t length,
            canvas_pack **out),
           (ctx, kernel, at, length, out)) {
  NEED(kernel);
  NEED(out);
  struct binding binding;
  TRY(binding_parse_at(ctx, at, length, &binding));
  struct pack *p = pack_new(kernel_of(kernel));
  canvas_status status = pack_bind(ctx, p, &binding);
  if (status != CANVAS_OK) {
    pack_free(p);
    return status;
  }
  *out = (canvas_pack *)p;
  return CANVAS_OK;
}
