/* Along chosen axes of a shape: mean, softmax.
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
