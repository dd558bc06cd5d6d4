// The public functions that compile and run: schedules as texts, each with its own verdict.
#define _DEFAULT_SOURCE
#include "canvas.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

static char folder[64];

static int make_folder(void **state) {
  strcpy(folder, "/tmp/canvas-test-XXXXXX");
  unsetenv("CANVAS_CC");
  return mkdtemp(folder) ? setenv("CANVAS_CACHE", folder, 1) : -1;
}

static int remove_folder(void **state) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

static canvas_program *parse(canvas_context *ctx) {
  static const char text[] =
      "canvas 1\nprogram rows\nin X f32 [i:6, j:8]\nY[i:6] = X[i, j] // sum j:8\nout Y\n";
  canvas_program *p;
  assert_int_equal(canvas_program_parse(ctx, text, sizeof text - 1, &p), CANVAS_OK);
  return p;
}

static const struct {
  const char *schedule;
  canvas_failure failure;
  const char *kind, *message;
} rows[] = {
    {NULL, CANVAS_FAILED_NOT, "ok", ""},
    {"i, j =>\n    @Y = i // j\n", CANVAS_FAILED_NOT, "ok", ""},
    {"i, j\n", CANVAS_FAILED_PARSE, "parse", "line 1, column "},
    {"i, k =>\n    @Y = i // k\n", CANVAS_FAILED_CHECK, "check", "line 2, column 15: "},
    {"io:?, ii:?, j =>\n    @Y = {io, ii}/i // j\n", CANVAS_FAILED_CHECK, "check", "holes"},
    {"io:2, ii:3, j =>\n    @Y = {io, ii}/i // j\n", CANVAS_FAILED_NOT, "ok", ""},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void every_schedule_has_its_verdict(void **state) {
  canvas_context *ctx = canvas_context_new();
  canvas_program *p = parse(ctx);
  canvas_machine *here = canvas_machine_here();
  canvas_bound *bound;
  const canvas_run_options options = {.repeats = 5};
  const char *schedules[ROWS];
  canvas_verdict verdicts[ROWS];
  for (int i = 0; i < ROWS; i++) schedules[i] = rows[i].schedule;
  if (canvas_program_run(ctx, p, here, schedules, ROWS, &options, verdicts) != CANVAS_OK)
    fail_msg("%s", canvas_context_message(ctx));
  for (int i = 0; i < ROWS; i++) {
    const char *of = rows[i].schedule ? rows[i].schedule : "default";
    CHECK_TEXT(canvas_failure_name(verdicts[i].failure), rows[i].kind, of);
    CHECK(strstr(verdicts[i].message, rows[i].message), verdicts[i].message);
    CHECK_INT(verdicts[i].compared, rows[i].failure ? 0 : 6, of);
    CHECK(rows[i].failure || verdicts[i].median > 0, of);
  }
  // None of them can be run: no compiler is asked for.
  setenv("CANVAS_CC", "canvas-no-such-compiler", 1);
  CHECK_INT(canvas_program_run(ctx, p, here, schedules + 2, 3, NULL, verdicts), CANVAS_OK,
            "bad ones");
  CHECK_INT(canvas_program_run(ctx, p, here, schedules, ROWS, NULL, verdicts), CANVAS_IO,
            "no compiler");
  char *path;
  CHECK_INT(canvas_bound_new(ctx, p, NULL, here, &bound), CANVAS_OK, "the default schedule");
  CHECK_INT(canvas_bound_compile(ctx, bound, NULL, &path), CANVAS_IO, "no compiler");
  assert_null(canvas_compiler_name(ctx));
  unsetenv("CANVAS_CC");
  canvas_bound_free(bound);
  canvas_machine_free(here);
  canvas_program_free(p);
  canvas_context_free(ctx);
}

static void compiled_to_keep(void **state) {
  canvas_context *ctx = canvas_context_new();
  canvas_program *p = parse(ctx);
  canvas_machine *here = canvas_machine_here();
  canvas_bound *bound;
  char *path, *again, *function = canvas_program_function(p), *name = canvas_compiler_name(ctx);
  assert_string_equal(function, "rows");
  assert_non_null(strstr(name, "-O2"));
  assert_int_equal(canvas_bound_new(ctx, p, NULL, here, &bound), CANVAS_OK);
  assert_int_equal(canvas_bound_compile(ctx, bound, NULL, &path), CANVAS_OK);
  assert_int_equal(canvas_bound_compile(ctx, bound, NULL, &again), CANVAS_OK);
  assert_string_equal(path, again);
  assert_int_equal(access(path, R_OK), 0);
  assert_memory_equal(path, folder, strlen(folder));
  canvas_string_free(path);
  canvas_string_free(again);
  canvas_string_free(function);
  canvas_string_free(name);
  canvas_bound_free(bound);
  canvas_machine_free(here);
  canvas_program_free(p);
  canvas_context_free(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_schedule_has_its_verdict),
                                     cmocka_unit_test(compiled_to_keep)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
