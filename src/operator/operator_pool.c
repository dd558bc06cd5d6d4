/* Pooling, as PyTorch defines it: windows of a channel's plane, their maximum or their mean.
 *
 * Around the data stands what changes nothing, -inf or 0, in a stage `pad`. A mean divides by the
 * window's elements: by all, or, where windows are partly outside, by those within the data (with
 * count_include_pad: within the padded data).
 */
#include <math.h>

#include "operator/operator_build.h"

struct layout {
  const char *data, *result, *window;
};
static const struct layout ncl = {"ncl", "ncs", "t"};
static const struct layout nchw = {"nchw", "ncpq", "yx"};
static const struct layout nhwc = {"nhwc", "npqc", "yx"};

/* PyTorch's limit: a window of padding only would have no maximum. */
static canvas_status check_padding(struct build *b) {
  for (int i = 0; i < b->row->spatial; i++) {
    int64_t before = build_before(b, i), after = build_after(b, i);
    int64_t most = before > after ? before : after, kernel = build_number(b, ARG_KERNEL, i);
    if (2 * most > kernel)
      return fail(b->ctx, CANVAS_BAD_INPUT, "%s: padding %lld is more than half of kernel %lld",
                  b->row->name, (long long)most, (long long)kernel);
  }
  return CANVAS_OK;
}

static canvas_status open(struct build *b) {
  TRY(check_padding(b));
  TRY(build_windows(b, build_number(b, ARG_CEIL_MODE, 0)));
  build_axis(b, 'n', "n", build_number(b, ARG_BATCH, 0));
  build_axis(b, 'c', "c", build_number(b, ARG_CHANNELS, 0));
  return CANVAS_OK;
}

/* A stage that reduces the windows of `from`. */
static int reduce(struct build *b, const struct layout *l, int from, const char *name,
                  enum program_dtype type, enum program_reducer reducer) {
  char padded[LAYOUT_MAX];
  int y = build_stage(b, name, type, l->result);
  build_reduce(b, y, reducer, l->window);
  build_slide(b);
  program_define(b->p, y, build_load(b, from, build_padded(b, l->data, padded)));
  return y;
}

static canvas_status max_pool(struct build *b, const struct layout *l) {
  TRY(open(b));
  int x = build_pad(b, build_input(b, "X", l->data), l->data, -INFINITY);
  reduce(b, l, x, "Y", b->type, REDUCE_MAX);
  return CANVAS_OK;
}

/* The padded places along spatial axis i that count as elements: [low, high). */
static void counted(const struct build *b, int i, int64_t *low, int64_t *high) {
  bool padding_counts = build_number(b, ARG_COUNT_INCLUDE_PAD, 0);
  int64_t before = build_before(b, i), end = before + b->size[build_spatial(b, i)->data];
  *low = padding_counts ? 0 : before;
  *high = padding_counts ? end + build_after(b, i) : end;
}

static bool all_count(const struct build *b) {
  bool all = true;
  for (int i = 0; i < b->row->spatial; i++) {
    int64_t low, high;
    counted(b, i, &low, &high);
    all = all && low == 0 && high >= b->size[build_spatial(b, i)->padded];
  }
  return all;
}

/* How many elements of the window at the result's place count; an index. */
static int elements(struct build *b) {
  struct program *p = b->p;
  int product = px_int(p, 1);
  for (int i = 0; i < b->row->spatial; i++) {
    const struct spatial *s = build_spatial(b, i);
    int64_t low, high;
    counted(b, i, &low, &high);
    int first = px_mul(p, b->at[s->result], px_int(p, build_number(b, ARG_STRIDE, i)));
    int kernel = px_int(p, build_number(b, ARG_KERNEL, i)), end = px_add(p, first, kernel);
    bool cut = low > 0 || high < b->size[s->padded];
    if (low > 0) first = px_max(p, first, px_int(p, low));
    if (high < b->size[s->padded]) end = px_min(p, end, px_int(p, high));
    product = px_mul(p, product, cut ? px_sub(p, end, first) : kernel);
  }
  return product;
}

static canvas_status avg_pool(struct build *b, const struct layout *l) {
  TRY(open(b));
  int x = build_pad(b, build_input(b, "X", l->data), l->data, 0);
  if (all_count(b)) {
    reduce(b, l, x, "Y", b->type, REDUCE_MEAN);
    return CANVAS_OK;
  }
  int total = reduce(b, l, x, "total", b->wide, REDUCE_SUM);
  int y = build_stage(b, "Y", b->type, l->result);
  int value = build_load(b, total, l->result);
  program_define(b->p, y, px_div(b->p, value, px_real(b->p, elements(b))));
  return CANVAS_OK;
}

canvas_status build_max_pool1d(struct build *b) {
  return max_pool(b, &ncl);
}

canvas_status build_max_pool2d_nchw(struct build *b) {
  return max_pool(b, &nchw);
}

canvas_status build_max_pool2d_nhwc(struct build *b) {
  return max_pool(b, &nhwc);
}

canvas_status build_avg_pool1d(struct build *b) {
  return avg_pool(b, &ncl);
}

canvas_status build_avg_pool2d_nchw(struct build *b) {
  return avg_pool(b, &nchw);
}

canvas_status build_avg_pool2d_nhwc(struct build *b) {
  return avg_pool(b, &nhwc);
}
