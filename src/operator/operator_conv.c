/* Convolutions: along one, two or three axes, in several layouts, grouped, depth-wise, dilated, transposed.
 *
 *   Y[n, o, p, q] = sum over c, y, x of pad[n, i, p*stride + y*dilation, q*stride + x*dilation]
 *                                       * W[o, c, y, x]               i = o / (O/groups) * (I/groups) + c
 *
 * A layout is the order of the letters in each tensor; the map is the same for all. With
 * blocks of channels (NCHWc) i, c and o count blocks, j and r count channels within one.
 *
 * Transposed (Y is what a convolution with W would have as the gradient of its data): the data are padded
 * in the stage `pad`; windows run over them with stride 1 and the weight's elements in reverse, as if there
 * were stride-1 places between two neighbours, which add nothing:
 *
 *   Y[n, o, p] = sum over c, y of if (p + y) % stride == 0 then pad[n, i, (p + y) / stride] * W[c, o, K-1-y]
 */
#include "operator/operator_build.h"

struct layout {
  const char *data, *weight, *result, *bias;
  const char *reduce; /* in this order */
  bool transposed;
};

static const struct layout conv1d_ = {"nil", "oct", "nos", "o", "ct", false};
static const struct layout ncdhw = {"nidhw", "oczyx", "noapq", "o", "czyx", false};
static const struct layout nchw = {"nihw", "ocyx", "nopq", "o", "cyx", false};
static const struct layout nhwc_oihw = {"nhwi", "ocyx", "npqo", "o", "yxc", false};
static const struct layout nhwc_hwio = {"nhwi", "yxco", "npqo", "o", "yxc", false};
static const struct layout nchwc = {"nihwj", "ocyxjr", "nopqr", "or", "cyxj", false};
static const struct layout depthwise_nchw = {"nihw", "ifyx", "nopq", "o", "yx", false};
static const struct layout transpose1d = {"nil", "ift", "nos", "o", "ct", true};
static const struct layout transpose_nchw = {"nihw", "ifyx", "nopq", "o", "cyx", true};
static const struct layout transpose_ncdhw = {"nidhw", "ifzyx", "noapq", "o", "czyx", true};

/* Channels, or blocks of them: of the data, of the result, and the groups. */
static canvas_status channels(struct build *b, int64_t in, int64_t out, int64_t groups) {
  TRY(build_divides(b, "groups", groups, "in_channels", in));
  TRY(build_divides(b, "groups", groups, "out_channels", out));
  build_axis(b, 'n', "n", build_number(b, ARG_BATCH, 0));
  build_axis(b, 'i', "ic", in);
  build_axis(b, 'c', "ic", in / groups);
  build_axis(b, 'o', "oc", out);
  build_axis(b, 'f', "f", out / groups);
  return CANVAS_OK;
}

/* at['i'] and at['f'], from the channel of the result and that within the group of the data. */
static void group(struct build *b) {
  struct program *p = b->p;
  int o = b->at['o'], each = px_int(p, b->size['f']);
  b->at['i'] = px_add(p, px_mul(p, px_div(p, o, each), px_int(p, b->size['c'])), b->at['c']);
  b->at['f'] = px_mod(p, o, each);
}

/* Transposed */

/* What stands before the data, if a window of span S may touch the first element with its end only:
 * S-1, less the padding that the result loses. */
static int64_t lead(const struct build *b, int i) {
  return build_span(b, i) - 1 - build_before(b, i);
}

static int64_t div_up(int64_t a, int64_t b) {
  return a / b + (a % b > 0);
}

/* Data that the padded ones begin with, before the first one of X; cut off from X if negative. */
static int64_t margin(const struct build *b, int i) {
  return div_up(lead(b, i), build_number(b, ARG_STRIDE, i));
}

/* What a place of the spread data is off a multiple of the stride. */
static int64_t offset(const struct build *b, int i) {
  return margin(b, i) * build_number(b, ARG_STRIDE, i) - lead(b, i);
}

/* pad[.., u, ..] = X[.., u - margin, ..], and 0 beyond it. */
static int surround(struct build *b, int data, const char *letters) {
  char padded[LAYOUT_MAX];
  struct program *p = b->p;
  int pad = build_stage(b, "pad", b->type, build_padded(b, letters, padded));
  int inside = px_bool(p, true);
  for (int i = 0; i < b->row->spatial; i++) {
    const struct spatial *s = build_spatial(b, i);
    int at = b->at[s->padded];
    int64_t first = margin(b, i);
    inside = build_inside(b, inside, at, first, first + b->size[s->data]);
    b->at[s->data] = px_sub(p, at, px_int(p, first));
  }
  int value = build_load(b, data, letters);
  program_define(p, pad, px_select(p, inside, value, px_number(p, 0)));
  return pad;
}

static canvas_status transposed_windows(struct build *b) {
  for (int i = 0; i < b->row->spatial; i++) {
    const struct spatial *s = build_spatial(b, i);
    int64_t data = build_number(b, s->argument, 0), stride = build_number(b, ARG_STRIDE, i);
    int64_t more = build_number(b, ARG_OUTPUT_PADDING, i),
            dilation = build_number(b, ARG_DILATION, i);
    if (more >= stride && more >= dilation)
      return fail(b->ctx, CANVAS_BAD_INPUT,
                  "%s: output_padding %lld is neither less than stride %lld nor than dilation %lld",
                  b->row->name, (long long)more, (long long)stride, (long long)dilation);
    int64_t span = build_span(b, i), all = (data - 1) * stride + span;
    int64_t result = all - build_before(b, i) - build_after(b, i) + more;
    if (result < 1)
      return fail(b->ctx, CANVAS_BAD_INPUT, "%s: padding leaves nothing of a result of %s %lld",
                  b->row->name, s->what, (long long)all);
    build_axis(b, s->data, s->name, data);
    build_axis(b, s->padded, s->name, (result + span - 2 + offset(b, i)) / stride + 1);
    build_axis(b, s->result, s->name, result);
    build_axis(b, s->window, s->window_name, build_number(b, ARG_KERNEL, i));
  }
  return CANVAS_OK;
}

