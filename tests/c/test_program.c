// Tensor programs: text, rules, builder, interpreter.
#include "base/random.h"
#include "program/interpret.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "check.h"

static struct program *parse(const char *text) {
  canvas_context ctx = {.message = ""};
  struct program *p;
  if (program_parse(&ctx, text, strlen(text), &p) != CANVAS_OK)
    fail_msg("\"%s\" for \"%s\"", ctx.message, text);
  return p;
}

static char *print(const struct program *p) {
  struct buf buf = {0};
  program_print(p, &buf);
  return buf_take(&buf);
}

// All elements of the last output, with the inputs filled by 0, 1, 2, ... and -0.5 times that.
static double *evaluate(const struct program *p) {
  canvas_context ctx = {.message = ""};
  double *inputs[8], *out;
  for (int i = 0; i < p->inputs.count; i++) {
    int64_t n = program_elements(p, p->inputs.data[i]);
    inputs[i] = malloc((size_t)n * sizeof **inputs);
    for (int64_t j = 0; j < n; j++) inputs[i][j] = (double)j * (i ? -0.5 : 1);
  }
  struct interpreter *in;
  int tensor = p->outputs.data[p->outputs.count - 1];
  int64_t n = program_elements(p, tensor);
  out = malloc((size_t)n * sizeof *out);
  assert_int_equal(interpreter_new(&ctx, p, (const double *const *)inputs, NULL, &in), CANVAS_OK);
  if (interpreter_elements(in, tensor, n, NULL, out) != CANVAS_OK) fail_msg("%s", ctx.message);
  interpreter_free(in);
  for (int i = 0; i < p->inputs.count; i++) free(inputs[i]);
  return out;
}

#define CONV                                                                                \
  "canvas 1\nprogram conv3x3\nin X f32 [n:1, ci:16, h:8, w:8]\n"                            \
  "in W f32 [co:16, ci:16, kh:3, kw:3]\n"                                                   \
  "P[n:1, ci:16, h:10, w:10] = if 1 <= h && h < 9 && 1 <= w && w < 9 then X[n, ci, h-1, "   \
  "w-1] else 0\n"                                                                           \
  "Y[n:1, co:16, h:8, w:8] = P[n, ci, h+kh, w+kw] * W[co, ci, kh, kw] // sum ci:16, kh:3, " \
  "kw:3\nout Y\n"

// The expression of stage Y as written, and as printed (NULL: the same).
static const struct {
  const char *text, *printed;
} expressions[] = {
    {"X[i, j]", NULL},
    {"X[i,j]*2+1", "X[i, j] * 2 + 1"},
    {"(X[i, j] * 2) * 3", "X[i, j] * 2 * 3"},
    {"X[i, j] * (2 * 3)", NULL},
    {"X[i, j] - (2 - 3)", NULL},
    {"X[i, j] + (2 + 3)", NULL},
    {"X[i, j] / 2 / 3", NULL},
    {"X[i, j] / (2 / 3)", NULL},
    {"-X[i, j] * 2", NULL},
    {"-(X[i, j] * 2)", NULL},
    {"-(-X[i, j])", "--X[i, j]"},
    {"X[i, j] - -1", NULL},
    {"(X[i, j] + 1) * 2", NULL},
    {"0.10 + 1e-7 + 1e5 + 1e300 + 0.30000000000000004",
     "0.1 + 1e-07 + 100000 + 1e+300 + 0.30000000000000004"},
    {"1.50 + 2.0 + 1.0e2", "1.5 + 2 + 100"},
    {"-0 + -0.0", "-0.0 + -0.0"},
    {"max(X[i, j], -inf) + inf", NULL},
    {"exp(log(expm1(log1p(sin(cos(tanh(sqrt(erf(abs(floor(pow(X[i, j], 2))))))))))))", NULL},
    {"min(max(X[i, j], 0), 6)", NULL},
    {"X[i / 2 * 2, (j + 1) % 4]", "X[i/2*2, (j+1)%4]"},
    {"X[(i+1)/2*2 - 2 + 2, j]", "X[(i+1)/2*2-2+2, j]"},
    {"X[max(i-1, 0), min(j+1, 3)]", NULL},
    {"X[if i < 1 then 0 else i-1, j]", NULL},
    {"X[i - (j - j), j]", "X[i-(j-j), j]"},
    {"real(i) + real(j*2)", NULL},
    {"if i < 1 then 1 else 2", NULL},
    {"(if i < 1 then 1 else 2) * 3", NULL},
    {"if i < 1 then 1 else 2 * 3", NULL},
    {"if i == 0 then 1 else if j != 2 then 2 else 3", NULL},
    {"if (i < 1 || j < 1) && !(i >= 2) then 1 else 0", NULL},
    {"if ((i < 1)) || ((j < 1 && i > 2)) then 1 else 0",
     "if i < 1 || j < 1 && i > 2 then 1 else 0"},
    {"if i < 1 && (j < 1 && i > 2) then 1 else 0", NULL},
    {"if !!(i < 1) then 1 else 0", "if !(!(i < 1)) then 1 else 0"},
    {"if true && !false then 1 else 0", NULL},
    {"if X[i, j] > 0 then X[i, j] else 0", NULL},
    {"if X[i, j] < 1/2 then 1 else 0", "if X[i, j] < 1 / 2 then 1 else 0"},
    {"if 1.0/2 < 3 then 1 else 0", "if 1.0 / 2.0 < 3.0 then 1 else 0"},
    {"if 1/2 < 3 then 1 else 0", NULL},
    {"if 0.5 < 3 then 1 else 0", NULL},
    {"if 1.0 < inf then 1 else 0", "if 1 < inf then 1 else 0"},
    {"if (if i < 1 then 1.0 else 2) < 2 then 1 else 0",
     "if (if i < 1 then 1.0 else 2.0) < 2.0 then 1 else 0"},
    {"if (if 1.0 < 2 then i else j) < 2 then 1 else 0",
     "if (if 1.0 < 2.0 then i else j) < 2 then 1 else 0"},
};

static void expressions_print(void **state) {
  (void)state;
  CHECK_ROWS (expressions, row) {
    char text[512], expected[512];
    const char *head = "canvas 1\nprogram p\nin X f32 [i:3, j:4]\nY[i:3, j:4] = ";
    snprintf(text, sizeof text, "%s%s\nout Y\n", head, row->text);
    snprintf(expected, sizeof expected, "%s%s\nout Y\n", head,
             row->printed ? row->printed : row->text);
    struct program *p = parse(text);
    char *once = print(p);
    CHECK_TEXT(once, expected, row->text);
    struct program *q = parse(once);
    char *twice = print(q);
    CHECK_TEXT(twice, once, row->text);
    double *a = evaluate(p), *b = evaluate(q);
    for (int i = 0; i < 12; i++) CHECK(a[i] == b[i] || (isnan(a[i]) && isnan(b[i])), row->text);
    free(a);
    free(b);
    free(once);
    free(twice);
    program_free(p);
    program_free(q);
  }
}

static void programs_print(void **state) {
  (void)state;
  static const struct {
    const char *text, *printed;
  } rows[] = {
      {CONV, CONV},
      {"program a.b-c  # note\n\nin  X f64 [ ]\nY f64[]=X[]*2\nZ[] = Y[]\nout Y, Z",
       "canvas 1\nprogram a.b-c\nin X f64 []\nY f64 [] = X[] * 2\nZ[] = Y[]\nout Y\nout Z\n"},
      {"canvas 1\r\nprogram p\r\nin X f32 [i:2]\r\nout_[] = X[i] // mean i:2\r\nout out_",
       "canvas 1\nprogram p\nin X f32 [i:2]\nout_[] = X[i] // mean i:2\nout out_\n"},
  };
  CHECK_ROWS (rows, row) {
    struct program *p = parse(row->text);
    char *text = print(p);
    CHECK_TEXT(text, row->printed, row->text);
    free(text);
    program_free(p);
  }
}

// Y[i:7] over X = 0 1 2 3 4 5 6.
static const struct {
  const char *stage;
  double expected[7];
} meanings[] = {
    {"Y[i:7] = real((i-3)/2)", {-2, -1, -1, 0, 0, 1, 1}},
    {"Y[i:7] = real((i-3)%3)", {0, 1, 2, 0, 1, 2, 0}},
    {"Y[i:7] = real((i-6)/3*3+(i-6)%3)", {-6, -5, -4, -3, -2, -1, 0}},
    {"Y[i:7] = real(-i) - 1", {-1, -2, -3, -4, -5, -6, -7}},
    {"Y[i:7] = real(2*i-(i+1)+1)", {0, 1, 2, 3, 4, 5, 6}},
    {"Y[i:7] = real(max(min(i, 4), 2))", {2, 2, 2, 3, 4, 4, 4}},
    {"Y[i:7] = real(if i < 2 then 9 else i)", {9, 9, 2, 3, 4, 5, 6}},
    {"Y[i:7] = if i < 1 then -1 else X[i-1]", {-1, 0, 1, 2, 3, 4, 5}},
    {"Y[i:7] = if i >= 1 && X[i-1] > 2 then X[i-1] else 0", {0, 0, 0, 0, 3, 4, 5}},
    {"Y[i:7] = if i < 1 || X[i-1] <= 2 then 1 else 0", {1, 1, 1, 1, 0, 0, 0}},
    {"Y[i:7] = if !(i == 2) && i != 3 then 1 else 0", {1, 1, 0, 0, 1, 1, 1}},
    {"Y[i:7] = if i >= 3 then 1 else 0", {0, 0, 0, 1, 1, 1, 1}},
    {"Y[i:7] = if i <= 3 && i > 1 then 1 else 0", {0, 0, 1, 1, 0, 0, 0}},
    {"Y[i:7] = if X[i] > 4 || X[i] <= 1 then 1 else 0", {1, 1, 0, 0, 0, 1, 1}},
    {"Y[i:7] = if true || i < 1 then 5 else 6", {5, 5, 5, 5, 5, 5, 5}},
    {"Y[i:7] = if X[i] == 3 || X[i] >= 5 then X[i] / 2 else -X[i]", {0, -1, -2, 1.5, -4, 2.5, 3}},
    {"Y[i:7] = if X[i] != 3 then 1 - X[i] else 0", {1, 0, -1, 0, -3, -4, -5}},
    {"Y[i:7] = if X[i] < 1/2 then 1 else 0", {1, 0, 0, 0, 0, 0, 0}},
    {"Y[i:7] = 1/2*X[i]", {0, .5, 1, 1.5, 2, 2.5, 3}},
    {"Y[i:7] = X[(i*3)%7]", {0, 3, 6, 2, 5, 1, 4}},
    {"Y[i:7] = min(X[i], 3) + max(X[i], 3)", {3, 4, 5, 6, 7, 8, 9}},
    {"Y[i:7] = abs(X[i] - 3)", {3, 2, 1, 0, 1, 2, 3}},
    {"Y[i:7] = floor(X[i] / 2 - 1)", {-1, -1, 0, 0, 1, 1, 2}},
    {"Y[i:7] = pow(X[i], 2) - sqrt(X[i] * X[i])", {0, 0, 2, 6, 12, 20, 30}},
    {"Y[i:7] = log(exp(X[i]))", {0, 1, 2, 3, 4, 5, 6}},
    {"Y[i:7] = sin(X[i])*sin(X[i]) + cos(X[i])*cos(X[i])", {1, 1, 1, 1, 1, 1, 1}},
    {"Y[i:7] = tanh(0*X[i] + 1)",
     {0.76159415595576489, 0.76159415595576489, 0.76159415595576489, 0.76159415595576489,
      0.76159415595576489, 0.76159415595576489, 0.76159415595576489}},
    {"Y[i:7] = erf(X[i] - X[i] + 1)",
     {0.84270079294971487, 0.84270079294971487, 0.84270079294971487, 0.84270079294971487,
      0.84270079294971487, 0.84270079294971487, 0.84270079294971487}},
    {"Y[i:7] = X[(i+k)%7] // sum k:3", {3, 6, 9, 12, 15, 11, 7}},
    {"Y[i:7] = X[(i+k)%7] // mean k:3", {1, 2, 3, 4, 5, 11 / 3., 7 / 3.}},
    {"Y[i:7] = X[(i+k)%7] // max k:3", {2, 3, 4, 5, 6, 6, 6}},
    {"Y[i:7] = X[(i+k)%7] - 9 // max k:3", {-7, -6, -5, -4, -3, -3, -3}},
    {"Y[i:7] = X[(i+k)%7] + 9 // min k:3", {9, 10, 11, 12, 13, 9, 9}},
    {"Y[i:7] = X[(i+k)%7] // prod k:3", {0, 6, 24, 60, 120, 0, 0}},
    {"Y[i:7] = X[i] // mean k:2, l:3", {0, 1, 2, 3, 4, 5, 6}},
    {"Y[i:7] = real(k*10+l) // max k:2, l:3", {12, 12, 12, 12, 12, 12, 12}},
    {"Y[i:7] = X[i] // max k:1", {0, 1, 2, 3, 4, 5, 6}},
    {"T[] = X[k] // sum k:7\nY[i:7] = X[i] / T[]",
     {0, 1 / 21., 2 / 21., 3 / 21., 4 / 21., 5 / 21., 6 / 21.}},
};

