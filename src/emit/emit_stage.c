/* One point of a stage: the statement that computes it, and those that begin and end a reduction.
 * See emit_base.h.
 *
 * In a vec loop a statement is one of vectors where what it writes is contiguous, or else a loop
 * over the lanes: everything has that spelling. Under a condition that lanes may fail one by one
 * there are both, the loop for the last vector.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "emit/emit_base.h"

struct statement {
  const struct bound_stage *b;
  const struct stage_plan *plan;
  const struct program_tensor *t;
  enum moment moment;
  const struct held *to; /* what it writes, and where */
  int place;
  int body;      /* MOMENT_POINT: the value */
  int sum_place; /* MOMENT_END: of the accumulator it reads */
};

/* ---- guards ---- */

/* All lanes' values of the axis at once: that of the last lane, which is the largest. */
static int last_lane(struct emitter *e, int value) {
  int64_t stride;
  if (!emit_stride(e, value, e->lane, &stride) || stride < 0) return -1;
  return px_add(e->px, emit_at_zero(e, value, e->lane), px_int(e->px, stride * (e->lanes - 1)));
}

/* The axes whose digits overshoot lie within their sizes. With `all_lanes` that of all lanes at
 * once (false if that cannot be said), else of the lane that stands at `lane`. */
static int guard(struct emitter *e, int stage, bool reductions, bool all_lanes) {
  const struct bound_stage *b = &e->tree->stages[stage];
  const struct program_tensor *t = &e->program->tensors.data[b->tensor];
  int condition = px_bool(e->px, true);
  for (int i = 0; i < t->rank + (reductions ? t->reductions : 0); i++) {
    if (!b->tail[i] || e->guarded[stage] >> i & 1) continue;
    int value = space_axis(&e->space, b, i);
    if (value < 0) continue;
    if (all_lanes && px_mentions(e->px, value, e->lane)) value = last_lane(e, value);
    int met = value < 0 ? px_bool(e->px, false)
                        : px_compare(e->px, PX_LT, value, px_int(e->px, t->axes[i].size));
    condition = px_and(e->px, condition, met);
  }
  return condition;
}

static bool decided(const struct emitter *e, int condition, bool value) {
  const struct px_node *n = &e->px->nodes.data[condition];
  return n->op == PX_BOOL && n->integer == value;
}

/* ---- text ---- */

/* `to = value;` of scalars */
static void assign(struct emitter *e, const struct statement *s, const char *value) {
  struct buf to = {0};
  bool rounds = s->t->dtype == PROGRAM_BF16 && s->to == &s->plan->value;
  bool stored = s->to->at.dtype == PROGRAM_BF16;
  emit_held(e, s->to, s->place, &to);
  if (rounds) {
    e->used |= stored ? HELP_BF16_WRITE : HELP_BF16_ROUND;
    emit_line(e, "%s = %s(%s);", to.text, stored ? "BF16_WRITE" : "BF16_ROUND", value);
  } else {
    emit_line(e, "%s = %s;", to.text, value);
  }
  buf_free(&to);
}

static void assign_vector(struct emitter *e, const struct statement *s, const char *value) {
  struct buf to = {0};
  if (s->to->at.dtype == PROGRAM_BF16) {
    emit_use_vector(e, VECTOR_BF16_WRITE, false, e->lanes);
    e->used |= HELP_BF16_WRITE;
    emit_index(e, emit_at_zero(e, s->place, e->lane), 0, &to);
    emit_line(e, "BF16_WRITE%d(%s[%s], %s);", e->lanes, s->to->name, to.text, value);
  } else {
    emit_held(e, s->to, s->place, &to);
    emit_line(e, "%s = %s;", to.text, value);
  }
  buf_free(&to);
}

/* acc += value; acc = max_f32(acc, value) */
static void accumulate(struct emitter *e, const struct statement *s, bool vector,
                       const char *value) {
  struct buf to = {0};
  enum program_reducer reducer = s->t->reducer;
  enum px_op op = reducer == REDUCE_MAX ? PX_MAX : PX_MIN;
  emit_held(e, s->to, s->place, &to);
  if (reducer == REDUCE_SUM || reducer == REDUCE_MEAN) {
    emit_line(e, "%s += %s;", to.text, value);
  } else if (reducer == REDUCE_PROD) {
    emit_line(e, "%s *= %s;", to.text, value);
  } else if (vector) {
    emit_use_vector(e, VECTOR_BF16_WRITE + 1 + op, e->wide, e->lanes);
    emit_line(e, "%s = %s_%c%d(%s, %s);", to.text, scalar_ops[op].name, e->wide ? 'D' : 'V',
              e->lanes, to.text, value);
  } else {
    e->used |= (op == PX_MAX ? HELP_MAX_F32 : HELP_MIN_F32) << e->wide;
    emit_line(e, "%s = %s(%s, %s);", to.text, e->words->operation[op][e->wide], to.text, value);
  }
  buf_free(&to);
}

