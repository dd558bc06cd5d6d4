/* See free_sizes.h. Every dim is p*x/q with one variable at most, so x is a multiple of every q. */
#include "sample/free_sizes.h"

#include "kernel/pack.h"

static bool visit_dim(void *data, int node, const struct dim *d) {
  struct kernel_dims *dims = data;
  (void)node;
  for (int i = 0; i < dims->count; i++)
    if (dim_equal(&dims->of[i], d)) return true;
  dims->of[dims->count++] = *d;
  return true;
}

void kernel_dims_list(const struct kernel *k, struct kernel_dims *out) {
  out->count = 0;
  kernel_each_dim(k, visit_dim, out);
}

/* Makes the variable of a dim a multiple of what it is divided by. */
static bool make_whole(const struct dim *d, struct sizes *sizes) {
  int x = dim_variable(d, NULL);
  if (x < 0 || x >= VARIABLES || d->power[SIZE_X0 + x] != 1) return true;
  struct sizes ones = *sizes;
  int64_t num, den, *value = &sizes->value[SIZE_X0 + x];
  for (int v = 0; v < VARIABLES; v++) ones.value[SIZE_X0 + v] = 1;
  if (!dim_ratio(d, &ones, &num, &den)) return false;
  *value = *value / gcd64(*value, den) * den;
  return *value <= SIZE_LIMIT;
}

bool free_sizes_least(const struct kernel_dims *dims, struct sizes *sizes) {
  int64_t value;
  for (int x = 0; x < VARIABLES; x++) sizes->value[SIZE_X0 + x] = 1;
  for (int i = 0; i < dims->count; i++)
    if (!make_whole(&dims->of[i], sizes)) return false;
  for (int i = 0; i < dims->count; i++)
    if (!dim_value(&dims->of[i], sizes, &value)) return false;
  return true;
}

bool free_sizes_usual(const struct kernel_dims *dims, struct sizes *sizes) {
  if (!free_sizes_least(dims, sizes)) return false;
  for (int x = 0; x < VARIABLES; x++) {
    int64_t *value = &sizes->value[SIZE_X0 + x], half = sizes->value[SIZE_C] / 2;
    if (half > *value) *value *= (half + *value / 2) / *value;
  }
  return true;
}
