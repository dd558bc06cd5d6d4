/* resampling of the image: pool makes N x N pixels one, their mean, and repeat one N x N. N must divide
 * H and W where an image is pooled, which the solvers see to.
 */
#include "primitive/formula.h"
#include "primitive/lowering.h"
#include "primitive/spelling.h"

enum { TIMES_MAX = 16 };

static const char *shape(const struct kernel *k, const struct node *n, struct shape *out) {
  const struct dim *by = &n->attrs.dim;
  struct dim number = dim_number(by->num);
  if (!(shape_roles(node_input(k, n, 0)) & ROLES_SPATIAL)) return "the input has no H and no W";
  if (!dim_equal(by, &number) || by->num < 2 || by->num > TIMES_MAX)
    return "by= takes a number of 2 to 16";
  *out = *node_input(k, n, 0);
  for (int i = 0; i < out->count; i++) {
    struct dim *d = &out->axis[i].dim;
    if (!(ROLES_SPATIAL >> out->axis[i].role & 1)) continue;
    *d = n->op == PRIMITIVE_POOL ? dim_div(*d, *by) : dim_mul(*d, *by);
  }
  return NULL;
}

/* What is pooled may be repeated, and what is not may be pooled. */
static int choices(const struct kernel *k, int a, int b, struct candidate *out) {
  (void)b;
  const struct shape *s = &k->nodes[a].shape;
  int h = shape_find(s, ROLE_H), w = shape_find(s, ROLE_W), count = 0;
  if (h < 0 || w < 0) return 0;
  bool pooled = s->axis[h].dim.den > 1;
  for (int by = 2; by <= 4; by += 2) {
    if (pooled && s->axis[h].dim.den % by) continue;
    out[count++] = (struct candidate){.op = pooled ? PRIMITIVE_REPEAT : PRIMITIVE_POOL,
                                      .in = {a, -1},
                                      .attrs = {.dim = dim_number(by)},
                                      .x = -1};
  }
  return count;
}

static bool work(const struct kernel *k, const struct node *n, const struct sizes *s,
                 struct work *w) {
  return n->op == PRIMITIVE_REPEAT || shape_elements(node_input(k, n, 0), s, &w->elementwise);
}

/* pool: o[.., h, ..] = mean over i of a[.., h*N + i, ..]; repeat: o[.., h, ..] = a[.., h/N, ..] */
static void lower(struct lowering *l, int node) {
  const struct node *n = &l->k->nodes[node];
  struct place at, from;
  int64_t by = n->attrs.dim.num;
  int stage = lowering_stage(l, node, "", &n->shape, &at);
  from = at;
  for (int i = 0; i < n->shape.count; i++) {
    enum role role = n->shape.axis[i].role;
    if (!(ROLES_SPATIAL >> role & 1)) continue;
    if (n->op == PRIMITIVE_REPEAT) {
      from.axis[i] = px_div(l->p, at.axis[i], px_int(l->p, by));
    } else {
      int pixel = program_reduce(l->p, stage, REDUCE_MEAN, role == ROLE_H ? "i" : "j", by);
      from.axis[i] = px_add(l->p, px_mul(l->p, at.axis[i], px_int(l->p, by)), pixel);
    }
  }
  program_define(l->p, stage, lowering_load(l, l->tensor[n->in[0]], &from, n->shape.count));
  l->tensor[node] = stage;
}

/* b = a.reshape(N, C, H // 2, 2, W // 2, 2).mean(dim=(4, 6)) */
static void torch(struct spelling *s, int node) {
  const struct node *n = &s->k->nodes[node];
  const char *axes = "N", *dims = "", *text = s->name[n->in[0]];
  int by = n->attrs.dim.num, at = 1;
  for (int i = 0; i < n->shape.count; i++, at++) {
    bool image = ROLES_SPATIAL >> n->shape.axis[i].role & 1;
    axes = spelling_text(s, "%s, %s", axes, spelling_dim(s, &n->shape.axis[i].dim));
    if (!image) continue;
    if (n->op == PRIMITIVE_REPEAT) {
      text = spelling_text(s, "%s.repeat_interleave(%d, dim=%d)", text, by, at);
      continue;
    }
    axes = spelling_text(s, "%s, %d", axes, by);
    dims = spelling_text(s, *dims ? "%s, %d" : "%s%d", dims, ++at);
  }
  if (n->op == PRIMITIVE_REPEAT) {
    spelling_line(s, "%s = %s", s->name[node], text);
    return;
  }
  s->sizes |= SPELLING_BATCH;
  spelling_line(s, "%s = %s.reshape(%s).mean(dim=(%s))", s->name[node], text, axes, dims);
}

/* pool: o[.., h, ..] = 1/4·Σ(i < 2, j < 2) a[.., 2·h + i, ..] */
static void formula(struct formula *f, int node) {
  const struct node *n = &f->k->nodes[node];
  const struct dim *by = &n->attrs.dim;
  struct spot at, from;
  const char *ranges = "";
  int pixels = 1;
  formula_element(f, &n->shape, &at);
  from = at;
  for (int i = 0; i < n->shape.count; i++) {
    enum role role = n->shape.axis[i].role;
    if (!(ROLES_SPATIAL >> role & 1)) continue;
    const struct index *first = index_mul(&f->arena, at.axis[i], by);
    from.axis[i] = index_add(&f->arena, first, formula_bound(f, role, by, &ranges));
    pixels *= by->num;
  }
  formula_line(f, node, &at,
               formula_text(f, "1/%d·%s%s", pixels, formula_over(f, "Σ", ranges),
                            formula_read(f, n->in[0], &from)));
}

static bool reads(struct formula *f, int node, const struct spot *at, struct spot *from) {
  const struct node *n = &f->k->nodes[node];
  *from = *at;
  for (int i = 0; i < n->shape.count; i++)
    if (ROLES_SPATIAL >> n->shape.axis[i].role & 1)
      from->axis[i] = index_div(&f->arena, at->axis[i], &n->attrs.dim);
  return true;
}

const struct family family_resample = {.name = "resampling",
                                       .shape = shape,
                                       .choices = choices,
                                       .work = work,
                                       .lower = lower,
                                       .torch = torch,
                                       .formula = formula,
                                       .reads = reads};
