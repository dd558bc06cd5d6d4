// Kernels: text that parses back, shapes, what is rejected and with which message, reach, cost.
#include "check.h"

#include <stdio.h>

#include "kernel/kernel.h"

static canvas_context ctx;

static canvas_status parse(const char *text, struct kernel **k) {
  struct lexer lx;
  *k = NULL;
  canvas_status status = lexer_open(&lx, &ctx, text, strlen(text));
  return status == CANVAS_OK ? kernel_parse(&lx, k) : status;
}

static struct kernel *kernel_of(const char *body) {
  char text[4096];
  struct kernel *k;
  snprintf(text, sizeof text, "canvas 1\nkernel t\na = input\n%s\n", body);
  CHECK_INT(parse(text, &k), CANVAS_OK, ctx.message);
  return k;
}

static const char *const involution =
    "canvas 1\n"
    "kernel involution\n"
    "a = input                      : C H W\n"
    "b = fc a to=x0                 : x0 H W\n"
    "c = relu b                     : x0 H W\n"
    "d = fc c to=G*KH*KW            : G*KH*KW H W\n"
    "e = group d by=G               : G KH*KW H W\n"
    "f = unfold a over=H,W k=K      : C KH KW H W\n"
    "g = group f by=G               : G C/G KH KW H W\n"
    "h = mul e g                    : G C/G KH KW H W\n"
    "i = fold h mean over=KH,KW     : G C/G H W\n"
    "out i\n";

static void prints_what_it_parsed(void **state) {
  struct kernel *k;
  struct buf out = {0};
  CHECK_INT(parse(involution, &k), CANVAS_OK, ctx.message);
  kernel_print(k, &out);
  CHECK_TEXT(out.text, involution, "involution");
  CHECK_INT(kernel_primitives(k), 8, "involution");
  kernel_free(k);
  buf_free(&out);
}

/* Bodies, and the shape of the last node before the output. */
static void derives_shapes(void **state) {
  static const struct {
    const char *body, *expected;
  } rows[] = {
      {"b = unfold a over=H,W k=3\nc = fc b to=C\nout c", "C H W"},
      {"b = unfold a over=W k=3 : C KW=3 H W\nc = fold b max over=KW\nout c", "C H W"},
      {"b = group a each : group=C H W\nout b", "group=C H W"},
      {"b = group a by=2\nout b", "group=2 C/2 H W"},
      {"b = group a by=C\nc = fc b to=C\nout c", "C H W"},
      {"b = fold a mean over=H,W : C\nc = add b a\nout c", "C H W"},
      {"b = fold a max over=C : H W\nc = add b a\nout c", "C H W"},
      {"b = fold a mean over=H : C W\nc = fc b to=C : C W\nd = mul c a\nout d", "C H W"},
      {"b = group a by=G\nc = softmax b over=G,C\nout c", "G C/G H W"},
      {"b = shift a by=-3 over=H,W\nout b", "C H W"},
      {"b = fold a mean over=H,W\nc = fold b mean over=C : scalar\nd = mul c a\nout d", "C H W"},
  };
  CHECK_ROWS (rows, row) {
    struct kernel *k = kernel_of(row->body);
    struct buf out = {0};
    shape_print(&k->nodes[k->count - 2].shape, &out);
    CHECK_TEXT(out.text, row->expected, row->body);
    buf_free(&out);
    kernel_free(k);
  }
}

