/* The parts of a draw, for those who compute what draws do (probability.h). sampler.c has them. */
#ifndef CANVAS_SAMPLE_STEPS_H
#define CANVAS_SAMPLE_STEPS_H

#include "sample/partial.h"

enum { SAMPLER_TRIES = 400, WIDTH_MIN = 2, WIDTH_MAX = 8, DRAW_KINDS = 5 };
/* The options and the rules that a draw keeps, and the share of the draws that do. */
struct draw_kind {
  const struct sample_options *options;
  struct rules rules;
  double share;
};
/* All kinds of draws, shares above 0; returns their number. */
int sampler_kinds(const struct sampler *s, struct draw_kind out[DRAW_KINDS]);
/* One try of such a draw. */
bool sampler_try(struct sampler *s, const struct draw_kind *kind, struct random *r, int64_t *g);
/* All values that G may have; returns their number. */
int sampler_all_groups(const struct sampler *s, const int64_t **out);
/* How many of n primitives may own weights, at most. */
int sampler_weighted_most(const struct sample_options *o, int n);
/* The rules of a try with n primitives. */
struct rules sampler_rules_for(struct rules rules, int n);
/* A type's applications, legal or not; returns their number. `out` holds until the next call. */
int sampler_applications(struct sampler *s, const struct partial *g, const struct family *f,
                         struct remaining left, const struct candidate **out);
/* How often an application is kept, in thousandths; the weight of a type. */
int sampler_kept(const struct sample_options *o, const struct candidate *c);
int sampler_type_weight(const struct sample_options *o, const struct family *f);
/* What follows the last step of a try. */
bool sampler_finish(struct sampler *s, struct partial *partial, int64_t g);

#endif
