/* Whether the options contradict each other: what no try could find is refused before the first. */
#include <string.h>

#include "sample/sampler.h"

static const char *const spaces[SPACES] = {"paper", "published", "wide"};

static const uint64_t matmuls = UINT64_C(1) << PRIMITIVE_MATMUL | UINT64_C(1)
                                                                      << PRIMITIVE_MATMUL_SCALED;

static uint64_t kinds_seeing(void) {
  uint64_t all = UINT64_C(1) << KIND_MIX;
  for (int i = 0; i < PRIMITIVE_COUNT; i++)
    if (i != PRIMITIVE_FC && primitive_rows[i].facts & (FACT_SEES | FACT_WHOLE))
      all |= UINT64_C(1) << i;
  return all;
}

/* Why none of these kinds is drawn. */
static canvas_status fail_left_out(canvas_context *ctx, const char *option, uint64_t of,
                                   const struct sample_options *o) {
  if (!(of & ~o->limits.forbidden))
    return fail(ctx, CANVAS_BAD_INPUT,
                "%s needs '%s', which allow=, forbid= or a weight of 0 leaves out", option,
                kinds_word(of));
  return fail(ctx, CANVAS_BAD_INPUT,
              "%s needs '%s', which space=%s does not have: give a wider space", option,
              kinds_word(of & ~o->limits.forbidden), spaces[o->space]);
}

/* Primitives that needs take at least: those of which none can serve for two. */
static int apart(const struct limits *l, uint64_t drawable, uint64_t within) {
  uint64_t taken = 0;
  int count = 0;
  for (int i = 0; i < l->needs; i++) {
    uint64_t of = l->need[i] & drawable;
    if (of & taken || of & ~within) continue;
    taken |= of;
    count++;
  }
  return count;
}

/* At most so many of the largest kernel's primitives have weights. */
static int weighted_most(const struct sample_options *o) {
  int most = o->most * o->limits.weighted_share / 1000;
  return most < o->limits.weighted_most ? most : o->limits.weighted_most;
}

static canvas_status check_needs(canvas_context *ctx, const struct sample_options *o,
                                 uint64_t drawable) {
  const struct limits *l = &o->limits;
  int all = apart(l, drawable, UINT64_MAX), weighted = apart(l, drawable, kinds_weighted());
  for (int i = 0; i < l->needs; i++)
    if (!(l->need[i] & drawable)) return fail_left_out(ctx, "need=", l->need[i], o);
  if (l->matmul && !(matmuls & drawable)) return fail_left_out(ctx, "with_matmul=", matmuls, o);
  if (all > o->most)
    return fail(ctx, CANVAS_BAD_INPUT,
                "need= names %d primitives, and kernels have at most %d: "
                "raise primitives=",
                all, o->most);
  if (weighted > weighted_most(o))
    return fail(ctx, CANVAS_BAD_INPUT,
                "need= names %d primitives with weights, and kernels have at "
                "most %d of these: raise weighted=, weighted_share= or primitives=",
                weighted, weighted_most(o));
  return CANVAS_OK;
}

static canvas_status check_weighted(canvas_context *ctx, const struct sample_options *o,
                                    uint64_t drawable) {
  const struct limits *l = &o->limits;
  bool asked = l->weighted_given && l->weighted_least;
  if (asked && l->weighted_least > weighted_most(o))
    return fail(ctx, CANVAS_BAD_INPUT,
                "weighted=%d..%d: of at most %d primitives a share of %g is "
                "%d: raise weighted_share= or primitives=",
                l->weighted_least, l->weighted_most, o->most, l->weighted_share / 1000.0,
                weighted_most(o));
  if ((asked || o->require_reach) && (!(drawable & kinds_weighted()) || !weighted_most(o)))
    return fail(ctx, CANVAS_BAD_INPUT,
                "allow=, forbid=, weighted= and weighted_share= leave no "
                "primitive with weights: allow fc, or give require=none");
  if (!(drawable & ~kinds_weighted()))
    return fail(ctx, CANVAS_BAD_INPUT, "allow= and forbid= leave no primitive without weights");
  return CANVAS_OK;
}

/* Those that read other pixels, one way or another. */
static uint64_t kinds_across(void) {
  return kinds_seeing() | kinds_of_family(&family_fold) | kinds_of_family(&family_softmax) |
         kinds_of_family(&family_norm) | kinds_of_family(&family_resample) | matmuls |
         UINT64_C(1) << KIND_MIX;
}

static canvas_status check_pixels(canvas_context *ctx, const struct sample_options *o,
                                  uint64_t drawable, struct neighbours images) {
  const struct limits *l = &o->limits;
  if (o->require_reach && images.windows && !(drawable & kinds_seeing()))
    return fail(ctx, CANVAS_BAD_INPUT,
                "allow= and forbid= leave nothing that reads neighbours (unfold, shift, fold, "
                "softmax): allow one of them, or give require=none");
  if (o->require_reach && images.windows && l->weighted_least >= o->most)
    return fail(ctx, CANVAS_BAD_INPUT,
                "weighted=%d..%d leaves no primitive that reads neighbours: "
                "raise primitives=, or give require=none",
                l->weighted_least, l->weighted_most);
  if (l->receptive > 1 && !(drawable & kinds_across()))
    return fail(ctx, CANVAS_BAD_INPUT,
                "receptive=%d: allow= and forbid= leave no primitive that "
                "reads other pixels",
                l->receptive);
  return CANVAS_OK;
}

/* The reach takes a primitive with weights and, where windows slide, one that reads neighbours; needs
 * that hold such kinds may stand for them, and one kind may be both. */
static canvas_status check_room(canvas_context *ctx, const struct sample_options *o,
                                uint64_t drawable, struct neighbours images) {
  const struct limits *l = &o->limits;
  uint64_t weighted = drawable & kinds_weighted(), seeing = drawable & kinds_seeing(), needed = 0;
  for (int i = 0; i < l->needs; i++) needed |= l->need[i];
  bool mixes = !(needed & weighted), sees = images.windows && !(needed & seeing);
  int needs = apart(l, drawable, UINT64_MAX);
  int more = weighted & seeing ? mixes || sees : mixes + sees;
  if (!o->require_reach || needs + more <= o->most) return CANVAS_OK;
  return fail(
      ctx, CANVAS_BAD_INPUT,
      "need= names %d primitives, require=reach takes %d more (%s%s%s), and kernels have at "
      "most %d: raise primitives=, or give require=none",
      needs, more, mixes ? "one with weights" : "", mixes && sees ? ", " : "",
      sees ? "one that reads neighbours" : "", o->most);
}

canvas_status limits_check(canvas_context *ctx, const struct sample_options *o, uint64_t drawable,
                           struct neighbours images) {
  TRY(check_needs(ctx, o, drawable));
  TRY(check_weighted(ctx, o, drawable));
  TRY(check_pixels(ctx, o, drawable, images));
  return check_room(ctx, o, drawable, images);
}
