/* Memory: allocation that cannot fail quietly, arenas by lifetime, and growing arrays.
 *
 * Objects of the core are small and bounded by limits, so running out of memory for one of them
 * ends the process with an error message; what a user can make large (interpreter results) is asked for
 * with `mem_try` and answered with a status.
 *
 * An arena gives memory that is freed all at once. A vec is `T *data; int count, capacity` grown
 * by VEC_PUSH; the array is owned by the struct that holds it and freed with mem_free.
 */
#ifndef CANVAS_BASE_MEMORY_H
#define CANVAS_BASE_MEMORY_H

#include <stddef.h>

void *mem_alloc(size_t size);             /* zeroed, never NULL */
void *mem_grow(void *old, size_t size);   /* like realloc, never NULL */
void *mem_try(size_t count, size_t size); /* zeroed, NULL if it does not fit */
void mem_free(void *p);                   /* memory of any of these; NULL is nothing */
char *mem_strdup(const char *text);
char *mem_strndup(const char *text, size_t length);

struct arena {
  struct arena_block *blocks; /* newest first */
};

void *arena_alloc(struct arena *arena, size_t size); /* zeroed, aligned to 16 bytes */
char *arena_strndup(struct arena *arena, const char *text, size_t length);
void arena_free(struct arena *arena); /* frees every block; the arena is empty again */

/* VEC(T) declares the fields; VEC_PUSH(v, value) appends. */
#define VEC(T) \
  T *data;     \
  int count;   \
  int capacity
#define VEC_PUSH(v, value)                                                        \
  do {                                                                            \
    if ((v)->count == (v)->capacity) {                                            \
      (v)->capacity = (v)->capacity ? 2 * (v)->capacity : 8;                      \
      (v)->data = mem_grow((v)->data, (size_t)(v)->capacity * sizeof *(v)->data); \
    }                                                                             \
    (v)->data[(v)->count++] = (value);                                            \
  } while (0)

#endif
