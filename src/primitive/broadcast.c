/* broadcast: binary operations of a left tensor and a right one (paper Table 1 and 6.2).
 *
 * Of the final shapes the common suffix is stripped, then the common prefix; what remains on both
 * sides is flattened row-major to sizes l and r, l | r, and output element q reads left element
 * q mod l. The result has the right side's shape. `choices` is the solver by shape matching: where
 * l does not divide r because of a variable of the left side, the variable may become any divisor
 * of what the ratio leaves for it.
 */
#include "primitive/formula.h"
#include "primitive/lowering.h"
#include "primitive/spelling.h"

enum { WAYS_MAX = 19 }; /* values that a variable may take; five primitives have each */

static const char *shape(const struct kernel *k, const struct node *n, struct shape *out) {
  struct match m = shape_match(node_input(k, n, 0), node_input(k, n, 1));
  if (!dim_is_whole(&m.left) || !dim_is_whole(&m.right))
    return "what remains of a side after stripping is never whole";
  if (!dim_is_whole(&m.multiplier)) return "the left side does not fit a whole number of times";
  *out = *node_input(k, n, 1);
  return NULL;
}

static int conditions(const struct kernel *k, const struct node *n, struct dim out[2]) {
  struct match m = shape_match(node_input(k, n, 0), node_input(k, n, 1));
  out[0] = m.multiplier;
  return 1;
}

/* The variable below the line of the ratio and what it may become; count -1: it needs none. */
static int substitutions(const struct match *m, int *x, struct dim *out, int max) {
  int below = VARIABLES;
  for (int v = 0; v < VARIABLES; v++) {
    int power = m->multiplier.power[SIZE_X0 + v];
    if (power >= 0) continue;
    if (below != VARIABLES || power != -1) return 0;
    below = v;
  }
  if (below == VARIABLES) return dim_is_whole(&m->multiplier) ? -1 : 0;
  *x = below;
  struct dim rest = dim_mul(m->multiplier, dim_size((enum size)(SIZE_X0 + below)));
  int count = dim_divisors(&rest, out, max);
  return count < max ? count : max;
}

static int choices(const struct kernel *k, int a, int b, struct candidate *out) {
  const struct shape *l = &k->nodes[a].shape, *r = &k->nodes[b].shape;
  struct match m = shape_match(l, r);
  struct dim by[WAYS_MAX];
  int x = -1, count = 0;
  if (a == b) return 0;
  int ways = substitutions(&m, &x, by, WAYS_MAX);
  bool equal = shape_equal(l, r);
  for (int i = 0; i < (ways < 0 ? 1 : ways); i++)
    for (enum primitive op = PRIMITIVE_ADD; op <= PRIMITIVE_MAX; op++) {
      if (equal && a > b && primitive_rows[op].facts & FACT_COMMUTES) continue;
      out[count] = (struct candidate){.op = op, .in = {a, b}, .attrs.dim = dim_one(), .x = x};
      if (ways > 0) out[count].by = by[i];
      count++;
    }
  return count;
}

static bool work(const struct kernel *k, const struct node *n, const struct sizes *s,
                 struct work *w) {
  (void)k;
  return shape_elements(&n->shape, s, &w->elementwise);
}

static int binary(struct program *p, enum primitive op, int a, int b) {
  switch (op) {
    case PRIMITIVE_ADD: return px_add(p, a, b);
    case PRIMITIVE_SUB: return px_sub(p, a, b);
    case PRIMITIVE_MUL: return px_mul(p, a, b);
    case PRIMITIVE_MIN: return px_min(p, a, b);
    default: return px_max(p, a, b);
  }
}

static void lower(struct lowering *l, int node) {
  const struct node *n = &l->k->nodes[node];
  const struct shape *left = node_input(l->k, n, 0), *right = &n->shape;
  struct match m = shape_match(left, right);
  struct place at, from;
  int stage = lowering_stage(l, node, "", right, &at);
  from = at;
  int left_middle = left->count - m.prefix - m.suffix;
  int right_middle = right->count - m.prefix - m.suffix;
  for (int i = 0; i < m.suffix; i++) from.axis[left->count - 1 - i] = at.axis[right->count - 1 - i];
  int q = lowering_flatten(l, right, &at, m.prefix, right_middle);
  q = px_mod(l->p, q, px_int(l->p, lowering_size(l, &m.left)));
  lowering_unflatten(l, left, q, m.prefix, left_middle, &from);
  int a = lowering_load(l, l->tensor[n->in[0]], &from, left->count);
  int b = lowering_load(l, l->tensor[n->in[1]], &at, right->count);
  program_define(l->p, stage, binary(l->p, n->op, a, b));
  l->tensor[node] = stage;
}

