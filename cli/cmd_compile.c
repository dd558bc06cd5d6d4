/* canvas compile: write a kernel or program as C, as a header, or as a shared object. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "command.h"

static const char *const kinds[] = {"c", "so", "header"};
static const char *const endings[] = {".c", ".so", ".h"};
enum { KIND_C, KIND_SO, KIND_HEADER, KINDS };

struct output {
  int kind;
  const char *after; /* a pass: the tree of statements after it is written; NULL */
  const char *path;  /* "-": standard output */
  canvas_machine *machine;
  struct tuned tuned;
  char *made; /* the text, or the path of an object; NULL until there is one */
};

/* ---- the file ---------------------------------------------------------------------------------- */

static int write_text(const char *text, const char *path) {
  if (strcmp(path, "-")) return write_whole(path, text, strlen(text), 0666);
  fputs(text, stdout);
  return EXIT_OK;
}

static int copy_object(const char *object, const char *path) {
  FILE *file = fopen(object, "rb");
  struct stat s;
  if (!file || fstat(fileno(file), &s)) {
    int why = errno;
    if (file) fclose(file);
    return report_error("cannot read '%.900s': %s", object, strerror(why));
  }
  size_t length = (size_t)s.st_size;
  char *bytes = malloc(length + 1);
  bool good = bytes && fread(bytes, 1, length, file) == length;
  fclose(file);
  int answer = good ? write_whole(path, bytes, length, 0777)
                    : report_error("cannot read all of '%.900s'", object);
  free(bytes);
  return answer;
}

/* ---- the subcommand -------------------------------------------------------------------------------- */

static canvas_status make(struct arguments *a, const struct program_item *item,
                          const canvas_bound *bound, struct output *out) {
  const canvas_emit_options options = {
      .source = item->source, .header = out->kind == KIND_HEADER, .prepare = true};
  if (out->after) return canvas_bound_statements(a->ctx, bound, out->after, &out->made);
  if (out->kind == KIND_SO) return canvas_bound_compile(a->ctx, bound, &options, &out->made);
  return canvas_bound_emit(a->ctx, bound, &options, &out->made);
}

static int compile(struct arguments *a, const struct program_item *item, void *data) {
  struct output *out = data;
  if (out->made)
    return report_error(
        "the file holds more than one program: choose one of a pack with --target, "
        "a network is compiled by canvas network FILE --emit DIR");
  struct bound_item chosen;
  if (!bound_chosen(a, item->program, item->program, out->machine, &out->tuned, &chosen))
    return EXIT_BAD;
  canvas_status status = make(a, item, chosen.bound, out);
  bound_drop(&chosen);
  if (status == CANVAS_OK) return EXIT_OK;
  report_status(a, item->name, status);
  return EXIT_BAD;
}

/* The kind that --emit names or, without a name, that the path ends as; KINDS: none. */
static int kind_of(const char *name, const char *path) {
  const char *dot = strrchr(path, '.');
  int kind = 0;
  for (; kind < KINDS; kind++)
    if (name ? !strcmp(name, kinds[kind]) : dot && !strcmp(dot, endings[kind])) break;
  return kind;
}

/* The tree of statements is text, in a file of any name but that of an object or a header. */
static bool choose_statements(const char *name, struct output *out) {
  if (name)
    report_error("--after writes the tree of statements, leave '--emit %.60s' out", name);
  else if (out->kind == KIND_SO || out->kind == KIND_HEADER)
    report_error(
        "--after writes the tree of statements, and '%.200s' ends in %s: choose another name",
        out->path, endings[out->kind]);
  else
    return out->kind = KIND_C, true;
  return false;
}

static bool choose_kind(struct arguments *a, struct output *out) {
  const char *name = option_text(a, "--emit", NULL);
  out->kind = kind_of(name, out->path);
  if (out->after) return choose_statements(name, out);
  if (!name && !strcmp(out->path, "-")) out->kind = KIND_C;
  if (out->kind == KINDS && name)
    report_error("--emit takes c, so or header, not '%.60s'", name);
  else if (out->kind == KINDS)
    report_error("'%.200s' does not end in .c, .so or .h, give its kind with --emit", out->path);
  else if (out->kind == KIND_SO && !strcmp(out->path, "-"))
    report_error("a shared object cannot be written to standard output, give a file with -o");
  else
    return true;
  return false;
}

static int run(struct arguments *a) {
  struct output out = {.path = option_required(a, "-o"), .after = option_text(a, "--after", NULL)};
  int64_t threads, winograd;
  if (!out.path || !choose_kind(a, &out)) return EXIT_BAD;
  if (!option_whole(a, "--threads", 1, 1, 1024, &threads) || !option_winograd(a, &winograd))
    return EXIT_BAD;
  if (winograd && !option_given(a, "--log"))
    return report_error("--winograd applies to the schedules of a log, give it with --log FILE"),
           EXIT_BAD;
  out.machine = machine_chosen(a);
  if (!out.machine) return EXIT_BAD;
  int answer = tuned_open(a, out.machine, threads, winograd, &out.tuned)
                   ? programs_each(a, a->operand[0], compile, &out)
                   : EXIT_BAD;
  tuned_close(&out.tuned);
  if (answer == EXIT_OK)
    answer = out.kind == KIND_SO ? copy_object(out.made, out.path) : write_text(out.made, out.path);
  canvas_string_free(out.made);
  canvas_machine_free(out.machine);
  return answer;
}

const struct command command_compile = {
    .subcommand = "compile",
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "write a kernel or program as C, or as a shared object",
    .details =
        "FILE is a kernel, a pack or a program. The C needs no other file; gcc and clang compile\n"
        "it. Its function takes a pointer for each input, then for each output. OUT is written\n"
        "completely or not at all. See docs/native.md.\n",
    .example =
        "canvas operator conv2d_nchw in_channels=8 height=14 width=14 out_channels=16 kernel=3 "
        "padding=1 >conv.program\n"
        "canvas compile conv.program -o conv.c\n"
        "cc -O2 -c conv.c && ls conv.o",
    .options = {{"--at", "SIZES",
                 "sizes of a kernel without bind lines, such as C=64,H=56,W=56,G=4,x0=64"},
                {"--target", "NAME", "target of a pack"},
                {"-N", "BATCH", "batch size (default 1)"},
                {"--schedule", "FILE",
                 "schedule file, or the word default (default: the default schedule, after "
                 "program edits that make it faster)"},
                {"--set", "NUMBERS",
                 "loop extents that replace holes of the schedule, such as iw=14,yo=4"},
                {"--log", "FILE", "use the best schedule that this tuning log has for the program"},
                {"--threads", "T", "with --log: use records measured with T threads (default 1)"},
                {"--winograd", "TILE",
                 "with --log: allow Winograd convolutions in tiles of 2 or 4, which round "
                 "more"},
                {"--machine", "FILE", "machine that the schedule is for (default: here)"},
                {"--emit", "KIND", "c, so or header (default: by the ending of OUT)"},
                {"--after", "PASS",
                 "write the statement tree after this pass; build is before all passes"},
                {"-o", "OUT", "file to write; - is standard output (C unless --emit is given)"}},
    .run = run,
};
