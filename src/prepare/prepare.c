/* Splits a bound schedule into what constants determine and the rest. See prepare.h. */
#include "prepare/prepare.h"

#include <stdlib.h>
#include <string.h>

#include "edit/schedule_change.h"
#include "prepare/prepare_layout.h"
#include "program/program_cost.h"
#include "rewrite/program_relayout.h"

struct splitter {
  const struct loop_tree *tree;
  const struct program *p;
  bool *constant; /* by tensor: depends on constant inputs only */
  bool *prepared; /* by tensor: a stage of the part `prepare` */
  bool *stored;   /* by tensor: a prepared stage that the rest loads */
  bool *read;     /* by tensor: the part that is being built loads it */
  int *number;    /* by tensor: its index in the part that is being built */
  char **layout;  /* by tensor: of a stored tensor; NULL: row-major */
};

/* ---- which stages are prepared
 * ------------------------------------------------------------------ */

/* Marks each tensor that the expression loads, also within indices. */
static void loads_below(const struct program *p, int expr, bool *seen) {
  if (expr < 0) return;
  const struct px_node *n = &p->nodes.data[expr];
  for (int i = 0; i < 3; i++) loads_below(p, n->arg[i], seen);
  if (n->op != PX_LOAD) return;
  seen[n->tensor] = true;
  for (int i = 0; i < p->tensors.data[n->tensor].rank; i++)
    loads_below(p, p->indices.data[n->first + i], seen);
}

/* Marks each tensor that the stage loads, also in the bounds of its reductions. */
static void loads_of(const struct program *p, int stage, bool *seen) {
  const struct program_tensor *t = &p->tensors.data[stage];
  loads_below(p, t->body, seen);
  for (int i = t->rank; i < t->rank + t->reductions; i++) {
    loads_below(p, t->axes[i].low, seen);
    loads_below(p, t->axes[i].high, seen);
  }
}

static int root_of(const struct splitter *s, int stage) {
  const struct schedule_node *nodes = s->tree->schedule->nodes.data;
  int node = s->tree->stages[stage].node;
  while (nodes[node].parent > 0) node = nodes[node].parent;
  return node;
}

/* Prepares all stages of one loop nest at the root, or none of them. */
static void choose_nest(struct splitter *s, int first, int end) {
  bool good = true;
  for (int i = first; i < end; i++) {
    const struct bound_stage *stage = &s->tree->stages[i];
    s->constant[stage->tensor] = program_stage_is_constant(s->p, stage->tensor, s->constant);
    good &= s->constant[stage->tensor] && !stage->is_output && !stage->dead;
  }
  for (int i = first; i < end; i++) {
    int tensor = s->tree->stages[i].tensor;
    s->constant[tensor] = s->prepared[tensor] = good;
  }
}

static bool choose(struct splitter *s) {
  bool any = false;
  for (int i = 0; i < s->p->inputs.count; i++) {
    int input = s->p->inputs.data[i];
    s->constant[input] = s->p->tensors.data[input].constant;
  }
  for (int i = 0, end; i < s->tree->count; i = end) {
    for (end = i + 1; end < s->tree->count && root_of(s, end) == root_of(s, i);) end++;
    choose_nest(s, i, end);
  }
  for (int i = 0; i < s->tree->count; i++) {
    int tensor = s->tree->stages[i].tensor;
    if (!s->prepared[tensor]) loads_of(s->p, tensor, s->stored);
  }
  for (int i = 0; i < s->p->tensors.count; i++) any |= s->stored[i] &= s->prepared[i];
  return any;
}

/* ---- the programs
 * ------------------------------------------------------------------------------- */

static int load_number(struct program *to, int tensor, int rank, const int *indices, void *data) {
  const struct splitter *s = data;
  return px_load(to, s->number[tensor], rank, indices);
}

static int add_tensor(struct program *to, const struct program_tensor *t, bool input) {
  const char *names[PROGRAM_AXES];
  int64_t sizes[PROGRAM_AXES];
  for (int i = 0; i < t->rank; i++) {
    names[i] = t->axes[i].name;
    sizes[i] = t->axes[i].size;
  }
  if (!input) return program_stage(to, t->name, t->dtype, t->rank, names, sizes);
  int made = program_input(to, t->name, t->dtype, t->rank, names, sizes);
  if (t->dtype == PROGRAM_I32) program_input_range(to, made, t->least, t->most, t->rising);
  return made;
}

