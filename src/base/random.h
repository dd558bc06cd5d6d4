/* Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy
 * as 1, 2, 3", SC 2011). A stream is named by (seed, stream, index) and gives the same numbers in
 * any process, thread or order; integers only.
 */
#ifndef CANVAS_BASE_RANDOM_H
#define CANVAS_BASE_RANDOM_H

#include <stdint.h>

struct random {
  uint32_t key[2];
  uint32_t counter[4];
  uint32_t block[4];
  int left; /* unread words of `block` */
};

/* What a stream is for: two purposes never share numbers. */
enum random_stream {
  RANDOM_DRAW = 1,
  RANDOM_EVAL,
  RANDOM_GAIN,
  RANDOM_TEST,
  RANDOM_MUTATE,
  RANDOM_TUNE,
  RANDOM_IDLE,
  RANDOM_TRIES
};

void random_open(struct random *r, uint64_t seed, enum random_stream stream, uint64_t index);
uint32_t random_u32(struct random *r);
uint64_t random_u64(struct random *r);
uint32_t random_below(struct random *r, uint32_t n); /* uniform in [0, n), unbiased; n >= 1 */
double random_normal(struct random *r);              /* standard normal (not for the sampler) */

#endif
