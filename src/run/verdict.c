/* Names and writes verdicts. See verdict.h. */
#include "run/verdict.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/number.h"

const char *failure_name(enum failure failure) {
  static const char *const names[FAILURES] = {"ok",      "check",  "compile", "load", "crash",
                                              "timeout", "memory", "wrong",   "run"};
  return names[failure];
}

void verdict_fail(struct verdict *v, enum failure failure, const char *format, ...) {
  va_list args;
  va_start(args, format);
  text_vformat(v->message, sizeof v->message, format, args);
  va_end(args);
  v->failure = failure;
}
