/* The loops of Winograd's convolution (rewrite/winograd_stages.c) and of the element-wise stages
 * after it. A block of rows of tiles is transformed, multiplied and transformed back while it stays
 * in L2.
 *
 *     nb, hb =>
 *         ni:{1,2}, hm:{1,2,4}, hi:{1,2,4}:peel =>         input transform, row by row
 *             .. =>
 *                 @Y_R = {nb, ni}/n, {hb, hm, hi}/h, ..
 *             .. =>
 *                 @Y_T = ..
 *         a, b, ob, ni, hm, wb, c:pf(20), hi:unroll, wi:{4,7,14}:unroll:peel, ov:{16,32}:vec =>
 *             @Y_M = ..                                    products, in register tiles
 *         ni, hm, hi =>                                    output transform
 *             .. =>
 *                 @Y_S = ..
 *             .. =>
 *                 @Y = ..
 *                 @relu = ..
 *
 * The filter transform and the padding of the image are outside of the blocks.
 * bench/native/winograd.schedule is one written by hand.
 */
#include <inttypes.h>
#include <string.h>

#include "autoschedule/default.h"
#include "autoschedule/winograd_nest.h"
#include "base/buf.h"
#include "cost/policy.h"
#include "program/affine.h"
#include "program/program_cost.h"
#include "program/program_facts.h"
#include "rewrite/program_rebuild.h"

/* ---- the stages ---- */

static int axis_named(const struct program_tensor *t, const char *name) {
  for (int i = 0; i < t->rank + t->reductions; i++)
    if (!strcmp(t->axes[i].name, name)) return i;
  return -1;
}

/* The only stage that reads this one; -1: none, or several. */
static int only_consumer(const struct program *p, int stage) {
  int found = -1;
  for (int i = stage + 1; i < p->tensors.count; i++) {
    if (p->tensors.data[i].is_input || !stage_loads(p, i, stage)) continue;
    if (found >= 0) return -1;
    found = i;
  }
  return found;
}

/* The only stage that this one reads; -1: none, or several. */
static int only_producer(const struct program *p, int stage) {
  int found = -1;
  for (int i = 0; i < stage; i++) {
    if (p->tensors.data[i].is_input || !stage_loads(p, stage, i)) continue;
    if (found >= 0) return -1;
    found = i;
  }
  return found;
}

/* The stage is Y_M: a contraction of two loads of stages, the image's and the weights'. */
static bool is_product(const struct program *p, int stage, struct winograd_axes *w) {
  const struct program_tensor *t = &p->tensors.data[stage];
  if (t->is_input || t->reducer != REDUCE_SUM) return false;
  const struct px_node *n = &p->nodes.data[t->body];
  if (n->op != PX_MUL) return false;
  const struct px_node *image = &p->nodes.data[n->arg[0]], *weights = &p->nodes.data[n->arg[1]];
  if (image->op != PX_LOAD || weights->op != PX_LOAD) return false;
  w->products = stage;
  w->tiles = image->tensor;
  w->weights = weights->tensor;
  return !p->tensors.data[w->tiles].is_input && !p->tensors.data[w->weights].is_input;
}

/* The stages from Y_M backward and forward. */
static bool find_stages(struct winograd_axes *w) {
  const struct program *p = w->p;
  int found = 0;
  for (int i = 0; i < p->tensors.count && !found; i++) found = is_product(p, i, w);
  if (!found) return false;
  w->rows = only_producer(p, w->tiles);
  w->half_weights = only_producer(p, w->weights);
  w->image = w->rows < 0 ? -1 : only_producer(p, w->rows);
  w->half_output = only_consumer(p, w->products);
  w->output = w->half_output < 0 ? -1 : only_consumer(p, w->half_output);
  return w->rows >= 0 && w->half_weights >= 0 && w->image >= 0 && w->output >= 0 &&
         only_producer(p, w->image) < 0 && only_producer(p, w->half_weights) < 0 &&
         only_producer(p, w->half_output) == w->products &&
         only_producer(p, w->output) == w->half_output;
}

/* A later stage of the output's shape without reductions. Binding checks what it reads. */
static bool is_elementwise_of_output(const struct winograd_axes *w, int stage) {
  const struct program_tensor *t = &w->p->tensors.data[stage], *y = &w->p->tensors.data[w->output];
  if (t->reductions || t->rank != y->rank || stage < w->output) return false;
  for (int i = 0; i < t->rank; i++)
    if (t->axes[i].size != y->axes[i].size) return false;
  return true;
}

