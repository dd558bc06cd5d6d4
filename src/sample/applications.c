/* What may be applied at a step, and how often: see sampler.h, steps.h. */
#include <string.h>

#include "sample/state.h"

static const uint64_t matmuls = UINT64_C(1) << PRIMITIVE_MATMUL | UINT64_C(1)
                                                                      << PRIMITIVE_MATMUL_SCALED;

const struct family *const often_families[OFTEN_TYPES] = {[OFTEN_GROUPING] = &family_group,
                                                          [OFTEN_SHIFT] = &family_shift,
                                                          [OFTEN_UNFOLD] = &family_unfold,
                                                          [OFTEN_ELEMENTWISE] = &family_map,
                                                          [OFTEN_FOLD] = &family_fold,
                                                          [OFTEN_SOFTMAX] = &family_softmax,
                                                          [OFTEN_BROADCAST] = &family_broadcast,
                                                          [OFTEN_MATMUL] = &family_matmul,
                                                          [OFTEN_SWAP] = &family_swap,
                                                          [OFTEN_STACK] = &family_stack,
                                                          [OFTEN_PICK] = &family_pick,
                                                          [OFTEN_RESAMPLE] = &family_resample,
                                                          [OFTEN_NORM] = &family_norm,
                                                          [OFTEN_COORDS] = &family_coords,
                                                          [OFTEN_FC] = &family_fc,
                                                          [OFTEN_LEARNED] = &family_learned};

static bool is_listed(const struct families *f, const struct family *family) {
  bool known = false;
  for (int i = 0; i < f->weighted_count; i++) known |= f->weighted[i] == family;
  for (int i = 0; i < f->plain_count; i++) known |= f->plain[i] == family;
  return known;
}

/* Steps with weights are counted apart: their families are drawn by weight among each other. */
canvas_status families_list(canvas_context *ctx, const struct row *rows, int count,
                            enum kernel_space space, struct families *out) {
  *out = (struct families){.space = space};
  for (const struct row *row = rows; row < rows + count; row++) {
    const struct family *family = row->family;
    if (row->space > space || is_listed(out, family)) continue;
    if (out->plain_count == FAMILIES_MAX || out->weighted_count == FAMILIES_MAX)
      return fail(ctx, CANVAS_BAD_INPUT, "there are more than %d families to draw", FAMILIES_MAX);
    if (row->facts & FACT_WEIGHTS)
      out->weighted[out->weighted_count++] = family;
    else
      out->plain[out->plain_count++] = family;
  }
  return CANVAS_OK;
}

enum kernel_space sampler_space_of(const struct candidate *c) {
  const struct row *row = &primitive_rows[c->op];
  enum kernel_space own = row->family->space ? row->family->space(c) : row->space;
  return own > row->space ? own : row->space;
}

int families_choices(const struct families *f, const struct family *family, const struct kernel *k,
                     int a, int b, struct candidate out[CANDIDATES_MAX]) {
  int count, kept = 0;
  if (family->choices_within) {
    kept = family->choices_within(k, a, f->space, out);
  } else {
    count = family->choices ? family->choices(k, a, b, out) : 0;
    for (int i = 0; i < count; i++)
      if (f->space == SPACE_WIDE || sampler_space_of(&out[i]) <= f->space) {
        if (kept < i) out[kept] = out[i];
        kept++;
      }
  }
  return f->limits ? limits_choices(f->limits, out, kept, CANDIDATES_MAX) : kept;
}

uint64_t sampler_kinds_of(enum kernel_space space) {
  uint64_t all = space >= SPACE_PUBLISHED ? UINT64_C(1) << KIND_MIX : 0;
  for (int i = 0; i < PRIMITIVE_COUNT; i++)
    if (primitive_rows[i].space <= space) all |= UINT64_C(1) << i;
  return all;
}

int families_drop(const struct family **all, int count, uint64_t drawable) {
  int kept = 0;
  for (int i = 0; i < count; i++)
    if (kinds_of_family(all[i]) & drawable) all[kept++] = all[i];
  return kept;
}

