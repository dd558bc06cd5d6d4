/* Simplifies kernels by rewrites. See kernel_simplify.h.
 *
 * A rewrite looks at a node v and finds either an earlier node with the same value, which replaces
 * v in its consumers, or another form of v with earlier inputs. Nodes without consumers are
 * removed. If the replacement has another shape (a removed group), the numbers in memory still have
 * the same order, and `same_on_flat` checks that every later node computes the same numbers from
 * them.
 *
 * Each rewrite removes a node or a neg, moves an input up, or moves data movement towards the
 * output, and none does the opposite, so that the process ends. Movement in a row is ordered: group,
 * unfold, shift.
 */
#include "kernel/kernel_simplify.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/attributes.h"

enum { ROLES_LEAD = 1 << ROLE_GROUP | 1 << ROLE_CHANNEL };

/* Facts about the nodes of a kernel. */
struct known {
  const struct kernel *k;
  uint64_t above, below; /* masks of nodes that are never negative, never positive */
  int readers[KERNEL_NODES_MAX];
};

struct rewrite {
  int same; /* the node with v's value; -1: v becomes `node` */
  struct node node;
  int after; /* a node that is applied to `node`, with `attrs`; 0: none */
  struct attrs attrs;
  uint64_t gone; /* mask of further nodes that are replaced by their input */
};

static bool has(uint64_t set, int node) {
  return set >> node & 1;
}

/* Whether the primitive keeps the sign: data movement, means and maxima; inserted zeros have
 * both. */
static bool keeps_sign(const struct row *row) {
  return row->arity == 1 && (row->facts & FACT_MOVES || row->family == &family_fold);
}

static bool is_above(const struct known *s, const struct node *n) {
  bool a = n->in[0] >= 0 && has(s->above, n->in[0]), b = n->in[1] >= 0 && has(s->above, n->in[1]);
  bool under = n->in[0] >= 0 && has(s->below, n->in[0]);
  bool under_b = n->in[1] >= 0 && has(s->below, n->in[1]);
  switch (n->op) {
    case PRIMITIVE_RELU:
    case PRIMITIVE_SIGMOID:
    case PRIMITIVE_ABS:
    case PRIMITIVE_EXP:
    case PRIMITIVE_SQRT:
    case PRIMITIVE_SQR:
    case PRIMITIVE_SOFTMAX: return true;
    case PRIMITIVE_GELU:
    case PRIMITIVE_TANH: return a;
    case PRIMITIVE_NEG: return under;
    case PRIMITIVE_ADD:
    case PRIMITIVE_MIN: return a && b;
    case PRIMITIVE_SUB: return a && under_b;
    case PRIMITIVE_MUL: return (a && b) || (under && under_b);
    case PRIMITIVE_MAX: return a || b;
    default: return keeps_sign(node_row(n)) && a;
  }
}

static bool is_below(const struct known *s, const struct node *n) {
  bool a = n->in[0] >= 0 && has(s->below, n->in[0]), b = n->in[1] >= 0 && has(s->below, n->in[1]);
  bool over = n->in[0] >= 0 && has(s->above, n->in[0]);
  bool over_b = n->in[1] >= 0 && has(s->above, n->in[1]);
  switch (n->op) {
    case PRIMITIVE_GELU:
    case PRIMITIVE_TANH: return a;
    case PRIMITIVE_NEG: return over;
    case PRIMITIVE_ADD:
    case PRIMITIVE_MAX: return a && b;
    case PRIMITIVE_SUB: return a && over_b;
    case PRIMITIVE_MUL: return (a && over_b) || (over && b);
    case PRIMITIVE_MIN: return a || b;
    default: return keeps_sign(node_row(n)) && a;
  }
}

static struct known look(const struct kernel *k) {
  struct known s = {.k = k};
  for (int i = 0; i < k->count; i++) {
    const struct node *n = &k->nodes[i];
    s.above |= (uint64_t)is_above(&s, n) << i;
    s.below |= (uint64_t)is_below(&s, n) << i;
    for (int j = 0; j < node_row(n)->arity; j++) s.readers[n->in[j]]++;
  }
  return s;
}

/* -- helpers of rewrites -- */

static const struct node *input(const struct known *s, const struct node *n, int i) {
  return &s->k->nodes[n->in[i]];
}

static bool reads(const struct known *s, const struct node *n, int i, enum primitive op) {
  return input(s, n, i)->op == op;
}

/* Whether both inputs of a binary op have its shape, so that nothing is repeated. */
static bool even_shapes(const struct known *s, const struct node *n) {
  return shape_equal(&input(s, n, 0)->shape, &input(s, n, 1)->shape);
}

static bool is_same(struct rewrite *r, int node) {
  r->same = node;
  return true;
}

