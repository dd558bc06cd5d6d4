/* canvas equal: check whether two files hold isomorphic kernels, or equal packs of several. */
#include <stdio.h>
#include <string.h>

#include "command.h"

/* The only pack of a file; NULL after an error message. */
static canvas_pack *read_pack(struct arguments *a, const char *file) {
  struct text text;
  canvas_pack *pack = NULL;
  if (!text_read(file, &text)) return NULL;
  canvas_status status = canvas_pack_parse(a->ctx, text.bytes, text.length, &pack);
  if (status != CANVAS_OK) report_status(a, text.name, status);
  text_free(&text);
  return pack;
}

/* Whether all targets have the same kernel, so that the kernel alone is compared. */
static bool is_one_kernel(const canvas_pack *pack) {
  return canvas_pack_kernels(pack) == 1 && !canvas_pack_kept(pack);
}

static int undecided(void) {
  puts("not decided: a kernel is too symmetric");
  return EXIT_NONE;
}

static int compare_kernels(const canvas_pack *left, const canvas_pack *right) {
  canvas_hash a = canvas_pack_hash(left), b = canvas_pack_hash(right);
  bool equal = !strcmp(a.hex, b.hex);
  if (!equal && !(a.decided && b.decided)) return undecided();
  puts(equal ? "equal" : "different");
  return equal ? EXIT_OK : EXIT_NONE;
}

static int compare_targets(struct arguments *a, const canvas_pack *left, const canvas_pack *right) {
  char *difference;
  canvas_status status = canvas_pack_compare(a->ctx, left, right, &difference);
  if (status == CANVAS_NONE) return undecided();
  if (status != CANVAS_OK) return report_status(a, a->operand[0], status);
  bool equal = !*difference;
  if (equal)
    puts("equal");
  else
    printf("different: %s\n", difference);
  canvas_string_free(difference);
  return equal ? EXIT_OK : EXIT_NONE;
}

static int run(struct arguments *a) {
  if (!strcmp(a->operand[0], "-") && !strcmp(a->operand[1], "-"))
    return report_error("'equal' can read only one of A and B from standard input");
  canvas_pack *left = read_pack(a, a->operand[0]);
  canvas_pack *right = left ? read_pack(a, a->operand[1]) : NULL;
  int answer = EXIT_BAD;
  if (right)
    answer = is_one_kernel(left) && is_one_kernel(right) ? compare_kernels(left, right)
                                                         : compare_targets(a, left, right);
  canvas_pack_free(left);
  canvas_pack_free(right);
  return answer;
}

const struct command command_equal = {
    .subcommand = "equal",
    .operands = "A B",
    .least = 2,
    .most = 2,
    .summary = "check whether two files hold the same kernel or pack",
    .details =
        "Names, the numbering of x, the order of independent nodes and the order of commutative\n"
        "inputs do not matter, nor do the sizes of a pack with one kernel for all targets. Packs\n"
        "of several kernels or kept targets are compared target by target, with sizes and norms;\n"
        "the first target that differs is named. Exit status 1 if they differ, or if a kernel is\n"
        "too symmetric to decide (none is known).\n",
    .example =
        "canvas sample --targets \"64,56,56\" >a.kernel\n"
        "canvas show a.kernel | canvas equal - a.kernel",
    .run = run,
};
