/* Patterns: runs of nodes that PyTorch has one operator for.
 *
 * Fewer MACs spelled node by node are often slower than the convolution they replace, because every
 * window is stored. Each pattern reads an earlier tensor, the source, instead of its node's
 * input; the nodes between are spelled only if somebody else wants them. The result is the same
 * without any pattern, and a test compares them.
 *
 * Flattened, the channels of a source are its group, channel and window axes in this order, row-major.
 */
#include <string.h>

#include "primitive/spelling.h"
#include "spell/spell.h"

/* What a walk back from a node through group, unfold and subsample has seen. */
struct walk {
  int source;
  unsigned unfolded;          /* a bit per window role made on the way */
  unsigned strided;           /* a bit per spatial role of which the stride was taken */
  int dilation_h, dilation_w; /* as in attrs: 0 is 1 */
};

/* Notes an unfold; false if it makes a window axis outside `windows`. */
static bool walk_unfold(struct walk *w, const struct node *n, unsigned windows) {
  bool h = n->attrs.over >> ROLE_H & 1, v = n->attrs.over >> ROLE_W & 1;
  unsigned made = (unsigned)h << ROLE_KH | (unsigned)v << ROLE_KW;
  if (made & ~windows || n->attrs.over & ~(unsigned)ROLES_SPATIAL) return false;
  w->unfolded |= made;
  if (h) w->dilation_h = n->attrs.dilation;
  if (v) w->dilation_w = n->attrs.dilation;
  if (dim_is_stride(&n->attrs.dim)) w->strided |= n->attrs.over;
  return true;
}

/* Notes a subsample; false along an axis of which a window was made further down: its neighbours are S
 * apart. */
static bool walk_subsample(struct walk *w, const struct node *n) {
  bool h = w->unfolded >> ROLE_KH & 1, v = w->unfolded >> ROLE_KW & 1;
  if (n->attrs.over & ((unsigned)h << ROLE_H | (unsigned)v << ROLE_W)) return false;
  w->strided |= n->attrs.over;
  return true;
}

/* Group, unfold and subsample only move data: reading their input again costs nothing, whoever else
 * reads them. Stops before an unfold that makes a window axis outside `windows`. */
static struct walk walk_back(const struct kernel *k, int from, unsigned windows) {
  struct walk w = {.source = from};
  for (bool passes = true;;) {
    const struct node *n = &k->nodes[w.source];
    if (n->op == PRIMITIVE_UNFOLD)
      passes = walk_unfold(&w, n, windows);
    else if (n->op == PRIMITIVE_SUBSAMPLE)
      passes = walk_subsample(&w, n);
    else
      passes = node_row(n)->family == &family_group;
    if (!passes) return w;
    w.source = n->in[0];
  }
}

/* ", stride=(S, S)" where a stride was taken on the way, else "". */
static const char *stride_text(struct spelling *s, const struct walk *w) {
  struct dim stride = dim_size(SIZE_S);
  if (!w->strided) return "";
  const char *by = spelling_dim(s, &stride);
  return spelling_text(s, ", stride=(%s, %s)", w->strided >> ROLE_H & 1 ? by : "1",
                       w->strided >> ROLE_W & 1 ? by : "1");
}

/* The distance between neighbours of the windows made along an axis: "1" where none was. */
static const char *apart_text(struct spelling *s, const struct walk *w, enum role window) {
  int dilation = window == ROLE_KH ? w->dilation_h : w->dilation_w;
  const char *apart = w->unfolded >> window & 1 ? spelling_apart(s, dilation) : "";
  return *apart ? apart : "1";
}

/* ", dilation=(2, 1)" where a window has one, else "". */
static const char *dilation_text(struct spelling *s, const struct walk *w) {
  const char *h = apart_text(s, w, ROLE_KH), *v = apart_text(s, w, ROLE_KW);
  if (!strcmp(h, "1") && !strcmp(v, "1")) return "";
  return spelling_text(s, ", dilation=(%s, %s)", h, v);
}

static struct dim window_dim(const struct shape *s, unsigned unfolded, enum role role) {
  return unfolded >> role & 1 ? s->axis[shape_find(s, role)].dim : dim_one();
}

/* [channels, H, W]: every axis before the spatial ones flattened; false if there are more than the
 * requested spatial axes, or no product. */