static bool becomes(struct rewrite *r, enum primitive op, int a, int b) {
  r->same = -1;
  r->node = (struct node){.op = op, .in = {a, b}, .attrs.dim = dim_one()};
  return true;
}

/* v with input j replaced. */
static bool reads_instead(struct rewrite *r, const struct node *n, int j, int node) {
  r->same = -1;
  r->node = *n;
  r->node.in[j] = node;
  return true;
}

/* -- the rewrites -- */

/* max(a, 0) = |a| = a where a >= 0 */
static bool already_positive(const struct known *s, const struct node *n, struct rewrite *r) {
  if (n->op != PRIMITIVE_RELU && n->op != PRIMITIVE_ABS) return false;
  return has(s->above, n->in[0]) && is_same(r, n->in[0]);
}

/* -(-a) = a */
static bool twice_negated(const struct known *s, const struct node *n, struct rewrite *r) {
  return n->op == PRIMITIVE_NEG && reads(s, n, 0, PRIMITIVE_NEG) &&
         is_same(r, input(s, n, 0)->in[0]);
}

/* f(-a) = f(|a|) = f(a): the formulas of abs, sqr and sqrt hold only |a| or a * a */
static bool even_function(const struct known *s, const struct node *n, struct rewrite *r) {
  if (n->op != PRIMITIVE_ABS && n->op != PRIMITIVE_SQR && n->op != PRIMITIVE_SQRT) return false;
  if (!reads(s, n, 0, PRIMITIVE_NEG) && !reads(s, n, 0, PRIMITIVE_ABS)) return false;
  return reads_instead(r, n, 0, input(s, n, 0)->in[0]);
}

/* (-a) * (-b) = a * b, whatever repeats */
static bool product_of_negs(const struct known *s, const struct node *n, struct rewrite *r) {
  return n->op == PRIMITIVE_MUL && reads(s, n, 0, PRIMITIVE_NEG) && reads(s, n, 1, PRIMITIVE_NEG) &&
         becomes(r, PRIMITIVE_MUL, input(s, n, 0)->in[0], input(s, n, 1)->in[0]);
}

/* a + (-b) = a - b and a - (-b) = a + b, whatever repeats */
static bool sum_with_neg(const struct known *s, const struct node *n, struct rewrite *r) {
  if (n->op != PRIMITIVE_ADD && n->op != PRIMITIVE_SUB) return false;
  enum primitive other = n->op == PRIMITIVE_ADD ? PRIMITIVE_SUB : PRIMITIVE_ADD;
  if (reads(s, n, 1, PRIMITIVE_NEG)) return becomes(r, other, n->in[0], input(s, n, 1)->in[0]);
  return n->op == PRIMITIVE_ADD && reads(s, n, 0, PRIMITIVE_NEG) && even_shapes(s, n) &&
         becomes(r, PRIMITIVE_SUB, n->in[1], input(s, n, 0)->in[0]);
}

/* -(a - b) = b - a, which has the shape of a */
static bool negated_difference(const struct known *s, const struct node *n, struct rewrite *r) {
  if (n->op != PRIMITIVE_NEG || !reads(s, n, 0, PRIMITIVE_SUB)) return false;
  const struct node *sub = input(s, n, 0);
  return even_shapes(s, sub) && becomes(r, PRIMITIVE_SUB, sub->in[1], sub->in[0]);
}

/* a * a = sqr a */
static bool own_product(const struct known *s, const struct node *n, struct rewrite *r) {
  (void)s;
  return n->op == PRIMITIVE_MUL && n->in[0] == n->in[1] && becomes(r, PRIMITIVE_SQR, n->in[0], -1);
}

/* max(a, -a) = |a| */
static bool larger_of_signs(const struct known *s, const struct node *n, struct rewrite *r) {
  if (n->op != PRIMITIVE_MAX) return false;
  for (int j = 0; j < 2; j++)
    if (reads(s, n, j, PRIMITIVE_NEG) && input(s, n, j)->in[0] == n->in[1 - j])
      return becomes(r, PRIMITIVE_ABS, n->in[1 - j], -1);
  return false;
}

/* Whether node `one` of binary op `op` has `other` among its inputs, both of one shape: a right
 * input has the shape of the result. */
static bool made_of(const struct known *s, int one, enum primitive op, int other) {
  const struct node *n = &s->k->nodes[one];
  return n->op == op && (n->in[1] == other || (n->in[0] == other && even_shapes(s, n)));
}

