/* See probability.h.
 *
 * A draw takes applications of a type in a random order and the first that is legal and kept. An
 * application i that is legal counts with its share s_i: it is taken where its coin falls well, and
 * no other one with a good coin comes before it:
 *
 *   P(i) = s_i * E[1 / (1 + N)]     N: how many of the other legal ones have a good coin
 *
 * Types come in a random order by weight, and the first is taken that has an application with a good
 * coin. A type without any never is, and does not change the order of the others; a type with an
 * application of share 1 always is. Over the others, all sets of types that failed are summed up.
 *
 * A state is the part of the goal that is there, each node of it with the attributes that it has by
 * now: a free size becomes what the goal has by a broadcast or the output. The mapping of nodes to
 * the goal's is followed, not found, so a draw is met once per symmetry of the goal: the sum is
 * divided by their number. Kernels that differ in the order of their nodes alone are one state.
 */
#include "sample/probability.h"

#include <string.h>

#include "kernel/attributes.h"
#include "kernel/kernel_simplify.h"

/* -- the step of a draw -- */

/* How many legal applications have each share. */
struct tally {
  struct {
    int share, count;
  } of[OFTEN_COUNT + 1];
  int kinds;
};

static void tally_add(struct tally *t, int share) {
  int i = 0;
  while (i < t->kinds && t->of[i].share != share) i++;
  if (i == t->kinds) t->of[t->kinds++].share = share;
  t->of[i].count++;
}

/* That no coin falls well. */
static double none_of(const struct tally *t) {
  double none = 1;
  for (int i = 0; i < t->kinds; i++)
    for (int j = 0; j < t->of[i].count; j++) none *= 1 - t->of[i].share / (double)ALWAYS;
  return none;
}

/* E[1 / (1 + N)] over the applications of a tally but one of this share. */
static double first_of(const struct tally *t, int own) {
  int all = 0, sure = 0, most = 0;
  for (int i = 0; i < t->kinds; i++) all += t->of[i].count;
  double *is = mem_alloc((size_t)all * sizeof *is),
         first = 0; /* of k good coins, sure ones apart */
  is[0] = 1;
  for (int i = 0; i < t->kinds; i++) {
    int count = t->of[i].count - (t->of[i].share == own);
    double share = t->of[i].share / (double)ALWAYS;
    if (t->of[i].share == ALWAYS) sure = count;
    for (int j = 0; j < count && t->of[i].share != ALWAYS; j++) {
      is[++most] = 0;
      for (int k = most; k > 0; k--) is[k] = is[k] * (1 - share) + is[k - 1] * share;
      is[0] *= 1 - share;
    }
  }
  for (int k = 0; k <= most; k++) first += is[k] / (1 + sure + k);
  mem_free(is);
  return first;
}

/* A type that may be taken at a step. */
struct type {
  double weight, fails;
};

/* That type `at` is tried, where those of `failed` have failed. */
static double tried(const struct type *types, int count, int at, unsigned failed) {
  double weights = 0, sum;
  for (int i = 0; i < count; i++) weights += failed >> i & 1 ? 0 : types[i].weight;
  sum = types[at].weight / weights;
  for (int i = 0; i < count; i++)
    if (i != at && !(failed >> i & 1) && types[i].fails > 0)
      sum += types[i].weight / weights * types[i].fails * tried(types, count, at, failed | 1u << i);
  return sum;
}

/* -- the walk over all states -- */

/* An application that makes a node of the goal. */
struct hit {
  struct candidate by;
  int node, share;
};
struct hits {
  VEC(struct hit);
};
struct saved {
  struct partial g;
  struct node nodes[KERNEL_NODES_MAX];
};
struct known {
  struct hash state;
  double probability;
};

struct walk {
  struct sampler *s;
  const struct draw_kind *kind;
  const struct families *families;
  const struct kernel *goal;
  struct partial g;
  int64_t groups;
  int64_t judged; /* the G for which is_passed holds; 0: none */
  bool is_passed;
  int goal_of[KERNEL_NODES_MAX]; /* of each node that is there */
  int node_of[KERNEL_NODES_MAX]; /* of each node of the goal; -1: not there yet */
  uint64_t seen;                 /* nodes of the goal that were there in any state */
  struct saved *saved;           /* one per step */
  struct known_states {
    VEC(struct known);
  } known, begun; /* from a state on; from a part of one known kernel on */
};

