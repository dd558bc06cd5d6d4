/* Edits a program, makes its default schedule and binds it. If that fails, schedules the program without edits. */
#include "autoschedule/default.h"

canvas_status default_bind(canvas_context *ctx, const struct program *p,
                           const struct machine *machine, struct default_bound *out) {
  struct default_edited edited = default_edit(p, machine);
  *out = (struct default_bound){.edited = edited.program};
  if (!edited.program)
    return default_bind_layout(ctx, p, machine, edited.layout, &out->schedule, &out->tree);
  canvas_status status =
      default_bind_layout(ctx, edited.program, machine, edited.layout, &out->schedule, &out->tree);
  if (status == CANVAS_OK) return status;
  program_free(edited.program);
  out->edited = NULL;
  return default_bind_layout(ctx, p, machine, LAYOUT_EITHER, &out->schedule, &out->tree);
}
