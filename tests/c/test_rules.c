// Rules of drawing: what each rejects, that draws keep them, how often what is drawn.
#include "check.h"

#include <stdlib.h>

#include "sample/bytes_bound.h"
#include "sample/sampler.h"
#include "sanitized.h"

static canvas_context ctx;
static const char *const narrow = "16,8,8;32,4,4", *const pointwise = "shrink 16 16 8 8 1 1 1";
static const char *const resnet18 = "64,56,56;128,28,28;256,14,14;512,7,7";

static struct targets targets_of(const char *text) {
  struct targets t = {0};
  CHECK_INT(targets_parse(&ctx, text, strlen(text), &t), CANVAS_OK, ctx.message);
  return t;
}

static struct sample_options options_of(const char *text) {
  struct sample_options o;
  CHECK_INT(sample_options_parse(&ctx, text, strlen(text), &o), CANVAS_OK, ctx.message);
  return o;
}

/* "b = relu a;out b" as a kernel. */
static struct kernel *kernel_of(const char *nodes) {
  struct lexer lx;
  struct kernel *k = NULL;
  char text[1024];
  snprintf(text, sizeof text, "canvas 1\nkernel k\na = input\n%s\n", nodes);
  for (char *p = text; *p; p++)
    if (*p == ';') *p = '\n';
  CHECK_INT(lexer_open(&lx, &ctx, text, strlen(text)), CANVAS_OK, text);
  CHECK_INT(kernel_parse(&lx, &k), CANVAS_OK, ctx.message);
  return k;
}

static const char *broken(const char *options, const char *nodes, const char *targets) {
  struct sample_options o = options_of(options);
  struct targets t = targets_of(targets);
  struct kernel *k = kernel_of(nodes);
  const char *name = rules_broken(&o.rules, k, &t, NULL, 4);
  kernel_free(k);
  targets_free(&t);
  return name;
}

// -- what each rule rejects --

#define PRODUCT "unbounded_product=reject"
#define FC      "fc_on_fc=reject"
#define INPUT   "on_input=reject"
#define BENDS   "nonlinear=1"
#define BYTES   "bytes=3.4x"

