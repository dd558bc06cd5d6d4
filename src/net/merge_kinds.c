/* Classifies programs: element-wise, without reductions, data movement. See merge_calls.h. */
#include <stdlib.h>

#include "net/merge_calls.h"
#include "program/affine.h"

bool program_is_flat(const struct program *p) {
  for (int i = 0; i < p->tensors.count; i++)
    if (p->tensors.data[i].reductions) return false;
  return true;
}

/* Whether the indices are the stage's axes in order. The index of an axis of size 1 may be 0. */
static bool is_own_element(const struct program *p, const struct px_node *load,
                           const struct program_tensor *stage) {
  const struct program_tensor *t = &p->tensors.data[load->tensor];
  if (t->rank != stage->rank) return false;
  for (int i = 0; i < t->rank; i++) {
    const struct px_node *at = &p->nodes.data[p->indices.data[load->first + i]];
    if (t->axes[i].size != stage->axes[i].size) return false;
    bool zero = at->op == PX_INT && at->integer == 0 && t->axes[i].size == 1;
    if (!zero && (at->op != PX_AXIS || at->integer != i)) return false;
  }
  return true;
}

/* Finds loads of tensors that depend on the input: of the same element, or of another one. */
static void find_loads(const struct program *p, int expr, const struct program_tensor *stage,
                       const bool *depends, bool *own, bool *other) {
  if (expr < 0) return;
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op == PX_LOAD) {
    if (!depends[n->tensor]) return;
    if (is_own_element(p, n, stage))
      *own = true;
    else
      *other = true;
    return;
  }
  for (int i = 0; i < 3; i++) find_loads(p, n->arg[i], stage, depends, own, other);
}

bool program_is_elementwise(const struct program *p, int input) {
  bool *depends = mem_alloc((size_t)p->tensors.count + 1), elementwise = true;
  depends[input] = true;
  for (int i = 0; i < p->tensors.count && elementwise; i++) {
    const struct program_tensor *t = &p->tensors.data[i];
    bool own = false, other = false;
    if (t->is_input) continue;
    find_loads(p, t->body, t, depends, &own, &other);
    depends[i] = own;
    elementwise = !other && !(own && t->reductions);
  }
  for (int i = 0; i < p->outputs.count; i++)
    elementwise = elementwise && depends[p->outputs.data[i]];
  mem_free(depends);
  return elementwise;
}

bool stage_is_elementwise(const struct program *p, int stage, int tensor) {
  bool *depends = mem_alloc((size_t)p->tensors.count + 1), own = false, other = false;
  const struct program_tensor *t = &p->tensors.data[stage];
  depends[tensor] = true;
  find_loads(p, t->body, t, depends, &own, &other);
  mem_free(depends);
  return own && !other && !t->reductions;
}

static bool has_load(const struct program *p, int expr) {
  if (expr < 0) return false;
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op == PX_LOAD) return true;
  return has_load(p, n->arg[0]) || has_load(p, n->arg[1]) || has_load(p, n->arg[2]);
}

static bool has_product(const struct program *p, int expr) {
  if (expr < 0) return false;
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op == PX_MUL && has_load(p, n->arg[0]) && has_load(p, n->arg[1])) return true;
  for (int i = 0; i < 3 && n->op != PX_LOAD; i++)
    if (has_product(p, n->arg[i])) return true;
  return false;
}

bool stage_is_contraction(const struct program *p, int stage) {
  const struct program_tensor *t = &p->tensors.data[stage];
  return t->reductions && has_product(p, t->body);
}

static bool moves_data(const struct program *p, int expr, int *loads) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op == PX_LOAD) return ++*loads == 1;
  if (n->op == PX_NUMBER) return true;
  return n->op == PX_SELECT && is_index_condition(p, n->arg[0]) &&
         moves_data(p, n->arg[1], loads) && moves_data(p, n->arg[2], loads);
}

bool program_moves_data(const struct program *p) {
  for (int i = 0; i < p->tensors.count; i++) {
    int loads = 0;
    if (p->tensors.data[i].is_input) continue;
    if (p->tensors.data[i].reductions || !moves_data(p, p->tensors.data[i].body, &loads))
      return false;
  }
  return true;
}
