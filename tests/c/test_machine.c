// Machines: their text, the files of examples/machines/, this one; what facts decide.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "cost/schedule_cost.h"
#include "machines.h"
#include "operator_calls.h"

static canvas_context ctx;

#define HEAD "canvas 1\nmachine m\n"
#define BODY "vector_bytes 32\nvector_registers 16\nl1 32 KiB\nl2 1 MiB\nmemory 1 GiB\n"

// ---- what is read -------------------------------------------------------------------------------

static const struct {
  const char *text, *printed;  // a line of what is printed
} good[] = {
    {HEAD BODY, "machine m\n"},
    {"# note\n\ncanvas 1\n\nmachine a.b_c-1+  # note\n" BODY, "machine a.b_c-1+\n"},
    {HEAD BODY, "\nfma no\nbf16 none\ntiles none\nline 64\n"},
    {HEAD BODY, "\nl3 0\ncores 1\nmemory 1 GiB\ntarget native\n"},
    {HEAD BODY "fma yes", "\nfma yes\n"},
    {HEAD BODY "bf16 dot,convert", "\nbf16 convert,dot\n"},
    {HEAD BODY "bf16 dot , dot\n", "\nbf16 dot\n"},
    {HEAD BODY "tiles fp16,int8", "\ntiles int8,fp16\n"},
    {HEAD "memory 1024 KiB\n"
          "vector_bytes 64\nvector_registers 32\nl2 1025\nl1 2048\n",
     "\nl1 2 KiB\nl2 1025\nl3 0\ncores 1\nmemory 1 MiB\n"},
    {HEAD BODY "l3 1048576 GiB\ncores 1048576\n", "\nl3 1048576 GiB\ncores 1048576\n"},
    {HEAD BODY "target x86-64-v3", "\ntarget x86-64-v3\n"},
    {HEAD BODY "l1_way 8 KiB\n", "\nl1_way 8192\n"},
    {HEAD BODY "line 1 KiB\n", "\nline 1024\n"},
};

static char *printed(const struct machine *m) {
  struct buf out = {0};
  machine_print(m, &out);
  return buf_take(&out);
}

static void reads_and_prints(void **state) {
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    struct machine m, again;
    CHECK_INT(machine_parse(&ctx, good[i].text, strlen(good[i].text), &m), CANVAS_OK, ctx.message);
    char *once = printed(&m);
    CHECK(strstr(once, good[i].printed), once);
    CHECK_INT(machine_parse(&ctx, once, strlen(once), &again), CANVAS_OK, ctx.message);
    char *twice = printed(&again);
    CHECK_TEXT(twice, once, good[i].text);
    free(once);
    free(twice);
  }
}

// ---- facts with defaults: what text had before there were facts is printed as it was ----

#define OLD(bytes, registers, l2)                                            \
  "canvas 1\nmachine m\nvector_bytes " bytes "\nvector_registers " registers \
  "\nfma yes\nbf16 none\ntiles none\nline 64\nl1 48 KiB\nl2 " l2             \
  "\nl3 0\ncores 1\nmemory 4 GiB\n"                                          \
  "target native\n"

static const struct {
  const char *text, *facts;
  bool printed;
} facts[] = {
    {OLD("64", "32", "2 MiB"), "", false},
    {OLD("32", "16", "1 MiB"), "", false},
    {OLD("64", "32", "1025"), "few_registers no\nl3_share 8200\n", false},
    {OLD("32", "31", "2 MiB"), "few_registers yes\nl3_share 16 MiB\n", false},
    {OLD("32", "16", "1 MiB"),
     "l1_way 4096\nl1_ways 8\nl3_line 8\nmemory_line 24\nprefetch_distance 8 KiB\n"
     "prefetch_stride 1024\n",
     false},
    {OLD("64", "32", "2 MiB"), "few_registers yes\n", true},
    {OLD("32", "31", "2 MiB"), "few_registers no\n", true},
    {OLD("32", "16", "1 MiB"),
     "few_registers no\nl1_way 8192\nl1_ways 12\nl3_share 2 MiB\nl3_line 9\nmemory_line 30\n"
     "prefetch_distance 4 KiB\nprefetch_stride 2 KiB\n",
     true},
};

