/* Writes the C text of a network's own functions. See network_code.h.
 *
 *     static int block_conv(const float *X, ..);       functions of programs, or declarations
 *
 *     int block_load(..) { .. }                        packs weights, computes constant values
 *     int block_call(int call, ..) { switch .. }       one call, by its number
 *     int block_run(..) { for .. }                     all calls
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "emit/print_c.h"
#include "net/network_code.h"

#define ARGUMENTS "weights, packed, inputs, outputs, arena"

static const struct net_tensor *tensor_at(const struct network_code *code, int tensor) {
  return &code->network->tensors.data[tensor];
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void put_line(struct buf *line, int depth, struct buf *out) {
  print_wrapped(line->text, line->length, depth, out);
  buf_puts(out, "\n");
  line->length = 0;
}

static void put_lines(const char *line, int depth, struct buf *out) {
  print_wrapped(line, strlen(line), depth, out);
  buf_puts(out, "\n");
}

/* Writes inputs[0], AT(arena, 64) or CONST_AT(packed, 0). Only NAME_load writes to packed
 * memory. */
static void put_place(const struct net_place *place, bool load, struct buf *out) {
  static const char *const list[] = {
      [PLACE_INPUT] = "inputs", [PLACE_WEIGHT] = "weights", [PLACE_OUTPUT] = "outputs"};
  static const char *const memory[] = {
      [PLACE_ARENA] = "arena", [PLACE_PACKED] = "packed", [PLACE_SCRATCH] = "scratch"};
  if (place->kind <= PLACE_OUTPUT)
    buf_printf(out, "%s[%" PRId64 "]", list[place->kind], place->at);
  else
    buf_printf(out, "%sAT(%s, %" PRId64 ")", place->kind == PLACE_PACKED && !load ? "CONST_" : "",
               memory[place->kind], place->at);
}

static void put_argument(const struct net_place *place, bool load, struct buf *out) {
  if (out->text[out->length - 1] != '(') buf_puts(out, ", ");
  put_place(place, load, out);
}

static void put_tensor(const struct network_code *code, int tensor, bool load, struct buf *out) {
  put_argument(&code->places[tensor], load, out);
}

