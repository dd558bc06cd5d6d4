/* A pack as a PyTorch module.
 *
 *   class Kernel_<hash>(nn.Module)
 *     BINDINGS               the sizes of every target
 *     __init__               one binding's sizes as plain ints, the weights w0, w1, ...
 *     binding                which one: by the target's name, or by sizes that fit only one
 *     reset_parameters       normal, gain / sqrt(fan_in)
 *     fold                   where norms are: for inference, into weights and biases b0, ...
 *     _apply                 where a weight has five axes: what .to(memory_format=..) does to it
 *     forward                pools by the stride unless the kernel takes it, cuts into copies (paper
 *                            figure 2)
 *     template               the kernel, one line or a few per node
 *   KERNELS                  for several kernels or kept targets: the class of each target
 *
 * forward writes no attribute and takes N, H, W from its input, so that compile and export trace
 * it; contractions are convolutions or matrix products, so that every counter of FLOPs sees them. A
 * node is spelled if somebody reads it: `plan` asks from the output backwards, patterns first.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "primitive/spelling.h"
#include "spell/spell.h"

struct plan {
  bool wanted[KERNEL_NODES_MAX];
  const struct pattern *pattern[KERNEL_NODES_MAX]; /* NULL: the family's own text */
  int reads[KERNEL_NODES_MAX][2];                  /* what a pattern reads, the source first */
};

static void make_plan(const struct spelling *s, bool patterns, struct plan *p) {
  const struct kernel *k = s->k;
  *p = (struct plan){0};
  p->wanted[k->count - 1] = true;
  for (int i = k->count - 1; i > 0; i--) {
    if (!p->wanted[i]) continue;
    if (patterns) p->pattern[i] = pattern_find(s, i, p->reads[i]);
    if (p->pattern[i]) {
      p->wanted[p->reads[i][0]] = true;
      if (p->reads[i][1] >= 0) p->wanted[p->reads[i][1]] = true;
      continue;
    }
    for (int j = 0; j < node_row(&k->nodes[i])->arity; j++) p->wanted[k->nodes[i].in[j]] = true;
  }
}

/* -- pieces -- */

static bool is_kept(const struct kernel *k, enum size s) {
  return s != SIZE_C && s != SIZE_H && s != SIZE_W && s != SIZE_S && kernel_uses(k, s);
}

/* "g", "kh", "stride", "x0": the attribute and the key of a binding. */
static void attribute(enum size size, char out[8]) {
  snprintf(out, 8, "%s", size == SIZE_S ? "stride" : size_name(size));
  for (char *p = out; *p; p++)
    if (*p >= 'A' && *p <= 'Z') *p = (char)(*p - 'A' + 'a');
}

/* `G, x0 = self.g, self.x0` for the sizes in the set, D for the dilation. */
static void print_locals(struct buf *out, unsigned sizes) {
  struct buf right = {0};
  const char *comma = "";
  char name[8];
  for (enum size i = 0; i < SIZES; i++) {
    if (!(sizes >> i & 1)) continue;
    attribute(i, name);
    buf_printf(out, "%s%s", *comma ? comma : "        ", size_name(i));
    buf_printf(&right, "%sself.%s", comma, name);
    comma = ", ";
  }
  if (sizes & SPELLING_DILATION) {
    buf_printf(out, "%sD", *comma ? comma : "        ");
    buf_printf(&right, "%sself.dilation", comma);
    comma = ", ";
  }
  if (*comma) buf_printf(out, " = %s\n", right.text);
  buf_free(&right);
}

/* Facts of all bindings: what forward must be able to do. */
struct needs {
  bool pooled, strided, dilated, projected, side_by_side, averaged, fixed_hw;
};

