/* A kernel as an SVG picture that needs no other program.
 *
 * Each box shows a node's line of text and its shape. Colour shows the family; outlines show it in
 * black and white, too: a thick border owns weights, a dashed one only moves data, round ends are the
 * input and the output. The description holds the kernel's text, so a picture can be read back, and
 * pointing at a box shows what its primitive means.
 */
#include "spell/spell.h"

#include <stdlib.h>
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
  PORT = 12
};

static const struct {
  const struct family *family;
  const char *colour;
} fills[] = {{&family_input, "#ffffff"},   {&family_output, "#ffffff"},
             {&family_group, "#eceff1"},   {&family_shift, "#e6dff0"},
             {&family_unfold, "#d5e9f5"},  {&family_fc, "#b7d0ea"},
             {&family_map, "#fbf0c6"},     {&family_fold, "#d3ead9"},
             {&family_softmax, "#c4e3de"}, {&family_broadcast, "#fadfc8"}};

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
static void make_tops(struct picture *p) {
  p->top[0] = MARGIN;
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

static void put_head(struct picture *p) {
  int width = p->layout.width + 2 * MARGIN;
  int height = p->top[p->layout.layers - 1] + BOX + MARGIN;
  struct buf text = {0};
  kernel_print(p->k, &text);
  buf_printf(p->out,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
             "viewBox=\"0 0 %d %d\" role=\"img\"\n"
             "     font-family=\"Helvetica, Arial, sans-serif\" font-size=\"%d\">\n<title>",
             width, height, width, height, FONT);
  put_escaped(p->out, p->k->name);
  buf_puts(p->out, "</title>\n<desc>\n");
  put_escaped(p->out, text.text);
  buf_puts(p->out,
           "</desc>\n"
           "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" "
           "markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" orient=\"auto\">"
           "<path d=\"M0 0.5 8 4 0 7.5z\" fill=\"#333\"/></marker></defs>\n"
           "<path d=\"M0 0H");
  buf_printf(p->out, "%dV%dH0z\" fill=\"#fff\"/>\n", width, height);
  buf_free(&text);
}

void spell_svg(const struct kernel *k, struct buf *out) {
  struct picture *p = mem_alloc(sizeof *p);
  struct label labels[KERNEL_NODES_MAX];
  p->k = k, p->out = out;
  for (int i = 0; i < k->count; i++) {
    labels[i] = label_of(k, i);
    p->box[i] = box_width(&labels[i]);
  }
  layout_make(k, p->box, &p->layout);
  make_tops(p);
  put_head(p);
  buf_puts(out,
           "<g fill=\"none\" stroke=\"#333\" stroke-width=\"1.2\" marker-end=\"url(#arrow)\">\n");
  for (int i = 0; i < k->count; i++)
    for (int j = 0; j < node_row(&k->nodes[i])->arity; j++) put_edge(p, i, j);
  buf_puts(out, "</g>\n<g text-anchor=\"middle\">\n");
  for (int i = 0; i < k->count; i++) {
    put_box(p, i, &labels[i]);
    label_free(&labels[i]);
  }
  buf_puts(out, "</g>\n</svg>\n");
  mem_free(p);
}
