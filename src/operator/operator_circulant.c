/* Block-circulant matrices: every row of a block is the one above it, moved by one to the right, so that a
 * block is known by its first row.
 *
 *   matrix[i, j] = first[i / block, j / block, (j - i) % block]
 */
#include "operator/operator_build.h"

/* Letters: d row of blocks, e column of blocks, s place in a block's first row. */
static int load_first(struct build *b, int first, int i, int j) {
  struct program *p = b->p;
  int block = px_int(p, b->size['s']);
  b->at['d'] = px_div(p, i, block);
  b->at['e'] = px_div(p, j, block);
  b->at['s'] = px_mod(p, px_sub(p, j, i), block);
  return build_load(b, first, "des");
}

static void block_axes(struct build *b, int64_t rows, int64_t columns, int64_t block) {
  build_axis(b, 'd', "rb", rows / block);
  build_axis(b, 'e', "cb", columns / block);
  build_axis(b, 's', "s", block);
}

/* The nearest block-circulant matrix: means along the diagonals of the blocks; 0 where no whole block is. */
canvas_status build_block_circulant_matrix(struct build *b) {
  struct program *p = b->p;
  int64_t rows = build_number(b, ARG_ROWS, 0), columns = build_number(b, ARG_COLUMNS, 0);
  int64_t block = build_number(b, ARG_BLOCK, 0);
  if (block > rows || block > columns)
    return fail(b->ctx, CANVAS_BAD_INPUT,
                "%s: a matrix of %lld x %lld holds no block of %lld x %lld", b->row->name,
                (long long)rows, (long long)columns, (long long)block, (long long)block);
  build_axis(b, 'i', "i", rows);
  build_axis(b, 'j', "j", columns);
  block_axes(b, rows, columns, block);
  build_axis(b, 'k', "k", block);
  int x = build_input(b, "X", "ij"), first = build_stage(b, "first", b->wide, "des");
  build_reduce(b, first, REDUCE_MEAN, "k");
  int size = px_int(p, block), column = px_mod(p, px_add(p, b->at['s'], b->at['k']), size);
  b->at['i'] = px_add(p, px_mul(p, b->at['d'], size), b->at['k']);
  b->at['j'] = px_add(p, px_mul(p, b->at['e'], size), column);
  program_define(p, first, build_load(b, x, "ij"));
  int y = build_stage(b, "Y", b->type, "ij");
  int there = px_compare(p, PX_LT, b->at['i'], px_int(p, rows / block * block));
  there = px_and(p, there, px_compare(p, PX_LT, b->at['j'], px_int(p, columns / block * block)));
  int value = load_first(b, first, b->at['i'], b->at['j']);
  program_define(p, y, px_select(p, there, value, px_number(p, 0)));
  return CANVAS_OK;
}

canvas_status build_block_circulant_linear(struct build *b) {
  struct program *p = b->p;
  int64_t in = build_number(b, ARG_IN_FEATURES, 0), out = build_number(b, ARG_OUT_FEATURES, 0);
  int64_t block = build_number(b, ARG_BLOCK, 0);
  bool biased = build_number(b, ARG_BIAS, 0);
  TRY(build_divides(b, "block", block, "in_features", in));
  TRY(build_divides(b, "block", block, "out_features", out));
  build_axis(b, 'n', "n", build_number(b, ARG_BATCH, 0));
  build_axis(b, 'k', "i", in);
  build_axis(b, 'o', "o", out);
  block_axes(b, out, in, block);
  int x = build_input(b, "X", "nk"), w = build_input(b, "W", "des");
  int bias = biased ? build_input(b, "B", "o") : -1;
  int y = biased ? build_stage(b, "product", b->wide, "no") : build_stage(b, "Y", b->type, "no");
  build_reduce(b, y, REDUCE_SUM, "k");
  int weight = load_first(b, w, b->at['o'], b->at['k']);
  program_define(p, y, px_mul(p, build_load(b, x, "nk"), weight));
  if (biased) build_bias(b, y, "no", bias, "o");
  return CANVAS_OK;
}
