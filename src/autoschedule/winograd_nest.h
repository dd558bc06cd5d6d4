/* The loops of Winograd's convolution (winograd_nest.c), with holes for their numbers: for the tuner a sketch, for
 * the default schedule (default_winograd.c) a schedule to be filled. */
#ifndef CANVAS_AUTOSCHEDULE_WINOGRAD_NEST_H
#define CANVAS_AUTOSCHEDULE_WINOGRAD_NEST_H

#include "bind/machine.h"
#include "program/program.h"
#include "schedule/schedule.h"

/* The most that holes offer: columns and rows of tiles in a tile of registers, rows of tiles and images in a block,
 * vectors. */
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
  int half, weights;        /* Y_WR, Y_WT */
  int image, rows, tiles;   /* Y_P, Y_R, Y_T */
  int products, back, last; /* Y_M, Y_S, Y */
  /* Axes of the products: of the image, those of rows and columns of tiles, and of the weights alone, of which
   * the last has the lanes; channels, which they sum up and of which the last has the lanes of the image. */
  int images[PROGRAM_AXES], image_count;
  int own[2];
  int others[PROGRAM_AXES], other_count;
  int sums[PROGRAM_AXES], sum_count;
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