static void rejects_what_it_names(void **state) {
  static const struct {
    const char *rule, *nodes, *targets;
    bool broken;
  } rows[] = {
      {PRODUCT, "b = relu a;c = mul a b;out c", narrow, true},
      {PRODUCT, "b = fc a to=C;c = mul a b;out c", narrow, false},
      {PRODUCT, "b = fc a to=C;c = relu b;d = mul c b;out d", narrow, true},
      {PRODUCT, "b = fc a to=C;c = fc b to=C;d = mul c b;out d", narrow, false},
      {PRODUCT, "b = fc a to=C;c = mul b a;d = fc c to=C;e = mul d a;out e", narrow, true},
      {PRODUCT, "b = fc a to=C;c = mul b a;d = fc a to=C;e = mul d c;out e", narrow, true},
      {PRODUCT, "b = fc a to=C;c = mul b a;d = sigmoid a;e = mul d c;out e", narrow, false},
      {PRODUCT, "b = fc a to=C;c = mul b a;d = sigmoid c;e = fc d to=C;f = mul e a;out f", narrow,
       false},
      {PRODUCT, "b = fc a to=C;c = mul b a;d = sqr c;out d", narrow, true},
      {PRODUCT, "b = sqr a;out b", narrow, true},
      {PRODUCT, "b = fc a to=C;c = sqr b;d = sqrt c;out d", narrow, true},
      {PRODUCT, "b = sqrt a;c = fc b to=C;d = sqrt c;e = mul b d;out e", narrow, false},
      {PRODUCT, "b = fc a to=C;c = sigmoid b;d = mul c a;out d", narrow, false},
      {PRODUCT, "b = fc a to=C;c = tanh b;d = mul a c;out d", narrow, false},
      {PRODUCT, "b = sin a;c = mul b a;d = fc c to=C;e = mul d a;out e", narrow, false},
      {PRODUCT, "b = softmax a over=C;c = fc b to=C;d = mul c a;out d", narrow, false},
      {PRODUCT, "b = exp a;c = mul b a;out c", narrow, true},
      {PRODUCT, "b = exp a;out b", narrow, false},
      {PRODUCT, "b = sigmoid a;c = exp b;d = sqr c;e = mul d a;out e", narrow, false},
      {PRODUCT, "b = sqrt a;c = exp b;d = mul c b;out d", narrow, true},
      {PRODUCT, "b = sigmoid a;c = max a b;d = mul c a;out d", narrow, true},
      {FC, "b = fc a to=x0;c = fc b to=C;out c", narrow, true},
      {FC, "b = fc a to=x0;c = relu b;d = fc c to=C;out d", narrow, false},
      {FC, "b = fc a to=x0;c = unfold b over=H k=3;d = fc c to=C;out d", narrow, false},
      {FC, "b = fc a to=x0;c = shift b over=H by=1;d = fc c to=C;out d", narrow, false},
      {FC, "b = fc a to=C;c = neg b;d = group c by=G;e = fc d to=C;out e", narrow, true},
      {FC, "b = fc a to=G;c = fc b to=C;out c", narrow, false},
      {FC, "b = fc a to=C/G;c = fc b to=C;out c", narrow, false},
      {FC, "b = fc a to=C;c = fc b to=G;d = add c a;out d", narrow, true},
      {FC, "b = fc a to=C;c = fold b mean over=W;d = fc c to=C;e = mul d a;out e", narrow, true},
      {FC, "b = fc a to=C;c = fold b max over=W;d = fc c to=C;e = mul d a;out e", narrow, false},
      {FC, "b = group a each;c = unfold b over=H,W k=K;d = fc c to=C;e = fc d to=C;out e", narrow,
       false},
      {FC, "b = group a each;c = unfold b over=H,W k=K;d = fc c to=C;e = fc d to=C;out e",
       pointwise, true},
      {FC, "b = group a by=G;c = fc b to=C;d = group c by=G;e = fc d to=C;out e", narrow, true},
      {FC, "b = unfold a over=H,W k=K;c = fc b to=x0;d = fc c to=C;out d", narrow, false},
      {FC, "b = unfold a over=H,W k=K;c = fc b to=C;d = fc c to=C;out d", narrow, true},
      {INPUT, "b = relu a;out b", narrow, true},
      {INPUT, "b = shift a over=H by=1;c = group b each;d = softmax c over=H;out d", narrow, true},
      {INPUT, "b = neg a;c = fc b to=C;d = relu c;out d", narrow, true},
      {INPUT, "b = fc a to=C;c = relu b;d = add a c;out d", narrow, false},
      {BENDS, "b = fc a to=C;c = unfold b over=H k=3;d = fc c to=C;out d", narrow, true},
      {BENDS, "b = fc a to=C;c = neg b;d = max a c;out d", narrow, true},
      {BENDS, "b = fc a to=C;c = gelu b;d = fc c to=C;out d", narrow, false},
      {BENDS, "b = fc a to=C;c = fc b to=C;out c", narrow, false},
      {BYTES, "b = unfold a over=H,W k=K;c = fc b to=C;out c", narrow, false},
      {BYTES, "b = unfold a over=H,W k=9;c = fc b to=C;out c", narrow, true},
      {"bytes=20x", "b = unfold a over=H,W k=9;c = fc b to=C;out c", narrow, false},
      {"bytes=1x", "b = unfold a over=H,W k=K;c = fc b to=C;out c", narrow, false},
      {"bytes=0.9x", "b = unfold a over=H,W k=K;c = fc b to=C;out c", narrow, true},
  };
  CHECK_ROWS (rows, row) {
    char options[64], name[32] = "";
    snprintf(options, sizeof options, "draws=paper %s", row->rule);
    memcpy(name, row->rule, strcspn(row->rule, "="));
    CHECK_TEXT(broken(options, row->nodes, row->targets), row->broken ? name : NULL, row->nodes);
    CHECK_TEXT(broken("draws=paper", row->nodes, row->targets), NULL, row->nodes);
  }
}

