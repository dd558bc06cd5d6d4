// The bound on what rounding does: fp32 arithmetic stays within it, and it is not far too wide.
#include "program/interpret.h"
#include "run/rounding.h"

#include <stdio.h>
#include <stdlib.h>

#include "check.h"

enum { N = 64, M = 32 };
typedef float (*arithmetic)(const float *x, const float *w, int i);

static float sum(const float *x, const float *w, int i) {
  float s = 0;
  for (int k = 0; k < M; k++) s += x[i * M + k] * w[k];
  return s;
}
static float sum_backwards(const float *x, const float *w, int i) {
  float s = 0;
  for (int k = M; k--;) s += x[i * M + k] * w[k];
  return s;
}
static float sum_as_tree(const float *x, const float *w, int i) {
  float s[M];
  for (int k = 0; k < M; k++) s[k] = x[i * M + k] * w[k];
  for (int n = M / 2; n; n /= 2)
    for (int k = 0; k < n; k++) s[k] += s[k + n];
  return s[0];
}
static float mean(const float *x, const float *w, int i) {
  return sum(x, w, i) * (1.0f / M);
}
static float product(const float *x, const float *w, int i) {
  float p = 1;
  for (int k = 0; k < 8; k++) p *= x[i * M + k] + w[k];
  return p;
}
static float largest(const float *x, const float *w, int i) {
  float m = -HUGE_VALF;
  for (int k = 0; k < M; k++) m = fmaxf(m, x[i * M + k] * w[k]);
  return m;
}
static float smallest(const float *x, const float *w, int i) {
  float m = HUGE_VALF;
  for (int k = 0; k < M; k++) m = fminf(m, x[i * M + k] * w[k]);
  return m;
}
static float softmax(const float *x, const float *w, int i) {
  float m = x[i * M], s = 0;
  for (int k = 0; k < M; k++) m = fmaxf(m, x[i * M + k]);
  for (int k = 0; k < M; k++) s += expf(x[i * M + k] - m);
  return expf(x[i * M] - m) / s;
}
static float relu(const float *x, const float *w, int i) {
  return fmaxf(0, sum(x, w, i));
}
static float branch(const float *x, const float *w, int i) {
  float s = sum(x, w, i);
  return s < 0.25f ? s * 3 : s - 1;
}
static float quotient(const float *x, const float *w, int i) {
  return x[i * M] / (sum(x, w, i) * sum(x, w, i) + 1);
}
static float functions(const float *x, const float *w, int i) {
  float s = sum(x, w, i);
  return sinf(s) + cosf(s) * tanhf(s) - erff(s) + sqrtf(fabsf(s)) * logf(fabsf(s) + 2);
}
static float near_zero(const float *x, const float *w, int i) {
  return expm1f(log1pf(sum(x, w, i) * 0x1p-60f) * 2);
}
static float power(const float *x, const float *w, int i) {
  return powf(fabsf(sum(x, w, i)) + 1, 1.7f);
}
static float floors(const float *x, const float *w, int i) {
  return floorf(sum(x, w, i) * 4);
}
static float copy(const float *x, const float *w, int i) {
  return x[(N - 1 - i) * M];
}
static float constant(const float *x, const float *w, int i) {
  return 0.1f;
}
static float index_value(const float *x, const float *w, int i) {
  return (float)i * 0.5f;
}
static float large_index(const float *x, const float *w, int i) {
  return (float)(i * 16777259 + 1);
}

#define SUM "S[i:64] = X[i, k] * W[k] // sum k:32\n"
static const struct {
  const char *text;  // the stages; the last is the output Y
  arithmetic code;
  double most;  // of the bound, in units of 2^-24 and of the largest value
} rows[] = {
    {"Y[i:64] = X[i, k] * W[k] // sum k:32", sum, 80},
    {"Y[i:64] = X[i, k] * W[k] // sum k:32", sum_backwards, 80},
    {"Y[i:64] = X[i, k] * W[k] // sum k:32", sum_as_tree, 80},
    {"Y[i:64] = X[i, k] * W[k] // mean k:32", mean, 80},
    {"Y[i:64] = X[i, k] + W[k] // prod k:8", product, 40},
    {"Y[i:64] = X[i, k] * W[k] // max k:32", largest, 2},
    {"Y[i:64] = X[i, k] * W[k] // min k:32", smallest, 2},
    {"A[i:64] = X[i, k] // max k:32\nE[i:64, k:32] = exp(X[i, k] - A[i])\n"
     "S[i:64] = E[i, k] // sum k:32\nY[i:64] = E[i, 0] / S[i]",
     softmax, 90},
    {SUM "Y[i:64] = max(0, S[i])", relu, 80},
    {SUM "Y[i:64] = if S[i] < 0.25 then S[i] * 3 else S[i] - 1", branch, 90},
    {SUM "Y[i:64] = X[i, 0] / (S[i] * S[i] + 1)", quotient, 500},
    {SUM
     "Y[i:64] = sin(S[i]) + cos(S[i]) * tanh(S[i]) - erf(S[i]) + sqrt(abs(S[i])) * log(abs(S[i]) "
     "+ 2)",
     functions, 1e7},  // a root near zero
    {SUM "Y[i:64] = expm1(log1p(S[i] * 8.673617379884035e-19) * 2)", near_zero, 100},
    {SUM "Y[i:64] = pow(abs(S[i]) + 1, 1.7)", power, 120},
    {SUM "Y[i:64] = floor(S[i] * 4)", floors, 1e7},  // off by one where the value is nearly whole
    {"Y[i:64] = X[63 - i, 0]", copy, 0},
    {"Y[i:64] = 0.1", constant, 1},
    {"Y[i:64] = real(i) * 0.5", index_value, 1},
    {"Y[i:64] = real(i * 16777259 + 1)", large_index, 1},
};

