// Lowering: what kernels mean, against loops written by hand from the definitions in docs/kernel.md.
#include "check.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "lower/gain.h"
#include "lower/lower.h"
#include "program/interpret.h"

static canvas_context ctx;

struct run {
  struct kernel *k;
  struct program *p;
  double *inputs[8];
  double *y;
  int64_t count;
};

/* A kernel's body at sizes "C=4,...", on seeded inputs. */
static struct run run_of(const char *body, const char *at) {
  struct run r = {0};
  char text[2048];
  struct lexer lx;
  struct binding b;
  struct interpreter *in;
  struct random random;
  snprintf(text, sizeof text, "canvas 1\nkernel t\na = input\n%s\n", body);
  CHECK_INT(lexer_open(&lx, &ctx, text, strlen(text)), CANVAS_OK, text);
  CHECK_INT(kernel_parse(&lx, &r.k), CANVAS_OK, ctx.message);
  CHECK_INT(binding_parse_at(&ctx, at, strlen(at), &b), CANVAS_OK, ctx.message);
  struct pack *pack = pack_new(r.k);
  CHECK_INT(pack_bind(&ctx, pack, &b), CANVAS_OK, ctx.message);
  CHECK_INT(lower_binding(&ctx, r.k, &pack->data[0], 1, &r.p), CANVAS_OK, ctx.message);
  pack_free(pack);
  random_open(&random, 1, RANDOM_TEST, 0);
  for (int i = 0; i < r.p->inputs.count; i++) {
    int64_t n = program_elements(r.p, r.p->inputs.data[i]);
    r.inputs[i] = mem_alloc((size_t)n * sizeof(double));
    for (int64_t j = 0; j < n; j++) r.inputs[i][j] = random_normal(&random);
  }
  int out = r.p->outputs.data[0];
  r.count = program_elements(r.p, out);
  r.y = mem_alloc((size_t)r.count * sizeof(double));
  CHECK_INT(interpreter_new(&ctx, r.p, (const double *const *)r.inputs, NULL, &in), CANVAS_OK,
            body);
  CHECK_INT(interpreter_elements(in, out, r.count, NULL, r.y), CANVAS_OK, ctx.message);
  interpreter_free(in);
  return r;
}

static void run_free(struct run *r) {
  for (int i = 0; i < 8; i++) free(r->inputs[i]);
  free(r->y);
  program_free(r->p);
  kernel_free(r->k);
}

enum { C = 4, H = 5, W = 3 };
#define AT "C=4,H=5,W=3,K=3,G=2"

static double x_at(const struct run *r, int c, int h, int w) {
  if (h < 0 || h >= H || w < 0 || w >= W) return 0;
  return r->inputs[0][(c * H + h) * W + w];
}

/* For every output element: what it must be. */
typedef double meaning(const struct run *r, int c, int h, int w);

static double convolution(const struct run *r, int c, int h, int w) {
  double sum = 0;
  for (int k = 0; k < C; k++)
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++)
        sum += x_at(r, k, h + i - 1, w + j - 1) * r->inputs[1][((c * C + k) * 3 + i) * 3 + j];
  return sum;
}

static double grouped(const struct run *r, int c, int h, int w) {
  double sum = 0;
  for (int k = 0; k < 2; k++) /* G = 2: outputs 0, 1 read inputs 0, 1 */
    sum += x_at(r, c / 2 * 2 + k, h, w) * r->inputs[1][c * 2 + k];
  return sum;
}

static double depthwise(const struct run *r, int c, int h, int w) {
  double sum = 0;
  for (int j = 0; j < 3; j++) sum += x_at(r, c, h, w + j - 1) * r->inputs[1][c * 3 + j];
  return sum;
}

static double shifted(const struct run *r, int c, int h, int w) {
  return x_at(r, c, (h - 2 + H) % H, (w - 2 + 2 * W) % W);
}

static double back(const struct run *r, int c, int h, int w) {
  return x_at(r, c, (h + 1) % H, w);
}

static double shifted_in(const struct run *r, int c, int h, int w) {
  return x_at(r, c, h - 2, w - 2);
}

static double out_of_sight(const struct run *r, int c, int h, int w) {
  (void)c, (void)w;
  return x_at(r, 0, h + 7, 0);
}

/* [C] of the maxima onto [C, H, W]: the prefix C strips */
static double max_scaled(const struct run *r, int c, int h, int w) {
  double max = x_at(r, c, 0, 0);
  for (int i = 0; i < H; i++)
    for (int j = 0; j < W; j++) max = fmax(max, x_at(r, c, i, j));
  return max * x_at(r, c, h, w);
}