/* Each rule has an option that switches it off, and no other. */
static void are_switched_off(void **state) {
  static const struct {
    const char *options, *nodes, *broken;
  } rows[] = {
      {"", "b = sqr a;out b", "unbounded_product"},
      {"unbounded_product=allow", "b = sqr a;out b", "on_input"},
      {"unbounded_product=allow on_input=allow", "b = sqr a;out b", "fixed_size"},
      {"unbounded_product=allow on_input=allow free_size=0", "b = sqr a;out b", NULL},
      {"free_size=0.1", "b = fc a to=C;out b", "fixed_size"},
      {"free_size=0", "b = fc a to=C;out b", NULL},
      {"", "b = unfold a over=H k=K;c = fc b to=x0;d = relu c;e = fc d to=C;out e", NULL},
      {"", "b = fc a to=x0;c = fc b to=C;out c", "fc_on_fc"},
      {"fc_on_fc=allow", "b = fc a to=x0;c = fc b to=C;out c", NULL},
      {"", "b = fc a to=C;c = neg b;d = max a c;out d", "nonlinear"},
      {"nonlinear=0", "b = fc a to=C;c = neg b;d = max a c;out d", "fixed_size"},
      {"nonlinear=0 free_size=0", "b = unfold a over=H,W k=9;c = fc b to=C;d = neg c;out d",
       "bytes"},
      {"nonlinear=0 free_size=0 bytes=any",
       "b = unfold a over=H,W k=9;c = fc b to=C;d = neg c;out d", NULL},
      {"draws=rules,free=0", "b = sqr a;out b", "unbounded_product"},
  };
  CHECK_ROWS (rows, row)
    CHECK_TEXT(broken(row->options, row->nodes, narrow), row->broken, row->nodes);
}

/* A pack is judged by the sizes that were solved: here a bottleneck, there none. */
static void packs_are_judged_by_their_sizes(void **state) {
  static const struct {
    const char *x0;
    unsigned broken;
  } rows[] = {{"7", 0}, {"8", 1 << RULE_FC_ON_FC}, {"128", 1 << RULE_FC_ON_FC | 1 << RULE_BYTES}};
  CHECK_ROWS (rows, row) {
    char text[512];
    struct pack *p = NULL;
    struct sample_options o = options_of("nonlinear=0 bytes=1x");
    snprintf(text, sizeof text,
             "canvas 1\nkernel k\na = input\nb = fc a to=x0\nc = fc b to=C\nout c\n"
             "bind t Cin=16 Cout=16 KH=3 KW=3 H=8 W=8 stride=1 x0=%s\n",
             row->x0);
    CHECK_INT(pack_parse(&ctx, text, strlen(text), &p), CANVAS_OK, ctx.message);
    CHECK_INT(rules_broken_at(&o.rules, p->kernel, p->data, p->count), row->broken, row->x0);
    pack_free(p);
  }
}

// -- what is drawn --

struct tally {
  int drawn, free, broken, free_broken, bends;
  int rules[RULE_COUNT], types[OFTEN_COUNT];  // by `enum often` where it names a sort of node
};

/* The option that weighs the node's type. */
static int type_of(const struct node *n) {
  static const struct family *const types[OFTEN_TYPES] = {
      &family_group, &family_shift,   &family_unfold,   &family_map,
      &family_fold,  &family_softmax, &family_broadcast};
  for (int i = 0; i < OFTEN_TYPES; i++)
    if (node_row(n)->family == types[i]) return i;
  return OFTEN_FREE;
}

static void count_nodes(const struct kernel *k, struct tally *t) {
  struct dim one = dim_one();
  bool bends = false;
  for (int i = 1; i < k->count - 1; i++) {
    const struct node *n = &k->nodes[i];
    t->types[type_of(n)]++;
    t->types[OFTEN_IMAGE_FOLD] += type_of(n) == OFTEN_FOLD && n->attrs.over & ROLES_SPATIAL;
    t->types[OFTEN_TO_ONE] += n->op == PRIMITIVE_FC && dim_equal(&n->attrs.dim, &one);
    bends |= node_bends(n);
  }
  t->bends += bends;
}

static void count_draw(const struct sample_options *o, const struct targets *targets,
                       const struct kernel *k, int64_t g, bool is_free, struct tally *t) {
  bool any = false;
  t->drawn++;
  t->free += is_free;
  for (int r = 0; r < RULE_COUNT; r++) {
    struct rules one = {1u << r, o->rules.bytes};
    bool is_broken = rules_broken(&one, k, targets, NULL, g);
    t->rules[r] += is_broken;
    any |= is_broken && r != RULE_NONLINEAR && r != RULE_FIXED_SIZE;
  }
  t->broken += any && !is_free;
  t->free_broken += any && is_free;
  count_nodes(k, t);
}

