/* Builds and checks the micro-DAG. See kernel.h. */
#include "kernel/kernel.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

const struct row *node_row(const struct node *n) {
  return &primitive_rows[n->op];
}

const struct shape *node_input(const struct kernel *k, const struct node *n, int i) {
  return &k->nodes[n->in[i]].shape;
}

static void set_name(char *out, size_t size, const char *name) {
  size_t length = strlen(name);
  if (length >= size) length = size - 1;
  memcpy(out, name, length);
  out[length] = '\0';
}

struct kernel *kernel_new(const char *name) {
  struct kernel *k = mem_alloc(sizeof *k);
  struct node *input = &k->nodes[k->count++];
  set_name(k->name, sizeof k->name, name);
  *input = (struct node){.op = PRIMITIVE_INPUT, .in = {-1, -1}, .name = "a"};
  const char *why = kernel_shape_of(k, input, &input->shape);
  assert(!why);
  (void)why;
  return k;
}

struct kernel *kernel_copy(const struct kernel *k) {
  struct kernel *copy = mem_alloc(sizeof *copy);
  *copy = *k;
  return copy;
}

void kernel_free(struct kernel *k) {
  mem_free(k);
}

/* Checks the conditions of a node; returns a clause if one cannot hold, else NULL. */
static const char *conditions_hold(const struct kernel *k, const struct node *n) {
  const struct family *f = node_row(n)->family;
  struct dim dims[2];
  int count = f->conditions ? f->conditions(k, n, dims) : 0;
  for (int i = 0; i < count; i++)
    if (!dim_is_whole(&dims[i])) return "a division that is never whole";
  return NULL;
}

const char *kernel_shape_of(const struct kernel *k, const struct node *n, struct shape *shape) {
  const char *why = node_row(n)->family->shape(k, n, shape);
  if (why) return why;
  if (!shape_is_whole(shape)) return "the result would have a size that is never whole";
  return conditions_hold(k, n);
}

static int find_name(const struct kernel *k, const char *name) {
  for (int i = 0; i < k->count; i++)
    if (!strcmp(k->nodes[i].name, name)) return i;
  return -1;
}

/* The first free name of a, b, ..., z, aa, ab, ..., starting at the node's index. */
static void free_name(const struct kernel *k, char out[NODE_NAME_SIZE]) {
  for (int i = k->count;; i++) {
    if (i < 26)
      snprintf(out, NODE_NAME_SIZE, "%c", 'a' + i);
    else
      snprintf(out, NODE_NAME_SIZE, "%c%c", 'a' + i / 26 % 26, 'a' + i % 26);
    if (find_name(k, out) < 0) return;
  }
}

canvas_status kernel_add(canvas_context *ctx, struct kernel *k, const struct node *n) {
  const struct row *row = node_row(n);
  if (k->count == KERNEL_NODES_MAX)
    return fail(ctx, CANVAS_BAD_INPUT, "kernel '%s' has more than %d nodes", k->name,
                KERNEL_NODES_MAX);
  struct node *added = &k->nodes[k->count];
  *added = *n;
  if (!*added->name && n->op != PRIMITIVE_OUTPUT) free_name(k, added->name);
  const char *why = kernel_shape_of(k, added, &added->shape);
  if (why) return fail(ctx, CANVAS_BAD_INPUT, "'%s' cannot be applied here: %s", row->word, why);
  k->count++;
  return CANVAS_OK;
}

static void substitute(struct dim *d, int x, const struct dim *by) {
  if (dim_uses(d, (enum size)(SIZE_X0 + x))) *d = dim_substitute(*d, x, by);
}

void kernel_substitute(struct kernel *k, int x, const struct dim *by) {
  for (int i = 0; i < k->count; i++) {
    struct node *n = &k->nodes[i];
    substitute(&n->attrs.dim, x, by);
    for (int j = 0; j < n->shape.count; j++) substitute(&n->shape.axis[j].dim, x, by);
  }
}

void kernel_renumber(struct kernel *k) {
  enum size order[VARIABLES];
  unsigned seen = 0;
  int count = 0;
  for (int i = 0; i < k->count; i++)
    for (int x = 0; x < VARIABLES; x++)
      if (k->nodes[i].attrs.dim.power[SIZE_X0 + x] && !(seen >> x & 1)) {
        order[count++] = (enum size)(SIZE_X0 + x);
        seen |= 1u << x;
      }
  for (int i = 0; i < k->count; i++) {
    struct node *n = &k->nodes[i];
    for (int j = -1; j < n->shape.count; j++) {
      struct dim *d = j < 0 ? &n->attrs.dim : &n->shape.axis[j].dim, old = *d;
      for (int x = 0; x < VARIABLES; x++)
        d->power[SIZE_X0 + x] = x < count ? old.power[order[x]] : 0;
    }
  }
}

