/* Verdict on a candidate: correct with its time, or a kind of failure with a message. */
#ifndef CANVAS_RUN_VERDICT_H
#define CANVAS_RUN_VERDICT_H

#include "base/status.h"

enum failure {
  FAILED_NOT,     /* correct and timed */
  FAILED_CHECK,   /* the text has holes, or other inputs or outputs */
  FAILED_COMPILE, /* the compiler rejected it, crashed, hung or wrote nothing */
  FAILED_LOAD,    /* the object cannot be loaded, or ends its process */
  FAILED_CRASH,   /* the process crashed or exited */
  FAILED_TIMEOUT,
  FAILED_MEMORY,
  FAILED_WRONG, /* an element is wrong, never written, or outside the output */
  FAILED_RUN,   /* the function returned an error */
  FAILURES
};
const char *failure_name(enum failure failure); /* "ok", "check", ... */

struct verdict {
  enum failure failure;
  char message[MESSAGE_SIZE];  /* "": no failure */
  int64_t compared;            /* compared elements */
  double worst;                /* largest |got - wanted| / bound of these, 0 if all are equal */
  int repeats;                 /* number of timed samples */
  double median, lower, upper; /* seconds of a run: median and quartiles of the samples */
  double cold; /* median seconds with all tensors outside of caches (cold.h); 0: not measured */
};

/* Sets failure and message. */
void verdict_fail(struct verdict *v, enum failure failure, const char *format, ...)
    PRINTF_LIKE(3, 4);

#endif
