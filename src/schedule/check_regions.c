/* Regions: what a stage reads of another was computed since the loops that both share last moved.
 *
 * While the shared loops stand still, the producer has computed, along each of its axes, the parts
 * that no shared loop is: W values from s on, where s is what the shared loops make of the axis.
 * A read at index i is good if 0 <= i - s < W for all values of the reader's other loops. i is
 * written as a sum over the loops around the reader, so that what the shared ones contribute to i
 * and to s cancels; the rest is bounded by intervals.
 */
#include "schedule/bind.h"

/* The loops around a reader, as the axes of a stage of a program made for it; its own axes as
 * expressions over them. */
struct space {
  struct program *p;
  int stage;
  int axes[PROGRAM_AXES]; /* of the reader */
};

/* low .. high, and coef[i] times loop i. */
struct linear {
  int64_t low, high, coef[SCHEDULE_DEPTH];
};

/* A dyn loop counts from where its axis does. */
static struct program_axis loop_axis(const struct binder *b, const struct bound_stage *reader,
                                     const struct step *step) {
  struct program_axis axis = {level_name(b, step->level), step->extent, 0, -1, -1};
  if (step->dyn && step->axis >= 0) axis.first = stage_tensor(b, reader)->axes[step->axis].first;
  return axis;
}

/* Loads of index tensors keep their numbers: the tensors of the program come first. */
static void open_space(const struct binder *b, const struct bound_stage *reader,
                       struct space *out) {
  const struct program_tensor *t = stage_tensor(b, reader);
  out->p = program_new("loops");
  for (int i = 0; i < b->p->tensors.count; i++) VEC_PUSH(&out->p->tensors, b->p->tensors.data[i]);
  out->stage = out->p->tensors.count;
  VEC_PUSH(&out->p->tensors, ((struct program_tensor){.name = "loops", .rank = reader->steps}));
  for (int i = 0; i < reader->steps; i++)
    out->p->tensors.data[out->stage].axes[i] = loop_axis(b, reader, &reader->path[i]);
  for (int i = 0; i < t->rank + t->reductions; i++) out->axes[i] = px_int(out->p, 0);
  for (int i = 0; i < reader->steps; i++) {
    const struct step *step = &reader->path[i];
    if (step->axis < 0) continue;
    int digit = px_mul(out->p, program_axis(out->p, out->stage, i), px_int(out->p, step->weight));
    out->axes[step->axis] = px_add(out->p, out->axes[step->axis], digit);
  }
}

/* sum += times * [low, high]; false where numbers become too large. */
static bool add_range(struct linear *sum, int64_t low, int64_t high, int64_t times) {
  int64_t a, z;
  if (__builtin_mul_overflow(low, times, &a) || __builtin_mul_overflow(high, times, &z))
    return false;
  return !__builtin_add_overflow(sum->low, a < z ? a : z, &sum->low) &&
         !__builtin_add_overflow(sum->high, a < z ? z : a, &sum->high);
}

static bool add_other(const struct space *space, int expr, int64_t times, struct linear *sum) {
  struct px_range r = px_range(space->p, expr);
  return !r.overflow && add_range(sum, r.low, r.high, times);
}

/* sum += times * expr */
static bool add_terms(const struct space *space, int expr, int64_t times, struct linear *sum) {
  const struct px_node *n = &space->p->nodes.data[expr];
  const struct px_node *factor = n->op == PX_MUL ? &space->p->nodes.data[n->arg[1]] : NULL;
  int64_t product;
  switch (n->op) {
    case PX_INT: return add_range(sum, n->integer, n->integer, times);
    case PX_AXIS:
      return !__builtin_add_overflow(sum->coef[n->integer], times, &sum->coef[n->integer]);
    case PX_ADD:
      return add_terms(space, n->arg[0], times, sum) && add_terms(space, n->arg[1], times, sum);
    case PX_SUB:
      return times != INT64_MIN && add_terms(space, n->arg[0], times, sum) &&
             add_terms(space, n->arg[1], -times, sum);
    case PX_MUL:
      if (factor->op != PX_INT || __builtin_mul_overflow(times, factor->integer, &product))
        return add_other(space, expr, times, sum);
      return add_terms(space, n->arg[0], product, sum);
    default: return add_other(space, expr, times, sum);
  }
}

