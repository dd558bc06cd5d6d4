/* Memory that no cache holds: as many copies of what a function reads and writes as push each other out.
 *
 *     | X W Y | X W Y | ... | X W Y |      each call takes another, all of them before the first comes again
 *
 * Two that follow each other in time lie far apart, so that no prefetcher sees what comes next. A call then finds its inputs and weights, and the lines of its outputs, in memory, as it does inside a network
 * that has done much else since; what is timed again and again on one set of tensors finds them in the
 * caches.
 */
#ifndef CANVAS_RUN_COLD_H
#define CANVAS_RUN_COLD_H

#include "bind/machine.h"
#include "run/block.h"

/* Bytes that push everything out of the caches that so many threads use: twice as many as these hold, and at most
 * a quarter of what a kernel may take on the machine. */
int64_t cold_bytes(const struct machine *machine, int threads);

struct cold {
  void **pointers; /* of the set whose turn it is */
  int count;
  size_t *offset; /* by pointer, within a set */
  unsigned char *map;
  size_t mapped, set;
  int64_t sets, step, at;
};

/* Copies of `count` blocks, together about so many bytes, at least two sets; false: no memory. Each copy
 * begins at a multiple of 64 bytes. */
bool cold_open(struct cold *c, const struct block *const *blocks, int count, int64_t bytes);
void cold_next(struct cold *c); /* sets `pointers` */
void cold_close(struct cold *c);

#endif
