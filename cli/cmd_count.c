/* canvas count: operations and bytes of a tensor program, stage by stage. */
#include <inttypes.h>
#include <stdio.h>

#include "command.h"

static void print_row(const char *name, int width, const canvas_count *c) {
  char reduction[24] = "";
  if (c->reduction) snprintf(reduction, sizeof reduction, "%" PRId64, c->reduction);
  printf("%-*s %14" PRId64 " %12s %16" PRId64 " %14" PRId64 " %14" PRId64 "\n", width, name,
         c->points, reduction, c->flops, c->read, c->written);
}

static canvas_status print_table(struct arguments *a, const canvas_program *program) {
  int width = (int)sizeof "stage" - 1, stages = canvas_program_stages(program);
  canvas_count count;
  canvas_status status = canvas_program_count(a->ctx, program, -1, &count);
  if (status != CANVAS_OK) return status;
  for (int i = 0; i < stages; i++) {
    int length = snprintf(NULL, 0, "%s", canvas_program_stage(program, i));
    if (length > width) width = length;
  }
  printf("%-*s %14s %12s %16s %14s %14s\n", width, "stage", "points", "reduction", "flops", "read",
         "written");
  if (stages > 1) print_row("all", width, &count);
  for (int i = 0; i < stages && status == CANVAS_OK; i++) {
    status = canvas_program_count(a->ctx, program, i, &count);
    if (status == CANVAS_OK) print_row(canvas_program_stage(program, i), width, &count);
  }
  return status;
}

static canvas_status print_json(struct arguments *a, const canvas_program *program) {
  char *text;
  canvas_status status = canvas_program_count_json(a->ctx, program, &text);
  if (status != CANVAS_OK) return status;
  put_text(text);
  putchar('\n');
  return CANVAS_OK;
}

static int run(struct arguments *a) {
  canvas_program *program = program_read(a, a->operand[0]);
  if (!program) return EXIT_BAD;
  canvas_status status =
      option_given(a, "--json") ? print_json(a, program) : print_table(a, program);
  if (status != CANVAS_OK) report_status(a, a->operand[0], status);
  canvas_program_free(program);
  return status == CANVAS_OK ? EXIT_OK : EXIT_BAD;
}

const struct command command_count = {
    .subcommand = "count",
    .operands = "PROGRAM",
    .least = 1,
    .most = 1,
    .summary = "count operations and bytes of a tensor program",
    .details =
        "Prints for each stage: elements, reduced points per element, floating-point operations\n"
        "(a multiply-add is two) and bytes (each loaded element counts once). If loop bounds\n"
        "depend on data, the counts are upper bounds.\n",
    .example =
        "canvas sample --targets \"16,8,8\" --groups 4 |\n"
        "  canvas solve - --targets \"16,8,8\" --budget macs=0.5x --at G=4 |\n"
        "  canvas lower - | canvas count -",
    .options = {{"--json", NULL, "one JSON object"}},
    .run = run,
};