double emit_start_of(enum program_reducer reducer) {
  switch (reducer) {
    case REDUCE_MAX: return -HUGE_VAL;
    case REDUCE_MIN: return HUGE_VAL;
    case REDUCE_PROD: return 1;
    default: return 0;
  }
}

void emit_start_value(struct emitter *e, enum program_reducer reducer, int lanes, struct buf *out) {
  if (lanes > 1) {
    emit_use_vector(e, VECTOR_ALL, e->wide, lanes);
    buf_printf(out, "ALL_%c%d(", e->wide ? 'D' : 'V', lanes);
  }
  emit_number(e, emit_start_of(reducer), out);
  if (lanes > 1) buf_puts(out, ")");
}

/* How many points a mean is of; one that only the data tell is counted first, in `points`. */
static void divisor(struct emitter *e, const struct statement *s, struct buf *out) {
  int64_t points = 1;
  int axes = 0, open = e->space.open;
  struct block blocks[PROGRAM_AXES];
  int digits[PROGRAM_AXES];
  const struct step *steps[PROGRAM_AXES];
  for (int i = s->t->rank; i < s->t->rank + s->t->reductions; i++) {
    const struct program_axis *axis = &s->t->axes[i];
    if (axis->low < 0) {
      points *= axis->size;
      continue;
    }
    if (!axes) emit_line(e, "%s points = 0;", e->words->index);
    struct buf low = {0}, high = {0};
    int j = 0;
    while (s->b->path[j].axis != i) j++;
    steps[axes] = &s->b->path[j];
    emit_index(e, space_expr(&e->space, s->b, axis->low), 0, &low);
    emit_index(e, space_expr(&e->space, s->b, axis->high), 1, &high);
    const char *name = e->level_name[steps[axes]->level];
    blocks[axes] = emit_open(e, "for (%s %s = %s; %s < %s; %s++)", e->words->index, name, low.text,
                             name, high.text, name);
    digits[axes] = e->digit[steps[axes]->level];
    e->digit[steps[axes]->level] = loop_space_axis(&e->space, name, axis->first, axis->size);
    axes++;
    buf_free(&low);
    buf_free(&high);
  }
  if (!axes) {
    emit_number(e, (double)points, out);
    return;
  }
  emit_line(e, "points += %" PRId64 ";", points);
  while (axes--) {
    e->digit[steps[axes]->level] = digits[axes];
    emit_close(e, blocks[axes]);
  }
  e->space.open = open;
  buf_printf(out, "(%s)points", e->words->type[e->wide ? PROGRAM_F64 : PROGRAM_F32]);
}

static bool counted(const struct statement *s) {
  if (s->moment != MOMENT_END || s->t->reducer != REDUCE_MEAN) return false;
  for (int i = s->t->rank; i < s->t->rank + s->t->reductions; i++)
    if (s->t->axes[i].low >= 0) return true;
  return false;
}

/* What is written; in vectors a vector, but to be accumulated a scalar will do. */
static void value_of(struct emitter *e, const struct statement *s, struct buf *out) {
  bool vector = e->lane >= 0 && !e->one_by_one;
  switch (s->moment) {
    case MOMENT_START: emit_start_value(e, s->t->reducer, vector ? e->lanes : 1, out); return;
    case MOMENT_POINT:
      if (s->b->start >= 0 && s->t->reducer != REDUCE_MAX && s->t->reducer != REDUCE_MIN)
        emit_value(e, s->body, s->t->reducer == REDUCE_PROD ? 1 : 0, out);
      else
        emit_vector(e, s->body, out);
      return;
    default:
      emit_held(e, s->b->direct ? &s->plan->value : &s->plan->sum, s->sum_place, out);
      if (s->t->reducer != REDUCE_MEAN) return;
      struct buf points = {0};
      divisor(e, s, &points);
      buf_printf(out, " / %s", points.text);
      buf_free(&points);
  }
}

static void put_lines(struct emitter *e, const char *lines) {
  for (const char *at = lines; at && *at;) {
    size_t length = strcspn(at, "\n");
    emit_line(e, "%.*s", (int)length, at);
    at += length + (at[length] == '\n');
  }
}

/* The statement, of scalars or of vectors as the emitter stands. */
static void put(struct emitter *e, const struct statement *s) {
  struct buf value = {0};
  bool vector = e->lane >= 0 && !e->one_by_one, block = counted(s);
  struct block braces = {0};
  e->gathered = 0;
  if (block) braces = emit_open(e, "{");
  value_of(e, s, &value);
  if (e->before.length) {
    block = true;
    braces = emit_open(e, "{");
    put_lines(e, e->before.text);
    buf_free(&e->before);
  }
  if (s->moment == MOMENT_POINT && s->b->start >= 0)
    accumulate(e, s, vector, value.text);
  else if (vector)
    assign_vector(e, s, value.text);
  else
    assign(e, s, value.text);
  if (block) emit_close(e, braces);
  buf_free(&value);
}

