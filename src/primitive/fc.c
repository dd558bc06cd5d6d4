/* fully connected: the paper's only primitive with weights (Table 1).
 *
 * Contracts the channel axis and the window axes, within each group if there is a group axis, and
 * removes the group axis: [group, channel, KH, KW, spatial..] -> [to, spatial..]. Output channel o
 * belongs to group o / (to/group): group-major, so group | to. The weight is
 * [to, channel, KH, KW] with the axes that are present. No bias.
 *
 * With over= it contracts just these axes (the published code's Mix): `to` takes the place and the
 * role of the first, and all other axes stay and share the weight [to, over..].
 */
#include "primitive/formula.h"
#include "primitive/lowering.h"
#include "primitive/spelling.h"

static struct dim groups(const struct shape *a) {
  int g = shape_find(a, ROLE_GROUP);
  return g < 0 ? dim_one() : a->axis[g].dim;
}

/* The axes that a weight contracts, and the role of what it makes. */
static unsigned contracted(const struct node *n) {
  return n->attrs.over ? n->attrs.over : 1 << ROLE_CHANNEL | ROLES_WINDOW;
}

static enum role made(const struct node *n) {
  return n->attrs.over ? (enum role)__builtin_ctz(n->attrs.over) : ROLE_CHANNEL;
}

static const char *shape(const struct kernel *k, const struct node *n, struct shape *out) {
  const struct shape *a = node_input(k, n, 0);
  if (n->attrs.over & ~shape_roles(a)) return "the input has not all axes of over=";
  if (!n->attrs.over && !(shape_roles(a) & ROLES_CHANNEL))
    return "the input has no channel, group or window axis";
  if (!dim_is_whole(&n->attrs.dim)) return "to= is never whole";
  *out = *a;
  shape_remove(out, n->attrs.over ? n->attrs.over : (unsigned)ROLES_CHANNEL);
  shape_insert(out, made(n), n->attrs.dim);
  return NULL;
}

static int conditions(const struct kernel *k, const struct node *n, struct dim out[2]) {
  struct dim g = groups(node_input(k, n, 0));
  if (n->attrs.over || dim_is_one(&g)) return 0;
  out[0] = dim_div(n->attrs.dim, g);
  return 1;
}

/* Mixes along some axes: to as many as there were, or to a free number of channels. */
static int mixes(const struct shape *a, int in, const struct dim *free, struct candidate *out) {
  static const unsigned overs[] = {1 << ROLE_H,       1 << ROLE_W,     ROLES_SPATIAL,
                                   1 << ROLE_CHANNEL, 1 << ROLE_GROUP, ROLES_IMAGE_WINDOW};
  int count = 0;
  for (size_t i = 0; i < sizeof overs / sizeof *overs; i++) {
    struct candidate c = {.op = PRIMITIVE_FC, .in = {in, -1}, .x = -1};
    if (overs[i] & ~shape_roles(a) || overs[i] == shape_roles(a)) continue;
    if (overs[i] == (shape_roles(a) & ROLES_CHANNEL)) continue; /* as without over= */
    c.attrs = (struct attrs){.dim = shape_product(a, overs[i]), .over = overs[i]};
    if (overs[i] == 1 << ROLE_CHANNEL) c.attrs.dim = *free;
    if (overs[i] == ROLES_IMAGE_WINDOW) c.attrs.dim = dim_one();
    out[count++] = c;
  }
  return count;
}

/* A free variable, as in the paper: the output makes it C where it must be, a broadcast what fits,
 * and the solver by constraints gives the rest what the budget allows. Where the groups hold a
 * variable, a depth-wise step on that width; where every channel is its own group, also one of those
 * channels. At most two fully connected primitives on one tensor. */
