/* A product of what is 0 beyond a border is computed within the border only. See program_edit.h.
 *
 *     (if 1 <= h && h < 57 then X[h-1] else 0) * W[k]   ->   if 1 <= h && h < 57 then X[h-1] * W[k] else 0
 */
#include "program/affine.h"
#include "program/program_rebuild.h"

static bool is_zero(const struct program *p, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  return n->op == PX_NUMBER && n->number == 0;
}

/* `if CONDITION then X else 0`, or the other way round, of a condition of indices. */
static bool has_border(const struct program *p, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  return n->op == PX_SELECT && n->sort == PX_VALUE && asks_indices(p, n->arg[0]) &&
         is_zero(p, n->arg[1]) != is_zero(p, n->arg[2]);
}

static int border_product(struct program *p, int a, int b);

/* What has the border, times the other. */
static int within(struct program *p, int border, int other, bool first) {
  const struct px_node n = p->nodes.data[border]; /* a copy: the array may move */
  int at = is_zero(p, n.arg[1]) ? 2 : 1, arg[3] = {n.arg[0], n.arg[1], n.arg[2]};
  arg[at] = first ? border_product(p, arg[at], other) : border_product(p, other, arg[at]);
  return p->failed ? -1 : px_select(p, arg[0], arg[1], arg[2]);
}

static int border_product(struct program *p, int a, int b) {
  if (p->failed) return -1;
  if (has_border(p, a)) return within(p, a, b, true);
  if (has_border(p, b)) return within(p, b, a, false);
  return px_raw(p, PX_MUL, a, b, -1, 0, 0);
}

int border_moved(struct program *p, int expr) {
  if (p->failed) return -1;
  const struct px_node n = p->nodes.data[expr];
  int arg[3] = {-1, -1, -1};
  bool changed = false;
  if (n.sort != PX_VALUE || n.op == PX_LOAD) return expr;
  for (int i = 0; i < 3 && n.arg[i] >= 0; i++) {
    arg[i] = border_moved(p, n.arg[i]);
    if (p->failed) return -1;
    changed |= arg[i] != n.arg[i];
  }
  if (n.op == PX_MUL && (has_border(p, arg[0]) || has_border(p, arg[1])))
    return border_product(p, arg[0], arg[1]);
  return changed ? px_raw(p, n.op, arg[0], arg[1], arg[2], 0, 0) : expr;
}

bool border_multiplied(const struct program *p, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->sort != PX_VALUE || n->op == PX_LOAD) return false;
  if (n->op == PX_MUL && (has_border(p, n->arg[0]) || has_border(p, n->arg[1]))) return true;
  for (int i = 0; i < 3 && n->arg[i] >= 0; i++)
    if (border_multiplied(p, n->arg[i])) return true;
  return false;
}
