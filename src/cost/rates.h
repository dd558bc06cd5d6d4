/* Rates of a machine: what one thread does in a cycle. The table is RATES in policy.h.
 *
 * src/tune measures them once per machine, compiler and version of Canvas, in about a second, and
 * keeps them in the cache. Without a compiler, and for another machine, they are the likely rates
 * that follow from the machine's text.
 */
#ifndef CANVAS_COST_RATES_H
#define CANVAS_COST_RATES_H

#include <stdbool.h>

#include "base/buf.h"
#include "bind/machine.h"
#include "cost/policy.h"

enum rate_call {
#define X(op, ...) RATE_##op,
  RATE_CALLS(X)
#undef X
      RATE_CALL_COUNT
};

struct rates {
#define X(field, ...) double field;
  RATES(X)
#undef X
  double vector[RATE_CALL_COUNT], single[RATE_CALL_COUNT];
  bool measured;
};

/* rates.c: likely rates, from the machine's text alone. */
struct rates rates_likely(const struct machine *machine);
/* One `key value` per line; parses back. rates_parse returns false for any other text, and for a
 * rate outside its limits. */
void rates_print(const struct rates *rates, struct buf *out);
bool rates_parse(const char *text, size_t length, struct rates *out);

#endif
