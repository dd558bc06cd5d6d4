/* A subcommand of the canvas command is one row: arguments, help and function.
 *
 * Help, parsing and the list of subcommands come from the rows; a subcommand's file is cmd_<subcommand>.c. Everything a
 * subcommand prints goes to stdout through stdio; canvas_main checks at the end that it arrived.
 */
#ifndef CANVAS_COMMAND_H
#define CANVAS_COMMAND_H

#include <stdio.h>

#include "canvas.h"

enum { EXIT_OK = 0, EXIT_NONE = 1, EXIT_BAD = 2, EXIT_INTERRUPTED = 130 };
enum { OPTIONS_MAX = 16, OPERANDS_MAX = 32 };

struct option {
  const char *flag;    /* "--seed"; a short flag is "-N" */
  const char *metavar; /* "S", or NULL for a switch */
  const char *help;
};

struct arguments;

struct command {
  const char *subcommand;
  const char *operands; /* "FILE", "A B", "bash|zsh|fish" or "" */
  int least, most;      /* how many operands */
  const char *summary;  /* one line of `canvas help` */
  const char *details;  /* the text below the summary in `canvas help NAME`; may be "" */
  const char *example;  /* a line for a shell that runs in an empty folder */
  struct option options[OPTIONS_MAX]; /* up to the first without a flag */
  bool takes_rest;                    /* what follows `--` is left as it is */
  int (*run)(struct arguments *a); /* the exit status; NULL: a subcommand of the Python package */
};

struct arguments {
  const struct command *command;
  const struct command *const *commands; /* all subcommands, for those that list them */
  canvas_context *ctx;
  const char *operand[OPERANDS_MAX]; /* NULL where absent */
  const char *value[OPTIONS_MAX];    /* NULL where not given; a switch that is given has "" */
  char **rest;                       /* the words after `--`, NULL without it */
  int rest_count;
};

extern const struct command command_sample, command_check, command_show, command_cost,
    command_solve, command_count, command_edit, command_eval, command_lower, command_schedule,
    command_compile, command_run, command_tune, command_log, command_machine, command_hash,
    command_equal, command_primitives, command_operator, command_network, command_help,
    command_completion;

/* Runs `run`, and returns its exit status: 2, with a message, where there is no memory for a text (src/api/api_main.c). */
int canvas_run_command(int (*run)(int count, char **words), int count, char **words);

/* ---- all subcommands (subcommands.c) ---------------------------------------------------------- */

/* `commands`: in the order of the help, those of the Python package last; NULL after the last. */
const struct command *command_find(const struct command *const *commands, const char *subcommand);
/* "unknown subcommand ...", with a subcommand that is meant perhaps. */
int reject_subcommand(const struct command *const *commands, const char *subcommand);
void print_usage(const struct command *c);   /* "canvas check FILE", "canvas help [NAME] [FLAGS]" */
void print_command(const struct command *c); /* prints the text of `canvas help NAME` */

/* ---- options (arguments.c) ----------------------------------------------------------------- */

/* Fills `a` from the words after the subcommand; false after an error message on stderr. */
bool arguments_parse(struct arguments *a, int count, char **words);
bool option_given(const struct arguments *a, const char *flag);
const char *option_text(const struct arguments *a, const char *flag, const char *otherwise);
/* The operands from `first` on as one text, with blanks between; to be freed. NULL without memory. */
char *operands_join(const struct arguments *a, int first);
/* A whole number in [least, most]; false after an error message. */
bool option_whole(const struct arguments *a, const char *flag, int64_t otherwise, int64_t least,
                  int64_t most, int64_t *out);
/* The value of a flag without which the subcommand makes no sense; NULL after an error message. */
const char *option_required(const struct arguments *a, const char *flag);
/* The name nearest to `word` by edit distance, NULL if none is near. */
const char *nearest(const char *word, const char *const *names, int count);

