// Conditions of indices, however they are said, become those that the default schedule reads, and mean the same.
#include "autoschedule/default.h"
#include "check.h"
#include "machines.h"
#include "same_values.h"

static canvas_context ctx;

#define INSIDE "1 <= h+k && h+k < 7"
#define ONES   "then X[h+k-1, c] * W[k, c, o] else 0"
#define ZERO   "then 0 else X[h+k-1, c] * W[k, c, o]"
static const struct {
  const char *said, *becomes;
} bodies[] = {
    {"if " INSIDE " " ONES, "if " INSIDE " then"},
    {"if h+k >= 1 && 7 > h+k " ONES, "if " INSIDE " then"},
    {"if !(h+k < 1) && !(h+k >= 7) " ONES, "if " INSIDE " then"},
    {"if !(h+k < 1 || h+k >= 7) " ONES, "if " INSIDE " then"},
    {"if h+k < 1 || h+k >= 7 " ZERO, "if " INSIDE " then"},
    {"if !(" INSIDE ") " ZERO, "if " INSIDE " then"},
    {"if h+k < 1 then 0 else (if 7 <= h+k " ZERO ")",
     "if 1 <= h+k then if h+k < 7 then X[h+k-1, c] * W[k, c, o] else 0 else 0"},
    {"(if h+k < 1 || h+k > 6 then 0 else X[h+k-1, c]) * W[k, c, o]",
     "(if 1 <= h+k && h+k <= 6 then X[h+k-1, c] else 0) * W[k, c, o]"},
    // what is not only `<` and `<=` stays where it is, each part said anew
    {"if h+k < 1 || h+k > 6 || o == 3 " ZERO, "if h+k < 1 || 6 < h+k || o == 3 then 0 else X"},
    {"if !(h+k < 1 || h+k > 6 && o != 3) && !(h+k >= 7) && !(o != 2) " ONES,
     "if 1 <= h+k && (h+k <= 6 || o == 3) && h+k < 7 && o == 2 then X"},
    // beside a number on either side, or on none, all of several conditions are to hold
    {"(if h+k < 1 || h+k > 6 then 1 else 2) * W[k, c, o]",
     "(if 1 <= h+k && h+k <= 6 then 2 else 1) *"},
    {"(if h+k < 1 then W[k, c, o] else X[h+k-1, c])", "if h+k < 1 then W[k, c, o] else X"},
    {"(if h+k < 1 || h+k > 6 then W[k, c, o] else X[h+k-1, c])",
     "if 1 <= h+k && h+k <= 6 then X[h+k-1, c] else W[k, c, o]"},
    // a condition of values has other rules: neither holds of a nan
    {"if !(W[k, c, o] < 0) then W[k, c, o] else 0", "if !(W[k, c, o] < 0) then"},
    {"if W[k, c, o] < 0 || h > 3 then 0 else W[k, c, o]", "if W[k, c, o] < 0 || h > 3 then 0"},
    // an index that an input holds
    {"if I[c] >= 2 || !(h+k >= 1) || h+k > 6 " ZERO, "if I[c] < 2 && 1 <= h+k && h+k <= 6 then X"},
};

static void one(const char *said, const char *becomes, const struct machine *machine) {
  struct buf text = {0}, print = {0};
  struct program *p;
  buf_printf(
      &text,
      "canvas 1\nprogram p\nin X f32 [h:6, c:3]\nin W f32 [k:3, c:3, o:5]\nin I i32 [c:3] 0..4\n"
      "Y[h:6, o:5] = %s // sum c:3, k:3\nout Y\n",
      said);
  CHECK_INT(program_parse(&ctx, text.text, text.length, &p), CANVAS_OK, ctx.message);
  struct program *edited = default_program(p, machine);
  program_print(edited ? edited : p, &print);
  if (!strstr(print.text, becomes)) fail_msg("%s\nbecomes\n%s", said, print.text);
  if (edited) same_values(&ctx, p, edited, said, 1, 1);
  buf_free(&text);
  buf_free(&print);
  program_free(edited);
  program_free(p);
}

// Weights lie as they are read: nothing is packed, and lines stay as they are.
static void conditions_are_said_in_one_way(void **state) {
  CHECK_ROWS (bodies, row) one(row->said, row->becomes, &machine_sse);
}

CHECK_MAIN(cmocka_unit_test(conditions_are_said_in_one_way))
