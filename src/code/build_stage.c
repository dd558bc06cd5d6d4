/* The statement of a stage, and those that initialise and finalise a reduction. See build_parts.h.
 *
 * In a vec loop it is a vector statement. If its result is not contiguous, the lanes are stored one
 * by one. If it cannot be computed in vectors, it is a loop over the lanes. The last vector of an
 * axis loads and stores its active lanes only (build_beyond.c).
 */
#include "code/build_parts.h"

#include <math.h>

enum {
  FEW = 4
}; /* fewer active lanes than 1/FEW of the vector are reduced one by one; chosen by hand */

struct statement {
  const struct bound_stage *bound;
  const struct stage_plan *plan;
  const struct program_tensor *t;
  enum phase phase;
  const struct stored *to; /* the storage that it writes */
  int place;
  int body;      /* PHASE_UPDATE: the value expression */
  int sum_place; /* PHASE_FINALIZE: index of the accumulator */
};

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

/* Sets a reduction axis to `value`, in its innermost level; -1 closes it. */
static void set_axis(struct builder *b, const struct bound_stage *bound, int axis, int value) {
  for (int i = 0; i < bound->steps; i++) {
    const struct step *s = &bound->path[i];
    if (s->axis != axis) continue;
    b->space.digit[s->level] = s->weight > 1 && value >= 0 ? px_int(b->px, 0) : value;
  }
}

static int level_of_axis(const struct bound_stage *bound, int axis) {
  const struct step *s = bound->path;
  while (s->axis != axis || s->weight > 1) s++;
  return s->level;
}

/* The bounds of an axis after this one depend on it. */
static bool bounds_another(const struct program *p, const struct program_tensor *t, int axis) {
  for (int i = axis + 1; i < t->rank + t->reductions; i++)
    if (t->axes[i].low >= 0 &&
        (px_mentions(p, t->axes[i].low, axis) || px_mentions(p, t->axes[i].high, axis)))
      return true;
  return false;
}

/* points = 0; for ...: points += n: counts the points of a mean whose bounds are data, from
 * reduction axis `axis` on. `points` is the product of the earlier axes of constant size that bound
 * no other axis. */
