/* One point of a stage: the statement that computes it, and those that begin and end a reduction.
 * See build.h.
 *
 * In a vec loop a statement is one of vectors where what it writes is contiguous, or else a loop
 * over the lanes: everything has that form. Under a condition that lanes may fail one by one there
 * are both, the loop for the last vector.
 */
#include "code/build.h"

#include <math.h>

struct statement {
  const struct bound_stage *bound;
  const struct stage_plan *plan;
  const struct program_tensor *t;
  enum phase phase;
  const struct stored *to; /* what it writes, and where */
  int place;
  int body;      /* PHASE_UPDATE: the value */
  int sum_place; /* PHASE_FINALIZE: of the accumulator it reads */
};

/* ---- guards ---- */

/* All lanes' values of the axis at once: that of the last lane, which is the largest. */
static int last_lane(struct builder *b, int value) {
  int64_t stride;
  if (!build_stride(b, value, b->lane, &stride) || stride < 0) return -1;
  return px_add(b->px, build_at_zero(b, value, b->lane), px_int(b->px, stride * (b->lanes - 1)));
}

/* The axes whose digits overshoot lie within their sizes. With `all_lanes` that of all lanes at
 * once (false if that cannot be said), else of the lane that stands at `lane`. */
static int guard(struct builder *b, int stage, bool reductions, bool all_lanes) {
  const struct bound_stage *bound = &b->tree->stages[stage];
  const struct program_tensor *t = &b->program->tensors.data[bound->tensor];
  int condition = px_bool(b->px, true);
  for (int i = 0; i < t->rank + (reductions ? t->reductions : 0); i++) {
    if (!bound->tail[i] || b->guarded[stage] >> i & 1) continue;
    int value = space_axis(&b->space, bound, i);
    if (value < 0) continue;
    if (all_lanes && px_mentions(b->px, value, b->lane)) value = last_lane(b, value);
    int met = value < 0 ? px_bool(b->px, false)
                        : px_compare(b->px, PX_LT, value, px_int(b->px, t->axes[i].size));
    condition = px_and(b->px, condition, met);
  }
  return condition;
}

static bool decided(const struct builder *b, int condition, bool value) {
  const struct px_node *n = &b->px->nodes.data[condition];
  return n->op == PX_BOOL && n->integer == value;
}

/* ---- values ---- */

static double start_of(enum program_reducer reducer) {
  switch (reducer) {
    case REDUCE_MAX: return -HUGE_VAL;
    case REDUCE_MIN: return HUGE_VAL;
    case REDUCE_PROD: return 1;
    default: return 0;
  }
}

int build_start_value(struct builder *b, enum program_reducer reducer, enum program_dtype element,
                      int lanes) {
  return code_broadcast(b->code, code_number(b->code, element, start_of(reducer)), lanes);
}

/* The axes of a mean whose bounds are data. */
static bool counted(const struct statement *s) {
  if (s->phase != PHASE_FINALIZE || s->t->reducer != REDUCE_MEAN) return false;
  for (int i = s->t->rank; i < s->t->rank + s->t->reductions; i++)
    if (s->t->axes[i].low >= 0) return true;
  return false;
}

static const struct step *step_of_axis(const struct bound_stage *bound, int axis) {
  const struct step *s = bound->path;
  while (s->axis != axis) s++;
  return s;
}

/* points = 0; for ...: points += n: the points of a mean that only the data tell. From reduction axis
 * `axis` on, `points` are those of the axes before that are constants. */
static void count_points(struct builder *b, const struct statement *s, int axis, int64_t points) {
  int counter = code_variable_at(b->code, b->points_variable, 0);
  while (axis < s->t->rank + s->t->reductions && s->t->axes[axis].low < 0)
    points *= s->t->axes[axis++].size;
  if (axis == s->t->rank + s->t->reductions) {
    code_assign(b->code, counter, CODE_ADD, code_int(b->code, points));
    return;
  }
  const struct program_axis *over = &s->t->axes[axis];
  int level = step_of_axis(s->bound, axis)->level, digit = b->space.digit[level];
  struct block block = build_open_data_for(b, s->bound, over, b->counter[level]);
  b->space.digit[level] = build_open_axis(b, b->counter[level], over->first, over->size);
  count_points(b, s, axis + 1, points);
  b->space.digit[level] = digit;
  build_close(b, block);
}

