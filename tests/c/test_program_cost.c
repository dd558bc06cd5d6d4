// Counts of programs: operations and bytes of a stage.
#include "program/program_cost.h"

#include "check.h"

static struct program *parse(const char *stages) {
  canvas_context ctx = {.message = ""};
  struct buf text = {0};
  struct program *p;
  buf_printf(&text,
             "program p\nin X f32 [i:100, j:50]\nin B bf16 [i:100]\nin D f64 []\n"
             "in ptr i32 [r:11] 0..41 rising\nin ind i32 [e:40] 0..100\n%s\nout Y\n",
             stages);
  if (program_parse(&ctx, text.text, text.length, &p) != CANVAS_OK)
    fail_msg("\"%s\" for \"%s\"", ctx.message, stages);
  buf_free(&text);
  return p;
}

// The last stage of each program: points, reduction, flops, bytes read and written.
static const struct {
  const char *stages;
  struct program_cost cost;
} rows[] = {
    {"Y[i:100, j:50] = X[i, j]", {5000, 1, 0, 20000, 20000}},
    {"Y[i:100, j:50] = X[i, j] * 2 + 1", {5000, 1, 10000, 20000, 20000}},
    {"Y[i:100] = X[i, k] * B[i] // sum k:50", {100, 50, 10000, 20200, 400}},
    {"Y[i:100] = X[i, k] // max k:50", {100, 50, 5000, 20000, 400}},
    {"Y[i:100] = X[i, k] // mean k:50", {100, 50, 5100, 20000, 400}},
    {"Y[i:100] = exp(-X[i, 0]) // sum k:2, l:3", {100, 6, 1800, 400, 400}},
    {"Y bf16 [i:100] = pow(X[i, 0], D[])", {100, 1, 100, 408, 200}},
    {"Y f64 [i:100] = real(i*2+1)", {100, 1, 0, 0, 800}},
    // a select counts its larger branch, comparisons of values count, those of indices do not
    {"Y[i:100] = if i < 3 then X[i, 0] * 2 else 0", {100, 1, 100, 400, 400}},
    {"Y[i:100] = if X[i, 0] < 3 && i < 5 then 1 else X[i, 1] + X[i, 2] - 1",
     {100, 1, 300, 1200, 400}},
    {"Y[i:100] = if !(X[i, 0] > 3) || true then 1 else 2", {100, 1, 100, 400, 400}},
    // what the indices reach
    {"Y[i:98] = X[i, 0] + X[i+1, 0] + X[i+2, 0]", {98, 1, 196, 400, 392}},
    {"Y[i:98] = X[i+k, 0] // sum k:3", {98, 3, 294, 400, 392}},
    {"Y[i:50] = X[2*i, 0]", {50, 1, 0, 200, 200}},
    {"Y[i:50] = X[2*i, k%3] // sum k:50", {50, 50, 2500, 600, 200}},
    {"Y[i:50] = X[i, i]", {50, 1, 0, 200, 200}},
    {"Y[i:50] = X[0, 0] * X[0, 0]", {50, 1, 50, 4, 200}},
    {"Y[i:102] = if 1 <= i && i < 101 then X[i-1, 0] else 0", {102, 1, 0, 400, 408}},
    {"Y[i:2] = if i > 5 then X[i+200, 0] else 0", {2, 1, 0, 0, 8}},
    // data: rows of a rising pointer have 40 entries together, other bounds at most so many
    {"Y[r:10] = X[ind[e], 0] // sum e:ptr[r]..ptr[r+1]", {10, 40, 40, 160 + 160 + 44, 40}},
    {"Y[r:10, j:50] = X[ind[e], j] // sum e:ptr[r]..ptr[r+1]",
     {500, 40, 2000, 8000 + 160 + 44, 2000}},
    {"Y[] = X[ind[e], 0] // sum r:10, e:ptr[r]..ptr[r+1]", {1, 400, 40, 160 + 160 + 44, 4}},
    {"Y[r:9] = X[ind[e], 0] // sum e:ptr[r]..ptr[r+1]", {9, 40, 360, 160 + 160 + 40, 36}},
    {"Y[r:10] = 1 // sum e:0..r+1", {10, 10, 100, 0, 40}},
};

static void counts(void **state) {
  (void)state;
  CHECK_ROWS (rows, row) {
    canvas_context ctx = {.message = ""};
    struct program *p = parse(row->stages);
    struct program_cost c;
    CHECK_INT(program_cost(&ctx, p, p->outputs.data[0], &c), CANVAS_OK, row->stages);
    CHECK_INT(c.points, row->cost.points, row->stages);
    CHECK_INT(c.reduction, row->cost.reduction, row->stages);
    CHECK_INT(c.flops, row->cost.flops, row->stages);
    CHECK_INT(c.read, row->cost.read, row->stages);
    CHECK_INT(c.written, row->cost.written, row->stages);
    program_free(p);
  }
}

static void too_large(void **state) {
  (void)state;
  canvas_context ctx = {.message = ""};
  struct program *p = parse("Y[a:1099511627776] = X[0, 0] * 2 // sum b:1099511627776");
  struct program_cost c;
  assert_int_equal(program_cost(&ctx, p, p->outputs.data[0], &c), CANVAS_BAD_INPUT);
  assert_string_equal(ctx.message, "stage 'Y' takes more than 2^62 operations");
  program_free(p);
}

CHECK_MAIN(cmocka_unit_test(counts), cmocka_unit_test(too_large))
