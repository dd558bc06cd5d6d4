/* An index that depends on one axis only, as affine pieces of the axis: what remainders, quotients,
 * minima and maxima make of it.
 *
 *     (w+3)%56 for w in 0..56    ->    0..53: w + 3    53..56: w - 53
 */
#ifndef CANVAS_REWRITE_INDEX_PIECES_H
#define CANVAS_REWRITE_INDEX_PIECES_H

#include "program/program.h"

enum { INDEX_PIECES = 16 };

/* The values at, at + slope, ... on [low, high) of the axis. */
struct index_piece {
  int64_t low, high, at, slope;
};

struct index_pieces {
  struct index_piece piece[INDEX_PIECES]; /* ascending, without gaps, over the whole axis */
  int count;
};

/* False if the expression depends on anything else, may overflow, or has more than INDEX_PIECES
 * pieces. */
bool index_pieces(const struct program *p, int expr, int axis, int64_t size,
                  struct index_pieces *out);
int64_t index_piece_at(const struct index_piece *x,
                       int64_t place); /* the value at a place of the axis */

#endif