/* The program has no other stages. */
static bool is_alone(const struct winograd_axes *w) {
  for (int i = 0; i < w->p->tensors.count; i++) {
    bool known = i == w->half_weights || i == w->weights || i == w->image || i == w->rows ||
                 i == w->tiles || i == w->products || i == w->half_output || i == w->output;
    if (!known && !w->p->tensors.data[i].is_input && !is_elementwise_of_output(w, i)) return false;
  }
  return true;
}

/* ---- their axes ---- */

static const struct program_tensor *tensor(const struct winograd_axes *w, int stage) {
  return &w->p->tensors.data[stage];
}

static bool same_size(const struct program_tensor *a, int axis, const struct program_tensor *b) {
  int other = axis_named(b, a->axes[axis].name);
  return other >= 0 && a->axes[axis].size == b->axes[other].size;
}

/* The role of each axis. Along columns of tiles, Y_R still has pixels, hence another size; along
 * rows, Y_P has. */
static bool find_axes(struct winograd_axes *w) {
  const struct program_tensor *m = tensor(w, w->products), *image = tensor(w, w->tiles),
                              *weights = tensor(w, w->weights);
  w->tile_axis[0] = w->tile_axis[1] = -1;
  for (int i = 2; i < m->rank; i++) {
    bool of_image = axis_named(image, m->axes[i].name) >= 0;
    bool of_weights = axis_named(weights, m->axes[i].name) >= 0;
    if (of_image == of_weights) return false;
    if (!of_image)
      w->outputs[w->output_count++] = i;
    else if (!same_size(m, i, image))
      return false;
    else if (!same_size(m, i, tensor(w, w->rows)))
      w->tile_axis[1] = i;
    else if (!same_size(m, i, tensor(w, w->image)))
      w->tile_axis[0] = i;
    else
      w->images[w->image_count++] = i;
  }
  for (int i = m->rank; i < m->rank + m->reductions; i++) {
    if (!same_size(m, i, image) || !same_size(m, i, weights)) return false;
    w->channels[w->channel_count++] = i;
  }
  return w->tile_axis[0] >= 0 && w->tile_axis[1] >= 0 && w->channel_count && w->output_count;
}

bool winograd_axes_of(const struct program *p, struct winograd_axes *w) {
  *w = (struct winograd_axes){.p = p};
  if (!p->winograd || !find_stages(w) || !is_alone(w) || !find_axes(w)) return false;
  w->tile = tensor(w, w->products)->axes[0].size - 2;
  return winograd_has_tile(w->tile);
}

int64_t winograd_weights(const struct winograd_axes *w) {
  const struct program_tensor *t = tensor(w, w->weights);
  int64_t bytes = program_dtype_bytes(t->dtype);
  for (int i = 0; i < t->rank; i++) bytes *= t->axes[i].size;
  return bytes;
}

int64_t winograd_tiles(const struct winograd_axes *w) {
  const struct program_tensor *t = tensor(w, w->products);
  int64_t count = t->axes[w->tile_axis[0]].size * t->axes[w->tile_axis[1]].size;
  for (int i = 0; i < w->image_count; i++) count *= t->axes[w->images[i]].size;
  return count;
}

bool winograd_offers(int64_t size, int64_t number, bool divides) {
  return size % number == 0 || (!divides && !(number & (number - 1)));
}

/* ---- text ---- */

/* Writes the text of the schedule. */
struct maker {
  const struct winograd_axes *w;
  const struct program_tensor *t; /* the products */
  int lanes;
  int64_t l2; /* bytes */
  bool wide;  /* vectors of DEFAULT_WINOGRAD_WIDE_BYTES */
  struct buf *out;
};

static const char *name_of(const struct maker *m, int axis) {
  return m->t->axes[axis].name;
}

/* Loops over the axes: `p_n, p_c, `. */
static void put_loops(struct maker *m, const char *prefix, const int *axes, int count) {
  for (int i = 0; i < count; i++) buf_printf(m->out, "%s%s, ", prefix, name_of(m, axes[i]));
}

/* The axes in a leaf: `p_n/n, p_c/c, `. */
static void put_axes(struct maker *m, const char *prefix, const int *axes, int count) {
  for (int i = 0; i < count; i++)
    buf_printf(m->out, "%s%s/%s, ", prefix, name_of(m, axes[i]), name_of(m, axes[i]));
}

