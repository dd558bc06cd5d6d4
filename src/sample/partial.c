/* See partial.h. */
#include "sample/partial.h"

#include <string.h>

#include "kernel/attributes.h"
#include "sample/free_sizes.h"

void partial_start(struct partial *g) {
  g->reach[0] = node_reach(g->k, 0, g->images, g->reach);
  memset(g->consumers, 0, sizeof g->consumers);
  g->k->count = 1;
  g->width = 1;
  g->variables = 0;
  g->bent = false;
}

static int width_after(const struct partial *g, int a, int b) {
  int width = g->width + 1 - (g->consumers[a] == 0);
  return b >= 0 ? width - (g->consumers[b] == 0) : width;
}

bool partial_width_allows(const struct partial *g, int a, int b, struct remaining left) {
  int width = width_after(g, a, b);
  return width <= g->max_width && width - 1 <= left.plain;
}

static const struct dim_fact *fact_of(const struct partial *g, const struct dim *d) {
  return dim_facts_of(g->facts, d, g->targets, g->target_count);
}

/* Whether a dim is whole at every target; a variable in the numerator can always make it so. */
static bool whole_everywhere(const struct partial *g, const struct dim *d) {
  return fact_of(g, d)->whole;
}

/* A lower bound of the elements: variables count 1, quotients are as they are. */
static bool fits_everywhere(const struct partial *g, const struct shape *s) {
  double elements[TARGETS_MAX];
  for (int t = 0; t < g->target_count; t++) elements[t] = 1;
  for (int i = 0; i < s->count; i++) {
    const double *ratio = fact_of(g, &s->axis[i].dim)->ratio;
    if (!ratio) return false;
    for (int t = 0; t < g->target_count; t++) elements[t] *= ratio[t];
  }
  for (int t = 0; t < g->target_count; t++)
    if (elements[t] > (double)g->elements_limit) return false;
  return true;
}

static bool visit_legal(void *data, int node, const struct dim *d) {
  (void)node;
  return whole_everywhere(data, d);
}

static bool shape_legal(const struct partial *g, const struct shape *s) {
  for (int i = 0; i < s->count; i++)
    if (!whole_everywhere(g, &s->axis[i].dim)) return false;
  return fits_everywhere(g, s);
}

static bool all_legal(struct partial *g) {
  int node;
  if (kernel_recheck(g->k, &node) || !kernel_each_dim(g->k, visit_legal, g)) return false;
  for (int i = 0; i < g->k->count; i++)
    if (!fits_everywhere(g, &g->k->nodes[i].shape)) return false;
  return true;
}

/* A function right on the input is a rule, that may be off; what else stands in the table's column
 * always holds. */
static bool made_redundant(const struct partial *g, const struct row *row, int in) {
  int from = node_source(g->k, in, true);
  if (!row_not_after(row, node_row(&g->k->nodes[from])->word)) return false;
  return from > 0 || g->rules.on >> RULE_ON_INPUT & 1;
}

/* Obviously poor applications (paper 6.1): after a primitive that makes them redundant, a second
 * time, or a binary op of a tensor with itself (a - a). Two fully connected primitives on one tensor
 * differ by their weights. */
static bool pruned(const struct partial *g, const struct candidate *c) {
  const struct kernel *k = g->k;
  const struct row *row = &primitive_rows[c->op];
  if (row->arity == 1 && made_redundant(g, row, c->in[0])) return true;
  if (row->facts & FACT_WEIGHTS) return false;
  if (row->family == &family_broadcast &&
      node_source(k, c->in[0], false) == node_source(k, c->in[1], false))
    return true;
  for (int i = 1; i < k->count; i++) {
    const struct node *n = &k->nodes[i];
    if (n->op == c->op && n->in[0] == c->in[0] && n->in[1] == c->in[1] && c->x < 0 &&
        attrs_equal(&n->attrs, &c->attrs))
      return true;
  }
  return false;
}