static bool flat_shape(const struct shape *a, unsigned spatial, struct shape *out) {
  struct dim channels = shape_product(a, ROLES_CHANNEL);
  unsigned roles = shape_roles(a);
  if (dim_is_poisoned(&channels) || (roles & ~(unsigned)ROLES_CHANNEL) != spatial) return false;
  *out = (struct shape){.count = 1, .axis = {{ROLE_CHANNEL, channels}}};
  for (int i = 0; i < a->count; i++)
    if (spatial >> a->axis[i].role & 1) out->axis[out->count++] = a->axis[i];
  return true;
}

static int readers(const struct kernel *k, int node) {
  int count = 0;
  for (int i = node + 1; i < k->count; i++)
    for (int j = 0; j < node_row(&k->nodes[i])->arity; j++) count += k->nodes[i].in[j] == node;
  return count;
}

/* An fc that contracts what a convolution does. */
static bool is_fc(const struct node *n) {
  return n->op == PRIMITIVE_FC && !n->attrs.over;
}

static const char *groups_text(struct spelling *s, const struct shape *a) {
  struct dim g = spelling_groups(a);
  return dim_is_one(&g) ? "" : spelling_text(s, ", groups=%s", spelling_dim(s, &g));
}

/* The walk back from an fc as far as one convolution can go.
 *
 * The weight is [to, channel, KH, KW]. A KH that the source has already counts as channels: [to,
 * channel*KH, 1, KW] is the same order. A KW that it has does not, if KH is unfolded after it. */
static struct walk walk_conv(const struct kernel *k, int node) {
  const struct node *n = &k->nodes[node];
  struct walk w = walk_back(k, n->in[0], ROLES_IMAGE_WINDOW);
  unsigned own = shape_roles(&k->nodes[w.source].shape) & ROLES_IMAGE_WINDOW;
  if (w.unfolded >> ROLE_KH & 1 && own >> ROLE_KW & 1) return (struct walk){.source = n->in[0]};
  return w;
}

/* unfold over H, W or both, group by or each, in any order, then fc -> F.conv2d
 *
 *   b = group a each;  c = unfold b over=H,W;  d = fc c to=C    ->  a depth-wise convolution
 *
 * Legal where the source ends in H W and walk_conv accepts it; padding K/2 times the dilation is the
 * unfold's zeros. */
static bool match_conv(const struct spelling *s, int node, int reads[2]) {
  const struct kernel *k = s->k;
  struct shape flat;
  if (!is_fc(&k->nodes[node])) return false;
  struct walk w = walk_conv(k, node);
  reads[0] = w.source;
  return w.unfolded && flat_shape(&k->nodes[w.source].shape, ROLES_SPATIAL, &flat);
}

static void spell_conv(struct spelling *s, int node, int source) {
  const struct node *n = &s->k->nodes[node];
  const struct shape *a = node_input(s->k, n, 0);
  struct walk walk = walk_conv(s->k, node);
  struct dim kh = window_dim(a, walk.unfolded, ROLE_KH);
  struct dim kw = window_dim(a, walk.unfolded, ROLE_KW);
  struct dim channels = dim_div(dim_div(spelling_contracted(a), kh), kw);
  struct shape flat;
  flat_shape(&s->k->nodes[source].shape, ROLES_SPATIAL, &flat);
  const char *x = spelling_reshaped(s, source, &flat);
  const char *w = spelling_weight_as(s, node, 4, (struct dim[]){n->attrs.dim, channels, kh, kw});
  spelling_line(s, "%s = F.conv2d(%s, %s%s%s, padding=(%s, %s)%s%s)", s->name[node], x, w,
                spelling_bias(s, node), stride_text(s, &walk),
                spelling_half(s, &kh, walk.dilation_h), spelling_half(s, &kw, walk.dilation_w),
                dilation_text(s, &walk), groups_text(s, a));
  spelling_normalise(s, node);
}

/* group, then fc -> F.conv2d with a 1x1 window
 *
 *   b = fc a to=x0    ->  b = F.conv2d(a, w.reshape(x0, C, 1, 1))
 *
 * Legal wherever the input ends in H W; its window axes count as channels. */
static bool match_pointwise(const struct spelling *s, int node, int reads[2]) {
  const struct kernel *k = s->k;
  struct shape flat;
  if (!is_fc(&k->nodes[node])) return false;
  reads[0] = walk_back(k, k->nodes[node].in[0], 0).source;
  return flat_shape(&k->nodes[reads[0]].shape, ROLES_SPATIAL, &flat);
}

