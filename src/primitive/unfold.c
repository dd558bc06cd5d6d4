/* unfold: windows of k neighbours along spatial axes become window axes (paper Table 1), zero
 * outside the image. k=K is the kernel size of the target: KH along H, KW along W. stride=S starts a
 * window at each S-th pixel, dilation=D reads each D-th pixel of a window D times as wide; on a dilated
 * layer all windows of an image are as dilated as the layer, times their own D. Along the channels a
 * window has a constant size.
 */
#include "base/saturating.h"
#include "primitive/formula.h"
#include "primitive/lowering.h"
#include "primitive/spelling.h"

enum { WINDOW_MAX = 31, DILATION_MAX = 15, OVERS = 1 << ROLE_CHANNEL | ROLES_SPATIAL };

static enum role window_role(enum role axis) {
  return axis == ROLE_CHANNEL ? ROLE_KC : axis == ROLE_H ? ROLE_KH : ROLE_KW;
}

static struct dim window(const struct node *n, enum role role) {
  if (n->attrs.amount) return dim_number(n->attrs.amount);
  return dim_size(role == ROLE_KH ? SIZE_KH : SIZE_KW);
}

static const char *shape(const struct kernel *k, const struct node *n, struct shape *out) {
  const struct shape *a = node_input(k, n, 0);
  unsigned over = n->attrs.over, roles = shape_roles(a);
  if (!over || over & ~(unsigned)OVERS) return "over= takes H, W and C";
  if (over & ~roles) return "the input has not all axes of over=";
  if (over >> ROLE_CHANNEL & 1 && !n->attrs.amount) return "k= takes a number where over= has C";
  if (over >> ROLE_CHANNEL & 1 && !dim_is_one(&n->attrs.dim)) return "stride= takes no C in over=";
  if (n->attrs.amount < 0 || n->attrs.amount > WINDOW_MAX ||
      (n->attrs.amount && n->attrs.amount % 2 == 0))
    return "k= takes K or an odd number up to 31";
  if (n->attrs.dilation > DILATION_MAX) return "dilation= takes a number up to 15";
  if (!dim_is_one(&n->attrs.dim) && !dim_is_stride(&n->attrs.dim)) return "stride= takes S";
  *out = *a;
  for (enum role r = ROLE_CHANNEL; r <= ROLE_W; r++) {
    enum role w = window_role(r);
    if (!(over >> r & 1)) continue;
    if (roles >> w & 1) return "the input has that window axis already";
    if (out->count == AXES_MAX) return "the result would have more than 8 axes";
    if (!shape_subsample(out, r, &n->attrs.dim)) return "the stride is taken already";
    shape_insert(out, w, window(n, w));
  }
  return NULL;
}

/* Windows that are drawn with a dilation, too. */
static bool dilated(int size) {
  return size >= 3 && size <= 7;
}

/* The published code has windows of 3, 5 and 7, up to 3 apart. */
static enum kernel_space space_of(unsigned over, int size) {
  if (over >> ROLE_CHANNEL & 1) return SPACE_WIDE;
  return !size ? SPACE_PAPER : dilated(size) ? SPACE_PUBLISHED : SPACE_WIDE;
}

static int choices_within(const struct kernel *k, int a, enum kernel_space most,
                          struct candidate *out) {
  unsigned roles = shape_roles(&k->nodes[a].shape);
  static const unsigned overs[] = {1 << ROLE_H, 1 << ROLE_W, ROLES_SPATIAL, 1 << ROLE_CHANNEL};
  static const unsigned windows[] = {1 << ROLE_KH, 1 << ROLE_KW, ROLES_IMAGE_WINDOW, 1 << ROLE_KC};
  int count = 0, largest = most == SPACE_PAPER ? 0 : WINDOW_MAX;
  if (k->nodes[a].op == PRIMITIVE_UNFOLD) return 0; /* H then W is H,W */
  for (int size = 0; size <= largest; size += size ? 2 : 3)
    for (int i = 0; i < 4; i++) {
      struct candidate c = {.op = PRIMITIVE_UNFOLD, .in = {a, -1}, .x = -1};
      c.attrs = (struct attrs){.dim = dim_one(), .over = overs[i], .amount = size};
      if (overs[i] & ~roles || windows[i] & roles || (i == 3 && !size)) continue;
      if (space_of(overs[i], size) > most) continue;
      for (int apart = 1; apart <= (dilated(size) ? 3 : 1); apart++) {
        c.attrs.dilation = apart > 1 ? apart : 0;
        out[count++] = c;
      }
    }
  return count;
}

static int choices(const struct kernel *k, int a, int b, struct candidate *out) {
  (void)b;
  return choices_within(k, a, SPACE_WIDE, out);
}