static bool swaps(const struct kernel *k, const struct node *n) {
  return node_row(n)->facts & FACT_COMMUTES &&
         shape_equal(node_input(k, n, 0), node_input(k, n, 1));
}

static bool same_inputs(const struct node *n, const int in[2], bool swapped) {
  return n->in[swapped] == in[0] && n->in[!swapped] == in[1];
}

/* Whether d is `goal` once each variable has the value that it gets there; notes those values. */
static bool becomes(const struct dim *d, const struct dim *goal, struct dim value[VARIABLES],
                    unsigned *have) {
  bool several;
  int x = dim_variable(d, &several);
  if (x == VARIABLES) return dim_equal(d, goal);
  if (several || x < 0 || d->power[SIZE_X0 + x] != 1) return true;
  struct dim one = dim_one(), rest = dim_substitute(*d, x, &one), is = dim_div(*goal, rest);
  if (!(*have >> x & 1)) value[x] = is;
  *have |= 1u << x;
  return dim_equal(&value[x], &is);
}

/* Whether the nodes of k may still become those of the goal that they stand for. */
static bool fits(const struct kernel *k, const struct kernel *goal, const int *goal_of,
                 struct dim value[VARIABLES], unsigned *have) {
  *have = 0;
  for (int i = 0; i < k->count; i++) {
    const struct node *n = &k->nodes[i], *is = &goal->nodes[goal_of[i]];
    if (n->shape.count != is->shape.count || !becomes(&n->attrs.dim, &is->attrs.dim, value, have))
      return false;
    for (int a = 0; a < n->shape.count; a++)
      if (n->shape.axis[a].role != is->shape.axis[a].role ||
          !becomes(&n->shape.axis[a].dim, &is->shape.axis[a].dim, value, have))
        return false;
  }
  return true;
}

/* Whether they are: each variable is one of the goal's, no two the same. */
static bool equals(const struct kernel *k, const struct kernel *goal, const int *goal_of) {
  struct dim value[VARIABLES];
  unsigned have, used = 0;
  if (k->count != goal->count || !fits(k, goal, goal_of, value, &have)) return false;
  for (int x = 0; x < VARIABLES; x++) {
    if (!(have >> x & 1)) continue;
    int is = dim_variable(&value[x], NULL);
    if (is < 0 || is >= VARIABLES || used >> is & 1) return false;
    struct dim alone = dim_size((enum size)(SIZE_X0 + is));
    if (!dim_equal(&value[x], &alone)) return false;
    used |= 1u << is;
  }
  return true;
}

static bool same_kind(const struct attrs *a, const struct attrs *b) {
  struct attrs other = *b;
  other.dim = a->dim; /* which may still change */
  return attrs_equal(a, &other);
}

static bool makes(const struct walk *w, const struct candidate *c, int node) {
  const struct node *n = &w->goal->nodes[node];
  int in[2] = {w->goal_of[c->in[0]], c->in[1] < 0 ? -1 : w->goal_of[c->in[1]]};
  if (n->op != c->op || w->node_of[node] >= 0 || !same_kind(&n->attrs, &c->attrs)) return false;
  return same_inputs(n, in, false) || (swaps(w->goal, n) && same_inputs(n, in, true));
}

static bool makes_any(const struct walk *w, const struct candidate *c) {
  bool any = false;
  for (int i = 1; i < w->goal->count - 1; i++) any |= makes(w, c, i);
  return any;
}

static void add(struct walk *w, int node) {
  int at = w->g.k->count - 1;
  w->goal_of[at] = node;
  w->node_of[node] = at;
  w->seen |= UINT64_C(1) << node;
}

static void save(const struct walk *w, struct saved *to) {
  to->g = w->g;
  memcpy(to->nodes, w->g.k->nodes, (size_t)w->g.k->count * sizeof *to->nodes);
}

/* Back to `count` nodes; only a substitution has changed them. */
static void restore(struct walk *w, const struct saved *from, int count, bool changed) {
  w->g = from->g;
  w->g.k->count = count;
  if (changed) memcpy(w->g.k->nodes, from->nodes, (size_t)count * sizeof *from->nodes);
}

/* Tries an application: false where it is illegal. It is noted for each node of the goal that it
 * makes. */
