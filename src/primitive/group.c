/* group: the channel axis gets a group axis in front (paper Table 1).
 *
 *   by=F   [X, rest] -> [F, X/F, rest]        each   [X, rest] -> [group=X, rest]
 */
#include "primitive/lowering.h"
#include "primitive/spelling.h"

static const char *shape(const struct kernel *k, const struct node *n, struct shape *out) {
  const struct shape *a = node_input(k, n, 0);
  int channel = shape_find(a, ROLE_CHANNEL);
  if (shape_find(a, ROLE_GROUP) >= 0) return "the input has a group axis already";
  if (channel < 0) return "the input has no channel axis";
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
  if (shape_find(s, ROLE_GROUP) >= 0 || shape_find(s, ROLE_CHANNEL) < 0) return 0;
  out[0] = (struct candidate){
      .op = PRIMITIVE_GROUP_BY, .in = {a, -1}, .attrs.dim = dim_size(SIZE_G), .x = -1};
  out[1] = (struct candidate){.op = PRIMITIVE_GROUP_EACH, .in = {a, -1}, .attrs.dim = one, .x = -1};
  return 2;
}

/* o[g, c, ..] = a[g*(X/F) + c, ..]; each: o[g, ..] = a[g, ..] */
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
  program_define(l->p, stage, lowering_load(l, l->tensor[n->in[0]], &from, a->count));
  l->tensor[node] = stage;
}

static void torch(struct spelling *s, int node) {
  const struct node *n = &s->k->nodes[node];
  spelling_line(s, "%s = %s", s->name[node], spelling_reshaped(s, n->in[0], &n->shape));
}

const struct family family_group = {.name = "group",
                                    .drawn = true,
                                    .shape = shape,
                                    .choices = choices,
                                    .lower = lower,
                                    .torch = torch};