static int divisor(struct builder *b, const struct statement *s) {
  if (counted(s)) {
    int open = b->space.open;
    code_declare(b->code, b->points_variable, code_int(b->code, 0));
    count_points(b, s, s->t->rank, 1);
    b->space.open = open;
    return code_convert(b->code, code_variable_at(b->code, b->points_variable, 0), b->computed);
  }
  int64_t points = 1;
  for (int i = s->t->rank; i < s->t->rank + s->t->reductions; i++) points *= s->t->axes[i].size;
  return code_number(b->code, b->computed, (double)points);
}

/* What the accumulators came to. */
static int final_value(struct builder *b, const struct statement *s) {
  const struct stored *from = s->bound->direct ? &s->plan->value : &s->plan->sum;
  int sum = code_convert(b->code, build_stored(b, from, s->sum_place), b->computed);
  if (s->t->reducer != REDUCE_MEAN) return sum;
  int points = divisor(b, s);
  return code_operation(b->code, PX_DIV, b->code->exprs.data[sum].type, sum, points, -1);
}

/* The lanes are points of the reduction: they come to one value, in one accumulator. */
static bool across_lanes(const struct builder *b, const struct statement *s) {
  return b->lane >= 0 && s->phase == PHASE_UPDATE && s->bound->start >= 0 &&
         !stage_spatial(b->tree, s->bound, stage_step(s->bound, s->bound->vec));
}

/* What is written; in vectors a vector, but to be added or multiplied a scalar will do. */
static int value_of(struct builder *b, const struct statement *s) {
  switch (s->phase) {
    case PHASE_INIT:
      return build_start_value(b, s->t->reducer, s->to->at.dtype,
                               build_in_vectors(b) ? b->lanes : 1);
    case PHASE_UPDATE: {
      bool scalar =
          s->bound->start >= 0 && s->t->reducer != REDUCE_MAX && s->t->reducer != REDUCE_MIN;
      return scalar ? build_value(b, s->body) : build_vector(b, s->body);
    }
    default: return final_value(b, s);
  }
}

/* ---- the statement ---- */

/* to = value, as it is stored: bf16 in variables is rounded as if it were in memory. */
static void assign(struct builder *b, const struct statement *s, int value) {
  bool rounds = s->t->dtype == PROGRAM_BF16 && s->to == &s->plan->value;
  int to = build_stored(b, s->to, s->place);
  if (rounds && s->to->at.dtype != PROGRAM_BF16)
    value = code_operation(b->code, CODE_ROUND, b->code->exprs.data[value].type, value, -1, -1);
  code_assign(b->code, to, CODE_SET, code_convert(b->code, value, s->to->at.dtype));
}

/* All lanes of a vector reduced to one value. */
static int reduce_lanes(struct builder *b, const struct statement *s, int vector) {
  switch (s->t->reducer) {
    case REDUCE_MAX: return code_across(b->code, CODE_LANES_MAX, vector);
    case REDUCE_MIN: return code_across(b->code, CODE_LANES_MIN, vector);
    case REDUCE_PROD: return code_across(b->code, CODE_LANES_MUL, vector);
    default: return code_across(b->code, CODE_LANES_ADD, vector);
  }
}

/* to += value; to = max(to, value) */
static void accumulate(struct builder *b, const struct statement *s, int value) {
  enum program_reducer reducer = s->t->reducer;
  int to = build_stored(b, s->to, s->place);
  struct code_type type = b->code->exprs.data[to].type;
  value = code_convert(b->code, value, s->to->at.dtype);
  if (across_lanes(b, s) && !b->one_by_one) value = reduce_lanes(b, s, value);
  if (reducer == REDUCE_MAX || reducer == REDUCE_MIN) {
    enum px_op op = reducer == REDUCE_MAX ? PX_MAX : PX_MIN;
    code_assign(b->code, to, CODE_SET, code_operation(b->code, op, type, to, value, -1));
  } else {
    code_assign(b->code, to, reducer == REDUCE_PROD ? CODE_MULTIPLY : CODE_ADD, value);
  }
}

