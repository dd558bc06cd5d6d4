/* canvas primitives: print the table that the parser, the sampler and docs/kernel.md use. */
#include "command.h"

static int run(struct arguments *a) {
  bool json = option_given(a, "--json"), markdown = option_given(a, "--markdown");
  if (json && markdown) return report_error("give either --json or --markdown");
  put_text(canvas_primitives_print(json ? CANVAS_JSON : markdown ? CANVAS_MARKDOWN : CANVAS_TEXT));
  return EXIT_OK;
}

const struct command command_primitives = {
    .subcommand = "primitives",
    .operands = "",
    .summary = "list the primitives and their meanings",
    .details = "",
    .example = "canvas primitives",
    .options = {{"--json", NULL, "a JSON list of rows"},
                {"--markdown", NULL, "the table of docs/kernel.md"}},
    .run = run,
};
