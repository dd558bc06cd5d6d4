// Sketches: each can be bound at points of its space, and what it computes there is right.
//
// CANVAS_TEST_ALL=1: more programs and more points.
#include "autoschedule/winograd_nest.h"
#include "check.h"
#include "machines.h"
#include "operator_calls.h"
#include "random_program.h"
#include "rewrite/program_edit.h"
#include "same_values.h"
#include "sanitized.h"
#include "tune/candidates.h"
#include "tune/sketch.h"
#include "tune/space.h"

static canvas_context ctx;
static struct compiler *compiler;
static char folder[64];

static bool all(void) {
  return getenv("CANVAS_TEST_ALL") != NULL;
}

static int open_compiler(void **state) {
  if (!temporary_folder(folder, sizeof folder)) return -1;
  const struct compiler_options options = {.cache = folder, .quick = true};
  return compiler_open(&ctx, &options, &compiler) != CANVAS_OK;
}

static int close_compiler(void **state) {
  char command[128];
  compiler_close(compiler);
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

// A call of an operator, or the text of a program.
static struct program *called(const char *call) {
  struct program *p;
  if (!strncmp(call, "canvas 1", 8)) {
    CHECK_INT(program_parse(&ctx, call, strlen(call), &p), CANVAS_OK, ctx.message);
    return p;
  }
  CHECK_INT(operator_called(&ctx, call, &p), CANVAS_OK, ctx.message);
  return p;
}

static bool winograd;  // is permitted

static struct sketches made_of(const struct program *p, const struct machine *machine) {
  struct sketches s;
  const struct sketch_options options = {winograd};
  CHECK_INT(sketches_of(&ctx, p, machine, &options, &s), CANVAS_OK, ctx.message);
  return s;
}

// ---- which there are ----

#define CONV_7 "conv2d_nhwc height=7 width=7 in_channels=64 out_channels=64 kernel=3 padding=1"
#define STEM \
  "conv2d_nchw height=80 width=80 in_channels=3 out_channels=64 kernel=7 padding=3 stride=2"
#define BSR                                                                                      \
  "bsr_conv2d_nhwc batch=1 height=8 width=8 in_channels=64 out_channels=64 kernel=3 blocks=400 " \
  "block_rows=16 block_columns=2 padding=1"
// Something is made of an image, and then of all channels of a pixel.
#define MIXED                                                                                 \
  "canvas 1\nprogram mixed\nin X f32 [c:20, h:9, w:18]\nin V f32 [c:20, kh:3] const\n"        \
  "in W f32 [o:33, c:20] const\nD[c:20, h:9, w:18] = (if 1 <= h+kh && h+kh < 10 then "        \
  "X[c, h+kh-1, w] else 0) * V[c, kh] // sum kh:3\nT[c:20, h:9, w:18] = X[c, h, (w-1)%18] + " \
  "D[c, h, w]\nY[o:33, h:9, w:18] = T[c, h, w] * W[o, c] // sum c:20\nout Y\n"
// A row reads what another one sums.
#define SHIFTED_ROWS                                                                             \
  "canvas 1\nprogram shifted\nin X f32 [a:4, b:3, c:20]\nS[a:4, b:3] = X[a, b, c] // sum c:20\n" \
  "Y[a:4, b:3] = if 1 <= b then S[a, b-1] else 0\nout Y\n"
static const struct {
  const char *call;
  int machine;
  const char *rule;  // of one of them
  const char *line;  // of its schedule
} there[] = {
    {CONV_7, 0, "default", "kh, kw, ic, Y_h:unroll, oc_v:32:vec =>"},
    {CONV_7, 0, "lanes oc 32, rows h and w, panels in blocks",
     "oc_b:{1,2}, kh, kw, ic, h_i:{2,3,4,7}:peel:unroll, w_i:{2,3,4,7}:peel:unroll, oc_v:32:vec"},
    {BSR, 0, "im2col of rows across, lanes xi 16, rows y, rows in blocks",
     "@im2col[im2col_k][y_b][y_i] ="},
    {"softmax shape=12x100", 0, "row by row", "raised_v:100:mask:vec =>"},
    {"softmax shape=2x3x1003", 0, "row by row", "raised_o, raised_v:{64,128,256}:peel:vec =>"},
    {"gemv m=12 k=37", 0, "row by row", "@Y = {row0}/m // {Y_v}/k"},
    {MIXED, 0, "T of rows, lanes w 32, rows o, rows in blocks", "D_w_v:16:mask:vec"},
    {MIXED, 1, "T of rows across, lanes o 16, rows w, rows in blocks", "@T[T_c]["},
    {BSR, 0, "im2col of rows, lanes xi 16, rows y, rows in blocks",
     "    y_b, y_i, Y_x_o, Y_ki, Y_x_v:16:vec =>"},
    {CONV_7, 0, "borders, lanes oc 32, rows w, panels in blocks", "oc_oo:para, n, h, w_o, oc_b:"},
    {CONV_7, 0, "im2col of rows, lanes oc 32, rows n_h_w, rows in blocks",
     "Y_f_oc_o, n_h_w_b, kh, kw, ic, n_h_w_i:unroll, oc_v:32:vec"},
    {CONV_7, 0, "im2col of rows across, lanes oc 32, rows n_h_w, rows in blocks",
     "@im2col[im2col_kh][im2col_kw][im2col_ic][n_h_w_b][n_h_w_i] ="},
    {STEM, 0, "im2col of rows, lanes oc 32, rows w, rows in blocks", "n, h:para, w_oo =>"},
    {"gemm m=100 n=200 k=64", 0, "lanes n 32, rows m, rows in blocks",
     "m_oo, n_o, m_b:{1,2,4,8}, k, m_i:"},
    {"gemm m=100 n=200 k=64", 1, "lanes n 16, rows m, panels in blocks", "n_oo:para, m_o, n_b:"},
    {"gemv m=64 k=256", 0, "partial sums, lanes k_i 32, rows m, rows in blocks",
     "m_oo, m_b:{1,2,4} =>"},
    {"gemv m=64 k=256", 0, "no lanes, rows m, rows in blocks", "m_b:{1,2}, k, m_i:"},
};

static void rows_apart(void **state) {
  struct program *p = called(SHIFTED_ROWS);
  const struct machine *machine = machine_model(0);
  struct sketches s = made_of(p, machine);
  for (int i = 0; i < s.count; i++) {
    struct space *space;
    CHECK(strcmp(s.data[i].rule, "row by row") != 0, s.data[i].rule);
    CHECK_INT(space_new(&ctx, s.data[i].program, s.data[i].schedule, machine, NUMBERS_AUTO, &space),
              CANVAS_OK, ctx.message);
    space_free(space);
  }
  sketches_free(&s);
  program_free(p);
}

static void what_is_there(void **state) {
  CHECK_ROWS (there, row) {
    struct program *p = called(row->call);
    struct sketches s = made_of(p, machine_model(row->machine));
    struct buf text = {0};
    CHECK_TEXT(s.data[0].rule, "default", row->call);
    for (int i = 0; i < s.count; i++)
      if (strcmp(s.data[i].rule, row->rule) == 0) schedule_print(s.data[i].schedule, &text);
    if (!text.text || !strstr(text.text, row->line)) {
      for (int i = 0; i < s.count; i++) print_message("%s\n", s.data[i].rule);
      fail_msg("\"%s\" is not in \"%s\" of %s: %s", row->line, row->rule, row->call, text.text);
    }
    buf_free(&text);
    sketches_free(&s);
    program_free(p);
  }
}

// Numbers of one stage are those of no other, which splits the same axis into as many parts: each point of
// the sketch can be bound.
#define SHIFTED                                                                                \
  "canvas 1\nprogram shifted\nin X f32 [c:64, h:56, w:56]\nin V f32 [c:64, kh:3] const\n"      \
  "in W f32 [o:64, c:64] const\nD[c:64, h:56, w:56] = (if 1 <= h+kh && h+kh < 57 then "        \
  "X[c, h+kh-1, w] else 0) * V[c, kh] // sum kh:3\nT[c:64, h:56, w:56] = X[c, h, (w-1)%56] + " \
  "D[c, h, w]\nY[o:64, h:56, w:56] = T[c, h, w] * W[o, c] // sum c:64\nout Y\n"

static int points_of(const struct sketch *s) {
  struct space *space;
  struct loop_tree *tree;
  CHECK_INT(space_new(&ctx, s->program, s->schedule, &machine_avx512, NUMBERS_AUTO, &space),
            CANVAS_OK, ctx.message);
  for (int64_t i = 0; i < space->size; i++) {
    if (space_bind(&ctx, space, i, &tree) != CANVAS_OK) fail_msg("%s: %s", s->rule, ctx.message);
    loop_tree_free(tree);
  }
  int points = (int)space->size;
  space_free(space);
  return points;
}

static void numbers_are_their_own(void **state) {
  struct program *p = called(SHIFTED);
  struct sketches s = made_of(p, &machine_avx512);
  int seen = 0;
  for (int i = 0; i < s.count; i++)
    if (!strncmp(s.data[i].rule, "lanes o 32, rows w", 18)) seen += points_of(&s.data[i]) > 1;
  CHECK_INT(seen, 3, "panels and rows in blocks, rows in bands");
  sketches_free(&s);
  program_free(p);
}

// Of a convolution with many channels every kind has some, and orders that only all images tell apart.
static void orders(void **state) {
  static const char *const wanted[] = {"lanes oc 32, rows w, panels in blocks",
                                       "borders, lanes oc 32, rows w, panels in blocks",
                                       "borders, lanes oc 32, rows w, rows in bands",
                                       "pad of rows, lanes oc 32, rows w, rows in blocks"};
  struct program *p = called(
      "conv2d_nhwc batch=10 height=32 width=32 in_channels=512 "
      "out_channels=512 kernel=3 padding=1");
  struct sketches s = made_of(p, &machine_avx512);
  CHECK_INT(s.count, SKETCHES, "there are more");
  for (int i = 0; i < 4; i++) {
    int found = 0;
    for (int j = 0; j < s.count; j++) found += !strcmp(s.data[j].rule, wanted[i]);
    CHECK_INT(found, 1, wanted[i]);
  }
  for (int i = 0; i < s.count; i++) {
    if (strcmp(s.data[i].rule, wanted[2]) != 0) continue;
    struct buf text = {0};
    schedule_print(s.data[i].schedule, &text);
    CHECK(strstr(text.text, "n:para, h_oo, Y_oc_o, h_b:{1,2,4,8,16,32}, w_o, kh, kw, ic,"),
          text.text);
    buf_free(&text);
  }
  sketches_free(&s);
  program_free(p);
}

// A sparse sum: blocks of its columns and nothing else, few enough to try all of them.
static void sparse_ones(void **state) {
  static const char *const calls[] = {
      "bsr_conv2d_nhwc batch=1 height=56 width=56 in_channels=64 out_channels=64 kernel=3 "
      "blocks=460 block_rows=16 block_columns=2 padding=1",
      "bsr_conv2d_nhwc batch=1 height=7 width=7 in_channels=512 out_channels=512 kernel=3 "
      "blocks=29491 block_rows=16 block_columns=2 padding=1",
  };
  for (int i = 0; i < 2; i++) {
    struct program *p = called(calls[i]);
    struct sketches s = made_of(p, &machine_avx512);
    int points = 0;
    for (int j = 1; j < s.count; j++) {
      struct space *space;
      CHECK_INT(strncmp(s.data[j].rule, "im2col of rows", 14), 0, s.data[j].rule);
      CHECK_INT(space_new(&ctx, s.data[j].program, s.data[j].schedule, &machine_avx512,
                          NUMBERS_AUTO, &space),
                CANVAS_OK, ctx.message);
      points += (int)space->size;
      space_free(space);
    }
    if (points < 8 || points > 400) fail_msg("%d points of %s", points, calls[i]);
    sketches_free(&s);
    program_free(p);
  }
}

// ---- what they compute ----

struct trees {
  VEC(struct loop_tree *);
};

// Points of one sketch, at random; each sketch has some that can be bound.
static void add_points(struct trees *t, const struct sketch *s, const struct machine *machine,
                       struct random *r, int wanted, const char *label) {
  struct space *space;
  int found = 0;
  if (space_new(&ctx, s->program, s->schedule, machine, NUMBERS_AUTO, &space) != CANVAS_OK)
    fail_msg("%s, \"%s\": %s", label, s->rule, ctx.message);
  for (int tries = 0; tries < 50 && found < wanted; tries++) {
    int64_t point = (int64_t)(random_u64(r) % (uint64_t)space->size);
    struct loop_tree *tree;
    if (space_bind(&ctx, space, point, &tree) != CANVAS_OK) continue;
    VEC_PUSH(t, tree);
    found++;
    if (space->size == 1) break;
  }
  if (!found) fail_msg("%s, \"%s\": %s", label, s->rule, ctx.message);
  space_free(space);
}

static void check_values(const struct program *p, const struct trees *t, const char *label) {
  struct verdict *verdicts = mem_alloc((size_t)t->count * sizeof *verdicts + 1);
  const struct batch_options options = {.limits = {.repeats = 1}};
  struct expected *expected;
  const struct expected_options wanted = {.winograd = winograd ? WINOGRAD : 0};
  CHECK_INT(expected_new(&ctx, p, &wanted, &expected), CANVAS_OK, ctx.message);
  canvas_status status =
      candidates_measure(&ctx, compiler, expected, p, (const struct loop_tree *const *)t->data,
                         t->count, &options, verdicts);
  CHECK_INT(status, CANVAS_OK, ctx.message);
  for (int i = 0; i < t->count; i++) {
    struct buf text = {0};
    if (verdicts[i].failure == FAILED_NOT) continue;
    program_print(t->data[i]->program, &text);
    schedule_print(t->data[i]->schedule, &text);
    fail_msg("%s: %s in\n%s", label, verdicts[i].message, text.text);
  }
  expected_free(expected);
  free(verdicts);
}

// Some points of some of the sketches of a program: which, the seed says.
static void sketches_are_right(const struct program *p, const struct machine *machine,
                               uint64_t seed, int share, const char *label) {
  struct sketches s = made_of(p, machine);
  struct random r;
  random_open(&r, seed, RANDOM_TEST, 0);
  struct trees trees = {0};
  for (int i = 0; i < s.count; i++)
    if (random_below(&r, (uint32_t)share) == 0)
      add_points(&trees, &s.data[i], machine, &r, 1, label);
  check_values(p, &trees, label);
  for (int i = 0; i < trees.count; i++) loop_tree_free(trees.data[i]);
  free(trees.data);
  sketches_free(&s);
}

#define SMALL_BSR                                                                               \
  "bsr_conv2d_nhwc batch=1 height=5 width=6 in_channels=16 out_channels=32 kernel=3 blocks=40 " \
  "block_rows=16 block_columns=2 padding=1"

#define SMALL_WINDOWS                                                                           \
  "bsr_conv2d_nhwc batch=1 height=5 width=6 in_channels=16 out_channels=32 kernel=3 blocks=80 " \
  "padding=1"

static const char *const calls[] = {
    "conv2d_nhwc height=7 width=9 in_channels=6 out_channels=20 kernel=3 padding=1",
    "conv2d_nchw height=7 width=9 in_channels=6 out_channels=20 kernel=3 padding=1 stride=2",
    "depthwise_conv2d_nchw in_channels=5 height=11 width=18 kernel=3 padding=1",
    "gemm m=23 n=37 k=19",
    "gemv m=21 k=64",
    "softmax shape=9x64",
    MIXED,
    SMALL_BSR,
    SMALL_WINDOWS,
};

static void operators(void **state) {
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    struct program *p = called(calls[i]);
    sketches_are_right(p, machine_model((int)i % MACHINES), i, 5, calls[i]);
    program_free(p);
  }
}