static void put_memory(enum net_place_kind kind, int64_t at, bool load, struct buf *out) {
  const struct net_place place = {kind, at};
  if (at >= 0) put_argument(&place, load, out);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static const struct net_form *form_of(const struct network_code *code, int call) {
  return &code->forms.data[code->form_of[call]];
}

static const char *function_of(const struct network_code *code, int call) {
  return code->units.data[code->calls[call].unit].function;
}

/* block_conv(inputs[0], CONST_AT(packed, 0), AT(arena, 0)) */
static void put_call(const struct network_code *code, int call, struct buf *out) {
  const struct net_call *c = &code->network->calls.data[call];
  const struct net_call_code *how = &code->calls[call];
  const struct prepared *p = form_of(code, call)->prepared;
  bool load = how->constant;
  buf_printf(out, "%s(", function_of(code, call));
  for (int i = 0; i < c->arguments.count; i++)
    if (!p || p->rest.uses_input[i]) put_tensor(code, c->arguments.data[i], load, out);
  put_memory(PLACE_PACKED, how->packed, load, out);
  for (int i = 0; i < c->results.count; i++) put_tensor(code, c->results.data[i], load, out);
  put_memory(load ? PLACE_SCRATCH : PLACE_ARENA, how->workspace, load, out);
  buf_puts(out, ")");
}

static void put_prepare(const struct network_code *code, int call, struct buf *out) {
  const struct net_call *c = &code->network->calls.data[call];
  const struct net_call_code *how = &code->calls[call];
  const struct prepared *p = form_of(code, call)->prepared;
  buf_printf(out, "%s_prepare(", function_of(code, call));
  for (int i = 0; i < c->arguments.count; i++)
    if (p->prepare.uses_input[i]) put_tensor(code, c->arguments.data[i], true, out);
  put_memory(PLACE_PACKED, how->packed, true, out);
  put_memory(PLACE_SCRATCH, how->prepare_workspace, true, out);
  buf_puts(out, ")");
}

/* a, b = split(x) */
static void put_meaning(const struct network_code *code, int call, struct buf *out) {
  const struct network *n = code->network;
  const struct net_call *c = &n->calls.data[call];
  for (int i = 0; i < c->results.count; i++)
    buf_printf(out, "%s%s", i ? ", " : "", n->tensors.data[c->results.data[i]].name);
  buf_printf(out, " = %s(", n->programs.data[c->program]->name);
  for (int i = 0; i < c->arguments.count; i++)
    buf_printf(out, "%s%s", i ? ", " : "", n->tensors.data[c->arguments.data[i]].name);
  buf_puts(out, ")");
}

/* Writes (void)arena; for parameters that the body does not use. */
static void put_unused(const char *const *names, const struct buf *body, struct buf *out) {
  for (; *names; names++) {
    struct buf used = {0};
    buf_printf(&used, "(%s, ", *names);
    bool named = body->text && strstr(body->text, used.text);
    used.length = 0;
    buf_printf(&used, "%s[", *names);
    if (!named && !(body->text && strstr(body->text, used.text)))
      buf_printf(out, "  (void)%s;\n", *names);
    buf_free(&used);
  }
}

/* ---- NAME_load ------------------------------------------------------------------------------- */

static void put_load_calls(const struct network_code *code, struct buf *out) {
  struct buf line = {0};
  for (int c = 0; c < code->network->calls.count; c++) {
    const struct net_call_code *how = &code->calls[c];
    if (!how->constant && !how->prepares) continue;
    buf_puts(&line, "/* ");
    put_meaning(code, c, &line);
    buf_puts(&line, " */");
    put_line(&line, 1, out);
    buf_puts(&line, "failed = failed || ");
    if (how->constant)
      put_call(code, c, &line);
    else
      put_prepare(code, c, &line);
    buf_puts(&line, ";");
    put_line(&line, 1, out);
  }
  buf_free(&line);
}

static void put_load(const struct network_code *code, struct buf *out) {
  buf_printf(out, "\nint %s_load(const void *const *weights, void *packed) {\n", code->name);
  if (code->scratch_bytes) {
    buf_printf(out,
               "  void *scratch = aligned_alloc(64, %" PRId64
               ");\n"
               "  if (!scratch) return 1;\n",
               code->scratch_bytes);
  }
  static const char *const names[] = {"weights", "packed", NULL};
  struct buf body = {0};
  put_load_calls(code, &body);
  put_unused(names, &body, out);
  buf_puts(out, "  int failed = 0;\n");
  buf_bytes(out, body.text, body.length);
  buf_free(&body);
  if (code->scratch_bytes) buf_puts(out, "  free(scratch);\n");
  buf_puts(out, "  return failed;\n}\n");
}

/* ---- NAME_call and NAME_run ------------------------------------------------------------------ */

/* case 3: return block_conv(..); */
static void put_case(const struct network_code *code, int number, const struct net_step *step,
                     struct buf *out) {
  struct buf line = {0};
  buf_printf(&line, "case %d: /* ", number);
  if (step->copied < 0) {
    put_meaning(code, step->call, &line);
    buf_puts(&line, " */");
    put_line(&line, 2, out);
    buf_puts(&line, "return ");
    put_call(code, step->call, &line);
    buf_puts(&line, ";");
    put_line(&line, 3, out);
  } else {
    const struct network *n = code->network;
    int output = 0;
    while (n->outputs.data[output] != step->copied) output++;
    buf_printf(&line, "%s */", tensor_at(code, step->copied)->name);
    put_line(&line, 2, out);
    buf_printf(&line, "memcpy(outputs[%d]", output);
    buf_puts(&line, ", ");
    put_place(&code->places[step->copied], false, &line);
    buf_printf(&line, ", %" PRId64 ");", network_bytes(tensor_at(code, step->copied)));
    put_line(&line, 3, out);
    put_lines("return 0;", 3, out);
  }
  buf_free(&line);
}

static bool is_threaded(const struct network_code *code) {
  for (int i = 0; i < code->forms.count; i++)
    if (code->forms.data[i].parallel) return true;
  return false;
}

/* Writes the head, e.g. int block_call(int call, ..) {, wrapped. */
static void put_head(const char *linkage, const char *name, const char *suffix, bool numbered,
                     struct buf *out) {
  struct buf line = {0};
  buf_printf(&line, "%sint %s%s(%s" NETWORK_PARAMETERS ") {", linkage, name, suffix,
             numbered ? "int call, " : "");
  buf_puts(out, "\n");
  put_line(&line, 0, out);
  buf_free(&line);
}

/* The function with the switch: NAME_call itself, or NAME_one if threads must be set around it. */
static void put_switch(const struct network_code *code, const struct net_step *steps, int count,
                       bool threaded, struct buf *out) {
  put_head(threaded ? "static " : "", code->name, threaded ? "_one" : "_call", true, out);
  static const char *const names[] = {"weights", "packed", "inputs", "outputs", "arena", NULL};
  struct buf body = {0};
  for (int i = 0; i < count; i++) put_case(code, i, &steps[i], &body);
  put_unused(names, &body, out);
  buf_puts(out, "  switch (call) {\n");
  buf_bytes(out, body.text, body.length);
  buf_puts(out, "    default: return 1;\n  }\n}\n");
  buf_free(&body);
}

static void put_threads_begin(const struct network_code *code, struct buf *out) {
  buf_printf(out,
             "#ifdef _OPENMP\n  int threads = omp_get_max_threads();\n"
             "  omp_set_num_threads(%d);\n#endif\n",
             code->threads);
}

static void put_threads_end(struct buf *out) {
  buf_puts(out, "#ifdef _OPENMP\n  omp_set_num_threads(threads);\n#endif\n");
}

static void put_call_threaded(const struct network_code *code, struct buf *out) {
  put_head("", code->name, "_call", true, out);
  put_threads_begin(code, out);
  buf_printf(out, "  int failed = %s_one(call, " ARGUMENTS ");\n", code->name);
  put_threads_end(out);
  buf_puts(out, "  return failed;\n}\n");
}

static void put_run(const struct network_code *code, int count, bool threaded, struct buf *out) {
  put_head("", code->name, "_run", false, out);
  if (threaded) put_threads_begin(code, out);
  buf_printf(out,
             "  int failed = 0;\n  for (int call = 0; call < %d && !failed; call++)\n"
             "    failed = %s_%s(call, " ARGUMENTS ");\n",
             count, code->name, threaded ? "one" : "call");
  if (threaded) put_threads_end(out);
  buf_puts(out, "  return failed;\n}\n");
}

/* ---- the text -------------------------------------------------------------------------------- */

static void put_includes(const struct network_code *code, bool threaded, struct buf *out) {
  (void)code;
  buf_puts(out, "#include <stdint.h>\n#include <stdlib.h>\n#include <string.h>\n");
  if (threaded) buf_puts(out, "#ifdef _OPENMP\n#include <omp.h>\n#endif\n");
  buf_puts(out, "\n");
}

static void put_own_declarations(const struct network_code *code, struct buf *out) {
  struct buf line = {0};
  buf_printf(out, "int %s_load(const void *const *weights, void *packed);\n", code->name);
  buf_printf(&line, "int %s_run(" NETWORK_PARAMETERS ");", code->name);
  put_line(&line, 0, out);
  buf_printf(&line, "int %s_call(int call, " NETWORK_PARAMETERS ");", code->name);
  put_line(&line, 0, out);
  buf_free(&line);
}

void network_text(const struct network_code *code, enum network_form form, struct buf *out) {
  struct net_step *steps;
  int count = network_steps(code, &steps);
  bool threaded = is_threaded(code);
  buf_printf(out, "/* The network '%s', written by canvas %s. */\n", code->network->name,
             canvas_version());
  put_includes(code, threaded, out);
  if (form == NETWORK_FILE)
    buf_printf(out, "#include \"%s.h\"\n\n", code->name);
  else
    put_own_declarations(code, out);
  for (int i = 0; i < code->units.count; i++) {
    const struct net_unit *u = &code->units.data[i];
    buf_puts(out, form == NETWORK_LINKED ? u->declaration : u->text);
    if (form != NETWORK_LINKED) buf_puts(out, "\n");
  }
  buf_puts(out,
           "#define AT(memory, bytes) ((void *)((char *)(memory) + (bytes)))\n"
           "#define CONST_AT(memory, bytes) ((const void *)((const char *)(memory) + (bytes)))\n");
  put_load(code, out);
  put_switch(code, steps, count, threaded, out);
  if (threaded) put_call_threaded(code, out);
  put_run(code, count, threaded, out);
  mem_free(steps);
}
