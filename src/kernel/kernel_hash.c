/* Identity of kernels, with or without sizes: a hash of a canonical form.
 *
 * The vertices are the nodes and the variables x. Initial colours describe a vertex alone. They are
 * refined by the colours of its neighbours (inputs in order, or as a set if a commutative op has
 * inputs of equal shape; consumers; variables of an attribute) until no class splits. If classes of
 * several vertices remain, each vertex of the smallest class is individualised in turn and colours
 * are refined again. The result is the smallest certificate over all leaves: individualisation and
 * refinement, as in McKay's canonical labelling. The certificate contains everything that
 * distinguishes kernels; the colours only keep the tree small.
 *
 * Two leaves with equal certificates give an automorphism, which is verified and prunes the tree.
 * Skipped are a vertex that a known automorphism, fixing the path, maps to one tried before, and
 * the rest of a subtree that an automorphism maps to a searched one. Pruning does not change the
 * result; without it sixteen equal branches would have 2^15 leaves.
 *
 * The number of tree nodes is limited. A kernel beyond the limit (none is known) is not decided:
 * its hash is that of its text, so that no other kernel has it, but neither has the same kernel
 * written differently.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#include "kernel/attributes.h"
#include "kernel/kernel.h"

enum { VERTICES = KERNEL_NODES_MAX + VARIABLES, STEPS = 1 << 14 };

typedef uint8_t vertex;

/* A leaf of the tree: its path, and the vertices by colour. */
struct leaf {
  struct hash certificate;
  vertex path[VERTICES], order[VERTICES];
  int depth;
};

struct colouring {
  const struct kernel *k;
  const struct sizes *sizes;     /* values of the variables; NULL: they do not count */
  int nodes, count;              /* number of nodes; of vertices: nodes, then occurring variables */
  enum size variable[VARIABLES]; /* variable of vertex nodes + i */
  bool swaps[KERNEL_NODES_MAX];  /* by node: its inputs are a set */
};

struct search {
  const struct colouring *c;
  int steps, limit; /* visited nodes of the tree; their limit */
  vertex path[VERTICES];
  bool found; /* a leaf was found: `first` and `best` are set */
  struct leaf first, best;
  struct {
    VEC(struct automorphism { vertex of[VERTICES]; });
  } automorphisms;
};

