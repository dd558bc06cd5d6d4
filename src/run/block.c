/* Guarded memory for tensors of untrusted code. See block.h. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "run/block.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"

enum { ALIGNED = 64, CANARY = 0xA5 };
#define PAGE_LARGE ((size_t)2 << 20)
#define LARGE (2 * PAGE_LARGE) /* bytes from which a block uses large pages, as NumPy's arrays do */
#define TIMED_APART ((size_t)1 << 20) /* largest tensor in bytes that gets a copy for timing */
#define GUARD ((size_t)64 << 20) /* inaccessible bytes on each side; only addresses, no memory */

static size_t round_up(size_t size, size_t to) {
  return (size + to - 1) / to * to;
}

/* The mapping, released if the call runs out of memory. */
struct block_hold {
  struct mem_deferred deferred;
  void *map;
  size_t mapped;
};

static void unmap(void *data) {
  const struct block_hold *h = data;
  munmap(h->map, h->mapped);
}

static void release(struct block_hold *h) {
  if (h) mem_undefer(&h->deferred);
  mem_free(h);
}

static bool new_block(struct block *b, size_t size, size_t zone, int kind, size_t least) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t inner = round_up(round_up(size, ALIGNED) + 2 * zone, page);
  bool large = inner >= least;
  *b = (struct block){.mapped = inner + 2 * GUARD + (large ? PAGE_LARGE : 0), .size = size};
  b->hold = mem_try(1, sizeof *b->hold);
  void *map = b->hold
                  ? mmap(NULL, b->mapped, PROT_NONE, kind | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                  : MAP_FAILED;
  if (map == MAP_FAILED) {
    mem_free(b->hold);
    return false;
  }
  b->map = map;
  b->hold->map = map;
  b->hold->mapped = b->mapped;
  mem_defer(&b->hold->deferred, unmap, b->hold);
  b->first = b->map + GUARD;
  if (large) b->first += -(uintptr_t)b->first % PAGE_LARGE;
  b->end = b->first + inner;
  b->data = b->end - zone - round_up(size, ALIGNED);
#ifdef MADV_HUGEPAGE
  if (large) madvise(b->first, inner, MADV_HUGEPAGE);
#endif
  if (!mprotect(b->first, inner, PROT_READ | PROT_WRITE)) return true;
  block_free(b);
  return false;
}

bool block_new(struct block *b, size_t size, bool zones) {
  return new_block(b, size, zones ? (size_t)sysconf(_SC_PAGESIZE) : 0, MAP_PRIVATE, LARGE);
}

bool block_new_timed(const struct block *of, size_t behind, struct block *timed) {
  *timed = *of;
  if (!of->size || of->size > TIMED_APART) return true;
  if (!new_block(timed, of->size, behind, MAP_PRIVATE, LARGE)) return false;
  memcpy(timed->data, of->data, of->size);
  return true;
}

void block_free_timed(const struct block *of, struct block *timed) {
  if (timed->map != of->map) block_free(timed);
  timed->map = NULL;
}

bool block_new_shared(struct block *b, size_t size) {
  return new_block(b, size, 0, MAP_SHARED, LARGE);
}

bool block_new_small(struct block *b, size_t size) {
  return new_block(b, size, 0, MAP_PRIVATE, SIZE_MAX);
}

void block_free(struct block *b) {
  if (!b->map) return;
  release(b->hold);
  munmap(b->map, b->mapped);
  b->map = NULL;
}

void block_seal(const struct block *b) {
  mprotect(b->first, (size_t)(b->end - b->first), PROT_READ);
}

/* ---- elements -------------------------------------------------------------------------------- */

size_t dtype_bytes(enum program_dtype dtype) {
  return dtype == PROGRAM_F64 ? 8 : dtype == PROGRAM_BF16 ? 2 : 4;
}

double element_get(enum program_dtype dtype, const void *data, int64_t i) {
  uint32_t bits;
  float x;
  switch (dtype) {
    case PROGRAM_F64: return ((const double *)data)[i];
    case PROGRAM_I32: return ((const int32_t *)data)[i];
    case PROGRAM_F32: return (double)((const float *)data)[i];
    default:
      bits = (uint32_t)((const uint16_t *)data)[i] << 16;
      memcpy(&x, &bits, sizeof x);
      return (double)x;
  }
}

/* For bf16 the value must be representable. */
void element_put(enum program_dtype dtype, void *data, int64_t i, double value) {
  uint32_t bits;
  float x = (float)value;
  switch (dtype) {
    case PROGRAM_F64: ((double *)data)[i] = value; return;
    case PROGRAM_I32: ((int32_t *)data)[i] = (int32_t)value; return;
    case PROGRAM_F32: ((float *)data)[i] = x; return;
    default: memcpy(&bits, &x, sizeof bits); ((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
  }
}

/* ---- canary and poison ----------------------------------------------------------------------- */

static const uint64_t poison_f64[2] = {0x7FF4A5A5A5A5A5A5u, 0x7FF5B6B6B6B6B6B6u};
static const uint16_t poison_half[2] = {0x7FA5, 0x7FB6}; /* two of them form a NaN of f32 */

void block_poison(const struct block *b, enum program_dtype dtype, int pattern) {
  memset(b->first, CANARY, (size_t)(b->data - b->first));
  memset(b->data + b->size, CANARY, (size_t)(b->end - b->data) - b->size);
  if (dtype == PROGRAM_F64)
    for (size_t i = 0; i < b->size / 8; i++) ((uint64_t *)(void *)b->data)[i] = poison_f64[pattern];
  else
    for (size_t i = 0; i < b->size / 2; i++)
      ((uint16_t *)(void *)b->data)[i] = poison_half[pattern];
}

bool element_poisoned(enum program_dtype dtype, const void *data, int64_t i, int pattern) {
  const uint16_t half = poison_half[pattern];
  if (dtype == PROGRAM_F64) return ((const uint64_t *)data)[i] == poison_f64[pattern];
  if (dtype == PROGRAM_BF16) return ((const uint16_t *)data)[i] == half;
  return ((const uint32_t *)data)[i] == ((uint32_t)half << 16 | half);
}

int64_t block_harm(const struct block *b) {
  for (const unsigned char *p = b->data; p-- > b->first;)
    if (*p != CANARY) return p - b->data;
  for (const unsigned char *p = b->data + b->size; p < b->end; p++)
    if (*p != CANARY) return p - (b->data + b->size) + 1;
  return 0;
}
