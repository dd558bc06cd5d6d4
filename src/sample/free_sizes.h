/* Values for the free sizes of a kernel that no solver has seen yet. */
#ifndef CANVAS_SAMPLE_FREE_SIZES_H
#define CANVAS_SAMPLE_FREE_SIZES_H

#include "kernel/kernel.h"

/* The dims of a kernel's shapes and conditions, each once, to be looked at for many targets. */
struct kernel_dims {
  int count;
  struct dim of[KERNEL_NODES_MAX * (AXES_MAX + 2)];
};
void kernel_dims_list(const struct kernel *k, struct kernel_dims *out);

/* Sets every x to the least value at which all dims are whole; the other sizes are given. False
 * where there is none within SIZE_LIMIT. */
bool free_sizes_least(const struct kernel_dims *dims, struct sizes *sizes);
/* Sets every x to about C/2, rounded to a multiple of its least value: what a budget of half the
 * MACs allows in many kernels. */
bool free_sizes_usual(const struct kernel_dims *dims, struct sizes *sizes);

#endif
