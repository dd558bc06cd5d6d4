/* The loops of Winograd's convolution (winograd_nest.c), with holes for tile and block sizes. The
 * tuner uses them as a sketch; the default schedule (default_winograd.c) fills the holes. */
#ifndef CANVAS_AUTOSCHEDULE_WINOGRAD_NEST_H
#define CANVAS_AUTOSCHEDULE_WINOGRAD_NEST_H

#include "bind/machine.h"
#include "program/program.h"
#include "schedule/schedule.h"

/* The stages of a convolution that the edit `winograd` made (rewrite/winograd_stages.c), and the
 * roles of their axes. */
struct winograd_axes {
  const struct program *p;
  int half_weights, weights; /* stages Y_WR, Y_WT: the filter transform */
  int image, rows, tiles;    /* Y_P, Y_R, Y_T: the padded image, the input transform */
  int products;              /* Y_M */
  int half_output, output;   /* Y_S, Y: the output transform */
  /* axes of the products: */
  int images[PROGRAM_AXES], image_count;     /* batch axes */
  int tile_axis[2];                          /* rows of tiles, columns of tiles */
  int outputs[PROGRAM_AXES], output_count;   /* output channels; the last is the vector axis */
  int channels[PROGRAM_AXES], channel_count; /* reductions; the last: vectors of Y_P, Y_R, Y_T */
  int64_t tile;                              /* elements along a side of an output tile */
};

/* False: the program is not one such convolution, followed by element-wise stages of its shape. */
bool winograd_axes_of(const struct program *p, struct winograd_axes *out);

int64_t winograd_weights(const struct winograd_axes *w); /* bytes of transformed weights */
int64_t winograd_tiles(const struct winograd_axes *w);   /* tiles of all images */
/* A hole of an axis of that size offers the number: a divisor, or, where it need not divide, a
 * power of two. */
bool winograd_offers(int64_t size, int64_t number, bool divides);

/* ni_AXIS, hm, hi, wi and ov are holes. NULL: the program is no such convolution. */
struct schedule *winograd_nest(const struct program *p, const struct machine *machine);

/* default_winograd.c: the same with numbers from a closed formula. NULL: as above, or channels are
 * not innermost, or the schedule is illegal. */
struct schedule *default_winograd(const struct program *p, const struct machine *machine);

#endif
