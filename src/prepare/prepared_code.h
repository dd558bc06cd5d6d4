/* The C of a bound schedule, where asked for in two functions: NAME_prepare does once what depends on
 * constant inputs only (prepare/prepare.h), NAME the rest. */
#ifndef CANVAS_PREPARE_PREPARED_CODE_H
#define CANVAS_PREPARE_PREPARED_CODE_H

#include "base/buf.h"
#include "emit/emit.h"

/* With `prepare`, both functions where there is something to prepare; with `header`, their
 * declarations instead. */
canvas_status prepared_code(canvas_context *ctx, const struct loop_tree *tree,
                            const struct emit_options *options, bool prepare, bool header,
                            struct buf *text);

/* The code of the same functions as text (code_print), NAME_prepare's first, after a pass; NULL: after all. */
canvas_status prepared_statements(canvas_context *ctx, const struct loop_tree *tree,
                                  const char *after, struct buf *text);

#endif
