/* Tile and block sizes of Winograd's convolution (winograd_nest.h), by a closed formula.
 *
 * A register tile is hi rows of wi tiles, times some vectors of output channels. A point is one of
 * its hi * wi tiles. One step of the reduction takes
 *
 *     max(points * vectors / 2,  (points + vectors) / 2,  DEFAULT_WINOGRAD_LATENCY,
 *         bytes of weights from L2 / DEFAULT_WINOGRAD_L2)
 *
 * cycles: multiply-adds, loads, the latency of an addition, and L2, if the weights of a tile take
 * half of L1 or more. Remainders of rows and columns are smaller tiles. Of equally cheap tiles, the
 * one that reads fewer weights from L2 wins.
 *
 * A block is the tiles that are transformed and multiplied together. Each block reads all weights
 * again: at DEFAULT_WINOGRAD_FAST bytes per cycle if they and the block fit into half of L2, else
 * at DEFAULT_WINOGRAD_SLOW. The block's own data is fast if it fits there with the weights of one
 * of the (tile + 2)^2 products.
 */
#include <inttypes.h>
#include <string.h>

#include "autoschedule/winograd_nest.h"
#include "base/buf.h"
#include "bind/loop_tree.h"
#include "cost/policy.h"
#include "program/affine.h"
#include "program/program_cost.h"

/* The numbers that are chosen, and what they are chosen for. */
struct choice {
  const struct winograd_axes *w;
  const struct program_tensor *t; /* the products */
  const struct machine *machine;
  int lanes;
  int64_t hi, wi;     /* rows and columns of tiles in a register tile */
  int64_t vectors;    /* of output channels in a register tile */
  int64_t hm, images; /* of a block: register tiles along its rows, images */
};

static int64_t rows_of(const struct choice *c) {
  return c->t->axes[c->w->tile_axis[0]].size;
}

static int64_t columns_of(const struct choice *c) {
  return c->t->axes[c->w->tile_axis[1]].size;
}

/* Size of the vector axis of the products. */
static int64_t outputs_of(const struct choice *c) {
  return c->t->axes[c->w->outputs[c->w->output_count - 1]].size;
}

static double larger(double a, double b) {
  return a > b ? a : b;
}

/* Steps of the reduction. */
static int64_t channels_of(const struct choice *c) {
  int64_t channels = 1;
  for (int i = 0; i < c->w->channel_count; i++) channels *= c->t->axes[c->w->channels[i]].size;
  return channels;
}

/* Bytes of weights that a step of the reduction reads from L2: none if those of a tile fit into
 * half of L1. */
static int64_t l2_weight_bytes(const struct choice *c) {
  int64_t bytes = c->vectors * c->machine->vector_bytes;
  return channels_of(c) * bytes >= c->machine->l1 / 2 ? bytes : 0;
}

/* Cycles of one step of the reduction in a register tile of so many points. */
static double step_cycles(const struct choice *c, int64_t points) {
  double cycles = larger((double)(points * c->vectors) / 2, (double)(points + c->vectors) / 2);
  return larger(larger(cycles, (double)l2_weight_bytes(c) / DEFAULT_WINOGRAD_L2),
                DEFAULT_WINOGRAD_LATENCY);
}

/* Cycles of one step in the register tiles of all columns, of so many rows of tiles. */
static double row_cycles(const struct choice *c, int64_t rows) {
  int64_t columns = columns_of(c), left = columns % c->wi, whole = columns / c->wi;
  double cycles = (double)whole * step_cycles(c, rows * c->wi);
  return left ? cycles + step_cycles(c, rows * left) : cycles;
}

/* Cycles of one step in all register tiles of one image. */
static double product_cycles(const struct choice *c) {
  int64_t rows = rows_of(c), left = rows % c->hi, whole = rows / c->hi;
  int64_t panels = (outputs_of(c) - 1) / (c->vectors * c->lanes) + 1;
  double cycles = (double)whole * row_cycles(c, c->hi);
  if (left) cycles += row_cycles(c, left);
  return cycles * (double)panels;
}

