// Kernels that take the stride themselves: text, shapes, what is refused, meaning against a direct
// convolution, cost, weights that cannot matter, rewrites, children.
#include "check.h"
#include "sanitized.h"

#include <math.h>
#include <stdio.h>

#include "base/random.h"
#include "budget/budget.h"
#include "evolve/draft.h"
#include "evolve/mutate.h"
#include "kernel/kernel_simplify.h"
#include "kernel/kernel_stride.h"
#include "lower/gain.h"
#include "lower/idle_weights.h"
#include "lower/lower.h"
#include "program/interpret.h"

static canvas_context ctx;

static canvas_status parse(const char *body, struct kernel **k) {
  char text[4096];
  struct lexer lx;
  *k = NULL;
  snprintf(text, sizeof text, "canvas 1\nkernel t\na = input\n%s\n", body);
  canvas_status status = lexer_open(&lx, &ctx, text, strlen(text));
  return status == CANVAS_OK ? kernel_parse(&lx, k) : status;
}

static struct kernel *kernel_of(const char *body) {
  struct kernel *k;
  CHECK_INT(parse(body, &k), CANVAS_OK, ctx.message);
  return k;
}

// Nodes and output of a kernel, one a line, without shapes.
static char *body_of(const struct kernel *k) {
  struct buf out = {0};
  for (int i = 1; i < k->count - 1; i++) {
    buf_printf(&out, "%s = ", k->nodes[i].name);
    node_print(k, i, &out);
    buf_puts(&out, "\n");
  }
  buf_printf(&out, "out %s", k->nodes[k->nodes[k->count - 1].in[0]].name);
  return buf_take(&out);
}

// -- text --

#define CONVOLUTION "b = unfold a over=H,W k=K stride=S\nc = fc b to=C\nout c"

static void prints_what_it_parsed(void **state) {
  static const struct {
    const char *body, *shape;  // of node b
  } rows[] = {
      {CONVOLUTION, "C KH KW H/S W/S"},
      {"b = unfold a over=H,W k=3 stride=S dilation=2\nc = fc b to=C\nout c",
       "C KH=3 KW=3 H/S W/S"},
      {"b = unfold a over=H k=K dilation=15\nc = fc b to=C\nout c", "C KH H W"},
      {"b = unfold a over=H k=K stride=S\nc = subsample b over=W by=S\nd = fc c to=C\nout d",
       "C KH H/S W"},
      {"b = subsample a over=H,W by=S\nout b", "C H/S W/S"},
      {"b = subsample a over=H,W by=S\nc = softmax b over=H,W scale=H*W/S/S\nout c", "C H/S W/S"},
      {"b = fc a to=x0\nc = subsample b over=H,W by=S\nd = fc c to=C\nout d", "x0 H W"},
  };
  CHECK_ROWS (rows, row) {
    struct kernel *k = kernel_of(row->body), *again;
    struct buf shape = {0}, text = {0}, second = {0};
    char *body = body_of(k);
    struct lexer lx;
    CHECK_TEXT(body, row->body, row->body);
    shape_print(&k->nodes[1].shape, &shape);
    CHECK_TEXT(shape.text, row->shape, row->body);
    kernel_print(k, &text);
    CHECK_INT(lexer_open(&lx, &ctx, text.text, text.length), CANVAS_OK, row->body);
    CHECK_INT(kernel_parse(&lx, &again), CANVAS_OK, ctx.message);
    kernel_print(again, &second);
    CHECK_TEXT(second.text, text.text, row->body);
    mem_free(body);
    buf_free(&shape);
    buf_free(&text);
    buf_free(&second);
    kernel_free(k);
    kernel_free(again);
  }
}

static void leaves_out_a_dilation_of_one(void **state) {
  struct kernel *k = kernel_of("b = unfold a over=H,W k=K dilation=1\nc = fc b to=C\nout c");
  struct kernel *plain = kernel_of("b = unfold a over=H,W k=K\nc = fc b to=C\nout c");
  char *body = body_of(k);
  CHECK_TEXT(body, "b = unfold a over=H,W k=K\nc = fc b to=C\nout c", "dilation=1");
  CHECK(hash_equal(kernel_hash(k, NULL), kernel_hash(plain, NULL)), "dilation=1");
  mem_free(body);
  kernel_free(k);
  kernel_free(plain);
}

static void hashes_by_stride_and_dilation(void **state) {
  static const char *const bodies[] = {
      "b = unfold a over=H,W k=K\nc = fc b to=C\nout c",
      CONVOLUTION,
      "b = unfold a over=H,W k=K dilation=2\nc = fc b to=C\nout c",
      "b = unfold a over=H,W k=K dilation=3\nc = fc b to=C\nout c",
      "b = unfold a over=H,W k=K stride=S dilation=2\nc = fc b to=C\nout c",
      "b = subsample a over=H,W by=S\nc = unfold b over=H,W k=K\nd = fc c to=C\nout d",
      "b = unfold a over=H,W k=K\nc = subsample b over=H,W by=S\nd = fc c to=C\nout d",
  };
  enum { COUNT = sizeof bodies / sizeof *bodies };
  struct hash hashes[COUNT];
  for (int i = 0; i < COUNT; i++) {
    struct kernel *k = kernel_of(bodies[i]);
    hashes[i] = kernel_hash(k, NULL);
    for (int j = 0; j < i; j++) CHECK(!hash_equal(hashes[i], hashes[j]), bodies[i]);
    kernel_free(k);
  }
  // As it was before there were strides.
  CHECK(hashes[0].high == UINT64_C(0xabafa0026f8ac29a), bodies[0]);
}