static void spell_pointwise(struct spelling *s, int node, int source) {
  const struct node *n = &s->k->nodes[node];
  const struct shape *a = node_input(s->k, n, 0);
  struct dim one = dim_one();
  struct shape flat;
  flat_shape(&s->k->nodes[source].shape, ROLES_SPATIAL, &flat);
  const char *x = spelling_reshaped(s, source, &flat);
  struct dim dims[] = {n->attrs.dim, spelling_contracted(a), one, one};
  struct walk walk = walk_back(s->k, n->in[0], 0);
  spelling_line(s, "%s = F.conv2d(%s, %s%s%s%s)", s->name[node], x,
                spelling_weight_as(s, node, 4, dims), spelling_bias(s, node), stride_text(s, &walk),
                groups_text(s, a));
  spelling_normalise(s, node);
}

/* fc -> F.linear
 *
 *   b = fold a mean over=H,W;  c = fc b to=x0    ->  c = F.linear(b, w)
 *
 * Legal where nothing but channels is left and there is one group. */
static bool match_linear(const struct spelling *s, int node, int reads[2]) {
  const struct kernel *k = s->k;
  const struct node *n = &k->nodes[node];
  if (!is_fc(n)) return false;
  unsigned roles = shape_roles(node_input(k, n, 0));
  reads[0] = n->in[0];
  return !(roles & ~(unsigned)ROLES_CHANNEL) && !(roles >> ROLE_GROUP & 1);
}

static void spell_linear(struct spelling *s, int node, int source) {
  const struct node *n = &s->k->nodes[node];
  struct dim each = spelling_contracted(node_input(s->k, n, 0));
  struct shape flat = {.count = 1, .axis = {{ROLE_CHANNEL, each}}};
  const char *x = spelling_reshaped(s, source, &flat);
  const char *w = spelling_weight_as(s, node, 2, (struct dim[]){n->attrs.dim, each});
  spelling_line(s, "%s = F.linear(%s, %s%s)", s->name[node], x, w, spelling_bias(s, node));
  spelling_normalise(s, node);
}

/* unfold, perhaps group, then fold over just the windows it made -> pooling
 *
 *   b = unfold a over=H,W;  c = fold b mean over=KH,KW    ->  c = F.avg_pool2d(a, ..., stride=1)
 *
 * Legal where the source ends in H W. The mean counts the zeros outside (avg_pool2d's default); the
 * maximum must see them, so they are padded first. avg_pool2d has no dilation. Where values tie, max_pool2d gives the first one
 * all of the gradient and amax shares it. */
static bool match_pool(const struct spelling *s, int node, int reads[2]) {
  const struct kernel *k = s->k;
  const struct node *n = &k->nodes[node];
  struct shape flat;
  if (n->op != PRIMITIVE_FOLD_MEAN && n->op != PRIMITIVE_FOLD_MAX) return false;
  if (!n->attrs.over || n->attrs.over & ~(unsigned)ROLES_IMAGE_WINDOW) return false;
  struct walk w = walk_back(k, n->in[0], n->attrs.over);
  reads[0] = w.source;
  bool dilated = n->op == PRIMITIVE_FOLD_MEAN && (s->dilated || w.dilation_h || w.dilation_w);
  return w.unfolded == n->attrs.over && !dilated &&
         flat_shape(&k->nodes[w.source].shape, ROLES_SPATIAL, &flat);
}

/* "1" or "(S, 1)" */
static const char *pool_stride(struct spelling *s, const struct walk *w) {
  const char *both = stride_text(s, w);
  return *both ? both + strlen(", stride=") : "1";
}

static void spell_pool(struct spelling *s, int node, int source) {
  const struct node *n = &s->k->nodes[node];
  const struct shape *a = node_input(s->k, n, 0);
  struct dim kh = window_dim(a, n->attrs.over, ROLE_KH);
  struct dim kw = window_dim(a, n->attrs.over, ROLE_KW);
  struct walk walk = walk_back(s->k, n->in[0], n->attrs.over);
  const char *half_h = spelling_half(s, &kh, walk.dilation_h), *stride = pool_stride(s, &walk);
  const char *half_w = spelling_half(s, &kw, walk.dilation_w);
  const char *window = spelling_text(s, "(%s, %s)", spelling_dim(s, &kh), spelling_dim(s, &kw));
  struct shape flat;
  flat_shape(&s->k->nodes[source].shape, ROLES_SPATIAL, &flat);
  const char *x = spelling_reshaped(s, source, &flat), *name = s->name[node];
  if (n->op == PRIMITIVE_FOLD_MEAN) {
    spelling_line(s, "%s = F.avg_pool2d(%s, %s, stride=%s, padding=(%s, %s))", name, x, window,
                  stride, half_h, half_w);
  } else {
    const char *padded = spelling_local(s, node, "padded");
    spelling_line(s, "%s = F.pad(%s, (%s, %s, %s, %s))", padded, x, half_w, half_w, half_h, half_h);
    spelling_line(s, "%s = F.max_pool2d(%s, %s, stride=%s%s)", name, padded, window, stride,
                  dilation_text(s, &walk));
  }
  if (n->shape.count != flat.count)
    spelling_line(s, "%s = %s.reshape(%s)", name, name, spelling_shape(s, &n->shape));
}

