/* Lists of targets: their cost, what is drawn for them, and a kernel that is solved for them. */
#include "fuzz.h"

#include <string.h>

static const char involution[] =
    "canvas 1\nkernel involution\na = input\nb = fc a to=x0\nc = relu b\nd = fc c to=G*KH*KW\n"
    "e = group d by=G\nf = unfold a over=H,W k=K\ng = group f by=G\nh = mul e g\n"
    "i = fold h mean over=KH,KW\nout i\n";

static void check_costs(canvas_context *ctx, const canvas_targets *targets) {
  canvas_cost cost;
  char *json = NULL;
  for (int i = -1; i < canvas_targets_count(targets); i++)
    if (fine(ctx, canvas_targets_cost(ctx, targets, i, &cost)))
      must(cost.macs > 0 && cost.params > 0, "a layer costs something");
  if (fine(ctx, canvas_targets_cost_json(ctx, targets, &json)))
    must(*json == '{', "a cost as JSON");
  canvas_string_free(json);
}

/* A pack of `kernel` for the targets, if there is one. */
static void check_solution(canvas_context *ctx, const canvas_targets *targets,
                           const canvas_kernel *kernel, int64_t groups, bool drawn) {
  static const char half[] = "macs=0.5x";
  canvas_solve_options options = {.groups = groups};
  canvas_budget *budget = NULL;
  canvas_pack *pack = NULL;
  canvas_cost before, after;
  must(fine(ctx, canvas_budget_parse(ctx, half, strlen(half), &budget)), "a budget parses");
  if (fine(ctx, canvas_kernel_solve(ctx, kernel, targets, budget, &options, &pack))) {
    must(fine(ctx, canvas_targets_cost(ctx, targets, -1, &before)), "the layers have a cost");
    if (fine(ctx, canvas_pack_cost(ctx, pack, -1, &after)))
      must(after.macs <= before.macs / 2, "a solution is within its budget");
    must(!drawn || !canvas_pack_reach(pack), "what is drawn reaches");
    check_pack(ctx, pack);
  }
  canvas_pack_free(pack);
  canvas_budget_free(budget);
}

static void check_draws(canvas_context *ctx, const canvas_targets *targets) {
  canvas_sampler *sampler = NULL;
  canvas_kernel *kernel = NULL;
  int64_t groups;
  if (fine(ctx, canvas_sampler_new(ctx, targets, "", 0, 1, &sampler)) &&
      fine(ctx, canvas_sampler_draw(ctx, sampler, 0, &kernel, &groups))) {
    check_solution(ctx, targets, kernel, groups, true);
  }
  canvas_kernel_free(kernel);
  canvas_sampler_free(sampler);
}

static void check_targets(canvas_context *ctx, const canvas_targets *targets) {
  canvas_targets *again = NULL;
  canvas_kernel *kernel = NULL;
  char *text = canvas_targets_print(targets);
  must(fine(ctx, canvas_targets_parse(ctx, text, strlen(text), &again)), "printed targets parse");
  char *same = canvas_targets_print(again);
  must(strcmp(text, same) == 0, "the text of targets is stable");
  canvas_string_free(text);
  canvas_string_free(same);
  canvas_targets_free(again);
  check_costs(ctx, targets);
  must(fine(ctx, canvas_kernel_parse(ctx, involution, strlen(involution), &kernel)), "involution");
  check_solution(ctx, targets, kernel, 2, false);
  canvas_kernel_free(kernel);
  check_draws(ctx, targets);
}

void fuzz(canvas_context *ctx, const char *text, size_t size) {
  canvas_targets *targets = NULL;
  if (fine(ctx, canvas_targets_parse(ctx, text, size, &targets))) check_targets(ctx, targets);
  canvas_targets_free(targets);
}
