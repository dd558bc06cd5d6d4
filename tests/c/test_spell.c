/* PyTorch text and pictures of kernels: what each node and each pattern is spelled as. That the text
 * computes what it should is tested in tests/python/test_torch_equals_interpreter.py. */
#include <stdlib.h>

#include "check.h"
#include "run/child.h"
#include "spell/spell.h"

static struct pack *parse(const char *nodes, const char *bind) {
  canvas_context ctx = {0};
  struct buf text = {0};
  struct pack *p;
  buf_puts(&text, "canvas 1\nkernel k\na = input\n");
  for (const char *c = nodes; *c; c++) buf_bytes(&text, *c == ';' ? "\n" : c, 1);
  buf_printf(&text, "\n%s\n", bind);
  if (pack_parse(&ctx, text.text, text.length, &p) != CANVAS_OK) fail_msg("%s", ctx.message);
  buf_free(&text);
  return p;
}

static char *spell(const char *nodes, const char *bind, bool patterns, const struct gains *gains) {
  canvas_context ctx = {0};
  struct buf out = {0};
  struct pack *p = parse(nodes, bind);
  if (spell_torch(&ctx, p, gains, patterns, &out) != CANVAS_OK) fail_msg("%s", ctx.message);
  pack_free(p);
  return buf_take(&out);
}

#define BIND "bind t Cin=64 Cout=64 KH=3 KW=3 H=8 W=8 stride=1"

