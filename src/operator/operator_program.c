/* An operator by its name and arguments: its builder is found in the table of operators and run. */
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "operator/operator_build.h"

static canvas_status reject_operator(canvas_context *ctx, const char *name) {
  for (const char *c = name; *c; c++)
    if (*c <= ' ' || *c >= 0x7f || c - name == PROGRAM_NAME)
      return fail(ctx, CANVAS_BAD_INPUT,
                  "no operator has such a name, 'canvas operator' lists them");
  const char **names = mem_alloc((size_t)operator_count * sizeof *names);
  for (int i = 0; i < operator_count; i++) names[i] = operator_rows[i].name;
  const char *near = word_nearest(name, (int)strnlen(name, 64), names, operator_count);
  mem_free(names);
  if (near)
    return fail(ctx, CANVAS_BAD_INPUT, "unknown operator '%.60s', did you mean '%s'?", name, near);
  return fail(ctx, CANVAS_BAD_INPUT, "unknown operator '%.60s', 'canvas operator' lists them",
              name);
}

canvas_status operator_named(canvas_context *ctx, const char *name,
                             const struct operator_row **out) {
  for (int i = 0; i < operator_count; i++)
    if (strcmp(operator_rows[i].name, name) == 0) {
      *out = &operator_rows[i];
      return CANVAS_OK;
    }
  return reject_operator(ctx, name);
}

/* The type whose name is word `word` of the argument's column. */
static enum program_dtype chosen_type(const struct build *b) {
  const char *word = argument_rows[ARG_DTYPE].words;
  for (int64_t i = build_number(b, ARG_DTYPE, 0); i > 0; i--) word += strcspn(word, " ") + 1;
  for (int type = 0; type < PROGRAM_DTYPES; type++) {
    const char *name = program_dtype_name((enum program_dtype)type);
    if (strlen(name) == strcspn(word, " ") && !strncmp(name, word, strlen(name)))
      return (enum program_dtype)type;
  }
  return PROGRAM_F32;
}

/* An operator's result is its last stage, unless its builder names several. */
static canvas_status run_builder(struct build *b) {
  canvas_context why = {{0}};
  TRY(b->row->build(b));
  if (!b->p->failed && !b->p->outputs.count) program_output(b->p, b->p->tensors.count - 1);
  if (program_verify(&why, b->p) == CANVAS_OK) return CANVAS_OK;
  return fail(b->ctx, CANVAS_BAD_INPUT, "%s: %s", b->row->name, why.message);
}

canvas_status operator_program(canvas_context *ctx, const char *name, const char *arguments,
                               size_t length, struct program **out) {
  struct build b = {.ctx = ctx};
  TRY(operator_named(ctx, name, &b.row));
  TRY(operator_read(ctx, b.row, arguments, length, b.argument));
  b.type = chosen_type(&b);
  b.wide = b.type == PROGRAM_F64 ? PROGRAM_F64 : PROGRAM_F32;
  b.p = program_new(name);
  canvas_status status = run_builder(&b);
  if (status == CANVAS_OK)
    *out = b.p;
  else
    program_free(b.p);
  return status;
}
