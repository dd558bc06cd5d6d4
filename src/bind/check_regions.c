/* Regions: a consumer reads only what its producer computes in the same iteration of their shared
 * loops.
 *
 * In one iteration of the shared loops the producer computes W values along each of its axes, from
 * s on, where s is the contribution of the shared loops to the axis. A read at index i is legal if
 * 0 <= i - s < W for all values of the consumer's other loops. i is an affine form over the loops
 * around the consumer, so the shared loops cancel in i - s; intervals bound the rest.
 */
#include "bind/bind.h"

/* Subtracts the contribution of the shared loops from the sum. Returns W, the number of values that
 * the producer computes in one iteration of them: 0 if unknown, -1 if no shared loop divides the
 * axis. */
static int64_t take_shared(const struct bound_stage *producer, int shared, int axis,
                           struct loop_space *space, struct affine *sum) {
  int64_t inside = 1, least = INT64_MAX;
  for (int i = 0; i < producer->steps; i++) {
    const struct step *step = &producer->path[i];
    if (step->axis != axis || step->extent == 1) continue;
    if (i >= shared) {
      inside *= step->extent;
      continue;
    }
    if (!affine_add(space->p, sum, program_axis(space->p, space->loops, i), -step->weight))
      return 0;
    if (step->weight < least) least = step->weight;
  }
  if (least == INT64_MAX) return -1;
  return least == inside ? inside : 0;
}

static canvas_status not_computed(const struct binder *b, const struct read *r, int axis,
                                  struct px_range at, int64_t inside) {
  const struct bound_stage *consumer = &b->tree->stages[r->consumer];
  const struct bound_stage *producer = &b->tree->stages[r->producer];
  const struct px_node *load = &b->p->nodes.data[r->load];
  struct buf text = {0};
  program_print_expr(b->p, b->p->indices.data[load->first + axis], &text);
  canvas_status status = reject(b, stage_place(b, consumer),
                                "stage '%s' reads '%s' at '%.100s' along axis '%s': from %lld to "
                                "%lld in one iteration of the "
                                "loops around both, which computes 0 to %lld",
                                stage_name(b, consumer), stage_name(b, producer), text.text,
                                stage_tensor(b, producer)->axes[axis].name, (long long)at.low,
                                (long long)at.high, (long long)inside - 1);
  buf_free(&text);
  return status;
}

static canvas_status not_bounded(const struct binder *b, const struct read *r, int axis) {
  const struct bound_stage *consumer = &b->tree->stages[r->consumer];
  const struct bound_stage *producer = &b->tree->stages[r->producer];
  return reject(b, stage_place(b, consumer),
                "stage '%s' reads '%s' along axis '%s' in a way that cannot be bounded in one "
                "iteration of the loops around both",
                stage_name(b, consumer), stage_name(b, producer),
                stage_tensor(b, producer)->axes[axis].name);
}

static int shared_steps(const struct bound_stage *x, const struct bound_stage *y) {
  int n = 0;
  while (n < x->steps && n < y->steps && x->path[n].node == y->path[n].node) n++;
  return n;
}

static canvas_status check_axis(const struct binder *b, const struct read *r,
                                struct loop_space *space, int axis) {
  const struct bound_stage *consumer = &b->tree->stages[r->consumer];
  const struct bound_stage *producer = &b->tree->stages[r->producer];
  const struct px_node *load = &b->p->nodes.data[r->load];
  struct affine sum;
  bool known = loop_space_index(space, b->p->indices.data[load->first + axis], &sum);
  int64_t inside = take_shared(producer, shared_steps(producer, consumer), axis, space, &sum);
  if (inside < 0) return CANVAS_OK;
  if (!known || !inside) return not_bounded(b, r, axis);
  struct px_range at = affine_range(space->p, &sum, 0);
  if (at.overflow) return not_bounded(b, r, axis);
  if (at.low >= 0 && at.high < inside) return CANVAS_OK;
  return not_computed(b, r, axis, at, inside);
}

canvas_status check_regions(struct binder *b) {
  for (int i = 0; i < b->reads.count; i++) {
    const struct read *r = &b->reads.data[i];
    loop_space_enter(&b->space, &b->tree->stages[r->consumer]);
    for (int j = 0; j < stage_tensor(b, &b->tree->stages[r->producer])->rank; j++)
      TRY(check_axis(b, r, &b->space, j));
  }
  return CANVAS_OK;
}
