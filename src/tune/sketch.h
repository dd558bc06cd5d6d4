/* Sketches: what a search chooses from. Each is a program, after edits, and a schedule of it whose numbers are
 * open: `w_i:{4,7,14}` is a choice, `?` any number.
 *
 *     sketch.c         the default schedule, then one sketch for each kind of tile that the formula of
 *                      autoschedule/default.h ranks well; borders as conditions; those that are the same are one
 *     sketch_open.c    the numbers of a schedule become choices: rows of the tile, blocks outside it
 *     sketch_buffer.c  what a tile of rows reads is computed for these rows only
 *     sketch_overlap.c  ... of what a window reads, so that bands of rows overlap
 *     sketch_columns.c  ... of the columns of a convolution, which is a product of matrices then
 *     sketch_channels.c  the image of a convolution in blocks of channels
 *     sketch_rows.c    rows one after the other, each sum in vectors along its row
 *     autoschedule/winograd_nest.c  a convolution with fewer products, where they are permitted
 *     sketch_text.c    a sketch that somebody wrote
 *
 * The numbers that the default machinery chose are among the choices, so that each sketch holds its best guess.
 */
#ifndef CANVAS_TUNE_SKETCH_H
#define CANVAS_TUNE_SKETCH_H

#include "autoschedule/default.h"
#include "bind/machine.h"
#include "schedule/schedule.h"

/* Of each kind some stay where there are too many. */
enum sketch_family {
  FAMILY_PLAIN,
  FAMILY_BORDERS,  /* conditions of borders stay in the sum */
  FAMILY_SUMS,     /* partial sums */
  FAMILY_BUFFERED, /* what a block of rows reads is computed for it alone */
  FAMILY_CHANNELS, /* the image is laid out in blocks of channels */
  FAMILY_ROWS,     /* one row after the other */
  FAMILY_WINOGRAD,
  FAMILY_COUNT
};

struct sketch {
  char *rule; /* what made it, for people: "default", "lanes oc 32, rows w, panels outside" */
  struct program
      *program; /* what edits made of the given one: the same inputs and outputs; owned */
  struct schedule *schedule; /* with holes; owned */
  double cycles;             /* by the formula, with the numbers that it would take */
  enum sketch_family family;
  enum default_blocks blocks; /* the order of its loops */
};
struct sketches {
  VEC(struct sketch);
};
struct sketch_options {
  bool winograd; /* its rounding error is permitted */
};

/* The first is the default without a hole, then the best by the formula first. At most SKETCHES: of more the
 * worst of the largest family goes, again and again. */
enum { SKETCHES = 40, WINOGRAD = 4 /* the tile where it is permitted */ };
canvas_status sketches_of(canvas_context *ctx, const struct program *p,
                          const struct machine *machine, const struct sketch_options *options,
                          struct sketches *out);
void sketches_free(struct sketches *s);

/* sketch_open.c: numbers of the schedule that was made under the wish become choices. */
void sketch_open(const struct default_made *made, const struct default_constraint *wish,
                 const struct machine *machine);

/* sketch_buffer.c: the stage is computed for one block of rows at a time, kept with the rows innermost (`across`) or
 * as it is told. False: it cannot be, and the schedule may be damaged. */
bool sketch_buffer(struct default_made *made, const char *stage, bool across,
                   const struct machine *machine);

/* sketch_overlap.c: the stage is computed for bands of so many rows of what reads it in a window. False: it cannot be. */
int64_t sketch_window(const struct program *p,
                      int stage); /* how many rows that has; 0: none reads it so */
bool sketch_overlap(struct default_made *made, const char *stage, int64_t rows,
                    const struct machine *machine);

/* sketch_columns.c: the program with the columns of its convolution as a stage, and the name of that; NULL: it has
 * none, or it is no convolution of all channels. */
struct program *sketch_columns(const struct program *p, const struct machine *machine,
                               char name[PROGRAM_NAME]);

/* ... and its stage, and the load of the image itself; false where that has a condition, or there is none. */
bool sketch_convolution(const struct program *p, int *stage, int *load);

/* sketch_channels.c: the program with the image of its convolution in blocks of channels, and the name of that stage;
 * NULL as above, or its channels are no whole blocks. */
struct program *sketch_channels(const struct program *p, const struct machine *machine,
                                char name[PROGRAM_NAME]);

/* sketch_rows.c: rows one after the other, through all stages; NULL: they do not share their rows, or nothing sums
 * along them. */
struct schedule *sketch_rows(const struct program *p, const struct machine *machine);

/* sketch_text.c: a schedule with holes, and before it lines `edit ...` of edits of the program. */
canvas_status sketch_from_text(canvas_context *ctx, const struct program *p, const char *text,
                               size_t length, struct sketch *out);
void sketch_free(struct sketch *s); /* what it owns */

#endif
