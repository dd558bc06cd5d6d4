/* Footprints of the loops of a bound schedule, in bytes, and the cache traffic that follows.
 *
 * The footprint of one iteration of a loop is, for each tensor that a stage inside reads or writes,
 * a box: the interval of each index while the loops outside are fixed. If a tensor is accessed
 * twice, the larger box counts.
 *
 * Traffic into a cache: consider the outermost loop whose body fits into the cache. Its iterations
 * reuse what they share, so a tensor is loaded once as the box of that whole loop. It is reloaded
 * for each iteration of the loops around, except the adjacent ones that do not change the box.
 * Every extent has to be known.
 */
#ifndef CANVAS_BIND_FOOTPRINT_H
#define CANVAS_BIND_FOOTPRINT_H

#include "bind/loop_tree.h"

struct footprints {
  int64_t *body;           /* by node: bytes touched by one iteration; of the root: by everything */
  int64_t *iterations;     /* by node: in all */
  struct touched *touched; /* private */
};

void footprints_open(const struct loop_tree *tree, struct footprints *out);
void footprints_close(struct footprints *f);

/* Bytes that a stage loads into a cache of this size. */
int64_t stage_traffic(struct footprints *f, int stage, int64_t cache);

#endif