// Convolutions as products of matrices: of all channels, and where that is most of the program.
#define LAYERS                                                                               \
  "canvas 1\nprogram layers\nin X f32 [c:32, h:6, w:7]\nin V f32 [o:40, c:32, kh:3, kw:3]\n" \
  "in W f32 [z:5, o:40]\nP[c:32, h:8, w:9] = if 1 <= h && h < 7 && 1 <= w && w < 8 then "    \
  "X[c, h-1, w-1] else 0\nS[o:40, h:6, w:7] = P[c, h+kh, w+kw] * V[o, c, kh, kw] // sum "    \
  "c:32, kh:3, kw:3\nR[o:40, h:6, w:7] = max(S[o, h, w], 0)\nY[z:5, h:6, w:7] = R[o, h, w] " \
  "* W[z, o] // sum o:40\nout Y\n"
#define SOLID                                                                                      \
  "canvas 1\nprogram solid\nin X f32 [d:5, h:6, w:20, c:3]\nin W f32 [o:20, c:3, k:2, l:2, m:2]\n" \
  "Y[d:4, h:5, w:19, o:20] = W[o, c, k, l, m] * X[d+k, h+l, w+m, c] // sum k:2, l:2, m:2, "        \
  "c:3\nout Y\n"
static const struct {
  const char *call;
  int least;  // sketches of columns
} matrices[] = {
    {"conv2d_nhwc height=7 width=9 in_channels=16 out_channels=40 kernel=3 padding=1", 2},
    {"conv2d_nhwc batch=2 height=9 width=9 in_channels=18 out_channels=40 kernel=3 stride=2", 2},
    {"conv2d_nchw height=9 width=70 in_channels=3 out_channels=40 kernel=5 stride=2 padding=2", 2},
    {"conv2d_nhwc height=9 width=9 in_channels=16 out_channels=33 kernel=3 padding=2 dilation=2",
     2},
    {"conv1d length=50 in_channels=16 out_channels=64 kernel=3 padding=1", 2},
    {"conv_transpose2d_nchw height=5 width=6 in_channels=8 out_channels=20 kernel=4 stride=2 "
     "padding=1",
     0},
    {LAYERS, 2},
    {SOLID, 2},
    {"conv2d_nhwc height=7 width=9 in_channels=6 out_channels=20 kernel=1", 0},
    {"conv2d_nhwc height=7 width=9 in_channels=6 out_channels=20 kernel=3 groups=2", 0},
    {"depthwise_conv2d_nchw in_channels=5 height=11 width=18 kernel=3 padding=1", 0},
};

