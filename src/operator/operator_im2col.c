/* Data as a matrix whose columns are windows, and convolutions as products with it.
 *
 * The matrix has a row or column for each window and one for each element of a window; a place is
 * taken apart into (sample, row, column) and (channel, window row, window column) by / and %. Around the
 * data it holds zeros: the padding stands in its own expression.
 */
#include "operator/operator_build.h"

/* Letters beside those of windows: g group, k element of a window, a window, b channel of the
 * result, f the same within its group, e channel of the result as a row of the weight. */

canvas_status build_matrix_axes(struct build *b) {
  int64_t in = build_number(b, ARG_IN_CHANNELS, 0);
  bool grouped = b->argument[ARG_GROUPS].count > 0;
  int64_t groups = grouped ? build_number(b, ARG_GROUPS, 0) : 1;
  TRY(build_divides(b, "groups", groups, "in_channels", in));
  TRY(build_windows(b, false));
  build_axis(b, 'n', "n", build_number(b, ARG_BATCH, 0));
  build_axis(b, 'i', "ic", in);
  build_axis(b, 'c', "ic", in / groups);
  build_axis(b, 'g', "g", groups);
  build_axis(b, 'k', "k", build_product(b, "cyx"));
  build_axis(b, 'a', "y", build_product(b, "npq"));
  return CANVAS_OK;
}

int build_matrix(struct build *b, const char *name, const char *letters, const char *window, int x,
                 const char *data) {
  struct program *p = b->p;
  int stage = build_stage(b, name, b->type, letters);
  build_unflatten(b, b->at['k'], window);
  build_unflatten(b, b->at['a'], "npq");
  build_slide(b);
  int first = b->size['g'] > 1 ? px_mul(p, b->at['g'], px_int(p, b->size['c'])) : px_int(p, 0);
  b->at['i'] = px_add(p, first, b->at['c']);
  program_define(p, stage, build_padded_load(b, x, data, 0));
  return stage;
}

canvas_status build_im2col_nchw(struct build *b) {
  TRY(build_matrix_axes(b));
  build_matrix(b, "Y", "gka", "cyx", build_input(b, "X", "nihw"), "nihw");
  return CANVAS_OK;
}

canvas_status build_im2col_nhwc(struct build *b) {
  TRY(build_matrix_axes(b));
  build_matrix(b, "Y", "ak", "yxc", build_input(b, "X", "nhwi"), "nhwi");
  return CANVAS_OK;
}

/* A matrix [g, f, a], as a product with windows gives it, as the planes of channels g*f. */
canvas_status build_col2img_nchw(struct build *b) {
  int64_t groups = build_number(b, ARG_GROUPS, 0), channels = build_number(b, ARG_CHANNELS, 0);
  TRY(build_divides(b, "groups", groups, "channels", channels));
  build_axis(b, 'n', "n", build_number(b, ARG_BATCH, 0));
  build_axis(b, 'c', "c", channels);
  build_axis(b, 'p', "h", build_number(b, ARG_HEIGHT, 0));
  build_axis(b, 'q', "w", build_number(b, ARG_WIDTH, 0));
  build_axis(b, 'g', "g", groups);
  build_axis(b, 'f', "f", channels / groups);
  build_axis(b, 'a', "y", build_product(b, "npq"));
  int x = build_input(b, "X", "gfa"), y = build_stage(b, "Y", b->type, "ncpq");
  build_unflatten(b, b->at['c'], "gf");
  b->at['a'] = build_flatten(b, "npq");
  program_define(b->p, y, build_load(b, x, "gfa"));
  return CANVAS_OK;
}

canvas_status build_gemm_conv2d_nchw(struct build *b) {
  struct program *p = b->p;
  int64_t groups = build_number(b, ARG_GROUPS, 0), out = build_number(b, ARG_OUT_CHANNELS, 0);
  bool biased = build_number(b, ARG_BIAS, 0);
  TRY(build_matrix_axes(b));
  TRY(build_divides(b, "groups", groups, "out_channels", out));
  build_axis(b, 'o', "oc", out);
  build_axis(b, 'f', "f", out / groups);
  int x = build_input(b, "X", "nihw"), w = build_input(b, "W", "ocyx");
  int bias = biased ? build_input(b, "B", "o") : -1;
  int columns = build_matrix(b, "im2col", "gka", "cyx", x, "nihw");
  int product = build_stage(b, "product", b->wide, "gfa");
  build_reduce(b, product, REDUCE_SUM, "k");
  build_unflatten(b, b->at['k'], "cyx");
  b->at['o'] = build_flatten(b, "gf");
  program_define(p, product, px_mul(p, build_load(b, columns, "gka"), build_load(b, w, "ocyx")));
  int y = build_stage(b, "Y", b->type, "nopq");
  build_unflatten(b, b->at['o'], "gf");
  b->at['a'] = build_flatten(b, "npq");
  int value = build_load(b, product, "gfa");
  program_define(p, y, biased ? px_add(p, value, build_load(b, bias, "o")) : value);
  return CANVAS_OK;
}

canvas_status build_gemm_conv2d_nhwc(struct build *b) {
  struct program *p = b->p;
  bool biased = build_number(b, ARG_BIAS, 0);
  TRY(build_matrix_axes(b));
  build_axis(b, 'b', "x", build_number(b, ARG_OUT_CHANNELS, 0));
  int x = build_input(b, "X", "nhwi"), w = build_input(b, "W", "bk");
  int bias = biased ? build_input(b, "B", "b") : -1;
  int rows = build_matrix(b, "im2col", "ak", "yxc", x, "nhwi");
  int y = biased ? build_stage(b, "product", b->wide, "ab") : build_stage(b, "Y", b->type, "ab");
  build_reduce(b, y, REDUCE_SUM, "k");
  program_define(p, y, px_mul(p, build_load(b, rows, "ak"), build_load(b, w, "bk")));
  if (biased) build_bias(b, y, "ab", bias, "b");
  return CANVAS_OK;
}
