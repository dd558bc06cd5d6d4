/* The sampler, budgets and the solver. */
#include <stdlib.h>

#include "api/api_call.h"
#include "api/handle.h"
#include "base/json.h"
#include "evolve/mutate.h"
#include "sample/probability.h"

_Static_assert((int)CANVAS_PARENTS_MAX == (int)PARENTS_MAX, "canvas.h says how many");

API_STATUS(canvas_sampler_new,
           (canvas_context * ctx, const canvas_targets *targets, const char *options, size_t length,
            uint64_t seed, canvas_sampler **out),
           (ctx, targets, options, length, seed, out)) {
  NEED(targets);
  NEED(out);
  struct sample_options parsed;
  struct sampler *s;
  TRY(sample_options_parse(ctx, options, length, &parsed));
  TRY(sampler_new(ctx, &targets->list, &parsed, seed, &s));
  *out = (canvas_sampler *)s;
  return CANVAS_OK;
}

void canvas_sampler_free(canvas_sampler *sampler) {
  if (sampler) sampler_free((struct sampler *)sampler);
}

API_STATUS(canvas_sampler_draw,
           (canvas_context * ctx, canvas_sampler *sampler, uint64_t index, canvas_kernel **out,
            int64_t *groups),
           (ctx, sampler, index, out, groups)) {
  NEED(sampler);
  NEED(out);
  NEED(groups);
  struct kernel *k;
  int64_t g;
  TRY(sampler_check(ctx, (struct sampler *)sampler));
  TRY(sampler_draw(ctx, (struct sampler *)sampler, index, &k, &g));
  *out = (canvas_kernel *)k;
  *groups = g;
  return CANVAS_OK;
}

API_STATUS(canvas_sampler_mutate,
           (canvas_context * ctx, canvas_sampler *sampler, uint64_t index,
            const canvas_kernel *const *parents, const int64_t *parent_groups, int count,
            canvas_kernel **out, int64_t *groups),
           (ctx, sampler, index, parents, parent_groups, count, out, groups)) {
  NEED(sampler);
  NEED(out);
  NEED(groups);
  struct parent all[PARENTS_MAX];
  struct child child;
  if (count < 1 || count > PARENTS_MAX)
    return fail(ctx, CANVAS_BAD_INPUT, "a child has one or two parents, not %d", count);
  TRY(need_each(ctx, "parents", parents, count));
  TRY(need_count(ctx, "parent_groups", parent_groups, count));
  for (int i = 0; i < count; i++) {
    if (parent_groups[i] < 0 || parent_groups[i] > SIZE_LIMIT)
      return fail(ctx, CANVAS_BAD_INPUT, "'parent_groups' holds %lld, give 0 to %lld",
                  (long long)parent_groups[i], (long long)SIZE_LIMIT);
    all[i] = (struct parent){kernel_of(parents[i]), parent_groups[i]};
  }
  TRY(kernel_mutate(ctx, (struct sampler *)sampler, index, all, count, &child));
  *out = (canvas_kernel *)child.kernel;
  *groups = child.g;
  return CANVAS_OK;
}

API_STATUS(canvas_draw_is_free,
           (canvas_context * ctx, const char *options, size_t length, uint64_t seed, uint64_t index,
            bool *out),
           (ctx, options, length, seed, index, out)) {
  NEED(out);
  struct sample_options parsed;
  TRY(sample_options_parse(ctx, options, length, &parsed));
  *out = sampler_is_free(&parsed, seed, index);
  return CANVAS_OK;
}

static void print_rules(unsigned rules, struct buf *out) {
  const char *blank = "";
  for (int r = 0; r < RULE_COUNT; r++)
    if (rules >> r & 1) {
      buf_printf(out, "%s%s", blank, rule_rows[r].name);
      blank = " ";
    }
}

API_STATUS(canvas_sampler_probability,
           (canvas_context * ctx, canvas_sampler *sampler, const canvas_kernel *kernel, char **out),
           (ctx, sampler, kernel, out)) {
  NEED(sampler);
  NEED(kernel);
  NEED(out);
  struct sampler *s = (struct sampler *)sampler;
  struct draw_kind kinds[DRAW_KINDS];
  struct probability p;
  struct buf text = {0};
  int count = sampler_kinds(s, kinds);
  TRY(sampler_check(ctx, s));
  for (int i = 0; i < count; i++) {
    TRY(kernel_probability(ctx, s, kernel_of(kernel), &kinds[i], &p));
    buf_puts(&text, i ? ", {\"share\": " : "[{\"share\": ");
    json_number(&text, kinds[i].share);
    buf_puts(&text, ", \"rules\": \"");
    print_rules(kinds[i].rules.on, &text);
    buf_puts(&text, "\", \"probability\": ");
    json_number(&text, p.of_try);
    buf_puts(&text, ", \"why\": ");
    json_string(&text, p.why.text ? p.why.text : "");
    buf_puts(&text, "}");
    buf_free(&p.why);
  }
  buf_puts(&text, "]");
  *out = buf_take(&text);
  return CANVAS_OK;
}

