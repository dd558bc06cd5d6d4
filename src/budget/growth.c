/* Growth of the variables: the second step of the solver by constraints (paper 6.3), and what it
 * leaves.
 *
 * Doubling. One round: for every pair (i, j) what doubling x_ij costs, as the largest share of a budget;
 * in ascending order, ties by (i, j), each is doubled once where budgets and limits still allow it.
 * The rounds end when nothing was doubled. Costs only rise, so a pair that once did not fit never
 * fits again and leaves the list: at the end no variable can be doubled.
 *
 * Filling. The same rounds add 2^n units, n from the largest power below any x_ij down to 0: each
 * level needs one round, as twice its step was rejected before. At the end no x_ij can be given one
 * unit more. What costs nothing of any budget is left at its power of two.
 */
#include <stdlib.h>

#include "budget/solver.h"

/* A pair, the value that it would be given, and the share of its dearest budget that this takes:
 * delta/budget. */
struct step {
  int target, variable;
  int64_t to;
  int64_t delta, budget;
  struct spending then; /* of the target after the step; valid while its version is `version` */
  int version;
};

struct growth {
  struct problem *p;
  struct spending *now; /* of each target */
  int *version;         /* of each target: how many steps it took */
  struct spending total;
  uint64_t nodes[VARIABLES]; /* those whose use depends on the variable */
  int level;                 /* filling: 2^level units are added */
  VEC(struct step);          /* the pairs that still fit */
};

_Static_assert(KERNEL_NODES_MAX <= 64, "a set of nodes is one uint64_t");

/* What some of the nodes spend; false where one of them is over a limit. */
static bool spending_of(const struct problem *p, const struct binding *b, uint64_t nodes,
                        struct spending *out) {
  const int64_t limit = p->elements_limit;
  *out = (struct spending){{0}};
  for (int s = SIZE_X0; s < SIZES; s++)
    if (b->sizes.value[s] > SIZE_LIMIT) return false;
  for (int i = 0; i < p->kernel->count; i++) {
    struct node_use use;
    if (!(nodes >> i & 1)) continue;
    if (!node_measure(p->kernel, b, i, &use) || use.written > limit || use.owned > limit)
      return false;
    if (__builtin_add_overflow(out->of[BUDGET_MACS], use.macs, &out->of[BUDGET_MACS])) return false;
    out->of[BUDGET_PARAMS] += use.owned;
  }
  return true;
}

bool problem_spending(const struct problem *p, const struct binding *b, struct spending *out) {
  struct cost projection = projection_cost(b);
  if (!spending_of(p, b, ~UINT64_C(0), out)) return false;
  out->of[BUDGET_PARAMS] += projection.params;
  return !__builtin_add_overflow(out->of[BUDGET_MACS], projection.macs, &out->of[BUDGET_MACS]);
}

bool problem_total(const struct problem *p, struct spending *out) {
  *out = (struct spending){{0}};
  for (int i = 0; i < p->count; i++) {
    struct spending s;
    if (!problem_spending(p, &p->bindings[i], &s)) return false;
    for (int kind = 0; kind < BUDGET_KINDS; kind++)
      if (__builtin_add_overflow(out->of[kind], s.of[kind], &out->of[kind])) return false;
  }
  return true;
}

/* s->then: what the target would spend after the step; false where a limit forbids it. Only
 * nodes that hold x_j, or read a tensor that does, change. */
static bool measure(const struct growth *g, struct step *s) {
  struct binding b = g->p->bindings[s->target];
  uint64_t nodes = g->nodes[s->variable];
  struct spending before, after;
  spending_of(g->p, &b, nodes, &before);
  b.sizes.value[SIZE_X0 + s->variable] = s->to;
  if (!spending_of(g->p, &b, nodes, &after)) return false;
  for (int kind = 0; kind < BUDGET_KINDS; kind++) {
    int64_t rest = g->now[s->target].of[kind] - before.of[kind];
    if (__builtin_add_overflow(rest, after.of[kind], &s->then.of[kind])) return false;
  }
  s->version = g->version[s->target];
  return true;
}

/* The total with target i spending `then`; false where it is over a budget. */
static bool within(const struct growth *g, int i, const struct spending *then,
                   struct spending *total) {
  for (int kind = 0; kind < BUDGET_KINDS; kind++) {
    int64_t rest = g->total.of[kind] - g->now[i].of[kind];
    if (then->of[kind] > g->p->most[kind] - rest) return false;
    total->of[kind] = rest + then->of[kind];
  }
  return true;
}

/* Writes the share of the dearest budget into *s; false if the step does not fit. */
static bool price(struct growth *g, struct step *s) {
  struct spending total;
  if (!measure(g, s) || !within(g, s->target, &s->then, &total)) return false;
  s->delta = 0;
  s->budget = 1;
  for (int kind = 0; kind < BUDGET_KINDS; kind++) {
    int64_t most = g->p->most[kind], delta = s->then.of[kind] - g->now[s->target].of[kind];
    if (most == INT64_MAX || (__int128)delta * s->budget <= (__int128)s->delta * most) continue;
    s->delta = delta;
    s->budget = most;
  }
  return true;
}