static bool look(struct walk *w, const struct candidate *c, struct remaining left, int share,
                 int step, struct hits *out) {
  int count = w->g.k->count;
  struct dim value[VARIABLES];
  unsigned have;
  if (!partial_try(&w->g, c, left)) return false;
  for (int i = 1; makes_any(w, c) && i < w->goal->count - 1; i++) {
    if (!makes(w, c, i)) continue;
    w->goal_of[count] = i;
    if (!fits(w->g.k, w->goal, w->goal_of, value, &have)) continue;
    struct hit m = {*c, i, share};
    VEC_PUSH(out, m);
  }
  restore(w, &w->saved[step], count, c->x >= 0);
  return true;
}

static double from_here(struct walk *w, struct remaining left);

static bool is_learned(const struct walk *w) {
  return w->kind->begun || w->kind->options->learned;
}

/* That the goal is reached where the type is tried; *fails: that none of its applications is taken. */
static double by_type(struct walk *w, const struct family *f, struct remaining left,
                      double *fails) {
  int step = w->g.k->count - 1, count = w->g.k->count;
  const struct candidate *all;
  struct tally tally = {.kinds = 0};
  struct hits hits = {0};
  double sum = 0;
  save(w, &w->saved[step]);
  int candidates = sampler_applications(w->s, &w->g, f, left, &all);
  for (int i = 0; i < candidates; i++) {
    int share = sampler_kept(w->kind->options, &all[i]);
    if (share && look(w, &all[i], left, share, step, &hits)) tally_add(&tally, share);
  }
  for (int i = 0; i < hits.count; i++) {
    const struct hit *m = &hits.data[i];
    double p = m->share / (double)ALWAYS * first_of(&tally, m->share);
    partial_try(&w->g, &m->by, left);
    add(w, m->node);
    sum += p * from_here(w, left);
    w->node_of[m->node] = -1;
    restore(w, &w->saved[step], count, true);
  }
  mem_free(hits.data);
  *fails = none_of(&tally);
  return sum;
}

static double by_types(struct walk *w, const struct family *const *of, int number,
                       struct remaining left) {
  struct type types[FAMILIES_MAX];
  double reached[FAMILIES_MAX], sum = 0;
  int count = 0;
  for (int i = 0; i < number; i++) {
    struct type t = {.weight = sampler_type_weight(w->kind->options, of[i])};
    if (t.weight <= 0) continue;
    reached[count] = by_type(w, of[i], left, &t.fails);
    if (t.fails < 1) types[count++] = t;
  }
  for (int i = 0; i < count; i++)
    if (reached[i] > 0) sum += reached[i] * tried(types, count, i, 0);
  return sum;
}

/* Whether the goal, finished, passes with this G: however it was drawn. */
static bool passes(struct walk *w) {
  if (w->judged != w->groups) w->is_passed = sampler_passes(w->s, &w->g.rules, w->groups);
  w->judged = w->groups;
  return w->is_passed;
}

/* Of a finished kernel; only the one that was meant counts. */
static double at_end(struct walk *w) {
  struct saved *last = &w->saved[w->g.k->count - 1];
  int count = w->g.k->count;
  save(w, last);
  bool is = partial_finish(&w->g);
  if (is) {
    w->goal_of[count] = w->goal->count - 1;
    is = equals(w->g.k, w->goal, w->goal_of) && passes(w);
  }
  restore(w, last, count, true);
  return is;
}

/* The state: what is there, and whatever may make a difference later. Two nodes of one pair are one
 * application if they are written the same way around. */
static struct hash state_of(const struct walk *w) {
  struct hash h = {0, 0};
  int names[VARIABLES], known = 0;
  for (int x = 0; x < VARIABLES; x++) names[x] = -1;
  for (int i = 0; i < w->goal->count; i++) {
    h = hash_add(h, w->node_of[i] >= 0);
    if (w->node_of[i] < 0) continue;
    const struct node *n = &w->g.k->nodes[w->node_of[i]];
    h = hash_add(h, (uint64_t)n->attrs.dim.num << 32 | (uint64_t)n->attrs.dim.den);
    for (int s = 0; s < SIZE_X0; s++) h = hash_add(h, (uint64_t)n->attrs.dim.power[s]);
    for (int x = 0; x < VARIABLES; x++) {
      int power = n->attrs.dim.power[SIZE_X0 + x];
      if (!power) continue;
      if (names[x] < 0) names[x] = known++;
      h = hash_add(hash_add(h, (uint64_t)names[x]), (uint64_t)power);
    }
    if (node_row(n)->facts & FACT_COMMUTES)
      h = hash_add(h, (uint64_t)(n->in[0] < n->in[1]) * 2 +
                          (w->goal_of[n->in[0]] == w->goal->nodes[i].in[0]));
  }
  return h;
}

