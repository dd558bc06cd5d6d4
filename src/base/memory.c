/* See memory.h. Arena blocks double from 4 KiB; a large request gets a block of its own size. */
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory_call.h"

struct arena_block {
  struct arena_block *next;
  size_t used, size;
  _Alignas(16) unsigned char bytes[];
};

static _Thread_local struct mem_call *current; /* the call that this thread is in, or NULL */
static bool is_child;
static atomic_long fail_at; /* for tests */

/* ---- failure ------------------------------------------------------------------------------------- */

/* Whether a test wants the allocation at hand to fail. */
static bool fails_now(void) {
  return atomic_load_explicit(&fail_at, memory_order_relaxed) > 0 &&
         atomic_fetch_sub_explicit(&fail_at, 1, memory_order_relaxed) == 1;
}

void mem_fail_at(long n) {
  atomic_store(&fail_at, n);
}

long mem_fails_left(void) {
  return atomic_load(&fail_at);
}

static void free_slots(struct mem_registry *r) {
  if (r->slots != r->first) free(r->slots);
}

/* A cleanup may allocate: where that fails, too, the rest of it is left out. */
_Noreturn void mem_fail(size_t size) {
  struct mem_call *call = current;
  if (!call) {
    fprintf(stderr, "canvas: out of memory: %zu bytes could not be had\n", size);
    if (is_child) _exit(2);
    exit(2);
  }
  if (!call->wanted) call->wanted = size ? size : 1;
  while (call->deferred) {
    struct mem_deferred *d = call->deferred;
    call->deferred = d->older;
    d->function(d->data);
  }
  struct mem_registry *r = call->registry;
  if (r == &call->own) {
    for (size_t i = 0; i < r->capacity; i++) free(r->slots[i]);
    free_slots(r);
  }
  current = NULL;
  longjmp(call->failed, 1);
}

/* ---- the registry ----------------------------------------------------------------------------- */

static size_t slot_of(const struct mem_registry *r, const void *p) {
  uint64_t hash = (uint64_t)((uintptr_t)p >> 4) * UINT64_C(0x9E3779B97F4A7C15);
  return (size_t)(hash >> 20) & (r->capacity - 1);
}

static void put(struct mem_registry *r, void *p) {
  size_t slot = slot_of(r, p);
  while (r->slots[slot]) slot = (slot + 1) & (r->capacity - 1);
  r->slots[slot] = p;
  r->count++;
}

static bool enlarge(struct mem_registry *r) {
  struct mem_registry larger = {.capacity = 4 * r->capacity};
  larger.slots = calloc(larger.capacity, sizeof *larger.slots);
  if (!larger.slots) return false;
  for (size_t i = 0; i < r->capacity; i++)
    if (r->slots[i]) put(&larger, r->slots[i]);
  free_slots(r);
  r->slots = larger.slots;
  r->capacity = larger.capacity;
  return true;
}

/* Room for one more; false: there is no memory. At most half of the slots are taken. */
static inline bool make_room(void) {
  struct mem_registry *r = current ? current->registry : NULL;
  return !r || 2 * r->count < r->capacity || enlarge(r);
}

/* Takes `p` out of the registry; false: it was not there. What comes behind it moves up. */
static bool forget(struct mem_registry *r, const void *p) {
  size_t mask = r->capacity - 1, hole = slot_of(r, p);
  while (r->slots[hole] != p) {
    if (!r->slots[hole]) return false;
    hole = (hole + 1) & mask;
  }
  for (size_t next = (hole + 1) & mask; r->slots[next]; next = (next + 1) & mask) {
    size_t home = slot_of(r, r->slots[next]);
    if (((next - home) & mask) < ((next - hole) & mask)) continue;
    r->slots[hole] = r->slots[next];
    hole = next;
  }
  r->slots[hole] = NULL;
  r->count--;
  return true;
}

/* ---- calls ------------------------------------------------------------------------------------ */

bool mem_enter(struct mem_call *call) {
  if (current) return false;
  struct mem_registry *r = call->registry = &call->own;
  r->slots = r->first;
  r->capacity = MEM_FIRST;
  r->count = call->wanted = 0;
  memset(r->first, 0, sizeof r->first);
  call->deferred = NULL;
  current = call;
  return true;
}

void mem_enter_part(struct mem_call *part, struct mem_call *of) {
  part->registry = of->registry;
  part->deferred = NULL;
  part->wanted = 0;
  current = part;
}

void mem_leave(struct mem_call *call) {
  if (call->registry == &call->own) free_slots(call->registry);
  current = NULL;
}

struct mem_call *mem_current(void) {
  return current;
}

struct mem_call *mem_outside(void) {
  struct mem_call *call = current;
  current = NULL;
  return call;
}

void mem_inside(struct mem_call *call) {
  current = call;
}

void mem_in_child(void) {
  current = NULL;
  is_child = true;
  mem_fail_at(0);
}

void mem_defer(struct mem_deferred *d, void (*function)(void *data), void *data) {
  *d = (struct mem_deferred){function, data, NULL};
  if (!current) return;
  d->older = current->deferred;
  current->deferred = d;
}

void mem_undefer(struct mem_deferred *d) {
  if (!current) return;
  for (struct mem_deferred **at = &current->deferred; *at; at = &(*at)->older)
    if (*at == d) {
      *at = d->older;
      return;
    }
}

/* ---- allocation ------------------------------------------------------------------------------- */

void *mem_alloc(size_t size) {
  if (fails_now() || !make_room()) mem_fail(size);
  void *p = calloc(1, size ? size : 1);
  if (!p) mem_fail(size);
  if (current) put(current->registry, p);
  return p;
}

void *mem_grow(void *old, size_t size) {
  if (fails_now() || !make_room()) mem_fail(size);
  bool noted = current && (!old || forget(current->registry, old));
  void *p = realloc(old, size ? size : 1);
  if (noted && (p || old)) put(current->registry, p ? p : old);
  if (!p) mem_fail(size);
  return p;
}

void *mem_try(size_t count, size_t size) {
  if (fails_now() || !make_room()) {
    errno = ENOMEM;
    return NULL;
  }
  void *p = calloc(count ? count : 1, size ? size : 1);
  if (p && current) put(current->registry, p);
  return p;
}

void mem_free(void *p) {
  if (current && p) forget(current->registry, p);
  free(p);
}

void *mem_keep(void *p) {
  if (current && p) forget(current->registry, p);
  return p;
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

void arena_join(struct arena *to, struct arena *from) {
  struct arena_block **end = &to->blocks;
  while (*end) end = &(*end)->next;
  *end = from->blocks;
  from->blocks = NULL;
}
