// What is expected of a program: which elements are known, and that mistakes at them are noticed. The code
// under test is this file's own, in this process.
#include "run/expected.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

enum { A = 96, B = 128, C = 80 };
#define LARGE                                                                \
  "canvas 1\nprogram large\nin X f32 [a:96, b:128, c:80]\nin W f32 [c:80]\n" \
  "Y[a:96, b:128, c:80] = X[a, b, c] * W[c] + 1\nout Y\n"

static struct expected *expect(const char *text, const struct expected_options *options) {
  canvas_context ctx = {.message = ""};
  struct program *p;
  struct expected *e;
  if (program_parse(&ctx, text, strlen(text), &p) != CANVAS_OK) fail_msg("%s", ctx.message);
  if (expected_new(&ctx, p, options, &e) != CANVAS_OK) fail_msg("%s", ctx.message);
  program_free(p);
  return e;
}

static float right(const struct expected *e, int i) {
  const float *x = (const float *)(void *)e->input[0].data,
              *w = (const float *)(void *)e->input[1].data;
  return x[i] * w[i % C] + 1;
}

static float *output(const struct expected *e) {
  return (float *)(void *)e->output[0].memory.data;
}

static void write_right(const struct expected *e) {
  expected_poison(e, 0);
  for (int i = 0; i < A * B * C; i++) output(e)[i] = right(e, i);
}

static struct verdict compare(const struct expected *e) {
  struct verdict v = {.failure = FAILED_NOT};
  expected_compare(e, 0, false, &v);
  return v;
}

// Which elements (a, b, c) a mistake is at.
static bool first_corner(int a, int b, int c) {
  return a == 0 && b == 0 && c == 0;
}
static bool last_corner(int a, int b, int c) {
  return a == A - 1 && b == B - 1 && c == C - 1;
}
static bool other_corner(int a, int b, int c) {
  return a == A - 1 && b == 0 && c == C - 1;
}
static bool edge(int a, int b, int c) {
  return a == 0 && b == B - 1;
}
static bool plane(int a, int b, int c) {
  return c == C - 1;
}
static bool after_tiles(int a, int b, int c) {
  return a == 90 && b >= 126;
}  // tiles of 45, of 63
static bool before_end(int a, int b, int c) {
  return c == 63 && b == 127;
}  // a tile of 32 or 64
static bool middle(int a, int b, int c) {
  return a > 20 && a < 40;
}

static const struct {
  const char *name;
  bool (*at)(int a, int b, int c);
} mistakes[] = {
    {"first corner", first_corner},
    {"last corner", last_corner},
    {"another corner", other_corner},
    {"an edge", edge},
    {"a plane", plane},
    {"after the last tile", after_tiles},
    {"before its end", before_end},
    {"the middle", middle},
};

// Some thousand elements of a million tell mistakes that are a millionth of it.
static void sampled(void **state) {
  struct expected *e = expect(LARGE, &(struct expected_options){.seed = 3, .samples = 3000});
  const struct expected_output *o = &e->output[0];
  assert_int_equal(o->count, 3000);
  for (int i = 0; i < o->count; i++) {
    assert_true(o->at[i] >= 0 && o->at[i] < A * B * C);
    assert_true(o->bound[i] > 0 && o->bound[i] < 1e-5);
  }
  write_right(e);
  struct verdict v = compare(e);
  CHECK_TEXT(v.message, "", "the right output");
  assert_int_equal(v.compared, 3000);
  assert_true(v.worst <= 1);
  CHECK_ROWS (mistakes, row) {
    write_right(e);
    for (int i = 0; i < A * B * C; i++)
      if (row->at(i / C / B, i / C % B, i % C)) output(e)[i] += 1e-3f;
    CHECK_INT(compare(e).failure, FAILED_WRONG, row->name);
  }
  expected_free(e);
}

