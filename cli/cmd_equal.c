/* canvas equal: check whether two files hold isomorphic kernels. */
#include <stdio.h>
#include <string.h>

#include "command.h"

/* The only kernel of a file, as its hash. */
static bool read_hash(struct arguments *a, const char *file, canvas_hash *out) {
  struct text text;
  canvas_kernel *kernel;
  if (!text_read(file, &text)) return false;
  canvas_status status = canvas_kernel_parse(a->ctx, text.bytes, text.length, &kernel);
  if (status == CANVAS_OK) {
    *out = canvas_kernel_hash(kernel);
    canvas_kernel_free(kernel);
  } else {
    report_status(a, text.name, status);
  }
  text_free(&text);
  return status == CANVAS_OK;
}

static int run(struct arguments *a) {
  canvas_hash left, right;
  if (!strcmp(a->operand[0], "-") && !strcmp(a->operand[1], "-"))
    return report_error("'equal' can read only one of A and B from standard input");
  if (!read_hash(a, a->operand[0], &left) || !read_hash(a, a->operand[1], &right)) return EXIT_BAD;
  bool equal = !strcmp(left.hex, right.hex);
  bool decided = equal || (left.decided && right.decided);
  puts(equal ? "equal" : decided ? "different" : "not decided: a kernel is too symmetric");
  return equal ? EXIT_OK : EXIT_NONE;
}

const struct command command_equal = {
    .subcommand = "equal",
    .operands = "A B",
    .least = 2,
    .most = 2,
    .summary = "check whether two files hold the same kernel",
    .details =
        "Names, the numbering of x, the order of independent nodes, the order of commutative\n"
        "inputs and the sizes of a pack do not matter. Exit status 1 if the kernels differ, or\n"
        "if a kernel is too symmetric to decide (none is known).\n",
    .example =
        "canvas sample --targets \"64,56,56\" >a.kernel\n"
        "canvas show a.kernel | canvas equal - a.kernel",
    .run = run,
};
