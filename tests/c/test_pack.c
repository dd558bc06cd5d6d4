// Packs and bindings: text, what is rejected, cost.
#include "check.h"

#include <stdio.h>

#include "kernel/pack.h"

#define KERNEL(name, body) "canvas 1\nkernel " name "\na = input\n" body

static const char figure3[] =
    KERNEL("figure3", "b = fc a to=x0\nc = fc a to=G*KH\nd = add c b\ne = fc d to=C\nout e\n");
static const char involution[] =
    KERNEL("involution",
           "b = fc a to=x0\nc = relu b\nd = fc c to=G*KH*KW\ne = group d by=G\n"
           "f = unfold a over=H,W k=K\ng = group f by=G\nh = mul e g\ni = fold h mean "
           "over=KH,KW\nout i\n");
static const char convolution[] =
    KERNEL("convolution", "b = unfold a over=H,W k=K\nc = fc b to=C\nout c\n");
static const char grouped[] =
    KERNEL("grouped", "b = unfold a over=H,W k=K\nc = group b by=G\nd = fc c to=C\nout d\n");
static const char depthwise[] =
    KERNEL("depthwise", "b = group a each\nc = unfold b over=H,W k=K\nd = fc c to=C\nout d\n");
static const char squeeze[] =
    KERNEL("squeeze",
           "b = fold a mean over=H,W\nc = fc b to=x0\nd = relu c\ne = fc d to=C\n"
           "f = sigmoid e\ng = mul f a\nout g\n");
static const char identity[] = KERNEL("identity", "out a\n");
static const char thirds[] = KERNEL("thirds", "b = group a by=3\nc = fc b to=C\nout c\n");
static const char narrow[] =
    KERNEL("narrow", "b = fc a to=x0\nc = fc b to=x1\nd = fc c to=C\nout d\n");

static struct kernel *kernel_of(const char *text) {
  canvas_context ctx = {""};
  struct lexer lx;
  struct kernel *k = NULL;
  if (lexer_open(&lx, &ctx, text, strlen(text)) || kernel_parse(&lx, &k))
    fail_msg("%s", ctx.message);
  return k;
}

// A pack with the one binding `at`; the message where there is none.
static struct pack *bound(const char *text, const char *at, canvas_context *ctx) {
  struct kernel *k = kernel_of(text);
  struct pack *p = pack_new(k);
  struct binding b;
  kernel_free(k);
  if (binding_parse_at(ctx, at, strlen(at), &b) == CANVAS_OK && pack_bind(ctx, p, &b) == CANVAS_OK)
    return p;
  pack_free(p);
  return NULL;
}

// The bind lines of a text in print, or the error message why not.
static const char *binds(const char *text) {
  static char answer[4096];
  canvas_context ctx = {""};
  struct pack *p;
  struct buf out = {0};
  if (pack_parse(&ctx, text, strlen(text), &p) == CANVAS_OK) {
    for (int i = 0; i < p->count; i++) binding_print(p->kernel, &p->data[i], &out);
    snprintf(answer, sizeof answer, "%s", out.text ? out.text : "");
    pack_free(p);
  } else {
    snprintf(answer, sizeof answer, "%s", ctx.message);
  }
  buf_free(&out);
  return answer;
}

// -- text --