static void count_points(struct builder *b, const struct statement *s, int axis, int64_t points) {
  int counter = code_variable_at(b->code, b->points_variable, 0);
  const struct program_axis *over = &s->t->axes[axis];
  if (axis == s->t->rank + s->t->reductions) {
    code_assign(b->code, counter, CODE_ADD, code_int(b->code, points));
    return;
  }
  if (over->low < 0 && !bounds_another(b->program, s->t, axis)) {
    count_points(b, s, axis + 1, points * over->size);
    return;
  }
  int variable = b->counter[level_of_axis(s->bound, axis)];
  struct block block = over->low < 0 ? build_open_range(b, variable, 0, over->size, 1)
                                     : build_open_data_for(b, s->bound, over, variable);
  set_axis(b, s->bound, axis, build_open_axis(b, variable, over->first, over->size));
  count_points(b, s, axis + 1, points);
  set_axis(b, s->bound, axis, -1);
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

/* The result of the accumulators. */
static int final_value(struct builder *b, const struct statement *s) {
  const struct stored *from = s->bound->accumulates_in_value ? &s->plan->value : &s->plan->sum;
  int sum = code_convert(b->code, build_stored(b, from, s->sum_place), b->computed);
  if (s->t->reducer != REDUCE_MEAN) return sum;
  int points = divisor(b, s);
  return code_operation(b->code, PX_DIV, b->code->exprs.data[sum].type, sum, points, -1);
}

/* Horizontal reduction: the lanes are points of the reduction, with one accumulator. */
static bool across_lanes(const struct builder *b, const struct statement *s) {
  return b->lane >= 0 && s->phase == PHASE_UPDATE && s->bound->start >= 0 &&
         !stage_spatial(b->tree, s->bound, stage_step(s->bound, s->bound->vec));
}

/* The value that is written: in a vec loop a vector, or a scalar if it is added or multiplied. */
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

/* The target: inactive lanes are written only to the tree's own buffers. */
static int target(struct builder *b, const struct statement *s) {
  const struct stored *to = s->to;
  bool memory = build_in_vectors(b) && to->at.kind != STORAGE_NAMED && !to->at.per_lane;
  bool room = b->lane_steps == b->lanes && to->at.kind != STORAGE_OUTPUT;
  bool side = memory && build_storage_form(b, to, s->place) == FORM_VECTOR;
  if (!side || b->active_lanes < 0 || (room && build_place_inside(b, to, s->place)))
    return build_stored(b, to, s->place);
  int element =
      code_element(b->code, to->variable, build_index(b, build_at_zero(b, s->place, b->lane)));
  return code_first_lanes(b->code, element, b->lanes, build_index(b, b->active_lanes));
}

/* The stage stores bf16 values in wider variables. */
static bool rounds(const struct statement *s) {
  return s->t->dtype == PROGRAM_BF16 && s->to->at.dtype != PROGRAM_BF16 && s->to == &s->plan->value;
}

/* to = value, as it is stored: bf16 in variables is rounded as if it were in memory. */
static void assign(struct builder *b, const struct statement *s, int value) {
  int to = target(b, s);
  if (rounds(s))
    value = code_operation(b->code, CODE_ROUND, b->code->exprs.data[value].type, value, -1, -1);
  code_assign(b->code, to, CODE_SET, code_convert(b->code, value, s->to->at.dtype));
}

/* The number of active lanes if it is fewer than all and the same in each iteration; -1 otherwise.
 */
static int known_lanes(const struct builder *b) {
  struct px_range r = px_range(b->px, b->active_lanes);
  return r.low == r.high && !r.overflow && r.low < b->lanes ? (int)r.low : -1;
}

/* The vector with the neutral element in its inactive lanes. */
static int without_rest(struct builder *b, const struct statement *s, int vector) {
  int from[CODE_LANES], there = known_lanes(b);
  struct code_type type = b->code->exprs.data[vector].type;
  for (int i = 0; i < b->lanes; i++) from[i] = i < there ? i : b->lanes;
  int nothing = build_start_value(b, s->t->reducer, type.element, b->lanes);
  return code_permute(b->code, vector, nothing, from);
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
  int to = target(b, s);
  struct code_type type = b->code->exprs.data[to].type;
  value = code_convert(b->code, value, s->to->at.dtype);
  if (across_lanes(b, s) && !b->one_by_one) {
    if (b->active_lanes >= 0) value = without_rest(b, s, value);
    value = reduce_lanes(b, s, value);
  }
  if (reducer == REDUCE_MAX || reducer == REDUCE_MIN) {
    enum px_op op = reducer == REDUCE_MAX ? PX_MAX : PX_MIN;
    code_assign(b->code, to, CODE_SET, code_operation(b->code, op, type, to, value, -1));
  } else {
    code_assign(b->code, to, reducer == REDUCE_PROD ? CODE_MULTIPLY : CODE_ADD, value);
  }
}

/* The term of the reduction is the neutral element, as an index condition decides in unrolled
 * loops. */
static bool adds_nothing(const struct builder *b, const struct statement *s) {
  if (s->phase != PHASE_UPDATE || s->bound->start < 0) return false;
  const struct px_node *n = &b->px->nodes.data[s->body];
  if (n->op != PX_NUMBER) return false;
  switch (s->t->reducer) {
    case REDUCE_PROD: return n->number == 1;
    case REDUCE_MAX: return n->number == -HUGE_VAL;
    case REDUCE_MIN: return n->number == HUGE_VAL;
    default: return n->number == 0;
  }
}

/* The statement, scalar or vector, after its gathers and counts. */
static void put(struct builder *b, const struct statement *s) {
  if (adds_nothing(b, s)) return;
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

/* The value can be computed in vectors. */
static bool has_vector(struct builder *b, const struct statement *s) {
  if (counted(s) || rounds(s)) return false;
  if (s->phase == PHASE_UPDATE) return build_form(b, s->body) != FORM_GATHER;
  return s->phase == PHASE_INIT ||
         build_storage_form(b, s->bound->accumulates_in_value ? &s->plan->value : &s->plan->sum,
                            s->sum_place) == FORM_VECTOR;
}

static void put_guarded(struct builder *b, const struct statement *s, int condition) {
  if (build_decided(b, condition, true)) {
    put(b, s);
    return;
  }
  int block = code_open_if(b->code, build_condition(b, condition));
  put(b, s);
  code_close(b->code, block);
}

static void put_lanes(struct builder *b, const struct statement *s, int each) {
  int loop = build_lane_loop(b);
  b->one_by_one = true;
  put_guarded(b, s, each);
  b->one_by_one = false;
  code_close(b->code, loop);
}

/* A vector whose lanes are stored one by one, as they are not contiguous. */
static void put_scattered(struct builder *b, const struct statement *s) {
  int block = code_open_block(b->code);
  b->gathered = 0;
  int value = value_of(b, s);
  int vector = build_lanes_variable(b, b->gathered, code_type(b->computed, b->lanes));
  code_declare(b->code, vector, value);
  int loop = build_lane_loop(b);
  b->one_by_one = true;
  assign(b, s,
         code_lane(b->code, code_variable_at(b->code, vector, 0),
                   code_variable_at(b->code, b->lane_variable, 0)));
  b->one_by_one = false;
  code_close(b->code, loop);
  code_close(b->code, block);
}

/* A horizontal reduction. */
static void put_across(struct builder *b, const struct statement *s, int each) {
  int first = b->active_lanes, yes = px_bool(b->px, true);
  bool vector = each < 0 && build_storage_form(b, s->to, s->place) == FORM_UNIFORM &&
                build_form(b, s->body) == FORM_VECTOR;
  if (vector && (first < 0 || known_lanes(b) >= b->lanes / FEW)) {
    put(b, s);
  } else if (!vector || px_range(b->px, first).high < b->lanes) {
    put_lanes(b, s, each < 0 ? yes : each);
  } else {
    int whole = px_compare(b->px, PX_LE, px_int(b->px, b->lanes), first);
    int block = code_open_if(b->code, build_condition(b, whole));
    b->active_lanes = -1;
    put(b, s);
    b->active_lanes = first;
    code_close(b->code, block);
    int rest = code_open_else(b->code, block);
    put_lanes(b, s, yes);
    code_close(b->code, rest);
  }
}

/* Sets the vector to 0 before its active lanes are computed one by one: consumers load whole
 * vectors. The values of inactive lanes do not matter, but denormal numbers take a hundred cycles
 * per operation. */
static void clear_lanes_beyond(struct builder *b, const struct statement *s) {
  bool own = s->to->at.kind == STORAGE_STACK || s->to->at.kind == STORAGE_HEAP;
  if (b->active_lanes < 0 || px_range(b->px, b->active_lanes).low >= b->lanes ||
      b->lane_steps < b->lanes)
    return;
  if (!own || s->to->at.per_lane || build_storage_form(b, s->to, s->place) != FORM_VECTOR) return;
  if (!build_place_inside(b, s->to, s->place)) return;
  int fewer = px_compare(b->px, PX_LT, b->active_lanes, px_int(b->px, b->lanes));
  int block = code_open_if(b->code, build_condition(b, fewer));
  code_assign(b->code, build_stored(b, s->to, s->place), CODE_SET,
              build_start_value(b, REDUCE_SUM, s->to->at.dtype, b->lanes));
  code_close(b->code, block);
}

static void put_in_vec(struct builder *b, const struct statement *s, int each) {
  if (across_lanes(b, s)) {
    put_across(b, s, each);
    return;
  }
  bool sums = s->phase == PHASE_UPDATE && s->bound->start >= 0;
  bool vector = each < 0 && has_vector(b, s);
  if (vector && build_storage_form(b, s->to, s->place) == FORM_VECTOR)
    put(b, s);
  else if (vector && !sums)
    put_scattered(b, s);
  else {
    if (s->phase == PHASE_UPDATE && !sums) clear_lanes_beyond(b, s);
    put_lanes(b, s, each < 0 ? px_bool(b->px, true) : each);
  }
}

/* ---- */

static struct statement statement_of(struct builder *b, int stage, enum phase phase) {
  struct statement s = {
      .bound = &b->tree->stages[stage], .plan = &b->stages[stage], .phase = phase};
  s.t = &b->program->tensors.data[s.bound->tensor];
  bool sums = s.bound->start >= 0 && !s.bound->accumulates_in_value && phase != PHASE_FINALIZE;
  s.to = sums ? &s.plan->sum : &s.plan->value;
  s.place = sums ? space_sum_place(&b->space, s.bound) : space_place(&b->space, s.bound);
  s.sum_place = s.bound->accumulates_in_value || phase != PHASE_FINALIZE
                    ? s.place
                    : space_sum_place(&b->space, s.bound);
  s.body = phase == PHASE_UPDATE ? space_expr(&b->space, s.bound, s.t->body) : -1;
  return s;
}

/* The guard of the statement: without rows if the result is private. */
static int condition_of(struct builder *b, struct statement *s, int stage,
                        const struct beyond *beyond) {
  bool begins = s->phase == PHASE_INIT && !s->bound->accumulates_in_value;
  bool unseen = build_is_private(s->to) && !counted(s);
  if (begins || (unseen && build_body_beyond(b, stage, beyond, &s->body))) return beyond->always;
  return px_and(b->px, beyond->always, beyond->rows);
}

/* The guard of uniform loads: they are inside if at least one lane is active. */
static int some_lane(struct builder *b, const struct statement *s, const struct beyond *beyond) {
  if (beyond->active_lanes < 0 || s->body < 0 || px_range(b->px, beyond->active_lanes).low > 0 ||
      build_loads_inside(b, s->body, true))
    return px_bool(b->px, true);
  return px_compare(b->px, PX_LT, px_int(b->px, 0), beyond->active_lanes);
}

static void put_statement(struct builder *b, int stage, enum phase phase) {
  struct beyond beyond = build_beyond(b, stage, phase == PHASE_UPDATE);
  struct statement s = statement_of(b, stage, phase);
  if (b->px->failed) return; /* reported at the end */
  b->active_lanes = beyond.active_lanes;
  int condition = condition_of(b, &s, stage, &beyond);
  condition = px_and(b->px, condition, some_lane(b, &s, &beyond));
  if (b->px->failed || build_decided(b, condition, false)) return;
  if (beyond.each >= 0 && build_decided(b, beyond.each, false)) return;
  if (phase != PHASE_INIT && beyond.active_lanes >= 0 &&
      px_range(b->px, beyond.active_lanes).high < 1)
    return;
  bool always = build_decided(b, condition, true);
  int block = always ? -1 : code_open_if(b->code, build_condition(b, condition));
  if (b->lane >= 0)
    put_in_vec(b, &s, beyond.each);
  else
    put(b, &s);
  if (!always) code_close(b->code, block);
}

void build_statement(struct builder *b, int stage, enum phase phase) {
  int nodes = b->px->nodes.count, indices = b->px->indices.count;
  b->computed = b->tree->stages[stage].compute_dtype;
  b->known.count = 0;
  put_statement(b, stage, phase);
  b->active_lanes = -1;
  if (b->px->failed) return;
  b->px->nodes.count = nodes;
  b->px->indices.count = indices;
}
