/* An index that depends on one axis alone, as pieces of the axis along which it moves by the same with each
 * step: what remainders, minima and maxima are made of.
 *
 *     (w+3)%56 for w in 0..56    ->    0..53: 3, 4, ..    53..56: 0, 1, 2
 */
#ifndef CANVAS_REWRITE_INDEX_PIECES_H
#define CANVAS_REWRITE_INDEX_PIECES_H

#include "program/program.h"

enum { INDEX_PIECES = 16 };

/* Places low .. high-1: at, at + slope, ... */
struct index_piece {
  int64_t low, high, at, slope;
};

struct index_pieces {
  struct index_piece piece[INDEX_PIECES]; /* one after the other, from 0 up to the axis's size */
  int count;
};

/* False: something else is in the expression, it may overflow, or there are more pieces. */
bool index_pieces(const struct program *p, int expr, int axis, int64_t size,
                  struct index_pieces *out);
int64_t index_piece_at(const struct index_piece *x, int64_t place);

#endif
