/* Values for the free sizes of a kernel that no solver has seen yet. */
#ifndef CANVAS_SAMPLE_FREE_SIZES_H
#define CANVAS_SAMPLE_FREE_SIZES_H

#include "kernel/kernel.h"

/* Sets every x to the least value at which all dims are whole; the other sizes are given. False
 * where there is none within SIZE_LIMIT. */
bool free_sizes_least(const struct kernel *k, struct sizes *sizes);
/* Sets every x to about C/2, rounded to a multiple of its least value: what a budget of half the
 * MACs allows in many kernels. */
bool free_sizes_usual(const struct kernel *k, struct sizes *sizes);

#endif