/* At a learned step. */
static double by_weights(struct walk *w, struct remaining left) {
  int step = w->g.k->count - 1, count = w->g.k->count;
  const struct candidate *all;
  const uint32_t *weights;
  struct hits hits = {0};
  double legal = 0, sum = 0;
  save(w, &w->saved[step]);
  int candidates = sampler_learned_applications(w->s, &w->g, left, UINT64_MAX, &all, &weights);
  for (int i = 0; i < candidates; i++)
    if (weights[i]) {
      int share = (int)weights[i];
      legal += share * look(w, &all[i], sampler_left_after(left, &all[i]), share, step, &hits);
    }
  for (int i = 0; i < hits.count; i++) {
    const struct hit *m = &hits.data[i];
    struct remaining after = sampler_left_after(left, &m->by);
    partial_try(&w->g, &m->by, after);
    add(w, m->node);
    sum += m->share / legal * from_here(w, after);
    w->node_of[m->node] = -1;
    restore(w, &w->saved[step], count, true);
  }
  mem_free(hits.data);
  return sum;
}

static double by_kinds(struct walk *w, struct remaining left) {
  const struct families *f = w->families;
  int steps = left.steps;
  double sum = 0;
  if (left.weighted) {
    struct remaining then = {left.plain, left.weighted - 1, steps - 1};
    sum += left.weighted / (double)steps * by_types(w, f->weighted, f->weighted_count, then);
  }
  if (left.plain) {
    struct remaining then = {left.plain - 1, left.weighted, steps - 1};
    sum += left.plain / (double)steps * by_types(w, f->plain, f->plain_count, then);
  }
  return sum;
}

/* That the goal is reached from here, with these steps left. */
static double from_here(struct walk *w, struct remaining left) {
  struct hash state = state_of(w);
  double sum;
  for (int i = 0; i < w->known.count; i++)
    if (hash_equal(w->known.data[i].state, state)) return w->known.data[i].probability;
  if (!left.steps)
    sum = at_end(w);
  else
    sum = is_learned(w) ? by_weights(w, left) : by_kinds(w, left);
  struct known known = {state, sum};
  VEC_PUSH(&w->known, known);
  return sum;
}

/* -- symmetries -- */

/* In how many ways nodes from `node` on can stand for those of the same kernel. */
static int symmetries(const struct kernel *k, int node, int *goal_of, uint64_t used) {
  const struct node *n = &k->nodes[node];
  int found = 0;
  if (node == k->count) return equals(k, k, goal_of);
  for (int i = 0; i < k->count; i++) {
    const struct node *is = &k->nodes[i];
    int in[2];
    for (int j = 0; j < 2; j++) in[j] = n->in[j] < 0 ? -1 : goal_of[n->in[j]];
    if (used >> i & 1 || n->op != is->op || !same_kind(&n->attrs, &is->attrs)) continue;
    if (!same_inputs(is, in, false) && !(swaps(k, is) && same_inputs(is, in, true))) continue;
    goal_of[node] = i;
    found += symmetries(k, node + 1, goal_of, used | UINT64_C(1) << i);
  }
  return found;
}

/* -- all of it -- */

static int weighted_of(const struct kernel *k) {
  int count = 0;
  for (int i = 0; i < k->count; i++) count += !!(node_row(&k->nodes[i])->facts & FACT_WEIGHTS);
  return count;
}

/* Begins with the input alone. */
static void start(struct walk *w, int64_t groups, int width, int n) {
  w->groups = groups;
  sampler_partial(w->s, groups, NULL, &w->g);
  w->g.rules = sampler_rules_for(w->kind->rules, n);
  w->g.max_width = width;
  w->g.joins &= is_learned(w);
  for (int j = 0; j < w->goal->count; j++) w->node_of[j] = -1;
  partial_start(&w->g);
  add(w, 0);
}