/* Whether element by element a >= b, both of one shape. */
static bool at_least(const struct known *s, int a, int b) {
  const struct node *n = &s->k->nodes[a], *m = &s->k->nodes[b];
  if (a == b || (has(s->above, a) && has(s->below, b))) return true;
  if (n->op == PRIMITIVE_RELU && n->in[0] == b) return true;
  if (n->op == PRIMITIVE_ABS && n->in[0] == b) return true;
  if (n->op == PRIMITIVE_ABS && m->op == PRIMITIVE_RELU && n->in[0] == m->in[0]) return true;
  return made_of(s, a, PRIMITIVE_MAX, b) || made_of(s, b, PRIMITIVE_MIN, a);
}

/* max(a, b) = a, min(a, b) = b where a >= b everywhere */
static bool known_order(const struct known *s, const struct node *n, struct rewrite *r) {
  if ((n->op != PRIMITIVE_MAX && n->op != PRIMITIVE_MIN) || !even_shapes(s, n)) return false;
  int a = n->in[0], b = n->in[1];
  if (at_least(s, a, b)) return is_same(r, n->op == PRIMITIVE_MAX ? a : b);
  if (at_least(s, b, a)) return is_same(r, n->op == PRIMITIVE_MAX ? b : a);
  return false;
}

/* max(a, max(a, e)) = max(a, e) if a is repeated equally in both, max(a, b) = b for a <= 0 <= b
 * however a is repeated; min alike */
static bool known_repeated(const struct known *s, const struct node *n, struct rewrite *r) {
  if (n->op != PRIMITIVE_MAX && n->op != PRIMITIVE_MIN) return false;
  int a = n->in[0], b = n->in[1];
  uint64_t less = n->op == PRIMITIVE_MAX ? s->below : s->above;
  uint64_t more = n->op == PRIMITIVE_MAX ? s->above : s->below;
  bool again = reads(s, n, 1, (enum primitive)n->op) && input(s, n, 1)->in[0] == a;
  return (again || (has(less, a) && has(more, b))) && is_same(r, b);
}

/* (a + b) - b = a, (a - b) + b = a, a - (a - b) = b, (a - b) - a = -b, up to rounding */
static bool cancelled(const struct known *s, const struct node *n, struct rewrite *r) {
  if ((n->op != PRIMITIVE_ADD && n->op != PRIMITIVE_SUB) || !even_shapes(s, n)) return false;
  for (int j = 0; j < 2; j++) {
    const struct node *m = input(s, n, j);
    int other = n->in[1 - j];
    bool even = (m->op == PRIMITIVE_ADD || m->op == PRIMITIVE_SUB) && even_shapes(s, m);
    if (!even) continue;
    if (n->op == PRIMITIVE_ADD && m->op == PRIMITIVE_SUB && m->in[1] == other)
      return is_same(r, m->in[0]);
    for (int i = 0; i < 2 && n->op == PRIMITIVE_SUB && j == 0 && m->op == PRIMITIVE_ADD; i++)
      if (m->in[i] == other) return is_same(r, m->in[1 - i]);
    if (n->op == PRIMITIVE_SUB && m->op == PRIMITIVE_SUB && m->in[0] == other)
      return j ? is_same(r, m->in[1]) : becomes(r, PRIMITIVE_NEG, m->in[1], -1);
  }
  return false;
}

/* common subexpression; nodes with weights are never equal */
static bool common_node(const struct known *s, const struct node *n, struct rewrite *r) {
  const struct row *row = node_row(n);
  int v = (int)(n - s->k->nodes);
  if (!row->arity || row->facts & FACT_WEIGHTS || n->op == PRIMITIVE_OUTPUT) return false;
  for (int i = 1; i < v; i++) {
    const struct node *m = &s->k->nodes[i];
    if (m->op != n->op || !attrs_equal(&m->attrs, &n->attrs)) continue;
    bool equal = m->in[0] == n->in[0] && m->in[1] == n->in[1];
    bool swapped = row->facts & FACT_COMMUTES && m->in[0] == n->in[1] && m->in[1] == n->in[0];
    if (equal || (swapped && even_shapes(s, n))) return is_same(r, i);
  }
  return false;
}

/* h - p - q: always if circular; with zeros only if both have the same direction */
static bool shift_of_shift(const struct known *s, const struct node *n, struct rewrite *r) {
  const struct node *first = input(s, n, 0);
  if (n->op != PRIMITIVE_SHIFT || first->op != PRIMITIVE_SHIFT) return false;
  if (n->attrs.over != first->attrs.over || n->attrs.zero_fill != first->attrs.zero_fill)
    return false;
  int64_t p = first->attrs.amount, q = n->attrs.amount, sum = p + q;
  if ((n->attrs.zero_fill && (p < 0) != (q < 0)) || sum < INT32_MIN || sum > INT32_MAX)
    return false;
  if (!sum) return is_same(r, first->in[0]);
  reads_instead(r, n, 0, first->in[0]);
  r->node.attrs.amount = (int)sum;
  return true;
}