/* The numbers up to `most` that a hole offers: `{1,2,4}`. */
static void put_choices(struct maker *m, int64_t size, int64_t most, bool divides) {
  const char *before = "{";
  for (int64_t i = 1; i <= size && i <= most; i++) {
    if (!winograd_offers(size, i, divides)) continue;
    buf_printf(m->out, "%s%" PRId64, before, i);
    before = ",";
  }
  buf_puts(m->out, "}");
}

static int64_t tiles(const struct maker *m, int which) {
  return m->t->axes[m->w->tile_axis[which]].size;
}

static int last_channel(const struct maker *m) {
  return m->w->channels[m->w->channel_count - 1];
}

static int last_output(const struct maker *m) {
  return m->w->outputs[m->w->output_count - 1];
}

/* Indents of leaves: in loops at the root, in loops in a block, in loops in a row of a block. */
static const char AT_ROOT[] = "    ", IN_BLOCK[] = "        ", IN_ROW[] = "            ";

static void put_stage(struct maker *m, const char *indent, int stage, const char *layout) {
  buf_printf(m->out, "\n%s@%s%s = ", indent, tensor(m->w, stage)->name, layout);
}

/* There are several images: the loop over a block's images runs in parallel. Else that over its
 * rows does. */
static bool has_images(const struct maker *m) {
  return m->w->image_count && m->t->axes[m->w->images[0]].size > 1;
}

/* The choices of a loop of a block, where the loop occurs first. */
static void put_hole(struct maker *m, bool first, int64_t size, int64_t most, bool divides) {
  if (first) buf_puts(m->out, ":");
  if (first) put_choices(m, size, most, divides);
}

/* The loops over the rows of a block: ni, hm and hi. Two stages transform a row. What the first
 * stores for the second stays in L2, which it would not for all rows at once. */
static void put_block(struct maker *m, bool first) {
  buf_puts(m->out, "    ");
  for (int i = 0; i < m->w->image_count; i++) {
    buf_printf(m->out, "ni_%s", name_of(m, m->w->images[i]));
    put_hole(m, first, m->t->axes[m->w->images[i]].size, DEFAULT_WINOGRAD_IMAGES, true);
    buf_puts(m->out, i == 0 && has_images(m) ? ":para, " : ", ");
  }
  buf_puts(m->out, "hm");
  put_hole(m, first, tiles(m, 0), DEFAULT_WINOGRAD_BLOCK_ROWS, false);
  buf_puts(m->out, has_images(m) ? ", hi" : ":para, hi");
  put_hole(m, first, tiles(m, 0), DEFAULT_WINOGRAD_TILE_ROWS, false);
  buf_puts(m->out, first ? ":peel =>\n" : " =>\n");
}

/* Batch axes and rows of tiles in a leaf of a block. */
static void put_block_axes(struct maker *m) {
  for (int i = 0; i < m->w->image_count; i++) {
    const char *name = name_of(m, m->w->images[i]);
    buf_printf(m->out, "{nb_%s, ni_%s}/%s, ", name, name, name);
  }
  buf_printf(m->out, "{hb, hm, hi}/%s, ", name_of(m, m->w->tile_axis[0]));
}

/* ---- the nests ---- */

/* The filter transform: two nests at the root. */
static void put_weights(struct maker *m) {
  const char *kw = tensor(m->w, m->w->half_weights)->axes[1].name,
             *lanes = name_of(m, last_output(m));
  int side = (int)m->w->tile + 2;
  buf_puts(m->out, "k_w, ");
  put_loops(m, "k_", m->w->channels, m->w->channel_count);
  put_loops(m, "k_", m->w->outputs, m->w->output_count - 1);
  buf_printf(m->out, "ob, k_a:%d:unroll, ov:{", side);
  for (int i = 1; i <= DEFAULT_WINOGRAD_VECTORS; i *= 2)
    if (i == 1 || i * m->lanes <= m->t->axes[last_output(m)].size)
      buf_printf(m->out, "%s%d", i == 1 ? "" : ",", i * m->lanes);
  buf_puts(m->out, "}:vec:mask =>");
  put_stage(m, AT_ROOT, m->w->half_weights, "");
  buf_printf(m->out, "k_a/%s, k_w/%s, ", name_of(m, 0), kw);
  put_axes(m, "k_", m->w->channels, m->w->channel_count);
  put_axes(m, "k_", m->w->outputs, m->w->output_count - 1);
  buf_printf(m->out, "{ob, ov}/%s\nl_a, ", lanes);
  put_loops(m, "l_", m->w->channels, m->w->channel_count);
  put_loops(m, "l_", m->w->outputs, m->w->output_count - 1);
  buf_printf(m->out, "ob, l_b:%d:unroll, ov:vec =>", side);
  struct buf layout = {0};
  buf_puts(&layout, "[l_a][l_b]");
  for (int i = 0; i + 1 < m->w->output_count; i++)
    buf_printf(&layout, "[l_%s]", name_of(m, m->w->outputs[i]));
  buf_puts(&layout, "[ob]");
  for (int i = 0; i < m->w->channel_count; i++)
    buf_printf(&layout, "[l_%s]", name_of(m, m->w->channels[i]));
  buf_puts(&layout, "[ov]");
  put_stage(m, AT_ROOT, m->w->weights, layout.text);
  buf_free(&layout);
  buf_printf(m->out, "l_a/%s, l_b/%s, ", name_of(m, 0), name_of(m, 1));
  put_axes(m, "l_", m->w->channels, m->w->channel_count);
  put_axes(m, "l_", m->w->outputs, m->w->output_count - 1);
  buf_printf(m->out, "{ob, ov}/%s\n", lanes);
}