static uint64_t mix(uint64_t h, uint64_t value) {
  h ^= value + UINT64_C(0x9E3779B97F4A7C15) + (h << 6) + (h >> 2);
  h = (h ^ (h >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  h = (h ^ (h >> 27)) * UINT64_C(0x94D049BB133111EB);
  return h ^ (h >> 31);
}

struct hash hash_add(struct hash h, uint64_t value) {
  return (struct hash){mix(h.high, value), mix(~h.low, value)};
}

bool hash_equal(struct hash a, struct hash b) {
  return a.high == b.high && a.low == b.low;
}

/* Colour of a node without its neighbours and variables. */
static uint64_t own_colour(const struct node *n) {
  uint64_t h = mix(1, (uint64_t)n->op), numbers[ATTRS_NUMBERS];
  attrs_numbers(&n->attrs, numbers);
  for (int i = 0; i < ATTRS_NUMBERS; i++) h = mix(h, numbers[i]);
  h = mix(h, (uint64_t)n->attrs.dim.num << 32 | (uint32_t)n->attrs.dim.den);
  for (int s = 0; s < SIZE_S; s++) h = mix(h, (uint64_t)(int64_t)n->attrs.dim.power[s]);
  int stride = n->attrs.dim.power[SIZE_S]; /* kernels without S keep the hash of older versions */
  if (stride) h = mix(h, (uint64_t)(int64_t)stride);
  return h;
}

/* Value of a vertex that is a variable; 0 if values do not count. */
static uint64_t value_of(const struct colouring *c, int v) {
  return c->sizes ? (uint64_t)c->sizes->value[c->variable[v - c->nodes]] : 0;
}

static void refine_once(const struct colouring *c, const uint64_t old[VERTICES],
                        uint64_t new[VERTICES]) {
  uint64_t around[VERTICES] = {0}; /* sums, which ignore order */
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

static void make_order(const struct colouring *c, const uint64_t colour[VERTICES],
                       vertex order[VERTICES]) {
  for (int v = 0; v < c->count; v++) {
    int rank = 0;
    for (int u = 0; u < c->count; u++) rank += colour[u] < colour[v];
    order[rank] = (vertex)v;
  }
}

/* Hash of the kernel written in the given order of vertices. */
static struct hash certificate(const struct colouring *c, const vertex order[VERTICES]) {
  int rank[VERTICES];
  for (int i = 0; i < c->count; i++) rank[order[i]] = i;
  struct hash h = {UINT64_C(0x243F6A8885A308D3), UINT64_C(0x13198A2E03707344)};
#define WRITE(value) h = hash_add(h, (uint64_t)(value))
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
  for (int i = 0; c->sizes && i < c->count; i++)
    if (order[i] >= c->nodes) WRITE(value_of(c, order[i]));
  if (c->sizes) WRITE(c->sizes->value[SIZE_G]);
#undef WRITE
  return h;
}

/* -- automorphisms -- */

/* Whether the mapping takes node i to the node `to`. */
static bool maps_node(const struct colouring *c, const struct automorphism *m, int i) {
  if (m->of[i] >= c->nodes) return false;
  const struct node *n = &c->k->nodes[i], *to = &c->k->nodes[m->of[i]];
  if (own_colour(n) != own_colour(to)) return false;
  int in[2] = {-1, -1};
  for (int j = 0; j < node_row(n)->arity; j++) in[j] = m->of[n->in[j]];
  bool same = in[0] == to->in[0] && in[1] == to->in[1];
  bool swapped = c->swaps[i] && in[0] == to->in[1] && in[1] == to->in[0];
  for (int v = c->nodes; v < c->count; v++)
    if (m->of[v] < c->nodes || n->attrs.dim.power[c->variable[v - c->nodes]] !=
                                   to->attrs.dim.power[c->variable[m->of[v] - c->nodes]])
      return false;
  return same || swapped;
}

/* Records the mapping of one leaf to another if it is an automorphism. Equal certificates imply
 * this up to collisions, so it is verified. */
static bool note_automorphism(struct search *s, const struct leaf *from, const struct leaf *to,
                              struct automorphism *m) {
  for (int i = 0; i < s->c->count; i++) m->of[from->order[i]] = to->order[i];
  for (int i = 0; i < s->c->nodes; i++)
    if (!maps_node(s->c, m, i)) return false;
  for (int v = s->c->nodes; v < s->c->count; v++)
    if (value_of(s->c, m->of[v]) != value_of(s->c, v)) return false;
  VEC_PUSH(&s->automorphisms, *m);
  return true;
}

static bool fixes(const struct automorphism *m, const vertex *path, int depth) {
  for (int i = 0; i < depth; i++)
    if (m->of[path[i]] != path[i]) return false;
  return true;
}

/* By vertex: the first vertex of its orbit under known automorphisms that fix the path. */
static void make_orbits(const struct search *s, int depth, vertex first[VERTICES]) {
  for (int v = 0; v < s->c->count; v++) first[v] = (vertex)v;
  for (int i = 0; i < s->automorphisms.count; i++) {
    const struct automorphism *m = &s->automorphisms.data[i];
    if (!fixes(m, s->path, depth)) continue;
    for (int v = 0; v < s->c->count; v++) {
      vertex a = first[v], b = first[m->of[v]], least = a < b ? a : b, other = a < b ? b : a;
      for (int u = 0; least != other && u < s->c->count; u++)
        if (first[u] == other) first[u] = least;
    }
  }
}

/* -- the tree -- */

/* Fills the vertices of the smallest class of several, ties by colour; returns their number. */
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

/* The depth at which the search continues after a leaf equal to an earlier one: where their paths
 * part, if an automorphism maps the whole subtree to a searched one. */
static int depth_after(struct search *s, const struct leaf *earlier, const struct leaf *now) {
  struct automorphism m;
  int parts = 0;
  if (!note_automorphism(s, earlier, now, &m)) return now->depth;
  while (earlier->path[parts] == now->path[parts]) parts++;
  bool whole = fixes(&m, now->path, parts) && m.of[earlier->path[parts]] == now->path[parts];
  return whole ? parts : now->depth;
}

static int compare_hashes(struct hash a, struct hash b) {
  if (a.high != b.high) return a.high < b.high ? -1 : 1;
  return (a.low > b.low) - (a.low < b.low);
}

static int visit_leaf(struct search *s, const uint64_t colour[VERTICES], int depth) {
  struct leaf now = {.depth = depth};
  memcpy(now.path, s->path, sizeof now.path);
  make_order(s->c, colour, now.order);
  now.certificate = certificate(s->c, now.order);
  if (!s->found) {
    s->found = true;
    s->first = s->best = now;
    return depth;
  }
  if (hash_equal(now.certificate, s->first.certificate)) return depth_after(s, &s->first, &now);
  int order = compare_hashes(now.certificate, s->best.certificate);
  if (order == 0) return depth_after(s, &s->best, &now);
  if (order < 0) s->best = now;
  return depth;
}

/* Returns the depth at which to continue, less than `depth` if nothing new can be found here. */
static int visit(struct search *s, uint64_t colour[VERTICES], int depth) {
  if (++s->steps > s->limit) return -1;
  if (refine(s->c, colour) == s->c->count) return visit_leaf(s, colour, depth);
  int members[VERTICES], count = smallest_class(s->c, colour, members);
  for (int i = 0; i < count; i++) {
    vertex first[VERTICES];
    bool known = false;
    make_orbits(s, depth, first);
    for (int j = 0; j < i; j++) known |= first[members[j]] == first[members[i]];
    if (known) continue;
    uint64_t apart[VERTICES];
    memcpy(apart, colour, sizeof apart);
    apart[members[i]] = mix(apart[members[i]], 600);
    s->path[depth] = (vertex)members[i];
    int back = visit(s, apart, depth + 1);
    if (back < depth) return back;
  }
  return depth;
}

/* Hash of the kernel as written, without names. */
static struct hash as_written(const struct colouring *c) {
  vertex order[VERTICES];
  for (int v = 0; v < c->count; v++) order[v] = (vertex)v;
  struct hash h = certificate(c, order);
  return (struct hash){mix(h.high, 700), mix(h.low, 800)};
}

struct hash kernel_hash_within(const struct kernel *k, const struct sizes *sizes, int steps,
                               bool *decided) {
  struct colouring c = {.k = k, .sizes = sizes, .nodes = k->count, .count = k->count};
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
      colour[c.count] = 2 + value_of(&c, c.count);
      c.count++;
    }
  struct search *s = mem_alloc(sizeof *s);
  s->c = &c;
  s->limit = steps ? steps : STEPS;
  visit(s, colour, 0);
  *decided = s->steps <= s->limit;
  struct hash h = *decided ? s->best.certificate : as_written(&c);
  mem_free(s->automorphisms.data);
  mem_free(s);
  return h;
}

struct hash kernel_hash(const struct kernel *k, bool *decided) {
  bool own;
  return kernel_hash_within(k, NULL, 0, decided ? decided : &own);
}
