/* Find a subcommand by its name, and print its help from its row. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "command.h"

enum { NAMES_MAX = 64 };

const struct command *command_find(const struct command *const *commands, const char *subcommand) {
  while (*commands && strcmp((*commands)->subcommand, subcommand)) commands++;
  return *commands;
}

int reject_subcommand(const struct command *const *commands, const char *subcommand) {
  const char *names[NAMES_MAX];
  int count = 0;
  while (count < NAMES_MAX && commands[count]) {
    names[count] = commands[count]->subcommand;
    count++;
  }
  const char *near = nearest(subcommand, names, count);
  if (near) return report_error("unknown subcommand '%.60s', did you mean '%s'?", subcommand, near);
  return report_error("unknown subcommand '%.60s', 'canvas help' lists them", subcommand);
}

void print_usage(const struct command *c) {
  bool optional = !c->least && c->most;
  printf("canvas %s%s%s%s%s", c->subcommand,
         optional  ? " ["
         : c->most ? " "
                   : "",
         c->operands, optional ? "]" : "", c->options[0].flag ? " [FLAGS]" : "");
}

static void print_example(const char *text) {
  printf("\nExample:\n");
  for (const char *line = text; *line;) {
    int length = (int)strcspn(line, "\n");
    printf("  %.*s\n", length, line);
    line += length + (line[length] == '\n');
  }
}

void print_command(const struct command *c) {
  printf("usage: ");
  print_usage(c);
  printf("\n\n%c%s.\n%s", toupper(c->summary[0]), c->summary + 1, c->details);
  if (c->options[0].flag) putchar('\n');
  for (int i = 0; i < OPTIONS_MAX && c->options[i].flag; i++) {
    const struct option *o = &c->options[i];
    int width = printf("  %s%s%s", o->flag, o->metavar ? " " : "", o->metavar ? o->metavar : "");
    printf("%*s%s\n", width < 29 ? 30 - width : 2, "", o->help);
  }
  print_example(c->example);
}
