/* Drawing one kernel: see sampler.h.
 *
 *   1. whether the draw is free of rules, how many primitives, which of them weighted, how wide,
 *      which G
 *   2. step by step: a type by its weight among those that have any legal application, then an
 *      application uniformly among the type's; at a weighted step a type with weights
 *   3. the output, one last look at every target and at the rules, and whether all weights can matter
 *      where images are small
 *   4. a kernel that is not simple is simplified, and step 3 repeated; so is every step of 2, without
 *      choosing: the kernel must be one that could be drawn
 *
 * Learned draws have other steps (learned_steps.c) and the same end.
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
#include "kernel/kernel_simplify.h"
#include "lower/idle_weights.h"
#include "sample/bytes_bound.h"
#include "sample/free_sizes.h"
#include "sample/state.h"

/* Large kernels get fewer tries: a second or two of learned steps. */
#define LOOKED_MOST (INT64_C(1) << 21)
enum { TRIES = SAMPLER_TRIES, REACH_LEAST = 2, FREE_LEAST = 2 };

/* -- what the options leave -- */

/* A type whose weight is given as 0 is not drawn, whatever the draw, and no child gets it. */
static void apply_limits(struct sampler *s) {
  struct sample_options *o = &s->options;
  struct families *f = &s->families;
  for (int i = 0; i < OFTEN_TYPES; i++)
    if (o->given >> i & 1 && !o->often[i])
      o->limits.forbidden |= kinds_of_family(often_families[i]);
  s->unruled = sample_options_free(o);
  s->drawable = sampler_kinds_of(o->space) & ~o->limits.forbidden;
  f->limits = &o->limits;
  f->plain_count = families_drop(f->plain, f->plain_count, s->drawable);
  f->weighted_count = families_drop(f->weighted, f->weighted_count, s->drawable);
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
  bytes_bound_open(&s->layers, s->times.data, s->targets.data, s->targets.count, &s->bytes);
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

static canvas_status learn_all(canvas_context *ctx, struct prior *l,
                               const struct sample_options *o) {
  struct lexer lx;
  TRY(prior_add_known(ctx, l, o->without));
  if (!o->learn) return CANVAS_OK;
  TRY(lexer_open(&lx, ctx, o->learn, o->learn_length));
  return prior_add_text(&lx, l);
}

canvas_status sampler_new(canvas_context *ctx, const struct targets *targets,
                          const struct sample_options *options, uint64_t seed,
                          struct sampler **out) {
  struct sampler *s = mem_alloc(sizeof *s);
  s->options = *options;
  if (sampler_weighted_most(options, options->most) < FREE_LEAST)
    s->options.rules.on &= ~(1u << RULE_FIXED_SIZE);
  s->seed = seed;
  canvas_status status = check_targets(ctx, s, targets);
  if (status == CANVAS_OK)
    status = families_list(ctx, primitive_rows, PRIMITIVE_COUNT, options->space, &s->families);
  if (status == CANVAS_OK) {
    apply_limits(s);
    list_targets(s, targets);
    status = list_groups(ctx, s, targets);
  }
  if (status != CANVAS_OK) {
    sampler_free(s);
    return status;
  }
  if (options->learned || options->often[OFTEN_KNOWN]) {
    s->prior = prior_new();
    status = learn_all(ctx, s->prior, options);
    s->options.learn = s->unruled.learn = NULL; /* that text is the caller's */
    sampler_list_known(s);
  }
  s->scratch = kernel_new("");
  s->facts =
      dim_facts_new(s->targets.count > s->strided.count ? s->targets.count : s->strided.count);
  s->candidates.data = mem_alloc(CANDIDATES_MAX * sizeof *s->candidates.data); /* draws grow it */
  s->candidates.capacity = CANDIDATES_MAX;
  if (status != CANVAS_OK) {
    sampler_free(s);
    return status;
  }
  *out = s;
  return CANVAS_OK;
}

void sampler_free(struct sampler *s) {
  if (!s) return;
  mem_free(s->targets.data);
  mem_free(s->strided.data);
  targets_free(&s->layers);
  mem_free(s->times.data);
  bytes_bound_close(&s->bytes);
  mem_free(s->groups.data);
  mem_free(s->candidates.data);
  mem_free(s->begins.data);
  mem_free(s->shares.data);
  mem_free(s->weights.data);
  prior_free(s->prior);
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
  struct neighbours images = {0, 0};
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

static uint64_t kinds_joining(void) {
  return sampler_matmuls() | kinds_of_family(&family_stack);
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
                          .joins = s->drawable & kinds_joining(),
                          .images = sampler_images(s, like),
                          .limits = &s->options.limits,
                          .max_width = s->options.limits.width_most};
  partial_start(out);
}

/* One application of the type, uniformly among the legal ones that are kept (all, where the step is
 * for certain kinds); false if there is none. */
static bool apply_one(struct sampler *s, struct partial *g, const struct family *f,
                      struct remaining left, uint64_t of, struct random *r) {
  sampler_gather_all(s, g, f, left, of);
  while (s->candidates.count) {
    struct candidate *all = s->candidates.data;
    int i = (int)random_below(r, (uint32_t)s->candidates.count);
    int share = of == any_kind ? sampler_kept(s->o, &all[i]) : ALWAYS;
    bool keep = share == ALWAYS || (int)random_below(r, ALWAYS) < share;
    if (keep && partial_try(g, &all[i], left)) return true;
    all[i] = all[--s->candidates.count];
  }
  return false;
}

/* Whether some application of the type that is drawn reads neighbours. */
static bool family_sees(const struct sample_options *o, const struct family *f) {
  bool sees = false;
  if (f == &family_fold && !o->often[OFTEN_IMAGE_FOLD]) return false;
  for (const struct row *row = primitive_rows; row < primitive_rows + PRIMITIVE_COUNT; row++)
    sees |= row->family == f && row->facts & (FACT_SEES | FACT_WHOLE);
  return sees;
}

canvas_status sampler_check(canvas_context *ctx, const struct sampler *s) {
  const struct sample_options *o = &s->options;
  struct neighbours images = sampler_images(s, NULL);
  int any = 0, seeing = 0;
  for (int i = 0; i < OFTEN_TYPES; i++) {
    bool plain =
        kinds_of_family(often_families[i]) & sampler_kinds_of(o->space) & ~kinds_weighted();
    any += plain ? o->often[i] : 0;
    seeing += plain && family_sees(o, often_families[i]) ? o->often[i] : 0;
  }
  if (o->require_reach && o->most < REACH_LEAST)
    return fail(
        ctx, CANVAS_BAD_INPUT,
        "primitives=%d..%d: a kernel that reaches has at least %d primitives, one that reads "
        "neighbours and an fc; allow more, or give require=none",
        o->least, o->most, REACH_LEAST);
  if (!any) return fail(ctx, CANVAS_BAD_INPUT, "draws= gives all types of primitives the weight 0");
  if (o->require_reach && images.windows && !seeing)
    return fail(ctx, CANVAS_BAD_INPUT,
                "draws= gives the weight 0 to all that reads neighbours (unfold, shift, softmax, "
                "fold with image_fold): give one of them a weight, or require=none");
  return limits_check(ctx, o, s->drawable, images);
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

/* An application of one of these types. */
static bool step(struct sampler *s, struct partial *g, const struct family *const *families,
                 int count, struct remaining left, uint64_t of, struct random *r) {
  const struct family *order[FAMILIES_MAX];
  memcpy(order, families, (size_t)count * sizeof *order);
  if (of != any_kind) count = families_drop(order, count, of);
  for (int n = count; n > 0; n--) {
    int i = n > 1 || count > 1 ? pick_type(s->o, order, n, r) : 0;
    if (i == n) return false;
    if (apply_one(s, g, order[i], left, of, r)) return true;
    order[i] = order[n - 1];
  }
  return false;
}

/* Where a kernel gets what it must hold: each at a step of its own, drawn before the first. */
struct plan {
  int count;
  struct {
    uint64_t of;
    bool weighted;
    int step; /* among the plain ones, or the weighted ones */
  } need[NEEDS_MAX + 1];
};

static bool plan_one(const struct sampler *s, uint64_t of, struct remaining left, struct random *r,
                     struct plan *p) {
  bool weighted = !(of & s->drawable & ~kinds_weighted());
  int steps = weighted ? left.weighted : left.plain;
  if (!steps) return false;
  p->need[p->count].of = of & (weighted ? kinds_weighted() : ~kinds_weighted());
  p->need[p->count].weighted = weighted;
  p->need[p->count++].step = (int)random_below(r, (uint32_t)steps);
  return true;
}

/* False: the kernel has no step for one. */
static bool plan_all(const struct sampler *s, bool matmul, struct remaining left, struct random *r,
                     struct plan *p) {
  const struct limits *l = &s->options.limits;
  p->count = 0;
  for (int i = 0; i < l->needs; i++)
    if (!plan_one(s, l->need[i], left, r, p)) return false;
  return !matmul || plan_one(s, sampler_matmuls(), left, r, p);
}

/* The kinds that this step may apply: of what is needed and not there yet, if it is the step for
 * it. */
static uint64_t planned(const struct sampler *s, const struct plan *p, bool weighted, int step) {
  uint64_t held = p->count ? kernel_kinds(s->scratch) : 0;
  for (int i = 0; i < p->count; i++)
    if (p->need[i].weighted == weighted && p->need[i].step == step && !(p->need[i].of & held))
      return p->need[i].of;
  return any_kind;
}

/* How many of n primitives have weights; false: none of the numbers that are allowed. */
static bool draw_weighted(const struct sampler *s, int n, struct random *r, int *out) {
  const struct limits *l = &s->options.limits;
  int least = l->weighted_least, most = sampler_weighted_most(&s->options, n);
  *out = 0;
  if (most < least || !s->families.weighted_count) return !l->weighted_given || !least;
  *out = least + (int)random_below(r, (uint32_t)(most - least + 1));
  return true;
}

static bool take_steps(struct sampler *s, struct partial *g, struct remaining left,
                       const struct plan *plan, struct random *r) {
  const struct families *f = &s->families;
  int plain = 0, heavy = 0;
  for (int steps = left.steps; steps > 0; steps--) {
    left.steps--;
    /* every order of plain and weighted steps is equally likely */
    bool weighted = (int)random_below(r, (uint32_t)steps) < left.weighted;
    uint64_t of = planned(s, plan, weighted, weighted ? heavy++ : plain++);
    if (weighted) {
      left.weighted--;
      if (!step(s, g, f->weighted, f->weighted_count, left, of, r)) return false;
    } else {
      left.plain--;
      if (!step(s, g, f->plain, f->plain_count, left, of, r)) return false;
    }
  }
  return true;
}

/* Of the paper's primitives the output takes the free size of a lone fc: no need to draw the kernel. */
static bool is_fixed_at_once(const struct sampler *s, const struct partial *g,
                             struct remaining left) {
  return s->options.space == SPACE_PAPER && g->rules.on >> RULE_FIXED_SIZE & 1 &&
         left.weighted < FREE_LEAST;
}

/* One try; the stream goes on where the last one stopped. */
static bool grow(struct sampler *s, struct partial *g, bool matmul, struct random *r) {
  const struct sample_options *o = s->o;
  int width = o->limits.width_least;
  int n = o->least + (int)random_below(r, (uint32_t)(o->most - o->least + 1));
  struct remaining left = {.plain = n, .steps = n};
  struct plan plan;
  if (!draw_weighted(s, n, r, &left.weighted)) return false;
  left.plain -= left.weighted;
  s->least = o->least;
  g->joins = false; /* else a draw in a hundred would end well: few do by such a join */
  g->rules = sampler_rules_for(g->rules, n);
  if (is_fixed_at_once(s, g, left)) return false;
  g->max_width = width + (int)random_below(r, (uint32_t)(o->limits.width_most - width + 1));
  partial_start(g);
  return plan_all(s, matmul, left, r, &plan) && take_steps(s, g, left, &plan, r);
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
_Static_assert((int)DRAW_KINDS == 2 * (1 + (1 << SHARED)),
               "free, and each set of these; begun or not");

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

static bool is_fixed(const struct rules *rules, const struct kernel *k) {
  return rules->on >> RULE_FIXED_SIZE & 1 && !kernel_variables(k);
}

/* Whether a finished kernel breaks a rule that is cheap to judge; the targets have the draw's G. */
static bool surely_broken(const struct sampler *s, const struct rules *rules,
                          const struct kernel *k) {
  if (is_fixed(rules, k)) return true;
  return !kernel_uses(k, SIZE_S) &&
         bytes_bound_broken(&s->bytes, s->facts, s->targets.data, rules, k);
}

/* -- kernels that are not drawn step by step -- */

/* What is left to do after node i of k. */
static struct remaining after(const struct kernel *k, int i) {
  struct remaining left = {0, 0, 0};
  for (i++; i < k->count - 1; i++, left.steps++)
    if (node_row(&k->nodes[i])->facts & FACT_WEIGHTS)
      left.weighted++;
    else
      left.plain++;
  return left;
}

/* Whether the family would apply n's primitive here at all. Asked with partial_try alone: binary
 * primitives, those that are never drawn, and data movement, which simplification leaves in a row
 * where it cannot be one. */
static bool offered(const struct kernel *k, const struct node *n) {
  struct candidate found[CANDIDATES_MAX];
  const struct row *row = node_row(n);
  const struct family *f = row->family;
  bool is = f->binary || !f->choices || row->facts & FACT_MOVES;
  int count = is ? 0 : f->choices(k, n->in[0], -1, found);
  for (int i = 0; i < count; i++) is |= found[i].op == n->op;
  return is;
}

bool sampler_may_draw(struct sampler *s, const struct rules *rules, const struct kernel *k,
                      int64_t g) {
  struct partial p;
  int node;
  if (kernel_constant(k, &node)) return false;
  sampler_partial(s, g, k, &p);
  if (surely_broken(s, rules, k)) return false;
  p.rules = *rules;
  if (kernel_primitives(k) < BENDING_LEAST) p.rules.on &= ~(1u << RULE_NONLINEAR);
  for (int i = 1; i < k->count - 1; i++) {
    const struct node *n = &k->nodes[i];
    struct candidate c = {.op = n->op, .in = {n->in[0], n->in[1]}, .attrs = n->attrs, .x = -1};
    if (!offered(p.k, n) || !partial_try(&p, &c, after(k, i))) return false;
  }
  return partial_finish(&p) && !sampler_broken(s, rules, p.k, g) && sampler_all_matter(s, p.k, g);
}

/* -- a draw -- */

/* The drawn kernel, if it is simple and can be bound usefully. */
static bool as_drawn(struct sampler *s, const struct rules *rules, int64_t g) {
  int node;
  return !surely_broken(s, rules, s->scratch) && !kernel_constant(s->scratch, &node) &&
         !sampler_broken(s, rules, s->scratch, g) && sampler_all_matter(s, s->scratch, g);
}

/* Leaves the simplified kernel in `scratch`. */
static bool as_simplified(struct sampler *s, const struct rules *rules, const struct kernel *simple,
                          int64_t g) {
  return kernel_primitives(simple) >= s->least && sampler_may_draw(s, rules, simple, g);
}

bool sampler_passes(struct sampler *s, const struct rules *rules, int64_t g) {
  return kernel_is_simple(s->scratch) && as_drawn(s, rules, g);
}

bool sampler_matmul(const struct sampler *s, struct random *r) {
  int share = s->options.limits.matmul;
  return share && (int)random_below(r, ALWAYS) < share;
}

/* The size of windows that K stands for: the least of layers that see neighbours. */
static int64_t least_window(const struct sampler *s, bool along_h) {
  int64_t least = 1;
  for (int i = 0; i < s->layers.count; i++) {
    int64_t size = along_h ? s->layers.data[i].kh : s->layers.data[i].kw;
    if (size > 1 && (least == 1 || size < least)) least = size;
  }
  return least;
}

bool sampler_wanted(const struct sampler *s, const struct kernel *k, bool matmul) {
  if (matmul && !(kernel_kinds(k) & sampler_matmuls())) return false;
  return limits_kept(&s->options.limits, k, least_window(s, true), least_window(s, false));
}

static bool one_try(struct sampler *s, const struct rules *rules, bool begun, bool matmul,
                    struct random *r, int64_t *g) {
  struct partial partial;
  *g = sampler_groups(s, r);
  sampler_partial(s, *g, NULL, &partial);
  partial.rules = *rules;
  bool grown = begun || s->o->learned ? sampler_grow_learned(s, &partial, begun, matmul, r)
                                      : grow(s, &partial, matmul, r);
  if (!grown || !partial_finish(&partial)) return false;
  if (is_fixed(rules, s->scratch)) return false; /* simplified it still is */
  struct kernel *simple = kernel_simpler(s->scratch);
  bool is = simple ? as_simplified(s, rules, simple, *g) : as_drawn(s, &partial.rules, *g);
  kernel_free(simple);
  return is && sampler_wanted(s, s->scratch, matmul);
}

static int begun_share(const struct sampler *s) {
  return s->begins.count ? s->options.often[OFTEN_KNOWN] : 0;
}

/* One kind of draw, or two: those that begin as a known kernel are apart. */
static int add_kinds(const struct sampler *s, struct draw_kind kind, struct draw_kind *out) {
  double begun = begun_share(s) / (double)ALWAYS, all = kind.share;
  int count = 0;
  for (int i = 0; i < 2; i++) {
    kind.begun = i;
    kind.share = all * (i ? begun : 1 - begun);
    if (kind.share > 0) out[count++] = kind;
  }
  return count;
}

int sampler_kinds(const struct sampler *s, struct draw_kind out[DRAW_KINDS]) {
  const struct sample_options *o = &s->options;
  double free = o->often[OFTEN_FREE] / (double)ALWAYS;
  struct draw_kind unruled = {&s->unruled, s->unruled.rules, free, false};
  int count = add_kinds(s, unruled, out);
  for (unsigned dropped = 0; dropped < 1 << SHARED; dropped++) {
    struct draw_kind kind = {o, o->rules, 1 - free, false};
    for (int i = 0; i < SHARED; i++) {
      double share = o->often[shared[i].share] / (double)ALWAYS;
      kind.share *= dropped >> i & 1 ? 1 - share : share;
      if (dropped >> i & 1) kind.rules.on &= ~(1u << shared[i].rule);
    }
    count += add_kinds(s, kind, out + count);
  }
  return count;
}

void sampler_take(struct sampler *s, const struct draw_kind *kind) {
  s->o = kind->options;
}

bool sampler_try(struct sampler *s, const struct draw_kind *kind, struct random *r, int64_t *g) {
  sampler_take(s, kind);
  return one_try(s, &kind->rules, kind->begun, sampler_matmul(s, r), r, g);
}

static bool draw_begun(const struct sampler *s, struct random *r) {
  int share = begun_share(s);
  return share && (int)random_below(r, ALWAYS) < share;
}

canvas_status sampler_draw(canvas_context *ctx, struct sampler *s, uint64_t index,
                           struct kernel **out, int64_t *g) {
  struct random r;
  s->o = opens_free(&s->options, s->seed, index, &r) ? &s->unruled : &s->options;
  struct rules rules = rules_of_draw(s->o, &r);
  bool matmul = sampler_matmul(s, &r), begun = draw_begun(s, &r);
  int try = 0;
  s->looked = 0;
  for (; try < TRIES && s->looked < LOOKED_MOST; try++) {
    if (!one_try(s, &rules, begun, matmul, &r, g)) continue;
    *out = sampler_finished(s->scratch, index);
    return CANVAS_OK;
  }
  return fail(ctx, CANVAS_NONE, "draw %llu found no legal kernel in %d tries",
              (unsigned long long)index, try);
}
