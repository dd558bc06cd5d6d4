/* Replays a record on a program and binds its schedule. See record.h. */
#include <string.h>

#include "base/saturating.h"
#include "program/program_cost.h"
#include "rewrite/program_edit.h"
#include "tune/record.h"

enum { TIMES_TENSORS = 16, LEAST_MEMORY = 256 << 20 };

/* Prefixes the error message with the name of a part. */
static canvas_status within(canvas_context *ctx, const char *part, canvas_status status) {
  char why[MESSAGE_SIZE];
  if (status == CANVAS_OK) return status;
  memcpy(why, ctx->message, sizeof why);
  return fail(ctx, status, "%s of the record: %s", part, why);
}

static canvas_status find_given(canvas_context *ctx, const struct record *r,
                                const struct record_use *use, struct program **out) {
  if (use->given) return *out = program_copy(use->given), CANVAS_OK;
  return within(ctx, "the program", program_parse(ctx, r->program, strlen(r->program), out));
}

static canvas_status replay(canvas_context *ctx, const struct record *r, int winograd,
                            struct recorded *out) {
  const struct replay_rules rules = {winograd};
  if (r->outdated)
    return fail(ctx, CANVAS_BAD_INPUT, "the record says what edits made and not which they are");
  return within(ctx, "the edits",
                program_replay(ctx, out->given, r->edits ? r->edits : "", &rules, &out->program));
}

static canvas_status find_machine(canvas_context *ctx, const struct record *r,
                                  const struct record_use *use, struct machine *out) {
  if (use->machine) return *out = *use->machine, CANVAS_OK;
  return within(ctx, "the machine", machine_parse(ctx, r->machine, strlen(r->machine), out));
}

/* Limit of the bytes of all buffers: some times the program's tensors, e.g. for image windows. */
static int64_t most_memory(const struct program *p) {
  int64_t bytes = LEAST_MEMORY;
  for (int i = 0; i < p->tensors.count; i++) {
    int64_t size = saturating_mul(program_elements(p, i), program_dtype_bytes(PROGRAM_F64));
    bytes = saturating_add(bytes, saturating_mul(TIMES_TENSORS, size));
  }
  return bytes;
}

static canvas_status bind_tree(canvas_context *ctx, struct recorded *out) {
  struct machine limited = out->machine;
  int64_t most = most_memory(out->given);
  if (limited.memory > most) limited.memory = most;
  TRY(within(ctx, "the schedule",
             loop_tree_bind(ctx, out->program, out->schedule, &limited, &out->tree)));
  out->tree->machine.memory = out->machine.memory;
  return out->tree->open_holes ? fail(ctx, CANVAS_BAD_INPUT, "the schedule of the record has holes")
                               : CANVAS_OK;
}

static canvas_status bind(canvas_context *ctx, const struct record *r, const struct record_use *use,
                          struct recorded *out) {
  TRY(find_given(ctx, r, use, &out->given));
  TRY(replay(ctx, r, use->winograd, out));
  TRY(find_machine(ctx, r, use, &out->machine));
  TRY(within(ctx, "the schedule",
             schedule_parse(ctx, r->schedule, strlen(r->schedule), &out->schedule)));
  return bind_tree(ctx, out);
}

canvas_status record_bind(canvas_context *ctx, const struct record *r, const struct record_use *use,
                          struct recorded *out) {
  *out = (struct recorded){0};
  canvas_status status = bind(ctx, r, use, out);
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
