/* softmax along any run of neighbouring axes (paper Table 1), stable: the maximum is subtracted.
 *
 * Along n elements its mean is 1/n, at H = W = 56 a three-thousandth: numbers that vanish in
 * products and that only enormous weights bring back. scale=DIM multiplies the result; the sampler
 * draws it with the size of its axes, so that the mean is 1 in every layer.
 */
#include <string.h>

#include "primitive/formula.h"
#include "primitive/lowering.h"
#include "primitive/spelling.h"

/* Whether the axes of `over` stand side by side in the shape. */
static bool is_run(const struct shape *s, unsigned over) {
  int first = -1, count = 0;
  for (int i = 0; i < s->count; i++)
    if (over >> s->axis[i].role & 1) {
      if (first < 0) first = i;
      if (i - first != count++) return false;
    }
  return count > 0;
}

/* Whether every variable of the scale is one of the shape's: any other would be bound by nothing. */
static bool is_bound(const struct dim *scale, const struct shape *s) {
  for (enum size x = SIZE_X0; x < SIZES; x++) {
    bool found = !dim_uses(scale, x);
    for (int i = 0; i < s->count; i++) found |= dim_uses(&s->axis[i].dim, x);
    if (!found) return false;
  }
  return true;
}

static const char *shape(const struct kernel *k, const struct node *n, struct shape *out) {
  const struct shape *a = node_input(k, n, 0);
  if (n->attrs.over & ~shape_roles(a)) return "the input has not all axes of over=";
  if (!is_run(a, n->attrs.over)) return "the axes of over= must be neighbours";
  if (!is_bound(&n->attrs.dim, a)) return "scale= holds a variable that the input has not";
  *out = *a;
  return NULL;
}

/* The scale is a whole number: it needs no rounding, in any data type. */
static int conditions(const struct kernel *k, const struct node *n, struct dim out[2]) {
  (void)k;
  out[0] = n->attrs.dim;
  return 1;
}

static int choices(const struct kernel *k, int a, int b, struct candidate *out) {
  (void)b;
  const struct shape *s = &k->nodes[a].shape;
  int count = 0;
  for (int i = 0; i < s->count; i++) {
    unsigned over = 0;
    for (int j = i; j < s->count; j++) {
      over |= 1u << s->axis[j].role;
      out[count++] = (struct candidate){.op = PRIMITIVE_SOFTMAX,
                                        .in = {a, -1},
                                        .attrs = {.dim = shape_product(s, over), .over = over},
                                        .x = -1};
    }
  }
  return count;
}

static bool work(const struct kernel *k, const struct node *n, const struct sizes *s,
                 struct work *w) {
  (void)k;
  int64_t elements, each = dim_is_one(&n->attrs.dim) ? 3 : 4;
  return shape_elements(&n->shape, s, &elements) &&
         !__builtin_mul_overflow(elements, each, &w->elementwise);
}

/* A stage over the kept axes that reduces exp(a - m), or a itself for the maximum m (m < 0). */
static int reduce(struct lowering *l, int node, const char *suffix, enum program_reducer reducer,
                  int m) {
  const struct node *n = &l->k->nodes[node];
  struct shape kept = n->shape;
  shape_remove(&kept, n->attrs.over);
  struct place at, from;
  int stage = lowering_stage(l, node, suffix, &kept, &at), next = 0;
  from = at;
  for (int i = 0; i < n->shape.count; i++) {
    enum role role = n->shape.axis[i].role;
    from.axis[i] = n->attrs.over >> role & 1
                       ? program_reduce(l->p, stage, reducer, role_axis(role),
                                        lowering_size(l, &n->shape.axis[i].dim))
                       : at.axis[next++];
  }
  int value = lowering_load(l, l->tensor[n->in[0]], &from, n->shape.count);
  if (m >= 0)
    value = px_call(l->p, PX_EXP, px_sub(l->p, value, lowering_load(l, m, &at, kept.count)));
  program_define(l->p, stage, value);
  return stage;
}

static void lower(struct lowering *l, int node) {
  const struct node *n = &l->k->nodes[node];
  struct program *p = l->p;
  int m = reduce(l, node, "_max", REDUCE_MAX, -1), sum = reduce(l, node, "_sum", REDUCE_SUM, m);
  struct place at, kept;
  int stage = lowering_stage(l, node, "", &n->shape, &at), rank = 0;
  kept = at;
  for (int i = 0; i < n->shape.count; i++)
    if (!(n->attrs.over >> n->shape.axis[i].role & 1)) kept.axis[rank++] = at.axis[i];
  int a = lowering_load(l, l->tensor[n->in[0]], &at, n->shape.count);
  int e = px_call(p, PX_EXP, px_sub(p, a, lowering_load(l, m, &kept, rank)));
  int value = px_div(p, e, lowering_load(l, sum, &kept, rank));
  if (!dim_is_one(&n->attrs.dim))
    value = px_mul(p, value, px_number(p, (double)lowering_size(l, &n->attrs.dim)));
  program_define(p, stage, value);
  l->tensor[node] = stage;
}

/* Over several axes: over the one axis that they flatten to. */
static void torch(struct spelling *s, int node) {
  const struct node *n = &s->k->nodes[node];
  const char *name = s->name[node], *a = s->name[n->in[0]];
  int first = 0, count = 0;
  for (int i = n->shape.count - 1; i >= 0; i--)
    if (n->attrs.over >> n->shape.axis[i].role & 1) first = i, count++;
  const char *times = "";
  if (!dim_is_one(&n->attrs.dim)) {
    const char *dim = spelling_dim(s, &n->attrs.dim);
    times = spelling_text(s, strchr(dim, ' ') ? " * (%s)" : " * %s", dim);
  }
  if (count == 1)
    spelling_line(s, "%s = torch.softmax(%s, dim=%d)%s", name, a, first + 1, times);
  else
    spelling_line(s, "%s = torch.softmax(%s.flatten(%d, %d), dim=%d).reshape(%s)%s", name, a,
                  first + 1, first + count, first + 1, spelling_shape(s, &n->shape), times);
}

/* The maximum, which only keeps numbers small, has no place in it. */
static void formula(struct formula *f, int node) {
  const struct node *n = &f->k->nodes[node];
  struct spot at, all;
  const char *ranges = "", *scale = "";
  formula_element(f, &n->shape, &at);
  formula_bound_axes(f, &n->shape, n->attrs.over, &at, &all, &ranges);
  if (!dim_is_one(&n->attrs.dim))
    scale = formula_text(f, "%s·", formula_dim(f, &n->attrs.dim, false));
  formula_line(f, node, &at,
               formula_text(f, "%sexp(%s)/%sexp(%s)", scale, formula_read(f, n->in[0], &at),
                            formula_over(f, "Σ", ranges), formula_read(f, n->in[0], &all)));
}

const struct family family_softmax = {.name = "softmax",
                                      .shape = shape,
                                      .conditions = conditions,
                                      .choices = choices,
                                      .work = work,
                                      .lower = lower,
                                      .torch = torch,
                                      .formula = formula};