bool kernel_each_dim(const struct kernel *k, bool (*visit)(void *, int, const struct dim *),
                     void *data) {
  for (int i = 0; i < k->count; i++) {
    const struct node *n = &k->nodes[i];
    const struct family *f = node_row(n)->family;
    struct dim dims[2];
    for (int j = 0; j < n->shape.count; j++)
      if (!visit(data, i, &n->shape.axis[j].dim)) return false;
    int count = f->conditions ? f->conditions(k, n, dims) : 0;
    for (int j = 0; j < count; j++)
      if (!visit(data, i, &dims[j])) return false;
  }
  return true;
}

const char *kernel_recheck(const struct kernel *k, int *node) {
  for (int i = 0; i < k->count; i++) {
    struct shape shape;
    *node = i;
    const char *why = kernel_shape_of(k, &k->nodes[i], &shape);
    if (why) return why;
    if (!shape_equal(&shape, &k->nodes[i].shape)) return "its shape is not what its rule gives";
  }
  return NULL;
}

canvas_status kernel_verify(canvas_context *ctx, const struct kernel *k) {
  const struct node *last = &k->nodes[k->count - 1];
  if (last->op != PRIMITIVE_OUTPUT)
    return fail(ctx, CANVAS_BAD_INPUT, "kernel '%s' has no 'out' line", k->name);
  uint64_t used = 0;
  for (int i = 0; i < k->count; i++)
    for (int j = 0; j < node_row(&k->nodes[i])->arity; j++)
      used |= UINT64_C(1) << k->nodes[i].in[j];
  for (int i = 0; i < k->count - 1; i++)
    if (!(used >> i & 1))
      return fail(ctx, CANVAS_BAD_INPUT, "kernel '%s': node '%s' is never used, remove it", k->name,
                  k->nodes[i].name);
  int node;
  const char *why = kernel_recheck(k, &node);
  if (why)
    return fail(ctx, CANVAS_BAD_INPUT, "kernel '%s': node '%s': %s", k->name, k->nodes[node].name,
                why);
  return CANVAS_OK;
}

static void add_powers(int8_t seen[DIM_POWERS], const struct dim *d) {
  for (int s = 0; s < DIM_POWERS; s++) seen[s] |= d->power[s];
}

/* Conditions are made of dims of shapes and attributes, which are all that is looked at. */
static unsigned sizes_used(const struct kernel *k) {
  int8_t seen[DIM_POWERS] = {0};
  unsigned sizes = 0;
  for (int i = 0; i < k->count; i++) {
    const struct node *n = &k->nodes[i];
    for (int j = 0; j < n->shape.count; j++) add_powers(seen, &n->shape.axis[j].dim);
    add_powers(seen, &n->attrs.dim);
  }
  for (int s = 0; s < SIZES; s++) sizes |= (unsigned)(seen[s] != 0) << s;
  return sizes;
}

_Static_assert(SIZES <= 32, "a set of sizes is one unsigned");

unsigned kernel_variables(const struct kernel *k) {
  return sizes_used(k) >> SIZE_X0;
}

bool kernel_uses(const struct kernel *k, enum size s) {
  return sizes_used(k) >> s & 1;
}

bool node_weight(const struct kernel *k, int node, struct shape *out) {
  const struct node *n = &k->nodes[node];
  if (!(node_row(n)->facts & FACT_WEIGHTS)) return false;
  node_row(n)->family->weight(k, n, out);
  return true;
}

bool kernel_has_weights(const struct kernel *k) {
  for (int i = 0; i < k->count; i++)
    if (node_row(&k->nodes[i])->facts & FACT_WEIGHTS) return true;
  return false;
}

/* The node whose elements `out` outputs, apart from data movement. */
static int handed_on(const struct kernel *k) {
  int node = k->count - 1;
  while (node > 0 && node_row(&k->nodes[node])->facts & FACT_MOVES) node = k->nodes[node].in[0];
  return node;
}

bool node_is_inner(const struct kernel *k, int node) {
  return node_row(&k->nodes[node])->facts & FACT_WEIGHTS && node != handed_on(k);
}

bool kernel_has_inner_weights(const struct kernel *k) {
  for (int i = 0; i < k->count; i++)
    if (node_is_inner(k, i)) return true;
  return false;
}

static bool uses_image(const struct dim *d) {
  return dim_uses(d, SIZE_H) || dim_uses(d, SIZE_W);
}

bool kernel_needs_fixed_hw(const struct kernel *k) {
  for (int i = 0; i < k->count; i++) {
    struct shape w;
    if (!node_weight(k, i, &w)) continue;
    const struct shape *in = node_input(k, &k->nodes[i], 0);
    int g =
        shape_find(in, ROLE_GROUP); /* the group axis determines which outputs read which inputs */
    if (g >= 0 && uses_image(&in->axis[g].dim)) return true;
    for (int a = 0; a < w.count; a++)
      if (uses_image(&w.axis[a].dim)) return true;
  }
  return false;
}