/* All loops run. */
static bool close_linear(const struct space *space, struct linear *sum) {
  const struct program_tensor *loops = &space->p->tensors.data[space->stage];
  for (int i = 0; i < loops->rank; i++) {
    int64_t first = loops->axes[i].first;
    if (!add_range(sum, first, first + loops->axes[i].size - 1, sum->coef[i])) return false;
  }
  return true;
}

/* Takes what the shared loops make of the axis from the sum. How many values of the axis there are
 * for each of their steps: 0 if those do not lie side by side, -1 if they are the whole axis. */
static int64_t take_shared(const struct bound_stage *producer, int shared, int axis,
                           struct linear *sum) {
  int64_t inside = 1, least = INT64_MAX;
  for (int i = 0; i < producer->steps; i++) {
    const struct step *step = &producer->path[i];
    if (step->axis != axis || step->extent == 1) continue;
    if (i >= shared) {
      inside *= step->extent;
      continue;
    }
    sum->coef[i] -= step->weight;
    if (step->weight < least) least = step->weight;
  }
  if (least == INT64_MAX) return -1;
  return least == inside ? inside : 0;
}

static canvas_status not_computed(const struct binder *b, const struct read *r, int axis,
                                  const struct linear *sum, int64_t inside) {
  const struct bound_stage *reader = &b->tree->stages[r->reader];
  const struct bound_stage *producer = &b->tree->stages[r->producer];
  const struct px_node *load = &b->p->nodes.data[r->load];
  struct buf text = {0};
  program_print_expr(b->p, b->p->indices.data[load->first + axis], &text);
  canvas_status status = refuse(
      b, stage_place(b, reader),
      "stage '%s' reads '%s' at '%.100s' along axis '%s': from %lld to %lld while the loops around "
      "both stand still, and 0 to %lld are computed",
      stage_name(b, reader), stage_name(b, producer), text.text,
      stage_tensor(b, producer)->axes[axis].name, (long long)sum->low, (long long)sum->high,
      (long long)inside - 1);
  buf_free(&text);
  return status;
}

static canvas_status not_bounded(const struct binder *b, const struct read *r, int axis) {
  const struct bound_stage *reader = &b->tree->stages[r->reader];
  const struct bound_stage *producer = &b->tree->stages[r->producer];
  return refuse(b, stage_place(b, reader),
                "stage '%s' reads '%s' along axis '%s' in a way that cannot be bounded while the "
                "loops around both stand still",
                stage_name(b, reader), stage_name(b, producer),
                stage_tensor(b, producer)->axes[axis].name);
}

static int shared_steps(const struct bound_stage *x, const struct bound_stage *y) {
  int n = 0;
  while (n < x->steps && n < y->steps && x->path[n].node == y->path[n].node) n++;
  return n;
}

static canvas_status check_axis(const struct binder *b, const struct read *r,
                                const struct space *space, int axis) {
  const struct bound_stage *reader = &b->tree->stages[r->reader];
  const struct bound_stage *producer = &b->tree->stages[r->producer];
  const struct px_node *load = &b->p->nodes.data[r->load];
  struct linear sum = {0};
  int64_t inside = take_shared(producer, shared_steps(producer, reader), axis, &sum);
  if (inside < 0) return CANVAS_OK;
  struct px_map map = {.axis = space->axes};
  int index = px_copy(space->p, b->p, b->p->indices.data[load->first + axis], &map);
  if (space->p->failed || !inside || !add_terms(space, index, 1, &sum) ||
      !close_linear(space, &sum))
    return not_bounded(b, r, axis);
  if (sum.low >= 0 && sum.high < inside) return CANVAS_OK;
  return not_computed(b, r, axis, &sum, inside);
}

static canvas_status check_read(const struct binder *b, const struct read *r) {
  const struct bound_stage *producer = &b->tree->stages[r->producer];
  struct space space;
  canvas_status status = CANVAS_OK;
  open_space(b, &b->tree->stages[r->reader], &space);
  for (int i = 0; status == CANVAS_OK && i < stage_tensor(b, producer)->rank; i++)
    status = check_axis(b, r, &space, i);
  program_free(space.p);
  return status;
}

canvas_status check_regions(const struct binder *b) {
  for (int i = 0; i < b->reads.count; i++) TRY(check_read(b, &b->reads.data[i]));
  return CANVAS_OK;
}
