/* shift: a move by whole pixels along spatial axes (paper Table 1), or along channels and windows:
 * circular, as published, or with zeros coming in, as a convolution sees the edge. The amount is part
 * of the kernel's text, so that a kernel is a function of its pack and its weights. `each` moves group
 * g of n by g - n/2.
 */
#include "primitive/formula.h"
#include "primitive/lowering.h"
#include "primitive/spelling.h"

static const char *shape(const struct kernel *k, const struct node *n, struct shape *out) {
  const struct shape *a = node_input(k, n, 0);
  if (!n->attrs.over || n->attrs.over & ~(unsigned)(ROLES_FIRST & ~(1 << ROLE_GROUP)))
    return "over= takes H, W, C, KH, KW and KC";
  if (n->attrs.over & ~shape_roles(a)) return "the input has not all axes of over=";
  if (n->op == PRIMITIVE_SHIFT && !n->attrs.amount) return "a shift by=0 does nothing";
  if (n->op == PRIMITIVE_SHIFT_EACH && shape_find(a, ROLE_GROUP) < 0)
    return "the input has no group axis";
  *out = *a;
  return NULL;
}

enum { PIXELS_MOST = 3 };

static struct candidate application(enum primitive op, int a, unsigned over, int by, bool zero) {
  struct candidate c = {.op = op, .in = {a, -1}, .x = -1};
  c.attrs = (struct attrs){.dim = dim_one(), .over = over, .amount = by, .zero_fill = zero};
  return c;
}

/* By one pixel; by more, and along channels; groups by different amounts. */
static int choices_within(const struct kernel *k, int a, enum kernel_space most,
                          struct candidate *out) {
  unsigned roles = shape_roles(&k->nodes[a].shape);
  int count = 0, farthest = most == SPACE_PAPER ? 1 : PIXELS_MOST,
      axes = most == SPACE_PAPER ? 3 : 4;
  static const unsigned overs[] = {1 << ROLE_H, 1 << ROLE_W, ROLES_SPATIAL, 1 << ROLE_CHANNEL};
  if (node_row(&k->nodes[a])->family == &family_shift) return 0; /* two shifts are one */
  for (int pixels = 1; pixels <= farthest; pixels++)
    for (int i = 0; i < axes; i++) {
      if (overs[i] & ~roles) continue;
      for (int by = -pixels; by <= pixels; by += 2 * pixels)
        for (int zero = 0; zero <= 1; zero++)
          out[count++] = application(PRIMITIVE_SHIFT, a, overs[i], by, zero);
    }
  for (int i = 0; most >= SPACE_WIDE && i < 2 && roles >> ROLE_GROUP & 1; i++)
    for (int zero = 0; zero <= 1 && !(overs[i] & ~roles); zero++)
      out[count++] = application(PRIMITIVE_SHIFT_EACH, a, overs[i], 0, zero);
  return count;
}

static int choices(const struct kernel *k, int a, int b, struct candidate *out) {
  (void)b;
  return choices_within(k, a, SPACE_WIDE, out);
}

/* The index along an axis less what it is moved by. */
static int moved(struct lowering *l, const struct node *n, const struct place *at, int axis) {
  if (n->op == PRIMITIVE_SHIFT) return px_sub(l->p, at->axis[axis], px_int(l->p, n->attrs.amount));
  int64_t groups = lowering_size(l, &n->shape.axis[shape_find(&n->shape, ROLE_GROUP)].dim);
  int less = px_sub(l->p, at->axis[axis], at->axis[shape_find(&n->shape, ROLE_GROUP)]);
  return px_add(l->p, less, px_int(l->p, groups / 2));
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
    int index = moved(l, n, &at, i);
    if (n->attrs.zero_fill)
      inside = px_and(l->p, inside, px_inside(l->p, index, 0, size));
    else
      index = px_mod(l->p, index, px_int(l->p, size));
    from.axis[i] = index;
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
      text = spelling_text(s, "%s%s0, 0", text, comma);
      continue;
    }
    left &= ~(1u << axis->role);
    if (pixels > 1) p = spelling_text(s, "min(%d, %s)", pixels, spelling_dim(s, &axis->dim));
    text = spelling_text(s, by < 0 ? "%s%s-%s, %s" : "%s%s%s, -%s", text, comma, p, p);
  }
  return text;
}

