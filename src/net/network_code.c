/* Makes the decisions that precede the C of a network. See network_code.h. */
#include "net/network_code.h"

#include <stdlib.h>
#include <string.h>

#include "emit/emit.h"

/* ---- decisions ------------------------------------------------------------------------------- */

static void find_constant(struct network_code *code) {
  const struct network *n = code->network;
  for (int c = 0; c < n->calls.count; c++)
    code->calls[c].constant = network_constant(n, n->calls.data[c].results.data[0]);
}

/* The text of a program without its name. It includes which inputs are constant. */
static char *text_of(const struct program *p) {
  struct buf text = {0};
  program_print(p, &text);
  char *line = strstr(text.text, "program "), *end = line ? strchr(line, '\n') : NULL;
  char *out = mem_strdup(end ? end : text.text);
  buf_free(&text);
  return out;
}

static canvas_status find_form(canvas_context *ctx, struct network_code *code, int call,
                               char *const *texts, const struct network_options *options) {
  int program = code->network->calls.data[call].program;
  bool constant = code->calls[call].constant;
  for (int i = 0; i < code->forms.count; i++) {
    const struct net_form *f = &code->forms.data[i];
    if (f->constant != constant) continue;
    if (f->program != program && strcmp(f->text, texts[program])) continue;
    code->form_of[call] = i;
    return CANVAS_OK;
  }
  struct net_form form = {.program = program, .constant = constant};
  TRY(net_form_make(ctx, code->network->programs.data[program], options, &form));
  form.text = mem_strdup(texts[program]);
  VEC_PUSH(&code->forms, form);
  code->form_of[call] = code->forms.count - 1;
  return CANVAS_OK;
}

static canvas_status find_forms(canvas_context *ctx, struct network_code *code,
                                const struct network_options *options) {
  const struct network *n = code->network;
  char **texts = mem_alloc((size_t)(n->programs.count + 1) * sizeof *texts);
  canvas_status status = CANVAS_OK;
  for (int i = 0; i < n->programs.count; i++) texts[i] = text_of(n->programs.data[i]);
  for (int c = 0; c < n->calls.count && status == CANVAS_OK; c++)
    status = find_form(ctx, code, c, texts, options);
  for (int i = 0; i < n->programs.count; i++) mem_free(texts[i]);
  mem_free(texts);
  return status;
}

static bool may_be_in_place(const void *data, int call, int output, int input) {
  const struct network_code *code = data;
  return net_form_in_place(&code->forms.data[code->form_of[call]], output, input);
}

static canvas_status make(canvas_context *ctx, struct network_code *code,
                          const struct network_options *options) {
  find_constant(code);
  TRY(find_forms(ctx, code, options));
  code->plan = memory_plan_where(code->network, may_be_in_place, code);
  TRY(network_units(ctx, code, options->local));
  network_places(code);
  return CANVAS_OK;
}

canvas_status network_code_new(canvas_context *ctx, const struct network *n,
                               const struct network_options *options, struct network_code **out) {
  struct network_code *code = mem_alloc(sizeof *code);
  size_t calls = (size_t)n->calls.count + 1, tensors = (size_t)n->tensors.count + 1;
  code->network = n;
  code->threads = options->threads;
  code->name = emit_c_function(options->name ? options->name : n->name);
  code->form_of = mem_alloc(calls * sizeof *code->form_of);
  code->calls = mem_alloc(calls * sizeof *code->calls);
  code->places = mem_alloc(tensors * sizeof *code->places);
  canvas_status status = make(ctx, code, options);
  if (status == CANVAS_OK)
    *out = code;
  else
    network_code_free(code);
  return status;
}

void network_code_free(struct network_code *code) {
  if (!code) return;
  for (int i = 0; i < code->forms.count; i++) net_form_free(&code->forms.data[i]);
  for (int i = 0; i < code->units.count; i++) {
    struct net_unit *u = &code->units.data[i];
    mem_free(u->shared);
    mem_free(u->function);
    mem_free(u->text);
    mem_free(u->declaration);
  }
  memory_plan_free(&code->plan);
  mem_free(code->forms.data);
  mem_free(code->units.data);
  mem_free(code->form_of);
  mem_free(code->calls);
  mem_free(code->places);
  mem_free(code->name);
  mem_free(code);
}

int network_steps(const struct network_code *code, struct net_step **out) {
  const struct network *n = code->network;
  struct net_step *steps =
      mem_alloc((size_t)(n->calls.count + n->outputs.count + 1) * sizeof *steps);
  int count = 0;
  for (int c = 0; c < n->calls.count; c++)
    if (!code->calls[c].constant && !code->plan.skipped[c])
      steps[count++] = (struct net_step){c, -1};
  for (int i = 0; i < n->outputs.count; i++) {
    int value = n->outputs.data[i], call = n->tensors.data[value].call;
    if (code->calls[call].constant) steps[count++] = (struct net_step){call, value};
  }
  *out = steps;
  return count;
}
