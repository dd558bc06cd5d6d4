/* See kernel_stride.h.
 *
 * The kernel is built once more, node by node. Each tensor has taken the stride along a set of axes;
 * both inputs of a binary node must have taken it along the same of their axes, and the output along
 * both. Then it is built a second time, where a path is subsampled as early as its values allow:
 *
 *   b = fc a to=x0                       s1 = subsample a over=H,W by=S
 *   s1 = subsample b over=H,W by=S  ->   b = fc s1 to=x0
 */
#include "kernel/kernel_stride.h"

#include <stdio.h>
#include <string.h>

canvas_status stride_mode_parse(canvas_context *ctx, const char *word, enum stride_mode *out) {
  static const char *const words[] = {"pool", "window", "output"};
  for (int i = 0; i < 3; i++)
    if (!strcmp(words[i], word)) {
      *out = (enum stride_mode)i;
      return CANVAS_OK;
    }
  return fail(ctx, CANVAS_BAD_INPUT, "a stride is taken by pool, window or output, not '%.60s'",
              word);
}

struct strider {
  canvas_context *ctx;
  const struct kernel *k;
  struct kernel *out;
  bool window;
  int to[KERNEL_NODES_MAX];      /* of a node of k: its node of `out` */
  int smaller[KERNEL_NODES_MAX]; /* of a node of `out`: its subsample, 0 not yet */
};

/* The spatial axes of a tensor that have taken the stride. */
static unsigned strided(const struct shape *s) {
  unsigned axes = 0;
  for (int i = 0; i < s->count; i++)
    if (ROLES_SPATIAL >> s->axis[i].role & 1 && dim_uses(&s->axis[i].dim, SIZE_S))
      axes |= 1u << s->axis[i].role;
  return axes;
}

static unsigned spatial(const struct shape *s) {
  return shape_roles(s) & ROLES_SPATIAL;
}

static const struct shape *shape_of(const struct strider *s, int node) {
  return &s->out->nodes[node].shape;
}

/* -- what stands in the way -- */

/* Products of all pixels, other resolutions, coordinates, and windows over pixels and channels at once. */
static bool is_bound_to_size(const struct node *n) {
  const struct family *f = node_row(n)->family;
  bool both = n->attrs.over & ROLES_SPATIAL && n->attrs.over >> ROLE_CHANNEL & 1;
  return f == &family_matmul || f == &family_resample || f == &family_coords ||
         (n->op == PRIMITIVE_UNFOLD && both);
}

static canvas_status check(const struct strider *s) {
  const struct kernel *k = s->k;
  if (kernel_uses(k, SIZE_S))
    return fail(s->ctx, CANVAS_BAD_INPUT, "kernel '%s' takes the stride already", k->name);
  for (int i = 0; s->window && i < k->count; i++) {
    const struct dim *d = &k->nodes[i].attrs.dim;
    bool image = dim_uses(d, SIZE_H) || dim_uses(d, SIZE_W);
    if (image && k->nodes[i].op != PRIMITIVE_SOFTMAX)
      return fail(
          s->ctx, CANVAS_BAD_INPUT,
          "kernel '%s' cannot take the stride in a window: the sizes of node '%s' hold H or "
          "W, before the stride or behind it",
          k->name, k->nodes[i].name);
    if (is_bound_to_size(&k->nodes[i]))
      return fail(s->ctx, CANVAS_BAD_INPUT,
                  "kernel '%s' cannot take the stride in a window: node '%s', a %s, would be "
                  "another on a smaller image",
                  k->name, k->nodes[i].name, node_row(&k->nodes[i])->word);
  }
  return CANVAS_OK;
}

/* -- nodes of the result -- */

static bool is_named(const struct kernel *k, const char *name, bool with_subsamples) {
  for (int i = 0; i < k->count; i++)
    if ((with_subsamples || k->nodes[i].op != PRIMITIVE_SUBSAMPLE) &&
        !strcmp(k->nodes[i].name, name))
      return true;
  return false;
}

/* s1, s2, ...: the first that neither kernel has. Subsamples of s->k are named anew. */
static void free_name(const struct strider *s, char out[NODE_NAME_SIZE]) {
  int i = 1;
  do snprintf(out, NODE_NAME_SIZE, "s%d", i++);
  while (is_named(s->k, out, false) || is_named(s->out, out, true));
}