/* How likely a draw has n primitives, of which `begun` are a known kernel's. */
static double extra_share(const struct walk *w, int begun, int n) {
  int least, most, ways = 0;
  known_range(w->kind->options, &least, &most);
  for (int more = 0; more < BEGUN_MORE; more++) {
    int all = begun + more < least ? least : begun + more;
    ways += all == n && all <= most;
  }
  return ways / (double)BEGUN_MORE;
}

/* The copies that a beginning has made of a known kernel's nodes. */
struct beginning {
  const struct kernel *known;
  int copies[KERNEL_NODES_MAX];
};

/* That the goal is reached where `more` nodes of the known kernel come next, of n primitives in all:
 * states differ by which of its nodes are there. */
static double begun_from(struct walk *w, struct beginning *b, int more, int n) {
  int next[KERNEL_NODES_MAX], step = w->g.k->count - 1, count = w->g.k->count;
  struct hash state = state_of(w);
  double sum = 0;
  if (!more) return from_here(w, sampler_left(w->s, n - step, n));
  for (int i = 0; i < b->known->count; i++) state = hash_add(state, (uint64_t)b->copies[i]);
  for (int i = 0; i < w->begun.count; i++)
    if (hash_equal(w->begun.data[i].state, state)) return w->begun.data[i].probability;
  int choices = known_next(b->known, b->copies, next);
  for (int i = 0; i < choices; i++) {
    struct remaining after;
    struct candidate c;
    struct hits hits = {0};
    if (!known_application(w->s, b->known, next[i], b->copies, w->g.images, &c)) continue;
    after = sampler_left_after(sampler_left(w->s, n - step, n), &c);
    save(w, &w->saved[step]);
    look(w, &c, after, ALWAYS, step, &hits);
    for (int j = 0; j < hits.count; j++) {
      partial_try(&w->g, &c, after);
      add(w, hits.data[j].node);
      b->copies[next[i]] = count;
      sum += begun_from(w, b, more - 1, n) / choices;
      b->copies[next[i]] = -1;
      w->node_of[hits.data[j].node] = -1;
      restore(w, &w->saved[step], count, true);
    }
    mem_free(hits.data);
  }
  struct known known = {state, sum};
  VEC_PUSH(&w->begun, known);
  return sum;
}

/* The mean over known kernels and over how many of their primitives there are. */
static double begun_mean(struct walk *w, int64_t groups, int width, int n) {
  int count = sampler_known(w->s);
  double sum = 0;
  for (int i = 0; i < count; i++) {
    struct beginning b = {.known = sampler_known_kernel(w->s, i)};
    int primitives = kernel_primitives(b.known);
    for (int begun = 1; begun <= primitives && begun <= n; begun++) {
      double share = extra_share(w, begun, n);
      for (int j = 0; j < b.known->count; j++) b.copies[j] = j ? -1 : 0;
      start(w, groups, width, n);
      w->begun.count = 0;
      if (share > 0) sum += share / primitives * begun_from(w, &b, begun, n);
    }
  }
  return count ? sum / count : 0;
}

/* The mean over G and widths, for as many primitives as the goal has. */
static double mean_of(struct walk *w, struct remaining left) {
  int n = left.steps, groups;
  const int64_t *group;
  double sum = 0;
  groups = sampler_all_groups(w->s, &group);
  for (int i = 0; i < groups; i++)
    for (int width = WIDTH_MIN; width <= WIDTH_MAX; width++) {
      start(w, group[i], width, n);
      w->known.count = 0;
      if (w->kind->begun)
        sum += begun_mean(w, group[i], width, n);
      else if (is_learned(w))
        sum += from_here(w, sampler_left(w->s, n, n));
      else
        sum += from_here(w, left);
    }
  return sum / (groups * (WIDTH_MAX - WIDTH_MIN + 1));
}

/* -- why not -- */

/* The rule that a kernel breaks whatever G is, or NULL. */
static const char *always_broken(const struct walk *w, int n) {
  const struct rules rules = sampler_rules_for(w->kind->rules, n);
  const int64_t *group;
  int groups = sampler_all_groups(w->s, &group);
  const char *name = NULL;
  for (int i = 0; i < groups; i++) {
    name = sampler_broken(w->s, &rules, w->goal, group[i]);
    if (!name) return NULL;
  }
  return name;
}

