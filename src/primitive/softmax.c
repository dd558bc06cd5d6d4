/* softmax along any run of neighbouring axes (paper Table 1), stable: the maximum is subtracted. */
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

static const char *shape(const struct kernel *k, const struct node *n, struct shape *out) {
  const struct shape *a = node_input(k, n, 0);
  if (n->attrs.over & ~shape_roles(a)) return "the input has not all axes of over=";
  if (!is_run(a, n->attrs.over)) return "the axes of over= must be neighbours";
  *out = *a;
  return NULL;
}

static int choices(const struct kernel *k, int a, int b, struct candidate *out) {
  (void)b;
  const struct shape *s = &k->nodes[a].shape;
  int count = 0;
  for (int i = 0; i < s->count; i++) {
    unsigned over = 0;
    for (int j = i; j < s->count; j++) {
      over |= 1u << s->axis[j].role;
      out[count++] = (struct candidate){
          .op = PRIMITIVE_SOFTMAX, .in = {a, -1}, .attrs = {dim_number(1), over, 0}, .x = -1};
    }
  }
  return count;
}

static bool work(const struct kernel *k, const struct node *n, const struct sizes *s,
                 struct work *w) {
  (void)k;
  int64_t elements;
  return shape_elements(&n->shape, s, &elements) &&
         !__builtin_mul_overflow(elements, 3, &w->elementwise);
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
  program_define(p, stage, px_div(p, e, lowering_load(l, sum, &kept, rank)));
  l->tensor[node] = stage;
}

/* Over several axes: over the one axis that they flatten to. */
static void torch(struct spelling *s, int node) {
  const struct node *n = &s->k->nodes[node];
  const char *name = s->name[node], *a = s->name[n->in[0]];
  int first = 0, count = 0;
  for (int i = n->shape.count - 1; i >= 0; i--)
    if (n->attrs.over >> n->shape.axis[i].role & 1) first = i, count++;
  if (count == 1)
    spelling_line(s, "%s = torch.softmax(%s, dim=%d)", name, a, first + 1);
  else
    spelling_line(s, "%s = torch.softmax(%s.flatten(%d, %d), dim=%d).reshape(%s)", name, a,
                  first + 1, first + count, first + 1, spelling_shape(s, &n->shape));
}

const struct family family_softmax = {.name = "softmax",
                                      .drawn = true,
                                      .shape = shape,
                                      .choices = choices,
                                      .work = work,
                                      .lower = lower,
                                      .torch = torch};
