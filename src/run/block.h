/* Guarded memory for tensors of untrusted code.
 *
 *     | no access | zone ... tensor ... zone | no access |
 *
 * The tensor is aligned to 64 bytes. An input has no zones and ends right before inaccessible
 * memory, so that reading past its end crashes; it is read-only while a candidate runs. Before a
 * run the zones around an output hold a canary, which must survive, and the output holds poison,
 * which must be overwritten.
 */
#ifndef CANVAS_RUN_BLOCK_H
#define CANVAS_RUN_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "program/program.h"

struct block {
  unsigned char *map; /* NULL: none */
  size_t mapped;
  unsigned char *first, *end; /* accessible range */
  unsigned char *data;        /* the tensor; its size in bytes */
  size_t size;
  struct block_hold *hold; /* releases the mapping if the call fails */
};

bool block_new(struct block *b, size_t size, bool zones); /* zeroed; false: out of memory */
bool block_new_shared(struct block *b, size_t size);      /* without zones, shared with children */
bool block_new_small(struct block *b, size_t size);       /* without zones, in small pages */
/* The memory in which a tensor is timed: a copy of a small tensor, ending `behind` bytes before the
 * end of an accessible page, else the block itself. Next to inaccessible memory a masked load or
 * store of the last elements takes hundreds of cycles, which is not the candidate's time. */
bool block_new_timed(const struct block *of, size_t behind, struct block *timed);
void block_free_timed(const struct block *of, struct block *timed);
void block_free(struct block *b);
void block_seal(const struct block *b); /* makes it read-only in this process */

size_t dtype_bytes(enum program_dtype dtype);
double element_get(enum program_dtype dtype, const void *data, int64_t i);
void element_put(enum program_dtype dtype, void *data, int64_t i, double value);

/* Writes the canary and one of two poison patterns. The patterns differ in every element; each is a
 * NaN that no arithmetic produces. */
void block_poison(const struct block *b, enum program_dtype dtype, int pattern);
bool element_poisoned(enum program_dtype dtype, const void *data, int64_t i, int pattern);

/* 0 if the canary is intact. Otherwise the nearest changed byte: its negative offset from the first
 * byte of the tensor, or its offset from the end plus 1. */
int64_t block_harm(const struct block *b);

#endif
