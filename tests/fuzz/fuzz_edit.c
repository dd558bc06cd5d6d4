/* Edits of programs, and their counts: a program, a line `----`, and an edit per line. What an edit gives
 * keeps the promises of a program, and computes what the program before it did. */
#include "fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "program/interpret.h"

static const char cut[] = "\n----\n";
enum { EDITS = 8, INPUT_ELEMENTS = 1 << 12 };

/* The first and the last element of each output; false where they cannot be had. */
static bool evaluate(canvas_context *ctx, const struct program *p, double *values) {
  static const struct interpreter_limits limits = {.bytes = 1 << 22, .steps = 1 << 16};
  struct interpreter *in = NULL;
  double *inputs[16] = {NULL};
  bool good = p->inputs.count <= 16 && p->outputs.count <= 16;
  for (int i = 0; good && i < p->inputs.count; i++) {
    int64_t elements = program_elements(p, p->inputs.data[i]);
    good = elements <= INPUT_ELEMENTS;
    if (good) program_fill(p, i, 1, inputs[i] = calloc((size_t)elements, sizeof **inputs));
  }
  good = good && fine(ctx, interpreter_new(ctx, p, (const double *const *)inputs, &limits, &in));
  for (int i = 0; good && i < p->outputs.count; i++) {
    const int64_t flat[] = {0, program_elements(p, p->outputs.data[i]) - 1};
    good = fine(ctx, interpreter_elements(in, p->outputs.data[i], 2, flat, values + 2 * i));
  }
  interpreter_free(in);
  for (int i = 0; i < 16; i++) free(inputs[i]);
  return good;
}

static void check_counts(canvas_context *ctx, const canvas_program *program) {
  char *text = NULL;
  if (fine(ctx, canvas_program_count_json(ctx, program, &text)))
    must(strchr(text, '}'), "JSON ends");
  canvas_string_free(text);
}

/* A change of type rounds, and only then may an element differ. */
static void check_edited(canvas_context *ctx, const canvas_program *before,
                         const canvas_program *after, bool rounds) {
  const struct program *p = (const struct program *)before, *q = (const struct program *)after;
  double a[32], b[32];
  check_program(ctx, after, false);
  check_counts(ctx, after);
  if (rounds || !evaluate(ctx, p, a) || !evaluate(ctx, q, b)) return;
  for (int i = 0; i < 2 * p->outputs.count; i++)
    must(a[i] == b[i] || (isnan(a[i]) && isnan(b[i])), "an edit keeps what is computed");
}

/* The program after an edit, or the same where it is rejected. */
static canvas_program *edit(canvas_context *ctx, canvas_program *program, const char *text,
                            size_t length) {
  canvas_program *edited = NULL;
  if (!fine(ctx, canvas_program_edit(ctx, program, text, length, &edited))) return program;
  size_t blanks = 0;
  while (blanks < length && strchr(" \t\r", text[blanks])) blanks++;
  check_edited(ctx, program, edited, blanks < length && text[blanks] == 't');
  canvas_program_free(program);
  return edited;
}

void fuzz(canvas_context *ctx, const char *text, size_t size) {
  const char *end = text + size, *at = text;
  while (at + sizeof cut - 1 <= end && memcmp(at, cut, sizeof cut - 1)) at++;
  canvas_program *program = NULL;
  if (!fine(ctx, canvas_program_parse(ctx, text, (size_t)(at - text), &program))) return;
  check_counts(ctx, program);
  at += sizeof cut - 1;
  for (int i = 0; i < EDITS && at < end; i++) {
    const char *line = memchr(at, '\n', (size_t)(end - at));
    if (!line) line = end;
    program = edit(ctx, program, at, (size_t)(line - at));
    at = line + 1;
  }
  canvas_program_free(program);
}
