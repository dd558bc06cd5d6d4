/* Finds the stages that depend on constant inputs only: they can be computed before a call. */
#include "base/memory.h"
#include "program/program.h"

struct loads {
  const struct program *p;
  const bool *constant; /* by tensor */
  bool any, varying;    /* seen: any load; a load that is not constant */
};

static void see(struct loads *l, int expr) {
  if (expr < 0 || l->varying) return;
  const struct px_node *n = &l->p->nodes.data[expr];
  for (int i = 0; i < 3; i++) see(l, n->arg[i]);
  if (n->op != PX_LOAD) return;
  l->any = true;
  if (!l->constant[n->tensor]) l->varying = true;
  for (int i = 0; i < l->p->tensors.data[n->tensor].rank; i++)
    see(l, l->p->indices.data[n->first + i]);
}

bool program_stage_is_constant(const struct program *p, int stage, const bool *constant) {
  const struct program_tensor *t = &p->tensors.data[stage];
  struct loads l = {.p = p, .constant = constant};
  see(&l, t->body);
  for (int i = t->rank; i < t->rank + t->reductions; i++) {
    see(&l, t->axes[i].low);
    see(&l, t->axes[i].high);
  }
  return l.any && !l.varying;
}

bool *program_constants(const struct program *p) {
  bool *constant = mem_alloc((size_t)p->tensors.count + 1);
  for (int i = 0; i < p->tensors.count; i++) {
    const struct program_tensor *t = &p->tensors.data[i];
    constant[i] = t->is_input ? t->constant : program_stage_is_constant(p, i, constant);
  }
  return constant;
}