// An image in blocks of channels, where they are whole blocks and nothing but summed over.
static const struct {
  const char *call;
  const char *rule;  // what one begins with; NULL: there is none
} blocks_of_channels[] = {
    {"conv2d_nhwc height=7 width=9 in_channels=32 out_channels=40 kernel=3 padding=1",
     "pad_c in blocks of channels, lanes oc"},
    {"conv2d_nchw batch=2 height=9 width=11 in_channels=48 out_channels=40 kernel=3 stride=2",
     "X_c in blocks of channels, lanes oc"},
    {"conv1d length=50 in_channels=32 out_channels=64 kernel=3 padding=1",
     "pad_c in blocks of channels, lanes oc"},
    {LAYERS, "P_c in blocks of channels, lanes o"},
    {"conv2d_nhwc height=7 width=9 in_channels=16 out_channels=40 kernel=3 padding=1", NULL},
    {"conv2d_nhwc height=7 width=9 in_channels=40 out_channels=40 kernel=3 padding=1", NULL},
    {"conv2d_nhwc height=7 width=9 in_channels=64 out_channels=64 kernel=3 groups=2", NULL},
    {"gemm m=23 n=37 k=64", NULL},
    {SOLID, NULL},
};

// What a window reads, for bands of rows that overlap.
static const struct {
  const char *call;
  const char *rule;
  const char *line;  // of one schedule
} bands[] = {
    {"conv2d_nhwc height=8 width=9 in_channels=6 out_channels=20 kernel=3 padding=1",
     "pad for 4 rows, overlapping, lanes oc", "@pad_o ="},
    {"conv2d_nchw height=16 width=16 in_channels=6 out_channels=20 kernel=5 padding=2 stride=2",
     "pad for ", "@pad_o ="},
    {LAYERS, "P for 2 rows, overlapping, lanes o", "@P_o ="},
    {MIXED, NULL, NULL},
    {"conv2d_nhwc batch=2 height=8 width=9 in_channels=6 out_channels=20 kernel=3 padding=1", NULL,
     NULL},
    {"gemm m=23 n=37 k=64", NULL, NULL},
};

