/* canvas edit: a tensor program with a stage more or less, that means the same. */
#include <stdlib.h>
#include <string.h>

#include "command.h"

static int reject(struct arguments *a, const char *edit) {
  return report_error("'%.200s': %s", edit, canvas_context_message(a->ctx));
}

static int print_program(struct arguments *a, const canvas_program *program, const char *edit) {
  canvas_program *edited;
  canvas_status status = canvas_program_edit(a->ctx, program, edit, strlen(edit), &edited);
  if (status != CANVAS_OK) return reject(a, edit);
  put_text(canvas_program_print(edited));
  canvas_program_free(edited);
  return EXIT_OK;
}

/* The schedule that follows the edit. */
static int print_schedule(struct arguments *a, const canvas_program *program, const char *edit) {
  canvas_machine *machine = machine_chosen(a);
  canvas_schedule *followed;
  struct bound_item item;
  int answer = EXIT_BAD;
  const char *file = option_text(a, "--schedule", "default");
  if (machine && bound_read(a, file, program, machine, &item)) {
    canvas_status status = canvas_bound_follow(a->ctx, item.bound, edit, strlen(edit), &followed);
    answer = status == CANVAS_OK ? EXIT_OK : reject(a, edit);
    if (status == CANVAS_OK) {
      put_text(canvas_schedule_print(followed));
      canvas_schedule_free(followed);
    }
    bound_drop(&item);
  }
  canvas_machine_free(machine);
  return answer;
}

static int run(struct arguments *a) {
  canvas_program *program = program_read(a, a->operand[0]);
  if (!program) return EXIT_BAD;
  char *edit = operands_join(a, 1);
  if (!edit) {
    canvas_program_free(program);
    return report_error("there is no memory for the edit");
  }
  bool schedule = option_text(a, "--schedule", NULL) != NULL;
  int answer = schedule ? print_schedule(a, program, edit) : print_program(a, program, edit);
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
        "    rfactor Y k 16 as YP YP has 16 partial sums over k, and Y adds them up\n"
        "    border Y             no product with the 0 beyond a border: inf and nan do not show "
        "there\n"
        "    border Y as Z        ... but as nan: Z holds the sums of the products with 0\n"
        "    overlap P in Y h 8 as PO\n"
        "                         PO is what each 8 places of Y's axis h read of P\n"
        "    type X bf16          how X is stored\n"
        "    winograd Y 4         Y, a convolution with windows of 3x3, with fewer products in "
        "tiles\n"
        "                         of 4x4, or 2x2\n"
        "The new program is printed; all edits but the last two keep what it computes, up to the "
        "order\n"
        "of sums. With --schedule the schedule for it is printed instead: what SCHEDULE says of "
        "the\n"
        "stages that are left, and a place for those that are new.\n",
    .example =
        "canvas operator gemm m=64 k=64 n=64 > gemm.program\n"
        "canvas edit gemm.program cache Y as CC",
    .options = {{"--schedule", "SCHEDULE", "print the schedule that follows the edit of this one"},
                {"--set", "NUMBERS", "numbers for loops: iw=14,yo=4"},
                {"--machine", "FILE", "what the schedule is bound for (default: here)"}},
    .run = run,
};
