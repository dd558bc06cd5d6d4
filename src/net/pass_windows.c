/* Reads one value instead of a concatenation of its slices, e.g. for windows of a convolution:
 *
 *     p = pad(x)                                        p = pad(x)
 *     a = slice(p)       P[h, w]                ->      y = windows(p)     Y[k, h, w] = P[h+k, w]
 *     b = slice_2(p)     P[h+1, w]
 *     y = stack(a, b)    Y[k, h, w]
 *
 * The concatenation is expanded for each part through the calls that only move data, down to the
 * nearest common value. Each part must then be one load, and from part to part each index must
 * advance by the same step. The pass `dead` removes the slices. Results are bit-identical.
 */
#include <stdlib.h>

#include "net/call_maker.h"
#include "net/merge_calls.h"
#include "net/passes.h"
#include "program/affine.h"

enum { DEPTH = 16 /* limit of calls between the concatenation and the common value */ };

/* ---- source of the data ---------------------------------------------------------------------- */

/* The only stage that is not an input; -1: several. */
static int only_stage(const struct program *p) {
  int found = -1;
  for (int i = 0; i < p->tensors.count; i++) {
    if (p->tensors.data[i].is_input) continue;
    if (found >= 0) return -1;
    found = i;
  }
  return found;
}

static const struct program *program_of(const struct network *n, int call) {
  return n->programs.data[n->calls.data[call].program];
}

/* The call that makes this value by moving data of one argument of the same type; -1: none. */
static int move_to(const struct network *n, int value) {
  int call = n->tensors.data[value].call;
  if (call < 0) return -1;
  const struct net_call *c = &n->calls.data[call];
  const struct program *p = program_of(n, call);
  if (!c->varies || c->arguments.count != 1 || c->results.count != 1 || only_stage(p) < 0)
    return -1;
  bool same_type = n->tensors.data[c->arguments.data[0]].dtype == n->tensors.data[value].dtype;
  return same_type && program_moves_data(p) ? call : -1;
}

static bool comes_from(const struct network *n, int value, int source) {
  for (int i = 0; i < DEPTH && value != source; i++) {
    int call = move_to(n, value);
    if (call < 0) return false;
    value = n->calls.data[call].arguments.data[0];
  }
  return value == source;
}

/* The nearest value from which data movement makes all arguments of the call; -1: none. */
static int common_source(const struct network *n, const struct net_call *c) {
  int source = c->arguments.data[0];
  for (int i = 0; i < DEPTH; i++) {
    bool common = true;
    for (int k = 0; k < c->arguments.count && common; k++)
      common = comes_from(n, c->arguments.data[k], source);
    if (common) return source;
    int call = move_to(n, source);
    if (call < 0) return -1;
    source = n->calls.data[call].arguments.data[0];
  }
  return -1;
}

/* ---- a part ---------------------------------------------------------------------------------- */

/* A call whose loads are replaced by loads of the source, which is the input `input` of the new
 * program. */
struct origin {
  const struct network *n;
  int call, source, input;
};

static int argument_of(const struct origin *o, int tensor) {
  const struct program *p = program_of(o->n, o->call);
  for (int i = 0; i < p->inputs.count; i++)
    if (p->inputs.data[i] == tensor) return o->n->calls.data[o->call].arguments.data[i];
  return -1;
}

static int load_of_source(struct program *to, int tensor, int rank, const int *indices,
                          void *data) {
  const struct origin *o = data;
  int value = argument_of(o, tensor);
  if (value == o->source) return px_load(to, o->input, rank, indices);
  int call = o->n->tensors.data[value].call;
  const struct program *p = program_of(o->n, call);
  struct origin next = {o->n, call, o->source, o->input};
  struct px_map map = {.axis = indices, .load = load_of_source, .data = &next};
  return px_copy(to, p, p->tensors.data[only_stage(p)].body, &map);
}

/* ---- all of them ----------------------------------------------------------------------------- */

struct windows {
  struct call_maker maker;
  struct origin from;
  int stage;     /* stage of the new program */
  int axis;      /* axis of the concatenation */
  int64_t parts; /* number of parts */
  int64_t size;  /* size of one part along the axis */
};

/* The concatenation's expression within the part; -1: not a load of the source. */
static int part_of(struct windows *s, int64_t part) {
  const struct program *p = program_of(s->from.n, s->from.call);
  struct program *to = s->maker.program;
  const struct program_tensor *t = &p->tensors.data[only_stage(p)];
  int axis[PROGRAM_AXES];
  for (int i = 0; i < t->rank; i++) axis[i] = program_axis(to, s->stage, i);
  int within = px_mod(to, axis[s->axis], px_int(to, s->size));
  axis[s->axis] = px_add(to, within, px_int(to, part * s->size));
  struct px_map map = {.axis = axis, .load = load_of_source, .data = &s->from};
  int made = px_copy(to, p, t->body, &map);
  return !to->failed && made >= 0 && to->nodes.data[made].op == PX_LOAD ? made : -1;
}

