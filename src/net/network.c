/* Builds networks in memory. See network.h. */
#include "net/network.h"

#include <stdlib.h>
#include <string.h>

struct network *network_new(const char *name) {
  struct network *n = mem_alloc(sizeof *n);
  n->name = arena_strndup(&n->arena, name, strlen(name));
  return n;
}

void network_free(struct network *n) {
  if (!n) return;
  for (int i = 0; i < n->programs.count; i++) program_free(n->programs.data[i]);
  for (int i = 0; i < n->calls.count; i++) {
    mem_free(n->calls.data[i].arguments.data);
    mem_free(n->calls.data[i].results.data);
  }
  mem_free(n->programs.data);
  mem_free(n->tensors.data);
  mem_free(n->calls.data);
  mem_free(n->outputs.data);
  name_table_free(&n->tensor_names.used);
  name_table_free(&n->tensor_names.next);
  name_table_free(&n->program_names.used);
  name_table_free(&n->program_names.next);
  arena_free(&n->arena);
  mem_free(n);
}

static void copy_numbers(const int *from, int count, int **to, int *to_count, int *capacity) {
  if (!count) return;
  *to = mem_alloc((size_t)count * sizeof **to);
  memcpy(*to, from, (size_t)count * sizeof **to);
  *to_count = *capacity = count;
}
#define COPY_NUMBERS(from, to) \
  copy_numbers((from)->data, (from)->count, &(to)->data, &(to)->count, &(to)->capacity)

static void copy_call(struct network *copy, const struct net_call *c) {
  struct net_call own = *c;
  own.arguments.data = own.results.data = NULL;
  own.arguments.count = own.results.count = own.arguments.capacity = own.results.capacity = 0;
  COPY_NUMBERS(&c->arguments, &own.arguments);
  COPY_NUMBERS(&c->results, &own.results);
  VEC_PUSH(&copy->calls, own);
}

struct network *network_copy(const struct network *n) {
  struct network *copy = network_new(n->name);
  for (int i = 0; i < n->programs.count; i++)
    network_program(copy, program_copy(n->programs.data[i]));
  for (int i = 0; i < n->tensors.count; i++) {
    struct net_tensor t = n->tensors.data[i];
    t.name = arena_strndup(&copy->arena, t.name, strlen(t.name));
    if (t.source) t.source = arena_strndup(&copy->arena, t.source, strlen(t.source));
    VEC_PUSH(&copy->tensors, t);
  }
  network_index_tensors(copy);
  for (int i = 0; i < n->calls.count; i++) copy_call(copy, &n->calls.data[i]);
  COPY_NUMBERS(&n->outputs, &copy->outputs);
  return copy;
}

int network_program(struct network *n, struct program *p) {
  VEC_PUSH(&n->programs, p);
  name_table_set(&n->program_names.used, p->name, n->programs.count - 1);
  return n->programs.count - 1;
}

int network_tensor(struct network *n, enum net_kind kind, const char *name,
                   enum program_dtype dtype, int rank, const int64_t *sizes) {
  struct net_tensor t = {.kind = kind, .dtype = dtype, .rank = rank, .call = -1};
  t.name = arena_strndup(&n->arena, name, strlen(name));
  t.most = dtype == PROGRAM_I32 ? INT32_MAX : 0;
  for (int i = 0; i < rank; i++) t.sizes[i] = sizes[i];
  VEC_PUSH(&n->tensors, t);
  name_table_set(&n->tensor_names.used, t.name, n->tensors.count - 1);
  return n->tensors.count - 1;
}

int network_call(struct network *n, int program) {
  VEC_PUSH(&n->calls, ((struct net_call){.program = program}));
  return n->calls.count - 1;
}

void network_argument(struct network *n, int call, int tensor) {
  struct net_call *c = &n->calls.data[call];
  VEC_PUSH(&c->arguments, tensor);
  if (network_constant(n, tensor)) return;
  c->varies = true;
  for (int i = 0; i < c->results.count; i++) n->tensors.data[c->results.data[i]].varies = true;
}

void network_result(struct network *n, int call, int value) {
  VEC_PUSH(&n->calls.data[call].results, value);
  n->tensors.data[value].call = call;
  n->tensors.data[value].varies = n->calls.data[call].varies;
}

void network_output(struct network *n, int value) {
  VEC_PUSH(&n->outputs, value);
}

bool network_constant(const struct network *n, int tensor) {
  const struct net_tensor *t = &n->tensors.data[tensor];
  return t->kind == NET_WEIGHT || (t->kind == NET_VALUE && t->call >= 0 && !t->varies);
}

bool network_is_output(const struct network *n, int tensor) {
  for (int i = 0; i < n->outputs.count; i++)
    if (n->outputs.data[i] == tensor) return true;
  return false;
}

int64_t network_elements(const struct net_tensor *t) {
  int64_t elements = 1;
  for (int i = 0; i < t->rank; i++) elements *= t->sizes[i];
  return elements;
}

int64_t network_bytes(const struct net_tensor *t) {
  static const int bytes[PROGRAM_DTYPES] = {4, 8, 2, 4};
  return network_elements(t) * bytes[t->dtype];
}
