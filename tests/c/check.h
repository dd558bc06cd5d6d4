// Unit tests as tables: rows of {input, expected}, one loop that names the row that failed.
//
//   static const struct { const char *text; int expected; } rows[] = { {"1+1", 2}, ... };
//
//   static void sums(void **state) {
//     CHECK_ROWS(rows, row) {
//       CHECK_INT(sum(row->text), row->expected, row->text);
//     }
//   }
//
//   CHECK_MAIN(cmocka_unit_test(sums), ...)
//
// A check ends the test; its last argument is the input, which the message repeats.
#ifndef CANVAS_TESTS_CHECK_H
#define CANVAS_TESTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

// A new folder in $TMPDIR, or in /tmp where that does not fit; false if it cannot be made.
static inline bool temporary_folder(char *out, size_t size) {
  const char *parent = getenv("TMPDIR"), *name = "canvas-test-XXXXXX";
  if (!parent || !*parent || strlen(parent) + strlen(name) + 2 > size) parent = "/tmp";
  snprintf(out, size, "%s/%s", parent, name);
  return mkdtemp(out);
}

// base/status.h has a function `fail`, so cmocka's macro of that name has to go.
#undef fail
#undef fail_msg
#define fail_msg(...)          \
  do {                         \
    print_error("ERROR: ");    \
    print_error(__VA_ARGS__);  \
    print_error("\n");         \
    _fail(__FILE__, __LINE__); \
  } while (0)

// For each row of an array, `row` points at it.
#define CHECK_ROWS(rows, row)                                                                      \
  for (const __typeof__((rows)[0]) *row = (rows); row < (rows) + sizeof(rows) / sizeof((rows)[0]); \
       row++)

// The condition holds.
#define CHECK(condition, input)                                     \
  do {                                                              \
    if (!(condition)) {                                             \
      fail_msg("%s does not hold for \"%s\"", #condition, (input)); \
    }                                                               \
  } while (0)

// Two integers are equal.
#define CHECK_INT(actual, expected, input)                                              \
  do {                                                                                  \
    long long check_a = (long long)(actual), check_b = (long long)(expected);           \
    if (check_a != check_b) {                                                           \
      fail_msg("%s is %lld, not %lld, for \"%s\"", #actual, check_a, check_b, (input)); \
    }                                                                                   \
  } while (0)

// Two strings are equal; NULL equals NULL only.
#define CHECK_TEXT(actual, expected, input)                                                   \
  do {                                                                                        \
    const char *check_a = (actual), *check_b = (expected);                                    \
    if (!check_a || !check_b ? check_a != check_b : strcmp(check_a, check_b) != 0) {          \
      fail_msg("%s is \"%s\", not \"%s\", for \"%s\"", #actual, check_a ? check_a : "(null)", \
               check_b ? check_b : "(null)", (input));                                        \
    }                                                                                         \
  } while (0)

// |actual - expected| <= tolerance * max(1, |expected|); equal infinities pass, a NaN never does.
#define CHECK_NEAR(actual, expected, tolerance, input)                                             \
  do {                                                                                             \
    double check_a = (actual), check_b = (expected);                                               \
    if (check_a != check_b &&                                                                      \
        !(isfinite(check_b) && fabs(check_a - check_b) <= (tolerance) * fmax(1, fabs(check_b)))) { \
      fail_msg("%s is %.17g, not %.17g, for \"%s\"", #actual, check_a, check_b, (input));          \
    }                                                                                              \
  } while (0)

// main() of a file of tests: CHECK_MAIN(cmocka_unit_test(a), cmocka_unit_test(b))
#define CHECK_MAIN(...)                                                       \
  int main(void) {                                                            \
    if (getenv("CANVAS_TEST")) cmocka_set_test_filter(getenv("CANVAS_TEST")); \
    const struct CMUnitTest check_tests[] = {__VA_ARGS__};                    \
    return cmocka_run_group_tests(check_tests, NULL, NULL);                   \
  }

#endif