static int by_price(const void *left, const void *right) {
  const struct step *a = left, *b = right;
  __int128 l = (__int128)a->delta * b->budget, r = (__int128)b->delta * a->budget;
  if (l != r) return l < r ? -1 : 1;
  if (a->target != b->target) return a->target < b->target ? -1 : 1;
  return (a->variable > b->variable) - (a->variable < b->variable);
}

/* Takes the step if it fits now. */
static bool take(struct growth *g, struct step *s) {
  struct spending total;
  if (s->version != g->version[s->target] && !measure(g, s)) return false;
  if (!within(g, s->target, &s->then, &total)) return false;
  g->p->bindings[s->target].sizes.value[SIZE_X0 + s->variable] = s->to;
  g->version[s->target]++;
  g->now[s->target] = s->then;
  g->total = total;
  return true;
}

/* Keeps the steps for which `keep` holds. */
static void filter(struct growth *g, bool (*keep)(struct growth *, struct step *)) {
  int kept = 0;
  for (int i = 0; i < g->count; i++)
    if (keep(g, &g->data[i])) g->data[kept++] = g->data[i];
  g->count = kept;
}

static bool shape_uses(const struct shape *s, enum size x) {
  for (int i = 0; i < s->count; i++)
    if (dim_uses(&s->axis[i].dim, x)) return true;
  return false;
}

static bool depends(const struct kernel *k, const struct node *n, enum size x) {
  if (dim_uses(&n->attrs.dim, x) || shape_uses(&n->shape, x)) return true;
  for (int i = 0; i < node_row(n)->arity; i++)
    if (shape_uses(node_input(k, n, i), x)) return true;
  return false;
}

static int64_t *size_of(const struct growth *g, const struct step *s) {
  return &g->p->bindings[s->target].sizes.value[SIZE_X0 + s->variable];
}

static int64_t unit_of(const struct growth *g, const struct step *s) {
  return g->p->unit[s->target].value[SIZE_X0 + s->variable];
}

static bool price_doubling(struct growth *g, struct step *s) {
  s->to = 2 * *size_of(g, s);
  return price(g, s);
}

static bool price_filling(struct growth *g, struct step *s) {
  int64_t more = unit_of(g, s) << g->level, now = *size_of(g, s);
  s->to = now + more;
  return more < now && price(g, s) && s->delta;
}

static void list_pairs(struct growth *g) {
  g->count = 0;
  for (int i = 0; i < g->p->count; i++)
    for (int x = 0; x < VARIABLES; x++)
      if (g->p->variables >> x & 1) VEC_PUSH(g, ((struct step){.target = i, .variable = x}));
}

/* One round over the listed pairs; how many steps were taken, which stay listed. */
static int take_round(struct growth *g, bool (*propose)(struct growth *, struct step *)) {
  filter(g, propose);
  if (g->count) qsort(g->data, (size_t)g->count, sizeof *g->data, by_price);
  filter(g, take); /* the first always fits */
  return g->count;
}

static void set_up(struct growth *g, struct problem *p) {
  *g = (struct growth){.p = p};
  g->now = mem_alloc((size_t)p->count * sizeof *g->now);
  g->version = mem_alloc((size_t)p->count * sizeof *g->version);
  for (int x = 0; x < VARIABLES; x++)
    for (int i = 0; i < p->kernel->count; i++)
      if (depends(p->kernel, &p->kernel->nodes[i], (enum size)(SIZE_X0 + x)))
        g->nodes[x] |= UINT64_C(1) << i;
  for (int i = 0; i < p->count; i++) problem_spending(p, &p->bindings[i], &g->now[i]);
  problem_total(p, &g->total);
  list_pairs(g);
}

static void tear_down(struct growth *g) {
  mem_free(g->now);
  mem_free(g->version);
  mem_free(g->data);
}

void problem_grow(struct problem *p, struct solve_trace *trace) {
  struct growth g;
  set_up(&g, p);
  trace->free = g.count;
  for (int taken; (taken = take_round(&g, price_doubling));) {
    trace->rounds++;
    trace->doublings += taken;
  }
  tear_down(&g);
}

/* The largest power of two in any x_ij, counted in units. */
static int highest_level(const struct growth *g) {
  int level = 0;
  for (int i = 0; i < g->count; i++)
    while (*size_of(g, &g->data[i]) / unit_of(g, &g->data[i]) >> (level + 1)) level++;
  return level;
}

void problem_fill(struct problem *p, struct solve_trace *trace) {
  struct growth g;
  set_up(&g, p);
  for (g.level = highest_level(&g); g.level >= 0; g.level--) {
    list_pairs(&g);
    trace->steps += take_round(&g, price_filling);
  }
  tear_down(&g);
}
