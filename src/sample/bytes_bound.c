/* See bytes_bound.h. */
#include "sample/bytes_bound.h"

#include <string.h>

#include "base/saturating.h"

/* What a layer moves beside the nodes of a kernel. */
static int64_t fixed_bytes(const struct kernel *none, const struct binding *b) {
  struct cost c;
  return binding_cost(none, b, &c) ? c.bytes : 0;
}

static void add_layer(const struct kernel *none, const struct target *t, int64_t times,
                      const struct sizes *sizes, struct bytes_bound *out) {
  struct binding b = {.target = *t};
  target_sizes_as(t, false, &b.sizes, &b.copies);
  out->dense = saturating_add(out->dense, saturating_mul(times, rules_dense_bytes(t)));
  out->fixed = saturating_add(out->fixed, saturating_mul(times, fixed_bytes(none, &b)));
  for (int i = 0; i < out->copies.count; i++)
    if (!memcmp(&sizes[i], &b.sizes, sizeof b.sizes))
      out->copies.data[i] = saturating_add(out->copies.data[i], saturating_mul(times, b.copies));
}

void bytes_bound_open(const struct targets *layers, const int64_t *times, const struct sizes *sizes,
                      int count, struct bytes_bound *out) {
  struct kernel *none = kernel_new("");
  for (int i = 0; i < count; i++) VEC_PUSH(&out->copies, 0);
  for (int i = 0; i < layers->count; i++) add_layer(none, &layers->data[i], times[i], sizes, out);
  kernel_free(none);
}

void bytes_bound_close(struct bytes_bound *b) {
  mem_free(b->copies.data);
}

/* Elements of a shape over all layers, at least. */
static int64_t elements_of(const struct bytes_bound *b, struct dim_facts *facts,
                           const struct sizes *targets, const struct shape *s) {
  const int64_t *least[AXES_MAX];
  int64_t sum = 0;
  for (int i = 0; i < s->count; i++) {
    least[i] = dim_facts_of(facts, &s->axis[i].dim, targets, b->copies.count)->least;
    if (!least[i]) return 0;
  }
  for (int t = 0; t < b->copies.count; t++) {
    int64_t elements = b->copies.data[t];
    for (int i = 0; i < s->count; i++) elements = saturating_mul(elements, least[i][t]);
    sum = saturating_add(sum, elements);
  }
  return sum;
}

bool bytes_bound_broken(const struct bytes_bound *b, struct dim_facts *facts,
                        const struct sizes *targets, const struct rules *rules,
                        const struct kernel *k) {
  int64_t elements[KERNEL_NODES_MAX], moved = 0;
  struct shape weight;
  if (!(rules->on >> RULE_BYTES & 1)) return false;
  for (int i = 0; i < k->count; i++) {
    const struct node *n = &k->nodes[i];
    elements[i] = elements_of(b, facts, targets, &n->shape);
    if (node_row(n)->facts & FACT_MOVES) continue;
    moved = saturating_add(moved, elements[i]);
    for (int j = 0; j < node_row(n)->arity; j++) moved = saturating_add(moved, elements[n->in[j]]);
    if (node_weight(k, i, &weight))
      moved = saturating_add(moved, elements_of(b, facts, targets, &weight));
  }
  return saturating_add(saturating_mul(4, moved), b->fixed) > rules_bytes_most(rules, b->dense);
}