static void rejects(void **state) {
  static const struct {
    const char *body, *expected;
  } rows[] = {
      {"b = unfold a over=H,W k=K stride=2\nc = fc b to=C\nout c",
       "line 4, column 5: 'unfold' cannot be applied here: stride= takes S"},
      {"b = unfold a over=H,W k=K stride=S*S\nc = fc b to=C\nout c",
       "line 4, column 5: 'unfold' cannot be applied here: stride= takes S"},
      {"b = unfold a over=H,W k=K dilation=16\nc = fc b to=C\nout c",
       "line 4, column 5: 'unfold' cannot be applied here: dilation= takes a number up to 15"},
      {"b = unfold a over=H,W k=K dilation=0\nc = fc b to=C\nout c",
       "line 4, column 36: dilation=0 is not a number of at least 1"},
      {"b = unfold a over=H,W k=K stride=S stride=S",
       "line 4, column 36: attribute 'stride' stands twice"},
      {"b = subsample a over=H,W by=2\nout b",
       "line 4, column 5: 'subsample' cannot be applied here: by= takes S"},
      {"b = subsample a over=C by=S\nout b",
       "line 4, column 5: 'subsample' cannot be applied here: over= takes H, W or H,W"},
      {"b = fold a mean over=H\nc = subsample b over=H by=S",
       "line 5, column 5: 'subsample' cannot be applied here: the input has not all axes of over= "
       "(no H, but C W)"},
      {"b = subsample a over=H by=S\nc = subsample b over=H,W by=S\nout c",
       "line 5, column 5: 'subsample' cannot be applied here: the stride is taken already"},
      {"b = subsample a over=H,W by=S\nc = unfold b over=H k=K stride=S\nd = fc c to=C\nout d",
       "line 5, column 5: 'unfold' cannot be applied here: the stride is taken already"},
      {"b = subsample a over=H by=S\nout b",
       "line 5, column 1: 'out' cannot be applied here: the last axes of the output must be H/S "
       "W/S, as the kernel uses S"},
      {"b = unfold a over=H,W k=K stride=S\nc = fc b to=C\nd = fold c mean over=H,W\n"
       "e = mul d a\nout e",
       "line 8, column 1: 'out' cannot be applied here: the last axes of the output must be H/S "
       "W/S, as the kernel uses S"},
      {"b = fc a to=C/S\nout b",
       "line 4, column 5: 'fc' cannot be applied here: to= is never whole"},
  };
  CHECK_ROWS (rows, row) {
    struct kernel *k;
    CHECK_INT(parse(row->body, &k), CANVAS_BAD_INPUT, row->body);
    CHECK_TEXT(ctx.message, row->expected, row->body);
  }
}

// -- meaning --

static struct pack *bound(const struct kernel *k, const char *at) {
  struct binding b;
  struct pack *pack = pack_new(k);
  CHECK_INT(binding_parse_at(&ctx, at, strlen(at), &b), CANVAS_OK, ctx.message);
  CHECK_INT(pack_bind(&ctx, pack, &b), CANVAS_OK, ctx.message);
  return pack;
}

struct run {
  struct program *p;
  double *inputs[KERNEL_NODES_MAX];
  double *y;
  int64_t count;
};

static struct run run_at(const struct kernel *k, const struct binding *b) {
  struct run r = {0};
  struct interpreter *in;
  struct random random;
  CHECK_INT(lower_binding(&ctx, k, b, 1, &r.p), CANVAS_OK, ctx.message);
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
            k->name);
  CHECK_INT(interpreter_elements(in, out, r.count, NULL, r.y), CANVAS_OK, ctx.message);
  interpreter_free(in);
  return r;
}

static struct run run_of(const char *body, const char *at) {
  struct kernel *k = kernel_of(body);
  struct pack *pack = bound(k, at);
  struct run r = run_at(k, &pack->data[0]);
  pack_free(pack);
  kernel_free(k);
  return r;
}

static void run_free(struct run *r) {
  for (int i = 0; i < r->p->inputs.count; i++) mem_free(r->inputs[i]);
  mem_free(r->y);
  program_free(r->p);
}

// A convolution of an image of H x W as nn.Conv2d defines it.
struct conv {
  int cin, cout, h, w, kh, kw, stride, dilation, groups;
};

static double conv_at(const struct conv *c, const struct run *r, int co, int y, int x) {
  int each = c->cin / c->groups, first = co / (c->cout / c->groups) * each;
  double sum = 0;
  for (int k = 0; k < each; k++)
    for (int i = 0; i < c->kh; i++)
      for (int j = 0; j < c->kw; j++) {
        int h = y * c->stride + (i - c->kh / 2) * c->dilation;
        int w = x * c->stride + (j - c->kw / 2) * c->dilation;
        if (h < 0 || h >= c->h || w < 0 || w >= c->w) continue;
        sum += r->inputs[0][((first + k) * c->h + h) * c->w + w] *
               r->inputs[1][((co * each + k) * c->kh + i) * c->kw + j];
      }
  return sum;
}

