/* shift: a circular move by whole pixels along spatial axes (paper Table 1). The amount is part of
 * the kernel's text, so that a kernel is a function of its pack and its weights.
 */
#include "primitive/lowering.h"
#include "primitive/spelling.h"

static const char *shape(const struct kernel *k, const struct node *n, struct shape *out) {
  const struct shape *a = node_input(k, n, 0);
  if (!n->attrs.over || n->attrs.over & ~(unsigned)ROLES_SPATIAL) return "over= takes H, W or H,W";
  if (n->attrs.over & ~shape_roles(a)) return "the input has not all axes of over=";
  if (!n->attrs.amount) return "a shift by=0 does nothing";
  *out = *a;
  return NULL;
}

static int choices(const struct kernel *k, int a, int b, struct candidate *out) {
  (void)b;
  unsigned roles = shape_roles(&k->nodes[a].shape);
  int count = 0;
  static const unsigned overs[] = {1 << ROLE_H, 1 << ROLE_W, ROLES_SPATIAL};
  if (k->nodes[a].op == PRIMITIVE_SHIFT) return 0; /* two shifts are one */
  for (int i = 0; i < 3; i++) {
    if (overs[i] & ~roles) continue;
    for (int by = -1; by <= 1; by += 2)
      out[count++] = (struct candidate){
          .op = PRIMITIVE_SHIFT, .in = {a, -1}, .attrs = {dim_number(1), overs[i], by}, .x = -1};
  }
  return count;
}

static void lower(struct lowering *l, int node) {
  const struct node *n = &l->k->nodes[node];
  struct place at, from;
  int stage = lowering_stage(l, node, "", &n->shape, &at);
  from = at;
  for (int i = 0; i < n->shape.count; i++) {
    if (!(n->attrs.over >> n->shape.axis[i].role & 1)) continue;
    int64_t size = lowering_size(l, &n->shape.axis[i].dim);
    int moved = px_sub(l->p, at.axis[i], px_int(l->p, n->attrs.amount));
    from.axis[i] = px_mod(l->p, moved, px_int(l->p, size));
  }
  program_define(l->p, stage, lowering_load(l, l->tensor[n->in[0]], &from, n->shape.count));
  l->tensor[node] = stage;
}

static void torch(struct spelling *s, int node) {
  const struct node *n = &s->k->nodes[node];
  bool both = n->attrs.over == ROLES_SPATIAL;
  const char *dims = spelling_dims(s, &n->shape, n->attrs.over);
  int by = n->attrs.amount;
  const char *by_text = both ? spelling_text(s, "(%d, %d)", by, by) : spelling_text(s, "%d", by);
  spelling_line(s, "%s = torch.roll(%s, %s, dims=%s)", s->name[node], s->name[n->in[0]], by_text,
                dims);
}

const struct family family_shift = {.name = "shift",
                                    .drawn = true,
                                    .shape = shape,
                                    .choices = choices,
                                    .lower = lower,
                                    .torch = torch};
