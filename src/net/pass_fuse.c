/* Fuses calls, so that intermediate values are not stored:
 *
 *     a = conv(x, w)                    conv: S[n, o, h, w] = X[..] * W[..] // sum ..
 *     b = add_offset(a, b)              conv_add_offset_relu:
 *     y = relu(b)                ->           S[n, o, h, w] = X[..] * W[..] // sum ..
 *                                             Y[n, o, h, w] = max(S[n, o, h, w] + B[o], 0)
 *                                       y = conv_add_offset_relu(x, w, b)
 *
 * Consumers are visited in order; each tries its producers, the nearest first. A producer is a
 * candidate if nobody else reads its result, or if it only moves data: then each consumer gets a
 * copy. The first row that applies decides:
 *
 *     producer -> consumer                                    fused
 *     contraction -> contraction                              no
 *     contraction -> windows that overlap                     no
 *     contraction beyond L2 -> not element-wise               no: measured slower
 *     not a copy -> copy of contiguous parts                  no: a view (memory_plan.h)
 *     concatenation that copies nothing -> any                no: it costs nothing
 *     any -> element-wise                                     yes: can share the producer's tile
 *     otherwise                                               if predicted faster (fuse_cost.h)
 *
 * Each number is computed by the same operations as before, but compilers may contract operations
 * that are now adjacent.
 */
#include <math.h>
#include <stdlib.h>

#include "net/copied_parts.h"
#include "net/fuse_cost.h"
#include "net/memory_plan.h"
#include "net/merge_calls.h"
#include "net/passes.h"
#include "program/program_cost.h"

/* Fused time over the sum of separate times, at most, for fusions decided by prediction. */
static const double OTHERS = 0.97;
enum {
  COPIES = 4, /* consumers that copy a data movement */
  TRIES = 32, /* producers per call */
};

struct fusing {
  canvas_context *ctx;
  struct network *n;
  struct fuse_costs *costs;
  bool *gone;           /* by call: fused into another one */
  const bool *in_place; /* by call: copies nothing (memory_plan.h) */
  bool *wanted; /* by tensor, for results of a producer: a call other than the consumer reads it */
};

/* ---- consumers ------------------------------------------------------------------------------- */

static bool takes(const struct net_call *c, int tensor) {
  for (int i = 0; i < c->arguments.count; i++)
    if (c->arguments.data[i] == tensor) return true;
  return false;
}

/* Number of other calls that read the tensor, plus 1 for an output; *before: one of them precedes
 * the consumer. */
static int count_other_consumers(const struct fusing *f, int tensor, int consumer, bool *before) {
  int count = 0;
  for (int i = 0; i < f->n->calls.count; i++) {
    if (i == consumer || f->gone[i] || !takes(&f->n->calls.data[i], tensor)) continue;
    count++;
    *before |= i < consumer;
  }
  return count + network_is_output(f->n, tensor);
}

/* Sets f->wanted of the producer's results. *consumers: other calls that read what the consumer
 * reads. False: another call reads a result before the consumer. */
static bool find_wanted(const struct fusing *f, int producer, int consumer, int *consumers) {
  const struct net_call *p = &f->n->calls.data[producer];
  bool before = false;
  *consumers = 0;
  for (int i = 0; i < p->results.count; i++) {
    int result = p->results.data[i], others = count_other_consumers(f, result, consumer, &before);
    f->wanted[result] = others > 0;
    if (takes(&f->n->calls.data[consumer], result)) *consumers += others;
  }
  return !before;
}

/* ---- profitability --------------------------------------------------------------------------- */

/* Whether the consumer is element-wise in each result of the producer that it reads. */
static bool all_elementwise(const struct network *n, const struct net_call *producer,
                            const struct net_call *consumer) {
  const struct program *p = n->programs.data[consumer->program];
  for (int i = 0; i < consumer->arguments.count; i++)
    for (int k = 0; k < producer->results.count; k++)
      if (consumer->arguments.data[i] == producer->results.data[k] &&
          !program_is_elementwise(p, p->inputs.data[i]))
        return false;
  return true;
}

/* Whether the program has a contraction; two of these are not fused. */
static bool is_heavy(const struct program *p) {
  for (int i = 0; i < p->tensors.count; i++)
    if (stage_is_contraction(p, i)) return true;
  return false;
}

/* Whether the consumer reads an element of a result several times, e.g. by overlapping pooling
 * windows. */
static bool rereads(const struct network *n, const struct net_call *from, const struct program *p) {
  int64_t elements = network_elements(&n->tensors.data[from->results.data[0]]);
  canvas_context ctx;
  struct program_cost cost;
  for (int i = 0; i < p->tensors.count; i++)
    if (p->tensors.data[i].reductions && program_cost(&ctx, p, i, &cost) == CANVAS_OK &&
        cost.points * cost.reduction > elements)
      return true;
  return false;
}

/* Whether the result exceeds L2; a separate consumer, which reads it in one pass, was faster. */
static bool leaves_caches(const struct fusing *f, const struct net_call *from) {
  const struct net_tensor *t = &f->n->tensors.data[from->results.data[0]];
  return network_elements(t) * program_dtype_bytes(t->dtype) > f->costs->machine.l2;
}

