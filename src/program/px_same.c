/* Predicates on expressions: equality, dependence on an axis, index conditions. */
#include <math.h>

#include "program/affine.h"

static bool same_load(const struct program *p, const struct px_node *x, const struct px_node *y) {
  if (x->tensor != y->tensor) return false;
  for (int i = 0; i < p->tensors.data[x->tensor].rank; i++)
    if (!px_same(p, p->indices.data[x->first + i], p->indices.data[y->first + i])) return false;
  return true;
}

bool px_same(const struct program *p, int a, int b) {
  if (a == b) return true;
  if (a < 0 || b < 0) return false;
  const struct px_node *x = &p->nodes.data[a], *y = &p->nodes.data[b];
  if (x->op != y->op || x->size != y->size || x->sort != y->sort) return false;
  switch (x->op) {
    case PX_INT:
    case PX_BOOL: return x->integer == y->integer;
    case PX_NUMBER: return x->number == y->number && !signbit(x->number) == !signbit(y->number);
    case PX_AXIS: return x->integer == y->integer && x->tensor == y->tensor;
    case PX_LOAD: return same_load(p, x, y);
    default:
      return px_same(p, x->arg[0], y->arg[0]) && px_same(p, x->arg[1], y->arg[1]) &&
             px_same(p, x->arg[2], y->arg[2]);
  }
}

bool px_mentions(const struct program *p, int expr, int axis) {
  if (expr < 0 || axis < 0) return false;
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op == PX_AXIS) return n->integer == axis;
  if (n->op == PX_LOAD) {
    for (int i = 0; i < p->tensors.data[n->tensor].rank; i++)
      if (px_mentions(p, p->indices.data[n->first + i], axis)) return true;
    return false;
  }
  return px_mentions(p, n->arg[0], axis) || px_mentions(p, n->arg[1], axis) ||
         px_mentions(p, n->arg[2], axis);
}

bool is_index_condition(const struct program *p, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->sort == PX_INDEX || n->op == PX_BOOL) return true;
  if (n->sort == PX_VALUE) return false;
  for (int i = 0; i < 3 && n->arg[i] >= 0; i++)
    if (!is_index_condition(p, n->arg[i])) return false;
  return true;
}