static bool only_reader(const struct known *s, const struct node *n) {
  return s->readers[n->in[0]] == 1;
}

/* Merges two equal operations along different axes into one along both. */
static bool both_axes(const struct known *s, const struct node *n, struct rewrite *r) {
  const struct node *first = input(s, n, 0);
  struct attrs alike = first->attrs;
  alike.over = n->attrs.over;
  if (first->op != n->op || first->attrs.over & n->attrs.over || !only_reader(s, n) ||
      !attrs_equal(&alike, &n->attrs))
    return false;
  reads_instead(r, n, 0, first->in[0]);
  r->node.attrs.over |= first->attrs.over;
  return true;
}

/* a[h - p] along H, then a[w - p] along W: the indices are independent */
static bool shift_both(const struct known *s, const struct node *n, struct rewrite *r) {
  return n->op == PRIMITIVE_SHIFT && both_axes(s, n, r);
}

/* windows along H, then along W: the axes kh and kw are inserted at the same places */
static bool unfold_both(const struct known *s, const struct node *n, struct rewrite *r) {
  return n->op == PRIMITIVE_UNFOLD && both_axes(s, n, r);
}

static bool subsample_both(const struct known *s, const struct node *n, struct rewrite *r) {
  return n->op == PRIMITIVE_SUBSAMPLE && both_axes(s, n, r);
}

/* a mean of equally large means, a maximum of maxima; the shape rule decides which pairs are
 * legal */
static bool fold_both(const struct known *s, const struct node *n, struct rewrite *r) {
  return node_row(n)->family == &family_fold && both_axes(s, n, r);
}

/* v with input 0 replaced, then node `after`, with these axes. */
static bool becomes_before(struct rewrite *r, const struct known *s, const struct node *n, int node,
                           int after, unsigned over) {
  reads_instead(r, n, 0, node);
  r->after = after;
  r->attrs = s->k->nodes[after].attrs;
  r->attrs.over = over;
  return true;
}

/* a circular shift only permutes the elements of a fold along its axes */
static bool fold_of_shift(const struct known *s, const struct node *n, struct rewrite *r) {
  if (node_row(n)->family != &family_fold || !reads(s, n, 0, PRIMITIVE_SHIFT)) return false;
  const struct node *shift = input(s, n, 0);
  unsigned left = shift->attrs.over & ~n->attrs.over;
  if (shift->attrs.zero_fill || !(shift->attrs.over & n->attrs.over)) return false;
  if (!left) return reads_instead(r, n, 0, shift->in[0]);
  return only_reader(s, n) && becomes_before(r, s, n, shift->in[0], n->in[0], left);
}

/* `out` reads all but H and W in order, grouped or not */
static bool output_of_group(const struct known *s, const struct node *n, struct rewrite *r) {
  return n->op == PRIMITIVE_OUTPUT && node_row(input(s, n, 0))->family == &family_group &&
         reads_instead(r, n, 0, input(s, n, 0)->in[0]);
}

/* -- data movement towards the output -- */

static struct dim run(const struct shape *s, int first, int count) {
  struct dim product = dim_one();
  for (int i = first; i < first + count; i++) product = dim_mul(product, s->axis[i].dim);
  return product;
}

/* Whether elements [p, q, s] and [p, q mod left, s] still meet: the sizes of p, q, s and left
 * decide. Without repetition elements of equal place meet. */
static bool same_broadcast(const struct shape *l, const struct shape *r, const struct shape *l2,
                           const struct shape *r2) {
  struct match m = shape_match(l, r), m2 = shape_match(l2, r2);
  struct dim before = run(r, 0, m.prefix), before2 = run(r2, 0, m2.prefix);
  struct dim behind = run(r, r->count - m.suffix, m.suffix);
  struct dim behind2 = run(r2, r2->count - m2.suffix, m2.suffix);
  if (dim_is_one(&m.multiplier) && dim_is_one(&m2.multiplier)) return true;
  return dim_equal(&m.left, &m2.left) && dim_equal(&m.right, &m2.right) &&
         dim_equal(&before, &before2) && dim_equal(&behind, &behind2);
}

/* Whether the node is one of the paper's, on the paper's axes: what is known of others' axes is their
 * families' alone. */
static bool is_plain(const struct kernel *k, const struct node *n) {
  const unsigned axes = ROLES_FIRST & ~(1 << ROLE_KC);
  const struct family *f = node_row(n)->family;
  bool moves = f == &family_shift || f == &family_unfold;
  for (int j = 0; j < node_row(n)->arity; j++)
    if (shape_roles(node_input(k, n, j)) & ~axes) return false;
  if (shape_roles(&n->shape) & ~axes || (moves && n->attrs.over & ~(unsigned)ROLES_SPATIAL))
    return false;
  enum kernel_space space = node_row(n)->space;
  return (space == SPACE_PAPER || space == SPACE_NONE) && !(f == &family_fc && n->attrs.over);
}

