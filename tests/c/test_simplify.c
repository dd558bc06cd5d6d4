// Simplification of kernels: what each rewrite makes, and that it computes the same.
#include "check.h"

#include <stdio.h>
#include <stdlib.h>

#include "evolve/draft.h"
#include "kernel/kernel_simplify.h"
#include "lower/lower.h"
#include "program/interpret.h"
#include "sample/sampler.h"
#include "sanitized.h"

static canvas_context ctx;

static struct kernel *kernel_of_body(const char *body) {
  char text[2048];
  struct lexer lx;
  struct kernel *k;
  snprintf(text, sizeof text, "canvas 1\nkernel t\na = input\n%s\n", body);
  CHECK_INT(lexer_open(&lx, &ctx, text, strlen(text)), CANVAS_OK, text);
  CHECK_INT(kernel_parse(&lx, &k), CANVAS_OK, ctx.message);
  CHECK_INT(kernel_verify(&ctx, k), CANVAS_OK, body);
  return k;
}

static char *text_of(const struct kernel *k) {
  struct buf out = {0};
  kernel_print(k, &out);
  return buf_take(&out);
}

// -- values --

// A target with all x the same, so that kernels with other numbering meet.
struct place {
  const char *sizes;
  int x;
  bool norm;  // of inner weights: biases behind them
};

static bool bind_at(const struct kernel *k, struct place at, struct pack **pack) {
  char text[256];
  struct binding b;
  int length = snprintf(text, sizeof text, "%s", at.sizes);
  for (int x = 0; x < VARIABLES; x++)
    if (kernel_variables(k) >> x & 1)
      length += snprintf(text + length, sizeof text - (size_t)length, ",x%d=%d", x, at.x);
  if (kernel_uses(k, SIZE_G)) snprintf(text + length, sizeof text - (size_t)length, ",G=2");
  CHECK_INT(binding_parse_at(&ctx, text, strlen(text), &b), CANVAS_OK, ctx.message);
  *pack = pack_new(k);
  if (pack_bind(&ctx, *pack, &b) == CANVAS_OK) return true;
  pack_free(*pack);
  return false;
}

// Weights are filled by the name of their node, so that the one that stays has the same ones.
static uint64_t weight_seed(const struct kernel *k, int weight) {
  uint64_t seed = 7;
  for (int i = 0; i < k->count; i++)
    if (node_row(&k->nodes[i])->facts & FACT_WEIGHTS && weight-- == 0)
      for (const char *c = k->nodes[i].name; *c; c++) seed = seed * 31 + (unsigned char)*c;
  return seed;
}

static void fill(double *out, int64_t count, uint64_t seed) {
  struct random r;
  random_open(&r, seed, RANDOM_TEST, 0);
  for (int64_t i = 0; i < count; i++) out[i] = random_normal(&r);
}

// The whole output; NULL where the kernel cannot be bound there.
static double *values(const struct kernel *k, struct place at, int64_t *count) {
  struct pack *pack;
  struct program *p;
  struct interpreter *in;
  double *inputs[2 * KERNEL_NODES_MAX] = {NULL};
  if (!bind_at(k, at, &pack)) return NULL;
  if (at.norm && kernel_has_inner_weights(k)) pack->data[0].norm = NORM_BATCH;
  CHECK_INT(lower_binding(&ctx, k, &pack->data[0], 1, &p), CANVAS_OK, ctx.message);
  for (int i = 0; i < p->inputs.count; i++) {
    int64_t n = program_elements(p, p->inputs.data[i]);
    inputs[i] = mem_alloc((size_t)n * sizeof(double));
    const char *name = p->tensors.data[p->inputs.data[i]].name;
    fill(inputs[i], n, i ? weight_seed(k, atoi(name + 1)) + (*name == 'b') : 1);
  }
  *count = program_elements(p, p->outputs.data[0]);
  double *y = mem_alloc((size_t)*count * sizeof(double));
  CHECK_INT(interpreter_new(&ctx, p, (const double *const *)inputs, NULL, &in), CANVAS_OK,
            ctx.message);
  CHECK_INT(interpreter_elements(in, p->outputs.data[0], *count, NULL, y), CANVAS_OK, ctx.message);
  interpreter_free(in);
  program_free(p);
  pack_free(pack);
  for (int i = 0; i < 2 * KERNEL_NODES_MAX; i++) free(inputs[i]);
  return y;
}

