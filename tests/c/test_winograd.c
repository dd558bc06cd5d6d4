// The edit `winograd`: what it takes, what it prints, why it refuses, and that it keeps what is computed.
#include "program/interpret.h"
#include "rewrite/program_edit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

static struct program *parse(const char *text) {
  canvas_context ctx = {.message = ""};
  struct program *p;
  if (program_parse(&ctx, text, strlen(text), &p)) fail_msg("%s\n%s", ctx.message, text);
  return p;
}

static void check_printed(const struct program *p, const char *printed, const char *name) {
  struct buf text = {0};
  program_print(p, &text);
  CHECK_TEXT(text.text, printed, name);
  buf_free(&text);
}

// ---- what is printed ----------------------------------------------------------------------------

#define SMALL                                                         \
  "in X f32 [h:5, w:4, c:2]\nin W f32 [kh:3, kw:3, c:2, k:6] const\n" \
  "P[h:7, w:6, c:2] = if 1 <= h && h < 6 && 1 <= w && w < 5 then X[h-1, w-1, c] else 0\n"
#define SMALL_CONV "Y[h:5, w:4, k:6] = P[h+kh, w+kw, c] * W[kh, kw, c, k] // sum kh:3, kw:3, c:2\n"

static void stages_print(void **state) {
  (void)state;
  canvas_context ctx = {.message = ""};
  const char *edit = "winograd Y 2";
  struct program *p = parse("canvas 1\nprogram p\n" SMALL SMALL_CONV "out Y\n"), *q;
  if (program_edit(&ctx, p, edit, strlen(edit), &q)) fail_msg("%s", ctx.message);
  check_printed(
      q,
      "canvas 1\nprogram p winograd 2\n"
      "in X f32 [h:5, w:4, c:2]\nin W f32 [kh:3, kw:3, c:2, k:6] const\n"
      "Y_WR[a:4, kw:3, c:2, k:6] = if a == 0 then W[0, kw, c, k] else if a == 1 then 0.5 * "
      "(W[0, kw, c, k] + W[2, kw, c, k]) + 0.5 * W[1, kw, c, k] else if a == 2 then 0.5 * "
      "(W[0, kw, c, k] + W[2, kw, c, k]) - 0.5 * W[1, kw, c, k] else W[2, kw, c, k]\n"
      "Y_WT[a:4, b:4, c:2, k:6] = if b == 0 then Y_WR[a, 0, c, k] else if b == 1 then 0.5 * "
      "(Y_WR[a, 0, c, k] + Y_WR[a, 2, c, k]) + 0.5 * Y_WR[a, 1, c, k] else if b == 2 then 0.5 * "
      "(Y_WR[a, 0, c, k] + Y_WR[a, 2, c, k]) - 0.5 * Y_WR[a, 1, c, k] else Y_WR[a, 2, c, k]\n"
      "Y_P[h:8, w:6, c:2] = if 1 <= h && h < 6 && 1 <= w && w < 5 then X[h-1, w-1, c] else 0\n"
      "Y_R[h:3, w:6, a:4, c:2] = if a == 0 then Y_P[h*2, w, c] - Y_P[h*2+2, w, c] else if a == 1 "
      "then Y_P[h*2+1, w, c] + Y_P[h*2+2, w, c] else if a == 2 then Y_P[h*2+2, w, c] - "
      "Y_P[h*2+1, w, c] else Y_P[h*2+3, w, c] - Y_P[h*2+1, w, c]\n"
      "Y_T[a:4, b:4, h:3, w:2, c:2] = if b == 0 then Y_R[h, w*2, a, c] - Y_R[h, w*2+2, a, c] else "
      "if b == 1 then Y_R[h, w*2+1, a, c] + Y_R[h, w*2+2, a, c] else if b == 2 then "
      "Y_R[h, w*2+2, a, c] - Y_R[h, w*2+1, a, c] else Y_R[h, w*2+3, a, c] - Y_R[h, w*2+1, a, c]\n"
      "Y_M[a:4, b:4, h:3, w:2, k:6] = Y_T[a, b, h, w, c] * Y_WT[a, b, c, k] // sum c:2\n"
      "Y_S[h:3, w:2, i:2, b:4, k:6] = if i == 0 then Y_M[0, b, h, w, k] + (Y_M[1, b, h, w, k] + "
      "Y_M[2, b, h, w, k]) else Y_M[1, b, h, w, k] - Y_M[2, b, h, w, k] + Y_M[3, b, h, w, k]\n"
      "Y[h:5, w:4, k:6] = if w%2 == 0 then Y_S[h/2, w/2, h%2, 0, k] + (Y_S[h/2, w/2, h%2, 1, k] + "
      "Y_S[h/2, w/2, h%2, 2, k]) else Y_S[h/2, w/2, h%2, 1, k] - Y_S[h/2, w/2, h%2, 2, k] + "
      "Y_S[h/2, w/2, h%2, 3, k]\nout Y\n",
      edit);
  program_free(p);
  program_free(q);
}

