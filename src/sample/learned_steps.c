/* Learned draws: an application among all that are legal, each with its weight (prior.h).
 *
 *   1. `begun` draws copy the first m primitives of a known kernel, in one of its orders: which kernel,
 *      m, and each next primitive are drawn uniformly. Up to three more follow.
 *   2. every step takes one of all applications of all types, by weight: tried in turn, each drawn
 *      among those not tried yet, until one is legal. So a legal one has its weight over the sum of
 *      the weights of all legal ones.
 */
#include <string.h>

#include "sample/state.h"

enum { KNOWN_LEAST = 1, KNOWN_MOST = 20 };

void known_range(const struct sample_options *o, int *least, int *most) {
  *least = o->sized ? o->least : KNOWN_LEAST;
  *most = o->sized ? o->most : KNOWN_MOST;
}

static bool has_weights(const struct candidate *c) {
  return primitive_rows[c->op].facts & FACT_WEIGHTS;
}

struct remaining sampler_left(const struct sampler *s, int steps, int n) {
  int most = sampler_weighted_most(s->o, n), used = 0;
  if (!s->o->limits.weighted_given && !most) most = 1;
  for (int i = 1; i < s->scratch->count; i++)
    used += !!(node_row(&s->scratch->nodes[i])->facts & FACT_WEIGHTS);
  int weighted = most - used < steps ? most - used : steps;
  return (struct remaining){
      .plain = steps, .weighted = weighted > 0 ? weighted : 0, .steps = steps};
}

struct remaining sampler_left_after(struct remaining left, const struct candidate *c) {
  left.plain--;
  left.steps--;
  left.weighted -= has_weights(c);
  if (left.weighted > left.steps) left.weighted = left.steps;
  return left;
}

/* -- a step -- */

/* Whole numbers of which all together are below 2^31; 0 for what options give the weight 0. */
static void weigh(struct sampler *s, const struct partial *g) {
  int count = s->candidates.count;
  const struct candidate *all = s->candidates.data;
  double sum = 0;
  s->shares.count = s->weights.count = 0;
  VEC_RESERVE(&s->shares, count);
  VEC_RESERVE(&s->weights, count);
  prior_weights(s->prior, s->scratch, g->consumers, all, count, s->shares.data);
  for (int i = 0; i < count; i++) {
    double often = sampler_type_weight(s->o, primitive_rows[all[i].op].family);
    s->shares.data[i] *= often * sampler_kept(s->o, &all[i]);
    sum += s->shares.data[i];
  }
  for (int i = 0; i < count; i++) {
    double share = sum > 0 ? s->shares.data[i] / sum : 0;
    s->weights.data[i] = share > 0 ? 1 + (uint32_t)(share * (1 << 30)) : 0;
  }
}

int sampler_learned_applications(struct sampler *s, const struct partial *g, struct remaining left,
                                 uint64_t of, const struct candidate **all,
                                 const uint32_t **weights) {
  const struct families *f = &s->families;
  struct remaining after = {left.plain - 1, left.weighted, left.steps - 1};
  s->candidates.count = 0;
  for (int i = 0; i < f->plain_count; i++) sampler_gather(s, g, f->plain[i], after, of);
  for (int i = 0; i < f->weighted_count && left.weighted; i++)
    sampler_gather(s, g, f->weighted[i], after, of);
  s->looked += s->candidates.count;
  weigh(s, g);
  *all = s->candidates.data;
  *weights = s->weights.data;
  return s->candidates.count;
}

static bool learned_step(struct sampler *s, struct partial *g, struct remaining left, uint64_t of,
                         struct random *r) {
  const struct candidate *all;
  const uint32_t *shown;
  int count = sampler_learned_applications(s, g, left, of, &all, &shown);
  uint32_t *weights = s->weights.data, sum = 0;
  for (int i = 0; i < count; i++) sum += weights[i];
  while (sum) {
    uint32_t at = random_below(r, sum);
    int i = 0;
    while (at >= weights[i]) at -= weights[i++];
    if (partial_try(g, &all[i], sampler_left_after(left, &all[i]))) return true;
    sum -= weights[i];
    weights[i] = 0;
  }
  return false;
}

/* -- the beginning -- */

int known_next(const struct kernel *known, const int *copies, int out[KERNEL_NODES_MAX]) {
  int count = 0;
  for (int i = 1; i < known->count - 1; i++) {
    const struct node *n = &known->nodes[i];
    bool ready = copies[i] < 0;
    for (int j = 0; j < node_row(n)->arity; j++) ready &= copies[n->in[j]] >= 0;
    if (ready) out[count++] = i;
  }
  return count;
}

/* Windows are those that the space has at such layers (sampler_offers). */
static bool is_its_window(enum kernel_space space, const struct attrs *a,
                          struct neighbours images) {
  bool is_target_window = !(a->over & ROLES_SPATIAL & ~images.windows);
  if (!a->amount) return is_target_window;
  return space > SPACE_PAPER || (!is_target_window && !(a->over & ~images.pixels));
}

