/* canvas edit: edit a tensor program, or adapt a schedule to the edit. */
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
    return report_error("out of memory for the edit");
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
    .summary = "edit a tensor program: caches, packed operands, fused or split stages",
    .details =
        "EDIT is one of\n"
        "    cache Y as CC        CC computes Y, and Y copies it\n"
        "    cache X in Y as XC   XC copies X, and Y reads XC\n"
        "    pack W as WP '[co/32, ci, kh, kw, co%32]'\n"
        "                         WP is W in another layout, read by the stages after it\n"
        "    inline P             replace the loads of P by its expression\n"
        "    rfactor Y k 16 as YP YP has 16 partial sums over k, and Y adds them up\n"
        "    rfactor M i of g as MC\n"
        "                         MC has one partial sum for each element g*SIZE+i of the groups\n"
        "    border Y             skip products with the 0 of the padding, also where it meets "
        "inf\n"
        "                         or nan\n"
        "    border Y as Z        skip them, but keep nan: Z holds the sums of the products with "
        "0\n"
        "    overlap P in Y h 8 as PO\n"
        "                         PO holds what each 8 elements of Y's axis h read of P\n"
        "    type X bf16          the element type in which X is stored\n"
        "    winograd Y 4         compute the 3x3 convolution Y by Winograd in tiles of 4x4, or "
        "2x2\n"
        "Prints the edited program. All edits but the last two keep the values, up to the order\n"
        "of sums. With --schedule, prints the schedule of the edited program instead: the stages\n"
        "that remain keep their loops, and new stages get a place.\n",
    .example =
        "canvas operator gemm m=64 k=64 n=64 > gemm.program\n"
        "canvas edit gemm.program cache Y as CC",
    .options = {{"--schedule", "SCHEDULE", "print this schedule, adapted to the edited program"},
                {"--set", "NUMBERS",
                 "loop extents that replace holes of the schedule, such as iw=14,yo=4"},
                {"--machine", "FILE", "machine that the schedule is for (default: here)"}},
    .run = run,
};
