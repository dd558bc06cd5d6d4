/* Programs: edits that give new programs, and the schedules that follow them. */
#include "api/api_call.h"
#include "api/handle.h"
#include "edit/schedule_follow.h"
#include "program/program_facts.h"
#include "rewrite/program_edit.h"

API_STATUS(canvas_program_edit,
           (canvas_context * ctx, const canvas_program *program, const char *edit, size_t length,
            canvas_program **out),
           (ctx, program, edit, length, out)) {
  NEED(program);
  NEED(out);
  struct program *p;
  TRY(program_edit(ctx, program_of(program), edit, length, &p));
  *out = (canvas_program *)p;
  return CANVAS_OK;
}

API_STATUS(canvas_program_replay,
           (canvas_context * ctx, const canvas_program *program, const char *edits, int winograd,
            canvas_program **out),
           (ctx, program, edits, winograd, out)) {
  NEED(program);
  NEED(edits);
  NEED(out);
  if (winograd) TRY(winograd_check_tile(ctx, winograd));
  const struct replay_rules rules = {winograd};
  struct program *p;
  TRY(program_replay(ctx, program_of(program), edits, &rules, &p));
  *out = (canvas_program *)p;
  return CANVAS_OK;
}

API_STATUS(canvas_program_winograd,
           (canvas_context * ctx, const canvas_program *program, int tile, canvas_program **out),
           (ctx, program, tile, out)) {
  NEED(program);
  NEED(out);
  const struct program *given = program_of(program);
  TRY(winograd_check_tile(ctx, tile));
  struct program *p = program_with_winograd(given, tile);
  if (!p)
    return fail(
        ctx, CANVAS_BAD_INPUT,
        "program '%.100s' has no convolution with windows of 3x3 that move by 1 in steps of 1",
        given->name);
  *out = (canvas_program *)p;
  return CANVAS_OK;
}

API_STATUS(canvas_bound_follow,
           (canvas_context * ctx, const canvas_bound *bound, const char *edit, size_t length,
            canvas_schedule **out),
           (ctx, bound, edit, length, out)) {
  NEED(bound);
  NEED(out);
  struct schedule *s;
  TRY(schedule_follow(ctx, bound->tree, edit, length, &s));
  *out = (canvas_schedule *)s;
  return CANVAS_OK;
}