static void add_stage(struct splitter *s, struct program *to, int stage) {
  const struct program_tensor *t = &s->p->tensors.data[stage];
  int axis[PROGRAM_AXES], made = s->number[stage] = add_tensor(to, t, false);
  const struct px_map map = {.axis = axis, .load = load_number, .data = s, .verbatim = true};
  for (int i = 0; i < t->rank; i++) axis[i] = program_axis(to, made, i);
  for (int i = t->rank; i < t->rank + t->reductions; i++) {
    const struct program_axis *a = &t->axes[i];
    axis[i] = a->low < 0 ? program_reduce(to, made, t->reducer, a->name, a->size)
                         : program_reduce_range(to, made, t->reducer, a->name,
                                                px_copy(to, s->p, a->low, &map),
                                                px_copy(to, s->p, a->high, &map));
  }
  program_define(to, made, px_copy(to, s->p, t->body, &map));
}

/* Builds one of the two programs: inputs in their order, then stored tensors (of the rest), then
 * the stages. */
static struct program *write_part(struct splitter *s, bool in_prepare, bool *uses_input) {
  const struct program *p = s->p;
  struct program *to = program_new(p->name);
  memset(s->read, 0, (size_t)p->tensors.count);
  for (int i = 0; i < s->tree->count; i++)
    if (s->prepared[s->tree->stages[i].tensor] == in_prepare)
      loads_of(p, s->tree->stages[i].tensor, s->read);
  for (int i = 0; i < p->inputs.count; i++) {
    const struct program_tensor *t = &p->tensors.data[p->inputs.data[i]];
    uses_input[i] = s->read[p->inputs.data[i]] || (!in_prepare && !t->constant);
    if (uses_input[i]) s->number[p->inputs.data[i]] = add_tensor(to, t, true);
  }
  for (int i = 0; i < p->tensors.count && !in_prepare; i++)
    if (s->stored[i]) s->number[i] = add_tensor(to, &p->tensors.data[i], true);
  for (int i = 0; i < p->tensors.count; i++)
    if (loop_tree_stage(s->tree, i) >= 0 && s->prepared[i] == in_prepare) add_stage(s, to, i);
  for (int i = 0; i < p->tensors.count && in_prepare; i++)
    if (s->stored[i]) program_output(to, s->number[i]);
  for (int i = 0; i < p->outputs.count && !in_prepare; i++)
    program_output(to, s->number[p->outputs.data[i]]);
  return to;
}

/* Rewrites the part so that the stored tensors have their layouts. */
static canvas_status lay_out(canvas_context *ctx, const struct splitter *s, struct program **part) {
  const char **text = mem_alloc((size_t)(*part)->tensors.count * sizeof *text + 1);
  struct program *made = NULL;
  bool any = false;
  for (int i = 0; i < s->p->tensors.count; i++) {
    if (!s->layout[i]) continue;
    text[s->number[i]] = s->layout[i];
    any = true;
  }
  canvas_status status = any ? program_relayout(ctx, *part, text, &made) : CANVAS_OK;
  mem_free(text);
  if (!made) return status;
  program_free(*part);
  *part = made;
  return CANVAS_OK;
}

/* ---- the schedules
 * ------------------------------------------------------------------------------- */

/* The schedule of one part. An output gets no layout: its program has it already. */
static struct schedule *schedule_part(const struct splitter *s, bool in_prepare,
                                      const struct program *part) {
  struct schedule *copy = schedule_copy(s->tree->schedule);
  for (int i = 0; i < s->tree->count; i++) {
    const struct bound_stage *stage = &s->tree->stages[i];
    struct schedule_leaf *leaf = &copy->nodes.data[stage->node].leaf;
    if (s->prepared[stage->tensor] != in_prepare) {
      change_detach(copy, stage->node);
    } else if (s->stored[stage->tensor]) {
      if (s->layout[stage->tensor])
        prepare_layout_leaf(copy, stage->node, &part->tensors.data[s->number[stage->tensor]]);
      leaf->layout.count = 0;
      leaf->scope = SCOPE_AUTO;
    }
  }
  return change_tidy(copy);
}

