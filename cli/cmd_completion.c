/* canvas completion: shell completion of subcommands and flags.
 *
 * The scripts are the same for ever: they hand the words of the line to `canvas completion -- WORD...`,
 * which prints what may replace the last one, from the subcommands' rows, as a line `WORD\tHELP` each.
 * If it prints nothing, the shell completes file names. The Python package prints those of its own
 * subcommands.
 */
#include <stdio.h>
#include <string.h>

#include "command.h"

static const char bash[] =
    "# eval \"$(canvas completion bash)\" in ~/.bashrc\n"
    "_canvas() {\n"
    "  local IFS=$'\\n'\n"
    "  COMPREPLY=($(\"$1\" completion -- \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null | cut -f "
    "1))\n"
    "}\n"
    "complete -o bashdefault -o default -F _canvas canvas\n";

static const char zsh[] =
    "#compdef canvas\n"
    "# eval \"$(canvas completion zsh)\" in ~/.zshrc, after compinit\n"
    "_canvas() {\n"
    "  local word help\n"
    "  local -a found\n"
    "  while IFS=$'\\t' read -r word help; do\n"
    "    found+=(\"${word//:/\\\\:}${help:+:$help}\")\n"
    "  done < <(\"${words[1]}\" completion -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)\n"
    "  if (( $#found )); then _describe -V canvas found; else _files; fi\n"
    "}\n"
    "if [[ $funcstack[1] == _canvas ]]; then _canvas \"$@\"; else compdef _canvas canvas; fi\n";

static const char fish[] =
    "# canvas completion fish | source in ~/.config/fish/config.fish\n"
    "function __canvas_complete\n"
    "    set -l words (commandline -opc) (commandline -ct)\n"
    "    set -l found ($words[1] completion -- $words[2..-1] 2>/dev/null)\n"
    "    if set -q found[1]\n"
    "        printf '%s\\n' $found\n"
    "    else\n"
    "        __fish_complete_path $words[-1]\n"
    "    end\n"
    "end\n"
    "complete -c canvas -f -a '(__canvas_complete)'\n";

static const struct {
  const char *shell, *script;
} scripts[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
enum { SCRIPTS = sizeof scripts / sizeof *scripts };

/* ---- what may stand in place of a word ----------------------------------------------------- */

static void offer(const char *word, size_t length, const char *help, const char *typed) {
  size_t given = strlen(typed);
  if (given <= length && !strncmp(word, typed, given))
    printf("%.*s%s%s\n", (int)length, word, *help ? "\t" : "", help);
}

static void offer_subcommands(const struct command *const *commands, const char *typed) {
  for (const struct command *c; (c = *commands); commands++)
    offer(c->subcommand, strlen(c->subcommand), c->summary, typed);
}

static void offer_flags(const struct command *c, const char *typed) {
  for (int i = 0; i < OPTIONS_MAX && c->options[i].flag; i++)
    offer(c->options[i].flag, strlen(c->options[i].flag), c->options[i].help, typed);
}

/* Of "text|dot|torch", or "check|print FILE", each; "FILE|..." is no choice of words. */
static void offer_choices(const char *choices, const char *typed) {
  size_t all = strcspn(choices, " ");
  if (!memchr(choices, '|', all) || strspn(choices, "abcdefghijklmnopqrstuvwxyz|") != all) return;
  for (size_t at = 0; at < all;) {
    size_t length = strcspn(choices + at, "| ");
    offer(choices + at, length, "", typed);
    at += length + 1;
  }
}

/* The first words of lines that begin with `indent` blanks, as far as a `=`; what follows is the help. */
static void offer_lines(char *text, size_t indent, const char *typed) {
  for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
    const char *word = line + indent;
    if (strspn(line, " ") != indent || word >= end) continue;
    *end = '\0';
    size_t length = strcspn(word, " "), name = strcspn(word, "=");
    const char *help = word + length + strspn(word + length, " ");
    offer(word, name < length ? name + 1 : length, help, typed);
  }
  canvas_string_free(text);
}

/* Operators, or the arguments of one. */
static void offer_operators(int count, char **words, const char *typed) {
  canvas_context *ctx = canvas_context_new();
  char *text;
  if (count == 2)
    offer_lines(canvas_operators_print(CANVAS_TEXT), 0, typed);
  else if (canvas_operator_describe(ctx, words[1], &text) == CANVAS_OK)
    offer_lines(text, 2, typed);
  canvas_context_free(ctx);
}

/* The option that the word before the last gives its value to. */
static const struct option *open_option(const struct command *c, const char *before) {
  for (int i = 0; i < OPTIONS_MAX && c->options[i].flag; i++)
    if (c->options[i].metavar && !strcmp(c->options[i].flag, before)) return &c->options[i];
  return NULL;
}

static void complete(const struct command *const *commands, int count, char **words) {
  const char *typed = count ? words[count - 1] : "";
  const struct command *c = count > 1 ? command_find(commands, words[0]) : NULL;
  if (count < 2) offer_subcommands(commands, typed);
  if (!c || !c->run) return;
  const struct option *o = open_option(c, words[count - 2]);
  if (o)
    offer_choices(o->metavar, typed);
  else if (*typed == '-' || !c->most)
    offer_flags(c, typed);
  else if (!strcmp(c->subcommand, "operator"))
    offer_operators(count, words, typed);
  else if (!strcmp(c->operands, "NAME"))
    offer_subcommands(commands, typed);
  else if (count == 2)
    offer_choices(c->operands, typed);
}

/* ---- the subcommand ------------------------------------------------------------------------------ */

static int run(struct arguments *a) {
  const char *shell = a->operand[0];
  if (a->rest) return complete(a->commands, a->rest_count, a->rest), EXIT_OK;
  for (int i = 0; shell && i < SCRIPTS; i++)
    if (!strcmp(scripts[i].shell, shell)) return fputs(scripts[i].script, stdout), EXIT_OK;
  if (shell) return report_error("completion supports bash, zsh and fish, not '%.60s'", shell);
  return report_error("'completion' needs a shell: bash, zsh or fish");
}

const struct command command_completion = {
    .subcommand = "completion",
    .operands = "bash|zsh|fish",
    .most = 1,
    .summary = "print the script that completes subcommands and flags in a shell",
    .details =
        "The script calls `canvas completion -- WORD...`, which prints the completions of the\n"
        "last word.\n",
    .example = "eval \"$(canvas completion bash)\"",
    .takes_rest = true,
    .run = run,
};
