/* Removes calls, values and programs, and renumbers the rest. See passes.h. */
#include <stdlib.h>
#include <string.h>

#include "net/passes.h"

static void settle_call(struct network *n, int call) {
  struct net_call *c = &n->calls.data[call];
  c->varies = false;
  for (int i = 0; i < c->arguments.count; i++)
    c->varies |= !network_constant(n, c->arguments.data[i]);
  for (int i = 0; i < c->results.count; i++) {
    n->tensors.data[c->results.data[i]].call = call;
    n->tensors.data[c->results.data[i]].varies = c->varies;
  }
}

void network_settle(struct network *n) {
  for (int i = 0; i < n->tensors.count; i++) n->tensors.data[i].call = -1;
  for (int i = 0; i < n->calls.count; i++) settle_call(n, i);
}

/* Removes values without a call. Returns the new number by tensor; -1: removed. Free with
 * mem_free. */
static int *drop_values(struct network *n, const bool *dropped) {
  int *number = mem_alloc((size_t)(n->tensors.count + 1) * sizeof *number), kept = 0;
  for (int i = 0; i < n->tensors.count; i++) {
    const struct net_tensor *t = &n->tensors.data[i];
    bool gone = t->kind == NET_VALUE && (t->call < 0 || dropped[t->call]);
    number[i] = gone ? -1 : kept;
    if (!gone) n->tensors.data[kept++] = *t;
  }
  n->tensors.count = kept;
  network_index_tensors(n);
  return number;
}

static void renumber(int *tensors, int count, const int *number) {
  for (int i = 0; i < count; i++) tensors[i] = number[tensors[i]];
}

void network_drop_calls(struct network *n, const bool *dropped) {
  network_settle(n);
  int *number = drop_values(n, dropped), kept = 0;
  for (int i = 0; i < n->calls.count; i++) {
    struct net_call c = n->calls.data[i];
    if (dropped[i]) {
      mem_free(c.arguments.data);
      mem_free(c.results.data);
      continue;
    }
    renumber(c.arguments.data, c.arguments.count, number);
    renumber(c.results.data, c.results.count, number);
    n->calls.data[kept++] = c;
  }
  n->calls.count = kept;
  renumber(n->outputs.data, n->outputs.count, number);
  mem_free(number);
  network_settle(n);
}

void network_drop_programs(struct network *n) {
  int *number = mem_alloc((size_t)(n->programs.count + 1) * sizeof *number), kept = 0;
  for (int i = 0; i < n->calls.count; i++) number[n->calls.data[i].program] = 1;
  for (int i = 0; i < n->programs.count; i++) {
    struct program *p = n->programs.data[i];
    if (!number[i]) {
      program_free(p);
      continue;
    }
    number[i] = kept;
    n->programs.data[kept++] = p;
  }
  n->programs.count = kept;
  network_index_programs(n);
  for (int i = 0; i < n->calls.count; i++)
    n->calls.data[i].program = number[n->calls.data[i].program];
  mem_free(number);
}

void network_constants_first(struct network *n) {
  struct net_call *calls = mem_alloc((size_t)(n->calls.count + 1) * sizeof *calls);
  int count = 0;
  network_settle(n);
  for (int varies = 0; varies < 2; varies++)
    for (int i = 0; i < n->calls.count; i++)
      if (n->calls.data[i].varies == varies) calls[count++] = n->calls.data[i];
  if (count) memcpy(n->calls.data, calls, (size_t)count * sizeof *calls);
  mem_free(calls);
  network_settle(n);
}

void network_replace_call(struct network *n, int call) {
  struct net_call *c = &n->calls.data[call], *last = &n->calls.data[n->calls.count - 1];
  mem_free(c->arguments.data);
  mem_free(last->results.data);
  c->program = last->program;
  memcpy(&c->arguments, &last->arguments, sizeof c->arguments);
  n->calls.count--;
}
