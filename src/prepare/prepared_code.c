/* Prints NAME_prepare and NAME into one text. See prepared_code.h. */
#include "prepare/prepared_code.h"

#include <stdlib.h>

#include "base/memory.h"
#include "code/pipeline.h"
#include "prepare/prepare.h"

/* The C of one function, or its declaration. */
static canvas_status emit_one(canvas_context *ctx, const struct loop_tree *tree,
                              const struct emit_options *options,
                              const struct emit_prepare *prepare, bool header, struct buf *text) {
  struct code *code;
  canvas_status status = CANVAS_OK;
  TRY(pipeline_run(ctx, tree, NULL, &code));
  if (header)
    emit_c_header(code, tree->program, options, prepare, text);
  else
    status = emit_c(ctx, code, tree, options, text);
  code_free(code);
  return status;
}

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
  if (!header) {
    status = emit_one(ctx, p->prepare.tree, &first, NULL, false, text);
    buf_puts(text, "\n");
  }
  if (status == CANVAS_OK) status = emit_one(ctx, p->rest.tree, &second, &prepare, header, text);
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
                                  : emit_one(ctx, tree, options, NULL, header, text);
  prepare_free(prepared);
  return status;
}

static canvas_status print_one(canvas_context *ctx, const struct loop_tree *tree, const char *after,
                               struct buf *text) {
  struct code *code;
  TRY(pipeline_run(ctx, tree, after, &code));
  code_print(code, text);
  code_free(code);
  return CANVAS_OK;
}

canvas_status prepared_statements(canvas_context *ctx, const struct loop_tree *tree,
                                  const char *after, struct buf *text) {
  struct prepared *prepared;
  TRY(prepare_split(ctx, tree, &prepared));
  canvas_status status = CANVAS_OK;
  if (prepared) {
    status = print_one(ctx, prepared->prepare.tree, after, text);
    buf_puts(text, "\n");
  }
  if (status == CANVAS_OK)
    status = print_one(ctx, prepared ? prepared->rest.tree : tree, after, text);
  prepare_free(prepared);
  return status;
}
