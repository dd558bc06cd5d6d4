/* Calls: where a failed allocation returns to (base/memory.h has the rules). */
#ifndef CANVAS_BASE_MEMORY_CALL_H
#define CANVAS_BASE_MEMORY_CALL_H

#include <setjmp.h>
#include <stdbool.h>

#include "base/memory.h"

enum { MEM_FIRST = 64 }; /* slots of a registry before it is allocated; a power of two */

/* A hash table of what was allocated; NULL: a free slot. */
struct mem_registry {
  void **slots;
  size_t capacity, count;
  void *first[MEM_FIRST];
};

struct mem_call {
  jmp_buf failed;
  struct mem_registry *registry; /* its own, or that of another call */
  struct mem_deferred *deferred; /* the newest first */
  size_t wanted;                 /* bytes that could not be had, after a failure */
  struct mem_registry own;
};

/* Begins a call. False: this thread is in a call already, which also stands for what follows. After true the
 * caller sets `failed` at once, and ends the call by mem_leave unless it fails. */
bool mem_enter(struct mem_call *call);
void mem_leave(struct mem_call *call); /* what it allocated is the caller's */

/* A call in a thread that works for another call. Only one of the two runs at a time; they share the registry, and a
 * failure of the part frees nothing: the other call has to fail as well (mem_fail), once the part has ended. */
void mem_enter_part(struct mem_call *part, struct mem_call *of);

struct mem_call *mem_current(void); /* the call of this thread, or NULL */

/* Leaves the call of this thread aside for a while, and goes on with it. */
struct mem_call *mem_outside(void);
void mem_inside(struct mem_call *call);

/* Ends the call as an allocation of `size` bytes does that fails. */
_Noreturn void mem_fail(size_t size);

/* In a child that was forked: a failure ends the process. */
void mem_in_child(void);

/* For tests: the n-th allocation from now on fails, by whatever thread; 0: none. What is left of n. */
void mem_fail_at(long n);
long mem_fails_left(void);

#endif
