/* Sizes that reach a least where filling did not.
 *
 * Every combination of multiples of the units is tried, pair by pair, those with dear units first, each
 * beginning with the value that filling gave it and going away from it in both directions. What is
 * not yet chosen stands at its unit, so that sizes over a budget are left at once, since costs rise
 * with every size; the last pair takes the most that fits. The work is bounded.
 */
#include <stdlib.h>
#include <string.h>

#include "budget/solver.h"

enum { TRIALS_MOST = 1 << 12 };

struct pair {
  int target, variable;
  int64_t unit, start; /* start: in units, where filling ended */
  int64_t dear;        /* what a second unit costs of the budget that is not filled */
};

struct exchange_state {
  struct problem *p;
  struct spending *now; /* of each target */
  int trials;
  VEC(struct pair);
};

/* Sets a pair to so many units. False where that is over a limit or a budget; it is set all the same. */
static bool set(struct exchange_state *e, const struct pair *pair, int64_t units) {
  struct binding *b = &e->p->bindings[pair->target];
  struct spending total = {{0}};
  e->trials++;
  if (units > SIZE_LIMIT / pair->unit) return false;
  b->sizes.value[SIZE_X0 + pair->variable] = units * pair->unit;
  if (!problem_spending(e->p, b, &e->now[pair->target])) return false;
  for (int i = 0; i < e->p->count; i++)
    for (int kind = 0; kind < BUDGET_KINDS; kind++)
      if (__builtin_add_overflow(total.of[kind], e->now[i].of[kind], &total.of[kind]) ||
          total.of[kind] > e->p->most[kind])
        return false;
  return true;
}

/* The most units that fit; the pair is set to them. One fits. */
static int64_t set_most(struct exchange_state *e, const struct pair *pair) {
  int64_t fits = 1, over = 2;
  while (set(e, pair, over)) fits = over, over *= 2;
  while (over - fits > 1) {
    int64_t middle = fits + (over - fits) / 2;
    *(set(e, pair, middle) ? &fits : &over) = middle;
  }
  set(e, pair, fits);
  return fits;
}

static bool reached(const struct problem *p, const struct spending *total) {
  for (int kind = 0; kind < BUDGET_KINDS; kind++)
    if (total->of[kind] < p->least[kind]) return false;
  return true;
}

static bool reached_now(const struct exchange_state *e) {
  struct spending total = {{0}};
  for (int i = 0; i < e->p->count; i++)
    for (int kind = 0; kind < BUDGET_KINDS; kind++) total.of[kind] += e->now[i].of[kind];
  return reached(e->p, &total);
}

/* Pairs from `at` on stand at one unit. True with the sizes set, or everything back at one unit. */
static bool choose(struct exchange_state *e, int at) {
  const struct pair *pair = &e->data[at];
  int64_t over = SIZE_LIMIT / pair->unit + 1;
  if (at == e->count - 1) {
    set_most(e, pair);
    if (reached_now(e)) return true;
    set(e, pair, 1);
    return false;
  }
  for (int64_t away = 0; away < over + pair->start && e->trials <= TRIALS_MOST; away++)
    for (int side = -1; side <= (away ? 1 : -1); side += 2) {
      int64_t units = pair->start + side * away;
      if (units < 1 || units >= over) continue;
      if (!set(e, pair, units))
        over = units;
      else if (choose(e, at + 1))
        return true;
    }
  set(e, pair, 1);
  return false;
}

static int by_dearness(const void *left, const void *right) {
  const struct pair *a = left, *b = right;
  if (a->dear != b->dear) return a->dear > b->dear ? -1 : 1;
  if (a->target != b->target) return a->target < b->target ? -1 : 1;
  return (a->variable > b->variable) - (a->variable < b->variable);
}

/* Everything at one unit; `kind`: the budget whose least was not reached. */
static void set_up(struct exchange_state *e, struct problem *p, int kind) {
  *e = (struct exchange_state){.p = p, .now = mem_alloc((size_t)p->count * sizeof *e->now)};
  for (int i = 0; i < p->count; i++)
    for (int x = 0; x < VARIABLES; x++) {
      int64_t unit = p->unit[i].value[SIZE_X0 + x];
      if (!unit) continue;
      int64_t start = p->bindings[i].sizes.value[SIZE_X0 + x] / unit;
      VEC_PUSH(e, ((struct pair){.target = i, .variable = x, .unit = unit, .start = start}));
    }
  problem_unscale(p);
  for (int i = 0; i < p->count; i++) problem_spending(p, &p->bindings[i], &e->now[i]);
  for (int i = 0; i < e->count; i++) {
    struct pair *pair = &e->data[i];
    int64_t before = e->now[pair->target].of[kind];
    pair->dear = set(e, pair, 2) ? e->now[pair->target].of[kind] - before : INT64_MAX;
    set(e, pair, 1);
  }
  if (e->count) qsort(e->data, (size_t)e->count, sizeof *e->data, by_dearness);
}

/* Whether even all pairs at the most that each may have alone stay under a least. */
static bool cannot_reach(struct exchange_state *e) {
  struct problem *p = e->p;
  struct spending total;
  int64_t *most = mem_alloc((size_t)e->count * sizeof *most);
  for (int i = 0; i < e->count; i++) {
    most[i] = set_most(e, &e->data[i]);
    set(e, &e->data[i], 1);
  }
  for (int i = 0; i < e->count; i++) set(e, &e->data[i], most[i]);
  bool under = problem_total(p, &total) && !reached(p, &total);
  for (int i = 0; i < e->count; i++) set(e, &e->data[i], 1);
  mem_free(most);
  return under;
}

static enum exchange look(struct exchange_state *e) {
  if (!e->count || cannot_reach(e)) return EXCHANGE_NONE;
  e->trials = 0;
  if (choose(e, 0)) return EXCHANGE_FOUND;
  return e->trials > TRIALS_MOST ? EXCHANGE_GIVEN_UP : EXCHANGE_NONE;
}

enum exchange problem_exchange(struct problem *p) {
  struct exchange_state e;
  struct spending total;
  int kind = 0;
  size_t bytes = (size_t)p->count * sizeof *p->bindings;
  struct binding *filled = mem_alloc(bytes);
  memcpy(filled, p->bindings, bytes);
  problem_total(p, &total);
  while (kind < BUDGET_KINDS - 1 && total.of[kind] >= p->least[kind]) kind++;
  set_up(&e, p, kind);
  enum exchange answer = look(&e);
  if (answer != EXCHANGE_FOUND) memcpy(p->bindings, filled, bytes);
  if (answer == EXCHANGE_NONE && !p->separate) answer = EXCHANGE_GIVEN_UP;
  mem_free(filled);
  mem_free(e.now);
  mem_free(e.data);
  return answer;
}