static const struct {
  const char *kernel, *lines, *expected;
} texts[] = {
    {figure3, "", ""},
    {figure3, "bind layer1.0.conv1 Cin=64 Cout=128 KH=3 KW=3 H=56 W=56 stride=2 G=4 x0=48",
     "bind layer1.0.conv1 Cin=64 Cout=128 KH=3 KW=3 H=56 W=56 stride=2 G=4 x0=48"
     "   # w0 [2, 48, 64], w1 [2, 12, 64], w2 [2, 64, 48]\n"},
    {figure3,
     "\n# two\nbind a W=8 H=7 C=64 G=2 x0=6\nbind b Cin=128 Cout=64 K=5 H=7 W=7 groups=2 G=4 x0=20",
     "bind a Cin=64 Cout=64 KH=3 KW=3 H=7 W=8 stride=1 G=2 x0=6"
     "   # w0 [1, 6, 64], w1 [1, 6, 64], w2 [1, 64, 6]\n"
     "bind b Cin=128 Cout=64 KH=5 KW=5 H=7 W=7 stride=1 groups=2 G=4 x0=20"
     "   # w0 [2, 20, 64], w1 [2, 20, 64], w2 [2, 64, 20]\n"},
    {grouped, "bind g C=64 KH=3 KW=1 H=8 W=8 G=4",
     "bind g Cin=64 Cout=64 KH=3 KW=1 H=8 W=8 stride=1 G=4   # w0 [1, 64, 16, 3, 1]\n"},
    {depthwise, "bind g C=64 H=8 W=8 G=4",  // G is not used: accepted, not printed
     "bind g Cin=64 Cout=64 KH=3 KW=3 H=8 W=8 stride=1   # w0 [1, 64, 3, 3]\n"},
    {identity, "bind g C=64 H=8 W=8", "bind g Cin=64 Cout=64 KH=3 KW=3 H=8 W=8 stride=1\n"},
    // what is rejected
    {identity, "bound g C=64 H=8 W=8",
     "line 5, column 1: expected 'bind' and sizes, 'keep', 'kernel' or the end of the pack, found "
     "'bound'"},
    {identity, "bind", "line 5, column 5: expected the name of a layer, found the end of the text"},
    {identity, "bind C=64 H=8 W=8",
     "line 5, column 6: name 'C=64' holds '=', use letters, digits and _ . : / + -"},
    {identity, "bind g H=8 W=8", "line 5, column 1: Cin is missing, give 'Cin='"},
    {identity, "bind g Cin=64 H=8 W=8", "line 5, column 1: Cout is missing, give 'Cout='"},
    {identity, "bind g C=64 H=8", "line 5, column 1: W is missing, give 'W='"},
    {identity, "bind g C=64 H=8 W=0", "line 5, column 19: W=0 is not in 1..16777216"},
    {identity, "bind g C=64 H=8 W=-8", "line 5, column 19: expected a whole number, found '-'"},
    {identity, "bind g C=64 H=8 W=1099511627776",
     "line 5, column 19: W=1099511627776 is not in 1..16777216"},
    {identity, "bind g C=64 H=8 W=99999999999999999999",
     "line 5, column 19: number '99999999999999999999' is too large"},
    {identity, "bind g C=64 H=8 W=8 H=8", "line 5, column 21: H stands twice"},
    {identity, "bind g C=64 H=8 W=8 D=8",
     "line 5, column 21: unknown size 'D', known are C, Cin, Cout, H, W, K, KH, KW, stride, "
     "groups, dilation, projected, G, x0..x15"},
    {identity, "bind g C=64 H=8 W=8 name=h",
     "line 5, column 21: unknown size 'name', known are C, Cin, Cout, H, W, K, KH, KW, stride, "
     "groups, dilation, projected, G, x0..x15"},
    {identity, "bind g C=64 H=8 W 8",
     "line 5, column 19: expected '=' after the name of a size, found '8'"},
    {identity, "bind g C=64 H=8, W=8",
     "line 5, column 16: expected the end of the line or a size such as 'H=56', found ','"},
    {identity, "bind g C=64 Cin=64 H=8 W=8", "line 5, column 1: give either C or Cin and Cout"},
    {identity, "bind g C=64 K=3 KW=3 H=8 W=8", "line 5, column 1: give either K or KH and KW"},
    {identity, "bind g C=64 K=2 H=8 W=8", "bind g Cin=64 Cout=64 KH=2 KW=2 H=8 W=8 stride=1\n"},
    {identity, "bind g Cin=64 Cout=65 H=8 W=8 dilation=2 groups=1",
     "bind g Cin=64 Cout=65 KH=3 KW=3 H=8 W=8 stride=1 dilation=2\n"},
    {identity, "bind g Cin=64 Cout=65 H=8 W=8 projected=1",
     "bind g Cin=64 Cout=65 KH=3 KW=3 H=8 W=8 stride=1 projected=1   # projection [1, 65, 64]\n"},
    {identity, "bind g Cin=64 Cout=65 H=8 W=8 projected=2",
     "line 5, column 41: projected=2 is not in 0..1"},
    {identity, "bind g Cin=64 Cout=64 H=8 W=8 projected=0",
     "bind g Cin=64 Cout=64 KH=3 KW=3 H=8 W=8 stride=1\n"},
    {identity, "bind g Cin=16777216 Cout=16777215 H=1 W=1 K=1 projected=1",
     "line 5, column 1: target 'g': its projection has 281474959933440 weights, over the limit of "
     "1099511627776"},
    {identity, "bind g C=64 H=8 W=8 x0=4",
     "line 5, column 1: target 'g': kernel 'identity' has no x0, leave it out"},
    {identity, "bind g C=64 H=8 W=8\nbind g C=64 H=4 W=4",
     "line 6, column 1: target 'g' is bound twice"},
    {figure3, "bind g C=64 H=8 W=8 G=4",
     "line 9, column 1: target 'g': kernel 'figure3' uses x0, give 'x0='"},
    {figure3, "bind g C=64 H=8 W=8 x0=12",
     "line 9, column 1: target 'g': kernel 'figure3' uses G, give 'G=', a factor of 64 channels"},
    {figure3, "bind g C=64 H=8 W=8 G=5 x0=15",
     "line 9, column 1: target 'g': G=5 does not divide its 64 channels"},
    {figure3, "bind g C=64 H=8 W=8 G=4 x0=16",
     "line 9, column 1: target 'g': node 'd' of kernel 'figure3' needs a whole number for x0/G/KH, "
     "which "
     "is 4/3"},
    {thirds, "bind g C=64 H=8 W=8",
     "line 7, column 1: target 'g': node 'b' of kernel 'thirds' needs a whole number for C/3, "
     "which is "
     "64/3"},
    {identity,
     "bind g C=16384 H=8192 W=8192 K=1 groups=16384\nbind h C=16384 H=8193 W=8192 K=1 groups=16384",
     "line 6, column 1: target 'h' is too large, a layer has at most 2^50 multiply-accumulates and "
     "2^40 "
     "elements"},
    {convolution, "bind g C=64 H=16777216 W=512",
     "line 7, column 1: target 'g': node 'b' of kernel 'convolution' has 4947802324992 elements, "
     "over the "
     "limit of 1099511627776"},
    {narrow, "bind g C=1 H=1 W=1 x0=16777216 x1=16777216",
     "line 8, column 1: target 'g': node 'c' of kernel 'narrow' has 281474976710656 weights, over "
     "the "
     "limit of 1099511627776"},
};

static void text(void **state) {
  CHECK_ROWS (texts, row) {
    char whole[2048];
    snprintf(whole, sizeof whole, "%s%s", row->kernel, row->lines);
    CHECK_TEXT(binds(whole), row->expected, row->lines);
  }
}

// -- norms --

#define BIND "bind g C=8 H=4 W=4"
static const char chain[] = KERNEL("chain", "b = fc a to=C\nc = relu b\nd = fc c to=C\nout d\n");
static const char moved[] =
    KERNEL("moved",
           "b = fc a to=C\nc = group b by=2\nd = shift c over=H by=1\ne = unfold d over=W k=3\n"
           "f = fold e max over=KW\ng = fc f to=C\nh = group g by=2\ni = shift h over=W by=1\n"
           "out i\n");
