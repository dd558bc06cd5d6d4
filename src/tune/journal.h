/* What a search reads from its log and writes to it: verdicts on candidates, by their texts. */
#ifndef CANVAS_TUNE_JOURNAL_H
#define CANVAS_TUNE_JOURNAL_H

#include "run/verdict.h"
#include "tune/log.h"

/* What all records of a search have in common. */
struct journal_run {
  const char *program; /* text, as it was given */
  const char *machine; /* text */
  const char *method;
  uint64_t seed;
  int threads;
};

/* A candidate's own part. */
struct journal_entry {
  const char *rule;
  const char *edits, *schedule; /* texts: the edits of the program, and its schedule with numbers */
  const char *compiler;         /* that compiled it */
  bool screened;
};

/* Of a candidate's two texts, or of two others that say the same. */
uint64_t journal_hash(const char *edits, const char *schedule);

struct journal;

/* Reads the log, which may be new, and keeps it open. */
canvas_status journal_open(canvas_context *ctx, const char *path, const struct journal_run *run,
                           struct journal **out);
void journal_close(struct journal *j); /* NULL is fine */

int64_t journal_damaged(const struct journal *j); /* lines that are no records */

/* The verdict that the same search came to before it was ended; false: none. */
bool journal_recall(const struct journal *j, const struct journal_entry *e, struct verdict *out);
canvas_status journal_add(canvas_context *ctx, struct journal *j, const struct journal_entry *e,
                          const struct verdict *verdict);

/* Calls `visit` for the best record of each other program that is the same but for its sizes, on this
 * machine: by rule and schedule text. */
void journal_similar(const struct journal *j,
                     void (*visit)(void *data, const char *rule, const char *schedule), void *data);

#endif