static canvas_status append(struct strider *s, const struct node *n, int *made) {
  TRY(kernel_add(s->ctx, s->out, n));
  *made = s->out->count - 1;
  return CANVAS_OK;
}

/* *node becomes its subsample along the axes, of a smaller one that it has already; nothing is done
 * for none. */
static canvas_status subsample(struct strider *s, unsigned axes, int *node) {
  int known = s->smaller[*node];
  unsigned taken = known ? s->out->nodes[known].attrs.over : 0;
  if (!axes) return CANVAS_OK;
  if (taken && !(taken & ~axes)) {
    *node = known;
    return subsample(s, axes & ~taken, node);
  }
  struct node n = {.op = PRIMITIVE_SUBSAMPLE,
                   .in = {*node, -1},
                   .attrs = {.dim = dim_size(SIZE_S), .over = axes}};
  free_name(s, n.name);
  TRY(append(s, &n, &s->smaller[*node]));
  *node = s->smaller[*node];
  return CANVAS_OK;
}

/* An unfold takes the stride along those of its axes that have not. Where that is one of two, it is
 * an unfold along each. */
static canvas_status unfold(struct strider *s, struct node *n, int *made) {
  unsigned over = n->attrs.over, taken = strided(shape_of(s, n->in[0])) & over;
  if (!(over & ROLES_SPATIAL)) return append(s, n, made);
  if (taken && taken != over) {
    struct node first = *n;
    first.attrs.over = taken;
    free_name(s, first.name);
    TRY(append(s, &first, &n->in[0]));
    n->attrs.over = over & ~taken;
  }
  if (taken != over) n->attrs.dim = dim_size(SIZE_S);
  return append(s, n, made);
}

/* scale= is of the image that the node has: H becomes H/S. */
static canvas_status softmax(struct strider *s, struct node *n, int *made) {
  const struct shape *a = shape_of(s, n->in[0]);
  struct dim stride = dim_size(SIZE_S), *scale = &n->attrs.dim;
  for (enum role r = ROLE_H; r <= ROLE_W; r++) {
    int axis = shape_find(a, r), power = scale->power[r == ROLE_H ? SIZE_H : SIZE_W];
    if (power && (axis < 0 || !(n->attrs.over >> r & 1)))
      return fail(
          s->ctx, CANVAS_BAD_INPUT,
          "kernel '%s' cannot take the stride in a window: the scale of node '%s' holds H or "
          "W, over which it is not a softmax",
          s->k->name, n->name);
    for (; axis >= 0 && dim_uses(&a->axis[axis].dim, SIZE_S) && power > 0; power--)
      *scale = dim_div(*scale, stride);
  }
  return append(s, n, made);
}

/* Both inputs are made alike. */
static canvas_status binary(struct strider *s, struct node *n, int *made) {
  const struct shape *a = shape_of(s, n->in[0]), *b = shape_of(s, n->in[1]);
  unsigned both = spatial(a) & spatial(b), of_a = strided(a) & both, of_b = strided(b) & both;
  TRY(subsample(s, of_b & ~of_a, &n->in[0]));
  TRY(subsample(s, of_a & ~of_b, &n->in[1]));
  return append(s, n, made);
}

static canvas_status output(struct strider *s, struct node *n, int *made) {
  TRY(subsample(s, ROLES_SPATIAL & ~strided(shape_of(s, n->in[0])), &n->in[0]));
  return append(s, n, made);
}

static canvas_status add_node(struct strider *s, int node) {
  struct node n = s->k->nodes[node];
  for (int j = 0; j < node_row(&n)->arity; j++) n.in[j] = s->to[n.in[j]];
  int *made = &s->to[node];
  if (n.op == PRIMITIVE_OUTPUT) return output(s, &n, made);
  if (n.op == PRIMITIVE_UNFOLD && s->window) return unfold(s, &n, made);
  if (n.op == PRIMITIVE_SOFTMAX && s->window) return softmax(s, &n, made);
  return node_row(&n)->arity == 2 ? binary(s, &n, made) : append(s, &n, made);
}

/* -- axes along which each pixel is computed by itself -- */

