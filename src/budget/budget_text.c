/* Budgets as text: `macs=0.2x..0.5x,params=none`.
 *
 * Numbers are kept as decimal fractions, exactly as they were written: 0.1x of 10 is 1.
 */
#include <stdio.h>
#include <string.h>

#include "budget/budget.h"

static const int64_t number_limit = INT64_C(4000000000000000000);
static const int64_t scale_limit = INT64_C(1000000000000); /* twelve decimals */

static const char *const kind_names[BUDGET_KINDS] = {"macs", "params"};

const char *budget_kind_name(enum budget_kind kind) {
  return kind_names[kind];
}

static struct bound once(void) {
  return (struct bound){.given = true, .relative = true, .usual = true, .num = 1, .den = 1};
}

struct budget budget_default(void) {
  return (struct budget){.most = {once(), once()}};
}

/* -- numbers -- */

static bool times_ten(int64_t *n) {
  if (*n > number_limit / 10) return false;
  *n *= 10;
  return true;
}

/* num/den * 10^power, den a power of ten and the fraction reduced; false outside the limits. */
static bool scale_by(int64_t *num, int64_t *den, int power) {
  for (; power < 0 && *num % 10 == 0 && *num; power++) *num /= 10;
  for (; power > 0 && *den > 1; power--) *den /= 10;
  for (; power > 0; power--)
    if (!times_ten(num)) return false;
  for (; power < 0; power++)
    if (!times_ten(den)) return false;
  for (; *den > 1 && *num % 10 == 0; *den /= 10) *num /= 10;
  return *den <= scale_limit && *num <= number_limit;
}

/* The exponent of `e+12` at p; clipped, as no exponent beyond +-99 is within the limits. */
static int read_exponent(const char *p, const char *end) {
  int sign = 1, value = 0;
  if (p < end && (*p == '+' || *p == '-')) sign = *p++ == '-' ? -1 : 1;
  for (; p < end; p++) value = value > 99 ? 99 : value * 10 + (*p - '0');
  return sign * (value > 99 ? 99 : value);
}

/* The token's digits, exactly. */
static bool read_decimal(const struct token *t, int64_t *num, int64_t *den) {
  const char *end = t->start + t->length;
  int power = 0;
  bool fraction = false;
  *num = 0;
  *den = 1;
  for (const char *p = t->start; p < end; p++) {
    if (*p == '.') {
      fraction = true;
    } else if (*p == 'e' || *p == 'E') {
      power += read_exponent(p + 1, end);
      break;
    } else {
      if (!times_ten(num)) return false;
      *num += *p - '0';
      power -= fraction;
    }
  }
  return !*num || scale_by(num, den, power);
}

/* x, k, M or G directly after a number; 1 without. */
static canvas_status parse_unit(struct lexer *lx, const char *after, struct bound *b) {
  static const struct {
    const char *unit;
    int power;
  } units[] = {{"k", 3}, {"M", 6}, {"G", 9}};
  const struct token t = lx->token;
  if (t.kind != TOKEN_NAME || t.start != after) return CANVAS_OK;
  bool known = lexer_is(lx, "x"), fits = true;
  b->relative = known;
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (lexer_is(lx, units[i].unit)) {
      known = true;
      fits = scale_by(&b->num, &b->den, units[i].power);
    }
  if (!known)
    return lexer_fail(lx, &t, "unknown unit '%.*s', use x (of the layers replaced), k, M or G",
                      t.length < 40 ? t.length : 40, t.start);
  if (!fits) return lexer_fail(lx, &t, "number is over the limit of 4e18");
  lexer_next(lx);
  return CANVAS_OK;
}

/* Below one multiply-accumulate or parameter: a forgotten x. */
static bool under_one(const struct bound *b) {
  return b->given && !b->relative && b->num < b->den;
}

static canvas_status parse_number(struct lexer *lx, struct bound *b) {
  const struct token t = lx->token;
  *b = (struct bound){.given = true, .den = 1};
  if (t.kind != TOKEN_INTEGER && t.kind != TOKEN_REAL)
    return lexer_unexpected(lx, "a positive number such as 0.5x or 900M, or 'none'");
  if (!read_decimal(&t, &b->num, &b->den))
    return lexer_fail(lx, &t, "number '%.*s' is out of range or has more digits than needed",
                      t.length < 40 ? t.length : 40, t.start);
  lexer_next(lx);
  if (!b->num) return lexer_fail(lx, &t, "a budget must be more than 0, or 'none'");
  TRY(parse_unit(lx, t.start + t.length, b));
  if (under_one(b))
    return lexer_fail(lx, &t,
                      "budget %.*s is less than one, write %.*sx for a share of the layers "
                      "replaced",
                      t.length < 40 ? t.length : 40, t.start, t.length < 40 ? t.length : 40,
                      t.start);
  return CANVAS_OK;
}

