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

/* Cost of a node. Nodes that compute write their result and read inputs and weights once.
 * elements[i]: of node i, noted of this one. */
static bool node_cost(const struct kernel *k, int node, const struct sizes *sizes,
                      int64_t *elements, struct cost *out) {
  const struct node *n = &k->nodes[node];
  const struct row *row = node_row(n);
  struct work w = {0};
  *out = (struct cost){0};
  if (row->family->work && !row->family->work(k, n, sizes, &w)) return false;
  out->macs = w.macs;
  out->params = w.params;
  out->elementwise = w.elementwise;
  if (!shape_elements(&n->shape, sizes, &elements[node])) return false;
  if (row->facts & FACT_MOVES) return true;
  out->activations = elements[node];
  if (!add(&out->bytes, elements[node], 4) || !add(&out->bytes, w.params, 4)) return false;
  for (int i = 0; i < row->arity; i++)
    if (!add(&out->bytes, elements[n->in[i]], 4)) return false;
  return true;
}

bool kernel_cost(const struct kernel *k, const struct sizes *sizes, struct cost *out) {
  int64_t elements[KERNEL_NODES_MAX];
  *out = (struct cost){0};
  for (int i = 0; i < k->count; i++) {
    struct cost c;
    if (!node_cost(k, i, sizes, elements, &c) || !cost_add(out, &c, 1)) return false;
  }
  return true;
}