// Sketches whose rule has these words: some begin with `rule` and have the line, and all points are right;
// with NULL for the rule there is none of them.
static void check_family(const char *call, const char *words, int family, int points,
                         const char *rule, const char *line) {
  struct program *p = called(call);
  const struct machine *machine = &machine_avx512;
  struct sketches s = made_of(p, machine);
  struct trees trees = {0};
  struct random r;
  int named = 0;
  random_open(&r, 7, RANDOM_TEST, 0);
  for (int i = 0; i < s.count; i++) {
    struct buf text = {0};
    if (!strstr(s.data[i].rule, words)) continue;
    CHECK_INT(s.data[i].family, family, s.data[i].rule);
    schedule_print(s.data[i].schedule, &text);
    named += rule && !strncmp(s.data[i].rule, rule, strlen(rule)) && strstr(text.text, line);
    buf_free(&text);
    add_points(&trees, &s.data[i], machine, &r, points, call);
  }
  CHECK(rule ? named > 0 : !trees.count, call);
  check_values(p, &trees, call);
  for (int i = 0; i < trees.count; i++) loop_tree_free(trees.data[i]);
  free(trees.data);
  sketches_free(&s);
  program_free(p);
}

static void overlaps(void **state) {
  CHECK_ROWS (bands, row)
    check_family(row->call, "overlapping", FAMILY_BUFFERED, 2, row->rule, row->line);
}