int kernel_primitives(const struct kernel *k) {
  int count = 0;
  for (int i = 1; i < k->count; i++) count += k->nodes[i].op != PRIMITIVE_OUTPUT;
  return count;
}

static uint64_t moved(uint64_t offsets, int by) {
  by = (by % 64 + 64) % 64;
  return by ? offsets << by | offsets >> (64 - by) : offsets;
}

bool row_sees_all(const struct row *row) {
  return row->attributes & ATTR_OVER && !(row->facts & FACT_MOVES);
}

/* Pixels on each side that a window holds; of k=K one where K is a window, for any number is several. */
static int side_of(const struct node *n, enum role axis, struct neighbours images) {
  if (n->attrs.amount) return n->attrs.amount / 2;
  return images.windows >> axis & 1;
}

/* Offsets that `n` reads along a spatial axis, given those of its input. */
static uint64_t looked(const struct node *n, enum role axis, struct neighbours images,
                       uint64_t offsets) {
  const struct row *row = node_row(n);
  if (!(n->attrs.over >> axis & 1)) return offsets;
  if (row_sees_all(row)) return UINT64_MAX;
  if (!(row->facts & FACT_SEES)) return offsets;
  if (row->attributes & ATTR_SHIFT) return moved(offsets, -n->attrs.amount);
  int side = side_of(n, axis, images);
  uint64_t all = offsets;
  int apart = n->attrs.dilation ? n->attrs.dilation : 1;
  for (int k = 1; k <= side; k++) all |= moved(offsets, k * apart) | moved(offsets, -k * apart);
  return all;
}

/* Whether element (.., h, w) of a broadcast reads its left input at row h (column w); if not, at one that
 * depends on the whole place. In an image one pixel wide rows follow each other in the flattened
 * tensor, too. */
static bool in_step(const struct kernel *k, const struct node *n, enum role axis,
                    struct neighbours images) {
  const struct shape *left = node_input(k, n, 0), *right = node_input(k, n, 1);
  struct match m = shape_match(left, right);
  int at = shape_find(left, axis);
  if (at < m.prefix || at >= left->count - m.suffix) return true;
  return axis == ROLE_H && shape_find(right, ROLE_H) >= 0 && !(images.pixels >> ROLE_W & 1);
}

/* Offsets that the inputs of `n` have along a spatial axis. */
static uint64_t brought(const struct kernel *k, const struct node *n, enum role axis,
                        struct neighbours images, const struct reach *of) {
  uint64_t offsets = 0;
  int arity = node_row(n)->arity;
  for (int j = 0; j < arity; j++) offsets |= axis == ROLE_H ? of[n->in[j]].h : of[n->in[j]].w;
  return arity == 2 && !in_step(k, n, axis, images) ? UINT64_MAX : offsets;
}

struct reach node_reach(const struct kernel *k, int node, struct neighbours images,
                        const struct reach *of) {
  const struct node *n = &k->nodes[node];
  const struct row *row = node_row(n);
  struct reach r = {0, 0, false};
  if (!row->arity) return (struct reach){UINT64_C(1) << 32, UINT64_C(1) << 32, false};
  for (int j = 0; j < row->arity; j++) r.mixed |= of[n->in[j]].mixed;
  r.h = looked(n, ROLE_H, images, brought(k, n, ROLE_H, images, of));
  r.w = looked(n, ROLE_W, images, brought(k, n, ROLE_W, images, of));
  if (row->facts & FACT_WEIGHTS) {
    unsigned roles = shape_roles(node_input(k, n, 0));
    r.mixed |= (roles >> ROLE_CHANNEL & 1) && !(roles >> ROLE_GROUP & 1);
  }
  return r;
}

/* Whether there is more than one offset. */
static bool several_offsets(uint64_t offsets) {
  return (offsets & (offsets - 1)) != 0;
}

unsigned reach_missing(const struct reach *r, struct neighbours images) {
  unsigned seen = (unsigned)several_offsets(r->h) << ROLE_H | (unsigned)several_offsets(r->w)
                                                                  << ROLE_W;
  return images.windows & ~seen;
}

void neighbours_add(struct neighbours *images, const struct sizes *at) {
  unsigned pixels = (unsigned)(at->value[SIZE_H] > 1) << ROLE_H | (unsigned)(at->value[SIZE_W] > 1)
                                                                      << ROLE_W;
  unsigned windows =
      (unsigned)(at->value[SIZE_KH] > 1) << ROLE_H | (unsigned)(at->value[SIZE_KW] > 1) << ROLE_W;
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
  if (!out->mixed) return "no fully connected primitive mixes all its channels";
  return NULL;
}

const char *kernel_reach(const struct kernel *k) {
  return kernel_reach_on(k, (struct neighbours){ROLES_SPATIAL, ROLES_SPATIAL});
}