static void rejects(void **state) {
  static const struct {
    const char *text, *expected;
  } rows[] = {
      {"",
       "line 1, column 1: expected 'canvas' and the version ('canvas 1') on the first line, "
       "found the end of the text"},
      {"canvas 2\n",
       "line 1, column 8: version 2 of the text is unknown, this program reads "
       "version 1"},
      {"canvas 1\nkernel k\nb = relu a\n",
       "line 3, column 5: the first node must be 'input', not 'relu'"},
      {"canvas 1\nkernel k\na = input\nout b\n",
       "line 4, column 5: unknown node 'b', a node can use only nodes above it"},
      {"canvas 1\nkernel k\na = input\nb = relu b\nout b\n",
       "line 4, column 10: unknown node 'b', a node can use only nodes above it"},
      {"canvas 1\nkernel k\na = input\na = relu a\nout a\n",
       "line 4, column 1: node 'a' is defined twice"},
      {"canvas 1\nkernel k\na = input\nb = input\nout b\n",
       "line 4, column 5: only the first node can be 'input'"},
      {"canvas 1\nkernel k\na = input\nb = conv a\nout b\n",
       "line 4, column 5: unknown primitive 'conv', docs/kernel.md lists them"},
      {"canvas 1\nkernel k\na = input : C W H\nout a\n",
       "line 3, column 13: shape of 'a' is 'C H W', not 'C W H'"},
      {"canvas 1\nkernel k\na = input\nb = fc a\nout b\n",
       "line 4, column 9: 'fc' needs the attribute 'to='"},
      {"canvas 1\nkernel k\na = input\nb = fc a to=C by=2\nout b\n",
       "line 4, column 15: 'fc' has no attribute 'by'"},
      {"canvas 1\nkernel k\na = input\nb = fc a to=C to=C\nout b\n",
       "line 4, column 15: attribute 'to' stands twice"},
      {"canvas 1\nkernel k\na = input\nb = fold a over=H\nout b\n",
       "line 4, column 12: 'fold' needs its mode, for example 'mean'"},
      {"canvas 1\nkernel k\na = input\nb = unfold a over=C k=K\n",
       "line 4, column 5: 'unfold' cannot be applied here: k= takes a number where over= has C"},
      {"canvas 1\nkernel k\na = input\nb = unfold a over=C k=3 stride=S\n",
       "line 4, column 5: 'unfold' cannot be applied here: stride= takes no C in over="},
      {"canvas 1\nkernel k\na = input\nb = unfold a over=G k=3\n",
       "line 4, column 5: 'unfold' cannot be applied here: over= takes H, W and C (no G, but C H "
       "W)"},
      {"canvas 1\nkernel k\na = input\nb = unfold a over=H k=33\n",
       "line 4, column 5: 'unfold' cannot be applied here: k= takes K or an odd number up to 31"},
      {"canvas 1\nkernel k\na = input\nb = fc a to=C over=KH\n",
       "line 4, column 5: 'fc' cannot be applied here: the input has not all axes of over= (no KH, "
       "but C H W)"},
      {"canvas 1\nkernel k\na = input\nb = scale a over=G,C\n",
       "line 4, column 5: 'scale' cannot be applied here: the input has not all axes of over= (no "
       "G, but C H W)"},
      {"canvas 1\nkernel k\na = input\nb = bias a over=H2\n",
       "line 4, column 5: 'bias' cannot be applied here: the input has not all axes of over= (no "
       "H2, but C H W)"},
      {"canvas 1\nkernel k\na = input\nb = norm a over=KW\n",
       "line 4, column 5: 'norm' cannot be applied here: the input has not all axes of over= (no "
       "KW, but C H W)"},
      {"canvas 1\nkernel k\na = input\nb = matmul a a over=C with=H,W\n",
       "line 4, column 5: 'matmul' cannot be applied here: over= and with= do not name as many "
       "axes"},
      {"canvas 1\nkernel k\na = input\nb = matmul a a over=C with=H\n",
       "line 4, column 5: 'matmul' cannot be applied here: axes that meet have different sizes (C "
       "of the first input is C, H of the second is H)"},
      {"canvas 1\nkernel k\na = input\nb = matmul a a over=C each=C\n",
       "line 4, column 5: 'matmul' cannot be applied here: each= names an axis that is summed"},
      {"canvas 1\nkernel k\na = input\nb = matmul a a over=C each=G\n",
       "line 4, column 5: 'matmul' cannot be applied here: an input has not all axes of each= (no "
       "G, but C H W)"},
      {"canvas 1\nkernel k\na = input\nb = fold a mean over=H\nc = matmul a b over=H\n",
       "line 5, column 5: 'matmul' cannot be applied here: the second input has not all axes of "
       "over=; with= names its own (no H, but C W)"},
      {"canvas 1\nkernel k\na = input\nb = matmul a a over=C\nc = matmul b a over=H\n",
       "line 5, column 5: 'matmul' cannot be applied here: the result would have three axes of one "
       "sort"},
      {"canvas 1\nkernel k\na = input\nb = fold a mean over=X\n",
       "line 4, column 22: expected an axis (G, C, KC, KH, KW, H, W, or G2, C2, .. W2), found 'X'"},
      {"canvas 1\nkernel k\na = input\nb = matmul a a over=KH\n",
       "line 4, column 5: 'matmul' cannot be applied here: the first input has not all axes of "
       "over= (no KH, but C H W)"},
      {"canvas 1\nkernel k\na = input\nb = unfold a over=H,W,C k=3\nc = group b by=G\nd = matmul c "
       "c over=C\n",
       "line 6, column 5: 'matmul' cannot be applied here: the result would have more than 8 axes"},
      {"canvas 1\nkernel k\na = input\nb = unfold a over=H,W k=3\nc = matmul b b over=KH\nd = "
       "group c by=G\n",
       "line 6, column 5: 'group' cannot be applied here: the result would have more than 8 axes"},
      {"canvas 1\nkernel k\na = input\nb = unfold a over=H,W k=3\nc = matmul b b over=KH\nd = "
       "stack c c\n",
       "line 6, column 5: 'stack' cannot be applied here: the result would have more than 8 axes"},
      {"canvas 1\nkernel k\na = input\nb = unfold a over=H,W k=3\nc = matmul b b over=KH\nd = "
       "unfold c over=C k=3\n",
       "line 6, column 5: 'unfold' cannot be applied here: the result would have more than 8 axes"},
      {"canvas 1\nkernel k\na = input\nb = matmul a a over=C scaled\n",
       "line 4, column 23: mode 'scaled' of 'matmul' stands once, before the attributes"},
      {"canvas 1\nkernel k\na = input\nb = swap a\n",
       "line 4, column 5: 'swap' cannot be applied here: the input has no group axis and channel "
       "axis"},
      {"canvas 1\nkernel k\na = input\nb = group a none\n",
       "line 4, column 5: 'group' cannot be applied here: the input has no group axis"},
      {"canvas 1\nkernel k\na = input\nb = shift a over=G by=1\n",
       "line 4, column 5: 'shift' cannot be applied here: over= takes H, W, C, KH, KW and KC (no "
       "G, but C H W)"},
      {"canvas 1\nkernel k\na = input\nb = shift a each over=H\n",
       "line 4, column 5: 'shift' cannot be applied here: the input has no group axis"},
      {"canvas 1\nkernel k\na = input\nb = fold a mean over=C\nc = stack a b\n",
       "line 5, column 5: 'stack' cannot be applied here: the inputs have different shapes"},
      {"canvas 1\nkernel k\na = input\nb = group a each\nc = stack b b\n",
       "line 5, column 5: 'stack' cannot be applied here: the inputs have a group axis already"},
      {"canvas 1\nkernel k\na = input\nb = pick a at=2 of=2\n",
       "line 4, column 5: 'pick' cannot be applied here: at= counts from 0 and is less than of="},
      {"canvas 1\nkernel k\na = input\nb = pick a at=0 of=C\n",
       "line 4, column 5: 'pick' cannot be applied here: of= takes a number of 2 to 16"},
      {"canvas 1\nkernel k\na = input\nb = pick a at=-1 of=2\n",
       "line 4, column 15: expected a whole number, found '-'"},
      {"canvas 1\nkernel k\na = input\nb = pool a by=1\n",
       "line 4, column 5: 'pool' cannot be applied here: by= takes a number of 2 to 16"},
      {"canvas 1\nkernel k\na = input\nb = repeat a by=H\n",
       "line 4, column 5: 'repeat' cannot be applied here: by= takes a number of 2 to 16"},
      {"canvas 1\nkernel k\na = input\nb = fold a mean over=H,W\nc = pool b by=2\n",
       "line 5, column 5: 'pool' cannot be applied here: the input has no H and no W"},
      {"canvas 1\nkernel k\na = input\nb = coords a over=C\n",
       "line 4, column 5: 'coords' cannot be applied here: over= takes H or W"},
      {"canvas 1\nkernel k\na = input\nb = fold a mean over=H\nc = coords a over=W\nd = coords b "
       "over=W\n",
       "line 6, column 5: 'coords' cannot be applied here: the input has no H and W"},
      {"canvas 1\nkernel k\na = input\nb = unfold a over=H k=4\nout b\n",
       "line 4, column 5: 'unfold' cannot be applied here: k= takes K or an odd number up to 31"},
      {"canvas 1\nkernel k\na = input\nb = shift a over=H by=0\nout b\n",
       "line 4, column 5: 'shift' cannot be applied here: a shift by=0 does nothing"},
      {"canvas 1\nkernel k\na = input\nb = group a by=x0\nout b\n",
       "line 4, column 5: 'group' cannot be applied here: the result would have a size that is "
       "never whole"},
      {"canvas 1\nkernel k\na = input\nb = softmax a over=C,W\nout b\n",
       "line 4, column 5: 'softmax' cannot be applied here: the axes of over= must be neighbours"},
      {"canvas 1\nkernel k\na = input\nb = unfold a over=H k=K\nc = add b a\nout c\n",
       "line 5, column 5: 'add' cannot be applied here: the left side does not fit a whole number "
       "of times"},
      {"canvas 1\nkernel k\na = input\nb = fc a to=x0\nout b\n",
       "line 5, column 1: 'out' cannot be applied here: the channels of the output must multiply "
       "to C"},
      {"canvas 1\nkernel k\na = input\nb = fold a mean over=H\nout b\n",
       "line 5, column 1: 'out' cannot be applied here: the last axes of the output must be H W"},
      {"canvas 1\nkernel k\na = input\nb = relu a\nout a\n",
       "kernel 'k': node 'b' is never used, remove it"},
      {"canvas 1\nkernel k\na = input\nb = group a each\nc = fc b to=x0\nd = fc c to=C\nout d\n",
       NULL}, /* x0/C is a multiple that the solver can give */
      {"canvas 1\nkernel k\na = input\nb = fc a to=x0\nc = group b each\nd = fc c to=C\nout d\n",
       "line 6, column 5: 'fc' cannot be applied here: a division that is never whole"},
      {"canvas 1\nkernel k\na = input\n\x01 = relu a\n",
       "line 4, column 1: unexpected byte 0x01, expected a node 'NAME = PRIMITIVE ...' or 'out "
       "NAME'"},
      {"canvas 1\nkernel k\na = input\nout a b\n",
       "line 4, column 7: expected the end of the line after the output, found 'b'"},
  };
  CHECK_ROWS (rows, row) {
    struct kernel *k;
    canvas_status status = parse(row->text, &k);
    CHECK_INT(status, row->expected ? CANVAS_BAD_INPUT : CANVAS_OK, row->text);
    if (row->expected) CHECK_TEXT(ctx.message, row->expected, row->text);
    kernel_free(k);
  }
}

