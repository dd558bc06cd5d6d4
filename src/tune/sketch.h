/* Sketches: an edited program and a schedule whose numbers are open. `w_i:{4,7,14}` is a choice,
 * `?` any number. A search chooses among them.
 *
 *     sketch.c           the default schedule, then a sketch for each kind of tile that the formula
 *                        of autoschedule/default.h ranks well; equal ones are merged
 *     sketch_open.c      opens numbers of a schedule: rows of the tile, blocks outside it
 *     sketch_buffer.c    computes what a tile of rows reads for these rows only
 *     sketch_overlap.c   computes what a window reads for overlapping bands of rows
 *     sketch_columns.c   makes a convolution a product of matrices (im2col)
 *     sketch_channels.c  lays out the image of a convolution in blocks of channels
 *     sketch_rows.c      processes row after row, with horizontal reductions
 *     sketch_text.c      reads a user's sketch
 *     autoschedule/winograd_nest.c  Winograd's convolution, if permitted
 *
 * The default's numbers are among the choices, so that each sketch includes its best guess.
 */
#ifndef CANVAS_TUNE_SKETCH_H
#define CANVAS_TUNE_SKETCH_H

#include "autoschedule/default.h"
#include "bind/machine.h"
#include "schedule/schedule.h"

/* Families of sketches: if there are too many, each keeps some. */
enum sketch_family {
  FAMILY_PLAIN,
  FAMILY_GUARDED,  /* index conditions of padding stay in the reduction */
  FAMILY_SUMS,     /* partial sums */
  FAMILY_BUFFERED, /* producers are computed per block of rows */
  FAMILY_CHANNELS, /* image in blocks of channels */
  FAMILY_ROWS,     /* row by row */
  FAMILY_WINOGRAD,
  FAMILY_COUNT
};

struct sketch {
  char *rule; /* description for people, e.g. `lanes oc 32, rows w, panels in blocks` */
  struct program *program;   /* edited program with the same inputs and outputs; owned */
  struct schedule *schedule; /* schedule with holes; owned */
  double cycles;             /* cycles by the formula, with its own numbers */
  enum sketch_family family;
  enum default_blocks blocks; /* loop order */
};
struct sketches {
  VEC(struct sketch);
};
struct sketch_options {
  bool winograd; /* permits Winograd's convolution, which rounds more */
};

/* The first sketch is the default without holes, the others follow by cycles of the formula. Beyond
 * SKETCHES the worst of the largest family is dropped repeatedly. */
enum { SKETCHES = 40, WINOGRAD = 4 /* largest tile if permitted */ };
canvas_status sketches_of(canvas_context *ctx, const struct program *p,
                          const struct machine *machine, const struct sketch_options *options,
                          struct sketches *out);
void sketches_free(struct sketches *s);

/* sketch_open.c: makes choices of the numbers of a schedule made under the constraint. */
void sketch_open(const struct default_made *made, const struct default_constraint *constraint,
                 const struct machine *machine);

/* sketch_buffer.c: computes the stage per block of rows, stored with the rows innermost (`across`)
 * or in its own layout. False: impossible, and the schedule may be damaged. */
bool sketch_buffer(struct default_made *made, const char *stage, bool across,
                   const struct machine *machine);

/* sketch_overlap.c: computes the stage per band of `rows` rows of its consumer, which reads it in a
 * window. False: impossible. */
int64_t sketch_window(const struct program *p, int stage); /* rows of the consumer; 0: no window */
bool sketch_overlap(struct default_made *made, const char *stage, int64_t rows,
                    const struct machine *machine);

/* sketch_columns.c: the program with the columns of its convolution as a stage, and the name of
 * that; NULL: no dense convolution. */
struct program *sketch_columns(const struct program *p, const struct machine *machine,
                               char name[PROGRAM_NAME]);

/* The stage of the convolution and its load of the image; false: none, or the load is guarded. */
bool sketch_convolution(const struct program *p, int *stage, int *load);

/* sketch_channels.c: the program with the image of its convolution in blocks of channels, and the
 * name of that stage; NULL: no convolution, or no whole blocks. */
struct program *sketch_channels(const struct program *p, const struct machine *machine,
                                char name[PROGRAM_NAME]);

/* sketch_rows.c: a schedule row by row through all stages; NULL: stages do not share rows, or
 * nothing reduces along them. */
struct schedule *sketch_rows(const struct program *p, const struct machine *machine);

/* sketch_text.c: reads lines `edit ...`, then a schedule with holes. */
canvas_status sketch_from_text(canvas_context *ctx, const struct program *p, const char *text,
                               size_t length, struct sketch *out);
void sketch_free(struct sketch *s); /* frees what it owns */

#endif
