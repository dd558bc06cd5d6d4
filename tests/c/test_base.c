// Arithmetic that stops at 2^62 (base/saturating.h).
#include "check.h"

#include "base/saturating.h"

#define TOP SATURATED

static void sums_and_products_stop_at_the_limit(void **state) {
  static const struct {
    int64_t a, b, sum, product;
  } rows[] = {
      {0, 0, 0, 0},
      {0, TOP, TOP, 0},
      {3, 5, 8, 15},
      {TOP, 0, TOP, 0},
      {TOP, 1, TOP, TOP},
      {TOP - 1, 1, TOP, TOP - 1},
      {TOP, TOP, TOP, TOP},
      {TOP / 2, 2, TOP / 2 + 2, TOP},
      {TOP / 2, 3, TOP / 2 + 3, TOP},
      {INT64_C(1) << 31, INT64_C(1) << 31, INT64_C(1) << 32, TOP},
      {(INT64_C(1) << 31) - 1, INT64_C(1) << 31, (INT64_C(1) << 32) - 1, TOP - (INT64_C(1) << 31)},
      {INT64_MAX, 1, TOP, TOP},
  };
  CHECK_ROWS (rows, row) {
    CHECK_INT(saturating_add(row->a, row->b), row->sum, "a + b");
    CHECK_INT(saturating_mul(row->a, row->b), row->product, "a * b");
    CHECK_INT(saturating_mul(row->b, row->a), row->product, "b * a");
  }
}

static void checked_arithmetic_says_where_it_stops(void **state) {
  static const struct {
    int64_t a, b;
    bool adds, multiplies;
  } rows[] = {
      {0, TOP, true, true},     {TOP, 0, true, true},     {TOP, 1, false, true},
      {1, TOP, false, true},    {TOP - 1, 1, true, true}, {TOP / 2, TOP / 2, true, false},
      {TOP, TOP, false, false}, {TOP / 3, 3, true, true}, {TOP / 3 + 1, 3, true, false},
  };
  CHECK_ROWS (rows, row) {
    int64_t sum = row->a, product = row->a;
    CHECK_INT(checked_add(&sum, row->b), row->adds, "adds");
    CHECK_INT(checked_mul(&product, row->b), row->multiplies, "multiplies");
    CHECK_INT(sum, row->adds ? row->a + row->b : row->a, "sum");
    CHECK_INT(product, row->multiplies ? row->a * row->b : row->a, "product");
  }
}

CHECK_MAIN(cmocka_unit_test(sums_and_products_stop_at_the_limit),
           cmocka_unit_test(checked_arithmetic_says_where_it_stops))
