// The compiled reference: equal to the interpreter in every element and bound, whole where the output is
// large, and not believed where it is wrong.
#define _DEFAULT_SOURCE
#include "run/reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "check.h"
#include "random_program.h"
#include "run/cache.h"
#include "run/expected.h"
#include "run/widened.h"

static char folder[64];
static struct compiler *compiler;

static int open_all(void **state) {
  canvas_context ctx = {.message = ""};
  struct compiler_options options = {.cache = folder};
  if (!temporary_folder(folder, sizeof folder)) return -1;
  if (compiler_open(&ctx, &options, &compiler) != CANVAS_OK) fail_msg("%s", ctx.message);
  return 0;
}

static int close_all(void **state) {
  char command[128];
  compiler_close(compiler);
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

static struct program *parse(const char *text) {
  canvas_context ctx = {.message = ""};
  struct program *p;
  if (program_parse(&ctx, text, strlen(text), &p) != CANVAS_OK) fail_msg("%s", ctx.message);
  return p;
}

// With one element of the interpreter before it, or without a reference.
static struct expected *expect(const struct program *p, const struct compiler *c) {
  canvas_context ctx = {.message = ""};
  const struct expected_options options = {.seed = 7, .spot = 1e-9, .compiler = c};
  struct expected *e;
  if (expected_new(&ctx, p, &options, &e) != CANVAS_OK) fail_msg("%s: %s", p->name, ctx.message);
  return e;
}

// ---- the same as the interpreter ----------------------------------------------------------------

static bool same(double a, double b, double most) {
  return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= most;
}

// Answers how many outputs had a reference.
static int check_same(const struct program *p, const char *of) {
  struct expected *made = expect(p, compiler), *known = expect(p, NULL);
  int references = 0;
  for (int i = 0; i < known->outputs; i++) {
    const struct expected_output *a = &made->output[i], *b = &known->output[i];
    references += a->at == NULL;
    if (a->elements > 1 && !a->at) CHECK_TEXT(made->without, "", of);
    for (int64_t k = 0; !a->at && k < b->count; k++) {
      int64_t at = b->at[k];
      CHECK(same(a->want[at], b->want[k], b->bound[k]), of);
      CHECK(same(a->bound[at], b->bound[k], 1e-9 * b->bound[k]), of);
    }
  }
  expected_free(made);
  expected_free(known);
  return references;
}

#define ROWS_OF_DATA "in ptr i32 [r:5] 0..9 rising\nin X f32 [i:9]\n"

static const struct {
  const char *name, *text;
} programs[] = {
    {"convolution",
     "program c\nin X f32 [n:2, c:3, h:9, w:7]\nin W f32 [o:16, c:3, kh:3, kw:3]\n"
     "P[n:2, c:3, h:11, w:9] = if 1 <= h && h < 10 && 1 <= w && w < 8 then X[n, c, h-1, w-1] else "
     "0\nY[n:2, o:16, h:9, w:7] = P[n, c, h+kh, w+kw] * W[o, c, kh, kw] // sum c:3, kh:3, kw:3\n"
     "out Y\n"},
    {"odd product",
     "program g\nin A f32 [m:13, k:17]\nin B f32 [k:17, n:11]\n"
     "Y[m:13, n:11] = A[m, k] * B[k, n] // sum k:17\nout Y\n"},
    {"a transposed output and its source",
     "program t\nin X f32 [i:16, j:24]\nS[i:16, j:24] = X[i, j] * X[i, j]\n"
     "Y[j:24, i:16] = S[i, j] + X[i, j]\nout Y\nout S\n"},
    {"softmax",
     "program s\nin X f32 [r:6, c:40]\nM[r:6] = X[r, c] // max c:40\n"
     "E[r:6, c:40] = exp(X[r, c] - M[r])\nT[r:6] = E[r, c] // sum c:40\n"
     "Y[r:6, c:40] = E[r, c] / T[r]\nout Y\n"},
    {"fp64", "program d\nin X f64 [i:24, k:9]\nY f64 [i:24] = X[i, k] * 0.1 // sum k:9\nout Y\n"},
    {"bf16 in", "program b\nin X bf16 [i:24, k:9]\nY[i:24] = X[i, k] * 3 // mean k:9\nout Y\n"},
    {"indices",
     "program x\nin N i32 [i:16] 0..40\nin X f32 [k:41, j:8]\n"
     "Y[i:16, j:8] = X[N[i], j] * 2\nout Y\n"},
    {"sums over data",
     "program o\n" ROWS_OF_DATA "Y[r:4] = X[k] // sum k:ptr[r]..ptr[r+1]\nout Y\n"},
    {"maxima of nothing", "program m\nin X f32 [k:8]\nY[i:8] = X[k] // max k:0..i\nout Y\n"},
    {"products", "program p\nin X f32 [i:32, k:5]\nY[i:32] = X[i, k] // prod k:5\nout Y\n"},
    {"all of it", "program a\nin X f32 [k:50]\nY[i:2] = X[k] * real(i) // sum k:50\nout Y\n"},
    {"reads backwards", "program r\nin X f32 [i:32]\nY[i:32] = X[31 - i] / 3\nout Y\n"},
    {"two outputs of one sum",
     "program w\nin X f32 [i:16, k:4]\nS[i:16] = X[i, k] // sum k:4\nY[i:16] = S[i] * S[i]\n"
     "out S\nout Y\n"},
};

static void equal_to_the_interpreter(void **state) {
  CHECK_ROWS (programs, row) {
    struct program *p = parse(row->text);
    CHECK_INT(check_same(p, row->name), p->outputs.count, row->name);
    program_free(p);
  }
}

static void equal_on_random_programs(void **state) {
  int count = getenv("CANVAS_TEST_ALL") ? 300 : 25, references = 0;
  for (int i = 0; i < count; i++) {
    char name[32];
    struct program *p = random_program((uint64_t)i);
    snprintf(name, sizeof name, "random program %d", i);
    references += check_same(p, name) > 0;
    program_free(p);
  }
  assert_true(references > count / 2); /* the others have a stage of bf16, or one element */
}

static void of_bf16(void **state) {
  struct program *p = parse("program b\nin X f32 [i:8]\nY bf16 [i:8] = X[i] * 3\nout Y\n");
  struct expected *e = expect(p, compiler);
  assert_string_equal(e->without, "stage 'Y' is of bf16");
  assert_int_equal(e->output[0].count, 8);
  expected_free(e);
  program_free(p);
}

static void of_large_tensors(void **state) {
  struct program *p = parse(
      "program l\nin X f32 [i:8]\nS[j:100000, k:5000, i:8] = X[i] * real(j + k)\n"
      "Y[i:8] = S[i, i, i] + 1\nout Y\n");
  struct expected *e = expect(p, compiler);
  assert_string_equal(e->without, "its tensors take 61035 MiB in fp64");
  expected_free(e);
  program_free(p);
}

// ---- axes ---------------------------------------------------------------------------------------

// The lane axis goes last where vectors divide it.
static void lane_axes(void **state) {
  canvas_context ctx = {.message = ""};
  struct machine machine = {.vector_bytes = 64, .registers = 32, .memory = 1 << 30};
  struct program *p = parse(programs[0].text);
  struct widened w;
  struct buf text = {0};
  assert_int_equal(widened_new(&ctx, p, &machine, &w), CANVAS_OK);
  for (int i = 0; i < w.program->tensors.count; i++) {
    const struct program_tensor *t = &w.program->tensors.data[i];
    if (strcmp(t->name, "W") != 0 && strcmp(t->name, "Y") != 0) continue;
    buf_puts(&text, text.length ? "| " : "");
    for (int k = 0; k < t->rank; k++) buf_printf(&text, "%s ", t->axes[k].name);
  }
  text.text[text.length - 1] = '\0';
  CHECK_TEXT(text.text, "c kh kw o | n h w o", programs[0].text);
  buf_free(&text);
  widened_free(&w);
  program_free(p);
}

// ---- every element of a large output --------------------------------------------------------------

enum { A = 96, B = 128, C = 80 };
#define LARGE                                                      \
  "program large\nin X f32 [a:96, b:128, c:80]\nin W f32 [c:80]\n" \
  "Y[a:96, b:128, c:80] = X[a, b, c] * W[c] + 1\nout Y\n"

static float *output(const struct expected *e) {
  return (float *)(void *)e->output[0].memory.data;
}

static void single_elements(void **state) {
  struct program *p = parse(LARGE);
  struct expected *e = expect(p, compiler);
  const float *x = (const float *)(void *)e->input[0].data;
  const float *w = (const float *)(void *)e->input[1].data;
  CHECK_TEXT(e->without, "", LARGE);
  assert_int_equal(e->output[0].count, A * B * C);
  expected_poison(e, 0);
  for (int i = 0; i < A * B * C; i++) output(e)[i] = x[i] * w[i % C] + 1;
  for (int i = -1; i < 40; i++) {
    int at = (int)((unsigned)i * 48271u % (A * B * C));
    struct verdict v = {.failure = FAILED_NOT};
    float kept = output(e)[at];
    if (i >= 0) output(e)[at] *= 1.00001f;
    expected_compare(e, 0, false, &v);
    output(e)[at] = kept;
    CHECK_INT(v.failure, i < 0 ? FAILED_NOT : FAILED_WRONG, LARGE);
    CHECK_INT(v.compared, A * B * C, LARGE);
    if (i >= 0) assert_non_null(strstr(v.message, "1 of 983040 elements are wrong"));
  }
  expected_free(e);
  program_free(p);
}

// ---- a reference that is wrong ----------------------------------------------------------------------

#define PADDED                                                  \
  "program padded\nin X f32 [h:40, w:64]\nin W f32 [k:3]\n"     \
  "P[h:40, w:66] = if 1 <= w && w < 65 then X[h, w-1] else 0\n" \
  "Y[h:40, w:64] = P[h, w+k] * W[k] // sum k:3\nout Y\n"

// What is done to the text of the reference, or instead of compiling it.
static const struct {
  const char *name, *script, *message;
} wrongs[] = {
    {"as it is", ":", ""},
    {"a weight is 0", "sed -i 's/\\* W\\[/* 0 * W[/' unit.c",
     "the compiled reference gives 0 +- 0 for element 0 of 'Y', the interpreter -0.181149906 +- "
     "7.56e-08"},
    {"a sum is short", "sed -i 's/ < 3; / < 2; /' unit.c", "the compiled reference gives "},
    {"bounds are half", "sed -i 's/5.9604644775390625e-08/3e-08/' unit.c",
     "the compiled reference gives "},
    {"rows are missing", "sed -i 's/ < 5; / < 4; /' unit.c", "the compiled reference gives "},
    {"it has an error", "sed -i 's/return \\(status\\|0\\);/return 1;/' unit.c",
     "the compiled reference ended with status 3"},
    {"it crashes", "sed -i 's/return \\(status\\|0\\);/__builtin_trap();/' unit.c",
     "the compiled reference crashed"},
    {"it does not compile", "exit 1", "the reference does not compile: "},
    {"it cannot be loaded", "head -c 9999 /dev/zero >unit.so; exit 0",
     "the compiled reference ended with status 1"},
};

// One of gcc that does this before.
static struct compiler *spoilt(const char *script) {
  canvas_context ctx = {.message = ""};
  static int count;
  struct buf text = {0};
  char path[128];
  struct compiler *c;
  buf_printf(&text,
             "#!/bin/sh\n[ \"$1\" = --version ] && exec gcc --version\n"
             "if grep -q canvas_reference unit.c; then %s; fi\nexec gcc \"$@\"\n",
             script);
  snprintf(path, sizeof path, "%s/cc%d", folder, count++);
  assert_int_equal(file_write(&ctx, path, text.text, text.length), CANVAS_OK);
  chmod(path, 0755);
  buf_free(&text);
  struct compiler_options options = {.command = path, .cache = folder};
  if (compiler_open(&ctx, &options, &c) != CANVAS_OK) fail_msg("%s", ctx.message);
  return c;
}

// Then the interpreter alone is believed.
static void wrong_references(void **state) {
  struct program *p = parse(PADDED);
  CHECK_ROWS (wrongs, row) {
    canvas_context ctx = {.message = ""};
    struct compiler *c = spoilt(row->script);
    const struct expected_options options = {
        .whole = 100, .samples = 300, .spot = 5, .compiler = c};
    struct expected *e;
    if (expected_new(&ctx, p, &options, &e) != CANVAS_OK) fail_msg("%s", ctx.message);
    CHECK(strstr(e->without, row->message) == e->without, row->name);
    CHECK(!*e->without == !*row->message, row->name);
    CHECK_INT(e->output[0].count, *row->message ? 300 : 40 * 64, row->name);
    expected_free(e);
    compiler_close(c);
  }
  program_free(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equal_to_the_interpreter),
      cmocka_unit_test(equal_on_random_programs),
      cmocka_unit_test(of_bf16),
      cmocka_unit_test(of_large_tensors),
      cmocka_unit_test(lane_axes),
      cmocka_unit_test(single_elements),
      cmocka_unit_test(wrong_references),
  };
  if (getenv("CANVAS_TEST")) cmocka_set_test_filter(getenv("CANVAS_TEST"));
  return cmocka_run_group_tests(tests, open_all, close_all);
}
