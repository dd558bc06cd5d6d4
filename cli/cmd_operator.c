/* canvas operator: print the program of an operator, or list operators and their arguments. */
#include <stdlib.h>
#include <string.h>

#include "command.h"

static int print_program(struct arguments *a) {
  canvas_program *program;
  char *text = operands_join(a, 1);
  if (!text) return report_error("out of memory for the arguments");
  canvas_status status =
      canvas_operator_program(a->ctx, a->operand[0], text, strlen(text), &program);
  free(text);
  if (status != CANVAS_OK) return report_error("%s", canvas_context_message(a->ctx));
  put_text(canvas_program_print(program));
  canvas_program_free(program);
  return EXIT_OK;
}

static int print_arguments(struct arguments *a) {
  char *text;
  if (canvas_operator_describe(a->ctx, a->operand[0], &text) != CANVAS_OK)
    return report_error("%s", canvas_context_message(a->ctx));
  put_text(text);
  return EXIT_OK;
}

static int run(struct arguments *a) {
  bool json = option_given(a, "--json"), markdown = option_given(a, "--markdown");
  if (a->operand[0] && (json || markdown))
    return report_error("%s lists all operators, leave out '%.60s'", json ? "--json" : "--markdown",
                        a->operand[0]);
  if (json && markdown) return report_error("give either --json or --markdown");
  if (a->operand[0]) return a->operand[1] ? print_program(a) : print_arguments(a);
  put_text(canvas_operators_print(json ? CANVAS_JSON : markdown ? CANVAS_MARKDOWN : CANVAS_TEXT));
  return EXIT_OK;
}

const struct command command_operator = {
    .subcommand = "operator",
    .operands = "NAME ARGUMENT=VALUE...",
    .most = OPERANDS_MAX,
    .summary = "print the tensor program of an operator",
    .details =
        "Without NAME, lists the operators. With NAME alone, lists the arguments of the\n"
        "operator.\n",
    .example =
        "canvas operator conv2d_nchw in_channels=64 height=56 width=56 out_channels=64 kernel=3 "
        "\\\n"
        "  padding=1",
    .options = {{"--json", NULL, "the operators as a JSON list of rows"},
                {"--markdown", NULL, "the table of docs/operators.md"}},
    .run = run,
};
