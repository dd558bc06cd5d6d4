/* The space of a schedule with holes: every way to give them numbers.
 *
 *     w_i:{7,14,28}, oc_v:{16,32}   ->   knobs w_i and oc_v, 6 points: 0 is (7, 16), 1 (14, 16), ... 5 (28, 32)
 *
 * A knob is a loop that needs a number from outside, with the numbers that it may have, ascending; a point is
 * the number that its digits make, one for each knob, the first the fastest. Numbers come from the
 * text where it lists them; else they divide the axis that the loop is a part of, or, where the axis may
 * have a remainder (mask, peel), they are any.
 *
 * Most points of a large space are no schedules. What may be run is what can be bound and makes binding
 * say nothing: its tiles fit into the registers, its buffers into the stack and the memory.
 */
#ifndef CANVAS_TUNE_SPACE_H
#define CANVAS_TUNE_SPACE_H

#include "base/buf.h"
#include "bind/loop_tree.h"

enum {
  SPACE_KNOBS = 48,  /* of a schedule */
  SPACE_NUMBERS = 96 /* of a knob: of more, the smallest, then powers of two and divisors */
};

/* The numbers of a loop `yi:?`. */
enum space_numbers {
  NUMBERS_AUTO,     /* ANY where the axis may have a remainder, else DIVISORS */
  NUMBERS_DIVISORS, /* of the axis */
  NUMBERS_POWERS,   /* of two, those that divide it unless it may have a remainder */
  NUMBERS_ANY /* 1, 2, ... up to its size; those that divide it unless it may have a remainder */
};

struct knob {
  int level;
  const char *name;
  int64_t *values;
  int count; /* >= 1 */
};

struct space {
  const struct program *program; /* borrowed, as is the schedule */
  const struct schedule *schedule;
  struct machine machine;
  struct knob knobs[SPACE_KNOBS];
  int count;
  int64_t size; /* points; at most 2^62 */
};

/* CANVAS_BAD_INPUT: the schedule is not for the program, has more knobs or more points than that. */
canvas_status space_new(canvas_context *ctx, const struct program *program,
                        const struct schedule *schedule, const struct machine *machine,
                        enum space_numbers numbers, struct space **out);
void space_free(struct space *space); /* NULL is fine */

/* The digits of a point, by knob; and the point of digits, each below the knob's count. */
void space_digits(const struct space *space, int64_t point, int digits[SPACE_KNOBS]);
int64_t space_point(const struct space *space, const int digits[SPACE_KNOBS]);
/* The point nearest to these numbers by loop: of each knob the nearest value; where `extents` is 0, the
 * first. `extents` by level of the schedule, as of a tree of the same schedule. */
int64_t space_nearest(const struct space *space, const int64_t *extents);

/* "w_i=14,oc_v=16", for schedule_set; "" without knobs. */
void space_print(const struct space *space, int64_t point, struct buf *out);

/* The schedule of a point, bound; it owns its schedule. CANVAS_BAD_INPUT: it is none. */
canvas_status space_bind(canvas_context *ctx, const struct space *space, int64_t point,
                         struct loop_tree **out);
/* ... and NULL as well where binding warns. */
struct loop_tree *space_legal(const struct space *space, int64_t point);

#endif
