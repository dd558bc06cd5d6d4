/* Finds programs that differ only in sizes: a schedule for one is a good guess for another. */
#ifndef CANVAS_TUNE_SAME_BUT_SIZES_H
#define CANVAS_TUNE_SAME_BUT_SIZES_H

#include <stdbool.h>

/* Whether the texts of two programs are equal except for digits of numbers. */
bool same_but_sizes(const char *a, const char *b);

#endif
