/* fully connected: the only primitive with weights (paper Table 1).
 *
 * Contracts the channel axis and both window axes, within each group if there is a group axis, and
 * removes the group axis: [group, channel, KH, KW, spatial..] -> [to, spatial..]. Output channel o
 * belongs to group o / (to/group): group-major, so group | to. The weight is
 * [to, channel, KH, KW] with the axes that are present. No bias.
 */
#include "primitive/lowering.h"
#include "primitive/spelling.h"

static struct dim groups(const struct shape *a) {
  int g = shape_find(a, ROLE_GROUP);
  return g < 0 ? dim_one() : a->axis[g].dim;
}

static const char *shape(const struct kernel *k, const struct node *n, struct shape *out) {
  const struct shape *a = node_input(k, n, 0);
  if (!(shape_roles(a) & ROLES_CHANNEL)) return "the input has no channel, group or window axis";
  if (!dim_is_whole(&n->attrs.dim)) return "to= is never whole";
  *out = *a;
  shape_remove(out, ROLES_CHANNEL);
  shape_insert(out, ROLE_CHANNEL, n->attrs.dim);
  return NULL;
}

static int conditions(const struct kernel *k, const struct node *n, struct dim out[2]) {
  struct dim g = groups(node_input(k, n, 0));
  if (dim_is_one(&g)) return 0;
  out[0] = dim_div(n->attrs.dim, g);
  return 1;
}

/* A free variable, as in the paper: the output makes it C where it must be, a broadcast what fits,
 * and the solver by constraints gives the rest what the budget allows. Where the groups hold a
 * variable, a depth-wise step on that width; where every channel is its own group, also one of those
 * channels. At most two fully connected primitives on one tensor. */
static int choices(const struct kernel *k, int a, int b, struct candidate *out) {
  (void)b;
  struct dim to, g = groups(&k->nodes[a].shape);
  unsigned used = kernel_variables(k);
  int here = 0, x = 0;
  for (int i = 1; i < k->count; i++)
    here += k->nodes[i].op == PRIMITIVE_FC && k->nodes[i].in[0] == a;
  if (here >= 2 || !(shape_roles(&k->nodes[a].shape) & ROLES_CHANNEL)) return 0;
  while (x < VARIABLES && used >> x & 1) x++;
  if (dim_variable(&g, NULL) != VARIABLES)
    to = g;
  else
    to = dim_size(x < VARIABLES ? (enum size)(SIZE_X0 + x) : SIZE_C);
  out[0] = out[1] = (struct candidate){.op = PRIMITIVE_FC, .in = {a, -1}, .attrs.dim = to, .x = -1};
  if (dim_is_one(&g) || dim_equal(&to, &g) || shape_find(&k->nodes[a].shape, ROLE_CHANNEL) >= 0)
    return 1;
  out[1].attrs.dim = g;
  return 2;
}

static void weight(const struct kernel *k, const struct node *n, struct shape *out) {
  struct shape contracted = *node_input(k, n, 0);
  shape_remove(&contracted, ~(unsigned)(1 << ROLE_CHANNEL | ROLES_WINDOW));
  *out = (struct shape){.count = 1, .axis = {{ROLE_CHANNEL, n->attrs.dim}}};
  for (int i = 0; i < contracted.count; i++) out->axis[out->count++] = contracted.axis[i];
}

static bool work(const struct kernel *k, const struct node *n, const struct sizes *s,
                 struct work *w) {
  const struct shape *a = node_input(k, n, 0);
  struct dim each = shape_product(a, 1 << ROLE_CHANNEL | ROLES_WINDOW);
  struct dim spatial = shape_product(a, ROLES_SPATIAL);
  int64_t in, out, pixels;
  if (!dim_value(&each, s, &in) || !dim_value(&n->attrs.dim, s, &out) ||
      !dim_value(&spatial, s, &pixels))
    return false;
  return !__builtin_mul_overflow(in, out, &w->params) &&
         !__builtin_mul_overflow(w->params, pixels, &w->macs);
}

/* o[t, h, w] = sum over c, kh, kw of a[t / (to/group), c, kh, kw, h, w] * weight[t, c, kh, kw] */
static void lower(struct lowering *l, int node) {
  const struct node *n = &l->k->nodes[node];
  const struct shape *a = node_input(l->k, n, 0);
  struct program *p = l->p;
  int64_t outputs = lowering_size(l, &n->attrs.dim);
  int index[AXES_MAX + 1], lead = l->copies > 1, weights = lowering_weight(l, node);
  struct place at, from;
  int stage = lowering_weighted(l, node, &at), contracted = 1;
  from = at;
  index[0] = at.lead[0];
  index[lead] = at.axis[0];
  for (int i = 0; i < a->count; i++) {
    enum role role = a->axis[i].role;
    int64_t size = lowering_size(l, &a->axis[i].dim);
    if (role == ROLE_GROUP) {
      from.axis[i] = px_div(p, at.axis[0], px_int(p, outputs / size));
    } else if (ROLES_SPATIAL >> role & 1) {
      from.axis[i] = at.axis[shape_find(&n->shape, role)];
    } else {
      const char *name = role == ROLE_CHANNEL ? "k" : role_axis(role); /* c is the result's axis */
      from.axis[i] = program_reduce(p, stage, REDUCE_SUM, name, size);
      index[lead + contracted++] = from.axis[i];
    }
  }
  int value = lowering_load(l, l->tensor[n->in[0]], &from, a->count);
  program_define(p, stage, px_mul(p, value, px_load(p, weights, lead + contracted, index)));
  l->tensor[node] = lowering_biased(l, node, stage);
}

/* A matrix product over all pixels, in each group: [to, contracted] @ [N, contracted, pixels].
 * The patterns of spell/ know shorter ways. */
static void torch(struct spelling *s, int node) {
  const struct node *n = &s->k->nodes[node];
  const struct shape *a = node_input(s->k, n, 0);
  struct dim g = spelling_groups(a), each = spelling_contracted(a);
  struct axis rows = {ROLE_CHANNEL, each}, pixels = {ROLE_H, shape_product(a, ROLES_SPATIAL)};
  struct axis groups_axis = {ROLE_GROUP, g};
  struct shape flat = {.count = 2, .axis = {rows, pixels}};
  const char *w;
  if (dim_is_one(&g)) {
    w = spelling_weight_as(s, node, 2, (struct dim[]){n->attrs.dim, each});
  } else {
    flat = (struct shape){.count = 3, .axis = {groups_axis, rows, pixels}};
    w = spelling_weight_as(s, node, 3, (struct dim[]){g, dim_div(n->attrs.dim, g), each});
  }
  const char *x = spelling_reshaped(s, n->in[0], &flat);
  spelling_line(s, "%s = torch.matmul(%s, %s).reshape(%s)", s->name[node], w, x,
                spelling_shape(s, &n->shape));
  spelling_add_bias(s, node);
  spelling_normalise(s, node);
}

const struct family family_fc = {.name = "fully connected",
                                 .drawn = true,
                                 .shape = shape,
                                 .conditions = conditions,
                                 .choices = choices,
                                 .weight = weight,
                                 .work = work,
                                 .lower = lower,
                                 .torch = torch};
