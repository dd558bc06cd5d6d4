// Dimensions and shapes: text, products, divisors, values, and the stripping of broadcasts.
// Behaviours 3 to 5 of the published system and the paper's example of 6.2 stand here.
#include "check.h"

#include "dim/shape.h"

static canvas_context ctx;

static struct dim dim_of(const char *text) {
  struct lexer lx;
  struct dim d = {0};
  CHECK_INT(lexer_open(&lx, &ctx, text, strlen(text)), CANVAS_OK, text);
  CHECK_INT(dim_parse(&lx, &d), CANVAS_OK, text);
  return d;
}

static struct shape shape_of(const char *text) {
  struct lexer lx;
  struct shape s = {0};
  CHECK_INT(lexer_open(&lx, &ctx, text, strlen(text)), CANVAS_OK, text);
  CHECK_INT(shape_parse(&lx, &s), CANVAS_OK, text);
  return s;
}

static void prints_canonically(void **state) {
  static const struct {
    const char *text, *expected;
  } rows[] = {
      {"C", "C"},         {"C/G*G", "C"}, {"KW*KH*G", "G*KH*KW"}, {"2*3*C/4", "3*C/2"},
      {"x1*C/C", "x1"},   {"1", "1"},     {"x15/G/G", "x15/G/G"}, {"C*C", "C*C"},
      {"H*W/7", "H*W/7"}, {"C/C", "1"},   {"1*x0", "x0"},         {"G/x0", "G/x0"},
  };
  CHECK_ROWS (rows, row) {
    struct buf out = {0};
    struct dim d = dim_of(row->text);
    dim_print(&d, &out);
    CHECK_TEXT(out.text, row->expected, row->text);
    buf_free(&out);
  }
}

static void rejects(void **state) {
  static const struct {
    const char *text, *expected;
  } rows[] = {
      {"",
       "line 1, column 1: expected a dimension (a number, G, C, KH, KW, H, W, S or x0..x15), "
       "found the end of the text"},
      {"C*",
       "line 1, column 3: expected a dimension (a number, G, C, KH, KW, H, W, S or x0..x15), "
       "found the end of the text"},
      {"x16",
       "line 1, column 1: expected a dimension (a number, G, C, KH, KW, H, W, S or x0..x15), "
       "found 'x16'"},
      {"0", "line 1, column 1: number '0' in a dimension is not in 1..2147483647"},
      {"99999999999999999999", "line 1, column 1: expected a dimension"},
      {"2147483647*2147483647",
       "line 1, column 1: dimension is too large, powers go to 8 and "
       "numbers to 2147483647"},
      {"C*C*C*C*C*C*C*C*C",
       "line 1, column 1: dimension is too large, powers go to 8 and "
       "numbers to 2147483647"},
  };
  CHECK_ROWS (rows, row) {
    struct lexer lx;
    struct dim d;
    lexer_open(&lx, &ctx, row->text, strlen(row->text));
    CHECK_INT(dim_parse(&lx, &d), CANVAS_BAD_INPUT, row->text);
    if (!strstr(row->text, "999"))
      CHECK_TEXT(ctx.message, row->expected, row->text);
    else
      CHECK(strstr(ctx.message, "too large"), row->text);
  }
}

static void knows_what_is_whole(void **state) {
  static const struct {
    const char *text;
    bool expected;
  } rows[] = {
      {"C/G", true},   {"1/G", false},    {"C*C/G/G", true}, {"C/G/G", false}, {"H/W", false},
      {"x0/G", true},  {"x0/KH/C", true}, {"C/x0", false},   {"x0/x1", false}, {"1/2", false},
      {"C/2", true},   {"G*KH*KW", true}, {"C/KH", false},   {"x0*x1", true},  {"H*W", true},
      {"H/S", true},   {"W/S", true},     {"H/S/S", false},  {"C/S", false},   {"H*W/S/S", true},
      {"C*W/S", true},
  };
  CHECK_ROWS (rows, row) {
    struct dim d = dim_of(row->text);
    CHECK_INT(dim_is_whole(&d), row->expected, row->text);
  }
}

static void has_values(void **state) {
  static const struct sizes sizes = {.value = {4, 64, 3, 5, 56, 28, 2, 12, 0}};
  static const struct {
    const char *text;
    int64_t expected; /* -1: none */
  } rows[] = {
      {"C/G", 16}, {"G*KH*KW", 60},  {"x0/G/KH", 1}, {"x0/8", -1},
      {"x1", -1},  {"3*C/2", 96},    {"H*x0/W", 24}, {"H*W/7", 224},
      {"H/S", 28}, {"C*W/S/S", 448}, {"C/KH", -1},   {"H*H*H*H*H*H*H*H*W*W*W*W*W*W*W*W", -1},
  };
  CHECK_ROWS (rows, row) {
    struct dim d = dim_of(row->text);
    int64_t value = -1;
    if (!dim_value(&d, &sizes, &value)) value = -1;
    CHECK_INT(value, row->expected, row->text);
  }
}

