/* Splits a call with several contractions, e.g. a kernel, into calls:
 *
 *     y = kernel(x, v, w)     kernel:       y_c = kernel_c(x, v)  C[..] = X[..] * V[..] // sum ..
 *                               C, Y   ->   y = kernel(y_c, w)    Y[..] = C[..] * W[..] // sum ..
 *
 * Each part gets a default schedule of its own: packed weights, other rows, a result in the layout
 * that its consumer reads. A cut follows a contraction and its element-wise stages; other stages,
 * e.g. pooling, stay with their consumers. Cuts are made one by one while the parts are predicted
 * to be much faster than the whole (fuse_cost.h). Each number is computed by the same operations as
 * before; the value at a cut is rounded as its stage is stored.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/call_maker.h"
#include "net/fuse_cost.h"
#include "net/merge_calls.h"
#include "net/passes.h"
#include "program/program_facts.h"
#include "rewrite/program_relayout.h"

/* Time of the parts over that of the whole, at most: predictions of the two err differently. */
static const double PARTS_BETTER = 0.8;
enum {
  TRIES = 40,        /* cuts tried for one program */
  PARTS = TRIES + 1, /* parts of one program */
};

/* State of splitting one call. */
struct cutting {
  canvas_context *ctx;
  struct network *n;
  struct fuse_costs *costs;
  int call;
  struct program *p; /* its program, with the cut values in their chosen layouts */
  bool *cut;         /* by tensor of the program: a cut follows it, which makes it a value of the
                        network */
  int *value;        /* by tensor: number of that value; below 0 until its call exists */
  double seconds;    /* predicted seconds of all parts */
  int tries;
};

/* ---- possible cuts --------------------------------------------------------------------------- */

/* Number of stages that read the tensor; *last: the last of them. */
static int count_consumers(const struct program *p, int tensor, int *last) {
  int count = 0;
  for (int i = tensor + 1; i < p->tensors.count; i++) {
    if (p->tensors.data[i].is_input || !stage_loads(p, i, tensor)) continue;
    count++;
    *last = i;
  }
  return count;
}

/* The only consumer of the stage, if it is element-wise; -1 otherwise. */
static int next_elementwise(const struct program *p, int stage) {
  int next = -1;
  if (is_output(p, stage) || count_consumers(p, stage, &next) != 1) return -1;
  return stage_is_elementwise(p, next, stage) ? next : -1;
}

static int last_elementwise(const struct program *p, int stage) {
  for (int next; (next = next_elementwise(p, stage)) >= 0;) stage = next;
  return stage;
}

static int count_contractions(const struct program *p) {
  int count = 0;
  for (int i = 0; i < p->tensors.count; i++) count += stage_is_contraction(p, i);
  return count;
}

/* ---- a part ---------------------------------------------------------------------------------- */

static void take_stage(const struct cutting *c, struct graft *g, int stage);

/* Copies what an expression reads; values at cuts become inputs. */
static void take_loads(const struct cutting *c, struct graft *g, int expr) {
  if (expr < 0) return;
  const struct px_node *node = &c->p->nodes.data[expr];
  int t = node->tensor;
  if (node->op != PX_LOAD) {
    for (int i = 0; i < 3; i++) take_loads(c, g, node->arg[i]);
    return;
  }
  if (g->number[t] >= 0 || c->p->tensors.data[t].is_input) return;
  if (c->cut[t])
    g->number[t] = call_maker_input(g->to, c->value[t], c->p, t);
  else
    take_stage(c, g, t);
}

static void take_stage(const struct cutting *c, struct graft *g, int stage) {
  take_loads(c, g, c->p->tensors.data[stage].body);
  graft_tensor(g, stage);
}

static struct call_maker make_part(const struct cutting *c, const char *name, int stage) {
  struct call_maker m = call_maker_open(name);
  struct graft g = graft_open(&m, c->n, c->call);
  g.from = c->p;
  take_stage(c, &g, stage);
  program_output(m.program, g.number[stage]);
  graft_close(&g);
  return m;
}

/* ---- cost of the parts ----------------------------------------------------------------------- */

static double part_seconds(const struct cutting *c, int stage) {
  canvas_context quiet;
  struct call_maker m = make_part(c, c->p->name, stage);
  bool right = program_verify(&quiet, m.program) == CANVAS_OK;
  double seconds = right ? fuse_cost(c->costs, m.program) : INFINITY;
  call_maker_drop(&m);
  return seconds;
}

/* Predicted seconds of all parts; stops as soon as `most` is reached. */
static double parts_seconds(const struct cutting *c, double most) {
  double seconds = part_seconds(c, c->p->outputs.data[0]);
  for (int i = 0; i < c->p->tensors.count && seconds < most; i++)
    if (c->cut[i]) seconds += part_seconds(c, i);
  return seconds;
}

/* ---- layouts --------------------------------------------------------------------------------- */

enum order { AS_IT_IS, LAST_CHANNEL, FIRST_CHANNEL, ORDERS };

/* Rotates the last three axes: [.., c, h, w] becomes [.., h, w, c] or the reverse. */
static void put_order(const struct program_tensor *t, enum order order, struct buf *out) {
  int images = t->rank - 3;
  for (int i = 0; i < t->rank; i++) {
    int axis = i;
    if (i >= images) axis = images + (i - images + (order == LAST_CHANNEL ? 1 : 2)) % 3;
    buf_printf(out, "%s%s", i ? ", " : "[", t->axes[axis].name);
  }
  buf_puts(out, "]");
}

/* The program with a contraction and its element-wise stages in that order; NULL: not
 * applicable. */
