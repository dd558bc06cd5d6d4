/* The canvas command: find the row of the subcommand, parse its arguments, run it, flush stdout. */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "command.h"

/* Subcommands of the Python package, which the help lists. */
static const struct command python_subcommands[] = {
    {.subcommand = "search", .summary = "search for kernels that replace a network's convolutions"},
    {.subcommand = "fit", .summary = "make a trained network faster, an operator for each layer"},
    {.subcommand = "trials", .summary = "list all candidates of a study"},
    {.subcommand = "pareto", .summary = "print and plot the Pareto front of a study"},
    {.subcommand = "report", .summary = "show a study as one page of HTML"},
    {.subcommand = "study", .summary = "join the studies of several seeds into one table"},
    {.subcommand = "replay", .summary = "train and time a candidate of a study again"},
    {.subcommand = "train", .summary = "train a network with a kernel of a search in it"},
    {.subcommand = "export",
     .summary = "export a kernel and its network as files that need no Canvas"},
    {.subcommand = "env", .summary = "print versions and machine for a bug report"},
};

static const struct command *const commands[] = {
    &command_sample,        &command_check,         &command_show,
    &command_cost,          &command_solve,         &command_eval,
    &command_lower,         &command_count,         &command_edit,
    &command_schedule,      &command_compile,       &command_run,
    &command_tune,          &command_log,           &command_machine,
    &command_hash,          &command_equal,         &command_primitives,
    &command_operator,      &command_network,       &command_help,
    &command_completion,    &python_subcommands[0], &python_subcommands[1],
    &python_subcommands[2], &python_subcommands[3], &python_subcommands[4],
    &python_subcommands[5], &python_subcommands[6], &python_subcommands[7],
    &python_subcommands[8], &python_subcommands[9], NULL};

/* ---- the subcommand ------------------------------------------------------------------------------ */

static bool wants_help(int count, char **words) {
  for (int i = 0; i < count && strcmp(words[i], "--"); i++)
    if (!strcmp(words[i], "--help") || !strcmp(words[i], "-h")) return true;
  return false;
}

static int run_command(const struct command *c, int count, char **words) {
  if (!c->run)
    return report_error("'%s' needs the Python package: pip install canvas-kas", c->subcommand);
  if (wants_help(count, words)) return print_command(c), EXIT_OK;
  struct arguments a = {.command = c, .commands = commands, .ctx = canvas_context_new()};
  int answer = arguments_parse(&a, count, words) ? c->run(&a) : EXIT_BAD;
  canvas_context_free(a.ctx);
  return answer;
}

static int dispatch(int count, char **words) {
  if (!count) return report_error("no subcommand given, 'canvas help' lists them");
  const char *subcommand = words[0];
  if (!strcmp(subcommand, "--version")) return printf("canvas %s\n", canvas_version()), EXIT_OK;
  if (!strcmp(subcommand, "--help") || !strcmp(subcommand, "-h")) subcommand = "help";
  const struct command *c = command_find(commands, subcommand);
  return c ? run_command(c, count - 1, words + 1) : reject_subcommand(commands, subcommand);
}

/* Flushes stdout; false if a write failed. A full disk shows only when the last buffer is written. The
 * errno of an earlier failure is lost, so one more byte is written to get it. A closed pipe, as of head,
 * gives no message. */
static bool flush_output(void) {
  bool failed = ferror(stdout);
  clearerr(stdout);
  errno = 0;
  if (failed) putchar('\n');
  if (!fflush(stdout) && !failed) return true;
  int error = errno;
  const char *why = error ? strerror(error) : "an earlier write failed";
  clearerr(stdout);
  if (error != EPIPE) fprintf(stderr, "canvas: cannot write the output: %s\n", why);
  return false;
}

/* While the command runs, a closed pipe and a file size limit are errors of write, not signals, and
 * numbers are written with a point in any locale. */
int canvas_main(int argc, char **argv) {
  locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), around = uselocale(plain);
  struct sigaction ignore = {.sa_handler = SIG_IGN}, pipe, size;
  sigemptyset(&ignore.sa_mask);
  bool set = !sigaction(SIGPIPE, &ignore, &pipe) && !sigaction(SIGXFSZ, &ignore, &size);
  int answer =
      argv && argc > 1 ? canvas_run_command(dispatch, argc - 1, argv + 1) : dispatch(0, NULL);
  if (!flush_output()) answer = EXIT_BAD;
  if (set) {
    sigaction(SIGPIPE, &pipe, NULL);
    sigaction(SIGXFSZ, &size, NULL);
  }
  uselocale(around);
  if (plain) freelocale(plain);
  return answer;
}
