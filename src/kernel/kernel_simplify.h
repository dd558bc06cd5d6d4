/* Simplification of kernels: rewrites that keep what a kernel computes, up to rounding, at all
 * sizes and for all weights.
 *
 * Draws, mutation and crossover produce longer forms of the same kernel (relu of relu, a group that
 * only `out` reads). Such forms have different hashes, but one hash when simplified. Results are the
 * same either way.
 */
#ifndef CANVAS_KERNEL_KERNEL_SIMPLIFY_H
#define CANVAS_KERNEL_KERNEL_SIMPLIFY_H

#include "kernel/kernel.h"

/* Requires a kernel that kernel_verify accepts. Returns a new one, with variables in order of use,
 * to which no rewrite applies: simplifying again changes nothing. */
struct kernel *kernel_simplify(const struct kernel *k);
/* The same; NULL where no rewrite applies to k. */
struct kernel *kernel_simpler(const struct kernel *k);

/* Whether no rewrite applies. */
bool kernel_is_simple(const struct kernel *k);

/* NULL, or why node *node is constant for all inputs and weights (a clause). Such a node is not
 * simplified, since no primitive gives a constant. */
const char *kernel_constant(const struct kernel *k, int *node);

/* The rewrites in the order in which they are tried, for docs and tests. */
struct rewrite_row {
  const char *before, *after;
};
const struct rewrite_row *kernel_rewrites(int *count);

#endif