/* The windows that stand in the place of k=K in `c`, where it is none. */
static int constant_windows(const struct candidate *c, struct neighbours images,
                            struct candidate *out) {
  static const int sizes[] = {3, 5};
  int count = 0;
  if (c->attrs.over & ~images.pixels) return 0;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++, count++) {
    out[count] = *c;
    out[count].attrs.amount = sizes[i];
  }
  return count;
}

int sampler_offers(const struct families *families, const struct family *f,
                   struct neighbours images, const struct kernel *k, int a, int b,
                   struct candidate out[CANDIDATES_MAX]) {
  if (f != &family_unfold) return families_choices(families, f, k, a, b, out);
  struct candidate windows[CANDIDATES_MAX];
  int found = families_choices(families, f, k, a, b, windows), count = 0;
  for (int i = 0; i < found; i++) {
    const struct candidate *c = &windows[i];
    unsigned over = c->attrs.over & ROLES_SPATIAL;
    bool is_window = !(over & ~(c->attrs.amount ? images.pixels : images.windows));
    if (is_window)
      out[count++] = *c;
    else if (!c->attrs.amount && families->space == SPACE_PAPER)
      count += constant_windows(c, images, out + count);
  }
  return count;
}

/* Applications of the kinds `of`. */
static void gather(struct sampler *s, const struct partial *g, int a, int b, const struct family *f,
                   uint64_t of) {
  VEC_RESERVE(&s->candidates, CANDIDATES_MAX);
  struct candidate *all = s->candidates.data + s->candidates.count;
  int count = sampler_offers(&s->families, f, g->images, s->scratch, a, b, all), kept = 0;
  for (int i = 0; i < count && of != any_kind; i++)
    if (of & kind_of(all[i].op, &all[i].attrs)) all[kept++] = all[i];
  s->candidates.count += of == any_kind ? count : kept;
}

/* Pairs that would make the kernel too wide are not looked at. */
void sampler_gather(struct sampler *s, const struct partial *g, const struct family *f,
                    struct remaining left, uint64_t of) {
  int nodes = s->scratch->count;
  for (int a = 0; a < nodes; a++) {
    if (!f->binary && partial_width_allows(g, a, -1, left)) gather(s, g, a, -1, f, of);
    for (int b = 0; f->binary && b < nodes; b++)
      if (partial_width_allows(g, a, b, left)) gather(s, g, a, b, f, of);
  }
}

void sampler_gather_all(struct sampler *s, const struct partial *g, const struct family *f,
                        struct remaining left, uint64_t of) {
  s->candidates.count = 0;
  sampler_gather(s, g, f, left, of);
}

int sampler_applications(struct sampler *s, const struct partial *g, const struct family *f,
                         struct remaining left, const struct candidate **out) {
  sampler_gather_all(s, g, f, left, any_kind);
  *out = s->candidates.data;
  return s->candidates.count;
}

/* Sorts of applications that are drawn less often: the share that is kept. */
int sampler_kept(const struct sample_options *o, const struct candidate *c) {
  struct dim one = dim_one();
  const struct row *row = &primitive_rows[c->op];
  if (row->family == &family_map && !(row->facts & FACT_ACTIVATION))
    return o->often[OFTEN_OTHER_FUNCTIONS];
  if (row->family == &family_fold && c->attrs.over & ROLES_SPATIAL)
    return o->often[OFTEN_IMAGE_FOLD];
  if (c->x >= 0 && dim_equal(&c->by, &one)) return o->often[OFTEN_TO_ONE];
  return ALWAYS;
}

int sampler_type_weight(const struct sample_options *o, const struct family *f) {
  for (int i = 0; i < OFTEN_TYPES; i++)
    if (often_families[i] == f) return o->often[i];
  return ALWAYS;
}

uint64_t sampler_matmuls(void) {
  return matmuls;
}

int sampler_weighted_most(const struct sample_options *o, int n) {
  int most = n * o->limits.weighted_share / 1000;
  return most < o->limits.weighted_most ? most : o->limits.weighted_most;
}

struct rules sampler_rules_for(struct rules rules, int n) {
  if (n < BENDING_LEAST) rules.on &= ~(1u << RULE_NONLINEAR);
  return rules;
}