static void print_binding(struct buf *out, const struct kernel *k, const struct needs *needs,
                          const struct binding *b) {
  const struct target *t = &b->target;
  char name[8];
  buf_printf(out,
             "        dict(name=\"%s\", cin=%" PRId64 ", cout=%" PRId64 ", kh=%" PRId64
             ", kw=%" PRId64 ", h=%" PRId64 ", w=%" PRId64 ", stride=%" PRId64,
             t->name, t->cin, t->cout, b->sizes.value[SIZE_KH], b->sizes.value[SIZE_KW], t->h, t->w,
             t->stride);
  if (needs->dilated) buf_printf(out, ", dilation=%" PRId64, t->dilation);
  if (needs->projected) buf_printf(out, ", projected=%" PRId64, t->projected);
  for (enum size i = 0; i < SIZES; i++) {
    if (i == SIZE_KH || i == SIZE_KW || !is_kept(k, i)) continue;
    attribute(i, name);
    buf_printf(out, ", %s=%" PRId64, name, b->sizes.value[i]);
  }
  buf_puts(out, "),\n");
}

static struct needs needs_of(const struct pack *p) {
  struct needs n = {.fixed_hw = kernel_needs_fixed_hw(p->kernel)};
  for (int i = 0; i < p->count; i++) {
    const struct target *t = &p->data[i].target;
    n.pooled |= binding_pooling(&p->data[i]) > 1;
    n.strided |= p->data[i].sizes.value[SIZE_S] > 1;
    n.dilated |= t->dilation > 1;
    n.projected |= t->projected;
    n.side_by_side |= target_out_blocks(t) > 1;
    n.averaged |= target_in_blocks(t) > 1;
  }
  return n;
}

/* -- sections, in the order of the text -- */

static void print_docstring(struct buf *out, const struct pack *p, struct hash hash) {
  struct buf text = {0};
  kernel_print(p->kernel, &text);
  if (pack_norm(p) != NORM_NONE) buf_puts(&text, "norm batch\n");
  buf_printf(out, "    \"\"\"Kernel '%s', written by canvas " CANVAS_VERSION ".\n\n",
             p->kernel->name);
  buf_puts(out,
           "    Input [N, C_in, H, W], output [N, C_out, ceil(H/stride), ceil(W/stride)] of one"
           " of BINDINGS,\n    which `target` names or (c, h, w) tell: C_in and the size of the"
           " input.\n\n");
  buf_printf(out, "        # hash %016" PRIx64 "%016" PRIx64 "\n", hash.high, hash.low);
  for (const char *line = text.text, *end; *line; line = end + 1) {
    for (end = line; *end != '\n';) end++;
    buf_printf(out, "        %.*s\n", (int)(end - line), line);
  }
  buf_puts(out, "    \"\"\"\n\n");
  buf_free(&text);
}

static void print_bindings(struct buf *out, const struct pack *p, const struct needs *needs) {
  buf_puts(out, p->count ? "    BINDINGS = (\n" : "    BINDINGS = ()\n");
  for (int i = 0; i < p->count; i++) print_binding(out, p->kernel, needs, &p->data[i]);
  if (p->count) buf_puts(out, "    )\n");
}

/* One norm for each copy: over the batch and what pixels there are. No bias before the fold. */
static void print_norm(struct spelling *s, int node, const struct dim *outputs) {
  if (!spelling_is_normed(s, node)) return;
  bool image = shape_roles(&s->k->nodes[node].shape) == (1u << ROLE_CHANNEL | ROLES_SPATIAL);
  const char *norms = spelling_text(s, "nn.BatchNorm%dd(%s) for _ in range(self.copies)",
                                    image ? 2 : 1, spelling_dim(s, outputs));
  spelling_line(s, "self.b%d = (None,) * self.copies", s->weight[node]);
  spelling_line(s, "self.norm%d = nn.ModuleList(%s)", s->weight[node], norms);
}

