// Weights that cannot matter on images of one or few pixels, and kernels drawn for such images.
#include "check.h"

#include "budget/budget.h"
#include "evolve/mutate.h"
#include "lower/idle_weights.h"
#include "sample/free_sizes.h"

static canvas_context ctx;

static struct pack *pack_of(const char *body, const char *at) {
  char text[1024];
  struct pack *p = NULL;
  snprintf(text, sizeof text, "canvas 1\nkernel t\na = input\n%s\nbind t %s\n", body, at);
  CHECK_INT(pack_parse(&ctx, text, strlen(text), &p), CANVAS_OK, ctx.message);
  return p;
}

/* The first idle weight, -1: none. */
static void finds_idle_weights(void **state) {
  static const char *const conv = "b = unfold a over=H,W k=K\nc = fc b to=C\nout c";
  static const char *const zeros = "b = shift a over=W by=1 fill=zero\nc = fc b to=C\nout c";
  static const char *const circular = "b = shift a over=H,W by=1\nc = fc b to=C\nout c";
  static const char *const difference =
      "b = fc a to=C\nc = shift b over=H,W by=1\nd = sub b c\nout d";
  static const struct {
    const char *body, *at;
    int expected;
  } rows[] = {
      {"b = fc a to=C\nout b", "C=16 H=1 W=1", -1},
      /* an offset, and what reads a constant, need no image to matter */
      {"b = bias a over=C\nout b", "C=16 H=2 W=2", -1},
      {"b = coords a over=H\nc = fc b to=C\nd = add c a\nout d", "C=16 H=2 W=2", -1},
      {"b = coords a over=H\nc = fc b to=C\nd = add c a\nout d", "C=16 H=1 W=2", 0},
      {"b = bias a over=C\nc = norm b over=H,W\nout c", "C=16 H=2 W=2", 0},
      {conv, "C=16 H=1 W=1", 0},
      {conv, "C=16 H=2 W=2", -1},
      {conv, "C=16 H=2 W=2 stride=2", 0}, /* one pixel, once pooled */
      {conv, "C=16 H=1 W=9", 0},
      {conv, "C=16 H=9 W=1", 0},
      {conv, "C=16 H=2 W=2 K=5", 0},
      {conv, "C=16 H=3 W=3 K=5", -1},
      {conv, "C=16 H=7 W=7 K=15", 0},
      {conv, "C=16 H=1 W=1 K=1", -1},
      {conv, "C=2048 H=1 W=1", 0},
      {"b = unfold a over=W k=K\nc = fc b to=C\nout c", "C=16 H=1 W=9", -1},
      {"b = unfold a over=H,W k=K\nc = fold b max over=KH,KW\nd = fc c to=C\nout d", "C=16 H=1 W=1",
       -1},
      {zeros, "C=16 H=9 W=1", 0},
      {zeros, "C=16 H=1 W=9", -1},
      {"b = shift a over=W by=9 fill=zero\nc = fc b to=C\nout c", "C=16 H=9 W=9", 0},
      {"b = shift a over=W by=9 fill=zero\nc = fc b to=C\nout c", "C=16 H=1 W=99", -1},
      {circular, "C=16 H=1 W=1", -1},
      {difference, "C=16 H=1 W=1", 0},
      {difference, "C=16 H=2 W=1", -1},
      {"b = fc a to=C\nc = shift b over=H by=1\nd = shift b over=H by=-1\ne = sub c d\nout e",
       "C=16 H=2 W=9", 0}, /* the same shift, on two rows */
      {"b = fc a to=C\nc = softmax b over=H,W\nout c", "C=16 H=1 W=1", 0},
      {"b = fc a to=C\nc = softmax b over=C\nout c", "C=16 H=1 W=1", -1},
      {"b = fc a to=C\nc = fold b mean over=H,W\nd = sub c b\nout d", "C=16 H=1 W=1", 0},
      /* a weight of a constant is a bias that a norm takes away */
      {"b = shift a over=H by=1 fill=zero\nc = sigmoid b\nd = fc c to=C\ne = mul d a\nout e",
       "C=16 H=1 W=1", 0},
      {"b = fc a to=x0\nc = relu b\nd = fc c to=C\nout d", "C=16 H=1 W=1 x0=8", -1},
      {"b = fc a to=C\nc = fc b to=x0\nd = softmax c over=C\ne = fc d to=C\nout e",
       "C=16 H=1 W=1 x0=1", 0}, /* a softmax along one channel */
      /* half of all initial weights give 0 for any image, and no gradient */
      {"b = fc a to=1\nc = relu b\nd = fc c to=C\nout d", "C=16 H=1 W=1", 0},
      {"b = fc a to=C\nc = relu b\nd = fc c to=C\nout d", "C=16 H=1 W=1", -1},
      {"b = group a by=G\nc = softmax b over=C\nd = fc c to=C\nout d", "C=8 H=1 W=1 G=8", 0},
      {"b = group a by=G\nc = softmax b over=C\nd = fc c to=C\nout d", "C=8 H=1 W=1 G=2", -1},
  };
  CHECK_ROWS (rows, row) {
    struct pack *p = pack_of(row->body, row->at);
    CHECK_INT(idle_weight(p->kernel, &p->data[0].sizes), row->expected, row->body);
    pack_free(p);
  }
}