static void knows_what_reaches(void **state) {
  static const struct {
    const char *body, *expected;
  } rows[] = {
      {"b = unfold a over=H,W k=K\nc = fc b to=C\nout c", NULL},
      {"b = unfold a over=H k=K\nc = fc b to=C\nout c", "it sees no neighbours along W"},
      {"b = fc a to=C\nout b", "it sees no neighbours along H"},
      {"b = unfold a over=H,W k=K\nc = group b by=G\nd = fc c to=C\nout d",
       "no fully connected primitive mixes all its channels"},
      {"b = shift a over=H,W by=1\nc = fc b to=C\nd = add c a\nout d", NULL},
      /* a lone shift moves the image, a fold or a softmax along an axis sees all of it */
      {"b = shift a over=H,W by=1\nc = fc b to=C\nout c", "it sees no neighbours along H"},
      {"b = shift a over=W by=1\nc = fold b mean over=H\nd = fc c to=C\ne = add d a\nout e", NULL},
      {"b = shift a over=W by=1\nc = fold b mean over=H\nd = fc c to=C\ne = mul d b\nout e",
       "it sees no neighbours along W"},
      {"b = shift a over=H by=2\nc = unfold b over=W k=5\nd = fc c to=C\ne = add d a\nout e", NULL},
      {"b = fold a mean over=H,W\nc = mul b a\nd = fc c to=C\nout d", NULL},
      {"b = fold a max over=W\nc = mul b a\nd = fc c to=C\nout d", "it sees no neighbours along H"},
      {"b = fc a to=C\nc = softmax b over=H,W\nout c", NULL},
      {"b = softmax a over=W\nc = fc b to=C\nout c", "it sees no neighbours along H"},
      {"b = softmax a over=C\nc = fc b to=C\nout c", "it sees no neighbours along H"},
  };
  CHECK_ROWS (rows, row) {
    struct kernel *k = kernel_of(row->body);
    CHECK_TEXT(kernel_reach(k), row->expected, row->body);
    kernel_free(k);
  }
}

