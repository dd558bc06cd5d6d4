/* The parts of a draw, for those who compute what draws do (probability.h). They are in sampler.c,
 * applications.c and learned_steps.c. */
#ifndef CANVAS_SAMPLE_STEPS_H
#define CANVAS_SAMPLE_STEPS_H

#include "base/random.h"
#include "sample/partial.h"

enum { SAMPLER_TRIES = 400, WIDTH_MIN = 2, WIDTH_MAX = 8, DRAW_KINDS = 10 };
/* The options and the rules that a draw keeps, and the share of the draws that do. */
struct draw_kind {
  const struct sample_options *options;
  struct rules rules;
  double share;
  bool begun; /* as a part of a known kernel */
};
/* All kinds of draws, shares above 0; returns their number. */
int sampler_kinds(const struct sampler *s, struct draw_kind out[DRAW_KINDS]);
/* The functions below go by the options of this kind from now on. */
void sampler_take(struct sampler *s, const struct draw_kind *kind);
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
/* All applications of a learned step, legal or not, and their weights, until the next call. */
int sampler_learned_applications(struct sampler *s, const struct partial *g, struct remaining left,
                                 uint64_t of, const struct candidate **all,
                                 const uint32_t **weights);
/* What is left at a learned step of n primitives in all, of which `steps` are to come, this one
 * included; and after one of its applications. */
struct remaining sampler_left(const struct sampler *s, int steps, int n);
struct remaining sampler_left_after(struct remaining left, const struct candidate *c);
/* How a draw begins as a known kernel (learned_steps.c). The kernels it may begin as; the nodes of
 * one that may come next, where copies[i] is the copy of node i, -1: none yet; a node as an
 * application, false where its window or its share of 0 is not drawn; how many primitives such a
 * draw has: begun ones and up to BEGUN_MORE - 1 others, and at least and at most so many. */
enum { BEGUN_MORE = 4 };
int sampler_known(const struct sampler *s);
const struct kernel *sampler_known_kernel(const struct sampler *s, int i);
int known_next(const struct kernel *known, const int *copies, int out[KERNEL_NODES_MAX]);
bool known_application(const struct sampler *s, const struct kernel *known, int node,
                       const int *copies, struct neighbours images, struct candidate *out);
void known_range(const struct sample_options *o, int *least, int *most);
/* How often an application is kept, in thousandths; the weight of a type. */
int sampler_kept(const struct sample_options *o, const struct candidate *c);
int sampler_type_weight(const struct sample_options *o, const struct family *f);
/* What follows partial_finish in a try: whether the finished kernel is simple and keeps the rules. */
bool sampler_passes(struct sampler *s, const struct rules *rules, int64_t g);

#endif
