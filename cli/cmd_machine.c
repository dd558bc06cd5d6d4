/* canvas machine: what schedules are bound for. */
#include "command.h"

static int run(struct arguments *a) {
  canvas_machine *machine = machine_read(a, a->operand[0] ? a->operand[0] : "here");
  if (!machine) return EXIT_BAD;
  put_text(canvas_machine_print(machine));
  canvas_machine_free(machine);
  return EXIT_OK;
}

const struct command command_machine = {
    .subcommand = "machine",
    .operands = "here|FILE",
    .least = 0,
    .most = 1,
    .summary = "print what schedules are bound for: this machine, or a file's",
    .details =
        "The text has a key and a value on each line: the bytes of a vector register and how many "
        "there\n"
        "are, instructions, caches, cores, memory. Written to a file and edited, it is another "
        "machine\n"
        "for the --machine of other subcommands. docs/machine.md says what the keys mean.\n",
    .example =
        "canvas machine >here.txt\n"
        "canvas machine here.txt",
    .run = run,
};
