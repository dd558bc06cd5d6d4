// The default schedule: bind takes it as it is chosen, the edits before it keep what is computed, and choosing takes
// no time. test_default_times.c has the schedules of many programs.
#include <time.h>

#include "autoschedule/default.h"
#include "autoschedule/winograd_nest.h"
#include "check.h"
#include "machines.h"
#include "no_slower.h"
#include "operator_calls.h"
#include "random_program.h"
#include "rewrite/program_edit.h"
#include "row_programs.h"
#include "same_values.h"

static canvas_context ctx;

static const struct machine *const machines[] = {&machine_avx512, &machine_avx2, &machine_sse};

static struct program *called(const char *call) {
  struct program *p;
  CHECK_INT(operator_called(&ctx, call, &p), CANVAS_OK, ctx.message);
  return p;
}

static void same_outputs(const struct program *p, const struct program *q, const char *label,
                         int64_t step) {
  same_values(&ctx, p, q, label, step, -1);
}

#define BEGIN "canvas 1\nprogram p\n"
#define CONV  "conv2d_nhwc height=14 width=14 in_channels=64 out_channels=64 kernel=3 padding=1"
#define GROUPS(size, last)                                                        \
  BEGIN "in X f32 [h:" size ", w:" size                                           \
        ", c:32]\nin W f32 [r:2, t:32, k:16, kh:3, kw:3]"                         \
        " const\nY[h:" size ", w:" size ", o:64] = (if 1 <= h+kh && h+kh < " last \
        " && 1 <= w+kw && w+kw < " last                                           \
        " then X[h+kh-1, w+kw-1, o/32*16+k] else 0) * W[o/32, o%32, k, kh, kw]"   \
        " // sum k:16, kh:3, kw:3\nout Y\n"

// ---- what edits keep ----

// Panels that two stages want are packed once; where a program may have no more stages there are none, and it is bound.
static void panels_are_few(void **state) {
  struct default_bound made;
  struct buf text = {0};
  buf_puts(&text, BEGIN
           "in X f32 [i:64, k:64]\nin Z f32 [i:64, k:64]\nin W f32 [j:64, k:64] const\n"
           "A[i:64, j:64] = X[i, k] * W[j, k] // sum k:64\n"
           "B[i:64, j:64] = Z[i, k] * W[j, k] // sum k:64\n");
  for (int full = 0; full < 2; full++) {
    struct program *p;
    for (int i = 0; full && i < PROGRAM_STAGES - 5; i++)
      buf_printf(&text, "u%d[i:64] = X[i, 0] + %d\n", i, i);
    size_t length = text.length;
    buf_puts(&text, "out A\nout B\n");
    CHECK_INT(program_parse(&ctx, text.text, text.length, &p), CANVAS_OK, ctx.message);
    CHECK_INT(default_bind(&ctx, p, &machine_avx512, &made), CANVAS_OK, ctx.message);
    const struct program *edited = made.edited ? made.edited : p;
    CHECK_INT(program_verify(&ctx, edited), CANVAS_OK, ctx.message);
    CHECK(full || program_find(edited, "W_p") >= 0, "one panel");
    CHECK(program_find(edited, "W_p2") < 0, "not two of them");
    text.length = length;
    loop_tree_free(made.tree);
    schedule_free(made.schedule);
    program_free(made.edited);
    program_free(p);
  }
  buf_free(&text);
}

// Each element of what a map loads piece by piece.
static void pieces_keep(void **state) {
  static const char *const loads[] = {"(w+13)%40",
                                      "(w+39)%40 ",
                                      "min(max(max(3-w, w-3), 0), 39-max(w-42, 0))",
                                      "min(max(w-3, 0), 39)",
                                      "39-min(w, 39)",
                                      "w/2 + max(w-30, 0)/2"};
  CHECK_ROWS (loads, load) {
    char text[256];
    struct program *p;
    snprintf(text, sizeof text, BEGIN "in X f32 [c:2, w:40]\nY[c:2, w:46] = X[c, %s]\nout Y\n",
             *load);
    CHECK_INT(program_parse(&ctx, text, strlen(text), &p), CANVAS_OK, ctx.message);
    struct program *q = default_program(p, &machine_avx512);
    if (q) same_outputs(p, q, *load, 1);
    program_free(q);
    program_free(p);
  }
}

// Frees p.
static void leaves_border_out(struct program *p) {
  struct program *q = default_program(p, &machine_avx2);
  assert_non_null(q);
  struct buf text = {0};
  program_print(q, &text);
  if (!strstr(text.text, "Y_b[") || strstr(text.text, "X_m[")) fail_msg("%s", text.text);
  same_values(&ctx, p, q, "an infinite weight", 1, 1);
  buf_free(&text);
  program_free(q);
  program_free(p);
}

