// The operator library: rows that hold together, programs that read back, hostile arguments. What the
// programs compute is compared with torch in tests/python/test_operators.py.
#include "check.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "operator/operator.h"

static canvas_context ctx;

/* A call of each operator, with every argument that it takes. */
static const char *const calls[] = {
    "zero_pad1d batch=2 channels=3 length=4 padding=1x2",
    "zero_pad2d batch=2 channels=3 height=4 width=5 padding=1x2x3x4",
    "conv1d batch=2 in_channels=4 length=9 out_channels=6 kernel=3 bias=1 stride=2 padding=1 "
    "dilation=2 groups=2 dtype=f64",
    "conv_transpose1d batch=2 in_channels=4 length=9 out_channels=6 kernel=3 bias=1 stride=2 "
    "padding=1 output_padding=1 groups=2 dilation=2",
    "conv2d_nchw batch=2 in_channels=4 height=7 width=8 out_channels=6 kernel=3x2 bias=1 "
    "stride=2x1 padding=1x0 dilation=1x2 groups=2",
    "conv2d_nchwc batch=2 in_channels=8 height=7 width=8 in_block=2 out_channels=12 out_block=3 "
    "kernel=3 bias=1 stride=2 padding=1 groups=2",
    "conv_transpose2d_nchw batch=2 in_channels=4 height=5 width=6 out_channels=6 kernel=3 bias=1 "
    "stride=2x3 padding=1 output_padding=1x2 groups=2",
    "depthwise_conv2d_nchw batch=2 in_channels=3 height=7 width=8 factor=2 kernel=3 bias=1 "
    "stride=2 "
    "padding=1",
    "conv2d_nhwc batch=2 height=7 width=8 in_channels=4 out_channels=6 kernel=3 bias=1 padding=1 "
    "groups=2 weights=hwio dtype=bf16",
    "im2col_nchw batch=2 in_channels=4 height=5 width=6 kernel=3 padding=1 groups=2",
    "im2col_nhwc batch=2 height=5 width=6 in_channels=4 kernel=3 padding=1",
    "gemm_conv2d_nchw batch=2 in_channels=4 height=5 width=6 out_channels=2 kernel=3 groups=2 "
    "bias=1",
    "gemm_conv2d_nhwc batch=2 height=5 width=6 in_channels=4 out_channels=2 kernel=3 bias=1",
    "gemv m=3 k=4 transpose_a=1",
    "gemm m=3 k=4 n=5 transpose_a=1 transpose_b=1",
    "batch_gemm batch=2 m=3 k=4 n=5 transpose_b=1",
    "linear batch=2 in_features=3 out_features=4 bias=1",
    "bsr_gemm m=3 k=8 n=12 blocks=5 block_rows=3 block_columns=2 bias=1",
    "bsr_conv2d_nhwc batch=2 height=5 width=6 in_channels=4 out_channels=8 kernel=3 blocks=7 "
    "block_rows=4 block_columns=2 bias=1 stride=2 padding=1",
    "mean shape=2x3x4 dim=0,-1",
    "softmax shape=2x3x4 dim=1",
    "max_pool1d batch=2 channels=3 length=9 kernel=3 stride=2 padding=1 dilation=2 ceil_mode=1",
    "max_pool2d_nchw channels=3 height=7 width=8 kernel=3 stride=2 padding=1 ceil_mode=1",
    "max_pool2d_nhwc height=7 width=8 channels=3 kernel=3x2 stride=2 padding=1 dilation=1x2",
    "avg_pool1d batch=2 channels=3 length=9 kernel=3 stride=2 padding=1 ceil_mode=1",
    "avg_pool2d_nchw channels=3 height=7 width=8 kernel=3 stride=2 padding=1 count_include_pad=0",
    "avg_pool2d_nhwc height=7 width=8 channels=3 kernel=3 stride=2 padding=1 ceil_mode=1",
};
enum { CALLS = sizeof calls / sizeof *calls, TEXT = 512 };

/* The program of "NAME ARGUMENT=VALUE ...". */
static canvas_status call(const char *text, struct program **out) {
  char name[64];
  size_t length = strcspn(text, " ");
  if (length >= sizeof name) length = sizeof name - 1;
  memcpy(name, text, length);
  name[length] = '\0';
  return operator_program(&ctx, name, text + length, strlen(text + length), out);
}

static char *print(const struct program *p) {
  struct buf text = {0};
  program_print(p, &text);
  return buf_take(&text);
}

