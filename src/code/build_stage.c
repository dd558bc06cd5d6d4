/* One point of a stage: the statement that computes it, and those that begin and end a reduction.
 * See build_parts.h.
 *
 * In a vec loop a statement is one of vectors; where what it writes is not contiguous, its lanes are
 * stored one by one, and what has no form in vectors at all is a loop over the lanes. Of the last vector
 * of an axis so many lanes are loaded and stored as there are (build_beyond.c).
 */
#include "code/build_parts.h"

#include <math.h>

enum { FEW = 4 }; /* less than this part of the lanes is reduced one by one */

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

/* A reduction axis is at `value`, which the innermost of its levels holds; -1: it is open no more. */
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

/* points = 0; for ...: points += n: the points of a mean that only the data tell. From reduction axis
 * `axis` on, `points` are those of the axes before that are constants and bound no other. */
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

/* What the accumulators came to. */
static int final_value(struct builder *b, const struct statement *s) {
  const struct stored *from = s->bound->accumulates_in_value ? &s->plan->value : &s->plan->sum;
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

/* Where it is written: lanes that lie beyond only where nobody sees them. */
static int target(struct builder *b, const struct statement *s) {
  const struct stored *to = s->to;
  bool memory = build_in_vectors(b) && to->at.kind != STORAGE_NAMED && !to->at.per_lane;
  bool room = b->kept == b->lanes && to->at.kind != STORAGE_OUTPUT;
  bool side = memory && build_storage_form(b, to, s->place) == FORM_VECTOR;
  if (!side || b->first < 0 || (room && build_place_inside(b, to, s->place)))
    return build_stored(b, to, s->place);
  int element =
      code_element(b->code, to->variable, build_index(b, build_at_zero(b, s->place, b->lane)));
  return code_first_lanes(b->code, element, b->lanes, build_index(b, b->first));
}

/* Values of bf16 in variables. */
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

/* How many lanes of the statement there are, the same in each step of its loops; -1: no such number. */
static int known_lanes(const struct builder *b) {
  struct px_range r = px_range(b->px, b->first);
  return r.low == r.high && !r.overflow && r.low < b->lanes ? (int)r.low : -1;
}

/* A vector with what changes no result in the lanes that are not there. */
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
    if (b->first >= 0) value = without_rest(b, s, value);
    value = reduce_lanes(b, s, value);
  }
  if (reducer == REDUCE_MAX || reducer == REDUCE_MIN) {
    enum px_op op = reducer == REDUCE_MAX ? PX_MAX : PX_MIN;
    code_assign(b->code, to, CODE_SET, code_operation(b->code, op, type, to, value, -1));
  } else {
    code_assign(b->code, to, reducer == REDUCE_PROD ? CODE_MULTIPLY : CODE_ADD, value);
  }
}

/* Of a point of the reduction: the term is one that changes no sum, since a condition of indices says so
 * where loops are unrolled. */
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

/* The statement, of scalars or of vectors as the builder stands, after what gathers and counts. */
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

/* What is written can be computed in vectors. */
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

/* A vector whose lanes are stored one by one: they do not lie side by side. */
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

/* A vector reduced to one value, where all its lanes are points of the reduction. */
static void put_across(struct builder *b, const struct statement *s, int each) {
  int first = b->first, yes = px_bool(b->px, true);
  bool vector = each < 0 && build_storage_form(b, s->to, s->place) == FORM_UNIFORM &&
                build_form(b, s->body) == FORM_VECTOR;
  if (vector && (first < 0 || known_lanes(b) >= b->lanes / FEW)) {
    put(b, s);
  } else if (!vector || px_range(b->px, first).high < b->lanes) {
    put_lanes(b, s, each < 0 ? yes : each);
  } else {
    int whole = px_compare(b->px, PX_LE, px_int(b->px, b->lanes), first);
    int block = code_open_if(b->code, build_condition(b, whole));
    b->first = -1;
    put(b, s);
    b->first = first;
    code_close(b->code, block);
    int rest = code_open_else(b->code, block);
    put_lanes(b, s, yes);
    code_close(b->code, rest);
  }
}

/* Lanes that nobody computes are loaded by whoever loads whole vectors: what they happen to hold is of no account, but
 * as denormal numbers they take a hundred cycles in each operation. Of a buffer with places of their own they are 0. */
static void clear_lanes_beyond(struct builder *b, const struct statement *s) {
  bool own = s->to->at.kind == STORAGE_STACK || s->to->at.kind == STORAGE_HEAP;
  if (b->first < 0 || px_range(b->px, b->first).low >= b->lanes || b->kept < b->lanes) return;
  if (!own || s->to->at.per_lane || build_storage_form(b, s->to, s->place) != FORM_VECTOR) return;
  if (!build_place_inside(b, s->to, s->place)) return;
  int fewer = px_compare(b->px, PX_LT, b->first, px_int(b->px, b->lanes));
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

/* The condition under which the statement runs at all: not that of what nobody sees. */
static int condition_of(struct builder *b, struct statement *s, int stage,
                        const struct beyond *beyond) {
  bool begins = s->phase == PHASE_INIT && !s->bound->accumulates_in_value;
  bool unseen = build_is_private(s->to) && !counted(s);
  if (begins || (unseen && build_body_beyond(b, stage, beyond, &s->body))) return beyond->always;
  return px_and(b->px, beyond->always, beyond->rows);
}

/* What all lanes load lies inside if one of them does. */
static int some_lane(struct builder *b, const struct statement *s, const struct beyond *beyond) {
  if (beyond->first < 0 || s->body < 0 || px_range(b->px, beyond->first).low > 0 ||
      build_loads_inside(b, s->body, true))
    return px_bool(b->px, true);
  return px_compare(b->px, PX_LT, px_int(b->px, 0), beyond->first);
}

static void put_statement(struct builder *b, int stage, enum phase phase) {
  struct beyond beyond = build_beyond(b, stage, phase == PHASE_UPDATE);
  struct statement s = statement_of(b, stage, phase);
  if (b->px->failed) return; /* told at the end */
  b->first = beyond.first;
  int condition = condition_of(b, &s, stage, &beyond);
  condition = px_and(b->px, condition, some_lane(b, &s, &beyond));
  if (b->px->failed || build_decided(b, condition, false)) return;
  if (beyond.each >= 0 && build_decided(b, beyond.each, false)) return;
  if (phase != PHASE_INIT && beyond.first >= 0 && px_range(b->px, beyond.first).high < 1) return;
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
  b->first = -1;
  if (b->px->failed) return;
  b->px->nodes.count = nodes;
  b->px->indices.count = indices;
}
