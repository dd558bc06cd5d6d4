/* The header of an emitted function: its declaration, and the shapes of its tensors. See emit.h. */
#include <inttypes.h>

#include "emit/emit_base.h"

static void put_tensor(const struct emitter *e, int tensor, struct buf *out) {
  const struct program_tensor *t = &e->program->tensors.data[tensor];
  buf_printf(out, " *   %s: %s [", e->tensor_name[tensor], program_dtype_name(t->dtype));
  for (int i = 0; i < t->rank; i++)
    buf_printf(out, "%s%s:%" PRId64, i ? ", " : "", t->axes[i].name, t->axes[i].size);
  buf_puts(out, "]");
  if (t->dtype == PROGRAM_I32) {
    buf_printf(out, " from %" PRId64 " to %" PRId64, t->least, t->most);
    if (t->rising) buf_puts(out, ", rising along its last axis");
  }
  buf_puts(out, "\n");
}

canvas_status emit_c_header(canvas_context *ctx, const struct loop_tree *tree,
                            const struct emit_options *options, struct buf *out) {
  struct emitter e;
  TRY(emit_c_open(ctx, &e, tree, options));
  const struct program *p = tree->program;
  buf_printf(out, "/* %s, written by canvas %s.\n *\n", e.function, canvas_version());
  buf_puts(out,
           " * Tensors are whole, row-major, the last axis contiguous, and do not overlap.\n"
           " * It returns 0, or 1 where there was no memory for its buffers.\n *\n");
  for (int i = 0; i < p->inputs.count; i++) put_tensor(&e, p->inputs.data[i], out);
  buf_puts(out, " * to\n");
  for (int i = 0; i < p->outputs.count; i++) put_tensor(&e, p->outputs.data[i], out);
  buf_puts(out, " */\n");
  buf_printf(out, "#ifndef CANVAS_%s_H\n#define CANVAS_%s_H\n\n#include <stdint.h>\n\n", e.function,
             e.function);
  buf_puts(out, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
  struct buf line = {0};
  buf_printf(&line, "int %s(", e.function);
  emit_c_parameters(&e, "", &line);
  buf_puts(&line, ");");
  emit_wrapped(line.text, line.length, 0, out);
  buf_puts(out, "\n\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
  buf_free(&line);
  emit_c_close(&e);
  return CANVAS_OK;
}
