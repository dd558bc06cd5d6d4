/* pick: one of N equal parts of the channels, which stand side by side. */
#include "primitive/formula.h"
#include "primitive/lowering.h"
#include "primitive/spelling.h"

enum { PARTS_MAX = 16 };

static const char *shape(const struct kernel *k, const struct node *n, struct shape *out) {
  const struct shape *a = node_input(k, n, 0);
  const struct dim *parts = &n->attrs.dim;
  struct dim number = dim_number(parts->num);
  int channel = shape_find(a, ROLE_CHANNEL);
  if (channel < 0) return "the input has no channel axis";
  if (!dim_equal(parts, &number) || parts->num < 2 || parts->num > PARTS_MAX)
    return "of= takes a number of 2 to 16";
  if (n->attrs.amount >= parts->num) return "at= counts from 0 and is less than of=";
  *out = *a;
  out->axis[channel].dim = dim_div(a->axis[channel].dim, *parts);
  return NULL;
}

static int choices(const struct kernel *k, int a, int b, struct candidate *out) {
  (void)b;
  int count = 0;
  if (shape_find(&k->nodes[a].shape, ROLE_CHANNEL) < 0) return 0;
  for (int parts = 2; parts <= 4; parts += 2)
    for (int at = 0; at < parts; at++)
      out[count++] = (struct candidate){.op = PRIMITIVE_PICK,
                                        .in = {a, -1},
                                        .attrs = {.dim = dim_number(parts), .amount = at},
                                        .x = -1};
  return count;
}

/* o[c, ..] = a[at * X/N + c, ..] */
static void lower(struct lowering *l, int node) {
  const struct node *n = &l->k->nodes[node];
  int channel = shape_find(&n->shape, ROLE_CHANNEL);
  struct place at, from;
  int stage = lowering_stage(l, node, "", &n->shape, &at);
  from = at;
  int64_t first = n->attrs.amount * lowering_size(l, &n->shape.axis[channel].dim);
  from.axis[channel] = px_add(l->p, at.axis[channel], px_int(l->p, first));
  program_define(l->p, stage, lowering_load(l, l->tensor[n->in[0]], &from, n->shape.count));
  l->tensor[node] = stage;
}

/* c = b.chunk(2, dim=1)[0] */
static void torch(struct spelling *s, int node) {
  const struct node *n = &s->k->nodes[node];
  spelling_line(s, "%s = %s.chunk(%d, dim=%d)[%d]", s->name[node], s->name[n->in[0]],
                n->attrs.dim.num, shape_find(&n->shape, ROLE_CHANNEL) + 1, n->attrs.amount);
}

static bool reads(struct formula *f, int node, const struct spot *at, struct spot *from) {
  const struct node *n = &f->k->nodes[node];
  int channel = shape_find(&n->shape, ROLE_CHANNEL);
  const struct dim *part = &n->shape.axis[channel].dim;
  const struct index *first = index_number(&f->arena, n->attrs.amount, part, &n->attrs.dim);
  *from = *at;
  from->axis[channel] = index_add(&f->arena, first, at->axis[channel]);
  return !(at->outside >> channel & 1);
}

const struct family family_pick = {.name = "pick",
                                   .shape = shape,
                                   .choices = choices,
                                   .lower = lower,
                                   .torch = torch,
                                   .reads = reads};
