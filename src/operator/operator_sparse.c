/* Products with a block-sparse matrix W [R, K] (BSR): of its blocks of block_rows x block_columns only
 * some are stored, row of blocks by row of blocks:
 *
 *   W [e, row, column]    block e
 *   ind [e]               its column among the columns of blocks
 *   ptr [r], ptr [r+1]    row r has the blocks ptr[r] .. ptr[r+1]
 *
 * A stage `parts` sums over the blocks of a row, apart for each of its rows (and, in the
 * convolution, columns: lanes of a vector, whichever of the two is long).
 */
#include "operator/operator_build.h"

/* Letters beside those of windows: a row of the data, k what is summed over, b row of W; d row of blocks
 * and j one more, z stored block, r row and s column within a block. */

struct sparse {
  int weight, ind, ptr;
};

static canvas_status sparse_axes(struct build *b, const char *what, int64_t rows,
                                 const char *summed, int64_t columns) {
  int64_t block_rows = build_number(b, ARG_BLOCK_ROWS, 0);
  int64_t block_columns = build_number(b, ARG_BLOCK_COLUMNS, 0);
  int64_t blocks = build_number(b, ARG_BLOCKS, 0);
  TRY(build_divides(b, "block_rows", block_rows, what, rows));
  TRY(build_divides(b, "block_columns", block_columns, summed, columns));
  int64_t wide = columns / block_columns < OPERATOR_SIZE_MAX ? columns / block_columns : blocks;
  if (blocks > rows / block_rows * wide)
    return fail(b->ctx, CANVAS_BAD_INPUT, "%s: a weight of %lld x %lld blocks has no %lld of them",
                b->row->name, (long long)(rows / block_rows), (long long)(columns / block_columns),
                (long long)blocks);
  b->size['d'] = rows / block_rows;
  b->size['r'] = block_rows;
  b->size['s'] = block_columns;
  build_axis(b, 'j', "r", rows / block_rows + 1);
  build_axis(b, 'z', "e", blocks);
  return CANVAS_OK;
}

static struct sparse sparse_inputs(struct build *b, int64_t columns) {
  int64_t last = columns / b->size['s'] - 1;
  struct sparse w = {.weight = build_input(b, "W", "zrs")};
  w.ind = build_index_input(b, "ind", "z", 0, last, false);
  w.ptr = build_index_input(b, "ptr", "j", 0, b->size['z'], true);
  return w;
}

/* at['z'] over the blocks of row at['d'], and at['k'], the column of W at column at['s'] of the block. */
static void reduce_blocks(struct build *b, int stage, const char *name, const struct sparse *w) {
  struct program *p = b->p;
  int row = b->at['d'], next = px_add(p, row, px_int(p, 1));
  int low = px_load(p, w->ptr, 1, &row), high = px_load(p, w->ptr, 1, &next);
  b->at['z'] = program_reduce_range(p, stage, REDUCE_SUM, name, low, high);
}

static void sparse_column(struct build *b, const struct sparse *w) {
  struct program *p = b->p;
  int column = build_load(b, w->ind, "z");
  b->at['k'] = px_add(p, px_mul(p, column, px_int(p, b->size['s'])), b->at['s']);
}

canvas_status build_bsr_gemm(struct build *b) {
  struct program *p = b->p;
  bool biased = build_number(b, ARG_BIAS, 0);
  build_axis(b, 'a', "m", build_number(b, ARG_M, 0));
  build_axis(b, 'k', "k", build_number(b, ARG_K, 0));
  build_axis(b, 'b', "n", build_number(b, ARG_N, 0));
  b->name['d'] = "nblk";
  b->name['r'] = "br";
  b->name['s'] = "bc";
  TRY(sparse_axes(b, "n", b->size['b'], "k", b->size['k']));
  int x = build_input(b, "X", "ak");
  struct sparse w = sparse_inputs(b, b->size['k']);
  int bias = biased ? build_input(b, "B", "b") : -1;
  int parts = build_stage(b, "parts", b->wide, "adr");
  reduce_blocks(b, parts, "elem", &w);
  build_reduce(b, parts, REDUCE_SUM, "s");
  sparse_column(b, &w);
  program_define(p, parts, px_mul(p, build_load(b, x, "ak"), build_load(b, w.weight, "zrs")));
  int y = build_stage(b, "Y", b->type, "ab");
  build_unflatten(b, b->at['b'], "dr");
  int value = build_load(b, parts, "adr");
  program_define(p, y, biased ? px_add(p, value, build_load(b, bias, "b")) : value);
  return CANVAS_OK;
}

/* A tile along an image's rows finds what im2col would copy where it lies. The index of each stored column, one
 * division, is worth it, unless rows are too short for a tile. */
static bool reads_windows(const struct build *b) {
  enum { ROW = 4 };
  return b->size['s'] == 1 && b->size['q'] >= ROW;
}

/* parts [n, p, q, d, r, s], from the padded image at the position at['k']. */
static int window_parts(struct build *b, int x, const struct sparse *w) {
  char letters[LAYOUT_MAX];
  int pad = build_pad(b, x, "nhwi", 0), parts = build_stage(b, "parts", b->wide, "npqdrs");
  reduce_blocks(b, parts, "ko", w);
  sparse_column(b, w);
  build_unflatten(b, b->at['k'], "yxc");
  build_slide(b);
  b->at['i'] = b->at['c'];
  int value = build_load(b, pad, build_padded(b, "nhwi", letters));
  program_define(b->p, parts, px_mul(b->p, value, build_load(b, w->weight, "zrs")));
  return parts;
}

static int column_parts(struct build *b, int x, const struct sparse *w) {
  int rows = build_matrix(b, "im2col", "ak", "yxc", x, "nhwi");
  int parts = build_stage(b, "parts", b->wide, "adrs");
  reduce_blocks(b, parts, "ko", w);
  sparse_column(b, w);
  int value = build_load(b, rows, "ak");
  program_define(b->p, parts, px_mul(b->p, value, build_load(b, w->weight, "zrs")));
  return parts;
}

canvas_status build_bsr_conv2d_nhwc(struct build *b) {
  struct program *p = b->p;
  bool biased = build_number(b, ARG_BIAS, 0);
  TRY(build_matrix_axes(b));
  build_axis(b, 'b', "x", build_number(b, ARG_OUT_CHANNELS, 0));
  b->name['d'] = "xr";
  b->name['r'] = "xi";
  b->name['s'] = "ki";
  TRY(sparse_axes(b, "out_channels", b->size['b'], "the elements of a window,", b->size['k']));
  int x = build_input(b, "X", "nhwi");
  struct sparse w = sparse_inputs(b, b->size['k']);
  int bias = biased ? build_input(b, "B", "b") : -1;
  bool windows = reads_windows(b);
  int parts = windows ? window_parts(b, x, &w) : column_parts(b, x, &w);
  int y = biased ? build_stage(b, "product", b->wide, "ab") : build_stage(b, "Y", b->type, "ab");
  build_unflatten(b, b->at['b'], "dr");
  if (windows) build_unflatten(b, b->at['a'], "npq");
  build_reduce(b, y, REDUCE_SUM, "s");
  program_define(p, y, build_load(b, parts, windows ? "npqdrs" : "adrs"));
  if (biased) build_bias(b, y, "ab", bias, "b");
  return CANVAS_OK;
}