/* The windows run over the data as if they were spread, the weight's elements from their end: the condition
 * under which there is an element of the data. */
static int slide_in_reverse(struct build *b) {
  struct program *p = b->p;
  int there = px_bool(p, true);
  for (int i = 0; i < b->row->spatial; i++) {
    const struct spatial *s = build_spatial(b, i);
    int stride = px_int(p, build_number(b, ARG_STRIDE, i));
    int at = build_affine(b, s->result, 1, s->window, build_dilation(b, i));
    at = px_add(p, at, px_int(p, offset(b, i)));
    there = px_and(p, there, px_compare(p, PX_EQ, px_mod(p, at, stride), px_int(p, 0)));
    b->at[s->padded] = px_div(p, at, stride);
    b->at[s->window] = px_sub(p, px_int(p, b->size[s->window] - 1), b->at[s->window]);
  }
  return there;
}

/* All */

/* The program, once all sizes are known. */
static void convolve(struct build *b, const struct layout *l) {
  struct program *p = b->p;
  char padded[LAYOUT_MAX];
  bool biased = build_number(b, ARG_BIAS, 0);
  int x = build_input(b, "X", l->data), w = build_input(b, "W", l->weight);
  int bias = biased ? build_input(b, "B", l->bias) : -1;
  x = l->transposed ? surround(b, x, l->data) : build_pad(b, x, l->data, 0);
  int y =
      biased ? build_stage(b, "conv", b->wide, l->result) : build_stage(b, "Y", b->type, l->result);
  b->at['c'] = px_int(p, 0); /* of a depth-wise one */
  build_reduce(b, y, REDUCE_SUM, l->reduce);
  int there = px_bool(p, true);
  group(b);
  if (l->transposed)
    there = slide_in_reverse(b);
  else
    build_slide(b);
  int value = build_load(b, x, build_padded(b, l->data, padded));
  int product = px_mul(p, value, build_load(b, w, l->weight));
  program_define(p, y, px_select(p, there, product, px_number(p, 0)));
  if (biased) build_bias(b, y, l->result, bias, l->bias);
}

static canvas_status conv(struct build *b, const struct layout *l) {
  TRY(channels(b, build_number(b, ARG_IN_CHANNELS, 0), build_number(b, ARG_OUT_CHANNELS, 0),
               build_number(b, ARG_GROUPS, 0)));
  TRY(l->transposed ? transposed_windows(b) : build_windows(b, false));
  convolve(b, l);
  return CANVAS_OK;
}

canvas_status build_conv1d(struct build *b) {
  return conv(b, &conv1d_);
}

canvas_status build_conv2d_nchw(struct build *b) {
  return conv(b, &nchw);
}

canvas_status build_conv2d_nhwc(struct build *b) {
  return conv(b, build_number(b, ARG_WEIGHTS, 0) ? &nhwc_hwio : &nhwc_oihw);
}

canvas_status build_conv2d_nchwc(struct build *b) {
  int64_t in = build_number(b, ARG_IN_CHANNELS, 0), in_block = build_number(b, ARG_IN_BLOCK, 0);
  int64_t out = build_number(b, ARG_OUT_CHANNELS, 0), out_block = build_number(b, ARG_OUT_BLOCK, 0);
  int64_t groups = build_number(b, ARG_GROUPS, 0);
  TRY(channels(b, in, out, groups));
  TRY(build_divides(b, "in_block", in_block, "the channels of a group,", in / groups));
  TRY(build_divides(b, "out_block", out_block, "the resulting channels of a group,", out / groups));
  TRY(build_windows(b, false));
  build_axis(b, 'i', "IC", in / in_block);
  build_axis(b, 'c', "IC", in / groups / in_block);
  build_axis(b, 'j', "ic", in_block);
  build_axis(b, 'o', "OC", out / out_block);
  build_axis(b, 'f', "F", out / groups / out_block);
  build_axis(b, 'r', "oc", out_block);
  convolve(b, &nchwc);
  return CANVAS_OK;
}

canvas_status build_depthwise_conv2d_nchw(struct build *b) {
  int64_t in = build_number(b, ARG_IN_CHANNELS, 0);
  TRY(channels(b, in, in * build_number(b, ARG_FACTOR, 0), in));
  TRY(build_windows(b, false));
  convolve(b, &depthwise_nchw);
  return CANVAS_OK;
}

canvas_status build_conv_transpose1d(struct build *b) {
  return conv(b, &transpose1d);
}

canvas_status build_conv_transpose2d_nchw(struct build *b) {
  return conv(b, &transpose_nchw);
}

canvas_status build_conv3d_ncdhw(struct build *b) {
  return conv(b, &ncdhw);
}

canvas_status build_conv_transpose3d_ncdhw(struct build *b) {
  return conv(b, &transpose_ncdhw);
}
