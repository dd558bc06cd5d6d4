/* See random.h. */
#include "base/random.h"

#include <assert.h>
#include <math.h>

static void round_once(uint32_t c[4], const uint32_t k[2]) {
  uint64_t a = (uint64_t)0xD2511F53u * c[0], b = (uint64_t)0xCD9E8D57u * c[2];
  uint32_t c1 = c[1], c3 = c[3];
  c[0] = (uint32_t)(b >> 32) ^ c1 ^ k[0];
  c[1] = (uint32_t)b;
  c[2] = (uint32_t)(a >> 32) ^ c3 ^ k[1];
  c[3] = (uint32_t)a;
}

static void next_block(struct random *r) {
  uint32_t k[2] = {r->key[0], r->key[1]};
  for (int i = 0; i < 4; i++) r->block[i] = r->counter[i];
  for (int i = 0; i < 10; i++) {
    round_once(r->block, k);
    k[0] += 0x9E3779B9u;
    k[1] += 0xBB67AE85u;
  }
  r->counter[0]++; /* 2^34 numbers per stream: never exhausted here */
  r->left = 4;
}

void random_open(struct random *r, uint64_t seed, enum random_stream stream, uint64_t index) {
  *r = (struct random){
      .key = {(uint32_t)seed, (uint32_t)(seed >> 32)},
      .counter = {0, (uint32_t)stream, (uint32_t)index, (uint32_t)(index >> 32)},
  };
}

uint32_t random_u32(struct random *r) {
  if (!r->left) next_block(r);
  return r->block[4 - r->left--];
}

uint64_t random_u64(struct random *r) {
  uint64_t high = random_u32(r);
  return high << 32 | random_u32(r);
}

uint32_t random_below(struct random *r, uint32_t n) {
  assert(n >= 1);
  uint32_t reject = (0u - n) % n; /* 2^32 mod n values would be counted once too often */
  for (;;) {
    uint32_t x = random_u32(r);
    if (x >= reject) return x % n;
  }
}

double random_normal(struct random *r) {
  double u = (random_u32(r) + 1.0) / 4294967297.0, v = random_u32(r) / 4294967296.0;
  return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}
