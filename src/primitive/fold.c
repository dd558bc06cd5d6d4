/* fold: mean or maximum along one axis, both window axes or both spatial axes, which go (paper
 * Table 1, where it is average or max pooling at any dim).
 */
#include "primitive/formula.h"
#include "primitive/lowering.h"
#include "primitive/spelling.h"

/* One axis, or both of a window or an image. */
static bool is_foldable(unsigned over) {
  unsigned once = over >> ROLES_ONCE ? over >> ROLES_ONCE : over;
  return over && (!(over & (over - 1)) || once == ROLES_IMAGE_WINDOW || once == ROLES_SPATIAL);
}

static const char *shape(const struct kernel *k, const struct node *n, struct shape *out) {
  const struct shape *a = node_input(k, n, 0);
  unsigned over = n->attrs.over;
  if (!is_foldable(over)) return "over= takes one axis, KH,KW or H,W";
  if (over & ~shape_roles(a)) return "the input has not all axes of over=";
  *out = *a;
  shape_remove(out, over);
  return NULL;
}

static int choices(const struct kernel *k, int a, int b, struct candidate *out) {
  (void)b;
  const struct node *from = &k->nodes[a];
  unsigned roles = shape_roles(&from->shape);
  int count = 0;
  for (int i = 0; i < ROLES + 2; i++) {
    unsigned over = i < ROLES ? 1u << i : i == ROLES ? ROLES_IMAGE_WINDOW : ROLES_SPATIAL;
    if (over & ~roles) continue;
    /* the mean of a softmax over its own axes is a constant */
    bool constant = from->op == PRIMITIVE_SOFTMAX && !(from->attrs.over & ~over);
    enum primitive first = constant ? PRIMITIVE_FOLD_MAX : PRIMITIVE_FOLD_MEAN;
    for (enum primitive op = first; op <= PRIMITIVE_FOLD_MAX; op++)
      out[count++] = (struct candidate){
          .op = op, .in = {a, -1}, .attrs = {.dim = dim_one(), .over = over}, .x = -1};
  }
  return count;
}

static bool work(const struct kernel *k, const struct node *n, const struct sizes *s,
                 struct work *w) {
  return shape_elements(node_input(k, n, 0), s, &w->elementwise);
}

static void lower(struct lowering *l, int node) {
  const struct node *n = &l->k->nodes[node];
  const struct shape *a = node_input(l->k, n, 0);
  enum program_reducer reducer = n->op == PRIMITIVE_FOLD_MAX ? REDUCE_MAX : REDUCE_MEAN;
  struct place at, from;
  int stage = lowering_stage(l, node, "", &n->shape, &at), kept = 0;
  from = at;
  for (int i = 0; i < a->count; i++) {
    enum role role = a->axis[i].role;
    if (n->attrs.over >> role & 1)
      from.axis[i] =
          program_reduce(l->p, stage, reducer, role_axis(role), lowering_size(l, &a->axis[i].dim));
    else
      from.axis[i] = at.axis[kept++];
  }
  program_define(l->p, stage, lowering_load(l, l->tensor[n->in[0]], &from, a->count));
  l->tensor[node] = stage;
}

static void torch(struct spelling *s, int node) {
  const struct node *n = &s->k->nodes[node];
  const char *dims = spelling_dims(s, node_input(s->k, n, 0), n->attrs.over);
  spelling_line(s, "%s = %s.%s(dim=%s)", s->name[node], s->name[n->in[0]],
                n->op == PRIMITIVE_FOLD_MAX ? "amax" : "mean", dims);
}

static void formula(struct formula *f, int node) {
  const struct node *n = &f->k->nodes[node];
  const struct shape *a = node_input(f->k, n, 0);
  bool max = n->op == PRIMITIVE_FOLD_MAX;
  struct spot at, from = {0};
  const char *ranges = "";
  formula_element(f, &n->shape, &at);
  for (int i = 0, kept = 0; i < a->count; i++)
    from.axis[i] = n->attrs.over >> a->axis[i].role & 1
                       ? formula_bound(f, a->axis[i].role, &a->axis[i].dim, &ranges)
                       : at.axis[kept++];
  const char *over =
      max ? formula_over(f, "max", ranges) : formula_mean(f, a, n->attrs.over, ranges);
  formula_line(f, node, &at, formula_text(f, "%s%s", over, formula_read(f, n->in[0], &from)));
}

const struct family family_fold = {.name = "fold",
                                   .shape = shape,
                                   .choices = choices,
                                   .work = work,
                                   .lower = lower,
                                   .torch = torch,
                                   .formula = formula};
