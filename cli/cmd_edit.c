/* canvas edit: a tensor program with a stage more or less, that means the same. */
#include <stdlib.h>
#include <string.h>

#include "command.h"

static int run(struct arguments *a) {
  canvas_program *program = program_read(a, a->operand[0]), *edited;
  if (!program) return EXIT_BAD;
  char *edit = operands_join(a, 1);
  if (!edit) {
    canvas_program_free(program);
    return report_error("there is no memory for the edit");
  }
  canvas_status status = canvas_program_edit(a->ctx, program, edit, strlen(edit), &edited);
  int answer = EXIT_OK;
  if (status == CANVAS_OK) {
    put_text(canvas_program_print(edited));
    canvas_program_free(edited);
  } else {
    answer = report_error("'%.200s': %s", edit, canvas_context_message(a->ctx));
  }
  free(edit);
  canvas_program_free(program);
  return answer;
}

const struct command command_edit = {
    .subcommand = "edit",
    .operands = "PROGRAM EDIT...",
    .least = 2,
    .most = OPERANDS_MAX,
    .summary = "give a tensor program copies, packed operands, or fewer stages",
    .details =
        "EDIT is one of\n"
        "    cache Y as CC        CC computes Y, and Y copies it\n"
        "    cache X in Y as XC   XC copies X, and Y reads XC\n"
        "    pack W as WP '[co/32, ci, kh, kw, co%32]'\n"
        "                         WP is W in another layout, later stages read it\n"
        "    inline P             the expression of P in the place of its loads\n"
        "    type X bf16          how X is stored\n"
        "The new program is printed; all edits but the last keep what it computes.\n",
    .example =
        "canvas operator gemm m=64 k=64 n=64 > gemm.program\n"
        "canvas edit gemm.program cache Y as CC",
    .run = run,
};