static canvas_status bind_part(canvas_context *ctx, struct splitter *s, bool in_prepare,
                               struct prepared_part *part) {
  part->uses_input = mem_alloc((size_t)s->p->inputs.count + 1);
  part->program = write_part(s, in_prepare, part->uses_input);
  TRY(program_verify(ctx, part->program));
  TRY(lay_out(ctx, s, &part->program));
  struct schedule *schedule = schedule_part(s, in_prepare, part->program);
  canvas_status status =
      loop_tree_bind(ctx, part->program, schedule, &s->tree->machine, &part->tree);
  if (status == CANVAS_OK)
    part->tree->made = schedule;
  else
    schedule_free(schedule);
  return status;
}

/* ---- both parts
 * ---------------------------------------------------------------------------------- */

static void place(const struct splitter *s, struct prepared *made) {
  made->offset = mem_alloc((size_t)s->p->tensors.count * sizeof *made->offset + 1);
  for (int i = 0; i < s->p->tensors.count; i++) {
    if (!s->stored[i]) continue;
    int64_t size = program_elements(s->p, i) * program_dtype_bytes(s->p->tensors.data[i].dtype);
    made->offset[made->count++] = made->bytes;
    made->bytes += (size + PREPARE_ALIGNMENT - 1) / PREPARE_ALIGNMENT * PREPARE_ALIGNMENT;
  }
}

/* *out is NULL if a part is not legal: a loop of one part may be longer than its axis only because
 * of vector lanes in the other. */
static canvas_status split(canvas_context *ctx, struct splitter *s, struct prepared **out) {
  struct prepared *made = mem_alloc(sizeof *made);
  place(s, made);
  canvas_status status = bind_part(ctx, s, true, &made->prepare);
  if (status == CANVAS_OK) status = bind_part(ctx, s, false, &made->rest);
  if (status != CANVAS_OK) prepare_free(made);
  *out = status == CANVAS_OK ? made : NULL;
  return status == CANVAS_BAD_INPUT ? CANVAS_OK : status;
}

/* Returns whether a stored tensor has a layout in its schedule. */
static bool find_layouts(struct splitter *s) {
  bool any = false;
  for (int i = 0; i < s->tree->count; i++) {
    int tensor = s->tree->stages[i].tensor;
    if (s->stored[tensor]) any |= (s->layout[tensor] = prepare_layout_text(s->tree, i)) != NULL;
  }
  return any;
}

static void forget_layouts(struct splitter *s) {
  for (int i = 0; i < s->p->tensors.count; i++) {
    mem_free(s->layout[i]);
    s->layout[i] = NULL;
  }
}

canvas_status prepare_split(canvas_context *ctx, const struct loop_tree *tree,
                            struct prepared **out) {
  size_t count = (size_t)tree->program->tensors.count + 1;
  struct splitter s = {.tree = tree,
                       .p = tree->program,
                       .constant = mem_alloc(count),
                       .prepared = mem_alloc(count),
                       .stored = mem_alloc(count),
                       .read = mem_alloc(count),
                       .number = mem_alloc(count * sizeof(int)),
                       .layout = mem_alloc(count * sizeof(char *))};
  canvas_status status = CANVAS_OK;
  *out = NULL;
  if (!tree->open_holes && choose(&s)) {
    if (find_layouts(&s)) status = split(ctx, &s, out);
    forget_layouts(&s);
    if (status == CANVAS_OK && !*out) status = split(ctx, &s, out);
  }
  mem_free(s.constant);
  mem_free(s.prepared);
  mem_free(s.stored);
  mem_free(s.read);
  mem_free(s.number);
  mem_free(s.layout);
  return status;
}

static void free_part(struct prepared_part *part) {
  loop_tree_free(part->tree);
  program_free(part->program);
  mem_free(part->uses_input);
}

void prepare_free(struct prepared *prepared) {
  if (!prepared) return;
  free_part(&prepared->prepare);
  free_part(&prepared->rest);
  mem_free(prepared->offset);
  mem_free(prepared);
}
