/* Search methods: each a function that measures what it thinks worth it until the budget is spent.
 *
 * All of them are seeded (search->random) and answer to the same budget; what is best is found in
 * search->trials by the caller. A new one is a function and a row of METHODS. */
#ifndef CANVAS_TUNE_METHOD_H
#define CANVAS_TUNE_METHOD_H

#include "tune/search.h"

/* clang-format off */
#define METHODS(X) \
  X(quick,      64,   "the model's shortlist, then coordinate descent") \
  X(oneshot,    0,    "the model alone, nothing is compiled") \
  X(random,     1000, "random points") \
  X(exhaustive, 1000000, "every point, in order") \
  X(ga,         1000, "a genetic algorithm, as AutoTVM's GATuner") \
  X(searching,  1000, "all neighbours of good points, as AutoScheduler's searching") \
  X(q,          1000, "directions learned by Q-learning, as AutoScheduler's q") \
  X(droplet,    1000, "coordinate descent over steps that a t-test confirms, as AutoTVM's DropletTuner") \
  X(evolution,  1000, "mutations ranked by the model, as Ansor's evolutionary search")
/* clang-format on */

struct method {
  const char *name;
  int trials; /* unless the user says so */
  const char *summary;
  canvas_status (*run)(struct search *s);
};
extern const struct method methods[];
extern const int method_count;

const struct method *method_find(const char *name); /* NULL: there is none */

#define X(name, ...) canvas_status method_##name(struct search *s);
METHODS(X)
#undef X

/* method_quick.c: what the model would try, the best first; the default is in it. */
void method_shortlist(struct search *s, struct ranking *out);

#endif
