/* Builds a program anew with one change in it. See program_rebuild.h. Every load of the original
 * program goes through load_changed, which redirects it.
 *
 *     P[c:64, h:58] = if 1 <= h && h < 57 then X[c, h-1] else 0
 *     Y[k:32, h:56] = P[c, h+kh] * W[k, c, kh] // sum c:64, kh:3
 * `cache Y as YC` ->
 *     YC[k:32, h:56] = P[c, h+kh] * W[k, c, kh] // sum c:64, kh:3
 *     Y[k:32, h:56] = YC[k, h]
 * `cache P in Y as PC` ->
 *     PC[c:64, h:58] = P[c, h]
 *     Y[k:32, h:56] = PC[c, h+kh] * W[k, c, kh] // sum c:64, kh:3
 * `pack W as WP [k/16, c, kh, k%16]` ->
 *     WP[k_o:2, c:64, kh:3, k_i:16] = W[k_o*16+k_i, c, kh]
 *     Y[k:32, h:56] = P[c, h+kh] * WP[k/16, c, kh, k%16] // sum c:64, kh:3
 * `inline P` ->
 *     Y[k:32, h:56] = (if 1 <= h+kh && h+kh < 57 then X[c, h+kh-1] else 0) * W[k, c, kh]
 *                     // sum c:64, kh:3         (one line in a file)
 * `rfactor Y c 16 as YP` -> vector lanes can run along c_i
 *     YP[k:32, h:56, c_i:16] = P[c_o*16+c_i, h+kh] * W[k, c_o*16+c_i, kh] // sum c_o:4, kh:3
 *     Y[k:32, h:56] = YP[k, h, c_i] // sum c_i:16
 * `rfactor M i of g as MP`, where i counts the channels of group g -> one sum per channel
 *     M[g:32] = X[g*2+i, h] // sum i:2, h:56
 *     ->
 *     MP[g_i:64] = X[g_i, h] // sum h:56
 *     M[g:32] = MP[g*2+i] // sum i:2
 * `overlap P in Y h 8 as PO` -> rows that two tiles read are stored in both
 *     PO[h_o:7, c:64, h_i:10] = if 1 <= h_o*8+h_i && h_o*8+h_i < 57 then X[c, h_o*8+h_i-1] else 0
 *     Y[k:32, h:56] = PO[h/8, c, h%8+kh] * W[k, c, kh] // sum c:64, kh:3
 * `turn P c as PT` ->
 *     PT[h:58, c:64] = if 1 <= h && h < 57 then X[c, h-1] else 0
 *     Y[k:32, h:56] = PT[h+kh, c] * W[k, c, kh] // sum c:64, kh:3
 */
#include "rewrite/program_rebuild.h"

#include "program/affine.h"
#include "program/program_facts.h"
#include "rewrite/program_edit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct change change_open(enum change_kind kind, const struct program *from) {
  size_t count = (size_t)from->tensors.count;
  struct program *to = program_new(from->name);
  to->winograd = from->winograd;
  return (struct change){.kind = kind,
                         .from = from,
                         .to = to,
                         .inlined = mem_alloc(count * sizeof(bool)),
                         .number = mem_alloc(count * sizeof(int)),
                         .group = -1,
                         .new_stage = -1};
}

void change_close(struct change *c) {
  layout_free(&c->layout);
  mem_free(c->inlined);
  mem_free(c->number);
  mem_free(c->winograd);
}

/* ---- legality
 * --------------------------------------------------------------------------------- */

/* Whether the tensor is loaded once, by a stage that copies it. */
static bool is_copied_once(const struct program *p, int tensor) {
  int loads = 0, copies = 0;
  for (int i = tensor + 1; i < p->tensors.count; i++) {
    loads += stage_loads(p, i, tensor);
    copies += copied_tensor(p, i) == tensor;
  }
  return loads == 1 && copies == 1;
}

/* Whether inlining would compute an f64 value in a consumer of lower precision. */
static bool loses_digits(const struct program *p, int tensor) {
  if (p->tensors.data[tensor].dtype != PROGRAM_F64 || is_data_movement(p, tensor)) return false;
  for (int i = tensor + 1; i < p->tensors.count; i++)
    if (p->tensors.data[i].dtype != PROGRAM_F64 && stage_loads(p, i, tensor)) return true;
  return false;
}

