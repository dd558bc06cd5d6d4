/* Which elements of an output the interpreter evaluates where it cannot evaluate all of them.
 *
 * First the corners, then places each of whose coordinates is, by chance: anywhere; at a border; near the
 * end of the last whole tile of 2 .. 64; beside a constant of the program's indices and conditions,
 * counted from either end (where padding ends, one tensor follows another, a group begins). Of an
 * output that is wanted whole they come first, each once, and then all others, neighbours far apart.
 */
#ifndef CANVAS_RUN_PLACES_H
#define CANVAS_RUN_PLACES_H

#include "program/program.h"

struct places {
  int rank;
  int64_t sizes[PROGRAM_AXES];
  uint64_t seed;
  bool whole; /* every element once */
};

/* Flat places of `count` elements: of a whole output all of them. */
void choose_places(const struct program *p, const struct places *of, int64_t count, int64_t *at);

#endif