// ---- what is computed ---------------------------------------------------------------------------

#define NHWC   "in X f32 [n:2, h:5, w:7, c:3]\n"
#define NCHW   "in X f32 [n:2, c:3, h:5, w:7]\n"
#define HWIO   "in W f32 [kh:3, kw:3, c:3, k:4] const\n"
#define OIHW   "in W f32 [k:4, c:3, kh:3, kw:3]\n"
#define SUM    " // sum c:3, kh:3, kw:3\n"
#define WITHIN "if 1 <= h+kh && h+kh < 6 && 1 <= w+kw && w+kw < 8 then "
#define PAD    "if 1 <= h && h < 6 && 1 <= w && w < 8 then "

static const struct {
  const char *name, *text;
} convolutions[] = {
    {"image n h w c, weights h w i o",
     NHWC HWIO "P[n:2, h:7, w:9, c:3] = " PAD "X[n, h-1, w-1, c] else 0\n"
               "Y[n:2, h:5, w:7, k:4] = P[n, h+kh, w+kw, c] * W[kh, kw, c, k]" SUM},
    {"image n h w c, weights o i h w",
     NHWC OIHW "P[n:2, h:7, w:9, c:3] = " PAD "X[n, h-1, w-1, c] else 0\n"
               "Y[n:2, h:5, w:7, k:4] = W[k, c, kh, kw] * P[n, h+kh, w+kw, c]" SUM},
    {"image n c h w",
     NCHW OIHW "P[n:2, c:3, h:7, w:9] = " PAD "X[n, c, h-1, w-1] else 0\n"
               "Y[n:2, k:4, h:5, w:7] = P[n, c, h+kh, w+kw] * W[k, c, kh, kw]" SUM},
    {"image n c h w, weights h w i o",
     NCHW HWIO "Y[n:2, k:4, h:3, w:5] = X[n, c, h+kh, w+kw] * W[kh, kw, c, k]" SUM},
    {"the padding in the load", NCHW OIHW "Y[n:2, k:4, h:5, w:7] = (" WITHIN
                                          "X[n, c, h+kh-1, w+kw-1] else 0) * W[k, c, kh, kw]" SUM},
    {"the padding around the product", NHWC HWIO
     "Y[n:2, h:5, w:7, k:4] = " WITHIN "X[n, h+kh-1, w+kw-1, c] * W[kh, kw, c, k] else 0" SUM},
    {"the padding at two sides", NHWC HWIO
     "Y[n:2, h:4, w:6, k:4] = (if 1 <= h+kh && w+kw < 7 then X[n, h+kh-1, w+kw, c] else 0)"
     " * W[kh, kw, c, k]" SUM},
    {"no padding, whole tiles",
     "in X f32 [n:1, h:10, w:6, c:3]\n" HWIO
     "Y[n:1, h:8, w:4, k:4] = X[n, h+kh, w+kw, c] * W[kh, kw, c, k]" SUM},
    {"one place",
     "in X f32 [h:3, w:3, c:3]\n" HWIO "Y[h:1, w:1, k:4] = X[h+kh, w+kw, c] * W[kh, kw, c, k]" SUM},
    {"one row, columns first",
     "in X f32 [h:3, w:9, c:3]\n" HWIO
     "Y[w:7, k:4, h:1] = X[h+kh, w+kw, c] * W[kh, kw, c, k] // sum kw:3, kh:3, c:3\n"},
    {"groups of an axis of their own",
     "in X f32 [n:2, h:7, w:9, g:2, c:3]\nin W f32 [g:2, kh:3, kw:3, c:3, k:4]\n"
     "Y[n:2, h:5, w:7, g:2, k:4] = X[n, h+kh, w+kw, g, c] * W[g, kh, kw, c, k]" SUM},
    {"groups of output channels",
     "in X f32 [n:2, c:6, h:7, w:9]\nin W f32 [k:8, c:3, kh:3, kw:3]\n"
     "Y[n:2, k:8, h:5, w:7] = X[n, k/4*3+c, h+kh, w+kw] * W[k, c, kh, kw]" SUM},
    {"blocks of channels",
     "in X f32 [n:2, co:2, h:7, w:9, ci:3]\nin W f32 [ko:2, co:2, kh:3, kw:3, ci:3, ki:4]\n"
     "Y[n:2, ko:2, h:5, w:7, ki:4] = X[n, co, h+kh, w+kw, ci] * W[ko, co, kh, kw, ci, ki]"
     " // sum co:2, kh:3, kw:3, ci:3\n"},
    {"rows from behind, doubled values",
     NHWC HWIO "Y[n:2, h:3, w:5, k:4] = 2 * X[n, 4-h-kh, w+kw, c] * W[kh, kw, c, k]" SUM},
    {"a window of three axes",
     "in X f32 [d:4, h:7, w:9, c:3]\nin W f32 [kd:3, kh:3, kw:3, c:3, k:4]\n"
     "Y[d:2, h:5, w:7, k:4] = X[d+kd, h+kh, w+kw, c] * W[kd, kh, kw, c, k]"
     " // sum kd:3, kh:3, kw:3, c:3\n"},
    {"axes that are called a, b and i",
     "in X f32 [i:7, b:9, a:3]\nin W f32 [p:3, q:3, a:3, k:4]\n"
     "Y[i:5, b:7, k:4] = X[i+p, b+q, a] * W[p, q, a, k] // sum p:3, q:3, a:3\n"},
    {"fp64",
     "in X f64 [h:7, w:9, c:3]\nin W f64 [kh:3, kw:3, c:3, k:4]\n"
     "Y f64 [h:5, w:7, k:4] = X[h+kh, w+kw, c] * W[kh, kw, c, k]" SUM},
    {"two convolutions, and what follows", NHWC HWIO
     "in V f32 [kh:3, kw:3, c:4, k:2]\n"
     "A[n:2, h:5, w:7, k:4] = (" WITHIN "X[n, h+kh-1, w+kw-1, c] else 0) * W[kh, kw, c, k]" SUM
     "B[n:2, h:5, w:7, k:4] = max(A[n, h, w, k], 0)\n"
     "Y[n:2, h:3, w:5, k:2] = B[n, h+kh, w+kw, c] * V[kh, kw, c, k] // sum c:4, kh:3, kw:3\n"},
};

