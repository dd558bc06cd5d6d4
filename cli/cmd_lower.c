/* canvas lower: lower a kernel to its tensor program at each target. */
#include <stdio.h>

#include "command.h"

struct lower {
  int64_t batch;
  int shown;
};

static int lower_target(struct arguments *a, const canvas_pack *pack, int target, struct lower *l) {
  canvas_program *program;
  canvas_status status = canvas_pack_lower(a->ctx, pack, target, l->batch, &program);
  if (status != CANVAS_OK) return report_kernel(a, canvas_pack_kernel_of(pack, target), status);
  printf("%s# %s\n", l->shown++ ? "\n" : "", canvas_pack_target(pack, target));
  put_text(canvas_program_print(program));
  canvas_program_free(program);
  return EXIT_OK;
}

static int lower(struct arguments *a, canvas_pack *pack, void *data) {
  canvas_pack *made;
  const canvas_pack *sized = pack_sized(a, pack, &made);
  int first, end, answer = EXIT_OK;
  if (!sized) return EXIT_BAD;
  if (!targets_chosen(a, sized, &first, &end)) answer = EXIT_BAD;
  for (; answer == EXIT_OK && first < end; first++) answer = lower_target(a, sized, first, data);
  canvas_pack_free(made);
  return answer;
}

static int run(struct arguments *a) {
  struct lower l = {0};
  if (!option_whole(a, "-N", 1, 1, 65536, &l.batch)) return EXIT_BAD;
  return file_each(a, a->operand[0], lower, &l);
}

const struct command command_lower = {
    .subcommand = "lower",
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "print the tensor program that a kernel is lowered to",
    .details = "Prints one program per target; pooling, copies and averaging are included.\n",
    .example =
        "canvas sample --targets \"16,8,8\" --groups 4 |\n"
        "  canvas solve - --targets \"16,8,8\" --budget macs=0.5x --at G=4 |\n"
        "  canvas lower -",
    .options = {{"--at", "SIZES",
                 "sizes of a kernel without bind lines, such as C=64,H=56,W=56,G=4,x0=64"},
                {"--target", "NAME", "only this target of a pack"},
                {"-N", "BATCH", "batch size (default 1)"}},
    .run = run,
};
