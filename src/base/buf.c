/* See buf.h. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory_call.h"
#include "base/number.h"

static void reserve(struct buf *buf, size_t extra) {
  size_t need = buf->length + extra + 1;
  if (need <= buf->capacity) return;
  size_t capacity = buf->capacity ? 2 * buf->capacity : 256;
  if (capacity < need) capacity = need;
  buf->text = mem_grow(buf->text, capacity);
  buf->capacity = capacity;
}

void buf_bytes(struct buf *buf, const char *bytes, size_t length) {
  reserve(buf, length);
  if (length) memcpy(buf->text + buf->length, bytes, length); /* of nothing, bytes may be NULL */
  buf->length += length;
  buf->text[buf->length] = '\0';
}

void buf_puts(struct buf *buf, const char *text) {
  buf_bytes(buf, text, strlen(text));
}

void buf_printf(struct buf *buf, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int length = text_vformat(NULL, 0, format, args);
  va_end(args);
  if (length < 0) mem_fail(strlen(format)); /* the C library had no memory */
  reserve(buf, (size_t)length);
  va_start(args, format);
  text_vformat(buf->text + buf->length, (size_t)length + 1, format, args);
  va_end(args);
  buf->length += (size_t)length;
}

void buf_pad(struct buf *buf, size_t line_start, size_t column) {
  while (buf->length - line_start < column) buf_puts(buf, " ");
}

char *buf_take(struct buf *buf) {
  reserve(buf, 0);
  buf->text[buf->length] = '\0';
  char *text = buf->text;
  *buf = (struct buf){0};
  return text;
}

void buf_free(struct buf *buf) {
  mem_free(buf->text);
  *buf = (struct buf){0};
}
