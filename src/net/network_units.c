/* Makes the functions of a network's programs. See network_code.h.
 *
 * A function is named by a hash of its content, so that it has the same text in every network. In a
 * text for people it is named by its program.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "code/pipeline.h"
#include "emit/print_c.h"
#include "net/network_code.h"

static const struct net_form *form_at(const struct network_code *code, const struct net_unit *u) {
  return &code->forms.data[u->form];
}

/* ---- collecting functions -------------------------------------------------------------------- */

static bool same_place(const struct network_code *code, int a, int b) {
  const struct planned_value *x = &code->plan.values[a], *y = &code->plan.values[b];
  return x->offset >= 0 && y->offset >= 0 && x->offset < y->offset + y->bytes &&
         y->offset < x->offset + x->bytes;
}

/* By input, then output, of the call's program: the parameter shares memory with another one. */
static bool *shared_of(const struct network_code *code, const struct net_call *c) {
  bool *shared = mem_alloc((size_t)(c->arguments.count + c->results.count) + 1);
  for (int i = 0; i < c->arguments.count; i++)
    for (int k = 0; k < c->results.count; k++)
      if (same_place(code, c->arguments.data[i], c->results.data[k]))
        shared[i] = shared[c->arguments.count + k] = true;
  return shared;
}

static int find_unit(struct network_code *code, int form, bool *shared, size_t parameters) {
  for (int i = 0; i < code->units.count; i++) {
    struct net_unit *u = &code->units.data[i];
    if (u->form != form || memcmp(u->shared, shared, parameters)) continue;
    mem_free(shared);
    return i;
  }
  VEC_PUSH(&code->units, ((struct net_unit){.form = form, .shared = shared}));
  return code->units.count - 1;
}

static void find_units(struct network_code *code) {
  const struct network *n = code->network;
  for (int c = 0; c < n->calls.count; c++) {
    const struct net_call *call = &n->calls.data[c];
    code->calls[c].unit = -1;
    if (code->plan.skipped[c]) continue;
    size_t parameters = (size_t)(call->arguments.count + call->results.count);
    code->calls[c].unit = find_unit(code, code->form_of[c], shared_of(code, call), parameters);
  }
}

/* ---- names ----------------------------------------------------------------------------------- */

/* A name with a hash of everything that the function's text depends on. */
static char *name_of_content(const struct network_code *code, const struct net_unit *u) {
  const struct net_form *form = form_at(code, u);
  struct buf text = {0}, name = {0};
  char hash[TASK_NAME];
  program_print(form->edited, &text);
  schedule_print(form->schedule, &text);
  machine_print(&form->tree->machine, &text);
  int parameters = form->edited->inputs.count + form->edited->outputs.count;
  for (int i = 0; i < parameters; i++) buf_puts(&text, u->shared[i] ? "1" : "0");
  for (int i = 0; i < form->edited->inputs.count; i++) {
    const struct program *p = code->network->programs.data[form->program];
    buf_puts(&text, p->tensors.data[p->inputs.data[i]].constant ? "1" : "0");
  }
  buf_printf(&text, "%d", form->constant);
  task_of(text.text, hash);
  buf_printf(&name, "layer_%s", hash);
  buf_free(&text);
  return buf_take(&name);
}

/* Whether NAME and the names derived from it, e.g. NAME_prepare, clash with no earlier one. */
static bool is_free(const struct network_code *code, const char *name, int count) {
  static const char *const endings[] = {"_load",        "_run",   "_call",   "_packed_bytes",
                                        "_arena_bytes", "_arena", "_packed", NULL};
  size_t own = strlen(code->name), length = strlen(name);
  for (int i = 0; endings[i]; i++)
    if (!strncmp(name, code->name, own) && !strcmp(name + own, endings[i])) return false;
  for (int i = 0; i < count; i++) {
    const char *other = code->units.data[i].function;
    size_t size = strlen(other), least = size < length ? size : length;
    if (strncmp(name, other, least)) continue;
    const char *rest = size < length ? name + least : other + least;
    if (!*rest || !strncmp(rest, "_prepare", 8) || !strncmp(rest, "_body", 5)) return false;
  }
  return true;
}

