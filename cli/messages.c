/* Error messages on stderr, texts on stdout. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command.h"

static void report(const char *begin, const char *format, va_list args) {
  char message[2048];
  vsnprintf(message, sizeof message, format, args);
  for (char *p = message; *p; p++) {
    unsigned char c = (unsigned char)*p;
    if (c < 0x20 || c == 0x7f) *p = '?';
  }
  fflush(stdout); /* in the order of events where both go to one place */
  fprintf(stderr, "%s: %s\n", begin, message);
}

int report_error(const char *format, ...) {
  va_list args;
  va_start(args, format);
  report("canvas", format, args);
  va_end(args);
  return EXIT_BAD;
}

bool names_operator(const char *word) {
  canvas_context *ctx = canvas_context_new();
  char *text = NULL;
  bool is = ctx && canvas_operator_describe(ctx, word, &text) == CANVAS_OK;
  canvas_string_free(text);
  canvas_context_free(ctx);
  return is;
}

void report_note(const char *format, ...) {
  va_list args;
  va_start(args, format);
  report("note", format, args);
  va_end(args);
}

int report_status(struct arguments *a, const char *about, canvas_status status) {
  report_error("%s: %s", about, canvas_context_message(a->ctx));
  return status == CANVAS_NONE ? EXIT_NONE : EXIT_BAD;
}

int report_kernel(struct arguments *a, const canvas_kernel *kernel, canvas_status status) {
  char quoted[128];
  snprintf(quoted, sizeof quoted, "'%s'", canvas_kernel_name(kernel));
  const char *why = canvas_context_message(a->ctx);
  if (!strstr(why, quoted)) return report_status(a, canvas_kernel_name(kernel), status);
  report_error("%s", why);
  return status == CANVAS_NONE ? EXIT_NONE : EXIT_BAD;
}

int report_flag(struct arguments *a, const char *flag, canvas_status status) {
  static const char place[] = "line 1, ";
  const char *why = canvas_context_message(a->ctx);
  if (!strncmp(why, place, sizeof place - 1)) why += sizeof place - 1;
  report_error("%s: %s", flag, why);
  return status == CANVAS_NONE ? EXIT_NONE : EXIT_BAD;
}

void put_text(char *text) {
  fputs(text, stdout);
  canvas_string_free(text);
}

void put_json_string(const char *text) {
  putchar('"');
  for (const char *p = text; *p; p++) {
    unsigned char c = (unsigned char)*p;
    if (c == '"' || c == '\\')
      printf("\\%c", c);
    else if (c == '\n')
      fputs("\\n", stdout);
    else if (c < 0x20)
      printf("\\u%04x", c);
    else
      putchar(c);
  }
  putchar('"');
}

struct short_number short_number(double value) {
  struct short_number out;
  snprintf(out.text, sizeof out.text, fabs(value) >= 999.5 ? "%.0f" : "%.3g", value);
  return out;
}

const struct time_unit *time_unit_of(double seconds) {
  static const struct time_unit units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
  int i = 0;
  while (i < 3 && seconds < units[i].seconds) i++;
  return &units[i];
}

static double clock_seconds(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double wall_clock(void) {
  return clock_seconds(CLOCK_MONOTONIC);
}

double clock_of_calls(int64_t threads) {
  return clock_seconds(threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID);
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

void sort_numbers(double *numbers, int count) {
  qsort(numbers, (size_t)count, sizeof *numbers, by_size);
}