static struct tally tally_of(const char *targets_text, const char *options, int count) {
  struct tally t = {0};
  struct targets targets = targets_of(targets_text);
  struct sample_options o = options_of(options);
  struct sampler *s = NULL;
  CHECK_INT(sampler_new(&ctx, &targets, &o, 7, &s), CANVAS_OK, ctx.message);
  for (int i = 0; i < count; i++) {
    struct kernel *k;
    int64_t g;
    if (sampler_draw(&ctx, s, (uint64_t)i, &k, &g) != CANVAS_OK) continue;
    count_draw(&o, &targets, k, g, sampler_is_free(&o, 7, (uint64_t)i), &t);
    kernel_free(k);
  }
  sampler_free(s);
  targets_free(&targets);
  return t;
}

/* No draw breaks a rule but the free ones; a tenth is free, and most of those break one. */
static void draws_keep_the_rules(void **state) {
  static const char *const rows[] = {resnet18, "16,8,8;32,4,4", "6,9,8;10,6,15;14,5,7",
                                     "down 16 64 8 8 3 2 1\nup 64 16 8 8 1x3 1 1\n"};
  CHECK_ROWS (rows, row) {
    struct tally t = tally_of(*row, "", 500);
    CHECK(t.drawn > 490, *row);
    CHECK_INT(t.broken, 0, *row);
    CHECK(t.free > 30 && t.free < 70, *row);
    CHECK(t.free_broken > t.free / 2, *row);
    CHECK(t.bends > t.drawn * 3 / 4 && t.bends < t.drawn * 19 / 20, *row);
    CHECK(t.rules[RULE_FIXED_SIZE] < t.drawn * 3 / 10, *row);
  }
}

static void shares_are_those_of_the_options(void **state) {
  struct tally none = tally_of(narrow, "free=0 nonlinear=0 free_size=0", 300);
  struct tally all = tally_of(narrow, "free=0 nonlinear=1 free_size=1", 300);
  struct tally freed = tally_of(narrow, "primitives=5..12 free=1", 300),
               paper = tally_of(narrow, "draws=paper", 300);
  CHECK_INT(none.free + all.free + none.broken + all.broken, 0, "free=0");
  CHECK_INT(all.bends, all.drawn, "nonlinear=1");
  CHECK(none.bends < none.drawn * 9 / 10, "nonlinear=0");
  CHECK_INT(all.rules[RULE_FIXED_SIZE], 0, "free_size=1");
  CHECK(none.rules[RULE_FIXED_SIZE] > none.drawn / 4, "free_size=0");
  CHECK_INT(freed.free, freed.drawn, "free=1");
  CHECK_INT(paper.free, 0, "draws=paper");
  for (int r = 0; r < RULE_COUNT; r++) {
    CHECK(freed.rules[r] > 0, rule_rows[r].name);
    CHECK_INT(freed.rules[r], paper.rules[r], rule_rows[r].name);
  }
}

/* With `draws=paper` every type of one input is as frequent as another among the primitives that are
 * drawn by default: the counts lie within a tenth of their mean. Under sanitizers fewer draws say less. */
static void paper_is_uniform_over_types(void **state) {
  static const char *const rows[] = {resnet18, "16,16,16;32,8,8;64,4,4"};
  CHECK_ROWS (rows, row) {
    struct tally t = tally_of(*row, "draws=paper", SANITIZED ? 200 : 2000);
    int sum = 0, share = SANITIZED ? 2 : 10;
    for (int i = 0; i < OFTEN_BROADCAST; i++) sum += t.types[i];
    for (int i = 0; i < OFTEN_BROADCAST; i++) CHECK(abs(6 * t.types[i] - sum) < sum / share, *row);
  }
}

/* A weight of 0 is never drawn, a smaller share less often. */
static void weights_change_how_often(void **state) {
  static const struct {
    const char *options;
    int type;
  } rows[] = {{"grouping=0", OFTEN_GROUPING},  {"shift=0", OFTEN_SHIFT},
              {"unfold=0", OFTEN_UNFOLD},      {"elementwise=0", OFTEN_ELEMENTWISE},
              {"fold=0", OFTEN_FOLD},          {"softmax=0", OFTEN_SOFTMAX},
              {"broadcast=0", OFTEN_BROADCAST}};
  CHECK_ROWS (rows, row) {
    char options[80];
    snprintf(options, sizeof options, "draws=paper require=none %s", row->options);
    struct tally t = tally_of(narrow, options, 200);
    CHECK(t.drawn > 100, row->options);
    /* simplification makes a square of a product with itself */
    CHECK(t.types[row->type] <= (row->type == OFTEN_ELEMENTWISE ? 2 : 0), row->options);
  }
  struct tally paper = tally_of(narrow, "draws=paper require=none", 300);
  struct tally few =
      tally_of(narrow, "draws=paper require=none image_fold=0.1 to_one=0.1 softmax=0.1", 300);
  for (int i = 0; i < OFTEN_COUNT; i++)
    if (i == OFTEN_IMAGE_FOLD || i == OFTEN_TO_ONE || i == OFTEN_SOFTMAX)
      CHECK(few.types[i] * 2 < paper.types[i], "less often");
}

