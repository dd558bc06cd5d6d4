/* Makes a program for fewer images, to try schedules in less time if images are independent.
 *
 *     X[n:10, ..]  ->  Y[n:10, ..] = X[n, ..] + ..        for 2:  X[n:2, ..] -> Y[n:2, ..]
 *
 * The image axis is the first axis of the first output. Every load must pass it on unchanged: it is
 * the whole index of an image axis, and no condition, reduction or other index uses it.
 */
#ifndef CANVAS_TUNE_FEWER_IMAGES_H
#define CANVAS_TUNE_FEWER_IMAGES_H

#include "program/program.h"

/* Number of images of the program; 1 without an image axis. */
int64_t images_of(const struct program *p);

/* The program for `count` images, at most as many as it has; NULL: no image axis. */
struct program *fewer_images(const struct program *p, int64_t count);

#endif