static void is_the_convolution(void **state) {
  static const struct {
    const char *body, *at;
    struct conv conv;
  } rows[] = {
      {CONVOLUTION, "C=4,H=8,W=6,stride=2", {4, 4, 8, 6, 3, 3, 2, 1, 1}},
      {CONVOLUTION, "C=4,H=8,W=6", {4, 4, 8, 6, 3, 3, 1, 1, 1}},
      {CONVOLUTION, "C=2,H=9,W=6,KH=5,KW=1,stride=3", {2, 2, 9, 6, 5, 1, 3, 1, 1}},
      {CONVOLUTION, "Cin=2,Cout=4,H=4,W=6,stride=2", {2, 4, 4, 6, 3, 3, 2, 1, 1}},
      {"b = unfold a over=H,W k=K dilation=2\nc = fc b to=C\nout c",
       "C=4,H=7,W=5",
       {4, 4, 7, 5, 3, 3, 1, 2, 1}},
      {"b = unfold a over=H,W k=5 stride=S dilation=3\nc = fc b to=C\nout c",
       "C=2,H=12,W=8,stride=2",
       {2, 2, 12, 8, 5, 5, 2, 3, 1}},
      {"b = unfold a over=H k=K stride=S\nc = unfold b over=W k=K stride=S\nd = fc c to=C\nout d",
       "C=4,H=8,W=6,stride=2",
       {4, 4, 8, 6, 3, 3, 2, 1, 1}},
      {"b = unfold a over=H,W k=K\nc = subsample b over=H,W by=S\nd = fc c to=C\nout d",
       "C=4,H=8,W=6,stride=2",
       {4, 4, 8, 6, 3, 3, 2, 1, 1}},
      {"b = unfold a over=H,W k=K\nc = fc b to=C\nd = subsample c over=W by=S\n"
       "e = subsample d over=H by=S\nout e",
       "C=4,H=8,W=6,stride=2",
       {4, 4, 8, 6, 3, 3, 2, 1, 1}},
      // neighbours that are S apart
      {"b = subsample a over=H,W by=S\nc = unfold b over=H,W k=K\nd = fc c to=C\nout d",
       "C=4,H=8,W=6,stride=2",
       {4, 4, 8, 6, 3, 3, 2, 2, 1}},
      {"b = subsample a over=H,W by=S\nc = fc b to=C\nout c",
       "C=4,H=8,W=6,stride=2",
       {4, 4, 8, 6, 1, 1, 2, 1, 1}},
      {"b = group a by=G\nc = unfold b over=H,W k=K stride=S dilation=2\nd = fc c to=C\nout d",
       "C=4,H=8,W=6,G=2,stride=2",
       {4, 4, 8, 6, 3, 3, 2, 2, 2}},
      {"b = unfold a over=H,W k=K stride=S\nc = group b each\nd = fc c to=C\nout d",
       "C=4,H=8,W=6,stride=2",
       {4, 4, 8, 6, 3, 3, 2, 1, 4}},
  };
  CHECK_ROWS (rows, row) {
    struct run r = run_of(row->body, row->at);
    int h = row->conv.h / row->conv.stride, w = row->conv.w / row->conv.stride;
    CHECK_INT(r.count, row->conv.cout * h * w, row->body);
    for (int i = 0; i < r.count; i++)
      CHECK_NEAR(r.y[i], conv_at(&row->conv, &r, i / (h * w), i / w % h, i % w), 1e-12, row->body);
    run_free(&r);
  }
}

// C_in = 4, C_out = 2: two groups of the input, averaged, on the small image.
static void averages_groups(void **state) {
  struct run r = run_of("b = subsample a over=H,W by=S\nc = fc b to=C\nout c",
                        "Cin=4,Cout=2,H=4,W=6,stride=2");
  CHECK_INT(r.count, 2 * 2 * 3, "elements");
  for (int i = 0; i < r.count; i++) {
    int pixel = i / 3 % 2 * 2 * 6 + i % 3 * 2;
    double sum = 0;
    for (int copy = 0; copy < 2; copy++)
      for (int c = 0; c < 2; c++)
        sum += r.inputs[0][(copy * 2 + c) * 24 + pixel] * r.inputs[1][(copy * 2 + i / 6) * 2 + c];
    CHECK_NEAR(r.y[i], sum / 2, 1e-12, "an averaged group");
  }
  run_free(&r);
}

// -- cost and sizes --

static void costs_what_the_convolution_costs(void **state) {
  static const struct {
    const char *body, *at;
  } rows[] = {
      {CONVOLUTION, "Cin=64,Cout=128,H=56,W=56,stride=2"},
      {CONVOLUTION, "C=64,H=56,W=56"},
      {CONVOLUTION, "C=8,H=9,W=12,KH=5,KW=3,stride=3"},
      {"b = unfold a over=H,W k=K stride=S dilation=2\nc = fc b to=C\nout c",
       "C=64,H=56,W=56,stride=2"},
      {"b = subsample a over=H,W by=S\nc = fc b to=C\nout c",
       "Cin=64,Cout=128,H=56,W=56,K=1,stride=2"},
      {"b = group a by=G\nc = unfold b over=H,W k=K stride=S\nd = fc c to=C\nout d",
       "C=64,H=56,W=56,groups=4,G=4,stride=2"},
  };
  CHECK_ROWS (rows, row) {
    struct kernel *k = kernel_of(row->body);
    struct pack *p = bound(k, row->at);
    struct cost dense = target_cost(&p->data[0].target), own;
    CHECK(binding_cost(k, &p->data[0], &own), row->body);
    CHECK_INT(own.macs, dense.macs, row->body);
    CHECK_INT(own.params, dense.params, row->body);
    CHECK_INT(own.activations, dense.activations, row->body);
    CHECK_INT(own.elementwise, 0, row->body);
    pack_free(p);
    kernel_free(k);
  }
}

// Nodes before the stride count at full size, those behind it at the small one.
static void counts_full_sizes(void **state) {
  static const struct {
    const char *body;
    int64_t macs, elementwise;
  } rows[] = {
      {"b = relu a\nc = subsample b over=H,W by=S\nout c", 0, 4 * 8 * 8},
      {"b = subsample a over=H,W by=S\nc = relu b\nout c", 0, 4 * 4 * 4},
      {"b = unfold a over=H k=K stride=S\nc = fc b to=C\nd = subsample c over=W by=S\nout d",
       4 * 4 * 3 * 4 * 8, 0},
  };
  CHECK_ROWS (rows, row) {
    struct kernel *k = kernel_of(row->body);
    struct pack *p = bound(k, "C=4,H=8,W=8,stride=2");
    struct cost own;
    CHECK(binding_cost(k, &p->data[0], &own), row->body);
    CHECK_INT(own.macs, row->macs, row->body);
    CHECK_INT(own.elementwise, row->elementwise, row->body);
    pack_free(p);
    kernel_free(k);
  }
}