/* nodes -> lines of `template`, with patterns and without */
static const struct {
  const char *nodes, *patterns, *literal;
} templates[] = {
    {"out a", "        return a\n", "        return a\n"},
    {"b = fc a to=C;out b",
     "        N, C, H, W = a.shape\n"
     "        b = F.conv2d(a, self.w0[copy].reshape(C, C, 1, 1))\n"
     "        return b\n",
     "        N, C, H, W = a.shape\n"
     "        b = torch.matmul(self.w0[copy], a.reshape(N, C, H * W)).reshape(N, C, H, W)\n"
     "        return b\n"},
    {"b = exp a;out b",
     "        b = torch.exp(torch.clamp(a, max=4.0))\n"
     "        return b\n",
     NULL},
    {"b = fc a to=C/2;c = fc b to=C;out c",
     "        N, C, H, W = a.shape\n"
     "        b = F.conv2d(a, self.w0[copy].reshape(C // 2, C, 1, 1))\n"
     "        c = F.conv2d(b, self.w1[copy].reshape(C, C // 2, 1, 1))\n"
     "        return c\n",
     "        N, C, H, W = a.shape\n"
     "        b = torch.matmul(self.w0[copy], a.reshape(N, C, H * W)).reshape(N, C // 2, H, W)\n"
     "        c = torch.matmul(self.w1[copy], b.reshape(N, C // 2, H * W)).reshape(N, C, H, W)\n"
     "        return c\n"},
    {"b = unfold a over=H,W k=K;c = fc b to=C;out c",
     "        KH, KW = self.kh, self.kw\n"
     "        c = F.conv2d(a, self.w0[copy], padding=(KH // 2, KW // 2))\n"
     "        return c\n",
     "        N, C, H, W = a.shape\n"
     "        KH, KW = self.kh, self.kw\n"
     "        b_padded = F.pad(a, (KW // 2, KW // 2, KH // 2, KH // 2))\n"
     "        b_rows = torch.stack([b_padded[..., i:i + H, :] for i in range(KH)], dim=2)\n"
     "        b = torch.stack([b_rows[..., i:i + W] for i in range(KW)], dim=3)\n"
     "        c = torch.matmul(self.w0[copy].reshape(C, C * KH * KW), "
     "b.reshape(N, C * KH * KW, H * W)).reshape(N, C, H, W)\n"
     "        return c\n"},
    {"b = unfold a over=W k=5;c = group b each;d = fc c to=C;out d",
     "        N, C, H, W = a.shape\n"
     "        d = F.conv2d(a, self.w0[copy].reshape(C, 1, 1, 5), padding=(0, 2), groups=C)\n"
     "        return d\n",
     "        N, C, H, W = a.shape\n"
     "        b_padded = F.pad(a, (2, 2))\n"
     "        b = torch.stack([b_padded[..., i:i + W] for i in range(5)], dim=2)\n"
     "        c = b\n"
     "        d = torch.matmul(self.w0[copy].reshape(C, 1, 5), c.reshape(N, C, 5, H * W))"
     ".reshape(N, C, H, W)\n"
     "        return d\n"},
    {"b = unfold a over=H,W k=3;c = fold b max over=KH,KW;out c",
     "        c_padded = F.pad(a, (1, 1, 1, 1))\n"
     "        c = F.max_pool2d(c_padded, (3, 3), stride=1)\n"
     "        return c\n",
     "        N, C, H, W = a.shape\n"
     "        b_padded = F.pad(a, (1, 1, 1, 1))\n"
     "        b_rows = torch.stack([b_padded[..., i:i + H, :] for i in range(3)], dim=2)\n"
     "        b = torch.stack([b_rows[..., i:i + W] for i in range(3)], dim=3)\n"
     "        c = b.amax(dim=(2, 3))\n"
     "        return c\n"},
    {"b = fold a mean over=H;c = fold b mean over=W;d = fc c to=C;e = mul d a;out e",
     "        N, C, H, W = a.shape\n"
     "        c = a.mean(dim=(2, 3))\n"
     "        d = F.linear(c, self.w0[copy])\n"
     "        e = d.reshape(N, C, 1, 1) * a\n"
     "        return e\n",
     "        N, C, H, W = a.shape\n"
     "        b = a.mean(dim=2)\n"
     "        c = b.mean(dim=2)\n"
     "        d = torch.matmul(self.w0[copy], c.reshape(N, C, 1)).reshape(N, C)\n"
     "        e = d.reshape(N, C, 1, 1) * a\n"
     "        return e\n"},
    {"b = fold a max over=H;c = fold b max over=W;d = mul c a;out d",
     "        N, C, H, W = a.shape\n"
     "        c = a.amax(dim=(2, 3))\n"
     "        d = c.reshape(N, C, 1, 1) * a\n"
     "        return d\n",
     "        N, C, H, W = a.shape\n"
     "        b = a.amax(dim=2)\n"
     "        c = b.amax(dim=2)\n"
     "        d = c.reshape(N, C, 1, 1) * a\n"
     "        return d\n"},
    {"b = unfold a over=H k=3;c = unfold b over=W k=3;d = fold c mean over=KW;e = fc d to=C;out e",
     "        N, C, H, W = a.shape\n"
     "        b_padded = F.pad(a, (0, 0, 1, 1))\n"
     "        b = torch.stack([b_padded[..., i:i + H, :] for i in range(3)], dim=2)\n"
     "        d = F.avg_pool2d(b.reshape(N, 3 * C, H, W), (1, 3), stride=1, padding=(0, 1))\n"
     "        d = d.reshape(N, C, 3, H, W)\n"
     "        e = F.conv2d(d.reshape(N, 3 * C, H, W), self.w0[copy].reshape(C, 3 * C, 1, 1))\n"
     "        return e\n",
     "        N, C, H, W = a.shape\n"
     "        b_padded = F.pad(a, (0, 0, 1, 1))\n"
     "        b = torch.stack([b_padded[..., i:i + H, :] for i in range(3)], dim=2)\n"
     "        c_padded = F.pad(b, (1, 1))\n"
     "        c = torch.stack([c_padded[..., i:i + W] for i in range(3)], dim=3)\n"
     "        d = c.mean(dim=3)\n"
     "        e = torch.matmul(self.w0[copy].reshape(C, 3 * C), d.reshape(N, 3 * C, H * W))"
     ".reshape(N, C, H, W)\n"
     "        return e\n"},
    {"b = unfold a over=H k=3;c = tanh b;d = unfold c over=W k=3;e = fold d mean over=KH,KW;out e",
     "        N, C, H, W = a.shape\n"
     "        b_padded = F.pad(a, (0, 0, 1, 1))\n"
     "        b = torch.stack([b_padded[..., i:i + H, :] for i in range(3)], dim=2)\n"
     "        c = torch.tanh(b)\n"
     "        d_padded = F.pad(c, (1, 1))\n"
     "        d = torch.stack([d_padded[..., i:i + W] for i in range(3)], dim=3)\n"
     "        e = d.mean(dim=(2, 3))\n"
     "        return e\n",
     NULL},
    {"b = shift a over=H,W by=-2;c = softmax b over=C,H;d = neg c;e = min d a;out e",
     "        N, C, H, W = a.shape\n"
     "        b = torch.roll(a, (-2, -2), dims=(2, 3))\n"
     "        c = torch.softmax(b.flatten(1, 2), dim=1).reshape(N, C, H, W)\n"
     "        d = -c\n"
     "        e = torch.minimum(d, a)\n"
     "        return e\n",
     NULL},
    {"b = unfold a over=H k=K stride=S;c = unfold b over=W k=3 stride=S dilation=2;d = fc c "
     "to=C;out d",
     "        KH, S = self.kh, self.stride\n"
     "        d = F.conv2d(a, self.w0[copy], stride=(S, S), padding=(KH // 2, 2), dilation=(1, "
     "2))\n"
     "        return d\n",
     "        N, C, H, W = a.shape\n"
     "        KH, S = self.kh, self.stride\n"
     "        b_padded = F.pad(a, (0, 0, KH // 2, KH // 2))\n"
     "        b = torch.stack([b_padded[..., i:i + H:S, :] for i in range(KH)], dim=2)\n"
     "        c_padded = F.pad(b, (2, 2))\n"
     "        c = torch.stack([c_padded[..., i * 2:i * 2 + W:S] for i in range(3)], dim=3)\n"
     "        d = torch.matmul(self.w0[copy].reshape(C, 3 * C * KH), c.reshape(N, 3 * C * KH, H * "
     "W // S // S)).reshape(N, C, H // S, W // S)\n"
     "        return d\n"},
    {"b = subsample a over=H,W by=S;c = unfold b over=H,W k=3;d = fc c to=C;out d",
     "        S = self.stride\n"
     "        b = a[..., ::S, ::S]\n"
     "        d = F.conv2d(b, self.w0[copy], padding=(1, 1))\n"
     "        return d\n",
     "        N, C, H, W = a.shape\n"
     "        S = self.stride\n"
     "        b = a[..., ::S, ::S]\n"
     "        c_padded = F.pad(b, (1, 1, 1, 1))\n"
     "        c_rows = torch.stack([c_padded[..., i:i + H // S, :] for i in range(3)], dim=2)\n"
     "        c = torch.stack([c_rows[..., i:i + W // S] for i in range(3)], dim=3)\n"
     "        d = torch.matmul(self.w0[copy].reshape(C, 9 * C), c.reshape(N, 9 * C, H * W // S // "
     "S)).reshape(N, C, H // S, W // S)\n"
     "        return d\n"},
    {"b = subsample a over=W by=S;c = fc b to=C;d = subsample c over=H by=S;out d",
     "        N, C, H, W = a.shape\n"
     "        S = self.stride\n"
     "        c = F.conv2d(a, self.w0[copy].reshape(C, C, 1, 1), stride=(1, S))\n"
     "        d = c[..., ::S, :]\n"
     "        return d\n",
     "        N, C, H, W = a.shape\n"
     "        S = self.stride\n"
     "        b = a[..., :, ::S]\n"
     "        c = torch.matmul(self.w0[copy], b.reshape(N, C, H * W // S)).reshape(N, C, H, W // "
     "S)\n"
     "        d = c[..., ::S, :]\n"
     "        return d\n"},
    {"b = unfold a over=H,W k=3 dilation=2;c = fold b mean over=KH,KW;out c",
     "        N, C, H, W = a.shape\n"
     "        b_padded = F.pad(a, (2, 2, 2, 2))\n"
     "        b_rows = torch.stack([b_padded[..., i * 2:i * 2 + H, :] for i in range(3)], dim=2)\n"
     "        b = torch.stack([b_rows[..., i * 2:i * 2 + W] for i in range(3)], dim=3)\n"
     "        c = b.mean(dim=(2, 3))\n"
     "        return c\n",
     NULL},
    {"lambda = relu a;C = sin lambda;W_ = tanh C;W = abs W_;out W",
     "        lambda_ = F.relu(a)\n"
     "        C_ = torch.sin(lambda_ * 1.5707963267948966)\n"
     "        W_ = torch.tanh(C_)\n"
     "        W__ = torch.abs(W_)\n"
     "        return W__\n",
     NULL},
};

