/* Search methods: functions that measure candidates until the budget is spent.
 *
 * All are seeded (search->random) and share one budget; the caller finds the best in
 * search->trials. A new method is a function and a row of METHODS.
 */
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
  int trials; /* default number of trials */
  const char *summary;
  canvas_status (*run)(struct search *s);
};
extern const struct method methods[];
extern const int method_count;

const struct method *method_find(const char *name); /* NULL: unknown */

#define X(name, ...) canvas_status method_##name(struct search *s);
METHODS(X)
#undef X

/* method_quick.c: candidates that the model suggests, best first, including the default. */
void method_shortlist(struct search *s, struct ranking *out);

#endif