static const char two_readers[] =
    KERNEL("two_readers", "b = fc a to=C\nc = group b by=2\nd = add b b\ne = add c d\nout e\n");

static const struct {
  const char *kernel, *lines;
  const char *expected;  // what stands between the kernel and its bind lines, or the error message
} norms[] = {
    {chain, "norm batch\n" BIND, "norm batch\n"},
    {chain, "\n\nnorm batch # inside\n\n" BIND, "norm batch\n"},
    {chain, "norm none\n" BIND, ""},
    {chain, BIND, ""},
    {moved, "norm batch\n" BIND, "norm batch\n"},
    {two_readers, "norm batch\n" BIND, "norm batch\n"},
    // no weight is inner: the pack is what it is without
    {convolution, "norm batch\n" BIND, ""},
    {grouped, "norm batch\n" BIND " G=2", ""},
    {identity, "norm batch\n" BIND, ""},
    // what is rejected
    {chain, "norm\n" BIND,
     "line 8, column 5: expected 'batch' or 'none', found the end of the line"},
    {chain, "norm layer\n" BIND, "line 8, column 6: expected 'batch' or 'none', found 'layer'"},
    {chain, "norm=batch\n" BIND, "line 8, column 5: expected 'batch' or 'none', found '='"},
    {chain, "norm batch none\n" BIND,
     "line 8, column 12: expected the end of the line after the norm, found 'none'"},
    {chain, "norm batch\nnorm batch\n" BIND,
     "line 9, column 1: expected 'bind' and sizes, 'keep', 'kernel' or the end of the pack, found "
     "'norm'"},
    {chain, BIND "\nnorm batch",
     "line 9, column 1: expected 'bind' and sizes, 'keep', 'kernel' or the end of the pack, found "
     "'norm'"},
    {chain, BIND " norm=batch",
     "line 8, column 20: unknown size 'norm', known are C, Cin, Cout, H, W, K, KH, KW, stride, "
     "groups, dilation, projected, G, x0..x15"},
    {chain, "norm batch",
     "line 8, column 1: 'norm' stands above bind lines, a kernel without sizes has none"},
};

// The head of the printed pack after its kernel, or the error message.
static const char *norm_line(const char *text) {
  static char answer[MESSAGE_SIZE];
  canvas_context ctx = {""};
  struct pack *p;
  struct buf kernel = {0}, whole = {0};
  if (pack_parse(&ctx, text, strlen(text), &p) == CANVAS_OK) {
    kernel_print(p->kernel, &kernel);
    pack_print(p, &whole);
    const char *rest = whole.text + kernel.length;
    snprintf(answer, sizeof answer, "%.*s", (int)(strstr(rest, "bind ") - rest), rest);
    pack_free(p);
  } else {
    snprintf(answer, sizeof answer, "%s", ctx.message);
  }
  buf_free(&kernel);
  buf_free(&whole);
  return answer;
}

static void norm_lines(void **state) {
  CHECK_ROWS (norms, row) {
    char whole[2048];
    snprintf(whole, sizeof whole, "%s%s", row->kernel, row->lines);
    CHECK_TEXT(norm_line(whole), row->expected, row->lines);
  }
}

static const struct {
  const char *kernel, *at;
  const char *inner;  // the nodes that are normalised
  struct cost more;   // than without the norm
} normed[] = {
    {chain, "C=8,H=5,W=4", "b", {.params = 16, .elementwise = 8 * 20, .bytes = 64}},
    {chain, "Cin=8,Cout=16,H=5,W=4", "b", {.params = 32, .elementwise = 320, .bytes = 128}},
    {chain, "Cin=16,Cout=8,H=5,W=4", "b", {.params = 32, .elementwise = 320, .bytes = 128}},
    {moved, "C=8,H=4,W=4", "b", {.params = 16, .elementwise = 128, .bytes = 64}},
    {two_readers, "C=8,H=4,W=4", "b", {.params = 16, .elementwise = 128, .bytes = 64}},
    {figure3, "C=8,H=4,W=4,G=2,x0=6", "bc", {.params = 24, .elementwise = 192, .bytes = 96}},
    {squeeze, "C=8,H=4,W=4,x0=3", "ce", {.params = 22, .elementwise = 11, .bytes = 88}},
    {depthwise, "C=8,H=4,W=4", "", {0}},
};

static void inner_weights(void **state) {
  CHECK_ROWS (normed, row) {
    char at[128];
    canvas_context ctx = {""};
    struct cost before, after;
    snprintf(at, sizeof at, "%s,norm=batch", row->at);
    struct pack *without = bound(row->kernel, row->at, &ctx), *p = bound(row->kernel, at, &ctx);
    CHECK_TEXT(ctx.message, "", row->at);
    for (int i = 0; i < p->kernel->count; i++) {
      const char *name = p->kernel->nodes[i].name;
      CHECK_INT(node_is_normed(p->kernel, &p->data[0], i), *name && strstr(row->inner, name), name);
      CHECK(!node_is_normed(p->kernel, &without->data[0], i), name);
    }
    CHECK(pack_cost(without, &before) && cost_add(&before, &row->more, 1), row->at);
    CHECK(pack_cost(p, &after), row->at);
    CHECK(!memcmp(&before, &after, sizeof after), row->at);
    pack_free(without);
    pack_free(p);
  }
}

