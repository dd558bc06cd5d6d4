/* The rates of machines as text, and those that a machine's text makes likely. See rates.h. */
#include "cost/rates.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

/* ---- likely ---------------------------------------------------------------------------------- */

/* Cycles of a vector of 16 bytes in all, and of one number, of x86 processors of about 2020. */
static const struct {
  double vector, single;
} usual[RATE_CALL_COUNT] = {
    [RATE_DIV] = {4, 4},   [RATE_SQRT] = {5, 5},  [RATE_EXP] = {9, 14},   [RATE_LOG] = {12, 14},
    [RATE_SIN] = {16, 20}, [RATE_COS] = {16, 20}, [RATE_TANH] = {18, 40}, [RATE_ERF] = {13, 30},
    [RATE_POW] = {50, 50}, [RATE_FLOOR] = {1, 1},
};

struct rates rates_likely(const struct machine *m) {
  struct rates r = {.hertz = 3e9,
                    .fma = m->fma ? 2 : 1,
                    .half = m->fma ? 2 : 1,
                    .half_stores = 1,
                    .tile = m->fma ? 0.5 : 1,
                    .latency = 4,
                    .scalar = 2,
                    .loads = 2,
                    .broadcasts = 2,
                    .stores = 1,
                    .l2 = 32,
                    .l3 = 12,
                    .memory = 5,
                    .gather = 1,
                    .partial = m->vector_bytes >= 32 ? 2 : 25,
                    .narrow = 14,
                    .loop = 1.5,
                    .begin = 6};
  double wider = m->vector_bytes / 16.0;
  for (int i = 0; i < RATE_CALL_COUNT; i++) {
    bool divides = i == RATE_DIV || i == RATE_SQRT;
    r.vector[i] = usual[i].vector * (divides ? wider : 1 + (wider - 1) / 4);
    r.single[i] = usual[i].single;
  }
  return r;
}

/* ---- text ------------------------------------------------------------------------------------ */

static const char head[] = "canvas rates 1";

static const char *const call_names[] = {
#define X(op) #op,
    RATE_CALLS(X)
#undef X
};

static void print_row(const char *key, const char *of, double value, struct buf *out) {
  buf_printf(out, "%s%s %.9g\n", key, of, value);
}

static uint64_t sum_of(const char *text, size_t length) {
  uint64_t sum = UINT64_C(0xCBF29CE484222325);
  for (size_t i = 0; i < length; i++)
    sum = (sum ^ (unsigned char)text[i]) * UINT64_C(0x100000001B3);
  return sum;
}

void rates_print(const struct rates *r, struct buf *out) {
  size_t start = out->length;
  buf_printf(out, "%s\n", head);
#define X(field, ...) print_row(#field, "", r->field, out);
  RATES(X)
#undef X
  for (int i = 0; i < RATE_CALL_COUNT; i++) {
    print_row("vector ", call_names[i], r->vector[i], out);
    print_row("single ", call_names[i], r->single[i], out);
  }
  uint64_t sum = sum_of(out->text + start, out->length - start);
  buf_printf(out, "sum %016llx\n", (unsigned long long)sum);
}

/* Reads `key value` and moves *at behind it. */
static bool parse_row(const char **at, const char *key, const char *of, double least, double most,
                      double *out) {
  char text[64];
  int length = snprintf(text, sizeof text, "%s%s ", key, of);
  if (strncmp(*at, text, (size_t)length) != 0) return false;
  const char *number = *at + length, *end = strchr(number, '\n');
  if (!end || end - number >= (long)sizeof text) return false;
  memcpy(text, number, (size_t)(end - number));
  text[end - number] = '\0';
  *out = number_parse(text);
  *at = end + 1;
  return *out >= least && *out <= most; /* and is a number */
}

static bool parse_rows(const char *at, struct rates *r) {
  bool good = true;
#define X(field, least, most) good = good && parse_row(&at, #field, "", least, most, &r->field);
  RATES(X)
#undef X
  for (int i = 0; i < RATE_CALL_COUNT && good; i++)
    good = parse_row(&at, "vector ", call_names[i], 0.01, 1e5, &r->vector[i]) &&
           parse_row(&at, "single ", call_names[i], 0.01, 1e5, &r->single[i]);
  return good && !strncmp(at, "sum ", 4);
}

bool rates_parse(const char *text, size_t length, struct rates *out) {
  struct rates r = {.measured = true};
  struct buf again = {0};
  if (strlen(text) != length || strncmp(text, head, sizeof head - 1) != 0) return false;
  if (text[sizeof head - 1] != '\n' || !parse_rows(text + sizeof head, &r)) return false;
  rates_print(&r, &again);
  bool same = again.length == length && !memcmp(again.text, text, length);
  buf_free(&again);
  if (same) *out = r;
  return same;
}