static void needs_multiples_of_the_stride(void **state) {
  static const struct {
    const char *at, *expected;
  } rows[] = {
      {"C=4,H=7,W=8,stride=2",
       "target 't0': kernel 't' takes the stride of 2 itself, so H and W must be multiples of it, "
       "not 7x8"},
      {"C=4,H=8,W=8,stride=3",
       "target 't0': kernel 't' takes the stride of 3 itself, so H and W must be multiples of it, "
       "not 8x8"},
      {"C=4,H=7,W=5", NULL},
      {"C=4,H=9,W=6,stride=3", NULL},
  };
  struct kernel *k = kernel_of(CONVOLUTION);
  CHECK_ROWS (rows, row) {
    struct binding b;
    struct pack *p = pack_new(k);
    CHECK_INT(binding_parse_at(&ctx, row->at, strlen(row->at), &b), CANVAS_OK, ctx.message);
    CHECK_INT(pack_bind(&ctx, p, &b), row->expected ? CANVAS_BAD_INPUT : CANVAS_OK, row->at);
    if (row->expected) CHECK_TEXT(ctx.message, row->expected, row->at);
    pack_free(p);
  }
  kernel_free(k);
}

// The solver fills a budget; where no image fits the stride, there is no solution.
static void solves(void **state) {
  static const struct {
    const char *targets;
    canvas_status expected;
  } rows[] = {{"a 64 128 56 56 3 2 1\nb 128 128 28 28 3 1 1", CANVAS_OK},
              {"a 64 128 57 57 3 2 1\nb 128 128 28 28 3 1 1", CANVAS_NONE}};
  struct kernel *k =
      kernel_of("b = fc a to=x0\nc = unfold b over=H,W k=K stride=S\nd = fc c to=C\nout d");
  CHECK_ROWS (rows, row) {
    struct targets t;
    struct budget budget;
    struct solve_options options = {0};
    struct pack *p;
    CHECK_INT(targets_parse(&ctx, row->targets, strlen(row->targets), &t), CANVAS_OK, ctx.message);
    CHECK_INT(budget_parse(&ctx, "macs=0.5x", 9, &budget), CANVAS_OK, ctx.message);
    CHECK_INT(budget_solve(&ctx, k, &t, &budget, &options, &p), row->expected, row->targets);
    if (row->expected == CANVAS_OK) {
      struct cost cost;
      int64_t half = (target_cost(&t.data[0]).macs + target_cost(&t.data[1]).macs) / 2;
      CHECK(pack_cost(p, &cost) && cost.macs <= half && cost.macs > half * 9 / 10, row->targets);
      CHECK_INT(p->data[0].sizes.value[SIZE_S], 2, row->targets);
      CHECK_INT(p->data[0].sizes.value[SIZE_H], 56, row->targets);
      CHECK_INT(p->data[1].sizes.value[SIZE_S], 1, row->targets);
      pack_free(p);
    }
    targets_free(&t);
  }
  kernel_free(k);
}

// A row of a 3x3 window that always lies on padding cannot matter.
static void knows_idle_weights(void **state) {
  static const struct {
    const char *body, *at;
    int expected;  // the first idle weight, -1: none
  } rows[] = {
      {CONVOLUTION, "C=8,H=8,W=8,stride=2", -1},
      {CONVOLUTION, "C=8,H=4,W=4,stride=2", -1},
      {CONVOLUTION, "C=8,H=2,W=2,stride=2", 0},
      {CONVOLUTION, "C=8,H=4,W=4,stride=4", 0},  // one window: its first row is padding
      {CONVOLUTION, "C=8,H=16,W=16,stride=8", -1},
      {"b = unfold a over=H,W k=3 stride=S dilation=4\nc = fc b to=C\nout c",
       "C=8,H=8,W=8,stride=2", -1},
      {"b = unfold a over=H,W k=3 dilation=5\nc = fc b to=C\nout c", "C=8,H=5,W=5", 0},
      {"b = subsample a over=H,W by=S\nc = fc b to=C\nout c", "C=8,H=4,W=4,stride=4", -1},
      // on a grid of one pixel a window has no neighbours
      {"b = subsample a over=H,W by=S\nc = unfold b over=H,W k=3\nd = fc c to=C\nout d",
       "C=8,H=4,W=4,stride=4", 0},
  };
  CHECK_ROWS (rows, row) {
    struct kernel *k = kernel_of(row->body);
    struct pack *p = bound(k, row->at);
    CHECK_INT(idle_weight(k, &p->data[0].sizes), row->expected, row->at);
    pack_free(p);
    kernel_free(k);
  }
}

static void gains_at_strides(void **state) {
  struct kernel *k = kernel_of(
      "b = softmax a over=C,H,W\nc = unfold b over=H,W k=K stride=S\n"
      "d = fc c to=C\nout d");
  struct pack *p = bound(k, "C=16,H=16,W=16,stride=2");
  double gains[KERNEL_NODES_MAX];
  CHECK_INT(gain_estimate(&ctx, k, p, gains), CANVAS_OK, ctx.message);
  CHECK(gains[0] > 50, "a weight behind a softmax is enlarged");
  pack_free(p);
  kernel_free(k);
}

static void reaches(void **state) {
  static const struct {
    const char *body, *expected;
  } rows[] = {
      {CONVOLUTION, NULL},
      {"b = unfold a over=H,W k=15 dilation=15\nc = fc b to=C\nout c", NULL},
      {"b = subsample a over=H,W by=S\nc = fc b to=C\nout c", "it sees no neighbours along H"},
      {"b = unfold a over=H k=K stride=S\nc = fc b to=C\nd = subsample c over=W by=S\nout d",
       "it sees no neighbours along W"},
  };
  CHECK_ROWS (rows, row) {
    struct kernel *k = kernel_of(row->body);
    CHECK_TEXT(kernel_reach(k), row->expected, row->body);
    kernel_free(k);
  }
}

// -- a kernel that takes the stride, from one that does not --

