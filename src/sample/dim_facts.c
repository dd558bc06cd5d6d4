/* See dim_facts.h: a table of fixed size in which a newer dim takes the place of an older one. */
#include "sample/dim_facts.h"

#include <string.h>

#include "base/memory.h"
#include "base/saturating.h"

enum { PLACES = 1 << 11 };

struct dim_facts {
  struct dim_fact at[PLACES];
  double *ratios; /* `most` for each place */
  int64_t *least; /* the same */
  int most;
};

struct dim_facts *dim_facts_new(int most) {
  struct dim_facts *f = mem_alloc(sizeof *f);
  f->ratios = mem_alloc((size_t)PLACES * (size_t)most * sizeof *f->ratios);
  f->least = mem_alloc((size_t)PLACES * (size_t)most * sizeof *f->least);
  f->most = most;
  return f;
}

void dim_facts_free(struct dim_facts *f) {
  if (!f) return;
  mem_free(f->ratios);
  mem_free(f->least);
  mem_free(f);
}

static size_t place_of(const struct dim *d, int64_t g, bool other) {
  uint64_t word[sizeof *d / 8], hash = (uint64_t)g * 2 + other;
  memcpy(word, d, sizeof word);
  for (size_t i = 0; i < sizeof word / sizeof *word; i++) {
    hash = (hash ^ word[i]) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 29;
  }
  return hash % PLACES;
}

/* C/2 rounded to a multiple of any number is two thirds of it at least. */
static int64_t least_usual(const struct sizes *sizes) {
  return int_max(1, (sizes->value[SIZE_C] / 2 * 2 + 2) / 3);
}

/* The value where free sizes are least, rounded up: it is whole. */
static bool least_values(const struct dim *d, const struct sizes *targets, int count,
                         int64_t *out) {
  for (int t = 0; t < count; t++) {
    struct sizes sizes = targets[t];
    int64_t num, den;
    for (int x = 0; x < VARIABLES; x++) sizes.value[SIZE_X0 + x] = least_usual(&targets[t]);
    if (!dim_ratio(d, &sizes, &num, &den)) return false;
    out[t] = num / den + (num % den != 0);
  }
  return true;
}

static bool ratios(const struct dim *d, const struct sizes *targets, int count, double *out) {
  for (int t = 0; t < count; t++) {
    struct sizes sizes = targets[t];
    int64_t num, den;
    for (int x = 0; x < VARIABLES; x++) sizes.value[SIZE_X0 + x] = 1;
    if (!dim_ratio(d, &sizes, &num, &den)) return false;
    out[t] = (double)num / (double)den;
  }
  return true;
}

static bool whole(const struct dim *d, const struct sizes *targets, int count) {
  if (!dim_is_whole(d)) return false;
  if (dim_variable(d, NULL) != VARIABLES) return true;
  for (int t = 0; t < count; t++) {
    int64_t value;
    if (!dim_value(d, &targets[t], &value)) return false;
  }
  return true;
}

const struct dim_fact *dim_facts_of(struct dim_facts *f, const struct dim *d,
                                    const struct sizes *targets, int count) {
  int64_t g = targets[0].value[SIZE_G];
  size_t place = place_of(d, g, targets[0].value[SIZE_S] > 1);
  struct dim_fact *fact = &f->at[place];
  if (fact->targets == targets && fact->g == g && dim_equal(&fact->dim, d)) return fact;
  double *ratio = f->ratios + place * (size_t)f->most;
  int64_t *least = f->least + place * (size_t)f->most;
  *fact = (struct dim_fact){.dim = *d, .targets = targets, .g = g};
  fact->whole = whole(d, targets, count);
  if (ratios(d, targets, count, ratio)) fact->ratio = ratio;
  if (least_values(d, targets, count, least)) fact->least = least;
  return fact;
}
