// Targets: their two texts, what is rejected, what the layers cost.
#include "check.h"

#include <stdio.h>

#include "kernel/pack.h"

// The targets in their long form without the heading, or the error message why not.
static const char *read_targets(const char *text) {
  static char answer[4096];
  canvas_context ctx = {""};
  struct targets t;
  struct buf out = {0};
  if (targets_parse(&ctx, text, strlen(text), &t) == CANVAS_OK) {
    targets_print(&t, &out);
    snprintf(answer, sizeof answer, "%s", strchr(out.text, '\n') + 1);
    targets_free(&t);
  } else {
    snprintf(answer, sizeof answer, "%s", ctx.message);
  }
  buf_free(&out);
  return answer;
}

static const struct {
  const char *text, *expected;
} texts[] = {
    // the long form
    {"layer1.0.conv1 64 64 56 56 3 1 1", "layer1.0.conv1 64 64 56 56 3 1 1\n"},
    {"a,64,128,56,28,3x1,2", "a 64 128 56 28 3x1 2 1\n"},
    {"a, 64 ,128, 56 28,5", "a 64 128 56 28 5 1 1\n"},
    {"# ResNet\n\n a 64 64 56 56 3 # first; of two\n\tb 128 64 7 7 1 2 64\r\n",
     "a 64 64 56 56 3 1 1\nb 128 64 7 7 1 2 64\n"},
    {"0 64 64 56 56 3\n1.0 64 64 56 56 3", "0 64 64 56 56 3 1 1\n1.0 64 64 56 56 3 1 1\n"},
    {"3 64 64 56 56 1x1", "3 64 64 56 56 1 1 1\n"},
    {"a 16777216 1 1 1 1", "a 16777216 1 1 1 1 1 1\n"},
    // the short form
    {"64,56,56", "t0 64 64 56 56 3 1 1\n"},
    {"64,56,56;128,28,28;", "t0 64 64 56 56 3 1 1\nt1 128 128 28 28 3 1 1\n"},
    {" 64 56 56 ; 128, 28, 28 # two\n8,4,4",
     "t0 64 64 56 56 3 1 1\nt1 128 128 28 28 3 1 1\n"
     "t2 8 8 4 4 3 1 1\n"},
    {"1,1,1;1,1,1;1,1,1;1,1,1;1,1,1;1,1,1;1,1,1;1,1,1;1,1,1;1,1,1;1,1,1",
     "t0 1 1 1 1 3 1 1\nt1 1 1 1 1 3 1 1\nt2 1 1 1 1 3 1 1\nt3 1 1 1 1 3 1 1\nt4 1 1 1 1 3 1 1\n"
     "t5 1 1 1 1 3 1 1\nt6 1 1 1 1 3 1 1\nt7 1 1 1 1 3 1 1\nt8 1 1 1 1 3 1 1\nt9 1 1 1 1 3 1 1\n"
     "t10 1 1 1 1 3 1 1\n"},
    // nothing, too little, too much
    {"",
     "no targets are given, write 'name C_in C_out H W kernel stride groups' for each layer or "
     "'C,H,W;C,H,W'"},
    {" # only this\n\n",
     "no targets are given, write 'name C_in C_out H W kernel stride groups' for "
     "each layer or 'C,H,W;C,H,W'"},
    {"a 64 64 56 56", "line 1, column 14: expected kernel, found the end of the text"},
    {"a 64 64\n", "line 1, column 8: expected H, found the end of the line"},
    {"a", "line 1, column 2: expected C_in, found the end of the text"},
    {"a,64,,56,56,3", "line 1, column 6: expected C_out, found ','"},
    {"a,64,64,56,56,3,", "line 1, column 17: expected stride, found the end of the text"},
    {"a 64 64 56 56 3 1 1 1 1 1",
     "line 1, column 25: expected the end of the line after 'name C_in C_out "
     "H W kernel stride groups dilation projected', found '1'"},
    {"a 64 96 56 56 3 1 1 1 1", "a 64 96 56 56 3 1 1 1 1\n"},
    {"a 64 96 56 56 3 1 1 2 1", "a 64 96 56 56 3 1 1 2 1\n"},
    {"a 64 96 56 56 3 1 1 2 0", "a 64 96 56 56 3 1 1 2\n"},
    {"a 64 96 56 56 3 1 1 1 2", "line 1, column 23: projected '2' is neither 0 nor 1"},
    {"a 64 96 56 56 3 1 1 1 no", "line 1, column 23: projected 'no' is neither 0 nor 1"},
    {",a 64 64 56 56 3", "line 1, column 1: expected the name of a layer, found ','"},
    {"64,56", "line 1, column 6: expected W, found the end of the text"},
    {"64", "line 1, column 3: expected H, found the end of the text"},
    {";64,56,56", "line 1, column 1: expected C, found ';'"},
    {"64,56,56;;64,56,56", "line 1, column 10: expected C, found ';'"},
    {"64,56,56,3;64,56,56",
     "line 1, column 9: expected the end of the line or ';' after 'C,H,W', "
     "found ','"},
    // numbers
    {"a 0 64 56 56 3", "line 1, column 3: C_in '0' is not a whole number in 1..16777216"},
    {"a 64 -64 56 56 3", "line 1, column 6: C_out '-64' is not a whole number in 1..16777216"},
    {"a 64 64 56 1099511627776 3",
     "line 1, column 12: W '1099511627776' is not a whole number in 1..16777216"},
    {"a 64 64 56 99999999999999999999999999 3",
     "line 1, column 12: W '99999999999999999999999999' is not a whole number in 1..16777216"},
    {"a 64 64 5.6 56 3", "line 1, column 9: H '5.6' is not a whole number in 1..16777216"},
    {"a 64 64 56 56 3 1e1", "line 1, column 17: stride '1e1' is not a whole number in 1..16777216"},
    {"a 64 64 56 56 3 0", "line 1, column 17: stride '0' is not a whole number in 1..16777216"},
    {"name C_in C_out H W kernel",
     "line 1, column 6: C_in 'C_in' is not a whole number in 1..16777216"},
    {"64,-1,56", "line 1, column 4: H '-1' is not a whole number in 1..16777216"},
    {"-64,56,56", "line 1, column 1: C '-64' is not a whole number in 1..16777216"},
    {"64,56,1e3", "line 1, column 7: W '1e3' is not a whole number in 1..16777216"},
    {"64,56,56;0,1,1", "line 1, column 10: C '0' is not a whole number in 1..16777216"},
    // kernels
    {"a 64 64 56 56 4", "a 64 64 56 56 4 1 1\n"},
    {"a 64 64 56 56 3x2", "a 64 64 56 56 3x2 1 1\n"},
    {"a 64 64 56 56 3x", "line 1, column 15: kernel '3x' is not a size such as 3 or 3x1"},
    {"a 64 64 56 56 x3", "line 1, column 15: kernel 'x3' is not a size such as 3 or 3x1"},
    {"a 64 64 56 56 3x3x3", "line 1, column 15: kernel '3x3x3' is not a size such as 3 or 3x1"},
    {"a 64 64 56 56 0", "line 1, column 15: kernel '0' is not a size such as 3 or 3x1"},
    // channels, groups
    {"a 64 96 56 56 3", "a 64 96 56 56 3 1 1\n"},
    {"a 64 96 56 56 3 1 2 4", "a 64 96 56 56 3 1 2 4\n"},
    {"a 64 96 56 56 3 1 2 1", "a 64 96 56 56 3 1 2\n"},
    {"a 64 96 56 56 3 1 2 0",
     "line 1, column 21: dilation '0' is not a whole number in 1..16777216"},
    {"a 64 64 56 56 3 1 3", "line 1, column 1: target 'a': groups 3 must divide C_in and C_out"},
    {"a 64 128 56 56 3 1 128",
     "line 1, column 1: target 'a': groups 128 must divide C_in and C_out"},
    {"ok 1 1 1 1 1\nbig 16777216 16777216 16777216 16777216 3",
     "line 2, column 1: target 'big' is too large, a layer has at most 2^50 multiply-accumulates "
     "and "
     "2^40 elements"},
    {"wide 16777216 16777216 16777216 1 1 16777215",
     "line 1, column 1: target 'wide' is too large, a layer has at most 2^50 multiply-accumulates "
     "and "
     "2^40 elements"},
    // names
    {"a 8 8 4 4 3\nb 8 8 4 4 3\n a 8 8 4 4 3",
     "line 3, column 2: target 'a' stands twice, give every layer its own name"},
    {"a'b 8 8 4 4 3",
     "line 1, column 1: name 'a'b' holds ''', use letters, digits and _ . : / + -"},
    {"a=b 8 8 4 4 3",
     "line 1, column 1: name 'a=b' holds '=', use letters, digits and _ . : / + -"},
    {"caf\xc3\xa9 8 8 4 4 3", "line 1, column 4: unexpected byte 0xc3, expected C_in"},
    {"012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012"
     "3456"
     "7890123456789012345678901234567890 8 8 4 4 3",
     "line 1, column 1: name '01234567890123456789...' is longer than 127 characters"},
};

