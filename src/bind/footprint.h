/* How many bytes the loops of a bound schedule touch, and what that makes of the caches' traffic.
 *
 * One iteration of a loop touches, of each tensor that a stage in it reads or writes, a box: the
 * interval of each of its indices while the loops outside stand still. Where the same tensor is
 * touched twice, the larger box counts.
 *
 * While the iterations of the outermost loop whose body fits into a cache follow each other, what
 * one shares with the next stays there: a tensor comes in as the box of that whole loop, and once
 * more for each iteration of the loops around it, but of those next to it that do not change the box.
 * Every extent has to be known.
 */
#ifndef CANVAS_BIND_FOOTPRINT_H
#define CANVAS_BIND_FOOTPRINT_H

#include "bind/loop_tree.h"

struct footprints {
  int64_t *body;       /* by node: bytes that one iteration touches; of the root: all */
  int64_t *iterations; /* by node: iterations in all */
  struct touched *touched;
};

void footprints_open(const struct loop_tree *tree, struct footprints *out);
void footprints_close(struct footprints *f);

/* Bytes that a stage brings into a cache of this size. */
int64_t stage_traffic(struct footprints *f, int stage, int64_t cache);

#endif