static void programs_mean(void **state) {
  (void)state;
  CHECK_ROWS (meanings, row) {
    char text[512];
    snprintf(text, sizeof text, "program p\nin X f32 [i:7]\n%s\nout Y\n", row->stage);
    struct program *p = parse(text);
    double *y = evaluate(p);
    for (int i = 0; i < 7; i++) CHECK_NEAR(y[i], row->expected[i], 1e-15, row->stage);
    free(y);
    program_free(p);
  }
}

// Y[i:5] of programs with indices: X = 0 1 2 3 4 5 6, ptr = 0 2 2 5 6 9 (rising), ind = 6 5 4 3 2 1 0 3 3,
// B = 256 257 258 259 260 as bf16, which has even numbers only there.
#define INDEX_HEAD                                                                              \
  "canvas 1\nprogram p\nin X f32 [i:7]\nin ptr i32 [r:6] 0..10 rising\nin ind i32 [e:9] 0..7\n" \
  "in B bf16 [i:5]\n"
static const struct {
  const char *stage;
  double expected[5];
} indexed[] = {
    {"Y[i:5] = X[ind[i]]", {6, 5, 4, 3, 2}},
    {"Y[i:5] = X[ind[ind[i]]]", {0, 1, 2, 3, 4}},
    {"Y[i:5] = real(ptr[i+1]-ptr[i])", {2, 0, 3, 1, 3}},
    {"Y[i:5] = if ptr[i] == ptr[i+1] then -1 else real(ptr[i])", {0, -1, 2, 5, 6}},
    {"Y[i:5] = 1 // sum k:ptr[i]..ptr[i+1]", {2, 0, 3, 1, 3}},
    {"Y[i:5] = real(k) // sum k:ptr[i]..ptr[i+1]", {1, 0, 9, 5, 21}},
    {"Y[i:5] = X[ind[k]] // sum k:ptr[i]..ptr[i+1]", {11, 0, 9, 1, 6}},
    {"Y[i:5] = X[ind[k]] // max k:ptr[i]..ptr[i+1]", {6, -HUGE_VAL, 4, 1, 3}},
    {"Y[i:5] = X[ind[k]] // min k:ptr[i]..ptr[i+1]", {5, HUGE_VAL, 2, 1, 0}},
    {"Y[i:5] = X[ind[k]] // prod k:ptr[i]..ptr[i+1]", {30, 1, 24, 1, 0}},
    {"Y[i:5] = X[ind[k]] // mean k:ptr[i]..ptr[i+1]", {5.5, NAN, 3, 1, 2}},
    {"Y[i:5] = real(10*k+j) // max k:ptr[i]..ptr[i+1], j:3", {12, -HUGE_VAL, 42, 52, 82}},
    {"Y[i:5] = real(10*k+j) // max j:3, k:ptr[i]..ptr[i+1]", {12, -HUGE_VAL, 42, 52, 82}},
    {"Y[i:5] = 1 // sum j:3, k:ptr[i]..ptr[i+1], l:k..k+2", {12, 0, 18, 6, 18}},
    {"Y[i:5] = X[k-1] // sum k:i+1..i+3", {1, 3, 5, 7, 9}},
    {"Y[i:5] = real(k) // sum k:i..2*i+1", {0, 3, 9, 18, 30}},
    {"Y[i:5] = X[max(i-k, 0)] // sum k:0..i+1", {0, 1, 3, 6, 10}},
    {"Y[i:5] = real(l) // sum k:i..4, l:k..4", {20, 14, 8, 3, 0}},
    {"Y[i:5] = B[i]", {256, 256, 258, 260, 260}},
    {"Y bf16 [i:5] = B[i] + 1", {256, 256, 260, 260, 260}},
    {"Y[i:5] = B[k] // sum k:5", {1290, 1290, 1290, 1290, 1290}},
    {"Y bf16 [i:5] = B[k] // sum k:5", {1288, 1288, 1288, 1288, 1288}},
    {"T bf16 [i:5] = X[i] / 3\nY[i:5] = T[i] * 3", {0, 1.001953125, 2.00390625, 3, 4.0078125}},
};

static void indices(void **state) {
  (void)state;
  const double x[] = {0, 1, 2, 3, 4, 5, 6}, ptr[] = {0, 2, 2, 5, 6, 9};
  const double ind[] = {6, 5, 4, 3, 2, 1, 0, 3, 3}, b[] = {256, 257, 258, 259, 260};
  const double *const inputs[] = {x, ptr, ind, b};
  CHECK_ROWS (indexed, row) {
    canvas_context ctx = {.message = ""};
    struct interpreter *in;
    double y[5];
    char text[1024];
    snprintf(text, sizeof text, "%s%s\nout Y\n", INDEX_HEAD, row->stage);
    struct program *p = parse(text);
    char *printed = print(p);
    CHECK_TEXT(printed, text, row->stage);
    free(printed);
    if (interpreter_new(&ctx, p, inputs, NULL, &in)) fail_msg("%s", ctx.message);
    CHECK_INT(interpreter_elements(in, p->outputs.data[0], 5, NULL, y), CANVAS_OK, row->stage);
    for (int i = 0; i < 5; i++)
      CHECK(y[i] == row->expected[i] || (isnan(y[i]) && isnan(row->expected[i])), row->stage);
    interpreter_free(in);
    program_free(p);
  }
}

// docs/program.md: its programs, and its tables, rows of `Y[i:7] = ...` and of `Y[i:5] = ...`.
static int check_documented(const char *line, const double *const *inputs) {
  char stage[256], numbers[256], text[1024];
  bool plain = strstr(line, "[i:7]");
  if (sscanf(line, "| `%255[^`]` | %255[^|]|", stage, numbers) != 2) return 0;
  if (!plain && !strstr(line, "[i:5]")) return 0;
  snprintf(text, sizeof text, "%s%s\nout Y\n", INDEX_HEAD, stage);
  struct program *p = parse(text);
  struct interpreter *in;
  canvas_context ctx = {.message = ""};
  double y[7];
  if (interpreter_new(&ctx, p, inputs, NULL, &in)) fail_msg("%s", ctx.message);
  CHECK_INT(interpreter_elements(in, p->outputs.data[0], plain ? 7 : 5, NULL, y), CANVAS_OK, stage);
  char *next = numbers;
  for (int i = 0; i < (plain ? 7 : 5); i++) CHECK(strtod(next, &next) == y[i], stage);
  interpreter_free(in);
  program_free(p);
  return 1;
}

static void documented(void **state) {
  (void)state;
  const double x[] = {0, 1, 2, 3, 4, 5, 6}, ptr[] = {0, 2, 2, 5, 6, 9};
  const double ind[] = {6, 5, 4, 3, 2, 1, 0, 3, 3}, b[] = {256, 257, 258, 259, 260};
  const double *const inputs[] = {x, ptr, ind, b};
  char path[1024], line[1024];
  int rows = 0;
  snprintf(path, sizeof path, "%.*s../../docs/program.md",
           (int)(strrchr(__FILE__, '/') + 1 - __FILE__), __FILE__);
  FILE *page = fopen(path, "r");
  assert_non_null(page);
  struct buf block = {0};
  bool inside = false;
  int programs = 0;
  while (fgets(line, sizeof line, page)) {
    rows += check_documented(line, inputs);
    if (strncmp(line, "```", 3)) {
      if (inside) buf_puts(&block, line);
      continue;
    }
    if (inside && (strstr(block.text, "canvas 1") == block.text ||
                   strstr(block.text, "program ") == block.text)) {
      program_free(parse(block.text));
      programs++;
    }
    buf_free(&block);
    inside = !inside;
  }
  fclose(page);
  assert_true(rows >= 13 && programs >= 2);
}

// Inputs that are not what the program says.
static void bad_inputs(void **state) {
  (void)state;
  static const struct {
    double values[6];
    const char *input, *message;
  } rows[] = {
      {{0, 1, 2, 2, 3, 4}, "ind i32 [e:6] 0..5", ""},
      {{0, 1, 2, 2, 3, 4}, "ind i32 [e:6] 0..5 rising", ""},
      {{0, 2, 4, 0, 0, 4}, "ind i32 [n:2, e:3] 0..5 rising", ""},
      {{-1, 1, 2, 2, 3, 4}, "ind i32 [e:6] -1..5", ""},
      {{0, 1, 2, 2, 3, 5},
       "ind i32 [e:6] 0..5",
       "element 5 of input 'ind' is 5, it has to be a whole number from 0 to 4"},
      {{0, 1, -1, 2, 3, 5},
       "ind i32 [e:6] 0..6",
       "element 2 of input 'ind' is -1, it has to be a whole number from 0 to 5"},
      {{0, 1.5, 2, 2, 3, 4},
       "ind i32 [e:6] 0..5",
       "element 1 of input 'ind' is 1.5, it has to be a whole number from 0 to 4"},
      {{NAN, 1, 2, 2, 3, 4},
       "ind i32 [e:6] 0..5",
       "element 0 of input 'ind' is nan, it has to be a whole number from 0 to 4"},
      {{0, 1, 2, 1, 3, 4},
       "ind i32 [e:6] 0..5 rising",
       "element 3 of input 'ind' is 1, each row has to rise from 0 to 4"},
      {{1, 1, 2, 2, 3, 4},
       "ind i32 [e:6] 0..5 rising",
       "element 0 of input 'ind' is 1, each row has to rise from 0 to 4"},
      {{0, 1, 2, 2, 3, 3},
       "ind i32 [e:6] 0..5 rising",
       "element 5 of input 'ind' is 3, each row has to rise from 0 to 4"},
      {{0, 2, 4, 1, 1, 4},
       "ind i32 [n:2, e:3] 0..5 rising",
       "element 3 of input 'ind' is 1, each row has to rise from 0 to 4"},
  };
  CHECK_ROWS (rows, row) {
    canvas_context ctx = {.message = ""};
    char text[256];
    const double *inputs[] = {row->values};
    double filled[6];
    struct interpreter *in;
    snprintf(text, sizeof text, "program p\nin %s\nY[] = 1\nout Y\n", row->input);
    struct program *p = parse(text);
    canvas_status status = interpreter_new(&ctx, p, inputs, NULL, &in);
    CHECK_INT(status, row->message[0] ? CANVAS_BAD_INPUT : CANVAS_OK, row->input);
    CHECK_TEXT(ctx.message, row->message, row->input);
    interpreter_free(in);
    for (uint64_t seed = 0; seed < 20; seed++) {
      program_fill(p, 0, seed, filled);
      CHECK_INT(program_check_input(&ctx, p, 0, filled), CANVAS_OK, row->input);
    }
    program_free(p);
  }
}

