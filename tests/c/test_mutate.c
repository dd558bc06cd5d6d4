// Children of kernels: legal wherever a draw is, new, reproducible; every edit occurs.
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "budget/budget.h"
#include "evolve/mutate.h"
#include "kernel/kernel_simplify.h"

static canvas_context ctx;

static struct targets targets_of(const char *text) {
  struct targets t = {0};
  CHECK_INT(targets_parse(&ctx, text, strlen(text), &t), CANVAS_OK, ctx.message);
  return t;
}

static struct sampler *sampler_of(const char *targets, const char *options, uint64_t seed) {
  struct targets t = targets_of(targets);
  struct sample_options o;
  struct sampler *s = NULL;
  CHECK_INT(sample_options_parse(&ctx, options, strlen(options), &o), CANVAS_OK, ctx.message);
  CHECK_INT(sampler_new(&ctx, &t, &o, seed, &s), CANVAS_OK, ctx.message);
  targets_free(&t);
  return s;
}

static struct kernel *kernel_of_body(const char *body) {
  char text[2048];
  struct lexer lx;
  struct kernel *k;
  snprintf(text, sizeof text, "canvas 1\nkernel t\na = input\n%s\n", body);
  CHECK_INT(lexer_open(&lx, &ctx, text, strlen(text)), CANVAS_OK, text);
  CHECK_INT(kernel_parse(&lx, &k), CANVAS_OK, ctx.message);
  return k;
}

static char *text_of(const struct kernel *k) {
  struct buf out = {0};
  kernel_print(k, &out);
  return buf_take(&out);
}

static char *child_text(struct sampler *s, uint64_t index, const struct parent *parents,
                        int count) {
  struct child c;
  struct buf out = {0};
  if (kernel_mutate(&ctx, s, index, parents, count, &c) != CANVAS_OK) return mem_strdup("none");
  kernel_print(c.kernel, &out);
  buf_printf(&out, "# G=%lld\n", (long long)c.g);
  kernel_free(c.kernel);
  return buf_take(&out);
}

// The known kernels of which a search may start, as nn/controls.py writes them.
static const char *const known[] = {
    "b = fc a to=C\nout b",
    "b = unfold a over=H,W k=K\nc = fc b to=C\nout c",
    "b = group a each\nc = unfold b over=H,W k=K\nd = fc c to=C\ne = fc d to=C\nout e",
    "b = group a by=G\nc = unfold b over=H,W k=K\nd = fc c to=C\nout d",
    "b = unfold a over=H k=K\nc = fc b to=x0\nd = unfold c over=W k=K\ne = fc d to=C\nout e",
    "b = fc a to=x0\nc = relu b\nd = unfold c over=H,W k=K\ne = fc d to=x1\nf = relu e\ng = fc f "
    "to=C\nout g",
};

#define RESNET "64,56,56;128,28,28;256,14,14"

static void depends_on_its_arguments_only(void **state) {
  struct kernel *a = kernel_of_body(known[2]), *b = kernel_of_body(known[4]);
  struct parent parents[] = {{a, 4}, {b, 8}};
  struct sampler *s = sampler_of(RESNET, "", 7), *again = sampler_of(RESNET, "", 7);
  struct sampler *other = sampler_of(RESNET, "", 8);
  char *texts[60];
  int differ = 0;
  for (int i = 0; i < 60; i++) texts[i] = child_text(s, (uint64_t)i, parents, 1 + i % 2);
  for (int i = 59; i >= 0; i--) {
    char *text = child_text(again, (uint64_t)i, parents, 1 + i % 2);
    char *seed = child_text(other, (uint64_t)i, parents, 1 + i % 2);
    CHECK_TEXT(text, texts[i], "the same index");
    differ += strcmp(seed, texts[i]) != 0;
    free(text), free(seed);
  }
  CHECK(differ > 50, "another seed");
  for (int i = 0; i < 60; i++) free(texts[i]);
  sampler_free(s), sampler_free(again), sampler_free(other);
  kernel_free(a), kernel_free(b);
}

// -- what every child keeps --

static void bound_everywhere(const struct child *c, const struct targets *targets,
                             const char *text) {
  struct solve_options options = {.g = c->g, .exempt = true};
  struct budget budget;
  struct pack *pack = NULL;
  CHECK_INT(budget_parse(&ctx, "macs=none,params=none", 21, &budget), CANVAS_OK, text);
  canvas_status status = budget_solve(&ctx, c->kernel, targets, &budget, &options, &pack);
  bool weights = status == CANVAS_NONE && strstr(ctx.message, " weights, over the limit of ");
  CHECK(status == CANVAS_OK || weights, text);
  pack_free(pack);
}

static void round_trip(const struct child *c, const char *text) {
  struct lexer lx;
  struct kernel *k;
  CHECK_INT(lexer_open(&lx, &ctx, text, strlen(text)), CANVAS_OK, text);
  CHECK_INT(kernel_parse(&lx, &k), CANVAS_OK, text);
  char *again = text_of(k);
  CHECK_TEXT(again, text, text);
  CHECK(hash_equal(kernel_hash(k, NULL), kernel_hash(c->kernel, NULL)), text);
  free(again);
  kernel_free(k);
}

