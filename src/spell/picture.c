/* A kernel, or the kernels of a pack, as an SVG picture that needs no other program.
 *
 * Each box shows a node's line of text and its shape. Colour shows the family; outlines show it in
 * black and white, too: a thick border owns weights, a dashed one only moves data, round ends are the
 * input and the output. The description holds the kernel's text, so a picture can be read back, and
 * pointing at a box shows what its primitive means.
 *
 * In a picture of several kernels, each different kernel stands below a line with its name and its
 * targets; the targets that keep their convolution are the last line. The description is the text
 * of the pack.
 */
#include "spell/spell.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "spell/layout.h"

enum {
  BOX = 40,
  RISE = 30,
  RISE_MAX = 60,
  MARGIN = 12,
  PADDING = 9,
  FONT = 13,
  SMALL = 12,
  PORT = 12,
  LINE = 18,     /* height of a line above a kernel */
  LINE_MAX = 600 /* width at which such a line is broken */
};

static const struct {
  const struct family *family;
  const char *colour;
} fills[] = {
    {&family_input, "#ffffff"},     {&family_output, "#ffffff"},  {&family_group, "#eceff1"},
    {&family_shift, "#e6dff0"},     {&family_unfold, "#d5e9f5"},  {&family_fc, "#b7d0ea"},
    {&family_map, "#fbf0c6"},       {&family_fold, "#d3ead9"},    {&family_softmax, "#c4e3de"},
    {&family_broadcast, "#fadfc8"}, {&family_learned, "#b7d0ea"}, {&family_matmul, "#fadfc8"},
    {&family_swap, "#eceff1"},      {&family_stack, "#eceff1"},   {&family_pick, "#eceff1"},
    {&family_resample, "#d3ead9"},  {&family_norm, "#c4e3de"},    {&family_coords, "#ffffff"}};

static const char *fill(const struct row *row) {
  for (size_t i = 0; i < sizeof fills / sizeof *fills; i++)
    if (row->family == fills[i].family) return fills[i].colour;
  return "#ffffff"; /* a family to come */
}

static const char *border(const struct row *row) {
  if (row == &primitive_rows[PRIMITIVE_INPUT] || row == &primitive_rows[PRIMITIVE_OUTPUT])
    return "rx=\"20\" stroke-width=\"1.6\"";
  if (row->facts & FACT_WEIGHTS) return "rx=\"5\" stroke-width=\"2.4\"";
  return row->facts & FACT_MOVES ? "rx=\"5\" stroke-dasharray=\"5 3\"" : "rx=\"5\"";
}

/* ---- texts --------------------------------------------------------------------------------- */

/* An upper bound of the width in hundredths of the font's size: no usual sans-serif is wider. */
static int advance(char c) {
  if (strchr(" ,./:;[]()|!'ijlftrI-", c)) return 43;
  if (strchr("mwMW", c)) return 100;
  return c >= 'A' && c <= 'Z' ? 79 : strchr("=+<>", c) ? 84 : 65;
}

static int text_width(const char *text, int size) {
  int sum = 0;
  for (; *text; text++) sum += advance(*text);
  return (sum * size + 99) / 100;
}

static void put_escaped(struct buf *out, const char *text) {
  for (; *text; text++) {
    if (*text == '<')
      buf_puts(out, "&lt;");
    else if (*text == '>')
      buf_puts(out, "&gt;");
    else if (*text == '&')
      buf_puts(out, "&amp;");
    else
      buf_bytes(out, text, 1);
  }
}

/* The text of a box: `b = fc a to=x0`, below it `[x0 H W]`. Each is one plain run of text: not every
 * program that draws SVG can put several runs in the middle of a box. */
struct label {
  char *text, *shape;
};

static struct label label_of(const struct kernel *k, int node) {
  const struct node *n = &k->nodes[node];
  struct buf text = {0}, shape = {0};
  if (*n->name) buf_printf(&text, "%s = ", n->name);
  node_print(k, node, &text);
  buf_puts(&shape, "[");
  shape_print(&n->shape, &shape);
  buf_puts(&shape, "]");
  return (struct label){buf_take(&text), buf_take(&shape)};
}

static void label_free(struct label *l) {
  mem_free(l->text);
  mem_free(l->shape);
}

/* Even, so that half of it is whole. */
static int box_width(const struct label *l) {
  int first = text_width(l->text, FONT), second = text_width(l->shape, SMALL);
  return ((first > second ? first : second) + 2 * PADDING + 1) / 2 * 2;
}

