// Children of kernels: legal wherever a draw is, new, reproducible; every edit occurs.
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "budget/budget.h"
#include "evolve/mutate.h"
#include "kernel/kernel_simplify.h"
#include "sanitized.h"

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
#define DENSE      "b = unfold a over=H,W k=K\nc = fc b to=C\nout c"
#define BOTTLENECK "b = fc a to=x0\nc = relu b\nd = unfold c over=H,W k=K\ne = fc d to=C\nout e"
static const char *const known[] = {
    "b = fc a to=C\nout b",
    DENSE,
    "b = group a each\nc = unfold b over=H,W k=K\nd = fc c to=C\ne = fc d to=C\nout e",
    "b = group a by=G\nc = unfold b over=H,W k=K\nd = fc c to=C\nout d",
    "b = unfold a over=H k=K\nc = fc b to=x0\nd = unfold c over=W k=K\ne = fc d to=C\nout e",
    BOTTLENECK,
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
  CHECK(differ > 40, "another seed");
  for (int i = 0; i < 60; i++) free(texts[i]);
  sampler_free(s), sampler_free(again), sampler_free(other);
  kernel_free(a), kernel_free(b);
}

// -- one edit --

enum { SHARE = SANITIZED ? 10 : 1 };  // of what is tried, one in so many

// The kernel that one edit of a parent gives with this seed; false if it gives none.
static bool edited(const struct kernel *k, const struct kernel *other, enum edit edit,
                   uint64_t seed, struct hash *out) {
  struct families families;
  struct random random;
  struct draft d;
  struct node end = {.op = PRIMITIVE_OUTPUT, .attrs.dim = dim_one()};
  CHECK_INT(families_list(&ctx, primitive_rows, PRIMITIVE_COUNT, SPACE_PAPER, &families), CANVAS_OK,
            "rows");
  random_open(&random, seed, RANDOM_TEST, 0);
  draft_open(&d, &families, (struct neighbours){ROLES_SPATIAL, ROLES_SPATIAL}, &random);
  d.other = other;
  draft_load(&d, k);
  bool made = draft_edit(&d, edit) && draft_build(&d);
  end.in[0] = d.root, end.in[1] = -1;
  made = made && kernel_add(&ctx, d.k, &end) == CANVAS_OK;
  if (made) *out = kernel_hash(d.k, NULL);
  draft_close(&d);
  return made;
}

static const struct {
  enum edit edit;
  const char *parent, *other;  // NULL: none
  const char *child;           // what some seed makes; NULL: none does anything
} one_edit[] = {
    {EDIT_INSERT, DENSE, NULL, "b = unfold a over=H,W k=K\nc = fc b to=C\nd = relu c\nout d"},
    {EDIT_INSERT, DENSE, NULL, "d = fc a to=x0\nb = unfold d over=H,W k=K\nc = fc b to=C\nout c"},
    {EDIT_INSERT, DENSE, NULL, "b = unfold a over=H,W k=K\nc = fc b to=x0\nd = fc c to=C\nout d"},
    {EDIT_INSERT, DENSE, NULL, "b = unfold a over=H,W k=K\nc = fc b to=C\nd = add a c\nout d"},
    {EDIT_INSERT, DENSE, NULL,
     "b = unfold a over=H,W k=K\nc = fc b to=C\nd = sigmoid a\ne = mul d c\nout e"},
    {EDIT_INSERT, "out a", NULL, "b = tanh a\nout b"},
    {EDIT_INSERT, "b = softmax a over=C scale=C\nout b", NULL,  // repaired: no channel axis is left
     "b = group a each\nc = softmax b over=H scale=H\nout c"},
    {EDIT_REMOVE, BOTTLENECK, NULL,
     "b = fc a to=x0\nd = unfold b over=H,W k=K\ne = fc d to=C\nout e"},
    {EDIT_REMOVE, BOTTLENECK, NULL, "c = relu a\nd = unfold c over=H,W k=K\ne = fc d to=C\nout e"},
    {EDIT_REMOVE, "b = fc a to=C\nc = sub a b\nout c", NULL, "out a"},
    {EDIT_REMOVE, "out a", NULL, NULL},
    {EDIT_REPLACE, BOTTLENECK, NULL,
     "b = fc a to=x0\nc = tanh b\nd = unfold c over=H,W k=K\ne = fc d to=C\nout e"},
    {EDIT_REPLACE, BOTTLENECK, NULL,
     "b = fc a to=x0\nc = relu b\nd = softmax c over=H,W scale=H*W\ne = fc d to=C\nout e"},
    {EDIT_REPLACE, "b = fc a to=C\nc = add a b\nout c", NULL, "b = fc a to=C\nc = mul a b\nout c"},
    {EDIT_REPLACE, "b = fc a to=C\nc = add a b\nout c", NULL, "b = fc a to=C\nc = sub b a\nout c"},
    {EDIT_REPLACE, "out a", NULL, NULL},
    {EDIT_REWIRE, BOTTLENECK, NULL, DENSE},
    {EDIT_REWIRE, "b = fc a to=C\nc = relu b\nd = add b c\nout d", NULL,
     "b = fc a to=C\nc = relu b\nd = add a c\nout d"},
    {EDIT_REWIRE, "out a", NULL, NULL},
    {EDIT_RESIZE, BOTTLENECK, NULL,
     "b = fc a to=C\nc = relu b\nd = unfold c over=H,W k=K\ne = fc d to=C\nout e"},
    {EDIT_RESIZE, DENSE, NULL, "b = unfold a over=H,W k=5\nc = fc b to=C\nout c"},
    {EDIT_RESIZE, DENSE, NULL, "b = unfold a over=W k=K\nc = fc b to=C\nout c"},
    {EDIT_RESIZE, "b = shift a over=H by=1\nout b", NULL, "b = shift a over=H by=-2\nout b"},
    {EDIT_RESIZE, "b = shift a over=H by=1\nout b", NULL,
     "b = shift a over=H by=1 fill=zero\nout b"},
    {EDIT_RESIZE, "b = softmax a over=H,W scale=H*W\nout b", NULL,
     "b = softmax a over=W scale=W\nout b"},
    {EDIT_RESIZE, "b = group a by=G\nc = fc b to=C\nout c", NULL,
     "b = group a by=4\nc = fc b to=C\nout c"},
    {EDIT_RESIZE, "b = relu a\nout b", NULL, NULL},
    {EDIT_GRAFT, "b = fc a to=C\nout b", DENSE, DENSE},
    {EDIT_GRAFT, BOTTLENECK, "b = group a each\nc = tanh b\nout c",
     "b = fc a to=x0\nc = tanh b\nd = unfold c over=H,W k=K\ne = fc d to=C\nout e"},
    {EDIT_GRAFT, "b = fc a to=x0\nc = relu b\nd = fc c to=C\nout d", BOTTLENECK,
     "b = fc a to=x0\nc = fc b to=x1\ne = relu c\nd = fc e to=C\nout d"},  // widths of their own
    {EDIT_GRAFT, DENSE, "out a", NULL},
};