// The columns of a compressed sparse row rise within it, those of different rows need not.
static void sorted_rows(void **state) {
  struct program *p = parse(
      "program p\nin X f32 [k:50]\nin W f32 [e:200]\nin ind i32 [e:200] 0..50\n"
      "in ptr i32 [r:11] 0..201 rising\n"
      "Y[r:10] = X[ind[e]] * W[e] // sum e:ptr[r]..ptr[r+1]\nout Y\n");
  double ind[200], ptr[11];
  int falls = 0, inside = 0;
  program_fill(p, 2, 7, ind);
  program_fill(p, 3, 7, ptr);
  for (int r = 0; r < 10; r++)
    for (int e = (int)ptr[r] + 1; e < (int)ptr[r + 1]; e++) inside += ind[e] < ind[e - 1];
  for (int e = 1; e < 200; e++) falls += ind[e] < ind[e - 1];
  assert_int_equal(inside, 0);
  assert_true(falls > 0);
  program_free(p);
}

// A value as bf16 holds it: ties to even, no overflow before it is due, the smallest numbers.
static void bf16(void **state) {
  (void)state;
  static const double rows[][2] = {
      {0, 0},
      {1, 1},
      {256, 256},
      {257, 256},
      {257.00001, 258},
      {258, 258},
      {259, 260},
      {-257, -256},
      {-259, -260},
      {0.1, 0.10009765625},
      {1 + 0x1p-8, 1},
      {1 + 0x1p-8 + 0x1p-50, 1 + 0x1p-7},  // not 1: rounded once
      {1 + 0x3p-8, 1 + 0x1p-6},
      {0x1.fep127, 0x1.fep127},
      {0x1.fefffffp127, 0x1.fep127},
      {0x1.ffp127, HUGE_VAL},
      {-0x1.ffp127, -HUGE_VAL},
      {1e300, HUGE_VAL},
      {0x1p-126, 0x1p-126},
      {0x1p-133, 0x1p-133},
      {0x1.8p-133, 0x1p-132},
      {0x1p-134, 0},
      {0x1.1p-134, 0x1p-133},
      {0x1p-200, 0},
      {HUGE_VAL, HUGE_VAL},
      {-HUGE_VAL, -HUGE_VAL},
  };
  CHECK_ROWS (rows, row) {
    char text[64];
    snprintf(text, sizeof text, "%a", (*row)[0]);
    CHECK(program_stored(PROGRAM_BF16, (*row)[0]) == (*row)[1], text);
    CHECK(program_stored(PROGRAM_F32, (*row)[0]) == (*row)[0], text);
  }
  assert_true(isnan(program_stored(PROGRAM_BF16, NAN)));
  assert_true(signbit(program_stored(PROGRAM_BF16, -0.0)));
}

static void nan_wins(void **state) {
  (void)state;
  static const char *const rows[] = {"max(0/X[], 1)",
                                     "max(1, 0/X[])",
                                     "min(0/X[], 1)",
                                     "min(1, 0/X[])",
                                     "if k == 1 then 0/X[] else 1 // max k:3",
                                     "if k == 1 then 0/X[] else 1 // min k:3"};
  CHECK_ROWS (rows, row) {
    char text[256];
    snprintf(text, sizeof text, "program p\nin X f32 []\nY[] = %s\nout Y\n", *row);
    struct program *p = parse(text);
    double *y = evaluate(p);
    CHECK(isnan(y[0]), *row);
    free(y);
    program_free(p);
  }
}

