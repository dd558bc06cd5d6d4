/* Footprints of loops. See footprint.h. Numbers saturate at 2^62. */
#include "bind/footprint.h"

#include <stdlib.h>

#include "base/saturating.h"
#include "program/program_cost.h"
#include "bind/loop_space.h"

/* The elements touched, by tensor. */
struct touched {
  const struct loop_tree *tree;
  struct loop_space space;
  int64_t *elements; /* by tensor; 0 if it is not in the list */
  struct {
    VEC(int);
  } tensors;
};

static void touch(struct touched *t, int tensor, int64_t elements) {
  int stage =
      t->tree->program->tensors.data[tensor].is_input ? -1 : loop_tree_stage(t->tree, tensor);
  if (stage >= 0) elements = int_min(elements, t->tree->stages[stage].elements);
  if (!t->elements[tensor]) VEC_PUSH(&t->tensors, tensor);
  if (elements > t->elements[tensor]) t->elements[tensor] = elements;
}

static int64_t bytes_of(const struct touched *t, int tensor, int64_t elements) {
  return saturating_mul(elements,
                        program_dtype_bytes(t->tree->program->tensors.data[tensor].dtype));
}

static void forget(struct touched *t) {
  for (int i = 0; i < t->tensors.count; i++) t->elements[t->tensors.data[i]] = 0;
  t->tensors.count = 0;
}

/* Returns the bytes touched, and resets the list. */
static int64_t take(struct touched *t) {
  int64_t bytes = 0;
  for (int i = 0; i < t->tensors.count; i++) {
    int tensor = t->tensors.data[i];
    bytes = saturating_add(bytes, bytes_of(t, tensor, t->elements[tensor]));
  }
  forget(t);
  return bytes;
}

/* The number of values of an index while the steps in the mask are fixed; `size` if it is not
 * affine. */
static int64_t width(struct touched *t, int index, uint32_t still, int64_t size) {
  struct affine sum;
  if (!loop_space_index(&t->space, index, &sum)) return size;
  struct px_range values = affine_range(t->space.p, &sum, still);
  return values.overflow ? size : int_min(values.high - values.low + 1, size);
}

static void touch_loads(struct touched *t, int expr, uint32_t still) {
  const struct program *p = t->tree->program;
  const struct px_node *n = &p->nodes.data[expr];
  int64_t elements = 1;
  for (int i = 0; i < 3; i++)
    if (n->arg[i] >= 0) touch_loads(t, n->arg[i], still);
  if (n->op != PX_LOAD) return;
  for (int i = 0; i < p->tensors.data[n->tensor].rank; i++) {
    int index = p->indices.data[n->first + i];
    touch_loads(t, index, still);
    elements =
        saturating_mul(elements, width(t, index, still, p->tensors.data[n->tensor].axes[i].size));
  }
  touch(t, n->tensor, elements);
}

static void touch_own(struct touched *t, const struct bound_stage *stage, uint32_t still) {
  const struct program_tensor *tensor = &t->tree->program->tensors.data[stage->tensor];
  int64_t elements = 1;
  for (int i = 0; i < tensor->rank; i++) {
    int64_t values = 1;
    for (int j = 0; j < stage->steps; j++)
      if (stage->path[j].axis == i && !(still >> j & 1)) values *= stage->path[j].extent;
    elements = saturating_mul(elements, int_min(values, tensor->axes[i].size));
  }
  touch(t, stage->tensor, elements);
}

/* Adds what a stage touches in one iteration of the loop at the end of its first `steps` steps. */
static void touch_stage(struct touched *t, const struct bound_stage *stage, int steps) {
  const struct program_tensor *tensor = &t->tree->program->tensors.data[stage->tensor];
  uint32_t still = (uint32_t)(((uint64_t)1 << steps) - 1);
  loop_space_enter(&t->space, stage);
  touch_own(t, stage, still);
  touch_loads(t, tensor->body, still);
  for (int i = tensor->rank; i < tensor->rank + tensor->reductions; i++) {
    if (tensor->axes[i].low < 0) continue;
    touch_loads(t, tensor->axes[i].low, still);
    touch_loads(t, tensor->axes[i].high, still);
  }
}

