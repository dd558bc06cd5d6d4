/* Writes the header of a network's C, and an example that runs it. See network_code.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "emit/print_c.h"
#include "net/network_code.h"

/* ---- the header ------------------------------------------------------------------------------ */

/* Writes a foreign name so that it cannot end the comment around it. */
static void put_foreign(const char *text, struct buf *out) {
  for (const char *p = text; *p; p++) {
    bool ends = p > text && ((*p == '/' && p[-1] == '*') || (*p == '*' && p[-1] == '/'));
    char c = *p < 32 || *p > 126 || ends ? '?' : *p;
    buf_bytes(out, &c, 1);
  }
}

/* weights[3]: w f32 [64, 3, 7, 7] from conv1.weight */
static void put_tensor(const struct net_tensor *t, const char *list, int number, struct buf *out) {
  buf_printf(out, " *     %s[%d]: %s %s [", list, number, t->name, program_dtype_name(t->dtype));
  for (int i = 0; i < t->rank; i++) buf_printf(out, "%s%" PRId64, i ? ", " : "", t->sizes[i]);
  buf_puts(out, "]");
  if (t->dtype == PROGRAM_I32) {
    buf_printf(out, " from %" PRId64 " to %" PRId64, t->least, t->most);
    if (t->rising) buf_puts(out, ", rising along its last axis");
  }
  if (t->source) {
    buf_puts(out, " from ");
    put_foreign(t->source, out);
  }
  buf_puts(out, "\n");
}

static void put_given(const struct network *n, enum net_kind kind, const char *list,
                      struct buf *out) {
  int number = 0;
  for (int i = 0; i < n->tensors.count; i++)
    if (n->tensors.data[i].kind == kind) put_tensor(&n->tensors.data[i], list, number++, out);
}

static void put_tensors(const struct network *n, struct buf *out) {
  put_given(n, NET_INPUT, "inputs", out);
  put_given(n, NET_WEIGHT, "weights", out);
  for (int i = 0; i < n->outputs.count; i++)
    put_tensor(&n->tensors.data[n->outputs.data[i]], "outputs", i, out);
}

static int count_steps(const struct network_code *code) {
  struct net_step *steps;
  int count = network_steps(code, &steps);
  mem_free(steps);
  return count;
}

/* Writes a macro, wrapped by backslashes. */
static void put_macro(struct buf *line, struct buf *out) {
  struct buf wrapped = {0};
  print_wrapped(line->text, line->length, 0, &wrapped);
  for (const char *p = wrapped.text; *p; p++)
    if (*p == '\n')
      buf_puts(out, " \\\n");
    else
      buf_bytes(out, p, 1);
  buf_puts(out, "\n");
  buf_free(&wrapped);
  line->length = 0;
}

/* Macros of a list: the number of its tensors, and an initialiser of their sizes in bytes. */
static void put_list(const char *name, const char *list, const struct net_tensor *const *tensors,
                     int count, struct buf *out) {
  struct buf line = {0};
  buf_printf(out, "#define %s_%s_count %d\n", name, list, count);
  buf_printf(&line, "#define %s_%s_bytes {%s", name, list, count ? "" : "0");
  for (int i = 0; i < count; i++)
    buf_printf(&line, "%s%" PRId64, i ? ", " : "", network_bytes(tensors[i]));
  buf_puts(&line, "}");
  put_macro(&line, out);
  buf_free(&line);
}

static void put_lists(const struct network_code *code, struct buf *out) {
  static const struct {
    enum net_kind kind;
    const char *list;
  } given[] = {{NET_INPUT, "inputs"}, {NET_WEIGHT, "weights"}};
  const struct network *n = code->network;
  const struct net_tensor **tensors =
      mem_alloc((size_t)(n->tensors.count + n->outputs.count + 1) * sizeof *tensors);
  for (int k = 0; k < 2; k++) {
    int count = 0;
    for (int i = 0; i < n->tensors.count; i++)
      if (n->tensors.data[i].kind == given[k].kind) tensors[count++] = &n->tensors.data[i];
    put_list(code->name, given[k].list, tensors, count, out);
  }
  for (int i = 0; i < n->outputs.count; i++) tensors[i] = &n->tensors.data[n->outputs.data[i]];
  put_list(code->name, "outputs", tensors, n->outputs.count, out);
  mem_free(tensors);
}