static void print_is_stable(void **state) {
  CHECK_ROWS (texts, row) {
    canvas_context ctx = {""};
    struct buf first = {0}, second = {0};
    struct pack *p, *again;
    char whole[2048];
    snprintf(whole, sizeof whole, "%s%s", row->kernel, row->lines);
    if (pack_parse(&ctx, whole, strlen(whole), &p) != CANVAS_OK) continue;
    pack_print(p, &first);
    CHECK_INT(pack_parse(&ctx, first.text, first.length, &again), CANVAS_OK, ctx.message);
    pack_print(again, &second);
    CHECK_TEXT(second.text, first.text, row->lines);
    pack_free(p);
    pack_free(again);
    buf_free(&first);
    buf_free(&second);
  }
}

// Packs of several kernels: what comes after `canvas 1`.
#define SIZES_OF(name) name " Cin=8 Cout=8 KH=3 KW=3 H=5 W=4 stride=1"
#define CONV(name) "kernel " name "\na = input\nb = unfold a over=H,W k=K\nc = fc b to=C\nout c\n"
#define THIN(name) "kernel " name "\na = input\nb = fc a to=x0\nc = fc b to=C\nout c\n"
static const struct {
  const char *text, *expected;  // the message, or "kernels targets kept macs params"
} lists[] = {
    {CONV("one") "bind " SIZES_OF("s"), "1 1 0 11520 576"},
    {CONV("one") "bind " SIZES_OF("s") "\nkeep " SIZES_OF("t"), "1 1 1 23040 1152"},
    {CONV("one") "bind " SIZES_OF("s") "\n" THIN("two") "norm batch\nbind " SIZES_OF(
         "t") " x0=2\nbind " SIZES_OF("u") " x0=3\nkeep " SIZES_OF("v") " groups=2",
     "2 3 1 18880 954"},
    {CONV("one") "bind " SIZES_OF("s") "\n" CONV("one") "bind " SIZES_OF("t"), "2 2 0 23040 1152"},
    {CONV("one") "bind " SIZES_OF("s") "\n" CONV("two") "bind " SIZES_OF("s"),
     "line 13, column 1: target 's' is bound twice"},
    {CONV("one") "bind " SIZES_OF("s") "\nkeep " SIZES_OF("s"),
     "line 8, column 1: target 's' is bound twice"},
    {CONV("one") "bind " SIZES_OF("s") "\nkeep " SIZES_OF("t") "\nkeep " SIZES_OF("t"),
     "line 9, column 1: target 't' is kept, and named once more"},
    {CONV("one") "bind " SIZES_OF("s") "\nkeep " SIZES_OF("t") "\nbind " SIZES_OF("u"),
     "line 9, column 1: expected 'bind' and sizes, 'keep', 'kernel' or the end of the pack, found "
     "'bind'"},
    {CONV("one") "bind " SIZES_OF("s") "\n" THIN("two") "keep " SIZES_OF("t"),
     "line 8, column 1: kernel 'two' has no bind line, a pack of several kernels gives each its "
     "targets"},
    {CONV("one") THIN("two") "bind " SIZES_OF("t") " x0=2",
     "line 7, column 1: kernel 'one' above has no bind line, a pack of several kernels gives each "
     "its targets"},
    {CONV("one") "keep " SIZES_OF("t"),
     "line 7, column 1: expected a bind line before the 'keep' lines, found 'keep'"},
    {CONV("one") "bind " SIZES_OF("s") "\nkeep " SIZES_OF("t") " x0=2",
     "line 8, column 1: target 't' is kept, leave out x0"},
    {CONV("one") "bind " SIZES_OF("s") "\nkeep t C=8", "line 8, column 1: H is missing, give 'H='"},
    {CONV("one") "bind " SIZES_OF("s") "\nkeep t C=8 H=5 W=4 groups=3",
     "line 8, column 1: target 't': groups 3 must divide C_in and C_out"},
};

static void several_kernels(void **state) {
  CHECK_ROWS (lists, row) {
    char whole[2048], seen[MESSAGE_SIZE];
    canvas_context ctx = {""};
    struct pack *p;
    struct cost cost;
    snprintf(whole, sizeof whole, "canvas 1\n%s", row->text);
    if (pack_parse(&ctx, whole, strlen(whole), &p) != CANVAS_OK) {
      CHECK_TEXT(ctx.message, row->expected, row->text);
      continue;
    }
    CHECK(pack_cost(p, &cost), row->text);
    snprintf(seen, sizeof seen, "%d %d %d %lld %lld", pack_kernels(p), pack_bindings(p),
             p->kept.count, (long long)cost.macs, (long long)cost.params);
    CHECK_TEXT(seen, row->expected, row->text);
    struct buf text = {0}, again = {0};
    struct pack *twin;
    pack_print(p, &text);
    CHECK_INT(pack_parse(&ctx, text.text, text.length, &twin), CANVAS_OK, ctx.message);
    pack_print(twin, &again);
    CHECK_TEXT(again.text, text.text, row->text);
    buf_free(&text);
    buf_free(&again);
    pack_free(twin);
    pack_free(p);
  }
}

// The hash of a text, without `canvas 1`, of the rows above.
static struct hash hash_of(const char *text) {
  char whole[2048];
  canvas_context ctx = {""};
  struct pack *p;
  bool decided;
  snprintf(whole, sizeof whole, "canvas 1\n%s", text);
  CHECK_INT(pack_parse(&ctx, whole, strlen(whole), &p), CANVAS_OK, ctx.message);
  struct hash hash = pack_hash(p, &decided);
  CHECK(decided, text);
  pack_free(p);
  return hash;
}

