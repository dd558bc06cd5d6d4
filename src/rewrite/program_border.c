/* The edit `border`: multiplies a zero-padded value inside its condition only. The condition then
 * encloses the whole product, so code can skip the padding.
 *
 *     Y[k:32, h:56] = (if 1 <= h+kh && h+kh < 57 then X[c, h+kh-1] else 0) * W[k, c, kh]
 *                     // sum c:64, kh:3         (one line in a file)
 * `border Y` ->
 *     Y[k:32, h:56] = if 1 <= h+kh && h+kh < 57 then X[c, h+kh-1] * W[k, c, kh] else 0
 *                     // sum c:64, kh:3
 *
 * The padding now gives 0 where 0 * W was nan, for an infinite or nan weight. `border Y as Z` keeps
 * the nan: stage Z sums the products 0 * W, and Y adds each of them once. Z is small: one element
 * per tap and output channel.
 *
 * `border Y as Z` ->
 *     Z[kh:3, k:32] = 0 * W[k, c, kh] // sum c:64
 *     Y[k:32, h:56] = if 1 <= h+kh && h+kh < 57 then X[c, h+kh-1] * W[k, c, kh]
 *                     else if c < 1 then Z[kh, k] else 0 // sum c:64, kh:3
 */
#include "program/affine.h"
#include "rewrite/program_rebuild.h"

static bool is_zero(const struct program *p, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  return n->op == PX_NUMBER && n->number == 0;
}

/* Whether the value is zero padded: `if CONDITION then X else 0` with an index condition, or with
 * the branches swapped. */
static bool is_padded(const struct program *p, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  return n->op == PX_SELECT && n->sort == PX_VALUE && is_index_condition(p, n->arg[0]) &&
         is_zero(p, n->arg[1]) != is_zero(p, n->arg[2]);
}

static int sink_product(struct program *p, int a, int b, int beyond);

/* The product of a padded value and another one, inside the select. `first`: the padded one is the
 * left factor. */
static int sink_into(struct program *p, int border, int other, bool first, int beyond) {
  const struct px_node n = p->nodes.data[border]; /* a copy: the array may move */
  int at = is_zero(p, n.arg[1]) ? 2 : 1, arg[3] = {n.arg[0], n.arg[1], n.arg[2]};
  arg[at] =
      first ? sink_product(p, arg[at], other, beyond) : sink_product(p, other, arg[at], beyond);
  if (beyond >= 0) arg[3 - at] = beyond;
  return p->failed ? -1 : px_select(p, arg[0], arg[1], arg[2]);
}

static int sink_product(struct program *p, int a, int b, int beyond) {
  if (p->failed) return -1;
  if (is_padded(p, a)) return sink_into(p, a, b, true, beyond);
  if (is_padded(p, b)) return sink_into(p, b, a, false, beyond);
  return px_raw(p, PX_MUL, a, b, -1, 0, 0);
}

int sink_products(struct program *p, int expr, int beyond) {
  if (p->failed) return -1;
  const struct px_node n = p->nodes.data[expr];
  int arg[3] = {-1, -1, -1};
  bool changed = false;
  if (n.sort != PX_VALUE || n.op == PX_LOAD) return expr;
  for (int i = 0; i < 3 && n.arg[i] >= 0; i++) {
    arg[i] = sink_products(p, n.arg[i], beyond);
    if (p->failed) return -1;
    changed |= arg[i] != n.arg[i];
  }
  if (n.op == PX_MUL && (is_padded(p, arg[0]) || is_padded(p, arg[1])))
    return sink_product(p, arg[0], arg[1], beyond);
  return changed ? px_raw(p, n.op, arg[0], arg[1], arg[2], 0, 0) : expr;
}

bool has_padded_product(const struct program *p, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->sort != PX_VALUE || n->op == PX_LOAD) return false;
  if (n->op == PX_MUL && (is_padded(p, n->arg[0]) || is_padded(p, n->arg[1]))) return true;
  for (int i = 0; i < 3 && n->arg[i] >= 0; i++)
    if (has_padded_product(p, n->arg[i])) return true;
  return false;
}

/* ---- the sum of the products in the padding
 * ---------------------------------------------------- */