const char *not_inlined(const struct program *p, int tensor) {
  const struct program_tensor *t = &p->tensors.data[tensor];
  if (t->is_input) return "is an input, it has no expression";
  if (t->dtype == PROGRAM_BF16) return "is of bf16, which rounds where it is stored";
  if (loses_digits(p, tensor)) return "is of f64, and a stage of lower precision loads it";
  if (is_output(p, tensor)) return "is an output, it has to be stored";
  if (t->reductions && !is_copied_once(p, tensor))
    return "reduces: it can only be inlined into a stage that does nothing but copy it";
  return NULL;
}

static bool has_bounds(const struct program_tensor *t) {
  for (int i = t->rank; i < t->rank + t->reductions; i++)
    if (t->axes[i].low >= 0) return true;
  return false;
}

const char *not_rfactored(const struct program *p, int tensor, int axis, int64_t lanes) {
  const struct program_tensor *t = &p->tensors.data[tensor];
  if (t->axes[axis].low >= 0) return "has bounds that depend on data";
  if (has_bounds(t) && t->reducer == REDUCE_MEAN)
    return "belongs to a mean over a number of points that depends on data";
  if (has_bounds(t) && t->axes[axis].size % lanes)
    return "stands beside an axis with bounds that depend on data: choose a divisor of its size";
  return NULL;
}

/* The index is group*size + axis, plus what depends on neither. */
static bool is_element_of_group(const struct program *p, int index, int axis, int group,
                                int64_t size) {
  struct affine a;
  int64_t step, group_step;
  return affine_of(p, index, &a) && affine_stride(p, &a, axis, &step) &&
         affine_stride(p, &a, group, &group_step) && step == 1 && group_step == size;
}

/* Each index that depends on the axis is an element of a group. */
static bool has_only_groups(const struct program *p, int expr, int axis, int group, int64_t size) {
  const struct px_node *n = &p->nodes.data[expr];
  if (!px_mentions(p, expr, axis)) return true;
  if (n->sort == PX_INDEX) return is_element_of_group(p, expr, axis, group, size);
  for (int i = 0; i < PX_ARGS; i++)
    if (n->arg[i] >= 0 && !has_only_groups(p, n->arg[i], axis, group, size)) return false;
  for (int i = 0; n->op == PX_LOAD && i < p->tensors.data[n->tensor].rank; i++)
    if (!has_only_groups(p, p->indices.data[n->first + i], axis, group, size)) return false;
  return true;
}

const char *not_grouped(const struct program *p, int tensor, int axis, int group) {
  const struct program_tensor *t = &p->tensors.data[tensor];
  int64_t size = t->axes[axis].size;
  if (has_bounds(t)) return "belongs to a reduction with bounds that depend on data";
  if (t->reductions < 2) return "is the only reduction";
  if (!px_mentions(p, t->body, axis) || !has_only_groups(p, t->body, axis, group, size))
    return "does not count the elements of groups along that axis";
  return NULL;
}

/* ---- redirected loads ----------------------------------------------------------------------- */

/* Edit `overlap`: P[y+k]  ->  PO[y/8, y%8+k] */
static int load_tile(const struct change *c, struct program *to, int rank, const int *indices) {
  const struct window *w = &c->window;
  int place[PROGRAM_AXES + 1], axis = indices[w->axis], tile = px_int(to, w->tile), y = -1;
  struct affine a;
  memcpy(place + 1, indices, (size_t)rank * sizeof *place);
  if (to->failed || !affine_of(to, axis, &a)) return px_load(to, c->new_stage, rank + 1, place);
  for (int i = a.count - 1; i >= 0; i--) {
    const struct px_node *n = &to->nodes.data[a.term[i].expr];
    if (n->op != PX_AXIS || n->integer != w->own) continue;
    y = a.term[i].expr;
    affine_drop(&a, i);
  }
  a.constant -= w->low;
  int inner = px_mul(to, px_mod(to, y, tile), px_int(to, w->step));
  place[0] = px_div(to, y, tile);
  place[1 + w->axis] = px_add(to, inner, affine_expr(to, &a));
  return px_load(to, c->new_stage, rank + 1, place);
}

