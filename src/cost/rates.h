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

/* clang-format off */
/*  field
 *  |          least, most that is believed
 *  |          |     |      what it is */
#define RATES(X) \
  X(hertz,     1e8,  1e11)  /* cycles of the thread in a second */ \
  X(fma,       0.05, 16)    /* multiply-adds of vectors in a cycle */ \
  X(half,      0.05, 32)    /* ... of vectors of half the length */ \
  X(half_stores,0.05, 32)   /* ... of them, stored */ \
  X(tile,      0.02, 20)    /* cycles of each multiply-add of a tile of 4 rows, as compilers write it */ \
  X(latency,   1,    64)    /* cycles until a sum may be added to again */ \
  X(scalar,    0.05, 16)    /* operations on single numbers in a cycle */ \
  X(loads,     0.05, 16)    /* vectors loaded from L1 in a cycle */ \
  X(broadcasts,0.05, 16)    /* numbers loaded into all lanes in a cycle */ \
  X(stores,    0.05, 16)    /* vectors stored in a cycle */ \
  X(l2,        0.1,  1024)  /* bytes in a cycle that come from the second cache, one after the other */ \
  X(l3,        0.1,  1024)  /* ... from the third */ \
  X(memory,    0.05, 1024)  /* ... from beyond */ \
  X(gather,    0.05, 64)    /* cycles for each element of a vector that is put together */ \
  X(partial,   0.05, 1000)  /* cycles of a vector of which all lanes but one are loaded */ \
  X(narrow,    0.05, 1000)  /* ... of four lanes, where vectors are longer */ \
  X(loop,      0.1,  64)    /* cycles of an iteration of a loop with little in it */ \
  X(begin,     0.1,  256)   /* cycles that a loop takes to begin and end */

/* Functions: cycles of a vector, and of one number. */
#define RATE_CALLS(X) \
  X(DIV) X(SQRT) X(EXP) X(LOG) X(SIN) X(COS) X(TANH) X(ERF) X(POW) X(FLOOR)
/* clang-format on */

enum rate_call {
#define X(op) RATE_##op,
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