// Every message. Lines that are no whole program follow "program p / in X f32 [i:3, j:4]".
#define HEAD "program p\nin X f32 [i:3, j:4]\n"
static const struct {
  const char *text, *message;
} rejected[] = {
    {"", "line 1, column 1: expected 'program' and its name, found the end of the text"},
    {"canvas", "line 1, column 7: expected the version, 'canvas 1', found the end of the text"},
    {"canvas 2\nprogram p", "line 1, column 8: unknown version '2', this is version 1"},
    {"canvas 1 program p",
     "line 1, column 10: expected the end of the line after the version, found 'program'"},
    {"canvas 1", "line 1, column 9: expected 'program' and its name, found the end of the text"},
    {"program", "line 1, column 8: expected the name of the program, found the end of the text"},
    {"program p q",
     "line 1, column 11: expected the end of the line after the name of the program, found "
     "'q'"},
    {"kernel p", "line 1, column 1: expected 'program' and its name, found 'kernel'"},
    {"program p",
     "line 1, column 10: expected 'out' and the name of a stage, found the end of the text"},
    {"program p\nin X f32 [i:3]\n",
     "line 3, column 1: expected 'out' and the name of a stage, found the end of the text"},
    {"program p\n3", "line 2, column 1: expected 'in', 'out' or the name of a stage, found '3'"},
    {"program p\nY[i:3] = 1\n",
     "line 3, column 1: expected 'out' and the name of a stage, found the end of the text"},
    {"program p\nin X\nout X",
     "line 2, column 5: expected a data type (f32, f64, bf16 or i32), found the end of the line"},
    {"program p\nin X f16 [i:3]",
     "line 2, column 6: expected a data type (f32, f64, bf16 or i32), found 'f16'"},
    {"program p\nin 3", "line 2, column 4: expected the name of an input, found '3'"},
    {"program p\nin X f32 i:3", "line 2, column 10: expected '[' and the axes, found 'i'"},
    {"program p\nin X f32 [3]", "line 2, column 11: expected the name of an axis, found '3'"},
    {"program p\nin X f32 [i]",
     "line 2, column 12: expected ':' and the size after the name of an axis, found ']'"},
    {"program p\nin X f32 [i:n]", "line 2, column 13: expected the size of an axis, found 'n'"},
    {"program p\nin X f32 [i:-1]", "line 2, column 13: expected the size of an axis, found '-'"},
    {"program p\nin X f32 [i:3",
     "line 2, column 14: expected ']' after the axes, found the end of the text"},
    {"program p\nin X f32 [i:3] [j:4]",
     "line 2, column 16: expected the end of the line after the axes, found '['"},
    {"program p\nin X f32 [i:0]", "line 2, column 4: axis 'i' of 'X' has size 0, the least is 1"},
    {"program p\nin X f32 [i:3, i:4]", "line 2, column 4: axis 'i' of 'X' is named twice"},
    {"program p\nin X f32 [i:99999999999999999999]",
     "line 2, column 13: number '99999999999999999999' is too large"},
    {"program p\nin X f32 [i:1099511627777]", "line 2, column 4: 'X' has more than 2^40 elements"},
    {"program p\nin X f32 [i:1048576, j:1048577]",
     "line 2, column 4: 'X' has more than 2^40 elements"},
    {"program p\nin X f32 "
     "[a0:1,a1:1,a2:1,a3:1,a4:1,a5:1,a6:1,a7:1,a8:1,a9:1,b0:1,b1:1,b2:1,b3:1,b4:1,"
     "b5:1,b6:1,b7:1,b8:1,b9:1,c0:1,c1:1,c2:1,c3:1,c4:1,c5:1,c6:1,c7:1,c8:1,c9:1,d0:1,d1:1,d2:1]",
     "line 2, column 171: more than 32 axes"},
    {"program p\nin if f32 [i:3]",
     "line 2, column 4: 'if' is a word of the language, choose another name"},
    {"program p\nin X f32 [inf:3]",
     "line 2, column 4: 'inf' is a word of the language, choose another name"},
    {"program p\nin X f32 [i:3]\nin X f32 [i:3]",
     "line 3, column 4: 'X' is defined twice, first on line 2"},
    {"program p\nin X f32 [i:3]\n\x01",
     "line 3, column 1: unexpected byte 0x01, expected 'in', 'out' or the name of a stage"},
    {HEAD "Y",
     "line 3, column 2: expected '[' and the axes of a stage, or a line that begins with "
     "'in' or 'out', found the end of the text"},
    {HEAD "Y[i:3]",
     "line 3, column 7: expected '=' and an expression after the axes, found the end of the "
     "text"},
    {HEAD "Y f64 = 1",
     "line 3, column 7: expected '[' and the axes of a stage, or a line that begins with "
     "'in' or 'out', found '='"},
    {HEAD "Y[i:3] = ", "line 3, column 10: expected an expression, found the end of the text"},
    {HEAD "Y[i:3] == 1",
     "line 3, column 8: expected '=' and an expression after the axes, found '=='"},
    {HEAD "Y[i:3] = 1 2",
     "line 3, column 12: expected the end of the line after the expression, found '2'"},
    {HEAD "Y[i:3] = 1 //",
     "line 3, column 14: expected a reducer (sum, max, mean, min or prod), found the end of "
     "the text"},
    {HEAD "Y[i:3] = 1 // add k:2",
     "line 3, column 15: expected a reducer (sum, max, mean, min or prod), found 'add'"},
    {HEAD "Y[i:3] = 1 // sum",
     "line 3, column 18: expected the name of an axis, found the end of the text"},
    {HEAD "Y[i:3] = 1 // sum k:2 l:3",
     "line 3, column 23: expected the end of the line after the reduction, found 'l'"},
    {HEAD "Y[i:3] = 1 // sum k:0", "line 3, column 1: axis 'k' of 'Y' has size 0, the least is 1"},
    {HEAD "Y[i:3] = 1 // sum i:2",
     "line 3, column 1: reduction axis 'i' of 'Y' has the name of one of its own axes"},
    {HEAD "Y[i:3] = 1 // sum k:2, k:2", "line 3, column 1: axis 'k' of 'Y' is named twice"},
    {HEAD "Y[i:3] = 1 2 // sum k:2",
     "line 3, column 12: expected '//' and the reduction after the expression, found '2'"},
    {HEAD "Y[i:3] = 1 // sum k:1048576, l:1048577",
     "line 3, column 1: the reduction of 'Y' runs over more than 2^40 points"},
    {HEAD
     "Y[a0:1,a1:1,a2:1,a3:1,a4:1,a5:1,a6:1,a7:1,a8:1,a9:1,b0:1,b1:1,b2:1,b3:1,b4:1,b5:1,b6:1,"
     "b7:1,b8:1,b9:1,c0:1,c1:1,c2:1,c3:1,c4:1,c5:1,c6:1,c7:1,c8:1,c9:1,d0:1,d1:1] = 1 // sum q:2",
     "line 3, column 175: 'Y' has more than 32 axes, reduction axes included"},
    {HEAD "X[i:3] = 1", "line 3, column 1: 'X' is defined twice, first on line 2"},
    {HEAD "then[i:3] = 1",
     "line 3, column 1: 'then' is a word of the language, choose another name"},
    {HEAD "Y[i:3] = Z[i]", "line 3, column 10: unknown tensor 'Z', define it on an earlier line"},
    {HEAD "Y[i:3] = Y[i]", "line 3, column 10: stage 'Y' loads itself"},
    {HEAD "Y[i:3] = X[i]", "line 3, column 10: 'X' has 2 axes, the load gives 1"},
    {HEAD "Y[i:3] = X[i, 0, 0]", "line 3, column 10: 'X' has 2 axes, the load gives 3"},
    {HEAD "Y[i:3] = X[i, 0",
     "line 3, column 16: expected ']' or ',' after an expression, found the end of the text"},
    {HEAD "Y[i:3] = X[i; 0]",
     "line 3, column 13: expected ']' or ',' after an expression, found ';'"},
    {HEAD "Y[i:3] = X[i, k]", "line 3, column 15: unknown axis 'k' of stage 'Y'"},
    {HEAD "Y[i:3] = X[i, 1.5]", "line 3, column 15: an index takes whole numbers, found '1.5'"},
    {HEAD "Y[i:3] = X[i, X[i, 0]]",
     "line 3, column 15: 'X[...]' is a value, an index is made of axes, integers and tensors of "
     "i32"},
    {HEAD "Y[i:3] = X[i, exp(i)]",
     "line 3, column 15: 'exp' gives a value, an index is made of axes, integers and tensors of "
     "i32"},
    {HEAD "Y[i:3] = X[i, inf]", "line 3, column 15: an index takes whole numbers, found 'inf'"},
    {HEAD "Y[i:3] = X[i, i < 1]",
     "line 3, column 17: expected ']' or ',' after an expression, found '<'"},
    {HEAD "Y[i:3] = i", "line 3, column 10: axis 'i' is an index, write real(i) for its value"},
    {HEAD "Y[i:3] = k", "line 3, column 10: unknown axis 'k' of stage 'Y'"},
    {HEAD "Y[i:3] = X[i, 0] + real(i) * i",
     "line 3, column 30: axis 'i' is an index, write real(i) for its value"},
    {HEAD "Y[i:3] = foo(i)",
     "line 3, column 10: unknown function 'foo', there are min, max, exp, log, expm1, "
     "log1p, sin, cos, tanh, sqrt, erf, abs, floor, pow, real"},
    {HEAD "Y[i:3] = exp(1, 2)", "line 3, column 10: 'exp' takes 1 argument, found 2"},
    {HEAD "Y[i:3] = min(1)", "line 3, column 10: 'min' takes 2 arguments, found 1"},
    {HEAD "Y[i:3] = exp()", "line 3, column 10: 'exp' takes 1 argument, found 0"},
    {HEAD "Y[i:3] = pow(1, 2, 3)", "line 3, column 20: expected ')' after 2"},
    {HEAD "Y[i:3] = real(1.5)", "line 3, column 15: an index takes whole numbers, found '1.5'"},
    {HEAD "Y[i:3] = (1",
     "line 3, column 12: expected ')' to close the parenthesis, found the end of the text"},
    {HEAD "Y[i:3] = (1 + 2",
     "line 3, column 16: expected ')' to close the parenthesis, found the end of the text"},
    {HEAD "Y[i:3] = 1 +", "line 3, column 13: expected an expression, found the end of the text"},
    {HEAD "Y[i:3] = +1", "line 3, column 10: expected an expression, found '+'"},
    {HEAD "Y[i:3] = 1 % 2",
     "line 3, column 12: '%' takes indices on both sides, here it is part of a value"},
    {HEAD "Y[i:3] = 1 + if i < 1 then 1 else 2",
     "line 3, column 14: an 'if' that is part of more stands in parentheses"},
    {HEAD "Y[i:3] = if i then 1 else 2",
     "line 3, column 10: a number stands where a condition is wanted, compare it"},
    {HEAD "Y[i:3] = if i < 1 then 1",
     "line 3, column 25: expected 'else' after the value of 'then', found the end of the "
     "text"},
    {HEAD "Y[i:3] = if i < 1 else 1",
     "line 3, column 19: expected 'then' after the condition, found 'else'"},
    {HEAD "Y[i:3] = if i < 1 then i < 2 else i < 3",
     "line 3, column 24: axis 'i' is an index, write real(i) for its value"},
    {HEAD "Y[i:3] = true", "line 3, column 10: a condition stands where a number is wanted"},
    {HEAD "Y[i:3] = -true", "line 3, column 10: a condition has no sign"},
    {HEAD "Y[i:3] = 1 + true", "line 3, column 12: a condition stands where a number is wanted"},
    {HEAD "Y[i:3] = if 1 <= i < 3 then 1 else 2",
     "line 3, column 20: comparisons do not chain, write 'a < b && b < c'"},
    {HEAD "Y[i:3] = if i < 1 && i then 1 else 2",
     "line 3, column 19: a number stands where a condition is wanted, compare it"},
    {HEAD "Y[i:3] = if -(i < 1) then 1 else 2", "line 3, column 13: a condition has no sign"},
    {HEAD "Y[i:3] = if (i < 1) + 1 < 2 then 1 else 2",
     "line 3, column 21: a condition stands where a number is wanted"},
    {HEAD "Y[i:3] = if i < X[i, 0] then 1 else 2",
     "line 3, column 15: index 'i' stands beside a value, write real(i)"},
    {HEAD "Y[i:3] = if X[i, 0] % 2 < 1 then 1 else 2",
     "line 3, column 21: '%' takes indices on both sides, here it is part of a value"},
    {HEAD "Y[i:3] = if 5 % 3 < X[i, 0] then 1 else 2",
     "line 3, column 19: '%' takes indices on both sides, here it is part of a value"},
    {HEAD "Y[i:3] = if i & 1 then 1 else 2",
     "line 3, column 15: expected 'then' after the condition, found '&'"},
    {HEAD "Y[i:3] = if !i then 1 else 2",
     "line 3, column 13: a number stands where a condition is wanted, compare it"},
    {HEAD "Y[i:3] = if if i < 1 then i < 2 else i < 3 then 1 else 2",
     "line 3, column 13: an 'if' that is part of more stands in parentheses"},
    {HEAD "Y[i:3] = if exp(i) < 1 then 1 else 2",
     "line 3, column 17: axis 'i' is an index, write real(i) for its value"},
    {HEAD "Y[i:3] = X[i/0, 0]",
     "line 3, column 13: '/' of an index needs a positive whole number after it"},
    {HEAD "Y[i:3] = X[i%i, 0]",
     "line 3, column 13: '%' of an index needs a positive whole number after it"},
    {HEAD "Y[i:3] = X[i/-2, 0]",
     "line 3, column 13: '/' of an index needs a positive whole number after it"},
    {HEAD "Y[i:3] = X[i/(1+1), 0]",
     "line 3, column 13: '/' of an index needs a positive whole number after it"},
    {HEAD "Y[i:3] = if 1/0 < i then 1 else 2",
     "line 3, column 14: '/' of an index needs a positive whole number after it"},
    {HEAD "Y[i:3] = X[i+1, 0]",
     "line 3, column 10: stage 'Y' loads 'X' out of range: index 'i+1' runs from 1 to 3, "
     "axis 'i' has size 3"},
    {HEAD "Y[i:3] = X[i, i-1]",
     "line 3, column 10: stage 'Y' loads 'X' out of range: index 'i-1' runs from -1 to 1, "
     "axis 'j' has size 4"},
    {HEAD "Y[i:3] = X[i, 4]",
     "line 3, column 10: stage 'Y' loads 'X' out of range: index '4' runs from 4 to 4, axis "
     "'j' has size 4"},
    {HEAD "Y[i:3] = X[i*2, 0]",
     "line 3, column 10: stage 'Y' loads 'X' out of range: index 'i*2' runs from 0 to 4, "
     "axis 'i' has size 3"},
    {HEAD "Y[i:3] = X[2-i-1, 0]",
     "line 3, column 10: stage 'Y' loads 'X' out of range: index '2-i-1' runs from -1 to 1, "
     "axis 'i' has size 3"},
    {HEAD "Y[i:3] = X[i, k/2] // sum k:9",
     "line 3, column 10: stage 'Y' loads 'X' out of range: index 'k/2' runs from 0 to 4, "
     "axis 'j' has size 4"},
    {HEAD "Y[i:3] = X[i, k%5] // sum k:9",
     "line 3, column 10: stage 'Y' loads 'X' out of range: index 'k%5' runs from 0 to 4, "
     "axis 'j' has size 4"},
    {HEAD "Y[i:3] = X[max(i, 3), 0]",
     "line 3, column 10: stage 'Y' loads 'X' out of range: index 'max(i, 3)' runs from 3 to "
     "3, axis 'i' has size 3"},
    {HEAD "Y[i:3] = X[i+k, 0] // sum k:2",
     "line 3, column 10: stage 'Y' loads 'X' out of range: index 'i+k' runs from 0 to 3, "
     "axis 'i' has size 3"},
    {HEAD "Y[i:3] = X[i*i+7, 0]",
     "line 3, column 10: stage 'Y' loads 'X' out of range: index 'i*i+7' runs from 7 to 11, "
     "axis 'i' has size 3"},
    {HEAD "Y[i:3] = if X[i+1, 0] < 1 then 1 else 2",
     "line 3, column 13: stage 'Y' loads 'X' out of range: index 'i+1' runs from 1 to 3, "
     "axis 'i' has size 3"},
    {HEAD "Y[i:3] = if X[0, 0] < 1 then 1 else X[i+4611686018427387905, 0]",
     "line 3, column 40: index 'i+4611686018427387905' may pass 2^62"},
    {HEAD "Y[i:3] = if i*4611686018427387904 < 1 then 1 else X[i, 0]",
     "line 3, column 14: index 'i*4611686018427387904' may pass 2^62"},
    {HEAD "Y[i:3] = real(i*9223372036854775807*9)",
     "line 3, column 36: index 'i*9223372036854775807*9' may pass 2^62"},
    {HEAD "Y[i:3] = real(i+9223372036854775807)",
     "line 3, column 16: index 'i+9223372036854775807' may pass 2^62"},
    {HEAD "Y[i:3] = 1e999", "line 3, column 10: number '1e999' is too large"},
    {HEAD "Y[i:3] = 9223372036854775808",
     "line 3, column 10: number '9223372036854775808' is too large"},
    {HEAD "Y[i:3] = 'a'", "line 3, column 10: expected an expression, found '''"},
    {HEAD "Y[i:3] = 1 $",
     "line 3, column 12: expected the end of the line after the expression, found '$'"},
    {HEAD "Y[i:3] = 1\nY[i:3] = 2\nout Y",
     "line 4, column 1: 'Y' is defined twice, first on line 3"},
    {HEAD "Y[i:3] = 1\nout Z", "line 4, column 5: unknown stage 'Z'"},
    {HEAD "Y[i:3] = 1\nout X", "line 4, column 5: 'X' is an input, an output is a stage"},
    {HEAD "Y[i:3] = 1\nout Y\nout Y", "line 5, column 5: 'Y' is an output twice"},
    {HEAD "Y[i:3] = 1\nout",
     "line 4, column 4: expected the name of a stage, found the end of the text"},
    {HEAD "Y[i:3] = 1\nout Y,",
     "line 4, column 7: expected the name of a stage, found the end of the text"},
    {HEAD "Y[i:3] = 1\nout Y Y",
     "line 4, column 7: expected the end of the line after the outputs, found 'Y'"},
    {HEAD "Y[i:3] = 1\nin Y f32 []", "line 4, column 4: 'Y' is defined twice, first on line 3"},
    {HEAD "in q i32 [e:4]",
     "line 3, column 15: expected the range of an input of i32, 'LOW..HIGH', found the end of the "
     "text"},
    {HEAD "in q i32 [e:4] 0",
     "line 3, column 17: expected '..' and the end of the range, found the end of the text"},
    {HEAD "in q i32 [e:4] 0..x",
     "line 3, column 19: expected the range of an input of i32, 'LOW..HIGH', found 'x'"},
    {HEAD "in q i32 [e:4] 0..3 falling",
     "line 3, column 21: expected the end of the line after the range, found 'falling'"},
    {HEAD "in q f32 [e:4] 0..3",
     "line 3, column 16: expected the end of the line after the axes, found '0'"},
    {HEAD "in q i32 [e:4] 3..3", "line 3, column 4: the range of 'q' is empty"},
    {HEAD "in q i32 [e:4] 0..2147483649", "line 3, column 4: the range of 'q' passes 32 bits"},
    {HEAD "in q i32 [e:4] -9223372036854775807..0",
     "line 3, column 4: the range of 'q' passes 32 bits"},
    {HEAD "in q i32 [e:1] 0..3 rising",
     "line 3, column 4: 'q' cannot rise from 0 to 2, its last axis needs more elements"},
    {HEAD "in q i32 [] 0..1 rising",
     "line 3, column 4: 'q' cannot rise from 0 to 0, its last axis needs more elements"},
    {HEAD "Y i32 [i:3] = 1", "line 3, column 1: stage 'Y' is of i32, only an input may be"},
    {HEAD "in q i32 [i:3] 0..4\nY[i:3] = X[q[i], 0]",
     "line 4, column 10: stage 'Y' loads 'X' out of range: index 'q[i]' runs from 0 to 3, axis 'i' "
     "has size 3"},
    {HEAD "in q i32 [i:3] 0..4\nY[i:3] = X[i, q[i]*2%5]",
     "line 4, column 10: stage 'Y' loads 'X' out of range: index 'q[i]*2%5' runs from 0 to 4, axis "
     "'j' has size 4"},
    {HEAD "in q i32 [i:3] 0..4\nY[i:3] = q[i]",
     "line 4, column 10: an index stands where a value is wanted, write real(...)"},
    {HEAD "in q i32 [i:3] 0..4\nY[i:3] = X[i, 0] * q[i]",
     "line 4, column 18: index 'q[i]' stands beside a value, write real(q[i])"},
    {HEAD "in q i32 [i:3] 0..4\nY[i:3] = X[i, q[i+1]]",
     "line 4, column 15: stage 'Y' loads 'q' out of range: index 'i+1' runs from 1 to 3, axis 'i' "
     "has size 3"},
    {HEAD "Y[i:3] = 1 // sum k:X[i, 0]..3",
     "line 3, column 21: 'X[...]' is a value, an index is made of axes, integers and tensors of "
     "i32"},
    {HEAD "Y[i:3] = 1 // sum k:i",
     "line 3, column 21: axis 'k' needs a size, or a range 'LOW..HIGH'"},
    {HEAD "Y[i:3] = 1 // sum k:0..",
     "line 3, column 24: expected an expression, found the end of the text"},
    {HEAD "Y[i:3] = 1 // sum k:0..k", "line 3, column 24: unknown axis 'k' of stage 'Y'"},
    {HEAD "Y[i:3] = 1 // sum k:0..3",
     "line 3, column 1: bounds of axis 'k' of 'Y' are no function of the axes before it"},
    {HEAD "Y[i:3] = 1 // sum k:i..i-2", "line 3, column 1: axis 'k' of 'Y' is always empty"},
    {HEAD "Y[i:3] = 1 // sum k:0..i*9223372036854775807",
     "line 3, column 25: index 'i*9223372036854775807' may pass 2^62"},
    {HEAD "Y[i:3] = 1 // sum k:0..i*4398046511104",
     "line 3, column 1: the reduction of 'Y' runs over more than 2^40 points"},
    {HEAD "Y[i:3] = X[k, 0] // sum k:0..i+2",
     "line 3, column 10: stage 'Y' loads 'X' out of range: index 'k' runs from 0 to 3, axis 'i' "
     "has "
     "size 3"},
};

