/* Read texts from files, standard input or short forms on the command line. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

/* All of `stream`, at most one byte over the limit, and a NUL; NULL with errno where that fails. */
static char *read_all(FILE *stream, size_t *length) {
  size_t capacity = 1 << 16, most = (size_t)CANVAS_TEXT_LIMIT + 1;
  char *bytes = malloc(capacity + 1);
  *length = 0;
  while (bytes) {
    *length += fread(bytes + *length, 1, capacity - *length, stream);
    if (ferror(stream)) {
      int why = errno;
      free(bytes);
      errno = why;
      return NULL;
    }
    bytes[*length] = '\0';
    if (feof(stream) || *length == most) return bytes;
    if (*length == capacity) {
      capacity = 4 * capacity < most ? 4 * capacity : most;
      char *grown = realloc(bytes, capacity + 1);
      if (!grown) free(bytes);
      bytes = grown;
    }
  }
  return NULL;
}

const char *text_name(const char *file) {
  return strcmp(file, "-") ? file : "standard input";
}

bool text_read(const char *file, struct text *out) {
  bool standard = !strcmp(file, "-");
  *out = (struct text){.name = text_name(file)};
  errno = 0;
  FILE *stream = standard ? stdin : fopen(file, "rb");
  if (stream) out->bytes = read_all(stream, &out->length);
  const char *why = out->bytes ? NULL : strerror(errno ? errno : ENOMEM);
  if (stream && !standard) fclose(stream);
  if (why) {
    if (!stream && names_operator(file))
      report_error(
          "cannot read '%s': %s; 'canvas operator %s NAME=VALUE... >FILE' writes the operator's "
          "program",
          file, why, file);
    else
      report_error("cannot read '%.900s': %s", out->name, why);
    return false;
  }
  if (out->length > CANVAS_TEXT_LIMIT) {
    report_error("%.900s: the text is over the limit of %d MiB", out->name,
                 CANVAS_TEXT_LIMIT >> 20);
    text_free(out);
    return false;
  }
  return true;
}

void text_free(struct text *t) {
  free(t->bytes);
  t->bytes = NULL;
}

canvas_program *text_program(struct arguments *a, const struct text *text) {
  canvas_program *program = NULL;
  canvas_status status = canvas_program_parse(a->ctx, text->bytes, text->length, &program);
  if (status != CANVAS_OK) report_status(a, text->name, status);
  return status == CANVAS_OK ? program : NULL;
}

canvas_program *program_read(struct arguments *a, const char *file) {
  struct text text;
  if (!text_read(file, &text)) return NULL;
  canvas_program *program = text_program(a, &text);
  text_free(&text);
  return program;
}

/* Whether the line begins with the word. */
static bool begins(const char *line, const char *end, const char *word) {
  size_t length = strlen(word);
  return (size_t)(end - line) > length && !memcmp(line, word, length) &&
         (line[length] == ' ' || line[length] == '\t');
}

static bool text_is(const struct text *t, const char *word) {
  const char *p = t->bytes, *end = t->bytes + t->length;
  while (p < end) {
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n')) p++;
    bool skipped = p < end && (*p == '#' || begins(p, end, "canvas"));
    if (!skipped) break;
    while (p < end && *p != '\n') p++;
  }
  return begins(p, end, word);
}

bool text_is_program(const struct text *t) {
  return text_is(t, "program");
}

bool text_is_network(const struct text *t) {
  return text_is(t, "network");
}

/* "64,56,56;128,28,28": three numbers and no letter, so no name of a layer or file. */
static bool is_short_form(const char *text) {
  return strchr(text, ',') && strspn(text, "0123456789,; -+.") == strlen(text);
}

canvas_targets *targets_read(struct arguments *a) {
  const char *value = option_required(a, "--targets");
  canvas_targets *targets = NULL;
  canvas_status status;
  if (!value) return NULL;
  if (is_short_form(value)) {
    status = canvas_targets_parse(a->ctx, value, strlen(value), &targets);
    if (status != CANVAS_OK) report_flag(a, "--targets", status);
    return targets;
  }
  struct text text;
  if (!text_read(value, &text)) return NULL;
  status = canvas_targets_parse(a->ctx, text.bytes, text.length, &targets);
  if (status != CANVAS_OK) report_status(a, text.name, status);
  text_free(&text);
  return targets;
}

