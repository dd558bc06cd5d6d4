/* Growth of the variables: the second step of the solver by constraints (paper 6.3).
 *
 * One round: for every pair (i, j) what doubling x_ij costs, as the largest share of a budget; in
 * ascending order, ties by (i, j), each is doubled once where budgets and limits still allow it.
 * The rounds end when nothing was doubled. Costs only rise, so a pair that once did not fit never
 * fits again and leaves the list: at the end no variable can be doubled.
 */
#include <stdlib.h>

#include "budget/solver.h"

/* A pair and the share of its dearest budget that a doubling takes: delta/budget. */
struct step {
  int target, variable;
  int64_t delta, budget;
};

struct growth {
  struct problem *p;
  struct spending *now; /* of each target */
  struct spending total;
  VEC(struct step); /* the pairs that still fit */
};

bool problem_spending(const struct problem *p, const struct binding *b, struct spending *out) {
  const int64_t limit = p->elements_limit;
  *out = (struct spending){{0}};
  for (int s = SIZE_X0; s < SIZES; s++)
    if (b->sizes.value[s] > SIZE_LIMIT) return false;
  for (int i = 0; i < p->kernel->count; i++) {
    struct node_use use;
    if (!node_measure(p->kernel, b, i, &use) || use.written > limit || use.owned > limit)
      return false;
    if (__builtin_add_overflow(out->of[BUDGET_MACS], use.macs, &out->of[BUDGET_MACS])) return false;
    out->of[BUDGET_PARAMS] += use.owned;
  }
  return true;
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

/* What target s->target would spend with x_ij doubled; false where a limit forbids it. */
static bool doubled(const struct growth *g, const struct step *s, struct spending *out) {
  struct binding b = g->p->bindings[s->target];
  b.sizes.value[SIZE_X0 + s->variable] *= 2;
  return problem_spending(g->p, &b, out);
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

/* Writes the share of the dearest budget into *s; false if the doubling does not fit. */
static bool price(const struct growth *g, struct step *s) {
  struct spending then, total;
  if (!doubled(g, s, &then) || !within(g, s->target, &then, &total)) return false;
  s->delta = 0;
  s->budget = 1;
  for (int kind = 0; kind < BUDGET_KINDS; kind++) {
    int64_t most = g->p->most[kind], delta = then.of[kind] - g->now[s->target].of[kind];
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

/* Doubles x_ij if that fits now. */
static bool take(struct growth *g, const struct step *s) {
  struct spending then, total;
  if (!doubled(g, s, &then) || !within(g, s->target, &then, &total)) return false;
  g->p->bindings[s->target].sizes.value[SIZE_X0 + s->variable] *= 2;
  g->now[s->target] = then;
  g->total = total;
  return true;
}

/* Keeps the steps for which `keep` holds; how many went. */
static int filter(struct growth *g, bool (*keep)(struct growth *, struct step *)) {
  int kept = 0, before = g->count;
  for (int i = 0; i < before; i++)
    if (keep(g, &g->data[i])) g->data[kept++] = g->data[i];
  g->count = kept;
  return before - kept;
}

static bool keep_priced(struct growth *g, struct step *s) {
  return price(g, s);
}

static bool keep_taken(struct growth *g, struct step *s) {
  return take(g, s);
}

static void set_up(struct growth *g, struct problem *p) {
  *g = (struct growth){.p = p, .now = mem_alloc((size_t)p->count * sizeof *g->now)};
  for (int i = 0; i < p->count; i++) {
    problem_spending(p, &p->bindings[i], &g->now[i]);
    for (int x = 0; x < VARIABLES; x++)
      if (p->variables >> x & 1) VEC_PUSH(g, ((struct step){.target = i, .variable = x}));
  }
  problem_total(p, &g->total);
}

void problem_grow(struct problem *p, struct solve_trace *trace) {
  struct growth g;
  set_up(&g, p);
  trace->free = g.count;
  for (;;) {
    filter(&g, keep_priced);
    if (!g.count) break;
    qsort(g.data, (size_t)g.count, sizeof *g.data, by_price);
    filter(&g, keep_taken); /* the first always fits */
    trace->rounds++;
    trace->doublings += g.count;
  }
  free(g.now);
  free(g.data);
}