// What each target has counts: not the order, not the sizes, not whether kernels share a text.
static void hash_of_several_kernels(void **state) {
  const char *both = CONV("a") "bind " SIZES_OF("s") "\n" THIN("b") "bind " SIZES_OF("t") " x0=2";
  static const struct {
    const char *text;
    bool same;
  } rows[] = {
      {THIN("b") "bind " SIZES_OF("t") " x0=4\n" CONV("c") "bind " SIZES_OF("s"), true},
      {CONV("a") "bind " SIZES_OF("t") "\n" THIN("b") "bind " SIZES_OF("s") " x0=2", false},
      {CONV("a") "bind " SIZES_OF("s") "\nbind " SIZES_OF("t"), false},
      {CONV("a") "bind " SIZES_OF("s") "\n" THIN("b") "bind " SIZES_OF("u") " x0=2", false},
      {CONV("a") "bind " SIZES_OF("s") "\nkeep " SIZES_OF("t"), false},
      {CONV("a") "bind " SIZES_OF("s") "\n" THIN("b") "bind " SIZES_OF("t") " x0=2\nkeep " SIZES_OF(
           "u"),
       false},
  };
  CHECK_ROWS (rows, row)
    CHECK_INT(hash_equal(hash_of(row->text), hash_of(both)), row->same, row->text);
  CHECK(hash_equal(hash_of(CONV("a") "bind " SIZES_OF("s")), hash_of(CONV("b"))), "one kernel");
  CHECK(hash_equal(hash_of(CONV("a") "bind " SIZES_OF("s") "\n" CONV("b") "bind " SIZES_OF("t")),
                   hash_of(CONV("b"))),
        "one kernel, written twice");
}

// Which kernels of a pack are equal: letters are different kernels, and the digit behind each is the
// number of equal ones before it.
static void equal_kernels_of_a_pack(void **state) {
  static const char pack[] = "canvas 1\n" CONV("a") "bind " SIZES_OF("s") "\n" THIN(
      "b") "bind " SIZES_OF("t") " x0=2\n" CONV("c") "bind " SIZES_OF("u") "\n" CONV(
      "d") "bind " SIZES_OF("v") "\n" THIN("e") "bind " SIZES_OF("w") " x0=4\n";
  static const struct {
    int first, before;
  } expected[] = {{0, 0}, {1, 0}, {0, 1}, {0, 2}, {1, 1}};
  canvas_context ctx = {""};
  struct pack *p;
  CHECK_INT(pack_parse(&ctx, pack, sizeof pack - 1, &p), CANVAS_OK, ctx.message);
  struct pack_kernel *kernels = pack_identify(p);
  const struct pack *at = p;
  for (int i = 0; i < 5; i++, at = at->next) {
    CHECK_INT(kernels[i].first, expected[i].first, at->kernel->name);
    CHECK_INT(kernels[i].before, expected[i].before, at->kernel->name);
    CHECK(hash_equal(kernels[i].hash, kernel_hash(at->kernel, NULL)), at->kernel->name);
    CHECK(kernels[i].decided, at->kernel->name);
  }
  mem_free(kernels);
  pack_free(p);
}

// Kernels with two variables, written in two ways: x0 of one is x1 of the other.
#define TWINS(first, second)                                                        \
  "kernel twins\na = input\nb = fc a to=" first "\nc = relu b\nd = fc c to=" second \
  "\ne = fc d to=C\nout e\n"
#define THIN_S(sizes) THIN("b") "bind " SIZES_OF("s") sizes
#define CONV_T        CONV("a") "bind " SIZES_OF("t")
// Kernels whose variables could be swapped but for their values.
#define PAIR(name)                                                              \
  "kernel " name                                                                \
  "\na = input\nb = fc a to=x0\nc = fc b to=C\nd = fc a to=x1\ne = fc d to=C\n" \
  "f = add c e\nout f\n"

