/* See index.h. */
#include "primitive/index.h"

#include <inttypes.h>
#include <string.h>

static const struct dim unknown = {.num = 0, .den = 1};

/* Whether d is a whole number at all legal sizes: G divides C, S divides H and W. */
static bool is_whole(const struct dim *d) {
  if (!d->num || d->den != 1) return false;
  for (int s = SIZE_C; s < SIZES; s++)
    if (s != SIZE_S && d->power[s] < 0) return false;
  int images = d->power[SIZE_H] + d->power[SIZE_W];
  return d->power[SIZE_G] + d->power[SIZE_C] >= 0 && d->power[SIZE_S] + images >= 0;
}

static bool divides(const struct dim *by, const struct dim *d) {
  struct dim quotient = dim_div(*d, *by);
  return is_whole(&quotient);
}

/* -- sums -- */

static struct index *blank(struct arena *a, int terms) {
  return arena_alloc(a, sizeof(struct index) + (size_t)terms * sizeof(struct term));
}

static bool same_index(const struct index *l, const struct index *r);

/* But for sign and factor. */
static bool same_factor(const struct term *l, const struct term *r) {
  if (l->kind != r->kind) return false;
  if (l->kind == INDEX_VARIABLE) return !strcmp(l->name, r->name);
  if (l->kind == INDEX_NUMBER) return l->value == r->value;
  if (!dim_equal(&l->by, &r->by)) return false;
  return l->kind == INDEX_HALF || same_index(l->of, r->of);
}

static bool same_term(const struct term *l, const struct term *r) {
  return l->sign == r->sign && dim_equal(&l->times, &r->times) && same_factor(l, r);
}

static bool same_index(const struct index *l, const struct index *r) {
  if (l->count != r->count) return false;
  for (int i = 0; i < l->count; i++)
    if (!same_term(&l->term[i], &r->term[i])) return false;
  return true;
}

static void drop(struct index *l, int i) {
  memmove(&l->term[i], &l->term[i + 1], (size_t)(--l->count - i) * sizeof *l->term);
}

/* Adds t to a term that differs in its number or its sign at most; false: there is none. */
static bool merge(struct index *l, const struct term *t) {
  for (int i = 0; i < l->count; i++) {
    struct term *u = &l->term[i];
    if (!dim_equal(&u->times, &t->times)) continue;
    if (u->kind == INDEX_NUMBER && t->kind == INDEX_NUMBER) {
      int64_t value = u->sign * u->value + t->sign * t->value;
      u->sign = value < 0 ? -1 : 1;
      u->value = value < 0 ? -value : value;
      u->range = unknown;
      if (!value) drop(l, i);
      return true;
    }
    if (u->sign != t->sign && same_factor(u, t)) {
      drop(l, i);
      return true;
    }
  }
  return false;
}

static int find(const struct index *l, const struct term *t) {
  for (int i = 0; i < l->count; i++)
    if (same_term(&l->term[i], t)) return i;
  return -1;
}

static const struct index *scaled(struct arena *a, const struct index *l, int sign,
                                  const struct dim *by) {
  struct index *out = blank(a, l->count);
  out->count = l->count;
  for (int i = 0; i < l->count; i++) {
    out->term[i] = l->term[i];
    out->term[i].sign *= sign;
    out->term[i].times = dim_mul(l->term[i].times, *by);
  }
  return out;
}

/* The place of m * (r / m) for a term r mod m, where r is the remainder of the same index by more; -1. */
static int quotient_of_more(const struct index *l, const struct term *t) {
  struct dim times = dim_mul(t->times, t->by);
  for (int i = 0; i < l->count; i++) {
    const struct term *q = &l->term[i];
    if (q->kind != INDEX_QUOTIENT || q->sign != t->sign || !dim_equal(&q->times, &times)) continue;
    const struct term *r = &q->of->term[0];
    if (dim_equal(&q->by, &t->by) && q->of->count == 1 && r->kind == INDEX_REMAINDER &&
        r->sign > 0 && dim_is_one(&r->times) && divides(&t->by, &r->by) && same_index(r->of, t->of))
      return i;
  }
  return -1;
}

/* by * (e / by) + e mod by is e: the terms of the quotient go, e takes the place of the remainder. */
static const struct index *rejoined(struct arena *a, const struct index *l) {
  for (int i = 0; i < l->count; i++) {
    const struct term *t = &l->term[i];
    if (t->kind != INDEX_REMAINDER) continue;
    int more = quotient_of_more(l, t);
    if (more >= 0) {
      struct index *joined = blank(a, l->count);
      memcpy(joined, l, sizeof *l + (size_t)l->count * sizeof *l->term);
      joined->term[i] = l->term[more].of->term[0];
      joined->term[i].sign = t->sign;
      joined->term[i].times = t->times;
      drop(joined, more);
      return joined;
    }
    struct dim times = dim_mul(t->times, t->by);
    const struct index *rest = scaled(a, index_div(a, t->of, &t->by), t->sign, &times);
    struct index *left = blank(a, l->count);
    memcpy(left, l, sizeof *l + (size_t)l->count * sizeof *l->term);
    drop(left, i);
    bool all = rest->count > 0;
    for (int j = 0; all && j < rest->count; j++) {
      int at = find(left, &rest->term[j]);
      all = at >= 0;
      if (all) drop(left, at);
    }
    if (all) return index_add(a, left, scaled(a, t->of, t->sign, &t->times));
  }
  return l;
}