static void channels(void **state) {
  CHECK_ROWS (blocks_of_channels, row)
    check_family(row->call, "in blocks of channels", FAMILY_CHANNELS, 1, row->rule, "");
}

static void columns(void **state) {
  CHECK_ROWS (matrices, row) {
    struct program *p = called(row->call);
    const struct machine *machine = &machine_avx512;
    struct sketches s = made_of(p, machine);
    struct trees trees = {0};
    struct random r;
    random_open(&r, 5, RANDOM_TEST, 0);
    for (int i = 0; i < s.count; i++)
      if (!strncmp(s.data[i].rule, "im2col", 6))
        add_points(&trees, &s.data[i], machine, &r, 1, row->call);
    if (row->least ? trees.count < row->least : trees.count > 0)
      fail_msg("%d sketches of columns of %s", trees.count, row->call);
    check_values(p, &trees, row->call);
    for (int i = 0; i < trees.count; i++) loop_tree_free(trees.data[i]);
    free(trees.data);
    sketches_free(&s);
    program_free(p);
  }
}

// Only where they are permitted.
static void fewer_products(void **state) {
  static const char call[] =
      "conv2d_nhwc height=9 width=7 in_channels=20 out_channels=32 kernel=3 padding=1";
  struct program *p = called(call);
  for (int permitted = 0; permitted < 2; permitted++) {
    winograd = permitted;
    struct sketches s = made_of(p, &machine_avx512);
    struct trees trees = {0};
    struct random r;
    random_open(&r, 3, RANDOM_TEST, 0);
    for (int i = 0; i < s.count; i++)
      if (!strncmp(s.data[i].rule, "winograd", 8))
        add_points(&trees, &s.data[i], &machine_avx512, &r, 2, call);
    CHECK_INT(trees.count, permitted ? 4 : 0, call);
    check_values(p, &trees, call);
    for (int i = 0; i < trees.count; i++) loop_tree_free(trees.data[i]);
    free(trees.data);
    sketches_free(&s);
  }
  winograd = false;
  program_free(p);
}