// Whether a weight of the simplified kernel is inner, and may have a norm, where it was before.
static bool same_norms(const struct kernel *a, const struct kernel *b) {
  for (int i = 0; i < b->count; i++)
    for (int j = 0; j < a->count; j++)
      if (node_row(&b->nodes[i])->facts & FACT_WEIGHTS &&
          !strcmp(a->nodes[j].name, b->nodes[i].name) && node_is_inner(a, j) != node_is_inner(b, i))
        return false;
  return true;
}

// Whether both compute the same at this place; *met counts the places where both can be bound.
static bool same_values(const struct kernel *a, const struct kernel *b, struct place at, int *met) {
  int64_t count, other;
  double *x = at.norm && !same_norms(a, b) ? NULL : values(a, at, &count);
  if (!x) return true;
  double *y = values(b, at, &other), scale = 0;
  bool same = y && count == other;
  for (int64_t i = 0; same && i < count; i++) scale = fmax(scale, fabs(x[i]));
  for (int64_t i = 0; same && i < count; i++)
    same = fabs(x[i] - y[i]) <= 1e-9 * scale || (isnan(x[i]) && isnan(y[i])) || x[i] == y[i];
  free(x);
  free(y);
  ++*met;
  return same;
}

static const struct place places[] = {{"C=4,H=5,W=3,K=3", 4, false},
                                      {"C=8,H=4,W=6,K=5", 6, true},
                                      {"C=4,H=2,W=2,K=1", 2, false},
                                      {"Cin=4,Cout=8,H=6,W=4,K=3,stride=2", 4, false},
                                      {"C=4,H=3,W=4,K=3", 2, true}};

// -- each rewrite --

#define FC "b = fc a to=C\n"

