/* Computes the cost of a kernel at given sizes: the work of its nodes, and the elements they read
 * and write. */
#include "kernel/kernel.h"

static bool add(int64_t *sum, int64_t value, int64_t times) {
  int64_t product;
  return !__builtin_mul_overflow(value, times, &product) &&
         !__builtin_add_overflow(*sum, product, sum);
}

bool cost_add(struct cost *sum, const struct cost *c, int64_t times) {
  return add(&sum->macs, c->macs, times) && add(&sum->params, c->params, times) &&
         add(&sum->activations, c->activations, times) &&
         add(&sum->elementwise, c->elementwise, times) && add(&sum->bytes, c->bytes, times);
}

/* Cost of a node. Nodes that compute write their result and read inputs and weights once. */
static bool node_cost(const struct kernel *k, const struct node *n, const struct sizes *sizes,
                      struct cost *out) {
  const struct row *row = node_row(n);
  struct work w = {0};
  int64_t elements;
  *out = (struct cost){0};
  if (row->family->work && !row->family->work(k, n, sizes, &w)) return false;
  out->macs = w.macs;
  out->params = w.params;
  out->elementwise = w.elementwise;
  if (!shape_elements(&n->shape, sizes, &elements)) return false;
  if (row->facts & FACT_MOVES) return true;
  out->activations = elements;
  if (!add(&out->bytes, elements, 4) || !add(&out->bytes, w.params, 4)) return false;
  for (int i = 0; i < row->arity; i++)
    if (!shape_elements(node_input(k, n, i), sizes, &elements) || !add(&out->bytes, elements, 4))
      return false;
  return true;
}

bool kernel_cost(const struct kernel *k, const struct sizes *sizes, struct cost *out) {
  *out = (struct cost){0};
  for (int i = 0; i < k->count; i++) {
    struct cost c;
    if (!node_cost(k, &k->nodes[i], sizes, &c) || !cost_add(out, &c, 1)) return false;
  }
  return true;
}
