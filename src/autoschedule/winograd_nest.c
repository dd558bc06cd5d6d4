/* The loops of Winograd's convolution (program_edit.h), and of the maps that follow it: a block of rows of tiles is
 * transformed, multiplied and transformed back while it lies in the second cache.
 *
 *     nb, hb =>
 *         ni:{1,2}, hm:{1,2,4}, hi:{1,2,4}:peel =>         the image, row by row
 *             .. =>
 *                 @Y_R = {nb, ni}/n, {hb, hm, hi}/h, ..
 *             .. =>
 *                 @Y_T = ..
 *         a, b, ob, ni, hm, wb, c:pf(20), hi:unroll, wi:{4,7,14}:unroll:peel, ov:{16,32}:vec =>
 *             @Y_M = ..                                    the products, in tiles of registers
 *         ni, hm, hi =>                                    and back
 *             .. =>
 *                 @Y_S = ..
 *             .. =>
 *                 @Y = ..
 *                 @relu = ..
 *
 * Weights and the image's border stand at the root. bench/native/winograd.schedule is one by hand.
 */
#include <inttypes.h>
#include <string.h>

#include "autoschedule/winograd_nest.h"
#include "base/buf.h"
#include "program/affine.h"
#include "program/program_cost.h"
#include "program/program_facts.h"
#include "rewrite/program_rebuild.h"

enum { FEW_TILES = 32, AHEAD = 20 }; /* steps after which weights are wanted */

/* ---- the stages ---- */

static int axis_named(const struct program_tensor *t, const char *name) {
  for (int i = 0; i < t->rank + t->reductions; i++)
    if (!strcmp(t->axes[i].name, name)) return i;
  return -1;
}

/* The only stage that reads this one; -1. */
static int reader_of(const struct program *p, int stage) {
  int found = -1;
  for (int i = stage + 1; i < p->tensors.count; i++) {
    if (p->tensors.data[i].is_input || !stage_loads(p, i, stage)) continue;
    if (found >= 0) return -1;
    found = i;
  }
  return found;
}

/* The only stage that this one reads; -1 where it reads none or several. */
static int source_of(const struct program *p, int stage) {
  int found = -1;
  for (int i = 0; i < stage; i++) {
    if (p->tensors.data[i].is_input || !stage_loads(p, stage, i)) continue;
    if (found >= 0) return -1;
    found = i;
  }
  return found;
}

/* A product of two loads of stages, of the image and of weights. */
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

static bool find_stages(struct winograd_axes *w) {
  const struct program *p = w->p;
  int found = 0;
  for (int i = 0; i < p->tensors.count && !found; i++) found = is_product(p, i, w);
  if (!found) return false;
  w->rows = source_of(p, w->tiles);
  w->half = source_of(p, w->weights);
  w->image = w->rows < 0 ? -1 : source_of(p, w->rows);
  w->back = reader_of(p, w->products);
  w->last = w->back < 0 ? -1 : reader_of(p, w->back);
  return w->rows >= 0 && w->half >= 0 && w->image >= 0 && w->last >= 0 &&
         source_of(p, w->image) < 0 && source_of(p, w->half) < 0 &&
         source_of(p, w->back) == w->products && source_of(p, w->last) == w->back;
}

/* A stage of the convolution's shape behind it; what it reads of it, and where, is for bind to say. */
static bool is_map_of_it(const struct winograd_axes *w, int stage) {
  const struct program_tensor *t = &w->p->tensors.data[stage], *y = &w->p->tensors.data[w->last];
  if (t->reductions || t->rank != y->rank || stage < w->last) return false;
  for (int i = 0; i < t->rank; i++)
    if (t->axes[i].size != y->axes[i].size) return false;
  return true;
}