static bool keeps_zero(const struct node *n) {
  return n->op != PRIMITIVE_SIGMOID && n->op != PRIMITIVE_EXP;
}

/* The axes that an unfold moves along and makes. */
static unsigned unfolded(const struct node *n) {
  unsigned over = n->attrs.over;
  return over | (over >> ROLE_H & 1) << ROLE_KH | (over >> ROLE_W & 1) << ROLE_KW;
}

/* Whether shift `s` and node n, which reads it, may be exchanged. Zeros stay zeros in an fc without
 * a norm: an inner fc may have one, whose bias is added behind it. */
static bool shift_passes(const struct kernel *k, const struct node *s, const struct node *n) {
  bool zero = s->attrs.zero_fill, apart = !(s->attrs.over & n->attrs.over);
  const struct family *f = node_row(n)->family;
  if (f == &family_map) return !zero || keeps_zero(n);
  if (f == &family_fc) return !zero || !node_is_inner(k, (int)(n - k->nodes));
  if (f == &family_softmax) return !zero;
  if (f == &family_unfold || f == &family_subsample || f == &family_fold) return apart;
  if (f == &family_group) return true;
  if (f == &family_shift)
    return s->attrs.over > n->attrs.over && (apart || (!zero && !n->attrs.zero_fill));
  return false;
}

/* Before a stride there are more pixels to compute. */
static bool unfold_passes(const struct node *u, const struct node *n) {
  const struct family *f = node_row(n)->family;
  bool strided = !dim_is_one(&u->attrs.dim);
  if (f == &family_map) return !strided && keeps_zero(n);
  if (f == &family_fold) return !strided && !(n->attrs.over & unfolded(u));
  if (f == &family_group) return true;
  return f == &family_unfold && u->attrs.over > n->attrs.over;
}

static bool group_passes(const struct node *n) {
  const struct family *f = node_row(n)->family;
  if (f == &family_softmax || f == &family_fold) return !(n->attrs.over & ROLES_LEAD);
  return f == &family_map || f == &family_subsample;
}

static bool moves_past(const struct known *s, const struct node *n, const struct family *mover,
                       struct rewrite *r) {
  const struct node *m = input(s, n, 0);
  if (node_row(n)->arity != 1 || node_row(m)->family != mover || !only_reader(s, n)) return false;
  if (!is_plain(s->k, m) || !is_plain(s->k, n)) return false;
  bool passes = mover == &family_shift    ? shift_passes(s->k, m, n)
                : mover == &family_unfold ? unfold_passes(m, n)
                                          : group_passes(n);
  return passes && becomes_before(r, s, n, m->in[0], n->in[0], m->attrs.over);
}

static bool shift_later(const struct known *s, const struct node *n, struct rewrite *r) {
  return moves_past(s, n, &family_shift, r);
}

static bool unfold_later(const struct known *s, const struct node *n, struct rewrite *r) {
  return moves_past(s, n, &family_unfold, r);
}

static bool group_later(const struct known *s, const struct node *n, struct rewrite *r) {
  return moves_past(s, n, &family_group, r);
}

/* two means, two maxima in the order of their axes */
static bool folds_in_order(const struct known *s, const struct node *n, struct rewrite *r) {
  const struct node *m = input(s, n, 0);
  if (node_row(n)->family != &family_fold || m->op != n->op || !only_reader(s, n)) return false;
  return n->attrs.over < m->attrs.over &&
         becomes_before(r, s, n, m->in[0], n->in[0], m->attrs.over);
}

/* Whether a broadcast of l onto r pairs elements of equal place along each of these axes. */
static bool pairs_along(const struct shape *l, const struct shape *r, unsigned over) {
  struct match m = shape_match(l, r);
  unsigned common = 0;
  for (int i = 0; i < r->count; i++)
    if (i < m.prefix || i >= r->count - m.suffix) common |= 1u << r->axis[i].role;
  return !(over & ~common) && !(over & ~shape_roles(l));
}

static bool is_broadcast(const struct node *n) {
  return node_row(n)->family == &family_broadcast;
}

static bool only_reader_is(const struct known *s, const struct node *n, int node) {
  return s->readers[node] == (n->in[0] == node) + (n->in[1] == node);
}

/* op of two equal shifts = the shift of op; of a shift and what is equal along its axes, too, where
 * zeros stay zeros */