/* ---- lanes ---- */

static bool fits_vectors(struct emitter *e, const struct statement *s) {
  const struct held *to = s->to;
  bool rounds =
      s->t->dtype == PROGRAM_BF16 && to->at.dtype != PROGRAM_BF16 && to == &s->plan->value;
  if (counted(s) || emit_held_spread(e, to, s->place) != SPREAD_LANES) return false;
  if (s->moment == MOMENT_POINT) return !rounds && emit_spread(e, s->body) != SPREAD_SCATTERED;
  if (s->moment == MOMENT_START) return true;
  return !rounds && emit_held_spread(e, s->b->direct ? &s->plan->value : &s->plan->sum,
                                     s->sum_place) == SPREAD_LANES;
}

static void put_lanes(struct emitter *e, const struct statement *s, int condition) {
  struct block loop = emit_open(e, "for (int lane = 0; lane < %d; lane++)", e->lanes), inner = {0};
  bool asks = !decided(e, condition, true);
  e->one_by_one = true;
  if (asks) {
    struct buf text = {0};
    emit_condition(e, condition, &text);
    inner = emit_open(e, "if (%s)", text.text);
    buf_free(&text);
  }
  put(e, s);
  if (asks) emit_close(e, inner);
  e->one_by_one = false;
  emit_close(e, loop);
}

static void put_guarded(struct emitter *e, const struct statement *s, int condition) {
  if (decided(e, condition, true)) {
    put(e, s);
    return;
  }
  struct buf text = {0};
  emit_condition(e, condition, &text);
  struct block block = emit_open(e, "if (%s)", text.text);
  put(e, s);
  emit_close(e, block);
  buf_free(&text);
}

static void put_in_vec(struct emitter *e, const struct statement *s, int all, int each) {
  if (!fits_vectors(e, s) || decided(e, all, false)) {
    put_lanes(e, s, each);
  } else if (!px_mentions(e->px, each, e->lane)) {
    put_guarded(e, s, all);
  } else if (decided(e, all, true)) {
    put(e, s);
  } else {
    struct buf text = {0};
    emit_condition(e, all, &text);
    emit_line(e, "if (%s) {", text.text);
    e->depth++;
    put(e, s);
    e->depth--;
    emit_line(e, "} else {");
    e->depth++;
    put_lanes(e, s, each);
    e->depth--;
    emit_line(e, "}");
    buf_free(&text);
  }
}

/* ---- */

static struct statement statement_of(struct emitter *e, int stage, enum moment moment) {
  struct statement s = {.b = &e->tree->stages[stage], .plan = &e->stages[stage], .moment = moment};
  s.t = &e->program->tensors.data[s.b->tensor];
  bool sums = s.b->start >= 0 && !s.b->direct && moment != MOMENT_END;
  s.to = sums ? &s.plan->sum : &s.plan->value;
  s.place = sums ? space_sum_place(&e->space, s.b) : space_place(&e->space, s.b);
  s.sum_place = s.b->direct || moment != MOMENT_END ? s.place : space_sum_place(&e->space, s.b);
  s.body = moment == MOMENT_POINT ? space_expr(&e->space, s.b, s.t->body) : -1;
  return s;
}

/* Variables and accumulators of its own begin without asking: nobody sees those that overshoot. */
void emit_statement(struct emitter *e, int stage, enum moment moment) {
  int nodes = e->px->nodes.count, indices = e->px->indices.count;
  e->wide = e->tree->stages[stage].wide;
  e->known.count = 0;
  const struct bound_stage *b = &e->tree->stages[stage];
  bool free = moment == MOMENT_START && (b->direct ? b->value.kind == STORAGE_NAMED : true);
  int each = free ? px_bool(e->px, true) : guard(e, stage, moment == MOMENT_POINT, false);
  int all = e->lane >= 0 && !free ? guard(e, stage, moment == MOMENT_POINT, true) : each;
  if (!e->px->failed && !decided(e, each, false)) {
    struct statement s = statement_of(e, stage, moment);
    if (moment == MOMENT_END && b->sum.kind == STORAGE_NAMED)
      e->stages[stage].sums_read |= UINT64_C(1)
                                    << emit_variable(e, &e->stages[stage].sum, s.sum_place);
    if (e->px->failed)
      ; /* told at the end */
    else if (e->lane >= 0)
      put_in_vec(e, &s, all, each);
    else
      put_guarded(e, &s, each);
  }
  if (e->px->failed) return;
  e->px->nodes.count = nodes;
  e->px->indices.count = indices;
}
