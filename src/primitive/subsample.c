/* subsample: each S-th pixel along spatial axes, [H] -> [H/S]. It takes the target's stride on a path
 * without a window. Kernels are not drawn with it.
 */
#include "primitive/formula.h"
#include "primitive/lowering.h"
#include "primitive/spelling.h"

static const char *shape(const struct kernel *k, const struct node *n, struct shape *out) {
  const struct shape *a = node_input(k, n, 0);
  unsigned over = n->attrs.over;
  if (!over || over & ~(unsigned)ROLES_SPATIAL) return "over= takes H, W or H,W";
  if (over & ~shape_roles(a)) return "the input has not all axes of over=";
  if (!dim_is_stride(&n->attrs.dim)) return "by= takes S";
  *out = *a;
  for (enum role r = ROLE_H; r <= ROLE_W; r++)
    if (over >> r & 1 && !shape_subsample(out, r, &n->attrs.dim))
      return "the stride is taken already";
  return NULL;
}

/* o[.., h, ..] = a[.., h*S, ..] */
static void lower(struct lowering *l, int node) {
  const struct node *n = &l->k->nodes[node];
  struct place at, from;
  int stage = lowering_stage(l, node, "", &n->shape, &at);
  from = at;
  for (int i = 0; i < n->shape.count; i++)
    if (n->attrs.over >> n->shape.axis[i].role & 1)
      from.axis[i] = lowering_strided(l, at.axis[i], &n->attrs.dim);
  program_define(l->p, stage, lowering_load(l, l->tensor[n->in[0]], &from, n->shape.count));
  l->tensor[node] = stage;
}

/* b = a[..., ::S, ::S] */
static void torch(struct spelling *s, int node) {
  const struct node *n = &s->k->nodes[node];
  const char *by = spelling_dim(s, &n->attrs.dim), *slices = "";
  for (int i = 0; i < n->shape.count; i++) {
    enum role r = n->shape.axis[i].role;
    if (!*slices && !(ROLES_SPATIAL >> r & 1)) continue; /* the dots are for these */
    slices = n->attrs.over >> r & 1 ? spelling_text(s, "%s, ::%s", slices, by)
                                    : spelling_text(s, "%s, :", slices);
  }
  spelling_line(s, "%s = %s[...%s]", s->name[node], s->name[n->in[0]], slices);
}

static bool reads(struct formula *f, int node, const struct spot *at, struct spot *from) {
  const struct node *n = &f->k->nodes[node];
  *from = *at;
  for (int i = 0; i < n->shape.count; i++)
    if (n->attrs.over >> n->shape.axis[i].role & 1)
      from->axis[i] = index_mul(&f->arena, at->axis[i], &n->attrs.dim);
  return true;
}

const struct family family_subsample = {
    .name = "subsample", .shape = shape, .lower = lower, .torch = torch, .reads = reads};
