/* What became of a candidate: correct and this fast, or the kind of its failure and one error message. */
#ifndef CANVAS_RUN_VERDICT_H
#define CANVAS_RUN_VERDICT_H

#include "base/status.h"

enum failure {
  FAILED_NOT,     /* correct, and timed */
  FAILED_CHECK,   /* it has holes, or other inputs and outputs */
  FAILED_COMPILE, /* the compiler rejected it, died, hung or wrote nothing */
  FAILED_LOAD,    /* what was compiled cannot be loaded, or loading it ends the process */
  FAILED_CRASH,   /* its process died, or ended by itself */
  FAILED_TIMEOUT,
  FAILED_MEMORY,
  FAILED_WRONG, /* an element is wrong, was never written, or stands outside the output */
  FAILED_RUN,   /* it answered with an error of its own */
  FAILURES
};
const char *failure_name(enum failure failure); /* "ok", "check", ... */

struct verdict {
  enum failure failure;
  char message[MESSAGE_SIZE];  /* "" if there was none */
  int64_t compared;            /* elements that were compared with the interpreter's */
  double worst;                /* largest |got - wanted| / bound among them, 0 where both are 0 */
  int repeats;                 /* timed samples */
  double median, lower, upper; /* seconds of a run: of the samples the median and the quartiles */
  double cold; /* the median where nothing it reads is in a cache (cold.h); 0: not taken */
};

/* verdict.c: sets failure and message. */
void verdict_fail(struct verdict *v, enum failure failure, const char *format, ...)
    PRINTF_LIKE(3, 4);

#endif