static void facts_have_defaults(void **state) {
  for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
    struct machine m;
    char text[1024], *out;
    snprintf(text, sizeof text, "%s%s", facts[i].text, facts[i].facts);
    CHECK_INT(machine_parse(&ctx, text, strlen(text), &m), CANVAS_OK, ctx.message);
    out = printed(&m);
    CHECK_TEXT(out, facts[i].printed ? text : facts[i].text, text);
    free(out);
  }
}

// ---- what is rejected ---------------------------------------------------------------------------

static const struct {
  const char *text, *message;
} bad[] = {
    {"",
     "line 1, column 1: expected 'canvas' and the version ('canvas 1') on the first line, found "
     "the end of the text"},
    {"canvas x\n", "line 1, column 8: expected the version, 'canvas 1', found 'x'"},
    {"canvas 2\n", "line 1, column 8: unknown version '2', this is version 1"},
    {"canvas 1 machine m\n",
     "line 1, column 10: expected the end of the line after the version, found 'machine'"},
    {"canvas 1\nkernel m\n", "line 2, column 1: expected 'machine' and a name, found 'kernel'"},
    {"canvas 1\nmachine\n", "line 2, column 8: expected name, found the end of the line"},
    {"canvas 1\nmachine \x01\n", "line 2, column 9: unexpected byte 0x01, expected name"},
    {"canvas 1\nmachine -m\n",
     "line 2, column 9: name '-m' is not a word of at most 39 letters, "
     "digits and . _ + -"},
    {"canvas 1\nmachine m n\n",
     "line 2, column 11: expected the end of the line after the name, found 'n'"},
    {HEAD, "line 3, column 1: machine 'm' has no vector_bytes"},
    {HEAD "vector_bytes 16\nvector_registers 8\nl1 1\nl2 1\n",
     "line 7, column 1: machine 'm' has no memory"},
    {HEAD "7\n", "line 3, column 1: expected a key such as vector_bytes, found '7'"},
    {HEAD "vector_byte 16\n",
     "line 3, column 1: a machine has no key 'vector_byte', did you mean 'vector_bytes'?"},
    {HEAD "colour red\n", "line 3, column 1: a machine has no key 'colour'"},
    {HEAD BODY "l1 1\n", "line 8, column 1: l1 is given twice"},
    {HEAD "vector_bytes\n",
     "line 3, column 13: expected a whole number, found the end of the line"},
    {HEAD "vector_bytes 24\n", "line 3, column 14: vector_bytes 24 is not a power of two"},
    {HEAD "vector_bytes 128\n", "line 3, column 14: vector_bytes is out of its range, 16 to 64"},
    {HEAD "vector_registers 1\n",
     "line 3, column 18: vector_registers is out of its range, 2 to 256"},
    {HEAD "l1 1.5 KiB\n", "line 3, column 4: expected a whole number, found '1.5'"},
    {HEAD "l1 1 KB\n",
     "line 3, column 6: expected KiB, MiB, GiB or the end of the line, found 'KB'"},
    {HEAD "l1 1048577 GiB\n", "line 3, column 4: l1 is out of its range, 1 to 1125899906842624"},
    {HEAD "l1 9223372036854775807 GiB\n",
     "line 3, column 4: l1 is out of its range, 1 to 1125899906842624"},
    {HEAD "cores 2 KiB\n",
     "line 3, column 9: expected the end of the line after a value, found 'KiB'"},
    {HEAD "fma 1\n", "line 3, column 5: expected yes or no, found '1'"},
    {HEAD "bf16 fma\n", "line 3, column 6: expected none, or some of convert, dot, found 'fma'"},
    {HEAD "bf16 dot,none\n", "line 3, column 10: expected another of convert, dot, found 'none'"},
    {HEAD "few_registers 1\n", "line 3, column 15: expected yes or no, found '1'"},
    {HEAD "l1_ways 0\n", "line 3, column 9: l1_ways is out of its range, 1 to 64"},
    {HEAD "l1_way 5000\n", "line 3, column 8: l1_way 5000 is not a power of two"},
    {HEAD "l3_share 0\n", "line 3, column 10: l3_share is out of its range, 1 to 1125899906842624"},
    {HEAD "target\n", "line 3, column 7: expected target, found the end of the line"},
    {HEAD "target a;b\n",
     "line 3, column 8: target 'a;b' is not a word of at most 39 letters, "
     "digits and . _ + -"},
    {HEAD "target 1234567890123456789012345678901234567890\n",
     "line 3, column 8: target '1234567890123456789012345678901234567890' is not a word of at most "
     "39 letters, digits and . _ + -"},
};

