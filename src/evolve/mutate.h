/* Children of kernels: one to three edits of a parent, or a part of a second parent grafted onto it.
 *
 * A child is what a draw could be: it passes the same checks at the same targets, keeps the rules that
 * a draw keeps (a part of the children keeps fewer or none, as a part of draws does), has at most as many
 * primitives, and is simplified. It is none of its parents, written otherwise or not. Child i is a
 * pure function of (seed, i, options, targets, parents), on every machine.
 */
#ifndef CANVAS_EVOLVE_MUTATE_H
#define CANVAS_EVOLVE_MUTATE_H

#include "evolve/draft.h"

enum { PARENTS_MAX = 2 };

struct parent {
  const struct kernel *kernel; /* finished; need not be legal at the targets */
  int64_t g;                   /* another one is drawn where the targets do not allow it */
};
struct child {
  struct kernel *kernel; /* named k<index> */
  int64_t g;
  unsigned edits; /* a bit per enum edit that made it */
};

/* Child `index` of one or two parents; of two, the first is the one that is edited. CANVAS_NONE: the
 * tries found no legal one. */
canvas_status kernel_mutate(canvas_context *ctx, struct sampler *s, uint64_t index,
                            const struct parent *parents, int count, struct child *out);

#endif
