/* Integer arithmetic that cannot overflow: a sum or a product that would pass 2^62 is 2^62.
 *
 * For numbers >= 0: counts, sizes, bytes. Two numbers of at most 2^62 can be added as they are.
 */
#ifndef CANVAS_BASE_SATURATING_H
#define CANVAS_BASE_SATURATING_H

#include <stdbool.h>
#include <stdint.h>

#define SATURATED (INT64_C(1) << 62)

static inline int64_t int_min(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static inline int64_t int_max(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static inline int64_t saturating_add(int64_t a, int64_t b) {
  return a > SATURATED - b ? SATURATED : a + b;
}

static inline int64_t saturating_mul(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) || product > SATURATED ? SATURATED : product;
}

/* *value += by, *value *= by; false, and *value is as it was, where that passes 2^62. */
static inline bool checked_add(int64_t *value, int64_t by) {
  if (*value > SATURATED - by) return false;
  *value += by;
  return true;
}

static inline bool checked_mul(int64_t *value, int64_t by) {
  int64_t product;
  if (__builtin_mul_overflow(*value, by, &product) || product > SATURATED) return false;
  *value = product;
  return true;
}

#endif
