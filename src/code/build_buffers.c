/* The variables of a function's code, and where buffers are declared and allocated. See
 * build_parts.h. */
#include "code/build_parts.h"

#include <stdio.h>
#include <string.h>

/* ---- the table of variables ---- */

static enum code_storage storage_of(const struct storage *s) {
  return s->kind == STORAGE_HEAP ? CODE_HEAP : s->kind == STORAGE_NAMED ? CODE_LOCAL : CODE_ARRAY;
}

/* A named one is a variable for each element or vector; an array per lane is one of vectors. */
static int stored_variable(struct builder *b, const char *name, const struct storage *s) {
  bool vectors = s->kind == STORAGE_NAMED || s->per_lane;
  int64_t count = s->kind == STORAGE_NAMED ? storage_variables(s) : s->elements;
  struct code_type type = code_type(s->dtype, vectors ? s->lanes : 1);
  return code_variable(b->code, name, storage_of(s), type, count);
}

static int parameter(struct builder *b, int tensor, enum code_storage storage) {
  const struct program_tensor *t = &b->program->tensors.data[tensor];
  return code_variable(b->code, t->name, storage, code_type(t->dtype, 1),
                       program_elements(b->program, tensor));
}

static int counter(struct builder *b, const char *name) {
  return code_variable(b->code, name, CODE_COUNTER, code_type(CODE_INDEX, 1), 1);
}

/* A loop of several levels: yo_yi */
static int group_counter(struct builder *b, const struct schedule_loop *loop) {
  struct buf name = {0};
  for (int i = 0; i < loop->count; i++)
    buf_printf(&name, "%s%s", i ? "_" : "", b->schedule->levels.data[loop->level[i]].name);
  int variable = counter(b, name.text);
  buf_free(&name);
  return variable;
}

static void name_loops(struct builder *b) {
  for (int i = 0; i < b->schedule->nodes.count; i++) {
    const struct schedule_node *n = &b->schedule->nodes.data[i];
    bool reachable = i == 0 || n->parent >= 0;
    if (!reachable || n->kind != NODE_LOOP) continue;
    if (n->loop.count == 1)
      b->nodes[i].counter = b->counter[n->loop.level[0]];
    else if (n->loop.marks & (LOOP_FOLD | LOOP_VEC))
      b->nodes[i].counter = group_counter(b, &n->loop);
  }
}

static void name_sums(struct builder *b) {
  int sums = 0;
  for (int i = 0; i < b->tree->count; i++) sums += b->tree->stages[i].sum.kind != STORAGE_NONE;
  for (int i = 0; i < b->tree->count; i++) {
    const struct bound_stage *bound = &b->tree->stages[i];
    if (bound->sum.kind == STORAGE_NONE) continue;
    char hint[PROGRAM_NAME + 8];
    snprintf(hint, sizeof hint, "%s_acc", b->program->tensors.data[bound->tensor].name);
    b->stages[i].sum.variable = stored_variable(b, sums == 1 ? "acc" : hint, &bound->sum);
  }
}

/* Variables of the tree's own, whose names printers reserve. */
static int own(struct builder *b, const char *name, enum code_storage storage,
               struct code_type type) {
  int variable = code_variable(b->code, name, storage, type, 1);
  b->code->variables.data[variable].reserved = true;
  return variable;
}

/* A row that has room for whole vectors: the elements after `used` hold no value. */
static void give_rows(struct builder *b, const struct bound_stage *bound, int variable) {
  const struct buffer_axis *last = bound->layout + bound->dims - 1;
  if (bound->dims == 0 || last->padded_extent == last->extent) return;
  b->code->variables.data[variable].row = last->padded_extent;
  b->code->variables.data[variable].used = last->extent;
}

/* Parameters first, then loops, then buffers: of equal names the later one is changed. */
void build_variables(struct builder *b) {
  const struct program *p = b->program;
  for (int i = 0; i < p->tensors.count; i++) b->tensor_variable[i] = -1;
  for (int i = 0; i < p->inputs.count; i++)
    b->tensor_variable[p->inputs.data[i]] = parameter(b, p->inputs.data[i], CODE_INPUT);
  for (int i = 0; i < p->outputs.count; i++)
    b->tensor_variable[p->outputs.data[i]] = parameter(b, p->outputs.data[i], CODE_OUTPUT);
  for (int i = 0; i < b->schedule->levels.count; i++)
    b->counter[i] = counter(b, b->schedule->levels.data[i].name);
  for (int i = 0; i < p->tensors.count; i++) {
    int stage = b->space.stage_of[i]; /* none: a stage that no output needs, without a leaf */
    if (b->tensor_variable[i] >= 0 || stage < 0) continue;
    b->tensor_variable[i] =
        stored_variable(b, p->tensors.data[i].name, &b->tree->stages[stage].value);
  }
  for (int i = 0; i < b->tree->count; i++) {
    int variable = b->tensor_variable[b->tree->stages[i].tensor];
    b->stages[i].value.variable = variable;
    give_rows(b, &b->tree->stages[i], variable);
    if (b->tree->stages[i].streamed) b->code->variables.data[variable].streamed = true;
  }
  name_loops(b);
  name_sums(b);
  b->lane_variable = own(b, "lane", CODE_COUNTER, code_type(PROGRAM_I32, 1));
  b->points_variable = own(b, "points", CODE_LOCAL, code_type(CODE_INDEX, 1));
}

/* lanes0, lanes1, ...: of each type another variable */
int build_lanes_variable(struct builder *b, int number, struct code_type type) {
  char name[24];
  for (int i = 0; i < b->own.count; i++)
    if (b->own.data[i].number == number && code_same_type(b->own.data[i].type, type))
      return b->own.data[i].variable;
  snprintf(name, sizeof name, "lanes%d", number);
  int variable = own(b, name, CODE_LOCAL, type);
  VEC_PUSH(&b->own, ((struct own_variable){number, type, variable}));
  return variable;
}

/* ---- declarations ---- */

void build_declare(struct builder *b, const struct stored *h, int start) {
  if (h->at.kind != STORAGE_HEAP) code_declare(b->code, h->variable, start);
}

/* Declares the buffers whose lifetime is one iteration of the loop. */
void build_declare_at(struct builder *b, int compute_at) {
  for (int i = 0; i < b->tree->count; i++) {
    const struct bound_stage *bound = &b->tree->stages[i];
    if (bound->compute_at == compute_at && !bound->is_output && !bound->dead &&
        !bound->declares_init)
      build_declare(b, &b->stages[i].value, -1);
  }
}

/* ---- the heap ---- */

/* The buffers that a region allocates; with `variables` NULL they are counted. */
static int heaps_of(const struct builder *b, int region, int *variables) {
  int count = 0;
  for (int i = 0; i < b->tree->count; i++) {
    const struct stored *both[2] = {&b->stages[i].value, &b->stages[i].sum};
    for (int j = 0; j < 2; j++) {
      if (both[j]->at.kind != STORAGE_HEAP || both[j]->at.region != region) continue;
      if (variables) variables[count] = both[j]->variable;
      count++;
    }
  }
  return count;
}

int build_heaps(const struct builder *b, int region) {
  return heaps_of(b, region, NULL);
}

int build_allocate(struct builder *b, int region) {
  int count = heaps_of(b, region, NULL);
  int *variables = arena_alloc(&b->arena, (size_t)count * sizeof *variables + 1);
  heaps_of(b, region, variables);
  return code_open_allocate(b->code, variables, count);
}
