/* The text of the sampler's options: "primitives=5..12 require=none draws=rules free=0.2". */
#include <string.h>

#include "base/nearest.h"
#include "sample/prior.h"
#include "sample/sampler.h"

enum { PRIMITIVES_MAX = KERNEL_NODES_MAX - 2, WEIGHT_MOST = 100, BYTES_MOST = 1000000 };

/* The values of `draws=`, in the order of the columns below. */
enum draws { DRAWS_PAPER, DRAWS_RULES, DRAWS_LEARNED, DRAWS };
static const char *const draws_names[DRAWS] = {"paper", "rules", "learned"};

/* What `draws=` sets: how often, in thousandths. The weights of `paper` are the paper's re-scaling:
 * with them the types of one input are equally frequent among the primitives drawn by default,
 * though some may be applied more often than others and kernels must reach (tests/c/test_draws.c).
 * Broadcasts come more often, as every branch must be merged again. */
static const struct often_row {
  const char *name;
  int most; /* a whole number */
  int draws[DRAWS];
} often_rows[OFTEN_COUNT] = {
    [OFTEN_GROUPING] = {"grouping", WEIGHT_MOST, {1400, 1000, 1000}},
    [OFTEN_SHIFT] = {"shift", WEIGHT_MOST, {630, 1000, 1000}},
    [OFTEN_UNFOLD] = {"unfold", WEIGHT_MOST, {890, 1000, 1000}},
    [OFTEN_ELEMENTWISE] = {"elementwise", WEIGHT_MOST, {820, 2000, 1000}},
    [OFTEN_FOLD] = {"fold", WEIGHT_MOST, {645, 1000, 1000}},
    [OFTEN_SOFTMAX] = {"softmax", WEIGHT_MOST, {485, 200, 1000}},
    [OFTEN_BROADCAST] = {"broadcast", WEIGHT_MOST, {1000, 1000, 1000}},
    [OFTEN_MATMUL] = {"matmul", WEIGHT_MOST, {1000, 500, 1000}},
    [OFTEN_SWAP] = {"swap", WEIGHT_MOST, {1000, 500, 1000}},
    [OFTEN_STACK] = {"stack", WEIGHT_MOST, {1000, 1000, 1000}},
    [OFTEN_PICK] = {"pick", WEIGHT_MOST, {1000, 500, 1000}},
    [OFTEN_RESAMPLE] = {"resample", WEIGHT_MOST, {1000, 500, 1000}},
    [OFTEN_NORM] = {"norm", WEIGHT_MOST, {1000, 300, 1000}},
    [OFTEN_COORDS] = {"coords", WEIGHT_MOST, {1000, 100, 1000}},
    [OFTEN_FC] = {"fc", WEIGHT_MOST, {1000, 1000, 1000}},
    [OFTEN_LEARNED] = {"learned", WEIGHT_MOST, {1000, 200, 1000}},
    [OFTEN_IMAGE_FOLD] = {"image_fold", 1, {ALWAYS, 200, ALWAYS}},
    [OFTEN_TO_ONE] = {"to_one", 1, {ALWAYS, 300, ALWAYS}},
    [OFTEN_OTHER_FUNCTIONS] = {"other_functions", 1, {ALWAYS, 100, ALWAYS}},
    [OFTEN_NONLINEAR] = {"nonlinear", 1, {0, 800, 800}},
    [OFTEN_FREE_SIZE] = {"free_size", 1, {0, 750, 750}},
    [OFTEN_FREE] = {"free", 1, {0, 100, 100}},
    [OFTEN_KNOWN] = {"known", 1, {0, 0, 300}},
};
static const int64_t bytes_of_rules = 3400;
/* How many primitives. Small kernels train faster and are better draws (docs/reports/draws.md);
 * evolution makes them larger where that pays. */
static const struct {
  int least, most;
} paper_size = {5, 12}, rules_size = {3, 8};

