/* The tile that is being chosen, shared by the three files that choose it: default_tile.c (every
 * candidate), default_cycles.c (what one of them takes), default_order.c (the order of its loops). */
#ifndef CANVAS_TRANSFORM_DEFAULT_CHOOSER_H
#define CANVAS_TRANSFORM_DEFAULT_CHOOSER_H

#include "transform/default.h"

enum { DEFAULT_CALLS = 8 }; /* operations of a point from which on its tile is small */

struct chooser {
  const struct default_facts *f;
  const struct machine *machine;
  struct default_options options;
  int lanes; /* of a whole vector */
  struct default_tile now, best;
};

/* default_cycles.c */
int chooser_bytes(const struct chooser *c, int tensor); /* of an element */
int64_t chooser_vectors(const struct chooser *c);       /* of the tile `now` */
int64_t chooser_rows(const struct chooser *c);
bool chooser_fits_registers(const struct chooser *c);
double chooser_cycles(struct chooser *c); /* sets now.packed, too */

/* default_order.c: in c->best */
void chooser_order(struct chooser *c);

static inline int64_t up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

#endif
