// What every draw keeps, tried on odd layers and tight limits: it can be bound at every target, nothing in
// it is plainly poor, and what may be drawn is drawn.
#include "check.h"
#include "sanitized.h"

#include "budget/budget.h"
#include "sample/sampler.h"

static canvas_context ctx;

static struct sampler *sampler_of(const struct targets *targets, const char *options) {
  struct sample_options o;
  struct sampler *s = NULL;
  CHECK_INT(sample_options_parse(&ctx, options, strlen(options), &o), CANVAS_OK, ctx.message);
  CHECK_INT(sampler_new(&ctx, targets, &o, 11, &s), CANVAS_OK, ctx.message);
  return s;
}

// Calls `visit` with the draws 0 .. count-1 that are not skipped; how many those are.
static int each_draw(const char *targets, const char *options, int count,
                     void (*visit)(const struct kernel *, int64_t g, const struct targets *,
                                   void *),
                     void *data) {
  struct targets t;
  int drawn = 0;
  CHECK_INT(targets_parse(&ctx, targets, strlen(targets), &t), CANVAS_OK, ctx.message);
  struct sampler *s = sampler_of(&t, options);
  for (int i = 0; i < count; i++) {
    struct kernel *k = NULL;
    int64_t g;
    if (sampler_draw(&ctx, s, (uint64_t)i, &k, &g) != CANVAS_OK) continue;
    visit(k, g, &t, data);
    kernel_free(k);
    drawn++;
  }
  sampler_free(s);
  targets_free(&t);
  return drawn;
}

// -- legal at every target --

// The limit is on tensors; weights, which grow with the product of two, may be over it.
static void solve(const struct kernel *k, int64_t g, const struct targets *targets, void *data) {
  struct solve_options options = {.g = g, .exempt = true, .elements_limit = *(int64_t *)data};
  struct budget budget;
  struct pack *pack = NULL;
  CHECK_INT(budget_parse(&ctx, "macs=none,params=none", 21, &budget), CANVAS_OK, ctx.message);
  canvas_status status = budget_solve(&ctx, k, targets, &budget, &options, &pack);
  bool weights = status == CANVAS_NONE && strstr(ctx.message, " weights, over the limit of ");
  CHECK(status == CANVAS_OK || weights, ctx.message);
  pack_free(pack);
}

enum { SHARE = SANITIZED ? 5 : 1 };

static void can_be_bound(void **state) {
  static const struct {
    const char *targets, *options;
    int64_t limit;
    int least; /* of 300 draws */
  } rows[] = {
      {"6,9,8;10,6,15;14,5,7", "primitives=4..10 require=none", ELEMENTS_LIMIT_DEFAULT, 290},
      {"12,9,9;24,5,5", "primitives=5..12", ELEMENTS_LIMIT_DEFAULT, 290},
      {"8,6,6;16,3,3", "primitives=5..12 elements=1400", 1400, 100},
      {"8,6,6", "primitives=3..8 require=none elements=600", 600, 100},
      {"30,4,9;42,9,4", "primitives=8..14 groups=6", ELEMENTS_LIMIT_DEFAULT, 280},
  };
  CHECK_ROWS (rows, row) {
    int64_t limit = row->limit;
    int drawn = each_draw(row->targets, row->options, 300 / SHARE, solve, &limit);
    CHECK(drawn >= row->least / SHARE, row->options);
  }
}

// -- nothing plainly poor --

static bool is_data_movement(const struct kernel *k, int node, bool shifts) {
  const char *word = node_row(&k->nodes[node])->word;
  return !strcmp(word, "group") || (shifts && !strcmp(word, "shift"));
}

static int origin(const struct kernel *k, int node, bool shifts) {
  while (is_data_movement(k, node, shifts)) node = k->nodes[node].in[0];
  return node;
}

// Binary ops and dims may have become equal only later, when a variable was given its value.
static bool twice(const struct node *a, const struct node *b) {
  bool fixed = node_row(a)->arity == 1 && dim_is_one(&a->attrs.dim);
  return fixed && a->op == b->op && a->in[0] == b->in[0] && a->attrs.over == b->attrs.over &&
         a->attrs.amount == b->attrs.amount && a->attrs.zero_fill == b->attrs.zero_fill &&
         !(node_row(a)->facts & FACT_WEIGHTS);
}