static bool binary_of_shift(const struct known *s, const struct node *n, struct rewrite *r) {
  if (!is_broadcast(n) || !reads(s, n, 1, PRIMITIVE_SHIFT) || !is_plain(s->k, input(s, n, 1)))
    return false;
  const struct node *left = input(s, n, 0), *shift = input(s, n, 1);
  const struct shape *l = node_input(s->k, n, 0);
  bool both = left->op == PRIMITIVE_SHIFT && attrs_equal(&left->attrs, &shift->attrs) &&
              only_reader_is(s, n, n->in[0]) && pairs_along(l, &n->shape, shift->attrs.over);
  struct match m = shape_match(l, &n->shape);
  bool constant = !(shape_roles(l) & shift->attrs.over) && dim_is_one(&m.left) &&
                  (!shift->attrs.zero_fill || n->op == PRIMITIVE_MUL);
  if (!only_reader_is(s, n, n->in[1]) || (!both && !constant)) return false;
  becomes(r, (enum primitive)n->op, both ? left->in[0] : n->in[0], shift->in[0]);
  r->after = n->in[1];
  r->attrs = shift->attrs;
  return true;
}

/* a group on the left changes only which elements meet */
static bool left_group(const struct known *s, const struct node *n, struct rewrite *r) {
  if (!is_broadcast(n) || node_row(input(s, n, 0))->family != &family_group) return false;
  int from = input(s, n, 0)->in[0];
  return same_broadcast(node_input(s->k, n, 0), &n->shape, &s->k->nodes[from].shape, &n->shape) &&
         reads_instead(r, n, 0, from);
}

static bool right_group(const struct known *s, const struct node *n, struct rewrite *r) {
  if (!is_broadcast(n) || node_row(input(s, n, 1))->family != &family_group) return false;
  int from = input(s, n, 1)->in[0];
  const struct shape *l = node_input(s->k, n, 0);
  if (!only_reader_is(s, n, n->in[1]) || !same_broadcast(l, &n->shape, l, &s->k->nodes[from].shape))
    return false;
  becomes(r, (enum primitive)n->op, n->in[0], from);
  r->after = n->in[1];
  r->attrs = input(s, n, 1)->attrs;
  return true;
}

/* An fc along just what it contracts anyway. */
static bool fc_over_all(const struct known *s, const struct node *n, struct rewrite *r) {
  unsigned channel = 1 << ROLE_CHANNEL, roles = shape_roles(node_input(s->k, n, 0)) & ROLES_CHANNEL;
  if (n->op != PRIMITIVE_FC || !(roles & channel) || n->attrs.over != roles) return false;
  if (roles >> ROLE_GROUP & 1) return false;
  reads_instead(r, n, 0, n->in[0]);
  r->node.attrs.over = 0;
  return true;
}

/* -- axes that nothing sees -- */

static bool all_ones(const struct shape *s, unsigned roles) {
  struct dim product = shape_product(s, roles);
  return dim_is_one(&product);
}

/* Removes a node that changes axes, but neither numbers nor their order, if no later node depends
 * on the axes (same_on_flat). */
static bool only_axes(const struct known *s, const struct node *n, struct rewrite *r) {
  bool group = node_row(n)->family == &family_group;
  bool window = n->op == PRIMITIVE_UNFOLD && n->attrs.amount == 1 && dim_is_one(&n->attrs.dim);
  bool fold =
      node_row(n)->family == &family_fold && all_ones(&input(s, n, 0)->shape, n->attrs.over);
  return (group || window || fold) && is_same(r, n->in[0]);
}

/* Removes all equal groups at once, since a binary op of two grouped tensors needs both. */
static bool axes_together(const struct known *s, const struct node *n, struct rewrite *r) {
  if (node_row(n)->family != &family_group) return false;
  is_same(r, n->in[0]);
  for (int i = 1; i < s->k->count; i++) {
    const struct node *m = &s->k->nodes[i];
    if (m->op == n->op && dim_equal(&m->attrs.dim, &n->attrs.dim)) r->gone |= UINT64_C(1) << i;
  }
  return (r->gone & (r->gone - 1)) != 0;
}

