/* Whether a program may write an output in place of an input. See memory_plan.h.
 *
 * It may if only the stage of the output reads the input, only at the element that it computes, and
 * does not reduce. No other stage may read the output, since a schedule may fill it in any order.
 */
#include "net/memory_plan.h"

static bool same_type(const struct program_tensor *a, const struct program_tensor *b) {
  if (a->dtype != b->dtype || a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; i++)
    if (a->axes[i].size != b->axes[i].size) return false;
  return true;
}

/* Whether the indices are the axes of `stage` in order. The index of an axis of size 1 may be 0. */
static bool is_own_element(const struct program *p, const struct px_node *load, int stage) {
  const struct program_tensor *t = &p->tensors.data[stage];
  for (int i = 0; i < t->rank; i++) {
    const struct px_node *index = &p->nodes.data[p->indices.data[load->first + i]];
    bool zero = index->op == PX_INT && index->integer == 0 && t->axes[i].size == 1;
    if (!zero && (index->op != PX_AXIS || index->integer != i)) return false;
  }
  return true;
}

struct reads {
  bool any, other; /* the tensor is read; it is read at another element than the stage's own */
};

static void find_reads(const struct program *p, int expr, int stage, int tensor, struct reads *r) {
  if (expr < 0) return;
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op == PX_LOAD) {
    int rank = p->tensors.data[n->tensor].rank;
    if (n->tensor == tensor) {
      r->any = true;
      r->other |= !is_own_element(p, n, stage);
    }
    for (int i = 0; i < rank; i++) find_reads(p, p->indices.data[n->first + i], stage, tensor, r);
    return;
  }
  for (int i = 0; i < 3; i++) find_reads(p, n->arg[i], stage, tensor, r);
}

static struct reads reads_of(const struct program *p, int stage, int tensor) {
  const struct program_tensor *t = &p->tensors.data[stage];
  struct reads r = {0};
  find_reads(p, t->body, stage, tensor, &r);
  for (int i = 0; i < t->reductions; i++) {
    find_reads(p, t->axes[t->rank + i].low, stage, tensor, &r);
    find_reads(p, t->axes[t->rank + i].high, stage, tensor, &r);
  }
  return r;
}

bool program_in_place(const struct program *p, int output, int input) {
  const struct program_tensor *out = &p->tensors.data[output];
  if (!same_type(out, &p->tensors.data[input]) || out->reductions) return false;
  for (int stage = 0; stage < p->tensors.count; stage++) {
    if (p->tensors.data[stage].is_input) continue;
    struct reads r = reads_of(p, stage, input);
    if (stage == output ? r.other : r.any) return false;
    if (stage != output && reads_of(p, stage, output).any) return false;
  }
  return true;
}
