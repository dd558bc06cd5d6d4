/* See memory.h. Arena blocks double from 4 KiB; a large request gets a block of its own size. */
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arena_block {
  struct arena_block *next;
  size_t used, size;
  _Alignas(16) unsigned char bytes[];
};

static void out_of_memory(size_t size) {
  fprintf(stderr, "canvas: out of memory (%zu bytes)\n", size);
  exit(2);
}

void *mem_alloc(size_t size) {
  void *p = calloc(1, size ? size : 1);
  if (!p) out_of_memory(size);
  return p;
}

void *mem_grow(void *old, size_t size) {
  void *p = realloc(old, size ? size : 1);
  if (!p) out_of_memory(size);
  return p;
}

void *mem_try(size_t count, size_t size) {
  return calloc(count ? count : 1, size ? size : 1);
}

void mem_free(void *p) {
  free(p);
}

char *mem_strndup(const char *text, size_t length) {
  char *copy = mem_alloc(length + 1);
  memcpy(copy, text, length);
  return copy;
}

char *mem_strdup(const char *text) {
  return mem_strndup(text, strlen(text));
}

void *arena_alloc(struct arena *arena, size_t size) {
  struct arena_block *b = arena->blocks;
  size = (size + 15) & ~(size_t)15;
  if (!b || b->size - b->used < size) {
    size_t want = b ? 2 * b->size : 4096;
    if (want < size) want = size;
    struct arena_block *fresh = mem_alloc(sizeof *fresh + want);
    fresh->next = b;
    fresh->size = want;
    arena->blocks = b = fresh;
  }
  void *p = b->bytes + b->used;
  b->used += size;
  return p;
}

char *arena_strndup(struct arena *arena, const char *text, size_t length) {
  char *copy = arena_alloc(arena, length + 1);
  memcpy(copy, text, length);
  return copy;
}

void arena_free(struct arena *arena) {
  for (struct arena_block *b = arena->blocks, *next; b; b = next) {
    next = b->next;
    mem_free(b);
  }
  arena->blocks = NULL;
}