static void bad_programs(void **state) {
  (void)state;
  CHECK_ROWS (rejected, row) {
    canvas_context ctx = {.message = ""};
    struct program *p;
    canvas_status status = program_parse(&ctx, row->text, strlen(row->text), &p);
    CHECK_INT(status, CANVAS_BAD_INPUT, row->text);
    CHECK_TEXT(ctx.message, row->message, row->text);
    CHECK(p == NULL, row->text);
  }
}

static void deep_and_large_texts(void **state) {
  (void)state;
  static const struct {
    const char *head, *repeat, *middle, *close;
    int times;
    const char *message;  // NULL: accepted
  } rows[] = {
      {"Y[i:3] = ", "(", "1", ")", 190, NULL},
      {"Y[i:3] = ", "(", "1", ")", 100000, "expression nests deeper than 200 levels"},
      {"Y[i:3] = ", "-", "X[i, 0]", "", 190, NULL},
      {"Y[i:3] = ", "-", "X[i, 0]", "", 100000, "expression nests deeper than 200 levels"},
      {"Y[i:3] = ", "X[i, 0] + ", "1", "", 190, NULL},
      {"Y[i:3] = ", "X[i, 0] + ", "1", "", 100000, "expression nests deeper than 200 levels"},
      {"Y[i:3] = ", "1 + (", "1", ")", 190, NULL},
      {"Y[i:3] = ", "exp(", "1", ")", 100000, "expression nests deeper than 200 levels"},
      {"Y[i:3] = X[i, ", "min(i, ", "0", ")", 190, NULL},
      {"Y[i:3] = X[i, ", "min(i, ", "0", ")", 100000, "expression nests deeper than 200 levels"},
      {"Y[i:3] = ", "if i < 1 then 2 else ", "1", "", 190, NULL},
      {"Y[i:3] = ", "if i < 1 then 2 else ", "1", "", 99999, "expression nests deeper than 200"},
      {"Y[i:3] = 1 // sum ", "a:1, ", "b:1", "", 100000, "'Y' has more than 32 axes"},
      {"Y[i:3] = max(0, 1)", "\n", "", "", 1000000, NULL},
  };
  CHECK_ROWS (rows, row) {
    struct buf text = {0};
    canvas_context ctx = {.message = ""};
    struct program *p;
    buf_printf(&text, HEAD "%s", row->head);
    for (int i = 0; i < row->times; i++) buf_puts(&text, row->repeat);
    buf_puts(&text, row->middle);
    for (int i = 0; i < row->times; i++) buf_puts(&text, row->close);
    if (strchr(row->head, '[') != strrchr(row->head, '[')) buf_puts(&text, "]");
    buf_puts(&text, "\nout Y\n");
    program_parse(&ctx, text.text, text.length, &p);
    if (row->message)
      CHECK(strstr(ctx.message, row->message), row->repeat);
    else
      CHECK_TEXT(ctx.message, "", row->repeat);
    if (p) {
      char *once = print(p);
      struct program *q = parse(once);
      free(evaluate(q));
      program_free(q);
      free(once);
    }
    program_free(p);
    buf_free(&text);
  }
}

// A chain as long as a program may be, evaluated from its end; and one stage more.
static void chains(void **state) {
  (void)state;
  struct buf text = {0};
  canvas_context ctx = {.message = ""};
  struct program *p;
  buf_puts(&text, "program p\nin S0 f32 [i:2]\n");
  for (int i = 1; i < PROGRAM_STAGES; i++)
    buf_printf(&text, "S%d[i:2] = S%d[i] + S%d[1-i]\n", i, i - 1, i - 1);
  buf_printf(&text, "out S%d\n", PROGRAM_STAGES - 1);
  p = parse(text.text);
  double *y = evaluate(p);
  CHECK(y[0] == y[1] && isinf(y[0]), "a chain of doublings");
  free(y);
  program_free(p);
  buf_puts(&text, "Z[] = 1\n");
  CHECK_INT(program_parse(&ctx, text.text, text.length, &p), CANVAS_BAD_INPUT, "a longer chain");
  CHECK_TEXT(ctx.message, "line 4099, column 1: the program has more than 4096 inputs and stages",
             "a longer chain");
  buf_free(&text);
}

// What the interpreter rejects, and that it goes on afterwards.
static bool is_third(void *asked) {
  return ++*(int *)asked == 3;
}

// Whoever waits for one element can end it.
static void evaluation_ends(void **state) {
  struct program *p =
      parse("program p\nin X f32 [i:3]\nY[] = X[k%3] // sum k:100000000000\nout Y\n");
  const double x[3] = {0, 1, 2}, *inputs[] = {x};
  canvas_context ctx = {.message = ""};
  struct interpreter *in;
  double value;
  int asked = 0;
  const struct interpreter_limits limits = {.stop = is_third, .data = &asked};
  CHECK_INT(interpreter_new(&ctx, p, inputs, &limits, &in), CANVAS_OK, ctx.message);
  CHECK_INT(interpreter_elements(in, program_find(p, "Y"), 1, &(int64_t){0}, &value), CANVAS_IO,
            "");
  CHECK_TEXT(ctx.message,
             "evaluating one element of stage 'Y' takes too long: its reduction is too large", "");
  CHECK_INT(asked, 3, "it was asked now and then");
  interpreter_free(in);
  program_free(p);
}

static void evaluation_limits(void **state) {
  (void)state;
  static const struct {
    const char *stages;
    struct interpreter_limits limits;
    const char *message;
  } rows[] = {
      {"Y[i:2] = if X[0] < 1 then X[i+3] else 0",
       {.bytes = 0},
       "load of 'X[3]' for 'Y[0]' is out of range: axis 'i' has size 3"},
      {"T[i:9, j:9] = 1\nY[i:2] = T[i, (i+k)*(k+1)] // sum k:4",
       {.bytes = 0},
       "load of 'T[0, 12]' for 'Y[0]' at 'k=3' is out of range: axis 'j' has size 9"},
      {"Y[i:2] = if X[0] < 1 then X[q[2-i]*2] else 0",
       {.bytes = 0},
       "load of 'X[4]' for 'Y[0]' is out of range: axis 'i' has size 3"},
      {"Y[i:2] = if X[0] < 1 then X[k] else 0 // sum k:q[i]+1..q[2]*2+1",
       {.bytes = 0},
       "load of 'X[3]' for 'Y[0]' at 'k=3' is out of range: axis 'i' has size 3"},
      {"Y[i:2] = X[k%3] // sum k:2000000",
       {.steps = 1000000},
       "evaluating stage 'Y' takes more than 1000000 steps, ask for fewer elements"},
      {"T[i:1000000] = X[i%3]\nY[i:2] = T[k] // sum k:1000000",
       {.bytes = 4096},
       "evaluating stage 'T' takes more than 4096 bytes of memory, ask for fewer elements"},
  };
  CHECK_ROWS (rows, row) {
    char text[512];
    const double x[3] = {0, 1, 2}, *inputs[] = {x, x};
    canvas_context ctx = {.message = ""};
    struct interpreter *in;
    double value;
    snprintf(text, sizeof text,
             "program p\nin X f32 [i:3]\nin q i32 [i:3] 0..3\nE[] = X[2]\n%s\nout Y\n",
             row->stages);
    struct program *p = parse(text);
    assert_int_equal(interpreter_new(&ctx, p, inputs, &row->limits, &in), CANVAS_OK);
    int y = program_find(p, "Y");
    bool limited = row->limits.steps || row->limits.bytes;
    canvas_status expected = limited ? CANVAS_IO : CANVAS_BAD_INPUT;
    for (int again = 0; again < 2; again++) {
      CHECK_INT(interpreter_element(in, y, (int64_t[]){0}, &value), expected, row->stages);
      CHECK_TEXT(ctx.message, row->message, row->stages);
    }
    if (!limited) {
      CHECK_INT(interpreter_element(in, program_find(p, "E"), NULL, &value), CANVAS_OK, "E");
      CHECK_NEAR(value, 2, 0, "E");
    }
    CHECK_INT(interpreter_element(in, y, (int64_t[]){2}, &value), CANVAS_BAD_INPUT, row->stages);
    CHECK_TEXT(ctx.message, "element 'Y[2]' is out of range: axis 'i' has size 2", row->stages);
    CHECK_INT(interpreter_elements(in, y, 1, (int64_t[]){-1}, &value), CANVAS_BAD_INPUT, "-1");
    CHECK_TEXT(ctx.message, "element -1 does not exist, 'Y' has 2", row->stages);
    interpreter_free(in);
    program_free(p);
  }
}

