/* Composes a program from stages of others. See call_maker.h. */
#include "net/call_maker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ----------------------------------------------------------------------------------- */

static bool is_stage_taken(const struct program *p, const char *name) {
  return program_find(p, name) >= 0 || program_is_word(name);
}

void free_stage_name(const struct program *p, const char *wanted, char out[PROGRAM_NAME + 1]) {
  snprintf(out, PROGRAM_NAME + 1, "%s", wanted);
  for (int i = 2; is_stage_taken(p, out); i++)
    snprintf(out, PROGRAM_NAME + 1, "%.*s_%d", PROGRAM_NAME - 12, wanted, i);
}

/* ---- a call under construction --------------------------------------------------------------- */

struct call_maker call_maker_open(const char *name) {
  return (struct call_maker){.program = program_new(name)};
}

void call_maker_drop(struct call_maker *m) {
  program_free(m->program);
  mem_free(m->arguments.data);
  *m = (struct call_maker){0};
}

canvas_status call_maker_finish(canvas_context *ctx, struct call_maker *m, struct network *n,
                                int *call) {
  char name[PROGRAM_NAME + 1];
  canvas_status status = program_verify(ctx, m->program);
  if (status == CANVAS_OK) {
    free_program_name(n, m->program->name, name);
    m->program->name = arena_strndup(&m->program->arena, name, strlen(name));
    *call = network_call(n, network_program(n, m->program));
    m->program = NULL;
    for (int i = 0; i < m->arguments.count; i++) network_argument(n, *call, m->arguments.data[i]);
  }
  call_maker_drop(m);
  return status;
}

static void axes_of(const struct program_tensor *t, const char **names, int64_t *sizes) {
  for (int i = 0; i < t->rank; i++) {
    names[i] = t->axes[i].name;
    sizes[i] = t->axes[i].size;
  }
}

int graft_stage(struct program *to, const struct program_tensor *like, const char *name,
                enum program_dtype dtype) {
  const char *names[PROGRAM_AXES];
  int64_t sizes[PROGRAM_AXES];
  char text[PROGRAM_NAME + 1];
  axes_of(like, names, sizes);
  free_stage_name(to, name, text);
  return program_stage(to, text, dtype, like->rank, names, sizes);
}

/* A tensor may be passed to a constant input and to one that is not: `constant` is merged. */
int call_maker_input(struct call_maker *m, int tensor, const struct program *from, int like) {
  const struct program_tensor *t = &from->tensors.data[like];
  const char *names[PROGRAM_AXES];
  int64_t sizes[PROGRAM_AXES];
  char text[PROGRAM_NAME + 1];
  for (int i = 0; i < m->arguments.count; i++) {
    struct program_tensor *there = &m->program->tensors.data[m->program->inputs.data[i]];
    if (m->arguments.data[i] != tensor || there->least != t->least || there->most != t->most ||
        there->rising != t->rising)
      continue;
    there->constant |= t->constant;
    return m->program->inputs.data[i];
  }
  axes_of(t, names, sizes);
  free_stage_name(m->program, t->name, text);
  int made = program_input(m->program, text, t->dtype, t->rank, names, sizes);
  if (t->dtype == PROGRAM_I32) program_input_range(m->program, made, t->least, t->most, t->rising);
  if (t->constant) program_input_constant(m->program, made);
  VEC_PUSH(&m->arguments, tensor);
  return made;
}

/* ---- stages taken from a call ---------------------------------------------------------------- */

struct graft graft_open(struct call_maker *to, const struct network *n, int call) {
  const struct program *from = n->programs.data[n->calls.data[call].program];
  struct graft g = {to, n, from, &n->calls.data[call],
                    mem_alloc((size_t)(from->tensors.count + 1) * sizeof(int))};
  for (int i = 0; i < from->tensors.count; i++) g.number[i] = -1;
  if (from->winograd > to->program->winograd) to->program->winograd = from->winograd;
  return g;
}

void graft_close(struct graft *g) {
  mem_free(g->number);
  g->number = NULL;
}

int graft_load(struct program *to, int tensor, int rank, const int *indices, void *data) {
  const struct graft *g = data;
  return px_load(to, g->number[tensor], rank, indices);
}

void graft_loads(struct graft *g, int expr) {
  if (expr < 0) return;
  const struct px_node *n = &g->from->nodes.data[expr];
  if (n->op == PX_LOAD) {
    for (int i = 0; i < g->from->tensors.data[n->tensor].rank; i++)
      graft_loads(g, g->from->indices.data[n->first + i]);
    graft_tensor(g, n->tensor);
    return;
  }
  for (int i = 0; i < 3; i++) graft_loads(g, n->arg[i]);
}

static int argument_of(const struct graft *g, int input) {
  for (int i = 0; i < g->from->inputs.count; i++)
    if (g->from->inputs.data[i] == input) return g->call->arguments.data[i];
  return -1;
}

static void define_stage(struct graft *g, int tensor, int made) {
  const struct program_tensor *t = &g->from->tensors.data[tensor];
  struct program *to = g->to->program;
  int axis[PROGRAM_AXES];
  struct px_map map = {.axis = axis, .load = graft_load, .data = g, .verbatim = true};
  for (int i = 0; i < t->rank; i++) axis[i] = program_axis(to, made, i);
  for (int i = t->rank; i < t->rank + t->reductions; i++) {
    const struct program_axis *a = &t->axes[i];
    if (a->low < 0)
      axis[i] = program_reduce(to, made, t->reducer, a->name, a->size);
    else
      axis[i] =
          program_reduce_range(to, made, t->reducer, a->name, px_copy(to, g->from, a->low, &map),
                               px_copy(to, g->from, a->high, &map));
  }
  program_define(to, made, px_copy(to, g->from, t->body, &map));
}

int graft_tensor(struct graft *g, int tensor) {
  const struct program_tensor *t = &g->from->tensors.data[tensor];
  if (g->number[tensor] >= 0) return g->number[tensor];
  if (t->is_input)
    return g->number[tensor] = call_maker_input(g->to, argument_of(g, tensor), g->from, tensor);
  graft_loads(g, t->body);
  for (int i = t->rank; i < t->rank + t->reductions; i++) {
    graft_loads(g, t->axes[i].low);
    graft_loads(g, t->axes[i].high);
  }
  int made = graft_stage(g->to->program, t, t->name, t->dtype);
  define_stage(g, tensor, made);
  return g->number[tensor] = made;
}

int add_result(struct network *n, int call, const char *wanted) {
  const struct net_call *c = &n->calls.data[call];
  const struct program *p = n->programs.data[c->program];
  const struct program_tensor *t = &p->tensors.data[p->outputs.data[c->results.count]];
  char name[PROGRAM_NAME + 1];
  int64_t sizes[PROGRAM_AXES];
  for (int i = 0; i < t->rank; i++) sizes[i] = t->axes[i].size;
  free_value_name(n, wanted, name);
  int value = network_tensor(n, NET_VALUE, name, t->dtype, t->rank, sizes);
  network_result(n, call, value);
  return value;
}