/* clang-format off */
static const struct rule {
  struct rewrite_row row;
  bool (*find)(const struct known *s, const struct node *n, struct rewrite *r);
} rules[] = {
  {{"relu a, abs a with a >= 0", "a"}, already_positive},
  {{"neg of neg a", "a"}, twice_negated},
  {{"abs, sqr or sqrt of neg a or abs a", "that of a"}, even_function},
  {{"mul of neg a and neg b", "mul a b"}, product_of_negs},
  {{"add a and neg b; sub a and neg b", "sub a b; add a b"}, sum_with_neg},
  {{"neg of sub a b, equal shapes", "sub b a"}, negated_difference},
  {{"mul a a", "sqr a"}, own_product},
  {{"max of a and neg a", "abs a"}, larger_of_signs},
  {{"max or min of a and b, a >= b everywhere", "a or b"}, known_order},
  {{"max or min of a and the same of a and e; of a <= 0 and b >= 0", "that one; b or a"}, known_repeated},
  {{"sum and difference that cancel", "what is left"}, cancelled},
  {{"a node that is there already, without weights", "that one"}, common_node},
  {{"shift of shift along the same axes", "one by the sum, none by 0"}, shift_of_shift},
  {{"shift along H of shift along W", "over=H,W"}, shift_both},
  {{"unfold along H of unfold along W", "over=H,W"}, unfold_both},
  {{"fc over all channels and windows, without groups", "fc"}, fc_over_all},
  {{"subsample along H of subsample along W", "over=H,W"}, subsample_both},
  {{"fold along one axis of fold along another", "over both"}, fold_both},
  {{"fold of a circular shift along its axes", "fold"}, fold_of_shift},
  {{"two folds along different axes", "in the order of axes"}, folds_in_order},
  {{"f of unfold a: a group, a fold along other axes, element-wise with f(0) = 0", "unfold of f a"}, unfold_later},
  {{"f of shift a: any f that a shift may follow instead", "shift of f a"}, shift_later},
  {{"op of equal shifts; of a shift and what is constant along it", "shift of op"}, binary_of_shift},
  {{"f of group a: element-wise, a fold or softmax along other axes", "group of f a"}, group_later},
  {{"op of group a and b, equal elements meet without group", "op of a and b"}, left_group},
  {{"op of a and group b, equal elements meet without group", "group of op a b"}, right_group},
  {{"out of group a", "out a"}, output_of_group},
  {{"group, unfold k=1 without stride, fold of axes of 1, whose axes nothing sees", "none"}, only_axes},
  {{"all of several groups by the same, whose axes nothing sees", "none"}, axes_together},
};
/* clang-format on */
enum { RULES = sizeof rules / sizeof *rules };

const struct rewrite_row *kernel_rewrites(int *count) {
  static struct rewrite_row rows[RULES];
  for (int i = 0; i < RULES; i++) rows[i] = rules[i].row;
  *count = RULES;
  return rows;
}

/* -- whether a node computes the same numbers from inputs of other shapes -- */

static struct dim axis_dim(const struct shape *s, enum role role) {
  int i = shape_find(s, role);
  return i < 0 ? dim_one() : s->axis[i].dim;
}

static bool same_axis(const struct shape *a, const struct shape *b, enum role role) {
  struct dim x = axis_dim(a, role), y = axis_dim(b, role);
  return dim_equal(&x, &y);
}

/* Whether windows, pixels and the product of groups and channels are equal; an axis of 1 may be
 * missing. */
static bool same_tail(const struct shape *a, const struct shape *b) {
  struct dim lead_a = shape_product(a, ROLES_LEAD), lead_b = shape_product(b, ROLES_LEAD);
  bool same = dim_equal(&lead_a, &lead_b);
  for (enum role role = ROLE_KH; role <= ROLE_W; role++) same = same && same_axis(a, b, role);
  return same;
}

static bool same_on_flat(const struct kernel *k, const struct node *n, const struct kernel *to,
                         const struct node *m) {
  const struct row *row = node_row(n);
  bool equal = true, lead = n->attrs.over & ROLES_LEAD;
  for (int j = 0; j < row->arity; j++)
    equal = equal && shape_equal(node_input(k, n, j), node_input(to, m, j));
  if (equal) return true;
  if (!is_plain(k, n) || !is_plain(to, m)) return false;
  const struct shape *a = node_input(k, n, 0), *b = node_input(to, m, 0);
  if (row->arity == 2) return same_broadcast(a, node_input(k, n, 1), b, node_input(to, m, 1));
  if (row->family == &family_map || row->family == &family_group || row->family == &family_output)
    return true;
  if (row->facts & FACT_WEIGHTS || lead)
    return same_tail(a, b) && same_axis(a, b, ROLE_GROUP) && same_axis(a, b, ROLE_CHANNEL);
  return same_tail(a, b);
}

/* -- applying one -- */

static int source(const struct kernel *k, const struct rewrite *r, int v, int node) {
  if (node == v && r->same >= 0) node = r->same;
  while (has(r->gone, node)) node = k->nodes[node].in[0];
  return node;
}

/* Mask of nodes that the output needs after the rewrite; the input always stays. */
static uint64_t live(const struct kernel *k, int v, const struct rewrite *r) {
  uint64_t set = UINT64_C(1) << (k->count - 1) | 1;
  for (int i = k->count - 1; i > 0; i--) {
    const struct node *n = i == v && r->same < 0 ? &r->node : &k->nodes[i];
    if (!has(set, i)) continue;
    for (int j = 0; j < node_row(n)->arity; j++) set |= UINT64_C(1) << source(k, r, v, n->in[j]);
  }
  return set;
}

