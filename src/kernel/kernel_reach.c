/* What a kernel sees of its input: pixels along H and W, and channels through weights. See kernel.h. */
#include "kernel/kernel.h"

/* -- along a spatial axis -- */

static uint64_t moved(uint64_t offsets, int by) {
  by = (by % 64 + 64) % 64;
  return by ? offsets << by | offsets >> (64 - by) : offsets;
}

/* Pixels on each side that a window holds; of k=K one where K is a window, for any number is several. */
static int side_of(const struct node *n, enum role axis, struct neighbours images) {
  if (n->op == PRIMITIVE_SHIFT_EACH) return 1;
  if (n->attrs.amount) return n->attrs.amount / 2;
  return images.windows >> axis & 1;
}

/* Offsets that `n` reads along a spatial axis, given those of its input. */
static uint64_t looked(const struct node *n, enum role axis, struct neighbours images,
                       uint64_t offsets) {
  const struct row *row = node_row(n);
  if (n->op == PRIMITIVE_POOL) return offsets | moved(offsets, 1);
  if (!(n->attrs.over >> axis & 1)) return offsets;
  if (row->facts & FACT_WHOLE) return UINT64_MAX;
  if (!(row->facts & FACT_SEES)) return offsets;
  if (row->attributes & ATTR_SHIFT) return moved(offsets, -n->attrs.amount);
  int side = side_of(n, axis, images);
  uint64_t all = offsets;
  int apart = n->attrs.dilation ? n->attrs.dilation : 1;
  for (int k = 1; k <= side; k++) all |= moved(offsets, k * apart) | moved(offsets, -k * apart);
  return all;
}

/* Whether element (.., h, w) of a broadcast reads its left input at row h (column w); if not, at one
 * that depends on the whole place. In an image one pixel wide rows follow each other in the flattened
 * tensor, too. */
static bool left_in_step(const struct kernel *k, const struct node *n, enum role axis,
                         struct neighbours images) {
  const struct shape *left = node_input(k, n, 0), *right = node_input(k, n, 1);
  int at = shape_find(left, axis);
  if (at < 0 || shape_suffix(left, right) >= left->count - at) return true;
  if (at < shape_match(left, right).prefix) return true;
  return axis == ROLE_H && shape_find(right, ROLE_H) >= 0 && !(images.pixels >> ROLE_W & 1);
}

/* The same of input j of any node. The second of a matmul is read at its own pixel where that is a pixel
 * of the result, and no other. */
static bool in_step(const struct kernel *k, const struct node *n, int j, enum role axis,
                    struct neighbours images) {
  const struct family *f = node_row(n)->family;
  if (f == &family_broadcast) return j || left_in_step(k, n, axis, images);
  if (f != &family_matmul || !j) return true;
  unsigned with = n->attrs.with ? n->attrs.with : n->attrs.over;
  unsigned of_first = shape_roles(node_input(k, n, 0)) & ~n->attrs.over;
  unsigned own = shape_roles(node_input(k, n, 1)) & ~with;
  return own >> axis & 1 && (n->attrs.each >> axis & 1 || !(of_first >> axis & 1));
}

/* Offsets that the inputs of `n` have along a spatial axis: none where none is read. */
static uint64_t brought(const struct kernel *k, const struct node *n, enum role axis,
                        struct neighbours images, const struct reach *of) {
  uint64_t offsets = 0;
  if (node_row(n)->family == &family_coords) return 0;
  for (int j = 0; j < node_row(n)->arity; j++) {
    uint64_t own = axis == ROLE_H ? of[n->in[j]].h : of[n->in[j]].w;
    offsets |= own && !in_step(k, n, j, axis, images) ? UINT64_MAX : own;
  }
  return offsets;
}

/* -- channels -- */