// One output of a 3x3 convolution with a border of zeros, in the interpreter's order.
static double naive(const double *x, const double *w, int channels, int size, int co, int h,
                    int v) {
  double sum = 0;
  for (int ci = 0; ci < channels; ci++)
    for (int kh = 0; kh < 3; kh++)
      for (int kw = 0; kw < 3; kw++) {
        int a = h + kh - 1, b = v + kw - 1;
        if (a >= 0 && a < size && b >= 0 && b < size)
          sum += x[(ci * size + a) * size + b] * w[((co * channels + ci) * 3 + kh) * 3 + kw];
      }
  return sum;
}

static double *random_values(struct random *r, int count) {
  double *values = malloc((size_t)count * sizeof *values);
  for (int i = 0; i < count; i++) values[i] = random_normal(r);
  return values;
}

// Elements in a random order, some twice; `bytes` decides between arrays and hash tables.
static void check_convolution(const char *text, int channels, int size, int count, size_t bytes) {
  canvas_context ctx = {.message = ""};
  struct random r;
  random_open(&r, 1, RANDOM_TEST, (uint64_t)size);
  double *x = random_values(&r, channels * size * size);
  double *w = random_values(&r, channels * channels * 9);
  struct program *p = parse(text);
  struct interpreter_limits limits = {.bytes = bytes};
  struct interpreter *in;
  const double *inputs[] = {x, w};
  assert_int_equal(interpreter_new(&ctx, p, inputs, &limits, &in), CANVAS_OK);
  for (int i = 0; i < count; i++) {
    int64_t flat = random_below(&r, (uint32_t)(channels * size * size));
    double got;
    if (i == 0) flat = 0;  // two corners
    if (i == 1) flat = channels * size * size - 1;
    if (interpreter_elements(in, p->outputs.data[0], 1, &flat, &got)) fail_msg("%s", ctx.message);
    double expected = naive(x, w, channels, size, (int)(flat / (size * size)),
                            (int)(flat / size % size), (int)(flat % size));
    CHECK_NEAR(got, expected, 1e-15, text);
  }
  interpreter_free(in);
  program_free(p);
  free(x);
  free(w);
}

static void convolution(void **state) {
  (void)state;
  static const char large[] =
      "program large\nin X f32 [n:1, ci:64, h:56, w:56]\nin W f32 [co:64, ci:64, kh:3, kw:3]\n"
      "P[n:1, ci:64, h:58, w:58] = if 1 <= h && h < 57 && 1 <= w && w < 57 then X[n, ci, h-1, "
      "w-1] else 0\nY[n:1, co:64, h:56, w:56] = P[n, ci, h+kh, w+kw] * W[co, ci, kh, kw] // sum "
      "ci:64, kh:3, kw:3\nout Y\n";
  clock_t start = clock();
  check_convolution(CONV, 16, 8, 4096, 0);
  print_message("             a convolution of 147k multiply-adds and its check: %.0f ms\n",
                1e3 * (double)(clock() - start) / CLOCKS_PER_SEC);
  check_convolution(large, 64, 56, 200, 0);
  check_convolution(large, 64, 56, 50, 1700000);  // hash tables
}

// A layer of 48.3 GFLOP: elements are cheap one by one, corners and borders among them.
static void large_layer(void **state) {
  (void)state;
  enum { BATCH = 10, CHANNELS = 64, SIZE = 256, COUNT = 2000 };
  static const char text[] =
      "program layer\nin X f32 [n:10, ci:64, h:256, w:256]\nin W f32 [co:64, ci:64, kh:3, kw:3]\n"
      "P[n:10, ci:64, h:258, w:258] = if 1 <= h && h < 257 && 1 <= w && w < 257 then X[n, ci, h-1, "
      "w-1] else 0\nY[n:10, co:64, h:256, w:256] = P[n, ci, h+kh, w+kw] * W[co, ci, kh, kw] // sum "
      "ci:64, kh:3, kw:3\nout Y\n";
  static const int64_t edges[] = {0, 1, 127, 254, 255};
  const int64_t plane = SIZE * SIZE, image = CHANNELS * plane;
  canvas_context ctx = {.message = ""};
  struct program *p = parse(text);
  struct interpreter *in;
  struct random r;
  random_open(&r, 1, RANDOM_TEST, 48);
  double *x = malloc(BATCH * (size_t)image * sizeof *x), got[COUNT];
  double *w = random_values(&r, CHANNELS * CHANNELS * 9);
  int64_t at[COUNT];
  for (int64_t i = 0; i < BATCH * image; i++) x[i] = (double)(i * 2654435761 % 1021) / 512 - 1;
  for (int i = 0; i < COUNT; i++) {
    int64_t h = random_below(&r, SIZE), v = random_below(&r, SIZE);
    if (i % 4 < 2) h = edges[random_below(&r, 5)];
    if (i % 4 > 0) v = edges[random_below(&r, 5)];
    at[i] = (random_below(&r, BATCH * CHANNELS) * SIZE + h) * SIZE + v;
  }
  const double *inputs[] = {x, w};
  assert_int_equal(interpreter_new(&ctx, p, inputs, NULL, &in), CANVAS_OK);
  clock_t start = clock();
  if (interpreter_elements(in, p->outputs.data[0], COUNT, at, got)) fail_msg("%s", ctx.message);
  double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
  print_message("             %d elements of a layer of 48.3 GFLOP: %.2f s\n", COUNT, seconds);
  for (int i = 0; i < COUNT; i++) {
    double expected =
        naive(x + at[i] / image * image, w, CHANNELS, SIZE, (int)(at[i] / plane % CHANNELS),
              (int)(at[i] / SIZE % SIZE), (int)(at[i] % SIZE));
    CHECK_NEAR(got[i], expected, 1e-15, "an element of a large layer");
  }
  assert_true(seconds < 5);
  interpreter_free(in);
  program_free(p);
  free(x);
  free(w);
}

// Index arithmetic of the builder, over a:4, b:16, c:3, with flat = (a*16+b)*3+c and
// spread = 48*a+b*3+c.
enum rule {
  FLAT_DIV,
  FLAT_MOD,
  SPREAD_DIV,
  SPREAD_MOD,
  SUM,
  JOIN,
  AGAIN,
  DIFFERENCE,
  INSIDE,
  NOT_JOINED,
  MOD_MOD,
  MINUS_DIV,
  COMPARE,
  CONSTANTS
};
static const struct {
  enum rule rule;
  int x, y;
  const char *printed;
} rules[] = {
    {FLAT_DIV, 1, 0, "(a*16+b)*3+c"},
    {FLAT_DIV, 3, 0, "a*16+b"},
    {FLAT_DIV, 12, 0, "a*4+b/4"},
    {FLAT_DIV, 48, 0, "a"},
    {FLAT_DIV, 96, 0, "a/2"},
    {FLAT_DIV, 192, 0, "0"},
    {FLAT_DIV, 5, 0, "((a*16+b)*3+c)/5"},
    {FLAT_MOD, 1, 0, "0"},
    {FLAT_MOD, 3, 0, "c"},
    {FLAT_MOD, 48, 0, "b*3+c"},
    {FLAT_MOD, 192, 0, "(a*16+b)*3+c"},
    {SPREAD_DIV, 3, 0, "a*16+b"},
    {SPREAD_DIV, 48, 0, "a"},
    {SPREAD_MOD, 3, 0, "c"},
    {SPREAD_MOD, 48, 0, "b*3+c"},
    {SUM, 0, 0, "b"},
    {SUM, 1, 2, "b+3"},
    {SUM, 1, -1, "b"},
    {SUM, 1, -3, "b-2"},
    {SUM, -1, -2, "b-3"},
    {JOIN, 4, 0, "b"},
    {JOIN, 3, 0, "b"},
    {AGAIN, 3, 16, "(a*16+b)*3+c"},
    {AGAIN, 5, 2, "(a*16+b)*3+c"},
    {DIFFERENCE, 0, 0, "0"},
    {INSIDE, 0, 16, "true"},
    {INSIDE, 1, 16, "1 <= b"},
    {INSIDE, 1, 15, "1 <= b && b < 15"},
    {INSIDE, 0, 0, "false"},
    {INSIDE, 16, 20, "false"},
    {INSIDE, -5, 9, "b < 9"},
    {NOT_JOINED, 4, 0, "b/4*4+a*b%4"},
    {MOD_MOD, 12, 4, "a*b%4"},
    {MOD_MOD, 4, 12, "a*b%4"},
    {MOD_MOD, 4, 6, "a*b%4"},
    {MOD_MOD, 9, 6, "a*b%9%6"},
    {MINUS_DIV, 12, 0, "a+(1-c)/12"},
    {MINUS_DIV, 4, 0, "a*3+(1-c)/4"},
    {COMPARE, PX_EQ, 3, "b == 3"},
    {COMPARE, PX_EQ, 16, "false"},
    {COMPARE, PX_NE, 16, "true"},
    {COMPARE, PX_NE, 15, "b != 15"},
    {COMPARE, PX_LT, 15, "b < 15"},
    {COMPARE, PX_LT, 16, "true"},
    {COMPARE, PX_LT, 0, "false"},
    {COMPARE, PX_LE, 15, "true"},
    {COMPARE, PX_LE, 14, "b <= 14"},
    {COMPARE, PX_LE, 0, "b <= 0"},
    {COMPARE, PX_LE, -1, "false"},
    {COMPARE, PX_GT, 15, "false"},
    {COMPARE, PX_GT, 0, "b > 0"},
    {COMPARE, PX_GT, -1, "true"},
    {COMPARE, PX_GE, 15, "b >= 15"},
    {COMPARE, PX_GE, 0, "true"},
    {COMPARE, PX_GE, 16, "false"},
    {CONSTANTS, PX_EQ, 2, "false"},
    {CONSTANTS, PX_EQ, 3, "true"},
    {CONSTANTS, PX_NE, 3, "false"},
};

// flat taken apart into three and put together again
static int again(struct program *p, int flat, int x, int y) {
  int low = px_mod(p, flat, px_int(p, x)), rest = px_div(p, flat, px_int(p, x));
  int middle = px_mod(p, rest, px_int(p, y)), high = px_div(p, rest, px_int(p, y));
  int sum = px_add(p, px_mul(p, high, px_int(p, y)), middle);
  return px_add(p, px_mul(p, sum, px_int(p, x)), low);
}

