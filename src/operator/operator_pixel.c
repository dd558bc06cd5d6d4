/* Masked convolutions, whose windows see the pixels before their own in reading order only (mask A), or
 * these and their own (mask B), and the gated layer that is built of them.
 *
 * The rows of a window below its middle are seen by neither and are left away: the weight's stage `mask`
 * ends with the middle row, in which zeros stand for what is not seen.
 */
#include <string.h>

#include "operator/operator_build.h"

static void channels(struct build *b, int64_t in, int64_t out) {
  build_axis(b, 'n', "n", build_number(b, ARG_BATCH, 0));
  build_axis(b, 'c', "ic", in);
  build_axis(b, 'o', "oc", out);
}

/* The weight[ocyx] that is seen; size['y'] from then on is that of the rows that are. */
static int mask(struct build *b, const char *name, int weight, bool itself) {
  struct program *p = b->p;
  int64_t middle = b->size['y'] / 2, last = b->size['x'] / 2 + itself;
  build_axis(b, 'y', b->name['y'], middle + 1);
  int stage = build_stage(b, name, b->type, "ocyx");
  int above = px_compare(p, PX_LT, b->at['y'], px_int(p, middle));
  int before = px_compare(p, PX_LT, b->at['x'], px_int(p, last));
  int value = px_select(p, px_or(p, above, before), build_load(b, weight, "ocyx"), px_number(p, 0));
  program_define(p, stage, value);
  return stage;
}

/* tensor[tensor_letters] times weight[weight_letters], summed. */
static int product(struct build *b, const char *name, enum program_dtype type, const char *reduce,
                   int tensor, const char *tensor_letters, int weight, const char *letters) {
  int stage = build_stage(b, name, type, "npqo");
  build_reduce(b, stage, REDUCE_SUM, reduce);
  if (strchr(reduce, 'y') || strchr(reduce, 'x')) build_slide(b);
  int value = build_load(b, tensor, tensor_letters);
  program_define(b->p, stage, px_mul(b->p, value, build_load(b, weight, letters)));
  return stage;
}

canvas_status build_pixelcnn(struct build *b) {
  bool biased = build_number(b, ARG_BIAS, 0), itself = build_number(b, ARG_MASK_TYPE, 0);
  channels(b, build_number(b, ARG_IN_CHANNELS, 0), build_number(b, ARG_OUT_CHANNELS, 0));
  TRY(build_windows(b, false));
  int x = build_input(b, "X", "nhwc"), w = build_input(b, "W", "ocyx");
  int bias = biased ? build_input(b, "B", "o") : -1;
  int pad = build_pad(b, x, "nhwc", 0), seen = mask(b, "mask", w, itself);
  int y = product(b, biased ? "conv" : "Y", biased ? b->wide : b->type, "yxc", pad, "nuvc", seen,
                  "ocyx");
  if (biased) build_bias(b, y, "npqo", bias, "o");
  return CANVAS_OK;
}

/* Padding with which the result is as large as the data. */
static canvas_status pad_evenly(struct build *b) {
  for (int i = 0; i < b->row->spatial; i++) {
    int64_t kernel = build_number(b, ARG_KERNEL, i), half = (build_span(b, i) - 1) / 2;
    if (kernel % 2 == 0)
      return fail(b->ctx, CANVAS_BAD_INPUT, "%s: kernel %lld is even and has no middle",
                  b->row->name, (long long)kernel);
    b->argument[ARG_PADDING].number[2 * i] = b->argument[ARG_PADDING].number[2 * i + 1] = half;
    b->argument[ARG_STRIDE].number[i] = 1;
  }
  return build_windows(b, false);
}

/* tanh of the first half of the channels times the sigmoid of the second, each with the vector. */
static int gate(struct build *b, const char *name, int from, int vector) {
  struct program *p = b->p;
  int stage = build_stage(b, name, b->wide, "npqf");
  int second = px_add(p, b->at['f'], px_int(p, b->size['f'])), half[2];
  for (int i = 0; i < 2; i++) {
    b->at['o'] = i ? second : b->at['f'];
    half[i] = build_load(b, from, "npqo");
    if (vector >= 0) half[i] = px_add(p, half[i], build_load(b, vector, "no"));
  }
  program_define(p, stage, px_mul(p, px_call(p, PX_TANH, half[0]), build_sigmoid(b, half[1])));
  return stage;
}

/* The part of a window's middle row that is seen, times WH, and the vertical stack times WVH. */
static int combine(struct build *b, int pad, int vertical, int across, int row) {
  struct program *p = b->p;
  int moved = product(b, "moved", b->wide, "k", vertical, "npqk", across, "ok");
  int along = build_stage(b, "along", b->wide, "npqo");
  build_axis(b, 'x', b->name['x'], b->size['x'] / 2 + 1);
  build_reduce(b, along, REDUCE_SUM, "xc");
  b->at['u'] = px_add(p, b->at['p'], px_int(p, build_before(b, 0)));
  b->at['v'] = build_affine(b, 'q', 1, 'x', build_dilation(b, 1));
  int value = build_load(b, pad, "nuvc");
  program_define(p, along, px_mul(p, value, build_load(b, row, "ocx")));
  int both = build_stage(b, "horizontal", b->wide, "npqo");
  program_define(p, both, px_add(p, build_load(b, along, "npqo"), build_load(b, moved, "npqo")));
  return both;
}

/* Letters beside those above: k as o, f and g channels of the gates and of the result. */
canvas_status build_gatedpixelcnn(struct build *b) {
  struct program *p = b->p;
  int64_t all = build_number(b, ARG_CHANNELS, 0);
  channels(b, all, 2 * all);
  build_axis(b, 'k', "k", 2 * all);
  build_axis(b, 'f', "f", all);
  build_axis(b, 'g', "oc", all);
  TRY(pad_evenly(b));
  int x = build_input(b, "X", "nhwc"), down = build_input(b, "WV", "ocyx");
  int across = build_input(b, "WVH", "ok"), row = build_input(b, "WH", "ocx");
  int out = build_input(b, "WO", "gf");
  int vector = build_number(b, ARG_CLASS_VECTOR, 0) ? build_input(b, "class", "no") : -1;
  int pad = build_pad(b, x, "nhwc", 0), seen = mask(b, "mask", down, true);
  int vertical = product(b, "vertical", b->wide, "yxc", pad, "nuvc", seen, "ocyx");
  int both = combine(b, pad, vertical, across, row);
  int gate_v = gate(b, "gate_v", vertical, vector), gate_h = gate(b, "gate_h", both, -1);
  int mixed = build_stage(b, "mixed", b->wide, "npqg");
  build_reduce(b, mixed, REDUCE_SUM, "f");
  int value = build_load(b, gate_h, "npqf");
  program_define(p, mixed, px_mul(p, value, build_load(b, out, "gf")));
  int y = build_stage(b, "Y", b->type, "npqg");
  value = build_load(b, mixed, "npqg");
  program_define(p, y, px_add(p, value, build_load(b, x, "npqg")));
  program_output(p, y);
  program_output(p, gate_v);
  return CANVAS_OK;
}