/* self.w0 = nn.Parameter(torch.empty(self.copies, x0, C)) */
static void print_weights(struct spelling *s) {
  const struct kernel *k = s->k;
  struct buf lines = {0}, *out = s->out;
  s->out = &lines;
  s->sizes = 0;
  for (int i = 0; i < k->count; i++) {
    struct shape w;
    if (!node_weight(k, i, &w)) continue;
    spelling_line(s, "self.w%d = nn.Parameter(torch.empty(self.copies, %s))", s->weight[i],
                  spelling_axes(s, &w, 0, w.count));
    print_norm(s, i, &w.axis[0].dim);
  }
  s->out = out;
  print_locals(out, s->sizes);
  if (lines.length) buf_bytes(out, lines.text, lines.length);
  buf_free(&lines);
}

static bool has_weights(const struct kernel *k, const struct needs *needs) {
  return kernel_has_weights(k) || needs->projected;
}

static void print_init(struct spelling *s, const struct needs *needs) {
  struct buf *out = s->out;
  char name[8];
  buf_puts(out,
           "\n    def __init__(self, c, h=None, w=None, *, target=None):\n"
           "        super().__init__()\n"
           "        b = self.binding(c, h, w, target)\n"
           "        self.target = b[\"name\"]\n"
           "        self.cin, self.cout, self.stride = b[\"cin\"], b[\"cout\"], b[\"stride\"]\n");
  if (needs->projected)
    buf_puts(out,
             "        seen = self.cout if b[\"projected\"] else self.cin  # channels\n"
             "        self.c = math.gcd(seen, self.cout)\n"
             "        self.blocks = seen // self.c  # of inputs, each for copies of its own\n");
  else
    buf_puts(out,
             "        self.c = math.gcd(self.cin, self.cout)\n"
             "        self.blocks = self.cin // self.c  # of inputs, each for copies of its own\n");
  buf_puts(out, "        self.copies = self.blocks * (self.cout // self.c)\n");
  if (needs->dilated) buf_puts(out, "        self.dilation = b[\"dilation\"]\n");
  if (needs->fixed_hw && needs->strided)
    buf_puts(out, "        self.h, self.w = b[\"h\"], b[\"w\"]\n");
  else if (needs->fixed_hw)
    buf_puts(out,
             "        self.h = -(-b[\"h\"] // self.stride)\n"
             "        self.w = -(-b[\"w\"] // self.stride)\n");
  for (enum size i = 0; i < SIZES; i++) {
    if (!is_kept(s->k, i)) continue;
    attribute(i, name);
    buf_printf(out, "        self.%s = b[\"%s\"]\n", name, name);
  }
  if (needs->projected)
    buf_puts(out,
             "        self.projection = None\n"
             "        if b[\"projected\"]:\n"
             "            self.projection = nn.Parameter(torch.empty(1, self.cout, self.cin))\n");
  print_weights(s);
  if (has_weights(s->k, needs)) buf_puts(out, "        self.reset_parameters()\n");
}

/* Bindings that differ only in name, or in h and w where no weight knows them, are one choice. */
static void print_choice(struct buf *out, const struct needs *needs) {
  buf_puts(
      out,
      "\n    @classmethod\n"
      "    def binding(cls, c, h=None, w=None, target=None):\n"
      "        \"\"\"The binding that `target` names, or the only one with these sizes.\"\"\"\n"
      "        known = [f\"{b['name']} ({b['cin']}, {b['h']}, {b['w']})\" for b in cls.BINDINGS]\n"
      "        found = [b for b in cls.BINDINGS if target in (None, b[\"name\"])]\n"
      "        found = [b for b in found if b[\"cin\"] == c]\n"
      "        if target is None:\n"
      "            found = [b for b in found if h in (None, b[\"h\"]) and w in (None,"
      " b[\"w\"])]\n");
  buf_printf(out, "        free = (%s)\n",
             needs->fixed_hw ? "\"name\"," : "\"name\", \"h\", \"w\"");
  buf_puts(out,
           "        kinds = {tuple(v for k, v in b.items() if k not in free) for b in found}\n"
           "        if len(kinds) == 1:\n"
           "            return found[0]\n"
           "        asked = f\"c={c}, h={h}, w={w}\" if target is None else f\"target"
           " '{target}' and c={c}\"\n"
           "        fits = \"several bindings\" if found else \"no binding\"\n"
           "        raise ValueError(f\"{asked} fits {fits} of {cls.__name__}, its bindings:"
           " {', '.join(known)}\")\n");
}