/* The position of an axis after axis `last` has become the innermost. */
static int transposed_place(int axis, int rank, int last) {
  return axis == last ? rank - 1 : axis - (axis > last);
}

static int load_transposed(const struct change *c, struct program *to, int rank,
                           const int *indices) {
  int places[PROGRAM_AXES];
  for (int i = 0; i < rank; i++) places[transposed_place(i, rank, c->axis)] = indices[i];
  return px_load(to, c->new_stage, rank, places);
}

/* Builds a load of `from` whose indices are already copied. */
static int load_changed(struct program *to, int tensor, int rank, const int *indices, void *data) {
  struct change *c = data;
  int places[PROGRAM_AXES];
  if (c->inlined[tensor]) {
    struct px_map map = {.axis = indices, .load = load_changed, .data = data};
    return px_copy(to, c->from, c->from->tensors.data[tensor].body, &map);
  }
  if (tensor != c->tensor || !c->redirected) return px_load(to, c->number[tensor], rank, indices);
  if (c->kind == CHANGE_CACHE_READ) return px_load(to, c->new_stage, rank, indices);
  if (c->kind == CHANGE_OVERLAP) return load_tile(c, to, rank, indices);
  if (c->kind == CHANGE_TRANSPOSE) return load_transposed(c, to, rank, indices);
  layout_place(&c->layout, to, indices, places);
  return px_load(to, c->new_stage, c->layout.rank, places);
}

static int new_tensor(struct change *c, const struct program_tensor *t, const char *name,
                      bool is_input, enum program_dtype dtype) {
  const char *names[PROGRAM_AXES];
  int64_t sizes[PROGRAM_AXES];
  for (int i = 0; i < t->rank; i++) {
    names[i] = t->axes[i].name;
    sizes[i] = t->axes[i].size;
  }
  if (!is_input) return program_stage(c->to, name, dtype, t->rank, names, sizes);
  int made = program_input(c->to, name, dtype, t->rank, names, sizes);
  if (dtype == PROGRAM_I32) program_input_range(c->to, made, t->least, t->most, t->rising);
  if (t->constant) program_input_constant(c->to, made);
  return made;
}

/* The name, with a number appended if an axis of the stage has it already. */
static const char *free_axis_name(struct change *c, int stage, const char *name) {
  const struct program_tensor *t = &c->to->tensors.data[stage];
  char other[PROGRAM_NAME + 16];
  snprintf(other, sizeof other, "%s", name);
  for (int i = 0, number = 2; i < t->rank + t->reductions; i++)
    if (same_name(t->axes[i].name, other)) {
      snprintf(other, sizeof other, "%.*s%d", PROGRAM_NAME - 3, name, number++);
      i = -1;
    }
  return arena_strndup(&c->to->arena, other, strlen(other));
}

/* Adds a reduction axis like axis `a` of a stage of `from` to stage `made`. */
static int copy_reduction(struct change *c, int made, enum program_reducer reducer,
                          const struct program_axis *a, const struct px_map *map) {
  const char *name = c->to->failed ? a->name : free_axis_name(c, made, a->name);
  if (a->low < 0) return program_reduce(c->to, made, reducer, name, a->size);
  int low = px_copy(c->to, c->from, a->low, map), high = px_copy(c->to, c->from, a->high, map);
  return program_reduce_range(c->to, made, reducer, name, low, high);
}

static bool outlines(const struct change *c) {
  return c->kind == CHANGE_OUTLINE || c->kind == CHANGE_RECIPROCAL;
}