// A mistake of either sign is one, a little within the bound is none.
static void both_signs(void **state) {
  struct expected *e = expect(LARGE, &(struct expected_options){.samples = 100});
  const struct expected_output *o = &e->output[0];
  for (int i = 0; i < o->count; i++) {
    for (double by = -1.5; by <= 1.5; by += 0.5) {
      write_right(e);
      output(e)[o->at[i]] = (float)(o->want[i] + by * o->bound[i]);
      if (fabs(by) == 1) continue;
      CHECK_INT(compare(e).failure, fabs(by) > 1 ? FAILED_WRONG : FAILED_NOT,
                "a shift by the bound");
    }
    if (i == 2) break;
  }
  expected_free(e);
}

#define SMALL "canvas 1\nprogram small\nin X f32 [i:300]\nY[i:300] = X[i] * 3\nout Y\n"

// A small output is known whole, each element once; where time is short, less of it.
static void whole(void **state) {
  struct expected *e = expect(SMALL, NULL);
  bool seen[300] = {false};
  assert_int_equal(e->output[0].count, 300);
  for (int i = 0; i < 300; i++) {
    assert_false(seen[e->output[0].at[i]]);
    seen[e->output[0].at[i]] = true;
  }
  expected_free(e);
  e = expect(SMALL, &(struct expected_options){.seconds = 1e-9});
  assert_int_equal(e->output[0].count, 1);
  expected_free(e);
}

// Inputs are what their types hold; the same seed gives the same.
static void inputs(void **state) {
  static const char text[] =
      "canvas 1\nprogram types\nin X bf16 [i:40]\nin V f64 [i:40]\nin N i32 [i:40] 3..40\n"
      "Y f64 [i:40] = X[i] * V[N[i]]\nout Y\n";
  struct expected *e = expect(text, &(struct expected_options){.seed = 5});
  struct expected *same = expect(text, &(struct expected_options){.seed = 5});
  struct expected *other = expect(text, &(struct expected_options){.seed = 6});
  assert_memory_equal(e->input[0].data, same->input[0].data, 80);
  assert_memory_not_equal(e->input[0].data, other->input[0].data, 80);
  for (int i = 0; i < 40; i++) {
    double n = element_get(PROGRAM_I32, e->input[2].data, i);
    assert_true(n >= 3 && n < 40);
  }
  for (int i = 0; i < e->output[0].count; i++) {
    int64_t at = e->output[0].at[i];
    int64_t n = (int64_t)element_get(PROGRAM_I32, e->input[2].data, at);
    double product =
        element_get(PROGRAM_BF16, e->input[0].data, at) * ((double *)(void *)e->input[1].data)[n];
    CHECK_NEAR(e->output[0].want[i], product, 1e-15, text);
  }
  expected_free(e);
  expected_free(same);
  expected_free(other);
}

// A max over an empty range is -inf, whose rounding is no number: nothing else passes for it.
static void infinite(void **state) {
  struct expected *e =
      expect("program m\nin X f32 [k:8]\nY[i:8] = X[k] // max k:0..i\nout Y\n", NULL);
  const float *x = (const float *)(void *)e->input[0].data;
  expected_poison(e, 0);
  float most = -INFINITY;
  for (int i = 0; i < 8; i++) {
    output(e)[i] = most;
    most = fmaxf(most, x[i]);
  }
  struct verdict v = compare(e);
  assert_int_equal(v.failure, FAILED_NOT);
  assert_int_equal(v.compared, 8);
  output(e)[0] = -FLT_MAX;
  assert_int_equal(compare(e).failure, FAILED_WRONG);
  expected_free(e);
}

