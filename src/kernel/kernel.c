/* Builds and checks the micro-DAG. See kernel.h. */
#include "kernel/kernel.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

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
  memcpy(copy->name, k->name, sizeof copy->name);
  copy->count = k->count;
  memcpy(copy->nodes, k->nodes, (size_t)k->count * sizeof *k->nodes);
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

/* The axis that an attribute names and the input has not, and those that it has: " (no W, but C H)". */
static bool name_missing(const struct kernel *k, const struct node *n, int in, unsigned axes,
                         struct buf *out) {
  if (in >= node_row(n)->arity) return false;
  unsigned have = shape_roles(node_input(k, n, in)), missing = axes & ~have;
  if (!missing) return false;
  buf_printf(out, " (no %s, but", role_short((enum role)__builtin_ctz(missing)));
  for (enum role r = ROLE_GROUP; r < ROLES; r++)
    if (have >> r & 1) buf_printf(out, " %s", role_short(r));
  buf_puts(out, have ? ")" : " no axes)");
  return true;
}

static canvas_status fail_with_axes(canvas_context *ctx, const struct kernel *k,
                                    const struct node *n, const char *why) {
  const struct attrs *a = &n->attrs;
  struct buf axes = {0};
  unsigned of_second = a->each | (a->with ? a->with : a->over);
  bool named =
      name_missing(k, n, 0, a->over | a->each, &axes) || name_missing(k, n, 1, of_second, &axes);
  if (!named && node_row(n)->family->axes) node_row(n)->family->axes(k, n, &axes);
  canvas_status status = fail(ctx, CANVAS_BAD_INPUT, "'%s' cannot be applied here: %s%s",
                              node_row(n)->word, why, axes.text ? axes.text : "");
  buf_free(&axes);
  return status;
}

canvas_status kernel_add(canvas_context *ctx, struct kernel *k, const struct node *n) {
  if (k->count == KERNEL_NODES_MAX)
    return fail(ctx, CANVAS_BAD_INPUT, "kernel '%s' has more than %d nodes", k->name,
                KERNEL_NODES_MAX);
  struct node *added = &k->nodes[k->count];
  *added = *n;
  if (!*added->name && n->op != PRIMITIVE_OUTPUT) free_name(k, added->name);
  const char *why = kernel_shape_of(k, added, &added->shape);
  if (why) return fail_with_axes(ctx, k, n, why);
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

enum { POWER_WORDS = DIM_POWERS / (int)sizeof(uint64_t) };

static void add_powers(uint64_t seen[POWER_WORDS], const struct dim *d) {
  uint64_t powers[POWER_WORDS];
  memcpy(powers, d->power, sizeof powers);
  for (int i = 0; i < POWER_WORDS; i++) seen[i] |= powers[i];
}

/* Conditions are made of dims of shapes and attributes, which are all that is looked at. */
static unsigned sizes_used(const struct kernel *k) {
  uint64_t seen[POWER_WORDS] = {0};
  int8_t powers[DIM_POWERS];
  unsigned sizes = 0;
  for (int i = 0; i < k->count; i++) {
    const struct node *n = &k->nodes[i];
    for (int j = 0; j < n->shape.count; j++) add_powers(seen, &n->shape.axis[j].dim);
    add_powers(seen, &n->attrs.dim);
  }
  memcpy(powers, seen, sizeof powers);
  for (int s = 0; s < SIZES; s++) sizes |= (unsigned)(powers[s] != 0) << s;
  return sizes;
}

_Static_assert(SIZES <= 32, "a set of sizes is one unsigned");

unsigned kernel_variables(const struct kernel *k) {
  return sizes_used(k) >> SIZE_X0;
}

bool kernel_uses(const struct kernel *k, enum size s) {
  for (int i = 0; i < k->count; i++) {
    const struct node *n = &k->nodes[i];
    for (int j = 0; j < n->shape.count; j++)
      if (dim_uses(&n->shape.axis[j].dim, s)) return true;
    if (dim_uses(&n->attrs.dim, s)) return true;
  }
  return false;
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

/* The nodes whose elements `out` outputs, apart from data movement. */
static uint64_t handed_on(const struct kernel *k) {
  uint64_t nodes = UINT64_C(1) << (k->count - 1);
  for (int i = k->count - 1; i > 0; i--) {
    const struct row *row = node_row(&k->nodes[i]);
    if (!(nodes >> i & 1) || !(row->facts & FACT_MOVES)) continue;
    for (int j = 0; j < row->arity; j++) nodes |= UINT64_C(1) << k->nodes[i].in[j];
  }
  return nodes;
}

/* Whether the node makes channels: [to], or [to, pixels]. */
static bool makes_channels(const struct kernel *k, int node) {
  const struct node *n = &k->nodes[node];
  struct shape w;
  if (!(node_row(n)->facts & FACT_CONTRACTS)) return false;
  if (shape_roles(&n->shape) & ~(unsigned)(1 << ROLE_CHANNEL | ROLES_SPATIAL)) return false;
  node_weight(k, node, &w);
  return w.axis[0].role == ROLE_CHANNEL;
}

bool node_is_inner(const struct kernel *k, int node) {
  return makes_channels(k, node) && !(handed_on(k) >> node & 1);
}

double node_initial(const struct node *n) {
  unsigned facts = node_row(n)->facts;
  return facts & FACT_CONTRACTS ? NAN : facts & FACT_LINEAR ? 1 : 0;
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
