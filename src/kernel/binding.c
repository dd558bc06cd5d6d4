/* Checks whether a kernel's sizes are legal at a target, and computes its cost there. */
#include <string.h>

#include "base/saturating.h"
#include "kernel/pack.h"

/* -- weights -- */

int weight_shape(const struct kernel *k, const struct binding *b, int node,
                 int64_t out[WEIGHT_AXES]) {
  struct shape w;
  if (!node_weight(k, node, &w)) return 0;
  out[0] = b->copies;
  for (int i = 0; i < w.count; i++)
    if (!dim_value(&w.axis[i].dim, &b->sizes, &out[1 + i])) return 0;
  return 1 + w.count;
}

bool node_is_normed(const struct kernel *k, const struct binding *b, int node) {
  return b->norm != NORM_NONE && node_is_inner(k, node);
}

/* Number of scales and shifts: two per output of one copy of the weight; 0 for a node without
 * norm. */
static bool norm_params(const struct kernel *k, const struct binding *b, int node, int64_t *out) {
  struct shape w;
  *out = 0;
  if (!node_is_normed(k, b, node)) return true;
  node_weight(k, node, &w);
  return dim_value(&w.axis[0].dim, &b->sizes, out) && !__builtin_mul_overflow(*out, 2, out);
}

/* -- legality -- */

bool node_measure(const struct kernel *k, const struct binding *b, int node, struct node_use *out) {
  const struct node *n = &k->nodes[node];
  const struct family *f = node_row(n)->family;
  struct work w = {0};
  int64_t norm;
  if (!shape_elements(&n->shape, &b->sizes, &out->written)) return false;
  if (f->work && !f->work(k, n, &b->sizes, &w)) return false;
  if (!norm_params(k, b, node, &norm) || __builtin_add_overflow(w.params, norm, &w.params))
    return false;
  return !__builtin_mul_overflow(out->written, b->copies, &out->written) &&
         !__builtin_mul_overflow(w.params, b->copies, &out->owned) &&
         !__builtin_mul_overflow(w.macs, b->copies, &out->macs);
}

struct visit {
  const struct kernel *k;
  const struct binding *b;
  canvas_context *ctx;
};

static bool visit_dim(void *data, int node, const struct dim *d) {
  const struct visit *v = data;
  int64_t num, den;
  if (dim_ratio(d, &v->b->sizes, &num, &den) && den == 1) return true;
  const char *name = v->k->nodes[node].name;
  struct buf text = {0};
  dim_print(d, &text);
  if (dim_ratio(d, &v->b->sizes, &num, &den))
    fail(
        v->ctx, CANVAS_BAD_INPUT,
        "target '%s': node '%s' of kernel '%s' needs a whole number for %.200s, which is %lld/%lld",
        v->b->target.name, *name ? name : "out", v->k->name, text.text, (long long)num,
        (long long)den);
  else
    fail(v->ctx, CANVAS_BAD_INPUT, "target '%s': node '%s' of kernel '%s': %.200s is too large",
         v->b->target.name, *name ? name : "out", v->k->name, text.text);
  buf_free(&text);
  return false;
}

static canvas_status check_projection(canvas_context *ctx, const struct binding *b, int64_t limit) {
  struct cost c = projection_cost(b);
  if (c.activations <= limit && c.params <= limit) return CANVAS_OK;
  return fail(ctx, CANVAS_BAD_INPUT,
              "target '%s': its projection has %lld %s, over the limit of %lld", b->target.name,
              (long long)(c.activations > limit ? c.activations : c.params),
              c.activations > limit ? "elements" : "weights", (long long)limit);
}

static canvas_status check_elements(canvas_context *ctx, const struct kernel *k,
                                    const struct binding *b, int64_t limit) {
  TRY(check_projection(ctx, b, limit));
  for (int i = 0; i < k->count; i++) {
    const char *name = *k->nodes[i].name ? k->nodes[i].name : "out";
    struct node_use use;
    if (!node_measure(k, b, i, &use))
      return fail(ctx, CANVAS_BAD_INPUT, "target '%s': node '%s' of kernel '%s' is too large",
                  b->target.name, name, k->name);
    if (use.written > limit || use.owned > limit)
      return fail(ctx, CANVAS_BAD_INPUT,
                  "target '%s': node '%s' of kernel '%s' has %lld %s, over the limit of %lld",
                  b->target.name, name, k->name,
                  (long long)(use.written > limit ? use.written : use.owned),
                  use.written > limit ? "elements" : "weights", (long long)limit);
  }
  return CANVAS_OK;
}

/* Windows that a stride takes start at each S-th pixel, and nothing is left over. */
static canvas_status check_stride(canvas_context *ctx, const struct kernel *k,
                                  const struct binding *b) {
  const struct target *t = &b->target;
  int64_t s = b->sizes.value[SIZE_S];
  if (s == 1 || (t->h % s == 0 && t->w % s == 0)) return CANVAS_OK;
  return fail(
      ctx, CANVAS_BAD_INPUT,
      "target '%s': kernel '%s' takes the stride of %lld itself, so H and W must be multiples "
      "of it, not %lldx%lld",
      t->name, k->name, (long long)s, (long long)t->h, (long long)t->w);
}

