/* The sketch of Winograd's convolution (program_edit.h): a block of rows of tiles is transformed, multiplied and
 * transformed back while it lies in the second cache.
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
 *
 * Weights and the image's border stand at the root. bench/native/winograd.schedule is one by hand.
 */
#include <string.h>

#include "base/buf.h"
#include "program/affine.h"
#include "program/program_edit.h"
#include "program/program_rebuild.h"
#include "schedule/schedule.h"
#include "tune/sketch.h"

enum { TILE_ROWS = 14, BLOCK_ROWS = 8, IMAGES = 10, VECTORS = 4 };
enum { FEW_TILES = 32, AHEAD = 20 }; /* steps after which weights are wanted */

/* The axes of the convolution by what they are to it. */
struct maker {
  const struct program *p;
  const struct program_tensor *t;
  const struct winograd *w;
  int images[PROGRAM_AXES], image_count; /* own axes of the image beside rows and columns */
  int others[PROGRAM_AXES], other_count; /* own axes of the weights alone; the last has the lanes */
  int sums[PROGRAM_AXES], sum_count;     /* channels; the last has the lanes of the image */
  int lanes;
  int64_t l2; /* bytes */
  struct buf *out;
};

static const char *name_of(const struct maker *m, int axis) {
  return m->t->axes[axis].name;
}

static bool of_image(const struct maker *m, int axis) {
  int condition = m->w->around < 0 ? -1 : m->p->nodes.data[m->w->around].arg[0];
  return px_mentions(m->p, m->w->image, axis) || px_mentions(m->p, condition, axis);
}

/* False where image and weights share axes, or something else is as the sketch does not know it. */
static bool sort_axes(struct maker *m) {
  for (int i = 0; i < m->t->rank + m->t->reductions; i++) {
    bool image = of_image(m, i), weights = px_mentions(m->p, m->w->weights, i);
    bool known =
        i == m->w->own[0] || i == m->w->own[1] || i == m->w->window[0] || i == m->w->window[1];
    if (known) continue;
    if (i >= m->t->rank ? !(image && weights) : image == weights) return false;
    if (i >= m->t->rank)
      m->sums[m->sum_count++] = i;
    else if (image)
      m->images[m->image_count++] = i;
    else
      m->others[m->other_count++] = i;
  }
  return m->sum_count > 0 && m->other_count > 0;
}

/* ---- text ---- */

/* `NAME, ` for each but the last `without`, as loops or, where they are named so, axes. */
static void put_loops(struct maker *m, const char *prefix, const int *axes, int count) {
  for (int i = 0; i < count; i++) buf_printf(m->out, "%s%s, ", prefix, name_of(m, axes[i]));
}

static void put_axes(struct maker *m, const char *prefix, const int *axes, int count) {
  for (int i = 0; i < count; i++)
    buf_printf(m->out, "%s%s/%s, ", prefix, name_of(m, axes[i]), name_of(m, axes[i]));
}

/* {1,2,4} up to `most`, those that divide `size` only or any. */
static void put_choices(struct maker *m, int64_t size, int64_t most, bool divide) {
  const char *before = "{";
  for (int64_t i = 1; i <= size && i <= most; i++) {
    bool power = !(i & (i - 1));
    if (divide ? size % i : !power && size % i) continue;
    buf_printf(m->out, "%s%lld", before, (long long)i);
    before = ",";
  }
  buf_puts(m->out, "}");
}

static int64_t tiles(const struct maker *m, int which) {
  return (m->t->axes[m->w->own[which]].size - 1) / m->w->tile + 1;
}

static int last_sum(const struct maker *m) {
  return m->sums[m->sum_count - 1];
}

static int last_other(const struct maker *m) {
  return m->others[m->other_count - 1];
}

static void put_stage(struct maker *m, int depth, const char *suffix, const char *layout) {
  buf_printf(m->out, "\n%*s@%s%s%s = ", 4 * depth, "", m->t->name, suffix, layout);
}

/* ni, hm and hi are all rows of a block; `numbers` where they stand first. A row is transformed by two stages,
 * and what the first leaves to the second stays in the second cache where of all rows it would not. */
static void put_block(struct maker *m, bool numbers) {
  buf_puts(m->out, "    ");
  for (int i = 0; i < m->image_count; i++) {
    buf_printf(m->out, "ni_%s", name_of(m, m->images[i]));
    if (numbers) buf_puts(m->out, ":");
    if (numbers) put_choices(m, m->t->axes[m->images[i]].size, IMAGES, true);
    buf_puts(m->out, ", ");
  }
  buf_puts(m->out, "hm");
  if (numbers) buf_puts(m->out, ":");
  if (numbers) put_choices(m, tiles(m, 0), BLOCK_ROWS, false);
  buf_puts(m->out, ", hi");
  if (numbers) buf_puts(m->out, ":");
  if (numbers) put_choices(m, tiles(m, 0), 4, false);
  buf_puts(m->out, numbers ? ":peel =>\n" : " =>\n");
}