static char *name_of_program(const struct network_code *code, int unit) {
  const struct net_form *form = form_at(code, &code->units.data[unit]);
  struct buf wanted = {0};
  for (int i = 1;; i++) {
    buf_printf(&wanted, "%s_%s", code->name, code->network->programs.data[form->program]->name);
    if (i > 1) buf_printf(&wanted, "_%d", i);
    char *name = emit_c_function(wanted.text);
    wanted.length = 0;
    if (is_free(code, name, unit)) {
      buf_free(&wanted);
      return name;
    }
    mem_free(name);
  }
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* const float *, const void *, float *, void * */
static void put_types(const struct program *p, const bool *takes, bool packed, bool filled,
                      int64_t workspace, struct buf *out) {
  const char *before = "";
  for (int i = 0; i < p->inputs.count; i++) {
    if (takes && !takes[i]) continue;
    enum program_dtype dtype = p->tensors.data[p->inputs.data[i]].dtype;
    buf_printf(out, "%sconst %s *", before, c_type_name(dtype));
    before = ", ";
  }
  if (packed) buf_printf(out, "%s%svoid *", before, filled ? "" : "const ");
  for (int i = 0; !filled && i < p->outputs.count; i++) {
    enum program_dtype dtype = p->tensors.data[p->outputs.data[i]].dtype;
    buf_printf(out, "%s%s *", packed || *before ? ", " : "", c_type_name(dtype));
    before = ", ";
  }
  if (workspace) buf_puts(out, ", void *");
}

static void put_declaration(const struct network_code *code, struct net_unit *u) {
  const struct net_form *form = form_at(code, u);
  const struct prepared *p = form->prepared;
  struct buf out = {0};
  if (p) {
    buf_printf(&out, "int %s_prepare(", u->function);
    put_types(form->edited, p->prepare.uses_input, true, true, u->prepare_workspace, &out);
    buf_puts(&out, ");\n");
  }
  buf_printf(&out, "int %s(", u->function);
  put_types(form->edited, p ? p->rest.uses_input : NULL, p != NULL, false, u->workspace, &out);
  buf_puts(&out, ");\n");
  u->declaration = buf_take(&out);
}

/* By parameter of the run-time part: the inputs that it uses, then packed weights, then outputs. */
static bool *shared_of_rest(const struct net_form *form, const struct net_unit *u) {
  int inputs = form->edited->inputs.count, packed = form->prepared ? form->prepared->count : 0;
  int outputs = form->edited->outputs.count, at = 0;
  bool *shared = mem_alloc((size_t)(inputs + packed + outputs) + 1);
  for (int i = 0; i < inputs; i++)
    if (!form->prepared || form->prepared->rest.uses_input[i]) shared[at++] = u->shared[i];
  at += packed;
  for (int i = 0; i < outputs; i++) shared[at++] = u->shared[inputs + i];
  return shared;
}

static canvas_status emit_tree(canvas_context *ctx, const struct loop_tree *tree,
                               const struct emit_options *options, struct buf *text) {
  struct code *code;
  TRY(pipeline_run(ctx, tree, NULL, &code));
  canvas_status status = emit_c(ctx, code, tree, options, text);
  code_free(code);
  return status;
}

static canvas_status emit_prepare(canvas_context *ctx, const struct prepared *p, struct net_unit *u,
                                  bool local, struct buf *text) {
  const struct emit_packed packed = {p->count, p->offset, true};
  struct buf name = {0};
  buf_printf(&name, "%s_prepare", u->function);
  const struct emit_options options = {
      .function = name.text, .packed = &packed, .local = local, .workspace = &u->prepare_workspace};
  canvas_status status = emit_tree(ctx, p->prepare.tree, &options, text);
  buf_puts(text, "\n");
  buf_free(&name);
  return status;
}

static canvas_status emit_unit(canvas_context *ctx, struct network_code *code, struct net_unit *u,
                               bool local) {
  const struct net_form *form = form_at(code, u);
  const struct prepared *p = form->prepared;
  const struct emit_packed packed = {p ? p->count : 0, p ? p->offset : NULL, false};
  struct buf text = {0};
  bool *shared = shared_of_rest(form, u);
  const struct emit_options options = {.function = u->function,
                                       .packed = p ? &packed : NULL,
                                       .shared = shared,
                                       .local = local,
                                       .workspace = &u->workspace};
  canvas_status status = p ? emit_prepare(ctx, p, u, local, &text) : CANVAS_OK;
  if (status == CANVAS_OK) status = emit_tree(ctx, p ? p->rest.tree : form->tree, &options, &text);
  mem_free(shared);
  if (status == CANVAS_OK) put_declaration(code, u);
  u->text = buf_take(&text);
  return status;
}

/* Shares functions of programs that are equal after their edits, e.g. views of [256, 256, 1, 1] and
 * of [512, 128, 1, 1] that copy the same number of elements in order. */
static void join_units(struct network_code *code) {
  int kept = 0;
  int *place = mem_alloc((size_t)code->units.count * sizeof *place + 1);
  for (int i = 0; i < code->units.count; i++) {
    struct net_unit *u = &code->units.data[i];
    place[i] = 0;
    while (place[i] < kept && strcmp(code->units.data[place[i]].function, u->function)) place[i]++;
    if (place[i] == kept) {
      code->units.data[kept++] = *u;
      continue;
    }
    mem_free(u->shared);
    mem_free(u->function);
  }
  code->units.count = kept;
  for (int c = 0; c < code->network->calls.count; c++)
    if (code->calls[c].unit >= 0) code->calls[c].unit = place[code->calls[c].unit];
  mem_free(place);
}

canvas_status network_units(canvas_context *ctx, struct network_code *code, bool local) {
  find_units(code);
  for (int i = 0; i < code->units.count; i++) {
    struct net_unit *u = &code->units.data[i];
    u->function = local ? name_of_program(code, i) : name_of_content(code, u);
  }
  join_units(code);
  for (int i = 0; i < code->units.count; i++)
    TRY(emit_unit(ctx, code, &code->units.data[i], local));
  return CANVAS_OK;
}
