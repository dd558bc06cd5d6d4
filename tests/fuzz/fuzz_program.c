/* Programs: the language, its verifier, the interpreter. */
#include "fuzz.h"

void fuzz(canvas_context *ctx, const char *text, size_t size) {
  canvas_program *program = NULL;
  if (fine(ctx, canvas_program_parse(ctx, text, size, &program)))
    check_program(ctx, program, false);
  canvas_program_free(program);
}