enum choice { SEPARATE, PREDICTED, TAKEN };

static enum choice choose(const struct fusing *f, int producer, int consumer) {
  const struct net_call *from = &f->n->calls.data[producer], *to = &f->n->calls.data[consumer];
  const struct program *p = f->n->programs.data[from->program];
  const struct program *q = f->n->programs.data[to->program];
  bool elementwise = all_elementwise(f->n, from, to);
  if (is_heavy(p) && (is_heavy(q) || rereads(f->n, from, q))) return SEPARATE;
  if (is_heavy(p) && !elementwise && leaves_caches(f, from)) return SEPARATE;
  if (only_copies(q) && !only_copies(p)) return SEPARATE;                  /* a view */
  if (f->in_place[producer] && from->arguments.count > 1) return SEPARATE; /* a concatenation */
  return elementwise ? TAKEN : PREDICTED;
}

static bool pays(struct fusing *f, int producer, int consumer, const struct program *both) {
  const struct network *n = f->n;
  if (choose(f, producer, consumer) == TAKEN) return true;
  double separate = fuse_cost(f->costs, n->programs.data[n->calls.data[producer].program]) +
                    fuse_cost(f->costs, n->programs.data[n->calls.data[consumer].program]);
  double one = fuse_cost(f->costs, both);
  return isfinite(one) && one <= OTHERS * separate;
}

/* ---- the change ------------------------------------------------------------------------------ */

static void forget_call(struct fusing *f, int call) {
  f->n->calls.data[call].arguments.count = 0;
  f->n->calls.data[call].results.count = 0;
  f->gone[call] = true;
}

static canvas_status take(struct fusing *f, struct merged *m, int producer, int consumer,
                          bool copy) {
  int made;
  TRY(call_maker_finish(f->ctx, &m->maker, f->n, &made));
  network_replace_call(f->n, consumer);
  for (int i = 0; i < m->kept.count; i++) {
    VEC_PUSH(&f->n->calls.data[consumer].results, m->kept.data[i]);
    f->n->tensors.data[m->kept.data[i]].call = consumer;
  }
  if (!copy) forget_call(f, producer);
  return CANVAS_OK;
}

/* Fuses the producer if that is allowed and pays; *taken: it was fused. */
static canvas_status try_producer(struct fusing *f, int producer, int consumer, bool *taken) {
  const struct network *n = f->n;
  const struct program *p = n->programs.data[n->calls.data[producer].program];
  int consumers;
  struct merged m;
  canvas_context quiet;
  *taken = false;
  if (!n->calls.data[producer].varies || choose(f, producer, consumer) == SEPARATE)
    return CANVAS_OK;
  bool movable = find_wanted(f, producer, consumer, &consumers);
  bool copy = consumers > 0;
  if (copy ? !program_moves_data(p) || consumers >= COPIES : !movable) return CANVAS_OK;
  canvas_status status = merge_calls(&quiet, n, producer, consumer, copy, f->wanted, &m);
  if (status == CANVAS_OK && pays(f, producer, consumer, m.maker.program)) {
    status = take(f, &m, producer, consumer, copy);
    *taken = status == CANVAS_OK;
  } else {
    status = CANVAS_OK; /* a merge beyond a limit is not an error */
  }
  merged_drop(&m);
  return status;
}

/* The last call before `below` that produces an argument; -1: none. */
static int next_producer(const struct network *n, int consumer, int below) {
  const struct net_call *c = &n->calls.data[consumer];
  int found = -1;
  for (int i = 0; i < c->arguments.count; i++) {
    int call = n->tensors.data[c->arguments.data[i]].call;
    if (call < below && call > found) found = call;
  }
  return found;
}

static canvas_status fuse_into(struct fusing *f, int consumer) {
  int below = consumer;
  bool taken;
  for (int i = 0; i < TRIES; i++) {
    int producer = next_producer(f->n, consumer, below);
    if (producer < 0) return CANVAS_OK;
    TRY(try_producer(f, producer, consumer, &taken));
    below = producer;
  }
  return CANVAS_OK;
}

canvas_status pass_fuse(canvas_context *ctx, struct network *n, struct fuse_costs *costs) {
  canvas_status status = CANVAS_OK;
  network_settle(n);
  struct memory_plan plan = memory_plan_of(n);
  struct fusing f = {.ctx = ctx, .n = n, .costs = costs, .in_place = plan.skipped};
  f.gone = mem_alloc((size_t)n->calls.count + 1);
  f.wanted = mem_alloc((size_t)n->tensors.count + 1);
  for (int i = 0; i < n->calls.count && status == CANVAS_OK; i++)
    if (n->calls.data[i].varies) status = fuse_into(&f, i);
  network_drop_calls(n, f.gone);
  network_join_programs(n);
  mem_free(f.gone);
  mem_free(f.wanted);
  memory_plan_free(&plan);
  return status;
}