/* Whether all weights can matter with some G. */
static bool may_matter(const struct walk *w) {
  const int64_t *group;
  int groups = sampler_all_groups(w->s, &group);
  bool may = false;
  for (int i = 0; i < groups && !may; i++) may = sampler_all_matter(w->s, w->goal, group[i]);
  return may;
}

static void explain(const struct walk *w, int n, int weighted, struct buf *out) {
  const struct sample_options *o = w->kind->options;
  const struct kernel *k = w->goal;
  int most = sampler_weighted_most(o, n), i = 1;
  const char *why;
  int least = o->least, largest = o->most;
  if (w->kind->begun) known_range(o, &least, &largest);
  if (n < least || n > largest) {
    buf_printf(out, "primitives: %d, drawn are %d to %d", n, least, largest);
  } else if (!is_learned(w) && (weighted > most || weighted < (most > 0))) {
    buf_printf(out, "fc: %d of %d, drawn are %d to %d", weighted, n, most > 0, most);
  } else if (o->require_reach && (why = kernel_reach_on(k, sampler_images(w->s, k)))) {
    buf_puts(out, why);
  } else if ((why = always_broken(w, n))) {
    buf_printf(out, "rule %s", why);
  } else {
    while (i < k->count - 1 && w->seen >> i & 1) i++;
    if (i == k->count - 1 && !may_matter(w))
      buf_puts(out, "some weight has no effect on the smallest images");
    else if (i == k->count - 1)
      buf_puts(out, "the last step or the output gives another kernel");
    else
      buf_printf(out, "not drawn: %s = ", k->nodes[i].name), node_print(k, i, out);
  }
}

static canvas_status probability_of(canvas_context *ctx, struct sampler *s, const struct kernel *k,
                                    const struct draw_kind *kind, struct probability *out) {
  int n = kernel_primitives(k), weighted = weighted_of(k), goal_of[KERNEL_NODES_MAX];
  int most = sampler_weighted_most(kind->options, n),
      range = kind->options->most - kind->options->least + 1;
  *out = (struct probability){.of_try = 0};
  if (limits_demand(&kind->options->limits))
    return fail(ctx, CANVAS_BAD_INPUT,
                "the probability is computed without need=, width=, weighted=, weighted_share=, "
                "receptive=, with_matmul= and fixed_hw=: leave them out");
  sampler_take(s, kind);
  if (n > PROBABILITY_NODES)
    return fail(ctx, CANVAS_BAD_INPUT,
                "kernel '%s' has %d primitives: the probability is computed of at most %d", k->name,
                n, PROBABILITY_NODES);
  struct walk *w = mem_alloc(sizeof *w);
  *w = (struct walk){.s = s, .kind = kind, .families = sampler_families(s), .goal = k};
  w->saved = mem_alloc((size_t)(n + 1) * sizeof *w->saved);
  struct remaining left = {n - weighted, weighted, n};
  if (kind->begun) {
    out->of_try = mean_of(w, left);
  } else if (n >= kind->options->least && n <= kind->options->most && is_learned(w)) {
    out->of_try = mean_of(w, left) / range;
  } else if (n >= kind->options->least && n <= kind->options->most && weighted <= most &&
             weighted >= (most > 0)) {
    out->of_try = mean_of(w, left) / range;
    if (most) out->of_try /= most;
  }
  out->of_try /= symmetries(k, 0, goal_of, 0);
  if (out->of_try == 0) explain(w, n, weighted, &out->why);
  mem_free(w->saved);
  mem_free(w->known.data);
  mem_free(w->begun.data);
  mem_free(w);
  return CANVAS_OK;
}

canvas_status kernel_probability(canvas_context *ctx, struct sampler *s, const struct kernel *k,
                                 const struct draw_kind *kind, struct probability *out) {
  struct kernel *simple = kernel_simplify(k);
  canvas_status status = probability_of(ctx, s, simple, kind, out);
  kernel_free(simple);
  return status;
}

int64_t kernel_successes(struct sampler *s, const struct draw_kind *kind, int64_t tries) {
  int64_t found = 0, g;
  struct random r;
  random_open(&r, sampler_seed(s), RANDOM_TRIES, 0);
  for (int64_t i = 0; i < tries; i++) found += sampler_try(s, kind, &r, &g);
  return found;
}
