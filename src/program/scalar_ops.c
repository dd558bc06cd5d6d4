/* The rows of scalar_ops.h as a table; leaves have empty rows. */
#include "program/scalar_ops.h"

#include "program/program.h"

#define LEAF(op) [op] = {.name = "", .text = "", .binding = BIND_LEAF, .sorts = SORTS_LEAF}

const struct scalar_op scalar_ops[PX_OPS] = {LEAF(PX_INT),  LEAF(PX_NUMBER), LEAF(PX_BOOL),
                                             LEAF(PX_AXIS), LEAF(PX_LOAD),
#define X(op, text, bind, arity, sorts, counted, index, value, error, slope, units) \
  [PX_##op] = {#op,     text,          BIND_##bind, arity,        SORTS_##sorts,    \
               counted, ERROR_##error, slope,       UNITS_##units},
                                             SCALAR_OPS(X)
#undef X
};

const char *px_op_text(enum px_op op) {
  return scalar_ops[op].text;
}