/* Channels of the image in a leaf; the last one is split by the vector. */
static void put_channels(struct maker *m, const char *prefix) {
  put_axes(m, prefix, m->w->channels, m->w->channel_count - 1);
  buf_printf(m->out, "{cb, cv}/%s\n", name_of(m, last_channel(m)));
}

/* The padded image, then the loops over blocks with the input transform. */
static void put_image(struct maker *m) {
  const char *h = name_of(m, m->w->tile_axis[0]), *w = name_of(m, m->w->tile_axis[1]);
  int side = (int)m->w->tile + 2;
  put_loops(m, "p_", m->w->images, m->w->image_count);
  buf_puts(m->out, "p_h, p_w, ");
  put_loops(m, "p_", m->w->channels, m->w->channel_count - 1);
  buf_printf(m->out, "cb, cv:%d:vec:mask =>", m->lanes);
  put_stage(m, AT_ROOT, m->w->image, "");
  put_axes(m, "p_", m->w->images, m->w->image_count);
  buf_printf(m->out, "p_h/%s, p_w/%s, ", h, w);
  put_channels(m, "p_");
  put_loops(m, "nb_", m->w->images, m->w->image_count);
  buf_puts(m->out, "hb =>\n");
  put_block(m, true);
  buf_puts(m->out, "        r_w, ");
  put_loops(m, "r_", m->w->channels, m->w->channel_count - 1);
  buf_printf(m->out, "cb, r_a:%d:unroll, cv:vec =>", side);
  put_stage(m, IN_ROW, m->w->rows, "");
  put_block_axes(m);
  buf_printf(m->out, "r_w/%s, r_a/%s, ", w, name_of(m, 0));
  put_channels(m, "r_");
  buf_puts(m->out, "        t_a, t_w, ");
  put_loops(m, "t_", m->w->channels, m->w->channel_count - 1);
  buf_printf(m->out, "cb, t_b:%d:unroll, cv:vec =>", side);
  put_stage(m, IN_ROW, m->w->tiles, "");
  buf_printf(m->out, "t_a/%s, t_b/%s, ", name_of(m, 0), name_of(m, 1));
  put_block_axes(m);
  buf_printf(m->out, "t_w/%s, ", w);
  put_channels(m, "t_");
}

/* The weights exceed L2 and serve few tiles, so they come from beyond L2. They are prefetched: some
 * iterations of the reduction in advance with wide vectors, else panel by panel. */
static bool is_streamed(const struct maker *m) {
  return winograd_weights(m->w) > m->l2 && winograd_tiles(m->w) <= DEFAULT_WINOGRAD_PANEL_TILES;
}

/* The products, in register tiles. */
static void put_products(struct maker *m) {
  buf_puts(m->out, "    m_a:para, m_b, ");
  put_loops(m, "m_", m->w->outputs, m->w->output_count - 1);
  buf_puts(m->out, is_streamed(m) && !m->wide ? "ob:pf(1), " : "ob, ");
  put_loops(m, "ni_", m->w->images, m->w->image_count);
  buf_puts(m->out, "hm, wb, ");
  put_loops(m, "m_", m->w->channels, m->w->channel_count - 1);
  buf_printf(m->out, "m_%s", name_of(m, last_channel(m)));
  if (is_streamed(m) && m->wide) buf_printf(m->out, ":pf(%d)", DEFAULT_WINOGRAD_PREFETCH);
  buf_puts(m->out, ", hi:unroll, wi:");
  put_choices(m, tiles(m, 1), DEFAULT_WINOGRAD_COLUMNS, false);
  buf_puts(m->out, ":unroll:peel, ov:vec =>");
  put_stage(m, IN_BLOCK, m->w->products, "");
  buf_printf(m->out, "m_a/%s, m_b/%s, ", name_of(m, 0), name_of(m, 1));
  put_block_axes(m);
  buf_printf(m->out, "{wb, wi}/%s, ", name_of(m, m->w->tile_axis[1]));
  put_axes(m, "m_", m->w->outputs, m->w->output_count - 1);
  buf_printf(m->out, "{ob, ov}/%s // ", name_of(m, last_output(m)));
  for (int i = 0; i < m->w->channel_count; i++) {
    const char *name = name_of(m, m->w->channels[i]);
    buf_printf(m->out, "%sm_%s/%s", i ? ", " : "", name, name);
  }
  buf_puts(m->out, "\n");
}