static void text(void **state) {
  CHECK_ROWS (texts, row) CHECK_TEXT(read_targets(row->text), row->expected, row->text);
}

static void text_parses_back(void **state) {
  CHECK_ROWS (texts, row) {
    char first[4096];
    if (!strchr(row->expected, '\n')) continue;
    snprintf(first, sizeof first, "%s", read_targets(row->text));
    CHECK_TEXT(read_targets(first), first, row->text);
  }
}

static void bytes_are_rejected(void **state) {
  canvas_context ctx = {""};
  struct targets t;
  assert_int_equal(targets_parse(&ctx, "a 64\0", 5, &t), CANVAS_BAD_INPUT);
  CHECK_TEXT(ctx.message, "line 1: the text holds a NUL byte, give plain text", "NUL");
  assert_null(t.data);
  struct buf many = {0};
  for (int i = 0; i <= TARGETS_MAX; i++) buf_printf(&many, "t%d 8 8 4 4 3\n", i);
  assert_int_equal(targets_parse(&ctx, many.text, many.length, &t), CANVAS_BAD_INPUT);
  CHECK_TEXT(ctx.message, "line 4097, column 1: more than 4096 targets", "many");
  buf_free(&many);
}

static const struct {
  const char *text;
  int64_t macs, params, activations, bytes;
} costs[] = {
    // the published 231 211 008 FLOPs are 2*macs
    {"a 64 64 56 56 3 1 1", 115605504, 36864, 200704, 4 * (200704 + 200704 + 36864)},
    {"a 64 128 56 56 3 2 1", 57802752, 73728, 100352, 4 * (200704 + 100352 + 73728)},
    {"a 64 64 56 56 3 1 64", 1806336, 576, 200704, 4 * (200704 + 200704 + 576)},
    {"a 8 4 5 7 3x1 2 2", 8 * 4 * 3 / 2 * 12, 48, 48, 4 * (280 + 48 + 48)},  // 5x7 -> 3x4
};

