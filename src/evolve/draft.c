/* Building drafts: see draft.h. */
#include "evolve/draft.h"

#include <string.h>

void draft_open(struct draft *d, const struct families *families, struct neighbours images,
                struct random *random) {
  *d = (struct draft){.families = families, .images = images, .random = random};
  d->k = kernel_new("");
  d->spare = kernel_new("");
}

void draft_close(struct draft *d) {
  kernel_free(d->k);
  kernel_free(d->spare);
}

void draft_load(struct draft *d, const struct kernel *k) {
  d->root = k->nodes[k->count - 1].in[0];
  d->k->count = k->count - 1;
  memcpy(d->k->nodes, k->nodes, (size_t)d->k->count * sizeof *k->nodes);
}

int draft_append(struct draft *d, const struct node *n) {
  if (d->k->count == KERNEL_NODES_MAX) return -1;
  d->k->nodes[d->k->count] = *n;
  return d->k->count++;
}

void draft_take(struct node *n, const struct attrs *offered) {
  const struct attrs old = n->attrs;
  n->attrs = *offered;
  n->attrs.dilation = old.dilation;
  if (node_row(n)->attributes & ATTR_STRIDE) n->attrs.dim = old.dim;
}

unsigned kernel_names(const struct kernel *k) {
  unsigned set = 0;
  for (int i = 0; i < k->count; i++)
    for (int x = 0; x < VARIABLES; x++)
      if (dim_uses(&k->nodes[i].attrs.dim, (enum size)(SIZE_X0 + x))) set |= 1u << x;
  return set;
}

static struct dim fresh(unsigned used) {
  int x = 0;
  while (x < VARIABLES && used >> x & 1) x++;
  return dim_size(x < VARIABLES ? (enum size)(SIZE_X0 + x) : SIZE_C);
}

struct dim draft_fresh(const struct draft *d) {
  return fresh(kernel_names(d->k));
}

/* -- building -- */

struct build {
  struct draft *d;
  struct kernel *out;
  int to[KERNEL_NODES_MAX]; /* of a node of the draft: its place in `out`, -1 not yet */
};

/* Applications of n's primitive to its inputs that its family offers, in either order. */
static int offers(const struct build *b, const struct node *n,
                  struct candidate out[2 * CANDIDATES_MAX]) {
  const struct family *f = node_row(n)->family;
  const struct kernel *k = b->out;
  struct neighbours images = b->d->images;
  int count = 0, kept = 0;
  if (!f->choices) return 0;
  count += sampler_offers(b->d->families, f, images, k, n->in[0], n->in[1], out);
  if (f->binary)
    count += sampler_offers(b->d->families, f, images, k, n->in[1], n->in[0], out + count);
  for (int i = 0; i < count; i++)
    if (out[i].op == n->op) out[kept++] = out[i];
  return kept;
}

/* A width that is chosen anew must be tied to nothing that is still to come. */
static void untie(const struct build *b, struct candidate *c) {
  const struct dim *to = &c->attrs.dim;
  if (!(primitive_rows[c->op].attributes & ATTR_TO) || dim_variable(to, NULL) == VARIABLES) return;
  if (kernel_variables(b->out) >> dim_variable(to, NULL) & 1) return;
  c->attrs.dim = fresh(kernel_variables(b->out) | kernel_names(b->d->k));
}

/* Replaces what became illegal by one of the family's offers. */
static bool repair(struct build *b, struct node *n) {
  struct candidate all[2 * CANDIDATES_MAX];
  int count = offers(b, n, all), illegal;
  if (!count) return false;
  struct candidate *c = &all[random_below(b->d->random, (uint32_t)count)];
  if (c->x >= 0) {
    kernel_substitute(b->out, c->x, &c->by);
    kernel_substitute(b->d->k, c->x, &c->by);
    if (kernel_recheck(b->out, &illegal)) return false;
  }
  untie(b, c);
  n->in[0] = c->in[0];
  n->in[1] = c->in[1];
  draft_take(n, &c->attrs);
  return !kernel_shape_of(b->out, n, &n->shape);
}

/* A scale other than 1 is the size of the softmax's axes, whatever they have become. */
static void rescale(const struct kernel *k, struct node *n) {
  if (n->op == PRIMITIVE_SOFTMAX && !dim_is_one(&n->attrs.dim))
    n->attrs.dim = shape_product(node_input(k, n, 0), n->attrs.over);
}

/* Depth first, so that nothing is kept that nothing reads and few tensors are open at a time. */
static bool place(struct build *b, int node) {
  if (b->to[node] >= 0) return true;
  struct node n = b->d->k->nodes[node];
  for (int j = 0; j < node_row(&n)->arity; j++) {
    if (!place(b, n.in[j])) return false;
    n.in[j] = b->to[n.in[j]];
  }
  n.attrs = b->d->k->nodes[node].attrs; /* a repair may have given a variable its value */
  rescale(b->out, &n);
  if (kernel_shape_of(b->out, &n, &n.shape) && !repair(b, &n)) return false;
  b->to[node] = b->out->count;
  b->out->nodes[b->out->count++] = n;
  return true;
}

bool draft_build(struct draft *d) {
  struct build b = {.d = d, .out = d->spare};
  memset(b.to, -1, sizeof b.to);
  b.to[0] = 0;
  b.out->count = 1; /* the input, which every kernel_new holds */
  if (!place(&b, d->root) || b.out->count > KERNEL_NODES_MAX - 1) return false;
  d->spare = d->k;
  d->k = b.out;
  d->root = b.out->count - 1;
  return true;
}

bool draft_free_width(struct draft *d) {
  int node = d->root;
  while (node > 0 && d->k->nodes[node].op != PRIMITIVE_FC)
    node = d->k->nodes[node].in[node_row(&d->k->nodes[node])->arity - 1];
  struct dim *to = &d->k->nodes[node].attrs.dim;
  if (!node || dim_variable(to, NULL) != VARIABLES) return false;
  *to = draft_fresh(d);
  return true;
}