/* The divisors of a dimension, as a set. */
static void has_divisors(void **state) {
  static const struct {
    const char *text, *expected;
  } rows[] = {
      {"C", "1 G C/G C"}, /* behaviour 3 */
      {"9*C", "1 3 9 G 3*G 9*G C/G 3*C/G 9*C/G C 3*C 9*C"},
      {"C*KH", "1 G C/G C KH G*KH C*KH/G C*KH"}, /* behaviour 4 */
      {"x2*KW", "1 KW x2 KW*x2"},
      {"C/G", "1 C/G"},
      {"C*C", "1 G G*G C/G C C*G C*C/G/G C*C/G C*C"},
      {"1", "1"},
      {"1/G", ""},
      {"H*W", "1 H W H*W"},
  };
  CHECK_ROWS (rows, row) {
    struct dim d = dim_of(row->text), found[64];
    int count = dim_divisors(&d, found, 64), expected = 0;
    char text[128], *rest = text;
    strcpy(text, row->expected);
    for (char *word; (word = strtok(rest, " ")); rest = NULL, expected++) {
      struct dim want = dim_of(word);
      int times = 0;
      for (int i = 0; i < count; i++) times += dim_equal(&found[i], &want);
      CHECK_INT(times, 1, word);
    }
    CHECK_INT(count, expected, row->text);
  }
}

static void substitutes(void **state) {
  struct dim d = dim_of("x0*x0*x1/G"), by = dim_of("G*KH"), want = dim_of("G*KH*KH*x1");
  struct dim got = dim_substitute(d, 0, &by);
  CHECK(dim_equal(&got, &want), "x0 := G*KH in x0*x0*x1/G");
}

static void shapes_print_their_roles(void **state) {
  static const struct {
    const char *text, *expected;
  } rows[] = {
      {"C H W", "C H W"},
      {"group=C H W", "group=C H W"},
      {"channel=H KH=3 W", "channel=H KH=3 W"},
      {"G C/G KH KW H W", "G C/G KH KW H W"},
      {"group=G channel=C H=H", "G C H"},
      {"scalar", "scalar"},
      {"H*W", "H*W"},
      {"channel=G H", "channel=G H"},
      {"1 H W", "1 H W"},
  };
  CHECK_ROWS (rows, row) {
    struct shape s = shape_of(row->text);
    struct buf out = {0};
    shape_print(&s, &out);
    CHECK_TEXT(out.text, row->expected, row->text);
    buf_free(&out);
  }
}

/* What remains of a broadcast: left, right, and what the left's variable may become. */
static void matches_shapes(void **state) {
  static const struct {
    const char *left, *right, *l, *r, *multiplier;
  } rows[] = {
      {"C", "C H W", "1", "H*W", "H*W"}, /* behaviour 8: the prefix C strips */
      {"G H W", "C H W", "G", "C", "C/G"},
      {"x1 KH H W", "G x2/G KH KW H W", "KH*x1", "KH*KW*x2", "KW*x2/x1"}, /* paper 6.2 */
      {"G x1/G H W", "G C/G KH KW H W", "x1/G", "C*KH*KW/G", "C*KH*KW/x1"},
      {"G*KH H W", "x0 H W", "G*KH", "x0", "x0/G/KH"},
      {"group=C H W", "C H W", "1", "1", "1"},   /* group and channel are one class */
      {"KH H W", "KW H W", "KH", "KW", "KW/KH"}, /* window axes are not */
      {"KH=3 H W", "KW=3 H W", "3", "3", "1"},   /* not even where they are as long */
      {"C H W", "C H W", "1", "1", "1"},
      {"C H W", "group=C C H W", "1", "C", "C"}, /* the suffix first: C strips once */
      {"H*W", "C H W", "H*W", "C*H*W", "C"},     /* figure 9, kernel A */
      {"C W", "C H W", "1", "H", "H"},
  };
  CHECK_ROWS (rows, row) {
    struct shape left = shape_of(row->left), right = shape_of(row->right);
    struct match m = shape_match(&left, &right);
    struct dim l = dim_of(row->l), r = dim_of(row->r), q = dim_of(row->multiplier);
    CHECK(dim_equal(&m.left, &l), row->left);
    CHECK(dim_equal(&m.right, &r), row->left);
    CHECK(dim_equal(&m.multiplier, &q), row->left);
  }
}

CHECK_MAIN(cmocka_unit_test(prints_canonically), cmocka_unit_test(rejects),
           cmocka_unit_test(knows_what_is_whole), cmocka_unit_test(has_values),
           cmocka_unit_test(has_divisors), cmocka_unit_test(substitutes),
           cmocka_unit_test(shapes_print_their_roles), cmocka_unit_test(matches_shapes))
