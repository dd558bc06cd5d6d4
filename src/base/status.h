/* Errors: a status is returned, the error message stands in the context.
 *
 * A function that can fail returns `canvas_status` and writes its result through its last argument.
 * `fail` composes the one error message (what first, the subject in quotes, what to do) and returns the
 * status, so that a check reads `return fail(ctx, CANVAS_BAD_INPUT, "...")`; TRY passes a failure on.
 */
#ifndef CANVAS_BASE_STATUS_H
#define CANVAS_BASE_STATUS_H

#include "canvas.h"

enum { MESSAGE_SIZE = 1024 };

struct canvas_context {
  char message[MESSAGE_SIZE]; /* the error message of the last failure, "" before the first */
};

#if defined(__GNUC__)
#define PRINTF_LIKE(at, first) __attribute__((format(printf, at, first)))
#else
#define PRINTF_LIKE(at, first)
#endif

/* Writes the error message into `ctx` and returns `status`. */
canvas_status fail(canvas_context *ctx, canvas_status status, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* Passes a failure on to the caller. */
#define TRY(call)                                   \
  do {                                              \
    canvas_status try_status = (call);              \
    if (try_status != CANVAS_OK) return try_status; \
  } while (0)

#endif
