/* stack: two tensors of one shape behind each other, as the two groups of one: a concatenation of
 * channels once the output reads it.
 */
#include "primitive/formula.h"
#include "primitive/lowering.h"
#include "primitive/spelling.h"

static const char *shape(const struct kernel *k, const struct node *n, struct shape *out) {
  const struct shape *a = node_input(k, n, 0);
  if (!shape_equal(a, node_input(k, n, 1))) return "the inputs have different shapes";
  if (shape_find(a, ROLE_GROUP) >= 0) return "the inputs have a group axis already";
  if (a->count == AXES_MAX) return "the result would have more than 8 axes";
  *out = *a;
  shape_insert(out, ROLE_GROUP, dim_number(2));
  return NULL;
}

static int choices(const struct kernel *k, int a, int b, struct candidate *out) {
  const struct shape *l = &k->nodes[a].shape;
  if (a == b || !shape_equal(l, &k->nodes[b].shape) || shape_find(l, ROLE_GROUP) >= 0) return 0;
  out[0] = (struct candidate){.op = PRIMITIVE_STACK, .in = {a, b}, .attrs.dim = dim_one(), .x = -1};
  return 1;
}

/* o[g, ..] = a[..] where g is 0, else b[..] */
static void lower(struct lowering *l, int node) {
  const struct node *n = &l->k->nodes[node];
  struct place at, from;
  int stage = lowering_stage(l, node, "", &n->shape, &at), rank = n->shape.count - 1;
  from = at;
  for (int i = 0; i < rank; i++) from.axis[i] = at.axis[i + 1];
  int first = px_inside(l->p, at.axis[0], 0, 1);
  int a = lowering_load(l, l->tensor[n->in[0]], &from, rank);
  int b = lowering_load(l, l->tensor[n->in[1]], &from, rank);
  program_define(l->p, stage, px_select(l->p, first, a, b));
  l->tensor[node] = stage;
}

static void torch(struct spelling *s, int node) {
  const struct node *n = &s->k->nodes[node];
  spelling_line(s, "%s = torch.stack([%s, %s], dim=1)", s->name[node], s->name[n->in[0]],
                s->name[n->in[1]]);
}

/* A line for each half. */
static void formula(struct formula *f, int node) {
  const struct node *n = &f->k->nodes[node];
  const struct shape *a = node_input(f->k, n, 0);
  struct dim one = dim_one(), two = dim_number(2);
  for (int half = 0; half < 2; half++) {
    struct spot from, at = {0};
    formula_element(f, a, &from);
    at.axis[0] = index_number(&f->arena, half, &one, &two);
    for (int i = 0; i < a->count; i++) at.axis[i + 1] = from.axis[i];
    formula_line(f, node, &at, formula_read(f, n->in[half], &from));
  }
}

const struct family family_stack = {.name = "stack",
                                    .binary = true,
                                    .shape = shape,
                                    .choices = choices,
                                    .lower = lower,
                                    .torch = torch,
                                    .formula = formula};
