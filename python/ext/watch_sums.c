/* See watch_sums.h. Eight sums beside each other, each turned before the next word is added: one word that
 * changes changes its sum whatever follows. Vectors of the compiler's, since gcc -O2 makes none of loops. */
#include "watch_sums.h"

#include <string.h>

enum { LANES = 2, TURN = 5 };

typedef uint64_t lanes __attribute__((vector_size(LANES * sizeof(uint64_t))));

static inline lanes added(lanes sum, const char *at) {
  lanes word;
  memcpy(&word, at, sizeof word);
  return (sum << TURN | sum >> (64 - TURN)) + word;
}

/* Of two words, as most blocks of large networks are: each changes it, whatever the other is. */
static inline uint64_t sum_of_two(const void *memory) {
  uint64_t words[2];
  memcpy(words, memory, sizeof words);
  uint64_t first = words[0] * UINT64_C(0x9E3779B97F4A7C15);
  return (first << 29 | first >> 35) + words[1];
}

uint64_t watch_sum(const void *memory, size_t bytes) {
  if (bytes == 2 * sizeof(uint64_t)) return sum_of_two(memory);
  enum { STEP = 4 * sizeof(lanes) };
  lanes a = {0}, b = {0}, c = {0}, d = {0};
  const char *at = memory;
  char last[STEP] = {0};
  uint64_t sum = bytes;
  for (; bytes >= STEP; bytes -= STEP, at += STEP) {
    a = added(a, at);
    b = added(b, at + sizeof(lanes));
    c = added(c, at + 2 * sizeof(lanes));
    d = added(d, at + 3 * sizeof(lanes));
  }
  memcpy(last, at, bytes);
  const lanes sums[] = {added(a, last), added(b, last + sizeof(lanes)),
                        added(c, last + 2 * sizeof(lanes)), added(d, last + 3 * sizeof(lanes))};
  for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
    for (int k = 0; k < LANES; k++) sum = sum * UINT64_C(0x9E3779B97F4A7C15) + sums[i][k];
  return sum;
}