/* ---- boxes and edges ----------------------------------------------------------------------- */

/* The whole picture: what is drawn so far. */
struct sheet {
  struct buf body;
  int width, height;
};

/* One kernel of it. */
struct picture {
  const struct kernel *k;
  struct layout layout;
  int box[KERNEL_NODES_MAX]; /* widths */
  int top[KERNEL_NODES_MAX]; /* of each layer */
  struct buf *out;
};

static int centre(const struct picture *p, int layer, int tensor) {
  return MARGIN + p->layout.centre[layer][tensor];
}

/* Edges that go far aside are given more height. */
static void make_tops(struct picture *p, int top) {
  p->top[0] = top;
  for (int i = 1; i < p->layout.layers; i++) {
    int rise = RISE + p->layout.span[i] / 20 * 2;
    p->top[i] = p->top[i - 1] + BOX + (rise < RISE_MAX ? rise : RISE_MAX);
  }
}

static void put_box(struct picture *p, int node, const struct label *l) {
  const struct row *row = node_row(&p->k->nodes[node]);
  int layer = p->layout.first[node], x = centre(p, layer, node), y = p->top[layer];
  buf_puts(p->out, "<g><title>");
  put_escaped(p->out, row->meaning);
  buf_printf(p->out,
             "</title>\n<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" %s fill=\"%s\" "
             "stroke=\"#333\"/>",
             x - p->box[node] / 2, y, p->box[node], BOX, border(row), fill(row));
  buf_printf(p->out, "\n<text x=\"%d\" y=\"%d\">", x, y + 17);
  put_escaped(p->out, l->text);
  buf_printf(p->out, "</text>\n<text x=\"%d\" y=\"%d\" font-size=\"%d\" fill=\"#444\">", x, y + 33,
             SMALL);
  put_escaped(p->out, l->shape);
  buf_puts(p->out, "</text></g>\n");
}

/* From (x, the foot of the layer above) down to (to, the top of this one), upright at both ends. */
static void put_bend(struct picture *p, int x, int to, int layer) {
  int foot = p->top[layer - 1] + BOX, top = p->top[layer], middle = (foot + top) / 2;
  if (x == to)
    buf_printf(p->out, " V%d", top);
  else
    buf_printf(p->out, " C%d %d %d %d %d %d", x, middle, to, middle, to, top);
}

/* Input j of a node: from its box through its lane to the reader. The left one of two arrives on
 * the left. */
static void put_edge(struct picture *p, int node, int j) {
  const struct node *n = &p->k->nodes[node];
  int tensor = n->in[j], end = p->layout.first[node], start = p->layout.first[tensor];
  int x = centre(p, start, tensor), port = 0;
  buf_printf(p->out, "<path d=\"M%d %d", x, p->top[start] + BOX);
  for (int layer = start + 1; layer < end; layer++) {
    int lane = centre(p, layer, tensor);
    put_bend(p, x, lane, layer);
    buf_printf(p->out, " V%d", p->top[layer] + BOX);
    x = lane;
  }
  if (node_row(n)->arity == 2) {
    int other = centre(p, end - 1, n->in[!j]);
    port = x < other || (x == other && j == 0) ? -PORT : PORT;
  }
  put_bend(p, x, centre(p, end, node) + port, end);
  buf_puts(p->out, "\"/>\n");
}

/* ---- the whole ----------------------------------------------------------------------------- */

static void widen(struct sheet *c, int width) {
  if (c->width < width + 2 * MARGIN) c->width = width + 2 * MARGIN;
}

static void put_kernel(struct sheet *c, const struct kernel *k) {
  struct picture *p = mem_alloc(sizeof *p);
  struct label labels[KERNEL_NODES_MAX];
  struct buf *out = p->out = &c->body;
  p->k = k;
  for (int i = 0; i < k->count; i++) {
    labels[i] = label_of(k, i);
    p->box[i] = box_width(&labels[i]);
  }
  layout_make(k, p->box, &p->layout);
  make_tops(p, c->height + MARGIN);
  buf_puts(out,
           "<g fill=\"none\" stroke=\"#333\" stroke-width=\"1.2\" marker-end=\"url(#arrow)\">\n");
  for (int i = 0; i < k->count; i++)
    for (int j = 0; j < node_row(&k->nodes[i])->arity; j++) put_edge(p, i, j);
  buf_puts(out, "</g>\n<g text-anchor=\"middle\">\n");
  for (int i = 0; i < k->count; i++) {
    put_box(p, i, &labels[i]);
    label_free(&labels[i]);
  }
  buf_puts(out, "</g>\n");
  widen(c, p->layout.width);
  c->height = p->top[p->layout.layers - 1] + BOX + MARGIN;
  mem_free(p);
}