/* Whether a binary node meets pixel with pixel along the axis, or repeats one number. */
static bool meets_alike(const struct shape *a, const struct shape *b, enum role axis) {
  struct match m = shape_match(a, b);
  int at = shape_find(b, axis);
  return at < 0 || dim_is_one(&m.left) || at >= b->count - m.suffix || at < m.prefix;
}

static bool sees(const struct kernel *k, const struct node *n, enum role axis) {
  const struct row *row = node_row(n);
  if (row->arity == 2) return !meets_alike(node_input(k, n, 0), node_input(k, n, 1), axis);
  return row->arity && n->attrs.over >> axis & 1;
}

/* -- early subsamples -- */

/* The axes along which a node computes each pixel from the same pixel of its inputs. */
static unsigned pixel_by_pixel(const struct kernel *k, const struct node *n) {
  unsigned axes = spatial(&n->shape);
  for (enum role r = ROLE_H; r <= ROLE_W; r++)
    if (sees(k, n, r)) axes &= ~(1u << r);
  return axes;
}

/* By node: the axes along which all that is read of it are pixels that a subsample keeps, while it
 * needs no others itself. */
static void find_early(const struct kernel *k, unsigned early[KERNEL_NODES_MAX]) {
  bool is_read[KERNEL_NODES_MAX] = {false};
  for (int i = k->count - 1; i >= 0; i--) {
    const struct node *n = &k->nodes[i];
    early[i] = is_read[i] && i ? early[i] & pixel_by_pixel(k, n) : 0;
    unsigned of_inputs = early[i] | (n->op == PRIMITIVE_SUBSAMPLE ? n->attrs.over : 0);
    for (int j = 0; j < node_row(n)->arity; j++) {
      early[n->in[j]] = is_read[n->in[j]] ? early[n->in[j]] & of_inputs : of_inputs;
      is_read[n->in[j]] = true;
    }
  }
}

/* The kernel s->k once more: a subsample stands before all nodes that need not have the whole image
 * for it, up to the input. */
static canvas_status build_early(struct strider *s) {
  unsigned early[KERNEL_NODES_MAX];
  find_early(s->k, early);
  memcpy(s->out->nodes[0].name, s->k->nodes[0].name, NODE_NAME_SIZE);
  for (int i = 1; i < s->k->count; i++) {
    struct node n = s->k->nodes[i];
    bool vanishes = n.op == PRIMITIVE_SUBSAMPLE;
    unsigned of_inputs = early[i] | (vanishes ? n.attrs.over : 0);
    for (int j = 0; j < node_row(&n)->arity; j++) {
      n.in[j] = s->to[n.in[j]];
      const struct shape *a = shape_of(s, n.in[j]);
      TRY(subsample(s, of_inputs & spatial(a) & ~strided(a), &n.in[j]));
    }
    if (vanishes)
      s->to[i] = n.in[0];
    else
      TRY(append(s, &n, &s->to[i]));
  }
  return kernel_verify(s->ctx, s->out);
}

/* -- all of it -- */

static canvas_status build(struct strider *s) {
  TRY(check(s));
  memcpy(s->out->nodes[0].name, s->k->nodes[0].name, NODE_NAME_SIZE);
  for (int i = 1; i < s->k->count; i++) TRY(add_node(s, i));
  return kernel_verify(s->ctx, s->out);
}

struct kernel *kernel_subsample_early(const struct kernel *k) {
  canvas_context ctx = {""};
  struct strider s = {.ctx = &ctx, .k = k, .out = kernel_new(k->name)};
  if (build_early(&s) == CANVAS_OK) return s.out;
  kernel_free(s.out);
  return kernel_copy(k);
}

canvas_status kernel_with_stride(canvas_context *ctx, const struct kernel *k, enum stride_mode mode,
                                 struct kernel **out) {
  if (mode == STRIDE_POOL) {
    *out = kernel_copy(k);
    return CANVAS_OK;
  }
  struct strider s = {.ctx = ctx, .k = k, .window = mode == STRIDE_WINDOW};
  s.out = kernel_new(k->name);
  canvas_status status = build(&s);
  if (status != CANVAS_OK) {
    kernel_free(s.out);
    return status;
  }
  *out = s.window ? kernel_subsample_early(s.out) : s.out;
  if (s.window) kernel_free(s.out);
  return CANVAS_OK;
}
