/* Open axes, and the stride of an index along one. See build_parts.h. */
#include "code/build_parts.h"

static const struct px_node *node_of(const struct builder *b, int expr) {
  return &b->px->nodes.data[expr];
}

/* Opens an axis: a loop over [first, first + size) with this counter. */
int build_open_axis(struct builder *b, int counter, int64_t first, int64_t size) {
  const char *name = b->code->variables.data[counter].name;
  b->axis_variable[b->space.open] = counter;
  return loop_space_axis(&b->space, name, first, size);
}

/* The stride of the index along the axis; false if it is not constant. */
bool build_stride(const struct builder *b, int index, int axis, int64_t *stride) {
  struct affine a;
  *stride = 0;
  if (axis < 0) return true;
  if (!affine_of(b->px, index, &a)) return !px_mentions(b->px, index, axis);
  return affine_stride(b->px, &a, axis, stride);
}

/* The index where the axis is 0, of one with a stride. */
int build_at_zero(struct builder *b, int index, int axis) {
  struct affine a;
  if (!affine_of(b->px, index, &a)) return index;
  for (int i = a.count - 1; i >= 0; i--) {
    const struct px_node *n = node_of(b, a.term[i].expr);
    if (n->op == PX_AXIS && n->integer == axis) affine_drop(&a, i);
  }
  int at = affine_expr(b->px, &a);
  return b->px->failed ? index : at; /* reported at the end */
}
