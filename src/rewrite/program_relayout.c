/* Programs in other layouts. See program_relayout.h.
 *
 * Tensor by tensor: a stage gets the axes of its layout, its original axes become indices of those,
 * and each load of a tensor with a layout goes through layout_place. The builder simplifies the
 * indices.
 */
#include "rewrite/program_relayout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct relayout {
  const struct program *from;
  struct program *to;
  struct layout *layout; /* by tensor; without a scratch program: the tensor keeps its layout */
  int *number;           /* by tensor of `from`: its index in `to` */
};

static bool is_moved(const struct relayout *r, int tensor) {
  return r->layout[tensor].scratch != NULL;
}

/* ---- layouts --------------------------------------------------------------------------------- */

static canvas_status read_layout(canvas_context *ctx, struct relayout *r, int tensor,
                                 const char *text) {
  const struct program_tensor *t = &r->from->tensors.data[tensor];
  struct layout *l = &r->layout[tensor];
  struct lexer lx;
  TRY(lexer_open(&lx, ctx, text, strlen(text)));
  if (t->dtype == PROGRAM_I32)
    return lexer_fail(&lx, &lx.token, "'%.40s' holds indices, whose layout cannot change", t->name);
  TRY(layout_parse(&lx, r->from, tensor, l));
  int64_t places = 1;
  for (int i = 0; i < l->rank; i++) places *= l->sizes[i];
  if (places != program_elements(r->from, tensor))
    return fail(
        ctx, CANVAS_BAD_INPUT,
        "the layout '%.80s' of '%.40s' needs padding, split axes by divisors of their sizes", text,
        t->name);
  return CANVAS_OK;
}

/* ---- reductions over split axes
 * ---------------------------------------------------------------- */

/* The extent of the inner part, if the axis alone indexes a tensor axis that a layout splits; 0
 * otherwise. */
static int64_t block_of(const struct relayout *r, int expr, int axis) {
  if (expr < 0) return 0;
  const struct px_node *n = &r->from->nodes.data[expr];
  for (int i = 0; i < 3; i++) {
    int64_t block = block_of(r, n->arg[i], axis);
    if (block) return block;
  }
  if (n->op != PX_LOAD || !is_moved(r, n->tensor)) return 0;
  const struct layout *l = &r->layout[n->tensor];
  for (int d = 0; d < l->count; d++) {
    const struct px_node *index =
        &r->from->nodes.data[r->from->indices.data[n->first + l->digits[d].axis]];
    bool here = index->op == PX_AXIS && index->integer == axis;
    if (here && l->digits[d].weight > 1) return l->digits[d].weight;
  }
  return 0;
}

static const char *axis_name(struct relayout *r, int stage, const char *name, const char *suffix) {
  const struct program_tensor *t = &r->to->tensors.data[stage];
  char text[PROGRAM_NAME + 16];
  snprintf(text, sizeof text, "%.*s%s", PROGRAM_NAME - 12, name, suffix);
  for (int i = 0, number = 2; !r->to->failed && i < t->rank + t->reductions; i++)
    if (strcmp(t->axes[i].name, text) == 0) {
      snprintf(text, sizeof text, "%.*s%s%d", PROGRAM_NAME - 12, name, suffix, number++);
      i = -1;
    }
  return arena_strndup(&r->to->arena, text, strlen(text));
}

/* Adds reduction axis i of the stage, whole or split; returns its expression. */
static int add_reduction(struct relayout *r, int stage, int made, int i, const struct px_map *map) {
  const struct program_tensor *t = &r->from->tensors.data[stage];
  const struct program_axis *a = &t->axes[i];
  if (a->low >= 0) {
    int low = px_copy(r->to, r->from, a->low, map), high = px_copy(r->to, r->from, a->high, map);
    return program_reduce_range(r->to, made, t->reducer, axis_name(r, made, a->name, ""), low,
                                high);
  }
  int64_t block = block_of(r, t->body, i);
  if (!block || a->size % block || a->size == block || t->rank + t->reductions == PROGRAM_AXES)
    return program_reduce(r->to, made, t->reducer, axis_name(r, made, a->name, ""), a->size);
  int outer =
      program_reduce(r->to, made, t->reducer, axis_name(r, made, a->name, "_o"), a->size / block);
  int inner = program_reduce(r->to, made, t->reducer, axis_name(r, made, a->name, "_i"), block);
  return px_add(r->to, px_mul(r->to, outer, px_int(r->to, block)), inner);
}

