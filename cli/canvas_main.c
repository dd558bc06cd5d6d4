/* The canvas command: finds the verb's row, parses by it, runs it, and checks that stdout took it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "command.h"

static const struct command *const commands[] = {
    &command_sample, &command_check, &command_show, &command_cost,  &command_solve,
    &command_eval,   &command_lower, &command_hash, &command_equal, &command_primitives,
};
enum { COMMANDS = sizeof commands / sizeof *commands };

/* Verbs that the Python package adds, for its users to be told where they are. */
static const char *const python_verbs[] = {"search", "trials", "pareto", "replay", "train", "export"};
enum { PYTHON_VERBS = sizeof python_verbs / sizeof *python_verbs };

static const struct command *find_command(const char *verb) {
  for (int i = 0; i < COMMANDS; i++)
    if (!strcmp(commands[i]->verb, verb)) return commands[i];
  return NULL;
}

static bool is_python_verb(const char *verb) {
  for (int i = 0; i < PYTHON_VERBS; i++)
    if (!strcmp(python_verbs[i], verb)) return true;
  return false;
}

static int refuse_verb(const char *verb) {
  const char *names[COMMANDS + PYTHON_VERBS + 1] = {"help"};
  int count = 1;
  if (is_python_verb(verb))
    return complain("'%s' needs the Python package: pip install canvas-kas", verb);
  for (int i = 0; i < COMMANDS; i++) names[count++] = commands[i]->verb;
  for (int i = 0; i < PYTHON_VERBS; i++) names[count++] = python_verbs[i];
  const char *near = nearest(verb, names, count);
  if (near) return complain("unknown verb '%.60s', did you mean '%s'?", verb, near);
  return complain("unknown verb '%.60s', 'canvas help' lists them", verb);
}

/* ---- help ---------------------------------------------------------------------------------- */

static int print_verbs(void) {
  printf("usage: canvas VERB ...\n\n");
  for (int i = 0; i < COMMANDS; i++)
    printf("  %-12s %s\n", commands[i]->verb, commands[i]->summary);
  printf("  %-12s %s\n", "help [VERB]", "say more about a verb");
  printf("\nWith the Python package (pip install canvas-kas):");
  for (int i = 0; i < PYTHON_VERBS; i++) printf("%s %s", i ? "," : "", python_verbs[i]);
  printf(
      ".\nA file may hold many kernels; - is standard input. Exit status: 0, 1 where the answer "
      "is\n"
      "\"none\", 2 for bad input.\n");
  return EXIT_OK;
}

static int print_command(const struct command *c) {
  printf("usage: canvas %s%s%s%s\n\n%c%s.\n", c->verb, *c->operands ? " " : "", c->operands,
         c->options[0].flag ? " [FLAGS]" : "", c->summary[0] - 'a' + 'A', c->summary + 1);
  if (*c->details) printf("%s", c->details);
  if (c->options[0].flag) putchar('\n');
  for (int i = 0; i < OPTIONS_MAX && c->options[i].flag; i++) {
    const struct option *o = &c->options[i];
    int width = printf("  %s%s%s", o->flag, o->metavar ? " " : "", o->metavar ? o->metavar : "");
    printf("%*s%s\n", width < 30 ? 30 - width : 2, "", o->help);
  }
  return EXIT_OK;
}

static int help(int count, char **words) {
  if (!count) return print_verbs();
  if (count > 1) return complain("'help' takes one verb, not also '%.60s'", words[1]);
  const struct command *c = find_command(words[0]);
  if (c) return print_command(c);
  if (!strcmp(words[0], "help")) return print_verbs();
  if (is_python_verb(words[0])) {
    printf(
        "'%s' comes with the Python package (pip install canvas-kas); 'canvas %s --help' lists its "
        "flags.\n",
        words[0], words[0]);
    return EXIT_OK;
  }
  return refuse_verb(words[0]);
}

/* ---- the verb ------------------------------------------------------------------------------ */

static bool wants_help(int count, char **words) {
  for (int i = 0; i < count && strcmp(words[i], "--"); i++)
    if (!strcmp(words[i], "--help") || !strcmp(words[i], "-h")) return true;
  return false;
}

static int run_command(const struct command *c, int count, char **words) {
  if (wants_help(count, words)) return print_command(c);
  struct arguments a = {.command = c, .ctx = canvas_context_new()};
  int answer = arguments_parse(&a, count, words) ? c->run(&a) : EXIT_BAD;
  canvas_context_free(a.ctx);
  return answer;
}

static int dispatch(int count, char **words) {
  if (!count) return complain("a verb is missing, 'canvas help' lists them");
  const char *verb = words[0];
  if (!strcmp(verb, "help") || !strcmp(verb, "--help") || !strcmp(verb, "-h"))
    return help(count - 1, words + 1);
  if (!strcmp(verb, "--version")) return printf("canvas %s\n", canvas_version()), EXIT_OK;
  const struct command *c = find_command(verb);
  return c ? run_command(c, count - 1, words + 1) : refuse_verb(verb);
}

/* Whether all of stdout arrived; a full disk shows only when the last buffer is written. Of an earlier
 * failure the reason is gone, so one more byte asks for it. */
static bool flush_output(void) {
  bool failed = ferror(stdout);
  clearerr(stdout);
  errno = 0;
  if (failed) putchar('\n');
  if (!fflush(stdout) && !failed) return true;
  const char *why = errno ? strerror(errno) : "an earlier write failed";
  clearerr(stdout);
  fprintf(stderr, "canvas: cannot write the output: %s\n", why);
  return false;
}

/* A closed pipe is an error of write, not a signal, while the command runs. */
int canvas_main(int argc, char **argv) {
  struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
  sigemptyset(&ignore.sa_mask);
  bool set = !sigaction(SIGPIPE, &ignore, &before);
  int answer = dispatch(argc > 1 ? argc - 1 : 0, argv + 1);
  if (!flush_output()) answer = EXIT_BAD;
  if (set) sigaction(SIGPIPE, &before, NULL);
  return answer;
}
