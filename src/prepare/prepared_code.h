/* The C of a bound schedule, in one function or in two: NAME_prepare computes once what depends on
 * constant inputs only (prepare.h), NAME the rest. */
#ifndef CANVAS_PREPARE_PREPARED_CODE_H
#define CANVAS_PREPARE_PREPARED_CODE_H

#include "base/buf.h"
#include "emit/emit.h"

/* `prepare`: prints both functions, if there is something to prepare. `header`: prints declarations
 * only. */
canvas_status prepared_code(canvas_context *ctx, const struct loop_tree *tree,
                            const struct emit_options *options, bool prepare, bool header,
                            struct buf *text);

/* The code of the same functions as text (code_print), NAME_prepare's first, after a pass; NULL: after all. */
canvas_status prepared_statements(canvas_context *ctx, const struct loop_tree *tree,
                                  const char *after, struct buf *text);

#endif