static void print_norm_reset(struct buf *out) {
  buf_puts(out,
           "        for norm in self.modules():\n"
           "            if isinstance(norm, (nn.BatchNorm1d, nn.BatchNorm2d)):\n"
           "                norm.reset_parameters()\n");
}

static void print_reset(struct spelling *s, const struct needs *needs, const double *gains) {
  struct buf *out = s->out;
  if (!has_weights(s->k, needs)) return;
  buf_puts(out,
           "\n    def reset_parameters(self, generator=None):\n"
           "        \"\"\"Draw all weights anew: normal, std = gain / sqrt(fan_in).\"\"\"\n");
  if (needs->projected)
    buf_puts(out,
             "        if self.projection is not None:\n"
             "            std = 1 / math.sqrt(self.cin)\n"
             "            nn.init.normal_(self.projection, std=std, generator=generator)\n");
  for (int i = 0; i < s->k->count; i++) {
    int w = s->weight[i];
    if (w < 0) continue;
    double initial = node_initial(&s->k->nodes[i]);
    if (!isnan(initial)) {
      buf_printf(out, "        nn.init.%s_(self.w%d)\n", initial ? "ones" : "zeros", w);
      continue;
    }
    buf_printf(out, "        std = %.6g / math.sqrt(self.w%d[0, 0].numel())\n",
               gains ? gains[w] : 1.0, w);
    buf_printf(out, "        nn.init.normal_(self.w%d, std=std, generator=generator)\n", w);
  }
  if (s->normed) print_norm_reset(out);
}

/* "0, 2", or "0," for one */
static const char *normed_weights(struct spelling *s) {
  const char *list = "";
  int count = 0;
  for (int i = 0; i < s->k->count; i++)
    if (spelling_is_normed(s, i))
      list = spelling_text(s, "%s%s%d", list, count++ ? ", " : "", s->weight[i]);
  return count == 1 ? spelling_text(s, "%s,", list) : list;
}

static void print_fold(struct spelling *s) {
  if (!s->normed) return;
  buf_puts(
      s->out,
      "\n    @torch.no_grad()\n"
      "    def fold(self):\n"
      "        \"\"\"For inference, in place: the norms as they are in evaluation become part of"
      " the\n        weights and of biases b0, ...; after that a second call changes nothing."
      "\"\"\"\n");
  buf_printf(s->out, "        for i in (%s):\n", normed_weights(s));
  buf_puts(s->out,
           "            weight, norms = getattr(self, f\"w{i}\"), getattr(self, f\"norm{i}\")\n"
           "            if isinstance(norms[0], nn.Identity):\n"
           "                continue\n"
           "            scale = [n.weight / torch.sqrt(n.running_var + n.eps) for n in norms]\n"
           "            shift = [n.bias - n.running_mean * a for n, a in zip(norms, scale)]\n"
           "            for w, a in zip(weight, scale):\n"
           "                w.mul_(a.reshape(-1, *[1] * (w.dim() - 1)))\n"
           "            setattr(self, f\"b{i}\", nn.Parameter(torch.stack(shift)))\n"
           "            setattr(self, f\"norm{i}\", nn.ModuleList(nn.Identity() for _ in norms))\n"
           "        return self\n");
}

static bool has_windowed_weight(const struct kernel *k) {
  struct shape w;
  for (int i = 0; i < k->count; i++)
    if (node_weight(k, i, &w) && w.count == 4) return true;
  return false;
}

