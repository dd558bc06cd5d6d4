/* The options behind limits: "forbid=softmax:exp windows=3:5 width=2..8". A word of a filter stands for
 * all primitives whose name begins with it, ours or the published code's.
 */
#include <string.h>

#include "base/nearest.h"
#include "sample/limits.h"

enum { WORD_SIZE = 40, NUMBERS_MOST = 32, SHIFTS_MOST = 7, DILATIONS_ALONE = 8 };

/* -- names of primitives -- */

/* Other names: those of the published code, where they are not ours. */
static const struct alias {
  const char *name;
  uint64_t of;
} aliases[] = {{"badd", UINT64_C(1) << PRIMITIVE_ADD},
               {"bsub", UINT64_C(1) << PRIMITIVE_SUB},
               {"bmul", UINT64_C(1) << PRIMITIVE_MUL},
               {"bmin", UINT64_C(1) << PRIMITIVE_MIN},
               {"bmax", UINT64_C(1) << PRIMITIVE_MAX},
               {"bmm", UINT64_C(1) << PRIMITIVE_MATMUL | UINT64_C(1) << PRIMITIVE_MATMUL_SCALED},
               {"mix", UINT64_C(1) << KIND_MIX},
               {"fold_avg", UINT64_C(1) << PRIMITIVE_FOLD_MEAN}};
enum { ALIASES = sizeof aliases / sizeof *aliases, NAMES_MOST = KINDS + ALIASES };

/* Names that say more than a filter can. */
static const struct refusal {
  const char *begins, *say;
} refusals[] = {
    {"convolution", "a convolution is two primitives here: name 'unfold' and 'fc'"},
    {"unfold", "a filter names no axes and sizes: name 'unfold', and give windows= or dilations="},
    {"shift", "a filter names no axes and sizes: name 'shift', and give shifts="},
    {"group", "a filter names no axes and sizes: name 'group', 'group_each' or 'group_none'"},
    {"fold", "a filter names no axes: name 'fold', 'fold_mean' or 'fold_max'"},
    {"softmax", "a filter names no axes: name 'softmax'"},
    {"scale", "a filter names no axes: name 'scale'"},
    {"bmm", "a filter names no transposes: name 'matmul'"},
};

/* `fold_mean`: the word and the mode of a row, which is drawn. */
static void name_of(int kind, char out[WORD_SIZE]) {
  const struct row *row = &primitive_rows[kind];
  size_t length = strlen(row->word);
  memcpy(out, row->word, length + 1);
  if (!*row->mode) return;
  out[length] = '_';
  memcpy(out + length + 1, row->mode, strlen(row->mode) + 1);
}

static bool begins(const char *name, const struct token *word) {
  return !strncmp(name, word->start, (size_t)word->length);
}

static uint64_t kinds_named(const struct token *word) {
  uint64_t found = 0;
  char name[WORD_SIZE];
  for (int i = 0; i < PRIMITIVE_COUNT; i++) {
    if (primitive_rows[i].space == SPACE_NONE) continue;
    name_of(i, name);
    if (begins(name, word)) found |= UINT64_C(1) << i;
  }
  for (int i = 0; i < ALIASES; i++)
    if (begins(aliases[i].name, word)) found |= aliases[i].of;
  return found;
}

const char *kinds_word(uint64_t of) {
  for (int i = 0; i < PRIMITIVE_COUNT; i++)
    if (of >> i & 1) return primitive_rows[i].word;
  return "mix";
}

static canvas_status fail_name(struct lexer *lx, const struct token *word) {
  char names[PRIMITIVE_COUNT][WORD_SIZE];
  const char *all[NAMES_MOST];
  int count = 0, length = word->length < WORD_SIZE ? word->length : WORD_SIZE;
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
    const char *known = refusals[i].begins;
    if (!strncmp(word->start, known, strlen(known)) || (word->length >= 4 && begins(known, word)))
      return lexer_fail(lx, word, "no primitive is '%.*s': %s", length, word->start,
                        refusals[i].say);
  }
  for (int i = 0; i < PRIMITIVE_COUNT; i++) {
    if (primitive_rows[i].space == SPACE_NONE) continue;
    name_of(i, names[i]);
    all[count++] = names[i];
  }
  for (int i = 0; i < ALIASES; i++) all[count++] = aliases[i].name;
  const char *near = word_nearest(word->start, length, all, count);
  return lexer_fail(lx, word, "no primitive is '%.*s'%s%s%s (canvas primitives lists them)", length,
                    word->start, near ? ": did you mean '" : "", near ? near : "",
                    near ? "'?" : "");
}

