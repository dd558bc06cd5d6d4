/* canvas check: check the kernels and packs of a file and print their properties. */
#include <stdio.h>

#include "command.h"

static void say_facts(const canvas_kernel *kernel) {
  canvas_kernel_facts f = canvas_kernel_describe(kernel);
  printf("%s: legal, %d primitive%s", canvas_kernel_name(kernel), f.primitives,
         f.primitives == 1 ? "" : "s");
  if (f.variables) printf(", %d free size%s", f.variables, f.variables == 1 ? "" : "s");
  if (f.uses_groups) printf(", uses G");
  if (f.uses_stride) printf(", uses S");
  if (!f.has_weights) printf(", no weights");
  if (f.needs_fixed_hw) printf(", needs fixed H and W");
}

static void check_kernel(const canvas_pack *pack) {
  const char *why = canvas_pack_reach(pack);
  int targets = canvas_pack_count(pack);
  say_facts(canvas_pack_kernel(pack));
  if (targets) printf(", bound to %d target%s", targets, targets == 1 ? "" : "s");
  if (why)
    printf(", does not reach: %s\n", why);
  else
    printf(", reaches\n");
}

static int check(struct arguments *a, canvas_pack *pack, void *data) {
  (void)a, (void)data;
  for (int i = 0; i < canvas_pack_kernels(pack); i++) {
    canvas_pack *part = canvas_pack_part(pack, i);
    check_kernel(part);
    canvas_pack_free(part);
  }
  int kept = canvas_pack_kept(pack);
  if (kept) printf("%d target%s kept\n", kept, kept == 1 ? " is" : "s are");
  return EXIT_OK;
}

static int run(struct arguments *a) {
  return file_each(a, a->operand[0], check, NULL);
}

const struct command command_check = {
    .subcommand = "check",
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "check that kernels and packs are legal",
    .details =
        "Prints one line for each kernel. The first error ends the check, with its line and\n"
        "column.\n",
    .example = "canvas sample --targets \"64,56,56\" | canvas check -",
    .run = run,
};