/* The right side with its middle as two axes: multiplier, left. */
static struct shape folded(const struct shape *right, const struct match *m) {
  struct shape out = *right;
  int middle = right->count - m->prefix - m->suffix;
  out.count = m->prefix + 2 + m->suffix;
  out.axis[m->prefix].dim = m->multiplier;
  out.axis[m->prefix + 1].dim = m->left;
  for (int i = 0; i < m->suffix; i++)
    out.axis[m->prefix + 2 + i] = right->axis[m->prefix + middle + i];
  return out;
}

static const char *spell(struct spelling *s, enum primitive op, const char *a, const char *b) {
  switch (op) {
    case PRIMITIVE_ADD: return spelling_text(s, "%s + %s", a, b);
    case PRIMITIVE_SUB: return spelling_text(s, "%s - %s", a, b);
    case PRIMITIVE_MUL: return spelling_text(s, "%s * %s", a, b);
    case PRIMITIVE_MIN: return spelling_text(s, "torch.minimum(%s, %s)", a, b);
    default: return spelling_text(s, "torch.maximum(%s, %s)", a, b);
  }
}

/* PyTorch aligns axes from the right and repeats those of size 1. Where the left middle is a run of
 * the right middle's last axes, ones in front do it; else the right middle is read as
 * [multiplier, left] meanwhile. */
static void torch(struct spelling *s, int node) {
  const struct node *n = &s->k->nodes[node];
  const struct shape *right = node_input(s->k, n, 1);
  struct match m = shape_match(node_input(s->k, n, 0), right);
  struct shape left, both;
  if (spelling_spread(node_input(s->k, n, 0), right, &left)) {
    const char *a = spelling_reshaped(s, n->in[0], &left);
    spelling_line(s, "%s = %s", s->name[node], spell(s, n->op, a, s->name[n->in[1]]));
    return;
  }
  left = both = folded(right, &m);
  left.axis[m.prefix].dim = dim_one();
  const char *a = spelling_reshaped(s, n->in[0], &left);
  const char *b = spelling_reshaped(s, n->in[1], &both);
  bool infix = n->op != PRIMITIVE_MIN && n->op != PRIMITIVE_MAX;
  spelling_line(s, infix ? "%s = (%s).reshape(%s)" : "%s = %s.reshape(%s)", s->name[node],
                spell(s, n->op, a, b), spelling_shape(s, right));
}

static const char *formula_of(struct formula *f, enum primitive op, const char *a, const char *b) {
  switch (op) {
    case PRIMITIVE_ADD: return formula_text(f, "%s + %s", a, b);
    case PRIMITIVE_SUB: return formula_text(f, "%s - %s", a, b);
    case PRIMITIVE_MUL: return formula_text(f, "%s·%s", a, b);
    case PRIMITIVE_MIN: return formula_text(f, "min(%s, %s)", a, b);
    default: return formula_text(f, "max(%s, %s)", a, b);
  }
}

static void formula(struct formula *f, int node) {
  const struct node *n = &f->k->nodes[node];
  const struct shape *left = node_input(f->k, n, 0), *right = &n->shape;
  struct match m = shape_match(left, right);
  struct spot at, from;
  formula_element(f, right, &at);
  from = at;
  int left_middle = left->count - m.prefix - m.suffix;
  int right_middle = right->count - m.prefix - m.suffix;
  for (int i = 0; i < m.suffix; i++) from.axis[left->count - 1 - i] = at.axis[right->count - 1 - i];
  const struct index *q = formula_flatten(f, right, &at, m.prefix, right_middle);
  formula_unflatten(f, left, index_mod(&f->arena, q, &m.left), m.prefix, left_middle, &from);
  const char *a = formula_read(f, n->in[0], &from), *b = formula_read(f, n->in[1], &at);
  formula_line(f, node, &at, formula_of(f, n->op, a, b));
}

const struct family family_broadcast = {.name = "broadcast",
                                        .binary = true,
                                        .shape = shape,
                                        .conditions = conditions,
                                        .choices = choices,
                                        .work = work,
                                        .lower = lower,
                                        .torch = torch,
                                        .formula = formula};