/* The value that makes this node's channels C, for the variable *x in them (-1: none needed). */
static bool output_substitution(const struct shape *s, int *x, struct dim *by) {
  struct dim channels = shape_product(s, ROLES_CHANNEL), c = dim_size(SIZE_C);
  int last = s->count - 1;
  bool several;
  if (last < 1 || s->axis[last].role != ROLE_W || s->axis[last - 1].role != ROLE_H) return false;
  *x = -1;
  if (dim_equal(&channels, &c)) return true;
  int variable = dim_variable(&channels, &several);
  if (several || variable < 0 || variable >= VARIABLES) return false;
  if (channels.power[SIZE_X0 + variable] != 1) return false;
  struct dim one = dim_one(), rest = dim_substitute(channels, variable, &one);
  *x = variable;
  *by = dim_div(c, rest);
  return dim_is_whole(by);
}

static unsigned variables_of(const struct dim *d) {
  unsigned found = 0;
  if (dim_variable(d, NULL) == VARIABLES) return 0;
  for (int x = 0; x < VARIABLES; x++) found |= (unsigned)(d->power[SIZE_X0 + x] != 0) << x;
  return found;
}

/* The free sizes once the candidate is applied: every one is the attribute of some node. */
static unsigned variables_after(const struct partial *g, const struct candidate *c) {
  unsigned all = g->variables | variables_of(&c->attrs.dim);
  return c->x < 0 ? all : (all & ~(1u << c->x)) | variables_of(&c->by);
}

static bool bent_after(const struct partial *g, const struct candidate *c) {
  struct node n = {.op = c->op};
  return g->bent || !(g->rules.on >> RULE_NONLINEAR & 1) || node_bends(&n);
}

/* Whether an application sees the pixels that its input sees, and no more. */
static bool sees_as_its_input(const struct candidate *c) {
  const struct family *f = primitive_rows[c->op].family;
  return f == &family_map || f == &family_group || (f == &family_fc && !c->attrs.over);
}

/* Whether the steps left cannot suffice, as far as it is known without the shape of the node:
 * finishable judges the rest. */
static bool hopeless(const struct partial *g, const struct candidate *c, struct remaining left) {
  const struct row *row = &primitive_rows[c->op];
  int merges = width_after(g, c->in[0], c->in[1]) - 1, looks = 0;
  struct reach all = {0};
  if (!left.weighted && g->rules.on >> RULE_FIXED_SIZE & 1 && !variables_after(g, c)) return true;
  for (int i = 0; g->require_reach && i < g->k->count; i++) {
    all.h |= g->reach[i].h;
    all.w |= g->reach[i].w;
    all.mixed |= g->reach[i].mixed;
  }
  if (g->require_reach && sees_as_its_input(c)) looks = reach_missing(&all, g->images) != 0;
  if (g->joins) looks = merges ? 0 : looks; /* a join may look, too */
  if (merges + looks + !bent_after(g, c) > left.plain) return true;
  return g->require_reach && all.mixed != CHANNELS_ALL && !left.weighted &&
         !(row->facts & FACT_CONTRACTS);
}

/* Whether some leaf's channels are C, or may become C. */
static bool readable(const struct partial *g) {
  for (int i = 0; i < g->k->count; i++) {
    int x;
    struct dim by;
    if (!g->consumers[i] && output_substitution(&g->k->nodes[i].shape, &x, &by)) return true;
  }
  return false;
}

/* A lower bound of the steps to a finished kernel; true if those left suffice. */
static bool finishable(const struct partial *g, struct remaining left) {
  struct reach all = {0};
  const struct node *newest = &g->k->nodes[g->k->count - 1];
  bool bent = g->bent || !(g->rules.on >> RULE_NONLINEAR & 1) || node_bends(newest);
  for (int i = 0; i < g->k->count; i++) {
    if (g->consumers[i]) continue;
    all.h |= g->reach[i].h;
    all.w |= g->reach[i].w;
    all.mixed |= g->reach[i].mixed;
  }
  int merges = g->width - 1, looks = g->require_reach && reach_missing(&all, g->images);
  bool mixes = g->require_reach && all.mixed != CHANNELS_ALL;
  if (mixes > left.weighted || merges + !bent > left.plain) return false;
  /* of the wider spaces one step may join, look and mix at once */
  int needed = merges + looks + mixes;
  if (g->joins) needed = merges ? merges : looks | mixes;
  if (needed + !bent > left.steps || (!g->joins && merges + looks + !bent > left.plain))
    return false;
  /* a broadcast has the shape of an input, another join may make a readable one */
  return merges + !(merges && g->joins) <= left.steps || readable(g);
}