// All elements of the output on seeded inputs.
static double *evaluate(const struct program *p, int64_t *count) {
  canvas_context ctx = {.message = ""};
  double *inputs[16], *out;
  struct interpreter *in;
  for (int i = 0; i < p->inputs.count; i++) {
    inputs[i] = malloc((size_t)program_elements(p, p->inputs.data[i]) * sizeof(double));
    program_fill(p, i, 5, inputs[i]);
  }
  *count = program_elements(p, p->outputs.data[0]);
  out = malloc((size_t)*count * sizeof *out);
  if (interpreter_new(&ctx, p, (const double *const *)inputs, NULL, &in))
    fail_msg("%s", ctx.message);
  if (interpreter_elements(in, p->outputs.data[0], *count, NULL, out)) fail_msg("%s", ctx.message);
  interpreter_free(in);
  for (int i = 0; i < p->inputs.count; i++) free(inputs[i]);
  return out;
}

static void check_same(const struct program *p, const struct program *q, const char *name) {
  int64_t count, again;
  double *before = evaluate(p, &count), *after = evaluate(q, &again);
  CHECK_INT(again, count, name);
  for (int64_t i = 0; i < count; i++)
    if (!(fabs(before[i] - after[i]) <= 1e-12 * 100))
      fail_msg("%s: element %lld is %.17g and then %.17g", name, (long long)i, before[i], after[i]);
  free(before);
  free(after);
}

