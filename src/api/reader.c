/* A text of many kernels and packs, read one by one.
 *
 * An item begins at the line whose first word is `canvas` (a version, so not the `canvas = ...` of a
 * node) and ends before the next such line. Items are parsed by themselves; the line in a message is
 * moved to where the item stands in the whole text.
 */
#include <stdlib.h>
#include <string.h>

#include "api/api_call.h"
#include "api/handle.h"

struct canvas_reader {
  char *text;
  size_t length, at; /* `at`: start of the next item */
  int line;          /* lines before `at` */
};

API_STATUS(canvas_reader_open,
           (canvas_context * ctx, const char *text, size_t length, canvas_reader **out),
           (ctx, text, length, out)) {
  NEED(out);
  if (length > TEXT_LIMIT)
    return fail(ctx, CANVAS_BAD_INPUT, "text of %zu bytes is over the limit of %d MiB", length,
                TEXT_LIMIT >> 20);
  if (!text && length) return fail(ctx, CANVAS_BAD_INPUT, "'text' is NULL, give one");
  canvas_reader *r = mem_alloc(sizeof *r);
  r->text = mem_strndup(length ? text : "", length);
  r->length = length;
  *out = r;
  return CANVAS_OK;
}

void canvas_reader_close(canvas_reader *r) {
  if (!r) return;
  mem_free(r->text);
  mem_free(r);
}

static const char *skip_blanks(const char *p, const char *end) {
  while (p < end && (*p == ' ' || *p == '\t' || *p == '\r')) p++;
  return p;
}

static bool begins_item(const char *line, const char *end) {
  static const char word[] = "canvas";
  const size_t length = sizeof word - 1;
  const char *p = skip_blanks(line, end);
  if ((size_t)(end - p) <= length || memcmp(p, word, length) != 0) return false;
  const char *after = skip_blanks(p + length, end);
  return after > p + length && after < end && *after != '=';
}

/* Where the item at r->at ends; *lines: how many lines it has; *blank: comments and blanks only. */
static size_t item_end(const canvas_reader *r, int *lines, bool *blank) {
  const char *end = r->text + r->length, *p = r->text + r->at;
  bool begun = false;
  *lines = 0;
  *blank = true;
  while (p < end) {
    bool begins = begins_item(p, end);
    if (begins && begun) break;
    begun |= begins;
    const char *first = skip_blanks(p, end), *stop = memchr(p, '\n', (size_t)(end - p));
    if (first < end && *first != '\n' && *first != '#') *blank = false;
    p = stop ? stop + 1 : end;
    ++*lines;
  }
  return (size_t)(p - r->text);
}

/* "line 3, ..." of an item becomes "line 13, ..." where ten lines stand before it. */
static void move_line(canvas_context *ctx, int lines) {
  char message[MESSAGE_SIZE], *rest;
  memcpy(message, ctx->message, sizeof message);
  if (!lines || strncmp(message, "line ", 5) != 0) return;
  long line = strtol(message + 5, &rest, 10);
  if (rest > message + 5) fail(ctx, CANVAS_BAD_INPUT, "line %ld%s", line + lines, rest);
}

API_STATUS(canvas_reader_next, (canvas_context * ctx, canvas_reader *reader, canvas_pack **out),
           (ctx, reader, out)) {
  NEED(reader);
  NEED(out);
  canvas_reader *r = reader;
  int lines;
  bool blank;
  size_t end = item_end(r, &lines, &blank);
  if (blank) return fail(ctx, CANVAS_NONE, "the text holds no kernel");
  struct pack *p = NULL;
  canvas_status status = pack_parse(ctx, r->text + r->at, end - r->at, &p);
  if (status != CANVAS_OK) {
    move_line(ctx, r->line);
    return status;
  }
  r->at = end;
  r->line += lines;
  *out = (canvas_pack *)p;
  return CANVAS_OK;
}

static canvas_status print_all(canvas_context *ctx, canvas_reader *r, struct buf *out) {
  for (;;) {
    canvas_pack *pack;
    canvas_status status = canvas_reader_next(ctx, r, &pack);
    if (status == CANVAS_NONE && out->length) return CANVAS_OK;
    if (status != CANVAS_OK) return status == CANVAS_NONE ? CANVAS_BAD_INPUT : status;
    for (const struct pack *p = pack_of(pack); p; p = p->next) {
      if (out->length) buf_puts(out, "\n");
      kernel_print(p->kernel, out);
    }
    canvas_pack_free(pack);
  }
}

API_STATUS(canvas_kernels_print,
           (canvas_context * ctx, const char *text, size_t length, char **out),
           (ctx, text, length, out)) {
  NEED(out);
  canvas_reader *r;
  struct buf b = {0};
  TRY(canvas_reader_open(ctx, text, length, &r));
  canvas_status status = print_all(ctx, r, &b);
  if (status == CANVAS_OK) *out = buf_take(&b);
  buf_free(&b);
  canvas_reader_close(r);
  return status;
}

/* The first item, which must be the last. */
API_STATUS(canvas_pack_parse,
           (canvas_context * ctx, const char *text, size_t length, canvas_pack **out),
           (ctx, text, length, out)) {
  NEED(out);
  canvas_reader *r;
  canvas_pack *pack, *second;
  TRY(canvas_reader_open(ctx, text, length, &r));
  canvas_status status = canvas_reader_next(ctx, r, &pack);
  if (status == CANVAS_NONE) status = CANVAS_BAD_INPUT;
  if (status == CANVAS_OK) {
    status = canvas_reader_next(ctx, r, &second);
    if (status == CANVAS_OK) {
      canvas_pack_free(second);
      status = fail(ctx, CANVAS_BAD_INPUT, "the text holds more than one kernel, give one");
    } else if (status == CANVAS_NONE) {
      ctx->message[0] = '\0';
      status = CANVAS_OK;
    }
    if (status != CANVAS_OK) canvas_pack_free(pack);
  }
  canvas_reader_close(r);
  if (status == CANVAS_OK) *out = pack;
  return status;
}

API_STATUS(canvas_kernel_parse,
           (canvas_context * ctx, const char *text, size_t length, canvas_kernel **out),
           (ctx, text, length, out)) {
  NEED(out);
  canvas_pack *pack;
  TRY(canvas_pack_parse(ctx, text, length, &pack));
  canvas_status status = CANVAS_OK;
  if (pack_of(pack)->next)
    status = fail(ctx, CANVAS_BAD_INPUT, "the text holds more than one kernel, give one");
  else
    *out = (canvas_kernel *)kernel_copy(pack_of(pack)->kernel);
  canvas_pack_free(pack);
  return status;
}
