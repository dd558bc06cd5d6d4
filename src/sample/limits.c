/* See limits.h. */
#include "sample/limits.h"

#include <string.h>

struct limits limits_none(void) {
  return (struct limits){.width_least = 2,
                         .width_most = 8,
                         .weighted_least = 1,
                         .weighted_most = 8,
                         .weighted_share = 600,
                         .receptive = 1};
}

bool limits_demand(const struct limits *l) {
  const struct limits none = limits_none();
  return l->needs || l->width_least != none.width_least || l->width_most != none.width_most ||
         l->weighted_least != none.weighted_least || l->weighted_most != none.weighted_most ||
         l->weighted_share != none.weighted_share || l->receptive > 1 || l->matmul ||
         l->refuse_fixed_hw;
}

/* -- kinds -- */

uint64_t kind_of(enum primitive op, const struct attrs *attrs) {
  bool mix = op == PRIMITIVE_FC && attrs->over;
  return UINT64_C(1) << (mix ? (int)KIND_MIX : (int)op);
}

uint64_t kinds_weighted(void) {
  uint64_t all = UINT64_C(1) << KIND_MIX;
  for (int i = 0; i < PRIMITIVE_COUNT; i++)
    if (primitive_rows[i].facts & FACT_WEIGHTS) all |= UINT64_C(1) << i;
  return all;
}

uint64_t kinds_of_family(const struct family *f) {
  uint64_t all = f == &family_fc ? UINT64_C(1) << KIND_MIX : 0;
  for (int i = 0; i < PRIMITIVE_COUNT; i++)
    if (primitive_rows[i].family == f) all |= UINT64_C(1) << i;
  return all;
}

uint64_t kernel_kinds(const struct kernel *k) {
  uint64_t all = 0;
  for (int i = 1; i < k->count; i++) all |= kind_of(k->nodes[i].op, &k->nodes[i].attrs);
  return all;
}

/* -- applications -- */

static bool has(uint32_t set, int value) {
  return value >= 0 && value < 32 && set >> value & 1;
}

/* Amounts of `shift each` differ from group to group: none of them are those that options name. */
static bool amounts_allowed(const struct limits *l, enum primitive op, const struct attrs *a) {
  int pixels = a->amount < 0 ? -a->amount : a->amount;
  if (op == PRIMITIVE_SHIFT && l->shifts) return has(l->shifts, pixels);
  if (op == PRIMITIVE_SHIFT_EACH) return !l->shifts;
  if (op != PRIMITIVE_UNFOLD) return true;
  return (!l->windows || has(l->windows, a->amount)) &&
         (!l->dilations || has(l->dilations, a->dilation ? a->dilation : 1));
}

bool limits_allow(const struct limits *l, enum primitive op, const struct attrs *attrs) {
  return !(l->forbidden & kind_of(op, attrs)) && amounts_allowed(l, op, attrs);
}

/* Where an application differs from an earlier one by its amounts alone. */
static bool is_repeated(const struct candidate *all, int at, const struct candidate *c) {
  bool repeated = false;
  for (int i = 0; i < at; i++)
    repeated |= all[i].op == c->op && all[i].attrs.over == c->attrs.over &&
                all[i].attrs.zero_fill == c->attrs.zero_fill;
  return repeated;
}

/* Bits of the amounts that are offered. */
static uint32_t offered(const struct candidate *all, int count, bool dilations) {
  enum { SMALL = 7 }; /* windows whose dilations are given alone: K, 3, 5 and 7 */
  uint32_t set = 0;
  for (int i = 0; i < count; i++) {
    int value = dilations && all[i].attrs.dilation ? all[i].attrs.dilation : dilations;
    if (!dilations) value = all[i].attrs.amount;
    if (dilations || value <= SMALL) set |= UINT32_C(1) << value;
  }
  return set;
}

static int spread_windows(const struct limits *l, const struct candidate *of, int count,
                          struct candidate *out, int room) {
  uint32_t windows = l->windows ? l->windows : offered(of, count, false);
  uint32_t dilations = l->dilations ? l->dilations : offered(of, count, true);
  int made = 0;
  for (int i = 0; i < count; i++) {
    if (is_repeated(of, i, &of[i])) continue;
    for (int k = 0; k <= WINDOW_MOST; k++)
      for (int d = 1; has(windows, k) && d <= DILATION_MOST; d++) {
        if (!has(dilations, d) || made == room) continue;
        if (!k && of[i].attrs.over >> ROLE_CHANNEL & 1) continue; /* K is a size of images */
        out[made] = of[i];
        out[made].attrs.amount = k;
        out[made++].attrs.dilation = d > 1 ? d : 0;
      }
  }
  return made;
}

static int spread_shifts(const struct limits *l, const struct candidate *of, int count,
                         struct candidate *out, int room) {
  int made = 0;
  for (int i = 0; i < count; i++) {
    if (of[i].op != PRIMITIVE_SHIFT || is_repeated(of, i, &of[i])) continue;
    for (int by = -PIXELS_MOST; by <= PIXELS_MOST; by++) {
      if (!by || !has(l->shifts, by < 0 ? -by : by) || made == room) continue;
      out[made] = of[i];
      out[made++].attrs.amount = by;
    }
  }
  return made;
}

