/* Identity of kernels: a hash of a canonical form.
 *
 * The vertices are the nodes and the variables x. Colours start from what a vertex is and are
 * refined by the colours around it (inputs in order, or as a set where a commutative blend has
 * inputs of equal shape; consumers; the variables of an attribute) until no class splits any more.
 * Where classes of several vertices remain, each vertex of the smallest class is set apart in turn
 * and refined again; the least certificate over all leaves is the answer (the scheme of
 * McKay's canonical labelling, without its pruning). The search tree is the same for isomorphic
 * kernels, and what tells two apart stands in the certificate: the colours only keep the tree small.
 * A kernel that passes the tree's limit is answered by the colours alone, which are equal
 * for isomorphic kernels too but might, for such a kernel, be equal for another one.
 */
#include <string.h>

#include "kernel/kernel.h"

enum { VERTICES = KERNEL_NODES_MAX + VARIABLES, LEAVES = 720 };

struct colouring {
  const struct kernel *k;
  int nodes, count;              /* vertices: nodes, then all variables that occur */
  enum size variable[VARIABLES]; /* vertex nodes + i */
  bool swaps[KERNEL_NODES_MAX];  /* inputs of this node are a set */
  int leaves;
  struct hash best;
};

static uint64_t mix(uint64_t h, uint64_t value) {
  h ^= value + UINT64_C(0x9E3779B97F4A7C15) + (h << 6) + (h >> 2);
  h = (h ^ (h >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  h = (h ^ (h >> 27)) * UINT64_C(0x94D049BB133111EB);
  return h ^ (h >> 31);
}

bool hash_equal(struct hash a, struct hash b) {
  return a.high == b.high && a.low == b.low;
}

/* What a node is, apart from its neighbours and variables. */
static uint64_t own_colour(const struct node *n) {
  uint64_t h = mix(1, (uint64_t)n->op);
  h = mix(h, n->attrs.over | (uint64_t)n->attrs.zero_fill << 32);
  h = mix(h, (uint64_t)(int64_t)n->attrs.amount);
  h = mix(h, (uint64_t)n->attrs.dim.num << 32 | (uint32_t)n->attrs.dim.den);
  for (int s = 0; s < SIZE_X0; s++) h = mix(h, (uint64_t)(int64_t)n->attrs.dim.power[s]);
  return h;
}

static void refine_once(const struct colouring *c, const uint64_t old[VERTICES],
                        uint64_t new[VERTICES]) {
  uint64_t around[VERTICES] = {0}; /* sums: order does not count */
  for (int i = 0; i < c->nodes; i++) {
    const struct node *n = &c->k->nodes[i];
    uint64_t inputs = 0;
    for (int j = 0; j < node_row(n)->arity; j++) {
      uint64_t place = c->swaps[i] ? 0 : (uint64_t)j + 1;
      inputs += mix(old[n->in[j]], 100 + place);
      around[n->in[j]] += mix(old[i], 200 + place);
    }
    around[i] += mix(inputs, 300);
    for (int v = c->nodes; v < c->count; v++) {
      int power = n->attrs.dim.power[c->variable[v - c->nodes]];
      if (!power) continue;
      around[i] += mix(old[v], (uint64_t)(400 + power));
      around[v] += mix(old[i], (uint64_t)(500 + power));
    }
  }
  for (int v = 0; v < c->count; v++) new[v] = mix(old[v], around[v]);
}

static int classes(const struct colouring *c, const uint64_t colour[VERTICES]) {
  int count = 0;
  for (int v = 0; v < c->count; v++) {
    int first = 0;
    while (colour[first] != colour[v]) first++;
    count += first == v;
  }
  return count;
}

/* Refines until no class splits; returns the number of classes. */
static int refine(const struct colouring *c, uint64_t colour[VERTICES]) {
  for (int before = classes(c, colour), now;; before = now) {
    uint64_t next[VERTICES];
    refine_once(c, colour, next);
    memcpy(colour, next, (size_t)c->count * sizeof *colour);
    now = classes(c, colour);
    if (now == before) return now;
  }
}

/* The kernel written down in the order of its (all different) colours. */
static struct hash certificate(const struct colouring *c, const uint64_t colour[VERTICES]) {
  int rank[VERTICES], order[VERTICES];
  for (int v = 0; v < c->count; v++) {
    rank[v] = 0;
    for (int u = 0; u < c->count; u++) rank[v] += colour[u] < colour[v];
    order[rank[v]] = v;
  }
  struct hash h = {UINT64_C(0x243F6A8885A308D3), UINT64_C(0x13198A2E03707344)};
#define WRITE(value) h.high = mix(h.high, (uint64_t)(value)), h.low = mix(~h.low, (uint64_t)(value))
  for (int i = 0; i < c->count; i++) {
    int v = order[i];
    if (v >= c->nodes) continue;
    const struct node *n = &c->k->nodes[v];
    int a = n->in[0] < 0 ? -1 : rank[n->in[0]], b = n->in[1] < 0 ? -1 : rank[n->in[1]];
    if (c->swaps[v] && a > b) {
      int t = a;
      a = b;
      b = t;
    }
    WRITE(i), WRITE(own_colour(n)), WRITE(a), WRITE(b);
    for (int u = 0; u < c->count; u++)
      if (order[u] >= c->nodes) {
        WRITE(u);
        WRITE(n->attrs.dim.power[c->variable[order[u] - c->nodes]]);
      }
  }
#undef WRITE
  return h;
}

/* The vertices of the smallest class of several, ties by colour; how many. */
static int smallest_class(const struct colouring *c, const uint64_t colour[VERTICES],
                          int members[VERTICES]) {
  int size = VERTICES + 1;
  uint64_t chosen = 0;
  for (int v = 0; v < c->count; v++) {
    int same = 0;
    for (int u = 0; u < c->count; u++) same += colour[u] == colour[v];
    if (same == 1 || same > size || (same == size && colour[v] >= chosen)) continue;
    size = same;
    chosen = colour[v];
  }
  int count = 0;
  for (int v = 0; v < c->count; v++)
    if (colour[v] == chosen) members[count++] = v;
  return count;
}

static void search(struct colouring *c, uint64_t colour[VERTICES]) {
  if (c->leaves > LEAVES) return;
  if (refine(c, colour) == c->count) {
    struct hash h = certificate(c, colour);
    bool less = h.high < c->best.high || (h.high == c->best.high && h.low < c->best.low);
    if (!c->leaves++ || less) c->best = h;
    return;
  }
  int members[VERTICES], count = smallest_class(c, colour, members);
  for (int i = 0; i < count && c->leaves <= LEAVES; i++) {
    uint64_t apart[VERTICES];
    memcpy(apart, colour, sizeof apart);
    apart[members[i]] = mix(apart[members[i]], 600);
    search(c, apart);
  }
}

struct hash kernel_hash(const struct kernel *k) {
  struct colouring c = {.k = k, .nodes = k->count, .count = k->count};
  uint64_t colour[VERTICES] = {0};
  unsigned used = 0;
  for (int i = 0; i < k->count; i++) {
    const struct node *n = &k->nodes[i];
    colour[i] = own_colour(n);
    c.swaps[i] =
        node_row(n)->facts & FACT_COMMUTES && shape_equal(node_input(k, n, 0), node_input(k, n, 1));
    for (int x = 0; x < VARIABLES; x++)
      if (n->attrs.dim.power[SIZE_X0 + x]) used |= 1u << x;
  }
  for (int x = 0; x < VARIABLES; x++)
    if (used >> x & 1) {
      c.variable[c.count - c.nodes] = (enum size)(SIZE_X0 + x);
      colour[c.count++] = 2;
    }
  search(&c, colour);
  if (c.leaves <= LEAVES) return c.best;
  struct hash sum = {0, 0}; /* too symmetric: the colours as a set */
  uint64_t coarse[VERTICES];
  memcpy(coarse, colour, sizeof coarse);
  refine(&c, coarse);
  for (int v = 0; v < c.count; v++) {
    sum.high += mix(coarse[v], 700);
    sum.low += mix(coarse[v], 800);
  }
  return sum;
}
