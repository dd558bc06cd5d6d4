/* See program_uses.h. One walk over each expression gives its operands; reversed, these are
 * the consumers.
 */
#include "program/program_uses.h"

#include <stdlib.h>

struct collector {
  const struct program *p;
  int *loads; /* by tensor: in the current expression */
  struct {
    VEC(int);
  } loaded; /* tensors with loads */
};

/* Indices load inputs of i32 only, which stage_loads does not count either. */
static void collect(struct collector *c, int expr) {
  const struct px_node *n = &c->p->nodes.data[expr];
  for (int i = 0; i < PX_ARGS; i++)
    if (n->arg[i] >= 0) collect(c, n->arg[i]);
  if (n->op == PX_LOAD && !c->loads[n->tensor]++) VEC_PUSH(&c->loaded, n->tensor);
}

static int ascending(const void *a, const void *b) {
  return *(const int *)a - *(const int *)b;
}

/* Sets `operands`; returns how many uses there are. */
static int find_operands(const struct program *p, struct program_use_list *out) {
  struct collector c = {.p = p, .loads = mem_alloc(((size_t)p->tensors.count + 1) * sizeof(int))};
  struct {
    VEC(struct program_use);
  } uses = {0};
  for (int i = 0; i < p->tensors.count; i++) {
    out->first[i] = uses.count;
    if (p->tensors.data[i].is_input) continue;
    c.loaded.count = 0;
    collect(&c, p->tensors.data[i].body);
    if (c.loaded.count)
      qsort(c.loaded.data, (size_t)c.loaded.count, sizeof *c.loaded.data, ascending);
    for (int j = 0; j < c.loaded.count; j++) {
      int tensor = c.loaded.data[j];
      VEC_PUSH(&uses, ((struct program_use){tensor, c.loads[tensor]}));
      c.loads[tensor] = 0;
    }
  }
  out->first[p->tensors.count] = uses.count;
  out->use = uses.data;
  mem_free(c.loaded.data);
  mem_free(c.loads);
  return uses.count;
}

static void reverse(const struct program *p, const struct program_use_list *operands,
                    struct program_use_list *out) {
  int count = p->tensors.count;
  for (int i = 0; i < operands->first[count]; i++) out->first[operands->use[i].tensor + 1]++;
  for (int i = 0; i < count; i++) out->first[i + 1] += out->first[i];
  int *end = mem_alloc(((size_t)count + 1) * sizeof *end);
  for (int i = 0; i < count; i++) end[i] = out->first[i];
  for (int stage = 0; stage < count; stage++)
    for (int i = operands->first[stage]; i < operands->first[stage + 1]; i++)
      out->use[end[operands->use[i].tensor]++] =
          (struct program_use){stage, operands->use[i].loads};
  mem_free(end);
}

struct program_uses program_find_uses(const struct program *p) {
  size_t count = (size_t)p->tensors.count + 1;
  struct program_uses uses = {{mem_alloc(count * sizeof(int)), NULL},
                              {mem_alloc(count * sizeof(int)), NULL}};
  int all = find_operands(p, &uses.operands);
  uses.consumers.use = mem_alloc(((size_t)all + 1) * sizeof *uses.consumers.use);
  reverse(p, &uses.operands, &uses.consumers);
  return uses;
}

void program_free_uses(struct program_uses *uses) {
  mem_free(uses->consumers.first);
  mem_free(uses->consumers.use);
  mem_free(uses->operands.first);
  mem_free(uses->operands.use);
}