static canvas_status check_groups(canvas_context *ctx, const struct kernel *k,
                                  const struct binding *b) {
  int64_t g = b->sizes.value[SIZE_G], c = b->sizes.value[SIZE_C];
  if (!kernel_uses(k, SIZE_G)) return CANVAS_OK;
  if (g < 1 || c % g)
    return fail(ctx, CANVAS_BAD_INPUT, "target '%s': G=%lld does not divide its %lld channels",
                b->target.name, (long long)g, (long long)c);
  return CANVAS_OK;
}

canvas_status binding_check(canvas_context *ctx, const struct kernel *k, const struct binding *b,
                            int64_t elements_limit, bool exempt) {
  struct visit v = {k, b, ctx};
  struct cost cost;
  TRY(check_groups(ctx, k, b));
  TRY(check_stride(ctx, k, b));
  if (!exempt && target_out_blocks(&b->target) > 1 && !kernel_has_weights(k))
    return fail(ctx, CANVAS_BAD_INPUT,
                "target '%s': kernel '%s' has no weights, its %lld copies side by side would be "
                "equal",
                b->target.name, k->name, (long long)b->copies);
  if (!kernel_each_dim(k, visit_dim, &v)) return CANVAS_BAD_INPUT;
  TRY(check_elements(ctx, k, b, elements_limit));
  if (!binding_cost(k, b, &cost))
    return fail(ctx, CANVAS_BAD_INPUT, "target '%s': the cost of kernel '%s' passes 2^62",
                b->target.name, k->name);
  return CANVAS_OK;
}

/* -- cost -- */

static const int64_t fp32 = 4;

int64_t binding_pooling(const struct binding *b) {
  return b->target.stride / b->sizes.value[SIZE_S];
}

/* Cost of averaging the input over stride x stride windows. Counted as published: a full window for
 * each result, also at the edge. */
static struct cost pooling_cost(const struct binding *b) {
  const struct target *t = &b->target;
  struct cost c = {0};
  if (binding_pooling(b) == 1) return c;
  c.activations = t->cin * b->sizes.value[SIZE_H] * b->sizes.value[SIZE_W];
  if (__builtin_mul_overflow(c.activations, t->stride * t->stride, &c.elementwise))
    c.elementwise = INT64_MAX;
  c.bytes = fp32 * (t->cin * t->h * t->w + c.activations);
  return c;
}

/* Sizes are within target_check's limits, so that nothing overflows but the macs. */
struct cost projection_cost(const struct binding *b) {
  const struct target *t = &b->target;
  struct cost c = {0};
  if (!t->projected) return c;
  int64_t pixels = b->sizes.value[SIZE_H] * b->sizes.value[SIZE_W];
  c.params = t->cin * t->cout;
  c.activations = t->cout * pixels;
  c.macs = saturating_mul(c.params, pixels);
  c.bytes = fp32 * (t->cin * pixels + c.activations + c.params);
  return c;
}

/* Cost of the mean over the copies' results, if there are several blocks of inputs. */
static struct cost averaging_cost(const struct binding *b) {
  const struct target *t = &b->target;
  struct cost c = {0};
  if (target_in_blocks(t) == 1) return c;
  c.activations = t->cout * target_pixels(t);
  c.elementwise = target_in_blocks(t) * c.activations;
  c.bytes = fp32 * (c.activations + c.elementwise);
  return c;
}

/* Cost of the norms of one copy. The additions are those of the folded biases. */
static bool norm_cost(const struct kernel *k, const struct binding *b, struct cost *out) {
  *out = (struct cost){0};
  for (int i = 0; i < k->count; i++) {
    struct cost c = {0};
    if (!node_is_normed(k, b, i)) continue;
    if (!norm_params(k, b, i, &c.params) ||
        !shape_elements(&k->nodes[i].shape, &b->sizes, &c.elementwise) ||
        __builtin_mul_overflow(c.params, fp32, &c.bytes) || !cost_add(out, &c, 1))
      return false;
  }
  return true;
}

bool binding_cost(const struct kernel *k, const struct binding *b, struct cost *out) {
  struct cost kernel, norms, pooling = pooling_cost(b), averaging = averaging_cost(b);
  struct cost projection = projection_cost(b);
  *out = (struct cost){0};
  return norm_cost(k, b, &norms) && cost_add(out, &norms, b->copies) &&
         kernel_cost(k, &b->sizes, &kernel) && cost_add(out, &kernel, b->copies) &&
         cost_add(out, &pooling, 1) && cost_add(out, &projection, 1) &&
         cost_add(out, &averaging, 1);
}