// -- the bound of the bytes --

/* Both ways to judge RULE_BYTES at the same layers, and how many kernels each rejects. */
struct judges {
  const struct targets *t;
  int64_t times[8];
  struct sizes sizes[8]; /* distinct */
  int count;
  struct bytes_bound bound;
  struct dim_facts *facts;
  int by_rule, by_bound;
};

static void judges_open(const struct targets *t, struct judges *j) {
  *j = (struct judges){.t = t, .facts = dim_facts_new(t->count)};
  for (int i = 0; i < t->count; i++) {
    struct sizes *sizes = &j->sizes[j->count];
    int64_t copies;
    bool known = false;
    target_sizes_as(&t->data[i], false, sizes, &copies);
    for (int k = 0; k < j->count; k++) known |= !memcmp(&j->sizes[k], sizes, sizeof *sizes);
    j->count += !known;
    j->times[i] = 1 + i % 3;
  }
  bytes_bound_open(t, j->times, j->sizes, j->count, &j->bound);
}

static void judge(struct judges *j, const struct kernel *k, int64_t g) {
  const struct rules rules = {1u << RULE_BYTES, 3400};
  for (int i = 0; i < j->count; i++) j->sizes[i].value[SIZE_G] = g;
  bool by_rule = rules_broken(&rules, k, j->t, j->times, g) != NULL;
  bool by_bound = bytes_bound_broken(&j->bound, j->facts, j->sizes, &rules, k);
  CHECK(by_rule || !by_bound, "the bound rejects what the rule passes");
  j->by_rule += by_rule;
  j->by_bound += by_bound;
}

/* It rejects no kernel that the rule passes, and most that it rejects. */
static void bytes_are_bounded_from_below(void **state) {
  static const char *const rows[] = {
      /* layers of ResNet-18, of VGG-16 and of MobileNet-V2 */
      "a 64 64 56 56 3 1 1\nb 64 128 56 56 3 2 1\nc 64 128 56 56 1 2 1\nd 512 512 7 7 3 1 1\n",
      "a 64 64 224 224 3 1 1\nb 64 128 112 112 3 1 1\nc 512 512 14 14 3 1 1\n",
      ("a 32 16 112 112 1 1 1\nb 16 96 112 112 1 1 1\nc 96 24 56 56 1 1 1\n"
       "d 24 144 56 56 1 1 1\ne 960 320 7 7 1 1 1\nf 320 1280 7 7 1 1 1\n")};
  CHECK_ROWS (rows, row) {
    struct targets t = targets_of(*row);
    struct sample_options o = options_of("draws=rules bytes=any space=published");
    struct sampler *s;
    struct kernel *k;
    struct judges j;
    int64_t g;
    judges_open(&t, &j);
    CHECK_INT(sampler_new(&ctx, &t, &o, 5, &s), CANVAS_OK, ctx.message);
    for (uint64_t i = 0; i < (SANITIZED ? 40 : 200); i++) {
      if (sampler_draw(&ctx, s, i, &k, &g) != CANVAS_OK) continue;
      judge(&j, k, g);
      kernel_free(k);
    }
    CHECK(j.by_rule > 1 && j.by_bound * 2 > j.by_rule, *row);
    sampler_free(s);
    bytes_bound_close(&j.bound);
    dim_facts_free(j.facts);
    targets_free(&t);
  }
}

CHECK_MAIN(cmocka_unit_test(rejects_what_it_names), cmocka_unit_test(bytes_are_bounded_from_below),
           cmocka_unit_test(are_switched_off), cmocka_unit_test(packs_are_judged_by_their_sizes),
           cmocka_unit_test(draws_keep_the_rules),
           cmocka_unit_test(shares_are_those_of_the_options),
           cmocka_unit_test(paper_is_uniform_over_types),
           cmocka_unit_test(weights_change_how_often))
