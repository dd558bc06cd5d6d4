/* Random kernels from C: drawn for some layers, sized for a budget, and for each layer lowered to a program,
 * compiled with the default schedule, checked and timed.
 *
 *     draw_kernel TARGETS BUDGET SEED        draw_kernel "64,56,56;128,28,28" macs=0.5x 1
 */
#include <canvas.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DRAWS = 1000 };

static canvas_context *ctx;

/* The status, if it is one that has an answer: CANVAS_OK, or CANVAS_NONE. */
static canvas_status answered(canvas_status status) {
  if (status == CANVAS_OK || status == CANVAS_NONE) return status;
  fprintf(stderr, "draw_kernel: %s\n", canvas_context_message(ctx));
  exit(2);
}

static void must(canvas_status status) {
  if (answered(status) == CANVAS_OK) return;
  fprintf(stderr, "draw_kernel: %s\n", canvas_context_message(ctx));
  exit(2);
}

/* The first draw that has sizes within the budget, with them; NULL: none of DRAWS has. */
static canvas_pack *first_fit(const canvas_targets *targets, const canvas_budget *budget,
                              uint64_t seed) {
  canvas_sampler *sampler;
  canvas_pack *pack = NULL;
  must(canvas_sampler_new(ctx, targets, "", 0, seed, &sampler));
  for (uint64_t i = 0; i < DRAWS && !pack; i++) {
    canvas_kernel *kernel;
    canvas_solve_options options = {.norm = CANVAS_NORM_BATCH};
    if (answered(canvas_sampler_draw(ctx, sampler, i, &kernel, &options.groups)) == CANVAS_NONE)
      continue; /* skipped: the message says why */
    if (answered(canvas_kernel_solve(ctx, kernel, targets, budget, &options, &pack)) == CANVAS_NONE)
      pack = NULL;
    canvas_kernel_free(kernel);
  }
  canvas_sampler_free(sampler);
  return pack;
}

/* One layer of the pack, of one sample. */
static void measure(const canvas_pack *pack, int target, const canvas_machine *machine) {
  canvas_program *program;
  canvas_bound *bound;
  canvas_measurer *measurer;
  canvas_verdict verdict;
  canvas_cost cost;
  must(canvas_pack_cost(ctx, pack, target, &cost));
  must(canvas_pack_lower(ctx, pack, target, 1, &program));
  must(canvas_bound_new(ctx, program, NULL, machine, &bound)); /* NULL: the default schedule */
  must(canvas_measurer_new(ctx, program, NULL, &measurer));
  must(canvas_measurer_run(ctx, measurer, (const canvas_bound *[]){bound}, 1, &verdict));
  printf("# %s: %" PRId64 " MACs, ", canvas_pack_target(pack, target), cost.macs);
  if (verdict.failure)
    printf("%s: %s\n", canvas_failure_name(verdict.failure), verdict.message);
  else
    printf("correct, %.3g us\n", 1e6 * verdict.median);
  canvas_measurer_free(measurer);
  canvas_bound_free(bound);
  canvas_program_free(program);
}

int main(int argc, char **argv) {
  canvas_targets *targets;
  canvas_budget *budget;
  if (argc != 4) return fprintf(stderr, "usage: draw_kernel TARGETS BUDGET SEED\n"), 2;
  char *end = argv[3];
  errno = 0;
  uint64_t seed = strtoull(argv[3], &end, 10);
  if (end == argv[3] || *end || errno || argv[3][0] == '-')
    return fprintf(stderr, "draw_kernel: SEED is a whole number, not '%s'\n", argv[3]), 2;
  ctx = canvas_context_new();
  must(canvas_targets_parse(ctx, argv[1], strlen(argv[1]), &targets));
  must(canvas_budget_parse(ctx, argv[2], strlen(argv[2]), &budget));
  canvas_pack *pack = first_fit(targets, budget, seed);
  if (!pack) return fprintf(stderr, "draw_kernel: none of %d draws fits the budget\n", DRAWS), 1;
  char *text = canvas_pack_print(pack);
  fputs(text, stdout);
  canvas_string_free(text);
  canvas_machine *here = canvas_machine_here();
  for (int i = 0; i < canvas_pack_count(pack); i++) measure(pack, i, here);
  canvas_machine_free(here);
  canvas_pack_free(pack);
  canvas_budget_free(budget);
  canvas_targets_free(targets);
  canvas_context_free(ctx);
  return 0;
}