static int choices_within(const struct kernel *k, int a, enum kernel_space most,
                          struct candidate *out) {
  struct dim to, g = groups(&k->nodes[a].shape);
  unsigned used = kernel_variables(k), roles = shape_roles(&k->nodes[a].shape);
  int here = 0, x = 0;
  for (int i = 1; i < k->count; i++)
    here += k->nodes[i].op == PRIMITIVE_FC && k->nodes[i].in[0] == a;
  if (here >= 2) return 0;
  while (x < VARIABLES && used >> x & 1) x++;
  struct dim free = dim_size(x < VARIABLES ? (enum size)(SIZE_X0 + x) : SIZE_C);
  to = dim_variable(&g, NULL) != VARIABLES ? g : free;
  struct candidate fc = {.op = PRIMITIVE_FC, .in = {a, -1}, .attrs.dim = to, .x = -1};
  bool each = !dim_is_one(&g) && !dim_equal(&to, &g) && !(roles >> ROLE_CHANNEL & 1);
  int count = 0;
  if (roles & ROLES_CHANNEL) out[count++] = fc;
  if (each) out[count] = fc, out[count++].attrs.dim = g;
  if (most == SPACE_PAPER) return count;
  return count + mixes(&k->nodes[a].shape, a, &free, out + count);
}

static int choices(const struct kernel *k, int a, int b, struct candidate *out) {
  (void)b;
  return choices_within(k, a, SPACE_WIDE, out);
}

static void weight(const struct kernel *k, const struct node *n, struct shape *out) {
  struct shape summed = *node_input(k, n, 0);
  shape_remove(&summed, ~contracted(n));
  *out = (struct shape){.count = 1, .axis = {{made(n), n->attrs.dim}}};
  for (int i = 0; i < summed.count; i++) out->axis[out->count++] = summed.axis[i];
}

static bool work(const struct kernel *k, const struct node *n, const struct sizes *s,
                 struct work *w) {
  const struct shape *a = node_input(k, n, 0);
  unsigned removed = n->attrs.over ? n->attrs.over : (unsigned)ROLES_CHANNEL;
  struct dim each = shape_product(a, contracted(n)), stays = shape_product(a, ~removed);
  int64_t in, out, pixels;
  if (!dim_value(&each, s, &in) || !dim_value(&n->attrs.dim, s, &out) ||
      !dim_value(&stays, s, &pixels))
    return false;
  return !__builtin_mul_overflow(in, out, &w->params) &&
         !__builtin_mul_overflow(w->params, pixels, &w->macs);
}

/* o[t, h, w] = sum over c, kh, kw of a[t / (to/group), c, kh, kw, h, w] * weight[t, c, kh, kw]; with
 * over= no group is special */
static void lower(struct lowering *l, int node) {
  const struct node *n = &l->k->nodes[node];
  const struct shape *a = node_input(l->k, n, 0);
  struct program *p = l->p;
  int64_t outputs = lowering_size(l, &n->attrs.dim);
  int index[AXES_MAX + 1], lead = l->copies > 1, weights = lowering_weight(l, node);
  struct place at, from;
  int stage = lowering_weighted(l, node, &at), count = 1;
  from = at;
  index[0] = at.lead[0];
  index[lead] = at.axis[shape_find(&n->shape, made(n))];
  for (int i = 0; i < a->count; i++) {
    enum role role = a->axis[i].role;
    int64_t size = lowering_size(l, &a->axis[i].dim);
    if (contracted(n) >> role & 1) {
      const char *name = role == made(n) ? "k" : role_axis(role); /* its own is the result's axis */
      from.axis[i] = program_reduce(p, stage, REDUCE_SUM, name, size);
      index[lead + count++] = from.axis[i];
    } else if (role == ROLE_GROUP && !n->attrs.over) {
      from.axis[i] = px_div(p, at.axis[0], px_int(p, outputs / size));
    } else {
      from.axis[i] = at.axis[shape_find(&n->shape, role)];
    }
  }
  int value = lowering_load(l, l->tensor[n->in[0]], &from, a->count);
  program_define(p, stage, px_mul(p, value, px_load(p, weights, lead + count, index)));
  l->tensor[node] = lowering_biased(l, node, stage);
}

