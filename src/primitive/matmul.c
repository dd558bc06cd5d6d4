/* matmul: a sum of products of two tensors (the published code's BMM, with all transposes).
 *
 *   matmul a b over=H,W                     [C, H, W], [x0, H, W]          -> [C, channel2=x0]
 *   matmul a b over=C each=G                [G, X, H, W], [G, X, H, W]     -> [G, H, W, H2, W2]
 *   matmul a b over=H2,W2 with=H,W each=G   [G, H, W, H2, W2], [G, X, H, W] -> [G, X, H, W]
 *
 * The axes of over= belong to a, those of with= to b (by default the same). Axes of one sort meet,
 * then the others in order. Each pair has one size. What is left of a keeps its roles; what is left of
 * b takes the second role of its sort where the first is taken. Unlike Table 1's primitives it makes
 * tensors with several variables (paper, theorem 1), each axis with one.
 */
#include <string.h>

#include "primitive/formula.h"
#include "primitive/lowering.h"
#include "primitive/spelling.h"

/* Where every axis goes: of a and b by position, the axis of the result or the sum (~i, the i-th). */
struct product {
  int a[AXES_MAX], b[AXES_MAX];
  int sums;
  struct dim summed[AXES_MAX], size; /* of each sum, and their product */
  struct shape result;
  int unequal_a, unequal_b; /* axes that should have one size and have two; -1 */
};

static unsigned with_of(const struct node *n) {
  return n->attrs.with ? n->attrs.with : n->attrs.over;
}

/* The axis of b that meets one of a: of its sort, else the first in order that meets no other. */
static int meeting(const struct shape *a, const struct shape *b, unsigned over, unsigned with,
                   int axis) {
  unsigned rest_a = 0, rest_b = with;
  for (int i = 0; i < a->count; i++) {
    if (!(over >> a->axis[i].role & 1)) continue;
    int met = -1;
    for (int j = 0; j < b->count && met < 0; j++)
      if (rest_b >> b->axis[j].role & 1 && role_sort(b->axis[j].role) == role_sort(a->axis[i].role))
        met = j;
    if (met >= 0 && i == axis) return met;
    if (met >= 0)
      rest_b &= ~(1u << b->axis[met].role);
    else
      rest_a |= 1u << i;
  }
  int place = __builtin_popcount(rest_a & ((1u << axis) - 1));
  for (int j = 0; j < b->count; j++)
    if (rest_b >> b->axis[j].role & 1 && !place--) return j;
  return -1;
}

static const char *keep(struct shape *result, enum role role, const struct dim *dim) {
  unsigned taken = shape_roles(result);
  enum role sort = role_sort(role), second = (enum role)(sort + ROLES_ONCE);
  if (taken >> role & 1) role = taken >> sort & 1 ? second : sort;
  if (taken >> role & 1) return "the result would have three axes of one sort";
  if (result->count == AXES_MAX) return "the result would have more than 8 axes";
  shape_insert(result, role, *dim);
  return NULL;
}

/* The roles of what is left of b, one after the other as `keep` gave them. */
static const char *result_of(const struct shape *a, const struct shape *b, const struct node *n,
                             struct shape *out, enum role of_b[AXES_MAX]) {
  *out = (struct shape){0};
  for (int i = 0; i < a->count; i++)
    if (!(n->attrs.over >> a->axis[i].role & 1)) shape_insert(out, a->axis[i].role, a->axis[i].dim);
  for (int j = 0; j < b->count; j++) {
    enum role role = b->axis[j].role;
    of_b[j] = role;
    if ((with_of(n) | n->attrs.each) >> role & 1) continue;
    unsigned before = shape_roles(out);
    const char *why = keep(out, role, &b->axis[j].dim);
    if (why) return why;
    of_b[j] = (enum role)__builtin_ctz(shape_roles(out) & ~before);
  }
  return NULL;
}

static const char *check_axes(const struct shape *a, const struct shape *b, const struct node *n) {
  unsigned over = n->attrs.over, with = with_of(n), each = n->attrs.each;
  if (over & ~shape_roles(a)) return "the first input has not all axes of over=";
  if (with & ~shape_roles(b))
    return n->attrs.with ? "the second input has not all axes of with="
                         : "the second input has not all axes of over=; with= names its own";
  if (__builtin_popcount(over) != __builtin_popcount(with))
    return "over= and with= do not name as many axes";
  if (each & ~(shape_roles(a) & shape_roles(b))) return "an input has not all axes of each=";
  if (each & (over | with)) return "each= names an axis that is summed";
  return NULL;
}

static bool are_unequal(const struct shape *a, const struct shape *b, int i, int j,
                        struct product *p) {
  if (dim_equal(&a->axis[i].dim, &b->axis[j].dim)) return false;
  p->unequal_a = i;
  p->unequal_b = j;
  return true;
}