/* What `draws=` names. */
static void set_draws(struct sample_options *o, enum draws draws) {
  bool paper = draws == DRAWS_PAPER;
  for (int i = 0; i < OFTEN_COUNT; i++) o->often[i] = often_rows[i].draws[draws];
  o->learned = draws == DRAWS_LEARNED;
  o->rules.on = paper ? 0 : (1u << RULE_COUNT) - 1;
  o->rules.bytes = bytes_of_rules;
  if (o->sized) return;
  o->least = paper ? paper_size.least : rules_size.least;
  o->most = paper ? paper_size.most : rules_size.most;
}

struct sample_options sample_options_free(const struct sample_options *o) {
  struct sample_options out = *o;
  out.sized = true;
  set_draws(&out, DRAWS_PAPER);
  out.often[OFTEN_KNOWN] = o->often[OFTEN_KNOWN];
  out.sized = o->sized;
  for (int i = 0; i < OFTEN_NONLINEAR; i++)
    if (o->given >> i & 1) out.often[i] = o->often[i];
  return out;
}

/* -- values -- */

static canvas_status parse_number(struct lexer *lx, int64_t least, int64_t most, int64_t *out) {
  const struct token *t = &lx->token;
  if (t->kind != TOKEN_INTEGER) return lexer_unexpected(lx, "a whole number");
  if (t->integer < least || t->integer > most)
    return lexer_fail(lx, t, "number %lld is not in %lld..%lld", (long long)t->integer,
                      (long long)least, (long long)most);
  *out = t->integer;
  lexer_next(lx);
  return CANVAS_OK;
}

/* A number of 0..most in thousandths. */
static canvas_status parse_thousandths(struct lexer *lx, int most, int64_t *out) {
  const struct token *t = &lx->token;
  if (t->kind != TOKEN_INTEGER && t->kind != TOKEN_REAL) return lexer_unexpected(lx, "a number");
  if (!(t->real >= 0 && t->real <= most))
    return lexer_fail(lx, t, "number %.*s is not in 0..%d", t->length < 40 ? t->length : 40,
                      t->start, most);
  *out = (int64_t)(t->real * 1000 + 0.5);
  lexer_next(lx);
  return CANVAS_OK;
}

static canvas_status parse_primitives(struct lexer *lx, struct sample_options *o) {
  int64_t least = 0, most;
  const struct token at = lx->token;
  TRY(parse_number(lx, 1, PRIMITIVES_MAX, &least));
  most = least;
  if (lexer_accept(lx, "..")) TRY(parse_number(lx, 1, PRIMITIVES_MAX, &most));
  if (most < least)
    return lexer_fail(lx, &at, "primitives=%lld..%lld ends before it begins", (long long)least,
                      (long long)most);
  o->least = (int)least;
  o->most = (int)most;
  o->sized = true;
  return CANVAS_OK;
}

static canvas_status parse_require(struct lexer *lx, struct sample_options *o) {
  o->require_reach = lexer_is(lx, "reach");
  if (!lexer_accept(lx, "reach") && !lexer_accept(lx, "none"))
    return lexer_unexpected(lx, "'reach' or 'none'");
  return CANVAS_OK;
}

static canvas_status parse_groups(struct lexer *lx, struct sample_options *o) {
  return parse_number(lx, 1, SIZE_LIMIT, &o->groups);
}

static canvas_status parse_space(struct lexer *lx, struct sample_options *o) {
  static const char *const names[SPACES] = {"paper", "published", "wide"};
  for (int i = 0; i < SPACES; i++)
    if (lexer_accept(lx, names[i])) {
      o->space = (enum kernel_space)i;
      return CANVAS_OK;
    }
  return lexer_unexpected(lx, "'paper', 'published' or 'wide'");
}

static canvas_status parse_elements(struct lexer *lx, struct sample_options *o) {
  return parse_number(lx, 1, INT64_C(1) << 40, &o->elements_limit);
}

static canvas_status parse_draws(struct lexer *lx, struct sample_options *o) {
  for (int i = 0; i < DRAWS; i++)
    if (lexer_accept(lx, draws_names[i])) {
      set_draws(o, (enum draws)i);
      return CANVAS_OK;
    }
  return lexer_unexpected(lx, "'rules', 'learned' or 'paper'");
}

