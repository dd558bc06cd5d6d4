/* The edit `merge axes`: fuses two axes that are adjacent wherever they occur, such as the rows and
 * columns of an image under a 1x1 convolution. Tensors have fewer axes; their memory layout stays
 * the same.
 *
 *     in X f32 [n:1, ci:64, h:57, w:57]
 *     Y[n:1, co:96, h:57, w:57] = X[n, ci, h+kh, w+kw] * W[co, ci, kh, kw] // sum ci:64, kh:1, kw:1
 * ->
 *     in X f32 [n:1, ci:64, h_w:3249]
 *     Y[n:1, co:96, h_w:3249] = X[n, ci, h_w] * W[co, ci, 0, 0] // sum ci:64, kh:1, kw:1
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/affine.h"
#include "rewrite/program_edit.h"

struct merge {
  const struct program *from;
  struct program *to;
  uint32_t *pair; /* by tensor: bit i: axes i and i + 1 are fused */
  int pairs;      /* set bits of all tensors */
};

static const struct program_tensor *tensor_at(const struct merge *m, int tensor) {
  return &m->from->tensors.data[tensor];
}

/* ---- which axes ------------------------------------------------------------------------------ */

/* A reduction axis of size 1, whose value is always 0. */
static bool is_unit(const struct program_tensor *t, int axis) {
  return axis >= t->rank && t->axes[axis].size == 1 && t->axes[axis].low < 0;
}

/* The axis that an index consists of, apart from unit reductions; -1 if it is anything else. */
static int plain_axis(const struct merge *m, const struct program_tensor *t, int index) {
  struct affine a;
  int axis = -1;
  if (!affine_of(m->from, index, &a) || a.constant) return -1;
  for (int i = 0; i < a.count; i++) {
    const struct px_node *n = &m->from->nodes.data[a.term[i].expr];
    if (n->op != PX_AXIS) return -1;
    if (is_unit(t, (int)n->integer)) continue;
    if (axis >= 0 || a.term[i].coef != 1) return -1;
    axis = (int)n->integer;
  }
  return axis;
}

/* Whether axis and axis + 1 can be fused: both longer than 1, both own axes or both reductions,
 * without data-dependent bounds. */
static bool may_pair(const struct program_tensor *t, int axis) {
  if (axis + 1 >= t->rank + t->reductions || axis + 1 == t->rank || t->dtype == PROGRAM_I32)
    return false;
  const struct program_axis *a = &t->axes[axis], *b = &t->axes[axis + 1];
  return a->low < 0 && b->low < 0 && a->size > 1 && b->size > 1 &&
         a->size <= PROGRAM_ELEMENTS / b->size;
}

/* Marks a pair; false if the axes cannot be fused. No axis is in two pairs: three axes are fused in
 * two rounds. The batch, the first axis of the first output, stays: tuning uses programs for fewer
 * images (fewer_images.h). */
static bool add_pair(struct merge *m, int tensor, int axis) {
  uint32_t *pair = &m->pair[tensor], beside = 2u << axis | (1u << axis) >> 1;
  if (*pair >> axis & 1) return true;
  if (axis == 0 && tensor == m->from->outputs.data[0]) return false;
  if (!may_pair(tensor_at(m, tensor), axis) || *pair & beside) return false;
  *pair |= 1u << axis;
  m->pairs++;
  return true;
}

/* Whether a stage uses the two axes of each pair only as adjacent indices of a load. Marks the
 * pairs of the loaded tensors that follow from this. */
static bool agrees(struct merge *m, int stage, int expr);

static bool load_agrees(struct merge *m, int stage, const struct px_node *load) {
  const struct program_tensor *t = tensor_at(m, stage), *from = tensor_at(m, load->tensor);
  const int *index = m->from->indices.data + load->first;
  for (int i = 0; i < from->rank; i++) {
    int a = plain_axis(m, t, index[i]);
    bool paired = (a >= 0 && m->pair[stage] >> a & 1) || m->pair[load->tensor] >> i & 1;
    if (!paired && !agrees(m, stage, index[i])) return false;
    if (!paired) continue;
    bool beside = a >= 0 && i + 1 < from->rank && plain_axis(m, t, index[i + 1]) == a + 1 &&
                  from->axes[i + 1].size == t->axes[a + 1].size;
    if (!beside || !add_pair(m, stage, a) || !add_pair(m, load->tensor, i)) return false;
    i++;
  }
  return true;
}

