/* See dim.h. */
#include "dim/dim.h"

#include <stdio.h>
#include <string.h>

#include "base/saturating.h"

_Static_assert(sizeof(struct dim) == 8 + DIM_POWERS, "dims are compared as bytes: no padding");
_Static_assert(DIM_POWERS % 8 == 0, "whole vectors");
_Static_assert(SIZE_X0 == 7, "all variables but the first are in words of their own");

static const struct dim poison = {.num = 0, .den = 1};

int64_t gcd64(int64_t a, int64_t b) {
  while (b) {
    int64_t t = a % b;
    a = b;
    b = t;
  }
  return a < 0 ? -a : a;
}

static struct dim with_number(struct dim d, int64_t num, int64_t den) {
  if (den != 1) {
    int64_t common = gcd64(num, den);
    num /= common;
    den /= common;
  }
  if (num > INT32_MAX || den > INT32_MAX) return poison;
  d.num = (int32_t)num;
  d.den = (int32_t)den;
  return d;
}

struct dim dim_number(int64_t n) {
  struct dim d = {.num = (int32_t)n, .den = 1};
  return n < 1 || n > INT32_MAX ? poison : d;
}

static inline struct dim combine(struct dim a, const struct dim *b, int sign) {
  int8_t beyond = 0;
  if (!a.num || !b->num) return poison;
  for (int s = 0; s < DIM_POWERS; s++) { /* powers are small: no sum leaves an int8_t */
    a.power[s] = (int8_t)(sign > 0 ? a.power[s] + b->power[s] : a.power[s] - b->power[s]);
    beyond |= (int8_t)(POWER_MAX - a.power[s]) | (int8_t)(a.power[s] + POWER_MAX);
  }
  if (beyond < 0) return poison;
  if (sign > 0) return with_number(a, (int64_t)a.num * b->num, (int64_t)a.den * b->den);
  return with_number(a, (int64_t)a.num * b->den, (int64_t)a.den * b->num);
}

struct dim dim_mul(struct dim a, struct dim b) {
  return combine(a, &b, 1);
}

struct dim dim_div(struct dim a, struct dim b) {
  return combine(a, &b, -1);
}

bool dim_is_stride(const struct dim *d) {
  struct dim stride = dim_size(SIZE_S);
  return dim_equal(d, &stride);
}

bool dim_is_poisoned(const struct dim *d) {
  return d->num == 0;
}

/* Eight powers at a time, as bytes of a word: most are 0. */
enum { WORD = sizeof(uint64_t) };
static const uint64_t signs = UINT64_C(0x8080808080808080);

static uint64_t powers_at(const struct dim *d, int from) {
  uint64_t word;
  memcpy(&word, d->power + from, sizeof word);
  return word;
}

/* How far the byte of power `from` + at is shifted in the word of powers_at. */
static int shift_of(int at) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  return 8 * at;
#else
  return 8 * (WORD - 1 - at);
#endif
}

/* The place of a byte that is not 0, in a word that has one. */
static int place_of(uint64_t word) {
  int bit = __builtin_ctzll(word);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  return bit / 8;
#else
  return WORD - 1 - bit / 8;
#endif
}

int dim_variable(const struct dim *d, bool *several) {
  int found = VARIABLES, count = 0;
  bool none = !d->power[SIZE_X0];
  for (int from = WORD; from < DIM_POWERS; from += WORD) none &= !powers_at(d, from);
  for (int x = 0; x < VARIABLES && !none; x++) {
    if (!d->power[SIZE_X0 + x]) continue;
    if (!count++) found = d->power[SIZE_X0 + x] > 0 ? x : ~x;
  }
  if (several) *several = count > 1;
  return found;
}

struct dim dim_substitute(struct dim d, int x, const struct dim *by) {
  int p = d.power[SIZE_X0 + x];
  d.power[SIZE_X0 + x] = 0;
  for (; p > 0; p--) d = dim_mul(d, *by);
  for (; p < 0; p++) d = dim_div(d, *by);
  return d;
}

bool dim_is_whole(const struct dim *d) {
  if (!d->num) return false;
  uint64_t negative = 0;
  for (int from = 0; from < DIM_POWERS; from += WORD) negative |= powers_at(d, from);
  if (d->den == 1 && !(negative & signs)) return true;
  int8_t below = 0, variable = 0; /* the sign bit: whether any is */
  for (int x = 0; x < VARIABLES; x++) {
    below |= d->power[SIZE_X0 + x];
    variable |= (int8_t)-d->power[SIZE_X0 + x];
  }
  if (below < 0) return false;
  if (variable < 0) return true;
  bool above = false;
  for (int s = 0; s < SIZE_X0; s++) above |= d->power[s] > 0;
  for (int s = SIZE_C; s < SIZE_S; s++)
    if (d->power[s] < 0) return false;
  if (d->power[SIZE_C] + d->power[SIZE_G] < 0) return false;
  if (d->power[SIZE_H] + d->power[SIZE_W] + d->power[SIZE_S] < 0) return false;
  return d->den == 1 || above;
}

/* *n *= v, of the fraction *n / *m in lowest terms where v has common factors with *m. */
static bool multiply(int64_t *n, int64_t *m, int64_t v) {
  int64_t common = *m == 1 ? 1 : gcd64(v, *m);
  if (common > 1) *m /= common, v /= common;
  return checked_mul(n, v);
}

/* n/m *= v^p */
static bool to_power(int64_t *n, int64_t *m, int p, int64_t v) {
  if (v < 1) return false;
  for (; p > 0; p--)
    if (!multiply(n, m, v)) return false;
  for (; p < 0; p++)
    if (!multiply(m, n, v)) return false;
  return true;
}

