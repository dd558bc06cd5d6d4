/* The edits `outline`, `columns` and `reciprocal`: the stage that computes the outlined value, and
 * the load that replaces the value. program_outline.c shows them, and chooses the axes. */
#include "program/interpret.h"
#include "rewrite/program_rebuild.h"

/* Whether storing the value as bf16 rounds nothing: it is loaded from bf16, or a number that bf16
 * has. */
static bool is_of_bf16(const struct program *p, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op == PX_LOAD) return p->tensors.data[n->tensor].dtype == PROGRAM_BF16;
  if (n->op == PX_NUMBER) return program_stored(PROGRAM_BF16, n->number) == n->number;
  return n->op == PX_SELECT && is_of_bf16(p, n->arg[1]) && is_of_bf16(p, n->arg[2]);
}

/* A bf16 stage rounds its result only, so a value that it computes from stays f32. */
static enum program_dtype outlined_dtype(const struct change *c) {
  enum program_dtype dtype = c->from->tensors.data[c->consumer].dtype;
  return dtype == PROGRAM_BF16 && !is_of_bf16(c->from, c->node) ? PROGRAM_F32 : dtype;
}

int outline_stage(struct change *c, const struct px_map *map) {
  const struct program_tensor *t = &c->from->tensors.data[c->consumer];
  const char *names[PROGRAM_AXES];
  int64_t sizes[PROGRAM_AXES];
  int axis[PROGRAM_AXES];
  for (int i = 0; i < c->axis_count; i++) {
    names[i] = t->axes[c->axes[i].axis].name;
    sizes[i] = c->axes[i].size;
  }
  int made = program_stage(c->to, c->name, outlined_dtype(c), c->axis_count, names, sizes);
  for (int i = 0; i < PROGRAM_AXES; i++) axis[i] = px_int(c->to, 0);
  for (int i = 0; i < c->axis_count; i++) {
    const struct outlined_axis *a = &c->axes[i];
    int own = program_axis(c->to, made, i);
    axis[a->with >= 0 && a->step > 1 ? a->with : a->axis] = own;
    if (a->block) axis[a->with] = px_mod(c->to, own, px_int(c->to, a->block));
  }
  struct px_map own = *map;
  own.axis = axis;
  int value = px_copy(c->to, c->from, c->node, &own);
  if (c->kind == CHANGE_RECIPROCAL) {
    int one = px_number(c->to, 1);
    value = px_raw(c->to, PX_DIV, one, value, -1, 0, 0);
  }
  program_define(c->to, made, value);
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
  return px_load(c->to, c->new_stage, c->axis_count, indices);
}