/* ---- texts (files.c) ----------------------------------------------------------------------- */

struct text {
  const char *name; /* for messages: the file, "standard input", or the flag it came from */
  char *bytes;
  size_t length;
};
/* `-` is standard input. False after an error message: missing, a directory, over CANVAS_TEXT_LIMIT. */
bool text_read(const char *file, struct text *out);
void text_free(struct text *t);
const char *text_name(const char *file); /* as of a struct text */

/* The targets of --targets: a file, or the short form "C,H,W;...". NULL after an error message. */
canvas_targets *targets_read(struct arguments *a);
/* --norm batch or none, where it is given. False after an error message. */
bool norm_chosen(struct arguments *a, canvas_solve_options *out);

/* The program of a file, or of a text. NULL after an error message. */
canvas_program *program_read(struct arguments *a, const char *file);
canvas_program *text_program(struct arguments *a, const struct text *text);
bool text_is_program(const struct text *t); /* not a kernel or a pack, to judge by how it begins */
bool text_is_network(const struct text *t);

/* Calls `visit` for every kernel or pack of the text, or file; stops where it returns other than EXIT_OK or
 * EXIT_NONE. EXIT_NONE only if every visit returned that. With `data` for the subcommand. */
int text_each(struct arguments *a, const struct text *text,
              int (*visit)(struct arguments *a, canvas_pack *pack, void *data), void *data);
int file_each(struct arguments *a, const char *file,
              int (*visit)(struct arguments *a, canvas_pack *pack, void *data), void *data);
/* The pack itself if it has bindings, else its kernel with the sizes of --at. NULL after an error message;
 * *made: free it when done. */
canvas_pack *pack_sized(struct arguments *a, canvas_pack *pack, canvas_pack **made);
/* The targets of a pack that --target NAME means: [*first, *end), all without it. False after
 * an error message. */
bool targets_chosen(struct arguments *a, const canvas_pack *pack, int *first, int *end);

/* ---- writing (write_whole.c) ---------------------------------------------------------------- */

/* A file, with these permissions; the exit status, after an error message. */
int write_whole(const char *path, const char *bytes, size_t length, int mode);

/* ---- networks as code (compiled_network.c) ---------------------------------------------------- */

/* --run: compiled, compared and timed; --time: each call. --emit DIR: written as files. The exit status. */
int compiled_network_run(struct arguments *a, const canvas_network *n,
                         const canvas_machine *machine);
int compiled_network_emit(struct arguments *a, const canvas_network *n,
                          const canvas_machine *machine);

/* ---- programs and schedules (programs.c) --------------------------------------------------- */

struct program_item {
  const char *name;   /* for people: the program's, or the kernel's and its target's */
  const char *source; /* the pack it was made of, NULL for a program */
  canvas_program *program;
  int calls; /* how often a network calls it; 1 where there is none */
};
typedef int program_visit(struct arguments *a, const struct program_item *item, void *data);

/* Calls `visit` for the program of a file, for those that --at, --target and -N make of its kernels, or for those
 * that a network calls after all passes; stops at EXIT_BAD, and returns EXIT_NONE if any visit did. */
int programs_each(struct arguments *a, const char *file, program_visit *visit, void *data);

/* The word here, or a machine's file. NULL after an error message. */
canvas_machine *machine_read(struct arguments *a, const char *file);
/* The machine of --machine, this one without it. NULL after an error message. */
canvas_machine *machine_chosen(struct arguments *a);

/* A file, `-` or the word default, with the numbers of --set. NULL after an error message. */
canvas_schedule *schedule_read(struct arguments *a, const char *file, const canvas_program *program,
                               const canvas_machine *machine);
/* A schedule and what it is bound for. */
struct bound_item {
  canvas_schedule *schedule;
  canvas_bound *bound;
};
/* The same, bound. False after an error message. */
bool bound_read(struct arguments *a, const char *file, const canvas_program *program,
                const canvas_machine *machine, struct bound_item *out);
