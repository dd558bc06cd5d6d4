/* canvas solve: choose sizes for every target that fill a budget. */
#include <stdio.h>
#include <string.h>

#include "command.h"

struct solve {
  canvas_targets *targets;
  canvas_budget *budget;
  canvas_solve_options options;
  int solved;
};

static canvas_status print_json(struct arguments *a, const canvas_pack *pack) {
  char *cost, *text;
  canvas_status status = canvas_pack_cost_json(a->ctx, pack, &cost);
  if (status != CANVAS_OK) return status;
  text = canvas_pack_print(pack);
  fputs("{\"pack\": ", stdout);
  put_json_string(text);
  fputs(", \"cost\": ", stdout);
  put_text(cost);
  fputs("}\n", stdout);
  canvas_string_free(text);
  return CANVAS_OK;
}

static int solve(struct arguments *a, canvas_pack *pack, void *data) {
  struct solve *s = data;
  canvas_pack *solved;
  const canvas_kernel *kernel = canvas_pack_kernel(pack);
  if (canvas_pack_kernels(pack) > 1 || canvas_pack_kept(pack))
    return report_error("'%s' is in a pack of several kernels; solve one kernel",
                        canvas_kernel_name(kernel));
  canvas_status status =
      canvas_kernel_solve(a->ctx, kernel, s->targets, s->budget, &s->options, &solved);
  if (status != CANVAS_OK) return report_kernel(a, kernel, status);
  if (option_given(a, "--json")) {
    status = print_json(a, solved);
    if (status != CANVAS_OK) report_kernel(a, kernel, status);
  } else {
    if (s->solved++) putchar('\n');
    put_text(canvas_pack_print(solved));
  }
  canvas_pack_free(solved);
  return status == CANVAS_OK ? EXIT_OK : EXIT_BAD;
}

static bool open_solve(struct arguments *a, struct solve *s) {
  const char *at = option_text(a, "--at", "");
  const char *budget = option_required(a, "--budget");
  if (!budget) return false;
  canvas_status status = canvas_solve_options_parse(a->ctx, at, strlen(at), &s->options);
  if (status != CANVAS_OK) return report_flag(a, "--at", status), false;
  s->options.exempt |= option_given(a, "--exempt");
  if (!norm_chosen(a, &s->options)) return false;
  status = canvas_budget_parse(a->ctx, budget, strlen(budget), &s->budget);
  if (status != CANVAS_OK) return report_flag(a, "--budget", status), false;
  s->targets = targets_read(a);
  return s->targets != NULL;
}

static int run(struct arguments *a) {
  struct solve s = {0};
  int answer = EXIT_BAD;
  if (open_solve(a, &s)) answer = file_each(a, a->operand[0], solve, &s);
  canvas_budget_free(s.budget);
  canvas_targets_free(s.targets);
  return answer;
}

const struct command command_solve = {
    .subcommand = "solve",
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "choose the sizes of kernels that fill a budget at every target",
    .details =
        "Prints each kernel with a bind line per target. The budget limits the sum over the\n"
        "targets: macs=0.5x (of the replaced layers), macs=900M, macs=0.2x..0.5x, params=none; a\n"
        "quantity that is not named is limited to 1.0x. Exit status 1 if no kernel of the file\n"
        "has a solution.\n",
    .example =
        "canvas sample --targets \"16,8,8\" --groups 4 |\n"
        "  canvas solve - --targets \"16,8,8\" --budget macs=0.5x --at G=4",
    .options = {{"--targets", "FILE|\"C,H,W;...\"",
                 "layers to replace: a file with a line each, or the short form"},
                {"--budget", "BUDGET", "such as macs=0.5x,params=0.5x"},
                {"--at", "G=4", "value of G, for a kernel that uses it"},
                {"--norm", "batch|none", "batch: a norm after every inner weight (default none)"},
                {"--exempt", NULL,
                 "allow equal copies without weights, and weights that cannot affect small "
                 "images"},
                {"--json", NULL, "one JSON object {\"pack\", \"cost\"} per line"}},
    .run = run,
};
