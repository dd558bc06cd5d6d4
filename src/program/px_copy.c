/* Copies an expression to another program, or to another place of the same one. See program.h.
 *
 * The simplifying builder builds the copy, so conditions and indices that the sizes of the new axes
 * decide are simplified. Inlining, packing and the binding of axes to loops use this.
 */
#include <math.h>

#include "program/program.h"

/* Builds `if every index is inside the tensor then load else nan`; 0 instead of nan for i32. */
static int guard_load(struct program *to, const struct program_tensor *t, const int *indices,
                      int load) {
  int inside = px_bool(to, true);
  for (int i = 0; i < t->rank; i++)
    inside = px_and(to, inside, px_inside(to, indices[i], 0, t->axes[i].size));
  return px_select(to, inside, load, t->dtype == PROGRAM_I32 ? px_int(to, 0) : px_number(to, NAN));
}

static int copy_load(struct program *to, const struct program *from, int expr,
                     const struct px_map *map) {
  const struct px_node load = from->nodes.data[expr], *n = &load;
  int rank = from->tensors.data[n->tensor].rank, indices[PROGRAM_AXES];
  for (int i = 0; i < rank; i++)
    indices[i] = px_copy(to, from, from->indices.data[n->first + i], map);
  int copy = map->load ? map->load(to, n->tensor, rank, indices, map->data)
                       : px_load(to, n->tensor, rank, indices);
  if (!map->guarded || !map->guarded[expr]) return copy;
  return guard_load(to, &from->tensors.data[n->tensor], indices, copy);
}

int px_apply(struct program *to, enum px_op op, const int *arg) {
  switch (op) {
    case PX_ADD: return px_add(to, arg[0], arg[1]);
    case PX_SUB: return px_sub(to, arg[0], arg[1]);
    case PX_MUL: return px_mul(to, arg[0], arg[1]);
    case PX_DIV: return px_div(to, arg[0], arg[1]);
    case PX_MOD: return px_mod(to, arg[0], arg[1]);
    case PX_MIN: return px_min(to, arg[0], arg[1]);
    case PX_MAX: return px_max(to, arg[0], arg[1]);
    case PX_NEG: return px_neg(to, arg[0]);
    case PX_SELECT: return px_select(to, arg[0], arg[1], arg[2]);
    case PX_AND: return px_and(to, arg[0], arg[1]);
    case PX_OR: return px_or(to, arg[0], arg[1]);
    case PX_NOT: return px_not(to, arg[0]);
    case PX_REAL: return px_real(to, arg[0]);
    default: break;
  }
  if (scalar_ops[op].sorts == SORTS_TEST) return px_compare(to, op, arg[0], arg[1]);
  return px_raw(to, op, arg[0], arg[1], -1, 0, 0); /* nothing to simplify */
}

static bool is_replaced(const struct program *from, int expr, const struct px_map *map) {
  return map->replaced_node && px_same(from, expr, map->replaced_node - 1);
}

int px_copy(struct program *to, const struct program *from, int expr, const struct px_map *map) {
  if (to->failed) return -1;
  if (!map->divisors_only && is_replaced(from, expr, map)) return map->replacement;
  struct px_node n = from->nodes.data[expr]; /* a copy: `to` may be `from`, whose array moves */
  int arg[3] = {-1, -1, -1};
  switch (n.op) {
    case PX_INT: return px_int(to, n.integer);
    case PX_NUMBER: return px_number(to, n.number);
    case PX_BOOL: return px_bool(to, n.integer);
    case PX_AXIS: return map->axis[n.integer];
    case PX_LOAD: return copy_load(to, from, expr, map);
    default: break;
  }
  if (map->divisors_only && n.op == PX_DIV && is_replaced(from, n.arg[1], map)) {
    arg[0] = px_copy(to, from, n.arg[0], map);
    return px_raw(to, PX_MUL, arg[0], map->replacement, -1, 0, 0);
  }
  for (int i = 0; i < 3; i++)
    if (n.arg[i] >= 0) arg[i] = px_copy(to, from, n.arg[i], map);
  if (map->verbatim) return px_raw(to, n.op, arg[0], arg[1], arg[2], 0, 0);
  return px_apply(to, n.op, arg);
}
