// The predicted time of schedules: which of two is faster and by about how much, that it is a number for
// every operator's default, naive and randomly edited schedules, and what it says of extremes.
#include "autoschedule/default.h"
#include "check.h"
#include "cost/schedule_cost.h"
#include "machines.h"
#include "operator_calls.h"
#include "random_edit.h"

static canvas_context ctx;

static struct program *parsed(const char *text) {
  struct program *p;
  CHECK_INT(program_parse(&ctx, text, strlen(text), &p), CANVAS_OK, ctx.message);
  return p;
}

static double seconds_of(const struct loop_tree *tree, const char *label) {
  const struct rates rates = rates_likely(&tree->machine);
  struct schedule_cost cost;
  CHECK_INT(cost_of(&ctx, tree, &rates, &cost), CANVAS_OK, ctx.message);
  CHECK(isfinite(cost.seconds) && cost.seconds > 0, label);
  return cost.seconds;
}

static double predicted_for(const struct machine *machine, const struct program *p,
                            const char *text) {
  struct schedule *s;
  struct loop_tree *tree;
  CHECK_INT(schedule_parse(&ctx, text, strlen(text), &s), CANVAS_OK, ctx.message);
  CHECK_INT(loop_tree_bind(&ctx, p, s, machine, &tree), CANVAS_OK, ctx.message);
  double seconds = seconds_of(tree, text);
  loop_tree_free(tree);
  schedule_free(s);
  return seconds;
}

static double predicted(const struct program *p, const char *text) {
  return predicted_for(&machine_avx512, p, text);
}

// ---- which is faster ----

#define PRODUCT                                                                   \
  "canvas 1\nprogram product\nin A f32 [i:256, k:256]\nin B f32 [k:256, j:256]\n" \
  "P[i:256, j:256] = A[i, k] * B[k, j] // sum k:256\nout P\n"
#define TILED    "i_o, j_o, k, i:8:unroll, j:32:vec => @P = {i_o, i}/i, {j_o, j}/j // k\n"
#define MAP      "canvas 1\nprogram map\nin X f32 [i:512, j:512]\nY[i:512, j:512] = "
#define MAP_LANE "i, j:vec => @Y = i, j\n"
#define PACKED(constant)                                                              \
  "canvas 1\nprogram packed\nin A f32 [i:2, k:256]\nin B f32 [k:256, j:256]" constant \
  "\n"                                                                                \
  "W[j:256, k:256] = B[k, j]\nP[i:2, j:256] = A[i, k] * W[j, k] // sum k:256\nout P\n"
#define PACKED_LOOPS "j, k => @W = j, k\ni, j, k => @P = i, j // k\n"
#define BORDER(inside)                                                            \
  "canvas 1\nprogram border\nin X f32 [w:16, c:64]\nin W f32 [k:9, c:64, o:32]\n" \
  "Y[w:16, o:32] = if " inside " then X[w+k-4, c] * W[k, c, o] else 0 // sum k:9, c:64\nout Y\n"
#define BORDER_LOOPS "w, k, c, o:vec => @Y = w, o // k, c\n"
#define BORDER_TERM(rest)                                                                        \
  "canvas 1\nprogram border\nin X f32 [w:28, c:64]\nin W f32 [k:9, c:64, o:32]\nin B f32 [k:9, " \
  "o:32]\n"                                                                                      \
  "Y[w:28, o:32] = if 4 <= w+k && w+k < 32 then X[w+k-4, c] * W[k, c, o] else " rest             \
  " // sum k:9, c:64\n"                                                                          \
  "Z[k:9, o:32] = B[k, o]\nout Y\nout Z\n"
#define BORDER_TILE \
  "w_o, k, c, w:14:unroll, o:32:vec => @Y = {w_o, w}/w, o // k, c\nk, o:vec => @Z = k, o\n"
#define STREAM(rows)                            \
  "canvas 1\nprogram stream\nin X f32 [i:" rows \
  ", j:1024]\n"                                 \
  "Y[r:64, j:1024] = X[i, j] // sum i:" rows "\nout Y\n"
#define TWO_LINES \
  "canvas 1\nprogram lines\nin X f32 [i:65536, c:32]\nY[i:65536, c:32] = X[i, c] * 2\nout Y\n"
#define LONG_ROWS(k)                                                     \
  "canvas 1\nprogram product\nin A f32 [i:256, k:" k "]\nin B f32 [k:" k \
  ", j:16]\n"                                                            \
  "P[i:256, j:16] = A[i, k] * B[k, j] // sum k:" k "\nout P\n"
#define SIXTEEN_ROWS "i_o, k, i:16:unroll, j:vec => @P = {i_o, i}/i, j // k\n"
#define GROUPED(index)                                                         \
  "canvas 1\nprogram grouped\nin X f32 [w:64, c:64]\nin W f32 [c:16, o:128]\n" \
  "Y[w:64, o:128] = X[w, " index "] * W[c, o] // sum c:16\nout Y\n"
