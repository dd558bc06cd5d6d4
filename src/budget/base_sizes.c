/* Base values of the variables: the first step of the solver by constraints (paper 6.3).
 *
 * A dim of target i that holds x is p*x/q in lowest terms: q | x. All dims and conditions together:
 * lcm_ij | x_ij. Scaling by channels: x_ij = k_ij * lcm_ij, k_ij = ceil(C_i lcm_1j / (C_1 lcm_ij)),
 * where target 1 is the first of those with the fewest channels, so that k_1j = 1.
 *
 * Theorem 1 promises one variable of power one per dim. Wider dims (x0*x1/q, x0*x0/q) are made
 * whole afterwards by multiplying their first variable by what is missing: multiples keep whole
 * dims whole, so every dim is whole at the end, though such an x may be larger than it had to be.
 */
#include <string.h>

#include "budget/solver.h"

struct visit {
  canvas_context *ctx;
  struct problem *p;
  struct binding *b;
  bool simple; /* this pass is about dims with at most one variable, of power one */
};

static bool is_simple(const struct dim *d) {
  int powers = 0;
  for (int s = SIZE_X0; s < SIZES; s++) powers += d->power[s];
  return powers <= 1;
}

static canvas_status too_large(const struct visit *v, int node, const struct dim *d) {
  struct buf text = {0};
  dim_print(d, &text);
  canvas_status status =
      fail(v->ctx, CANVAS_NONE, "target '%s': node '%s' of kernel '%s': %.200s is too large",
           v->b->target.name, v->p->kernel->nodes[node].name, v->p->kernel->name, text.text);
  buf_free(&text);
  return status;
}

/* Multiplies the first variable of d by the denominator of d's value. A dim without variables is
 * left to binding_check. */
static bool visit_dim(void *data, int node, const struct dim *d) {
  struct visit *v = data;
  int x = dim_variable(d, NULL);
  int64_t num, den;
  if (x < 0 || x == VARIABLES || is_simple(d) != v->simple) return true;
  int64_t *value = &v->b->sizes.value[SIZE_X0 + x];
  if (!dim_ratio(d, &v->b->sizes, &num, &den) || den > SIZE_LIMIT) {
    too_large(v, node, d);
    return false;
  }
  if (den > 1 && !v->simple) v->p->separate = false;
  *value *= den;
  if (*value <= SIZE_LIMIT) return true;
  fail(v->ctx, CANVAS_NONE, "target '%s': x%d must be a multiple of %lld, over the limit of %lld",
       v->b->target.name, x, (long long)*value, (long long)SIZE_LIMIT);
  return false;
}

/* lcm_ij of one target. */
static canvas_status smallest(canvas_context *ctx, struct problem *p, struct binding *b) {
  for (int x = 0; x < VARIABLES; x++) b->sizes.value[SIZE_X0 + x] = p->variables >> x & 1;
  for (int pass = 0; pass < 2; pass++) {
    struct visit v = {ctx, p, b, pass == 0};
    if (!kernel_each_dim(p->kernel, visit_dim, &v)) return CANVAS_NONE;
  }
  return CANVAS_OK;
}

/* Target `first` is target 1 of the paper. Products stay below 2^48. */
static canvas_status scale(canvas_context *ctx, struct problem *p, int first) {
  const struct sizes one = p->bindings[first].sizes;
  for (int i = 0; i < p->count; i++)
    for (int s = SIZE_X0; s < SIZES; s++) {
      int64_t *x = &p->bindings[i].sizes.value[s];
      if (!*x) continue;
      int64_t wanted = p->bindings[i].sizes.value[SIZE_C] * one.value[s];
      int64_t step = one.value[SIZE_C] * *x;
      int64_t k = (wanted + step - 1) / step;
      if (k > SIZE_LIMIT / *x)
        return fail(ctx, CANVAS_NONE, "target '%s': the base size of %s is over the limit of %lld",
                    p->bindings[i].target.name, size_name((enum size)s), (long long)SIZE_LIMIT);
      *x *= k;
    }
  return CANVAS_OK;
}

canvas_status problem_units(canvas_context *ctx, struct problem *p) {
  p->separate = true;
  for (int i = 0; i < p->count; i++) {
    TRY(smallest(ctx, p, &p->bindings[i]));
    p->unit[i] = p->bindings[i].sizes;
  }
  return CANVAS_OK;
}

canvas_status problem_scale(canvas_context *ctx, struct problem *p) {
  int first = 0;
  for (int i = 0; i < p->count; i++)
    if (p->bindings[i].sizes.value[SIZE_C] < p->bindings[first].sizes.value[SIZE_C]) first = i;
  return scale(ctx, p, first);
}

void problem_unscale(struct problem *p) {
  for (int i = 0; i < p->count; i++) p->bindings[i].sizes = p->unit[i];
}