/* 64 channels at 56x56, KH = KW = 3, G = 4, x0 = 16: behaviour 9 of the published system. */
static void costs(void **state) {
  static const struct sizes sizes = {.value = {4, 64, 3, 3, 56, 56, 1, 16}};
  static const struct {
    const char *body;
    int64_t published_flops, params; /* 2*macs + elementwise */
  } rows[] = {
      {"b = unfold a over=H,W k=K\nc = fc b to=C\nout c", 231211008, 36864},
      {"b = group a each\nc = unfold b over=H,W k=K\nd = fc c to=C\nout d", 3612672, 576},
      {"b = unfold a over=H,W k=K\nc = group b by=G\nd = fc c to=C\nout d", 57802752, 9216},
      {"b = fc a to=x0\nc = relu b\nd = fc c to=G*KH*KW\ne = group d by=G\n"
       "f = unfold a over=H,W k=K\ng = group f by=G\nh = mul e g\ni = fold h mean over=KH,KW\n"
       "out i",
       13698048, 1600},
      {"b = fold a mean over=H,W\nc = fc b to=x0\nd = relu c\ne = fc d to=C\nf = sigmoid e\n"
       "g = mul f a\nout g",
       405712, 2048},
      {"b = softmax a over=C\nout b", 3 * 64 * 56 * 56, 0},
      {"b = softmax a over=C scale=C\nout b", 4 * 64 * 56 * 56, 0},
  };
  CHECK_ROWS (rows, row) {
    struct kernel *k = kernel_of(row->body);
    struct cost cost;
    CHECK(kernel_cost(k, &sizes, &cost), row->body);
    CHECK_INT(2 * cost.macs + cost.elementwise, row->published_flops, row->body);
    CHECK_INT(cost.params, row->params, row->body);
    kernel_free(k);
  }
}

static void limits_its_size(void **state) {
  char text[8192] = "canvas 1\nkernel k\nn0 = input\n";
  struct kernel *k;
  for (int i = 1; i < 100; i++) {
    char line[64];
    snprintf(line, sizeof line, "n%d = sin n%d\n", i, i - 1);
    strcat(text, line);
  }
  CHECK_INT(parse(strcat(text, "out n99\n"), &k), CANVAS_BAD_INPUT, "100 nodes");
  CHECK(strstr(ctx.message, "more than 64 nodes"), ctx.message);
}

CHECK_MAIN(cmocka_unit_test(prints_what_it_parsed), cmocka_unit_test(derives_shapes),
           cmocka_unit_test(rejects), cmocka_unit_test(knows_what_reaches), cmocka_unit_test(costs),
           cmocka_unit_test(limits_its_size))
