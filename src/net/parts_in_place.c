/* Finds values that are contiguous parts of others, and calls that then copy nothing. See
 * memory_plan.h.
 *
 * Calls are visited in order. If each result is a part of an argument (slice, split, reshape), the
 * results are placed in the arguments. If the only result consists of whole arguments
 * (concatenation), these are placed in the result; an argument that fills another value takes that
 * value along. A call is skipped only if it copies nothing at all, and a value is placed in at most
 * one other.
 */
#include <stdlib.h>

#include "net/copied_parts.h"
#include "net/memory_plan.h"

struct placing {
  const struct network *n;
  const bool *arena;
  struct memory_plan *plan;
};

int whole_of(const struct memory_plan *plan, int value, int64_t *within) {
  *within = 0;
  for (; plan->values[value].part_of >= 0; value = plan->values[value].part_of)
    *within += plan->values[value].within;
  return value;
}

/* Bytes of that many elements of the value; -1: not a multiple of the alignment. */
static int64_t aligned_bytes(const struct network *n, int value, int64_t elements) {
  const struct net_tensor *t = &n->tensors.data[value];
  int64_t bytes = elements * (network_bytes(t) / network_elements(t));
  return bytes % PLAN_ALIGNMENT ? -1 : bytes;
}

static int argument_of(const struct placing *pl, int call, int input) {
  const struct net_call *c = &pl->n->calls.data[call];
  const struct program *p = pl->n->programs.data[c->program];
  for (int i = 0; i < p->inputs.count; i++)
    if (p->inputs.data[i] == input) return c->arguments.data[i];
  return -1;
}

static void place(struct placing *pl, int value, int whole, int64_t within) {
  pl->plan->values[value].part_of = whole;
  pl->plan->values[value].within = within;
}

/* ---- results within arguments ---------------------------------------------------------------- */

static bool within_argument(const struct placing *pl, int call, int result, int *whole,
                            int64_t *within) {
  const struct net_call *c = &pl->n->calls.data[call];
  const struct program *p = pl->n->programs.data[c->program];
  struct copied_part parts[COPIED_PARTS];
  if (!pl->arena[c->results.data[result]]) return false;
  if (copied_parts(p, p->outputs.data[result], parts) != 1) return false;
  *whole = argument_of(pl, call, parts[0].input);
  *within = aligned_bytes(pl->n, *whole, parts[0].from);
  return pl->arena[*whole] && *within >= 0;
}

static bool place_results(struct placing *pl, int call) {
  const struct net_call *c = &pl->n->calls.data[call];
  int whole;
  int64_t within;
  for (int i = 0; i < c->results.count; i++)
    if (!within_argument(pl, call, i, &whole, &within)) return false;
  for (int i = 0; i < c->results.count; i++) {
    within_argument(pl, call, i, &whole, &within);
    place(pl, c->results.data[i], whole, within);
  }
  return true;
}

/* ---- arguments within a result --------------------------------------------------------------- */

/* The argument, or the value that it fills, if that is not yet placed in another one; -1. */
static int free_argument(const struct placing *pl, int call, const struct copied_part *part) {
  int64_t within;
  int argument = argument_of(pl, call, part->input);
  if (!pl->arena[argument] || part->from) return -1;
  if (part->count != network_elements(&pl->n->tensors.data[argument])) return -1;
  int whole = whole_of(pl->plan, argument, &within);
  return pl->plan->values[whole].bytes == pl->plan->values[argument].bytes ? whole : -1;
}

static bool place_arguments(struct placing *pl, int call) {
  const struct net_call *c = &pl->n->calls.data[call];
  const struct program *p = pl->n->programs.data[c->program];
  struct copied_part parts[COPIED_PARTS];
  int whole[COPIED_PARTS], result = c->results.data[0];
  if (c->results.count != 1 || !pl->arena[result]) return false;
  int count = copied_parts(p, p->outputs.data[0], parts);
  for (int i = 0; i < count; i++) {
    whole[i] = free_argument(pl, call, &parts[i]);
    if (whole[i] < 0 || aligned_bytes(pl->n, result, parts[i].to) < 0) return false;
    for (int k = 0; k < i; k++)
      if (whole[k] == whole[i]) return false;
  }
  for (int i = 0; i < count; i++)
    place(pl, whole[i], result, aligned_bytes(pl->n, result, parts[i].to));
  return count > 0;
}

void find_parts_in_place(const struct network *n, const bool *arena, struct memory_plan *plan) {
  struct placing pl = {n, arena, plan};
  for (int c = 0; c < n->calls.count; c++)
    plan->skipped[c] = place_results(&pl, c) || place_arguments(&pl, c);
}