/* "1", or "(1, 1)" for as many axes as over= has */
static const char *amounts(struct spelling *s, const struct node *n, const char *by) {
  int axes = __builtin_popcount(n->attrs.over);
  const char *text = by;
  for (int i = 1; i < axes; i++) text = spelling_text(s, "%s, %s", text, by);
  return axes > 1 ? spelling_text(s, "(%s)", text) : text;
}

/* by = [max(-H, min(H, i - G // 2)) for i in range(G)]; zero-filled: one axis after the other */
static void spell_each(struct spelling *s, int node) {
  const struct node *n = &s->k->nodes[node];
  const struct shape *o = &n->shape;
  const char *g = spelling_dim(s, &o->axis[0].dim), *part = s->name[n->in[0]];
  part = spelling_text(s, "%s[:, i]", part);
  for (int i = 1; i < o->count; i++) {
    if (!(n->attrs.over >> o->axis[i].role & 1)) continue;
    const char *size = spelling_dim(s, &o->axis[i].dim), *zeros = "";
    const char *by = spelling_text(s, "i - (%s) // 2", g);
    if (!n->attrs.zero_fill) {
      part = spelling_text(s, "torch.roll(%s, %s, dims=%d)", part, by, i);
      continue;
    }
    by = spelling_text(s, "max(-(%s), min(%s, %s))", size, size, by);
    for (int j = o->count - 1; j > i; j--) zeros = spelling_text(s, "%s0, 0, ", zeros);
    part = spelling_text(s, "F.pad(%s, (%s%s, -%s))", part, zeros, by, by);
  }
  spelling_line(s, "%s = torch.stack([%s for i in range(%s)], dim=1)", s->name[node], part, g);
}

static void torch(struct spelling *s, int node) {
  const struct node *n = &s->k->nodes[node];
  if (n->op == PRIMITIVE_SHIFT_EACH) {
    spell_each(s, node);
    return;
  }
  if (n->attrs.zero_fill) {
    const char *a = s->name[n->in[0]];
    spelling_line(s, "%s = F.pad(%s, (%s))", s->name[node], a, padding(s, n));
    return;
  }
  const char *by = amounts(s, n, spelling_text(s, "%d", n->attrs.amount));
  spelling_line(s, "%s = torch.roll(%s, %s, dims=%s)", s->name[node], s->name[n->in[0]], by,
                spelling_dims(s, &n->shape, n->attrs.over));
}

static const struct index *formula_moved(struct formula *f, const struct node *n,
                                         const struct spot *at, int axis) {
  struct arena *a = &f->arena;
  struct dim one = dim_one(), unknown = {.num = 0, .den = 1};
  int by = n->attrs.amount, group = shape_find(&n->shape, ROLE_GROUP);
  if (n->op == PRIMITIVE_SHIFT_EACH) {
    const struct index *half = index_half(a, &n->shape.axis[group].dim);
    return index_add(a, index_sub(a, at->axis[axis], at->axis[group]), half);
  }
  const struct index *pixels = index_number(a, by < 0 ? -by : by, &one, &unknown);
  return by < 0 ? index_add(a, at->axis[axis], pixels) : index_sub(a, at->axis[axis], pixels);
}

static bool reads(struct formula *f, int node, const struct spot *at, struct spot *from) {
  const struct node *n = &f->k->nodes[node];
  *from = *at;
  for (int i = 0; i < n->shape.count; i++) {
    enum role role = n->shape.axis[i].role;
    bool counts = n->op == PRIMITIVE_SHIFT_EACH && role == ROLE_GROUP;
    if (!(n->attrs.over >> role & 1) && !counts) continue;
    if (at->outside >> i & 1) return false;
    if (counts) continue;
    from->axis[i] = formula_moved(f, n, at, i);
    if (n->attrs.zero_fill)
      from->outside |= 1u << i;
    else
      from->axis[i] = index_mod(&f->arena, from->axis[i], &n->shape.axis[i].dim);
  }
  return true;
}

const struct family family_shift = {.name = "shift",
                                    .shape = shape,
                                    .choices = choices,
                                    .choices_within = choices_within,
                                    .lower = lower,
                                    .torch = torch,
                                    .reads = reads};
