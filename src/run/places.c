/* Chooses elements of an output to evaluate. See places.h. */
#include "run/places.h"

#include <stdlib.h>

#include "base/random.h"

enum {
  TILE_MOST = 64,
  CONSTANTS = 64,
  FIRST = 1024 /* drawn first */
};

struct chooser {
  const struct places *of;
  struct random random;
  int64_t elements;
  int64_t constant[CONSTANTS];
  int constants;
};

static void keep_constant(struct chooser *c, int64_t value) {
  if (value < 1 || c->constants == CONSTANTS) return;
  for (int i = 0; i < c->constants; i++)
    if (c->constant[i] == value) return;
  c->constant[c->constants++] = value;
}

static void find_constants(struct chooser *c, const struct program *p) {
  for (int i = 0; i < p->nodes.count; i++)
    if (p->nodes.data[i].op == PX_INT) keep_constant(c, llabs(p->nodes.data[i].integer));
}

/* A coordinate next to a constant of the program, counted from either end. */
static int64_t beside_constant(struct chooser *c, int64_t size) {
  if (!c->constants) return 0;
  int64_t at = c->constant[random_below(&c->random, (uint32_t)c->constants)];
  at += (int64_t)random_below(&c->random, 3) - 1;
  if (random_below(&c->random, 2)) at = size - at;
  return at < 0 ? 0 : at < size ? at : size - 1;
}

/* A coordinate where something begins or ends. */
static int64_t special_place(struct chooser *c, int64_t size) {
  int64_t tile = 2 + random_below(&c->random, TILE_MOST - 1), last = size / tile * tile;
  switch (random_below(&c->random, 5)) {
    case 0: return 0;
    case 1: return size - 1;
    case 2: return last ? last - 1 : 0;
    case 3: return last < size ? last : size - 1;
    default: return beside_constant(c, size);
  }
}

static int64_t draw_place(struct chooser *c) {
  int64_t flat = 0;
  for (int i = 0; i < c->of->rank; i++) {
    int64_t size = c->of->sizes[i];
    int64_t at = random_below(&c->random, 2) ? special_place(c, size)
                                             : (int64_t)(random_u64(&c->random) % (uint64_t)size);
    flat = flat * size + at;
  }
  return flat;
}

/* Corner `number`: bit i selects the end of axis i. */
static int64_t corner(const struct places *of, unsigned number) {
  int64_t flat = 0;
  for (int i = 0; i < of->rank; i++)
    flat = flat * of->sizes[i] + (number >> i & 1 ? of->sizes[i] - 1 : 0);
  return flat;
}

static int64_t next_place(struct chooser *c, int64_t number) {
  int64_t corners = c->of->rank < 10 ? (int64_t)1 << c->of->rank : 1 << 10;
  return number < corners ? corner(c->of, (unsigned)number) : draw_place(c);
}

/* A step coprime to the number of elements, so that each is visited once and neighbours at
 * different times. */
static int64_t coprime_step(int64_t elements) {
  for (int64_t step = elements * 5 / 8 | 1;; step++) {
    int64_t a = step, b = elements;
    while (b) {
      int64_t rest = a % b;
      a = b;
      b = rest;
    }
    if (a == 1) return step;
  }
}

static void all_places(struct chooser *c, int64_t *at) {
  bool *seen = mem_alloc((size_t)c->elements);
  int64_t step = coprime_step(c->elements), count = 0;
  for (int64_t i = 0; i < FIRST + c->elements; i++) {
    int64_t place = i < FIRST ? next_place(c, i) : (i - FIRST) * step % c->elements;
    if (!seen[place]) at[count++] = place;
    seen[place] = true;
  }
  mem_free(seen);
}

void choose_places(const struct program *p, const struct places *of, int64_t count, int64_t *at) {
  struct chooser c = {.of = of, .elements = 1};
  for (int i = 0; i < of->rank; i++) c.elements *= of->sizes[i];
  random_open(&c.random, of->seed, RANDOM_TEST, (uint64_t)c.elements);
  find_constants(&c, p);
  if (of->whole)
    all_places(&c, at);
  else
    for (int64_t i = 0; i < count; i++) at[i] = next_place(&c, i);
}