/* The axes that the padding conditions depend on. */
static uint32_t condition_axes(const struct program *p, const struct program_tensor *t, int expr) {
  uint32_t axes = 0;
  while (is_padded(p, expr)) {
    const struct px_node *n = &p->nodes.data[expr];
    for (int i = 0; i < t->rank + t->reductions; i++)
      if (px_mentions(p, n->arg[0], i)) axes |= 1u << i;
    expr = is_zero(p, n->arg[1]) ? n->arg[2] : n->arg[1];
  }
  return axes;
}

const char *find_padding_sum(const struct program *p, int stage, struct padding_sum *out) {
  const struct program_tensor *t = &p->tensors.data[stage];
  const struct px_node *n = &p->nodes.data[t->body];
  if (t->reducer != REDUCE_SUM || n->op != PX_MUL ||
      is_padded(p, n->arg[0]) == is_padded(p, n->arg[1]))
    return "is not a sum of a zero-padded value times one without padding";
  int border = n->arg[is_padded(p, n->arg[0]) ? 0 : 1];
  uint32_t asked = condition_axes(p, t, border);
  *out = (struct padding_sum){.factor = n->arg[border == n->arg[0] ? 1 : 0]};
  for (int i = 0; i < t->rank + t->reductions; i++) {
    bool summed = i >= t->rank && !(asked >> i & 1);
    if (i >= t->rank && t->axes[i].low >= 0) return "has a reduction whose bounds depend on data";
    if (summed) out->reduced |= 1u << i;
    if (!summed && px_mentions(p, out->factor, i)) out->axes |= 1u << i;
  }
  return out->reduced ? NULL : "has padding conditions on every axis that it sums over";
}

/* The axes of the padding stage. Reductions come first, so that the innermost axis, which becomes
 * the vector axis, is one of the stage's own. */
static int padding_axes(const struct change *c, int *axis) {
  const struct program_tensor *t = &c->from->tensors.data[c->tensor];
  int count = 0;
  for (int own = 0; own < 2; own++)
    for (int i = 0; i < t->rank + t->reductions; i++)
      if (c->padding_sum.axes >> i & 1 && (i < t->rank) == own) axis[count++] = i;
  return count;
}

int padding_stage(struct change *c, const struct px_map *map) {
  const struct program_tensor *t = &c->from->tensors.data[c->tensor];
  const char *names[PROGRAM_AXES];
  int64_t sizes[PROGRAM_AXES];
  int of[PROGRAM_AXES], axis[PROGRAM_AXES], count = padding_axes(c, of);
  for (int i = 0; i < count; i++) {
    names[i] = t->axes[of[i]].name;
    sizes[i] = t->axes[of[i]].size;
  }
  enum program_dtype dtype = t->dtype == PROGRAM_BF16 ? PROGRAM_F32 : t->dtype;
  int made = program_stage(c->to, c->name, dtype, count, names, sizes);
  for (int i = 0; i < PROGRAM_AXES; i++) axis[i] = px_int(c->to, 0);
  for (int i = 0; i < count; i++) axis[of[i]] = program_axis(c->to, made, i);
  for (int i = t->rank; i < t->rank + t->reductions; i++)
    if (c->padding_sum.reduced >> i & 1 && px_mentions(c->from, c->padding_sum.factor, i))
      axis[i] = program_reduce(c->to, made, REDUCE_SUM, t->axes[i].name, t->axes[i].size);
  struct px_map own = *map;
  own.axis = axis;
  int factor = px_copy(c->to, c->from, c->padding_sum.factor, &own);
  int zero = px_number(c->to, 0);
  program_define(c->to, made, px_raw(c->to, PX_MUL, zero, factor, -1, 0, 0));
  return made;
}

int padding_load(struct change *c, const int *axis) {
  const struct program_tensor *t = &c->from->tensors.data[c->tensor];
  int of[PROGRAM_AXES], indices[PROGRAM_AXES], count = padding_axes(c, of);
  int first = px_bool(c->to, true);
  for (int i = 0; i < count; i++) indices[i] = axis[of[i]];
  for (int i = t->rank; i < t->rank + t->reductions; i++)
    if (c->padding_sum.reduced >> i & 1)
      first = px_and(c->to, first, px_compare(c->to, PX_LT, axis[i], px_int(c->to, 1)));
  int load = px_load(c->to, c->new_stage, count, indices);
  return px_select(c->to, first, load, px_number(c->to, 0));
}