/* PyTorch converts parameters of four axes to channels_last and rejects those of five. */
static void print_apply(struct buf *out, const struct kernel *k) {
  if (!has_windowed_weight(k)) return;
  buf_puts(out,
           "\n    def _apply(self, fn, recurse=True):\n"
           "        \"\"\"Weights [copies, to, channels, KH, KW] are converted, to channels_last"
           " too, as\n        [copies * to, channels, KH, KW].\"\"\"\n\n"
           "        def flat(w):\n"
           "            if w.dim() != 5:\n"
           "                return fn(w)\n"
           "            return fn(w.flatten(0, 1)).unflatten(0, w.shape[:2])\n\n"
           "        return super()._apply(flat, recurse)\n");
}

static void print_repr(struct buf *out, const struct kernel *k) {
  char name[8];
  buf_printf(out,
             "\n    def extra_repr(self):\n"
             "        return f\"%s, {self.cin} -> {self.cout}, stride={self.stride}",
             k->name);
  for (enum size i = 0; i < SIZES; i++) {
    if (i == SIZE_KH || i == SIZE_KW || !is_kept(k, i)) continue;
    attribute(i, name);
    buf_printf(out, ", %s={self.%s}", size_name(i), name);
  }
  buf_puts(out, "\"\n");
}

static void print_check(struct buf *out, const struct needs *needs) {
  buf_puts(out,
           "\n    def check_input(self, x):\n"
           "        if x.dim() != 4 or x.shape[1] != self.cin:\n"
           "            raise ValueError(f\"the kernel wants [N, {self.cin}, H, W], not"
           " {list(x.shape)}\")\n");
  if (needs->strided)
    buf_puts(out,
             "        if x.shape[2] % self.stride or x.shape[3] % self.stride:\n"
             "            size = f\"{x.shape[2]}x{x.shape[3]}\"\n"
             "            raise ValueError(f\"the kernel wants H and W to be multiples of"
             " {self.stride}, not {size}\")\n");
  if (!needs->fixed_hw) return;
  buf_printf(out, "        h, w = %s\n",
             needs->strided ? "x.shape[2:]" : "(-(-size // self.stride) for size in x.shape[2:])");
  buf_printf(out,
             "        if h != self.h or w != self.w:\n"
             "            size = f\"{self.h}x{self.w}, not {h}x{w}\"\n"
             "            raise ValueError(f\"weights of the kernel fix its images%s to"
             " {size}\")\n",
             needs->strided ? "" : " (after the stride)");
}

/* The unfused way is a matrix product, as for every fc. */
static void print_projection(struct buf *out, bool patterns) {
  buf_puts(out, "        if self.projection is not None:\n");
  if (patterns)
    buf_puts(out, "            x = F.conv2d(x, self.projection[0, :, :, None, None])\n");
  else
    buf_puts(out,
             "            size = x.shape[2:]\n"
             "            x = torch.matmul(self.projection[0], x.flatten(2)).unflatten(2, size)\n");
}

static void print_forward(struct buf *out, const struct needs *needs, bool patterns) {
  print_check(out, needs);
  buf_puts(out,
           "\n    def forward(self, x):\n"
           "        self.check_input(x)\n"
           "        return self.run(x)\n"
           "\n    def run(self, x):\n"
           "        \"\"\"forward without checks, which torch.fx can trace.\"\"\"\n");
  if (needs->pooled)
    buf_puts(out,
             "        if self.stride > 1:\n"
             "            x = F.avg_pool2d(x, self.stride, ceil_mode=True,"
             " count_include_pad=False)\n");
  if (needs->projected) print_projection(out, patterns);
  if (needs->averaged)
    buf_puts(out,
             "        n = self.blocks\n"
             "        parts = x.chunk(n, dim=1)\n"
             "        results = [self.template(parts[i % n], i) for i in range(self.copies)]\n"
             "        if n > 1:\n"
             "            blocks = [results[i:i + n] for i in range(0, self.copies, n)]\n"
             "            results = [torch.stack(block).mean(dim=0) for block in blocks]\n");
  else if (needs->side_by_side)
    buf_puts(out, "        results = [self.template(x, copy) for copy in range(self.copies)]\n");
  if (needs->side_by_side)
    buf_puts(out,
             "        if len(results) == 1:\n"
             "            return results[0]\n"
             "        return torch.cat(results, dim=1)\n");
  else if (needs->averaged)
    buf_puts(out, "        return results[0]\n");
  else
    buf_puts(out, "        return self.template(x, 0)\n");
}