static void every_operator(void **state) {
  if (!all()) skip();
  for (int i = 0; i < OPERATOR_CALLS; i++) {
    struct program *p = called(operator_calls[i]);
    for (int m = 0; m < MACHINES; m++)
      sketches_are_right(p, machine_model(m), (uint64_t)i, 3, operator_calls[i]);
    program_free(p);
  }
}

static void random_ones(void **state) {
  char label[32];
  for (int i = 0; i < (all() ? 120 : 4); i++) {
    struct program *p = i % 2 ? random_border_program((uint64_t)i) : random_program((uint64_t)i);
    snprintf(label, sizeof label, "seed %d", i);
    sketches_are_right(p, machine_model(i % MACHINES), (uint64_t)i, 4, label);
    program_free(p);
  }
}

// ---- weights that are not finite ----

// Their products with the zeros around an image are nan, also where a sketch leaves these out.
static const struct {
  const char *call;
  int borders;  // are there sketches that do?
} padded[] = {
    {"conv2d_nhwc height=5 width=5 in_channels=32 out_channels=40 kernel=3 padding=1", 1},
    {"conv2d_nchw height=5 width=5 in_channels=32 out_channels=40 kernel=3 padding=1", 1},
    {"conv2d_nhwc height=9 width=6 in_channels=32 out_channels=64 kernel=3 padding=1 groups=2 "
     "stride=2",
     1},
    {"conv2d_nhwc height=9 width=9 in_channels=32 out_channels=32 kernel=3 padding=1 groups=32", 1},
    {"depthwise_conv2d_nchw in_channels=5 height=11 width=18 kernel=3 padding=1", 0},
};