/* The leaf of the output, or of an element-wise stage after it, which has axes in the same
 * order. */
static void put_output(struct maker *m, int stage) {
  const struct program_tensor *y = tensor(m->w, m->w->output), *t = tensor(m->w, stage);
  put_stage(m, IN_ROW, stage, "");
  for (int i = 0; i < y->rank; i++) {
    const char *name = y->axes[i].name, *own = t->axes[i].name, *comma = i ? ", " : "";
    int axis = axis_named(m->t, name);
    if (axis == m->w->tile_axis[0])
      buf_printf(m->out, "%s{hb, hm, hi, y_i}/%s", comma, own);
    else if (axis == m->w->tile_axis[1])
      buf_printf(m->out, "%s{y_w, y_j}/%s", comma, own);
    else if (axis == last_output(m))
      buf_printf(m->out, "%s{sb, sv}/%s", comma, own);
    else if (axis_named(tensor(m->w, m->w->tiles), name) >= 0)
      buf_printf(m->out, "%s{nb_%s, ni_%s}/%s", comma, name, name, own);
    else
      buf_printf(m->out, "%sy_%s/%s", comma, name, own);
  }
}

/* The output transform, and the element-wise stages after it. */
static void put_outputs(struct maker *m) {
  const struct program_tensor *s = tensor(m->w, m->w->half_output);
  /* axis i of Y_S stands behind its rows and columns of tiles */
  int before = axis_named(s, name_of(m, m->w->tile_axis[1])), tile = (int)m->w->tile;
  if (before < axis_named(s, name_of(m, m->w->tile_axis[0])))
    before = axis_named(s, name_of(m, m->w->tile_axis[0]));
  put_block(m, false);
  buf_puts(m->out, "        s_w, s_b, ");
  put_loops(m, "s_", m->w->outputs, m->w->output_count - 1);
  buf_printf(m->out, "sb, s_i:%d:unroll, sv:%d:vec:mask =>", tile, m->lanes);
  put_stage(m, IN_ROW, m->w->half_output, "");
  put_block_axes(m);
  buf_printf(m->out, "s_w/%s, s_i/%s, s_b/%s, ", name_of(m, m->w->tile_axis[1]),
             s->axes[before + 1].name, name_of(m, 1));
  put_axes(m, "s_", m->w->outputs, m->w->output_count - 1);
  buf_printf(m->out, "{sb, sv}/%s\n", name_of(m, last_output(m)));
  buf_printf(m->out, "        y_i:%d:peel, y_w, ", tile);
  put_loops(m, "y_", m->w->outputs, m->w->output_count - 1);
  buf_printf(m->out, "sb, y_j:%d:unroll:peel, sv:vec =>", tile);
  for (int i = m->w->output; i < m->w->p->tensors.count; i++)
    if (!tensor(m->w, i)->is_input) put_output(m, i);
  buf_puts(m->out, "\n");
}

struct schedule *winograd_nest(const struct program *p, const struct machine *machine) {
  struct buf text = {0};
  struct winograd_axes w;
  struct schedule *s = NULL;
  canvas_context ctx;
  if (!winograd_axes_of(p, &w)) return NULL;
  struct maker m = {.w = &w,
                    .t = tensor(&w, w.products),
                    .l2 = machine->l2,
                    .wide = machine->vector_bytes == DEFAULT_WINOGRAD_WIDE_BYTES,
                    .out = &text};
  m.lanes = default_lanes(m.t, machine);
  put_weights(&m);
  put_image(&m);
  put_products(&m);
  put_outputs(&m);
  if (schedule_parse(&ctx, text.text, text.length, &s) != CANVAS_OK) s = NULL;
  buf_free(&text);
  return s;
}