static void takes_the_stride(void **state) {
  static const struct {
    const char *body, *window, *output;  // a message where it begins with "kernel"
  } rows[] = {
      {"b = unfold a over=H,W k=K\nc = fc b to=C\nout c", CONVOLUTION,
       "b = unfold a over=H,W k=K\nc = fc b to=C\ns1 = subsample c over=H,W by=S\nout s1"},
      // nothing sees a neighbour: of the input
      {"b = fc a to=C\nc = relu b\nout c",
       "s1 = subsample a over=H,W by=S\nb = fc s1 to=C\nc = relu b\nout c",
       "b = fc a to=C\nc = relu b\ns1 = subsample c over=H,W by=S\nout s1"},
      {"out a", "s1 = subsample a over=H,W by=S\nout s1", "s1 = subsample a over=H,W by=S\nout s1"},
      // along W alone nothing does
      {"b = unfold a over=H k=K\nc = fc b to=C\nout c",
       "s1 = subsample a over=W by=S\nb = unfold s1 over=H k=K stride=S\nc = fc b to=C\nout c",
       "b = unfold a over=H k=K\nc = fc b to=C\ns1 = subsample c over=H,W by=S\nout s1"},
      // the path without a window is subsampled where the paths meet
      {"b = unfold a over=H,W k=K\nc = fc b to=C\nd = add a c\nout d",
       "b = unfold a over=H,W k=K stride=S\nc = fc b to=C\ns1 = subsample a over=H,W by=S\n"
       "d = add s1 c\nout d",
       NULL},
      {"b = unfold a over=H,W k=K\nc = fc b to=C\nd = add c a\ne = mul d a\nout e",
       "b = unfold a over=H,W k=K stride=S\nc = fc b to=C\ns1 = subsample a over=H,W by=S\n"
       "d = add c s1\ne = mul d s1\nout e",
       NULL},
      // the second window of a path is as it was
      {"b = unfold a over=H k=K\nc = fc b to=x0\nd = unfold c over=W k=K\ne = fc d to=C\n"
       "f = unfold e over=H,W k=3 dilation=2\ng = fc f to=C\nout g",
       "b = unfold a over=H k=K stride=S\nc = fc b to=x0\nd = unfold c over=W k=K stride=S\n"
       "e = fc d to=C\nf = unfold e over=H,W k=3 dilation=2\ng = fc f to=C\nout g",
       NULL},
      // one axis of two: an unfold along each
      {"b = unfold a over=H k=K\nc = fc b to=C\nd = unfold c over=H,W k=K\ne = fc d to=C\nout e",
       "b = unfold a over=H k=K stride=S\nc = fc b to=C\ns1 = unfold c over=H k=K\n"
       "d = unfold s1 over=W k=K stride=S\ne = fc d to=C\nout e",
       NULL},
      // before the stride the whole image counts, behind it the small one
      {"b = fold a mean over=H,W\nc = mul b a\nd = softmax c over=H,W scale=H*W\nout d",
       "b = fold a mean over=H,W\nc = mul b a\nd = softmax c over=H,W scale=H*W\n"
       "s1 = subsample d over=H,W by=S\nout s1",
       NULL},
      {"b = unfold a over=H,W k=K\nc = fc b to=C\nd = softmax c over=H,W scale=H*W\nout d",
       "b = unfold a over=H,W k=K stride=S\nc = fc b to=C\n"
       "d = softmax c over=H,W scale=H*W/S/S\nout d",
       "b = unfold a over=H,W k=K\nc = fc b to=C\nd = softmax c over=H,W scale=H*W\n"
       "s1 = subsample d over=H,W by=S\nout s1"},
      {"b = shift a over=H,W by=1\nc = fc b to=C\nout c",
       "b = shift a over=H,W by=1\ns1 = subsample b over=H,W by=S\nc = fc s1 to=C\nout c", NULL},
      // weights that a path generates at each pixel, of those pixels alone that are left
      {"b = fc a to=x0\nc = relu b\nd = fc c to=G*KH*KW\ne = group d by=G\n"
       "f = unfold a over=H,W k=K\ng = group f by=G\nh = mul e g\ni = fold h mean over=KH,KW\n"
       "out i",
       "s1 = subsample a over=H,W by=S\nb = fc s1 to=x0\nc = relu b\nd = fc c to=G*KH*KW\n"
       "e = group d by=G\nf = unfold a over=H,W k=K stride=S\ng = group f by=G\nh = mul e g\n"
       "i = fold h mean over=KH,KW\nout i",
       NULL},
      // not before what sees more, nor where the whole image has another reader
      {"b = fc a to=C\nc = softmax b over=W scale=W\nd = relu c\ne = unfold a over=H,W k=K\n"
       "f = fc e to=C\ng = add d f\nout g",
       "s1 = subsample a over=H by=S\nb = fc s1 to=C\nc = softmax b over=W scale=W\n"
       "s2 = subsample c over=W by=S\nd = relu s2\ne = unfold a over=H,W k=K stride=S\n"
       "f = fc e to=C\ng = add d f\nout g",
       NULL},
      {"b = fc a to=C\nc = unfold b over=H,W k=K\nd = fc c to=C\ne = add b d\nout e",
       "b = fc a to=C\nc = unfold b over=H,W k=K stride=S\nd = fc c to=C\n"
       "s1 = subsample b over=H,W by=S\ne = add s1 d\nout e",
       NULL},
      {"b = fc a to=C\nc = relu b\nd = unfold a over=H,W k=K\ne = fc d to=C\nf = add b e\n"
       "g = mul c f\nout g",
       "s1 = subsample a over=H,W by=S\nb = fc s1 to=C\nc = relu b\n"
       "d = unfold a over=H,W k=K stride=S\ne = fc d to=C\nf = add b e\ng = mul c f\nout g",
       NULL},
      // both inputs of a binary node
      {"b = shift a over=H,W by=1\nc = relu a\nd = mul b c\ne = unfold a over=H,W k=K\n"
       "f = fc e to=C\ng = add d f\nout g",
       "b = shift a over=H,W by=1\ns1 = subsample a over=H,W by=S\nc = relu s1\n"
       "s2 = subsample b over=H,W by=S\nd = mul s2 c\ne = unfold a over=H,W k=K stride=S\n"
       "f = fc e to=C\ng = add d f\nout g",
       NULL},
      // [W, C] onto [C, H, W]: what a pixel meets depends on where it is
      {"b = pool a by=2\nc = repeat b by=2\nd = fc c to=C\nout d",
       "kernel 't' cannot take the stride in a window: node 'b', a pool, would be another on a "
       "smaller "
       "image",
       NULL},
      {"b = fold a mean over=H\nc = fc b to=H\nd = mul c a\nout d",
       "kernel 't' cannot take the stride in a window: the sizes of node 'c' hold H or W, before "
       "the stride or behind it",
       NULL},
      {"b = fold a mean over=H\nc = softmax b over=W scale=H*W\nd = mul c a\nout d",
       "kernel 't' cannot take the stride in a window: the scale of node 'c' holds H or W, over "
       "which it is not a softmax",
       NULL},
      {"b = softmax a over=C scale=H\nout b",
       "kernel 't' cannot take the stride in a window: the scale of node 'b' holds H or W, over "
       "which it is not a softmax",
       NULL},
      {CONVOLUTION, "kernel 't' takes the stride already", "kernel 't' takes the stride already"},
      // names that are taken
      {"s1 = relu a\ns2 = fc s1 to=C\nout s2",
       "s3 = subsample a over=H,W by=S\ns1 = relu s3\ns2 = fc s1 to=C\nout s2", NULL},
  };
  CHECK_ROWS (rows, row) {
    struct kernel *k = kernel_of(row->body);
    const char *expected[] = {row->body, row->window, row->output};
    for (int mode = STRIDE_POOL; mode <= STRIDE_OUTPUT; mode++) {
      struct kernel *made = NULL;
      if (!expected[mode]) continue;
      canvas_status status = kernel_with_stride(&ctx, k, (enum stride_mode)mode, &made);
      if (!strncmp(expected[mode], "kernel", 6)) {
        CHECK_INT(status, CANVAS_BAD_INPUT, row->body);
        CHECK_TEXT(ctx.message, expected[mode], row->body);
        continue;
      }
      CHECK_INT(status, CANVAS_OK, ctx.message);
      char *body = body_of(made);
      CHECK_TEXT(body, expected[mode], row->body);
      mem_free(body);
      kernel_free(made);
    }
    kernel_free(k);
  }
}

