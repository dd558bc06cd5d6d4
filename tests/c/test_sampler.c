// The sampler: legal, reproducible, diverse, fast enough; behaviours 5, 13, 18 to 20 and 24.
#include "check.h"
#include "sanitized.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "sample/sampler.h"

static canvas_context ctx;
static const char *const resnet18 = "64,56,56;128,28,28;256,14,14;512,7,7";

#define SAMPLER_FIRST_DRAW                     \
  "canvas 1\n"                                 \
  "kernel k0\n"                                \
  "a = input                      : C H W\n"   \
  "b = fc a to=C                  : C H W\n"   \
  "c = sigmoid b                  : C H W\n"   \
  "d = softmax c over=H,W scale=H*W : C H W\n" \
  "out d\n"                                    \
  "# G=64\n"

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

static char *draw_text(struct sampler *s, uint64_t index) {
  struct kernel *k;
  struct buf out = {0};
  int64_t g = 0;
  if (sampler_draw(&ctx, s, index, &k, &g) != CANVAS_OK) return mem_strdup("skipped");
  kernel_print(k, &out);
  buf_printf(&out, "# G=%lld\n", (long long)g);
  kernel_free(k);
  return buf_take(&out);
}

/* Draw i is a function of (seed, i): not of what was drawn before, nor of the sampler. */
static void depends_on_the_index_only(void **state) {
  struct sampler *forward = sampler_of(resnet18, "", 7), *backward = sampler_of(resnet18, "", 7);
  char *texts[60];
  for (int i = 0; i < 60; i++) texts[i] = draw_text(forward, (uint64_t)i);
  for (int i = 59; i >= 0; i--) {
    char *text = draw_text(backward, (uint64_t)i);
    CHECK_TEXT(text, texts[i], "the same index");
    if (i) CHECK(strcmp(text, texts[i - 1]) != 0, "another index");
    free(text);
  }
  struct sampler *other = sampler_of(resnet18, "", 8);
  char *text = draw_text(other, 0);
  CHECK(strcmp(text, texts[0]) != 0, "another seed");
  free(text);
  for (int i = 0; i < 60; i++) free(texts[i]);
  sampler_free(forward);
  sampler_free(backward);
  sampler_free(other);
}

/* The stream never changes silently: studies name their candidates by index. */
static void is_stable_across_versions(void **state) {
  struct sampler *s = sampler_of("64,8,8", "primitives=3", 1);
  char *text = draw_text(s, 0);
  CHECK(strstr(text, "kernel k0\n"), text);
  CHECK_TEXT(text, SAMPLER_FIRST_DRAW, text);
  free(text);
  sampler_free(s);
}

static bool is_word(const struct node *n, const char *word) {
  return !strcmp(node_row(n)->word, word);
}

/* One drawn kernel: legal at every target, pruned, reaches, as many primitives as asked for. */
static void check_kernel(const struct kernel *k, int64_t g, int least, int most) {
  struct buf out = {0};
  kernel_print(k, &out);
  const char *text = out.text;
  CHECK_INT(kernel_verify(&ctx, k), CANVAS_OK, text);
  CHECK(kernel_primitives(k) >= least && kernel_primitives(k) <= most, text);
  CHECK_TEXT(kernel_reach(k), NULL, text);
  CHECK(g == 2 || g == 4 || g == 8 || g == 16 || g == 32 || g == 64, text);
  for (int i = 1; i < k->count; i++) {
    const struct node *n = &k->nodes[i], *from = &k->nodes[n->in[0]];
    static const char *const never[][2] = {{"relu", "relu"}, {"abs", "abs"},  {"neg", "neg"},
                                           {"sqr", "sqrt"},  {"sqrt", "sqr"}, {"relu", "sigmoid"}};
    for (size_t j = 0; j < sizeof never / sizeof *never; j++)
      CHECK(!(is_word(n, never[j][0]) && is_word(from, never[j][1])), text);
    if (node_row(n)->arity == 2) CHECK(n->in[0] != n->in[1], text);
    if (n->op == PRIMITIVE_SOFTMAX) { /* of mean 1 */
      struct dim elements = shape_product(&n->shape, n->attrs.over);
      CHECK(dim_equal(&n->attrs.dim, &elements), text);
    }
  }
  buf_free(&out);
}

static bool op_is_drawn(int op) {
  bool end = op == PRIMITIVE_INPUT || op == PRIMITIVE_OUTPUT;
  return end || primitive_rows[op].space == SPACE_PAPER;
}

