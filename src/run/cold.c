/* See cold.h. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "run/cold.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/memory.h"
#include "base/saturating.h"

enum {
  ALIGNED = 64,
  BEHIND = 4096 /* bytes after the last copy: vectors next to inaccessible memory are slow */
};

int64_t cold_bytes(const struct machine *machine, int threads) {
  int64_t own = saturating_mul(machine->l2, threads > 1 ? threads : 1);
  return int_min(saturating_mul(2, saturating_add(own, machine->l3)), machine->memory / 4);
}

static void copy_set(const struct cold *c, const struct block *const *blocks, int64_t set) {
  unsigned char *to = c->map + (size_t)set * c->set;
  for (int i = 0; i < c->count; i++) memcpy(to + c->offset[i], blocks[i]->data, blocks[i]->size);
}

/* About 0.62 of the number of sets, and coprime to it. */
static int64_t choose_step(int64_t sets) {
  for (int64_t step = sets - sets / 8 * 3;; step--) {
    int64_t a = sets, b = step;
    while (b) {
      int64_t rest = a % b;
      a = b;
      b = rest;
    }
    if (a == 1) return step;
  }
}

bool cold_open(struct cold *c, const struct block *const *blocks, int count, int64_t bytes) {
  *c = (struct cold){.count = count};
  c->pointers = mem_alloc((size_t)count * sizeof *c->pointers + 1);
  c->offset = mem_alloc((size_t)count * sizeof *c->offset + 1);
  for (int i = 0; i < count; i++) {
    c->offset[i] = c->set;
    c->set += (blocks[i]->size + ALIGNED - 1) / ALIGNED * ALIGNED;
  }
  if (!c->set) c->set = ALIGNED;
  c->sets = int_max(2, (bytes + (int64_t)c->set - 1) / (int64_t)c->set);
  c->step = choose_step(c->sets);
  c->mapped = (size_t)c->sets * c->set + BEHIND;
  void *map = mmap(NULL, c->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) {
    cold_close(c);
    return false;
  }
  c->map = map;
  for (int64_t i = 0; i < c->sets; i++) copy_set(c, blocks, i);
  return true;
}

void cold_next(struct cold *c) {
  unsigned char *set = c->map + (size_t)c->at * c->set;
  for (int i = 0; i < c->count; i++) c->pointers[i] = set + c->offset[i];
  c->at = (c->at + c->step) % c->sets;
}

void cold_close(struct cold *c) {
  if (c->map) munmap(c->map, c->mapped);
  mem_free(c->pointers);
  mem_free(c->offset);
  *c = (struct cold){0};
}
