/* A lower bound of the bytes that a finished kernel moves over all layers: RULE_BYTES, most often broken,
 * is judged by it before all other rules. It takes dims that are known already (dim_facts.h) where the
 * rule takes the sizes of every layer.
 *
 * Kernels that grow are not judged. A free size may still become 1 there, so that a bound of them rejects
 * next to nothing (docs/reports/sampling.md).
 */
#ifndef CANVAS_SAMPLE_BYTES_BOUND_H
#define CANVAS_SAMPLE_BYTES_BOUND_H

#include "sample/dim_facts.h"
#include "sample/rules.h"

struct bytes_bound {
  int64_t dense; /* bytes that dense convolutions move at all layers */
  int64_t fixed; /* bytes that any kernel moves beside its nodes: pooling, projections, means */
  struct {
    VEC(int64_t);
  } copies; /* of the kernel, by distinct target, over all layers */
};

/* `times`: how many layers are as each of `layers`; `sizes`: the distinct targets, as sizes without G of
 * a kernel without S. */
void bytes_bound_open(const struct targets *layers, const int64_t *times, const struct sizes *sizes,
                      int count, struct bytes_bound *out);
void bytes_bound_close(struct bytes_bound *b);
/* Whether a finished kernel without S surely breaks RULE_BYTES; `targets`: those sizes, with G. */
bool bytes_bound_broken(const struct bytes_bound *b, struct dim_facts *facts,
                        const struct sizes *targets, const struct rules *rules,
                        const struct kernel *k);

#endif