/* The distance of index `dim` between two parts; false: not constant. */
static bool distance(const struct program *p, int from, int to, int dim, int64_t *out) {
  struct affine sum = {0};
  int a = p->indices.data[p->nodes.data[from].first + dim];
  int b = p->indices.data[p->nodes.data[to].first + dim];
  if (!affine_add(p, &sum, b, 1) || !affine_add(p, &sum, a, -1) || sum.count) return false;
  *out = sum.constant;
  return true;
}

static bool put_stage(struct windows *s, int source, const struct program *like, int input) {
  const struct program *p = program_of(s->from.n, s->from.call);
  struct program *to = s->maker.program;
  s->from.input = call_maker_input(&s->maker, source, like, input);
  const struct program_tensor *t = &p->tensors.data[only_stage(p)];
  s->stage = graft_stage(to, t, t->name, t->dtype);
  return !to->failed;
}

/* A load that equals each part where the axis is in that part; -1: none. */
static int find_load(struct windows *s) {
  struct program *to = s->maker.program;
  int first = part_of(s, 0), index[PROGRAM_AXES];
  int64_t step[PROGRAM_AXES], moved;
  if (first < 0) return -1;
  int rank = to->tensors.data[s->from.input].rank;
  for (int64_t part = 1; part < s->parts; part++) {
    int load = part_of(s, part);
    if (load < 0) return -1;
    for (int i = 0; i < rank; i++) {
      if (!distance(to, first, load, i, &moved)) return -1;
      if (part == 1) step[i] = moved;
      if (moved != part * step[i]) return -1;
    }
  }
  for (int i = 0; i < rank; i++) {
    int part = px_div(to, program_axis(to, s->stage, s->axis), px_int(to, s->size));
    int way = px_mul(to, part, px_int(to, step[i]));
    index[i] = px_add(to, to->indices.data[to->nodes.data[first].first + i], way);
  }
  return px_load(to, s->from.input, rank, index);
}

static bool try_axis(struct windows *s, int axis) {
  const struct program *p = program_of(s->from.n, s->from.call);
  const struct program_tensor *t = &p->tensors.data[only_stage(p)];
  s->axis = axis;
  if (t->axes[axis].size % s->parts) return false;
  s->size = t->axes[axis].size / s->parts;
  int load = find_load(s);
  if (load < 0) return false;
  program_define(s->maker.program, s->stage, load);
  program_output(s->maker.program, s->stage);
  return true;
}

/* ---- the pass -------------------------------------------------------------------------------- */

/* A program that reads the value, and its input for it. */
static const struct program *find_consumer(const struct network *n, int value, int *input) {
  for (int i = 0; i < n->calls.count; i++)
    for (int k = 0; k < n->calls.data[i].arguments.count; k++) {
      if (n->calls.data[i].arguments.data[k] != value) continue;
      *input = program_of(n, i)->inputs.data[k];
      return program_of(n, i);
    }
  return NULL;
}

/* Whether the call may be a concatenation. */
static bool is_concatenation(const struct network *n, const struct net_call *c) {
  const struct program *p = n->programs.data[c->program];
  if (!c->varies || c->arguments.count < 2 || c->results.count != 1) return false;
  int stage = only_stage(p), type = n->tensors.data[c->results.data[0]].dtype;
  if (stage < 0 || p->tensors.data[stage].reductions || type == PROGRAM_I32) return false;
  for (int i = 0; i < c->arguments.count; i++)
    if ((int)n->tensors.data[c->arguments.data[i]].dtype != type) return false;
  return p->nodes.data[p->tensors.data[stage].body].op == PX_SELECT;
}

static canvas_status replace(canvas_context *ctx, struct network *n, struct windows *s) {
  int made, call = s->from.call;
  TRY(call_maker_finish(ctx, &s->maker, n, &made));
  network_replace_call(n, call);
  return CANVAS_OK;
}

static canvas_status try_call(canvas_context *ctx, struct network *n, int call) {
  const struct net_call *c = &n->calls.data[call];
  if (!is_concatenation(n, c)) return CANVAS_OK;
  int source = common_source(n, c), input = -1;
  if (source < 0) return CANVAS_OK;
  const struct program *like = find_consumer(n, source, &input);
  int rank = n->tensors.data[c->results.data[0]].rank, parts = c->arguments.count;
  for (int axis = 0; axis < rank; axis++) {
    struct windows s = {call_maker_open("windows"), {n, call, source, -1}, -1, axis, parts, 0};
    if (put_stage(&s, source, like, input) && try_axis(&s, axis)) return replace(ctx, n, &s);
    call_maker_drop(&s.maker);
  }
  return CANVAS_OK;
}

canvas_status pass_windows(canvas_context *ctx, struct network *n) {
  network_settle(n);
  for (int i = 0; i < n->calls.count; i++) TRY(try_call(ctx, n, i));
  network_join_programs(n);
  return CANVAS_OK;
}