API_STATUS(canvas_sampler_successes,
           (canvas_context * ctx, canvas_sampler *sampler, int64_t attempts, char **out),
           (ctx, sampler, attempts, out)) {
  NEED(sampler);
  NEED(out);
  struct sampler *s = (struct sampler *)sampler;
  struct draw_kind kinds[DRAW_KINDS];
  struct buf text = {0};
  const struct option_number number = {"attempts", (double)attempts, (double)SIZE_LIMIT};
  int count = sampler_kinds(s, kinds);
  TRY(check_numbers(ctx, &number, 1));
  TRY(sampler_check(ctx, s));
  for (int i = 0; i < count; i++)
    buf_printf(&text, "%s{\"attempts\": %lld, \"successes\": %lld, \"limit\": %d}", i ? ", " : "[",
               (long long)attempts, (long long)kernel_successes(s, &kinds[i], attempts),
               SAMPLER_TRIES);
  buf_puts(&text, "]");
  *out = buf_take(&text);
  return CANVAS_OK;
}

API_STATUS(canvas_pack_broken_rules,
           (canvas_context * ctx, const canvas_pack *pack, const char *options, size_t length,
            char **out),
           (ctx, pack, options, length, out)) {
  NEED(pack);
  NEED(out);
  struct sample_options parsed;
  struct buf names = {0};
  const struct pack *p = pack_of(pack);
  TRY(sample_options_parse(ctx, options, length, &parsed));
  unsigned broken = 0;
  for (; p; p = p->next) broken |= rules_broken_at(&parsed.rules, p->kernel, p->data, p->count);
  print_rules(broken, &names);
  *out = buf_take(&names);
  return CANVAS_OK;
}

API_STATUS(canvas_budget_parse,
           (canvas_context * ctx, const char *text, size_t length, canvas_budget **out),
           (ctx, text, length, out)) {
  NEED(out);
  canvas_budget *b = mem_alloc(sizeof *b);
  canvas_status status = budget_parse(ctx, text, length, &b->budget);
  if (status != CANVAS_OK) {
    mem_free(b);
    return status;
  }
  *out = b;
  return CANVAS_OK;
}

void canvas_budget_free(canvas_budget *budget) {
  mem_free(budget);
}

/* `norm=batch` behind its name. */
static canvas_status parse_norm(struct lexer *lx, canvas_solve_options *out) {
  enum norm norm;
  TRY(lexer_expect(lx, "=", "after the option's name"));
  TRY(norm_parse(lx, &norm));
  out->norm = (canvas_norm)norm;
  return CANVAS_OK;
}

/* `NAME=VALUE` of the options of canvas_kernel_solve. */
static canvas_status parse_option(struct lexer *lx, canvas_solve_options *out) {
  bool groups = lexer_accept(lx, "G");
  if (!groups && lexer_accept(lx, "norm")) return parse_norm(lx, out);
  if (!groups) TRY(lexer_expect(lx, "exempt", "or 'G' or 'norm' as an option of solving"));
  TRY(lexer_expect(lx, "=", "after the option's name"));
  const struct token value = lx->token;
  int64_t most = groups ? SIZE_LIMIT : 1, least = groups ? 1 : 0;
  if (value.kind != TOKEN_INTEGER) return lexer_unexpected(lx, "a whole number");
  if (value.integer < least || value.integer > most)
    return lexer_fail(lx, &value, "%s is a whole number from %lld to %lld, not %lld",
                      groups ? "G" : "exempt", (long long)least, (long long)most,
                      (long long)value.integer);
  lexer_next(lx);
  if (groups)
    out->groups = value.integer;
  else
    out->exempt = value.integer;
  return CANVAS_OK;
}

_Static_assert(CANVAS_NORM_NONE == (int)NORM_NONE && CANVAS_NORM_BATCH == (int)NORM_BATCH,
               "the public names of norms");

API_STATUS(canvas_solve_options_parse,
           (canvas_context * ctx, const char *text, size_t length, canvas_solve_options *out),
           (ctx, text, length, out)) {
  NEED(out);
  struct lexer lx;
  canvas_solve_options options = {0, false, CANVAS_NORM_NONE};
  TRY(lexer_open(&lx, ctx, text, length));
  lexer_skip_newlines(&lx);
  while (lx.token.kind != TOKEN_END) {
    TRY(parse_option(&lx, &options));
    lexer_accept(&lx, ",");
    lexer_skip_newlines(&lx);
  }
  *out = options;
  return CANVAS_OK;
}

static canvas_status check_solve_options(canvas_context *ctx, const canvas_solve_options *o) {
  const struct option_number groups = {"groups", (double)o->groups, (double)SIZE_LIMIT};
  TRY(check_numbers(ctx, &groups, 1));
  if (o->norm == CANVAS_NORM_NONE || o->norm == CANVAS_NORM_BATCH) return CANVAS_OK;
  return fail(ctx, CANVAS_BAD_INPUT, "the option 'norm' is %d, give one of canvas_norm",
              (int)o->norm);
}

API_STATUS(canvas_kernel_solve,
           (canvas_context * ctx, const canvas_kernel *kernel, const canvas_targets *targets,
            const canvas_budget *budget, const canvas_solve_options *options, canvas_pack **out),
           (ctx, kernel, targets, budget, options, out)) {
  NEED(kernel);
  NEED(targets);
  NEED(budget);
  NEED(out);
  struct solve_options inner = {0};
  struct pack *p;
  if (options) {
    TRY(check_solve_options(ctx, options));
    inner.g = options->groups;
    inner.exempt = options->exempt;
    inner.norm = (enum norm)options->norm;
  }
  TRY(budget_solve(ctx, kernel_of(kernel), &targets->list, &budget->budget, &inner, &p));
  *out = (canvas_pack *)p;
  return CANVAS_OK;
}
