/* shift: a move by whole pixels along spatial axes (paper Table 1): circular, as published, or with
 * zeros coming in, as a convolution sees the edge. The amount is part of the kernel's text, so that
 * a kernel is a function of its pack and its weights.
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
      for (int zero = 0; zero <= 1; zero++)
        out[count++] = (struct candidate){
            .op = PRIMITIVE_SHIFT,
            .in = {a, -1},
            .attrs = {.dim = dim_one(), .over = overs[i], .amount = by, .zero_fill = zero},
            .x = -1};
  }
  return count;
}

/* o[.., h, ..] = a[.., (h - by) mod H, ..], or a[.., h - by, ..] inside and 0 outside */
static void lower(struct lowering *l, int node) {
  const struct node *n = &l->k->nodes[node];
  struct place at, from;
  int stage = lowering_stage(l, node, "", &n->shape, &at), inside = px_bool(l->p, true);
  from = at;
  for (int i = 0; i < n->shape.count; i++) {
    if (!(n->attrs.over >> n->shape.axis[i].role & 1)) continue;
    int64_t size = lowering_size(l, &n->shape.axis[i].dim);
    int moved = px_sub(l->p, at.axis[i], px_int(l->p, n->attrs.amount));
    if (n->attrs.zero_fill)
      inside = px_and(l->p, inside, px_inside(l->p, moved, 0, size));
    else
      moved = px_mod(l->p, moved, px_int(l->p, size));
    from.axis[i] = moved;
  }
  int load = lowering_load(l, l->tensor[n->in[0]], &from, n->shape.count);
  program_define(l->p, stage, px_select(l->p, inside, load, px_number(l->p, 0)));
  l->tensor[node] = stage;
}

/* What F.pad takes, last axis first: zeros on one side, as many pixels cut off on the other. An
 * image can be smaller than the amount: then nothing of it is left. */
static const char *padding(struct spelling *s, const struct node *n) {
  const char *text = "";
  int by = n->attrs.amount, pixels = by < 0 ? -by : by;
  unsigned left = n->attrs.over;
  for (int i = n->shape.count - 1; left; i--) {
    const struct axis *axis = &n->shape.axis[i];
    const char *comma = *text ? ", " : "", *p = "1";
    if (!(left >> axis->role & 1)) {
      text = "0, 0";
      continue;
    }
    left &= ~(1u << axis->role);
    if (pixels > 1) p = spelling_text(s, "min(%d, %s)", pixels, spelling_dim(s, &axis->dim));
    text = spelling_text(s, by < 0 ? "%s%s-%s, %s" : "%s%s%s, -%s", text, comma, p, p);
  }
  return text;
}

static void torch(struct spelling *s, int node) {
  const struct node *n = &s->k->nodes[node];
  if (n->attrs.zero_fill) {
    const char *a = s->name[n->in[0]];
    spelling_line(s, "%s = F.pad(%s, (%s))", s->name[node], a, padding(s, n));
    return;
  }
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
