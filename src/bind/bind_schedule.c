/* Binds a schedule to its program: the table of contents. loop_tree.h describes the result; bind.h
 * is shared by the files that do the work.
 */
#include <stdlib.h>

#include "bind/bind.h"

/* The steps that need every extent. */
static canvas_status bind_numbers(struct binder *b) {
  TRY(check_regions(b));
  TRY(check_limits(b));
  bind_lanes(b);
  TRY(bind_unroll(b));
  return bind_storage(b);
}

static canvas_status bind_all(struct binder *b) {
  TRY(schedule_verify(b->ctx, b->s));
  TRY(bind_names(b));
  TRY(bind_paths(b));
  TRY(check_dyn(b));
  TRY(bind_extents(b));
  TRY(bind_compute_at(b));
  TRY(bind_buffers(b));
  TRY(check_marks(b));
  TRY(check_loads(b));
  if (b->tree->open_holes) return CANVAS_OK;
  loop_space_open(&b->space, b->tree);
  canvas_status status = bind_numbers(b);
  loop_space_close(&b->space);
  return status;
}

static struct loop_tree *new_tree(const struct program *program, const struct schedule *schedule,
                                  const struct machine *machine) {
  struct loop_tree *tree = mem_alloc(sizeof *tree);
  tree->program = program;
  tree->schedule = schedule;
  tree->machine = *machine;
  tree->extents = mem_alloc(((size_t)schedule->levels.count + 1) * sizeof *tree->extents);
  tree->holes = mem_alloc((size_t)schedule->levels.count + 1);
  tree->loops = mem_alloc((size_t)schedule->nodes.count * sizeof *tree->loops);
  return tree;
}

static void close_binder(struct binder *b) {
  mem_free(b->stage_of);
  mem_free(b->depth);
  mem_free(b->looped);
  mem_free(b->first_split);
  mem_free(b->splits.data);
  mem_free(b->reads.data);
}

canvas_status loop_tree_bind(canvas_context *ctx, const struct program *program,
                             const struct schedule *schedule, const struct machine *machine,
                             struct loop_tree **out) {
  struct binder b = {
      .ctx = ctx, .p = program, .s = schedule, .tree = new_tree(program, schedule, machine)};
  canvas_status status = bind_all(&b);
  close_binder(&b);
  if (status == CANVAS_OK)
    *out = b.tree;
  else
    loop_tree_free(b.tree);
  return status;
}
