// The probability that a try of a draw gives a kernel: where it is known, where it is 0, and why.
#include "check.h"

#include "sample/probability.h"

static canvas_context ctx;

/* "b = relu a;out b" as a kernel. */
static struct kernel *kernel_of(const char *nodes) {
  struct lexer lx;
  struct kernel *k = NULL;
  char text[2048];
  snprintf(text, sizeof text, "canvas 1\nkernel k\na = input\n%s\n", nodes);
  for (char *p = text; *p; p++)
    if (*p == ';') *p = '\n';
  CHECK_INT(lexer_open(&lx, &ctx, text, strlen(text)), CANVAS_OK, text);
  CHECK_INT(kernel_parse(&lx, &k), CANVAS_OK, ctx.message);
  return k;
}

static struct sampler *sampler_of(const char *targets, const char *options) {
  struct targets t = {0};
  struct sample_options o;
  struct sampler *s = NULL;
  CHECK_INT(targets_parse(&ctx, targets, strlen(targets), &t), CANVAS_OK, ctx.message);
  CHECK_INT(sample_options_parse(&ctx, options, strlen(options), &o), CANVAS_OK, ctx.message);
  CHECK_INT(sampler_new(&ctx, &t, &o, 1, &s), CANVAS_OK, ctx.message);
  targets_free(&t);
  return s;
}

/* Of the last kind of draws; `why` is left to the caller. */
static canvas_status look(const char *options, const char *nodes, struct probability *out) {
  struct sampler *s = sampler_of("16,8,8;32,4,4", options);
  struct kernel *k = kernel_of(nodes);
  struct draw_kind kinds[DRAW_KINDS];
  int count = sampler_kinds(s, kinds);
  canvas_status status = kernel_probability(&ctx, s, k, &kinds[count - 1], out);
  kernel_free(k);
  sampler_free(s);
  return status;
}

static void is_what_counting_gives(void **state) {
  /* Weights are whole and equal here, so that a probability is a count of equal cases. */
  static const char equal[] =
      "draws=paper primitives=2 require=none groups=4 grouping=0 softmax=0 elementwise=0 fold=0 "
      "broadcast=0 shift=1 unfold=1";
  static const struct {
    const char *nodes;
    double probability;
  } rows[] = {
      /* plain first; unfold, not shift; one of three; the fc reads the only leaf */
      {"b = unfold a over=H,W k=K;c = fc b to=C;out c", 1 / 2. / 2 / 3},
      /* one of twelve shifts; it is simplified to the next */
      {"b = shift a over=H by=1;c = fc b to=C;out c", 1 / 2. / 12},
      /* behind the fc nothing could read a window: all are shifts */
      {"b = fc a to=C;c = shift b over=H by=1;out c", 1 / 2. / 12},
      {"b = fc a to=C;c = relu b;out c", 0},
  };
  CHECK_ROWS (rows, row) {
    struct probability p;
    CHECK_INT(look(equal, row->nodes, &p), CANVAS_OK, ctx.message);
    CHECK_NEAR(p.of_try, row->probability, 1e-12, row->nodes);
    buf_free(&p.why);
  }
}

static void says_why_there_is_none(void **state) {
  static const struct {
    const char *options, *nodes, *why;
  } rows[] = {
      {"", "b = fc a to=C;out b", "primitives: 1, drawn are 3 to 8"},
      {"draws=paper primitives=3", "b = relu a;c = tanh b;d = neg c;out d",
       "fc: 0 of 3, drawn are 1 to 1"},
      {"draws=paper primitives=2..3", "b = fc a to=x0;c = fc b to=C;out c",
       "fc: 2 of 2, drawn are 1 to 1"},
      {"draws=paper primitives=2", "b = fc a to=C;c = relu b;out c",
       "it sees no neighbours along H"},
      {"draws=paper primitives=2 unbounded_product=reject require=none",
       "b = fc a to=C;c = sqr b;out c", "rule unbounded_product"},
      {"draws=paper primitives=2", "b = unfold a over=H,W k=3;c = fc b to=C;out c",
       "not drawn: b = unfold a over=H,W k=3"},
  };
  CHECK_ROWS (rows, row) {
    struct probability p;
    CHECK_INT(look(row->options, row->nodes, &p), CANVAS_OK, ctx.message);
    CHECK(p.of_try == 0, row->nodes);
    CHECK_TEXT(p.why.text, row->why, row->nodes);
    buf_free(&p.why);
  }
}

static void refuses_large_kernels(void **state) {
  char nodes[1024] = "b = fc a to=C;n0 = sin b", *end = nodes + strlen(nodes);
  struct probability p;
  for (int i = 1; i < PROBABILITY_NODES; i++)
    end += snprintf(end, 40, ";n%d = %s n%d", i, i % 2 ? "neg" : "sin", i - 1);
  snprintf(end, 40, ";out n%d", PROBABILITY_NODES - 1);
  CHECK_INT(look("", nodes, &p), CANVAS_BAD_INPUT, nodes);
  CHECK_TEXT(ctx.message, "kernel 'k' has 21 primitives: the probability is computed of at most 20",
             nodes);
}

static void refuses_demands(void **state) {
  static const char *const rows[] = {"need=relu", "width=2..3", "weighted=1", "receptive=2"};
  CHECK_ROWS (rows, row) {
    struct probability p;
    CHECK_INT(look(*row, "b = fc a to=C;out b", &p), CANVAS_BAD_INPUT, *row);
    CHECK_TEXT(ctx.message,
               "the probability is computed without need=, width=, weighted=, weighted_share=, "
               "receptive=, with_matmul= and fixed_hw=: leave them out",
               *row);
  }
}

static void all_kinds_are_all_draws(void **state) {
  static const struct {
    const char *options;
  } rows[] = {{""}, {"draws=paper"}, {"free=1"}, {"nonlinear=1"}, {"nonlinear=0.5"}};
  CHECK_ROWS (rows, row) {
    struct sampler *s = sampler_of("16,8,8", row->options);
    struct draw_kind kinds[DRAW_KINDS];
    double sum = 0;
    int count = sampler_kinds(s, kinds);
    for (int j = 0; j < count; j++) {
      CHECK(kinds[j].share > 0, row->options);
      CHECK(kernel_successes(s, &kinds[j], 200) > 0, row->options);
      sum += kinds[j].share;
    }
    CHECK_NEAR(sum, 1, 1e-12, row->options);
    sampler_free(s);
  }
}

CHECK_MAIN(cmocka_unit_test(is_what_counting_gives), cmocka_unit_test(says_why_there_is_none),
           cmocka_unit_test(refuses_large_kernels), cmocka_unit_test(refuses_demands),
           cmocka_unit_test(all_kinds_are_all_draws))