static void says_that_there_is_no_room(void **state) {
  struct kernel *k = kernel_new("long"), *made;
  struct node n = {.op = PRIMITIVE_RELU, .in = {0, -1}, .attrs.dim = dim_one()};
  for (; k->count < KERNEL_NODES_MAX - 1; n.in[0]++)
    CHECK_INT(kernel_add(&ctx, k, &n), CANVAS_OK, ctx.message);
  n.op = PRIMITIVE_OUTPUT;
  CHECK_INT(kernel_add(&ctx, k, &n), CANVAS_OK, ctx.message);
  CHECK_INT(kernel_with_stride(&ctx, k, STRIDE_WINDOW, &made), CANVAS_BAD_INPUT, "64 nodes");
  CHECK_TEXT(ctx.message, "kernel 'long' has more than 64 nodes", "64 nodes");
  kernel_free(k);
}

static void reads_modes(void **state) {
  enum stride_mode mode;
  CHECK_INT(stride_mode_parse(&ctx, "window", &mode), CANVAS_OK, "window");
  CHECK_INT(mode, STRIDE_WINDOW, "window");
  CHECK_INT(stride_mode_parse(&ctx, "windows", &mode), CANVAS_BAD_INPUT, "windows");
  CHECK_TEXT(ctx.message, "a stride is taken by pool, window or output, not 'windows'", "windows");
}

// At every stride of 1 a kernel computes what it computed before.
static void is_the_same_without_a_stride(void **state) {
  static const char *const bodies[] = {
      "b = unfold a over=H,W k=K\nc = fc b to=C\nd = add a c\nout d",
      "b = fc a to=C\nc = relu b\nout c",
      "b = unfold a over=H k=K\nc = fc b to=C\nd = unfold c over=H,W k=3\ne = fc d to=C\nout e",
      "b = softmax a over=H,W scale=H*W\nc = unfold b over=H,W k=3\nd = fc c to=C\nout d",
  };
  CHECK_ROWS (bodies, body) {
    struct run plain = run_of(*body, "C=4,H=5,W=3");
    for (int mode = STRIDE_WINDOW; mode <= STRIDE_OUTPUT; mode++) {
      struct kernel *k = kernel_of(*body), *made;
      CHECK_INT(kernel_with_stride(&ctx, k, (enum stride_mode)mode, &made), CANVAS_OK, *body);
      char *text = body_of(made);
      struct run r = run_of(text, "C=4,H=5,W=3");
      for (int i = 0; i < r.count; i++) CHECK_NEAR(r.y[i], plain.y[i], 1e-12, text);
      run_free(&r);
      mem_free(text);
      kernel_free(k);
      kernel_free(made);
    }
    run_free(&plain);
  }
}

