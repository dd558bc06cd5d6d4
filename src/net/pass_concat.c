/* Reads an earlier concatenation instead of its parts:
 *
 *     c = cat(x, a)                          c = cat(x, a)
 *     d = cat(x, a, b)              ->       d = cat(c, b)
 *     e = cat(x, a, b, y)                    e = cat(d, y)
 *
 * as in a DenseNet, whose layers read all earlier results. Each value is then part of only one
 * other and all can be placed in the last one without copies (memory_plan.h). That needs contiguous
 * parts, e.g. channels of one image; other concatenations are ignored. A concatenation equal to an
 * earlier one is replaced by it. The pass `dead` removes calls that become unused. Results are
 * bit-identical.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/call_maker.h"
#include "net/copied_parts.h"
#include "net/passes.h"

enum {
  PARTS =
      256 /* limit of flattened parts per concatenation; beyond it, its arguments are the parts */
};

/* A concatenation call, flattened: its arguments, with earlier concatenations replaced by their
 * parts. */
struct joined {
  int axis;
  struct {
    VEC(int);
  } parts; /* values; none: not a concatenation */
};

struct joining {
  canvas_context *ctx;
  struct network *n;
  struct joined *of; /* by call of the network */
};

/* ---- recognising concatenations -------------------------------------------------------------- */

/* The only axis in which the sizes differ; -1: none or several. */
static int axis_of_part(const struct net_tensor *part, const struct net_tensor *whole) {
  int axis = -1;
  if (part->rank != whole->rank || part->dtype != whole->dtype) return -1;
  for (int i = 0; i < whole->rank; i++) {
    if (part->sizes[i] == whole->sizes[i]) continue;
    if (axis >= 0) return -1;
    axis = i;
  }
  return axis;
}

/* Whether the result is all arguments in order, contiguously; *axis: the axis of concatenation. */
static bool puts_together(const struct network *n, const struct net_call *c, int *axis) {
  const struct program *p = n->programs.data[c->program];
  struct copied_part parts[COPIED_PARTS];
  if (!c->varies || c->results.count != 1 || c->arguments.count < 2) return false;
  if (copied_parts(p, p->outputs.data[0], parts) != c->arguments.count) return false;
  const struct net_tensor *whole = &n->tensors.data[c->results.data[0]];
  if (whole->dtype == PROGRAM_I32) return false;
  for (int i = 0; i < c->arguments.count; i++) {
    const struct net_tensor *part = &n->tensors.data[c->arguments.data[i]];
    if (parts[i].input != p->inputs.data[i] || parts[i].count != network_elements(part))
      return false;
    int along = axis_of_part(part, whole);
    if (along < 0 || (i && along != *axis)) return false;
    *axis = along;
  }
  return true;
}

static void add_parts(struct joining *j, struct joined *to, int value) {
  int call = j->n->tensors.data[value].call;
  const struct joined *of = call < 0 ? NULL : &j->of[call];
  if (!of || !of->parts.count || of->axis != to->axis) {
    VEC_PUSH(&to->parts, value);
    return;
  }
  for (int i = 0; i < of->parts.count; i++) VEC_PUSH(&to->parts, of->parts.data[i]);
}

static void find_parts(struct joining *j, int call) {
  const struct net_call *c = &j->n->calls.data[call];
  struct joined *to = &j->of[call];
  if (!puts_together(j->n, c, &to->axis)) return;
  for (int i = 0; i < c->arguments.count; i++) add_parts(j, to, c->arguments.data[i]);
  if (to->parts.count <= PARTS) return;
  to->parts.count = 0;
  for (int i = 0; i < c->arguments.count; i++) VEC_PUSH(&to->parts, c->arguments.data[i]);
}

/* ---- choosing parts -------------------------------------------------------------------------- */

static bool stands_at(const struct joined *j, int at, const struct joined *earlier) {
  int count = earlier->parts.count;
  return count && earlier->axis == j->axis && count <= j->parts.count - at &&
         !memcmp(j->parts.data + at, earlier->parts.data, (size_t)count * sizeof(int));
}

/* The earlier concatenation that covers most parts from position `at` on; -1: none. */
static int longest_at(const struct joining *j, int call, int at) {
  int found = -1;
  for (int i = 0; i < call; i++) {
    if (!stands_at(&j->of[call], at, &j->of[i])) continue;
    if (found < 0 || j->of[i].parts.count > j->of[found].parts.count) found = i;
  }
  return found;
}