static void rejects(void **state) {
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    struct machine m = {.cores = 7};
    CHECK_INT(machine_parse(&ctx, bad[i].text, strlen(bad[i].text), &m), CANVAS_BAD_INPUT,
              bad[i].text);
    CHECK_TEXT(ctx.message, bad[i].message, bad[i].text);
    CHECK_INT(m.cores, 7, "nothing is written");
  }
}

// ---- machines that there are --------------------------------------------------------------------

static struct machine read_example(const char *name) {
  char path[512], text[4096];
  struct machine m;
  snprintf(path, sizeof path, "%s/examples/machines/%s.txt", CANVAS_SOURCE, name);
  FILE *file = fopen(path, "rb");
  if (!file) fail_msg("%s is missing", path);
  size_t length = fread(text, 1, sizeof text, file);
  fclose(file);
  CHECK_INT(machine_parse(&ctx, text, length, &m), CANVAS_OK, ctx.message);
  return m;
}

static void examples_are_the_models(void **state) {
  for (int i = 0; i < MACHINES; i++) {
    struct machine m = read_example(machine_model(i)->name);
    char *file = printed(&m), *model = printed(machine_model(i));
    CHECK_TEXT(file, model, m.name);
    free(file);
    free(model);
  }
}

static void this_one_parses(void **state) {
  struct machine here = machine_here(), again;
  char *text = printed(&here);
  CHECK_INT(machine_parse(&ctx, text, strlen(text), &again), CANVAS_OK, ctx.message);
  assert_string_equal(here.name, "here");
  assert_string_equal(here.target, "native");
  assert_true(here.vector_bytes == 16 || here.vector_bytes == 32 || here.vector_bytes == 64);
  assert_true(here.registers >= 16 && here.cores >= 1 && here.l1 <= here.l2);
#if defined(__x86_64__)
  __builtin_cpu_init();
  assert_int_equal(here.vector_bytes == 64, __builtin_cpu_supports("avx512f") != 0);
  assert_int_equal(here.fma, __builtin_cpu_supports("fma") != 0);
#endif
  free(text);
}

// ---- what facts decide: see docs/machine.md ----

static struct machine with_fact(int model, const char *fact) {
  struct machine m;
  char *text = printed(machine_model(model)), more[1024];
  snprintf(more, sizeof more, "%s%s\n", text, fact);
  CHECK_INT(machine_parse(&ctx, more, strlen(more), &m), CANVAS_OK, ctx.message);
  free(text);
  return m;
}

static struct program *program_of(const char *text) {
  struct program *p;
  if (strncmp(text, "canvas", strlen("canvas")) != 0)
    CHECK_INT(operator_called(&ctx, text, &p), CANVAS_OK, ctx.message);
  else
    CHECK_INT(program_parse(&ctx, text, strlen(text), &p), CANVAS_OK, ctx.message);
  return p;
}

static char *default_text(const struct program *p, const struct machine *m) {
  struct schedule *s = schedule_default(p, true, m);
  struct buf out = {0};
  schedule_print(s, &out);
  schedule_free(s);
  return buf_take(&out);
}

// An image whose channels come in blocks of a line: no two lines of a pixel are neighbours.
#define LINES(n, h, w, o)                                             \
  "canvas 1\nprogram lines\nin X f32 [n:" n ", c:32, h:" h ", w:" w   \
  ", k:16]\n"                                                         \
  "in W f32 [c:32, k:16, o:" o "]\nY[n:" n ", h:" h ", w:" w ", o:" o \
  "] = X[n, c, h, w, k] * W[c, k, o] // sum c:32, k:16\nout Y\n"
enum { AVX512, AVX2, SSE };