static const struct {
  const char *body, *simple;  // NULL: as it is
} rows[] = {
    // a >= 0
    {FC "c = relu b\nd = relu c\nout d", FC "c = relu b\nout c"},
    {FC "c = sigmoid b\nd = relu c\nout d", FC "c = sigmoid b\nout c"},
    {FC "c = softmax b over=C\nd = abs c\nout d", FC "c = softmax b over=C\nout c"},
    {FC "c = sqr b\nd = shift c over=H by=1\ne = relu d\nout e",
     FC "c = sqr b\nd = shift c over=H by=1\nout d"},
    {FC "c = exp b\nd = fold c max over=H,W\ne = abs d\nf = mul e b\nout f",
     FC "c = exp b\nd = fold c max over=H,W\nf = mul d b\nout f"},
    {FC "c = abs b\nd = relu b\ne = mul c d\nf = relu e\nout f",
     FC "c = abs b\nd = relu b\ne = mul c d\nout e"},
    {FC "c = abs b\nd = neg c\ne = sqr b\nf = sub e d\ng = relu f\nout g",
     FC "c = abs b\ne = sqr b\nf = add e c\nout f"},
    {FC "c = sigmoid b\nd = max b c\ne = abs d\nout e", FC "c = sigmoid b\nd = max b c\nout d"},
    {FC "c = relu b\nd = tanh c\ne = relu d\nout e", FC "c = relu b\nd = tanh c\nout d"},
    {FC "c = tanh b\nd = relu c\nout d", NULL},
    {FC "c = relu b\nd = sin c\ne = relu d\nout e", NULL},
    {FC "c = relu b\nd = mul b c\ne = relu d\nout e", NULL},
    {FC "c = relu b\nd = min b c\ne = tanh d\nout e", FC "e = tanh b\nout e"},
    // signs
    {FC "c = neg b\nd = neg c\nout d", FC "out b"},
    {FC "c = neg b\nd = sqr c\nout d", FC "d = sqr b\nout d"},
    {FC "c = abs b\nd = sqrt c\nout d", FC "d = sqrt b\nout d"},
    {FC "c = neg b\nd = sin c\nout d", NULL},
    {FC "c = neg b\nd = sigmoid b\ne = neg d\nf = mul c e\nout f",
     FC "d = sigmoid b\nf = mul b d\nout f"},
    {FC "c = neg b\nd = add a c\nout d", FC "d = sub a b\nout d"},
    {FC "c = neg b\nd = add c a\nout d", FC "d = sub a b\nout d"},
    {FC "c = neg b\nd = sub a c\nout d", FC "d = add a b\nout d"},
    {FC "c = fold a mean over=H,W\nd = neg c\ne = add d b\nout e", NULL},
    {FC "c = fold a mean over=H,W\nd = neg b\ne = add c d\nout e",
     FC "c = fold a mean over=H,W\ne = sub c b\nout e"},
    {FC "c = sub a b\nd = neg c\nout d", FC "d = sub b a\nout d"},
    {FC "c = mul b b\nout c", FC "c = sqr b\nout c"},
    {FC "c = neg b\nd = max c b\nout d", FC "d = abs b\nout d"},
    {FC "c = neg b\nd = min c b\nout d", NULL},
    // order
    {FC "c = max b b\nd = min c c\nout d", FC "out b"},
    {FC "c = relu b\nd = max b c\nout d", FC "c = relu b\nout c"},
    {FC "c = relu b\nd = min b c\nout d", FC "out b"},
    {FC "c = abs b\nd = relu b\ne = max c d\nout e", FC "c = abs b\nout c"},
    {FC "c = max a b\nd = max a c\nout d", FC "c = max a b\nout c"},
    {FC "c = max a b\nd = min c a\ne = fc d to=C\nout e", "e = fc a to=C\nout e"},
    {FC "c = min a b\nd = min c a\nout d", FC "c = min a b\nout c"},
    {FC "c = exp b\nd = sigmoid a\ne = neg d\nf = max e c\nout f", FC "c = exp b\nout c"},
    {FC "c = fold a mean over=H\nd = max c b\ne = max c d\nout e",  // repeated along H
     FC "c = fold a mean over=H\nd = max c b\nout d"},
    {FC "c = fold a mean over=H\nd = max c b\ne = min c d\nout e", NULL},
    {FC "c = fold a mean over=H\nd = max c b\ne = min d b\nout e", FC "out b"},
    {FC "c = min b a\nd = max b c\nout d", FC "out b"},
    {FC "c = fold b max over=H,W\nd = exp c\ne = neg d\nf = abs b\ng = max e f\nout g",
     FC "f = abs b\nout f"},
    {FC "c = fold b max over=H,W\nd = exp c\ne = relu a\nf = neg e\ng = min d f\nout g",
     "e = relu a\nf = neg e\nout f"},
    {FC "c = fold b max over=H,W\nd = exp c\ne = neg d\nf = abs b\ng = min e f\nout g", NULL},
    // what cancels
    {FC "c = add a b\nd = sub c b\ne = tanh d\nout e", "e = tanh a\nout e"},
    {FC "c = sub a b\nd = add b c\ne = tanh d\nout e", "e = tanh a\nout e"},
    {FC "c = sub a b\nd = sub a c\ne = tanh d\nout e", FC "e = tanh b\nout e"},
    {FC "c = sub b a\nd = sub c b\nout d", "d = neg a\nout d"},
    {FC "c = add a b\nd = sub b c\nout d", NULL},
    // twice
    {FC "c = relu b\nd = relu b\ne = tanh d\nf = add c e\nout f",
     FC "c = relu b\ne = tanh c\nf = add c e\nout f"},
    {FC "c = mul a b\nd = mul b a\ne = sin d\nf = add c e\nout f",
     FC "c = mul a b\ne = sin c\nf = add c e\nout f"},
    {FC "c = sub a b\nd = sub b a\ne = mul c d\nout e", NULL},
    {FC "c = fc a to=C\nd = add b c\nout d", NULL},  // weights of their own
    {FC "c = shift b over=H by=1\nd = shift b over=H by=-1\ne = add c d\nout e", NULL},
    // shifts, windows, folds
    {FC "c = shift b over=H by=1\nd = shift c over=H by=-1\nout d", FC "out b"},
    {FC "c = shift b over=W by=1\nd = shift c over=W by=1\nout d",
     FC "d = shift b over=W by=2\nout d"},
    {FC "c = shift b over=W by=2 fill=zero\nd = shift c over=W by=1 fill=zero\nout d",
     FC "d = shift b over=W by=3 fill=zero\nout d"},
    {FC "c = shift b over=W by=1 fill=zero\nd = shift c over=W by=-1 fill=zero\nout d", NULL},
    {FC "c = shift b over=W by=1\nd = shift c over=W by=1 fill=zero\nout d", NULL},
    {FC "c = shift b over=W by=1 fill=zero\nd = shift c over=H by=1 fill=zero\nout d",
     FC "d = shift b over=H,W by=1 fill=zero\nout d"},
    {FC "c = shift b over=H by=-1\nd = shift c over=W by=1\nout d", NULL},
    {FC "c = shift b over=W by=1\nd = shift c over=H,W by=1\nout d", NULL},
    {"b = unfold a over=H k=K\nc = unfold b over=W k=K\nd = fc c to=C\nout d",
     "c = unfold a over=H,W k=K\nd = fc c to=C\nout d"},
    {"b = unfold a over=H k=K\nc = unfold b over=W k=K\nd = fold b mean over=KH\ne = fc c to=C\nf "
     "= "
     "add d e\nout f",
     NULL},  // the first is read again
    {FC "c = fold b mean over=H\nd = fold c mean over=W\ne = mul d b\nout e",
     FC "d = fold b mean over=H,W\ne = mul d b\nout e"},
    {FC "c = fold b mean over=H\nd = fold c max over=W\ne = mul d b\nout e", NULL},
    {FC "c = fold b max over=C\nd = fold c max over=W\ne = mul d b\nout e",
     NULL},  // not legal as one
    {FC "c = shift b over=H by=1\nd = fold c max over=H,W\ne = mul d b\nout e",
     FC "d = fold b max over=H,W\ne = mul d b\nout e"},
    {FC "c = shift b over=H by=1 fill=zero\nd = fold c max over=H\ne = mul d b\nout e", NULL},
    // in the order of axes
    {FC "c = fold b mean over=H\nd = fold c mean over=C\ne = mul d b\nout e",
     FC "d = fold b mean over=C\nc = fold d mean over=H\ne = mul c b\nout e"},
    {FC "c = fold b mean over=C\nd = fold c max over=H\ne = mul d b\nout e", NULL},
    {FC "c = shift b over=W by=1\nd = shift c over=H by=-1 fill=zero\nout d",
     FC "d = shift b over=H by=-1 fill=zero\nc = shift d over=W by=1\nout c"},
    {FC "c = shift b over=H,W by=1\nd = shift c over=H by=1\nout d",
     FC "d = shift b over=H by=1\nc = shift d over=H,W by=1\nout c"},
    {FC "c = shift b over=H,W by=1 fill=zero\nd = shift c over=H by=-1\nout d", NULL},
    {"b = unfold a over=W k=3\nc = unfold b over=H k=5\nd = fc c to=C\nout d",
     "c = unfold a over=H k=5\nb = unfold c over=W k=3\nd = fc b to=C\nout d"},
    // movement later
    {"b = shift a over=H by=1\nc = fc b to=C\nd = relu c\ne = fc d to=C\nout e",
     "c = fc a to=C\nd = relu c\ne = fc d to=C\nb = shift e over=H by=1\nout b"},
    {FC "c = shift b over=H by=1\nd = add b c\ne = relu d\nout e", NULL},
    {FC "c = shift b over=H by=1\nd = relu c\ne = add c d\nout e", NULL},
    {FC "c = shift b over=H by=1\nd = sigmoid c\nout d",
     FC "d = sigmoid b\nc = shift d over=H by=1\nout c"},
    {FC "c = shift b over=H by=1 fill=zero\nd = sigmoid c\nout d", NULL},
    {FC "c = shift b over=H by=1 fill=zero\nd = exp c\nout d", NULL},
    {FC "c = shift b over=H by=1 fill=zero\nd = sqrt c\nout d",
     FC "d = sqrt b\nc = shift d over=H by=1 fill=zero\nout c"},
    // an inner fc may have a norm with a bias, the last one has not
    {"b = shift a over=H by=1 fill=zero\nc = fc b to=C\nd = relu c\nout d", NULL},
    {"b = shift a over=H by=1 fill=zero\nc = fc b to=C\nout c",
     "c = fc a to=C\nb = shift c over=H by=1 fill=zero\nout b"},
    {FC "c = shift b over=H by=1\nd = softmax c over=H,W\nout d",
     FC "d = softmax b over=H,W\nc = shift d over=H by=1\nout c"},
    {FC "c = shift b over=H by=1 fill=zero\nd = softmax c over=C\nout d", NULL},
    {FC "c = shift b over=H,W by=1\nd = fold c mean over=H\ne = mul d a\nout e",
     FC "d = fold b mean over=H\nc = shift d over=W by=1\ne = mul c a\nout e"},
    {FC "c = shift b over=H by=1 fill=zero\nd = fold c max over=W\ne = mul d a\nout e",
     FC "d = fold b max over=W\nc = shift d over=H by=1 fill=zero\ne = mul c a\nout e"},
    {"b = shift a over=H by=1\nc = unfold b over=W k=K\nd = fc c to=C\nout d",
     "c = unfold a over=W k=K\nd = fc c to=C\nb = shift d over=H by=1\nout b"},
    {"b = shift a over=H by=1\nc = unfold b over=H k=K\nd = fc c to=C\nout d", NULL},
    {FC "c = shift a over=H by=1\nd = shift b over=H by=1\ne = max c d\nout e",
     FC "e = max a b\nd = shift e over=H by=1\nout d"},
    {FC "c = shift a over=H by=1\nd = shift b over=H by=-1\ne = max c d\nout e", NULL},
    {FC "c = fold a mean over=H,W\nd = shift b over=H by=1\ne = add c d\nout e",
     FC "c = fold a mean over=H,W\ne = add c b\nd = shift e over=H by=1\nout d"},
    {FC "c = fold a mean over=H,W\nd = shift b over=H by=1 fill=zero\ne = add c d\nout e", NULL},
    {FC "c = fold a mean over=H,W\nd = shift b over=H by=1 fill=zero\ne = mul c d\nout e",
     FC "c = fold a mean over=H,W\ne = mul c b\nd = shift e over=H by=1 fill=zero\nout d"},
    {FC "c = fold a mean over=H\nd = shift b over=H by=1\ne = add c d\nout e",
     FC "c = fold a mean over=H\ne = add c b\nd = shift e over=H by=1\nout d"},
    {FC "c = fold a mean over=H\nd = shift b over=W by=1\ne = add c d\nout e", NULL},
    {FC "c = fold a mean over=W\nd = shift c over=H by=1\ne = shift b over=H by=1\nf = mul d e\n"
        "out f",
     FC "c = fold a mean over=W\nf = mul c b\ne = shift f over=H by=1\nout e"},
    {"b = fc a to=G\nc = shift b over=W by=1 fill=zero\nd = shift a over=W by=1 fill=zero\n"
     "e = add c d\nf = tanh e\nout f",
     "b = fc a to=G\ne = add b a\nf = tanh e\nd = shift f over=W by=1 fill=zero\nout d"},
    {"b = unfold a over=W k=K\nc = fold b mean over=C\nd = fc c to=C\nout d",
     "c = fold a mean over=C\nb = unfold c over=W k=K\nd = fc b to=C\nout d"},
    {"b = unfold a over=W k=K\nc = fold b mean over=KW\nd = mul c a\nout d", NULL},
    {"b = unfold a over=W k=K\nc = relu b\nd = fc c to=C\nout d",
     "c = relu a\nb = unfold c over=W k=K\nd = fc b to=C\nout d"},
    {"b = unfold a over=W k=K\nc = exp b\nd = fc c to=C\nout d", NULL},
    {"b = unfold a over=H k=K\nc = group b by=G\nd = unfold c over=W k=K\ne = fc d to=C\nout e",
     "c = group a by=G\nd = unfold c over=H,W k=K\ne = fc d to=C\nout e"},
    {FC "c = group b by=G\nd = shift c over=H by=1\ne = relu d\nf = fc e to=C\nout f",
     FC "e = relu b\nc = group e by=G\nf = fc c to=C\nd = shift f over=H by=1\nout d"},
    {"b = group a by=G\nc = fold b mean over=H\nd = fc c to=C\ne = mul d a\nout e",
     "c = fold a mean over=H\nb = group c by=G\nd = fc b to=C\ne = mul d a\nout e"},
    {FC "c = group a by=G\nd = group b by=G\ne = max c d\nf = fc e to=C\nout f",
     FC "e = max a b\nd = group e by=G\nf = fc d to=C\nout f"},
    {FC "c = group a by=G\nd = sub c b\nout d", FC "d = sub a b\nout d"},
    {FC "c = group a by=G\nd = group b each\ne = mul c d\nf = fc e to=C\nout f",
     FC "e = mul a b\nd = group e each\nf = fc d to=C\nout f"},
    {"b = fc a to=G\nc = group a by=G\nd = mul b c\ne = fc d to=C\nout e", NULL},
    // axes
    {FC "c = group b by=G\nout c", FC "out b"},
    {FC "c = group b each\nd = relu c\nout d", FC "d = relu b\nout d"},
    {"b = group a each\nc = unfold b over=H,W k=K\nd = fc c to=C\nout d", NULL},
    {"b = unfold a over=H,W k=K\nc = group b each\nd = fc c to=C\nout d",
     "c = group a each\nb = unfold c over=H,W k=K\nd = fc b to=C\nout d"},
    {FC "c = group b by=1\nd = unfold c over=H k=3\ne = fc d to=C\nout e",
     FC "d = unfold b over=H k=3\ne = fc d to=C\nout e"},
    {FC "c = unfold b over=H,W k=1\nd = fc c to=C\nout d", FC "d = fc b to=C\nout d"},
    {FC "c = unfold b over=W k=1\nd = softmax c over=KW,H\nout d", NULL},
    {"b = fc a to=1\nc = fold b mean over=C\nd = mul c a\nout d",
     "b = fc a to=1\nd = mul b a\nout d"},
    {FC "c = group b by=G\nd = softmax c over=C\nout d", NULL},
    {FC "c = group b by=G\nd = softmax c over=H,W\nout d", FC "d = softmax b over=H,W\nout d"},
    // [C] meets the pixels of [G, C/G, H, W] in turn, and the channels of [C, H, W]
    {FC "c = group b by=G\nd = fold a mean over=H,W\ne = mul d c\nout e", NULL},
    // [G, H, W] meets channel by channel or group by group: the group decides
    {"b = fc a to=G\nc = group a by=G\nd = mul b c\nout d", NULL},
    {FC "c = group b by=G\nd = group a by=G\ne = add c d\nf = tanh c\ng = add f e\nout g",
     FC "e = add b a\nf = tanh b\ng = add f e\nout g"},
    // an fc along what it contracts anyway
    {"b = fc a to=x0 over=C\nc = relu b\nd = fc c to=C\nout d",
     "b = fc a to=x0\nc = relu b\nd = fc c to=C\nout d"},
    {"b = unfold a over=H,W k=3\nc = fc b to=C over=C,KH,KW\nout c",
     "b = unfold a over=H,W k=3\nc = fc b to=C\nout c"},
    {"b = unfold a over=H,W k=3\nc = fc b to=x0 over=C\nd = fc c to=C\nout d", NULL},
    // what holds of the paper's axes does not hold of others
    {"b = shift a over=C by=1\nc = fc b to=C\nout c", NULL},
    {"b = shift a over=H by=1\nc = fc b to=H over=H\nout c", NULL},
    {"b = shift a over=H by=1\nc = norm b over=H\nd = scale c over=H\nout d", NULL},
    {"b = group a by=2\nc = shift b each over=H\nd = group c none\ne = fc d to=C\nout e", NULL},
    {"b = unfold a over=C k=3\nc = fold b mean over=C\nd = fc c to=C over=KC\n"
     "e = fold d mean over=KC\nf = mul e a\nout f",
     NULL},
    {"b = group a by=2\nc = tanh b\nd = matmul b c over=H,W each=G\n"
     "e = matmul d c over=C2 with=C each=G\nout e",
     NULL},
    {"b = group a by=2\nc = swap b\nd = group c none\ne = group d each\n"
     "f = unfold e over=H k=3\ng = fc f to=C\nout g",
     NULL},
    {"b = shift a over=W by=1\nc = tanh a\nd = shift c over=W by=1\ne = stack b d\n"
     "f = fold e max over=G\nout f",
     NULL},
};

