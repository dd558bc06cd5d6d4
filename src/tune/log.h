/* Tuning logs: files with one record per line (record.h), which any number of processes append to.
 *
 * A record is appended by one write under a lock of the file. A line that a killed process or a full disk left
 * without its end is cut off before the next one is written: what cannot be read is never followed by
 * something that can. A file is a log if it is empty or begins as a record does; nothing else is ever
 * written to.
 */
#ifndef CANVAS_TUNE_LOG_H
#define CANVAS_TUNE_LOG_H

#include "base/lexer.h"
#include "tune/record.h"

enum {
  LOG_HEAD = 256,
  LOG_LINE = 4 * TEXT_LIMIT /* bytes of a line that may be a record */
};

/* ---- appending (log.c) ----------------------------------------------------------------------- */

struct log; /* one thread's; a forked child must not use it */

/* Makes the file where there is none. CANVAS_BAD_INPUT: it is no tuning log. CANVAS_IO: it cannot be opened,
 * locked or read. */
canvas_status log_open(canvas_context *ctx, const char *path, struct log **out);
/* CANVAS_IO: nothing of the record is in the file, and all that was there before still is. */
canvas_status log_append(canvas_context *ctx, struct log *log, const struct record *r);
/* Bytes without a line's end that were found, and cut off, since it was opened. */
int64_t log_cut(const struct log *log);
void log_close(struct log *log); /* NULL is fine */

/* Whether a file of `size` bytes, or more, is a log, to judge by its first LOG_HEAD bytes. */
bool log_begins(const char *bytes, size_t size);

/* ---- reading (log_read.c) -------------------------------------------------------------------- */

/* Records in the order of the file; their texts belong to all of them together, and equal ones are one pointer. */
struct records {
  VEC(struct record);
  struct arena arena;
  const char **texts; /* a hash table of them; NULL is free */
  int text_count, text_slots;

  int64_t damaged;        /* lines that are no records ... */
  int64_t line;           /* ... the first of them, from 1 ... */
  char why[MESSAGE_SIZE]; /* ... and why it is none */

  int64_t outdated,
      outdated_line; /* lines that are outdated records (record.h), and the first of them */
};
/* Adds the records of a file to `out`, which is zeroed or was filled before; but for outdated ones. An end without a line's end that
 * is no record counts as damaged. CANVAS_BAD_INPUT: the file is no tuning log. CANVAS_IO: it cannot be read. */
canvas_status log_read(canvas_context *ctx, const char *path, struct records *out);
/* A copy of a record. */
void records_add(struct records *out, const struct record *r);
void records_free(struct records *r);

/* ---- choosing (log_best.c) ------------------------------------------------------------------- */

/* Where a record has to be from; NULL or 0: anywhere. */
struct record_filter {
  const char *machine; /* its text; but its name, its number of cores and its memory do not count */
  const char *processor, *compiler, *version;
  int threads;
  bool exact;    /* not rounded more than the order of sums does, ... */
  int winograd;  /* ... but for Winograd's convolution in tiles of at most so many */
  bool nameless; /* what a program is called does not count: passes of networks make names up */

  const struct record *first; /* of the log, ... */
  const bool
      *refused; /* ... and by record: it cannot be used, as if it were not there; NULL: all can */
};
bool record_passes(const struct record *r, const struct record_filter *filter);
/* It is of the program, which is its canonical text. */
bool record_is_of(const struct record *r, const char *program, const struct record_filter *filter);

/* Of the records of a program (its canonical text) that pass, are ok and not screened, the one with the
 * least median, the first of equal ones; where no search of it, on as many threads, came to its finals, of those
 * that are screened; NULL if there is none. Of what is screened the compiler does not count. What was timed as a
 * call of a network counts instead of all that was measured alone before. */
const struct record *records_best(const struct records *r, const char *program,
                                  const struct record_filter *filter);

/* The same; CANVAS_NONE where there is none, and the error message says why. */
canvas_status records_choose(canvas_context *ctx, const struct records *r, const char *program,
                             const struct record_filter *filter, const struct record **out);

/* ---- using (log_use.c) ----------------------------------------------------------------------- */

/* What was passed over because it cannot be used. */
struct records_passed {
  int count;
  char why[MESSAGE_SIZE]; /* of the first */
};
/* The best record of the program that can be used, bound for it: edits are replayed on `use->given`, which has to be
 * there. A record that cannot be used hides none that can. CANVAS_NONE as records_choose. `passed` may be NULL. */
canvas_status records_use(canvas_context *ctx, const struct records *r,
                          const struct record_filter *filter, const struct record_use *use,
                          const struct record **which, struct recorded *out,
                          struct records_passed *passed);
/* All records of one program on one number of threads. */
struct log_task {
  const char *program;
  int threads;
  int trials;           /* records of what was measured alone */
  int failed[FAILURES]; /* of them, by kind; FAILED_NOT: that did not fail */
  int screened;         /* that did not fail, and are no winners by themselves */
  int best;             /* a record that passes, as records_best; -1: none */
  int trial;            /* ... the best one that is screened */
  int refused;          /* records that would have been the best, and cannot be used ... */
  char why[256];        /* why the first of them cannot be used */
  bool ended;           /* a search came to its finals */
  int64_t in_network;   /* when it was timed in a network for the last time; INT64_MIN: never */
  int64_t first, last;  /* times of records */
};
struct log_tasks {
  VEC(struct log_task);
};
/* In the order of their first records. */
void records_tasks(const struct records *r, const struct record_filter *filter,
                   struct log_tasks *out);
/* log_use.c: ... whose best records can be used, each for this machine; NULL: for its own. */
void records_usable_tasks(const struct records *r, const struct record_filter *filter,
                          const struct machine *machine, struct log_tasks *out);

/* The same records in an order that depends on nothing but themselves, each once. */
void records_merge(struct records *r);

#endif