static struct program *ordered(const struct program *p, int sum, enum order order) {
  canvas_context quiet;
  struct program *made = NULL;
  size_t count = (size_t)p->tensors.count + 1;
  if (order == AS_IT_IS) return program_copy(p);
  if (p->tensors.data[sum].rank < 4) return NULL;
  struct buf *texts = mem_alloc(count * sizeof *texts);
  const char **text = mem_alloc(count * sizeof *text);
  for (int i = sum; i >= 0; i = next_elementwise(p, i)) {
    put_order(&p->tensors.data[i], order, &texts[i]);
    text[i] = texts[i].text;
  }
  if (program_relayout(&quiet, p, text, &made) != CANVAS_OK) made = NULL;
  if (made && made->tensors.count != p->tensors.count) { /* tensors were renumbered */
    program_free(made);
    made = NULL;
  }
  for (int i = 0; i < p->tensors.count; i++) buf_free(&texts[i]);
  mem_free(texts);
  mem_free(text);
  return made;
}

/* ---- choosing cuts --------------------------------------------------------------------------- */

/* Tries a cut after the contraction in each order; a faster one replaces *best and *least. */
static bool try_cut(struct cutting *c, int sum, struct program **best, double *least) {
  struct program *before = c->p;
  int end = last_elementwise(before, sum);
  bool better = false;
  c->cut[end] = true;
  for (enum order order = AS_IT_IS; order < ORDERS && c->tries < TRIES; order++) {
    struct program *made = ordered(before, sum, order);
    if (!made) continue;
    c->p = made;
    c->tries++;
    double most = fmin(*least, PARTS_BETTER * c->seconds), seconds = parts_seconds(c, most);
    bool less = seconds < most;
    program_free(less ? *best : made);
    if (!less) continue;
    *best = made;
    *least = seconds;
    better = true;
  }
  c->p = before;
  c->cut[end] = false;
  return better;
}

/* Makes the best cut; false: none pays. */
static bool cut_once(struct cutting *c, const bool *constant) {
  struct program *best = NULL;
  double least = INFINITY;
  int at = -1;
  for (int i = 0; i < c->p->tensors.count; i++) {
    int end = stage_is_contraction(c->p, i) ? last_elementwise(c->p, i) : -1;
    if (end < 0 || constant[i] || is_output(c->p, end) || c->cut[end]) continue;
    if (try_cut(c, i, &best, &least)) at = end;
  }
  if (at < 0) return false;
  program_free(c->p);
  c->p = best;
  c->seconds = least;
  return c->cut[at] = true;
}

static int find_cuts(struct cutting *c) {
  int count = 0;
  bool *constant = program_constants(c->p);
  c->seconds = fuse_cost(c->costs, c->p);
  while (cut_once(c, constant)) count++;
  mem_free(constant);
  return count;
}

/* ---- the calls ------------------------------------------------------------------------------- */

/* Moves the last call before the call that is split. */
static void move_before(struct cutting *c) {
  struct net_call *calls = c->n->calls.data, made = calls[c->n->calls.count - 1];
  size_t after = (size_t)(c->n->calls.count - 1 - c->call);
  memmove(calls + c->call + 1, calls + c->call, after * sizeof *calls);
  calls[c->call++] = made;
}

static canvas_status cut_value(struct cutting *c, int stage) {
  const char *name = c->p->tensors.data[stage].name;
  char text[2 * PROGRAM_NAME + 2];
  int made, y = c->n->calls.data[c->call].results.data[0];
  snprintf(text, PROGRAM_NAME, "%s_%s", c->p->name, name);
  struct call_maker m = make_part(c, text, stage);
  TRY(call_maker_finish(c->ctx, &m, c->n, &made));
  snprintf(text, PROGRAM_NAME, "%s_%s", c->n->tensors.data[y].name, name);
  c->value[stage] = add_result(c->n, made, text);
  move_before(c);
  return CANVAS_OK;
}

static canvas_status cut_call(struct cutting *c) {
  int made;
  for (int i = 0; i < c->p->tensors.count; i++)
    if (c->cut[i]) TRY(cut_value(c, i));
  struct call_maker m = make_part(c, c->p->name, c->p->outputs.data[0]);
  TRY(call_maker_finish(c->ctx, &m, c->n, &made));
  network_replace_call(c->n, c->call);
  return CANVAS_OK;
}

static canvas_status try_call(canvas_context *ctx, struct network *n, struct fuse_costs *costs,
                              int *call) {
  const struct program *p = n->programs.data[n->calls.data[*call].program];
  if (!n->calls.data[*call].varies || p->outputs.count != 1 || count_contractions(p) < 2)
    return CANVAS_OK;
  if (n->calls.count + PARTS > NETWORK_CALLS || n->programs.count + PARTS > NETWORK_PROGRAMS)
    return CANVAS_OK;
  size_t count = (size_t)p->tensors.count + 1;
  struct cutting c = {
      ctx,      n, costs, *call, program_copy(p), mem_alloc(count), mem_alloc(count * sizeof(int)),
      INFINITY, 0};
  for (int i = 0; i < p->tensors.count; i++) c.value[i] = -1 - i;
  canvas_status status = find_cuts(&c) ? cut_call(&c) : CANVAS_OK;
  *call = c.call;
  program_free(c.p);
  mem_free(c.cut);
  mem_free(c.value);
  return status;
}

canvas_status pass_split(canvas_context *ctx, struct network *n, struct fuse_costs *costs) {
  canvas_status status = CANVAS_OK;
  network_settle(n);
  for (int i = 0; i < n->calls.count && status == CANVAS_OK; i++)
    status = try_call(ctx, n, costs, &i);
  network_join_programs(n);
  return status;
}
