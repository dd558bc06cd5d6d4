/* The header of an emitted function: its declaration, and the shapes of its tensors. See emit.h. */
#include <inttypes.h>
#include <string.h>

#include "emit/print_c.h"

static void put_tensor(const struct program_tensor *t, const char *name, struct buf *out) {
  buf_printf(out, " *   %s: %s [", name, program_dtype_name(t->dtype));
  for (int i = 0; i < t->rank; i++)
    buf_printf(out, "%s%s:%" PRId64, i ? ", " : "", t->axes[i].name, t->axes[i].size);
  buf_puts(out, "]");
  if (t->dtype == PROGRAM_I32) {
    buf_printf(out, " from %" PRId64 " to %" PRId64, t->least, t->most);
    if (t->rising) buf_puts(out, ", rising along its last axis");
  }
  buf_puts(out, "\n");
}

static const struct program_tensor *shown_tensor(const struct program *p, int tensor,
                                                 const struct program *given) {
  const struct program_tensor *t = &p->tensors.data[tensor];
  int found = given ? program_find(given, t->name) : -1;
  return found >= 0 ? &given->tensors.data[found] : t;
}

/* The tensors in the comment, with the axes of `given`, and the parameters of the declaration. */
static void put_parameters(const struct program *p, const struct emit_packed *packed,
                           const struct program *given, struct names *names, struct buf *comment,
                           struct buf *out) {
  int first = p->inputs.count - (packed && !packed->outputs ? packed->count : 0);
  for (int i = 0; i < p->inputs.count + p->outputs.count; i++) {
    bool input = i < p->inputs.count;
    if (packed && i >= first && i < first + packed->count) {
      if (i == first)
        buf_printf(out, "%s%svoid *%s", i ? ", " : "", input ? "const " : "",
                   names_choose(names, "packed", false));
      if (i == first) buf_puts(comment, input ? "" : " * to packed\n");
      continue;
    }
    int tensor = input ? p->inputs.data[i] : p->outputs.data[i - p->inputs.count];
    const struct program_tensor *t = shown_tensor(p, tensor, given);
    const char *name = names_choose(names, t->name, false);
    if (i == p->inputs.count) buf_puts(comment, " * to\n");
    put_tensor(t, name, comment);
    buf_printf(out, "%s%s%s *%s", i ? ", " : "", input ? "const " : "", c_type_name(t->dtype),
               name);
  }
}

/* int NAME_prepare(..., void *packed); and its part of the comment */
static void put_prepare(const struct program *p, const char *function, int64_t bytes,
                        const struct program *given, struct buf *comment, struct buf *out) {
  const struct emit_packed packed = {.count = p->outputs.count, .outputs = true};
  struct names names = {0};
  struct buf line = {0};
  buf_printf(
      comment,
      " * %s_prepare computes what %s reads at `packed`, %s_packed_bytes bytes at a multiple\n"
      " * of 64: anew whenever what it takes has changed. Of\n",
      function, function, function);
  buf_printf(&line, "int %s_prepare(", function);
  put_parameters(p, &packed, given, &names, comment, &line);
  buf_puts(&line, ");");
  buf_printf(out, "#define %s_packed_bytes %" PRId64 "\n", function, bytes);
  print_wrapped(line.text, line.length, 0, out);
  buf_puts(out, "\n");
  buf_puts(comment, " *\n");
  buf_free(&line);
  names_free(&names);
}

static void put_workspace_comment(const char *function, struct buf *out) {
  buf_printf(out,
             " * It keeps the memory of these buffers for its next call, until\n"
             " * %s_free_workspace. %s_with_workspace is the same on\n"
             " * memory of %s_workspace_bytes bytes at a multiple of 64 that no\n"
             " * other call uses at the same time, and asks for none.\n",
             function, function, function);
}

/* `line` is the function's declaration, whose parameters are reused. */
static void put_workspace(const char *function, int64_t bytes, struct names *names,
                          const char *line, struct buf *out) {
  const char *parameters = strchr(line, '(') + 1;
  struct buf text = {0};
  buf_printf(out, "\n#define %s_workspace_bytes %" PRId64 "\n", function, bytes);
  buf_printf(&text, "int %s_with_workspace(%.*s, void *%s);", function, (int)strlen(parameters) - 2,
             parameters, names_choose(names, "workspace", false));
  print_wrapped(text.text, text.length, 0, out);
  buf_printf(out, "\nvoid %s_free_workspace(void);", function);
  buf_free(&text);
}

void emit_c_header(const struct code *code, const struct program *p,
                   const struct emit_options *options, const struct emit_prepare *prepare,
                   struct buf *out) {
  struct names names = {0};
  struct buf comment = {0}, line = {0}, before = {0};
  int64_t workspace = workspace_bytes(code);
  const struct program *given = options ? options->given : NULL;
  const char *function =
      names_choose(&names, options && options->function ? options->function : p->name, true);
  buf_printf(&line, "int %s(", function);
  if (prepare) {
    put_prepare(prepare->program, function, prepare->bytes, given, &comment, &before);
    buf_printf(&comment, " * %s takes\n", function);
  }
  put_parameters(p, options ? options->packed : NULL, given, &names, &comment, &line);
  buf_puts(&line, ");");
  buf_printf(out, "/* %s, written by canvas %s.\n *\n", function, canvas_version());
  buf_puts(out,
           " * Tensors are whole, row-major, the last axis contiguous, and do not overlap.\n"
           " * It returns 0, or 1 where there was no memory for its buffers.\n");
  if (workspace) put_workspace_comment(function, out);
  buf_puts(out, " *\n");
  buf_bytes(out, comment.text, comment.length);
  buf_puts(out, " */\n");
  buf_printf(out, "#ifndef CANVAS_%s_H\n#define CANVAS_%s_H\n\n#include <stdint.h>\n\n", function,
             function);
  buf_puts(out, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
  buf_bytes(out, before.text, before.length);
  print_wrapped(line.text, line.length, 0, out);
  if (workspace) put_workspace(function, workspace, &names, line.text, out);
  buf_puts(out, "\n\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
  buf_free(&line);
  buf_free(&before);
  buf_free(&comment);
  names_free(&names);
}
