// Default schedules of random programs on random machines, as no processor has them: all numbers are given. Axes may
// have the names that levels have.
#include <ctype.h>

#include "autoschedule/default.h"
#include "check.h"
#include "machines.h"
#include "random_program.h"

static canvas_context ctx;

static int64_t random_power(struct random *r, int least, int most) {
  return INT64_C(1) << (least + (int)random_below(r, (uint32_t)(most - least + 1)));
}

// Bytes of a cache: tiny ones as often as large ones, and few powers of two.
static int64_t random_cache(struct random *r) {
  int64_t power = random_power(r, 0, 24);
  return random_below(r, 3) ? power : power + random_below(r, (uint32_t)power);
}

// A fact is the default in half of the machines.
static int64_t random_fact(struct random *r, int64_t stated) {
  return random_below(r, 2) ? stated : 0;
}

static struct machine random_machine(uint64_t seed) {
  struct random r;
  random_open(&r, seed, RANDOM_TEST, 9);
  struct machine m = {.name = "random",
                      .target = "native",
                      .vector_bytes = (int)random_power(&r, 4, 6),
                      .registers = (int)(2 + random_below(&r, 40)),
                      .line = (int)random_power(&r, 4, 10),
                      .l1 = random_cache(&r),
                      .l2 = random_cache(&r),
                      .l3 = random_below(&r, 2) ? random_cache(&r) : 0,
                      .cores = 1,
                      .memory = INT64_C(4) << 30};
  m.few_registers = random_below(&r, 3);
  m.l1_way = random_fact(&r, random_power(&r, 10, 20));
  m.l1_ways = random_fact(&r, 1 + random_below(&r, 64));
  m.l3_share = random_fact(&r, random_cache(&r));
  m.l3_line = random_fact(&r, 1 + random_below(&r, 100));
  m.memory_line = random_fact(&r, 1 + random_below(&r, 1000));
  m.prefetch_distance = random_fact(&r, random_power(&r, 0, 20));
  m.prefetch_stride = random_fact(&r, random_power(&r, 6, 20));
  return m;
}

// Axes, of two letters, that get the names of levels: those that x0 and r0 are split into.
static const struct {
  const char *axis, *level;
} names_of_levels[] = {{"x1", "x0_o"}, {"x2", "x0_v"}, {"x3", "x0_oo"}, {"x4", "x0_b"},
                       {"r1", "r0_o"}, {"r2", "r0_i"}, {"S3", "x0"}};

static struct program *renamed(struct program *p) {
  struct buf text = {0}, out = {0};
  struct program *q;
  program_print(p, &text);
  for (const char *at = text.text; *at;) {
    const char *level = NULL;
    CHECK_ROWS (names_of_levels, row)
      if (!strncmp(at, row->axis, 2)) level = row->level;
    bool inside = at > text.text && (isalnum((unsigned char)at[-1]) || at[-1] == '_');
    bool longer = at[1] && (isalnum((unsigned char)at[2]) || at[2] == '_');
    level = inside || longer ? NULL : level;
    buf_printf(&out, "%.*s", level ? (int)strlen(level) : 1, level ? level : at);
    at += level ? 2 : 1;
  }
  CHECK_INT(program_parse(&ctx, out.text, out.length, &q), CANVAS_OK, ctx.message);
  buf_free(&text);
  buf_free(&out);
  program_free(p);
  return q;
}

// How a failure is reported: what a bug report has.
static void show(const struct machine *m, const struct program *p, const struct schedule *s) {
  struct buf text = {0};
  machine_print(m, &text);
  program_print(p, &text);
  schedule_print(s, &text);
  print_message("%s", text.text);
  buf_free(&text);
}

static void all_numbers_are_given(void **state) {
  int holes = 0, plain = 0;
  for (uint64_t seed = 0; seed < 4000; seed++) {
    struct machine m = random_machine(seed);
    struct program *p = random_program(seed);
    struct default_bound made;
    if (seed % 2) p = renamed(p);
    CHECK_INT(default_bind(&ctx, p, &m, &made), CANVAS_OK, ctx.message);
    if (made.tree->open_holes) show(&m, made.edited ? made.edited : p, made.schedule);
    holes += made.tree->open_holes;
    plain += strcmp(made.schedule->name, "heuristic") != 0;
    loop_tree_free(made.tree);
    schedule_free(made.schedule);
    program_free(made.edited);
    program_free(p);
  }
  CHECK_INT(holes, 0, "holes");
  CHECK(plain <= 4, "names of axes do not make a schedule illegal, so that it is a plain one");
}

// A copy that reads along another axis than it writes along goes by cache lines.
static void copies_go_by_lines(void **state) {
  static const char text[] =
      "canvas 1\nprogram p\nin X f32 [i:64, j:128]\nin Z f32 [i:128, j:64]\n"
      "Y[i:128, j:64] = X[j, i] + Z[i, j]\nout Y\n";
  struct program *p;
  CHECK_INT(program_parse(&ctx, text, sizeof text - 1, &p), CANVAS_OK, ctx.message);
  for (int line = 32; line <= 256; line *= 2) {
    struct machine m = machine_avx2;
    struct buf shown = {0}, expected = {0};
    m.line = line;
    struct schedule *s = schedule_default(p, true, &m);
    schedule_print(s, &shown);
    buf_printf(&expected, "i_i:%d =>", line / 4);
    CHECK(strstr(shown.text, expected.text), expected.text);
    buf_free(&shown);
    buf_free(&expected);
    schedule_free(s);
  }
  program_free(p);
}

CHECK_MAIN(cmocka_unit_test(all_numbers_are_given), cmocka_unit_test(copies_go_by_lines))
