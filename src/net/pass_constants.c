/* Separates what depends on weights alone from what varies.
 *
 * Calls that read only weights move to the front. A program input that is constant in every call is
 * marked `const`: code may compute what depends on it alone at load time. Results are
 * bit-identical.
 */
#include <stdlib.h>

#include "net/passes.h"

static void mark_program(struct network *n, int program, const bool *varies) {
  struct program *p = n->programs.data[program];
  for (int i = 0; i < p->inputs.count; i++)
    if (!varies[i]) p->tensors.data[p->inputs.data[i]].constant = true;
}

/* varies[program][input] is one array, where the inputs of a program start at first[program]. */
static void mark_programs(struct network *n) {
  int *first = mem_alloc((size_t)(n->programs.count + 1) * sizeof *first), inputs = 0;
  for (int i = 0; i < n->programs.count; i++) {
    first[i] = inputs;
    inputs += n->programs.data[i]->inputs.count;
  }
  bool *varies = mem_alloc((size_t)inputs + 1), *called = mem_alloc((size_t)n->programs.count + 1);
  for (int i = 0; i < n->calls.count; i++) {
    const struct net_call *c = &n->calls.data[i];
    called[c->program] = true;
    for (int k = 0; k < c->arguments.count; k++)
      varies[first[c->program] + k] |= !network_constant(n, c->arguments.data[k]);
  }
  for (int i = 0; i < n->programs.count; i++)
    if (called[i]) mark_program(n, i, varies + first[i]);
  mem_free(first);
  mem_free(varies);
  mem_free(called);
}

canvas_status pass_constants(canvas_context *ctx, struct network *n) {
  (void)ctx;
  network_constants_first(n);
  mark_programs(n);
  return CANVAS_OK;
}