static bool agrees(struct merge *m, int stage, int expr) {
  if (expr < 0) return true;
  const struct px_node *n = &m->from->nodes.data[expr];
  uint32_t pair = m->pair[stage];
  if (n->op == PX_AXIS) return !((pair | pair << 1) >> n->integer & 1);
  if (n->op == PX_LOAD) return load_agrees(m, stage, n);
  for (int i = 0; i < 3; i++)
    if (!agrees(m, stage, n->arg[i])) return false;
  return true;
}

static bool stage_agrees(struct merge *m, int stage) {
  const struct program_tensor *t = tensor_at(m, stage);
  for (int i = t->rank; i < t->rank + t->reductions; i++)
    if (!agrees(m, stage, t->axes[i].low) || !agrees(m, stage, t->axes[i].high)) return false;
  return agrees(m, stage, t->body);
}

/* Repeats until no stage adds a pair; false if a stage cannot fuse its axes. */
static bool all_agree(struct merge *m) {
  for (int before = -1; before < m->pairs;) {
    before = m->pairs;
    for (int i = 0; i < m->from->tensors.count; i++)
      if (!tensor_at(m, i)->is_input && !stage_agrees(m, i)) return false;
  }
  return true;
}

static void find_pairs(struct merge *m) {
  size_t size = (size_t)m->from->tensors.count * sizeof *m->pair;
  uint32_t *before = mem_alloc(size + 1);
  for (int i = 0; i < m->from->tensors.count; i++) {
    const struct program_tensor *t = tensor_at(m, i);
    for (int axis = 0; !t->is_input && axis + 1 < t->rank + t->reductions; axis++) {
      int pairs = m->pairs;
      memcpy(before, m->pair, size);
      if (m->pair[i] >> axis & 1 || (add_pair(m, i, axis) && all_agree(m))) continue;
      memcpy(m->pair, before, size);
      m->pairs = pairs;
    }
  }
  mem_free(before);
}

/* ---- the program with fused axes ------------------------------------------------------------- */

/* The name h_w for h and w, with `_` appended until no axis of the tensor has it. */
static void merged_name(const struct program_tensor *t, int axis, char name[PROGRAM_NAME]) {
  const char *a = t->axes[axis].name, *b = t->axes[axis + 1].name;
  char joined[2 * PROGRAM_NAME + 2];
  snprintf(joined, sizeof joined, "%s_%s", a, b);
  snprintf(name, PROGRAM_NAME, "%.*s", PROGRAM_NAME / 2, joined);
  for (int i = 0; i < t->rank + t->reductions; i++)
    if (strcmp(t->axes[i].name, name) == 0) {
      snprintf(name + strlen(name), PROGRAM_NAME - strlen(name), "_");
      i = -1;
    }
}

/* The axes [first, end) of a tensor after fusion. */
struct merged_axes {
  int count;
  char name[PROGRAM_AXES][PROGRAM_NAME];
  const char *names[PROGRAM_AXES];
  int64_t size[PROGRAM_AXES];
};

static void merged_axes(const struct merge *m, int tensor, int first, int end,
                        struct merged_axes *out) {
  const struct program_tensor *t = tensor_at(m, tensor);
  out->count = 0;
  for (int i = first; i < end; i++) {
    int at = out->count++;
    bool pair = m->pair[tensor] >> i & 1;
    out->names[at] = pair ? out->name[at] : t->axes[i].name;
    out->size[at] = pair ? t->axes[i].size * t->axes[i + 1].size : t->axes[i].size;
    if (pair) merged_name(t, i++, out->name[at]);
  }
}

