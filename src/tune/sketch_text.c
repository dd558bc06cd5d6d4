/* Reads a user's sketch: edits of the program, one to a line, then a schedule with holes.
 *
 *     edit pack W as W_p [co/32, ci, kh, kw, co%32]
 *
 *     h, w_o, co, ci, kh, kw, w_i:{7,14}:unroll, co_v:32:vec =>
 *         @Y = h, {w_o, w_i}/w, {co, co_v}/co // ci, kh, kw
 */
#include <string.h>

#include "rewrite/program_edit.h"
#include "tune/sketch.h"

static const char WORD[] = "edit ";

/* Length of the next line without its line break. */
static size_t line_length(const char *text, size_t length) {
  const char *end = memchr(text, '\n', length);
  return end ? (size_t)(end - text) : length;
}

static bool is_blank(const char *text, size_t length) {
  for (size_t i = 0; i < length; i++)
    if (text[i] == '#')
      return true;
    else if (text[i] != ' ' && text[i] != '\r')
      return false;
  return true;
}

static canvas_status edit(canvas_context *ctx, struct program **p, const char *text, size_t length,
                          int line) {
  canvas_context why;
  struct program *next;
  canvas_status status = program_edit(&why, *p, text, length, &next);
  if (status != CANVAS_OK) return fail(ctx, status, "edit in line %d: %s", line, why.message);
  program_free(*p);
  *p = next;
  return CANVAS_OK;
}

/* Edits the program by the lines at the head of the text. *schedule is the rest, preceded by as
 * many empty lines, so that line numbers stay right. */
static canvas_status edit_all(canvas_context *ctx, struct program **p, const char *text,
                              size_t length, struct buf *schedule) {
  size_t at = 0, word = sizeof WORD - 1;
  for (int number = 1; at < length; number++) {
    const char *start = text + at;
    size_t line = line_length(start, length - at);
    bool edits = line > word && !memcmp(start, WORD, word);
    if (!edits && !is_blank(start, line)) break;
    if (edits) TRY(edit(ctx, p, start + word, line - word, number));
    buf_puts(schedule, "\n");
    at += line + (at + line < length);
  }
  buf_bytes(schedule, text + at, length - at);
  return CANVAS_OK;
}

canvas_status sketch_from_text(canvas_context *ctx, const struct program *p, const char *text,
                               size_t length, struct sketch *out) {
  struct buf schedule = {0};
  *out = (struct sketch){.rule = mem_strdup("user"), .program = program_copy(p)};
  canvas_status status = edit_all(ctx, &out->program, text, length, &schedule);
  if (status == CANVAS_OK)
    status = schedule_parse(ctx, schedule.text, schedule.length, &out->schedule);
  buf_free(&schedule);
  if (status != CANVAS_OK) sketch_free(out);
  return status;
}
