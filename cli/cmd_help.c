/* canvas help: all subcommands, one subcommand, or the manual page, generated from their rows. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "command.h"

static const char about_files[] =
    "A file may hold many kernels; - is standard input. Exit status: 0, 1 if there is no\n"
    "result, 2 for bad input.\n";
static const char python_package[] = "With the Python package (pip install canvas-kas):";

static void print_subcommands(const struct command *const *commands) {
  bool python = false;
  printf("usage: canvas NAME ...\n\n");
  for (const struct command *c; (c = *commands); commands++) {
    if (!c->run && !python) printf("\n%s\n\n", python_package);
    python = !c->run;
    printf("  %-12s %s\n", c->subcommand, c->summary);
  }
  printf("\n%s", about_files);
}

/* ---- the manual page, in the language of man(7) -------------------------------------------- */

/* Text as it stands: no hyphens for minus signs, no line that roff takes for a request. */
static void roff(const char *text) {
  bool begins = true;
  for (const char *p = text; *p; p++) {
    if (begins && (*p == '.' || *p == '\'')) fputs("\\&", stdout);
    begins = *p == '\n';
    if (*p == '\\')
      fputs("\\e", stdout);
    else if (*p == '-')
      fputs("\\-", stdout);
    else
      putchar(*p);
  }
}

static void roff_command(const struct command *c) {
  printf(".SS ");
  print_usage(c);
  printf("\n%c", toupper(c->summary[0]));
  roff(c->summary + 1);
  printf(".\n");
  roff(c->details);
  for (int i = 0; i < OPTIONS_MAX && c->options[i].flag; i++) {
    const struct option *o = &c->options[i];
    printf(".TP\n.B ");
    roff(o->flag);
    if (o->metavar) {
      printf(" \\fI");
      roff(o->metavar);
      printf("\\fP");
    }
    printf("\n");
    roff(o->help);
    printf("\n");
  }
  printf(".PP\n.EX\n");
  roff(c->example);
  printf("\n.EE\n");
}

static void print_manual(const struct command *const *commands) {
  bool python = false;
  printf(".TH CANVAS 1 \"\" \"canvas %s\" \"User Commands\"\n", canvas_version());
  printf(".SH NAME\ncanvas \\- find new neural operators for a network you already have\n");
  printf(".SH SYNOPSIS\n.B canvas\n.I NAME\n.RI [ FLAGS ]\n.I ...\n.SH DESCRIPTION\n");
  roff(about_files);
  printf(".SH SUBCOMMANDS\n");
  for (const struct command *c; (c = *commands); commands++) {
    if (c->run) {
      roff_command(c);
      continue;
    }
    if (!python) printf(".SH MORE SUBCOMMANDS\n%s\n", python_package);
    python = true;
    printf(".TP\n.B %s\n", c->subcommand);
    roff(c->summary);
    printf("\n");
  }
}

/* ---- the subcommand ------------------------------------------------------------------------------ */

static int run(struct arguments *a) {
  const char *subcommand = a->operand[0];
  if (option_given(a, "--man")) return print_manual(a->commands), EXIT_OK;
  if (!subcommand) return print_subcommands(a->commands), EXIT_OK;
  const struct command *c = command_find(a->commands, subcommand);
  if (!c) return reject_subcommand(a->commands, subcommand);
  if (c->run) return print_command(c), EXIT_OK;
  printf("%c%s.\n\n%s canvas %s --help lists its flags.\n", toupper(c->summary[0]), c->summary + 1,
         python_package, c->subcommand);
  return EXIT_OK;
}

const struct command command_help = {
    .subcommand = "help",
    .operands = "NAME",
    .most = 1,
    .summary = "describe a subcommand",
    .details = "Without NAME, lists all subcommands, one line each.\n",
    .example = "canvas help sample",
    .options = {{"--man", NULL, "print everything as a manual page: canvas help --man | man -l -"}},
    .run = run,
};
