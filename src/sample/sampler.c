/* Drawing one kernel: see sampler.h.
 *
 *   1. whether the draw is free of rules, how many primitives, which of them weighted, how wide,
 *      which G
 *   2. step by step: a type by its weight among those that have any legal application, then an
 *      application uniformly among the type's; a weighted step draws a fully connected one
 *   3. the output, one last look at every target and at the rules, and whether all weights can matter
 *      where images are small
 *
 * "Among those that are legal" is drawn without testing all: types (applications) are tried in a
 * random order, and the first that is legal is taken. A try that gets stuck is begun
 * again from the same stream, at most TRIES times.
 */
#include "sample/sampler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "lower/idle_weights.h"
#include "sample/free_sizes.h"
#include "sample/steps.h"

enum { TRIES = SAMPLER_TRIES, WEIGHTED_MAX = 8, REACH_LEAST = 2, FREE_LEAST = 2 };

static const struct family *const types[OFTEN_TYPES] = {
    [OFTEN_GROUPING] = &family_group,     [OFTEN_SHIFT] = &family_shift,
    [OFTEN_UNFOLD] = &family_unfold,      [OFTEN_ELEMENTWISE] = &family_map,
    [OFTEN_FOLD] = &family_fold,          [OFTEN_SOFTMAX] = &family_softmax,
    [OFTEN_BROADCAST] = &family_broadcast};

struct sampler {
  struct sample_options options;
  const struct sample_options *o; /* of the draw under way: `options`, or `unruled` */
  struct sample_options unruled;
  struct targets layers; /* what rules judge: those that differ in more than names */
  struct {
    VEC(int64_t);
  } times; /* how many layers are as each of them */
  uint64_t seed;
  struct distinct {
    VEC(struct sizes);
  } targets, strided; /* distinct sizes of kernels without S and with */
  struct {
    VEC(int64_t);
  } groups; /* what G may be */
  struct families families;
  struct kernel *scratch;
  struct dim_facts *facts;
  struct {
    VEC(struct candidate);
  } candidates;
};

static bool is_listed(const struct families *f, const struct family *family) {
  bool known = f->weighted == family;
  for (int i = 0; i < f->plain_count; i++) known |= f->plain[i] == family;
  return known;
}

/* Steps with weights are counted apart and draw one family: a second one would need a rule for how
 * often which of them is drawn. */
canvas_status families_list(canvas_context *ctx, const struct row *rows, int count,
                            struct families *out) {
  *out = (struct families){0};
  for (const struct row *row = rows; row < rows + count; row++) {
    const struct family *family = row->family;
    if (!family->drawn || is_listed(out, family)) continue;
    if (row->facts & FACT_WEIGHTS && out->weighted)
      return fail(ctx, CANVAS_BAD_INPUT,
                  "families '%s' and '%s' both own weights, but one such family can be drawn: set "
                  "drawn = false in the other",
                  out->weighted->name, family->name);
    if (out->plain_count == FAMILIES_MAX)
      return fail(ctx, CANVAS_BAD_INPUT, "there are more than %d families to draw", FAMILIES_MAX);
    if (row->facts & FACT_WEIGHTS)
      out->weighted = family;
    else
      out->plain[out->plain_count++] = family;
  }
  return CANVAS_OK;
}

static void list_sizes(const struct targets *targets, bool strided, struct distinct *out) {
  for (int i = 0; i < targets->count; i++) {
    struct sizes sizes;
    int64_t copies;
    bool known = false;
    target_sizes_as(&targets->data[i], strided, &sizes, &copies);
    for (int j = 0; j < out->count; j++) known |= !memcmp(&out->data[j], &sizes, sizeof sizes);
    if (!known) VEC_PUSH(out, sizes);
  }
}

static void add_layer(struct sampler *s, const struct target *t) {
  for (int i = 0; i < s->layers.count; i++)
    if (target_same(&s->layers.data[i], t)) {
      s->times.data[i]++;
      return;
    }
  VEC_PUSH(&s->layers, *t);
  VEC_PUSH(&s->times, 1);
}

