/* Zeros around the data, and between them. */
#include "operator/operator_build.h"

static canvas_status zero_pad(struct build *b, const char *letters) {
  char padded[LAYOUT_MAX];
  build_axis(b, 'n', "n", build_number(b, ARG_BATCH, 0));
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

/* Y[stride*l] = X[l], and zeros between. */
static canvas_status zero_expand(struct build *b, const char *data, const char *result) {
  struct program *p = b->p;
  build_axis(b, 'n', "n", build_number(b, ARG_BATCH, 0));
  for (int i = 0; i < b->row->spatial; i++) {
    const struct spatial *s = build_spatial(b, i);
    int64_t size = build_number(b, s->argument, 0);
    build_axis(b, s->data, s->name, size);
    build_axis(b, s->result, s->name, (size - 1) * build_number(b, ARG_STRIDE, i) + 1);
  }
  int x = build_input(b, "X", data), y = build_stage(b, "Y", b->type, result);
  int there = px_bool(p, true);
  for (int i = 0; i < b->row->spatial; i++) {
    const struct spatial *s = build_spatial(b, i);
    int at = b->at[s->result], stride = px_int(p, build_number(b, ARG_STRIDE, i));
    there = px_and(p, there, px_compare(p, PX_EQ, px_mod(p, at, stride), px_int(p, 0)));
    b->at[s->data] = px_div(p, at, stride);
  }
  program_define(p, y, px_select(p, there, build_load(b, x, data), px_number(p, 0)));
  return CANVAS_OK;
}

static void channels(struct build *b) {
  build_axis(b, 'c', "c", build_number(b, ARG_CHANNELS, 0));
}

canvas_status build_zero_pad1d(struct build *b) {
  channels(b);
  return zero_pad(b, "ncl");
}

canvas_status build_zero_pad2d(struct build *b) {
  channels(b);
  return zero_pad(b, "nchw");
}

canvas_status build_zero_pad2d_nchwc(struct build *b) {
  int64_t all = build_number(b, ARG_CHANNELS, 0), block = build_number(b, ARG_IN_BLOCK, 0);
  TRY(build_divides(b, "in_block", block, "channels", all));
  build_axis(b, 'c', "C", all / block);
  build_axis(b, 'j', "c", block);
  return zero_pad(b, "nchwj");
}

canvas_status build_zero_pad3d(struct build *b) {
  channels(b);
  return zero_pad(b, "ncdhw");
}

canvas_status build_zero_expand1d(struct build *b) {
  channels(b);
  return zero_expand(b, "ncl", "ncs");
}

canvas_status build_zero_expand2d(struct build *b) {
  channels(b);
  return zero_expand(b, "nchw", "ncpq");
}

canvas_status build_zero_expand3d(struct build *b) {
  channels(b);
  return zero_expand(b, "ncdhw", "ncapq");
}
