/* The matrices of Winograd's convolution with windows of 3x3. winograd_stages.c says what they are for. */
#ifndef CANVAS_REWRITE_WINOGRAD_MATRICES_H
#define CANVAS_REWRITE_WINOGRAD_MATRICES_H

#include <stdint.h>

enum { PARTS = 3, PART_TERMS = 3, TAPS = 3 };

/* by * (sum of its terms' by * element `of`); the first `by` that is 0 ends a list. */
struct part {
  double by;
  struct {
    double by;
    int of;
  } term[PART_TERMS];
};
typedef struct part matrix_row[PARTS];

struct matrices {
  int tile; /* rows of `output`; image and weights have two more */
  const matrix_row *image, *weights, *output; /* of tile + 2, 3 and tile + 2 elements */
};

const struct matrices *winograd_matrices(int64_t tile); /* NULL: there are none of that tile */

#endif
