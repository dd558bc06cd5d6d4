// The C of a bound schedule: its code after all passes, printed.
#ifndef EMIT_TREE_H
#define EMIT_TREE_H

#include "code/pipeline.h"
#include "emit/emit.h"

static inline canvas_status emit_tree(canvas_context *ctx, const struct loop_tree *tree,
                                      const struct emit_options *options, struct buf *out) {
  struct code *code;
  canvas_status status = pipeline_run(ctx, tree, NULL, &code);
  if (status != CANVAS_OK) return status;
  status = emit_c(ctx, code, tree, options, out);
  code_free(code);
  return status;
}

#endif
