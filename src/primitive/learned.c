/* learned factors and offsets: one number for each place along the axes of `over`, the same for all
 * others (the published code's Scale; a bias over H,W is a learned position).
 */
#include "primitive/formula.h"
#include "primitive/lowering.h"
#include "primitive/spelling.h"

static const char *shape(const struct kernel *k, const struct node *n, struct shape *out) {
  const struct shape *a = node_input(k, n, 0);
  if (!n->attrs.over || n->attrs.over & ~shape_roles(a))
    return "the input has not all axes of over=";
  *out = *a;
  return NULL;
}

/* Channels, all that holds channels, pixels, and every place. */
static int choices(const struct kernel *k, int a, int b, struct candidate *out) {
  (void)b;
  unsigned roles = shape_roles(&k->nodes[a].shape);
  const unsigned overs[] = {1 << ROLE_CHANNEL, roles & ROLES_CHANNEL, roles & ROLES_SPATIAL, roles};
  int count = 0;
  for (int i = 0; i < 4; i++) {
    bool known = !overs[i] || overs[i] & ~roles;
    for (int j = 0; j < i; j++) known |= overs[j] == overs[i];
    for (enum primitive op = PRIMITIVE_SCALE; !known && op <= PRIMITIVE_BIAS; op++)
      out[count++] = (struct candidate){
          .op = op, .in = {a, -1}, .attrs = {.dim = dim_one(), .over = overs[i]}, .x = -1};
  }
  return count;
}

static void weight(const struct kernel *k, const struct node *n, struct shape *out) {
  *out = *node_input(k, n, 0);
  shape_remove(out, ~n->attrs.over);
}

static bool work(const struct kernel *k, const struct node *n, const struct sizes *s,
                 struct work *w) {
  struct shape numbers;
  weight(k, n, &numbers);
  return shape_elements(&n->shape, s, &w->elementwise) && shape_elements(&numbers, s, &w->params);
}

static int with_weight(struct program *p, enum primitive op, int a, int w) {
  return op == PRIMITIVE_SCALE ? px_mul(p, a, w) : px_add(p, a, w);
}

static void lower(struct lowering *l, int node) {
  const struct node *n = &l->k->nodes[node];
  int index[AXES_MAX + 1], lead = l->copies > 1, count = 0, numbers = lowering_weight(l, node);
  struct place at;
  int stage = lowering_stage(l, node, "", &n->shape, &at);
  index[0] = at.lead[0];
  for (int i = 0; i < n->shape.count; i++)
    if (n->attrs.over >> n->shape.axis[i].role & 1) index[lead + count++] = at.axis[i];
  int a = lowering_load(l, l->tensor[n->in[0]], &at, n->shape.count);
  int w = px_load(l->p, numbers, lead + count, index);
  program_define(l->p, stage, with_weight(l->p, n->op, a, w));
  l->tensor[node] = stage;
}

/* b = a * self.w0[copy].reshape(C, 1, 1): PyTorch aligns axes from the right. */
static void torch(struct spelling *s, int node) {
  const struct node *n = &s->k->nodes[node];
  struct dim dims[AXES_MAX];
  int rank = 0;
  for (int i = 0; i < n->shape.count; i++) {
    bool own = n->attrs.over >> n->shape.axis[i].role & 1;
    if (own || rank) dims[rank++] = own ? n->shape.axis[i].dim : dim_one();
  }
  const char *sign = n->op == PRIMITIVE_SCALE ? "*" : "+";
  spelling_line(s, "%s = %s %s %s", s->name[node], s->name[n->in[0]], sign,
                spelling_weight_as(s, node, rank, dims));
}

/* Weights of the size of an image are no paper's and no published kernel's. */
static enum kernel_space space(const struct candidate *c) {
  return c->attrs.over & ROLES_SPATIAL ? SPACE_WIDE : SPACE_PUBLISHED;
}

static void formula(struct formula *f, int node) {
  const struct node *n = &f->k->nodes[node];
  struct spot at, index = {0};
  int count = 0;
  formula_element(f, &n->shape, &at);
  for (int i = 0; i < n->shape.count; i++)
    if (n->attrs.over >> n->shape.axis[i].role & 1) index.axis[count++] = at.axis[i];
  const char *w = formula_weight(f, node, &index, count), *a = formula_read(f, n->in[0], &at);
  formula_line(
      f, node, &at,
      n->op == PRIMITIVE_SCALE ? formula_text(f, "%s·%s", w, a) : formula_text(f, "%s + %s", a, w));
}

const struct family family_learned = {.name = "learned",
                                      .shape = shape,
                                      .choices = choices,
                                      .space = space,
                                      .weight = weight,
                                      .work = work,
                                      .lower = lower,
                                      .torch = torch,
                                      .formula = formula};
