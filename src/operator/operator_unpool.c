/* Max-unpooling: each maximum goes back to where it came from, zeros elsewhere.
 *
 *   X [n, c, i]         the maxima
 *   indices [n, c, i]   where each stood in its plane, as a number, row-major
 *
 * Only windows that hold a place can have taken their maximum there: along an axis these are
 * (p + padding) / stride and the few before it. Where two have the same, it stands there once.
 */
#include <math.h>

#include "operator/operator_build.h"

static canvas_status open(struct build *b) {
  build_axis(b, 'n', "n", build_number(b, ARG_BATCH, 0));
  build_axis(b, 'c', "c", build_number(b, ARG_CHANNELS, 0));
  for (int i = 0; i < b->row->spatial; i++) {
    const struct spatial *s = build_spatial(b, i);
    int64_t data = build_number(b, s->argument, 0), stride = build_number(b, ARG_STRIDE, i);
    int64_t kernel = build_number(b, ARG_KERNEL, i), all = (data - 1) * stride + kernel;
    int64_t result = all - build_before(b, i) - build_after(b, i);
    if (result < 1)
      return fail(b->ctx, CANVAS_BAD_INPUT, "%s: padding leaves nothing of a result of %s %lld",
                  b->row->name, s->what, (long long)all);
    build_axis(b, s->data, s->name, data);
    build_axis(b, s->result, s->name, result);
    build_axis(b, s->window, s->window_name, (kernel + stride - 1) / stride);
  }
  return CANVAS_OK;
}

/* at[data] of the window that is at[window] before the last one with the place at[result]; the condition
 * under which there is such a one. */
static int find_window(struct build *b) {
  struct program *p = b->p;
  int there = px_bool(p, true);
  for (int i = 0; i < b->row->spatial; i++) {
    const struct spatial *s = build_spatial(b, i);
    int at = px_add(p, b->at[s->result], px_int(p, build_before(b, i)));
    int last = px_div(p, at, px_int(p, build_number(b, ARG_STRIDE, i)));
    b->at[s->data] = px_sub(p, last, b->at[s->window]);
    there = build_inside(b, there, b->at[s->data], 0, b->size[s->data]);
  }
  return there;
}

static canvas_status max_unpool(struct build *b, const char *data, const char *result,
                                const char *plane, const char *window) {
  struct program *p = b->p;
  TRY(open(b));
  int x = build_input(b, "X", data);
  int indices = build_index_input(b, "indices", data, 0, build_product(b, plane) - 1, false);
  int largest = build_stage(b, "largest", b->type, result);
  build_reduce(b, largest, REDUCE_MAX, window);
  int place = build_flatten(b, plane), there = find_window(b);
  there = px_and(p, there, px_compare(p, PX_EQ, build_load(b, indices, data), place));
  int value = px_select(p, there, build_load(b, x, data), px_number(p, -INFINITY));
  program_define(p, largest, value);
  int y = build_stage(b, "Y", b->type, result);
  int some = build_load(b, largest, result);
  int none = px_compare(p, PX_EQ, some, px_number(p, -INFINITY));
  program_define(p, y, px_select(p, none, px_number(p, 0), some));
  return CANVAS_OK;
}

canvas_status build_maxunpooling1d(struct build *b) {
  return max_unpool(b, "ncl", "ncs", "s", "t");
}

canvas_status build_maxunpooling2d(struct build *b) {
  return max_unpool(b, "nchw", "ncpq", "pq", "yx");
}