/* Defines stage `made` as `stage` of `from`, whose own axes become the expressions `own`. */
static void define_as(struct change *c, int made, int stage, const int *own, bool verbatim) {
  const struct program_tensor *t = &c->from->tensors.data[stage];
  int axis[PROGRAM_AXES], indices[PROGRAM_AXES], copied = copied_tensor(c->from, stage);
  struct px_map map = {.axis = axis, .load = load_changed, .data = c, .verbatim = verbatim};
  memcpy(axis, own, (size_t)t->rank * sizeof *axis);
  if (copied >= 0 && c->inlined[copied]) {
    const struct px_node *n = &c->from->nodes.data[t->body];
    for (int i = 0; i < c->from->tensors.data[copied].rank; i++)
      indices[i] = px_copy(c->to, c->from, c->from->indices.data[n->first + i], &map);
    define_as(c, made, copied, indices, false);
    return;
  }
  for (int i = t->rank; i < t->rank + t->reductions; i++)
    axis[i] = copy_reduction(c, made, t->reducer, &t->axes[i], &map);
  if (outlines(c) && stage == c->consumer) {
    map.replaced_node = c->node + 1;
    map.replacement = outline_load(c, axis);
    map.divisors_only = c->kind == CHANGE_RECIPROCAL;
  }
  if (c->kind == CHANGE_STRAIGHT && stage == c->consumer) {
    map.replacement = piecewise_load(c, &map);
    map.replaced_node = c->node + 1;
  }
  int body = px_copy(c->to, c->from, t->body, &map);
  if (c->kind == CHANGE_BORDER && stage == c->tensor)
    body = sink_products(c->to, body, c->name ? padding_load(c, axis) : -1);
  program_define(c->to, made, body);
}

/* ---- rfactor: partial reductions ---- */

static double neutral(enum program_reducer reducer) {
  switch (reducer) {
    case REDUCE_MAX: return -HUGE_VAL;
    case REDUCE_MIN: return HUGE_VAL;
    case REDUCE_PROD: return 1;
    default: return 0;
  }
}

/* The name k_i for a part of axis k, with the suffix repeated until no axis of the stage has it. */
static const char *axis_part(struct change *c, const struct program_tensor *t, int axis,
                             const char *suffix) {
  char name[2 * PROGRAM_NAME];
  snprintf(name, sizeof name, "%s_%s", t->axes[axis].name, suffix);
  for (int i = 0; i < t->rank + t->reductions; i++)
    if (same_name(t->axes[i].name, name)) {
      snprintf(name + strlen(name), sizeof name - strlen(name), "%s", suffix);
      i = -1;
    }
  return arena_strndup(&c->to->arena, name, strlen(name));
}

static const char *part_name(struct change *c, const char *suffix) {
  return axis_part(c, &c->from->tensors.data[c->tensor], c->axis, suffix);
}

/* Whether all partial reductions have the same number of points: only then is the mean of means the
 * mean. */
static bool is_even(const struct change *c) {
  return c->from->tensors.data[c->tensor].axes[c->axis].size % c->lanes == 0;
}

/* Builds SP[..., k_i:16] = f(..., k_o*16+k_i) // sum k_o:6, with a guard where k overshoots. */
static int partial_stage(struct change *c) {
  const struct program_tensor *t = &c->from->tensors.data[c->tensor];
  const struct program_axis *k = &t->axes[c->axis];
  const char *names[PROGRAM_AXES + 1];
  int64_t sizes[PROGRAM_AXES + 1];
  int axis[PROGRAM_AXES];
  struct px_map map = {.axis = axis, .load = load_changed, .data = c, .verbatim = true};
  enum program_reducer reducer = t->reducer == REDUCE_MEAN && !is_even(c) ? REDUCE_SUM : t->reducer;
  for (int i = 0; i < t->rank; i++) {
    names[i] = t->axes[i].name;
    sizes[i] = t->axes[i].size;
  }
  names[t->rank] = part_name(c, "i");
  sizes[t->rank] = c->lanes;
  enum program_dtype dtype = t->dtype == PROGRAM_BF16 ? PROGRAM_F32 : t->dtype;
  int made = program_stage(c->to, c->name, dtype, t->rank + 1, names, sizes);
  for (int i = 0; i < t->rank; i++) axis[i] = program_axis(c->to, made, i);
  int inside = px_bool(c->to, true);
  for (int i = t->rank; i < t->rank + t->reductions; i++) {
    if (i != c->axis) {
      axis[i] = copy_reduction(c, made, reducer, &t->axes[i], &map);
      continue;
    }
    int lane = program_axis(c->to, made, t->rank);
    int outer =
        program_reduce(c->to, made, reducer, part_name(c, "o"), (k->size - 1) / c->lanes + 1);
    axis[i] = px_add(c->to, px_mul(c->to, outer, px_int(c->to, c->lanes)), lane);
    inside = px_compare(c->to, PX_LT, axis[i], px_int(c->to, k->size));
  }
  map.verbatim = false;
  int body = px_copy(c->to, c->from, t->body, &map);
  program_define(c->to, made,
                 px_select(c->to, inside, body, px_number(c->to, neutral(t->reducer))));
  return made;
}

