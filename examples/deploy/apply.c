/* An operator that Canvas found, in a program of your own: no Python, no Canvas, no library. It takes
 * what you ship, involution.c and involution.h, and calls one function.
 */
#include <stdint.h>
#include <stdio.h>

#include "involution.h"

/* The sizes that the header tells of. */
enum { CHANNELS = 32, HEIGHT = 14, WIDTH = 14, REDUCED = 8, GROUPS = 2, WINDOW = 9 };

static float image[CHANNELS * HEIGHT * WIDTH], result[CHANNELS * HEIGHT * WIDTH];
static float reduce[REDUCED * CHANNELS], span[GROUPS * WINDOW * REDUCED];

/* Numbers in [-1, 1) instead of an image and of weights that were trained. */
static void fill(float *x, int count, uint32_t seed) {
  for (int i = 0; i < count; i++) {
    seed = seed * 1664525u + 1013904223u;
    x[i] = (float)(seed >> 8) / (float)(1 << 23) - 1;
  }
}

int main(void) {
  fill(image, CHANNELS * HEIGHT * WIDTH, 1);
  fill(reduce, REDUCED * CHANNELS, 2);
  fill(span, GROUPS * WINDOW * REDUCED, 3);
  if (involution(image, reduce, span, result)) {
    fprintf(stderr, "no memory\n");
    return 1;
  }
  double squares = 0;
  for (int i = 0; i < CHANNELS * HEIGHT * WIDTH; i++) squares += (double)result[i] * result[i];
  printf("first %.3f, mean square %.3f\n", (double)result[0],
         squares / (CHANNELS * HEIGHT * WIDTH));
  return 0;
}
