/* See rules.h. */
#include "sample/rules.h"

#include <stdlib.h>
#include <string.h>

#include "base/saturating.h"
#include "sample/free_sizes.h"

/* -- nodes -- */

bool node_bends(const struct node *n) {
  const struct row *row = node_row(n);
  return row->family == &family_map && !(row->facts & FACT_LINEAR);
}

int node_source(const struct kernel *k, int node, bool moved) {
  for (;; node = k->nodes[node].in[0]) {
    const struct family *f = node_row(&k->nodes[node])->family;
    if (f != &family_group && !(moved && f == &family_shift)) return node;
  }
}

bool row_not_after(const struct row *row, const char *word) {
  const char *list = row->not_after;
  size_t length = strlen(word);
  for (const char *p = strstr(list, word); p; p = strstr(p + 1, word))
    if ((p == list || p[-1] == ' ') && (p[length] == ' ' || !p[length])) return true;
  return false;
}

/* -- no unbounded product -- */

/* How a node grows with the input, in half powers: LINEAR is the input itself, 0 is bounded. */
enum { LINEAR = 2 };

/* A bounded function makes a gate: a product with it grows as its other factor does. exp counts as
 * linear at least, for it is cut off at 54.6 only. */
static int growth_of(const struct node *n, const int *of) {
  int a = n->in[0] >= 0 ? of[n->in[0]] : LINEAR, b = n->in[1] >= 0 ? of[n->in[1]] : 0;
  switch (n->op) {
    case PRIMITIVE_SIGMOID:
    case PRIMITIVE_TANH:
    case PRIMITIVE_SIN:
    case PRIMITIVE_NORM:
    case PRIMITIVE_NORM_RMS:
    case PRIMITIVE_COORDS:
    case PRIMITIVE_SOFTMAX: return 0;
    case PRIMITIVE_SQRT: return a / 2;
    case PRIMITIVE_EXP: return a ? (int)int_max(a, LINEAR) : 0;
    case PRIMITIVE_SQR: return 2 * a;
    case PRIMITIVE_MATMUL:
    case PRIMITIVE_MATMUL_SCALED:
    case PRIMITIVE_MUL: return a + b;
    default: return (int)int_max(a, b);
  }
}

/* What the growth of a node needs to know: the fc that it depends on, and whether a product with a
 * factor of an fc's making lies between the input and it. */
struct growth {
  int of[KERNEL_NODES_MAX];
  uint64_t fc[KERNEL_NODES_MAX], gated;
};

/* Whether a factor has an fc of its own, as the filter of an involution: computed from the input, but
 * not of what it is multiplied with. Once on each path: two such products in a row grow too fast. */
static bool made_gate(const struct growth *g, const struct node *n) {
  int a = n->in[0], b = n->in[1];
  return n->op == PRIMITIVE_MUL && g->fc[a] != g->fc[b] && !(g->gated >> a & 1) &&
         !(g->gated >> b & 1);
}

/* A product of two tensors that only bounded functions read, as attention's scores, or nobody yet. */
static bool are_scores(const struct kernel *k, int node) {
  if (node_row(&k->nodes[node])->family != &family_matmul) return false;
  for (int i = node + 1; i < k->count; i++) {
    const struct node *n = &k->nodes[i];
    int none[2] = {LINEAR, LINEAR};
    struct node alone = {.op = n->op, .in = {0, node_row(n)->arity > 1 ? 1 : -1}};
    for (int j = 0; j < node_row(n)->arity; j++)
      if (n->in[j] == node && growth_of(&alone, none)) return false;
  }
  return true;
}

static bool grows_too_fast(const struct kernel *k) {
  struct growth g = {.gated = 0};
  for (int i = 0; i < k->count; i++) {
    const struct node *n = &k->nodes[i];
    bool gated = false;
    g.of[i] = growth_of(n, g.of);
    g.fc[i] = node_row(n)->facts & FACT_CONTRACTS ? UINT64_C(1) << i : 0;
    for (int j = 0; j < node_row(n)->arity; j++) {
      g.fc[i] |= g.fc[n->in[j]];
      gated |= g.gated >> n->in[j] & 1;
    }
    if (g.of[i] > LINEAR && !are_scores(k, i)) {
      if (!made_gate(&g, n)) return true;
      g.of[i] = LINEAR;
      gated = true;
    }
    g.gated |= (uint64_t)(gated && g.of[i]) << i;
  }
  return false;
}