static canvas_status parse_without(struct lexer *lx, struct sample_options *o) {
  const struct token *t = &lx->token;
  if (t->kind != TOKEN_NAME || !prior_is_known(t->start, t->length))
    return lexer_unexpected(lx, "the name of a kernel of examples/kernels");
  memcpy(o->without, t->start, (size_t)t->length);
  o->without[t->length] = 0;
  lexer_next(lx);
  return CANVAS_OK;
}

/* The rest of the text is kernels. They are read here for their mistakes. */
static canvas_status parse_learn(struct lexer *lx, struct sample_options *o) {
  struct prior *l = prior_new();
  lexer_skip_newlines(lx);
  const struct token first = lx->token;
  canvas_status status = prior_add_text(lx, l);
  if (status == CANVAS_OK && !prior_count(l))
    status = lexer_fail(lx, &first, "expected a kernel, found the end of the text");
  prior_free(l);
  o->learn = first.start;
  o->learn_length = (size_t)(lx->token.start - first.start);
  return status;
}

/* `allow` or `reject` */
static canvas_status parse_rule(struct lexer *lx, enum rule rule, struct sample_options *o) {
  bool reject = lexer_is(lx, "reject");
  if (!reject && !lexer_is(lx, "allow")) return lexer_unexpected(lx, "'allow' or 'reject'");
  o->rules.on = reject ? o->rules.on | 1u << rule : o->rules.on & ~(1u << rule);
  lexer_next(lx);
  return CANVAS_OK;
}

/* `3.4x` or `any` */
static canvas_status parse_bytes(struct lexer *lx, struct sample_options *o) {
  o->rules.on &= ~(1u << RULE_BYTES);
  if (lexer_accept(lx, "any")) return CANVAS_OK;
  o->rules.on |= 1u << RULE_BYTES;
  if (lx->token.kind != TOKEN_INTEGER && lx->token.kind != TOKEN_REAL)
    return lexer_unexpected(lx, "'any' or a number such as 3.4x");
  TRY(parse_thousandths(lx, BYTES_MOST, &o->rules.bytes));
  return lexer_expect(lx, "x", "after the number of bytes=");
}

static canvas_status parse_often(struct lexer *lx, enum often which, struct sample_options *o) {
  int64_t value = 0;
  TRY(parse_thousandths(lx, often_rows[which].most, &value));
  o->often[which] = (int)value;
  o->given |= 1u << which;
  unsigned rule = which == OFTEN_NONLINEAR   ? 1u << RULE_NONLINEAR
                  : which == OFTEN_FREE_SIZE ? 1u << RULE_FIXED_SIZE
                                             : 0;
  o->rules.on = value ? o->rules.on | rule : o->rules.on & ~rule;
  return CANVAS_OK;
}

/* -- options -- */

static const struct option {
  const char *name;
  canvas_status (*parse)(struct lexer *lx, struct sample_options *o);
} options[] = {
    {"primitives", parse_primitives}, {"require", parse_require}, {"groups", parse_groups},
    {"elements", parse_elements},     {"space", parse_space},     {"draws", parse_draws},
    {"without", parse_without},       {"learn", parse_learn},     {"bytes", parse_bytes}};
enum {
  OPTIONS = sizeof options / sizeof *options,
  BEFORE_BYTES = OPTIONS - 1,
  NAMES_MOST = OPTIONS + OFTEN_COUNT + RULE_NONLINEAR + LIMITS_NAMES
};

static const char known_options[] =
    "an option (draws=, space=, primitives=, require=, groups= or elements=; docs/kernel.md lists "
    "the others)";

static bool word_is(const struct token *t, const char *word) {
  return t->kind == TOKEN_NAME && strlen(word) == (size_t)t->length &&
         !memcmp(t->start, word, (size_t)t->length);
}