/* c = F.linear(b.movedim((2, 3), (-2, -1)).flatten(-2), self.w0[copy].flatten(1)).movedim(-1, 2) */
static void spell_over(struct spelling *s, int node) {
  const struct node *n = &s->k->nodes[node];
  const struct shape *a = node_input(s->k, n, 0);
  int count = __builtin_popcount(n->attrs.over), place = shape_find(&n->shape, made(n)) + 1;
  const char *dims = spelling_dims(s, a, n->attrs.over), *last = "-1", *flat = "", *w = "";
  for (int i = 2; i <= count; i++) last = spelling_text(s, "-%d, %s", i, last);
  if (count > 1) {
    last = spelling_text(s, "(%s)", last);
    flat = spelling_text(s, ".flatten(-%d)", count);
    w = ".flatten(1)";
  }
  spelling_line(s, "%s = F.linear(%s.movedim(%s, %s)%s, %s%s).movedim(-1, %d)", s->name[node],
                s->name[n->in[0]], dims, last, flat, spelling_weight(s, node), w, place);
  spelling_add_bias(s, node);
  spelling_normalise(s, node);
}

/* A matrix product over all pixels, in each group: [to, contracted] @ [N, contracted, pixels].
 * The patterns of spell/ know shorter ways. */
static void torch(struct spelling *s, int node) {
  const struct node *n = &s->k->nodes[node];
  const struct shape *a = node_input(s->k, n, 0);
  if (n->attrs.over) {
    spell_over(s, node);
    return;
  }
  struct dim g = spelling_groups(a), each = spelling_contracted(a);
  struct axis rows = {ROLE_CHANNEL, each};
  struct axis pixels = {ROLE_H, shape_product(a, ~(unsigned)ROLES_CHANNEL)};
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

/* With groups the outputs are those of each group, one after the other: two variables make the index. */
static const struct index *formula_outputs(struct formula *f, const struct node *n,
                                           const struct shape *a, struct spot *at) {
  struct dim g = groups(a), each = dim_div(n->attrs.dim, g);
  struct shape split = n->shape;
  if (n->attrs.over || dim_is_one(&g) || dim_is_one(&each)) {
    formula_element(f, &n->shape, at);
    return at->axis[0];
  }
  split.axis[0].dim = each;
  shape_insert(&split, ROLE_GROUP, g);
  struct spot apart;
  formula_element(f, &split, &apart);
  *at = (struct spot){.axis = {formula_flatten(f, &split, &apart, 0, 2)}};
  for (int i = 2; i < split.count; i++) at->axis[i - 1] = apart.axis[i];
  return apart.axis[0];
}

static void formula(struct formula *f, int node) {
  const struct node *n = &f->k->nodes[node];
  const struct shape *a = node_input(f->k, n, 0);
  struct spot at, from = {0}, index = {0};
  const char *ranges = "";
  const struct index *group = formula_outputs(f, n, a, &at);
  int count = 1;
  index.axis[0] = at.axis[shape_find(&n->shape, made(n))];
  for (int i = 0; i < a->count; i++) {
    enum role role = a->axis[i].role;
    if (contracted(n) >> role & 1)
      index.axis[count++] = from.axis[i] = formula_bound(f, role, &a->axis[i].dim, &ranges);
    else
      from.axis[i] =
          role == ROLE_GROUP && !n->attrs.over ? group : at.axis[shape_find(&n->shape, role)];
  }
  const char *w = formula_weight(f, node, &index, count);
  formula_line(f, node, &at,
               formula_text(f, "%s%s·%s", formula_over(f, "Σ", ranges), w,
                            formula_read(f, n->in[0], &from)));
}

const struct family family_fc = {.name = "fully connected",
                                 .shape = shape,
                                 .conditions = conditions,
                                 .choices = choices,
                                 .choices_within = choices_within,
                                 .weight = weight,
                                 .work = work,
                                 .lower = lower,
                                 .torch = torch,
                                 .formula = formula};
