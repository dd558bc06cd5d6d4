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
  int target, variable, slot; /* slot: the number of the pair */
  int64_t to;
  int64_t delta, budget;
  struct spending then; /* of the target after the step; valid while its version is `version` */
  int version;
};

struct growth {
  struct problem *p;
  int *version;              /* of each target: how many steps it took */
  struct node_use *next;     /* of each pair, the nodes after its step */
  uint64_t nodes[VARIABLES]; /* those whose use depends on the variable */
  int level;                 /* filling: 2^level units are added */
  VEC(struct step);          /* the pairs that still fit */
};

_Static_assert(KERNEL_NODES_MAX <= 64, "a set of nodes is one uint64_t");

/* s->then: what the target would spend after the step, and in g->next its nodes; false where a limit
 * forbids it. Only nodes that hold x_j, or read a tensor that does, change. */
static bool measure(const struct growth *g, struct step *s) {
  const struct problem *p = g->p;
  struct binding b = p->bindings[s->target];
  const struct node_use *uses = p->uses + s->target * p->kernel->count;
  struct node_use *next = g->next + s->slot * p->kernel->count;
  b.sizes.value[SIZE_X0 + s->variable] = s->to;
  s->then = p->now[s->target];
  for (int i = 0; i < p->kernel->count; i++) {
    if (!(g->nodes[s->variable] >> i & 1)) continue;
    if (!problem_use(p, &b, i, &next[i])) return false;
    s->then.of[BUDGET_MACS] -= uses[i].macs;
    s->then.of[BUDGET_PARAMS] -= uses[i].owned;
  }
  for (int i = 0; i < p->kernel->count; i++)
    if (g->nodes[s->variable] >> i & 1 && !spending_add(&s->then, &next[i])) return false;
  s->version = g->version[s->target];
  return true;
}

/* The total with target i spending `then`; false where it is over a budget. */
static bool within(const struct growth *g, int i, const struct spending *then,
                   struct spending *total) {
  for (int kind = 0; kind < BUDGET_KINDS; kind++) {
    int64_t rest = g->p->total.of[kind] - g->p->now[i].of[kind];
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
    int64_t most = g->p->most[kind], delta = s->then.of[kind] - g->p->now[s->target].of[kind];
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
  struct problem *p = g->p;
  struct spending total;
  if (s->version != g->version[s->target] && !measure(g, s)) return false;
  if (!within(g, s->target, &s->then, &total)) return false;
  p->bindings[s->target].sizes.value[SIZE_X0 + s->variable] = s->to;
  g->version[s->target]++;
  p->now[s->target] = s->then;
  p->total = total;
  for (int i = 0; i < p->kernel->count; i++)
    if (g->nodes[s->variable] >> i & 1)
      p->uses[s->target * p->kernel->count + i] = g->next[s->slot * p->kernel->count + i];
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
  int slot = 0;
  g->count = 0;
  for (int i = 0; i < g->p->count; i++)
    for (int x = 0; x < VARIABLES; x++)
      if (g->p->variables >> x & 1)
        VEC_PUSH(g, ((struct step){.target = i, .variable = x, .slot = slot++}));
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
  g->version = mem_alloc((size_t)p->count * sizeof *g->version);
  for (int x = 0; x < VARIABLES; x++)
    for (int i = 0; p->variables >> x & 1 && i < p->kernel->count; i++)
      if (depends(p->kernel, &p->kernel->nodes[i], (enum size)(SIZE_X0 + x)))
        g->nodes[x] |= UINT64_C(1) << i;
  list_pairs(g);
  g->next = mem_alloc((size_t)(g->count * p->kernel->count + 1) * sizeof *g->next);
}

static void tear_down(struct growth *g) {
  mem_free(g->version);
  mem_free(g->next);
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