static const struct index *sum(struct arena *a, const struct index *l, const struct index *r,
                               int sign) {
  struct index *out = blank(a, l->count + r->count);
  for (int i = 0; i < l->count + r->count; i++) {
    struct term t = i < l->count ? l->term[i] : r->term[i - l->count];
    if (i >= l->count) t.sign *= sign;
    if (!merge(out, &t)) out->term[out->count++] = t;
  }
  return rejoined(a, out);
}

const struct index *index_add(struct arena *a, const struct index *l, const struct index *r) {
  return sum(a, l, r, 1);
}

const struct index *index_sub(struct arena *a, const struct index *l, const struct index *r) {
  return sum(a, l, r, -1);
}

const struct index *index_mul(struct arena *a, const struct index *l, const struct dim *by) {
  return scaled(a, l, 1, by);
}

const struct index *index_zero(struct arena *a) {
  return blank(a, 0);
}

static const struct index *single(struct arena *a, struct term t) {
  struct index *out = blank(a, 1);
  t.sign = 1;
  out->count = 1;
  out->term[0] = t;
  return out;
}

const struct index *index_variable(struct arena *a, const char *name, const struct dim *range) {
  return single(a, (struct term){.times = dim_one(),
                                 .kind = INDEX_VARIABLE,
                                 .range = *range,
                                 .name = name,
                                 .by = dim_one()});
}

const struct index *index_number(struct arena *a, int64_t number, const struct dim *times,
                                 const struct dim *range) {
  if (!number) return blank(a, 0);
  return single(a, (struct term){.times = *times,
                                 .kind = INDEX_NUMBER,
                                 .range = *range,
                                 .value = number,
                                 .by = dim_one()});
}

const struct index *index_half(struct arena *a, const struct dim *d) {
  struct dim number = dim_number(d->num), one = dim_one();
  if (dim_equal(d, &number)) return index_number(a, d->num / 2, &one, &unknown);
  return single(a, (struct term){.times = one, .kind = INDEX_HALF, .range = unknown, .by = *d});
}

/* -- quotients and remainders -- */

/* Whether the terms not in `used` are below `most` together with others below `limit`: digits of a number
 * whose digits have different ranges. */
static bool fits(const struct index *l, unsigned used, struct dim limit, const struct dim *most) {
  if (used == (1u << l->count) - 1) return divides(&limit, most);
  for (int i = 0; i < l->count; i++) {
    const struct term *t = &l->term[i];
    if (used >> i & 1 || !t->range.num || !divides(&limit, &t->times)) continue;
    struct dim next = dim_mul(t->times, t->range);
    if (divides(&next, most) && fits(l, used | 1u << i, next, most)) return true;
  }
  return false;
}

enum { DIGITS = 10 };

static bool is_below(const struct index *l, const struct dim *most) {
  for (int i = 0; i < l->count; i++)
    if (l->term[i].sign < 0) return false;
  return !l->count || (l->count <= DIGITS && fits(l, 0, dim_one(), most));
}

/* The least known range of a sum, or unknown. */
static struct dim range_of(const struct index *l) {
  for (int i = 0; i < l->count; i++) {
    struct dim range = dim_mul(l->term[i].times, l->term[i].range);
    if (range.num && is_below(l, &range)) return range;
  }
  return unknown;
}

static bool is_multiple(const struct term *t, const struct dim *by) {
  struct dim times = t->times;
  if (t->kind == INDEX_NUMBER && t->value <= INT32_MAX)
    times = dim_mul(times, dim_number(t->value));
  return divides(by, &times);
}

/* A term divided by what divides it. */
static struct term divided(struct term t, const struct dim *by) {
  struct dim quotient = dim_div(t.times, *by);
  if (t.kind == INDEX_NUMBER && !is_whole(&quotient)) {
    quotient = dim_mul(quotient, dim_number(t.value));
    t.value = 1;
    t.range = unknown;
  }
  t.times = quotient;
  return t;
}

const struct index *index_div(struct arena *a, const struct index *l, const struct dim *by) {
  struct index *whole = blank(a, l->count + 1), *rest = blank(a, l->count);
  if (dim_is_one(by)) return l;
  for (int i = 0; i < l->count; i++) {
    const struct term *t = &l->term[i];
    if (is_multiple(t, by))
      whole->term[whole->count++] = divided(*t, by);
    else
      rest->term[rest->count++] = *t;
  }
  if (is_below(rest, by)) return whole;
  struct term t = {.sign = 1,
                   .times = dim_one(),
                   .kind = INDEX_QUOTIENT,
                   .range = unknown,
                   .by = *by,
                   .of = rest};
  struct dim range = range_of(rest);
  if (range.num && divides(by, &range)) t.range = dim_div(range, *by);
  const struct term *first = &rest->term[0]; /* a quotient of a quotient is one */
  struct dim both = dim_mul(first->by, *by);
  if (rest->count == 1 && first->kind == INDEX_QUOTIENT && dim_is_one(&first->times) && both.num &&
      first->sign > 0) {
    t.of = first->of;
    t.by = both;
  }
  whole->term[whole->count++] = t;
  return whole;
}