static void look(const struct kernel *k, int64_t g, const struct targets *targets, void *data) {
  static const char *const never[][2] = {
      {"relu", "relu"}, {"abs", "abs"},       {"neg", "neg"},       {"sqr", "sqrt"},
      {"sqrt", "sqr"},  {"relu", "sigmoid"},  {"exp", "exp"},       {"softmax", "softmax"},
      {"gelu", "gelu"}, {"sigmoid", "input"}, {"softmax", "input"}, {"relu", "abs"}};
  int readers[KERNEL_NODES_MAX] = {0}, weighted[KERNEL_NODES_MAX] = {0};
  struct buf text = {0};
  kernel_print(k, &text);
  for (int i = 1; i < k->count; i++) {
    const struct node *n = &k->nodes[i];
    int from = origin(k, n->in[0], true);
    for (size_t j = 0; j < sizeof never / sizeof *never; j++)
      CHECK(strcmp(node_row(n)->word, never[j][0]) != 0 ||
                strcmp(node_row(&k->nodes[from])->word, never[j][1]) != 0,
            text.text);
    if (node_row(n)->arity == 2)
      CHECK(origin(k, n->in[0], false) != origin(k, n->in[1], false), text.text);
    for (int j = 1; j < i; j++) CHECK(!twice(n, &k->nodes[j]), text.text);
    CHECK(strcmp(node_row(n)->family->name, "element-wise") != 0 ||
              strcmp(node_row(&k->nodes[n->in[0]])->word, "unfold") != 0,
          text.text);
    for (int j = 0; j < node_row(n)->arity; j++) readers[n->in[j]]++;
    if (node_row(n)->facts & FACT_WEIGHTS) weighted[n->in[0]]++;
  }
  for (int i = 0; i < k->count - 1; i++) {
    CHECK(readers[i] > 0, text.text);
    CHECK(weighted[i] <= 2, text.text);
  }
  buf_free(&text);
}

static void nothing_is_plainly_poor(void **state) {
  const int many = 600 / SHARE, few = 300 / SHARE;
  CHECK(each_draw("16,8,8;32,4,4", "free=0", many, look, NULL) > 590 / SHARE, "5..12");
  CHECK(each_draw("16,8,8", "primitives=12..24 require=none free=0", few, look, NULL) > 290 / SHARE,
        "12..24");
  CHECK(each_draw("16,8,8", "draws=paper on_input=reject", few, look, NULL) > 290 / SHARE, "paper");
}

// -- what may be drawn is drawn --

struct tally {
  int primitives[16], first_weighted, weighted[16];
};

static void count(const struct kernel *k, int64_t g, const struct targets *targets, void *data) {
  struct tally *t = data;
  int weighted = 0;
  for (int i = 1; i < k->count; i++) weighted += !!(node_row(&k->nodes[i])->facts & FACT_WEIGHTS);
  t->primitives[kernel_primitives(k)]++;
  t->weighted[weighted]++;
  t->first_weighted += !!(node_row(&k->nodes[1])->facts & FACT_WEIGHTS);
}

static void counts_are_drawn_evenly(void **state) {
  struct tally t = {{0}, 0, {0}};
  int drawn = each_draw("16,8,8", "primitives=5..8 require=none free_size=0", 800, count, &t);
  for (int n = 5; n <= 8; n++) CHECK(t.primitives[n] > drawn / 8, "every length");
  for (int n = 1; n <= 3; n++) CHECK(t.weighted[n] > drawn / 8, "every number of weights");
  CHECK(t.first_weighted > drawn / 8 && t.first_weighted < drawn / 2, "weights stand anywhere");
}

CHECK_MAIN(cmocka_unit_test(can_be_bound), cmocka_unit_test(nothing_is_plainly_poor),
           cmocka_unit_test(counts_are_drawn_evenly))