static const struct {
  const char *targets, *options;
} drawn[] = {
    {"16,1,1", ""},
    {"16,1,1", "draws=paper"},
    {"16,1,1;32,8,8", ""},
    {"a 32 8 1 1 1 1 1\nb 8 32 2 2 3 2 1\nc 16 16 1 9 3 1 1\n", "draws=paper"},
    {"a 16 16 2 2 5 1 1\nb 16 16 3 4 7 1 1\n", ""},
    {"16,1,9", "require=none"},
    {"16,3,3", "space=wide"},
};

static struct sampler *sampler_of(const char *targets, const char *options, struct targets *list) {
  struct sample_options o;
  struct sampler *s = NULL;
  CHECK_INT(targets_parse(&ctx, targets, strlen(targets), list), CANVAS_OK, ctx.message);
  CHECK_INT(sample_options_parse(&ctx, options, strlen(options), &o), CANVAS_OK, ctx.message);
  CHECK_INT(sampler_new(&ctx, list, &o, 1, &s), CANVAS_OK, ctx.message);
  return s;
}

/* Whatever sizes the solver finds, none of its packs has an idle weight. */
static void check_solved(const struct kernel *k, int64_t g, const struct targets *list,
                         const char *targets) {
  static const char text[] = "macs=none,params=none";
  struct budget budget;
  struct solve_options options = {.g = g};
  struct pack *p = NULL;
  CHECK_INT(budget_parse(&ctx, text, strlen(text), &budget), CANVAS_OK, text);
  if (budget_solve(&ctx, k, list, &budget, &options, &p) != CANVAS_OK) return;
  for (int i = 0; i < p->count; i++)
    CHECK_INT(idle_weight(p->kernel, &p->data[i].sizes), -1, targets);
  pack_free(p);
}

/* At the sizes that a draw is judged by. */
static void check_drawn(const struct kernel *k, int64_t g, const struct targets *list,
                        const char *targets) {
  struct kernel_dims dims;
  kernel_dims_list(k, &dims);
  for (int i = 0; i < list->count; i++) {
    struct sizes sizes;
    int64_t copies;
    target_sizes(&list->data[i], k, &sizes, &copies);
    sizes.value[SIZE_G] = g;
    CHECK(free_sizes_usual(&dims, &sizes), targets);
    CHECK_INT(idle_weight(k, &sizes), -1, targets);
  }
  check_solved(k, g, list, targets);
}

/* Draws, and children of two draws: they are found, reach where there are neighbours, and solve. */
static void draws_for_few_pixels(void **state) {
  enum { DRAWS = 20 };
  CHECK_ROWS (drawn, row) {
    struct targets list;
    struct sampler *s = sampler_of(row->targets, row->options, &list);
    struct parent parents[2] = {{0}};
    for (uint64_t i = 0; i < DRAWS; i++) {
      struct kernel *k;
      struct child child;
      int64_t g;
      CHECK_INT(sampler_draw(&ctx, s, i, &k, &g), CANVAS_OK, ctx.message);
      CHECK(!sampler_options(s)->require_reach || !kernel_reach_on(k, sampler_images(s, k)),
            row->targets);
      check_drawn(k, g, &list, row->targets);
      kernel_free((struct kernel *)parents[1].kernel);
      parents[1] = parents[0];
      parents[0] = (struct parent){k, g};
      int count = parents[1].kernel ? 2 : 1;
      if (kernel_mutate(&ctx, s, i, parents, count, &child) != CANVAS_OK) continue;
      check_drawn(child.kernel, child.g, &list, row->targets);
      kernel_free(child.kernel);
    }
    for (int i = 0; i < 2; i++) kernel_free((struct kernel *)parents[i].kernel);
    sampler_free(s);
    targets_free(&list);
  }
}

static void solves_no_idle_weights(void **state) {
  static const char conv[] = "b = unfold a over=H,W k=K\nc = fc b to=C\nout c";
  static const char text[] = "macs=none,params=none", targets[] = "se 16 16 1 1 3 1 1";
  struct pack *by_hand = pack_of(conv, "C=16 H=1 W=1"), *p = NULL;
  struct solve_options options = {0};
  struct budget budget;
  struct targets list;
  CHECK_INT(budget_parse(&ctx, text, strlen(text), &budget), CANVAS_OK, text);
  CHECK_INT(targets_parse(&ctx, targets, strlen(targets), &list), CANVAS_OK, targets);
  CHECK_INT(budget_solve(&ctx, by_hand->kernel, &list, &budget, &options, &p), CANVAS_NONE, conv);
  CHECK_TEXT(ctx.message,
             "not found: target 'se': on its image of 1x1 not every number of weight w0 of kernel "
             "'t' can change the output",
             conv);
  options.exempt = true;
  CHECK_INT(budget_solve(&ctx, by_hand->kernel, &list, &budget, &options, &p), CANVAS_OK, conv);
  pack_free(p);
  pack_free(by_hand);
  targets_free(&list);
}

CHECK_MAIN(cmocka_unit_test(finds_idle_weights), cmocka_unit_test(draws_for_few_pixels),
           cmocka_unit_test(solves_no_idle_weights))