static void put_sizes(const struct network_code *code, struct buf *out) {
  buf_printf(out, "#define %s_packed_bytes %" PRId64 "\n", code->name, code->packed_bytes);
  buf_printf(out, "#define %s_arena_bytes %" PRId64 "\n", code->name, code->arena_bytes);
  buf_printf(out, "#define %s_calls %d\n", code->name, count_steps(code));
  buf_puts(out, "/* Tensors of each kind, and the bytes of each, in order. */\n");
  put_lists(code, out);
  buf_puts(out, "\n");
}

static void put_wrapped(struct buf *line, struct buf *out) {
  print_wrapped(line->text, line->length, 0, out);
  buf_puts(out, "\n");
  line->length = 0;
}

static void put_functions(const struct network_code *code, struct buf *out) {
  struct buf line = {0};
  buf_printf(
      out,
      "/* Fills `packed` with what weights alone decide; again when weights have changed. */\n"
      "int %s_load(const void *const *weights, void *packed);\n\n"
      "/* Computes the outputs. Any number of threads may call it, each with an arena of its "
      "own. */\n",
      code->name);
  buf_printf(&line, "int %s_run(" NETWORK_PARAMETERS ");", code->name);
  put_wrapped(&line, out);
  buf_printf(out, "\n/* One call of those that %s_run makes, in order, from 0. */\n", code->name);
  buf_printf(&line, "int %s_call(int call, " NETWORK_PARAMETERS ");", code->name);
  put_wrapped(&line, out);
  buf_free(&line);
}

void network_header(const struct network_code *code, struct buf *out) {
  const char *name = code->name;
  buf_printf(out, "/* The network '%s', written by canvas %s.\n *\n", code->network->name,
             canvas_version());
  put_tensors(code->network, out);
  buf_printf(out,
             " *\n * Tensors are whole, row-major, and do not overlap. `packed` and `arena` are "
             "memory of %s_packed_bytes\n * and %s_arena_bytes bytes at multiples of 64. Functions "
             "return 0, or 1 where there was no memory.\n */\n",
             name, name);
  buf_printf(out, "#ifndef CANVAS_%s_H\n#define CANVAS_%s_H\n\n", name, name);
  buf_puts(out, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
  put_sizes(code, out);
  put_functions(code, out);
  buf_puts(out, "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}

/* ---- an example ------------------------------------------------------------------------------ */

static const char example[] =
    "static const size_t inputs_bytes[] = @_inputs_bytes, weights_bytes[] = @_weights_bytes;\n"
    "static const size_t outputs_bytes[] = @_outputs_bytes;\n"
    "\n"
    "/* Memory at a multiple of 64 bytes; all zeros, where a real program reads its weights and "
    "images. */\n"
    "static void *memory(size_t bytes) {\n"
    "  size_t rounded = (bytes + 63) / 64 * 64 + 64;\n"
    "  void *p = aligned_alloc(64, rounded);\n"
    "  if (!p) exit(1);\n"
    "  return memset(p, 0, rounded);\n"
    "}\n"
    "\n"
    "int main(void) {\n"
    "  const void *weights[@_weights_count + 1], *inputs[@_inputs_count + 1];\n"
    "  void *outputs[@_outputs_count];\n"
    "  for (int i = 0; i < @_weights_count; i++) weights[i] = memory(weights_bytes[i]);\n"
    "  for (int i = 0; i < @_inputs_count; i++) inputs[i] = memory(inputs_bytes[i]);\n"
    "  for (int i = 0; i < @_outputs_count; i++) outputs[i] = memory(outputs_bytes[i]);\n"
    "  void *packed = memory(@_packed_bytes), *arena = memory(@_arena_bytes);\n"
    "  if (@_load(weights, packed)) return 1;\n"
    "  if (@_run(weights, packed, inputs, outputs, arena)) return 1;\n"
    "  for (int i = 0; i < @_outputs_count; i++)\n"
    "    printf(\"output %d: %zu bytes\\n\", i, outputs_bytes[i]);\n"
    "  for (int i = 0; i < @_weights_count; i++) free((void *)weights[i]);\n"
    "  for (int i = 0; i < @_inputs_count; i++) free((void *)inputs[i]);\n"
    "  for (int i = 0; i < @_outputs_count; i++) free(outputs[i]);\n"
    "  free(packed);\n"
    "  free(arena);\n"
    "  return 0;\n"
    "}\n";

void network_example(const struct network_code *code, struct buf *out) {
  buf_printf(out, "/* Loads and runs the network '%s' once:  cc -O2 main.c %s.c -lm */\n",
             code->network->name, code->name);
  buf_printf(
      out, "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\n#include \"%s.h\"\n\n",
      code->name);
  for (const char *p = example; *p; p++) {
    if (*p == '@')
      buf_puts(out, code->name);
    else
      buf_bytes(out, p, 1);
  }
}
