// The space of a schedule with holes: its knobs and their numbers, points and digits, and that what is
// called legal is what binds without a warning.
#include "tune/space.h"

#include "check.h"
#include "machines.h"
#include "random_program.h"

static canvas_context ctx;

static const char gemm[] =
    "canvas 1\n"
    "program gemm\n"
    "in A f32 [m:12, k:20]\n"
    "in B f32 [k:20, n:64]\n"
    "C[m:12, n:64] = A[m, k] * B[k, n] // sum k:20\n"
    "out C\n";

static struct program *program_from(const char *text) {
  struct program *p;
  CHECK_INT(program_parse(&ctx, text, strlen(text), &p), CANVAS_OK, text);
  return p;
}

static struct schedule *schedule_from(const char *text) {
  struct schedule *s;
  CHECK_INT(schedule_parse(&ctx, text, strlen(text), &s), CANVAS_OK, text);
  return s;
}

// ---- knobs ----

static void print_knobs(const struct space *s, struct buf *out) {
  buf_printf(out, "%lld", (long long)s->size);
  for (int i = 0; i < s->count; i++) {
    buf_printf(out, " %s", s->knobs[i].name);
    for (int j = 0; j < s->knobs[i].count; j++)
      buf_printf(out, "%c%lld", j ? ',' : ':', (long long)s->knobs[i].values[j]);
  }
}

#define GEMM_LEAF " => @C = {mo, mi}/m, {no, ni}/n // {ko, ki}/k\n"
static const struct {
  const char *schedule;
  enum space_numbers numbers;
  const char *knobs;
} spaces[] = {
    {"canvas 1\nschedule s\nmo, no, ko, ki, mi:?, ni:16:vec" GEMM_LEAF, NUMBERS_AUTO,
     "36 ki:1,2,4,5,10,20 mi:1,2,3,4,6,12"},
    {"canvas 1\nschedule s\nmo, no, ko, ki:1, mi:?:unroll, ni:{16,32}:vec" GEMM_LEAF, NUMBERS_AUTO,
     "12 mi:1,2,3,4,6,12 ni:16,32"},
    {"canvas 1\nschedule s\nmo:peel, no, ko, ki:1, mi:?:unroll, ni:16:vec" GEMM_LEAF, NUMBERS_AUTO,
     "12 mi:1,2,3,4,5,6,7,8,9,10,11,12"},
    {"canvas 1\nschedule s\nmo:peel, no, ko, ki:1, mi:?:unroll, ni:16:vec" GEMM_LEAF,
     NUMBERS_DIVISORS, "6 mi:1,2,3,4,6,12"},
    {"canvas 1\nschedule s\nmo:peel, no, ko, ki:1, mi:?:unroll, ni:16:vec" GEMM_LEAF,
     NUMBERS_POWERS, "4 mi:1,2,4,8"},
    {"canvas 1\nschedule s\nmo, no, ko, ki:1, mi:?:unroll, ni:16:vec" GEMM_LEAF, NUMBERS_POWERS,
     "3 mi:1,2,4"},
    {"canvas 1\nschedule s\nmo, no, ko, ki:?, mi:4, ni:16:vec" GEMM_LEAF, NUMBERS_ANY,
     "6 ki:1,2,4,5,10,20"},
    {"canvas 1\nschedule s\nmo, no, ko, ki:4, mi:4, ni:16:vec" GEMM_LEAF, NUMBERS_AUTO, "1"},
};

static void knobs(void **state) {
  struct program *p = program_from(gemm);
  CHECK_ROWS (spaces, row) {
    struct schedule *s = schedule_from(row->schedule);
    struct space *space;
    struct buf text = {0};
    CHECK_INT(space_new(&ctx, p, s, &machine_avx512, row->numbers, &space), CANVAS_OK,
              row->schedule);
    print_knobs(space, &text);
    CHECK_TEXT(text.text, row->knobs, row->schedule);
    buf_free(&text);
    space_free(space);
    schedule_free(s);
  }
  program_free(p);
}

// An axis of 2^20 with a remainder: numbers stay few, with all small ones, powers of two, divisors.
static void long_axis(void **state) {
  struct program *p = program_from(
      "canvas 1\nprogram p\nin X f32 [i:1048575]\n"
      "Y[i:1048575] = X[i] + 1\nout Y\n");
  struct schedule *s = schedule_from("canvas 1\nschedule s\nio:mask, ii:? => @Y = {io, ii}/i\n");
  struct space *space;
  CHECK_INT(space_new(&ctx, p, s, &machine_avx512, NUMBERS_AUTO, &space), CANVAS_OK, "");
  const struct knob *k = &space->knobs[0];
  CHECK(k->count <= SPACE_NUMBERS && k->count > 60, "");
  bool power = false, divisor = false;
  for (int i = 0; i < k->count; i++) {
    CHECK(i == 0 || k->values[i] > k->values[i - 1], "");
    power = power || k->values[i] == 1 << 19;
    divisor = divisor || k->values[i] == 1048575 / 3;
  }
  CHECK(power && divisor && k->values[47] == 48, "");
  space_free(space);
  schedule_free(s);
  program_free(p);
}

// ---- points ----