static const char *match(const struct shape *a, const struct shape *b, const struct node *n,
                         struct product *p) {
  enum role of_b[AXES_MAX];
  const char *why = check_axes(a, b, n);
  p->sums = 0;
  p->unequal_a = p->unequal_b = -1;
  p->size = dim_one();
  if (!why) why = result_of(a, b, n, &p->result, of_b);
  for (int j = 0; !why && j < b->count; j++) p->b[j] = shape_find(&p->result, of_b[j]);
  for (int i = 0; !why && i < a->count; i++) {
    enum role role = a->axis[i].role;
    p->a[i] = shape_find(&p->result, role);
    if (n->attrs.each >> role & 1 && are_unequal(a, b, i, shape_find(b, role), p))
      why = "an axis of each= has different sizes in the inputs";
    if (!(n->attrs.over >> role & 1)) continue;
    int met = meeting(a, b, n->attrs.over, with_of(n), i);
    if (are_unequal(a, b, i, met, p)) why = "axes that meet have different sizes";
    p->a[i] = p->b[met] = ~p->sums;
    p->summed[p->sums++] = a->axis[i].dim;
    p->size = dim_mul(p->size, a->axis[i].dim);
  }
  return why;
}

static struct product product_of(const struct kernel *k, const struct node *n) {
  struct product p;
  match(node_input(k, n, 0), node_input(k, n, 1), n, &p);
  return p;
}

static const char *shape(const struct kernel *k, const struct node *n, struct shape *out) {
  struct product p;
  const char *why = match(node_input(k, n, 0), node_input(k, n, 1), n, &p);
  if (!why) *out = p.result;
  return why;
}

static void name_axis(const struct axis *axis, const char *input, struct buf *out) {
  buf_printf(out, "%s of the %s is ", role_short(axis->role), input);
  dim_print(&axis->dim, out);
}

/* " (C of the first input is C, H of the second is H)" */
static void axes(const struct kernel *k, const struct node *n, struct buf *out) {
  struct product p;
  const struct shape *a = node_input(k, n, 0), *b = node_input(k, n, 1);
  match(a, b, n, &p);
  if (p.unequal_a < 0) return;
  buf_puts(out, " (");
  name_axis(&a->axis[p.unequal_a], "first input", out);
  buf_puts(out, ", ");
  name_axis(&b->axis[p.unequal_b], "second", out);
  buf_puts(out, ")");
}

/* What a free size of one of two axes must be so that they are equal; false: it cannot be. */
static bool equate(const struct dim *l, const struct dim *r, int *x, struct dim *by) {
  if (dim_equal(l, r)) return true;
  for (int side = 0; side < 2; side++) {
    const struct dim *from = side ? r : l, *to = side ? l : r;
    int variable = dim_variable(from, NULL);
    if (*x >= 0 || variable < 0 || variable >= VARIABLES) continue;
    struct dim alone = dim_size((enum size)(SIZE_X0 + variable));
    if (!dim_equal(from, &alone) || dim_uses(to, (enum size)(SIZE_X0 + variable))) continue;
    *x = variable;
    *by = *to;
    return true;
  }
  return false;
}

/* The one substitution that makes all pairs equal, if there is one. */
static bool solve(const struct shape *a, const struct shape *b, struct candidate *c) {
  struct node n = {.op = c->op, .attrs = c->attrs};
  for (int i = 0; i < a->count; i++) {
    if (!(n.attrs.over >> a->axis[i].role & 1)) continue;
    int met = meeting(a, b, n.attrs.over, with_of(&n), i);
    if (met < 0 || !equate(&a->axis[i].dim, &b->axis[met].dim, &c->x, &c->by)) return false;
  }
  return true;
}

/* Channels, pixels, windows; scores against pixels or channels; within groups where both have them. */
static int choices(const struct kernel *k, int a, int b, struct candidate *out) {
  static const struct {
    unsigned over, with;
  } ways[] = {{1 << ROLE_CHANNEL, 0},
              {ROLES_SPATIAL, 0},
              {ROLES_IMAGE_WINDOW, 0},
              {ROLES_SPATIAL << ROLES_ONCE, ROLES_SPATIAL},
              {1 << (ROLE_CHANNEL + ROLES_ONCE), 1 << ROLE_CHANNEL},
              {ROLES_IMAGE_WINDOW, 1 << ROLE_CHANNEL}};
  const struct shape *l = &k->nodes[a].shape, *r = &k->nodes[b].shape;
  unsigned each = shape_roles(l) & shape_roles(r) & 1 << ROLE_GROUP;
  int count = 0;
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
    for (enum primitive op = PRIMITIVE_MATMUL; op <= PRIMITIVE_MATMUL_SCALED; op++) {
      struct candidate c = {.op = op, .in = {a, b}, .x = -1};
      c.attrs = (struct attrs){.dim = dim_one(), .over = ways[i].over, .with = ways[i].with};
      c.attrs.each = each;
      struct node n = {.op = op, .attrs = c.attrs};
      if (!check_axes(l, r, &n) && solve(l, r, &c)) out[count++] = c;
    }
  return count;
}

static bool work(const struct kernel *k, const struct node *n, const struct sizes *s,
                 struct work *w) {
  struct product p = product_of(k, n);
  int64_t elements, size;
  if (!shape_elements(&n->shape, s, &elements) || !dim_value(&p.size, s, &size)) return false;
  if (n->op == PRIMITIVE_MATMUL_SCALED) w->elementwise = elements;
  return !__builtin_mul_overflow(elements, size, &w->macs);
}