bool norm_chosen(struct arguments *a, canvas_solve_options *out) {
  const char *norm = option_text(a, "--norm", NULL);
  if (!norm) return true;
  if (!strcmp(norm, "batch"))
    out->norm = CANVAS_NORM_BATCH;
  else if (!strcmp(norm, "none"))
    out->norm = CANVAS_NORM_NONE;
  else
    return report_error("--norm takes batch or none, not '%.60s'", norm), false;
  return true;
}

/* The loop of text_each over an open reader. */
static int visit_each(struct arguments *a, const char *name, canvas_reader *reader,
                      int (*visit)(struct arguments *, canvas_pack *, void *), void *data) {
  int items = 0, none = 0;
  for (;; items++) {
    canvas_pack *pack;
    canvas_status status = canvas_reader_next(a->ctx, reader, &pack);
    if (status == CANVAS_NONE && items) return none == items ? EXIT_NONE : EXIT_OK;
    if (status != CANVAS_OK) {
      report_status(a, name, status);
      return EXIT_BAD;
    }
    int answer = visit(a, pack, data);
    canvas_pack_free(pack);
    if (ferror(stdout)) return EXIT_BAD;
    if (answer != EXIT_OK && answer != EXIT_NONE) return answer;
    none += answer == EXIT_NONE;
  }
}

int text_each(struct arguments *a, const struct text *text,
              int (*visit)(struct arguments *, canvas_pack *, void *), void *data) {
  canvas_reader *reader;
  canvas_status status = canvas_reader_open(a->ctx, text->bytes, text->length, &reader);
  if (status != CANVAS_OK) {
    report_status(a, text->name, status);
    return EXIT_BAD;
  }
  int answer = visit_each(a, text->name, reader, visit, data);
  canvas_reader_close(reader);
  return answer;
}

int file_each(struct arguments *a, const char *file,
              int (*visit)(struct arguments *, canvas_pack *, void *), void *data) {
  struct text text;
  if (!text_read(file, &text)) return EXIT_BAD;
  int answer = text_each(a, &text, visit, data);
  text_free(&text);
  return answer;
}

canvas_pack *pack_sized(struct arguments *a, canvas_pack *pack, canvas_pack **made) {
  const char *at = option_text(a, "--at", NULL);
  const canvas_kernel *kernel = canvas_pack_kernel(pack);
  *made = NULL;
  if (canvas_pack_count(pack) && at) {
    report_error("'%s' has bind lines, leave out --at", canvas_kernel_name(kernel));
    return NULL;
  }
  if (canvas_pack_count(pack)) return pack;
  if (!at) {
    report_error("'%s' has no bind lines, give its sizes: --at C=64,H=56,W=56",
                 canvas_kernel_name(kernel));
    return NULL;
  }
  canvas_status status = canvas_kernel_bind(a->ctx, kernel, at, strlen(at), made);
  if (status != CANVAS_OK) report_flag(a, "--at", status);
  return *made;
}

bool targets_chosen(struct arguments *a, const canvas_pack *pack, int *first, int *end) {
  const char *name = option_text(a, "--target", NULL);
  const char *kernel = canvas_kernel_name(canvas_pack_kernel(pack));
  *first = 0;
  *end = canvas_pack_count(pack);
  if (!name) return true;
  for (; *first < *end; ++*first)
    if (!strcmp(canvas_pack_target(pack, *first), name)) {
      *end = *first + 1;
      return true;
    }
  for (int i = 0; i < canvas_pack_kept(pack); i++)
    if (!strcmp(canvas_pack_kept_target(pack, i), name)) {
      report_error("target '%.200s' is kept, it has no kernel", name);
      return false;
    }
  report_error("'%s' has no target '%.200s'", kernel, name);
  return false;
}