/* Of --log, --schedule and --set what is given, or the default; every loop has its number. `tuned`, of --log, is
 * looked up for `given`; `program` is what edits that the command line wants made of it, or the same. */
struct tuned;
bool bound_chosen(struct arguments *a, const canvas_program *given, const canvas_program *program,
                  const canvas_machine *machine, const struct tuned *tuned, struct bound_item *out);
void bound_drop(struct bound_item *item);
/* A line for each warning. */
void warnings_print(const canvas_bound *bound, FILE *to);

/* ---- tuning logs (tuned.c) ------------------------------------------------------------------- */

/* The log of a file; a note reports how many lines are damaged. NULL after an error message. */
canvas_log *log_of_file(struct arguments *a, const char *file);

/* The log file, and the machine that records must be from. */
struct tuned {
  const char *file;
  canvas_log *log; /* NULL: without --log */
  char *compiler;
  canvas_log_place place;
};
/* The tiles of --winograd, 2 or 4, or 0 without it; false after an error message. */
bool option_winograd(const struct arguments *a, int64_t *tile);
/* False after an error message. */
bool tuned_open(struct arguments *a, const canvas_machine *machine, int64_t threads,
                int64_t winograd, struct tuned *out);
void tuned_close(struct tuned *t);
/* A note for each program whose best records cannot be used. */
void note_refused(const char *file, const canvas_log_task *tasks, int count);
void tuned_note_refused(const struct tuned *t);
/* The best record for the program, bound; NULL after a note with the reason that there is none. */
canvas_bound *tuned_best(struct arguments *a, const struct tuned *t, const canvas_program *program);

/* ---- tuned networks (network_finals.c) ------------------------------------------------------- */

struct tuning {
  const canvas_machine *machine;
  const char *log;
  double seconds; /* of the search; 0: without a limit */
  int threads;
  bool (*stopped)(void); /* by Ctrl-C */
};
/* Of the operand, where it is a network: its schedules in the log are timed in it beside the default ones, and where these
 * are faster the log records it. The exit status. */
int network_finals(struct arguments *a, const struct tuning *how);

/* ---- messages (messages.c) ----------------------------------------------------------------- */

#if defined(__GNUC__)
#define MESSAGE_LIKE(at, first) __attribute__((format(printf, at, first)))
#else
#define MESSAGE_LIKE(at, first)
#endif

/* "canvas: <error message>" on stderr; control characters become `?`. Answers EXIT_BAD. */
int report_error(const char *format, ...) MESSAGE_LIKE(1, 2);
/* The name of an operator of `canvas operator`, for a hint. */
bool names_operator(const char *word);
/* "note: ..." on stderr, in the same way. */
void report_note(const char *format, ...) MESSAGE_LIKE(1, 2);
/* The context's error message after the name of what it is about; returns the exit status. */
int report_status(struct arguments *a, const char *about, canvas_status status);
/* The same for a kernel, whose name stands in front unless the error message has it. */
int report_kernel(struct arguments *a, const canvas_kernel *kernel, canvas_status status);
/* The same for the value of a flag, which is one line. */
int report_flag(struct arguments *a, const char *flag, canvas_status status);
/* Prints and frees a text of the API. */
void put_text(char *text);
void put_json_string(const char *text);

/* The unit in which a time is at least 1. */
struct time_unit {
  double seconds;
  const char *name;
};
const struct time_unit *time_unit_of(double seconds);
/* Three digits or all before the point: 12.3, 1234; never 1.23e+03. */
struct short_number {
  char text[32];
};
struct short_number short_number(double value);
/* Seconds of wall-clock since some moment. */
double wall_clock(void);
/* Of the thread's processor; of several threads the wall's. Seconds. */
double clock_of_calls(int64_t threads);
void sort_numbers(double *numbers, int count);

#endif