static int build_rule(struct program *p, int stage, enum rule rule, int x, int y) {
  int a = program_axis(p, stage, 0), b = program_axis(p, stage, 1), c = program_axis(p, stage, 2);
  int flat = px_add(p, px_mul(p, px_add(p, px_mul(p, a, px_int(p, 16)), b), px_int(p, 3)), c);
  int spread = px_add(p, px_add(p, px_mul(p, px_int(p, 48), a), px_mul(p, b, px_int(p, 3))), c);
  int m = px_int(p, x);
  switch (rule) {
    case FLAT_DIV: return px_div(p, flat, m);
    case FLAT_MOD: return px_mod(p, flat, m);
    case SPREAD_DIV: return px_div(p, spread, m);
    case SPREAD_MOD: return px_mod(p, spread, m);
    case SUM: return px_add(p, px_add(p, b, m), px_int(p, y));
    case JOIN: return px_add(p, px_mul(p, px_div(p, b, m), m), px_mod(p, b, m));
    case AGAIN: return again(p, flat, x, y);
    case NOT_JOINED: return px_add(p, px_mul(p, px_div(p, b, m), m), px_mod(p, px_mul(p, a, b), m));
    case MOD_MOD: return px_mod(p, px_mod(p, px_mul(p, a, b), m), px_int(p, y));
    case MINUS_DIV:
      return px_div(p, px_sub(p, px_add(p, px_mul(p, a, px_int(p, 12)), px_int(p, 1)), c), m);
    case CONSTANTS: return px_compare(p, x, px_int(p, 3), px_int(p, y));
    case COMPARE: return px_compare(p, x, b, px_int(p, y));
    case DIFFERENCE: return px_sub(p, flat, flat);
    default: return px_inside(p, px_add(p, b, px_int(p, 2)), x + 2, y + 2);
  }
}

static int new_stage(struct program *p, const char *name) {
  const char *axes[] = {"a", "b", "c"};
  return program_stage(p, name, PROGRAM_F32, 3, axes, (int64_t[]){4, 16, 3});
}

static void simplification(void **state) {
  (void)state;
  CHECK_ROWS (rules, row) {
    struct program *p = program_new("p");
    struct buf text = {0};
    int expr = build_rule(p, new_stage(p, "Y"), row->rule, row->x, row->y);
    CHECK(!p->failed, row->printed);
    program_print_expr(p, expr, &text);
    CHECK_TEXT(text.text, row->printed, row->printed);
    buf_free(&text);
    program_free(p);
  }
}

// Expressions as a schedule makes them, and what becomes of them: y = (yt*4+yo)*14+yi of a tile, a
// fused loop f, and rows of a sparse matrix.
#define LOOPS                                                                             \
  "program p\nin X f32 [i:1000]\nin ptr i32 [r:6] 0..41 rising\nin ind i32 [e:41] 0..9\n" \
  "Y[yt:2, yo:4, yi:14, kh:3, f:96, c:5, one:1] = "
static const struct {
  const char *text, *simple;
} tidied[] = {
    // differences cancel
    {"real((yt*4+yo)*14+yi+kh-(yt*56+yo*14))", "real(yi+kh)"},
    {"real((yt*4+yo)*14+yi-(yt*4+yo)*14)", "real(yi)"},
    {"real(yi-(yi-c))", "real(c)"},
    {"real(yi+c-yi)", "real(c)"},
    {"real(c-(yi+c))", "real(-yi)"},
    {"real(2*yi+c-5*yi)", "real(c-yi*3)"},
    {"real(yi+yi)", "real(yi*2)"},
    {"real(yi+1+(c+2))", "real(yi+c+3)"},
    {"real((yi+1)-(c+1))", "real(yi-c)"},
    {"real(ptr[c+1]-ptr[c])", "real(ptr[c+1]-ptr[c])"},
    {"real(ptr[c]-ptr[kh])", "real(ptr[c]-ptr[kh])"},
    {"real(f/5%4*6+f%6)", "real(f/5%4*6+f%6)"},
    {"real(yi*0+c)", "real(c)"},
    {"real(ptr[c+1]-ptr[c]+ptr[c])", "real(ptr[c+1])"},
    {"real(ind[ptr[c]+0]-ind[ptr[c]])", "0"},
    {"real((if yi < c then 1 else 2)+c-(if yi < c then 1 else 2))", "real(c)"},
    {"real((if yi < c then 1 else 2)-(if yi < kh then 1 else 2))",
     "real((if yi < c then 1 else 2)-(if yi < kh then 1 else 2))"},
    // quotients and remainders of tiles
    {"real(((yt*4+yo)*14+yi)/14)", "real(yt*4+yo)"},
    {"real(((yt*4+yo)*14+yi)/56)", "real(yt)"},
    {"real(((yt*4+yo)*14+yi)/14%4)", "real(yo)"},
    {"real(((yt*4+yo)*14+yi)%56)", "real(yo*14+yi)"},
    {"real((yt*4+yo)*14/14/4)", "real(yt)"},
    {"real((yi*7+c)/7)", "real(yi)"},
    {"real((yi*5+c+2)/5)", "real(yi+(c+2)/5)"},
    {"real((yi*6+c)%12)", "real(yi%2*6+c)"},
    // a fused loop and its members
    {"real(f/24*24+f%24)", "real(f)"},
    {"real(f/24*24+f/6%4*6+f%6)", "real(f)"},
    {"real(f/6%4*6+f%6)", "real(f%24)"},
    {"real(f%6+c+f/6%4*6+f/24*24)", "real(c+f)"},
    {"real(f/24*48+f%24*2)", "real(f*2)"},
    {"real(f-f/6*6)", "real(f%6)"},
    {"real(f-f/6*6+f/6*6)", "real(f)"},
    {"real(f/6-f/24*4)", "real(f/6%4)"},
    {"real(f/6*6+f%5)", "real(f/6*6+f%5)"},
    {"real(f/24*24+f%6)", "real(f/24*24+f%6)"},
    {"real((f/24*24+f%24)/3%8)", "real(f/3%8)"},
    {"real(f%24%6)", "real(f%6)"},
    {"real(f/4/6)", "real(f/24)"},
    {"real(f/96)", "0"},
    // conditions that ranges decide, alone or by their difference
    {"if (yt*4+yo)*14+yi < 112 then 1 else 2", "1"},
    {"if (yt*4+yo)*14+yi < 111 then 1 else 2", "if (yt*4+yo)*14+yi < 111 then 1 else 2"},
    {"if yi+c < yi+5 then 1 else 2", "1"},
    {"if yi+c <= yi-1 then 1 else 2", "2"},
    {"if f/24*24 <= f then 1 else 2", "1"},
    {"if f < f/24*24+24 then 1 else 2", "1"},
    {"if yi == yi+1 then 1 else 2", "2"},
    {"if c < 5 && yi < 3 || one > 0 then 1 else 2", "if yi < 3 then 1 else 2"},
    {"if yi < 3 && yi < 3 then 1 else 2", "if yi < 3 then 1 else 2"},
    {"if X[yi] < 3 || X[yi] < 3 then 1 else 2", "if X[yi] < 3 then 1 else 2"},
    {"if ptr[c] <= 40 && ind[yi] < 9 then 1 else 2", "1"},
    {"real(min(yi+c, yi+4))", "real(yi+c)"},
    {"real(max(yi-c, yi))", "real(yi)"},
    {"real(min(14, 112-(yt*4+yo)*14))", "14"},
    {"real(min(14, 100-(yt*4+yo)*14))", "real(min(14, 100-(yt*4+yo)*14))"},
    // not simplified: what would overflow
    {"real(yi*4611686018427387904/4611686018427387904)",
     "real(yi*4611686018427387904/4611686018427387904)"},
};

// What the builder makes of the expression of the last stage.
static void tidy(struct program *p, struct buf *text) {
  const struct program_tensor *t = &p->tensors.data[p->tensors.count - 1];
  int axis[PROGRAM_AXES];
  for (int i = 0; i < t->rank + t->reductions; i++)
    axis[i] = program_axis(p, p->tensors.count - 1, i);
  program_print_expr(p, px_copy(p, p, t->body, &(struct px_map){.axis = axis}), text);
}

static void schedules_simplify(void **state) {
  (void)state;
  CHECK_ROWS (tidied, row) {
    struct buf text = {0}, out = {0};
    canvas_context ctx = {.message = ""};
    struct program *p;
    buf_printf(&text, "%s%s\nout Y\n", LOOPS, row->text);
    if (program_parse(&ctx, text.text, text.length, &p) != CANVAS_OK) {
      CHECK(strstr(ctx.message, "may pass 2^62"), row->text);
    } else {
      tidy(p, &out);
      CHECK_TEXT(out.text, row->simple, row->text);
      program_free(p);
    }
    buf_free(&text);
    buf_free(&out);
  }
}

static int simplified(struct program *p, enum px_op op, int a, int b) {
  switch (op) {
    case PX_ADD: return px_add(p, a, b);
    case PX_SUB: return px_sub(p, a, b);
    case PX_MUL: return px_mul(p, a, b);
    case PX_DIV: return px_div(p, a, b);
    case PX_MOD: return px_mod(p, a, b);
    case PX_MIN: return px_min(p, a, b);
    default: return px_max(p, a, b);
  }
}

// A random index expression of the first stage, plain, and of the second, simplified.
static void grow(struct program *p, struct random *r, const int stages[2], int depth, int out[2]) {
  static const enum px_op ops[] = {PX_ADD, PX_ADD, PX_ADD, PX_MUL, PX_MUL, PX_DIV, PX_DIV,
                                   PX_MOD, PX_MOD, PX_SUB, PX_SUB, PX_MIN, PX_MAX};
  static const int64_t factors[] = {2, 3, 4, 6, 12, 48, 5};
  int left[2], right[2];
  uint32_t leaf = random_below(r, depth ? 10 : 5);
  int64_t value = (int64_t)random_below(r, 9) - 3;
  if (leaf < 5) {
    for (int i = 0; i < 2; i++)
      out[i] = leaf < 3 ? program_axis(p, stages[i], (int)leaf) : px_int(p, value);
    return;
  }
  enum px_op op = ops[random_below(r, 13)];
  grow(p, r, stages, depth - 1, left);
  grow(p, r, stages, depth - 1, right);
  int64_t factor = factors[random_below(r, 7)];
  if (op == PX_MUL || op == PX_DIV || op == PX_MOD) right[0] = right[1] = px_int(p, factor);
  if (leaf == 9) {  // x/m*m beside x%m, so that parts of one whole meet
    int m = px_int(p, factor), x = left[0], y = left[1];
    op = random_below(r, 2) ? PX_ADD : PX_SUB;
    left[0] = px_raw(p, PX_MUL, px_raw(p, PX_DIV, x, m, -1, 0, 0), m, -1, 0, 0);
    left[1] = px_mul(p, px_div(p, y, m), m);
    right[0] = px_raw(p, PX_MOD, x, m, -1, 0, 0);
    right[1] = px_mod(p, y, m);
  }
  out[0] = px_raw(p, op, left[0], right[0], -1, 0, 0);
  out[1] = simplified(p, op, left[1], right[1]);
}

