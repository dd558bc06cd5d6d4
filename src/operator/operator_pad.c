/* Zeros around the data. */
#include "operator/operator_build.h"

static canvas_status zero_pad(struct build *b, const char *letters) {
  char padded[LAYOUT_MAX];
  build_axis(b, 'n', "n", build_number(b, ARG_BATCH, 0));
  build_axis(b, 'c', "c", build_number(b, ARG_CHANNELS, 0));
  for (int i = 0; i < b->row->spatial; i++) {
    const struct spatial *s = build_spatial(b, i);
    int64_t data = build_number(b, s->argument, 0);
    build_axis(b, s->data, s->name, data);
    build_axis(b, s->padded, s->name, build_before(b, i) + data + build_after(b, i));
  }
  int x = build_input(b, "X", letters);
  int y = build_stage(b, "Y", b->type, build_padded(b, letters, padded));
  program_define(b->p, y, build_padded_load(b, x, letters, 0));
  return CANVAS_OK;
}

canvas_status build_zero_pad1d(struct build *b) {
  return zero_pad(b, "ncl");
}

canvas_status build_zero_pad2d(struct build *b) {
  return zero_pad(b, "nchw");
}
