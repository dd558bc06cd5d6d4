/* Numbers for the loops of Winograd's convolution (winograd_nest.h), by a closed formula.
 *
 * A tile of registers is hi rows of wi tiles times some vectors of channels, where a step over the sums takes
 *
 *     max(points * vectors / 2,  (points + vectors) / 2,  6,  bytes of weights / 24)
 *
 * cycles: multiply-adds, loads, the latency of an addition, which tiles of eight sums do not hide quite, and what comes
 * from the second cache where the weights of a tile are half of the first or more; what is left over of rows and
 * columns is a smaller one. Of equals that is taken whose weights come from the first.
 * The block of tiles that is transformed and multiplied at a time reads all weights again, which come with 48 bytes
 * a cycle where they and the block take half of the second cache, else with 8, as do the block's own numbers where
 * they do not stay there beside the weights that a product reads.
 */
#include <inttypes.h>
#include <string.h>

#include "autoschedule/winograd_nest.h"
#include "base/buf.h"
#include "bind/loop_tree.h"
#include "program/affine.h"
#include "program/program_cost.h"

enum { LATENCY = 6, SECOND = 24 };
static const double FAST = 48, SLOW = 8; /* bytes a cycle */
/* Times as dear: a block that does not divide the rows, as what is left has code of its own. */
static const double RAGGED = 2;

struct choice {
  const struct winograd_axes *w;
  const struct program_tensor *t; /* the products */
  const struct machine *machine;
  int lanes;
  int64_t hi, wi, vectors, hm, images;
};

static int64_t rows_of(const struct choice *c) {
  return c->t->axes[c->w->own[0]].size;
}

static int64_t columns_of(const struct choice *c) {
  return c->t->axes[c->w->own[1]].size;
}

/* Channels of the result that are lanes. */
static int64_t outputs_of(const struct choice *c) {
  return c->t->axes[c->w->others[c->w->other_count - 1]].size;
}

static double more(double a, double b) {
  return a > b ? a : b;
}

static int64_t channels_of(const struct choice *c) {
  int64_t channels = 1;
  for (int i = 0; i < c->w->sum_count; i++) channels *= c->t->axes[c->w->sums[i]].size;
  return channels;
}

/* Bytes of weights that a step takes from the second cache. */
static int64_t from_second(const struct choice *c) {
  int64_t bytes = c->vectors * c->machine->vector_bytes;
  return channels_of(c) * bytes >= c->machine->l1 / 2 ? bytes : 0;
}

static double step(const struct choice *c, int64_t points) {
  double cycles = more((double)(points * c->vectors) / 2, (double)(points + c->vectors) / 2);
  return more(more(cycles, (double)from_second(c) / SECOND), LATENCY);
}

/* Of some rows of tiles, all columns. */
static double row_step(const struct choice *c, int64_t rows) {
  int64_t columns = columns_of(c), left = columns % c->wi;
  double cycles = (double)(columns / c->wi) * step(c, rows * c->wi);
  return left ? cycles + step(c, rows * left) : cycles;
}

/* Cycles of all tiles of registers for one channel of one image. */
static double products(const struct choice *c) {
  int64_t rows = rows_of(c), left = rows % c->hi;
  int64_t channels = outputs_of(c);
  double cycles = (double)(rows / c->hi) * row_step(c, c->hi);
  if (left) cycles += row_step(c, left);
  return cycles * (double)((channels - 1) / (c->vectors * c->lanes) + 1);
}

static void choose_tile(struct choice *c) {
  int64_t rows = rows_of(c), columns = columns_of(c);
  int64_t channels = outputs_of(c);
  struct choice best = *c;
  double least = -1;
  for (c->vectors = WINOGRAD_VECTORS; c->vectors >= 1; c->vectors /= 2)
    for (c->hi = 1; c->hi <= rows && c->hi <= WINOGRAD_TILE_ROWS; c->hi++)
      for (c->wi = 1; c->wi <= columns && c->wi <= WINOGRAD_TILE; c->wi++) {
        int64_t sums = c->hi * c->wi * c->vectors;
        bool offered =
            winograd_may_be(rows, c->hi, false) && winograd_may_be(columns, c->wi, false);
        if (!offered || (c->vectors > 1 && c->vectors * c->lanes > channels)) continue;
        if (sums + c->vectors + 1 > c->machine->registers) continue;
        double cycles = products(c);
        bool fewer = cycles == least && from_second(c) < from_second(&best);
        if (least >= 0 && cycles >= least && !fewer) continue;
        least = cycles;
        best = *c;
      }
  *c = best;
}

