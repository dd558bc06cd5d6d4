/* swap: the group axis and the channel axis change places: the shuffle of channels between groups. */
#include "primitive/formula.h"
#include "primitive/lowering.h"
#include "primitive/spelling.h"

static const char *shape(const struct kernel *k, const struct node *n, struct shape *out) {
  const struct shape *a = node_input(k, n, 0);
  int group = shape_find(a, ROLE_GROUP), channel = shape_find(a, ROLE_CHANNEL);
  if (group < 0 || channel < 0) return "the input has no group axis and channel axis";
  *out = *a;
  out->axis[group].dim = a->axis[channel].dim;
  out->axis[channel].dim = a->axis[group].dim;
  return NULL;
}

static int choices(const struct kernel *k, int a, int b, struct candidate *out) {
  (void)b;
  unsigned both = 1 << ROLE_GROUP | 1 << ROLE_CHANNEL;
  if (both & ~shape_roles(&k->nodes[a].shape)) return 0;
  out[0] = (struct candidate){.op = PRIMITIVE_SWAP, .in = {a, -1}, .attrs.dim = dim_one(), .x = -1};
  return 1;
}

/* Group and channel are the first two axes of a shape. */
static void lower(struct lowering *l, int node) {
  const struct node *n = &l->k->nodes[node];
  struct place at, from;
  int stage = lowering_stage(l, node, "", &n->shape, &at);
  from = at;
  from.axis[0] = at.axis[1];
  from.axis[1] = at.axis[0];
  program_define(l->p, stage, lowering_load(l, l->tensor[n->in[0]], &from, n->shape.count));
  l->tensor[node] = stage;
}

static void torch(struct spelling *s, int node) {
  const struct node *n = &s->k->nodes[node];
  spelling_line(s, "%s = %s.transpose(1, 2)", s->name[node], s->name[n->in[0]]);
}

static bool reads(struct formula *f, int node, const struct spot *at, struct spot *from) {
  (void)f, (void)node;
  *from = *at;
  from->axis[0] = at->axis[1];
  from->axis[1] = at->axis[0];
  from->outside = (at->outside & ~3u) | (at->outside & 1) << 1 | (at->outside >> 1 & 1);
  return true;
}

const struct family family_swap = {.name = "swap",
                                   .shape = shape,
                                   .choices = choices,
                                   .lower = lower,
                                   .torch = torch,
                                   .reads = reads};
