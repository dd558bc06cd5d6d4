/* The probability that a try of a draw ends with a given kernel, simplified: computed, not measured.
 * Tries that end with another kernel that becomes this one when it is simplified are not counted.
 *
 * All orders are followed in which the nodes of the kernel can be added; at each step all legal
 * applications are counted. What a draw does by trying types and applications in a random order until
 * one is legal and kept has a closed form (probability.c).
 */
#ifndef CANVAS_SAMPLE_PROBABILITY_H
#define CANVAS_SAMPLE_PROBABILITY_H

#include "sample/steps.h"

enum { PROBABILITY_NODES = 20 }; /* primitives of a kernel whose orders are followed */

struct probability {
  double of_try;  /* that a try gives the kernel, whatever G is */
  struct buf why; /* a clause, where that is 0 */
};

/* CANVAS_BAD_INPUT where the kernel has more than PROBABILITY_NODES primitives. */
canvas_status kernel_probability(canvas_context *ctx, struct sampler *s, const struct kernel *k,
                                 const struct draw_kind *kind, struct probability *out);
/* How many of `tries` tries succeed; those of the same seed are the same. */
int64_t kernel_successes(struct sampler *s, const struct draw_kind *kind, int64_t tries);

#endif
