/* Parse the words after a subcommand by its table of options: `--flag VALUE` or `--flag=VALUE`, switches and
 * operands in any order. `-` alone is an operand, `--` ends the flags. A subcommand with takes_rest gets the
 * words after `--` unchanged. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

static int option_count(const struct command *c) {
  int count = 0;
  while (count < OPTIONS_MAX && c->options[count].flag) count++;
  return count;
}

static int option_index(const struct command *c, const char *flag, size_t length) {
  int count = option_count(c);
  for (int i = 0; i < count; i++)
    if (strlen(c->options[i].flag) == length && !strncmp(c->options[i].flag, flag, length))
      return i;
  return -1;
}

static int least(int a, int b) {
  return a < b ? a : b;
}

/* Levenshtein's distance; words over 31 characters are far from everything. */
static int distance(const char *a, const char *b) {
  enum { MOST = 32 };
  int row[MOST], n = (int)strlen(b);
  if (n >= MOST || strlen(a) >= MOST) return MOST;
  for (int j = 0; j <= n; j++) row[j] = j;
  for (int i = 1; a[i - 1]; i++) {
    int corner = row[0];
    row[0] = i;
    for (int j = 1; j <= n; j++) {
      int changed = corner + (a[i - 1] != b[j - 1]);
      corner = row[j];
      row[j] = least(changed, least(row[j], row[j - 1]) + 1);
    }
  }
  return row[n];
}

/* The shortest name that a word of three letters or more begins. */
static const char *begun(const char *word, const char *const *names, int count) {
  const char *best = NULL;
  size_t length = strlen(word);
  for (int i = 0; i < count && length > 2; i++)
    if (!strncmp(word, names[i], length) && (!best || strlen(names[i]) < strlen(best)))
      best = names[i];
  return best;
}

/* As word_nearest of src/base/nearest.h, which the command does not see. */
const char *nearest(const char *word, const char *const *names, int count) {
  const char *best = begun(word, names, count);
  if (best) return best;
  int length = (int)strlen(word), near = length < 4 ? 2 : length < 8 ? 3 : 4;
  for (int i = 0; i < count; i++) {
    int d = distance(word, names[i]);
    if (d < near) best = names[i], near = d;
  }
  return best;
}

static bool unknown_flag(const struct command *c, const char *word, size_t length) {
  const char *flags[OPTIONS_MAX];
  char flag[64];
  int count = option_count(c);
  for (int i = 0; i < count; i++) flags[i] = c->options[i].flag;
  length = length < sizeof flag ? length : sizeof flag - 1;
  memcpy(flag, word, length);
  flag[length] = '\0';
  const char *near = nearest(flag, flags, count);
  if (near)
    report_error("'%s' has no flag '%s', did you mean '%s'?", c->subcommand, flag, near);
  else
    report_error("'%s' has no flag '%s', 'canvas help %s' lists its flags", c->subcommand, flag,
                 c->subcommand);
  return false;
}

/* A path has a letter at least. */
static bool is_path(const struct option *o) {
  static const char *const paths[] = {"FILE", "DIR", "OUT"};
  for (size_t i = 0; o->metavar && i < sizeof paths / sizeof *paths; i++)
    if (!strcmp(o->metavar, paths[i])) return true;
  return false;
}

/* The flag at words[*i]; moves *i to its value where that is a word of its own. */
static bool parse_flag(struct arguments *a, int count, char **words, int *i) {
  const char *word = words[*i], *equals = strchr(word, '=');
  size_t length = equals ? (size_t)(equals - word) : strlen(word);
  int option = option_index(a->command, word, length);
  if (option < 0) return unknown_flag(a->command, word, length);
  const struct option *o = &a->command->options[option];
  if (a->value[option]) {
    report_error("flag '%s' is given twice", o->flag);
    return false;
  }
  if (!o->metavar && equals) {
    report_error("flag '%s' takes no value", o->flag);
    return false;
  }
  if (o->metavar && !equals && *i + 1 >= count) {
    report_error("flag '%s' needs a value: %s %s", o->flag, o->flag, o->metavar);
    return false;
  }
  a->value[option] = !o->metavar ? "" : equals ? equals + 1 : words[++*i];
  if (is_path(o) && !*a->value[option]) {
    report_error("flag '%s' needs a path, not '': %s %s", o->flag, o->flag, o->metavar);
    return false;
  }
  return true;
}

bool arguments_parse(struct arguments *a, int count, char **words) {
  const struct command *c = a->command;
  int operands = 0;
  bool flags = true;
  for (int i = 0; i < count; i++) {
    if (flags && !strcmp(words[i], "--") && c->takes_rest) {
      a->rest = words + i + 1;
      a->rest_count = count - i - 1;
      break;
    } else if (flags && !strcmp(words[i], "--")) {
      flags = false;
    } else if (flags && words[i][0] == '-' && words[i][1]) {
      if (!parse_flag(a, count, words, &i)) return false;
    } else if (operands == c->most) {
      if (c->most && strchr(words[i], '=') && names_operator(a->operand[0]))
        report_error("'%s' takes only %s: 'canvas operator %s %.200s ... >FILE' writes one",
                     c->subcommand, c->operands, a->operand[0], words[i]);
      else
        report_error(c->most ? "'%s' takes only %s, not also '%.200s'"
                             : "'%s' takes no file%s, not '%.200s'",
                     c->subcommand, c->operands, words[i]);
      return false;
    } else {
      a->operand[operands++] = words[i];
    }
  }
  if (operands < c->least) {
    report_error("'%s' needs %s, 'canvas help %s' says more", c->subcommand, c->operands,
                 c->subcommand);
    return false;
  }
  return true;
}

char *operands_join(const struct arguments *a, int first) {
  size_t length = 1;
  for (int i = first; i < OPERANDS_MAX && a->operand[i]; i++) length += strlen(a->operand[i]) + 1;
  char *text = calloc(length, 1), *end = text;
  for (int i = first; text && i < OPERANDS_MAX && a->operand[i]; i++) {
    if (i > first) *end++ = ' ';
    size_t n = strlen(a->operand[i]);
    memcpy(end, a->operand[i], n);
    end += n;
  }
  return text;
}

const char *option_text(const struct arguments *a, const char *flag, const char *otherwise) {
  int i = option_index(a->command, flag, strlen(flag));
  return i >= 0 && a->value[i] ? a->value[i] : otherwise;
}

bool option_given(const struct arguments *a, const char *flag) {
  return option_text(a, flag, NULL) != NULL;
}

const char *option_required(const struct arguments *a, const char *flag) {
  const char *text = option_text(a, flag, NULL);
  if (!text) {
    int i = option_index(a->command, flag, strlen(flag));
    report_error("'%s' needs %s %s", a->command->subcommand, flag, a->command->options[i].metavar);
  }
  return text;
}

bool option_whole(const struct arguments *a, const char *flag, int64_t otherwise, int64_t low,
                  int64_t high, int64_t *out) {
  const char *text = option_text(a, flag, NULL);
  *out = otherwise;
  if (!text) return true;
  const char *digits = text + (*text == '-');
  errno = 0;
  long long value = strtoll(text, NULL, 10);
  if (!*digits || strspn(digits, "0123456789") != strlen(digits) || errno || value < low ||
      value > high) {
    report_error("%s takes a whole number from %lld to %lld, not '%.60s'", flag, (long long)low,
                 (long long)high, text);
    return false;
  }
  *out = value;
  return true;
}
