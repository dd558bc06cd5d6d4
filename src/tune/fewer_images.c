/* Finds the image axis of each tensor, from the first output on. See fewer_images.h. */
#include "tune/fewer_images.h"

#include <stdlib.h>
#include <string.h>

/* The image axis of each tensor. */
struct images {
  const struct program *p;
  int *axis;    /* by tensor: its image axis; -1: none */
  bool changed; /* a new image axis was found */
};

/* Whether the expression keeps images separate: the image axis of the stage occurs only as the
 * whole index of an image axis, and each image axis is indexed by it. A stage without images has
 * axis -1. */
static bool agrees(struct images *m, int stage, int expr) {
  const struct px_node *n = &m->p->nodes.data[expr];
  if (n->op == PX_AXIS) return n->integer != m->axis[stage];
  for (int i = 0; i < 3; i++)
    if (n->arg[i] >= 0 && !agrees(m, stage, n->arg[i])) return false;
  if (n->op != PX_LOAD) return true;
  for (int i = 0; i < m->p->tensors.data[n->tensor].rank; i++) {
    int index = m->p->indices.data[n->first + i];
    const struct px_node *at = &m->p->nodes.data[index];
    bool image = at->op == PX_AXIS && at->integer == m->axis[stage];
    if (image && m->axis[n->tensor] < 0) {
      m->axis[n->tensor] = i;
      m->changed = true;
    }
    if (image != (m->axis[n->tensor] == i)) return false;
    if (!image && !agrees(m, stage, index)) return false;
  }
  return true;
}

static bool stage_agrees(struct images *m, int stage) {
  const struct program_tensor *t = &m->p->tensors.data[stage];
  if (t->is_input) return true;
  for (int i = t->rank; i < t->rank + t->reductions; i++) {
    if (t->axes[i].low >= 0 && !agrees(m, stage, t->axes[i].low)) return false;
    if (t->axes[i].high >= 0 && !agrees(m, stage, t->axes[i].high)) return false;
  }
  return agrees(m, stage, t->body);
}

/* A stage that no output needs must have no images. */
static bool find_images(struct images *m) {
  const struct program *p = m->p;
  int output = p->outputs.data[0];
  for (int i = 0; i < p->tensors.count; i++) m->axis[i] = -1;
  if (!p->tensors.data[output].rank) return false;
  m->axis[output] = 0;
  do {
    m->changed = false;
    for (int i = p->tensors.count - 1; i >= 0; i--)
      if (!stage_agrees(m, i)) return false;
  } while (m->changed);
  for (int i = 0; i < p->tensors.count; i++) {
    const struct program_tensor *t = &p->tensors.data[i];
    if (m->axis[i] < 0) continue;
    if (t->dtype == PROGRAM_I32) return false;
    if (t->axes[m->axis[i]].size != p->tensors.data[output].axes[0].size) return false;
  }
  return true;
}

static struct images images_open(const struct program *p) {
  return (struct images){p, mem_alloc((size_t)p->tensors.count * sizeof(int)), false};
}

int64_t images_of(const struct program *p) {
  struct images m = images_open(p);
  bool found = find_images(&m);
  mem_free(m.axis);
  return found ? p->tensors.data[p->outputs.data[0]].axes[0].size : 1;
}

struct program *fewer_images(const struct program *p, int64_t count) {
  struct images m = images_open(p);
  struct program *out = find_images(&m) ? program_copy(p) : NULL;
  canvas_context ctx;
  for (int i = 0; out && i < p->tensors.count; i++)
    if (m.axis[i] >= 0) out->tensors.data[i].axes[m.axis[i]].size = count;
  mem_free(m.axis);
  if (!out || program_verify(&ctx, out) == CANVAS_OK) return out;
  program_free(out);
  return NULL;
}
