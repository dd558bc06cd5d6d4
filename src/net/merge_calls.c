/* Merges two programs and inlines stages where they meet. See merge_calls.h. */
#include "net/merge_calls.h"

#include <stdio.h>
#include <stdlib.h>

#include "program/affine.h"
#include "program/program_facts.h"
#include "rewrite/program_edit.h"
#include "rewrite/program_rebuild.h"

enum {
  STAGES = 64,     /* limit of stages of a merged program */
  NODES = 2048,    /* limit of nodes of all its expressions: keeps long chains in linear time */
  PARAMETERS = 24, /* limit of its inputs and outputs */
  AGAIN = 4,       /* a stage with up to so many operations is inlined more than once */
  TIMES = 3,       /* maximum of copies of an inlined stage */
  LENGTH = 600     /* limit of nodes of a merged expression */
};

void merged_drop(struct merged *m) {
  call_maker_drop(&m->maker);
  mem_free(m->kept.data);
  *m = (struct merged){0};
}

static void graft_inputs(struct graft *g) {
  for (int i = 0; i < g->from->inputs.count; i++) graft_tensor(g, g->from->inputs.data[i]);
}

static void graft_outputs(struct graft *g) {
  for (int i = 0; i < g->from->outputs.count; i++) graft_tensor(g, g->from->outputs.data[i]);
}

/* Connects inputs of the consumer to the stages of the producer that compute them. */
static void join(const struct graft *from, struct graft *to, bool *met) {
  for (int i = 0; i < to->from->inputs.count; i++)
    for (int k = 0; k < from->from->outputs.count; k++) {
      int stage = from->number[from->from->outputs.data[k]];
      if (stage < 0 || to->call->arguments.data[i] != from->call->results.data[k]) continue;
      to->number[to->from->inputs.data[i]] = stage;
      met[stage] = true;
    }
}

static struct call_maker open_maker(const struct network *n, int producer, int consumer) {
  char name[PROGRAM_NAME];
  const char *first = n->programs.data[n->calls.data[producer].program]->name;
  const char *second = n->programs.data[n->calls.data[consumer].program]->name;
  snprintf(name, sizeof name, "%.60s_%.40s", first, second);
  return call_maker_open(name);
}

static void put_together(const struct network *n, int producer, int consumer, bool copy,
                         const bool *wanted, struct merged *m, bool *met) {
  struct graft first = graft_open(&m->maker, n, producer);
  struct graft second = graft_open(&m->maker, n, consumer);
  graft_inputs(&first);
  graft_outputs(&first);
  join(&first, &second, met);
  graft_inputs(&second);
  graft_outputs(&second);
  for (int i = 0; i < second.from->outputs.count; i++)
    program_output(m->maker.program, second.number[second.from->outputs.data[i]]);
  for (int i = 0; i < first.from->outputs.count && !copy; i++) {
    int result = first.call->results.data[i];
    if (!wanted[result]) continue;
    program_output(m->maker.program, first.number[first.from->outputs.data[i]]);
    VEC_PUSH(&m->kept, result);
  }
  graft_close(&first);
  graft_close(&second);
}

/* ---- inlining where they meet ---------------------------------------------------------------- */

static bool is_costly(enum px_op op) {
  return op == PX_EXP || op == PX_EXPM1 || op == PX_LOG || op == PX_LOG1P || op == PX_SIN ||
         op == PX_COS || op == PX_TANH || op == PX_SQRT || op == PX_ERF || op == PX_POW ||
         op == PX_DIV;
}

static int operations(const struct program *p, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op <= PX_LOAD || n->sort != PX_VALUE) return 0;
  int count = is_costly(n->op) ? 1 + AGAIN : 1;
  for (int i = 0; i < 3; i++)
    if (n->arg[i] >= 0) count += operations(p, n->arg[i]);
  return count;
}

static bool is_move(const struct program *p, int stage) {
  const struct px_node *n = &p->nodes.data[p->tensors.data[stage].body];
  while (n->op == PX_SELECT && is_index_condition(p, n->arg[0]) &&
         p->nodes.data[n->arg[2]].op == PX_NUMBER)
    n = &p->nodes.data[n->arg[1]];
  return n->op == PX_LOAD;
}

static int64_t places(const struct program *p, int stage) {
  const struct program_tensor *t = &p->tensors.data[stage];
  int64_t count = program_elements(p, stage);
  for (int i = t->rank; i < t->rank + t->reductions; i++) count *= t->axes[i].size;
  return count;
}

/* Whether to inline the stage into its only consumer. */
static bool is_inlined(const struct program *p, int stage) {
  const struct program_tensor *t = &p->tensors.data[stage];
  int loads = 0, consumer = -1, consumers = 0;
  if (not_inlined(p, stage)) return false;
  for (int i = stage + 1; i < p->tensors.count; i++) {
    int count = stage_loads(p, i, stage);
    loads += count;
    consumers += count > 0;
    if (count) consumer = i;
  }
  if (consumers != 1) return false;
  const struct program_tensor *r = &p->tensors.data[consumer];
  int size = p->nodes.data[r->body].size;
  if (!t->reductions) size += loads * p->nodes.data[t->body].size;
  if (size > LENGTH) return false;
  if (t->reductions || is_move(p, stage)) return true;
  if (r->reductions || places(p, consumer) > places(p, stage)) return false;
  return loads == 1 || (loads <= TIMES && operations(p, t->body) <= AGAIN);
}

static void inline_stage(struct program **p, int stage) {
  char text[PROGRAM_NAME + 16];
  struct program *out;
  canvas_context ctx;
  if (!is_inlined(*p, stage)) return;
  int length = snprintf(text, sizeof text, "inline %s", (*p)->tensors.data[stage].name);
  if (program_edit(&ctx, *p, text, (size_t)length, &out) != CANVAS_OK) return;
  program_free(*p);
  *p = out;
}

/* Inlines stages that the consumer reads, the last one first, so that the other numbers stay
 * valid. */
static void inline_seam(struct program **p, const bool *met) {
  for (int i = (*p)->tensors.count - 1; i >= 0; i--)
    if (met[i]) inline_stage(p, i);
}

static int expression_nodes(const struct program *p) {
  int nodes = 0;
  for (int i = 0; i < p->tensors.count; i++)
    if (!p->tensors.data[i].is_input) nodes += p->nodes.data[p->tensors.data[i].body].size;
  return nodes;
}

canvas_status merge_calls(canvas_context *ctx, const struct network *n, int producer, int consumer,
                          bool copy, const bool *wanted, struct merged *out) {
  const struct program *a = n->programs.data[n->calls.data[producer].program];
  const struct program *b = n->programs.data[n->calls.data[consumer].program];
  *out = (struct merged){.maker = open_maker(n, producer, consumer)};
  if (a->tensors.count + b->tensors.count > STAGES ||
      expression_nodes(a) + expression_nodes(b) > NODES ||
      a->inputs.count + b->inputs.count + a->outputs.count + b->outputs.count > PARAMETERS)
    return CANVAS_NONE;
  bool met[STAGES] = {false};
  put_together(n, producer, consumer, copy, wanted, out, met);
  TRY(program_verify(ctx, out->maker.program));
  inline_seam(&out->maker.program, met);
  return CANVAS_OK;
}
