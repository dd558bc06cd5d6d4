/* Programs: edits that give new programs. */
#include "api/handle.h"
#include "program/program_edit.h"

canvas_status canvas_program_edit(canvas_context *ctx, const canvas_program *program,
                                  const char *edit, size_t length, canvas_program **out) {
  struct program *p;
  TRY(program_edit(ctx, program_of(program), edit, length, &p));
  *out = (canvas_program *)p;
  return CANVAS_OK;
}