// Packs that mean the same, and what makes others different.
static void compared_packs(void **state) {
  static const struct {
    const char *left, *right, *difference;
  } rows[] = {
      {THIN_S(" x0=2") "\n" CONV_T, CONV_T "\n" THIN_S(" x0=2"), ""},
      {THIN_S(" x0=2") "\nbind " SIZES_OF("t") " x0=4",
       THIN("b") "bind " SIZES_OF("t") " x0=4\n" THIN("c") "bind " SIZES_OF("s") " x0=2", ""},
      {THIN_S(" x0=2") "\n" CONV_T, THIN_S(" x0=3") "\n" CONV_T, "target 's' has different sizes"},
      {THIN_S(" x0=2") "\n" CONV_T, CONV("a") "bind " SIZES_OF("s") "\nbind " SIZES_OF("t"),
       "target 's' has different kernels"},
      {THIN_S(" x0=2") "\nkeep " SIZES_OF("t"), THIN_S(" x0=2") "\n" CONV_T,
       "target 't' is kept in only one of them"},
      {THIN_S(" x0=2") "\n" CONV_T, THIN_S(" x0=2") "\nkeep " SIZES_OF("t"),
       "target 't' is kept in only one of them"},
      {THIN_S(" x0=2"), THIN_S(" x0=2") "\nkeep " SIZES_OF("t"),
       "target 't' stands in only one of them"},
      {THIN_S(" x0=2") "\nkeep " SIZES_OF("t"), THIN_S(" x0=2"),
       "target 't' stands in only one of them"},
      {THIN_S(" x0=2") "\nkeep t C=8 H=5 W=4", THIN_S(" x0=2") "\nkeep t C=8 H=4 W=5",
       "target 't' has different sizes"},
      {THIN_S(" x0=2") "\nkeep t C=8 H=5 W=4", THIN_S(" x0=2") "\nkeep t C=8 H=5 W=4 groups=2",
       "target 't' has different sizes"},
      {THIN_S(" x0=2") "\nkeep t C=8 H=5 W=4\nkeep u C=8 H=5 W=4",
       THIN_S(" x0=2") "\nkeep u C=8 H=5 W=4\nkeep t C=8 H=5 W=4", ""},
      {CONV("a") "bind s C=8 H=6 W=4 stride=2\n" CONV_T, CONV("a") "bind s C=8 H=6 W=4\n" CONV_T,
       "target 's' has different sizes"},
      {"kernel g\na = input\nb = group a by=G\nc = fc b to=C\nout c\nbind s C=8 H=5 W=4 G=2",
       "kernel g\na = input\nb = group a by=G\nc = fc b to=C\nout c\nbind s C=8 H=5 W=4 G=4",
       "target 's' has different sizes"},
      {CONV("b") "norm batch\nbind " SIZES_OF("s"), CONV("b") "bind " SIZES_OF("s"), ""},
      {TWINS("x0", "C") "norm batch\nbind " SIZES_OF("s") " x0=2",
       TWINS("x0", "C") "bind " SIZES_OF("s") " x0=2", "target 's' has a norm in only one of them"},
      {TWINS("x0", "x1") "bind " SIZES_OF("s") " x0=2 x1=3",
       TWINS("x1", "x0") "bind " SIZES_OF("s") " x0=3 x1=2", ""},
      {TWINS("x0", "x1") "bind " SIZES_OF("s") " x0=2 x1=3",
       TWINS("x1", "x0") "bind " SIZES_OF("s") " x0=2 x1=3", "target 's' has different sizes"},
      {PAIR("p") "bind " SIZES_OF("s") " x0=2 x1=3", PAIR("p") "bind " SIZES_OF("s") " x0=3 x1=2",
       ""},
      {PAIR("p") "bind " SIZES_OF("s") " x0=2 x1=3", PAIR("p") "bind " SIZES_OF("s") " x0=3 x1=3",
       "target 's' has different sizes"},
      {CONV("a"), CONV("b"), ""},
      {CONV("a"), THIN("a"), "the kernels differ"},
      {CONV("a"), CONV_T, "target 't' stands in only one of them"},
  };
  CHECK_ROWS (rows, row) {
    for (int turned = 0; turned < 2; turned++) {
      char text[2][2048];
      canvas_context ctx = {""};
      struct pack *p[2];
      struct buf difference = {0};
      snprintf(text[turned], sizeof *text, "canvas 1\n%s", row->left);
      snprintf(text[!turned], sizeof *text, "canvas 1\n%s", row->right);
      for (int i = 0; i < 2; i++)
        CHECK_INT(pack_parse(&ctx, text[i], strlen(text[i]), &p[i]), CANVAS_OK, ctx.message);
      CHECK_INT(pack_compare(&ctx, p[0], p[1], 0, &difference), CANVAS_OK, ctx.message);
      CHECK_TEXT(difference.text ? difference.text : "", row->difference, row->right);
      buf_free(&difference);
      pack_free(p[0]);
      pack_free(p[1]);
    }
  }
}

// Each value of a variable gives another hash, whatever order of nodes the colours lead to.
static void hashes_at_sizes(void **state) {
  enum { VALUES = 300 };
  static struct hash hashes[VALUES];
  struct kernel *k = kernel_of("canvas 1\n" THIN("thin"));
  bool decided;
  for (int i = 0; i < VALUES; i++) {
    struct sizes sizes = {.value[SIZE_G] = 1, .value[SIZE_X0] = i + 1};
    hashes[i] = kernel_hash_within(k, &sizes, 0, &decided);
    CHECK(decided, "thin");
    for (int j = 0; j < i; j++) CHECK(!hash_equal(hashes[i], hashes[j]), "another value");
  }
  kernel_free(k);
}

// A limit of one step leaves symmetric kernels undecided, unless something else differs.
static void undecided_packs(void **state) {
  static const char
      symmetric[] =
          "kernel p\na = input\nb = relu a\nc = fc b to=C\nd = fc b to=C\ne = add c d\nout e\n",
      twin[] = "kernel q\na = input\nb = abs a\nc = fc b to=C\nd = fc b to=C\ne = add c d\nout e\n";
  static const struct {
    const char *left, *right, *message, *difference;
  } rows[] = {
      {"", "", "a kernel of 'p' is too symmetric to decide", ""},
      {"bind s C=8 H=5 W=4", "bind s C=8 H=5 W=4", "a kernel of 's' is too symmetric to decide",
       ""},
      {"bind s C=8 H=5 W=4", "bind s C=8 H=5 W=4\nkeep t C=8 H=5 W=4", "",
       "target 't' stands in only one of them"},
  };
  CHECK_ROWS (rows, row) {
    char text[2][512];
    canvas_context ctx = {""};
    struct pack *p[2];
    struct buf difference = {0};
    snprintf(text[0], sizeof *text, "canvas 1\n%s%s", symmetric, row->left);
    snprintf(text[1], sizeof *text, "canvas 1\n%s%s", twin, row->right);
    for (int i = 0; i < 2; i++)
      CHECK_INT(pack_parse(&ctx, text[i], strlen(text[i]), &p[i]), CANVAS_OK, ctx.message);
    CHECK_INT(pack_compare(&ctx, p[0], p[1], 1, &difference),
              *row->message ? CANVAS_NONE : CANVAS_OK, row->right);
    CHECK_TEXT(ctx.message, row->message, row->right);
    CHECK_TEXT(difference.text ? difference.text : "", row->difference, row->right);
    CHECK_INT(pack_compare(&ctx, p[0], p[0], 1, &difference), CANVAS_OK, "itself");
    buf_free(&difference);
    pack_free(p[0]);
    pack_free(p[1]);
  }
}