static void draws_legal_kernels(void **state) {
  struct sampler *s = sampler_of(resnet18, "draws=paper", 1);
  int drawn = 0, seen[PRIMITIVE_COUNT] = {0}, filled = 0;
  struct hash hashes[1000];
  for (int i = 0; i < 1000; i++) {
    struct kernel *k;
    int64_t g;
    if (sampler_draw(&ctx, s, (uint64_t)i, &k, &g) != CANVAS_OK) continue;
    check_kernel(k, g, 5, 12);
    for (int j = 0; j < k->count; j++) {
      seen[k->nodes[j].op]++;
      filled += k->nodes[j].attrs.zero_fill;
      CHECK(!k->nodes[j].attrs.dilation, "no dilation is drawn");
    }
    CHECK(!kernel_uses(k, SIZE_S), "no stride is drawn");
    hashes[drawn++] = kernel_hash(k, NULL);
    kernel_free(k);
  }
  CHECK(drawn >= 990, "drawn of 1000");
  for (int op = 0; op < PRIMITIVE_COUNT; op++) /* every primitive of Table 1 is drawn */
    CHECK(op_is_drawn(op) ? seen[op] > 20 : !seen[op], primitive_rows[op].word);
  int shifts = seen[PRIMITIVE_SHIFT];
  CHECK(filled > shifts * 2 / 5 && filled < shifts * 3 / 5, "half of the shifts fill in zeros");
  int equal = 0;
  for (int i = 0; i < drawn; i++)
    for (int j = 0; j < i; j++) equal += hash_equal(hashes[i], hashes[j]);
  CHECK(equal <= 40, "pairs of equal draws of 1000");
  sampler_free(s);
}

/* The types of each space: those with weights apart. */
static void lists_the_families_of_a_space(void **state) {
  static const struct {
    enum kernel_space space;
    int plain, weighted;
  } rows[] = {{SPACE_PAPER, 7, 1}, {SPACE_PUBLISHED, 8, 2}, {SPACE_WIDE, 14, 2}};
  struct families f;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    canvas_status status = families_list(&ctx, primitive_rows, PRIMITIVE_COUNT, rows[i].space, &f);
    CHECK_INT(status, CANVAS_OK, ctx.message);
    CHECK_INT(f.plain_count, rows[i].plain, "types without weights");
    CHECK_INT(f.weighted_count, rows[i].weighted, "types with weights");
    CHECK(f.weighted[0] == &family_fc, "the first");
  }
}

/* No draw of a space has an application of a wider one. */
static void keeps_to_the_space(void **state) {
  static const char *const names[SPACES] = {"paper", "published", "wide"};
  static const char *const draws[] = {"rules", "learned", "learned known=1 free=0"};
  for (int row = 0; row < 3 * SPACES; row++) {
    char options[64];
    int wider = 0, drawn = 0, space = row % SPACES;
    snprintf(options, sizeof options, "space=%s draws=%s", names[space], draws[row / SPACES]);
    struct sampler *s = sampler_of("16,8,8;32,4,4", options, 1);
    for (uint64_t i = 0; i < 200; i++) {
      struct kernel *k;
      int64_t g;
      if (sampler_draw(&ctx, s, i, &k, &g) != CANVAS_OK) continue;
      drawn++;
      for (int n = 1; n < k->count - 1; n++) {
        const struct row *of = node_row(&k->nodes[n]);
        struct candidate c = {.op = k->nodes[n].op, .attrs = k->nodes[n].attrs};
        int own = of->family->space ? (int)of->family->space(&c) : 0;
        wider += (int)of->space > space || own > space;
      }
      kernel_free(k);
    }
    CHECK(drawn > 190, names[space]);
    CHECK_INT(wider, 0, names[space]);
    sampler_free(s);
  }
}

static void rejects_too_many_families(void **state) {
  struct family many[FAMILIES_MAX + 1];
  struct row rows[FAMILIES_MAX + 1];
  struct families f;
  for (int i = 0; i <= FAMILIES_MAX; i++) {
    many[i] = family_map;
    rows[i] = primitive_rows[PRIMITIVE_RELU];
    rows[i].family = &many[i];
  }
  CHECK_INT(families_list(&ctx, rows, FAMILIES_MAX, SPACE_PAPER, &f), CANVAS_OK, ctx.message);
  CHECK_INT(families_list(&ctx, rows, FAMILIES_MAX + 1, SPACE_PAPER, &f), CANVAS_BAD_INPUT,
            "one more");
  CHECK_TEXT(ctx.message, "there are more than 32 families to draw", "one more");
}

/* A second row of a family that is drawn already is no second family. */
static void draws_one_family_of_several_rows(void **state) {
  struct row rows[] = {primitive_rows[PRIMITIVE_FC], primitive_rows[PRIMITIVE_RELU],
                       primitive_rows[PRIMITIVE_FC], primitive_rows[PRIMITIVE_SIN]};
  struct families f;
  CHECK_INT(families_list(&ctx, rows, 4, SPACE_PAPER, &f), CANVAS_OK, ctx.message);
  CHECK_INT(f.plain_count, 1, "relu and sin are one family");
}

/* Longer kernels substitute more: each must still parse back from its text. */
static void draws_parse_back(void **state) {
  struct sampler *s = sampler_of(resnet18, "primitives=5..25", 1);
  for (int i = 0; i < (SANITIZED ? 250 : 1000); i++) {
    struct lexer lx;
    struct kernel *k;
    char *text = draw_text(s, (uint64_t)i);
    if (strcmp(text, "skipped") != 0) {
      CHECK_INT(lexer_open(&lx, &ctx, text, strlen(text)), CANVAS_OK, text);
      CHECK_INT(kernel_parse(&lx, &k), CANVAS_OK, ctx.message);
      kernel_free(k);
    }
    free(text);
  }
  sampler_free(s);
}

