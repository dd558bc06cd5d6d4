/* The few pieces of JSON that the system writes, and a strict reader of one flat object.
 *
 * Numbers are written so that they are read as the same bits. A string is UTF-8: what is no UTF-8 is written
 * as U+FFFD, so that every line that is written can be read by any reader of JSON.
 */
#ifndef CANVAS_BASE_JSON_H
#define CANVAS_BASE_JSON_H

#include <stdbool.h>

#include "base/buf.h"

void json_string(struct buf *out, const char *text); /* quoted and escaped */
void json_number(struct buf *out, double value);     /* null where it is not finite */

/* One object of strings, numbers, true, false and null, none of them nested. Where a value may stand, nothing
 * else is let pass: no comment, no comma too many, no NaN, no control character in a string. */
enum json_kind { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING };

struct json_reader {
  canvas_context *ctx;
  const char *start, *p, *end;
  bool begun;

  /* the current member, until the next */
  struct buf key;
  enum json_kind kind;
  struct buf text; /* of a string, or as a number is written; with a NUL and none within */
};

void json_open(struct json_reader *r, canvas_context *ctx, const char *text, size_t length);
/* Moves to the next member; *found is false where the object, and with it the text, has ended.
 * CANVAS_BAD_INPUT: "column C: expected ..." */
canvas_status json_next(struct json_reader *r, bool *found);
void json_close(struct json_reader *r);

#endif
