/* canvas hash: the hash of each kernel of a file, equal for isomorphic kernels. */
#include <stdio.h>

#include "command.h"

static int hash(struct arguments *a, canvas_pack *pack, void *data) {
  const canvas_kernel *kernel = canvas_pack_kernel(pack);
  int kernels = canvas_pack_kernels(pack);
  (void)a, (void)data;
  canvas_hash h = canvas_pack_hash(pack);
  printf("%s  %s", h.hex, canvas_kernel_name(kernel));
  if (kernels > 1) printf(" and %d more", kernels - 1);
  if (canvas_pack_kept(pack)) printf(", %d kept", canvas_pack_kept(pack));
  puts(h.decided ? "" : "  # not decided: too symmetric, an isomorphic text may have another hash");
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
    .details =
        "Prints one line `HASH  NAME` for each kernel or pack. Sizes of a pack do not matter; the\n"
        "hash of a pack of several kernels is one of what each target has.\n",
    .example = "canvas sample --targets \"64,56,56\" --count 3 | canvas hash -",
    .run = run,
};
