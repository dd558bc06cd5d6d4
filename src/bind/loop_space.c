/* Index expressions over the loops around a stage. See loop_space.h. */
#include "bind/loop_space.h"

#include <stdlib.h>

/* The tensors of the program come first in the scratch program, so loads keep their tensor's
 * index. */
void loop_space_open(struct loop_space *space, const struct loop_tree *tree) {
  const struct program *from = tree->program;
  int levels = tree->schedule->levels.count, tensors = from->tensors.count;
  *space = (struct loop_space){.tree = tree, .p = program_new("loops"), .loops = tensors};
  for (int i = 0; i < tensors; i++) {
    struct program_tensor t = from->tensors.data[i];
    t.rank = 1;
    t.reductions = 0;
    VEC_PUSH(&space->p->tensors, t);
  }
  struct program_tensor loops = {.name = "loops", .rank = PROGRAM_AXES, .body = -1};
  VEC_PUSH(&space->p->tensors, loops);
  space->digit = mem_alloc(((size_t)levels + 1) * sizeof *space->digit);
  space->stage_of = mem_alloc(((size_t)tensors + 1) * sizeof *space->stage_of);
  for (int i = 0; i < levels; i++) space->digit[i] = -1;
  for (int i = 0; i < tensors; i++) space->stage_of[i] = -1;
  for (int i = 0; i < tree->count; i++) space->stage_of[tree->stages[i].tensor] = i;
}

void loop_space_close(struct loop_space *space) {
  program_free(space->p);
  mem_free(space->digit);
  mem_free(space->stage_of);
}

/* ---- loops ---- */

int loop_space_axis(struct loop_space *space, const char *name, int64_t first, int64_t size) {
  int at = space->open++;
  space->name[at] = name;
  space->p->tensors.data[space->loops].axes[at] =
      (struct program_axis){.name = name, .size = size, .first = first, .low = -1, .high = -1};
  return program_axis(space->p, space->loops, at);
}

struct space_checkpoint loop_space_checkpoint(const struct loop_space *space) {
  return (struct space_checkpoint){space->p->nodes.count, space->p->indices.count, space->open};
}

void loop_space_rollback(struct loop_space *space, struct space_checkpoint to) {
  space->open = to.open;
  if (space->p->failed) return;
  space->p->nodes.count = to.nodes;
  space->p->indices.count = to.indices;
}

static void leave(struct loop_space *space) {
  for (int i = 0; space->entered && i < space->entered->steps; i++)
    space->digit[space->entered->path[i].level] = -1;
  space->p->failed = false;
  space->p->nodes.count = space->p->indices.count = space->open = 0;
}

/* A dyn loop starts at the axis's `first`. */
void loop_space_enter(struct loop_space *space, const struct bound_stage *stage) {
  const struct program_tensor *t = &space->tree->program->tensors.data[stage->tensor];
  leave(space);
  space->entered = stage;
  for (int i = 0; i < stage->steps; i++) {
    const struct step *s = &stage->path[i];
    const char *name = space->tree->schedule->levels.data[s->level].name;
    int64_t first = s->dyn && s->axis >= 0 ? t->axes[s->axis].first : 0;
    int axis = loop_space_axis(space, name, first, s->extent);
    space->digit[s->level] = s->extent == 1 && !s->dyn ? px_int(space->p, 0) : axis;
  }
}

/* ---- axes and places ---- */

int space_axis(const struct loop_space *space, const struct bound_stage *stage, int axis) {
  int sum = -1;
  for (int i = 0; i < stage->steps; i++) {
    const struct step *s = &stage->path[i];
    if (s->axis != axis || space->digit[s->level] < 0) continue;
    int part = px_mul(space->p, space->digit[s->level], px_int(space->p, s->weight));
    sum = sum < 0 ? part : px_add(space->p, sum, part);
  }
  return sum;
}

static int row_major(struct program *p, int flat, int64_t extent, int at) {
  return px_add(p, px_mul(p, flat, px_int(p, extent)), at);
}