/* [G, H, W] onto [C, H, W]: channel c meets group c mod G */
static double modulo(const struct run *r, int c, int h, int w) {
  int g = c % 2;
  return (x_at(r, 2 * g, h, w) + x_at(r, 2 * g + 1, h, w)) / 2 - x_at(r, c, h, w);
}

/* [W, C] is not what [C, W] onto [C, H, W] means: C strips in front, W behind, h repeats */
static double row_mean(const struct run *r, int c, int h, int w) {
  double sum = 0;
  for (int i = 0; i < H; i++) sum += x_at(r, c, i, w);
  return fmin(sum / H, x_at(r, c, h, w));
}

static double softmax_hw(const struct run *r, int c, int h, int w) {
  double sum = 0;
  for (int i = 0; i < H; i++)
    for (int j = 0; j < W; j++) sum += exp(x_at(r, c, i, j));
  return exp(x_at(r, c, h, w)) / sum;
}

static double softmax_mean_one(const struct run *r, int c, int h, int w) {
  return H * W * softmax_hw(r, c, h, w);
}

static double softmax_gc(const struct run *r, int c, int h, int w) {
  double sum = 0;
  for (int k = 0; k < C; k++) sum += exp(x_at(r, k, h, w));
  return exp(x_at(r, c, h, w)) / sum;
}

static double window_mean(const struct run *r, int c, int h, int w) {
  double sum = 0;
  for (int i = -1; i <= 1; i++)
    for (int j = -1; j <= 1; j++) sum += x_at(r, c, h + i, w + j);
  return sum / 9;
}

static void means_what_the_definition_says(void **state) {
  static const struct {
    const char *body;
    meaning *expected;
  } rows[] = {
      {"b = unfold a over=H,W k=K\nc = fc b to=C\nout c", convolution},
      {"b = group a by=G\nc = fc b to=C\nout c", grouped},
      {"b = group a each\nc = unfold b over=W k=3\nd = fc c to=C\nout d", depthwise},
      {"b = unfold a over=W k=3\nc = group b each\nd = fc c to=C\nout d", depthwise},
      {"b = shift a over=H,W by=2\nout b", shifted},
      {"b = shift a over=H by=-1\nout b", back},
      {"b = shift a over=H,W by=2 fill=zero\nout b", shifted_in},
      {"b = shift a over=H by=2 fill=zero\nc = shift b over=W by=2 fill=zero\nout c", shifted_in},
      {"b = shift a over=H by=-7 fill=zero\nout b", out_of_sight},
      {"b = fold a max over=H,W\nc = mul b a\nout c", max_scaled},
      {"b = group a by=G\nc = fold b mean over=C\nd = sub c a\nout d", modulo},
      {"b = fold a mean over=H\nc = min b a\nout c", row_mean},
      {"b = softmax a over=H,W\nout b", softmax_hw},
      {"b = softmax a over=H,W scale=H*W\nout b", softmax_mean_one},
      {"b = group a by=G\nc = softmax b over=G,C\nout c", softmax_gc},
      {"b = unfold a over=H,W k=K\nc = fold b mean over=KH,KW\nout c", window_mean},
  };
  CHECK_ROWS (rows, row) {
    struct run r = run_of(row->body, AT);
    CHECK_INT(r.count, C * H * W, row->body);
    for (int i = 0; i < r.count; i++)
      CHECK_NEAR(r.y[i], row->expected(&r, i / (H * W), i / W % H, i % W), 1e-12, row->body);
    run_free(&r);
  }
}

/* C_in = 2, C_out = 4: two copies of a 1x1 side by side, on a pooled input of odd size. */
static void pools_and_copies(void **state) {
  struct run r = run_of("b = fc a to=C\nout b", "Cin=2,Cout=4,H=5,W=3,stride=2");
  CHECK_INT(r.count, 4 * 3 * 2, "elements");
  for (int i = 0; i < r.count; i++) {
    int co = i / 6, h = i / 2 % 3, w = i % 2, copy = co / 2;
    double sum = 0;
    for (int c = 0; c < 2; c++) {
      double pooled = 0;
      int pixels = 0;
      for (int y = 2 * h; y < 2 * h + 2 && y < 5; y++)
        for (int x = 2 * w; x < 2 * w + 2 && x < 3; x++, pixels++)
          pooled += r.inputs[0][(c * 5 + y) * 3 + x];
      sum += pooled / pixels * r.inputs[1][(copy * 2 + co % 2) * 2 + c];
    }
    CHECK_NEAR(r.y[i], sum, 1e-12, "a pooled copy");
  }
  run_free(&r);
}

