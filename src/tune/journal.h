/* A search's view of its log: verdicts on candidates by their texts. */
#ifndef CANVAS_TUNE_JOURNAL_H
#define CANVAS_TUNE_JOURNAL_H

#include "run/verdict.h"
#include "tune/log.h"

/* Fields that all records of a search share. */
struct journal_run {
  const char *program; /* canonical text of the given program */
  const char *machine; /* text of the machine */
  const char *method;
  uint64_t seed;
  int threads;
};

/* Fields of one candidate. */
struct journal_entry {
  const char *rule;
  const char *edits, *schedule; /* texts of the edits and of the schedule with numbers */
  const char *compiler;         /* text of its compiler */
  bool screened;
};

/* Hash of two texts of a candidate. */
uint64_t journal_hash(const char *edits, const char *schedule);

struct journal;

/* Reads the log, which may be new, and keeps it open for appending. */
canvas_status journal_open(canvas_context *ctx, const char *path, const struct journal_run *run,
                           struct journal **out);
void journal_close(struct journal *j); /* NULL is fine */

int64_t journal_damaged(const struct journal *j); /* number of damaged lines */

/* The verdict of an earlier run of the same search; false: none. */
bool journal_recall(const struct journal *j, const struct journal_entry *e, struct verdict *out);
canvas_status journal_add(canvas_context *ctx, struct journal *j, const struct journal_entry *e,
                          const struct verdict *verdict);

/* Calls `visit` with rule and schedule of the best record, on this machine, of each program that
 * differs only in its sizes. */
void journal_similar(const struct journal *j,
                     void (*visit)(void *data, const char *rule, const char *schedule), void *data);

#endif