/* Builds SP[..., g_i:64] = f(g_i/2, g_i%2) // sum h:56. */
static int grouped_stage(struct change *c) {
  const struct program_tensor *t = &c->from->tensors.data[c->tensor];
  const char *names[PROGRAM_AXES];
  int64_t sizes[PROGRAM_AXES];
  int axis[PROGRAM_AXES];
  struct px_map map = {.axis = axis, .load = load_changed, .data = c};
  for (int i = 0; i < t->rank; i++) {
    names[i] = i == c->group ? axis_part(c, t, i, "i") : t->axes[i].name;
    sizes[i] = t->axes[i].size * (i == c->group ? c->lanes : 1);
  }
  enum program_dtype dtype = t->dtype == PROGRAM_BF16 ? PROGRAM_F32 : t->dtype;
  int made = program_stage(c->to, c->name, dtype, t->rank, names, sizes);
  for (int i = 0; i < t->rank; i++) axis[i] = program_axis(c->to, made, i);
  int element = axis[c->group], size = px_int(c->to, c->lanes);
  axis[c->group] = px_div(c->to, element, size);
  axis[c->axis] = px_mod(c->to, element, size);
  for (int i = t->rank; i < t->rank + t->reductions; i++)
    if (i != c->axis) axis[i] = copy_reduction(c, made, t->reducer, &t->axes[i], &map);
  program_define(c->to, made, px_copy(c->to, c->from, t->body, &map));
  return made;
}

/* Builds S[..., g] = SP[..., g*2+i] // sum i:2. */
static int group_sums(struct change *c, const char *name, int partial) {
  const struct program_tensor *t = &c->from->tensors.data[c->tensor];
  int axis[PROGRAM_AXES], made = new_tensor(c, t, name, false, t->dtype);
  for (int i = 0; i < t->rank; i++) axis[i] = program_axis(c->to, made, i);
  int within = program_reduce(c->to, made, t->reducer, t->axes[c->axis].name, c->lanes);
  int first = px_mul(c->to, axis[c->group], px_int(c->to, c->lanes));
  axis[c->group] = px_add(c->to, first, within);
  program_define(c->to, made, px_load(c->to, partial, t->rank, axis));
  return made;
}

/* Builds S[...] = SP[..., k_i] // sum k_i:16. */
static int final_stage(struct change *c, const char *name, int partial) {
  const struct program_tensor *t = &c->from->tensors.data[c->tensor];
  enum program_reducer reducer = t->reducer == REDUCE_MEAN && !is_even(c) ? REDUCE_SUM : t->reducer;
  int axis[PROGRAM_AXES + 1], made = new_tensor(c, t, name, false, t->dtype);
  double points = 1;
  for (int i = 0; i < t->rank; i++) axis[i] = program_axis(c->to, made, i);
  for (int i = t->rank; i < t->rank + t->reductions; i++) points *= (double)t->axes[i].size;
  axis[t->rank] = program_reduce(c->to, made, reducer, part_name(c, "i"), c->lanes);
  int body = px_load(c->to, partial, t->rank + 1, axis);
  if (reducer != t->reducer) body = px_div(c->to, body, px_number(c->to, points));
  program_define(c->to, made, body);
  return made;
}

