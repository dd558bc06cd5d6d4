/* Schedules explained: in numbers, and as a picture. */
#include "api/handle.h"
#include "explain/explain.h"

canvas_status canvas_schedule_explain(canvas_context *ctx, const canvas_program *program,
                                      const canvas_schedule *schedule, char **out) {
  struct loop_tree *tree;
  struct buf text = {0};
  TRY(loop_tree_bind(ctx, program_of(program), schedule_of(schedule), NULL, &tree));
  canvas_status status = schedule_explain(ctx, tree, &text);
  loop_tree_free(tree);
  if (status == CANVAS_OK)
    *out = buf_take(&text);
  else
    buf_free(&text);
  return status;
}

canvas_status canvas_schedule_dot(canvas_context *ctx, const canvas_program *program,
                                  const canvas_schedule *schedule, char **out) {
  struct loop_tree *tree;
  struct buf text = {0};
  TRY(loop_tree_bind(ctx, program_of(program), schedule_of(schedule), NULL, &tree));
  schedule_dot(tree, &text);
  loop_tree_free(tree);
  *out = buf_take(&text);
  return CANVAS_OK;
}
