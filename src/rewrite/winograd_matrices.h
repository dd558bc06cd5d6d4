/* The transform matrices of Winograd's convolution with 3x3 windows. winograd_stages.c uses
 * them. */
#ifndef CANVAS_REWRITE_WINOGRAD_MATRICES_H
#define CANVAS_REWRITE_WINOGRAD_MATRICES_H

#include <stdint.h>

enum { PARTS = 3, PART_TERMS = 3, TAPS = 3 };

/* The value by * (sum over terms of by * element `of`). A `by` of 0 ends a list of parts or
 * terms. */
struct part {
  double by;
  struct {
    double by;
    int of;
  } term[PART_TERMS];
};
typedef struct part matrix_row[PARTS]; /* the sum of the parts */

struct matrices {
  int tile;                                   /* of the output, in rows and columns */
  const matrix_row *image, *weights, *output; /* tile + 2, tile + 2 and tile rows */
};

const struct matrices *winograd_matrices(int64_t tile); /* NULL if there are none for that tile */

#endif
