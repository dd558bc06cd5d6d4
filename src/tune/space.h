/* The space of a schedule with holes: all ways to fill them with numbers.
 *
 *     w_i:{7,14,28}, oc_v:{16,32}   ->   knobs w_i and oc_v, 6 points:
 *                                        0 is (7, 16), 1 (14, 16), ... 5 (28, 32)
 *
 * A knob is a loop without a number, with its possible numbers, ascending. A point is a mixed-radix
 * number with one digit per knob, the first one fastest. Numbers are those listed in the text.
 * Otherwise they divide the axis of the loop, or are any if the axis may have a remainder (mask,
 * peel).
 *
 * Most points of a large space are not legal. A point is legal if it binds without warnings: its
 * tiles fit the registers, its buffers the stack and the memory.
 */
#ifndef CANVAS_TUNE_SPACE_H
#define CANVAS_TUNE_SPACE_H

#include "base/buf.h"
#include "bind/loop_tree.h"

enum {
  SPACE_KNOBS = 48,  /* knobs of a schedule */
  SPACE_NUMBERS = 96 /* numbers of a knob: of more, the smallest, then powers of two and divisors */
};

/* Numbers of a loop `yi:?`. */
enum space_numbers {
  NUMBERS_AUTO,     /* ANY if the axis may have a remainder, else DIVISORS */
  NUMBERS_DIVISORS, /* divisors of the axis */
  NUMBERS_POWERS,   /* powers of two; only divisors unless the axis may have a remainder */
  NUMBERS_ANY       /* all up to its size; only divisors unless the axis may have a remainder */
};

struct knob {
  int level;
  const char *name;
  int64_t *values;
  int count; /* >= 1 */
};

struct space {
  const struct program *program; /* borrowed, like the schedule */
  const struct schedule *schedule;
  struct machine machine;
  struct knob knobs[SPACE_KNOBS];
  int count;
  int64_t size; /* number of points, below 2^62 */
};

/* CANVAS_BAD_INPUT: the schedule does not fit the program, or has too many knobs or points. */
canvas_status space_new(canvas_context *ctx, const struct program *program,
                        const struct schedule *schedule, const struct machine *machine,
                        enum space_numbers numbers, struct space **out);
void space_free(struct space *space); /* NULL is fine */

/* The digits of a point by knob, and the point of digits, each below its knob's count. */
void space_digits(const struct space *space, int64_t point, int digits[SPACE_KNOBS]);
int64_t space_point(const struct space *space, const int digits[SPACE_KNOBS]);
/* The point nearest to these numbers by level of the schedule: each knob takes the nearest value,
 * the first one if `extents` is 0. */
int64_t space_nearest(const struct space *space, const int64_t *extents);

/* Writes "w_i=14,oc_v=16", for schedule_set; "" without knobs. */
void space_print(const struct space *space, int64_t point, struct buf *out);

/* Binds the schedule of a point; the tree owns it. CANVAS_BAD_INPUT: illegal. */
canvas_status space_bind(canvas_context *ctx, const struct space *space, int64_t point,
                         struct loop_tree **out);
/* Binds a point; NULL: illegal, or binding warns. */
struct loop_tree *space_legal(const struct space *space, int64_t point);

#endif
