/* What dims come to at all targets of a sampler, remembered: most of a draw's dims were seen before.
 */
#ifndef CANVAS_SAMPLE_DIM_FACTS_H
#define CANVAS_SAMPLE_DIM_FACTS_H

#include "dim/dim.h"

/* The values of a dim with all variables 1, where it has one at every target. */
struct dim_fact {
  struct dim dim;
  const struct sizes *targets;
  int64_t g;
  bool whole;          /* at every target, if a variable in the numerator makes it so */
  const double *ratio; /* by target; NULL where a size is missing or a number is too large */
  /* By target, NULL where a number is too large: the least value where the rules give free sizes theirs
   * (free_sizes_usual), whatever else the kernel holds. */
  const int64_t *least;
};

struct dim_facts;
/* `most`: the largest number of targets that will be looked at. */
struct dim_facts *dim_facts_new(int most);
void dim_facts_free(struct dim_facts *f);
/* Of `count` targets with one value of G; valid until the next call. */
const struct dim_fact *dim_facts_of(struct dim_facts *f, const struct dim *d,
                                    const struct sizes *targets, int count);

#endif