int limits_choices(const struct limits *l, struct candidate *all, int count, int room) {
  struct candidate of[CANDIDATES_MAX];
  int kept = 0;
  bool windows = count && all[0].op == PRIMITIVE_UNFOLD && (l->windows || l->dilations);
  bool shifts = count && primitive_rows[all[0].op].family == &family_shift && l->shifts;
  if (windows || shifts) {
    memcpy(of, all, (size_t)count * sizeof *of);
    count =
        windows ? spread_windows(l, of, count, all, room) : spread_shifts(l, of, count, all, room);
  }
  if (!l->forbidden && !l->windows && !l->dilations && !l->shifts) return count;
  for (int i = 0; i < count; i++)
    if (limits_allow(l, all[i].op, &all[i].attrs)) all[kept++] = all[i];
  return kept;
}

/* -- pixels that a result depends on -- */

enum { FIELD = 64 }; /* a torus, so that no pixel is lost; row 0 and bit 0 are the pixel itself */
struct field {
  uint64_t row[FIELD];
};

static uint64_t turned(uint64_t row, int by) {
  by = (by % FIELD + FIELD) % FIELD;
  return by ? row << by | row >> (FIELD - by) : row;
}

static void add_moved(struct field *to, const struct field *from, enum role axis, int by) {
  for (int i = 0; i < FIELD; i++) {
    int row = axis == ROLE_H ? ((i + by) % FIELD + FIELD) % FIELD : i;
    to->row[row] |= axis == ROLE_W ? turned(from->row[i], by) : from->row[i];
  }
}

/* All pixels along an axis. */
static void widen(struct field *f, enum role axis) {
  uint64_t any = 0;
  for (int i = 0; i < FIELD; i++) any |= f->row[i];
  for (int i = 0; i < FIELD; i++) {
    if (axis == ROLE_H) f->row[i] = any;
    if (axis == ROLE_W && f->row[i]) f->row[i] = UINT64_MAX;
  }
}

/* Offsets that a node reads along an axis: from first to last, `apart` pixels from one to the next. */
struct offsets {
  int first, last, apart;
};

static struct offsets offsets_of(const struct node *n, int window) {
  int by = n->attrs.amount, size = n->attrs.amount ? n->attrs.amount : window;
  int apart = n->attrs.dilation ? n->attrs.dilation : 1;
  switch (n->op) {
    case PRIMITIVE_SHIFT: return (struct offsets){-by, -by, 1};
    case PRIMITIVE_SHIFT_EACH: return (struct offsets){0, 1, 1}; /* of two groups, the least */
    case PRIMITIVE_UNFOLD:
      return (struct offsets){-(size / 2) * apart, (size - 1 - size / 2) * apart, apart};
    default: return (struct offsets){0, 0, 1};
  }
}

static void look(struct field *f, const struct node *n, enum role axis, int window) {
  struct field out = {{0}};
  struct offsets o = offsets_of(n, window);
  if (!(node_row(n)->facts & FACT_SEES) || !(n->attrs.over >> axis & 1)) return;
  for (int by = o.first; by <= o.last; by += o.apart) add_moved(&out, f, axis, by);
  *f = out;
}

/* Whether each number of the result depends on all pixels of the input along the axis. */
static bool sees_all(const struct kernel *k, const struct node *n, enum role axis) {
  const struct family *f = node_row(n)->family;
  unsigned bits = 1u << axis | 1u << (axis + ROLES_ONCE);
  if (f == &family_matmul) /* pixels meet pixels, or will once the second axis is summed over */
    return n->attrs.over & bits ||
           (shape_roles(node_input(k, n, 0)) & bits && shape_roles(node_input(k, n, 1)) & bits);
  bool sums = f == &family_fold || f == &family_softmax || f == &family_norm || f == &family_fc;
  return sums && n->attrs.over & bits;
}

static void field_of(const struct kernel *k, int node, int64_t kh, int64_t kw, struct field *all) {
  const struct node *n = &k->nodes[node];
  struct field *f = &all[node];
  memset(f, 0, sizeof *f);
  if (!node_row(n)->arity) f->row[0] = 1;
  if (n->op == PRIMITIVE_COORDS) return; /* a constant */
  for (int j = 0; j < node_row(n)->arity; j++) add_moved(f, &all[n->in[j]], ROLE_GROUP, 0);
  look(f, n, ROLE_H, (int)kh);
  look(f, n, ROLE_W, (int)kw);
  if (sees_all(k, n, ROLE_H)) widen(f, ROLE_H);
  if (sees_all(k, n, ROLE_W)) widen(f, ROLE_W);
}

int kernel_receptive(const struct kernel *k, int64_t kh, int64_t kw) {
  struct field all[KERNEL_NODES_MAX];
  int count = 0;
  for (int i = 0; i < k->count; i++) field_of(k, i, kh, kw, all);
  for (int i = 0; i < FIELD; i++) count += __builtin_popcountll(all[k->count - 1].row[i]);
  return count;
}

/* -- finished kernels -- */

static bool weighted_kept(const struct limits *l, const struct kernel *k) {
  int weighted = 0, primitives = kernel_primitives(k);
  for (int i = 1; i < k->count; i++)
    weighted += (node_row(&k->nodes[i])->facts & FACT_WEIGHTS) != 0;
  return !l->weighted_given || (weighted >= l->weighted_least && weighted <= l->weighted_most &&
                                weighted * 1000 <= l->weighted_share * primitives);
}

bool limits_kept(const struct limits *l, const struct kernel *k, int64_t kh, int64_t kw) {
  uint64_t held = kernel_kinds(k);
  if (l->forbidden & held || !weighted_kept(l, k)) return false;
  for (int i = 0; i < l->needs; i++)
    if (!(l->need[i] & held)) return false;
  if (l->refuse_fixed_hw && kernel_needs_fixed_hw(k)) return false;
  return l->receptive <= 1 || kernel_receptive(k, kh, kw) >= l->receptive;
}
