/* Simplification of kernels: rewrites that keep what a kernel computes, up to rounding, at all sizes
 * and for all weights.
 *
 * Mutation and crossover make kernels that say the same thing in a longer way (relu of relu, a group
 * that only `out` reads). Two such kernels have different hashes; simplified they have one. The
 * answer is the same without it.
 */
#ifndef CANVAS_KERNEL_KERNEL_SIMPLIFY_H
#define CANVAS_KERNEL_KERNEL_SIMPLIFY_H

#include "kernel/kernel.h"

/* Requires a kernel that kernel_verify passes; returns another one, with variables in order of use,
 * to which no rewrite applies: simplifying it again gives the same. */
struct kernel *kernel_simplify(const struct kernel *k);

/* NULL, or why some node is a constant whatever the input and the weights are (a clause), with
 * *node its index. Such a kernel is not simplified: there is no constant to put for the node. */
const char *kernel_constant(const struct kernel *k, int *node);

/* The rewrites in the order in which they are tried, for documents and tests. */
struct rewrite_row {
  const char *before, *after;
};
const struct rewrite_row *kernel_rewrites(int *count);

#endif
