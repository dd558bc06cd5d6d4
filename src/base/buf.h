/* A text buffer that grows: everything the system prints is built in one. */
#ifndef CANVAS_BASE_BUF_H
#define CANVAS_BASE_BUF_H

#include <stddef.h>

#include "base/status.h"

struct buf {
  char *text; /* NUL-terminated once anything was written; NULL while empty */
  size_t length, capacity;
};

void buf_bytes(struct buf *buf, const char *bytes, size_t length);
void buf_puts(struct buf *buf, const char *text);
void buf_printf(struct buf *buf, const char *format, ...) PRINTF_LIKE(2, 3);
void buf_pad(struct buf *buf, size_t line_start, size_t column); /* blanks up to `column` */
char *buf_take(struct buf *buf); /* the text, owned by the caller; the buffer is empty again */
void buf_free(struct buf *buf);

#endif