static const struct {
  const char *fact;
  int machine;
  const char *program, *without, *with;  // parts of the schedule, each not of the other
} scheduled[] = {
    // with few registers, two panels that are read at once are not prefetched
    {"few_registers yes", AVX512, "gemm m=1 k=4096 n=4096", "k:pf(16), n_b:2", "k, n_b:2"},
    // fewer rows that are 2 KiB apart, if more of them fall into one set
    {"l1_way 1024", AVX512, "gemm m=512 k=512 n=512", "m_i:14:", "m_i:6:"},
    // fewer rows that are 4 KiB apart, if fewer of them stay in L1
    {"l1_ways 2", AVX2, "gemm m=512 k=1024 n=512", "m_i:6:", "m_i:4:"},
    // weights that L3 holds are read panel by panel, those in memory from two panels at once
    {"l3_share 256 MiB", AVX512, "gemm m=1 k=4096 n=4096", "n_b:2:unroll", "k:pf(32)"},
    // if lines are expensive, a tile has neighbouring pixels; else pixels of several images
    {"l3_line 80", AVX2, LINES("16", "7", "7", "128"), "n_i:6:", "w_i:4:"},
    {"memory_line 1", SSE, LINES("32", "7", "7", "16"), "w_i:4:", "n_i:6:"},
    {"prefetch_distance 64 KiB", AVX512, "gemm m=1 k=2048 n=2048", "k:pf(32)", "k:pf(256)"},
};

static void facts_decide_schedules(void **state) {
  for (size_t i = 0; i < sizeof scheduled / sizeof *scheduled; i++) {
    const struct machine m = with_fact(scheduled[i].machine, scheduled[i].fact);
    struct program *p = program_of(scheduled[i].program);
    char *without = default_text(p, machine_model(scheduled[i].machine)),
         *with = default_text(p, &m);
    CHECK(strstr(without, scheduled[i].without) && !strstr(without, scheduled[i].with), without);
    CHECK(strstr(with, scheduled[i].with) && !strstr(with, scheduled[i].without), with);
    free(without);
    free(with);
    program_free(p);
  }
}

static const struct {
  const char *fact;
  int machine;
  const char *program, *schedule;
} slower[] = {
    // rows of 1 KiB fill the ways of one set
    {"l1_way 1024", AVX512, "gemm m=256 k=256 n=256",
     "m_o, n_o, k, m_i:32:unroll, n:16:vec => "
     "@Y = {m_o, m_i}/m, {n_o, n}/n // k\n"},
    // each step of k reads another row of B, which is 1 KiB further
    {"prefetch_stride 512", AVX2, "gemm m=8192 k=128 n=128",
     "m, n_o, k, n:8:vec => @Y = m, {n_o, n}/n // k\n"},
};

static double predicted(const struct program *p, const char *text, const struct machine *m) {
  const struct rates rates = rates_likely(m);
  struct schedule_cost cost;
  struct schedule *s;
  struct loop_tree *tree;
  CHECK_INT(schedule_parse(&ctx, text, strlen(text), &s), CANVAS_OK, ctx.message);
  CHECK_INT(loop_tree_bind(&ctx, p, s, m, &tree), CANVAS_OK, ctx.message);
  CHECK_INT(cost_of(&ctx, tree, &rates, &cost), CANVAS_OK, ctx.message);
  loop_tree_free(tree);
  schedule_free(s);
  return cost.seconds;
}

static void facts_decide_predicted_times(void **state) {
  for (size_t i = 0; i < sizeof slower / sizeof *slower; i++) {
    const struct machine m = with_fact(slower[i].machine, slower[i].fact);
    struct program *p = program_of(slower[i].program);
    double before = predicted(p, slower[i].schedule, machine_model(slower[i].machine));
    CHECK(predicted(p, slower[i].schedule, &m) > before, slower[i].fact);
    program_free(p);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(reads_and_prints),
                                     cmocka_unit_test(facts_have_defaults),
                                     cmocka_unit_test(rejects),
                                     cmocka_unit_test(examples_are_the_models),
                                     cmocka_unit_test(this_one_parses),
                                     cmocka_unit_test(facts_decide_schedules),
                                     cmocka_unit_test(facts_decide_predicted_times)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