static void values_stay(void **state) {
  (void)state;
  CHECK_ROWS (convolutions, row) {
    struct buf text = {0}, printed = {0};
    buf_printf(&text, "canvas 1\nprogram p\n%sout Y\n", row->text);
    struct program *p = parse(text.text);
    for (int tile = 2; tile <= 4; tile += 2) {
      struct program *q = program_with_winograd(p, tile);
      if (!q) fail_msg("%s is taken for no convolution", row->name);
      CHECK_INT(q->winograd, tile, row->name);
      check_same(p, q, row->name);
      printed.length = 0;
      program_print(q, &printed);
      struct program *again = parse(printed.text);
      check_printed(again, printed.text, row->name);
      program_free(again);
      program_free(q);
    }
    program_free(p);
    buf_free(&printed);
    buf_free(&text);
  }
}

// The product that is left has every channel, and an image's transform is there once for all of a group.
static void groups_are_not_repeated(void **state) {
  (void)state;
  struct program *p = parse(
      "program p\nin X f32 [c:6, h:6, w:6]\nin W f32 [k:8, c:3, kh:3, kw:3]\n"
      "Y[k:8, h:4, w:4] = X[k/4*3+c, h+kh, w+kw] * W[k, c, kh, kw] // sum c:3, kh:3, kw:3\nout "
      "Y\n");
  struct program *q = program_with_winograd(p, 4);
  CHECK_INT(program_elements(q, program_find(q, "Y_T")), 6 * 6 * 2 * 3, "elements of the image");
  program_free(q);
  program_free(p);
}

// ---- what is refused ----------------------------------------------------------------------------

#define GIVEN "in X f32 [h:9, w:9, c:4]\nin W f32 [kh:3, kw:3, c:4, k:4]\n"
#define NONE  "line 1, column 10: 'Y' has no 3x3 window along two of its axes"
#define STRIDE \
  "line 1, column 10: 'Y' has a window with a stride or a dilation, Winograd needs neither"
#define PRODUCTS "line 1, column 10: 'Y' is not a sum of products of an image and weights"

static const struct {
  const char *edit, *stage, *message;
} refused[] = {
    {"winograd", "Y[h:9] = X[h, 0, 0]\n",
     "line 1, column 9: expected the convolution, found the end of the text"},
    {"winograd Q 4", "Y[h:9] = X[h, 0, 0]\n", "line 1, column 10: the program has no tensor 'Q'"},
    {"winograd Y", "Y[h:9] = X[h, 0, 0]\n",
     "line 1, column 11: expected the rows of a tile, 2 or 4, found the end of the text"},
    {"winograd Y 3", "Y[h:9] = X[h, 0, 0]\n",
     "line 1, column 12: Winograd's convolution has tiles of 2x2 and of 4x4, not of 3"},
    {"winograd X 4", "Y[h:9] = X[h, 0, 0]\n",
     "line 1, column 10: 'X' is an input, it computes nothing"},
    {"winograd Y 4", "Y[h:9] = X[h, 0, 0]\n", PRODUCTS},
    {"winograd Y 4", "Y[h:9] = X[h, 0, c] * X[0, h, c] // max c:4\n", PRODUCTS},
    {"winograd Y 4", "Y[h:9] = X[h, 0, c] + X[0, h, c] // sum c:4\n", PRODUCTS},
    {"winograd Y 4", "Y[h:9, k:4] = X[h, 0, c] * W[0, 0, c, k] // sum c:4\n", NONE},
    {"winograd Y 4", "Y[h:7, k:4] = X[h+kh, 0, c] * W[kh, 0, c, k] // sum c:4, kh:3\n", NONE},
    {"winograd Y 4",
     "Y[h:8, w:8, k:4] = X[h+kh, w+kw, c] * W[kh, kw, c, k] // sum c:4, kh:2, kw:2\n", NONE},
    {"winograd Y 4",
     "Y[h:7, w:4, k:4] = X[h+kh, w*2+kw, c] * W[kh, kw, c, k] // sum c:4, kh:3, kw:3\n", STRIDE},
    {"winograd Y 4",
     "Y[h:5, w:5, k:4] = X[h+kh*2, w+2*kw, c] * W[kh, kw, c, k] // sum c:4, kh:3, kw:3\n", STRIDE},
    {"winograd Y 4",
     "Y[h:7, w:7, k:4] = X[h+kh, (w+kw)%5, c] * W[kh, kw, c, k] // sum c:4, kh:3, kw:3\n", NONE},
    {"winograd Y 4",
     "Y[h:7, w:7, k:4] = X[h+kh, w+kw, c] * W[h%3, kw, c, k] // sum c:4, kh:3, kw:3\n", NONE},
    {"winograd Y 4", "Y[h:7, w:7, k:4] = X[h+kh, w+kw, k] * W[kh, kw, k, k] // sum kh:3, kw:3\n",
     "line 1, column 10: 'Y' sums over no channels of image times weights, so Winograd would "
     "take more work"},
    {"winograd Y 4",
     "Y[h:7, w:7, k:4] = X[h+kh, w+kw, c] * W[kh, kw, c, k] // sum kh:3, kw:3, c:0..k+1\n",
     "line 1, column 10: 'Y' has a reduction whose bounds depend on data"},
    {"winograd Y 4 as Z",
     "Y[h:7, w:7, k:4] = X[h+kh, w+kw, c] * W[kh, kw, c, k] // sum c:4, kh:3, kw:3\n",
     "line 1, column 14: expected the end of the edit, found 'as'"},
};

