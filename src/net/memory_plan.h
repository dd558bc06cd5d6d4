/* Where the values of a network live: one arena, planned before anything runs.
 *
 * A value lives from the call that computes it through the last call that reads it; an output lives to the
 * end, in memory of the caller, as inputs and weights do; a constant value is computed once and kept beside the
 * weights. Values that are alive at once do not overlap,
 * but for one that a call computes element by element in the place of an argument that nobody reads
 * afterwards (in_place.c says when that is legal), and for values that are contiguous parts of others:
 * what a concatenation copies is computed where it is wanted, and a slice or a reshape is read where it is.
 * The calls that would copy are skipped: whoever runs the network by the plan leaves out calls with
 * skipped[call], whose results are there already. Offsets say where a part lies like that of any other value.
 * A part and what it is a part of take nobody's place and give theirs to nobody (parts_in_place.c).
 */
#ifndef CANVAS_NET_MEMORY_PLAN_H
#define CANVAS_NET_MEMORY_PLAN_H

#include "net/network.h"

enum { PLAN_ALIGNMENT = 64 };

struct planned_value {
  int64_t offset; /* bytes, a multiple of PLAN_ALIGNMENT; -1: it is not in the arena */
  int64_t bytes;
  int first, last; /* the calls between which it lives, both included */
  int in_place_of; /* the argument whose place it takes, or -1 */
  int part_of; /* a value of the arena within which it lies, or -1: it holds the same elements there ... */
  int64_t within; /* ... from this byte on, a multiple of PLAN_ALIGNMENT; offset has been told so */
};

struct memory_plan {
  struct planned_value *values; /* by tensor */
  bool *skipped; /* by call: all its results are parts, or made of parts: it is not run */
  int64_t bytes; /* of the arena */
  int64_t apart; /* what it would be if every value had memory of its own */
  int64_t least; /* what is alive at once at most: no plan needs less */
};

struct memory_plan memory_plan_of(const struct network *n);
/* The same, where a value takes the place of an argument only if `may` agrees, too: an output and an input of
 * the call's program, by number. */
struct memory_plan memory_plan_where(const struct network *n,
                                     bool (*may)(const void *data, int call, int output, int input),
                                     const void *data);
void memory_plan_free(struct memory_plan *plan);

/* in_place.c: whether a call of the program may write the output where the input stands: each element is
 * computed from the same element of the input, which nothing reads once it is written. */
bool program_in_place(const struct program *p, int output, int input);

/* parts_in_place.c: fills part_of, within and skipped, of values for which arena[tensor] is set. */
void find_parts_in_place(const struct network *n, const bool *arena, struct memory_plan *plan);
/* The value that is no part, in which this one lies, and from which byte of it on. */
int whole_of(const struct memory_plan *plan, int value, int64_t *within);

#endif