static void print_template(struct spelling *s, const struct plan *plan) {
  const struct shape *last = &s->k->nodes[s->k->count - 1].shape;
  const char *result = spelling_axes(s, last, 0, last->count);
  const unsigned image = 1u << SIZE_C | 1u << SIZE_H | 1u << SIZE_W | SPELLING_BATCH;
  struct buf lines = {0}, *out = s->out;
  s->out = &lines;
  s->sizes = 0;
  for (int i = 0; i < s->k->count; i++) {
    if (!plan->wanted[i]) continue;
    if (plan->pattern[i])
      pattern_spell(plan->pattern[i], s, i, plan->reads[i][0]);
    else
      node_row(&s->k->nodes[i])->family->torch(s, i);
  }
  s->out = out;
  buf_printf(out, "\n    def template(self, %s, copy):\n", s->name[0]);
  buf_printf(out,
             "        \"\"\"The kernel: [N, C, H, W] -> [N, %s], with the weights of one"
             " copy.\"\"\"\n",
             result);
  if (s->sizes & image) buf_printf(out, "        N, C, H, W = %s.shape\n", s->name[0]);
  print_locals(out, s->sizes & ~image);
  buf_bytes(out, lines.text, lines.length);
  buf_free(&lines);
}

/* "Kernel_0123456789abcdef"; a kernel that the list holds before gets a number. */
static const char *class_name(struct spelling *s, const struct pack_kernel *id) {
  if (!id->before) return spelling_text(s, "Kernel_%016" PRIx64, id->hash.high);
  return spelling_text(s, "Kernel_%016" PRIx64 "_%d", id->hash.high, id->before + 1);
}

static void print_imports(struct buf *out) {
  buf_puts(
      out,
      "import math\n\nimport torch\nfrom torch import nn\nfrom torch.nn import functional as F\n");
}

static void print_class(struct buf *out, const struct pack *p, const struct pack_kernel *id,
                        const double *gains, bool patterns, struct buf *table) {
  struct needs needs = needs_of(p);
  struct spelling s;
  struct plan plan;
  spelling_open(&s, p->kernel, pack_norm(p) != NORM_NONE, out);
  s.dilated = needs.dilated;
  make_plan(&s, patterns, &plan);
  const char *name = class_name(&s, id);
  buf_printf(out, "\n\nclass %s(nn.Module):\n", name);
  print_docstring(out, p, id->hash);
  print_bindings(out, p, &needs);
  print_init(&s, &needs);
  print_choice(out, &needs);
  print_reset(&s, &needs, gains);
  print_fold(&s);
  print_apply(out, p->kernel);
  print_repr(out, p->kernel);
  print_forward(out, &needs, patterns);
  print_template(&s, &plan);
  for (int i = 0; i < p->count; i++)
    buf_printf(table, "    \"%s\": %s,\n", p->data[i].target.name, name);
  spelling_close(&s);
}

canvas_status spell_torch(canvas_context *ctx, const struct pack *p, const struct gains *gains,
                          bool patterns, struct buf *out) {
  struct buf table = {0};
  for (const struct pack *at = p; at; at = at->next) TRY(kernel_verify(ctx, at->kernel));
  print_imports(out);
  struct pack_kernel *kernels = pack_identify(p), *id = kernels;
  for (const struct pack *at = p; at; at = at->next)
    print_class(out, at, id++, gains ? (gains++)->of : NULL, patterns, &table);
  mem_free(kernels);
  if (p->next || p->kept.count)
    buf_printf(out, "\n\nKERNELS = {  # the module of each target\n%s}\n", table.text);
  buf_free(&table);
  return CANVAS_OK;
}