/* Copies tensor `tensor` of `from` to `to` under this name. */
static int copy_tensor(struct change *c, int tensor, const char *name) {
  const struct program_tensor *t = &c->from->tensors.data[tensor];
  bool retyped = c->kind == CHANGE_TYPE && tensor == c->tensor;
  int own[PROGRAM_AXES], made = new_tensor(c, t, name, t->is_input, retyped ? c->type : t->dtype);
  if (t->is_input) return made;
  for (int i = 0; i < t->rank; i++) own[i] = program_axis(c->to, made, i);
  define_as(c, made, tensor, own, true);
  return made;
}

/* Adds a stage with the axes of tensor `like` of `from` that copies `source`, a tensor of `to`. */
static int copying_stage(struct change *c, int like, const char *name, int source) {
  const struct program_tensor *t = &c->from->tensors.data[like];
  int axis[PROGRAM_AXES], made = new_tensor(c, t, name, false, t->dtype);
  for (int i = 0; i < t->rank; i++) axis[i] = program_axis(c->to, made, i);
  program_define(c->to, made, px_load(c->to, source, t->rank, axis));
  return made;
}

static int packed_stage(struct change *c) {
  const struct layout *l = &c->layout;
  const struct program_tensor *t = &c->from->tensors.data[c->tensor];
  int made = program_stage(c->to, c->name, t->dtype, l->rank, l->names, l->sizes);
  int axis[PROGRAM_AXES], indices[PROGRAM_AXES];
  for (int i = 0; i < l->rank; i++) axis[i] = program_axis(c->to, made, i);
  int inside = layout_element(l, c->to, axis, indices);
  int element = px_load(c->to, c->number[c->tensor], t->rank, indices);
  program_define(c->to, made, px_select(c->to, inside, element, px_number(c->to, 0)));
  return made;
}

/* Edit `turn`: the stage with c->axis as the innermost axis. */
static int transposed_stage(struct change *c) {
  const struct program_tensor *t = &c->from->tensors.data[c->tensor];
  const char *names[PROGRAM_AXES];
  int64_t sizes[PROGRAM_AXES];
  int axis[PROGRAM_AXES];
  struct px_map map = {.axis = axis, .load = load_changed, .data = c};
  for (int i = 0; i < t->rank; i++) {
    int place = transposed_place(i, t->rank, c->axis);
    names[place] = t->axes[i].name;
    sizes[place] = t->axes[i].size;
  }
  int made = program_stage(c->to, c->name, t->dtype, t->rank, names, sizes);
  for (int i = 0; i < t->rank; i++)
    axis[i] = program_axis(c->to, made, transposed_place(i, t->rank, c->axis));
  program_define(c->to, made, px_copy(c->to, c->from, t->body, &map));
  return made;
}

/* Edit `overlap`: PO[h_o:7, h_i:10, w:56] = P at h = h_o*8+h_i, and 0 outside P. */
static int overlap_stage(struct change *c) {
  const struct program_tensor *t = &c->from->tensors.data[c->tensor];
  const struct window *w = &c->window;
  int64_t size = c->from->tensors.data[c->consumer].axes[w->own].size;
  const char *names[PROGRAM_AXES + 1];
  int64_t sizes[PROGRAM_AXES + 1];
  int axis[PROGRAM_AXES];
  struct px_map map = {.axis = axis, .load = load_changed, .data = c, .verbatim = true};
  names[0] = axis_part(c, t, w->axis, "o");
  sizes[0] = (size - 1) / w->tile + 1;
  for (int i = 0; i < t->rank; i++) {
    names[1 + i] = i == w->axis ? axis_part(c, t, i, "i") : t->axes[i].name;
    sizes[1 + i] = i == w->axis ? w->step * (w->tile - 1) + w->more + 1 : t->axes[i].size;
  }
  int made = program_stage(c->to, c->name, t->dtype, t->rank + 1, names, sizes);
  for (int i = 0; i < t->rank; i++) axis[i] = program_axis(c->to, made, i + 1);
  int begin = px_mul(c->to, program_axis(c->to, made, 0), px_int(c->to, w->step * w->tile));
  int at = px_add(c->to, px_add(c->to, begin, axis[w->axis]), px_int(c->to, w->low));
  int inside = px_inside(c->to, at, 0, t->axes[w->axis].size);
  axis[w->axis] = at;
  for (int i = t->rank; i < t->rank + t->reductions; i++)
    axis[i] = copy_reduction(c, made, t->reducer, &t->axes[i], &map);
  map.verbatim = false;
  int body = t->is_input ? px_load(c->to, c->number[c->tensor], t->rank, axis)
                         : px_copy(c->to, c->from, t->body, &map);
  program_define(c->to, made, px_select(c->to, inside, body, px_number(c->to, 0)));
  return made;
}