/* Terms without those that `by` divides; a remainder by a multiple of `by` is what it is of. */
static const struct index *reduced(struct arena *a, const struct index *l, const struct dim *by) {
  const struct index *out = blank(a, 0);
  bool again = false;
  for (int i = 0; i < l->count; i++) {
    const struct term *t = &l->term[i];
    struct dim circle = dim_mul(t->times, t->by);
    if (is_multiple(t, by)) continue;
    const struct index *part = single(a, *t);
    bool opens = t->kind == INDEX_REMAINDER && divides(by, &circle);
    if (opens) part = scaled(a, t->of, 1, &t->times);
    again |= opens;
    out = sum(a, out, part, t->sign);
  }
  return again ? reduced(a, out, by) : out;
}

const struct index *index_mod(struct arena *a, const struct index *l, const struct dim *by) {
  if (is_below(l, by)) return l;
  const struct index *rest = reduced(a, l, by);
  if (is_below(rest, by)) return rest;
  return single(
      a, (struct term){
             .times = dim_one(), .kind = INDEX_REMAINDER, .range = *by, .by = *by, .of = rest});
}

int index_weight(const struct index *l) {
  int weight = l->count;
  for (int i = 0; i < l->count; i++)
    if (l->term[i].of) weight += index_weight(l->term[i].of);
  return weight;
}

/* -- text -- */

void index_print_dim(const struct dim *d, struct buf *out) {
  struct buf b = {0};
  dim_print(d, &b);
  for (const char *p = b.text; *p; p++)
    if (*p == '*')
      buf_puts(out, "·");
    else
      buf_bytes(out, p, 1);
  buf_free(&b);
}

void index_print_divisor(const struct dim *d, struct buf *out) {
  struct buf b = {0};
  index_print_dim(d, &b);
  bool word = !strpbrk(b.text, "/") && !strstr(b.text, "·");
  buf_printf(out, word ? "%s" : "(%s)", b.text);
  buf_free(&b);
}

/* In parentheses unless it is one word. */
static void print_sum(const struct index *l, struct buf *out) {
  const struct term *t = &l->term[0];
  bool word = l->count == 1 && t->sign > 0 && dim_is_one(&t->times) && t->kind != INDEX_REMAINDER;
  buf_puts(out, word ? "" : "(");
  index_print(l, out);
  buf_puts(out, word ? "" : ")");
}

static void print_number(const struct term *t, struct buf *out) {
  struct dim times = t->value <= INT32_MAX ? dim_mul(t->times, dim_number(t->value)) : unknown;
  if (times.num) {
    index_print_dim(&times, out);
    return;
  }
  buf_printf(out, "%" PRId64 "·", t->value);
  index_print_divisor(&t->times, out);
}

static void print_factor(const struct term *t, bool alone, struct buf *out) {
  switch (t->kind) {
    case INDEX_VARIABLE: buf_puts(out, t->name); return;
    case INDEX_NUMBER: print_number(t, out); return;
    case INDEX_HALF:
      buf_puts(out, "⌊");
      index_print_dim(&t->by, out);
      buf_puts(out, "/2⌋");
      return;
    case INDEX_QUOTIENT:
      buf_puts(out, "⌊");
      print_sum(t->of, out);
      buf_puts(out, "/");
      index_print_divisor(&t->by, out);
      buf_puts(out, "⌋");
      return;
    case INDEX_REMAINDER:
      buf_puts(out, alone ? "" : "(");
      print_sum(t->of, out);
      buf_puts(out, " mod ");
      index_print_divisor(&t->by, out);
      buf_puts(out, alone ? "" : ")");
      return;
  }
}

static bool is_quotient(const struct dim *d) {
  bool below = d->den > 1;
  for (int s = 0; s < SIZES; s++) below |= d->power[s] < 0;
  return below;
}

static void print_times(const struct term *t, const char *before, const char *behind,
                        struct buf *out) {
  buf_puts(out, before);
  index_print_dim(&t->times, out);
  buf_puts(out, behind);
}

void index_print(const struct index *l, struct buf *out) {
  if (!l->count) buf_puts(out, "0");
  for (int i = 0; i < l->count; i++) {
    const struct term *t = &l->term[i];
    buf_puts(out, i ? t->sign > 0 ? " + " : " - " : t->sign > 0 ? "" : "-");
    bool plain = dim_is_one(&t->times) || t->kind == INDEX_NUMBER, behind = is_quotient(&t->times);
    if (!plain && !behind) print_times(t, "", "·", out);
    print_factor(t, plain && l->count == 1, out);
    if (!plain && behind) print_times(t, "·", "", out);
  }
}