// A weight that is not finite makes nan of the zeros around an image, also where no product with them is left.
static void borders_keep_nan(void **state) {
  static const char groups[] = GROUPS("4", "5");
  struct program *p = called(
      "conv2d_nhwc height=6 width=5 in_channels=64 out_channels=64 kernel=3 "
      "padding=1 weights=hwio");
  p->tensors.data[p->inputs.data[1]].constant = true;
  leaves_border_out(p);
  CHECK_INT(program_parse(&ctx, groups, strlen(groups), &p), CANVAS_OK, ctx.message);
  leaves_border_out(p);
}

// ---- rows that stages share ----

static void rows_are_shared(void **state) {
  struct machine small = small_cache(&machine_avx512);
  int worse = 0;
  CHECK_ROWS (row_programs, row) {
    struct program *p;
    CHECK_INT(program_parse(&ctx, row->program, strlen(row->program), &p), CANVAS_OK, ctx.message);
    worse += !default_no_slower(&ctx, p, &small, row->program, row->most, row->shows);
    program_free(p);
  }
  CHECK_INT(worse, 0, "schedules that are worse");
}

// ---- bind takes it ----

// The naive one is in the order of the program.
static void naive_has_no_marks(void **state) {
  CHECK_ROWS (operator_calls, call) {
    struct program *p = called(*call);
    struct schedule *naive = schedule_default(p, false, NULL);
    struct buf text = {0};
    schedule_print(naive, &text);
    CHECK(!strstr(text.text, ":unroll") && !strstr(text.text, ":vec"), *call);
    buf_free(&text);
    schedule_free(naive);
    program_free(p);
  }
}

static int refused;

static void bind_one(const struct program *p, const struct machine *machine, const char *label) {
  struct schedule *s = schedule_default(p, true, machine);
  struct loop_tree *tree;
  refused += strcmp(s->name, "heuristic") != 0;
  CHECK_INT(loop_tree_bind(&ctx, p, s, machine, &tree), CANVAS_OK, label);
  loop_tree_free(tree);
  schedule_free(s);
}

static void is_taken(void **state) {
  CHECK_ROWS (operator_calls, call) {
    struct program *p = called(*call);
    CHECK_ROWS (machines, machine) {
      struct program *edited = default_program(p, *machine);
      bind_one(p, *machine, *call);
      if (edited) bind_one(edited, *machine, *call);
      program_free(edited);
    }
    program_free(p);
  }
  CHECK_INT(refused, 0, "operators");
  for (uint64_t seed = 0; seed < 300; seed++) {
    struct program *p = random_program(seed);
    const struct machine *machine = machines[seed % 3];
    struct program *edited = default_program(p, machine);
    bind_one(p, machine, "random");
    if (edited) bind_one(edited, machine, "random");
    program_free(edited);
    program_free(p);
  }
  print_message("%d of 300 random programs have the plain schedule\n", refused);
  CHECK(refused <= 30, "few random programs have the plain schedule");
}

// ---- the edits keep what is computed ----

static void edits_keep(void **state) {
  int edited = 0;
  CHECK_ROWS (operator_calls, call) {
    struct program *p = called(*call), *q = default_program(p, &machine_avx512);
    if (q) same_outputs(p, q, *call, 3);
    edited += q != NULL;
    program_free(q);
    program_free(p);
  }
  CHECK(edited >= 4, "operators are edited");
}

#define HEAD   "canvas 1\nprogram p\nin X f32 [h:9]\nin W f32 [k:3]\n"
#define HALVES "canvas 1\nprogram p\nin X bf16 [h:9]\nin W f32 [k:3]\n"
// A border and an index by blocks, outlined: the line of the new stage, which rounds nothing.
static const struct {
  const char *program, *stage;
} outlined[] = {
    {HEAD "Y[h:9] = (if 1 <= h+k && h+k < 10 then X[h+k-1] else 0) * W[k] // sum k:3\nout Y\n",
     "M[h:11] = if 1 <= h && h < 10 then X[h-1] else 0"},
    {HEAD "Y[h:9] = (if h+k < 10 then X[(h+k)%9] else 0) * W[k] // sum k:3\nout Y\n",
     "M[h:11] = if h < 10 then X[h%9] else 0"},
    {HEAD "Y[h:9] = X[((h+k)%9+(h+k)/9)%9] * W[k] // sum k:3\nout Y\n", "M[h:11] = X["},
    {HEAD "Y[h:9] = X[(h+k*2)%9/2+(h+k)%5] * W[k] // sum k:3\nout Y\n", "M[h:9, k:3] = X["},
    {HEAD "Y[h:4] = (if 1 <= h*2+k then X[h*2+k-1] else 0) * W[k] // sum k:3\nout Y\n",
     "M[h:9] = if 1 <= h then X[h-1] else 0"},
    {HEAD "Y[h:9] = X[h/3*3+k] * W[k] // sum k:3\nout Y\n", "M[h:9] = X[h]"},
    {HEAD "Y[h:9] = X[(h+1)%9] * W[k] // sum k:3\nout Y\n", "M[h:9] = X[(h+1)%9]"},
    {HEAD "Y bf16 [h:9] = X[(h+1)%9] * W[k] // sum k:3\nout Y\n", "\nM[h:9] = X[(h+1)%9]"},
    {HEAD "Y f64 [h:9] = X[(h+1)%9] * W[k] // sum k:3\nout Y\n", "\nM f64 [h:9] = X[(h+1)%9]"},
    {HALVES "Y bf16 [h:9] = (if h+k < 9 then X[h+k] else 2) * W[k] // sum k:3\nout Y\n",
     "\nM bf16 [h:11] = if h < 9 then X[h] else 2"},
    {HALVES "Y bf16 [h:9] = (if h+k < 9 then X[h+k] else 0.1) * W[k] // sum k:3\nout Y\n",
     "\nM[h:11] = if h < 9 then X[h] else 0.1"},
};