static void draws_fast_enough(void **state) {
  struct sampler *s = sampler_of(resnet18, "", 1);
  clock_t start = clock();
  int drawn = 0;
  for (int i = 0; i < 200; i++) {
    struct kernel *k;
    int64_t g;
    if (sampler_draw(&ctx, s, (uint64_t)i, &k, &g) != CANVAS_OK) continue;
    kernel_free(k);
    drawn++;
  }
  double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
  CHECK(drawn / seconds > 200, "legal kernels per second"); /* sanitizers included */
  sampler_free(s);
}

static void chooses_g(void **state) { /* behaviour 13 */
  static const struct {
    const char *targets, *options;
    unsigned expected; /* a bit per G */
  } rows[] = {
      {"32,8,8;48,8,8", "", 1 << 2 | 1 << 4 | 1 << 8 | 1 << 16},
      {"32,8,8;48,8,8", "groups=4", 1 << 4},
      {"32,8,8", "groups=1", 1 << 1},
      {"7,8,8", "", 1 << 7},
      {"1,8,8;3,8,8", "", 1 << 1},
  };
  CHECK_ROWS (rows, row) {
    struct sampler *s = sampler_of(row->targets, row->options, 5);
    unsigned seen = 0;
    for (int i = 0; i < 60; i++) {
      struct kernel *k;
      int64_t g;
      if (sampler_draw(&ctx, s, (uint64_t)i, &k, &g) != CANVAS_OK) continue;
      CHECK(g < 32, row->targets);
      seen |= 1u << g;
      kernel_free(k);
    }
    CHECK_INT(seen, row->expected, row->targets);
    sampler_free(s);
  }
}

static void rejects(void **state) {
  static const struct {
    const char *targets, *options, *expected;
  } rows[] = {
      {"64,8,8", "primitives=0..3", "line 1, column 12: number 0 is not in 1..62"},
      {"64,8,8", "primitives=5..3", "line 1, column 12: primitives=5..3 ends before it begins"},
      {"64,8,8", "require=some", "line 1, column 9: expected 'reach' or 'none', found 'some'"},
      {"64,8,8", "groups=3", "groups=3 does not divide the common channel count 64 of the targets"},
      {"64,8,8", "space=table1",
       "line 1, column 7: expected 'paper', 'published' or 'wide', found 'table1'"},
      {"64,8,8", "space=paper draws=rules space=wide",
       "line 1, column 25: option 'space' stands twice: give it one value"},
      {"64,8,8", "depth=3",
       "line 1, column 1: expected an option (draws=, space=, primitives=, require=, groups= or "
       "elements=; docs/kernel.md lists the others), found 'depth'"},
      {"64,8,8", "draws=random",
       "line 1, column 7: expected 'rules', 'learned' or 'paper', found 'random'"},
      {"64,8,8", "free=0.2 draws=paper",
       "line 1, column 10: draws= stands before the options that change it"},
      {"64,8,8", "fc_on_fc=reject,draws=paper",
       "line 1, column 17: draws= stands before the options that change it"},
      {"64,8,8", "free=1.5", "line 1, column 6: number 1.5 is not in 0..1"},
      {"64,8,8", "softmax=101", "line 1, column 9: number 101 is not in 0..100"},
      {"64,8,8", "softmax=few", "line 1, column 9: expected a number, found 'few'"},
      {"64,8,8", "on_input=yes", "line 1, column 10: expected 'allow' or 'reject', found 'yes'"},
      {"64,8,8", "bytes=all",
       "line 1, column 7: expected 'any' or a number such as 3.4x, found 'all'"},
      {"64,8,8", "bytes=3.4",
       "line 1, column 10: expected 'x' after the number of bytes=, found the end of the text"},
      {"64,1024,1024", "",
       "target 't0' has more than 33554432 elements per sample: raise "
       "elements= or leave it out"},
  };
  CHECK_ROWS (rows, row) {
    struct targets t = targets_of(row->targets);
    struct sample_options o;
    struct sampler *s = NULL;
    canvas_status status = sample_options_parse(&ctx, row->options, strlen(row->options), &o);
    if (status == CANVAS_OK) status = sampler_new(&ctx, &t, &o, 1, &s);
    CHECK_INT(status, CANVAS_BAD_INPUT, row->options);
    CHECK_TEXT(ctx.message, row->expected, row->options);
    targets_free(&t);
  }
}

CHECK_MAIN(cmocka_unit_test(depends_on_the_index_only), cmocka_unit_test(is_stable_across_versions),
           cmocka_unit_test(draws_legal_kernels), cmocka_unit_test(draws_parse_back),
           cmocka_unit_test(draws_fast_enough), cmocka_unit_test(chooses_g),
           cmocka_unit_test(lists_the_families_of_a_space), cmocka_unit_test(keeps_to_the_space),
           cmocka_unit_test(draws_one_family_of_several_rows),
           cmocka_unit_test(rejects_too_many_families), cmocka_unit_test(rejects))
