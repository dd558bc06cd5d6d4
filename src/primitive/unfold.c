/* unfold: windows of k neighbours along spatial axes become window axes (paper Table 1), zero
 * outside the image. k=K is the kernel size of the target: KH along H, KW along W.
 */
#include "primitive/lowering.h"

enum { WINDOW_MAX = 15 };

static struct dim window(const struct node *n, enum role window_role) {
  if (n->attrs.amount) return dim_number(n->attrs.amount);
  return dim_size(window_role == ROLE_KH ? SIZE_KH : SIZE_KW);
}

static const char *shape(const struct kernel *k, const struct node *n, struct shape *out) {
  const struct shape *a = node_input(k, n, 0);
  unsigned over = n->attrs.over, roles = shape_roles(a);
  if (!over || over & ~(unsigned)ROLES_SPATIAL) return "over= takes H, W or H,W";
  if (over & ~roles) return "the input has not all axes of over=";
  if (n->attrs.amount < 0 || n->attrs.amount > WINDOW_MAX || (n->attrs.amount && n->attrs.amount % 2 == 0))
    return "k= takes K or an odd number up to 15";
  *out = *a;
  for (enum role r = ROLE_H; r <= ROLE_W; r++) {
    enum role w = r == ROLE_H ? ROLE_KH : ROLE_KW;
    if (!(over >> r & 1)) continue;
    if (roles >> w & 1) return "the input has that window axis already";
    shape_insert(out, w, window(n, w));
  }
  return NULL;
}

static int choices(const struct kernel *k, int a, int b, struct candidate *out) {
  (void)b;
  unsigned roles = shape_roles(&k->nodes[a].shape);
  static const unsigned overs[] = {1 << ROLE_H, 1 << ROLE_W, ROLES_SPATIAL};
  static const unsigned windows[] = {1 << ROLE_KH, 1 << ROLE_KW, ROLES_WINDOW};
  int count = 0;
  if (k->nodes[a].op == PRIMITIVE_UNFOLD) return 0; /* H then W is H,W */
  for (int i = 0; i < 3; i++)
    if (!(overs[i] & ~roles) && !(windows[i] & roles))
      out[count++] = (struct candidate){.op = PRIMITIVE_UNFOLD,
                                        .in = {a, -1},
                                        .attrs = {dim_number(1), overs[i], 0},
                                        .x = -1};
  return count;
}

/* o[.., kh, .., h, ..] = a[.., h + kh - k/2, ..] inside, 0 outside */
static void lower(struct lowering *l, int node) {
  const struct node *n = &l->k->nodes[node];
  const struct shape *a = node_input(l->k, n, 0);
  struct program *p = l->p;
  struct place at, from;
  int stage = lowering_stage(l, node, "", &n->shape, &at), inside = px_bool(p, true);
  from = at;
  for (int i = 0; i < a->count; i++) {
    enum role role = a->axis[i].role;
    from.axis[i] = at.axis[shape_find(&n->shape, role)];
    if (!(n->attrs.over >> role & 1)) continue;
    int w = shape_find(&n->shape, role == ROLE_H ? ROLE_KH : ROLE_KW);
    int64_t k = lowering_size(l, &n->shape.axis[w].dim), size = lowering_size(l, &a->axis[i].dim);
    from.axis[i] = px_add(p, from.axis[i], px_sub(p, at.axis[w], px_int(p, k / 2)));
    inside = px_and(p, inside, px_inside(p, from.axis[i], 0, size));
  }
  int load = lowering_load(l, l->tensor[n->in[0]], &from, a->count);
  program_define(p, stage, px_select(p, inside, load, px_number(p, 0)));
  l->tensor[node] = stage;
}

const struct family family_unfold = {
    .name = "unfold", .drawn = true, .shape = shape, .choices = choices, .lower = lower};