static void list_targets(struct sampler *s, const struct targets *targets) {
  for (int i = 0; i < targets->count; i++) add_layer(s, &targets->data[i]);
  list_sizes(targets, false, &s->targets);
  list_sizes(targets, true, &s->strided);
}

static const struct distinct *sizes_of(const struct sampler *s, const struct kernel *k) {
  return k && kernel_uses(k, SIZE_S) ? &s->strided : &s->targets;
}

/* Factors >= 2 of the common channel count; 1 only where there is no other, or if requested. */
static canvas_status list_groups(canvas_context *ctx, struct sampler *s,
                                 const struct targets *targets) {
  int64_t common = targets_common_channels(targets), asked = s->options.groups;
  if (asked && common % asked)
    return fail(ctx, CANVAS_BAD_INPUT,
                "groups=%lld does not divide the common channel count %lld of the targets",
                (long long)asked, (long long)common);
  if (asked) {
    VEC_PUSH(&s->groups, asked);
    return CANVAS_OK;
  }
  for (int64_t g = 2; g <= common; g++)
    if (common % g == 0) VEC_PUSH(&s->groups, g);
  if (!s->groups.count) VEC_PUSH(&s->groups, 1);
  return CANVAS_OK;
}

/* The input itself must fit: else no draw would ever end well. */
static canvas_status check_targets(canvas_context *ctx, const struct sampler *s,
                                   const struct targets *targets) {
  if (!targets->count) return fail(ctx, CANVAS_BAD_INPUT, "there are no targets to draw for");
  for (int i = 0; i < targets->count; i++) {
    struct sizes z;
    int64_t copies;
    const struct target *t = &targets->data[i];
    target_sizes(t, NULL, &z, &copies);
    int64_t elements = z.value[SIZE_C] * z.value[SIZE_H];
    if (elements > s->options.elements_limit / z.value[SIZE_W])
      return fail(ctx, CANVAS_BAD_INPUT,
                  "target '%s' has more than %lld elements per sample: raise elements= or leave it "
                  "out",
                  t->name, (long long)s->options.elements_limit);
  }
  return CANVAS_OK;
}

canvas_status sampler_new(canvas_context *ctx, const struct targets *targets,
                          const struct sample_options *options, uint64_t seed,
                          struct sampler **out) {
  struct sampler *s = mem_alloc(sizeof *s);
  s->options = *options;
  if (sampler_weighted_most(options->most) < FREE_LEAST)
    s->options.rules.on &= ~(1u << RULE_FIXED_SIZE);
  s->unruled = sample_options_free(options);
  s->seed = seed;
  canvas_status status = check_targets(ctx, s, targets);
  if (status == CANVAS_OK)
    status = families_list(ctx, primitive_rows, PRIMITIVE_COUNT, &s->families);
  if (status == CANVAS_OK) {
    list_targets(s, targets);
    status = list_groups(ctx, s, targets);
  }
  if (status != CANVAS_OK) {
    sampler_free(s);
    return status;
  }
  s->scratch = kernel_new("");
  s->facts =
      dim_facts_new(s->targets.count > s->strided.count ? s->targets.count : s->strided.count);
  s->candidates.data = mem_alloc(CANDIDATES_MAX * sizeof *s->candidates.data); /* draws grow it */
  s->candidates.capacity = CANDIDATES_MAX;
  *out = s;
  return CANVAS_OK;
}

void sampler_free(struct sampler *s) {
  if (!s) return;
  mem_free(s->targets.data);
  mem_free(s->strided.data);
  targets_free(&s->layers);
  mem_free(s->times.data);
  mem_free(s->groups.data);
  mem_free(s->candidates.data);
  dim_facts_free(s->facts);
  kernel_free(s->scratch);
  mem_free(s);
}

uint64_t sampler_seed(const struct sampler *s) {
  return s->seed;
}

const struct sample_options *sampler_options(const struct sampler *s) {
  return &s->options;
}

const struct families *sampler_families(const struct sampler *s) {
  return &s->families;
}

int sampler_all_groups(const struct sampler *s, const int64_t **out) {
  *out = s->groups.data;
  return s->groups.count;
}

