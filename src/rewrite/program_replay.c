/* Applies a list of edits from an untrusted text, such as a tuning log. See program_edit.h. */
#include <string.h>

#include "base/lexer.h"
#include "rewrite/program_edit.h"
#include "rewrite/program_rebuild.h"

/* ---- edits that an untrusted text may contain
 * -------------------------------------------------- */

/* Returns NULL, or a clause why an untrusted text may not contain the change. */
static const char *not_replayed(const struct change *c, const struct replay_rules *rules) {
  if (c->kind == CHANGE_TYPE) return "changes a data type, which a log may not do";
  if (c->kind == CHANGE_BORDER && !c->name)
    return "gives 0 instead of nan in the padding: a log may only contain 'border ... as NAME'";
  if (c->kind == CHANGE_WINOGRAD && c->winograd[c->tensor].tile > rules->winograd)
    return "rounds more than the convolution: allow it with --winograd";
  return NULL;
}

static canvas_status replay_one(canvas_context *ctx, const struct program *p, const char *text,
                                size_t length, const struct replay_rules *rules,
                                struct program **out) {
  struct change c;
  *out = NULL;
  canvas_status status = change_read(ctx, p, text, length, &c);
  const char *why = status == CANVAS_OK ? not_replayed(&c, rules) : NULL;
  if (why) status = fail(ctx, CANVAS_BAD_INPUT, "'%.60s' %s", c.text, why);
  if (status == CANVAS_OK) return change_finish(ctx, &c, out);
  program_free(c.to);
  change_close(&c);
  return status;
}

/* Puts the number of the edit before the error message. */
static canvas_status at_edit(canvas_context *ctx, int number, canvas_status status) {
  char why[MESSAGE_SIZE];
  if (status == CANVAS_OK) return status;
  memcpy(why, ctx->message, sizeof why);
  return fail(ctx, status, "edit %d: %s", number, why);
}

canvas_status program_replay(canvas_context *ctx, const struct program *p, const char *edits,
                             const struct replay_rules *rules, struct program **out) {
  struct program *now = program_copy(p), *next;
  int number = 0;
  *out = NULL;
  if (strlen(edits) > REPLAY_BYTES) {
    program_free(now);
    return fail(ctx, CANVAS_BAD_INPUT, "the edits take more than %d bytes", REPLAY_BYTES);
  }
  for (const char *at = edits; *at;) {
    size_t length = strcspn(at, "\n");
    canvas_status status =
        number == REPLAY_EDITS
            ? fail(ctx, CANVAS_BAD_INPUT, "there are more than %d edits", REPLAY_EDITS)
            : at_edit(ctx, number + 1, replay_one(ctx, now, at, length, rules, &next));
    program_free(now);
    if (status != CANVAS_OK) return status;
    now = next;
    number++;
    at += length + (at[length] == '\n');
  }
  *out = now;
  return CANVAS_OK;
}
