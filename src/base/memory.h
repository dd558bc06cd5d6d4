/* Memory: allocation with one answer to its failure, arenas by lifetime, and growing arrays.
 *
 * Failure. A call (base/memory_call.h) is one function of canvas.h at work, or one thread that such a function
 * started. While a call is active on a thread, the registry of the call notes what the thread allocates. Where
 * mem_alloc, mem_grow or an arena gets no memory, it ends the call: it runs the deferred cleanups, the newest
 * first, frees all that the registry notes, and jumps back to where the call began. So these functions never
 * return NULL, and no function of the core looks for it. What a user can make large (values of tensors) is
 * allocated with mem_try, and its failure is a status. The rules that follow:
 *
 *  - Memory that a call attaches to an object older than the call belongs to the object: mem_keep takes it out of
 *    the registry. mem_grow of memory older than the call keeps it so. An object is consistent whenever
 *    something is allocated: the new memory first, then the fields.
 *  - A call that changes much of an older object works on a copy and swaps at the end (networks).
 *  - A file, a mapping, a child process or a loaded object that is held while something is allocated has its
 *    cleanup deferred, by mem_defer.
 *  - Memory of the process (caches behind a mutex) is kept by mem_keep, and no lock is held while something
 *    is allocated, except by a thread whose deferred cleanup releases it.
 *  - Callbacks of the user run outside of the call (mem_outside): what they call are calls of their own.
 *  - Without a call (unit tests, children that were forked) a failure ends the process.
 *
 * There is no header before the memory: what mem_alloc returns may be freed by free(3) once the call has
 * returned.
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

/* From now on `p` belongs to an object older than the call: a failure of the call does not free it. */
void *mem_keep(void *p);

/* A cleanup that a failure of the call runs. The struct stands where it outlives its place in the list: beside
 * the resource, or on the stack of the function that takes it out again. */
struct mem_deferred {
  void (*function)(void *data);
  void *data;
  struct mem_deferred *older;
};
void mem_defer(struct mem_deferred *d, void (*function)(void *data), void *data);
void mem_undefer(struct mem_deferred *d); /* does not run it; fine where it is in no list */

struct arena {
  struct arena_block *blocks; /* newest first */
};

void *arena_alloc(struct arena *arena, size_t size); /* zeroed, aligned to 16 bytes */
char *arena_strndup(struct arena *arena, const char *text, size_t length);
void arena_free(struct arena *arena); /* frees every block; the arena is empty again */
void arena_join(struct arena *to, struct arena *from); /* `to` owns all blocks; `from` is empty */

/* VEC(T) declares the fields; VEC_PUSH(v, value) appends. */
#define VEC(T) \
  T *data;     \
  int count;   \
  int capacity
#define VEC_PUSH(v, value)                                                                    \
  do {                                                                                        \
    if ((v)->count == (v)->capacity) {                                                        \
      (v)->data = mem_grow((v)->data, (size_t)vec_larger((v)->capacity) * sizeof *(v)->data); \
      (v)->capacity = vec_larger((v)->capacity);                                              \
    }                                                                                         \
    (v)->data[(v)->count++] = (value);                                                        \
  } while (0)

/* Makes room for `more` behind the last one, to be written there. */
#define VEC_RESERVE(v, more)                                                                  \
  do {                                                                                        \
    while ((v)->capacity - (v)->count < (more)) {                                             \
      (v)->data = mem_grow((v)->data, (size_t)vec_larger((v)->capacity) * sizeof *(v)->data); \
      (v)->capacity = vec_larger((v)->capacity);                                              \
    }                                                                                         \
  } while (0)

static inline int vec_larger(int capacity) {
  return capacity ? 2 * capacity : 8;
}

#endif