int64_t sampler_groups(const struct sampler *s, struct random *r) {
  return s->groups.data[random_below(r, (uint32_t)s->groups.count)];
}

bool sampler_has_groups(const struct sampler *s, int64_t g) {
  bool found = false;
  for (int i = 0; i < s->groups.count; i++) found |= s->groups.data[i] == g;
  return found;
}

struct neighbours sampler_images(const struct sampler *s, const struct kernel *k) {
  const struct distinct *sizes = sizes_of(s, k);
  struct neighbours images = {false, false};
  for (int t = 0; t < sizes->count; t++) neighbours_add(&images, &sizes->data[t]);
  return images;
}

bool sampler_all_matter(const struct sampler *s, const struct kernel *k, int64_t g) {
  const struct distinct *all = sizes_of(s, k);
  struct kernel_dims dims;
  kernel_dims_list(k, &dims);
  for (int t = 0; t < all->count; t++) {
    struct sizes sizes = all->data[t];
    if (!idle_tested(k, &sizes)) continue;
    sizes.value[SIZE_G] = g;
    if (!free_sizes_usual(&dims, &sizes) || idle_weight(k, &sizes) >= 0) return false;
  }
  return true;
}

void sampler_partial(struct sampler *s, int64_t g, const struct kernel *like, struct partial *out) {
  const struct distinct *sizes = sizes_of(s, like);
  for (int t = 0; t < sizes->count; t++) sizes->data[t].value[SIZE_G] = g;
  *out = (struct partial){.k = s->scratch,
                          .facts = s->facts,
                          .targets = sizes->data,
                          .target_count = sizes->count,
                          .elements_limit = s->options.elements_limit,
                          .require_reach = s->options.require_reach,
                          .images = sampler_images(s, like),
                          .max_width = WIDTH_MAX};
  partial_start(out);
}

static void gather(struct sampler *s, int a, int b, const struct family *f) {
  VEC_RESERVE(&s->candidates, CANDIDATES_MAX);
  s->candidates.count += f->choices(s->scratch, a, b, s->candidates.data + s->candidates.count);
}

/* Every application of a type; pairs that would make the kernel too wide are not looked at. */
static void gather_all(struct sampler *s, const struct partial *g, const struct family *f,
                       struct remaining left) {
  int nodes = s->scratch->count;
  s->candidates.count = 0;
  for (int a = 0; a < nodes; a++) {
    if (!f->binary && partial_width_allows(g, a, -1, left)) gather(s, a, -1, f);
    for (int b = 0; f->binary && b < nodes; b++)
      if (b != a && partial_width_allows(g, a, b, left)) gather(s, a, b, f);
  }
}