static const struct {
  const char *text, *expected;  // the message, or the bind line with the kernel figure3
} ats[] = {
    {"C=64,H=56,W=56,G=4,x0=48",
     "bind t0 Cin=64 Cout=64 KH=3 KW=3 H=56 W=56 stride=1 G=4 x0=48"
     "   # w0 [1, 48, 64], w1 [1, 12, 64], w2 [1, 64, 48]\n"},
    {" Cin=128 Cout=64, name=layer1.0.conv1, K=5 H=56 W=28 stride=2 x0=10 G=2\n",
     "bind layer1.0.conv1 Cin=128 Cout=64 KH=5 KW=5 H=56 W=28 stride=2 G=2 x0=10"
     "   # w0 [2, 10, 64], w1 [2, 10, 64], w2 [2, 64, 10]\n"},
    {"", "line 1, column 1: Cin is missing, give 'Cin='"},
    {"C=64,H=56,W=56,",
     "line 1, column 16: expected a size such as 'H=56', found the end of the text"},
    {"C=64,,H=56,W=56", "line 1, column 6: expected a size such as 'H=56', found ','"},
    {"64,56,56", "line 1, column 1: expected a size such as 'H=56', found '64'"},
    {"C=64,H=nan,W=56", "line 1, column 8: expected a whole number, found 'nan'"},
    {"C=64,H=56.5,W=56", "line 1, column 8: expected a whole number, found '56.5'"},
    {"C=64,H=56,W=56,x16=4",
     "line 1, column 16: unknown size 'x16', known are C, Cin, Cout, H, W, K, KH, "
     "KW, stride, groups, dilation, projected, G, x0..x15"},
    {"C=64,H=56,W=56,G=4,x0=48,groups=5", "target 't0': groups 5 must divide C_in and C_out"},
    {"C=64,H=56,W=56,norm=layer", "line 1, column 21: expected 'batch' or 'none', found 'layer'"},
    {"C=64,norm batch", "line 1, column 11: expected '=' after 'norm', found 'batch'"},
    {"name a", "line 1, column 6: expected '=' after 'name', found 'a'"},
    {"C=64,H=56,W=56,G=4,x0=48,name=a;b",
     "line 1, column 32: expected a size such as 'H=56', found ';'"},
};

static void at(void **state) {
  CHECK_ROWS (ats, row) {
    canvas_context ctx = {""};
    struct pack *p = bound(figure3, row->text, &ctx);
    struct buf out = {0};
    if (p) binding_print(p->kernel, &p->data[0], &out);
    CHECK_TEXT(p ? out.text : ctx.message, row->expected, row->text);
    buf_free(&out);
    pack_free(p);
  }
}

// -- legality --

static const struct {
  const char *kernel, *at;
  int64_t limit;
  bool exempt;
  const char *expected;
} checks[] = {
    {identity, "C=64,H=8,W=8", 4096, false, ""},
    {identity, "C=64,H=8,W=8", 4095, false,
     "target 't0': node 'a' of kernel 'identity' has 4096 elements, over the limit of 4095"},
    {identity, "Cin=128,Cout=64,H=8,W=8", 8192, false, ""},  // averaged groups differ
    {identity, "Cin=128,Cout=64,H=8,W=8", 8191, false,       // the copies count
     "target 't0': node 'a' of kernel 'identity' has 8192 elements, over the limit of 8191"},
    {identity, "Cin=64,Cout=128,H=8,W=8", 8192, false,
     "target 't0': kernel 'identity' has no weights, its 2 copies side by side would be equal"},
    {identity, "Cin=64,Cout=128,H=8,W=8", 8192, true, ""},
    {convolution, "C=4,H=2,W=2", 144, false, ""},
    {convolution, "C=4,H=2,W=2", 143, false,
     "target 't0': node 'b' of kernel 'convolution' has 144 elements, over the limit of 143"},
    {convolution, "C=4,H=1,W=1", 144, false, ""},
    {convolution, "C=4,H=1,W=1", 143, false,  // weights are tensors, too
     "target 't0': node 'c' of kernel 'convolution' has 144 weights, over the limit of 143"},
    {convolution, "Cin=4,Cout=8,H=1,W=1", 287, false,
     "target 't0': node 'c' of kernel 'convolution' has 288 weights, over the limit of 287"},
};

static void legality(void **state) {
  CHECK_ROWS (checks, row) {
    canvas_context ctx = {""};
    struct pack *p = bound(row->kernel, row->at, &ctx);
    CHECK_TEXT(ctx.message, "", row->at);
    binding_check(&ctx, p->kernel, &p->data[0], row->limit, row->exempt);
    CHECK_TEXT(ctx.message, row->expected, row->at);
    pack_free(p);
  }
}

// -- cost --

// The published FLOPs (2*macs + elementwise) and parameters. There the pooling of a strided input
// is counted for every copy; here it is done and counted once.
static const struct {
  const char *kernel, *at;
  int64_t flops, params;
} published[] = {
    {convolution, "C=64,H=56,W=56", 231211008, 36864},
    {convolution, "Cin=64,Cout=128,H=56,W=56,stride=2", 116006912, 73728},
    {depthwise, "C=64,H=56,W=56", 3612672, 576},
    {depthwise, "Cin=64,Cout=128,H=56,W=56,stride=2", 2207744, 1152},
    {grouped, "C=64,H=56,W=56,G=4", 57802752, 9216},
    {grouped, "Cin=64,Cout=128,H=56,W=56,stride=2,G=4", 29302784, 18432},
    {involution, "C=64,H=56,W=56,G=4,x0=16", 13698048, 1600},
    {involution, "Cin=64,Cout=128,H=56,W=56,stride=2,G=4,x0=16", 7250432, 3200},
    {squeeze, "C=64,H=56,W=56,x0=16", 405712, 2048},
    {squeeze, "Cin=64,Cout=128,H=56,W=56,stride=2,x0=16", 610720, 4096},
};