/* The place-th of `parts` equal parts of what is set; the channels count as 48. */
static uint64_t part_of(uint64_t channels, int place, int parts) {
  int all = __builtin_popcountll(channels), seen = 0;
  uint64_t part = 0;
  for (int i = 0; i < 64; i++)
    if (channels >> i & 1) {
      if (seen * parts / (all ? all : 1) == place) part |= UINT64_C(1) << i;
      seen++;
    }
  return part;
}

/* Whether every output of the node's weight reads all channels of its input. */
static bool mixes(const struct kernel *k, const struct node *n) {
  unsigned roles = shape_roles(node_input(k, n, 0)), over = n->attrs.over;
  if (!(node_row(n)->facts & FACT_CONTRACTS)) return false;
  if (!over) over = 1 << ROLE_CHANNEL;
  return roles & over & 1 << ROLE_CHANNEL && (!(roles >> ROLE_GROUP & 1) || over >> ROLE_GROUP & 1);
}

static void see_channels(const struct kernel *k, const struct node *n, const struct reach *of,
                         struct reach *r) {
  if (node_row(n)->family == &family_coords) return;
  r->in_order = true;
  for (int j = 0; j < node_row(n)->arity; j++) {
    const struct reach *in = &of[n->in[j]];
    bool stacked = j && n->op == PRIMITIVE_STACK;
    r->channels |= in->channels;
    r->mixed = stacked ? r->mixed & in->mixed : r->mixed | in->mixed;
    r->in_order &= in->in_order;
  }
  if (n->op == PRIMITIVE_PICK && r->in_order)
    r->channels = part_of(r->channels, n->attrs.amount, n->attrs.dim.num);
  r->in_order &= !(node_row(n)->facts & FACT_CONTRACTS);
  if (mixes(k, n)) r->mixed |= r->channels;
}

/* -- both -- */

struct reach node_reach(const struct kernel *k, int node, struct neighbours images,
                        const struct reach *of) {
  const struct node *n = &k->nodes[node];
  const uint64_t own = UINT64_C(1) << 32;
  struct reach r = {0};
  if (!node_row(n)->arity)
    return (struct reach){.h = own, .w = own, .channels = CHANNELS_ALL, .in_order = true};
  r.h = looked(n, ROLE_H, images, brought(k, n, ROLE_H, images, of));
  r.w = looked(n, ROLE_W, images, brought(k, n, ROLE_W, images, of));
  see_channels(k, n, of, &r);
  return r;
}

static bool several_offsets(uint64_t offsets) {
  return (offsets & (offsets - 1)) != 0;
}

unsigned reach_missing(const struct reach *r, struct neighbours images) {
  unsigned h = several_offsets(r->h), w = several_offsets(r->w);
  return images.windows & ~(h << ROLE_H | w << ROLE_W);
}

void neighbours_add(struct neighbours *images, const struct sizes *at) {
  const int64_t *v = at->value;
  unsigned pixels = (v[SIZE_H] > 1) << ROLE_H | (v[SIZE_W] > 1) << ROLE_W;
  unsigned windows = (v[SIZE_KH] > 1) << ROLE_H | (v[SIZE_KW] > 1) << ROLE_W;
  images->pixels |= pixels;
  images->windows |= pixels & windows;
}

const char *kernel_reach_on(const struct kernel *k, struct neighbours images) {
  struct reach of[KERNEL_NODES_MAX];
  for (int i = 0; i < k->count; i++) of[i] = node_reach(k, i, images, of);
  const struct reach *out = &of[k->count - 1];
  unsigned missing = reach_missing(out, images);
  if (missing >> ROLE_H & 1) return "it sees no neighbours along H";
  if (missing) return "it sees no neighbours along W";
  if (out->mixed != CHANNELS_ALL) return "no fully connected primitive mixes all its channels";
  return NULL;
}

const char *kernel_reach(const struct kernel *k) {
  return kernel_reach_on(k, (struct neighbours){ROLES_SPATIAL, ROLES_SPATIAL});
}