static void outlines(void **state) {
  CHECK_ROWS (outlined, row) {
    struct program *p, *q;
    CHECK_INT(program_parse(&ctx, row->program, strlen(row->program), &p), CANVAS_OK, ctx.message);
    int stage = p->outputs.data[0], body = p->tensors.data[stage].body;
    CHECK_INT(program_outline(&ctx, p, stage, p->nodes.data[body].arg[0], "M", &q), CANVAS_OK,
              ctx.message);
    struct buf text = {0};
    program_print(q, &text);
    if (!strstr(text.text, row->stage)) fail_msg("\"%s\" is not in\n%s", row->stage, text.text);
    same_outputs(p, q, row->stage, 3);
    buf_free(&text);
    program_free(q);
    program_free(p);
  }
}

// ---- time ----

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void check_time(const char *call) {
  struct program *p = called(call);
  double least = 1;
  for (int i = 0; i < 9; i++) {
    default_clear_cache();
    double begin = seconds();
    struct program *q = default_program(p, &machine_avx512);
    schedule_free(schedule_default(q, true, &machine_avx512));
    double taken = seconds() - begin;
    if (taken < least) least = taken;
    program_free(q);
  }
  print_message("edits and schedule of %.13s: %.2f ms\n", call, 1e3 * least);
  CHECK(least < 20e-3, "time to choose");  // 1 ms, and what sanitizers add
  program_free(p);
}

static void takes_no_time(void **state) {
  check_time(CONV);
  check_time("conv2d_nchw height=57 width=57 in_channels=64 out_channels=96 kernel=1");
  check_time("conv2d_nhwc height=57 width=57 in_channels=64 out_channels=96 kernel=1");
}

// ---- Winograd's convolution ----

#define CHANNELS(c) " in_channels=" #c " out_channels=" #c " kernel=3 padding=1"
static const struct {
  const char *call, *more;  // stages after it, in the place of its output
  int machine;
  double most;  // microseconds, as in default_programs.h; 0: it is scheduled as any other program
  const char *shows;  // part of the schedule; NULL: any
} winograds[] = {
    // weights of a tile stay in L1, a block of tiles and all weights in L2
    {"conv2d_nhwc height=32 width=32" CHANNELS(64), "", 0, 229.1,
     "    ni_n:1, hm:2:para, hi:1:peel =>\n"},
    // weights from L2 are prefetched and are used for more places
    {"conv2d_nhwc height=16 width=16" CHANNELS(128), "", 0, 717.4,
     "m_ic:pf(20), hi:unroll, wi:4:peel:unroll, ov:vec"},
    // images share the weights that are larger than L2
    {"conv2d_nhwc batch=10 height=14 width=14" CHANNELS(256), "", 0, 7737, NULL},
    // blocks divide the rows of tiles where some do
    {"conv2d_nhwc height=56 width=56" CHANNELS(64), "", 0, 718.4, NULL},
    {"conv2d_nhwc height=148 width=16" CHANNELS(128), "", 0, 2308, NULL},
    // few registers: weights come from memory block by block
    {"conv2d_nhwc height=32 width=32" CHANNELS(64), "", 1, 446.1, NULL},
    {"conv2d_nhwc height=16 width=16" CHANNELS(128), "", 1, 785.9,
     "    m_a:para, m_b, ob:pf(1), ni_n, hm"},
    // element-wise consumers are fused, others are not
    {"conv2d_nhwc height=32 width=32" CHANNELS(64),
     "Z[n:1, h:32, w:32, k:64] = max(Y[n, h, w, k], 0)\nV[n:1, h:32, w:32, k:64] = Z[n, h, w, k] * "
     "Y[n, h, w, k]\nout V\n",
     0, 232, "            @V = {nb_n, ni_n}/n, {hb, hm, hi, y_i}/h, {y_w, y_j}/w, {sb, sv}/k\n"},
    {"conv2d_nhwc height=32 width=32" CHANNELS(64),
     "Z[n:1, h:32, w:32, k:64] = Y[n, 31-h, w, k]\nout Z\n", 0, 0, NULL},
    {"conv2d_nhwc height=32 width=32" CHANNELS(64),
     "Z[n:1] = Y[n, h, w, k] // sum h:32, w:32, k:64\nout Z\n", 0, 0, NULL},
    // channels are not the vector axis
    {"conv2d_nchw height=32 width=32" CHANNELS(64), "", 0, 0, NULL},
};

