/* The texts of one line: budgets, the solver's and the sampler's options, sizes given by hand. Every
 * input is read as each of them. */
#include "fuzz.h"

#include <string.h>

#include "budget/budget.h"
#include "sample/sampler.h"

static const char kernel_text[] =
    "canvas 1\nkernel k\na = input\nb = group a by=G\nc = unfold b over=H,W k=K\nd = fc c to=x0\n"
    "e = fc d to=C\nout e\n";
static const char layers[] = "t0 16 16 8 8 3 1 1\nt1 16 32 8 8 3 2 1\n";

/* What the printed budget parses to is the same budget, and a solution is inside it. */
static void check_budget(canvas_context *ctx, const struct budget *budget) {
  struct buf once = {0}, twice = {0};
  struct budget again;
  budget_print(budget, &once);
  must(fine(ctx, budget_parse(ctx, once.text, once.length, &again)), "a printed budget parses");
  budget_print(&again, &twice);
  must(strcmp(once.text, twice.text) == 0, "a budget's text is stable");
  buf_free(&once);
  buf_free(&twice);
}

static void check_solution(canvas_context *ctx, const canvas_kernel *kernel,
                           const struct budget *budget) {
  struct solve_trace trace;
  struct solve_options options = {.g = 4, .trace = &trace};
  struct targets targets;
  struct pack *pack = NULL;
  must(fine(ctx, targets_parse(ctx, layers, strlen(layers), &targets)), "layers");
  if (fine(ctx,
           budget_solve(ctx, (const struct kernel *)kernel, &targets, budget, &options, &pack)))
    for (int kind = 0; kind < BUDGET_KINDS; kind++)
      must(trace.used[kind] <= trace.most[kind], "a solution is within its budget");
  pack_free(pack);
  targets_free(&targets);
}

void fuzz(canvas_context *ctx, const char *text, size_t size) {
  canvas_kernel *kernel = NULL;
  canvas_pack *pack = NULL;
  struct budget budget;
  canvas_solve_options solve;
  struct sample_options sample;
  must(fine(ctx, canvas_kernel_parse(ctx, kernel_text, strlen(kernel_text), &kernel)), "kernel");
  if (fine(ctx, budget_parse(ctx, text, size, &budget))) {
    check_budget(ctx, &budget);
    check_solution(ctx, kernel, &budget);
  }
  if (fine(ctx, canvas_solve_options_parse(ctx, text, size, &solve)))
    must(solve.groups >= 0, "G is a size");
  if (fine(ctx, sample_options_parse(ctx, text, size, &sample)))
    must(sample.least >= 1 && sample.least <= sample.most, "primitives are a range");
  if (fine(ctx, canvas_kernel_bind(ctx, kernel, text, size, &pack))) check_pack(ctx, pack);
  canvas_pack_free(pack);
  canvas_kernel_free(kernel);
}