/* unfold, perhaps group, times something, then fold mean over the windows -> a sum of products
 *
 *   f = unfold a over=H,W;  h = mul e f;  i = fold h mean over=KH,KW
 *   ->  i = sum([w * x for w, x in zip(the windows of e, slices of a)]) / (KH * KW)
 *
 * Involution: the windows of a are never stored, and the backward pass keeps only views of them.
 * Legal where nobody else reads the product, the source ends in H W, and e has the windows too. */
static bool match_weighted(const struct spelling *s, int node, int reads[2]) {
  const struct kernel *k = s->k;
  const struct node *n = &k->nodes[node], *product = &k->nodes[n->in[0]];
  struct shape left, flat;
  if (n->op != PRIMITIVE_FOLD_MEAN || n->attrs.over & ~(unsigned)ROLES_IMAGE_WINDOW) return false;
  if (product->op != PRIMITIVE_MUL || readers(k, n->in[0]) != 1) return false;
  struct walk w = walk_back(k, product->in[1], n->attrs.over);
  reads[0] = w.source;
  reads[1] = product->in[0];
  if (w.unfolded != n->attrs.over) return false;
  if (!flat_shape(&k->nodes[w.source].shape, ROLES_SPATIAL, &flat)) return false;
  if (!spelling_spread(node_input(k, product, 0), &product->shape, &left)) return false;
  for (int i = 0; i < left.count; i++)
    if (n->attrs.over >> left.axis[i].role & 1 && dim_is_one(&left.axis[i].dim)) return false;
  return true;
}

/* Both window axes as one, where there are two; *at is its position. */
static struct shape one_window(const struct shape *a, unsigned over, int *at) {
  struct shape out = *a;
  *at = shape_find(a, over >> ROLE_KH & 1 ? ROLE_KH : ROLE_KW);
  if (over != ROLES_IMAGE_WINDOW) return out;
  out.axis[*at].dim = dim_mul(out.axis[*at].dim, out.axis[*at + 1].dim);
  for (int i = *at + 1; i + 1 < out.count; i++) out.axis[i] = out.axis[i + 1];
  out.count--;
  return out;
}

/* What is sliced along one axis: all pixels, or those that the neighbour `i` of each window is. */
static const char *slice_along(struct spelling *s, const char *i, const struct shape *source,
                               enum role axis, const struct walk *w) {
  bool unfolded = w->unfolded >> (axis == ROLE_H ? ROLE_KH : ROLE_KW) & 1;
  struct dim stride = w->strided >> axis & 1 ? dim_size(SIZE_S) : dim_one();
  if (unfolded)
    return spelling_slice(s, i, &source->axis[shape_find(source, axis)].dim, &stride,
                          axis == ROLE_H ? w->dilation_h : w->dilation_w);
  return dim_is_one(&stride) ? ":" : spelling_text(s, "::%s", spelling_dim(s, &stride));
}

/* "[p[..., i:i + H, j:j + W] for i in range(KH) for j in range(KW)]" */
static const char *slices(struct spelling *s, const char *padded, const struct shape *source,
                          const struct walk *walk, const struct dim *kh, const struct dim *kw) {
  bool h = walk->unfolded >> ROLE_KH & 1, w = walk->unfolded >> ROLE_KW & 1;
  const char *rows = h ? spelling_text(s, " for i in range(%s)", spelling_dim(s, kh)) : "";
  const char *columns = w ? spelling_text(s, " for j in range(%s)", spelling_dim(s, kw)) : "";
  return spelling_text(s, "[%s[..., %s, %s]%s%s]", padded,
                       slice_along(s, "i", source, ROLE_H, walk),
                       slice_along(s, "j", source, ROLE_W, walk), rows, columns);
}

