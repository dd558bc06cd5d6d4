/* canvas machine: print the description of a machine. */
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
    .summary = "print the machine that schedules are for: this one, or that of a file",
    .details =
        "Each line has a key and a value: bytes and number of vector registers, instructions,\n"
        "caches, cores, memory. An edited copy in a file can be given as --machine FILE to other\n"
        "subcommands. See docs/machine.md for the keys.\n",
    .example =
        "canvas machine >here.txt\n"
        "canvas machine here.txt",
    .run = run,
};
