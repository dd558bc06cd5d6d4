/* Sums of memory, by which a change of it is noticed. */
#ifndef CANVAS_WATCH_SUMS_H
#define CANVAS_WATCH_SUMS_H

#include <stddef.h>
#include <stdint.h>

enum { WATCH_BLOCK = 4096 };

struct watch_block {
  uint64_t address, bytes, sum;
};

/* Another one for memory that differs in one word; for other changes nearly always. */
uint64_t watch_sum(const void *memory, size_t bytes);

#endif