/* ---- tensors
 * ----------------------------------------------------------------------------------- */

static int load_moved(struct program *to, int tensor, int rank, const int *indices, void *data) {
  const struct relayout *r = data;
  int places[PROGRAM_AXES];
  if (!is_moved(r, tensor)) return px_load(to, r->number[tensor], rank, indices);
  layout_place(&r->layout[tensor], to, indices, places);
  return px_load(to, r->number[tensor], r->layout[tensor].rank, places);
}

static int new_tensor(struct relayout *r, int tensor) {
  const struct program_tensor *t = &r->from->tensors.data[tensor];
  const struct layout *l = &r->layout[tensor];
  const char *names[PROGRAM_AXES];
  int64_t sizes[PROGRAM_AXES];
  int rank = is_moved(r, tensor) ? l->rank : t->rank;
  for (int i = 0; i < rank; i++) {
    names[i] = is_moved(r, tensor) ? l->names[i] : t->axes[i].name;
    sizes[i] = is_moved(r, tensor) ? l->sizes[i] : t->axes[i].size;
  }
  if (!t->is_input) return program_stage(r->to, t->name, t->dtype, rank, names, sizes);
  int made = program_input(r->to, t->name, t->dtype, rank, names, sizes);
  if (t->dtype == PROGRAM_I32) program_input_range(r->to, made, t->least, t->most, t->rising);
  if (t->constant) program_input_constant(r->to, made);
  return made;
}

static void define(struct relayout *r, int stage, int made) {
  const struct program_tensor *t = &r->from->tensors.data[stage];
  int own[PROGRAM_AXES], axis[PROGRAM_AXES];
  struct px_map map = {.axis = axis, .load = load_moved, .data = r};
  int rank = is_moved(r, stage) ? r->layout[stage].rank : t->rank;
  for (int i = 0; i < rank; i++) own[i] = program_axis(r->to, made, i);
  if (is_moved(r, stage))
    layout_element(&r->layout[stage], r->to, own, axis);
  else
    memcpy(axis, own, (size_t)rank * sizeof *own);
  for (int i = t->rank; i < t->rank + t->reductions; i++)
    axis[i] = add_reduction(r, stage, made, i, &map);
  program_define(r->to, made, px_copy(r->to, r->from, t->body, &map));
}

static void rebuild(struct relayout *r) {
  for (int i = 0; i < r->from->tensors.count && !r->to->failed; i++) {
    r->number[i] = new_tensor(r, i);
    if (!r->from->tensors.data[i].is_input && !r->to->failed) define(r, i, r->number[i]);
  }
  for (int i = 0; i < r->from->outputs.count && !r->to->failed; i++)
    program_output(r->to, r->number[r->from->outputs.data[i]]);
}

canvas_status program_relayout(canvas_context *ctx, const struct program *p,
                               const char *const *text, struct program **out) {
  size_t count = (size_t)p->tensors.count + 1;
  struct relayout r = {p, program_new(p->name), mem_alloc(count * sizeof *r.layout),
                       mem_alloc(count * sizeof *r.number)};
  canvas_status status = CANVAS_OK;
  r.to->winograd = p->winograd;
  for (int i = 0; i < p->tensors.count && status == CANVAS_OK; i++)
    if (text[i]) status = read_layout(ctx, &r, i, text[i]);
  if (status == CANVAS_OK) {
    rebuild(&r);
    status = program_verify(ctx, r.to);
  }
  for (int i = 0; i < p->tensors.count; i++) layout_free(&r.layout[i]);
  mem_free(r.layout);
  mem_free(r.number);
  *out = status == CANVAS_OK ? r.to : NULL;
  if (status != CANVAS_OK) program_free(r.to);
  return status;
}