/* o[.., kh, .., h, ..] = a[.., h*stride + (kh - k/2)*dilation, ..] inside, 0 outside; dilation is that
 * of the node times that of the target */
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
    int w = shape_find(&n->shape, window_role(role));
    int64_t apart = int_max(n->attrs.dilation, 1);
    if (role != ROLE_CHANNEL) apart *= int_max(l->sizes->dilation, 1);
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

/* Half a window along the axis, in pixels: the target dilates those of images alone. */
static const char *half(struct spelling *s, const struct node *n, enum role axis) {
  struct dim k = window(n, window_role(axis));
  bool dilated = s->dilated;
  s->dilated = dilated && axis != ROLE_CHANNEL;
  const char *text = spelling_half(s, &k, n->attrs.dilation);
  s->dilated = dilated;
  return text;
}

/* "1, 1, 1, 1": the zeros on both sides, last axis first, as F.pad takes them. */
static const char *padding(struct spelling *s, const struct node *n) {
  const struct shape *a = node_input(s->k, n, 0);
  const char *text = "", *comma = "";
  unsigned left = n->attrs.over;
  for (int i = a->count - 1; left; i--, comma = ", ") {
    enum role role = a->axis[i].role;
    const char *zeros = left >> role & 1 ? half(s, n, role) : "0";
    text = spelling_text(s, "%s%s%s, %s", text, comma, zeros, zeros);
    left &= ~(1u << role);
  }
  return text;
}

/* One axis of `from`, which has the shape *a: a slice per neighbour, stacked where the window axis
 * belongs. *a becomes the shape of `to`. */
static void stack(struct spelling *s, const struct node *n, enum role role, struct shape *a,
                  const char *from, const char *to) {
  struct dim k = window(n, window_role(role)), size = a->axis[shape_find(a, role)].dim;
  const char *behind = "", *places = spelling_dim(s, &k);
  for (int i = shape_find(a, role) + 1; i < a->count; i++)
    behind = spelling_text(s, "%s, :", behind);
  bool dilated = s->dilated;
  s->dilated = dilated && role != ROLE_CHANNEL;
  const char *slice = spelling_slice(s, "i", &size, &n->attrs.dim, n->attrs.dilation);
  s->dilated = dilated;
  shape_subsample(a, role, &n->attrs.dim);
  shape_insert(a, window_role(role), k);
  spelling_line(s, "%s = torch.stack([%s[..., %s%s] for i in range(%s)], dim=%d)", to, from, slice,
                behind, places, shape_find(a, window_role(role)) + 1);
}

/* Pads, then stacks slices: no convolution, nothing that a counter would count. */
static void torch(struct spelling *s, int node) {
  const struct node *n = &s->k->nodes[node];
  const char *from = spelling_local(s, node, "padded");
  struct shape a = *node_input(s->k, n, 0);
  unsigned left = n->attrs.over;
  spelling_line(s, "%s = F.pad(%s, (%s))", from, s->name[n->in[0]], padding(s, n));
  for (enum role r = ROLE_CHANNEL; r <= ROLE_W; r++) {
    if (!(left >> r & 1)) continue;
    left &= ~(1u << r);
    const char *to =
        left ? spelling_local(s, node, r == ROLE_H ? "rows" : "channels") : s->name[node];
    stack(s, n, r, &a, from, to);
    from = to;
  }
}

/* Along other axes it passes on what is outside. */
static bool reads(struct formula *f, int node, const struct spot *at, struct spot *from) {
  const struct node *n = &f->k->nodes[node];
  const struct shape *a = node_input(f->k, n, 0);
  struct arena *arena = &f->arena;
  for (int i = 0; i < a->count; i++) {
    enum role role = a->axis[i].role;
    int axis = shape_find(&n->shape, role), w = shape_find(&n->shape, window_role(role));
    from->axis[i] = at->axis[axis];
    from->outside |= (at->outside >> axis & 1) << i;
    if (!(n->attrs.over >> role & 1)) continue;
    if (at->outside >> axis & 1 || at->outside >> w & 1) return false;
    struct dim apart = dim_number(int_max(n->attrs.dilation, 1)), k = n->shape.axis[w].dim;
    const struct index *first = index_mul(arena, index_half(arena, &k), &apart);
    const struct index *place = index_mul(arena, at->axis[axis], &n->attrs.dim);
    place = index_add(arena, place, index_mul(arena, at->axis[w], &apart));
    from->axis[i] = index_sub(arena, place, first);
    if (!dim_is_one(&k)) from->outside |= 1u << i;
  }
  return true;
}

const struct family family_unfold = {.name = "unfold",
                                     .shape = shape,
                                     .choices = choices,
                                     .choices_within = choices_within,
                                     .lower = lower,
                                     .torch = torch,
                                     .reads = reads};
