/* A measured candidate as a self-contained line of JSON: the given program, its edits, the schedule
 * with all numbers, the result, and where it was measured.
 *
 *     {"canvas_log": 2, "version": "0.1.0", "task": "94d1c3f0a2b7e655",
 *      "program": "canvas 1\nprogram gemm\n...", "edits": "pack B as B_p [...]\n",
 *      "schedule": "...", "rule": "lanes n x2", "method": "quick", "seed": 1, "trial": 17,
 *      "failure": "ok", "message": "", "median": 0.0014, "lower": ..., "upper": ..., "repeats": 30,
 *      "network": null, "threads": 1, "screened": false, "machine": "canvas 1\nmachine here\n...",
 *      "processor": "AMD EPYC", "compiler": "gcc -O2 ... (gcc 12.2.0)", "time": 1763827200}
 *
 * Keys have any order. Unknown keys are skipped, so that later versions may add some. No key may
 * sort before "canvas_log", since some tools sort keys and log_begins expects it first.
 *
 * A record holds decisions that record_bind makes again: it replays the edits on the program at
 * hand and checks the schedule. So an untrusted log can only choose a slow schedule. Format 1 had
 * the edited program as "edited" instead of the edits: its records are valid if nothing was edited,
 * else outdated.
 */
#ifndef CANVAS_TUNE_RECORD_H
#define CANVAS_TUNE_RECORD_H

#include "bind/loop_tree.h"
#include "run/verdict.h"

enum { RECORD_FORMAT = 2, TASK_NAME = 17 };
#define RECORD_BEGIN "{\"canvas_log\": " /* start of every printed line */

struct record {
  char *program;       /* canonical text of the given program */
  char *edits;         /* edits of the program before scheduling, a line each (program_edit.h) */
  char *schedule;      /* schedule with all numbers */
  char *rule, *method; /* rule of the sketch; method of the search */
  uint64_t seed;       /* seed of the search; (program, method, seed, trial) identifies a trial */
  int trial;           /* number of the trial, from 0 */
  enum failure failure;
  char *message;               /* "": no failure */
  double median, lower, upper; /* median and quartiles in seconds; 0: failed */
  double cold;                 /* median seconds with cold caches (verdict.h); 0: not measured */
  double network; /* seconds as a call of a network, equal to `median` then; 0: measured alone */
  int repeats, threads;
  bool screened;   /* compiled quickly or stopped early: never a winner by itself */
  char *machine;   /* text of the machine that it was bound for */
  char *processor; /* processor_name of the machine that measured it */
  char *compiler;  /* compiler_text */
  char *version;   /* version of Canvas */
  int64_t time;    /* seconds since 1970 */
  bool outdated;   /* of format 1 with an edited program, whose edits are unknown */
};
void record_free(struct record *r);
/* Sets processor, version and time to the current ones. */
void record_stamp(struct record *r);

/* Compares records by program, time, method, seed and trial, then by all other members. */
int record_compare(const struct record *a, const struct record *b);

/* Name of the program to tune: a hash of its canonical text, 16 hexadecimal digits. */
void task_of(const char *program, char out[TASK_NAME]);
/* The largest tile of Winograd's convolution in the edits, which rounds more than reordered sums;
 * 0: none. Read from their texts. */
int record_winograd(const struct record *r);
/* The program's name in its text; "": none. */
void task_title(const char *program, char *out, size_t size);

/* Prints the line with its line break. NULL texts are printed as "". */
void record_print(const struct record *r, struct buf *out);
/* Parses a line without its line break. CANVAS_BAD_INPUT: not a record, a number out of range, or a
 * task that is not the hash of the program. Texts of programs and schedules are not parsed. */
canvas_status record_parse(canvas_context *ctx, const char *line, size_t length,
                           struct record *out);

/* Target of a record. */
struct record_use {
  const struct program *given;   /* the record's program, under any name; NULL: as recorded */
  const struct machine *machine; /* machine to bind for; NULL: the record's own */
  int winograd;                  /* largest permitted tile of Winograd's convolution; 0: none */
};
/* A checked record: edits replayed, schedule bound. */
struct recorded {
  struct program *given;   /* program before the edits */
  struct program *program; /* program after the edits */
  struct schedule *schedule;
  struct machine machine;
  struct loop_tree *tree; /* bound from these three */
};
canvas_status record_bind(canvas_context *ctx, const struct record *r, const struct record_use *use,
                          struct recorded *out);
void recorded_free(struct recorded *r);

#endif
