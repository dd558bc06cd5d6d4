/* unfold: windows of k neighbours along spatial axes become window axes (paper Table 1), zero
 * outside the image. k=K is the kernel size of the target: KH along H, KW along W. stride=S starts a
 * window at each S-th pixel, dilation=D reads each D-th pixel of a window D times as wide; on a dilated
 * layer all windows are as dilated as the layer, times their own D.
 */
#include "base/saturating.h"
#include "primitive/lowering.h"
#include "primitive/spelling.h"

enum { WINDOW_MAX = 15, DILATION_MAX = 15 };

static struct dim window(const struct node *n, enum role window_role) {
  if (n->attrs.amount) return dim_number(n->attrs.amount);
  return dim_size(window_role == ROLE_KH ? SIZE_KH : SIZE_KW);
}

static const char *shape(const struct kernel *k, const struct node *n, struct shape *out) {
  const struct shape *a = node_input(k, n, 0);
  unsigned over = n->attrs.over, roles = shape_roles(a);
  if (!over || over & ~(unsigned)ROLES_SPATIAL) return "over= takes H, W or H,W";
  if (over & ~roles) return "the input has not all axes of over=";
  if (n->attrs.amount < 0 || n->attrs.amount > WINDOW_MAX ||
      (n->attrs.amount && n->attrs.amount % 2 == 0))
    return "k= takes K or an odd number up to 15";
  if (n->attrs.dilation > DILATION_MAX) return "dilation= takes a number up to 15";
  if (!dim_is_one(&n->attrs.dim) && !dim_is_stride(&n->attrs.dim)) return "stride= takes S";
  *out = *a;
  for (enum role r = ROLE_H; r <= ROLE_W; r++) {
    enum role w = r == ROLE_H ? ROLE_KH : ROLE_KW;
    if (!(over >> r & 1)) continue;
    if (roles >> w & 1) return "the input has that window axis already";
    if (!shape_subsample(out, r, &n->attrs.dim)) return "the stride is taken already";
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
                                        .attrs = {.dim = dim_one(), .over = overs[i]},
                                        .x = -1};
  return count;
}

/* o[.., kh, .., h, ..] = a[.., h*stride + (kh - k/2)*dilation, ..] inside, 0 outside; dilation is that
 * of the node times that of the target */
static void lower(struct lowering *l, int node) {
  const struct node *n = &l->k->nodes[node];
  const struct shape *a = node_input(l->k, n, 0);
  struct program *p = l->p;
  struct place at, from;
  int64_t apart = int_max(n->attrs.dilation, 1) * int_max(l->sizes->dilation, 1);
  int stage = lowering_stage(l, node, "", &n->shape, &at), inside = px_bool(p, true);
  from = at;
  for (int i = 0; i < a->count; i++) {
    enum role role = a->axis[i].role;
    from.axis[i] = at.axis[shape_find(&n->shape, role)];
    if (!(n->attrs.over >> role & 1)) continue;
    int w = shape_find(&n->shape, role == ROLE_H ? ROLE_KH : ROLE_KW);
    int64_t k = lowering_size(l, &n->shape.axis[w].dim), size = lowering_size(l, &a->axis[i].dim);
    int offset = px_sub(p, at.axis[w], px_int(p, k / 2));
    if (apart > 1) offset = px_mul(p, offset, px_int(p, apart));
    from.axis[i] = px_add(p, lowering_strided(l, from.axis[i], &n->attrs.dim), offset);
    inside = px_and(p, inside, px_inside(p, from.axis[i], 0, size));
  }
  int load = lowering_load(l, l->tensor[n->in[0]], &from, a->count);
  program_define(p, stage, px_select(p, inside, load, px_number(p, 0)));
  l->tensor[node] = stage;
}

/* "1, 1, 1, 1": the zeros on both sides, last axis first, as F.pad takes them. */
static const char *padding(struct spelling *s, const struct node *n) {
  const char *text = "";
  for (enum role r = ROLE_W; r >= ROLE_H; r--) {
    bool last = r == ROLE_W || shape_find(&n->shape, ROLE_W) < 0;
    struct dim k = window(n, r == ROLE_H ? ROLE_KH : ROLE_KW);
    const char *half = n->attrs.over >> r & 1 ? spelling_half(s, &k, n->attrs.dilation) : "0";
    if (shape_find(&n->shape, r) < 0 || (r == ROLE_H && !(n->attrs.over >> r & 1))) continue;
    text = spelling_text(s, "%s%s%s, %s", text, last ? "" : ", ", half, half);
  }
  return text;
}

/* One axis: a slice per neighbour, stacked where the window axis belongs. */
static void stack(struct spelling *s, const struct node *n, enum role role, const char *from,
                  const char *to) {
  const struct shape *o = &n->shape, *a = node_input(s->k, n, 0);
  enum role window_role = role == ROLE_H ? ROLE_KH : ROLE_KW;
  struct dim k = window(n, window_role);
  const char *behind = role == ROLE_H && shape_find(o, ROLE_W) >= 0 ? ", :" : "";
  const struct dim *size = &a->axis[shape_find(a, role)].dim;
  const char *slice = spelling_slice(s, "i", size, &n->attrs.dim, n->attrs.dilation);
  spelling_line(s, "%s = torch.stack([%s[..., %s%s] for i in range(%s)], dim=%d)", to, from, slice,
                behind, spelling_dim(s, &k), shape_find(o, window_role) + 1);
}

/* Pads, then stacks slices: no convolution, nothing that a counter would count. */
static void torch(struct spelling *s, int node) {
  const struct node *n = &s->k->nodes[node];
  const char *padded = spelling_local(s, node, "padded"), *name = s->name[node];
  spelling_line(s, "%s = F.pad(%s, (%s))", padded, s->name[n->in[0]], padding(s, n));
  if (n->attrs.over == ROLES_SPATIAL) {
    const char *rows = spelling_local(s, node, "rows");
    stack(s, n, ROLE_H, padded, rows);
    stack(s, n, ROLE_W, rows, name);
  } else {
    stack(s, n, n->attrs.over >> ROLE_H & 1 ? ROLE_H : ROLE_W, padded, name);
  }
}

const struct family family_unfold = {.name = "unfold",
                                     .drawn = true,
                                     .shape = shape,
                                     .choices = choices,
                                     .lower = lower,
                                     .torch = torch};
