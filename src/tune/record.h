/* One measured candidate as one line of JSON that needs nothing beside it: the program as it was given, the edits
 * that were made, the schedule with every number, what it came to, and where.
 *
 *     {"canvas_log": 2, "version": "0.1.0", "task": "94d1c3f0a2b7e655", "program": "canvas 1\nprogram gemm\n...",
 *      "edits": "pack B as B_p [...]\n", "schedule": "...", "rule": "lanes n x2", "method": "quick", "seed": 1, "trial": 17,
 *      "failure": "ok", "message": "", "median": 0.0014, "lower": ..., "upper": ..., "repeats": 30,
 *      "network": null, "threads": 1, "screened": false, "machine": "canvas 1\nmachine here\n...", "processor": "AMD EPYC",
 *      "compiler": "gcc -O2 ... (gcc 12.2.0)", "time": 1763827200}
 *
 * Keys stand in any order; unknown ones are skipped, so that a later version may add some; no key
 * may sort before "canvas_log", because some tools sort keys and readers expect it first.
 *
 * A record holds decisions, which a reader takes again: the edits are replayed on the program at hand, and the
 * schedule is checked. So a log of a stranger may choose a slow schedule, and nothing else. Format 1 had the edited
 * program in place of the edits, as "edited": a record of it counts where nothing was edited; others are outdated.
 */
#ifndef CANVAS_TUNE_RECORD_H
#define CANVAS_TUNE_RECORD_H

#include "bind/loop_tree.h"
#include "run/verdict.h"

enum { RECORD_FORMAT = 2, TASK_NAME = 17 };
#define RECORD_BEGIN "{\"canvas_log\": " /* of every line that is written */

struct record {
  char *program;  /* text of the program as it was given, canonical */
  char *edits;    /* texts of the edits that the schedule is for, a line each (program_edit.h) */
  char *schedule; /* with every number */
  char *rule, *method; /* of the sketch, and of the search */
  uint64_t seed;       /* of the run; (program, method, seed, trial) is a place in it */
  int trial;           /* from 0 */
  enum failure failure;
  char *message;               /* "" where there was none */
  double median, lower, upper; /* seconds; 0 where it failed */
  double cold;                 /* ... with nothing in the caches (verdict.h); 0: not taken */
  double network; /* ... as a call of a network, which `median` is then, too; 0: alone */
  int repeats, threads;
  bool screened;   /* compiled quickly, or stopped early: never a winner by itself */
  char *machine;   /* text of the machine it was bound for */
  char *processor; /* processor_name: which one it was measured on */
  char *compiler;  /* compiler_text */
  char *version;   /* of canvas */
  int64_t time;    /* unix seconds */
  bool outdated;   /* of format 1, with an edited program: nothing is known of its edits */
};
void record_free(struct record *r);
/* Sets processor, version and time: those of here and now. */
void record_stamp(struct record *r);

/* Less than, equal to or more than 0: by program, time, method, seed and trial, then by all the rest. */
int record_compare(const struct record *a, const struct record *b);

/* The name of what is tuned: 16 hexadecimal digits, a hash of the program's canonical text. */
void task_of(const char *program, char out[TASK_NAME]);
/* The largest tile of Winograd's convolution that the edits take, after which code rounds more than it does by the
 * order of sums; 0: none. As the texts say. */
int record_winograd(const struct record *r);
/* The name that the text gives the program; "" where it gives none. */
void task_title(const char *program, char *out, size_t size);

/* The line, with its line break. Texts that are NULL are written as "". */
void record_print(const struct record *r, struct buf *out);
/* A line without its line break. CANVAS_BAD_INPUT: it is no record, a number is not what it can be, or its
 * task is no hash of its program. The texts of programs and schedules are not looked into. */
canvas_status record_parse(canvas_context *ctx, const char *line, size_t length,
                           struct record *out);

/* What a record is bound for. */
struct record_use {
  const struct program
      *given; /* the program at hand, the record's but for its name; NULL: the record's */
  const struct machine *machine; /* NULL: the one that the record was bound for */
  int winograd; /* tiles of Winograd's convolution that may be taken, up to this; 0: none */
};
/* What a record says, checked: its edits replayed, its schedule bound. */
struct recorded {
  struct program *given;   /* before the edits */
  struct program *program; /* after them */
  struct schedule *schedule;
  struct machine machine;
  struct loop_tree *tree; /* of these three */
};
canvas_status record_bind(canvas_context *ctx, const struct record *r, const struct record_use *use,
                          struct recorded *out);
void recorded_free(struct recorded *r);

#endif