/* Adds the stage that tensor i of `from` will load, if the edit puts one before it. */
static void begin_tensor(struct change *c, int i) {
  if (c->kind == CHANGE_CACHE_READ && i == c->consumer)
    c->new_stage = copying_stage(c, c->tensor, c->name, c->number[c->tensor]);
  bool laid_out = c->kind == CHANGE_PACK || c->kind == CHANGE_TRANSPOSE;
  if (laid_out && c->new_stage < 0 && stage_loads(c->from, i, c->tensor))
    c->new_stage = c->kind == CHANGE_PACK ? packed_stage(c) : transposed_stage(c);
  struct px_map map = {.load = load_changed, .data = c};
  if (outlines(c) && i == c->consumer) c->new_stage = outline_stage(c, &map);
  if (c->kind == CHANGE_OVERLAP && i == c->consumer) c->new_stage = overlap_stage(c);
  if (c->kind == CHANGE_BORDER && c->name && i == c->tensor) c->new_stage = padding_stage(c, &map);
  bool one = c->kind == CHANGE_CACHE_READ || c->kind == CHANGE_OVERLAP;
  c->redirected = one ? i == c->consumer : c->new_stage >= 0 && c->kind != CHANGE_BORDER;
}

void program_rebuild(struct change *c) {
  const struct px_map map = {.load = load_changed, .data = c};
  for (int i = 0; i < c->from->tensors.count && !c->to->failed; i++) {
    const char *name = c->from->tensors.data[i].name;
    begin_tensor(c, i);
    bool replaced = c->kind == CHANGE_TRANSPOSE ||
                    (c->kind == CHANGE_OVERLAP && is_only_consumer(c->from, i, c->consumer));
    if (c->inlined[i] || (i == c->tensor && replaced)) continue;
    if (c->kind == CHANGE_CACHE_WRITE && i == c->tensor)
      c->number[i] = copying_stage(c, i, name, copy_tensor(c, i, c->name));
    else if (c->kind == CHANGE_RFACTOR && i == c->tensor)
      c->number[i] = c->group < 0 ? final_stage(c, name, partial_stage(c))
                                  : group_sums(c, name, grouped_stage(c));
    else if (c->kind == CHANGE_WINOGRAD && c->winograd[i].tile)
      c->number[i] = winograd_stages(c, i, &map);
    else
      c->number[i] = copy_tensor(c, i, name);
  }
  for (int i = 0; i < c->from->outputs.count; i++)
    program_output(c->to, c->number[c->from->outputs.data[i]]);
}

/* Makes an edit of the whole program, which other files do. */
static struct program *edit_whole(struct change *c) {
  program_free(c->to);
  c->to = c->edit_whole(c->from);
  change_close(c);
  return c->to;
}

struct program *change_make(struct change *c) {
  struct buf text = {0};
  if (c->kind == CHANGE_WHOLE) return edit_whole(c);
  program_rebuild(c);
  if (!c->text) change_print(c, &text);
  program_note_edit(c->to, c->from, c->text ? c->text : text.text);
  buf_free(&text);
  change_close(c);
  return c->to;
}

canvas_status change_finish(canvas_context *ctx, struct change *c, struct program **out) {
  *out = change_make(c);
  if (!*out) return fail(ctx, CANVAS_BAD_INPUT, "the edit changes nothing in the program");
  canvas_status status = program_verify(ctx, *out);
  if (status == CANVAS_OK) return status;
  program_free(*out);
  *out = NULL;
  return status;
}
