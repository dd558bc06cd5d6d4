/* Prints NAME_prepare and NAME into one text. See prepared_code.h. */
#include "prepare/prepared_code.h"

#include <stdlib.h>

#include "base/memory.h"
#include "prepare/prepare.h"

/* Prints NAME_prepare, then NAME; or the header of both. */
static canvas_status emit_prepared(canvas_context *ctx, const struct prepared *p,
                                   const struct emit_options *given, bool header,
                                   struct buf *text) {
  const struct emit_packed out = {p->count, p->offset, true}, in = {p->count, p->offset, false};
  struct emit_options first = *given, second = *given;
  char *name =
      given->function ? mem_strdup(given->function) : emit_c_function(p->rest.program->name);
  struct buf function = {0};
  buf_printf(&function, "%s_prepare", name);
  first.function = function.text;
  first.packed = &out;
  second.function = name;
  second.packed = &in;
  const struct emit_prepare prepare = {p->prepare.program, p->bytes};
  canvas_status status = CANVAS_OK;
  if (header) {
    status = emit_c_header(ctx, p->rest.tree, &second, &prepare, text);
  } else {
    status = emit_c(ctx, p->prepare.tree, &first, text);
    buf_puts(text, "\n");
    if (status == CANVAS_OK) status = emit_c(ctx, p->rest.tree, &second, text);
  }
  buf_free(&function);
  mem_free(name);
  return status;
}

canvas_status prepared_code(canvas_context *ctx, const struct loop_tree *tree,
                            const struct emit_options *options, bool prepare, bool header,
                            struct buf *text) {
  struct prepared *prepared = NULL;
  if (prepare) TRY(prepare_split(ctx, tree, &prepared));
  canvas_status status = prepared ? emit_prepared(ctx, prepared, options, header, text)
                         : header ? emit_c_header(ctx, tree, options, NULL, text)
                                  : emit_c(ctx, tree, options, text);
  prepare_free(prepared);
  return status;
}