static void spell_weighted(struct spelling *s, int node, int source) {
  const struct node *n = &s->k->nodes[node], *product = &s->k->nodes[n->in[0]];
  const struct shape *a = &product->shape;
  struct dim kh = window_dim(a, n->attrs.over, ROLE_KH);
  struct dim kw = window_dim(a, n->attrs.over, ROLE_KW), all = dim_mul(kh, kw);
  struct walk walk = walk_back(s->k, product->in[1], n->attrs.over);
  const char *half_h = spelling_half(s, &kh, walk.dilation_h);
  const char *half_w = spelling_half(s, &kw, walk.dilation_w);
  const char *padded = spelling_local(s, node, "padded"), *views = spelling_local(s, node, "views");
  const char *weights = spelling_local(s, node, "weights");
  const struct shape *pixels = &s->k->nodes[source].shape;
  struct shape left, grouped = n->shape;
  int at;
  for (int i = 0; i < grouped.count; i++) /* as the result, but for the stride */
    if (ROLES_SPATIAL >> grouped.axis[i].role & 1)
      grouped.axis[i].dim = pixels->axis[shape_find(pixels, grouped.axis[i].role)].dim;
  spelling_spread(node_input(s->k, product, 0), a, &left);
  left = one_window(&left, n->attrs.over, &at);
  const char *e = spelling_reshaped(s, product->in[0], &left), *count = spelling_dim(s, &all);
  spelling_line(s, "%s = F.pad(%s, (%s, %s, %s, %s))", padded,
                spelling_reshaped(s, source, &grouped), half_w, half_w, half_h, half_h);
  spelling_line(s, "%s = %s", views, slices(s, padded, pixels, &walk, &kh, &kw));
  spelling_line(s, "%s = %s.unbind(%d)", weights, e, at + 1);
  spelling_line(s, "%s = sum([w * x for w, x in zip(%s, %s)]) / %s", s->name[node], weights, views,
                strchr(count, ' ') ? spelling_text(s, "(%s)", count) : count);
}

/* fold, then the same fold -> one over all their axes
 *
 *   b = fold a mean over=H;  c = fold b mean over=W    ->  c = a.mean(dim=(2, 3))
 *
 * Legal where nobody else reads the first: it would be computed twice. */
static bool match_folds(const struct spelling *s, int node, int reads[2]) {
  const struct kernel *k = s->k;
  const struct node *n = &k->nodes[node];
  if (n->op != PRIMITIVE_FOLD_MEAN && n->op != PRIMITIVE_FOLD_MAX) return false;
  for (reads[0] = n->in[0]; k->nodes[reads[0]].op == n->op && readers(k, reads[0]) == 1;)
    reads[0] = k->nodes[reads[0]].in[0];
  return reads[0] != n->in[0];
}

static void spell_folds(struct spelling *s, int node, int source) {
  const struct node *n = &s->k->nodes[node];
  const struct shape *a = &s->k->nodes[source].shape;
  unsigned over = shape_roles(a) & ~shape_roles(&n->shape);
  spelling_line(s, "%s = %s.%s(dim=%s)", s->name[node], s->name[source],
                n->op == PRIMITIVE_FOLD_MAX ? "amax" : "mean", spelling_dims(s, a, over));
}

/* The first that matches is taken: what swallows more stands before what swallows less. */
static const struct pattern {
  bool (*match)(const struct spelling *s, int node, int reads[2]);
  void (*spell)(struct spelling *s, int node, int source);
} patterns[] = {
    {match_conv, spell_conv},           /* [group | unfold].. fc      -> F.conv2d */
    {match_pointwise, spell_pointwise}, /* [group] fc                 -> F.conv2d, 1x1 */
    {match_linear, spell_linear},       /* fc without pixels          -> F.linear */
    {match_pool, spell_pool},         /* unfold [group] fold        -> F.avg_pool2d, F.max_pool2d */
    {match_weighted, spell_weighted}, /* unfold [group] mul fold   -> a sum of products */
    {match_folds, spell_folds},       /* fold fold                  -> one fold */
};

const struct pattern *pattern_find(const struct spelling *s, int node, int reads[2]) {
  reads[1] = -1;
  for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
    if (patterns[i].match(s, node, reads)) return &patterns[i];
  return NULL;
}

void pattern_spell(const struct pattern *p, struct spelling *s, int node, int source) {
  p->spell(s, node, source);
}
