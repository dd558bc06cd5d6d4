/* Programs: text, their inputs and outputs, seeded inputs, and the interpreter. */
#include "api/api_call.h"
#include "api/handle.h"
#include "program/interpret.h"
#include "spell/spell.h"

_Static_assert((int)CANVAS_RANK_MAX == (int)PROGRAM_AXES, "canvas.h has room for all sizes");
_Static_assert((int)CANVAS_I32 == (int)PROGRAM_I32, "canvas.h lists the data types in order");

API_STATUS(canvas_program_parse,
           (canvas_context * ctx, const char *text, size_t length, canvas_program **out),
           (ctx, text, length, out)) {
  NEED(out);
  struct program *p;
  TRY(program_parse(ctx, text, length, &p));
  *out = (canvas_program *)p;
  return CANVAS_OK;
}

void canvas_program_free(canvas_program *program) {
  program_free((struct program *)program);
}

API_VALUE(char *, canvas_program_print, (const canvas_program *program), (program), NULL) {
  if (!program) return NULL;
  struct buf out = {0};
  program_print(program_of(program), &out);
  return buf_take(&out);
}

API_STATUS(canvas_program_tvm,
           (canvas_context * ctx, const canvas_program *program, const char *name, char **out),
           (ctx, program, name, out)) {
  NEED(program);
  NEED(out);
  const struct program *p = program_of(program);
  struct buf text = {0};
  canvas_status status = spell_tvm(ctx, p, name && *name ? name : p->name, &text);
  if (status == CANVAS_OK)
    *out = buf_take(&text);
  else
    buf_free(&text);
  return status;
}

int canvas_program_inputs(const canvas_program *program) {
  if (!program) return 0;
  return program_of(program)->inputs.count;
}

int canvas_program_outputs(const canvas_program *program) {
  if (!program) return 0;
  return program_of(program)->outputs.count;
}

static canvas_tensor describe(const struct program *p, int tensor) {
  const struct program_tensor *t = &p->tensors.data[tensor];
  canvas_tensor out = {.name = t->name,
                       .dtype = (canvas_dtype)t->dtype,
                       .rank = t->rank,
                       .elements = program_elements(p, tensor),
                       .least = t->least,
                       .most = t->most,
                       .rising = t->rising,
                       .constant = t->constant};
  for (int i = 0; i < t->rank; i++) out.sizes[i] = t->axes[i].size;
  return out;
}

canvas_tensor canvas_program_input(const canvas_program *program, int input) {
  if (!program) return (canvas_tensor){0};
  const struct program *p = program_of(program);
  if (!is_index(input, p->inputs.count)) return (canvas_tensor){0};
  return describe(p, p->inputs.data[input]);
}

canvas_tensor canvas_program_output(const canvas_program *program, int output) {
  if (!program) return (canvas_tensor){0};
  const struct program *p = program_of(program);
  if (!is_index(output, p->outputs.count)) return (canvas_tensor){0};
  return describe(p, p->outputs.data[output]);
}

static void fill_zeros(const canvas_program *program, int input, double *out) {
  int64_t elements = canvas_program_input(program, input).elements;
  for (int64_t i = 0; i < elements; i++) out[i] = 0;
}

API_VOID(canvas_program_fill,
         (const canvas_program *program, int input, uint64_t seed, double *out),
         (program, input, seed, out), fill_zeros(program, input, out)) {
  if (!program || !out) return;
  const struct program *p = program_of(program);
  if (is_index(input, p->inputs.count)) program_fill(p, input, seed, out);
}

API_STATUS(canvas_program_evaluate,
           (canvas_context * ctx, const canvas_program *program, const double *const *inputs,
            int output, int64_t count, const int64_t *elements, double *out),
           (ctx, program, inputs, output, count, elements, out)) {
  NEED(program);
  const struct program *p = program_of(program);
  struct interpreter *in;
  if (output < 0 || output >= p->outputs.count)
    return fail(ctx, CANVAS_BAD_INPUT, "output %d does not exist, '%s' has %d", output, p->name,
                p->outputs.count);
  TRY(need_each(ctx, "inputs", inputs, p->inputs.count));
  TRY(need_count(ctx, "out", out, count));
  TRY(interpreter_new(ctx, p, inputs, NULL, &in));
  canvas_status status = interpreter_elements(in, p->outputs.data[output], count, elements, out);
  interpreter_free(in);
  return status;
}