static void makes(void **state) {
  CHECK_ROWS (rows, row) {
    struct kernel *k = kernel_of_body(row->body), *simple = kernel_simplify(k);
    struct kernel *want = kernel_of_body(row->simple ? row->simple : row->body);
    char *got = text_of(simple), *expected = text_of(want);
    CHECK_TEXT(got, expected, row->body);
    CHECK_INT(kernel_verify(&ctx, simple), CANVAS_OK, row->body);
    free(got);
    free(expected);
    kernel_free(k);
    kernel_free(simple);
    kernel_free(want);
  }
}

static void computes_the_same(void **state) {
  CHECK_ROWS (rows, row) {
    struct kernel *k = kernel_of_body(row->body), *simple = kernel_simplify(k);
    int met = 0;
    CHECK_ROWS (places, at) CHECK(same_values(k, simple, *at, &met), row->body);
    CHECK(met > 1, row->body);
    kernel_free(k);
    kernel_free(simple);
  }
}

/* Every rewrite of the table is shown by a row: none is there that is never used. */
static void has_a_row_each(void **state) {
  int count, changed = 0;
  const struct rewrite_row *table = kernel_rewrites(&count);
  CHECK_ROWS (rows, row) changed += row->simple != NULL;
  for (int i = 0; i < count; i++) CHECK(*table[i].before && *table[i].after, table[i].before);
  CHECK(changed > count, "rows");
}

