/* Rates as text, and likely rates of a machine by its text. See rates.h. */
#include "cost/rates.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/fnv.h"
#include "base/number.h"

/* ---- likely ---------------------------------------------------------------------------------- */

struct rates rates_likely(const struct machine *m) {
  struct rates r = {
#define X(field, least, most, likely, ...) .field = likely,
      RATES(X)
#undef X
#define X(op, of_vector, of_number) .vector[RATE_##op] = of_vector, .single[RATE_##op] = of_number,
          RATE_CALLS(X)
#undef X
  };
  double wider = m->vector_bytes / COST_CALL_BYTES;
  if (!m->fma) r.fma = r.half = r.tile = 1;
  if (m->vector_bytes < COST_MASKED_BYTES) r.partial = COST_PARTIAL_UNMASKED;
  for (int i = 0; i < RATE_CALL_COUNT; i++) {
    bool divides = i == RATE_DIV || i == RATE_SQRT;
    r.vector[i] *= divides ? wider : 1 + (wider - 1) / COST_CALL_WIDER;
  }
  return r;
}

/* ---- text ------------------------------------------------------------------------------------ */

static const char head[] = "canvas rates 1";

static const char *const call_names[] = {
#define X(op, ...) #op,
    RATE_CALLS(X)
#undef X
};

static void print_row(const char *key, const char *of, double value, struct buf *out) {
  buf_printf(out, "%s%s %.9g\n", key, of, value);
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
  uint64_t sum = fnv(out->text + start, out->length - start);
  buf_printf(out, "sum %016llx\n", (unsigned long long)sum);
}

/* Reads `key value` and moves *at past it. */
static bool parse_row(const char **at, const char *key, const char *of, double least, double most,
                      double *out) {
  enum { LONGEST = 64 };
  char text[LONGEST];
  int length = snprintf(text, sizeof text, "%s%s ", key, of);
  if (strncmp(*at, text, (size_t)length) != 0) return false;
  const char *number = *at + length, *end = strchr(number, '\n');
  if (!end || end - number >= (long)sizeof text) return false;
  memcpy(text, number, (size_t)(end - number));
  text[end - number] = '\0';
  *out = number_parse(text);
  *at = end + 1;
  return *out >= least && *out <= most; /* false for NaN, too */
}

static bool parse_rows(const char *at, struct rates *r) {
  bool good = true;
#define X(field, least, most, ...) \
  good = good && parse_row(&at, #field, "", least, most, &r->field);
  RATES(X)
#undef X
  for (int i = 0; i < RATE_CALL_COUNT && good; i++)
    good =
        parse_row(&at, "vector ", call_names[i], COST_CALL_LEAST, COST_CALL_MOST, &r->vector[i]) &&
        parse_row(&at, "single ", call_names[i], COST_CALL_LEAST, COST_CALL_MOST, &r->single[i]);
  return good && !strncmp(at, "sum ", strlen("sum "));
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
