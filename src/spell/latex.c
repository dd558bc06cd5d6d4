/* The text of a formula as LaTeX: an align* environment, which needs amsmath and \usepackage[T1]{fontenc}
 * alone. The text is read piece by piece: tensors become bold letters with indices below, names of several
 * letters upright ones.
 */
#include <ctype.h>
#include <string.h>

#include "spell/spell.h"

static void piece(const char **p, struct buf *out);

/* Up to `end`, which is passed. */
static void pieces(const char **p, const char *end, struct buf *out) {
  while (**p && **p != '\n' && strncmp(*p, end, strlen(end)) != 0) piece(p, out);
  if (**p && **p != '\n') *p += strlen(end);
}

static void name(const char *word, int length, const char *font, struct buf *out) {
  int letters = length;
  while (letters > 1 && isdigit((unsigned char)word[letters - 1])) letters--;
  buf_puts(out, font);
  for (int i = 0; i < letters; i++) buf_printf(out, word[i] == '_' ? "\\_" : "%c", word[i]);
  buf_puts(out, *font ? "}" : "");
  if (letters < length) buf_printf(out, "_{%.*s}", length - letters, word + letters);
}

static bool is_function(const char *word, int length) {
  static const char *const functions[] = {"max", "min", "exp", "sin", "tanh"};
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (length == (int)strlen(functions[i]) && !strncmp(word, functions[i], (size_t)length))
      return true;
  return false;
}

/* Σ(k < C) and max(k < C): the ranges below; else not one. */
static bool over(const char *sign, const char **p, struct buf *out) {
  const char *end = strchr(*p, ')'), *less = strchr(*p, '<');
  if (**p != '(' || !less || !end || less > end) return false;
  ++*p;
  buf_printf(out, "%s_{", sign);
  pieces(p, ")", out);
  buf_puts(out, "}");
  return true;
}

static void word(const char **p, struct buf *out) {
  const char *first = *p;
  while (isalnum((unsigned char)**p) || **p == '_') ++*p;
  int length = (int)(*p - first);
  if (length == 3 && !strncmp(first, "mod", 3)) {
    buf_puts(out, "\\bmod");
  } else if (length == 3 && !strncmp(first, "erf", 3)) {
    buf_puts(out, "\\operatorname{erf}");
  } else if (is_function(first, length)) {
    if (strncmp(first, "max", 3) != 0 || !over("\\max", p, out))
      buf_printf(out, "\\%.*s", length, first);
  } else if (**p == '[') {
    ++*p;
    name(first, length, "\\mathbf{", out);
    buf_puts(out, "[");
    pieces(p, "]", out);
    buf_puts(out, "]");
  } else {
    bool single = length == 1 || isdigit((unsigned char)first[1]);
    name(first, length, single ? "" : "\\mathit{", out);
  }
}

/* 1/2, 1/C, 1/(H·W), 1/√(C) as a fraction; else not one. */
static bool fraction(const char **p, struct buf *out) {
  if (strncmp(*p, "1/", 2) != 0 || isdigit((unsigned char)(*p)[-1])) return false;
  *p += 2;
  buf_puts(out, "\\frac{1}{");
  if (**p == '(') {
    ++*p;
    pieces(p, ")", out);
  } else if (isdigit((unsigned char)**p)) {
    while (isdigit((unsigned char)**p)) buf_bytes(out, (*p)++, 1);
  } else {
    piece(p, out);
  }
  buf_puts(out, "}");
  return true;
}

static void piece(const char **p, struct buf *out) {
  static const struct {
    const char *text, *latex;
  } signs[] = {{"·", "\\,"}, {"⌊", "\\lfloor "}, {"⌋", "\\rfloor "}, {"′", "'"},
               {"²", "^2"},  {"π", "\\pi "},     {", ", ", "}};
  if (fraction(p, out)) return;
  if (!strncmp(*p, "√(", strlen("√("))) {
    *p += strlen("√(");
    buf_puts(out, "\\sqrt{");
    pieces(p, ")", out);
    buf_puts(out, "}");
    return;
  }
  if (!strncmp(*p, "Σ", strlen("Σ"))) {
    *p += strlen("Σ");
    over("\\sum", p, out);
    return;
  }
  for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
    if (!strncmp(*p, signs[i].text, strlen(signs[i].text))) {
      *p += strlen(signs[i].text);
      buf_puts(out, signs[i].latex);
      return;
    }
  if (isalpha((unsigned char)**p)) {
    word(p, out);
    return;
  }
  buf_bytes(out, *p, 1);
  bool opens = **p == '(';
  ++*p;
  if (!opens) return;
  pieces(p, ")", out);
  buf_puts(out, ")");
}

static void line(const char **p, struct buf *out) {
  static const char equals[] = " = ", ranges[] = "   for ";
  buf_puts(out, "  ");
  pieces(p, equals, out);
  buf_puts(out, " &= ");
  pieces(p, ranges, out);
  if (**p && **p != '\n') {
    buf_puts(out, " && ");
    while (**p && **p != '\n') piece(p, out);
  }
  if (**p) ++*p;
  buf_puts(out, **p ? " \\\\\n" : "\n");
}

void latex_of_formula(const char *head, const char *lines, struct buf *out) {
  for (const char *p = head; *p; p++)
    if (*p == '#')
      buf_puts(out, "%");
    else if (!strncmp(p, "·", strlen("·")))
      buf_puts(out, " "), p += strlen("·") - 1;
    else
      buf_bytes(out, p, 1);
  buf_puts(out, "\\begin{align*}\n");
  while (*lines) line(&lines, out);
  buf_puts(out, "\\end{align*}\n");
}
