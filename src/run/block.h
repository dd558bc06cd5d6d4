/* Memory for a tensor that code under suspicion reads or writes.
 *
 *     | no access | zone ... tensor ... zone | no access |
 *
 * The tensor begins at a multiple of 64 bytes. An input has no zones and ends right before what
 * cannot be accessed, so that reading past its end crashes; while a candidate runs it is read-only.
 * Before a run the zones around an output are filled with a canary, which has to be there after it,
 * and the output with poison, which has to be gone.
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
  unsigned char *first, *end; /* what may be touched */
  unsigned char *data;        /* the tensor, and its bytes */
  size_t size;
  struct block_hold *hold; /* of the mapping, while a call is active */
};

bool block_new(struct block *b, size_t size, bool zones); /* zeroed; false: no memory */
bool block_new_shared(struct block *b, size_t size);      /* without zones, shared with children */
bool block_new_small(struct block *b, size_t size);       /* without zones, in small pages */
/* Where a tensor is timed, with the same bytes: a copy of a small one, that ends `behind` bytes before the end of a
 * page, which can be read and written; else the block itself. There is no guard: beside one, a masked load or store of
 * the last few elements takes some hundred cycles, and a small program shall not be told them as its own. */
bool block_new_timed(const struct block *of, size_t behind, struct block *timed);
void block_free_timed(const struct block *of, struct block *timed);
void block_free(struct block *b);
void block_seal(const struct block *b); /* read-only from now on, in this process */

size_t dtype_bytes(enum program_dtype dtype);
double element_get(enum program_dtype dtype, const void *data, int64_t i);
void element_put(enum program_dtype dtype, void *data, int64_t i, double value);

/* Fills in the canary and one of two patterns of poison: they differ in every element, and each is a
 * nan that no arithmetic makes. */
void block_poison(const struct block *b, enum program_dtype dtype, int pattern);
bool element_poisoned(enum program_dtype dtype, const void *data, int64_t i, int pattern);

/* 0 if the canary lives; else the offset from the tensor's first byte (negative), or
 * from its end, plus 1, of the nearest byte that is not. */
int64_t block_harm(const struct block *b);

#endif
