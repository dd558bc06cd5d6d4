/* Code of a program under a schedule: its text. */
#include "api/handle.h"
#include "emit/emit.h"
#include "bind/loop_tree.h"

static canvas_status emit_bound(canvas_context *ctx, const struct program *p,
                                const struct schedule *s, const canvas_emit_options *options,
                                char **out) {
  const struct emit_options given = {.function = options ? options->function : NULL,
                                     .source = options ? options->source : NULL};
  struct loop_tree *tree;
  struct buf text = {0};
  TRY(loop_tree_bind(ctx, p, s, NULL, &tree));
  canvas_status status = options && options->header ? emit_c_header(ctx, tree, &given, &text)
                                                    : emit_c(ctx, tree, &given, &text);
  loop_tree_free(tree);
  if (status == CANVAS_OK) *out = buf_take(&text);
  buf_free(&text);
  return status;
}

char *canvas_program_function(const canvas_program *program) {
  return emit_c_function(program_of(program)->name);
}

canvas_status canvas_program_emit(canvas_context *ctx, const canvas_program *program,
                                  const canvas_schedule *schedule,
                                  const canvas_emit_options *options, char **out) {
  canvas_schedule *made = NULL;
  if (!schedule) TRY(canvas_schedule_default(ctx, program, &made));
  canvas_status status =
      emit_bound(ctx, program_of(program), schedule_of(schedule ? schedule : made), options, out);
  canvas_schedule_free(made);
  return status;
}
