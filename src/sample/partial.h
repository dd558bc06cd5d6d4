/* A kernel under construction: what may be applied next, at these targets.
 *
 * It carries the facts that decide legality: which nodes are leaves, what each node has seen, the values of all sizes at every (distinct) target. `partial_try`
 * applies a candidate if it is legal and keeps the kernel finishable in the steps that are left;
 * otherwise it leaves everything as it was.
 */
#ifndef CANVAS_SAMPLE_PARTIAL_H
#define CANVAS_SAMPLE_PARTIAL_H

#include "sample/dim_facts.h"
#include "sample/sampler.h"

struct partial {
  struct kernel *k;
  struct dim_facts *facts;
  const struct sizes *targets; /* distinct; G set */
  int target_count;
  int64_t elements_limit;
  bool require_reach;
  bool joins;               /* the last steps may join by other rows than broadcasts */
  struct neighbours images; /* of all targets */
  struct rules rules;
  const struct limits *limits;
  int max_width;
  struct reach reach[KERNEL_NODES_MAX];
  int consumers[KERNEL_NODES_MAX];
  int width;          /* nodes without consumer */
  unsigned variables; /* mask of the free sizes that occur */
  bool bent;          /* some node is not linear: node_bends */
};

/* Steps that are left once the candidate is applied: at most so many without weights and with. */
struct remaining {
  int plain, weighted, steps;
};

void partial_start(struct partial *g);
/* Whether the leaves that a and b (or -1) take away leave a width that can still be merged: cheap,
 * checked before a pair's applications are counted. */
bool partial_width_allows(const struct partial *g, int a, int b, struct remaining left);
bool partial_try(struct partial *g, const struct candidate *c, struct remaining left);
/* After the last step: solves the output's variable and attaches the output; false if its channels
 * cannot be C. */
bool partial_output(struct partial *g);
/* The same, then checks every target. */
bool partial_finish(struct partial *g);

#endif
