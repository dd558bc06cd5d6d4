/* A record, parsed again and bound. See record.h. */
#include <string.h>

#include "tune/record.h"

/* The error message of a part, after its name. */
static canvas_status within(canvas_context *ctx, const char *part, canvas_status status) {
  char why[MESSAGE_SIZE];
  if (status == CANVAS_OK) return status;
  memcpy(why, ctx->message, sizeof why);
  return fail(ctx, status, "%s of the record: %s", part, why);
}

static canvas_status parse(canvas_context *ctx, const char *part, const char *text,
                           struct program **out) {
  return within(ctx, part, program_parse(ctx, text, strlen(text), out));
}

/* Edits leave inputs and outputs where they are in memory. */
static canvas_status check_edited(canvas_context *ctx, const struct recorded *r) {
  return program_same_tensors(r->given, r->program)
             ? CANVAS_OK
             : fail(ctx, CANVAS_BAD_INPUT,
                    "the edited program of the record has other inputs and outputs than the "
                    "program");
}

static canvas_status bind(canvas_context *ctx, const struct record *r, struct recorded *out) {
  TRY(parse(ctx, "the edited program", r->edited, &out->program));
  TRY(parse(ctx, "the program", r->program, &out->given));
  TRY(check_edited(ctx, out));
  TRY(within(ctx, "the machine",
             machine_parse(ctx, r->machine, strlen(r->machine), &out->machine)));
  TRY(within(ctx, "the schedule",
             schedule_parse(ctx, r->schedule, strlen(r->schedule), &out->schedule)));
  TRY(within(ctx, "the schedule",
             loop_tree_bind(ctx, out->program, out->schedule, &out->machine, &out->tree)));
  return out->tree->open ? fail(ctx, CANVAS_BAD_INPUT, "the schedule of the record has holes")
                         : CANVAS_OK;
}

canvas_status record_bind(canvas_context *ctx, const struct record *r, struct recorded *out) {
  *out = (struct recorded){0};
  canvas_status status = bind(ctx, r, out);
  if (status != CANVAS_OK) recorded_free(out);
  return status;
}

void recorded_free(struct recorded *r) {
  loop_tree_free(r->tree);
  schedule_free(r->schedule);
  program_free(r->program);
  program_free(r->given);
  *r = (struct recorded){0};
}
