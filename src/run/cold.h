/* Memory outside of all caches: enough copies of a function's tensors to evict each other.
 *
 *     | X W Y | X W Y | ... | X W Y |      each call uses another copy, cyclically
 *
 * Successive copies are far from each other, so that no prefetcher predicts the next. A call loads
 * inputs and weights from memory, as in a network that has done much else since. Repeated timing
 * with one set of tensors would find them in the caches.
 */
#ifndef CANVAS_RUN_COLD_H
#define CANVAS_RUN_COLD_H

#include "bind/machine.h"
#include "run/block.h"

/* Bytes that evict everything from the caches of that many threads: twice their capacity, at most a
 * quarter of a kernel's memory on the machine. */
int64_t cold_bytes(const struct machine *machine, int threads);

struct cold {
  void **pointers; /* tensors of the current copy */
  int count;
  size_t *offset; /* by pointer: byte offset within a copy */
  unsigned char *map;
  size_t mapped, set;
  int64_t sets, step, at;
};

/* Makes copies of `count` blocks, `bytes` in total, at least two; false: out of memory. Each block
 * is aligned to 64 bytes. */
bool cold_open(struct cold *c, const struct block *const *blocks, int count, int64_t bytes);
void cold_next(struct cold *c); /* sets `pointers` to the next copy */
void cold_close(struct cold *c);

#endif
