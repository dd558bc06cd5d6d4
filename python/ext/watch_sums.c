/* See watch_sums.h. Sums beside each other, each turned before the next word is added: one word that changes
 * changes its sum whatever follows. Vectors of the compiler's, since gcc -O2 makes none of loops. */
#include "watch_sums.h"

#include <stdbool.h>
#include <string.h>

enum { SUMS = 4, LANES = 4, TURN = 5 };

/* Sums are multiplied, not turned, before others are added: words that change by as much, up and down, would cancel
 * where both are turned as often. */
#define MULTIPLIER UINT64_C(0x9E3779B97F4A7C15)
#define OF_LANES   UINT64_C(0xD6E8FEB86659FD93)

typedef uint64_t lanes __attribute__((vector_size(LANES * sizeof(uint64_t))));

/* Of two words, as most blocks of large networks are: each changes it, whatever the other is. */
static inline uint64_t sum_of_two(const void *memory) {
  uint64_t words[2];
  memcpy(words, memory, sizeof words);
  uint64_t first = words[0] * MULTIPLIER;
  return (first << 29 | first >> 35) + words[1];
}

#define TURNED(sum) ((sum) << TURN | (sum) >> (64 - TURN))

/* Written out: gcc -O2 keeps the sums of a loop over them in memory. */
static inline __attribute__((always_inline)) void add(lanes sums[SUMS], const char *at) {
  lanes word;
#define ADD(i)                                          \
  memcpy(&word, at + (i) * sizeof(lanes), sizeof word); \
  sums[i] = TURNED(sums[i]) + word
  ADD(0);
  ADD(1);
  ADD(2);
  ADD(3);
#undef ADD
}

/* Inlined into functions for machines that take these lanes at once and for those that take them in parts. */
static inline __attribute__((always_inline)) uint64_t sum_of(const char *at, size_t bytes) {
  lanes sums[SUMS] = {{0}};
  char last[sizeof sums] = {0};
  uint64_t sum = bytes;
  for (; bytes >= sizeof last; bytes -= sizeof last, at += sizeof last) add(sums, at);
  memcpy(last, at, bytes);
  add(sums, last);
  for (int k = 0; k < LANES; k++) {
    uint64_t lane = 0;
    for (int i = 0; i < SUMS; i++) lane = lane * MULTIPLIER + sums[i][k];
    sum = sum * OF_LANES + lane;
  }
  return sum;
}

static uint64_t sum_of_parts(const char *at, size_t bytes) {
  return sum_of(at, bytes);
}

#if defined(__x86_64__) && defined(__GNUC__)
static __attribute__((target("avx2"))) uint64_t sum_of_lanes(const char *at, size_t bytes) {
  return sum_of(at, bytes);
}

static bool takes_lanes(void) {
  return __builtin_cpu_supports("avx2");
}
#else
#define sum_of_lanes sum_of_parts

static bool takes_lanes(void) {
  return false;
}
#endif

uint64_t watch_sum(const void *memory, size_t bytes) {
  if (bytes == 2 * sizeof(uint64_t)) return sum_of_two(memory);
  return takes_lanes() ? sum_of_lanes(memory, bytes) : sum_of_parts(memory, bytes);
}