/* Fills the values to concatenate, results of earlier concatenations and single parts; returns
 * their number, 0 if too many. */
static int find_values(const struct joining *j, int call, int values[COPIED_PARTS]) {
  const struct joined *of = &j->of[call];
  int count = 0;
  for (int at = 0; at < of->parts.count;) {
    int earlier = longest_at(j, call, at);
    if (count == COPIED_PARTS) return 0;
    values[count++] = earlier < 0 ? of->parts.data[at] : j->n->calls.data[earlier].results.data[0];
    at += earlier < 0 ? 1 : j->of[earlier].parts.count;
  }
  return count;
}

/* ---- the change ------------------------------------------------------------------------------ */

static void read_instead(struct network *n, int value, int instead) {
  for (int c = 0; c < n->calls.count; c++)
    for (int i = 0; i < n->calls.data[c].arguments.count; i++)
      if (n->calls.data[c].arguments.data[i] == value) n->calls.data[c].arguments.data[i] = instead;
}

/* Y[.., c, ..] = if c < 64 then X0[.., c, ..] else if c < 96 then X1[.., c-64, ..] else ... */
static int make_body(struct program *p, int stage, int axis, int rank, int input) {
  int index[PROGRAM_AXES];
  int64_t first = 0;
  for (int i = 0; i < input; i++) first += p->tensors.data[p->inputs.data[i]].axes[axis].size;
  int64_t end = first + p->tensors.data[p->inputs.data[input]].axes[axis].size;
  for (int i = 0; i < rank; i++) index[i] = program_axis(p, stage, i);
  int inside = px_compare(p, PX_LT, index[axis], px_int(p, end));
  index[axis] = px_sub(p, index[axis], px_int(p, first));
  int load = px_load(p, p->inputs.data[input], rank, index);
  if (input == p->inputs.count - 1) return load;
  return px_select(p, inside, load, make_body(p, stage, axis, rank, input + 1));
}

static void add_input(struct joining *j, struct call_maker *m, const char **names, int value) {
  const struct net_tensor *t = &j->n->tensors.data[value];
  char name[PROGRAM_NAME + 1];
  snprintf(name, sizeof name, "X%d", m->arguments.count);
  program_input(m->program, name, t->dtype, t->rank, names, t->sizes);
  VEC_PUSH(&m->arguments, value);
}

static canvas_status replace(struct joining *j, int call, const int *values, int count) {
  struct network *n = j->n;
  const struct program *p = n->programs.data[n->calls.data[call].program];
  const struct program_tensor *like = &p->tensors.data[p->outputs.data[0]];
  struct call_maker m = call_maker_open("cat");
  const char *names[PROGRAM_AXES];
  int made;
  for (int i = 0; i < like->rank; i++) names[i] = like->axes[i].name;
  for (int i = 0; i < count; i++) add_input(j, &m, names, values[i]);
  int stage = graft_stage(m.program, like, like->name, like->dtype);
  int body = make_body(m.program, stage, j->of[call].axis, like->rank, 0);
  program_define(m.program, stage, body);
  program_output(m.program, stage);
  TRY(call_maker_finish(j->ctx, &m, n, &made));
  network_replace_call(n, call);
  return CANVAS_OK;
}

static bool reads_these(const struct net_call *c, const int *values, int count) {
  return c->arguments.count == count &&
         (!count || !memcmp(c->arguments.data, values, (size_t)count * sizeof *values));
}

static canvas_status try_call(struct joining *j, int call) {
  const struct net_call *c = &j->n->calls.data[call];
  int values[COPIED_PARTS], count = find_values(j, call, values);
  if (!count || reads_these(c, values, count)) return CANVAS_OK;
  if (count > 1) return replace(j, call, values, count);
  read_instead(j->n, c->results.data[0], values[0]);
  return CANVAS_OK;
}

canvas_status pass_concat(canvas_context *ctx, struct network *n) {
  canvas_status status = CANVAS_OK;
  network_settle(n);
  int calls = n->calls.count;
  struct joining j = {ctx, n, mem_alloc((size_t)(calls + 1) * sizeof *j.of)};
  for (int i = 0; i < calls; i++) find_parts(&j, i);
  for (int i = 0; i < calls && status == CANVAS_OK; i++) status = try_call(&j, i);
  for (int i = 0; i < calls; i++) mem_free(j.of[i].parts.data);
  mem_free(j.of);
  network_join_programs(n);
  return status;
}