static void cost(void **state) {
  CHECK_ROWS (costs, row) {
    canvas_context ctx = {""};
    struct targets t;
    CHECK_INT(targets_parse(&ctx, row->text, strlen(row->text), &t), CANVAS_OK, row->text);
    struct cost c = target_cost(&t.data[0]);
    CHECK_INT(c.macs, row->macs, row->text);
    CHECK_INT(c.params, row->params, row->text);
    CHECK_INT(c.activations, row->activations, row->text);
    CHECK_INT(c.bytes, row->bytes, row->text);
    CHECK_INT(c.elementwise, 0, row->text);
    targets_free(&t);
  }
}

// ResNet-18 at 224: the 19 layers the published system replaced, 3 391 094 784 FLOPs, 11 157 504
// parameters.
static void resnet18(void **state) {
  static const char net[] =
      "a 64 64 56 56 3\nb 64 64 56 56 3\nc 64 64 56 56 3\nd 64 64 56 56 3\n"
      "e 64 128 56 56 3 2\nf 128 128 28 28 3\ng 64 128 56 56 1 2\nh 128 128 28 28 3\n"
      "i 128 128 28 28 3\nj 128 256 28 28 3 2\nk 256 256 14 14 3\nl 128 256 28 28 1 2\n"
      "m 256 256 14 14 3\nn 256 256 14 14 3\no 256 512 14 14 3 2\np 512 512 7 7 3\n"
      "q 256 512 14 14 1 2\nr 512 512 7 7 3\ns 512 512 7 7 3\n";
  canvas_context ctx = {""};
  struct targets t;
  struct cost sum = {0};
  assert_int_equal(targets_parse(&ctx, net, strlen(net), &t), CANVAS_OK);
  for (int i = 0; i < t.count; i++) {
    struct cost c = target_cost(&t.data[i]);
    assert_true(cost_add(&sum, &c, 1));
  }
  CHECK_INT(t.count, 19, "layers");
  CHECK_INT(2 * sum.macs, 3391094784, "FLOPs");
  CHECK_INT(sum.params, 11157504, "params");
  CHECK_INT(targets_common_channels(&t), 64, "channels");
  targets_free(&t);
}

