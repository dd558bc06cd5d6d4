/* A program for fewer images: to try schedules in less time, where images do not depend on each other.
 *
 *     X[n:10, ..]  ->  Y[n:10, ..] = X[n, ..] + ..        for 2:  X[n:2, ..] -> Y[n:2, ..]
 *
 * The images of a program are the first axis of its first output, if every load passes it on as it is: each
 * tensor that has it is indexed by it alone, and no condition, sum or other index knows it. */
#ifndef CANVAS_TUNE_FEWER_IMAGES_H
#define CANVAS_TUNE_FEWER_IMAGES_H

#include "program/program.h"

/* How many images it is for; 1 where it has none. */
int64_t images_of(const struct program *p);

/* The program for `count` of them, which are no more than it has; NULL where it has none. */
struct program *fewer_images(const struct program *p, int64_t count);

#endif