static void put_block_axes(struct maker *m, const char *rows) {
  for (int i = 0; i < m->image_count; i++)
    buf_printf(m->out, "{nb_%s, ni_%s}/%s, ", name_of(m, m->images[i]), name_of(m, m->images[i]),
               name_of(m, m->images[i]));
  buf_printf(m->out, "{hb, hm, hi%s}/%s, ", rows, name_of(m, m->w->own[0]));
}

/* ---- the nests ---- */

static void put_weights(struct maker *m) {
  const char *kw = name_of(m, m->w->window[1]), *lanes = name_of(m, last_other(m));
  int side = m->w->tile + 2;
  buf_puts(m->out, "k_w, ");
  put_loops(m, "k_", m->sums, m->sum_count);
  put_loops(m, "k_", m->others, m->other_count - 1);
  buf_printf(m->out, "ob, k_a:%d:unroll, ov:{", side);
  for (int i = 1, first = 1; i <= VECTORS; i *= 2)
    if (i == 1 || i * m->lanes <= m->t->axes[last_other(m)].size) {
      buf_printf(m->out, "%s%d", first ? "" : ",", i * m->lanes);
      first = 0;
    }
  buf_puts(m->out, "}:vec:mask =>");
  put_stage(m, 1, "_WR", "");
  buf_printf(m->out, "k_a/a, k_w/%s, ", kw);
  put_axes(m, "k_", m->sums, m->sum_count);
  put_axes(m, "k_", m->others, m->other_count - 1);
  buf_printf(m->out, "{ob, ov}/%s\nl_a, ", lanes);
  put_loops(m, "l_", m->sums, m->sum_count);
  put_loops(m, "l_", m->others, m->other_count - 1);
  buf_printf(m->out, "ob, l_b:%d:unroll, ov:vec =>", side);
  struct buf layout = {0};
  buf_puts(&layout, "[l_a][l_b]");
  for (int i = 0; i + 1 < m->other_count; i++)
    buf_printf(&layout, "[l_%s]", name_of(m, m->others[i]));
  buf_puts(&layout, "[ob]");
  for (int i = 0; i < m->sum_count; i++) buf_printf(&layout, "[l_%s]", name_of(m, m->sums[i]));
  buf_puts(&layout, "[ov]");
  put_stage(m, 1, "_WT", layout.text);
  buf_free(&layout);
  buf_puts(m->out, "l_a/a, l_b/b, ");
  put_axes(m, "l_", m->sums, m->sum_count);
  put_axes(m, "l_", m->others, m->other_count - 1);
  buf_printf(m->out, "{ob, ov}/%s\n", lanes);
}

static void put_image(struct maker *m) {
  const char *h = name_of(m, m->w->own[0]), *w = name_of(m, m->w->own[1]);
  const char *lanes = name_of(m, last_sum(m));
  int side = m->w->tile + 2;
  put_loops(m, "p_", m->images, m->image_count);
  buf_puts(m->out, "p_h, p_w, ");
  put_loops(m, "p_", m->sums, m->sum_count - 1);
  buf_printf(m->out, "cb, cv:%d:vec:mask =>", m->lanes);
  put_stage(m, 1, "_P", "");
  put_axes(m, "p_", m->images, m->image_count);
  buf_printf(m->out, "p_h/%s, p_w/%s, ", h, w);
  put_axes(m, "p_", m->sums, m->sum_count - 1);
  buf_printf(m->out, "{cb, cv}/%s\n", lanes);
  put_loops(m, "nb_", m->images, m->image_count);
  buf_puts(m->out, "hb =>\n");
  put_block(m, true);
  buf_puts(m->out, "        r_w, ");
  put_loops(m, "r_", m->sums, m->sum_count - 1);
  buf_printf(m->out, "cb, r_a:%d:unroll, cv:vec =>", side);
  put_stage(m, 3, "_R", "");
  put_block_axes(m, "");
  buf_printf(m->out, "r_w/%s, r_a/a, ", w);
  put_axes(m, "r_", m->sums, m->sum_count - 1);
  buf_printf(m->out, "{cb, cv}/%s\n", lanes);
  buf_puts(m->out, "        t_a, t_w, ");
  put_loops(m, "t_", m->sums, m->sum_count - 1);
  buf_printf(m->out, "cb, t_b:%d:unroll, cv:vec =>", side);
  put_stage(m, 3, "_T", "");
  buf_puts(m->out, "t_a/a, t_b/b, ");
  put_block_axes(m, "");
  buf_printf(m->out, "t_w/%s, ", w);
  put_axes(m, "t_", m->sums, m->sum_count - 1);
  buf_printf(m->out, "{cb, cv}/%s\n", lanes);
}

