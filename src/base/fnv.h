/* FNV-1a, 64 bits: a checksum that notices damage, and hides nothing. */
#ifndef CANVAS_BASE_FNV_H
#define CANVAS_BASE_FNV_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t fnv(const void *data, size_t length) {
  const unsigned char *bytes = data;
  uint64_t sum = UINT64_C(0xCBF29CE484222325);
  for (size_t i = 0; i < length; i++) sum = (sum ^ bytes[i]) * UINT64_C(0x100000001B3);
  return sum;
}

#endif