/* C_in = 4, C_out = 2: two groups of the input, averaged. */
static void averages_groups(void **state) {
  struct run r = run_of("b = fc a to=C\nout b", "Cin=4,Cout=2,H=2,W=2");
  for (int i = 0; i < r.count; i++) {
    double sum = 0;
    for (int copy = 0; copy < 2; copy++)
      for (int c = 0; c < 2; c++)
        sum += r.inputs[0][(copy * 2 + c) * 4 + i % 4] * r.inputs[1][(copy * 2 + i / 4) * 2 + c];
    CHECK_NEAR(r.y[i], sum / 2, 1e-12, "an averaged group");
  }
  run_free(&r);
}

/* C_in = 4, C_out = 6, C = 2: a copy for each pair of two blocks of inputs and three of outputs. */
static void pairs_of_blocks(void **state) {
  struct run r = run_of("b = fc a to=C\nout b", "Cin=4,Cout=6,H=2,W=2");
  for (int i = 0; i < r.count; i++) {
    int co = i / 4;
    double sum = 0;
    for (int block = 0; block < 2; block++)
      for (int c = 0; c < 2; c++) {
        int copy = co / 2 * 2 + block;
        sum += r.inputs[0][(block * 2 + c) * 4 + i % 4] * r.inputs[1][(copy * 2 + co % 2) * 2 + c];
      }
    CHECK_NEAR(r.y[i], sum / 2, 1e-12, "pairs of blocks");
  }
  run_free(&r);
}

/* A projected target: of the input, pooled by the stride, weighted sums over all channels. */
static void projected(void **state) {
  struct run r = run_of("b = fc a to=C\nout b", "Cin=3,Cout=4,H=2,W=4,stride=2,projected=1");
  const double *x = r.inputs[0], *projection = r.inputs[1], *w = r.inputs[2];
  CHECK_INT(r.count, 4 * 2, "outputs");
  for (int i = 0; i < r.count; i++) {
    double sum = 0;
    for (int c = 0; c < 4; c++)
      for (int k = 0; k < 3; k++)
        for (int at = 0; at < 4; at++)
          sum += w[i / 2 * 4 + c] * projection[c * 3 + k] *
                 x[k * 8 + at / 2 * 4 + i % 2 * 2 + at % 2] / 4;
    CHECK_NEAR(r.y[i], sum, 1e-12, "projected");
  }
  run_free(&r);
}

/* Windows of a dilated target reach twice as far, and three times that with a dilation of their own;
 * an even window is the next smaller odd one. */
static void dilated_and_even(void **state) {
  static const struct {
    const char *body, *at;
    int apart, window;
  } rows[] = {
      {"b = unfold a over=W k=3\nc = fold b mean over=KW\nout c", "C=1,H=1,W=9,dilation=2", 2, 3},
      {"b = unfold a over=W k=3 dilation=3\nc = fold b mean over=KW\nout c",
       "C=1,H=1,W=30,dilation=2", 6, 3},
      {"b = unfold a over=W k=K\nc = fold b mean over=KW\nout c", "C=1,H=1,W=9,K=6", 1, 5},
  };
  CHECK_ROWS (rows, row) {
    struct run r = run_of(row->body, row->at);
    for (int w = 0; w < r.count; w++) {
      double sum = 0;
      for (int i = -row->window / 2; i <= row->window / 2; i++) {
        int at = w + i * row->apart;
        if (at >= 0 && at < r.count) sum += r.inputs[0][at];
      }
      CHECK_NEAR(r.y[w], sum / row->window, 1e-12, row->at);
    }
    run_free(&r);
  }
}

static double relu(double x) {
  return x > 0 ? x : 0;
}

static double gelu(double x) {
  return x * 0.5 * (1 + erf(x / sqrt(2)));
}

static double sigmoid(double x) {
  return 1 / (1 + exp(-x));
}

static double neg(double x) {
  return -x;
}

static double exp_of_square(double x) {
  return exp(fmin(x * x, 4));
}

static double sine(double x) {
  return sin(x * acos(-1) / 2);
}

static double root(double x) {
  return sqrt(fabs(x) + 1.0 / 10000) - 1.0 / 100;
}