/* The statement, of scalars or of vectors as the builder stands, after what gathers and counts. */
static void put(struct builder *b, const struct statement *s) {
  int block = code_open_block(b->code);
  b->gathered = 0;
  int value = value_of(b, s);
  if (s->phase == PHASE_UPDATE && s->bound->start >= 0)
    accumulate(b, s, value);
  else
    assign(b, s, value);
  code_close(b->code, block);
}

/* ---- lanes ---- */

static bool fits_vectors(struct builder *b, const struct statement *s) {
  const struct stored *to = s->to;
  bool rounds =
      s->t->dtype == PROGRAM_BF16 && to->at.dtype != PROGRAM_BF16 && to == &s->plan->value;
  if (across_lanes(b, s))
    return build_storage_form(b, to, s->place) == FORM_UNIFORM &&
           build_form(b, s->body) == FORM_VECTOR;
  if (counted(s) || build_storage_form(b, to, s->place) != FORM_VECTOR) return false;
  if (s->phase == PHASE_UPDATE) return !rounds && build_form(b, s->body) != FORM_GATHER;
  if (s->phase == PHASE_INIT) return true;
  return !rounds && build_storage_form(b, s->bound->direct ? &s->plan->value : &s->plan->sum,
                                       s->sum_place) == FORM_VECTOR;
}

static void put_guarded(struct builder *b, const struct statement *s, int condition) {
  if (decided(b, condition, true)) {
    put(b, s);
    return;
  }
  int block = code_open_if(b->code, build_condition(b, condition));
  put(b, s);
  code_close(b->code, block);
}

static void put_lanes(struct builder *b, const struct statement *s, int condition) {
  int lanes = code_int(b->code, b->lanes);
  int loop = code_open_for(b->code, b->lane_variable, code_int(b->code, 0), lanes, 1, 0);
  b->one_by_one = true;
  put_guarded(b, s, condition);
  b->one_by_one = false;
  code_close(b->code, loop);
}

static void put_in_vec(struct builder *b, const struct statement *s, int all, int each) {
  if (!fits_vectors(b, s) || decided(b, all, false)) {
    put_lanes(b, s, each);
  } else if (!px_mentions(b->px, each, b->lane)) {
    put_guarded(b, s, all);
  } else if (decided(b, all, true)) {
    put(b, s);
  } else {
    int whole = code_open_if(b->code, build_condition(b, all));
    put(b, s);
    code_close(b->code, whole);
    int rest = code_open_else(b->code, whole);
    put_lanes(b, s, each);
    code_close(b->code, rest);
  }
}

/* ---- */

static struct statement statement_of(struct builder *b, int stage, enum phase phase) {
  struct statement s = {
      .bound = &b->tree->stages[stage], .plan = &b->stages[stage], .phase = phase};
  s.t = &b->program->tensors.data[s.bound->tensor];
  bool sums = s.bound->start >= 0 && !s.bound->direct && phase != PHASE_FINALIZE;
  s.to = sums ? &s.plan->sum : &s.plan->value;
  s.place = sums ? space_sum_place(&b->space, s.bound) : space_place(&b->space, s.bound);
  s.sum_place =
      s.bound->direct || phase != PHASE_FINALIZE ? s.place : space_sum_place(&b->space, s.bound);
  s.body = phase == PHASE_UPDATE ? space_expr(&b->space, s.bound, s.t->body) : -1;
  return s;
}

/* Variables and accumulators of its own begin without asking: nobody sees those that overshoot. */
void build_statement(struct builder *b, int stage, enum phase phase) {
  int nodes = b->px->nodes.count, indices = b->px->indices.count;
  const struct bound_stage *bound = &b->tree->stages[stage];
  b->computed = bound->computed;
  b->known.count = 0;
  bool free = phase == PHASE_INIT && (bound->direct ? bound->value.kind == STORAGE_NAMED : true);
  bool update = phase == PHASE_UPDATE;
  int each = free ? px_bool(b->px, true) : guard(b, stage, update, false);
  int all = b->lane >= 0 && !free ? guard(b, stage, update, true) : each;
  if (!b->px->failed && !decided(b, each, false)) {
    struct statement s = statement_of(b, stage, phase);
    if (b->px->failed)
      ; /* told at the end */
    else if (b->lane >= 0)
      put_in_vec(b, &s, all, each);
    else
      put_guarded(b, &s, each);
  }
  if (b->px->failed) return;
  b->px->nodes.count = nodes;
  b->px->indices.count = indices;
}