static bool unbounded_product(const struct judged *j) {
  return grows_too_fast(j->k);
}

/* -- no fc on an fc -- */

/* One that contracts all that holds channels. */
static bool is_fc(const struct node *n) {
  return n->op == PRIMITIVE_FC && !n->attrs.over;
}

/* The fc whose result this one reads with nothing but linear nodes of one pixel between, or -1. */
static int fc_before(const struct kernel *k, int node) {
  for (int i = k->nodes[node].in[0];; i = k->nodes[i].in[0]) {
    const struct row *row = node_row(&k->nodes[i]);
    if (is_fc(&k->nodes[i])) return i;
    if (row->facts & FACT_WEIGHTS || row->arity != 1 || !(row->facts & FACT_LINEAR) ||
        row->facts & FACT_SEES)
      return -1;
  }
}

static int64_t times(const struct judged *j, int layer) {
  return j->times ? j->times[layer] : 1;
}

/* What an fc contracts: in one group, and how many groups there are. */
struct contraction {
  int64_t each, groups, to;
};

static bool contraction_of(const struct kernel *k, int node, const struct sizes *sizes,
                           struct contraction *out) {
  const struct shape *in = node_input(k, &k->nodes[node], 0);
  struct dim each = shape_product(in, ROLES_CHANNEL & ~(1u << ROLE_GROUP));
  struct dim groups = shape_product(in, 1 << ROLE_GROUP);
  return dim_value(&each, sizes, &out->each) && dim_value(&groups, sizes, &out->groups) &&
         dim_value(&k->nodes[node].attrs.dim, sizes, &out->to);
}

/* Two fc in a row are one fc: they are worth it where that one would have more weights, as in a
 * bottleneck or behind a depth-wise step. It is grouped where both are. */
static void add_weights(const struct kernel *k, int first, int second, const struct sizes *sizes,
                        int64_t times, int64_t *two, int64_t *one) {
  struct contraction a, b;
  if (!contraction_of(k, first, sizes, &a) || !contraction_of(k, second, sizes, &b)) return;
  int64_t groups = a.groups < b.groups ? a.groups : b.groups;
  int64_t both = saturating_add(saturating_mul(a.each, a.to), saturating_mul(b.each, b.to));
  int64_t whole = saturating_mul(saturating_mul(a.each, a.groups / groups), b.to);
  *two = saturating_add(*two, saturating_mul(times, both));
  *one = saturating_add(*one, saturating_mul(times, whole));
}

static bool fc_on_fc(const struct judged *j) {
  for (int i = 1; i < j->k->count; i++) {
    int64_t two = 0, one = 0;
    int first = is_fc(&j->k->nodes[i]) ? fc_before(j->k, i) : -1;
    for (int t = 0; first >= 0 && t < j->count; t++)
      add_weights(j->k, first, i, &j->layers[t].sizes, times(j, t), &two, &one);
    if (one > 0 && two >= one) return true;
  }
  return false;
}

/* Certain while sizes are still free: a dense fc over channels alone, on as wide a one. */
static bool fc_on_wide_fc(const struct kernel *k, int node) {
  int first = fc_before(k, node);
  struct dim c = dim_size(SIZE_C);
  if (first < 0) return false;
  const struct dim *to = &k->nodes[first].attrs.dim;
  unsigned roles = shape_roles(node_input(k, &k->nodes[first], 0));
  bool dense = (roles & ROLES_CHANNEL) == 1 << ROLE_CHANNEL;
  return dense && (dim_variable(to, NULL) != VARIABLES || dim_equal(to, &c));
}

/* -- the others -- */

static bool on_input(const struct judged *j) {
  for (int i = 1; i < j->k->count; i++) {
    const struct node *n = &j->k->nodes[i];
    if (row_not_after(node_row(n), "input") && !node_source(j->k, n->in[0], true)) return true;
  }
  return false;
}

static bool nothing_bends(const struct judged *j) {
  if (kernel_primitives(j->k) < BENDING_LEAST) return false;
  for (int i = 1; i < j->k->count; i++)
    if (node_bends(&j->k->nodes[i])) return false;
  return true;
}

