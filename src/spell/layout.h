/* Where the boxes of a picture stand: a layered drawing, data flowing from top to bottom.
 *
 *   layers     a node stands one layer below the lowest of its inputs (the longest path to it)
 *   lanes      a tensor that is read further down runs through the layers between in a lane, one
 *              for all its readers, so that no edge ever crosses a box
 *   order      barycentre sweeps within the layers; the order with the fewest crossings is kept
 *   columns    every cell (a box or a lane) wants to stand where its neighbours stand; those that
 *              would overlap move as little as possible, in the sense of least squares
 *
 * Integers only: the same kernel is drawn the same on every machine.
 */
#ifndef CANVAS_SPELL_LAYOUT_H
#define CANVAS_SPELL_LAYOUT_H

#include "kernel/kernel.h"

struct layout {
  int layers, width;           /* width: of all boxes together */
  int first[KERNEL_NODES_MAX]; /* the layer where a tensor is made: its box */
  int last[KERNEL_NODES_MAX];  /* the last layer that it passes in a lane; first if in none */
  int count[KERNEL_NODES_MAX]; /* cells of a layer */
  int span[KERNEL_NODES_MAX];  /* how far aside an edge goes at most, coming from the layer above */
  int order[KERNEL_NODES_MAX][KERNEL_NODES_MAX];  /* [layer][place]: the tensor */
  int place[KERNEL_NODES_MAX][KERNEL_NODES_MAX];  /* [layer][tensor] */
  int centre[KERNEL_NODES_MAX][KERNEL_NODES_MAX]; /* [layer][tensor]: of box or lane, from 0 */
};

/* boxes[i]: the width of node i's box. */
void layout_make(const struct kernel *k, const int *boxes, struct layout *out);

#endif