/* Appends node `after`, which nothing else reads, to what was appended last. */
static bool append_after(const struct kernel *k, const struct rewrite *r, struct kernel *out) {
  struct node *n = &out->nodes[out->count];
  *n = k->nodes[r->after];
  n->in[0] = out->count - 1;
  n->attrs = r->attrs;
  if (kernel_shape_of(out, n, &n->shape)) return false;
  out->count++;
  return true;
}

/* Writes k with the rewrite to *out; false: illegal, or it would compute something else. */
static bool apply(const struct kernel *k, int v, const struct rewrite *r, struct kernel *out) {
  uint64_t keep = live(k, v, r);
  int to[KERNEL_NODES_MAX] = {0};
  out->count = 0;
  for (int i = 0; i < k->count; i++) {
    if (!has(keep, i)) continue;
    struct node *n = &out->nodes[out->count];
    bool anew = i == v && r->same < 0;
    *n = anew ? r->node : k->nodes[i];
    for (int j = 0; j < node_row(n)->arity; j++) n->in[j] = to[source(k, r, v, n->in[j])];
    if (kernel_shape_of(out, n, &n->shape)) return false;
    memcpy(n->name, k->nodes[i].name, sizeof n->name);
    out->count++;
    if (anew && r->after && !append_after(k, r, out)) return false;
    to[i] = out->count - 1;
    if (anew && !shape_equal(&out->nodes[to[i]].shape, &k->nodes[i].shape)) return false;
    if (!anew && !same_on_flat(k, &k->nodes[i], out, n)) return false;
  }
  return true;
}

static bool rewrite_once(const struct kernel *k, struct kernel *out) {
  struct known s = look(k);
  for (int i = 0; i < RULES; i++)
    for (int v = 1; v < k->count; v++) {
      struct rewrite r = {.gone = 0};
      if (rules[i].find(&s, &k->nodes[v], &r) && apply(k, v, &r, out)) return true;
    }
  return false;
}

/* Rewrites k until nothing applies. */
static void simplify(struct kernel *k) {
  struct kernel next;
  while (rewrite_once(k, &next)) {
    k->count = next.count;
    memcpy(k->nodes, next.nodes, (size_t)next.count * sizeof *next.nodes);
  }
  kernel_renumber(k);
}

struct kernel *kernel_simplify(const struct kernel *k) {
  struct kernel *simple = kernel_copy(k);
  simplify(simple);
  return simple;
}

struct kernel *kernel_simpler(const struct kernel *k) {
  struct kernel next;
  if (!rewrite_once(k, &next)) return NULL;
  memcpy(next.name, k->name, sizeof next.name);
  struct kernel *simple = kernel_copy(&next);
  simplify(simple);
  return simple;
}

bool kernel_is_simple(const struct kernel *k) {
  struct kernel next; /* written where a rewrite applies */
  return !rewrite_once(k, &next);
}

/* -- constants -- */

/* The node without groups, which change neither numbers nor order. */
static int ungrouped(const struct kernel *k, int node) {
  while (node_row(&k->nodes[node])->family == &family_group) node = k->nodes[node].in[0];
  return node;
}

/* What the node is the neg of, both without groups; -1. */
static int negated(const struct kernel *k, int node) {
  const struct node *n = &k->nodes[ungrouped(k, node)];
  return n->op == PRIMITIVE_NEG ? ungrouped(k, n->in[0]) : -1;
}

static const char *constant(const struct known *s, const struct node *n) {
  if (n->op == PRIMITIVE_SUB && ungrouped(s->k, n->in[0]) == ungrouped(s->k, n->in[1]))
    return "the difference of a tensor and itself is 0";
  if (n->op == PRIMITIVE_ADD)
    for (int j = 0; j < 2; j++)
      if (negated(s->k, n->in[j]) >= 0 && negated(s->k, n->in[j]) == ungrouped(s->k, n->in[1 - j]))
        return "the sum of a tensor and its negative is 0";
  if (n->op == PRIMITIVE_RELU && has(s->below, n->in[0]))
    return "relu of what is never positive is 0";
  if (n->op == PRIMITIVE_SOFTMAX && all_ones(node_input(s->k, n, 0), n->attrs.over))
    return "a softmax of single elements is 1";
  if (n->op == PRIMITIVE_FOLD_MEAN && reads(s, n, 0, PRIMITIVE_SOFTMAX) &&
      !(input(s, n, 0)->attrs.over & ~n->attrs.over))
    return "the mean of a softmax along its axes does not depend on its input";
  return NULL;
}

const char *kernel_constant(const struct kernel *k, int *node) {
  struct known s = look(k);
  for (*node = 1; *node < k->count; ++*node) {
    const char *why = constant(&s, &k->nodes[*node]);
    if (why) return why;
  }
  return NULL;
}
