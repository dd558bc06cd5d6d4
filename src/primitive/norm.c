/* norm: layer norm and RMS norm along any axes, without weights: scale and bias are primitives of their
 * own.
 */
#include "primitive/formula.h"
#include "primitive/lowering.h"
#include "primitive/spelling.h"

static const double epsilon = 1e-5;

static const char *shape(const struct kernel *k, const struct node *n, struct shape *out) {
  const struct shape *a = node_input(k, n, 0);
  if (n->attrs.over & ~shape_roles(a)) return "the input has not all axes of over=";
  *out = *a;
  return NULL;
}

/* Along the channels, and along all that the shape has. */
static int choices(const struct kernel *k, int a, int b, struct candidate *out) {
  (void)b;
  unsigned roles = shape_roles(&k->nodes[a].shape), channel = 1 << ROLE_CHANNEL;
  int count = 0;
  for (enum primitive op = PRIMITIVE_NORM; op <= PRIMITIVE_NORM_RMS; op++) {
    struct candidate c = {.op = op, .in = {a, -1}, .attrs.dim = dim_one(), .x = -1};
    c.attrs.over = channel;
    if (roles & channel && roles != channel) out[count++] = c;
    c.attrs.over = roles;
    if (roles) out[count++] = c;
  }
  return count;
}

static bool work(const struct kernel *k, const struct node *n, const struct sizes *s,
                 struct work *w) {
  (void)k;
  int64_t elements, each = n->op == PRIMITIVE_NORM ? 5 : 3;
  return shape_elements(&n->shape, s, &elements) &&
         !__builtin_mul_overflow(elements, each, &w->elementwise);
}

/* a, less its mean where there is one. */
static int centred(struct lowering *l, const struct node *n, const struct place *from, int mean,
                   const struct place *kept, int rank) {
  int a = lowering_load(l, l->tensor[n->in[0]], from, n->shape.count);
  return mean < 0 ? a : px_sub(l->p, a, lowering_load(l, mean, kept, rank));
}

/* A stage over the axes that stay: the mean of a, or with `squared` of (a - mean)^2. */
static int average(struct lowering *l, int node, const char *suffix, bool squared, int mean) {
  const struct node *n = &l->k->nodes[node];
  struct shape kept = n->shape;
  shape_remove(&kept, n->attrs.over);
  struct place at, from;
  int stage = lowering_stage(l, node, suffix, &kept, &at), next = 0;
  from = at;
  for (int i = 0; i < n->shape.count; i++) {
    enum role role = n->shape.axis[i].role;
    from.axis[i] = n->attrs.over >> role & 1
                       ? program_reduce(l->p, stage, REDUCE_MEAN, role_axis(role),
                                        lowering_size(l, &n->shape.axis[i].dim))
                       : at.axis[next++];
  }
  int value = centred(l, n, &from, mean, &at, kept.count);
  program_define(l->p, stage, squared ? px_mul(l->p, value, value) : value);
  return stage;
}

static void lower(struct lowering *l, int node) {
  const struct node *n = &l->k->nodes[node];
  int mean = n->op == PRIMITIVE_NORM ? average(l, node, "_mean", false, -1) : -1;
  int square = average(l, node, "_square", true, mean);
  struct place at, kept;
  int stage = lowering_stage(l, node, "", &n->shape, &at), rank = 0;
  kept = at;
  for (int i = 0; i < n->shape.count; i++)
    if (!(n->attrs.over >> n->shape.axis[i].role & 1)) kept.axis[rank++] = at.axis[i];
  int value = centred(l, n, &at, mean, &kept, rank);
  int sum = px_add(l->p, lowering_load(l, square, &kept, rank), px_number(l->p, epsilon));
  program_define(l->p, stage, px_div(l->p, value, px_call(l->p, PX_SQRT, sum)));
  l->tensor[node] = stage;
}

static void torch(struct spelling *s, int node) {
  const struct node *n = &s->k->nodes[node];
  const char *a = s->name[n->in[0]], *dims = spelling_dims(s, &n->shape, n->attrs.over);
  if (n->op == PRIMITIVE_NORM) {
    const char *centre = spelling_local(s, node, "centred");
    spelling_line(s, "%s = %s - %s.mean(dim=%s, keepdim=True)", centre, a, a, dims);
    a = centre;
  }
  spelling_line(s, "%s = %s * torch.rsqrt(torch.square(%s).mean(dim=%s, keepdim=True) + %g)",
                s->name[node], a, a, dims, epsilon);
}

/* b_mean[h, w] = 1/C·Σ(c < C) a[c, h, w], then the line of the node. */
static const char *mean_line(struct formula *f, int node) {
  const struct node *n = &f->k->nodes[node];
  struct shape kept = n->shape;
  struct spot at, from = {0};
  const char *ranges = "", *name = formula_name(f, formula_text(f, "%s_mean", n->name));
  shape_remove(&kept, n->attrs.over);
  formula_element(f, &kept, &at);
  for (int i = 0, next = 0; i < n->shape.count; i++)
    from.axis[i] = n->attrs.over >> n->shape.axis[i].role & 1
                       ? formula_bound(f, n->shape.axis[i].role, &n->shape.axis[i].dim, &ranges)
                       : at.axis[next++];
  formula_line_of(f, formula_place(f, name, &at, kept.count),
                  formula_text(f, "%s%s", formula_mean(f, &n->shape, n->attrs.over, ranges),
                               formula_read(f, n->in[0], &from)));
  return name;
}

static void formula(struct formula *f, int node) {
  const struct node *n = &f->k->nodes[node];
  const char *mean = n->op == PRIMITIVE_NORM ? mean_line(f, node) : NULL, *ranges = "";
  struct spot at, all, kept = {0};
  int rank = 0;
  formula_element(f, &n->shape, &at);
  formula_bound_axes(f, &n->shape, n->attrs.over, &at, &all, &ranges);
  for (int i = 0; i < n->shape.count; i++)
    if (!(n->attrs.over >> n->shape.axis[i].role & 1)) kept.axis[rank++] = at.axis[i];
  const char *a = formula_read(f, n->in[0], &at), *each = formula_read(f, n->in[0], &all);
  if (mean) {
    mean = formula_place(f, mean, &kept, rank);
    a = formula_text(f, "(%s - %s)", a, mean);
    each = formula_text(f, "(%s - %s)", each, mean);
  }
  const char *over = formula_mean(f, &n->shape, n->attrs.over, ranges);
  formula_line(f, node, &at, formula_text(f, "%s/√(%s%s² + 1/100000)", a, over, each));
}

const struct family family_norm = {.name = "norm",
                                   .shape = shape,
                                   .choices = choices,
                                   .work = work,
                                   .lower = lower,
                                   .torch = torch,
                                   .formula = formula};
