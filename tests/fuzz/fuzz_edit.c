/* Edits of programs, and their counts: a program, a line `----`, and an edit per line. What an edit gives
 * keeps the promises of a program, and computes what the program before it did. */
#include "fuzz.h"

#include <string.h>

#include "rewrite/program_edit.h"
#include "same_program.h"

static const char cut[] = "\n----\n";
enum { EDITS = 8 };

static void check_counts(canvas_context *ctx, const canvas_program *program) {
  char *text = NULL;
  if (fine(ctx, canvas_program_count_json(ctx, program, &text)))
    must(strchr(text, '}'), "JSON ends");
  canvas_string_free(text);
}

static bool begins(const char *text, size_t length, const char *word) {
  size_t size = strlen(word);
  return length > size && !memcmp(text, word, size) && text[size] == ' ';
}

/* A change of type rounds, and so does Winograd's convolution; a sum in parts, and a reciprocal, a little. */
static void check_edited(canvas_context *ctx, const canvas_program *before,
                         const canvas_program *after, const char *text, size_t length) {
  const struct program *p = (const struct program *)before, *q = (const struct program *)after;
  bool a_little = begins(text, length, "rfactor") || begins(text, length, "reciprocal");
  check_program(ctx, after, false);
  check_counts(ctx, after);
  if (begins(text, length, "type") || begins(text, length, "winograd")) return;
  must_compute(ctx, p, q, a_little ? 1e-6 : 0, "an edit keeps what is computed");
}

/* The edits that were made, made again: the same program. */
static void check_replay(canvas_context *ctx, const canvas_program *given,
                         const canvas_program *program) {
  const struct replay_rules rules = {.winograd = 4};
  const char *edits =
      program_edits_since((const struct program *)program, (const struct program *)given);
  struct program *again;
  must(edits != NULL, "a program knows its edits");
  if (!fine(ctx, program_replay(ctx, (const struct program *)given, edits, &rules, &again))) return;
  char *text = canvas_program_print(program),
       *other = canvas_program_print((canvas_program *)again);
  must(!strcmp(text, other), "edits that are made again make the same");
  canvas_string_free(text);
  canvas_string_free(other);
  program_free(again);
}

/* The program after an edit, or the same where it is rejected. */
static canvas_program *edit(canvas_context *ctx, canvas_program *program, const char *text,
                            size_t length) {
  canvas_program *edited = NULL;
  if (!fine(ctx, canvas_program_edit(ctx, program, text, length, &edited))) return program;
  size_t blanks = 0;
  while (blanks < length && strchr(" \t\r", text[blanks])) blanks++;
  check_edited(ctx, program, edited, text + blanks, length - blanks);
  canvas_program_free(program);
  return edited;
}

void fuzz(canvas_context *ctx, const char *text, size_t size) {
  const char *end = text + size, *at = text;
  while (at + sizeof cut - 1 <= end && memcmp(at, cut, sizeof cut - 1)) at++;
  canvas_program *program = NULL, *given = NULL;
  if (!fine(ctx, canvas_program_parse(ctx, text, (size_t)(at - text), &program))) return;
  must(fine(ctx, canvas_program_parse(ctx, text, (size_t)(at - text), &given)), "as before");
  check_counts(ctx, program);
  at += sizeof cut - 1;
  for (int i = 0; i < EDITS && at < end; i++) {
    const char *line = memchr(at, '\n', (size_t)(end - at));
    if (!line) line = end;
    program = edit(ctx, program, at, (size_t)(line - at));
    at = line + 1;
  }
  check_replay(ctx, given, program);
  canvas_program_free(given);
  canvas_program_free(program);
}