static int place_in_tensor(struct program *p, const struct program_tensor *t, const int *indices) {
  int flat = px_int(p, 0);
  for (int i = 0; i < t->rank; i++) flat = row_major(p, flat, t->axes[i].size, indices[i]);
  return flat;
}

/* The row-major place in the buffer of a stage, or in the tensor of an input. */
static int place_of(struct loop_space *space, int tensor, const int *indices) {
  struct program *p = space->p;
  const struct program_tensor *t = &space->tree->program->tensors.data[tensor];
  int stage = space->stage_of[tensor], flat = px_int(p, 0);
  if (stage < 0) return place_in_tensor(p, t, indices);
  const struct bound_stage *b = &space->tree->stages[stage];
  for (int i = 0; i < b->dims; i++) {
    const struct buffer_axis *d = &b->layout[i];
    int at = indices[d->axis];
    if (d->weight > 1) at = px_div(p, at, px_int(p, d->weight));
    if (d->weight * d->extent < t->axes[d->axis].size) /* the axis has digits outside compute_at */
      at = px_mod(p, at, px_int(p, d->extent));
    flat = row_major(p, flat, d->padded_extent, at);
  }
  return flat;
}

static int load(struct program *to, int tensor, int rank, const int *indices, void *data) {
  for (int i = 0; i < rank; i++)
    if (indices[i] < 0) return -1;
  int flat = place_of(data, tensor, indices);
  return px_load(to, tensor, 1, &flat);
}

static void axes_of(struct loop_space *space, const struct bound_stage *stage,
                    int axes[PROGRAM_AXES]) {
  const struct program_tensor *t = &space->tree->program->tensors.data[stage->tensor];
  int zero = px_int(space->p, 0);
  for (int i = 0; i < t->rank + t->reductions; i++) {
    axes[i] = space_axis(space, stage, i);
    if (axes[i] < 0) axes[i] = zero;
  }
}

int space_expr(struct loop_space *space, const struct bound_stage *stage, int expr) {
  return space_expr_within(space, stage, expr, 0);
}

int space_expr_within(struct loop_space *space, const struct bound_stage *stage, int expr,
                      uint64_t within) {
  int axes[PROGRAM_AXES];
  const struct program_tensor *t = &space->tree->program->tensors.data[stage->tensor];
  axes_of(space, stage, axes);
  for (int i = 0; i < t->rank; i++)
    if (within >> i & 1) axes[i] = px_min(space->p, axes[i], px_int(space->p, t->axes[i].size - 1));
  struct px_map map = {.axis = axes, .load = load, .data = space, .guarded = space->tree->guarded};
  return px_copy(space->p, space->tree->program, expr, &map);
}

bool loop_space_index(struct loop_space *space, int index, struct affine *sum) {
  int expr = space_expr(space, space->entered, index);
  return !space->p->failed && affine_of(space->p, expr, sum);
}

int space_place(struct loop_space *space, const struct bound_stage *stage) {
  int axes[PROGRAM_AXES];
  axes_of(space, stage, axes);
  return place_of(space, stage->tensor, axes);
}

/* The place of an accumulator: the digits of the spatial loops inside `start`, lanes padded to
 * vectors. */
int space_sum_place(struct loop_space *space, const struct bound_stage *stage) {
  const struct schedule_node *nodes = space->tree->schedule->nodes.data;
  int flat = px_int(space->p, 0);
  for (unsigned vec = 0; vec <= LOOP_VEC; vec += LOOP_VEC)
    for (int i = stage_step(stage, stage->start); i < stage->steps; i++) {
      const struct step *s = &stage->path[i];
      if ((nodes[s->node].loop.marks & LOOP_VEC) != vec || !stage_spatial(space->tree, stage, i))
        continue;
      int digit = space->digit[s->level];
      int64_t room = step_padded_extent(space->tree, s);
      flat = row_major(space->p, flat, room, digit < 0 ? px_int(space->p, 0) : digit);
    }
  return flat;
}
