/* The solver by constraints: sizes for every target that fill the budget.
 *
 *   resolve the budget against the layers replaced -> base values -> do they fit? -> doublings ->
 *   single steps -> is the least reached? -> exchange -> can all weights matter? -> bindings, each
 *   checked whole
 *
 * Base values that do not fit are tried again without their scaling by channels. "No solution" is an
 * ordinary answer (CANVAS_NONE) and names the constraint that failed; where that is not proven, the message is
 * "not found".
 */
#include <stdlib.h>
#include <string.h>

#include "budget/solver.h"
#include "lower/idle_weights.h"

/* -- checks of the request -- */

static canvas_status check_groups(canvas_context *ctx, const struct kernel *k,
                                  const struct targets *targets, int64_t g) {
  int64_t common = targets_common_channels(targets);
  if (!g && kernel_uses(k, SIZE_G))
    return fail(ctx, CANVAS_BAD_INPUT,
                "kernel '%s' uses G, give 'G=', a common factor of the channels (of %lld)", k->name,
                (long long)common);
  if (g < 0 || (g && common % g))
    return fail(ctx, CANVAS_BAD_INPUT,
                "G=%lld is no common factor of the targets' channels, give a factor of %lld",
                (long long)g, (long long)common);
  return CANVAS_OK;
}

static canvas_status check_question(canvas_context *ctx, const struct kernel *k,
                                    const struct targets *targets,
                                    const struct solve_options *options) {
  if (!targets->count) return fail(ctx, CANVAS_BAD_INPUT, "no targets are given");
  if (options->elements_limit < 0 || options->elements_limit > ELEMENTS_LIMIT_MAX)
    return fail(ctx, CANVAS_BAD_INPUT, "limit of %lld elements is not in 1..%lld",
                (long long)options->elements_limit, (long long)ELEMENTS_LIMIT_MAX);
  for (int i = 0; i < targets->count; i++) TRY(target_check(ctx, &targets->data[i]));
  return check_groups(ctx, k, targets, options->g);
}

static void baseline(const struct targets *targets, int64_t out[BUDGET_KINDS]) {
  struct cost sum = {0};
  for (int i = 0; i < targets->count; i++) {
    struct cost c = target_cost(&targets->data[i]); /* target_check keeps the sum in 2^62 */
    cost_add(&sum, &c, 1);
  }
  out[BUDGET_MACS] = sum.macs;
  out[BUDGET_PARAMS] = sum.params;
}

/* num/den of the baseline, or as it stands; rounded towards the inside of the budget. */
static int64_t resolve(const struct bound *b, int64_t base, bool up) {
  __int128 value = (__int128)b->num * (b->relative ? base : 1);
  value = (value + (up ? b->den - 1 : 0)) / b->den;
  return value > INT64_MAX - 1 ? INT64_MAX - 1 : (int64_t)value;
}

static canvas_status set_limits(canvas_context *ctx, const struct budget *budget,
                                const int64_t base[BUDGET_KINDS], struct problem *p) {
  for (int kind = 0; kind < BUDGET_KINDS; kind++) {
    const struct bound *least = &budget->least[kind], *most = &budget->most[kind];
    p->least[kind] = least->given ? resolve(least, base[kind], true) : 0;
    p->most[kind] = most->given ? resolve(most, base[kind], false) : INT64_MAX;
    if (p->least[kind] > p->most[kind])
      return fail(ctx, CANVAS_BAD_INPUT, "the budget of %s is empty: at least %lld, at most %lld",
                  budget_kind_name((enum budget_kind)kind), (long long)p->least[kind],
                  (long long)p->most[kind]);
  }
  return CANVAS_OK;
}

/* -- whether the sizes satisfy it -- */

/* "1000 (0.5x of 2000)", with what lifts a limit that nobody gave. */
static void describe(const struct bound *b, enum budget_kind kind, int64_t value, int64_t base,
                     struct buf *out) {
  buf_printf(out, "%lld", (long long)value);
  if (!b->relative) return;
  buf_puts(out, " (");
  bound_print(b, out);
  buf_printf(out, " of %lld", (long long)base);
  if (b->usual) buf_printf(out, ", the default: %s=none lifts it", budget_kind_name(kind));
  buf_puts(out, ")");
}

/* `proven`: no other sizes can do better. */
static canvas_status reject(canvas_context *ctx, bool proven, int kind, int64_t value,
                            const char *what, const struct bound *b, int64_t limit, int64_t base) {
  struct buf text = {0};
  describe(b, (enum budget_kind)kind, limit, base, &text);
  canvas_status status = fail(ctx, CANVAS_NONE, "%s%s %lld of the %s of %s",
                              proven ? "" : "not found: ", budget_kind_name((enum budget_kind)kind),
                              (long long)value, what, text.text);
  buf_free(&text);
  return status;
}

static canvas_status check_most(canvas_context *ctx, bool proven, const struct budget *budget,
                                const struct problem *p, const struct solve_trace *t) {
  for (int kind = 0; kind < BUDGET_KINDS; kind++)
    if (t->base[kind] > p->most[kind])
      return reject(ctx, proven, kind, t->base[kind], "smallest sizes are over the budget",
                    &budget->most[kind], p->most[kind], t->baseline[kind]);
  return CANVAS_OK;
}