/* Every word of a row is an argument, every default one of its values. */
static void rows_hold_together(void **state) {
  for (int i = 0; i < operator_count; i++) {
    const struct operator_row *row = &operator_rows[i];
    struct argument values[OPERATOR_ARGUMENTS_COUNT];
    struct row_argument a;
    char needed[TEXT] = "";
    int count = 0;
    for (; operator_argument_at(row, count, &a); count++) {
      CHECK((int)a.argument >= 0, row->arguments);
      if (!a.otherwise) sprintf(needed + strlen(needed), " %s=1", argument_rows[a.argument].name);
    }
    CHECK(count > 1 && *needed, row->name);
    CHECK_INT(operator_read(&ctx, row, needed, strlen(needed), values), CANVAS_OK, ctx.message);
    for (int k = 0; operator_argument_at(row, k, &a); k++)
      CHECK(values[a.argument].count > 0, argument_rows[a.argument].name);
  }
}

static void programs_read_back(void **state) {
  CHECK_INT(CALLS, operator_count, "a call of each operator");
  for (int i = 0; i < CALLS; i++) {
    struct program *p, *again;
    CHECK_INT(call(calls[i], &p), CANVAS_OK, ctx.message);
    CHECK(strncmp(calls[i], p->name, strlen(p->name)) == 0, calls[i]);
    char *text = print(p);
    CHECK_INT(program_parse(&ctx, text, strlen(text), &again), CANVAS_OK, ctx.message);
    char *printed = print(again);
    CHECK_TEXT(printed, text, calls[i]);
    free(text);
    free(printed);
    program_free(p);
    program_free(again);
  }
}

/* One word of a call gets another value: mostly nonsense, sometimes a size near the limits. */
static void spoil(struct random *r, const char *line, char out[TEXT]) {
  static const char *const values[] = {
      "=0",        "=1",     "=2",    "=3x5",     "=16777216",
      "=16777217", "=-1",    "=7x",   "=1x2x3x4", "=16777213",
      "=f64",      "=",      "",      "=,",       "=16777216x16777216",
      "=bf16",     "=65536", "=12345"};
  int words = 0, word = 0;
  for (const char *c = line; *c; c++) words += *c == ' ';
  int chosen = 1 + (int)random_below(r, (uint32_t)words);
  const char *value = values[random_below(r, sizeof values / sizeof *values)];
  char *end = out;
  for (const char *c = line; *c; c++) {
    word += *c == ' ';
    if (word == chosen && *c == '=') {
      end += sprintf(end, "%s", value);
      c += strcspn(c, " ");
      if (!*c) break;
      word++;
    }
    *end++ = *c;
  }
  *end = '\0';
}

/* A program that verifies, or one sentence; under sanitizers nothing overflows on the way. */
static void hostile_arguments(void **state) {
  struct random r;
  char text[TEXT], twice[TEXT];
  int good = 0, bad = 0;
  for (uint64_t i = 0; i < 20000; i++) {
    struct program *p = NULL;
    random_open(&r, 5, RANDOM_TEST, i);
    spoil(&r, calls[i % CALLS], text);
    if (i % 3 == 0) spoil(&r, text, twice), strcpy(text, twice);
    ctx.message[0] = '\0';
    if (call(text, &p) == CANVAS_OK) {
      good++;
      CHECK_INT(program_verify(&ctx, p), CANVAS_OK, text);
      program_free(p);
    } else {
      bad++;
      CHECK(ctx.message[0] && !strchr(ctx.message, '\n'), text);
    }
  }
  CHECK(good > 2000 && bad > 2000, "both happen");
}

static void names_and_bytes(void **state) {
  struct program *p;
  CHECK_INT(operator_program(&ctx, "gemm", "m=1 \0k=1", 8, &p), CANVAS_BAD_INPUT, "a NUL");
  CHECK_INT(operator_program(&ctx, "gemm", "m=1 k=1\nn=1 # a comment", 22, &p), CANVAS_OK, "lines");
  program_free(p);
  CHECK_INT(operator_program(&ctx, "", "", 0, &p), CANVAS_BAD_INPUT, "no name");
  CHECK_INT(operator_program(&ctx, "gem\xc3\xbc", "", 0, &p), CANVAS_BAD_INPUT, "not ASCII");
  CHECK_TEXT(ctx.message, "no operator has such a name, 'canvas operator' lists them", "not ASCII");
}

CHECK_MAIN(cmocka_unit_test(rows_hold_together), cmocka_unit_test(programs_read_back),
           cmocka_unit_test(hostile_arguments), cmocka_unit_test(names_and_bytes))