static void look(const struct child *c, const struct parent *parents, int count,
                 const struct targets *targets, const struct sample_options *o) {
  char *text = text_of(c->kernel);
  struct kernel *simple = kernel_simplify(c->kernel);
  int node;
  CHECK_INT(kernel_verify(&ctx, c->kernel), CANVAS_OK, text);
  CHECK(!o->require_reach || !kernel_reach(c->kernel), text);
  CHECK(kernel_primitives(c->kernel) <= o->most, text);
  CHECK(!kernel_constant(c->kernel, &node), text);
  struct hash h = kernel_hash(c->kernel, NULL);
  CHECK(hash_equal(h, kernel_hash(simple, NULL)), text);
  for (int i = 0; i < count; i++) CHECK(!hash_equal(h, kernel_hash(parents[i].kernel, NULL)), text);
  round_trip(c, text);
  bound_everywhere(c, targets, text);
  kernel_free(simple);
  free(text);
}

static void keeps_to_the_rules(void **state) {
  static const struct {
    const char *targets, *options;
    int least; /* of 600 */
  } rows[] = {
      {RESNET, "", 590},
      {"6,9,8;10,6,15;14,5,7", "primitives=4..10 require=none", 590},
      {"12,9,9;24,5,5", "primitives=5..8", 580},
      {"8,6,6;16,3,3", "primitives=5..12 elements=1400", 500},
      {"30,4,9;42,9,4", "primitives=8..14 groups=6", 580},
  };
  unsigned edits = 0;
  CHECK_ROWS (rows, row) {
    struct targets targets = targets_of(row->targets);
    struct sampler *s = sampler_of(row->targets, row->options, 5);
    int made = 0;
    for (int i = 0; i < 60; i++) {
      struct parent parents[2] = {0};
      struct kernel *k[2] = {NULL};
      bool drawn = true;
      for (int j = 0; j < 2; j++) {
        drawn &= sampler_draw(&ctx, s, (uint64_t)(2 * i + j), &k[j], &parents[j].g) == CANVAS_OK;
        parents[j].kernel = k[j];
      }
      for (int j = 0; drawn && j < 10; j++) {
        struct child c;
        if (kernel_mutate(&ctx, s, (uint64_t)(10 * i + j), parents, 1 + j % 2, &c) != CANVAS_OK)
          continue;
        look(&c, parents, 1 + j % 2, &targets, sampler_options(s));
        edits |= c.edits;
        kernel_free(c.kernel);
        made++;
      }
      kernel_free(k[0]), kernel_free(k[1]);
    }
    CHECK(made >= row->least, row->options);
    sampler_free(s);
    targets_free(&targets);
  }
  CHECK_INT((int)edits, (1 << EDIT_COUNT) - 1, "every edit");
}

static void starts_from_known_kernels(void **state) {
  struct targets targets = targets_of(RESNET);
  struct sampler *s = sampler_of(RESNET, "", 5);
  for (int i = 0; i < 6; i++)
    for (int j = 0; j < 6; j++) {
      struct kernel *a = kernel_of_body(known[i]), *b = kernel_of_body(known[j]);
      struct parent parents[] = {{a, 4}, {b, 8}};
      int made = 0;
      for (int n = 0; n < 20; n++) {
        struct child c;
        int count = i == j ? 1 : 2;
        if (kernel_mutate(&ctx, s, (uint64_t)n, parents, count, &c) != CANVAS_OK) continue;
        look(&c, parents, count, &targets, sampler_options(s));
        kernel_free(c.kernel);
        made++;
      }
      CHECK(made >= 10, known[i]);
      kernel_free(a), kernel_free(b);
    }
  sampler_free(s);
  targets_free(&targets);
}

static void takes_one_or_two_parents(void **state) {
  struct sampler *s = sampler_of(RESNET, "", 1);
  struct kernel *k = kernel_of_body(known[1]);
  const canvas_kernel *parents[3] = {(canvas_kernel *)k, (canvas_kernel *)k, (canvas_kernel *)k};
  int64_t g, groups[3] = {4, 4, 4};
  canvas_kernel *out;
  for (int count = 0; count <= 3; count += 3) {
    CHECK_INT(canvas_sampler_mutate(&ctx, (canvas_sampler *)s, 0, parents, groups, count, &out, &g),
              CANVAS_BAD_INPUT, "parents");
    CHECK_TEXT(
        ctx.message,
        count ? "a child has one or two parents, not 3" : "a child has one or two parents, not 0",
        "");
  }
  CHECK_INT(canvas_sampler_mutate(&ctx, (canvas_sampler *)s, 0, parents, groups, 2, &out, &g),
            CANVAS_OK, ctx.message);
  canvas_kernel_free(out);
  kernel_free(k);
  sampler_free(s);
}

static void says_that_there_is_none(void **state) {
  struct sampler *s = sampler_of("7,5,5", "primitives=1..1", 1);
  struct kernel *k = kernel_of_body(known[0]);
  struct parent parent = {k, 7};
  struct child c;
  CHECK_INT(kernel_mutate(&ctx, s, 3, &parent, 1, &c), CANVAS_NONE, "nothing reaches");
  CHECK_TEXT(ctx.message, "child 3 found no legal kernel in 400 tries", "");
  kernel_free(k);
  sampler_free(s);
}

CHECK_MAIN(cmocka_unit_test(depends_on_its_arguments_only), cmocka_unit_test(keeps_to_the_rules),
           cmocka_unit_test(starts_from_known_kernels), cmocka_unit_test(takes_one_or_two_parents),
           cmocka_unit_test(says_that_there_is_none))
