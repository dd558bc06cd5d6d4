/* See free_sizes.h. Every dim is p*x/q with one variable at most, so x is a multiple of every q. */
#include "sample/free_sizes.h"

#include "kernel/pack.h"

struct least {
  struct sizes *sizes;
  bool ok;
};

static bool visit_least(void *data, int node, const struct dim *d) {
  struct least *l = data;
  (void)node;
  int x = dim_variable(d, NULL);
  if (x < 0 || x >= VARIABLES || d->power[SIZE_X0 + x] != 1) return true;
  struct sizes ones = *l->sizes;
  int64_t num, den, *value = &l->sizes->value[SIZE_X0 + x];
  for (int v = 0; v < VARIABLES; v++) ones.value[SIZE_X0 + v] = 1;
  l->ok = dim_ratio(d, &ones, &num, &den);
  if (!l->ok) return false;
  *value = *value / gcd64(*value, den) * den;
  l->ok = *value <= SIZE_LIMIT;
  return l->ok;
}

static bool visit_value(void *data, int node, const struct dim *d) {
  int64_t value;
  (void)node;
  return dim_value(d, data, &value);
}

bool free_sizes_least(const struct kernel *k, struct sizes *sizes) {
  struct least l = {sizes, true};
  for (int x = 0; x < VARIABLES; x++) sizes->value[SIZE_X0 + x] = 1;
  return kernel_each_dim(k, visit_least, &l) && kernel_each_dim(k, visit_value, sizes);
}

bool free_sizes_usual(const struct kernel *k, struct sizes *sizes) {
  if (!free_sizes_least(k, sizes)) return false;
  for (int x = 0; x < VARIABLES; x++) {
    int64_t *value = &sizes->value[SIZE_X0 + x], half = sizes->value[SIZE_C] / 2;
    if (half > *value) *value *= (half + *value / 2) / *value;
  }
  return true;
}