/* The value of the option `key`; *changes: it is one of those that `draws=` sets. */
static canvas_status parse_value(struct lexer *lx, const struct token *key,
                                 struct sample_options *o, bool *changes) {
  *changes = false;
  if (limits_has(key)) return limits_parse(lx, key, &o->limits);
  for (int i = 0; i < OPTIONS; i++) {
    *changes = i >= BEFORE_BYTES;
    if (word_is(key, options[i].name)) return options[i].parse(lx, o);
  }
  for (int i = 0; i < OFTEN_COUNT; i++)
    if (word_is(key, often_rows[i].name)) return parse_often(lx, (enum often)i, o);
  for (int i = 0; i < RULE_NONLINEAR; i++)
    if (word_is(key, rule_rows[i].name)) return parse_rule(lx, (enum rule)i, o);
  return CANVAS_OK;
}

static bool is_known(const struct token *key) {
  bool known = limits_has(key);
  for (int i = 0; i < OPTIONS; i++) known |= word_is(key, options[i].name);
  for (int i = 0; i < OFTEN_COUNT; i++) known |= word_is(key, often_rows[i].name);
  for (int i = 0; i < RULE_NONLINEAR; i++) known |= word_is(key, rule_rows[i].name);
  return known;
}

/* The names of all options; returns their number. */
static int list_names(const char *out[NAMES_MOST]) {
  int count = 0;
  for (int i = 0; i < OPTIONS; i++) out[count++] = options[i].name;
  for (int i = 0; i < OFTEN_COUNT; i++) out[count++] = often_rows[i].name;
  for (int i = 0; i < RULE_NONLINEAR; i++) out[count++] = rule_rows[i].name;
  for (int i = 0; i < LIMITS_NAMES; i++) out[count++] = limits_names[i];
  return count;
}

static canvas_status fail_unknown(struct lexer *lx) {
  const char *names[NAMES_MOST], *near = NULL;
  const struct token *t = &lx->token;
  if (t->kind == TOKEN_NAME) near = word_nearest(t->start, t->length, names, list_names(names));
  if (!near) return lexer_unexpected(lx, known_options);
  return lexer_fail(lx, t, "there is no option '%.*s': did you mean '%s='?",
                    t->length < 40 ? t->length : 40, t->start, near);
}

/* The names that stand before, to refuse a second value of one. */
struct given {
  const char *names[NAMES_MOST];
  int count;
};

static canvas_status note_given(struct lexer *lx, const struct token *key, struct given *given) {
  const char *names[NAMES_MOST];
  int count = list_names(names);
  for (int i = 0; i < given->count; i++)
    if (word_is(key, given->names[i]))
      return lexer_fail(lx, key, "option '%s' stands twice: give it one value", given->names[i]);
  for (int i = 0; i < count; i++)
    if (word_is(key, names[i])) given->names[given->count++] = names[i];
  return CANVAS_OK;
}

static canvas_status parse_option(struct lexer *lx, struct sample_options *o, struct given *given,
                                  bool *changed) {
  const struct token key = lx->token;
  bool changes;
  if (!is_known(&key)) return fail_unknown(lx);
  TRY(note_given(lx, &key, given));
  if (*changed && word_is(&key, "draws"))
    return lexer_fail(lx, &key, "draws= stands before the options that change it");
  lexer_next(lx);
  TRY(lexer_expect(lx, "=", "after the option's name"));
  TRY(parse_value(lx, &key, o, &changes));
  *changed |= changes;
  return CANVAS_OK;
}

canvas_status sample_options_parse(canvas_context *ctx, const char *text, size_t length,
                                   struct sample_options *out) {
  struct lexer lx;
  struct given given = {.count = 0};
  bool changed = false;
  *out = (struct sample_options){
      .require_reach = true, .elements_limit = ELEMENTS_LIMIT_DEFAULT, .limits = limits_none()};
  set_draws(out, DRAWS_RULES);
  TRY(lexer_open(&lx, ctx, text, length));
  while (lx.token.kind != TOKEN_END) {
    TRY(parse_option(&lx, out, &given, &changed));
    lexer_accept(&lx, ",");
    lexer_skip_newlines(&lx);
  }
  if ((out->learn || *out->without) && !out->learned && !out->often[OFTEN_KNOWN])
    return fail(ctx, CANVAS_BAD_INPUT, "%s has no effect on these draws: give draws=learned",
                out->learn ? "learn=" : "without=");
  return CANVAS_OK;
}
