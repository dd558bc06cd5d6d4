/* Of a shape: mean, variance and softmax along chosen axes, batch normalization along the first,
 * and products element by element.
 *
 * The axes of the data are the letters a, b, c, ..., named i0, i1, ...
 */
#include "operator/operator_build.h"

/* The letters of the data, of the axes in `dim` and of the others. */
struct parts {
  char all[OPERATOR_NUMBERS + 1], chosen[OPERATOR_NUMBERS + 1], kept[OPERATOR_NUMBERS + 1];
};

static canvas_status choose(struct build *b, struct parts *out) {
  static const char *const names[] = {"i0", "i1", "i2", "i3", "i4", "i5", "i6", "i7"};
  const struct argument *shape = &b->argument[ARG_SHAPE], *dim = &b->argument[ARG_DIM];
  bool chosen[OPERATOR_NUMBERS] = {false};
  for (int i = 0; i < dim->count; i++) {
    int64_t axis = dim->number[i] < 0 ? dim->number[i] + shape->count : dim->number[i];
    if (axis < 0 || axis >= shape->count)
      return fail(b->ctx, CANVAS_BAD_INPUT, "%s: dim %lld is none of the %d axes", b->row->name,
                  (long long)dim->number[i], shape->count);
    if (chosen[axis])
      return fail(b->ctx, CANVAS_BAD_INPUT, "%s: axis %lld stands twice in dim", b->row->name,
                  (long long)axis);
    chosen[axis] = true;
  }
  *out = (struct parts){{0}, {0}, {0}};
  for (int i = 0, c = 0, k = 0; i < shape->count; i++) {
    char letter = (char)('a' + i);
    build_axis(b, letter, names[i], shape->number[i]);
    out->all[i] = letter;
    if (chosen[i])
      out->chosen[c++] = letter;
    else
      out->kept[k++] = letter;
  }
  return CANVAS_OK;
}

/* A stage over the other axes that reduces `from` along the chosen ones. */
static int reduce(struct build *b, const struct parts *l, int from, const char *name,
                  enum program_dtype type, enum program_reducer reducer) {
  int y = build_stage(b, name, type, l->kept);
  build_reduce(b, y, reducer, l->chosen);
  program_define(b->p, y, build_load(b, from, l->all));
  return y;
}

canvas_status build_mean(struct build *b) {
  struct parts l;
  TRY(choose(b, &l));
  reduce(b, &l, build_input(b, "X", l.all), "Y", b->type, REDUCE_MEAN);
  return CANVAS_OK;
}

/* raised = exp(X - largest), Y = raised / total. */
canvas_status build_softmax(struct build *b) {
  struct parts l;
  struct program *p = b->p;
  TRY(choose(b, &l));
  int x = build_input(b, "X", l.all);
  int largest = reduce(b, &l, x, "largest", b->type, REDUCE_MAX);
  int raised = build_stage(b, "raised", b->wide, l.all);
  int less = px_sub(p, build_load(b, x, l.all), build_load(b, largest, l.kept));
  program_define(p, raised, px_call(p, PX_EXP, less));
  int total = reduce(b, &l, raised, "total", b->wide, REDUCE_SUM);
  int y = build_stage(b, "Y", b->type, l.all);
  program_define(p, y, px_div(p, build_load(b, raised, l.all), build_load(b, total, l.kept)));
  return CANVAS_OK;
}

/* The mean over the chosen axes, and a stage that reduces (X - mean)^2 over them. */
static int squares(struct build *b, const struct parts *l, int x, const char *name,
                   enum program_reducer reducer, int *mean) {
  struct program *p = b->p;
  *mean = reduce(b, l, x, "mean", b->wide, REDUCE_MEAN);
  int y = build_stage(b, name, b->wide, l->kept);
  build_reduce(b, y, reducer, l->chosen);
  int less = px_sub(p, build_load(b, x, l->all), build_load(b, *mean, l->kept));
  program_define(p, y, px_mul(p, less, less));
  return y;
}

canvas_status build_variance(struct build *b) {
  struct parts l;
  struct program *p = b->p;
  TRY(choose(b, &l));
  int64_t points = build_product(b, l.chosen);
  if (points < 2)
    return fail(b->ctx, CANVAS_BAD_INPUT, "%s: one element has none, dim names axes of size 1",
                b->row->name);
  int mean, x = build_input(b, "X", l.all);
  int total = squares(b, &l, x, "total", REDUCE_SUM, &mean);
  int y = build_stage(b, "Y", b->type, l.kept);
  int sum = build_load(b, total, l.kept);
  program_define(p, y, px_div(p, sum, px_number(p, (double)(points - 1))));
  return CANVAS_OK;
}

/* scale = 1 / sqrt(variance + epsilon), Y = (X - mean) * scale. */
canvas_status build_batch_normalization2d(struct build *b) {
  static const struct parts l = {"ab", "a", "b"};
  struct program *p = b->p;
  build_axis(b, 'a', "n", build_number(b, ARG_BATCH, 0));
  build_axis(b, 'b', "c", build_number(b, ARG_CHANNELS, 0));
  int mean, x = build_input(b, "X", l.all);
  int variance = squares(b, &l, x, "variance", REDUCE_MEAN, &mean);
  int scale = build_stage(b, "scale", b->wide, l.kept);
  int more =
      px_add(p, build_load(b, variance, l.kept), px_number(p, b->argument[ARG_EPSILON].real));
  program_define(p, scale, px_div(p, px_number(p, 1), px_call(p, PX_SQRT, more)));
  int y = build_stage(b, "Y", b->type, l.all);
  int less = px_sub(p, build_load(b, x, l.all), build_load(b, mean, l.kept));
  program_define(p, y, px_mul(p, less, build_load(b, scale, l.kept)));
  return CANVAS_OK;
}

canvas_status build_pointwise_multiply(struct build *b) {
  struct parts l;
  TRY(choose(b, &l));
  int a = build_input(b, "A", l.all), c = build_input(b, "B", l.all);
  int y = build_stage(b, "Y", b->type, l.all);
  program_define(b->p, y, px_mul(b->p, build_load(b, a, l.all), build_load(b, c, l.all)));
  return CANVAS_OK;
}