static canvas_status check_least(canvas_context *ctx, bool proven, const struct budget *budget,
                                 const struct problem *p, const struct solve_trace *t) {
  for (int kind = 0; kind < BUDGET_KINDS; kind++)
    if (t->used[kind] < p->least[kind])
      return reject(ctx, proven, kind, t->used[kind], "largest sizes that fit are under the least",
                    &budget->least[kind], p->least[kind], t->baseline[kind]);
  return CANVAS_OK;
}

/* -- the way from targets to a pack -- */

/* All weights can matter at the sizes found, where images are small. Other sizes were not tried. */
static canvas_status check_idle(canvas_context *ctx, const struct problem *p) {
  for (int i = 0; i < p->count; i++) {
    canvas_context why = {""};
    if (binding_check_idle(&why, p->kernel, &p->bindings[i]) != CANVAS_OK)
      return fail(ctx, CANVAS_NONE, "not found: %.900s", why.message);
  }
  return CANVAS_OK;
}

static void set_up(struct problem *p, const struct kernel *k, const struct targets *targets,
                   const struct solve_options *options) {
  *p = (struct problem){.kernel = k, .variables = kernel_variables(k), .count = targets->count};
  p->elements_limit = options->elements_limit ? options->elements_limit : ELEMENTS_LIMIT_DEFAULT;
  p->bindings = mem_alloc((size_t)p->count * sizeof *p->bindings);
  p->unit = mem_alloc((size_t)p->count * sizeof *p->unit);
  p->now = mem_alloc((size_t)p->count * sizeof *p->now);
  p->uses = mem_alloc((size_t)(p->count * k->count) * sizeof *p->uses);
  for (int i = 0; i < p->count; i++) {
    struct binding *b = &p->bindings[i];
    b->target = targets->data[i];
    b->norm = options->norm;
    target_sizes(&b->target, k, &b->sizes, &b->copies);
    b->sizes.value[SIZE_G] = options->g && kernel_uses(k, SIZE_G) ? options->g : 1;
  }
}

/* A kernel that cannot be bound to a target is no solution, not bad input. */
static canvas_status check_bindings(canvas_context *ctx, const struct problem *p, bool exempt) {
  for (int i = 0; i < p->count; i++)
    if (problem_like(p, i) == i &&
        binding_check(ctx, p->kernel, &p->bindings[i], p->elements_limit, exempt) != CANVAS_OK)
      return CANVAS_NONE;
  return CANVAS_OK;
}

/* Whether the sizes so far, where growth begins, are legal and within the budget. */
static canvas_status check_base(canvas_context *ctx, struct problem *p, const struct budget *budget,
                                const struct solve_options *options, struct solve_trace *t) {
  TRY(check_bindings(ctx, p, options->exempt));
  if (!problem_measure(p))
    return fail(ctx, CANVAS_NONE, "the cost of the smallest sizes passes 2^62");
  memcpy(t->base, p->total.of, sizeof t->base);
  return check_most(ctx, p->separate || options->paper, budget, p, t);
}

/* Base values; without their scaling where they do not fit with it, unless the paper's are requested. */
static canvas_status find_base(canvas_context *ctx, struct problem *p, const struct budget *budget,
                               const struct solve_options *options, struct solve_trace *t) {
  TRY(problem_units(ctx, p));
  canvas_status status = problem_scale(ctx, p);
  if (status == CANVAS_OK) status = check_base(ctx, p, budget, options, t);
  if (status == CANVAS_OK || options->paper) return status;
  problem_unscale(p);
  return check_base(ctx, p, budget, options, t);
}

static canvas_status find_sizes(canvas_context *ctx, struct problem *p, const struct budget *budget,
                                const struct solve_options *options, struct solve_trace *t) {
  TRY(find_base(ctx, p, budget, options, t));
  problem_grow(p, t);
  if (!options->paper) problem_fill(p, t);
  memcpy(t->used, p->total.of, sizeof t->used);
  canvas_status status = check_least(ctx, true, budget, p, t);
  if (status == CANVAS_OK || options->paper) return status;
  enum exchange answer = problem_exchange(p);
  problem_measure(p);
  memcpy(t->used, p->total.of, sizeof t->used);
  return check_least(ctx, answer == EXCHANGE_NONE, budget, p, t);
}

static canvas_status make_pack(canvas_context *ctx, const struct problem *p, struct pack **out) {
  struct pack *pack = pack_new(p->kernel);
  for (int i = 0; i < p->count; i++)
    if (pack_bind(ctx, pack, &p->bindings[i]) != CANVAS_OK) {
      pack_free(pack);
      return CANVAS_BAD_INPUT;
    }
  *out = pack;
  return CANVAS_OK;
}

canvas_status budget_solve(canvas_context *ctx, const struct kernel *k,
                           const struct targets *targets, const struct budget *budget,
                           const struct solve_options *options, struct pack **out) {
  struct problem p;
  struct solve_trace own, *trace = options->trace ? options->trace : &own;
  *trace = (struct solve_trace){0};
  TRY(check_question(ctx, k, targets, options));
  baseline(targets, trace->baseline);
  set_up(&p, k, targets, options);
  canvas_status status = set_limits(ctx, budget, trace->baseline, &p);
  memcpy(trace->most, p.most, sizeof trace->most);
  if (status == CANVAS_OK) status = find_sizes(ctx, &p, budget, options, trace);
  if (status == CANVAS_OK && !options->exempt) status = check_idle(ctx, &p);
  if (status == CANVAS_OK) status = make_pack(ctx, &p, out);
  mem_free(p.bindings);
  mem_free(p.unit);
  mem_free(p.now);
  mem_free(p.uses);
  return status;
}
