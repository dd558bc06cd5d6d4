/* A pack as formulas: sums over indices, as in a paper.
 *
 * The families write the lines (primitive/formula.h). Here is what stands above them: the ranges of the
 * indices, the sizes of the weights, the tensors that are padded with zeros; and below them what the
 * layers of a pack do around the kernel.
 */
#include "primitive/formula.h"
#include "spell/spell.h"

/* -- above the lines -- */

static void print_usual(const struct formula *f, struct buf *out) {
  static const struct {
    enum role role;
    const char *text;
  } ranges[] = {{ROLE_GROUP, "g < G"},
                {ROLE_CHANNEL, "c < C"},
                {ROLE_KH, "kh < KH"},
                {ROLE_KW, "kw < KW"},
                {ROLE_H, "h < H"},
                {ROLE_W, "w < W"},
                {ROLE_CHANNEL + ROLES_ONCE, "c2 < C"},
                {ROLE_H + ROLES_ONCE, "h2 < H"},
                {ROLE_W + ROLES_ONCE, "w2 < W"}};
  const char *comma = "# Indices count from 0. Unless a line says otherwise, ";
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
    if (!(f->usual >> ranges[i].role & 1)) continue;
    buf_printf(out, "%s%s", comma, ranges[i].text);
    comma = ", ";
  }
  buf_puts(out, ".\n");
}

static void print_weights(struct formula *f, struct buf *out) {
  const char *comma = "# Weights: ";
  struct shape w;
  for (int i = 0; i < f->k->count; i++) {
    if (!node_weight(f->k, i, &w)) continue;
    buf_printf(out, "%sW%d", comma, f->weight[i]);
    for (int j = 0; j < w.count; j++)
      buf_printf(out, "%s%s", j ? ", " : " [", formula_dim(f, &w.axis[j].dim, false));
    buf_puts(out, "]");
    comma = ", ";
  }
  if (*comma == ',') buf_puts(out, ".\n");
}

static void print_outside(const struct formula *f, struct buf *out) {
  const char *comma = "# ";
  int count = 0;
  for (int i = 0; i < f->k->count; i++) {
    if (!f->outside[i]) continue;
    buf_printf(out, "%s%s", comma, f->name[i]);
    comma = ", ";
    count++;
  }
  if (count) buf_printf(out, " %s 0 where an index is out of range.\n", count > 1 ? "are" : "is");
}

/* -- below them -- */

static void print_wraps(struct formula *f, const struct pack *p, struct buf *out) {
  bool pooled = false, blocks = false, projected = false, dilated = false;
  for (int i = 0; i < p->count; i++) {
    const struct binding *b = &p->data[i];
    pooled |= binding_pooling(b) > 1;
    blocks |= b->copies > 1;
    projected |= b->target.projected > 0;
    dilated |= b->target.dilation > 1;
  }
  if (pooled)
    buf_puts(out,
             "# Stride s: x is the mean of s x s pixels of the layer's input, those outside left"
             " out.\n");
  if (projected)
    buf_puts(out,
             "# Projected: x is a 1x1 convolution of the input (after pooling) to C channels.\n");
  if (blocks)
    buf_puts(
        out,
        "# C is the greatest common divisor of Cin and Cout. Each block of C inputs is x of Cout/C"
        " copies\n# of the kernel with weights of their own; each block of C outputs is the mean"
        " of Cin/C copies.\n");
  if (dilated)
    buf_puts(out, "# Dilation D: windows along H and W read pixels D times as far apart.\n");
  if (pack_norm(p) == NORM_NONE) return;
  const char *comma = "# BatchNorm follows ";
  for (int i = 0; i < f->k->count; i++) {
    if (!node_is_inner(f->k, i)) continue;
    buf_printf(out, "%s%s", comma, f->name[i]);
    comma = ", ";
  }
  buf_puts(out, ".\n");
}

static void spell_one(const struct pack *p, bool latex, struct buf *out) {
  struct formula f;
  struct buf head = {0}, *to = latex ? &head : out;
  formula_open(&f, p->kernel);
  formula_lines(&f);
  buf_printf(to, "# %s\n", p->kernel->name);
  print_usual(&f, to);
  print_weights(&f, to);
  print_outside(&f, to);
  print_wraps(&f, p, to);
  if (latex)
    latex_of_formula(head.text, f.lines.text, out);
  else
    buf_puts(out, f.lines.text);
  buf_free(&head);
  formula_close(&f);
}

void spell_formula(const struct pack *p, bool latex, struct buf *out) {
  for (const struct pack *q = p; q; q = q->next) {
    if (q != p) buf_puts(out, "\n");
    spell_one(q, latex, out);
  }
}