/* The cheapest register tile. Of equally cheap ones that which reads fewer weights from L2. */
static void choose_tile(struct choice *c) {
  int64_t rows = rows_of(c), columns = columns_of(c);
  int64_t channels = outputs_of(c);
  struct choice best = *c;
  double least = -1;
  for (c->vectors = DEFAULT_WINOGRAD_VECTORS; c->vectors >= 1; c->vectors /= 2)
    for (c->hi = 1; c->hi <= rows && c->hi <= DEFAULT_WINOGRAD_TILE_ROWS; c->hi++)
      for (c->wi = 1; c->wi <= columns && c->wi <= DEFAULT_WINOGRAD_COLUMNS; c->wi++) {
        int64_t sums = c->hi * c->wi * c->vectors;
        bool offered =
            winograd_offers(rows, c->hi, false) && winograd_offers(columns, c->wi, false);
        if (!offered || (c->vectors > 1 && c->vectors * c->lanes > channels)) continue;
        if (sums + c->vectors + 1 > c->machine->registers) continue;
        double cycles = product_cycles(c);
        bool fewer = cycles == least && l2_weight_bytes(c) < l2_weight_bytes(&best);
        if (least >= 0 && cycles >= least && !fewer) continue;
        least = cycles;
        best = *c;
      }
  *c = best;
}

static double bytes_per_cycle(bool in_l2) {
  return in_l2 ? DEFAULT_WINOGRAD_FAST : DEFAULT_WINOGRAD_SLOW;
}

/* Cycles of data that the products move to L1: the weights once per block, and each tile's
 * transforms twice. */
static double traffic_cycles(const struct choice *c) {
  int64_t rows = rows_of(c), columns = columns_of(c);
  int64_t all_tiles = winograd_tiles(c->w), side = c->w->tile + 2, block = c->hm * c->hi;
  int64_t channels = channels_of(c);
  for (int i = 0; i < c->w->output_count; i++) channels += c->t->axes[c->w->outputs[i]].size;
  int64_t tile_bytes = side * side * channels * program_dtype_bytes(c->t->dtype);
  int64_t tiles = (block < rows ? block : rows) * columns * c->images;
  int64_t weights = winograd_weights(c->w), room = c->machine->l2 / 2;
  int64_t blocks = (all_tiles - 1) / tiles + 1;
  double weights_read = (double)blocks * (double)weights;
  bool fits_all = weights + tiles * tile_bytes <= room;
  bool fits_one = weights / (side * side) + tiles * tile_bytes <= room;
  double cycles = weights_read / bytes_per_cycle(fits_all) +
                  2 * (double)(all_tiles * tile_bytes) / bytes_per_cycle(fits_one);
  return block < rows_of(c) && rows_of(c) % block ? DEFAULT_WINOGRAD_RAGGED * cycles : cycles;
}

/* Size of the first batch axis: blocks have several steps along this one only. */
static int64_t image_count(const struct choice *c) {
  return c->w->image_count ? c->t->axes[c->w->images[0]].size : 1;
}

/* The block with the least traffic. A block of several images has all of their rows. */
static void choose_block(struct choice *c) {
  int64_t rows = rows_of(c), images = image_count(c);
  struct choice best = *c;
  double least = -1;
  for (c->images = 1; c->images <= images && c->images <= DEFAULT_WINOGRAD_IMAGES; c->images++)
    for (c->hm = 1; c->hm <= rows && c->hm <= DEFAULT_WINOGRAD_BLOCK_ROWS; c->hm++) {
      int64_t block = c->hm * c->hi;
      if (!winograd_offers(rows, c->hm, false) || (block < rows && c->images > 1)) continue;
      if (!winograd_offers(images, c->images, true)) continue;
      double cycles = traffic_cycles(c);
      if (least >= 0 && cycles >= least) continue;
      least = cycles;
      best = *c;
    }
  *c = best;
}

/* Each load of the expression has stride 1 along the axis in its last index. */
static bool reads_contiguous(const struct program *p, int expr, int axis) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op == PX_LOAD) {
    int rank = p->tensors.data[n->tensor].rank;
    struct affine sum;
    int64_t stride;
    return rank && affine_of(p, p->indices.data[n->first + rank - 1], &sum) &&
           affine_stride(p, &sum, axis, &stride) && stride == 1;
  }
  for (int i = 0; i < PX_ARGS; i++)
    if (n->arg[i] >= 0 && p->nodes.data[n->arg[i]].sort == PX_VALUE &&
        !reads_contiguous(p, n->arg[i], axis))
      return false;
  return true;
}

/* Vectors along channels are contiguous in the image and in the output. */
static bool channels_are_innermost(const struct winograd_axes *w) {
  const struct program_tensor *y = &w->p->tensors.data[w->output];
  const struct program_tensor *t = &w->p->tensors.data[w->products];
  const struct program_tensor *image = &w->p->tensors.data[w->image];
  const char *lanes = t->axes[w->outputs[w->output_count - 1]].name;
  return !strcmp(y->axes[y->rank - 1].name, lanes) &&
         reads_contiguous(w->p, image->body, image->rank - 1);
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