#define GROUPED_LOOPS "w_o, o_o, c, w:8:unroll, o:32:vec => @Y = {w_o, w}/w, {o_o, o}/o // c\n"
#define ODD(constant)                                                              \
  "canvas 1\nprogram odd\nin A f32 [i:64, k:256]\nin B f32 [k:256, j:15]" constant \
  "\nW[k:256, j:15] = B[k, j]\n"                                                   \
  "P[i:64, j:15] = A[i, k] * W[k, j] // sum k:256\nout P\n"
#define ODD_LOOPS "k, j => @W = k, j\ni, k, j:16:mask:vec => @P = i, j // k\n"

#define TURNED(j) "canvas 1\nprogram p\nin X f32 [i:64, j:57]\nY[i:64, j:57] = X[i, " j "]\nout Y\n"
#define TURNED_LOOPS "i, j_o, j:16:peel:vec => @Y = i, {j_o, j}/j\n"

#define SHORT(j)                                                                           \
  "canvas 1\nprogram few\nin A f32 [i:64, k:256]\nin B f32 [k:256, j:" j "]\nP[i:64, j:" j \
  "] = A[i, k] * B[k, j] // sum k:256\nout P\n"

#define GATHER(most, index)                                                      \
  "canvas 1\nprogram gather\nin X f32 [h:65536, c:16]\nin D i32 [k:64] 0.." most \
  "\n"                                                                           \
  "Y[p:4096, c:16] = X[p+" index ", c] // sum k:64\nout Y\n"
#define GATHER_LOOPS "p, k, c:vec => @Y = p, c // k\n"

/* Times as slow as the first is the second, of another program where there is one. */
static const struct {
  const char *what, *program, *fast, *other, *slow;
  double least, most;
} pairs[] = {
    {"lanes", PRODUCT, TILED, NULL,
     "i_o, j_o, k, i:8:unroll, j:32 => @P = {i_o, i}/i, {j_o, j}/j // k\n", 8, 100},
    {"rows", PRODUCT, TILED, NULL, "i, j_o, k, j:32:vec => @P = i, {j_o, j}/j // k\n", 2, 8},
    {"sums in memory", PRODUCT, TILED, NULL, "i, k, j:vec => @P = i, j // k\n", 2, 20},
    {"spills", PRODUCT, TILED, NULL,
     "i_o, j_o, k, i:32:unroll, j:32:vec => @P = {i_o, i}/i, {j_o, j}/j // k\n", 1.3, 5},
    {"a chain of sums", PRODUCT,
     "i_o, j_o, k, i:8:unroll, j:16:vec => @P = {i_o, i}/i, {j_o, j}/j // k\n", NULL,
     "i_o, j_o, i:8:unroll, k, j:16:vec => @P = {i_o, i}/i, {j_o, j}/j // k\n", 2, 8},
    {"lanes that are apart", MAP "X[i, j] * 2\nout Y\n", MAP_LANE, NULL, "j, i:vec => @Y = i, j\n",
     4, 100},
    {"lanes that are apart in the first cache",
     "canvas 1\nprogram map\nin X f32 [i:32, j:32]\nY[i:32, j:32] = X[i, j] * 2\nout Y\n", MAP_LANE,
     NULL, "j, i:vec => @Y = i, j\n", 4, 100},
    {"no lanes", MAP "X[i, j] * 2\nout Y\n", MAP_LANE, NULL, "i, j => @Y = i, j\n", 1.2, 16},
    {"a function", MAP "X[i, j] * 2\nout Y\n", MAP_LANE, MAP "exp(exp(X[i, j]))\nout Y\n", MAP_LANE,
     2, 100},
    {"what is not prepared", PACKED(" const"), PACKED_LOOPS, PACKED(""), PACKED_LOOPS, 1.1, 3},
    {"no border", BORDER("4 <= w+k && w+k < 20"), BORDER_LOOPS, BORDER("0 <= w+k && w+k < 20"),
     BORDER_LOOPS, 1.05, 1.6},
    {"terms of a border alone", BORDER_TERM("0"), BORDER_TILE,
     BORDER_TERM("(if c < 1 then B[k, o] else 0)"), BORDER_TILE, 0.9, 1.1},
    {"rows in one set of the first cache", LONG_ROWS("1040"), SIXTEEN_ROWS, LONG_ROWS("1024"),
     SIXTEEN_ROWS, 1.5, 6},
    {"an index that is divided outside", GROUPED("c"), GROUPED_LOOPS, GROUPED("o/32*16+c"),
     GROUPED_LOOPS, 0.9, 1.1},
    {"lanes of a few places", GROUPED("c"), GROUPED_LOOPS, GROUPED("o/4%4*16+c"), GROUPED_LOOPS,
     1.5, 8},
    {"lanes the other way round, and a rest", TURNED("j"), TURNED_LOOPS, TURNED("56-j"),
     TURNED_LOOPS, 1, 1.8},
    {"a part of what was prepared", ODD(""), ODD_LOOPS, ODD(" const"), ODD_LOOPS, 0.8, 1.2},
    {"a part of a short vector", SHORT("4"), "i, k, j:vec => @P = i, j // k\n", SHORT("3"),
     "i, k, j:4:mask:vec => @P = i, j // k\n", 2.5, 8},
    {"a part of a long one", SHORT("16"), "i, k, j:vec => @P = i, j // k\n", SHORT("15"),
     "i, k, j:16:mask:vec => @P = i, j // k\n", 0.8, 1.6},
    {"beyond the first cache", STREAM("4"), "r, i, j:vec => @Y = r, j // i\n", STREAM("128"),
     "r, i, j:vec => @Y = r, j // i\n", 36, 100},
    {"rows that data chooses from a few, and from all", GATHER("4", "D[k]"), GATHER_LOOPS,
     GATHER("61441", "D[k]"), GATHER_LOOPS, 4, 100},
    {"rows by a remainder of data", GATHER("4", "D[k]"), GATHER_LOOPS, GATHER("61441", "D[k]/16%4"),
     GATHER_LOOPS, 0.9, 2},
    {"every other line, and then the rest", TWO_LINES, "i, c:vec => @Y = i, c\n", NULL,
     "c_o, i, c:16:vec => @Y = i, {c_o, c}/c\n", 1.6, 2.4},
};

