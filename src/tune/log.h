/* Tuning logs: files with one record per line (record.h), to which any number of processes append.
 *
 * A record is appended by one write under a lock of the file. An unterminated line of a killed
 * process or full disk is removed before the next write, so that no valid record follows a damaged
 * one. A file is a log if it is empty or begins like a record; other files are never written to.
 */
#ifndef CANVAS_TUNE_LOG_H
#define CANVAS_TUNE_LOG_H

#include "base/lexer.h"
#include "tune/record.h"

enum {
  LOG_HEAD = 256,
  LOG_LINE = 4 * TEXT_LIMIT /* maximum bytes of a record's line */
};

/* ---- appending (log.c) ----------------------------------------------------------------------- */

struct log; /* for one thread; not usable in a forked child */

/* Creates the file if needed. CANVAS_BAD_INPUT: not a tuning log. CANVAS_IO: the file cannot be
 * opened, locked or read. */
canvas_status log_open(canvas_context *ctx, const char *path, struct log **out);
/* CANVAS_IO: the file is unchanged. */
canvas_status log_append(canvas_context *ctx, struct log *log, const struct record *r);
/* Bytes of unterminated lines removed since the log was opened. */
int64_t log_cut(const struct log *log);
void log_close(struct log *log); /* NULL is fine */

/* Whether a file is a log, by its first bytes: all `size` of them or LOG_HEAD. */
bool log_begins(const char *bytes, size_t size);

/* ---- reading (log_read.c) -------------------------------------------------------------------- */

/* Records in file order. They share their texts: equal texts have equal pointers. */
struct records {
  VEC(struct record);
  struct arena arena;
  const char **texts; /* hash table of texts; NULL: free slot */
  int text_count, text_slots;

  int64_t damaged;        /* number of damaged lines */
  int64_t line;           /* line number of the first one, from 1 */
  char why[MESSAGE_SIZE]; /* why it is damaged */

  int64_t outdated,
      outdated_line; /* number of outdated records (record.h); line number of the first one */
};
/* Adds records of a file, except outdated ones, to `out`, which is zeroed or was filled before. An
 * unterminated last line that is no record counts as damaged. CANVAS_BAD_INPUT: not a tuning log.
 * CANVAS_IO: the file cannot be read. */
canvas_status log_read(canvas_context *ctx, const char *path, struct records *out);
/* Adds a copy of a record. */
void records_add(struct records *out, const struct record *r);
void records_free(struct records *r);

/* ---- choosing (log_best.c) ------------------------------------------------------------------- */

/* Required origin of a record; NULL or 0: any. */
struct record_filter {
  const char *machine; /* machine text; its name, cores and memory are ignored */
  const char *processor, *compiler, *version;
  int threads;
  bool exact;    /* rejects edits that round more than reordered sums, */
  int winograd;  /* except Winograd's with tiles of at most this size */
  bool nameless; /* ignores the program's name, which passes of networks invent */

  const struct record *first; /* first record of the log */
  const bool *refused;        /* by record: unusable, treated as missing; NULL: none */
};
bool record_passes(const struct record *r, const struct record_filter *filter);
/* Whether the record is of the program with this canonical text. */
bool record_is_of(const struct record *r, const char *program, const struct record_filter *filter);

/* The fastest matching, correct record of a program (canonical text), the first of equal ones;
 * NULL: none. Screened records count only if no search of it on as many threads reached its finals;
 * their compiler is ignored. A record timed as a call of a network replaces all earlier records
 * measured alone. */
const struct record *records_best(const struct records *r, const char *program,
                                  const struct record_filter *filter);

/* As records_best. CANVAS_NONE: none; the error message has the reason. */
canvas_status records_choose(canvas_context *ctx, const struct records *r, const char *program,
                             const struct record_filter *filter, const struct record **out);

/* ---- using (log_use.c) ----------------------------------------------------------------------- */

/* Records that were skipped since they cannot be used. */
struct records_passed {
  int count;
  char why[MESSAGE_SIZE]; /* reason of the first one */
};
/* The best usable record of the program, bound for it. Its edits are replayed on use->given, which
 * is required. An unusable record does not hide usable ones. CANVAS_NONE as in records_choose.
 * `passed` may be NULL. */
canvas_status records_use(canvas_context *ctx, const struct records *r,
                          const struct record_filter *filter, const struct record_use *use,
                          const struct record **which, struct recorded *out,
                          struct records_passed *passed);
/* All records of one program for one number of threads. */
struct log_task {
  const char *program;
  int threads;
  int trials;           /* number of records measured alone */
  int failed[FAILURES]; /* trials by kind of failure; FAILED_NOT: correct ones */
  int screened;         /* number of correct, screened trials */
  int best;             /* index of the best matching record, as records_best; -1: none */
  int trial;            /* index of the best screened record; -1: none */
  int refused;          /* number of records found unusable */
  char why[256];        /* why the first one is unusable */
  bool ended;           /* a search reached its finals */
  int64_t in_network;   /* last time it was timed in a network; INT64_MIN: never */
  int64_t first, last;  /* earliest and latest time of a record */
};
struct log_tasks {
  VEC(struct log_task);
};
/* Fills tasks in the order of their first records. */
void records_tasks(const struct records *r, const struct record_filter *filter,
                   struct log_tasks *out);
/* log_use.c: as records_tasks with usable records only, each bound for this machine; NULL: for its
 * own. */
void records_usable_tasks(const struct records *r, const struct record_filter *filter,
                          const struct machine *machine, struct log_tasks *out);

/* Sorts the records independently of the files' order and removes duplicates. */
void records_merge(struct records *r);

#endif