// The output at full size holds the pixels that `output` keeps, and of a kernel in which no pixel
// sees another `window` keeps the same.
static void keeps_each_pixel_of_the_stride(void **state) {
  static const struct {
    const char *body;
    bool window;
  } rows[] = {
      {"b = unfold a over=H,W k=K\nc = fc b to=C\nout c", true},
      {"b = fc a to=C\nc = relu b\nd = mul c a\nout d", true},
      {"b = fold a mean over=C\nc = mul b a\nd = group c by=2\ne = fc d to=C\nout e", true},
      {"b = fold a mean over=H\nc = mul b a\nout c", true},
      {"b = fold a max over=H,W\nc = mul b a\nout c", true},
      {"b = unfold a over=H k=K\nc = fc b to=C\nd = relu c\ne = add d a\nout e", true},
      {"b = shift a over=H,W by=1\nc = fc b to=C\nd = add c a\nout d", true},
      {"b = shift a over=H by=1\nc = unfold b over=H,W k=3\nd = fc c to=C\nout d", true},
      {"b = unfold a over=H k=3\nc = fc b to=C\nd = unfold c over=H k=3\ne = fc d to=C\nout e",
       false},
  };
  CHECK_ROWS (rows, row) {
    struct run full = run_of(row->body, "C=4,H=8,W=6");
    for (int mode = row->window ? STRIDE_WINDOW : STRIDE_OUTPUT; mode <= STRIDE_OUTPUT; mode++) {
      struct kernel *k = kernel_of(row->body), *made;
      CHECK_INT(kernel_with_stride(&ctx, k, (enum stride_mode)mode, &made), CANVAS_OK, row->body);
      char *text = body_of(made);
      struct run r = run_of(text, "C=4,H=8,W=6,stride=2");
      CHECK_INT(r.count, 4 * 4 * 3, text);
      for (int i = 0; i < r.count; i++) {
        int at = (i / 12 * 8 + i / 3 % 4 * 2) * 6 + i % 3 * 2;
        CHECK_NEAR(r.y[i], full.y[at], 1e-12, text);
      }
      run_free(&r);
      mem_free(text);
      kernel_free(k);
      kernel_free(made);
    }
    run_free(&full);
  }
}

// Whether a node of a kernel could be computed at the small size by a later subsample of it alone.
static bool is_late(const struct kernel *k, int node) {
  const struct node *n = &k->nodes[node];
  unsigned over = n->attrs.over;
  if (n->op != PRIMITIVE_SUBSAMPLE || n->in[0] == 0) return false;
  const struct node *made = &k->nodes[n->in[0]];
  for (int i = 1; i < k->count; i++)
    for (int j = 0; j < node_row(&k->nodes[i])->arity; j++)
      if (k->nodes[i].in[j] == n->in[0] && i != node) return false;
  return node_row(made)->arity == 1 && !(made->attrs.over & over);
}

// Drawn kernels whose result is subsampled: the same values when that is done early, and no node
// computes for a subsample alone.
static void early_subsamples_keep_values(void **state) {
  enum { DRAWS = SANITIZED ? 60 : 300 };
  struct targets targets;
  struct sample_options options;
  struct sampler *s;
  int earlier = 0, compared = 0;
  CHECK_INT(targets_parse(&ctx, "8,6,4", 5, &targets), CANVAS_OK, ctx.message);
  CHECK_INT(sample_options_parse(&ctx, "require=none primitives=4..10", 29, &options), CANVAS_OK,
            ctx.message);
  CHECK_INT(sampler_new(&ctx, &targets, &options, 1, &s), CANVAS_OK, ctx.message);
  for (uint64_t i = 0; i < DRAWS; i++) {
    struct kernel *k, *made[2], *early;
    struct binding small;
    struct sizes like = {.dilation = 1};
    int64_t g;
    if (sampler_draw(&ctx, s, i, &k, &g) != CANVAS_OK) continue;
    like.value[SIZE_G] = g;
    like.value[SIZE_KH] = like.value[SIZE_KW] = 3;
    like.value[SIZE_S] = 2;
    for (enum stride_mode mode = STRIDE_WINDOW; mode <= STRIDE_OUTPUT; mode++)
      if (kernel_with_stride(&ctx, k, mode, &made[mode - STRIDE_WINDOW]) != CANVAS_OK)
        made[mode - STRIDE_WINDOW] = NULL;
    for (int j = 1; made[0] && j < made[0]->count; j++) CHECK(!is_late(made[0], j), k->name);
    if (made[1]) {
      early = kernel_subsample_early(made[1]);
      CHECK_INT(kernel_verify(&ctx, early), CANVAS_OK, ctx.message);
      earlier += !hash_equal(kernel_hash(early, NULL), kernel_hash(made[1], NULL));
      CHECK(gain_small_binding(&ctx, made[1], &like, &small), ctx.message);
      struct run plain = run_at(made[1], &small), r = run_at(early, &small);
      CHECK_INT(r.count, plain.count, k->name);
      for (int j = 0; j < r.count; j++)
        if (!isnan(plain.y[j]))
          CHECK_NEAR(r.y[j], plain.y[j], 1e-9 + 1e-12 * fabs(plain.y[j]), k->name);
      run_free(&plain);
      run_free(&r);
      kernel_free(early);
      compared++;
    }
    kernel_free(made[0]);
    kernel_free(made[1]);
    kernel_free(k);
  }
  CHECK(compared > DRAWS / 2 && earlier > compared / 4, "kernels");
  sampler_free(s);
  targets_free(&targets);
}

// -- rewrites and children --

static void simplifies_within_a_stride(void **state) {
  static const struct {
    const char *body, *expected;
  } rows[] = {
      {"b = unfold a over=H k=K stride=S\nc = unfold b over=W k=K stride=S\nd = fc c to=C\nout d",
       "unfold a over=H,W k=K stride=S"},
      {"b = unfold a over=H k=K dilation=2\nc = unfold b over=W k=K dilation=2\nd = fc c to=C\nout "
       "d",
       "over=H,W k=K dilation=2"},
      {"b = subsample a over=H by=S\nc = subsample b over=W by=S\nd = relu c\nout d",
       "subsample a over=H,W by=S"},
      // these stay as they are
      {"b = unfold a over=H k=K\nc = unfold b over=W k=K stride=S\nd = subsample c over=H by=S\n"
       "e = fc d to=C\nout e",
       NULL},
      {"b = unfold a over=H k=K\nc = unfold b over=W k=K dilation=2\nd = fc c to=C\nout d", NULL},
      {"b = shift a over=H,W by=1\nc = subsample b over=H,W by=S\ne = fc c to=C\n"
       "d = shift e over=H,W by=-1\nout d",
       NULL},
      {"b = unfold a over=H,W k=1 stride=S\nc = fc b to=C\nout c", NULL},
      {"b = unfold a over=H,W k=1 stride=S\nc = relu b\nout c", NULL},
      {"b = unfold a over=H,W k=3 stride=S\nc = unfold a over=H,W k=3 stride=S dilation=2\n"
       "d = fc b to=C\ne = fc c to=C\nf = add d e\nout f",
       NULL},
  };
  CHECK_ROWS (rows, row) {
    struct kernel *k = kernel_of(row->body), *simple = kernel_simplify(k);
    char *body = body_of(simple);
    if (row->expected)
      CHECK(strstr(body, row->expected), body);
    else
      CHECK_TEXT(body, row->body, row->body);
    CHECK(!row->expected || simple->count == k->count - 1, body);
    mem_free(body);
    kernel_free(k);
    kernel_free(simple);
  }
}

