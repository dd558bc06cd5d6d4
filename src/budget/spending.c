/* What sizes spend of the budgets: macs and params, node by node. */
#include <stddef.h>
#include <string.h>

#include "budget/solver.h"

bool spending_add(struct spending *sum, const struct node_use *use) {
  sum->of[BUDGET_PARAMS] += use->owned; /* below the limit of elements, of at most 64 nodes */
  return !__builtin_add_overflow(sum->of[BUDGET_MACS], use->macs, &sum->of[BUDGET_MACS]);
}

bool problem_use(const struct problem *p, const struct binding *b, int node, struct node_use *out) {
  for (int s = SIZE_X0; s < SIZES; s++)
    if (b->sizes.value[s] > SIZE_LIMIT) return false;
  return node_measure(p->kernel, b, node, out) && out->written <= p->elements_limit &&
         out->owned <= p->elements_limit;
}

/* Of one binding; its nodes into uses[]. */
static bool measure(const struct problem *p, const struct binding *b, struct node_use *uses,
                    struct spending *out) {
  struct cost projection = projection_cost(b);
  *out = (struct spending){{0}};
  for (int i = 0; i < p->kernel->count; i++)
    if (!problem_use(p, b, i, &uses[i]) || !spending_add(out, &uses[i])) return false;
  out->of[BUDGET_PARAMS] += projection.params;
  return !__builtin_add_overflow(out->of[BUDGET_MACS], projection.macs, &out->of[BUDGET_MACS]);
}

static bool alike(const struct binding *a, const struct binding *b) {
  const size_t name = offsetof(struct target, cin), rest = sizeof(struct target) - name;
  return !memcmp((const char *)&a->target + name, (const char *)&b->target + name, rest) &&
         !memcmp(&a->sizes, &b->sizes, sizeof a->sizes);
}

int problem_like(const struct problem *p, int i) {
  int j = 0;
  while (j < i && !alike(&p->bindings[j], &p->bindings[i])) j++;
  return j;
}

static bool add(struct spending *sum, const struct spending *more) {
  for (int kind = 0; kind < BUDGET_KINDS; kind++)
    if (__builtin_add_overflow(sum->of[kind], more->of[kind], &sum->of[kind])) return false;
  return true;
}

bool problem_measure(struct problem *p) {
  const int nodes = p->kernel->count;
  p->total = (struct spending){{0}};
  for (int i = 0; i < p->count; i++) {
    struct node_use *uses = p->uses + i * nodes;
    int like = problem_like(p, i);
    if (like < i) {
      memcpy(uses, p->uses + like * nodes, (size_t)nodes * sizeof *uses);
      p->now[i] = p->now[like];
    } else if (!measure(p, &p->bindings[i], uses, &p->now[i])) {
      return false;
    }
    if (!add(&p->total, &p->now[i])) return false;
  }
  return true;
}

bool problem_spending(const struct problem *p, const struct binding *b, struct spending *out) {
  struct node_use uses[KERNEL_NODES_MAX];
  return measure(p, b, uses, out);
}

bool problem_total(const struct problem *p, struct spending *out) {
  *out = (struct spending){{0}};
  for (int i = 0; i < p->count; i++) {
    struct spending s;
    if (!problem_spending(p, &p->bindings[i], &s) || !add(out, &s)) return false;
  }
  return true;
}