static void borders_keep_nan(void **state) {
  CHECK_ROWS (padded, row) {
    for (int constant = 0; constant < 2; constant++) {
      struct program *p = called(row->call);
      p->tensors.data[p->inputs.data[1]].constant = constant;
      struct sketches s = made_of(p, machine_model(constant));
      int borders = 0;
      for (int i = 0; i < s.count; i++) {
        borders += s.data[i].family == FAMILY_GUARDED;
        same_values(&ctx, p, s.data[i].program, s.data[i].rule, 7, 1);
      }
      CHECK_INT(borders > 0, row->borders, row->call);
      sketches_free(&s);
      program_free(p);
    }
  }
}

// ---- Winograd's convolution ----

#define BLOCKS                                                                                   \
  "program blocks\nin X f32 [n:2, c:5, h:9, w:6]\nin W f32 [o:2, c:5, kh:3, kw:3, v:16] const\n" \
  "Y[n:2, o:2, h:7, w:4, v:16] = X[n, c, h+kh, w+kw] * W[o, c, kh, kw, v] // sum c:5, kh:3, "    \
  "kw:3\nout Y\n"
#define GROUPS                                                                            \
  "program groups\nin X f32 [h:9, w:6, g:2, c:5]\nin W f32 [g:2, o:4, kh:3, kw:3, c:5]\n" \
  "Y[h:7, w:4, g:2, o:4] = X[h+kh, w+kw, g, c] * W[g, o, kh, kw, c] // sum c:5, kh:3, "   \
  "kw:3\nout Y\n"
static const struct {
  const char *program;  // or the call of an operator
  int there;            // sketches of it that are permitted
} convolutions[] = {
    {"conv2d_nhwc batch=2 height=7 width=9 in_channels=6 out_channels=20 kernel=3 padding=1", 2},
    {"conv2d_nchw height=12 width=5 in_channels=17 out_channels=33 kernel=3 padding=1", 2},
    {BLOCKS, 2},
    {GROUPS, 2},
    {"conv2d_nhwc height=7 width=9 in_channels=6 out_channels=20 kernel=3 stride=2", 0},
};

// They are there where that is permitted, and compute the same within what is permitted then.
static void where_it_is_permitted(void **state) {
  const struct sketch_options permitted = {.winograd = true};
  CHECK_ROWS (convolutions, row) {
    struct program *p;
    struct sketches s, others;
    struct random r;
    struct trees trees = {0};
    const struct machine *machine = machine_model((int)(row - convolutions) % MACHINES);
    if (strncmp(row->program, "program", 7))
      p = called(row->program);
    else
      CHECK_INT(program_parse(&ctx, row->program, strlen(row->program), &p), CANVAS_OK,
                ctx.message);
    random_open(&r, 3, RANDOM_TEST, 0);
    CHECK_INT(sketches_of(&ctx, p, machine, &permitted, &s), CANVAS_OK, ctx.message);
    others = made_of(p, machine);
    int count = 0;
    for (int i = 0; i < others.count; i++)
      CHECK_INT(others.data[i].program->winograd, 0, row->program);
    for (int i = 0; i < s.count; i++) {
      if (!s.data[i].program->winograd) continue;
      count++;
      add_points(&trees, &s.data[i], machine, &r, 2, row->program);
    }
    CHECK_INT(count, row->there, row->program);
    winograd = true;
    check_values(p, &trees, row->program);
    winograd = false;
    for (int i = 0; i < trees.count; i++) loop_tree_free(trees.data[i]);
    free(trees.data);
    sketches_free(&others);
    sketches_free(&s);
    program_free(p);
  }
}

static struct schedule *nest_of(const struct program *p) {
  struct program *made = program_with_winograd(p, 4);
  assert_non_null(made);
  struct schedule *s = winograd_nest(made, &machine_avx512);
  program_free(made);
  return s;
}

