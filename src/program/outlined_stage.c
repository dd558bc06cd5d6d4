/* The stage that an outlined expression becomes, and the load that stands in its place. See
 * program_outline.c, which says which axes it has. */
#include "program/program_rebuild.h"

int outline_stage(struct change *c, const struct px_map *map) {
  const struct program_tensor *t = &c->from->tensors.data[c->reader];
  const char *names[PROGRAM_AXES];
  int64_t sizes[PROGRAM_AXES];
  int axis[PROGRAM_AXES];
  for (int i = 0; i < c->axis_count; i++) {
    names[i] = t->axes[c->axes[i].axis].name;
    sizes[i] = c->axes[i].size;
  }
  int made = program_stage(c->to, c->name, t->dtype, c->axis_count, names, sizes);
  for (int i = 0; i < PROGRAM_AXES; i++) axis[i] = px_int(c->to, 0);
  for (int i = 0; i < c->axis_count; i++) {
    const struct outlined_axis *a = &c->axes[i];
    int own = program_axis(c->to, made, i);
    axis[a->with >= 0 && a->step > 1 ? a->with : a->axis] = own;
    if (a->block) axis[a->with] = px_mod(c->to, own, px_int(c->to, a->block));
  }
  struct px_map own = *map;
  own.axis = axis;
  program_define(c->to, made, px_copy(c->to, c->from, c->node, &own));
  return made;
}

int outline_load(struct change *c, const int *axis) {
  int indices[PROGRAM_AXES];
  for (int i = 0; i < c->axis_count; i++) {
    const struct outlined_axis *a = &c->axes[i];
    if (a->block) {
      int block = px_int(c->to, a->block);
      indices[i] =
          px_add(c->to, px_mul(c->to, px_div(c->to, axis[a->axis], block), block), axis[a->with]);
      continue;
    }
    indices[i] = px_mul(c->to, axis[a->axis], px_int(c->to, a->step));
    if (a->with >= 0)
      indices[i] =
          px_add(c->to, indices[i], px_mul(c->to, axis[a->with], px_int(c->to, a->with_step)));
  }
  return px_load(c->to, c->fresh, c->axis_count, indices);
}