static void published_cost(void **state) {
  CHECK_ROWS (published, row) {
    canvas_context ctx = {""};
    struct cost c;
    struct pack *p = bound(row->kernel, row->at, &ctx);
    CHECK_TEXT(ctx.message, "", row->at);
    CHECK(pack_cost(p, &c), row->at);
    const struct target *t = &p->data[0].target;
    int64_t pooled_again = t->stride > 1 ? (t->cout - t->cin) * t->h * t->w : 0;
    CHECK_INT(2 * c.macs + c.elementwise + pooled_again, row->flops, row->at);
    CHECK_INT(c.params, row->params, row->at);
    pack_free(p);
  }
}

static const struct {
  const char *kernel, *at;
  struct cost cost;
} costs[] = {
    // macs, params, activations, elementwise, bytes
    {identity, "C=8,H=5,W=7", {0, 0, 0, 0, 0}},
    // the input is pooled: 5x7 -> 3x4, 8*12 results of 4 terms each
    {identity, "C=8,H=5,W=7,stride=2", {0, 0, 96, 384, 4 * (280 + 96)}},
    // four groups of 2 channels are averaged: 8*35 values read, 2*35 written
    {identity, "Cin=8,Cout=2,H=5,W=7", {0, 0, 70, 280, 4 * (280 + 70)}},
    {identity,
     "Cin=8,Cout=2,H=5,W=7,stride=2",
     {0, 0, 96 + 24, 384 + 96, 4 * (280 + 96 + 96 + 24)}},
    // two copies read 2*4*12 and write as much: 2 * (4*4*12 macs), 2*16 weights
    {KERNEL("pointwise", "b = fc a to=C\nout b\n"),
     "Cin=4,Cout=8,H=3,W=4",
     {384, 32, 96, 0, 4 * (96 + 96 + 32)}},
    {KERNEL("pointwise", "b = fc a to=C\nout b\n"),
     "Cin=8,Cout=4,H=3,W=4",
     {384, 32, 96 + 48, 96, 4 * (96 + 96 + 32) + 4 * (96 + 48)}},
    // the mean reads 280 and writes 8, the product reads 8 and 280 and writes 280
    {KERNEL("excite", "b = fold a mean over=H,W\nc = mul b a\nout c\n"),
     "C=8,H=5,W=7",
     {0, 0, 8 + 280, 280 + 280, 4 * (280 + 8) + 4 * (8 + 280 + 280)}},
};

static void cost(void **state) {
  CHECK_ROWS (costs, row) {
    canvas_context ctx = {""};
    struct cost c;
    struct pack *p = bound(row->kernel, row->at, &ctx);
    CHECK_TEXT(ctx.message, "", row->at);
    CHECK(binding_cost(p->kernel, &p->data[0], &c), row->at);
    CHECK_INT(c.macs, row->cost.macs, row->at);
    CHECK_INT(c.params, row->cost.params, row->at);
    CHECK_INT(c.activations, row->cost.activations, row->at);
    CHECK_INT(c.elementwise, row->cost.elementwise, row->at);
    CHECK_INT(c.bytes, row->cost.bytes, row->at);
    pack_free(p);
  }
}

// The layouts in a pack's text hold exactly the weights that are counted.
static void weights_add_up(void **state) {
  CHECK_ROWS (published, row) {
    canvas_context ctx = {""};
    struct pack *p = bound(row->kernel, row->at, &ctx);
    int64_t sum = 0;
    for (int i = 0; i < p->kernel->count; i++) {
      int64_t axes[WEIGHT_AXES], elements = 1;
      int count = weight_shape(p->kernel, &p->data[0], i, axes);
      for (int a = 0; a < count; a++) elements *= axes[a];
      sum += count ? elements : 0;
    }
    CHECK_INT(sum, row->params, row->at);
    pack_free(p);
  }
}

// A row that owns weights has the hook that says their shape, and no other has.
static void rows_with_weights_have_their_shape(void **state) {
  CHECK_ROWS (primitive_rows, row) {
    CHECK_INT(!!row->family->weight, !!(row->facts & FACT_WEIGHTS), row->word);
  }
}

static void hostile_sizes(void **state) {
  canvas_context ctx = {""};
  assert_null(bound(identity, "Cin=16777216,Cout=1,H=65536,W=1,stride=16777216,K=1,x0=1", &ctx));
  assert_null(bound(narrow, "C=16777216,H=1,W=1,K=1,x0=16777216,x1=16777216", &ctx));
  assert_null(bound(KERNEL("power", "b = fc a to=x0*x0*x0*x0*x0*x0*x0*x0\nc = fc b to=C\nout c\n"),
                    "C=1,H=1,W=1,x0=16777216", &ctx));
  CHECK_TEXT(ctx.message,
             "target 't0': node 'b' of kernel 'power': x0*x0*x0*x0*x0*x0*x0*x0 is too large",
             "power");
  struct binding b;
  assert_int_equal(binding_parse_at(&ctx, "C=1\0", 4, &b), CANVAS_BAD_INPUT);
}

CHECK_MAIN(cmocka_unit_test(text), cmocka_unit_test(norm_lines), cmocka_unit_test(inner_weights),
           cmocka_unit_test(print_is_stable), cmocka_unit_test(several_kernels),
           cmocka_unit_test(hash_of_several_kernels), cmocka_unit_test(equal_kernels_of_a_pack),
           cmocka_unit_test(compared_packs), cmocka_unit_test(hashes_at_sizes),
           cmocka_unit_test(undecided_packs), cmocka_unit_test(at), cmocka_unit_test(legality),
           cmocka_unit_test(published_cost), cmocka_unit_test(cost),
           cmocka_unit_test(weights_add_up), cmocka_unit_test(rows_with_weights_have_their_shape),
           cmocka_unit_test(hostile_sizes))