static bool nothing_free(const struct judged *j) {
  return !kernel_variables(j->k);
}

/* A dense convolution counted as kernels are: an fc that reads every window. */
int64_t rules_dense_bytes(const struct target *t) {
  struct cost c = target_cost(t);
  int64_t read = saturating_mul(c.activations / t->cout * t->cin, t->kh * t->kw);
  return saturating_mul(4, saturating_add(read, c.activations + c.params));
}

int64_t rules_bytes_most(const struct rules *rules, int64_t dense) {
  int64_t most = saturating_mul(dense / 1000, rules->bytes) / 1000;
  return saturating_add(saturating_mul(most, 1000), 999);
}

static bool moves_too_much(const struct judged *j) {
  int64_t moved = 0, dense = 0;
  for (int t = 0; t < j->count; t++)
    dense =
        saturating_add(dense, saturating_mul(times(j, t), rules_dense_bytes(&j->layers[t].target)));
  int64_t most = rules_bytes_most(j->rules, dense);
  for (int t = 0; t < j->count && moved <= most; t++) {
    struct cost c;
    if (!binding_cost(j->k, &j->layers[t], &c)) return true;
    moved = saturating_add(moved, saturating_mul(times(j, t), c.bytes));
  }
  return moved > most;
}

const struct rule_row rule_rows[RULE_COUNT] = {
    [RULE_UNBOUNDED_PRODUCT] = {"unbounded_product",
                                "through mul and sqr a node grows faster than the input, and no "
                                "bounded function or fc of its own makes a gate of a factor",
                                unbounded_product},
    [RULE_FC_ON_FC] = {"fc_on_fc",
                       "an fc reads an fc, with nothing non-linear and no neighbours between, "
                       "where one fc would have no more weights",
                       fc_on_fc},
    [RULE_ON_INPUT] = {"on_input", "an element-wise function or a softmax right on the input",
                       on_input},
    [RULE_NONLINEAR] = {"nonlinear", "no element-wise function but neg", nothing_bends},
    [RULE_FIXED_SIZE] = {"fixed_size", "no free size, so that no budget can be filled",
                         nothing_free},
    [RULE_BYTES] = {"bytes", "moves more bytes than so many times the dense convolutions",
                    moves_too_much},
};

/* -- judging -- */

unsigned rules_broken_at(const struct rules *rules, const struct kernel *k,
                         const struct binding *layers, int count) {
  struct judged j = {k, layers, NULL, count, rules};
  unsigned broken = 0;
  for (int r = 0; r < RULE_COUNT; r++)
    if (rules->on >> r & 1 && rule_rows[r].broken(&j)) broken |= 1u << r;
  return broken;
}

static const char *first_broken(const struct judged *j) {
  for (int r = 0; r < RULE_COUNT; r++)
    if (j->rules->on >> r & 1 && rule_rows[r].broken(j)) return rule_rows[r].name;
  return NULL;
}

const char *rules_broken(const struct rules *rules, const struct kernel *k,
                         const struct targets *targets, const int64_t *times, int64_t g) {
  if (!rules->on) return NULL;
  struct binding *layers = mem_alloc((size_t)targets->count * sizeof *layers);
  int64_t *kept = mem_alloc((size_t)targets->count * sizeof *kept);
  struct judged j = {k, layers, kept, 0, rules};
  bool strided = kernel_uses(k, SIZE_S);
  struct kernel_dims dims;
  kernel_dims_list(k, &dims);
  for (int t = 0; t < targets->count; t++) {
    struct binding *b = &layers[j.count];
    b->target = targets->data[t];
    target_sizes_as(&b->target, strided, &b->sizes, &b->copies);
    b->sizes.value[SIZE_G] = g;
    kept[j.count] = times ? times[t] : 1;
    j.count += free_sizes_usual(&dims, &b->sizes);
  }
  const char *name = first_broken(&j);
  mem_free(kept);
  mem_free(layers);
  return name;
}

bool rules_break_at(const struct rules *rules, const struct kernel *k, int node) {
  if (rules->on >> RULE_UNBOUNDED_PRODUCT & 1 && grows_too_fast(k)) return true;
  return rules->on >> RULE_FC_ON_FC & 1 && is_fc(&k->nodes[node]) && fc_on_wide_fc(k, node);
}