static bool is_alone(const struct winograd_axes *w) {
  for (int i = 0; i < w->p->tensors.count; i++) {
    bool known = i == w->half || i == w->weights || i == w->image || i == w->rows ||
                 i == w->tiles || i == w->products || i == w->back || i == w->last;
    if (!known && !w->p->tensors.data[i].is_input && !is_map_of_it(w, i)) return false;
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

/* Rows of tiles are rows of pixels in Y_P, columns are those in Y_R. */
static bool sort_axes(struct winograd_axes *w) {
  const struct program_tensor *m = tensor(w, w->products), *image = tensor(w, w->tiles),
                              *weights = tensor(w, w->weights);
  w->own[0] = w->own[1] = -1;
  for (int i = 2; i < m->rank; i++) {
    bool of_image = axis_named(image, m->axes[i].name) >= 0;
    bool of_weights = axis_named(weights, m->axes[i].name) >= 0;
    if (of_image == of_weights) return false;
    if (!of_image)
      w->others[w->other_count++] = i;
    else if (!same_size(m, i, image))
      return false;
    else if (!same_size(m, i, tensor(w, w->rows)))
      w->own[1] = i;
    else if (!same_size(m, i, tensor(w, w->image)))
      w->own[0] = i;
    else
      w->images[w->image_count++] = i;
  }
  for (int i = m->rank; i < m->rank + m->reductions; i++) {
    if (!same_size(m, i, image) || !same_size(m, i, weights)) return false;
    w->sums[w->sum_count++] = i;
  }
  return w->own[0] >= 0 && w->own[1] >= 0 && w->sum_count && w->other_count;
}

bool winograd_axes_of(const struct program *p, struct winograd_axes *w) {
  *w = (struct winograd_axes){.p = p};
  if (!p->winograd || !find_stages(w) || !is_alone(w) || !sort_axes(w)) return false;
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
  int64_t count = t->axes[w->own[0]].size * t->axes[w->own[1]].size;
  for (int i = 0; i < w->image_count; i++) count *= t->axes[w->images[i]].size;
  return count;
}

bool winograd_may_be(int64_t size, int64_t number, bool divide) {
  return size % number == 0 || (!divide && !(number & (number - 1)));
}

/* ---- text ---- */

struct maker {
  const struct winograd_axes *w;
  const struct program_tensor *t; /* the products */
  int lanes;
  int64_t l2; /* bytes */
  bool wide;  /* the machine has vectors of 64 bytes, for which that was measured */
  struct buf *out;
};

static const char *name_of(const struct maker *m, int axis) {
  return m->t->axes[axis].name;
}

/* `NAME, ` for each, as loops or, where they are named so, axes. */
static void put_loops(struct maker *m, const char *prefix, const int *axes, int count) {
  for (int i = 0; i < count; i++) buf_printf(m->out, "%s%s, ", prefix, name_of(m, axes[i]));
}

static void put_axes(struct maker *m, const char *prefix, const int *axes, int count) {
  for (int i = 0; i < count; i++)
    buf_printf(m->out, "%s%s/%s, ", prefix, name_of(m, axes[i]), name_of(m, axes[i]));
}

/* {1,2,4} up to `most`: those that divide `size` only, or powers of two as well. */
static void put_choices(struct maker *m, int64_t size, int64_t most, bool divide) {
  const char *before = "{";
  for (int64_t i = 1; i <= size && i <= most; i++) {
    if (!winograd_may_be(size, i, divide)) continue;
    buf_printf(m->out, "%s%" PRId64, before, i);
    before = ",";
  }
  buf_puts(m->out, "}");
}

static int64_t tiles(const struct maker *m, int which) {
  return m->t->axes[m->w->own[which]].size;
}

static int last_sum(const struct maker *m) {
  return m->w->sums[m->w->sum_count - 1];
}

static int last_other(const struct maker *m) {
  return m->w->others[m->w->other_count - 1];
}

static void put_stage(struct maker *m, int depth, int stage, const char *layout) {
  buf_printf(m->out, "\n%*s@%s%s = ", 4 * depth, "", tensor(m->w, stage)->name, layout);
}

/* The loop over a block's images, of one image over its rows, is run by several threads. */
static bool are_images(const struct maker *m) {
  return m->w->image_count && m->t->axes[m->w->images[0]].size > 1;
}

/* A loop of a block; its choices where it stands for the first time. */
static void put_hole(struct maker *m, bool first, int64_t size, int64_t most, bool divide) {
  if (first) buf_puts(m->out, ":");
  if (first) put_choices(m, size, most, divide);
}

/* ni, hm and hi are all rows of a block. A row is transformed by two stages, and what the first leaves to the second
 * stays in the second cache where of all rows it would not. */
static void put_block(struct maker *m, bool first) {
  buf_puts(m->out, "    ");
  for (int i = 0; i < m->w->image_count; i++) {
    buf_printf(m->out, "ni_%s", name_of(m, m->w->images[i]));
    put_hole(m, first, m->t->axes[m->w->images[i]].size, WINOGRAD_IMAGES, true);
    buf_puts(m->out, i == 0 && are_images(m) ? ":para, " : ", ");
  }
  buf_puts(m->out, "hm");
  put_hole(m, first, tiles(m, 0), WINOGRAD_ROWS, false);
  buf_puts(m->out, are_images(m) ? ", hi" : ":para, hi");
  put_hole(m, first, tiles(m, 0), WINOGRAD_TILE_ROWS, false);
  buf_puts(m->out, first ? ":peel =>\n" : " =>\n");
}

static void put_block_axes(struct maker *m) {
  for (int i = 0; i < m->w->image_count; i++) {
    const char *name = name_of(m, m->w->images[i]);
    buf_printf(m->out, "{nb_%s, ni_%s}/%s, ", name, name, name);
  }
  buf_printf(m->out, "{hb, hm, hi}/%s, ", name_of(m, m->w->own[0]));
}

/* ---- the nests ---- */

static void put_weights(struct maker *m) {
  const char *kw = tensor(m->w, m->w->half)->axes[1].name, *lanes = name_of(m, last_other(m));
  int side = (int)m->w->tile + 2;
  buf_puts(m->out, "k_w, ");
  put_loops(m, "k_", m->w->sums, m->w->sum_count);
  put_loops(m, "k_", m->w->others, m->w->other_count - 1);
  buf_printf(m->out, "ob, k_a:%d:unroll, ov:{", side);
  for (int i = 1; i <= WINOGRAD_VECTORS; i *= 2)
    if (i == 1 || i * m->lanes <= m->t->axes[last_other(m)].size)
      buf_printf(m->out, "%s%d", i == 1 ? "" : ",", i * m->lanes);
  buf_puts(m->out, "}:vec:mask =>");
  put_stage(m, 1, m->w->half, "");
  buf_printf(m->out, "k_a/%s, k_w/%s, ", name_of(m, 0), kw);
  put_axes(m, "k_", m->w->sums, m->w->sum_count);
  put_axes(m, "k_", m->w->others, m->w->other_count - 1);
  buf_printf(m->out, "{ob, ov}/%s\nl_a, ", lanes);
  put_loops(m, "l_", m->w->sums, m->w->sum_count);
  put_loops(m, "l_", m->w->others, m->w->other_count - 1);
  buf_printf(m->out, "ob, l_b:%d:unroll, ov:vec =>", side);
  struct buf layout = {0};
  buf_puts(&layout, "[l_a][l_b]");
  for (int i = 0; i + 1 < m->w->other_count; i++)
    buf_printf(&layout, "[l_%s]", name_of(m, m->w->others[i]));
  buf_puts(&layout, "[ob]");
  for (int i = 0; i < m->w->sum_count; i++)
    buf_printf(&layout, "[l_%s]", name_of(m, m->w->sums[i]));
  buf_puts(&layout, "[ov]");
  put_stage(m, 1, m->w->weights, layout.text);
  buf_free(&layout);
  buf_printf(m->out, "l_a/%s, l_b/%s, ", name_of(m, 0), name_of(m, 1));
  put_axes(m, "l_", m->w->sums, m->w->sum_count);
  put_axes(m, "l_", m->w->others, m->w->other_count - 1);
  buf_printf(m->out, "{ob, ov}/%s\n", lanes);
}

/* The loops over channels of the image but the vector, and their axes. */
static void put_channels(struct maker *m, const char *prefix) {
  put_axes(m, prefix, m->w->sums, m->w->sum_count - 1);
  buf_printf(m->out, "{cb, cv}/%s\n", name_of(m, last_sum(m)));
}

static void put_image(struct maker *m) {
  const char *h = name_of(m, m->w->own[0]), *w = name_of(m, m->w->own[1]);
  int side = (int)m->w->tile + 2;
  put_loops(m, "p_", m->w->images, m->w->image_count);
  buf_puts(m->out, "p_h, p_w, ");
  put_loops(m, "p_", m->w->sums, m->w->sum_count - 1);
  buf_printf(m->out, "cb, cv:%d:vec:mask =>", m->lanes);
  put_stage(m, 1, m->w->image, "");
  put_axes(m, "p_", m->w->images, m->w->image_count);
  buf_printf(m->out, "p_h/%s, p_w/%s, ", h, w);
  put_channels(m, "p_");
  put_loops(m, "nb_", m->w->images, m->w->image_count);
  buf_puts(m->out, "hb =>\n");
  put_block(m, true);
  buf_puts(m->out, "        r_w, ");
  put_loops(m, "r_", m->w->sums, m->w->sum_count - 1);
  buf_printf(m->out, "cb, r_a:%d:unroll, cv:vec =>", side);
  put_stage(m, 3, m->w->rows, "");
  put_block_axes(m);
  buf_printf(m->out, "r_w/%s, r_a/%s, ", w, name_of(m, 0));
  put_channels(m, "r_");
  buf_puts(m->out, "        t_a, t_w, ");
  put_loops(m, "t_", m->w->sums, m->w->sum_count - 1);
  buf_printf(m->out, "cb, t_b:%d:unroll, cv:vec =>", side);
  put_stage(m, 3, m->w->tiles, "");
  buf_printf(m->out, "t_a/%s, t_b/%s, ", name_of(m, 0), name_of(m, 1));
  put_block_axes(m);
  buf_printf(m->out, "t_w/%s, ", w);
  put_channels(m, "t_");
}

/* Weights of more than the second cache, which so few tiles use that they hardly stay there: they are asked for some
 * steps ahead, or block by block, while the one before is used. */
static bool is_streamed(const struct maker *m) {
  return winograd_weights(m->w) > m->l2 && winograd_tiles(m->w) <= FEW_TILES;
}

static void put_products(struct maker *m) {
  buf_puts(m->out, "    m_a:para, m_b, ");
  put_loops(m, "m_", m->w->others, m->w->other_count - 1);
  buf_puts(m->out, is_streamed(m) && !m->wide ? "ob:pf(1), " : "ob, ");
  put_loops(m, "ni_", m->w->images, m->w->image_count);
  buf_puts(m->out, "hm, wb, ");
  put_loops(m, "m_", m->w->sums, m->w->sum_count - 1);
  buf_printf(m->out, "m_%s", name_of(m, last_sum(m)));
  if (is_streamed(m) && m->wide) buf_printf(m->out, ":pf(%d)", AHEAD);
  buf_puts(m->out, ", hi:unroll, wi:");
  put_choices(m, tiles(m, 1), WINOGRAD_TILE, false);
  buf_puts(m->out, ":unroll:peel, ov:vec =>");
  put_stage(m, 2, m->w->products, "");
  buf_printf(m->out, "m_a/%s, m_b/%s, ", name_of(m, 0), name_of(m, 1));
  put_block_axes(m);
  buf_printf(m->out, "{wb, wi}/%s, ", name_of(m, m->w->own[1]));
  put_axes(m, "m_", m->w->others, m->w->other_count - 1);
  buf_printf(m->out, "{ob, ov}/%s // ", name_of(m, last_other(m)));
  for (int i = 0; i < m->w->sum_count; i++) {
    const char *name = name_of(m, m->w->sums[i]);
    buf_printf(m->out, "%sm_%s/%s", i ? ", " : "", name, name);
  }
  buf_puts(m->out, "\n");
}

/* The convolution, or a map of it, whose axes stand in the same order. */
static void put_map(struct maker *m, int stage) {
  const struct program_tensor *y = tensor(m->w, m->w->last), *t = tensor(m->w, stage);
  put_stage(m, 3, stage, "");
  for (int i = 0; i < y->rank; i++) {
    const char *name = y->axes[i].name, *own = t->axes[i].name, *comma = i ? ", " : "";
    int axis = axis_named(m->t, name);
    if (axis == m->w->own[0])
      buf_printf(m->out, "%s{hb, hm, hi, y_i}/%s", comma, own);
    else if (axis == m->w->own[1])
      buf_printf(m->out, "%s{y_w, y_j}/%s", comma, own);
    else if (axis == last_other(m))
      buf_printf(m->out, "%s{sb, sv}/%s", comma, own);
    else if (axis_named(tensor(m->w, m->w->tiles), name) >= 0)
      buf_printf(m->out, "%s{nb_%s, ni_%s}/%s", comma, name, name, own);
    else
      buf_printf(m->out, "%sy_%s/%s", comma, name, own);
  }
}

static void put_back(struct maker *m) {
  const struct program_tensor *s = tensor(m->w, m->w->back);
  int half = axis_named(s, name_of(m, m->w->own[1])), tile = (int)m->w->tile;
  if (half < axis_named(s, name_of(m, m->w->own[0])))
    half = axis_named(s, name_of(m, m->w->own[0]));
  put_block(m, false);
  buf_puts(m->out, "        s_w, s_b, ");
  put_loops(m, "s_", m->w->others, m->w->other_count - 1);
  buf_printf(m->out, "sb, s_i:%d:unroll, sv:%d:vec:mask =>", tile, m->lanes);
  put_stage(m, 3, m->w->back, "");
  put_block_axes(m);
  buf_printf(m->out, "s_w/%s, s_i/%s, s_b/%s, ", name_of(m, m->w->own[1]), s->axes[half + 1].name,
             name_of(m, 1));
  put_axes(m, "s_", m->w->others, m->w->other_count - 1);
  buf_printf(m->out, "{sb, sv}/%s\n", name_of(m, last_other(m)));
  buf_printf(m->out, "        y_i:%d:peel, y_w, ", tile);
  put_loops(m, "y_", m->w->others, m->w->other_count - 1);
  buf_printf(m->out, "sb, y_j:%d:unroll:peel, sv:vec =>", tile);
  for (int i = m->w->last; i < m->w->p->tensors.count; i++)
    if (!tensor(m->w, i)->is_input) put_map(m, i);
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
                    .wide = machine->vector_bytes == 64,
                    .out = &text};
  m.lanes = machine->vector_bytes / (m.t->dtype == PROGRAM_F64 ? 8 : 4);
  put_weights(&m);
  put_image(&m);
  put_products(&m);
  put_back(&m);
  if (schedule_parse(&ctx, text.text, text.length, &s) != CANVAS_OK) s = NULL;
  buf_free(&text);
  return s;
}