static const char *body(const char *text) {
  const char *doc = strstr(text, "of one copy.\"\"\"\n");
  return doc ? doc + strlen("of one copy.\"\"\"\n") : text;
}

static void template_lines(void **state) {
  CHECK_ROWS (templates, row) {
    char *with = spell(row->nodes, BIND, true, NULL),
         *without = spell(row->nodes, BIND, false, NULL);
    CHECK_TEXT(body(with), row->patterns, row->nodes);
    CHECK_TEXT(body(without), row->literal ? row->literal : row->patterns, row->nodes);
    free(with);
    free(without);
  }
}

#define CONV "b = unfold a over=H,W k=K;c = fc b to=x0;d = fc c to=C;out d"

/* bindings, gains -> pieces that stand in the text, and one that does not */
static const struct {
  const char *bind;
  struct gains gains;
  const char *has, *has_not;
} modules[] = {
    {"", {{1, 1}}, "    BINDINGS = ()\n", "avg_pool2d"},
    {"bind t Cin=8 Cout=8 KH=3 KW=5 H=6 W=7 stride=1 x0=4",
     {{1, 1}},
     "dict(name=\"t\", cin=8, cout=8, kh=3, kw=5, h=6, w=7, stride=1, x0=4),\n",
     "torch.cat"},
    {"bind t Cin=8 Cout=8 KH=3 KW=5 H=6 W=7 stride=1 x0=4",
     {{1, 1}},
     "        self.w0 = nn.Parameter(torch.empty(self.copies, x0, C, KH, KW))\n",
     "self.g"},
    {"bind t Cin=8 Cout=16 KH=3 KW=3 H=6 W=7 stride=1 x0=4",
     {{1, 1}},
     "return torch.cat(results, dim=1)\n",
     "chunk"},
    {"bind t Cin=16 Cout=8 KH=3 KW=3 H=6 W=7 stride=1 x0=4",
     {{1, 1}},
     "results = [torch.stack(block).mean(dim=0) for block in blocks]\n",
     "torch.cat"},
    {"bind t Cin=16 Cout=24 KH=3 KW=3 H=6 W=7 stride=1 x0=4",
     {{1, 1}},
     "results = [self.template(parts[i % n], i) for i in range(self.copies)]\n",
     "dilation"},
    {"bind t Cin=8 Cout=8 KH=3 KW=3 H=6 W=7 stride=1 dilation=2 x0=4",
     {{1, 1}},
     ", padding=(KH // 2 * D, KW // 2 * D), dilation=(D, D))\n",
     "chunk"},
    {"bind t Cin=8 Cout=8 KH=3 KW=3 H=6 W=7 stride=2 x0=4",
     {{1, 1}},
     "F.avg_pool2d(x, self.stride, ceil_mode=True, count_include_pad=False)\n",
     "chunk"},
    {"bind t Cin=8 Cout=8 KH=3 KW=3 H=6 W=7 stride=1 x0=4",
     {{0.25, 12.5}},
     "std = 12.5 / math.sqrt(self.w1[0, 0].numel())\n",
     "std = 1 /"},
};

