// The public functions that compile and run: candidates with verdicts, code that is kept or called.
#define _DEFAULT_SOURCE
#include "canvas.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static char folder[64];

static int make_folder(void **state) {
  unsetenv("CANVAS_CC");
  return temporary_folder(folder, sizeof folder) ? setenv("CANVAS_CACHE", folder, 1) : -1;
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

// ---- the measurer -------------------------------------------------------------------------------

static const struct {
  const char *schedule;  // NULL: the default one
  canvas_failure failure;
  const char *kind, *message;
} rows[] = {
    {NULL, CANVAS_FAILED_NOT, "ok", ""},
    {"i, j =>\n    @Y = i // j\n", CANVAS_FAILED_NOT, "ok", ""},
    {"io:?, ii:?, j =>\n    @Y = {io, ii}/i // j\n", CANVAS_FAILED_CHECK, "check", "holes"},
    {"io:2, ii:3, j =>\n    @Y = {io, ii}/i // j\n", CANVAS_FAILED_NOT, "ok", ""},
};
enum { ROWS = sizeof rows / sizeof *rows };

struct candidates {
  canvas_schedule *schedules[ROWS];
  canvas_bound *bound[ROWS];
};

static void bind_rows(canvas_context *ctx, const canvas_program *p, struct candidates *c) {
  canvas_machine *here = canvas_machine_here();
  for (int i = 0; i < ROWS; i++) {
    const char *text = rows[i].schedule;
    c->schedules[i] = NULL;
    if (text) canvas_schedule_parse(ctx, text, strlen(text), &c->schedules[i]);
    CHECK_INT(canvas_bound_new(ctx, p, c->schedules[i], here, &c->bound[i]), CANVAS_OK, text);
  }
  canvas_machine_free(here);
}

static void drop_rows(struct candidates *c) {
  for (int i = 0; i < ROWS; i++) {
    canvas_bound_free(c->bound[i]);
    canvas_schedule_free(c->schedules[i]);
  }
}

static const canvas_bound *const *list(const struct candidates *c) {
  return (const canvas_bound *const *)c->bound;
}

static void every_candidate_has_its_verdict(void **state) {
  canvas_context *ctx = canvas_context_new();
  canvas_program *p = parse(ctx);
  struct candidates c;
  canvas_measurer *m = NULL;
  canvas_verdict verdicts[ROWS];
  bind_rows(ctx, p, &c);
  for (int again = 0; again < 3; again++) {  // compiled, found in the cache, screened
    const canvas_run_options options = {.repeats = 5, .screen = again == 2};
    if (again != 1) {
      canvas_measurer_free(m);
      CHECK_INT(canvas_measurer_new(ctx, p, &options, &m), CANVAS_OK, "a measurer");
      assert_non_null(strstr(canvas_measurer_compiler(m), again ? " -O" : " -O2"));
    }
    if (canvas_measurer_run(ctx, m, list(&c), ROWS, verdicts) != CANVAS_OK)
      fail_msg("%s", canvas_context_message(ctx));
    for (int i = 0; i < ROWS; i++) {
      const char *of = rows[i].schedule ? rows[i].schedule : "default";
      CHECK_TEXT(canvas_failure_name(verdicts[i].failure), rows[i].kind, of);
      CHECK(strstr(verdicts[i].message, rows[i].message), verdicts[i].message);
      CHECK_INT(verdicts[i].compared, rows[i].failure ? 0 : 6, of);
      CHECK(rows[i].failure || verdicts[i].median > 0, of);
    }
  }
  CHECK_INT(canvas_measurer_run(ctx, m, NULL, 0, NULL), CANVAS_OK, "none");
  canvas_measurer_free(m);
  drop_rows(&c);
  canvas_program_free(p);
  canvas_context_free(ctx);
}

// What an edit made of the program is measured as well; a program of other tensors is not.
static void programs_that_compute_the_same(void **state) {
  static const char other[] =
      "canvas 1\nprogram columns\nin X f32 [i:6, j:9]\nY[i:6] = X[i, j] // sum j:9\nout Y\n";
  canvas_context *ctx = canvas_context_new();
  canvas_machine *here = canvas_machine_here();
  canvas_program *p = parse(ctx), *edited, *columns;
  canvas_bound *bound[2];
  canvas_measurer *m;
  canvas_verdict verdicts[2];
  CHECK_INT(canvas_program_edit(ctx, p, "cache Y as C", 12, &edited), CANVAS_OK, "an edit");
  CHECK_INT(canvas_program_parse(ctx, other, sizeof other - 1, &columns), CANVAS_OK, other);
  CHECK_INT(canvas_bound_new(ctx, edited, NULL, here, &bound[0]), CANVAS_OK, "edited");
  CHECK_INT(canvas_bound_new(ctx, columns, NULL, here, &bound[1]), CANVAS_OK, "columns");
  CHECK_INT(canvas_measurer_new(ctx, p, NULL, &m), CANVAS_OK, "a measurer");
  CHECK_INT(canvas_measurer_run(ctx, m, (const canvas_bound *const *)bound, 2, verdicts), CANVAS_OK,
            "both");
  CHECK_TEXT(canvas_failure_name(verdicts[0].failure), "ok", verdicts[0].message);
  CHECK_TEXT(verdicts[1].message,
             "program 'columns' has not the inputs and outputs of 'rows', which is measured", "");
  canvas_measurer_free(m);
  for (int i = 0; i < 2; i++) canvas_bound_free(bound[i]);
  canvas_program_free(columns);
  canvas_program_free(edited);
  canvas_program_free(p);
  canvas_machine_free(here);
  canvas_context_free(ctx);
}

// ---- code ---------------------------------------------------------------------------------------

static canvas_bound *bind_default(canvas_context *ctx, const canvas_program *p) {
  canvas_machine *here = canvas_machine_here();
  canvas_bound *bound;
  CHECK_INT(canvas_bound_new(ctx, p, NULL, here, &bound), CANVAS_OK, "the default schedule");
  canvas_machine_free(here);
  return bound;
}

static void without_a_compiler(void **state) {
  canvas_context *ctx = canvas_context_new();
  canvas_program *p = parse(ctx);
  canvas_bound *bound = bind_default(ctx, p);
  canvas_measurer *m;
  canvas_code *code;
  char *path;
  setenv("CANVAS_CC", "canvas-no-such-compiler", 1);
  CHECK_INT(canvas_measurer_new(ctx, p, NULL, &m), CANVAS_IO, "no compiler");
  CHECK_INT(canvas_bound_compile(ctx, bound, NULL, &path), CANVAS_IO, "no compiler");
  CHECK_INT(canvas_code_open(ctx, bound, &code), CANVAS_IO, "no compiler");
  assert_null(canvas_compiler_name(ctx));
  unsetenv("CANVAS_CC");
  canvas_bound_free(bound);
  canvas_program_free(p);
  canvas_context_free(ctx);
}

static void compiled_to_keep(void **state) {
  canvas_context *ctx = canvas_context_new();
  canvas_program *p = parse(ctx);
  canvas_bound *bound = bind_default(ctx, p);
  char *path, *again, *function = canvas_program_function(p), *name = canvas_compiler_name(ctx);
  assert_string_equal(function, "rows");
  assert_non_null(strstr(name, "-O2"));
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
  canvas_program_free(p);
  canvas_context_free(ctx);
}

static void compiled_for_a_target(void **state) {
  static const char text[] =
      "canvas 1\nmachine odd\nvector_bytes 16\nvector_registers 16\nl1 1 KiB\nl2 1 MiB\n"
      "memory 1 GiB\ntarget no-such-processor\n";
  canvas_context *ctx = canvas_context_new();
  canvas_program *p = parse(ctx);
  canvas_machine *odd;
  canvas_bound *bound;
  canvas_code *code;
  char *path;
  CHECK_INT(canvas_machine_parse(ctx, text, sizeof text - 1, &odd), CANVAS_OK, text);
  CHECK_INT(canvas_bound_new(ctx, p, NULL, odd, &bound), CANVAS_OK, "odd");
  CHECK_INT(canvas_bound_compile(ctx, bound, NULL, &path), CANVAS_IO, "an unknown target");
  CHECK(strstr(canvas_context_message(ctx), "no-such-processor"), canvas_context_message(ctx));
  CHECK_INT(canvas_code_open(ctx, bound, &code), CANVAS_OK, "code for here");
  canvas_code_close(code);
  canvas_bound_free(bound);
  canvas_machine_free(odd);
  canvas_program_free(p);
  canvas_context_free(ctx);
}

// A compiler whose objects are none.
static void not_loaded(void **state) {
  canvas_context *ctx = canvas_context_new();
  canvas_program *p = parse(ctx);
  canvas_bound *bound = bind_default(ctx, p);
  canvas_code *code;
  char script[128];
  snprintf(script, sizeof script, "%s/junk", folder);
  FILE *file = fopen(script, "w");
  fputs("#!/bin/sh\n[ \"$1\" = --version ] || echo junk >unit.so\n", file);
  fclose(file);
  chmod(script, 0700);
  setenv("CANVAS_CC", script, 1);
  CHECK_INT(canvas_code_open(ctx, bound, &code), CANVAS_IO, "junk");
  CHECK(strstr(canvas_context_message(ctx), "what was compiled cannot be loaded: "),
        canvas_context_message(ctx));
  unsetenv("CANVAS_CC");
  canvas_bound_free(bound);
  canvas_program_free(p);
  canvas_context_free(ctx);
}

static void called(void **state) {
  canvas_context *ctx = canvas_context_new();
  canvas_program *p = parse(ctx);
  canvas_bound *bound = bind_default(ctx, p);
  canvas_code *code;
  float x[6 * 8], y[6];
  for (int i = 0; i < 6 * 8; i++) x[i] = (float)i;
  CHECK_INT(canvas_code_open(ctx, bound, &code), CANVAS_OK, canvas_context_message(ctx));
  canvas_bound_free(bound);  // the code needs neither
  canvas_program_free(p);
  CHECK_INT(canvas_code_call(ctx, code, (const void *[]){x}, (void *[]){y}), CANVAS_OK, "a call");
  for (int i = 0; i < 6; i++) assert_true(y[i] == (float)(64 * i + 28));
  canvas_code_close(code);
  canvas_code_close(NULL);
  canvas_context_free(ctx);
}

// ---- values ----

// Compiled for the machine under the schedule (NULL: the default one), and called. `holds`: stands in its C; NULL.
static void compute(canvas_context *ctx, const canvas_machine *machine, const char *program,
                    const char *schedule, const char *holds, const void *const *in, float *out) {
  canvas_program *p;
  canvas_schedule *s = NULL;
  canvas_bound *bound;
  canvas_code *code;
  char *c;
  CHECK_INT(canvas_program_parse(ctx, program, strlen(program), &p), CANVAS_OK, program);
  if (schedule)
    CHECK_INT(canvas_schedule_parse(ctx, schedule, strlen(schedule), &s), CANVAS_OK, schedule);
  CHECK_INT(canvas_bound_new(ctx, p, s, machine, &bound), CANVAS_OK, canvas_context_message(ctx));
  CHECK_INT(canvas_bound_emit(ctx, bound, NULL, &c), CANVAS_OK, canvas_context_message(ctx));
  if (holds && !strstr(c, holds)) fail_msg("\"%s\" is not in\n%s", holds, c);
  CHECK_INT(canvas_code_open(ctx, bound, &code), CANVAS_OK, canvas_context_message(ctx));
  CHECK_INT(canvas_code_call(ctx, code, in, (void *[]){out}), CANVAS_OK, "call");
  canvas_string_free(c);
  canvas_code_close(code);
  canvas_bound_free(bound);
  canvas_schedule_free(s);
  canvas_program_free(p);
}

// What gcc 12 makes wrong vectors of at -O2: rows that fall, two of them or more in a step; by default, unrolled, and
// unrolled of several sums.
static void rows_that_fall(void **state) {
  static const char row[] = "program p\nin X f32 [i:56]\nY[n:2] = X[55-k] // sum k:56\nout Y\n";
  static const struct {
    const char *program, *schedule;
  } falling[] = {
      {"program p\nin X f32 [h:28, w:2]\nY[n:1] = X[27-h, 1-w] // sum h:28, w:2\nout Y\n", NULL},
      {row, "n, k_o, k_i:4:unroll =>\n    @Y = n // {k_o, k_i}/k\n"},
      {row, "k_o, n, k_i:2:unroll =>\n    @Y = n // {k_o, k_i}/k\n"},
      {row, "k_o, k_i:2:unroll, n:unroll =>\n    @Y = n // {k_o, k_i}/k\n"},
  };
  canvas_context *ctx = canvas_context_new();
  canvas_machine *here = canvas_machine_here();
  float x[56], sum = 0;
  for (int i = 0; i < 56; i++) sum += x[i] = (float)(i * i % 17);
  CHECK_ROWS (falling, f) {
    float y[2];
    compute(ctx, here, f->program, f->schedule, NULL, (const void *[]){x}, y);
    if (y[0] != sum) fail_msg("%s: %g, not %g", f->program, y[0], sum);
  }
  canvas_machine_free(here);
  canvas_context_free(ctx);
}

// Products of a matrix of 33 rows and one of 50 columns, with sums of 3001 steps, that a small cache wants in parts:
// rows, columns and steps leave a rest.
static void long_sums_in_parts(void **state) {
  enum { ROWS_OF_A = 33, COLUMNS = 50, STEPS = 3001 };
#define OF(a, b) "program p\nin A f32 [" a "]\nin B f32 [" b "]\n"
  static const struct {
    const char *program;
    bool a_turned, b_turned, reader;
  } products[] = {
      {OF("i:33, k:3001",
          "k:3001, j:50") "Y[i:33, j:50] = A[i, k] * B[k, j] // sum k:3001\nout Y\n",
       false, false, false},
      {OF("k:3001, i:33",
          "k:3001, j:50") "Y[i:33, j:50] = A[k, i] * B[k, j] // sum k:3001\nout Y\n",
       true, false, false},
      {OF("i:33, k:3001",
          "j:50, k:3001") "Y[i:33, j:50] = A[i, k] * B[j, k] // sum k:3001\nout Y\n",
       false, true, false},
      {OF("k:3001, i:33", "k:3001, j:50") "S[i:33, j:50] = A[k, i] * B[k, j] // sum k:3001\n"
                                          "Y[i:33, j:50] = max(S[i, j], 0) + 1\nout Y\n",
       true, false, true},
  };
#undef OF
  static const char small[] =
      "canvas 1\nmachine small\nvector_bytes 16\nvector_registers 16\nl1 4 KiB\nl2 64 KiB\n"
      "memory 1 GiB\ntarget native\n";
  static float a[ROWS_OF_A * STEPS], b[STEPS * COLUMNS], y[ROWS_OF_A * COLUMNS];
  canvas_context *ctx = canvas_context_new();
  canvas_machine *machine;
  CHECK_INT(canvas_machine_parse(ctx, small, sizeof small - 1, &machine), CANVAS_OK, small);
  for (int i = 0; i < ROWS_OF_A * STEPS; i++) a[i] = (float)(i * 7 % 11 - 5);
  for (int i = 0; i < STEPS * COLUMNS; i++) b[i] = (float)(i * 5 % 13 - 6);
  CHECK_ROWS (products, row) {
    compute(ctx, machine, row->program, NULL, "k_o, ", (const void *[]){a, b}, y);
    for (int i = 0; i < ROWS_OF_A; i++)
      for (int j = 0; j < COLUMNS; j++) {
        double sum = 0;
        for (int k = 0; k < STEPS; k++)
          sum += (double)a[row->a_turned ? k * ROWS_OF_A + i : i * STEPS + k] *
                 b[row->b_turned ? j * STEPS + k : k * COLUMNS + j];
        if (row->reader) sum = fmax(sum, 0) + 1;
        if (y[i * COLUMNS + j] != sum)  // whole numbers, which fp32 holds
          fail_msg("%s: [%d, %d] is %g, not %g", row->program, i, j, y[i * COLUMNS + j], sum);
      }
  }
  canvas_machine_free(machine);
  canvas_context_free(ctx);
}

// ---- threads ----

// The threads that a `para` loop began are still there when its code is gone.
static void closed_with_threads(void **state) {
  static const char schedule[] = "i:para, j =>\n    @Y = i // j\n";
  canvas_context *ctx = canvas_context_new();
  canvas_machine *here = canvas_machine_here();
  canvas_program *p = parse(ctx);
  canvas_schedule *s;
  canvas_bound *bound;
  float x[6 * 8] = {1}, y[6];
  CHECK_INT(canvas_schedule_parse(ctx, schedule, sizeof schedule - 1, &s), CANVAS_OK, schedule);
  CHECK_INT(canvas_bound_new(ctx, p, s, here, &bound), CANVAS_OK, schedule);
  for (int i = 0; i < 3; i++) {
    canvas_code *code;
    CHECK_INT(canvas_code_open(ctx, bound, &code), CANVAS_OK, canvas_context_message(ctx));
    CHECK_INT(canvas_code_call(ctx, code, (const void *[]){x}, (void *[]){y}), CANVAS_OK, "call");
    canvas_code_close(code);
    usleep(20000);
    assert_true(y[0] == 1);
  }
  canvas_bound_free(bound);
  canvas_schedule_free(s);
  canvas_program_free(p);
  canvas_machine_free(here);
  canvas_context_free(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_candidate_has_its_verdict),
                                     cmocka_unit_test(programs_that_compute_the_same),
                                     cmocka_unit_test(without_a_compiler),
                                     cmocka_unit_test(compiled_to_keep),
                                     cmocka_unit_test(compiled_for_a_target),
                                     cmocka_unit_test(not_loaded),
                                     cmocka_unit_test(called),
                                     cmocka_unit_test(rows_that_fall),
                                     cmocka_unit_test(long_sums_in_parts),
                                     cmocka_unit_test(closed_with_threads)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
