/* The loops of Winograd's convolution (winograd_nest.c), with holes for their numbers: for the tuner a sketch, for
 * the default schedule (default_winograd.c) a schedule to be filled. */
#ifndef CANVAS_TRANSFORM_WINOGRAD_NEST_H
#define CANVAS_TRANSFORM_WINOGRAD_NEST_H

#include "bind/machine.h"
#include "program/program.h"
#include "schedule/schedule.h"

/* Most of what holes offer: places and rows of tiles in a tile of registers, rows of tiles in a block, images in one, vectors. */
enum {
  WINOGRAD_TILE = 14,
  WINOGRAD_TILE_ROWS = 4,
  WINOGRAD_ROWS = 8,
  WINOGRAD_IMAGES = 10,
  WINOGRAD_VECTORS = 4
};

/* The stages of a convolution that the edit `winograd` made, and what their axes are to it. */
struct winograd_axes {
  const struct program *p;
  int weights, image, rows, tiles, products, back, last; /* Y_WT, Y_P, Y_R, Y_T, Y_M, Y_S, Y */
  int half;                                              /* Y_WR */
  int images[PROGRAM_AXES],
      image_count; /* axes of the products: of the image, beside rows and columns */
  int own[2];      /* ... rows and columns of tiles */
  int others[PROGRAM_AXES], other_count; /* ... of the weights alone; the last has the lanes */
  int sums[PROGRAM_AXES], sum_count;     /* ... channels; the last has the lanes of the image */
  int64_t tile;
};

/* False where the program is anything else but one such convolution and maps of its result. */
bool winograd_axes_of(const struct program *p, struct winograd_axes *out);

int64_t winograd_weights(const struct winograd_axes *w); /* bytes of them, transformed */
int64_t winograd_tiles(const struct winograd_axes *w);   /* of all images */
/* A hole offers the number, of an axis of that size: a divisor, or a power of two where it need not divide. */
bool winograd_may_be(int64_t size, int64_t number, bool divide);

/* ni_AXIS, hm, hi, wi and ov are holes. NULL where the program is none, or image and weights share axes. */
struct schedule *winograd_nest(const struct program *p, const struct machine *machine);

/* default_winograd.c: with the numbers of a closed formula; NULL, too, where channels are not innermost or
 * that is not legal. */
struct schedule *default_winograd(const struct program *p, const struct machine *machine);

#endif
