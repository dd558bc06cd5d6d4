/* canvas hash: the hash of each kernel of a file, equal for isomorphic kernels. */
#include <stdio.h>

#include "command.h"

static int hash(struct arguments *a, canvas_pack *pack, void *data) {
  const canvas_kernel *kernel = canvas_pack_kernel(pack);
  (void)a, (void)data;
  canvas_hash h = canvas_kernel_hash(kernel);
  printf(
      "%s  %s%s\n", h.hex, canvas_kernel_name(kernel),
      h.decided ? "" : "  # not decided: too symmetric, an isomorphic text may have another hash");
  return EXIT_OK;
}

static int run(struct arguments *a) {
  return file_each(a, a->operand[0], hash, NULL);
}

const struct command command_hash = {
    .subcommand = "hash",
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "print a hash that is equal for isomorphic kernels",
    .details = "Prints one line `HASH  NAME` for each kernel. Sizes of a pack do not matter.\n",
    .example = "canvas sample --targets \"64,56,56\" --count 3 | canvas hash -",
    .run = run,
};