static double x[N * M], w[M];
static float fx[N * M], fw[M];

static void fill(void) {
  unsigned state = 1;
  for (int i = 0; i < N * M + M; i++) {
    state = state * 1664525 + 1013904223;
    float value = (float)((int)(state >> 8 & 0xFFFF) - 0x8000) / 0x6000;
    if (i < N * M)
      x[i] = (double)(fx[i] = value);
    else
      w[i - N * M] = (double)(fw[i - N * M] = value);
  }
}

static struct program *parse(const char *stages) {
  canvas_context ctx = {.message = ""};
  struct program *p;
  char text[4200];
  snprintf(text, sizeof text,
           "canvas 1\nprogram p\nin X f32 [i:64, k:32]\nin W f32 [k:32]\n%s\nout Y\n", stages);
  if (program_parse(&ctx, text, strlen(text), &p) != CANVAS_OK)
    fail_msg("%s for \"%s\"", ctx.message, stages);
  return p;
}

// Values and bounds of the whole output.
static bool bound(const char *stages, double *value, double *error) {
  canvas_context ctx = {.message = ""};
  struct program *p = parse(stages);
  struct rounding r;
  struct interpreter *in;
  if (rounding_new(&ctx, p, &r) != CANVAS_OK) fail_msg("%s for \"%s\"", ctx.message, stages);
  assert_int_equal(interpreter_new(&ctx, r.program, (const double *const[]){x, w}, NULL, &in),
                   CANVAS_OK);
  if (interpreter_elements(in, r.value[0], N, NULL, value) != CANVAS_OK)
    fail_msg("%s", ctx.message);
  memset(error, 0, N * sizeof *error);
  bool inexact = r.error[0] >= 0;
  if (inexact && interpreter_elements(in, r.error[0], N, NULL, error) != CANVAS_OK)
    fail_msg("%s", ctx.message);
  interpreter_free(in);
  rounding_free(&r);
  program_free(p);
  return inexact;
}

static void sound_and_near(void **state) {
  double value[N], error[N];
  fill();
  CHECK_ROWS (rows, row) {
    double largest_value = 0, largest_error = 0, worst = 0;
    bound(row->text, value, error);
    for (int i = 0; i < N; i++) {
      double off = fabs((double)row->code(fx, fw, i) - value[i]);
      if (!(off <= error[i]))
        fail_msg("element %d is off by %g, over the bound %g, for \"%s\"", i, off, error[i],
                 row->text);
      worst = fmax(worst, off ? off / error[i] : 0);
      largest_value = fmax(largest_value, fabs(value[i]));
      largest_error = fmax(largest_error, error[i]);
    }
    double units = largest_error / (0x1p-24 * largest_value);
    if (!(units <= row->most))
      fail_msg("the bound is %.1f units (worst %.2f of it) for \"%s\"", units, worst, row->text);
  }
}

// Infinite where nothing can be said; nan bounds do not occur beside numbers.
static void unknown(void **state) {
  double value[N], error[N];
  assert_true(bound(SUM "D[i:64] = S[i] - S[i]\nY[i:64] = 1 / D[i]", value, error));
  for (int i = 0; i < N; i++) assert_true(isinf(error[i]));
  assert_true(bound(SUM "D[i:64] = S[i] - S[i]\nY[i:64] = log(D[i])", value, error));
  for (int i = 0; i < N; i++) assert_true(isinf(error[i]));
}

// bf16: off by one place where a stage computes, exact where it only moves.
static void half(void **state) {
  double value[N], error[N];
  assert_true(bound("Y bf16 [i:64] = X[i, k] * W[k] // sum k:32", value, error));
  for (int i = 0; i < N; i++) {
    assert_true(error[i] >= 0x1p-8 * fabs(value[i]));
    assert_true(error[i] <= 0x1p-7 * fabs(value[i]) + 1e-4);
  }
  assert_false(bound("Y bf16 [i:64] = X[i, 3]", value, error));
  assert_true(bound("Y f64 [i:64] = X[i, k] * W[k] // sum k:32", value, error));
  for (int i = 0; i < N; i++) assert_true(error[i] < 1e-12);
}

// The text that would say the bound is too deep.
static void too_deep(void **state) {
  canvas_context ctx = {.message = ""};
  struct rounding r;
  char stage[4096] = "Y[i:64] = X[i, 0]";
  for (int i = 0; i < 150; i++) strcat(stage, " * W[1]");
  struct program *p = parse(stage);
  assert_int_equal(rounding_new(&ctx, p, &r), CANVAS_BAD_INPUT);
  assert_non_null(
      strstr(ctx.message,
             "program 'p' cannot be checked, as the bound of its rounding is a longer one: "));
  program_free(p);
}

CHECK_MAIN(cmocka_unit_test(sound_and_near), cmocka_unit_test(unknown), cmocka_unit_test(half),
           cmocka_unit_test(too_deep))
