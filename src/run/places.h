/* Chooses the elements of an output that the interpreter evaluates if it cannot evaluate all.
 *
 * The corners come first, then places whose coordinates are drawn: anywhere; at either end; near
 * the end of the last whole tile of 2 .. 64; next to a constant of the program, counted from either
 * end (where padding ends, one tensor follows another, a group begins). For an output that is
 * wanted as a whole the drawn places are followed by all other elements, neighbours far from each
 * other.
 */
#ifndef CANVAS_RUN_PLACES_H
#define CANVAS_RUN_PLACES_H

#include "program/program.h"

struct places {
  int rank;
  int64_t sizes[PROGRAM_AXES];
  uint64_t seed;
  bool whole; /* chooses every element once */
};

/* Fills row-major indices of `count` elements; with `whole`, of all. */
void choose_places(const struct program *p, const struct places *of, int64_t count, int64_t *at);

#endif