// An infinity is met by the same one alone. Where there is no bound either (a divisor that may be 0)
// the same one is right, and of another value nobody knows.
static void equal_infinities(void **state) {
  static const struct {
    const char *value;
    float written;
    int compared;
    enum failure failure;
  } rows[] = {
      {"X[i] - inf", -INFINITY, 4, FAILED_NOT},
      {"X[i] - inf", INFINITY, 4, FAILED_WRONG},
      {"X[i] - inf", -FLT_MAX, 4, FAILED_WRONG},
      {"X[i] - inf", NAN, 4, FAILED_WRONG},
      {"(X[i] * 3 + 1) * 2 + inf", INFINITY, 4, FAILED_NOT},
      {"(X[i] * 3 + 1) * 2 + inf", 0, 4, FAILED_WRONG},
      {"(X[i] + 9) / 3 * inf", INFINITY, 4, FAILED_NOT},
      {"log(X[i] * 0)", -INFINITY, 4, FAILED_NOT},
      {"exp(1000 + X[i])", INFINITY, 4, FAILED_NOT},
      {"1 / (X[i] * 0)", 7, 0, FAILED_WRONG},
      {"sqrt(-9 - abs(X[i]))", NAN, 4, FAILED_NOT},
      {"sqrt(-9 - abs(X[i]))", 0, 4, FAILED_WRONG},
      {"exp(X[i] - inf)", 0, 4, FAILED_NOT},
      {"exp(X[i] - inf)", 1e-9f, 4, FAILED_WRONG},
      {"(X[i] * 3 + 1) / (X[i] + inf)", 0, 4, FAILED_NOT},
  };
  CHECK_ROWS (rows, row) {
    char text[160];
    snprintf(text, sizeof text, "program p\nin X f32 [i:4]\nY[i:4] = %s\nout Y\n", row->value);
    struct expected *e = expect(text, NULL);
    expected_poison(e, 0);
    for (int i = 0; i < 4; i++) output(e)[i] = row->written;
    struct verdict v = compare(e);
    CHECK_INT(v.compared, row->compared, row->value);
    CHECK_INT(v.failure, row->failure, row->value);
    expected_free(e);
  }
}

// Where rounding has no bound, nothing passes for checked.
static void unbounded(void **state) {
  struct expected *e = expect(
      "canvas 1\nprogram p\nin X f32 [i:4]\nS[i:4] = X[i] * 3 - X[i] * 3\nY[i:4] = 1 / S[i]\nout "
      "Y\n",
      NULL);
  expected_poison(e, 0);
  struct verdict v = compare(e);
  assert_int_equal(v.failure, FAILED_WRONG);
  assert_string_equal(v.message, "no element can be checked, rounding has no bound for any");
  expected_free(e);
}

// Whether the pages at an address may become large ones, as the kernel shows it.
static bool may_be_large(const void *at) {
  FILE *maps = fopen("/proc/self/smaps", "r");
  unsigned long first, end, here = (unsigned long)(uintptr_t)at;
  char line[512];
  bool inside = false, large = false;
  assert_non_null(maps);
  while (fgets(line, sizeof line, maps)) {
    if (sscanf(line, "%lx-%lx", &first, &end) == 2) inside = first <= here && here < end;
    if (inside && !strncmp(line, "VmFlags:", 8)) large = strstr(line, " hg") != NULL;
  }
  fclose(maps);
  return large;
}

// Images are in large pages, constant weights where whoever holds them has them: in small ones.
static void pages(void **state) {
  struct expected *e = expect(
      "canvas 1\nprogram p\nin X f32 [i:2048, j:1024]\nin W f32 [i:2048, j:1024] const\n"
      "Y[i:2048] = X[i, j] * W[i, j] // sum j:1024\nout Y\n",
      NULL);
  if (access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) == 0)
    assert_true(may_be_large(e->input[0].data));
  assert_false(may_be_large(e->input[1].data));
  expected_free(e);
}

CHECK_MAIN(cmocka_unit_test(sampled), cmocka_unit_test(pages), cmocka_unit_test(both_signs),
           cmocka_unit_test(whole), cmocka_unit_test(inputs), cmocka_unit_test(unbounded),
           cmocka_unit_test(infinite), cmocka_unit_test(equal_infinities))