static void which_is_faster(void **state) {
  (void)state;
  CHECK_ROWS (pairs, row) {
    struct program *p = parsed(row->program), *q = parsed(row->other ? row->other : row->program);
    double times = predicted(q, row->slow) / predicted(p, row->fast);
    if (times < row->least || times > row->most)
      fail_msg("%s: %g times as slow, not %g to %g", row->what, times, row->least, row->most);
    program_free(q);
    program_free(p);
  }
}

// ---- every schedule has a time ----

// Of a third cache one core has a part: 4 MiB come from one of 32, 16 MiB from memory.
static void shared_cache(void **state) {
  struct program *p = parsed(STREAM("1024")), *q = parsed(STREAM("4096"));
  struct machine machine = machine_avx512;
  machine.l3 = 32 << 20;
  const char *loops = "r, i, j:vec => @Y = r, j // i\n";
  double times = predicted_for(&machine, q, loops) / predicted_for(&machine, p, loops);
  if (!(times > 6 && times < 20)) fail_msg("%g times as slow, not 6 to 20", times);
  program_free(q);
  program_free(p);
}

static void check_program(const struct program *p, const char *label) {
  struct random random;
  struct loop_tree *tree;
  random_open(&random, 1, RANDOM_TEST, 0);
  for (int edits = 0; edits < 12; edits++) {
    struct schedule *s = random_schedule(p, &random, edits);
    if (loop_tree_bind(&ctx, p, s, &machine_avx512, &tree) == CANVAS_OK) {
      seconds_of(tree, label);
      loop_tree_free(tree);
    }
    schedule_free(s);
  }
}

static void every_operator(void **state) {
  (void)state;
  for (int i = 0; i < OPERATOR_CALLS; i++) {
    struct program *p;
    CHECK_INT(operator_called(&ctx, operator_calls[i], &p), CANVAS_OK, ctx.message);
    check_program(p, operator_calls[i]);
    program_free(p);
  }
}

// ---- what has none ----

static const struct {
  const char *program, *schedule, *message;
} refused[] = {
    {PRODUCT, "i_o, i:?, k, j => @P = {i_o, i}/i, j // k\n",
     "the schedule has holes, give them numbers"},
    {"canvas 1\nprogram large\nin X f32 [i:1048576]\n"
     "Y[i:1048576, j:1048576] = X[i] + X[j] * 2 // sum a:1099511627776\nout Y\n",
     "i, j, a => @Y = i, j // a\n", "stage 'Y' takes more than 2^62 operations"},
};

static void what_has_none(void **state) {
  (void)state;
  CHECK_ROWS (refused, row) {
    struct program *p = parsed(row->program);
    const struct machine machine = {.vector_bytes = 64,
                                    .registers = 32,
                                    .line = 64,
                                    .l1 = 1,
                                    .l2 = 1,
                                    .memory = INT64_C(1) << 50};
    const struct rates rates = rates_likely(&machine);
    struct schedule_cost cost;
    struct schedule *s;
    struct loop_tree *tree;
    CHECK_INT(schedule_parse(&ctx, row->schedule, strlen(row->schedule), &s), CANVAS_OK,
              ctx.message);
    CHECK_INT(loop_tree_bind(&ctx, p, s, &machine, &tree), CANVAS_OK, ctx.message);
    CHECK_INT(cost_of(&ctx, tree, &rates, &cost), CANVAS_BAD_INPUT, row->program);
    CHECK_TEXT(ctx.message, row->message, row->program);
    loop_tree_free(tree);
    schedule_free(s);
    program_free(p);
  }
}

CHECK_MAIN(cmocka_unit_test(what_has_none), cmocka_unit_test(which_is_faster),
           cmocka_unit_test(shared_cache), cmocka_unit_test(every_operator))
