/* Shift convolutions: each channel is moved by one element of the window, no products.
 *
 * Which element is an index for each channel, or that of the largest weight; of several the first. The
 * data are padded so that the result is as large as they are.
 */
#include <math.h>

#include "operator/operator_build.h"

/* Zeros around the data, half of them before. */
static canvas_status open(struct build *b) {
  build_axis(b, 'n', "n", build_number(b, ARG_BATCH, 0));
  build_axis(b, 'c', "c", build_number(b, ARG_CHANNELS, 0));
  for (int i = 0; i < b->row->spatial; i++) {
    int64_t data = build_number(b, build_spatial(b, i)->argument, 0);
    int64_t all = (data - 1) * build_number(b, ARG_STRIDE, i) + build_span(b, i) - data;
    b->argument[ARG_PADDING].number[2 * i] = all / 2;
    b->argument[ARG_PADDING].number[2 * i + 1] = all - all / 2;
  }
  return build_windows(b, false);
}

canvas_status build_shiftconv2d_nhwc(struct build *b) {
  TRY(open(b));
  int x = build_input(b, "X", "nhwc");
  int place = build_index_input(b, "place", "c", 0, build_product(b, "yx") - 1, false);
  int pad = build_pad(b, x, "nhwc", 0), y = build_stage(b, "Y", b->type, "npqc");
  char padded[LAYOUT_MAX];
  build_unflatten(b, build_load(b, place, "c"), "yx");
  build_slide(b);
  program_define(b->p, y, build_load(b, pad, build_padded(b, "nhwc", padded)));
  return CANVAS_OK;
}

/* at['y'] and at['x'] as the number of an element of the window, as a value. */
static int element(struct build *b) {
  return px_real(b->p, build_flatten(b, "yx"));
}

canvas_status build_shiftconv2d_nhwc_argmax(struct build *b) {
  struct program *p = b->p;
  char padded[LAYOUT_MAX];
  TRY(open(b));
  int x = build_input(b, "X", "nhwc"), w = build_input(b, "W", "cyx");
  int pad = build_pad(b, x, "nhwc", 0), largest = build_stage(b, "largest", b->type, "c");
  build_reduce(b, largest, REDUCE_MAX, "yx");
  program_define(p, largest, build_load(b, w, "cyx"));
  int place = build_stage(b, "place", b->wide, "c");
  build_reduce(b, place, REDUCE_MIN, "yx");
  int is = px_compare(p, PX_EQ, build_load(b, w, "cyx"), build_load(b, largest, "c"));
  program_define(p, place, px_select(p, is, element(b), px_number(p, INFINITY)));
  int y = build_stage(b, "Y", b->type, "npqc");
  build_reduce(b, y, REDUCE_SUM, "yx");
  is = px_compare(p, PX_EQ, build_load(b, place, "c"), element(b));
  build_slide(b);
  int value = build_load(b, pad, build_padded(b, "nhwc", padded));
  program_define(p, y, px_select(p, is, value, px_number(p, 0)));
  return CANVAS_OK;
}