// Transformed weights of more than the second cache are asked for where few tiles share them.
static void weights_are_asked_for(void **state) {
  static const struct {
    const char *call;
    bool asked;
  } rows[] = {
      {"conv2d_nhwc height=14 width=14 in_channels=256 out_channels=256 kernel=3 padding=1", true},
      {"conv2d_nhwc height=14 width=14 in_channels=64 out_channels=64 kernel=3 padding=1", false},
      {"conv2d_nhwc batch=10 height=14 width=14 in_channels=256 out_channels=256 kernel=3 "
       "padding=1",
       false},
  };
  CHECK_ROWS (rows, row) {
    struct program *p = called(row->call);
    struct schedule *s = nest_of(p);
    struct buf text = {0};
    assert_non_null(s);
    schedule_print(s, &text);
    CHECK_INT(strstr(text.text, "m_ic:pf(") != NULL, row->asked, text.text);
    buf_free(&text);
    schedule_free(s);
    program_free(p);
  }
}

// The loops over rows are around both stages of a transform: between them lies one row.
static void rows_are_transformed_one_by_one(void **state) {
  struct program *p = called(
      "conv2d_nhwc batch=10 height=14 width=14 in_channels=256 out_channels=256 kernel=3 "
      "padding=1");
  struct schedule *s = nest_of(p);
  struct buf text = {0};
  assert_non_null(s);
  schedule_print(s, &text);
  assert_non_null(strstr(text.text, "hi:{1,2,4}:peel =>\n        r_w, "));
  assert_non_null(strstr(text.text, "ni_n:para, hm, hi =>\n        s_w, "));
  buf_free(&text);
  schedule_free(s);
  program_free(p);
}

// ---- by hand ----

#define ROWS "canvas 1\nprogram rows\nin X f32 [i:12, j:8]\nY[i:12] = X[i, j] // sum j:8\nout Y\n"
static const struct {
  const char *text, *message;  // NULL: it is one
} texts[] = {
    {"i, j =>\n    @Y = i // j\n", NULL},
    {"# partial sums\nedit rfactor Y j 4 as P\n\nio, ii:? =>\n    j_o, j_i:vec =>\n"
     "        @P = {io, ii}/i, j_i // j_o\n    j_i:vec =>\n        @Y = {io, ii}/i // j_i\n",
     NULL},
    {"# none\nedit inline Z\ni, j =>\n    @Y = i // j\n",
     "edit in line 2: line 1, column 8: the program has no tensor 'Z'"},
    {"edit rfactor Y j 4 as P\n\ni, j =>\n    @Y = i /\n", "line 4, column 1"},
    {"edit cache X in Y as XC", "line 2, column 1: expected loops"},
};

static void by_hand(void **state) {
  struct program *p;
  CHECK_INT(program_parse(&ctx, ROWS, strlen(ROWS), &p), CANVAS_OK, ctx.message);
  CHECK_ROWS (texts, row) {
    struct sketch s;
    canvas_status status = sketch_from_text(&ctx, p, row->text, strlen(row->text), &s);
    CHECK_INT(status == CANVAS_OK, row->message == NULL, row->text);
    if (row->message && !strstr(ctx.message, row->message))
      fail_msg("\"%s\", not \"%s\", of %s", ctx.message, row->message, row->text);
    if (status != CANVAS_OK) continue;
    struct trees trees = {0};
    struct random r;
    random_open(&r, 1, RANDOM_TEST, 0);
    add_points(&trees, &s, &machine_avx512, &r, 2, row->text);
    check_values(p, &trees, row->text);
    for (int i = 0; i < trees.count; i++) loop_tree_free(trees.data[i]);
    free(trees.data);
    sketch_free(&s);
  }
  program_free(p);
}

int main(void) {
  if (getenv("CANVAS_TEST")) cmocka_set_test_filter(getenv("CANVAS_TEST"));
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_there),
      cmocka_unit_test(rows_apart),
      cmocka_unit_test(numbers_are_their_own),
      cmocka_unit_test(orders),
      cmocka_unit_test(sparse_ones),
      cmocka_unit_test(operators),
      cmocka_unit_test(columns),
      cmocka_unit_test(channels),
      cmocka_unit_test(overlaps),
      cmocka_unit_test(fewer_products),
      cmocka_unit_test(every_operator),
      cmocka_unit_test(random_ones),
      cmocka_unit_test(where_it_is_permitted),
      cmocka_unit_test(weights_are_asked_for),
      cmocka_unit_test(rows_are_transformed_one_by_one),
      cmocka_unit_test(by_hand),
      cmocka_unit_test(borders_keep_nan),
  };
  return cmocka_run_group_tests(tests, open_compiler, close_compiler);
}