/* Of what comes to the first cache for the products. */
static double traffic(const struct choice *c) {
  int64_t rows = rows_of(c), columns = columns_of(c);
  int64_t all = winograd_tiles(c->w), side = c->w->tile + 2, block = c->hm * c->hi;
  int64_t channels = channels_of(c);
  for (int i = 0; i < c->w->other_count; i++) channels += c->t->axes[c->w->others[i]].size;
  int64_t each = side * side * channels * program_dtype_bytes(c->t->dtype);
  int64_t tiles = (block < rows ? block : rows) * columns * c->images;
  int64_t weights = winograd_weights(c->w), room = c->machine->l2 / 2;
  double again = (double)((all - 1) / tiles + 1) * (double)weights;
  bool both = weights + tiles * each <= room,
       alone = weights / (side * side) + tiles * each <= room;
  double cycles = again / (both ? FAST : SLOW) + 2 * (double)(all * each) / (alone ? FAST : SLOW);
  return block < rows_of(c) && rows_of(c) % block ? RAGGED * cycles : cycles;
}

/* Images of a batch stand in the first axis of them. */
static int64_t image_count(const struct choice *c) {
  return c->w->image_count ? c->t->axes[c->w->images[0]].size : 1;
}

static void choose_block(struct choice *c) {
  int64_t rows = rows_of(c), images = image_count(c);
  struct choice best = *c;
  double least = -1;
  for (c->images = 1; c->images <= images && c->images <= WINOGRAD_IMAGES; c->images++)
    for (c->hm = 1; c->hm <= rows && c->hm <= WINOGRAD_ROWS; c->hm++) {
      int64_t block = c->hm * c->hi;
      if (!winograd_may_be(rows, c->hm, false) || (block < rows && c->images > 1)) continue;
      if (!winograd_may_be(images, c->images, true)) continue;
      double cycles = traffic(c);
      if (least >= 0 && cycles >= least) continue;
      least = cycles;
      best = *c;
    }
  *c = best;
}

/* Each load's last index is the axis, and something that does not move. */
static bool reads_along(const struct program *p, int expr, int axis) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op == PX_LOAD) {
    int rank = p->tensors.data[n->tensor].rank;
    struct affine sum;
    int64_t stride;
    return rank && affine_of(p, p->indices.data[n->first + rank - 1], &sum) &&
           affine_stride(p, &sum, axis, &stride) && stride == 1;
  }
  for (int i = 0; i < 3; i++)
    if (n->arg[i] >= 0 && p->nodes.data[n->arg[i]].sort == PX_VALUE &&
        !reads_along(p, n->arg[i], axis))
      return false;
  return true;
}

/* Vectors of what is read and of what is written are contiguous. */
static bool channels_are_innermost(const struct winograd_axes *w) {
  const struct program_tensor *y = &w->p->tensors.data[w->last];
  const struct program_tensor *t = &w->p->tensors.data[w->products];
  const struct program_tensor *image = &w->p->tensors.data[w->image];
  const char *lanes = t->axes[w->others[w->other_count - 1]].name;
  return !strcmp(y->axes[y->rank - 1].name, lanes) &&
         reads_along(w->p, image->body, image->rank - 1);
}

static void put_numbers(const struct choice *c, struct buf *out) {
  for (int i = 0; i < c->w->image_count; i++)
    buf_printf(out, "ni_%s=%" PRId64 ",", c->t->axes[c->w->images[i]].name, i ? 1 : c->images);
  buf_printf(out, "hm=%" PRId64 ",hi=%" PRId64 ",wi=%" PRId64 ",ov=%" PRId64, c->hm, c->hi, c->wi,
             c->vectors * c->lanes);
}

struct schedule *default_winograd(const struct program *p, const struct machine *machine) {
  struct winograd_axes w;
  struct loop_tree *tree;
  struct buf numbers = {0};
  canvas_context ctx;
  if (!winograd_axes_of(p, &w) || !channels_are_innermost(&w)) return NULL;
  struct choice c = {
      .w = &w, .t = &p->tensors.data[w.products], .machine = machine, .hm = 1, .images = 1};
  c.lanes = machine->vector_bytes / program_dtype_bytes(c.t->dtype);
  choose_tile(&c);
  choose_block(&c);
  put_numbers(&c, &numbers);
  struct schedule *s = winograd_nest(p, machine);
  bool legal = s && schedule_set(&ctx, s, numbers.text) == CANVAS_OK &&
               loop_tree_bind(&ctx, p, s, machine, &tree) == CANVAS_OK;
  buf_free(&numbers);
  if (legal) {
    loop_tree_free(tree);
    return s;
  }
  schedule_free(s);
  return NULL;
}