static void note_facts(struct partial *g, int node) {
  const struct node *n = &g->k->nodes[node];
  g->reach[node] = node_reach(g->k, node, g->images, g->reach);
  g->consumers[node] = 0;
  for (int j = 0; j < node_row(n)->arity; j++)
    if (!g->consumers[n->in[j]]++) g->width--;
  g->width++;
}

static void take_back(struct partial *g, int node) {
  const struct node *n = &g->k->nodes[node];
  g->width--;
  for (int j = 0; j < node_row(n)->arity; j++)
    if (!--g->consumers[n->in[j]]) g->width++;
  g->k->count = node;
}

bool partial_try(struct partial *g, const struct candidate *c, struct remaining left) {
  struct kernel *k = g->k;
  struct node before[KERNEL_NODES_MAX];
  int count = k->count;
  if (!limits_allow(g->limits, c->op, &c->attrs)) return false;
  if (!partial_width_allows(g, c->in[0], c->in[1], left) || hopeless(g, c, left)) return false;
  if (pruned(g, c)) return false;
  if (c->x >= 0) {
    memcpy(before, k->nodes, (size_t)count * sizeof *before);
    kernel_substitute(k, c->x, &c->by);
  }
  struct node n = {.op = c->op, .in = {c->in[0], c->in[1]}, .attrs = c->attrs};
  bool legal = !kernel_shape_of(k, &n, &n.shape);
  if (legal) { /* what needs no target comes first */
    k->nodes[k->count++] = n;
    note_facts(g, count);
    legal = finishable(g, left) && !rules_break_at(&g->rules, k, count) &&
            shape_legal(g, &n.shape) &&
            (c->x < 0 ? whole_everywhere(g, &n.attrs.dim) : all_legal(g)) &&
            !(g->limits->refuse_fixed_hw && kernel_needs_fixed_hw(k));
    if (!legal) take_back(g, count);
  }
  if (legal) {
    g->variables = variables_after(g, c);
    g->bent |= node_bends(&n);
  } else if (c->x >= 0) {
    memcpy(k->nodes, before, (size_t)count * sizeof *before);
  }
  return legal;
}

/* The nodes of each shape but the first. */
static uint64_t repeated_shapes(const struct kernel *k) {
  uint64_t found = 0;
  for (int i = 1; i < k->count; i++)
    for (int j = 0; j < i && !(found >> i & 1); j++)
      found |= (uint64_t)shape_equal(&k->nodes[i].shape, &k->nodes[j].shape) << i;
  return found;
}

/* Whether the kernel has a legal binding at one target, with tensors within the limit. */
static bool bindable(const struct partial *g, const struct kernel_dims *dims, uint64_t repeated,
                     const struct sizes *target) {
  struct sizes sizes = *target;
  if (!free_sizes_least(dims, &sizes)) return false;
  for (int i = 0; i < g->k->count; i++) {
    int64_t elements;
    if (repeated >> i & 1) continue;
    if (!shape_elements(&g->k->nodes[i].shape, &sizes, &elements) || elements > g->elements_limit)
      return false;
  }
  return true;
}

bool partial_output(struct partial *g) {
  struct kernel *k = g->k;
  struct dim by;
  int x, last = k->count - 1;
  if (g->width != 1 || !output_substitution(&k->nodes[last].shape, &x, &by)) return false;
  if (x >= 0) kernel_substitute(k, x, &by);
  struct node out = {.op = PRIMITIVE_OUTPUT, .in = {last, -1}, .attrs.dim = dim_one()};
  if (kernel_shape_of(k, &out, &out.shape)) return false;
  k->nodes[k->count++] = out;
  return true;
}

bool partial_finish(struct partial *g) {
  struct kernel_dims dims;
  int node;
  if (!partial_output(g) || kernel_recheck(g->k, &node)) return false;
  /* a variable that was replaced may have put a broadcast in place */
  if (g->require_reach && kernel_reach_on(g->k, g->images)) return false;
  kernel_dims_list(g->k, &dims);
  uint64_t repeated = repeated_shapes(g->k);
  for (int t = 0; t < g->target_count; t++)
    if (!bindable(g, &dims, repeated, &g->targets[t])) return false;
  return true;
}