static void edits_one_thing(void **state) {
  CHECK_ROWS (one_edit, row) {
    struct kernel *k = kernel_of_body(row->parent);
    struct kernel *other = row->other ? kernel_of_body(row->other) : NULL;
    struct kernel *child = row->child ? kernel_of_body(row->child) : NULL;
    struct hash hash, wanted = {0};
    bool found = false;
    if (child) wanted = kernel_hash(child, NULL);
    for (uint64_t seed = 0; seed < 30000 / SHARE && !found; seed++)
      found = edited(k, other, row->edit, seed, &hash) && (!child || hash_equal(hash, wanted));
    CHECK(SANITIZED || found == (child != NULL), row->child ? row->child : row->parent);
    kernel_free(k), kernel_free(other), kernel_free(child);
  }
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
                 const struct targets *targets, const struct sample_options *o, int *broken) {
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
  struct rules rules = o->rules;
  rules.on &= ~(1u << RULE_FIXED_SIZE); /* which children need not keep */
  *broken += rules_broken(&rules, c->kernel, targets, NULL, c->g) != NULL;
  bound_everywhere(c, targets, text);
  kernel_free(simple);
  free(text);
}

static void keeps_to_the_rules(void **state) {
  static const struct {
    const char *targets, *options;
    int least; /* of 600; of fewer, the share varies more */
  } rows[] = {
      {RESNET, "", 570},
      {"6,9,8;10,6,15;14,5,7", "primitives=4..10 require=none", 590},
      {"12,9,9;24,5,5", "primitives=5..8", 580},
      {"8,6,6;16,3,3", "primitives=5..12 elements=1400", 500},
      {"30,4,9;42,9,4", "primitives=8..14 groups=6", 580},
      {"16,14,14;32,7,7", "space=published", 500},
      {"16,16,16;32,8,8", "space=wide", 500},
  };
  unsigned edits = 0;
  int broken = 0, all = 0;
  CHECK_ROWS (rows, row) {
    struct targets targets = targets_of(row->targets);
    struct sampler *s = sampler_of(row->targets, row->options, 5);
    int made = 0;
    for (int i = 0; i < 60 / SHARE; i++) {
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
        look(&c, parents, 1 + j % 2, &targets, sampler_options(s), &broken);
        edits |= c.edits;
        kernel_free(c.kernel);
        made++;
      }
      kernel_free(k[0]), kernel_free(k[1]);
    }
    CHECK(made >= (row->least - (SHARE > 1) * 30) / SHARE, row->options);
    all += made;
    sampler_free(s);
    targets_free(&targets);
  }
  CHECK_INT((int)edits, (1 << EDIT_COUNT) - 1, "every edit");
  CHECK(broken > 0 && broken < all / 2, "a part is free of rules, or of the one on non-linearity");
}

static void starts_from_known_kernels(void **state) {
  int broken = 0;
  struct targets targets = targets_of(RESNET);
  struct sampler *s = sampler_of(RESNET, "", 5);
  for (int i = 0; i < 6; i++)
    for (int j = 0; j < 6; j++) {
      struct kernel *a = kernel_of_body(known[i]), *b = kernel_of_body(known[j]);
      struct parent parents[] = {{a, 4}, {b, 8}};
      int made = 0;
      for (int n = 0; n < 20 / SHARE; n++) {
        struct child c;
        int count = i == j ? 1 : 2;
        if (kernel_mutate(&ctx, s, (uint64_t)n, parents, count, &c) != CANVAS_OK) continue;
        look(&c, parents, count, &targets, sampler_options(s), &broken);
        kernel_free(c.kernel);
        made++;
      }
      CHECK(made >= (i ? 10 : 2) / SHARE, known[i]);  // a 1x1 must come to reach first
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

CHECK_MAIN(cmocka_unit_test(depends_on_its_arguments_only), cmocka_unit_test(edits_one_thing),
           cmocka_unit_test(keeps_to_the_rules), cmocka_unit_test(starts_from_known_kernels),
           cmocka_unit_test(takes_one_or_two_parents), cmocka_unit_test(says_that_there_is_none))