// -- draws --

enum { DRAWS = SANITIZED ? 40 : 400, EDITS = 4 };

static bool edited_once(struct draft *d, struct random *r) {
  struct kernel *before = kernel_copy(d->k);
  int root = d->root;
  bool done = draft_edit(d, (enum edit)random_below(r, EDIT_GRAFT)) && draft_build(d);
  if (!done) {
    memcpy(d->k, before, sizeof *before);
    d->root = root;
  }
  kernel_free(before);
  return done;
}

// A draw with some edits, as a child is before it is simplified; NULL: it is no kernel.
static struct kernel *edited(struct sampler *s, const struct kernel *drawn, uint64_t index) {
  struct random r;
  struct draft d;
  random_open(&r, 9, RANDOM_TEST, index);
  draft_open(&d, sampler_families(s), sampler_images(s, drawn), &r);
  draft_load(&d, drawn);
  for (int i = 0; i < EDITS; i++) edited_once(&d, &r);
  struct kernel *k = kernel_copy(d.k);
  struct node out = {.op = PRIMITIVE_OUTPUT, .in = {d.root, -1}, .attrs.dim = dim_one()};
  bool legal = kernel_add(&ctx, k, &out) == CANVAS_OK;
  snprintf(k->name, sizeof k->name, "t");
  for (int i = 0; i < k->count; i++) snprintf(k->nodes[i].name, NODE_NAME_SIZE, "n%d", i);
  draft_close(&d);
  if (legal && kernel_verify(&ctx, k) == CANVAS_OK) return k;
  kernel_free(k);
  return NULL;
}