/* flops = 2*macs: halves a bound, which costs one decimal. A relative one is the same of both. */
static bool halve(struct bound *b) {
  if (b->relative) return true;
  if (b->num % 2 == 0) {
    b->num /= 2;
    return true;
  }
  if (b->num > number_limit / 5) return false;
  b->num *= 5;
  return scale_by(&b->num, &b->den, -1);
}

/* -- budgets -- */

static bool over(const struct bound *a, const struct bound *b) {
  return (__int128)a->num * b->den > (__int128)b->num * a->den;
}

/* `none`, `MOST` or `LEAST..MOST`, MOST a number or none. */
static canvas_status parse_range(struct lexer *lx, struct bound *least, struct bound *most) {
  const struct token at = lx->token;
  *least = *most = (struct bound){0};
  if (lexer_accept(lx, "none")) return CANVAS_OK;
  TRY(parse_number(lx, most));
  if (!lexer_accept(lx, "..")) return CANVAS_OK;
  *least = *most;
  *most = (struct bound){0};
  if (lexer_accept(lx, "none")) return CANVAS_OK;
  TRY(parse_number(lx, most));
  if (least->relative == most->relative && over(least, most))
    return lexer_fail(lx, &at, "the least of a budget is over its most");
  return CANVAS_OK;
}

static canvas_status parse_kind(struct lexer *lx, struct budget *b, unsigned *seen) {
  const struct token at = lx->token;
  bool flops = lexer_is(lx, "flops");
  int kind = flops || lexer_is(lx, "macs") ? BUDGET_MACS : BUDGET_PARAMS;
  if (at.kind != TOKEN_NAME) return lexer_unexpected(lx, "a budget such as 'macs=0.5x'");
  if (kind == BUDGET_PARAMS && !lexer_is(lx, "params"))
    return lexer_fail(lx, &at, "unknown budget '%.*s', use macs, flops or params",
                      at.length < 40 ? at.length : 40, at.start);
  if (*seen >> kind & 1)
    return lexer_fail(lx, &at, "the budget of %s stands twice", kind_names[kind]);
  *seen |= 1u << kind;
  lexer_next(lx);
  TRY(lexer_expect(lx, "=", "after the name of a budget"));
  TRY(parse_range(lx, &b->least[kind], &b->most[kind]));
  if (flops && (!halve(&b->least[kind]) || !halve(&b->most[kind])))
    return lexer_fail(lx, &at, "the budget of flops has more digits than needed");
  if (flops && (under_one(&b->least[kind]) || under_one(&b->most[kind])))
    return lexer_fail(lx, &at,
                      "the budget of flops is less than 2, which is one multiply-accumulate");
  return CANVAS_OK;
}

canvas_status budget_parse(canvas_context *ctx, const char *text, size_t length,
                           struct budget *out) {
  struct lexer lx;
  struct budget b = budget_default();
  unsigned seen = 0;
  TRY(lexer_open(&lx, ctx, text, length));
  lexer_skip_newlines(&lx);
  do {
    TRY(parse_kind(&lx, &b, &seen));
  } while (lexer_accept(&lx, ","));
  lexer_skip_newlines(&lx);
  if (lx.token.kind != TOKEN_END) return lexer_unexpected(&lx, "',' or the end of the budget");
  *out = b;
  return CANVAS_OK;
}

void bound_print(const struct bound *b, struct buf *out) {
  if (!b->given) {
    buf_puts(out, "none");
    return;
  }
  buf_printf(out, "%lld", (long long)(b->num / b->den));
  int64_t rest = b->num % b->den;
  if (rest) buf_puts(out, ".");
  for (int64_t den = b->den / 10; rest; rest %= den, den /= 10)
    buf_printf(out, "%lld", (long long)(rest / den));
  if (b->relative) buf_puts(out, "x");
}

void budget_print(const struct budget *b, struct buf *out) {
  for (int kind = 0; kind < BUDGET_KINDS; kind++) {
    buf_printf(out, "%s%s=", kind ? "," : "", kind_names[kind]);
    if (b->least[kind].given) bound_print(&b->least[kind], out), buf_puts(out, "..");
    bound_print(&b->most[kind], out);
  }
}