static const struct {
  const char *text;
  int64_t c, h, w, copies;
} sizes[] = {
    {"a 64 128 56 57 3x5 2", 64, 28, 29, 2}, {"a 128 32 7 1 3x5 4", 32, 2, 1, 4},
    {"a 32 32 7 9 3x5", 32, 7, 9, 1},        {"a 32 48 7 9 3x5", 16, 7, 9, 6},
    {"a 30 42 8 9 4x6 2", 6, 4, 5, 35},      {"a 30 42 8 9 3x5 2 1 1 1", 42, 4, 5, 1},
};

static void sizes_inside_the_kernel(void **state) {
  CHECK_ROWS (sizes, row) {
    canvas_context ctx = {""};
    struct targets t;
    struct sizes s;
    int64_t copies;
    CHECK_INT(targets_parse(&ctx, row->text, strlen(row->text), &t), CANVAS_OK, row->text);
    target_sizes(&t.data[0], NULL, &s, &copies);
    CHECK_INT(s.value[SIZE_C], row->c, row->text);
    CHECK_INT(s.value[SIZE_H], row->h, row->text);
    CHECK_INT(s.value[SIZE_W], row->w, row->text);
    CHECK_INT(s.value[SIZE_KH], 3, row->text);
    CHECK_INT(s.value[SIZE_KW], 5, row->text);
    CHECK_INT(s.value[SIZE_G], 0, row->text);
    CHECK_INT(copies, row->copies, row->text);
    targets_free(&t);
  }
}

// G divides gcd(C_i); C = 32, 48 leave the factors of 16.
static const struct {
  const char *text;
  int64_t common;
} channels[] = {{"32,8,8;48,8,8", 16},
                {"a 64 256 8 8 3\nb 512 96 8 8 3", 32},
                {"a 64 256 8 8 3\nb 24 36 8 8 3", 4},
                {"a 64 256 8 8 3\nb 192 96 8 8 3", 32}};

static void common_channels(void **state) {
  CHECK_ROWS (channels, row) {
    canvas_context ctx = {""};
    struct targets t;
    CHECK_INT(targets_parse(&ctx, row->text, strlen(row->text), &t), CANVAS_OK, row->text);
    CHECK_INT(targets_common_channels(&t), row->common, row->text);
    targets_free(&t);
  }
}

CHECK_MAIN(cmocka_unit_test(text), cmocka_unit_test(text_parses_back),
           cmocka_unit_test(bytes_are_rejected), cmocka_unit_test(cost), cmocka_unit_test(resnet18),
           cmocka_unit_test(sizes_inside_the_kernel), cmocka_unit_test(common_channels))
