/* What one thread of a machine does in a cycle: the numbers of the cost model.
 *
 * They are measured once per machine, compiler and version of Canvas, in about a second, by code that is
 * compiled as candidates are (rates_probes.c), and kept in the cache beside compiled code. Where there is
 * no compiler, and for a machine that is not this one, they are what its text makes likely.
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

/* rates.c: likely ones, from the machine's text alone. */
struct rates rates_likely(const struct machine *machine);
/* Every number, one `key value` to a line; parses back. False: it is no such text, or no such number. */
void rates_print(const struct rates *rates, struct buf *out);
bool rates_parse(const char *text, size_t length, struct rates *out);

#endif