/* -- lists -- */

static canvas_status parse_kinds(struct lexer *lx, uint64_t *out) {
  if (lx->token.kind != TOKEN_NAME) return lexer_unexpected(lx, "the name of a primitive");
  *out = kinds_named(&lx->token);
  if (!*out) return fail_name(lx, &lx->token);
  lexer_next(lx);
  return CANVAS_OK;
}

static canvas_status parse_some_kinds(struct lexer *lx, uint64_t *out) {
  *out = 0;
  do {
    uint64_t more = 0;
    TRY(parse_kinds(lx, &more));
    *out |= more;
  } while (lexer_accept(lx, ":"));
  return CANVAS_OK;
}

static canvas_status parse_allow(struct lexer *lx, struct limits *l) {
  uint64_t allowed = 0;
  TRY(parse_some_kinds(lx, &allowed));
  l->forbidden |= ~allowed & ((UINT64_C(1) << KINDS) - 1) & ~(UINT64_C(1) << PRIMITIVE_INPUT) &
                  ~(UINT64_C(1) << PRIMITIVE_OUTPUT);
  return CANVAS_OK;
}

static canvas_status parse_forbid(struct lexer *lx, struct limits *l) {
  uint64_t more = 0;
  TRY(parse_some_kinds(lx, &more));
  l->forbidden |= more;
  return CANVAS_OK;
}

static canvas_status parse_need(struct lexer *lx, struct limits *l) {
  const struct token at = lx->token;
  do {
    if (l->needs == NEEDS_MAX)
      return lexer_fail(lx, &at, "need= takes at most %d primitives", NEEDS_MAX);
    TRY(parse_kinds(lx, &l->need[l->needs]));
    l->needs++;
  } while (lexer_accept(lx, ":"));
  return CANVAS_OK;
}

static canvas_status parse_number(struct lexer *lx, int least, int most, int *out) {
  const struct token *t = &lx->token;
  if (t->kind != TOKEN_INTEGER) return lexer_unexpected(lx, "a whole number");
  if (t->integer < least || t->integer > most)
    return lexer_fail(lx, t, "number %lld is not in %d..%d", (long long)t->integer, least, most);
  *out = (int)t->integer;
  lexer_next(lx);
  return CANVAS_OK;
}

/* The same number twice is a slip. */
static canvas_status add_number(struct lexer *lx, const struct token *at, int value,
                                uint32_t *out) {
  if (*out >> value & 1)
    return lexer_fail(lx, at, "'%.*s' stands twice in the list", at->length, at->start);
  *out |= UINT32_C(1) << value;
  return CANVAS_OK;
}

static canvas_status parse_numbers(struct lexer *lx, int most, int count, uint32_t *out) {
  const struct token at = lx->token;
  *out = 0;
  do {
    const struct token word = lx->token;
    int value = 0;
    TRY(parse_number(lx, 1, most, &value));
    TRY(add_number(lx, &word, value, out));
  } while (lexer_accept(lx, ":"));
  if (__builtin_popcount(*out) > count)
    return lexer_fail(lx, &at, "there are at most %d different numbers", count);
  return CANVAS_OK;
}

/* What is drawn of each tensor must not be more than a family may offer. */
static canvas_status check_combined(struct lexer *lx, const struct token *at,
                                    const struct limits *l) {
  int windows = __builtin_popcount(l->windows), dilations = __builtin_popcount(l->dilations);
  if (windows * dilations > NUMBERS_MOST)
    return lexer_fail(lx, at, "%d windows with %d dilations each are more than %d", windows,
                      dilations, NUMBERS_MOST);
  return CANVAS_OK;
}

static canvas_status parse_windows(struct lexer *lx, struct limits *l) {
  const struct token at = lx->token;
  l->windows = 0;
  do {
    const struct token word = lx->token;
    int value = 0;
    if (!lexer_accept(lx, "K")) {
      if (word.kind != TOKEN_INTEGER) return lexer_unexpected(lx, "K or an odd number");
      if (word.integer < 3 || word.integer > WINDOW_MOST || word.integer % 2 == 0)
        return lexer_fail(lx, &word, "a window is K or an odd number in 3..%d, not %lld",
                          WINDOW_MOST, (long long)word.integer);
      TRY(parse_number(lx, 3, WINDOW_MOST, &value));
    }
    TRY(add_number(lx, &word, value, &l->windows));
  } while (lexer_accept(lx, ":"));
  return check_combined(lx, &at, l);
}