int sampler_applications(struct sampler *s, const struct partial *g, const struct family *f,
                         struct remaining left, const struct candidate **out) {
  gather_all(s, g, f, left);
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

/* One application of the type, uniformly among the legal ones that are kept; false if there is
 * none. */
static bool apply_one(struct sampler *s, struct partial *g, const struct family *f,
                      struct remaining left, struct random *r) {
  gather_all(s, g, f, left);
  while (s->candidates.count) {
    struct candidate *all = s->candidates.data;
    int i = (int)random_below(r, (uint32_t)s->candidates.count);
    int share = sampler_kept(s->o, &all[i]);
    bool keep = share == ALWAYS || (int)random_below(r, ALWAYS) < share;
    if (keep && partial_try(g, &all[i], left)) return true;
    all[i] = all[--s->candidates.count];
  }
  return false;
}

int sampler_type_weight(const struct sample_options *o, const struct family *f) {
  for (int i = 0; i < OFTEN_TYPES; i++)
    if (types[i] == f) return o->often[i];
  return ALWAYS;
}

static bool family_sees(const struct family *f) {
  bool sees = false;
  for (const struct row *row = primitive_rows; row < primitive_rows + PRIMITIVE_COUNT; row++)
    sees |= row->family == f && row->facts & FACT_SEES;
  return sees;
}

canvas_status sampler_check(canvas_context *ctx, const struct sampler *s) {
  const struct sample_options *o = &s->options;
  struct neighbours images = sampler_images(s, NULL);
  int any = 0, seeing = 0;
  for (int i = 0; i < s->families.plain_count; i++) {
    int weight = sampler_type_weight(o, s->families.plain[i]);
    any += weight;
    seeing += family_sees(s->families.plain[i]) ? weight : 0;
  }
  if (o->require_reach && o->most < REACH_LEAST)
    return fail(
        ctx, CANVAS_BAD_INPUT,
        "primitives=%d..%d: a kernel that reaches has at least %d primitives, one that reads "
        "neighbours and an fc; allow more, or give require=none",
        o->least, o->most, REACH_LEAST);
  if (o->often[OFTEN_FREE]) return CANVAS_OK; /* drawn with the weights of draws=paper */
  if (!any) return fail(ctx, CANVAS_BAD_INPUT, "draws= gives all types of primitives the weight 0");
  if (o->require_reach && (images.h || images.w) && !seeing)
    return fail(
        ctx, CANVAS_BAD_INPUT,
        "draws= gives unfold and shift the weight 0, which alone read neighbours: give one of "
        "them a weight, or require=none");
  return CANVAS_OK;
}

/* An index below n by its weight; n where all weights are 0. */
static int pick_type(const struct sample_options *o, const struct family *const *order, int n,
                     struct random *r) {
  int all = 0, i = 0;
  for (int j = 0; j < n; j++) all += sampler_type_weight(o, order[j]);
  if (!all) return n;
  int at = (int)random_below(r, (uint32_t)all);
  while (at >= sampler_type_weight(o, order[i])) at -= sampler_type_weight(o, order[i++]);
  return i;
}

static bool plain_step(struct sampler *s, struct partial *g, struct remaining left,
                       struct random *r) {
  const struct family *order[FAMILIES_MAX];
  memcpy(order, s->families.plain, sizeof order);
  for (int n = s->families.plain_count; n > 0; n--) {
    int i = pick_type(s->o, order, n, r);
    if (i == n) return false;
    if (apply_one(s, g, order[i], left, r)) return true;
    order[i] = order[n - 1];
  }
  return false;
}

int sampler_weighted_most(int n) {
  return n * 3 / 5 < WEIGHTED_MAX ? n * 3 / 5 : WEIGHTED_MAX;
}

struct rules sampler_rules_for(struct rules rules, int n) {
  if (n < BENDING_LEAST) rules.on &= ~(1u << RULE_NONLINEAR);
  return rules;
}

/* One try; the stream goes on where the last one stopped. */
static bool grow(struct sampler *s, struct partial *g, struct random *r) {
  const struct sample_options *o = s->o;
  int n = o->least + (int)random_below(r, (uint32_t)(o->most - o->least + 1));
  int most = sampler_weighted_most(n);
  struct remaining left = {.plain = n};
  if (most) left.weighted = 1 + (int)random_below(r, (uint32_t)most);
  left.plain -= left.weighted;
  g->rules = sampler_rules_for(g->rules, n);
  g->max_width = WIDTH_MIN + (int)random_below(r, WIDTH_MAX - WIDTH_MIN + 1);
  partial_start(g);
  for (int steps = n; steps > 0; steps--) {
    /* every order of plain and weighted steps is equally likely */
    bool weighted = (int)random_below(r, (uint32_t)steps) < left.weighted;
    if (weighted) {
      left.weighted--;
      if (!apply_one(s, g, s->families.weighted, left, r)) return false;
    } else {
      left.plain--;
      if (!plain_step(s, g, left, r)) return false;
    }
  }
  return true;
}

/* Names nodes a, b, ... as a person would, and the kernel by its index. */
struct kernel *sampler_finished(const struct kernel *scratch, uint64_t index) {
  struct kernel *k = kernel_copy(scratch);
  snprintf(k->name, sizeof k->name, "k%llu", (unsigned long long)index);
  for (int i = 0; i < k->count - 1; i++) {
    if (i < 26)
      snprintf(k->nodes[i].name, NODE_NAME_SIZE, "%c", 'a' + i);
    else
      snprintf(k->nodes[i].name, NODE_NAME_SIZE, "%c%c", 'a' + i / 26 - 1, 'a' + i % 26);
  }
  kernel_renumber(k);
  return k;
}

/* The first numbers of a draw's stream say what kind of draw it is. */
static bool opens_free(const struct sample_options *o, uint64_t seed, uint64_t index,
                       struct random *r) {
  random_open(r, seed, RANDOM_DRAW, index);
  return (int)random_below(r, ALWAYS) < o->often[OFTEN_FREE];
}

bool sampler_is_free(const struct sample_options *o, uint64_t seed, uint64_t index) {
  struct random r;
  return opens_free(o, seed, index, &r);
}

/* Rules that only a share of the draws keeps. */
static const struct {
  enum rule rule;
  enum often share;
} shared[] = {{RULE_NONLINEAR, OFTEN_NONLINEAR}, {RULE_FIXED_SIZE, OFTEN_FREE_SIZE}};
enum { SHARED = sizeof shared / sizeof *shared };
_Static_assert((int)DRAW_KINDS == 1 + (1 << SHARED), "free, and each set of these");

static struct rules rules_of_draw(const struct sample_options *o, struct random *r) {
  struct rules rules = o->rules;
  for (int i = 0; i < SHARED; i++)
    if ((int)random_below(r, ALWAYS) >= o->often[shared[i].share])
      rules.on &= ~(1u << shared[i].rule);
  return rules;
}

struct rules sampler_rules(const struct sampler *s, struct random *r) {
  bool free = (int)random_below(r, ALWAYS) < s->options.often[OFTEN_FREE];
  struct rules rules = rules_of_draw(free ? &s->unruled : &s->options, r);
  rules.on &= ~(1u << RULE_FIXED_SIZE);
  return rules;
}

const char *sampler_broken(const struct sampler *s, const struct rules *rules,
                           const struct kernel *k, int64_t g) {
  return rules_broken(rules, k, &s->layers, s->times.data, g);
}

bool sampler_finish(struct sampler *s, struct partial *partial, int64_t g) {
  return partial_finish(partial) && !sampler_broken(s, &partial->rules, s->scratch, g) &&
         sampler_all_matter(s, s->scratch, g);
}

static bool one_try(struct sampler *s, const struct rules *rules, struct random *r, int64_t *g) {
  struct partial partial;
  *g = sampler_groups(s, r);
  sampler_partial(s, *g, NULL, &partial);
  partial.rules = *rules;
  return grow(s, &partial, r) && sampler_finish(s, &partial, *g);
}

int sampler_kinds(const struct sampler *s, struct draw_kind out[DRAW_KINDS]) {
  const struct sample_options *o = &s->options;
  double free = o->often[OFTEN_FREE] / (double)ALWAYS;
  int count = 0;
  if (free > 0) out[count++] = (struct draw_kind){&s->unruled, s->unruled.rules, free};
  for (unsigned dropped = 0; dropped < 1 << SHARED; dropped++) {
    struct draw_kind kind = {o, o->rules, 1 - free};
    for (int i = 0; i < SHARED; i++) {
      double share = o->often[shared[i].share] / (double)ALWAYS;
      kind.share *= dropped >> i & 1 ? 1 - share : share;
      if (dropped >> i & 1) kind.rules.on &= ~(1u << shared[i].rule);
    }
    if (kind.share > 0) out[count++] = kind;
  }
  return count;
}

bool sampler_try(struct sampler *s, const struct draw_kind *kind, struct random *r, int64_t *g) {
  s->o = kind->options;
  return one_try(s, &kind->rules, r, g);
}

canvas_status sampler_draw(canvas_context *ctx, struct sampler *s, uint64_t index,
                           struct kernel **out, int64_t *g) {
  struct random r;
  s->o = opens_free(&s->options, s->seed, index, &r) ? &s->unruled : &s->options;
  struct rules rules = rules_of_draw(s->o, &r);
  for (int try = 0; try < TRIES; try++) {
    if (!one_try(s, &rules, &r, g)) continue;
    *out = sampler_finished(s->scratch, index);
    return CANVAS_OK;
  }
  return fail(ctx, CANVAS_NONE, "draw %llu found no legal kernel in %d tries",
              (unsigned long long)index, TRIES);
}