static const char tiled[] =
    "canvas 1\nschedule s\n"
    "mo:peel, no, ko, ki:?, mi:?:unroll, ni:{16,32,64}:vec" GEMM_LEAF;

static struct space *tiled_space(struct program *p, struct schedule *s) {
  struct space *space;
  CHECK_INT(space_new(&ctx, p, s, &machine_avx512, NUMBERS_AUTO, &space), CANVAS_OK, tiled);
  return space;
}

static void points(void **state) {
  struct program *p = program_from(gemm);
  struct schedule *s = schedule_from(tiled);
  struct space *space = tiled_space(p, s);
  CHECK_INT(space->size, 6 * 12 * 3, tiled);
  int legal = 0;
  for (int64_t point = 0; point < space->size; point++) {
    int digits[SPACE_KNOBS];
    struct buf text = {0};
    struct loop_tree *tree;
    space_digits(space, point, digits);
    CHECK_INT(space_point(space, digits), point, tiled);
    space_print(space, point, &text);
    struct schedule *copy = schedule_copy(s);
    CHECK_INT(schedule_set(&ctx, copy, text.text), CANVAS_OK, text.text);
    struct loop_tree *legally = space_legal(space, point);
    bool binds = loop_tree_bind(&ctx, p, copy, &machine_avx512, &tree) == CANVAS_OK;
    CHECK_INT(legally != NULL, binds && !tree->open_holes && !tree->warnings.count, text.text);
    if (legally) {
      legal++;
      for (int i = 0; i < s->levels.count; i++)
        CHECK_INT(legally->extents[i], tree->extents[i], text.text);
      CHECK_INT(space_nearest(space, legally->extents), point, text.text);
    }
    loop_tree_free(legally);
    if (binds) loop_tree_free(tree);
    schedule_free(copy);
    buf_free(&text);
  }
  CHECK(legal > 20 && legal < space->size,
        tiled);  // 12 rows of 64 are more than the registers hold
  space_free(space);
  schedule_free(s);
  program_free(p);
}

// ---- what is no space ----

static void rejected(void **state) {
  struct program *p = program_from(gemm);
  struct space *space;
  struct schedule *s = schedule_from("canvas 1\nschedule s\nm, n, k => @D = m, n // k\n");
  CHECK_INT(space_new(&ctx, p, s, &machine_avx512, NUMBERS_AUTO, &space), CANVAS_BAD_INPUT, "");
  schedule_free(s);
  program_free(p);
  struct buf text = {0}, sched = {0};
  buf_puts(&text, "canvas 1\nprogram p\nin X f32 [a:1048576, b:1048576]\n");
  buf_puts(&text, "Y[a:1048576, b:1048576] = X[a, b]\nout Y\n");
  buf_puts(&sched, "canvas 1\nschedule s\n");
  for (int i = 0; i < 14; i++)
    buf_printf(&sched, "a%d%s, b%d%s, ", i, i ? ":?" : ":mask", i, i ? ":?" : ":mask");
  sched.length -= 2;
  buf_puts(&sched, " => @Y = {");
  for (int i = 0; i < 14; i++) buf_printf(&sched, "%sa%d", i ? ", " : "", i);
  buf_puts(&sched, "}/a, {");
  for (int i = 0; i < 14; i++) buf_printf(&sched, "%sb%d", i ? ", " : "", i);
  buf_puts(&sched, "}/b\n");
  p = program_from(text.text);
  s = schedule_from(sched.text);
  CHECK_INT(space_new(&ctx, p, s, &machine_avx512, NUMBERS_AUTO, &space), CANVAS_BAD_INPUT,
            sched.text);
  CHECK_TEXT(ctx.message, "the schedule has 2^62 points or more: give some of its loops numbers",
             sched.text);
  schedule_free(s);
  program_free(p);
  buf_free(&text);
  buf_free(&sched);
}

// Two stages with 26 holes each.
static void many_knobs(void **state) {
  struct program *p = program_from(
      "canvas 1\nprogram p\nin X f32 [a:64]\nU[a:64] = X[a]\n"
      "Y[a:64] = U[a]\nout Y\n");
  struct buf text = {0};
  struct space *space;
  buf_puts(&text, "canvas 1\nschedule s\n");
  for (int stage = 0; stage < 2; stage++) {
    for (int i = 0; i < 26; i++) buf_printf(&text, "%s%c%d:?", i ? ", " : "", "uy"[stage], i);
    buf_printf(&text, " =>\n    @%c = {", "UY"[stage]);
    for (int i = 0; i < 26; i++) buf_printf(&text, "%s%c%d", i ? ", " : "", "uy"[stage], i);
    buf_puts(&text, "}/a\n");
  }
  struct schedule *s = schedule_from(text.text);
  CHECK_INT(space_new(&ctx, p, s, &machine_avx512, NUMBERS_AUTO, &space), CANVAS_BAD_INPUT,
            text.text);
  CHECK_TEXT(ctx.message, "the schedule has more than 48 loops that need a number", text.text);
  schedule_free(s);
  program_free(p);
  buf_free(&text);
}

CHECK_MAIN(cmocka_unit_test(knobs), cmocka_unit_test(long_axis), cmocka_unit_test(points),
           cmocka_unit_test(rejected), cmocka_unit_test(many_knobs))