static void check_simple(const struct kernel *k, int *met, int *changed) {
  struct kernel *simple = kernel_simplify(k), *again = kernel_simplify(simple);
  char *name = text_of(k), *first = text_of(simple), *second = text_of(again);
  CHECK_TEXT(second, first, name);
  CHECK_INT(kernel_verify(&ctx, simple), CANVAS_OK, name);
  CHECK_ROWS (places, at) CHECK(same_values(k, simple, *at, met), name);
  *changed += !hash_equal(kernel_hash(simple, NULL), kernel_hash(k, NULL));
  free(name), free(first), free(second);
  kernel_free(simple), kernel_free(again);
}

static void keeps_edited_draws(void **state) {
  static const char *const options[] = {"primitives=5..12", "primitives=8..24 require=none",
                                        "primitives=5..12 draws=paper",
                                        "primitives=4..10 require=none draws=paper space=wide"};
  enum { OPTIONS = sizeof options / sizeof *options };
  struct targets targets;
  struct sample_options o;
  struct sampler *s;
  int met = 0, changed = 0;
  CHECK_INT(targets_parse(&ctx, "8,6,6;16,3,3", 12, &targets), CANVAS_OK, ctx.message);
  for (int i = 0; i < DRAWS; i++) {
    const char *text = options[i % OPTIONS];
    struct kernel *drawn, *k;
    int64_t g;
    CHECK_INT(sample_options_parse(&ctx, text, strlen(text), &o), CANVAS_OK, ctx.message);
    CHECK_INT(sampler_new(&ctx, &targets, &o, 3, &s), CANVAS_OK, ctx.message);
    if (sampler_draw(&ctx, s, (uint64_t)i, &drawn, &g) == CANVAS_OK) {
      k = edited(s, drawn, (uint64_t)i);
      if (k) check_simple(k, &met, &changed);
      kernel_free(k);
      kernel_free(drawn);
    }
    sampler_free(s);
  }
  targets_free(&targets);
  CHECK(met > DRAWS / 2, "bound");
  CHECK(changed > DRAWS / 12, "simplified");
}

