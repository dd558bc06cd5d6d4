/* output: any tensor that ends in H W and holds C channels before them, read as [C, H, W]; in a kernel
 * that uses S it ends in H/S W/S.
 */
#include "primitive/formula.h"
#include "primitive/lowering.h"
#include "primitive/spelling.h"

static const char *shape(const struct kernel *k, const struct node *n, struct shape *out) {
  const struct shape *a = node_input(k, n, 0);
  struct dim channels = shape_product(a, ROLES_CHANNEL), c = dim_size(SIZE_C);
  struct dim h = dim_size(SIZE_H), w = dim_size(SIZE_W);
  bool strided = kernel_uses(k, SIZE_S);
  int last = a->count - 1;
  if (strided) h = dim_div(h, dim_size(SIZE_S)), w = dim_div(w, dim_size(SIZE_S));
  if (last < 1 || a->axis[last].role != ROLE_W || a->axis[last - 1].role != ROLE_H ||
      !dim_equal(&a->axis[last].dim, &w) || !dim_equal(&a->axis[last - 1].dim, &h))
    return strided ? "the last axes of the output must be H/S W/S, as the kernel uses S"
                   : "the last axes of the output must be H W";
  if (!dim_equal(&channels, &c)) return "the channels of the output must multiply to C";
  *out = (struct shape){0};
  shape_insert(out, ROLE_CHANNEL, c);
  shape_insert(out, ROLE_H, h);
  shape_insert(out, ROLE_W, w);
  return NULL;
}

static void lower(struct lowering *l, int node) {
  const struct node *n = &l->k->nodes[node];
  const struct shape *a = node_input(l->k, n, 0);
  struct place at, from;
  int stage = lowering_stage(l, node, "", &n->shape, &at);
  from = at;
  from.axis[a->count - 2] = at.axis[1];
  from.axis[a->count - 1] = at.axis[2];
  lowering_unflatten(l, a, at.axis[0], 0, a->count - 2, &from);
  program_define(l->p, stage, lowering_load(l, l->tensor[n->in[0]], &from, a->count));
  l->tensor[node] = stage;
}

static void torch(struct spelling *s, int node) {
  const struct node *n = &s->k->nodes[node];
  spelling_line(s, "return %s", spelling_reshaped(s, n->in[0], &n->shape));
}

/* y is what it reads, unless that has written the line of y. */
static void formula(struct formula *f, int node) {
  const struct node *n = &f->k->nodes[node];
  const struct shape *a = node_input(f->k, n, 0);
  struct spot at, to = {0};
  if (f->last != node) return;
  formula_element(f, a, &at);
  to.axis[0] = formula_flatten(f, a, &at, 0, a->count - 2);
  to.axis[1] = at.axis[a->count - 2];
  to.axis[2] = at.axis[a->count - 1];
  formula_line_of(f, formula_place(f, "y", &to, 3), formula_read(f, n->in[0], &at));
}

const struct family family_output = {
    .name = "output", .shape = shape, .lower = lower, .torch = torch, .formula = formula};