bool known_application(const struct sampler *s, const struct kernel *known, int node,
                       const int *copies, struct neighbours images, struct candidate *out) {
  const struct node *n = &known->nodes[node];
  *out = (struct candidate){.op = n->op, .in = {-1, -1}, .attrs = n->attrs, .x = -1};
  for (int j = 0; j < node_row(n)->arity; j++) out->in[j] = copies[n->in[j]];
  if (!sampler_kept(s->o, out)) return false;
  return n->op != PRIMITIVE_UNFOLD || is_its_window(s->options.space, &n->attrs, images);
}

static bool is_drawable(const struct sampler *s, const struct kernel *known) {
  uint64_t ends = UINT64_C(1) << PRIMITIVE_INPUT | UINT64_C(1) << PRIMITIVE_OUTPUT;
  if (kernel_uses(known, SIZE_S) || kernel_kinds(known) & ~(s->drawable | ends)) return false;
  if (!kernel_primitives(known)) return false; /* what it had was without effect */
  for (int i = 1; i < known->count - 1; i++) {
    struct candidate c = {.op = known->nodes[i].op, .attrs = known->nodes[i].attrs};
    if (sampler_space_of(&c) > s->options.space) return false;
  }
  return true;
}

void sampler_list_known(struct sampler *s) {
  s->begins.count = 0;
  for (int i = 0; s->prior && i < prior_count(s->prior); i++)
    if (is_drawable(s, prior_kernel(s->prior, i))) VEC_PUSH(&s->begins, i);
}

int sampler_known(const struct sampler *s) {
  return s->begins.count;
}

const struct kernel *sampler_known_kernel(const struct sampler *s, int i) {
  return prior_kernel(s->prior, s->begins.data[i]);
}

static bool begin(struct sampler *s, struct partial *g, const struct kernel *known, int primitives,
                  int n, struct random *r) {
  int copies[KERNEL_NODES_MAX], next[KERNEL_NODES_MAX];
  for (int i = 0; i < known->count; i++) copies[i] = i ? -1 : 0;
  for (int i = 0; i < primitives; i++) {
    struct candidate c;
    int count = known_next(known, copies, next);
    int node = next[random_below(r, (uint32_t)count)];
    struct remaining left = sampler_left(s, n - i, n);
    if (!known_application(s, known, node, copies, g->images, &c) ||
        !partial_try(g, &c, sampler_left_after(left, &c)))
      return false;
    copies[node] = s->scratch->count - 1;
  }
  return true;
}

/* Draws which known kernel, how many of its primitives, and how many there will be. */
static bool draw_beginning(struct sampler *s, struct random *r, const struct kernel **known,
                           int *primitives, int *n) {
  int least, most;
  *known = sampler_known_kernel(s, (int)random_below(r, (uint32_t)sampler_known(s)));
  *primitives = 1 + (int)random_below(r, (uint32_t)kernel_primitives(*known));
  known_range(s->o, &least, &most);
  *n = *primitives + (int)random_below(r, BEGUN_MORE);
  if (*n < least) *n = least;
  s->least = least;
  return *n <= most;
}

/* -- a try -- */

/* Where a kernel gets what it must hold and does not yet: each at a step of its own. */
struct errands {
  int count, step[NEEDS_MAX + 1];
  uint64_t of[NEEDS_MAX + 1];
};

static bool add_errand(const struct sampler *s, uint64_t of, int steps, struct random *r,
                       struct errands *e) {
  if (of & kernel_kinds(s->scratch)) return true;
  if (!steps) return false;
  e->of[e->count] = of;
  e->step[e->count++] = (int)random_below(r, (uint32_t)steps);
  return true;
}

static bool list_errands(const struct sampler *s, bool matmul, int steps, struct random *r,
                         struct errands *e) {
  const struct limits *l = &s->options.limits;
  e->count = 0;
  for (int i = 0; i < l->needs; i++)
    if (!add_errand(s, l->need[i], steps, r, e)) return false;
  return !matmul || add_errand(s, sampler_matmuls(), steps, r, e);
}

static uint64_t kinds_at(const struct sampler *s, const struct errands *e, int step) {
  for (int i = 0; i < e->count; i++)
    if (e->step[i] == step && !(e->of[i] & kernel_kinds(s->scratch))) return e->of[i];
  return any_kind;
}

bool sampler_grow_learned(struct sampler *s, struct partial *g, bool begun, bool matmul,
                          struct random *r) {
  const struct sample_options *o = s->o;
  const struct kernel *known = NULL;
  int width = o->limits.width_least, done = 0, n = 0;
  struct errands errands;
  if (begun && !draw_beginning(s, r, &known, &done, &n)) return false;
  if (!begun) {
    n = o->least + (int)random_below(r, (uint32_t)(o->most - o->least + 1));
    s->least = o->least;
  }
  g->rules = sampler_rules_for(g->rules, n);
  g->max_width = width + (int)random_below(r, (uint32_t)(o->limits.width_most - width + 1));
  partial_start(g);
  if (begun && !begin(s, g, known, done, n, r)) return false;
  if (!list_errands(s, matmul, n - done, r, &errands)) return false;
  for (int i = 0; i < n - done; i++) {
    struct remaining left = sampler_left(s, n - done - i, n);
    if (!learned_step(s, g, left, kinds_at(s, &errands, i), r)) return false;
  }
  return true;
}