static struct program *in_tiles_of_4(const char *call, const char *more) {
  struct program *given = called(call), *p;
  struct buf text = {0};
  program_print(given, &text);
  if (*more) strstr(text.text, "out Y")[0] = '\0';
  char *whole = mem_alloc(strlen(text.text) + strlen(more) + 1);
  strcat(strcpy(whole, text.text), more);
  program_free(given);
  CHECK_INT(program_parse(&ctx, whole, strlen(whole), &given), CANVAS_OK, ctx.message);
  p = program_with_winograd(given, 4);
  assert_non_null(p);
  program_free(given);
  free(whole);
  buf_free(&text);
  return p;
}

static bool winograd_no_slower(const struct program *p, const struct machine *machine,
                               const struct schedule *s, double most, const char *shows) {
  struct buf text = {0};
  struct loop_tree *tree;
  CHECK_INT(loop_tree_bind(&ctx, p, s, machine, &tree), CANVAS_OK, ctx.message);
  schedule_print(s, &text);
  bool good = no_slower(p->name, predicted(&ctx, tree, p->name), most, text.text, shows);
  buf_free(&text);
  loop_tree_free(tree);
  return good;
}

static void winograd_in_blocks(void **state) {
  int worse = 0;
  CHECK_ROWS (winograds, row) {
    const struct machine *machine = machines[row->machine];
    struct program *p = in_tiles_of_4(row->call, row->more);
    struct schedule *s = default_winograd(p, machine);
    CHECK(!s == !row->most, row->call);
    if (s) {
      CHECK(!default_program(p, machine), row->call);
      worse += !winograd_no_slower(p, machine, s, row->most, row->shows);
    }
    schedule_free(s);
    program_free(p);
  }
  CHECK_INT(worse, 0, "schedules that are worse");
}

// Products and element-wise stages in turn, each of which could share rows with all before it.
static struct program *chain(int stages) {
  struct buf text = {0};
  struct program *p;
  buf_puts(&text, "canvas 1\nprogram chain\nin X f32 [n:64, m:64]\nS0[n:64, m:64] = X[n, m] + 1\n");
  for (int i = 1; i < stages; i++)
    if (i % 2)
      buf_printf(&text, "S%d[n:64, m:64] = S%d[n, k] * X[k, m] // sum k:64\n", i, i - 1);
    else
      buf_printf(&text, "S%d[n:64, m:64] = max(S%d[n, m], 0)\n", i, i - 1);
  buf_printf(&text, "out S%d\n", stages - 1);
  CHECK_INT(program_parse(&ctx, text.text, text.length, &p), CANVAS_OK, ctx.message);
  buf_free(&text);
  return p;
}

static double bind_seconds(int stages) {
  struct program *p = chain(stages);
  struct default_bound bound;
  clock_t start = clock();
  CHECK_INT(default_bind(&ctx, p, &machine_avx512, &bound), CANVAS_OK, ctx.message);
  double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
  loop_tree_free(bound.tree);
  schedule_free(bound.schedule);
  program_free(bound.edited);
  program_free(p);
  return seconds;
}

// Eight times as many stages took 150 times as long when stages looked for their consumers.
static void large_programs_are_near_linear(void **state) {
  bind_seconds(250);  // first tiles are chosen
  double few = bind_seconds(250), many = bind_seconds(2000);
  CHECK(many < 40 * few + 0.1, "2,000 stages against 250");
}

CHECK_MAIN(cmocka_unit_test(winograd_in_blocks), cmocka_unit_test(naive_has_no_marks),
           cmocka_unit_test(pieces_keep), cmocka_unit_test(borders_keep_nan),
           cmocka_unit_test(panels_are_few), cmocka_unit_test(rows_are_shared),
           cmocka_unit_test(is_taken), cmocka_unit_test(edits_keep), cmocka_unit_test(outlines),
           cmocka_unit_test(takes_no_time), cmocka_unit_test(large_programs_are_near_linear))