/* The number of steps down to the node, its own included; -1 if it is not around the stage. */
static int steps_to(const struct bound_stage *stage, int node) {
  if (node == 0) return 0;
  for (int i = stage->steps; i > 0; i--)
    if (stage->path[i - 1].node == node) return i;
  return -1;
}

static struct touched *touched_new(const struct loop_tree *tree) {
  struct touched *t = mem_alloc(sizeof *t);
  t->tree = tree;
  t->elements = mem_alloc(((size_t)tree->program->tensors.count + 1) * sizeof *t->elements);
  loop_space_open(&t->space, tree);
  return t;
}

static void touched_free(struct touched *t) {
  loop_space_close(&t->space);
  mem_free(t->elements);
  mem_free(t->tensors.data);
  mem_free(t);
}

static void fill_node(struct touched *t, struct footprints *out, int node) {
  const struct schedule_node *n = &t->tree->schedule->nodes.data[node];
  out->iterations[node] =
      node ? saturating_mul(out->iterations[n->parent], t->tree->loops[node].extent) : 1;
  for (int i = 0; i < t->tree->count; i++) {
    int steps = steps_to(&t->tree->stages[i], node);
    if (steps >= 0) touch_stage(t, &t->tree->stages[i], steps);
  }
  out->body[node] = take(t);
  for (int child = n->first; child >= 0; child = t->tree->schedule->nodes.data[child].next)
    if (t->tree->schedule->nodes.data[child].kind == NODE_LOOP) fill_node(t, out, child);
}

void footprints_open(const struct loop_tree *tree, struct footprints *out) {
  out->body = mem_alloc((size_t)tree->schedule->nodes.count * sizeof *out->body);
  out->iterations = mem_alloc((size_t)tree->schedule->nodes.count * sizeof *out->iterations);
  out->touched = touched_new(tree);
  fill_node(out->touched, out, 0);
}

void footprints_close(struct footprints *f) {
  touched_free(f->touched);
  mem_free(f->body);
  mem_free(f->iterations);
}

/* Lists the nodes around a stage, the root first; returns their number. */
static int nodes_around(const struct bound_stage *s, int *nodes) {
  int count = 0;
  nodes[count++] = 0;
  for (int i = 0; i < s->steps; i++)
    if (s->path[i].node != nodes[count - 1]) nodes[count++] = s->path[i].node;
  return count;
}

/* Traffic of one tensor. elements[at] is its footprint in one iteration of nodes[at], at = 0 ..
 * last. */
static int64_t tensor_traffic(const struct footprints *f, const int *nodes, int last, int tensor,
                              const int64_t *elements) {
  int at = last;
  while (at > 0 && elements[at - 1] == elements[at]) at--;
  return saturating_mul(bytes_of(f->touched, tensor, elements[at]), f->iterations[nodes[at]]);
}

/* Traffic of a stage. nodes[last] is the loop around the outermost loop whose body fits. */
static int64_t traffic_below(struct footprints *f, const struct bound_stage *s, const int *nodes,
                             int last) {
  struct touched *t = f->touched;
  int64_t elements[SCHEDULE_DEPTH + 1], bytes = 0;
  int count, *tensors;
  touch_stage(t, s, steps_to(s, nodes[last]));
  count = t->tensors.count;
  tensors = mem_alloc((size_t)count * sizeof *tensors);
  for (int i = 0; i < count; i++) tensors[i] = t->tensors.data[i];
  forget(t);
  for (int i = 0; i < count; i++) {
    for (int at = 0; at <= last; at++) {
      touch_stage(t, s, steps_to(s, nodes[at]));
      elements[at] = t->elements[tensors[i]];
      forget(t);
    }
    bytes = saturating_add(bytes, tensor_traffic(f, nodes, last, tensors[i], elements));
  }
  mem_free(tensors);
  return bytes;
}

int64_t stage_traffic(struct footprints *f, int stage, int64_t cache) {
  const struct bound_stage *s = &f->touched->tree->stages[stage];
  int nodes[SCHEDULE_DEPTH + 1], count = nodes_around(s, nodes), fits = 0;
  while (fits < count - 1 && f->body[nodes[fits]] > cache) fits++;
  return traffic_below(f, s, nodes, fits > 0 ? fits - 1 : 0);
}