static void module_lines(void **state) {
  CHECK_ROWS (modules, row) {
    char *text = spell(CONV, row->bind, true, &row->gains);
    CHECK(strstr(text, row->has) != NULL, row->has);
    CHECK(strstr(text, row->has_not) == NULL, row->has_not);
    free(text);
  }
}

/* The stride, by S or by pooling. */
static void strided_module(void **state) {
  static const struct {
    const char *bind;
    bool checked;
  } rows[] = {{"bind t Cin=8 Cout=8 KH=3 KW=3 H=6 W=8 stride=2", true},
              {"bind t Cin=8 Cout=8 KH=3 KW=3 H=6 W=7 stride=1", false}};
  CHECK_ROWS (rows, row) {
    char *text =
        spell("b = unfold a over=H,W k=K stride=S;c = fc b to=C;out c", row->bind, true, NULL);
    const char *check = "if x.shape[2] % self.stride or x.shape[3] % self.stride:\n";
    CHECK(!strstr(text, "avg_pool2d"), text);
    CHECK_INT(strstr(text, check) != NULL, row->checked, text);
    CHECK(strstr(text, "weights of one copy") && strstr(text, "[N, C, H // S, W // S]"), text);
    free(text);
  }
}

static void without_weights(void **state) {
  char *text = spell("out a", BIND, true, NULL);
  CHECK(strstr(text, "reset_parameters") == NULL, "out a");
  free(text);
}

