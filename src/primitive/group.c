/* group: the channel axis gets a group axis in front (paper Table 1).
 *
 *   by=F   [X, rest] -> [F, X/F, rest]        each   [X, rest] -> [group=X, rest]
 *   none   [G, X, rest] -> [G*X, rest]        takes the group axis away
 */
#include "primitive/formula.h"
#include "primitive/lowering.h"
#include "primitive/spelling.h"

static const char *without(const struct shape *a, struct shape *out) {
  unsigned both = 1 << ROLE_GROUP | 1 << ROLE_CHANNEL;
  if (shape_find(a, ROLE_GROUP) < 0) return "the input has no group axis";
  *out = *a;
  shape_remove(out, both);
  shape_insert(out, ROLE_CHANNEL, shape_product(a, both));
  return NULL;
}

static const char *shape(const struct kernel *k, const struct node *n, struct shape *out) {
  const struct shape *a = node_input(k, n, 0);
  int channel = shape_find(a, ROLE_CHANNEL);
  if (n->op == PRIMITIVE_GROUP_NONE) return without(a, out);
  if (shape_find(a, ROLE_GROUP) >= 0) return "the input has a group axis already";
  if (channel < 0) return "the input has no channel axis";
  if (a->count == AXES_MAX && n->op == PRIMITIVE_GROUP_BY)
    return "the result would have more than 8 axes";
  struct dim x = a->axis[channel].dim;
  *out = *a;
  if (n->op == PRIMITIVE_GROUP_EACH) {
    shape_remove(out, 1 << ROLE_CHANNEL);
    shape_insert(out, ROLE_GROUP, x);
    return NULL;
  }
  if (!dim_is_whole(&n->attrs.dim)) return "by= is never whole";
  out->axis[channel].dim = dim_div(x, n->attrs.dim);
  shape_insert(out, ROLE_GROUP, n->attrs.dim);
  return NULL;
}

static int choices(const struct kernel *k, int a, int b, struct candidate *out) {
  (void)b;
  const struct shape *s = &k->nodes[a].shape;
  struct dim one = dim_one();
  if (shape_find(s, ROLE_GROUP) >= 0) {
    out[0] =
        (struct candidate){.op = PRIMITIVE_GROUP_NONE, .in = {a, -1}, .attrs.dim = one, .x = -1};
    return 1;
  }
  if (shape_find(s, ROLE_CHANNEL) < 0) return 0;
  out[0] = (struct candidate){
      .op = PRIMITIVE_GROUP_BY, .in = {a, -1}, .attrs.dim = dim_size(SIZE_G), .x = -1};
  out[1] = (struct candidate){.op = PRIMITIVE_GROUP_EACH, .in = {a, -1}, .attrs.dim = one, .x = -1};
  return 2;
}

/* o[g, c, ..] = a[g*(X/F) + c, ..]; each: o[g, ..] = a[g, ..]; none: o[c, ..] = a[c/X, c%X, ..] */
static void lower(struct lowering *l, int node) {
  const struct node *n = &l->k->nodes[node];
  const struct shape *a = node_input(l->k, n, 0);
  struct place at, from;
  int stage = lowering_stage(l, node, "", &n->shape, &at);
  from = at;
  if (n->op == PRIMITIVE_GROUP_BY) {
    from.axis[0] = lowering_flatten(l, &n->shape, &at, 0, 2);
    for (int i = 1; i < a->count; i++) from.axis[i] = at.axis[i + 1];
  }
  int rest = a->count - n->shape.count; /* one axis more where there is a channel axis */
  if (n->op == PRIMITIVE_GROUP_NONE) {
    lowering_unflatten(l, a, at.axis[0], 0, rest + 1, &from);
    for (int i = 1; i < n->shape.count; i++) from.axis[i + rest] = at.axis[i];
  }
  program_define(l->p, stage, lowering_load(l, l->tensor[n->in[0]], &from, a->count));
  l->tensor[node] = stage;
}

static void torch(struct spelling *s, int node) {
  const struct node *n = &s->k->nodes[node];
  spelling_line(s, "%s = %s", s->name[node], spelling_reshaped(s, n->in[0], &n->shape));
}

static bool reads(struct formula *f, int node, const struct spot *at, struct spot *from) {
  const struct node *n = &f->k->nodes[node];
  const struct shape *a = node_input(f->k, n, 0);
  int rest = a->count - n->shape.count; /* -1, 0 or 1 axis more; the last ones stay */
  int changed = n->op == PRIMITIVE_GROUP_BY ? 2 : rest > 0 ? 1 : 0;
  if (at->outside & ((1u << changed) - 1)) return false;
  for (int i = changed; i < n->shape.count; i++) from->axis[i + rest] = at->axis[i];
  from->outside = rest < 0 ? at->outside >> -rest : at->outside << rest;
  if (n->op == PRIMITIVE_GROUP_BY) from->axis[0] = formula_flatten(f, &n->shape, at, 0, 2);
  if (n->op == PRIMITIVE_GROUP_NONE && changed) formula_unflatten(f, a, at->axis[0], 0, 2, from);
  return true;
}

const struct family family_group = {.name = "group",
                                    .shape = shape,
                                    .choices = choices,
                                    .lower = lower,
                                    .torch = torch,
                                    .reads = reads};