// Simplified expressions have the same values, within the bounds that px_range gives.
static void simplification_keeps_values(void **state) {
  (void)state;
  struct random r;
  random_open(&r, 7, RANDOM_TEST, 0);
  for (int round = 0; round < 6000; round++) {
    canvas_context ctx = {.message = ""};
    struct program *p = program_new("p");
    int stages[2] = {new_stage(p, "Plain"), new_stage(p, "Simple")}, expr[2];
    double values[2][192], low = HUGE_VAL, high = -HUGE_VAL;
    struct interpreter *in;
    grow(p, &r, stages, 5, expr);
    for (int i = 0; i < 2; i++) {
      program_define(p, stages[i], px_raw(p, PX_REAL, expr[i], -1, -1, 0, 0));
      program_output(p, stages[i]);
    }
    if (interpreter_new(&ctx, p, NULL, NULL, &in)) fail_msg("%s", ctx.message);
    for (int i = 0; i < 2; i++) interpreter_elements(in, stages[i], 192, NULL, values[i]);
    char *text = print(p);
    struct px_range range = px_range(p, expr[0]);
    for (int i = 0; i < 192; i++) {
      CHECK(values[0][i] == values[1][i], text);
      low = fmin(low, values[0][i]);
      high = fmax(high, values[0][i]);
    }
    CHECK((double)range.low <= low && high <= (double)range.high, text);
    if (range.exact) CHECK((double)range.low == low && high == (double)range.high, text);
    CHECK(px_axes(p, expr[0]) == range.axes, text);
    free(text);
    interpreter_free(in);
    program_free(p);
  }
}

// A copy says the same, and goes on doing so when the original is gone: nodes of several users among it.
static void copies(void **state) {
  (void)state;
  struct random r;
  random_open(&r, 9, RANDOM_TEST, 0);
  for (int round = 0; round < 300; round++) {
    canvas_context ctx = {.message = ""};
    struct program *p = program_new("p");
    int stages[2] = {new_stage(p, "Plain"), new_stage(p, "Simple")}, expr[2];
    grow(p, &r, stages, 5, expr);
    for (int i = 0; i < 2; i++) {
      program_define(p, stages[i], px_raw(p, PX_REAL, expr[i], -1, -1, 0, 0));
      program_output(p, stages[i]);
    }
    p->winograd = 2 * (round % 3);
    char *text = print(p);
    struct program *copy = program_copy(p);
    program_free(p);
    char *copied = print(copy);
    CHECK_TEXT(copied, text, text);
    CHECK_INT(program_verify(&ctx, copy), CANVAS_OK, text);
    program_free(copy);
    free(copied);
    free(text);
  }
}

// A builder's mistake poisons the program, and the first one is told.
static void mistakes(void **state) {
  (void)state;
  static const char *const messages[] = {
      "'X' has 2 axes, the load gives 1",
      "index 'n' stands beside a value, write real(n)",
      "stage 'Z' uses an axis of 'Y'",
      "'Y' is defined twice",
      "stage 'Z' loads 'Z', which is not before it",
      "program 'p' has no output",
      "stage 'Z' has no expression",
      "tensor 77 does not exist",
      "stage 'Z' needs one reducer for all its reduction axes",
      "axis 'n' of 'Z' has size 0, the least is 1",
      "'2' is no name, a name is letters, digits and _, not a digit first",
      "a number of stage 'Z' is nan",
      "'X' is an input, not a stage",
      "'Y' is an output twice",
      "an index stands where a value is wanted, write real(...)",
      "'Z' has 33 axes, the most is 32",
      "'Z' has no axis 5",
      "'X' is no input of i32, only these have a range",
  };
  const char *axes[] = {"n", "c"};
  for (int i = 0; i < (int)(sizeof messages / sizeof *messages); i++) {
    canvas_context ctx = {.message = ""};
    struct program *p = program_new("p");
    int x = program_input(p, "X", PROGRAM_F32, 2, axes, (int64_t[]){2, 3});
    int y = program_stage(p, "Y", PROGRAM_F32, 1, axes, (int64_t[]){2});
    int n = program_axis(p, y, 0), c = program_reduce(p, y, REDUCE_SUM, "c", 3);
    program_define(p, y, px_load(p, x, 2, (int[]){n, c}));
    const char *name = i == 3 ? "Y" : i == 10 ? "2" : "Z";
    int z = program_stage(p, name, PROGRAM_F64, i == 15 ? 33 : 1, axes, (int64_t[]){i != 9});
    int m = program_axis(p, z, i == 16 ? 5 : 0), load = px_load(p, y, 1, &m);
    if (i == 0) load = px_load(p, x, 1, &m);
    if (i == 1) load = px_add(p, load, m);
    if (i == 2) load = px_load(p, y, 1, &n);
    if (i == 4) load = px_load(p, z, 1, &m);
    if (i == 7) load = px_load(p, 77, 1, &m);
    if (i == 8) program_reduce(p, z, REDUCE_SUM, "k", 2);
    if (i == 8) program_reduce(p, z, REDUCE_MAX, "l", 2);
    if (i == 11) load = px_number(p, NAN);
    if (i == 12) program_define(p, x, load);
    if (i == 17) program_input_range(p, x, 0, 5, false);
    if (i == 13) program_output(p, y), program_output(p, y);
    if (i == 14) program_define(p, z, m);
    if (i != 6) program_define(p, z, px_mul(p, load, px_int(p, 2)));
    if (i != 5) program_output(p, z);
    CHECK_INT(program_verify(&ctx, p), CANVAS_BAD_INPUT, messages[i]);
    CHECK_TEXT(ctx.message, messages[i], messages[i]);
    program_free(p);
  }
}

static void mutate(struct random *r, char *text) {
  static const char *const pieces[] = {"(",
                                       ")",
                                       "[",
                                       "]",
                                       "if ",
                                       " then ",
                                       " else ",
                                       "//",
                                       "sum ",
                                       "-",
                                       "1",
                                       "9999999999",
                                       "e308",
                                       "&&",
                                       "!",
                                       "\n",
                                       "X[",
                                       "i",
                                       ":",
                                       ",",
                                       "max(",
                                       "%0",
                                       "/3",
                                       "in ",
                                       "out ",
                                       "Y",
                                       "4611686018427387904",
                                       "1099511627776",
                                       "inf",
                                       "real("};
  size_t length = strlen(text), at = random_below(r, (uint32_t)length);
  const char *piece = pieces[random_below(r, sizeof pieces / sizeof *pieces)];
  switch (random_below(r, 3)) {
    case 0: text[at] = (char)(1 + random_below(r, 255)); break;
    case 1: memmove(text + at, text + at + 1, length - at); break;
    default:
      memmove(text + at + strlen(piece), text + at, length - at + 1);
      memcpy(text + at, piece, strlen(piece));
  }
}

// Some elements, where the inputs are small: they may be rejected, that is all.
static void evaluate_some(const struct program *p) {
  static const double zeros[4096];
  const double *inputs[] = {zeros, zeros, zeros, zeros};
  struct interpreter_limits limits = {.bytes = 1 << 20, .steps = 10000};
  struct interpreter *in;
  canvas_context ctx = {.message = ""};
  double values[8];
  int64_t count = program_elements(p, p->outputs.data[0]);
  if (p->inputs.count > 4) return;
  for (int i = 0; i < p->inputs.count; i++)
    if (program_elements(p, p->inputs.data[i]) > 4096) return;
  assert_int_equal(interpreter_new(&ctx, p, inputs, &limits, &in), CANVAS_OK);
  interpreter_elements(in, p->outputs.data[0], count < 8 ? count : 8, NULL, values);
  interpreter_free(in);
}

// Mutated programs are rejected with an error message, or print, parse and evaluate like others.
static void fuzz(void **state) {
  (void)state;
  struct random r;
  random_open(&r, 3, RANDOM_TEST, 0);
  const char *rounds = getenv("CANVAS_FUZZ");
  int limit = rounds ? atoi(rounds) : 20000, accepted = 0;
  uint32_t seeds = sizeof meanings / sizeof *meanings;
  for (int round = 0; round < limit; round++) {
    char text[2048] = CONV;
    uint32_t pick = random_below(&r, seeds + 1);
    if (pick < seeds)
      snprintf(text, sizeof text, "program p\nin X f32 [i:7]\n%s\nout Y\n", meanings[pick].stage);
    for (uint32_t edits = 1 + random_below(&r, 3); edits > 0; edits--) mutate(&r, text);
    canvas_context ctx = {.message = ""};
    struct program *p;
    if (program_parse(&ctx, text, strlen(text), &p) != CANVAS_OK) {
      CHECK(ctx.message[0], text);
      continue;
    }
    accepted++;
    char *once = print(p);
    struct program *q = parse(once);
    char *twice = print(q);
    CHECK_TEXT(twice, once, text);
    evaluate_some(q);
    free(once);
    free(twice);
    program_free(p);
    program_free(q);
  }
  CHECK(accepted > limit / 50, "the fuzzer accepts too few programs to mean much");
}

// ---- what is constant ----

// By name, upper case where it is.
static void constants(void **state) {
  static const char text[] =
      "canvas 1\nprogram p\nin X f32 [n:6]\nin W f32 [n:6] const\nin V f32 [e:9] const\n"
      "in ptr i32 [r:7] 0..9 rising\nin fix i32 [r:7] 0..9 rising const\nin ind i32 [n:6] 0..6\n"
      "in set i32 [n:6] 0..6 const\n"
      "WEIGHTS[n:6] = W[n] * 2\n"
      "ABOVE[n:6] = WEIGHTS[n] + W[set[n]]\n"
      "GATHERED[n:6] = W[5 - n]\n"
      "SUMS[r:6] = V[k] // sum k:fix[r]..fix[r+1]\n"
      "COUNTS[r:6] = 1 // sum k:fix[r]..fix[r+1]\n"
      "number[n:6] = real(n) * 2\n"
      "data[n:6] = X[n] * W[n]\n"
      "below[n:6] = ABOVE[n] + data[n]\n"
      "index[n:6] = W[ind[n]]\n"
      "bounds[r:6] = V[k] // sum k:ptr[r]..ptr[r+1]\n"
      "counts[r:6] = 1 // sum k:ptr[r]..ptr[r+1]\n"
      "out below, SUMS, COUNTS, GATHERED, number, index, bounds, counts\n";
  struct program *p = parse(text);
  bool *constant = program_constants(p);
  for (int i = 0; i < p->tensors.count; i++) {
    const struct program_tensor *t = &p->tensors.data[i];
    bool is = t->is_input ? t->constant : t->name[0] >= 'A' && t->name[0] <= 'Z';
    CHECK_INT(constant[i], is, t->name);
  }
  free(constant);
  program_free(p);
}

CHECK_MAIN(cmocka_unit_test(expressions_print), cmocka_unit_test(programs_print),
           cmocka_unit_test(programs_mean), cmocka_unit_test(indices), cmocka_unit_test(documented),
           cmocka_unit_test(bad_inputs), cmocka_unit_test(sorted_rows), cmocka_unit_test(bf16),
           cmocka_unit_test(nan_wins), cmocka_unit_test(bad_programs),
           cmocka_unit_test(deep_and_large_texts), cmocka_unit_test(chains),
           cmocka_unit_test(evaluation_limits), cmocka_unit_test(evaluation_ends),
           cmocka_unit_test(convolution), cmocka_unit_test(large_layer),
           cmocka_unit_test(simplification), cmocka_unit_test(schedules_simplify),
           cmocka_unit_test(simplification_keeps_values), cmocka_unit_test(copies),
           cmocka_unit_test(mistakes), cmocka_unit_test(constants), cmocka_unit_test(fuzz))
