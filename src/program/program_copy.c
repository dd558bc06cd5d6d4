/* A copy of a program: the same arrays, and its own names. See program.h. */
#include <string.h>

#include "program/program.h"

static void *same(const void *data, int count, size_t size) {
  size_t bytes = (size_t)count * size;
  return count ? memcpy(mem_grow(NULL, bytes), data, bytes) : NULL;
}

#define COPY_VEC(to, from)                                                \
  do {                                                                    \
    (to)->data = same((from)->data, (from)->count, sizeof *(from)->data); \
    (to)->count = (to)->capacity = (from)->count;                         \
  } while (0)

static const char *copy_name(struct program *p, const char *name) {
  return arena_strndup(&p->arena, name, strlen(name));
}

struct program *program_copy(const struct program *p) {
  struct program *out = program_new(p->name);
  out->winograd = p->winograd;
  if (p->edits) out->edits = copy_name(out, p->edits);
  COPY_VEC(&out->tensors, &p->tensors);
  COPY_VEC(&out->inputs, &p->inputs);
  COPY_VEC(&out->outputs, &p->outputs);
  COPY_VEC(&out->nodes, &p->nodes);
  COPY_VEC(&out->indices, &p->indices);
  for (int i = 0; i < out->tensors.count; i++) {
    struct program_tensor *t = &out->tensors.data[i];
    t->name = copy_name(out, t->name);
    for (int j = 0; j < t->rank + t->reductions; j++)
      t->axes[j].name = copy_name(out, t->axes[j].name);
  }
  return out;
}