/* Sets the expressions of axis `first` and, if fused, of the next one, in terms of the new axis
 * `whole`. Returns the axis after them. */
static int set_axes(const struct merge *m, int stage, int first, int whole, int *axis) {
  const struct program_tensor *t = tensor_at(m, stage);
  bool pair = m->pair[stage] >> first & 1;
  axis[first] = is_unit(t, first) ? px_int(m->to, 0) : whole;
  if (!pair) return first + 1;
  int size = px_int(m->to, t->axes[first + 1].size);
  axis[first] = px_div(m->to, whole, size);
  axis[first + 1] = px_mod(m->to, whole, size);
  return first + 2;
}

/* Builds a load of `from` whose indices are already copied. */
static int load_merged(struct program *to, int tensor, int rank, const int *indices, void *data) {
  const struct merge *m = data;
  int places[PROGRAM_AXES], count = 0;
  for (int i = 0; i < rank; i++) {
    int place = indices[i];
    if (m->pair[tensor] >> i & 1) {
      int size = px_int(to, tensor_at(m, tensor)->axes[i + 1].size);
      place = px_add(to, px_mul(to, place, size), indices[i + 1]);
      i++;
    }
    places[count++] = place;
  }
  return px_load(to, tensor, count, places);
}

static void put_input(struct merge *m, int tensor) {
  const struct program_tensor *t = tensor_at(m, tensor);
  struct merged_axes a;
  merged_axes(m, tensor, 0, t->rank, &a);
  int made = program_input(m->to, t->name, t->dtype, a.count, a.names, a.size);
  if (t->dtype == PROGRAM_I32) program_input_range(m->to, made, t->least, t->most, t->rising);
  if (t->constant) program_input_constant(m->to, made);
}

static void put_stage(struct merge *m, int stage) {
  const struct program_tensor *t = tensor_at(m, stage);
  struct merged_axes a;
  int axis[PROGRAM_AXES], at = 0;
  const struct px_map map = {.axis = axis, .load = load_merged, .data = m};
  merged_axes(m, stage, 0, t->rank, &a);
  int made = program_stage(m->to, t->name, t->dtype, a.count, a.names, a.size);
  for (int i = 0; i < a.count; i++) at = set_axes(m, stage, at, program_axis(m->to, made, i), axis);
  merged_axes(m, stage, t->rank, t->rank + t->reductions, &a);
  for (int i = 0; i < a.count; i++) {
    const struct program_axis *from = &t->axes[at];
    int whole = from->low < 0 ? program_reduce(m->to, made, t->reducer, a.names[i], a.size[i])
                              : program_reduce_range(m->to, made, t->reducer, a.names[i],
                                                     px_copy(m->to, m->from, from->low, &map),
                                                     px_copy(m->to, m->from, from->high, &map));
    at = set_axes(m, stage, at, whole, axis);
  }
  program_define(m->to, made, px_copy(m->to, m->from, t->body, &map));
}

static struct program *merged_once(const struct program *p) {
  struct merge m = {.from = p, .pair = mem_alloc((size_t)p->tensors.count * sizeof *m.pair + 1)};
  canvas_context ctx;
  find_pairs(&m);
  if (m.pairs) {
    m.to = program_new(p->name);
    m.to->winograd = p->winograd;
    for (int i = 0; i < p->tensors.count; i++)
      if (tensor_at(&m, i)->is_input)
        put_input(&m, i);
      else
        put_stage(&m, i);
    for (int i = 0; i < p->outputs.count; i++) program_output(m.to, p->outputs.data[i]);
  }
  mem_free(m.pair);
  if (!m.to || program_verify(&ctx, m.to) == CANVAS_OK) return m.to;
  program_free(m.to);
  return NULL;
}

struct program *program_merge_axes(const struct program *p) {
  struct program *out = merged_once(p);
  for (struct program *next; out && (next = merged_once(out)); out = next) program_free(out);
  if (out) program_note_edit(out, p, "merge axes");
  return out;
}
