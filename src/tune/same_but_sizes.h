/* Programs that are the same for other sizes: what is found for one is a good guess for another. */
#ifndef CANVAS_TUNE_SAME_BUT_SIZES_H
#define CANVAS_TUNE_SAME_BUT_SIZES_H

#include <stdbool.h>

/* The texts of two programs are equal but for the digits of their numbers. */
bool same_but_sizes(const char *a, const char *b);

#endif