bool dim_ratio(const struct dim *d, const struct sizes *sizes, int64_t *num, int64_t *den) {
  int64_t n = d->num, m = d->den;
  if (!n) return false;
  for (int from = 0; from < DIM_POWERS; from += WORD)
    for (uint64_t word = powers_at(d, from); word;) {
      int at = place_of(word), s = from + at;
      if (!to_power(&n, &m, d->power[s], sizes->value[s])) return false;
      word &= ~(UINT64_C(0xff) << shift_of(at));
    }
  int64_t common = m == 1 ? 1 : gcd64(n, m);
  *num = n / common;
  *den = m / common;
  return true;
}

bool dim_value(const struct dim *d, const struct sizes *sizes, int64_t *value) {
  int64_t den;
  return dim_ratio(d, sizes, value, &den) && den == 1;
}

/* One prime of a dim: multiplied in up to `power` times. */
struct prime {
  struct dim dim;
  int power;
};

static int number_primes(int32_t n, struct prime *out) {
  int count = 0;
  for (int32_t p = 2; (int64_t)p * p <= n; p++) {
    int power = 0;
    for (; n % p == 0; n /= p) power++;
    if (power) out[count++] = (struct prime){dim_number(p), power};
  }
  if (n > 1) out[count++] = (struct prime){dim_number(n), 1};
  return count;
}

/* The primes of d; -1 if a power is below zero (or the number is not whole). */
static int primes(const struct dim *d, struct prime out[SIZES + 16]) {
  if (!d->num || d->den != 1) return -1;
  int count = number_primes(d->num, out);
  int c = d->power[SIZE_C], g = c + d->power[SIZE_G]; /* C = G * (C/G) */
  if (c < 0 || g < 0) return -1;
  if (g) out[count++] = (struct prime){dim_size(SIZE_G), g};
  if (c) out[count++] = (struct prime){dim_div(dim_size(SIZE_C), dim_size(SIZE_G)), c};
  for (int s = SIZE_KH; s < SIZES; s++) {
    if (d->power[s] < 0) return -1;
    if (d->power[s]) out[count++] = (struct prime){dim_size((enum size)s), d->power[s]};
  }
  return count;
}

int dim_divisors(const struct dim *d, struct dim *out, int max) {
  struct prime prime[SIZES + 16];
  int primes_left = primes(d, prime), count = 1;
  if (primes_left < 0) return 0;
  if (max > 0) out[0] = dim_one();
  for (int i = 0; i < primes_left; i++) {
    int before = count;
    struct dim step = dim_one();
    for (int p = 1; p <= prime[i].power; p++) {
      step = dim_mul(step, prime[i].dim);
      for (int j = 0; j < before; j++, count++)
        if (count < max && j < max) out[count] = dim_mul(out[j], step);
    }
  }
  return count;
}

static const char *const size_names[SIZES] = {"G",  "C",   "KH",  "KW",  "H",   "W",   "S",  "x0",
                                              "x1", "x2",  "x3",  "x4",  "x5",  "x6",  "x7", "x8",
                                              "x9", "x10", "x11", "x12", "x13", "x14", "x15"};

const char *size_name(enum size s) {
  return size_names[s];
}

bool size_parse(const char *text, int length, enum size *s) {
  for (int i = 0; i < SIZES; i++)
    if ((int)strlen(size_names[i]) == length && !memcmp(size_names[i], text, (size_t)length)) {
      *s = (enum size)i;
      return true;
    }
  return false;
}

void dim_print(const struct dim *d, struct buf *out) {
  const char *mark = "";
  if (!d->num) {
    buf_puts(out, "?");
    return;
  }
  if (d->num != 1) buf_printf(out, "%d", d->num), mark = "*";
  for (int s = 0; s < SIZES; s++)
    for (int p = 0; p < d->power[s]; p++) buf_printf(out, "%s%s", mark, size_names[s]), mark = "*";
  if (!*mark) buf_puts(out, "1");
  if (d->den != 1) buf_printf(out, "/%d", d->den);
  for (int s = 0; s < SIZES; s++)
    for (int p = 0; p > d->power[s]; p--) buf_printf(out, "/%s", size_names[s]);
}

static canvas_status parse_factor(struct lexer *lx, struct dim *out) {
  const struct token *t = &lx->token;
  enum size s;
  if (t->kind == TOKEN_INTEGER) {
    if (t->integer < 1 || t->integer > INT32_MAX)
      return lexer_fail(lx, t, "number '%.*s' in a dimension is not in 1..2147483647",
                        t->length < 40 ? t->length : 40, t->start);
    *out = dim_number(t->integer);
  } else if (t->kind == TOKEN_NAME && size_parse(t->start, t->length, &s)) {
    *out = dim_size(s);
  } else {
    return lexer_unexpected(lx, "a dimension (a number, G, C, KH, KW, H, W, S or x0..x15)");
  }
  lexer_next(lx);
  return CANVAS_OK;
}

canvas_status dim_parse(struct lexer *lx, struct dim *out) {
  struct token start = lx->token;
  TRY(parse_factor(lx, out));
  while (lexer_is(lx, "*") || lexer_is(lx, "/")) {
    bool times = lexer_is(lx, "*");
    struct dim factor;
    lexer_next(lx);
    TRY(parse_factor(lx, &factor));
    *out = times ? dim_mul(*out, factor) : dim_div(*out, factor);
    if (dim_is_poisoned(out))
      return lexer_fail(lx, &start, "dimension is too large, powers go to %d and numbers to %d",
                        POWER_MAX, INT32_MAX);
  }
  return CANVAS_OK;
}
