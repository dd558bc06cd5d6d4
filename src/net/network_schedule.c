/* Schedules a program of a network: the best record of a log, or the default schedule. See
 * network_code.h. */
#include <stdlib.h>

#include "autoschedule/default.h"
#include "net/network_code.h"
#include "program/program_cost.h"

/* ---- threads --------------------------------------------------------------------------------- */

/* Minimum time in ns of a call, run by one thread, for which threads pay: starting and joining them
 * takes microseconds. */
enum { ALONE_NANOSECONDS = 20000 };

/* Lower bound of the time in ns: at 3 GHz one fused multiply-add per lane and 16 bytes per
 * cycle. */
static double nanoseconds(const struct program *p, const struct machine *machine) {
  int lanes = machine->vector_bytes / 4;
  double bytes = 0;
  for (int i = 0; i < p->tensors.count; i++) {
    const struct program_tensor *t = &p->tensors.data[i];
    bytes += (double)program_elements(p, i) * program_dtype_bytes(t->dtype);
  }
  double work = program_flops(p) / (2 * lanes), moved = bytes / 16;
  return (work > moved ? work : moved) / 3;
}

static bool is_parallel(const struct schedule *s) {
  for (int i = 0; i < s->nodes.count; i++) {
    const struct schedule_node *node = &s->nodes.data[i];
    if (node->kind == NODE_LOOP && node->parent >= 0 && node->loop.marks & LOOP_PARA) return true;
  }
  return false;
}

static struct schedule *alone(const struct schedule *s) {
  struct schedule *copy = schedule_copy(s);
  for (int i = 0; i < copy->nodes.count; i++)
    if (copy->nodes.data[i].kind == NODE_LOOP)
      copy->nodes.data[i].loop.marks &= ~(unsigned)LOOP_PARA;
  return copy;
}

/* Removes parallel loops, so that their buffers belong to the function. Keeps the schedule if that
 * is illegal. */
static void make_alone(struct net_form *form) {
  canvas_context ctx;
  struct loop_tree *tree;
  if (!is_parallel(form->schedule)) return;
  struct schedule *s = alone(form->schedule);
  if (loop_tree_bind(&ctx, form->edited, s, &form->tree->machine, &tree) != CANVAS_OK) {
    schedule_free(s);
    return;
  }
  loop_tree_free(form->tree);
  schedule_free(form->schedule);
  form->tree = tree;
  form->schedule = s;
}

/* ---- which schedule -------------------------------------------------------------------------- */

/* Takes the best record of the log, ignoring program names, which passes invent. False: none. */
static bool take_tuned(const struct program *p, const struct network_options *o,
                       struct net_form *form) {
  canvas_context ctx;
  struct recorded r;
  const struct record *best;
  if (!o->log) return false;
  struct record_filter filter = *o->filter;
  filter.nameless = true;
  const struct record_use use = {p, o->machine, filter.winograd};
  if (records_use(&ctx, o->log, &filter, &use, &best, &r, NULL) != CANVAS_OK) return false;
  program_free(r.given);
  form->edited = r.program;
  form->schedule = r.schedule;
  form->tree = r.tree;
  form->tuned = true;
  return true;
}

static canvas_status take_default(canvas_context *ctx, const struct program *p,
                                  const struct machine *machine, struct net_form *form) {
  struct program *own = program_copy(p); /* the tree refers to a program that the form owns */
  struct default_bound made;
  canvas_status status = default_bind(ctx, own, machine, &made);
  if (status == CANVAS_OK) {
    form->schedule = made.schedule;
    form->tree = made.tree;
    form->edited = made.edited ? made.edited : own;
  }
  if (status != CANVAS_OK || made.edited) program_free(own);
  return status;
}

static canvas_status take_naive(canvas_context *ctx, const struct program *p,
                                const struct machine *machine, struct net_form *form) {
  form->edited = program_copy(p);
  form->schedule = schedule_default(form->edited, false, NULL);
  canvas_status status = loop_tree_bind(ctx, form->edited, form->schedule, machine, &form->tree);
  if (status == CANVAS_OK) return status;
  schedule_free(form->schedule);
  program_free(form->edited);
  return status;
}

canvas_status net_form_make(canvas_context *ctx, const struct program *p,
                            const struct network_options *o, struct net_form *form) {
  enum net_simpler level = o->simpler ? o->simpler[form->program] : NET_BEST;
  form->simpler = level != NET_BEST;
  if (level == NET_NAIVE)
    TRY(take_naive(ctx, p, o->machine, form));
  else if (level != NET_BEST || !take_tuned(p, o, form))
    TRY(take_default(ctx, p, o->machine, form));
  if (o->threads <= 1 || form->constant || nanoseconds(p, o->machine) < ALONE_NANOSECONDS)
    make_alone(form);
  form->parallel = o->threads > 1 && is_parallel(form->schedule);
  form->edited->name = "layer";
  return form->constant ? CANVAS_OK : prepare_split(ctx, form->tree, &form->prepared);
}

void net_form_free(struct net_form *form) {
  prepare_free(form->prepared);
  loop_tree_free(form->tree);
  schedule_free(form->schedule);
  program_free(form->edited);
  mem_free(form->text);
}

/* ---- in place -------------------------------------------------------------------------------- */

/* Edits may have split the stage, and a schedule may recompute elements: both forbid in-place
 * results. */
bool net_form_in_place(const struct net_form *form, int output, int input) {
  const struct program *p = form->edited;
  int out = p->outputs.data[output], in = p->inputs.data[input];
  if (!program_in_place(p, out, in)) return false;
  const struct bound_stage *stage = &form->tree->stages[loop_tree_stage(form->tree, out)];
  return stage->recomputed == 1;
}