static canvas_status parse_dilations(struct lexer *lx, struct limits *l) {
  const struct token at = lx->token;
  TRY(parse_numbers(lx, DILATION_MOST, DILATIONS_ALONE, &l->dilations));
  return check_combined(lx, &at, l);
}

static canvas_status parse_shifts(struct lexer *lx, struct limits *l) {
  return parse_numbers(lx, PIXELS_MOST, SHIFTS_MOST, &l->shifts);
}

/* -- ranges and shares -- */

static canvas_status parse_range(struct lexer *lx, int least, int most, int *from, int *to) {
  const struct token at = lx->token;
  TRY(parse_number(lx, least, most, from));
  *to = *from;
  if (lexer_accept(lx, "..")) TRY(parse_number(lx, least, most, to));
  if (*to < *from) return lexer_fail(lx, &at, "%d..%d ends before it begins", *from, *to);
  return CANVAS_OK;
}

static canvas_status parse_width(struct lexer *lx, struct limits *l) {
  return parse_range(lx, 1, KERNEL_NODES_MAX - 2, &l->width_least, &l->width_most);
}

static canvas_status parse_weighted(struct lexer *lx, struct limits *l) {
  const struct token at = lx->token;
  l->weighted_given = true;
  TRY(parse_range(lx, 0, KERNEL_NODES_MAX - 2, &l->weighted_least, &l->weighted_most));
  if (!l->weighted_most)
    return lexer_fail(lx, &at, "weighted=0..0 leaves kernels without weights: allow at least one");
  return CANVAS_OK;
}

static canvas_status parse_share(struct lexer *lx, int *out) {
  const struct token *t = &lx->token;
  if (t->kind != TOKEN_INTEGER && t->kind != TOKEN_REAL) return lexer_unexpected(lx, "a number");
  if (!(t->real >= 0 && t->real <= 1))
    return lexer_fail(lx, t, "number %.*s is not in 0..1", t->length < 40 ? t->length : 40,
                      t->start);
  *out = (int)(t->real * 1000 + 0.5);
  lexer_next(lx);
  return CANVAS_OK;
}

static canvas_status parse_weighted_share(struct lexer *lx, struct limits *l) {
  l->weighted_given = true;
  return parse_share(lx, &l->weighted_share);
}

static canvas_status parse_receptive(struct lexer *lx, struct limits *l) {
  return parse_number(lx, 1, RECEPTIVE_MOST, &l->receptive);
}

static canvas_status parse_matmul(struct lexer *lx, struct limits *l) {
  return parse_share(lx, &l->matmul);
}

static canvas_status parse_fixed_hw(struct lexer *lx, struct limits *l) {
  l->refuse_fixed_hw = lexer_is(lx, "refuse");
  if (!lexer_accept(lx, "refuse") && !lexer_accept(lx, "allow"))
    return lexer_unexpected(lx, "'allow' or 'refuse'");
  return CANVAS_OK;
}

const char *const limits_names[LIMITS_NAMES] = {
    "allow", "forbid",   "need",           "windows",   "dilations", "shifts",
    "width", "weighted", "weighted_share", "receptive", "fixed_hw",  "with_matmul"};
static canvas_status (*const parsers[LIMITS_NAMES])(struct lexer *lx, struct limits *l) = {
    parse_allow,          parse_forbid,    parse_need,     parse_windows,
    parse_dilations,      parse_shifts,    parse_width,    parse_weighted,
    parse_weighted_share, parse_receptive, parse_fixed_hw, parse_matmul};

/* LIMITS_NAMES: none. */
static int option_of(const struct token *key) {
  int i = 0;
  while (i < LIMITS_NAMES && (strlen(limits_names[i]) != (size_t)key->length ||
                              strncmp(limits_names[i], key->start, (size_t)key->length) != 0))
    i++;
  return i;
}

bool limits_has(const struct token *key) {
  return key->kind == TOKEN_NAME && option_of(key) < LIMITS_NAMES;
}

canvas_status limits_parse(struct lexer *lx, const struct token *key, struct limits *l) {
  return parsers[option_of(key)](lx, l);
}