/* Weights of more than the second cache, which so few tiles use that they hardly stay there. */
static bool is_streamed(const struct maker *m) {
  int64_t side = m->w->tile + 2, bytes = side * side * (m->t->dtype == PROGRAM_F64 ? 8 : 4);
  int64_t uses = tiles(m, 0) * tiles(m, 1);
  for (int i = 0; i < m->image_count; i++) uses *= m->t->axes[m->images[i]].size;
  for (int i = 0; i < m->sum_count; i++) bytes *= m->t->axes[m->sums[i]].size;
  for (int i = 0; i < m->other_count; i++) bytes *= m->t->axes[m->others[i]].size;
  return bytes > m->l2 && uses <= FEW_TILES;
}

static void put_products(struct maker *m) {
  const char *w = name_of(m, m->w->own[1]);
  buf_puts(m->out, "    m_a, m_b, ");
  put_loops(m, "m_", m->others, m->other_count - 1);
  buf_puts(m->out, "ob, ");
  put_loops(m, "ni_", m->images, m->image_count);
  buf_puts(m->out, "hm, wb, ");
  put_loops(m, "m_", m->sums, m->sum_count - 1);
  buf_printf(m->out, "m_%s", name_of(m, last_sum(m)));
  if (is_streamed(m)) buf_printf(m->out, ":pf(%d)", AHEAD);
  buf_puts(m->out, ", hi:unroll, wi:");
  put_choices(m, tiles(m, 1), TILE_ROWS, false);
  buf_puts(m->out, ":unroll:peel, ov:vec =>");
  put_stage(m, 2, "_M", "");
  buf_puts(m->out, "m_a/a, m_b/b, ");
  put_block_axes(m, "");
  buf_printf(m->out, "{wb, wi}/%s, ", w);
  put_axes(m, "m_", m->others, m->other_count - 1);
  buf_printf(m->out, "{ob, ov}/%s // ", name_of(m, last_other(m)));
  for (int i = 0; i < m->sum_count; i++)
    buf_printf(m->out, "%sm_%s/%s", i ? ", " : "", name_of(m, m->sums[i]), name_of(m, m->sums[i]));
  buf_puts(m->out, "\n");
}

static void put_back(struct maker *m) {
  const char *w = name_of(m, m->w->own[1]), *lanes = name_of(m, last_other(m));
  put_block(m, false);
  buf_puts(m->out, "        s_w, s_b, ");
  put_loops(m, "s_", m->others, m->other_count - 1);
  buf_printf(m->out, "sb, s_i:%d:unroll, sv:%d:vec:mask =>", m->w->tile, m->lanes);
  put_stage(m, 3, "_S", "");
  put_block_axes(m, "");
  buf_printf(m->out, "s_w/%s, s_i/i, s_b/b, ", w);
  put_axes(m, "s_", m->others, m->other_count - 1);
  buf_printf(m->out, "{sb, sv}/%s\n", lanes);
  buf_printf(m->out, "        y_i:%d:peel, y_w, ", m->w->tile);
  put_loops(m, "y_", m->others, m->other_count - 1);
  buf_printf(m->out, "sb, y_j:%d:unroll:peel, sv:vec =>", m->w->tile);
  put_stage(m, 3, "", "");
  put_block_axes(m, ", y_i");
  buf_printf(m->out, "{y_w, y_j}/%s, ", w);
  put_axes(m, "y_", m->others, m->other_count - 1);
  buf_printf(m->out, "{sb, sv}/%s\n", lanes);
}

/* What follows the convolution, and other stages, are none that this sketch knows. */
static int only_stage(const struct program *p) {
  int found = -1, count = 0;
  for (int i = 0; i < p->tensors.count; i++) {
    struct winograd w;
    if (p->tensors.data[i].is_input) continue;
    count++;
    if (!find_winograd(p, i, WINOGRAD, &w)) found = i;
  }
  return found >= 0 && count <= 2 && p->outputs.count == 1 && p->outputs.data[0] == found ? found
                                                                                          : -1;
}

struct schedule *sketch_winograd(const struct program *p, int tile, const struct machine *machine) {
  struct buf text = {0};
  struct winograd w;
  struct schedule *s = NULL;
  canvas_context ctx;
  int stage = only_stage(p);
  if (stage < 0 || find_winograd(p, stage, tile, &w)) return NULL;
  struct maker m = {.p = p, .t = &p->tensors.data[stage], .w = &w, .out = &text};
  m.l2 = machine->l2;
  m.lanes = machine->vector_bytes / (m.t->dtype == PROGRAM_F64 ? 8 : 4);
  if (!sort_axes(&m)) return NULL;
  put_weights(&m);
  put_image(&m);
  put_products(&m);
  put_back(&m);
  if (schedule_parse(&ctx, text.text, text.length, &s) != CANVAS_OK) s = NULL;
  buf_free(&text);
  return s;
}