/* The element-wise functions, as their rows in docs/kernel.md say. */
static void computes_functions(void **state) {
  static const struct {
    const char *body;
    double (*expected)(double);
  } rows[] = {
      {"b = relu a\nout b", relu},
      {"b = gelu a\nout b", gelu},
      {"b = sigmoid a\nout b", sigmoid},
      {"b = tanh a\nout b", tanh},
      {"b = abs a\nout b", fabs},
      {"b = neg a\nout b", neg},
      {"b = sin a\nout b", sine},
      {"b = sqrt a\nout b", root},
      {"b = sqr a\nc = exp b\nout c", exp_of_square},
  };
  CHECK_ROWS (rows, row) {
    struct run r = run_of(row->body, "C=4,H=8,W=8");
    for (int i = 0; i < r.count; i++)
      CHECK_NEAR(r.y[i], row->expected(r.inputs[0][i]), 1e-14, row->body);
    run_free(&r);
  }
}

/* Two copies side by side, 4 channels each, 3 inside: a bias after the weight inside, of its copy,
 * none after the one whose values are handed on. */
static void adds_biases_inside(void **state) {
  static const char body[] =
      "b0 = fc a to=x0\nw1 = relu b0\nc = fc w1 to=C\nd = group c by=2\nout d";
  struct run r = run_of(body, "Cin=4,Cout=8,H=2,W=3,x0=3,norm=batch");
  const double *x = r.inputs[0], *w0 = r.inputs[1], *b0 = r.inputs[2], *w1 = r.inputs[3];
  (void)state;
  CHECK_INT(r.p->inputs.count, 4, body);
  for (int i = 0; i < r.count; i++) {
    int copy = i / 24, to = i / 6 % 4, pixel = i % 6;
    double sum = 0;
    for (int m = 0; m < 3; m++) {
      double inside = b0[copy * 3 + m];
      for (int k = 0; k < 4; k++) inside += x[k * 6 + pixel] * w0[(copy * 3 + m) * 4 + k];
      sum += fmax(inside, 0) * w1[(copy * 4 + to) * 3 + m];
    }
    CHECK_NEAR(r.y[i], sum, 1e-13, body);
  }
  run_free(&r);
}

static void survives_names(void **state) {
  struct run r = run_of("X = relu a\nw0 = fc X to=C\nin = relu w0\nresult = fc in to=C\nout result",
                        "C=2,H=2,W=2");
  CHECK_INT(r.count, 8, "nodes named like the program's own tensors");
  run_free(&r);
  r = run_of("w1 = relu a\nb = fc w1 to=C\nc = fc b to=C\nout c", "C=2,H=2,W=2");
  CHECK_INT(r.count, 8, "a node named like a weight that comes later");
  run_free(&r);
}

/* A weight behind a softmax is enlarged, one behind exp and squares made small. */
static void gains_tame(void **state) {
  static const struct {
    const char *body;
    double least, most; /* of the gain of w0 */
  } rows[] = {
      {"b = fc a to=C\nout b", 1, 1},
      {"b = softmax a over=C,H,W\nc = fc b to=C\nout c", 50, 1e6},
      {"b = softmax a over=C,H,W scale=C*H*W\nc = fc b to=C\nout c", 1, 1},
      {"b = softmax a over=C,H,W\nc = fc b to=C\nd = tanh c\ne = fc d to=C\nout e", 50, 1e6},
      {"b = exp a\nc = sqr b\nd = sqr c\ne = fc d to=C\nout e", 1e-6, 0.1},
  };
  CHECK_ROWS (rows, row) {
    struct run r = run_of(row->body, "C=16,H=8,W=8");
    struct binding b;
    struct pack *pack = pack_new(r.k);
    double gains[KERNEL_NODES_MAX];
    CHECK_INT(binding_parse_at(&ctx, "C=16,H=8,W=8", 12, &b), CANVAS_OK, row->body);
    CHECK_INT(pack_bind(&ctx, pack, &b), CANVAS_OK, ctx.message);
    CHECK_INT(gain_estimate(&ctx, r.k, pack, gains), CANVAS_OK, ctx.message);
    CHECK(gains[0] >= row->least && gains[0] <= row->most, row->body);
    pack_free(pack);
    run_free(&r);
  }
}

CHECK_MAIN(cmocka_unit_test(means_what_the_definition_says), cmocka_unit_test(pools_and_copies),
           cmocka_unit_test(averages_groups), cmocka_unit_test(pairs_of_blocks),
           cmocka_unit_test(projected), cmocka_unit_test(dilated_and_even),
           cmocka_unit_test(computes_functions), cmocka_unit_test(adds_biases_inside),
           cmocka_unit_test(survives_names), cmocka_unit_test(gains_tame))