// An offer of a family has no stride and no dilation; the factor of a softmax is the offer's.
static void offers_leave_strides_alone(void **state) {
  static const struct {
    enum primitive op;
    bool keeps;
  } rows[] = {{PRIMITIVE_UNFOLD, true}, {PRIMITIVE_SOFTMAX, false}};
  CHECK_ROWS (rows, row) {
    struct dim s = dim_size(SIZE_S), w = dim_size(SIZE_W);
    struct node n = {.op = row->op, .attrs = {.dim = s, .over = 1 << ROLE_H, .dilation = 2}};
    struct attrs offered = {.dim = w, .over = 1 << ROLE_W, .amount = 3};
    draft_take(&n, &offered);
    CHECK_INT(n.attrs.over, 1 << ROLE_W, "an offer");
    CHECK_INT(n.attrs.amount, 3, "an offer");
    CHECK_INT(n.attrs.dilation, 2, "an offer");
    CHECK(dim_equal(&n.attrs.dim, row->keeps ? &s : &w), "an offer");
  }
}

// Children of kernels with strides and dilations: legal at the layers, with what they had.
static void children_keep_strides(void **state) {
  static const char *const bodies[] = {
      "b = fc a to=x0\nc = relu b\nd = unfold c over=H,W k=K stride=S dilation=2\ne = fc d to=C\n"
      "out e",
      "b = unfold a over=H,W k=K stride=S\nc = fc b to=C\nd = relu c\n"
      "e = subsample a over=H,W by=S\nf = add d e\ng = fc f to=C\nout g",
  };
  static const char text[] = "a 64 128 56 56 3 2 1\nb 128 128 28 28 3 1 1";
  struct targets targets;
  struct sample_options options;
  struct sampler *s;
  CHECK_INT(targets_parse(&ctx, text, strlen(text), &targets), CANVAS_OK, ctx.message);
  CHECK_INT(sample_options_parse(&ctx, "", 0, &options), CANVAS_OK, ctx.message);
  CHECK_INT(sampler_new(&ctx, &targets, &options, 1, &s), CANVAS_OK, ctx.message);
  CHECK_ROWS (bodies, body) {
    int found = 0, strides = 0, dilations = 0, subsamples = 0;
    struct parent parents[1] = {{.kernel = kernel_of(*body), .g = 2}};
    for (uint64_t i = 0; i < 60; i++) {
      struct child c;
      struct budget budget;
      struct solve_options how = {.g = 2};
      struct pack *p;
      if (kernel_mutate(&ctx, s, i, parents, 1, &c) != CANVAS_OK) continue;
      char *child = body_of(c.kernel);
      found++;
      CHECK_INT(kernel_verify(&ctx, c.kernel), CANVAS_OK, child);
      for (int j = 1; j < c.kernel->count; j++) {
        const struct node *n = &c.kernel->nodes[j];
        strides += n->op == PRIMITIVE_UNFOLD && !dim_is_one(&n->attrs.dim);
        dilations += n->attrs.dilation == 2;
        subsamples += n->op == PRIMITIVE_SUBSAMPLE;
        CHECK(n->attrs.dilation == 0 || n->attrs.dilation == 2, child);
      }
      how.g = c.g;
      CHECK_INT(budget_parse(&ctx, "macs=none,params=none", 21, &budget), CANVAS_OK, ctx.message);
      CHECK_INT(budget_solve(&ctx, c.kernel, &targets, &budget, &how, &p), CANVAS_OK, child);
      pack_free(p);
      mem_free(child);
      kernel_free(c.kernel);
    }
    CHECK(found > 20, *body);
    CHECK(strides > found / 2, *body);
    CHECK(strstr(*body, "dilation") ? dilations > found / 2 : subsamples > found / 2, *body);
    kernel_free((struct kernel *)parents[0].kernel);
  }
  sampler_free(s);
  targets_free(&targets);
}

CHECK_MAIN(cmocka_unit_test(prints_what_it_parsed), cmocka_unit_test(leaves_out_a_dilation_of_one),
           cmocka_unit_test(hashes_by_stride_and_dilation), cmocka_unit_test(rejects),
           cmocka_unit_test(is_the_convolution), cmocka_unit_test(averages_groups),
           cmocka_unit_test(costs_what_the_convolution_costs), cmocka_unit_test(counts_full_sizes),
           cmocka_unit_test(needs_multiples_of_the_stride), cmocka_unit_test(solves),
           cmocka_unit_test(knows_idle_weights), cmocka_unit_test(gains_at_strides),
           cmocka_unit_test(reaches), cmocka_unit_test(takes_the_stride),
           cmocka_unit_test(says_that_there_is_no_room), cmocka_unit_test(reads_modes),
           cmocka_unit_test(is_the_same_without_a_stride),
           cmocka_unit_test(keeps_each_pixel_of_the_stride),
           cmocka_unit_test(early_subsamples_keep_values),
           cmocka_unit_test(simplifies_within_a_stride),
           cmocka_unit_test(offers_leave_strides_alone), cmocka_unit_test(children_keep_strides))