// -- constants --

static void finds_constants(void **state) {
  static const struct {
    const char *body, *why;  // "": none
  } table[] = {
      {FC "c = sub b b\nout c", "the difference of a tensor and itself is 0"},
      {FC "c = group b by=G\nd = sub b c\nout d", "the difference of a tensor and itself is 0"},
      {FC "c = group b by=G\nd = neg c\ne = add d b\nout e",
       "the sum of a tensor and its negative is 0"},
      {FC "c = group b by=G\nd = neg b\ne = add c d\nf = fc e to=C\nout f",
       "the sum of a tensor and its negative is 0"},
      {FC "c = neg b\nd = add c a\nout d", ""},
      {FC "c = exp b\nd = neg c\ne = relu d\nf = add e b\nout f",
       "relu of what is never positive is 0"},
      {"b = fc a to=1\nc = softmax b over=C\nd = mul c a\nout d",
       "a softmax of single elements is 1"},
      {FC "c = softmax b over=H\nd = fold c mean over=H,W\ne = mul d b\nout e",
       "the mean of a softmax along its axes does not depend on its input"},
      {FC "c = softmax b over=H,W\nd = fold c mean over=H\ne = mul d b\nout e", ""},
      {FC "c = sub a b\nout c", ""},
      {FC "c = neg b\nd = relu c\nout d", ""},
  };
  CHECK_ROWS (table, row) {
    struct kernel *k = kernel_of_body(row->body);
    int node;
    const char *why = kernel_constant(k, &node);
    CHECK_TEXT(why ? why : "", row->why, row->body);
    kernel_free(k);
  }
}

CHECK_MAIN(cmocka_unit_test(makes), cmocka_unit_test(computes_the_same),
           cmocka_unit_test(has_a_row_each), cmocka_unit_test(keeps_edited_draws),
           cmocka_unit_test(finds_constants))
