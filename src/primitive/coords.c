/* coords: where a pixel of an image stands, a constant: [1, H, W] from -1 to 1. An fc of it beside one
 * of the input is a convolution with coordinates (CoordConv). Of its input only the size counts.
 */
#include <string.h>

#include "primitive/formula.h"
#include "primitive/lowering.h"
#include "primitive/spelling.h"

static const char *shape(const struct kernel *k, const struct node *n, struct shape *out) {
  const struct shape *a = node_input(k, n, 0);
  if (n->attrs.over != 1 << ROLE_H && n->attrs.over != 1 << ROLE_W) return "over= takes H or W";
  if (ROLES_SPATIAL & ~shape_roles(a)) return "the input has no H and W";
  *out = *a;
  shape_remove(out, ~(unsigned)ROLES_SPATIAL);
  shape_insert(out, ROLE_CHANNEL, dim_one());
  return NULL;
}

/* Of the kernel's input alone. */
static int choices(const struct kernel *k, int a, int b, struct candidate *out) {
  (void)b;
  (void)k;
  if (a) return 0;
  for (int i = 0; i < 2; i++)
    out[i] = (struct candidate){.op = PRIMITIVE_COORDS,
                                .in = {a, -1},
                                .attrs = {.dim = dim_one(), .over = 1u << (ROLE_H + i)},
                                .x = -1};
  return 2;
}

/* (2h - (H - 1)) / (H - 1), 0 where H is 1 */
static void lower(struct lowering *l, int node) {
  const struct node *n = &l->k->nodes[node];
  struct program *p = l->p;
  struct place at;
  int stage = lowering_stage(l, node, "", &n->shape, &at);
  int axis = n->attrs.over >> ROLE_H & 1 ? 1 : 2;
  int64_t last = lowering_size(l, &n->shape.axis[axis].dim) - 1;
  int place = px_sub(p, px_mul(p, at.axis[axis], px_int(p, 2)), px_int(p, last));
  int value = px_div(p, px_real(p, place), px_number(p, last ? (double)last : 1));
  program_define(p, stage, value);
  l->tensor[node] = stage;
}

static void torch(struct spelling *s, int node) {
  const struct node *n = &s->k->nodes[node];
  bool h = n->attrs.over >> ROLE_H & 1;
  const char *size = spelling_dim(s, &n->shape.axis[h ? 1 : 2].dim), *x = s->name[n->in[0]];
  const char *places = spelling_local(s, node, "places");
  spelling_line(s, "%s = torch.arange(%s, device=%s.device) * 2 - (%s - 1)", places, size, x, size);
  spelling_line(s, "%s = (%s.to(%s.dtype) / max(%s - 1, 1)).reshape(%s).expand(%s)", s->name[node],
                places, x, size, h ? "1, 1, -1, 1" : "1, 1, 1, -1", spelling_shape(s, &n->shape));
}

/* (2·h - (H - 1)) / max(H - 1, 1) */
static void formula(struct formula *f, int node) {
  const struct node *n = &f->k->nodes[node];
  struct spot at;
  formula_element(f, &n->shape, &at);
  int axis = n->attrs.over >> ROLE_H & 1 ? 1 : 2;
  const struct dim *d = &n->shape.axis[axis].dim;
  struct spot only = {.axis = {at.axis[axis]}};
  const char *size = formula_dim(f, d, false), *place = formula_place(f, "", &only, 1);
  int length = (int)strlen(place) - 2; /* in brackets */
  formula_line(
      f, node, &at,
      formula_text(f, "(2·%.*s - (%s - 1))/max(%s - 1, 1)", length, place + 1, size, size));
}

const struct family family_coords = {.name = "coordinates",
                                     .shape = shape,
                                     .choices = choices,
                                     .lower = lower,
                                     .torch = torch,
                                     .formula = formula};
