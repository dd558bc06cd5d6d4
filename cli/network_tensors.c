/* See network_tensors.h. */
#include "network_tensors.h"

#include <math.h>
#include <stdlib.h>

static size_t element_bytes(canvas_dtype dtype) {
  static const size_t bytes[] = {4, 8, 2, 4};
  return bytes[dtype];
}

/* To nearest, ties to even. */
static uint16_t to_bf16(double value) {
  union {
    float value;
    uint32_t bits;
  } x = {.value = (float)value};
  if (isnan(x.value)) return (uint16_t)(x.bits >> 16 | 64);
  return (uint16_t)((x.bits + 0x7fff + (x.bits >> 16 & 1)) >> 16);
}

static double from_bf16(uint16_t bits) {
  union {
    uint32_t bits;
    float value;
  } x = {.bits = (uint32_t)bits << 16};
  return x.value;
}

double tensor_element(const canvas_tensor *t, const void *memory, int64_t i) {
  switch (t->dtype) {
    case CANVAS_F64: return ((const double *)memory)[i];
    case CANVAS_BF16: return from_bf16(((const uint16_t *)memory)[i]);
    case CANVAS_I32: return ((const int32_t *)memory)[i];
    default: return ((const float *)memory)[i];
  }
}

static void set_element(const canvas_tensor *t, void *memory, int64_t i, double value) {
  switch (t->dtype) {
    case CANVAS_F64: ((double *)memory)[i] = value; return;
    case CANVAS_BF16: ((uint16_t *)memory)[i] = to_bf16(value); return;
    case CANVAS_I32: ((int32_t *)memory)[i] = (int32_t)value; return;
    default: ((float *)memory)[i] = (float)value;
  }
}

void tensors_free(struct tensors *t) {
  for (int i = 0; i < t->count; i++) {
    if (t->number) free(t->number[i]);
    if (t->memory) free(t->memory[i]);
  }
  free(t->as);
  free(t->number);
  free(t->memory);
}

bool tensors_new(const canvas_network *n, canvas_role role, bool numbers, struct tensors *t) {
  size_t count = (size_t)canvas_network_count(n, role);
  *t = (struct tensors){(int)count, calloc(count + 1, sizeof *t->as),
                        calloc(count + 1, sizeof *t->number), calloc(count + 1, sizeof *t->memory)};
  if (!t->as || !t->number || !t->memory) return false;
  for (int i = 0; i < t->count; i++) {
    t->as[i] = canvas_network_tensor(n, role, i);
    size_t elements = (size_t)t->as[i].elements;
    t->memory[i] = calloc(elements, element_bytes(t->as[i].dtype));
    if (numbers) t->number[i] = calloc(elements, sizeof(double));
    if (!t->memory[i] || (numbers && !t->number[i])) return false;
  }
  return true;
}

bool tensors_fill(const canvas_network *n, canvas_role role, uint64_t seed, struct tensors *t) {
  for (int i = 0; i < t->count; i++) {
    const canvas_tensor *as = &t->as[i];
    double *number = t->number[i];
    if (!number) number = calloc((size_t)as->elements, sizeof(double));
    if (!number) return false;
    canvas_network_fill(n, role, i, seed, number);
    for (int64_t k = 0; k < as->elements; k++) {
      set_element(as, t->memory[i], k, number[k]);
      number[k] = tensor_element(as, t->memory[i], k);
    }
    if (!t->number[i]) free(number);
  }
  return true;
}