static void others_are_refused(void **state) {
  (void)state;
  CHECK_ROWS (refused, row) {
    canvas_context ctx = {.message = ""};
    struct buf text = {0};
    buf_printf(&text, "program p\n%s%sout Y\n", GIVEN, row->stage);
    struct program *p = parse(text.text), *q;
    CHECK_INT(program_edit(&ctx, p, row->edit, strlen(row->edit), &q), CANVAS_BAD_INPUT,
              row->stage);
    CHECK_TEXT(ctx.message, row->message, row->stage);
    bool taken = strcmp(row->edit, "winograd Y 4 as Z") == 0;
    q = program_with_winograd(p, 4);
    CHECK((q != NULL) == taken, row->stage);
    program_free(q);
    program_free(p);
    buf_free(&text);
  }
}

// ---- the mark -------------------------------------------------------------------------------------

// It stays whatever is edited after it, and is the largest tile.
static void the_mark_stays(void **state) {
  (void)state;
  canvas_context ctx = {.message = ""};
  static const char *const edits[] = {"winograd Y 4", "cache Y as Z", "inline Y_P",
                                      "pack Y_WT as U [k/2, a, b, c, k%2]"};
  struct program *p = parse("program p\n" SMALL SMALL_CONV "out Y\n"), *q, *given = p;
  for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
    if (program_edit(&ctx, p, edits[i], strlen(edits[i]), &q)) fail_msg("%s", ctx.message);
    CHECK_INT(q->winograd, 4, edits[i]);
    if (p != given) program_free(p);
    p = q;
  }
  check_same(given, p, "after all of them");
  program_free(p);
  program_free(given);
  p = parse("program p winograd 4\n" SMALL SMALL_CONV "out Y\n");
  q = program_with_winograd(p, 2);
  CHECK_INT(q->winograd, 4, "the larger one");
  program_free(p);
  program_free(q);
  const char *bad = "program p winograd 3\n";
  CHECK_INT(program_parse(&ctx, bad, strlen(bad), &p), CANVAS_BAD_INPUT, bad);
  CHECK_TEXT(ctx.message,
             "line 1, column 20: expected the tile of Winograd's convolution, 2 or 4, found '3'",
             bad);
}

CHECK_MAIN(cmocka_unit_test(stages_print), cmocka_unit_test(values_stay),
           cmocka_unit_test(groups_are_not_repeated), cmocka_unit_test(others_are_refused),
           cmocka_unit_test(the_mark_stays))