/* The same kernel gives the same bytes. */
static void deterministic(void **state) {
  char *first = spell(CONV, "", true, NULL), *second = spell(CONV, "", true, NULL);
  CHECK_TEXT(first, second, CONV);
  free(first);
  free(second);
}

/* `count` different kernels: every sequence of five maps is one. */
static struct pack *many_kernels(int count) {
  static const char *const maps[] = {"relu", "abs", "tanh", "exp", "gelu", "sqr"};
  canvas_context ctx = {0};
  struct buf text = {0};
  struct pack *p;
  buf_puts(&text, "canvas 1\n");
  for (int i = 0; i < count; i++) {
    buf_puts(&text, "kernel k\na = input\n");
    for (int j = 0, rest = i; j < 5; j++, rest /= 6)
      buf_printf(&text, "%c = %s %c\n", 'b' + j, maps[rest % 6], 'a' + j);
    buf_printf(&text, "out f\nbind a_name_that_many_begin_with_%d C=8 H=5 W=4\n", i);
  }
  if (pack_parse(&ctx, text.text, text.length, &p) != CANVAS_OK) fail_msg("%s", ctx.message);
  buf_free(&text);
  return p;
}

/* Seconds of the processor per kernel for all that is done with a pack of `count` kernels. */
static double seconds_per_kernel(int count) {
  canvas_context ctx = {0};
  double start = clock_processor();
  struct pack *p = many_kernels(count);
  struct buf module = {0}, picture = {0};
  bool decided;
  if (spell_torch(&ctx, p, NULL, true, &module) != CANVAS_OK) fail_msg("%s", ctx.message);
  spell_pack_svg(p, &picture);
  pack_hash(p, &decided);
  CHECK_INT(pack_kernels(p), count, "kernels");
  buf_free(&module);
  buf_free(&picture);
  pack_free(p);
  return (clock_processor() - start) / count;
}

/* As many kernels as a pack may have take time in proportion to their number: 16 times as many took
 * 10 times as long for each when the hashes of all were computed for each. */
static void many_kernels_take_linear_time(void **state) {
  double few = seconds_per_kernel(TARGETS_MAX / 16), many = seconds_per_kernel(TARGETS_MAX);
  if (many > 4 * few) fail_msg("%g s for a kernel of many, %g s of few", many, few);
}

static void picture(void **state) {
  struct buf out = {0};
  struct pack *p = parse("b = fc a to=C;c = add a b;out c", "");
  spell_dot(p->kernel, &out);
  CHECK_TEXT(out.text,
             "digraph \"k\" {\n"
             "  node [shape=box, fontname=\"Helvetica\", fontsize=11];\n"
             "  edge [arrowsize=0.7];\n"
             "  n0 [label=\"a = input\\n[C H W]\", style=\"dashed,rounded\"];\n"
             "  n1 [label=\"b = fc a to=C\\n[C H W]\", style=\"filled,rounded\", "
             "fillcolor=\"#dbe7f5\"];\n"
             "  n2 [label=\"c = add a b\\n[C H W]\", style=\"rounded\"];\n"
             "  n3 [label=\"out c\\n[C H W]\", style=\"dashed,rounded\"];\n"
             "  n0 -> n1;\n"
             "  n0 -> n2;\n"
             "  n1 -> n2;\n"
             "  n2 -> n3;\n"
             "}\n",
             "add");
  buf_free(&out);
  pack_free(p);
}

CHECK_MAIN(cmocka_unit_test(template_lines), cmocka_unit_test(module_lines),
           cmocka_unit_test(strided_module), cmocka_unit_test(without_weights),
           cmocka_unit_test(deterministic), cmocka_unit_test(many_kernels_take_linear_time),
           cmocka_unit_test(picture))
