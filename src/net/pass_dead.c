/* Removes dead calls: no result is an output or an argument of a live call.
 *
 * Inputs, weights and programs stay even if unused, since callers refer to them. Results are
 * bit-identical.
 */
#include <stdlib.h>

#include "net/passes.h"

static bool is_wanted(const struct net_call *c, const bool *wanted) {
  for (int i = 0; i < c->results.count; i++)
    if (wanted[c->results.data[i]]) return true;
  return false;
}

canvas_status pass_dead(canvas_context *ctx, struct network *n) {
  bool *wanted = mem_alloc((size_t)n->tensors.count + 1);
  bool *dropped = mem_alloc((size_t)n->calls.count + 1);
  (void)ctx;
  for (int i = 0; i < n->outputs.count; i++) wanted[n->outputs.data[i]] = true;
  for (int i = n->calls.count - 1; i >= 0; i--) {
    const struct net_call *c = &n->calls.data[i];
    dropped[i] = !is_wanted(c, wanted);
    for (int k = 0; !dropped[i] && k < c->arguments.count; k++) wanted[c->arguments.data[k]] = true;
  }
  network_drop_calls(n, dropped);
  mem_free(wanted);
  mem_free(dropped);
  return CANVAS_OK;
}