/* The root of how many numbers a sum has divides it, in a stage of its own. */
static int divide(struct lowering *l, int node, int sum, const struct dim *size) {
  struct place at;
  int stage = lowering_stage(l, node, "", &l->k->nodes[node].shape, &at);
  int value = lowering_load(l, sum, &at, l->k->nodes[node].shape.count);
  int root = px_call(l->p, PX_SQRT, px_number(l->p, (double)lowering_size(l, size)));
  program_define(l->p, stage, px_div(l->p, value, root));
  return stage;
}

static void lower(struct lowering *l, int node) {
  const struct node *n = &l->k->nodes[node];
  const struct shape *a = node_input(l->k, n, 0), *b = node_input(l->k, n, 1);
  struct product p = product_of(l->k, n);
  bool scaled = n->op == PRIMITIVE_MATMUL_SCALED;
  struct place at, from_a, from_b;
  int stage = lowering_stage(l, node, scaled ? "_sum" : "", &n->shape, &at), sums[AXES_MAX];
  from_a = from_b = at;
  for (int i = 0, made = 0; i < a->count; i++) {
    if (p.a[i] >= 0) continue;
    const char *names[] = {"s", "s_2", "s_3", "s_4", "s_5", "s_6", "s_7", "s_8"};
    sums[~p.a[i]] =
        program_reduce(l->p, stage, REDUCE_SUM, names[made], lowering_size(l, &p.summed[~p.a[i]]));
    made++;
  }
  for (int i = 0; i < a->count; i++) from_a.axis[i] = p.a[i] < 0 ? sums[~p.a[i]] : at.axis[p.a[i]];
  for (int i = 0; i < b->count; i++) from_b.axis[i] = p.b[i] < 0 ? sums[~p.b[i]] : at.axis[p.b[i]];
  int left = lowering_load(l, l->tensor[n->in[0]], &from_a, a->count);
  int right = lowering_load(l, l->tensor[n->in[1]], &from_b, b->count);
  program_define(l->p, stage, px_mul(l->p, left, right));
  l->tensor[node] = scaled ? divide(l, node, stage, &p.size) : stage;
}

/* Letters of einsum: n the batch, a.. the result's axes, z.. the sums. */
static const char *letters(struct spelling *s, const int *to, int count) {
  const char *text = "n";
  for (int i = 0; i < count; i++)
    text = spelling_text(s, "%s%c", text, to[i] < 0 ? 'z' + to[i] + 1 : 'a' + to[i]);
  return text;
}

static void torch(struct spelling *s, int node) {
  const struct node *n = &s->k->nodes[node];
  struct product p = product_of(s->k, n);
  int own[AXES_MAX];
  for (int i = 0; i < n->shape.count; i++) own[i] = i;
  const char *left = letters(s, p.a, node_input(s->k, n, 0)->count);
  const char *right = letters(s, p.b, node_input(s->k, n, 1)->count);
  const char *by = "";
  if (n->op == PRIMITIVE_MATMUL_SCALED)
    by = spelling_text(s, " / math.sqrt(%s)", spelling_dim(s, &p.size));
  spelling_line(s, "%s = torch.einsum(\"%s,%s->%s\", %s, %s)%s", s->name[node], left, right,
                letters(s, own, n->shape.count), s->name[n->in[0]], s->name[n->in[1]], by);
}

static void formula(struct formula *f, int node) {
  const struct node *n = &f->k->nodes[node];
  const struct shape *a = node_input(f->k, n, 0), *b = node_input(f->k, n, 1);
  struct product p = product_of(f->k, n);
  struct spot at, from_a = {0}, from_b = {0};
  const struct index *sums[AXES_MAX];
  const char *ranges = "", *by = "";
  formula_element(f, &n->shape, &at);
  for (int i = 0; i < a->count; i++) {
    if (p.a[i] < 0) sums[~p.a[i]] = formula_bound(f, a->axis[i].role, &a->axis[i].dim, &ranges);
    from_a.axis[i] = p.a[i] < 0 ? sums[~p.a[i]] : at.axis[p.a[i]];
  }
  for (int i = 0; i < b->count; i++) from_b.axis[i] = p.b[i] < 0 ? sums[~p.b[i]] : at.axis[p.b[i]];
  if (n->op == PRIMITIVE_MATMUL_SCALED && *ranges)
    by = formula_text(f, "1/√(%s)·", formula_elements(f, a, n->attrs.over, false));
  formula_line(
      f, node, &at,
      formula_text(f, "%s%s%s·%s", by, formula_over(f, "Σ", ranges),
                   formula_read(f, n->in[0], &from_a), formula_read(f, n->in[1], &from_b)));
}

const struct family family_matmul = {.name = "matrix product",
                                     .binary = true,
                                     .shape = shape,
                                     .axes = axes,
                                     .choices = choices,
                                     .work = work,
                                     .lower = lower,
                                     .torch = torch,
                                     .formula = formula};