static void put_line(struct sheet *c, const char *text) {
  c->height += LINE;
  buf_printf(&c->body, "<text x=\"%d\" y=\"%d\">", MARGIN, c->height);
  put_escaped(&c->body, text);
  buf_puts(&c->body, "</text>\n");
  widen(c, text_width(text, FONT));
}

/* Adds a word to a line, which is put and begun anew before it grows too wide. */
static void add_word(struct sheet *c, struct buf *line, const char *word) {
  if (line->length && text_width(line->text, FONT) + text_width(word, FONT) > LINE_MAX) {
    put_line(c, line->text);
    buf_free(line);
    buf_puts(line, "   ");
  }
  buf_printf(line, line->length ? " %s" : "%s", word);
}

static void add_target(struct sheet *c, struct buf *line, const struct target *t, bool last) {
  char word[TARGET_NAME_SIZE + 1];
  snprintf(word, sizeof word, "%s%s", t->name, last ? "" : ",");
  add_word(c, line, word);
}

/* "kernel NAME: TARGET, TARGET"; the targets of all kernels that are equal to the one at `place`. */
static void put_targets(struct sheet *c, const struct pack *p, const struct pack_kernel *kernels,
                        int place) {
  struct buf line = {0};
  buf_printf(&line, "kernel %s:", p->kernel->name);
  const struct target *pending = NULL;
  for (int i = place; p; p = p->next, i++)
    for (int j = 0; kernels[i].first == place && j < p->count; j++) {
      if (pending) add_target(c, &line, pending, false);
      pending = &p->data[j].target;
    }
  if (pending) add_target(c, &line, pending, true);
  put_line(c, line.text);
  buf_free(&line);
}

static void put_kept_targets(struct sheet *c, const struct targets *kept) {
  struct buf line = {0};
  if (!kept->count) return;
  buf_puts(&line, "keep:");
  for (int i = 0; i < kept->count; i++) add_target(c, &line, &kept->data[i], i == kept->count - 1);
  put_line(c, line.text);
  buf_free(&line);
  c->height += MARGIN;
}

/* The text of the picture around its body, which is freed. */
static void finish(struct sheet *c, const char *title, struct buf *text, struct buf *out) {
  buf_printf(out,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
             "viewBox=\"0 0 %d %d\" role=\"img\"\n"
             "     font-family=\"Helvetica, Arial, sans-serif\" font-size=\"%d\">\n<title>",
             c->width, c->height, c->width, c->height, FONT);
  put_escaped(out, title);
  buf_puts(out, "</title>\n<desc>\n");
  put_escaped(out, text->text);
  buf_puts(out,
           "</desc>\n"
           "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" "
           "markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" orient=\"auto\">"
           "<path d=\"M0 0.5 8 4 0 7.5z\" fill=\"#333\"/></marker></defs>\n"
           "<path d=\"M0 0H");
  buf_printf(out, "%dV%dH0z\" fill=\"#fff\"/>\n", c->width, c->height);
  buf_bytes(out, c->body.text, c->body.length);
  buf_puts(out, "</svg>\n");
  buf_free(&c->body);
  buf_free(text);
}

void spell_svg(const struct kernel *k, struct buf *out) {
  struct sheet c = {0};
  struct buf text = {0};
  put_kernel(&c, k);
  kernel_print(k, &text);
  finish(&c, k->name, &text, out);
}

void spell_pack_svg(const struct pack *p, struct buf *out) {
  if (!p->next && !p->kept.count) return spell_svg(p->kernel, out);
  struct sheet c = {0};
  struct buf text = {0};
  struct pack_kernel *kernels = pack_identify(p);
  char title[128];
  int place = 0, different = 0;
  for (const struct pack *at = p; at; at = at->next, place++) {
    if (kernels[place].first != place) continue;
    put_targets(&c, at, kernels, place);
    put_kernel(&c, at->kernel);
    different++;
  }
  put_kept_targets(&c, &p->kept);
  snprintf(title, sizeof title, "%d kernel%s of %d target%s, %d kept", different,
           different == 1 ? "" : "s", pack_bindings(p), pack_bindings(p) == 1 ? "" : "s",
           p->kept.count);
  pack_print(p, &text);
  finish(&c, title, &text, out);
  mem_free(kernels);
}
